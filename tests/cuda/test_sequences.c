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
    static float y[3][MAX_SEQS * MOST_ROW], z[3][MAX_SEQS * MOST_ROW];
    run(&l, NULL, false, y[0], z[0]);
    int64_t together = run(&l, "cuda", false, y[1], z[1]), apart = run(&l, "cuda", true, y[2], z[2]);
    bool ok = TEST_CHECK(together + 1 == apart);
    // The device rounds angles, and with them rows of the cache, in another place.
    double far_y = layer_deviation(&l, y[1], y[0]), far_z = layer_deviation(&l, z[1], z[0]),
           far_apart = layer_deviation(&l, y[1], y[2]);
    ok &= TEST_CHECK(far_y < 2e-3);
    ok &= TEST_CHECK(far_z < 2e-3);
    ok &= TEST_CHECK(far_apart < 1e-3);
    if (!ok)
        printf("    %s, heads of %d, %d sequences, keys %d: %d and %d launches; off by %g, %g, %g\n",
               tn_dtype_name(l.type), l.dim, l.n_seqs, l.len[0], (int)together, (int)apart, far_y, far_z,
               far_apart);
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
