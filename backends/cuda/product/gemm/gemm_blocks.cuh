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
// A block computes tiles of 64 G weights times N rows of x, G = 2 with N = 160 to 256 or G = 4 with N = 128.
// One thread fetches x, 64 of k at a time, as many rows as there are, and one warp the weights, 256 of k at a
// time, each into a ring of its own. G warpgroups multiply 64 weights each: lanes hold one row of the first
// half of the tile and one of the second half side by side, so with a gated pair (gate above, up below) both
// are in one thread. Blocks take whole tiles one after another, or each the same number of slices (256 of k
// of a tile), through tiles that follow on each other; gemm_blocks.c selects what takes less time. Weights of
// two types can share a launch, whose first blocks share the tiles of the first type.
// gemm_blocks_sums.cuh has what becomes of the sums.
//
// Operations: 2 m n k. Bytes from L2 for a tile and 64 of k: 128 N of x and some 40 R of weights (Q4_K). The
// limit is the rate of wgmma for N = 256 (2.5 us of 2.33 for a slice of Q4_K, H200, 2026-11-23), and how far
// expansion runs beside it for N = 128. docs/log/cuda-gemm.md has the measurements and what was tried.
#ifndef TN_CUDA_GEMM_BLOCKS_CUH
#define TN_CUDA_GEMM_BLOCKS_CUH

#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/gemm/gemm_blocks_sums.cuh"
#include "backends/cuda/product/gemm/gemm_blocks_wgmma.cuh"
#include "backends/cuda/product/gemm/gemm_expand.cuh"

enum { GEMM_MAX_RING = 8 };

#ifdef TN_HOPPER
// G warpgroups multiply 64 weights each by N rows of x.
template <int TYPE, int G, int N> struct gemm_blocks_shape {
    static constexpr int type = TYPE, n = N, groups = G;
    static constexpr int rows = 64 * G, half = 32 * G; // weights of a tile
    static constexpr int stage = N * TN_GEMM_X_K * 2;  // bytes of a stage of x
    static constexpr int consumers = 128 * G, producer = 128, depth = G == 2 ? 2 : 1, steps = G == 2 ? 1 : 2;
    typedef gemm_slot<TYPE, 64 * G> slot;
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

// --- copies ------------------------------------------------------------------------------------------

template <typename S>
static __device__ void gemm_fetch_x(const tn_cuda_gemm_blocks_args &a, gemm_blocks_work work,
                                    const gemm_rings &rings)
{
    constexpr int per_slot = TN_GEMM_BLOCK_K / TN_GEMM_X_K;
    gemm_ring_at at = {0, 1};
    gemm_blocks_part part;
    while (gemm_blocks_next(work, part)) {
        int row = gemm_blocks_tile_at(a, work, part.tile).m * S::n;
        for (int k = part.k_begin * per_slot; k < part.k_end * per_slot; k++) {
            tn_mbar_wait(&rings.x_empty[at.i], at.parity);
            tn_mbar_expect(&rings.x_full[at.i], a.x_rows * TN_GEMM_X_K * 2);
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

// The widest type that the bytes of a plane for a slot are a multiple of.
template <int BYTES> struct gemm_small_unit {
    typedef uint16_t type;
};
template <> struct gemm_small_unit<4> {
    typedef uint32_t type;
};
template <> struct gemm_small_unit<8> {
    typedef uint2 type;
};

// Loads and stores of a plane that is too narrow for tensor copies, by a warp. Few rows at a time: it has few
// registers.
template <typename S, int P>
static __device__ __forceinline__ void gemm_copy_small(const tn_cuda_gemm_blocks_args &a, char *to, int seg,
                                                       int row, int k)
{
    typedef typename S::slot slot;
    constexpr int bytes = slot::bytes(P), width = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 2;
    if constexpr (bytes > 0 && !slot::copied(P)) {
        typedef typename gemm_small_unit<width>::type unit;
        constexpr int units = bytes / width, batch = bytes <= 8 ? 4 : 2, per_lane = S::rows / TN_WARP;
#pragma unroll 1
        for (int i0 = 0; i0 < per_lane; i0 += batch) {
            unit v[batch][units];
#pragma unroll
            for (int i = 0; i < batch; i++) {
                int r = (i0 + i) * TN_WARP + (int)threadIdx.x % TN_WARP, h = r / S::half;
                const tn_cuda_gemm_blocks_seg &s = a.seg[a.glu ? h : seg];
                int from = row + (a.glu ? r % S::half : r);
                const unit *at = (const unit *)(s.w.plane[P] + from * s.w.row_size[P]) + (int64_t)k * units;
#pragma unroll
                for (int u = 0; u < units; u++) v[i][u] = from < s.n_rows ? at[u] : unit();
            }
#pragma unroll
            for (int i = 0; i < batch; i++) {
                int r = (i0 + i) * TN_WARP + (int)threadIdx.x % TN_WARP;
#pragma unroll
                for (int u = 0; u < units; u++) ((unit *)(to + slot::start(P)))[r * units + u] = v[i][u];
            }
        }
    }
}

template <typename S>
static __device__ void gemm_fetch_w(const tn_cuda_gemm_blocks_args &a, gemm_blocks_work work,
                                    const gemm_rings &rings)
{
    typedef typename S::slot slot;
    gemm_ring_at at = {0, 1};
    gemm_blocks_part part;
    bool first = threadIdx.x % TN_WARP == 0;
    while (gemm_blocks_next(work, part)) {
        gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, part.tile);
        int seg = gemm_blocks_seg_of(a, tile.n), group = a.tile_group ? a.tile_group[tile.m] : 0;
        int row = a.glu ? tile.n * S::half : (tile.n - a.seg[seg].first_tile) * S::rows;
        row += group * a.group_rows;
        for (int k = part.k_begin; k < part.k_end; k++) {
            char *to = rings.w + at.i * slot::size;
            tn_mbar_wait(&rings.w_empty[at.i], at.parity);
            if (first) {
                tn_fence_async();
                tn_mbar_expect(&rings.w_full[at.i], slot::copied_bytes());
                gemm_copy_planes<S>(a, to, seg, row, k, &rings.w_full[at.i]);
            }
            if constexpr (slot::has_small()) {
                gemm_copy_small<S, 0>(a, to, seg, row, k), gemm_copy_small<S, 1>(a, to, seg, row, k);
                gemm_copy_small<S, 2>(a, to, seg, row, k), gemm_copy_small<S, 3>(a, to, seg, row, k);
                static_assert(TN_CUDA_MAX_PLANES == 4, "a call for each plane");
                tn_mbar_arrive(&rings.w_full[at.i]); // each lane for its own stores: racecheck follows that
            }
            at.next(a.slots);
        }
    }
}

// --- products ----------------------------------------------------------------------------------------

// Operands in registers: of this group of S::steps steps of 16 of k and of the groups before that are still
// being multiplied.
template <typename S> struct gemm_operands {
    uint32_t f[S::depth][S::steps][4];
};

// Multiplies BATCHES batches of 32 of k of a slot of weights and releases their stages of x, with the last
// ones the slot. S::steps steps are expanded and then multiplied, and S::depth of such groups may be under
// way.
template <typename S, int BATCHES>
static __device__ __forceinline__ void
gemm_multiply_batches(const tn_cuda_gemm_blocks_args &a, const gemm_rings &rings, uint64_t *w_empty,
                      const gemm_lane<S::type, S::rows> &l,
                      const typename gemm_expander<S::type>::scales (&scales)[2], gemm_ring_at &x, bool begun,
                      float (&d)[S::n / 2])
{
    typedef gemm_expander<S::type> expander;
    constexpr int depth = S::depth, steps = S::steps, last = 2 * BATCHES - 1;
    int lane = (int)threadIdx.x % TN_WARP;
    typename expander::raw raw[2];
    typename expander::factors by[2];
    gemm_operands<S> operands;
    uint32_t before = 0;
    uint64_t matrix = 0;
#pragma unroll
    for (int u = 0; u <= last; u++) {
        int b = u / 2, group = u / steps;
        uint32_t(&to)[4] = operands.f[group % depth][u % steps];
        if (u % 2 == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                expander::load(raw[i], l, i * S::half, b);
                expander::load_factors(by[i], scales[i], b);
            }
#pragma unroll
        for (int i = 0; i < 2; i++) expander::expand(raw[i], by[i], b, u % 2, to[i], to[2 + i]);
        if (u % steps != steps - 1) continue;
        if (u == last && l.b0 + BATCHES == GEMM_BATCHES) { // all of the slot is in registers
            __syncwarp();
            if (lane == 0) tn_mbar_arrive(w_empty);
        }
        if (u % 4 == steps - 1) { // the first group of a stage of x
            tn_mbar_wait(&rings.x_full[x.i], x.parity);
            matrix = tn_wgmma_tile(rings.x + x.i * S::stage);
        }
        tn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < steps; i++) {
            int step = u - steps + 1 + i;
            tn_wgmma_from_registers(d, operands.f[group % depth][i], matrix + step % 4 * 2,
                                    begun || step > 0);
        }
        tn_wgmma_commit();
        if (depth == 1 || u == last)
            tn_wgmma_wait<0>();
        else
            tn_wgmma_wait<1>();
        if (depth > 1 && u % 4 == steps - 1 && u > 3 && lane == 0) tn_mbar_arrive(&rings.x_empty[before]);
        before = x.i;
        if ((depth == 1 ? u % 4 == 3 : u == last) && lane == 0) tn_mbar_arrive(&rings.x_empty[x.i]);
        if (u % 4 == 3) x.next(a.stages);
    }
}

// Multiplies a slot of weights, 256 of k. Four warpgroups run through code that is as short as the type
// allows: 16 steps in a row are more instructions than the caches of a scheduler hold.
template <typename S>
static __device__ __forceinline__ void gemm_multiply_slot(const tn_cuda_gemm_blocks_args &a,
                                                          const gemm_rings &rings, const gemm_ring_at &w,
                                                          gemm_ring_at &x, bool begun, float (&d)[S::n / 2])
{
    typedef gemm_expander<S::type> expander;
    constexpr int batches = S::groups > 2 ? gemm_period<S::type>::batches : GEMM_BATCHES;
    int thread = (int)threadIdx.x - S::producer, warp = thread / TN_WARP, lane = thread % TN_WARP;
    gemm_lane<S::type, S::rows> l = {rings.w + w.i * S::slot::size, warp * 8 + lane / 4, lane % 4, 0};
    typename expander::scales scales[2];
    tn_mbar_wait(&rings.w_full[w.i], w.parity);
#pragma unroll
    for (int i = 0; i < 2; i++) expander::load_scales(scales[i], l, i * S::half);
#pragma unroll 1
    for (; l.b0 < GEMM_BATCHES; l.b0 += batches) {
        gemm_multiply_batches<S, batches>(a, rings, &rings.w_empty[w.i], l, scales, x, begun || l.b0 > 0, d);
        if constexpr (batches < GEMM_BATCHES)
            for (int i = 0; i < 2; i++) expander::next_period(scales[i]);
    }
}

// What remains of a tile whose sums are complete, by the block that has all of it.
template <typename S>
static __device__ __forceinline__ void gemm_write_tile(const tn_cuda_gemm_blocks_args &a,
                                                       gemm_blocks_tile tile, const gemm_rings &rings,
                                                       gemm_rows<S> &rows, float (&d)[S::n / 2])
{
    int thread = (int)threadIdx.x - S::producer;
    if (a.any) { // the rings have been used for the last time
        float4 *to = (float4 *)rings.x;
        tn_named_barrier(1, S::consumers);
        gemm_store_sums<S>(to, S::n, d);
        for (int e = 0; e < S::n / 8; e++) {
            gemm_four<S> four;
            four.locate(a, tile, e, thread), four.load(a);
            four.template write<true>(a, to[e * S::consumers + thread]);
        }
        return;
    }
    tn_copy_wait<0>();
    tn_named_barrier(1 + thread / 128, 128);
    if (a.y_power)
        gemm_write_sums<S, true, true>(a, tile, rows, d);
    else if (a.glu)
        gemm_write_sums<S, true, false>(a, tile, rows, d);
    else
        gemm_write_sums<S, false, false>(a, tile, rows, d);
}

// SHARES: blocks always share tiles, and there are no rows.
template <typename S, bool SHARES>
static __device__ void gemm_multiply_blocks(const tn_cuda_gemm_blocks_args &a, gemm_blocks_work work,
                                            const gemm_rings &rings, gemm_rows<S> *rows)
{
    int thread = (int)threadIdx.x - S::producer;
    gemm_ring_at x = {0, 0}, w = {0, 0};
    gemm_blocks_part part;
    float d[S::n / 2];
    bool writes = !SHARES && !a.share && !a.any; // from registers
    while (gemm_blocks_next(work, part)) {
        gemm_blocks_tile tile = gemm_blocks_tile_at(a, work, part.tile);
        if (writes) {
            tn_named_barrier(1 + thread / 128, 128); // the rows of the tile before are used no more
            gemm_fetch_rows<S>(a, *rows, tile.m * S::n);
        }
#pragma unroll 1
        for (int k = part.k_begin; k < part.k_end; k++) {
            gemm_multiply_slot<S>(a, rings, w, x, k > part.k_begin, d);
            w.next(a.slots);
        }
        if (SHARES || a.share)
            gemm_store_sums<S>(gemm_partial<S>(a, blockIdx.x, part.tile), a.m - tile.m * S::n, d);
        else
            gemm_write_tile<S>(a, tile, rings, *rows, d);
    }
}

// OTHER: the type of the weights of blocks from a.first_blocks on, or TYPE.
template <int TYPE, int OTHER, int G, int N>
static __device__ __forceinline__ void gemm_blocks(const tn_cuda_gemm_blocks_args &a)
{
    typedef gemm_blocks_shape<TYPE, G, N> S;
    typedef gemm_blocks_shape<OTHER, G, N> O;
    constexpr bool pair = TYPE != OTHER;
    extern __shared__ char shared[];
    __shared__ uint64_t bars[4][GEMM_MAX_RING];
    typedef gemm_rows<S> rows_of_tile;
    __shared__ rows_of_tile rows[pair ? 1 : G];
    const bool other = pair && blockIdx.x >= a.first_blocks,
               small = other ? O::slot::has_small() : S::slot::has_small();
    gemm_rings rings = {
        shared + (1024 - tn_shared(shared) % 1024) % 1024, NULL, bars[0], bars[1], bars[2], bars[3]};
    rings.w = rings.x + a.stages * S::stage;
    if (threadIdx.x == 0) {
        for (int i = 0; i < GEMM_MAX_RING; i++) {
            tn_mbar_init(&rings.x_full[i], 1);
            tn_mbar_init(&rings.x_empty[i], S::consumers / TN_WARP);
            tn_mbar_init(&rings.w_full[i], small ? 1 + TN_WARP : 1);
            tn_mbar_init(&rings.w_empty[i], S::consumers / TN_WARP);
        }
        tn_mbar_init_fence();
    }
    tn_pdl_trigger();
    __syncthreads();
    if (threadIdx.x < S::producer) {
        tn_registers_less<S::groups == 2 ? 40 : 32>();
        if (threadIdx.x == 0) tn_tma_prefetch(&a.x_map);
        // Weights do not change, so they are fetched before the predecessor has ended, unless it says which.
        if (a.n_tiles || threadIdx.x / TN_WARP != 1) tn_pdl_wait();
        gemm_blocks_work work = gemm_blocks_work_of(a);
        if (threadIdx.x / TN_WARP == 1 && !other) gemm_fetch_w<S>(a, work, rings);
        if (pair && threadIdx.x / TN_WARP == 1 && other) gemm_fetch_w<O>(a, work, rings);
        if (threadIdx.x == 0) gemm_fetch_x<S>(a, work, rings);
    } else {
        tn_registers_more<S::groups == 2 ? 232 : 112>();
        tn_pdl_wait();
        gemm_blocks_work work = gemm_blocks_work_of(a);
        if constexpr (!pair)
            gemm_multiply_blocks<S, false>(a, work, rings, &rows[threadIdx.x / 128 - 1]);
        else if (other)
            gemm_multiply_blocks<O, true>(a, work, rings, NULL);
        else
            gemm_multiply_blocks<S, true>(a, work, rings, NULL);
    }
}
#endif

#ifdef TN_HOPPER
#define GEMM_BLOCKS_BODY(TYPE, OTHER, G, N) gemm_blocks<TN_TYPE_##TYPE, TN_TYPE_##OTHER, G, N>(a)
#else
#define GEMM_BLOCKS_BODY(TYPE, OTHER, G, N) __trap()
#endif
#define GEMM_BLOCKS_OF(NAME, TYPE, OTHER, G, N)                                                              \
    TN_ENTRY __launch_bounds__(128 * G + 128, 1)                                                             \
        tn_gemm_blocks_##NAME##_##N(const __grid_constant__ tn_cuda_gemm_blocks_args a)                      \
    {                                                                                                        \
        GEMM_BLOCKS_BODY(TYPE, OTHER, G, N);                                                                 \
    }
#define GEMM_BLOCKS(TYPE, G, N)             GEMM_BLOCKS_OF(TYPE, TYPE, TYPE, G, N)
// Weights of two types, which blocks share.
#define GEMM_BLOCKS_PAIR(TYPE, OTHER, G, N) GEMM_BLOCKS_OF(TYPE##_##OTHER, TYPE, OTHER, G, N)
// The first four shapes of gemm_blocks.c.
#define GEMM_BLOCKS_FOUR(TYPE)                                                                               \
    GEMM_BLOCKS(TYPE, 4, 128)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 160)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 192)                                                                                \
    GEMM_BLOCKS(TYPE, 2, 256)

#ifdef TN_HOPPER
#define GEMM_BLOCKS_ADD_BODY(G, N, any) gemm_add_parts<gemm_blocks_shape<TN_TYPE_Q4_K, G, N>, any>(a)
#else
#define GEMM_BLOCKS_ADD_BODY(G, N, any) __trap()
#endif
#define GEMM_BLOCKS_ADD(name, G, N, any)                                                                     \
    TN_ENTRY __launch_bounds__(256)                                                                          \
        tn_gemm_blocks_add_##name(const __grid_constant__ tn_cuda_gemm_blocks_args a)                        \
    {                                                                                                        \
        GEMM_BLOCKS_ADD_BODY(G, N, any);                                                                     \
    }

#endif
