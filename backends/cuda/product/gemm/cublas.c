// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matmuls by cuBLASLt (cublas.h). x is rounded into scratch as for the other kernels on tensor cores
// (gemm.c), weights are multiplied where they are. The library stores matrices by columns: y = x w^T in rows
// is y^T = w x^T in columns, with w transposed.
#include "backends/cuda/product/gemm/cublas.h"

#include "backends/cuda/product/gemm/gemm.h"
#include "core/compiler.h"
#include "ops/operands.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    MIN_ROWS = 64,        // with fewer a product is bound by memory, and product/skinny/skinny.c runs it
    WORKSPACE = 32 << 20, // bytes that NVIDIA recommends for 9.0 (cuBLAS library, cublasSetWorkspace)
    ALIGN = 256,          // of the parts of the scratch, bytes
    MAX_SHAPES = 128,     // whose algorithms are remembered
};

typedef struct blas_api {
#define TN_CUDA_BLAS_FN(result, member, symbol, params) result(*member) params;
#include "backends/cuda/product/gemm/cublas.def"
} blas_api;

static const tn_library_symbol symbols[] = {
#define TN_CUDA_BLAS_FN(result, member, symbol, params) {symbol, offsetof(blas_api, member)},
#include "backends/cuda/product/gemm/cublas.def"
};

// A product of the library: n x k weights with m rows of k. Alignments are of addresses, in bytes.
typedef struct shape {
    int64_t m, n, k, type;
    int64_t residual_ld; // of a matrix that is added, 0: none
    int64_t align_w, align_x, align_c, align_y;
} shape;

typedef struct answer {
    shape shape;
    tn_blas_algorithm algorithm;
    size_t workspace;
} answer;

enum { UNKNOWN, OPENED, ABSENT, BROKEN };

struct tn_cuda_blas {
    atomic_flag lock; // guards the rest: sessions of several threads prepare plans at the same time
    int32_t state;
    void *handle; // made when first needed
    blas_api api;
    int32_t n_shapes, next; // known shapes; the one that is forgotten next, once there are MAX_SHAPES
    answer shapes[MAX_SHAPES];
};

static void lock(struct tn_cuda_blas *b)
{
    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire)) {
    }
}

static void unlock(struct tn_cuda_blas *b)
{
    atomic_flag_clear_explicit(&b->lock, memory_order_release);
}

// --- library -----------------------------------------------------------------------------------------

void tn_cuda_cublas_init(tn_cuda *c)
{
    c->blas = tn_calloc(c->device->ctx, 1, sizeof *c->blas);
    if (c->blas) atomic_flag_clear(&c->blas->lock);
}

// The library stays loaded: what it has registered with the driver is not made to go before the process ends.
void tn_cuda_cublas_free(tn_cuda *c)
{
    struct tn_cuda_blas *b = c->blas;
    if (!b) return;
    if (b->handle && !tn_cuda_is_given_up(c)) b->api.destroy(b->handle);
    tn_free(c->device->ctx, b);
    c->blas = NULL;
}

// Opens the newest version that the driver supports. Whether there is one is logged once, when a product
// first asks for it, which happens only while tuning or with a tuned kernel.
static void open_library(const tn_cuda *c, struct tn_cuda_blas *b)
{
    int driver = 0;
    static const struct {
        int major;
        tn_library_names names;
    } versions[] = {{13, {"libcublasLt.so.13", "cublasLt64_13.dll", NULL}},
                    {12, {"libcublasLt.so.12", "cublasLt64_12.dll", NULL}},
                    {11, {"libcublasLt.so.11", "cublasLt64_11.dll", NULL}}};
    const char *missing = NULL;
    void *library = NULL;
    b->state = ABSENT;
    c->driver.driver_version(&driver);
    for (size_t i = 0; i < TN_COUNT(versions) && !library; i++)
        if (versions[i].major <= driver / 1000)
            library = tn_library_open(&versions[i].names, symbols, TN_COUNT(symbols), &b->api, &missing);
    if (!library) {
        tn_log(c->device->ctx, TN_LOG_INFO, "%s: no cuBLASLt: %s, 12 or 11, not newer than the driver, %s%s",
               c->device->name, tn_library_name(&versions[0].names), missing ? "lacks " : "cannot be opened",
               missing ? missing : "");
        return;
    }
    size_t v = b->api.version();
    b->state = OPENED;
    tn_log(c->device->ctx, TN_LOG_INFO, "%s: cuBLASLt %zu.%zu.%zu can multiply many rows", c->device->name,
           v / 10000, v / 100 % 100, v % 100);
}

static bool is_usable(const tn_cuda *c)
{
    struct tn_cuda_blas *b = c->blas;
    if (!b) return false;
    lock(b);
    if (b->state == UNKNOWN) open_library(c, b);
    bool usable = b->state == OPENED;
    unlock(b);
    return usable;
}

static tn_status check(const tn_cuda *c, int32_t result, const char *what)
{
    static const struct {
        int32_t result;
        const char *name;
    } names[] = {
        {TN_BLAS_NOT_INITIALIZED, "CUBLAS_STATUS_NOT_INITIALIZED"},
        {TN_BLAS_ALLOC_FAILED, "CUBLAS_STATUS_ALLOC_FAILED"},
        {TN_BLAS_INVALID_VALUE, "CUBLAS_STATUS_INVALID_VALUE"},
        {TN_BLAS_ARCH_MISMATCH, "CUBLAS_STATUS_ARCH_MISMATCH"},
        {TN_BLAS_MAPPING_ERROR, "CUBLAS_STATUS_MAPPING_ERROR"},
        {TN_BLAS_EXECUTION_FAILED, "CUBLAS_STATUS_EXECUTION_FAILED"},
        {TN_BLAS_INTERNAL_ERROR, "CUBLAS_STATUS_INTERNAL_ERROR"},
        {TN_BLAS_NOT_SUPPORTED, "CUBLAS_STATUS_NOT_SUPPORTED"},
        {TN_BLAS_LICENSE_ERROR, "CUBLAS_STATUS_LICENSE_ERROR"},
    };
    if (result == TN_BLAS_SUCCESS) return TN_OK;
    const char *name = "unknown status";
    for (size_t i = 0; i < TN_COUNT(names); i++)
        if (names[i].result == result) name = names[i].name;
    return tn_fail(c->device->ctx, result == TN_BLAS_ALLOC_FAILED ? TN_ERR_MEMORY : TN_ERR_DEVICE,
                   "%s: cuBLASLt: %s: %s (%d)", c->device->name, what, name, result);
}

// After a failure the library is not called again until the context ends: what runs next runs by another
// kernel.
static void give_up(struct tn_cuda_blas *b)
{
    lock(b);
    b->state = BROKEN;
    unlock(b);
}

// --- shapes ------------------------------------------------------------------------------------------

// Descriptions of a shape that the library wants.
typedef struct described {
    void *product, *w, *x, *c, *y;
} described;

static void forget(const blas_api *api, described *d)
{
    void *layouts[] = {d->w, d->x, d->c, d->y};
    for (size_t i = 0; i < TN_COUNT(layouts); i++)
        if (layouts[i]) api->layout_destroy(layouts[i]);
    if (d->product) api->product_destroy(d->product);
}

static tn_status describe(const tn_cuda *c, const shape *s, described *d)
{
    const blas_api *api = &c->blas->api;
    int32_t transposed = TN_BLAS_TRANSPOSED, type = (int32_t)s->type;
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    *d = (described){0};
    int32_t r = api->product_create(&d->product, TN_BLAS_COMPUTE_F32, TN_BLAS_F32);
    if (r == TN_BLAS_SUCCESS)
        r = api->product_set(d->product, TN_BLAS_PRODUCT_TRANSA, &transposed, sizeof transposed);
    if (r == TN_BLAS_SUCCESS) r = api->layout_create(&d->w, type, k, n, s->k);
    if (r == TN_BLAS_SUCCESS) r = api->layout_create(&d->x, type, k, m, s->k);
    if (r == TN_BLAS_SUCCESS)
        r = api->layout_create(&d->c, TN_BLAS_F32, n, m, s->residual_ld > 0 ? s->residual_ld : s->n);
    if (r == TN_BLAS_SUCCESS) r = api->layout_create(&d->y, TN_BLAS_F32, n, m, s->n);
    if (r != TN_BLAS_SUCCESS) forget(api, d);
    return check(c, r, "describing a product");
}

static tn_status ask(const tn_cuda *c, const shape *s, answer *out)
{
    struct tn_cuda_blas *b = c->blas;
    described d;
    tn_status status = describe(c, s, &d);
    if (status != TN_OK) return status;
    size_t workspace = WORKSPACE;
    void *preference = NULL;
    const struct {
        int32_t attribute;
        int64_t bytes;
    } aligns[] = {{TN_BLAS_PREFER_ALIGN_A, s->align_w},
                  {TN_BLAS_PREFER_ALIGN_B, s->align_x},
                  {TN_BLAS_PREFER_ALIGN_C, s->align_c},
                  {TN_BLAS_PREFER_ALIGN_D, s->align_y}};
    int32_t r = b->api.preference_create(&preference);
    if (r == TN_BLAS_SUCCESS)
        r = b->api.preference_set(preference, TN_BLAS_PREFER_WORKSPACE, &workspace, sizeof workspace);
    for (size_t i = 0; i < TN_COUNT(aligns) && r == TN_BLAS_SUCCESS; i++) {
        uint32_t bytes = (uint32_t)aligns[i].bytes;
        r = b->api.preference_set(preference, aligns[i].attribute, &bytes, sizeof bytes);
    }
    tn_blas_heuristic best = {0};
    int found = 0;
    if (r == TN_BLAS_SUCCESS)
        r = b->api.heuristic(b->handle, d.product, d.w, d.x, d.c, d.y, preference, 1, &best, &found);
    if (r == TN_BLAS_SUCCESS)
        r = found < 1 || best.workspace > workspace ? TN_BLAS_NOT_SUPPORTED : best.state;
    if (preference) b->api.preference_destroy(preference);
    forget(&b->api, &d);
    *out = (answer){.shape = *s, .algorithm = best.algorithm, .workspace = best.workspace};
    return check(c, r, "selecting an algorithm");
}

static tn_status find_locked(const tn_cuda *c, const shape *s, answer *out)
{
    struct tn_cuda_blas *b = c->blas;
    for (int32_t i = 0; i < b->n_shapes; i++)
        if (memcmp(&b->shapes[i].shape, s, sizeof *s) == 0) return *out = b->shapes[i], TN_OK;
    tn_status status = b->handle ? TN_OK : check(c, b->api.create(&b->handle), "starting");
    if (status == TN_OK) status = ask(c, s, out);
    if (status != TN_OK) return status;
    b->shapes[b->next] = *out;
    b->next = (b->next + 1) % MAX_SHAPES;
    b->n_shapes = TN_MIN(b->n_shapes + 1, MAX_SHAPES);
    return TN_OK;
}

// The algorithm for a shape, which the library is asked for once.
static tn_status find(const tn_cuda *c, const shape *s, answer *out)
{
    lock(c->blas);
    tn_status status = find_locked(c, s, out);
    unlock(c->blas);
    return status;
}

// Bytes that an address is a multiple of, as far as it matters.
static int64_t align_of(const void *p)
{
    uintptr_t u = (uintptr_t)p | ALIGN;
    return (int64_t)(u & (~u + 1));
}

// The product with weight i. x is in the scratch, which begins at a multiple of ALIGN, or in its own place
// (reads_packed16).
static shape shape_of(const tn_product *p, int32_t i)
{
    const tn_view *w = p->w[i];
    const void *y = p->y[i]->data, *added = p->residual ? p->residual->data : y;
    shape s = {
        .m = p->m, .n = w->ne[2], .k = p->k, .type = w->dtype == TN_TYPE_BF16 ? TN_BLAS_BF16 : TN_BLAS_F16};
    s.residual_ld = p->residual ? tn_cuda_row_stride(p->residual) / (int64_t)sizeof(float) : 0;
    s.align_w = align_of(w->data), s.align_x = align_of(p->x->data);
    s.align_c = align_of(added), s.align_y = align_of(y);
    return s;
}

tn_status tn_cuda_cublas_prepare(const tn_cuda *c, const tn_step *step)
{
    tn_product p = tn_product_get(step);
    tn_status status = TN_OK;
    for (int32_t i = 0; i < p.n_weights && status == TN_OK; i++) {
        shape s = shape_of(&p, i);
        answer a;
        status = find(c, &s, &a);
    }
    // Without a handle there is none for the next shape either.
    if (status != TN_OK && !c->blas->handle) give_up(c->blas);
    return status;
}

// --- rows of kernels.def -----------------------------------------------------------------------------

static bool accepts(const tn_cuda *cuda, const tn_step *step, int32_t mode)
{
    tn_product p = tn_product_get(step);
    if (!tn_cuda_gemm_fits(cuda, &p) || p.m < MIN_ROWS || p.act != TN_UNARY_NONE || p.glu) return false;
    if (tn_cuda_gemm_mode(cuda, &p, step->precision) != mode) return false;
    // Scales of rows are multiplied in afterwards, and then it is too late to add something.
    if (p.residual && tn_cuda_gemm_scales_x(mode)) return false;
    if (p.residual && tn_cuda_row_stride(p.residual) < p.y[0]->ne[3] * (int64_t)sizeof(float)) return false;
    // Weights may have any address: the shape says how it is aligned.
    for (int32_t i = 0; i < p.n_weights; i++)
        if (p.bias[i] || !tn_cuda_gemm_direct_type(mode, p.w[i])) return false;
    return is_usable(cuda);
}

bool tn_cuda_cublas_bf16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, TN_GEMM_BF16);
}

bool tn_cuda_cublas_f16_accepts(const tn_cuda *cuda, const tn_step *step)
{
    return accepts(cuda, step, TN_GEMM_F16);
}

// Bytes of the parts of the scratch, before the workspace.
typedef struct layout {
    size_t x, scales;
} layout;

static layout layout_of(const tn_product *p)
{
    int64_t x = p->m * p->k * 2, scales = p->m * 4;
    return (layout){(size_t)(tn_div_up(x, ALIGN) * ALIGN), (size_t)(tn_div_up(scales, ALIGN) * ALIGN)};
}

size_t tn_cuda_cublas_scratch(const tn_cuda *cuda, const tn_step *step)
{
    TN_UNUSED(cuda);
    tn_product p = tn_product_get(step);
    layout s = layout_of(&p);
    return s.x + s.scales + WORKSPACE;
}

static tn_status multiply(const tn_cuda_launch *l, const tn_product *p, int32_t i)
{
    if (l->sink) return l->sink->put(l->sink->user, "cublasLtMatmul");
    const tn_cuda *c = l->cuda;
    const blas_api *api = &c->blas->api;
    shape s = shape_of(p, i);
    layout at = layout_of(p);
    answer a;
    described d;
    tn_status status = find(c, &s, &a);
    if (status == TN_OK) status = describe(c, &s, &d);
    if (status != TN_OK) return status;
    const float one = 1.0f, beta = p->residual ? 1.0f : 0.0f;
    void *y = p->y[i]->data, *workspace = l->scratch + at.x + at.scales;
    const void *added = p->residual ? p->residual->data : y;
    int32_t result =
        api->multiply(c->blas->handle, d.product, &one, p->w[i]->data, d.w, tn_cuda_gemm_x(l, p), d.x, &beta,
                      added, d.c, y, d.y, &a.algorithm, workspace, a.workspace, c->stream);
    forget(api, &d);
    return check(c, result, "multiplying");
}

// y *= the scale of its row.
static tn_status scale_rows(const tn_cuda_launch *l, const tn_product *p, int32_t i, float *scales)
{
    int64_t m = p->m, n = p->y[i]->ne[3], f = sizeof(float);
    const tn_binary_params mul = {.kind = TN_BINARY_MUL};
    tn_view y = {.dtype = TN_TYPE_F32, .ne = {1, 1, m, n}, .nb = {m * n * f, m * n * f, n * f, f}};
    tn_view scale = {.dtype = TN_TYPE_F32, .ne = {1, 1, m, 1}, .nb = {m * f, m * f, f, f}};
    y.data = p->y[i]->data, scale.data = scales;
    tn_step step = *l->step;
    step.op = TN_OP_binary;
    step.params = &mul;
    step.n_src = TN_SRC_binary_COUNT, step.n_dst = 1;
    step.src[TN_SRC_binary_a] = y, step.src[TN_SRC_binary_b] = scale, step.dst[0] = y;
    tn_cuda_launch scaling = {.cuda = l->cuda, .step = &step, .sink = l->sink};
    return tn_cuda_elementwise_launch(&scaling);
}

tn_status tn_cuda_cublas_launch(const tn_cuda_launch *l)
{
    tn_product p = tn_product_get(l->step);
    int32_t mode = tn_cuda_gemm_mode(l->cuda, &p, l->step->precision);
    tn_cuda_gemm_x_args x = {.to = l->scratch, .m = (int32_t)p.m, .ld = p.k, .mode = mode};
    if (tn_cuda_gemm_scales_x(mode)) x.row_scale = (float *)(void *)(l->scratch + layout_of(&p).x);
    tn_status status = l->reads_packed16 ? TN_OK : tn_cuda_gemm_prepare_x(l, x, &p);
    for (int32_t i = 0; i < p.n_weights && status == TN_OK; i++) {
        status = multiply(l, &p, i);
        if (status != TN_OK) give_up(l->cuda->blas);
        if (status == TN_OK && x.row_scale) status = scale_rows(l, &p, i, x.row_scale);
    }
    return status;
}
