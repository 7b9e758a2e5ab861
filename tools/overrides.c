// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Values of the model's keys that are given on the command line: --override-kv, and the flags for positions
// and YaRN, which are keys too (Peng et al., "YaRN", 2023).
#include "tools/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool_overrides {
    char **texts; // KEY=TYPE:VALUE, as tn_model_config has them
    int n;
};

// A value of 0 or less means "as the file says" to those who write these flags, and so it does here.
static const struct {
    const char *flag, *key, *type;
} rows[] = {
    {"--rope-freq-base", ".rope.freq_base", "float"},
    {"--rope-freq-scale", ".rope.scaling.factor", "1/float"},
    {"--rope-scale", ".rope.scaling.factor", "float"},
    {"--rope-scaling", ".rope.scaling.type", "str"},
    {"--yarn-orig-ctx", ".rope.scaling.original_context_length", "int"},
    {"--yarn-attn-factor", ".rope.scaling.attn_factor", "float"},
    {"--yarn-beta-fast", ".rope.scaling.yarn_beta_fast", "float"},
    {"--yarn-beta-slow", ".rope.scaling.yarn_beta_slow", "float"},
};

static int add(tool_overrides *o, const char *key, const char *type, const char *value)
{
    size_t size = strlen(key) + strlen(type) + strlen(value) + 3;
    char **more = realloc(o->texts, ((size_t)o->n + 1) * sizeof *more), *text = malloc(size);
    if (more) o->texts = more;
    if (!more || !text) {
        free(text);
        return fail(EXIT_MEMORY, "out of memory for --override-kv");
    }
    snprintf(text, size, *key ? "%s=%s:%s" : "%s%s%s", key, type, value);
    o->texts[o->n++] = text;
    return 0;
}

static int add_rope(tool_overrides *o, const char *flag, const char *value)
{
    char number[40], *end;
    double v;
    size_t i = 0;
    while (i < sizeof rows / sizeof *rows && strcmp(rows[i].flag, flag) != 0) i++;
    if (i == sizeof rows / sizeof *rows) return fail(EXIT_USAGE, "%s names no key of a model", flag);
    if (strcmp(rows[i].type, "str") == 0) return add(o, rows[i].key, rows[i].type, value);
    v = strtod(value, &end);
    if (end == value || *end) return fail(EXIT_USAGE, "%s: '%s' is not a number", flag, value);
    if (!(v > 0.0)) return 0;
    if (strcmp(rows[i].type, "1/float") != 0) return add(o, rows[i].key, rows[i].type, value);
    snprintf(number, sizeof number, "%.9g", 1.0 / v);
    return add(o, rows[i].key, "float", number);
}

int tool_overrides_open(tool *t)
{
    const char *text;
    int code = 0;
    if (!(C_SESSION & (1 << t->opt->cmd))) return 0;
    if (!opt_is_set(t->opt, OPT_OVERRIDE_KV) && !opt_is_set(t->opt, OPT_ROPE)) return 0;
    t->overrides = calloc(1, sizeof *t->overrides);
    if (!t->overrides) return fail(EXIT_MEMORY, "out of memory for --override-kv");
    for (int k = 0; !code && (text = opt_item_get(t->opt, OPT_OVERRIDE_KV, k)) != NULL; k++)
        code = add(t->overrides, "", "", text);
    for (int k = 0; !code && (text = opt_item_get(t->opt, OPT_ROPE, k)) != NULL; k++)
        code = add_rope(t->overrides, opt_item_name(t->opt, OPT_ROPE, k), text);
    return code;
}

void tool_overrides_close(tool *t)
{
    for (int i = 0; t->overrides && i < t->overrides->n; i++) free(t->overrides->texts[i]);
    if (t->overrides) free(t->overrides->texts);
    free(t->overrides);
    t->overrides = NULL;
}

void tool_overrides_config(const tool *t, tn_model_config *cfg)
{
    if (!t->overrides) return;
    cfg->overrides = (const char *const *)t->overrides->texts;
    cfg->n_overrides = t->overrides->n;
}
