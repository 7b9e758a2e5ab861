// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// copy:        elements of any strided tensor, F32, F16, BF16 or packed -> contiguous F32, F16 or BF16; I32
// -> I32 get_rows:    rows of a table [n, k] of any type by ids I32 [..] -> f32 [.., k], times scale
// cache_write: x f32 [T, KV, D] into a paged store [n_blocks, KV, B, D] of F32, F16, BF16, Q8_0 or Q4_0 at
//              slots I32 [T] (block * B + index; outside the store: skipped)
// Work: pieces of ROW_CHUNK elements, rows for the other two. No scratch: types other than f32 pass through
// a piece on the stack. Limit: memory.
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/c/convert_tmpl.h"

// n elements of 2 or 4 bytes that lie `stride` bytes apart, to a run without gaps
static void gather(const char *x, int64_t stride, char *y, int64_t n, size_t size)
{
    if (size == sizeof(uint32_t))
        for (int64_t i = 0; i < n; i++) memcpy(y + 4 * i, x + i * stride, 4);
    else
        for (int64_t i = 0; i < n; i++) memcpy(y + 2 * i, x + i * stride, 2);
}

// Piece c of a row: x is the row's start; y where the piece goes.
static void copy_piece(const tn_view *xv, const char *x, const row_chunk *c, tn_dtype to, char *y)
{
    float wide[ROW_CHUNK];
    char packed[ROW_CHUNK * sizeof(float)];
    size_t size = tn_dtype_block_size(xv->dtype);
    int64_t block = tn_dtype_block_elems(xv->dtype);
    const char *p = x + c->first / block * xv->nb[3];
    if (xv->nb[3] != (int64_t)size) { // plain types only
        gather(p, xv->nb[3], packed, c->n, size);
        p = packed;
    }
    if (xv->dtype == to) {
        memcpy(y, p, (size_t)c->n * size);
    } else if (to == TN_TYPE_F32) {
        to_f32_get(xv->dtype)(p, (float *)(void *)y, c->n);
    } else {
        to_f32_get(xv->dtype)(p, wide, c->n);
        from_f32_get(to)(wide, y, c->n);
    }
}

void VEC_NAME(copy)(const tn_cpu_task *task)
{
    const tn_view *x = &task->step->src[0], *y = &task->step->dst[0];
    int64_t n = y->ne[3], n_rows = tn_view_n_rows(y), first, last;
    if (tn_view_contiguous(x) && tn_view_contiguous(y)) {
        n *= n_rows;
        n_rows = 1;
    }
    rows_split(task, n_rows * row_chunks(n), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, n);
        copy_piece(x, tn_view_row(x, c.row), &c, y->dtype,
                   (char *)tn_view_row(y, c.row) + c.first * y->nb[3]);
    }
}

void VEC_NAME(get_rows)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_get_rows_params *p = step->params;
    const tn_view *table = &step->src[0], *y = &step->dst[0];
    const int32_t *ids = step->src[1].data;
    to_f32_fn to_f32 = to_f32_get(table->dtype);
    vf scale = vf_set1(p->scale != 0.0f ? p->scale : 1.0f);
    int64_t n = y->ne[3], first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        float *out = tn_view_row(y, r);
        if (ids[r] < 0 || ids[r] >= table->ne[2]) {
            memset(out, 0, (size_t)n * sizeof *out);
            continue;
        }
        to_f32((const char *)table->data + ids[r] * table->nb[2], out, n);
        if (p->scale == 0.0f || p->scale == 1.0f) continue;
        for (int64_t i = 0; i < n; i += VEC_N) {
            int64_t left = TN_MIN(n - i, VEC_N);
            vf_store_n(out + i, vf_mul(vf_load_n(out + i, left), scale), left);
        }
    }
}

// n floats to a row of n_row elements: whole blocks at once, then a block that is filled up with zeros, and
// zeros to the end.
static void write_padded(from_f32_fn from_f32, tn_dtype type, const float *x, int64_t n, char *row,
                         int64_t n_row)
{
    int64_t block = tn_dtype_block_elems(type), whole = n / block * block;
    if (whole > 0) from_f32(x, row, whole);
    for (int64_t j = whole; j < n_row; j += block) {
        float last[256] = {0};
        if (j < n) memcpy(last, x + j, (size_t)(n - j) * sizeof *x);
        from_f32(last, row + j / block * (int64_t)tn_dtype_block_size(type), block);
    }
}

void VEC_NAME(cache_write)(const tn_cpu_task *task)
{
    const tn_view *x = &task->step->src[TN_SRC_cache_write_x], *cache = &task->step->dst[0];
    const int32_t *slots = task->step->src[TN_SRC_cache_write_slots].data;
    from_f32_fn from_f32 = from_f32_get(cache->dtype);
    int64_t n_heads = x->ne[2], n_slots = cache->ne[0] * cache->ne[2], first, last;
    rows_split(task, x->ne[1] * n_heads, &first, &last);
    for (int64_t r = first; r < last; r++) {
        int64_t slot = slots[r / n_heads], head = r % n_heads;
        if (slot < 0 || slot >= n_slots) continue;
        char *row = (char *)cache->data + slot / cache->ne[2] * cache->nb[0] + head * cache->nb[1] +
                    slot % cache->ne[2] * cache->nb[2];
        write_padded(from_f32, cache->dtype, tn_view_row(x, r), x->ne[3], row, cache->ne[3]);
    }
}
