// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampling on the device of a session, see sample.h.
#include "models/run/session.h"
#include "ops/operands.h"

#include <string.h>

enum { WITH_EDITS = 1, WITH_MASKS = 2 }; // a variant has what it is named after, and all before it

static tn_graph *record(const tn_session *s, int32_t n_rows, int32_t variant)
{
    tn_graph *g;
    if (tn_graph_create(s->ctx, &g) != TN_OK) return NULL;
    int32_t n_edits = n_rows * TN_SAMPLE_EDITS_PER_ROW;
    tn_tensor *src[] = {
        tn_graph_weight(g, "logits", TN_TYPE_F32, 2, (int64_t[]){n_rows, s->model->config.n_vocab}),
        tn_graph_input(g, "rows", TN_TYPE_I32, 2, (int64_t[]){n_rows, TN_SAMPLE_ROW_WORDS}),
        NULL,
        NULL,
    };
    if (variant >= WITH_EDITS)
        src[TN_SRC_sample_edits] =
            tn_graph_input(g, "edits", TN_TYPE_I32, 2, (int64_t[]){n_edits, TN_SAMPLE_EDIT_WORDS});
    if (variant >= WITH_MASKS)
        src[TN_SRC_sample_masks] =
            tn_graph_input(g, "masks", TN_TYPE_I32, 2, (int64_t[]){n_rows, s->sampling.mask_words});
    tn_graph_output(g, "sampled", tn_graph_op(g, TN_OP_sample, 2 + variant, src, NULL, NULL));
    return g;
}

static tn_status make_plan(tn_session *s, int32_t n_rows, int32_t variant, tn_plan **out)
{
    tn_graph *g = record(s, n_rows, variant);
    if (!g) return TN_ERR_MEMORY;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = s->devices;
    cfg.n_devices = 1;
    cfg.fallback = TN_FALLBACK_QUIET;
    tn_status status = tn_plan_create(g, &cfg, out);
    tn_graph_destroy(&g);
    return status;
}

static tn_status bind_logits(void *user, tn_device *device, const tn_plan_port *port, tn_runner_binding *out)
{
    TN_UNUSED(device);
    TN_UNUSED(port);
    *out = *(const tn_runner_binding *)user;
    return TN_OK;
}

static tn_status find_plan(tn_session *s, tn_session_slot *slot, int32_t variant, tn_sample_slot **out)
{
    tn_sample_slot *sample = &slot->samples[variant];
    *out = sample;
    if (sample->runner) return TN_OK;
    tn_runner_binding logits = tn_runner_output_place(slot->runner, slot->out_logits);
    const tn_buffer *buffers = s->sampling.buffers;
    int32_t n = s->sampling.n_devices;
    tn_runner_config cfg = {.bind = bind_logits,
                            .user = &logits,
                            .arena = buffers,
                            .scratch = buffers + n,
                            .inputs = buffers + 2 * (size_t)n};
    tn_status status = make_plan(s, slot->key.n_outputs, variant, &sample->plan);
    if (status == TN_OK) status = tn_runner_create_with(sample->plan, &cfg, &sample->runner);
    if (status != TN_OK) {
        tn_sample_slot_drop(sample);
        return status;
    }
    sample->in_rows = tn_plan_find_input(sample->plan, "rows");
    sample->in_edits = tn_plan_find_input(sample->plan, "edits");
    sample->in_masks = tn_plan_find_input(sample->plan, "masks");
    sample->out = tn_plan_find_output(sample->plan, "sampled");
    s->n_plans++;
    return TN_OK;
}

void tn_sample_slot_drop(tn_sample_slot *slot)
{
    tn_runner_destroy(&slot->runner);
    tn_plan_unref(&slot->plan);
    *slot = (tn_sample_slot){0};
}

// --- memory --------------------------------------------------------------------------------------------

// For the most rows, edits and masks: other plans need less. Their inputs may not be those of the passes,
// which are read while these are written, and their results may not lie where logits are.
static tn_status make_memory(tn_session *s, const tn_plan *p)
{
    tn_session_sampling *m = &s->sampling;
    const size_t sizes[TN_SAMPLE_BUFFERS] = {p->arena_size[0], p->scratch_size[0], p->input_size[0]};
    size_t n = (size_t)s->cfg.n_seq, n_devices = (size_t)p->n_devices;
    m->max_rows = s->cfg.n_seq;
    m->n_devices = p->n_devices;
    m->rows = tn_calloc(s->ctx, n, sizeof *m->rows);
    m->edits = tn_calloc(s->ctx, n * TN_SAMPLE_EDITS_PER_ROW, sizeof *m->edits);
    m->masks = tn_calloc(s->ctx, n * (size_t)m->mask_words, sizeof *m->masks);
    m->results = tn_calloc(s->ctx, n, sizeof *m->results);
    m->buffers = tn_calloc(s->ctx, TN_SAMPLE_BUFFERS * n_devices, sizeof *m->buffers);
    if (!m->rows || !m->edits || !m->masks || !m->results || !m->buffers) return TN_ERR_MEMORY;
    tn_status status = TN_OK;
    for (size_t i = 0; i < TN_SAMPLE_BUFFERS && status == TN_OK; i++) {
        m->sizes[i] = sizes[i];
        if (sizes[i] > 0 && !s->dry)
            status = tn_buffer_create(s->devices[0], sizes[i], &m->buffers[i * n_devices]);
    }
    return status;
}

tn_status tn_session_sampling_init(tn_session *s)
{
    tn_plan *plan = NULL;
    if (!s->setup.best) return TN_OK;
    s->sampling.mask_words = (s->model->config.n_vocab + 31) / 32;
    tn_status status = make_plan(s, s->cfg.n_seq, WITH_MASKS, &plan);
    if (status == TN_ERR_UNSUPPORTED) return TN_OK; // a strict context
    // A device without a kernel leaves the step to the processor, whose samplers are faster.
    bool can = status == TN_OK;
    for (int32_t i = 0; can && i < plan->n_steps; i++)
        can = plan->devices[plan->steps[i].device] == s->devices[0];
    if (can) status = make_memory(s, plan);
    if (status != TN_OK) tn_session_sampling_fini(s);
    tn_plan_unref(&plan);
    return status;
}

bool tn_session_samples(const tn_session *s)
{
    return s->sampling.rows != NULL && !s->sampling.refused;
}

void tn_session_sampling_fini(tn_session *s)
{
    for (int32_t i = 0; s->sampling.buffers && i < TN_SAMPLE_BUFFERS * s->sampling.n_devices; i++)
        tn_buffer_destroy(&s->sampling.buffers[i]);
    tn_free(s->ctx, s->sampling.buffers);
    tn_free(s->ctx, s->sampling.rows);
    tn_free(s->ctx, s->sampling.edits);
    tn_free(s->ctx, s->sampling.masks);
    tn_free(s->ctx, s->sampling.results);
    s->sampling = (tn_session_sampling){0};
}

// --- passes --------------------------------------------------------------------------------------------

static tn_status write_sample_inputs(const tn_session *s, const tn_session_slot *slot, tn_sample_slot *sample)
{
    const tn_session_sampling *p = &s->sampling;
    size_t n = (size_t)slot->key.n_outputs, mask = (size_t)p->mask_words * sizeof *p->masks;
    tn_status status = tn_runner_write_at(sample->runner, sample->in_rows, p->rows, n * sizeof *p->rows);
    if (status == TN_OK && sample->in_edits >= 0)
        status = tn_runner_write_at(sample->runner, sample->in_edits, p->edits,
                                    n * TN_SAMPLE_EDITS_PER_ROW * sizeof *p->edits);
    if (status == TN_OK && sample->in_masks >= 0)
        status = tn_runner_write_at(sample->runner, sample->in_masks, p->masks, n * mask);
    return status;
}

// The driver of the device compiles the kernel wrongly, so that it is not used. If the device is lost, the
// pass fails by itself.
static tn_status leave_to_host(tn_session *s, tn_sample_slot **out)
{
    tn_log(s->ctx, TN_LOG_WARN, "%s does not select tokens: the processor does", s->devices[0]->name);
    s->sampling.refused = true;
    *out = NULL;
    return TN_OK;
}

tn_status tn_session_sample(tn_session *s, tn_session_slot *slot, tn_sample_slot **out)
{
    tn_session_sampling *p = &s->sampling;
    int32_t n = slot->key.n_outputs, chosen = 0;
    *out = NULL;
    if (!p->describe || p->refused || n < 1 || n > p->max_rows) return TN_OK;
    if (tn_runner_output_place(slot->runner, slot->out_logits).buffer->device != s->devices[0]) return TN_OK;
    memset(p->rows, 0, (size_t)n * sizeof *p->rows);
    p->n_rows = n;
    p->max_edits = n * TN_SAMPLE_EDITS_PER_ROW;
    p->n_edits = p->n_masks = 0;
    p->describe(p->user);
    for (int32_t i = 0; i < n; i++) chosen += p->rows[i].kind != TN_SAMPLE_NONE;
    if (chosen == 0) return TN_OK;
    int32_t variant = p->n_masks > 0 ? WITH_MASKS : p->n_edits > 0 ? WITH_EDITS : 0;
    tn_status status = find_plan(s, slot, variant, out);
    if (status == TN_ERR_DEVICE) return leave_to_host(s, out);
    if (status == TN_OK) status = write_sample_inputs(s, slot, *out);
    if (status == TN_OK)
        status = tn_runner_submit((*out)->runner, &(tn_submit_options){.cancel = s->cancelled});
    return status;
}

tn_status tn_session_read_sampled(tn_session *s, const tn_session_slot *slot, const tn_sample_slot *sampled)
{
    size_t size = (size_t)slot->key.n_outputs * sizeof *s->sampling.results;
    tn_status status = tn_runner_wait(sampled->runner);
    if (status == TN_OK)
        status = tn_runner_read_at(sampled->runner, sampled->out, 0, s->sampling.results, size);
    s->sampling.done = status == TN_OK;
    return status;
}

tn_session_sampling *tn_session_sampling_get(tn_session *s)
{
    return &s->sampling;
}

const tn_sample_result *tn_session_sampled(const tn_session *s, int32_t row)
{
    const tn_session_sampling *p = &s->sampling;
    if (!p->done || row < 0 || row >= p->n_rows || p->rows[row].kind == TN_SAMPLE_NONE) return NULL;
    return &p->results[row];
}
