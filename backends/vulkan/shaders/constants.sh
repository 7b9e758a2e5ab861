#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Constants for shaders from the tables of the C side: types, ops, indices of sources, and all anonymous enums
# of the headers, whose names lose TN_ or TN_VK_.
#     constants.sh OUT DTYPES OPS HEADER...
set -eu
out=$1 dtypes=$2 ops=$3
shift 3
{
    echo "// Made by constants.sh."
    awk -F'[(,]' '/^TN_DTYPE\(/ { printf "const int TYPE_%s = %d;\n", $2, n++ }' "$dtypes"
    awk -F'[(,]' '/^TN_OP\(/ { printf "const int OP_%s = %d;\n", $2, n++ }' "$ops"
    # The names of the sources are the first list in parentheses; a row may have two lines.
    tr '\n' ' ' <"$ops" | sed 's/TN_OP(/\n&/g' | grep '^TN_OP(' | awk -F'[()]' '{ split($2, row, ",")
        n = split($3, source, /, */)
        for (i = 1; i <= n; i++) printf "const int SRC_%s_%s = %d;\n", row[1], source[i], i - 1 }'
    # Enumerators, one after the other; "= VALUE" sets the count, comments go first.
    sed 's://.*$::' "$@" | tr '\n' ' ' | sed 's/enum {/\nENUM /g; s/}/\n/g' | grep '^ENUM' | sed 's/^ENUM//' |
        awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { gsub(/ /, "", $i); if ($i == "") continue
            split($i, a, "="); if (a[2] != "") n = a[2] + 0
            if (a[1] !~ /_COUNT$/) { sub(/^TN_(VK_)?/, "", a[1]);
            printf "const int %s = %d;\n", a[1], n } n++ } }'
} >"$out"
