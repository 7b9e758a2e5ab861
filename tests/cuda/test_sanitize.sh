#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# sanitize.sh with stand-ins for compute-sanitizer and for the programs of a build: what it runs, what it
# takes for a finding, and its exit status.
#     test_sanitize.sh SANITIZE
set -u
script=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/bin" "$dir/build/tools" "$dir/build/tests" "$dir/models"
touch "$dir/models/one.gguf" "$dir/models/two.gguf"
passed=0 failed=0

# stand_in PATH: a program, its text on standard input.
stand_in() {
    { echo '#!/bin/sh' && cat; } >"$1" && chmod +x "$1"
}

# has WHAT FILE: a line of the file is that.
has() {
    if grep -q -x -F -- "$1" "$2"; then passed=$((passed + 1)); else
        echo "not there: $1" && cat "$2" && failed=$((failed + 1))
    fi
}

# gives STATUS ARGUMENT...: the exit status of the script with the build and these arguments.
gives() {
    want=$1
    shift
    PATH="$dir/bin:$PATH" sh "$script" "$dir/build" "$@" >"$dir/out" 2>&1
    got=$?
    if [ "$got" -eq "$want" ]; then passed=$((passed + 1)); else
        echo "exit status $got, not $want" && cat "$dir/out" && failed=$((failed + 1))
    fi
}

stand_in "$dir/build/tools/tenon" <<'END'
echo 'cuda:0     a device'
END
stand_in "$dir/build/tests/tenon-check" <<'END'
printf 'copy     3 cases\nlinear   4 cases\n'
END
if command -v compute-sanitizer >/dev/null; then
    echo "compute-sanitizer is installed: not tried without it"
else
    gives 77 "$dir/models"
    has 'SKIP: compute-sanitizer is not installed' "$dir/out"
fi

# Findings of racecheck in model two, none elsewhere; what it was asked is kept.
stand_in "$dir/bin/compute-sanitizer" <<END
echo "\$*" >>"$dir/asked"
[ "\$1" = --tool ] && [ "\$5" = --log-file ] || exit 2
case "\$2 \$*" in
racecheck*'--model two') echo '========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)' ;;
racecheck*) echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)' ;;
*) echo '========= ERROR SUMMARY: 0 errors' ;;
esac >"\$6"
END
gives 1 "$dir/models"
for line in 'memcheck: 4 runs, 0 with findings (0), 0 that failed or did not end' \
    'racecheck: 4 runs, 1 with findings (3), 0 that failed or did not end' \
    'synccheck: 4 runs, 0 with findings (0), 0 that failed or did not end' \
    'initcheck linear: no findings' \
    "racecheck two: 3 findings, see $dir/build/sanitize/racecheck-two.log"; do
    has "$line" "$dir/out"
done
log=$dir/build/sanitize/memcheck
asks="--tool memcheck --print-limit 20 --log-file $log"
has "$asks-one.log $dir/build/tests/test_golden $dir/models --quick --brief --backend cuda --model one" \
    "$dir/asked"
has "$asks-copy.log $dir/build/tests/tenon-check --quick --backend cuda --op copy" "$dir/asked"
gives 0 "$dir/models" memcheck initcheck
[ "$(ls "$dir/build/sanitize")" = "$(printf 'racecheck-two.log\nracecheck-two.log.out')" ] || {
    echo "logs of clean runs stay" && failed=$((failed + 1))
}
GROUP=2 JOBS=3 gives 0 "$dir/models" memcheck
has 'memcheck: 3 runs, 0 with findings (0), 0 that failed or did not end' "$dir/out"
both="$dir/build/tests/test_golden $dir/models --quick --brief --backend cuda --model one,two"
has "$asks-one-and-1-more.log $both" "$dir/asked"
ONLY='t*' gives 1 "$dir/models" racecheck
has 'racecheck: 1 runs, 1 with findings (3), 0 that failed or did not end' "$dir/out"

# Runs without a summary, with another exit status, and without an end.
stand_in "$dir/bin/compute-sanitizer" <<'END'
case $* in
*'--model one') exit 1 ;;
*'--model two') exec sleep 60 ;;
*'--op copy') echo '========= ERROR SUMMARY: 0 errors' >"$6" && exit 1 ;;
*) echo '========= ERROR SUMMARY: 0 errors' >"$6" ;;
esac
END
LIMIT=1 gives 1 "$dir/models" memcheck
has 'memcheck: 4 runs, 0 with findings (0), 3 that failed or did not end' "$dir/out"
has "memcheck two: did not end within 1 s, see $log-two.log" "$dir/out"
stand_in "$dir/build/tools/tenon" <<'END'
echo 'cpu        a processor'
END
gives 77 "$dir/models"
has 'SKIP: no CUDA device' "$dir/out"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
