// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of the models: those that the command line names, and those of folders.
#include "tools/server/server.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

// "NAME-00002-of-00005.gguf": the number of the part, 0: it is no part. *n: characters of the name.
static int part_of(const char *file, size_t *n)
{
    int part = 0, parts = 0, end = 0;
    const char *dash = strstr(file, "-of-");
    *n = strlen(file);
    if (!dash || dash - file < 6 || sscanf(dash - 6, "-%5d-of-%5d%n", &part, &parts, &end) != 2) return 0;
    if (strcmp(dash - 6 + end, ".gguf") != 0) return 0;
    *n = (size_t)(dash - 6 - file);
    return part;
}

// Without folder, ending, and number of the part.
static void set_name(model *m, const char *alias)
{
    const char *base = strrchr(m->path, '/');
    size_t n;
    base = base ? base + 1 : m->path;
    if (alias) base = alias;
    bool part = part_of(base, &n) > 0;
    if (!alias && !part && ends_with(base, ".gguf")) n -= 5;
    snprintf(m->name, sizeof m->name, "%.*s", (int)(n < NAME_SIZE ? n : NAME_SIZE - 1), base);
}

static int add(server *s, const char *folder, const char *file)
{
    model_list *list = &s->models;
    if (list->n == MODELS_MAX) return fail(EXIT_USAGE, "more than %d models", MODELS_MAX);
    model *more = realloc(list->all, ((size_t)list->n + 1) * sizeof *more);
    if (!more) return fail(EXIT_MEMORY, "out of memory for the list of models");
    list->all = more;
    model *m = &more[list->n];
    size_t n = strlen(file) + (folder ? strlen(folder) + 1 : 0) + 1;
    *m = (model){.s = s, .path = malloc(n)};
    if (!m->path) return fail(EXIT_MEMORY, "out of memory for the list of models");
    list->n++;
    snprintf(m->path, n, "%s%s%s", folder ? folder : "", folder ? "/" : "", file);
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Names of the files of models in a folder, from malloc.
static int list_folder(DIR *dir, char ***names, size_t *n)
{
    const struct dirent *entry;
    size_t length;
    while ((entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;
        if (name[0] == '.' || !ends_with(name, ".gguf") || part_of(name, &length) > 1) continue;
        char **more = realloc(*names, (*n + 1) * sizeof *more), *copy = strdup(name);
        if (more) *names = more;
        if (!more || !copy) {
            free(copy);
            return fail(EXIT_MEMORY, "out of memory for the list of models");
        }
        more[(*n)++] = copy;
    }
    if (*n > 0) qsort(*names, *n, sizeof **names, by_text);
    return 0;
}

static int add_folder(server *s, const char *path)
{
    char **names = NULL;
    size_t n = 0;
    DIR *dir = opendir(path);
    if (!dir) return fail(EXIT_MODEL, "%s: %s", path, strerror(errno));
    int code = list_folder(dir, &names, &n);
    closedir(dir);
    for (size_t i = 0; i < n; i++) {
        if (!code) code = add(s, path, names[i]);
        free(names[i]);
    }
    free(names);
    return code || n > 0 ? code : fail(EXIT_MODEL, "%s: no file in this folder ends with .gguf", path);
}

static int add_path(server *s, const char *path, bool *folder)
{
    struct stat st;
    *folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (*folder) return add_folder(s, path);
    return add(s, NULL, path);
}

static int check_names(const model_list *list)
{
    for (int i = 0; i < list->n; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(list->all[i].name, list->all[k].name) == 0)
                return fail(EXIT_USAGE, "%s and %s have the same name; rename one of the files",
                            list->all[k].path, list->all[i].path);
    return 0;
}

// The only model is loaded at once, which says more of what is wrong.
static int set_file(model *m, bool only)
{
    struct stat st = {0};
    if (stat(m->path, &st) != 0 && !only) return fail(EXIT_MODEL, "%s: %s", m->path, strerror(errno));
    m->modified = (int64_t)st.st_mtime;
    m->facts.file_size = (uint64_t)st.st_size;
    return 0;
}

int models_open(server *s)
{
    const options *o = s->opt;
    const char *first, *const *args, *alias = opt_text(o, OPT_ALIAS);
    model_list *list = &s->models;
    bool folder = false, any_folder = false;
    int n_args, code = tool_model_path(o, &first, &args, &n_args);
    if (!code) code = add_path(s, first, &any_folder);
    for (int i = 0; !code && i < n_args; i++) {
        code = add_path(s, args[i], &folder);
        any_folder |= folder;
    }
    if (code) return code;
    list->single = list->n == 1 && !any_folder;
    if (alias && list->n > 1)
        return fail(EXIT_USAGE, "--alias names one model; with several each has the name of its file");
    bool stays = list->single && !opt_is_set(o, OPT_KEEP_ALIVE);
    for (int i = 0; i < list->n && !code; i++) {
        model *m = &list->all[i];
        set_name(m, alias);
        code = set_file(m, list->single);
        m->held_end = &m->held;
        m->keep_seconds = stays ? -1 : opt_int(o, OPT_KEEP_ALIVE);
    }
    return code ? code : check_names(list);
}

void models_close(server *s)
{
    for (int i = 0; i < s->models.n; i++) free(s->models.all[i].path);
    free(s->models.all);
}
