#!/bin/sh
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# A build with -Dportable_os=true asks for no function that Linux has and macOS has not, be it one of POSIX
# ("Function Substitutes" in the manual of gnulib, and the manual pages of both systems).
#     portable.sh LIBTENON.so TENON
set -eu
command -v nm >/dev/null 2>&1 || { echo "SKIP: nm is not installed" && exit 77; }
absent='posix_fadvise|posix_fallocate|pthread_(barrier|spin)_.*|pthread_condattr_setclock'
absent="$absent|pthread_mutex_(timed|clock)lock|pthread_setschedprio|clock_nanosleep|clock_getcpuclockid"
absent="$absent|sem_(init|destroy|timedwait|getvalue)|timer_.*|mq_.*|sigtimedwait|sigwaitinfo|sigqueue"
absent="$absent|sched_[gs]et(param|scheduler|affinity)"
absent="$absent|syscall|futex|epoll_.*|eventfd|signalfd|timerfd_.*|inotify_.*|memfd_create|(arch_)?prctl"
absent="$absent|getauxval|gettid|pipe2|accept4|dup3|ppoll|mremap|fallocate|sync_file_range|splice|sendfile"
absent="$absent|statx|getrandom|strchrnul|mempcpy|rawmemchr|memrchr|canonicalize_file_name|secure_getenv"
absent="$absent|qsort_r|fopencookie|madvise|dladdr|flock"
absent="$absent|pthread_(setname_np|attr_setsigmask_np|setaffinity_np|timedjoin_np|tryjoin_np)"
code=0
for file; do
    asked=$(nm -D --undefined-only "$file" | awk '{ sub(/@.*/, "", $NF); print $NF }' | sed 's/64$//')
    echo "$asked" | grep -qx 'pthread_create' || { echo "$file: has no list of functions" && code=1; }
    found=$(echo "$asked" | grep -xE "$absent") || true
    [ -z "$found" ] || { echo "$file:" $found && code=1; }
done
exit $code
