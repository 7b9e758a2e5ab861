// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// LoRA adapters of a session: which there are, and with which scale each sequence uses them. A plan contains
// the adapters that any token of its step uses, so steps without them run the plans of a session without
// adapters. The scales are inputs of the plan.
#include "models/run/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PADDING = -1 }; // in place of a sequence: tokens that nobody reads

static tn_status take_one(tn_session *s, const tn_adapter_use *use, int32_t i)
{
    if (!use->adapter) return tn_fail(s->ctx, TN_ERR_ARG, "adapter %d: NULL", i);
    if (use->adapter->model != s->model)
        return tn_fail(s->ctx, TN_ERR_ARG, "adapter %d was opened for another model", i);
    if (!isfinite(use->scale)) return tn_fail(s->ctx, TN_ERR_ARG, "adapter %d: its scale is not finite", i);
    s->adapters[s->n_adapters++] = tn_adapter_ref(use->adapter);
    return TN_OK;
}

tn_status tn_session_adapters_init(tn_session *s, const tn_session_config *cfg)
{
    if (cfg->n_adapters < 0 || cfg->n_adapters > TN_SESSION_ADAPTERS)
        return tn_fail(s->ctx, TN_ERR_ARG, "%d adapters, must be 0 to %d", cfg->n_adapters,
                       (int)TN_SESSION_ADAPTERS);
    tn_adapter_use uses[TN_SESSION_ADAPTERS] = {{0}};
    size_t n = (size_t)cfg->n_adapters, n_seq = (size_t)cfg->n_seq;
    tn_status status = TN_STRUCT_READ_ARRAY(s->ctx, tn_adapter_use, cfg->adapters, n, uses);
    s->cfg.adapters = NULL; // the memory of the caller
    for (size_t i = 0; i < n && status == TN_OK; i++) status = take_one(s, &uses[i], (int32_t)i);
    if (status != TN_OK || n == 0) return status;
    s->adapter_scales = tn_calloc(s->ctx, n * n_seq, sizeof *s->adapter_scales);
    s->row_scales = tn_calloc(s->ctx, n * (size_t)cfg->n_batch, sizeof *s->row_scales);
    if (!s->adapter_scales || !s->row_scales) return TN_ERR_MEMORY;
    for (size_t i = 0; i < n * n_seq; i++) s->adapter_scales[i] = uses[i % n].scale;
    return TN_OK;
}

void tn_session_adapters_fini(tn_session *s)
{
    for (int32_t i = 0; i < s->n_adapters; i++) tn_adapter_unref(&s->adapters[i]);
    tn_free(s->ctx, s->adapter_scales);
    tn_free(s->ctx, s->row_scales);
}

// --- scales ----------------------------------------------------------------------------------------

static const float *scales_of(const tn_session *s, int32_t seq)
{
    return s->adapter_scales + (size_t)seq * (size_t)s->n_adapters;
}

uint32_t tn_session_adapters_of(const tn_session *s, int32_t seq)
{
    uint32_t bits = 0;
    for (int32_t i = 0; i < s->n_adapters; i++)
        if (scales_of(s, seq)[i] != 0.0f) bits |= 1u << i;
    return bits;
}

void tn_session_fill_adapter_rows(tn_session *s, int32_t seq, int32_t at, int32_t n)
{
    for (int32_t i = 0; i < s->n_adapters; i++) {
        float scale = seq == PADDING ? 0.0f : scales_of(s, seq)[i] * tn_adapter_factor(s->adapters[i]);
        float *row = s->row_scales + (size_t)i * (size_t)s->cfg.n_batch;
        for (int32_t k = at; k < at + n; k++) row[k] = scale;
    }
}

void tn_session_fill_adapters(tn_session *s, const tn_feed *feeds, int32_t n_feeds, tn_plan_key *key)
{
    if (s->n_adapters == 0) return;
    int32_t t = 0;
    for (int32_t i = 0; i < n_feeds; t += feeds[i++].n_tokens) {
        tn_session_fill_adapter_rows(s, feeds[i].seq, t, feeds[i].n_tokens);
        key->adapters |= tn_session_adapters_of(s, feeds[i].seq);
    }
    tn_session_fill_adapter_rows(s, PADDING, t, s->cfg.n_batch - t);
}

tn_status tn_session_write_adapters(tn_session *s, tn_session_slot *slot)
{
    size_t size = (size_t)slot->key.n_tokens * sizeof *s->row_scales;
    tn_status status = TN_OK;
    for (int32_t i = 0; i < s->n_adapters && status == TN_OK; i++)
        if (slot->in_adapters[i] >= 0)
            status = tn_runner_write_at(slot->runner, slot->in_adapters[i],
                                        s->row_scales + (size_t)i * (size_t)s->cfg.n_batch, size);
    return status;
}

bool tn_session_same_adapters(const tn_session *s, int32_t a, int32_t b)
{
    for (int32_t i = 0; i < s->n_adapters; i++)
        if (scales_of(s, a)[i] != scales_of(s, b)[i]) return false;
    return true;
}

void tn_session_copy_adapters(tn_session *s, int32_t from, int32_t to)
{
    size_t n = (size_t)s->n_adapters;
    if (n > 0 && from != to)
        memcpy(s->adapter_scales + (size_t)to * n, scales_of(s, from), n * sizeof(float));
}

tn_status tn_session_adapter_scale(tn_session *s, int32_t seq, int32_t i, float scale)
{
    TN_NEED(NULL, s);
    if (seq < 0 || seq >= s->cfg.n_seq)
        return tn_fail(s->ctx, TN_ERR_ARG, "sequence %d of %d", seq, s->cfg.n_seq);
    if (i < 0 || i >= s->n_adapters)
        return tn_fail(s->ctx, TN_ERR_ARG, "adapter %d, the session has %d", i, s->n_adapters);
    if (!isfinite(scale)) return tn_fail(s->ctx, TN_ERR_ARG, "adapter %d: its scale is not finite", i);
    float *at = &s->adapter_scales[(size_t)seq * (size_t)s->n_adapters + (size_t)i];
    if (*at != scale && s->cache.seqs[seq].length > 0)
        return tn_fail(s->ctx, TN_ERR_STATE,
                       "sequence %d holds %d tokens that were evaluated with another scale of adapter %d",
                       seq, s->cache.seqs[seq].length, i);
    *at = scale;
    return TN_OK;
}

// --- matrices --------------------------------------------------------------------------------------

bool tn_session_find_adapter(const tn_session *s, const char *name, const tn_adapter **adapter,
                             const char **tensor)
{
    size_t n = strlen(TN_ADAPTER_PREFIX);
    if (strncmp(name, TN_ADAPTER_PREFIX, n) != 0) return false;
    char *end;
    long i = strtol(name + n, &end, 10);
    if (end == name + n || *end != '.' || i < 0 || i >= s->n_adapters) return false;
    *adapter = s->adapters[i];
    *tensor = end + 1;
    return true;
}
