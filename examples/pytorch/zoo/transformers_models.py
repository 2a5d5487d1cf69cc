"""Models of the package transformers, from configurations made small, with random weights."""

import functools

import torch

from zoo import Task, images, model

transformers_model = functools.partial(model, "transformers", package="transformers")
WORDS, LENGTH = 64, 10
#: Of most configurations.
TINY = {
    "vocab_size": WORDS,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 32,
}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def words(g, length=LENGTH):
    return torch.randint(3, WORDS, (length,), generator=g)


def pooled(features):
    """From version 5 on models return them as a part of something."""
    return getattr(features, "pooler_output", features)


def causal(kind, **options):
    """A language model: kind + "Config", kind + a class for causal language models."""
    import transformers

    config = getattr(transformers, kind + "Config")(**{**TINY, **SPECIAL, **options})
    net = transformers.AutoModelForCausalLM.from_config(config)
    return Task(
        net,
        lambda g: (words(g),),
        lambda net, x: net(input_ids=x, labels=x, use_cache=False).loss,
        lambda net, x: net(input_ids=x).logits,
        clip=1.0,
        schedule=lambda o: transformers.get_linear_schedule_with_warmup(o, 1, 4),
    )


def masked(kind, **options):
    """A masked language model, sentences of several lengths with an attention mask."""
    import transformers

    config = getattr(transformers, kind + "Config")(**{**TINY, **SPECIAL, **options})
    net = transformers.AutoModelForMaskedLM.from_config(config)

    def sample(g):
        x, mask = words(g), torch.ones(LENGTH, dtype=torch.long)
        n = int(torch.randint(5, LENGTH + 1, (), generator=g))
        x[n:], mask[n:] = 0, 0
        labels = torch.where((torch.rand(LENGTH, generator=g) < 0.3) & (mask == 1), x, -100)
        labels[0] = x[0]
        return torch.where(labels == -100, x, 3), mask, labels

    return Task(
        net,
        sample,
        lambda net, x, mask, y: net(input_ids=x, attention_mask=mask, labels=y).loss,
        lambda net, x, mask, y: net(input_ids=x, attention_mask=mask).logits,
    )


def to_text(kind, **options):
    """An encoder and a decoder."""
    import transformers

    config = getattr(transformers, kind + "Config")(**{"vocab_size": WORDS, "decoder_start_token_id": 0, **SPECIAL, **options})
    net = transformers.AutoModelForSeq2SeqLM.from_config(config)
    return Task(
        net,
        lambda g: (words(g), words(g, 6)),
        lambda net, x, y: net(input_ids=x, labels=y).loss,
        lambda net, x, y: net(input_ids=x, decoder_input_ids=y).logits,
        functools.partial(torch.optim.Adafactor, lr=1e-3),
    )


def of_images(kind, size=32, **options):
    import transformers

    config = getattr(transformers, kind + "Config")(num_labels=10, **options)
    net = transformers.AutoModelForImageClassification.from_config(config)
    return Task(net, images(3, size), lambda net, x, y: net(pixel_values=x, labels=y).loss, lambda net, x, y: net(pixel_values=x).logits)


@transformers_model()
def hf_gpt2():
    """GPT-2."""
    return causal("GPT2", n_embd=16, n_layer=2, n_head=2, n_positions=32)


@transformers_model()
def hf_gpt_neox():
    """GPT-NeoX: attention and perceptron in parallel, rotary positions in part."""
    return causal("GPTNeoX")


@transformers_model()
def hf_opt():
    """OPT."""
    return causal("OPT", ffn_dim=32, word_embed_proj_dim=16)


@transformers_model()
def hf_bloom():
    """BLOOM: ALiBi."""
    return causal("Bloom", n_layer=2, n_head=2)


@transformers_model()
def hf_falcon():
    """Falcon: one key for all queries."""
    return causal("Falcon", new_decoder_architecture=False, multi_query=True)


@transformers_model()
def hf_llama():
    """Llama."""
    return causal("Llama", num_key_value_heads=1)


@transformers_model()
def hf_mistral():
    """Mistral: a sliding window."""
    return causal("Mistral", num_key_value_heads=1, sliding_window=4)


@transformers_model()
def hf_mixtral():
    """Mixtral: experts, and a loss that balances them."""
    return causal("Mixtral", num_key_value_heads=1, num_local_experts=4, output_router_logits=True)


@transformers_model()
def hf_qwen3():
    """Qwen 3: norms of queries and keys."""
    return causal("Qwen3", num_key_value_heads=1, head_dim=8)


@transformers_model()
def hf_gemma2():
    """Gemma 2: capped logits, two kinds of layers."""
    return causal("Gemma2", num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8, sliding_window=4)


@transformers_model()
def hf_phi():
    """Phi."""
    return causal("Phi")


@transformers_model()
def hf_deepseek_v3():
    """DeepSeek V3: latent attention, experts in groups."""
    return causal(
        "DeepseekV3",
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        first_k_dense_replace=1,
        q_lora_rank=8,
        kv_lora_rank=8,
        qk_rope_head_dim=4,
        qk_nope_head_dim=4,
        v_head_dim=8,
        num_key_value_heads=2,
    )


@transformers_model()
def hf_mamba():
    """Mamba."""
    return causal("Mamba", state_size=4, expand=2, conv_kernel=4, time_step_rank=4)


@transformers_model()
def hf_mamba2():
    """Mamba 2: cumulative sums in chunks."""
    return causal("Mamba2", state_size=8, head_dim=8, num_heads=4, n_groups=1, chunk_size=4)


@transformers_model()
def hf_rwkv():
    """RWKV."""
    return causal("Rwkv", context_length=32, attention_hidden_size=16)


@transformers_model()
def hf_bert():
    """BERT."""
    return masked("Bert")


@transformers_model()
def hf_roberta():
    """RoBERTa."""
    return masked("Roberta", max_position_embeddings=40)


@transformers_model()
def hf_distilbert():
    """DistilBERT."""
    return masked("DistilBert", dim=16, n_layers=2, n_heads=2, hidden_dim=32)


@transformers_model()
def hf_albert():
    """ALBERT: layers share their weights."""
    return masked("Albert", embedding_size=8)


@transformers_model()
def hf_electra():
    """ELECTRA."""
    return masked("Electra", embedding_size=8)


@transformers_model()
def hf_deberta_v2():
    """DeBERTa V2: disentangled attention."""
    return masked("DebertaV2", relative_attention=True, pos_att_type=["p2c", "c2p"], max_relative_positions=8)


@transformers_model()
def hf_modernbert():
    """ModernBERT."""
    return masked("ModernBert", reference_compile=False, local_attention=4, attn_implementation="sdpa")


@transformers_model()
def hf_fnet():
    """FNet: Fourier transforms instead of attention."""
    task = masked("FNet", tpu_short_seq_length=LENGTH)
    task.loss = lambda net, x, mask, y: net(input_ids=x, labels=y).loss
    task.serve = lambda net, x, mask, y: net(input_ids=x).logits
    return task


@transformers_model()
def hf_longformer():
    """Longformer: attention in windows."""
    return masked("Longformer", attention_window=4, max_position_embeddings=40)


@transformers_model()
def hf_t5():
    """T5: relative positions in buckets, no biases."""
    return to_text("T5", d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)


@transformers_model()
def hf_bart():
    """BART."""
    return to_text(
        "Bart",
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_position_embeddings=32,
        forced_eos_token_id=2,
    )


@transformers_model()
def hf_whisper():
    """Whisper: spectra to text."""
    import transformers

    net = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=WORDS,
            num_mel_bins=8,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            max_source_positions=16,
            max_target_positions=16,
            decoder_start_token_id=1,
            suppress_tokens=None,
            begin_suppress_tokens=None,
            **SPECIAL,
        )
    )
    return Task(
        net,
        lambda g: (torch.randn(8, 32, generator=g), words(g, 6)),
        lambda net, x, y: net(input_features=x, labels=y).loss,
        lambda net, x, y: net(input_features=x, decoder_input_ids=y).logits,
    )


@transformers_model()
def hf_wav2vec2():
    """Wav2Vec 2 for audio classification: weight norm in its positions, SpecAugment."""
    import transformers

    net = transformers.Wav2Vec2ForSequenceClassification(
        transformers.Wav2Vec2Config(
            vocab_size=WORDS,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            conv_dim=(8, 8),
            conv_stride=(4, 2),
            conv_kernel=(8, 3),
            num_conv_pos_embeddings=4,
            num_conv_pos_embedding_groups=2,
            classifier_proj_size=8,
            num_labels=4,
            apply_spec_augment=False,
            num_feat_extract_layers=2,
        )
    )
    return Task(
        net,
        lambda g: (torch.randn(200, generator=g), torch.randint(0, 4, (), generator=g)),
        lambda net, x, y: net(input_values=x, labels=y).loss,
        lambda net, x, y: net(input_values=x).logits,
    )


@transformers_model()
def hf_audio_spectrogram():
    """Audio spectrogram transformer."""
    import transformers

    net = transformers.ASTForAudioClassification(
        transformers.ASTConfig(
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_length=32,
            num_mel_bins=16,
            num_labels=4,
            patch_size=8,
            frequency_stride=8,
            time_stride=8,
        )
    )
    return Task(
        net,
        lambda g: (torch.randn(32, 16, generator=g), torch.randint(0, 4, (), generator=g)),
        lambda net, x, y: net(input_values=x, labels=y).loss,
        lambda net, x, y: net(input_values=x).logits,
    )


@transformers_model()
def hf_vit():
    """Vision transformer."""
    return of_images("ViT", image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)


@transformers_model()
def hf_dinov2():
    """DINOv2, whose positions are interpolated to another size of image."""
    return of_images("Dinov2", image_size=42, patch_size=7, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, size=28)


@transformers_model()
def hf_segformer():
    """SegFormer for segmentation: logits enlarged to the image."""
    import transformers

    net = transformers.SegformerForSemanticSegmentation(
        transformers.SegformerConfig(
            num_encoder_blocks=2,
            depths=[1, 1],
            sr_ratios=[2, 1],
            hidden_sizes=[8, 16],
            patch_sizes=[3, 3],
            strides=[2, 2],
            num_attention_heads=[1, 2],
            mlp_ratios=[2, 2],
            decoder_hidden_size=8,
            num_labels=3,
        )
    )
    return Task(
        net,
        lambda g: (torch.rand(3, 16, 16, generator=g), torch.randint(0, 3, (16, 16), generator=g)),
        lambda net, x, y: net(pixel_values=x, labels=y).loss,
        lambda net, x, y: net(pixel_values=x).logits,
    )


@transformers_model()
def hf_clip():
    """CLIP: pictures and sentences in one space."""
    import transformers

    parts = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "projection_dim": 8}
    net = transformers.CLIPModel(
        transformers.CLIPConfig(
            text_config={**parts, **SPECIAL, "vocab_size": WORDS, "max_position_embeddings": 16},
            vision_config={**parts, "image_size": 16, "patch_size": 8},
            projection_dim=8,
        )
    )
    return Task(
        net,
        lambda g: (words(g, 8), torch.rand(3, 16, 16, generator=g)),
        lambda net, x, image: net(input_ids=x, pixel_values=image, return_loss=True).loss,
        lambda net, x, image: pooled(net.get_image_features(pixel_values=image)),
    )


@transformers_model()
def hf_siglip():
    """SigLIP: the same with a sigmoid loss."""
    import transformers

    parts = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    net = transformers.SiglipModel(
        transformers.SiglipConfig(
            text_config={**parts, **SPECIAL, "vocab_size": WORDS, "max_position_embeddings": 8, "projection_size": 16},
            vision_config={**parts, "image_size": 16, "patch_size": 8},
        )
    )
    return Task(
        net,
        lambda g: (words(g, 8), torch.rand(3, 16, 16, generator=g)),
        lambda net, x, image: net(input_ids=x, pixel_values=image, return_loss=True).loss,
        lambda net, x, image: pooled(net.get_text_features(input_ids=x)),
    )


@transformers_model()
def hf_time_series():
    """A transformer of time series with Student's distributions."""
    import transformers

    net = transformers.TimeSeriesTransformerForPrediction(
        transformers.TimeSeriesTransformerConfig(
            prediction_length=4,
            context_length=8,
            lags_sequence=[1, 2],
            num_time_features=1,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
        )
    )

    def sample(g):
        return torch.rand(14, generator=g), torch.rand(18, 1, generator=g)

    def parts(x, t):
        return {
            "past_values": x[:, :10],
            "past_time_features": t[:, :10],
            "past_observed_mask": torch.ones_like(x[:, :10]),
            "future_values": x[:, 10:],
            "future_time_features": t[:, 10:14],
        }

    return Task(net, sample, lambda net, x, t: net(**parts(x, t)).loss, lambda net, x, t: net(**parts(x, t)).params)


@transformers_model()
def hf_patch_tst():
    """PatchTST."""
    import transformers

    net = transformers.PatchTSTForPrediction(
        transformers.PatchTSTConfig(
            num_input_channels=2,
            context_length=16,
            patch_length=4,
            patch_stride=4,
            prediction_length=4,
            d_model=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            ffn_dim=32,
            loss="mse",
        )
    )
    return Task(
        net,
        lambda g: tuple(torch.randn(20, 2, generator=g).split([16, 4])),
        lambda net, x, y: net(past_values=x, future_values=y).loss,
        lambda net, x, y: net(past_values=x).prediction_outputs,
    )


@transformers_model()
def hf_decision_transformer():
    """Decision transformer."""
    import transformers

    net = transformers.DecisionTransformerModel(
        transformers.DecisionTransformerConfig(state_dim=4, act_dim=2, hidden_size=16, max_ep_len=16, n_layer=1, n_head=2, n_positions=32)
    )

    def foretold(net, s, a, r):
        steps = torch.arange(5, device=s.device).expand(len(s), -1)
        return net(
            states=s, actions=a, rewards=r, returns_to_go=r, timesteps=steps, attention_mask=torch.ones_like(steps), return_dict=True
        ).action_preds

    return Task(
        net,
        lambda g: (torch.randn(5, 4, generator=g), torch.randn(5, 2, generator=g), torch.randn(5, 1, generator=g)),
        lambda net, s, a, r: (foretold(net, s, a, r) - a).square().mean(),
        foretold,
    )


@transformers_model()
def hf_llama_generation():
    """Llama, trained, then writing with its cache of keys: greedy generation."""
    task = causal("Llama", num_key_value_heads=1)
    task.serve = lambda net, x: net.generate(x, max_new_tokens=4, do_sample=False)
    return task
