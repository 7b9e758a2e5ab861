// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of many rows: tiles of 64 columns and 32 rows, 16 of the common dimension at a time, expanded to f32 in shared
// memory; an invocation has 4 x 2 results. Limit: arithmetic of f32. At args.n see product.glsl.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/product.glsl"

const uint COLUMNS = 64, ROWS = 32, DEPTH = 16;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int TYPE = TYPE_F32;
layout(constant_id = 1) const int TYPE_UP = -1; // of the second product of a gated pair

shared float tile_w[2][COLUMNS][DEPTH + 1], tile_x[ROWS][DEPTH + 1];

void expand(int type, Weight w, int64_t row, uint k, uint n, bool inside, out float v[16])
{
    if (!inside) {
        for (uint i = 0; i < 16; i++) v[i] = 0.0;
    } else if (is_plain(type)) {
        uint64_t at = w.plane[0] + row * w.row_size[0];
        for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
    } else dequant16(type, w, row, k, v);
}

void main()
{
    uint columns = uint(args.n[0]), rows = uint(args.n[1]), n = uint(args.src[0].ne[3]), t = gl_LocalInvocationID.x;
    uint across = (columns + COLUMNS - 1) / COLUMNS, g = group_index();
    uint j0 = g % across * COLUMNS, r0 = g / across * ROWS;
    if (r0 >= rows) return;
    uint tc = t % 16, tr = t / 16; // columns tc + 16 i, rows tr + 16 i
    float acc[2][4], up[2][4];
    for (uint a = 0; a < 2; a++)
        for (uint b = 0; b < 4; b++) acc[a][b] = up[a][b] = 0.0;
    for (uint k0 = 0; k0 < n; k0 += DEPTH) {
        barrier();
        if (t < COLUMNS || (TYPE_UP >= 0 && t < 2 * COLUMNS)) {
            float v[16];
            uint c = t % COLUMNS;
            if (t < COLUMNS) expand(TYPE, args.weight[0], j0 + c, k0, n, j0 + c < columns, v);
            else if (TYPE_UP >= 0) expand(TYPE_UP, args.weight[1], j0 + c, k0, n, j0 + c < columns, v);
            for (uint i = 0; i < DEPTH; i++) tile_w[t / COLUMNS][c][i] = v[i];
        }
        for (uint e = t; e < ROWS * DEPTH; e += 256) {
            uint r = r0 + e / DEPTH, k = k0 + e % DEPTH;
            tile_x[e / DEPTH][e % DEPTH] = r < rows && k < n ? load_f32(row_of(args.src[0], r) + 4 * int64_t(k)) : 0.0;
        }
        barrier();
        for (uint k = 0; k < DEPTH; k++) {
            [[unroll]] for (uint b = 0; b < 4; b++) {
                float w = tile_w[0][tc + 16 * b][k], u = TYPE_UP >= 0 ? tile_w[1][tc + 16 * b][k] : 0.0;
                [[unroll]] for (uint a = 0; a < 2; a++) {
                    float x = tile_x[tr + 16 * a][k];
                    acc[a][b] += w * x;
                    if (TYPE_UP >= 0) up[a][b] += u * x;
                }
            }
        }
    }
    for (uint a = 0; a < 2; a++)
        for (uint b = 0; b < 4; b++)
            if (r0 + tr + 16 * a < rows && j0 + tc + 16 * b < columns) finish(r0 + tr + 16 * a, j0 + tc + 16 * b, acc[a][b], up[a][b]);
}
