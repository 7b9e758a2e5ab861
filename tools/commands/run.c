// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon run: reads the prompt, selects a context size for it, and generates its continuation.
#include "tools/chat/generate.h"
#include "tools/interrupt.h"
#include "tools/store/store.h"
#include "tools/system/system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CTX_DEFAULT = 4096, ANSWER_RESERVE = 512, INPUT_WAIT_MS = 1000 };

// What happens with standard input beside a prompt.
typedef enum beside_prompt {
    INPUT_IGNORED,
    INPUT_IF_THERE, // -p, -f: scripts run commands with a pipe that never ends
    INPUT_APPENDED, // words
} beside_prompt;

// Where the prompt comes from.
typedef struct prompt_source {
    const char *const *args; // words after the model
    int n_args;
    uint64_t start_ns;
    bool chat;     // in the chat template
    bool dash;     // a lone - beside -p or -f: standard input is appended
    bool question; // words: in the chat template if the file has one
    bool loop;     // turns from standard input; text is the first one
    beside_prompt beside;
    char *text; // NULL with --tokens
    size_t n_text;
    int32_t *ids; // from malloc, or from the library if `library_ids`
    size_t n_ids;
    bool library_ids;
} prompt_source;

// \n, \t, \r, \", \' and \\ in place.
static size_t unescape(char *text, size_t n)
{
    static const char letters[] = "ntr\"'\\", plain[] = "\n\t\r\"'\\";
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        const char *at = text[i] == '\\' && i + 1 < n && text[i + 1] ? strchr(letters, text[i + 1]) : NULL;
        if (at) i++;
        text[k++] = at ? plain[at - letters] : text[i];
    }
    text[k] = 0;
    return k;
}

static int copy_text(prompt_source *p, const char *text)
{
    p->n_text = strlen(text);
    p->text = malloc(p->n_text + 1);
    if (!p->text) return fail(EXIT_MEMORY, "out of memory for the prompt");
    memcpy(p->text, text, p->n_text + 1);
    return 0;
}

// Standard input on a new line behind the text; nothing if it is empty.
static int append_input(prompt_source *p)
{
    char *rest = NULL;
    size_t n_rest = 0;
    int code = read_input("-", &rest, &n_rest);
    if (!code && n_rest > 0) {
        char *text = realloc(p->text, p->n_text + n_rest + 2);
        if (text) {
            p->text = text;
            if (p->n_text > 0) text[p->n_text++] = '\n';
            memcpy(text + p->n_text, rest, n_rest + 1);
            p->n_text += n_rest;
        } else {
            code = fail(EXIT_MEMORY, "out of memory for the prompt");
        }
    }
    free(rest);
    return code;
}

// Words joined by blanks; a last "-" stands for standard input.
static int read_words(prompt_source *p)
{
    bool input = strcmp(p->args[p->n_args - 1], "-") == 0;
    int code = join_args(p->args, p->n_args - input, &p->text);
    if (code) return code;
    p->n_text = strlen(p->text);
    p->question = p->n_args > input;
    p->beside = input ? INPUT_IGNORED : INPUT_APPENDED;
    return input ? append_input(p) : 0;
}

// Whether an option takes all of standard input.
static bool reads_input(const options *o)
{
    static const opt_id files[] = {OPT_FILE,         OPT_TOKENS,      OPT_SYSTEM_FILE,
                                   OPT_GRAMMAR_FILE, OPT_SCHEMA_FILE, OPT_TOOLS};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (opt_is_set(o, files[i]) && strcmp(opt_text(o, files[i]), "-") == 0) return true;
    return false;
}

// What is piped in belongs to the prompt. Words wait for it; for -p and -f a pipe that gives nothing within a
// second is left out, with a message.
static int read_beside(const options *o, prompt_source *p)
{
    sys_status st;
    if (p->beside == INPUT_IGNORED || reads_input(o) || !sys_stream_status(stdin, &st)) return 0;
    if (st.kind == SYS_FILE) return append_input(p);
    if (st.kind != SYS_PIPE) return 0; // a terminal, /dev/null
    uint64_t passed_ms = (now_ns() - p->start_ns) / 1000000;
    int wait = passed_ms < INPUT_WAIT_MS ? (int)(INPUT_WAIT_MS - passed_ms) : 0;
    if (sys_input_wait(wait) > 0) return append_input(p);
    if (p->beside == INPUT_APPENDED) {
        note("waiting for the end of standard input, which is appended to the prompt");
        return append_input(p);
    }
    note("standard input gave nothing within a second and is left out; a last - waits for it");
    return 0;
}

static int check_flags(const options *o, const prompt_source *p)
{
    int n = opt_is_set(o, OPT_PROMPT) + opt_is_set(o, OPT_FILE) + opt_is_set(o, OPT_TOKENS) +
            (p->n_args > 0 && !p->dash);
    if (n > 1)
        return fail(EXIT_USAGE,
                    "more than one prompt: give words after the model, or one of -p, -f and --tokens");
    if (opt_flag(o, OPT_SESSION_RO) && !opt_is_set(o, OPT_SESSION))
        return fail(EXIT_USAGE, "--session-ro needs --session FILE");
    if (p->chat && opt_flag(o, OPT_RAW))
        return fail(EXIT_USAGE, "--raw contradicts --chat, -i, -sys and -st; give one of them");
    if (p->chat && opt_is_set(o, OPT_TOKENS))
        return fail(EXIT_USAGE, "--tokens is never put in a chat template; leave --chat away");
    if (opt_flag(o, OPT_SANDBOX) &&
        (opt_is_set(o, OPT_PROFILE) || (opt_is_set(o, OPT_SESSION) && !opt_flag(o, OPT_SESSION_RO))))
        return fail(EXIT_USAGE, "--sandbox writes no files: leave --profile away, and add --session-ro");
    if (opt_flag(o, OPT_JSON) + opt_flag(o, OPT_JSONL) + opt_flag(o, OPT_IDS) > 1)
        return fail(EXIT_USAGE, "--json, --jsonl and --ids exclude each other; give one of them");
    return 0;
}

// Reads the prompt, but not ids, which need the model.
static int find_prompt(const options *o, prompt_source *p)
{
    bool interactive = opt_flag(o, OPT_INTERACTIVE), from_option = false;
    p->chat = opt_flag(o, OPT_CHAT) || opt_flag(o, OPT_SINGLE) || opt_is_set(o, OPT_SYSTEM) ||
              opt_is_set(o, OPT_SYSTEM_FILE) || interactive;
    from_option = opt_is_set(o, OPT_PROMPT) || opt_is_set(o, OPT_FILE);
    p->dash = from_option && p->n_args == 1 && strcmp(p->args[0], "-") == 0;
    int code = check_flags(o, p);
    if (code || opt_is_set(o, OPT_TOKENS)) return code;
    if (from_option) {
        p->beside = p->dash ? INPUT_APPENDED : INPUT_IF_THERE;
        code = opt_is_set(o, OPT_PROMPT) ? copy_text(p, opt_text(o, OPT_PROMPT))
                                         : read_input(opt_text(o, OPT_FILE), &p->text, &p->n_text);
    } else if (p->n_args > 0) {
        code = read_words(p);
    } else if (opt_flag(o, OPT_CHAT) || interactive || (is_terminal(stdin) && !opt_flag(o, OPT_RAW))) {
        p->chat = p->loop = true;
    } else {
        code = read_input("-", &p->text, &p->n_text);
    }
    if (interactive) {
        p->loop = true;
        p->beside = INPUT_IGNORED; // it holds the turns
    }
    if (!code && p->text && opt_flag(o, OPT_ESCAPE)) p->n_text = unescape(p->text, p->n_text);
    return code;
}

// --- model -----------------------------------------------------------------------------------------------

static int tokenize_prompt(run_state *r, prompt_source *p)
{
    const options *o = r->t.opt;
    if (opt_is_set(o, OPT_TOKENS))
        return parse_ids(opt_text(o, OPT_TOKENS), strlen(opt_text(o, OPT_TOKENS)), r->info.n_vocab, &p->ids,
                         &p->n_ids);
    if (!r->info.has_tokenizer)
        return fail(EXIT_USAGE, "%s has no tokenizer; give the prompt as --tokens 1,2,3", r->path);
    if (p->loop) return 0;
    p->library_ids = true;
    if (p->chat) return run_chat_prompt(r, p->text, &p->ids, &p->n_ids);
    tn_status status = tn_tokenize(r->model, p->text, p->n_text, TN_TEXT_ADD_SPECIAL | TN_TEXT_PARSE_SPECIAL,
                                   &p->ids, &p->n_ids);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s: the prompt", r->path);
}

// Without -c: the default context, more if the prompt and its answer need more and the model can do more.
static int32_t fit_context(const run_state *r, size_t n_prompt)
{
    const options *o = r->t.opt;
    int64_t asked = opt_int(o, OPT_CTX), trained = r->info.n_ctx_train;
    if (asked > 0) return (int32_t)asked;
    int64_t base = trained > 0 && trained < CTX_DEFAULT ? trained : CTX_DEFAULT;
    int64_t answer = opt_int(o, OPT_PREDICT);
    int64_t need = (int64_t)n_prompt + (answer >= 0 ? answer : ANSWER_RESERVE);
    if (need <= base || trained <= base) return (int32_t)base;
    return (int32_t)(need < trained ? need : trained);
}

// A session that cannot be loaded ends the command: it is not overwritten.
static int load_session(run_state *r)
{
    const char *path = opt_text(r->t.opt, OPT_SESSION);
    sys_status st;
    if (!path || (!sys_file_status(path, &st) && errno == ENOENT)) return 0;
    tn_status status = tn_session_load(r->session, path);
    if (status != TN_OK) return tool_fail(&r->t, status, "%s", path);
    tool_info(&r->t, "%s: %d tokens", path, tn_session_length(r->session, 0));
    return 0;
}

// An interrupted answer is saved as well.
static int save_session(run_state *r)
{
    const char *path = opt_text(r->t.opt, OPT_SESSION);
    if (!path || opt_flag(r->t.opt, OPT_SESSION_RO)) return 0;
    tn_status status = tn_session_save(r->session, path);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s", path);
}

// The draft model, with a session for the same number of tokens.
static int open_draft(run_state *r, int32_t n_ctx)
{
    const char *path = opt_text(r->t.opt, OPT_MODEL_DRAFT);
    if (!path) return 0;
    uint64_t load_ns = r->t.load_ns;
    int code = store_resolve(path, false, &path);
    if (!code) code = tool_load(&r->t, path, LOAD_WEIGHTS, &r->draft_model);
    r->t.load_ns += load_ns;
    if (code) return code;
    tn_session_config cfg;
    tn_model_info info = {.struct_size = sizeof info};
    tool_session_config(&r->t, &cfg);
    cfg.n_adapters = 0; // they are those of the other model
    tn_model_info_get(r->draft_model, &info);
    cfg.n_ctx = info.n_ctx_train > 0 && info.n_ctx_train < n_ctx ? info.n_ctx_train : n_ctx;
    tn_status status = tn_session_create(r->draft_model, &cfg, &r->draft);
    return status == TN_OK ? 0 : tool_fail(&r->t, status, "%s: a context of %d tokens", path, cfg.n_ctx);
}

static int open_session(run_state *r, size_t n_prompt)
{
    tn_session_config cfg;
    tool_session_config(&r->t, &cfg);
    cfg.n_ctx = fit_context(r, n_prompt);
    if (n_prompt > (size_t)cfg.n_ctx && r->full != FULL_SHIFT)
        return fail(EXIT_CONTEXT,
                    "the prompt has %zu tokens, the context holds %d (the model was trained with %d); "
                    "give -c %zu or a shorter prompt",
                    n_prompt, cfg.n_ctx, r->info.n_ctx_train, n_prompt + ANSWER_RESERVE);
    tool_info(&r->t, "context of %d tokens", cfg.n_ctx);
    tool_debug(&r->t, "cache of keys %s, of values %s; the prompt has %zu tokens%s",
               tn_dtype_name(cfg.cache_type_k), tn_dtype_name(cfg.cache_type_v), n_prompt,
               r->templated ? " in the chat template" : "");
    tn_status status = tn_session_create(r->model, &cfg, &r->session);
    if (status != TN_OK) return tool_fail(&r->t, status, "%s: a context of %d tokens", r->path, cfg.n_ctx);
    int code = open_draft(r, cfg.n_ctx);
    if (code) return code;
    tool_trace_loaded(&r->t);
    interrupt_watch(r->session);
    answer_load_event(r);
    code = load_session(r);
    return code || !opt_flag(r->t.opt, OPT_SANDBOX) ? code : sys_sandbox_enter(SANDBOX_LOADED);
}

static int open_model(run_state *r)
{
    int code = tool_load(&r->t, r->path, LOAD_WEIGHTS, &r->model);
    if (!code) code = tool_load_adapters(&r->t, r->model);
    if (code) return code;
    r->info.struct_size = sizeof r->info;
    tn_model_info_get(r->model, &r->info);
    if (r->info.is_encoder)
        return fail(EXIT_FAILED, "%s: %s models give embeddings, not text; see 'tenon help embed'", r->path,
                    r->info.arch);
    if (r->form == FORM_TEXT && !r->info.has_tokenizer) r->form = FORM_IDS;
    return answer_options(r);
}

static int run_prompt(run_state *r, prompt_source *p)
{
    if (p->n_ids == 0) return fail(EXIT_USAGE, "the prompt is empty; give at least one token");
    int code = answer_generate(r, p->ids, p->n_ids, r->seed);
    if (code) return code;
    if (answer_wants_stats(r)) answer_stats(r);
    return interrupted() ? EXIT_INTERRUPTED : EXIT_DONE;
}

static int run_all(run_state *r, prompt_source *p)
{
    const options *o = r->t.opt;
    int code = find_prompt(o, p);
    if (!code && opt_flag(o, OPT_SANDBOX)) code = sys_sandbox_enter(SANDBOX_LOADING);
    if (!code) code = tool_open(&r->t, o);
    if (!code) code = open_model(r);
    if (!code) code = read_beside(o, p);
    if (p->question && !opt_flag(o, OPT_RAW) && tn_model_has_chat_template(r->model)) p->chat = true;
    r->templated = p->chat;
    if (!code) code = tokenize_prompt(r, p);
    if (!code) code = open_session(r, p->n_ids);
    if (!code) {
        code = p->loop ? run_chat(r, p->text) : run_prompt(r, p);
        int saved = code == EXIT_DONE || code == EXIT_INTERRUPTED ? save_session(r) : 0;
        if (saved) code = saved;
    }
    int profile_code = r->session ? tool_profile(&r->t) : 0;
    return code ? code : profile_code;
}

int cmd_run(const options *o)
{
    run_state r = {.t.opt = o};
    prompt_source p = {.start_ns = now_ns()};
    r.form = opt_flag(o, OPT_JSON)    ? FORM_JSON
             : opt_flag(o, OPT_JSONL) ? FORM_JSONL
             : opt_flag(o, OPT_IDS)   ? FORM_IDS
                                      : FORM_TEXT;
    int code = tool_model_path(o, &r.path, &p.args, &p.n_args);
    if (!code) code = run_all(&r, &p);
    if (code && code != EXIT_INTERRUPTED) answer_error_event(&r, code);
    interrupt_watch(NULL);
    if (p.library_ids && p.ids)
        tn_tokens_free(r.model, p.ids);
    else
        free(p.ids);
    free(p.text);
    answer_fini(&r);
    tn_session_destroy(&r.session);
    tn_session_destroy(&r.draft);
    tn_model_unref(&r.model);
    tn_model_unref(&r.draft_model);
    tool_close(&r.t);
    return code;
}
