// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of the ops that reduce rows.
#include "ops/sample.h"
#include "tests/check/bench.h"

// Rows of one kind of sampler, with logits as spread as those of models, or nearly equal as those of models
// with random weights.
static void bench_sample(bench_run *r, const char *name, const tn_sample_row *p, double spread)
{
    static const int64_t counts[] = {1, 32, 128, 256};
    for (size_t i = 0; i < TN_COUNT(counts) && bench_is_device(r); i++) {
        bench_case b = {.c = bench_named(TN_OP_sample, "")};
        check_range(check_mat(&b.c, TN_TYPE_F32, counts[i], BENCH_VOCAB), CHECK_NORMAL, 0, spread);
        int64_t words = counts[i] * TN_SAMPLE_ROW_WORDS;
        int32_t *rows = check_ints(&b.c, check_mat(&b.c, TN_TYPE_I32, counts[i], TN_SAMPLE_ROW_WORDS), words);
        for (int64_t k = 0; k < counts[i]; k++) {
            tn_sample_row row = *p;
            row.random_high = (uint32_t)k * 0x9e3779b9u;
            memcpy(rows + k * TN_SAMPLE_ROW_WORDS, &row, sizeof row);
        }
        snprintf(b.c.note, sizeof b.c.note, "%s [%d, %d]", name, (int)counts[i], BENCH_VOCAB);
        check_bench_case(r, &b);
    }
}

static void bench_samplers(bench_run *r)
{
    const tn_sample_row best = {.kind = TN_SAMPLE_BEST, .mask = -1}, plain = {.kind = TN_SAMPLE_DRAW,
                                                                              .filter_temperature = 1.0f,
                                                                              .temperature = 0.8f,
                                                                              .top_p = 1.0f,
                                                                              .mask = -1};
    tn_sample_row top_p = plain, all = plain;
    top_p.top_p = 0.95f;
    all.top_p = 0.95f, all.top_k = 40, all.min_p = 0.05f;
    bench_sample(r, "best", &best, 3);
    bench_sample(r, "temperature", &plain, 3);
    bench_sample(r, "top-p", &top_p, 3);
    bench_sample(r, "top-p, flat", &top_p, 0.2);
    bench_sample(r, "top-k, top-p, min-p", &all, 3);
    all.n_top = 5;
    bench_sample(r, "and 5 log probabilities", &all, 3);
}

void check_bench_softmax(bench_run *r)
{
    for (int32_t i = 0; i < bench_n_rows(r); i++) {
        int64_t m = bench_rows_of(r, i), model[] = {m, BENCH_D_MODEL}, vocab[] = {m, BENCH_VOCAB};
        check_case c = bench_named(TN_OP_softmax, "");
        bench_rows(r, &c, 1, 0, model);
        c = bench_named(TN_OP_reduce, "sum");
        bench_rows(r, &c, 1, 0, model);
        if (m > 32) continue; // logits of that many rows would take gigabytes
        c = bench_named(TN_OP_argmax, "");
        bench_rows(r, &c, 1, 0, vocab);
        c = bench_named(TN_OP_argmax_logprob, "");
        bench_rows(r, &c, 1, 0, vocab);
    }
    bench_samplers(r);
}
