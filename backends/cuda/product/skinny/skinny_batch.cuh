// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types as the register operand of wgmma, in the order in which they are stored: a step is
// 16 consecutive values of k, of which lane q of a row has values 4 q to 4 q + 3, as pairs (0, 2) and (1, 3).
// All types have this order, so products of different types read the same x. skinny_stream.cuh multiplies.
//
// Steps are expanded in batches of 32 values: batch b has steps 2 b and 2 b + 1. skinny_batch<type> has
//     exact      sums have to be multiplied by `factor` of the head; else operands are the weights, rounded
//     minimums   the head has minimums: `minimum` of runs q and q + 4 of 32 values, to be multiplied by the
//                sums of x, and `offset`, which multiplies what comes out
//     unit       what all sums have to be multiplied by at the end
//     head       what a row needs of 256 values
//     load       words of batch b, some of which later batches use too
//     expand     step s of batch b
// ops/quant/quant_*.c define the types, skinny_expand.cuh says how each keeps to those numbers.
//
// Instructions of a warp for two steps of Q8_0: 4 loads of words, 32 of expansion, 4 for scales. Nothing here
// moves bytes; skinny_stream.cuh says what bounds the kernel.
#ifndef TN_CUDA_SKINNY_BATCH_CUH
#define TN_CUDA_SKINNY_BATCH_CUH

#include "backends/cuda/product/skinny/skinny_expand.cuh"

// A row of 256 values in shared memory: planes one after another, in pieces of 16 bytes. Planes with a
// multiple of 16 bytes lie there as they are, of others all aligned pieces that their bytes may touch.
template <int TYPE> struct skinny_stream_layout {
    static constexpr __host__ __device__ int bytes(int p) { return skinny_slot<TYPE>::bytes(p); }
    static constexpr __host__ __device__ bool whole(int p) { return bytes(p) % 16 == 0; }
    static constexpr __host__ __device__ int pieces(int p)
    {
        return whole(p) ? bytes(p) / 16 : 16 % bytes(p) == 0 ? 1 : (bytes(p) + 30) / 16;
    }
    static constexpr __host__ __device__ int first_piece(int p)
    {
        int n = 0;
        for (int i = 0; i < p; i++) n += pieces(i);
        return n;
    }
    static constexpr int row_bytes = TN_SKINNY_ROW_BYTES(first_piece(TN_CUDA_MAX_PLANES));
};

template <int TYPE> struct skinny_stream_row {
    const char *at;
    uint32_t
        shift[TN_CUDA_MAX_PLANES]; // bytes before the row in its first piece, for planes that are not whole

    template <int PLANE, typename T> __device__ __forceinline__ T load(int byte) const
    {
        typedef skinny_stream_layout<TYPE> layout;
        const char *from = at + 16 * layout::first_piece(PLANE) + (layout::whole(PLANE) ? 0u : shift[PLANE]);
        return *reinterpret_cast<const T *>(from + byte);
    }
};

// The defaults of a type.
struct skinny_batch_base {
    static constexpr float unit = 1.0f;
    static constexpr bool exact = false, minimums = false;
};

template <int TYPE> struct skinny_batch;

// --- Q4_K, Q5_K, Q6_K ------------------------------------------------------------------------------------

template <int TYPE> struct skinny_k4_k5_batch {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_K;
    static constexpr bool exact = true, minimums = true;
    static constexpr float unit = 0x1p24f;
    static constexpr int scale_plane = five_bits ? 2 : 1;
    struct head {
        // Scales of groups 0 and 2, 4 and 6, and of those behind them; the latter are a sixteenth for Q4_K,
        // whose nibbles are multiplied in place.
        uint32_t even[2], odd[2], minimum[2];
        float factor, offset;
    };
    struct raw {
        uint32_t v[2], bits[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const skinny_stream_row<TYPE> &row, int q)
    {
        uint4 all = row.template load<scale_plane, uint4>(0);
        // Scales of groups 0 and 2, or 4 and 6, at bits 0 and 16, and of the groups behind them.
        uint32_t even[2] = {all.y & 0x003f003fu, (all.w & 0x000f000fu) | (all.y >> 2 & 0x00300030u)},
                 odd[2] = {all.y >> 8 & 0x003f003fu,
                           (all.w >> 8 & 0x000f000fu) | (all.y >> 10 & 0x00300030u)};
#pragma unroll
        for (int i = 0; i < 2; i++) { // 1024 + scale, less 1024
            h.even[i] = skinny_add(even[i] | 0x64006400u, 0xe400e400u);
            h.odd[i] = five_bits ? skinny_add(odd[i] | 0x64006400u, 0xe400e400u)
                                 : skinny_fma(odd[i] | 0x64006400u, 0x2c002c00u, 0xd400d400u);
        }
        // Minimums of groups q and q + 4, in steps of 2^-24, each twice.
        uint32_t low = __byte_perm(all.z, 0, 0x4040u + 0x0101u * q),
                 high = __byte_perm(all.w, 0, 0x4040u + 0x0101u * q);
        h.minimum[0] = low & 0x003f003fu;
        h.minimum[1] = (high >> 4 & 0x000f000fu) | (low >> 2 & 0x00300030u);
        h.factor = tn_half_bits(all.x & 0xffffu);
        h.offset = 32.0f * tn_half_bits(all.x >> 16);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const skinny_stream_row<TYPE> &row,
                                                int b, int q)
    {
        if (b % 2 == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) r.v[i] = row.template load<0, uint32_t>(16 * b + 16 * i + 4 * q);
        if (five_bits && b == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) r.bits[i] = row.template load<1, uint32_t>(16 * i + 4 * q);
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t w = r.v[s], by = skinny_broadcast_half(b % 2 ? h.odd[b / 4] : h.even[b / 4], b / 2 % 2);
        if constexpr (five_bits) {
            uint32_t high = b <= 4 ? r.bits[s] << (4 - b) : r.bits[s] >> (b - 4);
            w = ((b % 2 ? w >> 4 : w) & 0x0f0f0f0fu) | (high & 0x10101010u);
            first = skinny_mul(skinny_even(w), by);
            second = skinny_mul(skinny_odd(w), by);
        } else {
            uint32_t mask = b % 2 ? 0x00f000f0u : 0x000f000fu;
            first = skinny_mul(w & mask, by);
            second = skinny_mul(w >> 8 & mask, by);
        }
    }
};

template <> struct skinny_batch<TN_TYPE_Q4_K> : skinny_k4_k5_batch<TN_TYPE_Q4_K> {
};
template <> struct skinny_batch<TN_TYPE_Q5_K> : skinny_k4_k5_batch<TN_TYPE_Q5_K> {
};

// Integers times scales have 12 bits, one more than f16: those above 2048 are rounded to even ones, 2^-12 of
// the weight at most. Two operands that keep all bits took 1.75 times as long.
template <> struct skinny_batch<TN_TYPE_Q6_K> : skinny_batch_base {
    static constexpr bool exact = true;
    static constexpr float unit = 0x1p24f;
    struct head {
        uint4 s;
        float factor;
    };
    struct raw {
        uint32_t low[4], high[2];
        uint32_t by[2], zero[2]; // of four runs: of 0 and 2, of 1 and 3
    };
    static __device__ __forceinline__ void load_head(head &h, const skinny_stream_row<TN_TYPE_Q6_K> &row, int)
    {
        h.s = row.template load<2, uint4>(0);
        h.factor = tn_half_bits(row.template load<3, uint16_t>(0));
    }
    // Batch 4 p + j has runs 8 p + 2 j + s.
    static __device__ __forceinline__ void load(raw &r, const head &h,
                                                const skinny_stream_row<TN_TYPE_Q6_K> &row, int b, int q)
    {
        int p = b / 4, j = b % 4;
        if (j < 2)
#pragma unroll
            for (int s = 0; s < 2; s++)
                r.low[2 * j + s] = row.template load<0, uint32_t>(64 * p + 32 * j + 16 * s + 4 * q);
        if (j == 0)
#pragma unroll
            for (int s = 0; s < 2; s++) r.high[s] = row.template load<1, uint32_t>(32 * p + 16 * s + 4 * q);
        if (b % 2) return;
        uint32_t four = skinny_word(h.s, b / 2) ^ 0x80808080u;
#pragma unroll
        for (int i = 0; i < 2; i++) { // 1152 + scale, less 1152; -32 steps of 2^-24
            r.by[i] = skinny_add(((i ? four >> 8 : four) & 0x00ff00ffu) | 0x64006400u, 0xe480e480u);
            r.zero[i] = skinny_mul(r.by[i], 0x80208020u);
        }
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        int j = b % 4;
        uint32_t low = r.low[j % 2 * 2 + s],
                 high = j < 2 ? r.high[s] << (4 - 2 * j) : r.high[s] >> (2 * j - 4);
        uint32_t v = ((j / 2 ? low >> 4 : low) & 0x0f0f0f0fu) | (high & 0x30303030u);
        uint32_t by = skinny_broadcast_half(r.by[s], j % 2), zero = skinny_broadcast_half(r.zero[s], j % 2);
        first = skinny_fma(skinny_even(v), by, zero);
        second = skinny_fma(skinny_odd(v), by, zero);
    }
};

// --- blocks of 32 with an f16 scale ----------------------------------------------------------------------

template <> struct skinny_batch<TN_TYPE_Q8_0> : skinny_batch_base {
    typedef skinny_stream_row<TN_TYPE_Q8_0> stage_row;
    struct head {
        uint4 d; // of all blocks
        float factor;
    };
    struct raw {
        uint32_t v[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const stage_row &row, int)
    {
        h.d = row.template load<1, uint4>(0);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const stage_row &row, int b, int q)
    {
#pragma unroll
        for (int s = 0; s < 2; s++) r.v[s] = row.template load<0, uint32_t>(32 * b + 16 * s + 4 * q);
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t d = skinny_broadcast_half(skinny_word(h.d, b / 2), b % 2);
        skinny_signed(r.v[s], first, second);
        first = skinny_mul(first, d), second = skinny_mul(second, d);
    }
};

// Types of nibbles: the low ones of the 16 bytes of a block are its first 16 values.
template <int TYPE> struct skinny_batch_nibbles : skinny_batch_base {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1, offset = tn_has_min(TYPE),
                          codebook = TYPE == TN_TYPE_IQ4_NL;
    static constexpr int scale_plane = five_bits ? 2 : 1;
    struct head {
        uint4 d[offset ? 2 : 1]; // of all blocks, with their minimums if there are such
        float factor;
    };
    struct raw {
        uint32_t v, bits;
    };
    static __device__ __forceinline__ void load_head(head &h, const skinny_stream_row<TYPE> &row, int)
    {
#pragma unroll
        for (int i = 0; i < (offset ? 2 : 1); i++) h.d[i] = row.template load<scale_plane, uint4>(16 * i);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const skinny_stream_row<TYPE> &row,
                                                int b, int q)
    {
        r.v = row.template load<0, uint32_t>(16 * b + 4 * q);
        if constexpr (five_bits) r.bits = row.template load<1, uint32_t>(4 * b) >> 4 * q;
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t word = skinny_word(h.d[offset ? b / 4 : 0], offset ? b % 4 : b / 2),
                 d = skinny_broadcast_half(word, !offset && b % 2), m = skinny_broadcast_half(word, true);
        if constexpr (codebook) {
            int even, odd;
            tn_lookup_iq4(r.v, even, odd);
            skinny_signed((uint32_t)(s ? odd : even), first, second);
        } else if constexpr (five_bits) {
            uint32_t bytes = ((s ? r.v >> 4 : r.v) & 0x0f0f0f0fu) | (uint32_t)tn_spread_bits(r.bits >> 16 * s)
                                                                        << 4;
            const uint32_t zero = offset ? 0xe400e400u : 0xe410e410u; // -1024, -1040
            first = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4240), zero);
            second = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4341), zero);
        } else if (s == 0) {                                          // 1024 + q
            const uint32_t zero = offset ? 0xe400e400u : 0xe408e408u; // -1024, -1032
            first = skinny_add((r.v & 0x000f000fu) | 0x64006400u, zero);
            second = skinny_add((r.v >> 8 & 0x000f000fu) | 0x64006400u, zero);
        } else {                                                      // 1024 + 16 q
            const uint32_t zero = offset ? 0xd400d400u : 0xd480d480u; // -64, -72
            first = skinny_fma((r.v & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
            second = skinny_fma((r.v >> 8 & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
        }
        first = offset ? skinny_fma(first, d, m) : skinny_mul(first, d);
        second = offset ? skinny_fma(second, d, m) : skinny_mul(second, d);
    }
};

template <> struct skinny_batch<TN_TYPE_Q4_0> : skinny_batch_nibbles<TN_TYPE_Q4_0> {
};
template <> struct skinny_batch<TN_TYPE_Q4_1> : skinny_batch_nibbles<TN_TYPE_Q4_1> {
};
template <> struct skinny_batch<TN_TYPE_Q5_0> : skinny_batch_nibbles<TN_TYPE_Q5_0> {
};
template <> struct skinny_batch<TN_TYPE_Q5_1> : skinny_batch_nibbles<TN_TYPE_Q5_1> {
};
template <> struct skinny_batch<TN_TYPE_IQ4_NL> : skinny_batch_nibbles<TN_TYPE_IQ4_NL> {
};

// --- IQ4_XS ----------------------------------------------------------------------------------------------

// The f16 scale of 256 values is a power of two times a mantissa. The latter times the integer scale of a
// block has 17 bits: two f16, their sum times the integers of the table rounded once, as the weight would be.
template <> struct skinny_batch<TN_TYPE_IQ4_XS> : skinny_batch_base {
    static constexpr bool exact = true;
    typedef skinny_stream_row<TN_TYPE_IQ4_XS> stage_row;
    struct head {
        uint32_t by[4], rest[4]; // of blocks 2 i and 2 i + 1
        float factor;
    };
    struct raw {
        int v[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const stage_row &row, int)
    {
        uint2 s = row.template load<1, uint2>(0); // d, upper and lower bits of scales
        float d = tn_half_bits(s.x & 0xffffu);
        uint32_t bits = __float_as_uint(d), power = bits & 0x7f800000u, high = s.x >> 16;
        bool normal = power != 0 && power != 0x7f800000u; // of f32, as all but 0, infinities and NaN are
        float mantissa = normal ? __uint_as_float((bits & 0x807fffffu) | 0x3f800000u) : 1.0f;
        h.factor = normal ? __uint_as_float(power) : d;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t low = s.y >> 8 * i, top = high >> 4 * i, a = (low & 15u) | (top & 3u) << 4,
                     b = (low >> 4 & 15u) | (top >> 2 & 3u) << 4;
            // A byte b in the low bits of 2^23 is the float 2^23 + b.
            float x = mantissa * (__uint_as_float(0x4b000000u + a) - 8388640.0f),
                  y = mantissa * (__uint_as_float(0x4b000000u + b) - 8388640.0f);
            __half2 by = __floats2half2_rn(x, y);
            __half2 rest = __floats2half2_rn(x - __low2float(by), y - __high2float(by));
            h.by[i] = *(uint32_t *)&by, h.rest[i] = *(uint32_t *)&rest;
        }
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const stage_row &row, int b, int q)
    {
        tn_lookup_iq4(row.template load<0, uint32_t>(16 * b + 4 * q), r.v[0], r.v[1]);
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t by = skinny_broadcast_half(h.by[b / 2], b % 2),
                 rest = skinny_broadcast_half(h.rest[b / 2], b % 2);
        skinny_signed((uint32_t)r.v[s], first, second);
        first = skinny_fma(first, by, skinny_mul(first, rest));
        second = skinny_fma(second, by, skinny_mul(second, rest));
    }
};

// --- MXFP4 -----------------------------------------------------------------------------------------------

// Doubled values of the table times half a power of two: as two factors, because one may be no f16.
template <> struct skinny_batch<TN_TYPE_MXFP4> : skinny_batch_base {
    typedef skinny_stream_row<TN_TYPE_MXFP4> stage_row;
    struct head {
        uint2 e;
        float factor;
    };
    struct raw {
        int v[2];
        uint32_t by[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const stage_row &row, int)
    {
        h.e = row.template load<1, uint2>(0);
    }
    static __device__ __forceinline__ void load(raw &r, const head &h, const stage_row &row, int b, int q)
    {
        tn_lookup_fp4(row.template load<0, uint32_t>(16 * b + 4 * q), r.v[0], r.v[1]);
        int e = (int)((b < 4 ? h.e.x : h.e.y) >> 8 * (b % 4) & 255u) - 128; // the power
        // The first factor is a normal f16, the other one may be as small as its smallest, or zero.
        int first = min(max(e, -14), 15), rest = min(e - first, 15);
        uint32_t second = rest >= -14 ? (uint32_t)(rest + 15) << 10 : rest >= -24 ? 1u << (rest + 24) : 0u;
        r.by[0] = (uint32_t)(first + 15) * 0x04000400u, r.by[1] = second * 0x00010001u;
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &, int, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        skinny_signed((uint32_t)r.v[s], first, second);
        first = skinny_mul(skinny_mul(first, r.by[0]), r.by[1]);
        second = skinny_mul(skinny_mul(second, r.by[0]), r.by[1]);
    }
};

// --- Q3_K ------------------------------------------------------------------------------------------------

template <> struct skinny_batch<TN_TYPE_Q3_K> : skinny_batch_base {
    static constexpr bool exact = true;
    static constexpr float unit = 0x1p24f;
    typedef skinny_stream_row<TN_TYPE_Q3_K> stage_row;
    struct head {
        uint32_t scales[4]; // bytes of runs 4 i to 4 i + 3, with 32 added
        float factor;
    };
    struct raw {
        uint32_t low[2], high[2];
    };
    // Four bits of the scale of run r are in byte r % 8, two in byte 8 + r % 4 at 2 (r / 4).
    static __device__ __forceinline__ void load_head(head &h, const stage_row &row, int)
    {
        uint32_t scales[3];
#pragma unroll
        for (int i = 0; i < 3; i++) scales[i] = row.template load<2, uint32_t>(4 * i);
#pragma unroll
        for (int i = 0; i < 4; i++)
            h.scales[i] = (scales[i % 2] >> 4 * (i / 2) & 0x0f0f0f0fu) | (scales[2] >> 2 * i & 0x03030303u)
                                                                             << 4;
        h.factor = tn_half_bits(row.template load<3, uint16_t>(0));
    }
    // Batch 4 p + j has runs 8 p + 2 j + s: bits 2 j of the bytes of half p, and a bit for each value.
    static __device__ __forceinline__ void load(raw &r, const head &, const stage_row &row, int b, int q)
    {
        if (b % 4 == 0)
#pragma unroll
            for (int s = 0; s < 2; s++) r.low[s] = row.template load<0, uint32_t>(8 * b + 16 * s + 4 * q);
        if (b == 0)
#pragma unroll
            for (int s = 0; s < 2; s++) r.high[s] = row.template load<1, uint32_t>(16 * s + 4 * q);
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s, uint32_t &first,
                                                  uint32_t &second)
    {
        int run = 2 * b + s;
        uint32_t by = skinny_add(skinny_byte(h.scales[run / 4], run % 4), 0xd000d000u), // -32
            zero = skinny_mul(by, 0x80048004u),                                         // -4 steps of 2^-24
            w = (r.low[s] >> 2 * (b % 4) & 0x03030303u) | (r.high[s] >> b & 0x01010101u) << 2;
        first = skinny_fma(skinny_even(w), by, zero);
        second = skinny_fma(skinny_odd(w), by, zero);
    }
};

#endif
