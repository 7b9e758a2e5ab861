// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What file_map.c needs of the system (file_posix.c, file_win32.c). Paths are UTF-8. `name` and `path` are
// also for the messages of failures, which are TN_ERR_IO, or TN_ERR_MEMORY where memory was missing.
#ifndef TN_CORE_FILE_OS_H
#define TN_CORE_FILE_OS_H

#include "core/context.h"

typedef intptr_t tn_os_file; // a descriptor, or the value of a HANDLE
#define TN_OS_FILE_NONE ((tn_os_file)-1)

// Opens a regular file that is not empty for reading: by its name, or again from `descriptor` if that is not
// negative.
TN_MUST_USE tn_status tn_os_file_open(tn_context *ctx, const char *name, int32_t descriptor, tn_os_file *out,
                                      size_t *size);
void tn_os_file_close(tn_os_file file); // TN_OS_FILE_NONE is fine
TN_MUST_USE tn_status tn_os_file_size(tn_context *ctx, const char *name, tn_os_file file, size_t *size);
// Up to n bytes from `at` on; *got = 0: the file ends there.
TN_MUST_USE tn_status tn_os_file_read(tn_context *ctx, const char *name, tn_os_file file, size_t at, void *to,
                                      size_t n, size_t *got);
// Asks for bytes that will be read soon. Only a hint.
void tn_os_file_ahead(tn_os_file file, size_t at, size_t n);

TN_MUST_USE tn_status tn_os_file_map(tn_context *ctx, const char *name, tn_os_file file, size_t size,
                                     void **out);
void tn_os_file_unmap(void *base, size_t size);
// Reads pages of a mapping into memory; false: they must be read otherwise, which also finds what is wrong
// with them.
bool tn_os_file_populate(const uint8_t *base, size_t at, size_t n);

// Creates *temp beside the file that is to be *target: `path`, or what it links to. Both texts are the
// context's. A path that names something else than a regular file is refused.
TN_MUST_USE tn_status tn_os_file_create(tn_context *ctx, const char *path, char **target, char **temp,
                                        tn_os_file *out);
TN_MUST_USE tn_status tn_os_file_write(tn_context *ctx, const char *path, tn_os_file file, const void *bytes,
                                       size_t n);
// Makes what was written durable, closes the file and gives it the name `target`, all of it or nothing.
// Closes it in any case.
TN_MUST_USE tn_status tn_os_file_replace(tn_context *ctx, tn_os_file file, const char *temp,
                                         const char *target);
void tn_os_file_remove(const char *path);

#endif
