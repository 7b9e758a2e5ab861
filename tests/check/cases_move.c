// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the ops that copy: copy, concat, get_rows, cache_write.
#include "ops/quant.h"
#include "tests/check/check.h"

#include <string.h>

static void copy_case(check_run *run, tn_dtype from, tn_dtype to, int64_t n, int32_t form)
{
    check_case c;
    check_begin(&c, TN_OP_copy);
    c.type = from;
    c.params.copy.dtype = to;
    check_operand *x = check_cube(&c, from, 2, 3, n);
    if (from == TN_TYPE_I32) check_range(x, CHECK_INT, -1e9, 1e9);
    if (form == 1) check_strided(x);
    if (form == 2) check_permuted(x, 1, 2);
    if (form == 3) check_permuted(x, 1, 3);
    if (form == 4) check_range(x, CHECK_SPECIAL, 0, 0);
    if (form == 5) check_range(x, CHECK_EXTREME, -8, 8); // under- and overflows f16
    snprintf(c.note, sizeof c.note, "to %s", tn_dtype_name(to));
    check_emit(run, &c);
}

static void cases_copy(check_run *run, int32_t op)
{
    static const tn_dtype to[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16};
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
    for (size_t i = 0; i < s.count; i++) copy_case(run, TN_TYPE_F32, to[i % 3], s.n[i], 0);
    for (tn_dtype from = 0; from < TN_TYPE_COUNT; from++) {
        int64_t block = tn_dtype_block_elems(from);
        bool plain = from == TN_TYPE_F32 || from == TN_TYPE_F16 || from == TN_TYPE_BF16;
        if (!tn_quant_info_get(from)->to_f32) continue;
        for (size_t t = 0; t < TN_COUNT(to); t++) {
            tn_dtype dst = from == TN_TYPE_I32 ? TN_TYPE_I32 : to[t];
            for (int32_t form = 0; form < (plain ? 6 : block > 1 ? 3 : 4); form++)
                copy_case(run, from, dst, block > 1 ? 2 * block : form % 2 == 0 ? 100 : 33, form);
        }
    }
}

static void cases_concat(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    check_size_list s = check_sizes(run);
    for (size_t i = 0; i < s.count; i++) {
        for (int32_t axis = 0; axis < 4; axis++) {
            for (int32_t form = 0; form < 3; form++) {
                check_case c;
                check_begin(&c, TN_OP_concat);
                c.params.concat.axis = axis;
                c.type = form == 1 ? TN_TYPE_I32 : TN_TYPE_F32;
                int64_t shape[4] = {1, 2, 3, TN_MIN(s.n[i], 300)};
                check_operand *a = check_src(&c, c.type, 4, shape);
                shape[axis] += 2;
                check_operand *b = check_src(&c, c.type, 4, shape);
                check_range(a, form == 1 ? CHECK_INT : CHECK_SPECIAL, -1e9, 1e9);
                if (form == 1) check_range(b, CHECK_INT, -5, 5);
                if (form == 2) check_strided(a), check_permuted(b, 1, 2);
                check_emit(run, &c);
            }
        }
    }
}

static void get_rows_case(check_run *run, tn_dtype type, int64_t k, int32_t form)
{
    check_case c;
    check_begin(&c, TN_OP_get_rows);
    c.type = type;
    c.params.get_rows.scale = form == 1 ? 45.25f : 0.0f;
    check_operand *table = check_weight(&c, type, 0, 11, k);
    table->random_blocks = form == 1;
    if (form == 2) check_strided(table);
    check_operand *ids =
        form == 2 ? check_cube(&c, TN_TYPE_I32, 2, 2, 3) : check_vec(&c, TN_TYPE_I32, form == 0 ? 1 : 7);
    check_range(ids, CHECK_INT, form == 1 ? -2 : 0, form == 1 ? 13 : 10);
    static const int32_t far[] = {10, 11, -1, INT32_MAX, INT32_MIN, 1 << 30, 0};
    if (form == 3) memcpy(check_ints(&c, ids, 7), far, sizeof far);
    check_emit(run, &c);
}

static void cases_get_rows(check_run *run, int32_t op)
{
    TN_UNUSED(op);
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        if (!tn_quant_info_get(type)->to_f32) continue;
        int64_t block = tn_dtype_block_elems(type);
        for (int32_t form = 0; form < 3; form++) {
            get_rows_case(run, type, block, form);
            get_rows_case(run, type, block == 1 ? 257 : 3 * block, form);
        }
        get_rows_case(run, type, 2048, 1);
        get_rows_case(run, type, block == 1 ? 96 : block, 3);
    }
}

static void cache_case(check_run *run, tn_dtype type, const int32_t *shape, int32_t form)
{
    int64_t n_blocks = 5, kv_heads = shape[0], block = shape[1], dim = shape[2], n_tokens = shape[3];
    check_case c;
    check_begin(&c, TN_OP_cache_write);
    c.type = type;
    check_src(&c, type, 4, (int64_t[]){n_blocks, kv_heads, block, dim});
    check_operand *x = check_cube(&c, TN_TYPE_F32, n_tokens, kv_heads, dim);
    if (form == 1) check_strided(x);
    if (form == 2) check_range(x, CHECK_EXTREME, -6, 4);
    if (form == 3) check_range(x, CHECK_SPECIAL, 0, 0), x->special = CHECK_ZERO;
    if (form == 4) check_range(x, CHECK_CONST, 0, 0);
    int32_t *slots = check_ints(&c, check_vec(&c, TN_TYPE_I32, n_tokens), n_tokens);
    // No two tokens share a slot; 7 and the number of slots have no common factor.
    for (int64_t t = 0; t < n_tokens; t++) {
        slots[t] = (int32_t)((3 + 7 * t) % (n_blocks * block));
        if (form == 1 && t % 3 == 1) slots[t] = check_no_slot(t, n_blocks * block);
    }
    check_emit(run, &c);
}

static void cases_cache_write(check_run *run, int32_t op)
{
    static const int32_t shapes[][4] = {
        {1, 16, 32, 1}, {2, 16, 64, 5}, {4, 32, 128, 33}, {2, 64, 96, 17}, {8, 16, 256, 3}};
    TN_UNUSED(op);
    for (size_t t = 0; t < TN_COUNT(check_cache_types); t++)
        for (size_t i = 0; i < TN_COUNT(shapes); i++)
            for (int32_t form = 0; form < 5; form++) cache_case(run, check_cache_types[t], shapes[i], form);
    cache_case(run, TN_TYPE_F16, (int32_t[]){3, 16, 80, 7}, 0);
    cache_case(run, TN_TYPE_F32, (int32_t[]){1, 16, 33, 2}, 1);
    cache_case(run, TN_TYPE_Q5_1, (int32_t[]){2, 16, 64, 5}, 0);
}

void check_cases_move(check_run *run, int32_t op)
{
    static const check_cases_fn cases[TN_OP_COUNT] = {
        [TN_OP_copy] = cases_copy,
        [TN_OP_concat] = cases_concat,
        [TN_OP_get_rows] = cases_get_rows,
        [TN_OP_cache_write] = cases_cache_write,
    };
    if (cases[op]) cases[op](run, op);
}
