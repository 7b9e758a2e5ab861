// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual for one row of x and quantised weights, on integer tensor cores.
// With dp4a (matvec.cuh) one column needs 3.3 instructions for each weight, of which memory leaves time for
// 2, so here one mma.m16n8k32 multiplies 16 rows of weights at once.
//
// Operands: x [k] f32 or quantised, w [n, k] in planes, y [n] f32; as in matvec.cuh up to three weights share
// a launch.
//
// The product of a matrix with one column would use an eighth of the instruction. Its 8 columns therefore
// hold the sums of 8 runs of 16 elements, each with scales of its own: column n of B has the x of run n and
// zeros elsewhere. B is loaded from a row of x or from a zero, A are the packed weights as they are, and a
// lane has the sums of two runs of rows r and r + 8 to scale.
//
// A tile is 16 rows times 256 elements (128 of Q8_0). Lane 4 r + c multiplies 16 bytes of rows r and r + 8,
// chunk 4 h + c of the 8 chunks of a row of the tile (h is the half), which hold two runs of 16 elements:
// `low` and `high` (nibbles, or bytes 64 apart). Weights are unsigned and up to 16 times too large. Integer
// sums start from the bits of the float 1.5 * 2^23, less the zero point times the sum of x, so that they are
// floats after one subtraction.
//
// Slots of the ring of a warp hold a tile: planes one after another, rows of a plane one after another.
// 16-byte chunks of plane 0 in odd rows are moved by 64 bytes, so that lanes have no bank conflicts. Groups
// of warps share the rows of tiles of a block, and the slices of a group the tiles of such a row, in turns.
//
// Bytes: weights + 4 k + 4 n. Operations: 2 n k, and 280 instructions of a warp for a tile of Q4_K. The limit
// is the number of memory requests under way, not bytes or instructions: the copies alone, without products,
// took 73 to 96 % of the time, and DRAM read no more than the weights. Measured with dependent launch in 4
// layers of 8B Q4_K_M (H200, 2026-11-22), us, and in brackets the time of the weights at the read peak: gate
// and up (Q4_K) 19.5 (15.0), down (Q6_K) 15.8 (10.9), output (Q4_K) 6.0 (2.1), last product (Q6_K) 137.3
// (97.5); copies alone 18.8, 13.7, 4.4, 130.2. Whole lines of the small planes (mt_copy) took the last
// product to 112.9. Of gate and up, some 17 us are the main loop and 3 us the way of x.
//
// Reasons of design (H200, 2026-11-22, tokens per second):
// ncu showed 354 instructions for a tile of gate and up, where the product itself needs some 200. Preparing
// what the products need of x as 16 bytes for 32 elements, decoding 6-bit scales as floats under an exponent,
// loaders that know where they copy to, and sums of 16 rows in 2 shuffles took it to 280: decode of 8B Q4_K_M
// went from 482.1 to 502.9, Q4_0 from 537.4 to 548.8, 1B from 1520 to 1617.
// Slots filled before the predecessor has ended (TN_MATVEC_EARLY), of 2: none 503.5, one 530.9, both 522.9
// (8B Q4_K_M); Q4_0 595.6 with one, 589.9 with both; 1B 1754.8 and 1711.9. Earlier requests of any kind were
// slower and the reason is not known: prefetching 1, 2 or 3 tiles to L2 gave 543.7, 534.5, 521.1 against
// 555.0, and 4 or 5 slots 525.4 and 517.8 against 536.3.
#ifndef TN_CUDA_MATVEC_MMA_CUH
#define TN_CUDA_MATVEC_MMA_CUH

#include "backends/cuda/product/matvec/matvec_mma_ring.cuh"

// --- x ------------------------------------------------------------------------------------------------

// Where the elements of the two runs of chunk c of a half tile lie: those of `low`, and those of `high` that
// many elements later; and in which columns of B their x stands.
template <int TYPE> struct mt_runs {
    static constexpr bool k4_k5 = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q5_K,
                          block32 = TYPE == TN_TYPE_Q4_0;
    static constexpr int high = k4_k5 ? 32 : block32 ? 16 : 64;
    static __device__ __forceinline__ int low(int c)
    {
        return k4_k5 ? 64 * (c / 2) + 16 * (c % 2) : block32 ? 32 * c : 16 * c;
    }
    static __device__ __forceinline__ bool has_low(int n, int c) { return block32 ? n == 2 * c : n == c; }
    static __device__ __forceinline__ bool has_high(int n, int c)
    {
        return block32 ? n == 2 * c + 1 : n == 4 + c;
    }
    // Lane c of a row gets the sums of two neighbouring runs: this pair of the four of a half.
    static __device__ __forceinline__ int pair(int c) { return block32 ? c : k4_k5 ? c % 2 * 2 + c / 2 : c; }
    static __device__ __forceinline__ bool is_high(int pair, int run)
    {
        return block32 ? run == 1 : k4_k5 ? pair % 2 == 1 : pair >= 2;
    }
    // nibbles of `high` are multiplied in place, 16 times too large
    static constexpr bool high_in_place = TYPE == TN_TYPE_Q4_K || TYPE == TN_TYPE_Q4_0;
    static constexpr int zero_point = TYPE == TN_TYPE_Q4_0 ? 8 : TYPE == TN_TYPE_Q6_K ? 32 : 0;
};

// What the products of a pair of runs need of x besides its bytes: the factors of their sums, and what the
// sums start from or, for types with a minimum, the sum of x (a sixteenth of it in odd halves, see
// mt_scales).
template <int TYPE>
static __device__ __forceinline__ int4 mt_head(int pair, float d0, float d1, int sum0, int sum1)
{
    typedef mt_runs<TYPE> runs;
    bool high0 = runs::high_in_place && runs::is_high(pair % 4, 0),
         high1 = runs::high_in_place && runs::is_high(pair % 4, 1);
    float sum = d0 * (float)sum0 + d1 * (float)sum1;
    int4 v = {__float_as_int(high0 ? d0 * 0.0625f : d0), __float_as_int(high1 ? d1 * 0.0625f : d1), 0, 0};
    if (runs::k4_k5) v.z = __float_as_int(pair / 4 % 2 ? sum * 0.0625f : sum);
    if (runs::zero_point)
        v.z = MV_FLOAT_BIAS - runs::zero_point * (high0 ? 16 : 1) * sum0,
        v.w = MV_FLOAT_BIAS - runs::zero_point * (high1 ? 16 : 1) * sum1;
    return v;
}

// A pair of runs of a row that was stored quantised.
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

// Stores pair i, times `factor`, in a row of k in shared memory: bytes, then heads.
template <int TYPE>
static __device__ __forceinline__ void mt_store_pair(const mt_pair &p, float factor, char *x, int k, int i)
{
    ((int4 *)x)[2 * i] = p.q[0], ((int4 *)x)[2 * i + 1] = p.q[1];
    ((int4 *)(x + k))[i] = mt_head<TYPE>(i, p.d.x * factor, p.d.y * factor, (short)p.sums, p.sums >> 16);
}

// Quantises and stores the lane's 8 values of a pair, whose 32 values lie in four lanes in sequence; the
// whole warp takes part.
template <int TYPE>
static __device__ __forceinline__ void mt_quantise_pair(const float4 (&v)[2], int at, bool valid,
                                                        float factor, char *x, int k)
{
    mv_quantised8 r = mv_quantise8(v);
    float d1 = __shfl_xor_sync(0xffffffffu, r.d, 2);
    int sum1 = __shfl_xor_sync(0xffffffffu, r.sum, 2);
    if (!valid) return;
    *(int2 *)(x + at) = r.words;
    if (at % 32 == 0)
        ((int4 *)(x + k))[at / 32] = mt_head<TYPE>(at / 32, r.d * factor, d1 * factor, r.sum, sum1);
}

template <int TYPE> struct mt_store_quantised {
    char *x;
    int k;
    __device__ __forceinline__ void operator()(const float4 (&v)[2], int at, bool valid) const
    {
        mt_quantise_pair<TYPE>(v, at, valid, 1.0f, x, k);
    }
};

// All threads: the row of x to shared memory, and its sum of squares. Slots from `first` on are filled once x
// is requested, so that weights do not delay it.
template <int TYPE>
static __device__ __forceinline__ void mt_load_x(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const mv_block_io &r, char *shared, float *squares,
                                                 mt_loader &loader, int first)
{
    float s = 0.0f;
    bool quantised = a.quantised_x.rows != nullptr;
    const char *row = a.quantised_x.rows + r.x_row * a.quantised_x.row_size;
    int i = threadIdx.x, pairs = quantised ? a.k / 32 : 0;
    mt_pair own = mt_load_pair(row, a.k, i, i < pairs);
    mt_loader_fill<TYPE>(a, w, loader, first, a.n_slots - 1);
    for (; i < pairs; i += blockDim.x, own = mt_load_pair(row, a.k, i, i < pairs))
        mt_store_pair<TYPE>(own, 1.0f, shared, a.k, i);
    if (!quantised) s = mv_quantise_row(r.x, a.norm, a.k, mt_store_quantised<TYPE>{shared, a.k});
    if (a.norm) {
        // For rows that were stored quantised the last warp adds the squares, because it has the fewest pairs
        // to load. When the first warp did it after its own work, 8B Q4_K_M gave 545.8 instead of 552.5
        // tokens per second (H200, 2026-11-22).
        int warp = threadIdx.x / TN_WARP, last = (int)blockDim.x / TN_WARP - 1;
        if (!quantised)
            s = tn_warp_sum(s);
        else if (warp == last) s = mv_sum_squares(row, a.k, w.lane);
        if (w.lane == 0 && (!quantised || warp == last)) squares[quantised ? 0 : warp] = s;
    }
    __syncthreads();
}

// The lane's x: bytes of its two runs or zeros, and the heads of the pairs that it has the products of.
struct mt_x {
    const char *low, *high; // of tile 0
    int low_step, high_step; // bytes to the next half; 0 where the lane reads zeros
    const int4 *head;
    int2 chunks; // where chunks c and 4 + c of row lane / 4 of the weights are in a slot
};

template <int TYPE>
static __device__ __forceinline__ mt_x mt_x_of(const char *x, int k, const char *zeros, int lane)
{
    typedef mt_runs<TYPE> runs;
    int n = lane / 4, c = lane % 4;
    bool low = runs::has_low(n, c), high = runs::has_high(n, c);
    int row = n * (mt_tile<TYPE>::chunks(0) * 16), c0 = (c ^ n % 2 * 4) * 16;
    return {
        low ? x + runs::low(c) : zeros,        high ? x + runs::low(c) + runs::high : zeros,
        mt_opaque(low ? MT_HALF : 0),          mt_opaque(high ? MT_HALF : 0),
        (const int4 *)(x + k) + runs::pair(c), make_int2(mt_opaque(row + c0), mt_opaque(row + (c0 ^ 64)))};
}

// --- the product of a tile ----------------------------------------------------------------------------

// mma.m16n8k32: s32 = (u8 or s8) x s8 + c, with the first or the second 8 bytes of each 16. Compute
// capability 8.0.
template <bool SIGNED>
static __device__ __forceinline__ void mt_mma(int (&d)[4], const uint4 &r0, const uint4 &r8, bool upper_words,
                                              const uint4 &b, int c0, int c1, int c2, int c3)
{
    uint32_t a0 = upper_words ? r0.z : r0.x, a1 = upper_words ? r8.z : r8.x, a2 = upper_words ? r0.w : r0.y,
             a3 = upper_words ? r8.w : r8.y, b0 = upper_words ? b.z : b.x, b1 = upper_words ? b.w : b.y;
#if __CUDA_ARCH__ >= 800
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%10,%11,%12,%13};"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2),
                       "r"(c3));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%10,%11,%12,%13};"
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c0), "r"(c1), "r"(c2),
                       "r"(c3));
#else
    __trap();
#endif
}

// The unsigned bytes of `low` and `high` of chunk 4 h + c of row `row`. `chunks` says where chunks c and 4 +
// c of row lane / 4 are.
template <int TYPE>
static __device__ __forceinline__ void mt_load(uint4 &low, uint4 &high, const char *slot, int2 chunks,
                                               int lane, int i, int h)
{
    typedef mt_tile<TYPE> tile;
    const char *at = slot + i * (8 * 16 * tile::chunks(0));
    int row = lane / 4 + 8 * i, c = lane % 4;
    if constexpr (TYPE == TN_TYPE_Q8_0) {
        low = *(const uint4 *)(at + chunks.x), high = *(const uint4 *)(at + chunks.y);
        return;
    }
    uint4 v = *(const uint4 *)(at + (h == 0 ? chunks.x : chunks.y));
    low = mv_low_nibbles(v);
    high = mt_runs<TYPE>::high_in_place
               ? make_uint4(v.x & 0xf0f0f0f0u, v.y & 0xf0f0f0f0u, v.z & 0xf0f0f0f0u, v.w & 0xf0f0f0f0u)
               : mv_high_nibbles(v);
    if constexpr (TYPE == TN_TYPE_Q5_K) {
        uint4 b =
            mv_shift_right(*(const uint4 *)(slot + tile::offset(1) + row * 32 + c % 2 * 16), 4 * h + (c & 2));
        low = mv_or_bits(low, mv_shift_left(b, 4), 0x10101010u),
        high = mv_or_bits(high, mv_shift_left(b, 3), 0x10101010u);
    } else if constexpr (TYPE == TN_TYPE_Q6_K) {
        uint4 b =
            mv_shift_right(*(const uint4 *)(slot + tile::offset(1) + row * 64 + h * 32 + c % 2 * 16), c & 2);
        low = mv_or_bits(low, mv_shift_left(b, 4), 0x30303030u), high = mv_or_bits(high, b, 0x30303030u);
    }
}

// The integer in the low bits of the float 2^23 + integer, less `bias`: a subtraction instead of a
// conversion.
static __device__ __forceinline__ float mt_unbias(uint32_t bits, int bias = 0)
{
    return __uint_as_float(bits) - (8388608.0f + (float)bias);
}

// Scales of a row of a tile for the lane's pair of runs, in both halves.
template <int TYPE> struct mt_scales {
    // d is that of the row, w[half][run] those of the runs; w[h][1] is used where groups have 16 elements.
    float d, w[2][2];
    float dm, m[2]; // minimums of the halves; m[1] is 16 times too large

    __device__ __forceinline__ void load(const char *slot, int row, int c, uint32_t misalignment)
    {
        typedef mt_tile<TYPE> tile;
        if constexpr (mt_runs<TYPE>::k4_k5) {
            uint4 head = *(const uint4 *)(slot + tile::offset(tile::planes - 1) + row * 16);
            // puts the byte of group `pair` under the exponent of 2^23
            uint32_t byte = 0x7650 + mt_runs<TYPE>::pair(c);
            uint32_t b0 = __byte_perm(head.y, 0x4b000000u, byte), b1 = __byte_perm(head.z, 0x4b000000u, byte),
                     b2 = __byte_perm(head.w, 0x4b000000u, byte);
            d = tn_half_bits(head.x & 0xffffu), dm = tn_half_bits(head.x >> 16);
            w[0][0] = mt_unbias(b0 & 0x4b00003fu),
            w[1][0] = mt_unbias((b2 & 0x4b00000fu) | (b0 >> 2 & 0x30u));
            m[0] = mt_unbias(b1 & 0x4b00003fu), m[1] = mt_unbias((b2 & 0x4b0000f0u) | (b1 << 2 & 0x300u));
        } else if constexpr (TYPE == TN_TYPE_Q6_K) {
            d = tn_half_bits(*(const uint16_t *)(slot + tile::offset(3) + row * 16 + misalignment));
#pragma unroll
            for (int h = 0; h < 2; h++) {
                // Flipping the sign bit adds 128 to a signed byte; the bias takes it off again.
                uint32_t two =
                    *(const uint16_t *)(slot + tile::offset(2) + row * 16 + 8 * h + 2 * c) ^ 0x8080u;
                w[h][0] = mt_unbias(__byte_perm(two, 0x4b000000u, 0x7650), 128),
                w[h][1] = mt_unbias(__byte_perm(two, 0x4b000000u, 0x7651), 128);
            }
        } else {
            d = 1.0f;
#pragma unroll
            for (int h = 0; h < tile::halves; h++)
                w[h][0] = tn_half_bits(
                    *(const uint16_t *)(slot + tile::offset(1) + row * 16 + misalignment + (4 * h + c) * 2));
        }
    }
};

// Adds the products of a tile to the lane's parts of rows lane / 4 and lane / 4 + 8. misalignment: where the
// last plane begins in its copies, of both rows.
template <int TYPE>
static __device__ __forceinline__ void mt_dot(const char *slot, const mt_x &x, int t, int lane,
                                              const uint32_t (&misalignment)[2], float (&total)[2])
{
    typedef mt_runs<TYPE> runs;
    constexpr int halves = mt_tile<TYPE>::halves;
    constexpr bool is_signed = TYPE == TN_TYPE_Q8_0;
    int r = lane / 4, c = lane % 4;
    float sum[2] = {0.0f, 0.0f}, min_sums[2] = {0.0f, 0.0f};
    mt_scales<TYPE> scales[2];
#pragma unroll
    for (int i = 0; i < 2; i++) scales[i].load(slot, r + 8 * i, c, misalignment[i]);
    const char *x_low = x.low + t * (halves * x.low_step), *x_high = x.high + t * (halves * x.high_step);
    const int4 *heads = x.head + t * (halves * 4);
#pragma unroll
    for (int h = 0; h < halves; h++) {
        uint4 low[2], high[2], b_low = *(const uint4 *)(x_low + h * x.low_step),
                               b_high = *(const uint4 *)(x_high + h * x.high_step);
        int4 head = heads[4 * h];
#pragma unroll
        for (int i = 0; i < 2; i++) mt_load<TYPE>(low[i], high[i], slot, x.chunks, lane, i, h);
        int v[4], z0 = runs::zero_point ? head.z : MV_FLOAT_BIAS,
                  z1 = runs::zero_point ? head.w : MV_FLOAT_BIAS;
        mt_mma<is_signed>(v, low[0], low[1], false, b_low, z0, z1, z0, z1);
        mt_mma<is_signed>(v, low[0], low[1], true, b_low, v[0], v[1], v[2], v[3]);
        mt_mma<is_signed>(v, high[0], high[1], false, b_high, v[0], v[1], v[2], v[3]);
        mt_mma<is_signed>(v, high[0], high[1], true, b_high, v[0], v[1], v[2], v[3]);
        float d0 = __int_as_float(head.x), d1 = __int_as_float(head.y);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float p0 = mv_unbias(v[2 * i]) * d0, p1 = mv_unbias(v[2 * i + 1]) * d1;
            if (TYPE == TN_TYPE_Q6_K) sum[i] += scales[i].w[h][0] * p0 + scales[i].w[h][1] * p1;
            else sum[i] += scales[i].w[h][0] * (p0 + p1);
            if (runs::k4_k5) min_sums[i] += scales[i].m[h] * __int_as_float(head.z);
        }
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        total[i] += scales[i].d * sum[i];
        if (runs::k4_k5) total[i] -= scales[i].dm * min_sums[i];
    }
}

// Sums a row of tiles over the four lanes that share it. Lanes 4 r and 4 r + 1 end up with rows r and r + 8.
// Both rows together take 2 shuffles; one after the other would take 4.
static __device__ __forceinline__ float mt_reduce(const float (&total)[2], int lane)
{
    float sent = lane & 1 ? total[0] : total[1], kept = lane & 1 ? total[1] : total[0];
    kept += __shfl_xor_sync(0xffffffffu, sent, 1);
    return kept + __shfl_xor_sync(0xffffffffu, kept, 2);
}

// --- the share of a warp --------------------------------------------------------------------------------

// All parts, with x in shared memory. Sums lie as those of mv_run_part with one column.
template <int TYPE>
static __device__ __forceinline__ void mt_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                    char *shared, const char *zeros, mt_loader &loader)
{
    typedef mt_tile<TYPE> tile;
    constexpr int last = tile::planes - 1;
    mt_x x = mt_x_of<TYPE>(shared + a.x_at, a.k, zeros, w.lane);
    float *sums = (float *)(shared + a.sums_at) + w.slice +
                  (w.group * MT_ROWS + w.lane % 2 * 8 + w.lane / 4) * a.sums_stride;
    const int sums_step = (MT_ROWS << w.group_shift) * a.sums_stride;
    int at = 0; // offset of the slot in the ring
    for (int part = 0; part < a.n_parts; part++) {
        mv_range block = mv_part_rows(a, w, part);
        const tn_cuda_matvec_part &p = a.part[part];
        float *to = sums;
        uint32_t row_address[2] = {},
                 address_step = (uint32_t)(MT_ROWS << w.group_shift) * (uint32_t)p.row_size[last];
        if (tile::last_unaligned)
#pragma unroll
            for (int i = 0; i < 2; i++)
                row_address[i] = (uint32_t)(uintptr_t)p.plane[last] +
                                 (uint32_t)(w.expert + block.from + w.group * MT_ROWS + w.lane / 4 + 8 * i) *
                                     (uint32_t)p.row_size[last];
#pragma unroll 1
        for (int rows = mt_rows(w, block); rows > 0; rows--, to += sums_step) {
            float total[2] = {0.0f, 0.0f};
#pragma unroll 1
            for (int t = w.slice; t < a.n_tiles; t += 1 << w.slice_shift) {
                mt_wait_oldest();
                __syncwarp(); // all lanes have read the slot before, and see this one
                mt_loader_copy_next<TYPE>(a, w, loader, w.ring + (at == 0 ? a.ring_size : at) - tile::size);
                uint32_t misalignment[2] = {};
                if (tile::last_unaligned)
                    misalignment[0] = (row_address[0] + t * tile::bytes(last)) & 15u,
                    misalignment[1] = (row_address[1] + t * tile::bytes(last)) & 15u;
                mt_dot<TYPE>(w.ring + at, x, t, w.lane, misalignment, total);
                at += tile::size;
                if (at == a.ring_size) at = 0;
            }
            float sum = mt_reduce(total, w.lane);
            if (w.lane % 4 < 2) *to = sum;
            if (tile::last_unaligned) row_address[0] += address_step, row_address[1] += address_step;
        }
        sums += (block.to - block.from) * a.sums_stride;
    }
}

// One block: number `block` of those that share the rows of `a`.
template <int TYPE> static __device__ __forceinline__ void mt_run(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    // Sums of squares of x, one from each warp; complete at the barrier before mv_finish.
    __shared__ float squares[1][TN_WARP];
    __shared__ uint4 zeros; // visible to all after the barrier in mt_load_x
    mv_warp w = mv_warp_of(a, block, shared);
    if (!a.late) tn_pdl_trigger();
    mt_loader loader;
    // With experts, a predecessor decides which rows to read, so no copy may start before the wait.
    w.lane = mt_opaque(w.lane), w.slice = mt_opaque(w.slice);
    int early = a.ids ? 0 : a.n_early;
    if (!a.ids) mt_loader_start<TYPE>(a, w, loader);
    mt_loader_fill<TYPE>(a, w, loader, 0, early);
    if (threadIdx.x == 0) zeros = make_uint4(0, 0, 0, 0);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_block_io r = mv_block_io_of(a, w);
    if (a.ids) mt_loader_start<TYPE>(a, w, loader);
    mt_load_x<TYPE>(a, w, r, shared + a.x_at, squares[0], loader, early);
    mv_prefetched prefetched = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < w.end - w.first)
        prefetched = mv_prefetch_result(a, mv_result_of<1>(a, w, threadIdx.x), r.y_row);
    mt_run_parts<TYPE>(a, w, shared, (const char *)&zeros, loader);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mv_finish<1>(a, w, (const float *)(shared + a.sums_at), squares, r.y_row, r.no_expert, prefetched);
}

#define TN_MATVEC_TILES(TYPE)                                                                                \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_tiles_##TYPE(const __grid_constant__ tn_cuda_matvec_args a)                                \
    {                                                                                                        \
        mt_run<TN_TYPE_##TYPE>(a, blockIdx.x);                                                               \
    }
// Weights of two types for one row of x: the first blocks compute those of the first type.
#define TN_MATVEC_TILES_PAIR(FIRST, SECOND)                                                                  \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_tiles_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                    \
    {                                                                                                        \
        int n = a.first_blocks, block = blockIdx.x;                                                          \
        if (block < n)                                                                                       \
            mt_run<TN_TYPE_##FIRST>(a.of[0], block);                                                         \
        else                                                                                                 \
            mt_run<TN_TYPE_##SECOND>(a.of[1], block - n);                                                    \
    }

#endif
