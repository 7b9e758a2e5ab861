#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Two builds of the same source in folders of other names give the same bytes:
#     sh tests/reproducible.sh [FOLDER [OPTION OF MESON...]]     default: build-same
# The program and the library are compared, without device code unless an option asks for it. With ONLY, a
# pattern of the shell, it is the embedded device code of these names instead, and nothing else is built:
#     ONLY='vulkan_*' sh tests/reproducible.sh
#     ONLY='cuda_norm*' sh tests/reproducible.sh build-same -Ddevice_archs=90a
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-same}
[ $# -eq 0 ] || shift
export CCACHE_DISABLE=1 # it would give the second build what it kept of the first one

# modules BUILD: the objects of embedded device code that ONLY names
modules() {
    ninja -C "$1" -t targets all | sed -n 's/^\(.*\.o\): CUSTOM_COMMAND.*/\1/p' | while read -r object; do
        case ${object##*/} in $ONLY) echo "$object" ;; esac
    done
}

for build in "$folder-a" "$folder-other"; do
    rm -rf "$build"
    meson setup "$build" -Ddevice_archs=none -Dtests=false "$@" >/dev/null
    if [ -n "${ONLY:-}" ]; then
        files=$(modules "$build")
        [ -n "$files" ] || { echo "no device code has a name like $ONLY" && exit 1; }
    else
        library=$(cd "$build" && ninja -t targets all |
            sed -n 's/^\(libtenon\.so[0-9.]*\): .*LINKER.*/\1/p' | grep '\.[0-9]*\.[0-9]*\.[0-9]*$')
        files="tools/tenon $library"
    fi
    # shellcheck disable=SC2086
    ninja -C "$build" $files
done
passed=0 failed=0
for file in $files; do
    cmp "$folder-a/$file" "$folder-other/$file" && passed=$((passed + 1)) || failed=$((failed + 1))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
