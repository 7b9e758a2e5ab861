// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV of one row, or of rows with their own experts, for weights of F32, F16 and BF16: y[j] = sum over k of
// x[k] w[j, k]. The form of gemv.comp for what decoding does most.
//
// Operands: x in f32 at given_plane[0][2]; w [columns, k] at given_plane[.][0]; the weight of a norm at
// given_plane[0][1], 0 if there is none. All of them come with the dispatch, so no load waits for the record.
// What follows the sums: finish.glsl.
//
// Work: a workgroup computes RESULTS columns, with a GLU both rows of weights of each, and all of its
// invocations share each row of weights, DEPTH slices of 16 bytes of each row at a time. So most workgroups
// request all their weights at once, have no loop, and are short: while some add up their sums, others load.
// The factor of a norm comes last: y = (w (g x)) / rms(x).
//
// Bytes: the weights once, and x, from the caches, once for every RESULTS columns. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "backends/vulkan/shaders/common.glsl"

layout(constant_id = 0) const int TYPE = TYPE_BF16;
layout(constant_id = 1) const int FORM = 0; // finish.glsl
// Rows of x and of weights are whole runs of 16 elements and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint RESULTS = 1;
layout(constant_id = 6) const uint DEPTH = 1;
uint row_first;
#include "backends/vulkan/product/finish.glsl"
const uint ROWS = GATED ? 2 * RESULTS : RESULTS, MAX_ROWS = 4, MAX_DEPTH = 8, MAX_SUBGROUPS = 64;

#include "backends/vulkan/product/lane_slice_float.glsl"

shared float sums[MAX_SUBGROUPS][MAX_ROWS], squares_of[MAX_SUBGROUPS];

void main()
{
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    const uint thread = gl_LocalInvocationID.x;
    uint columns = uint(given_n[N_PRODUCT_COLUMNS]), k = uint(given_k), elems = elems_of(TYPE),
         n_slices = (k + elems - 1) / elems, groups = (columns + RESULTS - 1) / RESULTS, g = group_index();
    row_first = EXPERTS ? g / groups : 0;
    uint column_first = (g - row_first * groups) * RESULTS;
    if (row_first >= uint(given_n[N_PRODUCT_ROWS]))
        return; // whole workgroups leave, so no barrier waits for them
    uint64_t x = given_plane[0][2], norm = given_plane[0][1];
    int64_t expert = 0;
    if (EXPERTS) {
        View ids = args.src[given_ids];
        uint used = uint(ids.ne[3]), token = row_first / used, u = row_first % used,
             beside = uint(args.src[0].ne[2]);
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        if (e < 0 || e >= args.n[N_PRODUCT_EXPERTS]) n_slices = 0;
        else expert = int64_t(e) * columns;
        x = row_of(args.src[0], token * beside + (beside > 1 ? u : 0));
    }
    uint64_t at[MAX_ROWS][MAX_PLANES];
    float acc[MAX_ROWS], squares = 0.0, bias = 0.0, residual = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        uint w = GATED ? r & 1u : 0, j = min(column_first + (GATED ? r / 2 : r), columns - 1);
        at[r][0] = given_plane[w][0] + (expert + int64_t(j)) * int64_t(given_size[0]);
        acc[r] = 0.0;
    }
    uint j = min(column_first + thread, columns - 1);
    [[dont_unroll]] for (uint base = 0; base < n_slices; base += DEPTH * gl_WorkGroupSize.x) {
        Slice slices[MAX_DEPTH][MAX_ROWS];
        [[unroll]] for (uint d = 0; d < DEPTH; d++)
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                slices[d][r] = load_slice(
                    TYPE, at[r], min(base + d * gl_WorkGroupSize.x + thread, n_slices - 1), k);
        // What the end needs is loaded while weights are in flight.
        if (base == 0 && thread < RESULTS) {
            bias = bias_of(j);
            residual = early_residual_of(row_first, j);
        }
        [[unroll]] for (uint d = 0; d < DEPTH; d++) {
            uint u = base + d * gl_WorkGroupSize.x + thread;
            bool counts = u < n_slices;
            Activations a;
            floats_at(TYPE, x, min(u, n_slices - 1) * elems, k, a.x);
            if (NORMED) {
                float scale[8];
                floats_at(TYPE, norm, min(u, n_slices - 1) * elems, k, scale);
                [[unroll]] for (uint i = 0; i < elems; i++) {
                    squares = fma(counts ? a.x[i] : 0.0, a.x[i], squares);
                    a.x[i] *= scale[i];
                }
            }
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                float dot = dot_slice(TYPE, slices[d][r], a, u);
                acc[r] += counts ? dot : 0.0;
            }
        }
    }
    Finish f = find_finish(row_first, j);
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float sum = subgroupAdd(acc[r]);
        if (subgroupElect()) sums[gl_SubgroupID][r] = sum;
    }
    if (NORMED) {
        squares = subgroupAdd(squares);
        if (subgroupElect()) squares_of[gl_SubgroupID] = squares;
    }
    barrier();
    if (thread >= RESULTS || column_first + thread >= columns) return;
    float value = 0.0, up = 0.0, all = 0.0;
    for (uint s = 0; s < gl_NumSubgroups; s++) {
        value += sums[s][GATED ? 2 * thread : thread];
        if (GATED) up += sums[s][2 * thread + 1];
        if (NORMED) all += squares_of[s];
    }
    store_f32(f.to, finish_one(f, value, up, all, float(k), bias, residual + touched));
}
