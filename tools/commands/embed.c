// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon embed: texts to vectors. tenon classify: texts, or pairs of query and document, to scores of classes.
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/output.h"
#include "tools/texts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP = 4096,       // texts that the embedder is given together at most
    GROUP_BATCHES = 16, // their tokens in batches: enough to fill batches well, and an answer before long
    TOKENS_BATCHES = 4, // the same with a row per token, whose results take more memory
};

typedef struct embed_text {
    int32_t *ids;
    size_t n_ids;
    char *id; // JSON value or NULL
    bool cut;
} embed_text;

typedef struct embed_state {
    tool t;
    const char *path;
    tn_model *model;
    tn_model_info info;
    tn_embedder *embedder;
    text_source source;
    size_t group_tokens; // tokens after which a group is evaluated
    embed_text texts[GROUP];
    tn_text_ids feeds[GROUP];
    size_t n_texts, n_tokens;
    size_t index;      // of the first text of the group
    const char *query; // for every text, or NULL
} embed_state;

static void drop_texts(embed_state *s)
{
    for (size_t i = 0; i < s->n_texts; i++) {
        tn_tokens_free(s->model, s->texts[i].ids);
        free(s->texts[i].id);
    }
    s->index += s->n_texts;
    s->n_texts = s->n_tokens = 0;
}

// --- tokens ----------------------------------------------------------------------------------------------

// Cuts a text at its end; a token that ends every text stays.
static tn_status cut(embed_state *s, embed_text *e, size_t max)
{
    int32_t *empty;
    size_t n_empty;
    tn_status status = tn_tokenize(s->model, "", 0, TN_TEXT_ADD_SPECIAL, &empty, &n_empty);
    if (status != TN_OK) return status;
    bool closed = n_empty > 0 && max > 1 && e->ids[e->n_ids - 1] == empty[n_empty - 1];
    if (closed) e->ids[max - 1] = empty[n_empty - 1];
    e->n_ids = max;
    e->cut = true;
    tn_tokens_free(s->model, empty);
    return TN_OK;
}

static int tokenize(embed_state *s, const text_item *item, embed_text *e)
{
    const char *query = item->query ? item->query : s->query;
    size_t n_query = item->query ? item->n_query
                     : query     ? strlen(query)
                                 : 0,
           max = (size_t)tn_embedder_max_tokens(s->embedder);
    bool truncate = opt_flag(s->t.opt, OPT_TRUNCATE);
    tn_status status;
    if (query)
        status = tn_tokenize_pair(s->model, query, n_query, item->text, item->n_text, 0, &e->ids, &e->n_ids);
    else
        status = tn_tokenize(s->model, item->text, item->n_text, TN_TEXT_ADD_SPECIAL, &e->ids, &e->n_ids);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s, text %zu", s->source.name, item->line);
    if (e->n_ids == 0)
        return fail(EXIT_FAILED, "%s, text %zu: it is empty, and the model adds no token to it",
                    s->source.name, item->line);
    if (e->n_ids <= max) return 0;
    if (!truncate)
        return fail(EXIT_CONTEXT,
                    "%s, text %zu has %zu tokens, at most %zu fit; give --truncate or a shorter text",
                    s->source.name, item->line, e->n_ids, max);
    if (!query) {
        status = cut(s, e, max);
    } else {
        tn_tokens_free(s->model, e->ids);
        e->ids = NULL;
        status =
            tn_tokenize_pair(s->model, query, n_query, item->text, item->n_text, max, &e->ids, &e->n_ids);
        e->cut = true;
    }
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s, text %zu", s->source.name, item->line);
}

// --- output ----------------------------------------------------------------------------------------------

static void json_row(json *j, const char *key, const float *row, int32_t n)
{
    json_array(j, key);
    for (int32_t i = 0; i < n; i++) json_number(j, NULL, (double)row[i]);
    json_end_array(j);
}

static void begin_json(const embed_state *s, size_t i, json *j)
{
    const embed_text *e = &s->texts[i];
    json_init(j, stdout);
    json_object(j, NULL);
    json_int(j, "index", (int64_t)(s->index + i));
    if (e->id) json_raw(j, "id", e->id);
    json_int(j, "tokens", (int64_t)e->n_ids);
    if (e->cut) json_bool(j, "truncated", true);
}

static void print_row(const float *row, int32_t n)
{
    for (int32_t i = 0; i < n; i++) printf("%s%.9g", i ? " " : "", (double)row[i]);
    putchar('\n');
}

static void print_vector(const embed_state *s, size_t i, const float *rows, int64_t n_rows)
{
    int32_t width = tn_embedder_width(s->embedder);
    if (!opt_flag(s->t.opt, OPT_JSON)) {
        for (int64_t r = 0; r < n_rows; r++) print_row(rows + r * width, width);
        return;
    }
    json j;
    begin_json(s, i, &j);
    if (tn_embedder_pooling(s->embedder) != TN_POOLING_NONE) {
        json_row(&j, "embedding", rows, width);
    } else {
        json_array(&j, "embeddings");
        for (int64_t r = 0; r < n_rows; r++) json_row(&j, NULL, rows + r * width, width);
        json_end_array(&j);
    }
    json_end_object(&j);
}

// Softmax over classes; of a single score the logistic function.
static void probabilities(const float *scores, int32_t n, double *out)
{
    double max = scores[0], sum = 0.0;
    for (int32_t i = 0; i < n; i++)
        if (scores[i] > max) max = scores[i]; // fmax here ends in an internal error of gcc 12 for aarch64
    for (int32_t i = 0; i < n; i++) sum += out[i] = exp(scores[i] - max);
    for (int32_t i = 0; i < n; i++) out[i] /= sum;
    if (n == 1) out[0] = 1.0 / (1.0 + exp(-(double)scores[0]));
}

static const char *label_of(const embed_state *s, int32_t i, char *buf, size_t size)
{
    const char *label = tn_model_class_label(s->model, i);
    if (label) return label;
    snprintf(buf, size, "%d", i);
    return buf;
}

static int print_classes(const embed_state *s, size_t i, const float *scores)
{
    int32_t n = tn_embedder_width(s->embedder), best = 0;
    double *p = malloc((size_t)n * sizeof *p);
    if (!p) return fail(EXIT_MEMORY, "out of memory for %d classes", n);
    probabilities(scores, n, p);
    for (int32_t k = 1; k < n; k++)
        if (scores[k] > scores[best]) best = k;
    char buf[32], clean[256];
    if (!opt_flag(s->t.opt, OPT_JSON)) {
        if (n == 1)
            printf("%.9g\n", (double)scores[0]);
        else
            printf("%s %.6f\n", shown(label_of(s, best, buf, sizeof buf), clean, sizeof clean), p[best]);
        free(p);
        return 0;
    }
    json j;
    begin_json(s, i, &j);
    if (n > 1) json_text(&j, "label", label_of(s, best, buf, sizeof buf));
    json_array(&j, "classes");
    for (int32_t k = 0; k < n; k++) {
        json_object(&j, NULL);
        json_text(&j, "label", label_of(s, k, buf, sizeof buf));
        json_number(&j, "score", (double)scores[k]);
        json_number(&j, "probability", p[k]);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    free(p);
    return 0;
}

// --- evaluating ------------------------------------------------------------------------------------------

static int run_group(embed_state *s)
{
    if (s->n_texts == 0) return 0;
    bool per_token = tn_embedder_pooling(s->embedder) == TN_POOLING_NONE;
    size_t width = (size_t)tn_embedder_width(s->embedder), rows = per_token ? s->n_tokens : s->n_texts;
    float *out = malloc(rows * width * sizeof *out);
    if (!out) return fail(EXIT_MEMORY, "out of memory for %zu rows", rows);
    for (size_t i = 0; i < s->n_texts; i++)
        s->feeds[i] = (tn_text_ids){s->texts[i].ids, (int32_t)s->texts[i].n_ids};
    tn_status status = tn_embedder_run(s->embedder, s->feeds, (int32_t)s->n_texts, out);
    int code = status == TN_OK ? 0 : tool_fail(&s->t, status, "%s", s->path);
    const float *row = out;
    for (size_t i = 0; i < s->n_texts && !code; i++) {
        int64_t n = per_token ? (int64_t)s->texts[i].n_ids : 1;
        if (s->t.opt->cmd == CMD_CLASSIFY)
            code = print_classes(s, i, row);
        else
            print_vector(s, i, row, n);
        row += (size_t)n * width;
    }
    free(out);
    drop_texts(s);
    if (!code && !out_flush()) code = EXIT_FAILED;
    return code;
}

static int run_all(embed_state *s)
{
    text_item item;
    int code = 0, more = 1;
    while (!code && (more = texts_next(&s->source, &item, &code)) > 0) {
        embed_text e = {0};
        code = tokenize(s, &item, &e);
        if (!code && item.id) {
            e.id = malloc(item.n_id + 1);
            if (!e.id)
                code = fail(EXIT_MEMORY, "out of memory for an id");
            else
                memcpy(e.id, item.id, item.n_id), e.id[item.n_id] = 0;
        }
        if (code) {
            tn_tokens_free(s->model, e.ids);
            break;
        }
        if (s->n_texts == GROUP || s->n_tokens + e.n_ids > s->group_tokens) code = run_group(s);
        s->texts[s->n_texts++] = e;
        s->n_tokens += e.n_ids;
    }
    // The texts before a broken line are still evaluated.
    int last = interrupted() ? 0 : run_group(s);
    return code ? code : last;
}

static int open_embedder(embed_state *s)
{
    const options *o = s->t.opt;
    tn_embedder_config cfg;
    tool_embedder_config(&s->t, &cfg);
    cfg.pooling =
        o->cmd == CMD_CLASSIFY ? TN_POOLING_RANK : (int32_t)opt_int(o, OPT_POOLING) + TN_POOLING_DEFAULT;
    cfg.normalize = !opt_flag(o, OPT_NO_NORMALIZE);
    cfg.max_tokens = (int32_t)opt_int(o, OPT_TEXT_MAX);
    if (o->cmd == CMD_EMBED && cfg.pooling == TN_POOLING_DEFAULT && s->info.pooling == TN_POOLING_RANK)
        return fail(
            EXIT_FAILED,
            "%s: its vectors become scores of classes; see 'tenon help classify', or give --pooling cls",
            s->path);
    tn_status status = tn_embedder_create(s->model, &cfg, &s->embedder);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    bool per_token = tn_embedder_pooling(s->embedder) == TN_POOLING_NONE;
    s->group_tokens = (size_t)tn_embedder_n_batch(s->embedder) * (per_token ? TOKENS_BATCHES : GROUP_BATCHES);
    interrupt_watch_embedder(s->embedder);
    return 0;
}

static int run_command(const options *o)
{
    embed_state *s = calloc(1, sizeof *s);
    const char *const *args;
    int n_args;
    if (!s) return fail(EXIT_MEMORY, "out of memory");
    s->t.opt = o;
    int code = tool_model_path(o, &s->path, &args, &n_args);
    if (!code && opt_flag(o, OPT_NORMALIZE) && opt_flag(o, OPT_NO_NORMALIZE))
        code = fail(EXIT_USAGE, "--normalize and --no-normalize: give one of both");
    if (!code) code = texts_open(&s->source, o, args, n_args);
    if (!code) code = tool_open(&s->t, o);
    if (!code) code = tool_load(&s->t, s->path, LOAD_WEIGHTS, &s->model);
    if (!code) {
        s->info.struct_size = sizeof s->info;
        tn_model_info_get(s->model, &s->info);
        if (!s->info.has_tokenizer) code = fail(EXIT_MODEL, "%s: the file has no tokenizer", s->path);
    }
    if (!code) code = open_embedder(s);
    s->query = opt_text(o, OPT_QUERY);
    if (!code) tool_trace_loaded(&s->t);
    if (!code) code = run_all(s);
    int profiled = s->embedder ? tool_profile(&s->t) : 0;
    if (!code) code = profiled;
    interrupt_watch_embedder(NULL);
    if (s->model) drop_texts(s);
    texts_close(&s->source);
    tn_embedder_destroy(&s->embedder);
    tn_model_unref(&s->model);
    tool_close(&s->t);
    free(s);
    return code;
}

int cmd_embed(const options *o)
{
    return run_command(o);
}

int cmd_classify(const options *o)
{
    return run_command(o);
}
