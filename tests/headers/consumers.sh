#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Programs that use an installed tenon: shared, static, C++, as a Meson dependency, and by CMake. Each must
# answer a question. What is installed is complete, and was all built before.
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

# Without building: what an ordinary build leaves out is missing here, and fails.
if ! DESTDIR=$temp/root meson install -C "$build" --no-rebuild --quiet >"$temp/log" 2>&1; then
    cat "$temp/log"
    echo "0 passed, 1 failed"
    exit 1
fi
# What belongs to an installation, beside the libraries that the consumers need.
for wanted in bin/tenon include/tenon/session.h man1/tenon.1 man1/tenon-run.1 completions/tenon \
    site-functions/_tenon vendor_completions.d/tenon.fish; do
    if [ -n "$(find "$temp/root" -path "*/$wanted")" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "not installed: $wanted"
    fi
done
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

# By CMake: both libraries, with a version that fits; one that does not is not found.
cmake_project() {
    mkdir -p "cmake-$1"
    cp "$root/tests/headers/embed.c" "cmake-$1"
    cat >"cmake-$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(embed C)
find_package(tenon $2 REQUIRED)
add_executable(embed embed.c)
target_link_libraries(embed PRIVATE tenon::$1)
END
    cmake -S "cmake-$1" -B "cmake-$1/build" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$(find "$temp/root" -path '*/cmake/tenon' | sed 's,/lib.*,,')" >log 2>&1 &&
        cmake --build "cmake-$1/build" >>log 2>&1
}
skipped=0
if command -v cmake >/dev/null 2>&1; then
    version=$(pkg-config --modversion tenon)
    for kind in tenon static; do
        if cmake_project $kind "$version"; then
            LD_LIBRARY_PATH= result "CMake, tenon::$kind" "cmake-$kind/build/embed"
        else
            failed=$((failed + 1))
            tail -n 15 log
        fi
    done
    rm -r cmake-tenon
    if cmake_project tenon "$((${version%%.*} + 1)).0"; then
        failed=$((failed + 1))
        echo "CMake found a version that does not fit"
    else
        passed=$((passed + 1))
    fi
else
    skipped=1
    echo "SKIP: cmake is not installed"
fi
[ $skipped -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
