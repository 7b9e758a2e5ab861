// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Encoders and embedders: rows against a plain forward pass in doubles, poolings against the rows, texts
// alone and among others, classification heads, long texts, failures, cancellation.
#include "tests/models/feeds.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/embed.h>
#include <tenon/session.h>

enum { LAYERS = 2, WIDTH = 32, HEADS = 4, DIM = 8, FF = 48, CONTEXT = 40, CLASSES = 3 };

static tn_context *ctx;
static const char *const labels[CLASSES] = {"no", "maybe", "yes"};

// --- files -------------------------------------------------------------------------------------------

static void add_norm(tiny_file *f, int32_t layer, const char *name)
{
    char text[40];
    snprintf(text, sizeof text, "%s.weight", name);
    tiny_add_tensor(f, layer, text, WIDTH, 0, 0);
    snprintf(text, sizeof text, "%s.bias", name);
    tiny_add_tensor(f, layer, text, WIDTH, 0, 0);
}

static void add_linear(tiny_file *f, int32_t layer, const char *name, int64_t out, int64_t in, bool bias)
{
    char text[40];
    snprintf(text, sizeof text, "%s.weight", name);
    tiny_add_tensor(f, layer, text, out, in, 0);
    snprintf(text, sizeof text, "%s.bias", name);
    if (bias) tiny_add_tensor(f, layer, text, out, 0, 0);
}

// "bert" or "nomic-bert"; with a head for scores.
static void describe(tiny_file *f, const char *arch, bool head)
{
    bool bert = strcmp(arch, "bert") == 0;
    *f = (tiny_file){.shape = {.arch = arch, .n_layers = LAYERS, .dtype = TN_TYPE_F32, .tokenizer = false}};
    tiny_str(f, "general.architecture", arch);
    tiny_u32(f, "vocab_size", TINY_MODEL_VOCAB);
    tiny_u32(f, "context_length", CONTEXT);
    tiny_u32(f, "embedding_length", WIDTH);
    tiny_u32(f, "block_count", LAYERS);
    tiny_u32(f, "feed_forward_length", FF);
    tiny_u32(f, "attention.head_count", HEADS);
    tiny_f32(f, "attention.layer_norm_epsilon", 1e-12f);
    tiny_u32(f, "pooling_type", head ? TN_POOLING_RANK : TN_POOLING_CLS);
    if (!bert) tiny_f32(f, "rope.freq_base", 1000.0f);
    tiny_add_tensor(f, -1, "token_embd.weight", TINY_MODEL_VOCAB, WIDTH, 0);
    tiny_add_tensor(f, -1, "token_types.weight", 2, WIDTH, 0);
    if (bert) tiny_add_tensor(f, -1, "position_embd.weight", CONTEXT, WIDTH, 0);
    add_norm(f, -1, "token_embd_norm");
    for (int32_t i = 0; i < LAYERS; i++) {
        if (bert) {
            add_linear(f, i, "attn_q", WIDTH, WIDTH, true);
            add_linear(f, i, "attn_k", WIDTH, WIDTH, true);
            add_linear(f, i, "attn_v", WIDTH, WIDTH, true);
        } else {
            add_linear(f, i, "attn_qkv", 3 * WIDTH, WIDTH, false);
            add_linear(f, i, "ffn_gate", FF, WIDTH, false);
        }
        add_linear(f, i, "attn_output", WIDTH, WIDTH, bert);
        add_norm(f, i, "attn_output_norm");
        add_linear(f, i, "ffn_up", FF, WIDTH, bert);
        add_linear(f, i, "ffn_down", WIDTH, FF, bert);
        add_norm(f, i, "layer_output_norm");
    }
    if (!head) return;
    add_linear(f, -1, "cls", WIDTH, WIDTH, true);
    add_linear(f, -1, "cls.output", CLASSES, WIDTH, true);
}

static tn_model *open_file(tn_context *c, const tiny_file *f, tn_status want)
{
    size_t size;
    tn_model *model = NULL;
    void *data = tiny_write(c, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(c, data, size, "tiny", NULL, &model), want);
    return model;
}

// --- the forward pass again --------------------------------------------------------------------------

// Values of "blk.<layer>.<name>", NULL if the file has no such tensor.
static float *values(const tiny_file *f, int32_t layer, const char *name)
{
    char full[64];
    if (layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    for (int32_t i = 0; i < f->n_tensors; i++) {
        const tiny_tensor *t = &f->tensors[i];
        if (strcmp(t->name, full) != 0) continue;
        float *v = malloc((size_t)(t->ne[0] * (t->n_dims > 1 ? t->ne[1] : 1)) * sizeof *v);
        if (!v) abort();
        tiny_fill(t, v);
        return v;
    }
    return NULL;
}

// y = W x + b for one row; rows [from, from + n_out) of the matrix.
static void linear(const tiny_file *f, int32_t layer, const char *name, const double *x, int n_in, double *y,
                   int from, int n_out)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    float *w = values(f, layer, text);
    snprintf(text, sizeof text, "%s.bias", name);
    float *b = values(f, layer, text);
    for (int i = 0; i < n_out; i++) {
        y[i] = b ? (double)b[from + i] : 0.0;
        for (int k = 0; k < n_in; k++) y[i] += (double)w[(from + i) * n_in + k] * x[k];
    }
    free(w);
    free(b);
}

static void layer_norm(const tiny_file *f, int32_t layer, const char *name, double *x)
{
    char text[64];
    double mean = 0.0, variance = 0.0;
    snprintf(text, sizeof text, "%s.weight", name);
    float *w = values(f, layer, text);
    snprintf(text, sizeof text, "%s.bias", name);
    float *b = values(f, layer, text);
    for (int i = 0; i < WIDTH; i++) mean += x[i] / WIDTH;
    for (int i = 0; i < WIDTH; i++) variance += (x[i] - mean) * (x[i] - mean) / WIDTH;
    for (int i = 0; i < WIDTH; i++)
        x[i] = (x[i] - mean) / sqrt(variance + 1e-12) * (double)w[i] + (double)b[i];
    free(w);
    free(b);
}

// Pairs (t, t + DIM/2), base 1000.
static void rotate(double *heads, int position)
{
    for (int h = 0; h < HEADS; h++)
        for (int t = 0; t < DIM / 2; t++) {
            double angle = position * pow(1000.0, -2.0 * t / DIM), *x = heads + h * DIM + t, a = x[0],
                   b = x[DIM / 2];
            x[0] = a * cos(angle) - b * sin(angle);
            x[DIM / 2] = a * sin(angle) + b * cos(angle);
        }
}

typedef double vector[WIDTH];

static void attend(vector *q, vector *k, vector *v, int n, vector *out)
{
    for (int t = 0; t < n; t++)
        for (int h = 0; h < HEADS; h++) {
            double weight[CONTEXT], sum = 0.0;
            for (int j = 0; j < n; j++) {
                double dot = 0.0;
                for (int i = 0; i < DIM; i++) dot += q[t][h * DIM + i] * k[j][h * DIM + i];
                sum += weight[j] = exp(dot / sqrt(DIM));
            }
            for (int i = 0; i < DIM; i++) {
                out[t][h * DIM + i] = 0.0;
                for (int j = 0; j < n; j++) out[t][h * DIM + i] += weight[j] / sum * v[j][h * DIM + i];
            }
        }
}

static void feed_forward(const tiny_file *f, int32_t layer, bool bert, double *x)
{
    double up[FF], gate[FF], y[WIDTH];
    linear(f, layer, "ffn_up", x, WIDTH, up, 0, FF);
    if (!bert) linear(f, layer, "ffn_gate", x, WIDTH, gate, 0, FF);
    for (int i = 0; i < FF; i++) {
        double u = up[i];
        up[i] = bert ? 0.5 * u * (1.0 + tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)))
                     : u * gate[i] / (1.0 + exp(-gate[i]));
    }
    linear(f, layer, "ffn_down", up, FF, y, 0, WIDTH);
    for (int i = 0; i < WIDTH; i++) x[i] += y[i];
}

static void forward(const tiny_file *f, const int32_t *ids, int n, vector *x)
{
    static vector q[CONTEXT], k[CONTEXT], v[CONTEXT], a[CONTEXT];
    bool bert = strcmp(f->shape.arch, "bert") == 0;
    float *table = values(f, -1, "token_embd.weight"), *types = values(f, -1, "token_types.weight");
    float *places = values(f, -1, "position_embd.weight");
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < WIDTH; i++)
            x[t][i] = (double)table[ids[t] * WIDTH + i] + (double)types[i] +
                      (bert ? (double)places[t * WIDTH + i] : 0.0);
        layer_norm(f, -1, "token_embd_norm", x[t]);
    }
    for (int32_t l = 0; l < LAYERS; l++) {
        for (int t = 0; t < n; t++) {
            linear(f, l, bert ? "attn_q" : "attn_qkv", x[t], WIDTH, q[t], 0, WIDTH);
            linear(f, l, bert ? "attn_k" : "attn_qkv", x[t], WIDTH, k[t], bert ? 0 : WIDTH, WIDTH);
            linear(f, l, bert ? "attn_v" : "attn_qkv", x[t], WIDTH, v[t], bert ? 0 : 2 * WIDTH, WIDTH);
            if (!bert) rotate(q[t], t), rotate(k[t], t);
        }
        attend(q, k, v, n, a);
        for (int t = 0; t < n; t++) {
            vector y;
            linear(f, l, "attn_output", a[t], WIDTH, y, 0, WIDTH);
            for (int i = 0; i < WIDTH; i++) x[t][i] += y[i];
            layer_norm(f, l, "attn_output_norm", x[t]);
            feed_forward(f, l, bert, x[t]);
            layer_norm(f, l, "layer_output_norm", x[t]);
        }
    }
    free(table);
    free(types);
    free(places);
}

// --- checks ------------------------------------------------------------------------------------------

static bool near(const float *got, const double *want, int n, double tolerance)
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance)) return false;
    return true;
}

static tn_embedder *make(tn_model *model, int32_t pooling, int32_t n_batch, int32_t normalize)
{
    tn_embedder_config cfg;
    tn_embedder_config_default(&cfg);
    cfg.pooling = pooling;
    cfg.n_batch = n_batch;
    cfg.n_seq = 3;
    cfg.normalize = normalize;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    tn_embedder *e = NULL;
    TEST_CHECK_STATUS(tn_embedder_create(model, &cfg, &e), TN_OK);
    return e;
}

enum { TEXTS = 7, TOKENS = 36 + 1 + 2 + 17 + 40 + 5 + 8 };
static const int32_t sizes[TEXTS] = {36, 1, 2, 17, 40, 5, 8};

static void make_texts(int32_t *ids, tn_text_ids *texts)
{
    uint32_t state = 7;
    for (int i = 0; i < TOKENS; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (int32_t)((state >> 8) % TINY_MODEL_VOCAB);
    }
    for (int i = 0, at = 0; i < TEXTS; at += sizes[i++]) texts[i] = (tn_text_ids){ids + at, sizes[i]};
}

// Every pooling of every text, in batches of all sizes, against the plain pass.
static void test_poolings(const char *arch)
{
    static tiny_file f;
    static vector rows[TOKENS];
    static float got[TOKENS * WIDTH];
    static const int32_t batches[] = {1, 16, 41, 512};
    int32_t ids[TOKENS];
    tn_text_ids texts[TEXTS];
    make_texts(ids, texts);
    describe(&f, arch, false);
    for (int i = 0, at = 0; i < TEXTS; at += sizes[i++]) forward(&f, texts[i].ids, texts[i].n, rows + at);
    tn_model *model = open_file(ctx, &f, TN_OK);
    for (size_t b = 0; b < TN_COUNT(batches); b++)
        for (int32_t pooling = TN_POOLING_DEFAULT; pooling <= TN_POOLING_LAST; pooling++) {
            tn_embedder *e = make(model, pooling, batches[b], 0);
            int32_t used = tn_embedder_pooling(e);
            TEST_CHECK(tn_embedder_width(e) == WIDTH && used == (pooling < 0 ? TN_POOLING_CLS : pooling));
            TEST_CHECK_STATUS(tn_embedder_run(e, NULL, 0, got), TN_OK); // no texts
            TEST_CHECK_STATUS(tn_embedder_run(e, texts, TEXTS, got), TN_OK);
            const float *at = got;
            for (int i = 0, first = 0; i < TEXTS; first += sizes[i++]) {
                double want[WIDTH] = {0};
                for (int t = 0; t < sizes[i]; t++)
                    for (int k = 0; k < WIDTH; k++) want[k] += rows[first + t][k] / sizes[i];
                const double *row = used == TN_POOLING_MEAN
                                        ? want
                                        : rows[used == TN_POOLING_LAST ? first + sizes[i] - 1 : first];
                int n = used == TN_POOLING_NONE ? sizes[i] : 1;
                if (!TEST_CHECK(near(at, row, n * WIDTH, 2e-5)))
                    printf("    %s, pooling %d, text %d\n", arch, used, i);
                at += n * WIDTH;
            }
            tn_embedder_destroy(&e);
        }
    tn_embedder *e = make(model, TN_POOLING_MEAN, 64, 1);
    TEST_CHECK_STATUS(tn_embedder_run(e, texts, TEXTS, got), TN_OK);
    for (int i = 0; i < TEXTS; i++) {
        double norm = 0.0;
        for (int k = 0; k < WIDTH; k++) norm += (double)got[i * WIDTH + k] * got[i * WIDTH + k];
        TEST_CHECK(fabs(norm - 1.0) < 1e-6);
    }
    tn_embedder_destroy(&e);
    tn_model_unref(&model);
}

static void test_classes(void)
{
    static tiny_file f;
    static vector rows[CONTEXT];
    int32_t ids[TOKENS];
    tn_text_ids texts[TEXTS];
    float got[TEXTS * CLASSES];
    make_texts(ids, texts);
    describe(&f, "bert", true);
    tiny_array(&f, "classifier.output_labels", TN_GGUF_STRING, labels, CLASSES);
    tn_model *model = open_file(ctx, &f, TN_OK);
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(model, &info);
    TEST_CHECK(info.is_encoder && info.n_classes == CLASSES && info.pooling == TN_POOLING_RANK);
    TEST_CHECK(strcmp(tn_model_class_label(model, 2), "yes") == 0 && !tn_model_class_label(model, 3) &&
               !tn_model_class_label(model, -1));
    tn_embedder *e = make(model, TN_POOLING_DEFAULT, 64, 1);
    TEST_CHECK(tn_embedder_width(e) == CLASSES && tn_embedder_pooling(e) == TN_POOLING_RANK);
    TEST_CHECK_STATUS(tn_embedder_run(e, texts, TEXTS, got), TN_OK);
    for (int i = 0; i < TEXTS; i++) {
        double hidden[WIDTH], scores[CLASSES];
        forward(&f, texts[i].ids, texts[i].n, rows);
        linear(&f, -1, "cls", rows[0], WIDTH, hidden, 0, WIDTH);
        for (int k = 0; k < WIDTH; k++) hidden[k] = tanh(hidden[k]);
        linear(&f, -1, "cls.output", hidden, WIDTH, scores, 0, CLASSES);
        TEST_CHECK(near(got + i * CLASSES, scores, CLASSES, 2e-5));
    }
    tn_embedder_destroy(&e);
    tn_model_unref(&model);
    tiny_array(&f, "classifier.output_labels", TN_GGUF_STRING, labels,
               CLASSES - 1); // says nothing about three classes
    model = open_file(ctx, &f, TN_OK);
    TEST_CHECK(!tn_model_class_label(model, 0));
    tn_model_unref(&model);
    tiny_tensor_at(&f, "cls.output.weight")->ne[1] = WIDTH - 1;
    open_file(ctx, &f, TN_ERR_MODEL);
}

// A causal model: texts longer than a batch come in parts; the same vectors as at once.
static void test_causal(void)
{
    static tiny_file f;
    int32_t ids[TOKENS];
    tn_text_ids texts[TEXTS];
    static float whole[TOKENS * 64], parts[TOKENS * 64];
    make_texts(ids, texts);
    tiny_describe(&tiny_shapes[TINY_LLAMA], &f);
    tn_model *model = open_file(ctx, &f, TN_OK);
    for (int32_t pooling = TN_POOLING_DEFAULT; pooling <= TN_POOLING_LAST; pooling++) {
        tn_embedder *a = make(model, pooling, 512, 0), *b = make(model, pooling, 7, 0);
        TEST_CHECK(pooling >= 0 || tn_embedder_pooling(a) == TN_POOLING_LAST);
        size_t rows = tn_embedder_pooling(a) == TN_POOLING_NONE ? TOKENS : TEXTS;
        TEST_CHECK_STATUS(tn_embedder_run(a, texts, TEXTS, whole), TN_OK);
        TEST_CHECK_STATUS(tn_embedder_run(b, texts, TEXTS, parts), TN_OK);
        double worst = 0.0;
        for (size_t i = 0; i < rows * 64; i++) {
            double diff = fabs((double)whole[i] - parts[i]);
            if (diff > worst) worst = diff; // fmax here ends in an internal error of gcc 12 for aarch64
        }
        if (!TEST_CHECK(worst < 1e-4)) printf("    pooling %d: %g\n", pooling, worst);
        tn_embedder_destroy(&a);
        tn_embedder_destroy(&b);
    }
    tn_embedder *e = NULL;
    tn_embedder_config cfg;
    tn_embedder_config_default(&cfg);
    cfg.pooling = TN_POOLING_RANK;
    TEST_CHECK_STATUS(tn_embedder_create(model, &cfg, &e), TN_ERR_UNSUPPORTED);
    tn_model_unref(&model);
}

// Thousands of texts of mixed lengths: batches are filled whatever the order, rows come back in the order of
// the texts, and each is that of the text alone.
static void test_many(bool causal, int32_t pooling)
{
    enum { MANY = 5000, KINDS = 23, ROWS = MANY * 2 };
    static tiny_file f;
    static tn_text_ids texts[MANY];
    static float alone[KINDS * CONTEXT * 64], got[ROWS * CONTEXT];
    int32_t ids[KINDS + CONTEXT], sizes_of[KINDS];
    uint32_t state = 3;
    for (int32_t i = 0; i < KINDS + CONTEXT; i++) {
        state = state * 1664525u + 1013904223u;
        ids[i] = (int32_t)((state >> 8) % TINY_MODEL_VOCAB);
    }
    if (causal)
        tiny_describe(&tiny_shapes[TINY_LLAMA], &f);
    else
        describe(&f, "bert", false);
    tn_model *model = open_file(ctx, &f, TN_OK);
    tn_embedder_config cfg;
    tn_embedder_config_default(&cfg);
    cfg.pooling = pooling;
    cfg.n_batch = 48;
    cfg.normalize = 0;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    tn_embedder *e = NULL;
    TEST_CHECK_STATUS(tn_embedder_create(model, &cfg, &e), TN_OK);
    size_t width = (size_t)tn_embedder_width(e);
    for (int32_t i = 0; i < KINDS; i++) {
        sizes_of[i] = 1 + (i < 4 ? 4 * i * i : i * i % 7); // some long texts, many short ones
        TEST_CHECK_STATUS(
            tn_embedder_run(e, &(tn_text_ids){ids + i, sizes_of[i]}, 1, alone + (size_t)i * CONTEXT * width),
            TN_OK);
    }
    size_t n = pooling == TN_POOLING_NONE ? 400 : MANY, row = 0, wrong = 0;
    for (size_t i = 0; i < n; i++) {
        size_t kind = i * 7 % KINDS;
        texts[i] = (tn_text_ids){ids + kind, sizes_of[kind]};
    }
    TEST_CHECK_STATUS(tn_embedder_run(e, texts, (int32_t)n, got), TN_OK);
    for (size_t i = 0; i < n; i++) {
        size_t rows = pooling == TN_POOLING_NONE ? (size_t)texts[i].n : 1;
        const float *want = alone + (i * 7 % KINDS) * CONTEXT * width;
        for (size_t k = 0; k < rows * width; k++)
            if (!(fabsf(got[row * width + k] - want[k]) <= 2e-5f)) wrong++;
        row += rows;
    }
    if (!TEST_CHECK(wrong == 0)) printf("    causal %d, pooling %d: %zu values\n", causal, pooling, wrong);
    tn_embedder_destroy(&e);
    tn_model_unref(&model);
}

static const tn_embedder_config bad_configs[] = {
    {.pooling = 5, .n_batch = 1, .n_seq = 1},
    {.pooling = -2, .n_batch = 1, .n_seq = 1},
    {.pooling = 1, .n_batch = -1, .n_seq = 1},
    {.pooling = 1, .n_batch = 65537, .n_seq = 1},
    {.pooling = 1, .n_batch = 1, .n_seq = -1},
    {.pooling = 1, .n_batch = 1, .n_seq = 257},
    {.pooling = 1, .n_batch = 1, .n_seq = 1, .max_tokens = -1},
    {.pooling = 1, .n_batch = 1, .n_seq = 1, .precision = -1},
    {.pooling = 1, .n_batch = 1, .n_seq = 1, .precision = TN_PRECISION_COUNT},
};

static void test_refused(void)
{
    static tiny_file f;
    describe(&f, "bert", false);
    tn_model *model = open_file(ctx, &f, TN_OK);
    for (size_t i = 0; i < TN_COUNT(bad_configs); i++) {
        tn_embedder_config cfg = bad_configs[i];
        tn_embedder *e = NULL;
        cfg.struct_size = sizeof cfg;
        TEST_CHECK_STATUS(tn_embedder_create(model, &cfg, &e), TN_ERR_ARG);
    }
    int32_t ids[CONTEXT + 1] = {1}, wrong[] = {TINY_MODEL_VOCAB};
    float out[2 * WIDTH];
    tn_embedder *e = make(model, TN_POOLING_MEAN, 16, 1);
    TEST_CHECK(tn_embedder_max_tokens(e) == CONTEXT);
    TEST_CHECK_STATUS(tn_embedder_run(e, &(tn_text_ids){ids, CONTEXT + 1}, 1, out), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_embedder_run(e, &(tn_text_ids){ids, 0}, 1, out), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_embedder_run(e, &(tn_text_ids){wrong, 1}, 1, out), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_embedder_run(e, NULL, 1, out), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_embedder_run(e, NULL, 0, out), TN_OK);
    tn_embedder_cancel(e, 1);
    TEST_CHECK_STATUS(tn_embedder_run(e, &(tn_text_ids){ids, 3}, 1, out), TN_ERR_CANCELLED);
    tn_embedder_cancel(e, 0);
    TEST_CHECK_STATUS(tn_embedder_run(e, &(tn_text_ids){ids, CONTEXT}, 1, out), TN_OK);
    tn_embedder_destroy(&e);

    // Sessions of whole texts: no logits, no generation, no text in parts.
    tn_session *s = NULL;
    tn_generation *g = NULL;
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_batch = 8;
    int32_t token;
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_OK);
    TEST_CHECK(tn_session_result(s) == TN_RESULT_HIDDEN && tn_session_width(s) == WIDTH);
    TEST_CHECK_STATUS(tn_generation_create(s, NULL, &g), TN_ERR_UNSUPPORTED);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, ids, 9), TN_ERR_CONTEXT_FULL);
    TEST_CHECK_STATUS(tn_session_feed(s, 0, ids, 8), TN_OK);
    TEST_CHECK(tn_session_length(s, 0) == 0 && tn_session_n_outputs(s) == 1);
    TEST_CHECK_STATUS(tn_session_best(s, 0, &token, NULL), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_session_eval(s, &FEED(0, 2, ids, TN_OUTPUT_NONE), 1), TN_ERR_ARG);
    tn_session_destroy(&s);
    cfg.result = TN_RESULT_SCORES;
    TEST_CHECK_STATUS(tn_session_create(model, &cfg, &s), TN_ERR_UNSUPPORTED);
    tn_model_unref(&model);

    tiny_drop_tensor(&f, "token_types.weight");
    open_file(ctx, &f, TN_ERR_MODEL);
    describe(&f, "bert", false);
    tiny_u32(&f, "pooling_type", 9);
    open_file(ctx, &f, TN_ERR_FORMAT);
}

// The N-th allocation fails, for many N: a status, nothing leaks, and the embedder still works.
static void test_allocations(void)
{
    static tiny_file f;
    int32_t ids[TOKENS];
    tn_text_ids texts[TEXTS];
    static float out[TEXTS * WIDTH];
    make_texts(ids, texts);
    describe(&f, "nomic-bert", false);
    counting count;
    tn_context *own = counting_context(&count);
    counting_start_threads(own);
    tn_model *model = open_file(own, &f, TN_OK);
    long live = count.live;
    bool done = false;
    for (long at = 0; !done && at < 5000; at += 1 + at / 16) {
        tn_embedder *e = NULL;
        count.fail_from = count.calls + at;
        count.fail_to = count.fail_from + 1;
        tn_status status = tn_embedder_create(model, NULL, &e);
        if (status == TN_OK) status = tn_embedder_run(e, texts, TEXTS, out);
        TEST_CHECK(status == TN_OK || status == TN_ERR_MEMORY);
        done = count.calls <= count.fail_from;
        count.fail_to = 0;
        if (e) TEST_CHECK_STATUS(tn_embedder_run(e, texts, TEXTS, out), TN_OK);
        tn_embedder_destroy(&e);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(done);
    tn_model_unref(&model);
    tn_context_destroy(&own);
    TEST_CHECK(count.live == 0);
}

int main(void)
{
    if (tn_context_create(NULL, &ctx) != TN_OK) return 1;
    test_poolings("bert");
    test_poolings("nomic-bert");
    test_classes();
    test_causal();
    for (int32_t pooling = TN_POOLING_NONE; pooling <= TN_POOLING_LAST; pooling++) {
        test_many(false, pooling);
        test_many(true, pooling);
    }
    test_refused();
    test_allocations();
    tn_context_destroy(&ctx);
    return test_done();
}
