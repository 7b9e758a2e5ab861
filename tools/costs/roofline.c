// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon roofline: a pass of a prompt and a pass of decoding, step by step, against what the device could do.
// Passes that are timed step by step alternate with passes that are not. On devices that run all steps as one
// executable (a captured graph), the former run them one by one, which takes longer.
#include "tools/costs/roofline.h"

#include "tools/interrupt.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>

enum { BATCH = 512, STEPS_MAX = 65536 };

// --- passes ----------------------------------------------------------------------------------------------

static tn_status run_pass(roofline *r, const roof_phase *p, double *seconds)
{
    bench_state *s = r->bench;
    tn_feed feeds[BENCH_SEQUENCES];
    tn_status status = TN_OK;
    for (int32_t q = 0; q < p->n_seq && status == TN_OK; q++)
        status = tn_session_truncate(s->session, q, (int32_t)p->depth);
    for (int32_t q = 0; q < p->n_seq; q++)
        feeds[q] =
            (tn_feed){sizeof(tn_feed), q, p->n_tokens / p->n_seq, s->tokens + p->depth, TN_OUTPUT_LAST, 0};
    uint64_t start = now_ns();
    if (status == TN_OK) status = tn_session_eval(s->session, feeds, p->n_seq);
    *seconds = (double)(now_ns() - start) * 1e-9;
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int32_t n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return n > 0 ? (values[(n - 1) / 2] + values[n / 2]) / 2 : 0;
}

// Times of all steps of the last pass to column `rep` of samples [step][n_reps].
static int32_t read_steps(const tn_session *session, double *samples, int32_t n_reps, int32_t rep)
{
    tn_step_time t = {.struct_size = sizeof t};
    int32_t i = 0;
    for (; i < STEPS_MAX && tn_session_step_time(session, i, &t) == 1; i++)
        if (samples) samples[(size_t)i * (size_t)n_reps + (size_t)rep] = (double)t.ns * 1e-9;
    return i;
}

// --- rows ------------------------------------------------------------------------------------------------

static void add_row(roof_phase *p, const roof_row *step)
{
    for (int32_t i = 0; i < p->n_rows; i++) {
        roof_row *row = &p->rows[i];
        if (strcmp(row->op, step->op) != 0 || strcmp(row->kernel, step->kernel) != 0 ||
            strcmp(row->shapes, step->shapes) != 0)
            continue;
        row->n++, row->seconds += step->seconds, row->limit += step->limit;
        cost_add_sum(&row->cost, &step->cost);
        return;
    }
    p->rows[p->n_rows++] = *step;
}

static int by_loss(const void *a, const void *b)
{
    const roof_row *x = a, *y = b;
    double p = x->seconds - x->limit, q = y->seconds - y->limit;
    return (p < q) - (p > q);
}

// A step whose work the launch of the next one does has no time of its own: both are one row.
static void make_rows(const roofline *r, roof_phase *p, const tn_plan *plan, double *samples, int32_t n_reps)
{
    tn_plan_step_info s = {.struct_size = sizeof s};
    roof_row row = {.n = 1};
    for (int32_t i = 0; tn_plan_step_get(plan, i, p->depth, &s) == 1; i++) {
        size_t n = strlen(row.op);
        snprintf(row.op + n, sizeof row.op - n, "%s%s", n > 0 ? " + " : "", s.op);
        row.seconds += median(samples + (size_t)i * (size_t)n_reps, n_reps);
        cost_add(&row.cost, &s);
        if (s.done_by_next) continue;
        snprintf(row.kernel, sizeof row.kernel, "%s", s.kernel);
        tn_plan_step_shapes(plan, i, row.shapes, sizeof row.shapes);
        row.family = s.family;
        row.limit = cost_limit(&row.cost, &r->peaks);
        p->steps += row.seconds;
        p->limit += row.limit;
        cost_add_sum(&p->cost, &row.cost);
        add_row(p, &row);
        row = (roof_row){.n = 1};
    }
    qsort(p->rows, (size_t)p->n_rows, sizeof *p->rows, by_loss);
}

// --- measuring -------------------------------------------------------------------------------------------

static tn_status fill_cache(bench_state *s, const roof_phase *p)
{
    tn_status status = bench_truncate(s, 0);
    for (int32_t q = 0; q < p->n_seq && p->depth > 0 && status == TN_OK; q++)
        status = tn_session_feed(s->session, q, s->tokens, (int32_t)p->depth);
    return status;
}

// Seconds of each repetition: of the pass that is not timed, of the one that is, and in it around its steps.
typedef struct pass_times {
    double *wall, *timed, *around;
} pass_times;

static void sum_up(roof_phase *p, const pass_times *t, int32_t n_reps)
{
    p->fastest = (roof_fastest){t->wall[0], t->timed[0], t->timed[0] - t->around[0]};
    for (int32_t i = 1; i < n_reps; i++) {
        if (t->wall[i] < p->fastest.wall) p->fastest.wall = t->wall[i];
        if (t->timed[i] >= p->fastest.timed) continue;
        p->fastest.timed = t->timed[i];
        p->fastest.steps = t->timed[i] - t->around[i];
    }
    p->wall = median(t->wall, n_reps);
    p->timed = median(t->timed, n_reps);
    p->around = median(t->around, n_reps);
}

static tn_status measure(roofline *r, roof_phase *p)
{
    bench_state *s = r->bench;
    int32_t n_reps = (int32_t)opt_int(s->t.opt, OPT_REPS), n_steps = 0;
    double *times = calloc(3 * (size_t)n_reps, sizeof *times), *samples = NULL, seconds;
    pass_times t = {times, times + n_reps, times + 2 * (size_t)n_reps};
    tn_status status = times ? fill_cache(s, p) : TN_ERR_MEMORY;
    for (int32_t i = -1; i < n_reps && status == TN_OK; i++) { // -1: warms up
        tn_session_profile(s->session, 0);
        status = run_pass(r, p, i < 0 ? &seconds : &t.wall[i]);
        tn_session_profile(s->session, 1);
        if (status == TN_OK) status = run_pass(r, p, &seconds);
        if (status == TN_OK && i < 0) {
            n_steps = read_steps(s->session, NULL, 0, 0);
            samples = calloc((size_t)n_steps * (size_t)n_reps + 1, sizeof *samples);
            p->rows = calloc((size_t)n_steps + 1, sizeof *p->rows);
            if (!samples || !p->rows) status = TN_ERR_MEMORY;
        } else if (status == TN_OK) {
            read_steps(s->session, samples, n_reps, i);
            t.timed[i] = t.around[i] = seconds;
            for (int32_t k = 0; k < n_steps; k++)
                t.around[i] -= samples[(size_t)k * (size_t)n_reps + (size_t)i];
        }
    }
    const tn_plan *plan = tn_session_plan_get(s->session);
    if (status == TN_OK && plan) make_rows(r, p, plan, samples, n_reps);
    if (status == TN_OK) sum_up(p, &t, n_reps);
    tn_session_profile(s->session, 0);
    free(samples);
    free(times);
    return status;
}

// --- the command -----------------------------------------------------------------------------------------

void roof_describe(roofline *r)
{
    const bench_state *s = r->bench;
    char size[32];
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(bench_device(s), &info);
    snprintf(r->device, sizeof r->device, "%s", info.description ? info.description : s->info.device);
    // Of several types the name has it already.
    bool typed = !s->type && opt_is_set(s->t.opt, OPT_TYPE);
    snprintf(r->model, sizeof r->model, "%.80s%s%.16s: %s, %.2f B parameters, %s", s->name, typed ? " " : "",
             typed ? opt_text(s->t.opt, OPT_TYPE) : "", s->info.arch, (double)s->info.n_params * 1e-9,
             size_text(s->info.weight_size, size, sizeof size));
}

static int get_peaks(roofline *r)
{
    bench_state *s = r->bench;
    tn_device *device = bench_device(s);
    if (!opt_flag(s->t.opt, OPT_NEW_PEAKS) && peaks_load(&s->t, device, &r->peaks)) return 0;
    note("measuring the peaks of %s", s->info.device);
    if (peaks_make(&s->t, device, true, &r->peaks)) return 0;
    return fail(EXIT_FAILED, "the peaks of %s could not be measured: too little memory, or no kernels",
                s->info.device);
}

int roof_measure(roofline *r, int32_t n_tokens, int32_t n_seq, int64_t depth)
{
    bench_state *s = r->bench;
    r->phases[0] = (roof_phase){.name = "prefill", .n_tokens = n_tokens, .n_seq = 1, .depth = depth};
    r->phases[1] = (roof_phase){.name = "decode", .n_tokens = n_seq, .n_seq = n_seq, .depth = depth};
    for (int i = 0; i < ROOF_PHASES; i++) {
        tn_status status = measure(r, &r->phases[i]);
        if (status != TN_OK) return tool_fail(&s->t, status, "%s: %s", s->name, r->phases[i].name);
    }
    return 0;
}

static int write_file(const roofline *r, opt_id option, void (*write)(const roofline *, FILE *))
{
    const char *path = opt_text(r->bench->t.opt, option);
    if (!path) return 0;
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    write(r, out.f);
    return out_file_commit(&out);
}

static int run(roofline *r)
{
    bench_state *s = r->bench;
    const options *o = s->t.opt;
    int64_t tokens = opt_int(o, OPT_ROOF_TOKENS), depth = opt_int(o, OPT_ROOF_DEPTH);
    if (opt_flag(o, OPT_JSON) && opt_flag(o, OPT_CSV))
        return fail(EXIT_USAGE, "--json and --csv exclude each other; give one of them");
    s->longest = s->each = depth + tokens + 1;
    if (opt_int(o, OPT_CTX) > 0 && opt_int(o, OPT_CTX) < s->longest)
        return fail(EXIT_CONTEXT, "%lld tokens behind %lld do not fit -c %lld; leave -c away",
                    (long long)tokens, (long long)depth, (long long)opt_int(o, OPT_CTX));
    int code = bench_open(s);
    if (code) return code;
    if (s->info.is_encoder) return fail(EXIT_FAILED, "%s: encoders have no prefill and decode", s->name);
    s->pass_tokens = (int32_t)(tokens > BATCH ? tokens : 0); // the whole prompt is one pass
    code = bench_make_session(s);
    if (!code) code = get_peaks(r);
    if (!code) interrupt_watch(s->session);
    if (!code) roof_describe(r);
    if (!code) code = roof_measure(r, (int32_t)tokens, s->cfg.n_seq > 1 ? s->cfg.n_seq : 1, depth);
    if (code) return code;
    if (opt_flag(o, OPT_JSON))
        roof_print_json(r);
    else if (opt_flag(o, OPT_CSV))
        roof_print_csv(r);
    else
        roof_print_text(r);
    code = write_file(r, OPT_SVG_FILE, roof_picture);
    return code ? code : write_file(r, OPT_HTML_FILE, roof_page);
}

void roof_close(roofline *r)
{
    for (int i = 0; r && i < ROOF_PHASES; i++) free(r->phases[i].rows);
    free(r);
}

int cmd_roofline(const options *o)
{
    roofline *r = calloc(1, sizeof *r);
    bench_state *s = calloc(1, sizeof *s);
    int code = EXIT_MEMORY;
    if (r && s) {
        s->t.opt = o;
        r->bench = s;
        code = run(r);
    } else {
        fail(code, "out of memory at the start");
    }
    interrupt_watch(NULL);
    if (s) bench_close(s);
    roof_close(r);
    return code;
}
