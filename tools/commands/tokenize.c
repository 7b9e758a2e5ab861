// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon tokenize, tenon detokenize.
#include "tools/common.h"
#include "tools/json/json.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h> // tn_text_free

typedef struct text_state {
    tool t;
    const char *path;
    tn_model *model;
    char *text; // what is to be tokenized, or the ids as text
    size_t n_text;
} text_state;

// The input: words, -p (tokenize) or --tokens (detokenize), -f, or standard input.
static int read_text(text_state *s, const char *const *args, int n_args, opt_id flag)
{
    const options *o = s->t.opt;
    int n = (n_args > 0) + opt_is_set(o, flag) + opt_is_set(o, OPT_FILE);
    char name[64];
    if (n > 1)
        return fail(EXIT_USAGE, "more than one input: give words after the model, %s, or -f",
                    opt_name(flag, name, sizeof name));
    int code = 0;
    if (opt_is_set(o, flag) && strcmp(opt_text(o, flag), "-") != 0) {
        const char *one = opt_text(o, flag);
        code = join_args(&one, 1, &s->text);
    } else if (n_args > 0 && !(n_args == 1 && strcmp(args[0], "-") == 0)) {
        code = join_args(args, n_args, &s->text);
    } else {
        return read_input(opt_is_set(o, OPT_FILE) ? opt_text(o, OPT_FILE) : "-", &s->text, &s->n_text);
    }
    s->n_text = s->text ? strlen(s->text) : 0;
    return code;
}

static int open_text(text_state *s, opt_id flag)
{
    const char *const *args;
    int n_args;
    int code = tool_model_path(s->t.opt, &s->path, &args, &n_args);
    if (!code) code = read_text(s, args, n_args, flag);
    if (!code) code = tool_open(&s->t, s->t.opt);
    if (!code) code = tool_load(&s->t, s->path, LOAD_TOKENIZER, &s->model);
    return code;
}

static int close_text(text_state *s, int code)
{
    free(s->text);
    tn_model_unref(&s->model);
    tool_close(&s->t);
    return code;
}

// --- tokenize --------------------------------------------------------------------------------------------

// The bytes of one token inside a text. Some tokenizers change the first token of a text, so the token is
// decoded behind itself and what it gives alone is cut off.
static int piece_of(const text_state *s, int32_t id, char **piece, size_t *start, size_t *n)
{
    int32_t two[2] = {id, id};
    char *one;
    tn_status status = tn_detokenize(s->model, two, 1, TN_TEXT_PRINT_SPECIAL, &one, start);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: token %d", s->path, id);
    tn_text_free(s->t.ctx, one);
    status = tn_detokenize(s->model, two, 2, TN_TEXT_PRINT_SPECIAL, piece, n);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s: token %d", s->path, id);
    if (*start > *n) *start = *n;
    return 0;
}

// Newlines and control bytes would break the lines: they are shown as escapes.
static void print_piece(int32_t id, const char *piece, size_t n)
{
    printf("%6d '", id);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)piece[i];
        if (c == '\n')
            fputs("\\n", stdout);
        else if (c == '\\')
            fputs("\\\\", stdout);
        else if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    fputs("'\n", stdout);
}

static void print_ids(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s%d", i ? " " : "", ids[i]);
    putchar('\n');
}

static int print_pieces(const text_state *s, const int32_t *ids, size_t n, json *j)
{
    for (size_t i = 0; i < n; i++) {
        char *piece;
        size_t start, end;
        int code = piece_of(s, ids[i], &piece, &start, &end);
        if (code) return code;
        if (j)
            json_bytes(j, NULL, piece + start, end - start);
        else
            print_piece(ids[i], piece + start, end - start);
        tn_text_free(s->t.ctx, piece);
        if (i % 4096 == 0 && !out_flush()) return 0;
    }
    return 0;
}

static int print_json(const text_state *s, const int32_t *ids, size_t n)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_array(&j, "tokens");
    for (size_t i = 0; i < n; i++) json_int(&j, NULL, ids[i]);
    json_end_array(&j);
    json_array(&j, "pieces");
    int code = print_pieces(s, ids, n, &j);
    json_end_array(&j);
    json_end_object(&j);
    return code;
}

int cmd_tokenize(const options *o)
{
    text_state s = {.t.opt = o};
    int code = open_text(&s, OPT_PROMPT);
    if (code) return close_text(&s, code);
    int32_t flags = (opt_flag(o, OPT_NO_BOS) ? 0 : TN_TEXT_ADD_SPECIAL) |
                    (opt_flag(o, OPT_SPECIAL) ? TN_TEXT_PARSE_SPECIAL : 0);
    int32_t *ids;
    size_t n;
    tn_status status = tn_tokenize(s.model, s.text, s.n_text, flags, &ids, &n);
    if (status != TN_OK) return close_text(&s, tool_fail(&s.t, status, "%s", s.path));
    if (opt_flag(o, OPT_JSON))
        code = print_json(&s, ids, n);
    else if (opt_flag(o, OPT_IDS))
        print_ids(ids, n);
    else
        code = print_pieces(&s, ids, n, NULL);
    tn_tokens_free(s.model, ids);
    return close_text(&s, code);
}

// --- detokenize ------------------------------------------------------------------------------------------

static int detokenize(const text_state *s)
{
    const options *o = s->t.opt;
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(s->model, &info);
    int32_t *ids;
    size_t n, n_text;
    int code = parse_ids(s->text, s->n_text, info.n_vocab, &ids, &n);
    if (code) return code;
    bool special = opt_flag(o, OPT_SPECIAL);
    int32_t flags = (special ? TN_TEXT_PRINT_SPECIAL : 0) |
                    (!special || opt_flag(o, OPT_NO_BOS) ? TN_TEXT_REMOVE_SPECIAL : 0);
    char *text;
    tn_status status = tn_detokenize(s->model, ids, n, flags, &text, &n_text);
    free(ids);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    out_write(text, n_text);
    if (is_terminal(stdout)) out_write("\n", 1);
    tn_text_free(s->t.ctx, text);
    return 0;
}

int cmd_detokenize(const options *o)
{
    text_state s = {.t.opt = o};
    int code = open_text(&s, OPT_TOKENS);
    if (!code) code = detokenize(&s);
    return close_text(&s, code);
}
