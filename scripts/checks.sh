#!/usr/bin/env bash
# Checks that take longer than ./scripts/test.sh: scripts/checks.sh [threads|valgrind|coverage]...
# What they found is kept in docs/results/checks.csv, from which scripts/reliability.py writes its page.
set -euo pipefail
cd "$(dirname "$0")/.."

kept=docs/results/checks.csv
need() { command -v "$1" > /dev/null || { echo "$1 is needed: apt-get install $2" >&2; exit 1; }; }
keep() {  # check, what ran, what was found
  touch "$kept"
  { echo "check,ran,found"; grep -v -e '^check,' -e "^$1," "$kept" || true; echo "$1,$2,$3"; } > "$kept.new"
  mv "$kept.new" "$kept"
  tail -n 1 "$kept"
}
passed() { sed -n 's/^100% tests passed, 0 tests failed out of \([0-9]*\)/\1/p' "$1"; }

# Eight threads whatever the machine has. Archer tells the sanitizer where OpenMP's threads meet; what OpenBLAS and the
# OpenMP library do among themselves is theirs.
threads() {
  need clang++ "clang libomp-dev"
  ./scripts/build.sh tsan unit_tests property_tests torture
  local log=build/tsan/threads.log
  OMP_NUM_THREADS=8 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
    OMP_TOOL_LIBRARIES=$(llvm-config --libdir)/libarcher.so \
    ctest --preset tsan -L 'unit|property' --timeout 3000 | tee "$log"
  keep threads "$(passed "$log") tests under the thread sanitizer with 8 threads" "no data race"
}

valgrind_memcheck() {
  need valgrind valgrind
  local parsers=(csv npy fcs gating_ml mot json checkpoint)
  ./scripts/build.sh valgrind unit_tests "${parsers[@]/#/replay_}"
  python3 fuzz/make_corpus.py build/valgrind/corpus
  local check=(valgrind --quiet --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite)
  export OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=1 OPENBLAS_CORETYPE=Haswell
  # Whole fits take hours under valgrind; what they are made of is here.
  local runs='*Table*:*Npy*:*Json*:*Fcs*:*Gating*:*Assign*:*Model*:*Problem*:*OutputFile*:*Transport*:*Line*:*Tracking*'
  runs+=':*Scores*:*Motion*:*Ransac*:*Prediction*:*Summary*:*Batch*:*Coordinates*'
  local takes_minutes='*large_files*:*AStartFromTheLast*:*agree_with_motmetrics*:*LargeAgainstMemory*:*intervals_hold_new*'
  "${check[@]}" build/valgrind/unit_tests --gtest_brief=1 \
    --gtest_filter="$runs-$takes_minutes" | tee build/valgrind/unit.log
  for parser in "${parsers[@]}"; do
    "${check[@]}" "build/valgrind/replay_$parser" "build/valgrind/corpus/$parser" 300 1
  done
  keep valgrind "$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests.*/\1/p' build/valgrind/unit.log) tests and seven parsers under memcheck" \
    "no invalid access and no leak"
}

coverage() {
  need gcovr gcovr
  ./scripts/build.sh coverage
  find build/coverage -name '*.gcda' -delete
  ctest --preset coverage -L 'unit|property|cli|fuzz' --parallel "$(nproc)" --timeout 3000 > build/coverage/tests.log
  gcovr --root . --filter src/ --filter include/ --filter apps/ --exclude-unreachable-branches \
    --html-details build/coverage/coverage.html --txt build/coverage/coverage.txt --json-summary build/coverage/summary.json build/coverage
  keep coverage "$(passed build/coverage/tests.log) tests of library and program" \
    "$(python3 -c "import json; s = json.load(open('build/coverage/summary.json')); print(f\"{s['line_percent']} % of {s['line_total']} lines run\")")"
}

if [ $# -eq 0 ]; then set -- threads valgrind coverage; fi
for check in "$@"; do
  case $check in
    threads | coverage) "$check" ;;
    valgrind) valgrind_memcheck ;;
    *) echo "there is no check \"$check\"; threads, valgrind or coverage were expected" >&2; exit 2 ;;
  esac
done
