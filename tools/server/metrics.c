// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GET /metrics in the text format of Prometheus 0.0.4. It never waits for a step of the engine.
#include "tools/server/server.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>
#include <unistd.h>

static const int statuses[METRIC_STATUSES] = {200, 204, 304, 400, 401, 403, 404, 405, 408,
                                              411, 413, 414, 417, 429, 500, 501, 503, 505};
static const double first_bounds[] = {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,
                                      .75,  1,    2.5, 5,   7.5, 10,  20,  40, 80,  160};
static const double inter_bounds[] = {.001, .0025, .005, .01, .025, .05, .075, .1, .15,
                                      .2,   .3,    .4,   .5,  .75,  1,   2.5,  5,  10};
static const double request_bounds[] = {.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10, 15,
                                        20, 30, 40, 50, 60,  120, 240, 480, 960};

static const double size_bounds[] = {1,   2,   4,    8,    16,   32,   64,    128,
                                     256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void observe_times(histogram *h, const double *bounds, size_t n, double value, uint64_t times)
{
    size_t i = 0;
    while (i < n && value > bounds[i]) i++;
    h->n[i] += times;
    h->sum += value * (double)times;
}

static void observe(histogram *h, const double *bounds, size_t n, double value)
{
    observe_times(h, bounds, n, value, 1);
}

void metrics_first_token(metrics *m, double seconds)
{
    observe(&m->first_token, first_bounds, COUNT(first_bounds), seconds);
}

void metrics_inter_token(metrics *m, double seconds)
{
    observe(&m->inter_token, inter_bounds, COUNT(inter_bounds), seconds);
}

void metrics_queue(metrics *m, double seconds)
{
    observe(&m->queue, request_bounds, COUNT(request_bounds), seconds);
}

void metrics_pass(metrics *m, int32_t n_sequences)
{
    observe(&m->pass_sequences, size_bounds, COUNT(size_bounds), n_sequences);
}

void metrics_passes(metrics *m, uint64_t n_passes, uint64_t n_tokens)
{
    double mean = (double)n_tokens / (double)n_passes;
    observe_times(&m->pass_tokens, size_bounds, COUNT(size_bounds), mean, n_passes);
}

void metrics_count_request(metrics *m, int index, int status, double seconds)
{
    for (int i = 0; i < METRIC_STATUSES; i++)
        if (statuses[i] == status) m->requests[index][i]++;
    observe(&m->request, request_bounds, COUNT(request_bounds), seconds);
}

// --- text ------------------------------------------------------------------------------------------------

static void head(FILE *f, const char *name, const char *type, const char *help)
{
    fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put(FILE *f, const char *name, const char *type, const char *help, double value)
{
    head(f, name, type, help);
    fprintf(f, "%s %.17g\n", name, value);
}

static void put_histogram(FILE *f, const char *name, const char *help, const histogram *h,
                          const double *bounds, size_t n)
{
    uint64_t sum = 0;
    head(f, name, "histogram", help);
    for (size_t i = 0; i < n; i++) {
        sum += h->n[i];
        fprintf(f, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)sum);
    }
    sum += h->n[n];
    fprintf(f, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.17g\n%s_count %llu\n", name, (unsigned long long)sum,
            name, h->sum, name, (unsigned long long)sum);
}

// A label value: backslash, quote and newline are escaped.
static void put_label(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '"') fputc('\\', f);
        if (*text == '\n')
            fputs("\\n", f);
        else
            fputc(*text, f);
    }
}

static void put_requests(FILE *f, const metrics *m)
{
    head(f, "tenon_requests_total", "counter", "Answers by route and status.");
    for (int r = 0; r < METRIC_ROUTES; r++)
        for (int i = 0; i < METRIC_STATUSES; i++)
            if (m->requests[r][i])
                fprintf(f, "tenon_requests_total{route=\"%s\",status=\"%d\"} %llu\n",
                        route_names[r] ? route_names[r] : "other", statuses[i],
                        (unsigned long long)m->requests[r][i]);
}

static void put_finished(FILE *f, const metrics *m)
{
    static const char *const names[] = {"stop", "length", "tool_calls", "cancelled", "error"};
    head(f, "tenon_finished_total", "counter", "Generations by the reason of their end.");
    for (int i = 0; i < FINISH_COUNT; i++)
        fprintf(f, "tenon_finished_total{reason=\"%s\"} %llu\n", names[i],
                (unsigned long long)m->finished[i]);
}

static void put_rejected(FILE *f, const metrics *m)
{
    static const char *const names[REJECT_COUNT] = {[REJECT_QUEUE] = "queue_full",
                                                    [REJECT_DRAINING] = "draining",
                                                    [REJECT_KEY] = "key",
                                                    [REJECT_SIZE] = "size",
                                                    [REJECT_PARSE] = "parse"};
    head(f, "tenon_rejected_total", "counter", "Requests that were refused, by the reason.");
    for (int i = REJECT_NONE + 1; i < REJECT_COUNT; i++)
        fprintf(f, "tenon_rejected_total{reason=\"%s\"} %llu\n", names[i],
                (unsigned long long)m->rejected[i]);
}

// Of all engines, with the counts of those that are gone.
static tn_engine_stats sum_engines(const server *s)
{
    tn_engine_stats sum = s->models.retired;
    for (int i = 0; i < s->models.n; i++) {
        const model *m = &s->models.all[i];
        tn_engine_stats e = {.struct_size = sizeof e};
        if (m->state != MODEL_READY || !m->engine) continue;
        tn_engine_stats_get(m->engine, &e);
        sum.n_running += e.n_running;
        sum.n_waiting += e.n_waiting;
        sum.n_blocks += e.n_blocks;
        sum.n_free += e.n_free;
        sum.n_cached += e.n_cached;
        sum.n_hits += e.n_hits;
        sum.n_evicted += e.n_evicted;
        sum.n_steps += e.n_steps;
        sum.n_preempted += e.n_preempted;
        sum.n_host += e.n_host;
        sum.n_host_saved += e.n_host_saved;
        sum.n_host_loaded += e.n_host_loaded;
    }
    return sum;
}

static void put_engine(FILE *f, server *s)
{
    const tn_engine_stats e = sum_engines(s);
    int32_t used = e.n_blocks - e.n_free;
    put(f, "tenon_requests_running", "gauge", "Generations that run, after the last pass.", e.n_running);
    put(f, "tenon_requests_waiting", "gauge", "Requests that wait.",
        (double)e.n_waiting + (double)s->n_requests);
    put(f, "tenon_cache_usage_ratio", "gauge", "Share of the cache blocks that running requests use.",
        e.n_blocks > 0 ? (double)used / e.n_blocks : 0);
    head(f, "tenon_cache_blocks", "gauge", "Blocks of the cache, by state.");
    fprintf(f, "tenon_cache_blocks{state=\"used\"} %d\n", used);
    fprintf(f, "tenon_cache_blocks{state=\"cached\"} %d\n", e.n_cached);
    fprintf(f, "tenon_cache_blocks{state=\"free\"} %d\n", e.n_free - e.n_cached);
    fprintf(f, "tenon_cache_blocks{state=\"host\"} %d\n", e.n_host);
    put(f, "tenon_cache_saved_total", "counter", "Blocks that were copied to the memory of the host.",
        (double)e.n_host_saved);
    put(f, "tenon_cache_loaded_total", "counter", "Blocks that were copied back for a request.",
        (double)e.n_host_loaded);
    put(f, "tenon_cache_hits_total", "counter", "Requests that found a part of their prompt in the cache.",
        (double)e.n_hits);
    put(f, "tenon_cache_evicted_total", "counter", "Cached blocks that were needed for something else.",
        (double)e.n_evicted);
    put(f, "tenon_steps_total", "counter", "Passes of the engine.", (double)e.n_steps);
    put(f, "tenon_preemptions_total", "counter", "Times a running request had to wait again.",
        (double)e.n_preempted);
}

// -1: the system does not say.
static int open_files(void)
{
    DIR *dir = opendir("/proc/self/fd"); // Linux
    int n = 0;
    if (!dir) dir = opendir("/dev/fd"); // macOS, BSDs
    if (!dir) return -1;
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 3; // ".", ".." and the folder itself
}

static void put_process(FILE *f, server *s)
{
    long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r"); // Linux
    if (statm) {
        if (fscanf(statm, "%*s %ld", &pages) != 1) pages = 0;
        fclose(statm);
    }
    int n_files = open_files();
    if (pages > 0)
        put(f, "process_resident_memory_bytes", "gauge", "Memory in use.",
            (double)pages * (double)sysconf(_SC_PAGESIZE));
    if (n_files >= 0) put(f, "process_open_fds", "gauge", "Open file descriptors.", n_files);
    put(f, "process_start_time_seconds", "gauge", "When requests were accepted.", (double)s->created);
    head(f, "tenon_build_info", "gauge", "The version and the first model.");
    fprintf(f, "tenon_build_info{version=\"%s\",model=\"", tn_version());
    put_label(f, s->models.all[0].name);
    fputs("\"} 1\n", f);
}

// --- models ----------------------------------------------------------------------------------------------

static double is_loaded(const model *m)
{
    return m->state == MODEL_READY;
}

static double memory_of(const model *m)
{
    return m->state == MODEL_READY ? (double)model_size(m) : 0;
}

static double users_of(const model *m)
{
    return m->n_users;
}

// clang-format off
#define OF(name) static double name##_of(const model *m) { return (double)m->counts.name; }
OF(requests)
OF(prompt_tokens)
OF(cached_tokens)
OF(generated_tokens)
OF(loads)
OF(load_failures)
OF(load_seconds)

static const struct {
    const char *name, *type, *help;
    double (*value)(const model *m);
} model_rows[] = {
    {"loaded", "gauge", "Whether the model is loaded.", is_loaded},
    {"memory_bytes", "gauge", "Its weights and cache, while it is loaded.", memory_of},
    {"users", "gauge", "Its requests that have not ended.", users_of},
    {"requests_total", "counter", "Requests that named it.", requests_of},
    {"prompt_tokens_total", "counter", "Tokens of its prompts.", prompt_tokens_of},
    {"prompt_tokens_cached_total", "counter", "Those of them that the cache held.", cached_tokens_of},
    {"generated_tokens_total", "counter", "Tokens that it generated.", generated_tokens_of},
    {"loads_total", "counter", "Times it was loaded.", loads_of},
    {"load_failures_total", "counter", "Times it could not be loaded.", load_failures_of},
    {"load_seconds_total", "counter", "Time of loading it.", load_seconds_of},
};
// clang-format on

static void put_models(FILE *f, const server *s)
{
    char name[64];
    for (size_t i = 0; i < COUNT(model_rows); i++) {
        snprintf(name, sizeof name, "tenon_model_%s", model_rows[i].name);
        head(f, name, model_rows[i].type, model_rows[i].help);
        for (int k = 0; k < s->models.n; k++) {
            fprintf(f, "%s{model=\"", name);
            put_label(f, s->models.all[k].name);
            fprintf(f, "\"} %.17g\n", model_rows[i].value(&s->models.all[k]));
        }
    }
}

void route_metrics(server *s, exchange *x)
{
    const metrics *m = &s->figures;
    size_t n;
    (void)reply_json(s);
    FILE *f = s->out.f;
    put(f, "tenon_prompt_tokens_total", "counter", "Tokens of prompts.", (double)m->prompt_tokens);
    put(f, "tenon_prompt_tokens_cached_total", "counter", "Those of them that the cache held.",
        (double)m->cached_tokens);
    put(f, "tenon_generated_tokens_total", "counter", "Tokens that were generated.",
        (double)m->generated_tokens);
    put(f, "tenon_prompt_seconds_total", "counter", "Time from the start of prompts to their end.",
        m->prompt_seconds);
    put(f, "tenon_generate_seconds_total", "counter", "Time of generating.", m->generate_seconds);
    put(f, "tenon_connections", "gauge", "Open connections.", transport_n_open(s->t));
    put_requests(f, m);
    put_finished(f, m);
    put_rejected(f, m);
    put(f, "tenon_unknown_fields_total", "counter", "Fields of requests that were ignored as not known.",
        (double)m->unknown_fields);
    put_engine(f, s);
    put_models(f, s);
    put_histogram(f, "tenon_time_to_first_token_seconds", "From the request to its first token.",
                  &m->first_token, first_bounds, COUNT(first_bounds));
    put_histogram(f, "tenon_inter_token_seconds", "Between two tokens of an answer.", &m->inter_token,
                  inter_bounds, COUNT(inter_bounds));
    put_histogram(f, "tenon_request_seconds", "From the head of a request to the end of its answer.",
                  &m->request, request_bounds, COUNT(request_bounds));
    put_histogram(f, "tenon_queue_seconds", "Before a generation ran for the first time.", &m->queue,
                  request_bounds, COUNT(request_bounds));
    put_histogram(f, "tenon_step_sequences", "Sequences that got a token in a pass.", &m->pass_sequences,
                  size_bounds, COUNT(size_bounds));
    put_histogram(f, "tenon_step_tokens", "Tokens that a pass evaluated.", &m->pass_tokens, size_bounds,
                  COUNT(size_bounds));
    put_process(f, s);
    const char *text = reply_text(s, &n);
    reply_bytes(x, 200, "text/plain; version=0.0.4; charset=utf-8", text, n);
}
