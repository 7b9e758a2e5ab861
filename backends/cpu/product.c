// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Driver of all matrix products: matmul, linear, matmul_multi, matmul_glu, matmul_id, matmul_id_glu.
//
//   x [.., m, k] f32, w [n, k] of any type -> y [.., m, n] f32, y = x w^T, then the op's epilogue
//   id: x [T, U or 1, k], w [n_expert, n, k], ids [T, U] i32 -> y [T, U, n]; an id out of range gives zeros
//
// 1. The parts of the first phase quantise or copy the rows of x into records, once per activation format.
// The
//    first one lists the work: groups (one weight, or gate and up of one product, or one expert with the rows
//    routed to it), which are cut into items.
// 2. The parts of the second phase fetch items from a counter until none is left. An item is a range of rows
//    of w against a range of rows of x, so no result depends on which thread computes it.
// job_init lays out the scratch. What is read, computed and reached per type: README.md.
#include "backends/cpu/product.h"

#include "backends/cpu/accepts.h"
#include "ops/product.h"
#include "ops/quant.h"

#include <string.h>

enum {
    TILES_MIN_X = 64, // rows of x from which on AMX is faster than int8 dot products (docs/log/cpu.md)
    TILE_X = 512,     // most rows of x per tile item: its sums take 64 KiB and stay in L2
    ROWS_CHUNK_SIZE = 256 << 10, // bytes of w per rows item: 96 and 512 KiB read 5 % slower with two threads
    ROWS_CHUNK_MAX = 512,        // rows
    QUANTISE_SEGMENT = 2048,     // elements of a row that one thread quantises at a time
    ITEMS_TILES = 2,             // for each thread, where items of several tiles are made smaller for that
    ROWS_AHEAD = 8,              // results are fetched so long before: their pages are far apart
    PART_SIZE = 16 << 10,        // bytes of w that are worth a thread of their own: a microsecond or two
    ALIGN = 64,
};

// Rows [x_first, x_first + n_x) of the order (or of x itself) against weight w of one expert.
typedef struct group {
    int64_t expert, x_first, n_x, items_first, n_x_blocks;
    int64_t chunk, fine_from; // rows of w of an item; from that row on items have those of one tile
    int32_t w;
} group;

typedef struct shared_state {
    int64_t n_items, n_groups;
} shared_state;

typedef struct activations {
    const tn_matmul_format *format; // NULL: f32
    tn_matmul_layout layout;
    uint8_t *records;
} activations;

// The scratch of one thread.
typedef struct local_layout {
    size_t q, q_size, spare, scale, min, acc, x, size;
} local_layout;

typedef struct job {
    const tn_cpu_task *task;
    const tn_matmul_isa *isa;
    tn_product in;
    const tn_matmul_kernel *kernel[TN_PRODUCT_MAX_WEIGHTS];
    int32_t act[TN_PRODUCT_MAX_WEIGHTS]; // index into acts
    activations acts[TN_PRODUCT_MAX_WEIGHTS];
    int32_t n_acts, n_slots; // n_slots: results per row of ids, 1 without
    bool x_per_slot;         // id: every slot has its own row of x
    bool rows_mode;
    int64_t n_x, n_pairs, n_experts;
    shared_state *shared;
    group *groups;
    int32_t *order;  // id: pairs by expert
    int32_t n_tiles; // most tiles of an item
    uint8_t *local;  // this thread's part of scratch
    local_layout at; // in it
} job;

// tn_view_row without its divisions where one stride leads through all rows.
static void *row_at(const tn_view *v, int64_t r)
{
    if (v->ne[0] * v->ne[1] == 1) return (char *)v->data + r * v->nb[2];
    return tn_view_row(v, r);
}

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static local_layout local_layout_get(int32_t n_tiles)
{
    local_layout l = {0};
    size_t subs = (size_t)TN_MATMUL_TILE_SUBS * TN_MATMUL_TILE_ROWS * sizeof(float);
    l.q_size = n_tiles > 1 ? TN_MATMUL_LONG_K * TN_MATMUL_TILE_ROWS * 2 : TN_MATMUL_TILE_SIZE;
    l.spare = l.q + (size_t)n_tiles * l.q_size;
    l.scale = l.spare + (n_tiles > 1 ? l.q_size : 0);
    l.min = l.scale + subs;
    l.acc = l.min + subs;
    l.x = l.acc + (size_t)TN_MAX(n_tiles, 2) * TILE_X * TN_MATMUL_TILE_ROWS * sizeof(float);
    l.size = l.x + TILE_X * sizeof(uint8_t *);
    return l;
}

// Whether a kernel may round activations to that format.
static bool may_round(int32_t precision, const tn_matmul_format *f)
{
    bool bf16 = precision == TN_PRECISION_bf16 && f && (f->is_bf16 || f->is_split);
    return !f || bf16 || precision == TN_PRECISION_auto || precision == TN_PRECISION_int8;
}

// A kernel that leaves activations as they are where the step asks for it.
static const tn_matmul_kernel *kernel_get(const tn_matmul_isa *isa, tn_dtype type, int32_t precision)
{
    for (const tn_matmul_isa *i = isa; i; i = i->below)
        if (i->kernels[type] && may_round(precision, i->kernels[type]->tile_format)) return i->kernels[type];
    while (!isa->any) isa = isa->below;
    return isa->any;
}

bool tn_matmul_quantises(tn_dtype weight_type)
{
    return kernel_get(&tn_matmul_isa_generic, weight_type, TN_PRECISION_auto)->tile_format != NULL;
}

static bool step_quantises(const tn_step *step, tn_dtype weight_type)
{
    return kernel_get(&tn_matmul_isa_generic, weight_type, step->precision)->tile_format != NULL;
}

static bool step_leaves(const tn_step *step, tn_dtype weight_type)
{
    return !step_quantises(step, weight_type);
}

static bool has_tiles(const tn_step *step, tn_dtype weight_type)
{
    static const tn_matmul_format bf16 = {.is_bf16 = true};
    return may_round(step->precision, &bf16) &&
           (weight_type == TN_TYPE_BF16 || tn_matmul_quantises(weight_type));
}

static bool accepts(const tn_step *step, bool (*accepts_type)(const tn_step *, tn_dtype))
{
    tn_product o = tn_product_get(step);
    // A step of its own for the norm costs one more pass over x, which does not matter beside the weights.
    if (o.n_weights == 0 || o.norm) return false;
    const tn_view *x = o.x;
    bool ok = x->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(x);
    for (int32_t i = 0; i < o.n_weights; i++) {
        const tn_view *w = o.w[i], *y = o.y[i];
        ok = ok && tn_quant_info_get(w->dtype)->to_f32 != NULL && tn_view_rows_contiguous(w) && w->ne[0] == 1;
        ok = ok && (o.ids != NULL || w->ne[1] == 1) && w->ne[3] == x->ne[3] && w->ne[2] == y->ne[3];
        ok = ok && y->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(y) && accepts_type(step, w->dtype);
        if (o.bias[i]) ok = ok && o.bias[i]->dtype == TN_TYPE_F32 && tn_view_contiguous(o.bias[i]);
    }
    if (o.residual) ok = ok && o.residual->dtype == TN_TYPE_F32 && tn_view_rows_contiguous(o.residual);
    if (o.ids) ok = ok && o.ids->dtype == TN_TYPE_I32 && tn_view_rows_contiguous(o.ids);
    return ok;
}

bool tn_matmul_accepts_plain(const tn_step *step)
{
    return accepts(step, step_leaves);
}

bool tn_matmul_accepts_quantising(const tn_step *step)
{
    return accepts(step, step_quantises);
}

// Rows of x for each expert, on average.
static int64_t mean_rows(const tn_product *o)
{
    return (o->m + o->n_experts - 1) / TN_MAX(o->n_experts, 1);
}

bool tn_matmul_accepts_tiles(const tn_step *step)
{
    if (!accepts(step, has_tiles)) return false;
    tn_product o = tn_product_get(step);
    bool quantises = false;
    for (int32_t i = 0; i < o.n_weights; i++) quantises = quantises || step_quantises(step, o.w[i]->dtype);
    return mean_rows(&o) >= (quantises ? TILES_MIN_X : TN_MATMUL_ROWS_ALIKE + 1);
}

static tn_matmul_layout record_layout(const tn_matmul_format *f, int64_t k)
{
    tn_matmul_layout l = {.k = k};
    if (f && f->is_bf16) {
        l.k_pad = (k + TN_MATMUL_GROUP - 1) / TN_MATMUL_GROUP * TN_MATMUL_GROUP;
        l.size = (size_t)l.k_pad * 2;
        return l;
    }
    if (!f ||
        f->is_split) { // one cache line more than the row: rows of 2^n floats would share few cache sets
        l.k_pad = (k + 15) / 16 * 16;
        l.size = (size_t)l.k_pad * sizeof(float) + ALIGN;
        return l;
    }
    l.k_pad = (k + TN_MATMUL_GROUP - 1) / TN_MATMUL_GROUP * TN_MATMUL_GROUP;
    size_t n = (size_t)l.k_pad, subs = n / (size_t)f->sub * sizeof(float);
    l.d_off = n;
    l.sum_off = align_up(l.d_off + (f->subs ? n / 16 * sizeof(float) : subs));
    l.init_off = align_up(l.sum_off + subs);
    l.size = align_up(l.init_off + (f->lanes ? n / (size_t)f->chain : subs));
    return l;
}

// Of n_x records. Tile registers read 16 rows from any record on, so that much follows the last block.
static size_t records_size(const tn_matmul_format *f, const tn_matmul_layout *l, int64_t n_x)
{
    if (!f || !f->is_bf16) return (size_t)n_x * l->size;
    int64_t n = (n_x + TN_MATMUL_BLOCK_X - 1) / TN_MATMUL_BLOCK_X * TN_MATMUL_BLOCK_X;
    return (size_t)n * l->size + (size_t)TN_MATMUL_BLOCK_X * ALIGN;
}

static uint8_t *record_get(const activations *a, int64_t r)
{
    if (!a->format || !a->format->is_bf16) return a->records + (size_t)r * a->layout.size;
    size_t in_block = (size_t)(r % TN_MATMUL_BLOCK_X);
    return a->records + ((size_t)r - in_block) * a->layout.size + in_block * ALIGN;
}

static size_t scratch_head(const tn_product *o, int64_t n_pairs)
{
    size_t n_groups = o->ids ? (size_t)o->n_experts : TN_PRODUCT_MAX_WEIGHTS;
    size_t size = align_up(sizeof(shared_state)) + align_up(n_groups * sizeof(group));
    return size + (o->ids ? align_up((size_t)n_pairs * sizeof(int32_t)) : 0);
}

size_t tn_matmul_scratch(const tn_step *step, int32_t n_threads)
{
    tn_product o = tn_product_get(step);
    // The largest record of any ISA: sub-blocks of 16, one init per 4 elements.
    static const tn_matmul_format widest = {.sub = 16, .lanes = 16, .chain = 1};
    size_t record = record_layout(step_quantises(step, o.w[0]->dtype) ? &widest : NULL, o.x->ne[3]).size;
    size_t n_acts = 1;
    for (int32_t i = 1; i < o.n_weights; i++) n_acts += o.w[i]->dtype != o.w[0]->dtype;
    return scratch_head(&o, o.m) + n_acts * (size_t)tn_view_n_rows(o.x) * record +
           (size_t)n_threads * local_layout_get(1).size;
}

size_t tn_matmul_scratch_tiles(const tn_step *step, int32_t n_threads)
{
    static const tn_matmul_format bf16 = {.is_bf16 = true};
    tn_product o = tn_product_get(step);
    tn_matmul_layout l = record_layout(&bf16, o.x->ne[3]);
    return scratch_head(&o, o.m) + records_size(&bf16, &l, tn_view_n_rows(o.x)) +
           (size_t)n_threads * local_layout_get(TN_MATMUL_TILES).size;
}

static void job_init(job *j, const tn_cpu_task *task, const tn_matmul_isa *isa)
{
    *j = (job){.task = task, .isa = isa, .in = tn_product_get(task->step), .n_slots = 1, .n_tiles = 1};
    const tn_product *o = &j->in;
    j->n_x = tn_view_n_rows(o->x);
    j->n_pairs = o->m;
    j->n_experts = o->n_experts;
    if (o->ids) {
        j->n_slots = (int32_t)o->ids->ne[3];
        j->x_per_slot = o->x->ne[2] != 1 || j->n_slots == 1;
    }
    int64_t mean = mean_rows(o);
    j->rows_mode = true;
    for (int32_t i = 0; i < o->n_weights; i++) {
        j->kernel[i] = kernel_get(isa, o->w[i]->dtype, task->step->precision);
        j->rows_mode =
            j->rows_mode && j->kernel[i]->rows != NULL && (task->alike || mean <= j->kernel[i]->rows_x_max);
        j->n_tiles = TN_MAX(j->n_tiles, j->kernel[i]->n_tiles);
    }
    j->at = local_layout_get(j->n_tiles);
    uint8_t *at = task->scratch;
    j->shared = (shared_state *)(void *)at;
    j->groups = (group *)(void *)(at + align_up(sizeof(shared_state)));
    j->order = (int32_t *)(void *)(at + scratch_head(o, 0));
    at += scratch_head(o, j->n_pairs);
    for (int32_t i = 0; i < o->n_weights; i++) {
        const tn_matmul_format *f = j->rows_mode ? j->kernel[i]->rows_format : j->kernel[i]->tile_format;
        int32_t a = 0;
        while (a < j->n_acts && j->acts[a].format != f) a++;
        j->act[i] = a;
        if (a < j->n_acts) continue;
        j->acts[a] = (activations){.format = f, .layout = record_layout(f, o->x->ne[3]), .records = at};
        at += records_size(f, &j->acts[a].layout, j->n_x);
        j->n_acts++;
    }
    j->local = at + (size_t)task->thread * j->at.size;
}

static void fill_records(const job *j, const activations *a)
{
    const tn_matmul_layout *l = &a->layout;
    int64_t n_seg = (l->k_pad + QUANTISE_SEGMENT - 1) / QUANTISE_SEGMENT, first, last;
    const tn_matmul_isa *isa = j->isa;
    while (!isa->quantise) isa = isa->below;
    tn_cpu_split(j->n_x * n_seg, 1, j->task->ith, j->task->nth, &first, &last);
    for (int64_t i = first; i < last; i++) {
        int64_t r = i / n_seg, k0 = i % n_seg * QUANTISE_SEGMENT,
                k1 = TN_MIN(k0 + QUANTISE_SEGMENT, l->k_pad);
        const float *x = tn_view_row(j->in.x, r);
        uint8_t *rec = record_get(a, r);
        if (a->format) {
            isa->quantise(a->format, l, x, rec, k0, k1);
            continue;
        }
        float *to = (float *)(void *)rec;
        int64_t n = TN_MIN(k1, l->k) - k0;
        memcpy(to + k0, x + k0, (size_t)n * sizeof(float));
        memset(to + k0 + n, 0, (size_t)(k1 - k0 - n) * sizeof(float));
    }
}

// Rows of w of an item of the rows kernels.
static int64_t rows_chunk(const job *j, const tn_view *v)
{
    int64_t row_size = (int64_t)tn_dtype_row_size(v->dtype, v->ne[3]) * (j->in.glu ? 2 : 1);
    int64_t fit = ROWS_CHUNK_SIZE / TN_MAX(row_size, 1), share = v->ne[2] / (j->task->width * 4);
    int64_t n = TN_MIN(TN_MIN(fit, share), ROWS_CHUNK_MAX) / 16 * 16;
    return TN_MAX(n, 16);
}

// Rows of w of an item of the tile kernels: as many as are multiplied at once, if each thread gets two items.
static int64_t tiles_chunk(const job *j, int64_t all_rows)
{
    int64_t rows = (int64_t)j->n_tiles * TN_MATMUL_TILE_ROWS;
    if (j->n_tiles > 1 && j->in.glu) rows /= 2; // gate and up together
    while (rows > TN_MATMUL_TILE_ROWS && all_rows < rows * ITEMS_TILES * j->task->width) rows /= 2;
    return rows;
}

static void group_cut(const job *j, group *g, int64_t rows_after)
{
    int64_t n_rows = j->in.w[g->w]->ne[2], n_groups = j->shared->n_groups;
    g->chunk = j->rows_mode ? rows_chunk(j, j->in.w[g->w]) : tiles_chunk(j, n_rows * n_groups);
    g->fine_from = n_rows;
    if (j->rows_mode) {
        g->n_x_blocks = g->n_x > 0;
        return;
    }
    // The last items, a round of all threads, are smaller, so that all end at about the same time.
    if (!j->in.ids && g->chunk > TN_MATMUL_TILE_ROWS && j->task->width > 1) {
        int64_t fine = TN_MAX(g->chunk * j->task->width - rows_after, 0);
        g->fine_from = TN_MAX(n_rows - fine, 0) / g->chunk * g->chunk;
    }
    int64_t most = j->task->width * 4, n = (n_rows + g->chunk - 1) / g->chunk;
    if (j->n_tiles > 1) most = j->task->width * ITEMS_TILES;
    g->n_x_blocks = (g->n_x + TILE_X - 1) / TILE_X;
    while (n * g->n_x_blocks * n_groups < most && g->n_x > 48 * g->n_x_blocks) g->n_x_blocks *= 2;
}

static void groups_cut(const job *j)
{
    int64_t items = 0, rows_after = 0;
    for (int64_t i = 0; i < j->shared->n_groups; i++) rows_after += j->in.w[j->groups[i].w]->ne[2];
    for (int64_t i = 0; i < j->shared->n_groups; i++) {
        group *g = &j->groups[i];
        int64_t n_rows = j->in.w[g->w]->ne[2];
        rows_after -= n_rows;
        group_cut(j, g, rows_after);
        int64_t fine = n_rows - g->fine_from, coarse = (g->fine_from + g->chunk - 1) / g->chunk;
        g->items_first = items;
        items += (coarse + (fine + TN_MATMUL_TILE_ROWS - 1) / TN_MATMUL_TILE_ROWS) * g->n_x_blocks;
    }
    j->shared->n_items = items;
}

static int64_t expert_of(const job *j, int64_t pair)
{
    int64_t id = ((const int32_t *)tn_view_row(j->in.ids, pair / j->n_slots))[pair % j->n_slots];
    return id >= 0 && id < j->n_experts ? id : -1;
}

// Sorts the pairs by expert; a group per expert, in the order of experts.
static void groups_by_expert(const job *j)
{
    const tn_view *y = j->in.y[0];
    for (int64_t e = 0; e < j->n_experts; e++) j->groups[e] = (group){.expert = e};
    for (int64_t p = 0; p < j->n_pairs; p++) {
        int64_t e = expert_of(j, p);
        if (e >= 0)
            j->groups[e].n_x++;
        else
            memset(tn_view_row(y, p), 0, (size_t)y->ne[3] * sizeof(float));
    }
    for (int64_t e = 1; e < j->n_experts; e++)
        j->groups[e].x_first = j->groups[e - 1].x_first + j->groups[e - 1].n_x;
    for (int64_t p = 0; p < j->n_pairs; p++) {
        int64_t e = expert_of(j, p);
        if (e >= 0) j->order[j->groups[e].x_first++] = (int32_t)p;
    }
    for (int64_t e = 0; e < j->n_experts; e++) j->groups[e].x_first -= j->groups[e].n_x;
    j->shared->n_groups = j->n_experts;
}

static void groups_list(const job *j)
{
    if (j->in.ids) {
        groups_by_expert(j);
    } else {
        j->shared->n_groups = j->in.glu ? 1 : j->in.n_weights;
        for (int32_t i = 0; i < j->shared->n_groups; i++) j->groups[i] = (group){.n_x = j->n_x, .w = i};
    }
    groups_cut(j);
}

// The i-th row of a group, as a row of y.
static int64_t pair_of(const job *j, const group *g, int64_t i)
{
    return j->in.ids ? j->order[g->x_first + i] : i;
}

static void records_list(const job *j, const group *g, int32_t w, int64_t x0, int64_t n, const uint8_t **list)
{
    const activations *a = &j->acts[j->act[w]];
    for (int64_t i = 0; i < n; i++) {
        int64_t p = pair_of(j, g, x0 + i), r = j->x_per_slot ? p : p / j->n_slots;
        list[i] = record_get(a, r);
    }
}

static const uint8_t *weight_row(const job *j, const group *g, int32_t w, int64_t r)
{
    const tn_view *v = j->in.w[w];
    return (const uint8_t *)v->data + g->expert * v->nb[1] + r * v->nb[2];
}

// Rows [r0, r0 + n) of w against rows [x0, x0 + n_x) of a group.
typedef struct range {
    int64_t r0, n, x0, n_x;
} range;

void tn_matmul_finish(const tn_matmul_place *at, float *v, const float *u)
{
    int64_t r0 = at->r0, n = at->n, pair = at->row;
    int32_t w = at->w;
    const tn_product *o = at->product;
    const tn_matmul_isa *isa = at->isa;
    while (!isa->act) isa = isa->below;
    float *y = (float *)row_at(o->y[w], pair) + r0;
    int64_t n16 = (n + 15) / 16 * 16;
    if (o->bias[w]) {
        const float *bias = (const float *)o->bias[w]->data + r0;
        for (int64_t i = 0; i < n; i++) v[i] += bias[i];
    }
    if (o->act != TN_UNARY_NONE) isa->act(o->act, v, n16);
    if (o->glu) isa->glu(o->glu, v, u, n16);
    if (o->residual) {
        const float *residual = (const float *)row_at(o->residual, pair) + r0;
        for (int64_t i = 0; i < n; i++) v[i] += residual[i];
    }
    memcpy(y, v, (size_t)n * sizeof(float));
}

// The epilogue of the rows of r against row `pair` of y.
static void finish(const job *j, int32_t w, int64_t pair, const range *r, float *v, const float *u)
{
    tn_matmul_place at = {.product = &j->in, .isa = j->isa, .w = w, .row = pair, .r0 = r->r0, .n = r->n};
    tn_matmul_finish(&at, v, u);
}

static void rows_item(const job *j, const group *g, const range *r)
{
    float *out[2];
    out[0] = (float *)(void *)(j->local + j->at.acc);
    out[1] = out[0] + TN_MATMUL_ROWS_X * ROWS_CHUNK_MAX;
    int64_t step = j->kernel[g->w]->rows_x;
    if (j->in.glu) step = TN_MIN(step, j->kernel[g->w + 1]->rows_x);
    for (int64_t x0 = 0; x0 < r->n_x; x0 += step) {
        int64_t n_x = TN_MIN(r->n_x - x0, step);
        const uint8_t *records[TN_MATMUL_ROWS_X];
        for (int32_t i = 0; i < (j->in.glu ? 2 : 1); i++) {
            int32_t w = g->w + i;
            records_list(j, g, w, x0, n_x, records);
            tn_matmul_rows_args a = {.w = weight_row(j, g, w, r->r0),
                                     .w_stride = j->in.w[w]->nb[2],
                                     .n_rows = r->n,
                                     .layout = &j->acts[j->act[w]].layout,
                                     .x = records,
                                     .n_x = n_x,
                                     .y = out[i],
                                     .y_stride = ROWS_CHUNK_MAX};
            j->kernel[w]->rows(&a);
        }
        for (int64_t t = 0; t < n_x; t++)
            finish(j, g->w, pair_of(j, g, x0 + t), r, out[0] + t * ROWS_CHUNK_MAX,
                   out[1] + t * ROWS_CHUNK_MAX);
    }
}

// Floats of the sums of one tile of a kernel.
static int64_t acc_size(const range *r, int64_t tile_rows)
{
    return (r->n_x + TN_MATMUL_BLOCK_X - 1) / TN_MATMUL_BLOCK_X * TN_MATMUL_BLOCK_X * tile_rows;
}

// Tiles that are multiplied at once, and whose kernel packs each.
typedef struct tile_set {
    tn_matmul_tile tiles[TN_MATMUL_TILES];
    const tn_matmul_kernel *kernel[TN_MATMUL_TILES];
    int32_t n;
} tile_set;

// Adds the tile of up to n rows of w from r on.
static void tile_add(const job *j, const group *g, int32_t w, int64_t r, int64_t n, tile_set *s)
{
    s->kernel[s->n] = j->kernel[w];
    s->tiles[s->n] = (tn_matmul_tile){.w = weight_row(j, g, w, r),
                                      .w_stride = j->in.w[w]->nb[2],
                                      .n_rows = TN_MIN(n, j->kernel[w]->tile_rows),
                                      .type = j->in.w[w]->dtype,
                                      .q = j->local + j->at.q + (size_t)s->n * j->at.q_size,
                                      .scale = (float *)(void *)(j->local + j->at.scale),
                                      .min = (float *)(void *)(j->local + j->at.min),
                                      .spare = j->local + j->at.spare};
    s->n++;
}

// Fetches what pack reads of w from k0 on: pieces of rows, too short for the core to look ahead by itself.
static void tile_prefetch(const tn_matmul_tile *t, const tn_matmul_layout *l, int64_t k0, int64_t n)
{
    if (k0 >= l->k) return;
    size_t from = tn_dtype_row_size(t->type, k0), size = tn_dtype_row_size(t->type, TN_MIN(n, l->k - k0));
    for (int64_t r = 0; r < t->n_rows; r++)
        for (size_t i = 0; i < size; i += ALIGN) TN_PREFETCH_L2(t->w + r * t->w_stride + from + i);
}

// Sums of all rows of x with the tiles.
static void tiles_multiply(tile_set *s, tn_matmul_tile_args *a)
{
    const tn_matmul_layout *l = a->layout;
    int64_t step = s->kernel[0]->tile_k;
    a->tile = s->tiles;
    a->n_tiles = s->n;
    tile_prefetch(&s->tiles[0], l, 0, step);
    for (int64_t k = 0; k < l->k_pad; k += step) {
        for (int32_t i = 0; i < s->n; i++) {
            bool last = i + 1 == s->n;
            tile_prefetch(&s->tiles[last ? 0 : i + 1], l, last ? k + step : k, step);
            s->tiles[i].k0 = k;
            s->tiles[i].n_k = TN_MIN(l->k_pad - k, step);
            s->kernel[i]->pack(&s->tiles[i], l);
        }
        a->first = k == 0;
        s->kernel[0]->tile(a);
    }
    if (l->k_pad == 0) memset(a->acc, 0, (size_t)(s->n * a->acc_size) * sizeof(float));
}

// acc[i], for weight w + i of the group: [tile rows / kernel's tile_rows][n_x, see acc_size][kernel's
// tile_rows]. Weights whose kernels take several tiles share the format of x, so gate and up are multiplied
// at once.
static void tile_products(const job *j, const group *g, const range *at, int32_t n_w, float **acc)
{
    const uint8_t **records = (const uint8_t **)(void *)(j->local + j->at.x);
    float *to = (float *)(void *)(j->local + j->at.acc);
    tn_matmul_tile_args a = {.x = records, .n_x = at->n_x};
    tile_set s = {.n = 0};
    for (int32_t i = 0; i < n_w; i++) {
        int32_t w = g->w + i;
        int64_t tile_rows = j->kernel[w]->tile_rows;
        a.layout = &j->acts[j->act[w]].layout;
        a.acc_size = acc_size(at, tile_rows);
        acc[i] = to;
        records_list(j, g, w, at->x0, at->n_x, records);
        for (int64_t r = 0; r < at->n; r += tile_rows, to += a.acc_size) {
            if (s.n == 0) a.acc = to;
            tile_add(j, g, w, at->r0 + r, at->n - r, &s);
            bool last = i + 1 == n_w && r + tile_rows >= at->n;
            if (s.n < j->n_tiles && !last) continue;
            tiles_multiply(&s, &a);
            s.n = 0;
        }
    }
}

// The sums of row t of x, as one run of n.
static void tile_values(const float *acc, int64_t tile_rows, const range *r, int64_t t, int64_t n, float *v)
{
    for (int64_t i = 0; i < n; i += tile_rows)
        memcpy(v + i, acc + i / tile_rows * acc_size(r, tile_rows) + t * tile_rows,
               (size_t)TN_MIN(n - i, tile_rows) * sizeof(float));
}

// Without an epilogue sums go straight to y.
static bool is_plain(const job *j, int32_t w)
{
    return !j->in.bias[w] && j->in.act == TN_UNARY_NONE && !j->in.glu && !j->in.residual;
}

// Fetches where row t of x has its results, and what is added to them.
static void results_prefetch(const job *j, const group *g, const range *r, int64_t t)
{
    if (t >= r->n_x) return;
    int64_t pair = pair_of(j, g, r->x0 + t);
    const float *y = (const float *)row_at(j->in.y[g->w], pair) + r->r0, *residual = NULL;
    if (j->in.residual) residual = (const float *)row_at(j->in.residual, pair) + r->r0;
    for (int64_t i = 0; i < r->n; i += ALIGN / (int64_t)sizeof(float)) {
        TN_PREFETCH(y + i);
        if (residual) TN_PREFETCH(residual + i);
    }
}

static void tile_item(const job *j, const group *g, const range *r)
{
    float *acc[2], v[2][TN_MATMUL_TILES * TN_MATMUL_TILE_ROWS] TN_ALIGNED(64) = {{0}};
    int32_t n_acc = j->in.glu ? 2 : 1;
    int64_t n16 = (r->n + 15) / 16 * 16;
    tile_products(j, g, r, n_acc, acc);
    bool direct = is_plain(j, g->w);
    for (int64_t t = 0; t < ROWS_AHEAD; t++) results_prefetch(j, g, r, t);
    for (int64_t t = 0; t < r->n_x; t++) {
        int64_t pair = pair_of(j, g, r->x0 + t);
        results_prefetch(j, g, r, t + ROWS_AHEAD);
        if (direct) {
            float *y = (float *)row_at(j->in.y[g->w], pair) + r->r0;
            tile_values(acc[0], j->kernel[g->w]->tile_rows, r, t, r->n, y);
            continue;
        }
        for (int32_t i = 0; i < n_acc; i++)
            tile_values(acc[i], j->kernel[g->w + i]->tile_rows, r, t, n16, v[i]);
        finish(j, g->w, pair, r, v[0], v[1]);
    }
}

static void run_item(const job *j, int64_t item)
{
    int64_t lo = 0, hi = j->shared->n_groups - 1; // the last group whose items start at or before it
    while (lo < hi) {
        int64_t mid = (lo + hi + 1) / 2;
        if (j->groups[mid].items_first <= item)
            lo = mid;
        else
            hi = mid - 1;
    }
    const group *g = &j->groups[lo];
    int64_t at = item - g->items_first, block = at % g->n_x_blocks, n_rows = j->in.w[g->w]->ne[2];
    range r = {.r0 = at / g->n_x_blocks * g->chunk, .n = g->chunk};
    if (r.r0 >= g->fine_from) {
        r.n = TN_MATMUL_TILE_ROWS;
        r.r0 = g->fine_from + (at / g->n_x_blocks - g->fine_from / g->chunk) * r.n;
    }
    r.n = TN_MIN(r.n, n_rows - r.r0);
    int64_t end;
    tn_cpu_split(g->n_x, j->rows_mode ? 1 : 2 * TN_MATMUL_BLOCK_X, (int32_t)block, (int32_t)g->n_x_blocks,
                 &r.x0, &end);
    r.n_x = end - r.x0;
    if (j->rows_mode)
        rows_item(j, g, &r);
    else
        tile_item(j, g, &r);
}

void tn_matmul_run(const tn_cpu_task *task, const tn_matmul_isa *isa)
{
    job j;
    if (task->phase == 1) {
        int64_t n_items = ((const shared_state *)task->scratch)->n_items, item = tn_cpu_next_item(task);
        if (item >= n_items) return; // the other parts have done everything
        job_init(&j, task, isa);
        for (; item < n_items && !tn_cpu_stopped(task); item = tn_cpu_next_item(task)) run_item(&j, item);
        return;
    }
    job_init(&j, task, isa);
    if (task->ith == 0) groups_list(&j);
    for (int32_t i = 0; i < j.n_acts; i++) fill_records(&j, &j.acts[i]);
}

// Bytes of w that the step reads, once for each tile of x.
static int64_t weights_size(const tn_product *o)
{
    int64_t size = 0;
    for (int32_t i = 0; i < o->n_weights; i++) {
        const tn_view *w = o->w[i];
        size += (int64_t)tn_dtype_row_size(w->dtype, w->ne[3]) * w->ne[2];
    }
    return size * (o->ids ? TN_MIN(o->m, o->n_experts) : 1) * (1 + o->m / TN_MATMUL_ROWS_X);
}

int32_t tn_matmul_parts(const tn_cpu_task *task)
{
    if (task->phase > 1) return 0;
    if (task->nth == 1) return 1;
    tn_product o = tn_product_get(task->step);
    if (task->phase == 0) {
        int64_t n_x = tn_view_n_rows(o.x), k = o.x->ne[3];
        return tn_cpu_parts(task, n_x * ((k + QUANTISE_SEGMENT - 1) / QUANTISE_SEGMENT),
                            n_x * k * (int64_t)sizeof(float));
    }
    int64_t n = TN_MIN(weights_size(&o) / PART_SIZE, ((const shared_state *)task->scratch)->n_items);
    return (int32_t)TN_MAX(TN_MIN(n, task->nth), 1);
}

// The launch functions of the other levels are beside their kernels. This one is here because this file needs
// the kernels of portable C anyway, to know which weights quantise.
void tn_matmul_generic(const tn_cpu_task *task)
{
    tn_matmul_run(task, &tn_matmul_isa_generic);
}
