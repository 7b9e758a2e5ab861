// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for more than 8 queries per sequence on compute capability 9.0 (attention_wgmma.cu): f16 caches
// whose pages have a multiple of 64 rows.
#include "backends/cuda/attention/attention.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 128, THREADS = 384, PAGE = 64 }; // as in the kernel

bool tn_cuda_attention_wgmma_accepts(const tn_cuda *cuda, const tn_step *step)
{
    if (cuda->compute != 90 || !tn_cuda_attention_common(step) ||
        !tn_view_contiguous(&step->src[TN_SRC_attention_v]))
        return false;
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    int64_t d = q->ne[3];
    bool sizes = (d == 64 || d == 128 || d == 256) && k->ne[3] == d && v->ne[3] == d && k->ne[2] % PAGE == 0;
    return sizes && k->dtype == TN_TYPE_F16 && v->dtype == TN_TYPE_F16 && tn_view_n_rows(k) < INT32_MAX &&
           tn_cuda_attention_tiles(step, ROWS) * k->ne[1] < INT32_MAX;
}

static tn_status map_cache(tn_cuda *c, const tn_view *v, char *to)
{
    CUtensorMap map;
    const cuuint64_t dims[] = {(cuuint64_t)v->ne[3], (cuuint64_t)tn_view_n_rows(v)},
                     strides[] = {(cuuint64_t)v->nb[2]};
    const cuuint32_t box[] = {64, PAGE}, one[] = {1, 1};
    CUresult r =
        c->driver.tensor_map_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, v->data, dims, strides, box, one,
                                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    memcpy(to, &map, sizeof map);
    return tn_cuda_check(c, r, "mapping a cache");
}

tn_status tn_cuda_attention_wgmma_launch(const tn_cuda_launch *l)
{
    const tn_step *step = l->step;
    const tn_view *k = &step->src[TN_SRC_attention_k], *v = &step->src[TN_SRC_attention_v];
    tn_cuda_attention_mapped m = {.a = tn_cuda_attention_args_of(step)};
    if (m.a.n_seq == 0 || m.a.n_tokens == 0) return TN_OK;
    bool pairs = ((uintptr_t)m.a.y | (uintptr_t)m.a.y_token | (uintptr_t)m.a.y_head) % 8 == 0;
    if (((uintptr_t)k->data | (uintptr_t)v->data) % 16 != 0 || !pairs) return tn_cuda_attention_launch(l);
    tn_status status = l->sink ? TN_OK : map_cache(l->cuda, k, m.k);
    if (status == TN_OK && !l->sink) status = map_cache(l->cuda, v, m.v);
    if (status != TN_OK) return status;
    int32_t d = m.a.k.dim, keys = d == 256 ? 64 : 128;
    char entry[64];
    snprintf(entry, sizeof entry, "tn_attention_wgmma_%d", d);
    // Stages of q, two of k and of v, barriers; the kernel aligns them to 1024 bytes.
    int32_t q_stages = d == 256 ? 1 : 2;
    tn_cuda_grid grid = {.x =
                             (uint32_t)TN_MIN(l->cuda->n_sms, tn_cuda_attention_tiles(step, ROWS) * m.a.n_kv),
                         .y = 1,
                         .z = 1,
                         .threads = THREADS,
                         .shared = (uint32_t)((q_stages * ROWS + 4 * keys) * d * 2 + 2 * 1024)};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention_wgmma, entry, &grid, &m);
}
