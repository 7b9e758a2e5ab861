// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention over a paged cache: o_i = sum_j softmax_j(s_ij) v_j (Vaswani et al. 2017, eq. 1).
// q [T, H, D], k [n_blocks, KV, B, D], v [n_blocks, KV, B, Dv], q_start I32 [n_seq + 1], kv_len I32 [n_seq],
// block_table I32 [n_seq, max_blocks], sinks F32 [H] optional -> [T, H, Dv].
// Tokens q_start[s] .. q_start[s+1]-1 belong to sequence s and are its last ones: the last has position
// kv_len[s] - 1. Rows of k may be longer than those of q (padded to whole quantisation blocks). v may be a
// part of longer rows, those of k among them. Key j lies in block block_table[s][j / B] at index j % B. Head
// h reads KV head h / (H / KV).
#include "ops/operands.h"
#include "ops/quant.h"

#include <math.h>
#include <stdlib.h>

tn_status tn_infer_attention(tn_context *ctx, tn_step *step)
{
    tn_attention_views in = tn_attention_views_get(step);
    const tn_view *q = in.q, *k = in.k, *v = in.v;
    tn_status status = tn_need_float_rows(ctx, step, TN_SRC_attention_q);
    for (int32_t i = TN_SRC_attention_q_start; i <= TN_SRC_attention_block_table && status == TN_OK; i++)
        status = tn_need_dtype(ctx, step, i, TN_TYPE_I32);
    if (status == TN_OK && in.sinks) status = tn_need_vector(ctx, step, TN_SRC_attention_sinks, q->ne[2]);
    if (status != TN_OK) return status;
    int64_t n_seq = in.kv_len->ne[3];
    bool ok = q->n_dims == 3 && k->n_dims == 4 && v->n_dims == 4 && q->ne[3] <= k->ne[3] &&
              k->ne[0] == v->ne[0] && k->ne[1] == v->ne[1] && k->ne[2] == v->ne[2] &&
              q->ne[2] % k->ne[1] == 0 && in.q_start->ne[3] == n_seq + 1 && in.block_table->ne[2] == n_seq &&
              tn_view_contiguous(k) && tn_view_rows_contiguous(v);
    if (!ok) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "attention: q %s, k %s, v %s", tn_view_text(q, a, sizeof a),
                       tn_view_text(k, b, sizeof b), tn_view_text(v, c, sizeof c));
    }
    if (!tn_quant_info_get(k->dtype)->to_f32 || !tn_quant_info_get(v->dtype)->to_f32)
        return tn_fail(ctx, TN_ERR_TYPE, "attention: cache of %s and %s", tn_dtype_name(k->dtype),
                       tn_dtype_name(v->dtype));
    int64_t ne[TN_MAX_DIMS] = {1, q->ne[1], q->ne[2], v->ne[3]};
    tn_step_set_dst(step, 0, TN_TYPE_F32, 3, ne);
    return TN_OK;
}

// Slope of head h (Press et al. 2021, section 3, generalised to head counts that are no power of two).
static double alibi_slope(double max_bias, int64_t n_heads, int64_t h)
{
    int64_t n2 = 1;
    while (n2 * 2 <= n_heads) n2 *= 2;
    if (h < n2) return pow(2.0, -max_bias / (double)n2 * (double)(h + 1));
    return pow(2.0, -max_bias / (2.0 * (double)n2) * (double)(2 * (h - n2) + 1));
}

typedef struct query {
    const tn_step *step;
    tn_attention_views in;
    int64_t seq, token, head, position; // position of the token in its sequence
    double slope;
} query;

// The row of key j in the cache c of keys or values.
static const char *cache_row(const query *q, const tn_view *c, int64_t j)
{
    int64_t block = (int64_t)tn_view_get_row(q->in.block_table, q->seq, j / c->ne[2]);
    int64_t kv_head = q->head / (q->in.q->ne[2] / c->ne[1]);
    return (const char *)c->data + block * c->nb[0] + kv_head * c->nb[1] + j % c->ne[2] * c->nb[2];
}

static bool visible(const query *q, int64_t j)
{
    const tn_attention_params *p = q->step->params;
    if (p->causal && j > q->position) return false;
    if (p->window > 0 && q->position - j >= p->window) return false;
    return p->chunk <= 0 || j >= q->position / p->chunk * p->chunk;
}

static double score(const query *q, int64_t j)
{
    const tn_attention_params *p = q->step->params;
    const tn_view *qv = q->in.q, *k = q->in.k;
    const char *row = cache_row(q, k, j);
    int64_t n = tn_dtype_block_elems(k->dtype);
    double dot = 0.0;
    for (int64_t d = 0; d < qv->ne[3]; d += n) {
        float buf[256];
        tn_quant_info_get(k->dtype)->to_f32(row + tn_dtype_row_size(k->dtype, d), buf, n);
        for (int64_t i = 0; i < n && d + i < qv->ne[3]; i++)
            dot += tn_view_get(qv, 0, q->token, q->head, d + i) * buf[i];
    }
    double s = dot * p->scale;
    if (p->softcap > 0.0f) s = p->softcap * tanh(s / p->softcap);
    return s - q->slope * (double)llabs(q->position - j);
}

// The weights are recomputed for every block of the result: slow, and free of buffers.
static void attend(const query *q, int64_t kv_len)
{
    const tn_view *v = q->in.v, *y = &q->step->dst[0];
    bool has_sink = q->in.sinks != NULL;
    double sink = has_sink ? tn_view_get_row(q->in.sinks, 0, q->head) : -INFINITY, max = sink;
    for (int64_t j = 0; j < kv_len; j++)
        if (visible(q, j)) max = fmax(max, score(q, j));
    int64_t n = tn_dtype_block_elems(v->dtype) > 1 ? tn_dtype_block_elems(v->dtype) : v->ne[3];
    for (int64_t d = 0; d < v->ne[3]; d += 256 < n ? 256 : n) {
        int64_t width = n > 256 ? TN_MIN(256, v->ne[3] - d) : n;
        double sum = max > -INFINITY && has_sink ? exp(sink - max) : 0.0, acc[256] = {0};
        for (int64_t j = 0; j < kv_len && max > -INFINITY; j++) {
            if (!visible(q, j)) continue;
            double w = exp(score(q, j) - max);
            float buf[256];
            tn_quant_info_get(v->dtype)->to_f32(cache_row(q, v, j) + tn_dtype_row_size(v->dtype, d), buf,
                                                width);
            for (int64_t i = 0; i < width; i++) acc[i] += w * buf[i];
            sum += w;
        }
        for (int64_t i = 0; i < width; i++)
            tn_view_set(y, 0, q->token, q->head, d + i, sum > 0.0 ? acc[i] / sum : 0.0);
    }
}

void tn_ref_attention(const tn_step *step)
{
    const tn_attention_params *p = step->params;
    tn_attention_views in = tn_attention_views_get(step);
    int64_t n_seq = in.kv_len->ne[3], n_heads = in.q->ne[2];
    for (int64_t s = 0; s < n_seq; s++) {
        int64_t first = (int64_t)tn_view_get_row(in.q_start, 0, s);
        int64_t last = (int64_t)tn_view_get_row(in.q_start, 0, s + 1);
        int64_t kv_len = (int64_t)tn_view_get_row(in.kv_len, 0, s);
        for (int64_t t = first; t < last; t++)
            for (int64_t h = 0; h < n_heads; h++) {
                query q = {step, in, s, t, h, kv_len - (last - t), 0.0};
                if (p->max_bias > 0.0f) q.slope = alibi_slope(p->max_bias, n_heads, h);
                attend(&q, kv_len);
            }
    }
}
