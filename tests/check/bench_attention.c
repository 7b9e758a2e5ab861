// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks and times attention:
//   bench_attention            every kernel against the reference; bits of a token alone and in a batch
//   bench_attention time [N]   prefill of 512 and 4096 tokens, decode at 4k and 32k keys, N threads
#include "tests/check/bench_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A batch of sequences: lengths of what is asked and of what the cache holds.
typedef struct batch {
    int64_t heads, kv, d, dv, block;
    tn_dtype k_type, v_type;
    int n_seq;
    int64_t n_tokens[4], kv_len[4];
    bool sinks;
} batch;

static bench_case make_case(const batch *b, const tn_attention_params *p)
{
    bench_case c = {.op = TN_OP_attention, .params = p, .n_src = b->sinks ? 7 : 6, .n_dst = 1};
    int64_t tokens = 0, most = 1, n_blocks = 3;
    for (int s = 0; s < b->n_seq; s++) {
        int64_t blocks = (b->kv_len[s] + b->block - 1) / b->block;
        tokens += b->n_tokens[s];
        most = TN_MAX(most, blocks);
        n_blocks += blocks;
    }
    c.src[0] = bench_view(TN_TYPE_F32, 1, tokens, b->heads, b->d);
    c.src[1] = bench_view(b->k_type, n_blocks, b->kv, b->block, b->d);
    c.src[2] = bench_view(b->v_type, n_blocks, b->kv, b->block, b->dv);
    c.src[3] = bench_view(TN_TYPE_I32, 1, 1, 1, b->n_seq + 1);
    c.src[4] = bench_view(TN_TYPE_I32, 1, 1, 1, b->n_seq);
    c.src[5] = bench_view(TN_TYPE_I32, 1, 1, b->n_seq, most);
    c.src[6] = bench_view(TN_TYPE_F32, 1, 1, 1, b->heads);
    for (int i = 0; i < 3; i++) bench_fill(&c.src[i], 1.0f);
    bench_fill(&c.src[6], 2.0f);
    int32_t *start = c.src[3].data, *len = c.src[4].data, *table = c.src[5].data;
    int64_t next = n_blocks; // blocks are handed out downwards; what is not used is no block number
    start[0] = 0;
    for (int s = 0; s < b->n_seq; s++) {
        start[s + 1] = start[s] + (int32_t)b->n_tokens[s];
        len[s] = (int32_t)b->kv_len[s];
        for (int64_t i = 0; i < most; i++)
            table[s * most + i] = i * b->block < b->kv_len[s] ? (int32_t)--next : -7;
    }
    c.dst[0] = bench_view(TN_TYPE_F32, 1, tokens, b->heads, b->dv);
    return c;
}

static void free_case(bench_case *c)
{
    for (int i = 0; i < 7; i++) bench_free(&c->src[i]);
    bench_free(&c->dst[0]);
}

// One token of sequence 0 alone must give the bits it has in the batch. Kernels are flagged otherwise.
static void check_alone(const bench_case *c, const batch *b)
{
    for (const tn_cpu_kernel *k = bench_next_kernel(c->op, NULL); k; k = bench_next_kernel(c->op, k)) {
        tn_step all = bench_step(c), one = all;
        bench_run(k, &all, 1);
        tn_view y = bench_view(TN_TYPE_F32, 1, 1, b->heads, b->dv);
        for (int64_t t = 0; t < b->n_tokens[0] && !(k->flags & TN_CPU_BATCH_VARIANT); t += 1 + t / 3) {
            int32_t start[2] = {0, 1}, len = (int32_t)(b->kv_len[0] - b->n_tokens[0] + t + 1);
            if (len <= 0) continue;
            one.src[0].data = (char *)c->src[0].data + t * c->src[0].nb[1];
            one.src[0].ne[1] = 1;
            one.src[3].data = start;
            one.src[3].ne[3] = 2;
            one.src[4].data = &len;
            one.src[4].ne[3] = one.src[5].ne[2] = 1;
            one.dst[0] = y;
            bench_run(k, &one, 2);
            const char *want = (const char *)c->dst[0].data + t * c->dst[0].nb[1];
            char text[64];
            snprintf(text, sizeof text, "token %d alone has other bits", (int)t);
            if (memcmp(y.data, want, (size_t)(b->heads * b->dv) * sizeof(float)) != 0)
                bench_fail(k->name, c->note, text);
        }
        bench_free(&y);
    }
}

static void check_one(const batch *b, const tn_attention_params *p, const char *note)
{
    bench_case c = make_case(b, p);
    snprintf(c.note, sizeof c.note, "%s", note);
    bench_check(&c);
    if (p->causal) check_alone(&c, b);
    free_case(&c);
}

static void check_all(void)
{
    static const tn_attention_params params[] = {
        {.scale = 0.125f, .causal = 1},
        {.scale = 0.125f},
        {.scale = 0.2f, .causal = 1, .window = 37},
        {.scale = 0.2f, .causal = 1, .chunk = 64},
        {.scale = 0.5f, .causal = 1, .softcap = 5.0f},
        {.scale = 0.125f, .causal = 1, .max_bias = 8.0f},
        {.scale = 0.125f, .max_bias = 8.0f, .window = 50},
        {.scale = 30.0f, .causal = 1},
    };
    static const batch batches[] = {
        {4, 2, 64, 64, 16, TN_TYPE_F32, TN_TYPE_F32, 2, {5, 1}, {5, 40}, false},
        {6, 2, 40, 24, 32, TN_TYPE_F16, TN_TYPE_BF16, 3, {70, 1, 2}, {70, 300, 130}, true},
        {7, 1, 128, 64, 16, TN_TYPE_Q8_0, TN_TYPE_Q4_0, 2, {3, 30}, {200, 90}, false},
        {3, 3, 96, 96, 64, TN_TYPE_BF16, TN_TYPE_F16, 1, {20}, {160}, true},
        {1, 1, 7, 3, 8, TN_TYPE_F16, TN_TYPE_F16, 4, {1, 0, 3, 1}, {1, 9, 3, 130}, true},
        {12, 1, 32, 64, 16, TN_TYPE_Q4_0, TN_TYPE_Q8_0, 2, {1, 9}, {129, 9}, false},
        {2, 1, 32, 32, 16, TN_TYPE_F16, TN_TYPE_F16, 2, {1, 4}, {2500, 1100}, true},
    };
    for (size_t i = 0; i < TN_COUNT(batches); i++)
        for (size_t j = 0; j < TN_COUNT(params); j++) {
            char note[32];
            snprintf(note, sizeof note, "batch %zu params %zu", i, j);
            check_one(&batches[i], &params[j], note);
        }
}

static void time_one(const char *note, int64_t tokens, int64_t kv_len, tn_dtype type, int n_threads)
{
    tn_attention_params p = {.scale = 0.088f, .causal = 1};
    batch b = {32, 8, 128, 128, 64, type, type, 1, {tokens}, {kv_len}, false};
    bench_case c = make_case(&b, &p);
    int64_t pairs = tokens * kv_len - tokens * (tokens - 1) / 2;
    snprintf(c.note, sizeof c.note, "%s %s", note, tn_dtype_name(type));
    c.flops = pairs * 4 * b.d * b.heads;
    c.bytes = 2 * b.kv * kv_len * (int64_t)tn_dtype_row_size(type, b.d);
    bench_time(&c, n_threads);
    free_case(&c);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        int n = argc > 2 ? atoi(argv[2]) : 1;
        static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_F32, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
        printf("32 heads, 8 KV heads of 128, %d threads\n", n);
        for (size_t t = 0; t < TN_COUNT(types); t++) {
            time_one("prefill 512", 512, 512, types[t], n);
            if (t == 0) time_one("prefill 4096", 4096, 4096, types[t], n);
            time_one("decode at 4096", 1, 4096, types[t], n);
            time_one("decode at 32768", 1, 32768, types[t], n);
        }
        return 0;
    }
    check_all();
    return bench_report();
}
