#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Constants for shaders from the tables of the C side: types, ops, indices of sources, and all anonymous enums
# of the headers, whose names lose TN_ or TN_VK_.
#     constants.sh OUT DTYPES OPS OPERANDS HEADER...
set -eu
out=$1 dtypes=$2 ops=$3 operands=$4
shift 4
{
    echo "// Made by constants.sh."
    awk -F'[(,]' '/^TN_DTYPE\(/ { printf "const int TYPE_%s = %d;\n", $2, n++ }' "$dtypes"
    awk -F'[(,]' '/^TN_OP\(/ { printf "const int OP_%s = %d;\n", $2, n++ }' "$ops"
    awk -F'[(,)]' '/^TN_SOURCES\(/ { for (i = 3; i < NF; i++) { gsub(/ /, "", $i);
        printf "const int SRC_%s_%s = %d;\n", $2, $i, i - 3 } }' "$operands"
    # Enumerators, one after the other; "= VALUE" sets the count, comments go first.
    sed 's://.*$::' "$@" | tr '\n' ' ' | sed 's/enum {/\nENUM /g; s/}/\n/g' | grep '^ENUM' | sed 's/^ENUM//' |
        awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { gsub(/ /, "", $i); if ($i == "") continue
            split($i, a, "="); if (a[2] != "") n = a[2] + 0
            if (a[1] !~ /_COUNT$/) { sub(/^TN_(VK_)?/, "", a[1]);
            printf "const int %s = %d;\n", a[1], n } n++ } }'
} >"$out"
