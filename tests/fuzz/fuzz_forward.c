// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of whole models: opening, a session, two passes. The input describes a small model of any
// architecture of models/archs.def, and changes to it: keys with values at the ends of their
// ranges or of another kind, tensors of other shapes and types, tensors that are missing or superfluous,
// bytes of the file. Three bytes select architecture, options and tokens; each change takes four.
#include "models/config.h"
#include "models/keys/keys.h"
#include "tests/fuzz/fuzz.h"
#include "tests/models/tiny_model.h"

#include <tenon/session.h>

enum { FILE_MAX = 8 << 20, CHANGES_MAX = 16, CONTEXT = 70 };

// --- architectures -------------------------------------------------------------------------------

#define SILU  .act = TN_UNARY_SILU, .gated = true
#define GEGLU .act = TN_UNARY_GELU, .gated = true
#define GELU  .act = TN_UNARY_GELU

static const tn_arch archs[] = {
#define TN_ARCH(id, pairs, kind, ffn, ...)                                                                   \
    {.name = id, .rope = TN_ARCH_ROPE_##pairs, .norm = TN_ARCH_NORM_##kind, ffn, __VA_ARGS__},
#include "models/archs.def"
};

static void add_norm(tiny_file *f, const tn_arch *arch, int32_t layer, const char *name)
{
    char text[40];
    snprintf(text, sizeof text, "%s.weight", name);
    tiny_add_tensor(f, layer, text, f->shape.n_embd, 0, 0);
    snprintf(text, sizeof text, "%s.bias", name);
    if (arch->norm == TN_ARCH_NORM_LAYER) tiny_add_tensor(f, layer, text, f->shape.n_embd, 0, 0);
}

static void add_layer(tiny_file *f, const tn_arch *arch, int32_t i)
{
    const tiny_shape *s = &f->shape;
    int64_t q = (int64_t)s->n_heads * s->head_dim, kv = (int64_t)s->n_kv * s->head_dim;
    if (!arch->no_pre_norm && !arch->encoder) {
        add_norm(f, arch, i, "attn_norm");
        if (arch->ffn_norm_renamed)
            add_norm(f, arch, i, "post_attention_norm");
        else if (!arch->parallel)
            add_norm(f, arch, i, "ffn_norm");
    }
    if (arch->post_norm) add_norm(f, arch, i, "post_attention_norm");
    if (arch->post_norm) add_norm(f, arch, i, "post_ffw_norm");
    if (arch->encoder) add_norm(f, arch, i, "attn_output_norm");
    if (arch->encoder) add_norm(f, arch, i, "layer_output_norm");
    tiny_add_tensor(f, i, "attn_q.weight", q, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_k.weight", kv, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_v.weight", kv, s->n_embd, 0);
    tiny_add_tensor(f, i, "attn_output.weight", s->n_embd, q, 0);
    if (arch->qk_norm == 1) { // of a head, or of all of them
        tiny_add_tensor(f, i, "attn_q_norm.weight", arch->no_pre_norm ? q : s->head_dim, 0, 0);
        tiny_add_tensor(f, i, "attn_k_norm.weight", arch->no_pre_norm ? kv : s->head_dim, 0, 0);
    }
    if (s->n_experts > 0) {
        tiny_add_tensor(f, i, "ffn_gate_inp.weight", s->n_experts, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_gate_exps.weight", s->n_experts, s->n_ff_expert, s->n_embd);
        tiny_add_tensor(f, i, "ffn_up_exps.weight", s->n_experts, s->n_ff_expert, s->n_embd);
        tiny_add_tensor(f, i, "ffn_down_exps.weight", s->n_experts, s->n_embd, s->n_ff_expert);
        if (!arch->shared_gate) return;
        tiny_add_tensor(f, i, "ffn_gate_inp_shexp.weight", s->n_embd, 0, 0);
        tiny_add_tensor(f, i, "ffn_gate_shexp.weight", s->n_ff, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_up_shexp.weight", s->n_ff, s->n_embd, 0);
        tiny_add_tensor(f, i, "ffn_down_shexp.weight", s->n_embd, s->n_ff, 0);
        return;
    }
    if (arch->gated) tiny_add_tensor(f, i, "ffn_gate.weight", s->n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_up.weight", s->n_ff, s->n_embd, 0);
    tiny_add_tensor(f, i, "ffn_down.weight", s->n_embd, s->n_ff, 0);
}

// A model of an architecture whose layers have plain attention, from the row of the table.
static void describe_plain(tiny_file *f, const tn_arch *arch)
{
    const tiny_shape *s = &f->shape;
    tiny_describe_keys(f);
    if (arch->norm == TN_ARCH_NORM_LAYER) tiny_f32(f, "attention.layer_norm_epsilon", 1e-5f);
    if (arch->window == TN_ARCH_REQUIRED) tiny_u32(f, "attention.sliding_window", 24);
    if (arch->logit_scale == TN_ARCH_REQUIRED || arch->scales) tiny_f32(f, "logit_scale", 0.25f);
    if (arch->parallel_key) tiny_bool(f, "use_parallel_residual", true);
    if (arch->shared_gate) tiny_u32(f, "expert_shared_feed_forward_length", s->n_ff);
    if (arch->encoder) tiny_u32(f, "pooling_type", 1);
    tiny_add_tensor(f, -1, "token_embd.weight", TINY_MODEL_VOCAB, s->n_embd, 0);
    if (arch->embed_norm) add_norm(f, arch, -1, "token_embd_norm");
    if (arch->positions) tiny_add_tensor(f, -1, "position_embd.weight", s->n_ctx, s->n_embd, 0);
    if (arch->encoder) tiny_add_tensor(f, -1, "token_types.weight", 2, s->n_embd, 0);
    if (!arch->encoder) add_norm(f, arch, -1, "output_norm");
    if (arch->untied) tiny_add_tensor(f, -1, "output.weight", TINY_MODEL_VOCAB, s->n_embd, 0);
    for (int32_t i = 0; i < s->n_layers; i++) add_layer(f, arch, i);
}

// Those of tiny_shapes have layers that the table alone does not describe.
static void describe(tiny_file *f, uint8_t pick, uint8_t options)
{
    static const tn_dtype types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    size_t k = pick % (TINY_ARCHS + TN_COUNT(archs));
    tiny_shape shape = tiny_shapes[k < TINY_ARCHS ? k : TINY_LLAMA];
    shape.dtype = types[options >> 1 & 3];
    // Most models have fewer layers, where the kinds of layers do not need all of them.
    if (options >> 4 & 7 && k != TINY_GEMMA4) shape.n_layers = TN_MIN(shape.n_layers, 2 - (options >> 7));
    shape.tokenizer = options & 1;
    if (k < TINY_ARCHS) {
        tiny_describe(&shape, f);
        return;
    }
    const tn_arch *arch = &archs[k - TINY_ARCHS];
    for (size_t i = 0; i < TINY_ARCHS && arch->delta; i++)
        if (strcmp(tiny_shapes[i].arch, arch->name) == 0) {
            tiny_describe(&tiny_shapes[i], f);
            return;
        }
    shape.arch = arch->name;
    if (strstr(arch->name, "moe"))
        shape.n_experts = 4, shape.n_used = 2, shape.n_ff_expert = arch->moe_ff_full ? shape.n_ff : 32;
    *f = (tiny_file){.shape = shape};
    describe_plain(f, arch);
}

// --- changes -------------------------------------------------------------------------------------

typedef struct change {
    uint8_t kind, which, a, b;
} change;

static int64_t value_of(const change *c)
{
    static const int64_t values[] = {0,   1,   2,    3,     4,         7,         8,          15,
                                     16,  17,  31,   32,    33,        63,        64,         65,
                                     128, 255, 4096, 65536, INT32_MAX, INT32_MIN, UINT32_MAX, -1};
    return c->a < 128 ? values[c->a % TN_COUNT(values)] : (int64_t)c->b;
}

static void change_key(tiny_file *f, const change *c)
{
    static const uint32_t ints[] = {2, 0, 4, 1, 3, 64, 2, 1, 0, 0, 1, 1, 2, 2, 9, 9};
    static const float floats[] = {0.0f, 1.0f, -1.0f, 1e-30f, 1e30f, 3e38f, 0.5f, 10000.0f};
    static const char *const texts[] = {"",     "llama", "yarn",  "longrope", "linear",
                                        "none", "gpt2",  "model", "x"};
    if (f->n_keys == 0) return;
    tiny_key *k = &f->keys[c->which % f->n_keys];
    switch (c->kind / 16 % 6) {
    case 0:
    case 1:
        k->type = TN_GGUF_U32, k->u32 = (uint32_t)value_of(c);
        break;
    case 2:
        k->type = TN_GGUF_F32, k->f32 = c->a < 8 ? (c->a < 4 ? NAN : INFINITY) : floats[c->b % 8];
        break;
    case 3:
        k->type = TN_GGUF_STRING, k->text = texts[c->b % TN_COUNT(texts)];
        break;
    case 4:
        k->type = TN_GGUF_BOOL, k->u32 = c->b & 1;
        break;
    default:
        k->type = TN_GGUF_ARRAY, k->elems = ints, k->count = c->b % (TN_COUNT(ints) + 1);
        k->elem_type = c->a & 1 ? TN_GGUF_U32 : TN_GGUF_BOOL;
        break;
    }
}

static void add_key(tiny_file *f, const change *c)
{
    size_t n = 0;
    while (tn_key_row_at(n)) n++;
    const tn_key_row *row = tn_key_row_at((c->which | (size_t)(c->kind & 0x10) << 4) % n);
    if (f->n_keys >= (int32_t)TN_COUNT(f->keys) - 1 || strncmp(row->name, "tokenizer", 9) == 0) return;
    const char *name = row->name[0] == '.' ? row->name + 1 : row->name;
    if (row->kind == TN_KEY_FLOAT)
        tiny_f32(f, name, (float)c->b / 16.0f - 4.0f);
    else if (row->kind == TN_KEY_BOOL)
        tiny_bool(f, name, c->b & 1);
    else if (row->kind == TN_KEY_TEXT)
        tiny_str(f, name, c->b & 1 ? "yarn" : "longrope");
    else
        tiny_u32(f, name, c->a == 0 ? row->most : c->a == 1 ? row->least : c->b);
}

static void drop_key(tiny_file *f, int32_t i)
{
    f->n_keys--;
    f->keys[i] = f->keys[f->n_keys];
}

static void change_tensor(tiny_file *f, const change *c)
{
    static const char *const names[] = {"attn_q.bias",          "attn_k.bias",
                                        "attn_v.bias",          "attn_output.bias",
                                        "attn_qkv.weight",      "attn_sinks.weight",
                                        "ffn_gate_inp.weight",  "ffn_up.bias",
                                        "ffn_down.bias",        "attn_norm_2.weight",
                                        "attn_q_norm.weight",   "attn_k_norm.weight",
                                        "post_ffw_norm.weight", "ssm_a",
                                        "exp_probs_b.bias",     "layer_output_scale.weight",
                                        "ffn_gate.weight",      "ffn_gate_shexp.weight"};
    if (f->n_tensors == 0) return;
    tiny_tensor *t = &f->tensors[c->which % f->n_tensors];
    switch (c->kind / 16 % 6) {
    case 0:
        t->ne[c->a % TN_MAX_DIMS] = c->b + 1;
        break;
    case 1:
        t->ne[c->a % TN_MAX_DIMS] += c->b % 3 == 0 ? 32 : c->b % 3 == 1 ? 1 : -1;
        break;
    case 2:
        t->n_dims = 1 + c->b % TN_MAX_DIMS;
        break;
    case 3:
        t->dtype = (tn_dtype)(c->b % TN_TYPE_COUNT);
        break;
    case 4:
        f->n_tensors--;
        *t = f->tensors[f->n_tensors];
        break;
    default:
        if (f->n_tensors < (int32_t)TN_COUNT(f->tensors))
            tiny_add_tensor(f, c->a % 3 - 1, names[c->which % TN_COUNT(names)], c->b % 2 ? 64 : c->b + 1,
                            c->a & 8 ? 64 : 0, 0);
        break;
    }
    for (int32_t d = 0; d < TN_MAX_DIMS; d++) t->ne[d] = TN_MAX(t->ne[d], 1);
}

// Rows that repeat after four: encoding the weights would take longer than all else.
static void fill(const tiny_tensor *t, void *place)
{
    enum { DIFFERENT = 4 };
    int64_t rows = 1, cols = t->ne[t->n_dims - 1];
    for (int32_t d = 0; d < t->n_dims - 1; d++) rows *= t->ne[d];
    tiny_tensor some = *t;
    some.n_dims = 2;
    some.ne[0] = TN_MIN(rows, DIFFERENT);
    some.ne[1] = cols;
    if (rows <= DIFFERENT) some = *t;
    tiny_fill(&some, place);
    size_t row = tn_dtype_row_size(t->dtype, cols);
    for (int64_t i = DIFFERENT; i < rows; i++)
        memcpy((uint8_t *)place + (size_t)i * row, (uint8_t *)place + (size_t)(i % DIFFERENT) * row, row);
}

static size_t tensor_size(const tiny_tensor *t)
{
    size_t n = 64;
    for (int32_t d = 0; d < t->n_dims; d++) n *= (size_t)TN_MIN(t->ne[d], FILE_MAX);
    return n;
}

// The writer refuses some keys, such as an alignment of 0.
static tn_status put_key(tn_gguf_writer *w, const tiny_key *k)
{
    if (k->type == TN_GGUF_U32) return tn_gguf_writer_put_u32(w, k->name, k->u32);
    if (k->type == TN_GGUF_F32) return tn_gguf_writer_put_f32(w, k->name, k->f32);
    if (k->type == TN_GGUF_BOOL) return tn_gguf_writer_put_bool(w, k->name, k->u32 != 0);
    if (k->type == TN_GGUF_STRING) return tn_gguf_writer_put_str(w, k->name, k->text);
    return tn_gguf_writer_put_array(w, k->name, k->elem_type, k->elems, k->count);
}

// The file, NULL if the writer refuses it: what it refuses is not of interest here.
static uint8_t *write_model(tn_context *ctx, const tiny_file *f, size_t *size)
{
    tn_gguf_writer *w;
    void *data = NULL, *place;
    size_t all = 0;
    tiny_must(tn_gguf_writer_open_memory(ctx, &w));
    tn_status status = TN_OK;
    for (int32_t i = 0; i < f->n_keys && status == TN_OK; i++) status = put_key(w, &f->keys[i]);
    if (status == TN_OK && f->shape.tokenizer) tiny_put_vocab(w);
    for (int32_t i = 0; i < f->n_tensors && status == TN_OK; i++) {
        const tiny_tensor *t = &f->tensors[i];
        all += tensor_size(t) / 8;
        status =
            all > FILE_MAX ? TN_ERR_ARG : tn_gguf_writer_add_tensor(w, t->name, t->dtype, t->n_dims, t->ne);
    }
    if (status == TN_OK) status = tn_gguf_writer_begin(w);
    for (int32_t i = 0; i < f->n_tensors && status == TN_OK; i++) {
        tiny_must(tn_gguf_writer_place(w, i, &place));
        fill(&f->tensors[i], place);
    }
    if (status == TN_OK && tn_gguf_writer_commit(&w, &data, size) == TN_OK) return data;
    tn_gguf_writer_abort(&w);
    return NULL;
}

static void damage_bytes(uint8_t *bytes, size_t size, const change *c)
{
    size_t at = (c->which | (size_t)c->a << 8) % TN_MIN(size, 16384);
    if (c->kind & 0x10) at = size - 1 - at;
    bytes[at] = c->b;
    for (size_t i = 0; c->kind & 0x20 && i < 64 && at + i < size; i++) bytes[at + i] = c->b;
}

// --- the target ----------------------------------------------------------------------------------

static void check_status(tn_context *ctx, tn_status status)
{
    char message[512] = "";
    if (status != TN_ERR_INTERNAL && status != TN_ERR_STATE && status != TN_ERR_DEVICE) return;
    tn_context_error(ctx, message, sizeof message);
    fprintf(stderr, "status: %s: %s\n", tn_status_text(status), message);
    abort();
}

static void run_model(tn_context *ctx, tn_model *model, uint8_t n)
{
    static const int32_t tokens[] = {1, 275, 3, 4, 5, 6, 7, 8};
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = CONTEXT;
    cfg.n_batch = n & 8 ? 1 : 1 + n % 8; // one token: all passes have the plan of the session
    tn_status status = tn_session_create(model, &cfg, &s);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens, cfg.n_batch);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens + n % 7, 1);
    check_status(ctx, status);
    tn_session_destroy(&s);
}

static tn_context *context_of(uint8_t options)
{
    static tn_context *contexts[2];
    tn_context **ctx = &contexts[options >> 3 & 1];
    if (!*ctx) *ctx = fuzz_context(ctx == &contexts[1] ? "generic" : NULL);
    return *ctx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tiny_file *f = malloc(sizeof *f);
    tn_model *model = NULL;
    size_t n = 0;
    if (size < 3 || !f) return free(f), 0;
    tn_context *ctx = context_of(data[1]);
    const uint8_t *end = data + TN_MIN(size, 3 + 4 * CHANGES_MAX);
    describe(f, data[0], data[1]);
    for (const uint8_t *p = data + 3; p + 4 <= end; p += 4) {
        const change c = {p[0], p[1], p[2], p[3]};
        if (c.kind % 8 < 2) change_key(f, &c);
        if (c.kind % 8 == 2) add_key(f, &c);
        if (c.kind % 8 == 3 && f->n_keys > 1) drop_key(f, c.which % f->n_keys);
        if (c.kind % 8 > 3 && c.kind % 8 < 7) change_tensor(f, &c);
    }
    fuzz_cost cost = fuzz_begin(ctx);
    uint8_t *bytes = write_model(ctx, f, &n);
    free(f);
    if (!bytes) return 0;
    for (const uint8_t *p = data + 3; p + 4 <= end; p += 4)
        if (p[0] % 8 == 7) damage_bytes(bytes, n, &(change){p[0], p[1], p[2], p[3]});
    tn_status status = tn_model_open_memory(ctx, bytes, n, "fuzz", NULL, &model);
    check_status(ctx, status);
    if (status == TN_OK) run_model(ctx, model, data[2]);
    tn_model_unref(&model);
    fuzz_end(&cost, n);
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 3;
    if (max < 64) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(fuzz_random(state) >> 8);
    for (uint64_t k = fuzz_random(state) % 4; k > 0; k--)
        for (int i = 0; i < 4; i++) out[n++] = (uint8_t)(fuzz_random(state) >> 16);
    return n;
}

#include "tests/fuzz/fuzz_main.h"
