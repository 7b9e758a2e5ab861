// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables that the host makes for shaders: grids of the codebook formats, and angles of rope.
//
// A float holds the product of a position and a frequency too coarsely for the angle of a far position, and
// few devices have doubles. So the host gives the turn of each pair from one position to the next as a
// fraction of a full turn in 64 bits: its product with the position wraps around where the turns do, and
// loses nothing.
#include "backends/vulkan/runtime/device.h"
#include "core/device.h"
#include "ops/ops.h"
#include "ops/quant_tables.h"
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
    tn_mutex_lock(&v->lock);
    struct tn_vk_rope_angles *a = v->angles;
    while (a && memcmp(&a->params, p, sizeof *p) != 0) a = a->next;
    tn_status status = TN_OK;
    if (!a) {
        a = tn_calloc(v->device->ctx, 1, sizeof *a);
        status = a ? make(v, p, a) : TN_ERR_MEMORY;
        if (status != TN_OK) tn_free(v->device->ctx, a);
    }
    if (status == TN_OK) *address = a->memory.address;
    tn_mutex_unlock(&v->lock);
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

// The order is that of the GRID_ constants of shaders/dequant.glsl.
tn_status tn_vk_tables_create(tn_vk *v)
{
    const struct {
        const uint16_t *grid;
        size_t size;
    } grids[] = {{tn_iq2xxs_grid, sizeof tn_iq2xxs_grid}, {tn_iq2xs_grid, sizeof tn_iq2xs_grid},
                 {tn_iq2s_grid, sizeof tn_iq2s_grid},     {tn_iq3xxs_grid, sizeof tn_iq3xxs_grid},
                 {tn_iq3s_grid, sizeof tn_iq3s_grid},     {tn_iq1_grid, sizeof tn_iq1_grid}};
    size_t size = 0;
    for (size_t i = 0; i < TN_COUNT(grids); i++) size += grids[i].size;
    tn_status status = tn_vk_memory_create(v, size, true, &v->tables);
    if (status != TN_OK) return status;
    char *at = v->tables.mapped;
    for (size_t i = 0; i < TN_COUNT(grids); at += grids[i].size, i++)
        memcpy(at, grids[i].grid, grids[i].size);
    return TN_OK;
}
