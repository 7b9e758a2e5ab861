// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache: q and k go through an rms_norm per head, if there is one, and rope (Su et al. 2021, eq. 34); k
// and v are written into the paged cache.
//
// Heads of a token are numbered q first, then k, then v. Bytes moved: every row is read once and written
// once. Limit: at one token the launch (2.7 us on an NVIDIA H200), with many tokens memory.
//
// tn_rope_cache_token, for rows of 32 to 256 elements that are rotated as a whole and 16-bit caches: a block
// has one token. Eight elements of a row, the halves of four pairs, go to a lane, so that D / 8 lanes have a
// head; a warp asks for all its rows before it waits for the angles, which the block computes once.
//
// tn_rope_cache, for all else: one warp has one token and some of its heads, one after another, and computes
// the angles for them (rope_rows.cuh). NVIDIA H200, 2026-11-21: 4096 tokens of 32 + 8 + 8 heads of 128 at 2.5
// TB/s, 57 % of what a plain read reaches.
#include "backends/cuda/rope/rope_rows.cuh"

enum { WARPS = 4, ROWS = TN_CUDA_ROPE_ROWS };

// Processes one head of a token; `item` counts the heads of q, then those of k, then those of v.
static __device__ __forceinline__ void process_head(const tn_cuda_rope_cache_args &a, int64_t token, int item,
                                                    float *row, const float2 *turn, int lane)
{
    int n_q = (int)a.q.ne[2], n_kv = (int)a.k.ne[2], other = item - n_q;
    if (item < n_q)
        tn_rotate(a, a.q, a.q.data + token * a.q.nb[1] + item * a.q.nb[2], a.norm[0], turn,
                  (float *)(a.out.data + token * a.out.nb[1] + item * a.out.nb[2]), lane);
    else
        tn_rope_cache_row(a, token, other / n_kv, other % n_kv, row, turn, lane);
}

TN_ENTRY __launch_bounds__(WARPS *TN_WARP) tn_rope_cache(const __grid_constant__ tn_cuda_rope_cache_args a)
{
    __shared__ __align__(16) float rows[WARPS][TN_CUDA_ROPE_CACHE_HEAD];
    __shared__ float2 turns[WARPS][TN_CUDA_MAX_PAIRS];
    tn_pdl_trigger();
    tn_pdl_wait();
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP, n_rotated = (int)(a.q.ne[2] + a.k.ne[2]);
    int first = (blockIdx.x * WARPS + warp) * a.heads,
        last = min(first + a.heads, n_rotated + (int)a.k.ne[2]);
    int64_t token = blockIdx.y;
    if (first < n_rotated)
        tn_find_angles(a, *(const int32_t *)(a.pos + token * a.pos_nb), turns[warp], lane, TN_WARP);
    __syncwarp();
    for (int item = first; item < last; item++) {
        process_head(a, token, item, rows[warp], turns[warp], lane);
        __syncwarp();
    }
}

// --- whole tokens --------------------------------------------------------------------------------------

// Eight elements of a row: four from `first` on, and four from `second` on.
struct rope_eight {
    float4 a, b;
};

static __device__ __forceinline__ float rope_squares(float4 v)
{
    return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
}

static __device__ __forceinline__ float4 rope_times(float4 v, float scale, float4 w)
{
    return make_float4(v.x * (scale * w.x), v.y * (scale * w.y), v.z * (scale * w.z), v.w * (scale * w.w));
}

static __device__ __forceinline__ void rope_turn(float &x, float &y, float2 turn)
{
    float u = x, v = y;
    x = u * turn.x - v * turn.y;
    y = u * turn.y + v * turn.x;
}

// Four values in the type of a cache.
static __device__ __forceinline__ uint2 rope_pack(int type, float4 v)
{
    if (type == TN_TYPE_F16) {
        __half2 a = __floats2half2_rn(v.x, v.y), b = __floats2half2_rn(v.z, v.w);
        return make_uint2(*(const uint32_t *)&a, *(const uint32_t *)&b);
    }
    __nv_bfloat162 a = __floats2bfloat162_rn(v.x, v.y), b = __floats2bfloat162_rn(v.z, v.w);
    return make_uint2(*(const uint32_t *)&a, *(const uint32_t *)&b);
}

// Where row `item` of a token begins.
static __device__ __forceinline__ const char *rope_row(const tn_cuda_rope_cache_args &a, int64_t token,
                                                       int item)
{
    int n_q = (int)a.q.ne[2], n_kv = (int)a.k.ne[2];
    const tn_cuda_view &x = item < n_q ? a.q : item < n_q + n_kv ? a.k : a.v;
    int head = item < n_q ? item : item < n_q + n_kv ? item - n_q : item - n_q - n_kv;
    return x.data + token * x.nb[1] + head * x.nb[2];
}

// Norm of a row of q or k, whose elements are in `lanes` lanes.
static __device__ __forceinline__ void rope_norm(rope_eight &v, const float *w, float eps, int lanes,
                                                 int first, int second)
{
    float sum = rope_squares(v.a) + rope_squares(v.b);
    for (int i = lanes / 2; i > 0; i /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, i);
    float scale = w ? 1.0f / sqrtf(sum / (float)(8 * lanes) + eps) : 1.0f;
    if (!w) return;
    v.a = rope_times(v.a, scale, *(const float4 *)(w + first));
    v.b = rope_times(v.b, scale, *(const float4 *)(w + second));
}

static __device__ __forceinline__ void rope_rotate(rope_eight &v, const float2 (&turn)[4], bool neox)
{
    if (neox) {
        rope_turn(v.a.x, v.b.x, turn[0]);
        rope_turn(v.a.y, v.b.y, turn[1]);
        rope_turn(v.a.z, v.b.z, turn[2]);
        rope_turn(v.a.w, v.b.w, turn[3]);
    } else {
        rope_turn(v.a.x, v.a.y, turn[0]);
        rope_turn(v.a.z, v.a.w, turn[1]);
        rope_turn(v.b.x, v.b.y, turn[2]);
        rope_turn(v.b.z, v.b.w, turn[3]);
    }
}

// Writes eight elements of row `item`: of q to the result, of k and v to the place of the token in the cache.
static __device__ __forceinline__ void rope_write(const tn_cuda_rope_cache_args &a, int64_t token, int slot,
                                                  int item, const rope_eight &v, int first, int second)
{
    int n_q = (int)a.q.ne[2], n_kv = (int)a.k.ne[2];
    char *out = a.out.data + token * a.out.nb[1] + item * a.out.nb[2];
    int type = a.out_type;
    if (item >= n_q) {
        if (slot < 0 || slot >= a.n_slots) return;
        int which = item >= n_q + n_kv, head = item - n_q - which * n_kv;
        const int64_t *nb = a.cache_nb[which];
        out = a.cache[which] + slot / a.block * nb[0] + head * nb[1] + slot % a.block * nb[2];
        type = a.cache_type[which];
    }
    if (type == TN_TYPE_F32) {
        *(float4 *)(out + 4 * first) = v.a;
        *(float4 *)(out + 4 * second) = v.b;
    } else {
        *(uint2 *)(out + 2 * first) = rope_pack(type, v.a);
        *(uint2 *)(out + 2 * second) = rope_pack(type, v.b);
    }
}

TN_ENTRY __launch_bounds__(TN_CUDA_ROPE_TOKEN_THREADS)
    tn_rope_cache_token(const __grid_constant__ tn_cuda_rope_cache_args a)
{
    __shared__ float2 turns[TN_CUDA_MAX_PAIRS];
    tn_pdl_trigger();
    tn_pdl_wait();
    int d = (int)a.q.ne[3], lanes = d / 8, at = threadIdx.x % lanes, step = blockDim.x / lanes,
        first = a.neox ? 4 * at : 8 * at, second = a.neox ? d / 2 + 4 * at : 8 * at + 4,
        n_rotated = (int)(a.q.ne[2] + a.k.ne[2]), n = n_rotated + (int)a.k.ne[2];
    int64_t token = blockIdx.x;
    int slot = *(const int32_t *)(a.slots + token * a.slots_nb);
    // All lanes of a warp take part in every turn of the loop, because the norm adds over them.
    for (int base = 0; base < n; base += ROWS * step) {
        rope_eight v[ROWS];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int item = base + i * step + threadIdx.x / lanes;
            const float *row = (const float *)rope_row(a, token, min(item, n - 1));
            v[i] = {*(const float4 *)(row + first), *(const float4 *)(row + second)};
        }
        if (base == 0) {
            tn_find_angles(a, *(const int32_t *)(a.pos + token * a.pos_nb), turns, threadIdx.x, blockDim.x);
            __syncthreads();
        }
        float2 turn[4];
#pragma unroll
        for (int i = 0; i < 4; i++) turn[i] = turns[4 * at + i];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int item = base + i * step + threadIdx.x / lanes;
            const float *w = item < (int)a.q.ne[2] ? a.norm[0] : item < n_rotated ? a.norm[1] : NULL;
            if (a.norm[0] || a.norm[1]) rope_norm(v[i], w, a.eps, lanes, first, second);
            if (item < n_rotated) rope_rotate(v[i], turn, a.neox);
            if (item < n) rope_write(a, token, slot, item, v[i], first, second);
        }
    }
}
