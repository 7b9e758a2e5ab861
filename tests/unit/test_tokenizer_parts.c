// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Parts of tokenizers by themselves: the expressions that cut a text, and the tables of texts.
#include "tests/unit/counting.h"
#include "tests/unit/test.h"
#include "tests/unit/tiny_vocab.h"

static counting count;
static tn_context *ctx;

static bool message_has(const char *part)
{
    char text[1024];
    tn_context_error(ctx, text, sizeof text);
    if (!strstr(text, part)) printf("    message: %s\n", text);
    return strstr(text, part) != NULL;
}

// --- pre-tokenizers ----------------------------------------------------------------------------------

// Pieces of a text separated by "·".
static void expect_split(int line, const char *pre, const char *text, const char *want)
{
    const tn_pre *row = tn_pre_find(pre, strlen(pre));
    tn_pattern patterns[TN_PRE_EXPRESSIONS];
    tn_cp cps[256];
    char got[1024] = "";
    size_t n_patterns = 0, n = 0, used = 0;
    tn_arena arena;
    tn_arena_init(&arena, ctx);
    for (; row && n_patterns < TN_PRE_EXPRESSIONS && row->expressions[n_patterns]; n_patterns++)
        if (!TEST_CHECK_STATUS(
                tn_pattern_compile(&arena, row->expressions[n_patterns], &patterns[n_patterns]), TN_OK))
            abort();
    for (size_t i = 0, size, left = strlen(text); i < left; i += size) {
        uint32_t cp = tn_utf8_decode(text + i, left - i, &size);
        cps[n++] = cp | tn_unicode_category(cp) << TN_CP_GC_SHIFT;
    }
    tn_pattern_split(patterns, n_patterns, cps, n);
    for (size_t at = 0; at < n;) {
        if (at > 0) used += tn_utf8_encode(0xb7, got + used);
        for (size_t end = tn_piece_end(cps, at); at < end; at++)
            used += tn_utf8_encode(cps[at] & TN_CP_MASK, got + used);
    }
    if (!test_report(row && strcmp(got, want) == 0, __FILE__, line, pre))
        printf("    got  %s\n    want %s\n", got, want);
    tn_arena_fini(&arena);
}
#define SPLIT(pre, text, want) expect_split(__LINE__, (pre), (text), (want))

static void test_pre(void)
{
    static const char all[] =
        "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe glm4 "
        "chatglm-bpe "
        "qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan solar-open grok-2 megrez stablelm2 qwen35 gpt-2 phi-2 "
        "jina-es "
        "jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais trillion "
        "granite-docling "
        "jina-v1-en jina-v2-code roberta-bpe starcoder refact codeshell exaone minerva-7b mellum2 command-r "
        "smollm falcon "
        "default deepseek-llm deepseek-coder deepseek-v3 hunyuan-dense joyai-llm gpt-4o llama4 kanana2 "
        "talkie minimax-m2 "
        "tekken tiny_aya cohere2moe gemma4 granite-embed-multi-311m sarvam-moe bloom gpt3-finnish poro-chat "
        "viking "
        "minicpm5 seed-coder bailingmoe bailingmoe2 llada-moe exaone-moe superbpe kimi-k2 laguna jais-2";
    char name[64];
    for (const char *p = all; *p != 0;) {
        size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        SPLIT(name, "\n", "\n");
        p += n + (p[n] == ' ');
    }
    TEST_CHECK(tn_pre_find("gpt", 3) == NULL && tn_pre_find("", 0) == NULL &&
               tn_pre_find("gpt-2 phi-2", 11) == NULL);
    SPLIT("gpt-2", "I'll  go 'S 12a", "I·'ll· · go· '·S· 12·a");
    SPLIT("llama3", "I'LL\t go(now) 12345\n\n x", "I·'LL·\t· go·(now·)· ·123·45·\n\n· x");
    SPLIT("qwen2", "a 123 \r\n  b", "a· ·1·2·3· \r\n· · b");
    SPLIT("qwen35", "e\u0301a x", "e\u0301a· x");
    SPLIT("gpt-4o", "camelCase HTTPServer's ÄÖü", "camel·Case· HTTPServer's· ÄÖü");
    SPLIT("tekken", "itsDON'T 12", "its·DON·'T· ·1·2");
    SPLIT("deepseek-coder", "ab12\u3000漢字。\n", "ab·1·2·\u3000·漢字·。·\n");
    SPLIT("deepseek-v3", "a~b ~x 1234漢字ok\n\n", "a·~b· ~·x· ·123·4·漢字·ok·\n\n");
    SPLIT("deepseek-llm", "ab  cd。\u3000x ", "ab· · cd·。·\u3000x· ");
    SPLIT("tiny_aya", "ab1234567c12", "ab·1·234·567·c·12");
    SPLIT("superbpe", "ab1234567 123456", "ab·1·234·567· ·123·456");
    SPLIT("bloom", "Hi, you。(a b)", "Hi·,· you·。(·a· b·)");
    SPLIT("viking", "a12 b", "a·1·2· b");
    SPLIT("minicpm5", "a12345", "a·123·45");
    SPLIT("seed-coder", "a!\n\nb", "a·!·\n\n·b");
    SPLIT("bailingmoe", "a!\n\nb \n ", "a·!\n\n·b· \n· ");
    SPLIT("exaone-moe", "one two  three!/x", "one two· · three·!/·x");
    SPLIT("kimi-k2", "漢字abc漢Déf", "漢字·abc·漢·Déf");
    SPLIT("laguna", "a\n\nb c", "a·\n\n·b· c");
    SPLIT("jais-2", "a       b", "a·    ·  · b");
    SPLIT("falcon", "a==b 1234", "a·==·b· ·123·4");
    SPLIT("gemma4", "a b\n\nc", "a b·\n\n·c");
}

static void test_expressions(void)
{
    // What the table does not use; each of a kind that is refused elsewhere.
    static const char *const bad[] = {
        "[a",
        "a\\",
        "\\p{Zz}",
        "\\pL",
        "\\p{L",
        "[a-",
        "a{x}",
        "a{2",
        "(?!a",
        "[\\p{L}&&[^\\p{N}",
        "[\\p{Han}\\p{Han1}\\p{Han2}]",                          // sets of ranges: two at most
        "[à-áâ-ãä-åæ-çè-éê-ëì-íî-ïð-ñò-óô-õö-÷ø-ùú-ûü-ýþ-ÿĀ-ā]", // 17 ranges, 16 at most
    };
    tn_pattern p;
    tn_arena arena;
    tn_arena_init(&arena, ctx);
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        if (!TEST_CHECK_STATUS(tn_pattern_compile(&arena, bad[i], &p), TN_ERR_INTERNAL))
            printf("    %s\n", bad[i]);
        TEST_CHECK(message_has(bad[i]));
    }
    TEST_CHECK_STATUS(tn_pattern_compile(&arena, "[\\p{Han}\\p{Han1}]", &p), TN_OK);
    TEST_CHECK_STATUS(tn_pattern_compile(&arena, "[à-áâ-ãä-åæ-çè-éê-ëì-íî-ïð-ñò-óô-õö-÷ø-ùú-ûü-ýþ-ÿ]", &p),
                      TN_OK);
    for (size_t n = 1; n <= TN_PATTERN_ITEMS + 1; n++) { // as many literals, or as many alternatives
        char items[TN_PATTERN_ITEMS + 2] = "", branches[2 * TN_PATTERN_ITEMS + 4] = "";
        for (size_t i = 0; i < n; i++) {
            items[i] = 'a';
            memcpy(branches + 2 * i, "a|", 2);
        }
        branches[2 * n - 1] = 0;
        TEST_CHECK_STATUS(tn_pattern_compile(&arena, items, &p),
                          n <= TN_PATTERN_ITEMS ? TN_OK : TN_ERR_INTERNAL);
        TEST_CHECK_STATUS(tn_pattern_compile(&arena, branches, &p),
                          n <= TN_PATTERN_BRANCHES ? TN_OK : TN_ERR_INTERNAL);
    }
    tn_cp cps[] = {'1', 0x663 | (tn_cp)TN_GC_ND << TN_CP_GC_SHIFT, 'a'}; // a digit of Arabic
    TEST_CHECK_STATUS(tn_pattern_compile(&arena, "\\d+", &p), TN_OK);
    tn_pattern_split(&p, 1, cps, TN_COUNT(cps));
    TEST_CHECK(tn_piece_end(cps, 0) == 2);
    tn_arena_fini(&arena);
}

// --- tables ------------------------------------------------------------------------------------------

// The table of texts grows, and what was in it stays where it was.
static void test_text_map(void)
{
    enum { N = 1000 };
    static char texts[N][8];
    tn_text_map map;
    int32_t index;
    bool added;
    TEST_CHECK_STATUS(tn_text_map_init(&map, ctx, INT32_MAX), TN_ERR_FORMAT);
    TEST_CHECK(message_has("too many token texts: 2147483647"));
    tn_text_map_fini(&map);
    if (!TEST_CHECK_STATUS(tn_text_map_init(&map, ctx, 3), TN_OK)) return;
    for (int32_t i = 0; i < N; i++) {
        size_t n = (size_t)snprintf(texts[i], sizeof texts[i], "%d", i);
        TEST_CHECK_STATUS(tn_text_map_add(&map, (tn_gguf_str){texts[i], n}, &index, &added), TN_OK);
        TEST_CHECK(added && index == i);
    }
    TEST_CHECK(map.count == N && map.capacity >= N);
    for (int32_t i = 0; i < N; i++) TEST_CHECK(tn_text_map_find(&map, texts[i], strlen(texts[i])) == i);
    TEST_CHECK(tn_text_map_find(&map, "1000", 4) == -1);
    TEST_CHECK_STATUS(tn_text_map_add(&map, (tn_gguf_str){"7", 1}, &index, &added), TN_OK);
    TEST_CHECK(!added && index == 7);
    tn_text_map_fini(&map);
    tn_tokens ids;
    tn_tokens_init(&ids, ctx);
    TEST_CHECK_STATUS(tn_tokens_reserve(&ids, SIZE_MAX), TN_ERR_MEMORY);
    TEST_CHECK(message_has("too many tokens") && ids.capacity == 0);
    tn_tokens_fini(&ids);
}

int main(void)
{
    ctx = counting_context(&count);
    long live = count.live;
    test_pre();
    test_expressions();
    test_text_map();
    TEST_CHECK(count.live == live);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
