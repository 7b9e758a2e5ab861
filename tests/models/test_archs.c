// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Files of every architecture that is a row of known features: a sound one runs, in one piece and in chunks,
// in the memory that was predicted. Each tensor that is missing or misshapen and each required key that is
// missing is refused by its name; what may be absent may be. Whether the numbers are right: test_golden.c and
// oracle.py.
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>

static counting count;
static tn_context *ctx;
static tiny_file *f;
static long base_live;

enum { E = 64, H = 4, G = 2, D = 16, F = 96, X = 4, S = 32, LAYERS = 4, CONTEXT = 128, N_TOKENS = 40 };

// Tensors as "name dimensions", outermost first: E width, Q and K rows of queries and keys, H and G heads of
// both, D head size, F and 2F feed-forward, X experts, S their feed-forward, V vocabulary, C context. No dot
// in a name: ".weight"; ? before it: optional.
#define SEPARATE                                                                                             \
    "attn_q Q E,attn_k K E,attn_v K E,attn_output E Q,?attn_q.bias Q,?attn_k.bias K,?attn_v.bias "           \
    "K,?attn_output.bias E,"
#define FUSED    "attn_qkv 3Q E,attn_output E Q,?attn_qkv.bias 3Q,?attn_output.bias E,"
#define GATED    "ffn_gate F E,ffn_up F E,ffn_down E F,"
#define PLAIN    "ffn_up F E,ffn_down E F,?ffn_up.bias F,?ffn_down.bias E,"
#define EXPERTS  "ffn_gate_inp X E,ffn_gate_exps X S E,ffn_up_exps X S E,ffn_down_exps X E S,"
#define WIDE     "ffn_gate_inp X E,ffn_gate_exps X F E,ffn_up_exps X F E,ffn_down_exps X E F,"
#define SHARED   "ffn_gate_shexp F E,ffn_up_shexp F E,ffn_down_shexp E F,"
#define NORMS    "attn_norm E,ffn_norm E,"
#define NORMS_B  NORMS "?attn_norm.bias E,?ffn_norm.bias E,"
#define POST     "post_attention_norm E,post_ffw_norm E,"
#define QK       "attn_q_norm D,attn_k_norm D,"
#define TIED     "token_embd V E,output_norm E,"
#define MAYBE    TIED "?output V E,"
#define UNTIED   TIED "output V E,"
#define WINDOW   "attention.sliding_window"

typedef struct row {
    const char *arch;
    bool rms, experts;
    const char *globals, *layer;
    const char *keys[3]; // that are required beyond those of all
} row;

// clang-format off
static const row rows[] = {
    {"llama",      true,  false, MAYBE "?rope_freqs R,", NORMS SEPARATE GATED, {0}},
    {"mistral3",   true,  true,  MAYBE "?rope_freqs R,", NORMS SEPARATE WIDE, {0}},
    {"granite",    true,  false, MAYBE "?rope_freqs R,", NORMS SEPARATE GATED, {"logit_scale"}},
    {"granitemoe", true,  true,  MAYBE "?rope_freqs R,", NORMS SEPARATE WIDE, {"logit_scale"}},
    {"smollm3",    true,  false, MAYBE, NORMS SEPARATE GATED, {0}},
    {"exaone",     true,  false, MAYBE "?rope_freqs R,", NORMS SEPARATE GATED, {0}},
    {"qwen2",      true,  false, MAYBE, NORMS SEPARATE GATED, {0}},
    {"qwen2moe",   true,  true,  UNTIED, NORMS SEPARATE EXPERTS SHARED "ffn_gate_inp_shexp E,", {0}},
    {"qwen3",      true,  false, MAYBE, NORMS SEPARATE QK GATED, {0}},
    {"qwen3moe",   true,  true,  MAYBE, NORMS SEPARATE QK EXPERTS, {0}},
    {"gemma",      true,  false, TIED, NORMS SEPARATE GATED, {0}},
    {"gemma2",     true,  false, TIED, NORMS SEPARATE POST GATED, {0}},
    {"gemma3",     true,  false, MAYBE, NORMS SEPARATE QK POST GATED, {0}},
    {"glm4",       true,  false, MAYBE, NORMS SEPARATE POST "ffn_up 2F E,ffn_down E F,", {0}},
    {"phi3",       true,  false, MAYBE, NORMS FUSED "ffn_up 2F E,ffn_down E F,", {0}},
    {"olmo2",      true,  false, UNTIED, SEPARATE "attn_q_norm Q,attn_k_norm K," POST GATED, {0}},
    {"gpt2",       false, false, MAYBE "?output_norm.bias E,position_embd C E,", NORMS_B FUSED PLAIN, {0}},
    {"starcoder2", false, false, MAYBE, NORMS_B SEPARATE PLAIN, {0}},
    {"phi2",       false, false, UNTIED "?output.bias V,", "attn_norm E,?attn_norm.bias E," SEPARATE PLAIN,
     {0}},
    {"gptneox",    false, false, UNTIED, NORMS_B FUSED PLAIN, {"use_parallel_residual"}},
    {"falcon",     false, false, MAYBE, "attn_norm E,?attn_norm_2 E," FUSED PLAIN, {0}},
    {"mpt",        false, false, MAYBE "?position_embd C E,",
     NORMS FUSED "?attn_q_norm Q,?attn_k_norm Q," PLAIN "?ffn.act.scales F,", {0}},
    {"bloom",      false, false, MAYBE "token_embd_norm E,?token_embd_norm.bias E,", NORMS_B FUSED PLAIN,
     {0}},
    {"stablelm",   false, false, UNTIED, "attn_norm E,?ffn_norm E," SEPARATE
     "?attn_q_norm H D,?attn_k_norm G D," GATED, {0}},
    {"command-r",  false, false, TIED, "attn_norm E," SEPARATE "?attn_q_norm H D,?attn_k_norm G D," GATED,
     {0}},
    {"cohere2",    false, false, TIED, "attn_norm E," SEPARATE GATED, {"logit_scale", WINDOW}},
};
// clang-format on

// --- description -----------------------------------------------------------------------------------

static int64_t extent(const row *r, const char *text)
{
    bool fused = strstr(r->layer, "attn_qkv") != NULL; // as many heads for keys as for queries then
    switch (*text) {
    case 'E': return E;
    case 'Q': return H * D;
    case 'K': return (fused ? H : G) * D;
    case 'H': return H;
    case 'G': return G;
    case 'D': return D;
    case 'F': return F;
    case 'X': return X;
    case 'S': return S;
    case 'R': return D / 2;
    case 'V': return TINY_MODEL_VOCAB;
    case 'C': return CONTEXT;
    case '2': return 2 * F;
    case '3': return 3 * H * D;
    default: abort();
    }
}

// Adds one tensor, "?attn_norm.bias E" and so on; gives the character behind it.
static const char *add_tensor(const row *r, int32_t layer, const char *text)
{
    char name[48];
    int64_t ne[3] = {0};
    text += *text == '?';
    size_t n = strcspn(text, " ");
    bool dot = memchr(text, '.', n) != NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)n, text, dot ? "" : ".weight");
    text += n;
    for (int32_t i = 0; *text == ' ' && i < 3; i++) {
        ne[i] = extent(r, text + 1);
        text += 1 + strcspn(text + 1, " ,");
    }
    tiny_add_tensor(f, layer, name, ne[0], ne[1], ne[2]);
    return text + 1;
}

static void describe_keys(const row *r)
{
    bool fused = strstr(r->layer, "attn_qkv") != NULL;
    tiny_str(f, "general.architecture", r->arch);
    tiny_str(f, "general.name", "tiny");
    tiny_u32(f, "vocab_size", TINY_MODEL_VOCAB);
    tiny_u32(f, "context_length", CONTEXT);
    tiny_u32(f, "embedding_length", E);
    tiny_u32(f, "block_count", LAYERS);
    tiny_u32(f, "feed_forward_length", F);
    tiny_u32(f, "attention.head_count", H);
    tiny_u32(f, "attention.head_count_kv", fused ? H : G);
    tiny_f32(f, r->rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5f);
    for (int32_t i = 0; i < 3 && r->keys[i]; i++) {
        if (strcmp(r->keys[i], WINDOW) == 0) tiny_u32(f, WINDOW, 12);
        else if (strcmp(r->keys[i], "logit_scale") == 0) tiny_f32(f, r->keys[i], 0.5f);
        else tiny_bool(f, r->keys[i], true);
    }
    if (!r->experts) return;
    tiny_u32(f, "expert_count", X);
    tiny_u32(f, "expert_used_count", X); // all: rounding never chooses others
    if (strstr(r->layer, "X S E")) tiny_u32(f, "expert_feed_forward_length", S);
}

static void describe(const row *r)
{
    *f = (tiny_file){.shape = {.arch = r->arch, .dtype = TN_TYPE_F32}};
    describe_keys(r);
    for (const char *t = r->globals; *t;) t = add_tensor(r, -1, t);
    for (int32_t i = 0; i < LAYERS; i++)
        for (const char *t = r->layer; *t;) t = add_tensor(r, i, t);
}

// Whether the table calls it optional.
static bool is_optional(const row *r, const char *name)
{
    char text[80];
    const char *bare = strncmp(name, "blk.", 4) == 0 ? name + 6 : name;
    size_t n = strlen(bare);
    bool plain = n > 7 && strcmp(bare + n - 7, ".weight") == 0;
    snprintf(text, sizeof text, "?%.*s ", (int)(plain ? n - 7 : n), bare);
    return strstr(r->globals, text) || strstr(r->layer, text);
}

// --- sound files -----------------------------------------------------------------------------------

static tn_status open_file(tn_model **out)
{
    size_t size;
    void *data = tiny_write(ctx, f, &size);
    return tn_model_open_memory(ctx, data, size, "tiny", NULL, out);
}

// Logits of the last token, `chunk` tokens at a time.
static void logits(tn_model *m, int32_t chunk, int32_t fusion, float *out)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    int32_t ids[N_TOKENS];
    for (int32_t i = 0; i < N_TOKENS; i++) ids[i] = (i * 37 + 11) % TINY_MODEL_VOCAB;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 64;
    cfg.n_batch = chunk;
    cfg.fusion = fusion;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    TEST_CHECK_STATUS(tn_session_create(m, &cfg, &s), TN_OK);
    if (s) TEST_CHECK_STATUS(tn_session_feed(s, 0, ids, N_TOKENS), TN_OK);
    if (s) memcpy(out, tn_session_logits(s, 0), TINY_MODEL_VOCAB * sizeof *out);
    tn_session_destroy(&s);
}

static double rel_l2(const float *got, const float *want)
{
    double diff = 0.0, norm = 0.0;
    for (int32_t i = 0; i < TINY_MODEL_VOCAB; i++) {
        double d = (double)got[i] - want[i];
        diff += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(diff / norm);
}

static void check_memory(const row *r, tn_model *m)
{
    tn_session_config cfg;
    tn_session_memory memory = {.struct_size = sizeof memory};
    tn_session *s = NULL;
    size_t before = tn_context_memory(ctx);
    tn_session_config_default(&cfg);
    cfg.n_ctx = CONTEXT;
    cfg.n_batch = 64;
    TEST_CHECK_STATUS(tn_session_predict(m, &cfg, &memory), TN_OK);
    TEST_CHECK_STATUS(tn_session_create(m, &cfg, &s), TN_OK);
    // Small objects are a large share of a small session: 5 % and 64 KiB.
    double got = (double)(tn_context_memory(ctx) - before), want = (double)memory.total;
    if (!TEST_CHECK(fabs(got - want) <= 0.05 * want + 65536.0))
        printf("    %s: %.0f bytes, predicted %.0f\n", r->arch, got, want);
    tn_session_destroy(&s);
}

static void test_sound(const row *r)
{
    static float whole[TINY_MODEL_VOCAB], other[TINY_MODEL_VOCAB];
    static const int32_t chunks[] = {1, 7, 16};
    tn_model *m = NULL;
    describe(r);
    if (!TEST_CHECK_STATUS(open_file(&m), TN_OK)) return;
    logits(m, 64, 1, whole);
    for (size_t i = 0; i < 4; i++) {
        logits(m, i < 3 ? chunks[i] : 64, i < 3, other);
        double err = rel_l2(other, whole);
        if (!TEST_CHECK(err < 2e-5)) printf("    %s, variant %zu: %g\n", r->arch, i, err);
    }
    check_memory(r, m);
    tn_model_unref(&m);
}

// --- damaged files ---------------------------------------------------------------------------------

static void check_refused(const char *culprit)
{
    char text[1024];
    tn_model *m = NULL;
    tn_status status = open_file(&m);
    tn_model_unref(&m);
    tn_context_error(ctx, text, sizeof text);
    bool ok = TEST_CHECK(status == TN_ERR_MODEL || status == TN_ERR_FORMAT) &&
              TEST_CHECK(strstr(text, culprit) != NULL);
    if (!ok) printf("    %s without %s: %s: %s\n", f->shape.arch, culprit, tn_status_text(status), text);
    TEST_CHECK(count.live == base_live);
}

static void test_tensors(const row *r)
{
    describe(r);
    for (int32_t i = 0, n = f->n_tensors; i < n; i++) {
        char name[64];
        describe(r);
        memcpy(name, f->tensors[i].name, sizeof name);
        if (strncmp(name, "blk.", 4) == 0 && name[4] != '0' + LAYERS - 1) continue;
        // Without its qkv or router the layer is taken for one of another kind: then that kind's tensor is
        // named.
        bool kind = strstr(name, "attn_qkv.weight") || strstr(name, "ffn_gate_inp.weight");
        tiny_drop_tensor(f, name);
        if (is_optional(r, name)) {
            tn_model *m = NULL;
            if (!TEST_CHECK_STATUS(open_file(&m), TN_OK)) printf("    %s without %s\n", r->arch, name);
            tn_model_unref(&m);
        } else {
            check_refused(kind ? "blk.3." : name);
        }
        describe(r);
        tiny_tensor *t = tiny_tensor_at(f, name);
        if (strcmp(name, "position_embd.weight") == 0) t->ne[1]++; // rows beyond the context are no harm
        else t->ne[0]++;
        check_refused(name);
        describe(r);
        t = tiny_tensor_at(f, name);
        t->ne[t->n_dims++] = 2;
        check_refused(name);
    }
}

static void test_keys(const row *r)
{
    const char *keys[] = {"context_length",
                          "embedding_length",
                          "block_count",
                          "attention.head_count",
                          "vocab_size",
                          r->rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                          r->experts ? "expert_used_count" : "feed_forward_length",
                          r->keys[0],
                          r->keys[1],
                          r->keys[2]};
    for (size_t i = 0; i < TN_COUNT(keys); i++) {
        if (!keys[i]) continue;
        describe(r);
        tiny_drop_key(f, keys[i]);
        check_refused(keys[i]);
    }
}

// --- names -----------------------------------------------------------------------------------------

// Names that are near to one of a row, and what is named with them.
static void test_unknown(void)
{
    static const char *const cases[][2] = {{"lama", "llama"},
                                           {"command_r", "command-r"},
                                           {"cohere", "cohere2"},
                                           {"OLMo2", "olmo2"},
                                           {"qwen2_moe", "qwen2moe"},
                                           {"granite-moe", "granitemoe"},
                                           {"command-r\x01", "command-r"},
                                           {"gptneox ", "gptneox"}};
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        char text[1024];
        tn_model *m = NULL;
        describe(&rows[0]);
        tiny_str(f, "general.architecture", cases[i][0]);
        TEST_CHECK_STATUS(open_file(&m), TN_ERR_MODEL);
        tn_context_error(ctx, text, sizeof text);
        const char *near = strstr(text, "nearest");
        bool ok = TEST_CHECK(strstr(text, "not supported") && near && strstr(near, cases[i][1]));
        if (!ok) printf("    %s: %s\n", cases[i][0], text);
    }
    char text[1024], long_name[100] = "";
    tn_model *m = NULL;
    describe(&rows[0]);
    memset(long_name, 'x', 70);
    tiny_str(f, "general.architecture", long_name);
    TEST_CHECK_STATUS(open_file(&m), TN_ERR_MODEL);
    tn_context_error(ctx, text, sizeof text);
    const char *begin = strstr(text, "\"x");
    TEST_CHECK(begin && strspn(begin + 1, "x") == 64); // no more of it
}

// What is said of a model whose layers have several widths: that of the first.
static void test_info(void)
{
    tn_model_info info = {.struct_size = sizeof info};
    tn_model *m = tiny_model_open(ctx, &tiny_shapes[TINY_GEMMA4]);
    tn_model_info_get(m, &info);
    TEST_CHECK(info.n_ff == (int32_t)tiny_gemma4_ff[0] && tiny_gemma4_ff[1] != tiny_gemma4_ff[0]);
    tn_model_unref(&m);
}

int main(void)
{
    ctx = counting_context(&count);
    f = malloc(sizeof *f);
    if (!f) abort();
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        test_sound(&rows[i]);
        base_live = count.live;
        test_tensors(&rows[i]);
        test_keys(&rows[i]);
    }
    test_unknown();
    test_info();
    free(f);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
