// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What an engine with a thread of its own needs of the system: something that a program can wait for
// together with its other work. POSIX: a descriptor that is readable. Windows: an event that is set, by the
// value of its HANDLE.
#ifndef TN_MODELS_ENGINE_OS_H
#define TN_MODELS_ENGINE_OS_H

#include "core/context.h"

// Readable, or set, from a raise until the next clear.
typedef struct tn_os_signal {
    int32_t read, write; // may be equal; -1: none
} tn_os_signal;
// TN_ERR_IO: the process may open no more files.
TN_MUST_USE tn_status tn_os_signal_open(tn_context *ctx, tn_os_signal *out);
void tn_os_signal_close(tn_os_signal *s);
void tn_os_signal_raise(const tn_os_signal *s);
void tn_os_signal_clear(const tn_os_signal *s);

#endif
