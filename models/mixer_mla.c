// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Multi-head latent attention (DeepSeek-V2, 2024, section 2.1) over the compressed cache. One row a token is
// kept, [ckv | rotated key], one KV head. With Wk, Wv the matrices that would expand ckv to the keys and
// values of a head:
//   score = q . (Wk ckv) = (Wk^T q) . ckv          the query is absorbed, so keys are the rows of the cache
//   sum_j p_j Wv ckv_j = Wv (sum_j p_j ckv_j)      so values are the first part of these rows, and nothing is
//                                                  stored twice
#include "models/builder.h"

// One matrix per head: x [T, H, k], w [H, n, k] -> [T, H, n]. This is a matmul with experts: each token is
// routed to all heads in order.
static tn_tensor *per_head(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t n, int64_t k)
{
    tn_tensor *w = tn_builder_weight(b, layer, name, 0, 3, b->c->layers[layer].n_heads, n, k);
    tn_product_input in = {.x = x, .ids = b->head_ids};
    return tn_builder_adapt(b, tn_builder_index(b, layer, name), &in,
                            tn_op_matmul_id(b->g, x, w, b->head_ids));
}

static tn_tensor *queries(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_config *c = b->c;
    const tn_mla_config *m = &c->mla;
    int64_t n_heads = c->layers[layer].n_heads, n_rot = c->rope.n_rot, n_nope = m->dim_q - n_rot;
    tn_tensor *q;
    if (tn_builder_has(b, layer, "attn_q.weight")) {
        q = tn_builder_linear(b, layer, "attn_q", h, n_heads * m->dim_q, c->n_embd);
    } else {
        q = tn_builder_linear(b, layer, "attn_q_a", h, m->q_rank, c->n_embd);
        q = tn_builder_norm(b, layer, "attn_q_a_norm", q, m->q_rank);
        q = tn_builder_linear(b, layer, "attn_q_b", q, n_heads * m->dim_q, m->q_rank);
    }
    q = tn_op_reshape(b->g, q, 3, (int64_t[]){b->key->n_tokens, n_heads, m->dim_q});
    tn_tensor *absorbed =
        per_head(b, layer, "attn_k_b.weight", tn_op_slice(b->g, q, 2, 0, n_nope), m->kv_rank, n_nope);
    tn_tensor *rotated =
        tn_op_rope(b->g, tn_op_slice(b->g, q, 2, n_nope, n_rot), b->positions, b->rope_factors, &c->rope);
    return tn_op_concat(b->g, absorbed, rotated, 2);
}

// The rows of the tokens in the cache: [T, 1, r + R].
static tn_tensor *compressed(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_config *c = b->c;
    int64_t t = b->key->n_tokens, rank = c->mla.kv_rank, n_rot = c->rope.n_rot;
    tn_tensor *x = tn_builder_linear(b, layer, "attn_kv_a_mqa", h, rank + n_rot, c->n_embd);
    tn_tensor *ckv = tn_builder_norm(b, layer, "attn_kv_a_norm", tn_op_slice(b->g, x, 1, 0, rank), rank);
    x = tn_op_reshape(b->g, x, 3, (int64_t[]){t, 1, rank + n_rot});
    tn_tensor *key =
        tn_op_rope(b->g, tn_op_slice(b->g, x, 2, rank, n_rot), b->positions, b->rope_factors, &c->rope);
    return tn_op_concat(b->g, tn_op_reshape(b->g, ckv, 3, (int64_t[]){t, 1, rank}), key, 2);
}

tn_tensor *tn_mixer_mla(tn_builder *b, int32_t layer, tn_tensor *h, bool select)
{
    const tn_config *c = b->c;
    const tn_mla_config *m = &c->mla;
    int64_t n_heads = c->layers[layer].n_heads, width = n_heads * m->dim_v;
    tn_dtype type = b->setup->cache_type_k;
    // A block of quantised values may reach into the rotated part: attention computes that too, and the slice
    // below drops it.
    int64_t block = tn_dtype_block_elems(type), dim_v = (m->kv_rank + block - 1) / block * block;
    tn_tensor *q = queries(b, layer, h), *rows = compressed(b, layer, h);
    tn_builder_enter_cache(b, layer);
    tn_tensor *k = tn_builder_cache(b, layer, 'k', type, rows);
    tn_attention_args args = {
        .q = q,
        .k = k,
        .v = tn_op_slice(b->g, k, 3, 0, dim_v),
        .q_start = b->q_start,
        .kv_len = b->kv_len,
        .block_table = b->block_table,
    };
    tn_tensor *y = tn_op_attention(b->g, &args, &(tn_attention_params){.scale = c->attn_scale, .causal = 1});
    tn_builder_enter(b, layer);
    if (dim_v != m->kv_rank) y = tn_op_slice(b->g, y, 2, 0, m->kv_rank);
    y = per_head(b, layer, "attn_v_b.weight", y, m->dim_v, m->kv_rank);
    y = tn_op_reshape(b->g, y, 2, (int64_t[]){b->key->n_tokens, width});
    if (select) y = tn_builder_out_rows(b, y);
    return tn_builder_linear(b, layer, "attn_output", y, c->n_embd, width);
}
