// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/runtime/select.h"

#include "backends/cuda/runtime/staged.h"
#include "backends/cuda/runtime/tune.h"
#include "core/device.h"
#include "ops/ops.h"

// --- precision ---------------------------------------------------------------------------------------

enum {
    ROUNDS_16 = TN_CUDA_ROUNDS_BF16 | TN_CUDA_ROUNDS_F16 | TN_CUDA_ROUNDS_WEIGHTS_F16,
    ROUNDS = ROUNDS_16 | TN_CUDA_ROUNDS_I8 | TN_CUDA_ROUNDS_TF32 | TN_CUDA_ROUNDS_E4M3,
};

// For each precision that a product can ask for: the flags of the kernels that may run it, the flags of those
// that are selected before a kernel that rounds less, and the compute capability from which the device has
// it.
static const struct {
    int32_t allows, prefers, compute;
} precisions[TN_PRECISION_COUNT] = {
    [TN_PRECISION_auto] = {ROUNDS_16 | TN_CUDA_ROUNDS_I8, 0, 0},
    [TN_PRECISION_f32] = {0, 0, 1},
    [TN_PRECISION_tf32] = {TN_CUDA_ROUNDS_TF32, TN_CUDA_ROUNDS_TF32, 80},
    [TN_PRECISION_bf16] = {TN_CUDA_ROUNDS_BF16, TN_CUDA_ROUNDS_BF16, 80},
    [TN_PRECISION_f16] = {TN_CUDA_ROUNDS_F16 | TN_CUDA_ROUNDS_WEIGHTS_F16, TN_CUDA_ROUNDS_F16, 75},
    [TN_PRECISION_fp8] = {ROUNDS_16 | TN_CUDA_ROUNDS_I8 | TN_CUDA_ROUNDS_E4M3, TN_CUDA_ROUNDS_E4M3, 89},
    [TN_PRECISION_int8] = {ROUNDS_16 | TN_CUDA_ROUNDS_I8, TN_CUDA_ROUNDS_I8, 1},
};

uint32_t tn_cuda_precisions(const tn_device *device)
{
    uint32_t has = 0;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (precisions[i].compute > 0 && tn_cuda_of(device)->compute >= precisions[i].compute) has |= 1u << i;
    return has;
}

int32_t tn_cuda_rounding(const tn_device *device, const tn_step *step)
{
    static const struct {
        int32_t flag, precision;
    } by_flag[] = {
        {TN_CUDA_ROUNDS_I8, TN_PRECISION_int8},  {TN_CUDA_ROUNDS_BF16, TN_PRECISION_bf16},
        {TN_CUDA_ROUNDS_F16, TN_PRECISION_f16},  {TN_CUDA_ROUNDS_TF32, TN_PRECISION_tf32},
        {TN_CUDA_ROUNDS_E4M3, TN_PRECISION_fp8},
    };
    const tn_cuda_kernel *k = tn_cuda_kernel_find(tn_cuda_of(device), step);
    for (size_t i = 0; k && i < TN_COUNT(by_flag); i++)
        if (k->flags & by_flag[i].flag) return by_flag[i].precision;
    return TN_PRECISION_f32;
}

// --- selection ---------------------------------------------------------------------------------------

static bool has_flags(const tn_cuda_kernel *k, int32_t flags)
{
    return (k->flags & flags) == flags;
}

// The first row that can do what step->join says and accepts the step within its precision: among the rows
// that only tuning selects, or among the others.
static const tn_cuda_kernel *first_kernel(const tn_cuda *cuda, const tn_step *step, bool only_tuned)
{
    int32_t allows = precisions[step->precision].allows, prefers = precisions[step->precision].prefers;
    int32_t joins = tn_cuda_join_flags(step);
    const tn_cuda_kernel *rounds_less = NULL;
    for (int32_t i = 0; i < cuda->kernels->n_rows; i++) {
        const tn_cuda_kernel *k = &cuda->kernels->rows[i];
        if (!tn_op_set_has(k->set, step->op) || (k->flags & ROUNDS & ~allows)) continue;
        if (!has_flags(k, joins)) continue;
        if (((k->flags & TN_CUDA_ONLY_TUNED) != 0) != only_tuned || !k->accepts(cuda, step)) continue;
        if (!prefers || (k->flags & prefers)) return k;
        if (!rounds_less) rounds_less = k;
    }
    return rounds_less;
}

static const tn_cuda_kernel *default_kernel(const tn_cuda *cuda, const tn_step *step)
{
    const tn_cuda_kernel *k = cuda->variant.cublas_first ? first_kernel(cuda, step, true) : NULL;
    return k ? k : first_kernel(cuda, step, false);
}

const tn_cuda_kernel *tn_cuda_kernel_find(const tn_cuda *cuda, const tn_step *step)
{
    // Tuning compares all kernels that may run when no precision is asked for, so its answers hold for no
    // other.
    const tn_cuda_kernel *tuned = step->precision == TN_PRECISION_auto ? tn_cuda_tuned(cuda, step) : NULL;
    return tuned && has_flags(tuned, tn_cuda_join_flags(step)) ? tuned : default_kernel(cuda, step);
}

const tn_cuda_kernel *tn_cuda_kernel_select(const tn_cuda *cuda, const tn_step *step, size_t scratch_size)
{
    const tn_cuda_kernel *k = tn_cuda_kernel_find(cuda, step);
    // What was tuned after the scratch was allocated may need more of it.
    if (k && k->scratch(cuda, step) > scratch_size) return first_kernel(cuda, step, false);
    if (k && (k->flags & TN_CUDA_ONLY_TUNED) && cuda->kernels->prepare_tuned(cuda, step) != TN_OK) {
        char why[300];
        tn_context_error(cuda->device->ctx, why, sizeof why);
        tn_log(cuda->device->ctx, TN_LOG_WARN, "%s; another kernel runs %s", why,
               step->name ? step->name : tn_op_name(step->op));
        return first_kernel(cuda, step, false);
    }
    return k;
}

static size_t step_scratch_size(const tn_cuda *cuda, const tn_step *step)
{
    const tn_cuda_kernel *found = tn_cuda_kernel_find(cuda, step);
    // Kernels of cuBLASLt may fail, and then the first of the other rows runs.
    bool may_fail = found && (found->flags & TN_CUDA_ONLY_TUNED);
    const tn_cuda_kernel *spare = may_fail ? first_kernel(cuda, step, false) : NULL;
    bool tunes = tn_context_tunes(cuda->device->ctx); // then every candidate runs once
    size_t size = 0;
    for (int32_t i = 0; i < cuda->kernels->n_rows; i++) {
        const tn_cuda_kernel *k = &cuda->kernels->rows[i];
        bool candidate = tunes && tn_op_set_has(k->set, step->op) && k->accepts(cuda, step);
        size_t need = k == found || k == spare || candidate ? k->scratch(cuda, step) : 0;
        size = TN_MAX(size, need);
    }
    return size;
}

size_t tn_cuda_kernel_scratch_size(const tn_cuda *cuda, const tn_program *program)
{
    size_t size = 0;
    for (int32_t i = 0; i < program->n_steps; i++) {
        size_t need = step_scratch_size(cuda, &program->steps[i]);
        size = TN_MAX(size, need);
    }
    return size;
}

// --- what the rest of tenon asks ---------------------------------------------------------------------

bool tn_cuda_accepts(const tn_device *device, const tn_step *step)
{
    return tn_cuda_kernel_find(tn_cuda_of(device), step) != NULL;
}

const char *tn_cuda_kernel_name(const tn_device *device, const tn_step *step)
{
    const tn_cuda_kernel *k = tn_cuda_kernel_find(tn_cuda_of(device), step);
    return k ? k->name : "none";
}
