// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention over compressed caches in f16 or bf16 for up to 16 rows of queries of a sequence on compute
// capability 9.0 (attention_latent.cu): when it runs, and into how many splits keys are cut at most.
#include "backends/cuda/attention/attention.h"
#include "backends/cuda/attention/attention_latent_args.h"


// As in the kernel.
enum {
    ROWS = 16,
    KEYS = 64,
    THREADS = 160,
    BOXES = 9,
    MIN_VALUE = 449, // elements: 8 boxes of 64
    MAX_VALUE = 512,
    MAX_KEY = 576,
    MIN_TILES = 2,
};

// Microseconds on a multiprocessor at its share of the read peak (H200): a tile of keys, and what a block
// costs beside its tiles.
static const double TILE_TIME = 2.2, BLOCK_TIME = 5.0;
enum { TYPICAL_TILES = 64 }; // of a sequence

bool tn_cuda_attention_is_latent(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int64_t n_seq = TN_MAX(step->src[TN_SRC_attention_kv_len].ne[3], 1);
    bool sizes = k->ne[3] > v->ne[3] && k->ne[3] <= MAX_KEY && v->ne[3] >= MIN_VALUE &&
                 v->ne[3] <= MAX_VALUE && k->ne[2] % KEYS == 0;
    bool together = v->nb[0] == k->nb[0] && v->nb[1] == k->nb[1] && v->nb[2] == k->nb[2];
    bool types = (k->dtype == TN_TYPE_F16 || k->dtype == TN_TYPE_BF16) && v->dtype == k->dtype;
    return cuda->compute == 90 && sizes && together && types &&
           q->ne[1] * (q->ne[2] / k->ne[1]) <= ROWS * n_seq && tn_view_n_rows(k) < INT32_MAX;
}

int32_t tn_cuda_attention_latent_splits(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k];
    int64_t n_seq = TN_MAX(step->src[TN_SRC_attention_kv_len].ne[3], 1),
            tiles = TN_MAX(tn_div_up(q->ne[1] * (q->ne[2] / k->ne[1]), ROWS), n_seq) * k->ne[1],
            n_keys = step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2],
            most = TN_MAX(TN_MIN(n_keys / (KEYS * MIN_TILES), (int64_t)cuda->n_sms), (int64_t)1);
    double best = 0.0;
    int32_t splits = 1;
    for (int32_t s = 1; s <= most; s++) {
        double time =
            (double)tn_div_up(tiles * s, cuda->n_sms) * (BLOCK_TIME + TILE_TIME * TYPICAL_TILES / (double)s);
        if (s == 1 || time < best) best = time, splits = s;
    }
    return splits;
}

tn_status tn_cuda_attention_latent_launch(const tn_cuda_launch *l, const tn_cuda_attention_args *a)
{
    const tn_view *k = &l->step->src[TN_SRC_attention_k];
    tn_cuda_attention_latent_args m = {.a = *a, .early = l->early};
    tn_status status = tn_cuda_attention_map(l, k, m.k);
    if (status != TN_OK) return status;
    bool bf16 = k->dtype == TN_TYPE_BF16;
    int32_t slots = bf16 ? 23 : 24, parts = bf16 ? 2 : 1,
            boxes = slots * KEYS * 128 + parts * (BOXES + 1) * ROWS * 128;
    tn_cuda_grid grid = {.x = (uint32_t)a->n_splits,
                         .y = (uint32_t)tn_cuda_attention_tiles(l->step, ROWS),
                         .z = (uint32_t)a->n_kv,
                         .threads = THREADS,
                         .shared = (uint32_t)(boxes + 4 * ROWS * 4 + 2 * slots * 8 + 1024)};
    const char *entry = bf16 ? "tn_attention_latent_bf16" : "tn_attention_latent_f16";
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_latent, entry, &grid, &m);
}
