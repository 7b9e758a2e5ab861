// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights that older files have in another form. Latent attention: attn_kv_b {r, H (Dn + Dv)} holds the rows
// that expand the compressed vector to the keys and values of each head. attn_v_b has its rows of values,
// attn_k_b its rows of keys, transposed, so that they can be applied to queries instead (mixer_mla.c).
#include "core/checked.h"
#include "models/model.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <stdio.h>
#include <string.h>

// Transposing cuts across blocks, so quantised rows become F16, which is finer than their types.
static tn_dtype transposed_type(tn_dtype type)
{
    return type == TN_TYPE_F32 || type == TN_TYPE_BF16 ? type : TN_TYPE_F16;
}

int64_t tn_weights_derived_max(const tn_model *m)
{
    return m->config.mla.kv_rank > 0 ? 2 * (int64_t)m->config.n_layers : 0;
}

// Appends an empty weight "blk.<layer>.<name>" [d0, d1, d2].
static tn_status append(tn_model *m, int32_t layer, const char *name, tn_dtype dtype, const int64_t *ne,
                        tn_weight **out)
{
    char text[64];
    snprintf(text, sizeof text, "blk.%d.%s", layer, name);
    tn_weight *w = &m->weights[m->n_weights];
    *w = (tn_weight){
        .name = tn_arena_strdup(&m->arena, text), .dtype = dtype, .n_dims = 3, .ne = {ne[0], ne[1], ne[2]}};
    if (!w->name) return TN_ERR_MEMORY;
    m->n_weights++;
    m->n_derived++;
    *out = w;
    if (m->metadata_only) return TN_OK;
    size_t size;
    if (!tn_mul_size(tn_dtype_row_size(dtype, ne[2]), (size_t)(ne[0] * ne[1]), &size))
        return tn_fail(m->ctx, TN_ERR_MEMORY, "out of memory: %s", text);
    return tn_buffer_create(m->host, size, &w->host);
}

// Row n of a head's keys goes to column n.
static void transpose(const tn_weight *src, int64_t first_row, int64_t n_rows, float *row, tn_weight *dst,
                      int64_t head)
{
    int64_t rank = src->ne[1];
    size_t in_size = tn_dtype_row_size(src->dtype, rank), elem = tn_dtype_row_size(dst->dtype, 1);
    char *out = (char *)dst->host.data + (size_t)(head * rank * n_rows) * elem;
    for (int64_t n = 0; n < n_rows; n++) {
        const char *in = (const char *)src->host.data + (size_t)(first_row + n) * in_size;
        tn_quant_info_get(src->dtype)->to_f32(in, row, rank);
        for (int64_t c = 0; c < rank; c++)
            tn_quant_info_get(dst->dtype)->from_f32(&row[c], out + (size_t)(c * n_rows + n) * elem, 1, NULL);
    }
}

static void fill(const tn_weight *src, float *row, tn_weight *k, tn_weight *v)
{
    int64_t n_nope = k->ne[2], dim_v = v->ne[1];
    size_t row_size = tn_dtype_row_size(src->dtype, src->ne[1]), part = (size_t)dim_v * row_size;
    for (int64_t h = 0; h < k->ne[0]; h++) {
        int64_t first = h * (n_nope + dim_v);
        transpose(src, first, n_nope, row, k, h);
        memcpy((char *)v->host.data + (size_t)h * part,
               (const char *)src->host.data + (size_t)(first + n_nope) * row_size, part);
    }
}

static tn_status split_kv_b(tn_model *m, int32_t layer, tn_weight *src)
{
    const tn_config *c = &m->config;
    int64_t heads = c->layers[layer].n_heads, rank = c->mla.kv_rank, dim_v = c->mla.dim_v;
    int64_t n_nope = c->mla.dim_q - (c->head_dim - rank); // the cache holds the rank and the rotated part
    if (src->n_dims != 2 || src->ne[0] != heads * (n_nope + dim_v) || src->ne[1] != rank)
        return tn_fail(m->ctx, TN_ERR_MODEL, "tensor %s has shape [%lld, %lld], must be [%lld, %lld]",
                       src->name, (long long)src->ne[0], (long long)src->ne[1],
                       (long long)(heads * (n_nope + dim_v)), (long long)rank);
    if (src->integers) return tn_weight_check_type(m->ctx, src);
    if (!tn_quant_info_get(src->dtype)->to_f32)
        return tn_fail(m->ctx, TN_ERR_MODEL, "%s: a matrix of %s", src->name, tn_dtype_name(src->dtype));
    tn_weight *k, *v;
    tn_status status = append(m, layer, "attn_k_b.weight", transposed_type(src->dtype),
                              (int64_t[]){heads, rank, n_nope}, &k);
    if (status == TN_OK)
        status = append(m, layer, "attn_v_b.weight", src->dtype, (int64_t[]){heads, dim_v, rank}, &v);
    if (status != TN_OK) return status;
    src->unused = true;
    if (m->metadata_only) return TN_OK;
    // A copy, as the tensor may not be in memory yet, and a mapped page may be lost.
    tn_weight copy = *src;
    size_t size = tn_weight_size(src);
    float *row = tn_alloc(m->ctx, (size_t)rank * sizeof *row);
    copy.host.data = tn_alloc(m->ctx, size);
    status = row && copy.host.data ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK)
        status =
            tn_gguf_tensor_read(m->gguf, tn_gguf_find_tensor(m->gguf, src->name), 0, copy.host.data, size);
    if (status == TN_OK) fill(&copy, row, k, v);
    tn_free(m->ctx, copy.host.data);
    tn_free(m->ctx, row);
    return status;
}

tn_status tn_weights_derive(tn_model *m)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < m->config.n_layers && tn_weights_derived_max(m) > 0 && status == TN_OK; i++) {
        char old[64], new[64];
        snprintf(old, sizeof old, "blk.%d.attn_kv_b.weight", i);
        snprintf(new, sizeof new, "blk.%d.attn_k_b.weight", i);
        int32_t w = tn_model_find_weight(m, old);
        if (w >= 0 && tn_model_find_weight(m, new) < 0) status = split_kv_b(m, i, &m->weights[w]);
    }
    return status;
}
