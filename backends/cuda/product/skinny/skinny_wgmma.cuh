// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 9 to 64 rows of x and weights of Q4_K, Q5_K and Q6_K on compute capability 9.0: the same
// stretches of stages, rings and sums as in skinny_blocks.cuh, with products by wgmma.
//
// Operands: weights in planes, expanded into registers as the operand of wgmma, 64 rows of a warpgroup, while
// the products before run. x is the other operand, read from shared memory by the tensor cores themselves. A
// stage of x lies there as skinny_prepare.cu has written it: four tiles of 64 k, rows of x of 128 bytes with
// the 128-byte swizzle, and one with sums; within 16 of k even values stand before odd ones, so that lane q
// has values 4 q to 4 q + 3 of a row. y [m, n] f32.
//
// Bytes: as skinny_blocks.cuh. Operations: 2 m n k. Instructions of a warp for 16 x 32 weights: some 50 for
// Q4_K (18 of expansion, 6 for scales and minimums, 6 around products, 4 for sums, 9 for copies, the rest
// addresses) and 90 for Q6_K: 1700 issue slots of each scheduler for a stage of 256 rows, 0.9 us, where
// memory takes 1.1. Measured on an H200: 1.7 us, 65 % of the rate of memory. Whole launches of Q4_K with 32
// rows and dependent launch (H200, 2026-11-22): 4096 + 2 x 1024 columns 18.4 us, 4096 columns 15.7, k 14336
// 30.2 (Q6_K 40.4), GLU 2 x 14336 44.2 us. ncu of the first form of the kernel (GLU, 54 us): 530 instructions
// of a warp for each stage, later 430; 57 % of the samples in the main loop, 10 % in copies, 9 % at barriers,
// 12 to 15 % in partial sums and results.
//
// Reasons of design (8B Q4_K_M, 32 sequences, H200, 2026-11-22, tokens per second): expanding into registers
// while the products before run took it from 3995 to 6079. x made by the blocks of the product gave 5044,
// because its loads wait behind those of weights, so skinny_prepare.cu makes it. Fewer instructions, a
// barrier for each slot and dependent launch gave 7455. Letting the next kernel start late gave 7903; with 3
// slots 7570, without dependent launch 7167.
#ifndef TN_CUDA_SKINNY_WGMMA_CUH
#define TN_CUDA_SKINNY_WGMMA_CUH

#include "backends/cuda/product/skinny/skinny_blocks.cuh"
#include "backends/cuda/product/skinny/skinny_products.cuh"

#ifdef TN_HOPPER
// --- weights of a stage ----------------------------------------------------------------------------------
//
// They are expanded in batches of 32 k: batch b has steps 2 b and 2 b + 1 of 16. skinny_batch_expander<type>
// has
//     head      what a row needs of a stage
//     load      words of batch b, some of which later batches use too
//     expand    step s of batch b: operands of pairs (0, 2) and (1, 3) of lane q's four values
//     operands  the number of operands of a step, whose products are added

template <int TYPE> struct skinny_batch_expander { // Q4_K, Q5_K
    static constexpr bool five_bits = TYPE == TN_TYPE_Q5_K;
    static constexpr int operands = 1, scale_plane = five_bits ? 2 : 1;
    struct head {
        // Scales of groups 0 and 2, 4 and 6, and of those behind them; the latter are a sixteenth for Q4_K,
        // whose nibbles are multiplied in place.
        uint32_t even[2], odd[2];
        float d;
    };
    struct raw {
        uint32_t v[2], bits[2];
    };
    static __device__ __forceinline__ void load_head(head &h, const skinny_row<TYPE> &row)
    {
        uint4 all = skinny_at<TYPE, scale_plane, uint4>(row, 0);
        uint32_t four[2] = {all.y & 0x3f3f3f3fu, (all.w & 0x0f0f0f0fu) | (all.y >> 2 & 0x30303030u)};
#pragma unroll
        for (int i = 0; i < 2; i++) { // 1024 + scale, less 1024
            h.even[i] = skinny_add((four[i] & 0x00ff00ffu) | 0x64006400u, 0xe400e400u);
            uint32_t odd = (four[i] >> 8 & 0x00ff00ffu) | 0x64006400u;
            h.odd[i] = five_bits ? skinny_add(odd, 0xe400e400u) : skinny_fma(odd, 0x2c002c00u, 0xd400d400u);
        }
        h.d = tn_half_bits(all.x & 0xffffu);
    }
    static __device__ __forceinline__ void load(raw &r, const head &, const skinny_row<TYPE> &row, int b,
                                                int q)
    {
        if (b % 2 == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) r.v[i] = skinny_at<TYPE, 0, uint32_t>(row, 16 * b + 16 * i + 4 * q);
        if (five_bits && b == 0)
#pragma unroll
            for (int i = 0; i < 2; i++) r.bits[i] = skinny_at<TYPE, 1, uint32_t>(row, 16 * i + 4 * q);
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &h, int b, int s,
                                                  uint32_t (&first)[1], uint32_t (&second)[1])
    {
        uint32_t w = r.v[s], by = skinny_broadcast_half(b % 2 ? h.odd[b / 4] : h.even[b / 4], b / 2 % 2);
        if constexpr (five_bits) {
            uint32_t high = b <= 4 ? r.bits[s] << (4 - b) : r.bits[s] >> (b - 4);
            w = ((b % 2 ? w >> 4 : w) & 0x0f0f0f0fu) | (high & 0x10101010u);
            first[0] = skinny_mul(skinny_even(w), by);
            second[0] = skinny_mul(skinny_odd(w), by);
        } else {
            uint32_t mask = b % 2 ? 0x00f000f0u : 0x000f000fu;
            first[0] = skinny_mul(w & mask, by);
            second[0] = skinny_mul(w >> 8 & mask, by);
        }
    }
};

// Integers times scales need 12 bits: the lower four bits are one operand, the upper two, less 32 in all,
// another.
template <> struct skinny_batch_expander<TN_TYPE_Q6_K> {
    static constexpr int operands = 2;
    struct head {
        uint4 s;
        float d;
    };
    struct raw {
        uint32_t low[4], high[2];
        uint32_t by[2], by_high[2], zero[2]; // of four runs: of 0 and 2, of 1 and 3
    };
    static __device__ __forceinline__ void load_head(head &h, const skinny_row<TN_TYPE_Q6_K> &row)
    {
        h.s = skinny_at<TN_TYPE_Q6_K, 2, uint4>(row, 0);
        h.d = tn_half_bits(skinny_at<TN_TYPE_Q6_K, 3, uint16_t>(row, 0));
    }
    // Batch 4 p + j has runs 8 p + 2 j + s.
    static __device__ __forceinline__ void load(raw &r, const head &h, const skinny_row<TN_TYPE_Q6_K> &row,
                                                int b, int q)
    {
        int p = b / 4, j = b % 4;
        if (j < 2)
#pragma unroll
            for (int s = 0; s < 2; s++)
                r.low[2 * j + s] =
                    skinny_at<TN_TYPE_Q6_K, 0, uint32_t>(row, 64 * p + 32 * j + 16 * s + 4 * q);
        if (j == 0)
#pragma unroll
            for (int s = 0; s < 2; s++)
                r.high[s] = skinny_at<TN_TYPE_Q6_K, 1, uint32_t>(row, 32 * p + 16 * s + 4 * q);
        if (b % 2) return;
        uint32_t four = skinny_word(h.s, b / 2) ^ 0x80808080u;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint32_t by = skinny_add(((i ? four >> 8 : four) & 0x00ff00ffu) | 0x64006400u,
                                     0xe480e480u);   // 1152 + scale, less 1152
            r.zero[i] = skinny_mul(by, 0x80208020u); // -32 steps of 2^-24
            // Bits at 2 j of a byte, which count 16: times 16, 4, 1 and a quarter. Upper nibbles are
            // multiplied in place.
            r.by_high[i] = skinny_mul(by, j ? 0x34003c00u : 0x44004c00u);
            r.by[i] = j ? skinny_mul(by, 0x2c002c00u) : by;
        }
    }
    static __device__ __forceinline__ void expand(const raw &r, const head &, int b, int s,
                                                  uint32_t (&first)[2], uint32_t (&second)[2])
    {
        int j = b % 4;
        bool half = j % 2;
        uint32_t low = r.low[j % 2 * 2 + s], high = r.high[s], by = skinny_broadcast_half(r.by[s], half),
                 by_high = skinny_broadcast_half(r.by_high[s], half),
                 zero = skinny_broadcast_half(r.zero[s], half);
        uint32_t mask = j / 2 ? 0x00f000f0u : 0x000f000fu, mask_high = 0x00030003u << 2 * j;
        first[0] = skinny_mul(low & mask, by);
        second[0] = skinny_mul(low >> 8 & mask, by);
        first[1] = skinny_fma(high & mask_high, by_high, zero);
        second[1] = skinny_fma(high >> 8 & mask_high, by_high, zero);
    }
};

// --- products ---------------------------------------------------------------------------------------------

// Waits for the products of a stage and adds them to the sums, times the scales of their rows.
template <int TYPE, int MT>
static __device__ __forceinline__ void
skinny_wgmma_add_stage(skinny_sums<MT> &part, skinny_sums<MT> &min_sums,
                       const typename skinny_batch_expander<TYPE>::head (&head)[MT][2],
                       const typename skinny_expander<TYPE>::scale (&sc)[MT][2], skinny_sums<MT> &total)
{
#pragma unroll
    for (int t = 0; t < MT; t++) {
        skinny_wgmma_wait<0>(part[t]);
#pragma unroll
        for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                total[t][j][i] += 16777216.0f * head[t][i / 2].d * part[t][j][i]; // 2^24
        if constexpr (skinny_expander<TYPE>::minimums) {
            skinny_wgmma_wait<0>(min_sums[t]);
#pragma unroll
            for (int j = 0; j < SKINNY_NT; j++)
#pragma unroll
                for (int i = 0; i < 4; i++) total[t][j][i] -= 32.0f * sc[t][i / 2].dmin * min_sums[t][j][i];
        }
    }
}

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_wgmma_stage(const skinny_block_rows &rows, const char *slot,
                                                          int stage, skinny_sums<SHAPE::tiles> &total)
{
    typedef skinny_batch_expander<TYPE> steps;
    constexpr int MT = SHAPE::tiles, P = steps::operands;
    int q = threadIdx.x % 4;
    skinny_row<TYPE> row[MT][2];
    typename steps::head head[MT][2];
    typename steps::raw raw[MT][2];
#pragma unroll
    for (int i = 0; i < 2 * MT; i++) {
        row[i / 2][i % 2] =
            skinny_row_of<TYPE, SHAPE, TN_SKINNY_MATRIX_STAGE>(rows, slot, stage, i / 2, i % 2);
        steps::load_head(head[i / 2][i % 2], row[i / 2][i % 2]);
    }
    uint64_t x = tn_wgmma_tile(slot);
    skinny_sums<MT> part, min_sums;
    typename skinny_expander<TYPE>::scale sc[MT][2]; // only its minimums are used
#pragma unroll
    for (int i = 0; i < 2 * MT && skinny_expander<TYPE>::minimums; i++)
        skinny_expander<TYPE>::scales(sc[i / 2][i % 2], row[i / 2][i % 2], q);
    uint32_t f[2][MT][2][P][4]; // of this batch and the one before
#pragma unroll
    for (int b = 0; b < 8; b++) {
#pragma unroll
        for (int i = 0; i < 2 * MT; i++)
            steps::load(raw[i / 2][i % 2], head[i / 2][i % 2], row[i / 2][i % 2], b, q);
        if (b > 1) tn_wgmma_wait<1>();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int t = 0; t < MT; t++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    uint32_t first[P], second[P];
                    steps::expand(raw[t][h], head[t][h], b, s, first, second);
#pragma unroll
                    for (int o = 0; o < P; o++)
                        f[b % 2][t][s][o][h] = first[o], f[b % 2][t][s][o][2 + h] = second[o];
                }
        tn_wgmma_fence();
#pragma unroll
        for (int s = 0; s < 2; s++)
#pragma unroll
            for (int o = 0; o < P; o++)
#pragma unroll
                for (int t = 0; t < MT; t++)
                    skinny_wgmma(part[t], f[b % 2][t][s][o],
                                 x + b / 2 * (TN_SKINNY_BLOCK_COLUMNS * 128 / 16) + (b % 2 * 2 + s) * 2,
                                 b > 0 || s > 0 || o > 0);
        if constexpr (skinny_expander<TYPE>::minimums) // minimums times sums of x, for runs of 32
            if (b == 7)
#pragma unroll
                for (int t = 0; t < MT; t++) {
                    uint32_t m[4] = {sc[t][0].m[0], sc[t][1].m[0], sc[t][0].m[1], sc[t][1].m[1]};
                    skinny_wgmma(min_sums[t], m, x + TN_SKINNY_BLOCK_X / 16, 0);
                }
        tn_wgmma_commit();
    }
    skinny_wgmma_add_stage<TYPE, MT>(part, min_sums, head, sc, total);
}

// --- the kernel -------------------------------------------------------------------------------------------

// When the copies that this thread has started have arrived, it arrives at the barrier, whose count includes
// it.
static __device__ __forceinline__ void skinny_copies_arrive(uint64_t *bar)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(tn_shared(bar)) : "memory");
}

// The ring: weights by cp.async of all threads, x by one bulk copy; a barrier of each slot counts both. Warps
// that have read a slot arrive at its second barrier, and fill the slot that was read before it, so nobody
// waits for warps that are less than a stage behind.
template <int TYPE, typename SHAPE> struct skinny_ring {
    static constexpr int slot_size = TN_SKINNY_MATRIX_STAGE + 2 * SHAPE::half * skinny_slot<TYPE>::row_bytes;
    static constexpr int x_size =
        skinny_expander<TYPE>::minimums ? TN_SKINNY_MATRIX_STAGE : TN_SKINNY_BLOCK_X;
    char *shared;
    uint64_t *full, *empty;
    int slots, at, last; // at: slot that is read; last: the one before
    uint32_t parity, last_parity;

    __device__ __forceinline__ void begin()
    {
        at = 0, last = slots - 1, parity = 0, last_parity = 1;
        if (threadIdx.x == 0) {
            for (int i = 0; i < slots; i++)
                tn_mbar_init(&full[i], SHAPE::threads + 1), tn_mbar_init(&empty[i], SHAPE::threads / TN_WARP);
            tn_mbar_init_fence();
        }
        __syncthreads();
    }
    __device__ __forceinline__ void copy_weights(const skinny_cursor<SHAPE, TN_SKINNY_MATRIX_STAGE> &c,
                                                 int slot)
    {
        skinny_copy_weights<TYPE, SHAPE, TN_SKINNY_MATRIX_STAGE>(c, shared + slot * slot_size);
        skinny_copies_arrive(&full[slot]);
    }
    __device__ __forceinline__ void copy_x(const char *x, int slot)
    {
        if (threadIdx.x > 0) return;
        tn_mbar_expect(&full[slot], x_size);
        tn_bulk_load(shared + slot * slot_size, x, x_size, &full[slot]);
    }
    __device__ __forceinline__ char *wait()
    {
        tn_mbar_wait(&full[at], parity);
        return shared + at * slot_size;
    }
    // This warp has read its slot. Returns true if the slot before, which is free then, is to be filled.
    __device__ __forceinline__ bool read(bool fill)
    {
        __syncwarp();
        if (threadIdx.x % TN_WARP == 0) tn_mbar_arrive(&empty[at]);
        if (fill) tn_mbar_wait(&empty[last], last_parity);
        return fill;
    }
    __device__ __forceinline__ void next()
    {
        last = at, last_parity = parity;
        at++;
        if (at < slots) return;
        at = 0, parity ^= 1;
    }
};

// The end of a stretch of a tile: its sums are added to those of other blocks, or become results.
template <typename SHAPE>
static __device__ __forceinline__ void skinny_finish_stretch(const tn_cuda_skinny_args &a,
                                                             const skinny_work &work, int tile, bool complete,
                                                             skinny_sums<SHAPE::tiles> &total)
{
    int per_tile = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K, begin = tile * per_tile, first = 0, last = -1;
    bool complete_here = complete && begin >= work.at;
    if (!complete_here) {
        first = skinny_block_of(begin, work.n), last = skinny_block_of(begin + per_tile - 1, work.n);
        complete_here = skinny_block_publish<SHAPE>(a, total, tile, first, last);
    }
    if (complete_here) skinny_block_write_tile<SHAPE>(a, total, tile, blockIdx.y, first, last);
#pragma unroll
    for (int i = 0; i < SHAPE::tiles * SKINNY_NT * 4; i++)
        total[i / (4 * SKINNY_NT)][i / 4 % SKINNY_NT][i % 4] = 0.0f;
}
#endif

template <int TYPE, typename SHAPE>
static __device__ __forceinline__ void skinny_wgmma_blocks(const tn_cuda_skinny_args &a)
{
#ifdef TN_HOPPER
    extern __shared__ char skinny_space[];
    __shared__ uint64_t bars[2 * TN_SKINNY_BLOCK_MAX_SLOTS];
    int per_tile = (a.k + TN_SKINNY_K - 1) / TN_SKINNY_K;
    skinny_work work = skinny_work_of(a, per_tile);
    if (work.at >= work.end) return;
    skinny_ring<TYPE, SHAPE> ring;
    // swizzled tiles start at multiples of 1024
    ring.shared = skinny_space + (1024 - tn_shared(skinny_space) % 1024) % 1024;
    ring.full = bars, ring.empty = bars + TN_SKINNY_BLOCK_MAX_SLOTS, ring.slots = a.slots;
    ring.begin();
    skinny_cursor<SHAPE, TN_SKINNY_MATRIX_STAGE> ahead, current;
    ahead.start(a, per_tile, work.at);
    current.start(a, per_tile, work.at);
    int copied = work.at, early = min(a.early, work.end - work.at);
    const char *x[SKINNY_EARLY] = {ahead.x, ahead.x};
#pragma unroll 1
    for (int s = 0; s < early; s++) {
        if (s > 0) x[1] = ahead.x;
        ring.copy_weights(ahead, s);
        ahead.next(a, per_tile, ++copied < work.end);
    }
    static_assert(SKINNY_EARLY == 2, "x has two places");
    tn_pdl_wait();
#pragma unroll
    for (int s = 0; s < SKINNY_EARLY; s++)
        if (s < early) ring.copy_x(x[s], s);
#pragma unroll 1
    for (int s = early; s < a.slots && copied < work.end; s++) {
        ring.copy_weights(ahead, s);
        ring.copy_x(ahead.x, s);
        ahead.next(a, per_tile, ++copied < work.end);
    }
    skinny_sums<SHAPE::tiles> total = {};
    for (int at = work.at; at < work.end;) {
        char *slot = ring.wait();
        skinny_wgmma_stage<TYPE, SHAPE>(current.rows, slot, current.stage, total);
        if (ring.read(at > work.at && copied < work.end)) {
            ring.copy_weights(ahead, ring.last);
            ring.copy_x(ahead.x, ring.last);
            ahead.next(a, per_tile, ++copied < work.end);
        }
        ring.next();
        int tile = current.tile;
        bool complete = current.stage + 1 == per_tile;
        current.next(a, per_tile, ++at < work.end);
        // The next kernel may start only here: its early copies would delay those of blocks that still run
        // (32 sequences of 8B Q4_K_M, H200, 2026-11-22: 7455 tokens per second when it starts early, 7903
        // late).
        if (at == work.end) tn_pdl_trigger();
        if (complete || at == work.end) skinny_finish_stretch<SHAPE>(a, work, tile, complete, total);
    }
#else
    __trap();
#endif
}

// A kernel with tiles of 16 * TILES * WARPS rows of weights.
#define SKINNY_WGMMA(TYPE, ROWS, TILES, WARPS)                                                               \
    TN_ENTRY __launch_bounds__(32 * WARPS, 1)                                                                \
        tn_skinny_wgmma_##TYPE##_##ROWS(const __grid_constant__ tn_cuda_skinny_args a)                       \
    {                                                                                                        \
        static_assert(16 * TILES * WARPS == ROWS, "the name says what a tile has");                          \
        skinny_wgmma_blocks<TN_TYPE_##TYPE, skinny_block_shape<TILES, WARPS>>(a);                            \
    }

#endif
