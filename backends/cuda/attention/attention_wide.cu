// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention with heads of up to 576 elements of a key and 512 of a value, for any number of queries (flash
// attention, Dao 2023, with mma.m16n8k16 in f16): S = Q K^T, P = online softmax of S, O += P V. It serves
// compressed caches (DeepSeek-V2, 2024, section 2.1), whose values are the first part of their keys' rows and
// are loaded with them, and wide heads of other models. Runs from compute capability 8.0 on; on 9.0 a
// compressed cache in f16 or bf16 with up to 16 rows of queries has its own kernel (attention_latent.cu).
//
// Grid (splits, row tiles, KV heads). Row tiles (attention_rows.cuh) are shared by the heads of a group. A
// block of 8 warps has a tile of 64 rows in 2 x 4 warps, or of 16 rows in 1 x 8: of S a warp has 32 x 16 or
// 16 x 8, of O it has 32 x 128 or 16 x 64 in registers; maxima and weights go through shared memory. Tiles of
// 64 keys lie in one or two slots of shared memory as f16, in rows of 1152 bytes with 16-byte chunk i of row
// r at i ^ r % 8; where keys and values are separate they take slots in turn. f16 caches are copied
// asynchronously, with two slots while the tile before is worked on; bf16 and blocks are converted on the way
// (attention_convert.cuh).
//
// With a small number of tiles the keys are split over blocks, and a second kernel adds their results in the
// order of the splits, so that every run gives the same result. Elements of blocks are integers times the
// power of two of their scale in f16, which is exact. The rest of a key's scale is applied after the product
// with its 32 elements, that of a value is applied to the weights before theirs. Rounded to f16: Q (declared
// in kernels.def), P, and P again with a scale; the NMSE is up to 3e-8 for f16 and bf16 and 6e-8 for blocks.
//
// Shared memory: 1152 (rows + 64 slots) bytes and tables, 4752 more for scales. Scratch: splits * T * H * (Dv
// + 2) floats. Operations: 2 (D + Dv) per visible (row, key). Bytes moved: the visible rows of the caches
// once per 16 or 64 rows. Limit: memory up to some 64 heads of a compressed cache and one token each, then
// tensor cores, or rather the shared memory that feeds them, with 3 loads of fragments for 4 matrix products.
// NVIDIA H200, 2026-11-22, heads of 576, q8_0: 44.5 us for 1 query and 4096 keys, 238.8 us for 32 sequences
// of that, 1075 us for 512 queries.
#include "backends/cuda/attention/attention_convert.cuh"
#include "backends/cuda/attention/attention_rows.cuh"
#include "backends/cuda/attention/attention_wide.cuh"

enum {
    WARPS = 8,
    THREADS = WARPS * TN_WARP,
    KEYS = 64,      // of a tile
    CHUNKS = 72,    // 16-byte chunks of a row in shared memory: 576 elements
    VALUES = 512,   // elements of a value at most
    MIN_TILES = 2,  // of a split
    MAX_WAYS = 16,  // warps of a block that merges splits
};

// How the warps of a block share a tile of ROWS rows.
template <int ROWS> struct shape {
    static constexpr int MT = ROWS == 64 ? 2 : 1;        // 16-row tiles of a warp
    static constexpr int COLUMNS = WARPS * 16 * MT / ROWS; // warps beside each other
    static constexpr int NK = KEYS / COLUMNS / 8;        // tiles of 8 keys of a warp
    static constexpr int NV = VALUES / COLUMNS / 16;     // tiles of 16 elements of values of a warp
};

template <int ROWS> struct shared_storage {
    uint4 q[ROWS * CHUNKS], p[ROWS * KEYS / 8];
    float part[shape<ROWS>::COLUMNS][ROWS]; // maxima of the warps, in the end their sums
    // Rows of the caches that hold the keys of this and of the next tile; -1 for a key that does not exist.
    int64_t at[2][KEYS];
    uint4 slot[2][KEYS * CHUNKS]; // the second one only where shared memory has the capacity
};

// The rest of the scales of a slot's blocks (tn_scale_rest), by the number of the block in its row, so that
// the keys of a warp lie side by side. Two unused entries make the blocks of a row start in different banks.
typedef __half block_scales[CHUNKS / 4][KEYS + 2];

// The place of 16-byte chunk i of row r. Rows are swizzled, so that ldmatrix has no bank conflicts.
static __device__ __forceinline__ int chunk(int r, int i)
{
    return r * CHUNKS + (i ^ r % 8);
}

// What a block works on: the keys [key, end) of a row tile. A load brings the keys of a tile, its values, or
// both together.
struct work {
    tn_row_tile rows;
    int key, end;  // keys of this split
    bool together; // values are the first part of the keys' rows
    int n_loads, n_slots;
};

// The tile that a load belongs to.
static __device__ __forceinline__ int tile_of(const work &w, int load)
{
    return w.together ? load : load / 2;
}

// --- loads -----------------------------------------------------------------------------------------------

template <int ROWS>
static __device__ void load_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                    shared_storage<ROWS> &s)
{
    bool wide = a.q_elem == 4 && ((uintptr_t)a.q | (uintptr_t)a.q_token | (uintptr_t)a.q_head) % 16 == 0;
    int chunks = (a.k.dim + 31) / 32 * 4;
    for (int n = threadIdx.x; n < ROWS * chunks; n += THREADS) {
        int r = n / chunks, i = n % chunks, row = min(p.row + r, p.n_rows - 1);
        const char *from = a.q + (int64_t)(p.first_token + row / p.group) * a.q_token +
                           (int64_t)(p.kv_head * p.group + row % p.group) * a.q_head;
        float x[8];
        if (wide && i * 8 + 8 <= a.k.dim) {
            *reinterpret_cast<float4 *>(x) = *reinterpret_cast<const float4 *>(from + i * 32);
            *reinterpret_cast<float4 *>(x + 4) = *reinterpret_cast<const float4 *>(from + i * 32 + 16);
        } else {
#pragma unroll
            for (int e = 0; e < 8; e++)
                x[e] = i * 8 + e < a.k.dim ? *(const float *)(from + (int64_t)(i * 8 + e) * a.q_elem) : 0.0f;
        }
        s.q[chunk(r, i)] = make_uint4(tn_pack16<false>(x[0], x[1]), tn_pack16<false>(x[2], x[3]),
                                      tn_pack16<false>(x[4], x[5]), tn_pack16<false>(x[6], x[7]));
    }
}

// Finds the rows of the caches that hold the keys of a tile. All rows of a cache are numbered in order.
static __device__ __forceinline__ void find_keys(const tn_cuda_attention_args &a, const work &w,
                                                 int64_t (&to)[2][KEYS], int tile)
{
    int key = w.key + tile * KEYS;
    if (threadIdx.x >= KEYS || key >= w.end) return;
    int j = key + (int)threadIdx.x;
    int64_t at = -1;
    if (j < w.end)
        at = ((int64_t)a.table[(int64_t)w.rows.seq * a.max_blocks + j / a.block] * a.n_kv + w.rows.kv_head) *
                 a.block +
             j % a.block;
    to[tile % 2][threadIdx.x] = at;
}

// Loads the rows of a tile up to element `width`; what lies beyond, and keys that do not exist, become zeros.
template <int TYPE, bool QUANTS>
static __device__ void load_typed(const tn_cuda_cache &c, uint4 *to, block_scales &d, const int64_t *rows,
                                  int width)
{
    int chunks = (width + 31) / 32 * 4;
#pragma unroll (QUANTS ? 4 : 2)
    for (int n = threadIdx.x; n < KEYS * chunks; n += THREADS) {
        int r = n / chunks, i = n % chunks;
        bool valid = rows[r] >= 0 && i * 8 < width;
        const char *row = valid ? c.data + rows[r] * c.row_size : c.data;
        if constexpr (TYPE == TN_CUDA_CACHE_F16)
            tn_copy_async(tn_shared_address(&to[chunk(r, i)]), row + (valid ? i * 16 : 0), valid);
        else to[chunk(r, i)] = valid ? tn_cache_chunk<TYPE>(row, i) : make_uint4(0, 0, 0, 0);
        if (QUANTS && i % 4 == 0)
            d[i / 4][r] = tn_scale_rest(valid ? tn_cache_scale<TYPE>(row, i / 4) : __float2half(0.0f));
    }
}

template <bool QUANTS>
static __device__ __forceinline__ void load_tile(const tn_cuda_attention_args &a, const work &w, int load,
                                                 uint4 *to, block_scales &d, const int64_t *rows)
{
    bool values = !w.together && load % 2 == 1;
    const tn_cuda_cache &c = values ? a.v : a.k;
    int width = w.together ? max(a.k.dim, a.v.dim) : c.dim;
    switch (c.type) {
    case TN_CUDA_CACHE_F16: load_typed<TN_CUDA_CACHE_F16, QUANTS>(c, to, d, rows, width); break;
    case TN_CUDA_CACHE_BF16: load_typed<TN_CUDA_CACHE_BF16, QUANTS>(c, to, d, rows, width); break;
    case TN_CUDA_CACHE_Q8_0:
        if constexpr (QUANTS) load_typed<TN_CUDA_CACHE_Q8_0, QUANTS>(c, to, d, rows, width);
        break;
    default:
        if constexpr (QUANTS) load_typed<TN_CUDA_CACHE_Q4_0, QUANTS>(c, to, d, rows, width);
        break;
    }
}

// --- arithmetic ------------------------------------------------------------------------------------------

// A warp's part of S and O. Of lane l, registers [0, 1] of a tile are row l / 4 and [2, 3] are row l / 4 + 8,
// columns 2 (l % 4) + {0, 1}.
template <int ROWS> struct rows {
    typedef shape<ROWS> of;
    float o[of::MT][2 * of::NV][4], s[of::MT][of::NK][4];
    float max[of::MT][2], sum[of::MT][2]; // maxima of whole rows, sums of this lane's keys
};

// The first row of this warp in the tile.
template <int ROWS> static __device__ __forceinline__ int first_row()
{
    return (int)threadIdx.x / TN_WARP / shape<ROWS>::COLUMNS * shape<ROWS>::MT * 16;
}

// The number of this warp among those that share its rows.
template <int ROWS> static __device__ __forceinline__ int column_of_warp()
{
    return (int)threadIdx.x / TN_WARP % shape<ROWS>::COLUMNS;
}

template <int ROWS, bool QUANTS>
static __device__ __forceinline__ void multiply_keys(const tn_cuda_attention_args &a,
                                                     const shared_storage<ROWS> &m, const uint4 *keys,
                                                     const block_scales &d, rows<ROWS> &w)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP, row = first_row<ROWS>(), key = column_of_warp<ROWS>() * of::NK * 8;
    uint32_t q = tn_shared_address(m.q), k = tn_shared_address(keys);
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int j = 0; j < of::NK; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) w.s[mt][j][e] = 0.0f;
#pragma unroll 2
    for (int b = 0; b < (a.k.dim + 31) / 32; b++) {
        uint32_t x[of::MT][2][4];
#pragma unroll
        for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                tn_load_matrices<false>(x[mt][h],
                                        q + 16 * chunk(row + mt * 16 + lane % 16, 4 * b + 2 * h + lane / 16));
#pragma unroll
        for (int j = 0; j < of::NK; j++) {
            uint32_t y[4];
            tn_load_matrices<false>(y, k + 16 * chunk(key + j * 8 + lane % 8, 4 * b + lane / 8));
            float2 f = make_float2(1.0f, 1.0f);
            if (QUANTS)
                f = __half22float2(*reinterpret_cast<const __half2 *>(&d[b][key + j * 8 + lane % 4 * 2]));
#pragma unroll
            for (int mt = 0; mt < of::MT; mt++) {
                float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                float(&to)[4] = QUANTS ? part : w.s[mt][j];
                tn_mma_16816<false>(to, x[mt][0][0], x[mt][0][1], x[mt][0][2], x[mt][0][3], y[0], y[1]);
                tn_mma_16816<false>(to, x[mt][1][0], x[mt][1][1], x[mt][1][2], x[mt][1][3], y[2], y[3]);
                if (QUANTS)
#pragma unroll
                    for (int e = 0; e < 4; e++) w.s[mt][j][e] += (e % 2 ? f.y : f.x) * part[e];
            }
        }
    }
}

// Applies scale, softcap, bias and mask to the scores, as exponents of 2.
template <int ROWS>
static __device__ __forceinline__ void mask_scores(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   rows<ROWS> &w, int key)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            tn_row_info u = tn_row_info_get(a, p, p.row + first_row<ROWS>() + mt * 16 + h * 8 + lane / 4);
#pragma unroll
            for (int j = 0; j < of::NK; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &x = w.s[mt][j][2 * h + e];
                    int at = key + (column_of_warp<ROWS>() * of::NK + j) * 8 + lane % 4 * 2 + e;
                    x = tn_attention_bias(a, x * a.scale, u.slope, u.position - at) * TN_LOG2E;
                    if (at < u.lo || at >= u.hi) x = -INFINITY;
                }
        }
}

// Stores the maxima of this warp's keys for the other warps of the same rows.
template <int ROWS>
static __device__ __forceinline__ void share_maxima(shared_storage<ROWS> &m, const rows<ROWS> &w)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = -INFINITY;
#pragma unroll
            for (int j = 0; j < of::NK; j++)
                top = fmaxf(top, fmaxf(w.s[mt][j][2 * h], w.s[mt][j][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2));
            if (lane % 4 == 0)
                m.part[column_of_warp<ROWS>()][first_row<ROWS>() + mt * 16 + h * 8 + lane / 4] = top;
        }
}

// Writes the weights, times 2^WEIGHT_SHIFT, to shared memory and rescales o and the sums to the new maximum.
template <int ROWS> static __device__ __forceinline__ void weigh(shared_storage<ROWS> &m, rows<ROWS> &w)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP;
    uint32_t *p = reinterpret_cast<uint32_t *>(m.p);
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = first_row<ROWS>() + mt * 16 + h * 8 + lane / 4;
            float top = w.max[mt][h], sum = 0.0f;
#pragma unroll
            for (int c = 0; c < of::COLUMNS; c++) top = fmaxf(top, m.part[c][row]);
            float base = top > -INFINITY ? WEIGHT_SHIFT - top : 0.0f;
            float shrink = w.max[mt][h] > -INFINITY ? tn_exp2(w.max[mt][h] - top) : 1.0f;
            w.max[mt][h] = top;
#pragma unroll
            for (int j = 0; j < of::NK; j++) {
                float x = tn_exp2(w.s[mt][j][2 * h] + base), y = tn_exp2(w.s[mt][j][2 * h + 1] + base);
                sum += x + y;
                p[(row * (KEYS / 8) + ((column_of_warp<ROWS>() * of::NK + j) ^ row % 8)) * 4 + lane % 4] =
                    tn_pack16<false>(x, y);
            }
            w.sum[mt][h] = w.sum[mt][h] * shrink + sum;
#pragma unroll
            for (int j = 0; j < 2 * of::NV; j++) w.o[mt][j][2 * h] *= shrink, w.o[mt][j][2 * h + 1] *= shrink;
        }
}

// Two weights, times the rest of the scales of their values for 32 elements.
static __device__ __forceinline__ uint32_t scale_pair(uint32_t weights, const __half *scale)
{
    return tn_half2_bits(
        __hmul2(*reinterpret_cast<__half2 *>(&weights), *reinterpret_cast<const __half2 *>(scale)));
}

template <int ROWS, bool QUANTS>
static __device__ __forceinline__ void add_values(const tn_cuda_attention_args &a,
                                                  const shared_storage<ROWS> &m, const uint4 *values,
                                                  const block_scales &d, rows<ROWS> &w)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP, column = column_of_warp<ROWS>() * of::NV * 16;
    uint32_t p = tn_shared_address(m.p), v = tn_shared_address(values);
#pragma unroll 2
    for (int b = 0; b < KEYS / 16; b++) {
        uint32_t x[of::MT][4], z[of::MT][4];
#pragma unroll
        for (int mt = 0; mt < of::MT; mt++) {
            int row = first_row<ROWS>() + mt * 16 + lane % 16;
            tn_load_matrices<false>(x[mt], p + 16 * (row * (KEYS / 8) + ((2 * b + lane / 16) ^ row % 8)));
        }
#pragma unroll
        for (int j = 0; j < of::NV; j++) {
            uint32_t y[4];
            if (column + j * 16 >= a.v.dim) break;
            tn_load_matrices<true>(y, v + 16 * chunk(b * 16 + lane % 16, column / 8 + 2 * j + lane / 16));
#pragma unroll
            for (int mt = 0; mt < of::MT; mt++) {
                if (!QUANTS || j % 2 == 0)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        z[mt][i] =
                            QUANTS ? scale_pair(x[mt][i],
                                                &d[column / 32 + j / 2][b * 16 + i / 2 * 8 + lane % 4 * 2])
                                   : x[mt][i];
                tn_mma_16816<false>(w.o[mt][2 * j], z[mt][0], z[mt][1], z[mt][2], z[mt][3], y[0], y[1]);
                tn_mma_16816<false>(w.o[mt][2 * j + 1], z[mt][0], z[mt][1], z[mt][2], z[mt][3], y[2], y[3]);
            }
        }
    }
}

// --- results ---------------------------------------------------------------------------------------------

template <int ROWS>
static __device__ __forceinline__ void store(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                             shared_storage<ROWS> &m, rows<ROWS> &w)
{
    typedef shape<ROWS> of;
    int lane = threadIdx.x % TN_WARP, column = column_of_warp<ROWS>() * of::NV * 16 + lane % 4 * 2;
    __syncthreads();
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float sum = w.sum[mt][h];
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (lane % 4 == 0)
                m.part[column_of_warp<ROWS>()][first_row<ROWS>() + mt * 16 + h * 8 + lane / 4] = sum;
        }
    __syncthreads();
#pragma unroll
    for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int in_tile = first_row<ROWS>() + mt * 16 + h * 8 + lane / 4, row = p.row + in_tile;
            if (row >= p.n_rows) continue;
            int token = p.first_token + row / p.group, head = p.kv_head * p.group + row % p.group;
            float sum = 0.0f, factor = 1.0f,
                  *y = (float *)(a.y + (int64_t)token * a.y_token + (int64_t)head * a.y_head);
#pragma unroll
            for (int c = 0; c < of::COLUMNS; c++) sum += m.part[c][in_tile];
            if (a.n_splits > 1) {
                int64_t to = ((int64_t)blockIdx.x * a.n_tokens + token) * a.n_heads + head;
                y = a.partial + to * a.v.dim;
                if (column == 0) partial_ends(a)[to] = make_float2(w.max[mt][h], sum);
                if (!(w.max[mt][h] > -INFINITY)) continue; // the merge does not read it
            } else {
                factor = final_factor(a, head, w.max[mt][h], sum);
            }
#pragma unroll
            for (int j = 0; j < 2 * of::NV; j++) {
                int d = column + j * 8;
                if (d < a.v.dim) y[d] = w.o[mt][j][2 * h] * factor, y[d + 1] = w.o[mt][j][2 * h + 1] * factor;
            }
        }
}

// --- the loop --------------------------------------------------------------------------------------------

// Finds this block's part of the keys, which is empty if the sequence is too short for so many splits.
static __device__ __forceinline__ void find_part(const tn_cuda_attention_args &a, work &w)
{
    const tn_row_tile &p = w.rows;
    int n_tiles = max(0, (p.end - p.key + KEYS - 1) / KEYS),
        splits = min(a.n_splits, max(1, n_tiles / MIN_TILES));
    int per = (n_tiles + splits - 1) / splits;
    w.key = p.key + (int)blockIdx.x * per * KEYS;
    w.end = min(p.end, w.key + per * KEYS);
    w.together = a.v.data == a.k.data && a.v.row_size == a.k.row_size && a.v.type == a.k.type;
    w.n_loads = max(0, (w.end - w.key + KEYS - 1) / KEYS) * (w.together ? 1 : 2);
}

template <int ROWS>
static __device__ __forceinline__ void score_tile(const tn_cuda_attention_args &a, const work &u,
                                                  shared_storage<ROWS> &m, rows<ROWS> &w, int key)
{
    typedef shape<ROWS> of;
    bool plain = a.softcap <= 0.0f && a.max_bias <= 0.0f,
         masked = key < u.rows.all_from || key + KEYS > u.rows.all_to;
    if (masked || !plain) {
        mask_scores<ROWS>(a, u.rows, w, key);
    } else {
#pragma unroll
        for (int mt = 0; mt < of::MT; mt++)
#pragma unroll
            for (int j = 0; j < of::NK; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) w.s[mt][j][e] *= a.scale * TN_LOG2E;
    }
    share_maxima<ROWS>(m, w);
    __syncthreads();
    weigh<ROWS>(m, w);
}

template <int ROWS, bool QUANTS>
static __device__ __forceinline__ void attend(const tn_cuda_attention_args &a)
{
    extern __shared__ uint4 shared_bytes[];
    block_scales *scales = reinterpret_cast<block_scales *>(shared_bytes); // of quants only
    shared_storage<ROWS> &m = *reinterpret_cast<shared_storage<ROWS> *>(
        shared_bytes + (QUANTS ? 2 * sizeof(block_scales) / sizeof(uint4) : 0));
    work u;
    tn_pdl_trigger();
    tn_pdl_wait();
    if (!tn_find_row_tile<ROWS, KEYS>(a, gridDim.y - 1 - blockIdx.y, blockIdx.z, u.rows)) return;
    find_part(a, u);
    u.n_slots = a.n_slots;
    rows<ROWS> w;
#pragma unroll
    for (int mt = 0; mt < shape<ROWS>::MT; mt++) {
#pragma unroll
        for (int h = 0; h < 2; h++) w.max[mt][h] = -INFINITY, w.sum[mt][h] = 0.0f;
#pragma unroll
        for (int j = 0; j < 2 * shape<ROWS>::NV; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) w.o[mt][j][e] = 0.0f;
    }
    find_keys(a, u, m.at, 0);
    if (u.n_loads > 0) load_queries<ROWS>(a, u.rows, m);
    // A load runs n_slots - 1 ahead of its use, so with two slots the first iteration only loads.
    for (int load = 1 - u.n_slots; load < u.n_loads; load++) {
        int ahead = load + u.n_slots - 1, next = tile_of(u, ahead + 1);
        __syncthreads(); // the slot is no longer read, and the rows of the next load are found
        if (ahead < u.n_loads)
            load_tile<QUANTS>(a, u, ahead, m.slot[ahead % u.n_slots], scales[ahead % u.n_slots],
                              m.at[tile_of(u, ahead) % 2]);
        tn_copy_commit();
        if (next != tile_of(u, ahead)) find_keys(a, u, m.at, next);
        if (load < 0) continue;
        if (u.n_slots > 1) tn_copy_wait<1>();
        else tn_copy_wait<0>();
        __syncthreads();
        const uint4 *slot = m.slot[load % u.n_slots];
        const block_scales &d = scales[load % u.n_slots];
        if (u.together || load % 2 == 0) {
            multiply_keys<ROWS, QUANTS>(a, m, slot, d, w);
            score_tile<ROWS>(a, u, m, w, u.key + tile_of(u, load) * KEYS);
        }
        if (u.together) __syncthreads(); // the weights of all warps are stored
        if (u.together || load % 2 == 1) add_values<ROWS, QUANTS>(a, m, slot, d, w);
    }
    tn_copy_wait<0>();
    store<ROWS>(a, u.rows, m, w);
}

// attention_wide.c selects an entry by its name.
#define ENTRY(rows, kind, quants)                                                                            \
    TN_ENTRY __launch_bounds__(THREADS, 1)                                                                   \
        tn_attention_wide_##rows##_##kind(const __grid_constant__ tn_cuda_attention_args a)                  \
    {                                                                                                        \
        attend<rows, quants>(a);                                                                             \
    }

ENTRY(64, plain, false)
ENTRY(64, quants, true)
ENTRY(16, plain, false)
ENTRY(16, quants, true)

// Adds the results of the splits. A block has 128 elements of one (token, head) pair, four in a lane. Its
// warps take turns over the splits, so that all their loads are in flight at once; their sums are added in
// shared memory. A split without keys has stored a maximum of -inf.
TN_ENTRY __launch_bounds__(MAX_WAYS *TN_WARP)
    tn_attention_wide_merge(const __grid_constant__ tn_cuda_attention_args a)
{
    __shared__ float4 part[MAX_WAYS][TN_WARP];
    __shared__ float sums[MAX_WAYS];
    int token = blockIdx.x, head = blockIdx.y, lane = threadIdx.x % TN_WARP, way = threadIdx.x / TN_WARP,
        ways = blockDim.x / TN_WARP, d = (int)(blockIdx.z * TN_WARP + lane) * 4;
    tn_pdl_trigger();
    tn_pdl_wait();
    if (tn_attention_seq(a, token) == a.n_seq) return;
    const float2 *ends = partial_ends(a) + (int64_t)token * a.n_heads + head;
    const float *from = a.partial + ((int64_t)token * a.n_heads + head) * a.v.dim + min(d, a.v.dim - 4);
    int64_t step = (int64_t)a.n_tokens * a.n_heads;
    float max = -INFINITY, sum = 0.0f;
    float4 o = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = lane; i < a.n_splits; i += TN_WARP) max = fmaxf(max, ends[i * step].x);
    max = tn_warp_max(max);
#pragma unroll 8
    for (int i = way; i < a.n_splits; i += ways) {
        float2 end = ends[i * step];
        bool any = end.x > -INFINITY;
        float4 x = any ? *reinterpret_cast<const float4 *>(from + i * step * a.v.dim)
                       : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        float f = any ? tn_exp2(end.x - max) : 0.0f;
        sum += f * end.y, o.x += f * x.x, o.y += f * x.y, o.z += f * x.z, o.w += f * x.w;
    }
    part[way][lane] = o;
    if (lane == 0) sums[way] = sum;
    __syncthreads();
    if (way > 0 || d >= a.v.dim) return;
    for (int i = 1; i < ways; i++) {
        float4 x = part[i][lane];
        sum += sums[i], o.x += x.x, o.y += x.y, o.z += x.z, o.w += x.w;
    }
    float factor = final_factor(a, head, max, sum);
    float *y = (float *)(a.y + (int64_t)token * a.y_token + (int64_t)head * a.y_head) + d;
    y[0] = o.x * factor, y[1] = o.y * factor, y[2] = o.z * factor, y[3] = o.w * factor;
}
