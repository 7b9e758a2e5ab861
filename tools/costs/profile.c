// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --profile: what the library reports of its threads and passes (tn_span, tn_pass_info) is kept until the
// end. Timing every step of every pass would slow the run down, and keep devices from running all steps as
// one executable: some passes are timed, and are marked so. Recording costs little while the clock runs; the
// rest of a step is asked of its plan when the file is written.
#include "tools/costs/trace.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

enum {
    FIRST = 2,        // passes that are timed in any case, of prompts and of single tokens
    PART = 64,        // after that they are one part of so many of the time
    MOST = 1 << 18,   // spans, passes and samples of a thread
    SAMPLE = 10,      // ms between samples of the counters at least
    BUFFER = 1 << 18, // bytes of the file that are written at once
};

// The thread's own record. A trace is known by its beginning, because another one may get its memory.
typedef struct own_record {
    const tool_trace *trace;
    uint64_t begin;
    trace_thread *thread;
} own_record;
static _Thread_local own_record own;

// Space for n more items at the end of the list; NULL: there is none.
static void *list_add(trace_thread *t, trace_list *list, size_t n, size_t size)
{
    if (list->n + n > list->capacity) {
        size_t more = 2 * (list->n + n) + 256;
        void *grown = list->n < MOST ? realloc(list->items, more * size) : NULL;
        if (!grown) {
            t->n_lost++;
            return NULL;
        }
        list->items = grown;
        list->capacity = more;
    }
    list->n += n;
    return (char *)list->items + (list->n - n) * size;
}

// The record of the calling thread; NULL: no memory.
static trace_thread *own_thread(tool_trace *t)
{
    if (own.trace == t && own.begin == t->begin) return own.thread;
    trace_thread *made = calloc(1, sizeof *made);
    if (!made) return NULL;
    made->next = atomic_load_explicit(&t->threads, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&t->threads, &made->next, made, memory_order_acq_rel,
                                                  memory_order_relaxed)) {
    }
    own = (own_record){t, t->begin, made};
    return made;
}

static int32_t name_index(trace_thread *t, const char *name)
{
    for (int32_t i = 0; i < t->n_names; i++)
        if (strncmp(t->names[i], name, TRACE_NAME - 1) == 0) return i;
    if (t->n_names == TRACE_NAMES) return TRACE_NAMES - 1;
    snprintf(t->names[t->n_names], TRACE_NAME, "%s", name);
    return t->n_names++;
}

static void add_span(trace_thread *t, const tn_span *span)
{
    trace_span *s = t ? list_add(t, &t->spans, 1, sizeof *s) : NULL;
    if (!s) return;
    *s = (trace_span){span->kind, name_index(t, span->name), span->begin_ns, span->end_ns, span->count};
}

static void on_span(void *user, const tn_span *span)
{
    trace_thread *t = own_thread(((tool *)user)->trace);
    if (t && span->kind == TN_SPAN_WORK && span->pool_thread > 0) t->pool_thread = span->pool_thread;
    add_span(t, span);
}

// The passes that are timed take a 64th of the time together, besides the first ones.
static int32_t on_pass_begin(void *user, const tn_pass_info *pass)
{
    tool_trace *t = ((tool *)user)->trace;
    bool tokens = trace_is_tokens(pass->n_tokens, pass->n_seq);
    if (atomic_load_explicit(&t->n_timed[tokens], memory_order_relaxed) < FIRST) return 1;
    return pass->begin_ns >= atomic_load_explicit(&t->next_timed[tokens], memory_order_relaxed);
}

static void add_sample(tool_trace *t, const tn_pass_info *pass, uint64_t tokens, uint64_t begin)
{
    trace_thread *own_one = own_thread(t);
    trace_sample *s = own_one ? list_add(own_one, &own_one->samples, 1, sizeof *s) : NULL;
    if (!s) return;
    *s = (trace_sample){.at = pass->end_ns,
                        .tokens_per_second = (double)tokens * 1e9 / (double)(pass->end_ns - begin + 1),
                        .n_blocks_used = pass->n_blocks_used,
                        .n_blocks = pass->n_blocks,
                        .allocated = tn_context_memory(t->tool->ctx),
                        .peak_rss = peak_rss()};
}

// Counts the tokens of a pass. A sample has those since the last one, over the time from the beginning of the
// first of their passes, so that waiting for requests is left out.
static void count_tokens(tool_trace *t, const tn_pass_info *pass)
{
    uint64_t before = atomic_fetch_add_explicit(&t->tokens, (uint64_t)pass->n_tokens, memory_order_relaxed);
    if (before == 0) atomic_store_explicit(&t->tokens_begin, pass->begin_ns, memory_order_relaxed);
    uint64_t last = atomic_load_explicit(&t->sampled, memory_order_relaxed);
    if (last && pass->end_ns < last + (uint64_t)SAMPLE * 1000000u) return;
    if (!atomic_compare_exchange_strong_explicit(&t->sampled, &last, pass->end_ns, memory_order_relaxed,
                                                 memory_order_relaxed))
        return; // another thread does it
    uint64_t begin = atomic_load_explicit(&t->tokens_begin, memory_order_relaxed);
    add_sample(t, pass, atomic_exchange_explicit(&t->tokens, 0, memory_order_relaxed), begin);
}

// Keeps the times of the steps; without memory the pass counts as not timed.
static void keep_times(trace_thread *t, trace_pass *p, const tn_pass_info *pass)
{
    p->step_ns = t->times.n;
    uint64_t *ns = list_add(t, &t->times, (size_t)pass->n_steps, sizeof *ns);
    if (!ns) return;
    memcpy(ns, pass->step_ns, (size_t)pass->n_steps * sizeof *ns);
    p->n_steps = pass->n_steps;
    p->plan = tn_plan_ref((tn_plan *)pass->plan);
}

static void on_pass_end(void *user, const tn_pass_info *pass)
{
    tool_trace *t = ((tool *)user)->trace;
    bool tokens = trace_is_tokens(pass->n_tokens, pass->n_seq);
    trace_thread *thread = own_thread(t);
    trace_pass *p = thread ? list_add(thread, &thread->passes, 1, sizeof *p) : NULL;
    if (p) {
        *p = (trace_pass){.n_tokens = pass->n_tokens,
                          .n_seq = pass->n_seq,
                          .depth = pass->depth,
                          .session = pass->session,
                          .begin = pass->begin_ns,
                          .submit = pass->submit_ns,
                          .end = pass->end_ns};
        if (pass->step_ns) keep_times(thread, p, pass);
    }
    if (pass->step_ns) {
        uint64_t next = pass->end_ns + (PART - 1) * (pass->end_ns - pass->begin_ns);
        atomic_store_explicit(&t->next_timed[tokens], next, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->n_timed[tokens], 1, memory_order_relaxed);
    }
    count_tokens(t, pass);
}

void tool_trace_open(tool *t, tn_context_config *cfg)
{
    if (!opt_text(t->opt, OPT_PROFILE)) return;
    t->trace = calloc(1, sizeof *t->trace);
    if (!t->trace) return;
    t->trace->tool = t;
    t->trace->begin = now_ns();
    t->trace->main = own_thread(t->trace);
    cfg->span = on_span;
    cfg->pass_begin = on_pass_begin;
    cfg->pass_end = on_pass_end;
}

static void free_thread(trace_thread *t)
{
    trace_pass *passes = t->passes.items;
    for (size_t i = 0; i < t->passes.n; i++) {
        tn_plan_unref(&passes[i].plan);
        free(passes[i].text);
    }
    free(passes);
    free(t->spans.items);
    free(t->samples.items);
    free(t->times.items);
    free(t);
}

void tool_trace_close(tool *t)
{
    if (!t->trace) return;
    trace_thread *at = atomic_load_explicit(&t->trace->threads, memory_order_acquire);
    for (trace_thread *next; at; at = next) {
        next = at->next;
        free_thread(at);
    }
    free(t->trace);
    t->trace = NULL;
}

void tool_trace_loaded(tool *t)
{
    if (!t->trace) return;
    add_span(own_thread(t->trace), &(tn_span){.struct_size = sizeof(tn_span),
                                              .kind = TN_SPAN_LOAD,
                                              .name = "start and load",
                                              .begin_ns = t->trace->begin,
                                              .end_ns = now_ns()});
}

void tool_trace_text(tool *t, const char *text, size_t n)
{
    if (!t->trace || n == 0) return;
    trace_thread *thread = own_thread(t->trace);
    trace_pass *last = thread && thread->passes.n > 0 ? thread->passes.items : NULL;
    if (!last) return;
    last += thread->passes.n - 1;
    if (last->text || !trace_is_tokens(last->n_tokens, last->n_seq)) return;
    last->text = malloc(n + 1);
    if (!last->text) return;
    memcpy(last->text, text, n);
    last->text[n] = 0;
}

int tool_profile(const tool *t)
{
    const char *path = opt_text(t->opt, OPT_PROFILE);
    if (!path) return 0;
    if (!t->trace || !t->trace->main) return fail(EXIT_MEMORY, "out of memory for --profile");
    size_t n_lost = 0;
    trace_thread *at = atomic_load_explicit(&t->trace->threads, memory_order_acquire);
    for (; at; at = at->next) n_lost += at->n_lost;
    if (n_lost > 0) note("--profile: %zu events are left out, there was no space for them", n_lost);
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    setvbuf(out.f, NULL, _IOFBF, BUFFER);
    trace_write(t->trace, out.f);
    return out_file_commit(&out);
}
