// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types in shared memory, expanded into f16 operands of wgmma, for gemm_blocks.cuh.
//
// A slot of shared memory has 256 of k of the rows of a tile, plane after plane. Lane q = 0 to 3 of a row
// takes bytes 4 q to 4 q + 3 of each run of 16 values, which are the operand of one step of wgmma: the pairs
// of values (0, 2) and (1, 3) of the lane. Two steps are a batch, so a slot has eight batches.
// gemm_expander<type> has
//     scales    what a row needs of a slot: load_scales
//     raw       words of a batch, some of which the next batch uses too: load
//     factors   multipliers of a batch: load_factors
//     expand    step s of batch b
//
// The numbers are those of ops/quant/quant_*.c, rounded to f16 once. Codes become f16 two at a time, as
// 1024 + q less 1024. With a minimum the weight is computed in f32: a minimum rounded to f16 would be an
// error that all weights of a group share, so that sums do not average it, and a minimum subtracted in two
// exact f16 parts rounds small weights twice. Without one the code times its integer scale has at most 11
// bits, which f16 holds, and the f16 scale of the block multiplies that. With Q6_K and IQ4_XS it has 12, so
// these are computed in f32, too: weights that are rounded twice fail the check of gated pairs.
#ifndef TN_CUDA_GEMM_EXPAND_CUH
#define TN_CUDA_GEMM_EXPAND_CUH

#include "backends/cuda/product/gemm/gemm_blocks_args.h"
#include "backends/cuda/dequant.cuh"

// --- half2 in a register -----------------------------------------------------------------------------

static __device__ __forceinline__ uint32_t gemm_mul2(uint32_t a, uint32_t b)
{
    __half2 v = __hmul2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t gemm_add2(uint32_t a, uint32_t b)
{
    __half2 v = __hadd2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t gemm_fma2(uint32_t a, uint32_t b, uint32_t c)
{
    __half2 v = __hfma2(*(const __half2 *)&a, *(const __half2 *)&b, *(const __half2 *)&c);
    return *(const uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t gemm_low2(uint32_t v)
{
    return __byte_perm(v, 0, 0x1010);
}

static __device__ __forceinline__ uint32_t gemm_high2(uint32_t v)
{
    return __byte_perm(v, 0, 0x3232);
}

// Byte i of v as f16, in both halves: 0x6400 + b is 1024 + b.
static __device__ __forceinline__ uint32_t gemm_byte2(uint32_t v, int i)
{
    return gemm_add2(__byte_perm(v, 0x64u, 0x4040u + 0x0101u * (uint32_t)i), 0xe400e400u);
}

// Byte i of v as f32: a byte b in the low bits of 2^23 is the float 2^23 + b.
static __device__ __forceinline__ float gemm_byte_float(uint32_t v, int i)
{
    return __uint_as_float(__byte_perm(v, 0x4b000000u, 0x7540u + (uint32_t)i)) - 8388608.0f;
}

// Two f16 times d plus c, computed in f32 and rounded to f16 once.
static __device__ __forceinline__ uint32_t gemm_fma_float(uint32_t v, float d, float c)
{
    float2 w = __half22float2(*(const __half2 *)&v);
    __half2 r = __floats2half2_rn(__fmaf_rn(w.x, d, c), __fmaf_rn(w.y, d, c));
    return *(const uint32_t *)&r;
}

// Bytes 0 and 2, 1 and 3 of v as 1024 + b.
static __device__ __forceinline__ uint32_t gemm_even2(uint32_t v)
{
    return __byte_perm(v, 0x64646464u, 0x4240);
}

static __device__ __forceinline__ uint32_t gemm_odd2(uint32_t v)
{
    return __byte_perm(v, 0x64646464u, 0x4341);
}

// --- planes in shared memory -------------------------------------------------------------------------

struct gemm_plane_field {
    int start, size, plane, at;
};
template <int TYPE> struct gemm_plane_fields;
#define TN_PLANES(dtype, ...)                                                                                \
    template <> struct gemm_plane_fields<TN_TYPE_##dtype> {                                                  \
        static constexpr __host__ __device__ int block_bytes(int p)                                          \
        {                                                                                                    \
            const gemm_plane_field all[] = {__VA_ARGS__};                                                    \
            int n = 0;                                                                                       \
            for (const gemm_plane_field &f : all) n += f.plane == p ? f.size : 0;                            \
            return n;                                                                                        \
        }                                                                                                    \
    };
#include "backends/planes.def"

static constexpr __host__ __device__ int gemm_block_elems(int type)
{
#define TN_DTYPE(name, elems, size, id) type == TN_TYPE_##name ? elems:
    return
#include <tenon/dtypes.def>
        1;
}

// A slot with ROWS rows. Planes of more than 128 bytes for 256 of k lie in panels of 128. Rows of 128, 64 and
// 32 bytes have the swizzle of that width, so that eight rows and four lanes read 32 banks.
template <int TYPE, int ROWS> struct gemm_slot {
    static constexpr __host__ __device__ int bytes(int p) // of a row
    {
        return gemm_plane_fields<TYPE>::block_bytes(p) * (TN_GEMM_BLOCK_K / gemm_block_elems(TYPE));
    }
    static constexpr __host__ __device__ bool copied(int p) // by tensor copies
    {
        return bytes(p) > 0 && bytes(p) % 16 == 0;
    }
    static constexpr __host__ __device__ int width(int p) { return bytes(p) > 128 ? 128 : bytes(p); }
    static constexpr __host__ __device__ int panels(int p) { return bytes(p) > 128 ? bytes(p) / 128 : 1; }
    static constexpr __host__ __device__ int start(int p)
    {
        int n = 0;
        for (int i = 0; i < p; i++) n += (ROWS * bytes(i) + 127) / 128 * 128;
        return n;
    }
    static constexpr int size = (start(TN_CUDA_MAX_PLANES) + 1023) / 1024 * 1024;
    static constexpr __host__ __device__ int copied_bytes()
    {
        int n = 0;
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) n += copied(p) ? ROWS * bytes(p) : 0;
        return n;
    }
    static constexpr __host__ __device__ bool has_small()
    {
        bool any = false;
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) any = any || (bytes(p) > 0 && !copied(p));
        return any;
    }
};

// A lane's view of a slot: `row` is its first row, a multiple of 8 plus lane / 4; `q` is lane % 4. Further
// rows are multiples of 8 behind it.
template <int TYPE, int ROWS> struct gemm_lane {
    const char *slot;
    int row, q;
    int b0; // the batch of the slot that counts as batch 0

    // Bytes of plane P before batch b0.
    template <int P> __device__ __forceinline__ uint32_t skipped() const
    {
        return (uint32_t)(b0 * gemm_slot<TYPE, ROWS>::bytes(P) / 8);
    }

    // The word of bytes 16 * chunk + 4 q of the row that is `behind` rows behind.
    template <int P> __device__ __forceinline__ uint32_t word(int behind, int chunk) const
    {
        typedef gemm_slot<TYPE, ROWS> s;
        constexpr int w = s::width(P), bits = w == 128 ? 7 : w == 64 ? 3 : w == 32 ? 1 : 0;
        constexpr int by = w == 128 ? 0 : w == 64 ? 1 : 2;
        uint32_t at = (uint32_t)(row * w + (((row & 7) >> by & bits) << 4) + 4 * q);
        at ^= (uint32_t)(chunk * 16 % w) ^ skipped<P>();
        return *(const uint32_t *)(slot + s::start(P) + chunk * 16 / w * ROWS * w + behind * w + at);
    }
    // Bytes from `byte` on of the row that is `behind` rows behind.
    template <int P, typename T> __device__ __forceinline__ T at(int behind, int byte) const
    {
        typedef gemm_slot<TYPE, ROWS> s;
        constexpr int w = s::bytes(P);
        static_assert(w <= 64, "wider planes are read by words");
        uint32_t from = (uint32_t)byte + skipped<P>(), chunk = from & ~15u;
        if (w == 64) chunk ^= (uint32_t)(row >> 1 & 3) << 4;
        if (w == 32) chunk ^= (uint32_t)(row >> 2 & 1) << 4;
        return *(const T *)(slot + s::start(P) + (row + behind) * w + chunk + from % 16);
    }
};

template <int TYPE> struct gemm_expander;

// The number of batches after which the same code comes again, with addresses further on and the scales that
// next_period() leaves; for types that do not say so, all batches of a slot.
enum { GEMM_BATCHES = 8 };
template <int TYPE> struct gemm_period {
    static constexpr int batches = GEMM_BATCHES;
};
template <> struct gemm_period<TN_TYPE_Q4_K> {
    static constexpr int batches = 2;
};
template <> struct gemm_period<TN_TYPE_Q6_K> {
    static constexpr int batches = 4;
};

// --- Q4_K, Q5_K --------------------------------------------------------------------------------------

template <int TYPE> struct gemm_k4_k5_expander {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_K;
    static constexpr int scale_plane = five_bits ? 2 : 1;
    struct scales {
        uint32_t s[2], m[2]; // of eight groups of 32, a byte each
        uint32_t d;          // and of minimums
    };
    struct raw {
        uint32_t v[2], bits[2];
    };
    struct factors {
        float d, c;
    };
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &s, const gemm_lane<TYPE, ROWS> &l, int behind)
    {
        uint4 h = l.template at<scale_plane, uint4>(behind, 0);
        s.s[0] = h.y & 0x3f3f3f3fu, s.s[1] = (h.w & 0x0f0f0f0fu) | (h.y >> 2 & 0x30303030u);
        s.m[0] = h.z & 0x3f3f3f3fu, s.m[1] = (h.w >> 4 & 0x0f0f0f0fu) | (h.z >> 2 & 0x30303030u);
        s.d = h.x;
    }
    static __device__ __forceinline__ void next_period(scales &s)
    {
        s.s[0] = __byte_perm(s.s[0], s.s[1], 0x5432), s.s[1] >>= 16;
        s.m[0] = __byte_perm(s.m[0], s.m[1], 0x5432), s.m[1] >>= 16;
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (b % 2 == 0) r.v[i] = l.template word<0>(behind, b + i);
            if constexpr (five_bits) r.bits[i] = l.template word<1>(behind, i);
        }
    }
    static __device__ __forceinline__ void load_factors(factors &f, const scales &s, int b)
    {
        f.d = tn_half_bits(s.d & 0xffffu) * gemm_byte_float(s.s[b / 4], b % 4);
        f.c = -tn_half_bits(s.d >> 16) * gemm_byte_float(s.m[b / 4], b % 4);
    }
    static __device__ __forceinline__ void expand(const raw &r, const factors &f, int b, int i,
                                                  uint32_t &first, uint32_t &second)
    {
        if constexpr (five_bits) {
            uint32_t w = (b % 2 ? r.v[i] >> 4 : r.v[i]) & 0x0f0f0f0fu;
            w |= (b <= 4 ? r.bits[i] << (4 - b) : r.bits[i] >> (b - 4)) & 0x10101010u;
            first = gemm_fma_float(gemm_add2(gemm_even2(w), 0xe400e400u), f.d, f.c); // -1024
            second = gemm_fma_float(gemm_add2(gemm_odd2(w), 0xe400e400u), f.d, f.c);
        } else if (b % 2 == 0) {
            first = gemm_add2((r.v[i] & 0x000f000fu) | 0x64006400u, 0xe400e400u);
            second = gemm_add2((r.v[i] >> 8 & 0x000f000fu) | 0x64006400u, 0xe400e400u);
            first = gemm_fma_float(first, f.d, f.c), second = gemm_fma_float(second, f.d, f.c);
        } else { // 1024 + 16 q, times 1 / 16, less 64
            first = gemm_fma2((r.v[i] & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, 0xd400d400u);
            second = gemm_fma2((r.v[i] >> 8 & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, 0xd400d400u);
            first = gemm_fma_float(first, f.d, f.c), second = gemm_fma_float(second, f.d, f.c);
        }
    }
};
template <> struct gemm_expander<TN_TYPE_Q4_K> : gemm_k4_k5_expander<TN_TYPE_Q4_K> {
};
template <> struct gemm_expander<TN_TYPE_Q5_K> : gemm_k4_k5_expander<TN_TYPE_Q5_K> {
};

// --- Q6_K --------------------------------------------------------------------------------------------

template <> struct gemm_expander<TN_TYPE_Q6_K> {
    static constexpr int TYPE = TN_TYPE_Q6_K;
    struct scales {
        float d;
    };
    struct raw {
        uint32_t low[4], high[2], s;
    };
    typedef scales factors;
    static __device__ __forceinline__ void next_period(scales &) {}
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &s, const gemm_lane<TYPE, ROWS> &l, int behind)
    {
        s.d = tn_half_bits(l.template at<3, uint16_t>(behind, 0));
    }
    static __device__ __forceinline__ void load_factors(factors &f, const scales &s, int) { f = s; }
    // Batch 4 p + j has runs 8 p + 2 j + i of 16: bits 4 (j / 2) of 32 bytes of nibbles, bits 2 j of 32 bytes
    // of upper bits.
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
        int p = b / 4, j = b % 4;
        r.s = l.template at<2, uint16_t>(behind, 2 * b) ^ 0x8080u;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (j < 2) r.low[2 * j + i] = l.template word<0>(behind, 4 * p + 2 * j + i);
            if (j == 0) r.high[i] = l.template word<1>(behind, 2 * p + i);
        }
    }
    static __device__ __forceinline__ void expand(const raw &r, const factors &f, int b, int i,
                                                  uint32_t &first, uint32_t &second)
    {
        int j = b % 4;
        uint32_t low = r.low[j % 2 * 2 + i], high = r.high[i];
        high = j == 0 ? high << 4 : j == 1 ? high << 2 : j == 2 ? high : high >> 2;
        uint32_t w = ((j / 2 ? low >> 4 : low) & 0x0f0f0f0fu) | (high & 0x30303030u);
        float by = f.d * (gemm_byte_float(r.s, i) - 128.0f);
        first = gemm_fma_float(gemm_add2(gemm_even2(w), 0xe420e420u), by, 0.0f); // -1056
        second = gemm_fma_float(gemm_add2(gemm_odd2(w), 0xe420e420u), by, 0.0f);
    }
};

// --- Q2_K, Q3_K --------------------------------------------------------------------------------------

// Batch b has runs 2 b and 2 b + 1 of 16: bits 2 (b % 4) of 32 bytes of codes.
template <> struct gemm_expander<TN_TYPE_Q2_K> {
    static constexpr int TYPE = TN_TYPE_Q2_K;
    struct scales {
        uint32_t d; // and of minimums
    };
    struct raw {
        uint32_t v[2], s;
    };
    typedef scales factors;
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &s, const gemm_lane<TYPE, ROWS> &l, int behind)
    {
        s.d = l.template at<2, uint32_t>(behind, 0);
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
        r.s = l.template at<1, uint16_t>(behind, 2 * b);
#pragma unroll
        for (int i = 0; i < 2; i++)
            if (b % 4 == 0) r.v[i] = l.template word<0>(behind, b / 2 + i);
    }
    static __device__ __forceinline__ void load_factors(factors &f, const scales &s, int)
    {
        f = s;
    }
    static __device__ __forceinline__ void expand(const raw &r, const factors &f, int b, int i,
                                                  uint32_t &first, uint32_t &second)
    {
        uint32_t w = r.v[i] >> 2 * (b % 4) & 0x03030303u;
        float d = tn_half_bits(f.d & 0xffffu) * gemm_byte_float(r.s & 0x0f0fu, i);
        float c = -tn_half_bits(f.d >> 16) * gemm_byte_float(r.s >> 4 & 0x0f0fu, i);
        first = gemm_fma_float(gemm_add2(gemm_even2(w), 0xe400e400u), d, c); // -1024
        second = gemm_fma_float(gemm_add2(gemm_odd2(w), 0xe400e400u), d, c);
    }
};

template <> struct gemm_expander<TN_TYPE_Q3_K> {
    static constexpr int TYPE = TN_TYPE_Q3_K;
    struct scales {
        uint32_t s[4]; // of 16 runs, a byte each: the scale plus 32
        uint32_t d;
    };
    struct raw {
        uint32_t v[2], high[2];
    };
    struct factors {
        uint32_t s[2], d;
    };
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &s, const gemm_lane<TYPE, ROWS> &l, int behind)
    {
        uint32_t v[3];
#pragma unroll
        for (int i = 0; i < 3; i++) v[i] = l.template at<2, uint32_t>(behind, 4 * i);
            // Four bits of run r are in byte r % 8, two in byte 8 + r % 4 at 2 (r / 4).
#pragma unroll
        for (int i = 0; i < 4; i++)
            s.s[i] = ((i < 2 ? v[i % 2] : v[i % 2] >> 4) & 0x0f0f0f0fu) | (v[2] >> 2 * i & 0x03030303u) << 4;
        s.d = gemm_low2(l.template at<3, uint16_t>(behind, 0));
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (b % 4 == 0) r.v[i] = l.template word<0>(behind, b / 2 + i);
            if (b == 0) r.high[i] = l.template word<1>(behind, i);
        }
    }
    static __device__ __forceinline__ void load_factors(factors &f, const scales &s, int b)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) // 1024 + scale + 32, less 1056
            f.s[i] = gemm_add2(__byte_perm(s.s[b / 2], 0x64u, 0x4040u + 0x0101u * (uint32_t)(b % 2 * 2 + i)),
                               0xe420e420u);
        f.d = s.d;
    }
    static __device__ __forceinline__ void expand(const raw &r, const factors &f, int b, int i,
                                                  uint32_t &first, uint32_t &second)
    {
        uint32_t high = b <= 2 ? r.high[i] << (2 - b) : r.high[i] >> (b - 2);
        uint32_t w = (r.v[i] >> 2 * (b % 4) & 0x03030303u) | (high & 0x04040404u);
        first = gemm_mul2(gemm_add2(gemm_even2(w), 0xe404e404u), f.s[i]); // -1028
        second = gemm_mul2(gemm_add2(gemm_odd2(w), 0xe404e404u), f.s[i]);
        first = gemm_mul2(first, f.d), second = gemm_mul2(second, f.d);
    }
};

// --- blocks of 32, a batch each ----------------------------------------------------------------------

struct gemm_no_scales {
};

template <> struct gemm_expander<TN_TYPE_Q8_0> {
    static constexpr int TYPE = TN_TYPE_Q8_0;
    typedef gemm_no_scales scales, factors;
    struct raw {
        uint32_t v[2], d;
    };
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &, const gemm_lane<TYPE, ROWS> &, int)
    {
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) r.v[i] = l.template word<0>(behind, 2 * b + i);
        r.d = l.template at<1, uint16_t>(behind, 2 * b);
    }
    static __device__ __forceinline__ void load_factors(factors &, const scales &, int) {}
    static __device__ __forceinline__ void expand(const raw &r, const factors &, int, int i, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t w = r.v[i] ^ 0x80808080u, d = gemm_low2(r.d);
        first = gemm_mul2(gemm_add2(gemm_even2(w), 0xe480e480u), d); // -1152
        second = gemm_mul2(gemm_add2(gemm_odd2(w), 0xe480e480u), d);
    }
};

// Types of nibbles: the first step is the low nibbles of 16 bytes, the second the high ones.
template <int TYPE> struct gemm_nibble_expander {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1, offset = tn_has_min(TYPE);
    static constexpr int scale_plane = five_bits ? 2 : 1;
    typedef gemm_no_scales scales, factors;
    struct raw {
        uint32_t v, bits, d;
    };
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &, const gemm_lane<TYPE, ROWS> &, int)
    {
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
        r.v = l.template word<0>(behind, b);
        if constexpr (five_bits) r.bits = l.template at<1, uint32_t>(behind, 4 * b) >> 4 * l.q;
        if constexpr (offset)
            r.d = l.template at<scale_plane, uint32_t>(behind, 4 * b);
        else
            r.d = l.template at<scale_plane, uint16_t>(behind, 2 * b);
    }
    static __device__ __forceinline__ void load_factors(factors &, const scales &, int) {}
    static __device__ __forceinline__ void expand(const raw &r, const factors &, int, int i, uint32_t &first,
                                                  uint32_t &second)
    {
        if constexpr (five_bits) {
            uint32_t w = ((i ? r.v >> 4 : r.v) & 0x0f0f0f0fu) | (uint32_t)tn_spread_bits(r.bits >> 16 * i)
                                                                    << 4;
            const uint32_t zero = offset ? 0xe400e400u : 0xe410e410u; // -1024, -1040
            first = gemm_add2(gemm_even2(w), zero), second = gemm_add2(gemm_odd2(w), zero);
        } else if (i == 0) {                                          // 1024 + q
            const uint32_t zero = offset ? 0xe400e400u : 0xe408e408u; // -1024, -1032
            first = gemm_add2((r.v & 0x000f000fu) | 0x64006400u, zero);
            second = gemm_add2((r.v >> 8 & 0x000f000fu) | 0x64006400u, zero);
        } else {                                                      // 1024 + 16 q
            const uint32_t zero = offset ? 0xd400d400u : 0xd480d480u; // -64, -72
            first = gemm_fma2((r.v & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
            second = gemm_fma2((r.v >> 8 & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
        }
        uint32_t d = gemm_low2(r.d), m = gemm_high2(r.d);
        first = offset ? gemm_fma2(first, d, m) : gemm_mul2(first, d);
        second = offset ? gemm_fma2(second, d, m) : gemm_mul2(second, d);
    }
};
template <> struct gemm_expander<TN_TYPE_Q4_0> : gemm_nibble_expander<TN_TYPE_Q4_0> {
};
template <> struct gemm_expander<TN_TYPE_Q4_1> : gemm_nibble_expander<TN_TYPE_Q4_1> {
};
template <> struct gemm_expander<TN_TYPE_Q5_0> : gemm_nibble_expander<TN_TYPE_Q5_0> {
};
template <> struct gemm_expander<TN_TYPE_Q5_1> : gemm_nibble_expander<TN_TYPE_Q5_1> {
};

// --- tables of 16 values -----------------------------------------------------------------------------

// IQ4_NL, IQ4_XS and MXFP4: in the order of Q4_0. MXFP4 has two factors, because scales of E8M0 reach beyond
// f16.
template <int TYPE> struct gemm_table_expander {
    struct scales {
        uint32_t v[2];
    };
    struct raw {
        uint32_t v[2], d;
    };
    struct factors {
        uint32_t s, d; // MXFP4
        float f;       // IQ4_XS
    };
    template <int ROWS>
    static __device__ __forceinline__ void load_scales(scales &s, const gemm_lane<TYPE, ROWS> &l, int behind)
    {
        if constexpr (TYPE == TN_TYPE_IQ4_NL) return;
        uint2 v = l.template at<1, uint2>(behind, 0);
        s.v[0] = v.x, s.v[1] = v.y;
    }
    template <int ROWS>
    static __device__ __forceinline__ void load(raw &r, const gemm_lane<TYPE, ROWS> &l, int behind, int b)
    {
        int even, odd;
        uint32_t codes = l.template word<0>(behind, b);
        if constexpr (TYPE == TN_TYPE_MXFP4)
            tn_lookup_fp4(codes, even, odd);
        else
            tn_lookup_iq4(codes, even, odd);
        r.v[0] = (uint32_t)even ^ 0x80808080u, r.v[1] = (uint32_t)odd ^ 0x80808080u;
        if constexpr (TYPE == TN_TYPE_IQ4_NL) r.d = l.template at<1, uint16_t>(behind, 2 * b);
    }
    static __device__ __forceinline__ void load_factors(factors &f, const scales &s, int b)
    {
        if constexpr (TYPE == TN_TYPE_IQ4_XS) {
            uint32_t v = (s.v[1] >> 4 * b & 15u) | (s.v[0] >> (16 + 2 * b) & 3u) << 4;
            f.f = tn_half_bits(s.v[0] & 0xffffu) * (float)((int)v - 32);
        } else if constexpr (TYPE == TN_TYPE_MXFP4) {
            // 2^(e - 128), as the table has doubled values: a power within the normal f16, and the rest.
            int e = (int)(s.v[b / 4] >> 8 * (b % 4) & 255u) - 128, near = min(max(e, -14), 15),
                rest = min(max(e - near, -14), 15);
            f.s = (uint32_t)(near + 15) * 0x04000400u, f.d = (uint32_t)(rest + 15) * 0x04000400u;
        }
    }
    static __device__ __forceinline__ void expand(const raw &r, const factors &f, int, int i, uint32_t &first,
                                                  uint32_t &second)
    {
        first = gemm_add2(gemm_even2(r.v[i]), 0xe480e480u); // -1152
        second = gemm_add2(gemm_odd2(r.v[i]), 0xe480e480u);
        if constexpr (TYPE == TN_TYPE_IQ4_NL) {
            first = gemm_mul2(first, gemm_low2(r.d)), second = gemm_mul2(second, gemm_low2(r.d));
        } else if constexpr (TYPE == TN_TYPE_IQ4_XS) {
            first = gemm_fma_float(first, f.f, 0.0f), second = gemm_fma_float(second, f.f, 0.0f);
        } else {
            first = gemm_mul2(gemm_mul2(first, f.s), f.d), second = gemm_mul2(gemm_mul2(second, f.s), f.d);
        }
    }
};
template <> struct gemm_expander<TN_TYPE_IQ4_NL> : gemm_table_expander<TN_TYPE_IQ4_NL> {
};
template <> struct gemm_expander<TN_TYPE_IQ4_XS> : gemm_table_expander<TN_TYPE_IQ4_XS> {
};
template <> struct gemm_expander<TN_TYPE_MXFP4> : gemm_table_expander<TN_TYPE_MXFP4> {
};

#endif
