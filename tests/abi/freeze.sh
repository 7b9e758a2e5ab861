#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Writes the declarations of the public headers as one header without comments, macros or layout: what a
# program was compiled with that is never compiled again. Run when an ABI begins that must keep working.
#     freeze.sh ROOT >tenon_1.h
set -eu
root=$1
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
: >"$temp/stddef.h"
: >"$temp/stdint.h"
cat <<'HEAD'
// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The public declarations of the ABI TENON_1 as they were when it began, made by freeze.sh. Never edited.
// clang-format off
#include <stddef.h>
#include <stdint.h>
HEAD
for header in "$root"/*/include/tenon/*.h; do
    echo "#include <tenon/$(basename "$header")>"
done | cpp -P -undef -nostdinc -I"$temp" -I"$root/core/include" -I"$root/ops/include" \
    -I"$root/graph/include" -I"$root/models/include" - | tr -s '[:space:]' ' ' | fold -s -w 105 |
    sed -e 's/ *$//' -e '$a\'
