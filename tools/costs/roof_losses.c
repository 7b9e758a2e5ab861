// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Why steps take longer than their limit, and which lever would change that: rules in the order in which they
// are tried, each with one sentence.
#include "tools/costs/roofline.h"

#include <math.h>
#include <string.h>

// Below this time of a single step its start weighs more than its work: launches of a device take some
// microseconds, and so does waking the threads of a processor.
static const double short_step = 15e-6;
static const double near_limit = 0.6; // share of the limit from which a kernel is taken as good

typedef struct facts {
    const roof_row *row;
    double share;  // of the limit
    double each;   // seconds of one step
    bool computes; // the operations are the limit, not the bytes
    double bytes;
    const char *roof; // of the operations: "bf16"
    int32_t n_seq;
} facts;

static bool loses_nothing(const facts *f)
{
    return f->share >= 1;
}

static bool is_short(const facts *f)
{
    return f->each < short_step && f->share < near_limit;
}

static bool computes_badly(const facts *f)
{
    return f->computes && f->share < near_limit;
}

static bool computes(const facts *f)
{
    return f->computes;
}

static bool reads_badly(const facts *f)
{
    return f->share < near_limit && (f->row->cost.weights + f->row->cost.cache_read) * 2 > f->bytes;
}

static bool is_slow(const facts *f)
{
    return f->share < near_limit;
}

static bool reads_weights(const facts *f)
{
    return f->row->cost.weights * 2 > f->bytes;
}

static bool reads_cache(const facts *f)
{
    return f->row->cost.cache_read * 2 > f->bytes;
}

static bool is_any(const facts *f)
{
    return f->row != NULL;
}

typedef struct lever {
    const char *name;
    bool (*fits)(const facts *f);
    const char *sentence; // after "OP (N x, T us each) "; %s: the roof
} lever;

static const lever levers[] = {
    {"none", loses_nothing,
     "is as fast as the peaks or faster: what it reads lies in a cache, or the peaks were measured beside "
     "other work (--new-peaks)"},
    {"fusion", is_short,
     "is over before its start has paid off: joining it with the step before or after it saves that start"},
    {"tiling", computes_badly,
     "leaves the %s units idle for much of its time: other tiles, or a kernel for this shape, would use "
     "them"},
    {"precision", computes,
     "is bound by the %s units: operands of fewer bits (--precision, weights of another type) would help "
     "most"},
    {"tiling", reads_badly,
     "reads slower than the memory can: a kernel that keeps more loads under way would come nearer"},
    {"tiling", is_slow,
     "takes much longer than its bytes and operations need: a kernel for this shape would come nearer"},
    {"batching", reads_weights,
     "is bound by reading its weights: more tokens in a pass (--sequences) share that reading, and weights "
     "of fewer bits shorten it"},
    {"cache type", reads_cache,
     "is bound by reading the cache: fewer bits in it (--cache-type-k, -v) shorten that"},
    {"fusion", is_any,
     "moves activations through the memory: fused with its neighbour they would stay in the processor"},
};

void roof_lever(const roofline *r, const roof_phase *p, const roof_row *row, char *buf, size_t size)
{
    double compute = cost_compute_time(&row->cost, &r->peaks),
           memory = cost_memory_time(&row->cost, &r->peaks);
    facts f = {.row = row,
               .share = row->seconds > 0 ? row->limit / row->seconds : 0,
               .each = row->seconds / row->n,
               .computes = compute > memory,
               .bytes = cost_bytes(&row->cost),
               .roof = tn_precision_name(cost_precision(&row->cost)),
               .n_seq = p->n_seq};
    const lever *l = levers;
    while (!l->fits(&f)) l++;
    int n = snprintf(buf, size, "%s: %s (%d x, %.1f us each, %.0f %% of its limit) ", l->name, row->op,
                     row->n, f.each * 1e6, 100 * f.share);
    if (n < 0 || (size_t)n >= size) return;
    const char *gap = strstr(l->sentence, "%s");
    if (gap)
        snprintf(buf + n, size - (size_t)n, "%.*s%s%s.", (int)(gap - l->sentence), l->sentence, f.roof,
                 gap + 2);
    else
        snprintf(buf + n, size - (size_t)n, "%s.", l->sentence);
}

double roof_rest(const roof_phase *p, int row)
{
    return row == ROOF_AROUND   ? p->around
           : row == ROOF_DELAYS ? p->timed - p->steps - p->around
                                : p->wall - p->timed;
}

const char *roof_rest_name(const roof_phase *p, int row)
{
    if (row == ROOF_AROUND) return "around the steps: inputs, submission, waiting, results";
    if (row == ROOF_DELAYS) return "delays that no step has in most passes";
    return roof_rest(p, row) >= 0 ? "more where steps are not timed"
                                  : "saved where steps need not be timed: they overlap, or start as one";
}

const char *roof_rate(double rate, const char *suffix, char *buf, size_t size)
{
    static const char prefixes[] = " kMGTP";
    int i = 0;
    while (rate >= 999.5 && i < 5) rate /= 1000, i++;
    snprintf(buf, size, "%.*f %.*s%s",
             rate < 9.995   ? 2
             : rate < 99.95 ? 1
                            : 0,
             rate, i > 0, prefixes + i, suffix);
    return buf;
}
