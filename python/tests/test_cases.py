"""Every published case of every operation, called by its public function: the digests of `repdl verify`. With REPDL_CASES_EVERY=N every
N-th of each operation: sampling their inputs takes most of the time."""

import collections
import hashlib
import inspect
import json
import math
import os
import subprocess

import pytest

import librepdl
from registry import REPDL, ROWS

SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i64": 8, "i32": 4, "bool": 1, "f8_e4m3fn": 1, "f8_e5m2": 1}
RENAMED = {"keepdim": "keepdims"}
NUMPYS = {"linspace": {"end": "stop", "count": "num"}}


def cases(op):
    """(its line, the inputs' bytes), ..."""
    stream = subprocess.run([*REPDL, "cases", "--every", os.environ.get("REPDL_CASES_EVERY", "1"), op], check=True, capture_output=True).stdout
    at = 0
    while at < len(stream):
        end = stream.index(b"\n", at)
        case, at = json.loads(stream[at:end]), end + 1
        data = []
        for given in case["inputs"]:
            size = 0 if given is None else SIZES[given["type"]]
            for n in [] if given is None else given["shape"]:
                size *= n
            data.append(stream[at : at + size])
            at += size
        yield case, data


def digest(header, outputs):
    """docs/contract.md, section 7: of the header, and of each piece of 2^20 elements."""
    h = hashlib.sha256(header.encode())
    for data, size in outputs:
        piece = size << 20
        for at in range(0, len(data), piece):
            h.update(hashlib.sha256(data[at : at + piece]).digest())
    return h.hexdigest()


def grouped(library, row, arrays, options, type):
    """An optimiser: the operands come tensor by tensor, and the function takes a list of each."""
    names = [i["name"] for i in row["inputs"] if not i["optional"]]
    optional = [i["name"] for i in row["inputs"] if i["optional"]]
    first_step = bool(optional) and any(a is None for a in arrays)
    if optional and options.get("momentum"):
        names += optional
    if first_step and 0 < sum(a is None for a in arrays) < len(arrays) // len(names):  # the first step of some tensors: each alone
        each = [arrays[i : i + len(names)] for i in range(0, len(arrays), len(names))]
        return [x for one in each for x in grouped(library, row, one, options, type)]
    lists = {name: arrays[i :: len(names)] for i, name in enumerate(names)}
    if first_step:
        state = "f64" if type == "f64" else "f32"
        for name in optional:
            if name in lists:  # written and not read
                lists[name] = [library.array(b"\x7f" * SIZES[state] * math.prod(p.shape), state, p.shape) for p in lists["param"]]
    once = getattr(librepdl, row["name"])(**lists, **options, **({"first_step": first_step} if optional else {}))
    outputs = [o["name"] for o in row["outputs"] if o["name"] in lists]
    updated = [lists[name][t] for t in range(len(lists[names[0]])) for name in outputs]
    return updated if once is None else [*updated, once]


def call(library, row, arrays, attributes, type):
    real = {a["name"] for a in row["attributes"] if a["kind"] == "real"}
    renamed = RENAMED | NUMPYS.get(row["name"], {})
    options = {renamed.get(k, k): float(v) if k in real else v for k, v in attributes.items()}  # "nan" and "inf" are texts
    if row["family"] == "optimizer":
        return grouped(library, row, arrays, options, type)
    if not row["inputs"]:  # an array of the library
        options["like"] = library.array(b"\0\0\0\0", "f32", (1,))
    if "stream" in options and hasattr(librepdl.random.Generator, row["name"]):  # attention draws by its own options
        generator = librepdl.random.Generator(options.pop("seed") % 2**64, options.pop("stream") % 2**64)
        return [getattr(generator, row["name"])(*arrays, **options)]
    function = getattr(librepdl, row["name"])
    inputs = len(row["inputs"])
    if len(row["outputs"]) > 1:
        given = dict(zip([i["name"] for i in row["inputs"]], arrays))
        options |= {p: True for p in inspect.signature(function).parameters if p in ("statistics", "lse") and p not in given}
        return function(**given, **options)
    if all(p.kind is not inspect.Parameter.POSITIONAL_ONLY for p in inspect.signature(function).parameters.values()):
        return [function(**dict(zip([i["name"] for i in row["inputs"]], arrays)), **options)]
    return [function(*arrays[:inputs], **options)]


@pytest.fixture(scope="module", params=list(ROWS))
def published(request):
    """An operation's row, and its cases; these, which take longer to make than to compute, once for all libraries."""
    return ROWS[request.param], list(cases(request.param))


def test_published_cases(library, published):
    row, of_row = published
    counted = collections.Counter()
    for case, data in of_row:
        types = [given["type"] for given in case["inputs"] if given is not None]
        if not set(types) <= set(library.types) or len(case["inputs"]) and max((len(g["shape"]) for g in case["inputs"] if g), default=0) > 8:
            counted["left out"] += 1
            continue
        arrays = [None if given is None else library.array(d, given["type"], given["shape"])
                  for given, d in zip(case["inputs"], data)]
        outputs = [library.bytes(x) for x in call(library, row, arrays, case["attributes"], types[0] if types else None)]
        of = case["header"].split("|")[2].split(",")[len(case["inputs"]) :]
        assert digest(case["header"], [(d, SIZES[t]) for d, t in zip(outputs, of)]) == case["digest"], case
        counted["equal"] += 1
    assert counted["equal"] > 0
    assert counted["left out"] == 0 or "bf16" not in library.types
