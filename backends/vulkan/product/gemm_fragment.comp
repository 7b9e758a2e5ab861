// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of up to 64 rows with cooperative matrices (shaders/coopmat.glsl) whose elements lie with the
// invocations as on NVIDIA's devices: y[r, j] = sum over k of x[r, k] w[j, k], operands in f16 or bf16,
// sums in f32, weights read once for each tile of rows.
//
// Operands: x as convert_16bit.comp wrote it to args.scratch, with a norm's weights and factors in it, in
// the order of product/convert_16bit.comp; w [columns, n] of any type, in planes. What follows the sums:
// finish.glsl.
//
// Work: the columns are divided into tiles and the common dimension into PARTS; a workgroup multiplies one
// part of one tile. Each of its subgroups has 16 N columns. An invocation loads
// packed weights of two columns, expands them and puts them into the matrix itself, as its elements of it,
// because the order of x makes up for which elements of the common dimension those are. So weights pass no
// shared memory. The next slice of weights is in flight to registers meanwhile, as are the next elements of
// x, which all subgroups read from shared memory: two buffers, so that a barrier stands once a buffer.
//
// Bytes: the weights once, x once for each tile of columns, 8 for each sum of a part. Limit: the
// instructions that expand weights, then memory.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#ifndef BF16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#define FRAGMENTS
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F16;
layout(constant_id = 1) const int TYPE_UP = TYPE_F16; // with a GLU that of up
layout(constant_id = 2) const uint TILE = 0x10811u;   // as gemm_skinny.c packs it
// 1: rows of weights of number types are whole runs of 8 and start at multiples of 16 bytes; 2: ROWS_ALIGNED
// (fragment_sums.glsl).
layout(constant_id = 3) const int LAYOUT = 0;
// finish.glsl, and 128: weights have the type of the matrices.
layout(constant_id = 5) const int FORM = 0;
layout(local_size_x_id = 4) in;
#include "backends/vulkan/product/finish.glsl"

// Blocks of 16 rows; matrices of 16 columns of a subgroup; subgroups; slices of 128 elements in a buffer of
// x; parts of the common dimension.
const uint M = TILE & 15u, N = TILE >> 4 & 15u, TEAMS = TILE >> 8 & 255u, SLICES_X = TILE >> 16 & 15u,
           PARTS = TILE >> 20;
const bool ALIGNED = (LAYOUT & 1) != 0, ROWS_ALIGNED = (LAYOUT & 2) != 0;
const uint THREADS = LANES * TEAMS, TILE_M = 16 * M, TILE_N = 16 * N * TEAMS, SLICE = 128;
const bool DIRECT = (FORM & 128) != 0;
#define CODES (TYPE == TYPE_UP && HAS_CODES(TYPE))
// Sizes in shared memory, in vectors of 16 bytes. Rows have one more than they need, so that no two rows of
// a matrix share banks.
const uint ROW_X = SLICES_X * SLICE / 8 + 1, BUFFER_X = TILE_M * ROW_X, ROW_SUMS = TILE_N / 4 + 1,
           SPACE = 2 * BUFFER_X > TILE_M * ROW_SUMS ? 2 * BUFFER_X : TILE_M * ROW_SUMS;
const uint LOADS_X = TILE_M * SLICES_X * (SLICE / 8) / THREADS;
// Columns of an invocation.
const uint PAIRS = 2 * N, DIRECT_PAIRS = DIRECT ? PAIRS : 0, RUN_PAIRS = DIRECT ? 0 : PAIRS;
// Columns of results: with a GLU half of the tile's columns are of gate, half of up.
const uint WIDE = GATED ? TILE_N / 2 : TILE_N;
MATRIX_SPACE(SPACE + TEAMS * FRAGMENT_SPACE)
#include "backends/vulkan/product/fragment_sums.glsl"

Weight pairs[PAIRS];
// Of a slice, and of the one after it.
Run16 first[PAIRS], second[PAIRS], next_first[PAIRS], next_second[PAIRS];
uvec4 numbers[4 * PAIRS], next_numbers[4 * PAIRS], next_x[LOADS_X];
// Where the rows of x begin that the invocation loads. Found once: in the loop over slices loads of x would
// wait for the record each time.
uint64_t from_x[LOADS_X];
uint n, padded; // elements of a row, and of one of x as it was converted

// --- weights -------------------------------------------------------------------------------------------

// How far apart the two runs of 16 are that an invocation has of a column and a slice.
uint apart()
{
    uint far = TYPE <= TYPE_Q8_0 ? 16 : TYPE == TYPE_Q6_K ? 64 : 32;
    if (CODES) return far;
    return 16;
}
// Whether the same 16 bytes have the codes of both.
const bool HALVES = TYPE != TYPE_Q8_0 && TYPE != TYPE_Q2_K && TYPE != TYPE_Q3_K;

// Where in the slice run 0 or 1 of the invocation begins.
uint run_element(uint part)
{
    uint e = 16 * (LANE % 4), far = apart();
    return e / far * (2 * far) + e % far + part * far;
}

uint product_of_team() { return GATED ? team / (TEAMS / 2) : 0; }

void find_weights()
{
    Weight w = args.weight[0];
    if (GATED && product_of_team() != 0) w = args.weight[1];
    UNROLL for (uint i = 0; i < PAIRS; i++) {
        uint at = 16 * N * team + LANE / 4 + 8 * i;
        int64_t row = int64_t(min(j0 + (GATED ? at % WIDE : at), columns - 1));
        [[unroll]] for (int p = 0; p < MAX_PLANES; p++) pairs[i].plane[p] = w.plane[p] + row * w.row_size[p];
    }
}

// Starts the loads of the weights of slice s. Types without codes are expanded at once.
void fetch_slice(uint s)
{
    uint k0 = SLICE * s;
    UNROLL for (uint i = 0; i < DIRECT_PAIRS; i++)
        UNROLL for (uint v = 0; v < 4; v++) {
            uint k = k0 + 32 * v + 8 * (LANE % 4);
            next_numbers[4 * i + v] = load_u128(pairs[i].plane[0] + (k < n ? 2 * k : 0));
        }
    UNROLL for (uint i = 0; i < RUN_PAIRS; i++) {
        uint k = k0 + run_element(0);
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
                if (product_of_team() == 0) expand_run(TYPE, pairs[i], 0, k + 16 * run, n, ALIGNED, v);
                else expand_run(TYPE_UP, pairs[i], 0, k + 16 * run, n, ALIGNED, v);
                next_numbers[4 * i + 2 * run] = pack8(v, 0);
                next_numbers[4 * i + 2 * run + 1] = pack8(v, 8);
            }
        }
    }
}

// The slice that was in flight is the present one.
void take_slice()
{
    UNROLL for (uint i = 0; i < RUN_PAIRS; i++) {
        first[i] = next_first[i];
        second[i] = next_second[i];
    }
    UNROLL for (uint i = 0; i < 4 * PAIRS; i++) numbers[i] = next_numbers[i];
}

// --- multiplication ------------------------------------------------------------------------------------

const uint WIDE_X = SLICES_X * (SLICE / 8);
void find_x()
{
    padded = (n + 255) / 256 * 256;
    uint64_t from = args.scratch + 256 * uint64_t(args.n[N_PRODUCT_COPY]) +
                    (uint64_t(rows) * 4 + 255) / 256 * 256;
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS, r = min(r0 + at / WIDE_X, rows - 1);
        from_x[i] = from + 2 * uint64_t(r) * padded;
    }
}

// Starts the loads of the elements of x from slice s on, as many as fit in a buffer.
void fetch_x(uint s)
{
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint k = SLICE * s + 8 * ((thread + i * THREADS) % WIDE_X);
        next_x[i] = load_u128(from_x[i] + 2 * min(k, padded - 8));
    }
}
void store_x(uint buffer_at)
{
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint at = thread + i * THREADS;
        space[buffer_at + at / WIDE_X * ROW_X + at % WIDE_X] = next_x[i];
    }
}

void main()
{
    float touched = thread < LANES ? touch_record(LANE) : 0.0;
    rows = uint(args.n[N_PRODUCT_ROWS]), columns = uint(args.n[N_PRODUCT_COLUMNS]),
    n = uint(args.src[0].ne[3]);
    uint down = (rows + TILE_M - 1) / TILE_M, g = group_index(), part = g / down % PARTS,
         tile = g / (down * PARTS) * down + g % down; // neighbours share weights
    r0 = g % down * TILE_M, j0 = g / (down * PARTS) * WIDE;
    if (j0 >= columns) return;
    uint slices = (n + SLICE - 1) / SLICE, each = (slices + PARTS - 1) / PARTS, from = part * each,
         to = min(from + each, slices), now = 0;
    MatrixC acc[M][N];
    UNROLL for (uint i = 0; i < M; i++)
        UNROLL for (uint j = 0; j < N; j++) matrix_zero(acc[i][j]);
    find_weights();
    if (from < to) {
        fetch_slice(from);
        find_x();
        fetch_x(from);
        store_x(0);
    }
    barrier();
    [[dont_unroll]] for (uint s = from; s < to; s++) {
        take_slice();
        if (s + 1 < to) fetch_slice(s + 1);
        uint in_x = (s - from) % SLICES_X, at = now + in_x * (SLICE / 8);
        bool more = s + SLICES_X - in_x < to; // there is another buffer of x
        if (in_x == 0 && more) fetch_x(s + SLICES_X);
        UNROLL for (uint half_slice = 0; half_slice < 2; half_slice++) {
            uvec4 v[2 * PAIRS];
            UNROLL for (uint i = 0; i < DIRECT_PAIRS; i++)
                UNROLL for (uint e = 0; e < 2; e++) {
                    uint vector = 2 * half_slice + e, k = s * SLICE + 32 * vector + 8 * (LANE % 4);
                    v[2 * i + e] = numbers[4 * i + vector] & (k < n ? 0xffffffffu : 0u);
                }
            UNROLL for (uint i = 0; i < RUN_PAIRS; i++) {
                uint k = s * SLICE + run_element(half_slice), kept = k < n ? 0xffffffffu : 0u;
                if (CODES) {
                    Run16 run = first[i];
                    if (half_slice != 0) run = second[i];
                    Codes16 c = codes_of(TYPE, run, k);
                    v[2 * i] = pack_codes(c, 0) & kept;
                    v[2 * i + 1] = pack_codes(c, 8) & kept;
                } else {
                    v[2 * i] = numbers[4 * i + 2 * half_slice];
                    v[2 * i + 1] = numbers[4 * i + 2 * half_slice + 1];
                }
            }
            UNROLL for (uint step = 0; step < 4; step++) {
                MatrixA a[M];
                UNROLL for (uint i = 0; i < M; i++)
                    matrix_a(a[i], at + 16 * i * ROW_X + 2 * (4 * half_slice + step), ROW_X);
                UNROLL for (uint j = 0; j < N; j++) {
                    MatrixB b;
                    uint w[4];
                    UNROLL for (uint i = 0; i < 4; i++)
                        w[i] = v[2 * (2 * j + i / 2) + step / 2][2 * (step % 2) + i % 2];
                    matrix_b_fragment(b, SPACE + FRAGMENT_SPACE * team, w);
                    UNROLL for (uint i = 0; i < M; i++) matrix_multiply(a[i], b, acc[i][j]);
                }
            }
        }
        if (in_x == SLICES_X - 1 && more) {
            now = BUFFER_X - now;
            store_x(now);
            barrier();
        }
    }
    UNROLL for (uint i = 0; i < M; i++)
        UNROLL for (uint j = 0; j < N; j++) matrix_elements(total[i * N + j], acc[i][j]);
    load_early();
    bool last = add_parts(tile, part);
    barrier(); // sums take the place of x
    if (last) finish_tile(touched);
}
