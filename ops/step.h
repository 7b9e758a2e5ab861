// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a backend is given: one op with its operands and parameters.
#ifndef TN_OPS_STEP_H
#define TN_OPS_STEP_H

#include <stdbool.h>
#include <tenon/ops.h>
#include <tenon/precision.h>

#define TN_MAX_SRC 10
#define TN_MAX_DST 3

// A strided view of memory. Always TN_MAX_DIMS dimensions: lower ranks have leading ones.
// ne[3] is the row; a row's elements (or blocks) are adjacent unless nb[3] says otherwise.
typedef struct tn_view {
    void *data; // host pointer, or address on the device
    tn_dtype dtype;
    int32_t n_dims;           // rank as recorded, for messages
    int64_t ne[TN_MAX_DIMS];  // elements
    int64_t nb[TN_MAX_DIMS];  // bytes from one index to the next; for block types nb[3] is the block size
    struct tn_buffer *buffer; // that data lies in, and where; NULL while planning
    size_t offset;
} tn_view;

typedef struct tn_step {
    int32_t op; // TN_OP_*
    int32_t n_src, n_dst;
    tn_view src[TN_MAX_SRC]; // an absent optional source in the middle has ne[3] = 0
    tn_view dst[TN_MAX_DST];
    const void *params; // tn_<op>_params, NULL if the op has none
    const char *name;   // of the first result, for messages and traces
    int32_t precision;  // TN_PRECISION_*, of matrix products
} tn_step;

// Between host memory that the device can reach (core/backend.h, host_create) and memory of the device.
typedef struct tn_host_copy {
    void *host, *device;
    size_t size; // a multiple of 4, as the addresses are
} tn_host_copy;

// Steps in order, for one device.
typedef struct tn_program {
    int32_t n_steps;
    const tn_step *steps;
    // Part of every run: uploads before the first step, downloads after the last. Only for backends with
    // host_create.
    int32_t n_uploads, n_downloads;
    const tn_host_copy *uploads, *downloads;
    // Bit d of entry i: nothing but step i + 1 ever reads what step i leaves at dst[d], so that it need not
    // be there afterwards. NULL: not known.
    const uint8_t *only_next;
} tn_program;

// Rows of a view: product of all dimensions but the last.
static inline int64_t tn_view_n_rows(const tn_view *v)
{
    return v->ne[0] * v->ne[1] * v->ne[2];
}

static inline int64_t tn_view_n_elems(const tn_view *v)
{
    return tn_view_n_rows(v) * v->ne[3];
}

// Row r counted over the outer dimensions in order.
static inline void *tn_view_row(const tn_view *v, int64_t r)
{
    int64_t i2 = r % v->ne[2], q = r / v->ne[2];
    int64_t i1 = q % v->ne[1], i0 = q / v->ne[1];
    return (char *)v->data + i0 * v->nb[0] + i1 * v->nb[1] + i2 * v->nb[2];
}

static inline bool tn_view_rows_contiguous(const tn_view *v)
{
    return v->nb[3] == (int64_t)tn_dtype_block_size(v->dtype);
}

// True if the bytes of the view are one run without gaps.
static inline bool tn_view_contiguous(const tn_view *v)
{
    int64_t expect = (int64_t)tn_dtype_row_size(v->dtype, v->ne[3]);
    if (!tn_view_rows_contiguous(v)) return false;
    for (int d = TN_MAX_DIMS - 2; d >= 0; d--) {
        if (v->ne[d] != 1 && v->nb[d] != expect) return false;
        expect *= v->ne[d];
    }
    return true;
}

#endif
