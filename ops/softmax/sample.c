// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// sample: a token from each row of logits, each row with its own parameters (ops/sample.h).
//     x [rows, n] F32, rows [rows, 16] I32 -> y [rows, 48] I32; edits [n_edits, 4] I32 and
//     masks [n_masks, ceil(n / 32)] I32, whose bits are the allowed tokens, may be absent
//
// 1. Logits are made tidy: NaN is -inf, +inf the largest float.
// 2. Edits: the bias, the mask, then the penalties. Tokens at -inf are out.
// 3. top-k keeps the k largest; of equal ones the lower id is larger.
// 4. top-p keeps the largest whose weights together reach the share of the weights of those that are left.
//    A weight is exp((v - max) / temperature) at the temperature of the filters.
// 5. min-p keeps those whose weight, as a float, is at least min_p.
// 6. The draw: weights at the temperature of the draw, added up in the order of the ids; the first token at
//    which the sum exceeds tn_random_below(random, sum of all).
// Sums are of integers (tn_weight_fixed).
#include "ops/sample.h"
#include "ops/operands.h"

typedef struct sampled {
    const tn_view *x, *edits;
    const uint32_t *mask; // NULL: all are allowed
    int64_t row, n;
    tn_sample_row p;
    float max;        // after the edits
    uint32_t cut_key; // tokens up to this one, in falling order of logits, are left
    int64_t cut_token;
} sampled;

static tn_status need_ints(tn_context *ctx, const tn_step *step, int32_t src, int64_t rows, int64_t columns)
{
    const tn_view *v = &step->src[src];
    tn_status status = tn_need_dtype(ctx, step, src, TN_TYPE_I32);
    if (status != TN_OK) return status;
    bool whole = v->ne[0] == 1 && v->ne[1] == 1 && tn_view_contiguous(v);
    if (whole && v->ne[3] == columns && (rows < 0 || v->ne[2] == rows)) return TN_OK;
    return tn_fail(ctx, TN_ERR_SHAPE, "sample: source %d has [%lld, %lld], wants rows of %lld", src,
                   (long long)v->ne[2], (long long)v->ne[3], (long long)columns);
}

tn_status tn_infer_sample(tn_context *ctx, tn_step *step)
{
    const tn_view *x = &step->src[0];
    tn_status status = tn_need_float_rows(ctx, step, 0);
    if (status != TN_OK) return status;
    if (x->ne[0] != 1 || x->ne[1] != 1 || x->ne[3] > TN_SAMPLE_MAX_VOCAB)
        return tn_fail(ctx, TN_ERR_SHAPE, "sample: logits [%lld, %lld, %lld, %lld]", (long long)x->ne[0],
                       (long long)x->ne[1], (long long)x->ne[2], (long long)x->ne[3]);
    status = need_ints(ctx, step, TN_SRC_sample_rows, x->ne[2], TN_SAMPLE_ROW_WORDS);
    if (status == TN_OK && tn_step_has_src(step, TN_SRC_sample_edits))
        status = need_ints(ctx, step, TN_SRC_sample_edits, -1, TN_SAMPLE_EDIT_WORDS);
    if (status == TN_OK && tn_step_has_src(step, TN_SRC_sample_masks))
        status = need_ints(ctx, step, TN_SRC_sample_masks, -1, (x->ne[3] + 31) / 32);
    if (status != TN_OK) return status;
    tn_step_set_dst(step, 0, TN_TYPE_I32, 2, (int64_t[]){1, 1, x->ne[2], TN_SAMPLE_RESULT_WORDS});
    return TN_OK;
}

static float raw(const sampled *s, int64_t j)
{
    return tn_logit_tidy((float)tn_view_get_row(s->x, s->row, j));
}

static float edited(const sampled *s, int64_t j)
{
    const tn_sample_edit *found = NULL;
    float v = raw(s, j);
    for (int32_t i = 0; i < s->p.n_edits && s->edits; i++) {
        const tn_sample_edit *e = tn_view_row(s->edits, s->p.first_edit + i);
        if (e->token == j) found = e;
    }
    if (found) v = tn_logit_bias(v, found->bias);
    if (s->mask && !(s->mask[j / 32] >> (j % 32) & 1)) v = -INFINITY;
    if (!found || found->count == 0) return v;
    return tn_logit_penalise(v, s->p.repeat_penalty, s->p.presence_penalty, s->p.frequency_penalty,
                             found->count);
}

static float weight(const sampled *s, float v, float temperature)
{
    return tn_exp_negative((v - s->max) / temperature);
}

// Whether token j with logit v has not been cut.
static bool kept(const sampled *s, int64_t j, float v)
{
    uint32_t key = tn_logit_key(v);
    return v > -INFINITY && (key > s->cut_key || (key == s->cut_key && j <= s->cut_token));
}

// The sum over the tokens that are left, with a logit from `key` on; of their weights or of ones.
static uint64_t sum_from(const sampled *s, uint32_t key, bool ones)
{
    uint64_t sum = 0;
    for (int64_t j = 0; j < s->n; j++) {
        float v = edited(s, j);
        if (!kept(s, j, v) || tn_logit_key(v) < key) continue;
        sum += ones ? 1 : tn_weight_fixed(weight(s, v, s->p.filter_temperature));
    }
    return sum;
}

// Keeps the largest up to the one with which the sum reaches the target, which the sum of all does.
static void cut(sampled *s, uint64_t target, bool ones)
{
    uint32_t key = 0;
    for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1)
        if (sum_from(s, key | bit, ones) >= target) key |= bit;
    uint64_t sum = key < UINT32_MAX ? sum_from(s, key + 1, ones) : 0;
    int64_t last = -1;
    for (int64_t j = 0; j < s->n && sum < target; j++) {
        float v = edited(s, j);
        if (!kept(s, j, v) || tn_logit_key(v) != key) continue;
        sum += ones ? 1 : tn_weight_fixed(weight(s, v, s->p.filter_temperature));
        last = j;
    }
    s->cut_key = key;
    s->cut_token = last;
}

// The weight of token j in the draw; 0: it was filtered.
static uint64_t draw_weight(const sampled *s, int64_t j)
{
    float v = edited(s, j);
    if (!kept(s, j, v)) return 0;
    if (s->p.min_p > 0.0f && weight(s, v, s->p.filter_temperature) < s->p.min_p) return 0;
    return tn_weight_fixed(weight(s, v, s->p.temperature));
}

static int32_t draw(sampled *s)
{
    uint64_t n = sum_from(s, 0, true), sum = 0;
    if (s->p.top_k > 0 && (uint64_t)s->p.top_k < n) cut(s, (uint64_t)s->p.top_k, true);
    if (s->p.top_p < 1.0f) cut(s, tn_weight_share(sum_from(s, 0, false), s->p.top_p), false);
    for (int64_t j = 0; j < s->n; j++) sum += draw_weight(s, j);
    uint64_t at = tn_random_below((uint64_t)s->p.random_high << 32 | s->p.random_low, sum);
    sum = 0;
    for (int64_t j = 0; j < s->n; j++) {
        sum += draw_weight(s, j);
        if (sum > at) return (int32_t)j;
    }
    return -1;
}

static int32_t choose(sampled *s)
{
    int32_t best = -1;
    s->max = -INFINITY;
    for (int64_t j = 0; j < s->n; j++) {
        float v = edited(s, j);
        if (v > s->max) s->max = v, best = (int32_t)j;
    }
    return best >= 0 && s->p.kind == TN_SAMPLE_DRAW ? draw(s) : best;
}

// What the result says about the logits of the model.
static void describe(const sampled *s, tn_sample_result *y)
{
    uint64_t sum = 0;
    y->max = -INFINITY;
    for (int64_t j = 0; j < s->n; j++) {
        float v = raw(s, j);
        if (v > y->max) y->max = v;
        if (v == -INFINITY) continue;
        int32_t at = y->n_top < s->p.n_top ? y->n_top++ : y->n_top;
        for (; at > 0 && y->top[at - 1].logit < v; at--)
            if (at < s->p.n_top) y->top[at] = y->top[at - 1];
        if (at >= s->p.n_top) continue;
        y->top[at].token = (int32_t)j;
        y->top[at].logit = v;
    }
    for (int64_t j = 0; j < s->n; j++) {
        float v = raw(s, j);
        if (v > -INFINITY) sum += tn_weight_fixed(tn_exp_negative(v - y->max));
    }
    y->sum_low = (uint32_t)sum;
    y->sum_high = (uint32_t)(sum >> 32);
}

// Nothing is read outside of the operands, whatever a row says.
static void bound(tn_sample_row *p, int64_t n_edits, int64_t n_masks)
{
    int64_t most = p->first_edit < 0 ? 0 : TN_MAX(n_edits - p->first_edit, 0);
    p->n_edits = (int32_t)TN_MIN((int64_t)p->n_edits, most);
    p->n_top = TN_MIN(p->n_top, TN_SAMPLE_TOP);
    if (p->mask < 0 || p->mask >= n_masks) p->mask = -1;
}

void tn_ref_sample(const tn_step *step)
{
    tn_sample_views in = tn_sample_views_get(step);
    for (int64_t r = 0; r < tn_view_n_rows(in.x); r++) {
        tn_sample_result *y = tn_view_row(&step->dst[0], r);
        sampled s = {.x = in.x, .edits = in.edits, .row = r, .n = in.x->ne[3], .cut_token = INT64_MAX};
        memcpy(&s.p, tn_view_row(in.rows, r), sizeof s.p);
        bound(&s.p, in.edits ? in.edits->ne[2] : 0, in.masks ? in.masks->ne[2] : 0);
        if (s.p.mask >= 0) s.mask = tn_view_row(in.masks, s.p.mask);
        *y = (tn_sample_result){.token = -1};
        if (s.p.kind == TN_SAMPLE_NONE) continue;
        describe(&s, y);
        y->token = choose(&s);
        if (y->token >= 0) y->logit = raw(&s, y->token);
    }
}
