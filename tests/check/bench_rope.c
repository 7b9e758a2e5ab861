// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Times of the rotations.
#include "tests/check/bench.h"

static void time_rope(bench_run *r, int32_t op, int64_t n_tokens)
{
    bench_case b;
    bench_begin(&b, op, TN_TYPE_F32);
    tn_rope_params p = {.mode = TN_ROPE_NEOX, .n_rot = 128, .base = 1e6f};
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 32, 128);
    if (op == TN_OP_norm_rope) check_vec(&b.c, TN_TYPE_F32, 128);
    check_range(check_vec(&b.c, TN_TYPE_I32, n_tokens), CHECK_INT, 0, 8000);
    if (op == TN_OP_norm_rope)
        b.c.params.norm_rope = (tn_norm_rope_params){1e-6f, p};
    else
        b.c.params.rope = p;
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 32 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

static void time_rope_cache(bench_run *r, int64_t n_tokens)
{
    bench_case b;
    bench_begin(&b, TN_OP_rope_cache, TN_TYPE_F16);
    b.c.params.rope_cache =
        (tn_rope_cache_params){.rope = {.mode = TN_ROPE_NORM, .n_rot = 128, .base = 1e6f}};
    for (int32_t i = 0; i < 2; i++) check_src(&b.c, TN_TYPE_F16, 4, (int64_t[]){128, 8, 32, 128});
    check_cube(&b.c, TN_TYPE_F32, n_tokens, 32, 128);
    for (int32_t i = 0; i < 2; i++) check_cube(&b.c, TN_TYPE_F32, n_tokens, 8, 128);
    for (int32_t i = 0; i < 2; i++) check_vec(&b.c, TN_TYPE_I32, n_tokens)->fill = CHECK_DATA;
    for (int32_t i = 0; i < n_tokens; i++) b.c.ints[i] = i;
    check_absent(&b.c);
    check_absent(&b.c);
    snprintf(b.c.note, sizeof b.c.note, "%lld tokens, 32 and 8 heads of 128", (long long)n_tokens);
    check_bench_case(r, &b);
}

void check_bench_rope(bench_run *r)
{
    static const int64_t tokens[] = {1, 512, 4096};
    for (int32_t i = 0; i < (bench_is_device(r) ? 3 : 2); i++) {
        time_rope(r, TN_OP_rope, tokens[i]);
        time_rope(r, TN_OP_norm_rope, tokens[i]);
        time_rope_cache(r, tokens[i]);
    }
}
