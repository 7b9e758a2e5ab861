// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The list of ops as an enum, from ops.def.
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include <tenon/params.h>

TN_EXTERN_C_BEGIN

enum {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results) TN_OP_##name,
#include <tenon/ops.def>
    TN_OP_COUNT
};

// Name of an op ("rms_norm"), "?" if out of range. Any thread.
TN_API const char *tn_op_name(int32_t op);

TN_EXTERN_C_END
#endif
