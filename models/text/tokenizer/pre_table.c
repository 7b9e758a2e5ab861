// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One row per behaviour. The expressions are those that the models were trained with, in the syntax of
// pre_pattern.h.
#include "models/text/tokenizer/pre_table.h"

#include "core/compiler.h"
#include "models/quantize/nearest.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// clang-format off
#define SUFFIX "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define SYMBOLS " ?[^\\s\\p{L}\\p{N}]+"
#define SPACES "\\s+(?!\\S)|\\s+"
#define LINES "\\s*[\\r\\n]+|" SPACES

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" SPACES
#define LLAMA3_WITH(digits) SUFFIX "|" WORD "|" digits "|" SYMBOLS "[\\r\\n]*|" LINES
#define LLAMA3 LLAMA3_WITH("\\p{N}{1,3}")
#define QWEN2 LLAMA3_WITH("\\p{N}")
#define QWEN35 \
    SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINES

// Words whose capitals come first: "camelCase" is two. `less` narrows the letters.
#define UPPER(less) "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}" less "]"
#define LOWER(less) "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}" less "]"
#define CASE_WORDS(less, suffix) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER(less) "*" LOWER(less) "+" suffix \
    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER(less) "+" LOWER(less) "*" suffix
#define O200K CASE_WORDS("", SUFFIX "?") "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n/]*|" LINES
#define TEKKEN CASE_WORDS("", "") "|\\p{N}|" SYMBOLS "[\\r\\n/]*|" LINES
#define KIMI "\\p{Han}+|" CASE_WORDS("&&[^\\p{Han}]", SUFFIX "?") "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|" LINES

#define DEEPSEEK3 \
    "[!-/:-@\\[-`{-~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" LINES
#define SEED SUFFIX "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" LINES
#define BAILING SUFFIX "|" WORD "|\\p{N}|" SYMBOLS "[\\r\\n]*|\\s*[\\r\\n]|" SPACES
#define EXAONE_MOE \
    SUFFIX "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|" SYMBOLS \
    "[\\r\\n/]?|\\s*[\\r\\n]|" SPACES
#define BLOOM " ?[^(\\s|.,!?…。，、।۔،)]+"
#define JAIS2 \
    SUFFIX "|" WORD "|\\p{N}{1,3}|" SYMBOLS "[\\r\\n]*|\\s*[\\r\\n]+" \
    "|\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|" \
    "\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)" \
    "|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}"
#define LINES_APART "[^\\n]+|[\\n]+"
#define DIGITS_FROM_RIGHT "\\d{1,3}(?=(\\d{3})*(?!\\d))"
#define THOUSANDS "(?=(\\d{3})+(?!\\d))"

static const tn_pre table[] = {
    {"llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
     {LLAMA3}, TN_PRE_IGNORE_MERGES | TN_PRE_BOS},
    {"dbrx smaug-bpe", {LLAMA3}, 0},
    {"glm4 chatglm-bpe", {LLAMA3}, TN_PRE_NO_DEFAULT_BOS},
    {"qwen2 deepseek-r1-qwen kormo f2llmv2 hunyuan solar-open grok-2", {QWEN2}, TN_PRE_NO_CLEAN},
    {"megrez stablelm2", {QWEN2}, 0},
    {"qwen35", {QWEN35}, TN_PRE_NO_CLEAN},
    {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert exaone4 "
     "mpt olmo jais",
     {GPT2}, 0},
    {"jina-v1-en jina-v2-code roberta-bpe", {GPT2}, TN_PRE_SEP},
    {"trillion granite-docling", {GPT2}, TN_PRE_NO_CLEAN},
    {"starcoder refact codeshell exaone minerva-7b mellum2", {"\\p{N}", GPT2}, 0},
    {"command-r smollm", {"\\p{N}", GPT2}, TN_PRE_NO_CLEAN},
    {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, 0},
    {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, 0},
    {"deepseek-llm", {"[\\r\\n]", "\\s?\\p{Cased}+", "\\s?\\p{Punct}+", "\\s+$", "\\p{Han1}+", "\\p{N}+"},
     TN_PRE_NO_CLEAN},
    {"deepseek-coder", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "\\p{Han1}+", "\\p{N}"}, TN_PRE_NO_CLEAN},
    {"deepseek-v3 hunyuan-dense joyai-llm", {"\\p{N}{1,3}", "\\p{Han2}+", DEEPSEEK3}, TN_PRE_NO_CLEAN},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", {O200K}, TN_PRE_NO_CLEAN},
    {"tekken", {TEKKEN}, TN_PRE_IGNORE_MERGES | TN_PRE_BOS | TN_PRE_NO_CLEAN},
    {"tiny_aya cohere2moe", {DIGITS_FROM_RIGHT, O200K}, TN_PRE_NO_CLEAN},
    {"gemma4 granite-embed-multi-311m", {LINES_APART},
     TN_PRE_BOS_FORCED | TN_PRE_SPACE_MARK | TN_PRE_NEWLINES_WHOLE},
    {"sarvam-moe", {LINES_APART}, TN_PRE_BOS_FORCED | TN_PRE_SPACE_MARK | TN_PRE_NO_CLEAN},
    {"bloom gpt3-finnish", {BLOOM}, 0},
    {"poro-chat", {BLOOM}, TN_PRE_NO_CLEAN},
    {"viking", {BLOOM, "\\p{N}"}, TN_PRE_NO_CLEAN},
    {"minicpm5", {"\\p{N}{1,3}", LLAMA3_WITH("\\p{N}+")}, TN_PRE_IGNORE_MERGES},
    {"seed-coder", {SEED}, TN_PRE_NO_CLEAN},
    {"bailingmoe bailingmoe2 llada-moe", {BAILING}, TN_PRE_NO_CLEAN},
    {"exaone-moe", {EXAONE_MOE}, 0},
    {"superbpe", {"\\p{N}+", THOUSANDS}, TN_PRE_NO_CLEAN},
    {"kimi-k2", {KIMI}, TN_PRE_NO_CLEAN | TN_PRE_MERGES_OPTIONAL},
    {"laguna", {LINES_APART, QWEN2}, TN_PRE_NO_CLEAN},
    {"whitespace", {"[^\\s]+"}, TN_PRE_DROP_SPACES},
    {"jais-2", {JAIS2}, 0},
};
// clang-format on

// One name of the table.
typedef struct name_at {
    const tn_pre *row;
    const char *text;
    size_t size;
} name_at;

// The next name; begins with row NULL, false at the end.
static bool next_name(name_at *at)
{
    if (at->row == NULL)
        *at = (name_at){.row = table, .text = table[0].names};
    else
        at->text += at->size;
    if (*at->text == ' ') at->text++;
    if (*at->text == 0) {
        if (++at->row == table + TN_COUNT(table)) return false;
        at->text = at->row->names;
    }
    at->size = strcspn(at->text, " ");
    return true;
}

const tn_pre *tn_pre_find(const char *name, size_t n)
{
    for (name_at at = {0}; next_name(&at);)
        if (at.size == n && memcmp(at.text, name, n) == 0) return at.row;
    return NULL;
}

void tn_pre_nearest(const char *name, size_t n, char *text, size_t size)
{
    int best = INT_MAX;
    size_t used = 0;
    for (name_at at = {0}; next_name(&at);) {
        int distance = tn_name_distance(name, n, at.text, at.size);
        best = distance < best ? distance : best;
    }
    *text = 0;
    for (name_at at = {0}; next_name(&at) && used < size;)
        if (tn_name_distance(name, n, at.text, at.size) <= best + 1)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "", (int)at.size,
                                     at.text);
}
