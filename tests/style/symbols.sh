#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# What the built library asks for and offers: no way to end the process or to print, only tn_*, nothing that
# can change between contexts, and a size that fits.
#     symbols.sh LIBTENON.so [TENON [BYTES]]   most bytes that each may have
set -u

if ! command -v nm >/dev/null 2>&1; then
    echo "SKIP: nm is not installed"
    exit 77
fi
lib=$1
tool=${2-}
size_max=${3-5000000} # bytes; a build without optimisation or with a sanitizer is not measured
passed=0
failed=0

# check WHAT LIST: passes if the list is empty.
check() {
    if [ -z "$2" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$1:" $2
    fi
}

undefined=$(nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $NF); print $NF }')
case $undefined in
*__asan_* | *__tsan_* | *__msan_* | *__ubsan_*)
    echo "SKIP: built with a sanitizer"
    exit 77
    ;;
esac
# Names are matched whole; fortified forms (__printf_chk) count as the plain ones.
banned() {
    echo "$undefined" | sed 's/^__\(.*\)_chk$/\1/' | grep -xE "$1" | sort -u
}
check "ends the process" \
    "$(banned 'abort|_?exit|_Exit|quick_exit|atexit|__assert_fail|__assert|raise|kill|pthread_exit')"
output='v?printf|v?fprintf|v?dprintf|puts|fputs|fputs_unlocked|putchar|putc|fputc|perror|psignal'
check "prints" "$(banned "$output|stdout|stderr|stdin")"
signals='signal|sigaction|sigprocmask|pthread_sigmask'
check "changes the process" "$(banned "$signals|setlocale|setenv|putenv|chdir|umask|srand|system|popen|fork")"
check "could make memory executable" "$(banned 'mprotect|pkey_mprotect|memfd_create|shmat')"
check "reads the environment" "$(banned 'getenv|secure_getenv')"
check "hidden state" "$(banned 'rand|random|strtok|localtime|gmtime|asctime|ctime|strerror')"

exported=$(nm -D --defined-only "$lib" |
    awk '$2 != "A" && $NF !~ /^TENON_/ { sub(/@.*/, "", $NF); print $NF }')
check "exported without tn_" "$(echo "$exported" | grep -v '^tn_')"
check "exported without a version" \
    "$(nm -D --defined-only "$lib" | awk '$2 != "A" && $NF !~ /@@TENON_[0-9.]+$/ { print $NF }')"
check "exports too little to be the library" \
    "$(echo "$exported" | grep -qx tn_context_create || echo no tn_context_create)"

# Sections .data and .bss hold what can change; the entries of the compiler's start-up code are known. The one
# exception is the message of a thread's last failure (core/fail.c).
changing=$(nm -f sysv "$lib" |
    awk -F'|' '$NF ~ /^\.(data|bss|tbss|tdata)[ \t]*$/ { gsub(/ /, "", $1); print $1 }' |
    grep -vxE '__dso_handle|__TMC_END__|completed\.[0-9]+|_edata|_end|__bss_start|\.(data|bss|tbss)' |
    grep -vx thread_failure |
    grep -v '^__gcov\|^__llvm')
check "can change, and belongs to no context" "$changing"

for file in "$lib" $tool; do
    size=$(wc -c <"$file")
    check "$file is too large" "$([ "$size" -lt $size_max ] || echo "$size bytes, $size_max allowed")"
    echo "note: $file: $size bytes"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
