// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans of models for a device, and preparing them without weights: what tests of launches count with.
#ifndef TN_TESTS_GRAPH_MODEL_PLANS_H
#define TN_TESTS_GRAPH_MODEL_PLANS_H

#include "models/decoder.h"
#include "tests/graph/run_graph.h"

#include <dirent.h>

// What a plan is made for, and what for messages.
typedef struct plan_case {
    const char *model;
    tn_plan_key key;
    int32_t fusion, precision;
} plan_case;

// Called for each plan.
typedef void plan_check(const plan_case *c, tn_plan *plan);

static inline void check_model_plan(tn_model *model, tn_device *device, const plan_case *c, plan_check *check)
{
    tn_decoder_setup setup = {.n_blocks = 16,
                              .block_size = 64,
                              .max_blocks = 8,
                              .n_state_slots = 4,
                              .n_ctx = 512,
                              .cache_type_k = TN_TYPE_F16,
                              .cache_type_v = TN_TYPE_F16};
    if (tn_result_width(model, TN_RESULT_LOGITS) < 1) setup.result = TN_RESULT_HIDDEN;
    tn_graph *graph = NULL;
    if (!TEST_CHECK_STATUS(tn_decoder_record(model, &setup, &c->key, &graph), TN_OK)) return;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = &device;
    cfg.n_devices = 1;
    cfg.fusion = c->fusion;
    cfg.fallback = TN_FALLBACK_QUIET;
    cfg.precision = c->precision;
    tn_plan *plan = NULL;
    if (TEST_CHECK_STATUS(tn_plan_create(graph, &cfg, &plan), TN_OK)) check(c, plan);
    tn_plan_unref(&plan);
    tn_graph_destroy(&graph);
}

// Plans of one model: for a token, a small batch, a prompt and several sequences; unfused; without rounding.
static inline void check_model_plans(const char *path, const char *name, tn_device *device, plan_check *check)
{
    enum { ONE, SMALL, PROMPT };
    static const tn_plan_key keys[] = {[ONE] = {.n_tokens = 1, .n_seq = 1, .n_outputs = 1},
                                       [SMALL] = {.n_tokens = 7, .n_seq = 1, .n_outputs = 1},
                                       [PROMPT] = {.n_tokens = 64, .n_seq = 1, .n_outputs = 1},
                                       {.n_tokens = 4, .n_seq = 4, .n_outputs = 4}};
    tn_model_config cfg;
    tn_model_config_default(&cfg);
    cfg.metadata_only = 1;
    tn_model *model = NULL;
    tn_status status = tn_model_open(device->ctx, path, &cfg, &model);
    if (status == TN_ERR_MODEL || !TEST_CHECK_STATUS(status, TN_OK)) return; // an architecture of other tests
    for (size_t i = 0; i < TN_COUNT(keys); i++)
        check_model_plan(model, device, &(plan_case){name, keys[i], 1, TN_PRECISION_auto}, check);
    check_model_plan(model, device, &(plan_case){name, keys[ONE], 0, TN_PRECISION_auto}, check);
    check_model_plan(model, device, &(plan_case){name, keys[PROMPT], 1, TN_PRECISION_f32}, check);
    tn_model_unref(&model);
}

static inline void check_folder_plans(const char *folder, tn_device *device, plan_check *check)
{
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        char path[1024];
        if (n < 5 || strcmp(e->d_name + n - 5, ".gguf") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        check_model_plans(path, e->d_name, device, check);
    }
    if (dir) closedir(dir);
}

// Binds zeros to everything and prepares the plan; nothing runs.
static inline tn_status prepare_plan(tn_plan *plan)
{
    tn_binding *bound = calloc((size_t)plan->n_bound + 1, sizeof *bound);
    for (int32_t i = 0; i < plan->n_bound; i++) {
        const tn_tensor *t = plan->graph->values[plan->bound[i].value];
        bound[i] = (tn_binding){t->name, calloc(tn_tensor_size(t), 1), tn_tensor_size(t)};
    }
    tn_runner *r = NULL;
    tn_status status = tn_runner_create(plan, bound, plan->n_bound, &r);
    tn_runner_destroy(&r);
    for (int32_t i = 0; i < plan->n_bound; i++) free((void *)(uintptr_t)bound[i].data);
    free(bound);
    return status;
}

// Launches that the plan lists for one of its devices, copies of inputs and results included.
static inline int64_t planned_launches(const tn_plan *plan, int32_t device)
{
    int64_t n = 0;
    for (int32_t i = 0; i < plan->n_steps; i++)
        if (plan->steps[i].device == device) n += plan->steps[i].n_launches;
    tn_plan_copies copies = tn_plan_copies_get(plan, device);
    return n + copies.uploads + copies.downloads;
}

static inline void say_case(const plan_case *c)
{
    printf("    %s, %d tokens, %d sequences, %d outputs, fusion %d, %s\n", c->model, c->key.n_tokens,
           c->key.n_seq, c->key.n_outputs, c->fusion, tn_precision_name(c->precision));
}

#endif
