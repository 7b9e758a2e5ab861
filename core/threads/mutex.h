// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A lock whose waiting threads sleep. Zeroed memory is an open one; nothing is to be made or freed, and it
// takes no call of the system unless a thread has to wait.
#ifndef TN_CORE_MUTEX_H
#define TN_CORE_MUTEX_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct tn_mutex {
    _Atomic uint32_t word; // 0: open, 1: locked, 2: locked, and threads may sleep
} tn_mutex;

void tn_mutex_lock(tn_mutex *m);
void tn_mutex_unlock(tn_mutex *m);

#endif
