// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The CPU backend: one device, plain host memory, and step lists that run on the threads of the context
// (run.c).
#include "core/backend.h"

#include "backends/cpu/accepts.h"
#include "backends/cpu/kernel.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/openblas/openblas.h"
#include "backends/cpu/product.h"
#include "backends/cpu/run.h"
#include "core/cpu_features.h"
#include "core/device.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

extern const tn_backend tn_backend_cpu;

typedef struct cpu_impl {
    int32_t isa; // highest level in use
    bool has_bf16, alike;
    tn_openblas *openblas; // NULL: not used
} cpu_impl;

static const char *const isa_names[TN_ISA_COUNT] = {
    [TN_ISA_REFERENCE] = "reference",
    [TN_ISA_GENERIC] = "generic",
    [TN_ISA_AVX2] = "avx2",
    [TN_ISA_AVXVNNI] = "avxvnni",
    [TN_ISA_AVX512] = "avx512",
    [TN_ISA_AVX512VNNI] = "avx512vnni",
    [TN_ISA_AMX] = "amx",
    [TN_ISA_NEON] = "neon",
    [TN_ISA_DOTPROD] = "dotprod",
    [TN_ISA_I8MM] = "i8mm",
    [TN_ISA_BF16] = "bf16",
};

// --- kernels ---------------------------------------------------------------------------------------

#define GENERIC    TN_ISA_GENERIC
#define AVX2       TN_ISA_AVX2
#define AVX512     TN_ISA_AVX512
#define AVXVNNI    TN_ISA_AVXVNNI
#define AVX512VNNI TN_ISA_AVX512VNNI
#define AMX        TN_ISA_AMX
#define NEON       TN_ISA_NEON
#define DOTPROD    TN_ISA_DOTPROD
#define I8MM       TN_ISA_I8MM
#define BF16       TN_ISA_BF16

static const tn_cpu_kernel kernel_rows[] = {
#define TN_CPU_ROW(level, suffix, set, name, accepts, scratch, parts, flags)                                 \
    {set, level, #name "_" #suffix, accepts, scratch, parts, tn_##name##_##suffix, flags},
#define TN_CPU_KERNEL(set, levels, name, accepts, scratch, parts, flags)                                     \
    TN_CPU_AT_##levels(TN_CPU_ROW, TN_SET_##set, name, accepts, scratch, parts, flags)
#include "backends/cpu/kernels.def"
};

const tn_cpu_kernel *tn_cpu_kernels(int32_t *count)
{
    *count = (int32_t)TN_COUNT(kernel_rows);
    return kernel_rows;
}

// The kernel of the highest level that accepts the step; NULL: the reference runs it.
static const tn_cpu_kernel *find_kernel(int32_t isa, const tn_step *step)
{
    const tn_cpu_kernel *best = NULL;
    for (size_t i = 0; i < TN_COUNT(kernel_rows); i++) {
        const tn_cpu_kernel *k = &kernel_rows[i];
        bool has = k->isa <= isa && (k->isa != TN_ISA_AVXVNNI || k->isa == isa);
        has = has && !(k->flags & TN_CPU_OPENBLAS);
        bool higher = has && (!best || k->isa > best->isa);
        if (higher && tn_op_set_has(k->set, step->op) && k->accepts(step)) best = k;
    }
    return best;
}

// The row that OpenBLAS runs.
static const tn_cpu_kernel *openblas_kernel(void)
{
    size_t i = 0;
    while (!(kernel_rows[i].flags & TN_CPU_OPENBLAS)) i++;
    return &kernel_rows[i];
}

// The kernel that runs the step: OpenBLAS where that was measured to be faster, else the one above.
static const tn_cpu_kernel *select_kernel(const cpu_impl *impl, const tn_step *step)
{
    return tn_openblas_runs(impl->openblas, step) ? openblas_kernel() : find_kernel(impl->isa, step);
}

// References are single-threaded: one part.
static void launch_reference(const tn_cpu_task *task)
{
    tn_op_info_get(task->step->op)->ref(task->step);
}

// --- device ----------------------------------------------------------------------------------------

static bool has_level(const tn_cpu_features *f, int32_t isa)
{
    switch (isa) {
#if defined(__x86_64__)
    case TN_ISA_AVX2:
        return f->avx2;
    case TN_ISA_AVXVNNI:
        return f->avxvnni;
    case TN_ISA_AVX512:
        return f->avx512;
    case TN_ISA_AVX512VNNI:
        return f->avx512vnni;
    case TN_ISA_AMX:
        return f->amx;
#elif defined(TN_CPU_ARM)
    case TN_ISA_NEON:
        return true;
    case TN_ISA_DOTPROD:
        return f->dotprod;
    case TN_ISA_I8MM:
        return f->i8mm;
    case TN_ISA_BF16:
        return f->bf16;
#endif
    default:
        TN_UNUSED(f);
        return isa <= TN_ISA_GENERIC;
    }
}

static tn_status choose_isa(tn_context *ctx, const tn_cpu_features *f, int32_t *out)
{
    int32_t best = TN_ISA_COUNT - 1, i = 0;
    while (!has_level(f, best)) best--;
    *out = best;
    const char *cap = tn_context_isa(ctx);
    if (!cap) return TN_OK;
    while (i < TN_ISA_COUNT && strcmp(cap, isa_names[i]) != 0) i++;
    if (i == TN_ISA_COUNT)
        return tn_fail(
            ctx, TN_ERR_ARG,
            "cpu: unknown level \"%s\"; known: reference generic avx2 avxvnni avx512 avx512vnni amx; for "
            "aarch64 neon dotprod i8mm bf16",
            cap);
    if (!has_level(f, i))
        return tn_fail(ctx, TN_ERR_UNSUPPORTED, "cpu: this processor has no %s, at most %s", cap,
                       isa_names[best]);
    *out = i;
    return TN_OK;
}

// Level AMX becomes the one below it where nothing would use it, or where the system refuses: *refusal is the
// number of its error, else 0.
static tn_status permit_amx(tn_context *ctx, int32_t *isa, int *refusal)
{
    *refusal = 0;
    if (*isa != TN_ISA_AMX) return TN_OK;
    // Its kernels compute many rows only, and these would differ from the same rows computed one by one.
    if (!tn_context_deterministic(ctx)) *refusal = tn_cpu_tiles_permit();
    if (*refusal != 0 && tn_context_isa(ctx))
        return tn_fail(ctx, TN_ERR_UNSUPPORTED, "cpu: the system refused amx: error %d", *refusal);
    if (*refusal != 0 || tn_context_deterministic(ctx)) *isa = TN_ISA_AVX512VNNI;
    return TN_OK;
}

static tn_status cpu_open(tn_context *ctx)
{
    tn_cpu_features f;
    tn_cpu_features_get(&f);
    int32_t isa;
    int refusal = 0;
    tn_status status = choose_isa(ctx, &f, &isa);
    if (status == TN_OK) status = permit_amx(ctx, &isa, &refusal);
    if (status != TN_OK) return status;
    tn_device *d = tn_calloc(ctx, 1, sizeof *d);
    cpu_impl *impl = tn_calloc(ctx, 1, sizeof *impl);
    if (!d || !impl) {
        tn_free(ctx, d);
        tn_free(ctx, impl);
        return TN_ERR_MEMORY;
    }
    *impl = (cpu_impl){.isa = isa,
                       .has_bf16 = f.avx512bf16 && isa >= TN_ISA_AVX512VNNI,
                       .alike = tn_context_deterministic(ctx)};
    d->backend = &tn_backend_cpu;
    d->host_memory = true;
    d->impl = impl;
    uint64_t available;
    tn_system_memory(&d->memory_total, &available);
    snprintf(d->name, sizeof d->name, "cpu");
    int at = snprintf(d->description, sizeof d->description, "%s, %s%s, %d threads", f.name, isa_names[isa],
                      impl->has_bf16 ? "+bf16" : "", tn_context_n_threads(ctx));
    if (refusal != 0)
        snprintf(d->description + at, sizeof d->description - (size_t)at,
                 ", no amx: the system refused: error %d", refusal);
    d->ctx = ctx;
    tn_openblas_device blas = {.device = d,
                               .level = isa,
                               .has_bf16 = impl->has_bf16,
                               .capped = tn_context_isa(ctx) != NULL,
                               .alike = impl->alike,
                               .kernel = openblas_kernel(),
                               .own = find_kernel};
    status = tn_openblas_create(&blas, &impl->openblas);
    if (status == TN_OK) status = tn_device_add(ctx, d);
    if (status != TN_OK) {
        tn_openblas_destroy(impl->openblas);
        tn_free(ctx, impl);
        tn_free(ctx, d);
    }
    return status;
}

tn_openblas *tn_openblas_of(const tn_device *device)
{
    return ((const cpu_impl *)device->impl)->openblas;
}

static void cpu_close(tn_device *device)
{
    tn_openblas_destroy(tn_openblas_of(device));
    tn_free(device->ctx, device->impl);
}

static size_t cpu_details(tn_device *device, char *buf, size_t size)
{
    return tn_openblas_details(tn_openblas_of(device), buf, size);
}

static uint64_t cpu_memory_free(const tn_device *device)
{
    TN_UNUSED(device);
    uint64_t total, available;
    tn_system_memory(&total, &available);
    return available;
}

static tn_status cpu_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    out->data = tn_alloc(device->ctx, size);
    return out->data ? TN_OK : TN_ERR_MEMORY;
}

static void cpu_buffer_destroy(tn_buffer *buffer)
{
    tn_free(buffer->device->ctx, buffer->data);
}

static tn_status cpu_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    if (n > 0) memcpy((char *)buffer->data + offset, bytes, n);
    return TN_OK;
}

static tn_status cpu_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    if (n > 0) memcpy(bytes, (const char *)buffer->data + offset, n);
    return TN_OK;
}

static bool cpu_accepts(const tn_device *device, const tn_step *step)
{
    const cpu_impl *impl = device->impl;
    const tn_op_info *info = tn_op_info_get(step->op);
    // A fused op without a kernel gains nothing over its parts, but for checking the references.
    if ((info->flags & TN_OP_FUSED) && impl->isa > TN_ISA_REFERENCE)
        return find_kernel(impl->isa, step) != NULL;
    return true;
}

static const char *cpu_kernel_name(const tn_device *device, const tn_step *step)
{
    const tn_cpu_kernel *k = select_kernel(device->impl, step);
    return k ? k->name : "reference";
}

static uint32_t cpu_precisions(const tn_device *device)
{
    const cpu_impl *impl = device->impl;
    uint32_t bf16 = impl->isa >= TN_ISA_AMX ? 1u << TN_PRECISION_bf16 : 0;
    return 1u << TN_PRECISION_f32 | 1u << TN_PRECISION_int8 | bf16;
}

static int32_t cpu_rounding(const tn_device *device, const tn_step *step)
{
    const tn_cpu_kernel *k = select_kernel(device->impl, step);
    if (k && (k->flags & TN_CPU_ROUNDS_BF16)) return TN_PRECISION_bf16;
    return k && (k->flags & TN_CPU_QUANTISES) ? TN_PRECISION_int8 : TN_PRECISION_f32;
}

// --- executables -----------------------------------------------------------------------------------

struct tn_executable {
    tn_device *device;
    tn_cpu_step *steps;
    int32_t n_steps;
    bool by_openblas; // some of them
    const tn_buffer *scratch;
    tn_status status; // of the last submission, for wait
};

static size_t cpu_scratch_size(tn_device *device, const tn_program *program)
{
    const cpu_impl *impl = device->impl;
    bool tunes = tn_context_tunes(device->ctx);
    int32_t n_threads = tn_context_n_threads(device->ctx);
    size_t size = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        const tn_step *step = &program->steps[i];
        // The own kernel may have to take the place of OpenBLAS, and tuning runs both.
        const tn_cpu_kernel *own = find_kernel(impl->isa, step), *blas = NULL;
        if (tn_openblas_runs(impl->openblas, step) || (tunes && tn_openblas_may_time(impl->openblas, step)))
            blas = openblas_kernel();
        size_t need = own && own->scratch ? own->scratch(step, n_threads) : 0;
        if (blas) need = TN_MAX(need, blas->scratch(step, n_threads));
        size = TN_MAX(size, need);
    }
    return size;
}

static void cpu_executable_destroy(tn_device *device, tn_executable *e)
{
    if (!e) return;
    tn_free(device->ctx, e->steps);
    tn_free(device->ctx, e);
}

static bool scratch_suffices(const tn_device *device, const tn_cpu_kernel *k, const tn_step *step,
                             const tn_buffer *scratch)
{
    return scratch && k->scratch(step, tn_context_n_threads(device->ctx)) <= scratch->size;
}

static void step_bind(tn_executable *e, tn_cpu_step *step, const tn_cpu_kernel *k)
{
    step->launch = k ? k->launch : launch_reference;
    step->parts = k ? k->parts : tn_cpu_parts_one;
    e->by_openblas = e->by_openblas || (k && (k->flags & TN_CPU_OPENBLAS));
}

static tn_status cpu_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                             tn_executable **out)
{
    tn_context *ctx = device->ctx;
    tn_executable *e = tn_calloc(ctx, 1, sizeof *e);
    if (!e) return TN_ERR_MEMORY;
    e->device = device;
    e->n_steps = program->n_steps;
    e->steps = tn_calloc(ctx, (size_t)program->n_steps, sizeof *e->steps);
    e->scratch = scratch;
    if (!e->steps) {
        cpu_executable_destroy(device, e);
        return TN_ERR_MEMORY;
    }
    const cpu_impl *impl = device->impl;
    tn_status status = TN_OK;
    if (tn_context_tunes(ctx))
        status = tn_openblas_tune(impl->openblas, program, scratch ? scratch->data : NULL);
    if (status != TN_OK) {
        cpu_executable_destroy(device, e);
        return status;
    }
    for (int32_t i = 0; i < e->n_steps; i++) {
        const tn_cpu_kernel *k = select_kernel(impl, &program->steps[i]);
        // What was tuned after the scratch was allocated may need more of it.
        if (k && (k->flags & TN_CPU_OPENBLAS) && !scratch_suffices(device, k, &program->steps[i], scratch))
            k = find_kernel(impl->isa, &program->steps[i]);
        e->steps[i].step = program->steps[i];
        step_bind(e, &e->steps[i], k);
    }
    *out = e;
    return TN_OK;
}

// A program that gives OpenBLAS several threads after all takes it away from us.
static void leave_openblas(const cpu_impl *impl, tn_executable *e)
{
    tn_log(e->device->ctx, TN_LOG_WARN,
           "cpu: the program has given OpenBLAS more threads; products run by the kernels here from now on");
    e->by_openblas = false;
    for (int32_t i = 0; i < e->n_steps; i++)
        step_bind(e, &e->steps[i], find_kernel(impl->isa, &e->steps[i].step));
}

static tn_status cpu_submit(tn_device *device, tn_executable *e, const tn_submit_options *options)
{
    const cpu_impl *impl = device->impl;
    if (e->by_openblas && !tn_openblas_is_alone(impl->openblas)) leave_openblas(impl, e);
    tn_cpu_program program = {.steps = e->steps,
                              .n_steps = e->n_steps,
                              .scratch = e->scratch ? e->scratch->data : NULL,
                              .has_bf16 = impl->has_bf16,
                              .alike = impl->alike,
                              .level = impl->isa,
                              .openblas = tn_openblas_api_get(impl->openblas)};
    e->status = tn_cpu_run(device->ctx, &program, options);
    return TN_OK;
}

static tn_status cpu_wait(tn_device *device, tn_executable *e)
{
    TN_UNUSED(device);
    return e->status;
}

const tn_backend tn_backend_cpu = {
    .name = "cpu",
    .role = TN_BACKEND_HOST,
    .rows_alike = TN_MATMUL_ROWS_ALIKE,
    .open = cpu_open,
    .close = cpu_close,
    .memory_free = cpu_memory_free,
    .details = cpu_details,
    .buffer_create = cpu_buffer_create,
    .deterministic = true,
    .buffer_destroy = cpu_buffer_destroy,
    .buffer_write = cpu_buffer_write,
    .buffer_read = cpu_buffer_read,
    .precisions = cpu_precisions,
    .accepts = cpu_accepts,
    .prepare = cpu_prepare,
    .scratch_size = cpu_scratch_size,
    .executable_destroy = cpu_executable_destroy,
    .kernel_name = cpu_kernel_name,
    .rounding = cpu_rounding,
    .submit = cpu_submit,
    .wait = cpu_wait,
};
