// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights in another form than the file's, which kernels would otherwise make again at each run: made when an
// executable is, kept as long as the buffer of the weight. They take memory beside the weights, so they are
// made only while a good part of the device's memory stays free.
#ifndef TN_CUDA_DERIVED_H
#define TN_CUDA_DERIVED_H

#include "backends/cuda/runtime/device.h"
#include "ops/step.h"

// Writes a weight in a form that the caller numbers to `to`, in order with the work on the stream.
typedef tn_status (*tn_cuda_derive_fn)(tn_cuda *c, const tn_view *w, int32_t form, void *to);

// The weight in that form, or NULL. The device owns it.
void *tn_cuda_derived_find(const tn_cuda *c, const tn_view *w, int32_t form);
// Makes it, `size` bytes, if it is not there, there is enough memory, and the view is all or part of what was
// written as a weight: results of steps and states change. TN_OK does not mean that it is there.
TN_MUST_USE tn_status tn_cuda_derived_make(tn_cuda *c, const tn_view *w, int32_t form, size_t size,
                                           tn_cuda_derive_fn make);
// Raises an event where memory was too short for weights since the last call, once for a device: kernels make
// those again at each run.
TN_MUST_USE tn_status tn_cuda_derived_report(tn_cuda *c);
// Bytes of what is derived from weights in [from, from + n).
uint64_t tn_cuda_derived_kept(const tn_cuda *c, const void *from, size_t n);
// A weight was written to [from, from + n): what is derived from it is made anew, where it is.
TN_MUST_USE tn_status tn_cuda_derived_update(tn_cuda *c, const void *from, size_t n);
// The memory [from, from + n) is about to be freed, and so is what is derived from it. No work uses it.
void tn_cuda_derived_drop(tn_cuda *c, const void *from, size_t n);
// Frees all when the device is closed.
void tn_cuda_derived_free(tn_cuda *c);

#endif
