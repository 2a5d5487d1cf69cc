#!/usr/bin/env python3
"""Forces every instruction set that this CPU has, and asserts that the forced one ran.

    tests/instruction_sets.py REPDL [COMMAND...]

For each set that /proc/cpuinfo promises: `REPDL_ISA=set repdl info` must say that it is active, and the command, given,
must succeed under it. The widest is chosen where none is forced: for it the command ran before, without this script. A set that the CPU has and the build does not offer is a failure; one that the CPU lacks must be
refused by name. The set of features is read from the kernel, not from librepdl.
"""
import os
import re
import subprocess
import sys

v3 = "avx avx2 bmi1 bmi2 f16c fma abm movbe sse4_1 sse4_2 ssse3 popcnt cx16 lahf_lm".split()
v4 = v3 + "avx512f avx512bw avx512cd avx512dq avx512vl".split()
sets = {"baseline": [], "avx2": v3, "avx512": v4}


def cpu_flags():
    with open("/proc/cpuinfo") as f:
        return set(re.search(r"^flags\s*:(.*)$", f.read(), re.M).group(1).split())


def active_set(repdl, environment=None):
    """The set that `repdl info` says is active, and all that it says."""
    info = subprocess.run([repdl, "info"], env=environment, capture_output=True, text=True)
    found = re.search(r"^isa (\w+)\s+yes, active$", info.stdout, re.M)
    return found and found.group(1), info.returncode, info.stdout + info.stderr


def main():
    repdl, command = sys.argv[1], sys.argv[2:]
    flags = cpu_flags()
    failed = []
    widest = [name for name, wanted in sets.items() if flags.issuperset(wanted)][-1]
    for name, wanted in sets.items():
        missing = [f for f in wanted if f not in flags]
        environment = dict(os.environ, REPDL_ISA=name)
        active, status, said = active_set(repdl, environment)
        if missing:
            refused = status != 0 and name in said
            print(f"{name}: lacking in this CPU ({' '.join(missing)}), refused: {'yes' if refused else 'NO'}")
            if not refused:
                failed.append(name)
            continue
        good = active == name
        print(f"{name}: in this CPU, forced, active: {'yes' if good else 'NO'}", flush=True)
        if name == widest:
            good = good and active_set(repdl)[0] == name
            print(f"{name}: the set where none is forced: {'yes' if good else 'NO'}")
        elif good and command:
            good = subprocess.run(command, env=environment).returncode == 0
            print(f"{name}: {' '.join(command)}: {'ok' if good else 'FAILED'}")
        if not good:
            print(said)
            failed.append(name)
    active, status, said = active_set(repdl, dict(os.environ, REPDL_ISA="no_such_set"))
    if status == 0 or "no_such_set" not in said:
        print("an unknown instruction set was not refused")
        failed.append("unknown")
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


main()
