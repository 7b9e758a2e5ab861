// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The parameters of one op, whichever it is: a member for each op that has some. Device code includes it too.
#ifndef TN_OPS_ANY_PARAMS_H
#define TN_OPS_ANY_PARAMS_H

#include <tenon/params.h>

#define TN_ANY_PARAMS_P(name) tn_##name##_params name;
#define TN_ANY_PARAMS_N(name)
typedef union tn_any_params {
#define TN_OP(name, family, src_min, src_max, n_dst, par, tol, flags, sources, results)                      \
    TN_ANY_PARAMS_##par(name)
#include <tenon/ops.def>
} tn_any_params;

#endif
