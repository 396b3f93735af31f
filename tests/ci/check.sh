#!/usr/bin/env bash
# Finds what a release build does not. .ci/run calls it after the release tests.
#
#   tests/ci/check.sh today          format and tidy, then the check of the day of the year
#   tests/ci/check.sh CHECK...       checks by name: format tidy address thread cuda fuzz slow
#
# PACELINE_CI_BASE is the commit that changes are counted from; by default where this branch left
# origin/main, or 20 commits ago. PACELINE_CI_MINUTES bounds each check (15, tidy 5), PACELINE_CI_UNTIL (in
# seconds since 1970) all of them. A check that runs out of time says so and is no failure: what it found until
# then is.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

minutes=${PACELINE_CI_MINUTES:-15}
until=${PACELINE_CI_UNTIL:-$(($(date +%s) + 86400))}
day=$((10#$(date -u +%j)))
failed=()

say() { printf '\ncheck: %s\n' "$*"; }

# within SECONDS COMMAND...: 0 where the time is over, else the command's own status.
within() {
  local seconds=$1 status
  shift
  timeout --kill-after=10 "$seconds" "$@"
  status=$?
  if ((status == 124 || status == 137)); then
    say "ran out of time after $seconds s: $1"
    return 0
  fi
  return "$status"
}

# The seconds that are left of this check's time and of all checks' time, at least 1. The argument is a part of
# the check's time, in percent.
left() {
  local own=$((minutes * 60 * ${1:-100} / 100 - (SECONDS - begun))) all=$((until - $(date +%s)))
  local least=$((own < all ? own : all))
  echo $((least > 1 ? least : 1))
}

base() {
  local merged
  if [[ -n ${PACELINE_CI_BASE-} ]]; then
    echo "$PACELINE_CI_BASE"
    return
  fi
  merged=$(git merge-base HEAD origin/main 2>/dev/null || true)
  if [[ -n $merged && $merged != $(git rev-parse HEAD) ]]; then
    echo "$merged"
  else
    git rev-parse --verify --quiet HEAD~20 || git rev-list --max-parents=0 HEAD | tail -1
  fi
}

changed() { git diff --name-only --diff-filter=d "$(base)" -- "$@"; }

check_format() {
  local files
  mapfile -t files < <(changed '*.cc' '*.h' '*.cu')
  ((${#files[@]} == 0)) || clang-format --dry-run -Werror "${files[@]}"
}

# Findings on changed lines alone. The compile commands are those of the release build. What clang 14 does
# not compile (GCC 12 has more of C++20) is not looked at, and is no finding.
check_tidy() {
  local found checks='-*,bugprone-*,-bugprone-easily-swappable-parameters,-bugprone-exception-escape'
  checks+=',performance-*,-performance-inefficient-vector-operation'
  found=$(git diff -U0 "$(base)" -- 'models/*.cc' 'simulator/*.cc' 'runtime/*.cc' 'calibration/*.cc' \
      'experiments/*.cc' 'cli/*.cc' |
    within "$(left 33)" clang-tidy-diff-14.py -p1 -path build/release -j2 -quiet \
      -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-unused-command-line-argument \
      -checks="$checks" \
      2>&1)
  if grep -qE 'warning:.*\[(bugprone|performance)-' <<<"$found"; then
    echo "$found"
    return 1
  fi
  grep 'ran out of time' <<<"$found" || true
}

# sanitized PRESET PROGRAM...: one of the programs, another one each time. The order of its tests is drawn
# from the day, so that what does not fit into the time is reached on another one. Optimised a little and
# with lines alone, a program's 300 units compile in seven minutes on two cores.
sanitized() {
  local preset=$1 program path
  shift
  program=${*:$((day / 5 % $# + 1)):1}
  say "$preset: $program"
  cmake --preset "$preset" -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" >/dev/null || return 1
  within "$(left)" ninja -C "build/$preset" "$program" >"build/$preset/check.log" 2>&1 ||
    { tail -40 "build/$preset/check.log"; return 1; }
  path=$(find "build/$preset/tests" -name "$program" -type f)
  [[ -n $path ]] || return 0 # the build ran out of time
  TSAN_OPTIONS="suppressions=$PWD/tests/thread_sanitizer.txt" DNNL_PRIMITIVE_CACHE_CAPACITY=0 OMP_NUM_THREADS=1 \
    within "$(left)" "$path" --gtest_shuffle --gtest_random_seed="$day" --gtest_fail_fast --gtest_brief=1
}

check_address() {
  sanitized asan-ubsan paceline_export_tests paceline_runtime_data_tests paceline_runtime_loop_tests \
    paceline_calibration_tests paceline_runtime_training_tests
}
check_thread() {
  sanitized tsan paceline_runtime_loop_tests paceline_runtime_tensor_tests paceline_runtime_network_tests \
    paceline_runtime_training_tests
}

# The contract tests of CUDA and NCCL on the doubles, where the toolkit is.
check_cuda() {
  [[ -d /usr/local/cuda ]] || { say "no CUDA toolkit is here"; return 0; }
  cmake --preset asan-ubsan-cuda >/dev/null || return 1
  within "$(left)" cmake --build --preset asan-ubsan-cuda >build/asan-ubsan-cuda/check.log 2>&1 ||
    { tail -40 build/asan-ubsan-cuda/check.log; return 1; }
  within "$(left)" ctest --preset asan-ubsan-cuda --stop-on-failure
}

# Ten minutes for all readers together. A new input that breaks one is printed.
check_fuzz() {
  cmake --preset fuzz >/dev/null || return 1
  within "$(left)" cmake --build --preset fuzz >build/fuzz/check.log 2>&1 ||
    { tail -40 build/fuzz/check.log; return 1; }
  local target name seconds targets
  targets=(build/fuzz/tests/fuzz/fuzz_*)
  seconds=$(left)
  seconds=$(((seconds < 600 ? seconds : 600) / ${#targets[@]}))
  for target in "${targets[@]}"; do
    name=${target##*/fuzz_}
    [[ -x $target && -f $target ]] || continue
    "$target" -max_total_time="$seconds" -print_final_stats=0 -verbosity=0 -artifact_prefix=build/fuzz/ \
      "build/fuzz/tests/fuzz/corpus/$name" || return 1
  done
}

# Tests that the default set leaves out, because they take minutes each: one of them in turn.
check_slow() {
  local names
  mapfile -t names < <(comm -23 <(ctest --test-dir build/release -C slow -N | sed -n 's/^ *Test *#[0-9]*: //p' | sort) \
    <(ctest --test-dir build/release -N | sed -n 's/^ *Test *#[0-9]*: //p' | sort))
  ((${#names[@]} > 0)) || { say "no slow test is built"; return 1; }
  local name=${names[day / 5 % ${#names[@]}]}
  say "slow: $name"
  within "$(left)" ctest --test-dir build/release -C slow --output-on-failure -R "^$name\$"
}

checks=("$@")
if [[ ${checks[*]-} == today ]]; then
  rotation=(address thread cuda fuzz slow)
  checks=(format tidy "${rotation[day % 5]}")
fi
((${#checks[@]} > 0)) || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
for check in "${checks[@]}"; do
  case $check in
    format | tidy | address | thread | cuda | fuzz | slow) ;;
    *) echo "check: unknown check '$check': format tidy address thread cuda fuzz slow, or today" >&2; exit 2 ;;
  esac
done
for check in "${checks[@]}"; do
  begun=$SECONDS
  if (($(left) < 30)); then
    say "$check: skipped, because no time is left"
    continue
  fi
  if "check_$check"; then
    say "$check: passed in $((SECONDS - begun)) s"
  else
    say "$check: FAILED after $((SECONDS - begun)) s"
    failed+=("$check")
  fi
done
((${#failed[@]} == 0)) || { say "failed: ${failed[*]}"; exit 1; }
