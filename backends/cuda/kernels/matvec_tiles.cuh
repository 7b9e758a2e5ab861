// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One row of x times quantised weights through integer tensor cores: with one column, instructions are what limits (3.3 a weight with dp4a, of
// which memory leaves time for 2), so one mma.m16n8k32 takes 16 rows of weights, and its 8 columns hold sums of 8 runs of 16 elements, each with
// its own scales: column n of B has the x of run n and zeros elsewhere. So B comes from a row of x and a zero, A from the packed
// weights as they are, and a lane has the sums of two runs of rows r and r + 8 to scale.
//
// A tile is 16 rows times 256 elements. Lane 4 r + c takes 16 bytes of rows r and r + 8, piece 4 h + c of the tile's 8 (h: half), which hold two runs
// of 16 elements: `low` and `high` (nibbles, or bytes 64 apart). Weights are unsigned and up to a factor 16 too large; integers start from 1.5 * 2^23 as a
// float (less zero point times the sum of x), so that sums are floats after one subtraction.
//
// Slots of the ring of a warp hold a tile: planes one after another, rows of a plane one after another, 16-byte pieces of plane 0 in odd rows moved by 64
// bytes so that lanes meet no bank twice. Groups of warps share the rows of tiles of a block,
// and the slices of a group the tiles of such a row, in turns.
#ifndef TN_CUDA_MATVEC_TILES_CUH
#define TN_CUDA_MATVEC_TILES_CUH

#include "backends/cuda/kernels/matvec.cuh"

enum { MT_ROWS = TN_MATVEC_MMA_ROWS, MT_HALF = 128 };

// --- the ring ---------------------------------------------------------------------------------------

template <int TYPE> struct mt_tile {
    // Bytes of a row of a tile in a plane, and the pieces of 16 bytes that hold them.
    static constexpr __host__ __device__ int bytes(int plane) { return TN_MATVEC_MMA_K(TYPE) / TN_MATVEC_BLOCK_ELEMS(TYPE) * mv_unit_size<TYPE>(plane); }
    static constexpr __host__ __device__ int pieces(int plane) { return TN_MATVEC_MMA_PIECES(TYPE, mv_unit_size<TYPE>(plane)); }
    static constexpr __host__ __device__ int at(int plane)
    {
        return 16 * MT_ROWS * ((plane > 0 ? pieces(0) : 0) + (plane > 1 ? pieces(1) : 0) + (plane > 2 ? pieces(2) : 0) + (plane > 3 ? pieces(3) : 0));
    }
    static constexpr int planes = mv_n_planes<TYPE>(), size = at(planes), halves = TN_MATVEC_MMA_K(TYPE) / MT_HALF;
    static constexpr bool odd = bytes(planes - 1) % 16 != 0; // the last plane: a tile may begin anywhere in its pieces
};

// What the warp copies next: pieces of rows `lane / pieces` and on of each plane.
struct mt_feed {
    const char *from[TN_CUDA_MAX_PLANES];
    int part, tiles, row, end; // tiles left of the row of tiles; its first row, and the end of the block's rows, in the part
};

// To the warp's first tile of the next rows.
template <int TYPE> static __device__ __forceinline__ void mt_feed_rows(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f)
{
    typedef mt_tile<TYPE> tile;
    int rows = MT_ROWS << w.group_shift;
    f.row += rows;
    f.tiles = w.n_tiles;
    if (f.row < f.end) {
        const tn_cuda_matvec_part &p = a.part[f.part];
#pragma unroll
        for (int i = 0; i < tile::planes; i++) f.from[i] += rows * (int)p.row_size[i] - (w.n_tiles << w.slice_shift) * tile::bytes(i);
        return;
    }
    while (f.row >= f.end) {
        if (f.part + 1 >= a.n_parts) {
            f.tiles = 0;
            return;
        }
        mv_range r = mv_part_rows(a, w, ++f.part);
        f.row = r.from + w.group * MT_ROWS, f.end = r.to;
    }
    const tn_cuda_matvec_part &p = a.part[f.part];
#pragma unroll
    for (int i = 0; i < tile::planes; i++)
        f.from[i] = p.plane[i] + (w.expert + f.row + w.lane / tile::pieces(i)) * p.row_size[i] + w.slice * tile::bytes(i) + w.lane % tile::pieces(i) * 16;
}

// Starts the copies of the next tile into a slot, if there is one left.
template <int TYPE> static __device__ __forceinline__ void mt_feed_next(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f, char *slot)
{
    typedef mt_tile<TYPE> tile;
    if (f.tiles > 0) {
        const tn_cuda_matvec_part &p = a.part[f.part];
#pragma unroll
        for (int i = 0; i < tile::planes; i++) {
            const int pieces = tile::pieces(i), rows = TN_WARP / pieces, step = rows * (int)p.row_size[i]; // rows that a copy of the warp has
            int row = w.lane / pieces, piece = w.lane % pieces;
            if (i == 0) piece ^= row % 2 * 4;
            char *to = slot + tile::at(i) + (row * pieces + piece) * 16;
            const char *from = f.from[i];
            if (tile::odd && i + 1 == tile::planes) from = (const char *)((uintptr_t)from & ~(uintptr_t)15);
#pragma unroll
            for (int j = 0; j < MT_ROWS; j += rows)
                if (rows <= MT_ROWS || w.lane < MT_ROWS) tn_copy16(to + j * pieces * 16, from + j / rows * step, true);
            f.from[i] += tile::bytes(i) << w.slice_shift;
        }
        if (--f.tiles == 0) mt_feed_rows<TYPE>(a, w, f);
    }
    tn_copy_commit();
}

// All slots but the last are filled; that one is when the first is being read.
template <int TYPE> static __device__ __forceinline__ void mt_feed_first(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f)
{
    f.part = -1, f.row = f.end = 0;
    mt_feed_rows<TYPE>(a, w, f);
#pragma unroll 1
    for (int i = 0; i + 1 < a.n_slots; i++) mt_feed_next<TYPE>(a, w, f, w.ring + i * mt_tile<TYPE>::size);
}

// --- the product of a tile ----------------------------------------------------------------------------

// Where the elements of the runs of piece c of a half of a tile lie: `low`, and `high` that many later; the columns that they get.
template <int TYPE> struct mt_runs {
    static constexpr bool k45 = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K, block32 = TYPE == TN_TYPE_Q4_0;
    static constexpr int high = k45 ? 32 : block32 ? 16 : 64;
    static __device__ __forceinline__ int low(int c) { return k45 ? 64 * (c / 2) + 16 * (c % 2) : block32 ? 32 * c : 16 * c; }
    static __device__ __forceinline__ bool has_low(int n, int c) { return block32 ? n == 2 * c : n == c; }
    static __device__ __forceinline__ bool has_high(int n, int c) { return block32 ? n == 2 * c + 1 : n == 4 + c; }
    // The first of the two runs whose sums lane c has, which are next to each other.
    static __device__ __forceinline__ int first(int c) { return block32 ? 32 * c : low(c % 2 * 2) + (c >= 2 ? high : 0); }
    static __device__ __forceinline__ bool is_high(int c, int run) { return block32 ? run == 1 : c >= 2; }
    static constexpr bool raw = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q4_0; // `high` stays where it is, times 16
    static constexpr int zero = TYPE == TN_TYPE_Q4_0 ? 8 : TYPE == TN_TYPE_Q6_K ? 32 : 0;
};

// The lane's x: bytes of its two runs or zeros, and scales and sums of the runs that it has the products of.
struct mt_x {
    const char *low, *high; // of tile 0
    int low_step, high_step; // to the next half
    const float *d;
    const short *sum;
};

template <int TYPE> static __device__ __forceinline__ mt_x mt_x_of(const char *x, int k, const char *zeros, int lane)
{
    typedef mt_runs<TYPE> runs;
    int n = lane / 4, c = lane % 4, first = runs::first(c) / 16;
    bool low = runs::has_low(n, c), high = runs::has_high(n, c);
    return {low ? x + runs::low(c) : zeros, high ? x + runs::low(c) + runs::high : zeros, low ? MT_HALF : 0, high ? MT_HALF : 0,
            (const float *)(x + TN_ROUNDED_D(k)) + first, (const short *)(x + TN_ROUNDED_SUM(k)) + first};
}

// mma.m16n8k32, s32 = (u8 or s8) x s8 + c. Compute capability 8.0.
template <bool SIGNED>
static __device__ __forceinline__ void mt_mma(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// The unsigned bytes of `low` and `high` of piece 4 h + c of row `row`.
template <int TYPE> static __device__ __forceinline__ void mt_load(uint4 &low, uint4 &high, const char *slot, int row, int h, int c)
{
    typedef mt_tile<TYPE> tile;
    const char *at = slot + row * (tile::pieces(0) * 16);
    if constexpr (TYPE == TN_TYPE_Q8_0) {
        low = *(const uint4 *)(at + (c ^ (row % 2 * 4)) * 16), high = *(const uint4 *)(at + ((4 + c) ^ (row % 2 * 4)) * 16);
        return;
    }
    uint4 v = *(const uint4 *)(at + ((4 * h + c) ^ (row % 2 * 4)) * 16);
    low = mv_low(v);
    high = mt_runs<TYPE>::raw ? make_uint4(v.x & 0xf0f0f0f0u, v.y & 0xf0f0f0f0u, v.z & 0xf0f0f0f0u, v.w & 0xf0f0f0f0u) : mv_high(v);
    if constexpr (TYPE == TN_TYPE_Q5_K) {
        uint4 b = mv_right(*(const uint4 *)(slot + tile::at(1) + row * 32 + c % 2 * 16), 4 * h + (c & 2));
        low = mv_over(low, mv_left(b, 4), 0x10101010u), high = mv_over(high, mv_left(b, 3), 0x10101010u);
    } else if constexpr (TYPE == TN_TYPE_Q6_K) {
        uint4 b = mv_right(*(const uint4 *)(slot + tile::at(1) + row * 64 + h * 32 + c % 2 * 16), c & 2);
        low = mv_over(low, mv_left(b, 4), 0x30303030u), high = mv_over(high, b, 0x30303030u);
    }
}

// Scales of a row of a tile for the runs of the lane, in both halves.
template <int TYPE> struct mt_scales {
    float w[2][2]; // of the halves, of the runs; blocks of 32 and groups of 32: w[h][1] is w[h][0]
    float m[2];    // minimum

    __device__ __forceinline__ void load(const char *slot, int row, int c, uint32_t over)
    {
        typedef mt_tile<TYPE> tile;
        if constexpr (mt_runs<TYPE>::k45) {
            uint4 head = *(const uint4 *)(slot + tile::at(tile::planes - 1) + row * 16);
            int g = c % 2 * 2 + c / 2; // group of 32 in the half
            uint32_t b0 = __byte_perm(head.y, 0, 0x4440 + g), b1 = __byte_perm(head.z, 0, 0x4440 + g), b2 = __byte_perm(head.w, 0, 0x4440 + g);
            float d = tn_half_bits(head.x & 0xffffu), dm = tn_half_bits(head.x >> 16);
            w[0][0] = d * number(b0 & 63u), m[0] = dm * number(b1 & 63u);
            w[1][0] = d * number((b2 & 15u) | (b0 >> 2 & 0x30u)), m[1] = dm * number(b2 >> 4 | (b1 >> 2 & 0x30u));
            w[0][1] = w[0][0], w[1][1] = w[1][0];
        } else if constexpr (TYPE == TN_TYPE_Q6_K) {
            const char *s = slot + tile::at(2) + row * 16 + c % 2 * 2 + c / 2 * 4;
            float d = tn_half_bits(*(const uint16_t *)(slot + tile::at(3) + row * 16 + over));
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int two = *(const short *)(s + 8 * h);
                w[h][0] = d * (float)(int8_t)two, w[h][1] = d * (float)(two >> 8);
            }
        } else {
            // d of blocks of 32: piece c of a half, or two pieces of 16.
            const char *s = slot + tile::at(1) + row * 16 + over;
            int block = TYPE == TN_TYPE_Q4_0 ? c : c % 2 + c / 2 * 2;
#pragma unroll
            for (int h = 0; h < tile::halves; h++) w[h][0] = w[h][1] = tn_half_bits(*(const uint16_t *)(s + (4 * h + block) * 2));
        }
    }

    static __device__ __forceinline__ float number(uint32_t n)
    {
        return __uint_as_float(n | 0x4b000000u) - 8388608.0f;
    }
};

// Adds the products of a tile to the lane's parts of rows lane / 4 and 8 more. over: where the last plane begins in its copies, of both rows.
template <int TYPE>
static __device__ __forceinline__ void mt_dot(const char *slot, const mt_x &x, int t, int lane, const uint32_t (&over)[2], float (&total)[2])
{
    typedef mt_runs<TYPE> runs;
    int r = lane / 4, c = lane % 4;
    mt_scales<TYPE> scales[2];
#pragma unroll
    for (int i = 0; i < 2; i++) scales[i].load(slot, r + 8 * i, c, over[i]);
#pragma unroll
    for (int h = 0; h < mt_tile<TYPE>::halves; h++) {
        int half = mt_tile<TYPE>::halves * t + h;
        uint4 b_low = *(const uint4 *)(x.low + half * x.low_step), b_high = *(const uint4 *)(x.high + half * x.high_step);
        float2 d = *(const float2 *)(x.d + half * 8);
        int sums = runs::zero || runs::k45 ? *(const int *)(x.sum + half * 8) : 0, s0 = (short)sums, s1 = sums >> 16;
        int z0 = MV_ZERO, z1 = MV_ZERO;
        if (runs::zero) {
            z0 -= runs::zero * (runs::raw && runs::is_high(c, 0) ? 16 : 1) * s0;
            z1 -= runs::zero * (runs::raw && runs::is_high(c, 1) ? 16 : 1) * s1;
        }
        float xs = runs::k45 ? d.x * (float)s0 + d.y * (float)s1 : 0.0f;
        if (runs::raw) {
            d.x *= runs::is_high(c, 0) ? 0.0625f : 1.0f;
            d.y *= runs::is_high(c, 1) ? 0.0625f : 1.0f;
        }
        uint4 low[2], high[2];
#pragma unroll
        for (int i = 0; i < 2; i++) mt_load<TYPE>(low[i], high[i], slot, r + 8 * i, h, c);
        int sum[4] = {z0, z1, z0, z1};
        constexpr bool is_signed = TYPE == TN_TYPE_Q8_0;
        mt_mma<is_signed>(sum, low[0].x, low[1].x, low[0].y, low[1].y, b_low.x, b_low.y);
        mt_mma<is_signed>(sum, low[0].z, low[1].z, low[0].w, low[1].w, b_low.z, b_low.w);
        mt_mma<is_signed>(sum, high[0].x, high[1].x, high[0].y, high[1].y, b_high.x, b_high.y);
        mt_mma<is_signed>(sum, high[0].z, high[1].z, high[0].w, high[1].w, b_high.z, b_high.w);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const mt_scales<TYPE> &s = scales[i];
            float p0 = mv_float(sum[2 * i]) * d.x, p1 = mv_float(sum[2 * i + 1]) * d.y;
            if (TYPE == TN_TYPE_Q6_K) total[i] += s.w[h][0] * p0 + s.w[h][1] * p1;
            else total[i] += s.w[h][0] * (p0 + p1);
            if (runs::k45) total[i] -= s.m[h] * xs;
        }
    }
}

// --- the share of a warp --------------------------------------------------------------------------------

// All parts, with x in shared memory. Sums as those of mv_run_part with one column.
template <int TYPE> static __device__ __forceinline__ void mt_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w, char *shared, const char *zeros, mt_feed &feed)
{
    typedef mt_tile<TYPE> tile;
    constexpr int last = tile::planes - 1;
    float *sums = (float *)(shared + a.sums_at) + w.slice;
    mt_x x = mt_x_of<TYPE>(shared + a.x_at, a.k, zeros, w.lane);
    char *slot = w.ring, *const end = w.ring + a.n_slots * tile::size;
    for (int part = 0; part < a.n_parts; part++) {
        mv_range block = mv_part_rows(a, w, part);
        const tn_cuda_matvec_part &p = a.part[part];
#pragma unroll 1
        for (int row = block.from + w.group * MT_ROWS; row < block.to; row += MT_ROWS << w.group_shift) {
            float total[2] = {0.0f, 0.0f};
            uint32_t over[2] = {};
            if (tile::odd)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    over[i] = (uint32_t)(uintptr_t)p.plane[last] + (uint32_t)(w.expert + row + w.lane / 4 + 8 * i) * (uint32_t)p.row_size[last] +
                              (uint32_t)(w.slice * tile::bytes(last));
#pragma unroll 1
            for (int t = w.slice; t < a.n_tiles; t += 1 << w.slice_shift) {
                mv_wait(a.n_slots);
                __syncwarp(); // all have read the slot before, and see this one
                mt_feed_next<TYPE>(a, w, feed, slot == w.ring ? end - tile::size : slot - tile::size);
                uint32_t at[2] = {tile::odd ? over[0] & 15u : 0, tile::odd ? over[1] & 15u : 0};
                mt_dot<TYPE>(slot, x, t, w.lane, at, total);
                over[0] += tile::bytes(last) << w.slice_shift, over[1] += tile::bytes(last) << w.slice_shift;
                slot += tile::size;
                if (slot == end) slot = w.ring;
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                total[i] += __shfl_xor_sync(0xffffffffu, total[i], 1);
                total[i] += __shfl_xor_sync(0xffffffffu, total[i], 2);
                if (w.lane % 4 == 0) sums[(row - block.from + w.lane / 4 + 8 * i) * a.sums_stride] = total[i];
            }
        }
        sums += (block.to - block.from) * a.sums_stride;
    }
}

// Block `block` of those that share the rows of `a`.
template <int TYPE> static __device__ __forceinline__ void mt_run(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ float squares[1][TN_WARP]; // of x, in parts of warps; complete at the barrier before mv_finish
    __shared__ uint4 zeros;               // seen by all after the barrier in mv_activations
    mv_warp w = mv_warp_of(a, block, shared);
    w.n_tiles = (a.n_tiles - w.slice + a.n_slices - 1) >> a.slice_shift; // the slices take tiles in turns, so that rows are read in long runs
    if (!a.late) tn_pdl_trigger();
    mt_feed feed;
    // Which expert, a predecessor says.
    if (!a.ids) mt_feed_first<TYPE>(a, w, feed);
    if (threadIdx.x == 0) zeros = make_uint4(0, 0, 0, 0);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_row r = mv_row_of(a, w);
    if (a.ids) mt_feed_first<TYPE>(a, w, feed);
    mv_activations<TYPE, 1>(a, w, r.x, r.x_row, shared + a.x_at, squares);
    mv_ahead ahead = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < w.end - w.first) ahead = mv_load_ahead(a, mv_result_of<1>(a, w, threadIdx.x), r.y_row);
    mt_run_parts<TYPE>(a, w, shared, (const char *)&zeros, feed);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mv_finish<1>(a, w, (const float *)(shared + a.sums_at), squares, r.y_row, r.none, ahead);
}

#define TN_MATVEC_TILES(TYPE)                                                                                                         \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1) tn_matvec_tiles_##TYPE(const __grid_constant__ tn_cuda_matvec_args a)      \
    {                                                                                                                                 \
        mt_run<TN_TYPE_##TYPE>(a, blockIdx.x);                                                                                        \
    }
// Weights of two types for one row of x: the first blocks have those of the first type.
#define TN_MATVEC_TILES_PAIR(FIRST, SECOND)                                                                                           \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                                          \
        tn_matvec_tiles_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                                             \
    {                                                                                                                                 \
        int n = a.first_blocks, block = blockIdx.x;                                                                                   \
        if (block < n) mt_run<TN_TYPE_##FIRST>(a.of[0], block);                                                                       \
        else mt_run<TN_TYPE_##SECOND>(a.of[1], block - n);                                                                            \
    }

#endif
