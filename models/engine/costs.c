// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The running averages of costs.h.
#include "models/engine/costs.h"

#include "models/run/bucket.h"

#include <stddef.h>

// The share of the latest measurement in the running averages.
static const double WEIGHT = 0.2;
// Pairs from which on a difference to what was expected is mostly that of the pairs.
static const double MANY_PAIRS = 262144.0;

// A size that was not measured in so many passes with prompts is predicted again: something else may have
// slowed it down then.
enum { STALE = 256 };

// One cell for each of 1 2 3 4 6 8 12 16 24 ...
static int32_t cell_of(int32_t n)
{
    int32_t size = tn_bucket(TN_MAX(n, 1), 2), power = 1, i = -1;
    for (; power <= size / 2; power *= 2) i += 2;
    return TN_MIN(TN_MAX(i + (size > power), 0), TN_COST_CELLS - 1);
}

static void average(double *value, double now)
{
    *value = (1.0 - WEIGHT) * *value + WEIGHT * now;
}

// --- passes without prompts ----------------------------------------------------------------------------

bool tn_costs_are_old(const tn_pass_costs *c, int32_t n_continued)
{
    enum { MIXED_MOST = 32 }; // under load there are always prompts: one pass in 33 is without
    int32_t i = cell_of(n_continued);
    bool known = c->plain[i].at > 0 || (i > 0 && c->plain[i - 1].at > 0) ||
                 (i + 1 < TN_COST_CELLS && c->plain[i + 1].at > 0);
    return !known || c->n_mixed >= MIXED_MOST;
}

double tn_costs_plain(const tn_pass_costs *c, int32_t n_continued)
{
    int32_t i = cell_of(n_continued), k = i;
    while (k > 0 && c->plain[k].at == 0) k--;
    if (c->plain[k].at == 0)
        for (k = i; k + 1 < TN_COST_CELLS && c->plain[k].at == 0;) k++;
    return c->plain[k].at > 0 ? c->plain[k].ns : 0.0;
}

static void add_plain(tn_pass_costs *c, const tn_pass_size *pass, double ns)
{
    tn_cost_cell *cell = &c->plain[cell_of(pass->n_continued)];
    if (cell->at == 0) *cell = (tn_cost_cell){.ns = ns, .rows = pass->n_continued};
    average(&cell->ns, ns);
    average(&cell->rows, pass->n_continued);
    cell->at = c->n_passes + 1;
    c->n_mixed = 0;
}

// --- passes with prompts -------------------------------------------------------------------------------

static bool is_known(const tn_pass_costs *c, int32_t i)
{
    return i >= 0 && i < TN_COST_CELLS && c->mixed[i].at > 0 && c->n_passes - c->mixed[i].at < STALE;
}

// On the line through two sizes and what they take.
static double between(double rows, double rows0, double ns0, double rows1, double ns1)
{
    if (rows1 <= rows0) return ns1;
    return ns0 + (ns1 - ns0) * (rows - rows0) / (rows1 - rows0);
}

// A size that was measured, at other numbers of rows that share its cell: the texts alone are the other point
// of the line.
static double at_rows(const tn_pass_costs *c, const tn_cost_cell *cell, int32_t n_continued, double rows)
{
    double plain = tn_costs_plain(c, n_continued);
    if (cell->rows <= n_continued || plain <= 0.0) return cell->ns;
    return TN_MAX(between(rows, n_continued, plain, cell->rows, cell->ns), 1.0);
}

tn_cost_source tn_costs_mixed(const tn_pass_costs *c, const tn_pass_size *pass, double *ns)
{
    int32_t i = cell_of(pass->rows), low = i - 1, high = i + 1;
    double pairs = c->pair_ns * pass->pairs, plain = tn_costs_plain(c, pass->n_continued);
    if (is_known(c, i)) {
        *ns = at_rows(c, &c->mixed[i], pass->n_continued, pass->rows) + pairs;
        return TN_COST_MEASURED;
    }
    while (low >= 0 && !is_known(c, low)) low--;
    while (high < TN_COST_CELLS && !is_known(c, high)) high++;
    const tn_cost_cell *below = low >= 0 ? &c->mixed[low] : NULL,
                       *above = high < TN_COST_CELLS ? &c->mixed[high] : NULL;
    bool has_below = below && below->rows > pass->n_continued;
    if (above && (has_below || plain > 0.0)) {
        *ns = has_below ? between(pass->rows, below->rows, below->ns, above->rows, above->ns)
                        : between(pass->rows, pass->n_continued, plain, above->rows, above->ns);
    } else if (has_below && pass->rows <= 2.0 * below->rows) {
        // Not further: a smaller size may have cost nothing because it was filled up anyway.
        *ns = between(pass->rows, pass->n_continued, plain, below->rows, TN_MAX(below->ns, plain));
    } else {
        return TN_COST_UNKNOWN;
    }
    *ns += pairs;
    return TN_COST_PREDICTED;
}

static void add_mixed(tn_pass_costs *c, const tn_pass_size *pass, double ns)
{
    int32_t i = cell_of(pass->rows);
    tn_cost_cell *cell = &c->mixed[i];
    double plain = pass->n_continued > 0 ? tn_costs_plain(c, pass->n_continued) : 0.0;
    if (!is_known(c, i)) {
        double rest = TN_MAX(ns - c->pair_ns * pass->pairs, plain);
        *cell = (tn_cost_cell){.ns = rest, .rows = pass->rows};
    } else {
        // The difference is shared out as least mean squares do, normalised by both inputs.
        double share = pass->pairs / MANY_PAIRS, rows = cell->rows;
        double all = at_rows(c, cell, pass->n_continued, pass->rows) + c->pair_ns * pass->pairs;
        double step = WEIGHT * (TN_MIN(ns, 2.0 * all) - all) / (1.0 + share * share);
        average(&rows, pass->rows);
        cell->ns = TN_MAX(at_rows(c, cell, pass->n_continued, rows) + step, 1.0);
        cell->rows = rows;
        c->pair_ns = TN_MAX(c->pair_ns + step * share / MANY_PAIRS, 0.0);
    }
    cell->at = ++c->n_passes;
}

void tn_costs_skip(tn_pass_costs *c, const tn_pass_size *pass)
{
    c->n_mixed += pass->n_continued > 0 && pass->n_prompt > 0;
}

void tn_costs_add(tn_pass_costs *c, const tn_pass_size *pass, double ns)
{
    static const double STEP = 0.0005; // a median that becomes three times as large takes 2200 passes
    tn_costs_skip(c, pass);
    if (pass->n_continued > 0) {
        double m = c->median_ns;
        c->median_ns = m <= 0.0 ? ns : ns > m ? m * (1.0 + STEP) : m * (1.0 - STEP);
    }
    if (pass->n_prompt == 0)
        add_plain(c, pass, ns);
    else
        add_mixed(c, pass, ns);
}
