// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A plan lists exactly the kernels that run: for models of all kinds, in plans for one token, for small
// batches and for prompts, the graphs that the device captures have as many nodes as the plan says. On the
// driver library whose kernels do nothing.
//
//     test_launches COMPUTE FOLDER... of models; COMPUTE is the capability of the device, 90 or 80
#include "tests/cuda/fake.h"
#include "tests/graph/model_plans.h"

#include <dlfcn.h>

static fake_state *fake;
static int64_t n_plans, n_joined;

static void check(const plan_case *c, tn_plan *plan)
{
    int64_t before = fake->n_captured;
    if (!TEST_CHECK_STATUS(prepare_plan(plan), TN_OK)) {
        say_case(c);
        return;
    }
    int64_t captured = fake->n_captured - before;
    bool ok = TEST_CHECK(captured == planned_launches(plan, 0));
    ok &= TEST_CHECK(plan->info.n_launches >= captured); // steps that no kernel accepts run on the CPU
    const char *wrong = check_memory(plan);
    ok &= TEST_CHECK(!wrong);
    if (!ok) {
        say_case(c);
        printf("    %d launches, %d planned; %s\n", (int)captured, (int)planned_launches(plan, 0),
               wrong ? wrong : "");
    }
    n_plans++;
    n_joined += plan->info.n_joined;
}

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *symbol = driver ? dlsym(driver, "fake_get") : NULL;
    fake_state *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    if (!get) {
        printf("not the driver library of the tests\n");
        return 1;
    }
    fake = get();
    fake->compute = argc > 1 ? atoi(argv[1]) : 90;
    tn_context *ctx = graph_context(NULL, 1);
    tn_device *device = tn_context_device_by_name(ctx, "cuda");
    for (int i = 2; i < argc && TEST_CHECK(device); i++) check_folder_plans(argv[i], device, check);
    tn_context_destroy(&ctx);
    TEST_CHECK(n_plans > 0 && n_joined > 0);
    printf("%d plans, %d pairs of steps joined\n", (int)n_plans, (int)n_joined);
    return test_done();
}
