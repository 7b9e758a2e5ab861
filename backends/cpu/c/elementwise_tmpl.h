// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// unary: y = f(x); binary: y = a op b with broadcasting; glu: y = act(gate) * up. All f32, rows contiguous.
// Work: pieces of at most ROW_CHUNK elements. No scratch. Bytes: 8 per element for unary, 12 for the others;
// limit: memory for the plain kinds, about 1 element per cycle and core (AVX2) for those with an exponential.
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/vec_math.h"

typedef struct act_params {
    vf a, b;
} act_params;

#define ACT(name, result)                                                                                    \
    TN_INLINE vf act_##name(vf x, const act_params *p)                                                       \
    {                                                                                                        \
        (void)p;                                                                                             \
        return result;                                                                                       \
    }
ACT(affine, vf_add(vf_mul(p->a, x), p->b))
ACT(silu, vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_sub(vf_zero(), x)))))
// 0.5 (1 + tanh u) = sigmoid(2u), 2u = 2 sqrt(2/pi) x (1 + 0.044715 x^2)
ACT(gelu, vf_mul(x, vf_sigmoid(vf_mul(vf_mul(vf_set1(1.595769122f), x),
                                      vf_fma(vf_mul(vf_set1(0.044715f), x), x, vf_set1(1.0f))))))
ACT(gelu_erf, vf_mul(x, vf_normal_cdf(x)))
ACT(relu, vf_max(vf_zero(), x))
ACT(tanh, vf_tanh(x))
ACT(sigmoid, vf_sigmoid(x))
ACT(exp, vf_exp(x))
ACT(log, vf_log(x))
ACT(sqrt, vf_sqrt(x))
ACT(square, vf_mul(x, x))
ACT(abs, vf_abs(x))
ACT(softcap, vf_mul(p->a, vf_tanh(vf_div(x, p->a))))
ACT(softplus, vf_softplus(x))
ACT(clamp, vf_min(p->b, vf_max(p->a, x)))
#undef ACT

// clang-format off
#define KINDS(K)                                                                                             \
    K(AFFINE, affine) K(SILU, silu) K(GELU, gelu) K(GELU_ERF, gelu_erf) K(RELU, relu) K(TANH, tanh)          \
    K(SIGMOID, sigmoid) K(EXP, exp) K(LOG, log) K(SQRT, sqrt) K(SQUARE, square) K(ABS, abs)                  \
    K(SOFTCAP, softcap) K(SOFTPLUS, softplus) K(CLAMP, clamp)
// clang-format on

// --- unary -----------------------------------------------------------------------------------------

typedef void (*unary_fn)(const float *x, float *y, int64_t n, const act_params *p);

#define UNARY(kind, name)                                                                                    \
    static void unary_##name(const float *x, float *y, int64_t n, const act_params *p)                       \
    {                                                                                                        \
        int64_t i = 0;                                                                                       \
        for (; i + VEC_N <= n; i += VEC_N) vf_store(y + i, act_##name(vf_load(x + i), p));                   \
        if (i < n) vf_store_n(y + i, act_##name(vf_load_n(x + i, n - i), p), n - i);                         \
    }
KINDS(UNARY)
#undef UNARY

#define ROW(kind, name) [TN_UNARY_##kind] = unary_##name,
static const unary_fn unary_rows[TN_UNARY_COUNT] = {KINDS(ROW)};
#undef ROW

// Shape over which the work is divided: rows as they are, or one long row if nothing has gaps.
static void work_shape(const tn_view *const *views, int n_views, int64_t *n_rows, int64_t *row_size)
{
    const tn_view *y = views[0];
    bool flat = true;
    for (int i = 0; i < n_views; i++) flat = flat && tn_view_contiguous(views[i]);
    *n_rows = flat ? 1 : tn_view_n_rows(y);
    *row_size = flat ? tn_view_n_elems(y) : y->ne[3];
}

void VEC_NAME(unary_f32)(const tn_cpu_task *task)
{
    const tn_unary_params *p = task->step->params;
    const tn_view *x = &task->step->src[0], *y = &task->step->dst[0];
    act_params act = {vf_set1(p->a), vf_set1(p->b)};
    int64_t n_rows, row_size, first, last;
    work_shape((const tn_view *[]){y, x}, 2, &n_rows, &row_size);
    rows_split(task, n_rows * row_chunks(row_size), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, row_size);
        const float *in = tn_view_row(x, c.row);
        float *out = tn_view_row(y, c.row);
        unary_rows[p->kind](in + c.first, out + c.first, c.n, &act);
    }
}

// --- glu -------------------------------------------------------------------------------------------

typedef struct glu_row {
    const float *gate, *up;
    float *y;
    int64_t n;
    float limit, alpha; // limit infinity: none
} glu_row;

// up * act(gate), both limited first; a NaN passes min and max as their second operand.
#define GLU_LOOP(r, result)                                                                                  \
    do {                                                                                                     \
        vf high = vf_set1((r)->limit), low = vf_set1(-(r)->limit);                                           \
        for (int64_t i = 0; i < (r)->n; i += VEC_N) {                                                        \
            int64_t left = (r)->n - i;                                                                       \
            bool full = left >= VEC_N;                                                                       \
            vf gate = full ? vf_load((r)->gate + i) : vf_load_n((r)->gate + i, left);                        \
            vf up = full ? vf_load((r)->up + i) : vf_load_n((r)->up + i, left);                              \
            gate = vf_min(high, gate);                                                                       \
            up = vf_max(low, vf_min(high, up));                                                              \
            vf y = result;                                                                                   \
            if (full)                                                                                        \
                vf_store((r)->y + i, y);                                                                     \
            else                                                                                             \
                vf_store_n((r)->y + i, y, left);                                                             \
        }                                                                                                    \
    } while (0)

#define GLU(kind, name)                                                                                      \
    static void glu_##name(const glu_row *r)                                                                 \
    {                                                                                                        \
        const act_params zero = {vf_zero(), vf_zero()};                                                      \
        GLU_LOOP(r, vf_mul(act_##name(gate, &zero), up));                                                    \
    }
KINDS(GLU)
#undef GLU

typedef void (*glu_fn)(const glu_row *r);
#define ROW(kind, name) [TN_UNARY_##kind] = glu_##name,
static const glu_fn glu_rows[TN_UNARY_COUNT] = {KINDS(ROW)};
#undef ROW

// gate * sigmoid(alpha * gate) * (up + 1)
static void glu_alpha(const glu_row *r)
{
    vf alpha = vf_set1(r->alpha), one = vf_set1(1.0f);
    GLU_LOOP(r, vf_mul(vf_mul(gate, vf_sigmoid(vf_mul(alpha, gate))), vf_add(up, one)));
}

void VEC_NAME(glu_f32)(const tn_cpu_task *task)
{
    const tn_glu_params *p = task->step->params;
    const tn_view *gate = &task->step->src[0], *up = &task->step->src[1], *y = &task->step->dst[0];
    glu_fn fn = p->alpha > 0.0f ? glu_alpha : glu_rows[p->act];
    int64_t n_rows, row_size, first, last;
    work_shape((const tn_view *[]){y, gate, up}, 3, &n_rows, &row_size);
    rows_split(task, n_rows * row_chunks(row_size), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, row_size);
        fn(&(glu_row){
            .gate = (const float *)tn_view_row(gate, c.row) + c.first,
            .up = (const float *)tn_view_row(up, c.row) + c.first,
            .y = (float *)tn_view_row(y, c.row) + c.first,
            .n = c.n,
            .limit = p->limit > 0.0f ? p->limit : INFINITY,
            .alpha = p->alpha,
        });
    }
}

// --- binary ----------------------------------------------------------------------------------------

// A step of 0 repeats one value along the row.
typedef struct binary_row {
    const float *a, *b;
    int64_t a_step, b_step;
    float *y;
    int64_t n;
} binary_row;

TN_INLINE vf binary_load(const float *p, int64_t step, int64_t i, int64_t n)
{
    if (step == 0) return vf_set1(*p);
    return n >= VEC_N ? vf_load(p + i) : vf_load_n(p + i, n);
}

#define BINARY(name, fn)                                                                                     \
    static void binary_##name(const binary_row *r)                                                           \
    {                                                                                                        \
        int64_t i = 0, as = r->a_step, bs = r->b_step;                                                       \
        for (; i + VEC_N <= r->n; i += VEC_N)                                                                \
            vf_store(r->y + i, fn(binary_load(r->a, as, i, VEC_N), binary_load(r->b, bs, i, VEC_N)));        \
        int64_t left = r->n - i;                                                                             \
        if (left > 0)                                                                                        \
            vf_store_n(r->y + i, fn(binary_load(r->a, as, i, left), binary_load(r->b, bs, i, left)), left);  \
    }
BINARY(add, vf_add)
BINARY(sub, vf_sub)
BINARY(mul, vf_mul)
BINARY(div, vf_div)
BINARY(max, vf_max)
BINARY(min, vf_min)
#undef BINARY

typedef void (*binary_fn)(const binary_row *r);
static const binary_fn binary_rows[TN_BINARY_COUNT] = {
    [TN_BINARY_ADD] = binary_add, [TN_BINARY_SUB] = binary_sub, [TN_BINARY_MUL] = binary_mul,
    [TN_BINARY_DIV] = binary_div, [TN_BINARY_MAX] = binary_max, [TN_BINARY_MIN] = binary_min,
};

void VEC_NAME(binary_f32)(const tn_cpu_task *task)
{
    const tn_binary_params *p = task->step->params;
    const tn_view *a = &task->step->src[0], *b = &task->step->src[1], *y = &task->step->dst[0];
    bool same = tn_view_n_elems(a) == tn_view_n_elems(y) && tn_view_n_elems(b) == tn_view_n_elems(y);
    int64_t n_rows = tn_view_n_rows(y), row_size = y->ne[3], first, last;
    if (same) work_shape((const tn_view *[]){y, a, b}, 3, &n_rows, &row_size);
    int64_t a_step = same || a->ne[3] > 1, b_step = same || b->ne[3] > 1;
    rows_split(task, n_rows * row_chunks(row_size), &first, &last);
    for (int64_t i = first; i < last; i++) {
        row_chunk c = row_chunk_get(i, row_size);
        binary_rows[p->kind](&(binary_row){
            .a = (const float *)row_broadcast(a, y, c.row) + a_step * c.first,
            .b = (const float *)row_broadcast(b, y, c.row) + b_step * c.first,
            .a_step = a_step,
            .b_step = b_step,
            .y = (float *)tn_view_row(y, c.row) + c.first,
            .n = c.n,
        });
    }
}
#undef KINDS
#undef GLU_LOOP
