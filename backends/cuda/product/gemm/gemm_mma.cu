// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T with mma.sync: operands of 16 bits, tf32 or e4m3, sums in f32. This is the GEMM of all compute
// capabilities but 9.0 (7.5 has f16 only, 8.0 no e4m3).
//
// Operands: x [m, k] and w [n, k], rows as gemm_prepare.cu makes them, y [m, n] f32. Lengths along k are
// counted in packed16, elements of 16 bits, whatever they mean: an instruction takes 16 of them, 32 bytes.
//
// A block of 8 warps computes a tile of 128 x 128, a warp 64 x 32 of it. A stage holds 32 of k; three stages
// of 16 KiB are filled by cp.async, two ahead of the one that is multiplied. Rows of a stage have 64 bytes;
// the 16-byte chunk c of row r lies at c ^ (r / 2) % 4, so that neither the copies nor ldmatrix have bank
// conflicts. With GLU the 32 columns of a warp are 16 of gate and the same 16 of up.
//
// Operations: 2 m n k. Bytes: for each tile 2 k (128 + 128), mostly from L2. The limit is the rate of
// mma.sync; the share that is reached was not measured, because the device at hand (compute capability 9.0)
// runs gemm_wgmma.cu.
#include "backends/cuda/product/gemm/gemm_epilogue.cuh"
#include "backends/cuda/mma.cuh"

enum { THREADS = 256, BM = TN_GEMM_ROWS, BN = 128, BK = 32, STAGES = 3, STAGE = (BM + BN) * BK * 2 };

// What one thread copies: two 16-byte chunks of x and two of w for each stage.
struct gemm_copy {
    const char *x[2], *w[2];
    bool x_full[2], w_full[2];
};

static __device__ __forceinline__ int gemm_chunk_offset(int row, int chunk)
{
    return row * (BK * 2) + ((chunk ^ (row >> 1 & 3)) << 4);
}

template <bool glu>
static __device__ __forceinline__ void gemm_copy_setup(const tn_cuda_gemm_args &a, gemm_tile tile,
                                                       int64_t group, gemm_copy &c)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int id = threadIdx.x + i * THREADS, row = id / 4, k = id % 4 * 8;
        int r = tile.m * BM + row;
        c.x_full[i] = gemm_row_to(a, r) >= 0; // other rows were never written
        c.x[i] = (const char *)a.x + 2 * ((int64_t)(c.x_full[i] ? r : 0) * a.ld + k);
        int seg, n;
        if (glu) {
            seg = row / 16 % 2;
            n = tile.n * (BN / 2) + row / 32 * 16 + row % 16;
        } else {
            int tile64 = tile.n * (BN / TN_GEMM_TILE64) + row / TN_GEMM_TILE64;
            seg = gemm_seg_of(a, tile64);
            n = (tile64 - a.seg[seg].first_tile64) * TN_GEMM_TILE64 + row % TN_GEMM_TILE64;
        }
        c.w_full[i] = n < a.seg[seg].n;
        c.w[i] = (const char *)a.seg[seg].w + 2 * ((c.w_full[i] ? n + group * a.group_rows : 0) * a.ld + k);
    }
}

static __device__ __forceinline__ void gemm_copy_stage(const tn_cuda_gemm_args &a, const gemm_copy &c,
                                                       char *stage, int k)
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        int id = threadIdx.x + i * THREADS, at = gemm_chunk_offset(id / 4, id % 4);
        bool inside = k + id % 4 * 8 < a.k;
        int64_t off = inside ? 2 * (int64_t)k : -2 * (int64_t)(id % 4 * 8);
        tn_copy16(stage + at, c.x[i] + off, c.x_full[i] && inside);
        tn_copy16(stage + BM * BK * 2 + at, c.w[i] + off, c.w_full[i] && inside);
    }
}

// Scales of the rows of this lane, for the run of e4m3 values that stage k lies in: rows behind the last one
// are written nowhere.
static __device__ __forceinline__ void gemm_load_scales(const tn_cuda_gemm_args &a, gemm_tile tile, int k,
                                                        float (&scale)[4][2])
{
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
    const float *at = a.row_scale + 2 * k * BK / TN_GEMM_RUN * (int64_t)a.m;
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            scale[i][h] = at[min(tile.m * BM + warp / 4 * 64 + i * 16 + lane / 4 + 8 * h, a.m - 1)];
}

template <int type>
static __device__ __forceinline__ void gemm_mma(float (&d)[4], const uint32_t (&x)[4], uint32_t w0,
                                                uint32_t w1, const float (&scale)[2])
{
    if constexpr (type == TN_F16) tn_mma_f16(d, x, w0, w1);
    else if constexpr (type == TN_BF16) tn_mma_bf16(d, x, w0, w1);
    else if constexpr (type == TN_TF32) tn_mma_tf32(d, x, w0, w1);
    else { // the sums inside the instruction keep few bits, so they are added up here
        float part[4] = {};
        tn_mma_e4m3(part, x, w0, w1);
#pragma unroll
        for (int i = 0; i < 4; i++) d[i] += part[i] * scale[i / 2];
    }
}

template <int type>
static __device__ __forceinline__ void gemm_stage(const char *x, const char *w, const float (&scale)[4][2],
                                                  float (&d)[4][4][4])
{
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP;
#pragma unroll
    for (int k = 0; k < BK / 16; k++) {
        uint32_t fx[4][4], fw[2][4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            tn_ldmatrix4(fx[i], x + gemm_chunk_offset(warp / 4 * 64 + i * 16 + lane % 16, 2 * k + lane / 16));
#pragma unroll
        for (int j = 0; j < 2; j++)
            tn_ldmatrix4(fw[j], w + gemm_chunk_offset(warp % 4 * 32 + j * 16 + lane % 8 + lane / 16 * 8,
                                                      2 * k + lane / 8 % 2));
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                gemm_mma<type>(d[i][j], fx[i], fw[j / 2][j % 2 * 2], fw[j / 2][j % 2 * 2 + 1], scale[i]);
    }
}

template <int type, bool glu>
static __device__ __forceinline__ void gemm_write(const tn_cuda_gemm_args &a, gemm_tile tile, int group,
                                                  const float (&d)[4][4][4], float *shared)
{
    constexpr int W = glu ? 16 : 32; // columns of a warp
    int lane = threadIdx.x % TN_WARP, warp = threadIdx.x / TN_WARP, part = warp % 4;
    int tile64 = tile.n * (BN / TN_GEMM_TILE64) + part / 2, seg = glu ? 0 : gemm_seg_of(a, tile64);
    int column = glu ? tile.n * (BN / 2) + part * 16
                     : (tile64 - a.seg[seg].first_tile64) * TN_GEMM_TILE64 + part % 2 * 32;
    shared += warp * 16 * 32;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int r = tile.m * BM + warp / 4 * 64 + i * 16;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float scale = type == TN_E4M3 ? 1.0f : gemm_row_scale(a, r + lane / 4 + 8 * h);
#pragma unroll
            for (int j = 0; j < 4; j++) { // with GLU, gate and then up
                float2 v = make_float2(d[i][j][2 * h] * scale, d[i][j][2 * h + 1] * scale);
                if constexpr (type == TN_E4M3) {
                    float2 s = gemm_column_scale(a, a.seg[glu ? 8 * j / W : seg], group,
                                                 column + 8 * j % W + 2 * (lane % 4));
                    v = make_float2(v.x * s.x, v.y * s.y);
                }
                *(float2 *)(shared + 8 * j / W * 16 * W +
                            gemm_staging_at<W>(lane / 4 + 8 * h, 8 * j % W + 2 * (lane % 4))) = v;
            }
        }
        if (glu || a.act != TN_UNARY_NONE)
            gemm_write_any<W, glu>(a, a.seg[seg], NULL, shared, r, column, a.act);
        else
            gemm_write_rows<W, false>(a, a.seg[seg], NULL, shared, r, column);
    }
}

template <int type, bool glu> static __device__ __forceinline__ void gemm_block(const tn_cuda_gemm_args &a)
{
    __shared__ __align__(128) char shared[STAGES * STAGE];
    tn_pdl_trigger();
    tn_pdl_wait();
    int tiles_m = gemm_tiles_m(a);
    if ((int)blockIdx.x >= tiles_m * a.tiles_n) return;
    gemm_tile tile = gemm_tile_at(a, tiles_m, blockIdx.x);
    int group = a.tile_group ? a.tile_group[tile.m] : 0, n_k = (a.k + BK - 1) / BK;
    gemm_copy c;
    gemm_copy_setup<glu>(a, tile, group, c);
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < n_k) gemm_copy_stage(a, c, shared + s * STAGE, s * BK);
        tn_copy_commit();
    }
    float d[4][4][4] = {}, scale[4][2] = {};
    for (int k = 0; k < n_k; k++) {
        if (type == TN_E4M3 && k % (TN_GEMM_RUN / 2 / BK) == 0) gemm_load_scales(a, tile, k, scale);
        tn_copy_wait<STAGES - 2>();
        __syncthreads();
        int next = k + STAGES - 1;
        if (next < n_k) gemm_copy_stage(a, c, shared + next % STAGES * STAGE, next * BK);
        tn_copy_commit();
        const char *stage = shared + k % STAGES * STAGE;
        gemm_stage<type>(stage, stage + BM * BK * 2, scale, d);
    }
    tn_copy_wait<0>();
    __syncthreads();
    gemm_write<type, glu>(a, tile, group, d, (float *)shared);
}

#define GEMM(name, type, glu)                                                                                \
    TN_ENTRY __launch_bounds__(THREADS, 2) tn_gemm_mma_##name(const __grid_constant__ tn_cuda_gemm_args a)   \
    {                                                                                                        \
        gemm_block<type, glu>(a);                                                                            \
    }
GEMM(bf16, TN_BF16, false)
GEMM(bf16_glu, TN_BF16, true)
GEMM(f16, TN_F16, false)
GEMM(f16_glu, TN_F16, true)
GEMM(tf32, TN_TF32, false)
GEMM(tf32_glu, TN_TF32, true)
GEMM(e4m3, TN_E4M3, false)
GEMM(e4m3_glu, TN_E4M3, true)
