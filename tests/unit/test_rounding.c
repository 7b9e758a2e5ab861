// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Activations rounded for quantised weights: each level gives the bits of portable C, and a format with units
// of 4 bytes holds the same values in another order.
#include "backends/cpu/product.h"
#include "core/cpu_features.h"
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

enum { K_MAX = 1024, SIZE_MAX_RECORD = 4 * K_MAX };

typedef struct record {
    uint8_t bytes[SIZE_MAX_RECORD] TN_ALIGNED(64);
} record;

static uint32_t rng = 1;

static float number(void)
{
    rng = rng * 1664525u + 1013904223u;
    return (float)((int32_t)rng >> 8) * 0x1p-23f;
}

// Blocks of many magnitudes; in a fourth of the cases one that is zero, tiny, infinite, or not a number.
static void fill(float *x, int32_t k, int32_t number_of_case)
{
    static const float special[] = {0.0f, -0.0f, 1e-36f, 1e-35f, INFINITY, -INFINITY, NAN, 3e38f};
    for (int32_t i = 0; i < k; i++) x[i] = ldexpf(number(), (i / 32 * 7 + number_of_case) % 60 - 30);
    if (number_of_case % 4 != 0) return;
    float value = special[number_of_case / 4 % (int32_t)TN_COUNT(special)];
    int32_t block = number_of_case / 32 % (k / 32), n = isfinite(value) && fabsf(value) < 1 ? 32 : 1;
    for (int32_t i = 0; i < n; i++) x[block * 32 + i] = value;
}

static tn_matmul_layout layout_of(int32_t k)
{
    tn_matmul_layout l = {.k = k, .k_pad = (k + 255) / 256 * 256};
    l.d_off = (size_t)l.k_pad;
    l.sum_off = l.d_off + (size_t)l.k_pad / 4;
    l.init_off = l.sum_off + (size_t)l.k_pad / 4;
    l.size = l.init_off + (size_t)l.k_pad / 4;
    return l;
}

static void round_all(const tn_matmul_isa *isa, const tn_matmul_format *f, const tn_matmul_layout *l,
                      const float *x, record *out)
{
    memset(out, 0xa5, sizeof *out);
    isa->quantise(f, l, x, out->bytes, 0, l->k_pad);
}

static void test_levels(const tn_matmul_isa *const *levels, size_t n_levels)
{
    static record want, got;
    for (int32_t i = 0; i < 600; i++) {
        float x[K_MAX];
        tn_matmul_format f = {
            .order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = i % 2 ? 16 : 32, .bias = i % 3 * 4};
        int32_t k = 32 * (1 + i * 5 % (K_MAX / 32));
        tn_matmul_layout l = layout_of(k);
        fill(x, k, i);
        round_all(&tn_matmul_isa_generic, &f, &l, x, &want);
        for (size_t n = 0; n < n_levels; n++) {
            round_all(levels[n], &f, &l, x, &got);
            if (!TEST_CHECK(memcmp(&want, &got, sizeof got) == 0)) printf("    case %d, level %zu\n", i, n);
        }
    }
}

// Against the natural order of portable C.
static void check_units(const tn_matmul_format *f, const tn_matmul_layout *l, const record *natural,
                        const record *got)
{
    int32_t n_sub = TN_MATMUL_GROUP / f->sub;
    for (int32_t g = 0; g < l->k_pad / TN_MATMUL_GROUP; g++) {
        const uint8_t *q = natural->bytes + g * TN_MATMUL_GROUP, *u = got->bytes + g * TN_MATMUL_GROUP;
        const float *d = (const float *)(const void *)(natural->bytes + l->d_off) + g * n_sub;
        const float *lanes = (const float *)(const void *)(got->bytes + l->d_off) + g * 16;
        const int32_t *init = (const int32_t *)(const void *)(got->bytes + l->init_off) + g * 16;
        int32_t sums[16] = {0};
        for (int32_t i = 0; i < 64; i++) {
            TEST_CHECK(memcmp(u + 4 * i, q + 4 * f->order[i], 4) == 0);
            for (int32_t j = 0; j < 4; j++) sums[i % 16] += (int8_t)u[4 * i + j];
        }
        for (int32_t i = 0; i < 16; i++)
            TEST_CHECK(memcmp(&lanes[i], &d[f->subs[i]], sizeof *d) == 0 && init[i] == -f->bias * sums[i]);
    }
    TEST_CHECK(memcmp(natural->bytes + l->sum_off, got->bytes + l->sum_off,
                      (size_t)l->k_pad / (size_t)f->sub * 4) == 0);
}

static void test_units(const tn_matmul_isa *isa)
{
    static record natural, got;
    for (int32_t i = 0; i < 200; i++) {
        float x[K_MAX];
        uint8_t subs[16];
        tn_matmul_format plain = {.order = TN_MATMUL_ORDER_NATURAL, .chunk = 16, .sub = i % 2 ? 16 : 32};
        tn_matmul_format f = {.chunk = 4, .sub = plain.sub, .bias = 8, .lanes = 16, .chain = 4, .subs = subs};
        int32_t k = 32 * (1 + i * 5 % (K_MAX / 32));
        tn_matmul_layout l = layout_of(k);
        for (int32_t u = 0; u < 64; u++) f.order[u] = (uint8_t)((u * 29 + i) % 64);
        for (int32_t s = 0; s < 16; s++) subs[s] = (uint8_t)((s * 5 + i) % (256 / f.sub));
        fill(x, k, i);
        round_all(&tn_matmul_isa_generic, &plain, &l, x, &natural);
        round_all(isa, &f, &l, x, &got);
        check_units(&f, &l, &natural, &got);
    }
}

int main(void)
{
    const tn_matmul_isa *levels[2] = {NULL, NULL};
    size_t n = 0;
#if defined(__x86_64__)
    tn_cpu_features features;
    tn_cpu_features_get(&features);
    levels[0] = &tn_matmul_isa_avx2;
    levels[1] = &tn_matmul_isa_avx512;
    n = features.avx512 ? 2 : features.avx2 ? 1 : 0;
#elif defined(TN_CPU_ARM)
    levels[0] = &tn_matmul_isa_neon_float;
    n = 1;
#endif
    test_levels(levels, n);
    if (n == 2) test_units(levels[1]);
    if (n > 0) return test_done();
    printf("only portable C on this processor\n");
    return 77;
}
