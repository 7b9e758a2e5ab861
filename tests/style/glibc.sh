#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# A program and a library ask for no newer symbol of the C library: glibc.sh VERSION FILE...
# core/os/glibc_2_31_posix.c is where a symbol that this finds gets its old version.
set -u
command -v objdump >/dev/null || { echo "SKIP: objdump is not installed" && exit 77; }
limit=$1 passed=0 failed=0
shift

# check TEXT LIST: the list is empty
check() {
    if [ -z "$2" ]; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "$1:" $2; fi
}

for file; do
    symbols=$(objdump -T "$file")
    check "$file asks for no C library at all" "$(echo "$symbols" | grep -q GLIBC_2 || echo no GLIBC_2)"
    check "$file needs more than glibc $limit" "$(echo "$symbols" | awk -v limit="$limit" '
        match($0, /GLIBC_[0-9.]+/) {
            split(substr($0, RSTART + 6, RLENGTH - 6), v, "."); split(limit, l, ".")
            if (v[1] > l[1] || (v[1] == l[1] && v[2] + 0 > l[2] + 0)) print $NF "@" v[1] "." v[2]
        }')"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
