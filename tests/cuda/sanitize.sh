#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tools of compute-sanitizer over every golden model and over the checks of every op on the CUDA
# device, and prints what each found.
#     sanitize.sh BUILD [MODELS [TOOL...]]
# MODELS: the folder of golden models. TOOL: memcheck, racecheck, initcheck, synccheck; all of them if none is
# named. LIMIT: seconds for one run, 900 if it is not set; a run that takes longer counts as one that did not
# end. ONLY: a pattern of the shell; other models and ops are left out. The logs of runs with findings stay
# in BUILD/sanitize. 77: nothing ran, 1: findings, or a run that failed or did not end.
set -u
build=${1:?sanitize.sh BUILD [MODELS [TOOL...]]}
models=${2:-$(dirname "$0")/../../../shared/golden/models}
[ $# -gt 2 ] && shift 2 || set -- memcheck racecheck initcheck synccheck
logs=$build/sanitize
command -v compute-sanitizer >/dev/null || { echo "SKIP: compute-sanitizer is not installed" && exit 77; }
"$build/tools/tenon" devices | grep -q '^cuda:0' || { echo "SKIP: no CUDA device" && exit 77; }
mkdir -p "$logs" || exit 1

# Errors and hazards that a log counts, one number; empty if it has no summary.
count() {
    sed -n -e 's/.* ERROR SUMMARY: \([0-9][0-9]*\) .*/\1/p' \
        -e 's/.* RACECHECK SUMMARY: \([0-9][0-9]*\) .*/\1/p' "$1" | awk '{n += $1} END {if (NR) print n}'
}

# run TOOL NAME PROGRAM ARGUMENT...: one run, one line.
run() {
    tool=$1 name=$2 log=$logs/$1-$2.log
    shift 2
    case $name in ${ONLY:-*}) ;; *) return ;; esac
    timeout "${LIMIT:-900}" compute-sanitizer --tool "$tool" --print-limit 20 --log-file "$log" \
        "$@" >"$log.out" 2>&1
    status=$?
    found=$(count "$log" 2>/dev/null)
    runs=$((runs + 1))
    if [ "$status" -eq 124 ]; then
        says="did not end within ${LIMIT:-900} s" failed=$((failed + 1))
    elif [ -z "$found" ]; then
        says="no summary, exit status $status" failed=$((failed + 1))
    elif [ "$found" -gt 0 ]; then
        says="$found findings" with=$((with + 1)) total=$((total + found))
    elif [ "$status" -ne 0 ]; then
        says="no findings, but exit status $status" failed=$((failed + 1))
    else
        rm -f "$log" "$log.out"
        echo "$tool $name: no findings"
        return
    fi
    echo "$tool $name: $says, see $log"
}

ops=$("$build/tests/tenon-check" --list | awk '{print $1}')
[ -n "$ops" ] || exit 1
bad=0
summary=
for tool; do
    runs=0 with=0 failed=0 total=0
    for file in "$models"/*.gguf; do
        [ -f "$file" ] || continue
        name=$(basename "$file" .gguf)
        run "$tool" "$name" "$build/tests/test_golden" "$models" --quick --backend cuda --model "$name"
    done
    for op in $ops; do
        run "$tool" "$op" "$build/tests/tenon-check" --quick --backend cuda --op "$op"
    done
    bad=$((bad + with + failed))
    summary="$summary$tool: $runs runs, $with with findings ($total), $failed that failed or did not end
"
done
printf '%s' "$summary"
[ "$bad" -eq 0 ]
