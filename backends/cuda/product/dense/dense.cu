// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for 3 to 112 rows of x and weights of 16 bits with wgmma (compute capability 9.0).
//
// Operands: x [m, ld] 16-bit as dense_prepare.cu makes it, w [n, k] f16 or bf16 as in the file, y [m, n] f32.
// Of a gated pair whose only reader multiplies in bf16, y is bf16, with up to 8 rows a high and a low part.
// Weights are the 64-row operand of the instruction, rows of x its columns, so that a small number of rows
// wastes nothing. For up to 8 rows, x is split into a high and a low part of 16 bits each, which are columns
// of their own: their sums are added, and no rounding of x is left that f32 sums would show.
//
// A tile is up to four boxes of up to 64 rows of weights; boxes have as many rows as give all multiprocessors
// the same share (product/dense/dense.c). A block takes one tile after another. Where there are fewer tiles
// than multiprocessors, two blocks of a cluster share the k of a tile, and where tiles have a single box,
// both warpgroups of a block share it as well: sums then lie in shared memory, and each thread adds those of
// some results, in the order of blocks and warpgroups, so results do not depend on timing.
//
// Two threads copy stages of weights and of x into a ring by tensor copies; two warpgroups multiply one box
// each, or two (with GLU one of gate and one of up), or half of the k of one. The ring is filled with weights
// before the predecessor has ended, x follows when it has.
//
// Bytes: weights once, and from L2 the whole of x for each tile. Operations: 2 m n k. The limit is memory for
// gated pairs, else what a multiprocessor draws from L2, some 42 bytes in one ns, and the latency of two
// launches (rows of x, product). With the launch that makes rows of x, bf16, H200, 2026-11-23, of what
// reading the weights at 4.42 TB/s would take: GLU 2 x 14336, k 4096: 88 % with 8 rows, 87 % with 16, 77 %
// with 64; 4096 columns, k 14336: 71 % with 16 rows, 49 % with 64; 4096 columns, k 4096: 45
// and 34 %.
#include "backends/cuda/mma.cuh"
#include "backends/cuda/product/dense/dense_args.h"
#include "backends/cuda/product/dense/dense_wgmma.cuh"
#include "backends/cuda/product/epilogue.cuh"

#ifdef TN_HOPPER

// N: rows of x of a tile. BOXES: boxes of weights of each warpgroup.
template <int N, int BOXES> struct dense_shape {
    static constexpr int columns = N, boxes = BOXES;
    static constexpr bool parts = N == 2 * TN_DENSE_SPLIT; // x may have high and low parts
    static constexpr int x_bytes = N * TN_DENSE_PANEL_ROW; // of a panel
    static constexpr int quads = N / 8, all_quads = BOXES * quads; // of sums of a thread: of a box, of all
};

struct dense_ring {
    char *stages;
    uint64_t *full, *empty;
};

// The tiles of this block, and the stages of each that it has.
struct dense_share {
    int tile, step, part; // first tile, and from one to the next
    int from, to;         // stages
};

static __device__ __forceinline__ dense_share dense_share_of(const tn_cuda_dense_args &a)
{
    dense_share s = {(int)blockIdx.x / a.splits, (int)gridDim.x / a.splits, (int)blockIdx.x % a.splits, 0, 0};
    s.from = a.n_stages * s.part / a.splits, s.to = a.n_stages * (s.part + 1) / a.splits;
    return s;
}

// Whether several warpgroups or blocks add their sums. Such blocks have one tile.
static __device__ __forceinline__ bool dense_shares(const tn_cuda_dense_args &a)
{
    return a.splits > 1 || a.shares_box;
}

static __device__ __forceinline__ const tn_cuda_dense_seg *dense_seg_of(const tn_cuda_dense_args &a, int tile)
{
    int s = 0;
#pragma unroll
    for (int i = 1; i < TN_GEMM_MAX_SEGS; i++)
        if (!a.glu && i < a.n_segs && tile >= a.seg[i].first_tile) s = i;
    return &a.seg[s];
}

// First row of a tile in its weight, or in gate and up.
template <typename SHAPE>
static __device__ __forceinline__ int dense_row_of(const tn_cuda_dense_args &a, const tn_cuda_dense_seg &s,
                                                   int tile)
{
    int boxes = a.shares_box ? 1 : a.glu ? TN_DENSE_GROUPS : TN_DENSE_GROUPS * SHAPE::boxes;
    return (tile - s.first_tile) * boxes * a.box_rows;
}

// --- the threads that copy --------------------------------------------------------------------------------

// Where a thread that copies is in the stages of its block and in the ring. Blocks begin at the same k: those
// that ask for the same rows of x at the same time draw them from L2 faster (124 bytes in one ns and
// multiprocessor for x alone; 65 where blocks begin at different k).
struct dense_position {
    dense_share s;
    int tile, at, slot;
    uint32_t parity;

    __device__ __forceinline__ void begin(const tn_cuda_dense_args &a)
    {
        s = dense_share_of(a);
        tile = s.tile, at = s.from, slot = 0, parity = 1;
    }
    __device__ __forceinline__ void next(const tn_cuda_dense_args &a)
    {
        if (++at == s.to) at = s.from, tile += s.step;
        if (++slot == a.slots) slot = 0, parity ^= 1;
    }
};

// Weights are requested before the predecessor has ended, as many as the ring holds.
template <typename SHAPE>
static __device__ __forceinline__ void dense_fetch_weights(const tn_cuda_dense_args &a,
                                                           const dense_ring &ring)
{
    uint64_t policy = dense_evict_first();
    int up = TN_DENSE_GROUPS * a.box_rows * TN_DENSE_PANEL_ROW;
    dense_position at;
    for (at.begin(a); at.tile < a.n_tiles; at.next(a)) {
        const tn_cuda_dense_seg *s = dense_seg_of(a, at.tile);
        int row = dense_row_of<SHAPE>(a, *s, at.tile);
        char *to = ring.stages + at.slot * a.panels * a.panel_bytes;
        uint64_t *full = &ring.full[at.slot];
        tn_mbar_wait(&ring.empty[at.slot], at.parity);
        tn_mbar_expect(full, a.panels * (a.panel_bytes - SHAPE::x_bytes));
        for (int p = 0; p < a.panels; p++, to += a.panel_bytes) {
            int k = (at.at * a.panels + p) * TN_DENSE_K;
            dense_load(to, a.glu ? &a.w_map[0] : &a.w_map[s - a.seg], k, row, full, policy);
            if (a.glu) dense_load(to + up, &a.w_map[1], k, row, full, policy);
        }
    }
}

// A thread of its own, so that x need not wait until the ring is full of weights.
template <typename SHAPE>
static __device__ __forceinline__ void dense_fetch_x(const tn_cuda_dense_args &a, const dense_ring &ring)
{
    tn_pdl_wait();
    dense_position at;
    for (at.begin(a); at.tile < a.n_tiles; at.next(a)) {
        char *to = ring.stages + at.slot * a.panels * a.panel_bytes + a.panel_bytes - SHAPE::x_bytes;
        uint64_t *full = &ring.full[at.slot];
        tn_mbar_wait(&ring.empty[at.slot], at.parity);
        bool apart = SHAPE::parts && a.x_low;
        tn_mbar_expect(full, a.panels * a.x_rows * (apart ? 2 : 1) * TN_DENSE_PANEL_ROW);
        for (int p = 0; p < a.panels; p++, to += a.panel_bytes) {
            int k = (at.at * a.panels + p) * TN_DENSE_K;
            tn_tma_load(to, &a.x_map, k, 0, full);
            if (apart) tn_tma_load(to + TN_DENSE_SPLIT * TN_DENSE_PANEL_ROW, &a.x_map, k, a.x_low, full);
        }
    }
}

// --- results ----------------------------------------------------------------------------------------------

static __device__ __forceinline__ float4 dense_add(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// What the results of a quad need besides sums. Elements of a quad are (row, column), (row, column + 1), (row
// + 8, column), (row + 8, column + 1).
struct dense_rest {
    float4 residual;
    float bias[2], scale[2]; // of rows, of columns
};

static __device__ __forceinline__ void dense_load_rest(const tn_cuda_dense_args &a,
                                                       const tn_cuda_dense_seg &s, dense_rest &q,
                                                       const int (&n)[2], int row, int column)
{
    float residual[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int r = row + 8 * (i / 2), c = column + i % 2;
        residual[i] = a.residual && r < n[i / 2] && c < a.m ? a.residual[c * a.residual_ld + r] : 0.0f;
    }
    q.residual = make_float4(residual[0], residual[1], residual[2], residual[3]);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        q.bias[h] = s.bias && row + 8 * h < n[h] ? s.bias[row + 8 * h] : 0.0f;
        q.scale[h] = a.row_scale && column + h < a.m ? a.row_scale[column + h] : 1.0f;
    }
}

// PARTS: where a result is left in 16 bits, what rounding leaves follows, as dense_prepare.cu has it.
template <bool PARTS>
static __device__ __forceinline__ void dense_store(const tn_cuda_dense_args &a, const tn_cuda_dense_seg &s,
                                                   int row, int column, float v)
{
    if (!a.writes_packed16) {
        ((float *)s.y)[column * s.ld + row] = v;
        return;
    }
    __nv_bfloat16 high = __float2bfloat16_rn(v), *to = (__nv_bfloat16 *)s.y + column * s.ld + row;
    *to = high;
    if (!PARTS || !a.splits_x) return;
    float rounded = __bfloat162float(high), low = fabsf(rounded) <= 3.4028235e38f ? v - rounded : 0.0f;
    to[a.m * s.ld] = __float2bfloat16_rn(low);
}

// The forms of results for which there is code of their own; ANY is called for one element after another,
// because unrolled for all elements of a thread it would not fit the instruction cache.
enum { DENSE_PLAIN, DENSE_SILU, DENSE_ANY };

static __device__ __forceinline__ int dense_form_of(const tn_cuda_dense_args &a)
{
    if (!a.glu) return a.act == TN_UNARY_NONE ? DENSE_PLAIN : DENSE_ANY;
    bool clamps = a.glu_limit > 0.0f || a.glu_alpha > 0.0f;
    return a.act == TN_UNARY_SILU && !clamps ? DENSE_SILU : DENSE_ANY;
}

template <int FORM>
static __device__ __forceinline__ float dense_result(const tn_cuda_dense_args &a, float v, float up,
                                                     float bias, float residual)
{
    if (FORM == DENSE_PLAIN) return v + bias + residual;
    if (FORM == DENSE_SILU) return v / (1.0f + __expf(-v)) * up;
    return a.glu ? gemm_glu(a.act, a.glu_limit, a.glu_alpha, v, up) : gemm_act(a.act, v + bias) + residual;
}

static __device__ __forceinline__ float4 dense_rotate(float4 v)
{
    return make_float4(v.y, v.z, v.w, v.x);
}

template <int FORM, bool PARTS>
static __device__ __forceinline__ void dense_write_quad(const tn_cuda_dense_args &a,
                                                        const tn_cuda_dense_seg &s, int row, int column,
                                                        float4 v, float4 up, const dense_rest &rest,
                                                        const int (&n)[2])
{
    float4 residual = rest.residual;
#pragma unroll(FORM == DENSE_ANY ? 1 : 4)
    for (int i = 0; i < 4; i++) {
        int r = row + 8 * (i / 2), c = column + i % 2;
        float scale = i % 2 ? rest.scale[1] : rest.scale[0], bias = i / 2 ? rest.bias[1] : rest.bias[0];
        float t = dense_result<FORM>(a, v.x * scale, up.x * scale, bias, residual.x);
        if (r < (i / 2 ? n[1] : n[0]) && c < a.m) dense_store<PARTS>(a, s, r, c, t);
        v = dense_rotate(v), up = dense_rotate(up), residual = dense_rotate(residual);
    }
}

// Where results of a thread are: of quad (box b, columns 8 j) it has the rows of weights row + b * box_step
// and 8 further, times the rows of x column + 8 j and one further.
struct dense_place {
    const tn_cuda_dense_seg *seg;
    int row, box_step, column;
    bool in_box[2]; // whether the box has these rows
};

template <typename SHAPE>
static __device__ __forceinline__ dense_place dense_place_of(const tn_cuda_dense_args &a, int tile)
{
    int lane = threadIdx.x % TN_WARP, group = threadIdx.x / 128;
    int row = 16 * (threadIdx.x / TN_WARP % 4) + lane / 4;
    dense_place p = {dense_seg_of(a, tile)};
    p.in_box[0] = row < a.box_rows, p.in_box[1] = row + 8 < a.box_rows;
    p.row = dense_row_of<SHAPE>(a, *p.seg, tile) + row;
    if (!a.shares_box) p.row += group * a.box_rows * (a.glu ? 1 : SHAPE::boxes);
    p.box_step = a.box_rows;
    p.column = 2 * (lane % 4);
    return p;
}

template <int N> static __device__ __forceinline__ float4 dense_quad_at(const float (&d)[N], int j)
{
    return make_float4(d[4 * j], d[4 * j + 1], d[4 * j + 2], d[4 * j + 3]);
}

// Writes a tile whose sums are in registers.
template <int N, int BOXES, int FORM>
static __device__ __forceinline__ void dense_write_tile_as(const tn_cuda_dense_args &a, int tile,
                                                           const float (&d)[BOXES][N / 2])
{
    typedef dense_shape<N, BOXES> shape;
    constexpr int BATCH = shape::quads < 4 ? shape::quads : 4;
    dense_place p = dense_place_of<shape>(a, tile);
    bool split = N == 2 * TN_DENSE_SPLIT && a.splits_x;
    int n[2] = {p.in_box[0] ? p.seg->n : 0, p.in_box[1] ? p.seg->n : 0};
#pragma unroll
    for (int b = 0; b < (FORM == DENSE_SILU ? 1 : BOXES); b++)
#pragma unroll
        for (int j = 0; j < shape::quads; j += BATCH) {
            if (b > 0 && a.glu) break;
            dense_rest rest[BATCH];
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                dense_load_rest(a, *p.seg, rest[i], n, p.row + b * p.box_step, p.column + 8 * (j + i));
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                float4 v = dense_quad_at(d[b], j + i), up = dense_quad_at(d[BOXES - 1], j + i);
                if (split && i == 0)
                    v = dense_add(v, dense_quad_at(d[b], 1)),
                    up = dense_add(up, dense_quad_at(d[BOXES - 1], 1));
                if (split && i > 0) break;
                dense_write_quad<FORM, shape::parts>(a, *p.seg, p.row + b * p.box_step,
                                                     p.column + 8 * (j + i), v, up, rest[i], n);
            }
        }
}

// The same for any activation: a few quads at a time are finished and the others move up.
template <int N, int BOXES>
static __device__ __forceinline__ void dense_write_tile_any(const tn_cuda_dense_args &a, int tile,
                                                            float (&d)[BOXES][N / 2])
{
    typedef dense_shape<N, BOXES> shape;
    constexpr int BATCH = 2; // high and low parts of x are two quads
    dense_place p = dense_place_of<shape>(a, tile);
    bool split = N == 2 * TN_DENSE_SPLIT && a.splits_x, glu = BOXES == 2 && a.glu;
    int n[2] = {p.in_box[0] ? p.seg->n : 0, p.in_box[1] ? p.seg->n : 0};
#pragma unroll 1
    for (int j = 0; j < (glu ? shape::quads : shape::all_quads); j += BATCH) {
        int r = p.row + j / shape::quads * p.box_step, c = p.column + 8 * (j % shape::quads);
        dense_rest rest[BATCH];
        float4 v[BATCH], up[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            dense_load_rest(a, *p.seg, rest[i], n, r, c + 8 * i);
            v[i] = dense_quad_at(d[0], i), up[i] = dense_quad_at(d[BOXES - 1], i);
        }
        if (split) v[0] = dense_add(v[0], v[1]), up[0] = dense_add(up[0], up[1]);
#pragma unroll 1
        for (int i = 0; i < (split ? 1 : BATCH); i++) {
            dense_write_quad<DENSE_ANY, shape::parts>(a, *p.seg, r, c + 8 * i, v[0], up[0], rest[0], n);
            v[0] = v[1], up[0] = up[1], rest[0] = rest[1];
        }
#pragma unroll
        for (int e = 0; e < BOXES * N / 2 - 4 * BATCH; e++)
            d[e / (N / 2)][e % (N / 2)] = d[(e + 4 * BATCH) / (N / 2)][(e + 4 * BATCH) % (N / 2)];
    }
}

template <int N, int BOXES>
static __device__ __forceinline__ void dense_write_tile(const tn_cuda_dense_args &a, int tile,
                                                        float (&d)[BOXES][N / 2])
{
    int form = dense_form_of(a);
    if (form == DENSE_PLAIN)
        dense_write_tile_as<N, BOXES, DENSE_PLAIN>(a, tile, d);
    else if (BOXES == 2 && form == DENSE_SILU)
        dense_write_tile_as<N, BOXES, DENSE_SILU>(a, tile, d);
    else
        dense_write_tile_any<N, BOXES>(a, tile, d);
}

// --- sums of several warpgroups and blocks ----------------------------------------------------------------

// Sums lie in the ring, which nobody needs any more: [warpgroup][quad][thread of the warpgroup][4].
template <int N, int BOXES>
static __device__ __forceinline__ void dense_store_sums(float *sums, const float (&d)[BOXES][N / 2])
{
    typedef dense_shape<N, BOXES> shape;
    float4 *to = (float4 *)sums + threadIdx.x / 128 * (shape::all_quads * 128) + threadIdx.x % 128;
#pragma unroll
    for (int b = 0; b < BOXES; b++)
#pragma unroll
        for (int j = 0; j < shape::quads; j++) to[(b * shape::quads + j) * 128] = dense_quad_at(d[b], j);
}

// The sum of a quad over the blocks of the cluster and, if they share a box, the warpgroups, in this order.
template <typename SHAPE>
static __device__ __forceinline__ float4 dense_sum_quad(const tn_cuda_dense_args &a, const float4 *sums,
                                                        int quad)
{
    constexpr int MOST = TN_DENSE_MAX_SPLITS * TN_DENSE_GROUPS, size = SHAPE::all_quads * 128;
    const float4 *from = sums + quad * 128 + threadIdx.x % 128;
    if (!a.shares_box) from += threadIdx.x / 128 * size;
    float4 v[MOST];
#pragma unroll
    for (int i = 0; i < MOST; i++) {
        int rank = i / TN_DENSE_GROUPS, group = i % TN_DENSE_GROUPS;
        bool exists = rank < a.splits && (group == 0 || a.shares_box);
        v[i] = !exists         ? make_float4(0.0f, 0.0f, 0.0f, 0.0f)
               : a.splits == 1 ? from[group * size]
                               : dense_cluster_load(from + group * size, rank);
    }
#pragma unroll
    for (int i = 1; i < MOST; i++) v[0] = dense_add(v[0], v[i]);
    return v[0];
}

// This thread's share of the results of a tile whose sums are added up: quads first, first + step and so on.
// BATCH of them at a time are on their way; what the first ones need besides sums is loaded before the
// cluster meets.
template <typename SHAPE, int FORM> struct dense_shared_results {
    static constexpr int BATCH = FORM == DENSE_ANY || SHAPE::all_quads < 8 ? 1 : 4;
    dense_place place;
    int n[2], first, step, end;
    bool split;
    dense_rest rest[BATCH];

    __device__ __forceinline__ void load(const tn_cuda_dense_args &a, int begin)
    {
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            int j = begin + i * step;
            if (j < end)
                dense_load_rest(a, *place.seg, rest[i], n, place.row + j / SHAPE::quads * place.box_step,
                                place.column + 8 * (j % SHAPE::quads));
        }
    }

    __device__ __forceinline__ void begin(const tn_cuda_dense_args &a, int tile, int part)
    {
        place = dense_place_of<SHAPE>(a, tile);
        split = SHAPE::columns == 2 * TN_DENSE_SPLIT && a.splits_x;
        n[0] = place.in_box[0] ? place.seg->n : 0, n[1] = place.in_box[1] ? place.seg->n : 0;
        first = a.shares_box ? 2 * part + (int)threadIdx.x / 128 : part;
        step = a.shares_box ? 2 * a.splits : a.splits;
        end = split ? 1 : SHAPE::all_quads;
        load(a, first);
    }

    __device__ __forceinline__ void write(const tn_cuda_dense_args &a, const float4 *sums)
    {
#pragma unroll 1
        for (int j0 = first; j0 < end; j0 += BATCH * step) {
            float4 v[BATCH];
            if (j0 > first) load(a, j0);
#pragma unroll
            for (int i = 0; i < BATCH; i++)
                if (j0 + i * step < end) v[i] = dense_sum_quad<SHAPE>(a, sums, j0 + i * step);
            if (split) v[0] = dense_add(v[0], dense_sum_quad<SHAPE>(a, sums, 1));
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                int j = j0 + i * step;
                if (j < end)
                    dense_write_quad<FORM, false>(
                        a, *place.seg, place.row + j / SHAPE::quads * place.box_step,
                        place.column + 8 * (j % SHAPE::quads), v[i], v[i], rest[i], n);
            }
        }
    }
};

// Called by all threads that multiply, after each has stored its sums.
template <typename SHAPE, int FORM>
static __device__ __forceinline__ void dense_write_shared(const tn_cuda_dense_args &a, const float4 *sums)
{
    dense_shared_results<SHAPE, FORM> results;
    results.begin(a, blockIdx.x / a.splits, blockIdx.x % a.splits);
    if (a.splits > 1)
        tn_cluster_sync();
    else
        tn_named_barrier(1, TN_DENSE_SUMMING);
    results.write(a, sums);
}

// --- the warpgroups that multiply -------------------------------------------------------------------------

template <int TYPE, int N, int BOXES>
static __device__ __forceinline__ void dense_multiply(const tn_cuda_dense_args &a, const dense_ring &ring)
{
    typedef dense_shape<N, BOXES> shape;
    dense_share s = dense_share_of(a);
    int group = threadIdx.x / 128, slot = 0, box = a.box_rows * TN_DENSE_PANEL_ROW;
    // Of a box that both warpgroups share, each has two of the four steps of k of a panel.
    int own = a.shares_box ? 0 : group * box * (a.glu ? 1 : BOXES),
        box_step = a.glu ? TN_DENSE_GROUPS * box : box;
    int own_k = a.shares_box ? 4 * group : 0;
    bool first_lane = threadIdx.x % TN_WARP == 0;
    uint32_t parity = 0;
    for (int tile = s.tile; tile < a.n_tiles; tile += s.step) {
        float d[BOXES][N / 2];
        int previous = 0;
        for (int at = s.from; at < s.to; at++) {
            char *panel = ring.stages + slot * a.panels * a.panel_bytes;
            tn_mbar_wait(&ring.full[slot], parity);
#pragma unroll 1
            for (int p = 0; p < a.panels; p++, panel += a.panel_bytes) {
                tn_wgmma_fence();
                uint64_t x = tn_wgmma_tile(panel + a.panel_bytes - shape::x_bytes) + own_k,
                         w = tn_wgmma_tile(panel + own) + own_k;
#pragma unroll
                for (int k = 0; k < TN_DENSE_K / 16; k++) {
                    if (BOXES == 1 && k == TN_DENSE_K / 32 && a.shares_box) break;
#pragma unroll
                    for (int b = 0; b < BOXES; b++)
                        dense_wgmma<TYPE>(d[b], w + b * (box_step / 16) + 2 * k, x + 2 * k,
                                          at > s.from || p > 0 || k > 0);
                }
                tn_wgmma_commit();
            }
            tn_wgmma_wait<1>();
            if (at > s.from && first_lane) tn_mbar_arrive(&ring.empty[previous]);
            previous = slot;
            if (++slot == a.slots) slot = 0, parity ^= 1;
        }
        tn_wgmma_wait<0>();
#pragma unroll
        for (int b = 0; b < BOXES; b++) dense_settle(d[b]);
        if (first_lane) tn_mbar_arrive(&ring.empty[previous]);
        if (!dense_shares(a)) {
            dense_write_tile<N, BOXES>(a, tile, d);
            continue;
        }
        // The only tile of this block. Both warpgroups have read the ring.
        tn_named_barrier(1, TN_DENSE_SUMMING);
        dense_store_sums<N, BOXES>((float *)ring.stages, d);
    }
}
#endif

template <int TYPE, int N, int BOXES>
static __device__ __forceinline__ void dense_block(const tn_cuda_dense_args &a)
{
#ifdef TN_HOPPER
    typedef dense_shape<N, BOXES> shape;
    extern __shared__ char dense_space[];
    __shared__ uint64_t bars[2 * TN_DENSE_MAX_SLOTS];
    char *stages = dense_space + (TN_DENSE_ALIGN - tn_shared(dense_space) % TN_DENSE_ALIGN) % TN_DENSE_ALIGN;
    dense_ring ring = {stages, bars, bars + TN_DENSE_MAX_SLOTS};
    if (threadIdx.x == TN_DENSE_SUMMING) {
        for (int i = 0; i < a.slots; i++) {
            tn_mbar_init(&ring.full[i], 2); // for weights and for x
            tn_mbar_init(&ring.empty[i], TN_DENSE_SUMMING / TN_WARP);
        }
        tn_mbar_init_fence();
        tn_tma_prefetch(&a.x_map);
        for (int i = 0; i < a.n_segs; i++) tn_tma_prefetch(&a.w_map[i]);
    }
    tn_pdl_trigger();
    __syncthreads();
    if (threadIdx.x >= TN_DENSE_SUMMING) {
        if (threadIdx.x == TN_DENSE_SUMMING) dense_fetch_weights<shape>(a, ring);
        if (threadIdx.x == TN_DENSE_SUMMING + TN_WARP) dense_fetch_x<shape>(a, ring);
        __syncwarp();
        if (a.splits > 1) tn_cluster_sync(), tn_cluster_sync();
    } else {
        tn_pdl_wait();
        dense_multiply<TYPE, N, BOXES>(a, ring);
        if (!dense_shares(a)) return;
        if (a.act == TN_UNARY_NONE)
            dense_write_shared<shape, DENSE_PLAIN>(a, (float4 *)stages);
        else
            dense_write_shared<shape, DENSE_ANY>(a, (float4 *)stages);
        // Nobody ends while others read its shared memory.
        if (a.splits > 1) tn_cluster_sync();
    }
#else
    __trap();
#endif
}

#define DENSE(TYPE, N, BOXES)                                                                                \
    TN_ENTRY __launch_bounds__(TN_DENSE_THREADS, 1)                                                          \
        tn_dense_##TYPE##_##N##x##BOXES(const __grid_constant__ tn_cuda_dense_args a)                        \
    {                                                                                                        \
        dense_block<TN_##TYPE, N, BOXES>(a);                                                                 \
    }
// clang-format off
#define DENSES(TYPE)   \
    DENSE(TYPE, 16, 1) \
    DENSE(TYPE, 16, 2) \
    DENSE(TYPE, 32, 1) \
    DENSE(TYPE, 32, 2) \
    DENSE(TYPE, 64, 1) \
    DENSE(TYPE, 64, 2) \
    DENSE(TYPE, 96, 1) \
    DENSE(TYPE, 96, 2) \
    DENSE(TYPE, 112, 1) \
    DENSE(TYPE, 112, 2)
// clang-format on
DENSES(BF16)
DENSES(F16)
