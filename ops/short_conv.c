// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv: causal convolution of every channel by itself over the tokens of each sequence, with what came
// before kept in a state. y_t = sum_{u < C} w[u] x_{t - C + 1 + u}. state F32 [n_slots, C - 1, N]: the last
// rows of x, oldest first; x [T, N], w F32 [N, C], q_start I32 [n_seq + 1], slots I32 [n_seq, 2] -> the state
// itself, y [T, N]. Sequence s has the tokens q_start[s] .. q_start[s+1]-1; it reads slot slots[s][0],
// outside of the state: zeros, and writes slots[s][1], which nobody else reads or writes; outside of the
// state: nothing is computed, y is 0.
#include "ops/ops.h"
#include "ops/recurrent.h"

tn_status tn_infer_short_conv(tn_context *ctx, tn_step *step)
{
    const tn_view *state = &step->src[0], *x = &step->src[1], *w = &step->src[2];
    tn_status status = tn_need_dtype(ctx, step, 0, TN_TYPE_F32);
    for (int32_t i = 1; i < 3 && status == TN_OK; i++) status = tn_need_float_rows(ctx, step, i);
    if (status == TN_OK) status = tn_need_slots(ctx, step, 3, x->ne[2]);
    if (status != TN_OK) return status;
    bool ok = state->n_dims == 3 && x->n_dims == 2 && w->n_dims == 2 && tn_view_contiguous(state) &&
              state->ne[3] == x->ne[3] && w->ne[2] == x->ne[3] && w->ne[3] == state->ne[2] + 1;
    if (!ok) {
        char a[96], b[96], c[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "short_conv: state %s, x %s, w %s",
                       tn_view_text(state, a, sizeof a), tn_view_text(x, b, sizeof b),
                       tn_view_text(w, c, sizeof c));
    }
    step->dst[0] = *state;
    tn_step_set_dst(step, 1, TN_TYPE_F32, 2, x->ne);
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
    const tn_view *state = &step->src[0];
    if (row >= 0) return tn_view_get(&step->src[1], 0, 0, r->first + row, c);
    return r->read < 0 ? 0.0 : tn_view_get(state, 0, r->read, state->ne[2] + row, c);
}

void tn_ref_short_conv(const tn_step *step)
{
    const tn_view *state = &step->dst[0], *w = &step->src[2], *y = &step->dst[1];
    int64_t kernel = w->ne[3];
    for (int64_t s = 0; s < step->src[4].ne[2]; s++) {
        tn_ref_run r = tn_ref_run_get(step, 3, s);
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
