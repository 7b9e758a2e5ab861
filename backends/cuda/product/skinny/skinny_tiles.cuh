// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and weights of block types on compute capability 9.0, with products by
// wgmma: weights expanded into registers are the operand of 64 rows, up to 64 rows of x are the other one.
//
// Operands: w [n, k] in planes, k a multiple of 256; x in stages of 256 k as skinny_prepare.cu writes them
// for this kernel: COLUMNS (16, 32 or 64) rows of x in four matrices of 64 k with the 128-byte swizzle; y
// [m, n] f32.
//
// A block has a multiprocessor to itself, with four warpgroups. The unit of work is a stage of 256 x 256
// weights: row_groups warpgroups have 64 rows each, and 4 / row_groups of them share the rows and have 256
// k each (k groups), whose sums are added in shared memory at the end. So a tile has 256, 128 or 64 rows.
// One thread brings the planes of a stage by tensor copies (two for each plane, k group and half of the
// tile, so that gate and up of GLU become the halves of one tile) and x by bulk copies into a ring in
// shared memory. The work of a launch is counted in stages of all tiles in order, and blocks take equal
// stretches of it: whole tiles, and parts of the first and the last, which go through global memory.
//
// Bytes: weights once; from L2 also 512 COLUMNS for each stage and k group. Operations: 2 m n k. Whole
// launches with 32 rows, x prepared first (H200, 2026-11-23; in brackets skinny_blocks.cuh, 2026-11-20),
// us: Q8_0, 4096 + 2 x 1024 columns 19.7 (25.4), 4096 columns 16.5 (22.4), k 14336 34.8 (48.9), GLU 2 x
// 14336 51.9 (77.0), 128256 columns 185, 3.1 TB/s or 70 % of the read peak. IQ4_XS: 22.0, 18.4, 39.6, 63.6,
// 237.
//
// The limit is latency within a warpgroup: a stage takes at least 2 us, whatever its bytes (Q4_K: 2.1, 2.4
// and 3.0 us with 16, 32 and 64 columns). Some 0.3 us of it are the copies that one thread requests, 40 ns
// each. Q4_K, Q5_K and Q6_K therefore stay with skinny_wgmma.cuh: an 8B step of Q4_K_M with this kernel
// gave 4440, 7290 and 10344 tokens per second with 16, 32 and 64 sequences, where that one gives 4229, 7881
// and 10316. A fifth warpgroup that copies, with registers moved by setmaxnreg (640 threads, 24 and 112),
// never ended.
#ifndef TN_CUDA_SKINNY_TILES_CUH
#define TN_CUDA_SKINNY_TILES_CUH

#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/skinny/skinny_batch.cuh"
#include "backends/cuda/product/skinny/skinny_products.cuh"

enum {
    SKINNY_GROUP = 128,
    SKINNY_GROUPS = TN_SKINNY_TILES_GROUPS,
    SKINNY_CONSUMERS = SKINNY_GROUP * SKINNY_GROUPS
};

// Sums of a lane: those of wgmma for 64 rows and N columns.
template <int N> using skinny_tile_sums = float[N / 8][4];

#ifdef TN_HOPPER
// --- products --------------------------------------------------------------------------------------------

// Descriptor of x, with the 128-byte swizzle (mma.cuh, tn_wgmma_tile).
static __device__ __forceinline__ uint64_t skinny_x_tile(uint32_t at)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 |
           (uint64_t)1 << 62;
}

// The rows of a lane in a stage, and what it needs of them.
template <int TYPE> struct skinny_lane {
    skinny_stage_row<TYPE> row[2];
    typename skinny_batch<TYPE>::small small[2];
};

// Adds the products of 64 rows of weights and 256 k. x: its descriptor.
// `halfway` is called in the middle.
template <int TYPE, int N, typename CALL>
static __device__ __forceinline__ void skinny_tiles_stage(const skinny_lane<TYPE> &lane, uint64_t x,
                                                          skinny_tile_sums<N> &total, const CALL &halfway)
{
    typedef skinny_batch<TYPE> batch;
    int q = threadIdx.x % 4;
    typename batch::head head[2];
    typename batch::raw raw[2];
    skinny_tile_sums<N> part;
    skinny_tile_sums<N> &d = batch::exact ? part : total;
#pragma unroll
    for (int h = 0; h < 2; h++) batch::load_head(head[h], lane.row[h], lane.small[h], q);
    uint32_t f[2][2][4]; // of this batch and the one before
#pragma unroll
    for (int b = 0; b < 8; b++) {
#pragma unroll
        for (int h = 0; h < 2; h++) batch::load(raw[h], head[h], lane.row[h], b, q);
        if (b > 1) tn_wgmma_wait<1>();
        if (b == 4) halfway();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                batch::expand(raw[h], head[h], b, s, f[b % 2][s][h], f[b % 2][s][2 + h]);
        tn_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; s++)
            skinny_wgmma(d, f[b % 2][s], x + b / 2 * (N * 128 / 16) + (b % 2 * 2 + s) * 2,
                         !batch::exact || b > 0 || s > 0);
        tn_wgmma_commit();
    }
    skinny_wgmma_wait<0>(d);
    if constexpr (batch::exact)
#pragma unroll
        for (int i = 0; i < N / 2; i++) total[i / 4][i % 4] += head[i % 4 / 2].factor * part[i / 4][i % 4];
}

// --- which part of the work ------------------------------------------------------------------------------

// The stages [at, end) of n are this block's; a tile has per_tile of them, of k_groups x 256 k each. The tile
// that the next block ends comes first, if it is not the only one: its sums are in global memory long before
// that block needs them.
struct skinny_stretch {
    int per_tile, n, at, end, count, ahead; // ahead: stages of the tile that comes first

    __device__ __forceinline__ skinny_stretch(const tn_cuda_skinny_tiles_args &a)
    {
        per_tile = (a.k_stages + a.k_groups - 1) / a.k_groups, n = a.n_tiles * per_tile;
        at = (int)((int64_t)n * blockIdx.x / gridDim.x),
        end = (int)((int64_t)n * (blockIdx.x + 1) / gridDim.x);
        count = end - at, ahead = end % per_tile;
        if (ahead >= count) ahead = 0;
    }
    // The stage that comes i-th.
    __device__ __forceinline__ int stage_at(int i) const
    {
        return i < ahead ? end - ahead + i : at + i - ahead;
    }
    // The block that computes a stage.
    __device__ __forceinline__ int block_of(int64_t stage) const
    {
        return (int)(((stage + 1) * gridDim.x - 1) / n);
    }
};

static __device__ __forceinline__ int skinny_seg_of(const tn_cuda_skinny_tiles_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return s;
}

// First row of half h of a tile, in its weight.
static __device__ __forceinline__ int skinny_half_row(const tn_cuda_skinny_tiles_args &a, int seg, int tile,
                                                      int h)
{
    int half = 32 * a.row_groups;
    return a.glu ? tile * half : (2 * (tile - a.seg[seg].first_tile) + h) * half;
}

// --- copies ----------------------------------------------------------------------------------------------

template <int TYPE, int N> struct skinny_slot_of { // of the ring: planes, x of all k groups
    static constexpr int x_bytes = TN_SKINNY_TILES_STAGE(N);
    static constexpr int planes = skinny_stage_planes<TYPE>::size;
    static __device__ __forceinline__ int size(int k_groups)
    {
        return (planes + k_groups * x_bytes + 1023) / 1024 * 1024;
    }
};

template <int TYPE, int N> struct skinny_copier {
    typedef skinny_slot_of<TYPE, N> layout;
    const tn_cuda_skinny_tiles_args &a;
    const skinny_stretch &work;
    char *ring;
    uint64_t *full, *empty;
    int slot_size;

    __device__ __forceinline__ void weights(int i, int slot)
    {
        int at = work.stage_at(i), tile = at / work.per_tile, k = (at - tile * work.per_tile) * a.k_groups,
            groups = min(a.k_groups, a.k_stages - k), seg = skinny_seg_of(a, tile), half = 32 * a.row_groups;
        tn_mbar_expect(&full[slot],
                       groups * (2 * half * (layout::planes / TN_SKINNY_STAGE_ROWS) + layout::x_bytes));
        char *to = ring + slot * slot_size;
        for (int g = 0; g < groups; g++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int row = skinny_half_row(a, seg, tile, h), at_row = (2 * g + h) * half;
                const tn_cuda_tensor_map *map = a.map[a.glu ? h : seg];
                int copied = 0; // planes
#pragma unroll
                for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
                    constexpr auto width = skinny_stage_planes<TYPE>::width;
                    constexpr auto matrices = skinny_stage_planes<TYPE>::matrices;
                    if (width(p) == 0) continue;
#pragma unroll
                    for (int m = 0; m < matrices(p); m++)
                        tn_tma_load(to + skinny_stage_planes<TYPE>::start(p) +
                                        (m * TN_SKINNY_STAGE_ROWS + at_row) * width(p),
                                    &map[copied], ((k + g) * matrices(p) + m) * (width(p) / 2), row,
                                    &full[slot]);
                    copied++;
                }
            }
    }
    __device__ __forceinline__ void x(int i, int slot)
    {
        int at = work.stage_at(i), tile = at / work.per_tile, k = (at - tile * work.per_tile) * a.k_groups,
            groups = min(a.k_groups, a.k_stages - k);
        const char *from = (const char *)a.x + (int64_t)k * TN_SKINNY_TILES_STAGE(N);
        char *to = ring + slot * slot_size + layout::planes;
        for (int g = 0; g < groups; g++, from += TN_SKINNY_TILES_STAGE(N)) {
            tn_bulk_load(to + g * layout::x_bytes, from, layout::x_bytes, &full[slot]);
        }
    }
    // Fills all slots. Weights never change, so those of the first ones are requested before the predecessor
    // has ended.
    __device__ __forceinline__ void begin()
    {
        int first = min(a.slots, work.count), early = min(a.early, first);
        for (int i = 0; i < early; i++) weights(i, i);
        tn_pdl_wait();
        for (int i = 0; i < first; i++) {
            if (i >= early) weights(i, i);
            x(i, i);
        }
    }
    // Requests stage i into a slot, when all warps have read it.
    __device__ __forceinline__ void refill(int i, int slot, uint32_t parity)
    {
        if (i >= work.count) return;
        tn_mbar_wait(&empty[slot], parity);
        tn_fence_async(); // threads have read the slot
        weights(i, slot);
        x(i, slot);
    }
};

// --- sums of several warpgroups and blocks ---------------------------------------------------------------

// Adds the sums of all k groups, in order, to those of the first. The slot that was multiplied last is free
// for them.
template <int N>
static __device__ __forceinline__ void skinny_add_k_groups(const tn_cuda_skinny_tiles_args &a, char *slot,
                                                           int k_group, int thread, skinny_tile_sums<N> &d)
{
    int threads = a.row_groups * SKINNY_GROUP;
    float4 *shared = (float4 *)slot + thread;
    tn_named_barrier(1, SKINNY_CONSUMERS);
    if (k_group > 0)
#pragma unroll
        for (int j = 0; j < N / 8; j++)
            shared[((k_group - 1) * (N / 8) + j) * threads] = make_float4(d[j][0], d[j][1], d[j][2], d[j][3]);
    tn_named_barrier(1, SKINNY_CONSUMERS);
    if (k_group > 0) return;
    for (int g = 0; g + 1 < a.k_groups; g++)
#pragma unroll
        for (int j = 0; j < N / 8; j++) {
            float4 v = shared[(g * (N / 8) + j) * threads];
            d[j][0] += v.x, d[j][1] += v.y, d[j][2] += v.z, d[j][3] += v.w;
        }
}

// ld.acquire: what other blocks have written before they added to the counter is visible afterwards.
static __device__ __forceinline__ int tn_load_acquire(const int *at)
{
    int v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
    return v;
}

// Where block `block` writes its part of a tile that begins in it, or before it: [columns][thread] of four.
template <int N>
static __device__ __forceinline__ float4 *skinny_part(const tn_cuda_skinny_tiles_args &a, int block,
                                                      bool begins, int thread)
{
    return (float4 *)a.partial + ((int64_t)block * 2 + begins) * (N / 8 * a.row_groups * SKINNY_GROUP) +
           thread;
}

// Writes this block's part of a tile that several blocks share. Returns true in the block that arrives last.
// If all others have arrived already, nobody will read the part, and only one trip to memory is waited for.
template <int N>
static __device__ __forceinline__ bool skinny_publish(const tn_cuda_skinny_tiles_args &a,
                                                      const skinny_tile_sums<N> &d, int thread, int tile,
                                                      int first, int last)
{
    __shared__ int all_arrived[2][2]; // a block shares its first and its last tile
    int threads = a.row_groups * SKINNY_GROUP, begins = (int)blockIdx.x == first,
        *arrived = all_arrived[begins];
    float4 *to = skinny_part<N>(a, blockIdx.x, begins, thread);
#pragma unroll
    for (int j = 0; j < N / 8; j++) to[j * threads] = make_float4(d[j][0], d[j][1], d[j][2], d[j][3]);
    if (thread == 0) arrived[0] = tn_load_acquire(&a.arrived[tile]);
    tn_named_barrier(2, threads);
    if (arrived[0] == last - first) return true;
    __threadfence();
    tn_named_barrier(2, threads);
    if (thread == 0) arrived[1] = atomicAdd(&a.arrived[tile], 1);
    tn_named_barrier(2, threads);
    __threadfence();
    return arrived[1] == last - first;
}

// Sums j0 to j0 + 3 (or fewer) of a tile over blocks first to last, in their order; `own` is this block's
// part.
template <int N, int COUNT>
static __device__ __forceinline__ void skinny_add_parts(const tn_cuda_skinny_tiles_args &a, int thread,
                                                        int j0, int first, int last,
                                                        const skinny_tile_sums<N> &own, float (&d)[COUNT][4])
{
    constexpr int AT_ONCE = N > 32 ? 2 : 4;
    int threads = a.row_groups * SKINNY_GROUP;
#pragma unroll
    for (int i = 0; i < 4 * COUNT; i++) d[i / 4][i % 4] = 0.0f;
    for (int block = first; block <= last; block += AT_ONCE) {
        float4 v[AT_ONCE][COUNT];
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++)
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                const float(&o)[4] = own[j0 + j];
                v[b][j] = block + b == (int)blockIdx.x ? make_float4(o[0], o[1], o[2], o[3])
                          : block + b <= last
                              ? __ldcg(skinny_part<N>(a, block + b, block + b == first, thread) +
                                       (j0 + j) * threads)
                              : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            }
#pragma unroll
        for (int b = 0; b < AT_ONCE; b++)
#pragma unroll
            for (int j = 0; j < COUNT; j++)
                d[j][0] += v[b][j].x, d[j][1] += v[b][j].y, d[j][2] += v[b][j].z, d[j][3] += v[b][j].w;
    }
}

// --- results ---------------------------------------------------------------------------------------------

// What results need besides sums: the rows of weights of a lane, and where they go.
struct skinny_target {
    float *y;
    int64_t ld;
    int n, row[2]; // of the weight: columns of y; not less than n: none
    float bias[2];
};

static __device__ __forceinline__ skinny_target skinny_target_of(const tn_cuda_skinny_tiles_args &a, int tile,
                                                                 int thread)
{
    int seg = skinny_seg_of(a, tile), own = 8 * (thread / TN_WARP) + thread % TN_WARP / 4;
    const tn_cuda_skinny_seg &s = a.seg[seg];
    skinny_target t = {s.y, s.ld, s.n, {skinny_half_row(a, seg, tile, 0) + own, s.n}, {0.0f, 0.0f}};
    if (!a.glu) t.row[1] = skinny_half_row(a, seg, tile, 1) + own;
#pragma unroll
    for (int i = 0; i < 2; i++)
        if (s.bias && t.row[i] < s.n) t.bias[i] = s.bias[t.row[i]];
    return t;
}

// Results of COUNT x 8 columns from `column` on. The epilogues that most models have are inlined; others
// finish four sums at a time while the rest moves up, because activations unrolled for all of them would not
// fit the instruction cache.
template <int COUNT>
static __device__ __forceinline__ void skinny_write(const tn_cuda_skinny_tiles_args &a,
                                                    const skinny_target &t, int column, float (&d)[COUNT][4],
                                                    float (&r)[COUNT][4], float (&scale)[COUNT][2])
{
    bool silu = a.act == TN_UNARY_SILU && a.glu_limit <= 0.0f && a.glu_alpha <= 0.0f;
    bool common = a.glu ? silu : a.act == TN_UNARY_NONE;
#pragma unroll
    for (int j = 0; j < COUNT && common; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (column + 8 * j + i >= a.m) continue;
            float *y = t.y + (column + 8 * j + i) * t.ld;
            float v[2] = {d[j][i] * scale[j][i], d[j][2 + i] * scale[j][i]};
            v[0] = a.glu ? __fdividef(v[0], 1.0f + __expf(-v[0])) * v[1] : v[0] + t.bias[0] + r[j][i];
            v[1] += t.bias[1] + r[j][2 + i];
            if (t.row[0] < t.n) y[t.row[0]] = v[0];
            if (t.row[1] < t.n) y[t.row[1]] = v[1];
        }
    if (common) return;
#pragma unroll 1
    for (int e = 0; e < COUNT; e++) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (column + 8 * e + i >= a.m) continue;
            float *y = t.y + (column + 8 * e + i) * t.ld;
            float v[2] = {d[0][i] * scale[0][i], d[0][2 + i] * scale[0][i]};
            if (a.glu)
                v[0] = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v[0], v[1]);
            else
#pragma unroll
                for (int h = 0; h < 2; h++) v[h] = gemm_act(a.act, v[h] + t.bias[h]) + r[0][2 * h + i];
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (t.row[h] < t.n) y[t.row[h]] = v[h];
        }
#pragma unroll
        for (int j = 0; j + 1 < COUNT; j++) {
#pragma unroll
            for (int i = 0; i < 4; i++) d[j][i] = d[j + 1][i], r[j][i] = r[j + 1][i];
            scale[j][0] = scale[j + 1][0], scale[j][1] = scale[j + 1][1];
        }
    }
}

// The end of a stretch of a tile: its sums are added to those of other blocks, or become results. For the
// warpgroups of the first k group.
template <int N>
static __device__ __forceinline__ void skinny_finish(const tn_cuda_skinny_tiles_args &a,
                                                     const skinny_stretch &work, int tile, bool complete,
                                                     int thread, const skinny_tile_sums<N> &total)
{
    constexpr int COUNT = N / 8 < 4 ? N / 8 : 4;
    int begin = tile * work.per_tile, first = 0, last = -1;
    bool shared = !complete || begin < work.at;
    if (shared) {
        first = work.block_of(begin), last = work.block_of(begin + work.per_tile - 1);
        if (!skinny_publish<N>(a, total, thread, tile, first, last)) return;
    }
    skinny_target t = skinny_target_of(a, tile, thread);
#pragma unroll
    for (int j0 = 0; j0 < N / 8; j0 += COUNT) {
        int column = 8 * j0 + 2 * (thread % 4);
        if (8 * j0 >= a.m) break;
        float r[COUNT][4], scale[COUNT][2], d[COUNT][4];
#pragma unroll
        for (int j = 0; j < COUNT; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                int c = column + 8 * j + i;
                scale[j][i] = c < a.m ? a.row_scale[c] : 1.0f;
#pragma unroll
                for (int h = 0; h < 2; h++)
                    r[j][2 * h + i] = a.residual && c < a.m && t.row[h] < t.n
                                          ? a.residual[c * a.residual_ld + t.row[h]]
                                          : 0.0f;
            }
        if (shared)
            skinny_add_parts<N, COUNT>(a, thread, j0, first, last, total, d);
        else
#pragma unroll
            for (int i = 0; i < 4 * COUNT; i++) d[i / 4][i % 4] = total[j0 + i / 4][i % 4];
        skinny_write<COUNT>(a, t, column, d, r, scale);
    }
}

// --- the kernel ------------------------------------------------------------------------------------------

// Rows of a lane in the weight of its tile, for planes that are read from global memory; rows behind the end
// count as the last one.
struct skinny_global_rows {
    const tn_cuda_weight *w[2];
    int row[2];

    __device__ __forceinline__ void set(const tn_cuda_skinny_tiles_args &a, int tile, int own)
    {
        int seg = skinny_seg_of(a, tile);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const tn_cuda_skinny_seg &s = a.seg[a.glu ? h : seg];
            w[h] = &s.w, row[h] = min(skinny_half_row(a, seg, tile, h) + own, s.n - 1);
        }
    }
};

// The stage that a thread is at, of its stretch: place in the tile, slot of the ring, rows of its lane.
template <int TYPE, int N> struct skinny_place {
    typedef skinny_slot_of<TYPE, N> layout;
    typedef skinny_batch<TYPE> batch;
    static constexpr bool reads_small = sizeof(typename batch::small) > 1; // not of an empty struct
    const tn_cuda_skinny_tiles_args &a;
    const skinny_stretch &work;
    int row_group, k_group, thread, own; // thread among those of the rows; row in a half of the tile
    int tile, stage, slot, last;         // last: the slot before
    uint32_t parity, last_parity;
    skinny_lane<TYPE> lane;
    skinny_global_rows rows;
    typename batch::small next_small[2];

    __device__ __forceinline__ skinny_place(const tn_cuda_skinny_tiles_args &args,
                                            const skinny_stretch &stretch)
        : a(args), work(stretch)
    {
        int group = __shfl_sync(0xffffffffu, threadIdx.x / SKINNY_GROUP, 0);
        row_group = group % a.row_groups, k_group = group / a.row_groups;
        thread = row_group * SKINNY_GROUP + threadIdx.x % SKINNY_GROUP;
        own = 8 * (thread / TN_WARP) + thread % TN_WARP / 4;
        slot = last = 0, parity = last_parity = 0;
        enter(work.stage_at(0));
        fetch_small();
    }
    __device__ __forceinline__ void enter(int at)
    {
        tile = at / work.per_tile, stage = at - tile * work.per_tile;
        if constexpr (reads_small) rows.set(a, tile, own);
    }
    __device__ __forceinline__ void fetch_small()
    {
        if constexpr (reads_small)
#pragma unroll
            for (int h = 0; h < 2; h++)
                batch::load_small(next_small[h], *rows.w[h], rows.row[h],
                                  min(stage * a.k_groups + k_group, a.k_stages - 1));
    }
    // To stage i + 1, while stage i, whose rows `lane` has, is still to be multiplied.
    __device__ __forceinline__ void look_ahead(const char *ring, int slot_size, int i)
    {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            lane.small[h] = next_small[h];
            lane.row[h].set(ring, slot * slot_size, (2 * k_group + h) * 32 * a.row_groups + own);
        }
        stage++;
        if (i + 1 == work.count) return;
        if (stage == work.per_tile || i + 1 == work.ahead) enter(work.stage_at(i + 1));
        fetch_small();
    }
    __device__ __forceinline__ void next_slot()
    {
        last = slot, last_parity = parity;
        if (++slot == a.slots) slot = 0, parity ^= 1;
    }
};

template <int TYPE, int N>
static __device__ __forceinline__ void skinny_multiply(const tn_cuda_skinny_tiles_args &a,
                                                       const skinny_stretch &work, char *ring, uint64_t *full,
                                                       uint64_t *empty)
{
    typedef skinny_slot_of<TYPE, N> layout;
    skinny_place<TYPE, N> p(a, work);
    int slot_size = layout::size(a.k_groups), x_at = layout::planes + p.k_group * layout::x_bytes;
    skinny_copier<TYPE, N> copier = {a, work, ring, full, empty, slot_size};
    if (threadIdx.x == 0) copier.begin();
    __syncwarp();
    tn_pdl_wait();
    skinny_tile_sums<N> total = {};
#pragma unroll 1
    for (int i = 0; i < work.count; i++) {
        bool complete = p.stage + 1 == work.per_tile, is_last = i + 1 == work.count,
             ends = complete || is_last || i + 1 == work.ahead,
             present = p.stage * a.k_groups + p.k_group < a.k_stages;
        int tile = p.tile;
        p.look_ahead(ring, slot_size, i);
        tn_mbar_wait(&full[p.slot], p.parity);
        uint32_t base = __shfl_sync(0xffffffffu, tn_shared(ring) + p.slot * slot_size, 0);
        // One thread refills the slot of the stage before, which nearly all warps have read by then.
        auto refill = [&]() {
            if (threadIdx.x == 0 && i > 0) copier.refill(i - 1 + a.slots, p.last, p.last_parity);
        };
        if (present) skinny_tiles_stage<TYPE, N>(p.lane, skinny_x_tile(base + x_at), total, refill);
        if (ends && a.k_groups > 1)
            skinny_add_k_groups<N>(a, ring + p.slot * slot_size, p.k_group, p.thread, total);
        __syncwarp();
        if (threadIdx.x % TN_WARP == 0) tn_mbar_arrive(&empty[p.slot]);
        p.next_slot();
        // The next kernel may start only here: its early copies would delay those of blocks that still run
        // (32 sequences of 8B Q4_K_M, H200, 2026-11-22: 7455 tokens per second when it starts early, 7903
        // late).
        if (is_last) tn_pdl_trigger();
        if (!ends) continue;
        if (p.k_group == 0) skinny_finish<N>(a, work, tile, complete, p.thread, total);
#pragma unroll
        for (int j = 0; j < N / 2; j++) total[j / 4][j % 4] = 0.0f;
    }
}
#endif

template <int TYPE, int N>
static __device__ __forceinline__ void skinny_tiles_block(const tn_cuda_skinny_tiles_args &a)
{
#ifdef TN_HOPPER
    extern __shared__ __align__(1024) char skinny_space[];
    __shared__ uint64_t bars[2 * TN_SKINNY_TILES_SLOTS];
    uint64_t *full = bars, *empty = bars + TN_SKINNY_TILES_SLOTS;
    skinny_stretch work(a);
    // swizzled tiles start at multiples of 1024
    char *ring = skinny_space + (1024 - tn_shared(skinny_space) % 1024) % 1024;
    if (threadIdx.x == 0) {
        for (int i = 0; i < a.slots; i++)
            tn_mbar_init(&full[i], 1), tn_mbar_init(&empty[i], SKINNY_CONSUMERS / TN_WARP);
        tn_mbar_init_fence();
    }
    __syncthreads();
    if (work.count == 0) return;
    skinny_multiply<TYPE, N>(a, work, ring, full, empty);
#else
    __trap();
#endif
}

#define SKINNY_TILES(TYPE, COLUMNS)                                                                          \
    TN_ENTRY __launch_bounds__(TN_SKINNY_TILES_THREADS, 1)                                                   \
        tn_skinny_tiles_##TYPE##_##COLUMNS(const __grid_constant__ tn_cuda_skinny_tiles_args a)              \
    {                                                                                                        \
        skinny_tiles_block<TN_TYPE_##TYPE, COLUMNS>(a);                                                      \
    }

#endif
