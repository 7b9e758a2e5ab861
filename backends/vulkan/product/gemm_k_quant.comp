// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of 5 to 8 rows for weights of Q4_K, Q5_K and Q6_K and int8 activations (shaders/quantise_int8.glsl):
// y[r, j] = sum over k of x[r, k] w[j, k]. gemv_k_quant.comp is for fewer rows, whose activations a lane can
// keep in registers.
//
// Operands: int8 activations of ROWS rows at given_scratch; w [columns, k] in planes, k a multiple of 256;
// what follows the sums: finish.glsl, for each row.
//
// Work: a workgroup computes RESULTS columns of all rows, with a GLU of both gate and up. Of a subgroup four
// lanes share a block of 256 elements, each with a chunk of 64 (k_quant_chunk.glsl), and the others have
// other columns; a lane multiplies its chunks of WIDE rows of weights by those of all rows of x, which the
// subgroup has in shared memory. SPLIT subgroups share the blocks of their rows of weights. Sums meet in
// shared memory at the end. The factor of a norm comes last: y = (w (g x)) / rms(x).
//
// Bytes: the weights once, x once for every RESULTS columns. Limit: dot products of four bytes, of which a
// scheduler of an H200 seems to start one in four cycles: 32 us for gate and up of an 8B model with 8 rows,
// where this takes 45.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "backends/vulkan/shaders/common.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q4_K;
layout(constant_id = 1) const int FORM = 0; // finish.glsl; with FORM_STAGES RESULTS is 32
layout(constant_id = 2) const uint SPLIT = 1;
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint RESULTS = 32;
layout(constant_id = 6) const uint WIDE = 2;  // even with a GLU
layout(constant_id = 7) const uint LANES = 8; // of a subgroup
layout(constant_id = 8) const uint ROWS = 8;
#include "backends/vulkan/product/finish.glsl"

#define STAGED_GROUPS ROWS
#define STAGED_LANES LANES
#include "backends/vulkan/shaders/quantise_int8.glsl"
#include "backends/vulkan/product/k_quant_chunk.glsl"

// VECTORS, RECORDS: of 16 bytes, which a row has in a block; X: those of all rows.
const uint MAX_ROWS = 8, MAX_WIDE = 4, SUMS = GATED ? 2 * RESULTS : RESULTS,
           TEAMS = SUMS / (LANES / 4 * WIDE), VECTORS = 16, RECORDS = 4, X = ROWS * (VECTORS + RECORDS);
shared float sums[SPLIT * ROWS * SUMS], squares[ROWS];
shared uvec4 block_x[TEAMS * SPLIT * X]; // of each subgroup
// Orders shared memory within the subgroup alone.
spirv_instruction(id = 224) void control_barrier(uint scope, uint memory_scope, uint semantics);
#define subgroup_sync() control_barrier(3u, 3u, 0x108u)

uint column_first, columns, own;
uint64_t at[MAX_WIDE][MAX_PLANES]; // where the lane's next chunk of each of its rows of weights is
float acc[MAX_WIDE][MAX_ROWS];
Chunk chunks[MAX_WIDE];

ivec2 staged_at(uint i) { return ivec2(column_first + 32 <= columns ? int(i) : -1, int(column_first / 32)); }

// The lane's rows of weights, from slot `first` of the workgroup on. With a GLU these are gate and up by
// turns.
void find_weights(uint first, uint chunk)
{
    uint at_chunk[MAX_PLANES];
    find_chunk(chunk, at_chunk);
    [[unroll]] for (uint i = 0; i < WIDE; i++) {
        uint slot = first + i, w = GATED ? i & 1u : 0,
             j = min(column_first + (GATED ? slot / 2 : slot), columns - 1);
        [[unroll]] for (uint p = 0; p < MAX_PLANES; p++)
            at[i][p] = given_plane[w][p] + uint64_t(j) * uint64_t(given_size[p]) + at_chunk[p];
    }
}

void fetch_weights()
{
    const uint BLOCK[MAX_PLANES] = uint[](128u, IS_Q6 ? 64u : TYPE == TYPE_Q4_K ? 16u : 32u, 16u, 2u);
    [[unroll]] for (uint i = 0; i < WIDE; i++) {
        chunks[i] = load_chunk(at[i]);
        [[unroll]] for (uint p = 0; p < MAX_PLANES; p++) at[i][p] += SPLIT * BLOCK[p];
    }
}

// Puts block b of all rows of x into the subgroup's shared memory: vectors of 16 elements in the order of the
// runs of chunks, then for each chunk the records of two groups.
void stage_x(uint64_t x, uint size, uint k, uint b)
{
    const uint LOADS = (ROWS * VECTORS + LANES - 1) / LANES, MORE = (ROWS * RECORDS + LANES - 1) / LANES,
               lane = gl_SubgroupInvocationID;
    uvec4 v[LOADS], d[MORE];
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
        uint e = lane + i * LANES, r = min(e / VECTORS, ROWS - 1);
        v[i] = Fixed128(x + uint64_t(r * size + 256 * b + 16 * (e % VECTORS))).v;
    }
    [[unroll]] for (uint i = 0; i < MORE; i++) {
        uint e = lane + i * LANES, r = min(e / RECORDS, ROWS - 1);
        d[i] = Fixed128(x + uint64_t(r * size + k + 64 * b + 16 * (e % RECORDS))).v;
    }
    subgroup_sync();
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
        uint e = lane + i * LANES, p = e % VECTORS, run = IS_Q6 ? p / 2 % 4 : p % 4,
             chunk = IS_Q6 ? p / 8 * 2 + p % 2 : p / 4;
        if (e < ROWS * VECTORS) block_x[own + e / VECTORS * (VECTORS + RECORDS) + 4 * run + chunk] = v[i];
    }
    [[unroll]] for (uint i = 0; i < MORE; i++) {
        uint e = lane + i * LANES;
        if (e < ROWS * RECORDS)
            block_x[own + e / RECORDS * (VECTORS + RECORDS) + VECTORS + e % RECORDS] = d[i];
    }
    subgroup_sync();
}

// Adds the products of the lane's chunks, chunk j of a block, and starts the loads of the next ones. Half of
// the chunks at a time, by the same code, because a dispatch waits for its code.
void multiply(uint j, bool more)
{
    ChunkCodes c[MAX_WIDE];
    [[unroll]] for (uint i = 0; i < WIDE; i++) {
        c[i] = codes_of_chunk(chunks[i], shift_of(j), j >= 2);
        c[i].s *= c[i].d;
        c[i].less *= c[i].m;
    }
    if (more) fetch_weights();
    [[dont_unroll]] for (uint g = 0; g < 2; g++) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            uint row = own + r * (VECTORS + RECORDS), q = row + 8 * g + j;
            uvec4 q0 = block_x[q], q1 = block_x[q + 4];
            if (IS_Q6) {
                uvec4 record = block_x[row + VECTORS + (j & 2u) + g];
                vec2 d = uintBitsToFloat(record.xz);
                ivec2 less = -32 * ivec2(bitfieldExtract(int(record.y), int(16 * (j & 1u)), 16),
                                         bitfieldExtract(int(record.w), int(16 * (j & 1u)), 16));
                [[unroll]] for (uint i = 0; i < WIDE; i++) {
                    float first = c[i].s.x * float(dot_16(c[i].v[0], q0, less.x)),
                          second = c[i].s.y * float(dot_16(c[i].v[1], q1, less.y));
                    acc[i][r] = fma(d.x, first, fma(d.y, second, acc[i][r]));
                }
            } else {
                uvec4 records = block_x[row + VECTORS + j];
                uvec2 record = g == 0 ? records.xy : records.zw;
                float d = uintBitsToFloat(record.x),
                      sum = d * float(bitfieldExtract(int(record.y), 0, 16) + (int(record.y) >> 16));
                [[unroll]] for (uint i = 0; i < WIDE; i++) {
                    float v = float(dot_16(c[i].v[1], q1, dot_16(c[i].v[0], q0, 0)));
                    acc[i][r] = fma(c[i].s.x, d * v, fma(-c[i].less.x, sum, acc[i][r]));
                }
            }
        }
        [[unroll]] for (uint i = 0; i < WIDE; i++) { // the other half
            c[i].v[0] = c[i].v[2];
            c[i].v[1] = c[i].v[3];
            c[i].s.xy = IS_Q6 ? c[i].s.zw : c[i].s.yy;
            c[i].less.x = c[i].less.y;
        }
    }
}

// Sums over four neighbouring lanes, of which lane j gets that of v[j]. Each exchange halves how many numbers
// a lane has.
float sum_of_four(vec4 v, uint j)
{
    bool high = (j & 2u) != 0, odd = (j & 1u) != 0;
    vec2 kept = high ? v.zw : v.xy, given = high ? v.xy : v.zw;
    kept += vec2(subgroupShuffleXor(given.x, 2), subgroupShuffleXor(given.y, 2));
    return (odd ? kept.y : kept.x) + subgroupShuffleXor(odd ? kept.x : kept.y, 1);
}

// The sums of squares of all rows, for a norm: each by one subgroup.
void find_squares(uint64_t x, uint size, uint k)
{
    [[dont_unroll]] for (uint r = gl_SubgroupID; r < ROWS; r += gl_NumSubgroups) {
        float square = 0.0;
        [[dont_unroll]] for (uint i = gl_SubgroupInvocationID; i < k / 32; i += LANES)
            square += load_f32(x + r * size + k + k / 4 + 4 * i);
        square = lanes_sum(square, LANES);
        if (gl_SubgroupInvocationID == 0) squares[r] = square;
    }
}

void main()
{
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    const uint thread = gl_LocalInvocationID.x;
    columns = uint(given_n[N_PRODUCT_COLUMNS]);
    column_first = group_index() * RESULTS;
    if (column_first >= columns) return; // whole workgroups leave, so no barrier waits for them
    uint k = uint(given_k), blocks = k / 256, slice = gl_SubgroupID % SPLIT, team = gl_SubgroupID / SPLIT,
         j = gl_SubgroupInvocationID & 3u, size = uint(quantised_size(k)),
         first = (team * (LANES / 4) + gl_SubgroupInvocationID / 4) * WIDE;
    uint64_t x = given_scratch;
    own = gl_SubgroupID * X;
    [[unroll]] for (uint i = 0; i < WIDE; i++)
        [[unroll]] for (uint r = 0; r < ROWS; r++) acc[i][r] = 0.0;
    find_weights(first, 4 * min(slice, blocks - 1) + j);
    fetch_weights();
    if (NORMED) find_squares(x, size, k);
    [[dont_unroll]] for (uint b = slice; b < blocks; b += SPLIT) {
        stage_x(x, size, k, b);
        multiply(j, b + SPLIT < blocks);
    }
    [[unroll]] for (uint i = 0; i < WIDE; i++)
        [[unroll]] for (uint r = 0; r < ROWS; r += 4) {
            vec4 v;
            [[unroll]] for (uint e = 0; e < 4; e++) v[e] = r + e < ROWS ? acc[i][r + e] : 0.0;
            float sum = sum_of_four(v, j);
            if (r + j < ROWS) sums[(slice * ROWS + r + j) * SUMS + first + i] = sum;
        }
    barrier();
    [[dont_unroll]] for (uint e = thread; e < ROWS * RESULTS; e += gl_WorkGroupSize.x) {
        uint r = e / RESULTS, c = e % RESULTS, column = column_first + c;
        if (column >= columns) continue;
        Finish f = find_finish(r, column);
        float value = 0.0, up = 0.0;
        [[dont_unroll]] for (uint s = 0; s < SPLIT; s++) {
            uint from = (s * ROWS + r) * SUMS;
            value += sums[from + (GATED ? 2 * c : c)];
            if (GATED) up += sums[from + 2 * c + 1];
        }
        value = finish_one(f, value, up, NORMED ? squares[r] : 0.0, float(k), bias_of(column),
                           early_residual_of(r, column) + touched);
        store_f32(f.to, value);
        if (STAGES) staged_values[32 * r + c] = value;
    }
    if (!STAGES) return;
    barrier();
    stage(ROWS, columns);
}
