#!/usr/bin/env python3
"""Failure injection: shows that the checks can fail.

    tests/corrupt.py WORK_DIR [--jobs N] [--each] [OPTION...]

--each: a build for each change, else one for each group of changes that have no operation in common. OPTION: of cmake, besides those
of the preset cpu; with the same ones as another build's, a compiler cache has what is unchanged.
In a copy of the tree: one digit of a committed digest, a line of digests left out, the last bit of a constant of sin and cos,
the error bounds of sums, also of binary64, of products and convolutions, of averages, of optimiser steps, of the softmax family, of norms
and of their gradients, of sums to places, of attention, negative strides. Each must make `repdl verify` fail and name what is wrong; undone, it must pass again.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent


def flip_digit(pattern):
    """The last hexadecimal digit of the first line that matches becomes another one."""
    def change(text):
        line = re.search(pattern, text, re.M).group(0)
        return text.replace(line, line[:-1] + ("0" if line[-1] != "0" else "1"), 1)
    return change


def add_ulp(name):
    """The last bit of a hexadecimal binary64 constant."""
    def change(text):
        found = re.search(rf"\b{name} = (-?)0x1\.([0-9a-f]*)p([-+0-9]+)", text)
        sign, digits, exponent = found.groups()
        fraction = int(digits.ljust(13, "0"), 16) + 1
        return text.replace(found.group(0), f"{name} = {sign}0x1.{fraction:013x}p{exponent}", 1)
    return change


def replace(old, new):
    def change(text):
        assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
        return text.replace(old, new)
    return change


def element_of(*ops):
    """verify's report of a wrong element, or the self-test's."""
    names = "|".join(ops)
    return rf"MISMATCH ({names}) (.|\n)*element \d+ of \d+(.|\n)*expected: |self-test: \w+: ({names})\(.*expected .*got "


# what, file, change, [(verify's options, the operations, what the report must name), ...]
digest_changes = [
    ("a digit of exp's digest of a case", "docs/digests/cases/exp.txt", flip_digit(r"^exp bits=1 .*$"),
     [(["--quick"], ["exp"], r"case: exp(.|\n)*the committed digest is wrong")]),
    ("a digit of exp's digest of a chunk", "docs/digests/exp.f32.txt", flip_digit(r"^chunk 00 .*$"),
     [([], ["exp"], r"exp\.f32\.txt\nchunk 00(.|\n)*the committed digest is wrong")]),
    ("a line of the digests left out", "docs/digests/cases/dot.txt", lambda t: t.split("\n", 1)[1],
     [(["--quick"], ["dot"],
       r"MISMATCH .*cases/dot\.txt: expected to begin with the 67 lines that release 0\.1\.1 published")]),
]


def quick(*ops):
    """One call of verify for each operation."""
    return [(["--quick", "--part", "cases"], [op], element_of(op)) for op in ops]


# In groups: no change of a group touches what another's operations are made of. A wrong function or product fails the self-test of every
# context; sums of losses have the bound of sums.
source_changes = [
    [
        ("one ulp of the pi of sin and cos", "librepdl/ops/elementwise/circular.hpp", add_ulp("pi_hi"), [([], ["sin"], element_of("sin", "cos"))]),
    ],
    [
        ("the error bound of products is zero", "backends/cpu/product/gemm_engines.hpp",
         replace("static_cast<double>(height + 4) * 0x1p-53;", "0.0;"), quick("matmul")),
    ],
    [
        ("the error bound of averages is zero", "librepdl/num/sums.hpp",
         replace("return error == 0 ? 0.0 : 2 * error + 0x1p-52 * magnitude_of(hi);", "return 0.0 * magnitude_of(hi);"),
         quick("avg_pool2d", "avg_pool2d_backward")),
        ("the error bound of optimiser steps is zero", "librepdl/ops/steps/step_adamw.hpp",
         replace("test<T>(s.value, 0x1p-49 * s.magnitude + force);", "test<T>(s.value, 0.0 * s.magnitude + force);"),
         quick("adamw")),
        ("a factor of clipping at a step of results counts as beside it", "librepdl/ops/steps/clip.hpp",
         replace(">= static_cast<std::int64_t>(2 * q)", ">= static_cast<std::int64_t>(0 * q)"), quick("clip_grad_norm")),
        ("clipped numbers of binary64 beside a step are on its other side", "librepdl/ops/steps/clip.hpp",
         replace("value = side < 0 ||", "value = side > 0 ||"), quick("clip_grad_norm")),
        ("negative strides of elementwise operands are 0", "librepdl/plan/checks.cpp",
         replace("1 ? 0 : v.strides()[i - lead]);", "1 ? 0 : std::max<std::int64_t>(0, v.strides()[i - lead]));"),
         [(["--quick", "--part", "layouts"], ["relu"],
          r"MISMATCH relu, .*operands in other layouts\n(.|\n)*elements differ; first element \d+")]),
        ("the error bound of sums is zero", "librepdl/num/sums.hpp",
         replace("return (static_cast<double>(leaf) * (1 + 0x1p-6) + 3 * h * h * 0x1p-53) * 0x1p-53 * magnitude;",
                 "return 0.0 * static_cast<double>(leaf) * h * magnitude;"),
         [(["--quick"], ["sum", "mean", "dot"], element_of("sum", "mean", "dot"))]),
        ("the error bound of the softmax family is zero", "librepdl/ops/rows/softmax.hpp",
         replace("E::gap)) * 0x1p-53,\n          (sum + (E::logarithm + E::ends)) * 0x1p-53,", "E::gap)) * 0.0, 0.0 * (sum + (E::logarithm + E::ends)),"),
         [(["--quick"], ["softmax", "log_softmax", "logsumexp", "cross_entropy"],
          element_of("softmax", "log_softmax", "logsumexp", "cross_entropy"))]),
        ("the error bound of cross_entropy with weights is zero", "librepdl/ops/rows/cross_entropy.hpp",
         replace("r.row.sum * (r.log.slack + tiny) + r.bound * (gap + log)", "0.0 * (r.row.sum + tiny)"),
         quick("cross_entropy_probabilities")),
        ("the error bound of norms is zero", "librepdl/ops/rows/norm.hpp",
         lambda t: replace("return {1.0 - e, 1.0 + e, (", "return {1.0 - 0.0 * e, 1.0 + 0.0 * e, 0.0 * (")(
             replace("M::muladd(magnitude_of(x[1]), of_z, M::muladd(magnitude_of(y), M::all(0x1p-51), r.least))", "0.0 * of_z")(t)),
         quick("layer_norm", "rms_norm")),
        ("the error bound of norms' gradients to x is zero", "librepdl/ops/rows/norm_backward.hpp",
         replace("const R f = 0x1.2p-51 * magnitude + M::muladd(", "const R f = 0.0 * magnitude + 0.0 * M::muladd("),
         quick("layer_norm_backward", "rms_norm_backward")),
        ("the error bound of norms' gradients to the weight is zero", "librepdl/ops/rows/norm_backward.hpp",
         replace("s.error(c.bounds.sum * (1 + 0x1p-10)) + 0x1p-51 * magnitude_of(value)", "0.0 * s.error(c.bounds.sum)"),
         quick("layer_norm_weight_backward", "rms_norm_weight_backward")),
        ("the error bound of sums to places is zero", "librepdl/ops/sums/scatter.hpp",
         replace("magnitude_of(f.alpha) * s.bound(height) * (1 + 0x1p-50)", "0.0 * s.bound(height)"), quick("index_add")),
        ("the error bound of attention's gradients is zero", "backends/cpu/attention/attention_backward_kernels.cpp",
         replace("bound * num::magnitude_of(factor) * (1 + 0x1p-20)", "0.0 * bound + 0x1p-800"), quick("attention_backward")),
        ("the error bound of attention is zero", "backends/cpu/attention/attention_kernels.cpp",
         replace("(s.error / s.sum + count) * (1 + 0x1p-20)", "0.0 * count"), quick("attention")),
    ],
    [
        ("the error bound of sums of losses is zero", "librepdl/ops/losses/losses.hpp",
         replace("rounded_compensated_bound(height, c.magnitude, 4)", "0.0 * rounded_compensated_bound(height, c.magnitude, 4)"),
         quick("mse_loss")),
        ("the error bound of sums of losses of binary64 is zero", "librepdl/ops/losses/losses.hpp",
         replace("wide_compensated_bound(height, c.magnitude, 0) + 2 * c.error", "0.0 * wide_compensated_bound(height, c.magnitude, 0)"),
         quick("mse_loss", "l1_loss")),
        ("the error bound of nll_loss's mean is zero", "librepdl/ops/losses/nll.hpp",
         replace("(p_error + magnitude_of(q) * w_error) / left * (1 + 0x1p-40) + 0x1p-50 * magnitude_of(q)", "0.0 * left"),
         quick("nll_loss")),
        ("the error bound of products with factors is zero", "librepdl/ops/sums/scaled_sum.hpp",
         replace("0x1p-51 * (magnitude_of(v) + m)", "0.0 * m"), quick("matmul")),
        ("the error bound of sums of binary64 is zero", "librepdl/num/dd.hpp",
         replace("return dd_bound(height, magnitude) + (static_cast", "return 0 * dd_bound(height, magnitude) + 0 * (static_cast"),
         quick("sum", "dot")),
        ("the error bound of sums in other formats is zero", "librepdl/ops/sums/other_format.hpp",
         replace("const double e = s.error * (1 + 0x1p-10);", "const double e = 0.0 * s.error;"), quick("sum")),
        ("the error bound of log_softmax of binary64 is zero", "librepdl/ops/rows/softmax_quick.hpp",
         replace("n.log.error * (1 + 0x1p-10) + 0x1p-103 * magnitude_of(v.hi)", "0.0 * magnitude_of(v.hi)"), quick("log_softmax")),
        ("the error bound of norms of binary64 is zero", "librepdl/ops/rows/norm_quick.hpp",
         replace("round_enclosed(v.value, v.error)", "round_enclosed(v.value, 0.0 * v.error)"), quick("layer_norm")),
        ("the error bound of cross_entropy of binary64 is zero", "librepdl/ops/rows/cross_entropy_binary64.hpp",
         replace("round_number<double>(quotient_of_any(add(gaps, product), wide_blended_divisor(o, 1)))",
                 "round_number<double>(wide64{quotient_of_any(add(gaps, product), wide_blended_divisor(o, 1)).value, 0.0})"),
         quick("cross_entropy")),
        ("the error bound of variances of binary64 is zero", "librepdl/ops/sums/spread.hpp",
         replace("* magnitude_of(v.hi)) / degrees.hi", "* magnitude_of(v.hi)) * 0"), quick("var")),
    ],
]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--each", action="store_true")
    args, options = parser.parse_known_args()
    source = args.work.resolve() / "source"
    build = source / "build/cpu"

    # Only what changed is copied, so that a second run builds little.
    keep = source / "docs"
    shutil.rmtree(keep, ignore_errors=True)
    ignored = shutil.ignore_patterns("build", ".git", "__pycache__", ".gpu")

    def copy_if_changed(a, b):
        if not os.path.exists(b) or pathlib.Path(a).read_bytes() != pathlib.Path(b).read_bytes():
            shutil.copyfile(a, b)

    shutil.copytree(root, source, ignore=ignored, copy_function=copy_if_changed, dirs_exist_ok=True)

    def make():
        done = subprocess.run(["cmake", "--build", build, "--parallel", str(args.jobs), "--target", "repdl_cli"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout[-4000:] + done.stderr[-4000:])

    def verify(arguments):
        done = subprocess.run([build / "tools/repdl", "verify", *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    subprocess.run(["cmake", "--preset", "cpu", "-B", build, "-DREPDL_TESTS=OFF", "-DREPDL_INSTRUCTION_SETS=baseline", *options],
                   cwd=source, check=True, stdout=subprocess.DEVNULL)
    make()
    failures = injected = 0
    called = {op for group in [digest_changes, *source_changes] for *_, calls in group for _, ops, _ in calls for op in ops}
    code, report = verify(["--quick", *sorted(called)])
    print(f"nothing changed: status {code}")
    if code != 0:
        sys.exit(report)
    groups = [[change] for change in digest_changes]
    for group in source_changes:
        groups += [[change] for change in group] if args.each else [group]
    for group in groups:
        originals = {}
        try:
            for _, file, change, _ in group:
                text = (source / file).read_text()
                originals.setdefault(file, text)
                changed = change(text)
                assert changed != text, file
                (source / file).write_text(changed)
            make()
            for what, options, ops, wanted in [(what, *call) for what, *_, calls in group for call in calls]:
                arguments = [*options, *ops]
                code, report = verify(arguments)
                caught = code != 0 and re.search(wanted, report) is not None
                injected += 1
                failures += not caught
                print(f"{'caught' if caught else 'NOT CAUGHT'}: {what}: verify {' '.join(arguments)}: status {code}")
                lines = [line for line in report.splitlines() if not line.startswith("not verified here")]
                print("\n".join("    " + line for line in lines[:8]), flush=True)
        finally:
            for file, text in originals.items():
                (source / file).write_text(text)
    make()
    code, report = verify(["--quick", *sorted(called)])
    print(f"everything undone: status {code}")
    failures += code != 0
    print(f"failure injection: {injected} changes, {failures} failures")
    sys.exit(failures != 0)


main()
