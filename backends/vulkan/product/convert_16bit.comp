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
// ORDER: that of elements for gemm_fragment.comp, in blocks of 256. Of 16 elements that a matrix
// multiplies, the invocations t = 0 .. 3 of a column have 2 t, 2 t + 1, 2 t + 8 and 2 t + 9; so consecutive
// elements of a weight that one invocation has loaded are to be there.
//   16, 32, 64: runs of 16, that far apart from the next run of the invocation, in units of 128 elements
//   ORDER_VECTORS: every fourth vector of 8
//   ORDER_Q4_K: 64 elements, the low and the high halves of 32 bytes; elements 1 and 2 of four change places
//   ORDER_Q6_K: as 64, and elements 1 and 2 of four change places
//
// Work: one workgroup for each row. Bytes: 4 or 8 read (f16, norm: two passes) and 2 written for each
// element. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 256, AHEAD = 4;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int ELEMENT = TYPE_F16;
layout(constant_id = 1) const int TOP = 14;
layout(constant_id = 2) const int ORDER = 0;   // of the elements: ORDER_*
layout(constant_id = 3) const int ALIGNED = 0; // rows of x are whole runs of 4 and start aligned to 16 bytes
layout(constant_id = 5) const int HAS_NORM = 0;
#include "backends/vulkan/shaders/reduce.glsl"

vec4 four(uint64_t row, uint k, uint n)
{
    if (ALIGNED != 0) { // without a branch
        vec4 v = PF128(row + 4 * uint64_t(min(k, n - 4))).v;
        return k < n ? v : vec4(0.0);
    }
    vec4 v;
    [[unroll]] for (uint i = 0; i < 4; i++) v[i] = k + i < n ? load_f32(row + 4 * int64_t(k + i)) : 0.0;
    return v;
}

// Where the pair of elements from k on goes, k a multiple of 4; the other pair goes `apart` further.
uint place_of(uint k, out uint apart)
{
    uint t, step, within = k % 128;
    apart = 2;
    if (ORDER == ORDER_NONE) return k;
    if (ORDER == ORDER_Q4_K) {
        within = k % 256;
        t = within / 64, step = within % 32 / 4 * 2 + within % 64 / 32;
    } else if (ORDER == ORDER_VECTORS) {
        t = within % 32 / 8, step = within / 32 * 2 + within % 8 / 4;
    } else {
        uint far = ORDER == ORDER_Q6_K ? 64 : ORDER, e = within / (2 * far) * far + within % far;
        t = e / 16, step = within / far % 2 * 4 + e % 16 / 4;
    }
    apart = 8;
    return k - within + 16 * step + 2 * t;
}

void main()
{
    uint r = group_index(), rows = uint(args.n[N_PRODUCT_ROWS]), n = uint(args.src[0].ne[3]),
         block = ORDER == ORDER_NONE ? 64 : 256, stride = (n + block - 1) / block * block;
    if (r >= rows) return;
    uint64_t x = args.src[0].data + uint64_t(r) * uint64_t(args.n[N_PRODUCT_X_STRIDE]);
    uint64_t copy = args.scratch + 256 * uint64_t(max(args.n[N_PRODUCT_COPY], 0)),
             to = copy + (uint64_t(rows) * 4 + 255) / 256 * 256 + uint64_t(r) * stride * 2;
    float power = 1.0, back = 1.0, factor = 1.0;
    const bool normed = HAS_NORM != 0;
    uint64_t weights = normed ? args.src[args.n[N_PRODUCT_NORM]].data : x;
    if (ELEMENT == TYPE_F16 || normed) {
        float most = 0.0, squares = 0.0;
        for (uint k0 = 4 * gl_LocalInvocationID.x; k0 < n; k0 += AHEAD * 4 * THREADS) {
            vec4 v[AHEAD], w[AHEAD];
            [[unroll]] for (uint a = 0; a < AHEAD; a++) { // all loads in flight at once
                v[a] = four(x, k0 + a * 4 * THREADS, n);
                w[a] = normed ? four(weights, k0 + a * 4 * THREADS, n) : vec4(1.0);
            }
            [[unroll]] for (uint a = 0; a < AHEAD; a++) {
                squares += dot(v[a], v[a]);
                v[a] = abs(v[a] * w[a]);
                [[unroll]] for (uint i = 0; i < 4; i++)
                    if (v[a][i] <= 3.40282347e38 && v[a][i] > most) most = v[a][i];
            }
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
    if (gl_LocalInvocationID.x == 0) store_f32(copy + 4 * uint64_t(r), back);
    for (uint k0 = 4 * gl_LocalInvocationID.x; k0 < stride; k0 += AHEAD * 4 * THREADS) {
        vec4 v[AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint k = k0 + a * 4 * THREADS;
            v[a] = four(x, k, n) * factor;
            if (normed) v[a] *= four(weights, k, n);
            v[a] *= power;
            if (ORDER == ORDER_Q4_K || ORDER == ORDER_Q6_K) v[a] = v[a].xzyw;
        }
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint k = k0 + a * 4 * THREADS, apart, place = place_of(k, apart);
            if (k >= stride) break;
            uvec2 two = ELEMENT == TYPE_F16 ? uvec2(packHalf2x16(v[a].xy), packHalf2x16(v[a].zw))
                                            : uvec2(to_bf16(v[a].x) | to_bf16(v[a].y) << 16,
                                                    to_bf16(v[a].z) | to_bf16(v[a].w) << 16);
            store_u32(to + 2 * uint64_t(place), two.x);
            store_u32(to + 2 * uint64_t(place + apart), two.y);
        }
    }
}
