#!/usr/bin/env python3
"""The test of tools/machine_code.py and tools/certificates.py: what changes the hash of a loop, what does not, and what is refused;
which builds a certificate proves; which operations need one.

Small objects of the compiler here, named as those of a build.
"""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import certificates
import compare_ptx
import machine_code

source = r"""
#ifndef COEFFICIENT
#define COEFFICIENT 0x1.5555555555555p-3
#endif
#ifndef TERM
#define TERM x + COEFFICIENT
#endif
#ifndef ENTRY
#define ENTRY 3
#endif
#ifndef FACTOR
#define FACTOR 1.25
#endif
namespace repdl::ops { struct exp; struct log; }
namespace repdl::cpu::avx2 {
extern double variable;
double elsewhere(double x);
inline __attribute__((noinline)) double shared(double x) { return x * 0.75; }
namespace {
const double entries[4] = {1, 2, ENTRY, 5};
const double before[4] = {7, 7.5, 8, 11};
__attribute__((noinline)) double callee(double x) { return x < 0 ? x * FACTOR : x / 3; }
template <class Op, class T, class... Options>
void loop(const void* const* in, void* out, long n, const double*, bool*);
#ifdef UNRELATED
template <>
void loop<ops::log, float>(const void* const* in, void* out, long n, const double*, bool*) {
  const float* from = static_cast<const float*>(in[0]);
  for (long i = 0; i < n; ++i) {
    const double x = from[i];
    static_cast<float*>(out)[i] = x * x * 0.1 + before[int(x) & 3] + (x > 1 ? x * COEFFICIENT : callee(x) * 17);
  }
}
#endif
template <>
void loop<ops::exp, float>(const void* const* in, void* out, long n, const double*, bool*) {
  const float* from = static_cast<const float*>(in[0]);
  float* to = static_cast<float*>(out);
  for (long i = 0; i < n; ++i) {
    const double x = from[i];
    to[i] = x * x * (TERM) * 0.1;
  }
  for (long i = 0; i < n; ++i) to[i] = to[i] * entries[int(from[i]) & 3] + callee(from[i]);
}
}
using pointer = void (*)(const void* const*, void*, long, const double*, bool*);
extern const pointer map_0_table[];
const pointer map_0_table[] = {
#ifdef UNRELATED
  loop<ops::log, float>,
#endif
  loop<ops::exp, float>};
}
"""
options = ["-std=c++20", "-O3", "-march=x86-64-v3", "-fPIC", "-ffp-contract=off", "-fno-math-errno"]


def build(folder, *more, code=source):
    name = "backends/CMakeFiles/repdl_kernels_avx2.dir/map/map_0_kernels.cpp.o"
    out = folder / name
    out.parent.mkdir(parents=True, exist_ok=True)
    file = folder / "map_0_kernels.cpp"
    file.write_text(code)
    command = ["g++", *options, *more, "-o", name, "-c", str(file)]
    subprocess.run(command, cwd=folder, check=True, stdin=subprocess.DEVNULL)
    (folder / "compile_commands.json").write_text(
        json.dumps([{"directory": str(folder), "file": str(file), "command": " ".join(["ccache", *command])}]))
    return machine_code.Build(folder)


def hash_of(folder, *more, **where):
    return build(folder, *more, **where).hash("avx2", "exp", [("f32",)])


ptx = """
.version 9.0
.target sm_90
.entry _ZN5repdl4cuda38_GLOBAL__N__0123abcd_6_map_cu_89abcdef10map_packedIfEEvT_Pf(
	.param .u64 _ZN5repdl4cuda38_GLOBAL__N__0123abcd_6_map_cu_89abcdef10map_packedIfEEvT_Pf_param_0,
	.param .u64 _ZN5repdl4cuda38_GLOBAL__N__0123abcd_6_map_cu_89abcdef10map_packedIfEEvT_Pf_param_1
)
{
	ld.param.u64 	%rd1, [_ZN5repdl4cuda38_GLOBAL__N__0123abcd_6_map_cu_89abcdef10map_packedIfEEvT_Pf_param_0];
	@%p1 bra 	$L__BB7_2;
	fma.rn.f64 	%fd1, %fd2, %fd3, 0d3FF0000000000000;
$L__BB7_2:
	ret;
}
"""


def said(command, *args):
    """(the result, what is printed)"""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        return command(*args), out.getvalue()


def check_proofs(expect):
    """Every row of the table is proved by enumeration or otherwise; of one that says neither, nothing is said but an error."""
    table = (certificates.root / "librepdl/ops/elementwise/elementwise.def").read_text()
    rows = [line.split("(")[1].split(",")[0] for line in table.splitlines() if line.startswith("REPDL_ELEMENTWISE(")]
    enumerated, otherwise = certificates.enumerated(), certificates.proved_otherwise()
    expect("rows are neither enumerated nor proved otherwise, or both", sorted(enumerated + otherwise) == sorted(rows))
    expect("exp and erfinv are not enumerated", {"exp", "erfinv"} <= set(enumerated))
    expect("fma and acos are enumerated", {"fma", "acos"} <= set(otherwise))
    exp = next(line for line in table.splitlines() if line.startswith("REPDL_ELEMENTWISE(exp,"))
    for old, new in (("enumerate_narrow", "enumerate_wide"), ("enumerate_narrow, ", ""), ("(exp,", "(exp"), ("e^x", 'e^"x'),
                     ("enumerate_narrow", "multi_limb")):
        row = exp.replace(old, new)
        expect(f"nothing to change: {old}", row != exp)
        try:
            certificates.proofs(row)
            expect(f"not refused: {row}", False)
        except ValueError:
            pass
    return len(rows)


def check_certificates(folder, expect):
    """A certificate of exp on AVX2, as if there were no other operations and engines."""
    certificates.folder = folder / "certificates"
    certificates.folder.mkdir()
    certificates.operations = certificates.enumerated = lambda: ["exp"]
    certificates.required = {"avx2"}
    proved = build(folder / "proved")
    changed = build(folder / "not proved", code=source.replace("0x1.5555555555555p-3", "0x1.5555555555556p-3"))
    compiler = proved.compiler("avx2")

    def certify(compilers, inputs=2**32):
        code = proved.hash("avx2", "exp", [("f32",)])
        (certificates.folder / "exp.txt").write_text("\n".join(certificates.head("exp") + [
            f"run        2000-01-01 | a CPU | {compilers} | avx2={code} | {inputs} inputs, 0 mismatches | repdl verify exp"]) + "\n")

    cases = [  # is it good, what is said, which functions are not proved
        ("the certified build", [compiler], proved, 0, "avx2: the code of this build is certified", ""),
        ("changed code of a compiler with certificates", [compiler], changed, 1, "tools/repdl exp", "exp"),
        ("a compiler without certificates", ["g++ 1.2.3"], changed, 0, f"{compiler} is in no certificate", "exp"),
        ("a run without all inputs", [compiler, 2**31], proved, 1, "does not cover every input", "exp"),
    ]
    for what, certificate, of, status, wanted, unproved in cases:
        certify(*certificate)
        got, text = said(certificates.check, of)
        expect(f"check, {what}: {got}, {text}", got == status and wanted in text)
        _, text = said(certificates.unproved, of)
        expect(f"unproved, {what}: {text}", text.strip() == unproved)
    certificates.required = {"avx2", "cuda"}
    expect("a certificate without CUDA is good", "not proved on cuda" in said(certificates.check, None)[1])
    (certificates.folder / "exp.txt").unlink()
    expect("no certificate is good", said(certificates.check, None)[0] == 1)
    return len(cases) + 2


def main():
    same = {
        "another directory": [],
        "warnings and prefixes of messages": ["-Wall", "-fmacro-prefix-map=/nowhere/=", "-fdiagnostics-color=always"],
    }
    different = {
        "a coefficient": ("0x1.5555555555555p-3", "0x1.5555555555556p-3"),
        "an instruction": ("#define TERM x + COEFFICIENT", "#define TERM x - COEFFICIENT"),
        "an entry of a table": ("#define ENTRY 3", "#define ENTRY 4"),
        "a coefficient of a function that is called": ("#define FACTOR 1.25", "#define FACTOR 1.5"),
    }
    refused = {
        "a function of another object": ("TERM x + COEFFICIENT", "TERM elsewhere(x)", "another object defines"),
        "a function that another object may define": ("TERM x + COEFFICIENT", "TERM shared(x)", "another object may define"),
        "a variable": ("TERM x + COEFFICIENT", "TERM x + variable", "another object defines"),
    }
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        base = hash_of(here / "base")

        def expect(what, condition):
            if not condition:
                sys.exit(f"certificates_test: {what}")

        for i, (what, more) in enumerate(same.items()):
            expect(f"the hash changes with: {what}", hash_of(here / f"a longer name {i}", *more) == base)
        unrelated = "#define UNRELATED\n" + source
        expect("the hash changes with: an unrelated row", hash_of(here / "row", code=unrelated) == base)
        expect("no unrelated row", build(here / "row", code=unrelated).hash("avx2", "log", [("f32",)]) != base)
        for what, (old, new) in different.items():
            expect(f"nothing to change: {what}", source.count(old) == 1)
            expect(f"the hash does not change with: {what}", hash_of(here / "changed", code=source.replace(old, new)) != base)
        expect("the hash does not change with: an option", hash_of(here / "option", "-fno-trapping-math") != base)
        for what, (old, new, wanted) in refused.items():
            expect(f"nothing to change: {what}", source.count(old) == 1)
            try:
                hash_of(here / "refused", code=source.replace(old, new))
                expect(f"not refused: {what}", False)
            except ValueError as error:
                expect(f"refused, but: {error}", wanted in str(error))

        kernels = compare_ptx.kernels_of(ptx)
        expect("one kernel is found", list(kernels) == ["map_packed<float>"])
        moved = ptx.replace("0123abcd", "76543210").replace("6_map_cu", "6_new_cu").replace("BB7", "BB12")
        expect("a kernel's text changes with the file and the labels' numbers", compare_ptx.kernels_of(moved) == kernels)
        for old, new in (("0d3FF0000000000000", "0d3FF0000000000001"), ("fma.rn", "fma.rz"), ("_param_0]", "_param_1]")):
            expect(f"a kernel's text does not change with {new}", compare_ptx.kernels_of(ptx.replace(old, new)) != kernels)
        rows = check_proofs(expect)
        checks = check_certificates(here, expect)
    print(f"certificates_test: {len(same) + 1} changes keep a hash, {len(different) + 1} change it, {len(refused)} are refused; "
          f"{checks} certificates checked; {rows} rows have a proof")


main()
