// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the block types: rows of any values are encoded, with or without importances, and any bytes are
// decoded. Finite values give blocks that are valid and decode to finite values; the same input gives the
// same bytes. Most rows have the 256 values of the longest blocks, some have twice as many.
#include "core/fp16.h"
#include "ops/quant.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

enum { ROW_MAX = 512, BYTES_MAX = ROW_MAX * 8, LEAST = 4 };

// Values of the input, repeated, as f32 of any bits or as small multiples of a scale.
static bool read_row(const uint8_t *data, size_t size, bool small, float *x, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        uint8_t b[4];
        for (size_t k = 0; k < 4; k++) b[k] = data[(i * 4 + k) % size];
        if (small)
            x[i] = (float)(int8_t)b[0] * ldexpf(1.0f, (int8_t)data[0] / 8);
        else
            memcpy(&x[i], b, sizeof x[i]);
        // Scales are stored as f16, and in Q8_1 the sum of 32 values is: no more than these can be.
        finite = finite && isfinite(x[i]) && fabsf(x[i]) < 2000.0f;
    }
    return finite;
}

static void encode(const tn_quant_info *info, tn_dtype type, const float *x, const float *weights, size_t n,
                   bool finite)
{
    uint8_t first[BYTES_MAX], second[BYTES_MAX];
    float y[ROW_MAX];
    size_t size = tn_dtype_row_size(type, (int64_t)n);
    memset(first, 0xa5, sizeof first);
    memset(second, 0x5a, sizeof second);
    info->from_f32(x, first, (int64_t)n, weights);
    info->from_f32(x, second, (int64_t)n, weights);
    fuzz_must(memcmp(first, second, size) == 0 && first[size] == 0xa5);
    if (!finite) return;
    info->to_f32(first, y, (int64_t)n);
    fuzz_must(tn_quant_row_valid(type, first, (int64_t)n));
    for (size_t i = 0; i < n; i++) fuzz_must(isfinite(y[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float x[ROW_MAX], weights[ROW_MAX], y[ROW_MAX];
    if (size < LEAST + 4) return 0;
    size_t row = data[3] % 8 == 0 ? ROW_MAX : ROW_MAX / 2;
    tn_dtype type = (tn_dtype)(data[0] % TN_TYPE_COUNT);
    const tn_quant_info *info = tn_quant_info_get(type);
    if (!info || !info->to_f32 || tn_dtype_row_size(type, ROW_MAX) >= BYTES_MAX) return 0;
    uint8_t packed[BYTES_MAX];
    size_t n = tn_dtype_row_size(type, (int64_t)row);
    for (size_t i = 0; i < n; i++) packed[i] = data[LEAST + i % (size - LEAST)];
    uint8_t *copy = fuzz_copy(packed, n); // a read behind it is seen
    info->to_f32(copy, y, (int64_t)row);
    volatile bool valid = tn_quant_row_valid(type, copy, (int64_t)row);
    TN_UNUSED(valid);
    free(copy);
    if (!info->from_f32) return 0;
    bool finite = read_row(data + LEAST, size - LEAST, data[1] & 1, x, row);
    // Importances are positive and finite (tn_imatrix_read).
    bool weighted = data[1] & 2;
    for (size_t i = 0; i < row && weighted; i++)
        weights[i] = ldexpf(1.0f + data[i % size], (int8_t)data[2] / 4);
    encode(info, type, x, weighted ? weights : NULL, row, finite);
    return 0;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = LEAST + 4 + fuzz_random(state) % 256;
    if (max < n) return 0;
    for (size_t i = 0; i < n; i++) out[i] = (uint8_t)(fuzz_random(state) >> 24);
    return n;
}

#include "tests/fuzz/fuzz_main.h"
