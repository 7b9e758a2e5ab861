// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv, delta_rule.
#include "backends/cuda/recurrent/recurrent_args.h"
#include "backends/cuda/runtime/rows.h"
#include "ops/operands.h"

#include <assert.h>

enum { MAX_GRID = 65535, MAX_DIM = 256 }; // blocks along y and z; rows of a matrix, as in the kernel

// Both ops have their states first, and q_start and slots beside each other.
static_assert(TN_SRC_short_conv_state == 0 && TN_SRC_short_conv_slots == TN_SRC_short_conv_q_start + 1, "");
static_assert(TN_SRC_delta_rule_state == 0 && TN_SRC_delta_rule_slots == TN_SRC_delta_rule_q_start + 1, "");

static tn_cuda_runs runs_of(const tn_step *step, int32_t q_start)
{
    const tn_view *state = &step->src[0];
    return (tn_cuda_runs){
        .q_start = step->src[q_start].data,
        .slots = step->src[q_start + 1].data,
        .n_seq = (int32_t)step->src[q_start + 1].ne[2],
        .n_slots = (int32_t)state->ne[TN_MAX_DIMS - state->n_dims],
    };
}

static bool runs_fit(const tn_step *step, int32_t q_start, int64_t n_tokens)
{
    return tn_cuda_i32_run(&step->src[q_start]) && tn_cuda_i32_run(&step->src[q_start + 1]) &&
           step->src[q_start + 1].ne[2] <= MAX_GRID && n_tokens <= INT32_MAX;
}

// --- short_conv --------------------------------------------------------------------------------------

// Blocks of tokens at most: sequences end inside of them, and those without tokens have one that moves their
// state.
static int64_t conv_tiles(const tn_step *step)
{
    return step->src[TN_SRC_short_conv_x].ne[2] / TN_CUDA_CONV_TOKENS +
           step->src[TN_SRC_short_conv_slots].ne[2];
}

bool tn_cuda_short_conv_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    bool rows = tn_cuda_f32_rows(&step->src[TN_SRC_short_conv_x]) &&
                tn_cuda_f32_rows(&step->src[TN_SRC_short_conv_w]) &&
                tn_cuda_f32_rows(&step->dst[TN_DST_short_conv_y]);
    return rows && tn_view_contiguous(&step->src[TN_SRC_short_conv_state]) &&
           runs_fit(step, TN_SRC_short_conv_q_start, step->src[TN_SRC_short_conv_x].ne[2]) &&
           step->src[TN_SRC_short_conv_w].ne[3] <= TN_CUDA_CONV_KERNEL && conv_tiles(step) <= MAX_GRID &&
           step->src[TN_SRC_short_conv_x].ne[3] <= INT32_MAX - TN_CUDA_CONV_THREADS;
}

tn_status tn_cuda_short_conv_launch(const tn_cuda_launch *l)
{
    const tn_step *s = l->step;
    const tn_view *x = &s->src[TN_SRC_short_conv_x], *w = &s->src[TN_SRC_short_conv_w],
                  *y = &s->dst[TN_DST_short_conv_y];
    tn_cuda_conv_args a = {
        .runs = runs_of(s, TN_SRC_short_conv_q_start),
        .state = s->src[TN_SRC_short_conv_state].data,
        .x = x->data,
        .w = w->data,
        .y = y->data,
        .x_row = x->nb[2],
        .w_row = w->nb[2],
        .y_row = y->nb[2],
        .n = (int32_t)x->ne[3],
        .kernel = (int32_t)w->ne[3],
    };
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(a.n, TN_CUDA_CONV_THREADS),
                         .y = (uint32_t)conv_tiles(s),
                         .z = 1,
                         .threads = TN_CUDA_CONV_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_recurrent, "tn_short_conv", &grid, &a);
}

// --- delta_rule --------------------------------------------------------------------------------------

bool tn_cuda_delta_rule_accepts(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    const tn_view *state = &step->src[TN_SRC_delta_rule_state];
    bool rows = tn_cuda_f32_rows(&step->dst[TN_DST_delta_rule_y]);
    for (int32_t i = TN_SRC_delta_rule_q; i <= TN_SRC_delta_rule_beta; i++)
        rows = rows && tn_cuda_f32_rows(&step->src[i]);
    return rows && tn_view_contiguous(state) &&
           runs_fit(step, TN_SRC_delta_rule_q_start, step->src[TN_SRC_delta_rule_v].ne[1]) &&
           state->ne[1] <= MAX_GRID && state->ne[2] <= MAX_DIM &&
           state->ne[3] <= INT32_MAX - TN_CUDA_DELTA_COLUMNS;
}

tn_status tn_cuda_delta_rule_launch(const tn_cuda_launch *l)
{
    const tn_step *s = l->step;
    const tn_delta_rule_params *p = s->params;
    const tn_view *state = &s->src[TN_SRC_delta_rule_state];
    tn_cuda_delta_args a = {
        .runs = runs_of(s, TN_SRC_delta_rule_q_start),
        .state = state->data,
        .q = tn_cuda_view_of(&s->src[TN_SRC_delta_rule_q]),
        .k = tn_cuda_view_of(&s->src[TN_SRC_delta_rule_k]),
        .v = tn_cuda_view_of(&s->src[TN_SRC_delta_rule_v]),
        .y = tn_cuda_view_of(&s->dst[TN_DST_delta_rule_y]),
        .g = s->src[TN_SRC_delta_rule_g].data,
        .beta = s->src[TN_SRC_delta_rule_beta].data,
        .g_row = s->src[TN_SRC_delta_rule_g].nb[2],
        .beta_row = s->src[TN_SRC_delta_rule_beta].nb[2],
        .n_heads = (int32_t)state->ne[1],
        .n_key_heads = (int32_t)s->src[TN_SRC_delta_rule_q].ne[2],
        .dim = (int32_t)state->ne[2],
        .columns = (int32_t)state->ne[3],
        .p = *p,
    };
    tn_cuda_grid grid = {.x = (uint32_t)tn_div_up(a.columns, TN_CUDA_DELTA_COLUMNS),
                         .y = (uint32_t)a.n_heads,
                         .z = (uint32_t)a.runs.n_seq,
                         .threads = TN_CUDA_DELTA_THREADS};
    return tn_cuda_run(l, TN_CUDA_MODULE_recurrent,
                       a.dim <= MAX_DIM / 2 ? "tn_delta_rule_128" : "tn_delta_rule_256", &grid, &a);
}
