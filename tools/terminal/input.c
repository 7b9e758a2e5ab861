// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command reads: whole files, token ids, and text from several arguments.
#include "tools/common.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t input_max = (size_t)256 << 20; // bytes; far above any context, far below the memory

static int read_stream(FILE *f, const char *path, char **text, size_t *n)
{
    size_t size = 1 << 16, used = 0;
    char *buf = malloc(size);
    while (buf) {
        used += fread(buf + used, 1, size - used - 1, f);
        if (used < size - 1) break;
        if (size > input_max) {
            free(buf);
            return fail(EXIT_FAILED, "%s: more than %zu MiB of input; give a smaller file", path,
                        input_max >> 20);
        }
        char *more = realloc(buf, size * 2);
        if (!more) free(buf);
        buf = more;
        size *= 2;
    }
    if (!buf) return fail(EXIT_MEMORY, "out of memory while reading %s", path);
    if (ferror(f)) {
        free(buf);
        return fail(EXIT_FAILED, "cannot read %s: %s", path, strerror(errno));
    }
    buf[used] = 0;
    *text = buf;
    *n = used;
    return 0;
}

int read_input(const char *path, char **text, size_t *n)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *f = standard ? stdin : sys_open(path, "rb");
    if (!f) return fail(EXIT_FAILED, "cannot open %s: %s", path, strerror(errno));
    int code = read_stream(f, standard ? "standard input" : path, text, n);
    if (!standard) fclose(f);
    return code;
}

static int parse_id_list(const char *text, int32_t n_vocab, int32_t *ids, size_t *n)
{
    static const char blanks[] = ", \t\r\n[]";
    for (const char *p = text + strspn(text, blanks); *p; p += strspn(p, blanks)) {
        char word[32];
        size_t len = strcspn(p, blanks);
        snprintf(word, sizeof word, "%.*s", (int)(len < 31 ? len : 31), p);
        char *end;
        errno = 0;
        long long v = strtoll(word, &end, 10);
        if (end == word || *end)
            return fail(EXIT_USAGE, "'%s' is no token id; ids are whole numbers from 0 to %d", word,
                        n_vocab - 1);
        if (errno || v < 0 || v >= n_vocab)
            return fail(EXIT_USAGE, "token id %s is out of range; this vocabulary has 0 to %d", word,
                        n_vocab - 1);
        ids[(*n)++] = (int32_t)v;
        p += len;
    }
    return 0;
}

int parse_ids(const char *text, size_t size, int32_t n_vocab, int32_t **ids, size_t *n)
{
    char *owned = NULL;
    if (strcmp(text, "-") == 0) {
        int code = read_input("-", &owned, &size);
        if (code) return code;
        text = owned;
    }
    int32_t *list = malloc((size / 2 + 1) * sizeof *list); // an id has at least one digit and a separator
    size_t count = 0;
    int code =
        !list ? fail(EXIT_MEMORY, "out of memory for the token ids")
        : memchr(text, 0, size)
            ? fail(EXIT_USAGE, "a zero byte is no token id; ids are whole numbers from 0 to %d", n_vocab - 1)
            : parse_id_list(text, n_vocab, list, &count);
    free(owned);
    if (code) {
        free(list);
        return code;
    }
    *ids = list;
    *n = count;
    return 0;
}

int join_args(const char *const *args, int n, char **text)
{
    size_t size = 1;
    for (int i = 0; i < n; i++) size += strlen(args[i]) + 1;
    char *out = malloc(size), *p = out;
    if (!out) return fail(EXIT_MEMORY, "out of memory for the arguments");
    *p = 0;
    for (int i = 0; i < n; i++) p += snprintf(p, size - (size_t)(p - out), "%s%s", i ? " " : "", args[i]);
    *text = out;
    return 0;
}
