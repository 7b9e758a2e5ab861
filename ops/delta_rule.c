// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// delta_rule: gated delta rule (Yang et al. 2024, "Gated delta networks", eq. 10) over the tokens of each
// sequence. Every value head has a matrix M [Sk, Sv], from keys to values; for each token
//   M = exp(g) M;  d = beta (v - M^T k);  M = M + k d^T;  o = M^T (q scale)
// state F32 [n_slots, H, Sk, Sv], q and k [T, Hk, Sk], v [T, H, Sv], g and beta [T, H], q_start I32 [n_seq +
// 1], slots I32 [n_seq, 2] -> the state itself, o [T, H, Sv]. Sequences and slots: as in short_conv.
#include "ops/ops.h"
#include "ops/recurrent.h"

#include <math.h>

static bool fits(const tn_step *step)
{
    const tn_view *state = &step->src[0], *q = &step->src[1], *k = &step->src[2], *v = &step->src[3];
    bool ok = state->n_dims == 4 && tn_view_contiguous(state) && q->n_dims == 3 && v->n_dims == 3 &&
              tn_view_same_shape(q, k) && q->ne[3] == state->ne[2] && v->ne[3] == state->ne[3] &&
              v->ne[2] == state->ne[1] && v->ne[1] == q->ne[1] && v->ne[2] % q->ne[2] == 0;
    for (int32_t i = 4; i < 6; i++) {
        const tn_view *x = &step->src[i];
        ok = ok && x->n_dims == 2 && x->ne[2] == v->ne[1] && x->ne[3] == v->ne[2];
    }
    return ok;
}

tn_status tn_infer_delta_rule(tn_context *ctx, tn_step *step)
{
    const tn_delta_rule_params *p = step->params;
    tn_status status = tn_need_dtype(ctx, step, 0, TN_TYPE_F32);
    for (int32_t i = 1; i < 6 && status == TN_OK; i++) status = tn_need_float_rows(ctx, step, i);
    if (status == TN_OK) status = tn_need_slots(ctx, step, 6, step->src[3].ne[1]);
    if (status != TN_OK) return status;
    if (!fits(step)) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "delta_rule: state %s, q %s, v %s",
                       tn_view_text(&step->src[0], a, sizeof a), tn_view_text(&step->src[1], b, sizeof b),
                       tn_view_text(&step->src[3], c, sizeof c));
    }
    if (p->normalise && !(p->eps >= 0.0f))
        return tn_fail(ctx, TN_ERR_ARG, "delta_rule: eps %g", (double)p->eps);
    step->dst[0] = step->src[0];
    tn_step_set_dst(step, 1, TN_TYPE_F32, 3, step->src[3].ne);
    return TN_OK;
}

// 1, or what makes the vector of a head one of length 1.
static double unit(const tn_step *step, int32_t src, int64_t t, int64_t head)
{
    const tn_delta_rule_params *p = step->params;
    const tn_view *x = &step->src[src];
    double sum = 0.0;
    for (int64_t i = 0; i < x->ne[3]; i++)
        sum += tn_view_get(x, 0, t, head, i) * tn_view_get(x, 0, t, head, i);
    return p->normalise ? 1.0 / fmax(sqrt(sum), p->eps) : 1.0;
}

static void token(const tn_step *step, int64_t slot, int64_t t, int64_t head)
{
    const tn_delta_rule_params *p = step->params;
    const tn_view *m = &step->dst[0], *q = &step->src[1], *k = &step->src[2], *v = &step->src[3];
    int64_t kh = p->grouped ? head / (v->ne[2] / q->ne[2]) : head % q->ne[2];
    double q_scale = unit(step, 1, t, kh) * p->scale, k_scale = unit(step, 2, t, kh);
    double decay = exp(tn_view_get_row(&step->src[4], t, head)),
           beta = tn_view_get_row(&step->src[5], t, head);
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
        tn_view_set(&step->dst[1], 0, t, head, j, o);
    }
}

void tn_ref_delta_rule(const tn_step *step)
{
    const tn_view *m = &step->dst[0], *y = &step->dst[1];
    for (int64_t s = 0; s < step->src[7].ne[2]; s++) {
        tn_ref_run r = tn_ref_run_get(step, 6, s);
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
