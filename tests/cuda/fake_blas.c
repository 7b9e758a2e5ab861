// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A cuBLASLt for tests: products run on the processor, as launches of the fake driver library, and any call
// can be told to fail. It refuses what the real one may refuse: addresses that are aligned worse than was
// promised, an algorithm of another shape. Built as libcublasLt.so.13; fake_blas.h steers it.
#include "tests/cuda/fake_blas.h"

#include "backends/cuda/product/gemm/cublas.h"
#include "core/fp16.h"
#include "tests/cuda/fake.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The constants that the backend declares for cuBLASLt are those of the toolkit's header.
#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define SAME(a, b) static_assert((int)(a) == (int)(b), #a)
SAME(TN_BLAS_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(TN_BLAS_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED);
SAME(TN_BLAS_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE);
SAME(TN_BLAS_ARCH_MISMATCH, CUBLAS_STATUS_ARCH_MISMATCH);
SAME(TN_BLAS_MAPPING_ERROR, CUBLAS_STATUS_MAPPING_ERROR);
SAME(TN_BLAS_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(TN_BLAS_INTERNAL_ERROR, CUBLAS_STATUS_INTERNAL_ERROR);
SAME(TN_BLAS_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(TN_BLAS_LICENSE_ERROR, CUBLAS_STATUS_LICENSE_ERROR);
SAME(TN_BLAS_F32, CUDA_R_32F);
SAME(TN_BLAS_F16, CUDA_R_16F);
SAME(TN_BLAS_BF16, CUDA_R_16BF);
SAME(TN_BLAS_COMPUTE_F32, CUBLAS_COMPUTE_32F);
SAME(TN_BLAS_TRANSPOSED, CUBLAS_OP_T);
SAME(TN_BLAS_PRODUCT_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(TN_BLAS_PREFER_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(TN_BLAS_PREFER_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(TN_BLAS_PREFER_ALIGN_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(TN_BLAS_PREFER_ALIGN_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(TN_BLAS_PREFER_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(tn_blas_algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(tn_blas_heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(tn_blas_heuristic, workspace), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(tn_blas_heuristic, state), offsetof(cublasLtMatmulHeuristicResult_t, state));
#endif

#define EXPORT __attribute__((visibility("default")))

static fake_blas state;

EXPORT fake_blas *fake_blas_get(void)
{
    return &state;
}

// The functions under their names in the library, with the parameters that the backend gives them.
#define TN_CUDA_BLAS_FN(result, member, symbol, params) EXPORT result fake_##member params __asm__(symbol);
#include "backends/cuda/product/gemm/cublas.def"

static int32_t call(const char *name)
{
    if (++state.n_calls != state.fail_at) return TN_BLAS_SUCCESS;
    snprintf(state.failed, sizeof state.failed, "%s", name);
    return state.error;
}

#define CALL()                                                                                               \
    do {                                                                                                     \
        int32_t r = call(__func__);                                                                          \
        if (r != TN_BLAS_SUCCESS) return r;                                                                  \
    } while (0)

enum { HANDLE = 1, PRODUCT, LAYOUT, PREFERENCE, MAX_ATTRIBUTES = 16, WORKSPACE_USED = 1 << 20 };

// One object for all; a double release aborts in free.
typedef struct object {
    int32_t kind, type;
    uint64_t rows, columns;
    int64_t ld;
    uint64_t attributes[MAX_ATTRIBUTES];
} object;

static int32_t make(void **out, object from)
{
    object *p = malloc(sizeof *p);
    if (!p) return TN_BLAS_ALLOC_FAILED;
    *p = from;
    *out = p;
    state.n_alive++;
    return TN_BLAS_SUCCESS;
}

static int32_t drop(void *at, int32_t kind, const char *name)
{
    if (((object *)at)->kind != kind) abort();
    free(at);
    state.n_alive--;
    return call(name);
}

static int32_t set(object *p, int32_t attribute, const void *value, size_t size)
{
    if (attribute < 0 || attribute >= MAX_ATTRIBUTES || size > sizeof *p->attributes)
        return TN_BLAS_INVALID_VALUE;
    p->attributes[attribute] = 0;
    memcpy(&p->attributes[attribute], value, size);
    return TN_BLAS_SUCCESS;
}

size_t fake_version(void)
{
    return 130100;
}

int32_t fake_create(void **handle)
{
    CALL();
    return make(handle, (object){.kind = HANDLE});
}

int32_t fake_destroy(void *handle)
{
    return drop(handle, HANDLE, __func__);
}

int32_t fake_product_create(void **product, int32_t compute, int32_t scale_type)
{
    CALL();
    if (compute != TN_BLAS_COMPUTE_F32 || scale_type != TN_BLAS_F32) return TN_BLAS_INVALID_VALUE;
    return make(product, (object){.kind = PRODUCT});
}

int32_t fake_product_destroy(void *product)
{
    return drop(product, PRODUCT, __func__);
}

int32_t fake_product_set(void *product, int32_t attribute, const void *value, size_t size)
{
    CALL();
    return size == sizeof(int32_t) ? set(product, attribute, value, size) : TN_BLAS_INVALID_VALUE;
}

int32_t fake_layout_create(void **layout, int32_t type, uint64_t rows, uint64_t columns, int64_t ld)
{
    CALL();
    return make(layout, (object){.kind = LAYOUT, .type = type, .rows = rows, .columns = columns, .ld = ld});
}

int32_t fake_layout_destroy(void *layout)
{
    return drop(layout, LAYOUT, __func__);
}

int32_t fake_preference_create(void **preference)
{
    CALL();
    return make(preference, (object){.kind = PREFERENCE});
}

int32_t fake_preference_destroy(void *preference)
{
    return drop(preference, PREFERENCE, __func__);
}

int32_t fake_preference_set(void *preference, int32_t attribute, const void *value, size_t size)
{
    CALL();
    size_t want = attribute == TN_BLAS_PREFER_WORKSPACE ? sizeof(uint64_t) : sizeof(uint32_t);
    return size == want ? set(preference, attribute, value, size) : TN_BLAS_INVALID_VALUE;
}

// a transposed: k x n, b: k x m, c and d: n x m.
static bool fits(const object *product, const object *a, const object *b, const object *c, const object *d)
{
    bool transposed = (int32_t)product->attributes[TN_BLAS_PRODUCT_TRANSA] == TN_BLAS_TRANSPOSED;
    bool types = a->type == b->type && (a->type == TN_BLAS_F16 || a->type == TN_BLAS_BF16) &&
                 c->type == TN_BLAS_F32 && d->type == TN_BLAS_F32;
    bool sizes = a->rows == b->rows && a->columns == d->rows && b->columns == d->columns &&
                 c->rows == d->rows && c->columns == d->columns;
    bool strides = a->ld >= (int64_t)a->rows && b->ld >= (int64_t)b->rows && c->ld >= (int64_t)c->rows &&
                   d->ld >= (int64_t)d->rows;
    return product->kind == PRODUCT && transposed && types && sizes && strides;
}

static uint64_t mark_of(const object *a, const object *d)
{
    return a->rows * 1000003u + d->rows * 10007u + d->columns * 3u + (uint64_t)a->type;
}

// The algorithm carries its shape and the alignments.
int32_t fake_heuristic(void *handle, void *product, void *a, void *b, void *c, void *d, void *preference,
                       int wanted, tn_blas_heuristic *choices, int *found)
{
    CALL();
    state.n_asked++;
    *found = 0;
    const object *p = preference;
    if (((object *)handle)->kind != HANDLE || p->kind != PREFERENCE || wanted < 1 ||
        !fits(product, a, b, c, d))
        return TN_BLAS_INVALID_VALUE;
    if (p->attributes[TN_BLAS_PREFER_WORKSPACE] < WORKSPACE_USED) return TN_BLAS_NOT_SUPPORTED;
    *choices = (tn_blas_heuristic){
        .algorithm.data = {mark_of(a, d)}, .workspace = WORKSPACE_USED, .state = TN_BLAS_SUCCESS};
    for (int i = 0; i < 4; i++) choices->algorithm.data[1 + i] = p->attributes[TN_BLAS_PREFER_ALIGN_A + i];
    *found = 1;
    return TN_BLAS_SUCCESS;
}

typedef struct job {
    float alpha, beta;
    const uint16_t *a, *b;
    const float *c;
    float *d;
    int64_t m, n, k, a_ld, b_ld, c_ld, d_ld;
    int32_t type;
    char *workspace;
} job;

static float value(const job *j, uint16_t bits)
{
    return j->type == TN_BLAS_BF16 ? tn_bf16_to_f32(bits) : tn_f16_to_f32(bits);
}

static void run(const void *args)
{
    const job *j = args;
    memset(j->workspace, 0xaa, WORKSPACE_USED);
    for (int64_t column = 0; column < j->m; column++) {
        for (int64_t row = 0; row < j->n; row++) {
            float sum = 0.0f, *to = &j->d[column * j->d_ld + row];
            for (int64_t i = 0; i < j->k; i++)
                sum += value(j, j->a[row * j->a_ld + i]) * value(j, j->b[column * j->b_ld + i]);
            *to = j->beta != 0.0f ? j->alpha * sum + j->beta * j->c[column * j->c_ld + row] : j->alpha * sum;
        }
    }
}

static CUresult launch(CUstream stream, const job *j)
{
    CUresult (*function)(CUstream, fake_host_function *, const void *, size_t, void *, size_t);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD),
         *at = driver ? dlsym(driver, "fake_launch_host") : NULL;
    CUresult r = CUDA_ERROR_NOT_FOUND;
    if (at) {
        memcpy(&function, &at, sizeof function);
        r = function(stream, run, j, sizeof *j, j->d, (size_t)(j->m * j->n) * sizeof *j->d);
    }
    if (driver) dlclose(driver);
    return r;
}

int32_t fake_multiply(void *handle, void *product, const void *alpha, const void *a, void *a_layout,
                      const void *b, void *b_layout, const void *beta, const void *c, void *c_layout, void *d,
                      void *d_layout, const tn_blas_algorithm *algorithm, void *workspace,
                      size_t workspace_size, CUstream stream)
{
    CALL();
    state.n_products++;
    const object *la = a_layout, *lb = b_layout, *lc = c_layout, *ld = d_layout;
    if (((object *)handle)->kind != HANDLE || !fits(product, la, lb, lc, ld) ||
        algorithm->data[0] != mark_of(la, ld))
        return TN_BLAS_INVALID_VALUE;
    if (workspace_size < WORKSPACE_USED || (uintptr_t)workspace % 256 != 0) return TN_BLAS_INVALID_VALUE;
    const void *operands[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)operands[i] % algorithm->data[1 + i] != 0) return TN_BLAS_INVALID_VALUE;
    job j = {.a = a,
             .b = b,
             .c = c,
             .d = d,
             .m = (int64_t)ld->columns,
             .n = (int64_t)ld->rows,
             .k = (int64_t)la->rows,
             .type = la->type,
             .workspace = workspace};
    j.a_ld = la->ld, j.b_ld = lb->ld, j.c_ld = lc->ld, j.d_ld = ld->ld;
    memcpy(&j.alpha, alpha, sizeof j.alpha);
    memcpy(&j.beta, beta, sizeof j.beta);
    return launch(stream, &j) == CUDA_SUCCESS ? TN_BLAS_SUCCESS : TN_BLAS_EXECUTION_FAILED;
}
