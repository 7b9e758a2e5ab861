#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Measures the tables of docs/performance.md for CUDA on this machine's card, with floors and goals.
#
#   sh tests/bench/h200.sh [--build FOLDER] [--quick] [--out FOLDER] [TABLE...]
#
# Without --build it builds the checkout in build-h200 first. FOLDER may also hold the programs tenon and
# tenon-check alone. README.md in this folder says more; every other flag goes to measure.py.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=

if [ "${1:-}" = --build ]; then
    [ $# -ge 2 ] || { echo "h200.sh: --build needs a folder" >&2; exit 2; }
    build=$2
    shift 2
fi
if [ -z "$build" ]; then
    build=$root/build-h200
    if [ ! -f "$build/build.ninja" ]; then meson setup "$build" "$root" -Ddevice_archs=90a >&2; fi
    ninja -C "$build" tools/tenon tests/tenon-check >&2
fi

# The programs of a build folder lie in two folders of it.
programs=$(mktemp -d)
trap 'rm -rf "$programs"' EXIT
for name in tenon tenon-check; do
    for path in "$build/$name" "$build/tools/$name" "$build/tests/$name"; do
        [ -f "$path" ] || continue
        ln -sf "$(cd "$(dirname "$path")" && pwd)/$name" "$programs/$name"
    done
    [ -e "$programs/$name" ] || { echo "h200.sh: $build has no $name" >&2; exit 2; }
done
status=0
python3 -B "$here/measure.py" "$programs" "$@" || status=$?
exit $status
