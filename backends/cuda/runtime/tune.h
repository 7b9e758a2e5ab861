// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which of several kernels that accept a step is the fastest on this device. It is found by timing and kept
// in a file in the user's cache directory, one for each device and driver. Without a file the first row of
// kernels.def runs.
#ifndef TN_CUDA_TUNE_H
#define TN_CUDA_TUNE_H

#include "backends/cuda/runtime/kernel.h"

// Reads the file of the device, if the context has a directory for it. A file that is damaged or of another
// version counts as absent.
void tn_cuda_tuning_load(tn_cuda *c);
void tn_cuda_tuning_free(tn_cuda *c);
// The kernel that was the fastest for steps like this one; NULL: they were not timed.
const tn_cuda_kernel *tn_cuda_tuned(const tn_cuda *c, const tn_step *step);
// Times the candidates of every step that was not timed before and writes the file. Results of the steps are
// spoiled: to be called before they mean anything.
TN_MUST_USE tn_status tn_cuda_tune(tn_cuda *c, const tn_program *program, const tn_buffer *scratch);

#endif
