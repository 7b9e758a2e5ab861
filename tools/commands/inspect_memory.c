// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon inspect --memory: what a session, or an engine, was predicted to need, beside what its buffers have
// and its context counts.
#include "tools/commands/inspect.h"
#include "tools/costs/svg.h"
#include "tools/json/json.h"
#include "tools/output.h"

#include <math.h>
#include <string.h>

enum { WEIGHTS, CONVERTED, CACHE, ARENA, SCRATCH, SAMPLING, OTHER, KINDS };
static const char *const kind_names[KINDS] = {"weights", "converted", "cache", "activations",
                                              "scratch", "sampling",  "other"};

typedef struct memory_view {
    const char *path;
    const tool *t;
    tn_model *model;
    tn_model_info info;
    tn_session_config cfg;
    bool engine;
    tn_session_memory predicted, used;
    uint64_t counted; // by the context while the session was made
} memory_view;

// Bytes of a kind on device i.
static uint64_t kind_of(const tn_session_memory *m, int32_t i, int kind)
{
    const tn_device_memory *d = &m->devices[i];
    const tn_device_memory_parts *p = &m->parts[i];
    const uint64_t kinds[KINDS] = {d->weights - p->converted,
                                   p->converted,
                                   d->cache,
                                   d->arena - p->sampling_arena,
                                   d->scratch - p->sampling_scratch,
                                   p->sampling_arena + p->sampling_scratch + p->sampling_other,
                                   d->other - p->sampling_other};
    return kinds[kind];
}

static uint64_t total_of(const tn_session_memory *m, int32_t i)
{
    uint64_t sum = 0;
    for (int k = 0; k < KINDS; k++) sum += kind_of(m, i, k);
    return sum;
}

// --- measuring -------------------------------------------------------------------------------------------

// Of the host, "other" is what the context counted beyond the buffers: tables, plans, copies.
static void add_host_objects(memory_view *v)
{
    tn_device_memory *host = &v->used.devices[v->used.n_devices - 1];
    uint64_t buffers = host->cache + host->arena + host->scratch + host->other;
    if (v->counted > buffers) host->other += v->counted - buffers;
}

static tn_status measure_session(memory_view *v)
{
    tn_session *session = NULL;
    size_t before = tn_context_memory(v->t->ctx);
    tn_status status = tn_session_create(v->model, &v->cfg, &session);
    v->counted = tn_context_memory(v->t->ctx) - before;
    if (status == TN_OK) status = tn_session_memory_get(session, &v->used);
    if (status == TN_OK) v->cfg.n_ctx = tn_session_n_ctx(session);
    tn_session_destroy(&session);
    return status;
}

static tn_status measure_engine(memory_view *v, const tn_engine_config *cfg)
{
    tn_engine *engine = NULL;
    size_t before = tn_context_memory(v->t->ctx);
    tn_status status = tn_engine_create(v->model, cfg, &engine);
    v->counted = tn_context_memory(v->t->ctx) - before;
    if (status == TN_OK) status = tn_engine_memory_get(engine, &v->used);
    tn_engine_destroy(&engine);
    return status;
}

static int measure(memory_view *v)
{
    tn_engine_config engine;
    v->info.struct_size = sizeof v->info;
    tn_model_info_get(v->model, &v->info);
    v->predicted.struct_size = v->used.struct_size = sizeof v->used;
    v->engine = opt_is_set(v->t->opt, OPT_PARALLEL);
    tool_session_config(v->t, &v->cfg);
    int code = v->engine ? tool_engine_config(v->t, &v->info, &v->cfg, &engine) : 0;
    if (code) return code;
    tn_status status = v->engine ? tn_engine_predict(v->model, &engine, &v->predicted)
                                 : tn_session_predict(v->model, &v->cfg, &v->predicted);
    if (status == TN_OK) status = v->engine ? measure_engine(v, &engine) : measure_session(v);
    if (status != TN_OK) return tool_fail(v->t, status, "%s", v->path);
    if (v->used.n_devices != v->predicted.n_devices)
        return fail(EXIT_FAILED, "%s: the session is on other devices than was predicted", v->path);
    add_host_objects(v);
    return 0;
}

// --- text and JSON ---------------------------------------------------------------------------------------

static void print_row(const char *device, const char *kind, uint64_t predicted, uint64_t used)
{
    char a[32], b[32], share[32] = "";
    if (predicted > 0) snprintf(share, sizeof share, "%.1f %%", 100.0 * (double)used / (double)predicted);
    printf("%-12s %-12s %12s %12s %9s\n", device, kind, size_text(predicted, a, sizeof a),
           size_text(used, b, sizeof b), share);
}

static void print_text(const memory_view *v)
{
    char name[160];
    printf("%s, %s of %d sequence%s, context of %d tokens\n\n", shown(v->path, name, sizeof name),
           v->engine ? "an engine" : "a session", v->cfg.n_seq, v->cfg.n_seq == 1 ? "" : "s", v->cfg.n_ctx);
    printf("%-12s %-12s %12s %12s %9s\n", "device", "kind", "predicted", "used", "share");
    for (int32_t i = 0; i < v->predicted.n_devices; i++) {
        const tn_session_memory *p = &v->predicted, *u = &v->used;
        const char *device = p->devices[i].device;
        for (int k = 0; k < KINDS; k++)
            if (kind_of(p, i, k) > 0 || kind_of(u, i, k) > 0)
                print_row(device, kind_names[k], kind_of(p, i, k), kind_of(u, i, k));
        print_row(device, "all", total_of(p, i), total_of(u, i));
    }
}

static void put_memory(json *j, const char *key, const tn_session_memory *m, int32_t i)
{
    json_object(j, key);
    for (int k = 0; k < KINDS; k++) json_size(j, kind_names[k], kind_of(m, i, k));
    json_size(j, "total", total_of(m, i));
    json_end_object(j);
}

static void print_json(const memory_view *v)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "file", v->path);
    json_text(&j, "of", v->engine ? "engine" : "session");
    json_int(&j, "sequences", v->cfg.n_seq);
    json_int(&j, "context", v->cfg.n_ctx);
    json_array(&j, "devices");
    for (int32_t i = 0; i < v->predicted.n_devices; i++) {
        json_object(&j, NULL);
        json_text(&j, "device", v->predicted.devices[i].device);
        put_memory(&j, "predicted", &v->predicted, i);
        put_memory(&j, "used", &v->used, i);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
}

// --- picture ---------------------------------------------------------------------------------------------

enum { WIDTH = 1000, LEFT = 150, RIGHT = 960, TOP = 96, BAR = 28, GAP = 8, GROUP = 22, LEGEND = 118 };

typedef struct bars {
    double most, scale; // bytes at the right edge; of one KiB, MiB or what the axis counts
    const char *scale_name;
} bars;

static bars find_scale(const memory_view *v)
{
    static const char *const scales[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    bars b = {.most = 1, .scale = 1, .scale_name = scales[0]};
    for (int32_t i = 0; i < v->predicted.n_devices; i++)
        b.most = fmax(b.most, fmax((double)total_of(&v->predicted, i), (double)total_of(&v->used, i)));
    for (int i = 1; i < 5 && b.most >= 2 * 1024 * b.scale; i++) b.scale *= 1024, b.scale_name = scales[i];
    b.most *= 1.02;
    return b;
}

static void draw_bar(const bars *b, const tn_session_memory *m, int32_t i, double y, FILE *f)
{
    double x = LEFT;
    for (int k = 0; k < KINDS; k++) {
        double bytes = (double)kind_of(m, i, k), w = bytes / b->most * (RIGHT - LEFT);
        char size[32];
        if (bytes == 0) continue;
        fprintf(f,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"c%d\" "
                "fill-opacity=\"0.8\"><title>%s: %s</title></rect>\n",
                x, y, w, BAR, k, kind_names[k], size_text(kind_of(m, i, k), size, sizeof size));
        x += w;
    }
}

static bool has_kind(const memory_view *v, int kind)
{
    for (int32_t i = 0; i < v->predicted.n_devices; i++)
        if (kind_of(&v->predicted, i, kind) > 0 || kind_of(&v->used, i, kind) > 0) return true;
    return false;
}

static void draw_legend(const memory_view *v, FILE *f)
{
    double x = LEFT;
    for (int k = 0; k < KINDS; k++) {
        if (!has_kind(v, k)) continue;
        fprintf(f,
                "<rect x=\"%.1f\" y=\"60\" width=\"14\" height=\"14\" class=\"c%d\" fill-opacity=\"0.8\"/>\n",
                x, k);
        svg_text(f, x + 20, 72, "start", "fg", "%s", kind_names[k]);
        x += LEGEND;
    }
}

static double tick_of(const bars *b)
{
    double rough = b->most / b->scale / 8, power = pow(10, floor(log10(rough)));
    return power * (rough > 5 * power ? 10 : rough > 2 * power ? 5 : rough > power ? 2 : 1);
}

static void draw(const memory_view *v, FILE *f)
{
    bars b = find_scale(v);
    int n = v->predicted.n_devices;
    double bottom = TOP + n * (2 * (BAR + GAP) + GROUP) - GROUP, tick = tick_of(&b);
    char name[160], size[32];
    svg_begin(f, WIDTH, (int)bottom + 60, "memory");
    svg_text(f, 16, 28, "start", "fg b h", "%s: %s of %d sequence%s, context of %d tokens",
             shown(v->path, name, 80), v->engine ? "an engine" : "a session", v->cfg.n_seq,
             v->cfg.n_seq == 1 ? "" : "s", v->cfg.n_ctx);
    draw_legend(v, f);
    for (double t = 0; t * b.scale <= b.most; t += tick) {
        double x = LEFT + t * b.scale / b.most * (RIGHT - LEFT);
        svg_line(f, x, TOP - 8, x, bottom, "grid");
        svg_text(f, x, bottom + 18, "middle", "dim", "%.6g", t);
    }
    svg_text(f, (LEFT + RIGHT) / 2.0, bottom + 42, "middle", "fg", "%s", b.scale_name);
    for (int i = 0; i < n; i++) {
        const tn_session_memory *both[2] = {&v->predicted, &v->used};
        double y = TOP + i * (2 * (BAR + GAP) + GROUP);
        svg_text(f, 16, y + 6, "start", "fg b", "%.8s", v->predicted.devices[i].device);
        for (int k = 0; k < 2; k++, y += BAR + GAP) {
            draw_bar(&b, both[k], i, y, f);
            svg_text(f, LEFT - 8, y + 12, "end", "fg", "%s", k == 0 ? "predicted" : "used");
            svg_text(f, LEFT - 8, y + 26, "end", "dim", "%s",
                     size_text(total_of(both[k], i), size, sizeof size));
        }
    }
    svg_line(f, LEFT, TOP - 8, LEFT, bottom, "sfg");
    svg_end(f);
}

int inspect_memory(tool *t, const char *path)
{
    memory_view v = {.path = path, .t = t};
    out_file out;
    const char *svg = opt_text(t->opt, OPT_MEMORY_SVG);
    int code = tool_load(t, path, LOAD_WEIGHTS, &v.model);
    if (!code) code = measure(&v);
    if (!code && opt_flag(t->opt, OPT_JSON)) print_json(&v);
    if (!code && !opt_flag(t->opt, OPT_JSON)) print_text(&v);
    if (!code && svg) code = out_file_open(&out, svg);
    if (!code && svg) {
        draw(&v, out.f);
        code = out_file_commit(&out);
    }
    tn_model_unref(&v.model);
    return code;
}
