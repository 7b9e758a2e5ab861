#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Builds everything and runs the tests. The last line is "N passed, N failed, N skipped".
#     sh tools/test.sh [ARGUMENT...]     arguments of `meson test`: names of tests, --suite NAME
# The slow tests of the suite "full" and those of the suite "levels" run only if asked for (tests/README.md).
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

need gcc gcc
need g++ g++
need meson meson
need ninja ninja-build
need pkg-config pkg-config
want /usr/include/histedit.h libedit-dev
want /usr/include/libwebsockets.h libwebsockets-dev
want '/usr/include/*/curl/curl.h' libcurl4-openssl-dev
need python3 python3
want /usr/bin/glslangValidator glslang-tools
want /usr/include/vulkan/vulkan.h libvulkan-dev
want '/usr/share/vulkan/icd.d/lvp_icd*.json' mesa-vulkan-drivers
want '/usr/share/vulkan/explicit_layer.d/*khronos_validation.json' vulkan-validationlayers
install_needed

build="build-test"
if has_gpu; then
    # A GPU that was not here when the folder was made: its device code has to be optimised.
    if [ -f "$build/no-gpu-found" ]; then
        meson configure "$build" -Ddevice_archs=auto -Ddevice_optimisation=true
        rm "$build/no-gpu-found"
    fi
    [ -f "$build/build.ninja" ] || meson setup "$build"
else
    # No kernel runs here except on the emulated device, which compiles the source as C++ and shows the host
    # side a GPU of capability 9.0. So nvcc has only to accept the source: for that capability alone, and
    # without the optimisation that takes most of the time.
    [ -f "$build/build.ninja" ] || meson setup "$build" -Ddevice_archs=90a -Ddevice_optimisation=false
    touch "$build/no-gpu-found"
    echo "no GPU here: device code is compiled only to see that it compiles, and not optimised"
fi
if ! ninja -C "$build"; then
    echo "the build failed"
    echo "0 passed, 1 failed, 0 skipped"
    exit 1
fi
code=0
# Limits of time are for what hangs, not for a busy machine.
meson test -C "$build" --no-rebuild --print-errorlogs -t 3 "$@" || code=$?

# Meson writes one JSON object per test.
log=$build/meson-logs/testlog.json
if [ ! -f "$log" ]; then
    echo "no test ran: $log is missing" >&2
    exit 1
fi
count() {
    grep -a -c -E "\"result\": *\"($1)\"" "$log" || true
}
passed=$(count 'OK|EXPECTEDFAIL')
skipped=$(count 'SKIP')
failed=$(($(count '[A-Z]+') - passed - skipped))
[ "$failed" -eq 0 ] || grep -a -E '"result": *"' "$log" |
    grep -a -v -E '"result": *"(OK|EXPECTEDFAIL|SKIP)"' |
    sed 's/^{"name": *"\([^"]*\)".*/failed: \1/'
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ] && exit "$code"
exit 1
