// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fitting a model to the memory of its device: how many of the last layers lie there, together with a
// session.
#include "models/run/session.h"

#include <stdio.h>

// Kept free on a device when layers are fitted: drivers need memory for code, captured work and page tables,
// a desktop for what it shows, and the estimate misses some. At least 512 MiB; large devices lose more to
// fragmentation, so there it is 5 %.
static const uint64_t margin_least = (uint64_t)512 << 20; // bytes
enum { MARGIN_PERCENT = 5 };

typedef struct fit {
    uint64_t free, margin;
    uint64_t *sessions; // per count of layers on the device: what a session takes there
} fit;

static uint64_t needed(const tn_model *m, const fit *f, int32_t n)
{
    return tn_weights_device_size(m, n) + f->sessions[n];
}

// A device that has nothing free may be full or broken. Full is a matter of fitting.
static tn_status device_memory(const tn_model *m, tn_device_info *info)
{
    *info = (tn_device_info){.struct_size = sizeof *info};
    tn_status status = tn_device_info_get(m->device, info);
    if (status != TN_OK) return status;
    if (info->memory_free > 0) return TN_OK;
    tn_buffer probe = {0};
    status = tn_buffer_create(m->device, 1, &probe);
    tn_buffer_destroy(&probe);
    return status == TN_ERR_MEMORY ? TN_OK : status;
}

static tn_status begin_fit(tn_model *m, const tn_model_config *cfg, fit *f)
{
    *f = (fit){0};
    tn_device_info info;
    tn_status status = device_memory(m, &info);
    if (status != TN_OK) return status;
    int32_t n_layers = m->config.n_layers;
    f->free = info.memory_free;
    f->margin = TN_MAX(info.memory_total / 100 * MARGIN_PERCENT, margin_least);
    f->sessions = tn_calloc(m->ctx, (size_t)n_layers + 1, sizeof *f->sessions);
    if (!f->sessions) return TN_ERR_MEMORY;
    for (int32_t n = 1; n <= n_layers; n++) f->sessions[n] = cfg->reserve_size;
    if (cfg->reserve_size > 0) return TN_OK;
    m->device_layers = n_layers;
    return tn_session_estimate(m, cfg->session, f->sessions);
}

static int32_t batch_of(const tn_device *device)
{
    return device->n_batch > 0 ? device->n_batch : TN_BATCH_DEFAULT;
}

// The most layers that fit with their session and the margin.
static int32_t most_layers(const tn_model *m, const fit *f)
{
    int32_t n = m->config.n_layers;
    uint64_t available = f->free > f->margin ? f->free - f->margin : 0;
    while (n > 0 && needed(m, f, n) > available) n--;
    return n;
}

static unsigned long long mib(uint64_t bytes)
{
    return (unsigned long long)(bytes >> 20);
}

void tn_fit_words(const tn_fit_facts *f, char *text, size_t size)
{
    uint64_t kept = TN_MIN(f->margin, f->free);
    char layers[64] = "no layer";
    if (f->n_device > 0) snprintf(layers, sizeof layers, "%d of %d layers", f->n_device, f->n_layers);
    int n = snprintf(text, size, "%s %s on %s, ", layers, f->n_device > 0 ? "are" : "is", f->device);
    if (f->n_device > 0)
        n += snprintf(text + n, size - (size_t)n, "the first %d on %s: ", f->n_layers - f->n_device, f->host);
    else
        n += snprintf(text + n, size - (size_t)n, "all %d on %s: ", f->n_layers, f->host);
    if (f->margin >= f->free)
        n += snprintf(
            text + n, size - (size_t)n,
            "only %llu MiB are free there, less than the %llu MiB that are left to the driver and to "
            "other programs",
            mib(f->free), mib(f->margin));
    else
        n += snprintf(
            text + n, size - (size_t)n,
            "%s with a session would take %llu MiB, and of %llu MiB that are free there %llu MiB can "
            "be used",
            f->n_device > 0 ? "all layers" : "one layer", mib(f->n_device > 0 ? f->all : f->one),
            mib(f->free), mib(f->free - kept));
    if (f->without_experts > 0 && f->without_experts <= f->free - kept)
        snprintf(text + n, size - (size_t)n, "; with all experts on %s all layers would fit", f->host);
}

// What all layers would take if the experts of all of them were in host memory; 0: there are none.
static uint64_t size_without_experts(const tn_model *m, const fit *f)
{
    int32_t n = m->config.n_layers;
    uint64_t experts = 0;
    for (int64_t i = 0; i < m->n_weights; i++)
        if (tn_weight_is_expert(&m->weights[i]) && tn_weights_on_device(m, &m->weights[i], n))
            experts += tn_weight_device_size(&m->weights[i]);
    return experts > 0 ? needed(m, f, n) - experts : 0;
}

static tn_status report_fit(tn_model *m, const fit *f, int32_t n)
{
    char text[512];
    int32_t n_layers = m->config.n_layers;
    if (n == n_layers) return TN_OK;
    tn_fit_facts facts = {.device = m->device->name,
                          .host = m->host->name,
                          .n_device = n,
                          .n_layers = n_layers,
                          .one = needed(m, f, 1),
                          .all = needed(m, f, n_layers),
                          .free = f->free,
                          .margin = f->margin,
                          .without_experts = size_without_experts(m, f)};
    tn_fit_words(&facts, text, sizeof text);
    if (n == 0 && m->no_fallback) return tn_fail(m->ctx, TN_ERR_MEMORY, "%s", text);
    return tn_event(m->ctx, TN_EVENT_LAYERS_ON_HOST, "%s", text);
}

static tn_status check_requested(const tn_model *m, const tn_model_config *cfg, int32_t n)
{
    tn_device_info info;
    if (n == 0) return TN_OK;
    tn_status status = device_memory(m, &info);
    uint64_t want = tn_weights_device_size(m, n) + cfg->reserve_size;
    if (status != TN_OK || want <= info.memory_free) return status;
    return tn_fail(m->ctx, TN_ERR_MEMORY,
                   "%d layers take %llu MiB on %s, %llu MiB are free; let fewer layers be there", n,
                   (unsigned long long)mib(want), m->device->name, (unsigned long long)mib(info.memory_free));
}

// A smaller batch before fewer layers on the device.
static tn_status fit_layers(tn_model *m, const tn_model_config *cfg, int32_t *out)
{
    fit f;
    tn_status status = begin_fit(m, cfg, &f);
    if (status == TN_OK && most_layers(m, &f) < m->config.n_layers && m->n_batch > batch_of(m->host)) {
        tn_free(m->ctx, f.sessions);
        m->n_batch = batch_of(m->host);
        status = begin_fit(m, cfg, &f);
    }
    if (status == TN_OK) {
        *out = most_layers(m, &f);
        status = report_fit(m, &f, *out);
    }
    tn_free(m->ctx, f.sessions);
    return status;
}

static tn_status batch_fits(tn_model *m, const tn_model_config *cfg, bool *out)
{
    fit f;
    if (m->n_batch <= batch_of(m->host)) return TN_OK;
    tn_status status = begin_fit(m, cfg, &f);
    if (status == TN_OK) *out = most_layers(m, &f) == m->config.n_layers;
    tn_free(m->ctx, f.sessions);
    return status;
}

tn_status tn_model_fit(tn_model *m, const tn_model_config *cfg)
{
    int32_t n_layers = m->config.n_layers, n = n_layers;
    bool fits = true; // a session with the batch of the device
    tn_status status = TN_OK;
    m->n_batch = batch_of(m->device);
    if (!m->device->host_memory && cfg->device_layers >= 0) {
        n = TN_MIN(cfg->device_layers, n_layers);
        status = check_requested(m, cfg, n);
        if (status == TN_OK && n == n_layers) status = batch_fits(m, cfg, &fits);
    } else if (!m->device->host_memory) {
        status = fit_layers(m, cfg, &n);
    }
    // Where layers or experts are left to the host, it is what a prompt waits for, and memory is short.
    if (n < n_layers || !fits || tn_weights_placed_size(m, n) > 0) m->n_batch = batch_of(m->host);
    if (n == 0) m->device = m->host; // a model of the host like any other
    m->device_layers = n > 0 ? n : n_layers;
    m->device_size = tn_weights_device_size(m, m->device_layers);
    return status;
}
