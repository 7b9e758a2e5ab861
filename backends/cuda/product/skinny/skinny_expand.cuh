// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of block types as operands of f16 products, for skinny_blocks.cuh and skinny_stream.cuh. The order
// of k inside a product is free, so of 256 values of a row each of four lanes q handles the 64 whose bytes
// lie together, in two halves p of four groups c of eight values. skinny_expander<type> has
//   load     what lane q needs of half p, from shared memory into registers
//   scales   multipliers of the 256 values
//   expand   group c: two steps of four values each, as pairs (0, 2) and (1, 3)
//   chunk    which eighth of the 256 values (0 to 31) that is, a 16-byte chunk of x
//
// There are three ways to keep the numbers of ops/quant/quant_*.c:
//   exact    Integers times their integer scale (Q2_K to Q5_K: at most 11 bits) are the operand, in
//            steps of 2^-24: the integer of a byte, zero-extended, is a subnormal f16 already. The
//            f32 scale of 256 values multiplies the sums of these. A minimum, one for 16 or 32
//            values, becomes a product of its own with the sums of x.
//   stepped  Integers are the operand, and each step of 16 values has one scale, which multiplies the
//            sums of the step (Q6_K, whose integers times scales need 12 bits). `step` is then step
//            (j, r) of half p: run 8 p + 2 j + r, of which lane q has values 4 q to 4 q + 3.
//   scaled   The f16 scale times the integer, rounded once: the same bits as rounding the f32 weight.
//            All types without an expander of their own do this through f32.
//
// Nothing here moves bytes between memories: a lane reads shared memory once for each byte of its weights.
// skinny_blocks.cuh counts the instructions and says what bounds the kernel.
#ifndef TN_CUDA_SKINNY_EXPAND_CUH
#define TN_CUDA_SKINNY_EXPAND_CUH

#include "backends/cuda/product/skinny/skinny_args.h"
#include "backends/cuda/dequant.cuh"

// --- half2 in a register --------------------------------------------------------------------------------

static __device__ __forceinline__ uint32_t skinny_mul(uint32_t a, uint32_t b)
{
    __half2 v = __hmul2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t skinny_add(uint32_t a, uint32_t b)
{
    __half2 v = __hadd2(*(const __half2 *)&a, *(const __half2 *)&b);
    return *(const uint32_t *)&v;
}

static __device__ __forceinline__ uint32_t skinny_fma(uint32_t a, uint32_t b, uint32_t c)
{
    __half2 v = __hfma2(*(const __half2 *)&a, *(const __half2 *)&b, *(const __half2 *)&c);
    return *(const uint32_t *)&v;
}

// The lower half, in both halves.
static __device__ __forceinline__ uint32_t skinny_broadcast_low(uint32_t bits)
{
    return __byte_perm(bits, 0, 0x1010);
}

// One half of a register, in both halves.
static __device__ __forceinline__ uint32_t skinny_broadcast_half(uint32_t v, bool high)
{
    __half2 h = high ? __high2half2(*(const __half2 *)&v) : __low2half2(*(const __half2 *)&v);
    return *(const uint32_t *)&h;
}

// Bytes 0 and 2 (skinny_even) or 1 and 3 (skinny_odd) as integers of 16 bits, which are f16 in steps of
// 2^-24.
static __device__ __forceinline__ uint32_t skinny_even(uint32_t bytes)
{
    return bytes & 0x00ff00ffu;
}

static __device__ __forceinline__ uint32_t skinny_odd(uint32_t bytes)
{
    return __byte_perm(bytes, 0, 0x4341);
}

// Byte `i` as f16, in both halves: 0x6400 + b is 1024 + b, and 1024 is subtracted.
static __device__ __forceinline__ uint32_t skinny_byte(uint32_t bytes, int i)
{
    return skinny_add(__byte_perm(bytes, 0x64u, 0x4040u + 0x0101u * (uint32_t)i), 0xe400e400u);
}

// Two pairs of signed bytes as f16: with the sign bit flipped they are 1152 + v, and 1152 is subtracted.
static __device__ __forceinline__ void skinny_signed(uint32_t bytes, uint32_t &first, uint32_t &second)
{
    bytes ^= 0x80808080u;
    first = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4240), 0xe480e480u);
    second = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4341), 0xe480e480u);
}

static __device__ __forceinline__ uint32_t skinny_word(const uint4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// --- a row of a stage in shared memory -------------------------------------------------------------------

struct skinny_plane_field {
    int start, size, plane, at;
};
template <int TYPE> struct skinny_planes;
#define TN_PLANES(dtype, ...)                                                                                \
    template <> struct skinny_planes<TN_TYPE_##dtype> {                                                      \
        static constexpr __host__ __device__ int block_bytes(int p)                                          \
        {                                                                                                    \
            const skinny_plane_field all[] = {__VA_ARGS__};                                                  \
            int n = 0;                                                                                       \
            for (const skinny_plane_field &f : all) n += f.plane == p ? f.size : 0;                          \
            return n;                                                                                        \
        }                                                                                                    \
    };
#include "backends/planes.def"

static constexpr __host__ __device__ int skinny_block_elems(int type)
{
#define TN_DTYPE(name, elems, size, id) type == TN_TYPE_##name ? elems :
    return
#include <tenon/dtypes.def>
        0;
}

template <int TYPE> struct skinny_slot {
    static constexpr int elems = skinny_block_elems(TYPE);
    static constexpr __host__ __device__ int block_bytes(int p) // bytes that the plane has of a block
    {
        return skinny_planes<TYPE>::block_bytes(p);
    }
    static constexpr __host__ __device__ int bytes(int p)
    {
        return TN_SKINNY_PLANE_BYTES(block_bytes(p), elems);
    }
    static constexpr __host__ __device__ int chunks(int p)
    {
        return TN_SKINNY_PLANE_PIECES(block_bytes(p), elems);
    }
    static constexpr __host__ __device__ int first_chunk(int p) // 16-byte chunk that the plane begins at
    {
        int n = 0;
        for (int i = 0; i < p; i++) n += chunks(i);
        return n;
    }
    static constexpr int row_bytes = TN_SKINNY_ROW_BYTES(first_chunk(TN_CUDA_MAX_PLANES));
};

template <int TYPE> struct skinny_row {
    const char *at;
    // Bytes before the row in its first chunk, for planes that are copied in whole chunks of memory.
    uint32_t shift[TN_CUDA_MAX_PLANES];
};

template <int TYPE, int PLANE>
static __device__ __forceinline__ const char *skinny_plane(const skinny_row<TYPE> &row)
{
    constexpr int first = 16 * skinny_slot<TYPE>::first_chunk(PLANE);
    constexpr bool fills_chunks = skinny_slot<TYPE>::block_bytes(PLANE) % 16 == 0;
    return row.at + first + (fills_chunks ? 0u : row.shift[PLANE]);
}

template <int TYPE, int PLANE, typename T>
static __device__ __forceinline__ T skinny_at(const skinny_row<TYPE> &row, int at)
{
    return *reinterpret_cast<const T *>(skinny_plane<TYPE, PLANE>(row) + at);
}

struct skinny_no_scale {
};

// The defaults of an expander, for types that differ in little.
struct skinny_expander_base {
    static constexpr bool exact = false, minimums = false, stepped = false;
    typedef skinny_no_scale scale;
    template <int TYPE> static __device__ __forceinline__ void scales(scale &, const skinny_row<TYPE> &, int)
    {
    }
};

// --- any type, through f32 -------------------------------------------------------------------------------

template <int TYPE> struct skinny_expander : skinny_expander_base {
    struct raw {
        tn_run16 r[2];
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TYPE> &row, int p, int q)
    {
        tn_cuda_weight w = {{skinny_plane<TYPE, 0>(row), skinny_plane<TYPE, 1>(row),
                             skinny_plane<TYPE, 2>(row), skinny_plane<TYPE, 3>(row)},
                            {0, 0, 0, 0}};
#pragma unroll
        for (int i = 0; i < 2; i++) v.r[i] = tn_unpack16<TYPE>(w, 0, 64 * q + 32 * p + 16 * i);
    }
    static __device__ __forceinline__ int chunk(int q, int p, int c)
    {
        return 8 * q + 4 * p + c;
    }
    static __device__ __forceinline__ void expand(const raw &v, const scale &, int, int c, int s, int,
                                                  uint32_t &first, uint32_t &second)
    {
        const tn_run16 &r = v.r[c / 2];
        // A byte b in the low bits of 2^23 is the float 2^23 + b.
        uint32_t q = (uint32_t)r.q[c % 2 * 2 + s] ^ 0x80808080u;
        float f[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f[i] = __uint_as_float(__byte_perm(q, 0x4b000000u, 0x7540u + i)) - 8388736.0f;
            f[i] = tn_has_min(TYPE) ? r.d * f[i] - r.m : r.d * f[i];
        }
        __half2 a = __floats2half2_rn(f[0], f[2]), b = __floats2half2_rn(f[1], f[3]);
        first = *(uint32_t *)&a;
        second = *(uint32_t *)&b;
    }
};

// --- blocks of 32: lane q has two of them ------------------------------------------------------------------

template <> struct skinny_expander<TN_TYPE_Q8_0> : skinny_expander_base {
    struct raw {
        uint4 v[2];
        uint32_t d;
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TN_TYPE_Q8_0> &row, int p, int q)
    {
        int at = 4 * p + q; // lanes that read at the same time have no bank conflicts
        v.v[0] = skinny_at<TN_TYPE_Q8_0, 0, uint4>(row, 32 * at);
        v.v[1] = skinny_at<TN_TYPE_Q8_0, 0, uint4>(row, 32 * at + 16);
        v.d = skinny_at<TN_TYPE_Q8_0, 1, uint16_t>(row, 2 * at);
    }
    static __device__ __forceinline__ int chunk(int q, int p, int c)
    {
        return 4 * (4 * p + q) + c;
    }
    static __device__ __forceinline__ void expand(const raw &v, const scale &, int, int c, int s, int,
                                                  uint32_t &first, uint32_t &second)
    {
        uint32_t d = skinny_broadcast_low(v.d);
        skinny_signed(skinny_word(v.v[c / 2], c % 2 * 2 + s), first, second);
        first = skinny_mul(first, d), second = skinny_mul(second, d);
    }
};

// Types of nibbles: groups of eight 0 and 1 are the low nibbles, 2 and 3 the high ones.
template <int TYPE> struct skinny_nibble_expander : skinny_expander_base {
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_0 || TYPE == TN_TYPE_Q5_1, offset = tn_has_min(TYPE),
                          codebook = TYPE == TN_TYPE_IQ4_NL;
    static constexpr int scale_plane = five_bits ? 2 : 1;
    struct raw {
        uint4 v;
        uint32_t bits, d;
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TYPE> &row, int p, int q)
    {
        int at = 2 * q + p;
        v.v = skinny_at<TYPE, 0, uint4>(row, 16 * at);
        v.bits = five_bits ? skinny_at<TYPE, 1, uint32_t>(row, 4 * at) : 0u;
        v.d = offset ? skinny_at<TYPE, scale_plane, uint32_t>(row, 4 * at)
                     : skinny_at<TYPE, scale_plane, uint16_t>(row, 2 * at);
    }
    static __device__ __forceinline__ int chunk(int q, int p, int c)
    {
        return 8 * q + 4 * p + c;
    }
    static __device__ __forceinline__ void expand(const raw &v, const scale &, int, int c, int s, int,
                                                  uint32_t &first, uint32_t &second)
    {
        bool high = c >= 2;
        int i = c % 2 * 2 + s;
        uint32_t w = skinny_word(v.v, i), d = skinny_broadcast_low(v.d);
        if constexpr (codebook) {
            int even, odd;
            tn_lookup_iq4(w, even, odd);
            skinny_signed((uint32_t)(high ? odd : even), first, second);
        } else if constexpr (five_bits) {
            uint32_t bytes = ((high ? w >> 4 : w) & 0x0f0f0f0fu) |
                             (uint32_t)tn_spread_bits(v.bits >> (4 * i + (high ? 16 : 0))) << 4;
            const uint32_t zero = offset ? 0xe400e400u : 0xe410e410u; // -1024, -1040
            first = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4240), zero);
            second = skinny_add(__byte_perm(bytes, 0x64646464u, 0x4341), zero);
        } else if (!high) {                                           // 1024 + q
            const uint32_t zero = offset ? 0xe400e400u : 0xe408e408u; // -1024, -1032
            first = skinny_add((w & 0x000f000fu) | 0x64006400u, zero);
            second = skinny_add((w >> 8 & 0x000f000fu) | 0x64006400u, zero);
        } else {                                                      // 1024 + 16 q
            const uint32_t zero = offset ? 0xd400d400u : 0xd480d480u; // -64, -72
            first = skinny_fma((w & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
            second = skinny_fma((w >> 8 & 0x00f000f0u) | 0x64006400u, 0x2c002c00u, zero);
        }
        uint32_t m = __byte_perm(v.d, 0, 0x3232);
        first = offset ? skinny_fma(first, d, m) : skinny_mul(first, d);
        second = offset ? skinny_fma(second, d, m) : skinny_mul(second, d);
    }
};

template <> struct skinny_expander<TN_TYPE_Q4_0> : skinny_nibble_expander<TN_TYPE_Q4_0> {
};
template <> struct skinny_expander<TN_TYPE_Q4_1> : skinny_nibble_expander<TN_TYPE_Q4_1> {
};
template <> struct skinny_expander<TN_TYPE_Q5_0> : skinny_nibble_expander<TN_TYPE_Q5_0> {
};
template <> struct skinny_expander<TN_TYPE_Q5_1> : skinny_nibble_expander<TN_TYPE_Q5_1> {
};
template <> struct skinny_expander<TN_TYPE_IQ4_NL> : skinny_nibble_expander<TN_TYPE_IQ4_NL> {
};

// --- Q4_K, Q5_K: lane q has groups 2 q (low nibbles) and 2 q + 1 -------------------------------------------

template <int TYPE> struct skinny_k4_k5_expander {
    static constexpr bool exact = true, minimums = true, stepped = false, five_bits = TYPE == TN_TYPE_Q5_K;
    static constexpr int scale_plane = five_bits ? 2 : 1;
    struct raw {
        uint4 v, bits;
    };
    struct scale {
        // Scales and minimums of the two groups. The second scale is a sixteenth where nibbles are multiplied
        // in place.
        uint32_t s[2], m[2];
        float d, dmin;
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TYPE> &row, int p, int q)
    {
        v.v = skinny_at<TYPE, 0, uint4>(row, 32 * q + 16 * p);
        if constexpr (five_bits) v.bits = skinny_at<TYPE, 1, uint4>(row, 16 * p);
    }
    static __device__ __forceinline__ void scales(scale &s, const skinny_row<TYPE> &row, int q)
    {
        uint4 h = skinny_at<TYPE, scale_plane, uint4>(row, 0);
        int at = 16 * (q & 1);
        uint32_t a = h.y >> at, b = h.z >> at, c = h.w >> at;
        uint32_t sc = q < 2 ? a & 0x3f3fu : (c & 0x0f0fu) | (a >> 2 & 0x3030u),
                 mn = q < 2 ? b & 0x3f3fu : (c >> 4 & 0x0f0fu) | (b >> 2 & 0x3030u);
        s.s[0] = skinny_byte(sc, 0);
        s.s[1] = five_bits ? skinny_byte(sc, 1) : skinny_mul(skinny_byte(sc, 1), 0x2c002c00u);
        s.m[0] = skinny_byte(mn, 0), s.m[1] = skinny_byte(mn, 1);
        s.d = tn_half_bits(h.x & 0xffffu), s.dmin = tn_half_bits(h.x >> 16);
    }
    static __device__ __forceinline__ int chunk(int q, int p, int c)
    {
        return 8 * q + 4 * (c / 2) + 2 * p + c % 2;
    }
    // The run of 16 values of x whose sum belongs to minimum i / 2.
    static __device__ __forceinline__ int run(int q, int i)
    {
        return 4 * q + i;
    }
    static __device__ __forceinline__ uint32_t minimum(const scale &s, int i)
    {
        return s.m[i / 2];
    }
    static __device__ __forceinline__ void expand(const raw &v, const scale &sc, int, int c, int s, int q,
                                                  uint32_t &first, uint32_t &second)
    {
        bool high = c >= 2;
        uint32_t w = skinny_word(v.v, c % 2 * 2 + s), by = sc.s[high];
        if constexpr (five_bits) {
            uint32_t h = skinny_word(v.bits, c % 2 * 2 + s) >> 2 * q;
            w = ((high ? w >> 4 : w) & 0x0f0f0f0fu) | ((high ? h << 3 : h << 4) & 0x10101010u);
            first = skinny_mul(skinny_even(w), by);
            second = skinny_mul(skinny_odd(w), by);
        } else {
            uint32_t mask = high ? 0x00f000f0u : 0x000f000fu;
            first = skinny_mul(w & mask, by);
            second = skinny_mul(w >> 8 & mask, by);
        }
    }
};

template <> struct skinny_expander<TN_TYPE_Q4_K> : skinny_k4_k5_expander<TN_TYPE_Q4_K> {
};
template <> struct skinny_expander<TN_TYPE_Q5_K> : skinny_k4_k5_expander<TN_TYPE_Q5_K> {
};

// --- Q2_K, Q3_K: lane q has 16 bytes, value j of each belongs to run 8 (q / 2) + 2 j + q % 2
// -------------------

template <int TYPE> struct skinny_k2_k3_expander {
    static constexpr bool exact = true, stepped = false, three_bits = TYPE == TN_TYPE_Q3_K,
                          minimums = !three_bits;
    struct raw { // of both halves
        uint4 v, bits;
    };
    struct scale {
        uint32_t s[4], m[4];
        float d, dmin;
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TYPE> &row, int, int q)
    {
        v.v = skinny_at<TYPE, 0, uint4>(row, 16 * q);
        if constexpr (three_bits) v.bits = skinny_at<TYPE, 1, uint4>(row, 16 * (q % 2));
    }
    static __device__ __forceinline__ void scales(scale &s, const skinny_row<TYPE> &row, int q)
    {
        uint32_t d = three_bits ? skinny_at<TYPE, 3, uint16_t>(row, 0) : skinny_at<TYPE, 2, uint32_t>(row, 0),
                 last = 0;
        uint2 all;
        if constexpr (three_bits) {
            all = make_uint2(skinny_at<TYPE, 2, uint32_t>(row, 0), skinny_at<TYPE, 2, uint32_t>(row, 4));
            last = skinny_at<TYPE, 2, uint32_t>(row, 8);
        } else {
            all = skinny_at<TYPE, 1, uint2>(row, 8 * (q / 2));
        }
        s.d = tn_half_bits(d & 0xffffu);
        uint32_t four = __byte_perm(all.x, all.y, q % 2 ? 0x7531 : 0x6420); // of runs j
        if constexpr (three_bits) {
            // Four bits of the scale of run r are in byte r % 8, two in byte 8 + r % 4 at 2 (r / 4).
            uint32_t top = __byte_perm(last, 0, q % 2 ? 0x3131 : 0x2020) >> 4 * (q / 2);
            top = (top & 0x00000303u) | (top >> 2 & 0x03030000u);
            four = (four >> 4 * (q / 2) & 0x0f0f0f0fu) | top << 4;
#pragma unroll
            for (int j = 0; j < 4; j++) s.s[j] = skinny_add(skinny_byte(four, j), 0xd000d000u); // -32
        } else {
            s.dmin = tn_half_bits(d >> 16);
#pragma unroll
            for (int j = 0; j < 4; j++)
                s.s[j] = skinny_byte(four & 0x0f0f0f0fu, j), s.m[j] = skinny_byte(four >> 4 & 0x0f0f0f0fu, j);
        }
    }
    static __device__ __forceinline__ int chunk(int q, int p, int c)
    {
        return 16 * (q / 2) + 4 * (2 * p + c / 2) + 2 * (q % 2) + c % 2;
    }
    static __device__ __forceinline__ int run(int q, int i)
    {
        return 8 * (q / 2) + 2 * i + q % 2;
    }
    static __device__ __forceinline__ uint32_t minimum(const scale &s, int i)
    {
        return s.m[i];
    }
    static __device__ __forceinline__ void expand(const raw &v, const scale &sc, int p, int c, int s, int q,
                                                  uint32_t &first, uint32_t &second)
    {
        int j = 2 * p + c / 2, i = c % 2 * 2 + s;
        uint32_t w = skinny_word(v.v, i) >> 2 * j & 0x03030303u, by = sc.s[j];
        if constexpr (three_bits) {
            w |= (skinny_word(v.bits, i) >> (4 * (q / 2) + j) & 0x01010101u) << 2;
            uint32_t zero = skinny_mul(by, 0x80048004u); // -4 steps of 2^-24
            first = skinny_fma(skinny_even(w), by, zero);
            second = skinny_fma(skinny_odd(w), by, zero);
        } else {
            first = skinny_mul(skinny_even(w), by);
            second = skinny_mul(skinny_odd(w), by);
        }
    }
};

// --- Q6_K: steps of one scale ------------------------------------------------------------------------------

template <> struct skinny_expander<TN_TYPE_Q6_K> {
    static constexpr bool exact = false, minimums = false, stepped = true;
    struct raw {
        uint32_t low[4], high[2]; // bytes 4 q to 4 q + 3 of runs of 16 bytes
    };
    struct scale {
        uint4 s;
        float d; // times 2^24
    };
    static __device__ __forceinline__ void load(raw &v, const skinny_row<TN_TYPE_Q6_K> &row, int p, int q)
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            v.low[i] = skinny_at<TN_TYPE_Q6_K, 0, uint32_t>(row, 64 * p + 16 * i + 4 * q);
#pragma unroll
        for (int i = 0; i < 2; i++)
            v.high[i] = skinny_at<TN_TYPE_Q6_K, 1, uint32_t>(row, 32 * p + 16 * i + 4 * q);
    }
    static __device__ __forceinline__ void scales(scale &s, const skinny_row<TN_TYPE_Q6_K> &row, int)
    {
        s.s = skinny_at<TN_TYPE_Q6_K, 2, uint4>(row, 0);
        s.s.x ^= 0x80808080u, s.s.y ^= 0x80808080u, s.s.z ^= 0x80808080u, s.s.w ^= 0x80808080u;
        s.d = 16777216.0f * tn_half_bits(skinny_at<TN_TYPE_Q6_K, 3, uint16_t>(row, 0));
    }
    static __device__ __forceinline__ void step(const raw &v, int j, int r, uint32_t &first, uint32_t &second)
    {
        uint32_t low = v.low[j % 2 * 2 + r], high = v.high[r];
        uint32_t w = ((j / 2 ? low >> 4 : low) & 0x0f0f0f0fu) | ((j == 0   ? high << 4
                                                                  : j == 1 ? high << 2
                                                                  : j == 2 ? high
                                                                           : high >> 2) &
                                                                 0x30303030u);
        first = skinny_add(skinny_even(w), 0x80208020u); // -32 steps of 2^-24
        second = skinny_add(skinny_odd(w), 0x80208020u);
    }
    // The factor of the sums of step (j, r) of half p. A byte b in the low bits of 2^23 is the float 2^23 +
    // b.
    static __device__ __forceinline__ float factor(const scale &s, int p, int j, int r)
    {
        uint32_t b = __byte_perm(skinny_word(s.s, 2 * p + j / 2), 0x4b000000u, 0x7540u + 2 * (j % 2) + r);
        return s.d * (__uint_as_float(b) - 8388736.0f);
    }
};

template <> struct skinny_expander<TN_TYPE_Q2_K> : skinny_k2_k3_expander<TN_TYPE_Q2_K> {
};
template <> struct skinny_expander<TN_TYPE_Q3_K> : skinny_k2_k3_expander<TN_TYPE_Q3_K> {
};

#endif
