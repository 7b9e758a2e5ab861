#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one file of device code to a fat binary and wraps it into an object file with one symbol.
#     embed.sh OUT.o DEPENDENCIES SYMBOL SOURCE.cu "C COMPILER" NVCC FLAGS...
# With "none" for NVCC the image is the symbol's name. This is for code that none of the wanted capabilities
# runs, and for tests of the host side, which need no device code.
set -eu
out=$1 dependencies=$2 symbol=$3 source=$4 cc=$5
shift 5
if [ "$1" = none ]; then
    echo "$out: $source" >"$dependencies"
    printf '%s\0' "$symbol" >"$out.fatbin"
else
    "$@" -fatbin -MD -MF "$dependencies.nvcc" -o "$out.fatbin" "$source"
    # Ninja wants the name of the real output.
    sed "1s|^[^:]*:|$out:|" "$dependencies.nvcc" >"$dependencies"
fi
cat >"$out.S" <<END
#if defined(_WIN32)
#define NAME(symbol) symbol
    .section .rdata,"dr"
#elif defined(__APPLE__)
#define NAME(symbol) _##symbol
    .private_extern NAME($symbol)
    .section __TEXT,__const
#else
#define NAME(symbol) symbol
    .section .note.GNU-stack,"",%progbits
    .hidden $symbol
    .section .rodata
#endif
    .balign 64
    .globl NAME($symbol)
NAME($symbol):
    .incbin "$out.fatbin"
END
# shellcheck disable=SC2086
$cc -c -o "$out" "$out.S"
