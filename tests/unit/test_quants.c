// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Row converters of all data types, and the mixes of the quantiser.
//     test_quants [golden vectors of types] [golden models]
#include "core/compiler.h"
#include "core/fp16.h"
#include "models/gguf/gguf.h"
#include "models/quantize/quantize_mix.h"
#include "ops/quant.h"
#include "tests/unit/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/context.h>

// Rows are multiples of every block.
enum { ROW = 4096, PACKED_MAX = ROW * 8 };

typedef enum golden_check { BYTES, RMS, DECODE } golden_check;

// Expected quality: relative RMS error of the reference quantisers on the golden data, and whether their
// bytes are reproduced.
// clang-format off
static const struct {
    tn_dtype type;
    double rms;
    golden_check check;
} expected[] = {
    {TN_TYPE_F16, 0.00020, BYTES},      {TN_TYPE_BF16, 0.00163, BYTES},     {TN_TYPE_Q4_0, 0.08565, BYTES},
    {TN_TYPE_Q4_1, 0.07894, BYTES},     {TN_TYPE_Q5_0, 0.04284, BYTES},     {TN_TYPE_Q5_1, 0.03711, BYTES},
    {TN_TYPE_Q8_0, 0.00639, BYTES},     {TN_TYPE_Q8_1, 0.00673, BYTES},     {TN_TYPE_Q2_K, 0.27956, RMS},
    {TN_TYPE_Q3_K, 0.15256, RMS},       {TN_TYPE_Q4_K, 0.06667, RMS},       {TN_TYPE_Q5_K, 0.03306, RMS},
    {TN_TYPE_Q6_K, 0.01796, RMS},       {TN_TYPE_Q8_K, 0.00738, BYTES},     {TN_TYPE_IQ2_XXS, 0.0, DECODE},
    {TN_TYPE_IQ2_XS, 0.0, DECODE},      {TN_TYPE_IQ2_S, 0.0, DECODE},       {TN_TYPE_IQ3_XXS, 0.0, DECODE},
    {TN_TYPE_IQ3_S, 0.0, DECODE},       {TN_TYPE_IQ1_S, 0.0, DECODE},       {TN_TYPE_IQ1_M, 0.0, DECODE},
    {TN_TYPE_IQ4_NL, 0.07298, RMS},     {TN_TYPE_IQ4_XS, 0.07705, RMS},     {TN_TYPE_TQ1_0, 0.82323, BYTES},
    {TN_TYPE_TQ2_0, 0.79112, BYTES},    {TN_TYPE_MXFP4, 0.10481, BYTES},    {TN_TYPE_NVFP4, 0.09412, BYTES},
    {TN_TYPE_Q1_0, 0.61127, BYTES},     {TN_TYPE_Q2_0, 0.68826, BYTES},
};
// clang-format on

// xorshift64*, Vigna 2016.
static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint64_t random_u64(void)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return random_state * 0x2545f4914f6cdd1du;
}

static double random_unit(void)
{
    return (double)(random_u64() >> 11) * 0x1p-53;
}

static float random_gaussian(double sigma)
{
    double sum = 0.0;
    for (int i = 0; i < 12; i++) sum += random_unit();
    return (float)((sum - 6.0) * sigma);
}

static void fill_gaussian(float *x, int64_t n, double sigma)
{
    for (int64_t i = 0; i < n; i++) x[i] = random_gaussian(sigma);
}

static double rms_error(const float *x, const float *y, const float *w, int64_t n)
{
    double error = 0.0, total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double diff = (double)y[i] - (double)x[i], weight = w ? (double)w[i] : 1.0;
        error += weight * diff * diff;
        total += weight * (double)x[i] * (double)x[i];
    }
    return total > 0.0 ? sqrt(error / total) : sqrt(error);
}

static void convert(tn_dtype type, const float *x, float *y, const float *weights)
{
    static uint8_t packed[PACKED_MAX];
    const tn_quant_info *info = tn_quant_info_get(type);
    info->from_f32(x, packed, ROW, weights);
    TEST_CHECK(tn_quant_row_valid(type, packed, ROW));
    info->to_f32(packed, y, ROW);
}

static bool check_named(bool ok, tn_dtype type, const char *what)
{
    if (!TEST_CHECK(ok)) printf("    %s: %s\n", tn_dtype_name(type), what);
    return ok;
}

// --- without files ---------------------------------------------------------------------------------

static void test_table(void)
{
    for (tn_dtype t = 0; t < TN_TYPE_COUNT; t++) {
        check_named(tn_quant_info_get(t)->to_f32 != NULL, t, "has no decoder");
    }
    TEST_CHECK(tn_quant_info_get(-1)->to_f32 == NULL);
    TEST_CHECK(tn_quant_info_get(TN_TYPE_COUNT)->from_f32 == NULL);
    for (size_t k = 0; k < TN_COUNT(expected); k++) {
        bool writable = tn_quant_info_get(expected[k].type)->from_f32 != NULL;
        check_named(writable == (expected[k].check != DECODE), expected[k].type, "encoder");
    }
}

static void test_plain_types(void)
{
    static const int8_t i8[3] = {-128, 0, 127};
    static const int16_t i16[3] = {-32768, 1, 32767};
    static const int32_t i32[3] = {-2147483647 - 1, 2, 16777217};
    static const int64_t i64[3] = {-9007199254740993, 3, INT64_MAX};
    static const double f64[4] = {1e300, -1e300, 1.0 + 0x1p-30, 0x1p-149};
    float y[4];
    tn_quant_info_get(TN_TYPE_I8)->to_f32(i8, y, 3);
    TEST_CHECK(y[0] == -128.0f && y[1] == 0.0f && y[2] == 127.0f);
    tn_quant_info_get(TN_TYPE_I16)->to_f32(i16, y, 3);
    TEST_CHECK(y[0] == -32768.0f && y[1] == 1.0f && y[2] == 32767.0f);
    tn_quant_info_get(TN_TYPE_I32)->to_f32(i32, y, 3);
    TEST_CHECK(y[0] == -2147483648.0f && y[1] == 2.0f && y[2] == 16777216.0f);
    tn_quant_info_get(TN_TYPE_I64)->to_f32(i64, y, 3);
    TEST_CHECK(y[0] == -9007199254740992.0f && y[1] == 3.0f && y[2] == 0x1p63f);
    tn_quant_info_get(TN_TYPE_F64)->to_f32(f64, y, 4);
    TEST_CHECK(isinf(y[0]) && y[0] > 0 && isinf(y[1]) && y[1] < 0 && y[2] == 1.0f && y[3] == 0x1p-149f);
    TEST_CHECK(!tn_quant_row_valid(TN_TYPE_F64, f64, 4));
    TEST_CHECK(tn_quant_row_valid(TN_TYPE_F64, f64 + 2, 2));
}

// Every 16-bit pattern must survive the way to f32 and back, NaNs apart.
static void test_half_round_trip(void)
{
    static const tn_dtype types[] = {TN_TYPE_F16, TN_TYPE_BF16};
    for (size_t t = 0; t < TN_COUNT(types); t++) {
        const tn_quant_info *info = tn_quant_info_get(types[t]);
        int n_bad = 0;
        for (uint32_t u = 0; u < 65536; u++) {
            uint16_t in = (uint16_t)u, out;
            float f;
            info->to_f32(&in, &f, 1);
            info->from_f32(&f, &out, 1, NULL);
            n_bad += isnan(f) ? out != in && (out & 0x7fffu) <= 0x7c00u : out != in;
            n_bad += tn_quant_row_valid(types[t], &in, 1) != (isfinite(f) != 0);
        }
        check_named(n_bad == 0, types[t], "16-bit patterns change");
    }
}

static void test_gaussian(void)
{
    static float x[ROW], y[ROW];
    fill_gaussian(x, ROW, 0.1);
    for (size_t k = 0; k < TN_COUNT(expected); k++) {
        if (expected[k].check == DECODE) continue;
        convert(expected[k].type, x, y, NULL);
        // Not the golden data: a wider bound. MXFP4 depends on where maxima fall between powers of two.
        check_named(rms_error(x, y, NULL, ROW) <= 1.25 * expected[k].rms, expected[k].type,
                    "error too large");
    }
}

// With importance weights the weighted error must not be worse than without.
static void test_importance(void)
{
    static const tn_dtype types[] = {TN_TYPE_Q4_0, TN_TYPE_Q4_1,   TN_TYPE_Q5_0,  TN_TYPE_Q5_1,
                                     TN_TYPE_Q2_K, TN_TYPE_Q3_K,   TN_TYPE_Q4_K,  TN_TYPE_Q5_K,
                                     TN_TYPE_Q6_K, TN_TYPE_IQ4_NL, TN_TYPE_IQ4_XS};
    static float x[ROW], y[ROW], a[ROW];
    fill_gaussian(x, ROW, 0.1);
    for (int i = 0; i < ROW; i++) a[i] = (float)exp(3.0 * random_unit());
    for (size_t k = 0; k < TN_COUNT(types); k++) {
        convert(types[k], x, y, NULL);
        double plain = rms_error(x, y, a, ROW);
        convert(types[k], x, y, a);
        check_named(rms_error(x, y, a, ROW) <= plain * 1.005, types[k], "importance weights make it worse");
    }
    memset(a, 0, sizeof a); // columns that were never active
    for (size_t k = 0; k < TN_COUNT(types); k++) convert(types[k], x, y, a);
}

// Zeros, an outlier, constants, one sign: valid rows, and zeros stay zeros.
static void test_special_rows(void)
{
    static float x[ROW], y[ROW];
    for (size_t k = 0; k < TN_COUNT(expected); k++) {
        tn_dtype type = expected[k].type;
        if (expected[k].check == DECODE) continue;
        memset(x, 0, sizeof x);
        convert(type, x, y, NULL);
        check_named(rms_error(x, y, NULL, ROW) == 0.0, type, "zeros change");
        x[37] = 100.0f;
        convert(type, x, y, NULL);
        double limit = type == TN_TYPE_Q1_0 ? 100.0 : 26.0;
        check_named(fabs((double)y[37] - 100.0) <= limit, type, "an outlier is lost");
        for (int i = 0; i < ROW; i++) x[i] = -3.5f;
        convert(type, x, y, NULL);
        check_named(rms_error(x, y, NULL, ROW) < 0.15, type, "a constant changes");
        fill_gaussian(x, ROW, 0.1);
        for (int i = 0; i < ROW; i++) x[i] = fabsf(x[i]);
        convert(type, x, y, NULL);
        check_named(rms_error(x, y, NULL, ROW) < 0.9, type, "positive values");
    }
}

// Scales that are f16 subnormals or vanish, and values near f32's ends: nothing may be undefined.
static void test_extreme_rows(void)
{
    static const double sigmas[] = {1e-5, 1e-7, 1e-12, 1e-30, 1e-39, 1e-44, 1e3, 6e4, 1e20, 5e37};
    static float x[ROW], y[ROW];
    static uint8_t packed[PACKED_MAX];
    for (size_t k = 0; k < TN_COUNT(expected); k++) {
        const tn_quant_info *info = tn_quant_info_get(expected[k].type);
        if (!info->from_f32) continue;
        for (size_t s = 0; s < TN_COUNT(sigmas); s++) {
            fill_gaussian(x, ROW, sigmas[s]);
            info->from_f32(x, packed, ROW, NULL);
            info->from_f32(x, packed, ROW, x); // weights of any sign
            info->to_f32(packed, y, ROW);
            if (sigmas[s] > 1e3 || sigmas[s] < 1e-7) continue;
            info->from_f32(x, packed, ROW, NULL);
            check_named(tn_quant_row_valid(expected[k].type, packed, ROW), expected[k].type, "not valid");
        }
        fill_gaussian(x, ROW, 0.1);
        for (int i = 0; i < ROW; i += 67) x[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? -INFINITY : NAN;
        info->from_f32(x, packed, ROW, NULL);
        info->to_f32(packed, y, ROW);
        info->from_f32(x, packed, ROW, y);
        for (int i = 0; i < ROW; i++) x[i] = NAN;
        info->from_f32(x, packed, ROW, NULL);
    }
}

// Any bytes decode; if the row counts as valid, to finite values.
static void test_random_bytes(void)
{
    static float y[ROW];
    static uint8_t packed[PACKED_MAX];
    for (tn_dtype t = 0; t < TN_TYPE_COUNT; t++) {
        int64_t block = tn_dtype_block_elems(t);
        size_t size = tn_dtype_block_size(t);
        int n_valid = 0, n_bad = 0;
        for (int round = 0; round < 2000; round++) {
            for (size_t i = 0; i < size; i++) packed[i] = (uint8_t)(random_u64() >> 32);
            tn_quant_info_get(t)->to_f32(packed, y, block);
            if (!tn_quant_row_valid(t, packed, block)) continue;
            n_valid++;
            for (int64_t i = 0; i < block; i++) n_bad += !isfinite(y[i]);
        }
        // Q8_K has an f32 scale, whose products may overflow.
        check_named(n_valid > 0 && (n_bad == 0 || t == TN_TYPE_Q8_K), t, "valid row with infinite values");
        memset(packed, 0xff, size);
        bool integer = t >= TN_TYPE_I8 && t <= TN_TYPE_I64;
        check_named(tn_quant_row_valid(t, packed, block) == integer, t, "all bits set");
    }
}

// --- golden vectors --------------------------------------------------------------------------------

static void *read_file(const char *folder, const char *name, const char *suffix, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    uint8_t *data = malloc(1u << 20);
    *size = data ? fread(data, 1, 1u << 20, f) : 0;
    fclose(f);
    return data;
}

static bool same_values(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (tn_f32_bits(a[i]) != tn_f32_bits(b[i]) && !(a[i] == 0.0f && b[i] == 0.0f)) return false;
    }
    return true;
}

// Sums of an all-zero Q8_K block are undefined in the reference: not compared.
static bool same_block(tn_dtype type, const uint8_t *got, const uint8_t *want, size_t size)
{
    static const uint8_t zero[4];
    if (type == TN_TYPE_Q8_K && memcmp(want, zero, 4) == 0) size = 260;
    return memcmp(got, want, size) == 0;
}

static void check_golden_encode(size_t k, const float *src, const uint8_t *want, int64_t n)
{
    static uint8_t packed[PACKED_MAX];
    tn_dtype type = expected[k].type;
    const tn_quant_info *info = tn_quant_info_get(type);
    size_t size = tn_dtype_block_size(type);
    int64_t n_blocks = n / tn_dtype_block_elems(type), n_same = 0;
    info->from_f32(src, packed, n, NULL);
    for (int64_t b = 0; b < n_blocks; b++) {
        n_same += same_block(type, packed + (size_t)b * size, want + (size_t)b * size, size);
    }
    float *y = malloc((size_t)n * sizeof *y);
    if (!TEST_CHECK(y != NULL)) return;
    info->to_f32(packed, y, n);
    double rms = rms_error(src, y, NULL, n);
    printf("%-6s %lld of %lld blocks as the reference, rms %.5f (reference %.5f)\n", tn_dtype_name(type),
           (long long)n_same, (long long)n_blocks, rms, expected[k].rms);
    if (expected[k].check == BYTES) check_named(n_same == n_blocks, type, "bytes differ");
    check_named(rms <= 1.02 * expected[k].rms + 1e-5, type, "error too large");
    free(y);
}

static void test_golden(const char *folder)
{
    size_t size;
    void *probe = folder ? read_file(folder, "F16", ".bin", &size) : NULL;
    if (!probe) {
        printf("SKIP: golden/quants not found\n");
        return;
    }
    free(probe);
    for (size_t k = 0; k < TN_COUNT(expected); k++) {
        tn_dtype type = expected[k].type;
        const char *name = tn_dtype_name(type);
        size_t bin_size = 0, value_size = 0, src_size = 0;
        uint8_t *bin = read_file(folder, name, ".bin", &bin_size);
        float *values = read_file(folder, name, ".f32", &value_size);
        float *src = read_file(folder, name, ".src.f32", &src_size);
        int64_t n = (int64_t)(value_size / sizeof *values);
        float *y = malloc(value_size + 1);
        bool ok = bin && values && y && n > 0 && bin_size == tn_dtype_row_size(type, n);
        if (check_named(ok, type, "golden files") && y) {
            tn_quant_info_get(type)->to_f32(bin, y, n);
            check_named(same_values(y, values, n), type, "decoded values differ");
            check_named(tn_quant_row_valid(type, bin, n), type, "golden row is not valid");
            bool has_src = src && src_size == value_size / 2;
            if (expected[k].check != DECODE && check_named(has_src, type, "no source values")) {
                check_golden_encode(k, src, bin + bin_size / 2, n / 2);
            }
        }
        free(bin);
        free(values);
        free(src);
        free(y);
    }
}

// --- mixes -----------------------------------------------------------------------------------------

// Letters for the types that rules give to the layers of a model: "6" Q6_K, "5" Q5_K, "4" Q4_K, ...
static void pick_layers(const char *mix, const tn_quant_mix_model *model, const char *tensor, char *out)
{
    static const int64_t ne[2] = {512, 1024};
    tn_quant_mix_state state = tn_quant_mix_begin(tn_quant_mix_find(mix), model);
    for (int64_t i = 0; i < model->n_layer; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)i, tensor);
        tn_dtype type = tn_quant_mix_pick(&state, name, TN_TYPE_F16, 2, ne);
        const char *text = tn_dtype_name(type);
        *out++ = text[0] == 'Q' ? text[1] : '?';
    }
    *out = 0;
}

static void check_layers(const char *mix, const tn_quant_mix_model *model, const char *tensor,
                         const char *want)
{
    char got[128];
    pick_layers(mix, model, tensor, got);
    if (!TEST_CHECK(strcmp(got, want) == 0)) printf("    %s %s: got %s, want %s\n", mix, tensor, got, want);
}

static void test_mix_layers(void)
{
    tn_quant_mix_model m = {"llama", 16, 32, 8, 0, 16, true, false};
    check_layers("Q4_K_M", &m, "attn_v", "6644644644644666");
    check_layers("q4_k_m", &m, "ffn_down", "6644644644644666");
    check_layers("Q4_K_M", &m, "attn_q", "4444444444444444");
    check_layers("Q4_K_S", &m, "attn_v", "5555444444444444");
    check_layers("Q4_K_S", &m, "ffn_down", "5544444444444444");
    check_layers("Q3_K_M", &m, "attn_v", "5544444444444444");
    check_layers("Q3_K_M", &m, "ffn_down", "5444444444444444");
    check_layers("Q3_K_M", &m, "attn_output", "4444444444444444");
    check_layers("Q3_K_L", &m, "attn_output", "5555555555555555");
    check_layers("Q2_K", &m, "attn_v", "4444444444444444");
    check_layers("Q2_K", &m, "ffn_down", "3333333333333333");
    check_layers("Q2_K_S", &m, "ffn_down", "4422222222222222");
    check_layers("Q6_K", &m, "ffn_down", "6666666666666666");
    m.n_expert = 8;
    check_layers("Q4_K_M", &m, "attn_v", "8888888888888888");
    check_layers("Q4_K_M", &m, "attn_output", "5555555555555555");
    check_layers("Q3_K_L", &m, "attn_output", "3333333333333333");
    check_layers("Q4_K_M", &m, "ffn_down_exps", "6644644644644666");
    m = (tn_quant_mix_model){"falcon", 16, 32, 8, 0, 16, true, false};
    check_layers("Q4_K_M", &m, "ffn_down", "6544544544544555");
    check_layers("Q3_K_M", &m, "ffn_down", "5433433433433444");
    check_layers("Q3_K_L", &m, "ffn_down", "4444444444444444");
    check_layers("Q3_K_L", &m, "attn_output", "4444444444444444");
    check_layers("Q2_K", &m, "attn_output", "2222222222222222");
}

static tn_dtype pick_one(const char *mix, const tn_quant_mix_model *m, const char *name, int64_t row)
{
    int64_t ne[2] = {64, row};
    tn_quant_mix_state state = tn_quant_mix_begin(tn_quant_mix_find(mix), m);
    return tn_quant_mix_pick(&state, name, TN_TYPE_F32, 2, ne);
}

static void test_mix_rules(void)
{
    tn_quant_mix_model m = {"llama", 1, 4, 4, 0, 1, true, false};
    TEST_CHECK(pick_one("Q4_K_M", &m, "output.weight", 512) == TN_TYPE_Q6_K);
    TEST_CHECK(pick_one("Q4_K_M", &m, "token_embd.weight", 512) == TN_TYPE_Q4_K);
    TEST_CHECK(pick_one("Q4_K_M", &m, "output.weight", 96) == TN_TYPE_Q8_0);
    TEST_CHECK(pick_one("Q4_K_M", &m, "blk.0.attn_q.weight", 96) == TN_TYPE_Q5_0);
    TEST_CHECK(pick_one("Q5_K_S", &m, "blk.0.attn_q.weight", 96) == TN_TYPE_Q5_1);
    TEST_CHECK(pick_one("Q6_K", &m, "blk.0.attn_q.weight", 96) == TN_TYPE_Q8_0);
    TEST_CHECK(pick_one("Q3_K_S", &m, "blk.0.attn_q.weight", 96) == TN_TYPE_Q4_0);
    TEST_CHECK(pick_one("IQ4_XS", &m, "blk.0.attn_q.weight", 96) == TN_TYPE_IQ4_NL);
    TEST_CHECK(pick_one("Q4_K_M", &m, "blk.0.attn_q.weight", 100) == TN_TYPE_F16);
    TEST_CHECK(pick_one("Q8_0", &m, "blk.0.attn_norm.weight", 512) == TN_TYPE_F32);
    TEST_CHECK(pick_one("Q8_0", &m, "blk.0.ffn_gate_inp.weight", 512) == TN_TYPE_F32);
    TEST_CHECK(pick_one("Q8_0", &m, "blk.0.attn_q.bias", 512) == TN_TYPE_F32);
    TEST_CHECK(pick_one("F16", &m, "blk.0.attn_q.weight", 33) == TN_TYPE_F16);
    TEST_CHECK(pick_one("Q4_0", &m, "position_embd.weight", 512) == TN_TYPE_F32);
    m.has_output = false;
    TEST_CHECK(pick_one("Q4_K_M", &m, "token_embd.weight", 512) == TN_TYPE_Q6_K);
    static const int64_t row[2] = {1, 512};
    TEST_CHECK(tn_quant_mix_keeps("blk.0.attn_q.weight", 2, row));
    TEST_CHECK(!tn_quant_mix_find("Q9_K") && !tn_quant_mix_find("") && !tn_quant_mix_by_file_type(5));
    TEST_CHECK(tn_quant_mix_compare("blk.2.a", "blk.10.a") < 0 &&
               tn_quant_mix_compare("output", "blk.0.a") < 0);
    char list[8], all[256];
    size_t length = tn_quant_mix_list(list, sizeof list);
    TEST_CHECK(strcmp(list, "F32, F1") == 0);
    TEST_CHECK(tn_quant_mix_list(all, sizeof all) == length && strlen(all) == length);
}

static int compare_tensors(const void *a, const void *b)
{
    return tn_quant_mix_compare((*(const tn_gguf_tensor *const *)a)->name,
                                (*(const tn_gguf_tensor *const *)b)->name);
}

static int64_t arch_number(const tn_gguf *gguf, const char *arch, const char *key)
{
    char full[128];
    int64_t value = 0;
    snprintf(full, sizeof full, "%s.%s", arch, key);
    TEST_CHECK_STATUS(tn_gguf_get_i64(gguf, full, &value), TN_OK);
    return value;
}

static void check_model_types(const tn_gguf *gguf)
{
    const tn_gguf_tensor *tensors[512];
    char arch[64] = "";
    tn_gguf_str text = {"", 0};
    int64_t n = tn_gguf_n_tensors(gguf), file_type = -1;
    TEST_CHECK_STATUS(tn_gguf_get_str(gguf, "general.architecture", &text), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_get_i64(gguf, "general.file_type", &file_type), TN_OK);
    const tn_quant_mix *mix = tn_quant_mix_by_file_type(file_type);
    if (!TEST_CHECK(n <= 512 && mix && text.size < sizeof arch) || !mix) return;
    memcpy(arch, text.data, text.size);
    tn_quant_mix_model m = {arch,
                            arch_number(gguf, arch, "block_count"),
                            arch_number(gguf, arch, "attention.head_count"),
                            arch_number(gguf, arch, "attention.head_count_kv"),
                            arch_number(gguf, arch, "expert_count"),
                            0,
                            tn_gguf_find_tensor(gguf, "output.weight") != NULL,
                            false};
    for (int64_t i = 0; i < n; i++) {
        tensors[i] = tn_gguf_tensor_at(gguf, i);
        m.n_attn_v += tn_quant_mix_is_attn_v(tensors[i]->name);
    }
    qsort(tensors, (size_t)n, sizeof tensors[0], compare_tensors);
    tn_quant_mix_state state = tn_quant_mix_begin(mix, &m);
    for (int64_t i = 0; i < n; i++) {
        const tn_gguf_tensor *t = tensors[i];
        tn_dtype want = tn_quant_mix_pick(&state, t->name, TN_TYPE_F32, t->n_dims, t->ne);
        if (TEST_CHECK(want == t->dtype)) continue;
        printf("    %s: %s is %s, expected %s\n", tn_gguf_name(gguf), t->name, tn_dtype_name(t->dtype),
               tn_dtype_name(want));
    }
}

static void test_golden_models(tn_context *ctx, const char *folder)
{
    static const char *const names[] = {
        "llama_q4_0",      "llama_q4_k_m",    "llama_q6_k",      "llama_q2_k",        "llama_bf16",
        "qwen3_q8_0",      "qwen3_q5_k_m",    "qwen3_q3_k_m",    "qwen3_iq4_xs",      "qwen3_f16",
        "gemma3_q4_0",     "gemma3_q4_k_m",   "gemma3_q6_k",     "gemma3_q2_k",       "qwen3moe_q8_0",
        "qwen3moe_q5_k_m", "qwen3moe_q3_k_m", "qwen3moe_iq4_xs", "qwen3moe_mxfp4_moe"};
    int n_found = 0;
    for (size_t k = 0; folder && k < TN_COUNT(names); k++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.gguf", folder, names[k]);
        tn_gguf *gguf = NULL;
        if (tn_gguf_open(ctx, path, &gguf) != TN_OK) continue;
        n_found++;
        check_model_types(gguf);
        tn_gguf_close(&gguf);
    }
    if (n_found == 0)
        printf("SKIP: golden/models not found\n");
    else
        TEST_CHECK(n_found == (int)TN_COUNT(names));
}

int main(int argc, char **argv)
{
    tn_context_config config;
    tn_context *ctx = NULL;
    tn_context_config_default(&config);
    if (!TEST_CHECK_STATUS(tn_context_create(&config, &ctx), TN_OK)) return test_done();
    test_table();
    test_plain_types();
    test_half_round_trip();
    test_gaussian();
    test_importance();
    test_special_rows();
    test_extreme_rows();
    test_random_bytes();
    test_golden(argc > 1 ? argv[1] : NULL);
    test_mix_layers();
    test_mix_rules();
    test_golden_models(ctx, argc > 2 ? argv[2] : NULL);
    tn_context_destroy(&ctx);
    return test_done();
}
