// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts x [rows, n] F32 to f16 or bf16 in args.scratch, for GEMM in 16 bits. First the factors of all
// rows (4 bytes each), then from the next multiple of 256 bytes on the rows, filled with zeros to
// multiples of 64 elements.
//
// With a norm it is the normed row that is converted.
//
// f16: each row is multiplied by the power of two that brings its largest finite value to 2^TOP .. 2^(TOP
// + 1), so that it neither overflows nor loses small values; the factor undoes that. bf16 has the range of
// f32 and needs no factor: it is 1.
//
// Work: one workgroup for each row. Bytes: 4 or 8 read (f16, norm: two passes) and 2 written for each
// element. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int ELEMENT = TYPE_F16;
layout(constant_id = 1) const int TOP = 14;
layout(constant_id = 3) const int ALIGNED = 0; // rows of x are whole runs of 4 and start aligned to 16 bytes
#include "backends/vulkan/shaders/reduce.glsl"

vec4 four(uint64_t row, uint k, uint n)
{
    if (ALIGNED != 0) return k < n ? PF128(row + 4 * int64_t(k)).v : vec4(0.0);
    vec4 v;
    [[unroll]] for (uint i = 0; i < 4; i++) v[i] = k + i < n ? load_f32(row + 4 * int64_t(k + i)) : 0.0;
    return v;
}

void main()
{
    uint r = group_index(), rows = uint(args.n[N_PRODUCT_ROWS]), n = uint(args.src[0].ne[3]),
         stride = (n + 63) / 64 * 64;
    if (r >= rows) return;
    uint64_t x = args.src[0].data + uint64_t(r) * uint64_t(args.n[N_PRODUCT_X_STRIDE]);
    uint64_t to = args.scratch + (uint64_t(rows) * 4 + 255) / 256 * 256 + uint64_t(r) * stride * 2;
    float power = 1.0, back = 1.0, factor = 1.0;
    bool normed = args.n[N_PRODUCT_NORM] >= 0;
    uint64_t weights = normed ? args.src[args.n[N_PRODUCT_NORM]].data : x;
    if (ELEMENT == TYPE_F16 || normed) {
        float most = 0.0, squares = 0.0;
        for (uint k = 4 * gl_LocalInvocationID.x; k < n; k += 4 * THREADS) {
            vec4 v = four(x, k, n);
            squares += dot(v, v);
            v = abs(normed ? v * four(weights, k, n) : v);
            [[unroll]] for (uint i = 0; i < 4; i++)
                if (v[i] <= 3.40282347e38 && v[i] > most) most = v[i];
        }
        most = reduce_max(most);
        if (normed) factor = inversesqrt(reduce_sum(squares) / float(n) + param_f(args.n[N_PRODUCT_EPS]));
        most *= factor;
        int e = max(int(floatBitsToUint(most) >> 23) - 127, -112);
        if (ELEMENT == TYPE_F16 && most > 0.0) {
            power = uintBitsToFloat(uint(TOP - e + 127) << 23);
            back = uintBitsToFloat(uint(e - TOP + 127) << 23);
        }
    }
    if (gl_LocalInvocationID.x == 0) store_f32(args.scratch + 4 * uint64_t(r), back);
    for (uint k = 4 * gl_LocalInvocationID.x; k < stride; k += 4 * THREADS) {
        vec4 v = four(x, k, n) * factor;
        if (normed) v *= four(weights, k, n);
        v *= power;
        uvec2 two = ELEMENT == TYPE_F16
                        ? uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw))
                        : uvec2(to_bf16(v.x) | to_bf16(v.y) << 16, to_bf16(v.z) | to_bf16(v.w) << 16);
        store_u32(to + 2 * uint64_t(k), two.x);
        store_u32(to + 2 * uint64_t(k) + 4, two.y);
    }
}
