// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --cpu-moe, --n-cpu-moe and --override-tensor: which weights lie in host memory although their layer is on a
// GPU. Patterns are those that people write for llama.cpp: PATTERN=DEVICE, several with commas, the first
// that matches wins. They are POSIX extended regular expressions; \d, \w and (?: mean what they mean
// elsewhere.
#include "tools/common.h"

#include <stdlib.h>
#include <string.h>

typedef struct place_rule {
    char *pattern; // as given
    sys_pattern *regex;
    tn_device *device;
    long n_matched;
} place_rule;

struct tool_places {
    place_rule *rules;
    int n;
};

// Writes a pattern without what POSIX does not know; out has space for 11 times its length.
static void translate(const char *p, char *out)
{
    while (*p) {
        const char *add = NULL;
        if (strncmp(p, "\\d", 2) == 0)
            add = "[0-9]";
        else if (strncmp(p, "\\w", 2) == 0)
            add = "[[:alnum:]_]";
        else if (strncmp(p, "(?:", 3) == 0)
            add = "(";
        size_t n = *p == '\\' && p[1] ? 2 : add ? 3 : 1;
        if (add)
            out += strlen(strcpy(out, add));
        else
            memcpy(out, p, n), out += n;
        p += n;
    }
    *out = 0;
}

// "CPU", "CUDA0", "Vulkan1" as others write them, or a name of 'tenon devices'.
static tn_device *find_device(const tool *t, const char *name)
{
    char text[64];
    size_t n = 0;
    for (const char *p = name; *p && n + 2 < sizeof text; p++) {
        bool digit = *p >= '0' && *p <= '9';
        if (digit && n > 0 && text[n - 1] >= 'a' && text[n - 1] <= 'z') text[n++] = ':';
        text[n++] = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
    }
    text[n] = 0;
    return tn_context_device_by_name(t->ctx, strstr(text, "_host") ? "cpu" : text);
}

static int add_rule(const tool *t, tool_places *p, char *text)
{
    place_rule *r = &p->rules[p->n];
    char *equals = strchr(text, '='), *posix = NULL, reason[128];
    if (!equals || equals == text || !equals[1])
        return fail(EXIT_USAGE, "--override-tensor: '%s' is not PATTERN=DEVICE, as in exps=CPU", text);
    *equals = 0;
    r->device = find_device(t, equals + 1);
    if (!r->device)
        return fail(EXIT_DEVICE,
                    "--override-tensor %s=%s: no such device; 'tenon devices' lists what can be used", text,
                    equals + 1);
    r->pattern = strdup(text);
    posix = malloc(11 * strlen(text) + 1);
    if (!r->pattern || !posix) {
        free(posix);
        free(r->pattern);
        return fail(EXIT_MEMORY, "out of memory for --override-tensor");
    }
    translate(text, posix);
    r->regex = sys_pattern_create(posix, reason, sizeof reason);
    free(posix);
    if (r->regex) {
        p->n++;
        return 0;
    }
    free(r->pattern);
    return fail(EXIT_USAGE, "--override-tensor: the pattern '%s' is no regular expression: %s", text, reason);
}

static int add_list(const tool *t, tool_places *p, const char *given)
{
    size_t n = 1;
    for (const char *c = given; *c; c++) n += *c == ',';
    place_rule *more = realloc(p->rules, ((size_t)p->n + n) * sizeof *more);
    char *list = more ? strdup(given) : NULL;
    if (more) p->rules = more;
    if (!list) return fail(EXIT_MEMORY, "out of memory for --override-tensor");
    memset(more + p->n, 0, n * sizeof *more);
    int code = 0;
    for (char *text = list; text && !code;) {
        char *comma = strchr(text, ',');
        if (comma) *comma = 0;
        code = add_rule(t, p, text);
        text = comma ? comma + 1 : NULL;
    }
    free(list);
    return code;
}

static tn_device *place(void *user, const char *tensor)
{
    tool_places *p = user;
    for (int i = 0; i < p->n; i++)
        if (sys_pattern_matches(p->rules[i].regex, tensor)) {
            p->rules[i].n_matched++;
            return p->rules[i].device;
        }
    return NULL;
}

int tool_places_open(tool *t)
{
    const char *text;
    int code = 0;
    if (!(C_SESSION & (1 << t->opt->cmd)) || !opt_is_set(t->opt, OPT_OVERRIDE_TENSOR)) return 0;
    t->places = calloc(1, sizeof *t->places);
    if (!t->places) return fail(EXIT_MEMORY, "out of memory for --override-tensor");
    for (int k = 0; !code && (text = opt_item_get(t->opt, OPT_OVERRIDE_TENSOR, k)) != NULL; k++)
        code = add_list(t, t->places, text);
    return code;
}

void tool_places_close(tool *t)
{
    for (int i = 0; t->places && i < t->places->n; i++) {
        sys_pattern_destroy(t->places->rules[i].regex);
        free(t->places->rules[i].pattern);
    }
    if (t->places) free(t->places->rules);
    free(t->places);
    t->places = NULL;
}

void tool_places_config(const tool *t, tn_model_config *cfg)
{
    const options *o = t->opt;
    int64_t n = opt_flag(o, OPT_CPU_MOE) ? INT32_MAX : opt_int(o, OPT_N_CPU_MOE);
    cfg->host_experts = (int32_t)n;
    if (!t->places) return;
    cfg->place = place;
    cfg->place_user = t->places;
}

void tool_places_report(const tool *t, const tn_model_info *info)
{
    char size[32];
    bool any = opt_flag(t->opt, OPT_CPU_MOE) || opt_int(t->opt, OPT_N_CPU_MOE) > 0 || t->places;
    if (!any) return;
    if (info->device_size == 0) {
        tool_info(t, "--cpu-moe, --n-cpu-moe and --override-tensor have no effect: all weights are on %s",
                  info->device);
        return;
    }
    tool_info(t, "%s of weights of the layers on %s are computed on %s",
              size_text(info->placed_size, size, sizeof size), info->device, info->host_device);
    for (int i = 0; t->places && i < t->places->n; i++)
        if (t->places->rules[i].n_matched == 0 && t->log_level >= TN_LOG_WARN)
            note("warning: --override-tensor: '%s' matches no tensor that a pattern before it does not",
                 t->places->rules[i].pattern);
    if (info->placed_size == 0 && !t->places && t->log_level >= TN_LOG_WARN)
        note("warning: --cpu-moe and --n-cpu-moe have no effect: the model has no experts on %s",
             info->device);
}
