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

// Kinds of joining: how a step (the maker) and a later one that reads its result (the reader) share work. A
// pass of the graph decides from who reads which value what is allowed, and asks the backend what its kernels
// support (core/backend.h, joins); the steps that a backend is given say what was decided (tn_step_join).
enum {
    // The launch of the reader, which is the very next step, does the maker's work too; the maker launches
    // nothing. Only where nothing else reads the maker's results, apart from states that both work on, and
    // where the maker's sources stay as they are until the reader has ended.
    TN_JOIN_FOLD = 1,
    // Next to its result the maker writes the same rows as quantised activations, in a format private to the
    // backend, into memory of their own (tn_step_join.staged_y). Matrix products that read the result use
    // them (staged_x) instead of quantising all of x in each of their blocks.
    TN_JOIN_STAGE = 2,
    // The maker leaves its result only as the 16-bit rows that the next step, its one reader, multiplies;
    // they lie where the f32 result would, which nobody else reads.
    TN_JOIN_PACK = 4,
    // The maker does only the first part of its work and leaves what it has in the scratch memory; the next
    // step finishes that work before its own, and writes the maker's results.
    TN_JOIN_DEFER = 8,
};

// What a step shares with others. All zero: nothing. A view with ne[3] = 0 is none.
typedef struct tn_step_join {
    uint32_t previous, next; // TN_JOIN_FOLD, PACK, DEFER: with the step before it, and with the one after it
    tn_view staged_x;        // TN_JOIN_STAGE: bytes to read instead of source 0
    tn_view staged_y;        // TN_JOIN_STAGE: bytes to write next to the result
    tn_view staged_norm;     // with staged_y: weight of the norm that the readers do; none: they do none
    // No step of the plan writes the integers that this one reads; with TN_JOIN_FOLD nor those that the step
    // before reads, and nothing before that one writes the states that both work on: all of it can be read
    // early.
    bool early;
    bool computed_weights; // of a matrix product: a step of the plan makes one of its weights
    // Of attention: each sequence has exactly one query, so q_start is 0, 1, 2, ... This is not decided by
    // the plan, but promised by who recorded the step.
    bool one_query;
    bool uneven; // with one_query: some sequences are much longer than the mean (tn_attention_args)
    bool apart;  // queries may be treated like sequences of one query (TN_QUERIES_SHORT)
    bool mixed;  // most sequences have one query, others are pieces of prompts (TN_QUERIES_MIXED)
} tn_step_join;

typedef struct tn_step {
    int32_t op; // TN_OP_*
    int32_t n_src, n_dst;
    tn_view src[TN_MAX_SRC]; // an absent optional source in the middle has ne[3] = 0
    tn_view dst[TN_MAX_DST];
    const void *params; // tn_<op>_params, NULL if the op has none
    const char *name;   // of the first result, for messages and traces
    int32_t precision;  // TN_PRECISION_*, of matrix products
    tn_step_join join;
} tn_step;

// A step and a later one of the same device that reads a result of it, as a backend is asked about them.
typedef struct tn_step_pair {
    const tn_step *maker, *reader;
    bool adjacent; // no other step comes between
    // Of each source of the reader: the result of the maker that begins at the same byte of the same storage,
    // or -1.
    int32_t from[TN_MAX_SRC];
    // The source of the maker that is the same value, or -1.
    int32_t shared[TN_MAX_SRC];
} tn_step_pair;

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
