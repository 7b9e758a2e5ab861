// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of a POSIX system that threads signal. Linux has eventfd(2), one descriptor with a counter;
// elsewhere a pipe does the same.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "models/engine/os.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

tn_status tn_os_signal_open(tn_context *ctx, tn_os_signal *out)
{
#if defined(__linux__)
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool ok = fd >= 0;
    if (ok) *out = (tn_os_signal){fd, fd};
#else
    int ends[2];
    bool ok = pipe(ends) == 0;
    for (int i = 0; ok && i < 2; i++) {
        fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    if (ok) *out = (tn_os_signal){ends[0], ends[1]};
#endif
    return ok ? TN_OK : tn_fail(ctx, TN_ERR_IO, "cannot open a descriptor for events: error %d", errno);
}

void tn_os_signal_close(tn_os_signal *s)
{
    if (s->read >= 0) close(s->read);
    if (s->write >= 0 && s->write != s->read) close(s->write);
    *s = (tn_os_signal){-1, -1};
}

void tn_os_signal_raise(const tn_os_signal *s)
{
    // The 8 bytes that eventfd wants. A full counter or pipe is readable already.
    uint64_t one = 1;
    while (write(s->write, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void tn_os_signal_clear(const tn_os_signal *s)
{
    uint64_t bytes[16];
    ssize_t n;
    do n = read(s->read, bytes, sizeof bytes);
    while (n == (ssize_t)sizeof bytes || (n < 0 && errno == EINTR));
}
