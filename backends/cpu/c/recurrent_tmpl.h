// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops with a state per sequence; contracts at the heads of ops/recurrent/short_conv.c and
// ops/recurrent/delta_rule.c.
//
// short_conv: an item is CONV_CHANNELS channels of one sequence. Their weights are transposed once, then
// every token is C multiply-adds per vector of channels. Bytes: x and y once, the state twice.
//
// delta_rule: an item is DELTA_COLUMNS columns of one head of one sequence. Columns of M do not depend on
// each other, so the item copies its part of M to scratch (Sk x 32 floats: 16 KiB at Sk = 128, stays in L1),
// runs through all tokens of the sequence and writes it back. With M' = exp(g) M:
//   d = beta (v - exp(g) M^T k);  M = exp(g) M + k d^T;  o = M^T q
// is two passes over the part per token, 6 Sk Sv operations per token and head. One token: limited by reading
// and writing the state; many: by multiply-adds. What an item computes does not depend on the number of
// threads or other sequences.
#include "backends/cpu/accepts.h"
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vec_math.h"

// Tokens [first, last) of a sequence, the slots that it reads and writes; -1: outside of the state.
typedef struct recurrent_run {
    int64_t first, last, read, write;
} recurrent_run;

// src: the index of q_start among the sources; the slots follow it.
_Static_assert(TN_SRC_short_conv_slots == TN_SRC_short_conv_q_start + 1, "slots follow q_start");
_Static_assert(TN_SRC_delta_rule_slots == TN_SRC_delta_rule_q_start + 1, "slots follow q_start");
static recurrent_run recurrent_run_get(const tn_step *step, int32_t src, int64_t seq, int64_t n_slots)
{
    const int32_t *start = step->src[src].data, *slots = step->src[src + 1].data;
    recurrent_run r = {start[seq], start[seq + 1], slots[2 * seq], slots[2 * seq + 1]};
    if (r.read < 0 || r.read >= n_slots) r.read = -1;
    if (r.write < 0 || r.write >= n_slots) r.write = -1;
    return r;
}

// --- short_conv ------------------------------------------------------------------------------------

enum { CONV_CHANNELS = TN_CPU_CONV_CHANNELS };

// Channels [first, first + n) of one sequence.
typedef struct conv_item {
    const tn_step *step;
    recurrent_run run;
    int64_t first, n, kernel;
    const float *state; // of the slot that is read, NULL: zeros
} conv_item;

// Row of the channels, counted from the first token; negative: from the state.
static const float *conv_row(const conv_item *it, int64_t row, const float *zeros)
{
    const tn_view *x = &it->step->src[TN_SRC_short_conv_x];
    if (row >= 0)
        return (const float *)((const char *)x->data + (it->run.first + row) * x->nb[2]) + it->first;
    return it->state ? it->state + (it->kernel - 1 + row) * x->ne[3] + it->first : zeros;
}

static void conv_token(const conv_item *it, int64_t t, const float *w, const float *zeros)
{
    const float *rows[TN_CPU_MAX_CONV];
    const tn_view *y = &it->step->dst[TN_DST_short_conv_y];
    float *out = (float *)((char *)y->data + (it->run.first + t) * y->nb[2]) + it->first;
    for (int64_t u = 0; u < it->kernel; u++) rows[u] = conv_row(it, t - it->kernel + 1 + u, zeros);
    for (int64_t i = 0; i < it->n; i += VEC_N) {
        int64_t left = TN_MIN(VEC_N, it->n - i);
        vf sum = vf_zero();
        for (int64_t u = 0; u < it->kernel; u++)
            sum = vf_fma(vf_load(w + u * CONV_CHANNELS + i),
                         left == VEC_N ? vf_load(rows[u] + i) : vf_load_n(rows[u] + i, left), sum);
        if (left == VEC_N)
            vf_store(out + i, sum);
        else
            vf_store_n(out + i, sum, left);
    }
}

static void conv_run(const conv_item *it)
{
    const tn_view *wv = &it->step->src[TN_SRC_short_conv_w], *state = &it->step->dst[TN_DST_short_conv_state],
                  *y = &it->step->dst[TN_DST_short_conv_y];
    int64_t n_tokens = it->run.last - it->run.first, width = y->ne[3];
    float w[TN_CPU_MAX_CONV * CONV_CHANNELS] = {0}, zeros[CONV_CHANNELS] = {0};
    if (it->run.write < 0) {
        for (int64_t t = it->run.first; t < it->run.last; t++)
            memcpy((float *)((char *)y->data + t * y->nb[2]) + it->first, zeros,
                   (size_t)it->n * sizeof *zeros);
        return;
    }
    for (int64_t c = 0; c < it->n; c++) {
        const float *row = (const float *)((const char *)wv->data + (it->first + c) * wv->nb[2]);
        for (int64_t u = 0; u < it->kernel; u++) w[u * CONV_CHANNELS + c] = row[u];
    }
    for (int64_t t = 0; t < n_tokens; t++) conv_token(it, t, w, zeros);
    // Rising, so that a slot that is read and written is read before.
    float *next = (float *)state->data + it->run.write * (it->kernel - 1) * width + it->first;
    for (int64_t u = 0; u + 1 < it->kernel; u++)
        memmove(next + u * width, conv_row(it, n_tokens - it->kernel + 1 + u, zeros),
                (size_t)it->n * sizeof *next);
}

void VEC_NAME(short_conv_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_view *state = &step->src[TN_SRC_short_conv_state];
    int64_t width = state->ne[3], n_chunks = (width + CONV_CHANNELS - 1) / CONV_CHANNELS, first, last;
    tn_cpu_split(step->src[TN_SRC_short_conv_slots].ne[2] * n_chunks, 1, task->ith, task->nth, &first, &last);
    for (int64_t i = first; i < last && !tn_cpu_stopped(task); i++) {
        conv_item it = {.step = step,
                        .run = recurrent_run_get(step, TN_SRC_short_conv_q_start, i / n_chunks, state->ne[1]),
                        .kernel = state->ne[2] + 1};
        it.first = i % n_chunks * CONV_CHANNELS;
        it.n = TN_MIN(CONV_CHANNELS, width - it.first);
        if (it.run.read >= 0) it.state = (const float *)state->data + it.run.read * (it.kernel - 1) * width;
        conv_run(&it);
    }
}

// --- delta_rule ------------------------------------------------------------------------------------

enum { DELTA_VECS = TN_CPU_DELTA_COLUMNS / VEC_N, DELTA_CHAINS = DELTA_VECS >= 8 ? 1 : 8 / DELTA_VECS };

typedef struct delta_item {
    const tn_step *step;
    recurrent_run run;
    int64_t head, key_head, first, n; // columns [first, first + n)
    int64_t dim;                      // Sk
    float *m, *q, *k;                 // scratch: M [dim][TN_CPU_DELTA_COLUMNS], normalised query and key
} delta_item;

static float *delta_slot(const delta_item *it, int64_t slot)
{
    const tn_view *m = &it->step->dst[TN_DST_delta_rule_state];
    return (float *)((char *)m->data + slot * m->nb[0] + it->head * m->nb[1]) + it->first;
}

static void delta_load(const delta_item *it)
{
    int64_t stride = it->step->dst[TN_DST_delta_rule_state].ne[3];
    memset(it->m, 0, (size_t)(it->dim * TN_CPU_DELTA_COLUMNS) * sizeof *it->m);
    if (it->run.read < 0) return;
    const float *from = delta_slot(it, it->run.read);
    for (int64_t i = 0; i < it->dim; i++)
        memcpy(it->m + i * TN_CPU_DELTA_COLUMNS, from + i * stride, (size_t)it->n * sizeof *from);
}

static void delta_store(const delta_item *it)
{
    int64_t stride = it->step->dst[TN_DST_delta_rule_state].ne[3];
    float *to = delta_slot(it, it->run.write);
    for (int64_t i = 0; i < it->dim; i++)
        memcpy(to + i * stride, it->m + i * TN_CPU_DELTA_COLUMNS, (size_t)it->n * sizeof *to);
}

// A query or key, of length 1 if the op says so, times scale.
static void delta_vector(const delta_item *it, int32_t src, int64_t t, float scale, float *out)
{
    const tn_delta_rule_params *p = it->step->params;
    const tn_view *v = &it->step->src[src];
    const float *x = (const float *)((const char *)v->data + t * v->nb[1] + it->key_head * v->nb[2]);
    if (p->normalise) {
        vd sum = vd_zero();
        for (int64_t i = 0; i < it->dim; i += VEC_N)
            sum = vd_add_square(sum, it->dim - i >= VEC_N ? vf_load(x + i) : vf_load_n(x + i, it->dim - i),
                                0.0);
        double length = sqrt(vd_sum(sum));
        scale = (float)((double)scale / (length > (double)p->eps ? length : (double)p->eps));
    }
    for (int64_t i = 0; i < it->dim; i++) out[i] = x[i] * scale;
}

// r = M^T k, in chains that hide the latency of the additions
static void delta_recall(const delta_item *it, float *r)
{
    vf sum[DELTA_CHAINS][DELTA_VECS];
    for (int c = 0; c < DELTA_CHAINS; c++)
        for (int j = 0; j < DELTA_VECS; j++) sum[c][j] = vf_zero();
    int64_t i = 0;
    for (; i + DELTA_CHAINS <= it->dim; i += DELTA_CHAINS)
        for (int c = 0; c < DELTA_CHAINS; c++) {
            vf k = vf_set1(it->k[i + c]);
            const float *m = it->m + (i + c) * TN_CPU_DELTA_COLUMNS;
            for (int j = 0; j < DELTA_VECS; j++) sum[c][j] = vf_fma(k, vf_load(m + j * VEC_N), sum[c][j]);
        }
    for (; i < it->dim; i++)
        for (int j = 0; j < DELTA_VECS; j++)
            sum[0][j] =
                vf_fma(vf_set1(it->k[i]), vf_load(it->m + i * TN_CPU_DELTA_COLUMNS + j * VEC_N), sum[0][j]);
    for (int j = 0; j < DELTA_VECS; j++) {
        for (int c = 1; c < DELTA_CHAINS; c++) sum[0][j] = vf_add(sum[0][j], sum[c][j]);
        vf_store(r + j * VEC_N, sum[0][j]);
    }
}

// M = decay M + k d^T, o = M^T q
static void delta_update(const delta_item *it, vf decay, const float *d, float *o)
{
    vf sum[DELTA_VECS], step[DELTA_VECS];
    for (int j = 0; j < DELTA_VECS; j++) sum[j] = vf_zero(), step[j] = vf_load(d + j * VEC_N);
    for (int64_t i = 0; i < it->dim; i++) {
        vf k = vf_set1(it->k[i]), q = vf_set1(it->q[i]);
        float *m = it->m + i * TN_CPU_DELTA_COLUMNS;
        for (int j = 0; j < DELTA_VECS; j++) {
            vf v = vf_fma(k, step[j], vf_mul(decay, vf_load(m + j * VEC_N)));
            vf_store(m + j * VEC_N, v);
            sum[j] = vf_fma(q, v, sum[j]);
        }
    }
    for (int j = 0; j < DELTA_VECS; j++) vf_store(o + j * VEC_N, sum[j]);
}

static void delta_token(const delta_item *it, int64_t t)
{
    const tn_step *step = it->step;
    const tn_delta_rule_params *p = step->params;
    const tn_view *v = &step->src[TN_SRC_delta_rule_v], *y = &step->dst[TN_DST_delta_rule_y];
    float r[TN_CPU_DELTA_COLUMNS], x[TN_CPU_DELTA_COLUMNS] = {0}, lanes[VEC_N];
    delta_vector(it, TN_SRC_delta_rule_q, t, p->scale, it->q);
    delta_vector(it, TN_SRC_delta_rule_k, t, 1.0f, it->k);
    memcpy(x, (const float *)((const char *)v->data + t * v->nb[1] + it->head * v->nb[2]) + it->first,
           (size_t)it->n * sizeof *x);
    vf decay = vf_exp(vf_set1(((const float *)tn_view_row(&step->src[TN_SRC_delta_rule_g], t))[it->head]));
    float beta = ((const float *)tn_view_row(&step->src[TN_SRC_delta_rule_beta], t))[it->head];
    vf_store(lanes, decay);
    delta_recall(it, r);
    for (int64_t j = 0; j < TN_CPU_DELTA_COLUMNS; j++) x[j] = beta * (x[j] - lanes[0] * r[j]);
    delta_update(it, decay, x, r);
    memcpy((float *)((char *)y->data + t * y->nb[1] + it->head * y->nb[2]) + it->first, r,
           (size_t)it->n * sizeof *r);
}

static void delta_run(const delta_item *it)
{
    const tn_view *y = &it->step->dst[TN_DST_delta_rule_y];
    for (int64_t t = it->run.first; t < it->run.last && it->run.write < 0; t++)
        memset((float *)((char *)y->data + t * y->nb[1] + it->head * y->nb[2]) + it->first, 0,
               (size_t)it->n * sizeof(float));
    if (it->run.write < 0) return;
    delta_load(it);
    for (int64_t t = it->run.first; t < it->run.last; t++) delta_token(it, t);
    delta_store(it);
}

void VEC_NAME(delta_rule_f32)(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_delta_rule_params *p = step->params;
    const tn_view *m = &step->src[TN_SRC_delta_rule_state];
    int64_t heads = m->ne[1], blocks = (m->ne[3] + TN_CPU_DELTA_COLUMNS - 1) / TN_CPU_DELTA_COLUMNS, first,
            last;
    int64_t key_heads = step->src[TN_SRC_delta_rule_q].ne[2];
    float *scratch =
        (float *)task->scratch + task->thread * (int64_t)(tn_cpu_scratch_delta_rule(step, 1) / sizeof(float));
    tn_cpu_split(step->src[TN_SRC_delta_rule_slots].ne[2] * heads * blocks, 1, task->ith, task->nth, &first,
                 &last);
    for (int64_t i = first; i < last && !tn_cpu_stopped(task); i++) {
        delta_item it = {.step = step,
                         .run =
                             recurrent_run_get(step, TN_SRC_delta_rule_q_start, i / blocks / heads, m->ne[0]),
                         .head = i / blocks % heads,
                         .dim = m->ne[2]};
        it.key_head = p->grouped ? it.head / (heads / key_heads) : it.head % key_heads;
        it.first = i % blocks * TN_CPU_DELTA_COLUMNS;
        it.n = TN_MIN(TN_CPU_DELTA_COLUMNS, m->ne[3] - it.first);
        it.m = scratch;
        it.q = it.m + it.dim * TN_CPU_DELTA_COLUMNS;
        it.k = it.q + it.dim;
        delta_run(&it);
    }
}
