#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Names of data types, ops and kinds of parameters for shaders, from the tables of the C side.
#     constants.sh OUT dtypes.def ops.def params.h
set -eu
{
    echo "// Made by constants.sh."
    awk -F'[(,]' '/^TN_DTYPE\(/ { printf "const int TYPE_%s = %d;\n", $2, n++ }' "$2"
    awk -F'[(,]' '/^TN_OP\(/ { printf "const int OP_%s = %d;\n", $2, n++ }' "$3"
    # Enumerators, one after the other; "= VALUE" sets the count, comments go first.
    sed 's://.*$::' "$4" | tr '\n' ' ' | sed 's/enum {/\nENUM /g; s/}/\n/g' | grep '^ENUM' | sed 's/^ENUM//' |
        awk -F, '{ n = 0; for (i = 1; i <= NF; i++) { gsub(/ /, "", $i); if ($i == "") continue; split($i, a, "=");
            if (a[2] != "") n = a[2] + 0; if (a[1] !~ /_COUNT$/) { sub(/^TN_/, "", a[1]); printf "const int %s = %d;\n", a[1], n } n++ } }'
} >"$1"
