// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Building cases, and which file has those of an op: cases_<family>.c.
#include "tests/check/check.h"

// Around vector widths, blocks and unrolled loops; model widths.
static const int64_t sizes_full[] = {1,  2,  3,  7,   8,   9,   15,  16,  17,  31,   32,   33,   63,
                                     64, 65, 96, 127, 128, 129, 255, 256, 257, 1000, 2048, 4096, 5120};
static const int64_t sizes_quick[] = {1, 7, 16, 33, 64, 257, 2048};

const tn_dtype check_cache_types[CHECK_N_CACHE_TYPES] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0,
                                                         TN_TYPE_Q4_0};

check_size_list check_sizes(const check_run *run)
{
    if (run->options.quick) return (check_size_list){sizes_quick, TN_COUNT(sizes_quick)};
    return (check_size_list){sizes_full, TN_COUNT(sizes_full)};
}

// --- building --------------------------------------------------------------------------------------

void check_begin(check_case *c, int32_t op)
{
    *c = (check_case){.op = op, .type = TN_TYPE_F32};
}

check_operand *check_src(check_case *c, tn_dtype type, int32_t n_dims, const int64_t *shape)
{
    check_operand *o = &c->src[c->n_src++];
    *o = (check_operand){.dtype = type, .n_dims = n_dims, .hi = 1.0};
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) {
        int32_t i = d - (TN_MAX_DIMS - n_dims);
        o->ne[d] = o->parent[d] = i >= 0 ? shape[i] : 1;
        o->axes[d] = d;
    }
    return o;
}

check_operand *check_vec(check_case *c, tn_dtype type, int64_t n)
{
    return check_src(c, type, 1, &n);
}

check_operand *check_mat(check_case *c, tn_dtype type, int64_t m, int64_t n)
{
    return check_src(c, type, 2, (int64_t[]){m, n});
}

check_operand *check_cube(check_case *c, tn_dtype type, int64_t a, int64_t b, int64_t n)
{
    return check_src(c, type, 3, (int64_t[]){a, b, n});
}

void check_absent(check_case *c)
{
    c->src[c->n_src++] = (check_operand){0};
}

void check_strided(check_operand *o)
{
    int64_t block = tn_dtype_block_elems(o->dtype) > 1 ? tn_dtype_block_elems(o->dtype) : 3;
    o->parent[3] += 3 * block;
    o->start[3] = block;
}

void check_permuted(check_operand *o, int32_t a, int32_t b)
{
    int64_t n = o->parent[a];
    o->parent[a] = o->parent[b];
    o->parent[b] = n;
    o->axes[a] = b;
    o->axes[b] = a;
}

void check_range(check_operand *o, check_fill fill, double lo, double hi)
{
    o->fill = fill;
    o->lo = lo;
    o->hi = hi;
    o->special = CHECK_ALL_SPECIAL;
}

int32_t *check_ints(check_case *c, check_operand *o, int64_t n)
{
    o->fill = CHECK_DATA;
    o->ints_off = c->n_ints;
    c->n_ints += (int32_t)n;
    return &c->ints[o->ints_off];
}

// --- families --------------------------------------------------------------------------------------

bool check_op_has_cases(int32_t op)
{
    return !(tn_op_info_get(op)->flags & TN_OP_VIEW) && op != TN_OP_transfer;
}

void check_cases(check_run *run, int32_t op)
{
    static const check_cases_fn families[TN_FAMILY_COUNT] = {
#define TN_FAMILY(name, set) check_cases_##name,
#include "ops/families.def"
    };
    families[tn_op_info_get(op)->family](run, op);
    if (run->n_cases[op] > 0) return;
    printf("FAIL %s: the op has no cases\n", tn_op_name(op));
    run->n_failed++;
}
