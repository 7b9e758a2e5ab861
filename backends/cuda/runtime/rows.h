// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the host files of row-wise and elementwise kernels share: all operands of a step as one argument,
// broadcasting sources over the result, merging outer dimensions that lie one behind the other, and whether
// all addresses allow 16-byte accesses.
#ifndef TN_CUDA_ROWS_H
#define TN_CUDA_ROWS_H

#include "backends/cuda/runtime/kernel.h"
#include "backends/cuda/runtime/operands.h"
#include "backends/cuda/runtime/row_split.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

static inline bool tn_cuda_f32_rows(const tn_view *v)
{
    return v->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(v);
}

static inline bool tn_cuda_i32_run(const tn_view *v)
{
    return v->dtype == TN_TYPE_I32 && tn_view_contiguous(v);
}

// A vector of weights of a row: address, or NULL if source i is absent.
static inline const float *tn_cuda_vector(const tn_step *step, int32_t i)
{
    return tn_step_has_src(step, i) ? step->src[i].data : NULL;
}

// Whether tn_cuda_operands can hold the operands of the step.
static inline bool tn_cuda_operands_fit(const tn_step *step)
{
    return step->n_src <= TN_CUDA_MAX_SOURCES && step->n_dst <= TN_CUDA_MAX_RESULTS;
}

// For a step that fits.
static inline tn_cuda_operands tn_cuda_operands_of(const tn_step *step)
{
    tn_cuda_operands o = {.src = {{.data = NULL}}};
    for (int32_t i = 0; i < step->n_src; i++)
        if (tn_step_has_src(step, i)) o.src[i] = tn_cuda_view_of(&step->src[i]);
    for (int32_t i = 0; i < step->n_dst; i++) o.dst[i] = tn_cuda_view_of(&step->dst[i]);
    size_t size = tn_op_info_get(step->op)->params_size;
    if (size > 0) memcpy(&o.params, step->params, size);
    return o;
}

// Lists the operands that the step has, sources first, and returns how many there are.
enum { TN_CUDA_MAX_OPERANDS = TN_CUDA_MAX_SOURCES + TN_CUDA_MAX_RESULTS };
static inline int32_t tn_cuda_operands_list(const tn_step *step, tn_cuda_operands *o,
                                            tn_cuda_view *list[TN_CUDA_MAX_OPERANDS])
{
    int32_t n = 0;
    for (int32_t i = 0; i < step->n_src; i++)
        if (tn_step_has_src(step, i)) list[n++] = &o->src[i];
    for (int32_t i = 0; i < step->n_dst; i++) list[n++] = &o->dst[i];
    return n;
}

// The view with extents of 1 repeated to those of y.
static inline tn_cuda_view tn_cuda_view_broadcast(const tn_view *v, const tn_view *y)
{
    tn_cuda_view out = tn_cuda_view_of(v);
    for (int32_t d = 0; d < 4; d++) {
        if (v->ne[d] == 1) out.nb[d] = 0;
        out.ne[d] = y->ne[d];
    }
    return out;
}

// Merges dimension d of all views into d + 1 where all of them allow it, outermost last; views have the same
// extents, or are vectors. With `columns` rows may be merged into one, too.
static inline void tn_cuda_views_merge(tn_cuda_view *const *views, int32_t n, bool columns)
{
    for (int32_t to = columns ? 3 : 2; to > 0; to--) {
        for (int32_t from = to - 1; from >= 0; from--) {
            bool joins = true;
            for (int32_t i = 0; i < n; i++) {
                const tn_cuda_view *v = views[i];
                joins = joins && (v->ne[from] == 1 || v->ne[to] == 1 || v->nb[from] == v->ne[to] * v->nb[to]);
            }
            if (!joins) break;
            for (int32_t i = 0; i < n; i++) {
                tn_cuda_view *v = views[i];
                if (v->ne[to] == 1) v->nb[to] = v->nb[from];
                v->ne[to] *= v->ne[from];
                v->ne[from] = 1;
            }
        }
    }
}

// All rows of the view start at multiples of 16 bytes and have adjacent elements of `size` bytes.
static inline bool tn_cuda_aligned(const tn_cuda_view *v, int64_t size)
{
    bool ok = (uintptr_t)v->data % 16 == 0 && (v->nb[3] == size || v->ne[3] == 1);
    for (int32_t d = 0; d < 3; d++) ok = ok && (v->ne[d] == 1 || v->nb[d] % 16 == 0);
    return ok;
}

// Shares the rows of y, each of n_pieces pieces.
static inline tn_cuda_split tn_cuda_split_of(const tn_cuda_view *y, int64_t n_pieces)
{
    tn_cuda_split s = {.n_rows = (uint32_t)(y->ne[0] * y->ne[1] * y->ne[2]),
                       .n_chunks = (uint32_t)tn_div_up(n_pieces, TN_CUDA_SPLIT_THREADS),
                       .shift = -1};
    if (n_pieces > TN_CUDA_SPLIT_THREADS / 2 || n_pieces == 0) return s;
    s.shift = 0;
    while (1 << s.shift < n_pieces) s.shift++;
    return s;
}

static inline tn_cuda_grid tn_cuda_split_grid(const tn_cuda_split *s)
{
    uint32_t blocks = s->shift < 0 ? s->n_rows * s->n_chunks
                                   : (uint32_t)tn_div_up(s->n_rows, TN_CUDA_SPLIT_THREADS >> s->shift);
    return (tn_cuda_grid){.x = blocks, .y = 1, .z = 1, .threads = TN_CUDA_SPLIT_THREADS};
}

static inline bool tn_cuda_pointer_aligned(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

#endif
