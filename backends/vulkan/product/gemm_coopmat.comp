// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of many rows with matrices (matrix.glsl): each workgroup has a tile of the result, each subgroup a part of it as
// sums in registers. While one piece of the common dimension is multiplied from shared memory, the next one is on its way
// to registers; nothing touches it before it is put into shared memory. x was rounded before (round16.comp); codes become 16-bit numbers on the way from registers to shared memory. Of
// a gated pair, half of each subgroup's columns belong to either product, so that both are there when they are joined.
// Limit: the matrix units, or shared memory. At args.n see product.glsl; 13 row stride of the residual, 14 of the
// result, 15 most blocks of rows with one expert (moe_rows.comp).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F16;
layout(constant_id = 1) const int TYPE_UP = TYPE_F16;   // of the second product of a gated pair
layout(constant_id = 2) const uint TILE = 0x212222u;    // products_matrix.c
layout(constant_id = 3) const int ALIGNED = 0;          // rows of plain weights are whole runs of 8 and start aligned to 16 bytes
layout(constant_id = 5) const int FORM = 0;             // 1 a gated pair, 2 an expert for each row
layout(local_size_x_id = 4) in;

// Subgroups over the rows and columns of a tile, matrices of a subgroup, matrices in a piece of the common dimension.
const uint TEAMS_M = TILE & 15u, TEAMS_N = TILE >> 4 & 15u, M = TILE >> 8 & 15u, N = TILE >> 12 & 15u, K = TILE >> 16 & 15u;
const uint BUFFERS = TILE >> 20, THREADS = 32 * TEAMS_M * TEAMS_N;
const uint TILE_M = 16 * TEAMS_M * M, TILE_N = 16 * TEAMS_N * N, DEPTH = 16 * K;
// In units of 16 bytes: rows of shared memory have one more, so that no two rows of a matrix share banks.
const uint ROW = 2 * K + 1, BUFFER = (TILE_M + TILE_N) * ROW, STAGE_ROW = 4 * N + 1, STAGE = TEAMS_M * TEAMS_N * 16 * STAGE_ROW;
const uint TAKE_X = TILE_M * 2 * K / THREADS, TAKE_W = TILE_N * 2 * K / THREADS;
const bool DIRECT = ALIGNED != 0 && TYPE == ELEMENT && TYPE_UP == ELEMENT;
#define CODES (TYPE == TYPE_UP && HAS_CODES(TYPE)) // others are expanded when they are loaded; no constant, as glslang 12 makes none of it
const bool GATED = (FORM & 1) != 0, EXPERTS = (FORM & 2) != 0;
MATRIX_SPACE(BUFFERS * BUFFER > STAGE ? BUFFERS * BUFFER : STAGE)

// --- operands ------------------------------------------------------------------------------------------

// Rows are r0 .. end - 1 of the result, or with experts of the list of moe_rows.comp.
uint thread = gl_LocalInvocationID.x, end, columns, n, j0, r0;
int64_t first_weight = 0;
uint64_t list;
uvec4 next_x[TAKE_X], next_w[TAKE_W];
Run16 next_run[(TAKE_W + 1) / 2];

uint result_row(uint r)
{
    r = min(r, end - 1);
    return EXPERTS ? load_u32(list + 4 * uint64_t(r)) : r;
}
uint x_row(uint r)
{
    return EXPERTS && args.src[0].ne[2] == 1 ? result_row(r) / uint(args.src[args.n[N_PRODUCT_IDS]].ne[3]) : result_row(r);
}

// Column of the result, and which product, for a column of the tile.
uint column_of(uint c)
{
    return GATED ? j0 + c / (16 * N) * (8 * N) + c % (8 * N) : j0 + c;
}
uint product_of(uint c)
{
    return GATED ? c / (8 * N) % 2 : 0;
}

void expand(int type, Weight w, int64_t row, uint k, out float v[16])
{
    if (k >= n) {
        for (uint i = 0; i < 16; i++) v[i] = 0.0;
    } else if (is_plain(type)) {
        uint64_t at = w.plane[0] + row * w.row_size[0];
        if (ALIGNED != 0 && k + 16 <= n) plain16(type, at, k, v);
        else for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
    } else dequant16(type, w, row, k, v);
}

// Place in the tile of weights for what an invocation takes i-th: column, unit of 8 elements.
uvec2 place_of(uint i)
{
    if (DIRECT) return uvec2((thread + i * THREADS) / (2 * K), (thread + i * THREADS) % (2 * K));
    uint run = thread + i / 2 * THREADS;
    return uvec2(run / K, 2 * (run % K) + i % 2);
}

// What does not change from piece to piece.
Weight weights[2], runs[(TAKE_W + 1) / 2];
uint64_t from_x[TAKE_X], from_w[TAKE_W];

void find()
{
    uint64_t x = args.scratch + (uint64_t(n_rows(args.src[0])) * 4 + 255) / 256 * 256, stride = 2 * uint64_t((n + 63) / 64 * 64);
    weights[0] = args.weight[0];
    weights[1] = args.weight[1];
    UNROLL for (uint i = 0; i < TAKE_X; i++) {
        uint at = thread + i * THREADS;
        from_x[i] = x + x_row(r0 + at / (2 * K)) * stride + 16 * (at % (2 * K));
    }
    UNROLL for (uint i = 0; DIRECT && i < TAKE_W; i++) {
        uvec2 place = place_of(i);
        int64_t row = first_weight + min(column_of(place.x), columns - 1);
        from_w[i] = product_of(place.x) == 0 ? weights[0].plane[0] + row * weights[0].row_size[0] : weights[1].plane[0] + row * weights[1].row_size[0];
        from_w[i] += 16 * place.y;
    }
    UNROLL for (uint i = 0; CODES && i < TAKE_W; i += 2) {
        uvec2 place = place_of(i);
        int64_t row = first_weight + min(column_of(place.x), columns - 1);
        for (int p = 0; p < MAX_PLANES; p++)
            runs[i / 2].plane[p] = product_of(place.x) == 0 ? weights[0].plane[p] + row * weights[0].row_size[p] : weights[1].plane[p] + row * weights[1].row_size[p];
    }
}

void fetch(uint k0)
{
    UNROLL for (uint i = 0; i < TAKE_X; i++) next_x[i] = load_u128(from_x[i] + 2 * k0);
    UNROLL for (uint i = 0; i < TAKE_W; i++) {
        uvec2 place = place_of(i);
        uint k = k0 + 8 * place.y;
        if (DIRECT) {
            next_w[i] = load_u128(from_w[i] + int64_t(k < n ? 2 * int(k0) : -16 * int(place.y))); // no branch: no load waits for another
        } else if (CODES) {
            if (i % 2 == 0) next_run[i / 2] = load_run(TYPE, runs[i / 2], 0, min(k, n - 16));
        } else if (i % 2 == 0) {
            float v[16];
            int64_t row = first_weight + min(column_of(place.x), columns - 1);
            if (!GATED || product_of(place.x) == 0) expand(TYPE, weights[0], row, k, v);
            else expand(TYPE_UP, weights[1], row, k, v);
            next_w[i] = pack8(v, 0);
            next_w[i + 1] = pack8(v, 8);
        }
    }
}

// Codes of the piece from k0 on, which are there by now, become numbers.
void settle(uint k0)
{
    UNROLL for (uint i = 0; CODES && i < TAKE_W; i += 2) {
        Codes16 c = codes_of(TYPE, next_run[i / 2], k0 + 8 * place_of(i).y);
        next_w[i] = pack_codes(c, 0);
        next_w[i + 1] = pack_codes(c, 8);
    }
}

// The piece from k0 on; what is behind the end becomes 0.
void put(uint k0, uint buffer_at)
{
    UNROLL for (uint i = 0; i < TAKE_X; i++) {
        uint at = thread + i * THREADS;
        space[buffer_at + at / (2 * K) * ROW + at % (2 * K)] = next_x[i];
    }
    UNROLL for (uint i = 0; i < TAKE_W; i++) {
        uvec2 place = place_of(i);
        uint kept = k0 + 8 * place.y < n ? 0xffffffffu : 0u;
        space[buffer_at + (TILE_M + place.x) * ROW + place.y] = next_w[i] & kept;
    }
}

// --- results -------------------------------------------------------------------------------------------

// x was multiplied by a power of two for each row.
float scale_of(uint r)
{
    return ELEMENT == TYPE_F16 ? load_f32(args.scratch + 4 * int64_t(x_row(r))) : 1.0;
}

float staged(uint at, uint c) { return uintBitsToFloat(space[at + c / 4][c % 4]); }

// What needs more code than sums: in place, one element after the other.
void activate(uint base, uint first_row, uint first_column)
{
    const uint WIDTH = GATED ? 8 * N : 16 * N;
    [[dont_unroll]] for (uint e = LANE; e < 16 * WIDTH; e += 32) {
        uint row = e / WIDTH, c = e % WIDTH, j = min(first_column + c, columns - 1);
        float scale = scale_of(first_row + row), v = staged(base + row * STAGE_ROW, c) * scale;
        if (GATED) v = glu(args.n[N_PRODUCT_GLU], v, staged(base + row * STAGE_ROW, c + 8 * N) * scale);
        if (args.n[N_PRODUCT_BIAS] >= 0) v += load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(j));
        if (args.n[N_PRODUCT_ACT] >= 0) v = unary(args.n[N_PRODUCT_ACT], v, 0.0, 0.0);
        space[base + row * STAGE_ROW + c / 4][c % 4] = floatBitsToUint(v);
    }
}

// 16 rows of the columns of a subgroup.
void finish_rows(uint base, uint first_row, uint first_column)
{
    const uint WIDTH = GATED ? 8 * N : 16 * N, ACROSS = WIDTH < 32 ? WIDTH : 32, DOWN = 32 / ACROSS;
    bool activated = GATED || args.n[N_PRODUCT_ACT] >= 0;
    if (activated) activate(base, first_row, first_column);
    barrier();
    uint64_t to = args.dst[args.n[N_PRODUCT_RESULT]].data, residual = args.n[N_PRODUCT_RESIDUAL] >= 0 ? args.src[args.n[N_PRODUCT_RESIDUAL]].data : to;
    uint64_t to_stride = uint64_t(args.n[N_PRODUCT_RESULT_STRIDE]), residual_stride = uint64_t(args.n[N_PRODUCT_RESIDUAL_STRIDE]);
    UNROLL for (uint h = 0; h < WIDTH; h += 32) {
        uint c = h + LANE % ACROSS, j = first_column + c;
        float bias = !activated && args.n[N_PRODUCT_BIAS] >= 0 ? load_f32(args.src[args.n[N_PRODUCT_BIAS]].data + 4 * int64_t(min(j, columns - 1))) : 0.0;
        float more[16];
        UNROLL for (uint i = 0; i < 16 / DOWN; i++) { // all on their way at once
            more[i] = args.n[N_PRODUCT_RESIDUAL] >= 0 ? load_f32(residual + result_row(first_row + i * DOWN + LANE / ACROSS) * residual_stride + 4 * int64_t(min(j, columns - 1))) : 0.0;
        }
        UNROLL for (uint i = 0; i < 16 / DOWN; i++) {
            uint row = i * DOWN + LANE / ACROSS, r = first_row + row;
            float v = staged(base + row * STAGE_ROW, c);
            if (!activated) v = v * scale_of(r) + bias;
            if (r < end && j < columns) store_f32(to + result_row(r) * to_stride + 4 * int64_t(j), v + more[i]);
        }
    }
}

void main()
{
    end = uint(args.n[N_PRODUCT_ROWS]), columns = uint(args.n[N_PRODUCT_COLUMNS]), n = uint(args.src[0].ne[3]);
    uint down = EXPERTS ? uint(args.n[N_PRODUCT_BLOCKS]) : (end + TILE_M - 1) / TILE_M, g = group_index();
    r0 = g % down * TILE_M, j0 = g / down * (GATED ? TILE_N / 2 : TILE_N); // row blocks of the same weights together
    if (j0 >= columns) return;
    if (EXPERTS) {
        uint x_rows = n_rows(args.src[0]);
        uint64_t blocks = args.scratch + (uint64_t(x_rows) * 4 + 255) / 256 * 256 + uint64_t(x_rows) * ((n + 63) / 64 * 64) * 2;
        if (g % down >= load_u32(blocks)) return;
        uvec4 block = load_u128(blocks + 16 + 16 * uint64_t(g % down));
        list = blocks + 16 + 16 * uint64_t(down);
        first_weight = int64_t(block.x) * columns;
        r0 = block.y, end = block.y + block.z;
    }
    uint team = thread / 32, team_m = team % TEAMS_M, team_n = team / TEAMS_M, pieces = (n + DEPTH - 1) / DEPTH;
    MatrixC acc[M][N];
    UNROLL for (uint i = 0; i < M; i++)
        UNROLL for (uint j = 0; j < N; j++) matrix_zero(acc[i][j]);
    find();
    fetch(0);
    settle(0);
    put(0, 0);
    barrier();
    [[dont_unroll]] for (uint s = 0; s < pieces; s++) { // piece s is there
        uint now = s % BUFFERS * BUFFER, then = (s + 1) % BUFFERS * BUFFER;
        if (s + 1 < pieces) fetch((s + 1) * DEPTH);
        UNROLL for (uint k = 0; k < K; k++) {
            MatrixA a[M];
            UNROLL for (uint i = 0; i < M; i++) matrix_a(a[i], now + (16 * (team_m * M + i)) * ROW + 2 * k, ROW);
            UNROLL for (uint j = 0; j < N; j++) {
                MatrixB b;
                matrix_b_columns(b, now + (TILE_M + 16 * (team_n * N + j)) * ROW + 2 * k, ROW);
                UNROLL for (uint i = 0; i < M; i++) matrix_multiply(a[i], b, acc[i][j]);
            }
        }
        settle((s + 1) * DEPTH); // while other subgroups still multiply
        if (BUFFERS == 1) barrier();
        if (s + 1 < pieces) put((s + 1) * DEPTH, then);
        barrier();
    }
    uint base = team * 16 * STAGE_ROW;
    [[dont_unroll]] for (uint strip = 0; strip < M; strip++) { // one copy of the code that follows a product
        UNROLL for (uint i = 0; i < M; i++)
            if (i == strip)
                UNROLL for (uint j = 0; j < N; j++) matrix_c(base + 4 * j, STAGE_ROW, acc[i][j]);
        barrier();
        finish_rows(base, r0 + 16 * (team_m * M + strip), column_of(16 * N * team_n));
        barrier();
    }
}
