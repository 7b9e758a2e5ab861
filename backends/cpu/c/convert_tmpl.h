// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of F32, F16, BF16, Q8_0 and Q4_0 to and from f32 on vectors; other types go through ops/quant.h.
// Bits equal those of ops/quant.h. Q8_0: f16 d, 32 i8; Q4_0: f16 d, 16 bytes, byte j holds element j in its
// low and j + 16 in its high nibble, both less 8.
#include "core/fp16.h"
#include "ops/quant.h"

#include <string.h>

enum { QUANT_BLOCK = 32, Q8_0_SIZE = 34, Q4_0_SIZE = 18 };

typedef void (*to_f32_fn)(const void *x, float *y, int64_t n);
typedef void (*from_f32_fn)(const float *x, void *y, int64_t n);

static inline void from_f32_f32(const float *x, void *y, int64_t n)
{
    memcpy(y, x, (size_t)n * sizeof *x);
}

static inline void to_f32_f16(const void *x, float *y, int64_t n)
{
    const uint8_t *p = x;
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store(y + i, vf_load_f16(p + 2 * i));
    for (; i < n; i++) y[i] = tn_load_f16(p + 2 * i);
}

static inline void to_f32_bf16(const void *x, float *y, int64_t n)
{
    const uint8_t *p = x;
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store(y + i, vf_load_bf16(p + 2 * i));
    for (; i < n; i++) y[i] = tn_bf16_to_f32(tn_load_u16(p + 2 * i));
}

static inline void to_f32_q8_0(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += QUANT_BLOCK, b += Q8_0_SIZE) {
        vf d = vf_set1_f16(b);
        for (int j = 0; j < QUANT_BLOCK; j += VEC_N) vf_store(y + i + j, vf_mul(d, vf_load_i8(b + 2 + j)));
    }
}

static inline void to_f32_q4_0(const void *x, float *y, int64_t n)
{
    const uint8_t *b = x;
    for (int64_t i = 0; i < n; i += QUANT_BLOCK, b += Q4_0_SIZE) {
        vf d = vf_set1_f16(b);
        for (int j = 0; j < QUANT_BLOCK / 2; j += VEC_N) {
            vf_store(y + i + j, vf_mul(d, vf_load_low4(b + 2 + j)));
            vf_store(y + i + j + QUANT_BLOCK / 2, vf_mul(d, vf_load_high4(b + 2 + j)));
        }
    }
}

static inline void from_f32_f16(const float *x, void *y, int64_t n)
{
    uint8_t *p = y;
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store_f16(p + 2 * i, vf_load(x + i));
    for (; i < n; i++) tn_store_u16(p + 2 * i, tn_f32_to_f16(x[i]));
}

static inline void from_f32_bf16(const float *x, void *y, int64_t n)
{
    uint8_t *p = y;
    int64_t i = 0;
    for (; i + VEC_N <= n; i += VEC_N) vf_store_bf16(p + 2 * i, vf_load(x + i));
    for (; i < n; i++) tn_store_u16(p + 2 * i, tn_f32_to_bf16(x[i]));
}

// Largest magnitude of a block; false if the block holds a NaN or infinity, or if dividing by the scale
// would overflow: ops/quant.h then says what its bytes are.
static inline bool block_range(const float *x, float *amax)
{
    vf top = vf_zero(), sum = vf_zero();
    for (int j = 0; j < QUANT_BLOCK; j += VEC_N) {
        vf a = vf_abs(vf_load(x + j));
        top = vf_max(top, a);
        sum = vf_add(sum, vf_mul(a, vf_zero())); // 0, or NaN for what is not finite
    }
    *amax = vf_hmax(top);
    return vf_sum(sum) == 0.0f && (*amax == 0.0f || *amax > 1e-30f);
}

static inline void from_f32_q8_0(const float *x, void *y, int64_t n)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += QUANT_BLOCK, b += Q8_0_SIZE) {
        float amax;
        if (TN_UNLIKELY(!block_range(x + i, &amax))) {
            tn_quant_info_get(TN_TYPE_Q8_0)->from_f32(x + i, b, QUANT_BLOCK, NULL);
            continue;
        }
        float d = amax / 127.0f;
        vf inverse = vf_set1(d != 0.0f ? 1.0f / d : 0.0f), half = vf_set1(0.5f), one = vf_set1(1.0f);
        int32_t q[QUANT_BLOCK];
        for (int j = 0; j < QUANT_BLOCK; j += VEC_N) {
            vf s = vf_mul(vf_load(x + i + j), inverse), t = vf_trunc(s);
            vm away = vm_le(half, vf_abs(vf_sub(s, t))); // ties away from zero
            t = vf_add(t, vf_select(away, vf_copysign(one, s), vf_zero()));
            vf_store_i32(q + j, vf_max(vf_set1(-127.0f), vf_min(vf_set1(127.0f), t)));
        }
        tn_store_u16(b, tn_f32_to_f16(d));
        for (int j = 0; j < QUANT_BLOCK; j++) b[2 + j] = (uint8_t)(int8_t)q[j];
    }
}

static inline void from_f32_q4_0(const float *x, void *y, int64_t n)
{
    uint8_t *b = y;
    for (int64_t i = 0; i < n; i += QUANT_BLOCK, b += Q4_0_SIZE) {
        float amax;
        if (TN_UNLIKELY(!block_range(x + i, &amax))) {
            tn_quant_info_get(TN_TYPE_Q4_0)->from_f32(x + i, b, QUANT_BLOCK, NULL);
            continue;
        }
        int first = 0; // of the values of largest magnitude the first one gives the sign
        while (first < QUANT_BLOCK - 1 && fabsf(x[i + first]) != amax) first++;
        float d = x[i + first] / -8.0f;
        vf inverse = vf_set1(d != 0.0f ? 1.0f / d : 0.0f), offset = vf_set1(8.5f);
        int32_t q[QUANT_BLOCK];
        for (int j = 0; j < QUANT_BLOCK; j += VEC_N) {
            vf s = vf_add(vf_mul(vf_load(x + i + j), inverse), offset);
            vf_store_i32(q + j, vf_max(vf_zero(), vf_min(vf_set1(15.0f), s)));
        }
        tn_store_u16(b, tn_f32_to_f16(d));
        for (int j = 0; j < QUANT_BLOCK / 2; j++) b[2 + j] = (uint8_t)(q[j] | q[j + QUANT_BLOCK / 2] << 4);
    }
}

// Converter of a type. F32 to itself is a copy.
static inline to_f32_fn to_f32_get(tn_dtype type)
{
    static const to_f32_fn fast[TN_TYPE_COUNT] = {
        [TN_TYPE_F16] = to_f32_f16,
        [TN_TYPE_BF16] = to_f32_bf16,
        [TN_TYPE_Q8_0] = to_f32_q8_0,
        [TN_TYPE_Q4_0] = to_f32_q4_0,
    };
    return fast[type] ? fast[type] : tn_quant_info_get(type)->to_f32;
}

// Only for the five types above.
static inline from_f32_fn from_f32_get(tn_dtype type)
{
    static const from_f32_fn fast[TN_TYPE_COUNT] = {
        [TN_TYPE_F32] = from_f32_f32,   [TN_TYPE_F16] = from_f32_f16,   [TN_TYPE_BF16] = from_f32_bf16,
        [TN_TYPE_Q8_0] = from_f32_q8_0, [TN_TYPE_Q4_0] = from_f32_q4_0,
    };
    return fast[type];
}
