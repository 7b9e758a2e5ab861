// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 88 rows of x and weights of block types on compute capability 9.0, with wgmma: each warp
// streams its own weights, and waits for others only where the four of a warpgroup multiply together.
//
// Operands: w [n, k] in planes, k a multiple of 256; x in stages of 256 k as skinny_stream_args.h says; y [m,
// n] f32.
//
// A warp has 16 rows of weights (8 of gate and 8 of up for GLU) and every k_warps-th stage of the k of its
// block. It copies their planes by cp.async into a ring of its own and expands them
// into registers, the operand of 64 rows of its warpgroup (skinny_batch.cuh). Stages of x come by bulk copies
// into a ring for the block, from which the tensor cores read them. Sums of the warps that share rows, and of
// the blocks of a cluster that share a tile, are added at the end, in order, through shared memory.
//
// Bytes: weights once; x once for each block, from L2. Operations: 2 m n k.
#ifndef TN_CUDA_SKINNY_STREAM_CUH
#define TN_CUDA_SKINNY_STREAM_CUH

#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/skinny/skinny_batch.cuh"
#include "backends/cuda/product/skinny/skinny_products.cuh"
#include "backends/cuda/product/skinny/skinny_stream_args.h"

// TILES x 16 rows of weights of a warp, N rows of x.
template <int TILES, int N> using skinny_stream_sums = float[TILES][N / 8][4];

#ifdef TN_HOPPER
// --- which part of the work ------------------------------------------------------------------------------

// The place of a warp: it has tile number first + i * step for each pass i, and of its k every k_warps-th
// stage of the block's [begin, begin + n), from k_warp on. Tiles behind the last one have no results.
struct skinny_stream_work {
    int warp, row_warp, k_warp, rank; // rank: of the block in its cluster
    int begin, n, own;                // own: stages of this warp
    int first, step, passes;

    __device__ __forceinline__ skinny_stream_work(const tn_cuda_skinny_stream_args &a)
    {
        warp = __shfl_sync(0xffffffffu, threadIdx.x / TN_WARP, 0);
        row_warp = warp % a.row_warps, k_warp = warp / a.row_warps;
        rank = blockIdx.x % a.splits;
        begin = a.k_stages * rank / a.splits, n = a.k_stages * (rank + 1) / a.splits - begin;
        own = (n - k_warp + a.k_warps - 1) / a.k_warps;
        // Warpgroups of a block have tiles far apart, so that those of a slower second type, which are the
        // last ones, share blocks with others.
        int block = blockIdx.x / a.splits, blocks = gridDim.x / a.splits, group = TN_SKINNY_STREAM_WARPS;
        first = (row_warp / group * blocks + block) * group + row_warp % group, step = blocks * a.row_warps;
        passes = (a.n_tiles - block * group + step - 1) / step;
    }
};

// The rows of a tile, in two halves of eight rows for each 16: with GLU gate and up.
template <int TILES> struct skinny_stream_rows {
    int seg[2], row[2], left[2]; // of the halves: weight, first row, rows from there to the end
    int step;                    // rows from one 16 to the next

    __device__ __forceinline__ void set(const tn_cuda_skinny_stream_args &a, int tile)
    {
        int s = 0;
        tile = min(tile, a.n_tiles - 1);
#pragma unroll
        for (int i = 1; i < 3; i++)
            if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
        step = a.glu ? 8 : 16;
        int at = (tile - (a.glu ? 0 : a.seg[s].first_tile)) * TILES * step;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            seg[h] = a.glu ? h : s, row[h] = at + (a.glu ? 0 : 8 * h);
            left[h] = a.seg[seg[h]].n - row[h];
        }
    }
    // Row `i` of 16 rows t, where plane p of it starts. Rows behind the end are the last one, and what comes
    // of them goes into no result.
    __device__ __forceinline__ const char *at(const tn_cuda_skinny_stream_args &a, int p, int t, int i) const
    {
        int h = i / 8, own = h ? row[1] : row[0], most = (h ? left[1] : left[0]) - 1;
        const tn_cuda_weight &w = a.seg[h ? seg[1] : seg[0]].w;
        return w.plane[p] + (int64_t)(own + min(t * step + i % 8, most)) * w.row_size[p];
    }
};

// --- weights ---------------------------------------------------------------------------------------------

// Copies the weights of a warp ahead of its products, through slots that are its own.
template <int TYPE, int TILES> struct skinny_stream_loader {
    typedef skinny_stream_layout<TYPE> layout;
    static constexpr int tile_size = TN_SKINNY_STREAM_ROWS * layout::row_bytes, slot_size = TILES * tile_size;
    static constexpr int slots = TN_SKINNY_STREAM_SLOTS, ring_size = slots * slot_size;
    static constexpr __host__ __device__ int copies(int p) // of all lanes, for plane p of 16 rows
    {
        return (16 * layout::pieces(p) + TN_WARP - 1) / TN_WARP;
    }
    static constexpr __host__ __device__ int first_copy(int p)
    {
        int n = 0;
        for (int i = 0; i < p; i++) n += copies(i);
        return n;
    }
    static constexpr int all_copies = first_copy(TN_CUDA_MAX_PLANES);
    const char *from[TILES][all_copies]; // of stage 0
    int left, in_pass, stage, pass, to;  // stages to copy: of all passes, of this pass; byte of the slot

    // Which piece of which row a lane copies, and whether there is one.
    static __device__ __forceinline__ unsigned piece(int i) { return i * TN_WARP + threadIdx.x % TN_WARP; }
    template <int P>
    __device__ __forceinline__ void enter_plane(const tn_cuda_skinny_stream_args &a,
                                                const skinny_stream_rows<TILES> &rows)
    {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < copies(P); i++) {
                constexpr int pieces = layout::pieces(P) > 0 ? layout::pieces(P) : 1;
                int e = min((int)piece(i), 16 * pieces - 1);
                from[t][first_copy(P) + i] =
                    rows.at(a, P, t, e / pieces) + (layout::whole(P) ? e % pieces * 16 : 0);
            }
    }
    __device__ __forceinline__ void enter(const tn_cuda_skinny_stream_args &a, const skinny_stream_work &work)
    {
        skinny_stream_rows<TILES> rows;
        rows.set(a, work.first + pass * work.step);
        in_pass = work.own, stage = work.begin + work.k_warp;
        enter_plane<0>(a, rows);
        enter_plane<1>(a, rows);
        enter_plane<2>(a, rows);
        enter_plane<3>(a, rows);
    }
    // Pointers that stay where a row begins take less than those that advance, which have to be moved into
    // pairs of registers for the copies.
    template <int P> __device__ __forceinline__ void copy_plane(char *slot)
    {
        constexpr int pieces = layout::pieces(P) > 0 ? layout::pieces(P) : 1;
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < copies(P); i++) {
                unsigned e = piece(i);
                // where pieces divide the lanes, so that rows of copies are a constant apart
                unsigned at = TN_WARP % pieces == 0
                                  ? piece(0) / pieces * layout::row_bytes + piece(0) % pieces * 16 +
                                        i * (TN_WARP / pieces) * layout::row_bytes
                                  : e / pieces * layout::row_bytes + e % pieces * 16;
                char *target = slot + at + t * tile_size + 16 * layout::first_piece(P);
                const char *row = from[t][first_copy(P) + i] + (uint64_t)(unsigned)stage * layout::bytes(P);
                if (16 * pieces % TN_WARP != 0 && e >= 16 * pieces) continue;
                if constexpr (layout::whole(P)) {
                    tn_copy16_line(target, row);
                } else {
                    int shift = (int)((uintptr_t)row & 15), piece = (int)(e % pieces);
                    tn_copy16_partial(target, row - shift + 16 * piece,
                                      max(0, min(16, shift + layout::bytes(P) - 16 * piece)));
                }
            }
    }
    __device__ __forceinline__ void begin(const tn_cuda_skinny_stream_args &a, const skinny_stream_work &work)
    {
        pass = 0, to = 0, left = work.own * work.passes;
        enter(a, work);
    }
    template <int SLOTS>
    __device__ __forceinline__ void next(const tn_cuda_skinny_stream_args &a, const skinny_stream_work &work,
                                         char *ring)
    {
        if (left > 0) {
            char *slot = ring + to;
            copy_plane<0>(slot);
            copy_plane<1>(slot);
            copy_plane<2>(slot);
            copy_plane<3>(slot);
            left--, stage += a.k_warps;
            if (--in_pass == 0 && left > 0) {
                pass++;
                enter(a, work);
            }
        }
        to = to == (SLOTS - 1) * slot_size ? 0 : to + slot_size;
        tn_copy_commit();
    }
};

// --- x ---------------------------------------------------------------------------------------------------

// Bytes of a stage with the sums that minimums are multiplied by, or without.
template <int N, bool SUMS> static constexpr __host__ __device__ int skinny_stream_x_size()
{
    return SUMS ? (int)TN_SKINNY_STREAM_STAGE(N) : (int)TN_SKINNY_STREAM_X(N);
}

// mbarrier.arrive.expect_tx and cp.async.bulk of one lane. The others run along, because a branch would keep
// the compiler from computing what is the same for a warp once.
static __device__ __forceinline__ void skinny_stream_request(bool elected, void *to, const void *from,
                                                             uint32_t bytes, uint64_t *bar)
{
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\n"
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%3], %2;\n"
        "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];\n}\n" ::
            "r"(tn_shared(to)),
        "l"(from), "r"(bytes), "r"(tn_shared(bar)), "r"((int)elected)
        : "memory");
}

// Copies the stages of x that the warps with the same k_warp read, in the order in which their passes need
// them. One warp of theirs does this. A slot is filled again a stage after it was read, when nearly all of
// the warps have read it.
template <int N, bool SUMS> struct skinny_stream_x {
    static constexpr int size = skinny_stream_x_size<N, SUMS>(),
                         bytes = (int)TN_SKINNY_STREAM_X(N) + (SUMS ? (int)TN_SKINNY_STREAM_SUMS(N) : 0);
    int left, stage; // to copy

    __device__ __forceinline__ void load(const tn_cuda_skinny_stream_args &a, const skinny_stream_work &work,
                                         char *ring, uint64_t *full, int slot)
    {
        skinny_stream_request(threadIdx.x % TN_WARP == 0, ring + slot * size,
                              (const char *)a.x + (int64_t)(work.begin + stage) * TN_SKINNY_STREAM_STAGE(N),
                              bytes, &full[slot]);
        left--, stage += a.k_warps;
        if (stage >= work.n) stage = work.k_warp;
    }
    __device__ __forceinline__ void begin(const tn_cuda_skinny_stream_args &a, const skinny_stream_work &work,
                                          char *ring, uint64_t *full)
    {
        left = work.row_warp == 0 ? work.own * work.passes : 0, stage = work.k_warp;
        for (int slot = work.k_warp; slot < a.x_slots && left > 0; slot += a.k_warps)
            load(a, work, ring, full, slot);
    }
};

// Descriptor of x, with the 128-byte swizzle (mma.cuh, tn_wgmma_tile).
static __device__ __forceinline__ uint64_t skinny_x_tile(uint32_t at)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

// Descriptor of the sums of a stage of x, whose descriptor is given: rows of 32 bytes in the 32-byte swizzle.
template <int N> static __device__ __forceinline__ uint64_t skinny_sums_tile(uint64_t x)
{
    return ((x & 0xffffffffu) + TN_SKINNY_STREAM_X(N) / 16) | (uint64_t)(256 >> 4) << 32 | (uint64_t)3 << 62;
}

// --- products --------------------------------------------------------------------------------------------

// Step s of batch b, as an operand in the order of mma.m16n8k16.
template <int TYPE>
static __device__ __forceinline__ void
skinny_stream_expand(const typename skinny_batch<TYPE>::raw (&raw)[2],
                     const typename skinny_batch<TYPE>::head (&head)[2], int b, int s, uint32_t (&f)[4])
{
#pragma unroll
    for (int h = 0; h < 2; h++) skinny_batch<TYPE>::expand(raw[h], head[h], b, s, f[h], f[2 + h]);
}

// Minimums times sums of x, for runs of 32: one product for all of a stage.
template <int TYPE, int TILES, int N>
static __device__ __forceinline__ void
skinny_stream_start_minimums(const typename skinny_batch<TYPE>::head (&head)[TILES][2], uint64_t x,
                             skinny_stream_sums<TILES, N> &min_sums)
{
    tn_wgmma_fence();
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        uint32_t m[4] = {head[t][0].minimum[0], head[t][1].minimum[0], head[t][0].minimum[1],
                         head[t][1].minimum[1]};
        skinny_wgmma(min_sums[t], m, skinny_sums_tile<N>(x), 0);
    }
    tn_wgmma_commit();
}

template <int TYPE, int TILES, int N>
static __device__ __forceinline__ void
skinny_stream_add_minimums(const typename skinny_batch<TYPE>::head (&head)[TILES][2],
                           skinny_stream_sums<TILES, N> &min_sums, skinny_stream_sums<TILES, N> &total)
{
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        skinny_wgmma_wait<0>(min_sums[t]);
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            total[t][i / 4][i % 4] -= head[t][i % 4 / 2].offset * min_sums[t][i / 4][i % 4];
    }
}

// Adds the products of a slot of weights and a stage of x, whose descriptor is given.
template <int TYPE, int TILES, int N>
static __device__ __forceinline__ void skinny_stream_stage(const skinny_stream_row<TYPE> (&row)[TILES][2],
                                                           uint64_t x, skinny_stream_sums<TILES, N> &total)
{
    typedef skinny_batch<TYPE> batch;
    int q = threadIdx.x % 4;
    typename batch::head head[TILES][2];
    typename batch::raw raw[TILES][2];
    skinny_stream_sums<TILES, N> part, min_sums;
    skinny_stream_sums<TILES, N> &d = batch::exact ? part : total;
#pragma unroll
    for (int i = 0; i < 2 * TILES; i++) batch::load_head(head[i / 2][i % 2], row[i / 2][i % 2], q);
    if constexpr (batch::minimums) skinny_stream_start_minimums<TYPE, TILES, N>(head, x, min_sums);
    // The operands of a batch fit the registers twice: this batch's, and those that are being multiplied.
    uint32_t f[2][TILES][2][4];
#pragma unroll
    for (int b = 0; b < 8; b++) {
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++)
            batch::load(raw[i / 2][i % 2], head[i / 2][i % 2], row[i / 2][i % 2], b, q);
        if (b > 1) tn_wgmma_wait<1>();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
                skinny_stream_expand<TYPE>(raw[t], head[t], b, s, f[b % 2][t][s]);
        if constexpr (batch::minimums)
            if (b == 0) skinny_stream_add_minimums<TYPE, TILES, N>(head, min_sums, total);
        tn_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
                skinny_wgmma(d[t], f[b % 2][t][s], x + b / 2 * (N * 128 / 16) + (2 * b + s) % 4 * 2,
                             !batch::exact || b > 0 || s > 0);
        tn_wgmma_commit();
    }
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        skinny_wgmma_wait<0>(d[t]);
        if constexpr (batch::exact)
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                total[t][i / 4][i % 4] += head[t][i % 4 / 2].factor * part[t][i / 4][i % 4];
    }
}

// --- sums of several warps and blocks --------------------------------------------------------------------

// mapa and ld.shared::cluster: reads four floats at the same place in another block of the cluster.
static __device__ __forceinline__ float4 skinny_stream_load_from(const float4 *at, int rank)
{
    float4 v;
    asm volatile("{\n.reg .b32 at;\nmapa.shared::cluster.u32 at, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [at];\n}\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "r"(tn_shared(at)), "r"(rank)
                 : "memory");
    return v;
}

// Puts the sums of a warp where the warps and blocks that share its rows add them. All rings have been read
// by then, so their memory is used.
template <int TILES, int N>
static __device__ __forceinline__ void skinny_stream_put(const tn_cuda_skinny_stream_args &a,
                                                         const skinny_stream_work &work, float4 *sums,
                                                         const skinny_stream_sums<TILES, N> &d)
{
    constexpr int C = N / 8;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < TILES * C; e++) {
        const float(&v)[4] = d[e / C][e % C];
        sums[(work.warp * TILES * C + e) * TN_WARP + threadIdx.x % TN_WARP] =
            make_float4(v[0], v[1], v[2], v[3]);
    }
    if (a.splits > 1)
        tn_cluster_sync();
    else
        __syncthreads();
}

// Adds sum number e of all warps and blocks that share the rows of a warp, of n each, in order of k.
static __device__ __forceinline__ void skinny_stream_add(const tn_cuda_skinny_stream_args &a,
                                                         const skinny_stream_work &work, const float4 *sums,
                                                         int e, int n, float (&to)[4])
{
    to[0] = to[1] = to[2] = to[3] = 0.0f;
#pragma unroll 1
    for (int r = 0; r < a.splits; r++)
#pragma unroll 4
        for (int w = 0; w < a.k_warps; w++) {
            const float4 *at =
                &sums[((w * a.row_warps + work.row_warp) * n + e) * TN_WARP + threadIdx.x % TN_WARP];
            float4 v = a.splits > 1 ? skinny_stream_load_from(at, r) : *at;
            to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
        }
}

// --- results ---------------------------------------------------------------------------------------------

// Results of activations that few models have: of one sum, or of gate and up. They are not inlined into the
// loops over all sums, because unrolled they would not fit the instruction cache.
static __device__ __noinline__ float skinny_stream_act(const tn_cuda_skinny_stream_args &a, float v, float up)
{
    return a.glu ? gemm_glu(a.act, a.glu_limit, a.glu_alpha, v, up) : gemm_act(a.act, v);
}

// What results need besides sums: rows of weights, and of 8 rows of x scales and the residual.
template <int TILES> struct skinny_stream_target {
    skinny_stream_rows<TILES> rows;
    float scale[2], bias[TILES][2], residual[TILES][4];

    __device__ __forceinline__ int row(int t, int h) const
    {
        return (h ? rows.row[1] : rows.row[0]) + t * rows.step + threadIdx.x % TN_WARP / 4;
    }
    __device__ __forceinline__ int left(int t, int h) const
    {
        return (h ? rows.left[1] : rows.left[0]) - t * rows.step - threadIdx.x % TN_WARP / 4;
    }
    __device__ __forceinline__ void set(const tn_cuda_skinny_stream_args &a, int tile)
    {
        rows.set(a, tile);
        const float *b = a.seg[rows.seg[0]].bias;
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++)
            bias[i / 2][i % 2] = !a.glu && b && left(i / 2, i % 2) > 0 ? b[row(i / 2, i % 2)] : 0.0f;
    }
    __device__ __forceinline__ void load(const tn_cuda_skinny_stream_args &a, int column)
    {
#pragma unroll
        for (int i = 0; i < 2; i++) scale[i] = column + i < a.m ? a.row_scale[column + i] : 1.0f;
#pragma unroll
        for (int e = 0; e < 4 * TILES; e++) {
            int t = e / 4, h = e / 2 % 2, i = e % 2;
            residual[t][2 * h + i] = a.residual && column + i < a.m && left(t, h) > 0
                                         ? a.residual[(column + i) * a.residual_ld + row(t, h)]
                                         : 0.0f;
        }
    }
};

// The results of a row of weights in each half, and of two rows of x: [half][row of x].
template <int TILES>
static __device__ __forceinline__ void skinny_stream_results(const tn_cuda_skinny_stream_args &a,
                                                             const skinny_stream_target<TILES> &to, int t,
                                                             const float (&d)[4], float (&z)[2][2])
{
    bool silu = a.act == TN_UNARY_SILU && a.glu_limit <= 0.0f && a.glu_alpha <= 0.0f,
         common = a.glu ? silu : a.act == TN_UNARY_NONE;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        float v0 = d[i] * to.scale[i], v1 = d[2 + i] * to.scale[i];
        if (!a.glu) v0 += to.bias[t][0], v1 += to.bias[t][1];
        if (!common)
            v0 = skinny_stream_act(a, v0, v1), v1 = skinny_stream_act(a, v1, 0.0f);
        else if (a.glu)
            v0 = __fdividef(v0, 1.0f + __expf(-v0)) * v1;
        z[0][i] = v0 + to.residual[t][i], z[1][i] = v1 + to.residual[t][2 + i];
    }
}

// Writes the results of 8 rows of x, from the one that `column` is of this lane on.
template <int TILES>
static __device__ __forceinline__ void skinny_stream_write(const tn_cuda_skinny_stream_args &a,
                                                           const skinny_stream_target<TILES> &to, int column,
                                                           const float (&d)[TILES][4])
{
    const tn_cuda_skinny_seg &s = a.seg[a.glu ? 0 : to.rows.seg[0]];
#pragma unroll
    for (int t = 0; t < TILES; t++) {
        float z[2][2];
        skinny_stream_results<TILES>(a, to, t, d[t], z);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = to.row(t, h);
            if (h && a.glu) break;
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (column + i < a.m && to.left(t, h) > 0) s.y[(column + i) * s.ld + row] = z[h][i];
        }
    }
}

// The end of a tile. Of the warps that share rows, and the blocks of a cluster, each finishes every so
// manieth 8 rows of x. The loop is not unrolled: its code runs once, and would come from L2 as it runs. Sums
// that nobody shares move up in their registers.
template <int TILES, int N>
static __device__ __forceinline__ void skinny_stream_finish(const tn_cuda_skinny_stream_args &a,
                                                            const skinny_stream_work &work, int tile,
                                                            float4 *sums, skinny_stream_sums<TILES, N> &d)
{
    constexpr int C = N / 8;
    int own = work.k_warp * a.splits + work.rank, owners = a.k_warps * a.splits,
        lane_column = 2 * (threadIdx.x % 4);
    skinny_stream_target<TILES> to;
    to.set(a, tile);
    if (own < C) to.load(a, 8 * own + lane_column); // before the sums of other warps are waited for
    if (owners > 1) skinny_stream_put<TILES, N>(a, work, sums, d);
    if (tile >= a.n_tiles) return;
#pragma unroll 1
    for (int c = own; c < C; c += owners) {
        float v[TILES][4];
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            if (owners > 1) {
                skinny_stream_add(a, work, sums, t * C + c, TILES * C, v[t]);
            } else {
#pragma unroll
                for (int i = 0; i < 4; i++) v[t][i] = d[t][0][i];
#pragma unroll
                for (int i = 0; i < 4 * (C - 1); i++) d[t][i / 4][i % 4] = d[t][i / 4 + 1][i % 4];
            }
        }
        skinny_stream_write<TILES>(a, to, 8 * c + lane_column, v);
        if (c + owners < C) to.load(a, 8 * (c + owners) + lane_column);
    }
}

// --- the kernel ------------------------------------------------------------------------------------------

// The rows of a lane in a slot: of 16 rows t, row lane / 4 of half h. Planes that are not whole start
// somewhere in their first piece: `low` has the low bits of their addresses at stage 0.
template <int TYPE, int TILES> struct skinny_stream_lane {
    typedef skinny_stream_layout<TYPE> layout;
    uint32_t low[TILES][2][TN_CUDA_MAX_PLANES];

    __device__ __forceinline__ void set(const tn_cuda_skinny_stream_args &a,
                                        const skinny_stream_rows<TILES> &rows)
    {
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++)
#pragma unroll
            for (int p = 0; p < TN_CUDA_MAX_PLANES; p++)
                low[i / 2][i % 2][p] =
                    layout::whole(p)
                        ? 0
                        : (uint32_t)(uintptr_t)rows.at(a, p, i / 2, i % 2 * 8 + threadIdx.x % TN_WARP / 4);
    }
    __device__ __forceinline__ void rows(const char *slot, int stage,
                                         skinny_stream_row<TYPE> (&row)[TILES][2]) const
    {
        const char *own = slot + threadIdx.x % TN_WARP / 4 * layout::row_bytes;
#pragma unroll
        for (int i = 0; i < 2 * TILES; i++) {
            row[i / 2][i % 2].at = own + 8 * i * layout::row_bytes;
#pragma unroll
            for (int p = 0; p < TN_CUDA_MAX_PLANES; p++)
                row[i / 2][i % 2].shift[p] =
                    layout::whole(p) ? 0 : (low[i / 2][i % 2][p] + (uint32_t)(stage * layout::bytes(p))) & 15;
        }
    }
};

// The stages and results of all passes of a warp.
template <int TYPE, int TILES, int N, bool SUMS>
static __device__ __forceinline__ void skinny_stream_run(const tn_cuda_skinny_stream_args &a,
                                                         const skinny_stream_work &work, char *x_ring,
                                                         char *ring, uint64_t *full, uint64_t *empty)
{
    typedef skinny_stream_loader<TYPE, TILES> loader_of;
    constexpr int x_size = skinny_stream_x_size<N, SUMS>(), SLOTS = loader_of::slots;
    bool elected = threadIdx.x % TN_WARP == 0;
    skinny_stream_x<N, SUMS> x;
    loader_of loader;
    loader.begin(a, work);
    // Weights never change, so the first ones are requested before the predecessor has ended.
#pragma unroll
    for (int i = 0; i + 1 < SLOTS; i++) loader.template next<SLOTS>(a, work, ring);
    tn_pdl_wait();
    x.begin(a, work, x_ring, full);
    int slot = 0, x_slot = work.k_warp, last_slot = -1;
    uint32_t parity = 0, last_parity = 0;
#pragma unroll 1
    for (int pass = 0; pass < work.passes; pass++) {
        skinny_stream_rows<TILES> rows;
        skinny_stream_lane<TYPE, TILES> lane;
        rows.set(a, work.first + pass * work.step);
        lane.set(a, rows);
        skinny_stream_sums<TILES, N> total;
#pragma unroll
        for (int i = 0; i < TILES * N / 2; i++) total[i / (N / 2)][i / 4 % (N / 8)][i % 4] = 0.0f;
#pragma unroll 1
        for (int i = 0, stage = work.begin + work.k_warp; i < work.own; i++, stage += a.k_warps) {
            tn_copy_wait<SLOTS - 2>();
            __syncwarp(); // all lanes see the slot, and have read the one before
            loader.template next<SLOTS>(a, work, ring);
            skinny_stream_row<TYPE> row[TILES][2];
            lane.rows(ring + slot, stage, row);
            tn_mbar_wait(&full[x_slot], parity);
            skinny_stream_stage<TYPE, TILES, N>(row, skinny_x_tile(tn_shared(x_ring) + x_slot * x_size),
                                                total);
            if (elected) tn_mbar_arrive(&empty[x_slot]);
            if (x.left > 0 && last_slot >= 0) {
                tn_mbar_wait(&empty[last_slot], last_parity);
                x.load(a, work, x_ring, full, last_slot);
            }
            last_slot = x_slot, last_parity = parity;
            slot = slot == (SLOTS - 1) * loader_of::slot_size ? 0 : slot + loader_of::slot_size;
            x_slot += a.k_warps;
            if (x_slot >= a.x_slots) x_slot -= a.x_slots, parity ^= 1;
        }
#pragma unroll
        for (int i = 0; i < TILES * N / 2; i++)
            total[i / (N / 2)][i / 4 % (N / 8)][i % 4] *= skinny_batch<TYPE>::unit;
        // The next kernel may start only here: its early copies would delay those of blocks that still run.
        if (pass + 1 == work.passes) tn_pdl_trigger();
        skinny_stream_finish<TILES, N>(a, work, work.first + pass * work.step, (float4 *)x_ring, total);
    }
}
#endif

// OTHER: the type of the tiles from a.other_tile on, or TYPE.
template <int TYPE, int OTHER, int TILES, int N>
static __device__ __forceinline__ void skinny_stream_block(const tn_cuda_skinny_stream_args &a)
{
#ifdef TN_HOPPER
    constexpr bool sums = skinny_batch<TYPE>::minimums || skinny_batch<OTHER>::minimums;
    constexpr int size = skinny_stream_loader<TYPE, TILES>::ring_size,
                  other_size = skinny_stream_loader<OTHER, TILES>::ring_size,
                  ring_size = size > other_size ? size : other_size;
    extern __shared__ __align__(1024) char skinny_space[];
    __shared__ uint64_t full[TN_SKINNY_STREAM_MAX_X];
    __shared__ uint64_t empty[TN_SKINNY_STREAM_MAX_X];
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.x_slots; i++) tn_mbar_init(&full[i], 1), tn_mbar_init(&empty[i], a.row_warps);
        tn_mbar_init_fence();
    }
    __syncthreads();
    skinny_stream_work work(a);
    char *ring = skinny_space + a.x_slots * skinny_stream_x_size<N, sums>() + work.warp * ring_size;
    if (TYPE == OTHER || work.first < a.other_tile)
        skinny_stream_run<TYPE, TILES, N, sums>(a, work, skinny_space, ring, full, empty);
    else
        skinny_stream_run<OTHER, TILES, N, sums>(a, work, skinny_space, ring, full, empty);
    if (a.splits > 1) tn_cluster_sync(); // others read this block's sums until here
#else
    __trap();
#endif
}

#define SKINNY_STREAM_KERNEL(NAME, TYPE, OTHER, N)                                                           \
    TN_ENTRY __launch_bounds__(32 * TN_SKINNY_STREAM_MAX_WARPS(TN_TYPE_##TYPE, TN_TYPE_##OTHER, N), 1)       \
        tn_skinny_stream_##NAME##_##N(const __grid_constant__ tn_cuda_skinny_stream_args a)                  \
    {                                                                                                        \
        skinny_stream_block<TN_TYPE_##TYPE, TN_TYPE_##OTHER, 1, N>(a);                                       \
    }
// The kernels of a type: rows of x.
#define SKINNY_STREAM(TYPE)                                                                                  \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 16)                                                               \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 32)                                                               \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 40)                                                               \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 48)                                                               \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 64)
// Those of types that have some for up to 80 rows too.
#define SKINNY_STREAM_80(TYPE)                                                                               \
    SKINNY_STREAM(TYPE)                                                                                      \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 72)                                                               \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 80)
// Those of types that have some for up to 88 rows too.
#define SKINNY_STREAM_88(TYPE)                                                                               \
    SKINNY_STREAM_80(TYPE)                                                                                   \
    SKINNY_STREAM_KERNEL(TYPE, TYPE, TYPE, 88)
// Those of weights of two types.
#define SKINNY_STREAM_PAIR(TYPE, OTHER)                                                                      \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 16)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 32)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 40)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 48)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 64)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 72)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 80)                                                    \
    SKINNY_STREAM_KERNEL(TYPE##_##OTHER, TYPE, OTHER, 88)

#endif
