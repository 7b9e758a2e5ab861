// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of ops/sample.h, which gives the same bits on every device. Additions and multiplications of
// floats are rounded to nearest, and `precise` keeps compilers from joining them. What drivers may round in
// other ways, divisions and doubles, which many devices do not have at all, is computed with integers here.
//
// Logits are visited as keys, which are integers that sort like the floats. NaN has become -inf, +inf the
// largest float, -0 has become 0.

const uint NEVER = 0x007fffffu; // the key of -inf
const uint INFINITE = 0x7f800000u, LARGEST = 0x7f7fffffu, ONE = 0x3f800000u; // bits of floats

uint key_of(uint bits)
{
    uint size = bits & 0x7fffffffu;
    if (size > INFINITE) bits = 0xff800000u;
    else if (bits == INFINITE) bits = LARGEST;
    else if (size == 0) bits = 0;
    return (bits >> 31) != 0 ? ~bits : bits ^ 0x80000000u;
}

uint bits_of(uint key) { return (key >> 31) != 0 ? key ^ 0x80000000u : ~key; }
float value_of(uint key) { return uintBitsToFloat(bits_of(key)); }

// A float above 0 as m * 2^(e - 150), with 24 bits in m; 0 has m = 0.
uint mantissa(uint bits, out int e)
{
    uint m = bits & 0x7fffffu;
    e = int(bits >> 23 & 255u);
    if (e > 0) return m | 0x800000u;
    e = 1;
    if (m == 0) return 0;
    int shift = 23 - findMSB(m);
    e -= shift;
    return m << shift;
}

// The bits of a / b from those of two floats that are not negative, rounded to nearest even. Quotients above
// 2^9 are infinite, those below 2^-60 are 0: exp_negative() makes no difference there.
uint divide(uint a, uint b)
{
    int e_a, e_b;
    uint m_a = mantissa(a, e_a), m_b = mantissa(b, e_b);
    if (a >= INFINITE || m_b == 0 || b > INFINITE) return INFINITE;
    int e = e_a - e_b;
    if (m_a == 0 || b == INFINITE || e < -60) return 0;
    if (e > 9) return INFINITE;
    // The quotient with 25 bits: an estimate in floats, corrected by the rest, of which 32 bits are enough.
    bool less = m_a < m_b;
    uint q = uint(float(m_a) / float(m_b) * (less ? 33554432.0 : 16777216.0));
    int rest = int((m_a << (less ? 25 : 24)) - q * m_b), more = rest / int(m_b);
    rest -= more * int(m_b);
    if (rest < 0) more--, rest += int(m_b);
    q += uint(more);
    uint half_bit = q & 1u;
    q >>= 1;
    if (half_bit != 0 && (rest != 0 || (q & 1u) != 0)) q++;
    return (uint(e - int(less) + 127) << 23) + q - 0x800000u;
}

// e^-x, from the bits of x; 0 above 87.
float exp_negative(uint size)
{
    uint limit = floatBitsToUint(87.0);
    float c = -uintBitsToFloat(min(size, limit));
    precise float shifted = c * 1.44269504088896341 + 12582912.0; // 1.5 * 2^23
    precise float n = shifted - 12582912.0;
    precise float r = (c - n * 0.693359375) - n * -2.12194440e-4;
    precise float p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    precise float y = p * (r * r) + r + 1.0;
    y = y * uintBitsToFloat((floatBitsToUint(shifted) + 127u) << 23);
    return size <= limit ? y : 0.0;
}

// e^((v - top) / temperature), of a key and of bits.
float weight_at(uint key, float top, uint temperature)
{
    precise float d = value_of(key) - top;
    uint size = floatBitsToUint(d) & 0x7fffffffu;
    return exp_negative(temperature == ONE ? size : divide(size, temperature & 0x7fffffffu));
}

// A weight of at most 1 in units of 2^-40, the even one of two that are as near.
uint64_t weight_fixed(float weight)
{
    uint bits = floatBitsToUint(weight), e = bits >> 23, m = (bits & 0x7fffffu) | 0x800000u;
    if (e >= 110) return uint64_t(m) << (e - 110);
    uint shift = 110 - e;
    if (shift > 24) return 0;
    uint half_bit = 1u << (shift - 1), rest = m & ((1u << shift) - 1), q = m >> shift;
    return q + uint(rest > half_bit || (rest == half_bit && (q & 1u) != 0));
}

// The upper 64 bits of a product.
uint64_t multiply_high(uint64_t x, uint64_t y)
{
    uint64_t a = x >> 32, b = x & 0xffffffffu, c = y >> 32, d = y & 0xffffffffu;
    uint64_t middle = (b * d >> 32) + (a * d & 0xffffffffu) + (b * c & 0xffffffffu);
    return a * c + (a * d >> 32) + (b * c >> 32) + (middle >> 32);
}

// --- doubles -------------------------------------------------------------------------------------------

// m * 2^e. m is 0, or its highest bit is bit 62 and its lowest ten are 0, as a double has 53 bits.
struct Double {
    bool minus;
    int e;
    uint64_t m;
};

int highest_bit(uint64_t m)
{
    uint high = uint(m >> 32);
    return high != 0 ? 32 + findMSB(high) : findMSB(uint(m));
}

// To nearest even. Of what was cut off before, the lowest bit of m says that it was not 0.
Double round_double(bool minus, int e, uint64_t m)
{
    if (m == 0) return Double(false, 0, uint64_t(0));
    if ((m >> 63) != 0) m = m >> 1 | (m & 1), e++;
    int shift = 62 - highest_bit(m);
    m <<= shift;
    e -= shift;
    uint rest = uint(m) & 1023u;
    m -= rest;
    if (rest > 512u || (rest == 512u && (m & 1024) != 0)) m += 1024;
    if ((m >> 63) != 0) m >>= 1, e++;
    return Double(minus, e, m);
}

Double double_of(uint bits)
{
    int e;
    uint m = mantissa(bits, e);
    return Double((bits >> 31) != 0, e - 189, uint64_t(m) << 39);
}

Double multiply(Double a, Double b)
{
    uint64_t high = multiply_high(a.m, b.m);
    return round_double(a.minus != b.minus, a.e + b.e + 64, high | uint64_t(a.m * b.m != 0));
}

// Of two doubles that are floats; what is divided by 0 becomes larger than any float.
Double divide(Double a, Double b)
{
    uint64_t d = b.m >> 39, from = (a.m >> 39) << 38;
    if (d == 0) return Double(a.minus, 2000, uint64_t(1) << 62);
    uint64_t high = from / d, rest = (from - high * d) << 24, low = rest / d;
    return round_double(a.minus != b.minus, a.e - b.e - 62, high << 24 | low | uint64_t(rest != low * d));
}

Double add(Double a, Double b)
{
    if (a.m == 0) return b;
    if (b.m == 0) return a;
    bool swaps = a.e < b.e || (a.e == b.e && a.m < b.m);
    Double large = swaps ? b : a, small = swaps ? a : b;
    int shift = large.e - small.e;
    uint64_t m = uint64_t(1);
    if (shift < 63) m = small.m >> shift | uint64_t((small.m & ((uint64_t(1) << shift) - 1)) != 0);
    m = large.minus == small.minus ? large.m + m : large.m - m;
    return round_double(large.minus, large.e, m);
}

// The key of the nearest float. What is larger than any float becomes the largest one.
uint key_of(Double v)
{
    int e = v.e + 189, shift = 39 + max(1 - e, 0); // e: the exponent of the float
    if (v.m == 0 || shift > 63) return key_of(0u);
    uint bits = LARGEST;
    if (e < 255) {
        uint64_t half_bit = uint64_t(1) << (shift - 1), rest = v.m & (half_bit * 2 - 1);
        uint q = uint(v.m >> shift);
        q += uint(rest > half_bit || (rest == half_bit && (q & 1u) != 0));
        bits = min((uint(max(e, 1) - 1) << 23) + q, LARGEST);
    }
    return key_of(bits | (v.minus ? 0x80000000u : 0u));
}

// The share of a sum of weights that a filter keeps; at least one token.
uint64_t share_of(uint64_t sum, float share)
{
    Double part = multiply(round_double(false, 0, sum), double_of(floatBitsToUint(share)));
    uint64_t whole = part.minus || part.e <= -64 ? 0 : part.m >> min(-part.e, 63);
    return whole > 0 ? whole : 1;
}
