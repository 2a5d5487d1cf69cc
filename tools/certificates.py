#!/usr/bin/env python3
"""Certificates: which machine code was proved on every input, when and where.

    tools/certificates.py record REPDL [OP...]   runs `REPDL verify OP` for each operation that needs a certificate, or has one, and
                                                 notes the run in docs/certificates/OP.txt; with --cuda on the GPU alone, where
                                                 the CPU's code is certified
    tools/certificates.py check [BUILD_DIR]      fails when the digests have changed since a certificate, or when a certificate
                                                 lacks an engine, where no line `open ENGINE | why` admits that; operations
                                                 whose rows name another proof than enumeration may have none.
                                                 With BUILD_DIR: also when its compiler is one that certificates name, and an
                                                 operation proved by enumeration is not certified for the code of this build
    tools/certificates.py unproved BUILD_DIR     prints the operations whose proof is the enumeration of all inputs and that no
                                                 certificate proves for the code of this build
    tools/certificates.py code BUILD_DIR         prints the hashes of the code: what `record` reads from machine-code.txt beside
                                                 REPDL where that is no build directory (tools/gpu_bundle.sh)
    tools/certificates.py listing BUILD_DIR OP ENGINE    prints what is hashed

A certificate names the code by a hash for each engine (baseline, avx2, avx512, cuda): of the instructions of the operation's loop
in binary32 and every constant that they read, of the compiler and of its options (tools/machine_code.py says how). A line `run`
holds for that code and no other. `repdl verify OP` runs all 2^32 inputs on every instruction set of the CPU, and on the GPU if
there is one, and compares SHA-256 digests of the results with those that the MPFR/GMP reference wrote (docs/digests).
"""
import argparse
import datetime
import hashlib
import pathlib
import re
import subprocess
import sys

import machine_code

root = pathlib.Path(__file__).resolve().parent.parent
folder = root / "docs/certificates"
required = {"baseline", "avx2", "avx512", "cuda"}
inputs_per_chunk = 2**24


def operations():
    """Every operation with committed digests of all inputs."""
    return sorted({p.name.split(".")[0] for p in (root / "docs/digests").glob("*.f32*.txt")})


# The words that rows of elementwise.def say for their proof. Others: one correctly rounded instruction, no rounding, a proof in the body's
# header, or a rounding test that multi-limb numbers stand behind; of `_narrow` ones that test is for binary64.
by_enumeration = {"enumerate", "enumerate_narrow"}
by_other_proofs = {"ieee", "select", "formula", "formula_narrow", "multi_limb"}


def proofs(table=None):
    """{elementwise operation: the word of its row}, of every row."""
    table = table or (root / "librepdl/ops/elementwise/elementwise.def").read_text()
    found = {}
    for row in re.findall(r"^REPDL_ELEMENTWISE\b.*$", table, re.M):
        columns = re.fullmatch(r'REPDL_ELEMENTWISE\((\w+), .*, *(\w+), *\d+, "(?:[^"\\]|\\.)*"\)', row)
        if columns is None or columns.group(2) not in by_enumeration | by_other_proofs:
            raise ValueError(f"elementwise.def: is this row proved by the enumeration of all inputs? {row}")
        found[columns.group(1)] = columns.group(2)
    if not by_enumeration & set(found.values()):
        raise ValueError("elementwise.def: no row is proved by the enumeration of all inputs")
    return found


def enumerated():
    """The elementwise operations whose proof is enumeration."""
    return [op for op, proof in proofs().items() if proof in by_enumeration]


def proved_otherwise():
    """Those whose bits need no enumeration."""
    return [op for op, proof in proofs().items() if proof in by_other_proofs]


def to_record():
    """The operations that need a certificate, or have one."""
    others = proved_otherwise()
    return [op for op in operations() if op not in others or (folder / f"{op}.txt").exists()]


def digest_files(op):
    return sorted((root / "docs/digests").glob(f"{op}.f32*.txt"))


def formats(op):
    """Of the loops that the digests are about: [("f32",)], of conversions [("f32", "f16"), ...]."""
    return [tuple(path.name.split(".")[1:-1]) for path in digest_files(op)]


def head(op):
    lines = [f"operation  {op}",
             "claim      every one of the 2^32 binary32 inputs gives the correctly rounded result"]
    for path in digest_files(op):
        lines.append(f"digests    sha256 {hashlib.sha256(path.read_bytes()).hexdigest()} of {path.relative_to(root)}")
    return lines


class Run:
    """A line `run`: date | machine | compilers | engine=hash ... | inputs | command"""

    def __init__(self, line):
        fields = [f.strip() for f in line.removeprefix("run").split("|")]
        self.line = line
        self.compilers = fields[2].split(", ")
        self.code = dict(re.findall(r"(\w+)=([0-9a-f]{64})\b", fields[3]))
        self.inputs = fields[4]


def read(op):
    """(the lines of the head, the runs) of a certificate"""
    path = folder / f"{op}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return ([x for x in lines if not x.startswith(("run ", "open "))], [Run(x) for x in lines if x.startswith("run ")])


def still_open(op):
    """The lines `open  ENGINE | why`, which admit that an engine is without a run: {engine: line}."""
    path = folder / f"{op}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split()[1]: line for line in lines if line.startswith("open ")}


def covers(op, run):
    return run.inputs == f"{len(run.code) * len(formats(op)) * 2**32} inputs, 0 mismatches"


def good_runs(op):
    """Those of every input that are about the committed digests."""
    top, runs = read(op)
    return [r for r in runs if covers(op, r)] if top == head(op) else []


def certified(op, engine, code):
    return any(run.code.get(engine) == code for run in good_runs(op))


# ------------------------------------------------------------------------------------------------------- code
def code_of(build, ops):
    """{engine: (compiler, {op: hash})}"""
    return {e: (build.compiler(e), {op: build.hash(e, op, formats(op)) for op in ops}) for e in build.engines}


def print_code(build):
    for engine, (compiler, hashes) in code_of(build, to_record()).items():
        for op, code in hashes.items():
            print(f"{engine} | {compiler} | {op} | {code}")


def code_beside(repdl, ops):
    """Like code_of, of the build that made this program."""
    noted = repdl.parent / "machine-code.txt"
    if noted.exists():
        found = {}
        for line in noted.read_text().splitlines():
            engine, compiler, op, code = line.split(" | ")
            found.setdefault(engine, (compiler, {}))[1][op] = code
        return found
    build = machine_code.Build(repdl.parent.parent)
    for engine in build.engines:
        program = next(build.folder.glob("lib*/librepdl_cuda.so"), repdl) if engine == "cuda" else repdl
        late = [o for o in build.objects[engine] if o.stat().st_mtime > program.stat().st_mtime]
        if late:
            raise ValueError(f"{program}: older than {late[0].name}; build first")
    return code_of(build, ops)


# ------------------------------------------------------------------------------------------------------- commands
def command_output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def info_of(repdl):
    info = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in command_output(repdl, "info").splitlines()
                if re.search(r"\s{2,}", line))
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return info, cpu.group(1) if cpu else "unknown CPU"


def engines_of(info):
    found = [key.split()[1] for key, value in info.items() if key.startswith("isa ") and value.startswith("yes")]
    return found + (["cuda"] if "cuda:0" in info else [])


def record(repdl, ops, cuda_alone):
    ops = ops or to_record()
    code = code_beside(repdl, ops)
    info, cpu = info_of(repdl)
    engines = [e for e in engines_of(info) if e == "cuda" or not cuda_alone]
    if not engines:
        sys.exit(f"certificates: {repdl} has no GPU here")
    words = ["--engine", "cuda:0", "--part", "chunks"] if cuda_alone else []
    if unknown := set(engines) - set(code):
        sys.exit(f"certificates: {repdl} runs on {', '.join(sorted(unknown))}, of which there is no code to read")
    where = cpu
    if "cuda" in engines:
        where += f", {info['cuda:0']}"
        capability = command_output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader").split()[0]
        compiled = re.search(r"compute_(\d+)", code["cuda"][0]).group(1)
        if int(capability.replace(".", "")) < int(compiled):
            sys.exit(f"certificates: the GPU, of capability {capability}, does not run the PTX for {compiled}")
    compilers = ", ".join(dict.fromkeys(code[e][0] for e in engines))
    for op in ops:
        print(f"certificates: {op}: all inputs on {', '.join(engines)}", flush=True)
        run = subprocess.run([repdl, "verify", op, *words], capture_output=True, text=True)
        found = re.search(r"^verified: .* (\d+) chunks of 2\^24 inputs, .* 0 mismatches", run.stdout, re.M)
        if run.returncode != 0 or not found or int(found.group(1)) != 256 * len(formats(op)) * len(engines):
            sys.exit(f"certificates: `repdl verify {op}` did not pass on every engine:\n{run.stdout[-2000:]}{run.stderr}")
        hashes = " ".join(f"{e}={code[e][1][op]}" for e in engines)
        new = Run(f"run        {datetime.date.today()} | {where} | {compilers} | {hashes} | "
                  f"{int(found.group(1)) * inputs_per_chunk} inputs, 0 mismatches | {' '.join(['repdl verify', op, *words])}")

        def superseded(engine, old, compilers):
            """Proved again now, or no longer what its compiler makes."""
            if engine not in code or code[engine][0] not in compilers:
                return False
            return engine in new.code or old != code[engine][1][op]

        others = [r for r in good_runs(op) if not all(superseded(e, old, r.compilers) for e, old in r.code.items())]
        folder.mkdir(exist_ok=True)
        opened = [line for engine, line in still_open(op).items() if engine not in new.code]
        (folder / f"{op}.txt").write_text("\n".join(head(op) + opened + [r.line for r in [*others, new]]) + "\n")


def check(build):
    failures, not_run = [], []
    for op in operations():
        top, runs = read(op)
        if not top and op in proved_otherwise():
            not_run.append(op)
            continue
        if top != head(op):
            failures.append(f"{op}: no certificate, or the digests have changed since; run: "
                            f"tools/certificates.py record REPDL {op}")
            continue
        for run in runs:
            if not covers(op, run):
                failures.append(f"{op}: a run does not cover every input: {run.line}")
        if lacking := required - set(still_open(op)) - {engine for run in runs for engine in run.code}:
            failures.append(f"{op}: not proved on {', '.join(sorted(lacking))}")
    bad = len({f.split(":")[0] for f in failures})
    summary = [f"{len(operations()) - bad - len(not_run)} of {len(operations())} are good"]
    if not_run:
        summary.append(f"not run on every input, and not proved by that: {' '.join(not_run)}")
    if build is not None:
        claimed = {compiler for op in operations() for run in good_runs(op) for compiler in run.compilers}
        for engine, (compiler, hashes) in code_of(build, enumerated()).items():
            if compiler not in claimed:
                summary.append(f"{engine}: {compiler} is in no certificate")
                continue
            missing = [op for op, code in hashes.items() if not certified(op, engine, code)]
            if admitted := [op for op in missing if engine in still_open(op)]:
                summary.append(f"{engine}: NOT PROVED yet, as their certificates say: {' '.join(admitted)}")
                missing = [op for op in missing if op not in admitted]
            if missing:
                failures.append(f"{engine}: certificates name {compiler}, but none proves the code of this build of "
                                f"{' '.join(missing)}; run: "
                                f"tools/certificates.py record {build.folder}/tools/repdl {' '.join(missing)}")
            elif not admitted:
                summary.append(f"{engine}: the code of this build is certified")
    for failure in failures:
        print(f"certificates: {failure}", file=sys.stderr)
    print("\n".join(f"certificates: {line}" for line in summary))
    return 1 if failures else 0


def unproved(build):
    code = code_of(build, enumerated())
    print(*[op for op in enumerated()
            if not code or not all(certified(op, engine, hashes[op]) for engine, (_, hashes) in code.items())])
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recorder = commands.add_parser("record")
    recorder.add_argument("repdl", metavar="REPDL", type=pathlib.Path, help="the repdl program")
    recorder.add_argument("ops", metavar="OP", nargs="*")
    recorder.add_argument("--cuda", action="store_true")
    for command in ("check", "unproved", "code", "listing"):
        reader = commands.add_parser(command)
        reader.add_argument("build", metavar="BUILD_DIR", type=pathlib.Path, nargs="?" if command == "check" else None)
    reader.add_argument("op", metavar="OP")
    reader.add_argument("engine", metavar="ENGINE")
    args = parser.parse_args()
    if args.command == "record":
        return record(args.repdl.absolute(), args.ops, args.cuda)
    build = machine_code.Build(args.build) if args.build else None
    if args.command == "check":
        return check(build)
    if args.command == "unproved":
        return unproved(build)
    if args.command == "code":
        return print_code(build)
    for f in formats(args.op):
        print(build.text(args.engine, args.op, f), end="")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"certificates: {error}")
