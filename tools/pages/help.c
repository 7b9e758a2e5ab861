// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Help texts: the flags come from the table of options, all other text is here.
#include "tools/options.h"
#include "tools/pages/pages.h"

#include <string.h>

typedef struct cmd_row {
    const char *name, *args, *help;
} cmd_row;

static const cmd_row cmd_rows[CMD_COUNT] = {
#define CMD(id, name, args, help) {#name, args, help},
#include "tools/commands.def"
};

// Notes of commands that are not in the descriptions of flags.
static const char *const notes[CMD_COUNT] = {
    [CMD_EMBED] = "The words after MODEL are one text; otherwise -f FILE or standard input hold many "
                  "(--input): a text per line, or "
                  "an\n"
                  "object per line: {\"text\": \"...\", \"id\": ...}. One vector per line, or with --json "
                  "{index, id, tokens, embedding};\n"
                  "with --pooling none one per token. Texts are evaluated many at a time, -b tokens "
                  "together; a longer text takes "
                  "more.\n",
    [CMD_CLASSIFY] = "For models with a classification head: classifiers and rerankers. Input as for embed; "
                     "a pair is {\"query\": "
                     "\"...\",\n"
                     "\"document\": \"...\"}, or each text with --query, and gets the separators or the "
                     "template of the file. A line per "
                     "text: the\n"
                     "best class and its probability, or the score if there is one class. --json: {index, "
                     "id, tokens, label, classes "
                     "[{label, score, probability}]}.\n",
    [CMD_BATCH] = "-f FILE or standard input hold the prompts (--input): one per line, or an object per "
                  "line: {\"prompt\": \"...\", \"id\": ...}.\n"
                  "With --chat or -sys each is a user turn in the model's chat template. Answers are written "
                  "as they end, a line each:\n"
                  "{index, id, text, stop, prompt_tokens, reused_tokens, tokens}, or {index, id, error}. "
                  "With -o FILE the same command\n"
                  "given again after an end in the middle makes only what is missing. Prompt number i has "
                  "the seed --seed plus i.\n",
    [CMD_SERVE] =
        "Each MODEL is a file, or a folder of them. A single file is loaded at the start; several are "
        "loaded when a request\n"
        "names them, and unloaded when nobody uses them or another one needs their memory.\n"
        "Routes: /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/models, /tokenize, "
        "/detokenize, /health, /metrics,\n"
        "/api/chat and others of Ollama. Flags of sampling are the defaults of requests. SIGTERM "
        "lets what runs end, SIGHUP\n"
        "reads the file of keys anew. docs/serve.md has limits, keys, and examples.\n",
    [CMD_RUN] =
        "The prompt is the words after MODEL, -p TEXT, -f FILE or --tokens IDS; - stands for standard input, "
        "which is\n"
        "also read when there is no prompt and it is no terminal, and is appended to a prompt when "
        "something is piped in.\n"
        "Words are a question: one user turn in the file's chat template if it has one, and nothing in it "
        "becomes a\n"
        "special token; so are other prompts with --chat, -sys or -st. Otherwise, and with --raw, the text "
        "is continued\n"
        "as it is (tokenized with the special tokens that the model wants; special tokens in the text become "
        "their ids).\n"
        "Without a prompt on a terminal, or with --chat alone, a chat line by line: /help lists its "
        "commands; -i begins\n"
        "one with the prompt. Lines are kept in\n"
        "$XDG_STATE_HOME/tenon/history (or below ~/.local/state) unless --no-history is given.\n"
        "--session FILE saves tokens and cache; a later run whose prompt begins alike goes on from there. It "
        "fits "
        "the same\n"
        "model file and cache types; a file that does not fit is an error and stays as it is.\n"
        "Only the answer is on standard output. The context grows with the prompt unless -c is given.\n"
        "--json: {schema, model, device, text, tokens, stop, prompt_tokens, reused_tokens, dropped_tokens "
        "(after a shift), seed, timings {load_ms, prompt_ms,\n"
        "prompt_per_second, generated, generated_ms, generated_per_second, first_token_ms, drafted, accepted "
        "(with "
        "--spec or -md)}, memory {peak_rss, peak_library}};\n"
        "stop is end, string, limit, context or cancelled. --jsonl: objects with the key event: load, token, "
        "stats, error.\n",
    [CMD_BENCH] = "pp512: 512 tokens of prompt at once; tg128: 128 tokens one by one; @ d1024: with 1024 "
                  "tokens in the cache.\n"
                  "Speeds are medians, +- is half of the range. GB/s: weights and cache bytes that one "
                  "decoded token reads.\n"
                  "GFLOP/s: 2 operations per active parameter and token; attention is not counted. Peaks are "
                  "measured at the\n"
                  "start: reading 640 MB with all threads, and multiply-add chains in registers (f32; int8 "
                  "dot products).\n"
                  "A shape is changed or described by --layers --width --heads --kv-heads --head-dim --ffn "
                  "--vocab --experts\n"
                  "--experts-used --expert-ffn --arch.\n",
    [CMD_INSPECT] = "FILE may be any GGUF file, also a vocabulary or a model of an unknown kind.\n"
                    "--check reads every tensor: 3 is returned for values that are not finite.\n",
    [CMD_PULL] =
        "ORG/NAME is a repository with GGUF files; of its types Q4_K_M is taken, then Q8_0, then the first. "
        "All parts of a\n"
        "split model come. What an earlier attempt left is used, the SHA-256 is checked, and the file "
        "appears complete or not\n"
        "at all in $XDG_DATA_HOME/tenon/models, where its name finds it. HF_TOKEN, or the login of 'hf', "
        "reads private\n"
        "repositories. Standard output has the path; --json: {schema, name, type, path, bytes, downloaded, "
        "resumed, files\n"
        "[{name, bytes, sha256}]}.\n",
    [CMD_TOKENIZE] = "Without TEXT and -f, standard input is read. One line per token: id and piece; --ids: "
                     "one line of ids.\n"
                     "Special tokens in the text are plain text unless --special is given.\n",
    [CMD_DETOKENIZE] =
        "Without IDS and -f, standard input is read. Special tokens are printed with --special only.\n",
    [CMD_LOGITS] = "No special tokens are added. -b 1 feeds one token at a time, as decoding does.\n",
    [CMD_PLAN] = "Text holds the ops as recorded, what fusion did and why not, the steps with their kernels, "
                 "and the memory.\n",
    [CMD_PERPLEXITY] = "The text is cut into windows; the second half of each is scored, each token given "
                       "all before it in the window.\n"
                       "A model that wants BOS sees it in place of the first token of every window.\n"
                       "--kl takes text and window from its base: mean, median, 99 % and maximum of the "
                       "Kullback-Leibler divergence in\n"
                       "nats, and the share of positions where both runs prefer the same token.\n",
    [CMD_QUANTIZE] = "OUT appears complete or not at all. IN and OUT must differ. For each tensor that "
                     "changes, the root mean square\n"
                     "of the change is said. Norms, biases and routers keep their type; rows that are no "
                     "multiple of a type's\n"
                     "block get a smaller one. In --tensor-type, * is any characters and ? is one.\n",
};

void opt_limits(const opt_row *row, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    if (row->kind == KIND_INT || row->kind == KIND_NUMS)
        n = (size_t)snprintf(buf, size, "%lld to %lld", (long long)row->min_int, (long long)row->max_int);
    else if (row->kind == KIND_FLOAT)
        n = (size_t)snprintf(buf, size, "%g to %g", row->min, row->max);
    if (*row->text && n < size) snprintf(buf + n, size - n, "%sdefault %s", n ? "; " : "", row->text);
}

// "  -f --file FILE", in lines of NAMES_MAX columns; returns the length of the last one.
static size_t option_names(FILE *out, const opt_row *row)
{
    enum { NAMES_MAX = 104 };
    char name[64];
    size_t column = (size_t)fprintf(out, " ");
    for (const char *p = row->names; (p = page_next_name(p, name, sizeof name)) != NULL;) {
        if (column + strlen(name) >= NAMES_MAX) column = (size_t)fprintf(out, "\n ") - 1;
        column += (size_t)fprintf(out, " %s", name);
    }
    return column + (size_t)fprintf(out, "%s%s", *row->value ? " " : "", row->value);
}

static void option_line(FILE *out, const opt_row *row)
{
    enum { HELP_COLUMN = 34 };
    char limits[160];
    size_t column = option_names(out, row);
    if (column >= HELP_COLUMN) fputc('\n', out);
    fprintf(out, "%*s", (int)(column < HELP_COLUMN ? HELP_COLUMN - column : HELP_COLUMN), "");
    opt_limits(row, limits, sizeof limits);
    fprintf(out, *limits ? " %s (%s)\n" : " %s\n", row->help, limits);
}

static void option_lines(FILE *out, cmd_id cmd, bool common)
{
    for (int i = 0; i < OPT_COUNT; i++)
        if ((opt_rows[i].commands & (1 << cmd)) && ((opt_rows[i].commands & C_ALL) == C_ALL) == common)
            option_line(out, &opt_rows[i]);
}

const char *cmd_args(cmd_id cmd)
{
    return cmd_rows[cmd].args;
}

const char *cmd_help(cmd_id cmd)
{
    return cmd_rows[cmd].help;
}

const char *cmd_notes(cmd_id cmd)
{
    return notes[cmd] ? notes[cmd] : "";
}

void help_command(FILE *out, cmd_id cmd)
{
    const cmd_row *row = &cmd_rows[cmd];
    fprintf(out, "tenon %s%s%s [FLAGS]\n%s\n\n", row->name, *row->args ? " " : "", row->args, row->help);
    if (notes[cmd]) fprintf(out, "%s\n", notes[cmd]);
    option_lines(out, cmd, false);
    fprintf(out, "\nCommon flags:\n");
    option_lines(out, cmd, true);
    fprintf(out, "\nEvery long flag but --model and --help can be set in the environment (TENON_SOME_FLAG "
                 "for --some-flag), or in\n$XDG_CONFIG_HOME/tenon/config (some-flag = value). Flags win, "
                 "then the environment.\n");
}

void help_all(FILE *out)
{
    fprintf(out, "tenon COMMAND ... | tenon --version | tenon help COMMAND\n\n");
    for (int i = 0; i < CMD_COUNT; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", cmd_rows[i].name, cmd_rows[i].args);
        fprintf(out, "  %-32s %s\n", left, cmd_rows[i].help);
    }
    fprintf(out, "\nExit codes:\n");
    for (const page_entry *exit = page_exits; exit->name; exit++)
        fprintf(out, "  %-32s %s\n", exit->name, exit->text);
    fprintf(out, "\ntenon help --format man|bash|zsh|fish|markdown prints manual pages, completions for a "
                 "shell, or a reference.\n");
}
