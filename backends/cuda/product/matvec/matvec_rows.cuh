// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual for 2 to 8 rows of x and quantised weights, on integer tensor cores.
//
// Operands: x [columns, k] f32 or quantised, w [n, k] in planes, y [columns, n] f32; as in matvec.cuh up to
// three weights share a launch, and rows of x are called columns. Each weight is read once.
//
// The tile, the ring and the slices of the warps are those of the kernel for one row (matvec_mma.cuh): 16
// rows of weights times 256 elements (128 of Q8_0). Here the 8 columns of an mma are 8 rows of x. x has a
// scale for each 16 elements, so mma.m16n8k16 multiplies one such group: lane 4 r + c holds 4 elements of the
// weights of rows r and r + 8 and 4 elements of column r of x, which ldmatrix brings, and gets the sums of
// columns 2 c and 2 c + 1 for both rows. Sums start from the bits of the float 1.5 * 2^23, so that they are
// floats after one subtraction. Minimums are multiplied by the sums of x by mma.m16n8k8 in tf32: they have no
// more bits than tf32, and the sums of x are split into two parts, so nothing is lost. Columns that are not
// there are multiplied as copies of column 0, and their results are dropped.
//
// With up to 8 / GROUPS rows of x (GROUPS 2 or 4), GROUPS groups of 16 stand side by side in the columns of
// B, each with zeros in the rows of the others, so that mma.m16n8k32 multiplies them at once: the sums of a
// lane are of one group, and lanes add them at the end.
//
// matvec_rows_x.cuh has the layout of x in shared memory, matvec_rows_codes.cuh how weights are unpacked, and
// matvec_rows_ring.cuh how they come. Groups of warps have the rows of tiles of a block in turns, the slices
// of a group the tiles of such a row. Sums of slices meet in shared memory.
//
// Bytes: weights + 1.4 k (4 k for f32 rows) for each column and block + 4 n for each column. Operations: 2
// n k for each column. Instructions of a warp for a tile of Q4_K: 420, of which 160 are for scales,
// whatever the number of columns; with GROUPS 2 some 340, with 4 some 290. They are the limit together with
// the latency at the start of a kernel: decode of 8B Q4_K_M with 8 rows takes 2.84 ms a step, without the
// products of tiles 2.28 ms, and without weights and x 1.36 ms, where the weights take 1.05 ms at the read
// peak (H200, 2026-11-23; docs/log/cuda-gemv.md).
#ifndef TN_CUDA_MATVEC_ROWS_CUH
#define TN_CUDA_MATVEC_ROWS_CUH

#include "backends/cuda/product/matvec/matvec_rows_codes.cuh"
#include "backends/cuda/product/matvec/matvec_rows_x.cuh"

// The lane's addresses: of x in its first chunk, and of codes in a slot at 0.
struct mr_lane {
    const char *q;       // of ldmatrix
    int q_step;          // bytes to the next tile, 0 where the lane leads to zeros
    const float *d;      // the scales of columns 2 c and 2 c + 1 (modulo the width) lie two floats apart
    const float2 *min_d; // for the minimums
    const int *sums;
    char *expanded; // of the warp
    int code, bits; // chunk 0 or 1 of planes 0 and 1
};

template <int TYPE, int GROUPS>
static __device__ __forceinline__ mr_lane mr_lane_of(const tn_cuda_matvec_args &a, const mr_layout &x,
                                                     char *shared, const char *zeros, int lane)
{
    typedef mr_tile<TYPE> tile;
    constexpr int slots = mr_kind<TYPE>::expands ? 8 : tile::slots(0), slots1 = tile::slots(1);
    int matrix = lane / 8, row = lane % 8 + matrix % 2 * 8, chunk = matrix / 2;
    constexpr int width = MR_COLUMNS / GROUPS;
    int column = lane % width < a.n_columns ? lane % width : 0, c = lane % 4;
    int own = c * MR_COLUMNS + (lane / 4 < a.n_columns ? lane / 4 : 0);
    // Of each GROUPS groups the columns of one stand in every `width` columns of B, with zeros elsewhere.
    bool has_group = lane % 8 / width == matrix % GROUPS;
    int warp = threadIdx.x / TN_WARP, n_warps = blockDim.x / TN_WARP;
    int pair = 2 * c / width; // the lane's group of GROUPS, whose scale is one of two of 32 elements
    return {has_group ? x.q + column * x.q_stride + matrix * 16 : zeros,
            mt_opaque(has_group ? tile::k : 0),
            (const float *)(x.d + pair / 2 * MR_COLUMNS + 2 * c % width) + pair % 2,
            x.d + own,
            x.sums + own,
            shared + n_warps * a.ring_size + warp * TN_MATVEC_ROWS_EXPANDED(TYPE),
            mt_opaque(row * (16 * slots) + (chunk ^ mr_flip(slots, row)) * 16),
            mt_opaque(tile::offset(1) + row * (16 * slots1) + (chunk ^ mr_flip(slots1, row)) * 16)};
}

// --- the product of a tile ------------------------------------------------------------------------------

// mma.m16n8k16: s32 = (u8 or s8) x s8 + the bits of a float. Compute capability 8.0.
template <bool SIGNED>
static __device__ __forceinline__ void mr_mma(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b)
{
#if __CUDA_ARCH__ >= 800
    int v[4];
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                     "{%7,%7,%7,%7};"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(a0), "r"(a1), "r"(b), "r"(MV_FLOAT_BIAS));
    else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                     "{%7,%7,%7,%7};"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(a0), "r"(a1), "r"(b), "r"(MV_FLOAT_BIAS));
#pragma unroll
    for (int i = 0; i < 4; i++) d[i] = mv_unbias(v[i]);
#else
    __trap();
#endif
}

// mma.m16n8k32: s32 = (u8 or s8) x s8 + c. Compute capability 8.0.
template <bool SIGNED>
static __device__ __forceinline__ void mr_mma32(int (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                uint32_t a3, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    if constexpr (SIGNED)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                     "{%0,%1,%2,%3};"
                     : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// The products of groups 2 P and 2 P + 1 of half H, in which x has scales xs of columns 2 c and 2 c + 1.
template <int TYPE, int H, int P>
static __device__ __forceinline__ void mr_pair(const mr_codes<TYPE> &codes, uint32_t b0, uint32_t b1,
                                               const float4 &xs, const mr_scales<TYPE, 1> (&scales)[2],
                                               float (&sum)[4])
{
    constexpr bool is_signed = mr_kind<TYPE>::is_signed;
    constexpr int g = 2 * P;
    float v0[4], v1[4];
    mr_mma<is_signed>(v0, codes.template word<H, g>(0), codes.template word<H, g>(1), b0);
    mr_mma<is_signed>(v1, codes.template word<H, g + 1>(0), codes.template word<H, g + 1>(1), b1);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float *w = scales[i / 2].w;
        float p0 = v0[i] * (i % 2 ? xs.z : xs.x), x1 = i % 2 ? xs.w : xs.y;
        if constexpr (mr_kind<TYPE>::of16)
            sum[i] += w[g] * p0, sum[i] += w[g + 1] * (v1[i] * x1);
        else
            sum[i] += w[P] * (p0 + v1[i] * x1);
    }
}

// The products of GROUPS groups of half H from group G on, side by side: the lane has sums of one of them,
// for columns 2 c and 2 c + 1 modulo the width, in which x has scales d[0] and d[2].
template <int TYPE, int GROUPS, int H, int G>
static __device__ __forceinline__ void mr_groups(const mr_codes<TYPE> &codes, const uint32_t *b,
                                                 const float *d, const mr_scales<TYPE, GROUPS> (&scales)[2],
                                                 float (&sum)[4])
{
    constexpr bool is_signed = mr_kind<TYPE>::is_signed;
    constexpr int i_scale = GROUPS == 4 ? G / 4 : G / 2;
    int v[4] = {MV_FLOAT_BIAS, MV_FLOAT_BIAS, MV_FLOAT_BIAS, MV_FLOAT_BIAS};
    mr_mma32<is_signed>(v, codes.template word<H, G>(0), codes.template word<H, G>(1),
                        codes.template word<H, G + 1>(0), codes.template word<H, G + 1>(1), b[0], b[1]);
    if constexpr (GROUPS == 4)
        mr_mma32<is_signed>(v, codes.template word<H, G + 2>(0), codes.template word<H, G + 2>(1),
                            codes.template word<H, G + 3>(0), codes.template word<H, G + 3>(1), b[2], b[3]);
    const float x0 = d[0], x1 = d[2];
#pragma unroll
    for (int i = 0; i < 4; i++) sum[i] += scales[i / 2].w[i_scale] * (mv_unbias(v[i]) * (i % 2 ? x1 : x0));
}

// What the warp multiplies.
template <int TYPE> struct mr_operands {
    const char *slot;
    mr_origin origin;
    const mr_lane &x;
    int lane, t; // tile of the chunk of x
};

template <int TYPE, int GROUPS, int H>
static __device__ __forceinline__ void mr_half(const mr_operands<TYPE> &o, mr_codes<TYPE> &codes,
                                               mr_scales<TYPE, GROUPS> (&scales)[2], float (&sum)[4])
{
    const mr_lane &x = o.x;
    const char *q = x.q + o.t * x.q_step + H * MR_HALF, *code = o.slot;
    const float *d = x.d + o.t * (mr_tile<TYPE>::k / 2) + H * (MR_HALF / 2);
    if constexpr (mr_kind<TYPE>::expands) {
        mr_expand<TYPE>(o.slot, o.origin, x.expanded, o.lane, H);
        code = x.expanded;
    }
    codes.load(o.slot, code + x.code, o.slot + x.bits, H);
#pragma unroll
    for (int i = 0; i < 2; i++)
        scales[i].unpack(o.slot, o.origin, x.expanded, o.lane / 4 + 8 * i, o.lane % 4, H);
    uint32_t b[4];
    tn_ldmatrix4(b, q);
    if constexpr (GROUPS == 1) {
        mr_pair<TYPE, H, 0>(codes, b[0], b[1], *(const float4 *)d, scales, sum);
        mr_pair<TYPE, H, 1>(codes, b[2], b[3], *(const float4 *)(d + 16), scales, sum);
        tn_ldmatrix4(b, q + 64);
        mr_pair<TYPE, H, 2>(codes, b[0], b[1], *(const float4 *)(d + 32), scales, sum);
        mr_pair<TYPE, H, 3>(codes, b[2], b[3], *(const float4 *)(d + 48), scales, sum);
    } else if constexpr (GROUPS == 2) {
        mr_groups<TYPE, GROUPS, H, 0>(codes, b, d, scales, sum);
        mr_groups<TYPE, GROUPS, H, 2>(codes, b + 2, d + 16, scales, sum);
        tn_ldmatrix4(b, q + 64);
        mr_groups<TYPE, GROUPS, H, 4>(codes, b, d + 32, scales, sum);
        mr_groups<TYPE, GROUPS, H, 6>(codes, b + 2, d + 48, scales, sum);
    } else {
        mr_groups<TYPE, GROUPS, H, 0>(codes, b, d, scales, sum);
        tn_ldmatrix4(b, q + 64);
        mr_groups<TYPE, GROUPS, H, 4>(codes, b, d + 32, scales, sum);
    }
}

// Subtracts the minimums times the sums of x: the lane has those of groups c and 4 + c (of 32 elements, or of
// 16 of Q2_K, then also 8 + c and 12 + c) of column r.
template <int TYPE, int GROUPS>
static __device__ __forceinline__ void mr_subtract_minimums(const mr_operands<TYPE> &o,
                                                            const mr_scales<TYPE, GROUPS> (&scales)[2],
                                                            float (&total)[4])
{
    constexpr bool of16 = mr_kind<TYPE>::of16;
    const float2 *d = o.x.min_d + o.t * (8 * MR_COLUMNS);
    const int *sums = o.x.sums + o.t * (8 * MR_COLUMNS);
    float v[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int step = 0; step < (of16 ? 2 : 1); step++) {
        uint32_t a[4], low[2], high[2];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = __float_as_uint(scales[i % 2].m[2 * step + i / 2]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float s;
            if constexpr (of16) {
                // Group 8 step + 4 i + c is one of pair 4 step + 2 i + c / 2.
                int c = o.lane % 4, at = (4 * step + 2 * i + c / 2 - c) * MR_COLUMNS;
                float2 f = d[at];
                s = c % 2 ? f.y * (float)(sums[at] >> 16) : f.x * (float)(short)sums[at];
            } else {
                float2 f = d[i * (4 * MR_COLUMNS)];
                int both = sums[i * (4 * MR_COLUMNS)];
                s = f.x * (float)(short)both + f.y * (float)(both >> 16);
            }
            high[i] = __float_as_uint(s) & 0xffffe000u;
            low[i] = __float_as_uint(s - __uint_as_float(high[i]));
        }
        tn_mma_tf32(v, a, low[0], low[1]);
        tn_mma_tf32(v, a, high[0], high[1]);
    }
    // Columns behind the first MR_COLUMNS / GROUPS are no columns of x here.
    if (GROUPS > 1 && o.lane % 4 >= 4 / GROUPS) return;
#pragma unroll
    for (int i = 0; i < 4; i++) total[i] -= scales[i / 2].dm * v[i];
}

// Adds the products of a tile to the lane's sums: rows lane / 4 and lane / 4 + 8, each of columns 2 c and 2 c
// + 1.
template <int TYPE, int GROUPS>
static __device__ __forceinline__ void mr_dot(const mr_operands<TYPE> &o, float (&total)[4])
{
    mr_scales<TYPE, GROUPS> scales[2];
    mr_codes<TYPE> codes;
    codes.lane = o.lane;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < 2; i++) scales[i].load(o.slot, o.origin, o.lane / 4 + 8 * i, o.lane % 4);
    mr_half<TYPE, GROUPS, 0>(o, codes, scales, sum);
    if constexpr (mr_tile<TYPE>::k > MR_HALF) mr_half<TYPE, GROUPS, 1>(o, codes, scales, sum);
#pragma unroll
    for (int i = 0; i < 4; i++) total[i] += scales[i / 2].d * sum[i];
    if constexpr (mr_kind<TYPE>::has_min) mr_subtract_minimums<TYPE, GROUPS>(o, scales, total);
}

// Sums of GROUPS groups over the lanes that have them: 4 / GROUPS remain of four, which are those of the row
// and column of mr_place.
template <int GROUPS> static __device__ __forceinline__ void mr_reduce(float (&total)[4], int lane)
{
    if constexpr (GROUPS > 1) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float sent = lane & 2 ? total[i] : total[2 + i], kept = lane & 2 ? total[2 + i] : total[i];
            total[i] = kept + __shfl_xor_sync(0xffffffffu, sent, 2);
        }
    }
    if constexpr (GROUPS > 2) {
        float sent = lane & 1 ? total[0] : total[1], kept = lane & 1 ? total[1] : total[0];
        total[0] = kept + __shfl_xor_sync(0xffffffffu, sent, 1);
    }
}

// Row of the tile (x) and column (y) of the lane's first sum. Two sums have columns in sequence, four also
// those of 8 rows further on.
template <int GROUPS> static __device__ __forceinline__ int2 mr_place(int lane)
{
    int c = lane % 4, row = lane / 4 + (GROUPS > 1 ? c / 2 * 8 : 0);
    return make_int2(row, GROUPS == 1 ? 2 * c : GROUPS == 2 ? c % 2 * 2 : c % 2);
}

// --- the share of a warp --------------------------------------------------------------------------------

// A chunk of tiles of all parts, with x in shared memory. Sums lie as [row of the block][slice][column].
// Returns the tiles of the warp. HALF: it is the only chunk of the block.
template <int TYPE, int GROUPS, bool HALF = false>
static __device__ __forceinline__ int mr_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                   const mr_lane &x, float *sums, int chunk,
                                                   mr_loader &loader, int &at)
{
    typedef mr_tile<TYPE> tile;
    const int2 place = mr_place<GROUPS>(w.lane);
    sums += w.slice * MR_COLUMNS + place.x * a.sums_stride + place.y;
    const int sums_step = (MR_ROWS << w.group_shift) * a.sums_stride;
    const int first = chunk * a.slice_tiles, n = min(a.slice_tiles, a.n_tiles - first);
    int count = 0, rows_before = 0;
    for (int part = 0; part < a.n_parts; part++) {
        mv_range block = mv_part_rows(a, w, part);
        const tn_cuda_matvec_part &p = a.part[part];
        const mr_turns turns = mr_turns_of(w, block, rows_before);
        float *to = sums + turns.first * MR_ROWS * a.sums_stride;
        mr_operands<TYPE> o = {w.ring, {}, x, w.lane, 0};
        uint32_t tile_address[TN_CUDA_MAX_PLANES]; // of the first tile of the weight
        int row = block.from + turns.first * MR_ROWS;
        rows_before = turns.before;
#pragma unroll
        for (int i = 0; i < tile::planes; i++)
            tile_address[i] = (uint32_t)(uintptr_t)p.plane[i] + (uint32_t)(first * tile::bytes(i)),
            o.origin.row_size[i] = (uint32_t)p.row_size[i];
#pragma unroll 1
        for (int rows = turns.count; rows > 0; rows--, to += sums_step) {
            float total[4] = {0.0f, 0.0f, 0.0f, 0.0f};
            const int begin = min(row, p.n - MR_ROWS), before = row - begin;
#pragma unroll 1
            for (int t = w.slice; t < n; t += 1 << w.slice_shift, count++) {
                mt_wait_oldest();
                __syncwarp(); // all lanes have read the slot before, and see this one
                mr_loader_copy_next<TYPE, HALF>(a, w, loader,
                                                w.ring + (at == 0 ? a.ring_size : at) - tile::size);
#pragma unroll
                for (int i = 0; i < tile::planes; i++)
                    o.origin.address[i] = tile_address[i] + (uint32_t)begin * o.origin.row_size[i] +
                                          (uint32_t)(t * tile::bytes(i));
                o.slot = w.ring + at, o.t = t;
                mr_dot<TYPE, GROUPS>(o, total);
                at += tile::size;
                if (at == a.ring_size) at = 0;
            }
            mr_reduce<GROUPS>(total, w.lane);
#pragma unroll
            for (int i = 0; i < 4 / GROUPS; i++) {
                float *own = to + (i / 2 * 8 - before) * a.sums_stride + i % 2;
                if (place.x + i / 2 * 8 >= before)
                    *own = (!HALF && chunk > 0 ? *own : 0.0f) + mr_kind<TYPE>::inverse * total[i];
            }
            row += MR_ROWS << w.group_shift;
        }
        sums += (block.to - block.from) * a.sums_stride;
    }
    return count;
}

// All chunks; the thread's copies of the first have arrived. Chunks of stored rows are copied while the one
// before is multiplied.
template <int TYPE, int GROUPS>
static __device__ __forceinline__ void mr_run_chunks(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                     char *shared, const char *zeros,
                                                     float (*squares)[TN_WARP], mr_loader &loader)
{
    int at = 0; // offset of the slot in the ring
    bool stored = a.quantised_x.rows != nullptr;
#pragma unroll 1
    for (int chunk = 0;; chunk++) {
        bool more = (chunk + 1) * a.slice_tiles < a.n_tiles;
        if (!stored) {
            __syncthreads(); // the sums of squares are zeros, and all warps are done with the chunk before
            mr_quantise_x<TYPE>(a, shared, chunk, squares);
        }
        __syncthreads();
        // part of the group of the next tile of weights
        if (stored && more) mr_copy_x<TYPE>(a, shared, chunk + 1, (chunk + 1) % 2);
        mr_lane x =
            mr_lane_of<TYPE, GROUPS>(a, mr_layout_of<TYPE>(a, shared, chunk % 2), shared, zeros, w.lane);
        int count = mr_run_parts<TYPE, GROUPS>(a, w, x, (float *)(shared + a.sums_at), chunk, loader, at);
        if (!more) return;
        if (count < 2)
            tn_copy_commit(), tn_copy_wait<0>();
        else
            tn_copy_wait<1>();
    }
}

// --- results ----------------------------------------------------------------------------------------------

// The activations that few models have, out of the way of the others: a kernel's code comes from memory each
// time, because the weights between two launches evict it.
static __device__ __noinline__ float mr_act_any(int kind, float x)
{
    return tn_act(kind, x);
}

static __device__ __forceinline__ float mr_act(int kind, float x)
{
    return kind == TN_UNARY_NONE ? x : kind == TN_UNARY_SILU ? x / (1.0f + expf(-x)) : mr_act_any(kind, x);
}

static __device__ __noinline__ float mr_glu_any(const tn_glu_params &p, float gate, float up)
{
    return tn_glu_of(p, gate, up);
}

// 1 / rms of the rows of x, 1 without a norm, for all threads after a barrier.
static __device__ __forceinline__ void mr_finish_norm(const tn_cuda_matvec_args &a, float (*squares)[TN_WARP],
                                                      float *rms)
{
    if ((int)threadIdx.x >= a.n_columns) return;
    float s = 0.0f;
#pragma unroll 4
    for (int k = 0; k < (a.quantised_x.rows ? 1 : TN_WARP); k++) s += squares[threadIdx.x][k];
    rms[threadIdx.x] = a.norm ? 1.0f / sqrtf(s / (float)a.k + a.eps) : 1.0f;
}

// Writes the results of the block's rows from the sums of the slices. `prefetched` belongs to the thread's
// first result. HALF: the second block of the cluster has left sums of the other half of k.
template <bool HALF = false>
static __device__ __forceinline__ void mr_finish(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const float *sums, const float *rms,
                                                 mv_prefetched prefetched, const float *left = nullptr)
{
    int n = w.end - w.first;
    bool plain_glu = a.is_glu && a.glu.act == TN_UNARY_SILU && !(a.glu.limit > 0.0f) && !(a.glu.alpha > 0.0f);
#pragma unroll 1
    for (int i = threadIdx.x; i < n * a.n_columns; i += blockDim.x) {
        mv_result r = mv_result_of<MR_COLUMNS>(a, w, i);
        if (i >= blockDim.x) prefetched = mv_prefetch_result(a, r, 0);
        const float *at = sums + r.v * a.sums_stride + r.c;
        float v[2] = {0.0f, 0.0f};
#pragma unroll 1
        for (int part = 0; part <= a.is_glu; part++, at += n * a.sums_stride)
            v[0] = v[1], v[1] = mv_sum_slices(a, at, MR_COLUMNS) * rms[r.c];
#ifdef TN_HOPPER // nothing else has halves
        if (HALF) v[1] += tn_cluster_load(left + i, 1);
#endif
        const tn_cuda_matvec_part &p = a.part[r.part];
        float sum = (a.is_glu ? v[0] : v[1]) + prefetched.bias;
        if (plain_glu)
            sum = mr_act(TN_UNARY_SILU, sum) * v[1];
        else if (a.is_glu)
            sum = mr_glu_any(a.glu, sum, v[1]);
        else
            sum = mr_act(a.act, sum);
        sum += prefetched.residual;
        p.y[r.c * p.y_stride + r.j] = sum;
        // Whole half warps hold groups of 16, because blocks have multiples of 16 rows in this case.
        if (a.quantised_y.rows) tn_quantised_store1(a.quantised_y, r.c, r.j, sum, prefetched.norm);
    }
}

// --- the block --------------------------------------------------------------------------------------------

// One block: number `block` of those that share the rows of `a`.
template <int TYPE, int GROUPS>
static __device__ __forceinline__ void mr_run(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    // Sums of squares of rows of x; complete at the barrier after the products.
    __shared__ float squares[MR_COLUMNS][TN_WARP], rms[MR_COLUMNS];
    // What lanes without a group read in place of half a tile and more of x.
    __shared__ uint4 zeros[GROUPS > 1 ? 2 * MR_HALF / 16 : 1];
    if (GROUPS > 1 && threadIdx.x < 2 * MR_HALF / 16) zeros[threadIdx.x] = make_uint4(0, 0, 0, 0);
    mv_warp w = mv_warp_of(a, block, shared);
    w.end = min(w.end, a.n_virtual);
    if (!a.late) tn_pdl_trigger();
    mr_loader loader;
    w.lane = mt_opaque(w.lane), w.slice = mt_opaque(w.slice);
    mr_loader_start<TYPE>(a, w, loader);
    bool stored = a.quantised_x.rows != nullptr;
    // Fills all slots but one. The predecessor's results are waited for behind the first n_early, and the
    // others are filled behind the requests for x, so that weights do not delay it.
#pragma unroll 1
    for (int i = 0;; i++) {
        if (i == a.n_early) {
            mv_prefetch_norm(a);
            tn_pdl_wait();
            if (stored) mr_copy_x<TYPE>(a, shared, 0, 0);
            mt_commit_tile(a);
        }
        if (i == a.n_slots - 1) break;
        mr_loader_copy_next<TYPE>(a, w, loader, w.ring + i * mr_tile<TYPE>::size);
    }
    if (stored)
        mr_add_squares(a, w, squares);
    else
        for (int i = threadIdx.x; i < MR_COLUMNS * TN_WARP; i += blockDim.x) squares[0][i] = 0.0f;
    mv_prefetched prefetched = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < (w.end - w.first) * a.n_columns)
        prefetched = mv_prefetch_result(a, mv_result_of<MR_COLUMNS>(a, w, threadIdx.x), 0);
    tn_copy_wait<1>();
    mr_run_chunks<TYPE, GROUPS>(a, w, shared, (const char *)zeros, squares, loader);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mr_finish_norm(a, squares, rms);
    __syncthreads();
    mr_finish(a, w, (const float *)(shared + a.sums_at), rms, prefetched);
}

// Kernels for up to 8 / GROUPS columns.
#define TN_MATVEC_ROWS_OF(NAME, TYPE, GROUPS)                                                                \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS *TN_WARP, 1)                                                  \
        NAME(const __grid_constant__ tn_cuda_matvec_args a)                                                  \
    {                                                                                                        \
        mr_run<TYPE, GROUPS>(a, blockIdx.x);                                                                 \
    }
#define TN_MATVEC_ROWS(TYPE)   TN_MATVEC_ROWS_OF(tn_matvec_rows_##TYPE, TN_TYPE_##TYPE, 1)
#define TN_MATVEC_2_ROWS(TYPE) TN_MATVEC_ROWS_OF(tn_matvec_2_rows_##TYPE, TN_TYPE_##TYPE, 4)
#define TN_MATVEC_4_ROWS(TYPE) TN_MATVEC_ROWS_OF(tn_matvec_4_rows_##TYPE, TN_TYPE_##TYPE, 2)
// Weights of two types: the first blocks compute those of the first type.
#define TN_MATVEC_ROWS_PAIR_OF(NAME, FIRST, SECOND, GROUPS)                                                  \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS *TN_WARP, 1)                                                  \
        NAME(const __grid_constant__ tn_cuda_matvec_pair a)                                                  \
    {                                                                                                        \
        int n = a.first_blocks, block = blockIdx.x;                                                          \
        if (block < n)                                                                                       \
            mr_run<FIRST, GROUPS>(a.of[0], block);                                                           \
        else                                                                                                 \
            mr_run<SECOND, GROUPS>(a.of[1], block - n);                                                      \
    }
#define TN_MATVEC_ROWS_PAIR(A, B)                                                                            \
    TN_MATVEC_ROWS_PAIR_OF(tn_matvec_rows_##A##_##B, TN_TYPE_##A, TN_TYPE_##B, 1)
#define TN_MATVEC_2_ROWS_PAIR(A, B)                                                                          \
    TN_MATVEC_ROWS_PAIR_OF(tn_matvec_2_rows_##A##_##B, TN_TYPE_##A, TN_TYPE_##B, 4)
#define TN_MATVEC_4_ROWS_PAIR(A, B)                                                                          \
    TN_MATVEC_ROWS_PAIR_OF(tn_matvec_4_rows_##A##_##B, TN_TYPE_##A, TN_TYPE_##B, 2)

#endif
