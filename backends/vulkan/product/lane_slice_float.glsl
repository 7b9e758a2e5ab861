// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of weights of F32, F16 and BF16 with activations as they are, in units of 16 bytes of a row, as units.glsl has them for
// quantised weights. A norm's weight is applied on the way.

struct Unit {
    uvec4 v;
};
struct Acts {
    float x[8];
};

uint elems_of(int type) { return type == TYPE_F32 ? 4 : 8; }

Unit load_unit(int type, const uint64_t at[MAX_PLANES], uint u, uint k)
{
    Unit x;
    x.v = uvec4(0);
    if (ALIGNED != 0) x.v = load_u128(at[0] + 16 * u);
    else
        [[unroll]] for (uint i = 0; i < elems_of(type); i++) {
            uint e = u * elems_of(type) + i;
            if (e >= k) continue;
            if (type == TYPE_F32) x.v[i] = load_u32(at[0] + 4 * e);
            else x.v[i / 2] |= load_u16(at[0] + 2 * e) << 16 * (i & 1u);
        }
    return x;
}

// Eight elements at most from e on, 0 behind the row.
void floats_at(int type, uint64_t row, uint e, uint k, out float x[8])
{
    uint n = elems_of(type);
    [[unroll]] for (uint i = 0; i < n; i += 4) {
        vec4 v = vec4(0.0);
        if (ALIGNED != 0) v = PF128(row + 4 * int64_t(e + i)).v;
        else
            [[unroll]] for (uint j = 0; j < 4; j++)
                if (e + i + j < k) v[j] = load_f32(row + 4 * int64_t(e + i + j));
        [[unroll]] for (uint j = 0; j < 4; j++) x[i + j] = v[j];
    }
}

// Adds the squares of x if there is a norm.
Acts load_acts(int type, uint64_t row, uint k, uint u, bool counts, inout float squares)
{
    Acts a;
    uint n = elems_of(type), e = u * n;
    floats_at(type, row, e, k, a.x);
    if (args.n[N_PRODUCT_NORM] < 0) return a;
    float scale[8], sum = 0.0;
    floats_at(type, args.src[args.n[N_PRODUCT_NORM]].data, e, k, scale);
    [[unroll]] for (uint i = 0; i < n; i++) {
        sum = fma(a.x[i], a.x[i], sum);
        a.x[i] *= scale[i];
    }
    squares += counts ? sum : 0.0;
    return a;
}

float dot_unit(int type, Unit x, Acts a, uint u)
{
    float sum = 0.0, other = 0.0;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        if (type == TYPE_F32) sum = fma(uintBitsToFloat(x.v[i]), a.x[i], sum);
        else {
            vec2 two = type == TYPE_F16 ? unpackHalf2x16(x.v[i]) : vec2(uintBitsToFloat(x.v[i] << 16), uintBitsToFloat(x.v[i] & 0xffff0000u));
            sum = fma(two.x, a.x[2 * i], sum);
            other = fma(two.y, a.x[2 * i + 1], other);
        }
    }
    return sum + other;
}
