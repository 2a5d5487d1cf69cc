"""Functions, sums and rows of binary64 on a GPU beside a copy of the same bytes and PyTorch's: 2^26 elements, medians of 20, by turns.

    bench/cuda_functions.py LIBRARY [OPERATION...]

LIBRARY: librepdl as a shared library (cmake -DBUILD_SHARED_LIBS=ON). Through its C ABI: calls prepared once, without Python's cost.
"""
import ctypes as C
import statistics
import sys
import time

import torch
import torch.nn.functional as F

lib = C.CDLL(sys.argv[1])
cuda = torch.cuda.is_available()
n = 2**26 if cuda else 2**12
dev = "cuda" if cuda else "cpu"
where = (2, 0) if cuda else (1, 0)


class Device(C.Structure):
    _fields_ = [("type", C.c_int32), ("id", C.c_int32)]


class DType(C.Structure):
    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device", Device), ("ndim", C.c_int32), ("dtype", DType), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("offset", C.c_uint64)]


class Options(C.Structure):
    _fields_ = [("size", C.c_size_t), ("device", Device), ("stream", C.c_void_p), ("threads", C.c_int32), ("first_tier", C.c_int32),
                ("isa", C.c_char_p), ("last_tier_bits", C.c_int32), ("allocate", C.c_void_p), ("deallocate", C.c_void_p),
                ("memory_state", C.c_void_p)]


lib.repdl_last_error.restype = C.c_char_p


def must(status):
    if status:
        raise RuntimeError(lib.repdl_last_error().decode())


o = Options(size=C.sizeof(Options), device=Device(*where))
ctx = C.c_void_p()
must(lib.repdl_context_create(C.byref(o), C.byref(ctx)))
keep = []


def tensor(t):
    shape = (C.c_int64 * t.dim())(*t.shape)
    d = Tensor(t.data_ptr(), Device(*where), t.dim(), DType(2, 64, 1), shape, None, 0)
    keep.append((t, d, shape))
    return C.pointer(d)


def prepared(name, ins, outs):
    op = C.c_void_p()
    must(lib.repdl_op_find(name.encode(), C.byref(op)))
    a = (C.POINTER(Tensor) * len(ins))(*map(tensor, ins))
    b = (C.POINTER(Tensor) * len(outs))(*map(tensor, outs))
    p = C.c_void_p()
    must(lib.repdl_prepare(ctx, op, a, len(ins), b, len(outs), None, 0, C.byref(p)))
    return p


def seconds(f):
    if not cuda:
        start = time.perf_counter()
        f()
        return time.perf_counter() - start
    a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    a.record()
    f()
    b.record()
    torch.cuda.synchronize()
    return a.elapsed_time(b) * 1e-3


if cuda:
    print(torch.cuda.get_device_name(0), "torch", torch.__version__, "n = 2^26, float64; medians of 20, by turns; GB/s of bytes read and written")
torch.manual_seed(1)


def uniform(lo, hi):
    return torch.empty(n, dtype=torch.float64, device=dev).uniform_(lo, hi)


copied = torch.empty(n, dtype=torch.float64, device=dev)
sym, sym2, pos, px, py = uniform(-10, 10), uniform(-10, 10), uniform(0.01, 100), uniform(0.1, 10), uniform(-5, 5)
small = uniform(-1, 1)
cases = [("exp", (sym,), torch.exp, .3), ("log", (pos,), torch.log, .3), ("sin", (sym,), torch.sin, .3), ("cos", (sym,), torch.cos, None),
         ("tanh", (sym,), torch.tanh, None), ("pow", (px, py), torch.pow, .15), ("atan2", (sym, sym2), torch.atan2, None),
         ("sigmoid", (sym,), torch.sigmoid, None), ("expm1", (sym,), torch.expm1, None), ("log1p", (small,), torch.log1p, None),
         ("log2", (pos,), torch.log2, None), ("exp2", (sym,), torch.exp2, None), ("hypot", (sym, sym2), torch.hypot, None),
         ("sqrt", (pos,), torch.sqrt, None), ("mul", (sym, sym2), torch.mul, None)]
for rows in (64, 4096, 2**16, 2**20):
    x = sym.view(rows, -1)
    weight, bias = pos[:x.shape[1]], sym2[:x.shape[1]]
    cases += [(f"{name} {rows}x{x.shape[1]}", (x, *more), peer, None)
              for name, more, peer in (("softmax", (), lambda x: torch.softmax(x, -1)), ("log_softmax", (), lambda x: torch.log_softmax(x, -1)),
                                       ("layer_norm", (weight, bias), lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b)))]
cases.append(("sum", (sym,), torch.sum, None))
print(f"{'op':24} {'ms':>8} {'copy ms':>8} {'GB/s':>8} {'copy GB/s':>9} {'share':>6} {'needed':>6} {'torch ms':>8} {'t share':>7} {'t/ours':>6} {'last tier':>9} "
      f"{'differ from torch':>17}")
for name, ins, peer, need in cases:
    op = name.split()[0]
    if len(sys.argv) > 2 and op not in sys.argv[2:]:
        continue
    try:
        theirs = peer(*ins)
        out = torch.empty_like(theirs)
        statistics_of_rows = [torch.empty(out.shape[0], dtype=out.dtype, device=dev) for _ in range(2)] if op == "layer_norm" else []
        p = prepared(op, ins, [out, *statistics_of_rows])
        runs = {"ours": lambda: must(lib.repdl_prepared_run(p)), "copy": lambda: copied.copy_(sym), "torch": lambda: peer(*ins)}
        for f in runs.values():
            for _ in range(3):
                f()
        times = {k: [] for k in runs}
        for _ in range(20):
            for k, f in runs.items():
                times[k].append(seconds(f))
        must(lib.repdl_context_synchronize(ctx))
        t = {k: statistics.median(v) for k, v in times.items()}
        spread = (min(times["ours"]) * 1e3, max(times["ours"]) * 1e3)
        tiers = (C.c_int64 * 4)()
        must(lib.repdl_context_statistics(ctx, tiers))
        if cuda:
            torch.cuda.synchronize()
        differ = int((out.view(torch.int64) != theirs.view(torch.int64)).sum())
        bytes_ = 8 * (sum(t.numel() for t in ins) + out.numel())
        rate, copy, peers = bytes_ / t["ours"], 16 * n / t["copy"], bytes_ / t["torch"]
        print(f"{name:24} {t['ours']*1e3:8.3f} {t['copy']*1e3:8.3f} {rate*1e-9:8.0f} {copy*1e-9:9.0f} {rate/copy:6.3f} {need or '':>6} {t['torch']*1e3:8.3f} "
              f"{peers/copy:7.3f} {t['torch']/t['ours']:6.3f} {tiers[3]:9} {differ:17}   ours {spread[0]:.3f} to {spread[1]:.3f} ms, tiers so far {list(tiers)}", flush=True)
    except Exception as e:
        print(name, "FAILED", e, flush=True)
