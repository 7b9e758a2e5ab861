// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One token of each of several sequences on the emulated device: rope_cache and attention share a launch
// where nobody else reads the rotated queries. Results and caches are those of the reference then, and those
// of two launches.
#include "tests/cuda/fake.h"
#include "tests/graph/token_layer.h"

// The results y and z on a device, or by the reference where that is NULL, and how many kernels ran.
static int64_t run(const layer *l, const char *device_name, bool apart, float *y, float *z)
{
    tn_context *ctx = graph_context(device_name ? NULL : "reference", 1);
    int64_t before = fake_get()->n_launches;
    run_layer(ctx, device_name ? tn_context_device_by_name(ctx, device_name) : NULL, l, apart, y, z);
    tn_context_destroy(&ctx);
    return fake_get()->n_launches - before;
}

static void check(layer l)
{
    static layer_results r;
    run(&l, NULL, false, r.y[0], r.z[0]);
    int64_t together = run(&l, "cuda", false, r.y[1], r.z[1]), apart = run(&l, "cuda", true, r.y[2], r.z[2]);
    check_layer(&l, &r, TEST_CHECK(together + 1 == apart));
}

int main(void)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};
    for (size_t i = 0; i < TN_COUNT(types); i++) {
        check((layer){.type = types[i], .dim = 64, .n_seqs = 5, .len = {1, 63, 65, 0, 1000}});
        check((layer){.type = types[i], .dim = 128, .n_seqs = 3, .len = {64, 1, 129}, .normed = true});
        check((layer){.type = types[i], .dim = 128, .n_seqs = 2, .len = {300, 1280}});
    }
    return test_done();
}
