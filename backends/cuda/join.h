// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How steps share work here (TN_JOIN_* of ops/step.h, decided by a pass of the graph):
//
// STAGE. Matrix products of quantised weights with up to 8 rows read activations as int8. Where the kernel
// that makes the activations can write them so too (TN_CUDA_WRITES_QUANTISED of kernels.def), it does, next
// to the plain result: else every block of the product would read and round all of them before it can begin
// (2 to 3 of the 6 microseconds of a product on an H200). Products of 9 to 64 rows
// (product/skinny/skinny_stream.cuh) read f16; attention over a cache in f16 writes its result so for them,
// and no launch has to make it.
//
// PACK. Products of many rows round activations to 16 bits. A gated pair does that in place of its own result
// where only such a product reads it (TN_CUDA_WRITES_PACKED16): a pass over the widest rows of a layer less,
// and half the bytes. So does attention of many queries for a product in bf16, and rope_cache leaves the
// queries of that attention in the type of the cache.
//
// FOLD. rope_cache is done by the attention of one token after it, the last product of experts by the sum of
// its results: one launch less each.
//
// DEFER. A router whose logits take all multiprocessors to compute leaves them in the scratch memory, and
// each block of the experts' product after it routes for itself: a launch less.
#ifndef TN_CUDA_JOIN_H
#define TN_CUDA_JOIN_H

#include "backends/cuda/runtime/kernel.h"

// core/backend.h, joins.
uint32_t tn_cuda_joins(const tn_device *device, const tn_step_pair *pair);
// core/backend.h, staged_size.
size_t tn_cuda_join_staged_size(const tn_device *device, const tn_step *step);
// Whether the operands of a step, with data bound and after the step before it, are aligned as its join
// needs.
bool tn_cuda_join_holds(const tn_cuda *cuda, const tn_step *step);

#endif
