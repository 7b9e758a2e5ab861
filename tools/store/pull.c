// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/store/pull.h"

#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <time.h>

enum { FIRST_WAIT_MS = 250, WAIT_MAX_S = 60, SLICE_MS = 50, SPLIT_MAX = 999 };

// --- what repository.c and transfer.c use ------------------------------------------------------------------

bool pull_safe_name(const char *text, size_t n)
{
    if (n == 0 || n >= 200 || text[0] == '.' || text[0] == '-') return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!plain && (!c || !strchr("._-+=,", c))) return false;
    }
    return true;
}

bool pull_wait_again(const http_head *head, int *tries)
{
    long status = head->status;
    if ((status >= 400 && status < 500 && status != 408 && status != 429) || ++*tries >= PULL_ATTEMPTS)
        return false;
    int64_t ms = (int64_t)FIRST_WAIT_MS << (*tries - 1);
    if (head->retry_after > 0) ms = 1000 * (head->retry_after < WAIT_MAX_S ? head->retry_after : WAIT_MAX_S);
    for (; ms > 0 && !interrupted(); ms -= SLICE_MS)
        nanosleep(&(struct timespec){.tv_nsec = SLICE_MS * 1000000L}, NULL);
    return !interrupted();
}

int pull_fail_status(const pull *p, const http_head *head, const char *what)
{
    const char *host = head->host;
    if (head->gated)
        return fail(EXIT_FAILED,
                    "%s: its terms must be accepted first, at %s/%s; then HF_TOKEN with a token of "
                    "that account gets it",
                    what, p->endpoint, p->repository);
    switch (head->status) {
    case 401:
    case 403:
        return fail(EXIT_FAILED, "%s: %s refuses it (status %ld); %s", what, host, head->status,
                    *p->token ? "check the name, and that HF_TOKEN may read it"
                              : "check the name; a private one needs HF_TOKEN");
    case 404:
    case 410:
        return fail(EXIT_FAILED, "%s: there is no such thing at %s; check the name", what, host);
    case 429:
        return fail(EXIT_FAILED, "%s: %s is asked too often; try again later%s", what, host,
                    *p->token ? "" : ", or with HF_TOKEN");
    default:
        return fail(EXIT_FAILED, "%s: %s answers with status %ld; %s", what, host, head->status,
                    head->status >= 500 ? "try again later" : "this is not expected");
    }
}

int pull_fail_result(const pull *p, http_result result)
{
    if (result == HTTP_INTERRUPTED || interrupted())
        return fail(EXIT_INTERRUPTED, "%s: interrupted", p->wanted);
    return fail(EXIT_FAILED, "%s", p->why);
}

// Of the file system of the folder, which may not be there yet; UINT64_MAX: not known.
static uint64_t free_space(const char *folder)
{
    char path[PULL_PATH];
    struct statvfs fs;
    snprintf(path, sizeof path, "%s", folder);
    while (statvfs(path, &fs) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash || slash == path) return UINT64_MAX;
        *slash = 0;
    }
    return (uint64_t)fs.f_bavail * fs.f_frsize;
}

int pull_check_space(const pull *p, uint64_t bytes)
{
    char a[32], b[32];
    uint64_t available = free_space(p->folder);
    if (bytes <= available) return 0;
    return fail(EXIT_FAILED,
                "%s needs %s more, and %s has %s free; 'tenon rm' removes models, XDG_DATA_HOME "
                "puts them elsewhere",
                p->wanted, size_text(bytes, a, sizeof a), p->folder, size_text(available, b, sizeof b));
}

// --- settings ----------------------------------------------------------------------------------------------

// Of HF_TOKEN, or where the login of Hugging Face's own tool keeps it.
static int read_token(pull *p)
{
    static const struct {
        const char *variable, *rest;
    } files[] = {{"HF_TOKEN_PATH", ""},
                 {"HF_HOME", "/token"},
                 {"XDG_CACHE_HOME", "/huggingface/token"},
                 {"HOME", "/.cache/huggingface/token"}};
    const char *token = getenv("HF_TOKEN");
    if (token) snprintf(p->token, sizeof p->token, "%s", token);
    for (size_t i = 0; i < sizeof files / sizeof *files && !token; i++) {
        char path[PULL_PATH];
        const char *base = getenv(files[i].variable);
        if (!base || base[0] != '/') continue;
        snprintf(path, sizeof path, "%s%s", base, files[i].rest);
        FILE *f = fopen(path, "rb");
        size_t n = f ? fread(p->token, 1, sizeof p->token - 1, f) : 0;
        if (f) fclose(f);
        p->token[n] = 0;
        break; // as there: the first place that is set
    }
    size_t n = strlen(p->token);
    while (n && strchr(" \t\r\n", p->token[n - 1])) p->token[--n] = 0;
    for (size_t i = 0; i < n; i++)
        if (p->token[i] <= ' ' || p->token[i] >= 0x7f)
            return fail(EXIT_USAGE, "the token of HF_TOKEN has characters that no token has");
    return 0;
}

static int read_endpoint(pull *p)
{
    const char *text = opt_text(p->opt, OPT_ENDPOINT);
    if (!text) text = getenv("HF_ENDPOINT");
    if (!text || !*text) text = "https://huggingface.co";
    size_t n = (size_t)snprintf(p->endpoint, sizeof p->endpoint, "%s", text);
    while (n > 0 && n < sizeof p->endpoint && p->endpoint[n - 1] == '/') p->endpoint[--n] = 0;
    if (n >= 1000 || strpbrk(p->endpoint, "?# ") ||
        !http_origin(p->http, p->endpoint, p->endpoint_origin, p->endpoint_host, sizeof p->endpoint_host))
        return fail(EXIT_USAGE, "the endpoint must be https://HOST, or http://HOST, without a password");
    p->plain = strncmp(p->endpoint_origin, "http:", 5) == 0;
    return 0;
}

// --- what is wanted ----------------------------------------------------------------------------------------

// "ORG/NAME" of n bytes into p->repository.
static bool take_repository(pull *p, const char *text, size_t n)
{
    const char *slash = memchr(text, '/', n);
    if (!slash || n >= sizeof p->repository) return false;
    size_t org = (size_t)(slash - text);
    if (!pull_safe_name(text, org) || !pull_safe_name(slash + 1, n - org - 1)) return false;
    memcpy(p->repository, text, n);
    p->repository[n] = 0;
    return true;
}

static const char *skip_host(const char *text)
{
    static const char *const hosts[] = {"hf.co/", "huggingface.co/"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strncasecmp(text, hosts[i], strlen(hosts[i])) == 0) return text + strlen(hosts[i]);
    return text;
}

static int list_repository(pull *p, const char *text)
{
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    while (n && text[n - 1] == '/') n--;
    if (!take_repository(p, text, n))
        return fail(EXIT_USAGE,
                    "'%s' is no ORG/NAME, ORG/NAME:TYPE or https:// address; names are those of %s",
                    p->wanted, p->endpoint_host);
    return pull_list(p, colon ? colon + 1 : NULL);
}

// The files of a URL: one, or all parts that the name of the first one counts.
static int take_files(pull *p, const char *url)
{
    store_file_name parsed;
    size_t end = strcspn(url, "?#"), start = end;
    char name[PULL_NAME];
    while (start > 0 && url[start - 1] != '/') start--;
    snprintf(name, sizeof name, "%.*s", (int)(end - start < sizeof name ? end - start : 0), url + start);
    if (!pull_safe_name(name, strlen(name)) || !store_parse_file(name, &parsed))
        return fail(EXIT_USAGE, "the address must end with the name of a GGUF file, as in "
                                "https://HOST/FOLDER/NAME-Q4_K_M.gguf");
    bool split = parsed.n_parts > 1 && parsed.part == 1 && !url[end] && parsed.n_parts <= SPLIT_MAX;
    p->n_files = split ? (size_t)parsed.n_parts : 1;
    p->files = calloc(p->n_files, sizeof *p->files);
    if (!p->files) return fail(EXIT_MEMORY, "out of memory for the list of files");
    for (size_t k = 0; k < p->n_files; k++) {
        pull_file *f = &p->files[k];
        char number[24];
        size_t back = strlen("00001-of-00001.gguf");
        f->size = -1;
        if (snprintf(f->url, sizeof f->url, "%s", url) >= (int)sizeof f->url)
            return fail(EXIT_USAGE, "the address is too long");
        snprintf(f->name, sizeof f->name, "%s", name);
        snprintf(number, sizeof number, "%05zu", k + 1);
        if (split) memcpy(f->url + end - back, number, 5);
        if (split) memcpy(f->name + strlen(name) - back, number, 5);
    }
    snprintf(p->quant, sizeof p->quant, "%s", parsed.quant);
    return 0;
}

// Of n bytes, in whatever case.
static bool ends_as_file(const char *text, size_t n)
{
    return n > 5 && strncasecmp(text + n - 5, ".gguf", 5) == 0;
}

// What is behind the endpoint: a repository ORG/NAME, or ORG/NAME/resolve/REVISION/FILE, where "blob" instead
// is the page about the file. Anything else is an address as those of other places.
static int list_hub_url(pull *p, const char *rest)
{
    char url[HTTP_URL];
    const char *org = strchr(rest, '/'), *name = org ? strchr(org + 1, '/') : NULL;
    if (org && (!name || !name[1]) && !ends_as_file(rest, strcspn(rest, "?#"))) {
        if (strchr(rest, ':') == NULL) return list_repository(p, rest);
        return fail(EXIT_USAGE, "%s: a type follows ORG/NAME alone, without https://", p->wanted);
    }
    bool page = name && strncmp(name, "/blob/", 6) == 0, file = name && strncmp(name, "/resolve/", 9) == 0;
    if ((!page && !file) || !take_repository(p, rest, (size_t)(name - rest))) return take_files(p, p->wanted);
    const char *revision = name + (page ? 6 : 9);
    if (strncmp(revision, "main/", 5) == 0) { // the list has size and checksum
        char path[PULL_NAME];
        snprintf(path, sizeof path, "%.*s", (int)strcspn(revision + 5, "?#"), revision + 5);
        return pull_list(p, path);
    }
    if (snprintf(url, sizeof url, "%s/%s/resolve/%s", p->endpoint, p->repository, revision) >=
        (int)sizeof url)
        return fail(EXIT_USAGE, "the address is too long");
    return take_files(p, url);
}

static int list_url(pull *p)
{
    char origin[HTTP_ORIGIN], host[128];
    size_t n = strlen(p->endpoint);
    if (!http_origin(p->http, p->wanted, origin, host, sizeof host))
        return fail(EXIT_USAGE, "this is no https:// address, or it has a password in it");
    if (strncasecmp(p->wanted, p->endpoint, n) == 0 && p->wanted[n] == '/')
        return list_hub_url(p, p->wanted + n + 1);
    if (strncmp(origin, "http:", 5) == 0 && strcmp(origin, p->endpoint_origin) != 0 &&
        !opt_is_set(p->opt, OPT_SHA256))
        return fail(EXIT_USAGE, "http:// is not encrypted, so anybody on the way can change the file; give "
                                "https://, or --sha256");
    p->plain = strncmp(origin, "http:", 5) == 0;
    return take_files(p, p->wanted);
}

static int take_checksum(pull *p)
{
    const char *text = opt_text(p->opt, OPT_SHA256);
    char hex[SHA256_HEX];
    if (!text) return 0;
    if (!sha256_parse(text, strlen(text), hex))
        return fail(EXIT_USAGE, "--sha256 wants 64 hexadecimal digits");
    if (p->n_files > 1)
        return fail(EXIT_USAGE, "--sha256 is for one file, and this model has %zu", p->n_files);
    if (p->files[0].sha256[0] && strcmp(p->files[0].sha256, hex) != 0)
        return fail(EXIT_MODEL, "%s: the server has a file of another SHA-256, %s", p->files[0].name,
                    p->files[0].sha256);
    memcpy(p->files[0].sha256, hex, sizeof hex);
    return 0;
}

static int find_folder(pull *p)
{
    char own[PULL_PATH];
    if (!store_own_folder(own, sizeof own))
        return fail(EXIT_FAILED, "neither XDG_DATA_HOME nor HOME says where models are kept");
    int n = snprintf(p->folder, sizeof p->folder, "%s%s%s", own, *p->repository ? "/" : "", p->repository);
    return n < (int)sizeof p->folder ? 0 : fail(EXIT_FAILED, "%.200s...: the path is too long", own);
}

// --- the report --------------------------------------------------------------------------------------------

static const char *model_name(const pull *p, char *buf, size_t size)
{
    store_file_name parsed = {.stem = 0};
    store_parse_file(p->files[0].name, &parsed);
    if (*p->repository)
        snprintf(buf, size, "%s%s%s", p->repository, *p->quant ? ":" : "", p->quant);
    else
        snprintf(buf, size, "%.*s%s%s", (int)parsed.stem, p->files[0].name, *p->quant ? ":" : "", p->quant);
    return buf;
}

static void put_json(const pull *p, const char *path, uint64_t bytes)
{
    char name[PULL_NAME + 40];
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "name", model_name(p, name, sizeof name));
    json_text(&j, "type", p->quant);
    json_text(&j, "path", path);
    json_size(&j, "bytes", bytes);
    json_size(&j, "downloaded", p->downloaded);
    json_size(&j, "resumed", p->resumed);
    json_array(&j, "files");
    for (size_t i = 0; i < p->n_files; i++) {
        json_object(&j, NULL);
        json_text(&j, "name", p->files[i].name);
        json_size(&j, "bytes", p->files[i].size < 0 ? 0 : (uint64_t)p->files[i].size);
        json_text(&j, "sha256", p->files[i].sha256);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
}

static void report(const pull *p, const char *path, uint64_t bytes)
{
    char name[PULL_NAME + 40], size[32];
    if (opt_flag(p->opt, OPT_JSON)) {
        put_json(p, path, bytes);
        return;
    }
    model_name(p, name, sizeof name);
    note("%s is here%s, %s; 'tenon run %s' runs it", name, p->downloaded ? "" : " already",
         size_text(bytes, size, sizeof size), name);
    printf("%s\n", path);
}

// Another program's folder has the same model: the path, from malloc, or NULL. *code: an exit code.
static char *find_elsewhere(const pull *p, int *code)
{
    store_list list;
    char name[PULL_NAME + 40], *path = NULL;
    size_t found[64];
    *code = store_list_all(&list);
    if (*code) return NULL;
    size_t n = store_match(&list, model_name(p, name, sizeof name), found, 64);
    for (size_t i = 0; i < n && !path; i++) {
        const store_model *m = &list.items[found[i]];
        if (m->origin != STORE_OWN && m->size == p->total) path = strdup(m->path);
    }
    store_list_fini(&list);
    return path;
}

// --- all files ---------------------------------------------------------------------------------------------

static int get_files(pull *p)
{
    char path[PULL_PATH + PULL_NAME];
    int code = 0;
    uint64_t kept = 0;
    for (size_t i = 0; i < p->n_files && p->total; i++) kept += pull_kept(p, &p->files[i]);
    code = pull_check_space(p, p->total - (kept < p->total ? kept : p->total));
    progress_begin(&p->line, 0);
    p->start_ns = now_ns();
    for (; p->at < p->n_files && !code; p->at++) {
        code = pull_transfer(p, &p->files[p->at]);
        p->before += p->files[p->at].size > 0 ? (uint64_t)p->files[p->at].size : 0;
    }
    progress_clear(&p->line);
    snprintf(path, sizeof path, "%s/%s", p->folder, p->files[0].name);
    if (!code) report(p, path, p->before);
    return code;
}

static void say_what(const pull *p)
{
    char name[PULL_NAME + 40], size[32], host[128] = "", origin[HTTP_ORIGIN];
    http_origin(p->http, p->files[0].url, origin, host, sizeof host);
    note("getting %s%s%s in %zu file%s from %s", model_name(p, name, sizeof name), p->total ? ", " : "",
         p->total ? size_text(p->total, size, sizeof size) : "", p->n_files, p->n_files == 1 ? "" : "s",
         host);
}

static int run(pull *p)
{
    bool is_url = strncasecmp(p->wanted, "https://", 8) == 0 || strncasecmp(p->wanted, "http://", 7) == 0;
    int code = http_open(&p->http);
    if (!code) code = read_endpoint(p);
    if (!code) code = read_token(p);
    if (!code) code = is_url ? list_url(p) : list_repository(p, skip_host(p->wanted));
    if (!code) code = take_checksum(p);
    if (!code) code = find_folder(p);
    if (code) return code;
    for (size_t i = 0; i < p->n_files; i++) {
        if (p->files[i].size < 0) p->total = 0;
        if (p->files[i].size < 0) break;
        if (p->total > INT64_MAX - (uint64_t)p->files[i].size)
            return fail(EXIT_FAILED, "%s: the sizes of its files cannot be true", p->wanted);
        p->total += (uint64_t)p->files[i].size;
    }
    char *there = p->total ? find_elsewhere(p, &code) : NULL;
    if (there)
        report(p, there, p->total);
    else if (!code) {
        if (opt_int(p->opt, OPT_LOG_LEVEL) >= TN_LOG_WARN) say_what(p);
        code = get_files(p);
    }
    free(there);
    return code;
}

int cmd_pull(const options *o)
{
    const char *offline = getenv("HF_HUB_OFFLINE");
    if (o->n_args != 1)
        return fail(EXIT_USAGE, "tenon pull takes one ORG/NAME, ORG/NAME:TYPE or https:// address");
    if (opt_flag(o, OPT_OFFLINE) ||
        (offline && (strcmp(offline, "1") == 0 || strcasecmp(offline, "true") == 0)))
        return fail(EXIT_FAILED, "%s: not fetched, because of %s", o->args[0],
                    opt_flag(o, OPT_OFFLINE) ? "--offline" : "HF_HUB_OFFLINE");
    pull *p = calloc(1, sizeof *p);
    if (!p) return fail(EXIT_MEMORY, "out of memory for the download");
    p->opt = o;
    p->wanted = o->args[0];
    interrupt_poll(true);
    int code = run(p);
    interrupt_poll(false);
    http_close(&p->http);
    free(p->files);
    free(p);
    return code;
}
