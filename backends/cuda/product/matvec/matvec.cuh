// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = act(norm(x) w^T + bias) + residual, and the same for all six product ops, for up to 8 rows of x, which
// are called columns here: the GEMV of every type. Each weight is read once.
//
// Operands: x [columns, k] f32 or quantised, w [n, k] in planes (up to three weights share a launch, experts
// have [experts, n, k]), y [columns, n] f32.
//
// Work: blocks share the rows of all weights of the step evenly, one block on each multiprocessor. Within a
// block a warp takes a slice of k of its share of the block's rows, in tiles: one chunk (16 bytes of codes)
// for each lane of two rows at a time. Tiles come by asynchronous copies into a ring of the warp in shared
// memory, up to 130 KB in flight on a multiprocessor. The next kernel starts its copies when a block is done,
// while other multiprocessors finish; weights never change, so this is safe.
//
// Activations of quantised weights are quantised by each block: int8 with d = max|x| / 127 for each 16, half
// the groups of the CPU backend, so that blocks can share their results in smaller pieces. A norm is applied
// as x times its weight before quantisation. Its factor 1 / rms is the same for a whole row and is multiplied
// in last, so that nothing waits for it. Sums of slices meet in shared memory; the block finishes its rows
// there in fixed order.
//
// Bytes: weights + 4 k + 4 n for each column. Operations: 2 n k for each column, and the unpacking of each
// weight. The limit of one column is memory. Measured on an H200: decode of 8B bf16 reaches 84 % of the time
// to read its weights (248.1 of 294 tokens per second, 2026-11-22); for one column of Q4_0, Q8_0, Q4_K, Q5_K
// and Q6_K matvec_mma.cuh is used on compute capability 8.0 and later.
//
// Reasons of design, H200, 2026-11-22, tokens per second:
// Slots filled before the predecessor has ended (TN_MATVEC_PLAIN_EARLY), of a ring for plain types. Weights
// that are requested ahead delay x; none leaves the memory idle. 8B bf16: 247.0 with none; 250.1, 252.7,
// 252.2 with 1, 2, 4; 252.0 with all. 1B bf16: 1136, 1174, 1187, 1162, 1168.
// When the next kernel may start (`late`): 8B Q4_K_M 520.9 at the end of the products, 526.9 at the beginning
// of the block; 1B bf16 1187 and 1214.
// Asking L2 for whole lines of 128 or 256 bytes made bf16 slower (248.7 and 236.0 against 249.0), so tiles
// here use plain copies.
#ifndef TN_CUDA_MATVEC_CUH
#define TN_CUDA_MATVEC_CUH

#include "backends/cuda/product/matvec/matvec_args.h"
#include "backends/cuda/activation.cuh"
#include "backends/cuda/product/matvec/matvec_dot.cuh"
#include "backends/cuda/product/matvec/matvec_ring.cuh"
#include "backends/cuda/product/matvec/matvec_x.cuh"
#include "backends/cuda/mma.cuh"
#include "backends/cuda/quantise.cuh"

// --- rows -------------------------------------------------------------------------------------------

// Sums COLUMNS values over the lanes; value c ends up in lane c * 32 / COLUMNS. In each step a lane sends the
// half of the values that the other lane keeps, so fewer shuffles are needed than for one value after
// another.
template <int COLUMNS> static __device__ __forceinline__ float mv_reduce(float (&v)[COLUMNS], int lane)
{
    int n = COLUMNS;
#pragma unroll
    for (int i = 16; i > 0; i >>= 1) {
        if (n > 1) {
            n /= 2;
            bool upper = lane & i;
#pragma unroll
            for (int j = 0; j < COLUMNS / 2; j++) {
                if (j >= n) break;
                float sent = upper ? v[j] : v[j + n], kept = upper ? v[j + n] : v[j];
                v[j] = kept + __shfl_xor_sync(0xffffffffu, sent, i);
            }
        } else {
            v[0] += __shfl_xor_sync(0xffffffffu, v[0], i);
        }
    }
    return v[0];
}

// Bytes of a row of x in shared memory: f32, or int8 with a scale and a sum for each 16.
template <int TYPE> static __device__ __forceinline__ int mv_x_size(int k)
{
    return tn_is_plain(TYPE) ? k * 4 : (k + k / 4 + k / 8 + 15) & ~15;
}

// The activations of chunk `chunk` of tile `t` of a row of n.
template <int TYPE>
static __device__ __forceinline__ void mv_load_acts(typename mv_lane_dot<TYPE>::acts &acts, const char *x,
                                                    int n, int t, int chunk)
{
    constexpr int elems = TN_MATVEC_LANE_ELEMS(TYPE);
    if constexpr (tn_is_plain(TYPE)) {
        const float *from = (const float *)x + t * (TN_WARP * elems) + chunk * elems;
#pragma unroll
        for (int j = 0; j < elems; j += 4) {
            float4 v = *(const float4 *)(from + j);
            acts.x[j] = v.x, acts.x[j + 1] = v.y, acts.x[j + 2] = v.z, acts.x[j + 3] = v.w;
        }
    } else {
        mv_lane_dot<TYPE>::load(acts, mv_x_at(x, n, t * (TN_WARP * elems)), chunk);
    }
}

// Waits until the oldest of the copies under way, those of all slots but one, has arrived.
// cp.async.wait_group takes an immediate number, so some numbers of slots wait for a little more than they
// need, never for less.
static __device__ __forceinline__ void mv_wait_oldest(int n_slots)
{
    if (n_slots >= 8) tn_copy_wait<6>();
    else if (n_slots >= 5) tn_copy_wait<3>();
    else if (n_slots == 4) tn_copy_wait<2>();
    else if (n_slots == 3) tn_copy_wait<1>();
    else tn_copy_wait<0>();
}

// Addresses of the warp's first tile of two rows, `row` and the one `second_row` behind it, in the planes
// that may start anywhere in a chunk. Their low 4 bits say where a tile begins in its copy.
template <int TYPE>
static __device__ __forceinline__ void
mv_tile_addresses(const tn_cuda_matvec_part &p, const mv_warp &w, int row, int second_row,
                  uint32_t (&tile_address)[TN_MATVEC_ROWS][TN_CUDA_MAX_PLANES])
{
    typedef mv_tile<TYPE> tile;
#pragma unroll
    for (int i = 0; i < tile::planes; i++)
#pragma unroll
        for (int r = 0; r < TN_MATVEC_ROWS; r++)
            if (!tile::fills_chunks(i))
                tile_address[r][i] = (uint32_t)(uintptr_t)p.plane[i] +
                                     (uint32_t)(w.expert + row + r * second_row) * (uint32_t)p.row_size[i] +
                                     (uint32_t)(w.first_tile * tile::bytes(i));
}

// Where the planes of the tiles in a slot begin; moves the addresses on to the next tile.
template <int TYPE>
static __device__ __forceinline__ void
mv_tile_planes(const char *slot, uint32_t (&tile_address)[TN_MATVEC_ROWS][TN_CUDA_MAX_PLANES],
               const char *(&planes)[TN_MATVEC_ROWS][TN_CUDA_MAX_PLANES])
{
    typedef mv_tile<TYPE> tile;
#pragma unroll
    for (int r = 0; r < TN_MATVEC_ROWS; r++)
#pragma unroll
        for (int i = 0; i < tile::planes; i++) {
            planes[r][i] = slot + r * tile::size + tile::offset(i);
            if (tile::fills_chunks(i)) continue;
            planes[r][i] += tile_address[r][i] & 15u;
            tile_address[r][i] += tile::bytes(i);
        }
}

// The warp's rows of a part; sums go to `sums`, [row of the block][slice][column].
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_part(const tn_cuda_matvec_args &a, const mv_warp &w, int part,
                                                   const char *x, float *sums, mv_loader<TYPE> &loader,
                                                   char *&slot)
{
    typedef mv_tile<TYPE> tile;
    // lanes that end up with the same value
    constexpr int rows_at_once = TN_MATVEC_ROWS, values = rows_at_once * COLUMNS, lanes = TN_WARP / values;
    constexpr int slot_size = rows_at_once * tile::size;
    const tn_cuda_matvec_part &p = a.part[part];
    mv_range block = mv_part_rows(a, w, part), rows = mv_warp_rows(a, w, part);
    // the row that the lane has the sum of
    int half = mv_half_rows(rows), second_row = rows.to - rows.from - half, own = w.lane / lanes / COLUMNS;
    sums += (rows.from - block.from + own * second_row) * a.sums_stride + w.slice * COLUMNS +
            w.lane / lanes % COLUMNS;
    const char *const end = w.ring + a.n_slots * slot_size;
#pragma unroll 1
    for (int row = 0; row < half; row++) {
        float v[values];
        uint32_t tile_address[rows_at_once][TN_CUDA_MAX_PLANES] = {};
#pragma unroll
        for (int i = 0; i < values; i++) v[i] = 0.0f;
        mv_tile_addresses<TYPE>(p, w, rows.from + row, second_row, tile_address);
#pragma unroll 1
        for (int t = w.first_tile; t < w.first_tile + w.n_tiles; t++) {
            mv_wait_oldest(a.n_slots);
            __syncwarp(); // all lanes have read the slot before, and see this one
            mv_loader_copy_next<TYPE, FULL>(a, w, loader,
                                            slot == w.ring ? (char *)end - slot_size : slot - slot_size);
            int chunks_left = a.n_lane_runs - t * TN_WARP;
            bool valid = FULL || w.lane < chunks_left;
            // Past the last chunk a lane reads an early one of the same place in its block, so that whole
            // warps call dot; its result is dropped.
            int chunk = valid ? w.lane : w.lane % 8 < chunks_left ? w.lane % 8 : 0;
            const char *planes[rows_at_once][TN_CUDA_MAX_PLANES] = {};
            mv_tile_planes<TYPE>(slot, tile_address, planes);
#pragma unroll
            for (int c = 0; c < COLUMNS; c++) {
                typename mv_lane_dot<TYPE>::acts acts;
                mv_load_acts<TYPE>(acts, x + (c < a.n_columns ? c : 0) * mv_x_size<TYPE>(a.k), a.k, t, chunk);
#pragma unroll
                for (int r = 0; r < rows_at_once; r++) {
                    float sum = mv_lane_dot<TYPE>::dot(acts, planes[r], chunk, w.lane, v[r * COLUMNS + c]);
                    v[r * COLUMNS + c] = valid ? sum : v[r * COLUMNS + c];
                }
            }
            slot += slot_size;
            if (slot == end) slot = w.ring;
        }
        float sum = mv_reduce<values>(v, w.lane);
        if (w.lane % lanes == 0) *sums = sum;
        sums += a.sums_stride;
    }
}

// --- the block ----------------------------------------------------------------------------------------

// Which result a thread finishes: row `v` of the block, which is row `j` of a part, and column c.
struct mv_result {
    int c, v, part, j;
};

template <int COLUMNS>
static __device__ __forceinline__ mv_result mv_result_of(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                         int i)
{
    int n = w.end - w.first, c = COLUMNS == 1 ? 0 : i / n, v = i - c * n, part = 0, j = w.first + v;
    if (!a.is_glu)
        while (part + 1 < a.n_parts && j >= a.part[part + 1].first) part++;
    return {c, v, part, j - a.part[part].first};
}

// What a result needs besides its sum, loaded before the products are done.
struct mv_prefetched {
    float bias, residual, norm; // norm: weight of the norm that the reader of y applies
};

static __device__ __forceinline__ mv_prefetched mv_prefetch_result(const tn_cuda_matvec_args &a,
                                                                   const mv_result &r, int64_t row0)
{
    const float *bias = a.part[r.part].bias;
    return {bias ? __ldg(bias + r.j) : 0.0f,
            a.residual ? __ldcg(a.residual + (row0 + r.c) * a.residual_stride + r.j) : 0.0f,
            a.quantised_y.norm ? __ldg(a.quantised_y.norm + r.j) : 1.0f};
}

// The sum of all slices, in their order, so that it does not depend on which warp was first.
static __device__ __forceinline__ float mv_sum_slices(const tn_cuda_matvec_args &a, const float *sums,
                                                      int stride)
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

// Writes the results of the block's rows from the sums of the slices. `prefetched` belongs to the thread's
// first result.
template <int COLUMNS>
static __device__ __forceinline__ void mv_finish(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const float *sums, float (*squares)[TN_WARP], int64_t row0,
                                                 bool no_expert, mv_prefetched prefetched)
{
    int n = w.end - w.first, n_squares = a.quantised_x.rows ? 1 : blockDim.x / TN_WARP;
    for (int i = threadIdx.x; i < n * a.n_columns; i += blockDim.x) {
        mv_result r = mv_result_of<COLUMNS>(a, w, i);
        if (i >= blockDim.x) prefetched = mv_prefetch_result(a, r, row0);
        const float *at = sums + r.v * a.sums_stride + r.c;
        float sum = mv_sum_slices(a, at, COLUMNS),
              up = a.is_glu ? mv_sum_slices(a, at + n * a.sums_stride, COLUMNS) : 0.0f;
        if (a.norm) {
            float s = 0.0f;
#pragma unroll 4
            for (int k = 0; k < n_squares; k++) s += squares[r.c][k];
            s = 1.0f / sqrtf(s / (float)a.k + a.eps);
            sum *= s, up *= s;
        }
        if (no_expert) sum = up = 0.0f;
        const tn_cuda_matvec_part &p = a.part[r.part];
        sum += prefetched.bias;
        if (a.is_glu) sum = tn_glu_of(a.glu, sum, up);
        else if (a.act != TN_UNARY_NONE) sum = tn_act(a.act, sum);
        sum += prefetched.residual;
        p.y[(row0 + r.c) * p.y_stride + r.j] = sum;
        // Whole half warps hold groups of 16, because blocks have multiples of 16 rows in this case.
        if (COLUMNS == 1 && a.quantised_y.rows)
            tn_quantised_store1(a.quantised_y, row0, r.j, sum, prefetched.norm);
    }
}

// Brings the rows of x to shared memory, as f32 or quantised.
template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_load_x(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                 const float *x, int64_t row0, char *shared,
                                                 float (*squares)[TN_WARP])
{
    int warp = threadIdx.x / TN_WARP;
    const char *quantised = a.quantised_x.rows ? a.quantised_x.rows + row0 * a.quantised_x.row_size : nullptr;
    for (int c = 0; c < a.n_columns; c++) {
        char *to = shared + c * mv_x_size<TYPE>(a.k);
        float s;
        if constexpr (tn_is_plain(TYPE))
            s = mv_copy_f32_row(x + c * a.x_stride, a.norm, a.k, (float *)to);
        else if (!quantised)
            s = mv_quantise_row(x + c * a.x_stride, a.norm, a.k, mv_store_quantised{to, a.k});
        else
            mv_copy_quantised_row(quantised + c * a.quantised_x.row_size, a.k, to);
        if (!a.norm || quantised) continue;
        s = tn_warp_sum(s);
        if (w.lane == 0) squares[c][warp] = s;
    }
    if (a.norm && quantised && warp < a.n_columns) {
        float sum = mv_sum_squares(quantised + warp * a.quantised_x.row_size, a.k, w.lane);
        if (w.lane == 0) squares[warp][0] = sum;
    }
    __syncthreads();
}

// The share of this warp in block `block` of those that share the rows of `a`.
static __device__ __forceinline__ mv_warp mv_warp_of(const tn_cuda_matvec_args &a, int block, char *shared)
{
    int warp = threadIdx.x / TN_WARP;
    mv_warp w;
    w.lane = threadIdx.x % TN_WARP;
    w.slice = warp & (a.n_slices - 1), w.slice_shift = a.slice_shift, w.group = warp >> a.slice_shift,
    w.group_shift = a.group_shift;
    w.first = block * a.block_rows + min(block, a.more_rows) * a.row_multiple;
    w.end = w.first + a.block_rows + (block < a.more_rows ? a.row_multiple : 0);
    w.expert = 0;
    w.first_tile = w.slice * a.slice_tiles, w.n_tiles = min(a.slice_tiles, a.n_tiles - w.first_tile);
    w.ring = shared + a.rings_at + warp * a.ring_size;
    return w;
}

// Requests the weight of the norm from L2 early: between two uses of it the weights of the model evict
// everything else.
static __device__ __forceinline__ void mv_prefetch_norm(const tn_cuda_matvec_args &a)
{
    for (int i = threadIdx.x * 32; a.norm && i < a.k; i += blockDim.x * 32) tn_prefetch(a.norm + i);
}

// Which rows of x and y the block has, and of which expert. no_expert: the id names none, and the result is
// that of a product of zeros.
struct mv_block_io {
    const float *x;
    int64_t y_row, x_row;
    bool no_expert;
};

static __device__ __forceinline__ mv_block_io mv_block_io_of(const tn_cuda_matvec_args &a, mv_warp &w)
{
    mv_block_io r = {a.x, 0, 0, false};
    if (!a.ids) return r;
    r.y_row = blockIdx.y;
    int64_t t = r.y_row / a.n_used, u = r.y_row % a.n_used;
    int e = __ldcg(a.ids + t * a.ids_stride[0] + u * a.ids_stride[1]);
    r.no_expert = e < 0 || e >= a.n_experts;
    w.expert = (int64_t)(r.no_expert ? 0 : e) * a.part[0].n;
    r.x += t * a.x_stride + u * a.x_used_stride;
    r.x_row = a.x_used_stride ? r.y_row : t;
    return r;
}

// All parts, with x in shared memory.
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_parts(const tn_cuda_matvec_args &a, const mv_warp &w,
                                                    char *shared, mv_loader<TYPE> &loader)
{
    float *sums = (float *)(shared + a.sums_at);
    char *slot = w.ring;
    for (int part = 0, rows = 0; part < a.n_parts; part++) {
        mv_run_part<TYPE, COLUMNS, FULL>(a, w, part, shared + a.x_at, sums + rows * a.sums_stride, loader,
                                         slot);
        mv_range r = mv_part_rows(a, w, part);
        rows += r.to - r.from;
    }
}

// One block. FULL: rows are whole tiles.
template <int TYPE, int COLUMNS, bool FULL>
static __device__ __forceinline__ void mv_run_block(const tn_cuda_matvec_args &a, int block)
{
    extern __shared__ __align__(128) char shared[];
    // Sums of squares of x, one from each warp; complete at the barrier before mv_finish.
    __shared__ float squares[COLUMNS][TN_WARP];
    mv_warp w = mv_warp_of(a, block, shared);
    if (!a.late) tn_pdl_trigger();
    mv_loader<TYPE> loader;
    // With experts, a predecessor decides which rows to read, so no copy may start before the wait.
    int early = a.ids ? 0 : a.n_early;
    if (!a.ids) mv_loader_start<TYPE>(a, w, loader);
    mv_loader_fill<TYPE, FULL>(a, w, loader, 0, early);
    mv_prefetch_norm(a);
    tn_pdl_wait();
    mv_block_io r = mv_block_io_of(a, w);
    if (a.ids) {
        mv_loader_start<TYPE>(a, w, loader);
        mv_loader_fill<TYPE, FULL>(a, w, loader, 0, early = a.n_slots - 1);
    }
    mv_load_x<TYPE, COLUMNS>(a, w, r.x, r.x_row, shared + a.x_at, squares);
    mv_loader_fill<TYPE, FULL>(a, w, loader, early, a.n_slots - 1);
    mv_prefetched prefetched = {0.0f, 0.0f, 1.0f};
    if ((int)threadIdx.x < (w.end - w.first) * a.n_columns)
        prefetched = mv_prefetch_result(a, mv_result_of<COLUMNS>(a, w, threadIdx.x), r.y_row);
    mv_run_parts<TYPE, COLUMNS, FULL>(a, w, shared, loader);
    if (a.late) tn_pdl_trigger();
    __syncthreads();
    mv_finish<COLUMNS>(a, w, (const float *)(shared + a.sums_at), squares, r.y_row, r.no_expert, prefetched);
}

template <int TYPE, int COLUMNS>
static __device__ __forceinline__ void mv_run(const tn_cuda_matvec_args &a, int block)
{
    if (a.n_lane_runs % TN_WARP == 0) mv_run_block<TYPE, COLUMNS, true>(a, block);
    else mv_run_block<TYPE, COLUMNS, false>(a, block);
}

#define TN_MATVEC(TYPE, COLUMNS)                                                                             \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_##TYPE##_##COLUMNS(const __grid_constant__ tn_cuda_matvec_args a)                          \
    {                                                                                                        \
        mv_run<TN_TYPE_##TYPE, COLUMNS>(a, blockIdx.x);                                                      \
    }
// Weights of two types for one row of x: the first blocks compute those of the first type.
#define TN_MATVEC_PAIR(FIRST, SECOND)                                                                        \
    TN_ENTRY __launch_bounds__(TN_MATVEC_WARPS * TN_WARP, 1)                                                 \
        tn_matvec_##FIRST##_##SECOND(const __grid_constant__ tn_cuda_matvec_pair a)                          \
    {                                                                                                        \
        int n = a.first_blocks, block = blockIdx.x;                                                          \
        if (block < n)                                                                                       \
            mv_run<TN_TYPE_##FIRST, 1>(a.of[0], block);                                                      \
        else                                                                                                 \
            mv_run<TN_TYPE_##SECOND, 1>(a.of[1], block - n);                                                 \
    }
// Kernels for two, four and eight rows of x; for one and four.
#define TN_MATVEC_2_4_8(TYPE) TN_MATVEC(TYPE, 2) TN_MATVEC(TYPE, 4) TN_MATVEC(TYPE, 8)
#define TN_MATVEC_1_4(TYPE)   TN_MATVEC(TYPE, 1) TN_MATVEC(TYPE, 4)

#endif
