#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# The program as one static file that runs on every Linux of this processor, on Debian with musl-tools, meson
# and ninja: CPU backend only (dist/README.md). BUILD/tools/tenon is the result.
#     sh dist/static.sh BUILD [OPTION OF MESON...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1/kernel"
build=$(cd "$1" && pwd)
shift
# musl-gcc sees the headers of musl only; those of the kernel belong to no C library.
for folder in linux asm asm-generic; do
    from=/usr/include/$folder
    [ -d "$from" ] || from=/usr/include/$(gcc -print-multiarch)/$folder
    ln -sfn "$from" "$build/kernel/$folder"
done
[ -f "$build/build.ninja" ] || CC=musl-gcc meson setup "$build" "$root" -Dcuda=disabled -Dvulkan=disabled \
    -Dopenmp=disabled -Dlibedit=disabled -Dserver=disabled -Dpull=disabled -Dexamples=disabled \
    -Dpage=disabled -Dtests=false "-Dc_args=-isystem $build/kernel" -Dc_link_args=-static "$@"
ninja -C "$build" tools/tenon
