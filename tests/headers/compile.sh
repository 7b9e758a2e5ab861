#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Each public header compiles alone, and twice in one file, without a warning.
#     compile.sh STANDARD ROOT COMPILER...      with STANDARD c17, c++17, ...
set -u
standard=$1
root=$2
shift 2
if ! command -v "$1" >/dev/null 2>&1; then
    echo "SKIP: $1 is not installed"
    exit 77
fi
case $standard in
c++*) language=c++ ;;
*) language=c ;;
esac
passed=0
failed=0
includes="-I$root/core/include -I$root/ops/include -I$root/graph/include -I$root/models/include"
for header in "$root"/*/include/tenon/*.h; do
    name=tenon/$(basename "$header")
    # The definition keeps -pedantic from calling the file empty.
    if printf '#include <%s>\n#include <%s>\nint tn_headers_test;\n' "$name" "$name" |
        "$@" -x $language -std="$standard" -Wall -Wextra -Wpedantic -Werror -fsyntax-only $includes -; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name does not compile alone as $standard"
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
