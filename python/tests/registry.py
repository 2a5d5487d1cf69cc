"""The registry of operations, as the program in the package prints it; REPDL names another program."""

import json
import os
import subprocess
import sys

REPDL = [os.environ["REPDL"]] if "REPDL" in os.environ else [sys.executable, "-m", "librepdl"]
ROWS = {row["name"]: row for row in json.loads(subprocess.run([*REPDL, "docs", "--json"], check=True, capture_output=True).stdout)}
