// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A plan lists exactly the dispatches that are recorded for a device of Vulkan. The library between the
// backend and the loader counts them.
//
//     test_dispatches MODEL...
#include "tests/graph/model_plans.h"
#include "tests/vulkan/between.h"

#include <dlfcn.h>

static between_state *between;
static int64_t n_plans, n_joined;

static void check(const plan_case *c, tn_plan *plan)
{
    // The first time kernels are checked too, which dispatches them.
    if (!TEST_CHECK_STATUS(prepare_plan(plan), TN_OK)) {
        say_case(c);
        return;
    }
    int64_t before = between->n_dispatches;
    if (!TEST_CHECK_STATUS(prepare_plan(plan), TN_OK)) {
        say_case(c);
        return;
    }
    int64_t recorded = between->n_dispatches - before;
    bool ok = TEST_CHECK(recorded == planned_launches(plan, 0));
    const char *wrong = check_memory(plan);
    ok &= TEST_CHECK(!wrong);
    if (!ok) {
        say_case(c);
        printf("    %d dispatches, %d planned; %s\n", (int)recorded, (int)planned_launches(plan, 0),
               wrong ? wrong : "");
    }
    n_plans++;
    n_joined += plan->info.n_joined;
}

int main(int argc, char **argv)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW),
         *symbol = library ? dlsym(library, "between_get") : NULL;
    between_state *(*get)(void) = NULL;
    memcpy(&get, &symbol, sizeof get);
    if (!get) {
        printf("the library between is not the first libvulkan.so.1\n");
        return 1;
    }
    between = get();
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.backend = "vulkan"; // software devices are only there when asked for
    tn_context *ctx = NULL;
    if (!TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), TN_OK)) return test_done();
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    if (!device) {
        printf("SKIP: no device of Vulkan\n");
        tn_context_destroy(&ctx);
        return 77;
    }
    for (int i = 1; i < argc; i++) check_model_plans(argv[i], argv[i], device, check);
    tn_context_destroy(&ctx);
    TEST_CHECK(n_plans > 0 && n_joined > 0);
    printf("%d plans, %d pairs of steps joined\n", (int)n_plans, (int)n_joined);
    return test_done();
}
