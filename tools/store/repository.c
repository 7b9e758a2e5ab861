// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files of a repository are the model of a type. The list comes from the interface of Hugging Face:
// GET /api/models/ORG/NAME/revision/main?blobs=true gives {sha: commit, siblings: [{rfilename, size,
// lfs: {sha256, size}}]}. Files are then asked of that commit, so that all parts are of one state.
#include "tools/json/json_read.h"
#include "tools/store/pull.h"
#include "tools/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LIST_MAX = 32 << 20, FILES_MAX = 10000, PARTS_MAX = 999, SHOWN = 12 };

typedef struct hub_file {
    char path[PULL_NAME]; // in the repository; each part of it is safe
    char sha256[SHA256_HEX];
    int64_t size;
    store_file_name name;
} hub_file;

typedef struct hub {
    char commit[64];
    hub_file *files;
    size_t n, capacity;
    bool failed; // out of memory
} hub;

// --- the answer --------------------------------------------------------------------------------------------

typedef struct text_in {
    char *text;
    size_t n, capacity;
    bool too_long, failed;
} text_in;

static bool on_text(void *user, const void *data, size_t n)
{
    text_in *t = user;
    if (t->n + n > LIST_MAX) {
        t->too_long = true;
        return false;
    }
    if (t->n + n > t->capacity) {
        size_t capacity = 2 * (t->n + n) + 65536;
        char *more = realloc(t->text, capacity);
        t->failed = !more;
        if (!more) return false;
        t->text = more;
        t->capacity = capacity;
    }
    memcpy(t->text + t->n, data, n);
    t->n += n;
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool contains(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (; *text; text++)
        if (strncasecmp(text, word, n) == 0) return true;
    return false;
}

// A path whose folders and name may stand in a URL and in a path of ours.
static bool is_safe_path(const char *path)
{
    for (size_t n; (n = strcspn(path, "/")) > 0; path += n + 1) {
        if (!pull_safe_name(path, n)) return false;
        if (!path[n]) return true;
    }
    return false;
}

static void add_file(hub *list, const hub_file *f)
{
    if (list->n == FILES_MAX) return;
    if (list->n == list->capacity) {
        size_t capacity = list->capacity * 2 + 64;
        hub_file *more = realloc(list->files, capacity * sizeof *more);
        list->failed = list->failed || !more;
        if (!more) return;
        list->files = more;
        list->capacity = capacity;
    }
    list->files[list->n++] = *f;
}

static int64_t read_size(json_in *in)
{
    char *text = json_copy(in), *end;
    if (!text) return -1;
    long long value = strtoll(text, &end, 10);
    bool good = end > text && !*end && value >= 0 && value < INT64_MAX / 2;
    free(text);
    return good ? value : -1;
}

static void read_string(json_in *in, char *to, size_t size)
{
    char *text = json_is(in, '"') ? json_string(in) : NULL;
    if (!text) {
        json_skip(in);
        return;
    }
    if (strlen(text) < size) memcpy(to, text, strlen(text) + 1);
    free(text);
}

static void read_lfs(json_in *in, hub_file *f)
{
    char *key, digest[128] = "";
    if (!json_is(in, '{')) {
        json_skip(in);
        return;
    }
    json_open(in, '{');
    while (json_key(in, &key)) {
        if (strcmp(key, "sha256") == 0)
            read_string(in, digest, sizeof digest);
        else if (strcmp(key, "size") == 0)
            f->size = read_size(in);
        else
            json_skip(in);
        free(key);
    }
    sha256_parse(digest, strlen(digest), f->sha256);
}

static void read_file(json_in *in, hub *list)
{
    hub_file f = {.size = -1};
    char *key;
    if (!json_open(in, '{')) return;
    while (json_key(in, &key)) {
        if (strcmp(key, "rfilename") == 0)
            read_string(in, f.path, sizeof f.path);
        else if (strcmp(key, "size") == 0 && !f.sha256[0])
            f.size = read_size(in);
        else if (strcmp(key, "lfs") == 0)
            read_lfs(in, &f);
        else
            json_skip(in);
        free(key);
    }
    // Projectors for pictures and tables for quantising are no models.
    if (!is_safe_path(f.path) || f.size < 0 || contains(f.path, "mmproj") || contains(f.path, "imatrix") ||
        !store_parse_file(base_name(f.path), &f.name))
        return;
    add_file(list, &f);
}

static bool read_list(const char *text, size_t n, hub *list)
{
    json_in in = {.p = text, .end = text + n};
    char *key;
    if (!json_open(&in, '{')) return false;
    while (json_key(&in, &key)) {
        if (strcmp(key, "sha") == 0) {
            read_string(&in, list->commit, sizeof list->commit);
        } else if (strcmp(key, "siblings") == 0 && json_is(&in, '[')) {
            json_open(&in, '[');
            while (json_item(&in)) read_file(&in, list);
        } else {
            json_skip(&in);
        }
        free(key);
    }
    if (strspn(list->commit, "0123456789abcdef") != 40 || list->commit[40])
        snprintf(list->commit, sizeof list->commit, "main");
    return !in.failed;
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const hub_file *)a)->path, ((const hub_file *)b)->path);
}

static int ask(pull *p, hub *list)
{
    text_in in = {0};
    http_request r = {.token = *p->token ? p->token : NULL,
                      .token_origin = p->endpoint_origin,
                      .plain = p->plain,
                      .validator = "",
                      .timeout = opt_int(p->opt, OPT_TIMEOUT),
                      .on_data = on_text,
                      .user = &in};
    char url[HTTP_URL];
    http_head head;
    http_result result;
    int tries = 0, code = 0;
    if (snprintf(url, sizeof url, "%s/api/models/%s/revision/main?blobs=true", p->endpoint, p->repository) >=
        (int)sizeof url)
        return fail(EXIT_USAGE, "%s: the name is too long", p->wanted);
    r.url = url;
    do {
        in.n = 0;
        result = http_get(p->http, &r, &head, p->why);
    } while ((result == HTTP_BROKEN || (result == HTTP_DONE && head.status >= 400)) &&
             pull_wait_again(&head, &tries));
    if (in.failed)
        code = fail(EXIT_MEMORY, "out of memory for the list of files");
    else if (in.too_long)
        code = fail(EXIT_FAILED, "%s: the list of files is longer than %d MiB", head.host, LIST_MAX >> 20);
    else if (result != HTTP_DONE)
        code = pull_fail_result(p, result);
    else if (head.status != 200)
        code = pull_fail_status(p, &head, p->repository);
    else if (!read_list(in.text, in.n, list))
        code = fail(EXIT_FAILED, "%s: the answer for %s is no list of files", head.host, p->repository);
    else if (list->failed)
        code = fail(EXIT_MEMORY, "out of memory for the list of files");
    free(in.text);
    if (!code && list->n) qsort(list->files, list->n, sizeof *list->files, by_path);
    return code;
}

// --- which -------------------------------------------------------------------------------------------------

// Whether the first file of a model is of the type "Q4_K_M", lies in a folder of that name, has it at the end
// ("UD-Q4_K_XL"), or is the file of this name.
static bool is_wanted(const hub_file *f, const char *wanted)
{
    const char *base = base_name(f->path);
    size_t n = strlen(wanted), end = f->name.stem_with_quant;
    if (strcasecmp(f->path, wanted) == 0 || strcasecmp(base, wanted) == 0) return true;
    if (strcasecmp(f->name.quant, wanted) == 0) return true;
    if (base > f->path) {
        size_t folder = (size_t)(base - 1 - f->path);
        if (folder >= n && strncasecmp(base - 1 - n, wanted, n) == 0 &&
            (folder == n || base[-2 - (int)n] == '/'))
            return true;
    }
    return end > n && strncasecmp(base + end - n, wanted, n) == 0 && strchr("-._", base[end - n - 1]) != NULL;
}

// Of several models of one type the one that has the name of the repository.
static bool has_repository_name(const hub_file *f, const char *repository)
{
    const char *name = base_name(repository);
    size_t n = strlen(name);
    if (n > 5 && strcasecmp(name + n - 5, "-GGUF") == 0) n -= 5;
    return f->name.stem == n && strncasecmp(base_name(f->path), name, n) == 0;
}

static void append(char *text, size_t size, const char *word)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s", n ? ", " : "", word);
}

// What there is instead: types, or names of files where those are ambiguous.
static void list_choices(const hub *list, const char *wanted, char *text, size_t size)
{
    int n = 0;
    text[0] = 0;
    for (size_t i = 0; i < list->n; i++) {
        const hub_file *f = &list->files[i];
        if (f->name.part != 1 || (wanted && !is_wanted(f, wanted))) continue;
        if (n++ < SHOWN) append(text, size, !wanted && *f->name.quant ? f->name.quant : base_name(f->path));
    }
    if (n > SHOWN) append(text, size, "...");
}

// The first file of the model: *found, or an exit code after a message.
static int find(const pull *p, const hub *list, const char *wanted, const hub_file **found)
{
    char choices[600];
    size_t n = 0;
    bool named = false;
    for (size_t i = 0; i < list->n; i++) {
        const hub_file *f = &list->files[i];
        if (f->name.part != 1 || !is_wanted(f, wanted)) continue;
        bool better = has_repository_name(f, p->repository);
        if (n++ == 0 || (better && !named)) *found = f;
        named = named || better;
    }
    if (n == 1 || (n > 1 && named)) return 0;
    list_choices(list, n ? wanted : NULL, choices, sizeof choices);
    if (n) return fail(EXIT_USAGE, "%s:%s names several files: %s", p->repository, wanted, choices);
    if (*choices) return fail(EXIT_FAILED, "%s has no %s; it has %s", p->repository, wanted, choices);
    return fail(EXIT_FAILED, "%s has no GGUF file; look for a repository whose name ends with -GGUF",
                p->repository);
}

// Without a type: what llama.cpp takes too, then the first one.
static int find_usual(const pull *p, const hub *list, const hub_file **found)
{
    static const char *const usual[] = {"Q4_K_M", "Q8_0"};
    for (size_t k = 0; k < sizeof usual / sizeof *usual; k++)
        for (size_t i = 0; i < list->n; i++)
            if (list->files[i].name.part == 1 && strcasecmp(list->files[i].name.quant, usual[k]) == 0)
                return find(p, list, usual[k], found);
    for (size_t i = 0; i < list->n; i++) {
        if (list->files[i].name.part != 1) continue;
        *found = &list->files[i];
        note("%s has no Q4_K_M and no Q8_0; this is %s", p->repository, base_name(list->files[i].path));
        return 0;
    }
    return find(p, list, "Q4_K_M", found); // says that there is no model
}

// --- the files ---------------------------------------------------------------------------------------------

// Part k of the model whose first part is `first`; NULL: missing.
static const hub_file *part_of(const hub *list, const hub_file *first, int k)
{
    char path[PULL_NAME], number[8];
    size_t n = (size_t)snprintf(path, sizeof path, "%s", first->path);
    snprintf(number, sizeof number, "%05d", k);
    if (first->name.n_parts > 1) memcpy(path + n - strlen("00001-of-00001.gguf"), number, 5);
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->files[i].path, path) == 0) return &list->files[i];
    return NULL;
}

static int put_files(pull *p, const hub *list, const hub_file *first)
{
    int n = first->name.n_parts;
    if (n > PARTS_MAX) return fail(EXIT_FAILED, "%s: more than %d parts", first->path, PARTS_MAX);
    p->files = calloc((size_t)n, sizeof *p->files);
    if (!p->files) return fail(EXIT_MEMORY, "out of memory for the list of files");
    for (int k = 1; k <= n; k++) {
        const hub_file *from = part_of(list, first, k);
        if (!from)
            return fail(EXIT_FAILED, "%s: part %d of %d of %s is missing there", p->repository, k, n,
                        first->path);
        pull_file *f = &p->files[p->n_files++];
        int used = snprintf(f->url, sizeof f->url, "%s/%s/resolve/%s/%s", p->endpoint, p->repository,
                            list->commit, from->path);
        if (used >= (int)sizeof f->url) return fail(EXIT_USAGE, "%s: the name is too long", p->wanted);
        snprintf(f->name, sizeof f->name, "%s", base_name(from->path));
        memcpy(f->sha256, from->sha256, sizeof f->sha256);
        f->size = from->size;
    }
    snprintf(p->quant, sizeof p->quant, "%s", first->name.quant);
    return 0;
}

int pull_list(pull *p, const char *wanted)
{
    hub list = {0};
    const hub_file *first = NULL;
    int code = ask(p, &list);
    if (!code) code = wanted ? find(p, &list, wanted, &first) : find_usual(p, &list, &first);
    if (!code) code = put_files(p, &list, first);
    free(list.files);
    return code;
}
