// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes what --profile has recorded in the Trace Event Format, which Chrome and Perfetto open. Tracks: what
// was loaded, each thread, pieces of prompts, tokens, and the steps of each device. Passes of sessions that
// were at work at the same time, as of two models, lie on tracks of their own.
#include "tools/costs/costs.h"
#include "tools/costs/trace.h"
#include "tools/json/json.h"

#include <stdlib.h>
#include <string.h>

enum { NAME = 96, SHAPES = 320, DEVICES = 8, SESSIONS = 1024, LANES = 16 };

// A session from its first to its last pass, and on which of the tracks for passes it lies.
typedef struct session_range {
    uint64_t session, begin, end;
    int32_t lane;
} session_range;

typedef struct device_peaks {
    char name[NAME];
    bool known;
    peaks peaks;
} device_peaks;

typedef struct writer {
    const tool_trace *t;
    json j;
    session_range *sessions; // [SESSIONS]
    int32_t n_sessions, n_lanes;
    device_peaks devices[DEVICES]; // of which steps were timed
    int32_t n_devices;
} writer;

// Tracks by number: threads from 1 on, what each of them has loaded, then those of the passes.
enum { TID_LOAD = 1000, TID_PASSES = 2000, TID_PROMPT = 0, TID_TOKENS, TID_STEPS, TIDS_OF_LANE = 32 };

static int32_t lane_tid(int32_t lane, int32_t which)
{
    return TID_PASSES + lane * TIDS_OF_LANE + which;
}

// --- names and times -------------------------------------------------------------------------------------

static void put_name(writer *w, const char *what, int32_t tid, const char *name)
{
    json *j = &w->j;
    fputc('\n', j->f);
    json_object(j, NULL);
    json_text(j, "name", what);
    json_text(j, "ph", "M");
    json_int(j, "pid", 1);
    json_int(j, "tid", tid);
    json_object(j, "args");
    json_text(j, "name", name);
    json_end_object(j);
    json_end_object(j);
}

// The name of a track, and its place among them.
static void put_track(writer *w, int32_t tid, const char *name, int32_t place)
{
    json *j = &w->j;
    put_name(w, "thread_name", tid, name);
    fputc('\n', j->f);
    json_object(j, NULL);
    json_text(j, "name", "thread_sort_index");
    json_text(j, "ph", "M");
    json_int(j, "pid", 1);
    json_int(j, "tid", tid);
    json_object(j, "args");
    json_int(j, "sort_index", place);
    json_end_object(j);
    json_end_object(j);
}

// Nanoseconds since a microsecond before the trace was opened, because DevTools takes 0 for no time:
// thousandths of the format's microseconds.
static uint64_t ns_since(const writer *w, uint64_t at)
{
    return 1000 + (at > w->t->begin ? at - w->t->begin : 0);
}

// Readers add the beginning and the duration as binary fractions of a microsecond. A sum behind the end, by
// however little, would lie within what begins there, and DevTools leaves out spans that lie across each
// other: such a span is a nanosecond shorter.
static uint64_t duration(uint64_t begin, uint64_t end)
{
    uint64_t ns = end > begin ? end - begin : 0;
    while (ns > 0 && (double)begin / 1000 + (double)ns / 1000 > (double)end / 1000) ns--;
    return ns;
}

// Begins a span up to its arguments.
static void begin_span(writer *w, const char *name, const char *kind, int32_t tid, uint64_t begin,
                       uint64_t end)
{
    json *j = &w->j;
    fputc('\n', j->f);
    json_object(j, NULL);
    json_text(j, "name", name);
    json_text(j, "cat", kind);
    json_text(j, "ph", "X");
    json_thousandths(j, "ts", ns_since(w, begin));
    json_thousandths(j, "dur", duration(ns_since(w, begin), ns_since(w, end)));
    json_int(j, "pid", 1);
    json_int(j, "tid", tid);
    json_object(j, "args");
}

static void end_event(writer *w)
{
    json_end_object(&w->j);
    json_end_object(&w->j);
}

static void put_counter(writer *w, uint64_t at, const char *name, double value)
{
    json *j = &w->j;
    fputc('\n', j->f);
    json_object(j, NULL);
    json_text(j, "name", name);
    json_text(j, "ph", "C");
    json_thousandths(j, "ts", ns_since(w, at));
    json_int(j, "pid", 1);
    json_int(j, "tid", 0);
    json_object(j, "args");
    json_number(j, name, value);
    end_event(w);
}

// --- sessions and devices ---------------------------------------------------------------------------------

static int32_t find_session(const writer *w, uint64_t session)
{
    for (int32_t i = w->n_sessions - 1; i >= 0; i--)
        if (w->sessions[i].session == session) return i;
    return -1;
}

static void add_ranges(writer *w, const trace_thread *thread)
{
    const trace_pass *passes = thread->passes.items;
    for (size_t i = 0; i < thread->passes.n; i++) {
        const trace_pass *p = &passes[i];
        int32_t at = find_session(w, p->session);
        if (at < 0 && w->n_sessions == SESSIONS) continue;
        if (at < 0) {
            at = w->n_sessions++;
            w->sessions[at] = (session_range){p->session, p->begin, p->end, 0};
        }
        session_range *r = &w->sessions[at];
        if (p->begin < r->begin) r->begin = p->begin;
        if (p->end > r->end) r->end = p->end;
    }
}

static int by_begin(const void *a, const void *b)
{
    const session_range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

// Sessions that follow each other share a lane; more than LANES at the same time share the last one.
static void make_lanes(writer *w)
{
    uint64_t ends[LANES] = {0};
    for (const trace_thread *t = atomic_load(&w->t->threads); t; t = t->next) add_ranges(w, t);
    qsort(w->sessions, (size_t)w->n_sessions, sizeof *w->sessions, by_begin);
    for (int32_t i = 0; i < w->n_sessions; i++) {
        session_range *r = &w->sessions[i];
        while (r->lane < LANES - 1 && ends[r->lane] > r->begin) r->lane++;
        if (r->end > ends[r->lane]) ends[r->lane] = r->end;
        if (r->lane >= w->n_lanes) w->n_lanes = r->lane + 1;
    }
}

// The index of a device by its name; its peaks are those that were kept. -1: there are too many.
static int32_t find_device(writer *w, const char *name)
{
    for (int32_t i = 0; i < w->n_devices; i++)
        if (strcmp(w->devices[i].name, name) == 0) return i;
    if (w->n_devices == DEVICES) return -1;
    device_peaks *d = &w->devices[w->n_devices];
    const tn_device *device = tn_context_device_by_name(w->t->tool->ctx, name);
    snprintf(d->name, sizeof d->name, "%s", name);
    d->known = device && peaks_load(w->t->tool, device, &d->peaks);
    return w->n_devices++;
}

// --- passes and their steps -------------------------------------------------------------------------------

static void put_step(writer *w, const trace_pass *p, int32_t i, uint64_t begin, uint64_t end, int32_t lane)
{
    tn_plan_step_info info = {.struct_size = sizeof info};
    char shapes[SHAPES] = "";
    cost_sum cost = {0};
    json *j = &w->j;
    if (tn_plan_step_get(p->plan, i, p->depth, &info) != 1) return;
    int32_t device = find_device(w, info.device);
    if (device < 0) return;
    tn_plan_step_shapes(p->plan, i, shapes, sizeof shapes);
    cost_add(&cost, &info);
    begin_span(w, info.op, "step", lane_tid(lane, TID_STEPS + device), begin, end);
    json_text(j, "kernel", info.kernel);
    json_text(j, "value", info.name);
    json_text(j, "operands", shapes);
    json_text(j, "timed", "step by step");
    json_number(j, "bytes", cost_bytes(&cost));
    json_number(j, "weight_bytes", cost.weights);
    json_number(j, "cache_bytes", cost.cache_read + cost.cache_written);
    json_number(j, "operations", cost_ops(&cost));
    const device_peaks *d = &w->devices[device];
    if (d->known && end > begin)
        json_number(j, "percent_of_limit", 1e11 * cost_limit(&cost, &d->peaks) / (double)(end - begin));
    end_event(w);
}

// One behind the other. What is around them comes before them where a device counts its time itself.
static void put_steps(writer *w, const trace_pass *p, const uint64_t *ns, int32_t lane)
{
    uint64_t total = 0, at = p->submit;
    for (int32_t i = 0; i < p->n_steps; i++) total += ns[i];
    if (at + total > p->end) at = p->end > p->begin + total ? p->end - total : p->begin;
    for (int32_t i = 0; i < p->n_steps; i++) {
        put_step(w, p, i, at, at + ns[i], lane);
        at += ns[i];
    }
}

static void put_pass(writer *w, const trace_thread *thread, const trace_pass *p)
{
    int32_t session = find_session(w, p->session), lane = session < 0 ? LANES - 1 : w->sessions[session].lane;
    bool tokens = trace_is_tokens(p->n_tokens, p->n_seq);
    char name[NAME];
    if (p->text)
        snprintf(name, sizeof name, "%s", p->text);
    else if (p->n_seq > 1)
        snprintf(name, sizeof name, "%d tokens of %d texts", p->n_tokens, p->n_seq);
    else
        snprintf(name, sizeof name, p->n_tokens == 1 ? "%d token behind %lld" : "%d tokens behind %lld",
                 p->n_tokens, (long long)p->depth);
    begin_span(w, name, "pass", lane_tid(lane, tokens ? TID_TOKENS : TID_PROMPT), p->begin, p->end);
    json_int(&w->j, "tokens", p->n_tokens);
    json_int(&w->j, "texts", p->n_seq);
    json_int(&w->j, "tokens_before", p->depth);
    json_text(&w->j, "timed", p->plan ? "step by step" : "as a whole");
    if (p->plan) json_int(&w->j, "steps", p->n_steps);
    end_event(w);
    if (p->plan) put_steps(w, p, (const uint64_t *)thread->times.items + p->step_ns, lane);
}

// --- threads ----------------------------------------------------------------------------------------------

static void put_span(writer *w, const trace_thread *thread, const trace_span *s, int32_t tid)
{
    bool load = s->kind == TN_SPAN_LOAD;
    begin_span(w, thread->names[s->name], load ? "load" : "thread", load ? TID_LOAD + tid : tid, s->begin,
               s->end);
    if (s->count > 0) json_int(&w->j, s->kind == TN_SPAN_WORK ? "parts" : "count", s->count);
    end_event(w);
}

static void put_thread(writer *w, const trace_thread *thread, int32_t tid)
{
    const trace_span *spans = thread->spans.items;
    const trace_pass *passes = thread->passes.items;
    const trace_sample *samples = thread->samples.items;
    bool loads = false, acts = false;
    char name[NAME], load[NAME + 16] = "load";
    if (thread == w->t->main)
        snprintf(name, sizeof name, "main thread");
    else if (thread->pool_thread > 0)
        snprintf(name, sizeof name, "pool thread %d", thread->pool_thread);
    else
        snprintf(name, sizeof name, "thread %d", tid);
    for (size_t i = 0; i < thread->spans.n; i++) {
        put_span(w, thread, &spans[i], tid);
        loads |= spans[i].kind == TN_SPAN_LOAD;
        acts |= spans[i].kind != TN_SPAN_LOAD;
    }
    if (thread != w->t->main) snprintf(load, sizeof load, "load (%s)", name);
    if (loads) put_track(w, TID_LOAD + tid, load, tid);
    if (acts) put_track(w, tid, name, TID_LOAD + tid);
    for (size_t i = 0; i < thread->passes.n; i++) put_pass(w, thread, &passes[i]);
    for (size_t i = 0; i < thread->samples.n; i++) {
        const trace_sample *s = &samples[i];
        put_counter(w, s->at, "tokens per second", s->tokens_per_second);
        put_counter(w, s->at, "allocated bytes", (double)s->allocated);
        put_counter(w, s->at, "peak of resident bytes", (double)s->peak_rss);
        if (s->n_blocks == 0) continue;
        put_counter(w, s->at, "cache blocks in use", s->n_blocks_used);
        put_counter(w, s->at, "cache blocks free", s->n_blocks - s->n_blocks_used);
    }
}

static void put_lanes(writer *w)
{
    for (int32_t lane = 0; lane < w->n_lanes; lane++) {
        char suffix[16] = "", name[2 * NAME];
        if (lane > 0) snprintf(suffix, sizeof suffix, " (%d)", lane + 1);
        snprintf(name, sizeof name, "prompt%s", suffix);
        put_track(w, lane_tid(lane, TID_PROMPT), name, lane_tid(lane, TID_PROMPT));
        snprintf(name, sizeof name, "tokens%s", suffix);
        put_track(w, lane_tid(lane, TID_TOKENS), name, lane_tid(lane, TID_TOKENS));
        for (int32_t d = 0; d < w->n_devices; d++) {
            snprintf(name, sizeof name, "steps on %s%s", w->devices[d].name, suffix);
            put_track(w, lane_tid(lane, TID_STEPS + d), name, lane_tid(lane, TID_STEPS + d));
        }
    }
}

void trace_write(const tool_trace *t, FILE *f)
{
    writer w = {.t = t, .sessions = calloc(SESSIONS, sizeof(session_range))};
    int32_t tid = 1;
    json_init(&w.j, f);
    json_object(&w.j, NULL);
    json_text(&w.j, "displayTimeUnit", "ns");
    json_array(&w.j, "traceEvents");
    put_name(&w, "process_name", 0, "tenon");
    if (w.sessions) make_lanes(&w);
    put_thread(&w, t->main, tid++);
    for (const trace_thread *at = atomic_load(&t->threads); at; at = at->next)
        if (at != t->main) put_thread(&w, at, tid++);
    put_lanes(&w);
    json_end_array(&w.j);
    json_end_object(&w.j);
    free(w.sessions);
}
