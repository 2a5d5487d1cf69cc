"""What the tests share: the kinds of arrays that are installed here."""

import numpy
import pytest

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch
except ImportError:
    torch = None

NUMPY_TYPES = {"f16": numpy.float16, "f32": numpy.float32, "f64": numpy.float64, "i64": numpy.int64, "i32": numpy.int32,
               "bool": numpy.bool_}
if ml_dtypes is not None:
    NUMPY_TYPES |= {"bf16": ml_dtypes.bfloat16, "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2}


class NumPy:
    """Arrays of NumPy."""

    name = "numpy"
    types = tuple(NUMPY_TYPES)

    def array(self, data: bytes, type: str, shape):
        return numpy.frombuffer(data, NUMPY_TYPES[type]).reshape(shape).copy()

    def bytes(self, x) -> bytes:
        assert isinstance(x, numpy.ndarray), type(x)
        return numpy.ascontiguousarray(x).tobytes()


class Torch:
    """Tensors of PyTorch on a device."""

    types = ("f16", "bf16", "f32", "f64", "i64", "i32", "bool", "f8_e4m3fn", "f8_e5m2")

    def __init__(self, device: str):
        self.device = device
        self.name = f"torch {device}"
        self.dtypes = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64,
                       "i64": torch.int64, "i32": torch.int32, "bool": torch.bool,
                       "f8_e4m3fn": torch.float8_e4m3fn, "f8_e5m2": torch.float8_e5m2}

    def array(self, data: bytes, type: str, shape):
        if not data:
            return torch.empty(shape, dtype=self.dtypes[type], device=self.device)
        return torch.frombuffer(bytearray(data), dtype=self.dtypes[type]).reshape(shape).to(self.device)

    def bytes(self, x) -> bytes:
        assert isinstance(x, torch.Tensor) and x.device.type == self.device.split(":")[0], x
        x = x.contiguous().cpu()
        return x.reshape(-1).view(torch.uint8).numpy().tobytes() if x.numel() else b""


def libraries():
    found = [NumPy()]
    if torch is not None:
        found.append(Torch("cpu"))
        if torch.cuda.is_available():
            found.append(Torch("cuda"))
    return found


@pytest.fixture(params=libraries(), ids=lambda library: library.name)
def library(request):
    return request.param
