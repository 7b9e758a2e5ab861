// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// cache_write: copies one row per token and KV head into a paged cache, and converts it to the type of the
// cache.
//
// One warp has one row. Bytes moved: 4 per element read, and the bytes of one element of the cache written.
// Limit: memory.
#include "backends/cuda/rope/rope_args.h"
#include "backends/cuda/rope/cache_row.cuh"

enum { THREADS = TN_CUDA_ROPE_WARPS * TN_WARP };

TN_ENTRY __launch_bounds__(THREADS) tn_cache_write(const __grid_constant__ tn_cuda_cache_write_args a)
{
    tn_pdl_trigger();
    tn_pdl_wait();
    uint32_t row = blockIdx.x * TN_CUDA_ROPE_WARPS + threadIdx.x / TN_WARP, n_heads = (uint32_t)a.x.ne[2];
    if (row >= a.n_rows) return;
    int64_t token = row / n_heads, head = row % n_heads, slot = a.slots[token];
    if (slot < 0 || slot >= a.cache.ne[0] * a.cache.ne[2]) return;
    uint32_t block = (uint32_t)a.cache.ne[2];
    char *out = a.cache.data + (uint32_t)slot / block * a.cache.nb[0] + head * a.cache.nb[1] +
                (uint32_t)slot % block * a.cache.nb[2];
    const float *x = (const float *)(a.x.data + token * a.x.nb[1] + head * a.x.nb[2]);
    tn_write_cache_row(out, a.type, (int)a.cache.ne[3], x, (int)a.x.ne[3], threadIdx.x % TN_WARP);
}
