// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual and its relatives for up to 8 rows of x ("columns"): every weight is read once, so memory is
// the limit, and all that this does is keep it busy.
//
// Blocks share the rows of all weights of the step evenly, one block per multiprocessor. Within a block a warp takes a slice of k
// (a power of two of them, as few as keep the activations of a slice in registers: 128 values a lane) of its share of the block's rows. Weights come by
// bulk copies into a ring of the warp in shared memory, some 12 KiB: 100 KB in flight per multiprocessor, with which it does not matter how
// long an instruction waits. Copies start before the predecessor has finished (weights never change), and two such kernels fit into a
// multiprocessor: while one rounds its activations, the copies of the other use the memory.
//
// Activations of quantised weights are rounded by each block: int8 per 32, d = max|x| / 127, as the CPU does it. A norm is applied as x g
// before rounding; its factor 1 / rms, the same for a whole row, comes last, so that nothing waits for it.
// Sums of slices meet in shared memory; the block finishes its rows there, in fixed order.
//
// Bytes: weights + 4 k + 4 n. Limits and measurements: docs/performance.md, "CUDA: matrix times vector".
#ifndef TN_CUDA_MATVEC_CUH
#define TN_CUDA_MATVEC_CUH

#include "backends/cuda/args_matvec.h"
#include "backends/cuda/kernels/activation.cuh"
#include "backends/cuda/kernels/bulk.cuh"
#include "backends/cuda/kernels/matvec_units.cuh"
#include "backends/cuda/kernels/rounded.cuh"

// --- the share of a warp ----------------------------------------------------------------------------

// Rows of a weight.
struct mv_range {
    int from, to;
};

struct mv_warp {
    int lane, slice, group, group_shift; // 2^group_shift groups of warps share the block's rows
    int first, end;   // of the rows of all parts: the block's
    int64_t expert;   // rows before those of the expert
    char *ring;       // of the warp
    uint64_t *full;   // n_slots
};

// The block's rows of a part.
static __device__ __forceinline__ mv_range mv_part_rows(const tn_cuda_matvec_args &a, const mv_warp &w, int part)
{
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range r = {max(w.first - p.first, 0), min(w.end - p.first, p.n)};
    r.to = max(r.to, r.from);
    return r;
}

// The warp's.
static __device__ __forceinline__ mv_range mv_warp_rows(const tn_cuda_matvec_args &a, const mv_warp &w, int part)
{
    mv_range r = mv_part_rows(a, w, part);
    int n = r.to - r.from;
    return {r.from + (n * w.group >> w.group_shift), r.from + (n * (w.group + 1) >> w.group_shift)};
}

static __device__ __forceinline__ int mv_slice_blocks(const tn_cuda_matvec_args &a, const mv_warp &w)
{
    return min(a.slice_blocks, a.n_blocks - w.slice * a.slice_blocks);
}

// --- the ring ---------------------------------------------------------------------------------------

// Bytes of a block in each plane, from backends/planes.def.
struct mv_piece {
    int start, size, plane, at;
};
static constexpr __host__ __device__ int mv_plane_size(int plane, mv_piece a, mv_piece b = {}, mv_piece c = {}, mv_piece d = {}, mv_piece e = {})
{
    return (a.plane == plane ? a.size : 0) + (b.plane == plane ? b.size : 0) + (c.plane == plane ? c.size : 0) + (d.plane == plane ? d.size : 0) +
           (e.plane == plane ? e.size : 0);
}

template <int TYPE> static constexpr __host__ __device__ int mv_unit_size(int plane)
{
    switch (TYPE) {
#define TN_PLANES(type, ...) \
    case TN_TYPE_##type: return mv_plane_size(plane, __VA_ARGS__);
#include "backends/planes.def"
    default: return plane == 0 ? 16 : 0; // no planes: what a lane takes at a time
    }
}

template <int TYPE> static constexpr __host__ __device__ int mv_n_planes()
{
    int n = 1;
    while (n < TN_CUDA_MAX_PLANES && mv_unit_size<TYPE>(n) > 0) n++;
    return n;
}

// Lane p of a warp copies plane p. Bulk copies move whole 16 bytes: those around the piece that is wanted, which lie inside the allocation.
struct mv_feed {
    const char *from;
    int row_size, size; // of the plane; of the slice of one row
    int part, row, to;  // rows that are left of a part
    int slot;
    char *room;         // of the plane in slot 0
};

// The first piece of the warp's share of a part in plane `plane`.
static __device__ __forceinline__ const char *mv_first_piece(const tn_cuda_matvec_args &a, const mv_warp &w, int part, int plane, int row)
{
    const tn_cuda_matvec_part &p = a.part[part];
    return p.plane[plane] + (w.expert + row) * p.row_size[plane] + (int64_t)w.slice * a.slice_blocks * p.unit[plane];
}

// Starts the copies of the next rows into the next slot, if there are rows left. By the lanes of the planes, or by all lanes where nothing
// copies by itself.
template <int TYPE> static __device__ __forceinline__ void mv_feed_next(const tn_cuda_matvec_args &a, const mv_warp &w, mv_feed &f)
{
    constexpr int planes = mv_n_planes<TYPE>();
    int lane = TN_BULK || w.lane < planes ? w.lane : 0;
    while (f.row >= f.to && f.part + 1 < a.n_parts) {
        mv_range r = mv_warp_rows(a, w, ++f.part);
        f.row = r.from, f.to = r.to;
        f.from = mv_first_piece(a, w, f.part, lane, f.row);
        f.row_size = (int)a.part[f.part].row_size[lane];
        f.size = mv_slice_blocks(a, w) * a.part[f.part].unit[lane];
        f.room = w.ring + a.part[f.part].slot_at[lane];
    }
    if (f.row >= f.to) return;
    int rows = min(a.stage_rows, f.to - f.row);
    uint32_t over = (uint32_t)(uintptr_t)f.from & 15u, bytes = ((uint32_t)((rows - 1) * f.row_size + f.size) + over + 15u) & ~15u;
#if TN_BULK
    tn_bulk_expect(&w.full[f.slot], bytes);
    tn_bulk_copy(f.room + f.slot * a.slot_size, f.from - over, bytes, &w.full[f.slot]);
#else
#pragma unroll
    for (int p = 0; p < planes; p++) {
        uint64_t from = __shfl_sync(0xffffffffu, (unsigned long long)(uintptr_t)(f.from - over), p);
        tn_bulk_copy(w.ring + f.slot * a.slot_size + a.part[f.part].slot_at[p], (const char *)from, __shfl_sync(0xffffffffu, bytes, p), nullptr);
    }
#endif
    f.from += rows * f.row_size;
    f.row += rows;
    f.slot = f.slot + 1 == a.n_slots ? 0 : f.slot + 1;
}

template <int TYPE> static __device__ __forceinline__ bool mv_feeds(const mv_warp &w)
{
    return !TN_BULK || w.lane < mv_n_planes<TYPE>();
}

// --- activations ------------------------------------------------------------------------------------

static __device__ __forceinline__ float4 mv_load4(const float *p, bool aligned)
{
    if (aligned) return __ldcg((const float4 *)p);
    return make_float4(__ldcg(p), __ldcg(p + 1), __ldcg(p + 2), __ldcg(p + 3));
}

// 16 values, the lane's half of a group of 32 that it shares with its neighbour: their int8, and the entries of mv_x.
static __device__ __forceinline__ void mv_round16(const float4 (&v)[4], int k, bool valid, char *q, float *d, short *sum)
{
    uint32_t top = max(max(tn_top4(v[0]), tn_top4(v[1])), max(tn_top4(v[2]), tn_top4(v[3])));
    top = max(top, __shfl_xor_sync(0xffffffffu, top, 1));
    tn_round_scale s = tn_round_scale_of(top);
    int4 words = make_int4(tn_round4(v[0], s), tn_round4(v[1], s), tn_round4(v[2], s), tn_round4(v[3], s));
    if (!valid) return;
    *(int4 *)(q + k) = words;
    sum[k / 16] = (short)__dp4a(words.x, 0x01010101, __dp4a(words.y, 0x01010101, __dp4a(words.z, 0x01010101, __dp4a(words.w, 0x01010101, 0))));
    if (k % 32 == 0) d[k / 32] = s.d;
}

static __device__ __forceinline__ mv_x mv_x_at(char *shared, int k)
{
    return {shared, (const float *)(shared + TN_ROUNDED_D(k)), (const short *)(shared + TN_ROUNDED_SUM(k))};
}

static __device__ __forceinline__ void mv_load16(float4 (&v)[4], const float *p, bool aligned, bool valid)
{
#pragma unroll
    for (int i = 0; i < 4; i++) v[i] = valid ? mv_load4(p + 4 * i, aligned) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// All threads: rounds a row of x, times the weight of a norm. Returns the thread's part of the sum of squares of x. The next values are on
// their way while some are rounded.
static __device__ __forceinline__ float mv_round_row(const float *x, const float *norm, int k, char *shared)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
    int step = blockDim.x * 16, at = threadIdx.x * 16;
    float4 v[4], later[4], g[4];
    mv_load16(v, x + at, aligned, at < k);
#pragma unroll 1
    for (int base = 0; base < k; base += step, at += step) {
        mv_load16(later, x + at + step, aligned, at + step < k);
        if (norm) {
            mv_load16(g, norm + at, aligned, at < k);
#pragma unroll
            for (int i = 0; i < 4; i++) {
                squares += v[i].x * v[i].x + v[i].y * v[i].y + v[i].z * v[i].z + v[i].w * v[i].w;
                v[i].x *= g[i].x, v[i].y *= g[i].y, v[i].z *= g[i].z, v[i].w *= g[i].w;
            }
        }
        mv_round16(v, at, at < k, shared, (float *)(shared + TN_ROUNDED_D(k)), (short *)(shared + TN_ROUNDED_SUM(k)));
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = later[i];
    }
    return squares;
}

// All threads: a row that was rounded before comes to shared memory.
static __device__ __forceinline__ void mv_copy_row(const char *from, int k, char *shared)
{
    enum { AHEAD = 4 };
    int n = (k + k / 4 + 15) / 16;
    for (int base = threadIdx.x; base < n; base += AHEAD * blockDim.x) {
        int4 v[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) v[i] = __ldcg((const int4 *)from + base + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (base + i * blockDim.x < n) ((int4 *)shared)[base + i * blockDim.x] = v[i];
    }
}

// A warp: the sum of squares of a row that was rounded before.
static __device__ __forceinline__ float mv_sum_squares(const char *row, int k, int lane)
{
    const float *squares = (const float *)(row + TN_ROUNDED_SQUARES(k));
    float sum = 0.0f;
#pragma unroll 4
    for (int i = lane; i < k / 32; i += TN_WARP) sum += __ldcg(squares + i);
    return tn_warp_sum(sum);
}

// The unit that lane `lane` has in turn i; past the slice an early one of the same place in its block, with activations of zero.
static __device__ __forceinline__ int mv_unit_of(int i, int lane, int n_units)
{
    int unit = i * TN_WARP + lane;
    return unit < n_units ? unit : lane % 8 < n_units ? lane % 8 : 0;
}

// All threads: a row of x, times the weight of a norm, to shared memory as it is. Returns the thread's part of the sum of squares of x.
static __device__ __forceinline__ float mv_stage_row(const float *x, const float *norm, int k, float *shared)
{
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
#pragma unroll 4
    for (int at = threadIdx.x * 4; at < k; at += blockDim.x * 4) {
        float4 v = mv_load4(x + at, aligned);
        if (norm) {
            float4 g = mv_load4(norm + at, aligned);
            squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
            v.x *= g.x, v.y *= g.y, v.z *= g.z, v.w *= g.w;
        }
        *(float4 *)(shared + at) = v;
    }
    return squares;
}

// Plain types: the lane's values, from the staged row (norm NULL then) or from global memory. Returns the sum of squares of x.
template <int TYPE, int UNITS>
static __device__ __forceinline__ float mv_load_plain(typename mv_unit<TYPE>::acts (&acts)[UNITS], const float *x, const float *norm, bool staged, int k0,
                                                      int n_units, int lane)
{
    constexpr int elems = TN_MATVEC_UNIT_ELEMS(TYPE);
    bool aligned = (((uintptr_t)x | (uintptr_t)norm) & 15u) == 0;
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        int unit = i * TN_WARP + lane;
        acts[i] = {};
        if (unit >= n_units) continue;
#pragma unroll
        for (int j = 0; j < elems; j += 4) {
            int k = k0 + unit * elems + j;
            float4 v = staged ? *(const float4 *)(x + k) : mv_load4(x + k, aligned);
            if (norm) {
                float4 g = mv_load4(norm + k, aligned);
                squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
                v.x *= g.x, v.y *= g.y, v.z *= g.z, v.w *= g.w;
            }
            acts[i].x[j] = v.x, acts[i].x[j + 1] = v.y, acts[i].x[j + 2] = v.z, acts[i].x[j + 3] = v.w;
        }
    }
    return squares;
}

template <int TYPE, int UNITS>
static __device__ __forceinline__ void mv_load_rounded(typename mv_unit<TYPE>::acts (&acts)[UNITS], const mv_x &x, int k0, int n_units, int lane)
{
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        acts[i] = {};
        int unit = i * TN_WARP + lane;
        if (unit < n_units) mv_unit<TYPE>::load(acts[i], x, k0 + unit * TN_MATVEC_UNIT_ELEMS(TYPE));
    }
}

// --- rows -------------------------------------------------------------------------------------------

// Sums over the lanes of COLUMNS values each; value c in lane c * 32 / COLUMNS.
template <int COLUMNS> static __device__ __forceinline__ float mv_reduce(float (&v)[COLUMNS], int lane)
{
    int n = COLUMNS;
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
        if (n > 1) {
            n /= 2;
            bool up = lane & i;
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                if (j >= n) break;
                float give = up ? v[j] : v[j + n], keep = up ? v[j + n] : v[j];
                v[j] = keep + __shfl_xor_sync(0xffffffffu, give, i);
            }
        } else {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], i);
        }
    }
    return v[0];
}

template <int TYPE, int COLUMNS> struct mv_part_run {
    static constexpr int UNITS = TN_MATVEC_LANE_UNITS(TYPE, COLUMNS);
    // Rows of the weight at a time: with one column the way through a single row is longer than its work.
    static constexpr int ROWS = COLUMNS == 1 ? 2 : 1, VALUES = ROWS * COLUMNS;
    typedef mv_unit<TYPE> unit_type;
    typedef typename unit_type::acts acts_row[UNITS];

    // ROWS rows of the slice, from shared memory; the lane's units are `at`.
    template <int N>
    static __device__ __forceinline__ void multiply(const acts_row (&acts)[COLUMNS], const char *const (&planes)[ROWS][TN_CUDA_MAX_PLANES],
                                                    const int (&at)[UNITS], float (&sum)[VALUES])
    {
#pragma unroll
        for (int i = 0; i < VALUES; i++) sum[i] = 0.0f;
#pragma unroll
        for (int i = 0; i < N; i++) {
#pragma unroll
            for (int v = 0; v < VALUES; v++) sum[v] = unit_type::dot(acts[v % COLUMNS][i], planes[v / COLUMNS], at[i], sum[v]);
        }
    }

    // Of the rows of a warp, half the units if these are all there are.
    static __device__ __forceinline__ void run(const tn_cuda_matvec_args &a, const mv_warp &w, int part, const acts_row (&acts)[COLUMNS], float *sums,
                                               mv_feed &feed, int &slot, uint32_t &phase)
    {
        int n_units = mv_slice_blocks(a, w) * (tn_is_plain(TYPE) ? 1 : a.block_elems / TN_MATVEC_UNIT_ELEMS(TYPE));
        int at[UNITS];
#pragma unroll
        for (int i = 0; i < UNITS; i++) at[i] = mv_unit_of(i, w.lane, n_units);
        if (UNITS > 1 && n_units <= UNITS / 2 * TN_WARP) run_units<UNITS == 1 ? 1 : UNITS / 2>(a, w, part, acts, at, sums, feed, slot, phase);
        else run_units<UNITS>(a, w, part, acts, at, sums, feed, slot, phase);
    }

    // The warp's rows of a part; sums go to `sums`, [row of the block][slice][column]. ROWS rows at a time, of one slot or, where that holds
    // one, of as many; past the last row the last one again, for nothing.
    template <int N>
    static __device__ __forceinline__ void run_units(const tn_cuda_matvec_args &a, const mv_warp &w, int part, const acts_row (&acts)[COLUMNS],
                                                     const int (&at)[UNITS], float *sums, mv_feed &feed, int &slot, uint32_t &phase)
    {
        constexpr int n_planes = mv_n_planes<TYPE>(), lanes = TN_WARP / VALUES; // that end up with the same value
        const tn_cuda_matvec_part &p = a.part[part];
        mv_range block = mv_part_rows(a, w, part), rows = mv_warp_rows(a, w, part);
        int row_size[n_planes], left = rows.to - rows.from, row = w.lane / lanes / COLUMNS;
        uint32_t over[n_planes]; // where the piece begins in its copy, in the low bits
#pragma unroll
        for (int i = 0; i < n_planes; i++) {
            row_size[i] = (int)p.row_size[i];
            over[i] = (uint32_t)(uintptr_t)mv_first_piece(a, w, part, i, rows.from);
        }
        sums += ((rows.from - block.from + row) * a.n_slices + w.slice) * COLUMNS + w.lane / lanes % COLUMNS;
        while (left > 0) {
            const char *planes[ROWS][TN_CUDA_MAX_PLANES] = {};
            bool several = a.stage_rows == 1 && left >= ROWS; // slots
            int n = min(max(a.stage_rows, ROWS), left);
            left -= n;
            tn_bulk_wait(&w.full[slot], phase);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                if (r > 0 && several) {
                    if (++slot == a.n_slots) slot = 0, phase ^= 1u;
                    tn_bulk_wait(&w.full[slot], phase);
                }
#pragma unroll
                for (int i = 0; i < n_planes; i++) {
                    bool next = r > 0 && n > 1;
                    planes[r][i] = w.ring + slot * a.slot_size + p.slot_at[i] + (next && !several ? row_size[i] : 0);
                    if (mv_unit_size<TYPE>(i) % 16 != 0) planes[r][i] += (over[i] + (next && several ? row_size[i] : 0)) & 15u;
                }
            }
#pragma unroll
            for (int i = 0; i < n_planes; i++) over[i] += n * row_size[i];
            for (int j = 0; j < n; j += ROWS) {
                float v[VALUES];
                multiply<N>(acts, planes, at, v);
                float sum = mv_reduce<VALUES>(v, w.lane);
                if (w.lane % lanes == 0 && j + row < n) *sums = sum;
                sums += ROWS * a.n_slices * COLUMNS;
#pragma unroll
                for (int r = 0; r < ROWS; r++)
#pragma unroll
                    for (int i = 0; i < n_planes; i++) planes[r][i] += j + ROWS + r < n ? ROWS * row_size[i] : row_size[i];
            }
            // An odd row was the last of its part: the next sums are elsewhere.
            __syncwarp();
            if (mv_feeds<TYPE>(w))
                for (int i = several ? ROWS : 1; i > 0; i--) mv_feed_next<TYPE>(a, w, feed);
            if (++slot == a.n_slots) slot = 0, phase ^= 1u;
        }
    }
};

// --- the block ----------------------------------------------------------------------------------------

// Which result a thread finishes: row `v` of the block, which is row `j` of a part; column c.
struct mv_result {
    int c, v, part, j;
};

template <int COLUMNS> static __device__ __forceinline__ mv_result mv_result_of(const tn_cuda_matvec_args &a, const mv_warp &w, int i)
{
    int n = w.end - w.first, c = COLUMNS == 1 ? 0 : i / n, v = i - c * n, part = 0, j = w.first + v;
    if (!a.is_glu)
        while (part + 1 < a.n_parts && j >= a.part[part + 1].first) part++;
    return {c, v, part, j - a.part[part].first};
}

// What else a result needs, read before the products are there.
struct mv_ahead {
    float bias, residual, norm; // norm: the reader's weight
};

static __device__ __forceinline__ mv_ahead mv_load_ahead(const tn_cuda_matvec_args &a, const mv_result &r, int64_t row0)
{
    const float *bias = a.part[r.part].bias;
    return {bias ? __ldg(bias + r.j) : 0.0f, a.residual ? __ldcg(a.residual + (row0 + r.c) * a.residual_stride + r.j) : 0.0f,
            a.rounded_y.norm ? __ldg(a.rounded_y.norm + r.j) : 1.0f};
}

// In the order of the slices; they are a power of two, at most 16.
static __device__ __forceinline__ float mv_sum_slices(const tn_cuda_matvec_args &a, const float *sums, int stride)
{
    float sum = 0.0f;
    for (int s0 = 0; s0 < a.n_slices; s0 += 8) {
        float v[8];
#pragma unroll
        for (int s = 0; s < 8; s++) v[s] = s0 + s < a.n_slices ? sums[(s0 + s) * stride] : 0.0f;
#pragma unroll
        for (int s = 0; s < 8; s++) sum += v[s];
    }
    return sum;
}

// Results of the block's rows from the sums of the slices. `ahead` is of the thread's first one.
template <int COLUMNS>
static __device__ __forceinline__ void mv_finish(const tn_cuda_matvec_args &a, const mv_warp &w, const float *sums, float (*squares)[TN_WARP],
                                                 int64_t row0, bool none, mv_ahead ahead)
{
    int n = w.end - w.first, n_squares = a.rounded_x.rows ? 1 : blockDim.x / TN_WARP;
    for (int i = threadIdx.x; i < n * a.n_columns; i += blockDim.x) {
        mv_result r = mv_result_of<COLUMNS>(a, w, i);
        if (i >= blockDim.x) ahead = mv_load_ahead(a, r, row0);
        const float *at = sums + r.v * a.n_slices * COLUMNS + r.c;
        float sum = mv_sum_slices(a, at, COLUMNS), up = a.is_glu ? mv_sum_slices(a, at + n * a.n_slices * COLUMNS, COLUMNS) : 0.0f;
        if (a.norm) {
            float s = 0.0f;
#pragma unroll 4
            for (int k = 0; k < n_squares; k++) s += squares[r.c][k];
            s = 1.0f / sqrtf(s / (float)a.k + a.eps);
            sum *= s, up *= s;
        }
        if (none) sum = up = 0.0f;
        const tn_cuda_matvec_part &p = a.part[r.part];
        sum += ahead.bias;
        if (a.is_glu) sum = tn_glu_of(a.glu, sum, up);
        else if (a.act != TN_UNARY_NONE) sum = tn_act(a.act, sum);
        sum += ahead.residual;
        p.y[(row0 + r.c) * p.y_stride + r.j] = sum;
        // Whole warps: blocks have multiples of 32 rows then.
        if (COLUMNS == 1 && a.rounded_y.rows) tn_rounded_store1(a.rounded_y, row0, r.j, sum, ahead.norm);
    }
}

// Rounded or plain rows of x come to shared memory, x_columns at a time, and from there to the registers of each warp.
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_activations(const tn_cuda_matvec_args &a, const mv_warp &w, const float *x, int64_t row0, char *shared,
                                                      typename mv_part_run<TYPE, COLUMNS>::acts_row (&acts)[COLUMNS], float (*squares)[TN_WARP])
{
    constexpr bool plain = tn_is_plain(TYPE);
    int k0 = w.slice * a.slice_blocks * a.block_elems, n_units = mv_slice_blocks(a, w) * a.block_elems / TN_MATVEC_UNIT_ELEMS(TYPE);
    int size = plain ? a.k * 4 : (a.k + a.k / 4 + 15) & ~15, warp = threadIdx.x / TN_WARP;
    const char *ready = a.rounded_x.rows ? a.rounded_x.rows + row0 * a.rounded_x.row_size : nullptr;
    bool direct = plain && a.x_columns == 0;
#pragma unroll
    for (int c = 0; c < COLUMNS; c++) {
        float sum = 0.0f;
        if (!direct && c % a.x_columns == 0) {
            if (c > 0) __syncthreads();
            for (int i = c; i < min(c + a.x_columns, a.n_columns); i++) {
                char *to = shared + (i - c) * size;
                float s;
                if constexpr (plain) s = mv_stage_row(x + i * a.x_stride, a.norm, a.k, (float *)to);
                else if (!ready) s = mv_round_row(x + i * a.x_stride, a.norm, a.k, to);
                else mv_copy_row(ready + i * a.rounded_x.row_size, a.k, to);
                if (!a.norm || ready) continue;
                s = tn_warp_sum(s);
                if (w.lane == 0) squares[i][warp] = s;
            }
            __syncthreads();
        }
        bool real = c < a.n_columns; // past the last column the first one of the round again
        char *from = shared + (real && !direct ? c % a.x_columns : 0) * size;
        if constexpr (plain) {
            sum = mv_load_plain<TYPE>(acts[c], direct ? x + (real ? c : 0) * a.x_stride : (const float *)from, direct ? a.norm : nullptr, !direct, k0, n_units, w.lane);
            if (a.norm && direct) {
                sum = tn_warp_sum(w.group == 0 ? sum : 0.0f);
                if (w.lane == 0) squares[c][warp] = sum;
            }
        } else {
            mv_load_rounded<TYPE>(acts[c], mv_x_at(from, a.k), k0, real ? n_units : 0, w.lane);
        }
    }
    if (a.norm && ready && warp < a.n_columns) {
        float sum = mv_sum_squares(ready + warp * a.rounded_x.row_size, a.k, w.lane);
        if (w.lane == 0) squares[warp][0] = sum;
    }
}

// Block `block` of `n_blocks` that share the rows of `a`.
template <int TYPE, int COLUMNS> static __device__ __forceinline__ void mv_run(const tn_cuda_matvec_args &a, int block, int n_blocks)
{
    extern __shared__ __align__(128) char shared[];
    __shared__ float squares[COLUMNS][TN_WARP]; // of x, in parts of warps; complete at the barrier before mv_finish
    int warp = threadIdx.x / TN_WARP;
    mv_warp w;
    w.lane = threadIdx.x % TN_WARP;
    w.slice = warp & (a.n_slices - 1), w.group = warp >> a.slice_shift, w.group_shift = a.group_shift;
    int64_t shares = a.n_virtual / a.row_unit;
    w.first = (int)(shares * block / n_blocks) * a.row_unit, w.end = (int)(shares * (block + 1) / n_blocks) * a.row_unit;
    w.expert = 0;
    w.ring = shared + a.rings_at + warp * a.n_slots * a.slot_size;
    w.full = (uint64_t *)shared + warp * TN_MATVEC_MAX_SLOTS;
    if (w.lane < a.n_slots) {
        tn_bulk_init(&w.full[w.lane], mv_n_planes<TYPE>());
        tn_bulk_fence();
    }
    __syncwarp();
    tn_pdl_trigger();
    mv_feed feed = {nullptr, 0, 0, -1, 0, 0, 0, nullptr};
    // Which expert, a predecessor says.
    if (!a.ids && mv_feeds<TYPE>(w))
        for (int i = 0; i < a.n_slots; i++) mv_feed_next<TYPE>(a, w, feed);
    // Weights push everything else out of L2 between two uses.
    for (int i = threadIdx.x * 32; a.norm && i < a.k; i += blockDim.x * 32) tn_prefetch(a.norm + i);
    tn_pdl_wait();
    const float *x = a.x;
    int64_t row0 = 0, x_row = 0;
    bool none = false;
    if (a.ids) {
        row0 = blockIdx.y;
        int64_t t = row0 / a.n_used, u = row0 % a.n_used;
        int e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
        none = e < 0 || e >= a.n_experts;
        w.expert = (int64_t)(none ? 0 : e) * a.part[0].n;
        x += t * a.x_stride + u * a.x_used_stride;
        x_row = a.x_used_stride ? row0 : t;
        if (mv_feeds<TYPE>(w))
            for (int i = 0; i < a.n_slots; i++) mv_feed_next<TYPE>(a, w, feed);
    }
    typename mv_part_run<TYPE, COLUMNS>::acts_row acts[COLUMNS];
    float *sums = (float *)(shared + a.sums_at);
    mv_activations<TYPE, COLUMNS>(a, w, x, x_row, shared + a.x_at, acts, squares);
    mv_ahead ahead = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < (w.end - w.first) * a.n_columns) ahead = mv_load_ahead(a, mv_result_of<COLUMNS>(a, w, threadIdx.x), row0);
    int slot = 0;
    uint32_t phase = 0;
    for (int part = 0, rows = 0; part < a.n_parts; part++) {
        mv_part_run<TYPE, COLUMNS>::run(a, w, part, acts, sums + rows * a.n_slices * COLUMNS, feed, slot, phase);
        mv_range r = mv_part_rows(a, w, part);
        rows += r.to - r.from;
    }
    __syncthreads();
    mv_finish<COLUMNS>(a, w, sums, squares, row0, none, ahead);
}

#define TN_MATVEC(TYPE, COLUMNS)                                                                                                     \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS(COLUMNS) * TN_WARP, (COLUMNS) > 2 ? 1 : 2)                                            \
        tn_matvec_##TYPE##_##COLUMNS(const __grid_constant__ tn_cuda_matvec_args a)                                                  \
    {                                                                                                                                \
        mv_run<TN_TYPE_##TYPE, COLUMNS>(a, blockIdx.x, gridDim.x);                                                                   \
    }
// Weights of two types for one row of x: the first blocks have those of the first type.
#define TN_MATVEC_PAIR(FIRST, SECOND)                                                                                                \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS(1) * TN_WARP, 2)                                                                      \
        tn_matvec_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                                                  \
    {                                                                                                                                \
        int n = a.first_blocks, block = blockIdx.x;                                                                                  \
        if (block < n) mv_run<TN_TYPE_##FIRST, 1>(a.of[0], block, n);                                                                \
        else mv_run<TN_TYPE_##SECOND, 1>(a.of[1], block - n, gridDim.x - n);                                                         \
    }
// Two, four and eight rows; one and four.
#define TN_MATVEC_MORE(TYPE) TN_MATVEC(TYPE, 2) TN_MATVEC(TYPE, 4) TN_MATVEC(TYPE, 8)
#define TN_MATVEC_SOME(TYPE) TN_MATVEC(TYPE, 1) TN_MATVEC(TYPE, 4)

#endif
