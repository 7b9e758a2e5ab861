// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention for many queries per sequence (flash attention, Dao 2023): S = Q K^T, P = online softmax of S, O
// += P V, with mma.m16n8k16 in f16. Runs from compute capability 8.0 on.
//
// Grid (KV heads, row tiles), the last tiles first, because they are the longest under a causal mask. A block
// of 4 warps has a tile of 64 MT rows (attention_rows.cuh), which the heads of a group share, so that each
// load of keys serves them all. A warp holds 16 MT rows of O in registers and goes through tiles of 64 keys.
// Q, K and V lie in shared memory as f16, in rows of 2 D bytes with 16-byte chunk i of row r at i ^ r % 8.
//
// f16 caches are copied asynchronously, V while S is computed, the next K during softmax and P V. The other
// types are converted on the way: f32 and bf16 to f16, q8_0 and q4_0 to integers times the power of two of
// their scale, which is exact (attention_convert.cuh). The rest of the scale of 32 elements of a key is
// applied after their product, that of a value is applied to the weights before theirs.
//
// Q is rounded to f16 (declared in kernels.def), P to f16 (5e-8 NMSE). Shared memory: 2 D (64 MT + 128) bytes
// and tables. Bytes moved: the visible rows of the caches once per 64 MT rows. Operations: 4 D per visible
// (row, key); tiles that no row sees are not visited. Limit: tensor cores. NVIDIA H200, 2026-11-20, 4096
// tokens, causal, 32 heads over 8 KV heads of 128: 213 TFLOP/s with an f16 cache, 111 with bf16, 84 with q8_0
// and 85 with q4_0, whose loads are not hidden (masked half not counted).
#include "backends/cuda/attention/attention_convert.cuh"
#include "backends/cuda/attention/attention_rows.cuh"

enum { WARPS = 4, THREADS = WARPS * TN_WARP, KEYS = 64 };
// Weights are scaled to at most 2^WEIGHT_SHIFT, so that small ones keep their bits in f16.
#define WEIGHT_SHIFT 8.0f

template <int D, int MT> struct shared_storage {
    static constexpr int ROWS = 64 * MT;
    uint4 q[ROWS * D / 8], k[KEYS * D / 8], v[KEYS * D / 8];
    float scale[KEYS][D / 32];        // rest of the scales of quantised keys (tn_scale_rest)
    __half value_scale[D / 32][KEYS]; // the same of quantised values
    // Rows of the caches that hold the keys of this and of the next tile; -1 for a key that does not exist.
    int64_t at[2][KEYS];
};

// The place of 16-byte chunk i of row r of a tile of D columns. Rows are swizzled, so that ldmatrix has no
// bank conflicts.
template <int D> static __device__ __forceinline__ int chunk(int r, int i)
{
    return r * (D / 8) + (i ^ r % 8);
}

// --- loads -----------------------------------------------------------------------------------------------

template <int D, int MT>
static __device__ void load_queries(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                    shared_storage<D, MT> &s)
{
    bool wide = a.q_elem == 4 && ((uintptr_t)a.q | (uintptr_t)a.q_token | (uintptr_t)a.q_head) % 16 == 0;
    for (int n = threadIdx.x; n < 64 * MT * (D / 8); n += THREADS) {
        int r = n / (D / 8), i = n % (D / 8), row = min(p.row + r, p.n_rows - 1);
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
        s.q[chunk<D>(r, i)] = make_uint4(tn_pack16<false>(x[0], x[1]), tn_pack16<false>(x[2], x[3]),
                                         tn_pack16<false>(x[4], x[5]), tn_pack16<false>(x[6], x[7]));
    }
}

// Finds the rows of the caches that hold the keys of the tile at `key`. All rows of a cache are numbered in
// order.
template <int D, int MT>
static __device__ __forceinline__ void find_keys(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                 shared_storage<D, MT> &s, int key)
{
    if (threadIdx.x >= KEYS || key >= p.end) return;
    int j = key + (int)threadIdx.x;
    int64_t at = -1;
    if (j < p.end)
        at = ((int64_t)a.table[(int64_t)p.seq * a.max_blocks + j / a.block] * a.n_kv + p.kv_head) * a.block +
             j % a.block;
    s.at[key / KEYS % 2][threadIdx.x] = at;
}

// Loads a tile of v if VALUES, otherwise of k. SCALED says that the kernel applies scales of both.
template <int TYPE, int D, int MT, bool SCALED, bool VALUES>
static __device__ __forceinline__ void load_typed(const tn_cuda_cache &c, shared_storage<D, MT> &s,
                                                  const int64_t *rows)
{
    uint4 *to = VALUES ? s.v : s.k;
#pragma unroll 2
    for (int n = threadIdx.x; n < KEYS * (D / 8); n += THREADS) {
        int r = n / (D / 8), i = n % (D / 8);
        bool valid = rows[r] >= 0 && i * 8 < c.dim;
        const char *row = valid ? c.data + rows[r] * c.row_size : c.data;
        if constexpr (TYPE == TN_CUDA_CACHE_F16)
            tn_copy_async(tn_shared_address(&to[chunk<D>(r, i)]), row + (valid ? i * 16 : 0), valid);
        else
            to[chunk<D>(r, i)] = valid ? tn_cache_chunk<TYPE>(row, i) : make_uint4(0, 0, 0, 0);
        if (!SCALED || i % 4 != 0) continue;
        __half d = tn_scale_rest(valid ? tn_cache_scale<TYPE>(row, i / 4) : __float2half(0.0f));
        if (VALUES) s.value_scale[i / 4][r] = d;
        else s.scale[r][i / 4] = __half2float(d);
    }
}

template <int D, int MT, bool SCALED, bool VALUES>
static __device__ __forceinline__ void load_tile(const tn_cuda_cache &c, shared_storage<D, MT> &s,
                                                 const int64_t *rows)
{
    switch (c.type) {
    case TN_CUDA_CACHE_F16: load_typed<TN_CUDA_CACHE_F16, D, MT, SCALED, VALUES>(c, s, rows); break;
    case TN_CUDA_CACHE_F32: load_typed<TN_CUDA_CACHE_F32, D, MT, SCALED, VALUES>(c, s, rows); break;
    case TN_CUDA_CACHE_BF16: load_typed<TN_CUDA_CACHE_BF16, D, MT, SCALED, VALUES>(c, s, rows); break;
    case TN_CUDA_CACHE_Q8_0:
        if constexpr (SCALED) load_typed<TN_CUDA_CACHE_Q8_0, D, MT, SCALED, VALUES>(c, s, rows);
        break;
    default:
        if constexpr (SCALED) load_typed<TN_CUDA_CACHE_Q4_0, D, MT, SCALED, VALUES>(c, s, rows);
        break;
    }
}

// --- arithmetic ------------------------------------------------------------------------------------------

// A warp's rows of S and O. Of lane l, registers [j][0, 1] are row l / 4 and [j][2, 3] are row l / 4 + 8,
// columns 8 j + 2 (l % 4) + {0, 1}.
template <int D, int MT> struct rows {
    float o[MT][D / 8][4], s[MT][KEYS / 8][4];
    float max[MT][2], sum[MT][2]; // maxima of whole rows, sums of this lane's columns
};

template <int D, int MT, bool SCALED>
static __device__ __forceinline__ void multiply_keys(const shared_storage<D, MT> &m, rows<D, MT> &w)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    uint32_t q = tn_shared_address(m.q), k = tn_shared_address(m.k);
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) w.s[mt][j][e] = 0.0f;
#pragma unroll
    for (int b = 0; b < D / 32; b++) {
        uint32_t x[MT][2][4];
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                tn_load_matrices<false>(x[mt][h], q + 16 * chunk<D>((warp * MT + mt) * 16 + lane % 16,
                                                                    4 * b + 2 * h + lane / 16));
#pragma unroll
        for (int j = 0; j < KEYS / 8; j++) {
            uint32_t y[4];
            tn_load_matrices<false>(y, k + 16 * chunk<D>(j * 8 + lane % 8, 4 * b + lane / 8));
            float d0 = SCALED ? m.scale[j * 8 + lane % 4 * 2][b] : 1.0f,
                  d1 = SCALED ? m.scale[j * 8 + lane % 4 * 2 + 1][b] : 1.0f;
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};
                float(&to)[4] = SCALED ? part : w.s[mt][j];
                tn_mma_16816<false>(to, x[mt][0][0], x[mt][0][1], x[mt][0][2], x[mt][0][3], y[0], y[1]);
                tn_mma_16816<false>(to, x[mt][1][0], x[mt][1][1], x[mt][1][2], x[mt][1][3], y[2], y[3]);
                if (SCALED)
                    w.s[mt][j][0] += d0 * part[0], w.s[mt][j][1] += d1 * part[1],
                        w.s[mt][j][2] += d0 * part[2], w.s[mt][j][3] += d1 * part[3];
            }
        }
    }
}

// Whether scores need only a positive factor: then it can be applied together with the exponential.
static __device__ __forceinline__ bool is_plain(const tn_cuda_attention_args &a)
{
    return a.softcap <= 0.0f && a.max_bias <= 0.0f && a.scale > 0.0f;
}

// Applies the mask and, unless scores are plain, scale, softcap and bias, as exponents of 2.
template <int D, int MT>
static __device__ __forceinline__ void mask_scores(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                                   rows<D, MT> &w, int key)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    bool plain = is_plain(a);
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            tn_row_info u = tn_row_info_get(a, p, p.row + (warp * MT + mt) * 16 + h * 8 + lane / 4);
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &x = w.s[mt][j][2 * h + e];
                    int at = key + j * 8 + lane % 4 * 2 + e;
                    if (!plain) x = tn_attention_bias(a, x * a.scale, u.slope, u.position - at) * TN_LOG2E;
                    if (at < u.lo || at >= u.hi) x = -INFINITY;
                }
        }
}

// Turns scores into weights, times 2^WEIGHT_SHIFT, and rescales o and the sums to the new maximum. `factor`
// is the factor that the scores still need.
template <int D, int MT> static __device__ __forceinline__ void weigh(rows<D, MT> &w, float factor)
{
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float top = -INFINITY;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
                top = fmaxf(top, fmaxf(w.s[mt][j][2 * h], w.s[mt][j][2 * h + 1]));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 1));
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, 2)) * factor;
            top = fmaxf(top, w.max[mt][h]);
            float base = top > -INFINITY ? WEIGHT_SHIFT - top : 0.0f;
            float shrink = w.max[mt][h] > -INFINITY ? tn_exp2(w.max[mt][h] - top) : 1.0f, sum = 0.0f;
            w.max[mt][h] = top;
#pragma unroll
            for (int j = 0; j < KEYS / 8; j++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &x = w.s[mt][j][2 * h + e];
                    x = tn_exp2(fmaf(x, factor, base));
                    sum += x;
                }
            w.sum[mt][h] = w.sum[mt][h] * shrink + sum;
#pragma unroll
            for (int j = 0; j < D / 8; j++) w.o[mt][j][2 * h] *= shrink, w.o[mt][j][2 * h + 1] *= shrink;
        }
}

// Two weights, times the rest of the scales of their values for 32 elements.
static __device__ __forceinline__ uint32_t scale_pair(uint32_t weights, const __half *scale)
{
    return tn_half2_bits(
        __hmul2(*reinterpret_cast<__half2 *>(&weights), *reinterpret_cast<const __half2 *>(scale)));
}

template <int D, int MT, bool SCALED>
static __device__ __forceinline__ void add_values(const shared_storage<D, MT> &m, rows<D, MT> &w)
{
    int lane = threadIdx.x % TN_WARP;
    uint32_t v = tn_shared_address(m.v);
#pragma unroll
    for (int b = 0; b < KEYS / 16; b++) {
        uint32_t x[MT][4], z[MT][4];
#pragma unroll
        for (int mt = 0; mt < MT; mt++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                z[mt][i] = x[mt][i] = tn_pack16<false>(w.s[mt][2 * b + i / 2][i % 2 * 2],
                                                       w.s[mt][2 * b + i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int j = 0; j < D / 16; j++) {
            uint32_t y[4];
            tn_load_matrices<true>(y, v + 16 * chunk<D>(b * 16 + lane % 16, 2 * j + lane / 16));
#pragma unroll
            for (int mt = 0; mt < MT; mt++) {
                if (SCALED && j % 2 == 0)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        z[mt][i] =
                            scale_pair(x[mt][i], &m.value_scale[j / 2][b * 16 + i / 2 * 8 + lane % 4 * 2]);
                tn_mma_16816<false>(w.o[mt][2 * j], z[mt][0], z[mt][1], z[mt][2], z[mt][3], y[0], y[1]);
                tn_mma_16816<false>(w.o[mt][2 * j + 1], z[mt][0], z[mt][1], z[mt][2], z[mt][3], y[2], y[3]);
            }
        }
    }
}

template <int D, int MT>
static __device__ __forceinline__ void store(const tn_cuda_attention_args &a, const tn_row_tile &p,
                                             rows<D, MT> &w)
{
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int mt = 0; mt < MT; mt++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = p.row + (warp * MT + mt) * 16 + h * 8 + lane / 4;
            float sum = w.sum[mt][h], keep = 1.0f;
            sum += __shfl_xor_sync(0xffffffffu, sum, 1);
            sum += __shfl_xor_sync(0xffffffffu, sum, 2);
            if (row >= p.n_rows) continue;
            int head = p.kv_head * p.group + row % p.group;
            if (a.sinks) {
                float sink = a.sinks[head] * TN_LOG2E, top = fmaxf(w.max[mt][h], sink);
                keep = w.max[mt][h] > -INFINITY ? tn_exp2(w.max[mt][h] - top) : 0.0f;
                sum = sum * keep + (top > -INFINITY ? tn_exp2(sink - top + WEIGHT_SHIFT) : 0.0f);
            }
            keep = sum > 0.0f ? keep / sum : 0.0f;
            char *y = a.y + (int64_t)(p.first_token + row / p.group) * a.y_token + (int64_t)head * a.y_head;
#pragma unroll
            for (int j = 0; j < D / 8; j++) {
                int d = j * 8 + lane % 4 * 2;
                if (d < a.v.dim)
                    *reinterpret_cast<float2 *>(y + d * 4) =
                        make_float2(w.o[mt][j][2 * h] * keep, w.o[mt][j][2 * h + 1] * keep);
            }
        }
}

// --- the loop --------------------------------------------------------------------------------------------

template <int D, int MT, bool SCALED>
static __device__ __forceinline__ void prefill(const tn_cuda_attention_args &a)
{
    extern __shared__ uint4 shared_bytes[];
    shared_storage<D, MT> &m = *reinterpret_cast<shared_storage<D, MT> *>(shared_bytes);
    tn_row_tile p;
    tn_pdl_trigger();
    tn_pdl_wait();
    if (!tn_find_row_tile<64 * MT, KEYS>(a, gridDim.y - 1 - blockIdx.y, blockIdx.x, p)) return;
    rows<D, MT> w;
#pragma unroll
    for (int mt = 0; mt < MT; mt++) {
#pragma unroll
        for (int h = 0; h < 2; h++) w.max[mt][h] = -INFINITY, w.sum[mt][h] = 0.0f;
#pragma unroll
        for (int j = 0; j < D / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) w.o[mt][j][e] = 0.0f;
    }
    bool plain = is_plain(a);
    find_keys(a, p, m, p.key);
    __syncthreads();
    if (p.key < p.end) load_tile<D, MT, SCALED, false>(a.k, m, m.at[p.key / KEYS % 2]);
    tn_copy_commit();
    load_queries(a, p, m);
    for (int key = p.key; key < p.end; key += KEYS) {
        int now = key / KEYS % 2;
        tn_copy_wait<0>();
        __syncthreads(); // the keys have arrived, and the values of the last tile are no longer needed
        load_tile<D, MT, SCALED, true>(a.v, m, m.at[now]);
        tn_copy_commit();
        find_keys(a, p, m, key + KEYS);
        multiply_keys<D, MT, SCALED>(m, w);
        tn_copy_wait<0>();
        __syncthreads(); // the values have arrived, and the keys are no longer needed
        if (key + KEYS < p.end) load_tile<D, MT, SCALED, false>(a.k, m, m.at[now ^ 1]);
        tn_copy_commit();
        bool masked = key < p.all_from || key + KEYS > p.all_to;
        if (masked || !plain) mask_scores(a, p, w, key);
        weigh(w, plain ? a.scale * TN_LOG2E : 1.0f);
        add_values<D, MT, SCALED>(m, w);
    }
    tn_copy_wait<0>();
    store(a, p, w);
}

// attention_prefill.c selects an entry by its name.
#define ENTRY(d, mt, kind, scaled)                                                                           \
    TN_ENTRY __launch_bounds__(THREADS, d == 256 ? 1 : 2)                                                    \
        tn_attention_prefill_##d##_##kind(const __grid_constant__ tn_cuda_attention_args a)                  \
    {                                                                                                        \
        prefill<d, mt, scaled>(a);                                                                           \
    }

ENTRY(64, 2, plain, false)
ENTRY(64, 2, quants, true)
ENTRY(128, 2, plain, false)
ENTRY(128, 2, quants, true)
ENTRY(256, 1, plain, false)
ENTRY(256, 1, quants, true)
