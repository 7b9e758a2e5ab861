// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for many rows with wgmma (compute capability 9.0): operands in e4m3, sums in f32.
//
// Operands: x [m, k] and w [n, k] as gemm_prepare.cu makes them: each 128 values of a row of x have a scale,
// and each row of w has one. y [m, n] f32. Where the only reader of a gated pair multiplies in e4m3 too, y is
// the rows of x that it wants: a tile has 128 columns of them, so that each row of a tile gets its scale
// here.
//
// Tiles, ring and warpgroups are those of gemm_wgmma.cuh; a stage is 128 of k. The instruction keeps 13 bits
// behind the point of the largest of its products and of the sum that it adds them to (arXiv:2412.19437,
// section 3.3.2). So sums stay in place for the 128 of k of a stage and are then added up in f32, multiplied
// by the scale of x. With normal factors that adds an NMSE of 1.6e-8 whatever k is; sums in place over all of
// it would add 1.9e-6 at k 4096 and 8.6e-6 at 14336. Single elements are off by up to 5.5e-3 of the RMS where
// a gate multiplies two such sums, which tests/check/short_sums.c bounds.
//
// A warpgroup holds 64 rows by BN sums, and besides them those of 128 columns that are being made. It adds
// them up while the other warpgroup keeps the tensor cores busy: 256 clocks of products for 64 additions of a
// thread. With 64 and 32 of k in place, which halves the largest errors, additions take as many clocks as
// products and twice as many: 48.0k instead of 60.8k tokens per second (8B, 4096 tokens, H200, 2026-11-23).
//
// Operations: 2 m n k. Bytes from L2 for each tile and stage: 128 (128 + BN). The limit is the rate of wgmma:
// without writing results, 2048 rows reached 1210 to 1353 TFLOP/s (H200, 2026-11-23, products of an 8B
// layer), 899 to 1240 with results written from registers. This form reaches 757 to 907 at 4096 rows with the
// launch for x.
#include "backends/cuda/product/gemm/gemm_wgmma.cuh"
#include "backends/cuda/product/prepare.cuh"

// Columns that a warpgroup multiplies at a time, and that share a scale in a result in e4m3.
enum { PART = 128 };

#ifdef TN_HOPPER
// Multiplies the sums of gate, and then of up, by the scales of the rows of w.
template <int BN>
static __device__ __forceinline__ void gemm_scale(const tn_cuda_gemm_args &a, gemm_tile tile, int group,
                                                  float (&d)[BN / 2])
{
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        int seg = 8 * j / (BN / 2), c = tile.n * (BN / 2) + 8 * j % (BN / 2);
        float2 s = gemm_column_scale(a, a.seg[seg], group, c + 2 * (lane % 4));
        d[4 * j] *= s.x, d[4 * j + 1] *= s.y, d[4 * j + 2] *= s.x, d[4 * j + 3] *= s.y;
    }
}

// Scales gate and up, joins them and writes them as rows of x of the next product, 128 columns with one scale
// for each row. A warp passes its 16 rows of 128 bytes through shared memory; 16-byte chunks are permuted by
// the row, so that neither writing nor reading has bank conflicts.
static __device__ __forceinline__ void gemm_write_e4m3(const tn_cuda_gemm_args &a, gemm_tile tile,
                                                       float (&d)[128], char *shared)
{
    int warp = (threadIdx.x - PRODUCER) / TN_WARP, lane = threadIdx.x % TN_WARP,
        r = tile.m * TN_GEMM_ROWS + warp * 16;
    shared += warp * 16 * PART;
    const float *gate = a.seg[0].w_scale + tile.n * PART + 2 * (lane % 4),
                *up = a.seg[1].w_scale + tile.n * PART + 2 * (lane % 4);
    float largest[2] = {0.0f, 0.0f}, power[2];
#pragma unroll
    for (int j = 0; j < PART / 8; j++) {
        float2 g = *(const float2 *)(gate + 8 * j), u = *(const float2 *)(up + 8 * j);
#pragma unroll
        for (int i = 4 * j; i < 4 * j + 4; i++) {
            float v = d[i] * (i % 2 ? g.y : g.x);
            // Two units in the last place off, which e4m3 does not show.
            d[i] = __fdividef(v, 1.0f + __expf(-v)) * (d[64 + i] * (i % 2 ? u.y : u.x));
            largest[i / 2 % 2] = tn_max_finite(largest[i / 2 % 2], d[i]);
        }
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 1));
        largest[h] = fmaxf(largest[h], __shfl_xor_sync(0xffffffffu, largest[h], 2));
        power[h] = tn_power_of_two_for(largest[h], TN_E4M3_EXPONENT);
        int row = r + lane / 4 + 8 * h;
        if (lane % 4 == 0 && row < a.m) a.y_scale[tile.n * (int64_t)a.m + row] = 1.0f / power[h];
    }
#pragma unroll
    for (int j = 0; j < PART / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int row = lane / 4 + 8 * h, chunk = j / 2 ^ (row & 7);
            *(uint16_t *)(shared + row * PART + chunk * 16 + j % 2 * 8 + 2 * (lane % 4)) =
                (uint16_t)tn_round_e4m3(d[4 * j + 2 * h] * power[h], d[4 * j + 2 * h + 1] * power[h]);
        }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 4; i++) {
        int row = 4 * i + lane / 8, chunk = lane % 8;
        uint4 v = *(const uint4 *)(shared + row * PART + (chunk ^ (row & 7)) * 16);
        if (r + row < a.m)
            *(uint4 *)((char *)a.seg[0].y + (r + row) * a.seg[0].ld + tile.n * PART + chunk * 16) = v;
    }
    __syncwarp();
}

// Scales of the two rows of this lane for stage k.
static __device__ __forceinline__ float2 gemm_scales_at(const tn_cuda_gemm_args &a, const int (&row)[2],
                                                        int k)
{
    const float *at = a.row_scale + k * (int64_t)a.m;
    return make_float2(at[row[0]], at[row[1]]);
}

// Adds the product of a stage, times the scales of its rows, to the sums; the stage is free after an arrival
// of the first lane at `done`.
template <int BN>
static __device__ __forceinline__ void gemm_stage(float (&d)[BN / 2], uint64_t x, uint64_t w, float2 scale,
                                                  uint64_t *done)
{
    // `step`: from one part to the next, in a descriptor
    constexpr int parts = BN / PART, step = PART * BK * 2 / 16;
#pragma unroll
    for (int p = 0; p < parts; p++) {
        float part[PART / 2];
        tn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < BK / 16; i++)
            tn_wgmma<TN_E4M3>(part, x + 2 * i, w + p * step + 2 * i, i > 0);
        tn_wgmma_commit();
        tn_wgmma_wait_for<0>(part);
        if (p == parts - 1 && done) tn_mbar_arrive(done);
#pragma unroll
        for (int i = 0; i < PART / 2; i++)
            d[p * (PART / 2) + i] += part[i] * (i / 2 % 2 ? scale.y : scale.x);
    }
}

template <int type, int BN, int form, int G>
static __device__ void gemm_multiply(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN, G>::n;
    constexpr bool glu = form == GLU_SILU || form == GENERAL_GLU;
    int thread = threadIdx.x - PRODUCER, group = thread / 128, lane = thread % TN_WARP;
    int tiles_m = gemm_tiles_m(a), n_tiles = tiles_m * a.tiles_n, n_k = (a.k + BK - 1) / BK;
    uint32_t stage = 0, parity = 0;
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t);
        int r = tile.m * TN_GEMM_ROWS + thread / TN_WARP * 16 + lane / 4;
        int row[2] = {min(r, a.m - 1), min(r + 8, a.m - 1)}; // rows behind the last one are written nowhere
        float2 next = gemm_scales_at(a, row, 0);
        float d[BN / 2];
#pragma unroll
        for (int i = 0; i < BN / 2; i++) d[i] = 0.0f;
        for (int k = 0; k < n_k; k++) {
            char *x = s.stages + stage * gemm_ring<BN, G>::stage;
            float2 scale = next;
            next = gemm_scales_at(a, row, min(k + 1, n_k - 1));
            tn_mbar_wait(&s.full[stage], parity);
            uint64_t rows = tn_wgmma_tile(x + group * 64 * BK * 2),
                     columns = tn_wgmma_tile(x + gemm_ring<BN, G>::x);
            uint64_t *done = lane == 0 ? &s.empty[stage] : NULL;
            gemm_stage<BN>(d, rows, columns, scale, done);
            if (++stage == N) stage = 0, parity ^= 1;
        }
        if constexpr (form == GLU_SILU && BN == 2 * PART) {
            if (a.writes_packed16) {
                gemm_write_e4m3(a, tile, d, (char *)s.shared);
                continue;
            }
        }
        int of = a.tile_group ? a.tile_group[tile.m] : 0;
        if constexpr (glu) gemm_scale<BN>(a, tile, of, d);
        gemm_write<type, BN, form>(a, tile, of, d, s.shared);
    }
}
#endif

GEMM(e4m3_256, TN_E4M3, 256, PLAIN)
GEMM(e4m3_128, TN_E4M3, 128, PLAIN)
GEMM(e4m3_256_glu, TN_E4M3, 256, GLU_SILU)
GEMM(e4m3_128_any, TN_E4M3, 128, GENERAL)
GEMM(e4m3_128_any_glu, TN_E4M3, 128, GENERAL_GLU)
