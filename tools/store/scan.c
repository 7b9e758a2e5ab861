// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Where programs keep models. Nothing is written here, and nothing outside the folders is followed but the
// links of the Hugging Face cache, which lead to its own blobs.
#include "tools/store/store.h"

#include "tools/common.h"
#include "tools/json/json_read.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PATH_SIZE = 4096, DEPTH_MAX = 6, ITEMS_MAX = 100000, MANIFEST_MAX = 1 << 20 };

static char *copy_of(const char *text, size_t n)
{
    char *p = malloc(n + 1);
    if (!p) return NULL;
    memcpy(p, text, n);
    p[n] = 0;
    return p;
}

static void add(store_list *list, store_origin origin, const char *name, const char *quant, const char *path,
                uint64_t size)
{
    if (list->n == ITEMS_MAX) return;
    if (list->n == list->capacity) {
        size_t capacity = list->capacity * 2 + 32;
        store_model *more = realloc(list->items, capacity * sizeof *more);
        if (!more) {
            list->failed = true;
            return;
        }
        list->items = more;
        list->capacity = capacity;
    }
    store_model m = {origin, copy_of(name, strlen(name)), copy_of(quant, strlen(quant)),
                     copy_of(path, strlen(path)), size};
    if (!m.name || !m.quant || !m.path) {
        free(m.name);
        free(m.quant);
        free(m.path);
        list->failed = true;
        return;
    }
    list->items[list->n++] = m;
}

// --- names of files ----------------------------------------------------------------------------------------

// Whether a part of a file's name is a type, such as Q4_K_M, IQ2_XXS, BF16, MXFP4.
static bool is_quant(const char *text, size_t n)
{
    static const char *const plain[] = {"F16", "F32", "BF16", "MXFP4", "MXFP4_MOE", "NVFP4"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strlen(plain[i]) == n && strncasecmp(text, plain[i], n) == 0) return true;
    size_t at = strspn(text, "iItT");
    if (at > 1 || at + 2 > n || (text[at] != 'q' && text[at] != 'Q')) return false;
    return text[at + 1] >= '1' && text[at + 1] <= '8' &&
           strspn(text + at + 1, "0123456789_ABCDKLMNSXabcdklmnsx") >= n - at - 1;
}

// Length of "-00001-of-00003" at the end of a name without ".gguf", 0 if it is no part; *part is its number,
// *count how many there are.
static size_t part_suffix(const char *stem, size_t n, int *part, int *count)
{
    int used = 0;
    if (n < 15 || sscanf(stem + n - 15, "-%5d-of-%5d%n", part, count, &used) != 2 || used != 15) return 0;
    return 15;
}

// Name without type and number of part; the type into quant.
static size_t split_stem(const char *stem, size_t n, char quant[32])
{
    quant[0] = 0;
    for (size_t at = n; at-- > 1;) {
        if (stem[at - 1] != '-' && stem[at - 1] != '.') continue;
        if (!is_quant(stem + at, n - at) || n - at >= 32) return n;
        for (size_t i = 0; i < n - at; i++) {
            char c = stem[at + i];
            quant[i] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
        }
        quant[n - at] = 0;
        return at - 1;
    }
    return n;
}

static bool is_model_file(const char *file, size_t *stem)
{
    size_t n = strlen(file);
    if (n < 6 || strcasecmp(file + n - 5, ".gguf") != 0) return false;
    *stem = n - 5;
    return strncasecmp(file, "mmproj", 6) != 0 && strncmp(file, "ggml-vocab", 10) != 0;
}

bool store_parse_file(const char *file, store_file_name *out)
{
    size_t n;
    *out = (store_file_name){.part = 1, .n_parts = 1};
    if (!is_model_file(file, &n)) return false;
    int part, count;
    size_t suffix = part_suffix(file, n, &part, &count);
    if (suffix) {
        out->part = part;
        out->n_parts = count;
    }
    out->stem_with_quant = n - suffix;
    out->stem = split_stem(file, n - suffix, out->quant);
    return out->part >= 1 && out->part <= out->n_parts;
}

// One file of a folder. `owner`: "ORG/NAME" of the place, NULL: the file's own name.
static void add_file(store_list *list, store_origin origin, const char *folder, const char *file,
                     const char *owner)
{
    char path[PATH_SIZE], name[512];
    sys_status st;
    store_file_name parsed;
    int length = snprintf(path, sizeof path, "%s/%s", folder, file);
    if (!store_parse_file(file, &parsed) || length < 0 || (size_t)length >= sizeof path ||
        !sys_file_status(path, &st) || st.kind != SYS_FILE || parsed.part != 1)
        return;
    uint64_t size = st.size;
    bool split = strlen(file) - 5 > parsed.stem_with_quant;
    for (int k = 2; split && k < 1000; k++) { // the other parts beside it
        char number[8];
        snprintf(number, sizeof number, "%05d", k);
        memcpy(path + length - 5 - 14, number, 5);
        if (!sys_file_status(path, &st)) break;
        size += st.size;
    }
    if (split) memcpy(path + length - 5 - 14, "00001", 5);
    snprintf(name, sizeof name, "%.*s", (int)parsed.stem, file);
    add(list, origin, owner ? owner : name, parsed.quant, path, size);
}

typedef struct place {
    store_list *list;
    store_origin origin;
    const char *root;
} place;

// Two folders above a file are its owner: ROOT/ORG/NAME/file.gguf.
static void scan(const place *p, const char *folder, int depth)
{
    sys_folder *dir = sys_folder_open(folder);
    if (!dir) return;
    const char *below = folder + strlen(p->root);
    char owner[512];
    snprintf(owner, sizeof owner, "%s", *below == '/' ? below + 1 : below);
    bool owned = strchr(owner, '/') != NULL && strchr(strchr(owner, '/') + 1, '/') == NULL;
    for (const char *entry; (entry = sys_folder_next(dir)) != NULL;) {
        char path[PATH_SIZE];
        sys_status st;
        if (entry[0] == '.') continue;
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry);
        if (n < 0 || (size_t)n >= sizeof path || !sys_link_status(path, &st)) continue;
        if (st.kind == SYS_FOLDER && depth > 0) scan(p, path, depth - 1);
        if (st.kind != SYS_FOLDER) add_file(p->list, p->origin, folder, entry, owned ? owner : NULL);
    }
    sys_folder_close(dir);
}

void store_scan_folder(store_list *list, store_origin origin, const char *folder, int depth)
{
    place p = {list, origin, folder};
    scan(&p, folder, depth < DEPTH_MAX ? depth : DEPTH_MAX);
}

// --- Hugging Face ----------------------------------------------------------------------------------------

static void scan_snapshot(store_list *list, const char *folder, const char *owner, int depth)
{
    sys_folder *dir = sys_folder_open(folder);
    if (!dir) return;
    for (const char *entry; (entry = sys_folder_next(dir)) != NULL;) {
        char path[PATH_SIZE];
        sys_status st;
        if (entry[0] == '.') continue;
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry);
        if (n < 0 || (size_t)n >= sizeof path || !sys_file_status(path, &st)) continue;
        if (st.kind == SYS_FOLDER && depth > 0) scan_snapshot(list, path, owner, depth - 1);
        if (st.kind == SYS_FILE) add_file(list, STORE_HUGGING_FACE, folder, entry, owner);
    }
    sys_folder_close(dir);
}

// hub/models--ORG--NAME/snapshots/REVISION/file.gguf
static void scan_hub(store_list *list, const char *hub)
{
    sys_folder *dir = sys_folder_open(hub);
    if (!dir) return;
    for (const char *entry; (entry = sys_folder_next(dir)) != NULL;) {
        char path[PATH_SIZE], owner[300];
        if (strncmp(entry, "models--", 8) != 0) continue;
        snprintf(owner, sizeof owner, "%s", entry + 8);
        char *dashes = strstr(owner, "--");
        if (dashes) {
            *dashes = '/';
            memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
        }
        int n = snprintf(path, sizeof path, "%s/%s/snapshots", hub, entry);
        if (n > 0 && (size_t)n < sizeof path) scan_snapshot(list, path, owner, 3);
    }
    sys_folder_close(dir);
}

// --- Ollama ----------------------------------------------------------------------------------------------

// "sha256:" and 64 hexadecimal digits: the only text of a manifest that becomes part of a path.
static bool is_digest(const char *text)
{
    return strncmp(text, "sha256:", 7) == 0 && strlen(text) == 71 &&
           strspn(text + 7, "0123456789abcdef") == 64;
}

// The digest of the layer that is the model.
static bool model_layer(const char *text, size_t n, char digest[72])
{
    json_in in = {.p = text, .end = text + n};
    bool found = false;
    char *key;
    if (!json_open(&in, '{')) return false;
    while (json_key(&in, &key)) {
        bool layers = strcmp(key, "layers") == 0 && json_is(&in, '[');
        free(key);
        if (!layers) {
            json_skip(&in);
            continue;
        }
        if (!json_open(&in, '[')) return false;
        while (json_item(&in)) {
            char *type = NULL, *name = NULL;
            if (!json_open(&in, '{')) break;
            while (json_key(&in, &key)) {
                char **to = strcmp(key, "mediaType") == 0 ? &type : strcmp(key, "digest") == 0 ? &name : NULL;
                free(key);
                if (to && !*to && json_is(&in, '"'))
                    *to = json_string(&in);
                else
                    json_skip(&in);
            }
            if (type && name && strcmp(type, "application/vnd.ollama.image.model") == 0 && is_digest(name)) {
                memcpy(digest, name, 72);
                found = true;
            }
            free(type);
            free(name);
        }
    }
    return found && !in.failed;
}

static void add_manifest(store_list *list, const char *root, const char *path, const char *name,
                         const char *tag)
{
    char digest[72], blob[PATH_SIZE];
    sys_status st;
    FILE *f = sys_open(path, "rb");
    char *text = f ? malloc(MANIFEST_MAX) : NULL;
    size_t n = text ? fread(text, 1, MANIFEST_MAX, f) : 0;
    if (f) fclose(f);
    bool found = n > 0 && n < MANIFEST_MAX && model_layer(text, n, digest);
    free(text);
    if (!found) return;
    int length = snprintf(blob, sizeof blob, "%s/blobs/sha256-%s", root, digest + 7);
    if (length < 0 || (size_t)length >= sizeof blob || !sys_file_status(blob, &st) || st.kind != SYS_FILE)
        return;
    add(list, STORE_OLLAMA, name, tag, blob, st.size);
}

// manifests/HOST/SPACE/NAME/TAG; the space "library" is left out of names, as Ollama does.
static void scan_manifests(store_list *list, const char *root, const char *folder, int level)
{
    sys_folder *dir = sys_folder_open(folder);
    if (!dir) return;
    for (const char *entry; (entry = sys_folder_next(dir)) != NULL;) {
        char path[PATH_SIZE], name[300];
        sys_status st;
        if (entry[0] == '.') continue;
        int n = snprintf(path, sizeof path, "%s/%s", folder, entry);
        if (n < 0 || (size_t)n >= sizeof path || !sys_file_status(path, &st)) continue;
        if (st.kind == SYS_FOLDER && level < 3) scan_manifests(list, root, path, level + 1);
        if (st.kind != SYS_FILE || level != 3) continue;
        const char *slash = strrchr(folder, '/'), *space = slash;
        while (space > folder && space[-1] != '/') space--;
        if (strncmp(space, "library/", 8) == 0) space = slash + 1;
        snprintf(name, sizeof name, "%s", space);
        add_manifest(list, root, path, name, entry);
    }
    sys_folder_close(dir);
}

// --- all -------------------------------------------------------------------------------------------------

// "$VARIABLE/rest", and "~" for HOME where variable is NULL; false if it is not set.
static bool below(char *path, size_t size, const char *variable, const char *rest)
{
    const char *base = variable ? sys_env(variable) : sys_home();
    int n = base && sys_is_absolute(base) ? snprintf(path, size, "%s%s", base, rest) : -1;
    return n > 0 && (size_t)n < size;
}

static void scan_hugging_face(store_list *list)
{
    // The order in which its libraries look for the cache.
    static const struct {
        const char *variable, *rest;
    } places[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""},
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {NULL, "/.cache/huggingface/hub"}};
    char path[PATH_SIZE];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!below(path, sizeof path, places[i].variable, places[i].rest)) continue;
        scan_hub(list, path);
        return;
    }
}

static void scan_ollama(store_list *list)
{
    char path[PATH_SIZE], manifests[PATH_SIZE + 16];
    for (int i = 0; i < 3; i++) {
        bool there = i == 0   ? below(path, sizeof path, "OLLAMA_MODELS", "")
                     : i == 1 ? below(path, sizeof path, NULL, "/.ollama/models")
                              : snprintf(path, sizeof path, "/usr/share/ollama/.ollama/models") > 0;
        if (!there) continue;
        snprintf(manifests, sizeof manifests, "%s/manifests", path);
        scan_manifests(list, path, manifests, 0);
        if (i == 0) return;
    }
}

void store_scan_all(store_list *list)
{
    char path[PATH_SIZE];
    const char *folders = sys_env("TENON_MODELS"), between[] = {sys_list_separator(), 0};
    while (folders && *folders) {
        size_t n = strcspn(folders, between);
        snprintf(path, sizeof path, "%.*s", (int)(n < sizeof path ? n : 0), folders);
        while (n > 1 && n < sizeof path && path[n - 1] == '/') path[--n] = 0;
        if (path[0]) store_scan_folder(list, STORE_ENVIRONMENT, path, 4);
        folders += strcspn(folders, between);
        folders += *folders == between[0];
    }
    if (store_own_folder(path, sizeof path)) store_scan_folder(list, STORE_OWN, path, 4);
    scan_hugging_face(list);
    scan_ollama(list);
    static const char *const studio[] = {"/.lmstudio/models", "/.cache/lm-studio/models"};
    for (int i = 0; i < 2; i++)
        if (below(path, sizeof path, NULL, studio[i])) store_scan_folder(list, STORE_LM_STUDIO, path, 4);
}
