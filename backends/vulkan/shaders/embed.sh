#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one shader to SPIR-V and wraps it into an object file with two symbols: where it begins and ends.
#     embed.sh OUT.o DEPENDENCIES STEM SOURCE.comp "C COMPILER" GLSLANG PYTHON INCLUDE...
set -eu
out=$1 dependencies=$2 stem=$3 source=$4 cc=$5 glslang=$6 python=$7
shift 7
# It prints the name of the source, and its errors, on standard output.
"$glslang" --quiet -V --target-env vulkan1.2 "$@" --depfile "$dependencies.glsl" -o "$out.spv" "$source" ||
    exit 1
# Cooperative matrices by GL_EXT_spirv_intrinsics lack the types of their components.
case " $* " in
*" -DEMULATED "* | *" -DNV "*) ;;
*)
    if grep -q '^#include.*/coopmat.glsl"' "$source"; then
        "$python" -B "${0%/*}/coopmat_types.py" "$out.spv"
    fi
    ;;
esac
# The dependency file has to name the object, not the module.
sed "1s|^[^:]*:|$out:|" "$dependencies.glsl" >"$dependencies"
cat >"$out.S" <<END
#if defined(_WIN32)
#define NAME(symbol) symbol
    .section .rdata,"dr"
#elif defined(__APPLE__)
#define NAME(symbol) _##symbol
    .private_extern NAME(tn_vk_code_$stem)
    .private_extern NAME(tn_vk_code_end_$stem)
    .section __TEXT,__const
#else
#define NAME(symbol) symbol
    .section .note.GNU-stack,"",%progbits
    .hidden tn_vk_code_$stem
    .hidden tn_vk_code_end_$stem
    .section .rodata
#endif
    .balign 64
    .globl NAME(tn_vk_code_$stem)
    .globl NAME(tn_vk_code_end_$stem)
NAME(tn_vk_code_$stem):
    .incbin "$out.spv"
NAME(tn_vk_code_end_$stem):
END
# shellcheck disable=SC2086
$cc -c -o "$out" "$out.S"
