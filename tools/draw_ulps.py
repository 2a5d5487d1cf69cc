#!/usr/bin/env python3
"""Measures and draws the errors of functions of one f32 variable, in units in the last place: librepdl's and other libraries'.

    tools/draw_ulps.py [--repdl PROGRAM] [--out FILE] [--bins N] [--inputs N] [FUNCTION...]

FUNCTION: exp, log, tanh, sin, gelu; all of them, where there is none. Libraries: glibc, its vector functions (libmvec), NumPy,
PyTorch and librepdl, the Python package or the `repdl` program; what is missing is said. For gelu, x Phi(x), which glibc and
libmvec lack, theirs is 0.5f * x * (1.0f + erff(x * 0.70710678f)).

Inputs: each function's interval is cut into N bins (256) with equally many f32 numbers, and each bin into as many pieces as it
has inputs (4096), of which each gives one. Exact values: in binary128, by GCC's libquadmath (draw_ulps.c). Prints a table and
writes the picture, docs/ulps.svg. Status 1 when a result of librepdl is not the correctly rounded one.
"""
import argparse
import array
import ctypes
import importlib
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

from bench_table import COLOURS, aligned, three_digits

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of each function: its number in draw_ulps.c, and intervals of inputs: between results that are constant, or close to x.
FUNCTIONS = {"exp": (0, [(-104.0, -(2.0**-24)), (2.0**-24, 88.7)]), "log": (1, [(2.0**-149, 2.0**127)]),
             "tanh": (2, [(2.0**-13, 9.1)]), "sin": (3, [(2.0**-12, 2.0**64)]), "gelu": (4, [(-14.0, -(2.0**-24)), (2.0**-24, 6.0)])}
OURS = "librepdl"


def fail(message):
    sys.exit(f"draw_ulps.py: {message}")


def compiled(directory):
    """draw_ulps.c as a shared library."""
    source, out = pathlib.Path(__file__).with_name("draw_ulps.c"), directory / "draw_ulps.so"
    compiler = os.environ.get("CC", "gcc")  # libquadmath is GCC's
    command = [compiler, "-O2", "-march=native", "-ffp-contract=off", "-shared", "-fPIC", "-w", source, "-o", out, "-lquadmath", "-lm", "-ldl"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fail(f"{compiler}: {error.strerror}; expected GCC")
    if done.returncode != 0:
        fail(f"{compiler}: {done.stderr}")
    library = ctypes.CDLL(str(out))
    library.glibc.restype = ctypes.c_char_p
    library.position.restype = ctypes.c_double
    library.errors.restype = ctypes.c_int64
    return library


def address(data):
    return ctypes.c_void_p(data.buffer_info()[0] if isinstance(data, array.array) else ctypes.addressof(data))


# -------------------------------------------------------------------------------------------------------- the libraries

def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def of_numpy_package(package, name):
    """A package's function on an array, or None."""
    numpy, function = imported("numpy"), getattr(package, name, None)
    if numpy is None or function is None:
        return None
    return lambda x: array.array("f", function(numpy.frombuffer(x, numpy.float32)).tobytes())


def of_torch(torch, name):
    function = torch.nn.functional.gelu if name == "gelu" else getattr(torch, name)
    return lambda x: array.array("f", bytes(function(torch.frombuffer(x, dtype=torch.float32)).contiguous().view(torch.uint8).tolist()))


def of_program(program, name):
    """By `repdl eval`, on .npy files."""
    def call(x):
        with tempfile.TemporaryDirectory() as directory:
            header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(x)
            header += " " * (-(len(header) + 11) % 64) + "\n"
            path, out = pathlib.Path(directory, "x.npy"), pathlib.Path(directory, "y.npy")
            path.write_bytes(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + x.tobytes())
            subprocess.run([program, "eval", name, path, "-o", out], check=True)
            return array.array("f", out.read_bytes()[-4 * len(x):])
    known = subprocess.run([program, "info", "--operations"], capture_output=True, text=True, check=True).stdout
    return call if re.search(rf"^{name} ", known, re.M) else None


def of_compiled(function, number):
    """A function of draw_ulps.c; None where it says that the library lacks it."""
    function.restype = ctypes.c_int

    def call(x):
        y = array.array("f", bytes(4 * len(x)))
        return y if function(number, address(x), address(y), ctypes.c_int64(len(x))) != 0 else None
    return call if call(array.array("f", [1.0] * 16)) is not None else None


def contenders(library, program):
    """Name: (function name -> function on an array or None). Says what is missing."""
    found = {f"glibc {library.glibc().decode()}": lambda name: of_compiled(library.with_glibc, FUNCTIONS[name][0]),
             f"libmvec, {library.width()} at once": lambda name: of_compiled(library.with_libmvec, FUNCTIONS[name][0])}
    for title, module, function in (("NumPy", "numpy", of_numpy_package), ("PyTorch", "torch", of_torch)):
        package = imported(module)
        if package is None:
            print(f"{title}: not installed, left out")
        else:
            found[f"{title} {package.__version__}"] = lambda name, package=package, function=function: function(package, name)
    ours = imported("librepdl") if program is None else None
    if ours is not None and imported("numpy") is not None:
        found[OURS] = lambda name: of_numpy_package(ours, name)
    else:
        program = program or shutil.which("repdl")
        if program is None:
            fail("expected the Python package librepdl, or the repdl program (--repdl), found neither")
        found[OURS] = lambda name: of_program(program, name)
    return found


# ------------------------------------------------------------------------------------------------------------ measuring

class Curve:
    """Of a library and a function: in each interval the greatest error of each bin; how many of the inputs were wrong."""

    def __init__(self, name, maker):
        self.name, self.maker = name, maker
        self.bins, self.inputs, self.wrong, self.at = [], 0, 0, 0.0

    def worst(self):
        return max(max(part) for part in self.bins)


def measure(library, found, names, bins, inputs):
    curves = []
    for name in names:
        number, intervals = FUNCTIONS[name]
        functions = {title: function for title, make in found.items() if (function := make(name)) is not None}
        lacking = [title for title in found if title not in functions]
        if lacking:
            print(f"{name}: not in {', '.join(lacking)}")
        curve_of = {title: Curve(name, title) for title in functions}
        for lo, hi in intervals:
            part = bins // len(intervals)
            n = part * inputs
            x = array.array("f", bytes(4 * n))
            library.inputs(ctypes.c_float(lo), ctypes.c_float(hi), ctypes.c_int64(n), address(x))
            exact = ctypes.create_string_buffer(16 * n + 16)
            exact_at = ctypes.c_void_p(ctypes.addressof(exact) + -ctypes.addressof(exact) % 16)
            library.reference(number, address(x), exact_at, ctypes.c_int64(n))
            for title, function in functions.items():
                y, curve = function(x), curve_of[title]
                greatest, where = array.array("d", bytes(8 * part)), ctypes.c_int64()
                wrong = library.errors(exact_at, address(y), ctypes.c_int64(n), ctypes.c_int64(part), address(greatest),
                                       ctypes.byref(where))
                if not curve.bins or max(greatest) > curve.worst():
                    curve.at = x[where.value]
                curve.bins.append(list(greatest))
                curve.inputs, curve.wrong = curve.inputs + n, curve.wrong + wrong
        curves += curve_of.values()
    return curves


def print_table(curves):
    lines = [[c.name, c.maker, three_digits(c.worst()), f"{c.at:.9g}", f"{c.wrong / c.inputs:.3%}" if c.wrong else "none",
              str(c.inputs)] for c in curves]
    print("\n".join(aligned(["function", "library", "max ulp", "at", "not correctly rounded", "inputs"], lines, {2, 3, 4, 5})))


# ------------------------------------------------------------------------------------------------------------ the picture

LOWEST, HIGHEST = 0.4, 8.0  # ulps


def number_text(x):
    e = math.floor(math.log10(abs(x)))
    return f"{x:g}" if -3 <= e <= 3 else f"{'-' if x < 0 else ''}1e{e}"


def ticks(lo, hi):
    """Powers of ten within an interval of one sign, not too many."""
    near, far = sorted((abs(lo), abs(hi)))
    exponents = range(math.ceil(math.log10(near)), math.floor(math.log10(far)) + 1)
    step = max(1, math.ceil(len(exponents) / 9))
    return [math.copysign(10.0**e, lo) for e in exponents if e % step == 0]


def drawing(library, curves, inputs):
    libraries = list(dict.fromkeys(c.maker for c in curves))
    names = list(dict.fromkeys(c.name for c in curves))
    left, width, height, top = 90, 900, 150, 116
    out = []

    def text(x, y, words, size=13, anchor="start", colour="#222", extra=""):
        out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{extra}>{escape(words)}</text>')

    def line(x1, y1, x2, y2, colour, thick=1.0):
        out.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{thick}"/>')

    text(20, 34, "Errors of f32 functions, in units in the last place", 22, extra=' font-weight="bold"')
    text(20, 58, f"The greatest of {inputs} errors in each bin; bins have equally many f32 numbers. At 0.5, and not above, every result "
         "is the correctly rounded one.")
    x = 20
    colour_of = {title: COLOURS[i] for i, title in enumerate(reversed(libraries))}
    for title in libraries:
        line(x, 80, x + 22, 80, colour_of[title], 3)
        text(x + 28, 84.5, title)
        x += 60 + 7.5 * len(title)
    for number, name in enumerate(names):
        y = top + number * (height + 62)
        scale = height / math.log(HIGHEST / LOWEST)

        def up(ulps):
            return y + height - scale * math.log(min(max(ulps, LOWEST), HIGHEST) / LOWEST)
        text(20, y + height / 2, name, 16, extra=' font-weight="bold"')
        for ulps in (0.5, 1, 2, 4, 8):
            line(left, up(ulps), left + width, up(ulps), "#bbb" if ulps == 0.5 else "#e4e4e4")
            text(left - 8, up(ulps) + 4.5, f"{ulps:g}" if ulps < HIGHEST else "8 or more", 12, "end", "#555")
        intervals = FUNCTIONS[name][1]
        for k, (lo, hi) in enumerate(intervals):
            begin, span = left + k * width / len(intervals), width / len(intervals)
            if k > 0:
                line(begin, y, begin, y + height, "#888")
            for tick in ticks(lo, hi):
                at = begin + span * library.position(ctypes.c_float(lo), ctypes.c_float(hi), ctypes.c_float(tick))
                line(at, y + height, at, y + height + 5, "#555")
                if begin + 14 < at < begin + span - 14:
                    text(at, y + height + 19, number_text(tick), 12, "middle", "#555")
            for curve in (c for c in curves if c.name == name):
                bins = curve.bins[k]
                points = " ".join(f"{begin + span * (i + 0.5) / len(bins):.1f},{up(e):.1f}" for i, e in enumerate(bins))
                out.append(f'<polyline points="{points}" fill="none" stroke="{colour_of[curve.maker]}" stroke-width="{2.5 if curve.maker == OURS else 1.5}">'
                           f'<title>{escape(curve.maker)}, {name}: at most {three_digits(curve.worst())}</title></polyline>')
        text(left + width, y + height + 36, "x", 12, "end", "#555")
    bottom = top + len(names) * (height + 62)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {bottom}" width="{left + width + 30}" '
            f'height="{bottom}" font-family="DejaVu Sans, Verdana, sans-serif" role="img">\n<title>Errors of f32 functions in units in '
            f'the last place</title>\n<rect width="100%" height="100%" fill="#fff"/>')
    return "\n".join([head, *out, "</svg>\n"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repdl", metavar="PROGRAM")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/ulps.svg", metavar="FILE")
    parser.add_argument("--bins", type=int, default=256)
    parser.add_argument("--inputs", type=int, default=4096)
    parser.add_argument("function", nargs="*", metavar="FUNCTION")
    args = parser.parse_intermixed_args()
    names = args.function or list(FUNCTIONS)
    if unknown := set(names) - set(FUNCTIONS):
        parser.error(f"expected functions among {', '.join(FUNCTIONS)}, got {', '.join(sorted(unknown))}")
    if args.bins < 2 or args.bins % 2 != 0 or args.inputs < 16 or args.inputs % 16 != 0:
        parser.error("expected an even number of bins, and a multiple of 16 for --inputs")
    with tempfile.TemporaryDirectory() as directory:
        library = compiled(pathlib.Path(directory))
        curves = measure(library, contenders(library, args.repdl), names, args.bins, args.inputs)
        print_table(curves)
        args.out.write_text(drawing(library, curves, args.inputs))
    print(f"drawing: {args.out}")
    if wrong := [c.name for c in curves if c.maker == OURS and c.wrong > 0]:
        fail(f"librepdl: not correctly rounded: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
