// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// argmax and argmax_logprob of long rows, as logits are, with several workgroups for each row. In the
// first dispatch (MERGE 0) a workgroup finds the largest value of its part of a row, where that is first,
// and the sum of exponentials relative to it; in the second one (MERGE 1) one workgroup for each row puts
// the parts together in fixed order. NaN counts as absent.
//
// Operands: x [rows, n] F32 -> index I32 and log probability F32 for each row. Scratch: 12 bytes for each
// part. Bytes: 4 for each element, twice with a log probability. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 128;
layout(local_size_x = 128) in;
layout(constant_id = 0) const int OP = OP_argmax;
layout(constant_id = 1) const int MERGE = 0;
#include "backends/vulkan/shaders/reduce.glsl"

shared uint best_space[THREADS];
#define LOWEST uintBitsToFloat(0xff800000u) // -inf
const uint NONE = 0xffffffffu;

uint reduce_min(uint v)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    best_space[t] = v;
    for (uint n = THREADS / 2; n > 0; n >>= 1) {
        barrier();
        if (t < n) best_space[t] = min(best_space[t], best_space[t + n]);
    }
    barrier();
    return best_space[0];
}

void part_of_row(uint64_t x, uint from, uint to, uint64_t out_at, uint t)
{
    float top = LOWEST, sum = 0.0;
    uint best = NONE;
    for (uint j = from + t; j < to; j += THREADS) {
        float v = load_f32(x + 4 * int64_t(j));
        if (v > top) top = v, best = j;
    }
    float all = reduce_max(top);
    best = reduce_min(top == all ? best : NONE);
    if (OP == OP_argmax_logprob) {
        for (uint j = from + t; j < to; j += THREADS) {
            float v = load_f32(x + 4 * int64_t(j));
            if (!isnan(v)) sum += v == all ? 1.0 : exp(v - all);
        }
        sum = reduce_sum(sum);
    }
    if (t > 0) return;
    store_f32(out_at, all);
    store_u32(out_at + 4, best);
    store_f32(out_at + 8, sum);
}

void merge(uint64_t x, uint r, uint64_t parts_at, uint parts, uint t)
{
    bool mine = t < parts;
    float top = mine ? load_f32(parts_at + 12 * t) : LOWEST, all = reduce_max(top);
    uint best = reduce_min(mine && top == all ? load_u32(parts_at + 12 * t + 4) : NONE);
    best = best == NONE ? 0 : best;
    if (t == 0) store_u32(row_of(args.dst[0], r), best);
    if (OP == OP_argmax) return;
    float ref = load_f32(x + 4 * int64_t(best)), sum = mine ? load_f32(parts_at + 12 * t + 8) : 0.0;
    sum = reduce_sum(mine ? (top == ref ? sum : sum * exp(top - ref)) : 0.0);
    if (t == 0) store_f32(row_of(args.dst[1], r), -log(sum));
}

void main()
{
    uint parts = uint(args.n[N_ARGMAX_PARTS]), g = group_index(), r = MERGE != 0 ? g : g / parts,
         part = MERGE != 0 ? 0 : g % parts;
    if (r >= n_rows(args.src[0])) return;
    uint n = uint(args.src[0].ne[3]), each = (n + parts - 1) / parts, from = min(n, part * each);
    uint64_t x = row_of(args.src[0], r), at = args.scratch + 12 * int64_t(r * parts + part);
    if (MERGE != 0) merge(x, r, at, parts, gl_LocalInvocationID.x);
    else part_of_row(x, from, min(n, from + each), at, gl_LocalInvocationID.x);
}
