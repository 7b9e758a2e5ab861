// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GET /health and /v1/models.
#include "tools/server/job.h"

#include <string.h>

// A pass may take long, but not that much longer than all before.
static bool is_stuck(const server *s)
{
    enum { GRACE_SECONDS = 30, TIMES = 10 };
    uint64_t limit = GRACE_SECONDS * (uint64_t)1000000000u + TIMES * s->longest_ns;
    return s->busy_before && now_ns() > s->progress_ns + limit;
}

void route_health(server *s, exchange *x)
{
    if (s->state == SERVER_LOADING)
        reply_error(s, x, ERROR_LOADING, NULL, "the model is being loaded");
    else if (s->state == SERVER_DRAINING)
        reply_error(s, x, ERROR_DRAINING, NULL, "the server is shutting down");
    else if (s->state == SERVER_LOST || is_stuck(s))
        reply_error(s, x, ERROR_LOST, NULL, "the device of the model does not answer");
    else {
        json *j = reply_json(s);
        json_object(j, NULL);
        json_text(j, "status", "ok");
        json_end_object(j);
        reply_send(s, x, 200);
    }
}

static void put_model(server *s, json *j)
{
    const tn_model_info *info = &s->r.info;
    json_object(j, NULL);
    json_text(j, "id", s->name);
    json_text(j, "object", "model");
    json_int(j, "created", s->created);
    json_text(j, "owned_by", "tenon");
    json_text(j, "root", s->name);
    json_int(j, "max_model_len", s->n_ctx);
    json_object(j, "meta");
    json_int(j, "n_vocab", info->n_vocab);
    json_int(j, "n_ctx", s->n_ctx);
    json_int(j, "n_ctx_train", info->n_ctx_train);
    json_int(j, "n_embd", info->n_embd);
    json_size(j, "n_params", info->n_params);
    json_size(j, "size", info->weight_size);
    json_end_object(j);
    json_end_object(j);
}

void route_models(server *s, exchange *x)
{
    json *j = reply_json(s);
    json_object(j, NULL);
    json_text(j, "object", "list");
    json_array(j, "data");
    put_model(s, j);
    json_end_array(j);
    json_end_object(j);
    reply_send(s, x, 200);
}

void route_model(server *s, exchange *x)
{
    const char *name = x->path + strlen(x->route->path);
    if (strcmp(name, s->name) != 0) {
        reply_error(s, x, ERROR_MODEL, "model", "the model '%.100s' does not exist; this server has '%s'",
                    name, s->name);
        return;
    }
    put_model(s, reply_json(s));
    reply_send(s, x, 200);
}
