// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Waiting for the event of an engine, for tests that are built for Windows.
#ifndef TN_TESTS_WINDOWS_POLL_H
#define TN_TESTS_WINDOWS_POLL_H

#include <stdint.h>

enum { POLLIN = 1 };
struct pollfd {
    int fd; // the value of a HANDLE
    short events, revents;
};

__declspec(dllimport) unsigned long __stdcall WaitForSingleObject(void *, unsigned long);

static inline int poll(struct pollfd *p, int n, int milliseconds)
{
    (void)n;
    p->revents = WaitForSingleObject((void *)(intptr_t)p->fd, (unsigned long)milliseconds) == 0 ? POLLIN : 0;
    return p->revents ? 1 : 0;
}

#endif
