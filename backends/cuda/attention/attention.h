// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the host files of the attention kernels share.
#ifndef TN_CUDA_ATTENTION_H
#define TN_CUDA_ATTENTION_H

#include "backends/cuda/attention/attention_args.h"
#include "backends/cuda/runtime/kernel.h"
#include "ops/operands.h"
#include "ops/ops.h"

// Queries per sequence, on average, up to which the decode kernel runs. It is right for any number, but it
// reads the cache again for every 8 or 16 rows.
enum { TN_CUDA_ATTENTION_DECODE_QUERIES = 8 };

// Types and layouts that all attention kernels need; rows of v may be parts of longer ones.
bool tn_cuda_attention_common(const tn_step *step);
// The type of both caches in the names of the decode kernels' entry points; NULL: there is none for it.
const char *tn_cuda_attention_cache_name(tn_dtype type);
// Whether the caches lie so that the decode kernels run, which can stage their results as int8; data of the
// step's views are bound.
bool tn_cuda_attention_decode_writes_quantised(const tn_step *step);
// Whether they stage them as x of the products of 9 to 64 rows instead (product/skinny/skinny_stream_args.h).
bool tn_cuda_attention_decode_writes_stages(const tn_cuda *cuda, const tn_step *step);
// What the kernels write so, from what the launch says.
void tn_cuda_attention_set_staged(const tn_cuda_launch *l, tn_cuda_attention_args *a);
// attention_token.c: one token of each sequence; data of the step's views may be NULL.
bool tn_cuda_attention_is_token(const tn_step *step);
// Or several of some, each of which that kernel treats like the token of a sequence of its own.
bool tn_cuda_attention_is_apart(const tn_cuda *cuda, const tn_step *step);
// Or most have one, beside pieces of prompts: it takes those, in a launch of its own.
bool tn_cuda_attention_is_mixed(const tn_cuda *cuda, const tn_step *step);
size_t tn_cuda_attention_token_scratch(const tn_cuda *cuda, const tn_step *step);
TN_MUST_USE tn_status tn_cuda_attention_token_launch(const tn_cuda_launch *l);
// Launches it for the sequences with one query of a step that is mixed, behind the launch for the others,
// whose arguments `a` are.
TN_MUST_USE tn_status tn_cuda_attention_single_launch(const tn_cuda_launch *l, tn_cuda_attention_args a,
                                                      char *scratch);
// attention_latent.c: compressed caches, for attention_wide.c, which has checked the rest and merges the
// splits. The values have to begin where the keys do, at a multiple of 16 bytes.
bool tn_cuda_attention_is_latent(const tn_cuda *cuda, const tn_step *step);
int32_t tn_cuda_attention_latent_splits(const tn_cuda *cuda, const tn_step *step);
TN_MUST_USE tn_status tn_cuda_attention_latent_launch(const tn_cuda_launch *l,
                                                      const tn_cuda_attention_args *a);
// Whether it can do the rope_cache step right before it too, whose results are its q and its caches.
bool tn_cuda_attention_token_fuses_rope(const tn_step *step, const tn_step *rope);
// Whether operands lie so that wgmma/attention_wgmma.c runs, which can read queries in 16 bits and leave its
// result in bf16; data of the step's views are bound.
bool tn_cuda_attention_wgmma_packs(const tn_step *step);
// Whether one of the wgmma kernels accepts a step.
bool tn_cuda_attention_wgmma_any(const tn_cuda *cuda, const tn_step *step);
// rope/rope_cache.c
tn_cuda_rope_cache_args tn_cuda_rope_cache_args_of(const tn_step *step);
// Whether it can leave q in the type of the cache; data of the step's views are bound.
bool tn_cuda_rope_cache_packs(const tn_step *step);
// Arguments from a step; splits and scratch stay 0.
tn_cuda_attention_args tn_cuda_attention_args_of(const tn_step *step);
// The tensor map of a cache of 16-bit elements: all its rows, in boxes of 64 rows by 64 elements.
TN_MUST_USE tn_status tn_cuda_attention_map(const tn_cuda_launch *l, const tn_view *cache, char *to);
// Row tiles of all sequences at most (attention/attention_rows.cuh).
static inline int64_t tn_cuda_attention_tiles(const tn_step *step, int32_t rows)
{
    int64_t group = step->src[TN_SRC_attention_q].ne[2] / step->src[TN_SRC_attention_k].ne[1];
    return step->src[TN_SRC_attention_q].ne[1] * group / rows + step->src[TN_SRC_attention_kv_len].ne[3];
}

#endif
