// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the rotations, alone and with what goes before and after them.
#include "tests/check/check.h"

#include <math.h>

// --- rope, norm_rope -------------------------------------------------------------------------------

typedef struct rope_shape {
    int64_t n_tokens, heads, dim;
    int32_t n_rot, position; // of the first token
} rope_shape;

static void rope_case(check_run *run, int32_t op, const rope_shape *s, int32_t mode, int32_t form)
{
    check_case c;
    check_begin(&c, op);
    tn_rope_params p = {.mode = mode, .n_rot = s->n_rot, .base = form == 1 ? 500000.0f : 10000.0f};
    if (form == 2) p.freq_scale = 0.25f, p.attn_factor = 1.19f;
    if (form == 3 || form == 4) {
        p.freq_scale = 0.0625f;
        p.attn_factor = 1.277f;
        p.yarn_ext = form == 3 ? 1.0f : 0.5f;
        p.yarn_low = (float)s->n_rot / 16;
        p.yarn_high = (float)s->n_rot / 3;
    }
    check_operand *x = check_cube(&c, TN_TYPE_F32, s->n_tokens, s->heads, s->dim);
    if (form == 1) { // heads of a fused projection
        x->parent[2] += 3;
        x->start[2] = 1;
    }
    if (form == 2) check_strided(x);
    if (op == TN_OP_norm_rope) {
        check_range(check_vec(&c, TN_TYPE_F32, s->dim), CHECK_NORMAL, 1.0, 0.2);
        c.params.norm_rope = (tn_norm_rope_params){.eps = 1e-6f, .rope = p};
    } else {
        c.params.rope = p;
    }
    int32_t *pos = check_ints(&c, check_vec(&c, TN_TYPE_I32, s->n_tokens), s->n_tokens);
    for (int64_t t = 0; t < s->n_tokens; t++)
        pos[t] = s->position + (int32_t)(form == 4 ? 3 * (s->n_tokens - t) : t);
    if (form >= 4) check_range(check_vec(&c, TN_TYPE_F32, s->n_rot / 2), CHECK_NORMAL, 4.0, 0.5);
    snprintf(c.note, sizeof c.note, "mode %d rot %d form %d position %d", mode, s->n_rot, form, s->position);
    check_emit(run, &c);
}

static void cases_rope(check_run *run, int32_t op)
{
    static const rope_shape shapes[] = {
        {1, 1, 2, 2, 3},
        {3, 2, 32, 32, 0},
        {5, 4, 64, 64, 100},
        {2, 3, 80, 32, 77},
        {7, 2, 96, 96, 5},
        {17, 8, 128, 128, 1000},
        {1, 4, 128, 64, 32767},
        {2, 2, 256, 256, 131071},
        {2, 2, 128, 128, 1048575},
        {3, 1, 34, 18, 9},
        {2, 2, 64, 62, 4},
        {65, 64, 32, 32, 5}, // so many heads that kernels give several to a workgroup
    };
    for (size_t i = 0; i < TN_COUNT(shapes); i++)
        for (int32_t mode = 0; mode < 2; mode++)
            for (int32_t form = 0; form < 6; form++) rope_case(run, op, &shapes[i], mode, form);
}

// --- rope_cache ------------------------------------------------------------------------------------

typedef struct rope_cache_shape {
    int64_t n_tokens, heads, kv_heads, dim, v_dim, block;
    int32_t n_rot, position;
} rope_cache_shape;

static void rope_cache_case(check_run *run, const rope_cache_shape *s, tn_dtype k_type, tn_dtype v_type,
                            int32_t form)
{
    int64_t n_blocks = s->n_tokens / s->block + 3;
    check_case c;
    check_begin(&c, TN_OP_rope_cache);
    c.type = k_type;
    tn_rope_cache_params *p = &c.params.rope_cache;
    *p = (tn_rope_cache_params){.rope = {.mode = form % 2, .n_rot = s->n_rot, .base = 10000.0f}};
    if (form == 2 || form == 3) p->has_norm[0] = p->has_norm[1] = 1, p->eps = 1e-6f;
    check_src(&c, k_type, 4, (int64_t[]){n_blocks, s->kv_heads, s->block, s->dim});
    check_src(&c, v_type, 4, (int64_t[]){n_blocks, s->kv_heads, s->block, s->v_dim});
    for (int32_t i = 0; i < 3; i++) { // q, k, v; in form 1 heads of a fused projection
        int64_t heads = i == 0 ? s->heads : s->kv_heads;
        check_operand *x = check_cube(&c, TN_TYPE_F32, s->n_tokens, heads, i == 2 ? s->v_dim : s->dim);
        if (form == 1) {
            x->parent[2] += 3;
            x->start[2] = 1;
        }
    }
    int32_t *pos = check_ints(&c, check_vec(&c, TN_TYPE_I32, s->n_tokens), s->n_tokens);
    int32_t *slots = check_ints(&c, check_vec(&c, TN_TYPE_I32, s->n_tokens), s->n_tokens);
    for (int64_t t = 0; t < s->n_tokens; t++) {
        pos[t] = s->position < 0 ? 0 : s->position + (int32_t)t;
        slots[t] = form == 1 && t % 3 == 1 ? check_no_slot(t, n_blocks * s->block)
                                           : (int32_t)((3 + 7 * t) % (n_blocks * s->block));
    }
    for (int32_t i = 0; i < 2; i++) {
        if (p->has_norm[i])
            check_range(check_vec(&c, TN_TYPE_F32, s->dim), CHECK_NORMAL, 1.0, 0.2);
        else
            check_absent(&c);
    }
    if (form >= 3) check_range(check_vec(&c, TN_TYPE_F32, s->n_rot / 2), CHECK_NORMAL, 4.0, 0.5);
    snprintf(c.note, sizeof c.note, "%s, form %d position %d", tn_dtype_name(v_type), form, s->position);
    check_emit(run, &c);
}

// Quantised caches with positions 0, where rope changes nothing: a value on the border between two codes
// would otherwise go either way.
static void cases_rope_cache(check_run *run, int32_t op)
{
    static const rope_cache_shape shapes[] = {{1, 32, 8, 128, 128, 64, 128, 511},
                                              {1, 4, 2, 64, 64, 16, 64, 7},
                                              {5, 4, 1, 96, 64, 16, 32, 100},
                                              {33, 8, 8, 80, 80, 32, 80, 0},
                                              {3, 2, 2, 256, 256, 64, 256, 4000}};
    TN_UNUSED(op);
    for (size_t i = 0; i < TN_COUNT(shapes); i++) {
        for (int32_t form = 0; form < 5; form++) // the last with factors alone
            rope_cache_case(run, &shapes[i], TN_TYPE_F32, TN_TYPE_F32, form);
        rope_cache_shape still = shapes[i];
        still.position = -1;
        still.dim = still.v_dim = (still.dim + 31) / 32 * 32;
        for (size_t k = 0; k < TN_COUNT(check_cache_types); k++)
            for (int32_t form = 0; form < 2; form++)
                rope_cache_case(run, &still, check_cache_types[k],
                                check_cache_types[(k + i) % TN_COUNT(check_cache_types)], form);
    }
    // So many heads that kernels give several to a workgroup.
    static const rope_cache_shape many = {64, 64, 16, 32, 32, 32, 32, 3};
    for (int32_t form = 0; form < 4; form++) rope_cache_case(run, &many, TN_TYPE_F32, TN_TYPE_F32, form);
    // Rotated rows in 16 bits: few of k, so that none lies on the border between two values.
    static const rope_cache_shape half[] = {{3, 13, 1, 128, 128, 16, 128, 511},
                                            {2, 60, 1, 128, 128, 64, 128, 70000},
                                            {5, 7, 1, 64, 64, 16, 64, 9},
                                            {2, 5, 1, 256, 256, 16, 256, 100},
                                            {1, 3, 1, 32, 32, 16, 32, 77}};
    for (size_t i = 0; i < TN_COUNT(half); i++)
        for (int32_t form = 0; form < 4; form++)
            rope_cache_case(run, &half[i], i % 2 ? TN_TYPE_BF16 : TN_TYPE_F16, TN_TYPE_F16, form);
}

void check_cases_rope(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_rope] = cases_rope,
        [TN_OP_norm_rope] = cases_rope,
        [TN_OP_rope_cache] = cases_rope_cache,
    };
    if (cases[op]) cases[op](run, op);
}
