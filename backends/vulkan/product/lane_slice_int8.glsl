// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of quantised weights with int8 activations, for gemv.comp. A slice is what a lane loads of
// a row of weights at once: 16 bytes of plane 0 with the high bits and scales that belong to them. Its
// elements are runs of 16, which need not lie side by side in the row. Loading is apart from multiplying,
// so that a caller can have several slices in flight.
//
// TYPE is a specialisation constant, so the driver keeps one branch of each. Formats: ops/quant_*.c;
// planes: backends/planes.def.
#extension GL_EXT_spirv_intrinsics : require

// OpSDot of two times four signed bytes (SPV_KHR_integer_dot_product), which glslang has no name for before
// version 15.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int dot_bytes(uint a, uint b, spirv_literal int packed_bytes);

struct Slice {
    uvec4 v, h, s; // codes, their high bits, scales
    uint e;
};
struct Activations {
    uvec4 q[4];
    float d[4];
    int sum[4]; // of q
};

bool blocks_of_32(int type)
{
    return type == TYPE_Q4_0 || type == TYPE_Q4_1 || type == TYPE_Q5_0 || type == TYPE_Q5_1 ||
           type == TYPE_IQ4_NL || type == TYPE_IQ4_XS || type == TYPE_MXFP4;
}
int runs_of(int type) { return type == TYPE_Q8_0 ? 1 : type == TYPE_Q2_K || type == TYPE_Q3_K ? 4 : 2; }

// The first element of run p of slice u.
uint run_at(int type, uint u, uint p)
{
    if (type == TYPE_Q8_0) return 16 * u;
    if (blocks_of_32(type)) return 32 * u + 16 * p;
    if (type == TYPE_Q2_K || type == TYPE_Q3_K) return u / 4 * 256 + (u & 2u) * 64 + 32 * p + 16 * (u & 1u);
    uint b = u / 8 * 256, c = u & 7u;
    return type == TYPE_Q6_K ? b + 128 * (c / 4) + 16 * (c & 3u) + 64 * p
                             : b + 64 * (c / 2) + 16 * (c & 1u) + 32 * p;
}

// Elements of a slice.
uint elems_of(int type) { return 16 * runs_of(type); }

Slice load_slice(int type, const uint64_t at[MAX_PLANES], uint u, uint k)
{
    Slice x;
    x.v = load_u128(at[0] + 16 * u);
    x.h = x.s = uvec4(0);
    x.e = 0;
    uint b = u / 8, c = u & 7u;
    switch (type) {
    case TYPE_Q8_0: x.s.x = load_u16(at[1] + 2 * (u / 2)); break;
    case TYPE_Q4_0: case TYPE_IQ4_NL: x.s.x = load_u16(at[1] + 2 * u); break;
    case TYPE_MXFP4: x.s.x = load_u8(at[1] + u); break;
    case TYPE_Q4_1: x.s.x = load_u32(at[1] + 4 * u); break;
    case TYPE_Q5_0: x.h.x = load_u32(at[1] + 4 * u); x.s.x = load_u16(at[2] + 2 * u); break;
    case TYPE_Q5_1: x.h.x = load_u32(at[1] + 4 * u); x.s.x = load_u32(at[2] + 4 * u); break;
    case TYPE_IQ4_XS: x.s.x = load_u32(at[1] + 8 * b); x.s.y = load_u32(at[1] + 8 * b + 4); break;
    case TYPE_Q4_K: x.s = load_u128(at[1] + 16 * b); break;
    case TYPE_Q5_K:
        x.h = load_u128(at[1] + 32 * b + 16 * (c & 1u));
        x.s = load_u128(at[2] + 16 * b);
        break;
    case TYPE_Q6_K:
        x.h = load_u128(at[1] + 64 * b + 32 * (c / 4) + 16 * (c & 1u));
        x.s.x = load_u8(at[2] + 16 * b + 8 * (c / 4) + (c & 3u));
        x.s.y = load_u8(at[2] + 16 * b + 8 * (c / 4) + (c & 3u) + 4);
        x.e = load_u16(at[3] + 2 * b);
        break;
    case TYPE_Q2_K:
        b = u / 4;
        x.s.x = load_u32(at[1] + 16 * b + 4 * (u & 2u));
        x.s.y = load_u32(at[1] + 16 * b + 4 * (u & 2u) + 4);
        x.e = load_u32(at[2] + 4 * b);
        break;
    default: // Q3_K
        b = u / 4;
        x.h = load_u128(at[1] + 32 * b + 16 * (u & 1u));
        [[unroll]] for (int i = 0; i < 3; i++) x.s[i] = load_u32(at[2] + 12 * b + 4 * i);
        x.e = load_u16(at[3] + 2 * b);
    }
    return x;
}

// Those that belong to slice u, from a row of k int8 activations. Their squares were added up when they were
// quantised.
Activations load_activations(int type, uint64_t row, uint k, uint u, bool counts, inout float squares)
{
    Activations a;
    [[unroll]] for (int p = 0; p < runs_of(type); p++) {
        uint at = run_at(type, u, p);
        a.q[p] = load_u128(row + at);
        uint64_t scales = row + k + 8 * (at / 32);
        a.d[p] = load_f32(scales);
        a.sum[p] = bitfieldExtract(load_i32(scales + 4), int(at & 16u), 16);
    }
    return a;
}

int dot_run(uvec4 w, uvec4 q)
{
    return dot_bytes(w.x, q.x, 0) + dot_bytes(w.y, q.y, 0) + dot_bytes(w.z, q.z, 0) + dot_bytes(w.w, q.w, 0);
}

// Bits 0 .. 3 of v as bit 4 of the bytes.
uint spread_to_4(uint v) { return (v & 15u) * 0x00204081u << 4 & 0x10101010u; }

uvec4 table_values(int type, uvec4 codes)
{
    uvec4 y = uvec4(0);
    [[unroll]] for (int i = 0; i < 16; i++) {
        uint c = codes[i / 4] >> 8 * (i % 4) & 15u;
        y[i / 4] |= (uint(type == TYPE_MXFP4 ? fp4_values[c] : iq4_values[c]) & 255u) << 8 * (i % 4);
    }
    return y;
}

float dot_32(int type, Slice x, Activations a, uint u)
{
    uvec4 low = x.v & 0x0f0f0f0fu, high = x.v >> 4 & 0x0f0f0f0fu;
    bool has_min = type == TYPE_Q4_1 || type == TYPE_Q5_1;
    int less = type == TYPE_Q4_0 ? 8 : type == TYPE_Q5_0 ? 16 : 0;
    if (type == TYPE_Q5_0 || type == TYPE_Q5_1)
        [[unroll]] for (int i = 0; i < 4; i++) {
            low[i] |= spread_to_4(x.h.x >> 4 * i);
            high[i] |= spread_to_4(x.h.x >> (16 + 4 * i));
        }
    if (type == TYPE_IQ4_NL || type == TYPE_IQ4_XS || type == TYPE_MXFP4) {
        low = table_values(type, low);
        high = table_values(type, high);
    }
    float d = half_bits(x.s.x);
    if (type == TYPE_MXFP4) d = half_e8m0(x.s.x);
    if (type == TYPE_IQ4_XS) {
        int g = int(u & 7u);
        d *= float(int((x.s.y >> 4 * g & 15u) | (x.s.x >> (16 + 2 * g) & 3u) << 4) - 32);
    }
    int both = a.sum[0] + a.sum[1];
    float dot = d * float(dot_run(low, a.q[0]) + dot_run(high, a.q[1]) - less * both);
    if (has_min) dot += half_bits(x.s.x >> 16) * float(both);
    return a.d[0] * dot;
}

float dot_k45(int type, Slice x, Activations a, uint u)
{
    int c = int(u & 7u), g = c & 6;
    uvec4 low = x.v & 0x0f0f0f0fu, high = x.v >> 4 & 0x0f0f0f0fu;
    if (type == TYPE_Q5_K) {
        uvec4 h = x.h >> g;
        low |= h << 4 & 0x10101010u;
        high |= h << 3 & 0x10101010u;
    }
    vec2 first = k4_scales(x.s, g), second = k4_scales(x.s, g + 1);
    return a.d[0] * (first.x * float(dot_run(low, a.q[0])) - first.y * float(a.sum[0])) +
           a.d[1] * (second.x * float(dot_run(high, a.q[1])) - second.y * float(a.sum[1]));
}

float dot_q6(Slice x, Activations a, uint u)
{
    uvec4 h = x.h >> int(u & 2u), low = (x.v & 0x0f0f0f0fu) | (h << 4 & 0x30303030u),
          high = (x.v >> 4 & 0x0f0f0f0fu) | (h & 0x30303030u);
    int first = bitfieldExtract(int(x.s.x), 0, 8), second = bitfieldExtract(int(x.s.y), 0, 8);
    return half_bits(x.e) * (a.d[0] * float((dot_run(low, a.q[0]) - 32 * a.sum[0]) * first) +
                             a.d[1] * float((dot_run(high, a.q[1]) - 32 * a.sum[1]) * second));
}

float dot_k23(int type, Slice x, Activations a, uint u)
{
    uint odd = u & 1u, half_of = u >> 1 & 1u;
    float sum = 0.0;
    [[unroll]] for (uint p = 0; p < 4; p++) {
        uvec4 v = x.v >> 2 * int(p) & 0x03030303u;
        if (type == TYPE_Q2_K) {
            uint s = x.s[p / 2] >> 8 * (2 * (p & 1u) + odd) & 255u;
            sum += a.d[p] * (half_bits(x.e) * float(int(s & 15u) * dot_run(v, a.q[p])) -
                             half_bits(x.e >> 16) * float(int(s >> 4) * a.sum[p]));
        } else {
            v |= (x.h >> int(4 * half_of + p) & 0x01010101u) << 2;
            uint run = 2 * p + odd;
            uint low = x.s[p / 2] >> (8 * (run & 3u) + 4 * half_of) & 15u,
                 top = x.s.z >> (8 * (run & 3u) + 4 * half_of + 2 * (p / 2)) & 3u;
            sum += a.d[p] * half_bits(x.e) *
                   float((int(low | top << 4) - 32) * (dot_run(v, a.q[p]) - 4 * a.sum[p]));
        }
    }
    return sum;
}

float dot_slice(int type, Slice x, Activations a, uint u)
{
    if (type == TYPE_Q8_0) return a.d[0] * half_bits(x.s.x) * float(dot_run(x.v, a.q[0]));
    if (blocks_of_32(type)) return dot_32(type, x, a, u);
    if (type == TYPE_Q6_K) return dot_q6(x, a, u);
    if (type == TYPE_Q2_K || type == TYPE_Q3_K) return dot_k23(type, x, a, u);
    return dot_k45(type, x, a, u);
}
