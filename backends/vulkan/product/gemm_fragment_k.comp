// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMM of up to 64 rows for weights of Q4_K, Q5_K and Q6_K with cooperative matrices of f16 whose elements
// lie with the invocations as on NVIDIA's devices: y[r, j] = sum over k of x[r, k] w[j, k], sums in f32.
//
// Operands: x as convert_16bit.comp wrote it to args.scratch (ORDER_K_QUANT, ORDER_Q6_K), with a norm's
// weights and factors in it; w [columns, k] in planes, k a multiple of 256. What follows the sums:
// finish.glsl.
//
// The right operand has the codes of weights times the scales of their groups; factors of a block of 256 are
// multiplied to the sums of the block. For Q4_K and Q5_K such a product is a whole number below 2048, so that
// f16 has it exactly, and minima are multiplied by the sums of x of each run of 16, which are elements of x
// of their own: two f16 numbers for each, of which the second is what the first has lost by rounding. For
// Q6_K (code - 32) * scale is rounded to f16.
//
// Work: the columns are divided into tiles and the blocks of a row into PARTS; a workgroup multiplies one
// part of one tile. Each of its subgroups has 16 N columns, an invocation 64 elements of a block of 2 N of
// them. With t = LANE % 4 these are four runs of 16. Run v of half h of the block begins at element
// 128 (t / 2) + 64 h + 32 v + 16 (t % 2): its codes are the lower (v = 0) or upper nibbles of 16 bytes. In
// Q6_K the nibbles of a byte belong to both halves instead. Where x was converted for weights of Q6_K alone
// (ORDER_Q6_K), h and v change places in that formula, so that a half needs one vector of codes and fewer
// registers. The next block of weights is in flight to registers meanwhile. All subgroups read x from shared
// memory by half blocks: two buffers, and the half block behind these in flight to registers. Sums of parts
// meet in scratch (fragment_sums.glsl).
//
// Bytes: the weights once, x once for each tile of columns, 8 for each sum of a part. Limit: instructions,
// multiplications, shared memory and the way from the second cache, which take a third to a half of the time
// each (docs/log/vulkan.md).
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define FRAGMENTS
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q4_K;
layout(constant_id = 2) const uint TILE = 0x10811u; // as gemm_skinny.c packs it
layout(constant_id = 3) const int LAYOUT = 0;       // 2: ROWS_ALIGNED (fragment_sums.glsl)
layout(constant_id = 5) const int FORM = 0;         // finish.glsl; 128: ORDER_Q6_K
layout(local_size_x_id = 4) in;
#include "backends/vulkan/product/finish.glsl"

const bool IS_Q6 = TYPE == TYPE_Q6_K, OWN_ORDER = (FORM & 128) != 0;
// Whether the nibbles of a byte belong to both halves of the block, and not to two runs of one half.
#define CROSSED (IS_Q6 && !OWN_ORDER)
// Blocks of 16 rows; matrices of 16 columns of a subgroup; subgroups; parts of the common dimension.
const uint M = TILE & 15u, N = TILE >> 4 & 15u, TEAMS = TILE >> 8 & 255u, PARTS = TILE >> 20;
const bool ROWS_ALIGNED = (LAYOUT & 2) != 0;
const uint THREADS = LANES * TEAMS, TILE_M = 16 * M, TILE_N = 16 * N * TEAMS, PAIRS = 2 * N;
// With a GLU half of the tile's columns are of gate, half of up.
const uint WIDE = GATED ? TILE_N / 2 : TILE_N;
// Of a row of x in half a block, in vectors of 16 bytes: 128 elements and 16 sums, which Q6_K does not need.
// In shared memory rows have one more, so that no two rows of a matrix share banks.
const uint ROW_OF_HALF = 18, USED = IS_Q6 ? 16 : ROW_OF_HALF, ROW_X = USED + 1, BUFFER_X = TILE_M * ROW_X,
           LOADS_X = (TILE_M * USED + THREADS - 1) / THREADS;
// Of a row of sums, in vectors of 16 bytes.
const uint ROW_SUMS = TILE_N / 4 + 1,
           SPACE = 2 * BUFFER_X > TILE_M * ROW_SUMS ? 2 * BUFFER_X : TILE_M * ROW_SUMS;
MATRIX_SPACE(SPACE + TEAMS * FRAGMENT_SPACE)
#include "backends/vulkan/product/fragment_sums.glsl"

uint quarter = LANE % 4; // t
uint64_t x_at;
uint half_size; // bytes of half a block of all rows
uvec4 next_x[LOADS_X];

// --- weights -------------------------------------------------------------------------------------------

// What an invocation loads of a block of a column: two vectors of codes, one of high bits (Q5_K, Q6_K), and
// the factors of the block and its scales.
struct Block {
    uvec4 codes[2], high, scales;
};
// Weights do not change, so the compiler may move their loads to where registers are free. (Where it may not,
// Q6_K with 16 rows needs 160 registers, for 118, and takes a quarter more time.)
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Fixed128 { uvec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Fixed64 { uvec2 v; };
layout(buffer_reference, scalar, buffer_reference_align = 2) readonly buffer Fixed16 { uint16_t v; };
uint64_t plane_at[PAIRS][MAX_PLANES]; // where the next block of each of the invocation's columns is
Block next[PAIRS], now[PAIRS];

// Bytes of a block in plane p.
uint block_size(uint p)
{
    if (p == 1) return IS_Q6 ? 64 : TYPE == TYPE_Q5_K ? 32 : 16;
    return p == 0 ? 128 : p == 2 ? 16 : 2;
}
const int HEAD = TYPE == TYPE_Q4_K ? 1 : 2; // the plane of scales, but for Q6_K with factors

void find_weights(uint block)
{
    uint w = GATED && team >= TEAMS / 2 ? 1 : 0, half_of = quarter / 2, odd = quarter % 2;
    uint first[MAX_PLANES] = uint[](64 * half_of + 16 * odd, IS_Q6            ? 32 * half_of + 16 * odd
                                                             : TYPE == TYPE_Q5_K ? 16 * odd
                                                                                 : 0,
                                    IS_Q6 ? 8 * half_of : 0, 0);
    UNROLL for (uint i = 0; i < PAIRS; i++) {
        uint at = 16 * N * team + LANE / 4 + 8 * i, j = min(j0 + (GATED ? at % WIDE : at), columns - 1);
        [[unroll]] for (uint p = 0; p < MAX_PLANES; p++)
            plane_at[i][p] =
                given_plane[w][p] + uint64_t(j) * uint64_t(given_size[p]) + block * block_size(p) + first[p];
    }
}

// Starts the loads of the next block of weights; `more`: there is another one behind it.
void fetch_weights(bool more)
{
    UNROLL for (uint i = 0; i < PAIRS; i++) {
        next[i].codes[0] = Fixed128(plane_at[i][0]).v;
        next[i].codes[1] = Fixed128(plane_at[i][0] + 32).v;
        next[i].high = next[i].scales = uvec4(0);
        if (TYPE != TYPE_Q4_K) next[i].high = Fixed128(plane_at[i][1]).v;
        if (IS_Q6)
            next[i].scales.xyz = uvec3(uint(Fixed16(plane_at[i][3]).v), Fixed64(plane_at[i][2]).v);
        else next[i].scales = Fixed128(plane_at[i][HEAD]).v;
        [[unroll]] for (uint p = 0; p < MAX_PLANES; p++) plane_at[i][p] += more ? block_size(p) : 0u;
    }
}

// Operations on two f16 numbers in a word; emulated by f32, because a driver without cooperative matrices may
// have no f16 arithmetic. (lavapipe 22.3 multiplied wrongly by a constant word, so times_one takes a number.)
#ifdef EMULATED
#define two_of_word unpackHalf2x16
#define word_of_two packHalf2x16
#define Number      float
#else
#define two_of_word unpackFloat2x16
#define word_of_two packFloat2x16
#define Number      float16_t
#endif
uint times(uint a, uint b) { return word_of_two(two_of_word(a) * two_of_word(b)); }
uint times_one(uint a, float b) { return word_of_two(two_of_word(a) * Number(b)); }
uint minus(uint a, float b) { return word_of_two(two_of_word(a) - Number(b)); }
// Whole numbers below 256 in the lower bytes of both halves of a word.
uint numbers_of(uint two) { return minus(two | 0x64006400u, 1024.0); }
uint lower_twice(uint two) { return two & 0xffffu | two << 16; }
uint upper_twice(uint two) { return two >> 16 | two & 0xffff0000u; }

// Scales of run v of half h, [2 h + v], twice in a word; minima of both runs of a half. Scales make up for
// where codes stand: upper nibbles are 16 times as large, and codes of Q4_K and Q5_K stand as the fraction of
// a subnormal number, so that they are multiplied by 2^-24. Products are 2^-14 too small then (PRODUCT),
// because 2^10 is the largest power that scales can have.
const float PRODUCT = IS_Q6 ? 1.0 : 16384.0;
uint scales[PAIRS][4], minima[PAIRS][2];
uint factors[N][8]; // of the columns of the elements that the invocation has of sums

// Finds the factors of matrix j from the invocations that have them: those of the columns LANE / 4 and LANE /
// 4 + 8.
#ifdef EMULATED
shared uint exchanged_factors[TEAMS * 16];
#endif
void find_factors(uint j)
{
    uint a = now[2 * j].scales.x, b = now[2 * j + 1].scales.x;
#ifdef EMULATED
    barrier();
    exchanged_factors[team * 16 + LANE / 4] = a;
    exchanged_factors[team * 16 + LANE / 4 + 8] = b;
    barrier();
    [[unroll]] for (uint e = 0; e < 8; e++) factors[j][e] = exchanged_factors[team * 16 + LANE_COLUMN(e)];
#else
    [[unroll]] for (uint e = 0; e < 8; e++)
        factors[j][e] =
            e < 4 ? subgroupShuffle(e < 2 ? a : b, 8 * quarter + 4 * (e % 2)) : factors[j][e - 4];
#endif
}

void take_block()
{
    const uint TWO = 0x00ff00ffu;
    UNROLL for (uint i = 0; i < PAIRS; i++) {
        now[i] = next[i];
        uvec4 s = now[i].scales;
        if (IS_Q6) { // signed numbers
            uvec2 two = s.yz >> 8 * (quarter % 2) & TWO ^ 0x00800080u;
            uint a = minus(two.x | 0x64006400u, 1152.0), b = minus(two.y | 0x54005400u, 72.0); // sixteenths
            scales[i] = uint[](lower_twice(a), lower_twice(b), upper_twice(a), upper_twice(b));
            if (CROSSED) {
                scales[i][1] = upper_twice(a);
                scales[i][2] = lower_twice(b);
            }
            continue;
        }
        uint four = s.y & 0x3f3f3f3fu, less = s.z & 0x3f3f3f3fu;
        if (quarter >= 2) {
            four = s.w & 0x0f0f0f0fu | s.y >> 2 & 0x30303030u;
            less = s.w >> 4 & 0x0f0f0f0fu | s.z >> 2 & 0x30303030u;
        }
        uint a = times_one(numbers_of(four & TWO), 1024.0),
             b = times_one(numbers_of(four >> 8 & TWO), 64.0);
        scales[i] = uint[](lower_twice(a), lower_twice(b), upper_twice(a), upper_twice(b));
        minima[i] = uint[](numbers_of(less & 0xffu | (less & 0xff00u) << 8),
                           numbers_of(less >> 16 & 0xffu | less >> 8 & 0xff0000u));
    }
    UNROLL for (uint j = 0; j < N; j++) find_factors(j);
}

// Two elements of column i: of run v of half h those of bytes 0 and 2 (byte 0) or 1 and 3 of word w.
uint element_pair(uint i, uint h, uint w, uint v, uint byte)
{
    const uint upper = CROSSED ? h : v, second = CROSSED ? v : h,
               LOW = upper == 0 ? 0x000f000fu : 0x00f000f0u;
    uint q = (second != 0 ? now[i].codes[1][w] : now[i].codes[0][w]) >> 8 * byte & LOW,
         high = now[i].high[w];
    if (IS_Q6) {
        high = byte == 0 ? high << 4 - 2 * second : high >> 4 + 2 * second;
        q |= 0x64006400u;
        q |= high & (upper == 0 ? 0x00300030u : 0x03000300u);
        return times(minus(q, upper == 0 ? 1056.0 : 1536.0), scales[i][2 * h + v]);
    }
    if (TYPE == TYPE_Q5_K) {
        high >>= 4 * (quarter / 2) + 2 * h + v;
        high = byte == 0 ? high << (upper == 0 ? 4 : 8) : upper == 0 ? high >> 4 : high;
        q |= high & (upper == 0 ? 0x00100010u : 0x01000100u);
    }
    return times(q, scales[i][2 * h + v]);
}

// --- x -------------------------------------------------------------------------------------------------

// Starts the loads of half block h.
void fetch_x(uint h)
{
    uint64_t at = x_at + uint64_t(h) * uint64_t(half_size) +
                  16 * (thread / USED * ROW_OF_HALF + thread % USED);
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        // With Q6_K sums are left out of the THREADS / 16 rows that are loaded at once.
        next_x[i] = load_u128(at + 16 * i * (IS_Q6 ? THREADS / 16 * ROW_OF_HALF : THREADS));
    }
}
void store_x(uint buffer_at)
{
    UNROLL for (uint i = 0; i < LOADS_X; i++) {
        uint e = thread + i * THREADS;
        if (e < TILE_M * USED) space[buffer_at + e / USED * ROW_X + e % USED] = next_x[i];
    }
}

// --- multiplication ------------------------------------------------------------------------------------

// Subtracts the minima of half h times the sums of its runs in the buffer.
void subtract_minima(uint h, uint buffer_at)
{
    UNROLL for (uint j = 0; j < N; j++) {
        MatrixB b;
        uint w[4] = uint[](minima[2 * j][h], minima[2 * j][h], minima[2 * j + 1][h], minima[2 * j + 1][h]);
        matrix_b_fragment(b, SPACE + FRAGMENT_SPACE * team, w);
        UNROLL for (uint i = 0; i < M; i++) {
            MatrixA a;
            MatrixC less;
            float v[8];
            matrix_a(a, buffer_at + 16 * i * ROW_X + 16, ROW_X);
            matrix_zero(less);
            matrix_multiply(a, b, less);
            matrix_elements(v, less);
            [[unroll]] for (uint e = 0; e < 8; e++)
                total[i * N + j][e] = fma(-32.0 * half_bits(factors[j][e] >> 16), v[e], total[i * N + j][e]);
        }
    }
}

void main()
{
    float touched = thread < LANES ? touch_record(LANE) : 0.0;
    rows = uint(given_n[N_PRODUCT_ROWS]), columns = uint(given_n[N_PRODUCT_COLUMNS]);
    uint k = uint(given_k), down = (rows + TILE_M - 1) / TILE_M, g = group_index(), part = g / down % PARTS,
         tile = g / (down * PARTS) * down + g % down; // neighbours share weights
    r0 = g % down * TILE_M, j0 = g / (down * PARTS) * WIDE;
    if (j0 >= columns) return;
    uint blocks = k / 256, each = (blocks + PARTS - 1) / PARTS, from = part * each,
         to = min(from + each, blocks), halves = from < to ? 2 * (to - from) : 0;
    from = min(from, blocks - 1); // the part may be empty
    find_weights(from);
    fetch_weights(halves > 2);
    half_size = rows * ROW_OF_HALF * 16;
    x_at = given_scratch + 256 * uint64_t(args.n[N_PRODUCT_COPY]) + (uint64_t(rows) * 4 + 255) / 256 * 256 +
           uint64_t(2 * from) * uint64_t(half_size) + r0 * ROW_OF_HALF * 16;
    fetch_x(0);
    store_x(0);
    fetch_x(1);
    UNROLL for (uint i = 0; i < M * N; i++)
        [[unroll]] for (uint e = 0; e < 8; e++) total[i][e] = 0.0;
    barrier();
    [[dont_unroll]] for (uint first = 0; first < halves; first += 2) {
        take_block();
        fetch_weights(first + 4 < halves);
        MatrixC acc[M][N];
        UNROLL for (uint i = 0; i < M; i++)
            UNROLL for (uint j = 0; j < N; j++) matrix_zero(acc[i][j]);
        UNROLL for (uint h = 0; h < 2; h++) {
            uint at = h * BUFFER_X;
            store_x(BUFFER_X - at);
            fetch_x(min(first + h + 2, halves - 1));
            UNROLL for (uint step = 0; step < 8; step++) {
                MatrixA a[M];
                UNROLL for (uint i = 0; i < M; i++) matrix_a(a[i], at + 16 * i * ROW_X + 2 * step, ROW_X);
                UNROLL for (uint j = 0; j < N; j++) {
                    MatrixB b;
                    uint w[4];
                    UNROLL for (uint i = 0; i < 4; i++)
                        w[i] = element_pair(2 * j + i / 2, h, step / 2, step % 2, i % 2);
                    matrix_b_fragment(b, SPACE + FRAGMENT_SPACE * team, w);
                    UNROLL for (uint i = 0; i < M; i++) matrix_multiply(a[i], b, acc[i][j]);
                }
            }
            if (!IS_Q6) subtract_minima(h, at);
            barrier();
        }
        UNROLL for (uint i = 0; i < M; i++)
            UNROLL for (uint j = 0; j < N; j++) {
                float v[8];
                matrix_elements(v, acc[i][j]);
                [[unroll]] for (uint e = 0; e < 8; e++)
                    total[i * N + j][e] = fma(PRODUCT * half_bits(factors[j][e]), v[e], total[i * N + j][e]);
            }
    }
    load_early();
    if (add_parts(tile, part)) finish_tile(touched);
}
