// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles of 16 keys as operands of mma.m16n8k16, straight from global memory into registers. The elements of a
// row may come in any order along the summed dimension if the other operand has the same order, so every lane
// loads whole words of the cache as they lie there. Lane l = 4 g + c.
//   keys as A of S^T = K Q^T: the lane holds rows g and g + 8; of every 32 elements it has the 8 of
//   tn_key_element(). values as A of O^T = V^T P^T: the lane holds keys 2c, 2c + 1, 2c + 8, 2c + 9; of every
//   64 elements it has the 8 of tn_value_element().
//
// f16 and bf16 are loaded by 16 bytes. q8_0 and q4_0 have blocks of 34 and 18 bytes, which are only 2-byte
// aligned. They are read as 32-bit words of pairs of blocks (64 elements, 17 and 9 words). The first block of
// a pair starts with its scale in the lower half of word 0. So its first two code bytes are the upper half of
// word 0, and its last two are the lower half of the word whose upper half is the scale of the second block.
#ifndef TN_CUDA_ATTENTION_TILE_CUH
#define TN_CUDA_ATTENTION_TILE_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/mma_attention.cuh"

// How a lane reads rows of a type. A pair is two blocks, 64 elements.
template <int TYPE> struct tn_cache_traits {
    static constexpr bool QUANT = TYPE == TN_CUDA_CACHE_Q8_0 || TYPE == TN_CUDA_CACHE_Q4_0;
    static constexpr bool BF16 = TYPE == TN_CUDA_CACHE_BF16;
    static constexpr int PAIR = TYPE == TN_CUDA_CACHE_Q8_0 ? 68 : 36;     // bytes of 64 elements
    static constexpr int MIDDLE = TYPE == TN_CUDA_CACHE_Q8_0 ? 8 : 4;     // word with the second scale
    // Words that a lane loads of a pair of a key and of a value.
    static constexpr int KEY_WORDS = TYPE == TN_CUDA_CACHE_Q8_0 ? 6 : 4;
    static constexpr int VALUE_WORDS = TYPE == TN_CUDA_CACHE_Q8_0 ? 4 : 3;
};

// --- which elements ----------------------------------------------------------------------------------

// The index, among the code bytes of block 0 or 1 of a pair, of byte e of the `word`-th word that has codes
// of the block. Word 0 of block 0 is made of the first two and the last two code bytes.
template <int TYPE> static __device__ __forceinline__ int tn_quant_byte(int block, int word, int e)
{
    int last = TYPE == TN_CUDA_CACHE_Q8_0 ? 32 : 16;
    if (block == 1) return 4 * word + e;
    if (word > 0) return 4 * word - 2 + e;
    return e < 2 ? e : last - 4 + e;
}

// The index in the row of element e < 8 that lane column c holds of the 32 elements of group i.
template <int TYPE> static __device__ __forceinline__ int tn_key_element(int i, int c, int e)
{
    if (TYPE == TN_CUDA_CACHE_Q8_0) return i * 32 + tn_quant_byte<TYPE>(i % 2, e < 4 ? c : c + 4, e % 4);
    if (TYPE == TN_CUDA_CACHE_Q4_0) return i * 32 + tn_quant_byte<TYPE>(i % 2, c, e % 4) + (e < 4 ? 0 : 16);
    return i * 32 + c * 8 + e;
}

// The index in the row of element e < 8 that lane row g holds of the 64 elements of group j.
template <int TYPE> static __device__ __forceinline__ int tn_value_element(int j, int g, int e)
{
    if (TYPE == TN_CUDA_CACHE_Q8_0) return j * 64 + e / 4 * 32 + tn_quant_byte<TYPE>(e / 4, g, e % 4);
    if (TYPE == TN_CUDA_CACHE_Q4_0)
        return j * 64 + g / 4 * 32 + tn_quant_byte<TYPE>(g / 4, g % 4, e % 4) + (e < 4 ? 0 : 16);
    return j * 64 + g * 8 + e;
}

// --- loads -------------------------------------------------------------------------------------------

static __device__ __forceinline__ uint4 tn_load16(const char *at)
{
    return *reinterpret_cast<const uint4 *>(at);
}

static __device__ __forceinline__ uint32_t tn_load4(const char *at)
{
    return *reinterpret_cast<const uint32_t *>(at);
}

// Loads elements [8 at, 8 at + 8) of each SPAN elements of a row of 16-bit elements; `used` elements of the
// row exist, the others are zero.
template <int SPAN, int WORDS>
static __device__ __forceinline__ void tn_load_plain(uint32_t (&w)[WORDS], const char *row, int at, int used)
{
#pragma unroll
    for (int i = 0; i < WORDS / 4; i++) {
        uint4 x =
            i * SPAN + at * 8 < used ? tn_load16(row + 2 * (i * SPAN + at * 8)) : make_uint4(0, 0, 0, 0);
        w[4 * i] = x.x, w[4 * i + 1] = x.y, w[4 * i + 2] = x.z, w[4 * i + 3] = x.w;
    }
}

// The part of a key row of D elements that a lane holds; `used` of the D elements exist.
template <int TYPE, int D> struct tn_key_part {
    static constexpr int WORDS =
        tn_cache_traits<TYPE>::QUANT ? D / 64 * tn_cache_traits<TYPE>::KEY_WORDS : D / 8;
    uint32_t w[WORDS];

    __device__ __forceinline__ void load(const char *row, int c, int used)
    {
        typedef tn_cache_traits<TYPE> traits;
        if constexpr (!traits::QUANT) {
            tn_load_plain<32>(w, row, c, used);
        } else {
#pragma unroll
            for (int p = 0; p < D / 64; p++) {
                const char *pair = row + p * traits::PAIR;
                uint32_t *to = w + p * traits::KEY_WORDS;
                to[0] = tn_load4(pair);
                to[1] = tn_load4(pair + 4 * traits::MIDDLE);
                to[2] = tn_load4(pair + 4 * c);
                to[3] = tn_load4(pair + 4 * (traits::MIDDLE + 1 + c));
                if (TYPE == TN_CUDA_CACHE_Q8_0) {
                    to[4] = tn_load4(pair + 4 * (4 + c));
                    to[5] = tn_load4(pair + 4 * (traits::MIDDLE + 5 + c));
                }
            }
        }
    }

    // The codes of group i as 8 unsigned bytes, elements 0..3 in lo and 4..7 in hi, which are too large by
    // 128 (q8_0) or 8 (q4_0).
    __device__ __forceinline__ void bytes(int i, int c, uint32_t &lo, uint32_t &hi) const
    {
        const uint32_t *from = w + i / 2 * tn_cache_traits<TYPE>::KEY_WORDS;
        uint32_t x = i % 2 ? from[3] : c == 0 ? __byte_perm(from[0], from[1], 0x5432) : from[2];
        if (TYPE == TN_CUDA_CACHE_Q8_0) {
            lo = x ^ 0x80808080u;
            hi = (i % 2 ? from[5] : from[4]) ^ 0x80808080u;
        } else {
            lo = x & 0x0f0f0f0fu;
            hi = x >> 4 & 0x0f0f0f0fu;
        }
    }

    // The scale of group i.
    __device__ __forceinline__ float scale(int i) const
    {
        const uint32_t *from = w + i / 2 * tn_cache_traits<TYPE>::KEY_WORDS;
        return i % 2 ? tn_half_bits(from[1] >> 16) : tn_half_bits(from[0] & 0xffffu);
    }
};

// The part of a value row that a lane holds.
template <int TYPE, int D> struct tn_value_part {
    static constexpr int WORDS =
        tn_cache_traits<TYPE>::QUANT ? D / 64 * tn_cache_traits<TYPE>::VALUE_WORDS : D / 16;
    uint32_t w[WORDS];

    __device__ __forceinline__ void load(const char *row, int g, int used)
    {
        typedef tn_cache_traits<TYPE> traits;
        if constexpr (!traits::QUANT) {
            tn_load_plain<64>(w, row, g, used);
        } else {
#pragma unroll
            for (int p = 0; p < D / 64; p++) {
                const char *pair = row + p * traits::PAIR;
                uint32_t *to = w + p * traits::VALUE_WORDS;
                to[0] = tn_load4(pair);
                to[1] = tn_load4(pair + 4 * traits::MIDDLE);
                if (TYPE == TN_CUDA_CACHE_Q8_0) {
                    to[2] = tn_load4(pair + 4 * g);
                    to[3] = tn_load4(pair + 4 * (traits::MIDDLE + 1 + g));
                } else {
                    to[2] = tn_load4(pair + 4 * (g < 4 ? g : g + 1));
                }
            }
        }
    }

    // For keys that do not exist.
    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < WORDS; i++) w[i] = 0;
    }

    // The codes of group j, like those of a key.
    __device__ __forceinline__ void bytes(int j, int g, uint32_t &lo, uint32_t &hi) const
    {
        const uint32_t *from = w + j * tn_cache_traits<TYPE>::VALUE_WORDS;
        uint32_t x = g == 0 ? __byte_perm(from[0], from[1], 0x5432) : from[2];
        if (TYPE == TN_CUDA_CACHE_Q8_0) {
            lo = x ^ 0x80808080u;
            hi = from[3] ^ 0x80808080u;
        } else {
            lo = x & 0x0f0f0f0fu;
            hi = x >> 4 & 0x0f0f0f0fu;
        }
    }

    // The f16 bits of the scale of elements 4 half .. 4 half + 3 of group j, in the lower half of a word.
    __device__ __forceinline__ uint32_t scale(int j, int g, int half) const
    {
        const uint32_t *from = w + j * tn_cache_traits<TYPE>::VALUE_WORDS;
        bool second = TYPE == TN_CUDA_CACHE_Q8_0 ? half == 1 : g >= 4;
        return second ? from[1] >> 16 : from[0] & 0xffffu;
    }
};

// Two unsigned bytes of x, which `selector` names as in __byte_perm, as two f16 minus `bias`. The f16 with
// the bits 0x64nn is 1024 + nn.
static __device__ __forceinline__ __half2 tn_bytes_half2(uint32_t x, uint32_t selector, uint32_t bias)
{
    uint32_t h = __byte_perm(x, 0x64646464u, selector);
    return __hsub2(*reinterpret_cast<__half2 *>(&h), *reinterpret_cast<__half2 *>(&bias));
}

// The bias that makes signed integers of the bytes of tn_key_part and tn_value_part: 1024 + 128 or 1024 + 8,
// twice.
template <int TYPE> static __device__ __forceinline__ constexpr uint32_t tn_quant_bias()
{
    return TYPE == TN_CUDA_CACHE_Q8_0 ? 0x64806480u : 0x64086408u;
}

#endif
