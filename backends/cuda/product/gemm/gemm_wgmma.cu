// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// y = x w^T for many rows with wgmma (compute capability 9.0): operands of 16 bits, tf32 or e4m3, sums in
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
#include "backends/cuda/product/gemm/gemm_epilogue.cuh"
#include "backends/cuda/mma.cuh"

enum { PRODUCER = 128, THREADS = 384, BK = 64, STAGE_X = TN_GEMM_ROWS * BK * 2 };

// Forms of the epilogue. GENERAL applies any activation, with loops over shared memory.
enum { PLAIN, GLU_SILU, GENERAL, GENERAL_GLU };

template <int BN> struct gemm_ring {
    static constexpr int stage = STAGE_X + BN * BK * 2;
    static constexpr int n = BN == 128 ? 6 : 4;
    static constexpr int shared = 8 * 16 * 64 * 4; // bytes in which 8 warps stage 16 rows of 64 sums
};

#ifdef TN_HOPPER
template <int BN> struct gemm_shared {
    char *stages;
    float *shared;
    uint64_t *full, *empty;
};

// The producer: one thread of the block. The ring continues from tile to tile.
template <int BN, bool glu>
static __device__ void gemm_fetch(const tn_cuda_gemm_args &a, const gemm_shared<BN> &s)
{
    constexpr int N = gemm_ring<BN>::n, box = glu ? BN / 2 : TN_GEMM_TILE64, boxes = BN / box;
    int tiles_m = gemm_tiles_m(a), n_tiles = tiles_m * a.tiles_n, n_k = (a.k + BK - 1) / BK;
    uint32_t stage = 0, parity = 1;
    for (int t = blockIdx.x; t < n_tiles; t += gridDim.x) {
        gemm_tile tile = gemm_tile_at(a, tiles_m, t);
        int group = a.tile_group ? a.tile_group[tile.m] : 0;
        int row[boxes];
        const tn_cuda_tensor_map *map[boxes];
#pragma unroll
        for (int i = 0; i < boxes; i++) {
            int tile64 = tile.n * boxes + i, seg = glu ? i : gemm_seg_of(a, tile64);
            row[i] =
                (glu ? tile.n * box : (tile64 - a.seg[seg].first_tile64) * box) + (int)(group * a.group_rows);
            map[i] = &a.w_map[seg];
        }
        for (int k = 0; k < n_k; k++) {
            tn_mbar_wait(&s.empty[stage], parity);
            tn_mbar_expect(&s.full[stage], gemm_ring<BN>::stage);
            char *to = s.stages + stage * gemm_ring<BN>::stage;
            tn_tma_load(to, &a.x_map, k * BK, tile.m * TN_GEMM_ROWS, &s.full[stage]);
#pragma unroll
            for (int i = 0; i < boxes; i++)
                tn_tma_load(to + STAGE_X + i * box * BK * 2, map[i], k * BK, row[i], &s.full[stage]);
            if (++stage == N) stage = 0, parity ^= 1;
        }
    }
}

// Stages 16 rows of a warp and W columns, sums 8 * first and on, times the scales of the rows, in `shared`.
template <int BN, int W>
static __device__ __forceinline__ void gemm_stage_sums(const float (&d)[BN / 2], int first,
                                                       const float (&scale)[2], float *shared)
{
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int j = 0; j < W / 8; j++)
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(float2 *)(shared + gemm_staging_at<W>(lane / 4 + 8 * h, 8 * j + 2 * (lane % 4))) =
                make_float2(d[4 * (first + j) + 2 * h] * scale[h], d[4 * (first + j) + 2 * h + 1] * scale[h]);
}

static __device__ __forceinline__ float gemm_silu(float gate, float up)
{
    return gate / (1.0f + __expf(-gate)) * up;
}

template <int BN, int form>
static __device__ __forceinline__ void gemm_write(const tn_cuda_gemm_args &a, gemm_tile tile,
                                                  float (&d)[BN / 2], float *shared)
{
    // W is the number of columns staged at a time. 96 columns of a GLU tile are no multiple of 64, and gate
    // and up are staged together.
    constexpr bool glu = form == GLU_SILU || form == GENERAL_GLU;
    constexpr int columns = glu ? BN / 2 : BN, W = columns % 64 == 0 && form != GENERAL_GLU ? 64 : 32;
    int warp = (threadIdx.x - PRODUCER) / TN_WARP, lane = threadIdx.x % TN_WARP,
        r = tile.m * TN_GEMM_ROWS + warp * 16;
    float scale[2] = {gemm_row_scale(a, r + lane / 4), gemm_row_scale(a, r + lane / 4 + 8)};
    shared += warp * 16 * 64;
    if constexpr (form == GLU_SILU) {
#pragma unroll
        for (int i = 0; i < BN / 4; i++)
            d[i] = gemm_silu(d[i] * scale[i / 2 % 2], d[BN / 4 + i] * scale[i / 2 % 2]);
        scale[0] = scale[1] = 1.0f;
    }
#pragma unroll
    for (int u = 0; u < columns / W; u++) {
        int seg = 0, c = tile.n * columns + u * W;
        if constexpr (!glu) {
            seg = gemm_seg_of(a, c / TN_GEMM_TILE64);
            c -= a.seg[seg].first_tile64 * TN_GEMM_TILE64;
        }
        gemm_stage_sums<BN, W>(d, u * (W / 8), scale, shared);
        if constexpr (form == GENERAL_GLU)
            gemm_stage_sums<BN, W>(d, BN / 16 + u * (W / 8), scale, shared + 16 * W);
        if constexpr (form == GENERAL || form == GENERAL_GLU)
            gemm_write_any<W, glu>(a, a.seg[seg], shared, r, c, a.act);
        else gemm_write_rows<W, glu>(a, a.seg[seg], shared, r, c);
    }
}

// Multiplies the sums by the scales of the rows of w. The sums of a GLU tile are those of gate, then those of
// up.
template <int BN, bool glu>
static __device__ __forceinline__ void gemm_scale(const tn_cuda_gemm_args &a, gemm_tile tile, int group,
                                                  float (&d)[BN / 2])
{
    int lane = threadIdx.x % TN_WARP;
#pragma unroll
    for (int j = 0; j < BN / 8; j++) {
        int seg = 8 * j / (BN / 2), c = tile.n * (BN / 2) + 8 * j % (BN / 2);
        if constexpr (!glu) {
            int tile64 = tile.n * (BN / TN_GEMM_TILE64) + 8 * j / TN_GEMM_TILE64;
            seg = gemm_seg_of(a, tile64);
            c = (tile64 - a.seg[seg].first_tile64) * TN_GEMM_TILE64 + 8 * j % TN_GEMM_TILE64;
        }
        float2 s = gemm_column_scale(a, a.seg[seg], group, c + 2 * (lane % 4));
        d[4 * j] *= s.x, d[4 * j + 1] *= s.y, d[4 * j + 2] *= s.x, d[4 * j + 3] *= s.y;
    }
}

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

template <int BN, int pending>
static __device__ __forceinline__ void gemm_accumulate(float (&d)[BN / 2], float (&part)[BN / 2], bool begun)
{
    tn_wgmma_wait_for<pending>(part);
#pragma unroll
    for (int i = 0; i < BN / 2; i++) d[i] = begun ? d[i] + part[i] : part[i];
}

// The same for e4m3. The instruction keeps 13 bits behind the point of the largest of its products and of the
// sum that it adds them to (arXiv:2412.19437, section 3.3.2), so each run of 32 products has a sum of its
// own, which is added up in f32 while the next run is multiplied. A sum of k products is off by k / 32 runs
// of at most 32 steps, a step being 2^-13 of the largest product of its run: with independent signs 9 steps
// on average at k 256, where runs of 128 that accumulate in place lose four times as much each.
template <int BN>
static __device__ __forceinline__ void gemm_stage_e4m3(float (&d)[BN / 2], uint64_t x, uint64_t w, bool begun)
{
    float part[2][BN / 2];
#pragma unroll
    for (int i = 0; i < BK / 16; i++) {
        tn_wgmma_fence();
        tn_wgmma<TN_E4M3>(part[i % 2], x + 2 * i, w + 2 * i, 0);
        tn_wgmma_commit();
        if (i > 0) gemm_accumulate<BN, 1>(d, part[(i - 1) % 2], begun || i > 1);
    }
    gemm_accumulate<BN, 0>(d, part[(BK / 16 - 1) % 2], true);
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
            if constexpr (type == TN_E4M3) gemm_stage_e4m3<BN>(d, rows, columns, k > 0);
            else gemm_stage<type, BN>(d, rows, columns, k > 0);
            if (k > 0 && first) tn_mbar_arrive(&s.empty[previous]);
            previous = stage;
            if (++stage == N) stage = 0, parity ^= 1;
        }
        tn_wgmma_wait<0>();
        if (first) tn_mbar_arrive(&s.empty[previous]);
        if constexpr (type == TN_E4M3)
            gemm_scale<BN, form == GLU_SILU || form == GENERAL_GLU>(
                a, tile, a.tile_group ? a.tile_group[tile.m] : 0, d);
        gemm_write<BN, form>(a, tile, d, s.shared);
    }
}
#endif

template <int type, int BN, int form>
static __device__ __forceinline__ void gemm_block(const tn_cuda_gemm_args &a)
{
#ifdef TN_HOPPER
    constexpr int N = gemm_ring<BN>::n;
    constexpr bool glu = form == GLU_SILU || form == GENERAL_GLU;
    extern __shared__ char shared[];
    __shared__ uint64_t bars[2 * N];
    // swizzled tiles start at multiples of 1024
    char *stages = shared + (1024 - tn_shared(shared) % 1024) % 1024;
    gemm_shared<BN> s = {stages, (float *)(stages + N * gemm_ring<BN>::stage), bars, bars + N};
    if (threadIdx.x == 0) {
        for (int i = 0; i < N; i++) {
            tn_mbar_init(&s.full[i], 1);
            tn_mbar_init(&s.empty[i], 8); // the warps of two warpgroups
        }
        tn_mbar_init_fence();
        tn_tma_prefetch(&a.x_map);
        for (int i = 0; i < a.n_segs; i++) tn_tma_prefetch(&a.w_map[i]);
    }
    tn_pdl_trigger();
    __syncthreads();
    tn_pdl_wait();
    if (threadIdx.x < PRODUCER) {
        tn_registers_less<40>();
        if (threadIdx.x == 0) gemm_fetch<BN, glu>(a, s);
    } else {
        tn_registers_more<232>();
        gemm_multiply<type, BN, form>(a, s);
    }
#else
    __trap();
#endif
}

#define GEMM(name, type, BN, form)                                                                           \
    TN_ENTRY __launch_bounds__(THREADS, 1) tn_gemm_wgmma_##name(const __grid_constant__ tn_cuda_gemm_args a) \
    {                                                                                                        \
        gemm_block<type, BN, form>(a);                                                                       \
    }
#define GEMMS(name, type)                           \
    GEMM(name##_256, type, 256, PLAIN)              \
    GEMM(name##_192, type, 192, PLAIN)              \
    GEMM(name##_128, type, 128, PLAIN)              \
    GEMM(name##_256_glu, type, 256, GLU_SILU)       \
    GEMM(name##_192_glu, type, 192, GLU_SILU)       \
    GEMM(name##_128_glu, type, 128, GLU_SILU)       \
    GEMM(name##_128_any, type, 128, GENERAL)        \
    GEMM(name##_128_any_glu, type, 128, GENERAL_GLU)
#define NARROW(name, type)                          \
    GEMM(name##_128, type, 128, PLAIN)              \
    GEMM(name##_128_glu, type, 128, GLU_SILU)       \
    GEMM(name##_128_any, type, 128, GENERAL)        \
    GEMM(name##_128_any_glu, type, 128, GENERAL_GLU)
GEMMS(bf16, TN_BF16)
GEMMS(f16, TN_F16)
NARROW(tf32, TN_TF32)
NARROW(e4m3, TN_E4M3)
