// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and weights of block types: as much memory traffic as for one row (two, above 32), the arithmetic on
// mma.sync with weights as the 16-row operand. few_units.cuh says how weights become f16.
//
// A tile has 128 rows of weights (with GLU 64 of gate and 64 of up) and 32 rows of x. A block has four warps of 2 x 16 rows each; three
// blocks fit into a multiprocessor. The work of a launch is counted in stages of 256 k of all tiles in order, and blocks take equal
// stretches of it: whole tiles, and parts of the first and the last. The parts of a tile go through memory, and the last block to arrive
// sums them, in order, and finishes the tile.
// A lane reads weights from memory into registers, half a stage ahead; x comes prepared (few_prepare.cu) through shared memory in three stages.
//
// Per 16 x 32 weights and warp, Q4_K: 18 instructions of expansion, 8 products, 2 loads of x, 4 for scales of 256, 6 to decode scales, some 6 for
// loads and loops. Bytes: weights once, x once per tile: 64 for 128 weights of one k.
#ifndef TN_CUDA_FEW_BLOCKS_CUH
#define TN_CUDA_FEW_BLOCKS_CUH

#include "backends/cuda/kernels/epilogue.cuh"
#include "backends/cuda/kernels/few_units.cuh"
#include "backends/cuda/kernels/mma.cuh"

enum {
    FEW_BLOCK_NT = TN_FEW_BLOCK_COLUMNS / 8,
    FEW_BLOCK_HALF = TN_FEW_BLOCK_ROWS / 2,
    FEW_BLOCK_LD = TN_FEW_BLOCK_ROWS + 4, // floats from one row of x to the next, in the sums of a tile
};

// --- which rows ---------------------------------------------------------------------------------------

static __device__ __forceinline__ const tn_cuda_few_seg *few_block_seg(const tn_cuda_few_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

// The rows of a warp: row tile i has rows of weight i of a GLU, or the i-th half of the tile. Offsets within a tile fit 32 bits.
struct few_block_rows {
    const char *plane[2][TN_CUDA_MAX_PLANES]; // from the first row of row tile i of the block on
    uint32_t row_size[TN_CUDA_MAX_PLANES];
    int row[2][2]; // of this lane, of row tile i; + 8 h
    int copied;    // row that this thread copies the staged bytes of, of row tile threadIdx.x / FEW_BLOCK_HALF
};

static __device__ __forceinline__ few_block_rows few_block_rows_of(const tn_cuda_few_args &a, int tile, int64_t skip)
{
    few_block_rows r;
    int at = threadIdx.x / TN_WARP * 16 + threadIdx.x % TN_WARP / 4;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const tn_cuda_few_seg *seg = a.glu ? &a.seg[i] : few_block_seg(a, tile);
        int first = min(a.glu ? tile * FEW_BLOCK_HALF : (tile - seg->first_tile) * TN_FEW_BLOCK_ROWS + i * FEW_BLOCK_HALF, seg->n - 1);
        int last = seg->n - 1 - first;
#pragma unroll
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
            r.plane[i][p] = seg->w.plane[p] + (skip + first) * seg->w.row_size[p];
            r.row_size[p] = (uint32_t)seg->w.row_size[p];
        }
#pragma unroll
        for (int h = 0; h < 2; h++) r.row[i][h] = min(at + 8 * h, last);
        if (i == 0 || threadIdx.x >= FEW_BLOCK_HALF) r.copied = min((int)threadIdx.x % FEW_BLOCK_HALF, last);
    }
    return r;
}

// Planes of row tile i, row + 8 h.
static __device__ __forceinline__ few_row few_row_at(const few_block_rows &r, int i, int h)
{
    few_row w;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) w.plane[p] = r.plane[i][p], w.at[p] = (uint32_t)r.row[i][h] * r.row_size[p];
    return w;
}

// --- a stretch of one tile ----------------------------------------------------------------------------

// A stage of x, as it lies in memory, and 16 bytes of a row of weights for each thread.
static __device__ __forceinline__ void few_block_copy(char *to, const char *from, const char *row)
{
    if (row) tn_copy16(to + TN_FEW_BLOCK_STAGE + 16 * threadIdx.x, row, true);
#pragma unroll
    for (int i = 0; i < TN_FEW_BLOCK_STAGE / (16 * TN_FEW_BLOCK_THREADS); i++) {
        int at = 16 * (i * TN_FEW_BLOCK_THREADS + threadIdx.x);
        tn_copy16(to + at, from + at, true);
    }
}

// Minimums times sums of x, for the 16 runs of a stage: 16 of a sixteenth.
template <int TYPE>
static __device__ __forceinline__ void few_block_minimums(const typename few_unit<TYPE>::scale (&sc)[2][2], const char *sums, float (&d)[2][FEW_BLOCK_NT][4])
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4;
#pragma unroll
    for (int j = 0; j < FEW_BLOCK_NT; j++) {
        const uint32_t *s = (const uint32_t *)sums + (8 * j + lane / 4) * (TN_FEW_K / 16);
        uint32_t b[4];
#pragma unroll
        for (int i = 0; i < 4; i++) b[i] = s[few_unit<TYPE>::run(q, i)];
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float m[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                uint32_t f[4] = {few_unit<TYPE>::minimum(sc[t][0], i), few_unit<TYPE>::minimum(sc[t][1], i),
                                 few_unit<TYPE>::minimum(sc[t][0], i + 1), few_unit<TYPE>::minimum(sc[t][1], i + 1)};
                tn_mma_f16(m, f, b[i], b[i + 1]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) d[t][j][i] -= 16.0f * sc[t][i / 2].dmin * m[i];
        }
    }
}

// Half p of a stage.
template <int TYPE>
static __device__ __forceinline__ void few_block_multiply(const typename few_unit<TYPE>::raw (&w)[2][2], const typename few_unit<TYPE>::scale (&sc)[2][2], int p,
                                                          const char *x, float (&d)[2][FEW_BLOCK_NT][4])
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4, column = lane / 4;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        uint4 b[FEW_BLOCK_NT];
        int unit = TN_FEW_UNIT(few_unit<TYPE>::chunk(q, p, c), column);
#pragma unroll
        for (int j = 0; j < FEW_BLOCK_NT; j++) b[j] = *(const uint4 *)(x + 16 * ((8 * j + column) * (TN_FEW_K / 8) + unit));
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < 2; t++) {
                uint32_t f[4];
                few_unit<TYPE>::expand(w[t][0], sc[t][0], p, c, s, q, f[0], f[2]);
                few_unit<TYPE>::expand(w[t][1], sc[t][1], p, c, s, q, f[1], f[3]);
#pragma unroll
                for (int j = 0; j < FEW_BLOCK_NT; j++) tn_mma_f16(d[t][j], f, s ? b[j].z : b[j].x, s ? b[j].w : b[j].y);
            }
    }
}

// Stages [from, to) of a tile, added to `total`.
template <int TYPE>
static __device__ __forceinline__ void few_block_stretch(const tn_cuda_few_args &a, const few_block_rows &rows, char *room, const char *x, int from, int to,
                                                         float (&total)[2][FEW_BLOCK_NT][4])
{
    typedef few_unit<TYPE> unit;
    int q = threadIdx.x % 4;
    typename unit::head head[2][2];
    typename unit::raw next[2][2];
    // The row of weights that this thread copies the staged bytes of, and where those of the lane's rows are.
    int own = threadIdx.x / TN_WARP * 16 + threadIdx.x % TN_WARP / 4;
    const char *staged = nullptr;
    if constexpr (unit::staged >= 0)
        staged = (threadIdx.x < FEW_BLOCK_HALF ? rows.plane[0][unit::staged] : rows.plane[1][unit::staged]) + (uint32_t)rows.copied * rows.row_size[unit::staged];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        few_row w = few_row_at(rows, i / 2, i % 2);
        unit::load_head(head[i / 2][i % 2], w, from, q);
        unit::load(next[i / 2][i % 2], w, from, 0, q, a.k);
    }
    tn_pdl_wait();
    __syncthreads(); // the sums of the tile before are read
    for (int s = 0; s < TN_FEW_BLOCK_STAGES - 1; s++) {
        if (from + s < to) few_block_copy(room + s * TN_FEW_BLOCK_SLOT, x + (int64_t)(from + s) * TN_FEW_BLOCK_STAGE, unit::staged < 0 ? nullptr : staged + 16 * (from + s));
        tn_copy_commit();
    }
    int slot = 0;
    for (int s = from; s < to; s++) {
        tn_copy_wait<TN_FEW_BLOCK_STAGES - 2>();
        __syncthreads();
        int ahead = s + TN_FEW_BLOCK_STAGES - 1, behind = slot == 0 ? TN_FEW_BLOCK_STAGES - 1 : slot - 1;
        if (ahead < to) few_block_copy(room + behind * TN_FEW_BLOCK_SLOT, x + (int64_t)ahead * TN_FEW_BLOCK_STAGE, unit::staged < 0 ? nullptr : staged + 16 * ahead);
        tn_copy_commit();
        const char *stage = room + slot * TN_FEW_BLOCK_SLOT;
        typename unit::scale sc[2][2];
        int later = min(s + 1, to - 1); // behind the end the last ones again: a branch would keep loads from running ahead
#pragma unroll
        for (int i = 0; i < 4; i++) {
            unit::scales(sc[i / 2][i % 2], head[i / 2][i % 2], stage + TN_FEW_BLOCK_STAGE + 16 * (i / 2 * FEW_BLOCK_HALF + own + 8 * (i % 2)), q);
            unit::load_head(head[i / 2][i % 2], few_row_at(rows, i / 2, i % 2), later, q);
        }
        if constexpr (unit::minimums) few_block_minimums<TYPE>(sc, stage + TN_FEW_BLOCK_X, total);
        float part[2][FEW_BLOCK_NT][4];
        if constexpr (unit::exact) {
#pragma unroll
            for (int i = 0; i < 8 * FEW_BLOCK_NT; i++) part[i / (4 * FEW_BLOCK_NT)][i / 4 % FEW_BLOCK_NT][i % 4] = 0.0f;
        }
#pragma unroll
        for (int p = 0; p < 2; p++) {
            typename unit::raw now[2][2];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                now[i / 2][i % 2] = next[i / 2][i % 2];
                unit::load(next[i / 2][i % 2], few_row_at(rows, i / 2, i % 2), p ? later : s, 1 - p, q, a.k);
            }
            if constexpr (unit::exact) few_block_multiply<TYPE>(now, sc, p, stage, part);
            else few_block_multiply<TYPE>(now, sc, p, stage, total);
        }
        if constexpr (unit::exact) {
#pragma unroll
            for (int t = 0; t < 2; t++)
#pragma unroll
                for (int j = 0; j < FEW_BLOCK_NT; j++)
#pragma unroll
                    for (int i = 0; i < 4; i++) total[t][j][i] += 16777216.0f * sc[t][i / 2].d * part[t][j][i]; // 2^24
        }
        slot = slot + 1 == TN_FEW_BLOCK_STAGES ? 0 : slot + 1;
    }
    tn_copy_wait<0>();
    __syncthreads();
}

// --- the sums of a tile -------------------------------------------------------------------------------

// sums[row of x][row of weights]
static __device__ __forceinline__ void few_block_put(float *sums, const float (&d)[2][FEW_BLOCK_NT][4])
{
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int j = 0; j < FEW_BLOCK_NT; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[(8 * j + 2 * (lane % 4) + i % 2) * FEW_BLOCK_LD + t * FEW_BLOCK_HALF + 16 * warp + lane / 4 + 8 * (i / 2)] = d[t][j][i];
    __syncthreads();
}

// Where block `block` leaves its part of a tile that begins in it, or before it.
static __device__ __forceinline__ float *few_block_part(const tn_cuda_few_args &a, int block, bool begins)
{
    return a.partial + (((int64_t)blockIdx.y * gridDim.x + block) * 2 + begins) * TN_FEW_BLOCK_PART;
}

// The block that has a stage, of those of all tiles in order.
static __device__ __forceinline__ int few_block_of(int64_t stage, int64_t n_stages)
{
    return (int)(((stage + 1) * gridDim.x - 1) / n_stages);
}

// A part of a tile, which others share: written, and true for the block that came last.
static __device__ __forceinline__ bool few_block_share(const tn_cuda_few_args &a, const float *sums, int tile, int first, int last)
{
    __shared__ int arrived;
    float4 *to = (float4 *)few_block_part(a, blockIdx.x, (int)blockIdx.x == first);
#pragma unroll 4
    for (int e = threadIdx.x; e < TN_FEW_BLOCK_PART / 4; e += TN_FEW_BLOCK_THREADS)
        to[e] = *(const float4 *)(sums + e * 4 / TN_FEW_BLOCK_ROWS * FEW_BLOCK_LD + e * 4 % TN_FEW_BLOCK_ROWS);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicAdd(&a.arrived[blockIdx.y * a.n_tiles + tile], 1);
    __syncthreads();
    __threadfence();
    return arrived == last - first;
}

// The parts of all blocks of a tile, in order. Eight loads are on their way at a time.
static __device__ __forceinline__ void few_block_collect(const tn_cuda_few_args &a, float *sums, int first, int last)
{
    enum { BATCH = 8 };
    for (int start = threadIdx.x; start < TN_FEW_BLOCK_PART / 4; start += BATCH * TN_FEW_BLOCK_THREADS) {
        float4 v[BATCH];
        for (int block = first; block <= last; block++) {
            const float4 *from = (const float4 *)few_block_part(a, block, block == first);
            float4 u[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; i++) u[i] = __ldcg(from + start + i * TN_FEW_BLOCK_THREADS);
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                v[i] = block == first ? u[i] : make_float4(v[i].x + u[i].x, v[i].y + u[i].y, v[i].z + u[i].z, v[i].w + u[i].w);
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int e = (start + i * TN_FEW_BLOCK_THREADS) * 4;
            *(float4 *)(sums + e / TN_FEW_BLOCK_ROWS * FEW_BLOCK_LD + e % TN_FEW_BLOCK_ROWS) = v[i];
        }
    }
    __syncthreads();
}
static_assert(TN_FEW_BLOCK_PART % (4 * 8 * TN_FEW_BLOCK_THREADS) == 0, "few_block_collect takes whole batches");

// The results of a tile; adjacent threads have adjacent columns of y. Four at a time, so that loads do not wait for each other.
static __device__ __forceinline__ void few_block_finish(const tn_cuda_few_args &a, const float *sums, int tile)
{
    enum { BATCH = 4 };
    const tn_cuda_few_seg &s = *few_block_seg(a, tile);
    int width = a.glu ? FEW_BLOCK_HALF : TN_FEW_BLOCK_ROWS, j = threadIdx.x % width, c = (tile - s.first_tile) * width + j;
    if (c >= s.n) return;
    float bias = s.bias ? s.bias[c] : 0.0f;
    int step = TN_FEW_BLOCK_THREADS / width, start = blockIdx.y * TN_FEW_BLOCK_COLUMNS, n = min(a.m - start, (int)TN_FEW_BLOCK_COLUMNS);
    for (int row = threadIdx.x / width; row < n; row += BATCH * step) {
        float scale[BATCH], residual[BATCH];
        int to[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int r = row + i * step;
            to[i] = r >= n ? -1 : a.row_to ? a.row_to[start + r] : start + r;
            scale[i] = to[i] >= 0 ? a.row_scale[start + r] : 1.0f;
            residual[i] = a.residual && to[i] >= 0 ? a.residual[to[i] * a.residual_ld + c] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            if (to[i] < 0) continue;
            const float *at = sums + (row + i * step) * FEW_BLOCK_LD + j;
            float v = *at * scale[i];
            if (a.glu) v = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v, at[FEW_BLOCK_HALF] * scale[i]);
            else v = gemm_act(a.act, v + bias) + residual[i];
            s.y[to[i] * s.ld + c] = v;
        }
    }
}

// --- the kernel ---------------------------------------------------------------------------------------

template <int TYPE> static __device__ __forceinline__ void few_blocks(const tn_cuda_few_args &a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) char few_room[];
    int per_tile = (a.k + TN_FEW_K - 1) / TN_FEW_K;
    int64_t n = (int64_t)a.n_tiles * per_tile, at = n * blockIdx.x / gridDim.x, end = n * (blockIdx.x + 1) / gridDim.x, skip = 0;
    tn_pdl_trigger();
    if (a.tile_group) { // what comes first decides which weights
        tn_pdl_wait();
        if ((int)blockIdx.y >= *a.n_row_tiles) return;
        skip = a.tile_group[blockIdx.y] * a.group_rows;
    }
    const char *x = (const char *)a.x + (int64_t)blockIdx.y * per_tile * TN_FEW_BLOCK_STAGE;
    float *sums = (float *)few_room;
#pragma unroll 1
    while (at < end) {
        int tile = (int)(at / per_tile), from = (int)(at - (int64_t)tile * per_tile), to = (int)min((int64_t)per_tile, end - at + from);
        few_block_rows rows = few_block_rows_of(a, tile, skip);
        float total[2][FEW_BLOCK_NT][4] = {};
        few_block_stretch<TYPE>(a, rows, few_room, x, from, to, total);
        few_block_put(sums, total);
        at += to - from;
        if (to - from < per_tile) {
            int first = few_block_of((int64_t)tile * per_tile, n), last = few_block_of((int64_t)tile * per_tile + per_tile - 1, n);
            if (!few_block_share(a, sums, tile, first, last)) continue;
            few_block_collect(a, sums, first, last);
        }
        few_block_finish(a, sums, tile);
    }
    tn_pdl_wait();
#else
    __trap();
#endif
}

#define FEW_BLOCKS(TYPE)                                                                                                              \
    TN_ENTRY __launch_bounds__(TN_FEW_BLOCK_THREADS, TN_FEW_BLOCK_PER_SM) tn_few_##TYPE(const __grid_constant__ tn_cuda_few_args a)   \
    {                                                                                                                                 \
        few_blocks<TN_TYPE_##TYPE>(a);                                                                                                \
    }

#endif
