// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The generator behind sampling: xoshiro256** (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2018), seeded with splitmix64 as its authors advise. Integers only: every machine draws the
// same numbers from the same seed.
#ifndef TN_MODELS_RNG_H
#define TN_MODELS_RNG_H

#include <stdint.h>

typedef struct tn_rng {
    uint64_t state[4];
} tn_rng;

static inline void tn_rng_seed(tn_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        r->state[i] = z ^ z >> 31;
    }
}

static inline uint64_t tn_rng_rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline uint64_t tn_rng_next(tn_rng *r)
{
    uint64_t *s = r->state, result = tn_rng_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = tn_rng_rotate(s[3], 45);
    return result;
}

// Uniform in [0, 1): the 53 bits that a double holds.
static inline double tn_rng_uniform(tn_rng *r)
{
    return (double)(tn_rng_next(r) >> 11) * 0x1p-53;
}

#endif
