// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/access.h"

#include "tools/common.h"
#include "tools/server/http/listen.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { HOST_SIZE = 256, BLOCK = 64 };

// --- keys ------------------------------------------------------------------------------------------------

static bool add_key(char ***keys, size_t *n, const char *text, size_t size)
{
    char **more = realloc(*keys, (*n + 1) * sizeof *more);
    if (!more) return false;
    *keys = more;
    char *key = malloc(size + 1);
    if (!key) return false;
    memcpy(key, text, size);
    key[size] = 0;
    more[(*n)++] = key;
    return true;
}

static void free_keys(char **keys, size_t n)
{
    for (size_t i = 0; i < n; i++) free(keys[i]);
    free(keys);
}

// One key a line; empty lines and those that begin with # are skipped.
static int read_keys(const char *path, char ***keys, size_t *n)
{
    char *text;
    size_t size, before = *n;
    int code = read_input(path, &text, &size);
    if (code) return code;
    for (char *line = text, *end; *line; line = end + (*end != 0)) {
        end = line + strcspn(line, "\n");
        size_t skip = strspn(line, " \t\r"), length = strcspn(line + skip, " \t\r\n");
        bool kept =
            length == 0 || line[skip] == '#' || line + skip > end || add_key(keys, n, line + skip, length);
        if (!kept) code = fail(EXIT_MEMORY, "out of memory for the keys");
    }
    free(text);
    if (!code && *n == before) code = fail(EXIT_USAGE, "--api-key-file %s: there is no key in it", path);
    return code;
}

int access_open(access_rules *a, const options *o)
{
    const char *key = opt_text(o, OPT_API_KEY);
    a->opt = o;
    a->key_file = opt_text(o, OPT_API_KEY_FILE);
    a->loopback = host_is_loopback(opt_text(o, OPT_HOST));
    if (key && !*key) return fail(EXIT_USAGE, "--api-key: the key is empty");
    if (key && !add_key(&a->keys, &a->n_keys, key, strlen(key)))
        return fail(EXIT_MEMORY, "out of memory for the keys");
    int code = a->key_file ? read_keys(a->key_file, &a->keys, &a->n_keys) : 0;
    if (code) return code;
    if (a->n_keys == 0 && !a->loopback && !opt_flag(o, OPT_OPEN))
        return fail(EXIT_USAGE,
                    "--host %s can be reached from other machines: give --api-key-file FILE, or --open if "
                    "anyone may use the model",
                    opt_text(o, OPT_HOST));
    return 0;
}

void access_reload(access_rules *a)
{
    char **keys = NULL;
    size_t n = 0;
    const char *key = opt_text(a->opt, OPT_API_KEY);
    if (!a->key_file) return;
    bool ok = (!key || add_key(&keys, &n, key, strlen(key))) && read_keys(a->key_file, &keys, &n) == 0;
    if (!ok) {
        free_keys(keys, n);
        note("the keys stay as they were");
        return;
    }
    free_keys(a->keys, a->n_keys);
    a->keys = keys;
    a->n_keys = n;
}

void access_close(access_rules *a)
{
    free_keys(a->keys, a->n_keys);
    a->keys = NULL;
    a->n_keys = 0;
}

// The time depends on the length of `given` only, not on where it differs.
static bool same_key(const char *key, const char *given, size_t n_given)
{
    size_t n = strlen(key);
    volatile unsigned char differs = (unsigned char)(n != n_given);
    for (size_t i = 0; i < n_given; i++) differs |= (unsigned char)(given[i] ^ key[n ? i % n : 0]);
    return differs == 0;
}

static bool is_key(const access_rules *a, const char *given)
{
    bool found = false;
    if (!given) return false;
    for (size_t i = 0; i < a->n_keys; i++) found |= same_key(a->keys[i], given, strlen(given));
    return found;
}

bool access_key(const access_rules *a, const char *authorization, const char *api_key)
{
    static const char bearer[] = "bearer ";
    if (a->n_keys == 0 || is_key(a, api_key)) return true;
    if (!authorization || strncasecmp(authorization, bearer, sizeof bearer - 1) != 0) return false;
    const char *given = authorization + sizeof bearer - 1;
    return is_key(a, given + strspn(given, " "));
}

// --- hosts and origins -----------------------------------------------------------------------------------

static bool is_listed(const access_rules *a, opt_id id, const char *text)
{
    const char *item;
    for (int k = 0; (item = opt_item_get(a->opt, id, k)) != NULL; k++)
        if (strcmp(item, "*") == 0 || strcasecmp(item, text) == 0) return true;
    return false;
}

// The host of "host:port" or "[address]:port"; false: it is ill-formed.
static bool host_part(const char *text, char out[HOST_SIZE])
{
    size_t n;
    const char *rest;
    if (text[0] == '[') {
        n = strcspn(text, "]");
        if (!text[n] || n < 2) return false;
        rest = text + n + 1;
        text++, n--;
    } else {
        n = strcspn(text, ":");
        rest = text + n;
    }
    if (n == 0 || n >= HOST_SIZE) return false;
    if (*rest && (*rest != ':' || strspn(rest + 1, "0123456789") != strlen(rest + 1))) return false;
    memcpy(out, text, n);
    out[n] = 0;
    return strcspn(out, " ,/@?#\\\t") == n;
}

bool host_is_formed(const char *host)
{
    char name[HOST_SIZE];
    return host_part(host, name);
}

// A page of another site can point its own name at this machine, and would then be of the same origin. Its
// requests carry that name.
bool access_host(const access_rules *a, const char *host)
{
    char name[HOST_SIZE], own[HOST_SIZE];
    if (!host_part(host, name)) return false;
    if (!a->loopback || host_is_loopback(name) || is_listed(a, OPT_ALLOW_HOST, name)) return true;
    return gethostname(own, sizeof own) == 0 && memchr(own, 0, sizeof own) && strcasecmp(own, name) == 0;
}

bool access_origin(const access_rules *a, const char *origin)
{
    char name[HOST_SIZE];
    const char *at = strstr(origin, "://");
    if (is_listed(a, OPT_ALLOW_ORIGIN, origin)) return true;
    if (!at || (strncmp(origin, "http://", 7) != 0 && strncmp(origin, "https://", 8) != 0)) return false;
    return host_part(at + 3, name) && host_is_loopback(name);
}
