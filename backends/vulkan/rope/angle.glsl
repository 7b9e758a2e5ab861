// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Angles of rope (RoPE, Su et al. 2021, eq. 34), in whole turns: 2^-64 of one each.

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Turns { uint64_t at[]; };

// A turn divided by a float, which is an integer m of 24 bits times 2^e: exact to the last bit that the
// result keeps.
uint64_t divide(uint64_t turn, float factor)
{
    uint bits = floatBitsToUint(factor), m = (bits & 0x7fffffu) | 0x800000u;
    int e = int(bits >> 23 & 255u) - 150;
    uint64_t q = turn / m, r = turn % m;
    if (e >= 0) return e < 64 ? q >> e : uint64_t(0);
    int up = min(-e, 40);
    return (q << up) + (r << up) / m;
}

// cos and sin of an angle in 2^-32 of a full turn. Those of GLSL may be off by 2^-11. Taylor series within
// an eighth of a turn of a whole quarter; the error is below 3e-8.
vec2 cos_sin(uint t)
{
    uint quarter = (t + 0x20000000u) >> 30;
    float x = float(int(t - (quarter << 30))) * (6.28318530717958647693 / 4294967296.0), y = x * x;
    float s = x * (1.0 + y * (-1.0 / 6.0 + y * (1.0 / 120.0 + y * (-1.0 / 5040.0 + y / 362880.0))));
    float c = 1.0 + y * (-0.5 + y * (1.0 / 24.0 + y * (-1.0 / 720.0 + y / 40320.0)));
    return quarter == 0 || quarter == 4 ? vec2(c, s)
           : quarter == 1               ? vec2(-s, c)
           : quarter == 2               ? vec2(-c, -s)
                                        : vec2(s, -c);
}
