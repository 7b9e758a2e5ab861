// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Precision of matrix products: how coarsely the operands of y = x w^T may be rounded before they are
// multiplied. It is a property of a plan (tn_plan_config.precision of graph.h) or a session
// (tn_session_config.precision of session.h).
//
//     tn_plan_config cfg;
//     tn_plan_config_default(&cfg);
//     cfg.precision = TN_PRECISION_f32;
//
// A mode is a limit and a requirement. The limit: no matmul rounds x or w more coarsely than the mode says;
// sums are in f32 in every mode (a little less precise inside the tensor cores of fp8). The requirement: the
// device has kernels for the mode; if it has none, making the plan or session fails with TN_ERR_UNSUPPORTED,
// and no other mode is used instead. If the device has the mode but a matmul does not fit its kernels (with
// one row of x, for example), a kernel that rounds less computes it: plans name the kernel of each step. AUTO
// lets the device decide. Weights have the values of the file in every mode: the loss of quantising the file
// is not part of this. Attention is not a matmul of this kind; its kernels are the same in all modes.
//
// The error of a mode is stated as NMSE, sum of (y' - y)^2 / sum of y^2 over the results of a product, for
// factors that are independent of each other. With p significant bits a rounded value is x (1 + a), |a| <=
// 2^-p, and so for both operands NMSE <= 2 * 2^-2p. int8 rounds each of 32 values by at most m / 254, m the
// largest of them, while their squares add up to m^2 at least: 32 / 254^2. The error of sums in f32 adds up
// to 1e-6. Measured values are about five times lower than these bounds.
#ifndef TENON_PRECISION_H
#define TENON_PRECISION_H

#include <tenon/context.h>

TN_EXTERN_C_BEGIN

enum {
#define TN_PRECISION(name, nmse, what) TN_PRECISION_##name,
#include <tenon/precision.def>
    TN_PRECISION_COUNT
};

// Name of a mode ("bf16"), "?" if out of range. Any thread.
TN_API const char *tn_precision_name(int32_t precision);
// Mode by name, or -1. Any thread.
TN_API int32_t tn_precision_by_name(const char *name);
// The stated bound of the NMSE of a product, 0 if out of range. Any thread.
TN_API double tn_precision_nmse(int32_t precision);
// What operands may be rounded to, in words; "" if out of range. Any thread.
TN_API const char *tn_precision_text(int32_t precision);
// 1 if the device has kernels for the mode, else 0. Every device has AUTO. Any thread.
TN_API int32_t tn_device_has_precision(const tn_device *device, int32_t precision);

TN_EXTERN_C_END
#endif
