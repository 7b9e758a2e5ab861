// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tiles of 16 keys as operands of mma.m16n8k16, straight from global memory into registers: the elements of a row may
// come in any order along the summed dimension if the other operand has the same one, so every lane takes
// whole words of the cache as they lie there. Lane l = 4 g + c.
//   keys as A of S^T = K Q^T:   lane holds rows g and g + 8, of every 32 elements the 8 that tn_key_element() names;
//   values as A of O^T = V^T P^T: lane holds keys 2c, 2c + 1, 2c + 8, 2c + 9, of every 64 elements the 8 of tn_value_element().
// f16, bf16: 16-byte loads. q8_0, q4_0: blocks of 34 and 18 bytes are read as 32-bit words of pairs of blocks (64
// elements, 17 and 9 words): the first block of a pair starts with its scale in the lower half of word 0, so
// two of its bytes pairs lie in the upper half of word 0 and in the lower half of the word that the second block's scale ends.
#ifndef TN_CUDA_ATTENTION_TILE_CUH
#define TN_CUDA_ATTENTION_TILE_CUH

#include "backends/cuda/attention/attention.cuh"
#include "backends/cuda/attention/mma_attention.cuh"

template <int TYPE> struct tn_cache_traits {
    static constexpr bool QUANT = TYPE == TN_CUDA_CACHE_Q8_0 || TYPE == TN_CUDA_CACHE_Q4_0;
    static constexpr bool BF16 = TYPE == TN_CUDA_CACHE_BF16;
    static constexpr int PAIR = TYPE == TN_CUDA_CACHE_Q8_0 ? 68 : 36;     // bytes of 64 elements
    static constexpr int MIDDLE = TYPE == TN_CUDA_CACHE_Q8_0 ? 8 : 4;     // word with the second scale
    static constexpr int KEY_WORDS = TYPE == TN_CUDA_CACHE_Q8_0 ? 6 : 4;  // a lane loads of 64 elements of a key
    static constexpr int VALUE_WORDS = TYPE == TN_CUDA_CACHE_Q8_0 ? 4 : 3;
};

// --- which elements ----------------------------------------------------------------------------------

// Byte e of the `word`-th word of the quants of block 0 or 1 of a pair: index of the byte in its block.
template <int TYPE> static __device__ __forceinline__ int tn_quant_byte(int block, int word, int e)
{
    int last = TYPE == TN_CUDA_CACHE_Q8_0 ? 32 : 16;
    if (block == 1) return 4 * word + e;
    if (word > 0) return 4 * word - 2 + e;
    return e < 2 ? e : last - 4 + e;
}

// Element e < 8 of 32-element group i that lane column c holds.
template <int TYPE> static __device__ __forceinline__ int tn_key_element(int i, int c, int e)
{
    if (TYPE == TN_CUDA_CACHE_Q8_0) return i * 32 + tn_quant_byte<TYPE>(i % 2, e < 4 ? c : c + 4, e % 4);
    if (TYPE == TN_CUDA_CACHE_Q4_0) return i * 32 + tn_quant_byte<TYPE>(i % 2, c, e % 4) + (e < 4 ? 0 : 16);
    return i * 32 + c * 8 + e;
}

// Element e < 8 of 64-element group j that lane row g holds.
template <int TYPE> static __device__ __forceinline__ int tn_value_element(int j, int g, int e)
{
    if (TYPE == TN_CUDA_CACHE_Q8_0) return j * 64 + e / 4 * 32 + tn_quant_byte<TYPE>(e / 4, g, e % 4);
    if (TYPE == TN_CUDA_CACHE_Q4_0) return j * 64 + g / 4 * 32 + tn_quant_byte<TYPE>(g / 4, g % 4, e % 4) + (e < 4 ? 0 : 16);
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

// Of each SPAN elements of a row the eight of part `at`, as they lie there; `used` of the elements exist.
template <int SPAN, int WORDS> static __device__ __forceinline__ void tn_load_plain(uint32_t (&w)[WORDS], const char *row, int at, int used)
{
#pragma unroll
    for (int i = 0; i < WORDS / 4; i++) {
        uint4 x = i * SPAN + at * 8 < used ? tn_load16(row + 2 * (i * SPAN + at * 8)) : make_uint4(0, 0, 0, 0);
        w[4 * i] = x.x, w[4 * i + 1] = x.y, w[4 * i + 2] = x.z, w[4 * i + 3] = x.w;
    }
}

// The part of a key row that a lane holds, D elements; `used` of them exist.
template <int TYPE, int D> struct tn_key_part {
    static constexpr int WORDS = tn_cache_traits<TYPE>::QUANT ? D / 64 * tn_cache_traits<TYPE>::KEY_WORDS : D / 8;
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

    // Quants of group i as 8 unsigned bytes, elements 0..3 and 4..7, too large by 128 or 8.
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

    __device__ __forceinline__ float scale(int i) const
    {
        const uint32_t *from = w + i / 2 * tn_cache_traits<TYPE>::KEY_WORDS;
        return i % 2 ? tn_half_bits(from[1] >> 16) : tn_half_bits(from[0] & 0xffffu);
    }
};

// The part of a value row that a lane holds.
template <int TYPE, int D> struct tn_value_part {
    static constexpr int WORDS = tn_cache_traits<TYPE>::QUANT ? D / 64 * tn_cache_traits<TYPE>::VALUE_WORDS : D / 16;
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

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < WORDS; i++) w[i] = 0;
    }

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

    // f16 bits of the scale of elements 4 half .. 4 half + 3, in the lower half of a word.
    __device__ __forceinline__ uint32_t scale(int j, int g, int half) const
    {
        const uint32_t *from = w + j * tn_cache_traits<TYPE>::VALUE_WORDS;
        bool second = TYPE == TN_CUDA_CACHE_Q8_0 ? half == 1 : g >= 4;
        return second ? from[1] >> 16 : from[0] & 0xffffu;
    }
};

// Two unsigned bytes of x, chosen by the lower nibbles of `pick`, as f16 less `bias` (gpu-notes: 0x64nn is 1024 + nn).
static __device__ __forceinline__ __half2 tn_bytes_half2(uint32_t x, uint32_t pick, uint32_t bias)
{
    uint32_t h = __byte_perm(x, 0x64646464u, pick);
    return __hsub2(*reinterpret_cast<__half2 *>(&h), *reinterpret_cast<__half2 *>(&bias));
}

template <int TYPE> static __device__ __forceinline__ constexpr uint32_t tn_quant_bias()
{
    return TYPE == TN_CUDA_CACHE_Q8_0 ? 0x64806480u : 0x64086408u; // 1024 + 128, 1024 + 8
}

#endif
