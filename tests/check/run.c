// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One case on all targets: the reference once on host copies, then each kernel three times: twice on the
// target and, where there is one, on a single thread. Results are poisoned differently each time, so an
// element that is not written makes the runs differ.
#include "ops/operands.h"
#include "ops/product.h"
#include "ops/quant.h"
#include "tests/check/check.h"
#include "tests/check/poison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A single element may be this many times further off than all are on average: in a long result the mean
// alone would not show a wrong tail.
#define WORST_FACTOR 9.0
// The fewest results for which an error relative to all of them says something.
enum { ROUNDED_MIN_ELEMS = 64, MAX_PRINTED = 40 };

// NaN in every float type, so that reading a fence shows as well as writing it.
static const uint8_t guard_byte = 0xff;
static const uint32_t poisons[] = {CHECK_POISONS};

typedef struct host_data {
    uint8_t *src[TN_MAX_SRC]; // as given
    uint8_t *want[TN_MAX_DST], *want_rounded[TN_MAX_DST];
    bool has_rounded;
    check_round_fn rounding, weight_rounding; // of what is rounded
    // The case with rounded operands, if a target rounds: those that differ from the given ones are owned.
    check_case rounded_case;
    tn_step rounded_step;
    uint8_t *rounded[TN_MAX_SRC];
} host_data;

// An execution: the operands on the device, and what came back.
typedef struct execution {
    tn_device *device;
    const check_case *c;
    const tn_step *shape; // results inferred
    const host_data *host;
    uint32_t poison;
    tn_buffer src[TN_MAX_SRC], dst[TN_MAX_DST], scratch;
    uint8_t *packed[TN_MAX_SRC]; // weights in a layout of the device: the bytes before the run
    size_t scratch_size;
    uint8_t *got[TN_MAX_DST];
    char problem[256];
} execution;

static void *allocate(size_t size)
{
    void *p = malloc(size > 0 ? size : 1);
    if (p) return p;
    fprintf(stderr, "tenon-check: out of memory\n");
    exit(1);
}

static size_t dst_size(const tn_view *v)
{
    return tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
}

static bool aliased(const check_case *c, int32_t dst)
{
    return (dst == 0 && c->in_place) || tn_op_aliases(tn_op_info_get(c->op)->flags, dst);
}

// --- reference -------------------------------------------------------------------------------------

// Binds the operands of the step.
static void reference(const check_case *c, tn_step *step, uint8_t *const *src, uint8_t **want)
{
    for (int32_t i = 0; i < c->n_src; i++) step->src[i] = check_operand_view(&c->src[i], src[i]);
    for (int32_t i = 0; i < step->n_dst; i++) {
        size_t size = dst_size(&step->dst[i]);
        want[i] = allocate(size);
        step->dst[i].data = want[i];
        if (tn_op_aliases(tn_op_info_get(c->op)->flags, i)) {
            memcpy(want[i], src[i], size);
            step->src[i].data = want[i];
        }
    }
    tn_op_info_get(c->op)->ref(step);
}

// Kernels quantise x after its norm. Takes the norm off the case and its step, and gives the norm's weight;
// NULL: the case has none.
static const float *remove_norm(check_case *c, tn_step *step, const host_data *h)
{
    tn_product_sources at = tn_product_sources_get(step->op, step->params);
    if (step->params) step->params = &c->params;
    if (at.norm < 0) return NULL;
    *(int32_t *)tn_product_param(&c->params, tn_product_form_get(step->op)->has_norm_off) = 0;
    step->n_src = --c->n_src; // the norm's weight is the last source of the ops that have one
    return (const float *)(const void *)h->src[at.norm];
}

static void norm_row(float *x, const float *w, double eps, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    double scale = 1.0 / sqrt(sum / (double)n + eps);
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] * scale * (double)w[i]);
}

// Source i as floats, each row rounded: weights of Q6_K if the kernel does so, then by `round`, unless NULL.
static uint8_t *expand_rounded(check_case *c, int32_t i, const uint8_t *bytes, bool rounds_q6_k,
                               check_round_fn round)
{
    check_operand *o = &c->src[i];
    int64_t k = o->parent[3], rows = o->parent[0] * o->parent[1] * o->parent[2];
    size_t row_size = tn_dtype_row_size(o->dtype, k);
    float *to = allocate((size_t)(rows * k) * sizeof *to), *row = allocate((size_t)k * sizeof *row);
    for (int64_t r = 0; r < rows; r++) {
        tn_quant_info_get(o->dtype)->to_f32(bytes + (size_t)r * row_size, row, k);
        if (rounds_q6_k && o->dtype == TN_TYPE_Q6_K) check_round_q6_k(bytes + (size_t)r * row_size, row, k);
        if (round) round(row, to + r * k, k);
        else memcpy(to + r * k, row, (size_t)k * sizeof *row);
    }
    free(row);
    o->dtype = TN_TYPE_F32;
    return (uint8_t *)to;
}

// Levels of one device may round in different ways.
static void forget_rounded(host_data *h)
{
    for (int32_t i = 0; i < TN_MAX_SRC; i++) {
        free(h->rounded[i]);
        h->rounded[i] = NULL;
    }
    for (int32_t i = 0; i < TN_MAX_DST; i++) {
        free(h->want_rounded[i]);
        h->want_rounded[i] = NULL;
    }
    h->has_rounded = false;
}

static void reference_rounded(const check_case *c, const tn_step *shape, host_data *h, const check_target *t)
{
    check_round_fn round = check_rounding(t->device, shape),
                   round_weight = check_weight_rounding(t->device, shape);
    if (h->has_rounded && (h->rounding != round || h->weight_rounding != round_weight)) forget_rounded(h);
    if (h->has_rounded) return;
    h->rounding = round;
    h->weight_rounding = round_weight;
    uint8_t *src[TN_MAX_SRC];
    memcpy(src, h->src, sizeof src);
    check_case *plain = &h->rounded_case;
    *plain = *c;
    bool caches = c->op == TN_OP_attention; // keys and values take the place of weights
    bool q6_k = check_rounds_q6_k(t->device, shape);
    int32_t n_weights = !round_weight && !q6_k ? 0 : caches ? 2 : tn_product_get(shape).n_weights;
    for (int32_t i = 1; i <= n_weights; i++)
        src[i] = h->rounded[i] = expand_rounded(plain, i, src[i], q6_k, round_weight);
    h->rounded_step = *shape;
    double eps = tn_product_get(shape).eps;
    const float *norm_weight = remove_norm(plain, &h->rounded_step, h);
    size_t size = check_operand_size(&c->src[0]);
    src[0] = h->rounded[0] = allocate(size);
    memcpy(src[0], h->src[0], size);
    tn_view x = check_operand_view(&c->src[0], src[0]);
    float *row = allocate((size_t)x.ne[3] * sizeof *row);
    for (int64_t r = 0; r < tn_view_n_rows(&x); r++) {
        if (norm_weight) norm_row(tn_view_row(&x, r), norm_weight, eps, x.ne[3]);
        round(tn_view_row(&x, r), row, x.ne[3]);
        memcpy(tn_view_row(&x, r), row, (size_t)x.ne[3] * sizeof *row);
    }
    reference(plain, &h->rounded_step, src, h->want_rounded);
    h->has_rounded = true;
    free(row);
}

// --- execution -------------------------------------------------------------------------------------

static void fill_poison(uint8_t *to, size_t n, uint32_t poison)
{
    for (size_t i = 0; i < n; i++) to[i] = (uint8_t)(poison >> i % 4 * 8);
}

// guard | shift | bytes | guard
static tn_status fenced_create(execution *e, size_t shift, const void *bytes, size_t size, tn_buffer *out)
{
    size_t total = size + shift + 2 * (size_t)CHECK_GUARD;
    tn_status status = tn_buffer_create(e->device, total, out);
    if (status != TN_OK) return status;
    uint8_t *image = allocate(total);
    memset(image, guard_byte, total);
    if (bytes) {
        memcpy(image + CHECK_GUARD + shift, bytes, size);
    } else {
        fill_poison(image + CHECK_GUARD + shift, size, e->poison);
    }
    status = tn_buffer_write(out, 0, image, total);
    free(image);
    return status;
}

static void place(tn_view *v, tn_buffer *buffer, size_t offset)
{
    v->buffer = buffer;
    v->offset = offset;
    v->data = (char *)buffer->data + offset;
}

// Quantised weights of devices that have a layout for them; quantised caches stay as they are.
static bool is_packed(const execution *e, int32_t i)
{
    bool weight = tn_dtype_block_elems(e->c->src[i].dtype) > 1 && tn_op_takes_weights(e->c->op);
    return weight && e->device->backend->weight_write;
}

// The parent is written, of which the operand may be a part.
static tn_status weight_create(execution *e, int32_t i)
{
    const check_operand *o = &e->c->src[i];
    size_t size = check_operand_size(o);
    tn_view whole = {.dtype = o->dtype, .n_dims = o->n_dims}, *view = &whole;
    memcpy(whole.ne, o->parent, sizeof whole.ne);
    tn_view_set_contiguous(&whole);
    tn_status status = fenced_create(e, 0, NULL, size, &e->src[i]);
    if (status == TN_OK)
        status = tn_buffer_write_weight(&e->src[i], CHECK_GUARD, view, e->host->src[i], size);
    e->packed[i] = allocate(size);
    return status == TN_OK ? tn_buffer_read(&e->src[i], CHECK_GUARD, e->packed[i], size) : status;
}

// Bytes between the fence and the operand: layouts of devices start aligned.
static size_t shift_of(const execution *e, int32_t i)
{
    return is_packed(e, i) ? 0 : e->c->src[i].shift;
}

static tn_status operands_create(execution *e, tn_step *step)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < e->c->n_src && status == TN_OK; i++) {
        const check_operand *o = &e->c->src[i];
        int32_t owner = o->shared ? i - 1 : i;
        if (o->n_dims == 0) continue;
        step->src[i] = check_operand_view(o, NULL);
        if (is_packed(e, i))
            status = weight_create(e, i);
        else if (!o->shared)
            status = fenced_create(e, o->shift, e->host->src[i], check_operand_size(o), &e->src[i]);
        place(&step->src[i], &e->src[owner], step->src[i].offset + shift_of(e, owner) + CHECK_GUARD);
    }
    for (int32_t i = 0; i < step->n_dst && status == TN_OK; i++) {
        tn_view *v = &step->dst[i];
        if (aliased(e->c, i)) {
            place(v, &e->src[i], e->c->src[i].shift + CHECK_GUARD);
        } else {
            status = fenced_create(e, 0, NULL, dst_size(v), &e->dst[i]);
            place(v, &e->dst[i], CHECK_GUARD);
        }
    }
    return status;
}

// Scratch starts at the start of its buffer: only its end is fenced.
static tn_status scratch_create(execution *e, const tn_program *program)
{
    e->scratch_size = e->device->backend->scratch_size(e->device, program);
    size_t total = e->scratch_size + CHECK_GUARD;
    tn_status status = tn_buffer_create(e->device, total, &e->scratch);
    if (status != TN_OK) return status;
    uint8_t *image = allocate(total);
    fill_poison(image, e->scratch_size, e->poison);
    memset(image + e->scratch_size, guard_byte, CHECK_GUARD);
    status = tn_buffer_write(&e->scratch, 0, image, total);
    free(image);
    return status;
}

static tn_status run_step(execution *e, tn_step *step)
{
    const tn_backend *backend = e->device->backend;
    tn_program program = {.n_steps = 1, .steps = step};
    tn_executable *executable = NULL;
    tn_status status = scratch_create(e, &program);
    if (status == TN_OK) status = backend->prepare(e->device, &program, &e->scratch, &executable);
    if (status == TN_OK) status = backend->submit(e->device, executable, NULL);
    if (status == TN_OK) status = backend->wait(e->device, executable);
    if (executable) backend->executable_destroy(e->device, executable);
    return status;
}

static bool guards_intact(const uint8_t *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i] != guard_byte) return false;
    return true;
}

// Reads a fenced buffer back and checks its fences; the caller frees the image.
static uint8_t *fenced_read(execution *e, const tn_buffer *b, size_t begin, const char *what, int32_t i)
{
    uint8_t *image = allocate(b->size);
    if (tn_buffer_read(b, 0, image, b->size) != TN_OK)
        snprintf(e->problem, sizeof e->problem, "reading %s %d failed", what, i);
    else if (!guards_intact(image, 0, begin))
        snprintf(e->problem, sizeof e->problem, "wrote before %s %d", what, i);
    else if (!guards_intact(image, b->size - CHECK_GUARD, b->size))
        snprintf(e->problem, sizeof e->problem, "wrote behind %s %d", what, i);
    return image;
}

static void results_read(execution *e, const tn_step *step)
{
    char name[32];
    for (int32_t i = 0; i < e->c->n_src && !e->problem[0]; i++) {
        const check_operand *o = &e->c->src[i];
        if (o->n_dims == 0 || o->shared) continue;
        size_t begin = CHECK_GUARD + shift_of(e, i);
        const uint8_t *before = e->packed[i] ? e->packed[i] : e->host->src[i];
        uint8_t *image = fenced_read(e, &e->src[i], begin, "source", i);
        if (!e->problem[0] && !(i < step->n_dst && aliased(e->c, i)) &&
            memcmp(image + begin, before, check_operand_size(o)) != 0)
            snprintf(e->problem, sizeof e->problem, "changed source %d (%s)", i,
                     tn_source_name(e->c->op, e->shape->params, i, name, sizeof name));
        free(image);
    }
    for (int32_t i = 0; i < step->n_dst && !e->problem[0]; i++) {
        const tn_view *v = &step->dst[i];
        size_t begin = v->offset;
        uint8_t *image = fenced_read(e, v->buffer, begin, "result", i);
        e->got[i] = allocate(dst_size(v));
        memcpy(e->got[i], image + begin, dst_size(v));
        free(image);
    }
    if (e->problem[0]) return;
    uint8_t *image = allocate(e->scratch.size);
    if (tn_buffer_read(&e->scratch, 0, image, e->scratch.size) != TN_OK ||
        !guards_intact(image, e->scratch_size, e->scratch.size))
        snprintf(e->problem, sizeof e->problem, "wrote behind the scratch of %zu bytes", e->scratch_size);
    free(image);
}

static void execute(execution *e)
{
    tn_step step = *e->shape;
    tn_status status = operands_create(e, &step);
    if (status == TN_OK) status = run_step(e, &step);
    if (status == TN_OK) {
        results_read(e, &step);
    } else {
        char text[200];
        tn_context_error(e->device->ctx, text, sizeof text);
        snprintf(e->problem, sizeof e->problem, "%s: %s", tn_status_text(status), text);
    }
    for (int32_t i = 0; i < TN_MAX_SRC; i++) {
        tn_buffer_destroy(&e->src[i]);
        free(e->packed[i]);
        e->packed[i] = NULL;
    }
    for (int32_t i = 0; i < TN_MAX_DST; i++) tn_buffer_destroy(&e->dst[i]);
    tn_buffer_destroy(&e->scratch);
}

static void execution_fini(execution *e)
{
    for (int32_t i = 0; i < TN_MAX_DST; i++) free(e->got[i]);
}

// --- judging ---------------------------------------------------------------------------------------

typedef struct verdict {
    double worst;
    char problem[400];
} verdict;

static check_diff compare_result(const execution *e, int32_t i, uint8_t *want)
{
    check_rule rule = {tn_op_info_get(e->c->op)->nmse == 0.0, e->c->relative, e->c->floor};
    tn_view a = e->shape->dst[i], b = a;
    a.data = e->got[i];
    b.data = want;
    return check_compare(&a, &b, &rule);
}

static void describe(verdict *v, const check_diff *d, int32_t i, double limit, const char *against)
{
    char what[96];
    if (d->problem)
        snprintf(what, sizeof what, "%s", d->problem);
    else if (d->nmse <= limit)
        snprintf(what, sizeof what, "one element off by %.3g of the RMS", sqrt(d->worst_nse));
    else
        snprintf(what, sizeof what, "NMSE %.3g exceeds %.3g", d->nmse, limit);
    snprintf(v->problem, sizeof v->problem,
             "result %d%s: %s; worst element %lld of %lld: %.9g, reference %.9g", i, against, what,
             (long long)d->worst, (long long)d->n, d->got, d->want);
}

// Products as they are: the slope of an activation may multiply the error of rounding by anything.
static bool plain_product(const check_case *c)
{
    const tn_product_form *f = tn_product_form_get(c->op);
    bool glu = f && f->glu_off != TN_PRODUCT_NO_PARAM;
    bool activated = c->op == TN_OP_linear && c->params.linear.act != TN_UNARY_NONE;
    return !glu && !activated && c->src[0].fill == CHECK_NORMAL;
}

// Of a kernel that rounds sums too: the slope of an activation multiplies that, so that only the mode bounds
// it.
static double limit_of(const check_case *c, double sums)
{
    double limit = tn_op_info_get(c->op)->nmse;
    if (sums <= 0.0) return limit;
    return fmax(limit, plain_product(c) ? sums : tn_precision_nmse(c->precision));
}

// The largest magnitude of a source that lies in one piece.
static double largest_of(const tn_view *v, const uint8_t *data)
{
    const tn_quant_info *info = tn_quant_info_get(v->dtype);
    int64_t step = tn_dtype_block_elems(v->dtype), n = tn_view_n_elems(v);
    double largest = 0.0;
    for (int64_t i = 0; i < n; i += step, data += tn_dtype_block_size(v->dtype)) {
        float x[256];
        info->to_f32(data, x, step);
        // A comparison, because gcc 12 for aarch64 fails to compile a maximum by fmax here.
        for (int64_t j = 0; j < step; j++)
            if (fabs((double)x[j]) > largest) largest = fabs((double)x[j]);
    }
    return largest;
}

// Whether rounding in the kernel explains the worst element of attention. A result of many keys averages
// errors of weights and values, one of one to three keys does not. The bound is not relative to the RMS,
// because results of many keys are much smaller than values.
static bool rounding_explains(const execution *e, const host_data *h, const check_diff *d)
{
    if (e->c->op != TN_OP_attention || !tn_step_has_src(e->shape, TN_SRC_attention_v)) return false;
    double share = check_value_error(e->device, e->shape);
    if (share <= 0.0) return false;
    double largest = largest_of(&e->shape->src[TN_SRC_attention_v], h->src[TN_SRC_attention_v]);
    return fabs(d->got - d->want) <= largest * share;
}

// Whether what tensor cores cut off explains all elements that are further off than others may be. All of
// them together keep the bound of f32 sums (check_diff.nmse).
static bool sums_explain(const execution *e, const host_data *h, int32_t i, const check_diff *d, double limit)
{
    int64_t run = check_short_sums(e->device, e->shape);
    const float *got = (const float *)(const void *)e->got[i],
                *want = (const float *)(const void *)h->want_rounded[i];
    double worst = d->got - d->want, most = sqrt(worst * worst / d->worst_nse * limit);
    if (run == 0 || e->shape->dst[i].dtype != TN_TYPE_F32) return false;
    for (int64_t j = 0; j < d->n; j++) {
        double off = fabs((double)got[j] - (double)want[j]);
        if (off > most && !(off <= check_short_sums_bound(&h->rounded_step, i, j, run))) return false;
    }
    return true;
}

static void judge(const execution *e, const host_data *h, bool rounds, verdict *v)
{
    double sums = rounds ? check_sums_nmse(e->device, e->shape) : 0.0, limit = limit_of(e->c, sums);
    for (int32_t i = 0; i < e->shape->n_dst && !v->problem[0]; i++) {
        check_diff d = compare_result(e, i, rounds ? h->want_rounded[i] : h->want[i]);
        v->worst = fmax(v->worst, d.problem ? INFINITY : d.nmse);
        bool good = !d.problem && d.nmse <= limit &&
                    (d.worst_nse <= WORST_FACTOR * limit || rounding_explains(e, h, &d) ||
                     (rounds && sums_explain(e, h, i, &d, WORST_FACTOR * limit)));
        if (!good) describe(v, &d, i, limit, rounds ? " (rounded input)" : "");
        if (!rounds || v->problem[0] || d.n < ROUNDED_MIN_ELEMS || !plain_product(e->c)) continue;
        double stated = tn_precision_nmse(e->c->precision);
        d = compare_result(e, i, h->want[i]);
        if (d.problem || !(d.nmse <= stated)) describe(v, &d, i, stated, " (input as given)");
    }
}

static void check_repeat(const execution *a, const execution *b, const char *what, verdict *v)
{
    if (v->problem[0]) return;
    if (b->problem[0]) {
        snprintf(v->problem, sizeof v->problem, "%s: %s", what, b->problem);
        return;
    }
    for (int32_t i = 0; i < a->shape->n_dst; i++) {
        const tn_view *d = &a->shape->dst[i];
        if (memcmp(a->got[i], b->got[i], dst_size(d)) != 0) {
            size_t at = 0;
            while (a->got[i][at] == b->got[i][at]) at++;
            snprintf(v->problem, sizeof v->problem, "result %d differs %s, first at byte %zu of %zu", i, what,
                     at, dst_size(d));
            return;
        }
    }
}

static void verdict_get(const check_target *t, const check_case *c, const tn_step *step, host_data *h,
                        verdict *v)
{
    check_round_fn round = check_rounding(t->device, step);
    if (round) reference_rounded(c, step, h, t);
    execution runs[3];
    for (int32_t i = 0; i < 3; i++)
        runs[i] = (execution){
            .device = i < 2 ? t->device : t->single, .c = c, .shape = step, .host = h, .poison = poisons[i]};
    execute(&runs[0]);
    if (runs[0].problem[0])
        snprintf(v->problem, sizeof v->problem, "%s", runs[0].problem);
    else
        judge(&runs[0], h, round != NULL, v);
    if (!v->problem[0]) {
        execute(&runs[1]);
        check_repeat(&runs[0], &runs[1], "in the second run", v);
    }
    if (!v->problem[0] && t->single) {
        execute(&runs[2]);
        check_repeat(&runs[0], &runs[2], "on one thread", v);
    }
    for (int32_t i = 0; i < 3; i++) execution_fini(&runs[i]);
}

// --- accounting ------------------------------------------------------------------------------------

static void note_kernel(check_result *r, const char *kernel)
{
    for (int32_t i = 0; i < CHECK_MAX_KERNELS; i++) {
        if (r->kernels[i] && strcmp(r->kernels[i], kernel) != 0) continue;
        r->kernels[i] = kernel;
        r->n_kernels[i]++;
        return;
    }
}

static void report(check_run *run, const check_target *t, const check_case *c, const char *kernel,
                   const verdict *v)
{
    char text[800];
    check_case_text(c, text, sizeof text);
    snprintf(run->last_failure, sizeof run->last_failure, "%s", v->problem);
    if (run->options.quiet) return;
    if (++run->n_printed > MAX_PRINTED && run->options.op < 0) {
        if (run->n_printed == MAX_PRINTED + 1) printf("further failures are only counted; --op shows them\n");
        return;
    }
    printf("FAIL %s %s (%s): %s\n     %s\n", t->label, tn_op_name(c->op), kernel, v->problem, text);
    printf("     again: --backend %s%s%s --op %s --seed %llu --case %d%s\n", run->options.backend,
           t->has_levels ? " --isa " : "", t->has_levels ? t->label : "", tn_op_name(c->op),
           (unsigned long long)run->options.seed, c->number, run->options.quick ? " --quick" : "");
    fflush(stdout);
}

static void run_on(check_run *run, int32_t target, const check_case *c, const tn_step *step, host_data *h)
{
    const check_target *t = &run->targets[target];
    check_result *r = &run->results[c->op][c->type][target];
    if (!tn_device_has_precision(t->device, c->precision)) return;
    if (!t->device->backend->accepts(t->device, step)) {
        r->n_skipped++;
        run->n_skipped++;
        return;
    }
    const char *kernel = t->device->backend->kernel_name(t->device, step);
    note_kernel(r, kernel);
    r->n_cases++;
    if (run->options.coverage) return;
    verdict v = {0};
    verdict_get(t, c, step, h, &v);
    r->worst = fmax(r->worst, v.worst);
    if (!v.problem[0]) {
        run->n_passed++;
        return;
    }
    r->n_failed++;
    run->n_failed++;
    report(run, t, c, kernel, &v);
}

// How a type is unpacked is checked with every type by get_rows. For matrix products, whose kernels take
// longest to compile and to run, the core has a type of each kind of kernel: F32, a half type, and two block
// types.
static bool in_core(const check_case *c)
{
    bool product = tn_op_info_get(c->op)->family == TN_FAMILY_product;
    return !product || c->type == TN_TYPE_F32 || c->type == TN_TYPE_F16 || c->type == TN_TYPE_Q8_0 ||
           c->type == TN_TYPE_Q4_K;
}

static bool wanted(const check_run *run, const check_case *c)
{
    const check_options *o = &run->options;
    if (o->only_case >= 0 && o->only_case != c->number) return false;
    if (o->precision >= 0 && o->precision != c->precision) return false;
    if (o->core && !in_core(c)) return false;
    // The coverage table is about what runs without being told.
    if (o->coverage && c->precision != TN_PRECISION_auto) return false;
    bool has = false; // no reference is computed for nothing
    for (int32_t i = 0; i < run->n_targets; i++)
        has |= tn_device_has_precision(run->targets[i].device, c->precision) != 0;
    if (!has) return false;
    return o->type < 0 || o->type == c->type;
}

// The seed of a case depends on nothing but the given one, the op and the number.
static void number_case(check_run *run, check_case *c)
{
    c->number = run->n_cases[c->op]++;
    check_rng r = {run->options.seed * 0x100000001b3u + (uint64_t)c->op * 0x10001u +
                   (uint64_t)c->number * 0x2545f491u};
    c->seed = check_random_u64(&r);
}

void check_emit(check_run *run, check_case *c)
{
    number_case(run, c);
    if (run->options.list || !wanted(run, c)) return;
    tn_step step;
    if (check_step(run->targets[0].ctx, c, &step) != TN_OK) {
        char text[300], error[200];
        tn_context_error(run->targets[0].ctx, error, sizeof error);
        printf("FAIL case %d is refused: %s\n     %s\n", c->number, error,
               check_case_text(c, text, sizeof text));
        run->n_failed++;
        return;
    }
    host_data h = {0};
    if (!run->options.coverage) {
        for (int32_t i = 0; i < c->n_src; i++) {
            h.src[i] = allocate(check_operand_size(&c->src[i]));
            if (c->src[i].shared)
                memcpy(h.src[i], h.src[i - 1], check_operand_size(&c->src[i]));
            else if (c->src[i].n_dims > 0)
                check_operand_fill(c, i, h.src[i]);
        }
        tn_step bound = step;
        reference(c, &bound, h.src, h.want);
    }
    for (int32_t i = 0; i < run->n_targets; i++) run_on(run, i, c, &step, &h);
    for (int32_t i = 0; i < TN_MAX_SRC; i++) free(h.src[i]);
    for (int32_t i = 0; i < TN_MAX_DST; i++) free(h.want[i]);
    forget_rounded(&h);
}
