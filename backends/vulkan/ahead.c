// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/ahead.h"
#include "core/device.h"
#include "ops/ops.h"

enum { FEW_ROWS = 8, UNIT = 16, GROUP_UNITS = 256 * 8 }; // of a workgroup of shaders/ahead.comp
// Bytes for all products behind a step: what the caches of a large device keep until they are read.
enum { MOST = 16 << 20 };

static bool is_product(const tn_step *step)
{
    return step->op == TN_OP_matmul || step->op == TN_OP_linear || step->op == TN_OP_matmul_multi ||
           step->op == TN_OP_matmul_glu;
}

// Codes of the first weight that a step reads, from their start on. 0: of none.
static int64_t codes_of(const tn_step *step, uint64_t *at)
{
    if (!is_product(step)) return 0;
    tn_vk_weight planes;
    tn_vk_weight_planes(&step->src[1], &planes);
    *at = planes.plane[0];
    return planes.plane[0] % UNIT == 0 ? planes.row_size[0] * tn_view_n_rows(&step->src[1]) : 0;
}

int64_t tn_vk_ahead(const tn_vk *v, const tn_program *program, int32_t i, int32_t k, tn_vk_args *record)
{
    const tn_step *step = &program->steps[i];
    if (v->device->software || step->op != TN_OP_attention || step->src[0].ne[1] > FEW_ROWS) return 0;
    int64_t left = MOST;
    for (int32_t j = 0; j <= k && i + 1 + j < program->n_steps; j++) {
        uint64_t at = 0;
        int64_t units = TN_MIN(codes_of(&program->steps[i + 1 + j], &at), left) / UNIT;
        left -= units * UNIT;
        if (units == 0) return 0;
        if (j < k) continue;
        *record = (tn_vk_args){.src[0].data = at, .n[0] = (int32_t)units};
        return (units + GROUP_UNITS - 1) / GROUP_UNITS;
    }
    return 0;
}
