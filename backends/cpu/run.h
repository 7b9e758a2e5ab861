// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs a list of steps on the threads of a context.
#ifndef TN_CPU_RUN_H
#define TN_CPU_RUN_H

#include "backends/cpu/kernel.h"
#include "core/backend.h"

typedef struct tn_cpu_step {
    tn_step step;
    tn_cpu_launch_fn launch;
    tn_cpu_parts_fn parts;
} tn_cpu_step;

typedef struct tn_cpu_program {
    const tn_cpu_step *steps;
    int32_t n_steps;
    void *scratch;        // shared by the threads; NULL: no step needs any
    bool has_bf16, alike; // as in tn_cpu_task
    int32_t level;
    const struct tn_openblas_api *openblas;
} tn_cpu_program;

// TN_ERR_CANCELLED: options->cancel was set, and some step was left out or incomplete. TN_ERR_MEMORY: no
// thread could be started.
TN_MUST_USE tn_status tn_cpu_run(tn_context *ctx, const tn_cpu_program *program,
                                 const tn_submit_options *options);

#endif
