"""Networks of the package timm, made small, with random weights."""

import functools

import torch
from torch.nn import functional as F

from zoo import Task, classify, images, model

timm_model = functools.partial(model, "timm", package="timm")
SMALL = functools.partial(torch.optim.AdamW, lr=1e-3, weight_decay=0.05)


def made(name, size=32, optimizer=SMALL, loss=classify, schedule=None, **options):
    """timm.create_model without anything to download."""
    import timm

    net = timm.create_model(name, pretrained=False, num_classes=10, **options)
    return Task(net, images(3, size), loss, optimizer=optimizer, schedule=schedule)


def smoothed(net, x, label):
    return F.cross_entropy(net(x), label, label_smoothing=0.1)


@timm_model()
def timm_vit():
    """Vision transformer, with stochastic depth."""
    return made("vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, drop_path_rate=0.1, loss=smoothed)


@timm_model()
def timm_vit_registers():
    """A vision transformer with registers, layer scale and SwiGLU (DINOv2's)."""
    return made("vit_small_patch14_reg4_dinov2", img_size=28, patch_size=7, embed_dim=24, depth=2, num_heads=2, size=28)


@timm_model()
def timm_deit3():
    """DeiT III: layer scale, no class token in its positions."""
    return made("deit3_small_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2)


@timm_model()
def timm_swin():
    """Swin transformer: windows that move, relative positions."""
    return made("swin_tiny_patch4_window7_224", img_size=32, patch_size=2, window_size=4, embed_dim=12, depths=(2, 2), num_heads=(2, 4))


@timm_model()
def timm_swin_v2():
    """Swin V2: cosine attention, continuous relative positions."""
    return made("swinv2_tiny_window8_256", img_size=32, patch_size=2, window_size=4, embed_dim=12, depths=(2, 2), num_heads=(2, 4))


@timm_model()
def timm_convnext():
    """ConvNeXt."""
    return made("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 12, 16, 24), drop_path_rate=0.1)


@timm_model()
def timm_convnext_v2():
    """ConvNeXt V2: global response normalisation."""
    return made("convnextv2_atto", depths=(1, 1, 1, 1), dims=(8, 12, 16, 24))


@timm_model()
def timm_resnet():
    """ResNet with a deep stem, pooled shortcuts and blur pooling (ResNet-D)."""
    from timm.models.resnet import BasicBlock, ResNet

    net = ResNet(BasicBlock, (1, 1, 1, 1), num_classes=10, channels=(8, 12, 16, 24), stem_width=8, stem_type="deep", avg_down=True)
    return Task(
        net,
        images(3, 32),
        classify,
        optimizer=functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9, nesterov=True),
        schedule=functools.partial(torch.optim.lr_scheduler.CosineAnnealingLR, T_max=3),
    )


@timm_model()
def timm_resnet_eca():
    """ResNet bottlenecks with efficient channel attention, SiLU and anti-aliased strides."""
    from timm.layers import BlurPool2d
    from timm.models.resnet import Bottleneck, ResNet

    net = ResNet(Bottleneck, (1, 1, 1, 1), num_classes=10, channels=(4, 4, 8, 8), stem_width=8, aa_layer=BlurPool2d, block_args={"attn_layer": "eca"})
    return Task(net, images(3, 32), classify, optimizer=functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9))


@timm_model()
def timm_efficientnet():
    """EfficientNet: blocks by their notation."""
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet

    blocks = decode_arch_def([["ds_r1_k3_s1_e1_c8_se0.25"], ["ir_r2_k3_s2_e4_c12_se0.25"], ["ir_r1_k5_s2_e4_c16_se0.25"]])
    net = EfficientNet(blocks, num_classes=10, num_features=32, stem_size=8, act_layer=torch.nn.SiLU, drop_path_rate=0.1)
    return Task(net, images(3, 32), classify, optimizer=functools.partial(torch.optim.RMSprop, lr=1e-3, alpha=0.9, momentum=0.9, eps=1e-3))


@timm_model()
def timm_mobilenet_v3():
    """MobileNet V3: hard swish, squeeze and excitation by hard sigmoids."""
    from timm.layers import SqueezeExcite
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.mobilenetv3 import MobileNetV3

    blocks = decode_arch_def([["ds_r1_k3_s2_e1_c8_se0.25_nre"], ["ir_r1_k5_s2_e4_c12_se0.25"], ["cn_r1_k1_s1_c24"]])
    net = MobileNetV3(
        blocks,
        num_classes=10,
        num_features=32,
        stem_size=8,
        act_layer=torch.nn.Hardswish,
        drop_rate=0.1,
        se_layer=functools.partial(SqueezeExcite, gate_layer="hard_sigmoid", rd_divisor=4),
    )
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_mobilenet_v4():
    """MobileNet V4: universal bottlenecks and mobile attention."""
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.mobilenetv3 import MobileNetV3

    blocks = decode_arch_def(
        [["cn_r1_k3_s2_e1_c8"], ["uir_r1_a3_k5_s2_e3_c16"], ["mqa_r1_k3_h2_s1_d8_c16", "uir_r1_a0_k3_s1_e2_c16"], ["cn_r1_k1_s1_c24"]]
    )
    net = MobileNetV3(blocks, num_classes=10, num_features=32, stem_size=8, act_layer=torch.nn.ReLU, layer_scale_init_value=1e-5)
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_ghostnet():
    """GhostNet: half of the features by cheap convolutions."""
    from timm.models.ghostnet import GhostNet

    net = GhostNet([[[3, 16, 16, 0, 1]], [[3, 32, 24, 0, 2]], [[5, 48, 24, 0.25, 2]]], num_classes=10, width=0.5)
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_densenet():
    """DenseNet, gradients by checkpoints."""
    return made("densenet121", growth_rate=4, block_config=(2, 2, 2), memory_efficient=True)


@timm_model()
def timm_regnet():
    """RegNet with squeeze and excitation."""
    from timm.models.regnet import RegNet, RegNetCfg

    net = RegNet(RegNetCfg(w0=8, wa=8.0, wm=1.8, group_size=4, depth=5, se_ratio=0.25, stem_width=8), num_classes=10)
    return Task(net, images(3, 32), classify, optimizer=functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=5e-5))


@timm_model()
def timm_repvgg():
    """RepVGG: branches that are one convolution when it serves."""
    from timm.models.byobnet import ByoBlockCfg, ByoModelCfg, ByobNet

    cfg = ByoModelCfg(blocks=tuple(ByoBlockCfg(type="rep", d=1, c=c, s=2, gs=0) for c in (8, 12, 16)), stem_type="rep", stem_chs=8)
    return Task(ByobNet(cfg, num_classes=10), images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_nfnet():
    """A network without norms: standardised weights, scaled activations."""
    from timm.models.nfnet import NfCfg, NormFreeNet

    cfg = NfCfg(
        depths=(1, 1),
        channels=(16, 24),
        stem_type="3x3",
        stem_chs=8,
        group_size=8,
        bottle_ratio=0.5,
        num_features=32,
        act_layer="silu",
        attn_layer="se",
        attn_kwargs={"rd_ratio": 0.5},
    )
    return Task(
        NormFreeNet(cfg, num_classes=10), images(3, 32), classify, optimizer=functools.partial(torch.optim.SGD, lr=0.01, momentum=0.9), clip=0.1
    )


@timm_model()
def timm_mixer():
    """MLP-Mixer."""
    from timm.models.mlp_mixer import MlpMixer

    return Task(MlpMixer(10, 32, patch_size=8, embed_dim=16, num_blocks=2), images(3, 32), smoothed, optimizer=SMALL)


@timm_model()
def timm_gmlp():
    """gMLP: perceptrons with spatial gates."""
    from timm.layers import GatedMlp
    from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock

    net = MlpMixer(10, 32, patch_size=8, embed_dim=16, num_blocks=2, mlp_ratio=4, block_layer=SpatialGatingBlock, mlp_layer=GatedMlp)
    return Task(net, images(3, 32), smoothed, optimizer=SMALL)


@timm_model()
def timm_convmixer():
    """ConvMixer."""
    from timm.models.convmixer import ConvMixer

    return Task(ConvMixer(16, 2, kernel_size=5, patch_size=4, num_classes=10), images(3, 32), classify, optimizer=torch.optim.NAdam)


@timm_model()
def timm_caformer():
    """CAFormer: convolutions, then attention, StarReLU."""
    from timm.models.metaformer import Attention, LayerNorm2dNoBias, LayerNormNoBias, MetaFormer, SepConv

    net = MetaFormer(
        num_classes=10,
        depths=(1, 1, 1, 1),
        dims=(8, 8, 32, 32),
        token_mixers=[SepConv, SepConv, Attention, Attention],
        norm_layers=[LayerNorm2dNoBias] * 2 + [LayerNormNoBias] * 2,
    )
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_poolformer():
    """PoolFormer: average pooling instead of attention."""
    from timm.models.metaformer import GroupNorm1, MetaFormer

    net = MetaFormer(
        num_classes=10,
        depths=(1, 1, 1, 1),
        dims=(8, 12, 16, 24),
        downsample_norm=None,
        mlp_act=torch.nn.GELU,
        mlp_bias=True,
        norm_layers=GroupNorm1,
        layer_scale_init_values=1e-5,
        res_scale_init_values=None,
        use_mlp_head=False,
    )
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_pvt():
    """Pyramid vision transformer V2: attention to a smaller image."""
    return made("pvt_v2_b0", depths=(1, 1, 1, 1), embed_dims=(8, 16, 24, 32), num_heads=(1, 2, 2, 4))


@timm_model()
def timm_xcit():
    """XCiT: attention between channels."""
    return made("xcit_nano_12_p8_224", img_size=32, embed_dim=16, depth=2, num_heads=2, cls_attn_layers=1)


@timm_model()
def timm_cait():
    """CaiT: talking heads, a class token that comes late."""
    return made("cait_xxs24_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2)


@timm_model()
def timm_beit():
    """BEiT: relative positions for each block."""
    return made("beit_base_patch16_224", img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2)


@timm_model()
def timm_eva():
    """EVA-02: rotary positions in two dimensions, SwiGLU."""
    return made("eva02_tiny_patch14_224", img_size=28, patch_size=7, embed_dim=24, depth=2, num_heads=2, size=28)


@timm_model()
def timm_sequencer():
    """Sequencer: bidirectional LSTMs over rows and columns."""
    return made("sequencer2d_s", img_size=32, layers=(1, 1), patch_sizes=(8, 1), embed_dims=(16, 16), hidden_sizes=(8, 8), mlp_ratios=(2.0, 2.0))


@timm_model()
def timm_focalnet():
    """FocalNet: context gathered by gates."""
    from timm.models.focalnet import FocalNet

    net = FocalNet(num_classes=10, depths=(1, 1), embed_dim=12, focal_levels=(2, 2), focal_windows=(3, 3))
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_edgenext():
    """EdgeNeXt: split depthwise convolutions, attention between channels, Fourier positions."""
    return made("edgenext_xx_small", depths=(1, 1, 1, 1), dims=(8, 16, 16, 24), heads=(2, 2, 2, 2))


@timm_model()
def timm_mobilevit():
    """MobileViT V2: linear attention on unfolded patches."""
    from timm.models.byobnet import ByoModelCfg, ByobNet
    from timm.models.mobilevit import _inverted_residual_block, _mobilevitv2_block

    blocks = (_inverted_residual_block(d=1, c=8, s=1, br=2.0), _mobilevitv2_block(d=1, c=12, s=2, transformer_depth=1))
    net = ByobNet(ByoModelCfg(blocks=blocks, stem_chs=8, stem_type="3x3", stem_pool="", downsample="", act_layer="silu"), num_classes=10)
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_maxvit():
    """MaxViT: convolutions, attention in windows and on grids."""
    from timm.models.maxxvit import MaxxVit, MaxxVitCfg, MaxxVitTransformerCfg

    cfg = MaxxVitCfg(
        embed_dim=(8, 16),
        depths=(1, 1),
        block_type=("M", "M"),
        stem_width=8,
        transformer_cfg=MaxxVitTransformerCfg(window_size=(4, 4), grid_size=(4, 4), dim_head=4),
    )
    return Task(MaxxVit(cfg, img_size=32, num_classes=10), images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_volo():
    """VOLO: outlook attention, an unfold and a fold."""
    from timm.models.volo import VOLO

    net = VOLO(
        [1, 1],
        32,
        num_classes=10,
        patch_size=4,
        stem_hidden_dim=8,
        embed_dims=[12, 24],
        num_heads=[2, 2],
        downsamples=(True, False),
        outlook_attention=(True, False),
        use_aux_head=False,
    )
    return Task(net, images(3, 32), classify, optimizer=SMALL)


@timm_model()
def timm_hiera():
    """Hiera: windows, pooled queries."""
    return made("hiera_tiny_224", img_size=32, embed_dim=12, num_heads=1, stages=(1, 1), q_stride=(2, 2), q_pool=1, mask_unit_size=(4, 4))


@timm_model()
def timm_tiny_vit():
    """TinyViT: convolutions, windows, attention biases."""
    return made("tiny_vit_5m_224", size=64, depths=(1, 1, 1, 1), embed_dims=(8, 16, 16, 24), num_heads=(1, 2, 2, 2), window_sizes=(4, 4, 4, 2))


@timm_model()
def timm_davit():
    """DaViT: attention in windows and between channels."""
    return made("davit_tiny", depths=(1, 1, 1, 1), embed_dims=(8, 16, 16, 24), num_heads=(1, 2, 2, 2), window_size=4, drop_path_rate=0.0, size=64)


@timm_model()
def timm_inception_next():
    """InceptionNeXt: depthwise convolutions in bands."""
    return made("inception_next_tiny", depths=(1, 1, 1, 1), dims=(16, 16, 24, 32))
