// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the products with both operands in shared memory share (compute capability 9.0, gemm_wgmma.cu and
// gemm_e4m3.cu): the ring of stages, the threads that fill it, and what becomes of the sums.
//
// Operands: x [m, k] and w [n, k], rows of packed16 as gemm_prepare.cu makes them, y [m, n] f32. A block
// computes tiles of 128 x BN. Two threads fetch 128 x 64 packed16 of x and BN x 64 of w for each stage by
// tensor copies with the 128-byte swizzle; two warpgroups multiply 64 rows each. Blocks stay and take tile
// after tile, so that the ring fills while sums are written. With GLU the tile is BN/2 rows of gate and the
// same rows of up, joined in registers.
//
// Bytes from L2 for each tile and stage: 128 (128 + BN). The files that include this say what limits them.
#ifndef TN_CUDA_GEMM_WGMMA_CUH
#define TN_CUDA_GEMM_WGMMA_CUH

#include "backends/cuda/product/gemm/gemm_epilogue.cuh"
#include "backends/cuda/product/gemm/gemm_tile_rows.h"
#include "backends/cuda/mma.cuh"

enum { PRODUCER = 128, BK = 64 };

// Forms of the epilogue. GENERAL applies any activation, with loops over shared memory.
enum { PLAIN, GLU_SILU, GENERAL, GENERAL_GLU };

// G warpgroups multiply 64 rows of x each.
template <int BN, int G> struct gemm_ring {
    static constexpr int x = G * 64 * BK * 2, stage = x + BN * BK * 2; // bytes of a stage
    static constexpr int n = BN == 128 && G == 2 ? 6 : 4;
};

#ifdef TN_HOPPER
template <int BN> struct gemm_shared {
    char *stages;
    float *shared;
    uint64_t *full, *empty;
};

// The stages of k that the block with part `part` of a tile multiplies.
struct gemm_stages {
    int begin, end;
};

static __device__ __forceinline__ gemm_stages gemm_stages_of(const tn_cuda_gemm_args &a, int part)
{
    int n = (a.k + BK - 1) / BK;
    return {n * part / a.splits, n * (part + 1) / a.splits};
}

// Rows of x of a tile. Those of shared memory that nothing is copied to go into sums that nobody writes. The
// number is computed where it is needed: threads that multiply have no register to keep it in.
template <int type> static __device__ __forceinline__ int gemm_tile_rows(const tn_cuda_gemm_args &a)
{
    if (type == TN_E4M3) return TN_GEMM_ROWS;
    int m = a.m;
    asm volatile("" : "+r"(m));
    return a.n_groups > 0 ? TN_GEMM_ROWS : TN_GEMM_TILE_ROWS(m, a.tiles_m);
}

// Two threads of a block copy, one weights and one x, so that neither waits for the other's requests. The
// ring continues from tile to tile.
template <int BN, int G, bool glu>
static __device__ void gemm_fetch_w(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN, G>::n, box = glu ? BN / 2 : TN_GEMM_TILE64, boxes = BN / box;
    if (!a.w_early) tn_pdl_wait();
    int tiles_m = gemm_tiles_m(a), n_parts = tiles_m * a.tiles_n * a.splits;
    uint32_t stage = 0, parity = 1;
    for (int t = blockIdx.x; t < n_parts; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t / a.splits);
        gemm_stages own = gemm_stages_of(a, t % a.splits);
        int group = a.tile_group ? a.tile_group[tile.m] : 0;
        int row[boxes];
        const tn_cuda_tensor_map *map[boxes];
#pragma unroll
        for (int i = 0; i < boxes; i++) {
            int tile64 = tile.n * boxes + i, seg = glu ? i : gemm_seg_of(a, tile64);
            row[i] =
                (glu ? tile.n * box : (tile64 - a.seg[seg].first_tile64) * box) + (int)(group * a.group_rows);
            map[i] = &a.w_map[seg];
        }
        for (int k = own.begin; k < own.end; k++) {
            tn_mbar_wait(&s.empty[stage], parity);
            tn_mbar_expect(&s.full[stage], BN * BK * 2);
            char *to = s.stages + stage * gemm_ring<BN, G>::stage + gemm_ring<BN, G>::x;
#pragma unroll
            for (int i = 0; i < boxes; i++)
                tn_tma_load(to + i * box * BK * 2, map[i], k * BK, row[i], &s.full[stage]);
            if (++stage == N) stage = 0, parity ^= 1;
        }
    }
}

template <int type, int BN, int G>
static __device__ void gemm_fetch_x(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN, G>::n;
    int tile_rows = gemm_tile_rows<type>(a);
    tn_pdl_wait();
    int tiles_m = gemm_tiles_m(a), n_parts = tiles_m * a.tiles_n * a.splits;
    uint32_t stage = 0, parity = 1;
    for (int t = blockIdx.x; t < n_parts; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t / a.splits);
        gemm_stages own = gemm_stages_of(a, t % a.splits);
        for (int k = own.begin; k < own.end; k++) {
            tn_mbar_wait(&s.empty[stage], parity);
            tn_mbar_expect(&s.full[stage], tile_rows * BK * 2);
            tn_tma_load(s.stages + stage * gemm_ring<BN, G>::stage, &a.x_map, k * BK, tile.m * tile_rows,
                        &s.full[stage]);
            if (++stage == N) stage = 0, parity ^= 1;
        }
    }
}

// Stages 16 rows of a warp and W columns, sums 8 * first and on, times the scales of the rows, in `shared`.
template <int BN, int W>
static __device__ __forceinline__ void gemm_stage_sums(const float (&d)[BN / 2], int first,
                                                       const float (&scale)[2], float *shared)
{
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float2 *)(shared + gemm_staging_at<W>(lane / 4 + 8 * h, 8 * j + 2 * (lane % 4))) =
                make_float2(d[4 * (first + j) + 2 * h] * scale[h], d[4 * (first + j) + 2 * h + 1] * scale[h]);
}

static __device__ __forceinline__ float gemm_silu(float gate, float up)
{
    return gate / (1.0f + __expf(-gate)) * up;
}

// Sums of e4m3 have the scales of x already, and with GLU those of the rows of w, too.
template <int type, int BN, int form>
static __device__ __forceinline__ void gemm_write(const tn_cuda_gemm_args &a, gemm_tile tile, int group,
                                                  float (&d)[BN / 2], float *shared)
{
    // W is the number of columns staged at a time. 96 columns of a GLU tile are no multiple of 64, and gate
    // and up are staged together.
    constexpr bool glu = form == GLU_SILU || form == GENERAL_GLU;
    constexpr int columns = glu ? BN / 2 : BN, W = columns % 64 == 0 && form != GENERAL_GLU ? 64 : 32;
    int warp = (threadIdx.x - PRODUCER) / TN_WARP, lane = threadIdx.x % TN_WARP,
        tile_rows = gemm_tile_rows<type>(a), r = tile.m * tile_rows + warp * 16;
    float scale[2] = {1.0f, 1.0f};
    if (type != TN_E4M3 && warp * 16 >= tile_rows) return;
    if constexpr (type != TN_E4M3)
        scale[0] = gemm_row_scale(a, r + lane / 4), scale[1] = gemm_row_scale(a, r + lane / 4 + 8);
    shared += warp * 16 * 64;
    if constexpr (form == GLU_SILU) {
#pragma unroll
        for (int i = 0; i < BN / 4; i++)
            d[i] = gemm_silu(d[i] * scale[i / 2 % 2], d[BN / 4 + i] * scale[i / 2 % 2]);
        scale[0] = scale[1] = 1.0f;
    }
#pragma unroll
    for (int u = 0; u < columns / W; u++) {
        int seg = 0, c = tile.n * columns + u * W;
        if constexpr (!glu) {
            seg = gemm_seg_of(a, c / TN_GEMM_TILE64);
            c -= a.seg[seg].first_tile64 * TN_GEMM_TILE64;
        }
        gemm_stage_sums<BN, W>(d, u * (W / 8), scale, shared);
        if constexpr (form == GENERAL_GLU)
            gemm_stage_sums<BN, W>(d, BN / 16 + u * (W / 8), scale, shared + 16 * W);
        const float *w_scale = type == TN_E4M3 && !glu ? a.seg[seg].w_scale + group * a.group_rows : NULL;
        if constexpr (form == GENERAL || form == GENERAL_GLU)
            gemm_write_any<W, glu>(a, a.seg[seg], w_scale, shared, r, c, a.act);
        else gemm_write_rows<W, glu>(a, a.seg[seg], w_scale, shared, r, c);
    }
}

// Multiplies and writes the tiles of this block; each file that includes this defines it.
template <int type, int BN, int form, int G>
static __device__ void gemm_multiply(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s);
#endif

template <int type, int BN, int form, int G>
static __device__ __forceinline__ void gemm_block(const tn_cuda_gemm_args &a)
{
#ifdef TN_HOPPER
    constexpr int N = gemm_ring<BN, G>::n;
    constexpr bool glu = form == GLU_SILU || form == GENERAL_GLU;
    extern __shared__ char shared[];
    __shared__ uint64_t bars[2 * N];
    // swizzled tiles start at multiples of 1024
    char *stages = shared + (1024 - tn_shared(shared) % 1024) % 1024;
    gemm_shared<BN> s = {stages, (float *)(stages + N * gemm_ring<BN, G>::stage), bars, bars + N};
    if (threadIdx.x == 0) {
        for (int i = 0; i < N; i++) {
            tn_mbar_init(&s.full[i], 2);  // for weights and for x
            tn_mbar_init(&s.empty[i], 4 * G); // the warps that multiply
        }
        tn_mbar_init_fence();
        tn_tma_prefetch(&a.x_map);
        for (int i = 0; i < a.n_segs; i++) tn_tma_prefetch(&a.w_map[i]);
    }
    tn_pdl_trigger();
    __syncthreads();
    if (threadIdx.x < PRODUCER) {
        tn_registers_less<40>();
        if (threadIdx.x == 0) gemm_fetch_w<BN, G, glu>(a, s);
        if (threadIdx.x == TN_WARP) gemm_fetch_x<type, BN, G>(a, s);
    } else {
        tn_registers_more<G == 2 ? 232 : 152>();
        tn_pdl_wait();
        gemm_multiply<type, BN, form, G>(a, s);
    }
#else
    __trap();
#endif
}

#define GEMM_OF(name, type, BN, form, G)                                                                     \
    TN_ENTRY __launch_bounds__(PRODUCER + 128 * G, 1)                                                        \
        tn_gemm_wgmma_##name(const __grid_constant__ tn_cuda_gemm_args a)                                    \
    {                                                                                                        \
        gemm_block<type, BN, form, G>(a);                                                                    \
    }
#define GEMM(name, type, BN, form) GEMM_OF(name, type, BN, form, 2)

#endif
