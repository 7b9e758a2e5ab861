#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tools of compute-sanitizer over every golden model and over the checks of every op on the CUDA
# device, and prints what each found.
#     sanitize.sh BUILD [MODELS [TOOL...]]
# MODELS: the folder of golden models. TOOL: memcheck, racecheck, initcheck, synccheck; all of them if none is
# named. Variables: LIMIT, seconds for one run (900); a run that takes longer counts as one that did not end.
# JOBS, runs at a time (1). GROUP, golden models of a run (1): a tool changes each module of device code when
# a process loads it, which takes longer than a small model. ONLY, a pattern of the shell; other models and
# ops are left out. The logs of runs with findings stay in BUILD/sanitize. 77: nothing ran, 1: findings, or a
# run that failed or did not end.
set -u

# Errors and hazards that a log counts, one number; empty if it has no summary.
count() {
    sed -n -e 's/.* ERROR SUMMARY: \([0-9][0-9]*\) .*/\1/p' \
        -e 's/.* RACECHECK SUMMARY: \([0-9][0-9]*\) .*/\1/p' "$1" | awk '{n += $1} END {if (NR) print n}'
}

# sanitize.sh --run LOGS TOOL NAME PROGRAM ARGUMENT...: one run, one line, which also goes to a file.
if [ "$1" = --run ]; then
    log=$2/$3-$4.log tool=$3 name=$4
    shift 4
    timeout "${LIMIT:-900}" compute-sanitizer --tool "$tool" --print-limit 20 --log-file "$log" \
        "$@" >"$log.out" 2>&1
    status=$?
    found=$(count "$log" 2>/dev/null)
    if [ "$status" -eq 124 ]; then
        says="did not end within ${LIMIT:-900} s, see $log"
    elif [ -z "$found" ]; then
        says="no summary, exit status $status, see $log"
    elif [ "$found" -gt 0 ]; then
        says="$found findings, see $log"
    elif [ "$status" -ne 0 ]; then
        says="no findings, but exit status $status, see $log"
    else
        says="no findings"
        rm -f "$log" "$log.out"
    fi
    echo "$tool $name: $says" >"$log.result"
    cat "$log.result"
    exit 0
fi

build=${1:?sanitize.sh BUILD [MODELS [TOOL...]]}
models=${2:-$(dirname "$0")/../../../shared/golden/models}
if [ $# -gt 2 ]; then shift 2; else set -- memcheck racecheck initcheck synccheck; fi
logs=$build/sanitize
command -v compute-sanitizer >/dev/null || { echo "SKIP: compute-sanitizer is not installed" && exit 77; }
"$build/tools/tenon" devices | grep -q '^cuda:0' || { echo "SKIP: no CUDA device" && exit 77; }
mkdir -p "$logs" && rm -f "$logs"/*.result || exit 1

# Names of golden models and ops, one a line, that ONLY has.
wanted() {
    while read -r name; do
        # shellcheck disable=SC2254
        case $name in ${ONLY:-*}) echo "$name" ;; esac
    done
}
golden=$(for file in "$models"/*.gguf; do [ -f "$file" ] && basename "$file" .gguf; done | wanted)
ops=$("$build/tests/tenon-check" --list | awk '{print $1}' | wanted)
[ -n "$golden$ops" ] || { echo "sanitize.sh: no model and no op" >&2 && exit 1; }

# Lines of a tool's runs: NAME PROGRAM ARGUMENT...
runs() {
    echo "$golden" | xargs -n "${GROUP:-1}" | while read -r first more; do
        [ -n "$first" ] || continue
        # shellcheck disable=SC2086
        list=$(printf '%s,' "$first" $more)
        name=$first${more:+-and-$(echo "$more" | wc -w)-more}
        echo "$name $build/tests/test_golden $models --quick --brief --backend cuda --model ${list%,}"
    done
    for op in $ops; do
        echo "$op $build/tests/tenon-check --quick --backend cuda --op $op"
    done
}
for tool; do
    runs | sed "s|^|$tool |" | xargs -P "${JOBS:-1}" -L 1 sh "$0" --run "$logs"
done
bad=0
for tool; do
    said=$(cat "$logs/$tool"-*.result)
    n=$(echo "$said" | wc -l)
    clean=$(echo "$said" | grep -c ': no findings$')
    found=$(echo "$said" | sed -n 's/.*: \([1-9][0-9]*\) findings, see .*/\1/p')
    with=$(echo "$found" | grep -c .)
    total=$(echo "$found" | awk '{n += $1} END {print n + 0}')
    bad=$((bad + n - clean))
    echo "$tool: $n runs, $with with findings ($total), $((n - clean - with)) that failed or did not end"
done
rm -f "$logs"/*.result
[ "$bad" -eq 0 ]
