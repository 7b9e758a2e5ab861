// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GGUF on disk: opening, split models, and the writer into files and memory, also with failing allocations.
// Arguments, if any: GGUF files that must open and survive being written again.
#include "tests/unit/counting.h"
#include "tests/unit/gguf_bytes.h"
#include "tests/unit/test.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static counting count;
static tn_context *ctx;
static char folder[] = "/tmp/tenon_test_gguf_XXXXXX";

static const char *path_of(const char *name)
{
    static char path[2][256]; // so that two can be used at once
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void save(const bytes *b, const char *name)
{
    FILE *f = fopen(path_of(name), "wb");
    if (!f || fwrite(b->data, 1, b->size, f) != b->size || fclose(f) != 0) abort();
}

static tn_status open_file(const char *path)
{
    long live = count.live;
    tn_gguf *gguf = NULL;
    tn_status status = tn_gguf_open(ctx, path, &gguf);
    if ((status == TN_OK) != (gguf != NULL)) TEST_CHECK(!"object on success only");
    if (gguf) walk_all(gguf);
    tn_gguf_close(&gguf);
    if (count.live != live) TEST_CHECK(!"nothing leaks");
    return status;
}

static void expect_at(int line, const char *name, tn_status want, const char *message)
{
    tn_status got = open_file(path_of(name));
    char text[1024] = "";
    if (got != TN_OK) tn_context_error(ctx, text, sizeof text);
    bool ok = got == want && (want == TN_OK || strstr(text, message));
    if (!test_report(ok, __FILE__, line, message)) printf("    got \"%s\": %s\n", tn_status_text(got), text);
}
#define EXPECT(name, status, message) expect_at(__LINE__, (name), (status), (message))

static void test_open(bytes *b)
{
    bytes_good_file(b);
    save(b, "good.gguf");
    EXPECT("good.gguf", TN_OK, "opens");
    EXPECT("absent.gguf", TN_ERR_IO, "absent.gguf");
    EXPECT(".", TN_ERR_IO, "not a regular file");
    b->size = 0;
    save(b, "empty.gguf");
    EXPECT("empty.gguf", TN_ERR_FORMAT, "empty");
    if (mkfifo(path_of("pipe"), 0600) == 0) EXPECT("pipe", TN_ERR_IO, "not a regular file");
    TEST_CHECK_STATUS(open_file("/dev/zero"), TN_ERR_IO);
    tn_gguf *g = NULL;
    TEST_CHECK_STATUS(tn_gguf_open(ctx, NULL, &g), TN_ERR_ARG);
    tn_gguf_close(&g);
    tn_gguf_close(NULL);
}

// --- split models --------------------------------------------------------------------------------------

// What one part says about itself; -1: the key is left out.
typedef struct part {
    int no, count, n_tensors;
    int first, n; // its tensors are t<first> ... t<first + n - 1>
    uint32_t align;
} part;

static void save_part(bytes *b, const part *p, const char *name)
{
    int n_kv = 1 + (p->no >= 0) + (p->count >= 0) + (p->n_tensors >= 0);
    bytes_header(b, 3, (uint64_t)p->n, (uint64_t)n_kv);
    bytes_kv_num(b, "general.alignment", TN_GGUF_U32, p->align, 4);
    if (p->no >= 0) bytes_kv_num(b, "split.no", TN_GGUF_U16, (uint64_t)p->no, 2);
    if (p->count >= 0) bytes_kv_num(b, "split.count", TN_GGUF_U16, (uint64_t)p->count, 2);
    if (p->n_tensors >= 0) bytes_kv_num(b, "split.tensors.count", TN_GGUF_I32, (uint64_t)p->n_tensors, 4);
    for (int i = 0; i < p->n; i++) {
        char tensor[16];
        snprintf(tensor, sizeof tensor, "t%d", p->first + i);
        bytes_info(b, tensor, 1, (uint64_t[]){(uint64_t)(p->first + i + 1)}, 24, (uint64_t)i * p->align);
    }
    bytes_pad(b, p->align);
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k <= p->first + i; k++) bytes_num(b, (uint64_t)(p->first + i), 1);
        bytes_pad(b, p->align);
    }
    save(b, name);
}

static const part good_parts[3] = {{0, 3, 5, 0, 0, 32}, {1, 3, 5, 0, 2, 64}, {2, 3, 5, 2, 3, 8}};

static void save_parts(bytes *b, const part parts[3])
{
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "m-%05d-of-00003.gguf", i + 1);
        save_part(b, &parts[i], name);
    }
}

static void test_split_good(bytes *b)
{
    save_parts(b, good_parts);
    tn_gguf *g = NULL;
    if (!TEST_CHECK_STATUS(tn_gguf_open(ctx, path_of("m-00001-of-00003.gguf"), &g), TN_OK)) return;
    TEST_CHECK(tn_gguf_n_files(g) == 3 && tn_gguf_n_tensors(g) == 5 && tn_gguf_n_kv(g) == 4);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "t%d", i);
        const tn_gguf_tensor *t = tn_gguf_find_tensor(g, name);
        TEST_CHECK(t && t->file == (i < 2 ? 1 : 2) && t->ne[0] == i + 1);
        TEST_CHECK(t && t->data[0] == i && t->data[t->size - 1] == i);
    }
    tn_gguf_close(&g);
    part parts[3];
    memcpy(parts, good_parts, sizeof parts);
    for (int i = 1; i < 3; i++) parts[i].count = parts[i].n_tensors = -1; // only split.no is needed there
    save_parts(b, parts);
    EXPECT("m-00001-of-00003.gguf", TN_OK, "parts with split.no only");
    for (int n = 0; n < 2; n++) { // not split at all
        save_part(b, &(part){n == 0 ? -1 : 0, n, 1, 0, 1, 32}, "single.gguf");
        EXPECT("single.gguf", TN_OK, "split.count 0 or 1");
    }
}

static void test_split_bad(bytes *b)
{
    static const struct {
        int which;
        part part;
        tn_status status;
        const char *message;
    } rows[] = {
        {0, {1, 3, 5, 0, 0, 32}, TN_ERR_FORMAT, "part 2 of 3 of a split model; open the first"},
        {0, {-1, 3, 5, 0, 0, 32}, TN_ERR_FORMAT, "split model without the key \"split.no\""},
        {0, {0, 4, 5, 0, 0, 32}, TN_ERR_FORMAT, "the name must end with \"-00001-of-00004.gguf\""},
        {0, {0, 3, -1, 0, 0, 32}, TN_ERR_FORMAT, "without the key \"split.tensors.count\""},
        {0, {0, 3, 6, 0, 0, 32}, TN_ERR_FORMAT, "\"split.tensors.count\" is 5, but 6 in the first file"},
        {0, {0, 3, 5, 9, 1, 32}, TN_ERR_FORMAT, "\"split.tensors.count\" is 5, but the files have 6"},
        {1, {0, 3, 5, 0, 2, 64}, TN_ERR_FORMAT, "m-00002-of-00003.gguf: key \"split.no\" is 0, must be 1"},
        {1, {2, 3, 5, 0, 2, 64}, TN_ERR_FORMAT, "\"split.no\" is 2, must be 1"},
        {1, {-1, 3, 5, 0, 2, 64}, TN_ERR_FORMAT, "without the key \"split.no\""},
        {1, {1, 2, 5, 0, 2, 64}, TN_ERR_FORMAT, "\"split.count\" is 2, but 3 in the first file"},
        {2, {2, 3, 5, 1, 3, 8}, TN_ERR_FORMAT, "tensor \"t1\" occurs twice"},
        {2, {2, 3, 5, 2, 2, 8}, TN_ERR_FORMAT, "but the files have 4"},
        {2, {2, 3, 5, 2, 3, 4}, TN_ERR_FORMAT, "m-00003-of-00003.gguf: key \"general.alignment\""},
    };
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        part parts[3];
        memcpy(parts, good_parts, sizeof parts);
        parts[rows[i].which] = rows[i].part;
        save_parts(b, parts);
        EXPECT("m-00001-of-00003.gguf", rows[i].status, rows[i].message);
    }
    save_parts(b, good_parts);
    EXPECT("m-00002-of-00003.gguf", TN_ERR_FORMAT, "open the first");
    save_part(b, &good_parts[0], "m.gguf");
    EXPECT("m.gguf", TN_ERR_FORMAT, "the name must end with");
    tn_gguf *g = NULL;
    TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "m-00001-of-00003.gguf", &g),
                      TN_ERR_UNSUPPORTED);
    unlink(path_of("m-00003-of-00003.gguf"));
    EXPECT("m-00001-of-00003.gguf", TN_ERR_IO, "m-00003-of-00003.gguf: cannot open");
    save_part(b, &good_parts[2], "m-00003-of-00003.gguf");
    if (truncate(path_of("m-00003-of-00003.gguf"), (off_t)b->size - 8) == 0)
        EXPECT("m-00001-of-00003.gguf", TN_ERR_FORMAT, "file 3 of 3: tensor \"t4\"");
    static const uint64_t counts[] = {1u << 16, 1ull << 32, 1ull << 63};
    for (size_t i = 0; i < TN_COUNT(counts); i++) { // too many for split.count, whatever its type
        bytes_header(b, 3, 0, 1);
        bytes_kv_num(b, "split.count", TN_GGUF_U64, counts[i], 8);
        save(b, "m-00001-of-00003.gguf");
        EXPECT("m-00001-of-00003.gguf", TN_ERR_FORMAT, "key \"split.count\"");
    }
    bytes_header(b, 3, 0, 1);
    bytes_kv_str(b, "split.count", "3");
    save(b, "m-00001-of-00003.gguf");
    EXPECT("m-00001-of-00003.gguf", TN_ERR_FORMAT, "string found, an integer expected");
}

// Each key of a split model with a value of each type, and numbers out of range, in the first and in the last
// part. Integers of any type are taken.
static void test_split_types(bytes *b)
{
    static const char *const keys[] = {"split.no", "split.count", "split.tensors.count"};
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
    int n_refused = 0, n_opened = 0;
    for (int which = 0; which < 3; which += 2)
        for (int k = 0; k < 3; k++)
            for (uint32_t type = 0; type < TN_GGUF_TYPE_COUNT; type++)
                for (int far = 0; far < 2; far++) {
                    const part *p = &good_parts[which];
                    const uint64_t values[] = {(uint64_t)p->no, (uint64_t)p->count, (uint64_t)p->n_tensors};
                    bool integer = type <= TN_GGUF_I32 || type == TN_GGUF_U64 || type == TN_GGUF_I64;
                    save_parts(b, good_parts);
                    bytes_header(b, 3, (uint64_t)p->n, 4);
                    bytes_kv_num(b, "general.alignment", TN_GGUF_U32, p->align, 4);
                    for (int i = 0; i < 3; i++) {
                        uint64_t value = far ? UINT64_MAX : values[i]; // -1, or the largest of its type
                        if (i == k && type == TN_GGUF_ARRAY) {
                            bytes_array(b, keys[i], TN_GGUF_U8, 0);
                        } else if (i == k) {
                            bytes_kv_num(b, keys[i], type, type == TN_GGUF_STRING ? 0 : value, sizes[type]);
                        } else {
                            bytes_kv_num(b, keys[i], TN_GGUF_U32, values[i], 4);
                        }
                    }
                    for (int i = 0; i < p->n; i++) {
                        char tensor[16];
                        snprintf(tensor, sizeof tensor, "t%d", p->first + i);
                        bytes_info(b, tensor, 1, (uint64_t[]){1}, 24, (uint64_t)i * p->align);
                    }
                    bytes_pad(b, p->align);
                    bytes_num(b, 0, (size_t)p->n * p->align + 1);
                    save(b, which ? "m-00003-of-00003.gguf" : "m-00001-of-00003.gguf");
                    bool opens = integer && !far;
                    EXPECT("m-00001-of-00003.gguf", opens ? TN_OK : TN_ERR_FORMAT,
                           integer && k < 2 && which == 0 ? "split" : keys[k]);
                    n_opened += opens;
                    n_refused += !opens;
                }
    printf("keys of split models: %d malformed files are refused, %d next to them open\n", n_refused,
           n_opened);
}

static void test_split_alloc(bytes *b)
{
    save_parts(b, good_parts);
    tn_status status = TN_ERR_MEMORY;
    long n = 0;
    for (; status == TN_ERR_MEMORY && n < 100; n++) {
        count.fail_from = count.calls + n;
        count.fail_to = count.fail_from + 1;
        status = open_file(path_of("m-00001-of-00003.gguf"));
    }
    count.fail_from = count.fail_to = 0;
    TEST_CHECK_STATUS(status, TN_OK);
    TEST_CHECK(n > 10);
}

// --- writer --------------------------------------------------------------------------------------------

// Writes all of a file again: keys copied, tensors in the same order, data in pieces.
static tn_status write_copy(const tn_gguf *g, tn_gguf_writer *w)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_gguf_n_kv(g) && status == TN_OK; i++)
        status = tn_gguf_writer_copy_kv(w, tn_gguf_kv_at(g, i));
    for (int64_t i = 0; i < tn_gguf_n_tensors(g) && status == TN_OK; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(g, i);
        status = tn_gguf_writer_add_tensor(w, t->name, t->dtype, t->n_dims, t->ne);
    }
    if (status == TN_OK) status = tn_gguf_writer_begin(w);
    for (int64_t i = 0; i < tn_gguf_n_tensors(g) && status == TN_OK; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(g, i);
        status = tn_gguf_writer_data(w, t->data, t->size / 3);
        if (status == TN_OK) status = tn_gguf_writer_data(w, t->data + t->size / 3, t->size - t->size / 3);
    }
    return status;
}

static bool same_dims(const tn_gguf_tensor *a, const tn_gguf_tensor *b)
{
    for (int32_t i = 1; i <= TN_MAX_DIMS; i++) {
        int64_t x = i <= a->n_dims ? a->ne[a->n_dims - i] : 1, y = i <= b->n_dims ? b->ne[b->n_dims - i] : 1;
        if (x != y) return false;
    }
    return a->dtype == b->dtype && a->size == b->size;
}

static void check_same(const tn_gguf *a, const tn_gguf *b)
{
    TEST_CHECK(tn_gguf_n_kv(a) == tn_gguf_n_kv(b) && tn_gguf_n_tensors(a) == tn_gguf_n_tensors(b));
    bool same = true;
    for (int64_t i = 0; i < tn_gguf_n_kv(a); i++) {
        const tn_gguf_kv *x = tn_gguf_kv_at(a, i), *y = tn_gguf_kv_at(b, i);
        same = same && y && x->key.size == y->key.size && memcmp(x->key.data, y->key.data, x->key.size) == 0;
        same = same && x->type == y->type && x->elem_type == y->elem_type && x->count == y->count;
        same = same && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
    }
    TEST_CHECK(same);
    for (int64_t i = 0; i < tn_gguf_n_tensors(a); i++) {
        const tn_gguf_tensor *x = tn_gguf_tensor_at(a, i), *y = tn_gguf_tensor_at(b, i);
        same = same && y && strcmp(x->name, y->name) == 0 && same_dims(x, y);
        same = same && memcmp(x->data, y->data, x->size) == 0;
    }
    TEST_CHECK(same);
}

// Through a file when path is given, else through memory; the two must be the same bytes.
static tn_status round_trip(const tn_gguf *g, const char *path)
{
    tn_gguf_writer *w = NULL;
    tn_gguf *again = NULL;
    void *data = NULL;
    size_t size = 0;
    tn_status status = path ? tn_gguf_writer_open(ctx, path, &w) : tn_gguf_writer_open_memory(ctx, &w);
    if (status == TN_OK) status = write_copy(g, w);
    if (status == TN_OK)
        status = path ? tn_gguf_writer_commit(&w, NULL, NULL) : tn_gguf_writer_commit(&w, &data, &size);
    if (status == TN_OK)
        status =
            path ? tn_gguf_open(ctx, path, &again) : tn_gguf_open_memory(ctx, data, size, "again", &again);
    if (status == TN_OK) check_same(g, again);
    tn_gguf_writer_abort(&w);
    tn_gguf_close(&again);
    tn_free(ctx, data);
    return status;
}

static void test_round_trip(bytes *b)
{
    tn_gguf *g = NULL;
    bytes_good_file(b);
    if (!TEST_CHECK_STATUS(tn_gguf_open_memory(ctx, b->data, b->size, "good", &g), TN_OK)) return;
    for (int to_file = 0; to_file < 2; to_file++) {
        tn_status status = TN_ERR_MEMORY;
        for (long n = -1; (status == TN_ERR_MEMORY || n < 1) && n < 200; n++) {
            long live = count.live;
            count.fail_from = n < 0 ? LONG_MAX : count.calls + n;
            count.fail_to = n < 0 ? LONG_MAX : count.fail_from + 1;
            status = round_trip(g, to_file ? path_of("copy.gguf") : NULL);
            if (count.live != live) TEST_CHECK(!"the writer leaks");
            if (n <= 0) TEST_CHECK_STATUS(status, n < 0 ? TN_OK : TN_ERR_MEMORY);
        }
        TEST_CHECK_STATUS(status, TN_OK);
    }
    count.fail_from = count.fail_to = 0;
    tn_gguf_close(&g);
}

static tn_status put_everything(tn_gguf_writer *w)
{
    static const float floats[] = {1, -2};
    static const char *const strs[] = {"x", "", "yz"};
    tn_status status = tn_gguf_writer_put_str(w, "general.architecture", "test");
    if (status == TN_OK) status = tn_gguf_writer_put_u32(w, "u32", 4000000000u);
    if (status == TN_OK) status = tn_gguf_writer_put_f32(w, "f32", 0.5f);
    if (status == TN_OK) status = tn_gguf_writer_put_bool(w, "bool", true);
    if (status == TN_OK) status = tn_gguf_writer_put_array(w, "floats", TN_GGUF_F32, floats, 2);
    if (status == TN_OK) status = tn_gguf_writer_put_array(w, "none", TN_GGUF_U8, NULL, 0);
    if (status == TN_OK) status = tn_gguf_writer_put_strs(w, "strs", strs, 3);
    if (status == TN_OK) status = tn_gguf_writer_add_tensor(w, "a", TN_TYPE_F32, 3, (int64_t[]){1, 2, 3});
    if (status == TN_OK) status = tn_gguf_writer_add_tensor(w, "b", TN_TYPE_I8, 2, (int64_t[]){1, 1});
    return status;
}

// The bytes, against an image built by hand.
static void test_layout(bytes *b)
{
    tn_gguf_writer *w = NULL;
    void *data = NULL, *place = NULL;
    size_t size = 0;
    bytes_header(b, 3, 2, 7);
    bytes_kv_str(b, "general.architecture", "test");
    bytes_kv_num(b, "u32", TN_GGUF_U32, 4000000000u, 4);
    bytes_kv_f32(b, "f32", 0.5f);
    bytes_kv_num(b, "bool", TN_GGUF_BOOL, 1, 1);
    bytes_array(b, "floats", TN_GGUF_F32, 2);
    bytes_put(b, (float[]){1, -2}, 8);
    bytes_array(b, "none", TN_GGUF_U8, 0);
    bytes_array(b, "strs", TN_GGUF_STRING, 3);
    bytes_str(b, "x");
    bytes_str(b, "");
    bytes_str(b, "yz");
    bytes_info(b, "a", 2, (uint64_t[]){3, 2}, 0, 0);
    bytes_info(b, "b", 1, (uint64_t[]){1}, 24, 32);
    bytes_pad(b, 32);
    bytes_put(b, (float[]){1, 2, 3, 4, 5, 6}, 24);
    bytes_pad(b, 32);
    bytes_num(b, 9, 1);
    bytes_pad(b, 32);
    for (int use_place = 0; use_place < 2; use_place++) {
        TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
        TEST_CHECK_STATUS(put_everything(w), TN_OK);
        TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_OK);
        if (use_place) {
            TEST_CHECK_STATUS(tn_gguf_writer_place(w, 2, &place), TN_ERR_ARG);
            TEST_CHECK_STATUS(tn_gguf_writer_place(w, -1, &place), TN_ERR_ARG);
            TEST_CHECK_STATUS(tn_gguf_writer_place(w, 1, &place), TN_OK);
            memset(place, 9, 1);
            TEST_CHECK_STATUS(tn_gguf_writer_place(w, 0, &place), TN_OK);
            memcpy(place, (float[]){1, 2, 3, 4, 5, 6}, 24);
            TEST_CHECK_STATUS(tn_gguf_writer_data(w, place, 1), TN_ERR_STATE);
        } else {
            TEST_CHECK_STATUS(tn_gguf_writer_data(w, (float[]){1, 2, 3, 4, 5, 6}, 24), TN_OK);
            TEST_CHECK_STATUS(tn_gguf_writer_place(w, 0, &place), TN_ERR_STATE);
            TEST_CHECK_STATUS(tn_gguf_writer_data(w, "\t", 1), TN_OK);
        }
        TEST_CHECK_STATUS(tn_gguf_writer_commit(&w, &data, &size), TN_OK);
        TEST_CHECK(!w && size == b->size && memcmp(data, b->data, size) == 0);
        tn_free(ctx, data);
    }
}

static void test_writer_args(void)
{
    static char long_key[65537];
    memset(long_key, 'k', 65536);
    tn_gguf_writer *w = NULL;
    TEST_CHECK_STATUS(tn_gguf_writer_open(ctx, NULL, &w), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_open(ctx, path_of("no/such/folder.gguf"), &w), TN_ERR_IO);
    TEST_CHECK(!w);
    tn_gguf_writer_abort(&w);
    TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, "", 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, long_key, 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, "general.alignment", 48), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_f32(w, "general.alignment", 32), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_array(w, "k", TN_GGUF_STRING, NULL, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_array(w, "k", TN_GGUF_ARRAY, NULL, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_array(w, "k", 13, NULL, 0), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_array(w, "k", TN_GGUF_U64, NULL, 1ull << 61), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_array(w, "k", TN_GGUF_U8, NULL, (1u << 30) + 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_strs(w, "k", NULL, (1u << 30) + 1), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "", TN_TYPE_F32, 1, (int64_t[]){1}), TN_ERR_ARG);
    long_key[64] = 0;
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, long_key, TN_TYPE_F32, 1, (int64_t[]){1}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_COUNT, 1, (int64_t[]){1}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_F32, 0, NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_F32, 5, NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_F32, 1, (int64_t[]){0}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_Q8_0, 1, (int64_t[]){31}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_F64, 1, (int64_t[]){INT64_MAX}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "t", TN_TYPE_I8, 1, (int64_t[]){INT64_MAX}), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "u", TN_TYPE_I16, 1, (int64_t[]){INT64_MAX}), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, "general.alignment", 64), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_ERR_MEMORY); // 2^63 bytes
    tn_gguf_writer_abort(&w);
    TEST_CHECK(!w);
    // Data that fits below 2^64, but not with what is before it.
    TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
    for (int i = 0; i < 2; i++)
        TEST_CHECK_STATUS(
            tn_gguf_writer_add_tensor(w, i ? "b" : "a", TN_TYPE_I8, 1, (int64_t[]){INT64_MAX - 31}), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_ERR_ARG);
    tn_gguf_writer_abort(&w);
}

static void test_writer_states(void)
{
    tn_gguf_writer *w = NULL;
    void *data = NULL, *place;
    size_t size = 0;
    TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_data(w, "", 0), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_gguf_writer_place(w, 0, &place), TN_ERR_STATE);
    TEST_CHECK_STATUS(put_everything(w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, "late", 1), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "late", TN_TYPE_F32, 1, (int64_t[]){1}), TN_ERR_STATE);
    TEST_CHECK_STATUS(tn_gguf_writer_data(w, "0123456789012345678901234", 25), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_gguf_writer_commit(&w, &data, &size), TN_ERR_STATE); // data is missing
    TEST_CHECK(!w && !data);
    for (int what = 0; what < 2; what++) { // no place for the bytes, or for their number
        TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
        TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_OK);
        TEST_CHECK_STATUS(tn_gguf_writer_commit(&w, what ? &data : NULL, what ? NULL : &size), TN_ERR_ARG);
        TEST_CHECK(!w && !data && size == 0);
    }
    for (int what = 0; what < 2; what++) { // duplicates
        TEST_CHECK_STATUS(tn_gguf_writer_open_memory(ctx, &w), TN_OK);
        TEST_CHECK_STATUS(put_everything(w), TN_OK);
        if (what == 0)
            TEST_CHECK_STATUS(tn_gguf_writer_put_u32(w, "bool", 1), TN_OK);
        else
            TEST_CHECK_STATUS(tn_gguf_writer_add_tensor(w, "a", TN_TYPE_F32, 1, (int64_t[]){1}), TN_OK);
        TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_ERR_ARG);
        tn_gguf_writer_abort(&w);
    }
    // Nothing is under the name before commit, and nothing after abort.
    const char *path = path_of("late.gguf");
    TEST_CHECK_STATUS(tn_gguf_writer_open(ctx, path, &w), TN_OK);
    TEST_CHECK_STATUS(put_everything(w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_place(w, 0, &place), TN_ERR_STATE);
    TEST_CHECK(access(path, F_OK) != 0);
    tn_gguf_writer_abort(&w);
    TEST_CHECK(access(path, F_OK) != 0);
    TEST_CHECK_STATUS(tn_gguf_writer_open(ctx, path, &w), TN_OK);
    TEST_CHECK_STATUS(tn_gguf_writer_begin(w), TN_OK); // no keys, no tensors
    TEST_CHECK_STATUS(tn_gguf_writer_commit(&w, NULL, NULL), TN_OK);
    TEST_CHECK_STATUS(open_file(path), TN_OK);
}

static void test_given(const char *path)
{
    tn_gguf *g = NULL;
    if (!TEST_CHECK_STATUS(tn_gguf_open(ctx, path, &g), TN_OK)) {
        printf("    %s\n", path);
        return;
    }
    walk_all(g);
    if (!TEST_CHECK_STATUS(tn_gguf_check_data(g), TN_OK)) printf("    %s\n", path);
    TEST_CHECK_STATUS(round_trip(g, NULL), TN_OK);
    tn_gguf_close(&g);
}

int main(int argc, char **argv)
{
    bytes b = {0};
    ctx = counting_context(&count);
    if (!mkdtemp(folder)) return 1;
    test_open(&b);
    test_split_good(&b);
    test_split_bad(&b);
    test_split_types(&b);
    test_split_alloc(&b);
    test_round_trip(&b);
    test_layout(&b);
    test_writer_args();
    test_writer_states();
    for (int i = 1; i < argc; i++) test_given(argv[i]);
    static const char *const names[] = {"good.gguf",
                                        "empty.gguf",
                                        "pipe",
                                        "single.gguf",
                                        "m.gguf",
                                        "copy.gguf",
                                        "late.gguf",
                                        "m-00001-of-00003.gguf",
                                        "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    for (size_t i = 0; i < TN_COUNT(names); i++) unlink(path_of(names[i]));
    TEST_CHECK(rmdir(folder) == 0); // nothing else was left there
    free(b.data);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
