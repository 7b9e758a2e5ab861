// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sorts the rows of a product with experts by expert, for gemm_coopmat.comp: a block is up to TILE_M rows
// that have the same expert, which is a tile's worth of rows that meet the same weights.
//
// Operands: ids I32 [tokens, slots]. Result, behind the converted rows of args.scratch: 16 bytes that
// begin with the number of blocks; for each block 16 bytes with its expert, its first row in the list, and
// how many rows it has; the list of rows. A row whose id names no expert gets zeros in the result at once.
//
// Work: a single workgroup. Limit: latency; the number of rows is small.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 256, MAX_EXPERTS = 4096;
layout(local_size_x = 256) in;
layout(constant_id = 2) const uint TILE = 0x2222u; // gemm_coopmat.c
const uint TILE_M = 16 * (TILE & 15u) * (TILE >> 8 & 15u);
shared uint places[MAX_EXPERTS];

int expert_of(uint p)
{
    View ids = args.src[args.n[N_PRODUCT_IDS]];
    int e = load_i32(ids.data + int64_t(p / uint(ids.ne[3])) * ids.nb[2] +
                     int64_t(p % uint(ids.ne[3])) * ids.nb[3]);
    return e < 0 || e >= args.n[N_PRODUCT_EXPERTS] ? -1 : e;
}

void main()
{
    uint t = gl_LocalInvocationID.x, rows = uint(args.n[N_PRODUCT_ROWS]),
         experts = uint(args.n[N_PRODUCT_EXPERTS]), n = uint(args.src[0].ne[3]), x_rows = n_rows(args.src[0]);
    uint64_t blocks =
        args.scratch + (uint64_t(x_rows) * 4 + 255) / 256 * 256 + uint64_t(x_rows) * ((n + 63) / 64 * 64) * 2;
    uint64_t list = blocks + 16 + 16 * int64_t(args.n[N_PRODUCT_BLOCKS]);
    if (group_index() > 0) return;
    for (uint e = t; e < experts; e += THREADS) places[e] = 0;
    barrier();
    for (uint p = t; p < rows; p += THREADS)
        if (expert_of(p) >= 0) atomicAdd(places[expert_of(p)], 1);
    barrier();
    if (t == 0) {
        uint start = 0, n_blocks = 0;
        for (uint e = 0; e < experts; e++) {
            uint count = places[e];
            for (uint at = 0; at < count; at += TILE_M, n_blocks++)
                PU128(blocks + 16 + 16 * uint64_t(n_blocks)).v =
                    uvec4(e, start + at, min(TILE_M, count - at), 0);
            places[e] = start;
            start += count;
        }
        store_u32(blocks, n_blocks);
    }
    barrier();
    // The order of the rows of an expert differs from run to run, but each row has its own sums: no bit of a
    // result depends on it.
    for (uint p = t; p < rows; p += THREADS) {
        int e = expert_of(p);
        if (e >= 0) store_u32(list + 4 * uint64_t(atomicAdd(places[e], 1)), p);
        else
            for (int j = 0; j < args.n[N_PRODUCT_COLUMNS]; j++)
                store_f32(row_of(args.dst[0], p) + 4 * int64_t(j), 0.0);
    }
}
