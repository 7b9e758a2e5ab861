// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints the words of a target for libFuzzer (-dict=FILE), from the tables that the parsers use:
//     fuzz_words gguf|model|adapter...   keys, the ends of their ranges, architectures, names of tensors,
//     types fuzz_words grammar|json|template|tools   what these languages are made of
#include "core/compiler.h"
#include "models/keys/keys.h"

#include <stdio.h>
#include <string.h>

static int n_words;

static void print_word(const char *text)
{
    printf("w%d=\"", n_words++);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 32 || c > 126 || c == '"' || c == '\\')
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    printf("\"\n");
}

static void print_number(int64_t v, int bytes)
{
    printf("w%d=\"", n_words++);
    for (int i = 0; i < bytes; i++) printf("\\x%02x", (unsigned)((uint64_t)v >> 8 * i & 0xff));
    printf("\"\n");
}

static void print_list(const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++) print_word(words[i]);
}

static void print_files(void)
{
    static const char *const archs[] = {
#define TN_ARCH(name, ...) name,
#include "models/archs.def"
    };
    static const char *const tensors[] = {
        "token_embd", "output_norm", "output",       "blk.0.",        "attn_norm",   "attn_q",
        "attn_k",     "attn_v",      "attn_qkv",     "attn_output",   "ffn_norm",    "ffn_gate",
        "ffn_up",     "ffn_down",    "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps",
        "rope_freqs", "attn_q_norm", "attn_k_norm",  "ssm_a",         "ssm_conv1d",  ".weight",
        ".bias",      ".lora_a",     ".lora_b",      ".in_sum2",      ".counts",     "imatrix",
        "adapter",    "lora",        "GGUF"};
    const tn_key_row *row;
    for (size_t i = 0; (row = tn_key_row_at(i)) != NULL; i++) {
        print_word(row->name);
        if (row->least == 0 && row->most == 0) continue;
        print_number(row->least, 8);
        print_number(row->most, 8);
        print_number(row->most < INT64_MAX ? row->most + 1 : -1, 8);
    }
    print_list(archs, TN_COUNT(archs));
    print_list(tensors, TN_COUNT(tensors));
    for (int64_t type = 0; type < 43; type++) print_number(type, 4); // of values and of tensors
}

static const char *const grammar_words[] = {
    "root ::= ",
    "\na ::= ",
    "{1,3}",
    "{2,}",
    "[^a-z]",
    "\"\\x41\"",
    "\"\\u00e9\"",
    "# x\n",
    "\"type\":",
    "\"string\"",
    "\"object\"",
    "\"integer\"",
    "\"number\"",
    "\"array\"",
    "\"boolean\"",
    "\"properties\":{",
    "\"required\":[",
    "\"items\":",
    "\"prefixItems\":[",
    "\"anyOf\":[",
    "\"oneOf\":[",
    "\"allOf\":[",
    "\"enum\":[",
    "\"const\":",
    "\"$ref\":\"#/",
    "\"$defs\":{",
    "\"pattern\":\"",
    "\"minimum\":",
    "\"maximum\":",
    "\"exclusiveMinimum\":",
    "\"multipleOf\":",
    "\"minLength\":",
    "\"maxLength\":",
    "\"minItems\":",
    "\"maxItems\":",
    "\"uniqueItems\":",
    "\"additionalProperties\":",
    "\"format\":\"date\"",
    "\"minProperties\":",
    "(?:",
    "\\\\d",
    "\\\\w",
    "^",
    "$",
};
static const char *const json_words[] = {
    "true", "false", "null", "\"a\":", "\\u00e9", "\\ud83d\\ude00", "1e308", "-0.0", "9223372036854775808",
    "{\"",  "\"}",   "[[",   "]]",     "\\n",     "\\\\",
};
static const char *const template_words[] = {
    "{% for m in messages %}",
    "{% endfor %}",
    "{% if ",
    "{% elif ",
    "{% else %}",
    "{% endif %}",
    "{% set ",
    "{% endset %}",
    "{% macro f(a, b=1) %}",
    "{% endmacro %}",
    "{% call ",
    "{% endcall %}",
    "{% filter ",
    "{% endfilter %}",
    "{% raw %}",
    "{% endraw %}",
    "{% break %}",
    "{% continue %}",
    "{% generation %}",
    "{{ ",
    " }}",
    "{%- ",
    " -%}",
    "{# ",
    " #}",
    "namespace(",
    "loop.",
    "range(",
    "|tojson",
    "|join(",
    "|map(",
    "|selectattr(",
    "|groupby(",
    "|sort",
    "|dictsort",
    "|indent(",
    "|replace(",
    "|batch(",
    "|slice(",
    "|round",
    "|default(",
    "is defined",
    "is mapping",
    "is string",
    "is sameas ",
    " not in ",
    " and ",
    " or ",
    " ~ ",
    " ** ",
    " // ",
    "[::-1]",
    ".items()",
    ".split(",
    ".strip(",
    ".startswith(",
    ".format(",
    "raise_exception(",
    "strftime_now(",
    "messages",
    "tools",
    "message.content",
    "tool_calls",
    "add_generation_prompt",
};
static const char *const tool_words[] = {
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "</function>",
    "<parameter=",
    "</parameter>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "<|tool_call|>",
    "<|python_tag|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "<|START_ACTION|>",
    "<|END_ACTION|>",
    "<|channel|>",
    "<|message|>",
    "<|call|>",
    "<|constrain|>",
    " to=functions.",
    ">>>",
    "{\"name\":",
    "\"arguments\":",
    "\"parameters\":",
    "<|tool_call_start|>[",
    "add(",
    "a=",
};

int main(int argc, char **argv)
{
    static const struct {
        const char *target;
        const char *const *words;
        size_t n;
    } lists[] = {
        {"grammar", grammar_words, TN_COUNT(grammar_words)},
        {"json", json_words, TN_COUNT(json_words)},
        {"routes", json_words, TN_COUNT(json_words)},
        {"template", template_words, TN_COUNT(template_words)},
        {"tools", tool_words, TN_COUNT(tool_words)},
    };
    const char *target = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < TN_COUNT(lists); i++) {
        if (strcmp(target, lists[i].target) != 0) continue;
        print_list(lists[i].words, lists[i].n);
        return 0;
    }
    print_files();
    return 0;
}
