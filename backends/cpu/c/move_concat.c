// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// concat: two F32 or I32 tensors joined along one axis. Copies of rows: one version serves every level.
// Work: one row of the result. Bytes: 8 per element; limit: memory.
#include "backends/cpu/accepts.h"
#include "backends/cpu/c/rows.h"
#include "backends/cpu/kernels.h"

#include <string.h>

static const char *source_row(const tn_view *v, const int64_t i[3])
{
    return (const char *)v->data + i[0] * v->nb[0] + i[1] * v->nb[1] + i[2] * v->nb[2];
}

void tn_concat_generic(const tn_cpu_task *task)
{
    const tn_step *step = task->step;
    const tn_concat_params *p = step->params;
    const tn_view *a = &step->src[0], *b = &step->src[1], *y = &step->dst[0];
    int32_t axis = TN_MAX_DIMS - y->n_dims + p->axis;
    size_t size = tn_dtype_block_size(y->dtype), a_size = (size_t)a->ne[3] * size,
           b_size = (size_t)b->ne[3] * size;
    int64_t first, last;
    rows_split(task, tn_view_n_rows(y), &first, &last);
    for (int64_t r = first; r < last; r++) {
        char *out = tn_view_row(y, r);
        int64_t i[3] = {r / y->ne[2] / y->ne[1], r / y->ne[2] % y->ne[1], r % y->ne[2]};
        if (axis == 3) {
            if (a_size > 0) memcpy(out, source_row(a, i), a_size);
            if (b_size > 0) memcpy(out + a_size, source_row(b, i), b_size);
        } else if (i[axis] < a->ne[axis]) {
            memcpy(out, source_row(a, i), a_size);
        } else {
            i[axis] -= a->ne[axis];
            memcpy(out, source_row(b, i), b_size);
        }
    }
}
