// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV for up to eight rows, or for rows with their own experts: y[r, j] = sum over k of x[r, k] w[j, k].
//
// Two modules: gemv_int8 multiplies quantised weights by int8 activations (shaders/quantise_int8.glsl),
// which quantise_int8.comp or the step before has written to args.scratch. gemv_float (FLOAT_WEIGHTS)
// multiplies weights of F32, F16 and BF16 by x in f32.
//
// Operands: w [columns, k] in planes; with experts w [experts, columns, k] and ids I32. What follows the
// sums: product.glsl.
//
// Work: a team of SPLIT subgroups multiplies COLUMNS columns (with a GLU half as many columns of gate and
// up) by up to ROWS rows. A lane loads slices of 16 bytes of a row of weights (lane_slice_*.glsl), DEPTH
// slices of each column at a time; all of these loads start before the first slice is used, so their
// latencies overlap. A norm costs no pass of its own: y = (w (g x)) / rms(x), and its factor is applied to
// the sums.
//
// Bytes: the weights once for every ROWS rows. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/product/product.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q8_0;
layout(constant_id = 1) const int GATED = 0; // columns are gate and up of a GLU by turns
layout(constant_id = 2) const uint ROWS = 1;
// FLOAT_WEIGHTS: rows of x and of weights are whole runs of 16 elements and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint COLUMNS = 1;
layout(constant_id = 6) const uint SPLIT = 1;
layout(constant_id = 7) const uint DEPTH = 1;
// Not 0: the workgroup computes 32 columns in so many rounds, and writes them as a staged result too.
layout(constant_id = 8) const uint ROUNDS = 0;

#ifdef FLOAT_WEIGHTS
#include "backends/vulkan/product/lane_slice_float.glsl"
#else
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/product/lane_slice_int8.glsl"
#endif

#define STAGED_GROUPS 8
#include "backends/vulkan/shaders/quantise_int8.glsl"

const uint MAX_ROWS = 8, MAX_COLUMNS = 4, MAX_DEPTH = 4, MAX_SUBGROUPS = 16;
// Sums of each subgroup of a team, and behind them its sums of squares.
shared float parts[MAX_SUBGROUPS][MAX_ROWS * MAX_COLUMNS + MAX_ROWS];

// What the lane's subgroup contributes to the sum of squares of a row. With int8 activations that sum was
// made when they were quantised: each of the SPLIT subgroups reads all of it and contributes an equal part.
float sum_squares(uint64_t row, uint k, float mine)
{
#ifdef FLOAT_WEIGHTS
    return subgroupAdd(mine);
#else
    float sum = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < k / 32; i += gl_SubgroupSize)
        sum += load_f32(row + k + k / 4 + 4 * i);
    return subgroupAdd(sum) / float(SPLIT);
#endif
}

// Row r of x.
uint64_t row_of_x(uint r)
{
#ifdef FLOAT_WEIGHTS
    return row_of(args.src[0], r);
#else
    return args.scratch + int64_t(r) * quantised_size(uint(args.src[0].ne[3]));
#endif
}

float norm_factor(float squares, uint k)
{
    return args.n[N_PRODUCT_NORM] >= 0 ? inversesqrt(squares / float(k) + param_f(args.n[N_PRODUCT_EPS]))
                                       : 1.0;
}

// The first row and column of the workgroup.
uint row_first, column_first;
ivec2 staged_at(uint i)
{
    bool whole =
        row_first + i < uint(args.n[N_PRODUCT_ROWS]) && column_first + 32 <= uint(args.n[N_PRODUCT_COLUMNS]);
    return ivec2(whole ? int(row_first + i) : -1, int(column_first / 32));
}

void main()
{
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    uint columns = uint(args.n[N_PRODUCT_COLUMNS]), rows = uint(args.n[N_PRODUCT_ROWS]),
         k = uint(args.src[0].ne[3]), n_slices = (k + elems_of(TYPE) - 1) / elems_of(TYPE);
    uint wide = GATED != 0 ? COLUMNS / 2 : COLUMNS, teams = gl_NumSubgroups / SPLIT;
    uint n_rounds = max(ROUNDS, 1u), each = teams * wide * n_rounds, groups = (columns + each - 1) / each,
         g = group_index();
    uint slice = gl_SubgroupID % SPLIT, r0 = g / groups * ROWS;
    row_first = r0;
    column_first = g % groups * each;
    if (r0 >= rows) return; // whole workgroups leave, so no barrier waits for them
    int64_t expert = 0;
    uint64_t x[MAX_ROWS];
    if (args.n[N_PRODUCT_IDS] >= 0) { // ROWS is 1: each row has its own expert
        View ids = args.src[args.n[N_PRODUCT_IDS]];
        uint used = uint(ids.ne[3]), row = min(r0, rows - 1), token = row / used, u = row % used,
             beside = uint(args.src[0].ne[2]);
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        if (e < 0 || e >= args.n[N_PRODUCT_EXPERTS]) n_slices = 0;
        else expert = int64_t(e) * columns;
        x[0] = row_of_x(token * beside + (beside > 1 ? u : 0));
    } else
        [[unroll]] for (uint r = 0; r < ROWS; r++) x[r] = row_of_x(min(r0 + r, rows - 1));
    [[dont_unroll]] for (uint round_i = 0; round_i < n_rounds; round_i++) {
        uint j0 = column_first + (round_i * teams + gl_SubgroupID / SPLIT) * wide,
             slices_here = j0 < columns ? n_slices : 0;
        // Each of the first lanes finishes a result, so there is one copy of the code that follows the sums.
        // Its residual is loaded now, so that it has arrived by then.
        uint mine = gl_SubgroupInvocationID, first = gl_SubgroupID - slice, r = r0 + mine / wide,
             j = j0 + mine % wide;
        bool finishes = mine < ROWS * wide && r < rows && j < columns && slice == 0;
        float more = finishes ? residual_of(r, j) : 0.0;
        uint64_t at[MAX_COLUMNS][MAX_PLANES];
        float acc[MAX_COLUMNS][MAX_ROWS], squares[MAX_ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) squares[r] = 0.0;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            uint p = GATED != 0 ? c & 1u : 0, j = GATED != 0 ? c / 2 : c;
            int64_t row = expert + min(j0 + j, columns - 1);
            [[unroll]] for (uint i = 0; i < MAX_PLANES; i++)
                at[c][i] = args.weight[p].plane[i] + row * args.weight[p].row_size[i];
            [[unroll]] for (uint r = 0; r < ROWS; r++) acc[c][r] = 0.0;
        }
        uint stride = gl_SubgroupSize * SPLIT;
        for (uint u0 = slice * gl_SubgroupSize + gl_SubgroupInvocationID; u0 < slices_here;
             u0 += DEPTH * stride) {
            Slice slices[MAX_DEPTH][MAX_COLUMNS];
            [[unroll]] for (uint d = 0; d < DEPTH; d++)
                [[unroll]] for (uint c = 0; c < COLUMNS; c++)
                    slices[d][c] = load_slice(TYPE, at[c], min(u0 + d * stride, n_slices - 1), k);
            [[unroll]] for (uint d = 0; d < DEPTH; d++) {
                uint u = min(u0 + d * stride, n_slices - 1);
                bool counts = u0 + d * stride < n_slices;
                [[unroll]] for (uint r = 0; r < ROWS; r++) {
                    Activations a = load_activations(TYPE, x[r], k, u, counts, squares[r]);
                    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                        float dot = dot_slice(TYPE, slices[d][c], a, u);
                        acc[c][r] += counts ? dot : 0.0;
                    }
                }
            }
        }
        float value = 0.0, up = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float all = args.n[N_PRODUCT_NORM] >= 0 ? sum_squares(x[r], k, squares[r]) : 0.0,
                  factor = SPLIT > 1 ? 1.0 : norm_factor(all, k);
            if (SPLIT > 1 && subgroupElect()) parts[gl_SubgroupID][MAX_ROWS * MAX_COLUMNS + r] = all;
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                float v = subgroupAdd(acc[c][r]) * factor;
                if (SPLIT > 1) {
                    if (subgroupElect()) parts[gl_SubgroupID][r * COLUMNS + c] = v;
                    continue;
                }
                if (mine != r * wide + (GATED != 0 ? c / 2 : c)) continue;
                if (GATED != 0 && (c & 1u) != 0) up = v;
                else value = v;
            }
        }
        if (SPLIT > 1) {
            barrier();
            uint at_r = mine / wide, at_c = mine % wide * (GATED != 0 ? 2 : 1);
            if (slice != 0 || at_r >= ROWS) return;
            float all = 0.0;
            for (uint s = 0; s < SPLIT; s++) {
                all += parts[first + s][MAX_ROWS * MAX_COLUMNS + at_r];
                value += parts[first + s][at_r * COLUMNS + at_c];
                if (GATED != 0) up += parts[first + s][at_r * COLUMNS + at_c + 1];
            }
            float factor = norm_factor(all, k);
            value *= factor;
            up *= factor;
        }
        if (finishes) {
            value = finish(r, j, value, up, more + touched);
            if (ROUNDS > 0) staged_values[(r - r0) * 32 + j - column_first] = value;
        }
    }
    if (ROUNDS == 0) return;
    barrier();
    stage(ROWS, columns);
}
