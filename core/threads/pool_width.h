// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How many threads of a pool take part in work: no more than there are cores that nobody else keeps busy. A
// thread that shares its core with another program makes the others wait for its part each time that the
// system takes the core away, for milliseconds: two threads on two cores of which one was busy were four
// times slower than one thread.
//
// Each thread compares how long it wanted to run with how long it did. Where two threads lost more than a
// quarter, or more threads an eighth, the width falls. After a while the pool tries a larger width again,
// and if that one fails too it waits longer before the next attempt.
#ifndef TN_CORE_POOL_WIDTH_H
#define TN_CORE_POOL_WIDTH_H

#include "core/compiler.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_pool_width {
    _Atomic int32_t now;       // threads that take part, the calling one included; at least 1
    _Atomic int32_t most;      // n_threads, or the cores that this process may use if these are fewer
    int32_t n_threads;         // of the context
    bool fixed;                // by a test
    _Atomic uint64_t next_ns;  // nobody changes the width before
    _Atomic uint64_t hold_ns;  // how long the width stays after it fell
    _Atomic uint64_t rose_ns;  // when it rose last
    _Atomic uint64_t cores_ns; // when the cores were counted last
} tn_pool_width;

// What a thread measures of itself between two times at which it slept.
typedef struct tn_pool_meter {
    uint64_t wall_ns, cpu_ns;       // when it began
    uint64_t wall_total, cpu_total; // of earlier times
} tn_pool_meter;

void tn_pool_width_init(tn_pool_width *w, int32_t n_threads);
// Counts the cores again if that was long ago, and tries a larger width if it is time: true if it rose.
bool tn_pool_width_update(tn_pool_width *w, uint64_t now_ns);

// The thread begins to run, and is going to sleep.
void tn_pool_meter_begin(tn_pool_meter *m, uint64_t now_ns);
void tn_pool_meter_end(tn_pool_meter *m, tn_pool_width *w, uint64_t now_ns);
// Now and then in between.
void tn_pool_meter_update(tn_pool_meter *m, tn_pool_width *w, uint64_t now_ns);

#endif
