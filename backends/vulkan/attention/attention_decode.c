// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of few queries over many keys, as in decoding (attention_decode.comp).
#include "backends/vulkan/rope/rope.h"
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/operands.h"

// SUBGROUPS: of a workgroup with one head; FEWER_SUBGROUPS: with more, and on a processor. CHUNK: elements of
// a row of the cache that a lane loads at once. MAX_SUMS: floats in shared memory for the sums of all heads
// of a workgroup; MAX_TEAMS: as in the shader. FILL_*: workgroups with two or four heads that keep a large
// device busy. ROUND: keys that are not split, if one round of loads does not have more; merging takes less
// time than another round (H200: 1.3 and 2 us). A probe has 99 keys, and merges too.
enum {
    SUBGROUPS = 8,
    FEWER_SUBGROUPS = 4,
    MAX_HEADS = 4,
    MAX_SUMS = 4096,
    CHUNK = 8,
    MIN_TEAM = 4,
    MAX_TEAMS = 128,
    FILL_TWO = 512,
    FILL_FOUR = 1024,
    ROUND = 64,
    STAGED_GROUP = 32
};
// Constants of the shader; bits of C_FORM above the number of heads.
enum {
    C_TYPE_K,
    C_TYPE_V,
    C_FORM,
    C_ALIGNED,
    C_THREADS,
    C_TEAM,
    C_CHUNKS_K,
    C_CHUNKS_V,
    C_KEYS,
    C_LANES,
    C_PAGE,
    C_KV_HEADS,
    C_GROUP
};
enum {
    CAPS = 32,
    SLOPES = 64,
    SINKS = 128,
    STAGES = 256,
    FOLDS = 512,
    FACTORS = 1024,
    NORMS = 2048,
    SPLITS = 4096
};

typedef struct operands {
    const tn_view *q, *k, *v, *block_table;
} operands;

static operands operands_of(const tn_step *step)
{
    const tn_view *s = step->src;
    return (operands){&s[TN_SRC_attention_q], &s[TN_SRC_attention_k], &s[TN_SRC_attention_v],
                      &s[TN_SRC_attention_block_table]};
}

static bool cache_aligned(const tn_view *v)
{
    return tn_dtype_block_elems(v->dtype) > 1 || tn_vk_aligned_elems(v, 16);
}

// The shader multiplies strides of 32 bits.
static bool is_near(const tn_view *v)
{
    for (int32_t d = 0; d < TN_MAX_DIMS; d++)
        if (v->ne[d] > 1 && v->nb[d] > UINT32_MAX) return false;
    return true;
}

bool tn_vk_accepts_attention_decode(const tn_step *step)
{
    operands o = operands_of(step);
    return tn_vk_accepts_attention(step) && is_near(o.q) && is_near(o.k) && is_near(o.v) &&
           is_near(o.block_table) && is_near(&step->dst[0]);
}

static int32_t log2_of(int32_t n)
{
    int32_t r = 0;
    while (1 << r < n) r++;
    return r;
}

// Workgroups for one split of all tokens; *blocks: how many share the query heads of a head of the cache.
static int64_t groups_of(const operands *o, int32_t heads, int32_t *blocks)
{
    int64_t kv_heads = o->k->ne[1], group = o->q->ne[2] / kv_heads;
    *blocks = (int32_t)tn_vk_div_up(group, heads);
    return o->q->ne[1] * kv_heads * *blocks;
}

// Into how many parts the keys are split: as many as fill a large device.
static int32_t splits_of(const tn_vk *v, const operands *o, int64_t groups)
{
    // 256: two workgroups for each multiprocessor of an H200, which is what their registers allow. Eight
    // layers of 8B with 1 and 8 sequences behind 1000 tokens, one behind 16000: 1460, 5789 and 994 tokens/s;
    // with 512 workgroups 1373, 5407 and 942, with 128 1445, 5795 and 848.
    enum { WANTED = 256, KEYS = 64, MOST = 64 };
    if (v->device->software || groups == 0) return 1;
    int64_t keys = TN_MIN(o->k->ne[0], o->block_table->ne[3]) * o->k->ne[2];
    return (int32_t)TN_MAX(1, TN_MIN(TN_MIN(WANTED / groups, keys / KEYS), MOST));
}

// Query heads that a workgroup computes at once, so that they share the loads of keys and values. Not as many
// where that would leave a large device mostly empty, because the heads of a workgroup run one after the
// other. 32 sequences of an 8B model behind 64 and 1000 tokens on an H200, us: one head by 8 subgroups 30 and
// 106, two heads by 4 subgroups 23 and 95, four heads 30 and 101. `sums`: floats of shared memory for each
// head.
static int32_t heads_of(const tn_vk *v, const operands *o, int64_t sums)
{
    int64_t group = o->q->ne[2] / o->k->ne[1];
    int32_t heads = v->device->software ? 1 : MAX_HEADS;
    if (v->tile > 0 && v->tile < heads) heads = v->tile;
    for (; heads > 1; heads /= 2) {
        int32_t blocks;
        int64_t groups = groups_of(o, heads, &blocks);
        bool fills = v->tile > 0 || groups * splits_of(v, o, groups) >= (heads > 2 ? FILL_FOUR : FILL_TWO);
        if (heads / 2 < group && sums * heads <= MAX_SUMS && fills) break;
    }
    return heads;
}

static void set_rows(const operands *o, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, subgroup = (int32_t)d->v->subgroup, team = MIN_TEAM;
    int64_t chunks = TN_MAX(tn_vk_div_up(o->q->ne[3], CHUNK), tn_vk_div_up(o->v->ne[3], CHUNK));
    while (team < subgroup && team < chunks) team *= 2;
    c[C_TEAM] = team;
    c[C_CHUNKS_K] = (int32_t)tn_vk_div_up(o->q->ne[3], CHUNK * team);
    c[C_CHUNKS_V] = (int32_t)tn_vk_div_up(o->v->ne[3], CHUNK * team);
    c[C_LANES] = subgroup;
    int32_t threads = (d->v->device->software ? FEWER_SUBGROUPS : SUBGROUPS) * subgroup;
    while (threads > subgroup && (threads > (int32_t)d->v->max_threads || threads / team > MAX_TEAMS ||
                                  threads * c[C_CHUNKS_V] * CHUNK > MAX_SUMS))
        threads /= 2;
    c[C_THREADS] = threads;
    c[C_PAGE] = (int32_t)((o->k->ne[2] & (o->k->ne[2] - 1)) == 0 ? o->k->ne[2] : 0);
    c[C_KV_HEADS] = (int32_t)o->k->ne[1];
    c[C_GROUP] = (int32_t)(o->q->ne[2] / o->k->ne[1]);
    c[C_TYPE_K] = o->k->dtype;
    c[C_TYPE_V] = o->v->dtype;
    c[C_ALIGNED] = tn_vk_aligned_elems(o->q, 16) && cache_aligned(o->k) && cache_aligned(o->v);
}

// Whether the kernel does the rope_cache before it too: each token is the only one of its sequence, so none
// needs the new key of another, and rows are plain numbers in whole chunks.
static bool folds(const tn_vk *v, const tn_step *step, const tn_step *rope)
{
    enum { MOST = 256, MOST_PAIRS = 8 }; // elements of a row; pairs of it for each invocation of a subgroup
    if (!rope || rope->op != TN_OP_rope_cache || !tn_vk_accepts_rope_cache(rope)) return false;
    operands o = operands_of(step);
    const tn_view *turned = &rope->dst[TN_DST_rope_cache_q], *new_k = &rope->src[TN_SRC_rope_cache_k],
                  *new_v = &rope->src[TN_SRC_rope_cache_v];
    int64_t n_seq = step->src[TN_SRC_attention_kv_len].ne[3], most = TN_MAX(o.k->ne[3], o.v->ne[3]);
    bool alone = o.q->ne[0] == 1 && o.q->ne[1] == n_seq && (n_seq == 1 || step->join.one_query);
    bool same = tn_view_same_shape(o.q, turned) && tn_view_contiguous(o.q) && tn_view_contiguous(turned) &&
                o.q->ne[3] == o.k->ne[3] && new_k->ne[3] == o.k->ne[3] && new_v->ne[3] == o.v->ne[3] &&
                new_k->ne[2] == o.k->ne[1] && new_v->ne[2] == o.v->ne[1];
    bool plain = tn_dtype_block_elems(o.k->dtype) == 1 && tn_dtype_block_elems(o.v->dtype) == 1 &&
                 o.k->ne[3] % CHUNK == 0 && o.v->ne[3] % CHUNK == 0 && most <= MOST &&
                 most <= (int64_t)MOST_PAIRS * 2 * v->subgroup;
    bool near = true;
    for (int32_t i = TN_SRC_rope_cache_q; i <= TN_SRC_rope_cache_v; i++)
        near = near && is_near(&rope->src[i]);
    return alone && same && plain && near;
}

int32_t tn_vk_launch_attention_decode(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    const tn_step *rope = tn_vk_folded_of(step);
    d->folds = folds(d->v, step, rope);
    operands o = operands_of(step), like = operands_of(d->like);
    int32_t *c = d->constants, *n = d->args.n, blocks;
    set_rows(&o, d);
    int32_t most = TN_MAX(c[C_CHUNKS_K], c[C_CHUNKS_V]),
            heads = heads_of(d->v, &like, (int64_t)c[C_THREADS] * c[C_CHUNKS_V] * CHUNK);
    if (most > 2 && heads > 2) heads = 2; // more would not fit into registers
    if (heads > 1) c[C_THREADS] = TN_MIN(c[C_THREADS], FEWER_SUBGROUPS * (int32_t)d->v->subgroup);
    int32_t splits = splits_of(d->v, &like, groups_of(&like, heads, &blocks));
    int64_t groups = groups_of(&o, heads, &blocks);
    if (splits > 1) {
        int64_t sums =
            tn_vk_div_up(o.v->ne[3], CHUNK) * CHUNK + 2; // and the maximum and the sum of a softmax
        d->scratch = o.q->ne[1] * o.q->ne[2] * splits * sums * (int64_t)sizeof(float);
        d->counters = groups;
    }
    d->stages = d->wants_staged && o.v->ne[3] % STAGED_GROUP == 0 && tn_view_contiguous(&step->dst[0]);
    d->shader = TN_VK_SHADER_attention_decode;
    const tn_attention_params *p = step->params;
    c[C_FORM] = heads | splits * SPLITS | (p->softcap > 0.0f ? CAPS : 0) | (p->max_bias > 0.0f ? SLOPES : 0) |
                (tn_step_has_src(step, TN_SRC_attention_sinks) ? SINKS : 0) | (d->stages ? STAGES : 0) |
                (d->folds ? FOLDS : 0);
    if (d->folds)
        c[C_FORM] |= (tn_step_has_src(rope, TN_SRC_rope_cache_factors) ? FACTORS : 0) |
                     (tn_step_has_src(rope, TN_SRC_rope_cache_norm_q) ||
                              tn_step_has_src(rope, TN_SRC_rope_cache_norm_k)
                          ? NORMS
                          : 0);
    // With 8 keys the code is longer by 12 KiB, and a token of 8B on an H200 takes 3 us more for each layer;
    // with 2, 32 sequences behind 1000 tokens lose 6 %.
    c[C_KEYS] = d->v->device->software ? 1 : most > 1 ? 2 : 4;
    int32_t round = d->like == step ? TN_MAX(ROUND, c[C_KEYS] * c[C_THREADS] / c[C_TEAM]) : ROUND;
    n[TN_VK_N_ATTENTION_ROUND] = log2_of(round);
    d->groups = groups * splits;
    if (!d->folds) return 1;
    if (i == 0) { // only the record of rope_cache, which the shader finds before its own
        tn_vk_args_of(rope, &d->args);
        tn_vk_bind_rope_cache(rope, d);
        d->groups = 0;
    }
    return 2;
}
