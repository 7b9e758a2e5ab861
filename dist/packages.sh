#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# From a checkout to packages for Debian (program, library, development files) and one archive whose folder
# may lie anywhere, on Debian with dpkg-dev, meson and ninja. Nothing is downloaded (dist/README.md).
#     sh dist/packages.sh OUT_FOLDER [OPTION OF MESON...]
# FROM=FOLDER in the environment: where the two build folders are made, build-packages without.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
out=$1
shift
from=${FROM:-$root/build-packages}
common="-Dtests=false -Dexamples=disabled --prefix /usr"
[ "$(uname -m)" != x86_64 ] || common="$common -Dglibc=2.31"
[ -f "$from/debian/build.ninja" ] || meson setup "$from/debian" "$root" $common \
    --libdir "lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" "$@"
# Libraries that have other names on other systems stay away.
[ -f "$from/folder/build.ninja" ] || meson setup "$from/folder" "$root" $common --libdir lib \
    -Dopenmp=disabled -Dlibedit=disabled -Dserver=disabled "$@"
ninja -C "$from/debian"
ninja -C "$from/folder"
python3 -B "$root/dist/packages.py" debian "$from/debian" "$out"
python3 -B "$root/dist/packages.py" folder "$from/folder" "$out"
