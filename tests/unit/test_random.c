// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models of random weights: known shapes, their files, refused shapes, failing allocations.
#include "models/model.h"
#include "core/context.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <string.h>

static counting count;
static tn_context *ctx;

static bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s\n", text);
    return strstr(text, part) != NULL;
}

static bool same_data(const tn_gguf *a, const tn_gguf *b)
{
    for (int64_t i = 0; i < tn_gguf_n_tensors(a); i++) {
        const tn_gguf_tensor *s = tn_gguf_tensor_at(a, i), *t = tn_gguf_tensor_at(b, i);
        if (s->size != t->size || memcmp(s->data, t->data, t->size) != 0) return false;
    }
    return true;
}

static uint64_t count_params(const tn_gguf *gguf)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < tn_gguf_n_tensors(gguf); i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(gguf, i);
        uint64_t n = 1;
        for (int32_t d = 0; d < t->n_dims; d++) n *= (uint64_t)t->ne[d];
        sum += n;
    }
    return sum;
}

// --- random models -------------------------------------------------------------------------------------

static void test_shapes(void)
{
    tn_model_shape s = {.struct_size = sizeof s};
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "llama-8b", &s), TN_OK);
    TEST_CHECK(s.struct_size == sizeof s && s.n_layers == 32 && s.n_embd == 4096 && s.n_vocab == 128256 &&
               !s.tied);
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "qwen3moe-30b-a3b", &s), TN_OK);
    TEST_CHECK(s.n_experts == 128 && s.n_experts_used == 8 && s.n_ff_expert == 768);
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "qwen3-0.6b", &s), TN_OK);
    TEST_CHECK(s.tied && s.n_heads * s.head_dim == 2048);
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "llama-1b", &s), TN_OK);
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "qwen2-7b", &s), TN_OK);
    TEST_CHECK(s.n_heads * s.head_dim == s.n_embd && s.n_classes == 2);
    TEST_CHECK_STATUS(tn_model_shape_get(ctx, "llama-9b", &s), TN_ERR_ARG);
    TEST_CHECK(message_has("qwen3moe-30b-a3b"));
}

// These shapes have as many weights as the models that they are named after: the sums of the tensors
// of Llama 3.1 8B, Llama 3.2 1B, Qwen2 7B, Qwen3 0.6B and Qwen3 30B A3B.
static void test_sizes(void)
{
    static const struct {
        const char *name;
        int64_t n;
    } models[] = {{"llama-8b", 8030261248},
                  {"llama-1b", 1235814400},
                  {"qwen2-7b", 7615616512},
                  {"qwen3-0.6b", 596049920},
                  {"qwen3moe-30b-a3b", 30532122624}};
    for (size_t i = 0; i < TN_COUNT(models); i++) {
        tn_model_shape s = {.struct_size = sizeof s};
        TEST_CHECK_STATUS(tn_model_shape_get(ctx, models[i].name, &s), TN_OK);
        int64_t width = s.n_embd, q = (int64_t)s.n_heads * s.head_dim,
                kv = (int64_t)s.n_kv_heads * s.head_dim;
        int64_t n = 2 * width * (q + kv) + 2 * width; // of a layer: attention and two norms
        n += s.n_experts ? s.n_experts * width * (3 * (int64_t)s.n_ff_expert + 1) : 3 * width * s.n_ff;
        n += strncmp(s.arch, "qwen3", 5) == 0 ? 2 * s.head_dim : 0;
        n += strcmp(s.arch, "qwen2") == 0 ? q + 2 * kv : 0;
        n = n * s.n_layers + width + width * s.n_vocab * (s.tied ? 1 : 2);
        if (!TEST_CHECK(n == models[i].n)) printf("    %s: %lld\n", models[i].name, (long long)n);
    }
}

static void test_random(void)
{
    static const char *const archs[] = {"llama", "qwen3", "qwen3moe", "llama", "qwen2", "llama", "qwen3"};
    static const char *const types[] = {"Q4_K_M", "Q8_0", "MXFP4_MOE", "NVFP4", "BF16", "IQ2_XXS", "IQ1_M"};
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        bool moe = i == 2 || i == 3;
        int32_t n_classes = i == 4 ? 3 : 0;
        tn_model_shape s = {
            sizeof s,    archs[i],         3,      256,      8, 2,        32, 512, 300, 128, moe ? 4 : 0,
            moe ? 2 : 0, i == 3 ? 0 : 256, i == 1, types[i], 7, n_classes};
        tn_model *model = NULL, *again = NULL;
        long live = count.live;
        TEST_CHECK_STATUS(tn_model_create_random(ctx, &s, NULL, &model), TN_OK);
        TEST_CHECK_STATUS(tn_model_create_random(ctx, &s, NULL, &again), TN_OK);
        if (model && again) {
            tn_model_info info = {.struct_size = sizeof info};
            tn_model_info_get(model, &info);
            TEST_CHECK(strcmp(info.arch, archs[i]) == 0 && info.n_layers == 3 && info.n_vocab == 300);
            TEST_CHECK(info.n_params == count_params(tn_model_gguf(model)));
            TEST_CHECK(info.n_experts == s.n_experts && info.head_dim == 32 && info.n_classes == n_classes);
            TEST_CHECK((tn_model_find_weight(model, "blk.2.attn_k.bias") >= 0) == (i == 4));
            TEST_CHECK_STATUS(tn_gguf_check_data(tn_model_gguf(model)), TN_OK);
            TEST_CHECK(same_data(tn_model_gguf(model), tn_model_gguf(again)));
        } else {
            TEST_CHECK(message_has("random model"));
        }
        tn_model_unref(&model);
        tn_model_unref(&again);
        TEST_CHECK(count.live == live);
    }
}

// Rows that are no multiple of the block of the type have Q8_0, and F16 if they are no multiple of its block
// either.
static void test_odd_rows(void)
{
    static const struct {
        int32_t n_ff;
        tn_dtype type;
    } rows[] = {{128, TN_TYPE_NVFP4}, {96, TN_TYPE_Q8_0}, {80, TN_TYPE_F16}};
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_model_shape s = {sizeof s, "llama", 1, 64, 4, 2, 16, 256, 32, 16, 0, 0, 0, 0, "NVFP4", 1, 0};
        tn_model *model = NULL;
        s.n_ff = rows[i].n_ff;
        if (!TEST_CHECK_STATUS(tn_model_create_random(ctx, &s, NULL, &model), TN_OK)) continue;
        const tn_gguf *gguf = tn_model_gguf(model);
        TEST_CHECK(tn_gguf_find_tensor(gguf, "blk.0.ffn_down.weight")->dtype == rows[i].type);
        TEST_CHECK(tn_gguf_find_tensor(gguf, "blk.0.ffn_up.weight")->dtype == TN_TYPE_NVFP4);
        tn_model_unref(&model);
    }
}

static void test_random_refused(void)
{
    tn_model *model = NULL;
    tn_model_shape good = {sizeof good, "llama", 1, 256, 4, 2, 16, 256, 32, 16, 0, 0, 0, 0, "F32", 1, 0}, s;
#define REFUSED(field, v, want)                                                                              \
    s = good;                                                                                                \
    s.field = (v);                                                                                           \
    TEST_CHECK_STATUS(tn_model_create_random(ctx, &s, NULL, &model), (want))
    REFUSED(struct_size, 8, TN_ERR_ARG);
    REFUSED(arch, "llamb", TN_ERR_UNSUPPORTED);
    char text[512];
    tn_context_error(ctx, text, sizeof text);
    TEST_CHECK(strstr(text, "\"llamb\"; random models can be: llama ") && strstr(text, " qwen3moe"));
    REFUSED(arch, NULL, TN_ERR_UNSUPPORTED);
    REFUSED(arch, "qwen3moe", TN_ERR_ARG);
#define RANGE(field, below, above)                                                                           \
    REFUSED(field, below, TN_ERR_ARG);                                                                       \
    TEST_CHECK(message_has("shape: " #field " is "));                                                        \
    REFUSED(field, above, TN_ERR_ARG);                                                                       \
    TEST_CHECK(message_has("shape: " #field " is "))
    RANGE(n_layers, 0, TN_MAX_LAYERS + 1);
    RANGE(n_embd, 0, TN_MAX_WIDTH + 1);
    RANGE(n_heads, 0, TN_MAX_WIDTH + 2);
    RANGE(n_kv_heads, 0, 5);
    RANGE(head_dim, 1, TN_MAX_WIDTH + 2);
    RANGE(n_ff, 0, TN_MAX_WIDTH + 1);
    RANGE(n_vocab, 0, TN_MAX_VOCAB + 1);
    RANGE(n_ctx, 0, -1);
    RANGE(n_experts, -1, TN_MAX_EXPERTS + 1);
    RANGE(n_experts_used, -1, 1);
    RANGE(n_ff_expert, -1, TN_MAX_WIDTH + 1);
    RANGE(n_classes, -1, TN_MAX_WIDTH + 1);
#undef RANGE
    tn_model_shape dense = good; // of an architecture without experts
    dense.arch = "qwen3";
    dense.n_experts = dense.n_experts_used = 1;
    TEST_CHECK_STATUS(tn_model_create_random(ctx, &dense, NULL, &model), TN_ERR_ARG);
    TEST_CHECK(message_has("shape: n_experts is 1, must be 0 to 0 for qwen3"));
    REFUSED(n_kv_heads, 3, TN_ERR_ARG);
    REFUSED(head_dim, 15, TN_ERR_ARG);
    REFUSED(n_experts, 4, TN_ERR_ARG);
    REFUSED(type, "Q9", TN_ERR_ARG);
    REFUSED(type, NULL, TN_ERR_ARG);
    REFUSED(type, "I32", TN_ERR_UNSUPPORTED);
#undef REFUSED
    TEST_CHECK(!model);
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 1000; k++) {
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1;
        status = tn_model_create_random(ctx, &good, NULL, &model);
        count.fail_from = count.fail_to = 0;
        if (status != TN_OK) TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        if (status != TN_OK && count.live != live) TEST_CHECK(!"nothing leaks");
        tn_model_unref(&model);
    }
    TEST_CHECK(k > 10 && k < 1000 && count.live == live);
}

int main(void)
{
    ctx = counting_context(&count);
    counting_start_threads(ctx);
    test_shapes();
    test_sizes();
    test_random();
    test_odd_rows();
    test_random_refused();
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
