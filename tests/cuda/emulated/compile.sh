#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one file of device code for the host.
#     compile.sh OUT.o DEPENDENCIES SOURCE.cu PYTHON C++ COMPILER AND FLAGS...
set -eu
out=$1 dependencies=$2 source=$3 python=$4
shift 4
here=$(dirname "$0")
"$@" -x c++ -E -MD -MF "$dependencies" -MT "$out" -include tests/cuda/emulated/prelude.h \
    -o "$out.in.ii" "$source"
"$python" -B "$here/rewrite.py" "$(basename "$source" .cu)" <"$out.in.ii" >"$out.ii"
"$@" -x c++-cpp-output -c -o "$out" "$out.ii"
rm -f "$out.in.ii"
