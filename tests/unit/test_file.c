// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Looking into files: keys as text, tensors, exported values.
#include "core/os/file_map.h"
#include "tests/unit/gguf_bytes.h"
#include "tests/unit/model_files.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <tenon/file.h>
#include <tenon/graph.h>
#include <unistd.h>

// --- keys ----------------------------------------------------------------------------------------------

static const struct {
    const char *name, *type, *value, *cut; // cut: with at most 3 items
} shown_keys[] = {
    {"k.u32", "u32", "4294967295", NULL},
    {"k.f32", "f32", "1e-05", NULL},
    {"k.bool", "bool", "true", NULL},
    {"k.str", "str", "h\xc3\xa9llo", "h\xc3\xa9l..."},
    {"k.odd\\n", "str", "a\\\\\\n\\x1b[0m\\xff\\xe2\\x80\\xae", "a\\\\\\n..."},
    {"k.empty", "str", "", NULL},
    {"k.strs", "[str]", "[\"abcd\", \"\\\"\", \"\", \"z\"]", "[\"abc\"..., \"\\\"\", \"\", ... 1 more]"},
    {"k.i8s", "[i8]", "[-1, 2, 3, 4]", "[-1, 2, 3, ... 1 more]"},
    {"k.u64s", "[u64]", "[18446744073709551615, 1]", NULL},
    {"k.f64s", "[f64]", "[0.1, 1e+300, inf]", NULL},
    {"k.bools", "[bool]", "[false, true]", NULL},
    {"k.none", "[f32]", "[]", NULL},
};

static void save_keys(const char *name)
{
    tn_gguf_writer *w = NULL;
    must(tn_gguf_writer_open(ctx, path_of(name), &w));
    must(tn_gguf_writer_put_u32(w, "k.u32", UINT32_MAX));
    must(tn_gguf_writer_put_f32(w, "k.f32", 1e-5f));
    must(tn_gguf_writer_put_bool(w, "k.bool", true));
    must(tn_gguf_writer_put_str(w, "k.str", "h\xc3\xa9llo"));
    must(tn_gguf_writer_put_str(w, "k.odd\n", "a\\\n\x1b[0m\xff\xe2\x80\xae"));
    must(tn_gguf_writer_put_str(w, "k.empty", ""));
    must(tn_gguf_writer_put_strs(w, "k.strs", (const char *const[]){"abcd", "\"", "", "z"}, 4));
    must(tn_gguf_writer_put_array(w, "k.i8s", TN_GGUF_I8, (int8_t[]){-1, 2, 3, 4}, 4));
    must(tn_gguf_writer_put_array(w, "k.u64s", TN_GGUF_U64, (uint64_t[]){UINT64_MAX, 1}, 2));
    must(tn_gguf_writer_put_array(w, "k.f64s", TN_GGUF_F64, (double[]){0.1, 1e300, HUGE_VAL}, 3));
    must(tn_gguf_writer_put_array(w, "k.bools", TN_GGUF_BOOL, (uint8_t[]){0, 1}, 2));
    must(tn_gguf_writer_put_array(w, "k.none", TN_GGUF_F32, NULL, 0));
    must(tn_gguf_writer_begin(w));
    must(tn_gguf_writer_commit(&w, NULL, NULL));
}

// No writer of this project makes arrays of arrays.
static void test_nested(void)
{
    tn_file *file = NULL;
    char *name = NULL;
    const char *type, *value;
    bytes *b = calloc(1, sizeof *b);
    if (!b) abort();
    bytes_header(b, 3, 0, 1);
    bytes_key(b, "k", TN_GGUF_ARRAY);
    bytes_num(b, TN_GGUF_ARRAY, 4);
    bytes_num(b, 2, 8);
    for (uint64_t i = 0; i < 2; i++) {
        bytes_num(b, TN_GGUF_U32, 4);
        bytes_num(b, 1, 8);
        bytes_num(b, i, 4);
    }
    FILE *f = fopen(path_of("nested.gguf"), "wb");
    if (!f || fwrite(b->data, 1, b->size, f) != b->size || fclose(f) != 0) abort();
    free(b->data);
    free(b);
    if (TEST_CHECK_STATUS(tn_file_open(ctx, path_of("nested.gguf"), &file), TN_OK) &&
        TEST_CHECK_STATUS(tn_file_key(file, 0, 0, &name, &type, &value), TN_OK))
        TEST_CHECK(strcmp(type, "[array]") == 0 && strcmp(value, "[... 2 arrays]") == 0);
    tn_text_free(ctx, name);
    tn_file_close(&file);
    unlink(path_of("nested.gguf"));
}

static void test_keys(void)
{
    save_keys("keys.gguf");
    tn_file *file = NULL;
    TEST_CHECK_STATUS(tn_file_open(ctx, path_of("keys.gguf"), &file), TN_OK);
    if (!file) return;
    TEST_CHECK(tn_file_n_keys(file) == TN_COUNT(shown_keys));
    TEST_CHECK(tn_file_n_tensors(file) == 0 && tn_file_version(file) == 3 && tn_file_n_parts(file) == 1);
    TEST_CHECK(tn_file_find_tensor(file, "x") == -1);
    for (int64_t i = 0; i < tn_file_n_keys(file); i++) {
        for (int64_t max = 0; max <= 3; max += 3) {
            const char *type, *value,
                *want = max && shown_keys[i].cut ? shown_keys[i].cut : shown_keys[i].value;
            char *name = NULL;
            TEST_CHECK_STATUS(tn_file_key(file, i, max, &name, &type, &value), TN_OK);
            if (!name) continue;
            bool same = strcmp(name, shown_keys[i].name) == 0 && strcmp(type, shown_keys[i].type) == 0;
            if (max == 0 || shown_keys[i].cut || strlen(want) < 20) same = same && strcmp(value, want) == 0;
            if (!TEST_CHECK(same)) printf("    %s %s: %s\n", name, type, value);
            tn_text_free(ctx, name);
        }
    }
    char *name = NULL;
    const char *type, *value;
    TEST_CHECK_STATUS(tn_file_key(file, -1, 0, &name, &type, &value), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_file_key(file, tn_file_n_keys(file), 0, &name, &type, &value), TN_ERR_ARG);
    tn_file_close(&file);
    TEST_CHECK(!file);
    tn_file_close(&file);
    TEST_CHECK_STATUS(tn_file_open(ctx, path_of("absent"), &file), TN_ERR_IO);
    unlink(path_of("keys.gguf"));
}

// --- tensors -------------------------------------------------------------------------------------------

static bool export_is_right(const char *path, const spec *t, uint32_t seed)
{
    static float x[MAX_ELEMS], packed[MAX_ELEMS], got[MAX_ELEMS];
    size_t n = n_elems(t);
    random_values(x, n, seed);
    tn_quant_info_get(t->dtype)->from_f32(x, packed, (int64_t)n, NULL);
    tn_quant_info_get(t->dtype)->to_f32(packed, x, (int64_t)n);
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    bool same = fread(got, sizeof *got, n, f) == n && fgetc(f) == EOF && memcmp(got, x, n * sizeof *x) == 0;
    fclose(f);
    return same;
}

// Pieces of a tensor are what was exported; whole blocks of it only, and nothing behind its end.
static bool read_is_right(const tn_file *file, int64_t i, const char *path)
{
    static float want[MAX_ELEMS], got[MAX_ELEMS];
    int64_t n = (int64_t)n_elems(&dense[i]), block = tn_dtype_block_elems(dense[i].dtype);
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    bool same = fread(want, sizeof *want, (size_t)n, f) == (size_t)n;
    fclose(f);
    for (int64_t first = 0, k; first < n && same; first += k) {
        k = TN_MIN(n - first, 3 * block);
        same = tn_file_read_tensor(file, i, first, k, got + first) == TN_OK;
    }
    same = same && memcmp(want, got, (size_t)n * sizeof *want) == 0 &&
           tn_file_read_tensor(file, i, n, 0, got) == TN_OK;
    const int64_t bad[][2] = {{-block, block}, {0, -block}, {0, n + block}, {n, block}, {INT64_MAX, block}};
    for (size_t k = 0; k < TN_COUNT(bad); k++)
        same = same && tn_file_read_tensor(file, i, bad[k][0], bad[k][1], got) == TN_ERR_ARG;
    if (block > 1)
        same = same && tn_file_read_tensor(file, i, 1, block, got) == TN_ERR_ARG &&
               tn_file_read_tensor(file, i, 0, 1, got) == TN_ERR_ARG;
    return same && memcmp(want, got, (size_t)n * sizeof *want) == 0;
}

static void test_tensors(void)
{
    const char *path = save_model("in.gguf", dense, N_DENSE, 0);
    tn_file *file = NULL;
    struct stat st;
    TEST_CHECK_STATUS(tn_file_open(ctx, path, &file), TN_OK);
    if (!file) return;
    TEST_CHECK(tn_file_n_tensors(file) == N_DENSE);
    TEST_CHECK(stat(path, &st) == 0 && tn_file_size(file) == (uint64_t)st.st_size);
    TEST_CHECK_STATUS(tn_file_check(file), TN_OK);
    for (int i = 0; i < N_DENSE; i++) {
        tn_file_tensor t = {.struct_size = sizeof t};
        tn_file_tensor_get(file, i, &t);
        TEST_CHECK(strcmp(t.name, dense[i].name) == 0 && t.dtype == dense[i].dtype &&
                   t.n_dims == dense[i].n_dims);
        TEST_CHECK(memcmp(t.shape, dense[i].ne, sizeof dense[i].ne) == 0 && t.file == 0);
        TEST_CHECK(t.size == tn_dtype_row_size(t.dtype, (int64_t)n_elems(&dense[i])));
        TEST_CHECK(tn_file_find_tensor(file, dense[i].name) == i);
        TEST_CHECK_STATUS(tn_file_export_tensor(file, i, path_of("x.f32")), TN_OK);
        TEST_CHECK(export_is_right(path_of("x.f32"), &dense[i], (uint32_t)i + 1));
        TEST_CHECK(read_is_right(file, i, path_of("x.f32")));
    }
    // A link stays, and what it names is replaced.
    bool linked = symlink("x.f32", path_of("link")) == 0;
    TEST_CHECK(linked || errno == ENOSYS);
    if (linked) {
        TEST_CHECK_STATUS(tn_file_export_tensor(file, 0, path_of("link")), TN_OK);
        TEST_CHECK(lstat(path_of("link"), &st) == 0 && S_ISLNK(st.st_mode));
        TEST_CHECK(export_is_right(path_of("x.f32"), &dense[0], 1));
        unlink(path_of("link"));
    }
    unlink(path_of("x.f32"));
    tn_file_tensor none = {.struct_size = sizeof none, .n_dims = 7};
    TEST_CHECK_STATUS(tn_file_tensor_get(file, N_DENSE, &none), TN_ERR_ARG);
    TEST_CHECK(none.n_dims == 7 && !none.name);
    TEST_CHECK_STATUS(tn_file_export_tensor(file, N_DENSE, path_of("x.f32")), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_file_read_tensor(file, N_DENSE, 0, 1, &(float){0}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_file_export_tensor(file, 0, NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_file_export_tensor(file, 0, path), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_file_export_tensor(file, 0, path_of("no/folder")), TN_ERR_IO);
    TEST_CHECK(n_files() == 1);
    tn_file_close(&file);
}

static tn_status use_all(const char *in, const char *out)
{
    tn_file *file = NULL;
    tn_status status = tn_file_open(ctx, in, &file);
    for (int64_t i = 0; status == TN_OK && i < tn_file_n_keys(file); i++) {
        char *name;
        const char *type, *value;
        status = tn_file_key(file, i, 0, &name, &type, &value);
        if (status == TN_OK) tn_text_free(ctx, name);
    }
    if (status == TN_OK) status = tn_file_export_tensor(file, 0, out);
    tn_file_close(&file);
    return status;
}

static void test_no_memory(void)
{
    int before = n_files();
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 1000; k++) {
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1;
        status = use_all(path_of("in.gguf"), path_of("out"));
        count.fail_from = count.fail_to = 0;
        if (status != TN_OK && status != TN_ERR_MEMORY) TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        if (status != TN_OK) TEST_CHECK(n_files() == before);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(k > 20 && k < 1000 && n_files() == before + 1);
    unlink(path_of("out"));
}

// Bytes of a mapped file are read from it, also by its parts; others are copied; what is gone is an error.
static void test_copy(void)
{
    char path[256], content[5000], got[sizeof content] = "";
    for (size_t i = 0; i < sizeof content; i++) content[i] = (char)(i * 7 % 251);
    snprintf(path, sizeof path, "%s", path_of("raw"));
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(content, 1, sizeof content, f) != sizeof content || fclose(f) != 0) abort();
    tn_file_map map = {0}, other = {0};
    must(tn_file_map_open(ctx, path, &map));
    must(tn_file_map_open(ctx, path, &other));
    for (size_t at = 0; at < sizeof content; at += 999) {
        size_t n = TN_MIN(sizeof content - at, 1500);
        TEST_CHECK_STATUS(tn_file_map_copy(ctx, got, map.data + at, n), TN_OK);
        TEST_CHECK(memcmp(got, content + at, n) == 0);
    }
    tn_file_map_close(ctx, &map);
    TEST_CHECK_STATUS(tn_file_map_copy(ctx, got, other.data, 10), TN_OK);
    TEST_CHECK_STATUS(tn_file_map_copy(ctx, got, content + 3, 100), TN_OK);
    TEST_CHECK(memcmp(got, content + 3, 100) == 0);
    bool cut = truncate(path, 1000) == 0;
    TEST_CHECK(cut || errno == EACCES || errno == EINVAL); // Windows refuses it while the file is mapped
    if (cut) TEST_CHECK_STATUS(tn_file_map_copy(ctx, got, other.data + 900, 200), TN_ERR_IO);
    tn_file_map_close(ctx, &other);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    ctx = counting_context(&count);
    test_nested();
    test_keys();
    test_tensors();
    test_no_memory();
    test_copy();
    unlink(path_of("in.gguf"));
    unlink(path_of("raw"));
    TEST_CHECK(rmdir(folder) == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
