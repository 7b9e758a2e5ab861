// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench --peers: CSV with a line of names first. Tests are named ("test": pp512), or described as
// llama-bench does it (n_prompt, n_gen, n_depth). Speeds are in the column tps or avg_ts.
#include "tools/commands/bench_peers.h"

#include "tools/common.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD = 256 };
enum { COL_PEER, COL_MODEL, COL_TEST, COL_PROMPT, COL_GEN, COL_DEPTH, COL_SPEED, COL_SPREAD, COLS };

// Names of a column, as this program and llama-bench write them.
static const char *const names[COLS][3] = {
    [COL_PEER] = {"peer"},           [COL_MODEL] = {"model_filename", "model"},
    [COL_TEST] = {"test"},           [COL_PROMPT] = {"n_prompt"},
    [COL_GEN] = {"n_gen"},           [COL_DEPTH] = {"n_depth"},
    [COL_SPEED] = {"tps", "avg_ts"}, [COL_SPREAD] = {"tps_spread", "stddev_ts"},
};

const char *path_base(const char *path)
{
    const char *slash = strrchr(path, '/'), *back = strrchr(path, '\\');
    const char *last = back && (!slash || back > slash) ? back : slash;
    return last ? last + 1 : path;
}

// One field at *at as RFC 4180 has it, cut to fit; *at is then at what ends it: a comma, a line's end or 0.
static void read_field(const char **at, char *out)
{
    const char *p = *at;
    size_t n = 0;
    bool quoted = *p == '"';
    for (p += quoted; *p; p++) {
        if (quoted && p[0] == '"' && p[1] == '"')
            p++;
        else if (quoted && *p == '"')
            quoted = false;
        if (!quoted && (*p == ',' || *p == '\n' || *p == '\r')) break;
        if (!quoted && *p == '"') continue;
        if (n + 1 < FIELD) out[n++] = *p;
    }
    out[n] = 0;
    *at = p;
}

typedef struct reader {
    const char *path, *at;
    int line, columns[COLS]; // the number of each column in the file, -1: none
    int given;               // the peer that NAME=FILE names, -1: none
} reader;

static void read_names(reader *r)
{
    char field[FIELD];
    int best[COLS];
    for (int c = 0; c < COLS; c++) r->columns[c] = -1, best[c] = 3;
    for (int i = 0;; i++) {
        read_field(&r->at, field);
        for (int c = 0; c < COLS; c++)
            for (int k = 0; k < best[c]; k++)
                if (names[c][k] && strcmp(names[c][k], field) == 0) r->columns[c] = i, best[c] = k;
        if (*r->at != ',') return;
        r->at++;
    }
}

static int peer_index(peers *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->names[i], name) == 0) return i;
    if (p->n == PEERS_MAX) return -1;
    snprintf(p->names[p->n], sizeof p->names[0], "%.47s", name);
    clean_text(p->names[p->n]);
    return p->n++;
}

// "pp512 @ d1024"; false: the row is none of ours, such as a prompt and tokens in one.
static bool make_test(const reader *r, char fields[COLS][FIELD], char *out, size_t size)
{
    if (r->columns[COL_TEST] >= 0) return snprintf(out, size, "%s", fields[COL_TEST]) > 0;
    long long prompt = strtoll(fields[COL_PROMPT], NULL, 10), gen = strtoll(fields[COL_GEN], NULL, 10),
              depth = strtoll(fields[COL_DEPTH], NULL, 10);
    if ((prompt > 0) == (gen > 0)) return false;
    int n = snprintf(out, size, "%s%lld", prompt > 0 ? "pp" : "tg", prompt > 0 ? prompt : gen);
    if (depth > 0) snprintf(out + n, size - (size_t)n, " @ d%lld", depth);
    return true;
}

static int add_row(peers *p, const reader *r, char fields[COLS][FIELD])
{
    peer_row row = {.peer = r->given};
    char *end;
    row.speed = strtod(fields[COL_SPEED], &end);
    if (end == fields[COL_SPEED] || *end || !(row.speed >= 0 && row.speed < 1e15))
        return fail(EXIT_FAILED, "%s, line %d: '%.32s' is no speed", r->path, r->line, fields[COL_SPEED]);
    row.spread = strtod(fields[COL_SPREAD], NULL);
    if (!make_test(r, fields, row.test, sizeof row.test)) return 0;
    if (row.peer < 0) row.peer = peer_index(p, *fields[COL_PEER] ? fields[COL_PEER] : path_base(r->path));
    if (row.peer < 0) return fail(EXIT_FAILED, "%s: more than %d peers", r->path, PEERS_MAX);
    snprintf(row.model, sizeof row.model, "%.95s", path_base(fields[COL_MODEL]));
    peer_row *grown = realloc(p->rows, (p->n_rows + 1) * sizeof row);
    if (!grown) return fail(EXIT_MEMORY, "out of memory for --peers");
    p->rows = grown;
    p->rows[p->n_rows++] = row;
    return 0;
}

static int read_rows(peers *p, reader *r)
{
    int code = 0;
    for (r->line = 2; !code; r->line++) {
        char fields[COLS][FIELD] = {{0}}, field[FIELD];
        r->at += strspn(r->at, "\r\n");
        if (!*r->at) return 0;
        for (int i = 0;; i++) {
            read_field(&r->at, field);
            for (int c = 0; c < COLS; c++)
                if (r->columns[c] == i) memcpy(fields[c], field, sizeof field);
            if (*r->at != ',') break;
            r->at++;
        }
        code = add_row(p, r, fields);
    }
    return code;
}

static int read_file(peers *p, const char *item)
{
    reader r = {.path = item, .given = -1};
    const char *equals = strchr(item, '=');
    char name[48], *text;
    size_t n;
    if (equals && equals > item) {
        snprintf(name, sizeof name, "%.*s", (int)(equals - item < 47 ? equals - item : 47), item);
        r.path = equals + 1;
        r.given = peer_index(p, name);
        if (r.given < 0) return fail(EXIT_USAGE, "--peers: more than %d peers", PEERS_MAX);
    }
    int code = read_input(r.path, &text, &n);
    if (code) return code;
    r.at = text;
    read_names(&r);
    if (r.columns[COL_SPEED] < 0)
        code = fail(EXIT_FAILED, "%s has no column of speeds; it needs tps or avg_ts", r.path);
    else if (r.columns[COL_TEST] < 0 && (r.columns[COL_PROMPT] < 0 || r.columns[COL_GEN] < 0))
        code = fail(EXIT_FAILED, "%s names no tests; it needs a column test, or n_prompt and n_gen", r.path);
    if (!code) code = read_rows(p, &r);
    free(text);
    return code;
}

int peers_open(peers *p, const options *o)
{
    *p = (peers){.n = 0};
    int code = 0;
    const char *item;
    for (int k = 0; !code && (item = opt_item_get(o, OPT_PEERS, k)) != NULL; k++) code = read_file(p, item);
    return code;
}

void peers_close(peers *p)
{
    free(p->rows);
    *p = (peers){.n = 0};
}

const peer_row *peers_find(const peers *p, int peer, const char *model, const char *test)
{
    for (size_t i = 0; i < p->n_rows; i++) {
        const peer_row *r = &p->rows[i];
        bool same = !*r->model || strcmp(r->model, path_base(model)) == 0;
        if (r->peer == peer && same && strcmp(r->test, test) == 0) return r;
    }
    return NULL;
}
