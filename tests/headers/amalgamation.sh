#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# The library as two files: they are made, compiled by one command, without a warning, and a program in C and
# one in C++ answer a question with them.
#     amalgamation.sh PYTHON BUILD_FOLDER ROOT CC [CXX]
set -eu
python=$1
build=$2
root=$3
cc=$4
cxx=${5-}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
want="Mia lives in the blue house by the river."
passed=0
failed=0

# answer NAME PROGRAM
answer() {
    got=$("$2" "$root/models/bundled/tenon-tiny.gguf" "Where does Mia live?" 2>&1) || true
    if [ "$got" = "$want" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: got '$got', expected '$want'"
    fi
}

"$python" -B "$root/dist/amalgamate.py" "$build" "$temp"
cd "$temp"
# Not optimised: that takes a minute, and would show nothing about names.
$cc -std=c17 -O0 -Wall -Wextra -Werror -c tenon.c
sed 's,<tenon/session.h>,"tenon.h",; /<tenon\//d' "$root/tests/headers/embed.c" >embed.c
$cc -std=c17 -Wall -Wextra -Werror embed.c tenon.o -o embed -lm -pthread
answer C ./embed
if [ -n "$cxx" ]; then
    $cxx -std=c++17 -Wall -Wextra -Werror -x c++ embed.c -x none tenon.o -o embed_cpp -lm -pthread
    answer C++ ./embed_cpp
fi
# All levels of processors are in it.
case $(uname -m) in
x86_64)
    for level in generic avx2 avxvnni avx512 avx512vnni amx; do
        if nm tenon.o | grep -q "T tn_[a-z_0-9]*_$level\$"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "no kernel of $level"
        fi
    done
    ;;
esac
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
