// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which kernels round the activations of a matrix product, and to what: the one thing about kernels that the
// interface of backends does not say. A backend with such kernels has a row here.
#include "backends/cpu/kernel.h"
#include "backends/cpu/matmul.h"
#include "tests/check/check.h"

#include <string.h>

// Several rows may share a launch function: the one that takes the step says.
static check_round_fn cpu_rounding(const tn_step *step, const char *name)
{
    int32_t n;
    const tn_cpu_kernel *kernels = tn_cpu_kernels(&n);
    for (int32_t i = 0; i < n; i++) {
        const tn_cpu_kernel *k = &kernels[i];
        bool runs = k->op == step->op && strcmp(k->name, name) == 0 && k->accepts(step);
        if (runs && (k->flags & TN_CPU_QUANTISES)) return tn_matmul_round_row;
    }
    return NULL;
}

static const struct {
    const char *backend;
    check_round_fn (*rounding)(const tn_step *step, const char *kernel);
} rows[] = {
    {"cpu", cpu_rounding},
};

check_round_fn check_rounding(const tn_device *device, const tn_step *step)
{
    for (size_t i = 0; i < TN_COUNT(rows); i++)
        if (strcmp(rows[i].backend, device->backend->name) == 0)
            return rows[i].rounding(step, device->backend->kernel_name(device, step));
    return NULL;
}
