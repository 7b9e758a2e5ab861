# shellcheck shell=sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# What demo.sh and test.sh share: installing what is missing, and whether there is a GPU.
missing=

# Whether device code can run here: it takes minutes to compile.
has_gpu() {
    [ -e /dev/nvidiactl ] || [ -e /dev/dxg ] || [ -e /dev/nvhost-ctrl-gpu ] || nvidia-smi -L >/dev/null 2>&1
}

# need COMMAND PACKAGE: the package is wanted if there is no such command.
need() {
    command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}

# want FILE PACKAGE: for optional parts; only where packages can be installed. FILE may be a pattern.
want() {
    # shellcheck disable=SC2086
    ls $1 >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1 || missing="$missing $2"
}

# A C compiler without the headers of the C library is no use.
need_headers() {
    printf '#include <stdio.h>\n' | cc -E - >/dev/null 2>&1 || missing="$missing libc6-dev"
}

install_needed() {
    need_headers
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "missing:$missing; install them with this system's package manager" >&2
        exit 1
    fi
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "missing:$missing; as root: apt-get install$missing" >&2
            exit 1
        fi
        as_root=sudo
    fi
    $as_root apt-get update
    # Word splitting is meant: a list of names.
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}
