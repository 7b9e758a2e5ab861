// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache and the attention after it share a launch only where the result of attention, which a head may
// have before another one begins, spares what other heads still read.
#include "backends/cuda/handover.h"
#include "ops/ops.h"
#include "tests/unit/test.h"

#include <string.h>

enum { HEADS = 4, KV_HEADS = 2, DIM = 16, BLOCK = 64, ROOM = 1 << 16, ROW = HEADS * DIM * 4 };
// Places in memory: of the cache, of what rope_cache reads and writes, of the rest.
enum {
    CACHE_K,
    CACHE_V = 8192,
    Q = 16384,
    K = Q + ROW,
    V = K + ROW,
    POS = V + ROW,
    SLOTS = POS + 64,
    TURNED = POS + 256,
    FREE = POS + 4096
};

static _Alignas(16) char memory[ROOM];

static tn_view view(tn_dtype type, int32_t at, int64_t a, int64_t b, int64_t c)
{
    tn_view v = {.data = memory + at, .dtype = type, .n_dims = 4, .ne = {1, a, b, c}};
    tn_view_set_contiguous(&v);
    return v;
}

static bool shares(int32_t result, int64_t dim)
{
    tn_view k = view(TN_TYPE_F16, CACHE_K, KV_HEADS, BLOCK, DIM),
            v = view(TN_TYPE_F16, CACHE_V, KV_HEADS, BLOCK, DIM),
            turned = view(TN_TYPE_F32, TURNED, 1, HEADS, DIM);
    tn_step steps[2] = {
        {.op = TN_OP_rope_cache,
         .n_src = 7,
         .n_dst = 3,
         .src = {k, v, view(TN_TYPE_F32, Q, 1, HEADS, DIM), view(TN_TYPE_F32, K, 1, KV_HEADS, DIM),
                 view(TN_TYPE_F32, V, 1, KV_HEADS, DIM), view(TN_TYPE_I32, POS, 1, 1, 1),
                 view(TN_TYPE_I32, SLOTS, 1, 1, 1)},
         .dst = {k, v, turned}},
        {.op = TN_OP_attention,
         .n_src = 6,
         .n_dst = 1,
         .src = {turned, k, v, view(TN_TYPE_I32, FREE - 64, 1, 1, 1), view(TN_TYPE_I32, FREE - 128, 1, 1, 1),
                 view(TN_TYPE_I32, FREE - 192, 1, 1, 1)},
         .dst = {view(TN_TYPE_F32, result, 1, HEADS, dim)}}};
    static const tn_cuda_kernel rope = {.op = TN_OP_rope_cache},
                                attention = {.op = TN_OP_attention, .flags = TN_CUDA_TAKES_ROPE};
    const tn_cuda_kernel *kernels[2] = {&rope, &attention};
    tn_program program = {.n_steps = 2, .steps = steps};
    tn_cuda_handover handover[2];
    memset(handover, 0, sizeof handover);
    tn_cuda_handover_plan(NULL, &program, kernels, NULL, handover);
    TEST_CHECK(handover[0].skipped == handover[1].rope);
    return handover[1].rope;
}

int main(void)
{
    TEST_CHECK(shares(FREE, DIM));
    TEST_CHECK(shares(TURNED, DIM)); // which is nowhere then
    TEST_CHECK(shares(Q, DIM));
    TEST_CHECK(!shares(Q, DIM / 2)); // heads elsewhere than their queries
    TEST_CHECK(!shares(Q + DIM * 4, DIM));
    TEST_CHECK(!shares(Q - DIM * 4, DIM));
    TEST_CHECK(!shares(K, DIM));
    TEST_CHECK(!shares(K + ROW / 2 - 4, DIM));
    TEST_CHECK(!shares(V - 4, DIM));
    TEST_CHECK(!shares(POS, DIM));
    TEST_CHECK(!shares(SLOTS, DIM));
    return test_done();
}
