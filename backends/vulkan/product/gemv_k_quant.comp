// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV of up to 4 rows, or of rows with their own experts, for weights of Q4_K, Q5_K and Q6_K and int8
// activations (shaders/quantise_int8.glsl): the form of gemv.comp for what decoding does most. y[r, j] = sum
// over k of x[r, k] w[j, k].
//
// Operands: int8 activations at args.scratch; w [columns, k] in planes, k a multiple of 256; what follows
// the sums: finish.glsl.
//
// Work: a workgroup computes RESULTS columns, with a GLU of both gate and up. SPLIT subgroups share each
// row of weights; a lane multiplies a chunk of 64 elements of it (k_quant_chunk.glsl) and keeps its
// activations, those of all ROWS, in registers for all rows of weights. DEPTH of these are in flight at any
// time. Sums meet in shared memory at the end. The factor of a norm comes last: y = (w (g x)) / rms(x).
//
// Bytes: the weights once, and x once for every RESULTS columns. Limit: memory, and some 8 us of each
// dispatch that do not depend on its size. Measured on an H200 with the products of an 8B model, Q4_K:
// gate and up 24.1 us, down 17.7, output 10.5, q, k and v 13.1, where gemv.comp takes 38.5, 28, 15.3 and
// 14.9: the driver gives that shader 117 to 126 registers and moves loads down to their use, but this one
// 64. Addresses come with the push constants. With 4 rows gate and up take 31 us, down 17, output 8.
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
layout(constant_id = 6) const uint DEPTH = 1; // divides the rows of weights of a team; even with a GLU
layout(constant_id = 7) const uint LANES = 4; // of a subgroup
layout(constant_id = 8) const uint ROWS = 1;  // of x that a workgroup multiplies; with experts 1
uint row_first;
#include "backends/vulkan/product/finish.glsl"

#define STAGED_GROUPS ROWS
#define STAGED_SCALES
#define STAGED_LANES LANES
#include "backends/vulkan/shaders/quantise_int8.glsl"
#include "backends/vulkan/product/k_quant_chunk.glsl"

// TURN: the sums of all rows of x with DEPTH rows of weights, filled to a power of 2 for each.
const uint MAX_DEPTH = 4, MAX_ROWS = 4, MAX_TURN = 16, ROWS_2 = ROWS > 2 ? 4 : ROWS,
           TURN = DEPTH * ROWS_2, MAX_SUBGROUPS = 32, SUMS = GATED ? 2 * RESULTS : RESULTS;
shared float sums[SPLIT * ROWS * SUMS];

uint column_first, columns, rows; // rows: of x
uint64_t bases[2][MAX_PLANES]; // address of the lane's chunk in row 0 of each weight
ChunkActivations activations[MAX_ROWS];
Chunk ring[MAX_DEPTH];

// Loads biases, residuals and weights of the next norm while weights are in flight.
shared float biases[RESULTS], residuals[ROWS * RESULTS];
void load_columns()
{
    [[dont_unroll]] for (uint e = gl_LocalInvocationID.x; e < ROWS * RESULTS; e += gl_WorkGroupSize.x) {
        uint i = e % RESULTS, j = min(column_first + i, columns - 1);
        residuals[e] = early_residual_of(row_first + (ROWS > 1 ? e / RESULTS : 0), j);
        if (ROWS > 1 && e >= RESULTS) continue;
        biases[i] = bias_of(j);
        if (STAGES)
            staged_scales[i] = args.staged_norm != 0 ? load_f32(args.staged_norm + 4 * int64_t(j)) : 1.0;
    }
}

ivec2 staged_at(uint i)
{
    return ivec2(column_first + 32 <= columns ? int(row_first + i) : -1, int(column_first / 32));
}

// Starts the load of row `slot` of the workgroup's rows of weights into entry d of the ring. With a GLU rows
// are gate and up by turns, so that d tells which of them a row belongs to.
void start_load(uint d, uint slot)
{
    uint w = GATED ? d & 1u : 0, j = min(column_first + (GATED ? slot / 2 : slot), columns - 1);
    uint64_t at[MAX_PLANES];
    [[unroll]] for (uint i = 0; i < MAX_PLANES; i++)
        at[i] = bases[w][i] + uint64_t(j) * uint64_t(given_size[i]);
    ring[d] = load_chunk(at);
}

// Sums of TURN numbers over the subgroup: lane i gets the sum of number i % TURN. Each exchange halves how
// many numbers a lane has, which takes fewer exchanges than a reduction of each number.
#define HALVE(n, step)                                                                                       \
    if (TURN >= 2 * n) {                                                                                     \
        bool odd = (gl_SubgroupInvocationID & step) != 0;                                                    \
        [[unroll]] for (uint i = 0; i < n; i++) {                                                            \
            float kept = odd ? v[2 * i + 1] : v[2 * i], given = odd ? v[2 * i] : v[2 * i + 1];               \
            v[i] = kept + subgroupShuffleXor(given, step);                                                   \
        }                                                                                                    \
    }
float sum_all(float v[MAX_TURN])
{
    HALVE(8, TURN / 16)
    HALVE(4, TURN / 8)
    HALVE(2, TURN / 4)
    HALVE(1, TURN / 2)
    [[unroll]] for (uint step = TURN; step < LANES; step *= 2) v[0] += subgroupShuffleXor(v[0], step);
    return v[0];
}

// Multiplies the rows in the ring, and starts the loads of those from `next` on. This code stands once,
// because a dispatch waits for its code.
void multiply_rows(uint slot, uint next, uint at, bool first)
{
    float v[MAX_TURN];
    [[unroll]] for (uint d = 0; d < DEPTH; d++) {
        ChunkCodes c = codes_of_chunk(ring[d], activations[0].shift, activations[0].upper);
        start_load(d, next + d);
        [[unroll]] for (uint r = 0; r < ROWS_2; r++)
            v[d * ROWS_2 + r] = r < ROWS ? dot_chunk(c, activations[r]) : 0.0;
    }
    float mine = sum_all(v);
    uint d = gl_SubgroupInvocationID / ROWS_2, r = gl_SubgroupInvocationID % ROWS_2;
    if (d >= DEPTH || r >= ROWS) return;
    at += r * SUMS + slot + d;
    sums[at] = first ? mine : sums[at] + mine;
}

// The sums of squares of the rows of x: of one row a part by each subgroup, of more each by one subgroup.
const uint SQUARES = ROWS > 1 ? 1 : MAX_SUBGROUPS;
shared float squares[ROWS * SQUARES];
void find_square(uint64_t x, uint k, uint first, uint step, uint to)
{
    float square = 0.0;
    [[dont_unroll]] for (uint i = first; i < k / 32; i += step) square += load_f32(x + k + k / 4 + 4 * i);
    square = lanes_sum(square, LANES);
    if (gl_SubgroupInvocationID == 0) squares[to] = square;
}
void find_squares(uint64_t x, uint k)
{
    if (ROWS == 1) find_square(x, k, gl_LocalInvocationID.x, gl_WorkGroupSize.x, gl_SubgroupID);
    else
        [[dont_unroll]] for (uint r = gl_SubgroupID; r < ROWS; r += gl_NumSubgroups)
            find_square(x + r * quantised_size(k), k, gl_SubgroupInvocationID, LANES, r);
}

void main()
{
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    const uint thread = gl_LocalInvocationID.x;
    columns = uint(given_n[N_PRODUCT_COLUMNS]), rows = uint(given_n[N_PRODUCT_ROWS]);
    uint k = uint(given_k), groups = (columns + RESULTS - 1) / RESULTS, g = group_index();
    uint n_chunks = k / 64, slice = gl_SubgroupID % SPLIT, team = gl_SubgroupID / SPLIT,
         each = SUMS / (gl_NumSubgroups / SPLIT);
    row_first = EXPERTS ? g / groups : 0;
    column_first = (g - row_first * groups) * RESULTS;
    if (row_first >= rows || column_first >= columns)
        return; // whole workgroups leave, so no barrier waits for them
    uint64_t x = given_scratch;
    int64_t first_weight = 0;
    if (EXPERTS) {
        View ids = args.src[given_ids];
        uint used = uint(ids.ne[3]), token = row_first / used, u = row_first % used,
             beside = uint(args.src[0].ne[2]);
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        if (e < 0 || e >= args.n[N_PRODUCT_EXPERTS]) n_chunks = 0;
        else first_weight = int64_t(e) * columns;
        x += int64_t(token * beside + (beside > 1 ? u : 0)) * quantised_size(k);
    }
    uint first_slot = team * each, at = slice * ROWS * SUMS;
    if (EXPERTS && n_chunks == 0) {
        for (uint i = gl_SubgroupInvocationID; i < each; i += LANES) sums[at + first_slot + i] = 0.0;
        load_columns();
    }
    [[dont_unroll]] for (uint base = 0; base < n_chunks; base += SPLIT * LANES) {
        uint c = base + slice * LANES + gl_SubgroupInvocationID, chunk = min(c, n_chunks - 1),
             at_chunk[MAX_PLANES];
        find_chunk(chunk, at_chunk);
        [[unroll]] for (uint w = 0; w < (GATED ? 2 : 1); w++)
            [[unroll]] for (uint i = 0; i < MAX_PLANES; i++)
                bases[w][i] = given_plane[w][i] + at_chunk[i] +
                              (EXPERTS ? first_weight * int64_t(given_size[i]) : int64_t(0));
        [[unroll]] for (uint d = 0; d < DEPTH; d++) start_load(d, first_slot + d);
        [[unroll]] for (uint r = 0; r < ROWS; r++)
            activations[r] = load_chunk_activations(x + r * quantised_size(k), k, chunk, c < n_chunks);
        // What the end needs is loaded while weights are in flight. The first weights do not wait for the
        // record, because the push constants have their addresses; this does.
        if (base == 0) {
            load_columns();
            if (NORMED) find_squares(x, k);
        }
        // The last rows are loaded twice, the second time from a cache.
        [[dont_unroll]] for (uint i = 0; i < each; i += DEPTH)
            multiply_rows(first_slot + i, first_slot + min(i + DEPTH, each - DEPTH), at, base == 0);
    }
    Finish f = find_finish(row_first, min(column_first + thread % RESULTS, columns - 1));
    barrier();
    [[dont_unroll]] for (uint e = thread; e < ROWS * RESULTS; e += gl_WorkGroupSize.x) {
        uint i = e % RESULTS, r = ROWS > 1 ? e / RESULTS : 0;
        if (column_first + i >= columns) continue;
        if (ROWS > 1) f = find_finish(r, column_first + i);
        float value = 0.0, up = 0.0, all = 0.0;
        [[unroll]] for (uint s = 0; s < SPLIT; s++) {
            uint from = (s * ROWS + r) * SUMS;
            value += sums[from + (GATED ? 2 * i : i)];
            if (GATED) up += sums[from + 2 * i + 1];
        }
        [[dont_unroll]] for (uint s = 0; NORMED && s < (ROWS > 1 ? 1 : gl_NumSubgroups); s++)
            all += squares[r + s];
        value = finish_one(f, value, up, all, float(k), biases[i], residuals[e] + touched);
        store_f32(f.to, value);
        if (STAGES) staged_values[e] = value;
    }
    if (!STAGES) return;
    barrier();
    stage(ROWS, columns);
}
