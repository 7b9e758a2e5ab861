#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs that use an installed tenon: shared, static, C++, and as a Meson dependency. Each must answer a
# question.
#     consumers.sh BUILD_FOLDER ROOT CC [CXX]
set -u
build=$1
root=$2
cc=$3
cxx=${4-}
if ! command -v pkg-config >/dev/null 2>&1; then
    echo "SKIP: pkg-config is not installed"
    exit 77
fi
if [ -n "$(nm -D --undefined-only "$build"/libtenon.so 2>/dev/null |
    grep -E '__(asan|tsan|msan|ubsan)_')" ]; then
    echo "SKIP: built with a sanitizer"
    exit 77
fi
temp=$(mktemp -d) || exit 1
trap 'rm -rf "$temp"' EXIT
passed=0
failed=0
want="Mia lives in the blue house by the river."

# result NAME PROGRAM: counts one consumer by what it says.
result() {
    got=$("$2" "$root/models/bundled/tenon-tiny.gguf" "Where does Mia live?" 2>&1)
    if [ "$got" = "$want" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1: got '$got', expected '$want'"
    fi
}

if ! DESTDIR=$temp/root meson install -C "$build" --no-rebuild --quiet >"$temp/log" 2>&1; then
    cat "$temp/log"
    echo "0 passed, 1 failed"
    exit 1
fi
pc=$(find "$temp/root" -name tenon.pc)
export PKG_CONFIG_PATH="${pc%/*}" PKG_CONFIG_SYSROOT_DIR="$temp/root"
lib=$(find "$temp/root" -name libtenon.a)
lib=${lib%/*}
export LD_LIBRARY_PATH="$lib"

cd "$temp" || exit 1
$cc -std=c17 -Wall -Wextra -Werror "$root/tests/headers/embed.c" -o shared $(pkg-config --cflags --libs tenon)
result "shared library, C" ./shared

# Both libraries have one name: a folder with the static one alone decides.
mkdir only_static
cp "$lib/libtenon.a" only_static
$cc -std=c17 "$root/tests/headers/embed.c" -o static $(pkg-config --cflags tenon) -Lonly_static \
    $(pkg-config --static --libs tenon | sed 's/-L[^ ]*//')
LD_LIBRARY_PATH= result "static library, C" ./static

if [ -n "$cxx" ]; then
    $cxx -std=c++17 -Wall -Wextra -Werror -x c++ "$root/tests/headers/embed.c" \
        -o shared_cpp $(pkg-config --cflags --libs tenon)
    result "shared library, C++" ./shared_cpp
fi

mkdir project
cp "$root/tests/headers/embed.c" project
cat >project/meson.build <<'END'
project('embed', 'c', default_options: ['c_std=c17'])
executable('embed', 'embed.c', dependencies: dependency('tenon'))
END
if CC=$cc meson setup project/build project >log 2>&1 && ninja -C project/build >>log 2>&1; then
    result "Meson dependency" project/build/embed
else
    failed=$((failed + 1))
    tail -n 15 log
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
