// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Results of `tenon bench` as a Markdown table, CSV or JSON.
#include "tools/commands/bench.h"
#include "tools/json/json.h"

#include <string.h>

const char *bench_test_name(const bench_state *s, const bench_result *r, char *buf, size_t size)
{
    static const char *const kinds[] = {[BENCH_PREFILL] = "pp", [BENCH_DECODE] = "tg", [BENCH_EMBED] = "emb"};
    bool classes = r->kind == BENCH_EMBED &&
                   (s->embedder ? tn_embedder_pooling(s->embedder) == TN_POOLING_RANK : s->classes);
    size_t n = (size_t)snprintf(buf, size, "%s%lld", classes ? "cls" : kinds[r->kind], (long long)r->n);
    if (r->depth > 0 && n < size) n += (size_t)snprintf(buf + n, size - n, " @ d%lld", (long long)r->depth);
    if ((r->n_seq > 1 || r->kind == BENCH_EMBED) && n < size) snprintf(buf + n, size - n, " x %d", r->n_seq);
    return buf;
}

// Texts per second; 0: the test is not one of texts.
static double texts_rate(const bench_result *r, double tokens_per_second)
{
    return r->kind == BENCH_EMBED ? tokens_per_second / (double)r->n : 0;
}

static void put_share(double share)
{
    if (share > 0)
        printf(" %.1f |", share);
    else
        printf(" |");
}

static void print_tokens(const bench_state *s)
{
    char name[64];
    printf("\n| test | t/s | ± | GB/s | %% of read peak | GFLOP/s | %% of %s peak |\n",
           tn_precision_name(s->precision));
    printf("| :--- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < s->n_results; i++) {
        const bench_result *r = &s->results[i];
        printf("| %s | %.2f | %.2f |", bench_test_name(s, r, name, sizeof name), r->median, r->spread);
        if (r->kind != BENCH_DECODE) printf(" | |");
        printf(" %.2f |", r->rate);
        put_share(r->share);
        printf(r->kind == BENCH_DECODE ? " | |\n" : "\n");
    }
}

static void print_texts(const bench_state *s)
{
    char name[64];
    printf("\n| test | texts/s | ± | t/s | GFLOP/s | %% of %s peak |\n", tn_precision_name(s->precision));
    printf("| :--- | ---: | ---: | ---: | ---: | ---: |\n");
    for (int i = 0; i < s->n_results; i++) {
        const bench_result *r = &s->results[i];
        printf("| %s | %.2f | %.2f | %.2f | %.2f |", bench_test_name(s, r, name, sizeof name),
               texts_rate(r, r->median), texts_rate(r, r->spread), r->median, r->rate);
        put_share(r->share);
        printf("\n");
    }
}

void bench_peaks_line(const peaks *p, char *buf, size_t size)
{
    size_t n = (size_t)snprintf(buf, size, "read %.1f GB/s", p->read * 1e-9);
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++) {
        const char *isa = i == TN_PRECISION_f32 ? p->f32_isa : i == TN_PRECISION_int8 ? p->int8_isa : "";
        if (p->rate[i] == 0 || n >= size) continue;
        n += (size_t)snprintf(buf + n, size - n, ", %s %.0f %s/s", tn_precision_name(i), p->rate[i] * 1e-9,
                              i == TN_PRECISION_int8 ? "GOP" : "GFLOP");
        if (*isa && n < size) n += (size_t)snprintf(buf + n, size - n, " (%s)", isa);
    }
}

void bench_print_head(const bench_state *s)
{
    char weights[32], name[160], roofs[512];
    tn_device_info device = {.struct_size = sizeof device};
    tn_device *d = bench_device(s);
    if (d) tn_device_info_get(d, &device);
    char threads[32] = ""; // the description of the CPU has them
    if (!device.description || !strstr(device.description, " threads"))
        snprintf(threads, sizeof threads, ", %d threads", tn_context_n_threads(s->t.ctx));
    printf("%s: %s, %.2f B parameters, %s; %s%s\n", shown(s->name, name, sizeof name), s->info.arch,
           (double)s->info.n_params * 1e-9, size_text(s->info.weight_size, weights, sizeof weights),
           device.description ? device.description : s->info.device, threads);
    bench_peaks_line(&s->peaks, roofs, sizeof roofs);
    if (s->has_peaks) printf("peaks measured %s: %s\n", s->peaks.date, roofs);
    if (s->host_ns > 0) printf("host overhead: %.1f us per decode step\n", s->host_ns * 1e-3);
}

void bench_print_text(const bench_state *s)
{
    bench_print_head(s);
    if (opt_is_set(s->t.opt, OPT_TEXTS))
        print_texts(s);
    else
        print_tokens(s);
}

// Quotes a field as RFC 4180 requires.
static void csv_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"') putchar('"');
        putchar(*text);
    }
    putchar('"');
}

// Columns that only runs of several models, or beside peers, have.
static void csv_ratios(const bench_set *set, int c, int i)
{
    const peer_row *row;
    if (set->n > 1) printf(",%.4f", bench_ratio(set, c, i));
    for (int k = 0; k < set->peers.n; k++) {
        double ratio = bench_peer_ratio(set, c, i, k, &row);
        if (row)
            printf(",%.4f,%.4f", row->speed, ratio);
        else
            printf(",,");
    }
}

static void csv_case(const bench_set *set, int c)
{
    const bench_state *s = set->cases[c];
    char name[64];
    for (int i = 0; i < s->n_results; i++) {
        const bench_result *r = &s->results[i];
        csv_text(s->name);
        printf(",%s,%s,%d,%llu,%llu,%s,%lld,%lld,%d,%.4f,%.4f,%.4f,%.4f,", s->info.arch, s->info.device,
               tn_context_n_threads(s->t.ctx), (unsigned long long)s->info.n_params,
               (unsigned long long)s->info.weight_size, bench_test_name(s, r, name, sizeof name),
               (long long)r->n, (long long)r->depth, r->n_reps, r->median, r->spread, r->min, r->max);
        if (r->kind == BENCH_DECODE)
            printf("%.3f,%.2f,,,", r->rate, r->share);
        else
            printf(",,%.3f,%.2f,", r->rate, r->share);
        printf("%.2f,%.1f,%.1f,%.0f,%d,", s->peaks.read * 1e-9, s->peaks.rate[TN_PRECISION_f32] * 1e-9,
               s->peaks.rate[TN_PRECISION_int8] * 1e-9, s->host_ns, r->n_seq);
        if (r->kind == BENCH_EMBED) printf("%.4f", texts_rate(r, r->median));
        csv_ratios(set, c, i);
        printf("\n");
    }
}

void bench_print_csv(const bench_set *set)
{
    printf("model,arch,device,threads,n_params,weight_bytes,test,n,depth,repetitions,tps,tps_spread,tps_min,"
           "tps_max,gbps,"
           "gbps_percent,gflops,gflops_percent,read_peak_gbps,f32_peak_gflops,int8_peak_gops,host_ns_per_"
           "step,sequences,texts_per_second");
    if (set->n > 1) printf(",ratio_to_first");
    for (int k = 0; k < set->peers.n; k++) {
        char name[64];
        snprintf(name, sizeof name, "%s_tps", set->peers.names[k]);
        putchar(',');
        csv_text(name);
        snprintf(name, sizeof name, "ratio_to_%s", set->peers.names[k]);
        putchar(',');
        csv_text(name);
    }
    printf("\n");
    for (int c = 0; c < set->n; c++) csv_case(set, c);
}

static void put_ratios(json *j, const bench_set *set, int c, int i)
{
    const peer_row *row;
    if (set->n > 1) json_number(j, "ratio_to_first", bench_ratio(set, c, i));
    if (set->peers.n == 0) return;
    json_array(j, "peers");
    for (int k = 0; k < set->peers.n; k++) {
        double ratio = bench_peer_ratio(set, c, i, k, &row);
        if (!row) continue;
        json_object(j, NULL);
        json_text(j, "name", set->peers.names[k]);
        json_number(j, "tokens_per_second", row->speed);
        json_number(j, "spread", row->spread);
        json_number(j, "ratio", ratio);
        json_end_object(j);
    }
    json_end_array(j);
}

static void put_result(json *j, const bench_set *set, int c, int i)
{
    const bench_state *s = set->cases[c];
    const bench_result *r = &s->results[i];
    char name[64];
    json_object(j, NULL);
    json_text(j, "test", bench_test_name(s, r, name, sizeof name));
    json_int(j, "n", r->n);
    json_int(j, "depth", r->depth);
    json_int(j, r->kind == BENCH_EMBED ? "texts" : "sequences", r->n_seq);
    json_int(j, "repetitions", r->n_reps);
    if (r->kind == BENCH_EMBED) json_number(j, "texts_per_second", texts_rate(r, r->median));
    json_number(j, "tokens_per_second", r->median);
    json_number(j, "spread", r->spread);
    json_number(j, "min", r->min);
    json_number(j, "max", r->max);
    json_int(j, "begin_ns", (int64_t)r->begin_ns);
    json_int(j, "end_ns", (int64_t)r->end_ns);
    json_number(j, r->kind == BENCH_DECODE ? "gb_per_second" : "gflop_per_second", r->rate);
    if (r->share > 0)
        json_number(j, "percent_of_peak", r->share);
    else
        json_null(j, "percent_of_peak");
    put_ratios(j, set, c, i);
    json_end_object(j);
}

static void put_case(json *j, const bench_set *set, int c)
{
    const bench_state *s = set->cases[c];
    json_text(j, "model", s->name);
    json_text(j, "arch", s->info.arch);
    json_text(j, "device", s->info.device);
    json_int(j, "threads", tn_context_n_threads(s->t.ctx));
    json_size(j, "parameters", s->info.n_params);
    json_size(j, "weight_bytes", s->info.weight_size);
    json_size(j, "active_parameters", s->info.n_active_params);
    json_size(j, "active_weight_bytes", s->info.active_weight_size);
    json_number(j, "cache_bytes_per_token", s->cache_bytes);
    if (s->has_peaks) {
        json_object(j, "peaks");
        json_number(j, "read_gb_per_second", s->peaks.read * 1e-9);
        json_number(j, "f32_gflop_per_second", s->peaks.rate[TN_PRECISION_f32] * 1e-9);
        json_text(j, "f32_isa", s->peaks.f32_isa);
        json_number(j, "int8_gop_per_second", s->peaks.rate[TN_PRECISION_int8] * 1e-9);
        json_text(j, "int8_isa", s->peaks.int8_isa);
        json_text(j, "prefill_peak", tn_precision_name(s->precision));
        json_end_object(j);
    } else {
        json_null(j, "peaks");
    }
    json_number(j, "host_ns_per_step", s->host_ns);
    json_array(j, "results");
    for (int i = 0; i < s->n_results; i++) put_result(j, set, c, i);
    json_end_array(j);
}

// One model is the object itself; several are members of it.
void bench_print_json(const bench_set *set)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    if (set->n > 1) json_array(&j, "models");
    for (int c = 0; c < set->n; c++) {
        if (set->n > 1) json_object(&j, NULL);
        put_case(&j, set, c);
        if (set->n > 1) json_end_object(&j);
    }
    if (set->n > 1) json_end_array(&j);
    json_end_object(&j);
}
