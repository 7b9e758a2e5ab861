// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/store/store.h"

#include "tools/common.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_SIZE = 4096, SHOWN_MAX = 8, NAME_SIZE = 512 };

const char *store_origin_name(store_origin origin)
{
    static const char *const names[] = {"TENON_MODELS", "tenon", "Hugging Face", "Ollama", "LM Studio"};
    return names[origin];
}

bool store_own_folder(char *path, size_t size)
{
    static const char own[] = "/tenon/models";
    if (size < sizeof own || !sys_place_get(SYS_DATA, path, size - sizeof own)) return false;
    memcpy(path + strlen(path), own, sizeof own);
    return true;
}

static int by_name(const void *a, const void *b)
{
    const store_model *x = a, *y = b;
    int order = (int)x->origin - (int)y->origin;
    if (!order) order = strcmp(x->name, y->name);
    if (!order) order = strcmp(x->quant, y->quant);
    return order ? order : strcmp(x->path, y->path);
}

int store_list_all(store_list *list)
{
    *list = (store_list){0};
    store_scan_all(list);
    if (list->failed) {
        store_list_fini(list);
        return fail(EXIT_MEMORY, "out of memory for the list of models");
    }
    if (list->n) qsort(list->items, list->n, sizeof *list->items, by_name);
    return 0;
}

void store_list_fini(store_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->items[i].name);
        free(list->items[i].quant);
        free(list->items[i].path);
    }
    free(list->items);
    *list = (store_list){0};
}

// --- matching ----------------------------------------------------------------------------------------------

// Equal without regard to case, and to "-GGUF" at the end of repositories' names.
static bool same_name(const char *name, const char *wanted, size_t n_wanted)
{
    size_t n = strlen(name);
    if (n == n_wanted && strncasecmp(name, wanted, n) == 0) return true;
    return n == n_wanted + 5 && strncasecmp(name, wanted, n_wanted) == 0 &&
           strcasecmp(name + n_wanted, "-GGUF") == 0;
}

static bool matches(const store_model *m, const char *wanted)
{
    const char *colon = strrchr(wanted, ':'), *slash = strrchr(m->name, '/');
    size_t n = colon ? (size_t)(colon - wanted) : strlen(wanted);
    if (colon && strcasecmp(m->quant, colon + 1) != 0) return false;
    return same_name(m->name, wanted, n) || (slash && same_name(slash + 1, wanted, n));
}

size_t store_match(const store_list *list, const char *wanted, size_t *found, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n && n < max; i++)
        if (matches(&list->items[i], wanted)) found[n++] = i;
    return n;
}

// Of several types of one model the one that other tools take too, else the first; -1: the names differ.
static int64_t preferred(const store_list *list, const size_t *found, size_t n)
{
    static const char *const types[] = {"Q4_K_M", "latest", "Q4_0", "Q8_0"};
    for (size_t i = 1; i < n; i++)
        if (strcasecmp(list->items[found[i]].name, list->items[found[0]].name) != 0 &&
            list->items[found[i]].origin == list->items[found[0]].origin)
            return -1;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        for (size_t i = 0; i < n; i++)
            if (strcasecmp(list->items[found[i]].quant, types[k]) == 0) return (int64_t)found[i];
    return (int64_t)found[0];
}

static void join_names(const store_list *list, const size_t *found, size_t n, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < n && i < SHOWN_MAX && used < size; i++) {
        const store_model *m = &list->items[found[i]];
        used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", i ? ", " : "", m->name,
                                 *m->quant ? ":" : "", m->quant);
    }
    if (n > SHOWN_MAX && used < size) snprintf(text + used, size - used, ", ...");
}

// Keeps the path until the program ends: two models at most, that of the command and a draft.
static int keep_path(const char *found, const char **path)
{
    static char kept[2][PATH_SIZE];
    static int n_kept;
    char *to = kept[n_kept++ % 2];
    if (snprintf(to, PATH_SIZE, "%s", found) >= PATH_SIZE)
        return fail(EXIT_FAILED, "%.200s...: the path is too long", found);
    *path = to;
    return 0;
}

// --- by path or name -----------------------------------------------------------------------------------

static int resolve_folder(const char *folder, const char **path)
{
    store_list list = {0};
    char names[NAME_SIZE], trimmed[PATH_SIZE];
    size_t all[SHOWN_MAX + 1], n = 0;
    snprintf(trimmed, sizeof trimmed, "%s", folder);
    for (size_t end = strlen(trimmed); end > 1 && trimmed[end - 1] == '/';) trimmed[--end] = 0;
    store_scan_folder(&list, STORE_ENVIRONMENT, trimmed, 0);
    int code = 0;
    if (list.n == 1) code = keep_path(list.items[0].path, path);
    if (list.n > 1) {
        qsort(list.items, list.n, sizeof *list.items, by_name);
        for (; n < list.n && n <= SHOWN_MAX; n++) all[n] = n;
        join_names(&list, all, n, names, sizeof names);
        code = fail(EXIT_FAILED, "%s: a folder with %zu models, not a regular file; name one: %s", folder,
                    list.n, names);
    }
    store_list_fini(&list);
    return code; // without a model the folder itself is opened, which says what is wrong
}

static bool looks_like_path(const char *text)
{
    size_t n = strlen(text);
    return sys_looks_like_path(text) || (n > 5 && strcasecmp(text + n - 5, ".gguf") == 0);
}

// What can be done about a name that nothing has.
static int unknown_name(const store_list *list, const char *wanted)
{
    int best = 64;
    const store_model *near = NULL;
    for (size_t i = 0; i < list->n; i++) {
        char base[64];
        const char *name = list->items[i].name, *slash = strrchr(name, '/');
        if (!strchr(wanted, '/') && slash) name = slash + 1;
        size_t n = strlen(name);
        if (n > 5 && strcasecmp(name + n - 5, "-GGUF") == 0) n -= 5;
        snprintf(base, sizeof base, "%.*s", (int)(n < sizeof base ? n : sizeof base - 1), name);
        int d = edit_distance(wanted, base);
        if (d >= best) continue;
        best = d;
        near = &list->items[i];
    }
    if (near && (size_t)best * 3 <= strlen(wanted))
        return fail(EXIT_FAILED,
                    "there is no file and no model '%s', did you mean '%s'? 'tenon ls' lists all", wanted,
                    near->name);
    if (strchr(wanted, '/'))
        return fail(EXIT_FAILED,
                    "there is no file %s (No such file) and no model of this name; 'tenon pull %s' gets it, "
                    "'tenon ls' "
                    "lists what is here",
                    wanted, wanted);
    return fail(
        EXIT_FAILED,
        "there is no file and no model '%s' here; 'tenon ls' lists those that are, 'tenon pull ORG/NAME' "
        "gets one",
        wanted);
}

static int resolve_name(const char *wanted, const char **path)
{
    store_list list;
    size_t found[64];
    char names[NAME_SIZE];
    int code = store_list_all(&list);
    if (code) return code;
    size_t n = store_match(&list, wanted, found, sizeof found / sizeof *found);
    int64_t at = n > 0 ? preferred(&list, found, n) : -1;
    if (n == 0) {
        code = unknown_name(&list, wanted);
    } else if (at < 0) {
        join_names(&list, found, n, names, sizeof names);
        code = fail(EXIT_USAGE, "'%s' names several models: %s", wanted, names);
    } else {
        code = keep_path(list.items[at].path, path);
    }
    store_list_fini(&list);
    return code;
}

int store_resolve(const char *wanted, bool must_be_name, const char **path)
{
    sys_status st;
    *path = wanted;
    if (!must_be_name && sys_file_status(wanted, &st))
        return st.kind == SYS_FOLDER ? resolve_folder(wanted, path) : 0;
    if (!must_be_name && looks_like_path(wanted)) return 0; // opening it says what is wrong
    return resolve_name(wanted, path);
}
