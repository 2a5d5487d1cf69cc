#!/usr/bin/env bash
# Makes a directory to carry to a machine with a GPU, nvcc and python3 but without package registry:
#   bin/      repdl, the tests and the benchmarks, built here with nvcc
#   lib/      the shared libraries that they need and that such a machine may lack
#   source/   this tree: digests for verify, and everything to build again
#   include/  headers of MPFR, GMP, doctest, Google Benchmark and nlohmann-json, to build again
#   run-gpu.sh
# Called by ./run gpu --bundle DIR.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1

PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "gpu --bundle: expected nvcc to build with, found none" >&2; exit 1; }

# The programs look for docs/ below the directory they are started in. Small: device code compressed, and without OpenBLAS
# (35 MB), oneDNN and SLEEF, which only the CPU's benchmarks want.
cmake --preset cuda --log-level=WARNING -B build/bundle -DREPDL_BENCH=ON -DREPDL_DATA_DIR:STRING=. \
  -DCMAKE_INSTALL_LIBDIR=lib '-DCMAKE_BUILD_RPATH=$ORIGIN/../lib' -DCMAKE_CUDA_FLAGS=-Xfatbin=-compress-all -DCBLAS_INCLUDE_DIR=OFF -DONEDNN_INCLUDE_DIR=OFF \
  -DSLEEF_INCLUDE_DIR=OFF
cmake --build build/bundle --parallel "${REPDL_JOBS:-$(nproc)}" --target all repdl_seeded_fault repdl_cuda_pairs

rm -rf "$out"
mkdir -p "$out"/{bin,lib,include,source}
for program in tools/repdl tests/repdl_tests tests/repdl_consumer_program tests/repdl_consumer_expected bench/repdl_bench \
  bench/repdl_cuda_bench bench/repdl_step_bench tests/repdl_seeded_fault tests/repdl_cuda_pairs; do
  strip -o "$out/bin/${program##*/}" "build/bundle/$program"
done
# For tools/certificates.py, which finds no objects there.
python3 tools/certificates.py code build/bundle >"$out/bin/machine-code.txt"
for library in build/bundle/lib/*.so; do
  strip -o "$out/lib/${library##*/}" "$library"
done
# Not the C library and the dynamic linker: those belong to the machine.
ldd "$out"/bin/* | grep -oE '/[^ ]*/lib(mpfr|gmp|gomp|benchmark|stdc\+\+|gcc_s)[^ /]*' | sort -u |
  xargs -I{} cp -L {} "$out/lib/"
for header in mpfr.h gmp.h gmpxx.h doctest benchmark nlohmann; do
  path=$(find /usr/include /usr/local/include -maxdepth 2 -name "$header" -print -quit)
  [[ -z $path ]] || cp -rL "$path" "$out/include/"
done
inside=$(realpath --relative-to=. "$out")  # where DIR is below the root, it does not contain itself
tar -c --exclude=./build --exclude=./.git --exclude=__pycache__ --exclude="./$inside" . | tar -x -C "$out/source"
git rev-parse HEAD >"$out/source/COMMIT" 2>/dev/null || echo unknown >"$out/source/COMMIT"
[[ -z $(git status --porcelain 2>/dev/null) ]] || echo "with uncommitted changes" >>"$out/source/COMMIT"

cat >"$out/run-gpu.sh" <<'EOF'
#!/usr/bin/env bash
# Runs the prebuilt programs on this machine's GPU and writes the record into $OUT, or the current directory.
# Arguments go to source/tools/gpu_record.py: --only tests,verify,environments,demo,bench.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "${OUT:-.}" && pwd)
export LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
cd "$here/source"
exec python3 tools/gpu_record.py --bin "$here/bin" --out "$out" "$@"
EOF
chmod +x "$out/run-gpu.sh"
du -sh "$out" | sed 's/\t.*//; s/^/bundle: /'
