// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The angles of rope (RoPE, Su et al. 2021, eq. 34) for the shaders that turn heads. The record of the step
// (N_ROPE_*) need not be that of the dispatch.

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Turns { uint64_t at[]; };

// What all heads of a token have in common.
struct Rotation {
    Args record;
    uint64_t position;
    uint n_rot;
    int mode;
    float scale;
};

Rotation rotation_of(Args record, uint token)
{
    View pos = record.src[record.n[N_ROPE_POS]];
    int at = record.n[N_ROPE_PARAMS];
    Rotation r;
    r.record = record;
    r.mode = record.params[at];
    r.n_rot = uint(record.params[at + 1]);
    r.position = uint64_t(int64_t(load_i32(pos.data + int64_t(token) * pos.nb[3])));
    r.scale = scale_or_1(intBitsToFloat(record.params[at + 4]));
    return r;
}

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

// Cosine and sine of the angle of pair i, times the scale of rope. has_factors: a constant.
vec2 turn_of(Rotation r, uint i, bool has_factors)
{
    uint64_t each = Turns(r.record.tables).at[i];
    if (has_factors)
        each = divide(each, load_f32(r.record.src[r.record.n[N_ROPE_FACTORS]].data + 4 * i));
    return cos_sin(uint(each * r.position >> 32)) * r.scale;
}

// The two elements of pair i.
uvec2 pair_of(Rotation r, uint i)
{
    return r.mode == ROPE_NORM ? uvec2(2 * i, 2 * i + 1) : uvec2(i, i + r.n_rot / 2);
}

vec2 turned(vec2 v, vec2 turn) { return vec2(v.x * turn.x - v.y * turn.y, v.x * turn.y + v.y * turn.x); }
