// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One token of each of several sequences on a device of Vulkan: rope_cache and attention share a dispatch
// where nobody else reads the rotated queries and the cache has plain numbers. Results and caches are those
// of the reference then, and those of two dispatches.
#include "tests/graph/token_layer.h"
#include "tests/vulkan/with_between.h"

static void check(tn_context *host, tn_context *ctx, layer l)
{
    static layer_results r;
    tn_device *device = tn_context_device_by_name(ctx, "vulkan");
    run_layer(host, NULL, &l, false, r.y[0], r.z[0]);
    bool together = run_layer(ctx, device, &l, false, r.y[1], r.z[1]),
         apart = run_layer(ctx, device, &l, true, r.y[2], r.z[2]);
    check_layer(&l, &r, TEST_CHECK(!apart && together == (tn_dtype_block_elems(l.type) == 1)));
}

int main(void)
{
    if (!find_between()) return 1;
    reset();
    tn_context *ctx = context(NULL, false), *host = graph_context("reference", 1);
    if (!TEST_CHECK(ctx != NULL)) return test_done();
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_F32, TN_TYPE_Q8_0};
    for (size_t i = 0; i < TN_COUNT(types); i++)
        check(host, ctx, (layer){.type = types[i], .dim = 64, .n_seqs = 5, .len = {1, 63, 65, 0, 1000}});
    check(host, ctx,
          (layer){.type = TN_TYPE_F16,
                  .dim = 64,
                  .n_seqs = 3,
                  .len = {64, 1, 129},
                  .normed = true,
                  .factors = true,
                  .mode = TN_ROPE_NEOX});
    check(host, ctx,
          (layer){.type = TN_TYPE_F16,
                  .dim = 64,
                  .n_seqs = 2,
                  .len = {300, 1280},
                  .n_rot = 24,
                  .attention = {.scale = 0.3f, .causal = 1, .window = 100, .softcap = 5.0f},
                  .sinks = true});
    check(host, ctx,
          (layer){.type = TN_TYPE_BF16,
                  .dim = 64,
                  .n_seqs = 2,
                  .len = {200, 70},
                  .mode = TN_ROPE_NEOX,
                  .attention = {.scale = 0.3f, .causal = 1, .max_bias = 8.0f}});
    if (!TEST_CHECK(n_events == 0)) printf("    %s\n", last_text); // no kernel was replaced by another
    tn_context_destroy(&ctx);
    tn_context_destroy(&host);
    return test_done();
}
