#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh checkout to a first answer: installs what is missing (Debian, Ubuntu), builds, runs.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tools/packages.sh
. tools/packages.sh

need gcc gcc
need meson meson
need ninja ninja-build
need pkg-config pkg-config
want /usr/include/histedit.h libedit-dev
want /usr/include/libwebsockets.h libwebsockets-dev
want '/usr/include/*/curl/curl.h' libcurl4-openssl-dev
install_needed

# Device code only where it can run.
cuda=auto
has_gpu || cuda=disabled
if [ ! -f build/build.ninja ]; then
    meson setup build "-Dcuda=$cuda"
    [ $cuda = auto ] || touch build/no-gpu-found
elif [ $cuda = auto ] && [ -f build/no-gpu-found ]; then
    meson configure build -Dcuda=auto
    rm build/no-gpu-found
fi
ninja -C build tools/tenon
exec build/tools/tenon run models/bundled/tenon-tiny.gguf -p "Once upon a time" -n 160 --stats "$@"
