// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether the driver compiled a kernel right: at first use it runs a small step of the same op, types and
// parameters on the device, and the results are compared with the reference. Verdicts stay with the cache of
// pipelines.
#include "backends/vulkan/runtime/probe.h"
#include "backends/vulkan/runtime/executable.h"
#include "core/device.h"
#include "ops/operands.h"
#include "ops/product.h"
#include "ops/quant.h"
#include "ops/sample.h"

#include <math.h>
#include <string.h>

enum {
    CAP_TOKENS = 140, // more than a tile of the products with many rows
    CAP_COLUMNS = 276, // rows of results are whole runs of 4, as layouts may promise, and not of 8
    CAP_STAGED = 288, // columns of a result that is staged too, which has whole groups of 32
    CAP_COMMON = 512, // whole blocks of every type
    COMMON_UNIT = 64, // products have pipelines of their own where it divides the common dimension
    CAP_OUTER = 3,
    CAP_EXPERTS = 6,
    CAP_ROWS = 40,
    CAP_BLOCKS = 7,
    CAP_ROUTED = 24,
    CAP_QUERIES = 66, // more than a tile of attention
    CAP_SLOTS = 2,
    CAP_WORDS = CAP_COMMON / 32, // of a mask
    MAX_KEYS = 99                // no whole number of them is a round of attention
};
// Code that was compiled wrongly is off by orders of magnitude. The bounds leave space for kernels that
// convert operands to 16 bits, and for results that are stored in 4 bits.
#define FLOAT_NMSE 1e-4
#define BLOCK_NMSE 2e-2
// Values of random blocks: results are then as large as in models, where activations are not linear.
#define LARGEST  0.5f
#define SMALLEST 0.001f

typedef const char *patterns[TN_MAX_SRC];

static const patterns table[] = {
#define TN_VK_PROBE(op, ...) [TN_OP_##op] = {__VA_ARGS__},
#include "backends/vulkan/runtime/probe.def"
};

static void set(patterns p, int32_t source, const char *pattern)
{
    if (source >= 0) p[source] = pattern;
}

// Of ops without a row: numbers in rows. Integers are indices of something, and only the row of the op can
// say what they may be.
static void default_patterns(const tn_step *step, patterns p)
{
    for (int32_t i = 0; i < step->n_src; i++)
        if (step->src[i].dtype == TN_TYPE_F32) set(p, i, "aaakf");
}

// Products and moe_route have no row in probe.def: which sources they have depends on their parameters.
static void patterns_of(const tn_step *step, patterns p)
{
    tn_product_sources s = tn_product_sources_get(step->op, step->params);
    bool experts = s.ids >= 0;
    if ((size_t)step->op < TN_COUNT(table)) memcpy(p, table[step->op], sizeof(patterns));
    if (!p[0]) default_patterns(step, p);
    if (s.n_weights > 0) set(p, s.x, experts ? ".m.kf" : "aatkf");
    for (int32_t i = 0; i < s.n_weights; i++) {
        set(p, s.w[i], experts ? ".enkf" : "aankf");
        set(p, s.bias[i], "...nf");
    }
    if (s.n_weights > 0) {
        set(p, s.residual, "aatnf");
        set(p, s.norm, "...kf");
        set(p, s.ids, "..m.E");
    }
    if (step->op != TN_OP_moe_route) return;
    tn_moe_route_sources r = tn_moe_route_sources_get(step->params);
    set(p, r.x, r.router >= 0 ? "..akf" : "..a.f");
    set(p, r.router, "...kf");
    set(p, r.bias, "....f");
    set(p, r.choice_bias, "....f");
    set(p, r.norm, "...kf");
}

// folds: the step does another one too, which is only so where each sequence has one token.
static int64_t extent(char letter, int64_t n, bool stages, bool folds)
{
    static const struct {
        char letter;
        int16_t cap;
    } caps[] = {{'t', CAP_TOKENS},  {'n', CAP_COLUMNS}, {'k', CAP_COMMON}, {'a', CAP_OUTER},
                {'e', CAP_EXPERTS}, {'q', CAP_QUERIES}, {'m', CAP_ROUTED}, {'r', CAP_ROWS},
                {'b', CAP_BLOCKS},  {'g', CAP_SLOTS},   {'s', 1},          {'S', 2},
                {'w', CAP_WORDS}};
    if (folds && (letter == 'q' || letter == 'a')) return TN_MIN(n, 1);
    if (letter == 'n' && stages) return TN_MIN(n, CAP_STAGED);
    if (letter == 'k' && n > CAP_COMMON) n = CAP_COMMON - (COMMON_UNIT - n % COMMON_UNIT) % COMMON_UNIT;
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

// Blocks of random bits whose values have a reasonable size, so that every field of the format is used.
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

// Numbers of 8 bits: conversion to bf16 or f16 changes none of them, so those kernels can be held to the same
// bound.
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

// How many tokens the sequences of the step have together.
static int64_t tokens_of(const tn_step *step)
{
    const tn_view *s = step->src;
    return step->op == TN_OP_attention    ? s[TN_SRC_attention_q].ne[1]
           : step->op == TN_OP_short_conv ? s[TN_SRC_short_conv_x].ne[2]
                                          : s[TN_SRC_delta_rule_q].ne[1];
}

static int64_t experts_of(const tn_step *step)
{
    tn_product p = tn_product_get(step);
    return p.ids ? p.n_experts : step->src[TN_SRC_moe_weights_x].ne[3];
}

// The last slot of the state of a recurrent layer.
static int64_t last_slot(const tn_step *step)
{
    const tn_view *s = step->src;
    return (step->op == TN_OP_short_conv ? s[TN_SRC_short_conv_state].ne[1]
                                         : s[TN_SRC_delta_rule_state].ne[0]) -
           1;
}

// Integer k of a source of the small step, whose other sources have their extents.
static int64_t integer(const tn_step *step, char kind, int64_t k)
{
    const tn_view *s = step->src, *keys = &s[TN_SRC_attention_k];
    int64_t slots =
        s[TN_SRC_cache_write_cache].ne[0] * s[TN_SRC_cache_write_cache].ne[2]; // of rope_cache too
    switch (kind) {
    case 'P':
        return 17 * k + 5;
    case 'I':
        return (5 * k + 1) % s[TN_SRC_get_rows_table].ne[2];
    case 'E':
        return (3 * k + 1) % experts_of(step);
    case 'C': // a single token is the last one that attention sees
        if (step->op == TN_OP_rope_cache && s[TN_SRC_rope_cache_q].ne[1] == 1)
            return TN_MIN(slots, MAX_KEYS) - 1;
        return k + 1 < slots ? k + 1 : k == 0 ? 0 : -1;
    case 'T':
        return k == 0 ? 0 : tokens_of(step);
    case 'L':
        return TN_MIN(TN_MIN(keys->ne[0], s[TN_SRC_attention_block_table].ne[3]) * keys->ne[2], MAX_KEYS);
    case 'B':
        return k % keys->ne[0];
    default:
        return k == 0 ? 0 : last_slot(step); // 'R'
    }
}

// Numbers that lose nothing when 32 of them are quantised to int8 with a scale: whole multiples of a power of
// two, the largest 127. `same`: each 32 have the same power of two, for what is multiplied with them before.
static void fill_bytes(const tn_view *v, bool same, uint64_t *state)
{
    for (int64_t r = 0; r < tn_view_n_rows(v); r++)
        for (int64_t j = 0; j < v->ne[3]; j++) {
            double q = j % 32 == 5 ? 127.0 : (double)(draw(state) >> 8 & 255u) - 128.0;
            tn_view_set_row(v, r, j, same ? ldexp(1.0, (int)(j / 32 % 3) - 1) : fmax(q, -127.0) / 64.0);
        }
}

// Factors of rope, which have to be positive: what others give is not defined.
static void fill_factors(const tn_view *v, uint64_t *state)
{
    for (int64_t j = 0; j < v->ne[3]; j++)
        tn_view_set_row(v, 0, j, (double)((draw(state) >> 24) + 1u) / 64.0);
}

// The first row has every filter, edits and a mask, the second one has edits, the third one draws among all.
static void fill_sample_rows(const tn_view *v, uint64_t *state)
{
    for (int64_t r = 0; r < v->ne[2]; r++) {
        tn_sample_row p = {.kind = TN_SAMPLE_DRAW,
                           .filter_temperature = 0.7f,
                           .temperature = 0.8f,
                           .top_k = r == 0 ? 300 : 0,
                           .top_p = r == 2 ? 1.0f : 0.9f,
                           .min_p = r == 0 ? 0.05f : 0.0f,
                           .repeat_penalty = 1.1f,
                           .presence_penalty = 0.3f,
                           .frequency_penalty = 0.1f,
                           .n_edits = r == 2 ? 0 : CAP_ROWS,
                           .mask = r == 0 ? 0 : -1,
                           .random_low = draw(state),
                           .random_high = draw(state),
                           .n_top = TN_SAMPLE_TOP};
        memcpy((int32_t *)v->data + r * TN_SAMPLE_ROW_WORDS, &p, sizeof p);
    }
}

static void fill_sample_edits(const tn_view *v)
{
    for (int32_t i = 0; i < (int32_t)v->ne[2]; i++) {
        tn_sample_edit e = {.token = 3 * i + 1, .count = i % 3, .bias = (float)(i % 5) - 2.0f};
        memcpy((int32_t *)v->data + (size_t)i * TN_SAMPLE_EDIT_WORDS, &e, sizeof e);
    }
}

static void fill_bits(const tn_view *v, uint64_t *state)
{
    for (int64_t i = 0; i < v->ne[2] * v->ne[3]; i++) ((uint32_t *)v->data)[i] = draw(state) | 1u;
}

static void fill(const tn_step *step, const tn_view *v, char kind, uint64_t *state)
{
    if (kind == 'f')
        fill_numbers(v, state);
    else if (kind == 'F')
        fill_factors(v, state);
    else if (kind == 'O')
        fill_sample_rows(v, state);
    else if (kind == 'D')
        fill_sample_edits(v);
    else if (kind == 'M')
        fill_bits(v, state);
    else
        for (int64_t i = 0; i < v->ne[3] * v->ne[2] * v->ne[1] * v->ne[0]; i++)
            ((int32_t *)v->data)[i] = (int32_t)integer(step, kind, i);
}

// --- the small step -----------------------------------------------------------------------------------

// A step of the probe: operands on the host, results by the reference, and the same on the device.
typedef struct part {
    tn_step step, device;
    size_t src_at[TN_MAX_SRC], dst_at[TN_MAX_DST]; // in the memory of both
} part;

typedef struct probe {
    part folded, main; // the first one only where main does its work too
    bool folds;
    size_t size;
    char *host;
    tn_vk_memory memory;
} probe;

static size_t view_size(const tn_view *v)
{
    return v->ne[3] == 0 ? 0 : tn_dtype_row_size(v->dtype, v->ne[3]) * (size_t)tn_view_n_rows(v);
}

static size_t reserve(probe *p, const tn_view *v)
{
    size_t at = p->size;
    p->size += (view_size(v) + 255) / 256 * 256;
    return at;
}

// Sets shapes and offsets; false: no pattern tells how.
static bool shape(tn_context *ctx, const tn_step *step, bool stages, bool folds, probe *p, part *q)
{
    patterns pattern = {0};
    patterns_of(step, pattern);
    q->step = *step;
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_view *v = &q->step.src[i];
        if (v->ne[3] == 0) continue;
        if (!pattern[i]) return false;
        for (int32_t d = 0; d < TN_MAX_DIMS; d++) v->ne[d] = extent(pattern[i][d], v->ne[d], stages, folds);
        v->buffer = NULL;
        tn_view_set_contiguous(v);
        q->src_at[i] = reserve(p, v);
    }
    if (tn_op_info_get(step->op)->infer(ctx, &q->step) != TN_OK) return false;
    for (int32_t i = 0; i < q->step.n_dst; i++) {
        tn_view *v = &q->step.dst[i];
        bool aliased = tn_op_aliases(tn_op_info_get(step->op)->flags, i);
        if (!aliased) tn_view_set_contiguous(v);
        v->buffer = NULL;
        q->dst_at[i] = aliased ? q->src_at[i] : reserve(p, v);
    }
    return true;
}

// The same for a step and the one that it does too, whose results are among its sources.
static bool shape_all(tn_context *ctx, const tn_step *step, bool stages, probe *p)
{
    const tn_step *folded = tn_vk_folded_of(step);
    if (!shape(ctx, step, stages, p->folds, p, &p->main)) return false;
    if (!p->folds) return true;
    if (!shape(ctx, folded, stages, true, p, &p->folded)) return false;
    for (int32_t d = 0; d < folded->n_dst; d++)
        for (int32_t i = 0; i < step->n_src; i++)
            if (step->src[i].ne[3] > 0 && step->src[i].data == folded->dst[d].data)
                p->main.src_at[i] = p->folded.dst_at[d];
    return true;
}

static void load_part(const tn_step *step, const tn_vk_kernel *kernel, probe *p, part *q)
{
    patterns pattern = {0};
    patterns_of(step, pattern);
    q->device = q->step;
    uint64_t state = 0x9e3779b97f4a7c15u;
    char *mapped = p->memory.mapped;
    for (int32_t i = 0; i < step->n_src; i++) {
        tn_view *view = &q->step.src[i], *there = &q->device.src[i];
        if (view->ne[3] == 0) continue;
        view->data = p->host + q->src_at[i];
        bool norm = pattern[i][3] == 'k' && pattern[i][2] == '.';
        if (kernel->needs & TN_VK_INT8_DOT && (i == 0 || norm))
            fill_bytes(view, norm, &state);
        else
            fill(&q->step, view, pattern[i][4], &state);
        there->data = (void *)(uintptr_t)(p->memory.address + q->src_at[i]);
        if (tn_op_takes_weights(step->op))
            tn_vk_weight_sort(there, view->data, mapped + q->src_at[i]);
        else
            memcpy(mapped + q->src_at[i], view->data, view_size(view));
    }
    for (int32_t i = 0; i < q->step.n_dst; i++) {
        q->step.dst[i].data = p->host + q->dst_at[i];
        q->device.dst[i].data = (void *)(uintptr_t)(p->memory.address + q->dst_at[i]);
    }
}

static tn_status load(tn_vk *v, const tn_step *step, const tn_vk_kernel *kernel, probe *p)
{
    p->host = tn_calloc(v->device->ctx, p->size, 1);
    tn_status status = p->host ? tn_vk_memory_create(v, p->size, true, &p->memory) : TN_ERR_MEMORY;
    if (status != TN_OK) return status;
    load_part(step, kernel, p, &p->main);
    if (p->folds) load_part(tn_vk_folded_of(step), kernel, p, &p->folded);
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
    size_t needed = tn_vk_scratch_of(v, step, like, k, &counters),
           lists = TN_VK_MAX_DISPATCHES * sizeof *records;
    tn_status status = TN_ERR_MEMORY;
    if (e) e->runs = tn_calloc(v->device->ctx, TN_VK_MAX_DISPATCHES, sizeof *e->runs);
    if (e && e->runs && records)
        status = tn_vk_memory_create(v, lists + (size_t)counters * sizeof(uint32_t) + TN_VK_NEXT_RECORDS,
                                     true, &e->args);
    if (status == TN_OK) {
        e->n_steps = 1;
        e->counters = e->args.address + lists;
        size_t own = tn_vk_align_scratch(needed),
               size = own + (stages ? tn_vk_staged_size(v->device, step) : 0);
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

static double rows_error(const tn_view *got, const tn_view *reference)
{
    double error = 0.0, power = 0.0;
    int64_t n = reference->ne[3], rows = tn_view_n_rows(reference);
    bool blocks = tn_dtype_block_elems(reference->dtype) > 1;
    float a[256], b[256];
    size_t piece = blocks ? tn_dtype_block_size(reference->dtype) : 0;
    int64_t step = blocks ? tn_dtype_block_elems(reference->dtype) : 1;
    for (int64_t i = 0; i < rows * n; i += step) {
        double x[2];
        if (blocks) {
            size_t at = (size_t)(i / step) * piece;
            tn_quant_info_get(reference->dtype)->to_f32((const char *)got->data + at, a, step);
            tn_quant_info_get(reference->dtype)->to_f32((const char *)reference->data + at, b, step);
        } else {
            x[0] = tn_view_get_row(got, i / n, i % n);
            x[1] = tn_view_get_row(reference, i / n, i % n);
        }
        for (int64_t j = 0; j < step; j++) {
            double g = blocks ? (double)a[j] : x[0], w = blocks ? (double)b[j] : x[1];
            if (isnan(w) || g == w) continue; // of what has no value, drivers may make anything
            error += (g - w) * (g - w);
            power += w * w;
        }
    }
    return error == 0.0 ? 0.0 : error / fmax(power, 1e-30); // NaN where the reference has numbers: NaN
}

// Compares the results of a step, or only those that are states.
static bool agrees(const probe *p, const part *q, bool states, double *worst)
{
    for (int32_t i = 0; i < q->step.n_dst; i++) {
        const tn_view *reference = &q->step.dst[i];
        tn_view got = *reference;
        if (states && !tn_op_aliases(tn_op_info_get(q->step.op)->flags, i)) continue;
        got.data = (char *)p->memory.mapped + q->dst_at[i];
        bool exact = reference->dtype == TN_TYPE_I32, blocks = tn_dtype_block_elems(reference->dtype) > 1;
        double e = rows_error(&got, reference);
        if (!(e <= *worst)) *worst = e;
        if (!(e <= (exact ? 0.0 : blocks ? BLOCK_NMSE : FLOAT_NMSE))) return false;
    }
    return true;
}

tn_status tn_vk_probe(tn_vk *v, const tn_step *step, const tn_vk_kernel *kernel, bool stages,
                      tn_vk_verdict *verdict, double *error)
{
    probe p = {.folds = tn_vk_folds(v, step, kernel)};
    *verdict = TN_VK_UNKNOWN;
    *error = 0.0;
    if (!shape_all(v->device->ctx, step, stages, &p) || !kernel->accepts(&p.main.step)) return TN_OK;
    tn_status status = load(v, step, kernel, &p);
    tn_step device[2] = {p.folded.device, p.main.device};
    if (status == TN_OK) status = run_once(v, &device[1], step, kernel, stages);
    if (status == TN_ERR_UNSUPPORTED) {
        status = TN_OK;
    } else if (status == TN_OK) {
        if (p.folds) tn_op_info_get(p.folded.step.op)->ref(&p.folded.step);
        tn_op_info_get(step->op)->ref(&p.main.step);
        bool good = agrees(&p, &p.main, false, error) && (!p.folds || agrees(&p, &p.folded, true, error));
        *verdict = good ? TN_VK_GOOD : TN_VK_BAD;
    }
    tn_vk_memory_destroy(v, &p.memory);
    tn_free(v->device->ctx, p.host);
    return status;
}
