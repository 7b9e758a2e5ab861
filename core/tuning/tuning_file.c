// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "core/tuning/tuning_file.h"

#include "core/os/file_map.h"
#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tenon/version.h>

enum {
    PATH_SIZE = 1024,
    SUM_LINE = 4 + 16 + 1, // "sum ", a hash in hexadecimal, the end of the line
};

static uint64_t hash_of(const void *bytes, size_t n)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, bytes, n);
    return tn_hash_value(&h);
}

// tuning-<backend>-<hash of the description>.txt
static bool file_path(const tn_context *ctx, const tn_tuning_file *f, char path[PATH_SIZE])
{
    const char *dir = tn_context_cache_dir(ctx);
    if (!dir) return false;
    uint64_t h = hash_of(f->description, strlen(f->description));
    int n = snprintf(path, PATH_SIZE, "%s/tuning-%s-%016" PRIx64 ".txt", dir, f->backend, h);
    return n > 0 && n < PATH_SIZE;
}

static size_t header(const tn_tuning_file *f, char text[TN_TUNING_LINE_SIZE])
{
    int n = snprintf(text, TN_TUNING_LINE_SIZE, "tenon tuning %d of %s kernels on %s\n", f->version,
                     TENON_VERSION, f->description);
    return n > 0 && n < TN_TUNING_LINE_SIZE ? (size_t)n : 0;
}

// --- reading -------------------------------------------------------------------------------------------

// Whether the text starts with the header of another version: its lines may mean something else. The header
// of every version starts with "tenon "; a file that does not is damaged.
static bool is_of_another_version(const char *text, size_t size, const char *head, size_t head_size)
{
    static const char start[] = "tenon ";
    if (size < sizeof start - 1 || memcmp(text, start, sizeof start - 1) != 0) return false;
    return size < head_size || memcmp(text, head, head_size) != 0;
}

static bool sum_is_right(const char *text, size_t end)
{
    char sum[SUM_LINE + 1];
    snprintf(sum, sizeof sum, "sum %016" PRIx64 "\n", hash_of(text, end));
    return memcmp(text + end, sum, SUM_LINE) == 0;
}

static void parse(tn_context *ctx, const tn_tuning_file *f, const char *path, const tn_file_map *map,
                  void (*line)(void *user, const char *text), void *user)
{
    const char *text = (const char *)map->data;
    char head[TN_TUNING_LINE_SIZE];
    size_t n = header(f, head);
    if (n == 0) return;
    if (is_of_another_version(text, map->size, head, n)) {
        tn_log(ctx, TN_LOG_WARN,
               "tuning file %s is of another version and is not used; run bench --tune again", path);
        return;
    }
    if (map->size < n + SUM_LINE || memcmp(text, head, n) != 0 || !sum_is_right(text, map->size - SUM_LINE))
        return;
    size_t end = map->size - SUM_LINE;
    while (n < end) {
        const char *newline = memchr(text + n, '\n', end - n);
        size_t length = newline ? (size_t)(newline - (text + n)) : 0;
        char one[TN_TUNING_LINE_SIZE];
        if (!newline || length >= sizeof one) return;
        memcpy(one, text + n, length);
        one[length] = 0;
        line(user, one);
        n += length + 1;
    }
}

void tn_tuning_file_read(tn_context *ctx, const tn_tuning_file *f, void (*line)(void *user, const char *text),
                         void *user)
{
    char path[PATH_SIZE];
    tn_file_map map;
    if (!file_path(ctx, f, path) || !tn_file_exists(path) || tn_file_map_open(ctx, path, &map) != TN_OK)
        return;
    parse(ctx, f, path, &map, line, user);
    tn_file_map_close(ctx, &map);
}

// --- writing -------------------------------------------------------------------------------------------

static tn_status put(tn_file_writer *w, tn_hash *sum, const char *text, size_t n)
{
    tn_hash_add(sum, text, n);
    return tn_file_writer_write(w, text, n);
}

tn_status tn_tuning_file_write(tn_context *ctx, const tn_tuning_file *f,
                               bool (*line)(const void *user, int32_t i, char text[TN_TUNING_LINE_SIZE]),
                               const void *user)
{
    char path[PATH_SIZE], text[TN_TUNING_LINE_SIZE + 1];
    tn_file_writer *w;
    tn_hash sum;
    if (!file_path(ctx, f, path)) return TN_OK;
    tn_status status = tn_file_writer_open(ctx, path, &w);
    if (status != TN_OK) return status;
    tn_hash_init(&sum);
    status = put(w, &sum, text, header(f, text));
    for (int32_t i = 0; status == TN_OK && line(user, i, text); i++) {
        size_t n = strlen(text);
        text[n] = '\n';
        status = put(w, &sum, text, n + 1);
    }
    int n = snprintf(text, sizeof text, "sum %016" PRIx64 "\n", tn_hash_value(&sum));
    if (status == TN_OK) status = tn_file_writer_write(w, text, (size_t)n);
    if (status == TN_OK) return tn_file_writer_commit(&w);
    tn_file_writer_abort(&w);
    return status;
}
