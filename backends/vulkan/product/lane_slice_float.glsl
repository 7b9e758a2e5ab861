// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Dot products of weights of F32, F16 and BF16 with activations in f32, for gemv.comp. A slice is what a
// lane loads of a row of weights at once: 16 bytes, four or eight elements. The weight of a norm is
// multiplied to x on the way. The functions are those of lane_slice_int8.glsl.

struct Slice {
    uvec4 v;
};
struct Activations {
    float x[8];
};

uint elems_of(int type) { return type == TYPE_F32 ? 4 : 8; }

Slice load_slice(int type, const uint64_t at[MAX_PLANES], uint u, uint k)
{
    Slice x;
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

// As many elements of a row of f32 as a slice has, from element e on; 0 behind the end of the row.
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

// Those that belong to slice u. Adds their squares to `squares` if there is a norm.
Activations load_activations(int type, uint64_t row, uint k, uint u, bool counts, inout float squares)
{
    Activations a;
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

float dot_slice(int type, Slice x, Activations a, uint u)
{
    float sum = 0.0, other = 0.0;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        if (type == TYPE_F32) sum = fma(uintBitsToFloat(x.v[i]), a.x[i], sum);
        else {
            vec2 two = type == TYPE_F16
                           ? unpackHalf2x16(x.v[i])
                           : vec2(uintBitsToFloat(x.v[i] << 16), uintBitsToFloat(x.v[i] & 0xffff0000u));
            sum = fma(two.x, a.x[2 * i], sum);
            other = fma(two.y, a.x[2 * i + 1], other);
        }
    }
    return sum + other;
}
