// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of experts with weights of block types (compute capability 9.0).
//
// Operands: w [experts, n, k] in planes (backends/planes.def), k a multiple of 256; rows of x and tables of
// the sorted ids as experts_prepare.cu writes them; y [ids, n] f32, or f16 (experts_write.cuh). A tile is N
// (16 to 96) rows of x of one expert times 256 rows of its weights, with a gated pair 128 of gate and the
// same 128 of up. The weights are the long side of wgmma, expanded into registers; rows of x are gathered
// into shared memory.
//
// A block has a multiprocessor to itself and takes tile after tile, 256 of k at a time, through a ring in
// shared memory. Of its first warpgroup one thread fetches weights by tensor copies, a warp the planes that
// are too narrow for those, and two warps the rows of x and, for each tile, a table of where its results go;
// the other four warpgroups multiply, 64 rows of weights each. Lanes hold one row of the first half of the
// tile and one of the second half side by side, so with a gated pair both are in one thread. The ring goes on
// across the ends of tiles.
//
// Bytes: the weights of the experts in use, once for N rows of x; from L2 also 2 k for each row of x and tile
// of weights. Operations: 2 k n for each row of y. Instructions of a warp for 16 x 16 weights: some 20 for
// Q4_K, 45 for other types (gemm/gemm_expand.cuh). The limit are the warps that multiply: gate and up of 128
// experts of 768 x 2048, Q4_K, take 73 us for 32 tokens (119 experts in use), where the bytes take 48;
// without copies they took 67 of then 76, without products 55 (H200, 2026-11-23).
#ifndef TN_CUDA_EXPERTS_CUH
#define TN_CUDA_EXPERTS_CUH

#include "backends/cuda/product/experts/experts_write.cuh"
#include "backends/cuda/product/gemm/gemm_expand.cuh"

enum {
    EXPERTS_CONSUMERS = 128 * TN_EXPERTS_CONSUMERS, // threads
    EXPERTS_X_THREADS = 64,
    EXPERTS_TABLES = 2,
};

// Types whose weights are products of two integers that f16 holds exactly, with a minimum for each 32: the
// scale of 256 multiplies their sums, and minimums multiply the sums of 32 values of x.
static constexpr __host__ __device__ bool experts_exact(int type)
{
    return type == TN_TYPE_Q4_K;
}

// Steps of 16 of k that are expanded and multiplied at a time: as many as there are registers for.
static constexpr __host__ __device__ int experts_group(int n)
{
    return n <= 32 ? 4 : n <= 64 ? 2 : 1;
}

#ifdef TN_HOPPER
// `next`: a gated pair becomes x of the next product.
template <int TYPE, int N, bool NEXT> struct experts_shape {
    static constexpr int type = TYPE, n = N;
    static constexpr bool next = NEXT;
    static constexpr bool exact = experts_exact(TYPE), in_place = exact && N > 32; // experts_unit
    typedef gemm_slot<TYPE, EXPERTS_ROWS> slot;
    static constexpr int group = experts_group(N);
    static constexpr int panel = N * 128; // bytes of 64 of k of x
    static constexpr int x = slot::size, sums = x + 4 * panel;
    static constexpr int stage = (sums + (exact ? N * 32 : 0) + 1023) / 1024 * 1024; // for the swizzle
};

struct experts_ring {
    char *stages;
    uint64_t *full, *empty, *rows_full, *rows_empty;
};

struct experts_ring_at {
    uint32_t i, parity;
    __device__ __forceinline__ void next(int n)
    {
        if (++i == (uint32_t)n) i = 0, parity ^= 1;
    }
};

// The row of x of row r of y: r / rows_of_x by multiplying, exact as launch() checks.
static __device__ __forceinline__ int experts_x_row(const tn_cuda_experts_args &a, int r)
{
    return a.x_factor ? (int)((uint64_t)(uint32_t)r * a.x_factor >> 32) : r;
}

// --- copies ------------------------------------------------------------------------------------------

// Tensor copies of the planes of a stage, by one thread.
template <typename S>
static __device__ __forceinline__ void experts_copy_planes(const tn_cuda_experts_args &a, char *to, int row,
                                                           int k, uint64_t *bar)
{
    typedef typename S::slot slot;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        if (!slot::copied(p)) continue;
        int width = slot::width(p);
#pragma unroll
        for (int panel = 0; panel < slot::panels(p); panel++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                tn_tma_load(to + slot::start(p) + (panel * EXPERTS_ROWS + h * EXPERTS_HALF) * width,
                            a.glu ? &a.seg[h].map[p] : &a.seg[0].map[p],
                            (k * slot::bytes(p) + panel * width) / 2, row + (a.glu ? 0 : h * EXPERTS_HALF),
                            bar);
    }
}

// Loads and stores of the planes that are too narrow for tensor copies, by a warp.
template <typename S>
static __device__ __forceinline__ void experts_copy_small(const tn_cuda_experts_args &a, char *to, int row,
                                                          int k)
{
    typedef typename S::slot slot;
    constexpr int per_lane = EXPERTS_ROWS / TN_WARP;
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
        if (slot::bytes(p) == 0 || slot::copied(p)) continue;
        const int parts = slot::bytes(p) / (int)sizeof(uint16_t);
        uint16_t v[per_lane][8];
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            int r = i * TN_WARP + (int)threadIdx.x % TN_WARP, h = r / EXPERTS_HALF;
            const tn_cuda_experts_seg &s = a.seg[a.glu ? h : 0];
            int from = row + (a.glu ? r % EXPERTS_HALF : r);
            const uint16_t *at =
                (const uint16_t *)(s.w.plane[p] + from * s.w.row_size[p]) + (int64_t)k * parts;
#pragma unroll
            for (int u = 0; u < parts; u++) v[i][u] = from < a.n_rows ? at[u] : (uint16_t)0;
        }
#pragma unroll
        for (int i = 0; i < per_lane; i++) {
            int r = i * TN_WARP + (int)threadIdx.x % TN_WARP;
#pragma unroll
            for (int u = 0; u < parts; u++) ((uint16_t *)(to + slot::start(p)))[r * parts + u] = v[i][u];
        }
    }
}

// The first two warps: weights.
template <typename S>
static __device__ void experts_fetch_w(const tn_cuda_experts_args &a, const experts_ring &ring, int n_tiles)
{
    experts_ring_at at = {0, 1};
    bool tensor = threadIdx.x / TN_WARP == 0;
    if (tensor ? threadIdx.x != 0 : !S::slot::has_small()) return;
    int step = gridDim.x, group = (int)blockIdx.x < n_tiles ? a.table.tile_group[blockIdx.x / a.tiles_n] : 0;
    for (int t = blockIdx.x; t < n_tiles; t += step) {
        int row = group * a.n + experts_tile(a, t).first;
        if (t + step < n_tiles) group = a.table.tile_group[(t + step) / a.tiles_n]; // used a tile later
        for (int k = 0; k < a.k / TN_GEMM_BLOCK_K; k++) {
            char *to = ring.stages + at.i * S::stage;
            tn_mbar_wait(&ring.empty[at.i], at.parity);
            if (tensor) {
                tn_fence_async(); // consumers have read the stage by loads
                tn_mbar_expect(&ring.full[at.i], S::slot::copied_bytes());
                experts_copy_planes<S>(a, to, row, k, &ring.full[at.i]);
            } else {
                experts_copy_small<S>(a, to, row, k);
                tn_mbar_arrive(&ring.full[at.i]); // each lane for its own stores: racecheck follows that
            }
            at.next(a.stages);
        }
    }
}

// When the copies that this thread has started have arrived, it arrives at the barrier, whose count includes
// it.
static __device__ __forceinline__ void experts_copies_arrive(uint64_t *bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(tn_shared(bar)) : "memory");
}

// Two warps: rows of x. Eight threads copy 128 bytes of a row; rows that there are not become zeros. The
// first of them writes the row into the table of the tile, once its first copies are under way.
template <typename S>
static __device__ void experts_fetch_x(const tn_cuda_experts_args &a, const experts_ring &ring,
                                       experts_rows<S::n> *tables, int n_tiles)
{
    constexpr int per_thread = S::n / 8;
    int thread = threadIdx.x - 64, chunk = thread % 8, row = thread / 8; // rows row, row + 8, ...
    uint32_t row_bytes = (uint32_t)TN_EXPERTS_ROW(a.k),
             to_chunk = (uint32_t)(row * 128 + ((chunk ^ row) << 4)),
             to_sums = (uint32_t)(S::sums - S::x + row * 32 + ((chunk ^ (row >> 2 & 1)) << 4));
    experts_ring_at at = {0, 1}, table = {0, 1};
    int y[per_thread];
#pragma unroll
    for (int i = 0; i < per_thread; i++)
        y[i] = (int)blockIdx.x < n_tiles ? a.table.rows[blockIdx.x / a.tiles_n * S::n + row + 8 * i] : -1;
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x) {
        int next = (t + (int)gridDim.x) / a.tiles_n;
        const char *from[per_thread];
        bool full[per_thread];
        int2 rows[per_thread];
#pragma unroll
        for (int i = 0; i < per_thread; i++) {
            int x_row = experts_x_row(a, max(y[i], 0));
            full[i] = y[i] >= 0;
            from[i] = a.x + x_row * (int64_t)row_bytes + 16 * chunk;
            rows[i].x = y[i];
            if (chunk == 0) rows[i].y = experts_factor<S::next>(a, x_row);
            if (t + (int)gridDim.x < n_tiles) // used a tile later
                y[i] = a.table.rows[next * S::n + row + 8 * i];
        }
        for (int k = 0; k < a.k / TN_GEMM_BLOCK_K; k++) {
            char *to = ring.stages + at.i * S::stage + S::x;
            tn_mbar_wait(&ring.empty[at.i], at.parity);
#pragma unroll
            for (int i = 0; i < per_thread; i++) {
#pragma unroll
                for (int p = 0; p < 4; p++)
                    tn_copy16(to + to_chunk + p * S::panel + i * 1024, from[i] + k * 512 + p * 128, full[i]);
                if (S::exact && chunk < 2)
                    tn_copy16(to + to_sums + i * 256, from[i] + 2 * a.k + k * 32, full[i]);
            }
            experts_copies_arrive(&ring.full[at.i]);
            at.next(a.stages);
            if (k > 0 || chunk != 0) continue;
            tn_mbar_wait(&ring.rows_empty[table.i], table.parity);
#pragma unroll
            for (int i = 0; i < per_thread; i++) tables[table.i].y[row + 8 * i] = rows[i];
            tn_mbar_arrive(&ring.rows_full[table.i]);
            table.next(EXPERTS_TABLES);
        }
    }
    if (!S::next) experts_zero(a, (int)threadIdx.x - 64, EXPERTS_X_THREADS);
    tn_copy_commit();
    tn_copy_wait<0>();
}

// --- products ----------------------------------------------------------------------------------------

// A row of 256 weights of Q4_K. Codes are multiplied as they stand in the bits of f16, where 1 is 2^-24, by
// their 6-bit scale, of upper nibbles by a 16th of it: exact.
struct experts_q4_k {
    uint32_t even[2], odd[2]; // scales of groups 4 i and 4 i + 2, 4 i + 1 and 4 i + 3
    uint32_t m[2];            // minimums of eight groups, a byte each
    float d, dmin;

    template <typename LANE> __device__ __forceinline__ void load(const LANE &l, int behind)
    {
        uint4 h = l.template at<1, uint4>(behind, 0);
        uint32_t s[2] = {h.y & 0x3f3f3f3fu, (h.w & 0x0f0f0f0fu) | (h.y >> 2 & 0x30303030u)};
        m[0] = h.z & 0x3f3f3f3fu, m[1] = (h.w >> 4 & 0x0f0f0f0fu) | (h.z >> 2 & 0x30303030u);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            even[i] = gemm_add2((s[i] & 0x00ff00ffu) | 0x64006400u, 0xe400e400u); // 1024 + scale, less 1024
            odd[i] = gemm_fma2((s[i] >> 8 & 0x00ff00ffu) | 0x64006400u, 0x2c002c00u, 0xd400d400u);
        }
        d = tn_half_bits(h.x & 0xffffu), dmin = tn_half_bits(h.x >> 16);
    }
    // Where d or dmin is 0 and so no unit (experts_unit): weights or minimums of 0.
    __device__ __forceinline__ void clear()
    {
        if (d == 0.0f) even[0] = even[1] = odd[0] = odd[1] = 0;
        if (dmin == 0.0f) m[0] = m[1] = 0;
    }
    __device__ __forceinline__ uint32_t factor(int b) const
    {
        uint32_t v = b % 2 ? odd[b / 4] : even[b / 4];
        return b / 2 % 2 ? gemm_high2(v) : gemm_low2(v);
    }
    // Step b of 32 values, of the words of the lane; v: bytes 4 q to 4 q + 3 of a run of 16.
    static __device__ __forceinline__ void expand(uint32_t v, uint32_t by, int b, uint32_t &first,
                                                  uint32_t &second)
    {
        uint32_t mask = b % 2 ? 0x00f000f0u : 0x000f000fu;
        first = gemm_mul2(v & mask, by);
        second = gemm_mul2(v >> 8 & mask, by);
    }
};

// What the sums of two rows of weights are to be multiplied by. With many rows of x there are no registers
// for the sums of a stage beside those of all stages. So there is one set of sums, and the unit that it is
// counted in becomes that of what is added next: dmin for minimums, then d. A unit of 0 is left out.
struct experts_unit {
    float of[2];

    template <int N> __device__ __forceinline__ void change(const float (&to)[2], experts_sums<N> &total)
    {
        float by[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            by[h] = to[h] == 0.0f ? 1.0f : __fdividef(of[h], to[h]);
            of[h] = to[h] == 0.0f ? of[h] : to[h];
        }
#pragma unroll
        for (int j = 0; j < N / 8; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) total[j][i] *= by[i / 2];
    }
};

template <int N>
static __device__ __forceinline__ void experts_add(experts_sums<N> &total, const experts_sums<N> &part,
                                                   const float (&by)[2])
{
#pragma unroll
    for (int j = 0; j < N / 8; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) total[j][i] += by[i / 2] * part[j][i];
}

// Multiplies a stage of 256 of k and adds it to the sums.
template <typename S>
static __device__ __forceinline__ void experts_multiply_exact(const char *stage, int row, int q,
                                                              experts_unit &unit, experts_sums<S::n> &total)
{
    gemm_lane<S::type, EXPERTS_ROWS> l = {stage, row, q};
    experts_sums<S::n> apart, &part = S::in_place ? total : apart;
    experts_q4_k w[2];
    constexpr int group = S::group;
    uint32_t f[2][group][4], m[4], v[2][2], by[2];
    uint64_t x = tn_wgmma_tile(stage + S::x);
    auto expand = [&](int g) { // steps of 16 of k, as many as are multiplied at a time
#pragma unroll
        for (int u = group * g; u < group * g + group; u++) {
            int b = u / 2;
            uint32_t(&to)[4] = f[g % 2][u % group];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (u % 4 == 0)
#pragma unroll
                    for (int i = 0; i < 2; i++) v[h][i] = l.template word<0>(h * EXPERTS_HALF, b + i);
                if (u % 2 == 0) by[h] = w[h].factor(b);
                experts_q4_k::expand(v[h][u % 2], by[h], b, to[h], to[2 + h]);
            }
        }
    };
#pragma unroll
    for (int h = 0; h < 2; h++) {
        w[h].load(l, h * EXPERTS_HALF);
        if (S::in_place) w[h].clear();
    }
        // Minimums times sums of x: of 16 of k, 2 g and 2 g + 1 are the pair of group g.
#pragma unroll
    for (int i = 0; i < 4; i++)
        m[i] = gemm_add2(__byte_perm(w[i % 2].m[i / 2], 0x64u, 0x4040u + 0x0101u * (uint32_t)q), 0xe400e400u);
    float dmin[2] = {-32.0f * w[0].dmin, -32.0f * w[1].dmin}; // sums are counted in 32
    float d[2] = {16777216.0f * w[0].d, 16777216.0f * w[1].d};
    if (S::in_place) unit.template change<S::n>(dmin, total);
    tn_wgmma_fence();
    experts_wgmma(part, m, experts_tile32(stage + S::sums), S::in_place);
    tn_wgmma_commit();
    expand(0);
    experts_wait<S::n>(part);
    if (S::in_place) unit.template change<S::n>(d, total);
    if (!S::in_place) experts_add<S::n>(total, part, dmin);
#pragma unroll
    for (int g = 0; g < 16 / group; g++) {
        tn_wgmma_fence();
#pragma unroll
        for (int u = group * g; u < group * g + group; u++)
            experts_wgmma(part, f[g % 2][u % group], x + u / 4 * (S::panel / 16) + u % 4 * 2,
                          S::in_place || u > 0);
        tn_wgmma_commit();
        if (g == 16 / group - 1) break;
        tn_wgmma_wait<1>();
        expand(g + 1);
    }
    experts_wait<S::n>(part);
    if (!S::in_place) experts_add<S::n>(total, part, d);
}

// The same with weights that are rounded to f16.
template <typename S>
static __device__ __forceinline__ void experts_multiply_any(const char *stage, int row, int q,
                                                            experts_sums<S::n> &total)
{
    typedef gemm_expander<S::type> expander;
    gemm_lane<S::type, EXPERTS_ROWS> l = {stage, row, q};
    typename expander::scales scales[2];
    typename expander::raw raw[2];
    typename expander::factors by[2];
    constexpr int group = S::group;
    uint32_t f[2][group][4];
    uint64_t x = tn_wgmma_tile(stage + S::x);
#pragma unroll
    for (int h = 0; h < 2; h++) expander::load_scales(scales[h], l, h * EXPERTS_HALF);
#pragma unroll
    for (int g = 0; g < 16 / group; g++) {
#pragma unroll
        for (int u = group * g; u < group * g + group; u++) {
            uint32_t(&to)[4] = f[g % 2][u % group];
#pragma unroll
            for (int h = 0; h < 2; h++) {
                if (u % 2 == 0) {
                    expander::load(raw[h], l, h * EXPERTS_HALF, u / 2);
                    expander::load_factors(by[h], scales[h], u / 2);
                }
                expander::expand(raw[h], by[h], u / 2, u % 2, to[h], to[2 + h]);
            }
        }
        tn_wgmma_fence();
#pragma unroll
        for (int u = group * g; u < group * g + group; u++)
            experts_wgmma(total, f[g % 2][u % group], x + u / 4 * (S::panel / 16) + u % 4 * 2, 1);
        tn_wgmma_commit();
        tn_wgmma_wait<1>();
    }
    experts_wait<S::n>(total);
}

// --- blocks ------------------------------------------------------------------------------------------

template <typename S>
static __device__ __forceinline__ void experts_multiply(const tn_cuda_experts_args &a,
                                                        const experts_ring &ring,
                                                        const experts_rows<S::n> *tables, int n_tiles)
{
    float *sums = (float *)(ring.stages + a.stages * S::stage); // if there are any
    int thread = (int)threadIdx.x - 128, lane = thread % TN_WARP, row = thread / TN_WARP * 8 + lane / 4,
        q = lane % 4;
    experts_ring_at at = {0, 0}, table = {0, 0};
#pragma unroll 1
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x) {
        experts_sums<S::n> total = {};
        experts_unit unit = {{1.0f, 1.0f}};
#pragma unroll 1
        for (int k = 0; k < a.k / TN_GEMM_BLOCK_K; k++) {
            const char *stage = ring.stages + at.i * S::stage;
            tn_mbar_wait(&ring.full[at.i], at.parity);
            tn_fence_async(); // rows of x were not written by tensor copies
            if constexpr (S::exact)
                experts_multiply_exact<S>(stage, row, q, unit, total);
            else
                experts_multiply_any<S>(stage, row, q, total);
            __syncwarp();
            if (lane == 0) tn_mbar_arrive(&ring.empty[at.i]);
            at.next(a.stages);
        }
        if constexpr (S::in_place) {
            const float one[2] = {1.0f, 1.0f};
            unit.template change<S::n>(one, total);
        }
        tn_mbar_wait(&ring.rows_full[table.i], table.parity);
        if constexpr (S::next)
            experts_write_for_next(a, experts_tile(a, t), row, q, tables[table.i], total,
                                   sums + table.i * EXPERTS_SUM_WARPS * S::n);
        else
            experts_write(a, experts_tile(a, t), row, q, tables[table.i], total);
        __syncwarp();
        if (lane == 0) tn_mbar_arrive(&ring.rows_empty[table.i]);
        table.next(EXPERTS_TABLES);
    }
}

template <int TYPE, int N, bool NEXT>
static __device__ __forceinline__ void experts(const tn_cuda_experts_args &a)
{
    typedef experts_shape<TYPE, N, NEXT> S;
    extern __shared__ char shared[];
    __shared__ uint64_t bars[2][TN_EXPERTS_MAX_STAGES], rows_bars[2][EXPERTS_TABLES];
    typedef experts_rows<N> rows_of_tile;
    __shared__ __align__(16) rows_of_tile tables[EXPERTS_TABLES];
    experts_ring ring = {shared + (1024 - tn_shared(shared) % 1024) % 1024, bars[0], bars[1], rows_bars[0],
                         rows_bars[1]};
    if (threadIdx.x == 0) {
        for (int i = 0; i < TN_EXPERTS_MAX_STAGES; i++) {
            tn_mbar_init(&ring.full[i], 1 + S::slot::has_small() * TN_WARP + EXPERTS_X_THREADS);
            tn_mbar_init(&ring.empty[i], EXPERTS_CONSUMERS / TN_WARP);
        }
        for (int i = 0; i < EXPERTS_TABLES; i++) {
            tn_mbar_init(&ring.rows_full[i], EXPERTS_X_THREADS / 8);
            tn_mbar_init(&ring.rows_empty[i], EXPERTS_CONSUMERS / TN_WARP);
        }
        tn_mbar_init_fence();
    }
    tn_pdl_trigger();
    __syncthreads();
    tn_pdl_wait();
    int n_tiles = *a.table.n_tiles * a.tiles_n, warp = threadIdx.x / TN_WARP;
    if (warp < 4) {
        if (warp < 2)
            experts_fetch_w<S>(a, ring, n_tiles);
        else
            experts_fetch_x<S>(a, ring, tables, n_tiles);
    } else {
        experts_multiply<S>(a, ring, tables, n_tiles);
    }
}
#endif

#ifdef TN_HOPPER
#define EXPERTS_BODY(TYPE, N, NEXT) experts<TN_TYPE_##TYPE, N, NEXT>(a)
#else
#define EXPERTS_BODY(TYPE, N, NEXT) __trap()
#endif
#define EXPERTS_ENTRY(name, TYPE, N, NEXT)                                                                   \
    TN_ENTRY __launch_bounds__(TN_EXPERTS_THREADS, 1)                                                        \
        tn_##name##_##TYPE##_##N(const __grid_constant__ tn_cuda_experts_args a)                             \
    {                                                                                                        \
        EXPERTS_BODY(TYPE, N, NEXT);                                                                         \
    }
#define EXPERTS(TYPE, N) EXPERTS_ENTRY(experts, TYPE, N, false)
#define EXPERTS_NEXT(TYPE, N) EXPERTS_ENTRY(experts_next, TYPE, N, true)

#endif
