// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The null device: every plan compiles for it as for the CPU, runs without computing, and a run allocates
// nothing.
#include "tests/graph/run_graph.h"
#include "tests/models/tiny_model.h"

#include "core/device.h"
#include "models/decoder.h"
#include "ops/step.h"

extern const tn_backend tn_backend_null;

static tn_context *ctx;

enum { N_TOKENS = 5 };

static tn_graph *record_model(tn_model *model)
{
    tn_decoder_setup setup = {.n_blocks = 4,
                              .block_size = 64,
                              .max_blocks = 4,
                              .n_state_slots = 2,
                              .n_ctx = 256,
                              .cache_type_k = TN_TYPE_F16,
                              .cache_type_v = TN_TYPE_F16};
    tn_plan_key key = {.n_tokens = N_TOKENS, .n_seq = 1, .n_outputs = 1};
    tn_graph *g = NULL;
    TEST_CHECK_STATUS(tn_decoder_record(model, &setup, &key, &g), TN_OK);
    return g;
}

// Weights are never read and states never written: the device may be given the same few bytes for all of
// them.
static tn_status bind_nothing(void *user, tn_device *device, const tn_plan_port *port, tn_runner_binding *out)
{
    TN_UNUSED(device);
    TN_UNUSED(port);
    *out = (tn_runner_binding){user, 0};
    return TN_OK;
}

static void check_run(tn_plan *plan, tn_device *device)
{
    static uint8_t nothing[1];
    tn_buffer weights = {.device = device, .data = nothing, .size = SIZE_MAX / 2, .borrowed = true};
    tn_runner_config cfg = {.bind = bind_nothing, .user = &weights};
    tn_runner *r = NULL;
    int32_t tokens[N_TOKENS] = {1, 2, 3, 4, 5};
    float logits[TINY_MODEL_VOCAB];
    if (!TEST_CHECK_STATUS(tn_runner_create_with(plan, &cfg, &r), TN_OK)) return;
    uint64_t before = tn_context_n_allocs(ctx);
    size_t memory = tn_context_memory(ctx);
    tn_status status = TN_OK;
    for (int i = 0; i < 100 && status == TN_OK; i++) {
        status = tn_runner_write(r, "tokens", tokens, sizeof tokens);
        if (status == TN_OK) status = tn_runner_run(r);
        if (status == TN_OK) status = tn_runner_read(r, "logits", logits, sizeof logits);
    }
    TEST_CHECK_STATUS(status, TN_OK);
    TEST_CHECK(tn_context_n_allocs(ctx) == before && tn_context_memory(ctx) == memory);
    int computed = 0;
    for (int i = 0; i < TINY_MODEL_VOCAB; i++) computed += logits[i] != 0.0f;
    TEST_CHECK(computed == 0);
    tn_runner_destroy(&r);
}

static void test_arch(const tiny_shape *shape)
{
    tn_device *null_device = tn_context_device_by_name(ctx, "null");
    tn_model *model = tiny_model_open(ctx, shape);
    tn_graph *g = record_model(model);
    for (int32_t fusion = 0; g && fusion < 2; fusion++) {
        tn_plan_config cfg;
        tn_plan_config_default(&cfg);
        tn_plan *plan = NULL, *cpu = NULL;
        cfg.fusion = fusion;
        TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &cpu), TN_OK);
        cfg.devices = &null_device;
        cfg.n_devices = 1;
        TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK);
        TEST_CHECK(plan && cpu && plan->info.n_recorded == cpu->info.n_recorded &&
                   plan->info.input_size == cpu->info.input_size);
        TEST_CHECK(plan && cpu && (fusion || plan->n_steps == cpu->n_steps));
        TEST_CHECK(plan && plan->info.scratch_size == 0 && count_steps(plan, TN_OP_transfer) == 0);
        for (int32_t i = 0; plan && i < plan->n_steps; i++)
            if (!TEST_CHECK(plan->steps[i].device == 0 && strcmp(plan->steps[i].kernel, "null") == 0)) break;
        if (plan) check_run(plan, null_device);
        tn_plan_unref(&plan);
        tn_plan_unref(&cpu);
    }
    tn_graph_destroy(&g);
    tn_model_unref(&model);
}

int main(void)
{
    counting count;
    ctx = counting_context(&count);
    for (int32_t i = 0; i < TINY_ARCHS; i++) test_arch(&tiny_shapes[i]);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
