// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for one token of each sequence (attention_token.cu): into how many splits the keys are cut, and
// which of them share a cluster.
#include "backends/cuda/attention/attention.h"

#include <stdio.h>

enum {
    KEYS = 16, // as in the kernel
    MIN_TILES = 4,
    MAX_ROWS = 8,
    FOUR_ROWS = 4,
    MAX_HEADS = 16384,
    MAX_TOKENS = 512, // of sequences with several queries, which are counted in tiles of keys
    MAX_SPLITS = 64,
    // Where some sequences are much longer than others, which have one block: splits of a sequence at most,
    // for which there is scratch, and the sequences for each of which there is an extra block.
    MAX_LONG_SPLITS = 8,
    SEQS_PER_EXTRA = 4,
    MAX_CLUSTER = 8,
    LEAST_WAVES = 2, // of blocks of single tokens that have a launch of their own beside pieces
    // Tiles of keys of a sequence up to which one cluster is faster than all multiprocessors, which merge
    // their results through memory (H200, us with a cluster and without: 500 keys 7.8 and 9.7, 4000 keys 16.6
    // and 14.3).
    CLUSTER_TILES = 128,
};

// Head sizes up to `dim`, so many warps of a block, parts of the query heads of a KV head; splits of the
// keys, in clusters of so many blocks; tiles of keys of a warp in shared memory (0: in registers); blocks
// that share a multiprocessor; blocks for parts of long sequences, in sequences; whether keys and values are
// of a type without blocks, which is loaded as matrices.
typedef struct variant {
    int32_t dim, warps, parts, cluster, splits, stages, sharing, extra;
    bool matrices;
} variant;

// Entries of the kernel, with the warps of a block that has a multiprocessor for itself: with tiles in
// registers, and in rings. Four blocks that share one have more warps with smaller rings: a warp takes longer
// for a tile than its share of the memory's rate would allow, some 2500 cycles.
static const struct {
    int32_t dim, warps, ring_warps, ring_stages, quarter_warps, quarter_stages;
} entries[] = {{64, 12, 8, 6, 3, 4}, {128, 12, 8, 3, 3, 2}, {256, 8, 0, 0, 0, 0}};

bool tn_cuda_attention_is_token(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q];
    int64_t block = step->src[TN_SRC_attention_k].ne[2], n_seq = step->src[TN_SRC_attention_kv_len].ne[3];
    return q->ne[0] == 1 && n_seq > 0 && q->ne[1] == n_seq && (n_seq == 1 || step->join.one_query) &&
           q->ne[2] <= MAX_HEADS && block > 0 && (block & (block - 1)) == 0;
}

// Whether the kernel's clusters and its bulk copies into rings are used. They are off on 12.0.
static bool has_clusters(const tn_cuda *cuda)
{
    return cuda->compute >= 90 && cuda->compute < 120;
}

bool tn_cuda_attention_is_apart(const tn_cuda *cuda, const tn_step *step)
{
    const tn_attention_params *params = step->params;
    const tn_view *q = &step->src[TN_SRC_attention_q];
    int64_t block = step->src[TN_SRC_attention_k].ne[2], n_seq = step->src[TN_SRC_attention_kv_len].ne[3],
            widest = TN_MAX(step->src[TN_SRC_attention_k].ne[3], step->src[TN_SRC_attention_v].ne[3]);
    bool sizes = q->ne[0] == 1 && q->ne[2] <= MAX_HEADS && widest <= entries[1].dim && block > 0 &&
                 (block & (block - 1)) == 0;
    // Weights times scales of block types are rounded: of a query that sees one key, by 2^-11 of the result,
    // which is too coarse beside queries that see many.
    bool exact = tn_dtype_block_elems(step->src[TN_SRC_attention_v].dtype) == 1;
    // A query sees the keys up to its own, as if the sequence ended there.
    return step->join.apart && params->causal && n_seq > 0 && q->ne[1] > n_seq && q->ne[1] <= MAX_TOKENS &&
           sizes && exact && has_clusters(cuda);
}

// Blocks that share a multiprocessor. Where there are more blocks than multiprocessors they are smaller, so
// that they run at the same time instead of one after the other, which takes some 5 us each even with short
// sequences (attention_token.cu has the measurements).
static int32_t count_sharing(const tn_cuda *cuda, int64_t blocks)
{
    return blocks <= cuda->n_sms ? 1 : blocks <= 2 * (int64_t)cuda->n_sms ? 2 : 4;
}

// The queries that the kernel takes, each as that of a sequence of its own: all of them, or one of each
// sequence at most.
static int64_t count_queries(const tn_step *step, bool single)
{
    return single ? step->src[TN_SRC_attention_kv_len].ne[3] : step->src[TN_SRC_attention_q].ne[1];
}

static variant select_variant(const tn_cuda *cuda, const tn_step *step, bool single)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k];
    int64_t widest = TN_MAX(k->ne[3], step->src[TN_SRC_attention_v].ne[3]),
            n_seq = count_queries(step, single);
    size_t e = widest <= 64 ? 0 : widest <= 128 ? 1 : 2;
    variant c = {.dim = entries[e].dim, .warps = entries[e].warps, .cluster = 1, .splits = 1, .sharing = 1};
    c.matrices = tn_dtype_block_elems(step->src[TN_SRC_attention_v].dtype) == 1;
    c.parts = (int32_t)tn_div_up(q->ne[2] / k->ne[1], MAX_ROWS);
    int64_t pairs = n_seq * k->ne[1] * c.parts,
            n_tiles = step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2] / KEYS;
    bool apart = !single && tn_cuda_attention_is_apart(cuda, step);
    if (has_clusters(cuda) && n_tiles <= CLUSTER_TILES && !apart) {
        // Clusters do not fill all multiprocessors: 15 of 8 fit on 132.
        while (c.cluster < MAX_CLUSTER && pairs * c.cluster * 2 <= cuda->n_sms * 3 / 4) c.cluster *= 2;
        c.splits = c.cluster;
    }
    if (c.cluster > 1) return c;
    c.sharing = count_sharing(cuda, pairs), c.warps /= c.sharing;
    if (n_seq * q->ne[2] > MAX_HEADS) return c;
    // One wave of one block a multiprocessor.
    int64_t splits = apart ? 1 : TN_MIN(cuda->n_sms / pairs, n_tiles / MIN_TILES);
    c.splits = (int32_t)TN_MAX(TN_MIN(splits, (int64_t)MAX_SPLITS), (int64_t)1);
    bool divides = apart || ((step->join.uneven || single) && c.splits == 1);
    if (divides && has_clusters(cuda) && entries[e].ring_stages > 0) {
        int64_t idle = (c.sharing * cuda->n_sms - pairs) / (k->ne[1] * c.parts);
        c.extra = (int32_t)TN_MAX(n_seq / SEQS_PER_EXTRA, idle);
    }
    return c;
}

// Bytes of shared memory: token_storage, tile_ring and result_storage of the kernel.
static uint32_t shared_size(const variant *c, int32_t group)
{
    int32_t rows = (TN_MIN(group, (int32_t)MAX_ROWS) + c->cluster - 1) / c->cluster,
            slots = c->cluster * c->warps * rows;
    bool four = c->stages > 0 && c->matrices && group <= FOUR_ROWS;
    int32_t token = c->dim * (four ? 16 : 32) + 2 * c->dim * 4 + 2 * c->dim * 2;
    int32_t tile = 2 * (KEYS * c->dim * 2 + 96) + 8; // with gaps and its barrier
    if (c->stages > 0) return (uint32_t)(token + c->warps * c->stages * tile + slots * 8);
    return (uint32_t)(token + (slots + slots % 2) * 8 + slots * c->dim * 4);
}

// Long sequences: tiles come by way of rings in shared memory, where they fit (9.0 and 10.0).
static void select_ring(const tn_cuda *cuda, const tn_step *step, variant *c)
{
    variant ring = *c;
    for (size_t e = 0; e < TN_COUNT(entries); e++)
        if (entries[e].dim == c->dim && c->sharing == 4)
            ring.warps = entries[e].quarter_warps, ring.stages = entries[e].quarter_stages;
        else if (entries[e].dim == c->dim)
            ring.warps = entries[e].ring_warps / c->sharing, ring.stages = entries[e].ring_stages;
    int32_t group = (int32_t)(step->src[TN_SRC_attention_q].ne[2] / step->src[TN_SRC_attention_k].ne[1]);
    bool fits = ring.stages > 0 && shared_size(&ring, group) <= (uint32_t)cuda->max_shared;
    // Bulk copies are of multiples of 16 bytes; 16 rows are.
    bool aligned =
        ((uintptr_t)step->src[TN_SRC_attention_k].data | (uintptr_t)step->src[TN_SRC_attention_v].data) %
            16 ==
        0;
    if (has_clusters(cuda) && c->cluster == 1 && fits && aligned)
        *c = ring;
    else
        c->extra = 0;
}

bool tn_cuda_attention_is_mixed(const tn_cuda *cuda, const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k];
    int64_t block = k->ne[2], widest = TN_MAX(k->ne[3], step->src[TN_SRC_attention_v].ne[3]);
    bool sizes = q->ne[0] == 1 && q->ne[2] <= MAX_HEADS && widest <= entries[1].dim && block > 0 &&
                 (block & (block - 1)) == 0;
    if (!step->join.mixed || !sizes || !has_clusters(cuda)) return false;
    // With fewer sequences a second launch costs more than tiles of 128 rows for single tokens.
    variant c = select_variant(cuda, step, true);
    int64_t pairs = count_queries(step, true) * k->ne[1] * c.parts;
    select_ring(cuda, step, &c);
    return c.stages > 0 && c.extra > 0 && pairs > LEAST_WAVES * c.sharing * (int64_t)cuda->n_sms;
}

// Splits of the keys of a sequence at most.
static int32_t most_splits(const variant *c)
{
    return c->extra > 0 ? MAX_LONG_SPLITS : c->splits;
}

static size_t scratch_of(const tn_step *step, const variant *c, bool single)
{
    size_t rows = (size_t)(count_queries(step, single) * step->src[TN_SRC_attention_q].ne[2]);
    int32_t clusters = most_splits(c) / c->cluster;
    return clusters == 1 ? 0 : (size_t)clusters * rows * (size_t)(c->dim + 2) * sizeof(float);
}

size_t tn_cuda_attention_token_scratch(const tn_cuda *cuda, const tn_step *step)
{
    bool single = tn_cuda_attention_is_mixed(cuda, step);
    variant c = select_variant(cuda, step, single);
    return scratch_of(step, &c, single);
}

bool tn_cuda_attention_token_fuses_rope(const tn_step *step, const tn_step *rope)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *turned = &rope->dst[TN_DST_rope_cache_q];
    if (!tn_cuda_attention_is_token(step)) return false;
    bool same = tn_view_contiguous(q) && tn_view_contiguous(turned) && q->ne[2] == turned->ne[2] &&
                q->ne[3] == turned->ne[3];
    int64_t widest = TN_MAX(step->src[TN_SRC_attention_k].ne[3], step->src[TN_SRC_attention_v].ne[3]);
    return same && rope->src[TN_SRC_rope_cache_q].ne[3] <= widest &&
           rope->src[TN_SRC_rope_cache_v].ne[3] <= widest;
}

// Only q, as it is.
static tn_cuda_rope_cache_args plain_queries(const tn_step *step)
{
    return (tn_cuda_rope_cache_args){.q = tn_cuda_view_of(&step->src[TN_SRC_attention_q]), .block = 1};
}

// Launches the kernel with the arguments `a`, of a variant for `single` sequences.
static tn_status launch(const tn_cuda_launch *l, const variant *c, const tn_cuda_attention_args *a,
                        bool divides)
{
    const tn_step *step = l->step;
    tn_cuda_attention_token_args d = {.a = *a};
    d.a.n_splits = most_splits(c), d.n_extra = c->extra;
    d.group = d.a.n_heads / d.a.n_kv, d.parts = c->parts;
    d.alone = c->cluster > 1 ? INT32_MAX : MIN_TILES;
    for (d.block_mask = d.a.block - 1; d.a.block >> d.block_shift > 1;) d.block_shift++;
    while (1 << d.cluster_shift < c->cluster) d.cluster_shift++;
    d.rope = l->rope ? tn_cuda_rope_cache_args_of(l->rope) : plain_queries(step);
    if (a->q_elem == 2) d.rope.q.nb[1] = a->q_token, d.rope.q.nb[2] = a->q_head, d.rope.q.nb[3] = 2;
    d.early = l->early;
    char entry[64];
    bool one = d.a.n_tokens == 1 && c->sharing == 1;
    snprintf(entry, sizeof entry, "tn_attention_token_%s_%s_%d_%d",
             one       ? "one"
             : divides ? "uneven"
                       : "many",
             tn_cuda_attention_cache_name(step->src[TN_SRC_attention_k].dtype), c->dim, c->stages);
    tn_cuda_grid grid = {.x = (uint32_t)c->splits,
                         .y = (uint32_t)(d.a.n_kv * c->parts),
                         .z = (uint32_t)(d.a.n_tokens + c->extra),
                         .threads = (uint32_t)c->warps * 32,
                         .shared = shared_size(c, d.a.n_heads / d.a.n_kv),
                         .cluster = (uint32_t)c->cluster};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_token, entry, &grid, &d);
}

tn_status tn_cuda_attention_token_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    variant c = select_variant(l->cuda, step, false);
    select_ring(l->cuda, step, &c);
    bool apart = tn_cuda_attention_is_apart(l->cuda, step);
    if (apart && c.stages == 0) return tn_cuda_attention_launch(l);
    tn_cuda_attention_args a = tn_cuda_attention_args_of(step);
    a.partial = (float *)l->scratch;
    tn_cuda_attention_set_staged(l, &a);
    return launch(l, &c, &a, apart || c.extra > 0);
}

tn_status tn_cuda_attention_single_launch(const tn_cuda_launch *l, tn_cuda_attention_args a, char *scratch)
{
    variant c = select_variant(l->cuda, l->step, true);
    select_ring(l->cuda, l->step, &c);
    a.which = TN_CUDA_ATTENTION_SINGLE;
    a.n_tokens = a.n_seq;
    a.partial = (float *)scratch;
    return launch(l, &c, &a, true);
}
