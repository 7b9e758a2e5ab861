// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Launches of skinny_stream.cuh: how the rows of weights and the k of a launch are shared between warps and
// blocks. The cut with the least estimated time is selected.
#include "backends/cuda/product/skinny/skinny.h"
#include "backends/cuda/runtime/layout.h"

#include "core/compiler.h"
#include "core/context.h"

#include <stdio.h>
#include <string.h>

enum {
    SHARED_STATIC = 1024, // bytes of shared memory beside the rings
    MAX_SPLITS = 4,
};

// The types of these kernels, with the modules that have them and the most rows of x. Above 64 rows that is
// where they beat product/gemm (docs/log/cuda-gemm.md): tokens per second of 65, 80 and 88 sequences, NVIDIA
// H100, 2026-11-27, 8B or four of its layers: Q4_K_M 29, 23 and 8 % more, Q5_K_M 23, 18 and 3 % less, Q6_K
// 7 and 6 % more and 3 % less.
static const struct stream_type {
    tn_dtype type;
    int32_t module;
    int32_t percent; // time of an operand, of that of Q4_K
    int32_t rows;
} stream_types[] = {
    {TN_TYPE_Q4_K, TN_CUDA_MODULE_skinny_stream, 100, TN_SKINNY_STREAM_MAX_ROWS},
    {TN_TYPE_Q5_K, TN_CUDA_MODULE_skinny_stream_k, 130, 80},
    {TN_TYPE_Q6_K, TN_CUDA_MODULE_skinny_stream, 120, 80},
    {TN_TYPE_Q4_0, TN_CUDA_MODULE_skinny_stream_legacy, 110, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_Q4_1, TN_CUDA_MODULE_skinny_stream_minimum, 110, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_Q5_0, TN_CUDA_MODULE_skinny_stream_legacy, 150, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_Q5_1, TN_CUDA_MODULE_skinny_stream_minimum, 150, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_Q8_0, TN_CUDA_MODULE_skinny_stream_legacy, 120, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_Q3_K, TN_CUDA_MODULE_skinny_stream_k, 170, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_IQ4_NL, TN_CUDA_MODULE_skinny_stream_table, 170, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_IQ4_XS, TN_CUDA_MODULE_skinny_stream_table, 190, TN_SKINNY_MAX_ROWS},
    {TN_TYPE_MXFP4, TN_CUDA_MODULE_skinny_stream_table, 190, TN_SKINNY_MAX_ROWS},
};

// Pairs of types that share a launch, the modules that have them, and the most rows of x.
static const struct stream_pair {
    tn_dtype type, other;
    int32_t module, rows;
} stream_pairs[] = {
    {TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_CUDA_MODULE_skinny_stream_pair, TN_SKINNY_STREAM_MAX_ROWS},
};

static const struct stream_pair *find_pair(tn_dtype type, tn_dtype other)
{
    for (size_t i = 0; i < TN_COUNT(stream_pairs); i++)
        if (stream_pairs[i].type == type && stream_pairs[i].other == other) return &stream_pairs[i];
    return NULL;
}

bool tn_cuda_skinny_has_pair(const tn_product *p, tn_dtype *type, tn_dtype *other)
{
    if (p->glu) return false;
    *type = *other = p->w[0]->dtype;
    for (int32_t i = 1; i < p->n_weights; i++) {
        tn_dtype t = p->w[i]->dtype;
        if (t == *type || t == *other) continue;
        if (*type != *other) return false;
        *other = t;
    }
    if (find_pair(*type, *other)) return true;
    tn_dtype t = *type;
    *type = *other, *other = t;
    return find_pair(*type, *other) != NULL;
}

// NULL: none of them.
static const struct stream_type *find_type(tn_dtype type)
{
    for (size_t i = 0; i < TN_COUNT(stream_types); i++)
        if (stream_types[i].type == type) return &stream_types[i];
    return NULL;
}

static bool is_stream_type(tn_dtype type)
{
    return find_type(type) != NULL;
}

bool tn_cuda_skinny_uses_stream(const tn_cuda *cuda, const tn_product *p)
{
    if (cuda->compute != 90 || cuda->variant.skinny_without_wgmma || p->k % TN_SKINNY_K != 0) return false;
    return tn_cuda_weights_all(p, is_stream_type);
}

int32_t tn_cuda_skinny_stream_rows(const tn_cuda *cuda, const tn_product *p)
{
    if (!tn_cuda_skinny_uses_stream(cuda, p)) return 0;
    tn_dtype type, other;
    if (tn_cuda_skinny_has_pair(p, &type, &other)) return find_pair(type, other)->rows;
    int32_t rows = TN_SKINNY_STREAM_MAX_ROWS;
    for (int32_t i = 0; i < p->n_weights; i++) rows = TN_MIN(rows, find_type(p->w[i]->dtype)->rows);
    return rows;
}

int32_t tn_cuda_skinny_stream_columns(int64_t m)
{
    static const int32_t columns[] = {16, 32, 40, 48, 64, 72, 80};
    for (size_t i = 0; i < TN_COUNT(columns); i++)
        if (m <= columns[i]) return columns[i];
    return TN_SKINNY_STREAM_MAX_ROWS;
}

bool tn_cuda_skinny_reads_staged(const tn_cuda *cuda, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return !p.ids && !p.norm && p.x->dtype == TN_TYPE_F32 && tn_view_contiguous(p.x) &&
           tn_cuda_skinny_fits(cuda, &p) && tn_cuda_skinny_uses_stream(cuda, &p);
}

size_t tn_cuda_skinny_staged_size(int64_t m, int64_t k)
{
    return (size_t)TN_SKINNY_STAGED_SIZE(tn_cuda_skinny_stream_columns(m), k);
}

// --- how a launch is cut -----------------------------------------------------------------------------

typedef struct cut {
    int32_t row_warps, k_warps, splits, x_slots;
    int32_t blocks; // of all clusters
    int64_t shared; // bytes
    int64_t time;   // estimated, ns
} cut;

static bool has_minimums(tn_dtype type) // that are a product of their own
{
    return type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K;
}

// Bytes of a slot of 16 rows of weights, as skinny_stream_layout of skinny_batch.cuh has them.
static int64_t slot_size(tn_dtype type)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    int32_t pieces = 0, elems = (int32_t)tn_dtype_block_elems(type);
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        int32_t bytes = TN_SKINNY_PLANE_BYTES(planes.plane_bytes[p], elems);
        pieces += bytes % 16 == 0 ? bytes / 16 : 16 % bytes == 0 ? 1 : (bytes + 30) / 16;
    }
    return (int64_t)TN_SKINNY_ROW_BYTES(pieces) * TN_SKINNY_STREAM_ROWS;
}

// What a launch is, for the estimate.
typedef struct work {
    int32_t rows[3]; // of each weight
    int32_t n_segs, columns, k_stages, n_sms;
    bool glu, pair;              // pair: of two types, each in whole warpgroups
    int64_t slot, x_stage, left; // bytes: of a slot of 16 rows, of a stage of x, of shared memory
    int64_t percent;             // time of an operand, of that of Q4_K
} work;

// Clusters that the device holds at a time. An H200 has 132 multiprocessors in groups of which some hold one
// cluster of four less.
static int32_t max_clusters(int32_t n_sms, int32_t splits)
{
    int32_t n = n_sms / splits;
    return splits <= 2 ? TN_MAX(n, 1) : TN_MAX(n - n / 8, 1);
}

static int64_t count_tiles(const work *w)
{
    int64_t n = 0, rows = w->glu ? TN_SKINNY_STREAM_ROWS / 2 : TN_SKINNY_STREAM_ROWS;
    for (int32_t i = 0; i < (w->glu ? 1 : w->n_segs); i++) {
        int64_t tiles = tn_div_up(w->rows[i], rows);
        n += w->pair ? tn_div_up(tiles, TN_SKINNY_STREAM_WARPS) * TN_SKINNY_STREAM_WARPS : tiles;
    }
    return n;
}

// The slots and the estimated time of a cut; false if it does not fit.
static bool estimate(const work *w, cut *c)
{
    enum { MEMORY_RATE = 30, L2_RATE = 42 }; // bytes per ns of a multiprocessor
    enum { START = 3200, SHARE_K = 500, SHARE_CLUSTER = 900, SHARE_4 = 1000, COLUMN = 25 };
    int64_t warps = c->row_warps * c->k_warps, slot = w->slot;
    int64_t groups = tn_div_up(count_tiles(w), c->row_warps);
    int64_t clusters = TN_MIN(groups, max_clusters(w->n_sms, c->splits)),
            passes = tn_div_up(groups, clusters);
    int64_t stages = tn_div_up(w->k_stages, c->splits), rounds = tn_div_up(stages, c->k_warps);
    if (passes > 1 && (c->k_warps > 1 || c->splits > 1 || w->pair)) return false;
    int64_t x_slots =
        TN_MIN(TN_SKINNY_STREAM_MAX_X, (w->left - warps * TN_SKINNY_STREAM_SLOTS * slot) / w->x_stage);
    x_slots = TN_MIN(x_slots, passes > 1 ? 2 * stages : stages);
    if (x_slots < stages) x_slots = x_slots / c->k_warps * c->k_warps;
    if (x_slots < TN_MIN(stages, c->k_warps * 2)) return false;
    c->x_slots = (int32_t)x_slots;
    c->blocks = (int32_t)(clusters * c->splits);
    c->shared = x_slots * w->x_stage + warps * TN_SKINNY_STREAM_SLOTS * slot;
    // H200, 2026-11-23, Q4_K: a stage of 16 warps takes 1.5 us with 16 columns and 1.7 with 32, of 8
    // warps 1.2 with 32 and 1.7 with 64. The next stage of x may be late.
    int64_t fix = w->columns == 16   ? 280
                  : w->columns == 32 ? 700
                  : w->columns == 40 ? 825
                  : w->columns == 48 ? 950
                  : w->columns == 64 ? 1200
                  : w->columns == 72 ? 1325
                  : w->columns == 80 ? 1450
                                     : 1575,
            each = w->columns == 16 ? 78 : 62, round = (fix + each * warps) * w->percent / 100;
    if (x_slots < stages && x_slots < 3 * c->k_warps) round += 150;
    int64_t bytes = passes * stages * c->row_warps * slot;
    int64_t copies =
        TN_MAX(bytes / MEMORY_RATE, (bytes + passes * TN_MIN(stages, x_slots) * w->x_stage) / L2_RATE);
    c->time = START + COLUMN * w->columns + TN_MAX(passes * rounds * round, copies) +
              (c->k_warps > 1 ? SHARE_K : 0) + (c->splits > 1 ? SHARE_CLUSTER : 0) +
              (c->splits > 2 ? SHARE_4 : 0);
    return true;
}

static cut select_cut(const work *w, int32_t most)
{
    cut best = {.time = INT64_MAX};
    for (int32_t splits = 1; splits <= MAX_SPLITS && splits <= w->k_stages; splits *= 2)
        for (int32_t rows = TN_SKINNY_STREAM_WARPS; rows <= most; rows += TN_SKINNY_STREAM_WARPS)
            for (int32_t ks = 1; ks * rows <= most && ks <= w->k_stages / splits; ks++) {
                cut c = {.row_warps = rows, .k_warps = ks, .splits = splits};
                if (estimate(w, &c) && c.time <= best.time) best = c;
            }
    return best;
}

// Without the rows of the weights.
static work work_of(const tn_cuda *cuda, tn_dtype type, tn_dtype other, bool pair, int32_t columns, int64_t k)
{
    bool sums = has_minimums(type) || has_minimums(other);
    return (work){.columns = columns,
                  .k_stages = (int32_t)(k / TN_SKINNY_K),
                  .n_sms = cuda->n_sms,
                  .pair = pair,
                  .percent = TN_MAX(find_type(type)->percent, find_type(other)->percent),
                  .slot = TN_MAX(slot_size(type), slot_size(other)),
                  .x_stage = sums ? TN_SKINNY_STREAM_STAGE(columns) : TN_SKINNY_STREAM_X(columns),
                  .left = cuda->max_shared - SHARED_STATIC};
}

bool tn_cuda_skinny_stream_fits(const tn_cuda *cuda, const tn_product *p)
{
    tn_dtype type, other;
    if (!tn_cuda_skinny_has_pair(p, &type, &other)) return true;
    int32_t columns = tn_cuda_skinny_stream_columns(p->m);
    work w = work_of(cuda, type, other, true, columns, p->k);
    w.n_segs = p->n_weights;
    for (int32_t i = 0; i < w.n_segs; i++) w.rows[i] = (int32_t)p->w[i]->ne[2];
    return select_cut(&w, TN_SKINNY_STREAM_MAX_WARPS(type, other, columns)).time < INT64_MAX;
}

// The sums that warps and blocks add take the place of the rings.
static int64_t sums_size(const cut *c, int32_t columns)
{
    return (int64_t)c->row_warps * c->k_warps * columns * TN_SKINNY_STREAM_ROWS * 4;
}

// --- launch ------------------------------------------------------------------------------------------

// Sets the first tiles of the weights. Weights of a second type, the last `others`, begin with a warpgroup.
static void set_tiles(tn_cuda_skinny_stream_args *a, int32_t others)
{
    const int32_t rows = TN_SKINNY_STREAM_ROWS;
    a->n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, rows);
    if (others == 0) return;
    int32_t n = 0;
    for (int32_t i = 0; i < a->n_segs; i++) {
        if (i == a->n_segs - others) a->other_tile = n;
        a->seg[i].first_tile = n;
        n += (int32_t)(tn_div_up(a->seg[i].n, rows * TN_SKINNY_STREAM_WARPS) * TN_SKINNY_STREAM_WARPS);
    }
    a->n_tiles = n;
}

tn_status tn_cuda_skinny_stream_run(const tn_cuda_launch *l, const tn_cuda_skinny_args *b, tn_dtype type,
                                    tn_dtype other, int32_t others)
{
    tn_cuda_skinny_stream_args a;
    memset(&a, 0, sizeof a);
    memcpy(a.seg, b->seg, sizeof a.seg);
    a.x = b->x, a.row_scale = b->row_scale, a.residual = b->residual, a.residual_ld = b->residual_ld;
    a.m = b->m, a.n_segs = b->n_segs, a.k_stages = b->k / TN_SKINNY_K;
    a.glu = b->glu, a.act = b->act, a.glu_limit = b->glu_limit, a.glu_alpha = b->glu_alpha;
    int32_t columns = tn_cuda_skinny_stream_columns(a.m);
    if (l->quantised_x) {
        char *x = l->quantised_x->rows;
        a.x = x, a.row_scale = (const float *)(const void *)(x + TN_SKINNY_STAGED_SCALE(columns, b->k));
    }
    work w = work_of(l->cuda, type, other, others > 0, columns, b->k);
    w.n_segs = a.n_segs, w.glu = b->glu;
    for (int32_t i = 0; i < a.n_segs; i++) w.rows[i] = a.seg[i].n;
    cut c = select_cut(&w, TN_SKINNY_STREAM_MAX_WARPS(type, other, columns));
    set_tiles(&a, others);
    if (a.n_tiles == 0) return TN_OK;
    if (c.time == INT64_MAX)
        return tn_fail(l->cuda->device->ctx, TN_ERR_INTERNAL, "skinny product: no cut fits");
    a.row_warps = c.row_warps, a.k_warps = c.k_warps, a.splits = c.splits, a.x_slots = c.x_slots;
    char name[64];
    snprintf(name, sizeof name, "tn_skinny_stream_%s%s%s_%d", tn_dtype_name(type), others ? "_" : "",
             others ? tn_dtype_name(other) : "", columns);
    int32_t module = others ? find_pair(type, other)->module : find_type(type)->module;
    tn_cuda_grid grid = {.x = (uint32_t)c.blocks,
                         .y = 1,
                         .z = 1,
                         .threads = 32 * (uint32_t)(c.row_warps * c.k_warps),
                         .cluster = (uint32_t)c.splits,
                         .shared = (uint32_t)TN_MAX(c.shared, sums_size(&c, columns)),
                         .alone = l->cuda->variant.skinny_switch_dependent};
    return tn_cuda_run(l, module, name, &grid, &a);
}
