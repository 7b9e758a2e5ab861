// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Expands quantised weights to f16 or bf16 in args.scratch, for GEMM with cooperative matrices of many rows:
// otherwise each tile of rows would expand all weights again.
//
// Operands: w [columns, k] of a block type, in planes. Result: rows of 2 k bytes, one after the other, from
// byte 256 args.n[N_PRODUCT_EXPANDED] of the scratch on. The numbers are those that gemm_coopmat.comp makes
// of the same weights.
//
// Work: an invocation expands a run of 16 elements. Bytes: the weights read, 2 written for each element.
// Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"

const uint THREADS = 256;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int TYPE = TYPE_Q4_K;
layout(constant_id = 2) const int ELEMENT = TYPE_F16;

uint pack2(float a, float b)
{
    return ELEMENT == TYPE_F16 ? packHalf2x16(vec2(a, b)) : to_bf16(a) | to_bf16(b) << 16;
}

void main()
{
    uint runs = uint(given_k) / 16, row = group_index() / ((runs + THREADS - 1) / THREADS),
         run = group_index() % ((runs + THREADS - 1) / THREADS) * THREADS + gl_LocalInvocationID.x;
    if (row >= uint(given_n[N_PRODUCT_COLUMNS]) || run >= runs) return;
    Weight w;
    [[unroll]] for (uint p = 0; p < MAX_PLANES; p++) {
        w.plane[p] = given_plane[0][p];
        w.row_size[p] = int64_t(given_size[p]);
    }
    float y[16];
    dequant16(TYPE, w, int64_t(row), int64_t(16 * run), y);
    uint64_t to = given_scratch + 256 * uint64_t(args.n[N_PRODUCT_EXPANDED]) +
                  2 * (uint64_t(row) * uint64_t(given_k) + 16 * run);
    [[unroll]] for (int i = 0; i < 16; i += 8)
        PU128(to + 2 * i).v = uvec4(pack2(y[i], y[i + 1]), pack2(y[i + 2], y[i + 3]),
                                    pack2(y[i + 4], y[i + 5]), pack2(y[i + 6], y[i + 7]));
}
