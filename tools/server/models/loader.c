// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/models/loader.h"

#include "tools/server/models/details.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/version.h>

// --- facts -----------------------------------------------------------------------------------------------

static bool gives_text(const tn_model_info *info)
{
    return !info->is_encoder && !(info->n_classes > 0 && info->pooling == TN_POOLING_RANK);
}

static void keep_facts(const model *m, model_facts *f, const tn_model_info *info)
{
    if (m->surveyed)
        memcpy(f->quant, m->facts.quant, sizeof f->quant);
    else
        details_quant(m->s->tool.ctx, m->path, f->quant, sizeof f->quant);
    snprintf(f->arch, sizeof f->arch, "%s", info->arch);
    f->n_vocab = info->n_vocab;
    f->n_ctx_train = info->n_ctx_train;
    f->n_embd = info->n_embd;
    f->n_layers = info->n_layers;
    f->n_params = info->n_params;
    f->weight_size = info->weight_size;
    f->file_size = info->file_size;
    f->device_size = info->device_size;
    f->gives_text = gives_text(info);
    snprintf(f->fingerprint, sizeof f->fingerprint, "tenon-%s-%08llx", tn_version(),
             (unsigned long long)(f->file_size ^ f->n_params) & 0xffffffffu);
}

static void predict(model_facts *f, tn_model *metadata, const tn_session_config *session)
{
    tn_session_memory memory = {.struct_size = sizeof memory};
    f->n_needs = 0;
    if (tn_session_predict(metadata, session, &memory) == TN_OK) {
        for (int32_t i = 0; i < memory.n_devices; i++)
            f->needs[f->n_needs++] = (device_size){memory.devices[i].device, memory.devices[i].total};
    } else { // loading will say why, if it fails
        tn_model_info info = {.struct_size = sizeof info};
        tn_model_info_get(metadata, &info);
        f->needs[f->n_needs++] = (device_size){info.host_device, f->weight_size};
    }
}

static int survey(const model *m, model_facts *f)
{
    tool t = m->s->tool;
    tn_model *metadata = NULL;
    tn_model_info info = {.struct_size = sizeof info};
    tn_session_config session;
    tn_engine_config engine;
    int code = tool_load(&t, m->path, LOAD_METADATA, &metadata);
    if (code) return code;
    tn_model_info_get(metadata, &info);
    keep_facts(m, f, &info);
    code = info.has_tokenizer ? tool_engine_config(&t, &info, &session, &engine)
                              : fail(EXIT_MODEL, "%s has no tokenizer", m->path);
    if (!code) {
        f->n_ctx = session.n_ctx_seq;
        if (!f->gives_text) tool_session_config(&t, &session);
        predict(f, metadata, &session);
    }
    tn_model_unref(&metadata);
    return code;
}

// --- loading ---------------------------------------------------------------------------------------------

static int open_engine(model *m, model_facts *f)
{
    tn_session_config session;
    tn_engine_config cfg;
    const tool *t = &m->r.t;
    int code = tool_engine_config(t, &m->r.info, &session, &cfg);
    if (code) return code;
    tn_status status = tn_engine_create(m->r.model, &cfg, &m->engine);
    if (status != TN_OK) return tool_fail(t, status, "%s: a cache of %d tokens", m->path, (int)session.n_ctx);
    f->n_ctx = session.n_ctx_seq;
    f->n_seq = session.n_seq;
    status = tn_engine_start(m->engine);
    return status == TN_OK ? 0 : tool_fail(t, status, "%s: the thread of the engine", m->path);
}

// Tasks of the embedder run on a thread of its own.
static void wake(void *user)
{
    transport_wake(((model *)user)->s->t);
}

static int open_embedder(model *m, model_facts *f)
{
    tn_embedder_config cfg;
    const tool *t = &m->r.t;
    tool_embedder_config(t, &cfg);
    cfg.max_tokens = (int32_t)opt_int(t->opt, OPT_PROMPT_MAX);
    // An answer has one vector for each text.
    if (m->r.info.pooling == TN_POOLING_NONE) cfg.pooling = TN_POOLING_MEAN;
    tn_status status = tn_embedder_create(m->r.model, &cfg, &m->embedder);
    if (status != TN_OK) return tool_fail(t, status, "%s", m->path);
    f->n_ctx = tn_embedder_max_tokens(m->embedder);
    f->n_seq = 1;
    const worker_config config = {.user = m, .wake = wake};
    return worker_start(&config, &m->w);
}

static int load(model *m, model_facts *f)
{
    run_state *r = &m->r;
    *r = (run_state){.t = m->s->tool, .path = m->path};
    int code = tool_load(&r->t, r->path, LOAD_WEIGHTS, &r->model);
    if (!code) code = tool_load_adapters(&r->t, r->model);
    if (code) return code;
    r->info.struct_size = sizeof r->info;
    tn_model_info_get(r->model, &r->info);
    if (!r->info.has_tokenizer) return fail(EXIT_FAILED, "%s has no tokenizer", r->path);
    keep_facts(m, f, &r->info);
    code = answer_options(r);
    if (!code) code = f->gives_text ? open_engine(m, f) : open_embedder(m, f);
    return code;
}

void loader_free(model *m)
{
    worker_destroy(&m->w);
    tn_engine_destroy(&m->engine);
    tn_session_destroy(&m->scorer);
    tn_embedder_destroy(&m->embedder);
    answer_fini(&m->r);
    tool_close_adapters(&m->r.t);
    tn_model_unref(&m->r.model);
    m->r = (run_state){.path = NULL};
}

// --- the context -----------------------------------------------------------------------------------------

static int open_context(server *s)
{
    model_list *list = &s->models;
    const volatile int *stop = &s->stop;
    int code = tool_open(&s->tool, s->opt);
    s->tool.stop = stop;
    if (code) return code;
    int32_t n = tn_context_n_devices(s->tool.ctx);
    for (int32_t i = 0; i < n && list->n_free < TN_MEMORY_DEVICES; i++) {
        tn_device_info info = {.struct_size = sizeof info};
        tn_device_info_get(tn_context_device_get(s->tool.ctx, i), &info);
        list->free[list->n_free++] = (device_size){info.name, info.memory_free};
    }
    return 0;
}

// --- tasks -----------------------------------------------------------------------------------------------

static void run(worker_task *task)
{
    loader_task *t = (loader_task *)(void *)task;
    model *m = t->m;
    t->start_ns = now_ns();
    switch (t->op) {
    case LOADER_OPEN:
        t->code = open_context(t->s);
        break;
    case LOADER_SURVEY:
        t->code = survey(m, &t->facts);
        break;
    case LOADER_LOAD:
        t->code = load(m, &t->facts);
        break;
    case LOADER_UNLOAD:
        loader_free(m);
        break;
    }
    if (t->code && m) {
        snprintf(t->failure, sizeof t->failure, "%s", failure_text());
        loader_free(m);
    }
    t->end_ns = now_ns();
}

static void done(worker_task *task)
{
    loader_task *t = (loader_task *)(void *)task;
    t->s->models.task = NULL;
    if (t->s->t) t->ended(t); // otherwise the server ends
    free(t);
}

bool loader_run(server *s, model *m, loader_op op, void (*ended)(loader_task *task))
{
    loader_task *t = calloc(1, sizeof *t);
    if (!t) return false;
    *t = (loader_task){.task = {.run = run, .done = done}, .s = s, .m = m, .op = op, .ended = ended};
    if (m) t->facts = m->facts;
    s->models.task = t;
    worker_add_task(s->models.loader, &t->task);
    return true;
}
