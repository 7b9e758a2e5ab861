// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// libcurl does not follow redirects here. Each one is followed by hand, so that every hop is checked: its
// scheme, and whether it may see the token.
#include "tools/store/http.h"

#include "tools/common.h"
#include "tools/interrupt.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <tenon/version.h>

enum { REDIRECTS_MAX = 8, POLL_MS = 100, BUFFER_SIZE = 256 << 10 };

// The functions that are used, by name, result and parameters.
#define FUNCTIONS(F)                                                                                         \
    F(global_init, CURLcode, (long))                                                                         \
    F(global_cleanup, void, (void))                                                                          \
    F(easy_init, CURL *, (void))                                                                             \
    F(easy_setopt, CURLcode, (CURL *, CURLoption, ...))                                                      \
    F(easy_getinfo, CURLcode, (CURL *, CURLINFO, ...))                                                       \
    F(easy_reset, void, (CURL *))                                                                            \
    F(easy_cleanup, void, (CURL *))                                                                          \
    F(easy_strerror, const char *, (CURLcode))                                                               \
    F(slist_append, struct curl_slist *, (struct curl_slist *, const char *))                                \
    F(slist_free_all, void, (struct curl_slist *))                                                           \
    F(multi_init, CURLM *, (void))                                                                           \
    F(multi_cleanup, CURLMcode, (CURLM *))                                                                   \
    F(multi_add_handle, CURLMcode, (CURLM *, CURL *))                                                        \
    F(multi_remove_handle, CURLMcode, (CURLM *, CURL *))                                                     \
    F(multi_perform, CURLMcode, (CURLM *, int *))                                                            \
    F(multi_poll, CURLMcode, (CURLM *, struct curl_waitfd *, unsigned, int, int *))                          \
    F(multi_info_read, CURLMsg *, (CURLM *, int *))                                                          \
    F(url, CURLU *, (void))                                                                                  \
    F(url_cleanup, void, (CURLU *))                                                                          \
    F(url_set, CURLUcode, (CURLU *, CURLUPart, const char *, unsigned))                                      \
    F(url_get, CURLUcode, (CURLU *, CURLUPart, char **, unsigned))                                           \
    F(free, void, (void *))

struct http {
    void *library;
    bool started;
    CURL *easy;
    CURLM *multi;
#define F(name, result, parameters) result(*name) parameters;
    FUNCTIONS(F)
#undef F
};

// A response that arrives.
typedef struct reply {
    http *h;
    const http_request *request;
    http_head *head;
    bool begun;   // on_head was called
    bool stopped; // by on_head or on_data
} reply;

// --- headers ---------------------------------------------------------------------------------------------

static bool header_is(const char *line, size_t n, const char *name, const char **value, size_t *size)
{
    size_t k = strlen(name);
    if (n <= k || strncasecmp(line, name, k) != 0 || line[k] != ':') return false;
    *value = line + k + 1;
    *size = n - k - 1;
    while (*size && (**value == ' ' || **value == '\t')) (*value)++, (*size)--;
    while (*size && strchr(" \t\r\n", (*value)[*size - 1])) (*size)--;
    return true;
}

// Digits at *p, which moves behind them; -1 if there are none, or too many for a size.
static int64_t read_size(const char **p, const char *end)
{
    int64_t value = 0;
    const char *start = *p;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++) {
        if (value > (INT64_MAX - 9) / 10) return -1;
        value = value * 10 + (**p - '0');
    }
    return *p == start ? -1 : value;
}

static void read_range(http_head *head, const char *p, size_t n)
{
    const char *end = p + n;
    if (n < 6 || strncasecmp(p, "bytes ", 6) != 0) return;
    p += 6;
    head->first = read_size(&p, end);
    while (p < end && *p != '/') p++;
    if (p < end) p++;
    head->total = read_size(&p, end);
}

static void read_text(char *to, size_t size, const char *value, size_t n)
{
    snprintf(to, size, "%.*s", (int)(n < size ? n : 0), value);
    clean_text(to);
}

static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    reply *r = user;
    http_head *head = r->head;
    const char *v;
    size_t k;
    (void)one;
    if (n > 5 && strncasecmp(line, "HTTP/", 5) == 0) { // a response begins; what was linked stays
        head->first = head->total = head->retry_after = -1;
        head->validator[0] = 0;
        head->gated = false;
    } else if (header_is(line, n, "Content-Range", &v, &k)) {
        read_range(head, v, k);
    } else if (header_is(line, n, "ETag", &v, &k)) {
        if (k > 1 && v[0] == '"') read_text(head->validator, sizeof head->validator, v, k);
    } else if (header_is(line, n, "Last-Modified", &v, &k)) {
        if (!head->validator[0]) read_text(head->validator, sizeof head->validator, v, k);
    } else if (header_is(line, n, "Retry-After", &v, &k)) {
        head->retry_after = read_size(&v, v + k);
    } else if (header_is(line, n, "X-Error-Code", &v, &k)) {
        head->gated = k == 9 && strncasecmp(v, "GatedRepo", 9) == 0;
    } else if (header_is(line, n, "X-Linked-Size", &v, &k)) {
        head->linked_size = read_size(&v, v + k);
    } else if (header_is(line, n, "X-Linked-Etag", &v, &k) && k > 2 && v[0] == '"') {
        sha256_parse(v + 1, k - 2, head->linked_sha256);
    }
    return n;
}

static bool begin_body(reply *r)
{
    if (r->begun) return !r->stopped;
    r->begun = true;
    char *type = NULL;
    curl_off_t length = -1;
    r->h->easy_getinfo(r->h->easy, CURLINFO_RESPONSE_CODE, &r->head->status);
    r->h->easy_getinfo(r->h->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    r->h->easy_getinfo(r->h->easy, CURLINFO_CONTENT_TYPE, &type);
    r->head->length = length;
    snprintf(r->head->type, sizeof r->head->type, "%.60s", type ? type : "");
    clean_text(r->head->type);
    if (r->head->status / 100 == 3) return true; // it is followed
    r->stopped = r->request->on_head && !r->request->on_head(r->request->user, r->head);
    return !r->stopped;
}

static size_t on_body(char *data, size_t one, size_t n, void *user)
{
    reply *r = user;
    (void)one;
    if (!begin_body(r)) return 0;
    if (r->head->status != 200 && r->head->status != 206) return n;
    r->stopped = !r->request->on_data(r->request->user, data, n);
    return r->stopped ? 0 : n;
}

// --- one hop ---------------------------------------------------------------------------------------------

// Errors that come again with every attempt.
static bool is_final(CURLcode code)
{
    static const CURLcode codes[] = {CURLE_UNSUPPORTED_PROTOCOL,
                                     CURLE_URL_MALFORMAT,
                                     CURLE_OUT_OF_MEMORY,
                                     CURLE_PEER_FAILED_VERIFICATION,
                                     CURLE_SSL_CACERT_BADFILE,
                                     CURLE_SSL_CERTPROBLEM,
                                     CURLE_SSL_CIPHER,
                                     CURLE_SSL_ISSUER_ERROR,
                                     CURLE_SSL_PINNEDPUBKEYNOTMATCH,
                                     CURLE_NOT_BUILT_IN,
                                     CURLE_FAILED_INIT,
                                     CURLE_UNKNOWN_OPTION};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code == codes[i]) return true;
    return false;
}

// The headers of the request; false: out of memory.
static bool make_headers(http *h, const http_request *r, bool with_token, struct curl_slist **list)
{
    char lines[3][HTTP_URL] = {"", "", ""};
    if (r->first) snprintf(lines[0], sizeof lines[0], "Range: bytes=%llu-", (unsigned long long)r->first);
    if (r->first && r->validator[0]) snprintf(lines[1], sizeof lines[1], "If-Range: %s", r->validator);
    if (with_token) snprintf(lines[2], sizeof lines[2], "Authorization: Bearer %s", r->token);
    for (int i = 0; i < 3; i++) {
        struct curl_slist *more = lines[i][0] ? h->slist_append(*list, lines[i]) : *list;
        if (lines[i][0] && !more) return false;
        *list = more;
    }
    return true;
}

static void set_options(http *h, const char *url, reply *to, char *error)
{
    static const char *const variables[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    CURL *e = h->easy;
    h->easy_setopt(e, CURLOPT_URL, url);
    h->easy_setopt(e, CURLOPT_USERAGENT, "tenon/" TENON_VERSION);
    h->easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
    h->easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
    h->easy_setopt(e, CURLOPT_NOPROGRESS, 1L);
    h->easy_setopt(e, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    h->easy_setopt(e, CURLOPT_BUFFERSIZE, (long)BUFFER_SIZE);
    h->easy_setopt(e, CURLOPT_ERRORBUFFER, error);
    h->easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)to->request->timeout);
    h->easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    h->easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)to->request->timeout);
    h->easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    h->easy_setopt(e, CURLOPT_HEADERDATA, to);
    h->easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    h->easy_setopt(e, CURLOPT_WRITEDATA, to);
    // libcurl leaves these to its programs.
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *file = getenv(variables[i]);
        if (!file || !*file) continue;
        h->easy_setopt(e, CURLOPT_CAINFO, file);
        break;
    }
}

// Runs what was set until it ends; polls Ctrl-C.
static CURLcode perform(http *h, bool *stopped)
{
    CURLcode code = CURLE_FAILED_INIT;
    int running = 1, waiting;
    if (h->multi_add_handle(h->multi, h->easy) != CURLM_OK) return code;
    while (running && !(*stopped = interrupted())) {
        if (h->multi_perform(h->multi, &running) != CURLM_OK) break;
        if (running && h->multi_poll(h->multi, NULL, 0, POLL_MS, NULL) != CURLM_OK) break;
    }
    for (CURLMsg *m; (m = h->multi_info_read(h->multi, &waiting)) != NULL;)
        if (m->msg == CURLMSG_DONE) code = m->data.result;
    h->multi_remove_handle(h->multi, h->easy);
    return code;
}

static http_result one_hop(http *h, const char *url, bool with_token, reply *to, char why[HTTP_WHY])
{
    char error[CURL_ERROR_SIZE] = "";
    struct curl_slist *headers = NULL;
    bool stopped = false;
    CURLcode code = CURLE_OUT_OF_MEMORY;
    h->easy_reset(h->easy);
    set_options(h, url, to, error);
    if (make_headers(h, to->request, with_token, &headers)) {
        h->easy_setopt(h->easy, CURLOPT_HTTPHEADER, headers);
        code = perform(h, &stopped);
    }
    h->easy_setopt(h->easy, CURLOPT_ERRORBUFFER, NULL);
    h->easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
    h->slist_free_all(headers);
    if (code == CURLE_OK && !stopped && !begin_body(to)) return HTTP_STOPPED; // a response without a body
    if (to->stopped) return HTTP_STOPPED;
    if (stopped) return HTTP_INTERRUPTED;
    if (code == CURLE_OK) return HTTP_DONE;
    snprintf(why, HTTP_WHY, "%s: %s", to->head->host, *error ? error : h->easy_strerror(code));
    return is_final(code) ? HTTP_REFUSED : HTTP_BROKEN;
}

// --- redirects -------------------------------------------------------------------------------------------

static bool is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || strncmp(host, "127.", 4) == 0;
}

bool http_origin(http *h, const char *url, char origin[HTTP_ORIGIN], char *host, size_t host_size)
{
    CURLU *u = h->url();
    char *scheme = NULL, *name = NULL, *port = NULL, *user = NULL;
    bool good = u && h->url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
                h->url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                h->url_get(u, CURLUPART_HOST, &name, 0) == CURLUE_OK &&
                h->url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK &&
                h->url_get(u, CURLUPART_USER, &user, 0) != CURLUE_OK &&
                (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0);
    if (good) {
        int n = snprintf(origin, HTTP_ORIGIN, "%s://%s:%s", scheme, name, port);
        int k = snprintf(host, host_size, "%s", name);
        good = n < HTTP_ORIGIN && (size_t)k < host_size;
        for (char *p = origin; *p; p++)
            if (*p >= 'A' && *p <= 'Z') *p = (char)(*p + 32);
    }
    h->free(scheme);
    h->free(name);
    h->free(port);
    h->free(user);
    h->url_cleanup(u);
    return good;
}

// Whether the next URL may be asked, and whether it may see the token: over TLS, or on this machine.
static bool check_hop(http *h, const http_request *r, const char *url, http_head *head, bool *with_token)
{
    char origin[HTTP_ORIGIN];
    if (!http_origin(h, url, origin, head->host, sizeof head->host)) return false;
    clean_text(head->host);
    bool secure = strncmp(origin, "https:", 6) == 0;
    *with_token = r->token && strcmp(origin, r->token_origin) == 0 && (secure || is_loopback(head->host));
    return secure || r->plain;
}

http_result http_get(http *h, const http_request *r, http_head *head, char why[HTTP_WHY])
{
    char url[HTTP_URL];
    http_request request = *r;
    *head = (http_head){.first = -1, .total = -1, .length = -1, .retry_after = -1, .linked_size = -1};
    why[0] = 0;
    snprintf(url, sizeof url, "%s", r->url);
    for (int hop = 0; hop <= REDIRECTS_MAX; hop++) {
        bool with_token;
        if (!check_hop(h, &request, url, head, &with_token)) {
            snprintf(why, HTTP_WHY, "%s is no https:// address that can be asked%s",
                     hop ? "what it redirects to" : "the address",
                     request.plain ? "" : "; http:// is not encrypted");
            return HTTP_REFUSED;
        }
        if (strncasecmp(url, "https:", 6) == 0) request.plain = false; // never back
        reply to = {.h = h, .request = &request, .head = head};
        http_result result = one_hop(h, url, with_token, &to, why);
        char *next = NULL;
        if (result != HTTP_DONE) return result;
        h->easy_getinfo(h->easy, CURLINFO_REDIRECT_URL, &next);
        if (head->status / 100 != 3 || !next) return HTTP_DONE;
        if (snprintf(url, sizeof url, "%s", next) >= (int)sizeof url) break;
    }
    snprintf(why, HTTP_WHY, "%s: more than %d redirects, or a too long one", head->host, REDIRECTS_MAX);
    return HTTP_REFUSED;
}

// --- the library -----------------------------------------------------------------------------------------

static bool load_functions(http *h)
{
    // libcurl by OpenSSL or by any other library for TLS: programs see the same functions.
    static const char *const files[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4",
                                        "libcurl.4.dylib"};
    for (size_t i = 0; i < sizeof files / sizeof *files && !h->library; i++)
        h->library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
    if (!h->library) return false;
        // ISO C has no conversion from an object pointer to a function pointer; POSIX requires that it works.
#define F(name, result, parameters) *(void **)&h->name = dlsym(h->library, "curl_" #name);
    FUNCTIONS(F)
#undef F
    bool all = true;
#define F(name, result, parameters) all = all && h->name;
    FUNCTIONS(F)
#undef F
    return all;
}

int http_open(http **out)
{
    http *h = calloc(1, sizeof *h);
    *out = h;
    if (!h) return fail(EXIT_MEMORY, "out of memory for the download");
    if (!load_functions(h))
        return fail(EXIT_FAILED,
                    "libcurl%s, which downloads; install it (Debian: libcurl4), or get the file "
                    "with another program",
                    h->library ? " is older than 7.66" : ".so.4 is not here");
    h->started = h->global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    h->easy = h->started ? h->easy_init() : NULL;
    h->multi = h->easy ? h->multi_init() : NULL;
    return h->multi ? 0 : fail(EXIT_FAILED, "libcurl does not start");
}

void http_close(http **out)
{
    http *h = *out;
    *out = NULL;
    if (!h) return;
    if (h->multi) h->multi_cleanup(h->multi);
    if (h->easy) h->easy_cleanup(h->easy);
    if (h->started) h->global_cleanup();
    free(h); // the library stays: what TLS keeps until the end of the program is in it
}
