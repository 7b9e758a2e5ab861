// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention of few queries over many keys, as in decoding (attention_decode.comp).
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/operands.h"

// CHUNK: elements of a row of the cache that a lane loads at once. MAX_SUMS: floats in shared memory for the
// sums of all heads of a workgroup. FILL: workgroups that keep a large device busy. ROUND: keys that are not
// split, if one round of loads does not have more; merging takes less time than another round (H200: 1.3 and
// 2 us). A probe has few keys, and merges too.
enum {
    SUBGROUPS = 4,
    MAX_HEADS = 4,
    MAX_SUMS = 4096,
    CHUNK = 8,
    MIN_TEAM = 4,
    FILL = 1024,
    ROUND = 64,
    STAGED_GROUP = 32
};
// Constants of the shader; bits of C_FORM above the number of heads.
enum { C_TYPE_K, C_TYPE_V, C_FORM, C_ALIGNED, C_THREADS, C_TEAM, C_CHUNKS_K, C_CHUNKS_V, C_KEYS };
enum { SPLITS = 16, CAPS = 32, SLOPES = 64, SINKS = 128, STAGES = 256 };

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
    enum { WANTED = 512, KEYS = 64, MOST = 64 };
    if (v->device->software || groups == 0) return 1;
    int64_t keys = TN_MIN(o->k->ne[0], o->block_table->ne[3]) * o->k->ne[2];
    return (int32_t)TN_MAX(1, TN_MIN(TN_MIN(WANTED / groups, keys / KEYS), MOST));
}

// Query heads that a workgroup computes at once, so that they share the loads of keys and values. Not as many
// where that would leave a large device mostly empty, because the heads of a workgroup run one after the
// other: 32 sequences of 1000 tokens (8 layers of 8B, H200) give 11115 tokens/s with one head, 10288 with
// four. `sums`: floats of shared memory for each head.
static int32_t heads_of(const tn_vk *v, const operands *o, int64_t sums)
{
    int64_t group = o->q->ne[2] / o->k->ne[1];
    int32_t heads = v->device->software ? 1 : MAX_HEADS;
    if (v->tile > 0 && v->tile < heads) heads = v->tile;
    for (; heads > 1; heads /= 2) {
        int32_t blocks;
        int64_t groups = groups_of(o, heads, &blocks);
        bool fills = v->tile > 0 || groups * splits_of(v, o, groups) >= FILL;
        if (heads / 2 < group && sums * heads <= MAX_SUMS && fills) break;
    }
    return heads;
}

static void set_rows(const operands *o, tn_vk_dispatch *d)
{
    int32_t *c = d->constants, subgroup = (int32_t)d->v->subgroup, team = MIN_TEAM;
    int64_t chunks = TN_MAX(tn_vk_div_up(o->q->ne[3], CHUNK), tn_vk_div_up(o->v->ne[3], CHUNK));
    while (team < subgroup && team < chunks) team *= 2;
    c[C_THREADS] = SUBGROUPS * subgroup;
    c[C_TEAM] = team;
    c[C_CHUNKS_K] = (int32_t)tn_vk_div_up(o->q->ne[3], CHUNK * team);
    c[C_CHUNKS_V] = (int32_t)tn_vk_div_up(o->v->ne[3], CHUNK * team);
    c[C_TYPE_K] = o->k->dtype;
    c[C_TYPE_V] = o->v->dtype;
    c[C_ALIGNED] = tn_vk_aligned_elems(o->q, 16) && cache_aligned(o->k) && cache_aligned(o->v);
}

int32_t tn_vk_launch_attention_decode(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    operands o = operands_of(step), like = operands_of(d->like);
    int32_t *c = d->constants, *n = d->args.n, blocks;
    set_rows(&o, d);
    int32_t heads = heads_of(d->v, &like, (int64_t)c[C_THREADS] * c[C_CHUNKS_V] * CHUNK),
            most = TN_MAX(c[C_CHUNKS_K], c[C_CHUNKS_V]);
    if (most > 2 && heads > 2) heads = 2; // more would not fit into registers
    int32_t splits = splits_of(d->v, &like, groups_of(&like, heads, &blocks));
    int64_t groups = groups_of(&o, heads, &blocks);
    n[TN_VK_N_ATTENTION_SPLITS] = splits;
    n[TN_VK_N_ATTENTION_BLOCKS] = blocks;
    if (splits > 1) {
        int64_t sums =
            tn_vk_div_up(o.v->ne[3], CHUNK) * CHUNK + 2; // and the maximum and the sum of a softmax
        d->scratch = o.q->ne[1] * o.q->ne[2] * splits * sums * (int64_t)sizeof(float);
        d->counters = groups;
    }
    d->stages = d->wants_staged && o.v->ne[3] % STAGED_GROUP == 0 && tn_view_contiguous(&step->dst[0]);
    d->shader = TN_VK_SHADER_attention_decode;
    const tn_attention_params *p = step->params;
    c[C_FORM] = heads | (splits > 1 ? SPLITS : 0) | (p->softcap > 0.0f ? CAPS : 0) |
                (p->max_bias > 0.0f ? SLOPES : 0) |
                (tn_step_has_src(step, TN_SRC_attention_sinks) ? SINKS : 0) | (d->stages ? STAGES : 0);
    // A split of 64 keys in one round of the loop, if registers hold them.
    c[C_KEYS] = d->v->device->software ? 1 : most > 1 ? 2 : heads > 1 ? 4 : 8;
    n[TN_VK_N_ATTENTION_ROUND] =
        d->like == step ? TN_MAX(ROUND, c[C_KEYS] * c[C_THREADS] / c[C_TEAM]) : ROUND;
    d->groups = groups * splits;
    return 1;
}
