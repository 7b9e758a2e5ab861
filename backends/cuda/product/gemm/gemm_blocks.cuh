// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 65 and more rows of x and weights of block types (compute capability 9.0), without expanding
// the weights in memory first.
//
// Operands: weights in planes (backends/planes.def), rows of x as f16 in the order of gemm_prepare.cu with
// TN_GEMM_F16_EVEN_FIRST, y [m, n] f32. The weights are the long side of wgmma: 64 rows of them are an
// operand in registers, expanded by the warps that multiply (gemm_expand.cuh) while the products before run;
// N rows of x are the other one, in shared memory.
//
// A block computes tiles of R = 128 MT weights times N rows of x. One thread fetches x, 64 of k at a time,
// and one warp the weights, 256 of k at a time, each into a ring of its own. Two warpgroups multiply, R / 2
// weights each: lanes hold one row of the first half of the tile and one of the second half side by side, so
// with a gated pair (gate above, up below) both are in one thread. Blocks stay and take tile after tile. If
// tiles are fewer than multiprocessors, the blocks of a cluster share the k of a tile: each leaves its sums
// in shared memory, and each adds a part of them in the order of the blocks, so results do not depend on
// which was first.
//
// Operations: 2 m n k. Bytes from L2 for a tile and 64 of k: 128 N of x and some 40 R of weights (Q4_K). The
// limit is the rate of wgmma, for few rows the latency of the expansion: only two warps of a scheduler hide
// it. Measured with Q4_K (H200, 2026-11-23, products alone, tiles of 128 x 256): 575 to 712 TFLOP/s at 2048
// rows, 500 to 670 at 512; tiles of 256 x 128, which have twice the expansion for a product, 440 to 560 at
// 2048. docs/log/cuda-gemm.md has what was tried.
#ifndef TN_CUDA_GEMM_BLOCKS_CUH
#define TN_CUDA_GEMM_BLOCKS_CUH

#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/gemm/gemm_expand.cuh"

// GEMM_DEPTH: operands in registers. While the products of one step of 16 of k run, the next one is expanded;
// with four operands it was no faster.
enum { GEMM_PRODUCER = 128, GEMM_CONSUMERS = 256, GEMM_MAX_RING = 8, GEMM_DEPTH = 2 };

#ifdef TN_HOPPER
template <int TYPE, int MT, int N> struct gemm_blocks_shape {
    static constexpr int type = TYPE, tiles = MT, n = N;
    static constexpr int rows = 128 * MT, half = 64 * MT; // weights of a tile
    static constexpr int stage = N * TN_GEMM_X_K * 2;     // bytes of a stage of x
    typedef gemm_slot<TYPE, 128 * MT> slot;
};

struct gemm_rings {
    char *x, *w;
    uint64_t *x_full, *x_empty, *w_full, *w_empty;
};

struct gemm_ring_at {
    uint32_t i, parity;
    __device__ __forceinline__ void next(int n)
    {
        if (++i == (uint32_t)n) i = 0, parity ^= 1;
    }
};

// The tile of a block, and the part of k that it multiplies, in units of TN_GEMM_BLOCK_K.
struct gemm_blocks_tile {
    int m, n;
};

struct gemm_blocks_work {
    int splits, rank, first, step, tiles_m, n_tiles, k_begin, k_end;
};

// Consecutive tiles go down a group of group_m rows of tiles first, so that blocks that run together share
// operands in L2.
static __device__ __forceinline__ gemm_blocks_tile gemm_blocks_tile_at(const tn_cuda_gemm_blocks_args &a,
                                                                       const gemm_blocks_work &work, int t)
{
    int group = t / (a.group_m * a.tiles_n), first = group * a.group_m;
    int height = min(a.group_m, work.tiles_m - first), r = t - first * a.tiles_n;
    return {first + r % height, r / height};
}

static __device__ __forceinline__ int gemm_blocks_seg_of(const tn_cuda_gemm_blocks_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < TN_GEMM_MAX_SEGS; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return s;
}

static __device__ __forceinline__ gemm_blocks_work gemm_blocks_work_of(const tn_cuda_gemm_blocks_args &a)
{
    gemm_blocks_work w;
    w.splits = a.splits;
    w.rank = (int)tn_cluster_rank();
    int n = a.k / TN_GEMM_BLOCK_K;
    w.first = blockIdx.x / w.splits, w.step = gridDim.x / w.splits,
    w.tiles_m = a.n_tiles ? *a.n_tiles : a.tiles_m;
    w.n_tiles = w.tiles_m * a.tiles_n;
    w.k_begin = n * w.rank / w.splits, w.k_end = n * (w.rank + 1) / w.splits;
    return w;
}

// --- copies ------------------------------------------------------------------------------------------

template <typename S>
static __device__ void gemm_fetch_x(const tn_cuda_gemm_blocks_args &a, const gemm_blocks_work &work,
                                    const gemm_rings &rings)
{
    constexpr int per_slot = TN_GEMM_BLOCK_K / TN_GEMM_X_K;
    gemm_ring_at at = {0, 1};
    for (int t = work.first; t < work.n_tiles; t += work.step) {
        int row = gemm_blocks_tile_at(a, work, t).m * S::n;
        for (int k = work.k_begin * per_slot; k < work.k_end * per_slot; k++) {
            tn_mbar_wait(&rings.x_empty[at.i], at.parity);
            tn_mbar_expect(&rings.x_full[at.i], S::stage);
            tn_tma_load(rings.x + at.i * S::stage, &a.x_map, k * TN_GEMM_X_K, row, &rings.x_full[at.i]);
            at.next(a.stages);
        }
    }
}

// Tensor copies of the planes of a slot, by one thread.
template <typename S>
static __device__ __forceinline__ void gemm_copy_planes(const tn_cuda_gemm_blocks_args &a, char *to, int seg,
                                                        int row, int k, uint64_t *bar)
{
    typedef typename S::slot slot;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        if (!slot::copied(p)) continue;
        constexpr int unit = 2; // bytes of an element of the maps
        int width = slot::width(p);
#pragma unroll
        for (int panel = 0; panel < slot::panels(p); panel++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const tn_cuda_tensor_map *map = a.glu ? &a.seg[h].map[p] : &a.seg[seg].map[p];
                tn_tma_load(to + slot::start(p) + (panel * S::rows + h * S::half) * width, map,
                            (k * slot::bytes(p) + panel * width) / unit, row + (a.glu ? 0 : h * S::half),
                            bar);
            }
    }
}

// Loads and stores of the planes that are too narrow for tensor copies, by a warp.
template <typename S>
static __device__ __forceinline__ void gemm_copy_small(const tn_cuda_gemm_blocks_args &a, char *to, int seg,
                                                       int row, int k)
{
    typedef typename S::slot slot;
    typedef uint16_t unit;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        if (slot::bytes(p) == 0 || slot::copied(p)) continue;
        constexpr int per_lane = S::rows / TN_WARP;
        const int units = slot::bytes(p) / (int)sizeof(unit);
        unit v[per_lane][8];
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            int r = i * TN_WARP + (int)threadIdx.x % TN_WARP, h = r / S::half;
            const tn_cuda_gemm_blocks_seg &s = a.seg[a.glu ? h : seg];
            int from = row + (a.glu ? r % S::half : r);
            const unit *at = (const unit *)(s.w.plane[p] + from * s.w.row_size[p]) + (int64_t)k * units;
#pragma unroll
            for (int u = 0; u < units; u++) v[i][u] = from < s.n_rows ? at[u] : (unit)0;
        }
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            int r = i * TN_WARP + (int)threadIdx.x % TN_WARP;
#pragma unroll
            for (int u = 0; u < units; u++) ((unit *)(to + slot::start(p)))[r * units + u] = v[i][u];
        }
    }
}

template <typename S>
static __device__ void gemm_fetch_w(const tn_cuda_gemm_blocks_args &a, const gemm_blocks_work &work,
                                    const gemm_rings &rings)
{
    typedef typename S::slot slot;
    gemm_ring_at at = {0, 1};
    bool first = threadIdx.x % TN_WARP == 0;
    for (int t = work.first; t < work.n_tiles; t += work.step) {
        gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, t);
        int seg = gemm_blocks_seg_of(a, tile.n), group = a.tile_group ? a.tile_group[tile.m] : 0;
        int row = a.glu ? tile.n * S::half : (tile.n - a.seg[seg].first_tile) * S::rows;
        row += group * a.group_rows;
        for (int k = work.k_begin; k < work.k_end; k++) {
            char *to = rings.w + at.i * slot::size;
            tn_mbar_wait(&rings.w_empty[at.i], at.parity);
            if (first) {
                tn_fence_async();
                tn_mbar_expect(&rings.w_full[at.i], slot::copied_bytes());
                gemm_copy_planes<S>(a, to, seg, row, k, &rings.w_full[at.i]);
            }
            if constexpr (slot::has_small()) {
                gemm_copy_small<S>(a, to, seg, row, k);
                __syncwarp();
                if (first) tn_mbar_arrive(&rings.w_full[at.i]);
            }
            at.next(a.slots);
        }
    }
}

// --- results -----------------------------------------------------------------------------------------

// What a thread needs for its four sums (t, j): columns c[0] and c[1] of the result, rows r and r + 1.
template <typename S> struct gemm_place {
    float *y[2];
    const float *residual[2];
    float bias[2];
    bool inside[2];
};

template <typename S>
static __device__ __forceinline__ gemm_place<S> gemm_place_of(const tn_cuda_gemm_blocks_args &a,
                                                              gemm_blocks_tile tile, int t)
{
    int thread = (int)threadIdx.x - GEMM_PRODUCER, warp = thread / TN_WARP, lane = thread % TN_WARP;
    int seg = gemm_blocks_seg_of(a, tile.n);
    const tn_cuda_gemm_blocks_seg &s = a.seg[seg];
    int c = ((warp / 4 * S::tiles + t) * 4 + warp % 4) * 8 + lane / 4;
    c += a.glu ? tile.n * S::half : (tile.n - s.first_tile) * S::rows;
    gemm_place<S> p;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int at = c + (a.glu ? 0 : h * S::half);
        p.inside[h] = at < s.n && !(a.glu && h == 1);
        p.y[h] = s.y + at;
        p.residual[h] = a.residual ? a.residual + at : NULL;
        p.bias[h] = s.bias && p.inside[h] ? s.bias[at] : 0.0f;
    }
    return p;
}

static __device__ __forceinline__ float gemm_blocks_silu(float gate, float up)
{
    return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

// Four sums of a thread become results: rows `row` and row + 1, columns of the place. `any`: any activation.
template <typename S, bool any>
static __device__ __forceinline__ void gemm_finish(const tn_cuda_gemm_blocks_args &a, const gemm_place<S> &p,
                                                   int64_t ld, const float4 &v, const int (&to)[2],
                                                   const float (&scale)[2], const float (&r)[4])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float low = (i ? v.y : v.x) * scale[i], high = (i ? v.w : v.z) * scale[i];
        if (a.glu) {
            low = any ? gemm_glu(a.act, a.glu_limit, a.glu_alpha, low, high) : gemm_blocks_silu(low, high);
        } else {
            low += p.bias[0], high += p.bias[1];
            if (any) low = gemm_act(a.act, low), high = gemm_act(a.act, high);
            low += r[i], high += r[2 + i];
        }
        if (to[i] >= 0 && p.inside[0]) p.y[0][to[i] * ld] = low;
        if (to[i] >= 0 && p.inside[1]) p.y[1][to[i] * ld] = high;
    }
}

// Where the rows of four sums go, negative: nowhere; their scales and the residual.
template <typename S>
static __device__ __forceinline__ void gemm_load_rest(const tn_cuda_gemm_blocks_args &a,
                                                      const gemm_place<S> &p, int row, int (&to)[2],
                                                      float (&scale)[2], float (&r)[4])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        to[i] = row + i >= a.m ? -1 : a.row_to ? a.row_to[row + i] : row + i;
        scale[i] = row + i < a.m ? a.row_scale[row + i] : 0.0f;
#pragma unroll
        for (int h = 0; h < 2; h++)
            r[2 * h + i] =
                a.residual && to[i] >= 0 && p.inside[h] ? p.residual[h][to[i] * a.residual_ld] : 0.0f;
    }
}

// Writes the sums of a thread from registers: SiLU of a gated pair, or no activation. Eight lanes write eight
// columns of a row, a sector of 32 bytes.
template <typename S>
static __device__ __forceinline__ void gemm_write_sums(const tn_cuda_gemm_blocks_args &a,
                                                       gemm_blocks_tile tile, float (&d)[S::tiles][S::n / 2])
{
    constexpr int J = S::tiles > 1 ? 2 : 4; // pairs of rows that are written at a time
    int64_t ld = a.seg[gemm_blocks_seg_of(a, tile.n)].ld;
#pragma unroll
    for (int t = 0; t < S::tiles; t++) {
        gemm_place<S> p = gemm_place_of<S>(a, tile, t);
        int row = tile.m * S::n + 2 * (int)(threadIdx.x % 4);
#pragma unroll
        for (int j0 = 0; j0 < S::n / 8; j0 += J) {
            float r[J][4], scale[J][2];
            int to[J][2];
            asm volatile("" : "+r"(row)::"memory"); // addresses of later rows are not computed in advance
#pragma unroll
            for (int j = 0; j < J; j++) gemm_load_rest(a, p, row + 8 * j, to[j], scale[j], r[j]);
#pragma unroll
            for (int j = 0; j < J; j++) {
                const float *v = &d[t][4 * (j0 + j)];
                gemm_finish<S, false>(a, p, ld, make_float4(v[0], v[1], v[2], v[3]), to[j], scale[j], r[j]);
            }
            row += 8 * J;
        }
    }
}

static __device__ __forceinline__ float4 gemm_cluster_load4(const float4 *at, int rank)
{
    float4 v;
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [at];\n}\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(tn_shared(at)), "r"(rank)
                 : "memory");
    return v;
}

// The sums of all blocks of the cluster, of which this block adds and writes one part, in the order of the
// blocks. The loads of several sums and blocks are under way at a time.
template <typename S, bool any, int BATCH>
static __device__ __forceinline__ void gemm_add_and_write(const tn_cuda_gemm_blocks_args &a,
                                                          const gemm_blocks_work &work, const float4 *sums)
{
    constexpr int columns = S::n / 8, J = any ? 1 : 4;
    gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, work.first);
    int thread = (int)threadIdx.x - GEMM_PRODUCER, n = S::tiles * columns / work.splits;
    int64_t ld = a.seg[gemm_blocks_seg_of(a, tile.n)].ld;
#pragma unroll 1
    for (int e = n * work.rank; e < n * (work.rank + 1); e += J) {
        gemm_place<S> p = gemm_place_of<S>(a, tile, e / columns);
        int row = tile.m * S::n + 8 * (e % columns) + 2 * (thread % 4);
        float r[J][4], scale[J][2];
        int to[J][2];
        float4 v[J] = {};
#pragma unroll
        for (int j = 0; j < J; j++) gemm_load_rest(a, p, row + 8 * j, to[j], scale[j], r[j]);
#pragma unroll 1
        for (int b0 = 0; b0 < work.splits; b0 += BATCH) {
            float4 part[J][BATCH];
#pragma unroll
            for (int j = 0; j < J; j++)
#pragma unroll
                for (int b = 0; b < BATCH; b++)
                    part[j][b] = gemm_cluster_load4(sums + (e + j) * GEMM_CONSUMERS + thread, b0 + b);
#pragma unroll
            for (int j = 0; j < J; j++)
#pragma unroll
                for (int b = 0; b < BATCH; b++)
                    v[j].x += part[j][b].x, v[j].y += part[j][b].y, v[j].z += part[j][b].z,
                        v[j].w += part[j][b].w;
        }
#pragma unroll
        for (int j = 0; j < J; j++) gemm_finish<S, any>(a, p, ld, v[j], to[j], scale[j], r[j]);
    }
}

template <typename S>
static __device__ __forceinline__ void gemm_write_cluster(const tn_cuda_gemm_blocks_args &a,
                                                          const gemm_blocks_work &work, const float4 *sums)
{
    if (a.any)
        gemm_add_and_write<S, true, 1>(a, work, sums);
    else if (work.splits == 2)
        gemm_add_and_write<S, false, 2>(a, work, sums);
    else
        gemm_add_and_write<S, false, 4>(a, work, sums);
}

// --- products ----------------------------------------------------------------------------------------

// Multiplies a slot of weights, 256 of k, and releases it and the stages of x before the last one.
template <typename S>
static __device__ __forceinline__ void
gemm_multiply_slot(const tn_cuda_gemm_blocks_args &a, const gemm_rings &rings, const gemm_ring_at &w,
                   gemm_ring_at &x, uint32_t &before, bool begun, float (&d)[S::tiles][S::n / 2])
{
    typedef gemm_expander<S::type> expander;
    constexpr int MT = S::tiles;
    int thread = (int)threadIdx.x - GEMM_PRODUCER, warp = thread / TN_WARP, lane = thread % TN_WARP;
    gemm_lane<S::type, S::rows> l = {rings.w + w.i * S::slot::size,
                                     (warp / 4 * MT * 4 + warp % 4) * 8 + lane / 4, lane % 4};
    typename expander::scales scales[MT][2];
    typename expander::raw raw[MT][2];
    typename expander::factors by[MT][2];
    uint32_t f[GEMM_DEPTH][MT][4]; // operands of this step and of those before
    uint64_t matrix = 0;
    tn_mbar_wait(&rings.w_full[w.i], w.parity);
#pragma unroll
    for (int i = 0; i < 2 * MT; i++)
        expander::load_scales(scales[i / 2][i % 2], l, i % 2 * S::half + i / 2 * 32);
#pragma unroll
    for (int u = 0; u < 16; u++) {
        int b = u / 2;
        if (u % 2 == 0)
#pragma unroll
            for (int i = 0; i < 2 * MT; i++) {
                expander::load(raw[i / 2][i % 2], l, i % 2 * S::half + i / 2 * 32, b);
                expander::load_factors(by[i / 2][i % 2], scales[i / 2][i % 2], b);
            }
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) {
            uint32_t(&to)[4] = f[u % GEMM_DEPTH][i / 2];
            expander::expand(raw[i / 2][i % 2], by[i / 2][i % 2], b, u % 2, to[i % 2], to[2 + i % 2]);
        }
        if (u == 15) { // all of the slot is in registers
            __syncwarp();
            if (lane == 0) tn_mbar_arrive(&rings.w_empty[w.i]);
        }
        if (u % 4 == 0) {
            tn_mbar_wait(&rings.x_full[x.i], x.parity);
            matrix = tn_wgmma_tile(rings.x + x.i * S::stage);
        }
        tn_wgmma_fence();
#pragma unroll
        for (int t = 0; t < MT; t++)
            tn_wgmma_from_registers(d[t], f[u % GEMM_DEPTH][t], matrix + u % 4 * 2, begun || u > 0);
        tn_wgmma_commit();
        tn_wgmma_wait<GEMM_DEPTH - 1>();
        if (u % 4 == GEMM_DEPTH - 2) { // the products of the stage before are done
            if ((begun || u >= 4) && lane == 0) tn_mbar_arrive(&rings.x_empty[before]);
            before = x.i;
        }
        if (u % 4 == 3) x.next(a.stages);
    }
}

template <typename S>
static __device__ void gemm_multiply_blocks(const tn_cuda_gemm_blocks_args &a, const gemm_blocks_work &work,
                                            const gemm_rings &rings)
{
    constexpr int columns = S::n / 8;
    int thread = (int)threadIdx.x - GEMM_PRODUCER;
    gemm_ring_at x = {0, 0}, w = {0, 0};
    float d[S::tiles][S::n / 2];
    for (int t = work.first; t < work.n_tiles; t += work.step) {
        gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, t);
        uint32_t before = 0;
#pragma unroll 1
        for (int k = work.k_begin; k < work.k_end; k++) {
            gemm_multiply_slot<S>(a, rings, w, x, before, k > work.k_begin, d);
            w.next(a.slots);
        }
        tn_wgmma_wait<0>();
        if (thread % TN_WARP == 0) tn_mbar_arrive(&rings.x_empty[before]);
        if (!a.by_shared) {
            gemm_write_sums<S>(a, tile, d);
            continue;
        }
        tn_named_barrier(1, GEMM_CONSUMERS); // nobody reads the rings any more
        float4 *to = (float4 *)rings.x;
#pragma unroll
        for (int i = 0; i < S::tiles; i++)
#pragma unroll
            for (int j = 0; j < columns; j++)
                to[(i * columns + j) * GEMM_CONSUMERS + thread] =
                    make_float4(d[i][4 * j], d[i][4 * j + 1], d[i][4 * j + 2], d[i][4 * j + 3]);
    }
}

template <int TYPE, int MT, int N>
static __device__ __forceinline__ void gemm_blocks(const tn_cuda_gemm_blocks_args &a)
{
    typedef gemm_blocks_shape<TYPE, MT, N> S;
    extern __shared__ char shared[];
    __shared__ uint64_t bars[4][GEMM_MAX_RING];
    gemm_rings rings = {
        shared + (1024 - tn_shared(shared) % 1024) % 1024, NULL, bars[0], bars[1], bars[2], bars[3]};
    rings.w = rings.x + a.stages * S::stage;
    if (threadIdx.x == 0) {
        for (int i = 0; i < GEMM_MAX_RING; i++) {
            tn_mbar_init(&rings.x_full[i], 1);
            tn_mbar_init(&rings.x_empty[i], GEMM_CONSUMERS / TN_WARP);
            tn_mbar_init(&rings.w_full[i], S::slot::has_small() ? 2 : 1);
            tn_mbar_init(&rings.w_empty[i], GEMM_CONSUMERS / TN_WARP);
        }
        tn_mbar_init_fence();
    }
    tn_pdl_trigger();
    __syncthreads();
    if (threadIdx.x < GEMM_PRODUCER) {
        tn_registers_less<40>();
        // Weights do not change, so they are fetched before the predecessor has ended, unless it says which.
        if (a.n_tiles || threadIdx.x / TN_WARP != 1) tn_pdl_wait();
        gemm_blocks_work work = gemm_blocks_work_of(a);
        if (threadIdx.x / TN_WARP == 1) gemm_fetch_w<S>(a, work, rings);
        if (threadIdx.x == 0) gemm_fetch_x<S>(a, work, rings);
        if (!a.by_shared || work.first >= work.n_tiles) return;
        __syncwarp();
        tn_cluster_sync();
        tn_cluster_sync();
    } else {
        tn_registers_more<232>();
        tn_pdl_wait();
        gemm_blocks_work work = gemm_blocks_work_of(a);
        gemm_multiply_blocks<S>(a, work, rings);
        if (!a.by_shared || work.first >= work.n_tiles) return;
        tn_cluster_sync();
        gemm_write_cluster<S>(a, work, (const float4 *)rings.x);
        tn_cluster_sync(); // nobody reads the shared memory of this block any more
    }
}
#endif

#ifdef TN_HOPPER
#define GEMM_BLOCKS_BODY(TYPE, MT, N) gemm_blocks<TN_TYPE_##TYPE, MT, N>(a)
#else
#define GEMM_BLOCKS_BODY(TYPE, MT, N) __trap()
#endif
#define GEMM_BLOCKS(TYPE, MT, N)                                                                             \
    TN_ENTRY __launch_bounds__(GEMM_PRODUCER + GEMM_CONSUMERS, 1)                                            \
        tn_gemm_blocks_##TYPE##_##N(const __grid_constant__ tn_cuda_gemm_blocks_args a)                      \
    {                                                                                                        \
        GEMM_BLOCKS_BODY(TYPE, MT, N);                                                                       \
    }
#define GEMM_BLOCKS_BOTH(TYPE)                                                                               \
    GEMM_BLOCKS(TYPE, 2, 128)                                                                                \
    GEMM_BLOCKS(TYPE, 1, 256)

#endif
