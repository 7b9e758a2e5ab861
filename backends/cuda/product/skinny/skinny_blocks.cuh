// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and weights of block types: as much memory traffic as for one row (two, above 32), the arithmetic on
// mma.sync with weights as the 16-row operand. skinny_expand.cuh says how weights become f16.
//
// A block has a multiprocessor to itself. Its up to eight warps have MT x 16 rows of weights each, half of them from either half of the tile
// (with GLU: gate and up), and 32 rows of x. Stages of 256 k, packed weights of all rows and prepared x (skinny_prepare.cu), pass through a ring
// in shared memory that is filled ahead, across the ends of tiles. The work of a launch is counted in stages of all tiles in order, and
// blocks take equal stretches of it: whole tiles, and parts of the first and the last. The parts of a tile go through memory as they lie in
// registers; the last block to arrive sums them, in order, and finishes the tile.
//
// Per 16 x 32 weights and warp, Q4_K: 18 instructions of expansion, 8 products, 2 loads of x (4 with MT 1), 4 for scales of 256, 5 to decode scales, some 4
// for copies and loops: 2.5 for each weight of a lane, 0.3 of the time that memory takes. Bytes from L2: weights once, 64 for each k and tile (128 or 256 rows).
#ifndef TN_CUDA_SKINNY_BLOCKS_CUH
#define TN_CUDA_SKINNY_BLOCKS_CUH

#include "backends/cuda/product/epilogue.cuh"
#include "backends/cuda/product/skinny/skinny_expand.cuh"
#include "backends/cuda/mma.cuh"

enum { SKINNY_NT = TN_SKINNY_BLOCK_COLUMNS / 8, SKINNY_EARLY = TN_SKINNY_EARLY }; // stages whose weights are asked for before the predecessor has ended

// How a launch is cut: row tiles of 16 rows of weights of a warp, warps of a block.
template <int TILES, int WARPS> struct skinny_cut {
    static constexpr int tiles = TILES, threads = 32 * WARPS;
    static constexpr int half = 8 * TILES * WARPS; // rows of weights of half a tile
};

template <int TILES> using skinny_sums = float[TILES][SKINNY_NT][4];

// --- which rows ---------------------------------------------------------------------------------------

static __device__ __forceinline__ const tn_cuda_skinny_seg *skinny_block_seg(const tn_cuda_skinny_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < 3; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

// The two halves of a tile: planes from the first row on, and the last row that there is. Offsets within a half fit 32 bits.
struct skinny_block_rows {
    const char *plane[2][TN_CUDA_MAX_PLANES];
    uint32_t row_size[TN_CUDA_MAX_PLANES];
    int last[2];
};

template <typename CUT> static __device__ __forceinline__ skinny_block_rows skinny_block_rows_of(const tn_cuda_skinny_args &a, int tile, int64_t skip)
{
    skinny_block_rows r;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const tn_cuda_skinny_seg *seg = a.glu ? &a.seg[h] : skinny_block_seg(a, tile);
        int first = min(a.glu ? tile * CUT::half : (2 * (tile - seg->first_tile) + h) * CUT::half, seg->n - 1);
        r.last[h] = seg->n - 1 - first;
#pragma unroll
        for (int p = 0; p < TN_CUDA_MAX_PLANES; p++) {
            r.plane[h][p] = seg->w.plane[p] + (skip + first) * seg->w.row_size[p];
            r.row_size[p] = (uint32_t)seg->w.row_size[p];
        }
    }
    return r;
}

// A stage of all tiles in order: those of one tile of rows of x one behind the other.
template <typename CUT, int STAGE = TN_SKINNY_BLOCK_STAGE> struct skinny_cursor {
    int tile, stage; // of all tiles; of the tile
    skinny_block_rows rows;
    const char *x;

    __device__ __forceinline__ void enter(const tn_cuda_skinny_args &a, int per_tile)
    {
        int y = a.tile_group ? tile / a.n_tiles : blockIdx.y;
        int64_t skip = a.tile_group ? a.tile_group[y] * a.group_rows : 0;
        rows = skinny_block_rows_of<CUT>(a, a.tile_group ? tile - y * a.n_tiles : tile, skip);
        x = (const char *)a.x + ((int64_t)y * per_tile + stage) * STAGE;
    }
    __device__ __forceinline__ void start(const tn_cuda_skinny_args &a, int per_tile, int at)
    {
        tile = at / per_tile, stage = at - tile * per_tile;
        enter(a, per_tile);
    }
    __device__ __forceinline__ void next(const tn_cuda_skinny_args &a, int per_tile, bool more)
    {
        stage++, x += STAGE;
        if (stage < per_tile || !more) return;
        tile++, stage = 0;
        enter(a, per_tile);
    }
};

// --- copies -------------------------------------------------------------------------------------------

// Threads take units of 16 bytes in order. Where all rows are there, a thread goes from row to row by a fixed step.
template <int TYPE, typename CUT, int PLANE> static __device__ __forceinline__ void skinny_copy_plane(const skinny_block_rows &rows, int stage, char *to)
{
    typedef skinny_slot<TYPE> slot;
    constexpr int units = slot::units(PLANE), first = slot::first(PLANE), bytes = slot::bytes(PLANE), count = 2 * CUT::half * units / CUT::threads;
    constexpr bool whole = slot::unit(PLANE) % 16 == 0, full = slot::elems == TN_SKINNY_K;
    constexpr int step = CUT::threads / (units > 0 ? units : 1); // rows
    constexpr bool even = units > 0 && CUT::threads % (units > 0 ? units : 1) == 0 && CUT::half % step == 0;
    if constexpr (units > 0) {
        uint32_t size = rows.row_size[PLANE], at = (uint32_t)stage * bytes;
        to += 16 * first;
        if constexpr (whole && full && even) {
            if (min(rows.last[0], rows.last[1]) >= CUT::half - 1) {
                int row = threadIdx.x / units, unit = threadIdx.x % units;
                to += row * slot::row_bytes + 16 * unit;
                uint32_t offset = row * size + at + 16 * unit;
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const char *from = rows.plane[h][PLANE] + offset;
#pragma unroll
                    for (int i = 0; i < CUT::half / step; i++, from += step * size) tn_copy16(to + (h * CUT::half + i * step) * slot::row_bytes, from, true);
                }
                return;
            }
        }
#pragma unroll
        for (int i = 0; i < (2 * CUT::half * units + CUT::threads - 1) / CUT::threads; i++) {
            int e = threadIdx.x + i * CUT::threads, row = e / units, unit = e % units;
            if (count * CUT::threads < 2 * CUT::half * units && e >= 2 * CUT::half * units) break;
            int h = row >= CUT::half;
            int source = min(h ? row - CUT::half : row, h ? rows.last[1] : rows.last[0]);
            const char *from = (h ? rows.plane[1][PLANE] : rows.plane[0][PLANE]) + ((uint32_t)source * size + at);
            char *slot_at = to + row * slot::row_bytes + 16 * unit;
            if constexpr (whole) {
                tn_copy16(slot_at, from + 16 * unit, full || at + 16 * unit < size);
            } else {
                int shift = (int)((uintptr_t)from & 15), n = full ? bytes : (int)min((uint32_t)bytes, size - at);
                tn_copy16_partial(slot_at, from - shift + 16 * unit, max(0, min(16, shift + n - 16 * unit)));
            }
        }
    }
}

template <int TYPE, typename CUT, int STAGE = TN_SKINNY_BLOCK_STAGE> static __device__ __forceinline__ void skinny_copy_weights(const skinny_cursor<CUT, STAGE> &c, char *slot)
{
    skinny_copy_plane<TYPE, CUT, 0>(c.rows, c.stage, slot + STAGE);
    skinny_copy_plane<TYPE, CUT, 1>(c.rows, c.stage, slot + STAGE);
    skinny_copy_plane<TYPE, CUT, 2>(c.rows, c.stage, slot + STAGE);
    skinny_copy_plane<TYPE, CUT, 3>(c.rows, c.stage, slot + STAGE);
}

template <int TYPE, typename CUT> static __device__ __forceinline__ void skinny_copy_x(const char *x, char *slot)
{
    constexpr int size = skinny_unit<TYPE>::minimums ? TN_SKINNY_BLOCK_STAGE : TN_SKINNY_BLOCK_X, step = 16 * CUT::threads;
    x += 16 * threadIdx.x, slot += 16 * threadIdx.x;
#pragma unroll
    for (int at = 0; at < size; at += step)
        if (at + step <= size || 16 * (int)threadIdx.x < size - at) tn_copy16(slot + at, x + at, true);
}

// All but the last `pending` groups of copies have arrived.
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

// Rows of this lane in a slot: row tile t, half h. `rows` of the tile: for the planes that are copied in units of memory.
template <int TYPE, typename CUT, int STAGE = TN_SKINNY_BLOCK_STAGE>
static __device__ __forceinline__ skinny_row<TYPE> skinny_row_of(const skinny_block_rows &rows, const char *slot, int stage, int t, int h)
{
    typedef skinny_slot<TYPE> layout;
    int row = 8 * ((int)threadIdx.x / TN_WARP * CUT::tiles + t) + threadIdx.x % TN_WARP / 4;
    skinny_row<TYPE> w;
    w.at = slot + STAGE + (row + h * CUT::half) * layout::row_bytes;
    uint32_t source = (uint32_t)min(row, rows.last[h]);
#pragma unroll
    for (int p = 0; p < TN_CUDA_MAX_PLANES; p++)
        w.shift[p] = ((uint32_t)(uintptr_t)rows.plane[h][p] + source * rows.row_size[p] + (uint32_t)stage * layout::bytes(p)) & 15;
    return w;
}

// Minimums times sums of x, for the 16 runs of a stage: 16 of a sixteenth.
template <int TYPE, int MT>
static __device__ __forceinline__ void skinny_block_minimums(const typename skinny_unit<TYPE>::scale (&sc)[MT][2], const char *sums, skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4;
#pragma unroll
    for (int j = 0; j < SKINNY_NT; j++) {
        const uint32_t *s = (const uint32_t *)sums + (8 * j + lane / 4) * (TN_SKINNY_K / 16);
        uint32_t b[4];
#pragma unroll
        for (int i = 0; i < 4; i++) b[i] = s[skinny_unit<TYPE>::run(q, i)];
#pragma unroll
        for (int t = 0; t < MT; t++) {
            float m[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                uint32_t f[4] = {skinny_unit<TYPE>::minimum(sc[t][0], i), skinny_unit<TYPE>::minimum(sc[t][1], i),
                                 skinny_unit<TYPE>::minimum(sc[t][0], i + 1), skinny_unit<TYPE>::minimum(sc[t][1], i + 1)};
                tn_mma_f16(m, f, b[i], b[i + 1]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) d[t][j][i] -= 16.0f * sc[t][i / 2].dmin * m[i];
        }
    }
}

// Half p of a stage.
template <int TYPE, int MT>
static __device__ __forceinline__ void skinny_block_multiply(const typename skinny_unit<TYPE>::raw (&w)[MT][2], const typename skinny_unit<TYPE>::scale (&sc)[MT][2], int p,
                                                          const char *x, skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4, column = lane / 4;
#pragma unroll
    for (int c = 0; c < 4; c++) {
        uint4 b[SKINNY_NT];
        int unit = TN_SKINNY_UNIT(skinny_unit<TYPE>::chunk(q, p, c), column);
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++) b[j] = *(const uint4 *)(x + 16 * ((8 * j + column) * (TN_SKINNY_K / 8) + unit));
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < MT; t++) {
                uint32_t f[4];
                skinny_unit<TYPE>::expand(w[t][0], sc[t][0], p, c, s, q, f[0], f[2]);
                skinny_unit<TYPE>::expand(w[t][1], sc[t][1], p, c, s, q, f[1], f[3]);
#pragma unroll
                for (int j = 0; j < SKINNY_NT; j++) tn_mma_f16(d[t][j], f, s ? b[j].z : b[j].x, s ? b[j].w : b[j].y);
            }
    }
}

// Half p of a stage, each step of 16 values with a scale of its own.
template <int TYPE, int MT>
static __device__ __forceinline__ void skinny_block_steps(const typename skinny_unit<TYPE>::raw (&w)[MT][2], const typename skinny_unit<TYPE>::scale (&sc)[MT][2], int p,
                                                       const char *x, skinny_sums<MT> &d)
{
    int lane = threadIdx.x % TN_WARP, q = lane % 4, column = lane / 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        uint2 b[SKINNY_NT];
        int unit = TN_SKINNY_UNIT(16 * p + 2 * i + q / 2, column);
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++) b[j] = *(const uint2 *)(x + 16 * ((8 * j + column) * (TN_SKINNY_K / 8) + unit) + 8 * (q % 2));
#pragma unroll
        for (int t = 0; t < MT; t++) {
            uint32_t f[4];
            skinny_unit<TYPE>::step(w[t][0], i / 2, i % 2, f[0], f[2]);
            skinny_unit<TYPE>::step(w[t][1], i / 2, i % 2, f[1], f[3]);
            float by[2] = {skinny_unit<TYPE>::factor(sc[t][0], p, i / 2, i % 2), skinny_unit<TYPE>::factor(sc[t][1], p, i / 2, i % 2)};
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

template <int TYPE, typename CUT>
static __device__ __forceinline__ void skinny_block_stage(const skinny_block_rows &rows, const char *slot, int stage, skinny_sums<CUT::tiles> &total)
{
    typedef skinny_unit<TYPE> unit;
    constexpr int MT = CUT::tiles;
    int q = threadIdx.x % 4;
    skinny_row<TYPE> row[MT][2];
    typename unit::scale sc[MT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        row[i / 2][i % 2] = skinny_row_of<TYPE, CUT>(rows, slot, stage, i / 2, i % 2);
        unit::scales(sc[i / 2][i % 2], row[i / 2][i % 2], q);
    }
    if constexpr (unit::minimums) skinny_block_minimums<TYPE, MT>(sc, slot + TN_SKINNY_BLOCK_X, total);
    skinny_sums<MT> part;
    if constexpr (unit::exact) {
#pragma unroll
        for (int i = 0; i < MT * SKINNY_NT * 4; i++) part[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
    }
#pragma unroll
    for (int p = 0; p < 2; p++) {
        typename unit::raw w[MT][2];
#pragma unroll
        for (int i = 0; i < 2 * MT; i++) unit::load(w[i / 2][i % 2], row[i / 2][i % 2], p, q);
        if constexpr (unit::stepped) skinny_block_steps<TYPE, MT>(w, sc, p, slot, total);
        else if constexpr (unit::exact) skinny_block_multiply<TYPE, MT>(w, sc, p, slot, part);
        else skinny_block_multiply<TYPE, MT>(w, sc, p, slot, total);
    }
    if constexpr (unit::exact) {
#pragma unroll
        for (int t = 0; t < MT; t++)
#pragma unroll
            for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) total[t][j][i] += 16777216.0f * sc[t][i / 2].d * part[t][j][i]; // 2^24
    }
}

// --- the sums of a tile -------------------------------------------------------------------------------

// Where block `block` leaves its part of a tile that begins in it, or before it: [row tile, columns][thread] of four.
template <typename CUT> static __device__ __forceinline__ float4 *skinny_block_part(const tn_cuda_skinny_args &a, int block, bool begins)
{
    return (float4 *)a.partial + (((int64_t)blockIdx.y * gridDim.x + block) * 2 + begins) * (CUT::tiles * SKINNY_NT * CUT::threads) + threadIdx.x;
}

// The block that has a stage, of those of all tiles in order.
static __device__ __forceinline__ int skinny_block_of(int64_t stage, int64_t n_stages)
{
    return (int)(((stage + 1) * gridDim.x - 1) / n_stages);
}

// A part of a tile, which others share: written, and true for the block that came last.
template <typename CUT> static __device__ __forceinline__ bool skinny_block_share(const tn_cuda_skinny_args &a, const skinny_sums<CUT::tiles> &d, int tile, int first, int last)
{
    constexpr int MT = CUT::tiles;
    __shared__ int arrived;
    float4 *to = skinny_block_part<CUT>(a, blockIdx.x, (int)blockIdx.x == first);
#pragma unroll
    for (int e = 0; e < MT * SKINNY_NT; e++) {
        const float(&v)[4] = d[e / SKINNY_NT][e % SKINNY_NT];
        to[e * CUT::threads] = make_float4(v[0], v[1], v[2], v[3]);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) arrived = atomicAdd(&a.arrived[blockIdx.y * a.n_tiles + tile], 1);
    __syncthreads();
    __threadfence();
    return arrived == last - first;
}

// The parts of all blocks of a tile, in order; those of several blocks are on their way at a time.
template <typename CUT> static __device__ __forceinline__ void skinny_block_collect(const tn_cuda_skinny_args &a, skinny_sums<CUT::tiles> &d, int first, int last)
{
    constexpr int MT = CUT::tiles;
    constexpr int BATCH = 4 / MT;
#pragma unroll
    for (int i = 0; i < MT * SKINNY_NT * 4; i++) d[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
    for (int block = first; block <= last; block += BATCH) {
        float4 v[BATCH][MT * SKINNY_NT];
#pragma unroll
        for (int b = 0; b < BATCH; b++)
#pragma unroll
            for (int e = 0; e < MT * SKINNY_NT; e++)
                v[b][e] = block + b <= last ? __ldcg(skinny_block_part<CUT>(a, block + b, block + b == first) + e * CUT::threads) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int b = 0; b < BATCH; b++)
#pragma unroll
            for (int e = 0; e < MT * SKINNY_NT; e++) {
                float(&to)[4] = d[e / SKINNY_NT][e % SKINNY_NT];
                to[0] += v[b][e].x, to[1] += v[b][e].y, to[2] += v[b][e].z, to[3] += v[b][e].w;
            }
    }
}

// The results of a tile, of parts of blocks `begin` to `end` if there are any, while what else they need is on its way. Four sums at a time, the
// others moving up: activations unrolled for all would not fit the cache of instructions.
template <typename CUT>
static __device__ __forceinline__ void skinny_block_finish(const tn_cuda_skinny_args &a, skinny_sums<CUT::tiles> &d, int tile, int y, int begin, int end)
{
    constexpr int MT = CUT::tiles;
    int lane = threadIdx.x % TN_WARP, start = y * TN_SKINNY_BLOCK_COLUMNS + 2 * (lane % 4);
    const tn_cuda_skinny_seg &s = *skinny_block_seg(a, tile);
    int half = CUT::half, own = 8 * ((int)threadIdx.x / TN_WARP * MT) + lane / 4;
    int first[2] = {(a.glu ? tile * half : 2 * (tile - s.first_tile) * half) + own, 0};
    first[1] = a.glu ? s.n : first[0] + half;
    skinny_sums<MT> r;
    float bias[MT][2], scale[SKINNY_NT][2];
    int to[SKINNY_NT][2];
#pragma unroll
    for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int from = start + 8 * j + i;
            to[j][i] = from >= a.m ? -1 : a.row_to ? a.row_to[from] : from;
            scale[j][i] = from < a.m ? a.row_scale[from] : 1.0f;
        }
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
        for (int i = 0; i < 2; i++) bias[t][i] = s.bias && first[i] + 8 * t < s.n ? s.bias[first[i] + 8 * t] : 0.0f;
#pragma unroll
    for (int t = 0; t < MT; t++)
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int from = start + 8 * j + i % 2, c = first[i / 2] + 8 * t;
                r[t][j][i] = a.residual && from < a.m && c < s.n ? a.residual[from * a.residual_ld + c] : 0.0f;
            }
    if (begin <= end) skinny_block_collect<CUT>(a, d, begin, end);
    // What most models have, in line.
    bool silu = a.act == TN_UNARY_SILU && a.glu_limit <= 0.0f && a.glu_alpha <= 0.0f;
    if (MT == 1 && (a.glu ? silu : a.act == TN_UNARY_NONE)) {
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                if (to[j][i] < 0) continue;
                float *row = s.y + to[j][i] * s.ld;
                float v[2] = {d[0][j][i] * scale[j][i], d[0][j][2 + i] * scale[j][i]};
                v[0] = a.glu ? __fdividef(v[0], 1.0f + __expf(-v[0])) * v[1] : v[0] + bias[0][0] + r[0][j][i];
                v[1] += bias[0][1] + r[0][j][2 + i];
                if (first[0] < s.n) row[first[0]] = v[0];
                if (first[1] < s.n) row[first[1]] = v[1];
            }
        return;
    }
#pragma unroll 1
    for (int e = 0; e < MT * SKINNY_NT; e++) {
        int t = e / SKINNY_NT;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            if (to[0][i] < 0) continue;
            float *row = s.y + to[0][i] * s.ld;
            float v[2] = {d[0][0][i] * scale[0][i], d[0][0][2 + i] * scale[0][i]};
            if (a.glu) v[0] = gemm_glu(a.act, a.glu_limit, a.glu_alpha, v[0], v[1]);
            else
#pragma unroll
                for (int h = 0; h < 2; h++) v[h] = gemm_act(a.act, v[h] + (MT == 1 || t == 0 ? bias[0][h] : bias[MT - 1][h])) + r[0][0][2 * h + i];
#pragma unroll
            for (int h = 0; h < 2; h++)
                if (first[h] + 8 * t < s.n) row[first[h] + 8 * t] = v[h];
        }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            int first_to = to[0][i];
            float first_scale = scale[0][i];
#pragma unroll
            for (int j = 0; j + 1 < SKINNY_NT; j++) to[j][i] = to[j + 1][i], scale[j][i] = scale[j + 1][i];
            to[SKINNY_NT - 1][i] = first_to, scale[SKINNY_NT - 1][i] = first_scale;
        }
#pragma unroll
        for (int k = 0; k + 1 < MT * SKINNY_NT; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                d[k / SKINNY_NT][k % SKINNY_NT][i] = d[(k + 1) / SKINNY_NT][(k + 1) % SKINNY_NT][i];
                r[k / SKINNY_NT][k % SKINNY_NT][i] = r[(k + 1) / SKINNY_NT][(k + 1) % SKINNY_NT][i];
            }
    }
}

// --- the kernel ---------------------------------------------------------------------------------------

// What this block does: stages [at, end) of n. Rows of x in groups have enough tiles: blocks take whole ones.
struct skinny_work {
    int n, at, end;
};

static __device__ __forceinline__ skinny_work skinny_work_of(const tn_cuda_skinny_args &a, int per_tile)
{
    int64_t n_tiles = (int64_t)a.n_tiles * (a.tile_group ? *a.n_row_tiles : 1), unit = a.tile_group ? per_tile : 1, n = a.tile_group ? n_tiles : n_tiles * per_tile;
    return {(int)(n * unit), (int)(n * blockIdx.x / gridDim.x * unit), (int)(n * (blockIdx.x + 1) / gridDim.x * unit)};
}

template <int TYPE, typename CUT> static __device__ __forceinline__ void skinny_blocks(const tn_cuda_skinny_args &a)
{
#if __CUDA_ARCH__ >= 800
    extern __shared__ __align__(16) char skinny_shared[];
    constexpr int MT = CUT::tiles, slot_size = TN_SKINNY_BLOCK_STAGE + 2 * CUT::half * skinny_slot<TYPE>::row_bytes;
    int per_tile = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K;
    if (a.tile_group) tn_pdl_wait(); // what comes first decides which weights
    skinny_work work = skinny_work_of(a, per_tile);
    if (work.at >= work.end) return;
    skinny_cursor<CUT> ahead, now;
    ahead.start(a, per_tile, work.at);
    int copied = work.at, early = min((int)SKINNY_EARLY, work.end - work.at);
    const char *x[SKINNY_EARLY] = {ahead.x, ahead.x};
#pragma unroll 1
    for (int s = 0; s < early; s++) {
        if (s > 0) x[1] = ahead.x;
        skinny_copy_weights<TYPE, CUT>(ahead, skinny_shared + s * slot_size);
        ahead.next(a, per_tile, ++copied < work.end);
    }
    static_assert(SKINNY_EARLY == 2, "x has two places");
    tn_pdl_trigger();
    tn_pdl_wait();
#pragma unroll
    for (int s = 0; s < SKINNY_EARLY; s++) {
        if (s < early) skinny_copy_x<TYPE, CUT>(x[s], skinny_shared + s * slot_size);
        tn_copy_commit();
    }
    // A slot is filled again behind the barrier of the stage after it, while others multiply; where there are only two slots, before that
    // stage is waited for.
    bool deep = a.slots > 2;
    int slot = 0, free = deep ? SKINNY_EARLY : 0;
    auto fill = [&]() {
        if (copied < work.end) {
            char *to = skinny_shared + free * slot_size;
            skinny_copy_weights<TYPE, CUT>(ahead, to);
            skinny_copy_x<TYPE, CUT>(ahead.x, to);
            ahead.next(a, per_tile, ++copied < work.end);
        }
        tn_copy_commit();
        free = free + 1 == a.slots ? 0 : free + 1;
    };
#pragma unroll 1
    for (int i = SKINNY_EARLY; i < a.slots - 1; i++) fill();
    skinny_sums<MT> total = {};
    now.start(a, per_tile, work.at);
    for (int at = work.at; at < work.end;) {
        if (deep) skinny_wait(a.slots - 2);
        if (deep || at > work.at) {
            __syncthreads();
            fill();
        }
        if (!deep) {
            skinny_wait(1);
            __syncthreads();
        }
        skinny_block_stage<TYPE, CUT>(now.rows, skinny_shared + slot * slot_size, now.stage, total);
        slot = slot + 1 == a.slots ? 0 : slot + 1;
        int tile = now.tile, stage = now.stage;
        bool ends = stage + 1 == per_tile || at + 1 == work.end;
        now.next(a, per_tile, ++at < work.end);
        if (!ends) continue;
        int begin = tile * per_tile, first = 0, last = -1;
        bool mine = begin >= work.at && stage + 1 == per_tile;
        if (!mine) {
            first = skinny_block_of(begin, work.n), last = skinny_block_of(begin + per_tile - 1, work.n);
            mine = skinny_block_share<CUT>(a, total, tile, first, last);
        }
        int y = a.tile_group ? tile / a.n_tiles : blockIdx.y;
        if (mine) skinny_block_finish<CUT>(a, total, a.tile_group ? tile - y * a.n_tiles : tile, y, first, last);
#pragma unroll
        for (int i = 0; i < MT * SKINNY_NT * 4; i++) total[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
    }
    tn_copy_wait<0>();
#else
    __trap();
#endif
}

// With tiles of 16 TILES WARPS rows of weights.
#define SKINNY_BLOCKS(TYPE, ROWS, TILES, WARPS)                                                                                \
    TN_ENTRY __launch_bounds__(32 * WARPS, 1) tn_skinny_##TYPE##_##ROWS(const __grid_constant__ tn_cuda_skinny_args a)            \
    {                                                                                                                       \
        static_assert(16 * TILES * WARPS == ROWS, "the name says what a tile has");                                         \
        skinny_blocks<TN_TYPE_##TYPE, skinny_cut<TILES, WARPS>>(a);                                                               \
    }

#endif
