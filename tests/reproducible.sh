#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Two builds of the same source in folders of other names give the same program and library:
#     sh tests/reproducible.sh [FOLDER [OPTION OF MESON...]]     default: build-same
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-same}
[ $# -eq 0 ] || shift
export CCACHE_DISABLE=1 # it would give the second build what it kept of the first one
for build in "$folder-a" "$folder-other"; do
    rm -rf "$build"
    meson setup "$build" -Ddevice_archs=none -Dtests=false "$@" >/dev/null
    library=$(cd "$build" && ninja -t targets all | sed -n 's/^\(libtenon\.so[0-9.]*\): .*LINKER.*/\1/p')
    ninja -C "$build" tools/tenon "$library"
done
failed=0
for file in tools/tenon "$(cd "$folder-a" && ls -d libtenon.so.*.*.* | grep -v '\.p$')"; do
    cmp "$folder-a/$file" "$folder-other/$file" || failed=$((failed + 1))
done
echo "$((2 - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
