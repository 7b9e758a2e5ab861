// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Shortens the text of a plan: where lines repeat that differ only in the numbers of layers, values and
// places in memory, the first of these runs is printed, with how often it comes.
#include "graph/dump.h"

#include <ctype.h>
#include <string.h>

enum {
    PERIOD_MAX = 400,
    LEAST_SAVED = 4, // lines
    DETAIL = 8
}; // blanks before a line that belongs to the one above it: no run begins there

typedef struct line {
    const char *text;
    size_t n;
    uint64_t hash; // of the text without such numbers
} line;

// A number that follows one of these distinguishes one layer or value from another: blk.3, rms_norm_16,
// @9216. So does the number of a step, at the beginning of its line.
static bool is_counter(const char *begin, const char *at)
{
    if (at == begin) return true;
    while (at > begin && at[-1] == ' ') at--;
    return at == begin || strchr("._@+", at[-1]) != NULL;
}

static uint64_t hash_line(const char *text, size_t n)
{
    uint64_t h = 14695981039346656037u; // FNV-1a
    // Blanks before the number of a step are as many as it leaves.
    size_t blanks = strspn(text, " ");
    if (blanks < n && isdigit((unsigned char)text[blanks])) text += blanks, n -= blanks;
    for (size_t i = 0; i < n; i++) {
        bool first = isdigit((unsigned char)text[i]) && is_counter(text, text + i);
        while (first && i + 1 < n && isdigit((unsigned char)text[i + 1])) i++;
        h = (h ^ (first ? (unsigned char)'#' : (unsigned char)text[i])) * 1099511628211u;
    }
    return h;
}

static int32_t split(const char *text, line *lines)
{
    int32_t n = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (lines) lines[n] = (line){text, length, hash_line(text, length)};
        n++;
        text += length + (text[length] == '\n');
    }
    return n;
}

// How often the `period` lines from `at` on come one after the other.
static int32_t count(const line *lines, int32_t n, int32_t at, int32_t period)
{
    int32_t i = at + period;
    while (i < n && lines[i].hash == lines[i - period].hash) i++;
    return (i - at) / period;
}

void tn_dump_collapse(tn_context *ctx, const char *text, tn_strbuf *out)
{
    int32_t n = split(text, NULL);
    line *lines = tn_calloc(ctx, (size_t)n + 1, sizeof *lines);
    if (!lines) {
        out->status = TN_ERR_MEMORY;
        return;
    }
    split(text, lines);
    for (int32_t i = 0; i < n;) {
        int32_t best = 1, times = 1;
        bool detail = lines[i].n > DETAIL && strncmp(lines[i].text, "        ", DETAIL) == 0;
        for (int32_t period = 1; !detail && period <= PERIOD_MAX && i + 2 * period <= n; period++) {
            int32_t k = count(lines, n, i, period);
            if ((k - 1) * period > (times - 1) * best) best = period, times = k;
        }
        bool shorten = (times - 1) * best >= LEAST_SAVED;
        if (shorten) tn_strbuf_printf(out, "  x %d, apart only in their numbers:\n", times);
        for (int32_t k = 0; k < best; k++) {
            tn_strbuf_puts(out, shorten ? "  | " : "");
            tn_strbuf_append(out, lines[i + k].text, lines[i + k].n);
            tn_strbuf_puts(out, "\n");
        }
        i += best * (shorten ? times : 1);
    }
    tn_free(ctx, lines);
}
