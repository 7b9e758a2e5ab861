// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of every type as numbers, from the planes of backends/planes.def.
//
// All block formats are integers times scales: tn_unpack16<type>(w, row, k) gives the 16 elements k .. k + 15 of
// a row (k a multiple of 16) as int8 in natural order, four to a word, the first one lowest, with
//     y = d * q        and, where tn_has_min(type),      y = d * q - m
// d and m being one for the run. Dot products use them as they are; tn_dequant16 makes floats of them, the same
// bits as ops/quant_*.c. 16 is the largest run that all formats have one scale for. Plain types, which have no
// blocks, are read by single elements: tn_plain<type>(row address, k).
//
// Loads are up to 16 bytes wide, as far as the units of the planes keep them aligned. Weights do not change while
// kernels run: these loads may stand before tn_pdl_wait().
#ifndef TN_CUDA_DEQUANT_CUH
#define TN_CUDA_DEQUANT_CUH

#include "backends/cuda/common.cuh"

#include <tenon/base.h>

// The grids of ops/, as tables of the device.
#define TN_OPS_QUANT_TABLES_H
#define const static __device__ const
#include "ops/quant_iq_tables.c"
#undef const

struct tn_run16 {
    int q[4];
    float d, m;
};

static constexpr __host__ __device__ bool tn_is_plain(int type)
{
    return type == TN_TYPE_F32 || type == TN_TYPE_F16 || type == TN_TYPE_BF16 || type == TN_TYPE_F64 || type == TN_TYPE_I8 ||
           type == TN_TYPE_I16 || type == TN_TYPE_I32 || type == TN_TYPE_I64;
}

static constexpr __host__ __device__ bool tn_has_min(int type)
{
    return type == TN_TYPE_Q4_1 || type == TN_TYPE_Q5_1 || type == TN_TYPE_Q2_K || type == TN_TYPE_Q4_K || type == TN_TYPE_Q5_K;
}

// --- pieces ------------------------------------------------------------------------------------------

template <typename T> static __device__ __forceinline__ T tn_at(const char *p)
{
    return *reinterpret_cast<const T *>(p);
}

// Unit `block` of plane p of a row.
static __device__ __forceinline__ const char *tn_unit(const tn_cuda_weight &w, int p, int64_t row, int64_t block, int unit)
{
    return w.plane[p] + row * w.row_size[p] + block * unit;
}

// Four bits, one into each byte.
static __device__ __forceinline__ int tn_spread_bits(uint32_t bits)
{
    return (int)((bits & 15u) * 0x00204081u & 0x01010101u);
}

// Four codes of 2 bits (or 4 of 3), one into each of the lowest nibbles: a selector of __byte_perm.
static __device__ __forceinline__ uint32_t tn_spread_codes2(uint32_t c)
{
    c = (c | c << 4) & 0x0f0fu;
    return (c | c << 2) & 0x3333u;
}

static __device__ __forceinline__ uint32_t tn_spread_codes3(uint32_t c)
{
    return (c & 7u) | (c & 0x38u) << 1 | (c & 0x1c0u) << 2 | (c & 0xe00u) << 3;
}

// v or -v in each byte, for v > 0, by the four low bits of `signs`.
static __device__ __forceinline__ int tn_negate_bytes(uint32_t v, uint32_t signs)
{
    uint32_t one = (uint32_t)tn_spread_bits(signs);
    return (int)((v ^ one * 255u) + one);
}

// Sign bits of 8 elements from the 7 stored ones: bit 7 makes their number even.
static __device__ __forceinline__ uint32_t tn_iq_signs8(uint32_t s)
{
    s &= 127u;
    return s | (__popc(s) & 1u) << 7;
}

// Values of 8 codes of 4 bits in tables of 16 int8 (t0: codes 0-3 and so on): even nibbles to `even`, odd to `odd`.
static __device__ __forceinline__ void tn_lookup16(uint32_t codes, uint32_t t0, uint32_t t1, uint32_t t2, uint32_t t3, int &even, int &odd)
{
    uint32_t low = codes & 0x77777777u, pick = 0x32103210u | (codes & 0x88888888u) >> 1;
    uint32_t a = __byte_perm(__byte_perm(t0, t1, low), __byte_perm(t2, t3, low), pick);
    low >>= 16, pick >>= 16;
    uint32_t b = __byte_perm(__byte_perm(t0, t1, low), __byte_perm(t2, t3, low), pick);
    even = (int)__byte_perm(a, b, 0x6420);
    odd = (int)__byte_perm(a, b, 0x7531);
}

// -127 -104 -83 -65 | -49 -35 -22 -10 | 1 13 25 38 | 53 69 89 113
static __device__ __forceinline__ void tn_lookup_iq4(uint32_t codes, int &even, int &odd)
{
    tn_lookup16(codes, 0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u, even, odd);
}

// 0 1 2 3 | 4 6 8 12 | 0 -1 -2 -3 | -4 -6 -8 -12: E2M1 doubled
static __device__ __forceinline__ void tn_lookup_fp4(uint32_t codes, int &even, int &odd)
{
    tn_lookup16(codes, 0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu, even, odd);
}

// 2^(e - 128); subnormal for e = 0 and 1.
static __device__ __forceinline__ float tn_half_e8m0(uint32_t e)
{
    return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

// Half of an unsigned E4M3 value; 0x7f reads as 0, bit 7 is not used.
static __device__ __forceinline__ float tn_half_ue4m3(uint32_t s)
{
    uint32_t exp = s >> 3 & 15u, man = s & 7u;
    if ((s & 127u) == 127u) return 0.0f;
    if (exp == 0) return (float)man * 0.0009765625f;
    return (float)(8 + man) * __uint_as_float((exp + 127 - 11) << 23);
}

// Scale and minimum of group g of Q4_K and Q5_K from the 16 bytes d, dmin, 12 bytes of 6-bit pairs.
static __device__ __forceinline__ void tn_k4_scales(uint4 head, int g, float &d, float &m)
{
    // Bytes g % 4 of the three words: 6 bits and high bits of group 4 + g % 4; the same of mins; low nibbles of both.
    int at = 8 * (g & 3);
    uint32_t a = head.y >> at & 255u, b = head.z >> at & 255u, c = head.w >> at & 255u;
    uint32_t sc = g < 4 ? a & 63u : (c & 15u) | a >> 6 << 4, mn = g < 4 ? b & 63u : c >> 4 | b >> 6 << 4;
    d = tn_half_bits(head.x & 0xffffu) * (float)sc;
    m = tn_half_bits(head.x >> 16) * (float)mn;
}

// --- runs of 16 --------------------------------------------------------------------------------------

// Nibbles of 16 bytes: the low ones are elements 0-15 of a block of 32, the high ones 16-31.
static __device__ __forceinline__ void tn_nibbles16(uint4 v, int high, int (&q)[4])
{
    int s = 4 * high;
    q[0] = (int)(v.x >> s & 0x0f0f0f0fu), q[1] = (int)(v.y >> s & 0x0f0f0f0fu);
    q[2] = (int)(v.z >> s & 0x0f0f0f0fu), q[3] = (int)(v.w >> s & 0x0f0f0f0fu);
}

template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_legacy(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    int64_t block = k / 32;
    int high = (int)(k / 16 & 1);
    if constexpr (TYPE == TN_TYPE_Q8_0) {
        uint4 v = tn_at<uint4>(tn_unit(w, 0, row, block, 32) + 16 * high);
        r.q[0] = (int)v.x, r.q[1] = (int)v.y, r.q[2] = (int)v.z, r.q[3] = (int)v.w;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 1, row, block, 2)));
        return r;
    }
    tn_nibbles16(tn_at<uint4>(tn_unit(w, 0, row, block, 16)), high, r.q);
    constexpr bool five = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1;
    constexpr bool min = TYPE == TN_TYPE_Q4_1 || TYPE == TN_TYPE_Q5_1;
    if constexpr (five) {
        uint32_t h = tn_at<uint32_t>(tn_unit(w, 1, row, block, 4)) >> 16 * high;
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] |= tn_spread_bits(h >> 4 * i) << 4;
    }
    const char *scales = tn_unit(w, five ? 2 : 1, row, block, min ? 4 : 2);
    if constexpr (min) {
        uint32_t s = tn_at<uint32_t>(scales);
        r.d = tn_half_bits(s & 0xffffu);
        r.m = -tn_half_bits(s >> 16);
    } else {
        r.d = tn_half_bits(tn_at<uint16_t>(scales));
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] = (int)__vsub4((uint32_t)r.q[i], five ? 0x10101010u : 0x08080808u);
    }
    return r;
}

// Bits 2 * quarter of bytes 32 * half + l of a plane of 64-byte units: the 2-bit scheme of Q2_K, Q3_K, Q6_K, TQ2_0.
static __device__ __forceinline__ void tn_pairs16(const char *unit, int run, int (&q)[4])
{
    int half = run / 8, s = 2 * (run % 8 / 2);
    uint4 v = tn_at<uint4>(unit + 32 * half + 16 * (run % 2));
    q[0] = (int)(v.x >> s & 0x03030303u), q[1] = (int)(v.y >> s & 0x03030303u);
    q[2] = (int)(v.z >> s & 0x03030303u), q[3] = (int)(v.w >> s & 0x03030303u);
}

static __device__ __forceinline__ tn_run16 tn_unpack_q2k(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    tn_pairs16(tn_unit(w, 0, row, block, 64), run, r.q);
    uint32_t s = tn_at<uint8_t>(tn_unit(w, 1, row, block, 16) + run), h = tn_at<uint32_t>(tn_unit(w, 2, row, block, 4));
    r.d = tn_half_bits(h & 0xffffu) * (float)(s & 15u);
    r.m = tn_half_bits(h >> 16) * (float)(s >> 4);
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_q3k(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    tn_pairs16(tn_unit(w, 0, row, block, 64), run, r.q);
    uint4 h = tn_at<uint4>(tn_unit(w, 1, row, block, 32) + 16 * (run % 2));
    const uint32_t *high = &h.x;
    int bit = run / 2;
#pragma unroll
    for (int i = 0; i < 4; i++)
        r.q[i] = (int)__vsub4((uint32_t)r.q[i] | (high[i] >> bit & 0x01010101u) << 2, 0x04040404u);
    const char *scales = tn_unit(w, 2, row, block, 12);
    int low = tn_at<uint8_t>(scales + run % 8) >> 4 * (run / 8) & 15;
    int top = tn_at<uint8_t>(scales + 8 + run % 4) >> 2 * (run / 4) & 3;
    r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 3, row, block, 2))) * (float)((low | top << 4) - 32);
    return r;
}

template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_q45k(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    int g = run / 2;
    tn_nibbles16(tn_at<uint4>(tn_unit(w, 0, row, block, 128) + 32 * (g / 2) + 16 * (run % 2)), g % 2, r.q);
    if constexpr (TYPE == TN_TYPE_Q5_K) {
        uint4 h = tn_at<uint4>(tn_unit(w, 1, row, block, 32) + 16 * (run % 2));
        const uint32_t *high = &h.x;
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] |= (int)((high[i] >> g & 0x01010101u) << 4);
    }
    tn_k4_scales(tn_at<uint4>(tn_unit(w, TYPE == TN_TYPE_Q5_K ? 2 : 1, row, block, 16)), g, r.d, r.m);
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_q6k(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    int half = run / 8, quarter = run % 8 / 2, high[4];
    tn_nibbles16(tn_at<uint4>(tn_unit(w, 0, row, block, 128) + 64 * half + 32 * (quarter % 2) + 16 * (run % 2)), quarter / 2, r.q);
    tn_pairs16(tn_unit(w, 1, row, block, 64), run, high);
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = (int)__vsub4((uint32_t)(r.q[i] | high[i] << 4), 0x20202020u);
    r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 3, row, block, 2))) * (float)tn_at<int8_t>(tn_unit(w, 2, row, block, 16) + run);
    return r;
}

// IQ4_NL, IQ4_XS, MXFP4: tables of 16 values under nibbles in the order of Q4_0.
template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_table(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    int64_t group = k / 32;
    int high = (int)(k / 16 & 1);
    uint4 v = tn_at<uint4>(tn_unit(w, 0, row, group, 16));
    const uint32_t *codes = &v.x;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int even, odd;
        if constexpr (TYPE == TN_TYPE_MXFP4) tn_lookup_fp4(codes[i], even, odd);
        else tn_lookup_iq4(codes[i], even, odd);
        r.q[i] = high ? odd : even;
    }
    if constexpr (TYPE == TN_TYPE_MXFP4) r.d = tn_half_e8m0(tn_at<uint8_t>(tn_unit(w, 1, row, group, 1)));
    else if constexpr (TYPE == TN_TYPE_IQ4_NL) r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 1, row, group, 2)));
    else {
        uint2 head = tn_at<uint2>(tn_unit(w, 1, row, group / 8, 8));
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
    uint2 v = tn_at<uint2>(tn_unit(w, 0, row, k / 64, 32) + 8 * s);
    tn_lookup_fp4(v.x, r.q[0], r.q[2]);
    tn_lookup_fp4(v.y, r.q[1], r.q[3]);
    r.d = tn_half_ue4m3(tn_at<uint8_t>(tn_unit(w, 1, row, k / 64, 4) + s));
    return r;
}

static __device__ __forceinline__ tn_run16 tn_unpack_tq1(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    // Runs 0-9: bytes 0-31, digit run / 2. 10-14: bytes 32-47. 15: the four bytes apart, digit i in word i.
    const char *at = tn_unit(w, 0, row, block, 48);
    uint4 v;
    if (run < 15) v = tn_at<uint4>(at + (run < 10 ? 16 * (run % 2) : 32));
    else v.x = v.y = v.z = v.w = tn_at<uint32_t>(tn_unit(w, 1, row, block, 4));
    const uint32_t *bytes = &v.x;
    int digit = run < 10 ? run / 2 : run - 10;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int n = run < 15 ? digit : i;
        uint32_t power = n == 0 ? 1u : n == 1 ? 3u : n == 2 ? 9u : n == 3 ? 27u : 81u;
        uint32_t a = (bytes[i] & 0x00ff00ffu) * power & 0x00ff00ffu, b = (bytes[i] >> 8 & 0x00ff00ffu) * power & 0x00ff00ffu;
        uint32_t q = (a * 3u >> 8 & 0x00ff00ffu) | (b * 3u & 0xff00ff00u);
        r.q[i] = (int)__vsub4(q, 0x01010101u);
    }
    r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 2, row, block, 2)));
    return r;
}

// TQ2_0, Q1_0, Q2_0
template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_1_2bit(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    constexpr int elems = TYPE == TN_TYPE_TQ2_0 ? 256 : TYPE == TN_TYPE_Q1_0 ? 128 : 64;
    int64_t block = k / elems;
    int run = (int)(k / 16 % (elems / 16));
    if constexpr (TYPE == TN_TYPE_TQ2_0) {
        tn_pairs16(tn_unit(w, 0, row, block, 64), run, r.q);
    } else if constexpr (TYPE == TN_TYPE_Q1_0) {
        uint32_t bits = tn_at<uint16_t>(tn_unit(w, 0, row, block, 16) + 2 * run);
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] = tn_spread_bits(bits >> 4 * i) << 1; // 2 or 0, less 1
    } else {
        uint32_t codes = tn_at<uint32_t>(tn_unit(w, 0, row, block, 16) + 4 * run);
#pragma unroll
        for (int i = 0; i < 4; i++) r.q[i] = (int)__byte_perm(0x03020100u, 0, tn_spread_codes2(codes >> 8 * i & 255u));
    }
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = (int)__vsub4((uint32_t)r.q[i], 0x01010101u);
    r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 1, row, block, 2)));
    return r;
}

// --- codebooks ---------------------------------------------------------------------------------------

// 8 elements of a grid row of 2-bit codes for 8, 25, 43.
static __device__ __forceinline__ void tn_iq2_row(uint32_t row, uint32_t signs, int &a, int &b)
{
    a = tn_negate_bytes(__byte_perm(0x002b1908u, 0, tn_spread_codes2(row & 255u)), signs);
    b = tn_negate_bytes(__byte_perm(0x002b1908u, 0, tn_spread_codes2(row >> 8)), signs >> 4);
}

// 8 elements for -1, 0, 1, times 8, plus or minus 1.
static __device__ __forceinline__ void tn_iq1_row(uint32_t row, bool minus, int &a, int &b)
{
    uint32_t levels = minus ? 0x0007fff7u : 0x000901f9u;
    a = (int)__byte_perm(levels, 0, tn_spread_codes2(row & 255u));
    b = (int)__byte_perm(levels, 0, tn_spread_codes2(row >> 8));
}

template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_iq2(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    const char *unit = tn_unit(w, 0, row, block, 64);
    uint32_t s;
    if constexpr (TYPE == TN_TYPE_IQ2_XXS) {
        uint2 v = tn_at<uint2>(unit + 8 * (run / 2));
        int l = 2 * (run % 2);
        s = v.y >> 28;
        tn_iq2_row(tn_iq2xxs_grid[v.x >> 8 * l & 255u], tn_iq_signs8(v.y >> 7 * l), r.q[0], r.q[1]);
        tn_iq2_row(tn_iq2xxs_grid[v.x >> (8 * l + 8) & 255u], tn_iq_signs8(v.y >> (7 * l + 7)), r.q[2], r.q[3]);
    } else if constexpr (TYPE == TN_TYPE_IQ2_XS) {
        uint32_t v = tn_at<uint32_t>(unit + 4 * run);
        s = tn_at<uint8_t>(tn_unit(w, 1, row, block, 8) + run / 2) >> 4 * (run % 2) & 15u;
        tn_iq2_row(tn_iq2xs_grid[v & 511u], tn_iq_signs8(v >> 9), r.q[0], r.q[1]);
        tn_iq2_row(tn_iq2xs_grid[v >> 16 & 511u], tn_iq_signs8(v >> 25), r.q[2], r.q[3]);
    } else {
        uint32_t low = tn_at<uint16_t>(unit + 2 * run), signs = tn_at<uint16_t>(unit + 32 + 2 * run);
        const char *rest = tn_unit(w, 1, row, block, 16);
        uint32_t high = tn_at<uint8_t>(rest + run / 2) >> 4 * (run % 2);
        s = tn_at<uint8_t>(rest + 8 + run / 2) >> 4 * (run % 2) & 15u;
        tn_iq2_row(tn_iq2s_grid[(low & 255u) | (high & 3u) << 8], signs, r.q[0], r.q[1]);
        tn_iq2_row(tn_iq2s_grid[low >> 8 | (high & 12u) << 6], signs >> 8, r.q[2], r.q[3]);
    }
    r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, TYPE == TN_TYPE_IQ2_XXS ? 1 : 2, row, block, 2))) * (0.5f + (float)s) * 0.25f;
    return r;
}

template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_iq3(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    constexpr bool xxs = TYPE == TN_TYPE_IQ3_XXS;
    const char *unit = tn_unit(w, 0, row, block, xxs ? 96 : 64);
    uint32_t low = tn_at<uint32_t>(unit + 4 * run), high = 0, signs;
    if constexpr (xxs) {
        uint32_t word = tn_at<uint32_t>(unit + 64 + 4 * (run / 2)), l = 2 * (run % 2);
        signs = tn_iq_signs8(word >> 7 * l) | tn_iq_signs8(word >> (7 * l + 7)) << 8;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 1, row, block, 2))) * (0.5f + (float)(word >> 28)) * 0.5f;
    } else {
        const char *rest = tn_unit(w, 2, row, block, 12);
        signs = tn_at<uint16_t>(tn_unit(w, 1, row, block, 32) + 2 * run);
        high = tn_at<uint8_t>(rest + run / 2) >> 4 * (run % 2);
        uint32_t s = tn_at<uint8_t>(rest + 8 + run / 4) >> 4 * (run / 2 % 2) & 15u;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 3, row, block, 2))) * (float)(1 + 2 * s);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        uint32_t index = (low >> 8 * i & 255u) | (high >> i & 1u) << 8;
        uint32_t pick = tn_spread_codes3(xxs ? tn_iq3xxs_grid[index & 255u] : tn_iq3s_grid[index]);
        uint32_t v = xxs ? __byte_perm(0x1c140c04u, 0x3e342c24u, pick) : __byte_perm(0x07050301u, 0x0f0d0b09u, pick);
        r.q[i] = tn_negate_bytes(v, signs >> 4 * i);
    }
    return r;
}

// The shift of an eighth makes 8 q + shift the integer, of an eighth of the scale.
template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_iq1(const tn_cuda_weight &w, int64_t row, int64_t block, int run)
{
    tn_run16 r = {};
    uint32_t low = tn_at<uint16_t>(tn_unit(w, 0, row, block, 32) + 2 * run), first, second, scale;
    bool minus[2];
    if constexpr (TYPE == TN_TYPE_IQ1_S) {
        uint32_t h = tn_at<uint16_t>(tn_unit(w, 1, row, block, 16) + 2 * (run / 2));
        first = h >> 6 * (run % 2), second = first >> 3;
        minus[0] = minus[1] = h >> 15;
        scale = h >> 12 & 7u;
        r.d = tn_half_bits(tn_at<uint16_t>(tn_unit(w, 2, row, block, 2)));
    } else {
        uint32_t nibbles = tn_at<uint8_t>(tn_unit(w, 1, row, block, 16) + run);
        uint2 s = tn_at<uint2>(tn_unit(w, 2, row, block, 8));
        first = nibbles, second = nibbles >> 4;
        minus[0] = nibbles & 8u, minus[1] = nibbles & 128u;
        scale = (run < 8 ? s.x : s.y) >> (16 * (run / 4 % 2) + 3 * (run % 4)) & 7u;
        r.d = tn_half_bits((s.x >> 12 & 15u) | (s.x >> 28 << 4) | (s.y >> 12 & 15u) << 8 | (s.y >> 28 << 12));
    }
    r.d *= (float)(2 * scale + 1) * 0.125f;
    tn_iq1_row(tn_iq1_grid[(low & 255u) | (first & 7u) << 8], minus[0], r.q[0], r.q[1]);
    tn_iq1_row(tn_iq1_grid[low >> 8 | (second & 7u) << 8], minus[1], r.q[2], r.q[3]);
    return r;
}

// Q8_1 and Q8_K lie as in files.
template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack_raw(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    tn_run16 r = {};
    constexpr int elems = TYPE == TN_TYPE_Q8_1 ? 32 : 256, size = TYPE == TN_TYPE_Q8_1 ? 36 : 292;
    const char *unit = tn_unit(w, 0, row, k / elems, size);
#pragma unroll
    for (int i = 0; i < 4; i++) r.q[i] = tn_at<int>(unit + 4 + k % elems + 4 * i);
    r.d = TYPE == TN_TYPE_Q8_1 ? tn_half_bits(tn_at<uint16_t>(unit)) : tn_at<float>(unit);
    return r;
}

// --- any type ----------------------------------------------------------------------------------------

template <int TYPE> static __device__ __forceinline__ tn_run16 tn_unpack16(const tn_cuda_weight &w, int64_t row, int64_t k)
{
    static_assert(!tn_is_plain(TYPE), "plain types have no blocks");
    int64_t block = k / 256;
    int run = (int)(k / 16 & 15);
    if constexpr (TYPE == TN_TYPE_Q2_K) return tn_unpack_q2k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q3_K) return tn_unpack_q3k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K) return tn_unpack_q45k<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q6_K) return tn_unpack_q6k(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ4_NL || TYPE == TN_TYPE_IQ4_XS || TYPE == TN_TYPE_MXFP4) return tn_unpack_table<TYPE>(w, row, k);
    else if constexpr (TYPE == TN_TYPE_NVFP4) return tn_unpack_nvfp4(w, row, k);
    else if constexpr (TYPE == TN_TYPE_TQ1_0) return tn_unpack_tq1(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_TQ2_0 || TYPE == TN_TYPE_Q1_0 || TYPE == TN_TYPE_Q2_0) return tn_unpack_1_2bit<TYPE>(w, row, k);
    else if constexpr (TYPE == TN_TYPE_IQ2_XXS || TYPE == TN_TYPE_IQ2_XS || TYPE == TN_TYPE_IQ2_S) return tn_unpack_iq2<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ3_XXS || TYPE == TN_TYPE_IQ3_S) return tn_unpack_iq3<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_IQ1_S || TYPE == TN_TYPE_IQ1_M) return tn_unpack_iq1<TYPE>(w, row, block, run);
    else if constexpr (TYPE == TN_TYPE_Q8_1 || TYPE == TN_TYPE_Q8_K) return tn_unpack_raw<TYPE>(w, row, k);
    else return tn_unpack_legacy<TYPE>(w, row, k);
}

// The run as floats.
template <int TYPE> static __device__ __forceinline__ void tn_dequant16(const tn_cuda_weight &w, int64_t row, int64_t k, float (&y)[16])
{
    tn_run16 r = tn_unpack16<TYPE>(w, row, k);
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float q = (float)(int8_t)(r.q[i / 4] >> 8 * (i % 4));
        // The product is exact: fused or not, there is one rounding.
        y[i] = tn_has_min(TYPE) ? r.d * q - r.m : r.d * q;
    }
}

// Element k of a row of a plain type.
template <int TYPE> static __device__ __forceinline__ float tn_plain(const char *row, int64_t k)
{
    if constexpr (TYPE == TN_TYPE_F32) return tn_at<float>(row + 4 * k);
    else if constexpr (TYPE == TN_TYPE_F16) return tn_half_bits(tn_at<uint16_t>(row + 2 * k));
    else if constexpr (TYPE == TN_TYPE_BF16) return __uint_as_float((uint32_t)tn_at<uint16_t>(row + 2 * k) << 16);
    else if constexpr (TYPE == TN_TYPE_F64) return (float)tn_at<double>(row + 8 * k);
    else if constexpr (TYPE == TN_TYPE_I8) return (float)tn_at<int8_t>(row + k);
    else if constexpr (TYPE == TN_TYPE_I16) return (float)tn_at<int16_t>(row + 2 * k);
    else if constexpr (TYPE == TN_TYPE_I32) return (float)tn_at<int32_t>(row + 4 * k);
    else return (float)tn_at<int64_t>(row + 8 * k);
}

// Calls CASE(type) for each type that has a float meaning, in a switch over the types.
#define TN_EACH_PLAIN_TYPE(CASE) \
    CASE(F32) CASE(F16) CASE(BF16) CASE(F64) CASE(I8) CASE(I16) CASE(I32) CASE(I64)
#define TN_EACH_BLOCK_TYPE(CASE) \
    CASE(Q4_0) CASE(Q4_1) CASE(Q5_0) CASE(Q5_1) CASE(Q8_0) CASE(Q8_1) CASE(Q2_K) CASE(Q3_K) CASE(Q4_K) CASE(Q5_K) \
    CASE(Q6_K) CASE(Q8_K) CASE(IQ4_NL) CASE(IQ4_XS) CASE(MXFP4) CASE(IQ2_XXS) CASE(IQ2_XS) CASE(IQ2_S) CASE(IQ3_XXS) \
    CASE(IQ3_S) CASE(IQ1_S) CASE(IQ1_M) CASE(TQ1_0) CASE(TQ2_0) CASE(NVFP4) CASE(Q1_0) CASE(Q2_0)

#endif
