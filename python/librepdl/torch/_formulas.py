"""The formulas of policy.def in Python: those of src/formulas_*.cpp, of the same names, with aten's arguments. What is missing here is
refused. Results of librepdl's functions are row-major, whatever the operands' strides."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,no-any-return"

import math
from functools import partial

import torch

from librepdl.torch._elementwise import (BITS, Refuse, axes_of, axis_of, call, check, common_type, elementwise, expect_all, map_, plain,
                                         rounded, with_an_axis)
from librepdl.torch._formulas_data import *  # noqa: F403
from librepdl.torch._formulas_data import NAMES, NARROW, Leave, converted

# ---- elementwise ----

def _gelu(name, *arguments):
    approximate = arguments[-1]
    check(approximate in ("none", "tanh"), "approximate argument must be either none or tanh.")
    return map_(name if approximate == "none" else name.replace("gelu", "gelu_tanh"), *arguments[:-1])


gelu, gelu_backward = partial(_gelu, "gelu"), partial(_gelu, "gelu_backward")


def _promoted(x, number):
    """The tensor in the type that it and a number promote to."""
    dtype = common_type([x, number])
    if not dtype.is_floating_point and not dtype.is_complex:
        raise Leave
    if dtype not in BITS:
        raise Refuse("")
    return converted(x, dtype)


def pow_scalar(x, exponent):
    x = _promoted(x, exponent)
    e = rounded(exponent, x.dtype)
    if e == 1:
        return x.clone()
    if e in (2, -1):
        return map_("square" if e == 2 else "reciprocal", x)
    if x.dtype not in NARROW:
        raise Refuse("")
    return map_("pow_scalar", x, exponent=e)


def scalar_pow(base, x):
    x = _promoted(x, base)
    if x.dtype not in NARROW:
        raise Refuse("")
    return map_("scalar_pow", x, base=rounded(base, x.dtype))


def div_mode(x, y, mode):
    check(mode in (None, "trunc", "floor"), f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")
    if mode is None:
        return torch.div(x, y)
    if not common_type([x, y]).is_floating_point:
        raise Leave
    return map_(f"div_{mode}", x, y)


def floor_divide(x, y):
    return map_("div_floor", x, y)


def heaviside(x, values):
    check(x.dtype == values.dtype, "heaviside is not yet implemented for tensors with different dtypes.")
    return torch.where(x.eq(0), values, map_("clamp", map_("sign", x), min=0.0))


# ---- sums, statistics, the softmax family ----

def _reduced(name, x, axes=None, keep=False, **options):
    return call(name, x, axis=axes_of(x, axes), keepdims=keep, **options)


def _sum(name, x, axes, keep, dtype):
    """In the type that is asked for, as aten converts first."""
    dtype = dtype or x.dtype
    if x.is_complex():
        raise Refuse("")
    if not dtype.is_floating_point and not dtype.is_complex:
        if not x.is_floating_point() or name == "mean":
            raise Leave
        return converted(x, dtype).sum(axes or None, keep, dtype=dtype)  # nothing rounds but the conversion, which aten would let wrap
    if dtype not in NARROW or (x.is_floating_point() and x.dtype not in BITS):
        raise Refuse("")
    return _reduced(name, converted(x, dtype), axes, keep)


sum, mean = partial(_sum, "sum"), partial(_sum, "mean")
amax, amin, argmax, argmin = (partial(_reduced, name) for name in ("max", "min", "argmax", "argmin"))
max_all, min_all = amax, amin


def logsumexp(x, axes, keep):
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    if dtype not in NARROW:
        raise Refuse("")
    return _reduced("logsumexp", converted(x, dtype), axes, keep)


def max_dim(x, axis, keep):
    return amax(x, axis, keep), argmax(x, axis, keep)


def min_dim(x, axis, keep):
    return amin(x, axis, keep), argmin(x, axis, keep)


def _statistic(name, with_mean, x, axes, correction, keep):
    result = _reduced(name, x, axes, keep, correction=1.0 if correction is None else float(correction))
    return (result, _reduced("mean", x, axes, keep)) if with_mean else result


var, stddev, var_mean, std_mean = (partial(_statistic, name, with_mean) for with_mean in (False, True) for name in ("var", "stddev"))


def vector_norm(x, p, axes, keep, dtype):
    dtype = dtype or x.dtype
    if dtype not in NARROW:
        raise Refuse("")
    x = converted(x, dtype)
    if p == 0:
        return x.ne(0).sum(axes or list(range(x.dim())), keep).to(dtype)
    if p not in (1, 2) and not math.isinf(p):
        raise Refuse(f"of p = {p:f}")
    return _reduced("vector_norm", x, axes, keep, p=float(p))


def _along(name, axis, *operands):
    shape = operands[-1].shape
    return call(name, *map(with_an_axis, operands), axis=axis_of(operands[-1], axis)).view(shape)


def _softmax(name, x, axis, half_to_float):
    if half_to_float:
        raise Refuse("of float16 to float32")
    return _along(name, axis, x)


def _softmax_backward(name, g, y, axis, dtype):
    if dtype != y.dtype:
        raise Refuse("of float16 to float32")
    return _along(name, axis, g, y)


softmax, log_softmax = partial(_softmax, "softmax"), partial(_softmax, "log_softmax")
softmax_backward, log_softmax_backward = (partial(_softmax_backward, name) for name in ("softmax_backward", "log_softmax_backward"))


def safe_softmax(x, axis, dtype):
    none = x.eq(-math.inf).all(axis, keepdim=True)
    return torch.softmax(x, axis, dtype=dtype).masked_fill(none, 0.0)


# ---- products and convolutions ----

def _product(rank, added, a, b, beta=0, alpha=1):
    """RN(alpha a b + beta added). beta = 0 leaves out what is added, NaN and all, as aten does."""
    check(a.dim() == b.dim() == rank, f"expected tensors of {rank} dimensions, got {a.dim()} and {b.dim()}")
    check(a.size(-1) == b.size(-2), f"mat1 and mat2 shapes cannot be multiplied ({a.size(-2)}x{a.size(-1)} and "
                                    f"{b.size(-2)}x{b.size(-1)})")
    check(a.shape[:-2] == b.shape[:-2], f"expected batches of one size, got {list(a.shape)} and {list(b.shape)}")
    added = None if beta == 0 else added.expand(*a.shape[:-1], b.size(-1))
    return call("matmul", a, b, added, alpha=rounded(alpha, a.dtype), beta=rounded(beta, a.dtype))


addmm, baddbmm = partial(_product, 2), partial(_product, 3)
mm, bmm = partial(addmm, None), partial(baddbmm, None)


def addmv(c, m, v, beta=0, alpha=1):
    check(v.dim() == 1, f"expected a vector, got {v.dim()} dimensions")
    return addmm(None if beta == 0 else c.expand(m.size(0)).unsqueeze(1), m, v.unsqueeze(1), beta, alpha).squeeze(1)


mv = partial(addmv, None)


def dot(x, y):
    check(x.dim() == y.dim() == 1 and x.shape == y.shape, "dot: expected vectors of one size")
    if torch._is_zerotensor(x) or torch._is_zerotensor(y):  # of forward-mode differentiation: zeros without memory
        return torch._efficientzerotensor((), dtype=x.dtype, device=x.device)
    return call("dot", x, y)


def linear(x, w, bias):
    check(x.dim() >= 1 and w.dim() in (1, 2), f"linear: expected an input of one dimension or more and a weight of 2 or 1, got {x.dim()} "
                                              f"and {w.dim()}")
    matrix = w.unsqueeze(0) if w.dim() == 1 else w
    flat = x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.size(-1))
    y = torch.mm(flat, matrix.t()) if bias is None else torch.addmm(bias, flat, matrix.t())
    return y if x.dim() == 2 and w.dim() == 2 else y.view(*x.shape[:-1], *w.shape[:-1])


def tensordot(a, b, inner_a, inner_b):
    check(len(inner_a) == len(inner_b), "both dimension lists should have same length")
    inner_a, inner_b = [i % max(a.dim(), 1) for i in inner_a], [i % max(b.dim(), 1) for i in inner_b]
    for x, y in zip(inner_a, inner_b):
        check(a.size(x) == b.size(y) or 1 in (a.size(x), b.size(y)), f"contracted dimensions need to match, but first has size {a.size(x)} "
                                                                     f"in dim {x} and second has size {b.size(y)} in dim {y}")
        if a.size(x) != b.size(y):
            a, b = (a.sum(x, True), b) if b.size(y) == 1 else (a, b.sum(y, True))
    outer_a, outer_b = [i for i in range(a.dim()) if i not in inner_a], [i for i in range(b.dim()) if i not in inner_b]
    rows, inner, columns = (math.prod(t.size(i) for i in axes) for t, axes in ((a, outer_a), (a, inner_a), (b, outer_b)))
    left, right = a.permute(outer_a + inner_a).reshape(rows, inner), b.permute(inner_b + outer_b).reshape(inner, columns)
    return torch.mm(left, right).reshape([a.size(i) for i in outer_a] + [b.size(i) for i in outer_b])


def _flat(t, batch):
    return t.expand(*batch, *t.shape[-2:]).reshape(math.prod(batch), *t.shape[-2:])


def matmul(a, b):
    check(a.dim() > 0 and b.dim() > 0, f"both arguments to matmul need to be at least 1D, but they are {a.dim()}D and {b.dim()}D")
    if a.dim() == 1 and b.dim() == 1:
        return a.dot(b)
    row, column = a.dim() == 1, b.dim() == 1
    a, b = a.unsqueeze(0) if row else a, b.unsqueeze(1) if column else b
    if b.dim() == 2:  # the rows of all batches
        y = torch.mm(a.reshape(math.prod(a.shape[:-1]), a.size(-1)), b).view(*a.shape[:-1], b.size(1))
    else:
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        right, left = _flat(b, batch), _flat(a, batch)  # in C++'s order, in which autograd adds gradients
        y = torch.bmm(left, right).view(*batch, a.size(-2), b.size(-1))
    y = y.squeeze(-1) if column else y
    return y.squeeze(-1 if column else -2) if row else y


def attention(q, k, v, mask, p, causal, scale, grouped):
    check(q.dim() >= 2 and k.dim() >= 2 and v.dim() >= 2, "scaled_dot_product_attention: expected at least 2 dimensions")
    check(not causal or mask is None, "scaled_dot_product_attention: explicit attn_mask should not be set when is_causal=True")
    scale = 1 / math.sqrt(q.size(-1)) if scale is None else scale
    if grouped:  # each head of k and v serves several of q
        check(q.dim() >= 3 and q.size(-3) % k.size(-3) == 0 and q.size(-3) % v.size(-3) == 0,
              "scaled_dot_product_attention: the number of heads of key and value must divide that of query")
        k, v = (t.repeat_interleave(q.size(-3) // t.size(-3), -3) for t in (k, v))
    if causal:
        mask = torch.ones(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device).tril()
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.zeros((), dtype=q.dtype, device=q.device).masked_fill(mask.logical_not(), -math.inf)
    # Scores in one rounding: scale q k + mask.
    t = k.transpose(-2, -1)
    batch = torch.broadcast_shapes(q.shape[:-2], t.shape[:-2], () if mask is None else mask.shape[:-2])
    left, right = _flat(q, batch), _flat(t, batch)
    added = q.new_zeros(1, 1, 1) if mask is None else _flat(mask.expand(*batch, q.size(-2), t.size(-1)), batch)
    scores = torch.baddbmm(added, left, right, beta=int(mask is not None), alpha=scale)
    scores = scores.view(*batch, q.size(-2), t.size(-1))
    weights = torch.softmax(scores, -1) if mask is None else torch.ops.aten._safe_softmax(scores, -1)
    return torch.matmul(torch.dropout(weights, p, True) if p > 0 else weights, v)


def _picture(t):
    """Of one dimension as a picture of one row."""
    return t.unsqueeze(2) if t.dim() == 3 else t


def _geometry(x, w, transposed, groups, **lists):
    if transposed:
        raise Refuse("transposed")
    if x.dim() not in (3, 4):
        raise Refuse(f"of {x.dim() - 2} dimensions")
    check(w.dim() == x.dim(), f"Expected {x.dim()}D weight, but got weight of size {list(w.shape)}")
    if x.dim() == 3:
        lists = {name: [0 if name == "padding" else 1, *v] for name, v in lists.items()}
    return {"groups": groups, **{name: v * 2 if len(v) == 1 else v for name, v in lists.items()}}


def convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    g = _geometry(x, w, transposed, groups, stride=stride, padding=padding, dilation=dilation)
    y = call("conv2d", _picture(x), _picture(w), bias, **g)
    return y if x.dim() == 4 else y.squeeze(2)


def convolution_backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    options = _geometry(x, w, transposed, groups, stride=stride, padding=padding, dilation=dilation)
    pg, px, pw = map(_picture, (g, x, w))
    return (call("conv2d_grad_input", pg, pw, size=px.shape[2:], **options).view(x.shape) if mask[0] else None,
            call("conv2d_grad_weight", pg, px, kernel=pw.shape[2:], **options).view(w.shape) if mask[1] else None,
            _over_channels(g) if mask[2] else None)


def _over_channels(g):
    """The exact sum over every axis but that of the channels."""
    return call("sum", g, axis=tuple(i for i in range(g.dim()) if i != 1))


# ---- norms ----

def _eps(eps):
    if not eps >= 0:
        raise Refuse("with eps < 0")
    return float(eps)


def _rows(x, size, *weights):
    """The axes that are normalised, and those of the rows."""
    n = x.dim() - len(size)
    check(len(size) > 0 and n >= 0 and all(list(s) == list(size) for s in (x.shape[n:], *(t.shape for t in weights if t is not None))),
          f"Given normalized_shape={list(size)}, expected input with shape [*, {list(size)}], and weight and bias of that shape, but got "
          f"input of size {list(x.shape)}")
    return tuple(range(n, x.dim())), tuple(range(n))


def _with_ones(t, x):
    return t.view(*t.shape, *[1] * (x.dim() - t.dim()))


def _as(t, dtype):
    return None if t is None else converted(t, dtype)


def _factors(x, *factors):
    """Weights and biases in x's type, or in float32 (factors in formulas_norms.cpp)."""
    return factors if all(t is None or t.dtype == x.dtype for t in factors) else tuple(_as(t, torch.float32) for t in factors)


def _of_factor(g, x, dtype):
    """What the gradient to a weight or bias of a type is made of (for_factor in formulas_norms.cpp)."""
    if dtype not in (x.dtype, torch.float32):
        raise Refuse("with a gradient to a weight or bias of a type that is neither the input's nor float32")
    return converted(g, dtype), converted(x, dtype)


def _check_gradient(g, x):
    if g.dtype != x.dtype:
        raise Refuse("with a gradient of another type than the input")


def native_layer_norm(x, size, w, b, eps):
    y, mean_, rstd = call("layer_norm", x, *_factors(x, w, b), axis=_rows(x, size, w, b)[0], eps=_eps(eps), statistics=True)
    return y, _with_ones(mean_, x), _with_ones(rstd, x)


def native_layer_norm_backward(g, x, size, mean_, rstd, w, b, mask):
    _check_gradient(g, x)
    axes, rows = _rows(x, size)
    mean_, rstd = (t.reshape(x.shape[:len(rows)]) for t in (mean_, rstd))
    gx = call("layer_norm_backward", g, x, mean_, rstd, *_factors(x, w), axis=axes) if mask[0] else None
    gw = call("layer_norm_weight_backward", *_of_factor(g, x, w.dtype), mean_, rstd, axis=axes) if mask[1] and w is not None else None
    return gx, gw, call("sum", _of_factor(g, g, b.dtype)[0], axis=rows) if mask[2] and b is not None else None


def native_group_norm(x, w, b, n, channels, plane, groups, eps):
    return call("group_norm", x, *_factors(x, w, b), groups=groups, eps=_eps(eps), statistics=True)


def native_group_norm_backward(g, x, mean_, rstd, w, n, channels, plane, groups, mask):
    _check_gradient(g, x)
    gx = call("group_norm_backward", g, x, mean_, rstd, *_factors(x, w), groups=groups) if mask[0] else None
    if not mask[1] and not mask[2]:
        return gx, None, None
    g, x = _of_factor(g, x, x.dtype if w is None else w.dtype)
    return (gx, call("group_norm_weight_backward", g, x, mean_, rstd, groups=groups) if mask[1] else None,
            _over_channels(g) if mask[2] else None)


def native_batch_norm(x, w, b, mean_, var_, training, momentum, eps):
    check(x.dim() >= 2, f"batch_norm: expected an input of two dimensions or more, got {x.dim()}")
    for t in (w, b, mean_, var_):
        check(t is None or t.numel() == x.size(1), f"batch_norm: expected {x.size(1)} elements")
    if mean_ is not None and not training:
        mean_, var_ = converted(mean_, torch.float32), converted(var_, torch.float32)
    if mean_ is not None and (mean_.dtype != var_.dtype or mean_.dtype not in (x.dtype, torch.float32)):
        raise Refuse("with running statistics that are neither of the input's type nor float32")
    if training and mean_ is not None and not 0 <= momentum <= 1:
        raise Refuse("with a momentum outside of [0, 1]")
    if w is None and b is not None and b.requires_grad and b.dtype != x.dtype:
        raise Refuse("with a bias of another type than the input, without a weight")
    w, b = _factors(x, w, b)
    if training and mean_ is None:
        return call("batch_norm", x, w, b, eps=_eps(eps), statistics=True)
    check(mean_ is not None and var_ is not None, "batch_norm: expected running statistics in evaluation")
    if training:
        return call("batch_norm_running", x, mean_, var_, w, b, eps=_eps(eps), momentum=momentum,
                    out=(None, None, None, plain(mean_), plain(var_)), statistics=True)[:3]
    y, none = call("batch_norm_inference", x, mean_, var_, w, b, eps=_eps(eps)), mean_.new_empty(0)
    return y, none, none.clone()


def native_batch_norm_backward(g, x, w, running_mean, running_var, mean_, rstd, training, eps, mask):
    _check_gradient(g, x)
    name = "batch_norm" if training else "batch_norm_inference"
    first, second, options = (mean_, rstd, {}) if training else (running_mean, running_var, {"eps": _eps(eps)})
    first, second = converted(first, torch.float32), converted(second, torch.float32)
    statistics = (x, first, second) if training else (second,)
    gx = call(name + "_backward", g, *statistics, *_factors(x, w), **options) if mask[0] else None
    if not mask[1] and not mask[2]:
        return gx, None, None
    g, x = _of_factor(g, x, x.dtype if w is None else w.dtype)
    return (gx, call(name + "_weight_backward", g, x, first, second, **options) if mask[1] else None,
            _over_channels(g) if mask[2] else None)


def batch_norm(x, w, b, mean_, var_, training, momentum, eps, cudnn_enabled):
    if x.numel() == 0:  # as aten has it
        out = x.clone() if w is None else x.mul(w.select(0, 0))
        return out if b is None else out.add(b.select(0, 0))
    return torch.native_batch_norm(x, w, b, mean_, var_, training, momentum, eps)[0]


def rms_norm(x, size, w, eps):
    if x.dtype == torch.float64:  # refused below; without strictness what has a gradient on the CPU
        axes = range(x.dim() - len(size), x.dim())
        y = x * torch.rsqrt(x.square().mean([*axes], keepdim=True) + (2.0**-52 if eps is None else eps))
        return y if w is None else y * w
    return torch.ops.aten._fused_rms_norm(x, size, w, eps)[0]


def weight_norm(v, g, axis):
    return v * (g / torch.norm_except_dim(v, 2, axis))


def fused_rms_norm(x, size, w, eps):
    y, rstd = call("rms_norm", x, 2.0**-23 if eps is None else _eps(eps), *_factors(x, w), axis=_rows(x, size, w)[0], statistics=True)
    return y, _with_ones(rstd, x)


def fused_rms_norm_backward(g, x, size, rstd, w, mask):
    _check_gradient(g, x)
    axes, rows = _rows(x, size)
    rstd = rstd.reshape(x.shape[:len(rows)])
    return (call("rms_norm_backward", g, x, rstd, *_factors(x, w), axis=axes) if mask[0] else None,
            call("rms_norm_weight_backward", *_of_factor(g, x, w.dtype), rstd, axis=axes) if mask[1] and w is not None else None)


# ---- pooling ----

def _pooled(name, *images, **options):
    """Without an axis of samples there is one."""
    check(all(t.dim() in (3, 4) and 0 not in t.shape[-3:] for t in images),
          f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: {list(images[0].shape)}")
    results = call(name, *(t if t.dim() == 4 else t.unsqueeze(0) for t in images), **options)
    if images[0].dim() == 4:
        return results
    return tuple(t.squeeze(0) for t in results) if isinstance(results, tuple) else results.squeeze(0)


def _windows(kernel, stride, padding, dilation, ceil_mode):
    kernel, stride, padding, dilation = (v * 2 if len(v) == 1 else v for v in (kernel, stride or kernel, padding, dilation))
    for k, p, d in zip(kernel, padding, dilation, strict=True):
        check(0 <= p <= ((k - 1) * d + 1) // 2, f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k}")
    return {"kernel": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil_mode}


def max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil_mode):
    return _pooled("max_pool2d_with_indices", x, dilation=dilation, **_windows(kernel, stride, padding, dilation, ceil_mode))


def max_pool2d_with_indices_backward(g, x, kernel, stride, padding, dilation, ceil_mode, indices):
    return _pooled("max_pool2d_backward", g, x, dilation=dilation, **_windows(kernel, stride, padding, dilation, ceil_mode))


def _averaged(name, image, kernel, stride, padding, ceil_mode, count_include_pad, divisor, **options):
    check(divisor != 0, "divisor must be not zero")
    return _pooled(name, image, count_include_pad=count_include_pad, divisor_override=divisor, **options,
                   **_windows(kernel, stride, padding, [1, 1], ceil_mode))


avg_pool2d = partial(_averaged, "avg_pool2d")


def avg_pool2d_backward(g, x, *windows):
    return _averaged("avg_pool2d_backward", g, *windows, size=x.shape[-2:])


def adaptive_avg_pool2d(x, size):
    return _pooled("adaptive_avg_pool2d", x, size=size)


def adaptive_avg_pool2d_backward(g, x):
    return _pooled("adaptive_avg_pool2d_backward", g, size=x.shape[-2:])


# ---- losses ----

_REDUCTIONS = ("none", "mean", "sum")


def _loss(name, option, count, *arguments):
    """`count` operands of one type, the reduction, and where there is one an option."""
    operands, (reduction, *value) = arguments[:count], arguments[count:]
    dtype = torch.promote_types(operands[-2].dtype, operands[-1].dtype)
    if dtype not in NARROW:
        raise Refuse("")
    return call(name, *(converted(t, dtype) for t in operands), reduction=_REDUCTIONS[reduction], **dict(zip([option], value)))


_LOSSES = (("mse_loss", None), ("smooth_l1_loss", "beta"), ("huber_loss", "delta"), ("soft_margin_loss", None))
mse_loss, smooth_l1_loss, huber_loss, soft_margin_loss = (partial(_loss, name, option, 2) for name, option in _LOSSES)
mse_loss_backward, smooth_l1_loss_backward, huber_loss_backward, soft_margin_loss_backward = (
    partial(_loss, name + "_backward", option, 3) for name, option in _LOSSES)


def binary_cross_entropy_with_logits(x, t, w, pos_weight, reduction):
    check(x.shape == t.shape, f"Target size ({t.shape}) must be the same as input size ({x.shape})")
    return call("binary_cross_entropy_with_logits", x, t, w, pos_weight, reduction=_REDUCTIONS[reduction])


def _same_type(w, x):
    if w is not None and w.dtype != x.dtype:
        raise Refuse("with a weight of another type")
    return w


def nll_loss_forward(x, t, w, reduction, ignore_index):
    check(t.dtype == torch.int64, f"expected scalar type Long but found {t.dtype}")
    expect_all(t.ge(0).logical_and(t.lt(x.size(min(x.dim() - 1, 1)))).logical_or(t.eq(ignore_index)), "expected targets that are classes")
    out, total = call("nll_loss", x, t, _same_type(w, x), reduction=_REDUCTIONS[reduction], ignore_index=ignore_index, statistics=True)
    return out, converted(total if reduction != 0 else torch.zeros_like(total), x.dtype)  # "none": not used


def nll_loss_backward(g, x, t, w, reduction, ignore_index, total):
    return call("nll_loss_backward", g, x, t, _same_type(w, x), converted(total, torch.float32), reduction=_REDUCTIONS[reduction],
                ignore_index=ignore_index)


# ---- gradient scalers ----

def amp_unscale(gradients, found, inverse):
    check(inverse.numel() == 1, "inv_scale must be a 1-element tensor.")
    check(found.numel() == 1, "found_inf must be a 1-element tensor.")
    check(inverse.dtype == torch.float32, "inv_scale must be a float tensor.")
    check(found.dtype == torch.float32, "found_inf must be a float tensor.")
    for g in gradients:
        found.masked_fill_(g.isfinite().all().logical_not(), 1)
        elementwise("mul", [g, inverse.reshape(())], g.dtype, {}, g, numbers=True)


def amp_update_scale(scale, tracker, found, growth, backoff, interval):
    check(tracker.numel() == 1, "growth_tracker must be a 1-element tensor.")
    check(scale.numel() == 1, "current_scale must be a 1-element tensor.")
    check(found.numel() == 1, "found_inf must be a 1-element tensor.")
    check(tracker.dtype == torch.int32, "growth_tracker must be an int tensor.")

    def times(factor):
        out = torch.empty_like(scale)
        call("mul", scale.double(), torch.full((), factor, dtype=torch.float64, device=scale.device), out=out)
        return out

    inf = found.ne(0).reshape(scale.shape)
    count = (tracker + 1).reshape(scale.shape)
    due, grown = count.eq(interval), times(growth)
    scale.copy_(torch.where(inf, times(backoff), torch.where(due & grown.isfinite(), grown, scale)))
    tracker.copy_(torch.where(inf | due, 0, count).reshape(tracker.shape))
    return scale
