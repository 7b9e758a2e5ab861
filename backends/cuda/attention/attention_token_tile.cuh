// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a warp does with a tile of 16 keys and values of 16 bits that lies in shared memory, in attention for
// one token (attention_token.cu). It computes the same as attention_warp.cuh with fewer instructions:
// - Keys and values come by ldmatrix in the order that mma wants, so nothing is moved between registers.
// - The queries stay in registers. With up to four heads, their upper and lower parts lie side by side in the
//   eight columns of S^T, so one product computes both. Then two lanes have the parts of the same scores, and
//   each of them adds up and weighs one key. As the weights of the first and of the second eight keys come
//   out in different columns, columns 4 to 7 of O^T hold the sums of the second eight keys (f16), or of the
//   lower parts of the weights (bf16), and are added once at the end.
// - Weights are relative to a reference, which follows the maximum only when a weight would exceed 2^15. So
//   most tiles need no maximum over the lanes.
// Rows that do not exist, and the row of the token itself, are written into the tile where that is needed, so
// the loads need no conditions.
//
// Lane l = 4 g + c. Row r of S^T is key tile_row(r), row r + 8 is key tile_row(r) + 2.
#ifndef TN_CUDA_ATTENTION_TOKEN_TILE_CUH
#define TN_CUDA_ATTENTION_TOKEN_TILE_CUH

#include "backends/cuda/attention/attention_token_row.cuh"

// Bytes of the gap behind each four rows of a tile. With it, the eight rows of a matrix of ldmatrix lie in
// four times two different banks. Rows of 34-byte or 18-byte blocks are spread over the banks without it, and
// their copies could not be cut at each four rows, because the size of a copy has to be a multiple of 16
// bytes.
template <int TYPE> static __device__ __forceinline__ constexpr int ring_gap()
{
    return tn_cache_traits<TYPE>::QUANT ? 0 : 32;
}

static __device__ __forceinline__ int tile_row(int r)
{
    return r % 4 * 4 + r / 4;
}

// Where row r of a tile in shared memory lies.
template <int TYPE> static __device__ __forceinline__ int tile_offset(int r, int row_size)
{
    return r * row_size + r / 4 * ring_gap<TYPE>();
}

// The reference before the first score.
#define NO_REFERENCE (-3.0e38f)
// The binary logarithm of the largest weight.
#define MOST_WEIGHT 15.0f

// What a warp keeps of a query, beside its results. FOUR: there are up to four heads.
template <int DK, bool FOUR> struct tile_queries {
    uint32_t hi[DK / 16][2]; // operand B, of mma number j elements 16 j to 16 j + 15
    uint32_t lo[FOUR ? 1 : DK / 16][2];
    float reference[2], sum[2]; // of this lane's heads; sums of this lane's keys
    float slope[2];
    int lo_key, hi_key, position; // keys that the token sees, and its own
    int k_at, v_at;               // this lane's row of matrices of keys and values, from the start of a tile
};

// Elements of queries are stored in the order of ldmatrix: see store_query() in attention_token_row.cuh.
template <int TYPE, int DK, bool FOUR>
static __device__ __forceinline__ void load_queries(const tn_cuda_attention_args &a, const part &p, int head,
                                                    const query_storage<DK, 1> &shared,
                                                    tile_queries<DK, FOUR> &q)
{
    int lane = threadIdx.x % TN_WARP, g = lane / 4, c = lane % 4;
    int row = FOUR ? g % 4 : g; // of this lane
    bool exists = row < p.n_rows;
#pragma unroll
    for (int j = 0; j < DK / 32; j++) {
        const uint4 none = make_uint4(0, 0, 0, 0);
        uint4 x = none;
        if (exists) x = shared.hi[0][j][lane];
        q.hi[2 * j][0] = x.x, q.hi[2 * j][1] = x.y, q.hi[2 * j + 1][0] = x.z, q.hi[2 * j + 1][1] = x.w;
        if constexpr (!FOUR) {
            x = exists ? shared.lo[0][j][lane] : none;
            q.lo[2 * j][0] = x.x, q.lo[2 * j][1] = x.y, q.lo[2 * j + 1][0] = x.z, q.lo[2 * j + 1][1] = x.w;
        }
    }
    q.position = p.kv_len - 1;
    tn_attention_range(a, q.position, p.kv_len, &q.lo_key, &q.hi_key);
#pragma unroll
    for (int h = 0; h < 2; h++) {
        int r = 2 * (FOUR ? c % 2 : c) + h;
        q.slope[h] = r < p.n_rows ? tn_attention_slope(a, head + r) : 0.0f;
        q.reference[h] = NO_REFERENCE, q.sum[h] = 0.0f;
    }
    int m = lane / 8, r = tile_row(lane % 8);
    q.k_at = tile_offset<TYPE>(r + m % 2 * 2, (int)a.k.row_size) + m / 2 * 16;
    q.v_at = tile_offset<TYPE>(r + m / 2 * 2, (int)a.v.row_size) + m % 2 * 16;
}

// Scores of this lane's keys and heads: with FOUR one key, else two.
template <int TYPE, int DK, bool FOUR>
static __device__ __forceinline__ void score(const tn_cuda_attention_args &a, uint32_t keys,
                                             const tile_queries<DK, FOUR> &q, float (&x)[FOUR ? 1 : 2][2])
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    uint32_t k[DK / 16][4];
    float s[2][4]; // two sums, which do not wait for each other
#pragma unroll
    for (int e = 0; e < 4; e++) s[0][e] = s[1][e] = 0.0f;
#pragma unroll
    for (int j = 0; j < DK / 16; j++) tn_load_matrices<false>(k[j], keys + q.k_at + 32 * j);
    if (a.k.dim < DK) { // what lies behind a row is no part of it
#pragma unroll
        for (int j = 0; j < DK / 16; j++)
#pragma unroll
            for (int m = 0; m < 4; m++)
                if (16 * j + m / 2 * 8 >= a.k.dim) k[j][m] = 0;
    }
#pragma unroll
    for (int j = 0; j < DK / 16; j++) {
        float(&to)[4] = s[FOUR ? j % 2 : 0];
        tn_mma_16816<BF16>(to, k[j][0], k[j][1], k[j][2], k[j][3], q.hi[j][0], q.hi[j][1]);
        if constexpr (!FOUR)
            tn_mma_16816<BF16>(s[1], k[j][0], k[j][1], k[j][2], k[j][3], q.lo[j][0], q.lo[j][1]);
    }
#pragma unroll
    for (int e = 0; e < 4; e++) s[0][e] += s[1][e];
    if constexpr (FOUR) {
        // Lanes with c below 2 have the upper parts, the others the lower ones, of both keys.
        bool second = threadIdx.x % 4 >= 2;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float keep = second ? s[0][2 + h] : s[0][h], give = second ? s[0][h] : s[0][2 + h];
            x[0][h] = keep + __shfl_xor_sync(0xffffffffu, give, 2);
        }
    } else {
#pragma unroll
        for (int e = 0; e < 4; e++) x[e / 2][e % 2] = s[0][e];
    }
}

// Moves the references to the new maxima, and scales all sums to them.
template <int DK, bool FOUR>
static __device__ __forceinline__ void move_reference(tile_queries<DK, FOUR> &q, float (&o)[DK / 16][1][4],
                                                      const float (&x)[FOUR ? 1 : 2][2])
{
    float shrink[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        float top = FOUR ? x[0][h] : fmaxf(x[0][h], x[FOUR ? 0 : 1][h]);
#pragma unroll
        for (int i = FOUR ? 2 : 4; i < TN_WARP; i *= 2)
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, i));
        top = fmaxf(top, q.reference[h]);
        shrink[h] = tn_exp2(q.reference[h] - top);
        q.reference[h] = top, q.sum[h] *= shrink[h];
    }
#pragma unroll
    for (int i = 0; i < DK / 16; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) o[i][0][e] *= shrink[e % 2];
}

// Turns the scores of a tile, whose first key is `key`, into weights times 2^WEIGHT_SHIFT.
template <int TYPE, int DK, bool FOUR>
static __device__ __forceinline__ void weigh_tile(const tn_cuda_attention_args &a, int key,
                                                  tile_queries<DK, FOUR> &q, float (&o)[DK / 16][1][4],
                                                  float (&x)[FOUR ? 1 : 2][2])
{
    int lane = threadIdx.x % TN_WARP, first = key + tile_row(lane / 4) + (FOUR && lane % 4 >= 2 ? 2 : 0);
    float factor = a.scale * TN_LOG2E;
    bool high = false;
    if (a.softcap <= 0.0f && a.max_bias <= 0.0f) {
#pragma unroll
        for (int e = 0; e < (FOUR ? 2 : 4); e++) x[e / 2][e % 2] *= factor;
    } else {
#pragma unroll
        for (int e = 0; e < (FOUR ? 2 : 4); e++)
            x[e / 2][e % 2] = tn_attention_bias(a, x[e / 2][e % 2] * a.scale, q.slope[e % 2],
                                                q.position - first - e / 2 * 2) *
                              TN_LOG2E;
    }
#pragma unroll
    for (int e = 0; e < (FOUR ? 2 : 4); e++) {
        int j = first + e / 2 * 2;
        if (j < q.lo_key || j >= q.hi_key) x[e / 2][e % 2] = -INFINITY;
        high = high || x[e / 2][e % 2] - q.reference[e % 2] > MOST_WEIGHT - WEIGHT_SHIFT;
    }
    if (__any_sync(0xffffffffu, high)) move_reference<DK, FOUR>(q, o, x);
#pragma unroll
    for (int e = 0; e < (FOUR ? 2 : 4); e++) {
        float &w = x[e / 2][e % 2];
        w = tn_exp2(w - (q.reference[e % 2] - WEIGHT_SHIFT));
        q.sum[e % 2] += w;
    }
}

// Operand B of the products with values, from the weights.
template <int TYPE, bool FOUR>
static __device__ __forceinline__ void pack_weights(const float (&x)[FOUR ? 1 : 2][2], uint32_t (&p)[2],
                                                    uint32_t (&low)[2])
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    uint32_t hi[2], lo[2];
#pragma unroll
    for (int r = 0; r < (FOUR ? 1 : 2); r++) {
        uint32_t both = tn_pack16<BF16>(x[r][0], x[r][1]);
        hi[r] = tn_transpose_8x8(both);
        if (!BF16) continue;
        float2 back = tn_unpack16<BF16>(both);
        lo[r] = tn_transpose_8x8(tn_pack16<BF16>(x[r][0] - back.x, x[r][1] - back.y));
    }
    if constexpr (!FOUR) {
        p[0] = hi[0], p[1] = hi[1];
        if (BF16) low[0] = lo[0], low[1] = lo[1];
        return;
    }
    // Lanes of columns 0 to 3 have weights of the first eight keys, the others those of the second.
    bool second = threadIdx.x % TN_WARP >= TN_WARP / 2;
    if constexpr (BF16) {
        uint32_t other = __shfl_xor_sync(0xffffffffu, second ? hi[0] : lo[0], TN_WARP / 2);
        p[0] = second ? other : hi[0], p[1] = second ? lo[0] : other;
    } else {
        p[0] = second ? 0 : hi[0], p[1] = second ? hi[0] : 0;
    }
}

// Adds the values of a tile, weighed, to the results.
template <int TYPE, int DK, bool FOUR>
static __device__ __forceinline__ void add_tile(const uint32_t (&v)[DK / 16][4],
                                                const float (&x)[FOUR ? 1 : 2][2], float (&o)[DK / 16][1][4])
{
    constexpr bool BF16 = tn_cache_traits<TYPE>::BF16;
    uint32_t p[2], low[2];
    pack_weights<TYPE, FOUR>(x, p, low);
#pragma unroll
    for (int i = 0; i < DK / 16; i++) {
        tn_mma_16816<BF16>(o[i][0], v[i][0], v[i][1], v[i][2], v[i][3], p[0], p[1]);
        if (BF16 && !FOUR) tn_mma_16816<BF16>(o[i][0], v[i][0], v[i][1], v[i][2], v[i][3], low[0], low[1]);
    }
}

// Writes what a tile does not have as it was copied: the row `own` (if it is one of the tile's) from the
// token, because the cache does not have it yet, and zeros for values from row `end` on, which do not exist.
// Their memory may hold NaN, which even a weight of 0 would not remove.
template <int TYPE, int DK>
static __device__ __forceinline__ void complete_tile(const tn_cuda_attention_args &a,
                                                     const token_storage<DK> &shared, int own, int end,
                                                     char *k, char *v)
{
    int lane = threadIdx.x % TN_WARP, at = lane % 16 * 16, second = lane / 16;
    int row_size = (int)(second ? a.v.row_size : a.k.row_size);
    if (own >= 0 && own < min((int)KEYS, end) && at < row_size)
        *(uint4 *)((second ? v : k) + tile_offset<TYPE>(own, row_size) + at) =
            *(const uint4 *)((const char *)shared.encoded[second] + at);
    for (int r = end + second; r < KEYS; r += 2)
        if (at < (int)a.v.row_size)
            *(uint4 *)(v + tile_offset<TYPE>(r, (int)a.v.row_size) + at) = make_uint4(0, 0, 0, 0);
    __syncwarp();
}

// Leaves the results as merging wants them: columns of heads only, sums of all keys of a lane's column.
template <int DK, bool FOUR>
static __device__ __forceinline__ void finish_tiles(const tile_queries<DK, FOUR> &q,
                                                    float (&o)[DK / 16][1][4], float (&max)[1][2],
                                                    float (&sum)[1][2])
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        max[0][h] = q.reference[h] > NO_REFERENCE ? q.reference[h] : -INFINITY;
        sum[0][h] = q.sum[h];
        if (FOUR) sum[0][h] += __shfl_xor_sync(0xffffffffu, q.sum[h], 2);
    }
    if constexpr (FOUR) {
#pragma unroll
        for (int i = 0; i < DK / 16; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) o[i][0][e] += __shfl_xor_sync(0xffffffffu, o[i][0][e], 2);
    }
}

#endif
