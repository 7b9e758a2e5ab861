// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention for few queries: attend.comp.
#include "backends/vulkan/product/product.h"
#include "core/device.h"
#include "ops/ops.h"

enum { SUBGROUPS = 4, MAX_HEADS = 4, SPACE = 4096, CHUNK = 8, MIN_TEAM = 4, FILL = 256 };
enum { N_SPLITS, N_BLOCKS, N_LEAVES };
// Constants of attend.comp.
enum { C_TYPE_K, C_TYPE_V, C_FORM, C_ALIGNED, C_THREADS, C_TEAM, C_CHUNKS_K, C_CHUNKS_V, C_KEYS };

static bool cache_aligned(const tn_view *v)
{
    return tn_dtype_block_elems(v->dtype) > 1 || tn_vk_aligned_rows(v);
}

// Workgroups for one split of all tokens, and how many heads each takes.
static int64_t groups_of(const tn_step *step, int32_t heads, int32_t *blocks)
{
    int64_t kv_heads = step->src[1].ne[1], group = step->src[0].ne[2] / kv_heads;
    *blocks = (int32_t)((group + heads - 1) / heads);
    return step->src[0].ne[1] * kv_heads * *blocks;
}

// As many as fill a large device.
static int32_t splits_of(const tn_vk *v, const tn_step *step, int64_t groups)
{
    enum { WANTED = 512, KEYS = 64, MOST = 64 };
    if (v->device->software || groups == 0) return 1;
    int64_t keys = TN_MIN(step->src[1].ne[0], step->src[5].ne[3]) * step->src[1].ne[2];
    return (int32_t)TN_MAX(1, TN_MIN(TN_MIN(WANTED / groups, keys / KEYS), MOST));
}

// Query heads that a workgroup takes at once, so that they share loads: few where that leaves a large device
// mostly empty, because one after the other they take their time. Threads and chunks as in the shader.
static int32_t heads_of(const tn_vk *v, const tn_step *step, int64_t space)
{
    int64_t group = step->src[0].ne[2] / step->src[1].ne[1];
    int32_t heads = v->device->software ? 1 : MAX_HEADS;
    if (v->tile > 0 && v->tile < heads) heads = v->tile;
    for (; heads > 1; heads /= 2) {
        int32_t blocks;
        int64_t groups = groups_of(step, heads, &blocks);
        bool fills = v->tile > 0 || groups * splits_of(v, step, groups) >= FILL;
        if (heads / 2 < group && space * heads <= SPACE && fills) break;
    }
    return heads;
}

int32_t tn_vk_launch_attention_decode(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *q = &step->src[0], *v = &step->src[2];
    int32_t *c = d->constants, subgroup = (int32_t)d->v->subgroup, team = MIN_TEAM, blocks;
    int64_t chunks = TN_MAX((q->ne[3] + CHUNK - 1) / CHUNK, (v->ne[3] + CHUNK - 1) / CHUNK);
    while (team < subgroup && team < chunks) team *= 2;
    c[C_THREADS] = SUBGROUPS * subgroup;
    c[C_TEAM] = team;
    c[C_CHUNKS_K] = (int32_t)((q->ne[3] + CHUNK * team - 1) / (CHUNK * team));
    c[C_CHUNKS_V] = (int32_t)((v->ne[3] + CHUNK * team - 1) / (CHUNK * team));
    int32_t heads = heads_of(d->v, d->like, (int64_t)c[C_THREADS] * c[C_CHUNKS_V] * CHUNK),
            most = TN_MAX(c[C_CHUNKS_K], c[C_CHUNKS_V]);
    if (most > 2 && heads > 2) heads = 2; // registers
    int32_t splits = splits_of(d->v, d->like, groups_of(d->like, heads, &blocks));
    int64_t groups = groups_of(step, heads, &blocks);
    d->args.n[N_SPLITS] = splits;
    d->args.n[N_BLOCKS] = blocks;
    if (splits > 1) {
        d->scratch = q->ne[1] * q->ne[2] * splits * ((v->ne[3] + CHUNK - 1) / CHUNK * CHUNK + 2) *
                     (int64_t)sizeof(float);
        d->counters = groups;
    }
    d->left = d->leaves && v->ne[3] % 32 == 0 && tn_view_contiguous(&step->dst[0]);
    d->args.n[N_LEAVES] = d->left;
    d->shader = TN_VK_SHADER_attention_decode;
    c[C_TYPE_K] = step->src[1].dtype;
    c[C_TYPE_V] = v->dtype;
    c[C_FORM] = heads | (splits > 1) << 4;
    c[C_ALIGNED] = tn_vk_aligned_rows(q) && cache_aligned(&step->src[1]) && cache_aligned(v);
    // A split of 64 keys in one turn, if registers hold them.
    c[C_KEYS] = d->v->device->software ? 1 : most > 1 ? 2 : heads > 1 ? 4 : 8;
    d->groups = groups * splits;
    return 1;
}
