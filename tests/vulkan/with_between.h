// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What tests with the library between have in common: contexts whose events are counted, and a product.
#ifndef TN_TESTS_VULKAN_WITH_BETWEEN_H
#define TN_TESTS_VULKAN_WITH_BETWEEN_H

#include "tests/graph/run_graph.h"
#include "tests/vulkan/between.h"

#include <dlfcn.h>
#include <math.h>

static between_state *between;
static int32_t n_events, last_event, n_compiling, n_compiled;
static char last_text[512];

static inline void on_event(void *user, int32_t code, const char *text)
{
    TN_UNUSED(user);
    n_compiling += code == TN_EVENT_COMPILING;
    n_compiled += code == TN_EVENT_COMPILED;
    if (code == TN_EVENT_COMPILING || code == TN_EVENT_COMPILED) return;
    n_events++;
    last_event = code;
    snprintf(last_text, sizeof last_text, "%s", text);
}

static inline tn_context *context(const char *cache_dir, bool strict)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.backend = "vulkan";
    cfg.cache_dir = cache_dir;
    cfg.strict = strict;
    cfg.event = on_event;
    tn_context *ctx = NULL;
    return tn_context_create(&cfg, &ctx) == TN_OK ? ctx : NULL;
}

static inline void reset(void)
{
    // A profile is of the whole process.
    *between = (between_state){.error = VK_ERROR_OUT_OF_DEVICE_MEMORY,
                               .profile = between->profile,
                               .matrices = between->profile && between->matrices};
    n_events = last_event = n_compiling = n_compiled = 0;
}

// y = x w^T with more of everything than one run of 16; *error: the largest difference.
enum { ROWS = 2, COLUMNS = 5, COMMON = 48 };
static inline tn_status product(tn_context *ctx, double *error)
{
    static float x[ROWS][COMMON], w[COLUMNS][COMMON], y[ROWS][COLUMNS];
    for (int32_t i = 0; i < ROWS * COMMON; i++) x[i / COMMON][i % COMMON] = (float)(i % 7) - 3.0f;
    for (int32_t i = 0; i < COLUMNS * COMMON; i++) w[i / COMMON][i % COMMON] = (float)(i % 5) - 1.5f;
    tn_graph *g = new_graph(ctx);
    OUTPUT("y", tn_op_matmul(g, INPUT("x", ROWS, COMMON), WEIGHT("w", COLUMNS, COMMON)));
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    cfg.devices = &device;
    cfg.n_devices = 1;
    tn_binding weight = {"w", w, sizeof w}, in = {"x", x, sizeof x}, out = {"y", y, sizeof y};
    tn_status status = run_graph(g, &(run_args){&cfg, &weight, 1, &in, 1}, &out, 1);
    tn_graph_destroy(&g);
    *error = 0.0;
    for (int32_t i = 0; i < ROWS * COLUMNS && status == TN_OK; i++) {
        double want = 0.0;
        for (int32_t k = 0; k < COMMON; k++) want += (double)x[i / COLUMNS][k] * (double)w[i % COLUMNS][k];
        *error = fmax(*error, fabs(want - (double)y[i / COLUMNS][i % COLUMNS]));
    }
    return status;
}

// Sets `between`; false after a message: LD_LIBRARY_PATH does not lead to the library.
static inline bool find_between(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW);
    void *entry = library ? dlsym(library, "between_get") : NULL;
    between_state *(*get)(void);
    if (!entry) {
        printf("the library between is not the first libvulkan.so.1\n");
        return false;
    }
    memcpy(&get, &entry, sizeof get);
    between = get();
    return true;
}

#endif
