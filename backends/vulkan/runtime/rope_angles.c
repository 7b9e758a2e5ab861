// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Angles of rope, prepared by the host: a float holds the product of a position and a frequency too coarsely,
// and few devices have doubles. As fractions of a turn in 64 bits, products wrap around where turns do, so
// nothing is lost.
#include "backends/vulkan/runtime/device.h"
#include "ops/ops.h"
#include "ops/rope.h"

#include <math.h>
#include <string.h>

struct tn_vk_rope_angles {
    tn_rope_params params;
    tn_vk_memory memory;
    struct tn_vk_rope_angles *next;
};

// The angle of every pair is proportional to the position, with YaRN too.
static uint64_t turn_of(const tn_rope_params *p, int32_t t)
{
    double turns = tn_scalar_rope_angle(p, 1, t, 1.0) * 0.15915494309189533577; // 1 / 2 pi
    return (uint64_t)ldexp(turns - floor(turns), 64);
}

static tn_status make(tn_vk *v, const tn_rope_params *p, struct tn_vk_rope_angles *a)
{
    tn_status status = tn_vk_memory_create(v, (size_t)(p->n_rot / 2) * sizeof(uint64_t), true, &a->memory);
    if (status != TN_OK) return status;
    a->params = *p;
    for (int32_t t = 0; t < p->n_rot / 2; t++) ((uint64_t *)a->memory.mapped)[t] = turn_of(p, t);
    a->next = v->angles;
    v->angles = a;
    return TN_OK;
}

tn_status tn_vk_rope_angles_get(tn_vk *v, const tn_rope_params *p, uint64_t *address)
{
    mtx_lock(&v->lock);
    struct tn_vk_rope_angles *a = v->angles;
    while (a && memcmp(&a->params, p, sizeof *p) != 0) a = a->next;
    tn_status status = TN_OK;
    if (!a) {
        a = tn_calloc(v->device->ctx, 1, sizeof *a);
        status = a ? make(v, p, a) : TN_ERR_MEMORY;
        if (status != TN_OK) tn_free(v->device->ctx, a);
    }
    if (status == TN_OK) *address = a->memory.address;
    mtx_unlock(&v->lock);
    return status;
}

void tn_vk_rope_angles_free(tn_vk *v)
{
    while (v->angles) {
        struct tn_vk_rope_angles *a = v->angles;
        v->angles = a->next;
        tn_vk_memory_destroy(v, &a->memory);
        tn_free(v->device->ctx, a);
    }
}
