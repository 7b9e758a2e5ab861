// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache: projections, QK-norm, RoPE, cache write, attention, output projection.
#include "models/builder.h"

#include <stdio.h>

typedef struct qkv {
    tn_tensor *q, *k, *v; // [T, heads, head size]
    tn_tensor *gate;      // of the result, like q; NULL: none
} qkv;

static tn_tensor *heads(tn_builder *b, tn_tensor *x, int64_t n_heads, int64_t dim)
{
    return tn_op_reshape(b->g, x, 3, (int64_t[]){b->key->n_tokens, n_heads, dim});
}

static tn_tensor *clamped(tn_builder *b, tn_tensor *x)
{
    float limit = b->c->clamp_kqv;
    return limit > 0.0f ? tn_op_unary(b->g, x, &(tn_unary_params){TN_UNARY_CLAMP, -limit, limit}) : x;
}

// Three matrices. In layers without one for V, V is K before its norm.
static void project_each(tn_builder *b, int32_t layer, tn_tensor *h, int64_t n_q, qkv *r)
{
    const tn_config *c = b->c;
    const tn_layer_config *l = &c->layers[layer];
    bool own = !c->arch->v_norm || tn_builder_has(b, layer, "attn_v.weight");
    const tn_linear_row rows[3] = {{"attn_q", n_q},
                                   {"attn_k", (int64_t)l->n_kv_heads * l->head_dim},
                                   {"attn_v", (int64_t)l->n_kv_heads * l->head_dim_v}};
    tn_tensor *y[3] = {NULL};
    tn_builder_linears(b, layer, h, c->n_embd, own ? 3 : 2, rows, y);
    r->q = clamped(b, y[0]);
    r->k = clamped(b, y[1]);
    r->v = own ? clamped(b, y[2]) : r->k;
}

// k and v are NULL in layers that read K and V of another layer.
static qkv project(tn_builder *b, int32_t layer, tn_tensor *h)
{
    const tn_config *c = b->c;
    const tn_layer_config *l = &c->layers[layer];
    int64_t n_embd = c->n_embd, d = l->head_dim, dv = l->head_dim_v, n_heads = l->n_heads,
            n_kv = l->n_kv_heads;
    qkv r = {0};
    if (l->kv_layer != layer) {
        r.q = heads(b, clamped(b, tn_builder_linear(b, layer, "attn_q", h, n_heads * d, n_embd)), n_heads, d);
        return r;
    }
    bool gated = c->arch->delta != TN_DELTA_NONE;
    if (!gated && tn_builder_has(b, layer, "attn_qkv.weight")) { // rows: all of Q, all of K, all of V
        tn_tensor *all =
            clamped(b, tn_builder_linear(b, layer, "attn_qkv", h, n_heads * d + n_kv * (d + dv), n_embd));
        r.q = tn_op_slice(b->g, all, 1, 0, n_heads * d);
        r.k = tn_op_slice(b->g, all, 1, n_heads * d, n_kv * d);
        r.v = tn_op_slice(b->g, all, 1, (n_heads + n_kv) * d, n_kv * dv);
    } else {
        project_each(b, layer, h, n_heads * d * (gated ? 2 : 1), &r);
    }
    r.q = heads(b, r.q, n_heads, gated ? 2 * d : d);
    if (gated) { // rows of each head: the query, then its gate
        r.gate = tn_op_slice(b->g, r.q, 2, d, d);
        r.q = tn_op_slice(b->g, r.q, 2, 0, d);
    }
    r.k = heads(b, r.k, n_kv, d);
    r.v = heads(b, r.v, n_kv, dv);
    if (c->arch->v_norm) r.v = tn_op_rms_norm(b->g, r.v, NULL, c->eps);
    return r;
}

// Norm of q or k before it is rotated: of each head with one weight for all [d] or one for each [n, d], or of
// all heads as one row [n * d]. The shape of the weight says which.
static tn_tensor *qk_norm(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t n, int64_t d)
{
    const tn_arch *arch = b->c->arch;
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    int32_t n_dims = 0;
    int64_t width = tn_builder_find(b, layer, text, &n_dims);
    bool required = arch->qk_norm > 0 && b->c->n_layers >= arch->qk_norm;
    if (width == 0 && !required) return x;
    if (n_dims == 2) {
        tn_tensor *w = tn_builder_weight(b, layer, text, 0, 2, n, d, 0);
        bool rms = arch->norm == TN_ARCH_NORM_RMS;
        x = rms ? tn_op_rms_norm(b->g, x, NULL, b->c->eps) : tn_op_layer_norm(b->g, x, NULL, NULL, b->c->eps);
        return tn_op_mul(b->g, x, w);
    }
    if (n == 1 || width != n * d) return tn_builder_norm(b, layer, name, x, d);
    x = tn_op_reshape(b->g, x, 2, (int64_t[]){b->key->n_tokens, n * d});
    return heads(b, tn_builder_norm(b, layer, name, x, n * d), n, d);
}

static tn_tensor *rotate(tn_builder *b, int32_t layer, tn_tensor *x)
{
    const tn_config *c = b->c;
    const tn_rope_params *rope = c->layers[layer].sliding ? &c->rope_sliding : &c->rope;
    if (rope->n_rot == 0 || c->layers[layer].no_rope) return x;
    // The factors of the file are for the rope base of layers that do not slide.
    bool plain = c->layers[layer].sliding && c->arch->swa_base > 0.0f;
    x = tn_op_rope(b->g, x, b->positions, plain ? NULL : b->rope_factors, rope);
    bool unweighted = c->arch->qk_norm_after_rope && c->n_experts != 128;
    return unweighted ? tn_op_rms_norm(b->g, x, NULL, c->eps) : x;
}

tn_tensor *tn_builder_cache(tn_builder *b, int32_t layer, char which, tn_dtype type, tn_tensor *x)
{
    if (!x) return NULL; // an earlier failure
    char name[32];
    snprintf(name, sizeof name, "cache_%c.%d", which, layer);
    // Rows are padded to whole quantisation blocks.
    int64_t block = tn_dtype_block_elems(type), dim = tn_tensor_dim(x, 2),
            row = (dim + block - 1) / block * block;
    bool windowed = tn_builder_windowed(b, layer);
    int64_t n_blocks = windowed ? b->setup->n_window_blocks : b->setup->n_blocks;
    int64_t shape[4] = {n_blocks, b->c->layers[layer].n_kv_heads, b->setup->block_size, row};
    tn_tensor *state = tn_graph_state(b->g, name, type, 4, shape);
    return tn_op_cache_write(b->g, state, x, windowed ? b->window_slots : b->slots);
}

// K or V of the pass itself as blocks of one token. Rows that are parts of a fused matmul are not contiguous,
// so they are copied.
static tn_tensor *plain(tn_builder *b, tn_tensor *x)
{
    if (!x) return NULL; // an earlier failure
    if (!tn_view_contiguous(&x->view)) x = tn_op_copy(b->g, x, TN_TYPE_F32);
    return x ? tn_op_reshape(b->g, x, 4,
                             (int64_t[]){b->key->n_tokens, tn_tensor_dim(x, 1), 1, tn_tensor_dim(x, 2)})
             : NULL;
}

tn_tensor *tn_mixer_attention(tn_builder *b, int32_t layer, tn_tensor *h, bool select)
{
    const tn_config *c = b->c;
    const tn_layer_config *l = &c->layers[layer];
    qkv x = project(b, layer, h);
    tn_tensor **caches = &b->caches[2 * l->kv_layer];
    x.q = rotate(b, layer, qk_norm(b, layer, "attn_q_norm", x.q, l->n_heads, l->head_dim));
    if (x.k) x.k = rotate(b, layer, qk_norm(b, layer, "attn_k_norm", x.k, l->n_kv_heads, l->head_dim));
    if (b->q_scale && (c->arch->nope_period == 0 || l->no_rope)) x.q = tn_op_mul(b->g, x.q, b->q_scale);
    tn_builder_enter_cache(b, l->kv_layer);
    if (l->kv_layer == layer) {
        bool whole = c->whole_texts;
        caches[0] = whole ? plain(b, x.k) : tn_builder_cache(b, layer, 'k', b->setup->cache_type_k, x.k);
        caches[1] = whole ? plain(b, x.v) : tn_builder_cache(b, layer, 'v', b->setup->cache_type_v, x.v);
    }
    tn_attention_args args = {
        .q = x.q,
        .k = caches[0],
        .v = caches[1],
        .q_start = b->q_start,
        .kv_len = b->kv_len,
        .block_table = tn_builder_windowed(b, l->kv_layer) ? b->window_table : b->block_table,
        // A step has no sequence without tokens.
        .one_query = b->key->apart                       ? TN_QUERIES_SHORT
                     : b->key->mixed                     ? TN_QUERIES_MIXED
                     : b->key->n_tokens != b->key->n_seq ? TN_QUERIES_ANY
                     : b->key->uneven                    ? TN_QUERIES_UNEVEN
                                                         : TN_QUERIES_ONE,
    };
    if (c->arch->sinks) args.sinks = tn_builder_weight(b, layer, "attn_sinks.weight", 0, 1, l->n_heads, 0, 0);
    tn_attention_params p = {
        .scale = c->attn_scale,
        .causal = !c->whole_texts,
        .window = l->sliding ? c->window : 0,
        .chunk = l->sliding ? c->chunk : 0,
        .softcap = c->attn_softcap,
        .max_bias = c->max_bias,
    };
    int64_t width = (int64_t)l->n_heads * l->head_dim_v;
    tn_tensor *y = tn_op_attention(b->g, &args, &p);
    tn_builder_enter(b, layer);
    if (y && tn_tensor_dim(y, 2) != l->head_dim_v)
        y = tn_op_copy(b->g, tn_op_slice(b->g, y, 2, 0, l->head_dim_v), TN_TYPE_F32);
    if (x.gate) y = tn_op_glu(b->g, x.gate, y, &(tn_glu_params){.act = TN_UNARY_SIGMOID});
    y = tn_op_reshape(b->g, y, 2, (int64_t[]){b->key->n_tokens, width});
    if (select) y = tn_builder_out_rows(b, y);
    return tn_builder_linear(b, layer, "attn_output", y, c->n_embd, width);
}
