// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantises x [rows, k] F32 to int8 activations at args.scratch (shaders/quantise_int8.glsl), for
// gemv_int8. With a norm its weight is multiplied to x before, and the sum of squares of x is kept for the
// factor 1 / rms(x).
//
// Work: one invocation for each group of 32 elements, so that the result does not depend on the size of
// subgroups.
//
// Bytes: 4 read and 1.4 written for each element. Limit: the latency of a dispatch, because x is small.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x = 32) in;

#include "backends/vulkan/shaders/quantise_int8.glsl"

void main()
{
    View x = args.src[0];
    uint k = uint(x.ne[3]), per_row = k / 32, e = group_index() * 32 + gl_LocalInvocationID.x,
         r = e / per_row, g = e % per_row;
    if (r >= n_rows(x)) return;
    uint64_t from = row_of(x, r) + 128 * int64_t(g), to = args.scratch + int64_t(r) * quantised_size(k),
             scale = 0;
    bool normed = args.n[N_PRODUCT_NORM] >= 0;
    if (normed) scale = args.src[args.n[N_PRODUCT_NORM]].data + 128 * int64_t(g);
    bool aligned = ((from | scale) & 15ul) == 0;
    float v[32], squares = 0.0;
    uint top = 0;
    [[unroll]] for (int i = 0; i < 8; i++) {
        vec4 w = aligned ? PF128(from + 16 * i).v
                         : vec4(load_f32(from + 16 * i), load_f32(from + 16 * i + 4),
                                load_f32(from + 16 * i + 8), load_f32(from + 16 * i + 12));
        [[unroll]] for (int j = 0; j < 4; j++) v[4 * i + j] = w[j];
    }
    if (normed)
        [[unroll]] for (int i = 0; i < 8; i++) {
            vec4 w = aligned ? PF128(scale + 16 * i).v
                             : vec4(load_f32(scale + 16 * i), load_f32(scale + 16 * i + 4),
                                    load_f32(scale + 16 * i + 8), load_f32(scale + 16 * i + 12));
            [[unroll]] for (int j = 0; j < 4; j++) {
                squares = fma(v[4 * i + j], v[4 * i + j], squares);
                v[4 * i + j] *= w[j];
            }
        }
    [[unroll]] for (int i = 0; i < 32; i++) top = max(top, floatBitsToUint(v[i]) & 0x7fffffffu);
    vec2 scales = scale_of(top);
    int sums[2] = int[](0, 0);
    uint words[8];
    [[unroll]] for (int i = 0; i < 8; i++) {
        uint word = 0;
        [[unroll]] for (int j = 0; j < 4; j++) {
            int q = quantise(v[4 * i + j], scales.x);
            sums[i / 4] += q;
            word |= (uint(q) & 255u) << 8 * j;
        }
        words[i] = word;
    }
    [[unroll]] for (int i = 0; i < 2; i++)
        PU128(to + 32 * int64_t(g) + 16 * i).v =
            uvec4(words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]);
    PU64(to + k + 8 * int64_t(g)).v = group_record(scales.y, sums[0], sums[1]);
    if (normed) store_f32(to + k + k / 4 + 4 * int64_t(g), squares);
}
