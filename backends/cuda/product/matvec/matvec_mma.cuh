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
#ifndef TN_CUDA_MATVEC_MMA_CUH
#define TN_CUDA_MATVEC_MMA_CUH

#include "backends/cuda/product/matvec/matvec.cuh"

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

// The same value, which the compiler takes for a new one: it would compute again in every round of a loop what is made of a few bits.
static __device__ __forceinline__ int mt_keep(int v)
{
    int kept;
    asm volatile("mov.u32 %0, %1;" : "=r"(kept) : "r"(v));
    return kept;
}

// Where in a slot the lane's copies of planes go: of the first one, of all others.
template <int TYPE> static __device__ __forceinline__ int2 mt_copy_to(int lane)
{
    const int pieces = mt_tile<TYPE>::pieces(0), row = lane / pieces;
    return make_int2(mt_keep((row * pieces + (lane % pieces ^ row % 2 * 4)) * 16), mt_keep(lane * 16));
}

// Starts the copies of a tile: `from` is where the lane's first piece of each plane is, rows are row_size bytes apart. Whole lines are asked for: how many
// requests are under way is what limits copies, and the small planes have 2 to 64 bytes of a row in a tile (8B Q4_K_M on an H200: 527 to 552 tok/s with
// lines of these, 555 with all).
template <int TYPE>
static __device__ __forceinline__ void mt_copy(int lane, int2 slot_to, const char *const (&from)[TN_CUDA_MAX_PLANES], const int (&row_size)[TN_CUDA_MAX_PLANES],
                                               char *slot)
{
    typedef mt_tile<TYPE> tile;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        const int pieces = tile::pieces(i), rows = TN_WARP / pieces; // rows that a copy of the warp has
        char *to = slot + tile::at(i) + (i == 0 ? slot_to.x : slot_to.y);
        const char *at = from[i];
        if (tile::odd && i + 1 == tile::planes) at = (const char *)((uintptr_t)at & ~(uintptr_t)15);
#pragma unroll
        for (int j = 0; j < MT_ROWS; j += rows)
            if (rows <= MT_ROWS || lane < MT_ROWS) tn_copy16_line(to + j * pieces * 16, at + (int64_t)row_size[i] * j);
    }
}

// What the warp copies next.
struct mt_feed {
    const char *from[TN_CUDA_MAX_PLANES]; // the lane's first pieces of tile 0
    int row_size[TN_CUDA_MAX_PLANES];
    int part, rows, t; // rows of tiles left of the part, 0: none are left at all; the tile of the first of them
    int2 to;           // mt_copy_to
};

// Rows of tiles that a group of warps has of a block's rows.
static __device__ __forceinline__ int mt_rows(const mv_warp &w, mv_range block)
{
    int n = (block.to - block.from) / MT_ROWS - w.group;
    return n <= 0 ? 0 : (n + (1 << w.group_shift) - 1) >> w.group_shift;
}

// To the warp's first tile of the next part that it has rows of; none: no tiles are left.
template <int TYPE> static __device__ __forceinline__ void mt_feed_part(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f)
{
    typedef mt_tile<TYPE> tile;
    mv_range r;
    do {
        if (f.part + 1 >= a.n_parts) return;
        r = mv_part_rows(a, w, ++f.part);
        f.rows = mt_rows(w, r);
    } while (f.rows == 0);
    const tn_cuda_matvec_part &p = a.part[f.part];
    int row = r.from + w.group * MT_ROWS;
    f.t = w.slice;
#pragma unroll
    for (int i = 0; i < tile::planes; i++) {
        f.row_size[i] = (int)p.row_size[i];
        f.from[i] = p.plane[i] + (w.expert + row + w.lane / tile::pieces(i)) * p.row_size[i] + w.lane % tile::pieces(i) * 16;
    }
}

// Starts the copies of the next tile into a slot, if there is one left.
template <int TYPE> static __device__ __forceinline__ void mt_feed_next(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f, char *slot)
{
    typedef mt_tile<TYPE> tile;
    if (f.rows > 0) {
        const char *from[TN_CUDA_MAX_PLANES];
#pragma unroll
        for (int i = 0; i < tile::planes; i++) from[i] = f.from[i] + (int64_t)f.t * tile::bytes(i);
        mt_copy<TYPE>(w.lane, f.to, from, f.row_size, slot);
        f.t += 1 << w.slice_shift;
        if (f.t >= a.n_tiles) {
            f.t = w.slice;
#pragma unroll
            for (int i = 0; i < tile::planes; i++) f.from[i] += (int64_t)f.row_size[i] * (MT_ROWS << w.group_shift);
            if (--f.rows == 0) mt_feed_part<TYPE>(a, w, f);
        }
    }
    tn_copy_commit();
    if (a.n_slots == TN_MATVEC_LEAST_SLOTS) tn_copy_commit(); // see mt_wait
}

template <int TYPE> static __device__ __forceinline__ void mt_feed_start(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f)
{
    f.part = -1, f.rows = 0;
    f.to = mt_copy_to<TYPE>(w.lane);
    mt_feed_part<TYPE>(a, w, f);
}

// Slots from .. to - 1. All but the last are filled before the first is read.
template <int TYPE> static __device__ __forceinline__ void mt_feed_first(const tn_cuda_matvec_args &a, const mv_warp &w, mt_feed &f, int from, int to)
{
#pragma unroll 1
    for (int i = from; i < to; i++) mt_feed_next<TYPE>(a, w, f, w.ring + i * mt_tile<TYPE>::size);
}

// Until the oldest of the copies under way, those of all slots but one, has arrived. With two slots each copy is followed by an empty group, so that there is
// nothing to decide here, where the warp waits anyway.
static __device__ __forceinline__ void mt_wait()
{
    static_assert(TN_MATVEC_LEAST_SLOTS == 2 && TN_MATVEC_MMA_SLOTS == 3, "two slots or three");
    tn_copy_wait<1>();
}

// --- x ------------------------------------------------------------------------------------------------

// Where the elements of the runs of piece c of a half of a tile lie: `low`, and `high` that many later; the columns that they get.
template <int TYPE> struct mt_runs {
    static constexpr bool k45 = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K, block32 = TYPE == TN_TYPE_Q4_0;
    static constexpr int high = k45 ? 32 : block32 ? 16 : 64;
    static __device__ __forceinline__ int low(int c) { return k45 ? 64 * (c / 2) + 16 * (c % 2) : block32 ? 32 * c : 16 * c; }
    static __device__ __forceinline__ bool has_low(int n, int c) { return block32 ? n == 2 * c : n == c; }
    static __device__ __forceinline__ bool has_high(int n, int c) { return block32 ? n == 2 * c + 1 : n == 4 + c; }
    // Lane c has the sums of two runs next to each other: the pair of the four of a half.
    static __device__ __forceinline__ int pair(int c) { return block32 ? c : k45 ? c % 2 * 2 + c / 2 : c; }
    static __device__ __forceinline__ bool is_high(int pair, int run) { return block32 ? run == 1 : k45 ? pair % 2 == 1 : pair >= 2; }
    static constexpr bool raw = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q4_0; // `high` stays where it is, times 16
    static constexpr int zero = TYPE == TN_TYPE_Q4_0 ? 8 : TYPE == TN_TYPE_Q6_K ? 32 : 0;
};

// What products of a pair of runs need of x besides its bytes: factors of their sums, and what sums start from, or, for the minimum, the
// sum of x (a sixteenth of it in odd halves, see mt_scales).
template <int TYPE> static __device__ __forceinline__ int4 mt_head(int pair, float d0, float d1, int sum0, int sum1)
{
    typedef mt_runs<TYPE> runs;
    bool high0 = runs::raw && runs::is_high(pair % 4, 0), high1 = runs::raw && runs::is_high(pair % 4, 1);
    float sum = d0 * (float)sum0 + d1 * (float)sum1;
    int4 v = {__float_as_int(high0 ? d0 * 0.0625f : d0), __float_as_int(high1 ? d1 * 0.0625f : d1), 0, 0};
    if (runs::k45) v.z = __float_as_int(pair / 4 % 2 ? sum * 0.0625f : sum);
    if (runs::zero) v.z = MV_ZERO - runs::zero * (high0 ? 16 : 1) * sum0, v.w = MV_ZERO - runs::zero * (high1 ? 16 : 1) * sum1;
    return v;
}

// A pair of runs of a row that was rounded before.
struct mt_pair {
    int4 q[2];
    float2 d;
    int sums;
};

static __device__ __forceinline__ mt_pair mt_load_pair(const char *row, int k, int i, bool valid)
{
    mt_pair p = {};
    if (!valid) return p;
    p.q[0] = __ldcg((const int4 *)row + 2 * i), p.q[1] = __ldcg((const int4 *)row + 2 * i + 1);
    p.d = __ldcg((const float2 *)(row + TN_QUANTISED_D(k)) + i);
    p.sums = __ldcg((const int *)(row + TN_QUANTISED_SUM(k)) + i);
    return p;
}

// Times `factor`, to pair i of a row of k in shared memory: bytes, then heads.
template <int TYPE> static __device__ __forceinline__ void mt_put_pair(const mt_pair &p, float factor, char *x, int k, int i)
{
    ((int4 *)x)[2 * i] = p.q[0], ((int4 *)x)[2 * i + 1] = p.q[1];
    ((int4 *)(x + k))[i] = mt_head<TYPE>(i, p.d.x * factor, p.d.y * factor, (short)p.sums, p.sums >> 16);
}

// The lane's 8 values of a pair, of which four lanes in sequence have all; the whole warp takes part.
template <int TYPE> static __device__ __forceinline__ void mt_round_pair(const float4 (&v)[2], int at, bool valid, float factor, char *x, int k)
{
    mv_quantise8 r = mv_round8(v);
    float d1 = __shfl_xor_sync(0xffffffffu, r.d, 2);
    int sum1 = __shfl_xor_sync(0xffffffffu, r.sum, 2);
    if (!valid) return;
    *(int2 *)(x + at) = r.words;
    if (at % 32 == 0) ((int4 *)(x + k))[at / 32] = mt_head<TYPE>(at / 32, r.d * factor, d1 * factor, r.sum, sum1);
}

template <int TYPE> struct mt_to_shared {
    char *x;
    int k;
    __device__ __forceinline__ void operator()(const float4 (&v)[2], int at, bool valid) const { mt_round_pair<TYPE>(v, at, valid, 1.0f, x, k); }
};

// All threads: the row of x to shared memory, and its sum of squares; slots from `first` on are filled once it is asked for.
template <int TYPE>
static __device__ __forceinline__ void mt_activations(const tn_cuda_matvec_args &a, const mv_warp &w, const mv_row &r, char *shared, float *squares, mt_feed &feed, int first)
{
    float s = 0.0f;
    bool ready = a.quantised_x.rows != nullptr;
    const char *row = a.quantised_x.rows + r.x_row * a.quantised_x.row_size;
    int i = threadIdx.x, pairs = ready ? a.k / 32 : 0;
    mt_pair mine = mt_load_pair(row, a.k, i, i < pairs);
    mt_feed_first<TYPE>(a, w, feed, first, a.n_slots - 1);
    for (; i < pairs; i += blockDim.x, mine = mt_load_pair(row, a.k, i, i < pairs)) mt_put_pair<TYPE>(mine, 1.0f, shared, a.k, i);
    if (!ready) s = mv_round_row(r.x, a.norm, a.k, mt_to_shared<TYPE>{shared, a.k});
    if (a.norm) {
        // Of rows rounded before the last warp adds the squares: it has the fewest pairs to bring.
        int warp = threadIdx.x / TN_WARP, last = (int)blockDim.x / TN_WARP - 1;
        if (!ready) s = tn_warp_sum(s);
        else if (warp == last) s = mv_sum_squares(row, a.k, w.lane);
        if (w.lane == 0 && (!ready || warp == last)) squares[ready ? 0 : warp] = s;
    }
    __syncthreads();
}

// The lane's x: bytes of its two runs or zeros, and the heads of the pairs that it has the products of.
struct mt_x {
    const char *low, *high; // of tile 0
    int low_step, high_step; // to the next half
    const int4 *head;
    int2 pieces; // of weights: where pieces c and 4 + c of row lane / 4 are in a slot
};

template <int TYPE> static __device__ __forceinline__ mt_x mt_x_of(const char *x, int k, const char *zeros, int lane)
{
    typedef mt_runs<TYPE> runs;
    int n = lane / 4, c = lane % 4;
    bool low = runs::has_low(n, c), high = runs::has_high(n, c);
    int row = n * (mt_tile<TYPE>::pieces(0) * 16), c0 = (c ^ n % 2 * 4) * 16;
    return {low ? x + runs::low(c) : zeros, high ? x + runs::low(c) + runs::high : zeros, mt_keep(low ? MT_HALF : 0), mt_keep(high ? MT_HALF : 0),
            (const int4 *)(x + k) + runs::pair(c), make_int2(mt_keep(row + c0), mt_keep(row + (c0 ^ 64)))};
}

// --- the product of a tile ----------------------------------------------------------------------------

// mma.m16n8k32, s32 = (u8 or s8) x s8 + c. Compute capability 8.0.
template <bool SIGNED>
static __device__ __forceinline__ void mt_mma(int (&d)[4], const uint4 &r0, const uint4 &r8, bool second, const uint4 &b, int c0, int c1, int c2, int c3)
{
    uint32_t a0 = second ? r0.z : r0.x, a1 = second ? r8.z : r8.x, a2 = second ? r0.w : r0.y, a3 = second ? r8.w : r8.y, b0 = second ? b.z : b.x, b1 = second ? b.w : b.y;
#if __CUDA_ARCH__ >= 800
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2), "r"(c3));
#else
    __trap();
#endif
}

// The unsigned bytes of `low` and `high` of piece 4 h + c of row `row`. pieces: where pieces c and 4 + c of row lane / 4 are.
template <int TYPE> static __device__ __forceinline__ void mt_load(uint4 &low, uint4 &high, const char *slot, int2 pieces, int lane, int i, int h)
{
    typedef mt_tile<TYPE> tile;
    const char *at = slot + i * (8 * 16 * tile::pieces(0));
    int row = lane / 4 + 8 * i, c = lane % 4;
    if constexpr (TYPE == TN_TYPE_Q8_0) {
        low = *(const uint4 *)(at + pieces.x), high = *(const uint4 *)(at + pieces.y);
        return;
    }
    uint4 v = *(const uint4 *)(at + (h == 0 ? pieces.x : pieces.y));
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

// 2^23 plus an integer below it, in the bits of a float, to that integer less `bias`.
static __device__ __forceinline__ float mt_number(uint32_t bits, int bias = 0)
{
    return __uint_as_float(bits) - (8388608.0f + (float)bias);
}

// Scales of a row of a tile for the lane's pair of runs, in both halves.
template <int TYPE> struct mt_scales {
    float d, w[2][2]; // of the row; of the halves, of the runs: w[h][1] is used where groups are 16
    float dm, m[2];   // minima; m[1] is 16 times too large

    __device__ __forceinline__ void load(const char *slot, int row, int c, uint32_t over)
    {
        typedef mt_tile<TYPE> tile;
        if constexpr (mt_runs<TYPE>::k45) {
            uint4 head = *(const uint4 *)(slot + tile::at(tile::planes - 1) + row * 16);
            uint32_t byte = 0x7650 + mt_runs<TYPE>::pair(c); // the byte of group `pair` under the exponent of 2^23
            uint32_t b0 = __byte_perm(head.y, 0x4b000000u, byte), b1 = __byte_perm(head.z, 0x4b000000u, byte), b2 = __byte_perm(head.w, 0x4b000000u, byte);
            d = tn_half_bits(head.x & 0xffffu), dm = tn_half_bits(head.x >> 16);
            w[0][0] = mt_number(b0 & 0x4b00003fu), w[1][0] = mt_number((b2 & 0x4b00000fu) | (b0 >> 2 & 0x30u));
            m[0] = mt_number(b1 & 0x4b00003fu), m[1] = mt_number((b2 & 0x4b0000f0u) | (b1 << 2 & 0x300u));
        } else if constexpr (TYPE == TN_TYPE_Q6_K) {
            d = tn_half_bits(*(const uint16_t *)(slot + tile::at(3) + row * 16 + over));
#pragma unroll
            for (int h = 0; h < 2; h++) {
                // Signed bytes plus 128.
                uint32_t two = *(const uint16_t *)(slot + tile::at(2) + row * 16 + 8 * h + 2 * c) ^ 0x8080u;
                w[h][0] = mt_number(__byte_perm(two, 0x4b000000u, 0x7650), 128), w[h][1] = mt_number(__byte_perm(two, 0x4b000000u, 0x7651), 128);
            }
        } else {
            d = 1.0f;
#pragma unroll
            for (int h = 0; h < tile::halves; h++) w[h][0] = tn_half_bits(*(const uint16_t *)(slot + tile::at(1) + row * 16 + over + (4 * h + c) * 2));
        }
    }
};

// Adds the products of a tile to the lane's parts of rows lane / 4 and 8 more. over: where the last plane begins in its copies, of both rows.
template <int TYPE>
static __device__ __forceinline__ void mt_dot(const char *slot, const mt_x &x, int t, int lane, const uint32_t (&over)[2], float (&total)[2])
{
    typedef mt_runs<TYPE> runs;
    constexpr int halves = mt_tile<TYPE>::halves;
    constexpr bool is_signed = TYPE == TN_TYPE_Q8_0;
    int r = lane / 4, c = lane % 4;
    float sum[2] = {0.0f, 0.0f}, least[2] = {0.0f, 0.0f};
    mt_scales<TYPE> scales[2];
#pragma unroll
    for (int i = 0; i < 2; i++) scales[i].load(slot, r + 8 * i, c, over[i]);
    const char *x_low = x.low + t * (halves * x.low_step), *x_high = x.high + t * (halves * x.high_step);
    const int4 *heads = x.head + t * (halves * 4);
#pragma unroll
    for (int h = 0; h < halves; h++) {
        uint4 low[2], high[2], b_low = *(const uint4 *)(x_low + h * x.low_step), b_high = *(const uint4 *)(x_high + h * x.high_step);
        int4 head = heads[4 * h];
#pragma unroll
        for (int i = 0; i < 2; i++) mt_load<TYPE>(low[i], high[i], slot, x.pieces, lane, i, h);
        int v[4], z0 = runs::zero ? head.z : MV_ZERO, z1 = runs::zero ? head.w : MV_ZERO;
        mt_mma<is_signed>(v, low[0], low[1], false, b_low, z0, z1, z0, z1);
        mt_mma<is_signed>(v, low[0], low[1], true, b_low, v[0], v[1], v[2], v[3]);
        mt_mma<is_signed>(v, high[0], high[1], false, b_high, v[0], v[1], v[2], v[3]);
        mt_mma<is_signed>(v, high[0], high[1], true, b_high, v[0], v[1], v[2], v[3]);
        float d0 = __int_as_float(head.x), d1 = __int_as_float(head.y);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float p0 = mv_float(v[2 * i]) * d0, p1 = mv_float(v[2 * i + 1]) * d1;
            if (TYPE == TN_TYPE_Q6_K) sum[i] += scales[i].w[h][0] * p0 + scales[i].w[h][1] * p1;
            else sum[i] += scales[i].w[h][0] * (p0 + p1);
            if (runs::k45) least[i] += scales[i].m[h] * __int_as_float(head.z);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        total[i] += scales[i].d * sum[i];
        if (runs::k45) total[i] -= scales[i].dm * least[i];
    }
}

// Sums of a row of tiles over its lanes; lanes 4 r and 4 r + 1 have those of rows r and r + 8.
static __device__ __forceinline__ float mt_reduce(const float (&total)[2], int lane)
{
    float give = lane & 1 ? total[0] : total[1], keep = lane & 1 ? total[1] : total[0];
    keep += __shfl_xor_sync(0xffffffffu, give, 1);
    return keep + __shfl_xor_sync(0xffffffffu, keep, 2);
}

// --- the share of a warp --------------------------------------------------------------------------------

// All parts, with x in shared memory. Sums as those of mv_run_part with one column.
template <int TYPE> static __device__ __forceinline__ void mt_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w, char *shared, const char *zeros, mt_feed &feed)
{
    typedef mt_tile<TYPE> tile;
    constexpr int last = tile::planes - 1;
    mt_x x = mt_x_of<TYPE>(shared + a.x_at, a.k, zeros, w.lane);
    float *sums = (float *)(shared + a.sums_at) + w.slice + (w.group * MT_ROWS + w.lane % 2 * 8 + w.lane / 4) * a.sums_stride;
    const int sums_step = (MT_ROWS << w.group_shift) * a.sums_stride;
    int at = 0; // of the slot
    for (int part = 0; part < a.n_parts; part++) {
        mv_range block = mv_part_rows(a, w, part);
        const tn_cuda_matvec_part &p = a.part[part];
        float *to = sums;
        uint32_t row_over[2] = {}, over_step = (uint32_t)(MT_ROWS << w.group_shift) * (uint32_t)p.row_size[last];
        if (tile::odd)
#pragma unroll
            for (int i = 0; i < 2; i++)
                row_over[i] = (uint32_t)(uintptr_t)p.plane[last] + (uint32_t)(w.expert + block.from + w.group * MT_ROWS + w.lane / 4 + 8 * i) * (uint32_t)p.row_size[last];
#pragma unroll 1
        for (int rows = mt_rows(w, block); rows > 0; rows--, to += sums_step) {
            float total[2] = {0.0f, 0.0f};
#pragma unroll 1
            for (int t = w.slice; t < a.n_tiles; t += 1 << w.slice_shift) {
                mt_wait();
                __syncwarp(); // all have read the slot before, and see this one
                mt_feed_next<TYPE>(a, w, feed, w.ring + (at == 0 ? a.ring_size : at) - tile::size);
                uint32_t over[2] = {};
                if (tile::odd) over[0] = (row_over[0] + t * tile::bytes(last)) & 15u, over[1] = (row_over[1] + t * tile::bytes(last)) & 15u;
                mt_dot<TYPE>(w.ring + at, x, t, w.lane, over, total);
                at += tile::size;
                if (at == a.ring_size) at = 0;
            }
            float sum = mt_reduce(total, w.lane);
            if (w.lane % 4 < 2) *to = sum;
            if (tile::odd) row_over[0] += over_step, row_over[1] += over_step;
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
    if (!a.late) tn_pdl_trigger();
    mt_feed feed;
    // Which expert, a predecessor says.
    w.lane = mt_keep(w.lane), w.slice = mt_keep(w.slice);
    int early = a.ids ? 0 : a.n_early;
    if (!a.ids) mt_feed_start<TYPE>(a, w, feed);
    mt_feed_first<TYPE>(a, w, feed, 0, early);
    if (threadIdx.x == 0) zeros = make_uint4(0, 0, 0, 0);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_row r = mv_row_of(a, w);
    if (a.ids) mt_feed_start<TYPE>(a, w, feed);
    mt_activations<TYPE>(a, w, r, shared + a.x_at, squares[0], feed, early);
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
