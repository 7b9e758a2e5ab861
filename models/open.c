// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Opening a model: metadata, hyper-parameters, tokenizer, weights, and how many layers fit on the device.
// This file is above sessions, because fitting asks how much memory a session needs.
#include "models/decoder.h"
#include "models/keys/keys.h"
#include "models/run/session.h"

#include <stdatomic.h>
#include <string.h>

void tn_model_config_init(tn_model_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_model_config, cfg, struct_size, {.device_layers = -1});
}

static tn_status choose_device(tn_model *m, tn_device *wanted)
{
    m->device = wanted;
    const char *missing = tn_context_missing_backend(m->ctx);
    tn_status status = TN_OK;
    if (!wanted && missing)
        status = tn_event(m->ctx, TN_EVENT_DEVICE_FALLBACK,
                          "the context was created for the backend %s, which has no device", missing);
    if (status != TN_OK) return status;
    // Without a requested device: the first one that computes and is no software driver.
    for (int32_t i = 0; !m->device && i < tn_context_n_devices(m->ctx); i++) {
        tn_device *d = tn_context_device_get(m->ctx, i);
        if (d->backend->role != TN_BACKEND_NOOP && !d->software) m->device = d;
    }
    if (!m->device) return tn_fail(m->ctx, TN_ERR_DEVICE, "no device");
    m->host = m->device->host_memory ? m->device : tn_device_of_role(m->ctx, TN_BACKEND_HOST);
    return m->host ? TN_OK : tn_fail(m->ctx, TN_ERR_DEVICE, "no device with host memory");
}

static tn_status read_name(tn_model *m)
{
    tn_gguf_str name = {"", 0};
    tn_status status = tn_gguf_get_str(m->gguf, "general.name", &name);
    if (status != TN_OK) return status;
    char *copy = tn_arena_alloc(&m->arena, name.size + 1);
    if (!copy) return TN_ERR_MEMORY;
    memcpy(copy, name.data, name.size);
    m->name = copy;
    return TN_OK;
}

// Names of classes. A list with another number of names than the head has classes is ignored, with an event.
static tn_status read_labels(tn_model *m)
{
    tn_keys keys = {m->ctx, m->gguf, m->config.arch->name, NULL};
    const tn_gguf_kv *kv = NULL;
    int32_t n = tn_result_width(m, TN_RESULT_SCORES);
    tn_status found = tn_keys_texts(&keys, "classifier.output_labels", &kv);
    if (found != TN_OK || !kv || n < 1) return found;
    if (kv->count != (uint64_t)n)
        return tn_event(m->ctx, TN_EVENT_MODEL_WARNING,
                        "%s.classifier.output_labels has %llu names for %d classes: they are left out",
                        keys.arch, (unsigned long long)kv->count, (int)n);
    m->labels = tn_arena_array(&m->arena, (size_t)n, sizeof *m->labels);
    if (!m->labels) return TN_ERR_MEMORY;
    size_t cursor = 0;
    for (int32_t i = 0; i < n; i++) {
        tn_gguf_str text;
        tn_status status = tn_gguf_array_next_str(m->gguf, kv, &cursor, &text);
        if (status != TN_OK) return status;
        char *copy = tn_arena_alloc(&m->arena, text.size + 1);
        if (!copy) return TN_ERR_MEMORY;
        memcpy(copy, text.data, text.size);
        m->labels[i] = copy;
    }
    m->n_labels = n;
    return TN_OK;
}

// An unknown pre-tokenizer is a mistake of the caller who named it, else one of the file.
static tn_status load_tokenizer(tn_model *m, const char *pre)
{
    tn_status status = tn_tokenizer_create(m->ctx, m->gguf, pre, &m->tokenizer);
    return pre && status == TN_ERR_MODEL ? TN_ERR_ARG : status;
}

// Ends a phase of loading, for whoever watches, and begins the next one.
static void end_phase(const tn_model *m, const char *name, uint64_t *begin)
{
    tn_span_end(m->ctx, TN_SPAN_LOAD, name, *begin, 0);
    *begin = tn_span_begin(m->ctx);
}

static tn_status load(tn_model *m, const tn_model_config *cfg)
{
    uint64_t begin = tn_span_begin(m->ctx);
    tn_status status = choose_device(m, cfg->device);
    if (status == TN_OK) status = tn_keys_override(m->gguf, cfg->overrides, cfg->n_overrides);
    if (status == TN_OK) status = tn_keys_check(m->ctx, m->gguf);
    if (status == TN_OK && m->tokenizer_only) {
        status = read_name(m);
        return status == TN_OK ? load_tokenizer(m, cfg->pre) : status;
    }
    if (status == TN_OK) status = tn_config_read(m->ctx, m->gguf, &m->config);
    if (status == TN_OK && tn_gguf_n_tensors(m->gguf) == 0)
        status = tn_fail(m->ctx, TN_ERR_MODEL, "the file has no tensors: a vocabulary only");
    if (status == TN_OK) status = read_name(m);
    end_phase(m, "read the configuration", &begin);
    if (status == TN_OK) status = load_tokenizer(m, cfg->pre);
    end_phase(m, "read the tokenizer", &begin);
    bool loads = tn_gguf_needs_load(m->gguf) && !m->metadata_only;
    if (status == TN_OK && cfg->check_tensors && !loads) status = tn_gguf_check_data(m->gguf);
    if (status == TN_OK && loads) status = tn_gguf_reserve(m->gguf);
    if (status == TN_OK) status = tn_weights_describe(m);
    if (status == TN_OK) status = tn_weights_place(m, cfg);
    // A plan for one token: every tensor the architecture needs is there and has the right shape.
    end_phase(m, "describe the weights", &begin);
    if (status == TN_OK) status = tn_decoder_check(m, NULL, NULL);
    end_phase(m, "check the graph", &begin);
    if (status == TN_OK) status = tn_model_fit(m, cfg);
    end_phase(m, "fit layers to the device", &begin);
    if (status == TN_OK) status = tn_weights_load(m, cfg);
    if (status == TN_OK && cfg->check_tensors && loads) status = tn_gguf_check_data(m->gguf);
    end_phase(m, "load the weights", &begin);
    m->reads_map = tn_gguf_is_mapped(m->gguf) && tn_weights_host_size(m) > 0;
    return status == TN_OK ? read_labels(m) : status;
}

static tn_status create(tn_context *ctx, const tn_model_config *given, tn_model **out, tn_model_config *cfg)
{
    tn_model_config_default(cfg);
    tn_status status = TN_STRUCT_READ(ctx, tn_model_config, given, cfg);
    if (status != TN_OK) return status;
    if (cfg->load != TN_LOAD_MAP && cfg->load != TN_LOAD_READ)
        return tn_fail(ctx, TN_ERR_ARG, "tn_model_config: load is %d", cfg->load);
    tn_model *m = tn_calloc(ctx, 1, sizeof *m);
    if (!m) return TN_ERR_MEMORY;
    m->ctx = ctx;
    m->tokenizer_only = cfg->tokenizer_only != 0;
    m->no_fallback = cfg->no_fallback != 0;
    m->metadata_only = cfg->metadata_only != 0 || m->tokenizer_only;
    atomic_init(&m->refs, 1);
    tn_arena_init(&m->arena, ctx);
    *out = m;
    return TN_OK;
}

static tn_status finish(tn_model *m, tn_status status, const char *name, const tn_model_config *cfg,
                        size_t before, tn_model **out)
{
    if (status == TN_OK) {
        status = load(m, cfg);
        // Failures to read name the file already.
        bool named = status == TN_ERR_CANCELLED || status == TN_ERR_MEMORY || status == TN_ERR_IO;
        if (status != TN_OK && !named) status = tn_fail_at(m->ctx, status, "%s", name);
    }
    if (status != TN_OK) {
        tn_model_unref(&m);
        return status;
    }
    m->owned_size = tn_context_memory(m->ctx) - before;
    *out = m;
    return TN_OK;
}

static tn_status open_source(tn_context *ctx, const tn_gguf_source *source, const tn_model_config *given,
                             tn_model **out)
{
    tn_model_config cfg;
    tn_model *m;
    size_t before = tn_context_memory(ctx);
    uint64_t begin = tn_span_begin(ctx);
    tn_status status = create(ctx, given, &m, &cfg);
    if (status != TN_OK) return status;
    tn_gguf_source own = *source;
    own.mapped = !own.data && !own.read && cfg.load == TN_LOAD_MAP;
    status = tn_gguf_open_source(ctx, &own, &m->gguf);
    tn_span_end(ctx, TN_SPAN_LOAD, "open the file", begin, 0);
    status = finish(m, status, source->name, &cfg, before, out);
    tn_span_end(ctx, TN_SPAN_LOAD, "load a model", begin, 0);
    return status;
}

tn_status tn_model_open(tn_context *ctx, const char *path, const tn_model_config *given, tn_model **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, path);
    TN_NEED(ctx, out);
    return open_source(ctx, &(tn_gguf_source){.name = path, .descriptor = -1}, given, out);
}

void tn_source_init(tn_source *source, size_t struct_size)
{
    TN_STRUCT_INIT(tn_source, source, struct_size, {.descriptor = -1});
}

tn_status tn_model_open_source(tn_context *ctx, const tn_source *source, const tn_model_config *given,
                               tn_model **out)
{
    TN_NEED(NULL, ctx);
    TN_NEED(ctx, source);
    TN_NEED(ctx, out);
    tn_source s;
    tn_source_default(&s);
    tn_status status = TN_STRUCT_READ(ctx, tn_source, source, &s);
    if (status != TN_OK) return status;
    int n = (s.path != NULL) + (s.data != NULL) + (s.read != NULL) + (s.descriptor >= 0);
    if (n != 1)
        return tn_fail(ctx, TN_ERR_ARG,
                       "tn_source: %d of path, data, read and descriptor are given, must be 1", n);
    if (s.size > SIZE_MAX)
        return tn_fail(ctx, TN_ERR_ARG, "tn_source: a file of %llu bytes", (unsigned long long)s.size);
    tn_gguf_source from = {.data = s.data,
                           .size = (size_t)s.size,
                           .read = s.read,
                           .user = s.user,
                           .descriptor = s.path ? -1 : s.descriptor};
    from.name = s.path   ? s.path
                : s.name ? s.name
                : s.data ? "a model in memory"
                : s.read ? "a model that is read by a function"
                         : "a model of a descriptor";
    return open_source(ctx, &from, given, out);
}

void tn_model_open_cancel(tn_context *ctx, int32_t on)
{
    if (ctx) tn_context_cancel_loading(ctx, on);
}

tn_status tn_model_open_memory(tn_context *ctx, void *take_data, size_t size, const char *name,
                               const tn_model_config *given, tn_model **out)
{
    tn_model_config cfg;
    tn_model *m;
    size_t before = tn_context_memory(ctx);
    uint64_t begin = tn_span_begin(ctx);
    tn_status status = create(ctx, given, &m, &cfg);
    if (status != TN_OK) {
        tn_free(ctx, take_data);
        return status;
    }
    m->owned_file = take_data;
    status = tn_gguf_open_memory(ctx, take_data, size, name, &m->gguf);
    status = finish(m, status, name, &cfg, before, out);
    tn_span_end(ctx, TN_SPAN_LOAD, "load a model", begin, 0);
    return status;
}
