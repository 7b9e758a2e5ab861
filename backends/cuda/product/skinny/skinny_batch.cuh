// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types as the register operand of wgmma, in the order in which they are stored: a step is
// 16 consecutive values of k, of which lane q of a row has values 4 q to 4 q + 3, as pairs (0, 2) and (1, 3).
// All types have this order, so products of different types read the same x. skinny_tiles.cuh multiplies.
//
// 256 values of a row lie in shared memory as the copy engine brings them: of each plane a matrix of 256
// rows, rows of 128 bytes at most with the swizzle of that width. Steps are expanded in batches of 32 values:
// batch b has steps 2 b and 2 b + 1. skinny_batch<type> has
//     exact      sums have to be multiplied by `factor` of the head; else operands are the weights, rounded
//     small      what a row has of 256 values in planes of less than 16 bytes, loaded from global memory
//     head       what a row needs of 256 values
//     load       words of batch b, some of which later batches use too
//     expand     step s of batch b
// ops/quant/quant_*.c define the types, skinny_expand.cuh says how each keeps to those numbers.
//
// Instructions of a warp for two steps of Q8_0: 4 loads of words, 32 of expansion, 4 for scales. Nothing here
// moves bytes; skinny_tiles.cuh says what bounds the kernel.
#ifndef TN_CUDA_SKINNY_BATCH_CUH
#define TN_CUDA_SKINNY_BATCH_CUH

#include "backends/cuda/product/skinny/skinny_expand.cuh"
#include "backends/cuda/product/skinny/skinny_tiles_args.h"

// --- a row of a stage ------------------------------------------------------------------------------------

// Where planes lie in a stage of 256 x 256 weights. Planes that have less than 16 bytes of 256 values are not
// there.
template <int TYPE> struct skinny_stage_planes {
    static constexpr __host__ __device__ int width(int p) // bytes of a row of a matrix
    {
        int bytes = skinny_slot<TYPE>::bytes(p);
        return bytes < 16 ? 0 : bytes < 128 ? bytes : 128;
    }
    static constexpr __host__ __device__ int matrices(int p)
    {
        return width(p) ? skinny_slot<TYPE>::bytes(p) / width(p) : 0;
    }
    static constexpr __host__ __device__ int start(int p)
    {
        int n = 0;
        for (int i = 0; i < p; i++) n += TN_SKINNY_STAGE_ROWS * width(i) * matrices(i);
        return n;
    }
    static constexpr int size = start(TN_CUDA_MAX_PLANES);
};

// A row of a stage: for each plane the byte of its first chunk, with the bits that the swizzle adds.
template <int TYPE> struct skinny_stage_row {
    const char *shared; // where the ring starts, a multiple of 1024
    int at[TN_CUDA_MAX_PLANES];

    __device__ __forceinline__ void set(const char *ring, int slot, int row)
    {
        shared = ring;
#pragma unroll
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
            constexpr int most = 128;
            int width = skinny_stage_planes<TYPE>::width(p), lines = width ? most / width : 1;
            int bits = width < 32 ? 0 : row / lines % (width / 16);
            at[p] = slot + skinny_stage_planes<TYPE>::start(p) + row * width + 16 * bits;
        }
    }
    // `chunk` of 16 bytes, `byte` of it.
    template <int PLANE, typename T> __device__ __forceinline__ T load(int chunk, int byte) const
    {
        constexpr int width = skinny_stage_planes<TYPE>::width(PLANE);
        int matrix = chunk / (width / 16) * TN_SKINNY_STAGE_ROWS * width;
        return *reinterpret_cast<const T *>(shared +
                                            (((at[PLANE] | byte) ^ chunk % (width / 16) * 16) + matrix));
    }
};

struct skinny_nothing_small {
};

// The defaults of a type.
struct skinny_batch_base {
    static constexpr bool exact = false;
    typedef skinny_nothing_small small;
    static __device__ __forceinline__ void load_small(small &, const tn_cuda_weight &, int64_t, int) {}
};

template <int TYPE> struct skinny_batch;

// --- blocks of 32 with an f16 scale ----------------------------------------------------------------------

template <> struct skinny_batch<TN_TYPE_Q8_0> : skinny_batch_base {
    typedef skinny_stage_row<TN_TYPE_Q8_0> stage_row;
    struct head {
        uint4 d; // of all blocks
        float factor;
    };
    struct raw {
        uint32_t v[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const stage_row &row, const small &, int)
    {
        h.d = row.load<1, uint4>(0, 0);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const stage_row &row, int b, int q)
    {
#pragma unroll
        for (int s = 0; s < 2; s++) r.v[s] = row.load<0, uint32_t>(2 * b + s, 4 * q);
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
    static __device__ __forceinline__ void load_head(head &h, const skinny_stage_row<TYPE> &row,
                                                     const small &, int)
    {
#pragma unroll
        for (int i = 0; i < (offset ? 2 : 1); i++) h.d[i] = row.template load<scale_plane, uint4>(i, 0);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const skinny_stage_row<TYPE> &row,
                                                int b, int q)
    {
        r.v = row.template load<0, uint32_t>(b, 4 * q);
        if constexpr (five_bits) r.bits = row.template load<1, uint32_t>(b / 4, b % 4 * 4) >> 4 * q;
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
    typedef skinny_stage_row<TN_TYPE_IQ4_XS> stage_row;
    typedef uint2 small; // d, upper and lower bits of scales
    struct head {
        uint32_t by[4], rest[4]; // of blocks 2 i and 2 i + 1
        float factor;
    };
    struct raw {
        int v[2];
    };
    static __device__ __forceinline__ void load_small(small &s, const tn_cuda_weight &w, int64_t row,
                                                      int stage)
    {
        s = __ldg((const uint2 *)(w.plane[1] + row * w.row_size[1]) + stage);
    }
    static __device__ __forceinline__ void load_head(head &h, const stage_row &, const small &s, int)
    {
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
        tn_lookup_iq4(row.load<0, uint32_t>(b, 4 * q), r.v[0], r.v[1]);
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
    typedef skinny_stage_row<TN_TYPE_MXFP4> stage_row;
    typedef uint2 small; // the exponents of all blocks
    struct head {
        uint2 e;
        float factor;
    };
    struct raw {
        int v[2];
        uint32_t by[2];
    };
    static __device__ __forceinline__ void load_small(small &s, const tn_cuda_weight &w, int64_t row,
                                                      int stage)
    {
        s = __ldg((const uint2 *)(w.plane[1] + row * w.row_size[1]) + stage);
    }
    static __device__ __forceinline__ void load_head(head &h, const stage_row &, const small &s, int)
    {
        h.e = s;
    }
    static __device__ __forceinline__ void load(raw &r, const head &h, const stage_row &row, int b, int q)
    {
        tn_lookup_fp4(row.load<0, uint32_t>(b, 4 * q), r.v[0], r.v[1]);
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
    typedef skinny_stage_row<TN_TYPE_Q3_K> stage_row;
    struct small {
        uint32_t scales[3];
        uint16_t d;
    };
    struct head {
        uint32_t scales[4]; // bytes of runs 4 i to 4 i + 3, with 32 added
        float factor;
    };
    struct raw {
        uint32_t low[2], high[2];
    };
    static __device__ __forceinline__ void load_small(small &s, const tn_cuda_weight &w, int64_t row,
                                                      int stage)
    {
        const uint32_t *at = (const uint32_t *)(w.plane[2] + row * w.row_size[2]) + 3 * stage;
#pragma unroll
        for (int i = 0; i < 3; i++) s.scales[i] = __ldg(at + i);
        s.d = __ldg((const uint16_t *)(w.plane[3] + row * w.row_size[3]) + stage);
    }
    // Four bits of the scale of run r are in byte r % 8, two in byte 8 + r % 4 at 2 (r / 4).
    static __device__ __forceinline__ void load_head(head &h, const stage_row &, const small &s, int)
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            h.scales[i] =
                (s.scales[i % 2] >> 4 * (i / 2) & 0x0f0f0f0fu) | (s.scales[2] >> 2 * i & 0x03030303u) << 4;
        h.factor = 16777216.0f * tn_half_bits(s.d); // 2^24
    }
    // Batch 4 p + j has runs 8 p + 2 j + s: bits 2 j of the bytes of half p, and a bit for each value.
    static __device__ __forceinline__ void load(raw &r, const head &, const stage_row &row, int b, int q)
    {
        if (b % 4 == 0)
#pragma unroll
            for (int s = 0; s < 2; s++) r.low[s] = row.load<0, uint32_t>(b / 2 + s, 4 * q);
        if (b == 0)
#pragma unroll
            for (int s = 0; s < 2; s++) r.high[s] = row.load<1, uint32_t>(s, 4 * q);
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
