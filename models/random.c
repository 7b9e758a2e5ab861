// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models without a file, for measuring: a GGUF image in memory with the tensors of a real model of that
// shape, filled with random weights that keep activations near 1.
//
// Quantising billions of values would take minutes. So about 1 MB of normal values is quantised per type
// and row length, and rows are put together from runs of its blocks at random places. Every block is one that
// an encoder wrote, or of random bits for types without one, and equal rows (which would give equal logits)
// practically never occur.
#include "core/compiler.h"
#include "models/config.h"
#include "models/model.h"
#include "models/quantize/quantize_mix.h"
#include "ops/quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// --- shapes ----------------------------------------------------------------------------------------

typedef struct named_shape {
    const char *name;
    tn_model_shape shape;
} named_shape;

// clang-format off
static const named_shape shapes[] = {
    /* name, {size, arch, layers, width, heads, kv heads, head, ffn, vocab, context,
              experts, used, expert ffn, tied, type, seed, classes} */
    {"llama-8b",
     {0, "llama",    32, 4096, 32, 8, 128, 14336, 128256, 131072,   0, 0,   0, 0, "Q4_K_M", 1, 0}},
    {"llama-1b",
     {0, "llama",    16, 2048, 32, 8,  64,  8192, 128256, 131072,   0, 0,   0, 1, "Q4_K_M", 1, 0}},
    {"qwen2-7b",
     {0, "qwen2",    28, 3584, 28, 4, 128, 18944, 152064, 131072,   0, 0,   0, 0, "Q4_K_M", 1, 2}},
    {"qwen3-0.6b",
     {0, "qwen3",    28, 1024, 16, 8, 128,  3072, 151936,  40960,   0, 0,   0, 1, "Q4_K_M", 1, 0}},
    {"qwen3moe-30b-a3b",
     {0, "qwen3moe", 48, 2048, 32, 4, 128,  6144, 151936,  40960, 128, 8, 768, 0, "Q4_K_M", 1, 0}},
};

// The keys and tensors that files of an architecture have beyond the common ones.
typedef struct arch_row {
    const char *name;
    bool dense, experts;  // whether its feed-forward may be dense, or may have experts
    bool expert_ff_own;   // experts have a width of their own, else n_ff
    bool qk_norm, qkv_bias;
    float eps, rope_base; // of its published models
} arch_row;

static const arch_row archs[] = {
    {"llama",    true,  true,  false, false, false, 1e-5f, 500000.0f},
    {"qwen2",    true,  false, false, false, true,  1e-6f, 1000000.0f},
    {"qwen3",    true,  false, false, true,  false, 1e-6f, 1000000.0f},
    {"qwen3moe", false, true,  true,  true,  false, 1e-6f, 1000000.0f},
};

// Sizes that tensors are made of.
typedef enum dim {
    DIM_NONE, DIM_EMBD, DIM_VOCAB, DIM_Q, DIM_KV, DIM_HEAD, DIM_FF, DIM_FF_EXPERT, DIM_EXPERTS,
    DIM_CLASSES, DIM_COUNT
} dim;

typedef enum condition { ALWAYS, UNTIED, QK_NORM, QKV_BIAS, DENSE, EXPERTS, HEAD, CONDITION_COUNT } condition;

typedef struct tensor_row {
    const char *name;
    dim ne[3]; // outermost first
    condition when;
} tensor_row;

static const tensor_row global_tensors[] = {
    {"token_embd.weight",  {DIM_VOCAB, DIM_EMBD}, ALWAYS},
    {"output_norm.weight", {DIM_EMBD},            ALWAYS},
    {"output.weight",      {DIM_VOCAB, DIM_EMBD}, UNTIED},
    {"cls.output.weight",  {DIM_CLASSES, DIM_EMBD}, HEAD},
};

static const tensor_row layer_tensors[] = {
    {"attn_norm.weight",     {DIM_EMBD},                              ALWAYS},
    {"attn_q.weight",        {DIM_Q, DIM_EMBD},                       ALWAYS},
    {"attn_k.weight",        {DIM_KV, DIM_EMBD},                      ALWAYS},
    {"attn_v.weight",        {DIM_KV, DIM_EMBD},                      ALWAYS},
    {"attn_output.weight",   {DIM_EMBD, DIM_Q},                       ALWAYS},
    {"attn_q.bias",          {DIM_Q},                                 QKV_BIAS},
    {"attn_k.bias",          {DIM_KV},                                QKV_BIAS},
    {"attn_v.bias",          {DIM_KV},                                QKV_BIAS},
    {"attn_q_norm.weight",   {DIM_HEAD},                              QK_NORM},
    {"attn_k_norm.weight",   {DIM_HEAD},                              QK_NORM},
    {"ffn_norm.weight",      {DIM_EMBD},                              ALWAYS},
    {"ffn_gate.weight",      {DIM_FF, DIM_EMBD},                      DENSE},
    {"ffn_up.weight",        {DIM_FF, DIM_EMBD},                      DENSE},
    {"ffn_down.weight",      {DIM_EMBD, DIM_FF},                      DENSE},
    {"ffn_gate_inp.weight",  {DIM_EXPERTS, DIM_EMBD},                 EXPERTS},
    {"ffn_gate_exps.weight", {DIM_EXPERTS, DIM_FF_EXPERT, DIM_EMBD},  EXPERTS},
    {"ffn_up_exps.weight",   {DIM_EXPERTS, DIM_FF_EXPERT, DIM_EMBD},  EXPERTS},
    {"ffn_down_exps.weight", {DIM_EXPERTS, DIM_EMBD, DIM_FF_EXPERT},  EXPERTS},
};
// clang-format on

void tn_model_shape_init(tn_model_shape *shape, size_t struct_size)
{
    TN_STRUCT_INIT(tn_model_shape, shape, struct_size, {.arch = "llama"});
}

tn_status tn_model_shape_get(tn_context *ctx, const char *name, tn_model_shape *out)
{
    TN_NEED(NULL, ctx);
    char known[256] = "";
    for (size_t i = 0, used = 0; i < TN_COUNT(shapes); i++) {
        if (name && strcmp(name, shapes[i].name) == 0)
            return TN_STRUCT_WRITE(ctx, tn_model_shape, out, &shapes[i].shape);
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", shapes[i].name);
    }
    return tn_fail(ctx, TN_ERR_ARG, "\"%s\" is no known shape; there are:%s", name ? name : "", known);
}

// --- pools of random blocks ------------------------------------------------------------------------

enum {
    POOL_SIZE = 1 << 20, // bytes; fits the second cache of a core
    POOL_PIECE = 2048,   // elements made at a time, on the stack; a multiple of every block
    RUNS = 2,            // parts that a row is put together from
};
enum { NORM_WEIGHTS = 0, BIASES = -1 };  // in place of a row length
static const float vector_noise = 0.05f; // standard deviation of norm weights around 1, of biases around 0

typedef struct pool {
    struct pool *next;
    tn_dtype type;
    int64_t n_in; // row length that the values are scaled for, or what vectors they are for
    uint32_t seed;
    int64_t n_blocks;
    uint8_t *blocks;
} pool;

// SplitMix64 (Steele, Lea and Flood 2014): any seed gives an independent stream.
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t stream(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t state = a;
    state = next_random(&state) ^ b;
    state = next_random(&state) ^ c;
    return next_random(&state);
}

// n (even) normal values, by Box and Muller 1958.
static void normal_values(uint64_t state, float mean, float deviation, float *x, int64_t n)
{
    const float step = 1.0f / 16777216.0f, turn = 6.2831853f; // 2^-24, 2 pi
    for (int64_t i = 0; i < n; i += 2) {
        uint64_t u = next_random(&state);
        float radius = deviation * sqrtf(-2.0f * logf(((float)(u >> 40) + 1.0f) * step));
        float angle = turn * step * (float)(u & 0xffffffu);
        x[i] = mean + radius * cosf(angle);
        x[i + 1] = mean + radius * sinf(angle);
    }
}

// Blocks of a type that has no encoder: bytes at random until one is valid and its deviation is within a
// factor of two of the given one. About one in ten is, because their scales are floats of 16 bits.
static void random_blocks(const pool *p, uint64_t state, float deviation, uint8_t *to, int64_t n_blocks)
{
    float values[POOL_PIECE];
    size_t size = tn_dtype_block_size(p->type);
    int64_t n = tn_dtype_block_elems(p->type);
    for (uint8_t *end = to + (size_t)n_blocks * size; to < end;) {
        for (size_t j = 0; j < size; j++) to[j] = (uint8_t)(next_random(&state) >> 40);
        if (!tn_quant_row_valid(p->type, to, n)) continue;
        float squares = 0.0f;
        tn_quant_info_get(p->type)->to_f32(to, values, n);
        for (int64_t j = 0; j < n; j++) squares += values[j] * values[j];
        float ratio = squares / ((float)n * deviation * deviation);
        if (ratio >= 0.25f && ratio <= 4.0f) to += size;
    }
}

static void fill_pool(void *arg, int32_t thread, int32_t team)
{
    const pool *p = arg;
    float x[POOL_PIECE];
    int64_t n = p->n_blocks * tn_dtype_block_elems(p->type);
    float mean = p->n_in == NORM_WEIGHTS ? 1.0f : 0.0f;
    float deviation = p->n_in > 0 ? 1.0f / sqrtf((float)p->n_in) : vector_noise;
    for (int64_t i = thread; i * POOL_PIECE < n; i += team) {
        int64_t first = i * POOL_PIECE, piece = TN_MIN(n - first, POOL_PIECE);
        uint64_t state = stream(p->seed, (uint64_t)p->type << 32 | (uint64_t)p->n_in, (uint64_t)i);
        uint8_t *to = p->blocks + tn_dtype_row_size(p->type, first);
        if (!tn_quant_info_get(p->type)->from_f32) {
            random_blocks(p, state, deviation, to, piece / tn_dtype_block_elems(p->type));
            continue;
        }
        normal_values(state, mean, deviation, x, POOL_PIECE);
        tn_quant_info_get(p->type)->from_f32(x, to, piece, NULL);
    }
}

// The pool for a type and a row length, made at its first use; NULL if memory is out.
static const pool *get_pool(tn_context *ctx, pool **pools, tn_dtype type, int64_t n_in, uint32_t seed)
{
    for (const pool *p = *pools; p; p = p->next)
        if (p->type == type && p->n_in == n_in) return p;
    pool *p = tn_calloc(ctx, 1, sizeof *p);
    if (!p) return NULL;
    size_t block_size = tn_dtype_block_size(type);
    *p = (pool){.type = type, .n_in = n_in, .seed = seed, .n_blocks = (int64_t)(POOL_SIZE / block_size) + 1};
    p->blocks = tn_alloc(ctx, (size_t)p->n_blocks * block_size);
    if (!p->blocks) {
        tn_free(ctx, p);
        return NULL;
    }
    p->next = *pools;
    *pools = p;
    return tn_parallel(ctx, tn_context_n_threads(ctx), fill_pool, p) == TN_OK ? p : NULL;
}

static void free_pools(tn_context *ctx, pool *p)
{
    while (p) {
        pool *next = p->next;
        tn_free(ctx, p->blocks);
        tn_free(ctx, p);
        p = next;
    }
}

// --- tensors ---------------------------------------------------------------------------------------

typedef struct tensor {
    tn_dtype type;
    int32_t n_dims;
    int64_t ne[3];
    bool is_bias;
} tensor;

typedef struct builder {
    tn_context *ctx;
    tn_model_shape shape;
    const arch_row *arch;
    int64_t dims[DIM_COUNT];
    bool holds[CONDITION_COUNT];
    const tn_quant_mix *mix; // NULL: all tensors have the same type
    tn_dtype type;           // that type
    tn_quant_mix_model model;
    tn_quant_mix_state state;
    tensor *tensors;
    int64_t n_tensors;
    tn_gguf_writer *writer;
} builder;

typedef struct fill {
    const pool *pool;
    uint8_t *place;
    int64_t n_rows, row_blocks;
    uint64_t seed; // of the tensor
} fill;

// Rows of this thread's share, each from random places of the pool.
static void fill_rows(void *arg, int32_t thread, int32_t team)
{
    const fill *f = arg;
    size_t block_size = tn_dtype_block_size(f->pool->type);
    // At least three quarters of the pool to start in, also for rows longer than the pool.
    int64_t run = TN_MIN((f->row_blocks + RUNS - 1) / RUNS, (f->pool->n_blocks + 3) / 4);
    uint64_t n_starts = (uint64_t)(f->pool->n_blocks - run + 1);
    int64_t end = f->n_rows * (thread + 1) / team;
    for (int64_t row = f->n_rows * thread / team; row < end; row++) {
        uint64_t state = stream(f->seed, (uint64_t)row, 0);
        uint8_t *dst = f->place + (size_t)(row * f->row_blocks) * block_size;
        for (int64_t first = 0; first < f->row_blocks; first += run) {
            size_t size = (size_t)TN_MIN(run, f->row_blocks - first) * block_size;
            memcpy(dst, f->pool->blocks + (size_t)(next_random(&state) % n_starts) * block_size, size);
            dst += size;
        }
    }
}

static tn_status fill_tensors(builder *b)
{
    pool *pools = NULL;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < b->n_tensors && status == TN_OK; i++) {
        const tensor *t = &b->tensors[i];
        int64_t n_in = t->ne[t->n_dims - 1], n_rows = 1;
        void *place;
        status = tn_gguf_writer_place(b->writer, i, &place);
        if (status != TN_OK) break;
        int64_t scale = t->n_dims > 1 ? n_in : t->is_bias ? BIASES : NORM_WEIGHTS;
        const pool *p = get_pool(b->ctx, &pools, t->type, scale, b->shape.seed);
        if (!p) status = TN_ERR_MEMORY;
        if (!p) break;
        for (int32_t k = 0; k < t->n_dims - 1; k++) n_rows *= t->ne[k];
        fill f = {.pool = p,
                  .place = place,
                  .n_rows = n_rows,
                  .row_blocks = n_in / tn_dtype_block_elems(t->type),
                  .seed = stream(b->shape.seed, (uint64_t)i, 1)};
        status = tn_parallel(b->ctx, (int32_t)TN_MIN(n_rows, tn_context_n_threads(b->ctx)), fill_rows, &f);
    }
    free_pools(b->ctx, pools);
    return status;
}

// Without a mix: the requested type, or its replacement for rows that are no multiple of its block.
static tn_dtype single_type(const builder *b, const char *name, const tensor *t)
{
    int64_t n = t->ne[t->n_dims - 1];
    if (tn_quant_mix_keeps(name, t->n_dims, t->ne)) return TN_TYPE_F32;
    if (n % tn_dtype_block_elems(b->type) == 0) return b->type;
    return n % tn_dtype_block_elems(TN_TYPE_Q8_0) == 0 ? TN_TYPE_Q8_0 : TN_TYPE_F16;
}

static tn_status add_tensor(builder *b, const char *name, const tensor_row *row)
{
    if (!b->holds[row->when]) return TN_OK;
    tensor *t = &b->tensors[b->n_tensors];
    for (; t->n_dims < 3 && row->ne[t->n_dims] != DIM_NONE; t->n_dims++)
        t->ne[t->n_dims] = b->dims[row->ne[t->n_dims]];
    t->is_bias = row->when == QKV_BIAS;
    t->type =
        b->mix ? tn_quant_mix_pick(&b->state, name, TN_TYPE_F32, t->n_dims, t->ne) : single_type(b, name, t);
    const tn_quant_info *info = tn_quant_info_get(t->type);
    if (!info->from_f32 && (!info->to_f32 || tn_dtype_block_elems(t->type) == 1))
        return tn_fail(b->ctx, TN_ERR_UNSUPPORTED, "type %s is no type of weights", tn_dtype_name(t->type));
    b->n_tensors++;
    return tn_gguf_writer_add_tensor(b->writer, name, t->type, t->n_dims, t->ne);
}

// Layer by layer, as the rules of mixes count.
static tn_status add_tensors(builder *b)
{
    tn_status status = TN_OK;
    b->state = tn_quant_mix_begin(b->mix, &b->model);
    for (size_t i = 0; i < TN_COUNT(global_tensors) && status == TN_OK; i++)
        status = add_tensor(b, global_tensors[i].name, &global_tensors[i]);
    for (int32_t layer = 0; layer < b->shape.n_layers; layer++) {
        for (size_t i = 0; i < TN_COUNT(layer_tensors) && status == TN_OK; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%" PRId32 ".%s", layer, layer_tensors[i].name);
            status = add_tensor(b, name, &layer_tensors[i]);
        }
    }
    return status;
}

// --- keys ------------------------------------------------------------------------------------------

static tn_status put_numbers(builder *b)
{
    const tn_model_shape *s = &b->shape;
    bool experts = b->holds[EXPERTS];
    const struct {
        const char *name;
        int32_t value;
        bool put;
    } keys[] = {
        {"vocab_size", s->n_vocab, true},
        {"context_length", s->n_ctx, true},
        {"embedding_length", s->n_embd, true},
        {"block_count", s->n_layers, true},
        {"feed_forward_length", s->n_ff, true},
        {"attention.head_count", s->n_heads, true},
        {"attention.head_count_kv", s->n_kv_heads, true},
        {"attention.key_length", s->head_dim, true},
        {"attention.value_length", s->head_dim, true},
        {"rope.dimension_count", s->head_dim, true},
        {"expert_count", s->n_experts, experts},
        {"expert_used_count", s->n_experts_used, experts},
        {"expert_feed_forward_length", s->n_ff_expert, experts && b->arch->expert_ff_own},
    };
    tn_status status = TN_OK;
    for (size_t i = 0; i < TN_COUNT(keys) && status == TN_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%s", b->arch->name, keys[i].name);
        if (keys[i].put) status = tn_gguf_writer_put_u32(b->writer, name, (uint32_t)keys[i].value);
    }
    return status;
}

static tn_status put_keys(builder *b)
{
    char name[64];
    tn_gguf_writer *w = b->writer;
    tn_status status = tn_gguf_writer_put_str(w, "general.architecture", b->arch->name);
    if (status == TN_OK) status = tn_gguf_writer_put_str(w, "general.name", "random weights");
    if (status == TN_OK) status = tn_gguf_writer_put_u32(w, "general.quantization_version", 2);
    if (status == TN_OK && b->mix)
        status = tn_gguf_writer_put_u32(w, "general.file_type", tn_quant_mix_file_type(b->mix));
    if (status == TN_OK) status = put_numbers(b);
    snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", b->arch->name);
    if (status == TN_OK) status = tn_gguf_writer_put_f32(w, name, b->arch->eps);
    snprintf(name, sizeof name, "%s.rope.freq_base", b->arch->name);
    return status == TN_OK ? tn_gguf_writer_put_f32(w, name, b->arch->rope_base) : status;
}

// --- checks ----------------------------------------------------------------------------------------

static tn_status check_sizes(const builder *b)
{
    const tn_model_shape *s = &b->shape;
    int32_t experts = s->n_experts > 0;
    const struct {
        const char *name;
        int32_t value, min, max;
    } ranges[] = {
        {"n_layers", s->n_layers, 1, TN_MAX_LAYERS},
        {"n_embd", s->n_embd, 1, TN_MAX_WIDTH},
        {"n_heads", s->n_heads, 1, TN_MAX_WIDTH},
        {"n_kv_heads", s->n_kv_heads, 1, s->n_heads},
        {"head_dim", s->head_dim, 2, TN_MAX_WIDTH},
        {"n_ff", s->n_ff, 1, TN_MAX_WIDTH},
        {"n_vocab", s->n_vocab, 1, TN_MAX_VOCAB},
        {"n_ctx", s->n_ctx, 1, INT32_MAX},
        {"n_experts", s->n_experts, b->arch->dense ? 0 : 1, b->arch->experts ? TN_MAX_EXPERTS : 0},
        {"n_experts_used", s->n_experts_used, experts, s->n_experts},
        {"n_ff_expert", s->n_ff_expert, experts && b->arch->expert_ff_own, TN_MAX_WIDTH},
        {"n_classes", s->n_classes, 0, TN_MAX_WIDTH},
    };
    for (size_t i = 0; i < TN_COUNT(ranges); i++) {
        if (ranges[i].value >= ranges[i].min && ranges[i].value <= ranges[i].max) continue;
        return tn_fail(b->ctx, TN_ERR_ARG,
                       "shape: %s is %" PRId32 ", must be %" PRId32 " to %" PRId32 " for %s", ranges[i].name,
                       ranges[i].value, ranges[i].min, ranges[i].max, b->arch->name);
    }
    if (s->n_heads % s->n_kv_heads != 0 || s->head_dim % 2 != 0)
        return tn_fail(b->ctx, TN_ERR_ARG,
                       "shape: n_kv_heads must divide n_heads, and head_dim must be even");
    return TN_OK;
}

static tn_status read_arch(builder *b)
{
    char known[128] = "";
    for (size_t i = 0, used = 0; i < TN_COUNT(archs); i++) {
        if (b->shape.arch && strcmp(b->shape.arch, archs[i].name) == 0) b->arch = &archs[i];
        used += (size_t)snprintf(known + used, sizeof known - used, " %s", archs[i].name);
    }
    if (b->arch) return TN_OK;
    return tn_fail(b->ctx, TN_ERR_UNSUPPORTED, "shape: architecture \"%s\"; random models can be:%s",
                   b->shape.arch ? b->shape.arch : "", known);
}

static tn_status read_type(builder *b)
{
    if (!b->shape.type) return tn_fail(b->ctx, TN_ERR_ARG, "shape: no type");
    b->mix = tn_quant_mix_find(b->shape.type);
    b->type = b->mix ? TN_TYPE_F32 : tn_dtype_by_name(b->shape.type);
    if (b->type < 0) return tn_fail(b->ctx, TN_ERR_ARG, "shape: \"%s\" is no type", b->shape.type);
    return TN_OK;
}

static tn_status read_shape(builder *b, const tn_model_shape *shape)
{
    if (!shape) return tn_fail(b->ctx, TN_ERR_ARG, "no shape");
    tn_model_shape_default(&b->shape);
    tn_status status = TN_STRUCT_READ(b->ctx, tn_model_shape, shape, &b->shape);
    if (status == TN_OK) status = read_arch(b);
    if (status == TN_OK) status = check_sizes(b);
    if (status == TN_OK) status = read_type(b);
    if (status != TN_OK) return status;
    const tn_model_shape *s = &b->shape;
    b->dims[DIM_EMBD] = s->n_embd;
    b->dims[DIM_VOCAB] = s->n_vocab;
    b->dims[DIM_Q] = (int64_t)s->n_heads * s->head_dim;
    b->dims[DIM_KV] = (int64_t)s->n_kv_heads * s->head_dim;
    b->dims[DIM_HEAD] = s->head_dim;
    b->dims[DIM_FF] = s->n_ff;
    b->dims[DIM_FF_EXPERT] = b->arch->expert_ff_own ? s->n_ff_expert : s->n_ff;
    b->dims[DIM_EXPERTS] = s->n_experts;
    b->dims[DIM_CLASSES] = s->n_classes;
    b->holds[ALWAYS] = true;
    b->holds[UNTIED] = !s->tied;
    b->holds[QK_NORM] = b->arch->qk_norm;
    b->holds[QKV_BIAS] = b->arch->qkv_bias;
    b->holds[HEAD] = s->n_classes > 0;
    b->holds[DENSE] = s->n_experts == 0;
    b->holds[EXPERTS] = s->n_experts > 0;
    b->model = (tn_quant_mix_model){.arch = b->arch->name,
                                    .n_layer = s->n_layers,
                                    .n_head = s->n_heads,
                                    .n_head_kv = s->n_kv_heads,
                                    .n_expert = s->n_experts,
                                    .n_attn_v = s->n_layers,
                                    .has_output = !s->tied};
    return TN_OK;
}

tn_status tn_model_create_random(tn_context *ctx, const tn_model_shape *shape, const tn_model_config *cfg,
                                 tn_model **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, shape);
    TN_NEED(ctx, out);
    builder b = {.ctx = ctx};
    void *data = NULL;
    size_t size = 0;
    tn_status status = read_shape(&b, shape);
    if (status != TN_OK) return status;
    size_t most = TN_COUNT(global_tensors) + (size_t)b.shape.n_layers * TN_COUNT(layer_tensors);
    b.tensors = tn_calloc(ctx, most, sizeof *b.tensors);
    if (!b.tensors) return TN_ERR_MEMORY;
    status = tn_gguf_writer_open_memory(ctx, &b.writer);
    if (status == TN_OK) status = put_keys(&b);
    if (status == TN_OK) status = add_tensors(&b);
    if (status == TN_OK) status = tn_gguf_writer_begin(b.writer);
    if (status == TN_OK) status = fill_tensors(&b);
    if (status == TN_OK) status = tn_gguf_writer_commit(&b.writer, &data, &size);
    tn_gguf_writer_abort(&b.writer);
    tn_free(ctx, b.tensors);
    return status == TN_OK ? tn_model_open_memory(ctx, data, size, "random weights", cfg, out) : status;
}
