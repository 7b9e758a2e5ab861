// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How the kernels of row-wise and elementwise ops walk over views and divide the work. A piece of work is a
// run of at most ROW_CHUNK elements of one row for elementwise ops, a row for the others; what a thread
// computes for a piece does not depend on how many threads there are.
#ifndef TN_CPU_ROWS_H
#define TN_CPU_ROWS_H

#include "backends/cpu/kernel.h"
#include "ops/operands.h"

// Elements: small enough that the row of one token (2048..16384) is still divided among threads, large
// enough that finding the row (three divisions) does not show.
#define ROW_CHUNK 1024

typedef struct row_chunk {
    int64_t row, first, n; // elements [first, first + n) of the row
} row_chunk;

static inline int64_t row_chunks(int64_t row_size)
{
    return (row_size + ROW_CHUNK - 1) / ROW_CHUNK;
}

static inline row_chunk row_chunk_get(int64_t i, int64_t row_size)
{
    int64_t per_row = row_chunks(row_size);
    row_chunk c = {.row = i / per_row, .first = i % per_row * ROW_CHUNK};
    c.n = TN_MIN(ROW_CHUNK, row_size - c.first);
    return c;
}

// Share of the rows for this thread.
static inline void rows_split(const tn_cpu_task *task, int64_t n_rows, int64_t *first, int64_t *last)
{
    tn_cpu_split(n_rows, 1, task->ith, task->nth, first, last);
}

// The data of v that belongs to row r of y, where extents of 1 in v are repeated.
static inline const void *row_broadcast(const tn_view *v, const tn_view *y, int64_t r)
{
    int64_t i2 = r % y->ne[2], q = r / y->ne[2], i1 = q % y->ne[1], i0 = q / y->ne[1];
    return (const char *)v->data + (v->ne[0] == 1 ? 0 : i0) * v->nb[0] + (v->ne[1] == 1 ? 0 : i1) * v->nb[1] +
           (v->ne[2] == 1 ? 0 : i2) * v->nb[2];
}

// A source that may be missing.
static inline bool row_has_src(const tn_step *step, int32_t i)
{
    return i < step->n_src && step->src[i].ne[3] > 0;
}

static inline const void *row_optional(const tn_step *step, int32_t i)
{
    return row_has_src(step, i) ? step->src[i].data : NULL;
}

#endif
