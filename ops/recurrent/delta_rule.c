// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// delta_rule: gated delta rule (Yang et al. 2024, "Gated delta networks", eq. 10) over the tokens of each
// sequence. Every value head has a matrix M [Sk, Sv], from keys to values; for each token
//   M = exp(g) M;  d = beta (v - M^T k);  M = M + k d^T;  o = M^T (q scale)
// state F32 [n_slots, H, Sk, Sv], q and k [T, Hk, Sk], v [T, H, Sv], g and beta [T, H], q_start I32 [n_seq +
// 1], slots I32 [n_seq, 2] -> the state itself, o [T, H, Sv]. Sequences and slots: as in short_conv.
#include "ops/operands.h"
#include "ops/recurrent/recurrent.h"

#include <math.h>

// One value for each token and head of v.
static bool per_head(const tn_view *x, const tn_view *v)
{
    return x->n_dims == 2 && x->ne[2] == v->ne[1] && x->ne[3] == v->ne[2];
}

static bool fits(const tn_step *step)
{
    tn_delta_rule_views in = tn_delta_rule_views_get(step);
    const tn_view *state = in.state, *q = in.q, *k = in.k, *v = in.v;
    bool ok = state->n_dims == 4 && tn_view_contiguous(state) && q->n_dims == 3 && v->n_dims == 3 &&
              tn_view_same_shape(q, k) && q->ne[3] == state->ne[2] && v->ne[3] == state->ne[3] &&
              v->ne[2] == state->ne[1] && v->ne[1] == q->ne[1] && v->ne[2] % q->ne[2] == 0;
    return ok && per_head(in.g, v) && per_head(in.beta, v);
}

tn_status tn_infer_delta_rule(tn_context *ctx, tn_step *step)
{
    const tn_delta_rule_params *p = step->params;
    tn_delta_rule_views in = tn_delta_rule_views_get(step);
    tn_status status = tn_need_dtype(ctx, step, TN_SRC_delta_rule_state, TN_TYPE_F32);
    for (int32_t i = TN_SRC_delta_rule_q; i <= TN_SRC_delta_rule_beta && status == TN_OK; i++)
        status = tn_need_float_rows(ctx, step, i);
    if (status == TN_OK) status = tn_need_slots(ctx, step, TN_SRC_delta_rule_q_start, in.v->ne[1]);
    if (status != TN_OK) return status;
    if (!fits(step)) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "delta_rule: state %s, q %s, v %s",
                       tn_view_text(in.state, a, sizeof a), tn_view_text(in.q, b, sizeof b),
                       tn_view_text(in.v, c, sizeof c));
    }
    if (p->normalise && !(p->eps >= 0.0f))
        return tn_fail(ctx, TN_ERR_ARG, "delta_rule: eps %g", (double)p->eps);
    step->dst[TN_DST_delta_rule_state] = *in.state;
    tn_step_set_dst(step, TN_DST_delta_rule_y, TN_TYPE_F32, 3, in.v->ne);
    return TN_OK;
}

// The factor that brings the vector x of a head to length 1, if the op normalises; else 1.
static double length_factor(const tn_delta_rule_params *p, const tn_view *x, int64_t t, int64_t head)
{
    double sum = 0.0;
    for (int64_t i = 0; i < x->ne[3]; i++)
        sum += tn_view_get(x, 0, t, head, i) * tn_view_get(x, 0, t, head, i);
    return p->normalise ? 1.0 / fmax(sqrt(sum), p->eps) : 1.0;
}

static void token(const tn_step *step, int64_t slot, int64_t t, int64_t head)
{
    const tn_delta_rule_params *p = step->params;
    tn_delta_rule_views in = tn_delta_rule_views_get(step);
    const tn_view *m = &step->dst[TN_DST_delta_rule_state], *q = in.q, *k = in.k, *v = in.v;
    int64_t kh = p->grouped ? head / (v->ne[2] / q->ne[2]) : head % q->ne[2];
    double q_scale = length_factor(p, q, t, kh) * p->scale, k_scale = length_factor(p, k, t, kh);
    double decay = exp(tn_view_get_row(in.g, t, head)), beta = tn_view_get_row(in.beta, t, head);
    for (int64_t j = 0; j < v->ne[3]; j++) { // columns of M do not touch each other
        double recalled = 0.0, o = 0.0;
        for (int64_t i = 0; i < q->ne[3]; i++)
            recalled += decay * tn_view_get(m, slot, head, i, j) * tn_view_get(k, 0, t, kh, i) * k_scale;
        double d = beta * (tn_view_get(v, 0, t, head, j) - recalled);
        for (int64_t i = 0; i < q->ne[3]; i++) {
            tn_view_set(m, slot, head, i, j,
                        decay * tn_view_get(m, slot, head, i, j) + tn_view_get(k, 0, t, kh, i) * k_scale * d);
            o += tn_view_get(m, slot, head, i, j) * tn_view_get(q, 0, t, kh, i) * q_scale;
        }
        tn_view_set(&step->dst[TN_DST_delta_rule_y], 0, t, head, j, o);
    }
}

void tn_ref_delta_rule(const tn_step *step)
{
    const tn_view *m = &step->dst[TN_DST_delta_rule_state], *y = &step->dst[TN_DST_delta_rule_y];
    for (int64_t s = 0; s < step->src[TN_SRC_delta_rule_slots].ne[2]; s++) {
        tn_ref_run r = tn_ref_run_get(step, TN_SRC_delta_rule_q_start, s);
        for (int64_t head = 0; head < y->ne[2]; head++) {
            for (int64_t i = 0; i < m->ne[2] && r.write >= 0; i++)
                for (int64_t j = 0; j < m->ne[3]; j++)
                    tn_view_set(m, r.write, head, i, j,
                                r.read < 0 ? 0.0 : tn_view_get(m, r.read, head, i, j));
            for (int64_t t = r.first; t < r.last; t++) {
                if (r.write >= 0) token(step, r.write, t, head);
                for (int64_t j = 0; j < y->ne[3] && r.write < 0; j++) tn_view_set(y, 0, t, head, j, 0.0);
            }
        }
    }
}
