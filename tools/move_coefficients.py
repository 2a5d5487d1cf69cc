#!/usr/bin/env python3
"""Moves every coefficient of the functions of one number, and shows that the comparison of all inputs notices it.

    tools/move_coefficients.py [HEADER]... [--samples LOG2]

HEADER: of librepdl/ops/elementwise, such as exp.hpp; all of them when absent (some hours on 2 cores). Each constant of a header, as the
compiler reads it, is multiplied by 1 + 2^-k in a copy of the sources, and the function is compared with the unchanged one, whose
results are certified (docs/certificates), on this machine's best instruction set: on 2^LOG2 inputs (2^24), as CI does for code that
has no certificate, and on all 2^32.

Printed for each: the smallest move of all inputs' comparison, 2^-k, and whether the samples notice a move of 2^-20. The last
coefficients of a polynomial count for so little that no sample shows a move of 2^-20: what they add moves by less than a result's
distance to the nearest midpoint among the sampled ones. All inputs show it, or a larger one. Exit status 1 if some constant can
be moved by 2^8 without a difference: then it has no use, or the comparison has none.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
# The header of a body, the operation by which it is compared; where a header serves several, the one that uses all of it.
functions = {
    "exp.hpp": "exp", "exp2.hpp": "exp2", "expm1.hpp": "expm1", "log.hpp": "log", "logarithm.hpp": "log2 log10 log1p",
    "circular.hpp": "sin cos", "error_function.hpp": "erf erfc", "inverse_error_function.hpp": "erfinv", "gelu.hpp": "gelu gelu_tanh",
    "silu.hpp": "silu",
    "sigmoid.hpp": "sigmoid", "selu.hpp": "selu", "tanhshrink.hpp": "tanhshrink",
}
largest = -8  # a move by 1 + 2^8
literal = re.compile(r"-?0x[01]\.?[0-9a-f]*p[+-]?\d+|-?\d+\.\d{10,}")
flags = ["-std=c++20", "-O3", "-march=native", "-fno-fast-math", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
         "-fopenmp-simd", "-Wno-restrict"]

loop = """
#include <cstdint>
#include "librepdl/ops/elementwise/bodies.hpp"
namespace num = repdl::num;
template <class Op>
void run(std::uint32_t first, std::uint32_t step, std::uint32_t* out, int n) {
  for (int i = 0; i < n; ++i) {
    const float x = num::float_of(first + static_cast<std::uint32_t>(i) * step);
    out[i] = num::bits_of(num::evaluate<Op>(x));
  }
}
extern "C" void SIDE(int op, std::uint32_t first, std::uint32_t step, std::uint32_t* out, int n) {
  switch (op) { CASES }
}
"""
# Inputs are first, first + step, ...: an odd step goes through all patterns in an order that mixes them.
driver = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
extern "C" void original(int, std::uint32_t, std::uint32_t, std::uint32_t*, int);
extern "C" void moved(int, std::uint32_t, std::uint32_t, std::uint32_t*, int);
int main(int, char** v) {  // operations, log2 of the number of inputs; prints the number of inputs done and 1 if one differs
  constexpr int block = 4096;
  static std::uint32_t a[block], b[block];
  const std::uint32_t step = 0x9e3779b1;
  const std::uint64_t count = std::uint64_t{1} << std::atoi(v[2]);
  for (std::uint64_t i = 0; i < count; i += block) {
    for (int op = 0; op < std::atoi(v[1]); ++op) {
      const auto first = static_cast<std::uint32_t>(i) * step;
      original(op, first, step, a, block);
      moved(op, first, step, b, block);
      for (int k = 0; k < block; ++k) {
        if (a[k] != b[k]) return std::puts("differs"), 0;
      }
    }
  }
  std::puts("same");
}
"""


def value_of(text):
    return float.fromhex(text) if "0x" in text else float(text)


def compile_side(folder, sources, side, operations):
    cases = " ".join(f"case {i}: return run<repdl::ops::{op}>(first, step, out, n);" for i, op in enumerate(operations))
    (folder / f"{side}.cpp").write_text(loop.replace("SIDE", side).replace("CASES", cases))
    subprocess.run([os.environ.get("CXX", "g++"), *flags, f"-DREPDL_ISA={side}", f"-I{sources}", f"-I{root}", f"-I{root}/librepdl/include",
                    "-c", f"{side}.cpp", "-o", f"{side}.o"], cwd=folder, check=True)


class Comparison:
    def __init__(self, folder, header, operations):
        self.folder, self.header, self.operations = folder, header, operations
        self.text = (root / "librepdl/ops/elementwise" / header).read_text()
        self.sources = folder / "sources"
        shutil.copytree(root / "librepdl", self.sources / "librepdl", dirs_exist_ok=True)
        compile_side(folder, root, "original", operations)
        (folder / "driver.cpp").write_text(driver)
        subprocess.run(["g++", "-O2", "-c", "driver.cpp"], cwd=folder, check=True)

    def constants(self):
        code = re.sub(r"//.*", lambda m: " " * len(m.group()), self.text)
        return [m for m in literal.finditer(code) if value_of(m.group()) not in (0, 1) and self.is_coefficient(code, m)]

    @staticmethod
    def is_coefficient(code, m):
        """Powers of two are limits and shifts, whose places are chosen with room."""
        return abs(value_of(m.group())).hex().split("p")[0] != "0x1.0000000000000"

    def differs(self, m, power, log2_count):
        value = value_of(m.group())
        text = self.text[:m.start()] + (value * (1 + 2.0**-power)).hex() + self.text[m.end():]
        (self.sources / "librepdl/ops/elementwise" / self.header).write_text(text)
        compile_side(self.folder, self.sources, "moved", self.operations)
        subprocess.run(["g++", "original.o", "moved.o", "driver.o", "-o", "compare"], cwd=self.folder, check=True)
        out = subprocess.run(["./compare", str(len(self.operations)), str(log2_count)], cwd=self.folder, check=True,
                             capture_output=True, text=True).stdout
        return out.strip() == "differs"


def examine(comparison, m, log2_samples):
    """The largest k for which a move by 2^-k is noticed by all inputs, None if there is none; whether samples notice 2^-20."""
    sampled = comparison.differs(m, 20, log2_samples)
    low, high = (20, 53) if sampled else (largest - 1, 53)  # noticed at low, if that is not largest - 1, not at high
    while high - low > 1:
        middle = (low + high) // 2
        if comparison.differs(m, middle, 32):
            low = middle
        else:
            high = middle
    return (low if low >= largest else None), sampled


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("headers", nargs="*", metavar="HEADER")
    parser.add_argument("--samples", type=int, default=24, help="log2 of the number of samples")
    args = parser.parse_args()
    unknown = [h for h in args.headers if h not in functions]
    if unknown:
        parser.error(f"HEADER: expected some of {', '.join(functions)}, got {', '.join(unknown)}")
    useless, seen, total = [], 0, 0
    for header in args.headers or functions:
        with tempfile.TemporaryDirectory() as folder:
            comparison = Comparison(pathlib.Path(folder), header, functions[header].split())
            constants = comparison.constants()
            print(f"{header}: {len(constants)} constants, by {functions[header]}", flush=True)
            for m in constants:
                line = comparison.text.count("\n", 0, m.start()) + 1
                power, sampled = examine(comparison, m, args.samples)
                total += 1
                seen += sampled
                if power is None:
                    useless.append(f"{header}:{line}: {m.group()}")
                print(f"  {header}:{line}: {m.group():26} all inputs notice {f'2^{-power}' if power is not None else 'no move'}; "
                      f"2^{args.samples} samples {'notice' if sampled else 'do not notice'} 2^-20", flush=True)
    print(f"{total} constants; a move of 2^-20 is seen by the samples for {seen}; without any effect: {', '.join(useless) or 'none'}")
    sys.exit(bool(useless))


main()
