// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// short_conv: y[t, c] = sum_u w[c, u] x[t - C + 1 + u, c] over C taps, a causal convolution of each channel.
// A thread has one channel and up to 32 tokens of a sequence, with the last inputs in registers. The block
// with a sequence's first tokens is the only one that reads its state, and it writes the new one, because a
// slot may be read and written by the same step. Bytes moved: 8 T n and 8 (kernel - 1) n per sequence. Limit:
// memory, or the launch.
//
// delta_rule (Yang et al. 2024, eq. 10): for each token of a sequence, with the matrix M [dim, columns] of a
// head,
//   r = M^T k and s = M^T q of the old M together;  d = beta (v - decay r);  o = decay s + d (k . q);  M =
//   decay M + k d^T
// so that each token needs one reduction. A block has 32 columns of the matrix of one head and sequence, for
// all its tokens; columns do not depend on each other. A column lies in the registers of 8 lanes, which
// reduce over its rows. Queries and keys come in batches; a block normalises them once and keeps them in
// shared memory. Grid (columns / 32, heads, sequences). Bytes moved: M read and written once per call, and 4
// (2 dim + 2) per token and block. Operations: 7 dim per token and column. Limit: memory for one token, the
// dependency from token to token for many.
#include "backends/cuda/recurrent/recurrent_args.h"
#include "backends/cuda/common.cuh"

// The tokens [first, last) of a sequence and the slots of the state that it reads and writes, -1 for a slot
// that does not exist.
struct run_info {
    int first, last, read, write;
};

static __device__ __forceinline__ run_info find_run(const tn_cuda_runs &a, int seq)
{
    run_info r = {a.q_start[seq], a.q_start[seq + 1], a.slots[2 * seq], a.slots[2 * seq + 1]};
    if (r.read < 0 || r.read >= a.n_slots) r.read = -1;
    if (r.write < 0 || r.write >= a.n_slots) r.write = -1;
    return r;
}

// --- short_conv ----------------------------------------------------------------------------------------

// Returns the sequence that has tile number `tile`, counted over all sequences, and makes `tile` the number
// of the tile in that sequence. Returns n_seq if there is no such tile.
static __device__ __forceinline__ int find_tile(const tn_cuda_runs &a, int &tile)
{
    for (int s = 0; s < a.n_seq; s++) {
        int n = max(1, (a.q_start[s + 1] - a.q_start[s] + TN_CUDA_CONV_TOKENS - 1) / TN_CUDA_CONV_TOKENS);
        if (tile < n) return s;
        tile -= n;
    }
    return a.n_seq;
}

// The input of channel c at `row`, counted from the first token of the run; rows before it are in the state.
static __device__ __forceinline__ float conv_input(const tn_cuda_conv_args &a, const run_info &r, int row,
                                                   int c)
{
    if (row >= 0) return ((const float *)(a.x + (int64_t)(r.first + row) * a.x_row))[c];
    if (r.read < 0) return 0.0f;
    return a.state[((int64_t)r.read * (a.kernel - 1) + a.kernel - 1 + row) * a.n + c];
}

TN_ENTRY __launch_bounds__(TN_CUDA_CONV_THREADS) tn_short_conv(const __grid_constant__ tn_cuda_conv_args a)
{
    enum { TAPS = TN_CUDA_CONV_KERNEL };
    int c = blockIdx.x * TN_CUDA_CONV_THREADS + threadIdx.x, tile = blockIdx.y;
    float weight[TAPS], past[TAPS]; // the newest input is the last; taps that the kernel does not have are 0
    if (c >= a.n) return;
    tn_pdl_trigger();
    tn_pdl_wait();
#pragma unroll
    for (int u = 0; u < TAPS; u++) {
        int tap = u - (TAPS - a.kernel);
        weight[u] = tap >= 0 ? ((const float *)(a.w + (int64_t)c * a.w_row))[tap] : 0.0f;
    }
    int seq = find_tile(a.runs, tile);
    if (seq == a.runs.n_seq) return;
    run_info r = find_run(a.runs, seq);
    int n = r.last - r.first, row = tile * TN_CUDA_CONV_TOKENS, end = min(n, row + TN_CUDA_CONV_TOKENS);
    past[0] = 0.0f;
#pragma unroll
    for (int u = 1; u < TAPS; u++)
        past[u] = u > TAPS - a.kernel && r.write >= 0 ? conv_input(a, r, row - TAPS + u, c) : 0.0f;
#pragma unroll 4
    for (int t = row; t < end; t++) {
        float sum = 0.0f;
#pragma unroll
        for (int u = 0; u + 1 < TAPS; u++) past[u] = past[u + 1];
        past[TAPS - 1] = ((const float *)(a.x + (int64_t)(r.first + t) * a.x_row))[c];
#pragma unroll
        for (int u = 0; u < TAPS; u++)
            if (u >= TAPS - a.kernel) sum += weight[u] * past[u];
        ((float *)(a.y + (int64_t)(r.first + t) * a.y_row))[c] = r.write >= 0 ? sum : 0.0f;
    }
    // Rows are written in rising order, so that each row of a slot that is both read and written is read
    // first.
    float *next = a.state + (int64_t)r.write * (a.kernel - 1) * a.n + c;
    for (int u = 0; u + 1 < a.kernel && tile == 0 && r.write >= 0; u++)
        next[(int64_t)u * a.n] = conv_input(a, r, n - a.kernel + 1 + u, c);
}

// --- delta_rule ----------------------------------------------------------------------------------------

enum {
    WARPS = TN_CUDA_DELTA_THREADS / TN_WARP,
    LANES = 8, // that share a column
    WARP_COLUMNS = TN_WARP / LANES,
};
static_assert(WARPS * WARP_COLUMNS == TN_CUDA_DELTA_COLUMNS, "columns of a block");

// What a block needs of a batch of tokens. `kq` is k . q.
template <int DIM> struct delta_storage {
    static constexpr int BATCH = 4096 / DIM; // tokens, whose q and k take 32 KiB
    alignas(16) float q[BATCH][DIM], k[BATCH][DIM];
    float v[BATCH][TN_CUDA_DELTA_COLUMNS];
    float decay[BATCH], beta[BATCH], kq[BATCH];
};

static __device__ __forceinline__ const float *head_row(const tn_cuda_view &v, int64_t token, int head)
{
    return (const float *)(v.data + token * v.nb[1] + (int64_t)head * v.nb[2]);
}

// The factor that gives a vector with this sum of squares the length 1, or 1 if vectors are not normalised.
static __device__ __forceinline__ float length_scale(const tn_delta_rule_params &p, float squares)
{
    return p.normalise ? 1.0f / fmaxf(sqrtf(squares), p.eps) : 1.0f;
}

// Brings the tokens [first, first + n) into shared memory; a warp prepares one token at a time.
template <int DIM>
static __device__ __forceinline__ void stage_tokens(const tn_cuda_delta_args &a, delta_storage<DIM> &m,
                                                    int first, int n, int head, int key_head)
{
    int lane = threadIdx.x % TN_WARP, column = blockIdx.x * TN_CUDA_DELTA_COLUMNS + lane;
#pragma unroll 2
    for (int t = threadIdx.x / TN_WARP; t < n; t += WARPS) {
        int64_t token = first + t;
        const float *from_q = head_row(a.q, token, key_head), *from_k = head_row(a.k, token, key_head);
        float q[DIM / TN_WARP], k[DIM / TN_WARP], qq = 0.0f, kk = 0.0f, kq = 0.0f;
#pragma unroll
        for (int i = 0; i < DIM / TN_WARP; i++) {
            int at = i * TN_WARP + lane;
            q[i] = at < a.dim ? from_q[at] : 0.0f;
            k[i] = at < a.dim ? from_k[at] : 0.0f;
            qq += q[i] * q[i], kk += k[i] * k[i], kq += k[i] * q[i];
        }
        float q_scale = length_scale(a.p, tn_warp_sum(qq)) * a.p.scale,
              k_scale = length_scale(a.p, tn_warp_sum(kk));
        kq = tn_warp_sum(kq);
#pragma unroll
        for (int i = 0; i < DIM / TN_WARP; i++)
            m.q[t][i * TN_WARP + lane] = q[i] * q_scale, m.k[t][i * TN_WARP + lane] = k[i] * k_scale;
        m.v[t][lane] = column < a.columns ? head_row(a.v, token, head)[column] : 0.0f;
        if (lane > 0) continue;
        m.decay[t] = expf(((const float *)(a.g + token * a.g_row))[head]);
        m.beta[t] = ((const float *)(a.beta + token * a.beta_row))[head];
        m.kq[t] = kq * q_scale * k_scale;
    }
}

// One token for a lane's part of a column, where register 4 i + e is row (i * LANES + group) * 4 + e of the
// matrix. Returns the output of the column.
template <int DIM>
static __device__ __forceinline__ float delta_token(const delta_storage<DIM> &shared, int t, int column,
                                                    int group, float (&m)[DIM / LANES])
{
    const float4 *k = reinterpret_cast<const float4 *>(shared.k[t]),
                 *q = reinterpret_cast<const float4 *>(shared.q[t]);
    float decay = shared.decay[t], recalled[4] = {0.0f, 0.0f, 0.0f, 0.0f}, o[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int i = 0; i < DIM / LANES / 4; i++) {
        float4 x = k[i * LANES + group], y = q[i * LANES + group];
        recalled[0] += x.x * m[4 * i], recalled[1] += x.y * m[4 * i + 1], recalled[2] += x.z * m[4 * i + 2],
            recalled[3] += x.w * m[4 * i + 3];
        o[0] += y.x * m[4 * i], o[1] += y.y * m[4 * i + 1], o[2] += y.z * m[4 * i + 2],
            o[3] += y.w * m[4 * i + 3];
    }
    float r = (recalled[0] + recalled[1]) + (recalled[2] + recalled[3]), s = (o[0] + o[1]) + (o[2] + o[3]);
#pragma unroll
    for (int i = WARP_COLUMNS; i < TN_WARP; i *= 2) {
        r += __shfl_xor_sync(0xffffffffu, r, i);
        s += __shfl_xor_sync(0xffffffffu, s, i);
    }
    float d = shared.beta[t] * (shared.v[t][column] - decay * r);
#pragma unroll
    for (int i = 0; i < DIM / LANES / 4; i++) {
        float4 x = k[i * LANES + group];
        m[4 * i] = decay * m[4 * i] + x.x * d, m[4 * i + 1] = decay * m[4 * i + 1] + x.y * d;
        m[4 * i + 2] = decay * m[4 * i + 2] + x.z * d, m[4 * i + 3] = decay * m[4 * i + 3] + x.w * d;
    }
    return decay * s + d * shared.kq[t];
}

template <int DIM> static __device__ __forceinline__ void delta_rule(const tn_cuda_delta_args &a)
{
    typedef delta_storage<DIM> tokens;
    __shared__ tokens shared;
    int head = blockIdx.y, key_head = a.p.grouped ? head / (a.n_heads / a.n_key_heads) : head % a.n_key_heads;
    int lane = threadIdx.x % TN_WARP, group = lane / WARP_COLUMNS;
    int in_block = (int)threadIdx.x / TN_WARP * WARP_COLUMNS + lane % WARP_COLUMNS,
        column = blockIdx.x * TN_CUDA_DELTA_COLUMNS + in_block;
    float m[DIM / LANES];
    tn_pdl_trigger();
    tn_pdl_wait();
    run_info r = find_run(a.runs, blockIdx.z);
    if (r.write < 0) {
        for (int t = r.first; t < r.last; t++)
            if (group == 0 && column < a.columns) const_cast<float *>(head_row(a.y, t, head))[column] = 0.0f;
        return;
    }
    int64_t size = (int64_t)a.dim * a.columns, at = (int64_t)head * size + column;
#pragma unroll
    for (int i = 0; i < DIM / LANES; i++) {
        int row = (i / 4 * LANES + group) * 4 + i % 4;
        bool exists = r.read >= 0 && row < a.dim && column < a.columns;
        m[i] = exists ? a.state[(int64_t)r.read * a.n_heads * size + at + (int64_t)row * a.columns] : 0.0f;
    }
    for (int first = r.first; first < r.last; first += shared.BATCH) {
        int n = min((int)shared.BATCH, r.last - first);
        if (first > r.first) __syncthreads();
        stage_tokens<DIM>(a, shared, first, n, head, key_head);
        __syncthreads();
        for (int t = 0; t < n; t++) {
            float o = delta_token<DIM>(shared, t, in_block, group, m);
            if (group == 0 && column < a.columns)
                const_cast<float *>(head_row(a.y, first + t, head))[column] = o;
        }
    }
#pragma unroll
    for (int i = 0; i < DIM / LANES; i++) {
        int row = (i / 4 * LANES + group) * 4 + i % 4;
        if (row < a.dim && column < a.columns)
            a.state[(int64_t)r.write * a.n_heads * size + at + (int64_t)row * a.columns] = m[i];
    }
}

// recurrent.c selects one of these by the number of rows of the matrix.
TN_ENTRY __launch_bounds__(TN_CUDA_DELTA_THREADS, 2)
    tn_delta_rule_128(const __grid_constant__ tn_cuda_delta_args a)
{
    delta_rule<128>(a);
}

TN_ENTRY __launch_bounds__(TN_CUDA_DELTA_THREADS, 2)
    tn_delta_rule_256(const __grid_constant__ tn_cuda_delta_args a)
{
    delta_rule<256>(a);
}
