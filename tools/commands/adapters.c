// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --lora and --lora-scaled: opening adapters for the model of a command. Both take what llama-cli takes:
// several files with commas, and the scale of --lora-scaled behind a colon (FILE:SCALE) or as a word of its
// own (FILE SCALE).
#include "tools/common.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>

bool adapter_is_number(const char *text)
{
    char *end;
    return *text && strtod(text, &end) <= HUGE_VAL && end != text && !*end && *text != ' ';
}

// The scale behind the last colon of a name, NULL if there is none.
static char *scale_behind(char *name)
{
    char *colon = strrchr(name, ':');
    return colon && adapter_is_number(colon + 1) ? colon : NULL;
}

static int open_one(tool *t, tn_model *model, const char *path, const char *scale, const char *flag)
{
    double value = scale ? strtod(scale, NULL) : 1.0;
    if (!*path) return fail(EXIT_USAGE, "%s: the name is empty; give a file", flag);
    if (!isfinite((float)value))
        return fail(EXIT_USAGE, "%s %s: the scale '%s' is not finite", flag, path, scale);
    if (t->n_adapters == TN_SESSION_ADAPTERS)
        return fail(EXIT_USAGE, "%s %s: more than %d adapters", flag, path, (int)TN_SESSION_ADAPTERS);
    tn_adapter *adapter = NULL;
    tn_status status = tn_adapter_open(model, path, &adapter);
    if (status != TN_OK) return tool_fail(t, status, "%s", path);
    t->adapters[t->n_adapters++] =
        (tn_adapter_use){.struct_size = sizeof *t->adapters, .adapter = adapter, .scale = (float)value};
    tn_adapter_info info = {.struct_size = sizeof info};
    tn_adapter_info_get(adapter, &info);
    tool_info(t, "%s: adapter of %d weights, rank %d, with scale %g", path, info.n_weights, info.rank, value);
    return 0;
}

// One value: a file, or several with commas.
static int open_list(tool *t, tn_model *model, const char *text, const char *scale, const char *flag)
{
    char *list = strdup(text);
    if (!list) return fail(EXIT_MEMORY, "out of memory for %s", flag);
    int code = 0;
    for (char *name = list; name && !code;) {
        char *comma = strchr(name, ',');
        if (comma) *comma = 0;
        char *colon = scale ? NULL : scale_behind(name);
        if (colon) *colon = 0;
        code = open_one(t, model, name, scale ? scale : colon ? colon + 1 : NULL, flag);
        name = comma ? comma + 1 : NULL;
    }
    free(list);
    return code;
}

int tool_load_adapters(tool *t, tn_model *model)
{
    const char *text;
    int code = 0;
    for (int k = 0; !code && (text = opt_item_get(t->opt, OPT_LORA, k)) != NULL; k++)
        code = open_list(t, model, text, NULL, "--lora");
    for (int k = 0; !code && (text = opt_item_get(t->opt, OPT_LORA_SCALED, k)) != NULL; k++) {
        const char *next = opt_item_get(t->opt, OPT_LORA_SCALED, k + 1);
        bool own = next && adapter_is_number(next);
        code = open_list(t, model, text, own ? next : NULL, "--lora-scaled");
        k += own;
    }
    return code;
}

void tool_close_adapters(tool *t)
{
    while (t->n_adapters > 0) tn_adapter_unref(&t->adapters[--t->n_adapters].adapter);
}

// --- what a file is ----------------------------------------------------------------------------------------

static bool read_key(const tool *t, const tn_file *file, const char *wanted, char *out, size_t size)
{
    bool found = false;
    for (int64_t i = 0; i < tn_file_n_keys(file) && !found; i++) {
        char *name;
        const char *type, *value;
        if (tn_file_key(file, i, 80, &name, &type, &value) != TN_OK) continue;
        found = strcmp(name, wanted) == 0;
        if (found) shown(value, out, size);
        tn_text_free(t->ctx, name);
    }
    return found;
}

bool tool_adapter_facts(const tool *t, const tn_file *file, adapter_facts *out)
{
    static const char end[] = ".lora_b";
    char text[32];
    *out = (adapter_facts){.arch = "", .kind = "", .alpha = "0"};
    if (!read_key(t, file, "general.type", text, sizeof text) || strcmp(text, "adapter") != 0) return false;
    read_key(t, file, "general.architecture", out->arch, sizeof out->arch);
    read_key(t, file, "adapter.type", out->kind, sizeof out->kind);
    read_key(t, file, "adapter.lora.alpha", out->alpha, sizeof out->alpha);
    for (int64_t i = 0; i < tn_file_n_tensors(file); i++) {
        tn_file_tensor tensor = {.struct_size = sizeof tensor};
        tn_file_tensor_get(file, i, &tensor);
        size_t n = strlen(tensor.name), k = sizeof end - 1;
        if (n <= k || strcmp(tensor.name + n - k, end) != 0) continue;
        int64_t rank = tensor.shape[tensor.n_dims - 1];
        out->n_weights++;
        if (rank > out->rank) out->rank = rank;
    }
    return true;
}
