// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention for few queries: attend.comp.
#include "backends/vulkan/products.h"
#include "core/device.h"
#include "ops/ops.h"

enum { SUBGROUPS = 4, MAX_HEADS = 4, SPACE = 4096, CHUNK = 8, MIN_TEAM = 4 };
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

int32_t tn_vk_launch_attend(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *q = &step->src[0], *v = &step->src[2];
    // A software driver compiles slowly, and has nothing on its way: little code there.
    int32_t *c = d->constants, subgroup = (int32_t)d->v->subgroup, team = MIN_TEAM,
            heads = d->v->device->software ? 1 : MAX_HEADS, blocks;
    int64_t chunks = TN_MAX((q->ne[3] + CHUNK - 1) / CHUNK, (v->ne[3] + CHUNK - 1) / CHUNK);
    while (team < subgroup && team < chunks) team *= 2;
    int64_t group = q->ne[2] / step->src[1].ne[1], teams = SUBGROUPS * subgroup / team;
    while (heads > 1 &&
           (heads / 2 >= group || teams * heads * v->ne[3] > SPACE || (chunks > 2 * team && heads > 2)))
        heads /= 2;
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
    d->shader = TN_VK_SHADER_attend;
    c[C_TYPE_K] = step->src[1].dtype;
    c[C_TYPE_V] = v->dtype;
    c[C_FORM] = heads | (splits > 1) << 4;
    c[C_ALIGNED] = tn_vk_aligned_rows(q) && cache_aligned(&step->src[1]) && cache_aligned(v);
    c[C_THREADS] = SUBGROUPS * subgroup;
    c[C_TEAM] = team;
    c[C_CHUNKS_K] = (int32_t)((q->ne[3] + CHUNK * team - 1) / (CHUNK * team));
    c[C_CHUNKS_V] = (int32_t)((v->ne[3] + CHUNK * team - 1) / (CHUNK * team));
    c[C_KEYS] = d->v->device->software ? 1 : c[C_CHUNKS_K] > 1 ? 2 : 4;
    d->groups = groups * splits;
    return 1;
}
