// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of row converters, and the check of packed rows.
#include "ops/quant.h"

#include "core/compiler.h"
#include "ops/quant/quant_formats.h"

// Whether a packed row of n blocks is valid; `size` bytes per block.
typedef bool (*row_check)(const uint8_t *b, int64_t n, size_t size, const int *scale_off);

typedef struct quant_row {
    tn_quant_info info;
    row_check check;  // NULL: every bit pattern is valid
    int scale_off[2]; // where a block's f16 scales are, for check_f16_scales; twice the same if there is one
} quant_row;

static bool f16_finite(const uint8_t *p)
{
    return (tn_load_u16(p) & 0x7c00u) != 0x7c00u;
}

static bool check_f16_scales(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    for (int64_t i = 0; i < n; i++, b += size) {
        if (!f16_finite(b + scale_off[0]) || !f16_finite(b + scale_off[1])) return false;
    }
    return true;
}

static bool check_f32(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++, b += size) bad |= (tn_load_u32(b) & 0x7f800000u) == 0x7f800000u;
    return !bad;
}

static bool check_bf16(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    uint32_t bad = 0;
    for (int64_t i = 0; i < n; i++, b += size) bad |= (tn_load_u16(b) & 0x7f80u) == 0x7f80u;
    return !bad;
}

// Finite also as f32, which is how the values are used.
static bool check_f64(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    for (int64_t i = 0; i < n; i++, b += size) {
        float v;
        tn_decode_F64(b, &v, 1);
        if (!isfinite(v)) return false;
    }
    return true;
}

// Exponents above 252 overflow: 2^(253 - 128) * 12 > 2^128. 255 is no number.
static bool check_mxfp4(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    for (int64_t i = 0; i < n; i++, b += size) {
        if (b[0] > 252) return false;
    }
    return true;
}

// The scales have no sign bit.
static bool check_nvfp4(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    for (int64_t i = 0; i < n; i++, b += size) {
        if ((b[0] | b[1] | b[2] | b[3]) & 0x80) return false;
    }
    return true;
}

// The scale's exponent lies in the top nibbles of the last two words.
static bool check_iq1_m(const uint8_t *b, int64_t n, size_t size, const int *scale_off)
{
    TN_UNUSED(scale_off);
    for (int64_t i = 0; i < n; i++, b += size) {
        uint32_t top = (uint32_t)(b[53] >> 4) << 8 | (uint32_t)(b[55] >> 4) << 12;
        if ((top & 0x7c00u) == 0x7c00u) return false;
    }
    return true;
}

// clang-format off
#define BOTH(name) {tn_decode_##name, tn_encode_##name}
#define READ(name) {tn_decode_##name, NULL}
static const quant_row rows[TN_TYPE_COUNT] = {
    [TN_TYPE_F32]     = {BOTH(F32),     check_f32,        {0, 0}},
    [TN_TYPE_F16]     = {BOTH(F16),     check_f16_scales, {0, 0}},
    [TN_TYPE_BF16]    = {BOTH(BF16),    check_bf16,       {0, 0}},
    [TN_TYPE_F64]     = {READ(F64),     check_f64,        {0, 0}},
    [TN_TYPE_I8]      = {READ(I8),      NULL,             {0, 0}},
    [TN_TYPE_I16]     = {READ(I16),     NULL,             {0, 0}},
    [TN_TYPE_I32]     = {READ(I32),     NULL,             {0, 0}},
    [TN_TYPE_I64]     = {READ(I64),     NULL,             {0, 0}},
    [TN_TYPE_Q4_0]    = {BOTH(Q4_0),    check_f16_scales, {0, 0}},
    [TN_TYPE_Q4_1]    = {BOTH(Q4_1),    check_f16_scales, {0, 2}},
    [TN_TYPE_Q5_0]    = {BOTH(Q5_0),    check_f16_scales, {0, 0}},
    [TN_TYPE_Q5_1]    = {BOTH(Q5_1),    check_f16_scales, {0, 2}},
    [TN_TYPE_Q8_0]    = {BOTH(Q8_0),    check_f16_scales, {0, 0}},
    [TN_TYPE_Q8_1]    = {BOTH(Q8_1),    check_f16_scales, {0, 2}},
    [TN_TYPE_Q2_K]    = {BOTH(Q2_K),    check_f16_scales, {80, 82}},
    [TN_TYPE_Q3_K]    = {BOTH(Q3_K),    check_f16_scales, {108, 108}},
    [TN_TYPE_Q4_K]    = {BOTH(Q4_K),    check_f16_scales, {0, 2}},
    [TN_TYPE_Q5_K]    = {BOTH(Q5_K),    check_f16_scales, {0, 2}},
    [TN_TYPE_Q6_K]    = {BOTH(Q6_K),    check_f16_scales, {208, 208}},
    [TN_TYPE_Q8_K]    = {BOTH(Q8_K),    check_f32,        {0, 0}},
    [TN_TYPE_IQ4_NL]  = {BOTH(IQ4_NL),  check_f16_scales, {0, 0}},
    [TN_TYPE_IQ4_XS]  = {BOTH(IQ4_XS),  check_f16_scales, {0, 0}},
    [TN_TYPE_MXFP4]   = {BOTH(MXFP4),   check_mxfp4,      {0, 0}},
    [TN_TYPE_IQ2_XXS] = {READ(IQ2_XXS), check_f16_scales, {0, 0}},
    [TN_TYPE_IQ2_XS]  = {READ(IQ2_XS),  check_f16_scales, {0, 0}},
    [TN_TYPE_IQ2_S]   = {READ(IQ2_S),   check_f16_scales, {0, 0}},
    [TN_TYPE_IQ3_XXS] = {READ(IQ3_XXS), check_f16_scales, {0, 0}},
    [TN_TYPE_IQ3_S]   = {READ(IQ3_S),   check_f16_scales, {0, 0}},
    [TN_TYPE_IQ1_S]   = {READ(IQ1_S),   check_f16_scales, {0, 0}},
    [TN_TYPE_IQ1_M]   = {READ(IQ1_M),   check_iq1_m,      {0, 0}},
    [TN_TYPE_TQ1_0]   = {BOTH(TQ1_0),   check_f16_scales, {52, 52}},
    [TN_TYPE_TQ2_0]   = {BOTH(TQ2_0),   check_f16_scales, {64, 64}},
    [TN_TYPE_NVFP4]   = {BOTH(NVFP4),   check_nvfp4,      {0, 0}},
    [TN_TYPE_Q1_0]    = {BOTH(Q1_0),    check_f16_scales, {0, 0}},
    [TN_TYPE_Q2_0]    = {BOTH(Q2_0),    check_f16_scales, {0, 0}},
};
// clang-format on

const tn_quant_info *tn_quant_info_get(tn_dtype type)
{
    static const tn_quant_info none = {NULL, NULL};
    return type >= 0 && type < TN_TYPE_COUNT ? &rows[type].info : &none;
}

bool tn_quant_row_valid(tn_dtype type, const void *x, int64_t n)
{
    if (type < 0 || type >= TN_TYPE_COUNT) return false;
    const quant_row *row = &rows[type];
    int64_t block = tn_dtype_block_elems(type);
    return !row->check || row->check(x, n / block, tn_dtype_block_size(type), row->scale_off);
}
