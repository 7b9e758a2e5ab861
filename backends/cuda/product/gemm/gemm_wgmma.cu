// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for many rows with wgmma (compute capability 9.0): operands of 16 bits or tf32, sums in
// f32.
//
// Operands: x [m, k] and w [n, k], rows as gemm_prepare.cu makes them, y [m, n] f32 (bf16 for a gated pair
// whose only reader multiplies in bf16). Lengths along k are counted in packed16, elements of 16 bits,
// whatever they mean: an instruction takes 16 of them, 32 bytes. w is a row of up to three weights, counted
// in 64-column tiles (gemm_epilogue.cuh).
//
// A block computes tiles of 128 x BN. One thread fetches 128 x 64 of x and BN x 64 of w for each stage by
// tensor copies into a ring with the 128-byte swizzle; two warpgroups multiply 64 rows each. Blocks stay and
// take tile after tile, so that the ring fills while sums are written. With GLU the tile is BN/2 rows of gate
// and the same rows of up, joined in registers.
//
// Operations: 2 m n k. Bytes from L2 for each tile and stage: 128 (128 + BN). The limit is the rate of wgmma,
// for long prompts at the clock that the power limit allows. Measured with bf16 (H200, 2026-11-20, whole
// steps with the preparation of x): 4096 rows 603 to 700 TFLOP/s, 512 rows 516 to 630, where cuBLAS peaks at
// 690 to 704.
//
// Reasons of design, all on an H200, 2026-11-20:
// Clusters of 2 or 4 blocks with multicast of the shared operand were 1.4 to 2 times slower than single
// blocks at every size (tile 128 x 256, 4096 x 6144 x 4096, main loop alone: 421 us against 251). The cause
// was not found; boxes of 64 x 64 elements made it worse than boxes of 128 x 64.
// Tiles of 128 x 192 are used where they fill a single wave of blocks (512 rows, 6144 columns): 48 us against
// 60 with 256 columns and 62 with 128.
// Fetching weights before the predecessor has ended made no difference.
#include "backends/cuda/product/gemm/gemm_wgmma.cuh"

#ifdef TN_HOPPER
// Adds the product of a stage to the sums.
template <int type, int BN>
static __device__ __forceinline__ void gemm_stage(float (&d)[BN / 2], uint64_t x, uint64_t w, bool begun)
{
    tn_wgmma_fence();
#pragma unroll
    for (int i = 0; i < BK / 16; i++) tn_wgmma<type>(d, x + 2 * i, w + 2 * i, begun || i > 0);
    tn_wgmma_commit();
    tn_wgmma_wait<1>();
}

template <int type, int BN, int form>
static __device__ void gemm_multiply(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN>::n;
    int group = (threadIdx.x - PRODUCER) / 128;
    bool first = threadIdx.x % TN_WARP == 0;
    int tiles_m = gemm_tiles_m(a), n_tiles = tiles_m * a.tiles_n, n_k = (a.k + BK - 1) / BK;
    uint32_t stage = 0, parity = 0;
    float d[BN / 2];
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t);
        uint32_t previous = 0;
        for (int k = 0; k < n_k; k++) {
            char *x = s.stages + stage * gemm_ring<BN>::stage;
            tn_mbar_wait(&s.full[stage], parity);
            uint64_t rows = tn_wgmma_tile(x + group * 64 * BK * 2), columns = tn_wgmma_tile(x + STAGE_X);
            gemm_stage<type, BN>(d, rows, columns, k > 0);
            if (k > 0 && first) tn_mbar_arrive(&s.empty[previous]);
            previous = stage;
            if (++stage == N) stage = 0, parity ^= 1;
        }
        tn_wgmma_wait<0>();
        if (first) tn_mbar_arrive(&s.empty[previous]);
        gemm_write<type, BN, form>(a, tile, 0, d, s.shared);
    }
}
#endif

#define GEMMS(name, type)                                                                                    \
    GEMM(name##_256, type, 256, PLAIN)                                                                       \
    GEMM(name##_192, type, 192, PLAIN)                                                                       \
    GEMM(name##_128, type, 128, PLAIN)                                                                       \
    GEMM(name##_256_glu, type, 256, GLU_SILU)                                                                \
    GEMM(name##_192_glu, type, 192, GLU_SILU)                                                                \
    GEMM(name##_128_glu, type, 128, GLU_SILU)                                                                \
    GEMM(name##_128_any, type, 128, GENERAL)                                                                 \
    GEMM(name##_128_any_glu, type, 128, GENERAL_GLU)
#define NARROW(name, type)                                                                                   \
    GEMM(name##_128, type, 128, PLAIN)                                                                       \
    GEMM(name##_128_glu, type, 128, GLU_SILU)                                                                \
    GEMM(name##_128_any, type, 128, GENERAL)                                                                 \
    GEMM(name##_128_any_glu, type, 128, GENERAL_GLU)
GEMMS(bf16, TN_BF16)
GEMMS(f16, TN_F16)
NARROW(tf32, TN_TF32)
