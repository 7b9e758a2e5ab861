// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What rope and norm_rope share.
#ifndef TN_OPS_ROPE_H
#define TN_OPS_ROPE_H

#include "ops/operands.h"

// Shape rule and rotation both receive the index of the positions among the sources; the factors follow them.
_Static_assert(TN_SRC_rope_factors == TN_SRC_rope_pos + 1, "the factors follow the positions");
_Static_assert(TN_SRC_norm_rope_factors == TN_SRC_norm_rope_pos + 1, "the factors follow the positions");
tn_status tn_infer_rope_common(tn_context *ctx, tn_step *step, const tn_rope_params *p, int32_t pos);
// Angle of pair t at a position.
double tn_scalar_rope_angle(const tn_rope_params *p, int64_t position, int32_t t, double factor);
// Rotates one head of one token; load gives element j of the input.
void tn_ref_rotate_row(const tn_step *step, const tn_rope_params *p, int32_t pos, int64_t token, int64_t head,
                       double (*load)(const tn_step *step, int64_t token, int64_t head, int64_t j));

#endif
