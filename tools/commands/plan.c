// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon plan: the steps that would run for N tokens, without reading a weight.
#include "tools/common.h"
#include "tools/output.h"

#include <string.h>
#include <tenon/graph.h>

static int32_t dump_format(const options *o)
{
    if (opt_flag(o, OPT_JSON)) return TN_PLAN_JSON;
    if (opt_flag(o, OPT_DOT)) return TN_PLAN_DOT;
    return opt_flag(o, OPT_SVG) ? TN_PLAN_SVG : TN_PLAN_TEXT;
}

static int write_plan(const tool *t, const char *text)
{
    const char *path = opt_text(t->opt, OPT_OUT);
    if (!path) {
        out_write(text, strlen(text));
        return 0;
    }
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    fwrite(text, 1, strlen(text), out.f);
    return out_file_commit(&out);
}

static int make_plan(const tool *t, tn_model *model, const char *path)
{
    const options *o = t->opt;
    int32_t n_tokens = (int32_t)opt_int(o, OPT_N_TOKENS);
    tn_session_config cfg;
    tool_session_config(t, &cfg);
    if (cfg.n_ctx > 0 && n_tokens > cfg.n_ctx)
        return fail(EXIT_CONTEXT, "--tokens %d: the context holds %d; give a larger -c", n_tokens, cfg.n_ctx);
    if (cfg.n_batch > 0 && cfg.n_batch < n_tokens)
        return fail(EXIT_USAGE, "--tokens %d: more than one batch of %d; give a larger -b", n_tokens,
                    cfg.n_batch);
    // smaller numbers fit the default batch of every device
    if (cfg.n_batch == 0 && n_tokens > 512) cfg.n_batch = n_tokens;
    char *text;
    tn_status status = tn_model_plan_dump(model, &cfg, n_tokens, dump_format(o), &text);
    if (status != TN_OK) return tool_fail(t, status, "%s: plan for %d tokens", path, n_tokens);
    int code = write_plan(t, text);
    tn_text_free(t->ctx, text);
    return code;
}

int cmd_plan(const options *o)
{
    tool t = {.opt = o};
    tn_model *model = NULL;
    const char *path, *const *args;
    int n_args;
    int code = tool_model_path(o, &path, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; the number of tokens is given as --tokens N",
                    args[0]);
    if (!code && opt_flag(o, OPT_JSON) + opt_flag(o, OPT_DOT) + opt_flag(o, OPT_SVG) > 1)
        code = fail(EXIT_USAGE, "--json, --dot and --svg exclude each other; give one of them");
    if (!code) code = tool_open(&t, o);
    if (!code) code = tool_load(&t, path, LOAD_METADATA, &model);
    if (!code) code = tool_load_adapters(&t, model);
    if (!code) code = make_plan(&t, model, path);
    tn_model_unref(&model);
    tool_close(&t);
    return code;
}
