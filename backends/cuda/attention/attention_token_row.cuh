// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The rows of the token in attention for one token: the rope_cache step (rope/rope_rows.cuh) for the query
// heads of a block and for k and v of its KV head, one warp per row. Queries go straight to where mma reads
// them; k and v are encoded into shared memory as they stand in the cache, from where they are used at once
// and copied to the cache.
#ifndef TN_CUDA_ATTENTION_TOKEN_ROW_CUH
#define TN_CUDA_ATTENTION_TOKEN_ROW_CUH

#include "backends/cuda/attention/attention_warp.cuh"
#include "backends/cuda/rope/rope_rows.cuh"

// Query heads of a KV head up to which both parts of their rows find place in the columns of one product.
enum { FOUR_ROWS = 4 };

// What a block keeps of the token in shared memory. Of up to four rows queries.lo is not used, and is left
// out where tiles follow as matrices (attention_token_tile.cuh).
template <int DK> struct token_storage {
    float row[2][DK];         // k and v
    uint4 encoded[2][DK / 8]; // the same rows as they stand in the cache
    query_storage<DK, 1> queries;
};

// A lane's pairs of a row, numbered like those of tn_load_pair().
template <int DK> struct row_pairs {
    enum { N = DK / 2 / TN_WARP };
    float x[N], y[N];
};

// What a warp needs for its row of the token. All of it but the row itself is loaded before the wait for the
// predecessor.
template <int DK> struct token_row {
    const char *from;
    int64_t nb;
    int item, n; // number of the row: the query heads of the block, then k, then v; elements of the row
    bool normed;
    float eps;
    row_pairs<DK> weight;          // of the norm
    float2 turn[row_pairs<DK>::N]; // cosine and sine of each pair
};

// Computes cosine and sine of this lane's pairs. The asm statement makes the compiler read half_turns by
// loads from memory instead of as constants of the launch, because the lanes of a warp read different entries
// at once.
template <int DK>
static __device__ __forceinline__ void find_angles(const tn_cuda_rope_cache_args &r, int position,
                                                   float2 (&turn)[row_pairs<DK>::N])
{
    const double *half_turns = r.half_turns;
    asm volatile("" : "+l"(half_turns));
    double x[row_pairs<DK>::N];
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = threadIdx.x % TN_WARP + i * TN_WARP;
        x[i] = t < r.n_rot / 2 ? half_turns[t] : 0.0;
    }
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = threadIdx.x % TN_WARP + i * TN_WARP;
        double turns = position * x[i];
        if (r.factors && t < r.n_rot / 2) turns /= (double)r.factors[t];
        float s, c;
        sincospif((float)(turns - 2.0 * rint(0.5 * turns)), &s, &c);
        turn[i] = make_float2(c * r.m, s * r.m);
    }
}

// Stores element d of row `row` of the queries where mma multiplies it with element d of a key, in the order
// that load_keys() gives the elements of keys, or for MATRICES in that of ldmatrix. Then the lower parts of
// up to four rows (FOUR_ROWS) follow the upper ones as rows 4 to 7.
template <bool MATRICES, int TYPE, int DK>
static __device__ __forceinline__ void store_query(query_storage<DK, 1> &shared, bool four, int row, int d,
                                                   float x)
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    int i = d / 32, c = d % 32 / 8, e = d % 8;
    if (tn_cache_traits<TYPE>::QUANT) {
        // Code byte b of a block is byte `at` of the words of the pair of blocks (tn_quant_byte).
        int last = TYPE == TN_CUDA_CACHE_Q8_0 ? 32 : 16, b = d % last;
        int at = i % 2 || b < 2 ? b : b < last - 2 ? b + 2 : b - (last - 4);
        c = at / 4 % 4, e = at % 4 + (d % 32 >= 16 && TYPE == TN_CUDA_CACHE_Q4_0 ? 4 : 0) +
                            (TYPE == TN_CUDA_CACHE_Q8_0 ? at / 16 * 4 : 0);
    }
    if (MATRICES) c = d % 8 / 2, e = d % 32 / 8 * 2 + d % 2;
    uint32_t hi = tn_pack16<BF16>(x, 0.0f), lo = tn_pack16<BF16>(x - tn_unpack16<BF16>(hi).x, 0.0f);
    ((uint16_t *)&shared.hi[0][i][row * 4 + c])[e] = (uint16_t)hi;
    ((uint16_t *)(MATRICES && four ? &shared.hi[0][i][row * 4 + 16 + c] : &shared.lo[0][i][row * 4 + c]))[e] =
        (uint16_t)lo;
}

// The elements of pair t. In a row that is rotated as NeoX does it, they are n_rot / 2 apart.
static __device__ __forceinline__ void pair_of(const tn_cuda_rope_cache_args &r, bool rotated, int t,
                                               int &first, int &second)
{
    bool apart = rotated && r.neox && t < r.n_rot / 2;
    first = apart ? t : 2 * t, second = apart ? t + r.n_rot / 2 : 2 * t + 1;
}

// Loads this lane's pairs of a row of n elements that lie nb bytes apart; elements beyond the row are 0.
template <int DK>
static __device__ __forceinline__ void load_row(const tn_cuda_rope_cache_args &r, row_pairs<DK> &p,
                                                bool rotated, const char *x, int64_t nb, int n)
{
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int first, second;
        pair_of(r, rotated, threadIdx.x % TN_WARP + i * TN_WARP, first, second);
        p.x[i] = first < n ? *(const float *)(x + first * nb) : 0.0f;
        p.y[i] = second < n ? *(const float *)(x + second * nb) : 0.0f;
    }
}

// Finds row number `item` and loads the weights of its norm.
template <int DK>
static __device__ __forceinline__ void prepare_row(const tn_cuda_rope_cache_args &r, const part &p, int head,
                                                   int item, token_row<DK> &row)
{
    int other = item - p.n_rows;
    const tn_cuda_view &view = other < 0 ? r.q : other == 0 ? r.k : r.v;
    const float *norm = other < 0 ? r.norm[0] : other == 0 ? r.norm[1] : NULL;
    row.item = item, row.n = (int)view.ne[3], row.nb = view.nb[3], row.eps = r.eps;
    row.from = view.data + p.first_token * view.nb[1] + (other < 0 ? head + item : p.kv_head) * view.nb[2];
    row.normed = norm != NULL;
    if (norm) load_row(r, row.weight, true, (const char *)norm, 4, row.n);
}

// PACKED: elements may have 16 bits, of the type of the cache.
template <bool PACKED, int TYPE, int DK>
static __device__ __forceinline__ row_pairs<DK> load_token_row(const tn_cuda_rope_cache_args &r,
                                                               const part &p, const token_row<DK> &row)
{
    row_pairs<DK> x;
    if (PACKED && row.nb == 2) {
#pragma unroll
        for (int i = 0; i < row_pairs<DK>::N; i++) {
            int first = 2 * (threadIdx.x % TN_WARP + i * TN_WARP);
            uint32_t both = first < row.n ? *(const uint32_t *)(row.from + first * 2) : 0;
            float2 y = tn_unpack16<TYPE == TN_CUDA_CACHE_BF16>(both);
            x.x[i] = y.x, x.y[i] = y.y;
        }
        return x;
    }
    load_row(r, x, row.item - p.n_rows < 1, row.from, row.nb, row.n);
    return x;
}

// Applies norm and rotation to a row, and stores it as queries or encoded.
template <bool MATRICES, int TYPE, int DK>
static __device__ __forceinline__ void process_row(const tn_cuda_rope_cache_args &r, const part &p,
                                                   const token_row<DK> &row, const row_pairs<DK> &x,
                                                   token_storage<DK> &shared)
{
    constexpr int STORED = TYPE == TN_CUDA_CACHE_F16    ? TN_TYPE_F16
                           : TYPE == TN_CUDA_CACHE_BF16 ? TN_TYPE_BF16
                           : TYPE == TN_CUDA_CACHE_Q8_0 ? TN_TYPE_Q8_0
                                                        : TN_TYPE_Q4_0;
    int lane = threadIdx.x % TN_WARP, other = row.item - p.n_rows;
    bool rotated = other < 1;
    float scale = 1.0f;
    if (row.normed) {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < row_pairs<DK>::N; i++) sum += x.x[i] * x.x[i] + x.y[i] * x.y[i];
        scale = 1.0f / sqrtf(tn_warp_sum(sum) / (float)row.n + row.eps);
    }
#pragma unroll
    for (int i = 0; i < row_pairs<DK>::N; i++) {
        int t = lane + i * TN_WARP, first, second;
        pair_of(r, rotated, t, first, second);
        float u = x.x[i], v = x.y[i];
        if (row.normed) u *= scale * row.weight.x[i], v *= scale * row.weight.y[i];
        if (rotated && t < r.n_rot / 2) {
            float w = u * row.turn[i].x - v * row.turn[i].y;
            v = u * row.turn[i].y + v * row.turn[i].x, u = w;
        }
        // Beyond the end of the row u and v are 0.
        if (other < 0)
            store_query<MATRICES, TYPE>(shared.queries, p.group <= FOUR_ROWS, row.item, first, u),
                store_query<MATRICES, TYPE>(shared.queries, p.group <= FOUR_ROWS, row.item, second, v);
        else
            shared.row[other][first] = u, shared.row[other][second] = v;
    }
    if (other < 0) return;
    __syncwarp();
    tn_write_cache_row((char *)shared.encoded[other], STORED, r.cache_row[other], shared.row[other], row.n,
                       lane);
}

// Copies the encoded rows to their place in the cache: warp 0 copies k and warp 1 copies v.
template <int DK>
static __device__ __forceinline__ void write_rows(const tn_cuda_attention_token_args &d, const part &p,
                                                  int slot, const token_storage<DK> &shared)
{
    const tn_cuda_rope_cache_args &r = d.rope;
    int warp = threadIdx.x / TN_WARP, lane = threadIdx.x % TN_WARP;
    if (warp >= 2 || slot < 0) return;
    const int64_t *nb = r.cache_nb[warp];
    uint32_t *out = (uint32_t *)(r.cache[warp] + (slot >> d.block_shift) * nb[0] + p.kv_head * nb[1] +
                                 (slot & d.block_mask) * nb[2]);
    int words = (int)((warp == 0 ? d.a.k.row_size : d.a.v.row_size) / 4);
    for (int i = lane; i < words; i += TN_WARP) out[i] = ((const uint32_t *)shared.encoded[warp])[i];
}

#endif
