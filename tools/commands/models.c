// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon ls, show, rm: the models that names find.
#include "tools/common.h"
#include "tools/json/json.h"
#include "tools/store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <tenon/graph.h>

enum { FOUND_MAX = 256, NAME_SIZE = 512, PATH_SIZE = 4096 };

// "model", "adapter", or another value of the file's key general.type; "unreadable" where it is no file of
// ours. It is read from the beginning of the file; no weights are.
static const char *kind_of(tn_context *ctx, const store_model *m, char *buf, size_t size)
{
    tn_file *file = NULL;
    char *name;
    const char *type, *value;
    snprintf(buf, size, "unreadable");
    if (tn_file_open(ctx, m->path, &file) != TN_OK) return buf;
    snprintf(buf, size, "model");
    for (int64_t i = 0; i < tn_file_n_keys(file); i++) {
        if (tn_file_key(file, i, 80, &name, &type, &value) != TN_OK) continue;
        if (strcmp(name, "general.type") == 0) snprintf(buf, size, "%s", value);
        tn_text_free(ctx, name);
    }
    tn_file_close(&file);
    clean_text(buf);
    return buf;
}

static void put_model(json *j, const store_model *m, const char *kind)
{
    json_object(j, NULL);
    json_text(j, "kind", kind);
    json_text(j, "name", m->name);
    json_text(j, "type", m->quant);
    json_text(j, "origin", store_origin_name(m->origin));
    json_text(j, "path", m->path);
    json_size(j, "bytes", m->size);
    json_end_object(j);
}

static const char *full_name(const store_model *m, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s%s", m->name, *m->quant ? ":" : "", m->quant);
    clean_text(buf);
    return buf;
}

// The indices of what the argument names, all without one. 0 or an exit code.
static int select_models(const options *o, const store_list *list, size_t **found, size_t *n)
{
    *found = malloc((list->n + 1) * sizeof **found);
    if (!*found) return fail(EXIT_MEMORY, "out of memory for the list of models");
    *n = list->n;
    for (size_t i = 0; i < list->n; i++) (*found)[i] = i;
    if (o->n_args > 0) *n = store_match(list, o->args[0], *found, list->n);
    return 0;
}

// For reading keys of files.
static int open_context(tool *t)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.backend = "cpu";
    cfg.one_backend = 1;
    cfg.n_threads = 1;
    tn_status status = tn_context_create(&cfg, &t->ctx);
    return status == TN_OK ? 0 : tool_fail(t, status, "%s", cmd_name(t->opt->cmd));
}

int cmd_ls(const options *o)
{
    store_list list;
    size_t *found = NULL, n = 0;
    tool t = {.opt = o};
    char name[NAME_SIZE], size[32], kind[32];
    if (o->n_args > 1) return fail(EXIT_USAGE, "unexpected argument '%s'; ls takes one name", o->args[1]);
    int code = store_list_all(&list);
    if (code) return code;
    code = open_context(&t);
    if (!code) code = select_models(o, &list, &found, &n);
    json j;
    bool as_json = opt_flag(o, OPT_JSON);
    if (!code && as_json) {
        json_init(&j, stdout);
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_array(&j, "models");
    }
    for (size_t i = 0; i < n && !code; i++) {
        const store_model *m = &list.items[found[i]];
        bool is_model = strcmp(kind_of(t.ctx, m, kind, sizeof kind), "model") == 0;
        if (as_json)
            put_model(&j, m, kind);
        else
            printf("%-50s %12s  %s%s%s\n", full_name(m, name, sizeof name),
                   size_text(m->size, size, sizeof size), store_origin_name(m->origin), is_model ? "" : ", ",
                   is_model ? "" : kind);
    }
    if (!code && as_json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    if (!code && n == 0 && !as_json)
        note("no models; 'tenon pull ORG/NAME' gets one, and $TENON_MODELS names folders that have some");
    free(found);
    tool_close(&t);
    store_list_fini(&list);
    return code;
}

// --- show ------------------------------------------------------------------------------------------------

// The model that the argument names; of several files the one that 'run' takes.
static int find_one(const options *o, store_list *list, const store_model **out)
{
    const char *path;
    if (o->n_args != 1)
        return fail(EXIT_USAGE, "tenon %s takes one NAME; 'tenon ls' lists them", cmd_name(o->cmd));
    int code = store_resolve(o->args[0], true, &path);
    for (size_t i = 0; !code && i < list->n; i++)
        if (strcmp(list->items[i].path, path) == 0) {
            *out = &list->items[i];
            return 0;
        }
    return code ? code : fail(EXIT_FAILED, "%s: gone while it was looked at", path);
}

static int open_file(tool *t, const char *path, tn_file **file)
{
    int code = open_context(t);
    if (code) return code;
    tn_status status = tn_file_open(t->ctx, path, file);
    return status == TN_OK ? 0 : tool_fail(t, status, "%s", path);
}

static void show_keys(const tool *t, const tn_file *file, json *j)
{
    static const char *const wanted[] = {"general.architecture", "general.name",    "general.size_label",
                                         "general.license",      ".context_length", ".block_count",
                                         ".expert_count",        "adapter.type",    "adapter.lora.alpha"};
    char text[256];
    for (int64_t i = 0; i < tn_file_n_keys(file); i++) {
        char *name;
        const char *type, *value;
        if (tn_file_key(file, i, 80, &name, &type, &value) != TN_OK) continue;
        bool listed = false;
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            size_t n = strlen(name), w = strlen(wanted[k]);
            listed = listed || (wanted[k][0] == '.' ? n > w && strcmp(name + n - w, wanted[k]) == 0
                                                    : strcmp(name, wanted[k]) == 0);
        }
        bool chat = strcmp(name, "tokenizer.chat_template") == 0;
        if (listed && j) json_text(j, name, value);
        if (listed && !j) printf("%-28s %s\n", name, shown(value, text, sizeof text));
        if (chat && j) json_bool(j, name, true);
        if (chat && !j) printf("%-28s yes\n", name);
        tn_text_free(t->ctx, name);
    }
}

int cmd_show(const options *o)
{
    tool t = {.opt = o};
    store_list list;
    const store_model *m = NULL;
    tn_file *file = NULL;
    char name[NAME_SIZE], size[32], path[PATH_SIZE];
    int code = store_list_all(&list);
    if (code) return code;
    code = find_one(o, &list, &m);
    if (!code) code = open_file(&t, m->path, &file);
    if (!code && opt_flag(o, OPT_JSON)) {
        json j;
        json_init(&j, stdout);
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        json_text(&j, "name", m->name);
        json_text(&j, "type", m->quant);
        json_text(&j, "origin", store_origin_name(m->origin));
        json_text(&j, "path", m->path);
        json_size(&j, "bytes", m->size);
        json_object(&j, "keys");
        show_keys(&t, file, &j);
        json_end_object(&j);
        json_end_object(&j);
    } else if (!code) {
        printf("%s\n%-28s %s\n%-28s %s\n%-28s %s\n", full_name(m, name, sizeof name), "file",
               shown(m->path, path, sizeof path), "origin", store_origin_name(m->origin), "size",
               size_text(m->size, size, sizeof size));
        show_keys(&t, file, NULL);
    }
    tn_file_close(&file);
    tool_close(&t);
    store_list_fini(&list);
    return code;
}

// --- rm --------------------------------------------------------------------------------------------------

static int refuse_foreign(const store_model *m)
{
    static const char *const remedies[] = {[STORE_ENVIRONMENT] = "remove the file",
                                           [STORE_OWN] = "",
                                           [STORE_HUGGING_FACE] = "'hf cache rm' removes it",
                                           [STORE_OLLAMA] = "'ollama rm' removes it",
                                           [STORE_LM_STUDIO] = "LM Studio removes it"};
    return fail(EXIT_FAILED, "%s belongs to %s, and only models of the own folder are removed here; %s",
                m->path, store_origin_name(m->origin), remedies[m->origin]);
}

// All parts of a split model, then the folders that are empty now.
static int remove_files(const store_model *m)
{
    char path[PATH_SIZE], own[PATH_SIZE];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", m->path);
    bool split = n > 20 && strncmp(path + n - 20, "-00001-of-", 10) == 0;
    for (int k = 1; k < 1000; k++) {
        if (split) {
            char number[8];
            snprintf(number, sizeof number, "%05d", k);
            memcpy(path + n - 19, number, 5);
        }
        if (!sys_remove(path)) {
            if (k > 1 && errno == ENOENT) break;
            return fail(EXIT_FAILED, "cannot remove %s: %s", path, strerror(errno));
        }
        if (!split) break;
    }
    if (!store_own_folder(own, sizeof own)) return 0;
    for (char *slash; (slash = strrchr(path, '/')) != NULL;) {
        *slash = 0;
        if (strcmp(path, own) == 0 || strncmp(path, own, strlen(own)) != 0 || !sys_remove_folder(path)) break;
    }
    return 0;
}

int cmd_rm(const options *o)
{
    store_list list;
    size_t found[FOUND_MAX], n, own = FOUND_MAX, n_own = 0;
    char name[NAME_SIZE], size[32];
    if (o->n_args != 1) return fail(EXIT_USAGE, "tenon rm takes one NAME; 'tenon ls' lists them");
    int code = store_list_all(&list);
    if (code) return code;
    n = store_match(&list, o->args[0], found, FOUND_MAX);
    for (size_t i = 0; i < n; i++) {
        if (list.items[found[i]].origin != STORE_OWN) continue;
        own = found[i];
        n_own++;
    }
    if (n == 0)
        code = fail(EXIT_FAILED, "there is no model '%s'; 'tenon ls' lists them", o->args[0]);
    else if (n_own == 0)
        code = refuse_foreign(&list.items[found[0]]);
    else if (n_own > 1)
        code = fail(EXIT_USAGE, "'%s' names %zu models; give the type too, as in %s", o->args[0], n_own,
                    full_name(&list.items[own], name, sizeof name));
    else
        code = remove_files(&list.items[own]);
    if (!code)
        note("removed %s, %s", full_name(&list.items[own], name, sizeof name),
             size_text(list.items[own].size, size, sizeof size));
    store_list_fini(&list);
    return code;
}
