// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GET /health and /v1/models.
#include "tools/server/server.h"

#include <string.h>

static bool is_well(const server *s)
{
    bool well = true;
    for (int i = 0; i < s->models.n; i++)
        well = well && !model_is_lost(&s->models.all[i]) && !model_is_stuck(&s->models.all[i]);
    return well;
}

void route_health(server *s, exchange *x)
{
    if (s->state == SERVER_LOADING)
        reply_error(s, x, ERROR_LOADING, NULL, "the model is being loaded");
    else if (s->state == SERVER_DRAINING)
        reply_error(s, x, ERROR_DRAINING, NULL, "the server is shutting down");
    else if (!is_well(s))
        reply_error(s, x, ERROR_LOST, NULL, "the device of the model does not answer");
    else {
        json *j = reply_json(s);
        json_object(j, NULL);
        json_text(j, "status", "ok");
        json_end_object(j);
        reply_send(s, x, 200);
    }
}

static void put_status(const model *m, json *j)
{
    const char *status = model_status(m);
    json_object(j, "status");
    json_text(j, "value", status);
    if (strcmp(status, "failed") == 0) json_text(j, "message", m->failure);
    json_end_object(j);
}

static void put_model(const model *m, json *j)
{
    const model_facts *facts = &m->facts;
    json_object(j, NULL);
    json_text(j, "id", m->name);
    json_text(j, "object", "model");
    json_int(j, "created", m->modified);
    json_text(j, "owned_by", "tenon");
    json_text(j, "root", m->name);
    if (m->surveyed && facts->n_params > 0) {
        json_int(j, "max_model_len", facts->n_ctx);
        json_object(j, "meta");
        json_int(j, "n_vocab", facts->n_vocab);
        json_int(j, "n_ctx", facts->n_ctx);
        json_int(j, "n_ctx_train", facts->n_ctx_train);
        json_int(j, "n_embd", facts->n_embd);
        json_size(j, "n_params", facts->n_params);
        json_size(j, "size", facts->weight_size);
        json_end_object(j);
    }
    put_status(m, j);
    json_end_object(j);
}

void route_models(server *s, exchange *x)
{
    json *j = reply_json(s);
    json_object(j, NULL);
    json_text(j, "object", "list");
    json_array(j, "data");
    for (int i = 0; i < s->models.n; i++) put_model(&s->models.all[i], j);
    json_end_array(j);
    json_end_object(j);
    reply_send(s, x, 200);
}

void route_model(server *s, exchange *x)
{
    const char *name = x->path + strlen(x->route->path);
    for (int i = 0; i < s->models.n; i++) {
        if (strcmp(name, s->models.all[i].name) != 0) continue;
        put_model(&s->models.all[i], reply_json(s));
        reply_send(s, x, 200);
        return;
    }
    reply_error(s, x, ERROR_MODEL, "model",
                "the model '%.100s' does not exist; GET /v1/models lists those here", name);
}
