// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The modes of matrix products, from precision.def.
#include "core/backend.h"

#include <string.h>
#include <tenon/precision.h>

typedef struct mode {
    const char *name, *what;
    double nmse;
} mode;

static const mode modes[TN_PRECISION_COUNT] = {
#define TN_PRECISION(name, nmse, what) {#name, what, nmse},
#include <tenon/precision.def>
};

static const mode *find(int32_t precision)
{
    static const mode none = {"?", "", 0.0};
    return precision >= 0 && precision < TN_PRECISION_COUNT ? &modes[precision] : &none;
}

const char *tn_precision_name(int32_t precision)
{
    return find(precision)->name;
}

int32_t tn_precision_by_name(const char *name)
{
    if (!name) return -1;
    for (int32_t i = 0; i < TN_PRECISION_COUNT; i++)
        if (strcmp(modes[i].name, name) == 0) return i;
    return -1;
}

double tn_precision_nmse(int32_t precision)
{
    return find(precision)->nmse;
}

const char *tn_precision_text(int32_t precision)
{
    return find(precision)->what;
}

int32_t tn_device_has_precision(const tn_device *device, int32_t precision)
{
    if (!device) return 0;
    if (precision < 0 || precision >= TN_PRECISION_COUNT) return 0;
    uint32_t has = device->backend->precisions ? device->backend->precisions(device) : 0;
    return precision == TN_PRECISION_auto || (has >> precision & 1) != 0;
}
