// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Files that are read, mapped or not, and atomic file writing.
#ifndef TN_CORE_FILE_MAP_H
#define TN_CORE_FILE_MAP_H

#include "core/context.h"

typedef struct tn_file_map {
    const uint8_t *data; // NULL: the file is read only by tn_file_map_read
    size_t size;         // bytes that the file had when it was opened
    void *handle;        // NULL when data is borrowed memory; else the system's side
} tn_file_map;

// Maps a regular file; directories, devices and pipes are refused with a message.
TN_MUST_USE tn_status tn_file_map_open(tn_context *ctx, const char *path, tn_file_map *out);
// The same for a file that is already open, unless `descriptor` is negative. `name` is then only for
// messages, the descriptor stays the caller's, and its position is not used. mapped = false: data stays NULL.
TN_MUST_USE tn_status tn_file_map_open_as(tn_context *ctx, const char *name, int32_t descriptor, bool mapped,
                                          tn_file_map *out);
// A page of a mapping that the file no longer has, or that the disk cannot give, ends the process when it is
// touched. These functions give TN_ERR_IO instead. Each bounds the range by the size at opening.
// Copies n bytes from `at` on, however many reads that takes. Borrowed memory is copied.
TN_MUST_USE tn_status tn_file_map_read(tn_context *ctx, const tn_file_map *map, size_t at, void *to,
                                       size_t n);
// Reads pages of a mapping into memory, and asks for those behind them, so that the disk stays busy.
TN_MUST_USE tn_status tn_file_map_fetch(tn_context *ctx, const tn_file_map *map, size_t at, size_t n);
// Whether the file still has the bytes that it had.
TN_MUST_USE tn_status tn_file_map_check(tn_context *ctx, const tn_file_map *map);
bool tn_file_exists(const char *path);
// True if both exist and are one file, links followed: checked before one is written while the other is read.
// A path whose status cannot be read is no file.
bool tn_same_file(const char *a, const char *b);
// Copies bytes that may lie in a mapped file of the context. If they do, they are read from the file instead
// of the map: that saves a page fault per page, and the bytes behind them are requested ahead, so that
// several threads that copy a file in order keep the disk busy. TN_ERR_IO.
TN_MUST_USE tn_status tn_file_map_copy(tn_context *ctx, void *to, const void *from, size_t n);
void tn_file_map_close(tn_context *ctx, tn_file_map *map);

// A file that appears under `path` only when complete: written beside it, synced, renamed.
typedef struct tn_file_writer tn_file_writer;
TN_MUST_USE tn_status tn_file_writer_open(tn_context *ctx, const char *path, tn_file_writer **out);
TN_MUST_USE tn_status tn_file_writer_write(tn_file_writer *w, const void *bytes, size_t n);
// Makes the file appear; on failure nothing appears. Frees the writer in both cases and clears *w.
TN_MUST_USE tn_status tn_file_writer_commit(tn_file_writer **w);
void tn_file_writer_abort(tn_file_writer **w); // removes what was written; NULL is fine

#endif
