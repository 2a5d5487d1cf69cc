#!/usr/bin/env bash
# Checks a wheel that tools/wheel.sh built, where there is no compiler.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tools/check_wheel.sh WHEEL [PYTORCH-VERSION...]

Installs the wheel into an empty environment of python3 and runs it: what it says of itself, and a part of its verification.
For each version of PyTorch: its build for the CPU, the library that the wheel brings for it, without a compiler, and the
published fingerprint of a training. REPDL_TORCH_INDEX: where PyTorch's builds for the CPU are
(default: https://download.pytorch.org/whl/cpu).
EOF
}

say() { printf '== %s\n' "$*"; }
die() { printf 'tools/check_wheel.sh: %s\n' "$*" >&2; exit 1; }
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit
fi
if (($# == 0)) || [[ $1 != *.whl ]]; then
  usage >&2
  exit 2
fi
[[ -e $1 ]] || die "no wheel $1"
wheel=$(realpath "$1")
shift
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
index=${REPDL_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"  # where no other librepdl lies
unset PYTHONPATH

# installed DIR: a new environment with the wheel in it.
installed() {
  python3 -m venv "$1"
  "$1/bin/pip" install --quiet "$wheel"
}

say "the package"
installed plain
plain/bin/python -c 'import librepdl; print(librepdl.__version__, librepdl.info())'
plain/bin/python -m librepdl verify --quick exp matmul

# Of examples/pytorch/lenet.py.
# shellcheck disable=SC2016
fingerprint=$(grep -oP '^\| PyTorch 2\.13, EPYC, 1 thread \|.*`\K[0-9a-f]{8}(?=` \|$)' "$root/docs/pytorch.md") ||
  die "docs/pytorch.md has no row with lenet.py's published fingerprint"

for version; do
  say "PyTorch $version"
  env=$work/torch-$version
  installed "$env"
  "$env/bin/pip" install --quiet --index-url "$index" "torch==$version"
  without_compiler=(env -u CXX PATH="$env/bin" LIBREPDL_CACHE=/nowhere)
  library=$("${without_compiler[@]}" python -m librepdl.torch build)
  [[ $library == "$env"/*/librepdl/torch/prebuilt/* ]] || die "expected the library that came with the wheel, got $library"
  found=$("${without_compiler[@]}" python "$root/examples/pytorch/lenet.py" --reproducible | grep '^fingerprint')
  say "$found"
  [[ $found == *" $fingerprint"* ]] || die "lenet.py: expected the published fingerprint, $fingerprint"
done
say "passed"
