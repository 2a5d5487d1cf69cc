"""What the tests of consumers share: calling programs, and counting what is wrong."""
import subprocess
import sys

count = 0
failures = []


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nstatus {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def check(condition, text):
    global count
    count += 1
    if not condition:
        failures.append(text)
        print(f"FAILED: {text}")
