// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a backend has measured on this machine, in a text file in the context's directory for such results:
// a header, lines of the backend, and a hash of all that. One file for each device.
#ifndef TN_CORE_TUNING_FILE_H
#define TN_CORE_TUNING_FILE_H

#include "core/context.h"

enum { TN_TUNING_LINE_SIZE = 400 }; // bytes of a line, with its end

typedef struct tn_tuning_file {
    const char *backend;     // part of the file's name
    const char *description; // of the device and its driver: another one has a file of its own
    int32_t version;         // to be raised when lines get another meaning
} tn_tuning_file;

// Calls `line` for each line. A context without a directory has no file; one that is damaged or of another
// version counts as absent, and the latter is logged.
void tn_tuning_file_read(tn_context *ctx, const tn_tuning_file *f, void (*line)(void *user, const char *text),
                         void *user);
// Writes the lines that `line` gives for 0, 1, 2 and so on, until it returns false. A context without a
// directory: nothing.
TN_MUST_USE tn_status tn_tuning_file_write(tn_context *ctx, const tn_tuning_file *f,
                                           bool (*line)(const void *user, int32_t i,
                                                        char text[TN_TUNING_LINE_SIZE]),
                                           const void *user);

#endif
