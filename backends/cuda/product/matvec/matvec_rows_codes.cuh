// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Codes and scales of a tile of weights as the GEMV for 2 to 8 rows of x (matvec_rows.cuh) multiplies them:
// lane 4 r + c has, of each group of 16 elements, elements 4 c to 4 c + 3 of rows r and r + 8 as the bytes of
// a word, and the scales of both rows.
//
// Types whose planes hold a group of 16 elements in the same bits of 16 bytes are read by ldmatrix, which
// gives a lane word c of a chunk, and unpacked in registers. The others (codebooks and some of few bits) are
// unpacked by tn_unpack16 a group a lane, half a tile at a time, to a place of the warp in shared memory, and
// read from there. Codes stay where they stand in their bytes if that saves instructions; the sums are then
// too large by a power of two.
//
// Instructions of a warp for a tile of 16 x 256: codes 32 (Q4_K), 48 (Q4_0), 110 (Q6_K), scales about 40;
// those of groups of 16 about 75.
#ifndef TN_CUDA_MATVEC_ROWS_CODES_CUH
#define TN_CUDA_MATVEC_ROWS_CODES_CUH

#include "backends/cuda/product/matvec/matvec_rows_ring.cuh"

enum { MR_HALF = 128 }; // elements of half a tile

// The integer in the low bits of the float 2^23 + integer, less `bias`: a subtraction instead of a
// conversion.
static __device__ __forceinline__ float mr_unbias(uint32_t bits, int bias = 0)
{
    return __uint_as_float(bits) - (8388608.0f + (float)bias);
}

// Byte i of v as a float, less `bias`.
static __device__ __forceinline__ float mr_byte(uint32_t v, int i, int bias = 0)
{
    return mr_unbias(__byte_perm(v, 0x4b000000u, 0x7650 + i), bias);
}

// v moved left by n bits, right for n < 0.
template <int N> static __device__ __forceinline__ uint32_t mr_shift(uint32_t v)
{
    return N >= 0 ? v << (N & 31) : v >> (-N & 31);
}

// --- kinds of types -------------------------------------------------------------------------------------

template <int TYPE> struct mr_kind {
    static constexpr bool k4_k5 = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K, k6 = TYPE == TN_TYPE_Q6_K,
                          k2_k3 = TYPE == TN_TYPE_Q2_K || TYPE == TN_TYPE_Q3_K, q8 = TYPE == TN_TYPE_Q8_0,
                          q5 = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1,
                          table = TYPE == TN_TYPE_IQ4_NL || TYPE == TN_TYPE_IQ4_XS || TYPE == TN_TYPE_MXFP4,
                          // the nibbles of a chunk are 32 elements in sequence
        block32 = TYPE == TN_TYPE_Q4_0 || TYPE == TN_TYPE_Q4_1 || q5 || table;
    static constexpr bool expands = TN_MATVEC_ROWS_EXPANDS(TYPE);
    // Groups that share a scale have 16 elements, not 32.
    static constexpr bool of16 = k6 || k2_k3 || expands;
    static constexpr bool has_min = TN_MATVEC_ROWS_HAS_SUMS(TYPE);
    static constexpr bool is_signed = !has_min;
    // Codes are multiplied where they stand in their bytes: what the sums are too large by.
    static constexpr float inverse = TYPE == TN_TYPE_Q4_0 || TYPE == TN_TYPE_Q4_1 ? 0.0625f
                                     : q5                                         ? 0.125f
                                     : k6                                         ? 0.25f
                                     : TYPE == TN_TYPE_Q3_K                       ? 0.03125f
                                                                                  : 1.0f;
    // Which of the chunks of a half tile has group g, and whether in its upper nibbles.
    static constexpr int chunks = q8 || expands ? 8 : k2_k3 ? 2 : 4;
    static constexpr __host__ __device__ int chunk(int g)
    {
        return chunks == 8 ? g : chunks == 2 ? g % 2 : block32 ? g / 2 : k4_k5 ? g / 4 * 2 + g % 2 : g % 4;
    }
    static constexpr __host__ __device__ bool high(int g)
    {
        return chunks != 4 ? false : block32 ? g % 2 : k4_k5 ? g / 2 % 2 : g / 4;
    }
};

// Where the first row of a tile lies in the planes: the low bits of addresses, which say where a plane begins
// in its first chunk.
struct mr_origin {
    uint32_t address[TN_CUDA_MAX_PLANES], row_size[TN_CUDA_MAX_PLANES];

    template <int TYPE> __device__ __forceinline__ uint32_t misalignment(int plane, int row) const
    {
        return mr_tile<TYPE>::aligned(plane) ? 0 : (address[plane] + (uint32_t)row * row_size[plane]) & 15u;
    }
};

// Row `row` of plane `plane` of the tile in a slot.
template <int TYPE>
static __device__ __forceinline__ const char *mr_row(const char *slot, const mr_origin &o, int plane, int row)
{
    typedef mr_tile<TYPE> tile;
    return slot + tile::offset(plane) + row * (16 * tile::slots(plane)) + o.misalignment<TYPE>(plane, row);
}

// --- codes ----------------------------------------------------------------------------------------------

// Pairs of chunks of the rows that the lane's addresses lead to.
template <int N> static __device__ __forceinline__ void mr_load_pairs(uint32_t (&to)[N][2], const char *at)
{
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        uint32_t r[4];
        tn_ldmatrix4(r, (const char *)((uintptr_t)at ^ (uintptr_t)(i * 16)));
        to[i][0] = r[0], to[i][1] = r[1], to[i + 1][0] = r[2], to[i + 1][1] = r[3];
    }
}

template <int TYPE> struct mr_codes {
    typedef mr_kind<TYPE> kind;
    static constexpr bool has_bits = mr_by_chunks<TYPE>(1) || kind::q5;
    // Words of chunks, and further bits: words of chunks of plane 1, or (Q5_0, Q5_1) those of four blocks.
    uint32_t code[kind::chunks][2], bits[kind::q5 ? 4 : has_bits ? 2 : 1][2];
    int lane;

    // at0, at1: the lane's addresses of the first chunks of planes 0 and 1 (mr_lane).
    __device__ __forceinline__ void load(const char *slot, const char *at0, const char *at1, int h)
    {
        mr_load_pairs(
            code, (const char *)((uintptr_t)at0 ^ (uintptr_t)(kind::expands ? 0 : h * (16 * kind::chunks))));
        if constexpr (kind::q5) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint4 v =
                    *(const uint4 *)(slot + mr_tile<TYPE>::offset(1) + (lane / 4 + 8 * i) * 32 + h * 16);
                int shift = lane % 4 * 4;
                bits[0][i] = v.x >> shift, bits[1][i] = v.y >> shift, bits[2][i] = v.z >> shift,
                bits[3][i] = v.w >> shift;
            }
        } else if constexpr (kind::k6) {
            mr_load_pairs(bits, (const char *)((uintptr_t)at1 ^ (uintptr_t)(h * 32)));
        } else if constexpr (has_bits) {
            if (h == 0) mr_load_pairs(bits, at1);
        }
    }
    // Four codes of group G of half H, as bytes.
    template <int H, int G> __device__ __forceinline__ uint32_t word(int row) const
    {
        constexpr int j = kind::chunk(G);
        constexpr bool high = kind::high(G);
        uint32_t v = code[j][row];
        if constexpr (kind::chunks == 8) {
            return v;
        } else if constexpr (TYPE == TN_TYPE_Q4_0) {
            return ((high ? v : v << 4) ^ 0x80808080u) & 0xf0f0f0f0u;
        } else if constexpr (TYPE == TN_TYPE_Q4_1) {
            return (high ? v : v << 4) & 0xf0f0f0f0u;
        } else if constexpr (kind::table) {
            int even, odd;
            if constexpr (TYPE == TN_TYPE_MXFP4)
                tn_lookup_fp4(v, even, odd);
            else
                tn_lookup_iq4(v, even, odd);
            return (uint32_t)(high ? odd : even);
        } else if constexpr (kind::q5) {
            uint32_t top = (uint32_t)tn_spread_bits(bits[j][row] >> (high ? 16 : 0)) << 7;
            uint32_t low = mr_shift < high ? -1 : 3 > (v)&0x78787878u;
            return TYPE == TN_TYPE_Q5_0 ? (low | top) ^ 0x80808080u : low | top;
        } else if constexpr (TYPE == TN_TYPE_Q4_K) {
            return v & (high ? 0xf0f0f0f0u : 0x0f0f0f0fu);
        } else if constexpr (TYPE == TN_TYPE_Q5_K) {
            constexpr int bit = 4 * H + G / 4 * 2 + high;
            return (mr_shift < high ? -4 : 0 > (v)&0x0f0f0f0fu) |
                   (mr_shift<4 - bit>(bits[j % 2][row]) & 0x10101010u);
        } else if constexpr (TYPE == TN_TYPE_Q2_K) {
            return mr_shift<-(G / 2 * 2)>(v) & 0x03030303u;
        } else if constexpr (TYPE == TN_TYPE_Q3_K) {
            return ((mr_shift<5 - G / 2 * 2>(v) & 0x60606060u) ^ 0x80808080u) ^
                   (mr_shift<7 - (4 * H + G / 2)>(bits[j][row]) & 0x80808080u);
        } else { // Q6_K
            constexpr int bit = j / 2 * 2 + 4 * high;
            return ((mr_shift < high ? -2 : 2 > (v)&0x3c3c3c3cu) ^ 0x80808080u) ^
                   (mr_shift<6 - bit>(bits[j % 2][row]) & 0xc0c0c0c0u);
        }
    }
};

// --- types that are unpacked to shared memory -----------------------------------------------------------

// The warp unpacks half h of a tile: rows of 128 bytes whose chunks lie as those of a plane with eight, then
// the scales [row][group].
template <int TYPE>
static __device__ __forceinline__ void mr_expand(const char *slot, const mr_origin &o, char *to, int lane,
                                                 int h)
{
    typedef mr_tile<TYPE> tile;
    int g = lane % 8;
    __syncwarp(); // all lanes have read the half before
#pragma unroll 1
    for (int row = lane / 8; row < MR_ROWS; row += 4) {
        tn_cuda_weight w = {};
#pragma unroll
        for (int i = 0; i < tile::planes; i++) w.plane[i] = mr_row<TYPE>(slot, o, i, row);
        tn_run16 r = tn_unpack16<TYPE>(w, 0, h * MR_HALF + g * 16);
        *(int4 *)(to + row * MR_HALF + (g ^ mr_flip(8, row)) * 16) =
            make_int4(r.q[0], r.q[1], r.q[2], r.q[3]);
        ((float *)(to + MR_ROWS * MR_HALF))[row * 8 + g] = r.d;
    }
    __syncwarp();
}

// --- scales ---------------------------------------------------------------------------------------------

// Scales of a row of a tile. `w` are those of a half tile, of groups of 32 or of 16 elements; all are
// multiplied by d. Where an mma multiplies GROUPS groups of 16 side by side (matvec_rows.cuh), the lane has
// the scales of its group of each GROUPS. m: minimums of groups c and 4 + c (of 32; Q2_K also 8 + c and 12 +
// c, of 16), multiplied by dm.
template <int TYPE, int GROUPS> struct mr_scales {
    typedef mr_kind<TYPE> kind;
    typedef mr_tile<TYPE> tile;
    static constexpr int count = kind::of16 ? 8 / GROUPS : GROUPS == 4 ? 2 : 4; // of a half tile
    float d, dm, w[count], m[TYPE == TN_TYPE_Q2_K ? 4 : 2];
    uint32_t packed[4];

    // The scale of the half that w[i] is, in lane c of a row.
    static __device__ __forceinline__ int index(int i, int c)
    {
        if constexpr (GROUPS == 1)
            return i;
        else if constexpr (GROUPS == 2)
            return kind::of16 ? 2 * i + c / 2 : i;
        else
            return kind::of16 ? 4 * i + c : 2 * i + c / 2;
    }

    __device__ __forceinline__ void set(uint4 v)
    {
        packed[0] = v.x, packed[1] = v.y, packed[2] = v.z, packed[3] = v.w;
    }
    __device__ __forceinline__ void load_k4_k5(uint4 head, int c)
    {
        packed[0] = head.y & 0x3f3f3f3fu, packed[1] = (head.w & 0x0f0f0f0fu) | (head.y >> 2 & 0x30303030u);
        // puts the byte of group c under the exponent of 2^23
        uint32_t byte = 0x7650 + c, b1 = __byte_perm(head.z, 0x4b000000u, byte),
                 b2 = __byte_perm(head.w >> 4, 0x4b000000u, byte);
        m[0] = mr_unbias(b1 & 0x4b00003fu), m[1] = mr_unbias((b2 & 0x4b00000fu) | (b1 >> 2 & 0x30u));
        d = tn_half_bits(head.x & 0xffffu), dm = tn_half_bits(head.x >> 16);
    }
    __device__ __forceinline__ void load_k2(const char *scales, uint32_t head, int c)
    {
        uint4 v = *(const uint4 *)scales;
        set(make_uint4(v.x & 0x0f0f0f0fu, v.y & 0x0f0f0f0fu, v.z & 0x0f0f0f0fu, v.w & 0x0f0f0f0fu));
        const uint32_t *words = &v.x;
#pragma unroll
        for (int i = 0; i < 4; i++) m[i] = mr_byte(words[i] >> (4 + 8 * c) & 15u, 0);
        d = tn_half_bits(head & 0xffffu), dm = tn_half_bits(head >> 16);
    }
    __device__ __forceinline__ void load_k3(const char *scales, uint32_t half)
    {
        const uint32_t *s = (const uint32_t *)scales;
        uint32_t a = s[0], b = s[1], top = s[2];
        packed[0] = (a & 0x0f0f0f0fu) | (top << 4 & 0x30303030u),
        packed[1] = (b & 0x0f0f0f0fu) | (top << 2 & 0x30303030u),
        packed[2] = (a >> 4 & 0x0f0f0f0fu) | (top & 0x30303030u),
        packed[3] = (b >> 4 & 0x0f0f0f0fu) | (top >> 2 & 0x30303030u);
        d = tn_half_bits(half);
    }
    __device__ __forceinline__ void load_iq4_xs(uint2 head)
    {
        uint32_t top = head.x >> 16;
        top = (top | top << 8) & 0x00ff00ffu;
        top = (top | top << 4) & 0x0f0f0f0fu; // of groups 2 i and 2 i + 1 in byte i
        packed[0] = (head.y & 0x0f0f0f0fu) | (top << 4 & 0x30303030u),
        packed[1] = (head.y >> 4 & 0x0f0f0f0fu) | (top << 2 & 0x30303030u);
        d = tn_half_bits(head.x & 0xffffu);
    }
    __device__ __forceinline__ void load(const char *slot, const mr_origin &o, int row, int c)
    {
        constexpr int last = tile::planes - 1;
        d = 1.0f, dm = 0.0f;
        if constexpr (kind::expands) return;
        const char *at = mr_row<TYPE>(slot, o, last, row);
        if constexpr (kind::k4_k5) {
            load_k4_k5(*(const uint4 *)at, c);
        } else if constexpr (kind::k6) {
            // Flipping the sign bit adds 128 to a signed byte; the bias takes it off again.
            uint4 v = *(const uint4 *)mr_row<TYPE>(slot, o, 2, row);
            set(make_uint4(v.x ^ 0x80808080u, v.y ^ 0x80808080u, v.z ^ 0x80808080u, v.w ^ 0x80808080u));
            d = tn_half_bits(*(const uint16_t *)at);
        } else if constexpr (TYPE == TN_TYPE_Q2_K) {
            load_k2(mr_row<TYPE>(slot, o, 1, row), *(const uint32_t *)at, c);
        } else if constexpr (TYPE == TN_TYPE_Q3_K) {
            load_k3(mr_row<TYPE>(slot, o, 2, row), *(const uint16_t *)at);
        } else if constexpr (TYPE == TN_TYPE_IQ4_XS) {
            load_iq4_xs(*(const uint2 *)at);
        } else if constexpr (kind::q8 || TYPE == TN_TYPE_MXFP4) {
            uint2 v = *(const uint2 *)at;
            packed[0] = v.x, packed[1] = v.y;
        } else if constexpr (kind::has_min) { // Q4_1, Q5_1
            dm = -1.0f / kind::inverse;
#pragma unroll
            for (int i = 0; i < 2; i++) m[i] = tn_half_bits(((const uint16_t *)at)[2 * (c + 4 * i) + 1]);
        } else {
            set(*(const uint4 *)at);
        }
    }
    // Scales of half h for lane c of the row.
    __device__ __forceinline__ void unpack(const char *slot, const mr_origin &o, const char *expanded,
                                           int row, int c, int h)
    {
#pragma unroll
        for (int i = 0; i < count; i++) {
            // g / 4 (of16) and g / 2 (of 32) are known to the compiler unless GROUPS says that lanes differ
            const int g = index(i, c), word = i * (kind::of16 ? GROUPS : count == 2 ? 2 : 1);
            if constexpr (kind::expands) {
                w[i] = ((const float *)(expanded + MR_ROWS * MR_HALF))[row * 8 + g];
            } else if constexpr (TYPE == TN_TYPE_Q4_K) {
                // Products of the upper nibbles are 16 times too large, and their scales a sixteenth: the
                // byte is put under the exponent of 2^19.
                const bool high = g % 2 != 0;
                w[i] = __uint_as_float(__byte_perm(packed[h], high ? 0x49000000u : 0x4b000000u, 0x7650 + g)) -
                       (high ? 524288.0f : 8388608.0f);
            } else if constexpr (TYPE == TN_TYPE_Q5_K) {
                w[i] = mr_byte(packed[h], g);
            } else if constexpr (kind::of16) {
                w[i] = mr_byte(packed[2 * h + word / 4], g % 4,
                               kind::k6               ? 128
                               : TYPE == TN_TYPE_Q3_K ? 32
                                                      : 0);
            } else if constexpr (TYPE == TN_TYPE_IQ4_XS) {
                w[i] = mr_byte(g % 2 ? packed[1] : packed[0], 2 * h + word / 2, 32);
            } else if constexpr (TYPE == TN_TYPE_MXFP4) {
                w[i] = tn_half_e8m0(packed[h] >> 8 * g & 255u);
            } else if constexpr (TYPE == TN_TYPE_Q4_1 || TYPE == TN_TYPE_Q5_1) {
                const char *at = mr_row<TYPE>(slot, o, tile::planes - 1, row);
                w[i] = tn_half_bits(((const uint16_t *)at)[2 * (4 * h + g)]);
            } else {
                w[i] = tn_half_bits(packed[2 * h + word / 2] >> 16 * (g % 2) & 0xffffu);
            }
        }
    }
};

#endif
