// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv: causal convolution of every channel by itself over the tokens of each sequence, with what came
// before kept in a state. y_t = sum_{u < C} w[u] x_{t - C + 1 + u}. state F32 [n_slots, C - 1, N]: the last
// rows of x, oldest first; x [T, N], w F32 [N, C], q_start I32 [n_seq + 1], slots I32 [n_seq, 2] -> the state
// itself, y [T, N]. Sequence s has the tokens q_start[s] .. q_start[s+1]-1; it reads slot slots[s][0],
// outside of the state: zeros, and writes slots[s][1], which nobody else reads or writes; outside of the
// state: nothing is computed, y is 0.
#include "ops/operands.h"
#include "ops/recurrent/recurrent.h"

tn_status tn_infer_short_conv(tn_context *ctx, tn_step *step)
{
    tn_short_conv_views in = tn_short_conv_views_get(step);
    const tn_view *state = in.state, *x = in.x, *w = in.w;
    tn_status status = tn_need_dtype(ctx, step, TN_SRC_short_conv_state, TN_TYPE_F32);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, TN_SRC_short_conv_x);
    if (status == TN_OK) status = tn_need_float_rows(ctx, step, TN_SRC_short_conv_w);
    if (status == TN_OK) status = tn_need_slots(ctx, step, TN_SRC_short_conv_q_start, x->ne[2]);
    if (status != TN_OK) return status;
    bool ok = state->n_dims == 3 && x->n_dims == 2 && w->n_dims == 2 && tn_view_contiguous(state) &&
              state->ne[3] == x->ne[3] && w->ne[2] == x->ne[3] && w->ne[3] == state->ne[2] + 1;
    if (!ok) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "short_conv: state %s, x %s, w %s",
                       tn_view_text(state, a, sizeof a), tn_view_text(x, b, sizeof b),
                       tn_view_text(w, c, sizeof c));
    }
    step->dst[TN_DST_short_conv_state] = *state;
    tn_step_set_dst(step, TN_DST_short_conv_y, TN_TYPE_F32, 2, x->ne);
    return TN_OK;
}

tn_status tn_need_slots(tn_context *ctx, const tn_step *step, int32_t src, int64_t n_tokens)
{
    const tn_view *start = &step->src[src], *slots = &step->src[src + 1];
    tn_status status = tn_need_dtype(ctx, step, src, TN_TYPE_I32);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, src + 1, TN_TYPE_I32);
    if (status != TN_OK) return status;
    if (n_tokens > 0 && tn_view_n_rows(start) == 1 && slots->n_dims == 2 && slots->ne[3] == 2 &&
        start->ne[3] == slots->ne[2] + 1)
        return TN_OK;
    char a[96], b[96];
    return tn_fail(ctx, TN_ERR_SHAPE, "%s: starts %s, slots %s", tn_op_name(step->op),
                   tn_view_text(start, a, sizeof a), tn_view_text(slots, b, sizeof b));
}

tn_ref_run tn_ref_run_get(const tn_step *step, int32_t src, int64_t seq)
{
    const tn_view *start = &step->src[src], *slots = &step->src[src + 1];
    tn_ref_run r = {(int64_t)tn_view_get_row(start, 0, seq), (int64_t)tn_view_get_row(start, 0, seq + 1),
                    (int64_t)tn_view_get_row(slots, seq, 0), (int64_t)tn_view_get_row(slots, seq, 1)};
    int64_t n_slots = step->src[0].ne[step->src[0].n_dims == 3 ? 1 : 0];
    if (r.read < 0 || r.read >= n_slots) r.read = -1;
    if (r.write < 0 || r.write >= n_slots) r.write = -1;
    return r;
}

// Row `row` of channel c, counted from the first token of the run; rows before it are in the state.
static double input(const tn_step *step, const tn_ref_run *r, int64_t row, int64_t c)
{
    tn_short_conv_views in = tn_short_conv_views_get(step);
    const tn_view *state = in.state;
    if (row >= 0) return tn_view_get(in.x, 0, 0, r->first + row, c);
    return r->read < 0 ? 0.0 : tn_view_get(state, 0, r->read, state->ne[2] + row, c);
}

void tn_ref_short_conv(const tn_step *step)
{
    tn_short_conv_views in = tn_short_conv_views_get(step);
    const tn_view *state = &step->dst[TN_DST_short_conv_state], *w = in.w,
                  *y = &step->dst[TN_DST_short_conv_y];
    int64_t kernel = w->ne[3];
    for (int64_t s = 0; s < in.slots->ne[2]; s++) {
        tn_ref_run r = tn_ref_run_get(step, TN_SRC_short_conv_q_start, s);
        int64_t n = r.last - r.first;
        for (int64_t c = 0; c < y->ne[3]; c++) {
            for (int64_t t = 0; t < n; t++) {
                double sum = 0.0;
                for (int64_t u = 0; u < kernel && r.write >= 0; u++)
                    sum += tn_view_get_row(w, c, u) * input(step, &r, t - kernel + 1 + u, c);
                tn_view_set(y, 0, 0, r.first + t, c, sum);
            }
            // Rising, so that a slot that is read and written is read before.
            for (int64_t u = 0; u + 1 < kernel && r.write >= 0; u++)
                tn_view_set(state, 0, r.write, u, c, input(step, &r, n - kernel + 1 + u, c));
        }
    }
}
