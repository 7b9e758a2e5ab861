// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM for devices without cooperative matrices: y[r, j] = sum over k of x[r, k] w[j, k].
//
// Operands: x [rows, n] F32 (F16_SUMS: as convert_16bit.comp wrote it); w [columns, n] of any type, in
// planes. What follows the sums: product.glsl.
//
// Work: a workgroup computes a tile of COLUMNS x ROWS of the result, each invocation 8 columns of 4 or 8
// rows with sums in registers. Both operands lie in shared memory transposed, 16 or 32 elements of the
// common dimension at a time, so that an invocation reads vectors of four. The next slice is in flight to
// registers meanwhile. With a GLU half of each invocation's columns belong to gate and half to up.
//
// F16_SUMS (the module gemm_tile_f16): arithmetic in packed f16. The largest value of a row of x is below
// 2^11. Each run of 16 weights is multiplied by the power of two that brings its largest to 0.5 .. 1, and
// its 16 products are summed in f16, where they stay below 2^15; then they are scaled back and added to
// sums in f32. That rounds sums too: an NMSE of 3.7e-7 by simulation, and more behind an activation, so
// tests/check has a bound of its own for it, and only the precisions auto and int8 use it.
//
// Limit: arithmetic. Measured on an H200 with both extensions hidden: 4096 x 4096 at 512 rows 475 us in
// f32, where 67 TFLOP/s would take 256 us; prefill of 512 tokens of four layers of an 8B model in Q4_K_M
// 15118 tokens/s in f32 and 18836 in f16.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef F16_SUMS
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/product/product.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F32;
layout(constant_id = 1) const int TYPE_UP = TYPE_F32; // with a GLU that of up
layout(constant_id = 2) const uint TILE = 0x08221010u; // as gemm_tile.c packs it
// Rows of x and of weights of number types are whole runs of 16 and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
layout(constant_id = 5) const int FORM = 0; // bits: 1 a GLU, 2 an activation
layout(local_size_x_id = 4) in;

#ifdef F16_SUMS
#define NUMBER float16_t
#define NUMBER4   f16vec4
const uint LOAD = 8; // elements of x that are loaded at once
#else
#define NUMBER float
#define NUMBER4   vec4
const uint LOAD = 4;
#endif

// Invocations along the columns and rows of a tile, vectors of four rows of each of them, runs of 16 in a
// slice of the common dimension, and how many elements of the slice are multiplied without a loop.
const uint ACROSS = TILE & 255u, DOWN = TILE >> 8 & 255u, M = TILE >> 16 & 15u, RUNS = TILE >> 20 & 15u,
           STEPS = TILE >> 24;
const uint N = 2, COLUMNS = 4 * N * ACROSS, ROWS = 4 * M * DOWN, DEPTH = 16 * RUNS, THREADS = ACROSS * DOWN;
const uint LOADS_X = ROWS * DEPTH / LOAD / THREADS, LOADS_W = COLUMNS * RUNS / THREADS;
const bool GATED = (FORM & 1) != 0, ACTIVATED = FORM != 0;
// Weights that stay packed until they go to shared memory. Macros, because glslang 12 makes no constants of
// them.
#define CODES (TYPE == TYPE_UP && HAS_CODES(TYPE))
#define HALVES (ALIGNED != 0 && TYPE == TYPE_UP && (TYPE == TYPE_F16 || TYPE == TYPE_BF16))

shared NUMBER4 tile_w[DEPTH * COLUMNS / 4], tile_x[DEPTH * ROWS / 4];
#ifdef F16_SUMS
shared vec4 scales[RUNS * COLUMNS / 4];
#endif

// --- operands ------------------------------------------------------------------------------------------

uint thread = gl_LocalInvocationID.x, rows, columns, n, j0, r0;
uint64_t from_x[LOADS_X];
Weight from_w[LOADS_W]; // addresses of the row of weights of each load
#ifdef F16_SUMS
uvec4 next_x[LOADS_X];
#else
vec4 next_x[LOADS_X];
#endif
Run16 next_run[LOADS_W];
float next_w[LOADS_W][16];

// Column and run, or row and vector, of the invocation's i-th load; loads of neighbours lie side by side in
// memory. In shared memory vectors of columns or rows change places within eight, depending on the element of
// the common dimension, so that writes are spread over all banks too. Tiles with slices of 16, which are for
// processors, do without.
uvec2 place_of_w(uint i) { return uvec2((thread + i * THREADS) / RUNS, (thread + i * THREADS) % RUNS); }
uvec2 place_of_x(uint i)
{
    return uvec2((thread + i * THREADS) / (DEPTH / LOAD), (thread + i * THREADS) % (DEPTH / LOAD));
}
uint swapped(uint four, uint k) { return RUNS == 1 ? four : four ^ k / 4 % 8; }
uint product_of(uint c) { return GATED ? c / (COLUMNS / 2) : 0; }
uint column_of(uint c) { return j0 + (GATED ? c % (COLUMNS / 2) : c); }

void find_addresses()
{
    [[unroll]] for (uint i = 0; i < LOADS_X; i++) {
        uint r = min(r0 + place_of_x(i).x, rows - 1);
#ifdef F16_SUMS
        uint64_t stride = 2 * uint64_t((n + 63) / 64 * 64);
        from_x[i] = args.scratch + (uint64_t(rows) * 4 + 255) / 256 * 256 + r * stride + 16 * place_of_x(i).y;
#else
        from_x[i] = row_of(args.src[0], r) + 16 * place_of_x(i).y;
#endif
    }
    [[unroll]] for (uint i = 0; i < LOADS_W; i++) {
        uint c = place_of_w(i).x, p = product_of(c);
        int64_t row = min(column_of(c), columns - 1);
        [[unroll]] for (int k = 0; k < MAX_PLANES; k++) {
            from_w[i].plane[k] = args.weight[p].plane[k] + row * args.weight[p].row_size[k];
            from_w[i].row_size[k] = 0;
        }
    }
}

void expand(int type, Weight w, uint k, inout float v[16])
{
    if (k >= n) {
        for (uint i = 0; i < 16; i++) v[i] = 0.0;
    } else if (is_plain(type)) {
        if (ALIGNED != 0) plain16(type, w.plane[0], k, v);
        else for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, w.plane[0], k + i) : 0.0;
    } else dequant16(type, w, 0, k, v);
}

void fetch_slice(uint k0)
{
    [[unroll]] for (uint i = 0; i < LOADS_X; i++) {
#ifdef F16_SUMS
        next_x[i] = load_u128(from_x[i] + 2 * k0); // rows are filled with zeros to multiples of 64
#else
        uint k = k0 + LOAD * place_of_x(i).y;
        if (ALIGNED != 0) next_x[i] = k < n ? PF128(from_x[i] + 4 * int64_t(k0)).v : vec4(0.0);
        else
            [[unroll]] for (uint e = 0; e < LOAD; e++)
                next_x[i][e] = k + e < n ? load_f32(from_x[i] + 4 * int64_t(k0 + e)) : 0.0;
#endif
    }
    [[unroll]] for (uint i = 0; i < LOADS_W; i++) {
        uvec2 place = place_of_w(i);
        uint k = k0 + 16 * place.y, inside = min(k, n - 16);
        if (CODES) {
            next_run[i] =
                load_run(TYPE, from_w[i], 0, inside); // no branch, so that no load waits for another
        } else if (HALVES) {
            next_run[i].v = load_u128(from_w[i].plane[0] + 2 * int64_t(inside));
            next_run[i].h = load_u128(from_w[i].plane[0] + 2 * int64_t(inside) + 16);
        } else if (TYPE == TYPE_UP || product_of(place.x) == 0) expand(TYPE, from_w[i], k, next_w[i]);
        else expand(TYPE_UP, from_w[i], k, next_w[i]);
    }
}

void numbers(uint i, uint k, out float v[16])
{
    if (CODES) {
        numbers_of(codes_of(TYPE, next_run[i], k), v);
    } else if (HALVES) {
        [[unroll]] for (uint e = 0; e < 8; e++) {
            uint two = e < 4 ? next_run[i].v[e] : next_run[i].h[e - 4];
            vec2 y = TYPE == TYPE_F16 ? unpackHalf2x16(two)
                                      : vec2(uintBitsToFloat(two << 16), uintBitsToFloat(two & 0xffff0000u));
            v[2 * e] = y.x;
            v[2 * e + 1] = y.y;
        }
    } else
        [[unroll]] for (uint e = 0; e < 16; e++) v[e] = next_w[i][e];
}

// Writes the slice from k0 on to shared memory; what is behind the end of the common dimension becomes 0.
void store_slice(uint k0)
{
    [[unroll]] for (uint i = 0; i < LOADS_X; i++) {
        uvec2 place = place_of_x(i);
        [[unroll]] for (uint e = 0; e < LOAD; e++) {
            uint k = LOAD * place.y + e;
#ifdef F16_SUMS
            NUMBER v = unpackFloat2x16(next_x[i][e / 2])[e % 2];
#else
            NUMBER v = next_x[i][e];
#endif
            tile_x[k * (ROWS / 4) + swapped(place.x / 4, k)][place.x % 4] = v;
        }
    }
    [[unroll]] for (uint i = 0; i < LOADS_W; i++) {
        uvec2 place = place_of_w(i);
        float v[16], power = 1.0;
        numbers(i, k0 + 16 * place.y, v);
#ifdef F16_SUMS
        float most = 0.0;
        [[unroll]] for (uint e = 0; e < 16; e++)
            if (abs(v[e]) <= 3.40282347e38 && abs(v[e]) > most) most = abs(v[e]);
        int up = min(int(floatBitsToUint(most) >> 23) - 126, 126); // all are below 2^up
        power = uintBitsToFloat(uint(127 - up) << 23);
        scales[place.y * (COLUMNS / 4) + place.x / 4][place.x % 4] = uintBitsToFloat(uint(up + 127) << 23);
#endif
        bool inside = k0 + 16 * place.y < n;
        [[unroll]] for (uint e = 0; e < 16; e++)
            tile_w[(16 * place.y + e) * (COLUMNS / 4) + swapped(place.x / 4, 16 * place.y + e)][place.x % 4] =
                NUMBER(inside ? v[e] * power : 0.0);
    }
}

// --- sums ------------------------------------------------------------------------------------------------

vec4 sums[4 * M][N];

#ifdef F16_SUMS
f16vec2 part[4 * M][2 * N]; // of a run of 16

void add_run(uint run, uint w_at)
{
    [[unroll]] for (uint j = 0; j < N; j++) {
        vec4 scale = scales[run * (COLUMNS / 4) + w_at + j * ACROSS];
        [[unroll]] for (uint i = 0; i < 4 * M; i++) {
            sums[i][j] += vec4(part[i][2 * j], part[i][2 * j + 1]) * scale;
            part[i][2 * j] = part[i][2 * j + 1] = f16vec2(0.0);
        }
    }
}
#endif

void multiply(uint x_at, uint w_at)
{
    [[dont_unroll]] for (uint first = 0; first < DEPTH; first += STEPS) {
        [[unroll]] for (uint e = 0; e < STEPS; e++) {
            uint k = first + e;
            NUMBER4 w[N], x[M];
            [[unroll]] for (uint j = 0; j < N; j++)
                w[j] = tile_w[k * (COLUMNS / 4) + swapped(w_at, k) + j * ACROSS];
            [[unroll]] for (uint i = 0; i < M; i++)
                x[i] = tile_x[k * (ROWS / 4) + swapped(x_at, k) + i * DOWN];
            [[unroll]] for (uint i = 0; i < 4 * M; i++)
                [[unroll]] for (uint j = 0; j < N; j++) {
#ifdef F16_SUMS
                    f16vec2 both = f16vec2(x[i / 4][i % 4]);
                    part[i][2 * j] = fma(w[j].xy, both, part[i][2 * j]);
                    part[i][2 * j + 1] = fma(w[j].zw, both, part[i][2 * j + 1]);
#else
                    sums[i][j] += w[j] * x[i / 4][i % 4];
#endif
                }
        }
#ifdef F16_SUMS
        if ((first + STEPS) % 16 == 0) add_run(first / 16, w_at);
#endif
    }
}

// --- results -------------------------------------------------------------------------------------------

// Row and column of the result for row i and column c of the invocation.
uint result_row(uint i, uint x_at) { return r0 + 4 * (x_at + i / 4 * DOWN) + i % 4; }
uint result_column(uint c, uint w_at) { return j0 + 4 * (w_at + c / 4 * ACROSS) + c % 4; }

// x was multiplied by a power of two for each row.
float scale_of(uint r)
{
#ifdef F16_SUMS
    return load_f32(args.scratch + 4 * uint64_t(min(r, rows - 1)));
#else
    return 1.0;
#endif
}

// Adds bias and residual, and stores. All loads of a row are in flight at once.
void add_up(uint x_at, uint w_at)
{
    float bias[4 * N];
    [[unroll]] for (uint c = 0; c < 4 * N; c++)
        bias[c] = args.n[N_PRODUCT_BIAS] >= 0
                      ? load_f32(args.src[args.n[N_PRODUCT_BIAS]].data +
                                 4 * int64_t(min(result_column(c, w_at), columns - 1)))
                      : 0.0;
    [[unroll]] for (uint i = 0; i < 4 * M; i++) {
        uint r = result_row(i, x_at);
        uint64_t to = row_of(args.dst[args.n[N_PRODUCT_RESULT]], r),
                 residual = args.n[N_PRODUCT_RESIDUAL] >= 0
                                ? row_of(args.src[args.n[N_PRODUCT_RESIDUAL]], min(r, rows - 1))
                                : to;
        float scale = scale_of(r), more[4 * N];
        [[unroll]] for (uint c = 0; c < 4 * N; c++)
            more[c] = args.n[N_PRODUCT_RESIDUAL] >= 0
                          ? load_f32(residual + 4 * int64_t(min(result_column(c, w_at), columns - 1)))
                          : 0.0;
        [[unroll]] for (uint c = 0; c < 4 * N; c++) {
            uint j = result_column(c, w_at);
            if (r < rows && j < columns)
                store_f32(to + 4 * int64_t(j), sums[i][c / 4][c % 4] * scale + bias[c] + more[c]);
        }
    }
}

// GLU or activation: one copy of code that would be long if it were unrolled.
void activate(uint x_at, uint w_at)
{
    const uint WIDTH = GATED ? 4 : 4 * N;
    [[dont_unroll]] for (uint i = 0; i < 4 * M; i++) {
        vec4 own[N];
        [[unroll]] for (uint e = 0; e < 4 * M; e++)
            [[unroll]] for (uint j = 0; j < N; j++)
                if (e == i) own[j] = sums[e][j];
        uint r = result_row(i, x_at);
        float scale = scale_of(r);
        [[dont_unroll]] for (uint c = 0; c < WIDTH; c++) {
            uint j = result_column(c, w_at);
            float v = own[GATED ? 0 : c / 4][c % 4], up = own[1][c % 4];
            if (r < rows && j < columns) finish(r, j, v * scale, up * scale, residual_of(r, j));
        }
    }
}

void main()
{
    rows = uint(args.n[N_PRODUCT_ROWS]), columns = uint(args.n[N_PRODUCT_COLUMNS]),
    n = uint(args.src[0].ne[3]);
    uint down = (rows + ROWS - 1) / ROWS, g = group_index();
    r0 = g % down * ROWS, j0 = g / down * (GATED ? COLUMNS / 2 : COLUMNS); // neighbours share weights
    if (j0 >= columns) return;
    // 32 invocations cover 8 vectors of columns and 4 of rows: no other shape reads less from shared memory.
    uint w_at = thread % 8 + 8 * (thread / 32 % (ACROSS / 8)),
         x_at = thread / 8 % 4 + 4 * (thread / (4 * ACROSS));
    [[unroll]] for (uint i = 0; i < 4 * M; i++)
        [[unroll]] for (uint j = 0; j < N; j++) sums[i][j] = vec4(0.0);
#ifdef F16_SUMS
    [[unroll]] for (uint i = 0; i < 4 * M; i++)
        [[unroll]] for (uint j = 0; j < 2 * N; j++) part[i][j] = f16vec2(0.0);
#endif
    find_addresses();
    [[dont_unroll]] for (uint k0 = 0;; k0 += DEPTH) { // one copy of fetching, multiplying and storing
        if (k0 < n) fetch_slice(k0);
        if (k0 > 0) multiply(x_at, w_at); // the slice before
        if (k0 >= n) break;
        barrier();
        store_slice(k0);
        barrier();
    }
    if (ACTIVATED) activate(x_at, w_at);
    else add_up(x_at, w_at);
}
