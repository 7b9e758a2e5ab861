// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Peaks that were measured are kept in tuning-peaks-<hash>.txt, beside the files of kernels that were tuned.
// The hash is of the device's description, which has the driver, and of the number of threads; the first line
// of the file says both, and the day.
#include "tools/costs/peak.h"
#include "tools/output.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILE_VERSION = 1, LINE = 512, PATH = 4096 };

typedef struct field {
    const char *name;
    size_t offset; // of a double in peaks
} field;

static const field fields[] = {
    {"read", offsetof(peaks, read)},
    {"copy", offsetof(peaks, copy)},
    {"core_read", offsetof(peaks, core_read)},
    {"core_f32", offsetof(peaks, core_f32)},
};
enum { FIELDS = sizeof fields / sizeof *fields };

static double *field_at(peaks *p, size_t i)
{
    return (double *)(void *)((char *)p + fields[i].offset);
}

// "tenon peaks 1: AMD EPYC, avx512vnni, 2 threads; 2 threads"
static void make_title(const tool *t, const tn_device *device, char *buf, size_t size)
{
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(device, &info);
    snprintf(buf, size, "tenon peaks %d: %s; %d threads", FILE_VERSION,
             info.description ? info.description : "", tn_context_n_threads(t->ctx));
}

static bool make_path(const char *title, bool make, char *path)
{
    char dir[PATH - 64];
    uint64_t hash = 14695981039346656037u; // FNV-1a
    for (const char *p = title; *p; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    if (!tool_cache_dir(dir, sizeof dir, make)) return false;
    snprintf(path, PATH, "%s/tuning-peaks-%016" PRIx64 ".txt", dir, hash);
    return true;
}

static void read_line(char *line, peaks *out)
{
    char *space = strchr(line, ' ');
    if (!space) return;
    *space = '\0';
    const char *value = space + 1;
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(line, fields[i].name) == 0) *field_at(out, i) = strtod(value, NULL);
    int32_t precision = tn_precision_by_name(line);
    if (precision >= 0) out->rate[precision] = strtod(value, NULL);
    if (strcmp(line, "date") == 0) snprintf(out->date, sizeof out->date, "%.15s", value);
    if (strcmp(line, "f32_isa") == 0) snprintf(out->f32_isa, sizeof out->f32_isa, "%.15s", value);
    if (strcmp(line, "int8_isa") == 0) snprintf(out->int8_isa, sizeof out->int8_isa, "%.15s", value);
}

bool peaks_load(const tool *t, const tn_device *device, peaks *out)
{
    char title[LINE], path[PATH], line[LINE];
    make_title(t, device, title, sizeof title);
    if (!make_path(title, false, path)) return false;
    FILE *f = sys_open(path, "r");
    if (!f) return false;
    peaks p = {.read = 0};
    bool ok = fgets(line, sizeof line, f) && strncmp(line, title, strlen(title)) == 0;
    while (ok && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        read_line(line, &p);
    }
    fclose(f);
    if (!ok || !(p.read > 0) || !(peaks_rate(&p, TN_PRECISION_f32) > 0)) return false;
    *out = p;
    return true;
}

static void save(const tool *t, const tn_device *device, const peaks *p)
{
    char title[LINE], path[PATH];
    out_file out;
    make_title(t, device, title, sizeof title);
    if (!make_path(title, true, path) || out_file_open(&out, path) != 0) return;
    fprintf(out.f, "%s\ndate %s\n", title, p->date);
    peaks copy = *p;
    for (size_t i = 0; i < FIELDS; i++) fprintf(out.f, "%s %.6g\n", fields[i].name, *field_at(&copy, i));
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (p->rate[i] > 0) fprintf(out.f, "%s %.6g\n", tn_precision_name(i), p->rate[i]);
    if (*p->f32_isa) fprintf(out.f, "f32_isa %s\nint8_isa %s\n", p->f32_isa, p->int8_isa);
    (void)out_file_commit(&out); // says itself what failed; the peaks hold without the file
}

bool peaks_make(const tool *t, tn_device *device, bool keep, peaks *out)
{
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(device, &info);
    bool cpu = info.backend && strcmp(info.backend, "cpu") == 0;
    bool ok = cpu ? peaks_measure(tn_context_n_threads(t->ctx), out) : peaks_measure_device(t, device, out);
    if (!ok) return false;
    time_t now = time(NULL);
    const struct tm *day = gmtime(&now);
    if (day) strftime(out->date, sizeof out->date, "%Y-%m-%d", day);
    if (keep) save(t, device, out);
    return true;
}

double peaks_rate(const peaks *p, int32_t precision)
{
    static const int32_t others[TN_PRECISION_COUNT][2] = {
        [TN_PRECISION_auto] = {TN_PRECISION_f32, TN_PRECISION_f32},
        [TN_PRECISION_f32] = {TN_PRECISION_tf32, TN_PRECISION_bf16},
        [TN_PRECISION_tf32] = {TN_PRECISION_f32, TN_PRECISION_bf16},
        [TN_PRECISION_bf16] = {TN_PRECISION_f16, TN_PRECISION_f32},
        [TN_PRECISION_f16] = {TN_PRECISION_bf16, TN_PRECISION_f32},
        [TN_PRECISION_fp8] = {TN_PRECISION_bf16, TN_PRECISION_f32},
        [TN_PRECISION_int8] = {TN_PRECISION_bf16, TN_PRECISION_f32},
    };
    if (precision < 0 || precision >= TN_PRECISION_COUNT) return 0;
    if (p->rate[precision] > 0) return p->rate[precision];
    for (int i = 0; i < 2; i++)
        if (p->rate[others[precision][i]] > 0) return p->rate[others[precision][i]];
    return 0;
}
