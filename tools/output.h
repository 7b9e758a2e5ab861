// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Standard output with errors that are not lost, and files that appear complete or not at all.
#ifndef TENON_TOOLS_OUTPUT_H
#define TENON_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

// Writes to standard output and flushes. False after a failure: the reader is gone.
bool out_write(const void *data, size_t n);
bool out_flush(void);
// Flushes at the end: `code`, or 1 with a message if output was lost. A reader that left early is no failure.
int out_close(int code);

// Whether the path is a device, pipe or socket: a rename would destroy it rather than fill it.
bool out_is_special(const char *path);

typedef struct out_file {
    FILE *f;
    char *path, *temp; // temp is NULL: written in place (standard output, devices, pipes)
} out_file;
// "-" is standard output; a folder is refused. 0, or an exit code after a message.
int out_file_open(out_file *out, const char *path);
// Little-endian f32. False after a failure, which commit reports.
bool out_file_floats(out_file *out, const float *values, size_t n);
// Makes the file appear. 0, or an exit code after a message; *out is done with either way.
int out_file_commit(out_file *out);
// Removes the incomplete file; does nothing after commit.
void out_file_abort(out_file *out);

#endif
