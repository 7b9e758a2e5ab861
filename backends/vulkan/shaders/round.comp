// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations as int8, 32 elements to a scale d = max|x| / 127, for the products of dot.comp: one invocation per group, whatever
// the subgroups. To args.scratch, rows of args.n[11] bytes: the integers [k]; per group d and, as two 16-bit integers, the sums of its
// halves; per group the sum of squares of x, if there is a norm (its weight at args.n[9]). A group with a value that is no number gets
// d = NaN, and so do the results.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 32) in;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer PU64 { uvec2 v; };

// 127 / x, rounded as IEEE 754 does: quotients may be off by more here, and then ties fall to the other side than elsewhere. The
// remainder comes from halves of 12 bits, whose products are exact.
float inverse_of(float x)
{
    precise float q = 127.0 / x;
    float qh = uintBitsToFloat(floatBitsToUint(q) & 0xfffff000u), xh = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
    precise float ql = q - qh, xl = x - xh;
    precise float rest = 127.0 - qh * xh;
    rest -= qh * xl;
    rest -= ql * xh;
    rest -= ql * xl;
    precise float better = q + rest / x;
    return better;
}

void main()
{
    View x = args.src[0];
    uint k = uint(x.ne[3]), per_row = k / 32, e = group_index() * 32 + gl_LocalInvocationID.x, r = e / per_row, g = e % per_row;
    if (r >= n_rows(x)) return;
    uint64_t from = row_of(x, r) + 128 * int64_t(g), to = args.scratch + int64_t(r) * args.n[11], scale = 0;
    bool normed = args.n[9] >= 0;
    if (normed) scale = args.src[args.n[9]].data + 128 * int64_t(g);
    bool aligned = ((from | scale) & 15ul) == 0;
    float v[32], squares = 0.0;
    uint top = 0;
    [[unroll]] for (int i = 0; i < 8; i++) {
        vec4 w = aligned ? PF128(from + 16 * i).v : vec4(load_f32(from + 16 * i), load_f32(from + 16 * i + 4), load_f32(from + 16 * i + 8), load_f32(from + 16 * i + 12));
        [[unroll]] for (int j = 0; j < 4; j++) v[4 * i + j] = w[j];
    }
    if (normed)
        [[unroll]] for (int i = 0; i < 8; i++) {
            vec4 w = aligned ? PF128(scale + 16 * i).v : vec4(load_f32(scale + 16 * i), load_f32(scale + 16 * i + 4), load_f32(scale + 16 * i + 8), load_f32(scale + 16 * i + 12));
            [[unroll]] for (int j = 0; j < 4; j++) {
                squares = fma(v[4 * i + j], v[4 * i + j], squares);
                v[4 * i + j] *= w[j];
            }
        }
    [[unroll]] for (int i = 0; i < 32; i++) top = max(top, floatBitsToUint(v[i]) & 0x7fffffffu);
    float most = uintBitsToFloat(top);
    bool odd = top >= 0x7f800000u, none = odd || most < 1e-35;
    float inverse = none ? 0.0 : inverse_of(most), d = odd ? uintBitsToFloat(0x7fc00000u) : none ? 0.0 : most / 127.0;
    int sums[2] = int[](0, 0);
    uint words[8];
    [[unroll]] for (int i = 0; i < 8; i++) {
        uint word = 0;
        [[unroll]] for (int j = 0; j < 4; j++) {
            int q = none ? 0 : int(roundEven(v[4 * i + j] * inverse));
            sums[i / 4] += q;
            word |= (uint(q) & 255u) << 8 * j;
        }
        words[i] = word;
    }
    [[unroll]] for (int i = 0; i < 2; i++) PU128(to + 32 * int64_t(g) + 16 * i).v = uvec4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    PU64(to + k + 8 * int64_t(g)).v = uvec2(floatBitsToUint(d), (uint(sums[0]) & 0xffffu) | uint(sums[1]) << 16);
    if (normed) store_f32(to + k + k / 4 + 4 * int64_t(g), squares);
}
