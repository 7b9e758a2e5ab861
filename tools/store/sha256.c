// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/store/sha256.h"

#include <string.h>

enum { BLOCK = 64 };

// FIPS 180-4, 4.2.2: fractions of the cube roots of the first 64 primes.
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

// One round of 6.2.2 without moving the eight values: each caller names them in another order, which is twice
// as fast as moving them.
#define ROUND(a, b, c, d, e, f, g, h, t)                                                                     \
    do {                                                                                                     \
        uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) +             \
                      round_constants[t] + w[t];                                                             \
        d += t1;                                                                                             \
        h = t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));                 \
    } while (0)

static void add_block(uint32_t state[8], const uint8_t *bytes)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)bytes[4 * t] << 24 | (uint32_t)bytes[4 * t + 1] << 16 |
               (uint32_t)bytes[4 * t + 2] << 8 | bytes[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t += 8) {
        ROUND(a, b, c, d, e, f, g, h, t);
        ROUND(h, a, b, c, d, e, f, g, t + 1);
        ROUND(g, h, a, b, c, d, e, f, t + 2);
        ROUND(f, g, h, a, b, c, d, e, t + 3);
        ROUND(e, f, g, h, a, b, c, d, t + 4);
        ROUND(d, e, f, g, h, a, b, c, t + 5);
        ROUND(c, d, e, f, g, h, a, b, t + 6);
        ROUND(b, c, d, e, f, g, h, a, t + 7);
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) state[i] += sums[i];
}

void sha256_init(sha256 *s)
{
    // 5.3.3: fractions of the square roots of the first 8 primes.
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->h, start, sizeof start);
    s->total = 0;
}

void sha256_add(sha256 *s, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = s->total % BLOCK;
    s->total += n;
    if (held) {
        size_t k = n < BLOCK - held ? n : BLOCK - held;
        memcpy(s->rest + held, p, k);
        p += k;
        n -= k;
        if (held + k < BLOCK) return;
        add_block(s->h, s->rest);
    }
    for (; n >= BLOCK; p += BLOCK, n -= BLOCK) add_block(s->h, p);
    if (n) memcpy(s->rest, p, n);
}

void sha256_hex(sha256 *s, char hex[SHA256_HEX])
{
    static const char digits[] = "0123456789abcdef";
    static const uint8_t padding[BLOCK] = {0x80};
    uint64_t bits = s->total * 8;
    size_t held = s->total % BLOCK;
    uint8_t length[8];
    for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, padding, held < 56 ? 56 - held : 120 - held); // 5.1.1
    sha256_add(s, length, sizeof length);
    for (int i = 0; i < 64; i++) hex[i] = digits[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}

bool sha256_parse(const char *text, size_t n, char hex[SHA256_HEX])
{
    if (n != SHA256_HEX - 1) return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c >= 'A' && c <= 'F') c = (char)(c + 32);
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
        hex[i] = c;
    }
    hex[n] = 0;
    return true;
}
