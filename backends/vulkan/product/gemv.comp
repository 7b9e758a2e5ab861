// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows, or with an expert for each row, of quantised weights and activations that round.comp left as bytes (units.glsl),
// or of plain weights and activations as they are (PLAIN, units_plain.glsl). A team of SPLIT subgroups takes COLUMNS columns of up to
// ROWS rows (a gated pair: half as many columns of both weights); lanes take units of 16 bytes, DEPTH of each column at a time, all of
// whose loads start before the first is used. The factor of a norm comes last: y = (w (g x)) / rms(x). Bytes: the weights once per ROWS
// rows. At args.n see product.glsl. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/product/product.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q8_0;
layout(constant_id = 1) const int GATED = 0; // a gated pair
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const int ALIGNED = 0; // plain: rows of x and of weights are whole runs of 16 elements and start aligned to 16 bytes
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint COLUMNS = 1;
layout(constant_id = 6) const uint SPLIT = 1;
layout(constant_id = 7) const uint DEPTH = 1;
layout(constant_id = 8) const uint TURNS = 0; // not 0: a workgroup takes 32 columns in so many turns, and leaves them as bytes too

#ifdef PLAIN
#include "backends/vulkan/product/lane_slice_float.glsl"
#else
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/product/lane_slice_int8.glsl"
#endif

#define STAGED_GROUPS 8
#include "backends/vulkan/shaders/quantise_int8.glsl"

const uint MAX_ROWS = 8, MAX_COLUMNS = 4, MAX_DEPTH = 4, MAX_SUBGROUPS = 16;
shared float parts[MAX_SUBGROUPS][MAX_ROWS * MAX_COLUMNS + MAX_ROWS]; // at the end sums of squares

// The part of the lane's subgroup in the sum of squares of a row: with rounded activations each has the whole.
float sum_squares(uint64_t row, uint k, float mine)
{
#ifdef PLAIN
    return subgroupAdd(mine);
#else
    float sum = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < k / 32; i += gl_SubgroupSize) sum += load_f32(row + k + k / 4 + 4 * i);
    return subgroupAdd(sum) / float(SPLIT);
#endif
}

// Row r of x.
uint64_t row_of_x(uint r)
{
#ifdef PLAIN
    return row_of(args.src[0], r);
#else
    return args.scratch + int64_t(r) * quantised_size(uint(args.src[0].ne[3]));
#endif
}

float norm_factor(float squares, uint k)
{
    return args.n[N_PRODUCT_NORM] >= 0 ? inversesqrt(squares / float(k) + param_f(args.n[N_PRODUCT_EPS])) : 1.0;
}

// The first row and column of the workgroup.
uint row_first, column_first;
ivec2 staged_at(uint i)
{
    bool whole = row_first + i < uint(args.n[N_PRODUCT_ROWS]) && column_first + 32 <= uint(args.n[N_PRODUCT_COLUMNS]);
    return ivec2(whole ? int(row_first + i) : -1, int(column_first / 32));
}

void main()
{
    float touched = touch_record(gl_SubgroupInvocationID);
    uint columns = uint(args.n[N_PRODUCT_COLUMNS]), rows = uint(args.n[N_PRODUCT_ROWS]), k = uint(args.src[0].ne[3]), n_units = (k + elems_of(TYPE) - 1) / elems_of(TYPE);
    uint wide = GATED != 0 ? COLUMNS / 2 : COLUMNS, teams = gl_NumSubgroups / SPLIT;
    uint turns = max(TURNS, 1u), each = teams * wide * turns, groups = (columns + each - 1) / each, g = group_index();
    uint slice = gl_SubgroupID % SPLIT, r0 = g / groups * ROWS;
    row_first = r0;
    column_first = g % groups * each;
    if (r0 >= rows) return; // whole workgroups
    int64_t expert = 0;
    uint64_t x[MAX_ROWS];
    if (args.n[N_PRODUCT_IDS] >= 0) { // one row: an expert each
        View ids = args.src[args.n[N_PRODUCT_IDS]];
        uint used = uint(ids.ne[3]), row = min(r0, rows - 1), token = row / used, u = row % used, beside = uint(args.src[0].ne[2]);
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        if (e < 0 || e >= args.n[N_PRODUCT_EXPERTS]) n_units = 0;
        else expert = int64_t(e) * columns;
        x[0] = row_of_x(token * beside + (beside > 1 ? u : 0));
    } else
        [[unroll]] for (uint r = 0; r < ROWS; r++) x[r] = row_of_x(min(r0 + r, rows - 1));
    [[dont_unroll]] for (uint turn = 0; turn < turns; turn++) {
        uint j0 = column_first + (turn * teams + gl_SubgroupID / SPLIT) * wide, units_here = j0 < columns ? n_units : 0;
        // Each lane finishes a result: one copy of the code that follows a product. What is added to it is on its way meanwhile.
        uint mine = gl_SubgroupInvocationID, first = gl_SubgroupID - slice, r = r0 + mine / wide, j = j0 + mine % wide;
        bool finishes = mine < ROWS * wide && r < rows && j < columns && slice == 0;
        float more = finishes ? residual_of(r, j) : 0.0;
        uint64_t at[MAX_COLUMNS][MAX_PLANES];
        float acc[MAX_COLUMNS][MAX_ROWS], squares[MAX_ROWS];
        [[unroll]] for (uint r = 0; r < ROWS; r++) squares[r] = 0.0;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            uint p = GATED != 0 ? c & 1u : 0, j = GATED != 0 ? c / 2 : c;
            int64_t row = expert + min(j0 + j, columns - 1);
            [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) at[c][i] = args.weight[p].plane[i] + row * args.weight[p].row_size[i];
            [[unroll]] for (uint r = 0; r < ROWS; r++) acc[c][r] = 0.0;
        }
        uint stride = gl_SubgroupSize * SPLIT;
        for (uint u0 = slice * gl_SubgroupSize + gl_SubgroupInvocationID; u0 < units_here; u0 += DEPTH * stride) {
            Unit units[MAX_DEPTH][MAX_COLUMNS];
            [[unroll]] for (uint d = 0; d < DEPTH; d++)
                [[unroll]] for (uint c = 0; c < COLUMNS; c++) units[d][c] = load_unit(TYPE, at[c], min(u0 + d * stride, n_units - 1), k);
            [[unroll]] for (uint d = 0; d < DEPTH; d++) {
                uint u = min(u0 + d * stride, n_units - 1);
                bool counts = u0 + d * stride < n_units;
                [[unroll]] for (uint r = 0; r < ROWS; r++) {
                    Acts a = load_acts(TYPE, x[r], k, u, counts, squares[r]);
                    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                        float dot = dot_unit(TYPE, units[d][c], a, u);
                        acc[c][r] += counts ? dot : 0.0;
                    }
                }
            }
        }
        float value = 0.0, up = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float all = args.n[N_PRODUCT_NORM] >= 0 ? sum_squares(x[r], k, squares[r]) : 0.0, factor = SPLIT > 1 ? 1.0 : norm_factor(all, k);
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
            if (TURNS > 0) staged_values[(r - r0) * 32 + j - column_first] = value;
        }
    }
    if (TURNS == 0) return;
    barrier();
    stage(ROWS, columns);
}
