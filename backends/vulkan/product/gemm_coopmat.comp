// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM with cooperative matrices (shaders/coopmat.glsl): y[r, j] = sum over k of x[r, k] w[j, k], operands
// in f16 or bf16, sums in f32.
//
// Operands: x as convert_16bit.comp wrote it to args.scratch; w [columns, n] of any type, in planes, or with
// many rows as expand_weights.comp wrote it to args.scratch; with experts w [experts, columns, n], and the
// rows as sort_by_expert.comp sorted them. What follows the sums is that of product.glsl, with strides of
// rows in args.n.
//
// Work: a workgroup computes a tile of TILE_M x TILE_N of the result, each of its subgroups a part of it
// with sums in registers. It goes along the common dimension in slices of DEPTH elements: while one slice
// is multiplied from shared memory, the next one is in flight to registers, and nothing uses it before the
// multiplication is done. Quantised weights become 16-bit numbers on the way from registers to shared
// memory, after the multiplication, when their loads have arrived. With a GLU half of each subgroup's
// columns belong to gate and half to up, so that both are in the same subgroup when they are joined.
//
// Operations: 2 TILE_M TILE_N n for 2 (TILE_M + TILE_N) n bytes of shared memory written. Limit: at m 4096, n
// 4096, k 14336, bf16, on an H200, tiles of 128 x 128 take 1831 us (262 TFLOP/s). The multiplications alone
// take 830 of them, loads from shared memory 75, two barriers a slice 250, stores 260, loads of operands 410.
// So a wider tile helps, which has less of all but the first: 128 x 192 takes 1562 us (308 TFLOP/s). Slices
// of 32, two buffers and two slices in flight are slower, by up to half (docs/log/vulkan.md, last section).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#ifdef ROWS_8_BF16
#define ROWS_8
#define BF16
#endif
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F16;
layout(constant_id = 1) const int TYPE_UP = TYPE_F16; // with a GLU that of up
layout(constant_id = 2) const uint TILE = 0x2222u;    // as gemm_coopmat.c packs it
// Rows of weights of number types are whole runs of 8 and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
// Bits: 1 a GLU, 2 experts, 4 slices of the common dimension are whole, 8 one dispatch for all results: their
// weights, which have one plane each, stand in the places of the planes of the first one.
layout(constant_id = 5) const int FORM = 0;
layout(local_size_x_id = 4) in;

// Subgroups along the rows and columns of a tile, matrices of a subgroup along both (TILE counts their rows
// by 16), matrices along a slice of the common dimension: convert_16bit.comp pads rows of x to whole slices.
const uint TEAMS_M = TILE & 15u, TEAMS_N = TILE >> 4 & 15u, M = (TILE >> 8 & 15u) * (16 / MATRIX_ROWS),
           N = TILE >> 12, K = 4;
const uint THREADS = LANES * TEAMS_M * TEAMS_N;
const uint TILE_M = MATRIX_ROWS * TEAMS_M * M, TILE_N = 16 * TEAMS_N * N, DEPTH = 16 * K;
// Sizes in shared memory, in vectors of 16 bytes. Rows have one more than they need, so that no two rows of a
// matrix share banks.
const uint ROW = 2 * K + 1, SLICE = (TILE_M + TILE_N) * ROW, SUMS_ROW = 4 * N + 1,
           SUMS = TEAMS_M * TEAMS_N * MATRIX_ROWS * SUMS_ROW;
const uint LOADS_X = TILE_M * 2 * K / THREADS, LOADS_W = TILE_N * 2 * K / THREADS;
const bool DIRECT = ALIGNED != 0 && TYPE == ELEMENT && TYPE_UP == ELEMENT;
// Weights that stay packed until the multiplication is done; others are expanded when they are loaded. A
// macro, because glslang 12 makes no constant of it.
#define CODES (TYPE == TYPE_UP && HAS_CODES(TYPE))
const bool GATED = (FORM & 1) != 0, EXPERTS = (FORM & 2) != 0, WHOLE = (FORM & 4) != 0,
           JOINED = (FORM & 8) != 0;
MATRIX_SPACE(SLICE > SUMS ? SLICE : SUMS)

// --- operands ------------------------------------------------------------------------------------------

// The tile has rows r0 .. end - 1 of the result, or with experts of the list of sort_by_expert.comp.
uint thread = gl_LocalInvocationID.x, end, columns, n, j0, r0;
int64_t first_weight = 0;
uint second_at, third_at; // first columns of the second and third result among those of all results
uint64_t list;
uvec4 next_x[LOADS_X], next_w[LOADS_W];
Run16 next_run[(LOADS_W + 1) / 2];

uint result_row(uint r)
{
    r = min(r, end - 1);
    return EXPERTS ? load_u32(list + 4 * uint64_t(r)) : r;
}
uint x_row(uint r)
{
    return EXPERTS && args.src[0].ne[2] == 1 ? result_row(r) / uint(args.src[args.n[N_PRODUCT_IDS]].ne[3])
                                             : result_row(r);
}

// The column of the result, and whether it is of gate (0) or up (1), for a column of the tile.
uint column_of(uint c)
{
    return GATED ? j0 + c / (16 * N) * (8 * N) + c % (8 * N) : j0 + c;
}
uint product_of(uint c)
{
    return GATED ? c / (8 * N) % 2 : 0;
}

// Where in the tile of weights the invocation's i-th load goes: column, vector of 8 elements.
uvec2 place_of(uint i)
{
    if (DIRECT) return uvec2((thread + i * THREADS) / (2 * K), (thread + i * THREADS) % (2 * K));
    uint run = thread + i / 2 * THREADS;
    return uvec2(run / K, 2 * (run % K) + i % 2);
}

// Which result column j of all results belongs to, and its number in that result.
uvec2 result_of(uint j)
{
    return j < second_at ? uvec2(0, j) : j < third_at ? uvec2(1, j - second_at) : uvec2(2, j - third_at);
}

// What does not change from slice to slice: weights, and addresses in slice 0.
Weight weights[2], runs[(LOADS_W + 1) / 2];
uint64_t from_x[LOADS_X], from_w[LOADS_W];

void find_addresses()
{
    uint64_t x = args.scratch + (uint64_t(n_rows(args.src[0])) * 4 + 255) / 256 * 256,
             stride = 2 * uint64_t((n + 63) / 64 * 64);
    weights[0] = args.weight[0];
    weights[1] = args.weight[1];
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS;
        from_x[i] = x + x_row(r0 + at / (2 * K)) * stride + 16 * (at % (2 * K));
    }
    UNROLL for (uint i = 0; DIRECT && i < LOADS_W; i++) {
        uvec2 place = place_of(i);
        uint j = min(column_of(place.x), columns - 1);
        int64_t row = first_weight + j;
        from_w[i] = product_of(place.x) == 0 ? weights[0].plane[0] + row * weights[0].row_size[0]
                                             : weights[1].plane[0] + row * weights[1].row_size[0];
        if (JOINED) {
            uvec2 at = result_of(j);
            if (at.x == 1) from_w[i] = weights[0].plane[1] + at.y * weights[0].row_size[1];
            if (at.x == 2) from_w[i] = weights[0].plane[2] + at.y * weights[0].row_size[2];
        }
        from_w[i] += 16 * place.y;
    }
    UNROLL for (uint i = 0; CODES && i < LOADS_W; i += 2) {
        uvec2 place = place_of(i);
        int64_t row = first_weight + min(column_of(place.x), columns - 1);
        for (int p = 0; p < MAX_PLANES; p++)
            runs[i / 2].plane[p] = product_of(place.x) == 0
                                       ? weights[0].plane[p] + row * weights[0].row_size[p]
                                       : weights[1].plane[p] + row * weights[1].row_size[p];
    }
}

void fetch_slice(uint k0)
{
    UNROLL for (uint i = 0; i < LOADS_X; i++) next_x[i] = load_u128(from_x[i] + 2 * k0);
    UNROLL for (uint i = 0; i < LOADS_W; i++) {
        uvec2 place = place_of(i);
        uint k = k0 + 8 * place.y;
        if (DIRECT) {
            next_w[i] = load_u128(
                from_w[i] +
                int64_t(WHOLE || k < n ? 2 * int(k0)
                                       : -16 * int(place.y))); // no branch, so that no load waits for another
        } else if (CODES) {
            if (i % 2 == 0) next_run[i / 2] = load_run(TYPE, runs[i / 2], 0, min(k, n - 16));
        } else if (i % 2 == 0) {
            float v[16];
            int64_t row = first_weight + min(column_of(place.x), columns - 1);
            if (!GATED || product_of(place.x) == 0) expand_run(TYPE, weights[0], row, k, n, ALIGNED != 0, v);
            else expand_run(TYPE_UP, weights[1], row, k, n, ALIGNED != 0, v);
            next_w[i] = pack8(v, 0);
            next_w[i + 1] = pack8(v, 8);
        }
    }
}

// The packed weights of the slice from k0 on, which have arrived by now, become 16-bit numbers.
void expand_slice(uint k0)
{
    UNROLL for (uint i = 0; CODES && i < LOADS_W; i += 2) {
        Codes16 c = codes_of(TYPE, next_run[i / 2], k0 + 8 * place_of(i).y);
        next_w[i] = pack_codes(c, 0);
        next_w[i + 1] = pack_codes(c, 8);
    }
}

// Writes the slice from k0 on to shared memory; what is behind the end of the common dimension becomes 0.
void store_slice(uint k0)
{
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS;
        space[at / (2 * K) * ROW + at % (2 * K)] = next_x[i];
    }
    UNROLL for (uint i = 0; i < LOADS_W; i++) {
        uvec2 place = place_of(i);
        uint kept = WHOLE || k0 + 8 * place.y < n ? 0xffffffffu : 0u;
        space[(TILE_M + place.x) * ROW + place.y] = next_w[i] & kept;
    }
}

// --- results -------------------------------------------------------------------------------------------

// x was multiplied by a power of two for each row.
float scale_of(uint r)
{
    return ELEMENT == TYPE_F16 ? load_f32(args.scratch + 4 * int64_t(x_row(r))) : 1.0;
}

float sum_at(uint at, uint c) { return uintBitsToFloat(space[at + c / 4][c % 4]); }

// GLU, bias and activation, one element after the other, in place: one copy of code that would be long if it
// were unrolled.
void activate(uint base, uint first_row, uint first_column)
{
    const uint WIDTH = GATED ? 8 * N : 16 * N;
    [[dont_unroll]] for (uint e = LANE; e < MATRIX_ROWS * WIDTH; e += LANES) {
        uint row = e / WIDTH, c = e % WIDTH, j = min(first_column + c, columns - 1);
        float scale = scale_of(first_row + row), v = sum_at(base + row * SUMS_ROW, c) * scale;
        if (GATED) v = glu(args.n[N_PRODUCT_GLU], v, sum_at(base + row * SUMS_ROW, c + 8 * N) * scale);
        if (args.n[N_PRODUCT_BIAS] >= 0)
            v += load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j));
        if (args.n[N_PRODUCT_ACT] >= 0) v = unary(args.n[N_PRODUCT_ACT], v, 0.0, 0.0);
        space[base + row * SUMS_ROW + c / 4][c % 4] = floatBitsToUint(v);
    }
}

// Stores the rows of a matrix, and the columns of a subgroup.
void finish_rows(uint base, uint first_row, uint first_column)
{
    const uint WIDTH = GATED ? 8 * N : 16 * N, EACH = MATRIX_ROWS * WIDTH / LANES;
    bool activated = GATED || args.n[N_PRODUCT_ACT] >= 0;
    if (activated) activate(base, first_row, first_column);
    matrix_sync();
    uint64_t to = args.dst[args.n[N_PRODUCT_RESULT]].data,
             residual = args.n[N_PRODUCT_RESIDUAL] >= 0 ? args.src[args.n[N_PRODUCT_RESIDUAL]].data : to;
    uint64_t to_stride = uint64_t(args.n[N_PRODUCT_RESULT_STRIDE]),
             residual_stride = uint64_t(args.n[N_PRODUCT_RESIDUAL_STRIDE]);
    uint64_t to_1 = to, to_2 = to, stride_1 = 0, stride_2 = 0;
    if (JOINED) {
        to_1 = args.dst[1].data, stride_1 = uint64_t(args.dst[1].nb[2]);
        to_2 = args.dst[2].data, stride_2 = uint64_t(args.dst[2].nb[2]);
    }
    int bias = activated ? -1 : args.n[N_PRODUCT_BIAS];
    float more[EACH];
    UNROLL for (uint i = 0; i < EACH; i++) { // all loads in flight at once
        uint e = i * LANES + LANE, j = min(first_column + e % WIDTH, columns - 1);
        more[i] = 0.0;
        if (args.n[N_PRODUCT_RESIDUAL] >= 0)
            more[i] =
                load_f32(residual + result_row(first_row + e / WIDTH) * residual_stride + 4 * int64_t(j));
    }
    UNROLL for (uint i = 0; i < EACH; i++) {
        uint e = i * LANES + LANE, j = first_column + e % WIDTH, r = first_row + e / WIDTH;
        float v = sum_at(base + e / WIDTH * SUMS_ROW, e % WIDTH);
        if (!activated) v *= scale_of(r);
        if (JOINED) {
            uvec2 at = result_of(min(j, columns - 1));
            if (bias >= 0) v += load_f32(args.src[bias + int(at.x)].data + 4 * int64_t(at.y));
            uint64_t y = to + r * to_stride;
            if (at.x > 0) y = at.x == 1 ? to_1 + r * stride_1 : to_2 + r * stride_2;
            if (r < end && j < columns) store_f32(y + 4 * int64_t(at.y), v);
            continue;
        }
        if (bias >= 0) v += load_f32(args.src[bias].data + 4 * int64_t(min(j, columns - 1)));
        if (r < end && j < columns) store_f32(to + result_row(r) * to_stride + 4 * int64_t(j), v + more[i]);
    }
}

void main()
{
    end = uint(args.n[N_PRODUCT_ROWS]), columns = uint(args.n[N_PRODUCT_COLUMNS]),
    n = uint(args.src[0].ne[3]);
    if (JOINED) second_at = uint(args.dst[0].ne[3]), third_at = second_at + uint(args.dst[1].ne[3]);
    uint down = EXPERTS ? uint(args.n[N_PRODUCT_BLOCKS]) : (end + TILE_M - 1) / TILE_M, g = group_index();
    r0 = g % down * TILE_M, j0 = g / down * (GATED ? TILE_N / 2 : TILE_N); // neighbours share weights
    if (j0 >= columns) return;
    if (EXPERTS) {
        uint x_rows = n_rows(args.src[0]);
        uint64_t blocks = args.scratch + (uint64_t(x_rows) * 4 + 255) / 256 * 256 +
                          uint64_t(x_rows) * ((n + 63) / 64 * 64) * 2;
        if (g % down >= load_u32(blocks)) return;
        uvec4 block = load_u128(blocks + 16 + 16 * uint64_t(g % down));
        list = blocks + 16 + 16 * uint64_t(down);
        first_weight = int64_t(block.x) * columns;
        r0 = block.y, end = block.y + block.z;
    }
    uint team = thread / LANES, team_m = team % TEAMS_M, team_n = team / TEAMS_M,
         slices = (n + DEPTH - 1) / DEPTH;
    MatrixC acc[M][N];
    UNROLL for (uint i = 0; i < M; i++)
        UNROLL for (uint j = 0; j < N; j++) matrix_zero(acc[i][j]);
    find_addresses();
    fetch_slice(0);
    expand_slice(0);
    store_slice(0);
    barrier();
    [[dont_unroll]] for (uint s = 0; s < slices; s++) { // slice s is in shared memory
        uint next = min(s + 1, slices - 1) * DEPTH; // the last one twice, so that no branch divides the loop
        fetch_slice(next);
        UNROLL for (uint k = 0; k < K; k++) {
            MatrixA a[M];
            UNROLL for (uint i = 0; i < M; i++)
                matrix_a(a[i], (MATRIX_ROWS * (team_m * M + i)) * ROW + 2 * k, ROW);
            UNROLL for (uint j = 0; j < N; j++) {
                MatrixB b;
                matrix_b_columns(b, (TILE_M + 16 * (team_n * N + j)) * ROW + 2 * k, ROW);
                UNROLL for (uint i = 0; i < M; i++) matrix_multiply(a[i], b, acc[i][j]);
            }
        }
        expand_slice(next); // while other subgroups still multiply
        barrier();
        store_slice(next);
        barrier();
    }
    uint base = team * MATRIX_ROWS * SUMS_ROW;
    [[dont_unroll]] for (uint strip = 0; strip < M; strip++) { // one copy of the code that follows the sums
        UNROLL for (uint i = 0; i < M; i++)
            if (i == strip)
                UNROLL for (uint j = 0; j < N; j++) matrix_c(base + 4 * j, SUMS_ROW, acc[i][j]);
        matrix_sync(); // each subgroup has a part of `space` of its own here
        finish_rows(base, r0 + MATRIX_ROWS * (team_m * M + strip), column_of(16 * N * team_n));
        matrix_sync();
    }
}
