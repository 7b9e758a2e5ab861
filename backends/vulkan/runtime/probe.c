// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the driver compiled a kernel right: at first use it runs a small step of the same op, types and
// parameters on the device, and the results are compared with the reference. Verdicts stay with the cache of
// pipelines.
#include "backends/vulkan/runtime/probe.h"
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"
#include "ops/ops.h"
#include "ops/quant.h"

#include <math.h>
#include <string.h>

enum {
    CAP_TOKENS = 140, // more than a tile of the products with many rows
    CAP_COLUMNS = 270,
    CAP_COMMON = 512, // whole blocks of every type
    CAP_OUTER = 3,
    CAP_EXPERTS = 6,
    CAP_ROWS = 40,
    CAP_BLOCKS = 7,
    CAP_ROUTED = 24,
    CAP_QUERIES = 66, // more than a tile of attention
    CAP_SLOTS = 2,
    MAX_KEYS = 100 // and of keys
};
// Wrong code is off by orders of magnitude; rounding of inputs to 16 bits and stores in 4 bits are not to be
// told from it.
#define FLOAT_NMSE 1e-4
#define BLOCK_NMSE 2e-2
#define LARGEST    0.5f // of random blocks: results are as large as those of models, where activations bend
#define SMALLEST   0.001f

typedef const char *patterns[TN_MAX_SRC];

static const patterns table[] = {
#define TN_VK_PROBE(op, ...) [TN_OP_##op] = {__VA_ARGS__},
#include "backends/vulkan/runtime/probe.def"
};

static void add_route(const tn_moe_route_params *m, patterns p)
{
    int32_t n = 1;
    if (m->has_product) {
        p[0] = "..akf";
        p[n++] = "...kf";
    }
    if (m->has_bias) p[n++] = "....f";
    if (m->has_choice_bias) p[n++] = "....f";
    if (m->has_norm) p[n] = "...kf";
}

// Sources of fused products depend on the parameters.
static void add_optional(const tn_step *step, patterns p)
{
    int32_t n = 2;
    bool norm = false;
    if (step->op == TN_OP_moe_route) add_route(step->params, p);
    if (step->op == TN_OP_linear) {
        const tn_linear_params *l = step->params;
        if (l->has_bias) p[n++] = "...nf";
        if (l->has_residual) p[n++] = "aatnf";
        norm = l->has_norm != 0;
    } else if (step->op == TN_OP_matmul_multi) {
        const tn_matmul_multi_params *m = step->params;
        for (n = 1; n <= m->n_weights; n++) p[n] = "aankf";
        for (int32_t i = 0; i < m->n_weights; i++)
            if (m->has_bias[i]) p[n++] = "...nf";
        norm = m->has_norm != 0;
    } else if (step->op == TN_OP_matmul_glu) {
        n = 3;
        norm = ((const tn_matmul_glu_params *)step->params)->has_norm != 0;
    }
    if (norm) p[n] = "...kf";
}

static int64_t extent(char letter, int64_t n)
{
    static const struct {
        char letter;
        int16_t cap;
    } caps[] = {{'t', CAP_TOKENS},  {'n', CAP_COLUMNS}, {'k', CAP_COMMON}, {'a', CAP_OUTER},
                {'e', CAP_EXPERTS}, {'q', CAP_QUERIES}, {'m', CAP_ROUTED}, {'r', CAP_ROWS},
                {'b', CAP_BLOCKS},  {'g', CAP_SLOTS},   {'s', 1},          {'S', 2}};
    for (size_t i = 0; i < TN_COUNT(caps); i++)
        if (caps[i].letter == letter) return TN_MIN(n, caps[i].cap);
    return n;
}

// --- contents ----------------------------------------------------------------------------------------

static uint32_t draw(uint64_t *state) // xorshift64* (Vigna 2016)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545f4914f6cdd1du >> 32);
}

// Blocks of any bits with values of reasonable size: every field of the format is used.
static void fill_blocks(tn_dtype type, uint8_t *bytes, int64_t n_blocks, uint64_t *state)
{
    float y[256];
    size_t size = tn_dtype_block_size(type);
    int64_t n = tn_dtype_block_elems(type);
    for (int64_t b = 0; b < n_blocks; b++) {
        float most = 0.0f;
        for (int32_t tries = 0; tries < 1000 && !(most > SMALLEST && most < LARGEST); tries++) {
            for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(draw(state) >> 8);
            most = 0.0f;
            if (!tn_quant_row_valid(type, bytes, n)) continue;
            tn_quant_info_get(type)->to_f32(bytes, y, n);
            for (int64_t i = 0; i < n; i++)
                if (!(fabsf(y[i]) <= most)) most = fabsf(y[i]); // NaN too
        }
        bytes += size;
    }
}

// 8 bits are enough for the numbers: kernels that round operands to bf16 or f16 take them as they are, and no
// activation makes much of the error.
static void fill_numbers(const tn_view *v, uint64_t *state)
{
    if (tn_dtype_block_elems(v->dtype) > 1) {
        fill_blocks(v->dtype, v->data, tn_view_n_elems(v) / tn_dtype_block_elems(v->dtype), state);
        return;
    }
    for (int64_t r = 0; r < tn_view_n_rows(v); r++)
        for (int64_t j = 0; j < v->ne[3]; j++) {
            double x = (double)draw(state) / 2147483648.0 - 1.0;
            bool whole = v->dtype >= TN_TYPE_I8 && v->dtype <= TN_TYPE_I64;
            tn_view_set_row(v, r, j, whole ? floor(40.0 * x) : floor(64.0 * x) / 32.0);
        }
}

// Integers of source i of the small step; the others have their extents.
static int64_t integer(const tn_step *step, char kind, int64_t k)
{
    const tn_view *s = step->src;
    bool products = step->op == TN_OP_matmul_id || step->op == TN_OP_matmul_id_glu;
    int64_t tokens = s[step->op == TN_OP_attention ? 0 : 1].ne[step->op == TN_OP_short_conv ? 2 : 1],
            slots = s[0].ne[0] * s[0].ne[2];
    switch (kind) {
    case 'P':
        return 17 * k + 5;
    case 'I':
        return (5 * k + 1) % s[0].ne[2];
    case 'E':
        return (3 * k + 1) % (products ? s[1].ne[1] : s[0].ne[3]);
    case 'C':
        return k + 1 < slots ? k + 1 : k == 0 ? 0 : -1;
    case 'T':
        return k == 0 ? 0 : tokens;
    case 'L':
        return TN_MIN(TN_MIN(s[1].ne[0], s[5].ne[3]) * s[1].ne[2], MAX_KEYS);
    case 'B':
        return k % s[1].ne[0];
    default:
        return k == 0 ? 0 : step->op == TN_OP_short_conv ? s[0].ne[1] - 1 : s[0].ne[0] - 1; // 'R'
    }
}

// Numbers that lose nothing when 32 of them become bytes with a scale: whole multiples of a power of two, the
// largest 127. `same`: each 32 have the same power of two, for what is multiplied with them before.
static void fill_bytes(const tn_view *v, bool same, uint64_t *state)
{
    for (int64_t r = 0; r < tn_view_n_rows(v); r++)
        for (int64_t j = 0; j < v->ne[3]; j++) {
            double q = j % 32 == 5 ? 127.0 : (double)(draw(state) >> 8 & 255u) - 128.0;
            tn_view_set_row(v, r, j, same ? ldexp(1.0, (int)(j / 32 % 3) - 1) : fmax(q, -127.0) / 64.0);
        }
}

// Of numbers that are not positive, factors of rope are none, and kernels may make anything.
static void fill_factors(const tn_view *v, uint64_t *state)
{
    for (int64_t j = 0; j < v->ne[3]; j++)
        tn_view_set_row(v, 0, j, (double)((draw(state) >> 24) + 1u) / 64.0);
}

static void fill(const tn_step *step, const tn_view *v, char kind, uint64_t *state)
{
    if (kind == 'f')
        fill_numbers(v, state);
    else if (kind == 'F')
        fill_factors(v, state);
    else
        for (int64_t i = 0; i < v->ne[3] * v->ne[2] * v->ne[1] * v->ne[0]; i++)
            ((int32_t *)v->data)[i] = (int32_t)integer(step, kind, i);
}

// --- the small step -----------------------------------------------------------------------------------

typedef struct probe {
    tn_step step;                                        // operands on the host, results by the reference
    tn_step device;                                      // the same on the device
    size_t src_at[TN_MAX_SRC], dst_at[TN_MAX_DST], size; // in both
    char *host;
    tn_vk_memory memory;
} probe;

static size_t view_size(const tn_view *v)
{
    return v->ne[3] == 0 ? 0 : tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
}

static size_t take(probe *p, const tn_view *v)
{
    size_t at = p->size;
    p->size += (view_size(v) + 255) / 256 * 256;
    return at;
}

// Shapes and places; false: the table does not know how.
static bool shape(tn_context *ctx, const tn_step *step, probe *p)
{
    patterns pattern = {0};
    if ((size_t)step->op < TN_COUNT(table)) memcpy(pattern, table[step->op], sizeof pattern);
    add_optional(step, pattern);
    p->step = *step;
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_view *v = &p->step.src[i];
        if (v->ne[3] == 0) continue;
        if (!pattern[i]) return false;
        for (int32_t d = 0; d < TN_MAX_DIMS; d++) v->ne[d] = extent(pattern[i][d], v->ne[d]);
        v->buffer = NULL;
        tn_view_set_contiguous(v);
        p->src_at[i] = take(p, v);
    }
    if (tn_op_info_get(step->op)->infer(ctx, &p->step) != TN_OK) return false;
    for (int32_t i = 0; i < p->step.n_dst; i++) {
        tn_view *v = &p->step.dst[i];
        bool aliased = tn_op_aliases(tn_op_info_get(step->op)->flags, i);
        if (!aliased) tn_view_set_contiguous(v);
        v->buffer = NULL;
        p->dst_at[i] = aliased ? p->src_at[i] : take(p, v);
    }
    return true;
}

static tn_status load(tn_vk *v, const tn_step *step, const tn_vk_kernel *kernel, probe *p)
{
    patterns pattern;
    memcpy(pattern, table[step->op], sizeof pattern);
    add_optional(step, pattern);
    p->host = tn_calloc(v->device->ctx, p->size, 1);
    tn_status status = p->host ? tn_vk_memory_create(v, p->size, true, &p->memory) : TN_ERR_MEMORY;
    if (status != TN_OK) return status;
    p->device = p->step;
    uint64_t state = 0x9e3779b97f4a7c15u;
    char *mapped = p->memory.mapped;
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_view *view = &p->step.src[i], *there = &p->device.src[i];
        if (view->ne[3] == 0) continue;
        view->data = p->host + p->src_at[i];
        bool norm = pattern[i][3] == 'k' && pattern[i][2] == '.';
        if (kernel->needs & TN_VK_INT8_DOT && (i == 0 || norm))
            fill_bytes(view, norm, &state);
        else
            fill(&p->step, view, pattern[i][4], &state);
        there->data = (void *)(uintptr_t)(p->memory.address + p->src_at[i]);
        if (tn_op_takes_weights(step->op))
            tn_vk_weight_sort(there, view->data, mapped + p->src_at[i]);
        else
            memcpy(mapped + p->src_at[i], view->data, view_size(view));
    }
    for (int32_t i = 0; i < p->step.n_dst; i++) {
        p->step.dst[i].data = p->host + p->dst_at[i];
        p->device.dst[i].data = (void *)(uintptr_t)(p->memory.address + p->dst_at[i]);
    }
    return TN_OK;
}

// Runs a step by that kernel, with the pipelines that it has for step `like`, and waits. TN_ERR_UNSUPPORTED
// without a message: the step would have others.
static tn_status run_once(tn_vk *v, const tn_step *step, const tn_step *like, const tn_vk_kernel *k,
                          bool stages)
{
    tn_executable *e = tn_calloc(v->device->ctx, 1, sizeof *e);
    tn_vk_args *records = tn_calloc(v->device->ctx, TN_VK_MAX_DISPATCHES, sizeof *records);
    tn_vk_pipeline *pipelines[TN_VK_MAX_DISPATCHES];
    tn_vk_memory scratch = {0};
    int32_t n = 0;
    int64_t counters;
    size_t wanted = tn_vk_scratch_of(v, step, like, k, &counters),
           lists = TN_VK_MAX_DISPATCHES * sizeof *records;
    tn_status status = TN_ERR_MEMORY;
    if (e) e->runs = tn_calloc(v->device->ctx, TN_VK_MAX_DISPATCHES, sizeof *e->runs);
    if (e && e->runs && records)
        status = tn_vk_memory_create(v, lists + (size_t)counters * sizeof(uint32_t) + TN_VK_NEXT_RECORDS,
                                     true, &e->args);
    if (status == TN_OK) {
        e->n_steps = 1;
        e->counters = e->args.address + lists;
        size_t own = tn_vk_align_scratch(wanted), size = own + (stages ? tn_vk_staged_size(step) : 0);
        if (size > 0) status = tn_vk_memory_create(v, size, false, &scratch);
        e->scratch = (tn_vk_range){scratch.address, scratch.address + size};
        if (size > own) e->staged.write = scratch.address + own;
    }
    if (status == TN_OK) {
        status = tn_vk_launch(v, e, step, like, k, records, pipelines, &n);
    }
    if (status == TN_OK) {
        memcpy(e->args.mapped, records, lists);
        status = tn_vk_record_parts(v, e, &(tn_program){.n_steps = 1, .steps = step});
    }
    if (status == TN_OK) status = tn_vk_submit_commands(v, e->n_parts, e->parts, &e->value);
    if (status == TN_OK) status = tn_vk_wait_for(v, e->value);
    tn_free(v->device->ctx, records);
    tn_vk_executable_destroy(v->device, e);
    tn_vk_memory_destroy(v, &scratch);
    return status;
}

// --- judging ---------------------------------------------------------------------------------------------

static double rows_error(const tn_view *got, const tn_view *want)
{
    double error = 0.0, power = 0.0;
    int64_t n = want->ne[3], rows = tn_view_n_rows(want);
    bool blocks = tn_dtype_block_elems(want->dtype) > 1;
    float a[256], b[256];
    size_t piece = blocks ? tn_dtype_block_size(want->dtype) : 0;
    int64_t step = blocks ? tn_dtype_block_elems(want->dtype) : 1;
    for (int64_t i = 0; i < rows * n; i += step) {
        double x[2];
        if (blocks) {
            size_t at = (size_t)(i / step) * piece;
            tn_quant_info_get(want->dtype)->to_f32((const char *)got->data + at, a, step);
            tn_quant_info_get(want->dtype)->to_f32((const char *)want->data + at, b, step);
        } else {
            x[0] = tn_view_get_row(got, i / n, i % n);
            x[1] = tn_view_get_row(want, i / n, i % n);
        }
        for (int64_t j = 0; j < step; j++) {
            double g = blocks ? (double)a[j] : x[0], w = blocks ? (double)b[j] : x[1];
            if (isnan(w) || g == w) continue; // of what has no value, drivers may make anything
            error += (g - w) * (g - w);
            power += w * w;
        }
    }
    return error == 0.0 ? 0.0 : error / fmax(power, 1e-30); // NaN where numbers are wanted: NaN
}

static bool agrees(const probe *p, double *worst)
{
    *worst = 0.0;
    for (int32_t i = 0; i < p->step.n_dst; i++) {
        const tn_view *want = &p->step.dst[i];
        tn_view got = *want;
        got.data = (char *)p->memory.mapped + p->dst_at[i];
        bool exact = want->dtype == TN_TYPE_I32, blocks = tn_dtype_block_elems(want->dtype) > 1;
        double e = rows_error(&got, want);
        if (!(e <= *worst)) *worst = e;
        if (!(e <= (exact ? 0.0 : blocks ? BLOCK_NMSE : FLOAT_NMSE))) return false;
    }
    return true;
}

tn_status tn_vk_probe(tn_vk *v, const tn_step *step, const tn_vk_kernel *kernel, bool stages,
                      tn_vk_verdict *verdict, double *error)
{
    probe p = {0};
    *verdict = TN_VK_UNKNOWN;
    *error = 0.0;
    if (!shape(v->device->ctx, step, &p) || !kernel->accepts(&p.step)) return TN_OK;
    tn_status status = load(v, step, kernel, &p);
    if (status == TN_OK) status = run_once(v, &p.device, step, kernel, stages);
    if (status == TN_ERR_UNSUPPORTED) {
        status = TN_OK;
    } else if (status == TN_OK) {
        tn_op_info_get(step->op)->ref(&p.step);
        *verdict = agrees(&p, error) ? TN_VK_GOOD : TN_VK_BAD;
    }
    tn_vk_memory_destroy(v, &p.memory);
    tn_free(v->device->ctx, p.host);
    return status;
}
