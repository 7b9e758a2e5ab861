// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the tokenizers. The first byte of the input picks what the rest is: a text for one of the tiny
// vocabularies (encode, decode, and the round trip where it is promised), changes to a vocabulary file that
// is then loaded and used, or a whole file.
#include "models/text/chat.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/tiny_vocab.h"

static const char *const pres[] = {"gpt-2",        "llama-bpe",   "qwen35",   "gpt-4o", "tekken",
                                   "deepseek-llm", "deepseek-v3", "tiny_aya", "falcon", "superbpe",
                                   "bloom",        "exaone-moe",  "kimi-k2",  "jais-2", "laguna",
                                   "bailingmoe",   "default"};

enum {
    MODE_SPM,
    MODE_BPE,
    MODE_GEMMA4,
    MODE_WPM,
    MODE_UGM,
    MODE_PATCHED_SPM,
    MODE_PATCHED_BPE,
    MODE_PATCHED_WPM,
    MODE_PATCHED_UGM,
    MODE_FILE,
    MODE_COUNT
};

static tiny_vocab *vocabs[MODE_COUNT][TN_COUNT(pres)]; // those that were made

static bool is_utf8(const char *text, size_t n)
{
    char again[4];
    for (size_t i = 0, size; i < n; i += size) {
        uint32_t cp = tn_utf8_decode(text + i, n - i, &size);
        if (tn_utf8_encode(cp, again) != size || memcmp(again, text + i, size) != 0) return false;
    }
    return true;
}

static bool has(const char *text, size_t n, const char *part)
{
    size_t size = strlen(part);
    for (size_t i = 0; i + size <= n; i++)
        if (memcmp(text + i, part, size) == 0) return true;
    return false;
}

// A conversation with the text, in one of the built-in templates.
static void use_chat(const tn_tokenizer *t, const char *text, size_t n, tn_tokens *ids, tn_strbuf *out)
{
    static const char *const names[] = {"chatml", "gemma", "llama2", "phi3"};
    const char *name = names[n % TN_COUNT(names)], *source = tn_chat_builtin(name, strlen(name));
    char *content = malloc(n + 1);
    if (!content) abort();
    if (n > 0) memcpy(content, text, n);
    content[n] = 0;
    const tn_turn turns[] = {{.role = "system", .content = "be brief"},
                             {.role = "user", .content = content},
                             {.role = "assistant", .content = content},
                             {.role = "user", .content = "go"}};
    tn_chat_config cfg = {.local_time = TN_CHAT_NO_TIME};
    if (tn_chat_apply(t, &(tn_chat_template){source, strlen(source), name}, turns, TN_COUNT(turns), &cfg, ids,
                      out) != TN_OK)
        abort();
    free(content);
}

// Encodes and decodes the text in every mode; with `exact`, plain text must come back as it was.
static void use(tn_context *ctx, const tn_tokenizer *t, const char *text, size_t n, bool exact, bool chat)
{
    tn_tokens ids;
    tn_strbuf out;
    tn_tokens_init(&ids, ctx);
    tn_strbuf_init(&out, ctx);
    for (int32_t flags = 0; flags < 4; flags++) {
        ids.count = 0;
        tn_strbuf_clear(&out);
        if (tn_tokenizer_encode(t, text, n, flags, &ids) != TN_OK) abort();
        if (tn_tokenizer_decode(t, ids.ids, ids.count, flags, &out) != TN_OK) abort();
        if (exact && flags == 0 && (out.size != n || (n > 0 && memcmp(out.data, text, n) != 0))) abort();
        if (tn_utf8_printable(out.data ? out.data : "", out.size) > out.size) abort();
    }
    ids.count = 0;
    if (chat) use_chat(t, text, n, &ids, &out);
    tn_tokens_fini(&ids);
    tn_strbuf_fini(&out);
}

static void make_vocab(uint8_t mode, tiny_vocab *v)
{
    if (mode == MODE_WPM || mode == MODE_PATCHED_WPM)
        tiny_wpm(v);
    else if (mode == MODE_UGM || mode == MODE_PATCHED_UGM)
        tiny_ugm(v);
    else if (mode == MODE_BPE || mode == MODE_PATCHED_BPE)
        tiny_bpe(v);
    else
        tiny_spm(v);
}

// Made once: encoding only reads it.
static tn_tokenizer *tokenizer_of(tn_context *ctx, uint8_t mode, uint8_t pick)
{
    static tn_tokenizer *made[MODE_UGM + 1][TN_COUNT(pres)];
    size_t k = mode == MODE_BPE ? pick % TN_COUNT(pres) : 0;
    tn_tokenizer **t = &made[mode][k];
    if (*t) return *t;
    tiny_vocab *v = malloc(sizeof *v); // the tokenizer reads its file
    if (!v) abort();
    make_vocab(mode, v);
    if (mode == MODE_BPE) v->pre = pres[k];
    if (mode == MODE_GEMMA4) {
        v->model = "gemma4";
        v->merges[v->n_merges++] = "h e";
    }
    tiny_add(v, "<|im_end|>", TN_TOKEN_CONTROL, 0);
    tiny_add(v, "  ", TN_TOKEN_USER, 0);
    tiny_open(ctx, v);
    if (tn_tokenizer_create(ctx, v->gguf, NULL, t) != TN_OK) abort();
    vocabs[mode][k] = v;
    return *t;
}

static void run_text(tn_context *ctx, const tn_tokenizer *t, uint8_t mode, bool chat, const char *text,
                     size_t n)
{
    // Valid UTF-8 comes back, except that SPM cannot tell a space from its mark, that its leading space moves
    // when the user-defined token of two spaces comes first, and where decode cleans up.
    bool exact = is_utf8(text, n);
    if (mode == MODE_WPM || mode == MODE_UGM)
        exact = false;
    else if (mode == MODE_SPM)
        exact = exact && !has(text, n, TN_SPACE_MARK) && !has(text, n, "  ");
    else
        exact = exact && mode == MODE_BPE && !t->clean_spaces;
    use(ctx, t, text, n, exact, chat);
}

static void run_file(tn_context *ctx, const void *data, size_t size, bool chat)
{
    tn_gguf *gguf = NULL;
    tn_tokenizer *t = NULL;
    if (tn_gguf_open_memory(ctx, data, size, "fuzz", &gguf) == TN_OK &&
        tn_tokenizer_create(ctx, gguf, NULL, &t) == TN_OK && t)
        use(ctx, t, "hello <|im_end|> 12\n", 20, false, chat);
    tn_tokenizer_destroy(&t);
    tn_gguf_close(&gguf);
}

// A good file in which each group of three input bytes (place, place, value) overwrites one byte.
static void run_patched(tn_context *ctx, const tiny_vocab *v, bool chat, const uint8_t *data, size_t size)
{
    size_t file_size = tn_gguf_file_size(v->gguf);
    uint8_t *copy = fuzz_copy(v->data, file_size);
    for (size_t i = 0; i + 3 <= size; i += 3)
        copy[(data[i] | (size_t)data[i + 1] << 8) % file_size] = data[i + 2];
    run_file(ctx, copy, file_size, chat);
    free(copy);
}

static const tiny_vocab *patched_vocab(tn_context *ctx, uint8_t mode)
{
    tiny_vocab **v = &vocabs[mode][0];
    if (*v) return *v;
    *v = malloc(sizeof **v);
    if (!*v) abort();
    make_vocab(mode, *v);
    tiny_id(*v, "tokenizer.ggml.eom_token_id", 1);
    tiny_flag(*v, "tokenizer.ggml.add_eos_token", true);
    tiny_open(ctx, *v);
    return *v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    if (!ctx) ctx = fuzz_context(NULL);
    if (size < 2) return 0;
    uint8_t mode = data[0] % MODE_COUNT;
    bool patched = mode >= MODE_PATCHED_SPM && mode != MODE_FILE;
    const tn_tokenizer *t = mode < MODE_PATCHED_SPM ? tokenizer_of(ctx, mode, data[1]) : NULL;
    const tiny_vocab *v = patched ? patched_vocab(ctx, mode) : NULL;
    fuzz_cost cost = fuzz_begin(ctx);
    bool chat = data[1] % 8 == 0; // as slow as all else
    uint8_t *copy = fuzz_copy(data + 2, size - 2);
    if (mode == MODE_FILE)
        run_file(ctx, copy, size - 2, chat);
    else if (patched)
        run_patched(ctx, v, chat, copy, size - 2);
    else
        run_text(ctx, t, mode, chat, (const char *)copy, size - 2);
    free(copy);
    fuzz_end(&cost, size);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

// Words that meet the rules of the table, with random bytes between them.
static size_t make_text(uint64_t *state, uint8_t *out, size_t max)
{
    static const char *const words[] = {"hello",      " ",  "  ", "\n",   "\r\n",     "'ll",    "'S",
                                        "123456",     "1",  "é",  "中文", "▁",        "\u3000", "ÄÖü",
                                        "<|im_end|>", "!?", "#/", "aaaa", "<0x41>",   "</s>",   "A",
                                        "e\u0301",    "\t", "~",  "¾",    "\xe2\x96", "\xff"};
    size_t n = 0;
    for (uint64_t k = fuzz_random(state) % 24; k > 0; k--) {
        const char *w = words[fuzz_random(state) % TN_COUNT(words)];
        size_t size = strlen(w);
        if (n + size + 1 > max) break;
        memcpy(out + n, w, size);
        n += size;
        if (fuzz_random(state) % 8 == 0) out[n++] = (uint8_t)fuzz_random(state);
    }
    return n;
}

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    size_t size = 2;
    if (max < 64) return 0;
    out[0] = (uint8_t)(fuzz_random(state) % MODE_FILE);
    out[1] = (uint8_t)fuzz_random(state);
    if (out[0] < MODE_PATCHED_SPM) return size + make_text(state, out + 2, TN_MIN(max, 1024) - 2);
    for (uint64_t k = 3 * (1 + fuzz_random(state) % 6); k > 0; k--) out[size++] = (uint8_t)fuzz_random(state);
    return size;
}

#include "tests/fuzz/fuzz_main.h"
