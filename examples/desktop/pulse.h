// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How long the main loop did not come back to its timers, and whether the machine was the reason: a thread
// that only sleeps a millisecond at a time sees the same gaps if no core was free. The processor time of the
// main loop between two turns is what the program itself is to answer for.
#ifndef DESKTOP_PULSE_H
#define DESKTOP_PULSE_H

#include <glib.h>

enum { PULSE_LIMIT_US = 16000, PULSE_CLASSES = 9 };

typedef struct pulse pulse;

typedef struct pulse_result {
    gint64 longest_us;       // between two turns of the main loop
    gint64 longest_alone_us; // without the time in which the other thread was late
    gint64 longest_work_us;  // processor time of the main loop between two turns
    gint64 longest_own_us;   // without the time for which the main loop could run and got no core (Linux)
    guint n_late_own;
    gint64 starved_us;                       // longest gap of the thread
    guint n_late, n_late_alone, n_late_work; // gaps above the limit
    // gaps of up to 1, 2, 4 ... 128 ms, and longer: of the main loop, and of the thread
    guint loop[PULSE_CLASSES], control[PULSE_CLASSES];
} pulse_result;

pulse *pulse_start(void);
pulse_result pulse_stop(pulse *p); // frees it

#endif
