// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of every data type as numbers, read from the planes of backends/planes.def.
//
// All block formats are integers times scales. tn_unpack16<type>(w, row, k) returns the 16 elements k to k +
// 15 of a row (k is a multiple of 16) as int8 in natural order, four to a word, the first one in the lowest
// byte, so that
//   y = d * q                      for most types
//   y = d * q - m                  for those of which tn_has_min(type) is true
// with one d and one m for all 16. 16 is the largest run of elements that has a single scale in every format.
// Dot products use the integers as they are. tn_dequant16 turns them into floats, which have the same bits as
// those of ops/quant/quant_*.c. Plain types have no blocks and are read one element at a time:
// tn_plain<type>(row address, k).
//
// A caller calls this per lane, for a run of its own, so neighbouring lanes read neighbouring bytes of a
// plane. Loads are up to 16 bytes wide, as far as the bytes of a block in its plane keep them aligned. The
// limit depends on the caller: expanding Q4_K to f16 (product/gemm/gemm_prepare.cu) ran at 3.1 TB/s of reads
// and writes, 70 % of the 4.42 TB/s that the device reads at (H200, 2026-11-20), while product/matmul_any.cu
// is bound by the arithmetic of unpacking.
//
// Weights do not change while kernels run, so these loads may stand before tn_pdl_wait().
#ifndef TN_CUDA_DEQUANT_CUH
#define TN_CUDA_DEQUANT_CUH

#include "backends/cuda/common.cuh"

#include <tenon/base.h>

// The grids of the codebook types, compiled from the source of ops/ into tables of the device.
#define TN_OPS_QUANT_TABLES_H
#define const static __device__ const
#include "ops/quant/quant_iq_tables.c"
#undef const

struct tn_run16 {
    int q[4];
    float d, m;
};

static constexpr __host__ __device__ bool tn_is_plain(int type)
{
    return type == TN_TYPE_F32 || type == TN_TYPE_F16 || type == TN_TYPE_BF16 || type == TN_TYPE_F64 ||
           type == TN_TYPE_I8 || type == TN_TYPE_I16 || type == TN_TYPE_I32 || type == TN_TYPE_I64;
}

static constexpr __host__ __device__ bool tn_has_min(int type)
{
    return type == TN_TYPE_Q4_1 || type == TN_TYPE_Q5_1 || type == TN_TYPE_Q2_K || type == TN_TYPE_Q4_K ||
           type == TN_TYPE_Q5_K;
}

// --- pieces ------------------------------------------------------------------------------------------

template <typename T> static __device__ __forceinline__ T tn_at(const char *p)
{
    return *reinterpret_cast<const T *>(p);
}

// The part of block `block` that plane p of a row holds; it has `block_bytes` bytes (backends/planes.def).
static __device__ __forceinline__ const char *tn_plane_block(const tn_cuda_weight &w, int p, int64_t row,
                                                             int64_t block, int block_bytes)
{
    return w.plane[p] + row * w.row_size[p] + block * block_bytes;
}

// The four low bits of `bits`, one into each byte of a word.
static __device__ __forceinline__ int tn_spread_bits(uint32_t bits)
{
    return (int)((bits & 15u) * 0x00204081u & 0x01010101u);
}

// Four codes of 2 bits (or four of 3), one into each of the four low nibbles: the form of a selector of
// __byte_perm, which then looks all four up in a table of up to 8 bytes.
static __device__ __forceinline__ uint32_t tn_spread_codes2(uint32_t c)
{
    c = (c | c << 4) & 0x0f0fu;
    return (c | c << 2) & 0x3333u;
}

static __device__ __forceinline__ uint32_t tn_spread_codes3(uint32_t c)
{
    return (c & 7u) | (c & 0x38u) << 1 | (c & 0x1c0u) << 2 | (c & 0xe00u) << 3;
}

// Byte i of v, negated where bit i of `signs` is set. All bytes of v must be above 0: a zero would carry into
// the next byte.
static __device__ __forceinline__ int tn_negate_bytes(uint32_t v, uint32_t signs)
{
    uint32_t one = (uint32_t)tn_spread_bits(signs);
    return (int)((v ^ one * 255u) + one);
}

// The sign bits of 8 elements from the 7 that are stored: bit 7 is set so that the number of set bits is
// even.
static __device__ __forceinline__ uint32_t tn_iq_signs8(uint32_t s)
{
    s &= 127u;
    return s | (__popc(s) & 1u) << 7;
}

// Looks up 8 codes of 4 bits in a table of 16 int8 (t0 has the values of codes 0 to 3, t1 those of 4 to 7,
// and so on). Values of the even nibbles go to `even`, those of the odd ones to `odd`. Only the low three
// bits of a code select within a __byte_perm; its top bit then selects between the two halves of the table.
static __device__ __forceinline__ void tn_lookup16(uint32_t codes, uint32_t t0, uint32_t t1, uint32_t t2,
                                                   uint32_t t3, int &even, int &odd)
{
    uint32_t low = codes & 0x77777777u, selector = 0x32103210u | (codes & 0x88888888u) >> 1;
    uint32_t a = __byte_perm(__byte_perm(t0, t1, low), __byte_perm(t2, t3, low), selector);
    low >>= 16, selector >>= 16;
    uint32_t b = __byte_perm(__byte_perm(t0, t1, low), __byte_perm(t2, t3, low), selector);
    even = (int)__byte_perm(a, b, 0x6420);
    odd = (int)__byte_perm(a, b, 0x7531);
}

// The table of IQ4_NL and IQ4_XS: -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113.
static __device__ __forceinline__ void tn_lookup_iq4(uint32_t codes, int &even, int &odd)
{
    tn_lookup16(codes, 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u, even, odd);
}

// The values of E2M1, doubled so that they are integers: 0 1 2 3 | 4 6 8 12 | 0 -1 -2 -3 | -4 -6 -8 -12.
static __device__ __forceinline__ void tn_lookup_fp4(uint32_t codes, int &even, int &odd)
{
    tn_lookup16(codes, 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu, even, odd);
}

// Half of an E8M0 scale, because tn_lookup_fp4 doubles the values: 2^(e - 128), a subnormal float for e = 0
// and 1.
static __device__ __forceinline__ float tn_half_e8m0(uint32_t e)
{
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

// Half of an unsigned E4M3 value, for the same reason. 0x7f (NaN) reads as 0; bit 7 is not used.
static __device__ __forceinline__ float tn_half_ue4m3(uint32_t s)
{
    uint32_t exp = s >> 3 & 15u, man = s & 7u;
    if ((s & 127u) == 127u) return 0.0f;
    if (exp == 0) return (float)man * 0.0009765625f;
    return (float)(8 + man) * __uint_as_float((exp + 127 - 11) << 23);
}

// Scale d and minimum m of group g of 32 of Q4_K and Q5_K, from the 16 bytes d, dmin (f16) and 12 bytes of
// 6-bit pairs.
static __device__ __forceinline__ void tn_k4_scales(uint4 head, int g, float &d, float &m)
{
    // Byte g % 4 of the first of the three words holds the 6 bits of scale g % 4 and, above them, the top 2
    // bits of scale 4 + g % 4. The second word holds the same of the minimums. The third word holds the low 4
    // bits of both, of groups 4 to 7.
    int at = 8 * (g & 3);
    uint32_t a = head.y >> at & 255u, b = head.z >> at & 255u, c = head.w >> at & 255u;
    uint32_t sc = g < 4 ? a & 63u : (c & 15u) | a >> 6 << 4, mn = g < 4 ? b & 63u : c >> 4 | b >> 6 << 4;
    d = tn_half_bits(head.x & 0xffffu) * (float)sc;
    m = tn_half_bits(head.x >> 16) * (float)mn;
}

// --- runs of 16 --------------------------------------------------------------------------------------

// One nibble of each of 16 bytes: the low ones are elements 0 to 15 of a block of 32, the high ones elements
// 16 to 31.
static __device__ __forceinline__ void tn_nibbles16(uint4 v, int high, int (&q)[4])
{
    int s = 4 * high;
    q[0] = (int)(v.x >> s & 0x0f0f0f0fu), q[1] = (int)(v.y >> s & 0x0f0f0f0fu);
    q[2] = (int)(v.z >> s & 0x0f0f0f0fu), q[3] = (int)(v.w >> s & 0x0f0f0f0fu);
}

template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_legacy(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    int64_t block = k / 32;
    int high = (int)(k / 16 & 1);
    if constexpr (TYPE == TN_TYPE_Q8_0) {
        uint4 v = tn_at<uint4>(tn_plane_block(w, 0, row, block, 32) + 16 * high);
        r.q[0] = (int)v.x, r.q[1] = (int)v.y, r.q[2] = (int)v.z, r.q[3] = (int)v.w;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 1, row, block, 2)));
        return r;
    }
    tn_nibbles16(tn_at<uint4>(tn_plane_block(w, 0, row, block, 16)), high, r.q);
    constexpr bool five_bits = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1;
    constexpr bool has_min = TYPE == TN_TYPE_Q4_1 || TYPE == TN_TYPE_Q5_1;
    if constexpr (five_bits) {
        uint32_t h = tn_at<uint32_t>(tn_plane_block(w, 1, row, block, 4)) >> 16 * high;
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] |= tn_spread_bits(h >> 4 * i) << 4;
    }
    const char *scales = tn_plane_block(w, five_bits ? 2 : 1, row, block, has_min ? 4 : 2);
    if constexpr (has_min) {
        uint32_t s = tn_at<uint32_t>(scales);
        r.d = tn_half_bits(s & 0xffffu);
        r.m = -tn_half_bits(s >> 16);
    } else {
        r.d = tn_half_bits(tn_at<uint16_t>(scales));
#pragma unroll
        for (int i = 0; i < 4; i++)
            r.q[i] = (int)__vsub4((uint32_t)r.q[i], five_bits ? 0x10101010u : 0x08080808u);
    }
    return r;
}

// The two bits of each of 16 bytes that belong to a run, from a block of 64 bytes of 2-bit codes, as Q2_K,
// Q3_K, Q6_K and TQ2_0 store them: elements 32 * quarter + l of half `half` are bits 2 * quarter of bytes 32
// * half + l.
static __device__ __forceinline__ void tn_bit_pairs16(const char *codes, int run, int (&q)[4])
{
    int half = run / 8, s = 2 * (run % 8 / 2);
    uint4 v = tn_at<uint4>(codes + 32 * half + 16 * (run % 2));
    q[0] = (int)(v.x >> s & 0x03030303u), q[1] = (int)(v.y >> s & 0x03030303u);
    q[2] = (int)(v.z >> s & 0x03030303u), q[3] = (int)(v.w >> s & 0x03030303u);
}

static __device__ __forceinline__ tn_run16 tn_unpack_q2k(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    tn_bit_pairs16(tn_plane_block(w, 0, row, block, 64), run, r.q);
    uint32_t s = tn_at<uint8_t>(tn_plane_block(w, 1, row, block, 16) + run),
             h = tn_at<uint32_t>(tn_plane_block(w, 2, row, block, 4));
    r.d = tn_half_bits(h & 0xffffu) * (float)(s & 15u);
    r.m = tn_half_bits(h >> 16) * (float)(s >> 4);
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_q3k(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    tn_bit_pairs16(tn_plane_block(w, 0, row, block, 64), run, r.q);
    uint4 h = tn_at<uint4>(tn_plane_block(w, 1, row, block, 32) + 16 * (run % 2));
    const uint32_t *high = &h.x;
    int bit = run / 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
        r.q[i] = (int)__vsub4((uint32_t)r.q[i] | (high[i] >> bit & 0x01010101u) << 2, 0x04040404u);
    const char *scales = tn_plane_block(w, 2, row, block, 12);
    int low = tn_at<uint8_t>(scales + run % 8) >> 4 * (run / 8) & 15;
    int top = tn_at<uint8_t>(scales + 8 + run % 4) >> 2 * (run / 4) & 3;
    r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 3, row, block, 2))) * (float)((low | top << 4) - 32);
    return r;
}

template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_q45k(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                          int run)
{
    tn_run16 r = {};
    int g = run / 2;
    tn_nibbles16(tn_at<uint4>(tn_plane_block(w, 0, row, block, 128) + 32 * (g / 2) + 16 * (run % 2)), g % 2,
                 r.q);
    if constexpr (TYPE == TN_TYPE_Q5_K) {
        uint4 h = tn_at<uint4>(tn_plane_block(w, 1, row, block, 32) + 16 * (run % 2));
        const uint32_t *high = &h.x;
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] |= (int)((high[i] >> g & 0x01010101u) << 4);
    }
    tn_k4_scales(tn_at<uint4>(tn_plane_block(w, TYPE == TN_TYPE_Q5_K ? 2 : 1, row, block, 16)), g, r.d, r.m);
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_q6k(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    int half = run / 8, quarter = run % 8 / 2, high[4];
    tn_nibbles16(
        tn_at<uint4>(tn_plane_block(w, 0, row, block, 128) + 64 * half + 32 * (quarter % 2) + 16 * (run % 2)),
        quarter / 2, r.q);
    tn_bit_pairs16(tn_plane_block(w, 1, row, block, 64), run, high);
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = (int)__vsub4((uint32_t)(r.q[i] | high[i] << 4), 0x20202020u);
    r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 3, row, block, 2))) *
          (float)tn_at<int8_t>(tn_plane_block(w, 2, row, block, 16) + run);
    return r;
}

// IQ4_NL, IQ4_XS and MXFP4 look 4-bit codes up in a table of 16 values. The codes lie in the order of Q4_0.
template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_table(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    int64_t group = k / 32;
    int high = (int)(k / 16 & 1);
    uint4 v = tn_at<uint4>(tn_plane_block(w, 0, row, group, 16));
    const uint32_t *codes = &v.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int even, odd;
        if constexpr (TYPE == TN_TYPE_MXFP4) tn_lookup_fp4(codes[i], even, odd);
        else tn_lookup_iq4(codes[i], even, odd);
        r.q[i] = high ? odd : even;
    }
    if constexpr (TYPE == TN_TYPE_MXFP4)
        r.d = tn_half_e8m0(tn_at<uint8_t>(tn_plane_block(w, 1, row, group, 1)));
    else if constexpr (TYPE == TN_TYPE_IQ4_NL)
        r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 1, row, group, 2)));
    else {
        uint2 head = tn_at<uint2>(tn_plane_block(w, 1, row, group / 8, 8));
        int g = (int)(group % 8);
        int s = (int)((head.y >> 4 * g & 15u) | (head.x >> (16 + 2 * g) & 3u) << 4);
        r.d = tn_half_bits(head.x & 0xffffu) * (float)(s - 32);
    }
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_nvfp4(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    int s = (int)(k / 16 & 3);
    uint2 v = tn_at<uint2>(tn_plane_block(w, 0, row, k / 64, 32) + 8 * s);
    tn_lookup_fp4(v.x, r.q[0], r.q[2]);
    tn_lookup_fp4(v.y, r.q[1], r.q[3]);
    r.d = tn_half_ue4m3(tn_at<uint8_t>(tn_plane_block(w, 1, row, k / 64, 4) + s));
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_tq1(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    // TQ1_0 stores five ternary digits in a byte. Runs 0 to 9 are digit run / 2 of bytes 0 to 31, runs 10 to
    // 14 are digit run - 10 of bytes 32 to 47. Run 15 comes from the four bytes of plane 1, of which word i
    // of the result takes digit i.
    const char *at = tn_plane_block(w, 0, row, block, 48);
    uint4 v;
    if (run < 15) v = tn_at<uint4>(at + (run < 10 ? 16 * (run % 2) : 32));
    else
        v.x = v.y = v.z = v.w = tn_at<uint32_t>(tn_plane_block(w, 1, row, block, 4));
    const uint32_t *bytes = &v.x;
    int digit = run < 10 ? run / 2 : run - 10;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int n = run < 15 ? digit : i;
        uint32_t power = n == 0 ? 1u : n == 1 ? 3u : n == 2 ? 9u : n == 3 ? 27u : 81u;
        uint32_t a = (bytes[i] & 0x00ff00ffu) * power & 0x00ff00ffu,
                 b = (bytes[i] >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
        uint32_t q = (a * 3u >> 8 & 0x00ff00ffu) | (b * 3u & 0xff00ff00u);
        r.q[i] = (int)__vsub4(q, 0x01010101u);
    }
    r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 2, row, block, 2)));
    return r;
}

// TQ2_0, Q1_0 and Q2_0: codes of 1 or 2 bits, stored as the value plus 1.
template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_1_2bit(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    constexpr int elems = TYPE == TN_TYPE_TQ2_0 ? 256 : TYPE == TN_TYPE_Q1_0 ? 128 : 64;
    int64_t block = k / elems;
    int run = (int)(k / 16 % (elems / 16));
    if constexpr (TYPE == TN_TYPE_TQ2_0) {
        tn_bit_pairs16(tn_plane_block(w, 0, row, block, 64), run, r.q);
    } else if constexpr (TYPE == TN_TYPE_Q1_0) {
        uint32_t bits = tn_at<uint16_t>(tn_plane_block(w, 0, row, block, 16) + 2 * run);
#pragma unroll
        // 2 or 0; 1 is subtracted below
        for (int i = 0; i < 4; i++) r.q[i] = tn_spread_bits(bits >> 4 * i) << 1;
    } else {
        uint32_t codes = tn_at<uint32_t>(tn_plane_block(w, 0, row, block, 16) + 4 * run);
#pragma unroll
        for (int i = 0; i < 4; i++)
            r.q[i] = (int)__byte_perm(0x03020100u, 0, tn_spread_codes2(codes >> 8 * i & 255u));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = (int)__vsub4((uint32_t)r.q[i], 0x01010101u);
    r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 1, row, block, 2)));
    return r;
}

// --- codebooks ---------------------------------------------------------------------------------------

// The 8 elements of a row of an IQ2 grid, whose 2-bit codes stand for 8, 25 and 43, with their signs.
static __device__ __forceinline__ void tn_iq2_grid_row(uint32_t row, uint32_t signs, int &a, int &b)
{
    a = tn_negate_bytes(__byte_perm(0x002b1908u, 0, tn_spread_codes2(row & 255u)), signs);
    b = tn_negate_bytes(__byte_perm(0x002b1908u, 0, tn_spread_codes2(row >> 8)), signs >> 4);
}

// The 8 elements of a row of the IQ1 grid, whose 2-bit codes stand for -1, 0 and 1: 8 times the element plus
// or minus 1. The format shifts elements by an eighth, so in eighths of the scale both are integers.
static __device__ __forceinline__ void tn_iq1_grid_row(uint32_t row, bool minus, int &a, int &b)
{
    uint32_t levels = minus ? 0x0007fff7u : 0x000901f9u;
    a = (int)__byte_perm(levels, 0, tn_spread_codes2(row & 255u));
    b = (int)__byte_perm(levels, 0, tn_spread_codes2(row >> 8));
}

template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_iq2(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    const char *codes = tn_plane_block(w, 0, row, block, 64);
    uint32_t s;
    if constexpr (TYPE == TN_TYPE_IQ2_XXS) {
        uint2 v = tn_at<uint2>(codes + 8 * (run / 2));
        int l = 2 * (run % 2);
        s = v.y >> 28;
        tn_iq2_grid_row(tn_iq2xxs_grid[v.x >> 8 * l & 255u], tn_iq_signs8(v.y >> 7 * l), r.q[0], r.q[1]);
        tn_iq2_grid_row(tn_iq2xxs_grid[v.x >> (8 * l + 8) & 255u], tn_iq_signs8(v.y >> (7 * l + 7)), r.q[2],
                        r.q[3]);
    } else if constexpr (TYPE == TN_TYPE_IQ2_XS) {
        uint32_t v = tn_at<uint32_t>(codes + 4 * run);
        s = tn_at<uint8_t>(tn_plane_block(w, 1, row, block, 8) + run / 2) >> 4 * (run % 2) & 15u;
        tn_iq2_grid_row(tn_iq2xs_grid[v & 511u], tn_iq_signs8(v >> 9), r.q[0], r.q[1]);
        tn_iq2_grid_row(tn_iq2xs_grid[v >> 16 & 511u], tn_iq_signs8(v >> 25), r.q[2], r.q[3]);
    } else {
        uint32_t low = tn_at<uint16_t>(codes + 2 * run), signs = tn_at<uint16_t>(codes + 32 + 2 * run);
        const char *rest = tn_plane_block(w, 1, row, block, 16);
        uint32_t high = tn_at<uint8_t>(rest + run / 2) >> 4 * (run % 2);
        s = tn_at<uint8_t>(rest + 8 + run / 2) >> 4 * (run % 2) & 15u;
        tn_iq2_grid_row(tn_iq2s_grid[(low & 255u) | (high & 3u) << 8], signs, r.q[0], r.q[1]);
        tn_iq2_grid_row(tn_iq2s_grid[low >> 8 | (high & 12u) << 6], signs >> 8, r.q[2], r.q[3]);
    }
    r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, TYPE == TN_TYPE_IQ2_XXS ? 1 : 2, row, block, 2))) *
          (0.5f + (float)s) * 0.25f;
    return r;
}

template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_iq3(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    constexpr bool xxs = TYPE == TN_TYPE_IQ3_XXS;
    const char *codes = tn_plane_block(w, 0, row, block, xxs ? 96 : 64);
    uint32_t low = tn_at<uint32_t>(codes + 4 * run), high = 0, signs;
    if constexpr (xxs) {
        uint32_t word = tn_at<uint32_t>(codes + 64 + 4 * (run / 2)), l = 2 * (run % 2);
        signs = tn_iq_signs8(word >> 7 * l) | tn_iq_signs8(word >> (7 * l + 7)) << 8;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 1, row, block, 2))) *
              (0.5f + (float)(word >> 28)) * 0.5f;
    } else {
        const char *rest = tn_plane_block(w, 2, row, block, 12);
        signs = tn_at<uint16_t>(tn_plane_block(w, 1, row, block, 32) + 2 * run);
        high = tn_at<uint8_t>(rest + run / 2) >> 4 * (run % 2);
        uint32_t s = tn_at<uint8_t>(rest + 8 + run / 4) >> 4 * (run / 2 % 2) & 15u;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 3, row, block, 2))) * (float)(1 + 2 * s);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t index = (low >> 8 * i & 255u) | (high >> i & 1u) << 8;
        uint32_t selector = tn_spread_codes3(xxs ? tn_iq3xxs_grid[index & 255u] : tn_iq3s_grid[index]);
        uint32_t v = xxs ? __byte_perm(0x1c140c04u, 0x3e342c24u, selector)
                         : __byte_perm(0x07050301u, 0x0f0d0b09u, selector);
        r.q[i] = tn_negate_bytes(v, signs >> 4 * i);
    }
    return r;
}

// IQ1_S and IQ1_M: q is 8 times the element plus its shift (tn_iq1_grid_row), so the scale is an eighth of
// the stored one.
template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_iq1(const tn_cuda_weight &w, int64_t row, int64_t block,
                                                         int run)
{
    tn_run16 r = {};
    uint32_t low = tn_at<uint16_t>(tn_plane_block(w, 0, row, block, 32) + 2 * run), first, second, scale;
    bool minus[2];
    if constexpr (TYPE == TN_TYPE_IQ1_S) {
        uint32_t h = tn_at<uint16_t>(tn_plane_block(w, 1, row, block, 16) + 2 * (run / 2));
        first = h >> 6 * (run % 2), second = first >> 3;
        minus[0] = minus[1] = h >> 15;
        scale = h >> 12 & 7u;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_plane_block(w, 2, row, block, 2)));
    } else {
        uint32_t nibbles = tn_at<uint8_t>(tn_plane_block(w, 1, row, block, 16) + run);
        uint2 s = tn_at<uint2>(tn_plane_block(w, 2, row, block, 8));
        first = nibbles, second = nibbles >> 4;
        minus[0] = nibbles & 8u, minus[1] = nibbles & 128u;
        scale = (run < 8 ? s.x : s.y) >> (16 * (run / 4 % 2) + 3 * (run % 4)) & 7u;
        r.d = tn_half_bits((s.x >> 12 & 15u) | (s.x >> 28 << 4) | (s.y >> 12 & 15u) << 8 | (s.y >> 28 << 12));
    }
    r.d *= (float)(2 * scale + 1) * 0.125f;
    tn_iq1_grid_row(tn_iq1_grid[(low & 255u) | (first & 7u) << 8], minus[0], r.q[0], r.q[1]);
    tn_iq1_grid_row(tn_iq1_grid[low >> 8 | (second & 7u) << 8], minus[1], r.q[2], r.q[3]);
    return r;
}

// Q8_1 and Q8_K have no row in backends/planes.def: their blocks lie in plane 0 as they do in files.
template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack_file_block(const tn_cuda_weight &w, int64_t row,
                                                                int64_t k)
{
    tn_run16 r = {};
    constexpr int elems = TYPE == TN_TYPE_Q8_1 ? 32 : 256, size = TYPE == TN_TYPE_Q8_1 ? 36 : 292;
    const char *codes = tn_plane_block(w, 0, row, k / elems, size);
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = tn_at<int>(codes + 4 + k % elems + 4 * i);
    r.d = TYPE == TN_TYPE_Q8_1 ? tn_half_bits(tn_at<uint16_t>(codes)) : tn_at<float>(codes);
    return r;
}

// --- any type ----------------------------------------------------------------------------------------

template <int TYPE>
static __device__ __forceinline__ tn_run16 tn_unpack16(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    static_assert(!tn_is_plain(TYPE), "plain types have no blocks");
    int64_t block = k / 256;
    int run = (int)(k / 16 & 15);
    if constexpr (TYPE == TN_TYPE_Q2_K) return tn_unpack_q2k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q3_K) return tn_unpack_q3k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K)
        return tn_unpack_q45k<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q6_K) return tn_unpack_q6k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ4_NL || TYPE == TN_TYPE_IQ4_XS || TYPE == TN_TYPE_MXFP4)
        return tn_unpack_table<TYPE>(w, row, k);
    else if constexpr (TYPE == TN_TYPE_NVFP4) return tn_unpack_nvfp4(w, row, k);
    else if constexpr (TYPE == TN_TYPE_TQ1_0) return tn_unpack_tq1(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_TQ2_0 || TYPE == TN_TYPE_Q1_0 || TYPE == TN_TYPE_Q2_0)
        return tn_unpack_1_2bit<TYPE>(w, row, k);
    else if constexpr (TYPE == TN_TYPE_IQ2_XXS || TYPE == TN_TYPE_IQ2_XS || TYPE == TN_TYPE_IQ2_S)
        return tn_unpack_iq2<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ3_XXS || TYPE == TN_TYPE_IQ3_S)
        return tn_unpack_iq3<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ1_S || TYPE == TN_TYPE_IQ1_M)
        return tn_unpack_iq1<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q8_1 || TYPE == TN_TYPE_Q8_K)
        return tn_unpack_file_block<TYPE>(w, row, k);
    else return tn_unpack_legacy<TYPE>(w, row, k);
}

// The 16 elements as floats.
template <int TYPE>
static __device__ __forceinline__ void tn_dequant16(const tn_cuda_weight &w, int64_t row, int64_t k,
                                                    float (&y)[16])
{
    tn_run16 r = tn_unpack16<TYPE>(w, row, k);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float q = (float)(int8_t)(r.q[i / 4] >> 8 * (i % 4));
        // r.d * q is exact, so with or without a fused multiply-add there is one rounding.
        y[i] = tn_has_min(TYPE) ? r.d * q - r.m : r.d * q;
    }
}

// Element k of a row of a plain type.
template <int TYPE> static __device__ __forceinline__ float tn_plain(const char *row, int64_t k)
{
    if constexpr (TYPE == TN_TYPE_F32) return tn_at<float>(row + 4 * k);
    else if constexpr (TYPE == TN_TYPE_F16) return tn_half_bits(tn_at<uint16_t>(row + 2 * k));
    else if constexpr (TYPE == TN_TYPE_BF16)
        return __uint_as_float((uint32_t)tn_at<uint16_t>(row + 2 * k) << 16);
    else if constexpr (TYPE == TN_TYPE_F64) return (float)tn_at<double>(row + 8 * k);
    else if constexpr (TYPE == TN_TYPE_I8) return (float)tn_at<int8_t>(row + k);
    else if constexpr (TYPE == TN_TYPE_I16) return (float)tn_at<int16_t>(row + 2 * k);
    else if constexpr (TYPE == TN_TYPE_I32) return (float)tn_at<int32_t>(row + 4 * k);
    else return (float)tn_at<int64_t>(row + 8 * k);
}

// Calls CASE(type) for each type that has a float meaning, in a switch over the types.
#define TN_EACH_PLAIN_TYPE(CASE) \
    CASE(F32) CASE(F16) CASE(BF16) CASE(F64) CASE(I8) CASE(I16) CASE(I32) CASE(I64)
#define TN_EACH_BLOCK_TYPE(CASE)                                                                             \
    CASE(Q4_0)                                                                                               \
    CASE(Q4_1)                                                                                               \
    CASE(Q5_0) CASE(Q5_1) CASE(Q8_0) CASE(Q8_1) CASE(Q2_K) CASE(Q3_K) CASE(Q4_K) CASE(Q5_K) CASE(Q6_K)       \
        CASE(Q8_K) CASE(IQ4_NL) CASE(IQ4_XS) CASE(MXFP4) CASE(IQ2_XXS) CASE(IQ2_XS) CASE(IQ2_S)              \
            CASE(IQ3_XXS) CASE(IQ3_S) CASE(IQ1_S) CASE(IQ1_M) CASE(TQ1_0) CASE(TQ2_0) CASE(NVFP4) CASE(Q1_0) \
                CASE(Q2_0)

#endif
