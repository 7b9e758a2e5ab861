#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# From a checkout to one zip file with tenon for Windows x86-64 (docs/windows.md), on Debian with
# gcc-mingw-w64-x86-64, meson and ninja. Options of Meson may follow.
#     sh dist/windows.sh OUT.zip [-Dvulkan=disabled ...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=$1
shift
build=$root/build-windows-zip
[ -f "$build/build.ninja" ] || meson setup "$build" "$root" \
    --cross-file "$root/tools/cross/windows-x86_64.ini" --libdir lib -Dtests=false "$@"
ninja -C "$build"
python3 -B "$root/dist/windows_zip.py" "$build" "$out"
