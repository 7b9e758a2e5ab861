// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Two runs over the same text: the base run writes its log-probabilities, another is compared with them by
// the Kullback-Leibler divergence KL(base || this) = sum p_base (ln p_base - ln p_this).
//
// File, all little-endian: "TENONKL1"; u32 window, vocabulary, windows; i32 tokens [windows * window]; then
// f32 log-probabilities [windows * (window - window / 2 - 1), vocabulary].
#include "tools/commands/perplexity.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'T', 'E', 'N', 'O', 'N', 'K', 'L', '1'};

static void encode32(unsigned char *out, uint32_t v)
{
    for (int k = 0; k < 4; k++) out[k] = (unsigned char)(v >> (8 * k));
}

static uint32_t decode32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// In place: numbers of this machine to little-endian and back.
static void swap_row(void *row, size_t n)
{
    unsigned char *p = row;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = decode32(p + 4 * i);
        memcpy(p + 4 * i, &v, 4);
    }
}

static size_t rows_per_window(int32_t window)
{
    return (size_t)(window - window / 2 - 1);
}

// --- the base run ----------------------------------------------------------------------------------------

static int base_fail(const char *path, const char *reason)
{
    return fail(EXIT_FAILED, "--kl %s: %s; write it anew with --kl-base", path, reason);
}

// The size that follows from the head must be the size of the file.
static bool size_fits(FILE *f, const uint32_t head[3])
{
    sys_status st;
    if (!sys_stream_status(f, &st) || st.kind != SYS_FILE) return false;
    double rows = (double)head[2] * (double)rows_per_window((int32_t)head[0]);
    double size = 20.0 + 4.0 * (double)head[2] * (double)head[0] + 4.0 * rows * (double)head[1];
    return size == (double)st.size; // exact: far below 2^53 for every file there is
}

static int read_base_tokens(ppl_state *s, const char *path)
{
    size_t n = (size_t)s->window * (size_t)s->base_chunks;
    int32_t *ids = malloc(n * sizeof *ids);
    if (!ids) return fail(EXIT_MEMORY, "out of memory for %zu tokens", n);
    bool ok = fread(ids, 4, n, s->base) == n;
    swap_row(ids, n);
    for (size_t i = 0; ok && i < n; i++) ok = ids[i] >= 0 && ids[i] < s->info.n_vocab;
    bool same = !s->ids || (s->n_ids >= n && memcmp(s->ids, ids, n * sizeof *ids) == 0);
    free(s->ids);
    s->ids = ids;
    s->n_ids = n;
    if (!ok) return base_fail(path, "its tokens are damaged");
    return same ? 0
                : fail(EXIT_USAGE,
                       "--kl %s was made from another text than -f, or with other tokens; leave -f away",
                       path);
}

int kl_open_base(ppl_state *s)
{
    const char *path = opt_text(s->t.opt, OPT_KL);
    unsigned char head[20];
    if (!path) return 0;
    s->base = sys_open(path, "rb");
    if (!s->base) return fail(EXIT_FAILED, "cannot open %s: %s", path, strerror(errno));
    if (fread(head, 1, sizeof head, s->base) != sizeof head || memcmp(head, magic, sizeof magic) != 0)
        return base_fail(path, "not a file of log-probabilities");
    uint32_t n[3];
    for (int i = 0; i < 3; i++) n[i] = decode32(head + 8 + 4 * i);
    if (n[0] < 4 || n[0] > (uint32_t)opt_rows[OPT_WINDOW].max_int || n[2] == 0 || n[2] > INT32_MAX ||
        !size_fits(s->base, n))
        return base_fail(path, "damaged or cut");
    if (n[1] != (uint32_t)s->info.n_vocab)
        return fail(EXIT_FAILED,
                    "--kl %s has a vocabulary of %u tokens, %s one of %d: they cannot be compared", path,
                    n[1], s->path, s->info.n_vocab);
    int64_t asked = opt_int(s->t.opt, OPT_WINDOW);
    if (asked > 0 && asked != (int64_t)n[0])
        return fail(EXIT_USAGE, "--kl %s has windows of %u tokens; leave -c away", path, n[0]);
    s->window = (int32_t)n[0];
    s->base_chunks = (int32_t)n[2];
    return read_base_tokens(s, path);
}

// --- rows ------------------------------------------------------------------------------------------------

int kl_open_new(ppl_state *s)
{
    const char *path = opt_text(s->t.opt, OPT_KL_BASE);
    if (!path && !s->base) return 0;
    size_t n = (size_t)s->n_chunks * rows_per_window(s->window);
    s->row = malloc((size_t)s->info.n_vocab * sizeof *s->row);
    if (s->base) s->kl = malloc(n * sizeof *s->kl);
    if (!s->row || (s->base && !s->kl)) return fail(EXIT_MEMORY, "out of memory for %zu divergences", n);
    if (!path) return 0;
    int code = out_file_open(&s->out, path);
    if (code) return code;
    unsigned char head[20];
    memcpy(head, magic, sizeof magic);
    encode32(head + 8, (uint32_t)s->window);
    encode32(head + 12, (uint32_t)s->info.n_vocab);
    encode32(head + 16, (uint32_t)s->n_chunks);
    fwrite(head, 1, sizeof head, s->out.f);
    for (size_t i = 0; i < (size_t)s->n_chunks * (size_t)s->window; i++) {
        unsigned char id[4];
        encode32(id, (uint32_t)s->ids[i]);
        fwrite(id, 1, 4, s->out.f);
    }
    return 0; // commit reports a failure
}

static bool write_row(ppl_state *s, const float *logits, double total)
{
    size_t n = (size_t)s->info.n_vocab;
    for (size_t i = 0; i < n; i++) {
        float v = (float)(logits[i] - total);
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        encode32((unsigned char *)&s->row[i], bits);
    }
    return fwrite(s->row, 4, n, s->out.f) == n;
}

static bool compare_row(ppl_state *s, const float *logits, double total, int32_t next)
{
    size_t n = (size_t)s->info.n_vocab;
    if (fread(s->row, 4, n, s->base) != n) return false;
    swap_row(s->row, n);
    double kl = 0;
    size_t best = 0, base_best = 0;
    for (size_t i = 0; i < n; i++) {
        double base = s->row[i], p = exp(base);
        // The base was stored as f32. This run is converted too, so that a run compared with itself gives
        // exactly 0.
        if (p > 0) kl += p * (base - (double)(float)(logits[i] - total));
        if (logits[i] > logits[best]) best = i;
        if (s->row[i] > s->row[base_best]) base_best = i;
    }
    s->kl[s->n_scored - 1] = (float)kl;
    s->n_same += best == base_best;
    s->base_sum -= s->row[next];
    return true;
}

bool kl_row(ppl_state *s, const float *logits, double total, int32_t next)
{
    if (s->out.f) return write_row(s, logits, total);
    return !s->base || compare_row(s, logits, total, next);
}

int kl_commit(ppl_state *s)
{
    return s->out.f ? out_file_commit(&s->out) : 0;
}

void kl_close(ppl_state *s)
{
    out_file_abort(&s->out);
    if (s->base) fclose(s->base);
    free(s->row);
    free(s->kl);
}

// --- result ----------------------------------------------------------------------------------------------

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void kl_print(const ppl_state *s, json *j)
{
    if (!s->base) return;
    size_t n = (size_t)s->n_scored;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += s->kl[i];
        squares += (double)s->kl[i] * s->kl[i];
    }
    qsort(s->kl, n, sizeof *s->kl, compare_floats);
    double mean = sum / (double)n, variance = squares / (double)n - mean * mean;
    double error = n > 1 && variance > 0 ? sqrt(variance / (double)(n - 1)) : 0;
    double base = exp(s->base_sum / (double)n), same = 100.0 * (double)s->n_same / (double)n;
    double median = s->kl[n / 2], high = s->kl[(n - 1) * 99 / 100], max = s->kl[n - 1];
    if (!j) {
        printf("base perplexity = %.4f\n", base);
        printf("KL divergence = %.6g ± %.2g nats (median %.3g, 99 %% %.3g, largest %.3g)\n", mean, error,
               median, high, max);
        printf("same first choice = %.2f %%\n", same);
        return;
    }
    json_number(j, "base_perplexity", base);
    json_object(j, "kl");
    json_number(j, "mean", mean);
    json_number(j, "error", error);
    json_number(j, "median", median);
    json_number(j, "p99", high);
    json_number(j, "max", max);
    json_end_object(j);
    json_number(j, "same_first_choice_percent", same);
}
