// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of one row, or with an expert for each row, of weights of Q4_K, Q5_K and Q6_K and activations that are bytes (rounding.glsl):
// dot.comp for what decoding does most. A workgroup has RESULTS columns (a gated pair: of both weights). SPLIT subgroups share rows of
// weights, a lane takes a chunk of 64 elements of each (chunks.glsl) and keeps its activations for all rows; DEPTH rows are on their way
// at any time. Sums meet in shared memory at the end, where each result has a lane. The factor of a norm comes last:
// y = (w (g x)) / rms(x). At args.n see product.glsl. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/product/product.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q4_K;
layout(constant_id = 1) const int FORM = 0; // 1 a gated pair, 2 the results are left as bytes too: RESULTS is 32
layout(constant_id = 2) const uint SPLIT = 1;
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint RESULTS = 32;
layout(constant_id = 6) const uint DEPTH = 1; // divides the rows of weights of a team; even for a pair
layout(constant_id = 7) const uint LANES = 4; // of a subgroup
const bool GATED = (FORM & 1) != 0, STAGES = (FORM & 2) != 0;

#define STAGED_GROUPS 1
#define STAGED_SCALES
#include "backends/vulkan/shaders/quantise_int8.glsl"
#include "backends/vulkan/product/k_quant_chunk.glsl"

const uint MAX_DEPTH = 4, MAX_SUBGROUPS = 32, MAX_RESULTS = 32, SUMS = GATED ? 2 * RESULTS : RESULTS;
shared float sums[SPLIT * SUMS], squares[MAX_SUBGROUPS];

uint column_first, row_first, columns;
uint64_t bases[2][MAX_PLANES]; // the lane's chunk in the first rows
uint sizes[2][MAX_PLANES];
Place place;
Chunk ring[MAX_DEPTH];

// What follows the product of a column, as in product.glsl: what is the same for all columns, and the address.
struct Finish {
    uint64_t to;
    float eps;
    int act;
    bool normed, gated;
    Glu gate;
};

Finish find_finish(uint j)
{
    Finish f;
    f.to = row_of(args.dst[args.n[N_PRODUCT_RESULT]], row_first) + 4 * int64_t(j);
    f.normed = args.n[N_PRODUCT_NORM] >= 0;
    f.eps = param_f(max(args.n[N_PRODUCT_EPS], 0));
    f.act = args.n[N_PRODUCT_ACT];
    f.gated = args.n[N_PRODUCT_GLU] >= 0;
    f.gate = glu_params(max(args.n[N_PRODUCT_GLU], 0));
    return f;
}

// What comes from memory for column j, which is the workgroup's i-th, while weights are on their way.
shared float biases[MAX_RESULTS], residuals[MAX_RESULTS];
void bring_column(uint i, uint j)
{
    biases[i] = args.n[N_PRODUCT_BIAS] >= 0 ? load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j)) : 0.0;
    residuals[i] = residual_of(row_first, j);
    if (STAGES) staged_scales[i] = args.staged_norm != 0 ? load_f32(args.staged_norm + 4 * int64_t(j)) : 1.0;
}

ivec2 staged_at(uint i) { return ivec2(column_first + 32 <= columns ? int(row_first) : -1, int(column_first / 32)); }

// Row `slot` of those of the workgroup, to place d of the ring; which weight it belongs to is known from d.
void ask(uint d, uint slot)
{
    uint w = GATED ? d & 1u : 0, j = min(column_first + (GATED ? slot / 2 : slot), columns - 1);
    uint64_t at[MAX_PLANES];
    [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) at[i] = bases[w][i] + uint64_t(j) * uint64_t(sizes[w][i]);
    ring[d] = load_chunk(at);
}

// Sums of DEPTH numbers over the subgroup: lane i gets that of number i % DEPTH. Each exchange halves what a lane has.
float sum_all(float v[MAX_DEPTH])
{
    uint step = 1;
    [[unroll]] for (uint n = DEPTH; n > 1; n /= 2, step *= 2) {
        bool odd = (gl_SubgroupInvocationID & step) != 0;
        [[unroll]] for (uint i = 0; i < n / 2; i++) {
            float kept = odd ? v[2 * i + 1] : v[2 * i], given = odd ? v[2 * i] : v[2 * i + 1];
            v[i] = kept + subgroupShuffleXor(given, step);
        }
    }
    [[unroll]] for (; step < LANES; step *= 2) v[0] += subgroupShuffleXor(v[0], step);
    return v[0];
}

// The rows in the ring; asks for those that follow if there are more.
void take(uint slot, uint at, bool more, bool first)
{
    float v[MAX_DEPTH];
    [[unroll]] for (uint d = 0; d < DEPTH; d++) {
        v[d] = dot_chunk(ring[d], place);
        if (more) ask(d, slot + DEPTH + d);
    }
    float mine = sum_all(v);
    if (gl_SubgroupInvocationID >= DEPTH) return;
    at += slot + gl_SubgroupInvocationID;
    sums[at] = first ? mine : sums[at] + mine;
}

void main()
{
    float touched = touch_record(gl_SubgroupInvocationID);
    const uint thread = gl_LocalInvocationID.x;
    columns = uint(given_n[N_PRODUCT_COLUMNS]);
    uint k = uint(given_k), groups = (columns + RESULTS - 1) / RESULTS, g = group_index();
    uint n_chunks = k / 64, slice = gl_SubgroupID % SPLIT, team = gl_SubgroupID / SPLIT, each = SUMS / (gl_NumSubgroups / SPLIT);
    row_first = given_n[N_PRODUCT_ROWS] > 1 ? g / groups : 0;
    column_first = (g - row_first * groups) * RESULTS;
    if (row_first >= uint(given_n[N_PRODUCT_ROWS])) return; // whole workgroups
    uint64_t x = given_scratch;
    int64_t first_weight = 0;
    if (given_ids >= 0) {
        View ids = args.src[given_ids];
        uint used = uint(ids.ne[3]), token = row_first / used, u = row_first % used, beside = uint(args.src[0].ne[2]);
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        if (e < 0 || e >= args.n[N_PRODUCT_EXPERTS]) n_chunks = 0;
        else first_weight = int64_t(e) * columns;
        x += int64_t(token * beside + (beside > 1 ? u : 0)) * quantised_size(k);
    }
    float square = 0.0;
    uint first_slot = team * each, at = slice * SUMS;
    for (uint i = gl_SubgroupInvocationID; i < each && n_chunks == 0; i += gl_SubgroupSize) sums[at + first_slot + i] = 0.0;
    uint j = min(column_first + thread, columns - 1);
    if (n_chunks == 0 && thread < RESULTS) bring_column(thread, j);
    [[dont_unroll]] for (uint base = 0; base < n_chunks; base += SPLIT * LANES) {
        uint c = base + slice * LANES + gl_SubgroupInvocationID, chunk = min(c, n_chunks - 1), at_chunk[MAX_PLANES];
        find_chunk(chunk, at_chunk);
        [[unroll]] for (uint w = 0; w < (GATED ? 2 : 1); w++)
            [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) {
                sizes[w][i] = given_size[w][i];
                bases[w][i] = given_plane[w][i] + first_weight * int64_t(sizes[w][i]) + at_chunk[i];
            }
        [[unroll]] for (uint d = 0; d < DEPTH; d++) ask(d, first_slot + d);
        place = load_place(x, k, chunk, c < n_chunks);
        // What is wanted at the end is asked for while weights are on their way: the record comes later than these.
        if (base == 0) {
            if (thread < RESULTS) bring_column(thread, j);
            for (uint i = thread; i < k / 32 && args.n[N_PRODUCT_NORM] >= 0; i += gl_WorkGroupSize.x) square += load_f32(x + k + k / 4 + 4 * i);
        }
        uint i = 0;
        [[dont_unroll]] for (; i + DEPTH < each; i += DEPTH) take(first_slot + i, at, true, base == 0);
        take(first_slot + i, at, false, base == 0);
    }
    Finish f = find_finish(j);
    square = subgroupAdd(square);
    if (subgroupElect()) squares[gl_SubgroupID] = square;
    barrier();
    if (thread < RESULTS && column_first + thread < columns) {
        float value = 0.0, up = 0.0, all = 0.0;
        [[unroll]] for (uint s = 0; s < SPLIT; s++) {
            value += sums[s * SUMS + (GATED ? 2 * thread : thread)];
            if (GATED) up += sums[s * SUMS + 2 * thread + 1];
        }
        for (uint s = 0; s < gl_NumSubgroups; s++) all += squares[s];
        if (f.normed) {
            float factor = inversesqrt(all / float(k) + f.eps);
            value *= factor;
            up *= factor;
        }
        if (f.gated) value = glu_of(f.gate, value, up);
        value += biases[thread];
        if (f.act >= 0) value = unary(f.act, value, 0.0, 0.0);
        value += residuals[thread] + touched;
        store_f32(f.to, value);
        if (STAGES) staged_values[thread] = value;
    }
    if (!STAGES) return;
    barrier();
    stage(1, columns);
}
