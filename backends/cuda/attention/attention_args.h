// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the attention kernels are given: q [T, H, D], paged caches, tables, and the mask as in
// tn_attention_params.
#ifndef TN_CUDA_ATTENTION_ARGS_H
#define TN_CUDA_ATTENTION_ARGS_H

#include "backends/cuda/rope/rope_cache_args.h"

#include <stdalign.h>

// How the elements of a cache are stored.
enum {
    TN_CUDA_CACHE_F32,
    TN_CUDA_CACHE_F16,
    TN_CUDA_CACHE_BF16,
    TN_CUDA_CACHE_Q8_0,
    TN_CUDA_CACHE_Q4_0,
    TN_CUDA_CACHE_COUNT
};

// What is left in y (tn_cuda_attention_args.y_packed): f32, bf16, or f16 in the order in which
// product/gemm/gemm_blocks.cuh multiplies, of each 16 values the even ones first.
enum { TN_CUDA_PACKED_NOT, TN_CUDA_PACKED_BF16, TN_CUDA_PACKED_F16_EVEN_FIRST };

// The sequences that a launch has. The others have another launch.
enum { TN_CUDA_ATTENTION_ALL, TN_CUDA_ATTENTION_SINGLE, TN_CUDA_ATTENTION_PIECES };

// A paged cache: row of key j of KV head g is data + page * block_size + g * head_size + (j % block) *
// row_size.
typedef struct tn_cuda_cache {
    const char *data;
    int64_t block_size, head_size, row_size; // bytes
    int32_t type;
    int32_t dim; // elements of a row that count
} tn_cuda_cache;

typedef struct tn_cuda_attention_args {
    const char *q;
    int64_t q_token, q_head, q_elem; // bytes
    char *y;
    int64_t y_token, y_head; // bytes; elements of y are adjacent
    int32_t y_packed;        // TN_CUDA_PACKED_*; q has 16 bits, too, where q_elem is 2
    tn_cuda_cache k, v;
    const int32_t *q_start; // [n_seq + 1]
    const int32_t *kv_len;  // [n_seq]
    const int32_t *table;   // [n_seq, max_blocks]
    const float *sinks;     // [n_heads], or NULL
    int32_t n_seq, n_tokens, n_heads, n_kv, block, max_blocks;
    int32_t causal, window, chunk;
    float scale, softcap, max_bias;
    // Parts that the keys of a sequence are split into at most, and where their results lie.
    int32_t n_splits;
    int32_t n_slots; // of the kernel for wide heads: tiles of keys in shared memory
    // Of sequences with one query and others: which of them this launch has (TN_CUDA_ATTENTION_*).
    int32_t which;
    // [n_splits, n_tokens, n_heads, dim of v], then [n_splits, n_tokens, n_heads, 2]: maximum, sum
    float *partial;
    tn_cuda_quantised quantised_y; // a token's heads one after another
} tn_cuda_attention_args;

typedef struct tn_cuda_attention_decode_args {
    tn_cuda_attention_args a;
    int32_t early; // no step of the program writes lengths and tables
} tn_cuda_attention_decode_args;

// Of the kernel for one token, which does the rope_cache step before it too.
typedef struct tn_cuda_attention_token_args {
    tn_cuda_attention_args a;
    int32_t cluster_shift; // 2^this splits share a cluster; n_splits is a multiple of it
    int32_t block_shift, block_mask; // of rows of a block, a power of two
    int32_t group, parts; // query heads of a KV head; parts of them, of up to 8
    int32_t alone;   // tiles of keys up to which one cluster does it all
    int32_t n_extra; // sequences' worth of blocks for parts of long sequences (attention_token_share.cuh)
    // No step of the program writes lengths, tables, positions, slots and earlier rows of the caches.
    int32_t early;
    tn_cuda_rope_cache_args rope; // slots NULL: only q is there, as it is
} tn_cuda_attention_token_args;

// The same with tensor maps (CUtensorMap) of the caches: matrices of all their rows, in boxes of 64 rows by
// 64 elements.
typedef struct tn_cuda_attention_mapped {
    alignas(64) char k[128];
    alignas(64) char v[128];
    tn_cuda_attention_args a;
} tn_cuda_attention_mapped;

#endif
