#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Packages of dist/packages.sh, installed and run in clean systems, as root. What they depend on, and the
# systems, come from the mirror of Debian.
#     packages.sh PACKAGES FOLDER CC     FOLDER: where the systems are made, and kept for later runs
set -u
packages=$1 systems=$2 cc=$3
root=$(cd "$(dirname "$0")/.." && pwd)
want="Mia lives in the blue house by the river."
passed=0 failed=0
[ "$(id -u)" -eq 0 ] || { echo "SKIP: needs root" && exit 77; }
for command in debootstrap chroot dpkg-deb; do
    command -v $command >/dev/null || { echo "SKIP: $command is not installed" && exit 77; }
done

# system NAME: a minimal Debian of this name in $systems/NAME
system() {
    [ -f "$systems/$1/complete" ] && return
    rm -rf "${systems:?}/$1"
    debootstrap --variant=minbase "$1" "$systems/$1" >"$systems/$1.log" 2>&1 ||
        { echo "SKIP: no Debian $1 from its mirror" && exit 77; }
    touch "$systems/$1/complete"
}

# check TEXT WANTED COMMAND...: what the command prints
check() {
    text=$1 wanted=$2
    shift 2
    got=$("$@" 2>&1)
    if [ "$got" = "$wanted" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$text: got '$got', expected '$wanted'"
    fi
}

mkdir -p "$systems"
. /etc/os-release
new=$systems/${VERSION_CODENAME:-bookworm} old=$systems/bullseye

# The packages where they were built, as a user installs them.
system "${new##*/}"
rm -rf "$new/packages"
mkdir "$new/packages"
cp "$packages"/*.deb "$root/models/bundled/tenon-tiny.gguf" "$new/packages"
cp /etc/resolv.conf "$new/etc" 2>/dev/null
chroot "$new" sh -c 'apt-get update && apt-get install -y --no-install-recommends /packages/*.deb' \
    >"$systems/install.log" 2>&1 || { tail -n 20 "$systems/install.log" && exit 1; }
model=/packages/tenon-tiny.gguf
check "tenon of the package" "$want" chroot "$new" tenon run $model -st --temp 0 -p "Where does Mia live?"
check "manual page" /usr/share/man/man1/tenon.1 chroot "$new" sh -c 'ls /usr/share/man/man1/tenon.1'
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
"$cc" -std=c17 "$root/tests/headers/embed.c" -I"$new/usr/include" -L"$new/usr/lib/$triplet" -ltenon \
    -o "$new/packages/embed"
check "program with the library of the package" "$want" \
    chroot "$new" /packages/embed $model "Where does Mia live?"
chroot "$new" apt-get remove -y tenon libtenon0 libtenon-dev >>"$systems/install.log" 2>&1
check "left behind" "" find "$new/usr" -name '*tenon*'

# The folder, below a name with a blank, on the oldest system.
system bullseye
rm -rf "$old/some folder"
mkdir "$old/some folder"
tar -xzf "$packages"/tenon-*.tar.gz -C "$old/some folder" --strip-components=1
cp "$root/models/bundled/tenon-tiny.gguf" "$old/some folder"
model="/some folder/tenon-tiny.gguf"
check "tenon of the folder" "$want" \
    chroot "$old" "/some folder/bin/tenon" run "$model" -st --temp 0 -p "Where does Mia live?"
check "libraries that the folder lacks there" "" chroot "$old" sh -c \
    'LD_BIND_NOW=1 ldd -r "/some folder/lib/libtenon.so.0" | grep -E "not found|undefined"'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
