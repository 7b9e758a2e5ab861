// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How a product of 9 to 64 rows with weights of block types is cut into blocks: rows of a tile, stages in
// shared memory, and how many blocks share the k of a tile. The cut with the least estimated time is
// selected.
#include "backends/cuda/product/skinny/skinny.h"

#include "backends/cuda/runtime/layout.h"
#include "core/compiler.h"

enum {
    SHARED_STATIC = 64, // bytes of shared memory beside the stages
    LEAST_SLOTS = 2,    // a stage is copied while another one is multiplied
    SMALL_TILE = 64,    // rows of the smallest tile
};

// Rates of an H200 in bytes per ns, for one multiprocessor.
enum { MEMORY_RATE = 32, L2_RATE = 42 };

bool tn_cuda_skinny_codebook_type(tn_dtype type)
{
    static const tn_dtype types[] = {
        TN_TYPE_IQ4_XS, TN_TYPE_MXFP4,   TN_TYPE_NVFP4, TN_TYPE_IQ2_XXS, TN_TYPE_IQ2_XS,
        TN_TYPE_IQ2_S,  TN_TYPE_IQ3_XXS, TN_TYPE_IQ3_S, TN_TYPE_IQ1_S,   TN_TYPE_IQ1_M,
        TN_TYPE_TQ1_0,  TN_TYPE_TQ2_0,   TN_TYPE_Q1_0,  TN_TYPE_Q2_0,
    };
    for (size_t i = 0; i < TN_COUNT(types); i++)
        if (types[i] == type) return true;
    return false;
}

static int64_t slot_size(tn_dtype type, int64_t rows)
{
    tn_cuda_pack_args planes;
    tn_cuda_layout_get(type, &planes);
    int32_t elems = (int32_t)tn_dtype_block_elems(type), pieces = 0; // of 16 bytes
    for (int32_t p = 0; p < TN_CUDA_MAX_PLANES; p++)
        pieces += TN_SKINNY_PLANE_PIECES(planes.plane_bytes[p], elems);
    return TN_SKINNY_BLOCK_STAGE + rows * TN_SKINNY_ROW_BYTES(pieces);
}

uint32_t tn_cuda_skinny_shared_size(const tn_cuda_skinny_shape *s, tn_dtype type)
{
    return (uint32_t)(s->slots * slot_size(type, s->rows));
}

int32_t tn_cuda_skinny_set_tiles(tn_cuda_skinny_seg *seg, int32_t n_segs, bool glu, int32_t rows)
{
    int32_t n_tiles = 0;
    for (int32_t i = 0; i < n_segs; i++) {
        int64_t n = seg[i].n;
        seg[i].first_tile = glu ? 0 : n_tiles;
        n_tiles = (int32_t)(glu ? tn_div_up(n, rows / 2) : n_tiles + tn_div_up(n, rows));
    }
    return n_tiles;
}

// Estimated time of the longest block, and of the last block of a tile, with what the part of each block
// takes, in nanoseconds on an H200. Memory gives a multiprocessor 32 bytes in one ns, the L2 42. 128 rows
// were measured to take 1850 ns a stage (latency of eight warps), 256 rows with twice the instructions at a
// time little more. What parts take is an estimate.
static int64_t time_of(const tn_cuda_skinny_shape *s, tn_dtype type, int64_t n_stages)
{
    int64_t bytes = s->rows * (int64_t)tn_dtype_row_size(type, TN_SKINNY_K), n = s->n_tiles * n_stages;
    int64_t longest = tn_div_up(n, s->blocks);
    bool even = n % s->blocks == 0 && TN_MAX(longest, n_stages) % TN_MIN(longest, n_stages) == 0;
    int64_t parts = !even ? tn_div_up(n_stages, longest) + 1 : longest < n_stages ? n_stages / longest : 0;
    int64_t least = 1200 + s->rows * 2;
    int64_t copies = TN_MAX(bytes / MEMORY_RATE, (bytes + TN_SKINNY_BLOCK_STAGE) / L2_RATE);
    return longest * TN_MAX(copies, least) + parts * (50 + s->rows);
}

// As many blocks as there can be, max_blocks at most. Of groups blocks run through whole tiles, because how
// many tiles there are is known on the device alone.
static tn_cuda_skinny_shape cut_tiles(tn_cuda_skinny_shape s, tn_dtype type, int64_t n_stages,
                                      int64_t max_blocks, bool groups)
{
    int64_t n = TN_MAX(1, s.n_tiles * n_stages);
    s.blocks = groups ? s.n_tiles : (int32_t)tn_div_up(n, tn_div_up(n, TN_MIN(max_blocks, n)));
    s.time = time_of(&s, type, n_stages) * (groups ? s.n_tiles : 1);
    return s;
}

// Whether there is such a kernel, and its stages fit. Codebook types are limited by the instructions for each
// weight, so their kernels have one tile for each warp. Tiles of 64 rows are for Q8_0 alone: two stages of
// 128 rows of it do not fit into the 99 KiB of shared memory that devices of 8.6 and 8.9 have.
static bool is_possible(const tn_cuda_skinny_shape *s, tn_dtype type)
{
    if (tn_cuda_skinny_codebook_type(type) && s->tiles > 1) return false;
    if (s->rows == SMALL_TILE && type != TN_TYPE_Q8_0) return false;
    return s->slots >= LEAST_SLOTS;
}

tn_cuda_skinny_shape tn_cuda_skinny_shape_select(const tn_cuda *cuda, tn_cuda_skinny_args *a, tn_dtype type,
                                                 int64_t n_columns)
{
    static const struct {
        int32_t tiles, warps; // tiles of 16 rows of a warp, warps
    } shapes[] = {{2, 8}, {1, 8}, {1, 4}};
    int64_t n_stages = tn_div_up(a->k, TN_SKINNY_K), max_blocks = TN_MAX(1, cuda->n_sms / n_columns);
    tn_cuda_skinny_shape best = {.time = INT64_MAX};
    for (int32_t i = 0; i < (int32_t)TN_COUNT(shapes); i++) {
        tn_cuda_skinny_shape s = {.tiles = shapes[i].tiles, .warps = shapes[i].warps};
        s.rows = 16 * s.tiles * s.warps;
        s.slots = (int32_t)TN_MIN(TN_SKINNY_BLOCK_MAX_SLOTS,
                                  (cuda->max_shared - SHARED_STATIC) / slot_size(type, s.rows));
        if (!is_possible(&s, type)) continue;
        s.n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, s.rows);
        s = cut_tiles(s, type, n_stages, max_blocks, a->tile_group != NULL);
        if (cuda->variant.skinny_shape == i + 1) s.time = 0;
        if (s.time < best.time) best = s;
    }
    a->n_tiles = tn_cuda_skinny_set_tiles(a->seg, a->n_segs, a->glu, best.rows);
    return best;
}
