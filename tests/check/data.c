// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Operands of a case: their layout and their values, reproducible from the seed of the case.
#include "ops/quant.h"
#include "tests/check/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// --- random numbers --------------------------------------------------------------------------------

// splitmix64, Steele et al. 2014: any seed is good.
uint64_t check_random_u64(check_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

double check_random_unit(check_rng *r)
{
    return (double)(check_random_u64(r) >> 11) * 0x1p-53;
}

int64_t check_random_int(check_rng *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(check_random_u64(r) % (uint64_t)(hi - lo + 1));
}

// Sum of four 16-bit uniforms, close enough to normal: variance of each is 1/12.
float check_random_normal(check_rng *r)
{
    uint64_t u = check_random_u64(r);
    double sum = (double)((u & 0xffff) + (u >> 16 & 0xffff) + (u >> 32 & 0xffff) + (u >> 48)) + 2.0;
    return (float)((sum / 65536.0 - 2.0) * 1.7320508075688772);
}

// --- layout ----------------------------------------------------------------------------------------

size_t check_operand_size(const check_operand *o)
{
    if (o->n_dims == 0) return 0;
    size_t rows = (size_t)(o->parent[0] * o->parent[1] * o->parent[2]);
    return rows * tn_dtype_row_size(o->dtype, o->parent[3]);
}

tn_view check_operand_view(const check_operand *o, void *parent)
{
    if (o->n_dims == 0) return (tn_view){0};
    tn_view p = {.dtype = o->dtype, .n_dims = o->n_dims, .offset = 0};
    memcpy(p.ne, o->parent, sizeof p.ne);
    tn_view_set_contiguous(&p);
    for (int d = 0; d < TN_MAX_DIMS; d++) {
        int64_t block = d == 3 ? tn_dtype_block_elems(o->dtype) : 1;
        p.offset += (size_t)(o->start[d] / block * p.nb[d]);
    }
    tn_view v = p;
    for (int d = 0; d < TN_MAX_DIMS; d++) {
        v.ne[d] = o->ne[d];
        v.nb[d] = p.nb[o->axes[d]];
    }
    v.data = parent ? (char *)parent + p.offset : NULL;
    return v;
}

// --- values ----------------------------------------------------------------------------------------

static float special_value(check_rng *r, int32_t special, float normal)
{
    switch (check_random_int(r, 0, 19)) {
    case 0:
        return special & CHECK_ZERO ? 0.0f : normal;
    case 1:
        return special & CHECK_ZERO ? -0.0f : normal;
    case 2:
        return special & CHECK_POS_INF ? INFINITY : normal;
    case 3:
        return special & CHECK_NEG_INF ? -INFINITY : normal;
    case 4:
        return special & CHECK_NAN ? NAN : normal;
    default:
        return normal;
    }
}

static float value(const check_operand *o, check_rng *r)
{
    float normal = check_random_normal(r);
    switch (o->fill) {
    case CHECK_NORMAL:
        return (float)(o->lo + (o->hi != 0.0 ? o->hi : 1.0) * (double)normal);
    case CHECK_EXTREME:
        return (float)copysign(pow(10.0, o->lo + (o->hi - o->lo) * check_random_unit(r)), (double)normal);
    case CHECK_SPECIAL:
        return special_value(r, o->special, normal);
    case CHECK_TIES:
        return (float)check_random_int(r, -2, 2) * 0.5f;
    case CHECK_MASK:
        return check_random_int(r, 0, 2) == 0 ? -INFINITY : 0.0f;
    case CHECK_INT:
        return (float)check_random_int(r, (int64_t)o->lo, (int64_t)o->hi);
    default:
        return (float)o->lo;
    }
}

// Bytes at random until the block is valid and its values are neither tiny nor huge, so that no block
// decides the result alone. Needs no knowledge of the format; about one block in ten passes.
static void random_block(check_rng *r, tn_dtype type, uint8_t *block)
{
    size_t size = tn_dtype_block_size(type);
    int64_t n = tn_dtype_block_elems(type);
    for (;;) {
        float values[256], max = 0.0f;
        for (size_t i = 0; i < size; i++) block[i] = (uint8_t)(check_random_u64(r) >> 40);
        if (!tn_quant_row_valid(type, block, n)) continue;
        tn_quant_info_get(type)->to_f32(block, values, n);
        for (int64_t i = 0; i < n; i++) max = fmaxf(max, fabsf(values[i]));
        if (max >= 0.1f && max <= 10.0f) return;
    }
}

static void fill_blocks(const check_operand *o, check_rng *r, uint8_t *row)
{
    int64_t n = tn_dtype_block_elems(o->dtype);
    const tn_quant_info *info = tn_quant_info_get(o->dtype);
    for (int64_t j = 0; j < o->ne[3]; j += n, row += tn_dtype_block_size(o->dtype)) {
        if (!info->from_f32 || o->random_blocks) {
            random_block(r, o->dtype, row);
            continue;
        }
        float x[256];
        for (int64_t i = 0; i < n; i++) x[i] = value(o, r);
        info->from_f32(x, row, n, NULL);
    }
}

// Plain types that references can write, and the others as small integers or doubles.
static void store(const tn_view *v, int64_t row, int64_t j, float x)
{
    char *p = (char *)tn_view_row(v, row) + j * v->nb[3];
    int64_t i = (int64_t)x;
    double d = x;
    switch (v->dtype) {
    case TN_TYPE_I8:
        *p = (char)i;
        break;
    case TN_TYPE_I16:
        memcpy(p, &(int16_t){(int16_t)i}, 2);
        break;
    case TN_TYPE_I64:
        memcpy(p, &i, 8);
        break;
    case TN_TYPE_F64:
        memcpy(p, &d, 8);
        break;
    default:
        tn_view_set_row(v, row, j, d);
    }
}

void check_operand_fill(const check_case *c, int32_t src, void *parent)
{
    const check_operand *o = &c->src[src];
    check_rng r = {c->seed + 0x51ed270b * (uint64_t)(src + 1)};
    // Around the view lie NaNs in every float type, which a kernel that reads there cannot hide.
    memset(parent, 0xff, check_operand_size(o));
    tn_view v = check_operand_view(o, parent);
    for (int64_t row = 0; row < tn_view_n_rows(&v); row++) {
        if (tn_dtype_block_elems(o->dtype) > 1) {
            fill_blocks(o, &r, tn_view_row(&v, row));
            continue;
        }
        for (int64_t j = 0; j < v.ne[3]; j++) {
            if (o->fill == CHECK_DATA)
                tn_view_set_row(&v, row, j, c->ints[o->ints_off + row * v.ne[3] + j]);
            else
                store(&v, row, j, value(o, &r));
        }
    }
}

// --- steps -----------------------------------------------------------------------------------------

tn_status check_step(tn_context *ctx, const check_case *c, tn_step *step)
{
    const tn_op_info *info = tn_op_info_get(c->op);
    *step = (tn_step){
        .op = c->op, .n_src = c->n_src, .n_dst = info->n_dst, .name = info->name, .precision = c->precision};
    step->join.one_query = c->one_query, step->join.uneven = c->uneven;
    step->join.apart = c->apart, step->join.mixed = c->mixed;
    step->params = info->params_size > 0 ? &c->params : NULL;
    for (int32_t i = 0; i < c->n_src; i++) {
        step->src[i] = check_operand_view(&c->src[i], NULL);
        step->src[i].offset = 0;
    }
    return info->infer(ctx, step);
}

const char *check_case_text(const check_case *c, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "%s", tn_op_name(c->op));
    for (int32_t i = 0; i < c->n_src && n < size; i++) {
        char text[96];
        const check_operand *o = &c->src[i];
        tn_view v = check_operand_view(o, NULL);
        bool whole = o->n_dims == 0 || tn_view_contiguous(&v);
        n += (size_t)snprintf(buf + n, size - n, "%s%s%s", i > 0 ? ", " : " ",
                              o->n_dims > 0 ? tn_view_text(&v, text, sizeof text) : "-",
                              whole ? "" : " strided");
    }
    if (n < size && c->note[0]) n += (size_t)snprintf(buf + n, size - n, ", %s", c->note);
    if (n < size && c->precision != TN_PRECISION_auto)
        n += (size_t)snprintf(buf + n, size - n, ", precision %s", tn_precision_name(c->precision));
    if (n < size && c->in_place) snprintf(buf + n, size - n, ", in place");
    return buf;
}
