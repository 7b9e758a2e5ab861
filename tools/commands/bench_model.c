// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The model that `tenon bench` and `tenon roofline` measure: a file, or random weights of a shape; its
// session.
#include "tools/commands/bench.h"

#include <stdlib.h>
#include <string.h>

enum { CTX_MIN = 64, CACHE_TOKENS = 1024 }; // multiples of the blocks of a cache
static const double int8_bits = 9;          // kernels multiply weights with at most this many bits as int8

// One session serves all counts of sequences: weights and a deep cache are made once. It is made for the
// largest count.
static void read_sequences(bench_state *s)
{
    s->n_counts = opt_nums(s->t.opt, OPT_SEQUENCES, s->counts, BENCH_SEQUENCES);
    for (int i = 0; i < s->n_counts; i++)
        if (s->counts[i] > s->cfg.n_seq) s->cfg.n_seq = (int32_t)s->counts[i];
}

typedef struct shape_row {
    opt_id id;
    size_t offset;
} shape_row;

static const shape_row shape_rows[] = {
    {OPT_LAYERS, offsetof(tn_model_shape, n_layers)},
    {OPT_WIDTH, offsetof(tn_model_shape, n_embd)},
    {OPT_HEADS, offsetof(tn_model_shape, n_heads)},
    {OPT_KV_HEADS, offsetof(tn_model_shape, n_kv_heads)},
    {OPT_HEAD_DIM, offsetof(tn_model_shape, head_dim)},
    {OPT_FFN, offsetof(tn_model_shape, n_ff)},
    {OPT_VOCAB, offsetof(tn_model_shape, n_vocab)},
    {OPT_EXPERTS, offsetof(tn_model_shape, n_experts)},
    {OPT_EXPERTS_USED, offsetof(tn_model_shape, n_experts_used)},
    {OPT_EXPERT_FFN, offsetof(tn_model_shape, n_ff_expert)},
    {OPT_CLASSES, offsetof(tn_model_shape, n_classes)},
};
enum { SHAPE_ROWS = sizeof shape_rows / sizeof *shape_rows };

bool bench_is_random(const options *o)
{
    bool random = opt_is_set(o, OPT_SHAPE) || opt_is_set(o, OPT_ARCH);
    for (int i = 0; i < SHAPE_ROWS; i++) random = random || opt_is_set(o, shape_rows[i].id);
    return random;
}

// Whole blocks of the cache.
static int32_t blocks(int64_t tokens)
{
    return (int32_t)((tokens + CTX_MIN - 1) / CTX_MIN * CTX_MIN);
}

// One sequence of several has the longest prompt as well. A cache with blocks for it in all of them would
// leave less of a device to the layers.
static void make_config(bench_state *s)
{
    tool_session_config(&s->t, &s->cfg);
    read_sequences(s);
    if (s->pass_tokens > 0 && s->cfg.n_batch == 0) s->cfg.n_batch = s->pass_tokens;
    if (s->cfg.n_ctx > 0) return;
    s->cfg.n_ctx_seq = blocks(s->longest);
    s->cfg.n_ctx = (s->cfg.n_seq - 1) * blocks(s->each) + s->cfg.n_ctx_seq;
}

static int make_random(bench_state *s)
{
    const options *o = s->t.opt;
    const char *name = opt_text(o, OPT_SHAPE);
    tn_model_shape shape;
    tn_model_shape_default(&shape);
    tn_status status = name ? tn_model_shape_get(s->t.ctx, name, &shape) : TN_OK;
    if (status != TN_OK) return tool_fail(&s->t, status, "--shape %s", name);
    for (int i = 0; i < SHAPE_ROWS; i++) {
        if (!opt_is_set(o, shape_rows[i].id)) continue;
        int32_t value = (int32_t)opt_int(o, shape_rows[i].id);
        memcpy((char *)&shape + shape_rows[i].offset, &value, sizeof value);
    }
    if (opt_is_set(o, OPT_ARCH) || !name) shape.arch = opt_text(o, OPT_ARCH);
    if (opt_is_set(o, OPT_TYPE) || !shape.type) shape.type = s->type ? s->type : opt_text(o, OPT_TYPE);
    if (!name && shape.head_dim == 0 && shape.n_heads > 0) shape.head_dim = shape.n_embd / shape.n_heads;
    if (!name && shape.n_kv_heads == 0) shape.n_kv_heads = shape.n_heads;
    if (shape.n_ctx < s->longest) shape.n_ctx = (int32_t)s->longest;
    shape.seed = opt_int(o, OPT_SEED) >= 0 ? (uint32_t)opt_int(o, OPT_SEED) : 1;
    tn_model_config cfg;
    make_config(s);
    tool_model_config(&s->t, &s->cfg, &cfg);
    s->name = name ? name : "random";
    if (s->type) {
        snprintf(s->label, sizeof s->label, "%s %s", s->name, s->type);
        s->name = s->label;
    }
    status = tn_model_create_random(s->t.ctx, &shape, &cfg, &s->model);
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s", s->name);
}

int bench_make_tokens(bench_state *s, int64_t n)
{
    s->n_tokens = n;
    s->tokens = malloc((size_t)n * sizeof *s->tokens + 1);
    if (!s->tokens) return fail(EXIT_MEMORY, "out of memory for %lld tokens", (long long)n);
    uint32_t x = 12345; // any ids will do, but equal ones would all use the same experts
    for (int64_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        s->tokens[i] = (int32_t)((x >> 8) % (uint32_t)s->info.n_vocab);
    }
    return 0;
}

// Of a token of one sequence. Several sequences have blocks that are partly filled, which no step reads.
static tn_status find_cache_bytes(bench_state *s)
{
    tn_session_memory memory = {.struct_size = sizeof memory};
    tn_session_config one = s->cfg;
    one.n_seq = 1;
    one.n_ctx_seq = 0;
    one.n_ctx = s->info.n_ctx_train < CACHE_TOKENS ? s->info.n_ctx_train : CACHE_TOKENS;
    one.n_batch = 1;
    tn_status status = tn_session_predict(s->model, &one, &memory);
    if (status == TN_OK) s->cache_bytes = (double)memory.cache / one.n_ctx;
    return status;
}

int bench_make_session(bench_state *s)
{
    make_config(s);
    tn_status status = find_cache_bytes(s);
    if (status == TN_OK) status = tn_session_create(s->model, &s->cfg, &s->session);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: a context of %d tokens", s->name, s->cfg.n_ctx);
    return bench_make_tokens(s, s->longest);
}

static void get_info(bench_state *s)
{
    const tn_model_info *m = &s->info;
    s->info.struct_size = sizeof s->info;
    tn_model_info_get(s->model, &s->info);
    snprintf(s->arch, sizeof s->arch, "%s", m->arch);
    snprintf(s->device, sizeof s->device, "%s", m->device);
    if (m->weight_size == 0) return;
    s->active_params = (double)m->n_active_params;
    bool int8 = (double)m->weight_size * 8 / (double)m->n_params < int8_bits;
    s->precision = int8 ? TN_PRECISION_int8 : TN_PRECISION_f32; // until a plan says
}

int bench_open(bench_state *s)
{
    const options *o = s->t.opt;
    const char *const *args = o->args;
    int n_args = o->n_args;
    bool random = bench_is_random(o);
    int code = 0;
    if (s->path) {
        s->name = s->path;
        n_args = 0;
    } else if (!random) {
        code = tool_model_path(o, &s->name, &args, &n_args);
    }
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; %s takes one model, or --shape", args[0],
                    cmd_name(o->cmd));
    if (!code) code = tool_open(&s->t, o);
    if (!code) code = random ? make_random(s) : tool_load(&s->t, s->name, LOAD_WEIGHTS, &s->model);
    if (!code) get_info(s);
    return code;
}

void bench_release(bench_state *s)
{
    free(s->tokens);
    s->tokens = NULL;
    tn_session_destroy(&s->session);
    tn_embedder_destroy(&s->embedder);
    tn_model_unref(&s->model);
    s->info.arch = s->arch;
    s->info.device = s->device;
}

void bench_close(bench_state *s)
{
    bench_release(s);
    tool_close(&s->t);
    free(s);
}

tn_device *bench_device(const bench_state *s)
{
    return s->t.device ? s->t.device : tn_context_device_by_name(s->t.ctx, s->info.device);
}
