// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for many queries per sequence over a cache of f16, bf16, q8_0 or q4_0 on compute capability 9.0
// (flash attention 3, Shah et al. 2024): the same mathematics and row tiles as attention_prefill.cu.
//
// One block per multiprocessor goes through (row tile, KV head) pairs, the longest first. Two warpgroups of
// 64 rows each multiply: S = Q K^T of the next keys is issued before P V of the current ones, and the softmax
// of S runs while P V does. The first S of a row tile is issued before the last P V of the tile before, so
// there is no gap between tiles. The two warpgroups issue in turns (named barriers), so that one computes
// weights while the other has the tensor cores. Further warps bring keys, values and queries
// (attention_wgmma_produce.cuh). In shared memory, rows of 64 elements have 128 bytes, swizzled by 128 bytes;
// blocks of 64 columns follow one after another.
//
// Q and the weights P are rounded to the type of the products, f16 or bf16; keys and values of blocks to f16.
// Bytes moved: the visible rows of the caches once per 128 rows. Operations: 4 D per visible (row, key).
// Limit: tensor cores. NVIDIA H200, 2026-11-23, causal, 32 heads over 8 KV heads (masked half not counted),
// in TFLOP/s of f16 and bf16: D 128 443, 443 (2048 tokens), 584, 592 (4096), 631, 664 (8192), 678, 688
// (16384); D 64 424, 417 and D 256 662, 736 (16384). q8_0 and q4_0, D 128: 373, 404 (8192). 4096 FLOP a clock
// and multiprocessor at 1.6 GHz are 865.
//
// What the choices rest on (same device and date): a tile of 128 x 128 scores takes a warpgroup 3100 clocks.
// 760 of them it issues products, of which each waits for one before, and 1100 to 1650 are the softmax, of
// which the exponentials alone need 512: it is slowed down while the other warpgroup issues products. The
// compiler moved the whole softmax behind the wait for P V until a loop stood between them (step), and maxima
// of all tiles, sums and rounding took 400 clocks more. Turns gave nothing (within 2 %), and products issued
// between the exponentials nothing either.
#ifndef TN_CUDA_ATTENTION_WGMMA_CUH
#define TN_CUDA_ATTENTION_WGMMA_CUH

#include "backends/cuda/attention/wgmma/attention_wgmma_args.h"
#include "backends/cuda/attention/wgmma/attention_wgmma_produce.cuh"

// Weights are scaled to at most 2^WEIGHT_SHIFT, so that small ones keep their bits in f16.
#define WEIGHT_SHIFT 8.0f
// By how much the maximum of a row has to exceed its reference, as an exponent of 2, before its results are
// rescaled. Weights stay below 2^(WEIGHT_SHIFT + LAZY_SHIFT), which f16 can hold.
#define LAZY_SHIFT 7.0f

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What a consumer keeps in registers.
template <int D, int TYPE> struct state {
    static constexpr int KEYS = shape<D, TYPE>::KEYS;
    float o[D / 2], s[KEYS / 2];
    uint32_t p[KEYS / 4]; // weights as operand A
    // Of rows l / 4 and l / 4 + 8 of the warp; references (weigh) are times log2(e), sums are of this lane's
    // keys.
    float max[2], sum[2];
};

// The lower half of the descriptor of a matrix in shared memory, equal in all lanes, which the compiler only
// knows after the shuffle; the upper half does not depend on the address.
static __device__ __forceinline__ uint32_t matrix_at(const void *at)
{
    return __shfl_sync(0xffffffffu, tn_shared_address(at) >> 4 & 0x3fff, 0);
}

static __device__ __forceinline__ uint64_t matrix(uint32_t at, uint32_t leading)
{
    return (uint64_t)(at | leading >> 4 << 16) | (uint64_t)(1024 >> 4 | 1u << 30) << 32;
}

template <int D, int TYPE>
static __device__ __forceinline__ void issue_scores(const shared_storage<D, TYPE> &m, state<D, TYPE> &w,
                                                    const uint4 *queries, int stage)
{
    typedef shape<D, TYPE> S;
    uint32_t q = matrix_at(queries), k = matrix_at(m.k[stage]);
    tn_wgmma_keep(w.s);
    tn_wgmma_fence();
#pragma unroll
    for (int i = 0; i < D / 16; i++)
        tn_wgmma_ss<S::KEYS, S::BF16>(w.s, matrix(q + i / 4 * (ROWS * 8) + i % 4 * 2, 16),
                                      matrix(k + i / 4 * (S::KEYS * 8) + i % 4 * 2, 16), i > 0);
    tn_wgmma_commit();
}

// o = P V, plus o if `add`.
template <int D, int TYPE>
static __device__ __forceinline__ void issue_values(const shared_storage<D, TYPE> &m, state<D, TYPE> &w,
                                                    int stage, bool add)
{
    typedef shape<D, TYPE> S;
    uint32_t v = matrix_at(m.v[stage]);
    tn_wgmma_keep(w.o);
    tn_wgmma_fence();
#pragma unroll
    for (int i = 0; i < S::KEYS / 16; i++)
        tn_wgmma_rs<D, S::BF16>(w.o, &w.p[4 * i], matrix(v + i * 128, S::KEYS * 128), i > 0 || add);
    tn_wgmma_commit();
}

// Whether scores need only a positive factor: then it can be applied together with the exponential.
static __device__ __forceinline__ bool is_plain(const tn_cuda_attention_args &a)
{
    return a.softcap <= 0.0f && a.max_bias <= 0.0f && a.scale > 0.0f;
}

// tn_attention_bias() with a shorter hyperbolic tangent, whose absolute error is some 2e-7: it is called 64
// times in a row.
static __device__ __forceinline__ float score_bias(const tn_cuda_attention_args &a, float s, float slope,
                                                   int distance)
{
    if (a.softcap > 0.0f)
        s = a.softcap - __fdividef(2.0f * a.softcap, 1.0f + tn_exp2(s * (2.0f * TN_LOG2E / a.softcap)));
    return s - slope * (float)abs(distance);
}

// Applies the mask and, unless scores are plain, scale, softcap and bias. This lane has the rows `row` and
// `row` + 8 of the sequence.
template <int D, int TYPE>
static __device__ __forceinline__ void mask_scores(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   state<D, TYPE> &w, int row, int key)
{
    constexpr int KEYS = shape<D, TYPE>::KEYS, RUN = 32; // keys that are looked at together
    int mine = key + (int)threadIdx.x % 4 * 2;
    const tn_row_info u[2] = {tn_row_info_get(a, p, row), tn_row_info_get(a, p, row + 8)};
    if (!is_plain(a)) {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const tn_row_info &r = u[i / 2 % 2];
            w.s[i] =
                score_bias(a, w.s[i] * a.scale, r.slope, r.position - (mine + i / 4 * 8 + i % 2)) * TN_LOG2E;
        }
    }
    // What all rows of the warp see: ranges of later rows begin and end later.
    int from = __shfl_sync(0xffffffffu, u[1].lo, TN_WARP - 1), to = __shfl_sync(0xffffffffu, u[0].hi, 0);
#pragma unroll
    for (int run = 0; run < KEYS; run += RUN) {
        if (key + run >= from && key + run + RUN <= to) continue;
#pragma unroll
        for (int i = run / 2; i < (run + RUN) / 2; i++) {
            int at = mine + i / 4 * 8 + i % 2;
            if (at < u[i / 2 % 2].lo || at >= u[i / 2 % 2].hi) w.s[i] = -INFINITY;
        }
    }
}

// Turns scores into weights: exponentials of base 2 of the scores times `factor` plus base[row]. Returns this
// lane's sums for its two rows.
template <int D, int TYPE>
static __device__ __forceinline__ void
exponentials(const state<D, TYPE> &w, float factor, const float (&base)[2],
             uint32_t (&weights)[shape<D, TYPE>::KEYS / 4], float (&sum)[2])
{
    typedef shape<D, TYPE> S;
    float part[2][2] = {{0.0f, 0.0f}, {0.0f, 0.0f}};
#pragma unroll
    for (int i = 0; i < S::KEYS / 4; i++) {
        float x = tn_exp2(fmaf(w.s[2 * i], factor, base[i % 2])),
              y = tn_exp2(fmaf(w.s[2 * i + 1], factor, base[i % 2]));
        weights[i] = tn_pack16<S::BF16>(x, y);
        // In bf16, sums are of rounded weights, so that the error of one that prevails cancels.
        if (S::BF16) x = tn_unpack16<true>(weights[i]).x, y = tn_unpack16<true>(weights[i]).y;
        part[i % 2][0] += x, part[i % 2][1] += y;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) sum[h] = part[h][0] + part[h][1];
}

// Moves the references of rows whose maximum exceeds theirs by LAZY_SHIFT or more to that maximum. `shrink`
// is the factor by which their earlier results have to be multiplied. Whether a row's reference moves depends
// on that row alone.
template <int D, int TYPE>
static __device__ __forceinline__ void move_references(state<D, TYPE> &w, float factor, float (&shrink)[2])
{
    float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int i = 0; i < shape<D, TYPE>::KEYS / 2; i++) top[i / 2 % 2] = fmaxf(top[i / 2 % 2], w.s[i]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
        top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
        shrink[h] = 1.0f;
        if (fmaf(top[h], factor, WEIGHT_SHIFT - w.max[h]) < WEIGHT_SHIFT + LAZY_SHIFT) continue;
        if (w.max[h] > -INFINITY) shrink[h] = tn_exp2(w.max[h] - top[h] * factor);
        w.max[h] = top[h] * factor;
    }
}

// Turns scores into weights relative to a reference of the row, times 2^WEIGHT_SHIFT. The reference is the
// maximum of the first tile of keys that the row sees, and stays what it is as long as no weight reaches
// 2^(WEIGHT_SHIFT + LAZY_SHIFT), so that most tiles need no maxima at all. The sums of a lane, which are no
// smaller than any of its weights, tell whether one does. Returns whether references may have moved.
template <int D, int TYPE>
static __device__ __forceinline__ bool weigh(state<D, TYPE> &w, float factor, bool first,
                                             uint32_t (&weights)[shape<D, TYPE>::KEYS / 4],
                                             float (&shrink)[2])
{
    float base[2] = {WEIGHT_SHIFT - w.max[0], WEIGHT_SHIFT - w.max[1]}, sum[2];
    bool moved = first;
    if (!first) {
        exponentials<D, TYPE>(w, factor, base, weights, sum);
        // With a margin for the error of the exponential. NaN, which comes of a reference of -infinity,
        // counts too.
        constexpr float BOUND = 0.99f * (1 << (int)(WEIGHT_SHIFT + LAZY_SHIFT));
        moved = __any_sync(0xffffffffu, !(sum[0] < BOUND && sum[1] < BOUND));
    }
    if (moved) {
        move_references<D, TYPE>(w, factor, shrink);
#pragma unroll
        for (int h = 0; h < 2; h++) base[h] = w.max[h] > -INFINITY ? WEIGHT_SHIFT - w.max[h] : 0.0f;
        exponentials<D, TYPE>(w, factor, base, weights, sum);
#pragma unroll
        for (int h = 0; h < 2; h++) w.sum[h] *= shrink[h];
    }
    w.sum[0] += sum[0], w.sum[1] += sum[1];
    return moved;
}

template <int D, int TYPE>
static __device__ __forceinline__ void shrink_result(state<D, TYPE> &w, const float (&shrink)[2])
{
#pragma unroll
    for (int j = 0; j < D / 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) w.o[4 * j + e] *= shrink[e / 2];
}

// This lane's first row of a tile; it also has the one 8 further on.
static __device__ __forceinline__ int row_of(const tn_row_tile &p, int group)
{
    return p.row + group * GROUP_ROWS + (int)threadIdx.x % GROUP / TN_WARP * 16 +
           (int)threadIdx.x % TN_WARP / 4;
}

// The factors that the results of this lane's two rows still need, from references and sums.
static __device__ __forceinline__ void result_factors(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                      int first, const float (&max)[2],
                                                      const float (&sums)[2], float (&keep)[2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float sum = sums[h];
        sum += __shfl_xor_sync(0xffffffffu, sum, 1);
        sum += __shfl_xor_sync(0xffffffffu, sum, 2);
        keep[h] = 1.0f;
        if (a.sinks) {
            int row = min(first + 8 * h, p.n_rows - 1);
            float sink = a.sinks[p.kv_head * p.group + row % p.group] * TN_LOG2E, top = fmaxf(max[h], sink);
            keep[h] = max[h] > -INFINITY ? tn_exp2(max[h] - top) : 0.0f;
            sum = sum * keep[h] + (top > -INFINITY ? tn_exp2(sink - top + WEIGHT_SHIFT) : 0.0f);
        }
        keep[h] = sum > 0.0f ? keep[h] / sum : 0.0f;
    }
}

static __device__ __forceinline__ char *result_row(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   int row)
{
    return a.y + (int64_t)(p.first_token + row / p.group) * a.y_token +
           (int64_t)(p.kv_head * p.group + row % p.group) * a.y_head;
}

// Stores the results of this warp's rows of one part of the keys. The warp that arrives last of all parts has
// those of all of them in w then, and true is returned. Every part is read from memory in the
// order of the parts, so that results do not depend on which one arrives last.
template <int D, int TYPE>
static __device__ __forceinline__ bool merge_parts(const tn_cuda_attention_args &a, const work_tile &t,
                                                   state<D, TYPE> &w)
{
    constexpr int QUADS = D / 8, BATCH = 8, STORED = QUADS + 1; // of four floats of a lane
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    if (t.t.row + warp * WARP_ROWS >= t.t.n_rows) return false;
    float4 *const parts = reinterpret_cast<float4 *>(a.partial) +
                          (int64_t)(t.slot * CONSUMER_WARPS + warp) * (STORED * TN_WARP) + lane;
    const int64_t stride = (int64_t)t.stride * CONSUMER_WARPS * (STORED * TN_WARP);
    float4 *mine = parts + t.part * stride;
#pragma unroll
    for (int j = 0; j < QUADS; j++)
        mine[j * TN_WARP] = make_float4(w.o[4 * j], w.o[4 * j + 1], w.o[4 * j + 2], w.o[4 * j + 3]);
    mine[QUADS * TN_WARP] = make_float4(w.max[0], w.max[1], w.sum[0], w.sum[1]);
    __syncwarp();
    uint32_t before = 0, last = (uint32_t)t.n_parts - 1;
    if (lane == 0) before = tn_take_number(&arrived[t.slot][warp], last);
    if (__shfl_sync(0xffffffffu, before, 0) != last) return false;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < D / 2; i++) w.o[i] = 0.0f;
    w.max[0] = w.max[1] = -INFINITY, w.sum[0] = w.sum[1] = 0.0f;
    for (int i = 0; i <= (int)last; i++) {
        const float4 *from = parts + i * stride;
        float4 end = __ldcg(from + QUADS * TN_WARP);
        const float tops[2] = {end.x, end.y}, more[2] = {end.z, end.w};
        float keep[2], add[2];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = fmaxf(w.max[h], tops[h]);
            keep[h] = w.max[h] > -INFINITY ? tn_exp2(w.max[h] - top) : 0.0f;
            add[h] = tops[h] > -INFINITY ? tn_exp2(tops[h] - top) : 0.0f;
            w.max[h] = top, w.sum[h] = w.sum[h] * keep[h] + more[h] * add[h];
        }
#pragma unroll
        for (int first = 0; first < QUADS; first += BATCH) {
            float4 x[BATCH];
#pragma unroll
            for (int j = 0; j < BATCH; j++) x[j] = __ldcg(from + (first + j) * TN_WARP);
#pragma unroll
            for (int j = 0; j < BATCH; j++) {
                float *o = &w.o[4 * (first + j)];
                o[0] = o[0] * keep[0] + x[j].x * add[0], o[1] = o[1] * keep[0] + x[j].y * add[0];
                o[2] = o[2] * keep[1] + x[j].z * add[1], o[3] = o[3] * keep[1] + x[j].w * add[1];
            }
        }
    }
    return true;
}

// Writes the results of a tile. Directly, a store instruction of a warp writes 32 bytes to each of eight
// rows, through shared memory 256 bytes to each of two. Where all blocks end a tile at once, both take some
// 3000 clocks for 64 rows of 128 (NVIDIA H200, 2026-11-23).
template <int D, int TYPE>
static __device__ __forceinline__ void store(const tn_cuda_attention_args &a, shared_storage<D, TYPE> &m,
                                             const tn_row_tile &p, const state<D, TYPE> &w, int group,
                                             const float (&max)[2], const float (&sums)[2])
{
    int first = row_of(p, group), lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    float keep[2];
    result_factors(a, p, first, max, sums, keep);
    if (shape<D, TYPE>::STAGED && ((uintptr_t)a.y | (uintptr_t)a.y_token | (uintptr_t)a.y_head) % 16 == 0) {
        int rows = p.n_rows - (first - lane / 4); // of the warp's, that exist
        char *mine = result_row(a, p, min(first - lane / 4 + lane % WARP_ROWS, p.n_rows - 1));
#pragma unroll
        for (int c = 0; c < D / 64; c++) {
            __syncwarp();
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    *reinterpret_cast<float2 *>(&m.result[warp][lane / 4 + 8 * h][j * 8 + lane % 4 * 2]) =
                        make_float2(w.o[32 * c + 4 * j + 2 * h] * keep[h],
                                    w.o[32 * c + 4 * j + 2 * h + 1] * keep[h]);
            __syncwarp();
#pragma unroll
            for (int r = 0; r < WARP_ROWS; r += 2) {
                float4 x = *reinterpret_cast<const float4 *>(&m.result[warp][r + lane / 16][lane % 16 * 4]);
                char *y = (char *)address_of_lane(mine, r + lane / 16);
                int at = c * 16 + lane % 16; // in units of four elements
                if (r + lane / 16 >= rows) continue;
                if (a.y_packed == TN_CUDA_PACKED_BF16) {
                    reinterpret_cast<uint2 *>(y)[at] =
                        make_uint2(tn_pack16<true>(x.x, x.y), tn_pack16<true>(x.z, x.w));
                } else if (a.y_packed) {
                    uint32_t *run = reinterpret_cast<uint32_t *>(y) + at / 4 * 8 + at % 4;
                    run[0] = tn_pack16<false>(x.x, x.z);
                    run[4] = tn_pack16<false>(x.y, x.w);
                } else {
                    reinterpret_cast<float4 *>(y)[at] = x;
                }
            }
        }
        return;
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        if (first + 8 * h >= p.n_rows) continue;
        char *y = result_row(a, p, first + 8 * h) + lane % 4 * 8;
#pragma unroll
        for (int j = 0; j < D / 8; j++)
            *reinterpret_cast<float2 *>(y + j * 32) =
                make_float2(w.o[4 * j + 2 * h] * keep[h], w.o[4 * j + 2 * h + 1] * keep[h]);
    }
}

// The results of rows that see no key.
template <int D>
static __device__ __forceinline__ void store_zeros(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   int group)
{
    for (int h = 0; h < 2; h++) {
        int row = row_of(p, group) + 8 * h;
        char *y = result_row(a, p, row) + (int)threadIdx.x % 4 * 8;
        for (int j = 0; j < D / (a.y_packed ? 16 : 8) && row < p.n_rows; j++)
            *reinterpret_cast<float2 *>(y + j * 32) = make_float2(0.0f, 0.0f);
    }
}

// How far a consumer is: `n` counts row tiles, `at` tiles of keys like produced::n. `pending` says that P V
// of the tile of keys at - 1 has not been issued yet, `add` whether it adds to o.
struct progress {
    int n, at;
    bool pending, add;
};

// Ends the row tile before the present one, without other work to overlap with.
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void finish(const tn_cuda_attention_args &a, shared_storage<D, TYPE> &m,
                                              state<D, TYPE> &w, int group, progress &u)
{
    int stage = (u.at - 1) % STAGES, slot = (u.n - 1) % STAGES;
    tn_barrier_wait(&m.v_full[stage], (u.at - 1) / STAGES % 2);
    issue_values<D, TYPE>(m, w, stage, u.add);
    tn_wgmma_wait<0>();
    tn_wgmma_keep(w.o);
    if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&m.v_empty[stage]);
    const work_tile &t = m.tile[slot];
    bool whole = true;
    if constexpr (CUTS) whole = t.n_parts == 1 || merge_parts<D, TYPE>(a, t, w);
    if (whole) store<D, TYPE>(a, m, t.t, w, group, w.max, w.sum);
    __syncwarp();
    if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&m.tile_empty[slot]);
    u.pending = false;
}

// What a consumer does with the tile of keys `key` of a row tile: S of it and P V of the tile before, then
// the softmax of S. If `first`, the tile before belongs to the row tile before, which ends here.
template <int D, int TYPE>
static __device__ __forceinline__ void step(const tn_cuda_attention_args &a, shared_storage<D, TYPE> &m,
                                            state<D, TYPE> &w, int group, progress &u, int key, bool first,
                                            bool last)
{
    constexpr int KEYS = shape<D, TYPE>::KEYS, Q_STAGES = shape<D, TYPE>::Q_STAGES;
    int lane = threadIdx.x % TN_WARP, slot = u.n % STAGES, stage = u.at % STAGES,
        before = (u.at - 1) % STAGES;
    const work_tile &t = m.tile[slot];
    bool plain = is_plain(a);
    float factor = plain ? a.scale * TN_LOG2E : 1.0f, shrink[2], max[2], sum[2];
    if (first) tn_barrier_wait(&m.k_full[stage], u.at / STAGES % 2);
    if (u.pending) tn_barrier_wait(&m.v_full[before], (u.at - 1) / STAGES % 2);
    tn_named_sync(TURN_BARRIER + group, 2 * GROUP); // waits for its turn to issue
    issue_scores<D, TYPE>(m, w, m.q[u.n % Q_STAGES] + group * GROUP_ROWS * 8, stage);
    // The compiler has to know that all lanes agree.
    if (__shfl_sync(0xffffffffu, (int)u.pending, 0))
        issue_values<D, TYPE>(m, w, before, u.add);
    else
        tn_wgmma_commit();
    tn_named_arrive(TURN_BARRIER + 1 - group, 2 * GROUP); // gives the turn to the other warpgroup
    tn_wgmma_wait<1>();
    tn_wgmma_keep(w.s);
    if (lane == 0) tn_barrier_arrive(&m.k_empty[stage]);
    if (lane == 0 && last) tn_barrier_arrive(&m.q_empty[u.n % Q_STAGES]);
#pragma unroll
    for (int h = 0; h < 2 && first; h++) {
        max[h] = w.max[h], sum[h] = w.sum[h];
        w.max[h] = -INFINITY, w.sum[h] = 0.0f;
    }
    if (!plain || key < t.from[group] || key + KEYS > t.to[group])
        mask_scores<D, TYPE>(a, t.t, w, row_of(t.t, group), key);
    uint32_t weights[KEYS / 4];
    bool moved = weigh<D, TYPE>(w, factor, first, weights, shrink);
    // This wait is for the next call. It stands here because the loop in it keeps the compiler from moving
    // the softmax behind the wait for P V, with which it is to overlap.
    if (!last) tn_barrier_wait(&m.k_full[stage ^ 1], (u.at + 1) / STAGES % 2);
    tn_wgmma_wait<0>();
    tn_wgmma_keep(w.o);
    if (lane == 0 && u.pending) tn_barrier_arrive(&m.v_empty[before]);
    if (!first) {
        if (moved) shrink_result<D, TYPE>(w, shrink);
    } else if (u.pending) {
        store<D, TYPE>(a, m, m.tile[slot ^ 1].t, w, group, max, sum);
        __syncwarp();
        if (lane == 0) tn_barrier_arrive(&m.tile_empty[slot ^ 1]);
    }
#pragma unroll
    for (int i = 0; i < KEYS / 4; i++) w.p[i] = tn_after(weights[i]);
    u.pending = true, u.add = !first, u.at++;
}

// The same for a consumer that has no rows in the tile: it only gives its turns and the keys and values back.
template <int D, int TYPE>
static __device__ __forceinline__ void skip(shared_storage<D, TYPE> &m, int group, progress &u)
{
    int stage = u.at % STAGES, parity = u.at / STAGES % 2;
    tn_named_sync(TURN_BARRIER + group, 2 * GROUP);
    tn_named_arrive(TURN_BARRIER + 1 - group, 2 * GROUP);
    tn_barrier_wait(&m.k_full[stage], parity);
    if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&m.k_empty[stage]);
    tn_barrier_wait(&m.v_full[stage], parity);
    if (threadIdx.x % TN_WARP == 0) tn_barrier_arrive(&m.v_empty[stage]);
    u.at++;
}

// With CUTS, keys may be cut into parts, and a consumer without rows only gives its turns. Both slow down the
// other tiles (NVIDIA H200, 2048 tokens of f16: 80 to 96 us), so prompts that fill the device go without.
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void consume(const tn_cuda_attention_args &a, shared_storage<D, TYPE> &m,
                                               int group)
{
    constexpr int KEYS = shape<D, TYPE>::KEYS, Q_STAGES = shape<D, TYPE>::Q_STAGES;
    state<D, TYPE> w;
    progress u = {0, 0, false, false};
    for (;; u.n++) {
        int slot = u.n % STAGES, stage = u.n % Q_STAGES;
        const tn_row_tile &p = m.tile[slot].t;
        bool idle = false, finished = Q_STAGES == 1;
        if constexpr (CUTS) {
            tn_barrier_wait(&m.tile_full[slot], u.n / STAGES % 2);
            idle = is_idle(p, group);
            finished = finished || idle || p.seq < 0 || p.key >= p.end;
            // The tile before is still described only while its result is pending.
            if (u.pending) finished = finished || m.tile[slot ^ 1].n_parts > 1;
        }
        // With one stage of queries, those of the next tile arrive late.
        if (finished && u.pending) finish<D, TYPE, CUTS>(a, m, w, group, u);
        if (u.n == 0) {
            tn_barrier_wait(&m.tile_full[0], 0);
            bool any = p.seq >= 0 && !idle;
            if (any && a.q_elem == 2)
                copy_queries<D>(a, p, m.q[0], group * GROUP_ROWS, GROUP_ROWS, threadIdx.x % GROUP, GROUP);
            else if (any)
                convert_queries<D, shape<D, TYPE>::BF16, 8>(a, p, m.q[0], group * GROUP_ROWS, GROUP_ROWS,
                                                            threadIdx.x / TN_WARP % 4, 4);
            tn_named_sync(QUERIES_BARRIER + group, GROUP);
        }
        // For the first tile too, though the warps that arrive have put nothing there: without it, the wait
        // for a later tile could see a phase that has not begun as the one before, which has ended.
        tn_barrier_wait(&m.q_full[stage], u.n / Q_STAGES % 2);
        int start = p.key, end = p.end;
        bool none = p.seq < 0 || start >= end;
        if (!CUTS && none && u.pending) finish<D, TYPE, CUTS>(a, m, w, group, u);
        if (p.seq < 0) break;
        if (none || idle) {
            if (none) store_zeros<D>(a, p, group);
            for (int key = start; CUTS && key < end; key += KEYS) skip<D, TYPE>(m, group, u);
            __syncwarp();
            if (threadIdx.x % TN_WARP == 0) {
                tn_barrier_arrive(&m.q_empty[stage]);
                tn_barrier_arrive(&m.tile_empty[slot]);
            }
            if (CUTS) continue;
        }
        for (int key = start; key < end; key += KEYS)
            step<D, TYPE>(a, m, w, group, u, key, key == start, key + KEYS >= end);
    }
}

template <int D, int TYPE> static __device__ __forceinline__ void init_barriers(shared_storage<D, TYPE> &s)
{
    typedef shape<D, TYPE> S;
    constexpr int FULL = S::QUANTS ? EXPAND_WARPS : 1, // warps that make a tile of keys or values complete
        READERS = CONSUMER_WARPS + FULL,               // of a description of a row tile
        PAGE_READERS = EXPAND_WARPS / (S::KEYS / PAGE);
    for (int i = 0; i < 2; i++) {
        tn_barrier_init(&s.q_full[i], CONVERT_WARPS), tn_barrier_init(&s.q_empty[i], CONSUMER_WARPS);
        tn_barrier_init(&s.k_full[i], FULL), tn_barrier_init(&s.v_full[i], FULL);
        tn_barrier_init(&s.k_empty[i], CONSUMER_WARPS), tn_barrier_init(&s.v_empty[i], CONSUMER_WARPS);
        tn_barrier_init(&s.tile_full[i], 1), tn_barrier_init(&s.tile_empty[i], READERS + S::QUANTS);
    }
    for (int i = 0; i < S::PAGES; i++)
        tn_barrier_init(&s.page_full[i], 1), tn_barrier_init(&s.page_empty[i], PAGE_READERS);
    tn_barrier_init(&s.tail, 1);
    tn_barrier_init_fence();
}

template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void attend(const tn_cuda_attention_wgmma_args &args)
{
    const tn_cuda_attention_mapped &m = args.mapped;
    typedef shape<D, TYPE> S;
    extern __shared__ __align__(1024) char shared_bytes[];
    shared_storage<D, TYPE> &s = *reinterpret_cast<shared_storage<D, TYPE> *>(shared_bytes);
    int role = threadIdx.x / GROUP;
    // The launch for sequences with one query begins with this one and relies on that what came before has
    // ended.
    if (m.a.which == TN_CUDA_ATTENTION_PIECES) tn_pdl_wait();
    tn_pdl_trigger();
    if (threadIdx.x == 0) {
        init_barriers<D, TYPE>(s);
        if (!S::QUANTS) tn_tensor_prefetch(m.k), tn_tensor_prefetch(m.v);
    }
    __syncthreads();
    if (!CUTS) tn_pdl_wait();
    if (role >= 2) {
        tn_registers_release<S::PRODUCER_REGISTERS>();
        produced at = {0, 0, 0, false};
        int page = 0;
        if (role == 3)
            for_each_tile(s, [&](const work_tile &w) {
                if constexpr (S::QUANTS) expand<D, TYPE>(w.t, s, at, page);
            });
        else if (threadIdx.x / TN_WARP % 4 != 0)
            produce_queries<D, TYPE, CUTS>(args, s);
        else {
            for_each_tile(s, [&](const work_tile &w) {
                if constexpr (S::QUANTS)
                    copy_pages<D, TYPE, CUTS>(m, w, s, at);
                else
                    copy_tile<D, TYPE, CUTS>(m, w, s, at);
            });
            if (CUTS) close_tail<D, TYPE>(s, at);
        }
        return;
    }
    tn_registers_acquire<S::CONSUMER_REGISTERS>();
    if (CUTS) tn_pdl_wait();
    if (role == 1) tn_named_arrive(TURN_BARRIER, 2 * GROUP); // warpgroup 0 has the first turn
    consume<D, TYPE, CUTS>(m.a, s, __shfl_sync(0xffffffffu, role, 0));
}
#else
template <int D, int TYPE, bool CUTS>
static __device__ __forceinline__ void attend(const tn_cuda_attention_wgmma_args &)
{
    __trap();
}
#endif

// The entry point for heads of `dim` elements in a cache of type `type`, which `name` names.
#define TN_ATTENTION_WGMMA_ENTRY(dim, name, type, cuts)                                                      \
    TN_ENTRY __launch_bounds__(shape<dim, type>::THREADS, 1)                                                 \
        tn_attention_wgmma_##dim##_##name(const __grid_constant__ tn_cuda_attention_wgmma_args m)            \
    {                                                                                                        \
        attend<dim, type, cuts>(m);                                                                          \
    }
// Both, without and with CUTS.
#define TN_ATTENTION_WGMMA(dim, name, type)                                                                  \
    TN_ATTENTION_WGMMA_ENTRY(dim, name, type, false)                                                         \
    TN_ATTENTION_WGMMA_ENTRY(dim, name##_cut, type, true)

#endif
