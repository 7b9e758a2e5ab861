// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/runtime/staged.h"
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"
#include "ops/product.h"

// Rows up to which a GEMV kernel reads the result, and of experts, where each row is a slot of a token.
enum { MAX_ROWS = 8, MAX_SLOTS = 64 };

int64_t tn_vk_quantised_size(int64_t k)
{
    return (k + k / 4 + k / 8 + 15) / 16 * 16; // integers, scale and sums of each group, its sum of squares
}

// The result that is staged, and the elements of a row as products read it (heads of attention stand side by
// side); 0: no result is.
static const tn_view *staged_of(const tn_step *step, int64_t *k)
{
    const tn_view *y = &step->dst[step->op == TN_OP_add_rms_norm ? 1 : 0];
    bool sums = step->op == TN_OP_add_rms_norm || step->op == TN_OP_moe_combine;
    *k = step->op == TN_OP_attention                   ? y->ne[2] * y->ne[3]
         : sums || tn_product_get(step).n_results == 1 ? y->ne[3]
                                                       : 0;
    return y;
}

size_t tn_vk_staged_size(const tn_device *device, const tn_step *step)
{
    TN_UNUSED(device);
    int64_t k;
    const tn_view *y = staged_of(step, &k);
    int64_t rows = k > 0 ? tn_view_n_elems(y) / k : 0, most = tn_product_get(step).ids ? MAX_SLOTS : MAX_ROWS;
    if (rows == 0 || rows > most || k % TN_VK_QUANTISED_GROUP != 0) return 0;
    return (size_t)(rows * tn_vk_quantised_size(k));
}

bool tn_vk_stages_fours(const tn_vk *v)
{
    enum { INVOCATIONS = 8, WORKGROUP = 64 }; // of a group; the smallest workgroup that stages
    return (v->has & TN_VK_SHUFFLE) && (v->has & TN_VK_SUBGROUPS) && v->subgroup >= INVOCATIONS &&
           v->subgroup <= WORKGROUP;
}

static tn_step nowhere(const tn_step *step)
{
    enum { NOWHERE = 1 << 20 };
    tn_step s = *step;
    s.join.previous = 0;
    for (int32_t i = 0; i < s.n_src; i++)
        if (s.src[i].ne[3] > 0) s.src[i].data = (void *)(uintptr_t)(NOWHERE + s.src[i].offset);
    for (int32_t i = 0; i < s.n_dst; i++) s.dst[i].data = (void *)(uintptr_t)(NOWHERE + s.dst[i].offset);
    return s;
}

void tn_vk_steps_nowhere(const tn_step *step, const tn_step *folded, tn_step out[2])
{
    out[1] = nowhere(step);
    if (!folded) return;
    out[0] = nowhere(folded);
    out[1].join.previous = TN_JOIN_FOLD;
}

// Whether the first kernel of the step writes a staged result if the next step wants it.
static bool stages(const tn_vk *v, const tn_step *step)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, step, NULL);
    tn_step s[2];
    tn_vk_steps_nowhere(step, NULL, s);
    bool writes = false;
    for (int32_t i = 0, n = 1; k && i < n; i++) {
        tn_vk_dispatch d = {.v = v, .like = &s[1], .wants_staged = true};
        tn_vk_args_of(&s[1], &d.args);
        n = k->launch(&s[1], i, &d);
        writes = writes || d.stages;
    }
    return writes;
}

static bool can_stage(const tn_vk *v, const tn_step_pair *pair)
{
    const tn_step *step = pair->maker, *next = pair->reader;
    const tn_vk_kernel *k = tn_vk_find_kernel(v, next, NULL);
    int64_t n;
    const tn_view *x = &next->src[0], *y = staged_of(step, &n);
    if (tn_product_get(next).n_weights == 0 || !k || !(k->needs & TN_VK_INT8_DOT)) return false;
    bool same = pair->from[0] == y - step->dst && x->ne[3] == n && tn_view_n_elems(x) == tn_view_n_elems(y);
    bool fits =
        same && tn_view_contiguous(x) && tn_view_contiguous(y) && tn_vk_staged_size(v->device, step) > 0;
    return fits && stages(v, step);
}

// Whether the reader's kernel does the maker's work too, all of whose results it reads.
static bool can_fold(const tn_vk *v, const tn_step_pair *pair)
{
    const tn_vk_kernel *k = tn_vk_find_kernel(v, pair->reader, NULL);
    bool all = k && pair->adjacent && tn_product_get(pair->reader).n_weights == 0;
    for (int32_t d = 0; d < pair->maker->n_dst && all; d++) {
        all = false;
        for (int32_t i = 0; i < pair->reader->n_src; i++) all = all || pair->from[i] == d;
    }
    if (!all) return false;
    tn_step s[2];
    tn_vk_steps_nowhere(pair->reader, pair->maker, s);
    return tn_vk_folds(v, &s[1], k);
}

uint32_t tn_vk_joins(const tn_device *device, const tn_step_pair *pair)
{
    const tn_vk *v = tn_vk_of(device);
    return (can_stage(v, pair) ? TN_JOIN_STAGE : 0u) | (can_fold(v, pair) ? TN_JOIN_FOLD : 0u);
}
