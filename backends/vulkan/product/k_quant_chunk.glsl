// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of weights of Q4_K, Q5_K and Q6_K with int8 activations in chunks of 64 elements, a quarter
// of a block of 256, for gemv_k_quant.comp. A chunk is large enough to make the unpacking of its scales
// cheap. What depends only on the chunk's place in the row, a lane computes once (ChunkActivations) for
// all rows of weights that it multiplies.
//
// TYPE is a specialisation constant. Formats: ops/quant_*.c; planes: backends/planes.def.
#extension GL_EXT_spirv_intrinsics : require

// OpSDot of two times four signed bytes (SPV_KHR_integer_dot_product), which glslang has no name for before
// version 15.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int dot_bytes(uint a, uint b, spirv_literal int packed_bytes);

// Weights and activations do not change while the shader runs, so the compiler may move these loads to any
// place.
layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer Fixed128 { uvec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Fixed64 { uvec2 v; };
layout(buffer_reference, scalar, buffer_reference_align = 2) readonly buffer Fixed16 { uint16_t v; };

struct Chunk {
    uvec4 v0, v1, h0, h1; // codes, their high bits
    uvec4 s;              // scales
};
struct ChunkActivations {
    uvec4 q[4]; // activations
    vec4 d, m;  // their scales; d times their sums
    int shift;
    bool upper;
};

const bool IS_Q6 = TYPE == TYPE_Q6_K;
const int HEAD = TYPE == TYPE_Q4_K ? 1 : 2; // the plane of scales

// Where chunk c of a row begins in each plane.
void find_chunk(uint c, out uint at[MAX_PLANES])
{
    uint b = c / 4, j = c & 3u;
    [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) at[i] = 0;
    if (IS_Q6) {
        at[0] = 128 * b + 32 * (j & 2u) + 16 * (j & 1u);
        at[1] = 16 * c;
        at[2] = 8 * (c / 2);
        at[3] = 2 * b;
    } else {
        at[0] = 32 * c;
        at[HEAD] = 16 * b;
        if (TYPE == TYPE_Q5_K) at[1] = 32 * b;
    }
}

// How far the scales of chunk j of a block have to be shifted.
int shift_of(uint j) { return int((IS_Q6 ? 8 : 16) * (j & 1u)); }

// Those of chunk c of a row of k activations; all 0 if `some` is false: the lane has no chunk.
ChunkActivations load_chunk_activations(uint64_t row, uint k, uint c, bool some)
{
    ChunkActivations p;
    uint b = c / 4, j = c & 3u, e = IS_Q6 ? 256 * b + 64 * (j & 2u) + 16 * (j & 1u) : 64 * c;
    [[unroll]] for (uint i = 0; i < 4; i++) p.q[i] = Fixed128(row + e + (IS_Q6 ? 32 : 16) * i).v;
    uint64_t records = row + k + (IS_Q6 ? 32 * (c / 2) : 16 * c);
    uvec4 first = Fixed128(records).v, second = IS_Q6 ? Fixed128(records + 16).v : uvec4(0);
    p.d = uintBitsToFloat(uvec4(first.xz, second.xz));
    uvec4 sums = uvec4(first.yw, second.yw);
    [[unroll]] for (uint i = 0; i < 4; i++) {
        int both = bitfieldExtract(int(sums[i]), 0, 16) + bitfieldExtract(int(sums[i]), 16, 16);
        int half_of = bitfieldExtract(int(sums[i]), int(16 * (j & 1u)), 16);
        p.m[i] = IS_Q6 ? intBitsToFloat(-32 * half_of) : p.d[i] * float(both);
    }
    if (!some) {
        p.d = vec4(0.0);
        if (!IS_Q6) p.m = vec4(0.0);
    }
    p.shift = shift_of(j);
    p.upper = j >= 2;
    return p;
}

// The chunk at these addresses in the planes.
Chunk load_chunk(const uint64_t at[MAX_PLANES])
{
    Chunk x;
    x.v0 = Fixed128(at[0]).v;
    x.v1 = Fixed128(at[0] + (IS_Q6 ? 32 : 16)).v;
    x.h0 = x.h1 = x.s = uvec4(0);
    if (IS_Q6) {
        x.h0 = Fixed128(at[1]).v;
        x.s.xy = Fixed64(at[2]).v;
        x.s.z = uint(Fixed16(at[3]).v);
    } else x.s = Fixed128(at[HEAD]).v;
    if (TYPE == TYPE_Q5_K) {
        x.h0 = Fixed128(at[1]).v;
        x.h1 = Fixed128(at[1] + 16).v;
    }
    return x;
}

int dot_16(uvec4 w, uvec4 q, int sum)
{
    sum += dot_bytes(w.x, q.x, 0);
    sum += dot_bytes(w.y, q.y, 0);
    sum += dot_bytes(w.z, q.z, 0);
    sum += dot_bytes(w.w, q.w, 0);
    return sum;
}

// What a chunk is to all rows of activations: the codes that meet q[i], 32 too many each for Q6_K, and
// scales, of runs of 16 or groups of 32, and minima. Those of Q4_K and Q5_K have 6 bits each, which lie
// together for the first half of a block and in two parts for the second.
struct ChunkCodes {
    uvec4 v[4];
    vec4 s;
    vec2 less;
    float d, m; // of the block
};

// shift: shift_of the chunk; upper: it is in the second half of its block.
ChunkCodes codes_of_chunk(Chunk x, int shift, bool upper)
{
    const uint LOW = 0x0f0f0f0fu, FIFTH = 0x10101010u, TOP = 0x30303030u;
    ChunkCodes c;
    c.v = uvec4[](x.v0 & LOW, x.v1 & LOW, x.v0 >> 4 & LOW, x.v1 >> 4 & LOW);
    if (IS_Q6) {
        c.v[0] |= x.h0 << 4 & TOP;
        c.v[1] |= x.h0 << 2 & TOP;
        c.v[2] |= x.h0 & TOP;
        c.v[3] |= x.h0 >> 2 & TOP;
        uvec2 s = x.s.xy >> shift;
        c.s = vec4(bitfieldExtract(int(s.x), 0, 8), bitfieldExtract(int(s.x), 16, 8),
                   bitfieldExtract(int(s.y), 0, 8), bitfieldExtract(int(s.y), 16, 8));
        c.d = half_bits(x.s.z);
        return c;
    }
    if (TYPE == TYPE_Q5_K) {
        int g = shift / 8 + (upper ? 4 : 0);
        uvec4 h0 = x.h0 >> g, h1 = x.h1 >> g;
        c.v[0] |= h0 << 4 & FIFTH;
        c.v[1] |= h1 << 4 & FIFTH;
        c.v[2] |= h0 << 3 & FIFTH;
        c.v[3] |= h1 << 3 & FIFTH;
    }
    uvec3 t = x.s.yzw >> shift;
    uint s = upper ? (t.z & 0x0f0fu) | (t.x >> 2 & 0x3030u) : t.x & 0x3f3fu,
         less = upper ? (t.z >> 4 & 0x0f0fu) | (t.y >> 2 & 0x3030u) : t.y & 0x3f3fu;
    c.s.xy = vec2(s & 255u, s >> 8);
    c.less = vec2(less & 255u, less >> 8);
    vec2 d = unpackHalf2x16(x.s.x);
    c.d = d.x, c.m = d.y;
    return c;
}

float dot_q6(ChunkCodes c, ChunkActivations p)
{
    ivec4 m = floatBitsToInt(p.m);
    int v = dot_16(c.v[0], p.q[0], m.x), w = dot_16(c.v[1], p.q[1], m.y), x = dot_16(c.v[2], p.q[2], m.z),
        y = dot_16(c.v[3], p.q[3], m.w);
    float sum = p.d.x * (c.s.x * float(v));
    sum = fma(p.d.y, c.s.y * float(w), sum);
    sum = fma(p.d.z, c.s.z * float(x), sum);
    sum = fma(p.d.w, c.s.w * float(y), sum);
    return sum * c.d;
}

float dot_q45(ChunkCodes c, ChunkActivations p)
{
    int a = dot_16(c.v[1], p.q[1], dot_16(c.v[0], p.q[0], 0)),
        b = dot_16(c.v[3], p.q[3], dot_16(c.v[2], p.q[2], 0));
    float sum = fma(p.d.y, c.s.y * float(b), p.d.x * (c.s.x * float(a)));
    float less = fma(p.m.y, c.less.y, p.m.x * c.less.x);
    return fma(c.d, sum, -c.m * less);
}

float dot_chunk(ChunkCodes c, ChunkActivations p) { return IS_Q6 ? dot_q6(c, p) : dot_q45(c, p); }
