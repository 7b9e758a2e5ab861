// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What every shader is given: one record in a buffer, its address in the push constants. The same for all
// ops, so that operands and parameters are copied from the step without knowing the op; shaders/common.glsl
// has the same layout.
#ifndef TN_VULKAN_ARGS_H
#define TN_VULKAN_ARGS_H

#include "ops/step.h"

#include <stdint.h>

typedef struct tn_vk_view {
    uint64_t data;
    int64_t nb[TN_MAX_DIMS]; // bytes
    int32_t ne[TN_MAX_DIMS]; // elements
    int32_t dtype, pad;
} tn_vk_view;

// args.n, set by the launch of a kernel and read by its shader. Shaders have the same names without TN_VK_
// (constants.sh). Sources and results are indices into args.src and args.dst; a parameter is the index of its
// first word in args.params. -1: absent.
enum { TN_VK_N_MOVE_AXIS }; // of concat, among four dimensions
enum { TN_VK_N_GET_ROWS_OP };
enum { TN_VK_N_ARGMAX_PARTS }; // of each row
enum { TN_VK_N_SAMPLE_PARTS }; // of each row with edits
enum {
    TN_VK_N_ROPE_X,       // source
    TN_VK_N_ROPE_POS,     // source
    TN_VK_N_ROPE_NORM,    // source: weight of the norm of x, or of q
    TN_VK_N_ROPE_FACTORS, // source
    TN_VK_N_ROPE_PARAMS,  // parameter: tn_rope_params
    TN_VK_N_ROPE_EPS,     // parameter: epsilon of the norms
    TN_VK_N_ROPE_NORM_K,  // source: weight of the norm of k
    TN_VK_N_ROPE_RESULT,  // result: y, or q
    TN_VK_N_ROPE_SLOTS    // source
};
enum {
    TN_VK_N_ATTENTION_ROUND // logarithm of the keys of a round of loads: a part has whole rounds
};
enum {
    TN_VK_N_PRODUCT_COLUMNS,         // of the result: n
    TN_VK_N_PRODUCT_ROWS,            // of the result: m
    TN_VK_N_PRODUCT_BIAS,            // source
    TN_VK_N_PRODUCT_RESIDUAL,        // source
    TN_VK_N_PRODUCT_ACT,             // TN_UNARY_*
    TN_VK_N_PRODUCT_RESULT,          // result
    TN_VK_N_PRODUCT_GLU,             // parameter: tn_glu_params
    TN_VK_N_PRODUCT_IDS,             // source
    TN_VK_N_PRODUCT_EXPERTS,         // how many there are
    TN_VK_N_PRODUCT_NORM,            // source
    TN_VK_N_PRODUCT_EPS,             // parameter: epsilon of the norm
    TN_VK_N_PRODUCT_SPLITS,          // parts that the common dimension is divided into
    TN_VK_N_PRODUCT_X_STRIDE,        // bytes from one row of x to the next
    TN_VK_N_PRODUCT_RESIDUAL_STRIDE, // the same of the residual
    TN_VK_N_PRODUCT_RESULT_STRIDE,   // the same of the result
    TN_VK_N_PRODUCT_BLOCKS,          // most blocks of rows that share an expert (product/sort_by_expert.comp)
    TN_VK_N_PRODUCT_EXPANDED,        // where in scratch expanded weights start, by 256 bytes
    TN_VK_N_PRODUCT_COPY,            // where in scratch the copy of x starts, by 256 bytes
    TN_VK_N_PRODUCT_COUNTERS,        // the first counter of a product divided into parts
    TN_VK_N_PRODUCT_SUMS             // where in scratch the sums of its parts start, by 256 bytes
};

// Orders of the elements of x (product/convert_16bit.comp).
enum { TN_VK_ORDER_NONE, TN_VK_ORDER_VECTORS, TN_VK_ORDER_K_QUANT, TN_VK_ORDER_Q6_K };

// A weight in planes (backends/planes.def): plane p of row r starts at plane[p] + r * row_size[p].
enum { TN_VK_MAX_PLANES = 4, TN_VK_MAX_WEIGHTS = 2, TN_VK_PARAMS = 32, TN_VK_NUMBERS = 20 };
typedef struct tn_vk_weight {
    uint64_t plane[TN_VK_MAX_PLANES];
    int64_t row_size[TN_VK_MAX_PLANES];
} tn_vk_weight;

typedef struct tn_vk_args {
    tn_vk_view src[TN_MAX_SRC], dst[TN_MAX_DST];
    tn_vk_weight weight[TN_VK_MAX_WEIGHTS];
    uint64_t tables;              // grids of the codebook formats, as uint16
    uint64_t scratch;             // of the step, as large as its kernel needs
    uint64_t staged;              // where the staged result goes
    uint64_t staged_norm;         // weight of the norm of the step that reads it; 0: none
    uint64_t counters;            // 32 bits each, all 0 before a dispatch and after it
    int32_t params[TN_VK_PARAMS]; // tn_<op>_params, by words
    int32_t n[TN_VK_NUMBERS];     // set by the launch: see its shader
} tn_vk_args;

// Push constants, of the 128 bytes that every device has: the address of the record, and what a product needs
// to start the loads of its weights. They come with the dispatch, so these loads do not wait for the record.
typedef struct tn_vk_push {
    uint64_t args, scratch, plane[TN_VK_MAX_WEIGHTS][TN_VK_MAX_PLANES];
    uint32_t row_size[TN_VK_MAX_PLANES]; // of both weights
    uint64_t result, residual;
    int32_t n[2], k, ids; // args.n[0], [1]; elements of a row of source 0; args.n[7]
} tn_vk_push;

#endif
