// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// c [m, n] = (c * alpha or 0) + a [m, k] b [k, n], small f32 matrices in L1 and L2. Every element is one
// chain of fused multiply-adds over k in order, so its bits do not depend on m, n or where the tiles lie.
// m is a multiple of 4, n of VEC_N; a has any strides, rows of b and c are contiguous.
// The loop over k ends by comparing pointers whose step is no constant: compilers then do not try to
// vectorise across k, which undoes the vectors of vec_generic.h (measured: 5 times slower with gcc -O3).
// Micro-kernel: VEC_ROWS rows by two vectors in registers; per k two loads of b and VEC_ROWS broadcasts of a
// feed 2 VEC_ROWS multiply-adds.

typedef struct gemm_args {
    const float *a, *b;
    float *c;
    int64_t a_row, a_k, ldb, ldc; // floats
    const float *alpha;           // [m], or NULL: c starts at 0
    int64_t m, n, k;
} gemm_args;

// Lists of statements without semicolons between them
// clang-format off
// Three rows share a pointer: an address then needs only base + {0, 1, 2} * stride.
#define ROW_VALUE(i)         ((i) < 3 ? row0 : (i) < 6 ? row3 : (i) < 9 ? row6 : row9)[(i) % 3 * a_row]
#define ROW_POINTER(rows, i) ((rows) > (i) ? row0 + (i) * a_row : row0)

#define DECLARE2(i) vf c##i##0 = vf_zero(), c##i##1 = vf_zero();
#define LOAD2(i)                                                                                             \
    c##i##0 = vf_load(c + (i) * ldc);                                                                        \
    c##i##1 = vf_load(c + (i) * ldc + VEC_N);
#define SCALE2(i)                                                                                            \
    c##i##0 = vf_mul(c##i##0, vf_set1(alpha[i]));                                                            \
    c##i##1 = vf_mul(c##i##1, vf_set1(alpha[i]));
#define FMA2(i)                                                                                              \
    {                                                                                                        \
        vf x = vf_set1(ROW_VALUE(i));                                                                        \
        c##i##0 = vf_fma(x, b0, c##i##0);                                                                    \
        c##i##1 = vf_fma(x, b1, c##i##1);                                                                    \
    }
#define STORE2(i)                                                                                            \
    vf_store(c + (i) * ldc, c##i##0);                                                                        \
    vf_store(c + (i) * ldc + VEC_N, c##i##1);

#define DECLARE1(i) vf c##i##0 = vf_zero();
#define LOAD1(i)    c##i##0 = vf_load(c + (i) * ldc);
#define SCALE1(i)   c##i##0 = vf_mul(c##i##0, vf_set1(alpha[i]));
#define FMA1(i)     c##i##0 = vf_fma(vf_set1(ROW_VALUE(i)), b0, c##i##0);
#define STORE1(i)   vf_store(c + (i) * ldc, c##i##0);

#define REP_4(F) F(0) F(1) F(2) F(3)

// Rows [i, i + rows), columns [j, j + width vectors).
#define MICRO_KERNEL(name, rows, rep, width, load_b)                                                         \
    static void name(const gemm_args *g, int64_t i, int64_t j)                                               \
    {                                                                                                        \
        int64_t a_row = g->a_row, a_k = g->a_k, ldb = g->ldb, ldc = g->ldc;                                  \
        const float *b = g->b + j, *alpha = g->alpha ? g->alpha + i : NULL, *row0 = g->a + i * a_row;        \
        const float *row3 = ROW_POINTER(rows, 3), *row6 = ROW_POINTER(rows, 6);                              \
        const float *row9 = ROW_POINTER(rows, 9), *end = row0 + g->k * a_k;                                  \
        float *c = g->c + i * ldc + j;                                                                       \
        rep(DECLARE##width)                                                                                  \
        if (alpha) {                                                                                         \
            rep(LOAD##width)                                                                                 \
            rep(SCALE##width)                                                                                \
        }                                                                                                    \
        while (row0 != end) {                                                                                \
            load_b;                                                                                          \
            rep(FMA##width)                                                                                  \
            b += ldb;                                                                                        \
            row0 += a_k;                                                                                     \
            row3 += a_k;                                                                                     \
            row6 += a_k;                                                                                     \
            row9 += a_k;                                                                                     \
        }                                                                                                    \
        rep(STORE##width)                                                                                    \
    }
MICRO_KERNEL(micro_rows_2, VEC_ROWS, VEC_REP_ROWS, 2, vf b0 = vf_load(b); vf b1 = vf_load(b + VEC_N))
MICRO_KERNEL(micro_rows_1, VEC_ROWS, VEC_REP_ROWS, 1, vf b0 = vf_load(b))
MICRO_KERNEL(micro_4_2, 4, REP_4, 2, vf b0 = vf_load(b); vf b1 = vf_load(b + VEC_N))
MICRO_KERNEL(micro_4_1, 4, REP_4, 1, vf b0 = vf_load(b))
// clang-format on

// VEC_ROWS divides 12: rows go in twelves as far as possible, then in fours.
static void gemm(const gemm_args *g)
{
    for (int64_t j = 0; j < g->n; j += 2 * VEC_N) {
        bool two = j + 2 * VEC_N <= g->n;
        int64_t i = 0;
        for (; i + 12 <= g->m; i += 12) {
            for (int64_t r = i; r < i + 12; r += VEC_ROWS) {
                if (two)
                    micro_rows_2(g, r, j);
                else
                    micro_rows_1(g, r, j);
            }
        }
        for (; i < g->m; i += 4) {
            if (two)
                micro_4_2(g, i, j);
            else
                micro_4_1(g, i, j);
        }
    }
}

// dst[j][i] = src[i][j] for rows x cols, rows a multiple of VEC_N; src and dst have cols rounded up to it.
static void transpose(const float *src, int64_t src_stride, float *dst, int64_t dst_stride, int64_t rows,
                      int64_t cols)
{
    for (int64_t i = 0; i < rows; i += VEC_N) {
        for (int64_t j = 0; j < cols; j += VEC_N) {
            const float *block = src + i * src_stride + j;
#define ROW(r) vf_load(block + (r)*src_stride)
            VEC_TRANSPOSE(ROW, dst + j * dst_stride + i, dst_stride);
#undef ROW
        }
    }
}

#undef ROW_VALUE
#undef ROW_POINTER
#undef DECLARE2
#undef LOAD2
#undef SCALE2
#undef FMA2
#undef STORE2
#undef DECLARE1
#undef LOAD1
#undef SCALE1
#undef FMA1
#undef STORE1
#undef REP_4
#undef MICRO_KERNEL
