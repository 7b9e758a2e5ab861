// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA adapters: the same logits as with the change merged into the weights, alone and two at once, fused and
// unfused, on one device and two; scales of sequences; sessions that are saved; files that do not fit are
// refused with a message that names the culprit; every failing allocation is a status.
//
//     test_adapter [--backend NAME] [STEP]   only every STEP-th failing allocation (default 1)
#include "tests/models/adapter_files.h"
#include "tests/models/far_device.h"
#include "tests/models/feeds.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <tenon/adapter.h>
#include <tenon/engine.h>
#include <tenon/graph.h>

enum { N_PROMPT = 40, N_ROWS = 6, VOCAB = TINY_MODEL_VOCAB };

static counting count;
static tn_context *ctx;
static const char *backend = "cpu";
static double tolerance = 2e-5; // of f32 sums in another order, through some layers

static bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    bool found = strstr(text, part) != NULL && !strchr(text, '\n');
    if (!found) printf("    message without \"%s\": %s\n", part, text);
    return found;
}

// A model with two adapters, and the model with both merged into its weights.
typedef struct family {
    tiny_file file;
    adapter_file files[2];
    void *bytes, *adapter_bytes[2];
    size_t size, adapter_size[2];
    tn_model *base, *merged;
    tn_adapter *adapters[2];
} family;

static const float family_scale[2] = {0.75f, -0.5f};

static tn_model *open_bytes(const family *f, bool merge, int32_t device_layers)
{
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(ctx, device_layers >= 0 ? "far" : backend);
    cfg.device_layers = device_layers >= 0 ? device_layers : INT32_MAX;
    void *copy = tn_alloc(ctx, f->size);
    if (!copy) abort();
    memcpy(copy, f->bytes, f->size);
    for (int k = 0; k < 2 && merge; k++)
        adapter_merge(ctx, copy, f->size, f->adapter_bytes[k], f->adapter_size[k], f->files[k].alpha,
                      family_scale[k]);
    tiny_must(tn_model_open_memory(ctx, copy, f->size, "tiny", &cfg, &model));
    return model;
}

// Models with a head of their own: what an adapter does to the embedding then does not concern the head.
static void family_init(family *f, int32_t arch, int32_t device_layers)
{
    memset(f, 0, sizeof *f);
    tiny_describe(&tiny_shapes[arch], &f->file);
    bool head = false;
    for (int32_t i = 0; i < f->file.n_tensors; i++)
        head |= strcmp(f->file.tensors[i].name, "output.weight") == 0;
    if (!head) tiny_add_tensor(&f->file, -1, "output.weight", VOCAB, f->file.shape.n_embd, 0);
    f->bytes = tiny_write(ctx, &f->file, &f->size);
    adapter_describe(&f->files[0], &f->file, 4, 8.0f, TN_TYPE_F32);
    adapter_describe(&f->files[1], &f->file, 3, 0.0f, TN_TYPE_F16);
    f->base = open_bytes(f, false, device_layers);
    for (int k = 0; k < 2; k++) {
        f->adapter_bytes[k] = adapter_write(ctx, &f->files[k], &f->adapter_size[k]);
        tiny_must(tn_adapter_open_memory(f->base, f->adapter_bytes[k], f->adapter_size[k], "adapter",
                                         &f->adapters[k]));
    }
    f->merged = open_bytes(f, true, -1);
}

static void family_fini(family *f)
{
    for (int k = 0; k < 2; k++) tn_adapter_unref(&f->adapters[k]);
    tn_model_unref(&f->base);
    tn_model_unref(&f->merged);
    for (int k = 0; k < 2; k++) tn_free(ctx, f->adapter_bytes[k]);
    tn_free(ctx, f->bytes);
}

static tn_session *open_session(tn_model *model, int32_t fusion, const tn_adapter_use *uses, int32_t n)
{
    tn_session *s = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 192;
    cfg.n_batch = 24;
    cfg.n_seq = 2;
    cfg.fusion = fusion;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    cfg.adapters = uses;
    cfg.n_adapters = n;
    tiny_must(tn_session_create(model, &cfg, &s));
    return s;
}

static tn_session *with_both(const family *f, int32_t fusion, float scale0, float scale1)
{
    tn_adapter_use uses[] = {{sizeof(tn_adapter_use), f->adapters[0], scale0, 0},
                             {sizeof(tn_adapter_use), f->adapters[1], scale1, 0}};
    return open_session(f->base, fusion, uses, 2);
}

// A prompt in two pieces, tokens, a cut, and tokens again: one row of logits each.
static void run(tn_session *s, float out[N_ROWS][VOCAB])
{
    int32_t tokens[N_PROMPT];
    for (int32_t i = 0; i < N_PROMPT; i++) tokens[i] = (i * 37 + 11) % 250;
    for (int32_t i = 0; i < N_ROWS; i++) {
        if (i == 4) tiny_must(tn_session_truncate(s, 0, 30));
        tiny_must(tn_session_feed(s, 0, tokens + i, i == 0 ? N_PROMPT - 8 : i == 5 ? 3 : 1));
        memcpy(out[i], tn_session_logits(s, 0), sizeof out[i]);
    }
    tiny_must(tn_session_truncate(s, 0, 0));
}

static double rel_l2(const float *got, const float *want, size_t n)
{
    double diff = 0.0, norm = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)got[i] - want[i];
        diff += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(diff / norm);
}

static bool near_to(const char *what, const family *f, const float *got, const float *want, size_t n)
{
    double off = rel_l2(got, want, n);
    if (!(off <= tolerance)) printf("    %s, %s: off by %g\n", f->file.shape.arch, what, off);
    return off <= tolerance;
}

static float wanted[N_ROWS][VOCAB], plain[N_ROWS][VOCAB], got[N_ROWS][VOCAB];

static void test_merged(int32_t arch)
{
    family *f = malloc(sizeof *f);
    if (!f) abort();
    family_init(f, arch, -1);
    for (int32_t fusion = 0; fusion < 2; fusion++) {
        tn_session *merged = open_session(f->merged, fusion, NULL, 0);
        tn_session *base = open_session(f->base, fusion, NULL, 0);
        tn_session *both = with_both(f, fusion, family_scale[0], family_scale[1]);
        tn_session *none = with_both(f, fusion, 0.0f, -0.0f);
        run(merged, wanted);
        run(base, plain);
        run(both, got);
        TEST_CHECK(near_to(fusion ? "fused" : "unfused", f, got[0], wanted[0], N_ROWS * VOCAB));
        TEST_CHECK(rel_l2(plain[0], wanted[0], N_ROWS * VOCAB) > 0.01); // or the test would show nothing
        run(none, got);
        TEST_CHECK(memcmp(got, plain, sizeof got) == 0);
        tn_session_destroy(&merged);
        tn_session_destroy(&base);
        tn_session_destroy(&both);
        tn_session_destroy(&none);
    }
    family_fini(f);
    free(f);
}

// --- scales of sequences ---------------------------------------------------------------------------

// Two sequences in one pass, one with the adapters and one without.
static void test_sequences(void)
{
    family *f = malloc(sizeof *f);
    if (!f) abort();
    family_init(f, TINY_QWEN3MOE, -1);
    tn_session *s = with_both(f, 1, family_scale[0], family_scale[1]);
    tn_session *base = open_session(f->base, 1, NULL, 0), *merged = open_session(f->merged, 1, NULL, 0);
    static const int32_t tokens[] = {5, 9, 200, 17, 3, 4, 8, 21, 60, 61};
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 0, 0.0f), TN_OK);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 1, 0.0f), TN_OK);
    for (int32_t i = 0; i < 2; i++) {
        tn_feed feeds[] = {FEED(0, 5, tokens, TN_OUTPUT_LAST), FEED(1, 4, tokens + 5 * i, TN_OUTPUT_ALL)};
        TEST_CHECK_STATUS(tn_session_eval(s, feeds, 2), TN_OK);
        TEST_CHECK_STATUS(tn_session_feed(merged, 0, tokens, 5), TN_OK);
        TEST_CHECK_STATUS(tn_session_feed(base, 0, tokens + 5 * i, 4), TN_OK);
        TEST_CHECK(near_to("sequence 0", f, tn_session_logits(s, 0), tn_session_logits(merged, 0), VOCAB));
        TEST_CHECK(near_to("sequence 1", f, tn_session_logits(s, 4), tn_session_logits(base, 0), VOCAB));
    }
    // A scale belongs to all tokens of a sequence, and to what was computed for them.
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 0, 1.0f), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 0, 0.0f), TN_OK);
    int32_t n = -1;
    TEST_CHECK_STATUS(tn_session_reuse(s, 1, tokens, 5, &n), TN_OK);
    TEST_CHECK(n == 4);
    TEST_CHECK_STATUS(tn_session_truncate(s, 1, 0), TN_OK);
    TEST_CHECK_STATUS(tn_session_reuse(s, 1, tokens, 5, &n), TN_OK);
    TEST_CHECK(n == 0); // sequence 0 begins so, but with other keys and values
    TEST_CHECK_STATUS(tn_session_branch(s, 0, 1, 5), TN_OK);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 0, 0.0f), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 0, family_scale[0]), TN_OK);
    TEST_CHECK_STATUS(tn_session_truncate(s, 1, 0), TN_OK);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 2, 0, 1.0f), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 2, 1.0f), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 1, NAN), TN_ERR_ARG);
    tn_session_destroy(&s);
    tn_session_destroy(&base);
    tn_session_destroy(&merged);
    family_fini(f);
    free(f);
}

static void test_saved(void)
{
    family *f = malloc(sizeof *f);
    if (!f) abort();
    family_init(f, TINY_QWEN35, -1);
    tn_session *s = with_both(f, 1, 0.5f, 0.0f), *same = with_both(f, 1, 0.5f, 0.0f),
               *other = with_both(f, 1, 0.25f, 0.0f), *none = open_session(f->base, 1, NULL, 0),
               *zero = with_both(f, 1, 0.0f, 0.0f);
    static const int32_t tokens[] = {5, 9, 200, 17, 3};
    char *bytes = NULL;
    size_t n = 0;
    TEST_CHECK_STATUS(tn_session_feed(s, 0, tokens, 5), TN_OK);
    TEST_CHECK_STATUS(tn_session_save_memory(s, &bytes, &n), TN_OK);
    TEST_CHECK_STATUS(tn_session_load_memory(other, bytes, n), TN_ERR_MODEL);
    TEST_CHECK(message_has("with other adapters"));
    TEST_CHECK_STATUS(tn_session_load_memory(none, bytes, n), TN_ERR_MODEL);
    // All sequences of a file have the same scales, so those of a session that loads it get them.
    TEST_CHECK_STATUS(tn_session_adapter_scale(same, 1, 0, 2.0f), TN_OK);
    TEST_CHECK_STATUS(tn_session_load_memory(same, bytes, n), TN_OK);
    for (int32_t seq = 0; seq < 2; seq++) {
        TEST_CHECK_STATUS(tn_session_feed(s, seq, tokens, 1), TN_OK);
        TEST_CHECK_STATUS(tn_session_feed(same, seq, tokens, 1), TN_OK);
        TEST_CHECK(memcmp(tn_session_logits(s, 0), tn_session_logits(same, 0), VOCAB * sizeof(float)) == 0);
    }
    TEST_CHECK_STATUS(tn_session_truncate(s, 1, 0), TN_OK);
    tn_text_free(ctx, bytes);
    // With scales of 0 the file is that of a session without adapters.
    TEST_CHECK_STATUS(tn_session_feed(zero, 0, tokens, 5), TN_OK);
    TEST_CHECK_STATUS(tn_session_save_memory(zero, &bytes, &n), TN_OK);
    TEST_CHECK_STATUS(tn_session_load_memory(none, bytes, n), TN_OK);
    tn_text_free(ctx, bytes);
    TEST_CHECK_STATUS(tn_session_adapter_scale(s, 1, 1, 1.0f), TN_OK);
    TEST_CHECK_STATUS(tn_session_feed(s, 1, tokens, 5), TN_OK);
    TEST_CHECK_STATUS(tn_session_save_memory(s, &bytes, &n), TN_ERR_UNSUPPORTED);
    TEST_CHECK(message_has("different scales"));
    tn_session *all[] = {s, same, other, none, zero};
    for (size_t i = 0; i < TN_COUNT(all); i++) tn_session_destroy(&all[i]);
    family_fini(f);
    free(f);
}

// --- two devices -----------------------------------------------------------------------------------

static void test_split(int32_t arch)
{
    far_add(ctx, 1 << 30);
    for (int32_t layers = 1; layers <= tiny_shapes[arch].n_layers; layers++) {
        family *f = malloc(sizeof *f);
        if (!f) abort();
        family_init(f, arch, layers);
        tn_adapter_info info = {.struct_size = sizeof info};
        tn_adapter_info_get(f->adapters[0], &info);
        TEST_CHECK(info.device_size > 0 && info.rank == 6 && info.n_weights == f->files[0].n_tensors / 2);
        TEST_CHECK(info.alpha == 8.0f && info.file_size == f->adapter_size[0] && !*info.name);
        tn_session *merged = open_session(f->merged, 1, NULL, 0);
        tn_session *both = with_both(f, 1, family_scale[0], family_scale[1]);
        run(merged, wanted);
        run(both, got);
        TEST_CHECK(near_to("two devices", f, got[0], wanted[0], N_ROWS * VOCAB));
        TEST_CHECK(far.n_foreign == 0);
        tn_session_memory m = {.struct_size = sizeof m};
        tn_session_config cfg;
        tn_session_config_default(&cfg);
        cfg.adapters = &(tn_adapter_use){sizeof(tn_adapter_use), f->adapters[0], 1.0f, 0};
        cfg.n_adapters = 1;
        TEST_CHECK_STATUS(tn_session_predict(f->base, &cfg, &m), TN_OK);
        tn_model_info mi = {.struct_size = sizeof mi};
        tn_model_info_get(f->base, &mi);
        TEST_CHECK(m.devices[0].weights == mi.device_size + info.device_size);
        tn_session_destroy(&merged);
        tn_session_destroy(&both);
        family_fini(f);
        free(f);
        TEST_CHECK(far.used == 0 && far.n_buffers == 0);
    }
}

// --- files and arguments that do not fit -------------------------------------------------------------

static adapter_file *bad;
static tn_model *bad_model;

static adapter_tensor *tensor_at(const char *name)
{
    for (int32_t i = 0; i < bad->n_tensors; i++)
        if (strcmp(bad->tensors[i].name, name) == 0) return &bad->tensors[i];
    abort();
}

static tn_status try_bad(void)
{
    size_t size;
    tn_adapter *a = NULL;
    void *bytes = adapter_write(ctx, bad, &size);
    tn_status status = tn_adapter_open_memory(bad_model, bytes, size, "bad.gguf", &a);
    TEST_CHECK((status == TN_OK) == (a != NULL));
    tn_adapter_unref(&a);
    tn_free(ctx, bytes);
    return status;
}

#define REFUSED(damage, status, culprit)                                                                     \
    do {                                                                                                     \
        adapter_describe(bad, &file, 4, 8.0f, TN_TYPE_F32);                                                  \
        damage;                                                                                              \
        if (!TEST_CHECK_STATUS(try_bad(), status) || !TEST_CHECK(message_has(culprit)))                      \
            printf("    case of line %d\n", __LINE__);                                                       \
    } while (0)

static void rename_tensor(const char *from, const char *to)
{
    snprintf(tensor_at(from)->name, sizeof tensor_at(from)->name, "%s", to);
}

// Weights that are not multiplied as matrices.
static void test_other_weights(void)
{
    static tiny_file file;
    tiny_describe(&tiny_shapes[TINY_GPT2], &file);
    bad_model = tiny_model_open(ctx, &tiny_shapes[TINY_GPT2]);
    REFUSED(adapter_add_pair(bad, &(tiny_tensor){"position_embd.weight", TN_TYPE_F32, 2, {512, 64}}, 4,
                             TN_TYPE_F32),
            TN_ERR_UNSUPPORTED, "position_embd.weight, which is not multiplied");
    // Norms are left out, as other programs do.
    adapter_describe(bad, &file, 4, 8.0f, TN_TYPE_F32);
    adapter_tensor *norm = adapter_add(bad, "x", 'a', TN_TYPE_F32);
    snprintf(norm->name, sizeof norm->name, "blk.0.attn_norm.weight");
    norm->n_dims = 1, norm->ne[0] = 64;
    TEST_CHECK_STATUS(try_bad(), TN_OK);
    bad->tensors[0] = *norm; // and nothing else is there
    bad->n_tensors = 1;
    TEST_CHECK_STATUS(try_bad(), TN_ERR_MODEL);
    TEST_CHECK(message_has("the adapter changes no weight"));
    tn_model_unref(&bad_model);
}

static void test_refused(void)
{
    static tiny_file file;
    static adapter_file storage;
    bad = &storage;
    tiny_describe(&tiny_shapes[TINY_LLAMA], &file);
    bad_model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    adapter_describe(bad, &file, 4, 8.0f, TN_TYPE_F32);
    TEST_CHECK_STATUS(try_bad(), TN_OK);
    REFUSED(bad->type = "model", TN_ERR_MODEL, "general.type is \"model\": the file is no adapter");
    REFUSED(bad->type = NULL, TN_ERR_MODEL, "the file is no adapter");
    REFUSED(bad->arch = "qwen2", TN_ERR_MODEL,
            "the adapter is for the architecture qwen2, the model has llama");
    REFUSED(bad->arch = NULL, TN_ERR_MODEL, "architecture");
    REFUSED(bad->kind = "control", TN_ERR_UNSUPPORTED, "adapter.type is \"control\"");
    REFUSED(bad->kind = NULL, TN_ERR_UNSUPPORTED, "adapter.type");
    REFUSED(bad->alpha = INFINITY, TN_ERR_FORMAT, "adapter.lora.alpha");
    REFUSED(bad->alpha = NAN, TN_ERR_FORMAT, "adapter.lora.alpha");
    REFUSED(bad->tokens = true, TN_ERR_UNSUPPORTED, "behind certain tokens");
    REFUSED(bad->n_tensors = 0, TN_ERR_MODEL, "no tensors");
    REFUSED(rename_tensor("blk.0.attn_q.weight.lora_a", "blk.0.attn_q.weight"), TN_ERR_MODEL,
            "blk.0.attn_q.weight is neither");
    REFUSED(rename_tensor("blk.0.attn_q.weight.lora_a", "blk.9.attn_q.weight.lora_a"), TN_ERR_MODEL,
            "blk.9.attn_q.weight, which the model does not have");
    REFUSED(rename_tensor("blk.0.attn_q.weight.lora_a", ".lora_a"), TN_ERR_MODEL, "neither");
    REFUSED((tensor_at("blk.0.attn_q.weight.lora_b")->n_dims = 1,
             tensor_at("blk.0.attn_q.weight.lora_b")->ne[0] = TN_MAX_WIDTH + 1),
            TN_ERR_MODEL, "blk.0.attn_q.weight.lora_b has rank 1048577, must be 1 to 1048576");
    REFUSED(tensor_at("blk.0.attn_q.weight.lora_b")[0] = bad->tensors[--bad->n_tensors], TN_ERR_MODEL,
            "lora_b is missing");
    REFUSED(tensor_at("blk.1.ffn_down.weight.lora_a")->ne[0] = 5, TN_ERR_MODEL,
            "blk.1.ffn_down.weight.lora_a has shape [1, 5, 96], must be [1, 6, 96]");
    REFUSED(tensor_at("blk.1.ffn_down.weight.lora_a")->ne[1] = 95, TN_ERR_MODEL, "must be [1, 6, 96]");
    REFUSED(tensor_at("blk.1.ffn_down.weight.lora_b")->ne[0] = 63, TN_ERR_MODEL, "lora_b has shape");
    REFUSED((tensor_at("blk.1.attn_k.weight.lora_a")->n_dims = 3,
             tensor_at("blk.1.attn_k.weight.lora_a")->ne[2] = 2),
            TN_ERR_MODEL, "blk.1.attn_k.weight.lora_a has shape");
    REFUSED((tensor_at("blk.1.attn_k.weight.lora_b")->n_dims = 4,
             tensor_at("blk.1.attn_k.weight.lora_b")->ne[2] = 32,
             tensor_at("blk.1.attn_k.weight.lora_b")->ne[3] = 4),
            TN_ERR_MODEL, "blk.1.attn_k.weight.lora_");
    REFUSED(tensor_at("token_embd.weight.lora_a")->ne[0] = VOCAB - 1, TN_ERR_MODEL,
            "token_embd.weight.lora_a");
    REFUSED(tensor_at("blk.0.attn_v.weight.lora_b")->dtype = TN_TYPE_I32, TN_ERR_MODEL, "has the type I32");
    tn_model_unref(&bad_model);
    test_other_weights();
}

// Random damage to the bytes before the data: nothing is asked but to end well.
static void test_damaged(int32_t n)
{
    static tiny_file file;
    static adapter_file f;
    tiny_describe(&tiny_shapes[TINY_LLAMA], &file);
    adapter_describe(&f, &file, 4, 8.0f, TN_TYPE_F32);
    tn_model *model = tiny_model_open(ctx, &tiny_shapes[TINY_LLAMA]);
    size_t size;
    uint8_t *bytes = adapter_write(ctx, &f, &size), *copy = malloc(size);
    if (!copy) abort();
    uint32_t seed = 1, head = 2400;
    int32_t n_ok = 0;
    for (int32_t i = 0; i < n; i++) {
        memcpy(copy, bytes, size);
        for (int k = 0; k < 1 + i % 3; k++) {
            seed = seed * 1664525u + 1013904223u;
            uint32_t at = (seed >> 4) % head;
            seed = seed * 1664525u + 1013904223u;
            copy[at] = (uint8_t)(i % 2 ? seed >> 16 : copy[at] ^ (1u << (seed >> 29)));
        }
        tn_adapter *a = NULL;
        n_ok += tn_adapter_open_memory(model, copy, i % 50 == 0 ? size / 2 : size, "damaged", &a) == TN_OK;
        tn_adapter_unref(&a);
    }
    TEST_CHECK(n_ok < n / 2);
    free(copy);
    tn_free(ctx, bytes);
    tn_model_unref(&model);
}

static void test_arguments(void)
{
    family *f = malloc(sizeof *f);
    if (!f) abort();
    family_init(f, TINY_LLAMA, -1);
    tn_adapter_use use = {sizeof use, f->adapters[0], 1.0f, 0};
    tn_session *s = NULL;
    tn_adapter *none = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.adapters = &use;
    cfg.n_adapters = TN_SESSION_ADAPTERS + 1;
    TEST_CHECK_STATUS(tn_session_create(f->base, &cfg, &s), TN_ERR_ARG);
    cfg.n_adapters = -1;
    TEST_CHECK_STATUS(tn_session_create(f->base, &cfg, &s), TN_ERR_ARG);
    cfg.n_adapters = 1;
    TEST_CHECK_STATUS(tn_session_create(f->merged, &cfg, &s), TN_ERR_ARG);
    TEST_CHECK(message_has("another model"));
    use.scale = INFINITY;
    TEST_CHECK_STATUS(tn_session_create(f->base, &cfg, &s), TN_ERR_ARG);
    use = (tn_adapter_use){sizeof use, NULL, 1.0f, 0};
    TEST_CHECK_STATUS(tn_session_create(f->base, &cfg, &s), TN_ERR_ARG);
    cfg.adapters = NULL;
    TEST_CHECK_STATUS(tn_session_create(f->base, &cfg, &s), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_adapter_open(f->base, "/nonexistent/adapter.gguf", &none), TN_ERR_IO);
    TEST_CHECK_STATUS(tn_adapter_open(NULL, "x", &none), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_adapter_open(f->base, NULL, &none), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_session_adapter_scale(NULL, 0, 0, 1.0f), TN_ERR_ARG);
    TEST_CHECK(!s && !none && !tn_adapter_ref(NULL));
    tn_adapter_unref(NULL);
    tn_adapter_unref(&none);
    family_fini(f);
    free(f);
}

// --- failing allocations ---------------------------------------------------------------------------

static tn_status live_once(tn_model *model, const void *bytes, size_t size)
{
    static const int32_t tokens[] = {1, 2, 3};
    tn_adapter *a = NULL;
    tn_session *s = NULL;
    tn_status status = tn_adapter_open_memory(model, bytes, size, "adapter", &a);
    tn_adapter_use use = {sizeof use, a, 1.0f, 0};
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 70;
    cfg.adapters = &use;
    cfg.n_adapters = 1;
    if (status == TN_OK) status = tn_session_create(model, &cfg, &s);
    tn_adapter_unref(&a);
    if (status == TN_OK) status = tn_session_feed(s, 0, tokens, 3);
    tn_session_destroy(&s);
    return status;
}

static void test_allocations(long step)
{
    static tiny_file file;
    static adapter_file f;
    tn_device *device = far_add(ctx, 1 << 30);
    tiny_describe(&tiny_shapes[TINY_LLAMA], &file);
    adapter_describe(&f, &file, 4, 8.0f, TN_TYPE_F32);
    size_t size, model_size;
    void *bytes = adapter_write(ctx, &f, &size), *model_bytes = tiny_write(ctx, &file, &model_size);
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = device;
    cfg.device_layers = 1;
    tiny_must(tn_model_open_memory(ctx, model_bytes, model_size, "tiny", &cfg, &model));
    TEST_CHECK_STATUS(live_once(model, bytes, size), TN_OK);
    long live = count.live, start = count.calls, n_failed = 0;
    size_t used = far.used;
    TEST_CHECK_STATUS(live_once(model, bytes, size), TN_OK);
    long n_points = count.calls - start;
    for (long point = 0; point < n_points; point += step) {
        count.fail_from = count.calls + point;
        count.fail_to = count.fail_from + 1;
        tn_status status = live_once(model, bytes, size);
        count.fail_from = count.fail_to = 0;
        n_failed += status == TN_ERR_MEMORY;
        if (!TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY) ||
            !TEST_CHECK(count.live == live && far.used == used))
            printf("    allocation %ld: %s\n", point, tn_status_text(status));
    }
    TEST_CHECK(n_failed > n_points / step / 2);
    tn_model_unref(&model);
    tn_free(ctx, bytes);
}

static void begin(void)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.n_threads = 2;
    cfg.allocator = (tn_allocator){&count, counting_alloc, counting_free};
    if (tn_context_create(&cfg, &ctx) != TN_OK) abort();
}

static void end(void)
{
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
}

int main(int argc, char **argv)
{
    long step = 1;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            backend = argv[++i];
        else
            step = strtol(argv[i], NULL, 10);
    }
    bool device = strcmp(backend, "cpu") != 0;
    if (device) tolerance = 5e-3; // products round to halves there
    begin();
    if (!tn_context_device_by_name(ctx, backend)) {
        printf("SKIP: no device %s\n", backend);
        end();
        return 77;
    }
    for (int32_t arch = 0; arch < TINY_ARCHS; arch++)
        if (!device || arch == TINY_LLAMA || arch == TINY_QWEN3MOE) test_merged(arch);
    end();
    if (device) return test_done();
    begin();
    test_sequences();
    test_saved();
    test_arguments();
    test_refused();
    test_damaged(3000);
    end();
    for (int32_t k = 0; k < 3; k++) {
        begin();
        test_split((int32_t[]){TINY_LLAMA, TINY_QWEN3MOE, TINY_DEEPSEEK2}[k]);
        end();
    }
    begin();
    test_allocations(step > 0 ? step : 1);
    end();
    return test_done();
}
