// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon bench of several models, or beside the speeds of peers: one table, with how many times as fast each
// test is.
#include "tools/commands/bench.h"

#include <string.h>

enum { MODEL, TEST, SPEED, SPREAD, RATE, SHARE, HOST, RATIO, PEERS };

static const bench_result *find_test(const bench_state *s, const bench_result *like)
{
    for (int i = 0; i < s->n_results; i++) {
        const bench_result *r = &s->results[i];
        if (r->kind == like->kind && r->n == like->n && r->depth == like->depth && r->n_seq == like->n_seq)
            return r;
    }
    return NULL;
}

double bench_ratio(const bench_set *set, int c, int i)
{
    const bench_result *r = &set->cases[c]->results[i], *first = find_test(set->cases[0], r);
    return first && first->median > 0 ? r->median / first->median : 0;
}

double bench_peer_ratio(const bench_set *set, int c, int i, int peer, const peer_row **row)
{
    const bench_state *s = set->cases[c];
    const bench_result *r = &s->results[i];
    char test[64];
    *row = peers_find(&set->peers, peer, s->name, bench_test_name(s, r, test, sizeof test));
    return *row && (*row)->speed > 0 ? r->median / (*row)->speed : 0;
}

// The column of ratios is there for several models only.
static int first_peer(const bench_set *set)
{
    return set->n > 1 ? PEERS : RATIO;
}

int bench_table_columns(const bench_set *set)
{
    return first_peer(set) + 2 * set->peers.n;
}

static void name_columns(const bench_set *set, char cells[BENCH_COLUMNS][BENCH_CELL])
{
    static const char *const names[PEERS] = {"model",         "test",      "t/s",     "±",
                                             "GB or GFLOP/s", "% of peak", "host us", "to first"};
    for (int k = 0; k < first_peer(set); k++) snprintf(cells[k], BENCH_CELL, "%s", names[k]);
    for (int k = 0; k < set->peers.n; k++) {
        snprintf(cells[first_peer(set) + 2 * k], BENCH_CELL, "%s t/s", set->peers.names[k]);
        snprintf(cells[first_peer(set) + 2 * k + 1], BENCH_CELL, "to %s", set->peers.names[k]);
    }
}

void bench_table_row(const bench_set *set, int c, int i, char cells[BENCH_COLUMNS][BENCH_CELL])
{
    memset(cells, 0, sizeof(char[BENCH_COLUMNS][BENCH_CELL]));
    if (i < 0) {
        name_columns(set, cells);
        return;
    }
    const bench_state *s = set->cases[c];
    const bench_result *r = &s->results[i];
    bool decode = r->kind == BENCH_DECODE;
    shown(path_base(s->name), cells[MODEL], BENCH_CELL);
    bench_test_name(s, r, cells[TEST], BENCH_CELL);
    snprintf(cells[SPEED], BENCH_CELL, "%.2f", r->median);
    snprintf(cells[SPREAD], BENCH_CELL, "%.2f", r->spread);
    snprintf(cells[RATE], BENCH_CELL, "%.2f %s", r->rate, decode ? "GB/s" : "GFLOP/s");
    if (r->share > 0)
        snprintf(cells[SHARE], BENCH_CELL, "%.1f %s", r->share,
                 decode ? "read" : tn_precision_name(s->precision));
    if (decode && s->host_ns > 0) snprintf(cells[HOST], BENCH_CELL, "%.1f", s->host_ns * 1e-3);
    if (set->n > 1) snprintf(cells[RATIO], BENCH_CELL, "%.3f", bench_ratio(set, c, i));
    for (int k = 0; k < set->peers.n; k++) {
        const peer_row *row;
        double ratio = bench_peer_ratio(set, c, i, k, &row);
        if (!row) continue;
        snprintf(cells[first_peer(set) + 2 * k], BENCH_CELL, "%.2f", row->speed);
        snprintf(cells[first_peer(set) + 2 * k + 1], BENCH_CELL, "%.3f", ratio);
    }
}

static void print_row(const bench_set *set, int c, int i)
{
    char cells[BENCH_COLUMNS][BENCH_CELL];
    bench_table_row(set, c, i, cells);
    putchar('|');
    for (int k = 0; k < bench_table_columns(set); k++) printf(" %s |", cells[k]);
    putchar('\n');
}

void bench_compare_text(const bench_set *set)
{
    for (int c = 0; c < set->n; c++) bench_print_head(set->cases[c]);
    putchar('\n');
    print_row(set, 0, -1);
    putchar('|');
    for (int k = 0; k < bench_table_columns(set); k++) printf(k <= TEST ? " :--- |" : " ---: |");
    putchar('\n');
    for (int c = 0; c < set->n; c++)
        for (int i = 0; i < set->cases[c]->n_results; i++) print_row(set, c, i);
}
