// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The GGUF reader on images in memory: every rule of the format broken once, truncation, random damage,
// failing allocations, limits of time and memory.
// Split models and writing: test_gguf_files.c.
#include "tests/unit/counting.h"
#include "tests/unit/gguf_bytes.h"
#include "tests/unit/gguf_rules.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <time.h>

static counting count;
static tn_context *ctx;

// --- one image ----------------------------------------------------------------------------------------

// Opens an exact copy, walks over it, closes it; nothing may stay behind.
static tn_status open_copy(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (!copy) abort();
    if (size > 0) memcpy(copy, data, size);
    long live = count.live;
    tn_gguf *gguf = NULL;
    tn_status status = tn_gguf_open_memory(ctx, copy, size, "test", &gguf);
    if ((status == TN_OK) != (gguf != NULL)) TEST_CHECK(!"object on success only");
    if (gguf) walk_all(gguf);
    tn_gguf_close(&gguf);
    if (count.live != live) TEST_CHECK(!"nothing leaks");
    free(copy);
    return status;
}

static void expect_at(int line, const bytes *b, tn_status want, const char *message)
{
    tn_status got = open_copy(b->data, b->size);
    char text[1024] = "";
    if (got != TN_OK) tn_context_error(ctx, text, sizeof text);
    bool ok = got == want && (!message || strstr(text, message));
    if (!test_report(ok, __FILE__, line, message ? message : "opens"))
        printf("    got \"%s\": %s\n", tn_status_text(got), text);
}
#define EXPECT_OK(b)           expect_at(__LINE__, (b), TN_OK, NULL)
#define EXPECT_BAD(b, message) expect_at(__LINE__, (b), TN_ERR_FORMAT, (message))

// --- rules 1 and 2: header ----------------------------------------------------------------------------

static void test_header(bytes *b)
{
    for (uint32_t version = 0; version < 6; version++) {
        bytes_header(b, version, 0, 0);
        if (version == 2 || version == 3)
            EXPECT_OK(b);
        else
            EXPECT_BAD(b, version == 1 ? "version 1 is obsolete" : "unknown GGUF version");
    }
    bytes_header(b, 0x03000000, 0, 0);
    EXPECT_BAD(b, "big-endian");
    bytes_header(b, 0x02000000, 0, 0);
    EXPECT_BAD(b, "big-endian");
    bytes_header(b, 3, 0, 0);
    for (b->size = 0; b->size < 24; b->size++)
        EXPECT_BAD(b, b->size < 4 ? "not a GGUF file" : "ends inside the header");
    b->data[3] = 'f';
    EXPECT_BAD(b, "not a GGUF file");
    static const uint64_t counts[] = {1,          3,          1u << 20,   INT32_MAX,
                                      1ull << 32, 1ull << 61, 1ull << 63, UINT64_MAX};
    for (size_t i = 0; i < TN_COUNT(counts); i++) {
        bytes_header(b, 3, 0, counts[i]);
        bytes_num(b, 0, 4);
        EXPECT_BAD(b, "keys, but only 4 bytes follow");
        bytes_header(b, 3, counts[i], 0);
        bytes_num(b, 0, 8);
        EXPECT_BAD(b, "tensors, but only 8 bytes follow");
    }
    bytes_header(b, 3, 0, 2); // enough bytes for two keys, but they are one
    bytes_kv_str(b, "k", "0123456789abcdef");
    EXPECT_BAD(b, "file ends inside a string");
}

// --- rules 3 to 7: keys and values --------------------------------------------------------------------

static void test_strings(bytes *b)
{
    static const uint64_t sizes[] = {5, 1u << 20, (1u << 30) + 1, 1ull << 63, UINT64_MAX - 8, UINT64_MAX};
    for (size_t i = 0; i < TN_COUNT(sizes); i++) {
        bytes_header(b, 3, 0, 1);
        bytes_key(b, "k", TN_GGUF_STRING);
        bytes_num(b, sizes[i], 8);
        bytes_num(b, 0, 4);
        EXPECT_BAD(b, "key \"k\": string of");
        bytes_header(b, 3, 0, 1);
        bytes_num(b, sizes[i], 8);
        bytes_num(b, 0, 4);
        bytes_num(b, 0, i == 0 ? 0 : 8);
        EXPECT_BAD(b, i == 0 ? "header claims" : "key: string of");
    }
    bytes_header(b, 3, 0, 1);
    bytes_kv_str(b, "k", "");
    EXPECT_OK(b);
}

static void nested(bytes *b, int depth, uint32_t inner)
{
    bytes_header(b, 3, 0, 1);
    bytes_key(b, "k", TN_GGUF_ARRAY);
    for (int i = 1; i < depth; i++) {
        bytes_num(b, TN_GGUF_ARRAY, 4);
        bytes_num(b, 1, 8);
    }
    bytes_num(b, inner, 4);
    bytes_num(b, 2, 8);
    bytes_num(b, 0, 16); // two values of any plain type, or two empty strings
}

static void test_arrays(bytes *b)
{
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, "k", 13, 0, 8);
    EXPECT_BAD(b, "unknown value type 13");
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, "k", UINT32_MAX, 0, 8);
    EXPECT_BAD(b, "unknown value type");
    for (uint32_t type = 0; type < TN_GGUF_TYPE_COUNT; type++) {
        static const uint64_t counts[] = {3, (1u << 30) + 1, 1ull << 60, 1ull << 61, 1ull << 62, UINT64_MAX};
        for (size_t i = 0; i < TN_COUNT(counts); i++) {
            bytes_header(b, 3, 0, 1);
            bytes_array(b, "k", type, counts[i]);
            bytes_num(b, 0, 2);
            EXPECT_BAD(b, "bytes are left");
        }
    }
    bytes_header(b, 3, 0, 1);
    bytes_array(b, "k", 13, 0);
    EXPECT_BAD(b, "unknown value type 13");
    bytes_header(b, 3, 0, 1);
    bytes_array(b, "k", TN_GGUF_STRING, 2); // fits as far as lengths go
    bytes_str(b, "12345678");
    EXPECT_BAD(b, "file ends inside a string");
    for (int depth = 1; depth < 8; depth++) {
        nested(b, depth, TN_GGUF_U64);
        if (depth <= 4)
            EXPECT_OK(b);
        else
            EXPECT_BAD(b, "nested deeper than 4");
    }
    nested(b, 4, TN_GGUF_STRING);
    EXPECT_OK(b);
    nested(b, 3, 13);
    EXPECT_BAD(b, "unknown value type 13");
    nested(b, 2, TN_GGUF_U64);
    b->data[24 + 9 + 4 + 12 + 4] = 3;
    EXPECT_BAD(b, "array of 3 values (u64)");
}

static void test_keys(bytes *b)
{
    static char text[65537];
    memset(text, 'k', 65536);
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, "", TN_GGUF_U32, 0, 4);
    EXPECT_BAD(b, "empty key");
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, text, TN_GGUF_U32, 0, 4);
    EXPECT_BAD(b, "key of 65536 bytes");
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, text + 1, TN_GGUF_U32, 0, 4);
    EXPECT_OK(b);
    bytes_header(b, 3, 0, 1);
    bytes_str_n(b, "a\0b", 3);
    bytes_num(b, 0, 8);
    EXPECT_BAD(b, "zero byte in a key");
    bytes_header(b, 3, 0, 3);
    bytes_kv_num(b, "a", TN_GGUF_U8, 0, 1);
    bytes_kv_num(b, "b", TN_GGUF_U8, 0, 1);
    bytes_kv_num(b, "a", TN_GGUF_U16, 0, 2);
    EXPECT_BAD(b, "key \"a\" at byte 60 occurs twice");
    bytes_header(b, 3, 0, 1);
    bytes_kv_num(b, "\033[31m\n", 13, 0, 1); // nothing of it reaches a terminal
    EXPECT_BAD(b, "key \"?[31m?\"");
}

static void test_alignment(bytes *b)
{
    static const uint32_t bad[] = {0, 1, 2, 4, 3, 24, 33, 1u << 21, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        bytes_header(b, 3, 0, 1);
        bytes_kv_num(b, "general.alignment", TN_GGUF_U32, bad[i], 4);
        EXPECT_BAD(b, "must be a power of two");
    }
    for (uint32_t align = 8; align <= 1u << 20; align *= 2) {
        bytes_header(b, 3, 1, 1);
        bytes_kv_num(b, "general.alignment", TN_GGUF_U32, align, 4);
        bytes_info(b, "t", 1, (uint64_t[]){1}, 0, 0);
        bytes_pad(b, align);
        bytes_num(b, 0, 4);
        EXPECT_OK(b);
    }
    for (uint32_t type = 0; type < TN_GGUF_TYPE_COUNT; type++) {
        if (type == TN_GGUF_U32) continue;
        bytes_header(b, 3, 0, 1);
        bytes_key(b, "general.alignment", type);
        bytes_num(b, type == TN_GGUF_ARRAY ? TN_GGUF_U32 : 0, type == TN_GGUF_ARRAY ? 4 : 0);
        static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 8, 8, 8, 8};
        bytes_num(b, 0, sizes[type]);
        EXPECT_BAD(b, "must be u32");
    }
}

// --- rules 8 to 16: tensors ---------------------------------------------------------------------------

static void one_tensor(bytes *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t type,
                       uint64_t offset)
{
    bytes_header(b, 3, 1, 0);
    bytes_info(b, name, n_dims, dims, type, offset);
    bytes_pad(b, 32);
    for (int i = 0; i < 2048; i++) bytes_num(b, 0, 1);
}

static void test_names(bytes *b)
{
    char name[65];
    memset(name, 'n', 64);
    name[64] = 0;
    one_tensor(b, name, 1, (uint64_t[]){4}, 0, 0);
    EXPECT_BAD(b, "tensor name of 64 bytes");
    one_tensor(b, name + 1, 1, (uint64_t[]){4}, 0, 0);
    EXPECT_OK(b);
    one_tensor(b, "", 1, (uint64_t[]){4}, 0, 0);
    EXPECT_BAD(b, "empty tensor name");
    one_tensor(b, "abc", 1, (uint64_t[]){4}, 0, 0);
    b->data[24 + 8 + 1] = 0;
    EXPECT_BAD(b, "zero byte in a tensor name");
    one_tensor(b, "abc", 1, (uint64_t[]){4}, 0, 0);
    b->data[24 + 7] = 0x80;
    EXPECT_BAD(b, "tensor name: string of");
    bytes_header(b, 3, 2, 0);
    bytes_info(b, "t", 1, (uint64_t[]){4}, 0, 0);
    bytes_info(b, "t", 1, (uint64_t[]){4}, 0, 32);
    bytes_pad(b, 32);
    for (int i = 0; i < 64; i++) bytes_num(b, 0, 1);
    EXPECT_BAD(b, "tensor \"t\" occurs twice");
}

static void test_dims(bytes *b)
{
    one_tensor(b, "t", 0, NULL, 0, 0);
    EXPECT_OK(b);
    tn_gguf *g = NULL;
    if (TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "one", &g), TN_OK))
        TEST_CHECK(tn_gguf_tensor_at(g, 0)->n_dims == 1 && tn_gguf_tensor_at(g, 0)->ne[0] == 1);
    tn_gguf_close(&g);
    one_tensor(b, "t", 4, (uint64_t[]){2, 2, 2, 2}, 0, 0);
    EXPECT_OK(b);
    static const uint32_t bad_ranks[] = {5, 64, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < TN_COUNT(bad_ranks); i++) {
        one_tensor(b, "t", 4, (uint64_t[]){2, 2, 2, 2}, 0, 0);
        for (int k = 0; k < 4; k++) b->data[24 + 9 + k] = (uint8_t)(bad_ranks[i] >> 8 * k);
        EXPECT_BAD(b, "at most 4 are allowed");
    }
    for (int i = 0; i < 4; i++) {
        static const uint64_t bad[] = {0, 1ull << 63, UINT64_MAX};
        for (size_t k = 0; k < TN_COUNT(bad); k++) {
            uint64_t dims[4] = {1, 1, 1, 1};
            dims[i] = bad[k];
            one_tensor(b, "t", 4, dims, 0, 0);
            EXPECT_BAD(b, "dimension ");
        }
    }
    static const uint64_t products[][4] = {{1ull << 32, 1ull << 32, 1, 1},
                                           {1, 1, 1ull << 62, 2},
                                           {1ull << 32, 1ull << 31, 1, 1},
                                           {INT64_MAX, 1, 1, 2},
                                           {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16},
                                           {3, INT64_MAX, 3, 3}};
    for (size_t i = 0; i < TN_COUNT(products); i++) {
        one_tensor(b, "t", 4, products[i], 24, 0);
        EXPECT_BAD(b, "too many elements");
    }
}

static void test_types(bytes *b)
{
    static const uint32_t bad[] = {4, 5, 31, 32, 33, 36, 37, 38, 43, 44, 255, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        one_tensor(b, "t", 1, (uint64_t[]){256}, bad[i], 0);
        EXPECT_BAD(b, "unknown or removed tensor type");
    }
    for (tn_dtype type = 0; type < TN_TYPE_COUNT; type++) {
        if (tn_dtype_file_id(type) < 0) continue;
        uint32_t id = (uint32_t)tn_dtype_file_id(type);
        one_tensor(b, "t", 1, (uint64_t[]){256}, id, 0);
        EXPECT_OK(b);
        uint64_t block = (uint64_t)tn_dtype_block_elems(type);
        if (block == 1) continue;
        one_tensor(b, "t", 2, (uint64_t[]){block + block / 2, 2}, id, 0);
        EXPECT_BAD(b, "rows of");
        one_tensor(b, "t", 1, (uint64_t[]){1}, id, 0);
        EXPECT_BAD(b, "rows of");
    }
}

static void test_ranges(bytes *b)
{
    one_tensor(b, "t", 1, (uint64_t[]){1ull << 62}, 28, 0); // 2^65 bytes
    EXPECT_BAD(b, "too large");
    one_tensor(b, "t", 2, (uint64_t[]){256, 1ull << 54}, 15, 0); // 292 * 2^54 bytes
    EXPECT_BAD(b, "end after the file");
    one_tensor(b, "t", 1, (uint64_t[]){4}, 0, 16);
    EXPECT_BAD(b, "not a multiple of 32");
    one_tensor(b, "t", 1, (uint64_t[]){8}, 0, 2048 - 32);
    EXPECT_OK(b);
    static const uint64_t offsets[] = {2048, 1ull << 32, 1ull << 63, UINT64_MAX - 31};
    for (size_t i = 0; i < TN_COUNT(offsets); i++) {
        one_tensor(b, "t", 1, (uint64_t[]){8}, 0, offsets[i]);
        EXPECT_BAD(b, "end after the file");
    }
    one_tensor(b, "t", 1, (uint64_t[]){512}, 0, 0);
    EXPECT_OK(b);
    b->size--;
    EXPECT_BAD(b, "end after the file");
    one_tensor(b, "t", 1, (uint64_t[]){513}, 0, 0);
    EXPECT_BAD(b, "end after the file");
    bytes_header(b, 3, 1, 0);
    bytes_info(b, "t", 1, (uint64_t[]){1}, 24, 0);
    EXPECT_BAD(b, "ends before the tensor data");
    bytes_pad(b, 32);
    EXPECT_BAD(b, "end after the file");
    bytes_num(b, 0, 1);
    EXPECT_OK(b);
}

static void many_tensors(bytes *b, size_t n, const uint64_t *offsets)
{
    bytes_header(b, 3, n, 0);
    for (size_t i = 0; i < n; i++) {
        char name[3] = {'t', (char)('0' + i), 0};
        bytes_info(b, name, 1, (uint64_t[]){33}, 24, offsets[i]); // I8, 33 bytes
    }
    bytes_pad(b, 32);
    for (int i = 0; i < 512; i++) bytes_num(b, 0, 1);
}

static void test_overlap(bytes *b)
{
    many_tensors(b, 5, (uint64_t[]){0, 64, 128, 192, 256});
    EXPECT_OK(b);
    many_tensors(b, 5, (uint64_t[]){256, 0, 192, 64, 416}); // any order, gaps
    EXPECT_OK(b);
    many_tensors(b, 2, (uint64_t[]){0, 32});
    EXPECT_BAD(b, "\"t0\" and \"t1\" overlap");
    many_tensors(b, 2, (uint64_t[]){32, 0});
    EXPECT_BAD(b, "\"t1\" and \"t0\" overlap");
    many_tensors(b, 2, (uint64_t[]){64, 64});
    EXPECT_BAD(b, "overlap");
    many_tensors(b, 6, (uint64_t[]){256, 0, 192, 64, 416, 224});
    EXPECT_BAD(b, "\"t2\" and \"t5\" overlap");
}

// --- values, rule 17 as far as it is ours --------------------------------------------------------------

static void test_scalars(const tn_gguf *g)
{
    static const struct {
        const char *key;
        int64_t i64;
        bool is_int, fits_u32;
        float f32;
        tn_status f32_status;
    } rows[] = {
        {"v.u8", 200, true, true, 200, TN_OK},
        {"v.i8", -3, true, false, -3, TN_OK},
        {"v.u16", 60000, true, true, 60000, TN_OK},
        {"v.i16", -300, true, false, -300, TN_OK},
        {"v.u32", 4000000000, true, true, 4e9f, TN_OK},
        {"v.i32", -70000, true, false, -70000, TN_OK},
        {"v.i64", -5000000000, true, false, -5e9f, TN_OK},
        {"v.u64", -1, false, false, 0x1p64f, TN_OK},
        {"v.f32", -1, false, false, 1.5f, TN_OK},
        {"v.f64", -1, false, false, -2.25f, TN_OK},
        {"v.bool", -1, false, false, -1, TN_ERR_FORMAT},
        {"general.architecture", -1, false, false, -1, TN_ERR_FORMAT},
        {"a.i16", -1, false, false, -1, TN_ERR_FORMAT},
        {"a.nested", -1, false, false, -1, TN_ERR_FORMAT},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        int64_t i64 = -1;
        uint32_t u32 = 77;
        float f32 = -1;
        TEST_CHECK_STATUS(tn_gguf_get_i64(g, rows[i].key, &i64), rows[i].is_int ? TN_OK : TN_ERR_FORMAT);
        TEST_CHECK(i64 == rows[i].i64);
        TEST_CHECK_STATUS(tn_gguf_get_u32(g, rows[i].key, &u32), rows[i].fits_u32 ? TN_OK : TN_ERR_FORMAT);
        TEST_CHECK(u32 == (rows[i].fits_u32 ? (uint32_t)rows[i].i64 : 77));
        TEST_CHECK_STATUS(tn_gguf_get_f32(g, rows[i].key, &f32), rows[i].f32_status);
        TEST_CHECK(f32 == rows[i].f32);
    }
}

static void test_arrays_typed(const tn_gguf *g)
{
    int64_t i64 = 0;
    double f64 = 0;
    for (uint64_t i = 0; i < 3; i++) {
        TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.i16"), i, &i64), TN_OK);
        TEST_CHECK(i64 == (int64_t)i - 1);
        TEST_CHECK_STATUS(tn_gguf_array_f64(g, tn_gguf_find(g, "a.i16"), i, &f64), TN_OK);
        TEST_CHECK(f64 == (double)i - 1);
    }
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.i16"), 3, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.i16"), UINT64_MAX, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.empty"), 0, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.str"), 0, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.nested"), 0, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "v.f32"), 0, &i64), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "v.u8"), 0, &i64), TN_OK);
    TEST_CHECK(i64 == 200);
    for (uint64_t i = 0; i < 2; i++) { // bools 0 and 2: normalised
        TEST_CHECK_STATUS(tn_gguf_array_i64(g, tn_gguf_find(g, "a.bool"), i, &i64), TN_OK);
        TEST_CHECK(i64 == (int64_t)i);
    }
    static const tn_gguf_str want[] = {{"one", 3}, {"", 0}, {"a\0b", 3}};
    size_t cursor = 0;
    tn_gguf_str s;
    for (size_t i = 0; i < 3; i++) {
        TEST_CHECK_STATUS(tn_gguf_array_next_str(g, tn_gguf_find(g, "a.str"), &cursor, &s), TN_OK);
        TEST_CHECK(s.size == want[i].size && memcmp(s.data, want[i].data, s.size) == 0);
    }
    TEST_CHECK_STATUS(tn_gguf_array_next_str(g, tn_gguf_find(g, "a.str"), &cursor, &s), TN_ERR_FORMAT);
    cursor = SIZE_MAX;
    TEST_CHECK_STATUS(tn_gguf_array_next_str(g, tn_gguf_find(g, "a.str"), &cursor, &s), TN_ERR_FORMAT);
    cursor = 0;
    TEST_CHECK_STATUS(tn_gguf_array_next_str(g, tn_gguf_find(g, "a.i16"), &cursor, &s), TN_ERR_FORMAT);
}

static void test_values(bytes *b)
{
    bytes_good_file(b);
    tn_gguf *g = NULL;
    if (!TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "good", &g), TN_OK)) return;
    TEST_CHECK(tn_gguf_n_kv(g) == 18 && tn_gguf_n_tensors(g) == 3 && tn_gguf_n_files(g) == 1);
    TEST_CHECK(tn_gguf_version(g) == 3 && tn_gguf_file_size(g) == b->size &&
               strcmp(tn_gguf_name(g), "good") == 0);
    TEST_CHECK(tn_gguf_context(g) == ctx);
    TEST_CHECK(!tn_gguf_kv_at(g, -1) && !tn_gguf_kv_at(g, 18) && !tn_gguf_tensor_at(g, -1) &&
               !tn_gguf_tensor_at(g, 3));
    TEST_CHECK(!tn_gguf_find(g, "") && !tn_gguf_find(g, "v") && !tn_gguf_find_tensor(g, "w"));
    test_scalars(g);
    test_arrays_typed(g);
    bool flag = false;
    tn_gguf_str s = {0};
    TEST_CHECK_STATUS(tn_gguf_get_bool(g, "v.bool", &flag), TN_OK);
    TEST_CHECK(flag);
    TEST_CHECK_STATUS(tn_gguf_get_bool(g, "v.u8", &flag), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_get_str(g, "general.architecture", &s), TN_OK);
    TEST_CHECK(s.size == 4 && memcmp(s.data, "test", 4) == 0);
    TEST_CHECK_STATUS(tn_gguf_get_str(g, "v.u8", &s), TN_ERR_FORMAT);
    TEST_CHECK_STATUS(tn_gguf_get_str(g, "a.str", &s), TN_ERR_FORMAT);
    uint32_t kept = 5;
    TEST_CHECK_STATUS(tn_gguf_get_u32(g, "absent", &kept), TN_OK);
    TEST_CHECK(kept == 5);
    const tn_gguf_tensor *t = tn_gguf_find_tensor(g, "w.weight");
    TEST_CHECK(t && t->dtype == TN_TYPE_Q8_0 && t->n_dims == 2 && t->ne[0] == 3 && t->ne[1] == 32 &&
               t->size == 102);
    TEST_CHECK(t && t->data == b->data + t->file_offset && t->file_offset % 64 == 0 && t->file == 0);
    t = tn_gguf_find_tensor(g, "w.scale");
    TEST_CHECK(t && t->n_dims == 4 && t->ne[0] == 2 && t->ne[1] == 2 && t->ne[2] == 1 && t->ne[3] == 2);
    tn_gguf_close(&g);
    TEST_CHECK(g == NULL);
    TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data + 1, b->size - 1, "odd", &g), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, NULL, 1, "none", &g), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, NULL, 0, NULL, &g), TN_ERR_FORMAT);
    TEST_CHECK(g == NULL && strcmp(tn_gguf_type_name(TN_GGUF_F64), "f64") == 0 &&
               strcmp(tn_gguf_type_name(13), "?") == 0);
    bytes_header(b, 3, 0, 1);
    bytes_kv_f64(b, "k", 1e300);
    float f = 2;
    TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "f64", &g), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_get_f32(g, "k", &f), TN_ERR_FORMAT);
    TEST_CHECK(f == 2);
    tn_gguf_close(&g);
}

static void test_check_data(bytes *b)
{
    static const struct {
        uint32_t type;
        uint64_t n;
        uint8_t bad[4];
        size_t n_bad;
    } rows[] = {
        {0, 32, {0, 0, 0xc0, 0x7f}, 4}, // F32 NaN
        {0, 32, {0, 0, 0x80, 0xff}, 4}, // F32 -inf
        {1, 32, {0, 0x7c}, 2},          // F16 inf
        {2, 32, {0, 0x7e}, 2},          // Q4_0 scale NaN
        {12, 256, {0, 0x7c}, 2},        // Q4_K scale inf
        {39, 32, {0xff}, 1},            // MXFP4 exponent
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        tn_gguf *g = NULL;
        one_tensor(b, "t", 2, (uint64_t[]){rows[i].n, 3}, rows[i].type, 32);
        if (!TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "data", &g), TN_OK)) continue;
        TEST_CHECK_STATUS(tn_gguf_check_data(g), TN_OK);
        const tn_gguf_tensor *t = tn_gguf_tensor_at(g, 0);
        memcpy(b->data + t->file_offset + t->size / 3 * 2, rows[i].bad, rows[i].n_bad);
        TEST_CHECK_STATUS(tn_gguf_check_data(g), TN_ERR_FORMAT);
        char text[256];
        tn_context_error(ctx, text, sizeof text);
        TEST_CHECK(strstr(text, "tensor \"t\"") && strstr(text, "row 2"));
        tn_gguf_close(&g);
    }
}

// --- damage ------------------------------------------------------------------------------------------

static void test_truncation(bytes *b)
{
    size_t end = bytes_good_file(b);
    for (size_t n = 0; n <= b->size; n++) {
        tn_status status = open_copy(b->data, n);
        if (!TEST_CHECK_STATUS(status, n < end ? TN_ERR_FORMAT : TN_OK)) printf("    cut to %zu bytes\n", n);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void test_flips(bytes *b)
{
    bytes_good_file(b);
    bytes damaged = {0};
    uint64_t state = 1;
    long opened = 0;
    for (int i = 0; i < 20000; i++) {
        damaged.size = 0;
        bytes_put(&damaged, b->data, b->size);
        for (uint64_t k = next_random(&state) % 3 + 1; k > 0; k--) {
            size_t at = next_random(&state) % damaged.size;
            damaged.data[at] =
                (uint8_t)(next_random(&state) % 2 ? next_random(&state) : damaged.data[at] ^ 1u << k);
        }
        tn_status status = open_copy(damaged.data, damaged.size);
        if (status != TN_OK && status != TN_ERR_FORMAT) TEST_CHECK_STATUS(status, TN_ERR_FORMAT);
        opened += status == TN_OK;
    }
    TEST_CHECK(opened > 1000 && opened < 19000); // both verdicts were exercised
    free(damaged.data);
}

static void test_alloc_failure(bytes *b)
{
    bytes_good_file(b);
    for (int all_after = 0; all_after < 2; all_after++) {
        tn_status status = TN_ERR_MEMORY;
        for (long n = 0; status == TN_ERR_MEMORY && n < 100; n++) {
            count.fail_from = count.calls + n;
            count.fail_to = all_after ? LONG_MAX : count.fail_from + 1;
            status = open_copy(b->data, b->size);
            if (n == 0) TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        }
        TEST_CHECK_STATUS(status, TN_OK);
        count.fail_from = count.fail_to = 0;
    }
}

// --- limits ------------------------------------------------------------------------------------------

static void check_limits(const bytes *b, size_t metadata, const char *what)
{
    counting own;
    tn_context *fresh = counting_context(&own);
    size_t before = tn_context_memory(fresh);
    tn_gguf *g = NULL;
    clock_t start = clock();
    TEST_CHECK_STATUS(tn_gguf_open_memory(fresh, b->data, b->size, what, &g), TN_OK);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    size_t used = tn_context_memory_peak(fresh) - before;
    printf("%s: %.3f s, %zu bytes of memory for %zu of metadata\n", what, seconds, used, metadata);
    TEST_CHECK(seconds <= 60); // quadratic code would take hours; emulated, with sanitizers, seconds
    TEST_CHECK(used <= 4 * metadata + (1 << 20));
    TEST_CHECK(tn_context_n_allocs(fresh) < 16);
    tn_gguf_close(&g);
    tn_context_destroy(&fresh);
    TEST_CHECK(own.live == 0);
}

static tn_status no_step(void *user, size_t n)
{
    TN_UNUSED(user), TN_UNUSED(n);
    return TN_OK;
}

// A file whose records are longer than one read of them, and data that is read into memory.
static void test_read(bytes *b)
{
    enum { N_KEYS = 5000, KEY = 200 };
    bytes_header(b, 3, 1, N_KEYS);
    for (int i = 0; i < N_KEYS; i++) {
        char key[KEY + 1];
        snprintf(key, sizeof key, "%0*d", KEY, i);
        bytes_kv_num(b, key, TN_GGUF_U32, (uint64_t)i * 7, 4);
    }
    bytes_info(b, "t", 1, (uint64_t[]){1000}, 24, 0);
    bytes_pad(b, 32);
    for (int i = 0; i < 1000; i++) bytes_num(b, (uint64_t)i % 251, 1);
    tn_gguf *g = NULL;
    if (!TEST_CHECK_STATUS(rules_open_by_reading(ctx, b, &g), TN_OK)) return;
    bool same = tn_gguf_n_kv(g) == N_KEYS;
    for (int i = 0; i < N_KEYS && same; i++) {
        char key[KEY + 1];
        uint32_t v = 1;
        snprintf(key, sizeof key, "%0*d", KEY, i);
        same = tn_gguf_get_u32(g, key, &v) == TN_OK && v == (uint32_t)i * 7;
    }
    TEST_CHECK(same && tn_gguf_needs_load(g) && tn_gguf_load_size(g) == 1000);
    TEST_CHECK_STATUS(tn_gguf_reserve(g), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_load(g, no_step, NULL), TN_OK);
    const tn_gguf_tensor *t = tn_gguf_tensor_at(g, 0);
    TEST_CHECK(t && memcmp(t->data, b->data + b->size - 1000, 1000) == 0);
    tn_gguf_close(&g);
}

static void test_limits(bytes *b)
{
    enum { N_KEYS = 1000000, N_TENSORS = 100000 };
    char name[16];
    bytes_header(b, 3, 0, N_KEYS);
    for (int i = 0; i < N_KEYS; i++) {
        snprintf(name, sizeof name, "%x", i);
        bytes_kv_num(b, name, TN_GGUF_U8, 0, 1);
    }
    check_limits(b, b->size, "10^6 keys");
    bytes_header(b, 3, N_TENSORS, 1);
    bytes_kv_num(b, "general.alignment", TN_GGUF_U32, 8, 4);
    for (int i = 0; i < N_TENSORS; i++) {
        snprintf(name, sizeof name, "%x", i);
        bytes_info(b, name, 0, NULL, 24, (uint64_t)((i * 7919LL) % N_TENSORS) * 8);
    }
    bytes_pad(b, 8);
    size_t metadata = b->size;
    for (int i = 0; i < N_TENSORS; i++) bytes_num(b, 0, 8);
    check_limits(b, metadata, "10^5 tensors out of order");
}

int main(void)
{
    bytes b = {0};
    ctx = counting_context(&count);
    test_header(&b);
    test_strings(&b);
    test_arrays(&b);
    test_keys(&b);
    test_alignment(&b);
    test_names(&b);
    test_dims(&b);
    test_types(&b);
    test_ranges(&b);
    test_overlap(&b);
    rules_test(ctx, open_copy);
    test_values(&b);
    test_check_data(&b);
    test_truncation(&b);
    test_flips(&b);
    test_alloc_failure(&b);
    test_read(&b);
    test_limits(&b);
    free(b.data);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
