// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and weights of block types (skinny GEMM): as much memory traffic as for one
// row (two, above 32 rows), with the arithmetic on mma.sync and weights as the 16-row operand.
// skinny_expand.cuh says how weights become f16.
//
// Operands: x in stages of 32 rows and 256 k as skinny_prepare.cu makes them, w [n, k] in planes, y [m, n]
// f32.
//
// A block has a multiprocessor to itself. Each of its up to eight warps has MT x 16 rows of weights, half of
// them from either half of the tile (with GLU: gate and up), and 32 rows of x. Stages, the packed weights of
// all rows and the prepared x, pass through a ring in shared memory that is filled ahead, across the ends of
// tiles. The work of a launch is counted in stages of all tiles in order, and blocks take equal stretches of
// it: whole tiles, and parts of the first and the last (skinny_sums.cuh adds these parts).
//
// Bytes from L2: weights once, 64 for each k and tile of 128 or 256 rows. Operations: 2 m n k. Instructions
// of a warp for 16 x 32 weights of Q4_K: 18 of expansion, 8 products, 2 loads of x (4 with MT 1), 4 for
// scales of 256, 5 to decode scales, some 4 for copies and loops: 2.5 for each weight of a lane, 0.3 of the
// time that memory takes. Half of the issue slots are used; the type hardly matters, so memory is not the
// limit. Measured with 32 rows (H200, 2026-11-20), us for Q4_0, Q4_K, Q6_K, Q8_0: 4096 + 2 x 1024 columns, k
// 4096: 27.7, 29.9, 33.0, 25.4; 4096 columns, k 14336: 48.9, 53.6, 60.9, 48.9; GLU 2 x 14336, k 4096: 76.8,
// 86.2, 103.5, 77.0, which is 0.8 TB/s for Q4_K, 18 % of the read peak. On compute capability 9.0
// most types use skinny_stream.cuh instead, but for experts.
//
// Reasons of design (H200, 2026-11-20, four products of a layer of Q4_K):
// Expanding the weights to memory first took 433 us; this form takes 193.
// Loads in branches waited one by one: 720 instructions for each warp and stage and 125 us for GLU; without
// branches 545 to 650 instructions and 74 to 86 us.
// Integers of 7 bits under the exponent of 128, with the offset in the minimum, save an addition for each
// weight but change the rounding of some: two cases of the check tool failed.
#ifndef TN_CUDA_SKINNY_BLOCKS_CUH
#define TN_CUDA_SKINNY_BLOCKS_CUH

#include "backends/cuda/product/skinny/skinny_expand.cuh"
#include "backends/cuda/product/skinny/skinny_sums.cuh"
#include "backends/cuda/mma.cuh"

// --- which rows ---------------------------------------------------------------------------------------

// The two halves of a tile: planes from their first row on, and the last row that exists. Offsets within a
// half fit 32 bits.
struct skinny_block_rows {
    const char *plane[2][TN_CUDA_MAX_PLANES];
    uint32_t row_size[TN_CUDA_MAX_PLANES];
    int last[2];
};

template <typename SHAPE>
static __device__ __forceinline__ skinny_block_rows skinny_block_rows_of(const tn_cuda_skinny_args &a,
                                                                         int tile, int64_t expert_rows)
{
    skinny_block_rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const tn_cuda_skinny_seg *seg = a.glu ? &a.seg[h] : skinny_block_seg(a, tile);
        int first =
            min(a.glu ? tile * SHAPE::half : (2 * (tile - seg->first_tile) + h) * SHAPE::half, seg->n - 1);
        r.last[h] = seg->n - 1 - first;
#pragma unroll
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
            r.plane[h][p] = seg->w.plane[p] + (expert_rows + first) * seg->w.row_size[p];
            r.row_size[p] = (uint32_t)seg->w.row_size[p];
        }
    }
    return r;
}

// A position in the sequence of stages of all tiles; the stages of one tile follow each other.
template <typename SHAPE> struct skinny_cursor {
    int tile, stage; // tile among all tiles; stage of the tile
    skinny_block_rows rows;
    const char *x;

    __device__ __forceinline__ void enter(const tn_cuda_skinny_args &a, int per_tile)
    {
        int y = a.tile_group ? tile / a.n_tiles : blockIdx.y;
        int64_t expert_rows = a.tile_group ? a.tile_group[y] * a.group_rows : 0;
        rows = skinny_block_rows_of<SHAPE>(a, a.tile_group ? tile - y * a.n_tiles : tile, expert_rows);
        x = (const char *)a.x + ((int64_t)y * per_tile + stage) * TN_SKINNY_BLOCK_STAGE;
    }
    __device__ __forceinline__ void start(const tn_cuda_skinny_args &a, int per_tile, int at)
    {
        tile = at / per_tile, stage = at - tile * per_tile;
        enter(a, per_tile);
    }
    __device__ __forceinline__ void next(const tn_cuda_skinny_args &a, int per_tile, bool more)
    {
        stage++, x += TN_SKINNY_BLOCK_STAGE;
        if (stage < per_tile || !more) return;
        tile++, stage = 0;
        enter(a, per_tile);
    }
};

// --- copies -------------------------------------------------------------------------------------------

// Copies a plane of a stage. Threads copy 16-byte chunks in order. Where all rows exist, a thread goes from
// row to row by a fixed step, so that it computes one address.
template <int TYPE, typename SHAPE, int PLANE>
static __device__ __forceinline__ void skinny_copy_plane(const skinny_block_rows &rows, int stage, char *to)
{
    typedef skinny_slot<TYPE> slot;
    constexpr int chunks = slot::chunks(PLANE), first = slot::first_chunk(PLANE), bytes = slot::bytes(PLANE),
                  count = 2 * SHAPE::half * chunks / SHAPE::threads;
    constexpr bool fills_chunks = slot::block_bytes(PLANE) % 16 == 0, whole_rows = slot::elems == TN_SKINNY_K;
    constexpr int step = SHAPE::threads / (chunks > 0 ? chunks : 1); // rows
    constexpr bool fixed_step =
        chunks > 0 && SHAPE::threads % (chunks > 0 ? chunks : 1) == 0 && SHAPE::half % step == 0;
    if constexpr (chunks > 0) {
        uint32_t size = rows.row_size[PLANE], at = (uint32_t)stage * bytes;
        to += 16 * first;
        if constexpr (fills_chunks && whole_rows && fixed_step) {
            if (min(rows.last[0], rows.last[1]) >= SHAPE::half - 1) {
                int row = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
                to += row * slot::row_bytes + 16 * chunk;
                uint32_t offset = row * size + at + 16 * chunk;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const char *from = rows.plane[h][PLANE] + offset;
#pragma unroll
                    for (int i = 0; i < SHAPE::half / step; i++, from += step * size)
                        tn_copy16(to + (h * SHAPE::half + i * step) * slot::row_bytes, from, true);
                }
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < (2 * SHAPE::half * chunks + SHAPE::threads - 1) / SHAPE::threads; i++) {
            int e = threadIdx.x + i * SHAPE::threads, row = e / chunks, chunk = e % chunks;
            if (count * SHAPE::threads < 2 * SHAPE::half * chunks && e >= 2 * SHAPE::half * chunks) break;
            int h = row >= SHAPE::half;
            int source = min(h ? row - SHAPE::half : row, h ? rows.last[1] : rows.last[0]);
            const char *from =
                (h ? rows.plane[1][PLANE] : rows.plane[0][PLANE]) + ((uint32_t)source * size + at);
            char *slot_at = to + row * slot::row_bytes + 16 * chunk;
            if constexpr (fills_chunks) {
                tn_copy16(slot_at, from + 16 * chunk, whole_rows || at + 16 * chunk < size);
            } else {
                int shift = (int)((uintptr_t)from & 15),
                    n = whole_rows ? bytes : (int)min((uint32_t)bytes, size - at);
                tn_copy16_partial(slot_at, from - shift + 16 * chunk,
                                  max(0, min(16, shift + n - 16 * chunk)));
            }
        }
    }
}

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_copy_weights(const skinny_cursor<SHAPE> &c, char *slot)
{
    skinny_copy_plane<TYPE, SHAPE, 0>(c.rows, c.stage, slot + TN_SKINNY_BLOCK_STAGE);
    skinny_copy_plane<TYPE, SHAPE, 1>(c.rows, c.stage, slot + TN_SKINNY_BLOCK_STAGE);
    skinny_copy_plane<TYPE, SHAPE, 2>(c.rows, c.stage, slot + TN_SKINNY_BLOCK_STAGE);
    skinny_copy_plane<TYPE, SHAPE, 3>(c.rows, c.stage, slot + TN_SKINNY_BLOCK_STAGE);
}

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_copy_x(const char *x, char *slot)
{
    constexpr int size = skinny_expander<TYPE>::minimums ? TN_SKINNY_BLOCK_STAGE : TN_SKINNY_BLOCK_X,
                  step = 16 * SHAPE::threads;
    x += 16 * threadIdx.x, slot += 16 * threadIdx.x;
#pragma unroll
    for (int at = 0; at < size; at += step)
        if (at + step <= size || 16 * (int)threadIdx.x < size - at) tn_copy16(slot + at, x + at, true);
}

// Waits until all but the last `pending` groups of copies have arrived.
static __device__ __forceinline__ void skinny_wait(int pending)
{
    static_assert(TN_SKINNY_BLOCK_MAX_SLOTS == 6, "skinny_wait has a case for each number of slots");
    switch (pending) {
    case 1: tn_copy_wait<1>(); break;
    case 2: tn_copy_wait<2>(); break;
    case 3: tn_copy_wait<3>(); break;
    case 4: tn_copy_wait<4>(); break;
    case 5: tn_copy_wait<5>(); break;
    default: tn_copy_wait<0>(); break;
    }
}

// --- a stage ------------------------------------------------------------------------------------------

// This lane's row in a slot: row tile t, half h. `rows` is the position of the tile, which planes that are
// copied in whole chunks of memory need.
template <int TYPE, typename SHAPE>
static __device__ __forceinline__ skinny_row<TYPE> skinny_row_of(const skinny_block_rows &rows,
                                                                 const char *slot, int stage, int t, int h)
{
    typedef skinny_slot<TYPE> layout;
    int row = 8 * ((int)threadIdx.x / TN_WARP * SHAPE::tiles + t) + threadIdx.x % TN_WARP / 4;
    skinny_row<TYPE> w;
    w.at = slot + TN_SKINNY_BLOCK_STAGE + (row + h * SHAPE::half) * layout::row_bytes;
    uint32_t source = (uint32_t)min(row, rows.last[h]);
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++)
        w.shift[p] = ((uint32_t)(uintptr_t)rows.plane[h][p] + source * rows.row_size[p] +
                      (uint32_t)stage * layout::bytes(p)) &
                     15;
    return w;
}

// Subtracts minimums times sums of x, for the 16 runs of a stage. The sums are stored as a sixteenth, hence
// the factor 16.
template <int TYPE, int MT>
static __device__ __forceinline__ void
skinny_block_minimums(const typename skinny_expander<TYPE>::scale (&sc)[MT][2], const char *sums,
                      skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4;
#pragma unroll
    for (int j = 0; j < SKINNY_NT; j++) {
        const uint32_t *s = (const uint32_t *)sums + (8 * j + lane / 4) * (TN_SKINNY_K / 16);
        uint32_t b[4];
#pragma unroll
        for (int i = 0; i < 4; i++) b[i] = s[skinny_expander<TYPE>::run(q, i)];
#pragma unroll
        for (int t = 0; t < MT; t++) {
            float m[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                uint32_t f[4] = {skinny_expander<TYPE>::minimum(sc[t][0], i),
                                 skinny_expander<TYPE>::minimum(sc[t][1], i),
                                 skinny_expander<TYPE>::minimum(sc[t][0], i + 1),
                                 skinny_expander<TYPE>::minimum(sc[t][1], i + 1)};
                tn_mma_f16(m, f, b[i], b[i + 1]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) d[t][j][i] -= 16.0f * sc[t][i / 2].dmin * m[i];
        }
    }
}

// Multiplies half p of a stage.
template <int TYPE, int MT>
static __device__ __forceinline__ void
skinny_block_multiply(const typename skinny_expander<TYPE>::raw (&w)[MT][2],
                      const typename skinny_expander<TYPE>::scale (&sc)[MT][2], int p, const char *x,
                      skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4, column = lane / 4;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        uint4 b[SKINNY_NT];
        int chunk = TN_SKINNY_PIECE(skinny_expander<TYPE>::chunk(q, p, c), column);
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
            b[j] = *(const uint4 *)(x + 16 * ((8 * j + column) * (TN_SKINNY_K / 8) + chunk));
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < MT; t++) {
                uint32_t f[4];
                skinny_expander<TYPE>::expand(w[t][0], sc[t][0], p, c, s, q, f[0], f[2]);
                skinny_expander<TYPE>::expand(w[t][1], sc[t][1], p, c, s, q, f[1], f[3]);
#pragma unroll
                for (int j = 0; j < SKINNY_NT; j++)
                    tn_mma_f16(d[t][j], f, s ? b[j].z : b[j].x, s ? b[j].w : b[j].y);
            }
    }
}

// Multiplies half p of a stage, each step of 16 values with a scale of its own.
template <int TYPE, int MT>
static __device__ __forceinline__ void
skinny_block_steps(const typename skinny_expander<TYPE>::raw (&w)[MT][2],
                   const typename skinny_expander<TYPE>::scale (&sc)[MT][2], int p, const char *x,
                   skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4, column = lane / 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint2 b[SKINNY_NT];
        int chunk = TN_SKINNY_PIECE(16 * p + 2 * i + q / 2, column);
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
            b[j] = *(const uint2 *)(x + 16 * ((8 * j + column) * (TN_SKINNY_K / 8) + chunk) + 8 * (q % 2));
#pragma unroll
        for (int t = 0; t < MT; t++) {
            uint32_t f[4];
            skinny_expander<TYPE>::step(w[t][0], i / 2, i % 2, f[0], f[2]);
            skinny_expander<TYPE>::step(w[t][1], i / 2, i % 2, f[1], f[3]);
            float by[2] = {skinny_expander<TYPE>::factor(sc[t][0], p, i / 2, i % 2),
                           skinny_expander<TYPE>::factor(sc[t][1], p, i / 2, i % 2)};
#pragma unroll
            for (int j = 0; j < SKINNY_NT; j++) {
                float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                tn_mma_f16(part, f, b[j].x, b[j].y);
#pragma unroll
                for (int e = 0; e < 4; e++) d[t][j][e] += by[e / 2] * part[e];
            }
        }
    }
}

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_block_stage(const skinny_block_rows &rows, const char *slot,
                                                          int stage, skinny_sums<SHAPE::tiles> &total)
{
    typedef skinny_expander<TYPE> expander;
    constexpr int MT = SHAPE::tiles;
    int q = threadIdx.x % 4;
    skinny_row<TYPE> row[MT][2];
    typename expander::scale sc[MT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        row[i / 2][i % 2] = skinny_row_of<TYPE, SHAPE>(rows, slot, stage, i / 2, i % 2);
        expander::scales(sc[i / 2][i % 2], row[i / 2][i % 2], q);
    }
    if constexpr (expander::minimums) skinny_block_minimums<TYPE, MT>(sc, slot + TN_SKINNY_BLOCK_X, total);
    skinny_sums<MT> part;
    if constexpr (expander::exact) {
#pragma unroll
        for (int i = 0; i < MT * SKINNY_NT * 4; i++)
            part[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
    }
#pragma unroll
    for (int p = 0; p < 2; p++) {
        typename expander::raw w[MT][2];
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) expander::load(w[i / 2][i % 2], row[i / 2][i % 2], p, q);
        if constexpr (expander::stepped)
            skinny_block_steps<TYPE, MT>(w, sc, p, slot, total);
        else if constexpr (expander::exact)
            skinny_block_multiply<TYPE, MT>(w, sc, p, slot, part);
        else skinny_block_multiply<TYPE, MT>(w, sc, p, slot, total);
    }
    if constexpr (expander::exact) {
#pragma unroll
        for (int t = 0; t < MT; t++)
#pragma unroll
            for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
                // 2^24
                for (int i = 0; i < 4; i++) total[t][j][i] += 16777216.0f * sc[t][i / 2].d * part[t][j][i];
    }
}

// --- the kernel ---------------------------------------------------------------------------------------

// The work of this block: stages [at, end) of n. With groups (experts) there are enough tiles, so blocks take
// whole ones.
struct skinny_work {
    int n, at, end;
};

static __device__ __forceinline__ skinny_work skinny_work_of(const tn_cuda_skinny_args &a, int per_tile)
{
    int64_t n_tiles = (int64_t)a.n_tiles * (a.tile_group ? *a.n_row_tiles : 1),
            stages_at_once = a.tile_group ? per_tile : 1, n = a.tile_group ? n_tiles : n_tiles * per_tile;
    return {(int)(n * stages_at_once), (int)(n * blockIdx.x / gridDim.x * stages_at_once),
            (int)(n * (blockIdx.x + 1) / gridDim.x * stages_at_once)};
}

// The block has the sums of its stages of a tile, which ends with stage `stage` or with the block's work.
// Where several blocks share the tile, the last one to arrive writes it. The sums are zero afterwards.
template <typename SHAPE>
static __device__ __forceinline__ void skinny_block_end_tile(const tn_cuda_skinny_args &a,
                                                             const skinny_work &work, int per_tile, int tile,
                                                             int stage, skinny_sums<SHAPE::tiles> &total)
{
    int begin = tile * per_tile, first = 0, last = -1;
    bool complete_here = begin >= work.at && stage + 1 == per_tile;
    if (!complete_here) {
        first = skinny_block_of(begin, work.n), last = skinny_block_of(begin + per_tile - 1, work.n);
        complete_here = skinny_block_publish<SHAPE>(a, total, tile, first, last);
    }
    int y = a.tile_group ? tile / a.n_tiles : blockIdx.y;
    if (complete_here)
        skinny_block_write_tile<SHAPE>(a, total, a.tile_group ? tile - y * a.n_tiles : tile, y, first, last);
#pragma unroll
    for (int i = 0; i < SHAPE::tiles * SKINNY_NT * 4; i++)
        total[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
}

// Copies of the first stages: weights, which never change, before the predecessor has ended, x after it.
template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void
skinny_block_first_stages(const tn_cuda_skinny_args &a, const skinny_work &work, int per_tile, char *slots,
                          skinny_cursor<SHAPE> &ahead, int &copied)
{
    constexpr int slot_size = TN_SKINNY_BLOCK_STAGE + 2 * SHAPE::half * skinny_slot<TYPE>::row_bytes;
    int early = min((int)SKINNY_EARLY, work.end - work.at);
    const char *x[SKINNY_EARLY] = {ahead.x, ahead.x};
#pragma unroll 1
    for (int s = 0; s < early; s++) {
        if (s > 0) x[1] = ahead.x;
        skinny_copy_weights<TYPE, SHAPE>(ahead, slots + s * slot_size);
        ahead.next(a, per_tile, ++copied < work.end);
    }
    static_assert(SKINNY_EARLY == 2, "x has two places");
    tn_pdl_trigger();
    tn_pdl_wait();
#pragma unroll
    for (int s = 0; s < SKINNY_EARLY; s++) {
        if (s < early) skinny_copy_x<TYPE, SHAPE>(x[s], slots + s * slot_size);
        tn_copy_commit();
    }
}

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_blocks(const tn_cuda_skinny_args &a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) char skinny_shared[];
    constexpr int slot_size = TN_SKINNY_BLOCK_STAGE + 2 * SHAPE::half * skinny_slot<TYPE>::row_bytes;
    int per_tile = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K;
    if (a.tile_group) tn_pdl_wait(); // a predecessor decides which expert, so which weights
    skinny_work work = skinny_work_of(a, per_tile);
    if (work.at >= work.end) return;
    skinny_cursor<SHAPE> ahead, current;
    ahead.start(a, per_tile, work.at);
    int copied = work.at;
    skinny_block_first_stages<TYPE, SHAPE>(a, work, per_tile, skinny_shared, ahead, copied);
    // A slot is filled again behind the barrier of the stage after it, while others multiply. With only two
    // slots it is filled before that stage is waited for.
    bool many_slots = a.slots > 2;
    int slot = 0, free = many_slots ? SKINNY_EARLY : 0;
    auto fill = [&]() {
        if (copied < work.end) {
            char *to = skinny_shared + free * slot_size;
            skinny_copy_weights<TYPE, SHAPE>(ahead, to);
            skinny_copy_x<TYPE, SHAPE>(ahead.x, to);
            ahead.next(a, per_tile, ++copied < work.end);
        }
        tn_copy_commit();
        free = free + 1 == a.slots ? 0 : free + 1;
    };
#pragma unroll 1
    for (int i = SKINNY_EARLY; i < a.slots - 1; i++) fill();
    skinny_sums<SHAPE::tiles> total = {};
    current.start(a, per_tile, work.at);
    for (int at = work.at; at < work.end;) {
        if (many_slots) skinny_wait(a.slots - 2);
        if (many_slots || at > work.at) {
            __syncthreads();
            fill();
        }
        if (!many_slots) {
            skinny_wait(1);
            __syncthreads();
        }
        skinny_block_stage<TYPE, SHAPE>(current.rows, skinny_shared + slot * slot_size, current.stage, total);
        slot = slot + 1 == a.slots ? 0 : slot + 1;
        int tile = current.tile, stage = current.stage;
        bool ends = stage + 1 == per_tile || at + 1 == work.end;
        current.next(a, per_tile, ++at < work.end);
        if (ends) skinny_block_end_tile<SHAPE>(a, work, per_tile, tile, stage, total);
    }
    tn_copy_wait<0>();
#else
    __trap();
#endif
}

// A kernel with tiles of 16 * TILES * WARPS rows of weights.
#define SKINNY_BLOCKS(TYPE, ROWS, TILES, WARPS)                                                              \
    TN_ENTRY __launch_bounds__(32 * WARPS, 1)                                                                \
        tn_skinny_##TYPE##_##ROWS(const __grid_constant__ tn_cuda_skinny_args a)                             \
    {                                                                                                        \
        static_assert(16 * TILES * WARPS == ROWS, "the name says what a tile has");                          \
        skinny_blocks<TN_TYPE_##TYPE, skinny_block_shape<TILES, WARPS>>(a);                                  \
    }

#endif
