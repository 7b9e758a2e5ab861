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
// A block computes tiles of 128 x BN, or of 192 x 128 where these are all rows. One thread fetches 64 of k of
// the rows of x, and one BN x 64 of w, for each stage by tensor copies into a ring with the 128-byte swizzle;
// two or three warpgroups multiply 64 rows each. Blocks stay and take tile after tile, so that the ring fills
// while sums are written. With GLU the tile is BN/2 rows of gate and the same rows of up, joined in
// registers.
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
#include "backends/cuda/product/gemm/gemm_wgmma.cuh"

// Blocks that have arrived with their sums of a tile; the last one sets it back to 0.
static __device__ uint32_t gemm_arrived[TN_GEMM_SPLIT_TILES];

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

// atom.inc: increments the counter, which wraps to 0 after `last`, and returns its value before.
static __device__ __forceinline__ uint32_t gemm_arrive(uint32_t *counter, uint32_t last)
{
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    return before;
}

// Leaves the sums of part t % splits of tile t / splits in memory. The block that arrives last adds up all
// parts in their order, so that results do not depend on which one that is, and returns true.
template <int type, int BN, int G>
static __device__ __forceinline__ bool gemm_add_parts(const tn_cuda_gemm_args &a, gemm_tile tile, int t,
                                                      float (&d)[BN / 2])
{
    constexpr int SUMMING = 128 * G, QUADS = BN / 8, BATCH = 4;
    __shared__ uint32_t before;
    int thread = threadIdx.x - PRODUCER, size = QUADS * SUMMING;
    int row = thread / TN_WARP * 16, tile_rows = gemm_tile_rows<type>(a); // row: of this warp
    bool exists = row < tile_rows && tile.m * tile_rows + row < a.m;
    float4 *first = (float4 *)a.partial + (int64_t)(t / a.splits) * a.splits * size + thread,
           *own = first + t % a.splits * size;
    if (exists)
#pragma unroll
        for (int j = 0; j < QUADS; j++)
            own[j * SUMMING] = make_float4(d[4 * j], d[4 * j + 1], d[4 * j + 2], d[4 * j + 3]);
    __threadfence();
    tn_named_barrier(1, SUMMING);
    if (thread == 0) before = gemm_arrive(&gemm_arrived[t / a.splits], (uint32_t)a.splits - 1);
    tn_named_barrier(1, SUMMING);
    if (before != (uint32_t)a.splits - 1) return false;
    __threadfence();
    if (!exists) return true;
#pragma unroll
    for (int j = 0; j < QUADS; j += BATCH) {
        float4 v[BATCH];
#pragma unroll
        for (int i = 0; i < BATCH; i++) v[i] = __ldcg(first + (j + i) * SUMMING);
#pragma unroll 3
        for (int p = 1; p < a.splits; p++)
#pragma unroll
            for (int i = 0; i < BATCH; i++) {
                float4 u = __ldcg(first + p * size + (j + i) * SUMMING);
                v[i].x += u.x, v[i].y += u.y, v[i].z += u.z, v[i].w += u.w;
            }
#pragma unroll
        for (int i = 0; i < BATCH; i++) {
            d[4 * (j + i)] = v[i].x, d[4 * (j + i) + 1] = v[i].y;
            d[4 * (j + i) + 2] = v[i].z, d[4 * (j + i) + 3] = v[i].w;
        }
    }
    return true;
}

template <int type, int BN, int form, int G>
static __device__ void gemm_multiply(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN, G>::n;
    int group = (threadIdx.x - PRODUCER) / 128;
    bool first = threadIdx.x % TN_WARP == 0;
    int tiles_m = gemm_tiles_m(a), n_parts = tiles_m * a.tiles_n * a.splits;
    uint32_t stage = 0, parity = 0;
    float d[BN / 2];
    for (int t = blockIdx.x; t < n_parts; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t / a.splits);
        gemm_stages own = gemm_stages_of(a, t % a.splits);
        uint32_t previous = 0;
        for (int k = own.begin; k < own.end; k++) {
            char *x = s.stages + stage * gemm_ring<BN, G>::stage;
            tn_mbar_wait(&s.full[stage], parity);
            uint64_t rows = tn_wgmma_tile(x + group * 64 * BK * 2),
                     columns = tn_wgmma_tile(x + gemm_ring<BN, G>::x);
            gemm_stage<type, BN>(d, rows, columns, k > own.begin);
            if (k > own.begin && first) tn_mbar_arrive(&s.empty[previous]);
            previous = stage;
            if (++stage == N) stage = 0, parity ^= 1;
        }
        tn_wgmma_wait<0>();
        if (first) tn_mbar_arrive(&s.empty[previous]);
        if constexpr (type == TN_BF16 || type == TN_F16)
            if (a.splits > 1 && !gemm_add_parts<type, BN, G>(a, tile, t, d)) continue;
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
    GEMM_OF(name##_192x128, type, 128, PLAIN, 3)                                                             \
    GEMM_OF(name##_192x128_glu, type, 128, GLU_SILU, 3)                                                      \
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
