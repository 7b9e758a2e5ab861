// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything but matrix products: what each kernel takes, and how it is launched.
#include "backends/vulkan/runtime/kernel.h"
#include "core/device.h"
#include "ops/ops.h"

#include <string.h>

// shaders/*.comp
enum {
    ELEMENTS = 256,
    TABLE_GROUP = 64,
    CACHE_GROUP = 64,
    CACHE_BLOCK = 32,
    CACHE_RUN = 4,
    MOE_GROUP = 64,
    MAX_HEAD = 1024,
    MAX_GROUPS = 256,
    MAX_CHOSEN = 256,
    CONV_GROUP = 64,
    MAX_KERNEL = 8,
    MAX_WIDTH = 256,
    LONG_ROW = 512,
    PART_OF_ROW = 1024,
    MAX_PARTS = 128,
    NORM_HELD = 4 * 128 * 16 // elements of a row
};

static const tn_vk_kernel rows[] = {
#define TN_VK_KERNEL(op, name, accepts, launch, needs) {TN_OP_##op, #name, accepts, launch, needs},
#include "backends/vulkan/kernels.def"
};

const tn_vk_kernel *tn_vk_find_kernel(const tn_vk *v, const tn_step *step, const tn_vk_kernel *after)
{
    for (const tn_vk_kernel *k = after ? after + 1 : rows; k < rows + TN_COUNT(rows); k++)
        if (k->op == step->op && !(k->needs & ~v->has) && k->accepts(step)) return k;
    return NULL;
}

static void view_of(const tn_view *v, tn_vk_view *out)
{
    *out = (tn_vk_view){.data = (uint64_t)(uintptr_t)v->data, .dtype = v->dtype};
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) {
        out->ne[d] = (int32_t)v->ne[d];
        out->nb[d] = v->nb[d];
    }
}

void tn_vk_args_of(const tn_step *step, tn_vk_args *a)
{
    memset(a, 0, sizeof *a);
    for (int32_t i = 0; i < step->n_src; i++) view_of(&step->src[i], &a->src[i]);
    for (int32_t i = 0; i < step->n_dst; i++) view_of(&step->dst[i], &a->dst[i]);
    size_t size = tn_op_info_get(step->op)->params_size;
    if (step->params && size > 0) memcpy(a->params, step->params, TN_MIN(size, sizeof a->params));
    for (int32_t i = 0; i < TN_VK_NUMBERS; i++) a->n[i] = -1;
}

// Shaders count in 32 bits.
static bool small(const tn_step *step)
{
    for (int32_t i = 0; i < step->n_src; i++)
        for (int32_t d = 0; d < TN_MAX_DIMS; d++)
            if (step->src[i].ne[d] > INT32_MAX) return false;
    for (int32_t i = 0; i < step->n_dst; i++)
        if (!tn_op_aliases(tn_op_info_get(step->op)->flags, i) && tn_view_n_elems(&step->dst[i]) > INT32_MAX)
            return false;
    return tn_op_info_get(step->op)->params_size <= TN_VK_PARAMS * sizeof(int32_t);
}

static int64_t div_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

// --- elements, rows ----------------------------------------------------------------------------------

bool tn_vk_accepts_elementwise(const tn_step *step)
{
    return small(step);
}

int32_t tn_vk_launch_elementwise(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_elementwise;
    d->constants[0] = step->op;
    d->groups = div_up(tn_view_n_elems(&step->dst[0]), ELEMENTS);
    return 1;
}

bool tn_vk_accepts_copy(const tn_step *step)
{
    return small(step) && tn_dtype_block_elems(step->src[0].dtype) == 1;
}

int32_t tn_vk_launch_move(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_move;
    d->constants[0] = step->op;
    d->constants[1] = step->src[0].dtype;
    d->constants[2] = step->dst[0].dtype;
    if (step->op == TN_OP_concat) {
        const tn_concat_params *p = step->params;
        d->args.n[0] = TN_MAX_DIMS - step->dst[0].n_dims + p->axis;
    }
    d->groups = div_up(tn_view_n_elems(&step->dst[0]), ELEMENTS);
    return 1;
}

bool tn_vk_accepts_table(const tn_step *step)
{
    const tn_view *table = &step->src[0];
    if (step->op == TN_OP_copy && tn_dtype_block_elems(table->dtype) == 1) return false;
    return small(step) && (tn_dtype_block_elems(table->dtype) == 1 || tn_view_contiguous(table));
}

int32_t tn_vk_launch_table(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_table;
    d->constants[0] = step->src[0].dtype;
    d->args.n[0] = step->op;
    tn_vk_weight_planes(&step->src[0], &d->args.weight[0]);
    d->groups = div_up(tn_view_n_rows(&step->dst[0]) * div_up(step->dst[0].ne[3], 16), TABLE_GROUP);
    return 1;
}

bool tn_vk_accepts_rows(const tn_step *step)
{
    return small(step);
}

static int32_t launch_rows(const tn_step *step, int32_t shader, int64_t groups, tn_vk_dispatch *d)
{
    d->shader = shader;
    d->constants[0] = step->op;
    d->groups = groups;
    return 1;
}

static bool aligned_rows(const tn_view *v)
{
    uint64_t bits =
        (uint64_t)(uintptr_t)v->data | (uint64_t)v->nb[0] | (uint64_t)v->nb[1] | (uint64_t)v->nb[2];
    return v->ne[3] % 4 == 0 && bits % 16 == 0;
}

int32_t tn_vk_launch_norm(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    // A software driver has no use for it, and compiles slowly.
    bool held = step->op != TN_OP_layer_norm && !d->v->device->software && step->src[0].ne[3] <= NORM_HELD;
    for (int32_t k = 0; k < step->n_src && held; k++)
        held = !tn_step_has_src(step, k) || aligned_rows(&step->src[k]);
    for (int32_t k = 0; k < step->n_dst && held; k++) held = aligned_rows(&step->dst[k]);
    d->constants[TN_VK_LAYOUT] = held;
    return launch_rows(step, TN_VK_SHADER_norm, tn_view_n_rows(&step->src[0]), d);
}

int32_t tn_vk_launch_rows(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    return launch_rows(step, TN_VK_SHADER_rows, tn_view_n_rows(&step->src[0]), d);
}

bool tn_vk_accepts_argmax(const tn_step *step)
{
    return small(step) && step->src[0].ne[3] >= LONG_ROW;
}

int32_t tn_vk_launch_argmax(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    int64_t n_rows = tn_view_n_rows(&step->src[0]);
    int32_t parts = (int32_t)TN_MIN(div_up(d->like->src[0].ne[3], PART_OF_ROW), MAX_PARTS);
    launch_rows(step, TN_VK_SHADER_argmax, i == 0 ? n_rows * parts : n_rows, d);
    d->constants[1] = i;
    d->after = i == 1;
    d->args.n[0] = parts;
    d->scratch = n_rows * parts * 3 * (int64_t)sizeof(float);
    return 2;
}

bool tn_vk_accepts_top_k(const tn_step *step)
{
    const tn_top_k_params *p = step->params;
    return small(step) && p->n_groups <= MAX_GROUPS;
}

bool tn_vk_accepts_moe_route(const tn_step *step)
{
    const tn_moe_route_params *p = step->params;
    return small(step) && !p->has_product && p->top_k.n_groups <= MAX_GROUPS && p->top_k.k <= MAX_CHOSEN;
}

int32_t tn_vk_launch_moe(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *y = &step->dst[0];
    bool elements = step->op == TN_OP_moe_sum || step->op == TN_OP_moe_combine;
    return launch_rows(step, TN_VK_SHADER_moe,
                       elements ? div_up(tn_view_n_elems(y), MOE_GROUP) : tn_view_n_rows(y), d);
}

// --- positions, the cache, attention --------------------------------------------------------------------

static bool is_cached(tn_dtype t)
{
    return t == TN_TYPE_F32 || t == TN_TYPE_F16 || t == TN_TYPE_BF16 || t == TN_TYPE_Q8_0 ||
           t == TN_TYPE_Q4_0;
}

// Words of the parameters of rope, and which operands have what.
static void rope_args(tn_vk_dispatch *d, const tn_rope_params *p, int32_t src, int32_t pos, int32_t norm,
                      int32_t factors, int32_t params, int32_t eps)
{
    d->rope = p;
    const int32_t n[] = {src, pos, norm, factors, params, eps};
    memcpy(d->args.n, n, sizeof n);
    d->shader = TN_VK_SHADER_rope;
    d->constants[0] = TN_TYPE_F32;
}

bool tn_vk_accepts_rope(const tn_step *step)
{
    return small(step) && step->src[0].ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_rope(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    int32_t normed = step->op == TN_OP_norm_rope, pos = 1 + normed;
    int32_t params = normed ? (int32_t)(offsetof(tn_norm_rope_params, rope) / 4) : 0;
    const tn_rope_params *p = normed ? &((const tn_norm_rope_params *)step->params)->rope : step->params;
    rope_args(d, p, 0, pos, normed ? 1 : -1, tn_step_has_src(step, pos + 1) ? pos + 1 : -1, params,
              (int32_t)(offsetof(tn_norm_rope_params, eps) / 4));
    d->args.n[7] = 0;
    d->groups = step->src[0].ne[1] * step->src[0].ne[2];
    return 1;
}

// Sources of rope_cache (ops/rope_cache.c).
enum { CACHE_K, CACHE_V, Q, K, V, POS, SLOTS, NORM_Q, NORM_K, FACTORS };

bool tn_vk_accepts_rope_cache(const tn_step *step)
{
    return small(step) && step->src[Q].ne[3] <= MAX_HEAD && step->src[K].ne[3] <= MAX_HEAD &&
           is_cached(step->src[CACHE_K].dtype) && is_cached(step->src[CACHE_V].dtype);
}

static void launch_cache(const tn_step *step, int32_t cache, int32_t x, int32_t slots, tn_vk_dispatch *d)
{
    // Blocks are made whole; else many invocations, none of which waits long.
    int64_t run = tn_dtype_block_elems(step->src[cache].dtype) > 1 ? CACHE_BLOCK : CACHE_RUN;
    d->shader = TN_VK_SHADER_cache;
    d->constants[0] = step->src[cache].dtype;
    d->args.n[0] = cache;
    d->args.n[1] = x;
    d->args.n[2] = slots;
    d->groups =
        div_up(step->src[x].ne[1] * step->src[x].ne[2] * div_up(step->src[cache].ne[3], run), CACHE_GROUP);
}

int32_t tn_vk_launch_rope_cache(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_rope_cache_params *p = step->params;
    rope_args(d, &p->rope, Q, POS, tn_step_has_src(step, NORM_Q) ? NORM_Q : -1,
              tn_step_has_src(step, FACTORS) ? FACTORS : -1,
              (int32_t)(offsetof(tn_rope_cache_params, rope) / 4),
              (int32_t)(offsetof(tn_rope_cache_params, eps) / 4));
    d->args.n[6] = tn_step_has_src(step, NORM_K) ? NORM_K : -1;
    d->args.n[7] = 2; // the result for q
    d->args.n[8] = SLOTS;
    d->constants[0] = step->src[CACHE_K].dtype;
    d->constants[1] = step->src[CACHE_V].dtype;
    d->constants[2] = 1;
    d->groups = 0;
    for (int32_t src = Q; src <= V; src++) d->groups += step->src[src].ne[1] * step->src[src].ne[2];
    return 1;
}

bool tn_vk_accepts_cache_write(const tn_step *step)
{
    return small(step) && is_cached(step->src[0].dtype);
}

int32_t tn_vk_launch_cache_write(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    launch_cache(step, 0, 1, 2, d);
    return 1;
}

bool tn_vk_accepts_attention(const tn_step *step)
{
    return small(step) && is_cached(step->src[1].dtype) && is_cached(step->src[2].dtype) &&
           step->src[0].ne[3] <= MAX_HEAD && step->src[2].ne[3] <= MAX_HEAD;
}

int32_t tn_vk_launch_attention(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    d->shader = TN_VK_SHADER_attention;
    d->constants[0] = step->src[1].dtype;
    d->constants[1] = step->src[2].dtype;
    d->groups = step->src[0].ne[1] * step->src[0].ne[2];
    return 1;
}

// --- recurrent layers
// ---------------------------------------------------------------------------------------

bool tn_vk_accepts_short_conv(const tn_step *step)
{
    return small(step) && step->src[2].ne[3] <= MAX_KERNEL;
}

bool tn_vk_accepts_delta_rule(const tn_step *step)
{
    return small(step) && step->src[1].ne[3] <= MAX_WIDTH;
}

int32_t tn_vk_launch_recurrent(const tn_step *step, int32_t i, tn_vk_dispatch *d)
{
    TN_UNUSED(i);
    const tn_view *slots = &step->src[step->n_src - 1];
    bool conv = step->op == TN_OP_short_conv;
    return launch_rows(
        step, TN_VK_SHADER_recurrent,
        conv ? div_up(slots->ne[2] * step->src[1].ne[3], CONV_GROUP) : slots->ne[2] * step->src[3].ne[2], d);
}
