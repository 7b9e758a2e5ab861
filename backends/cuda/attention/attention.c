// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What all attention kernels need of a step, their arguments, and the general kernel (attention.cu), which
// runs what no other one accepts.
#include "backends/cuda/attention/attention.h"
#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/product/skinny/skinny.h"
#include "backends/cuda/product/skinny/skinny_stream_args.h"
#include "backends/cuda/runtime/tensor_map.h"

enum {
    GENERAL_THREADS = 128,
    GENERAL_SHARED = 46 * 1024, // bytes for a row of q and one of v, beside 2 KiB of its own
};

// TN_CUDA_CACHE_*; -1: no kernel reads it.
static int32_t cache_type(tn_dtype type)
{
    switch (type) {
    case TN_TYPE_F32:
        return TN_CUDA_CACHE_F32;
    case TN_TYPE_F16:
        return TN_CUDA_CACHE_F16;
    case TN_TYPE_BF16:
        return TN_CUDA_CACHE_BF16;
    case TN_TYPE_Q8_0:
        return TN_CUDA_CACHE_Q8_0;
    case TN_TYPE_Q4_0:
        return TN_CUDA_CACHE_Q4_0;
    default:
        return -1;
    }
}

static tn_cuda_cache cache_of(const tn_view *v, int64_t dim)
{
    return (tn_cuda_cache){v->data, v->nb[0], v->nb[1], v->nb[2], cache_type(v->dtype), (int32_t)dim};
}

bool tn_cuda_attention_common(const tn_step *step)
{
    const tn_view *q = &step->src[TN_SRC_attention_q], *k = &step->src[TN_SRC_attention_k],
                  *v = &step->src[TN_SRC_attention_v];
    bool caches = cache_type(k->dtype) >= 0 && cache_type(v->dtype) >= 0 && tn_view_contiguous(k) &&
                  tn_view_rows_contiguous(v) && k->ne[1] > 0 && k->ne[2] > 0 && k->ne[2] <= 1 << 20 &&
                  q->ne[3] <= k->ne[3] && q->ne[2] % k->ne[1] == 0;
    bool tables = true;
    for (int32_t i = TN_SRC_attention_q_start; i <= TN_SRC_attention_block_table; i++)
        tables = tables && step->src[i].dtype == TN_TYPE_I32 && tn_view_contiguous(&step->src[i]);
    bool sinks = !tn_step_has_src(step, TN_SRC_attention_sinks) ||
                 (step->src[TN_SRC_attention_sinks].dtype == TN_TYPE_F32 &&
                  tn_view_contiguous(&step->src[TN_SRC_attention_sinks]));
    // Distances are exact in f32; positions fit 32 bits.
    bool exact = step->src[TN_SRC_attention_block_table].ne[3] * k->ne[2] < 1 << 24;
    return caches && tables && sinks && exact && q->dtype == TN_TYPE_F32 && q->ne[0] == 1 &&
           q->ne[1] < 1 << 24 && q->ne[2] < 65536 && step->dst[0].dtype == TN_TYPE_F32 &&
           tn_view_rows_contiguous(&step->dst[0]);
}

tn_cuda_attention_args tn_cuda_attention_args_of(const tn_step *step)
{
    const tn_attention_params *p = step->params;
    const tn_view *q = &step->src[TN_SRC_attention_q], *y = &step->dst[0],
                  *k = &step->src[TN_SRC_attention_k];
    return (tn_cuda_attention_args){
        .q = q->data,
        .q_token = q->nb[1],
        .q_head = q->nb[2],
        .q_elem = q->nb[3],
        .y = y->data,
        .y_token = y->nb[1],
        .y_head = y->nb[2],
        .k = cache_of(k, q->ne[3]),
        .v = cache_of(&step->src[TN_SRC_attention_v], y->ne[3]),
        .q_start = step->src[TN_SRC_attention_q_start].data,
        .kv_len = step->src[TN_SRC_attention_kv_len].data,
        .table = step->src[TN_SRC_attention_block_table].data,
        .sinks =
            tn_step_has_src(step, TN_SRC_attention_sinks) ? step->src[TN_SRC_attention_sinks].data : NULL,
        .n_seq = (int32_t)step->src[TN_SRC_attention_kv_len].ne[3],
        .n_tokens = (int32_t)q->ne[1],
        .n_heads = (int32_t)q->ne[2],
        .n_kv = (int32_t)k->ne[1],
        .block = (int32_t)k->ne[2],
        .max_blocks = (int32_t)step->src[TN_SRC_attention_block_table].ne[3],
        .causal = p->causal,
        .window = p->window,
        .chunk = p->chunk,
        .scale = p->scale,
        .softcap = p->softcap,
        .max_bias = p->max_bias,
    };
}

const char *tn_cuda_attention_cache_name(tn_dtype type)
{
    switch (type) {
    case TN_TYPE_F16:
        return "f16";
    case TN_TYPE_BF16:
        return "bf16";
    case TN_TYPE_Q8_0:
        return "q8_0";
    case TN_TYPE_Q4_0:
        return "q4_0";
    default:
        return NULL;
    }
}

bool tn_cuda_attention_decode_writes_stages(const tn_cuda *cuda, const tn_step *step)
{
    enum { RUN = 32 }; // elements whose sum lanes of one head add up
    const tn_view *v = &step->src[TN_SRC_attention_v], *y = &step->dst[0];
    bool rows = y->ne[1] > TN_MATVEC_MAX_COLUMNS && y->ne[1] <= TN_SKINNY_STREAM_MAX_ROWS;
    return rows && cuda->compute == 90 && !cuda->variant.skinny_without_wgmma && v->dtype == TN_TYPE_F16 &&
           y->ne[3] % RUN == 0 && y->ne[2] * y->ne[3] % TN_SKINNY_K == 0;
}

void tn_cuda_attention_set_staged(const tn_cuda_launch *l, tn_cuda_attention_args *a)
{
    if (!l->quantised_y) return;
    a->quantised_y = *l->quantised_y;
    if (tn_cuda_attention_decode_writes_stages(l->cuda, l->step))
        a->quantised_y.row_size = -tn_cuda_skinny_stream_columns(a->n_tokens);
}

tn_status tn_cuda_attention_map(const tn_cuda_launch *l, const tn_view *cache, char *to)
{
    tn_cuda_boxes b = {.data = cache->data,
                       .rows = tn_view_n_rows(cache),
                       .row_bytes = cache->ne[3] * 2,
                       .row_stride = cache->nb[2],
                       .box_bytes = 128,
                       .box_rows = 64,
                       .l2_bytes = 256};
    return tn_cuda_map_boxes(l, &b, to);
}

bool tn_cuda_attention_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    return tn_cuda_attention_common(step) &&
           (step->src[TN_SRC_attention_q].ne[3] + step->dst[0].ne[3]) * 4 <= GENERAL_SHARED;
}

tn_status tn_cuda_attention_launch(const tn_cuda_launch *l)
{
    tn_cuda_attention_args a = tn_cuda_attention_args_of(l->step);
    if (a.n_seq == 0) return TN_OK;
    tn_cuda_grid grid = {.x = (uint32_t)a.n_tokens,
                         .y = (uint32_t)a.n_heads,
                         .z = 1,
                         .threads = GENERAL_THREADS,
                         .shared = (uint32_t)(a.k.dim + a.v.dim) * 4};
    return tn_cuda_run(l, TN_CUDA_MODULE_attention, "tn_attention_general", &grid, &a);
}
