#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# What the program and the library were linked with: hardening.sh PROGRAM LIBRARY
#   position-independent, relocations read-only once resolved, no stack that can be executed, functions that
#   check their stack and the sizes of what they copy, and on x86-64 code for shadow stacks that begins where
#   calls through pointers may go with endbr64.
set -u
command -v readelf >/dev/null || { echo "SKIP: readelf is not installed" && exit 77; }
passed=0 failed=0

# check TEXT COMMAND...: the command succeeds
check() {
    text=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "failed: $text"; fi
}
has() { echo "$1" | grep -q "$2"; }
lacks() { ! has "$1" "$2"; }

for file; do
    head=$(readelf -hW "$file") segments=$(readelf -lW "$file") dynamic=$(readelf -dW "$file")
    symbols=$(readelf -sW "$file")
    check "$file is position-independent" has "$head" 'Type: *DYN'
    check "$file has read-only relocations" has "$segments" GNU_RELRO
    check "$file resolves all symbols at the start" has "$dynamic" 'BIND_NOW\|FLAGS_1.*NOW'
    check "$file has no executable stack" lacks "$segments" 'GNU_STACK.*RWE'
    check "$file has no segment that is written and executed" lacks "$segments" 'LOAD.*RWE'
    check "$file checks its stack" has "$symbols" __stack_chk_fail
    check "$file checks the sizes of copies" has "$symbols" '_chk@'
    has "$head" 'Machine: .*X86-64' || continue
    check "$file is marked for shadow stacks" has "$(readelf -nW "$file")" 'x86 feature: .*SHSTK'
    # More than a hundred: all functions whose address is taken.
    check "$file begins functions with endbr64" test "$(objdump -d "$file" | grep -c endbr64)" -gt 100
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
