"""Convolutions and their gradients beside cuDNN's deterministic kernels, on a GPU.

    python3 bench/convolutions.py [--rounds 5] [--only TEXT] [--formats float32,bfloat16,float64] [--networks | --depthwise] [--last]

For each convolution of 32 images (channels x side, kernel, stride, outputs) milliseconds, medians of the rounds, by turns in one run, cuDNN's time over ours,
the geometric mean of a format, and whether results are those of the CPU. Times are those of a call in a CUDA graph of five, so none of the host.
--networks: layers of ResNet-18 and -50, ConvNeXt and a U-Net instead of the five convolutions of `librepdl_cuda_bench --only network`; --depthwise: layers of
MobileNet, EfficientNet and ConvNeXt. --last: channels last.
"""

import argparse
import math
import statistics

import torch

import librepdl
from cuda_norms import captured

# channels, side, kernel, stride, outputs, groups
FIVE = [(64, 56, 3, 1, 64, 1), (256, 14, 3, 1, 256, 1), (3, 224, 7, 2, 64, 1), (256, 56, 1, 1, 64, 1), (512, 7, 3, 1, 512, 1)]
NETWORKS = [(3, 224, 7, 2, 64, 1), (64, 56, 3, 1, 64, 1), (64, 56, 3, 2, 128, 1), (64, 56, 1, 2, 128, 1), (128, 28, 3, 1, 128, 1), (256, 14, 3, 1, 256, 1),
            (512, 7, 3, 1, 512, 1), (64, 56, 1, 1, 256, 1), (512, 28, 1, 1, 128, 1), (1024, 14, 1, 1, 256, 1), (512, 7, 1, 1, 2048, 1),
            (3, 224, 4, 4, 96, 1), (96, 56, 7, 1, 96, 96), (384, 14, 7, 1, 384, 384), (96, 56, 2, 2, 192, 1),
            (32, 128, 3, 1, 32, 1), (128, 64, 3, 1, 64, 1), (256, 16, 3, 1, 512, 1)]
# Of MobileNet-V2, EfficientNet and ConvNeXt: a channel for itself.
DEPTHWISE = [(channels, side, kernel, stride, channels, channels) for channels, side, kernel, stride in
             [(32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (384, 14, 3, 1), (960, 7, 3, 1), (240, 28, 5, 1), (672, 14, 5, 2), (1152, 7, 5, 1),
              (96, 56, 7, 1), (192, 28, 7, 1), (384, 14, 7, 1), (768, 7, 7, 1)]]
BATCH = 32
CALLS = 5  # of a graph


def directions(dtype, channels, side, kernel, stride, outputs, groups, last):
    """(name, our call, cuDNN's, whether a part of our results has the CPU's bits), ..."""
    memory = torch.channels_last if last else torch.contiguous_format
    padding = kernel // 2 if kernel % 2 else 0
    torch.manual_seed(0)
    x = torch.randn(BATCH, channels, side, side, device="cuda").to(dtype).contiguous(memory_format=memory)
    w = torch.randn(outputs, channels // groups, kernel, kernel, device="cuda").to(dtype).contiguous(memory_format=memory)
    out, grad_x, grad_w = librepdl.conv2d(x, w, stride=stride, padding=padding, groups=groups), torch.empty_like(x), torch.empty_like(w)
    out = out.contiguous(memory_format=memory)
    g = torch.randn_like(out)
    like = dict(stride=stride, padding=padding, groups=groups)

    def gradient(which):
        mask = [which == k for k in range(3)]
        return lambda: torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups, mask)

    few = channels // groups if groups > 1 else 2  # outputs, whose gradient needs of x the channels of their groups
    some = {**like, "groups": few if groups > 1 else 1}
    yield ("forward", lambda: librepdl.conv2d(x, w, **like, out=out),
           lambda: torch.ops.aten.convolution(x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups),
           lambda: torch.equal(out[:1].cpu(), librepdl.conv2d(x[:1].cpu(), w.cpu(), **like)))
    yield ("grad_input", lambda: librepdl.conv2d_grad_input(g, w, (side, side), **like, out=grad_x), gradient(0),
           lambda: torch.equal(grad_x[:1].cpu(), librepdl.conv2d_grad_input(g[:1].cpu(), w.cpu(), (side, side), **like)))
    yield ("grad_weight", lambda: librepdl.conv2d_grad_weight(g, x, (kernel, kernel), **like, out=grad_w), gradient(1),
           lambda: torch.equal(grad_w[:few].cpu(), librepdl.conv2d_grad_weight(g[:, :few].cpu(), (x[:, :few] if groups > 1 else x).cpu(), (kernel, kernel), **some)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--formats", default="float32,bfloat16,float64")
    parser.add_argument("--networks", dest="shapes", action="store_const", const=NETWORKS, default=FIVE)
    parser.add_argument("--depthwise", dest="shapes", action="store_const", const=DEPTHWISE)
    parser.add_argument("--last", action="store_true")
    given = parser.parse_args()
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = False
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__, "librepdl", librepdl.__version__)
    with librepdl.context(), torch.cuda.stream(torch.cuda.Stream()):
        for dtype in given.formats.split(","):
            ratios = []
            for shape in given.shapes:
                channels, side, kernel, stride, outputs, groups = shape
                layer = f"{dtype} {channels}x{side} {kernel}x{kernel} /{stride} to {outputs}" + (f" in {groups} groups" if groups > 1 else "")
                if given.only not in layer:
                    continue
                for name, ours, theirs, is_same in directions(getattr(torch, dtype), *shape, given.last):
                    calls = [captured(call, CALLS) for call in (ours, theirs)]
                    times = [[call() / 1e3 for call in calls] for _ in range(given.rounds)]
                    a, b = (statistics.median(t) for t in zip(*times))
                    ratios.append(b / a)
                    print(f"{layer:44} {name:11} {a:9.3f} {b:9.3f}  {b / a:6.2f}  {'same bits as the CPU' if is_same() else 'OTHER BITS THAN THE CPU'}", flush=True)
            if ratios:
                print(f"{dtype}: geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.2f}, least {min(ratios):.2f}", flush=True)


if __name__ == "__main__":
    main()
