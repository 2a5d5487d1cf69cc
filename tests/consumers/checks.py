"""What the tests of consumers share: calling programs, and counting what is wrong."""
import os
import subprocess
import sys

count = 0
failures = []


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nstatus {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def pkg_config(prefix):
    """The folder of librepdl.pc, and the flags to compile and link with."""
    folder = next(prefix.rglob("librepdl.pc")).parent
    return folder, call("pkg-config", "--cflags", "--libs", "librepdl", env=dict(os.environ, PKG_CONFIG_PATH=str(folder))).split()


def check(condition, text):
    global count
    count += 1
    if not condition:
        failures.append(text)
        print(f"FAILED: {text}")
