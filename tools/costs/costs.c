// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/costs/costs.h"

void cost_add(cost_sum *sum, const tn_plan_step_info *s)
{
    sum->weights += (double)s->weights_read;
    sum->cache_read += (double)s->cache_read;
    sum->cache_written += (double)s->cache_written;
    sum->read += (double)s->read;
    sum->written += (double)s->written;
    sum->ops[TN_PRECISION_f32] += s->ops;
    if (s->precision >= 0 && s->precision < TN_PRECISION_COUNT) sum->ops[s->precision] += s->product_ops;
}

void cost_add_sum(cost_sum *sum, const cost_sum *other)
{
    sum->weights += other->weights;
    sum->cache_read += other->cache_read;
    sum->cache_written += other->cache_written;
    sum->read += other->read;
    sum->written += other->written;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++) sum->ops[i] += other->ops[i];
}

void cost_add_plan(cost_sum *sum, const tn_plan *plan, int64_t depth)
{
    tn_plan_step_info s = {.struct_size = sizeof s};
    for (int32_t i = 0; tn_plan_step_get(plan, i, depth, &s) == 1; i++) cost_add(sum, &s);
}

double cost_bytes(const cost_sum *s)
{
    return s->weights + s->cache_read + s->cache_written + s->read + s->written;
}

double cost_ops(const cost_sum *s)
{
    double sum = 0;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++) sum += s->ops[i];
    return sum;
}

int32_t cost_precision(const cost_sum *s)
{
    int32_t best = TN_PRECISION_f32;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (s->ops[i] > s->ops[best]) best = i;
    return best;
}

double cost_compute_time(const cost_sum *s, const peaks *p)
{
    double seconds = 0;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (s->ops[i] > 0 && peaks_rate(p, i) > 0) seconds += s->ops[i] / peaks_rate(p, i);
    return seconds;
}

double cost_memory_time(const cost_sum *s, const peaks *p)
{
    return p->read > 0 ? cost_bytes(s) / p->read : 0;
}

double cost_limit(const cost_sum *s, const peaks *p)
{
    double memory = cost_memory_time(s, p), compute = cost_compute_time(s, p);
    return memory > compute ? memory : compute;
}
