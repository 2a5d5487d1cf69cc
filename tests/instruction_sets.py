#!/usr/bin/env python3
"""Forces every instruction set that this CPU has, and asserts that the forced one ran.

    tests/instruction_sets.py REPDL [COMMAND...]

For each set that /proc/cpuinfo promises: `REPDL_ISA=set repdl info` must say that it is active, and the command, given,
must succeed under it. A set that the CPU has and the build does not offer is a failure; one that the CPU lacks must be
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


def main():
    repdl, command = sys.argv[1], sys.argv[2:]
    flags = cpu_flags()
    failed = []
    for name, wanted in sets.items():
        missing = [f for f in wanted if f not in flags]
        environment = dict(os.environ, REPDL_ISA=name)
        info = subprocess.run([repdl, "info"], env=environment, capture_output=True, text=True)
        if missing:
            refused = info.returncode != 0 and name in info.stderr
            print(f"{name}: lacking in this CPU ({' '.join(missing)}), refused: {'yes' if refused else 'NO'}")
            if not refused:
                failed.append(name)
            continue
        active = re.search(rf"^isa {name}\s+yes, active$", info.stdout, re.M) is not None
        status = 0
        if active and command:
            sys.stdout.flush()
            status = subprocess.run(command, env=environment).returncode
        print(f"{name}: in this CPU, forced, active: {'yes' if active else 'NO'}"
              + (f", {' '.join(command)}: {'ok' if status == 0 else f'status {status}'}" if command else ""))
        if not active or status != 0:
            print(info.stdout + info.stderr)
            failed.append(name)
    other = subprocess.run([repdl, "info"], env=dict(os.environ, REPDL_ISA="no_such_set"), capture_output=True, text=True)
    if other.returncode == 0 or "no_such_set" not in other.stderr:
        print("an unknown instruction set was not refused")
        failed.append("unknown")
    if failed:
        sys.exit(f"failed: {' '.join(failed)}")


main()
