// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Golden vocabularies: ids and bytes that another implementation gave for real vocabularies must be the same
// here. The first argument is the folder; every X.inp/X.out pair and every *.extra.jsonl in it is run.
#include "models/text/tokenizer/tokenizer.h"
#include "tests/unit/test.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 1024, NAME_SIZE = 128, FILES_MAX = 64 };

static tn_context *ctx;
static const char *folder;

// --- files -------------------------------------------------------------------------------------------

typedef struct text {
    char *data;
    size_t size;
} text;

static text read_file(const char *name)
{
    char path[PATH_SIZE];
    text t = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return t;
    size_t capacity = 1 << 20;
    t.data = malloc(capacity);
    if (!t.data) abort();
    for (size_t n; (n = fread(t.data + t.size, 1, capacity - t.size - 1, f)) > 0;) {
        t.size += n;
        if (t.size + 1 < capacity) continue;
        capacity *= 2;
        t.data = realloc(t.data, capacity);
        if (!t.data) abort();
    }
    t.data[t.size] = 0;
    fclose(f);
    return t;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

// Opens the vocabulary and its tokenizer.
static bool open_vocab(const char *file, const char *pre, tn_gguf **gguf, tn_tokenizer **t)
{
    char path[PATH_SIZE], message[256];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    *gguf = NULL;
    *t = NULL;
    if (!TEST_CHECK_STATUS(tn_gguf_open(ctx, path, gguf), TN_OK)) return false;
    uint64_t start = tn_time_ns();
    tn_status status = tn_tokenizer_create(ctx, *gguf, pre, t);
    if (status == TN_OK) {
        printf("%s%s%s: loaded in %.1f ms\n", file, pre ? " as " : "", pre ? pre : "",
               (double)(tn_time_ns() - start) / 1e6);
        return true;
    }
    tn_context_error(ctx, message, sizeof message);
    TEST_CHECK_STATUS(status, TN_OK);
    printf("    %s: %s\n", file, message);
    tn_gguf_close(gguf);
    return false;
}

// --- comparing ---------------------------------------------------------------------------------------

// Reads ids separated by anything that is no digit, up to `end`.
static void read_ids(const char *p, const char *end, tn_tokens *ids)
{
    while (p < end) {
        if (*p < '0' || *p > '9') {
            p++;
            continue;
        }
        char *next;
        if (tn_tokens_push(ids, (int32_t)strtol(p, &next, 10)) != TN_OK) abort();
        p = next;
    }
}

static void print_ids(const char *label, const tn_tokens *ids)
{
    printf("    %s:", label);
    for (size_t i = 0; i < ids->count; i++) printf(" %d", (int)ids->ids[i]);
    printf("\n");
}

static void check_ids(const char *where, const tn_tokenizer *t, const char *input, size_t n, int32_t flags,
                      const tn_tokens *want)
{
    tn_tokens got;
    tn_tokens_init(&got, ctx);
    if (TEST_CHECK_STATUS(tn_tokenizer_encode(t, input, n, flags, &got), TN_OK)) {
        bool same = got.count == want->count;
        for (size_t i = 0; same && i < got.count; i++) same = got.ids[i] == want->ids[i];
        if (!TEST_CHECK(same)) {
            printf("    %s, flags %d: %.*s\n", where, (int)flags, (int)n, input);
            print_ids("got ", &got);
            print_ids("want", want);
        }
    }
    tn_tokens_fini(&got);
}

// --- X.inp and X.out ---------------------------------------------------------------------------------

static void run_pairs(const char *vocab)
{
    static const char separator[] = "\n__ggml_vocab_test__\n";
    char name[NAME_SIZE + 16];
    snprintf(name, sizeof name, "%.*s.inp", NAME_SIZE, vocab);
    text in = read_file(name);
    snprintf(name, sizeof name, "%.*s.out", NAME_SIZE, vocab);
    text out = read_file(name);
    tn_gguf *gguf;
    tn_tokenizer *t;
    if (in.data && out.data && open_vocab(vocab, NULL, &gguf, &t)) {
        const char *p = in.data, *line = out.data;
        for (bool more = true; more;) {
            const char *next = strstr(p, separator), *eol = strchr(line, '\n');
            size_t n = next ? (size_t)(next - p) : (size_t)(in.data + in.size - p);
            if (!eol) eol = out.data + out.size;
            tn_tokens want;
            tn_tokens_init(&want, ctx);
            read_ids(line, eol, &want);
            check_ids(vocab, t, p, n, 0, &want);
            tn_tokens_fini(&want);
            more = next != NULL;
            p += n + sizeof separator - 1;
            line = *eol ? eol + 1 : eol;
        }
        tn_tokenizer_destroy(&t);
        tn_gguf_close(&gguf);
    }
    free(in.data);
    free(out.data);
}

// --- *.extra.jsonl -----------------------------------------------------------------------------------

// Where the value of a field starts. Quotes inside of strings are escaped, so this finds fields only.
static const char *field(const char *line, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *p = strstr(line, key);
    return p ? p + strlen(key) : NULL;
}

static text read_hex(const char *line, const char *name)
{
    const char *p = field(line, name);
    if (!p || *p++ != '"') abort();
    size_t digits = strcspn(p, "\"");
    text t = {malloc(digits / 2 + 1), digits / 2};
    if (!t.data) abort();
    for (size_t i = 0; i < t.size; i++) {
        char two[3] = {p[2 * i], p[2 * i + 1], 0};
        t.data[i] = (char)strtol(two, NULL, 16);
    }
    return t;
}

static void read_field_ids(const char *line, const char *name, tn_tokens *ids)
{
    const char *p = field(line, name);
    if (!p) abort();
    read_ids(p, strchr(p, ']'), ids);
}

static void check_info(const char *where, const tn_tokenizer *t, const char *line)
{
    static const struct {
        const char *name;
        int32_t which;
    } ids[] = {{"bos", TN_SPECIAL_BOS}, {"eos", TN_SPECIAL_EOS}, {"eot", TN_SPECIAL_EOT},
               {"sep", TN_SPECIAL_SEP}, {"nl", TN_SPECIAL_NL},   {"pad", TN_SPECIAL_PAD}};
    for (size_t i = 0; i < TN_COUNT(ids); i++) {
        long want = strtol(field(line, ids[i].name), NULL, 10);
        int32_t got = tn_tokenizer_special(t, ids[i].which);
        if (!TEST_CHECK(got == want))
            printf("    %s: %s is %d, want %ld\n", where, ids[i].name, (int)got, want);
    }
    TEST_CHECK(tn_tokenizer_add_bos(t) == (strtol(field(line, "add_bos"), NULL, 10) != 0));
    TEST_CHECK(tn_tokenizer_add_eos(t) == (strtol(field(line, "add_eos"), NULL, 10) != 0));
    TEST_CHECK(tn_tokenizer_n_tokens(t) == strtol(field(line, "n"), NULL, 10));
    tn_tokens eog;
    tn_tokens_init(&eog, ctx);
    read_field_ids(line, "eog", &eog);
    size_t n = 0;
    for (int32_t id = 0; id < tn_tokenizer_n_tokens(t); id++) n += tn_tokenizer_is_eog(t, id);
    TEST_CHECK(n == eog.count);
    for (size_t i = 0; i < eog.count; i++) TEST_CHECK(tn_tokenizer_is_eog(t, eog.ids[i]));
    tn_tokens_fini(&eog);
}

static void check_bytes(const char *where, const tn_tokenizer *t, const char *line, const char *name,
                        const tn_tokens *ids, int32_t flags)
{
    text want = read_hex(line, name);
    tn_strbuf got;
    tn_strbuf_init(&got, ctx);
    if (TEST_CHECK_STATUS(tn_tokenizer_decode(t, ids->ids, ids->count, flags, &got), TN_OK)) {
        bool same = got.size == want.size && (got.size == 0 || memcmp(got.data, want.data, got.size) == 0);
        if (!TEST_CHECK(same)) {
            printf("    %s, %s\n    got  '%.*s'\n", where, name, (int)got.size, got.data ? got.data : "");
            printf("    want '%.*s'\n", (int)want.size, want.data);
        }
    }
    tn_strbuf_fini(&got);
    free(want.data);
}

static void check_line(const char *where, const tn_tokenizer *t, const char *line)
{
    static const struct {
        const char *name, *keep, *strip;
        int32_t flags;
    } variants[] = {
        {"plain", "detok_plain_keep_hex", "detok_plain_strip_hex", 0},
        {"special", NULL, NULL, TN_TOKENIZE_ADD_SPECIAL},
        {"parse", NULL, NULL, TN_TOKENIZE_PARSE_SPECIAL},
        {"special_parse", "detok_special_parse_keep_hex", "detok_special_parse_strip_hex",
         TN_TOKENIZE_ADD_SPECIAL | TN_TOKENIZE_PARSE_SPECIAL},
    };
    text input = read_hex(line, "hex");
    for (size_t i = 0; i < TN_COUNT(variants); i++) {
        tn_tokens want;
        tn_tokens_init(&want, ctx);
        read_field_ids(line, variants[i].name, &want);
        check_ids(where, t, input.data, input.size, variants[i].flags, &want);
        if (variants[i].keep) {
            check_bytes(where, t, line, variants[i].keep, &want, TN_DETOKENIZE_PRINT_SPECIAL);
            check_bytes(where, t, line, variants[i].strip, &want, TN_DETOKENIZE_REMOVE_SPECIAL);
        }
        tn_tokens_fini(&want);
    }
    free(input.data);
}

// "NAME.gguf.extra.jsonl", or "NAME.pre=X.extra.jsonl" for NAME.gguf with another pre-tokenizer.
static void run_extra(const char *name)
{
    char vocab[NAME_SIZE + 8], pre[NAME_SIZE] = "";
    size_t n = strlen(name) - strlen(".extra.jsonl");
    const char *override = strstr(name, ".pre=");
    if (override) {
        snprintf(pre, sizeof pre, "%.*s", (int)(name + n - override - 5), override + 5);
        snprintf(vocab, sizeof vocab, "%.*s.gguf", (int)(override - name), name);
    } else {
        snprintf(vocab, sizeof vocab, "%.*s", (int)n, name);
    }
    tn_gguf *gguf;
    tn_tokenizer *t;
    text lines = read_file(name);
    if (lines.data && open_vocab(vocab, override ? pre : NULL, &gguf, &t)) {
        for (char *line = lines.data; *line != 0;) {
            char *eol = strchr(line, '\n');
            if (eol) *eol = 0;
            if (field(line, "info"))
                check_info(name, t, line);
            else if (*line != 0)
                check_line(name, t, line);
            line = eol ? eol + 1 : line + strlen(line);
        }
        tn_tokenizer_destroy(&t);
        tn_gguf_close(&gguf);
    }
    free(lines.data);
}

int main(int argc, char **argv)
{
    folder = argc > 1 ? argv[1] : "golden/vocab";
    DIR *dir = opendir(folder);
    if (!dir) {
        printf("SKIP: no vocabularies at %s\n", folder);
        return 77;
    }
    static char names[FILES_MAX][NAME_SIZE];
    size_t n = 0;
    for (struct dirent *entry; n < FILES_MAX && (entry = readdir(dir)) != NULL;)
        if (strlen(entry->d_name) < NAME_SIZE) strcpy(names[n++], entry->d_name);
    closedir(dir);
    qsort(names, n, NAME_SIZE, by_name);
    if (tn_context_create(NULL, &ctx) != TN_OK) return 1;
    size_t before = tn_context_memory(ctx);
    for (size_t i = 0; i < n; i++) {
        if (ends_with(names[i], ".gguf")) run_pairs(names[i]);
        if (ends_with(names[i], ".extra.jsonl")) run_extra(names[i]);
    }
    TEST_CHECK(tn_context_memory(ctx) == before);
    tn_context_destroy(&ctx);
    if (test_passed <= 1 && test_failed == 0) {
        printf("SKIP: no vocabularies in %s\n", folder);
        return 77;
    }
    return test_done();
}
