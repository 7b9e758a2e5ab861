// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of up to 64 rows with cooperative matrices (shaders/coopmat.glsl): y[r, j] = sum over k of x[r, k]
// w[j, k], operands in f16 or bf16, sums in f32, weights read once for each tile of rows.
//
// Operands: x as convert_16bit.comp wrote it to args.scratch, with a norm's weights and factors in it; w
// [columns, n] of any type, in planes. What follows the sums: finish.glsl.
//
// Work: the columns are divided into tiles and the common dimension into args.n[N_PRODUCT_SPLITS] parts; a
// workgroup multiplies one part of one tile. Each of its subgroups has 16 N columns, and expands slices of
// 128 of their elements into shared memory of its own, while the packed weights of the next slice are in
// flight to registers. So subgroups wait for each other only where the next elements of x, which all of them
// read, replace the last ones. Sums of all parts go to scratch; the workgroup of a tile that is ready last
// adds them, in the order of the parts.
//
// Bytes: the weights once, x once for each tile of columns, 8 for each sum of a part. Limit: the
// instructions that expand weights, and shared memory.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F16;
layout(constant_id = 1) const int TYPE_UP = TYPE_F16; // with a GLU that of up
layout(constant_id = 2) const uint TILE = 0x10811u;   // as gemm_skinny.c packs it
// Rows of weights of number types are whole runs of 8 and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
layout(constant_id = 5) const int FORM = 0; // finish.glsl; with a GLU half of the tile's columns are of gate
layout(local_size_x_id = 4) in;
#include "backends/vulkan/product/finish.glsl"

// Blocks of 16 rows; matrices of 16 columns of a subgroup; subgroups; slices of x in shared memory.
const uint M = TILE & 15u, N = TILE >> 4 & 15u, TEAMS = TILE >> 8 & 255u, SLICES = TILE >> 16;
const uint THREADS = LANES * TEAMS, TILE_M = 16 * M, TILE_N = 16 * N * TEAMS, DEPTH = 128;
// Sizes in shared memory, in vectors of 16 bytes. Rows have one more than they need, so that no two rows of a
// matrix share banks.
const uint ROW = DEPTH / 16 + 1, OWN = 16 * N * ROW, ROW_X = SLICES * DEPTH / 8 + 1, X = TEAMS * OWN,
           SUMS_ROW = 4 * N + 1;
// Pairs of runs of 16 weights that a lane expands of a slice, and vectors of 8 numbers that they become.
const uint PAIRS = 2 * N, VECTORS = 8 * N, LOADS_X = TILE_M * SLICES * (DEPTH / 8) / THREADS;
const bool DIRECT = ALIGNED != 0 && TYPE == ELEMENT && TYPE_UP == ELEMENT;
const uint N_VECTORS = DIRECT ? VECTORS : 0, N_PAIRS = DIRECT ? 0 : PAIRS; // those that are loaded
#define CODES  (TYPE == TYPE_UP && HAS_CODES(TYPE))
MATRIX_SPACE(X + TILE_M * ROW_X)

// --- sums ----------------------------------------------------------------------------------------------
// Sums of all parts go to scratch; the workgroup of a tile that is ready last adds them, in the order of the
// parts.

#include "backends/vulkan/shaders/last_workgroup.glsl"

uint thread = gl_LocalInvocationID.x, team = thread / LANES, n, columns, rows, r0, j0;

// Writes 16 rows of the subgroup's sums to those of its part in scratch.
void store_strip(uint strip, uint at, uint64_t to)
{
    UNROLL for (uint e = LANE; e < 64 * N; e += LANES) {
        uint row = e / (4 * N), four = e % (4 * N);
        ExchangedFour(to + 4 * ((16 * strip + row) * TILE_N + 16 * N * team + 4 * four)).v =
            uintBitsToFloat(space[at + row * SUMS_ROW + four]);
    }
}

// Adds the sums of all parts of the tile, and finishes its results.
void finish_tile(uint64_t from, uint parts, float touched)
{
    const uint WIDE = GATED ? TILE_N / 2 : TILE_N;
    [[dont_unroll]] for (uint e = thread; e < TILE_M * WIDE / 4; e += THREADS) {
        uint row = e / (WIDE / 4), c = 4 * (e % (WIDE / 4)), r = r0 + row;
        if (r >= rows) break;
        vec4 v = vec4(0.0), up = vec4(0.0);
        uint64_t at = from + 4 * (row * TILE_N + c);
        [[dont_unroll]] for (uint s = 0; s < parts; s++, at += 4 * TILE_M * TILE_N) {
            v += ExchangedFour(at).v;
            if (GATED) up += ExchangedFour(at + 4 * WIDE).v;
        }
        uint j = j0 + c;
        Finish f = find_finish(r, j);
        float scale = load_f32(args.scratch + 4 * uint64_t(r)), residual[4], bias[4];
        [[unroll]] for (uint i = 0; i < 4; i++) { // all loads in flight at once
            residual[i] = early_residual_of(r, min(j + i, columns - 1)) + touched;
            bias[i] = bias_of(min(j + i, columns - 1));
        }
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (j + i < columns)
                store_f32(f.to + 4 * i,
                          finish_one(f, v[i] * scale, up[i] * scale, 0.0, 1.0, bias[i], residual[i]));
    }
}

// Where the sums of all parts of a tile lie.
uint64_t sums_of_tile(uint tile, uint parts)
{
    return args.scratch + 256 * uint64_t(args.n[N_PRODUCT_SUMS]) +
           uint64_t(tile) * parts * (4 * TILE_M * TILE_N);
}

// A part of the tile is in scratch: the last of them finishes it.
void finish_part(uint64_t sums, uint tile, uint parts, float touched)
{
    uint64_t counter = args.counters + 4 * uint64_t(uint(args.n[N_PRODUCT_COUNTERS]) + tile);
    if (parts == 1) {
        memoryBarrierBuffer();
        barrier();
    } else if (!is_last_workgroup(counter, parts, thread == 0)) return;
    finish_tile(sums, parts, touched);
}

uint own = team * OWN;
Weight pairs[PAIRS];
uint64_t from_w[VECTORS];
// A slice, and the one after it.
Run16 first[PAIRS], second[PAIRS], next_first[PAIRS], next_second[PAIRS];
uvec4 numbers[VECTORS], next_numbers[VECTORS];

// How far apart the two runs of a pair are.
uint apart()
{
    uint far = TYPE <= TYPE_Q8_0 ? 16 : TYPE == TYPE_Q6_K ? 64 : 32;
    if (CODES) return far;
    return 16;
}
// Whether the same 16 bytes have the codes of both.
const bool HALVES = TYPE != TYPE_Q8_0 && TYPE != TYPE_Q2_K && TYPE != TYPE_Q3_K;

// --- weights -------------------------------------------------------------------------------------------

// The weight that column c of the subgroup belongs to, and its row there.
uint product_of_team() { return GATED ? team / (TEAMS / 2) : 0; }
int64_t row_of_weight(uint c)
{
    uint at = 16 * N * team + c;
    return int64_t(min(j0 + (GATED ? at % (TILE_N / 2) : at), columns - 1));
}

// A slice is multiplied in two halves, each of four runs of 16 elements: where in the slice run p of a half
// begins.
uint run_element(uint part, uint p)
{
    uint e = 16 * p, far = apart();
    if (DIRECT) return 64 * part + e;
    return e / far * (2 * far) + e % far + part * far;
}
// Pair i of a lane, with runs LANE % 4 of both halves: its column. Vector i, if weights are numbers already:
// its column, and its place in the row.
uint pair_column(uint i) { return (LANE + i * LANES) / 4; }
uvec2 vector_place(uint i)
{
    return uvec2((LANE + i % (VECTORS / 2) * LANES) / 8, LANE % 8 + i / (VECTORS / 2) * 8);
}

void find_weights()
{
    Weight w = args.weight[0];
    if (GATED && product_of_team() != 0) w = args.weight[1];
    UNROLL for (uint i = 0; i < N_VECTORS; i++) {
        uvec2 place = vector_place(i);
        from_w[i] = w.plane[0] + row_of_weight(place.x) * w.row_size[0] + 16 * place.y;
    }
    UNROLL for (uint i = 0; i < N_PAIRS; i++) {
        int64_t row = row_of_weight(pair_column(i));
        [[unroll]] for (int p = 0; p < MAX_PLANES; p++) pairs[i].plane[p] = w.plane[p] + row * w.row_size[p];
    }
}

// Starts the loads of the slice from k0 on. Types without codes are expanded at once.
void fetch_slice(uint k0)
{
    UNROLL for (uint i = 0; i < N_VECTORS; i++) {
        uint v = vector_place(i).y;
        next_numbers[i] = load_u128(from_w[i] + int64_t(k0 + 8 * v < n ? 2 * int(k0) : -16 * int(v)));
    }
    UNROLL for (uint i = 0; i < N_PAIRS; i++) {
        uint k = k0 + run_element(0, LANE % 4);
        if (CODES) {
            if (apart() == 16) k = min(k, n - 32);
            next_first[i] = load_run(TYPE, pairs[i], 0, k);
            if (HALVES) next_second[i] = next_first[i];
            else next_second[i] = load_run(TYPE, pairs[i], 0, k + apart());
            if (TYPE == TYPE_Q6_K)
                next_second[i].s.x = load_u8(block_in_plane(pairs[i], 2, 0, k / 256, 16) + k / 16 % 16 + 4);
        } else {
            UNROLL for (uint run = 0; run < 2; run++) {
                float v[16];
                if (product_of_team() == 0) expand_run(TYPE, pairs[i], 0, k + 16 * run, n, ALIGNED != 0, v);
                else expand_run(TYPE_UP, pairs[i], 0, k + 16 * run, n, ALIGNED != 0, v);
                next_numbers[run * (VECTORS / 2) + 2 * i] = pack8(v, 0);
                next_numbers[run * (VECTORS / 2) + 2 * i + 1] = pack8(v, 8);
            }
        }
    }
}

// The slice that was in flight is the present one.
void take_slice()
{
    UNROLL for (uint i = 0; i < N_PAIRS; i++) {
        first[i] = next_first[i];
        second[i] = next_second[i];
    }
    UNROLL for (uint i = 0; i < VECTORS; i++) numbers[i] = next_numbers[i];
}

// Writes half of the slice from k0 on to the subgroup's shared memory; what is behind the end of the common
// dimension becomes 0.
void store_half(uint part, uint k0)
{
    UNROLL for (uint i = 0; i < N_VECTORS / 2; i++) {
        uvec2 place = vector_place(i + part * (N_VECTORS / 2));
        space[own + place.x * ROW + place.y % 8] =
            numbers[i + part * (N_VECTORS / 2)] & (k0 + 8 * place.y < n ? 0xffffffffu : 0u);
    }
    UNROLL for (uint i = 0; i < N_PAIRS; i++) {
        uint k = k0 + run_element(part, LANE % 4), at = own + pair_column(i) * ROW + 2 * (LANE % 4),
             kept = k < n ? 0xffffffffu : 0u;
        if (CODES) {
            Run16 run = first[i];
            if (part != 0) run = second[i];
            Codes16 c = codes_of(TYPE, run, k);
            space[at] = pack_codes(c, 0) & kept;
            space[at + 1] = pack_codes(c, 8) & kept;
        } else {
            space[at] = numbers[part * (VECTORS / 2) + 2 * i];
            space[at + 1] = numbers[part * (VECTORS / 2) + 2 * i + 1];
        }
    }
}

// --- activations ---------------------------------------------------------------------------------------

// Puts the elements of x from k0 on into shared memory, as many as fit.
void load_x(uint k0)
{
    const uint WIDE = SLICES * (DEPTH / 8);
    uint padded = (n + 63) / 64 * 64;
    uint64_t from = args.scratch + (uint64_t(rows) * 4 + 255) / 256 * 256;
    uvec4 v[LOADS_X];
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS, r = min(r0 + at / WIDE, rows - 1), k = k0 + 8 * (at % WIDE);
        v[i] = load_u128(from + 2 * (uint64_t(r) * padded + min(k, padded - 8)));
        if (k >= padded) v[i] = uvec4(0);
    }
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS;
        space[X + at / WIDE * ROW_X + at % WIDE] = v[i];
    }
}

void main()
{
    float touched = thread < LANES ? touch_record(LANE) : 0.0;
    rows = uint(args.n[N_PRODUCT_ROWS]), columns = uint(args.n[N_PRODUCT_COLUMNS]),
    n = uint(args.src[0].ne[3]);
    uint parts = uint(args.n[N_PRODUCT_SPLITS]), down = (rows + TILE_M - 1) / TILE_M, g = group_index(),
         tile = g / (down * parts) * down + g % down, part = g / down % parts; // neighbours share weights
    r0 = g % down * TILE_M, j0 = g / (down * parts) * (GATED ? TILE_N / 2 : TILE_N);
    if (j0 >= columns) return;
    uint slices = (n + DEPTH - 1) / DEPTH, each = (slices + parts - 1) / parts, from = part * each,
         to = min(from + each, slices);
    MatrixC acc[M][N];
    UNROLL for (uint i = 0; i < M; i++)
        UNROLL for (uint j = 0; j < N; j++) matrix_zero(acc[i][j]);
    find_weights();
    if (from < to) fetch_slice(from * DEPTH);
    [[dont_unroll]] for (uint s = from; s < to; s++) {
        uint in_x = (s - from) % SLICES * (DEPTH / 8);
        take_slice();
        if (s + 1 < to) fetch_slice((s + 1) * DEPTH);
        if (in_x == 0) {
            barrier(); // all have multiplied what was there
            load_x(s * DEPTH);
            barrier();
        }
        UNROLL for (uint part = 0; part < 2; part++) {
            store_half(part, s * DEPTH);
            matrix_sync();
            UNROLL for (uint p = 0; p < 4; p++) {
                MatrixA a[M];
                uint at = X + in_x + run_element(part, p) / 8;
                UNROLL for (uint i = 0; i < M; i++) matrix_a(a[i], at + 16 * i * ROW_X, ROW_X);
                UNROLL for (uint j = 0; j < N; j++) {
                    MatrixB b;
                    matrix_b_columns(b, own + 16 * j * ROW + 2 * p, ROW);
                    UNROLL for (uint i = 0; i < M; i++) matrix_multiply(a[i], b, acc[i][j]);
                }
            }
            matrix_sync();
        }
    }
    uint64_t sums = sums_of_tile(tile, parts);
    UNROLL for (uint i = 0; i < M; i++) {
        UNROLL for (uint j = 0; j < N; j++) matrix_c(own + 4 * j, SUMS_ROW, acc[i][j]);
        matrix_sync();
        store_strip(i, own, sums + part * (4 * TILE_M * TILE_N));
        matrix_sync();
    }
    finish_part(sums, tile, parts, touched);
}
