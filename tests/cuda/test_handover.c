// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache and the attention after it share a launch only where the result of attention, which a head may
// have before another one begins, spares what other heads still read. A gated pair rounds its result in place
// only for a product that reads all of it, and nobody else.
#include "backends/cuda/runtime/handover.h"
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
    static const tn_cuda_kernel rope = {.set = TN_SET_rope_cache},
                                attention = {.set = TN_SET_attention, .flags = TN_CUDA_FUSES_ROPE};
    const tn_cuda_kernel *kernels[2] = {&rope, &attention};
    const uint8_t only_next[2] = {1 << 2, 0};
    tn_program program = {.n_steps = 2, .steps = steps, .only_next = only_next};
    tn_cuda_handover handover[2];
    memset(handover, 0, sizeof handover);
    tn_cuda_handover_plan(NULL, &program, kernels, NULL, handover);
    TEST_CHECK(handover[0].skipped == handover[1].rope);
    return handover[1].rope;
}

enum { UNITS_M = 9, UNITS_K = 64, UNITS_N = 8, W = 32768, OUT = 40960 };

static bool rounds_in_place(int32_t x, int64_t k, int32_t out, bool norm, bool alone)
{
    tn_view y = view(TN_TYPE_F32, FREE, 1, UNITS_M, UNITS_K), w = view(TN_TYPE_BF16, W, 1, UNITS_N, k);
    const tn_matmul_glu_params glu = {.glu = {.act = TN_UNARY_SILU}};
    const tn_linear_params linear = {.has_norm = norm, .act = TN_UNARY_NONE};
    tn_step steps[2] = {{.op = TN_OP_matmul_glu, .params = &glu, .n_src = 3, .n_dst = 1, .dst = {y}},
                        {.op = TN_OP_linear,
                         .params = &linear,
                         .n_src = norm ? 3 : 2,
                         .n_dst = 1,
                         .src = {view(TN_TYPE_F32, x, 1, UNITS_M, k), w, view(TN_TYPE_F32, POS, 1, 1, k)},
                         .dst = {view(TN_TYPE_F32, out, 1, UNITS_M, UNITS_N)}}};
    static const tn_cuda_kernel maker = {.set = TN_SET_matmul_glu, .flags = TN_CUDA_WRITES_PACKED16},
                                reader = {.set = TN_SET_linear, .flags = TN_CUDA_READS_PACKED16};
    const tn_cuda_kernel *kernels[2] = {&maker, &reader};
    const uint8_t only_next[2] = {alone, 0};
    tn_program program = {.n_steps = 2, .steps = steps, .only_next = only_next};
    tn_cuda_handover handover[2];
    memset(handover, 0, sizeof handover);
    tn_cuda_handover_plan(NULL, &program, kernels, memory, handover);
    TEST_CHECK(handover[0].writes_packed16 == handover[1].reads_packed16);
    TEST_CHECK(!handover[0].reads_packed16 && !handover[1].writes_packed16);
    return handover[1].reads_packed16;
}

int main(void)
{
    TEST_CHECK(rounds_in_place(FREE, UNITS_K, OUT, false, true));
    TEST_CHECK(!rounds_in_place(FREE, UNITS_K, OUT, false, false));      // somebody else reads it
    TEST_CHECK(!rounds_in_place(FREE, UNITS_K, OUT, true, true));        // a norm comes between
    TEST_CHECK(!rounds_in_place(FREE, UNITS_K / 2, OUT, false, true));   // other rows
    TEST_CHECK(!rounds_in_place(FREE + 256, UNITS_K, OUT, false, true)); // other memory
    TEST_CHECK(!rounds_in_place(FREE, UNITS_K, FREE + 64, false, true)); // written while it is read
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
