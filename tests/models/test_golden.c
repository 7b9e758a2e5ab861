// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Golden models: logits and greedy continuations that another implementation computed, through one
// prefill, chunks and decoding, with fusion on and off, all cache types, and the references.
//
//     test_golden FOLDER [--isa LEVEL | --backend NAME | --openblas] [--model NAME,...] [--quick] [--brief]
//         [--strict] [-v]
//
// --brief: pieces and decoding stop after BRIEF_TOKENS tokens, and nothing continues the text. It is for
// tools that make each launch of a kernel slow. --strict: it is an error if a device's kernel is found to be
// wrong and replaced by another, whose results are right.
#include "backends/cpu/openblas/openblas.h"
#include "tests/json.h"
#include "tests/models/feeds.h"
#include "tests/unit/test.h"

#include <math.h>
#include <tenon/embed.h>
#include <tenon/session.h>

enum { BRIEF_TOKENS = 9 };

static bool verbose, brief;
static const char *backend; // NULL: the processor
static int n_skipped;

typedef struct golden {
    const char *folder, *name, *file;
    int32_t *tokens, n_tokens;
    float *logits;
    int32_t n_vocab;
    const json *greedy, *margins;
    double strict, natural;
    bool is_f32;
    int32_t n_ctx;
} golden;

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

static void report(tn_context *ctx, const golden *g, const char *what)
{
    char text[512];
    tn_context_error(ctx, text, sizeof text);
    printf("%s: %s: %s\n", g->name, what, text);
}

// Logits of all tokens, fed `chunk` at a time.
static bool run_logits(tn_context *ctx, tn_model *model, const golden *g, const tn_session_config *cfg,
                       int32_t chunk, bool timed, float *out)
{
    tn_session *s = NULL;
    bool ok = tn_session_create(model, cfg, &s) == TN_OK;
    if (ok && timed) tn_session_profile(s, 1);
    for (int32_t at = 0; ok && at < g->n_tokens; at += chunk) {
        int32_t n = g->n_tokens - at < chunk ? g->n_tokens - at : chunk;
        tn_feed f = FEED(0, n, g->tokens + at, TN_OUTPUT_ALL);
        ok = tn_session_eval(s, &f, 1) == TN_OK;
        for (int32_t i = 0; ok && i < n; i++) {
            const float *logits = tn_session_logits(s, i);
            if (logits)
                memcpy(out + (size_t)(at + i) * (size_t)g->n_vocab, logits, (size_t)g->n_vocab * sizeof *out);
            ok = logits != NULL;
        }
    }
    if (!ok) report(ctx, g, "run failed");
    tn_session_destroy(&s);
    return ok;
}

// Greedy continuation equals the peer's as long as its margin is larger than what rounding can move.
static bool check_greedy(tn_context *ctx, tn_model *model, const golden *g, const tn_session_config *cfg,
                         double tolerance)
{
    tn_session *s = NULL;
    bool ok =
        tn_session_create(model, cfg, &s) == TN_OK && tn_session_feed(s, 0, g->tokens, g->n_tokens) == TN_OK;
    if (!ok) report(ctx, g, "greedy failed");
    for (size_t i = 0; ok && i < g->greedy->count; i++) {
        const float *l = tn_session_logits(s, 0);
        int32_t best = 0;
        double norm = 0.0;
        for (int32_t k = 0; k < g->n_vocab; k++) {
            if (l[k] > l[best]) best = k;
            norm += (double)l[k] * l[k];
        }
        int32_t want = (int32_t)g->greedy->items[i].number;
        // Deviations of single logits: a few times the root mean square of the allowed relative error.
        double margin = 8.0 * tolerance * sqrt(norm / g->n_vocab);
        if (g->margins && g->margins->items[i].number < margin) break;
        if (best != want) {
            printf("%s: greedy token %zu is %d, must be %d\n", g->name, i, best, want);
            ok = false;
        }
        if (ok && i + 1 < g->greedy->count) ok = tn_session_feed(s, 0, &want, 1) == TN_OK;
    }
    tn_session_destroy(&s);
    return ok;
}

typedef struct variant {
    const char *name;
    tn_dtype cache;
    int32_t chunk, fusion;
    bool strict; // f32 cache: the strict bound for F32 models, and for references
} variant;

static void check_variant(tn_context *ctx, tn_model *model, const golden *g, const variant *v, bool reference,
                          float *out)
{
    tn_session_config cfg;
    tn_session_config_default(&cfg);
    cfg.n_ctx = g->n_ctx;
    cfg.cache_type_k = cfg.cache_type_v = v->cache;
    cfg.fusion = v->fusion;
    golden part = *g;
    if (brief && v->chunk < g->n_tokens && g->n_tokens > BRIEF_TOKENS) part.n_tokens = BRIEF_TOKENS;
    g = &part;
    size_t n = (size_t)g->n_tokens * (size_t)g->n_vocab;
    memset(out, 0, n * sizeof *out);
    bool ok = run_logits(ctx, model, g, &cfg, v->chunk, false, out);
    double err = ok ? rel_l2(out, g->logits, n) : INFINITY;
    // The strict bound is for f32 arithmetic in f32 storage: on other devices than the processor the natural
    // one holds.
    bool strict = v->strict && (g->is_f32 || reference) && !backend;
    // A q8_0 cache rounds K and V to 8 bits: the natural bounds are for f16.
    double bound = strict ? g->strict : v->cache == TN_TYPE_Q8_0 ? fmax(g->natural, 0.02) : g->natural;
    if (verbose || !(err <= bound))
        printf("%-20s %-28s rel_l2 %.3g (bound %.3g)%s\n", g->name, v->name, err, bound,
               err <= bound ? "" : "  FAIL");
    TEST_CHECK(err <= bound);
    if (backend && ok &&
        v->cache == TN_TYPE_F16) { // step by step, with times, the bits are those of the whole plan
        float *again = malloc(n * sizeof *again);
        TEST_CHECK(run_logits(ctx, model, g, &cfg, v->chunk, true, again) &&
                   memcmp(out, again, n * sizeof *out) == 0);
        free(again);
    }
    if (v->cache != TN_TYPE_Q8_0 && g->greedy && !brief)
        TEST_CHECK(check_greedy(ctx, model, g, &cfg, strict ? g->strict : g->natural));
}

static void check_model(tn_context *ctx, const golden *g, bool reference, bool quick)
{
    static const variant variants[] = {
        {"prefill f32", TN_TYPE_F32, 64, 1, true},         {"chunks of 7 f32", TN_TYPE_F32, 7, 1, true},
        {"decode f32", TN_TYPE_F32, 1, 1, true},           {"chunks of 16 f32", TN_TYPE_F32, 16, 1, true},
        {"prefill f32 unfused", TN_TYPE_F32, 64, 0, true}, {"decode f32 unfused", TN_TYPE_F32, 1, 0, true},
        {"prefill f16", TN_TYPE_F16, 64, 1, false},        {"chunks of 7 f16", TN_TYPE_F16, 7, 1, false},
        {"decode f16", TN_TYPE_F16, 1, 1, false},          {"prefill q8_0", TN_TYPE_Q8_0, 64, 1, false},
        {"chunks of 7 q8_0", TN_TYPE_Q8_0, 7, 1, false},   {"decode q8_0", TN_TYPE_Q8_0, 1, 1, false},
        {"prefill bf16", TN_TYPE_BF16, 64, 1, false},
    };
    char path[512];
    snprintf(path, sizeof path, "%s/%s", g->folder, g->file);
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(ctx, backend ? backend : "cpu");
    tn_status status = tn_model_open(ctx, path, &cfg, &model);
    if (status == TN_ERR_MODEL) {
        char text[512];
        tn_context_error(ctx, text, sizeof text);
        printf("SKIP: %s: %s\n", g->name, text);
        n_skipped++;
        return;
    }
    TEST_CHECK(status == TN_OK);
    if (status != TN_OK) {
        report(ctx, g, "open failed");
        return;
    }
    float *out = malloc((size_t)g->n_tokens * (size_t)g->n_vocab * sizeof *out);
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        const variant *v = &variants[i];
        if (v->cache == TN_TYPE_BF16) { // bf16 keeps 8 bits: bound by its own step
            golden loose = *g;
            loose.natural = fmax(g->natural, 0.02);
            loose.greedy = NULL;
            check_variant(ctx, model, &loose, v, reference, out);
        } else if (!quick || i == 0 || i == 2 || i == 7) {
            check_variant(ctx, model, g, v, reference, out);
        }
    }
    free(out);
    tn_model_unref(&model);
}

// --- encoders ----------------------------------------------------------------------------------------

// One file of expected rows of an entry ("token_embeddings", "embedding"); n: its values.
static float *read_rows(const json *e, const char *folder, const char *field, size_t *n)
{
    const json *at = json_get(e, field), *shape = at ? json_get(at, "shape") : NULL;
    if (!shape) return NULL;
    char path[512];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", folder, json_get(at, "file")->text);
    *n = (size_t)(shape->items[0].number * shape->items[1].number);
    float *rows = (float *)(void *)json_read_file(path, &size);
    if (rows && size == *n * sizeof *rows) return rows;
    free(rows);
    return NULL;
}

static void check_rows(const golden *g, const char *what, bool ok, const float *got, const float *want,
                       size_t n, double bound)
{
    double err = ok ? rel_l2(got, want, n) : INFINITY;
    if (verbose || !(err <= bound))
        printf("%-20s %-28s rel_l2 %.3g (bound %.3g)%s\n", g->name, what, err, bound,
               err <= bound ? "" : "  FAIL");
    TEST_CHECK(err <= bound);
}

static bool rows_of_session(tn_model *model, const golden *g, const tn_session_config *cfg, float *out,
                            size_t n)
{
    tn_session *s = NULL;
    tn_feed f = FEED(0, g->n_tokens, g->tokens, TN_OUTPUT_ALL);
    bool ok = tn_session_create(model, cfg, &s) == TN_OK && tn_session_eval(s, &f, 1) == TN_OK;
    ok = ok && tn_session_logits(s, 0) && n == (size_t)tn_session_n_outputs(s) * (size_t)tn_session_width(s);
    if (ok) memcpy(out, tn_session_logits(s, 0), n * sizeof *out);
    tn_session_destroy(&s);
    return ok;
}

// The pooled vector of the text alone, and of the same text in the middle of others.
static bool rows_of_embedder(tn_model *model, const golden *g, int32_t fusion, bool alone, float *out,
                             size_t n)
{
    tn_embedder_config cfg;
    tn_embedder_config_default(&cfg);
    cfg.normalize = 0;
    cfg.fusion = fusion;
    tn_embedder *e = NULL;
    tn_text_ids texts[3] = {{g->tokens, 5}, {g->tokens, g->n_tokens}, {g->tokens + 3, 1}};
    bool ok = tn_embedder_create(model, &cfg, &e) == TN_OK && (size_t)tn_embedder_width(e) == n;
    float *rows = malloc(3 * n * sizeof *rows);
    ok = ok && tn_embedder_run(e, alone ? texts + 1 : texts, alone ? 1 : 3, rows) == TN_OK;
    if (ok) memcpy(out, alone ? rows : rows + n, n * sizeof *out);
    free(rows);
    tn_embedder_destroy(&e);
    return ok;
}

static void check_encoder(tn_context *ctx, const golden *g, const json *e, bool reference)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", g->folder, g->file);
    tn_model *model = NULL;
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.device = tn_context_device_by_name(ctx, backend ? backend : "cpu");
    size_t n = 0, n_pooled = 0;
    float *want = read_rows(e, g->folder, "token_embeddings", &n),
          *pooled = read_rows(e, g->folder, "embedding", &n_pooled);
    float *got = malloc((n + n_pooled + 1) * sizeof *got);
    bool ok = want && pooled && tn_model_open(ctx, path, &cfg, &model) == TN_OK;
    TEST_CHECK(ok);
    if (!ok) report(ctx, g, "open failed");
    double bound = (g->is_f32 || reference) && !backend ? g->strict : g->natural;
    for (int32_t fusion = 0; ok && fusion < 2; fusion++) {
        tn_session_config s;
        tn_session_config_default(&s);
        s.fusion = fusion;
        check_rows(g, fusion ? "tokens" : "tokens unfused", rows_of_session(model, g, &s, got, n), got, want,
                   n, bound);
        check_rows(g, "pooled", rows_of_embedder(model, g, fusion, true, got, n_pooled), got, pooled,
                   n_pooled, bound);
        check_rows(g, "pooled among others", rows_of_embedder(model, g, fusion, false, got, n_pooled), got,
                   pooled, n_pooled, bound);
    }
    free(want);
    free(pooled);
    free(got);
    tn_model_unref(&model);
}

static bool read_entry(const json *e, const char *folder, golden *g)
{
    const json *tokens = json_get(e, "tokens"), *logits = json_get(e, "logits"),
               *tol = json_get(e, "tolerance");
    *g = (golden){.folder = folder, .name = json_get(e, "name")->text, .file = json_get(e, "file")->text};
    g->n_tokens = (int32_t)tokens->count;
    g->tokens = malloc(tokens->count * sizeof *g->tokens);
    for (size_t i = 0; i < tokens->count; i++) g->tokens[i] = (int32_t)tokens->items[i].number;
    g->strict = json_get(tol, "strict_rel_l2")->number;
    g->natural = json_get(tol, "natural_rel_l2")->number;
    g->is_f32 = json_get(e, "quant") == NULL;
    g->greedy = json_get(e, "greedy");
    g->margins = json_get(e, "greedy_margins");
    g->n_ctx = (int32_t)json_get(e, "n_ctx")->number;
    if (!logits) return true; // an encoder
    g->n_vocab = (int32_t)json_get(logits, "shape")->items[1].number;
    char path[512];
    size_t size = 0;
    snprintf(path, sizeof path, "%s/%s", folder, json_get(logits, "file")->text);
    g->logits = (float *)(void *)json_read_file(path, &size);
    return g->logits && size == (size_t)g->n_tokens * (size_t)g->n_vocab * sizeof(float);
}

// What is asked for, or the reason why it is not there.
static bool has_device(tn_context *ctx, bool openblas)
{
    bool found = !backend || tn_context_device_by_name(ctx, backend);
    if (!found) printf("SKIP: no %s device\n", backend);
    if (!found || !openblas) return found;
    found = tn_openblas_force(tn_openblas_of(tn_context_device_by_name(ctx, "cpu")));
    if (!found) printf("SKIP: there is no OpenBLAS that can be used\n");
    return found;
}

// Whether a list with commas has the name.
static bool lists(const char *names, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = names; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (strncmp(at, name, n) == 0 && (at[n] == ',' || at[n] == '\0')) return true;
    return false;
}

// What is compared, and with what.
typedef struct options {
    const char *isa, *only, *folder;
    bool quick, openblas, strict;
} options;

static options read_options(int argc, char **argv)
{
    options o = {.folder = "."};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--isa") == 0 && i + 1 < argc)
            o.isa = argv[++i];
        else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
            backend = argv[++i];
        else if (strcmp(argv[i], "--model") == 0 && i + 1 < argc)
            o.only = argv[++i];
        else if (strcmp(argv[i], "--quick") == 0)
            o.quick = true;
        else if (strcmp(argv[i], "--brief") == 0)
            brief = true;
        else if (strcmp(argv[i], "--openblas") == 0)
            o.openblas = true;
        else if (strcmp(argv[i], "--strict") == 0)
            o.strict = true;
        else if (strcmp(argv[i], "-v") == 0)
            verbose = true;
        else
            o.folder = argv[i];
    }
    return o;
}

int main(int argc, char **argv)
{
    options o = read_options(argc, argv);
    char path[512];
    snprintf(path, sizeof path, "%s/manifest.json", o.folder);
    char *text = json_read_file(path, NULL);
    if (!text) {
        printf("SKIP: %s not found\n", path);
        return 77;
    }
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = o.isa;
    cfg.strict = o.strict;
    tn_context *ctx = NULL;
    tn_status status = tn_context_create(&cfg, &ctx);
    if (status == TN_ERR_UNSUPPORTED) {
        printf("SKIP: this processor has no %s\n", o.isa);
        free(text);
        return 77;
    }
    if (status == TN_OK && !has_device(ctx, o.openblas)) {
        tn_context_destroy(&ctx);
        free(text);
        return 77;
    }
    TEST_CHECK(status == TN_OK);
    json root;
    json_parse(text, &root);
    const json *models = json_get(&root, "models");
    for (size_t i = 0; ctx && models && i < models->count; i++) {
        golden g;
        if (o.only && !lists(o.only, json_get(&models->items[i], "name")->text)) continue;
        bool reference = o.isa && strcmp(o.isa, "reference") == 0;
        if (!TEST_CHECK(read_entry(&models->items[i], o.folder, &g)))
            printf("%s: no expected values\n", g.name);
        else if (g.logits)
            check_model(ctx, &g, reference, o.quick);
        else
            check_encoder(ctx, &g, &models->items[i], reference);
        free(g.tokens);
        free(g.logits);
    }
    json_free(&root);
    free(text);
    tn_context_destroy(&ctx);
    printf("models skipped: %d\n", n_skipped);
    return test_done();
}
