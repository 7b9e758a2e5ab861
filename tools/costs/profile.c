// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --profile: a run in the Trace Event Format, which Chrome and Perfetto open. One track each for loading, the
// prompt, the tokens and the steps of the device; counters for memory, speed and the cache. Timing every step
// of every pass would slow the run down, and keep devices from running all steps as one executable: of the
// passes that make tokens some are timed, and are marked so.
#include "tools/common.h"
#include "tools/costs/costs.h"
#include "tools/json/json.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 4, EVERY = 16, PASSES = 256, NAME = 96, SHAPES = 320 }; // passes that are timed
enum { TRACK_LOAD = 1, TRACK_PROMPT, TRACK_TOKENS, TRACK_STEPS, TRACKS };

// What is recorded while the clock runs is small: the rest of a step is asked of its plan when the file is
// written.
typedef struct event {
    int32_t track;       // 0: a counter
    int32_t step;        // of its plan
    size_t pass;         // of a step: which of the timed ones
    char name[NAME];     // not of a step
    uint64_t begin, end; // of a counter: when, and not used
    double number;       // of a counter
} event;

// A pass whose steps were timed.
typedef struct timed_pass {
    tn_plan *plan; // owned
    int64_t depth; // keys before its tokens; -1: not known, so costs are not either
} timed_pass;

struct tool_trace {
    event *events;
    size_t n, capacity;
    timed_pass *timed;
    size_t n_timed, timed_capacity;
    int32_t n_passes, n_tokens;
    bool has_peaks, lost; // lost: an event found no memory
    peaks peaks;
    uint64_t begin, engine_tokens; // engine_tokens: that the engine had done after its last step
};

// An array with capacity for one more; NULL: no memory, and the array stays.
static void *with_capacity(tool_trace *t, void *array, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity) return array;
    size_t more = *capacity ? 2 * *capacity : 256;
    void *grown = realloc(array, more * size);
    if (!grown)
        t->lost = true;
    else
        *capacity = more;
    return grown;
}

static event *add(tool_trace *t)
{
    event *events = with_capacity(t, t->events, t->n, &t->capacity, sizeof *events);
    if (!events) return NULL;
    t->events = events;
    event *e = &t->events[t->n++];
    memset(e, 0, sizeof *e);
    return e;
}

static bool add_timed(tool_trace *t, const tn_plan *plan, int64_t depth)
{
    timed_pass *timed = with_capacity(t, t->timed, t->n_timed, &t->timed_capacity, sizeof *timed);
    if (!timed) return false;
    t->timed = timed;
    t->timed[t->n_timed++] = (timed_pass){tn_plan_ref((tn_plan *)plan), depth};
    return true;
}

void tool_trace_open(tool *t)
{
    if (!opt_text(t->opt, OPT_PROFILE)) return;
    t->trace = calloc(1, sizeof *t->trace);
    if (t->trace) t->trace->begin = now_ns();
}

void tool_trace_close(tool *t)
{
    for (size_t i = 0; t->trace && i < t->trace->n_timed; i++) tn_plan_unref(&t->trace->timed[i].plan);
    if (t->trace) free(t->trace->timed);
    if (t->trace) free(t->trace->events);
    free(t->trace);
    t->trace = NULL;
}

static void add_span(tool_trace *t, int32_t track, const char *name, uint64_t begin, uint64_t end)
{
    event *e = add(t);
    if (!e) return;
    e->track = track;
    snprintf(e->name, sizeof e->name, "%s", name);
    e->begin = begin;
    e->end = end;
}

static void add_counter(tool_trace *t, const char *name, uint64_t at, double number)
{
    event *e = add(t);
    if (!e) return;
    snprintf(e->name, sizeof e->name, "%s", name);
    e->begin = at;
    e->number = number;
}

static void add_memory(const tool *t, uint64_t at)
{
    add_counter(t->trace, "peak RAM", at, (double)peak_rss());
    add_counter(t->trace, "allocated", at, (double)tn_context_memory(t->ctx));
}

// The steps of the pass that was timed last, one behind the other. depth: keys before the tokens of the pass.
static void add_steps(tool_trace *t, const tn_session *session, uint64_t begin, int64_t depth)
{
    const tn_plan *plan = tn_session_plan_get(session);
    tn_step_time step = {.struct_size = sizeof step};
    uint64_t total = 0;
    for (int32_t i = 0; tn_session_step_time(session, i, &step) == 1; i++) total += step.ns;
    if (total == 0 || !plan || !add_timed(t, plan, depth)) return; // nothing was evaluated, or no memory
    t->n_passes++;
    for (int32_t i = 0; tn_session_step_time(session, i, &step) == 1; i++) {
        event *e = add(t);
        if (!e) return;
        e->track = TRACK_STEPS;
        e->pass = t->n_timed - 1;
        e->step = i;
        e->begin = begin;
        e->end = begin += step.ns;
    }
}

void tool_trace_load(tool *t, tn_session *session)
{
    if (!t->trace) return;
    tn_device *device = t->device ? t->device : tn_context_device_get(t->ctx, 0);
    t->trace->has_peaks = device && peaks_load(t, device, &t->trace->peaks);
    add_span(t->trace, TRACK_LOAD, "load", t->trace->begin, now_ns());
    if (session) tn_session_profile(session, 1); // the prompt is timed
}

void tool_trace_prompt(tool *t, tn_session *session, uint64_t begin, size_t n_tokens)
{
    enum { BATCH = 512 }; // longer prompts are evaluated in pieces; what is timed then is the last one
    if (!t->trace) return;
    char name[NAME];
    uint64_t end = now_ns();
    snprintf(name, sizeof name, "prompt of %zu tokens", n_tokens);
    add_span(t->trace, TRACK_PROMPT, name, begin, end);
    int64_t depth = n_tokens <= BATCH ? tn_session_length(session, 0) - (int64_t)n_tokens : -1;
    tn_step_time step = {.struct_size = sizeof step};
    uint64_t total = 0;
    for (int32_t i = 0; tn_session_step_time(session, i, &step) == 1; i++) total += step.ns;
    add_steps(t->trace, session, end > total ? end - total : begin, depth);
    t->trace->n_passes = 0;
}

void tool_trace_restart(tool *t)
{
    if (t->trace) t->trace->n_tokens = 0;
}

void tool_trace_token_begin(tool *t, tn_session *session)
{
    if (!t->trace) return;
    int32_t i = t->trace->n_tokens++;
    bool timed = t->trace->n_passes < PASSES && (i < FIRST || i % EVERY == 0);
    tn_session_profile(session, timed);
}

void tool_trace_token_end(tool *t, const tn_session *session, uint64_t begin, const char *text)
{
    if (!t->trace) return;
    uint64_t end = now_ns();
    add_span(t->trace, TRACK_TOKENS, text, begin, end);
    if (end > begin) add_counter(t->trace, "tokens per second", end, 1e9 / (double)(end - begin));
    add_counter(t->trace, "tokens in the cache", end, tn_session_length(session, 0));
    add_memory(t, end);
    add_steps(t->trace, session, begin, tn_session_length(session, 0) - 1);
}

void tool_trace_pass_end(tool *t, const tn_session *session, uint64_t begin, const tool_pass *pass)
{
    if (!t->trace) return;
    char name[NAME];
    uint64_t end = now_ns();
    double tokens = (double)pass->n_tokens;
    snprintf(name, sizeof name, pass->n_tokens == 1 ? "%d token behind %lld" : "%d tokens behind %lld",
             pass->n_tokens, (long long)pass->depth);
    add_span(t->trace, pass->decode ? TRACK_TOKENS : TRACK_PROMPT, name, begin, end);
    if (end > begin) add_counter(t->trace, "tokens per second", end, tokens * 1e9 / (double)(end - begin));
    add_counter(t->trace, "tokens in the cache", end, (double)pass->depth * pass->n_seq + tokens);
    add_memory(t, end);
    add_steps(t->trace, session, begin, pass->depth);
}

void tool_trace_engine(tool *t, tn_engine *engine, uint64_t begin)
{
    if (!t->trace) return;
    tn_engine_stats s = {.struct_size = sizeof s};
    if (tn_engine_stats_get(engine, &s) != TN_OK) return;
    char name[NAME];
    uint64_t end = now_ns();
    uint64_t done = s.n_prompt + s.n_generated, made = done - t->trace->engine_tokens;
    t->trace->engine_tokens = done;
    snprintf(name, sizeof name, "%llu tokens of %d requests", (unsigned long long)made, s.n_running);
    add_span(t->trace, TRACK_TOKENS, name, begin, end);
    if (end > begin)
        add_counter(t->trace, "tokens per second", end, (double)made * 1e9 / (double)(end - begin));
    add_counter(t->trace, "requests that run", end, s.n_running);
    add_counter(t->trace, "requests that wait", end, s.n_waiting);
    add_counter(t->trace, "cache blocks", end, s.n_blocks - s.n_free);
    add_memory(t, end);
}

// --- writing -------------------------------------------------------------------------------------

static void put_name(json *j, const char *what, int32_t tid, const char *name)
{
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

static void put_step_args(json *j, const tool_trace *t, const event *e, const tn_plan_step_info *info)
{
    const timed_pass *p = &t->timed[e->pass];
    char shapes[SHAPES] = "";
    cost_sum cost = {0};
    tn_plan_step_shapes(p->plan, e->step, shapes, sizeof shapes);
    json_text(j, "kernel", info->kernel);
    json_text(j, "value", info->name);
    json_text(j, "operands", shapes);
    json_text(j, "timed", "step by step");
    if (p->depth < 0) return;
    cost_add(&cost, info);
    json_number(j, "bytes", cost_bytes(&cost));
    json_number(j, "weight_bytes", cost.weights);
    json_number(j, "cache_bytes", cost.cache_read + cost.cache_written);
    json_number(j, "operations", cost_ops(&cost));
    if (t->has_peaks && e->end > e->begin)
        json_number(j, "percent_of_limit", 1e11 * cost_limit(&cost, &t->peaks) / (double)(e->end - e->begin));
}

static void put_event(json *j, const tool_trace *t, const event *e)
{
    tn_plan_step_info info = {.struct_size = sizeof info};
    bool is_step = e->track == TRACK_STEPS;
    const timed_pass *p = is_step ? &t->timed[e->pass] : NULL;
    if (p && tn_plan_step_get(p->plan, e->step, p->depth < 0 ? 0 : p->depth, &info) != 1) return;
    json_object(j, NULL);
    json_text(j, "name", is_step ? info.op : e->name);
    if (e->track > 0) json_text(j, "cat", is_step ? "step" : "run");
    json_text(j, "ph", e->track > 0 ? "X" : "C");
    json_number(j, "ts", (double)(e->begin - t->begin) * 1e-3);
    if (e->track > 0) json_number(j, "dur", (double)(e->end - e->begin) * 1e-3);
    json_int(j, "pid", 1);
    json_int(j, "tid", e->track);
    json_object(j, "args");
    if (e->track == 0) json_number(j, e->name, e->number);
    if (is_step) put_step_args(j, t, e, &info);
    json_end_object(j);
    json_end_object(j);
}

// The device of the first step that was timed.
static const char *device_name(const tool_trace *t)
{
    tn_plan_step_info info = {.struct_size = sizeof info};
    bool found = t->n_timed > 0 && tn_plan_step_get(t->timed[0].plan, 0, 0, &info) == 1;
    return found ? info.device : "";
}

static void put_trace(const tool_trace *t, FILE *f)
{
    static const char *const tracks[TRACKS] = {
        [TRACK_LOAD] = "load", [TRACK_PROMPT] = "prompt", [TRACK_TOKENS] = "tokens"};
    json j;
    char steps[NAME];
    json_init(&j, f);
    json_object(&j, NULL);
    json_text(&j, "displayTimeUnit", "ns");
    json_array(&j, "traceEvents");
    put_name(&j, "process_name", 0, "tenon");
    snprintf(steps, sizeof steps, "steps on %s", device_name(t));
    for (int32_t i = 1; i < TRACKS; i++) put_name(&j, "thread_name", i, tracks[i] ? tracks[i] : steps);
    for (size_t i = 0; i < t->n; i++) {
        fputc('\n', f);
        put_event(&j, t, &t->events[i]);
    }
    json_end_array(&j);
    json_end_object(&j);
}

int tool_profile(const tool *t)
{
    const char *path = opt_text(t->opt, OPT_PROFILE);
    if (!path) return 0;
    if (!t->trace) return fail(EXIT_MEMORY, "out of memory for --profile");
    if (t->trace->lost) return fail(EXIT_MEMORY, "out of memory for --profile");
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    put_trace(t->trace, out.f);
    return out_file_commit(&out);
}
