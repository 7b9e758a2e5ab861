// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the template engine: the input is a template, rendered with a conversation. It must end with a
// text or an error, within the memory of its limits, in time, with runs that cover the text. With libFuzzer,
// or with -DTN_FUZZ_STANDALONE for a number of seconds (first argument); the second argument is the first
// seed (default 1).
#include "models/text/jinja/jinja.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX = 66 << 20 }; // bytes: the heap of the limits, and blocks of the context around it
static const double seconds_max = 20; // of the processor: against work without bound, not for speed

static const char variables[] = "{\"messages\": [{\"role\": \"system\", \"content\": \" be brief \"}, "
                                "{\"role\": \"user\", \"content\": \"hé <|x|>\"},"
                                "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": "
                                "[{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": [1, 2.5]}}}]}],"
                                "\"tools\": [{\"function\": {\"name\": \"f\"}}], \"x\": \"a,b\", \"d\": "
                                "{\"k\": 1, \"items\": [3, 1]}, \"n\": 3}";

static void check_output(const tn_jj_output *out)
{
    size_t from = 0;
    for (size_t i = 0; i < out->n_runs; i++) {
        if (out->runs[i].end <= from || (i > 0 && out->runs[i].user == out->runs[i - 1].user)) abort();
        from = out->runs[i].end;
    }
    if (from != out->n) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tn_context *ctx = NULL;
    tn_jj *j = NULL;
    tn_jj_value v;
    tn_jj_output out = {0};
    if (tn_context_create(NULL, &ctx) != TN_OK) return 0;
    size_t before = tn_context_memory(ctx);
    clock_t start = clock();              // of the processor: the machine may do other things
    char *copy = malloc(size ? size : 1); // of exactly this size
    if (!copy) abort();
    if (size) memcpy(copy, data, size);
    if (tn_jj_open(ctx, NULL, &j) != TN_OK ||
        tn_jj_json(j, variables, sizeof variables - 1, "variables", true, &v) != TN_OK)
        abort();
    tn_jj_globals(j, v);
    tn_jj_clock(j, (int64_t)size * 1234567891);
    tn_status status = tn_jj_render(j, copy, size, &out);
    if (status == TN_OK) check_output(&out);
    if (status != TN_OK && status != TN_ERR_FORMAT && status != TN_ERR_MODEL && status != TN_ERR_ARG) abort();
    if (tn_context_memory_peak(ctx) - before > MEMORY_MAX) abort();
    if ((double)(clock() - start) > seconds_max * CLOCKS_PER_SEC) abort();
    tn_jj_close(&j);
    free(copy);
    if (tn_context_memory(ctx) != before) abort(); // a leak
    tn_context_destroy(&ctx);
    return 0;
}

#ifdef TN_FUZZ_STANDALONE
// xorshift64*, Vigna 2016
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

// clang-format off
static const char *const statements[] = {
    "{% for m in messages %}", "{%- for k, v in d.items() -%}", "{% for i in range(99999) %}",
    "{% for c in x if c %}", "{% endfor %}",
    "{% else %}", "{% if ", " %}", "{% elif n %}", "{% endif %}", "{% set a = ",
    "{% set ns = namespace(s='ab', l=[1]) %}",
    "{% set ns.s = ns.s + ns.s %}", "{% set ns.l = ns.l + ns.l %}", "{% macro f(a, b=1) %}", "{% endmacro %}",
    "{{ f(1) }}", "{{ f(f) }}",
    "{% set b %}", "{% endset %}", "{% filter upper %}", "{% endfilter %}", "{% call f() %}", "{% endcall %}",
    "{% with q = ", "{% endwith %}",
    "{% break %}", "{% continue %}", "{{ ", "{{- ", " }}", " -}}", "{# ", " #}", "{% raw %}", "{% endraw %}",
    "\n", "  ", "text", "é",
    "{% do d.update({n: ns}) %}", "{% do ns.l.append(ns.l) %}",
    "{% for y in d.items recursive %}{{ loop([1]) }}", "{% generation %}",
};
static const char *const expressions[] = {
    "messages", "x", "d", "n", "ns", "ns.s", "ns.l", "a", "b", "loop", "m", "m.content",
    "messages[0]['role']", "missing", "1", "9223372036854775807",
    "2.5", "1e308", "'a'", "\"\\u00e9\"", "none", "true", "[1, 'b', x]", "{'a': n, x: d}", "(1, 2)", "()",
    "range(9)", "range(10**9)", "loop.index",
    "d.k", "d['items']", "x.split(',')", "x.strip('a')", "x.replace('a', x)", "x.join(['a', x])", "f",
    "strftime_now('%d %b %Y')",
    "'%s %5d' % (x, n)", "'{} {a}'.format(1, a=2)", "namespace(a=1)", "dict(a=1)", "cycler(1, 2)", "joiner()",
    "raise_exception(x)", "x * 1000000",
};
static const char *const operators[] = {
    " + ", " - ", " * ", " / ", " // ", " % ", " ** ", " ~ ", " == ", " != ", " < ", " >= ", " in ",
    " not in ", " and ", " or ", " if ", " else ",
    "[", "]", "[1:", "[::-1]", "[:-1]", ".", ".items()", "(", ")", ", ", ": ", "not ", "-", " is ",
    " is not ", "defined", "string", "mapping",
    "iterable", "equalto 1", "divisibleby 0", "|", "|tojson", "|tojson(indent=2)", "|length", "|trim",
    "|string", "|list", "|join(',')", "|first",
    "|last", "|sort", "|unique", "|reverse", "|map('upper')", "|map(attribute='role')",
    "|selectattr('role', 'equalto', 'user')", "|default('z')",
    "|replace('a', 'aaaa')", "|indent(99)", "|int", "|float", "|round(3)", "|title", "|dictsort",
    "|groupby('role')", "|batch(2)", "|sum", "|max",
    "|center(9999)", "|select", "|items", "|format(1)", "|e", "|capitalize", ".rsplit('a', 1)",
    ".splitlines()", ".zfill(9)", ".title()", "=",
};
// clang-format on

static size_t put(uint8_t *out, size_t n, size_t max, const char *text)
{
    size_t size = strlen(text);
    if (n + size > max) return n;
    memcpy(out + n, text, size);
    return n + size;
}

static size_t make_template(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 0;
    for (uint64_t k = 1 + next_random(state) % 40; k > 0; k--) {
        uint64_t kind = next_random(state) % 8;
        if (kind < 3) {
            n = put(out, n, max, statements[next_random(state) % TN_COUNT(statements)]);
        } else if (kind < 6) { // a whole expression, mostly well formed
            n = put(out, n, max, "{{ ");
            for (uint64_t parts = 1 + next_random(state) % 4; parts > 0; parts--) {
                n = put(out, n, max, expressions[next_random(state) % TN_COUNT(expressions)]);
                n = put(out, n, max, operators[next_random(state) % TN_COUNT(operators)]);
            }
            n = put(out, n, max, expressions[next_random(state) % TN_COUNT(expressions)]);
            n = put(out, n, max, " }}");
        } else if (kind == 6) {
            n = put(out, n, max, operators[next_random(state) % TN_COUNT(operators)]);
        } else if (n > 0 && next_random(state) % 4 == 0) {
            out[next_random(state) % n] = (uint8_t)next_random(state);
        }
    }
    return n;
}

// What a hostile file would hold; each must end like all others.
static const char *const hostile[] = {
    "{% for i in range(10**18) %}{% endfor %}",
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
    ("{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s|replace('x', 'xxxxx') %}{% "
     "endfor %}"),
    "{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s|tojson %}{% endfor %}{{ n.s }}",
    "{% set n = namespace(s=x) %}{% for i in range(99) %}{% set n.s = n.s ~ '<' ~ n.s %}{% endfor %}",
    "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(a) %}{{ f(a + [a]) }}{% endmacro %}{{ f([]) }}",
    "{% set l = [] %}{% do l.append(l) %}{% do l.append(l) %}{{ l }}",
    "{% set l = [] %}{% do l.append(l) %}{% do l.append(l) %}{{ l == [l] }}{{ l|tojson }}",
    "{% set d = {} %}{% do d.update(a=d) %}{{ d|tojson(indent=1000) }}",
    "{{ range(900000)|map('string')|sort }}",
    "{{ range(900000)|unique|list }}",
    "{% for i in range(999999) %}{{ 'x' * 1000 }}{% endfor %}",
    "{{ ('a' * 9000000).split('a')|length }}",
    "{{ 'x'|indent(2**62) }}{{ 'x'.rjust(2**62) }}{{ 'x'|center(2**62) }}{{ '%9999999999d' % 1 }}",
    "{{ ('a' * 4000000 ~ 'b') in ('a' * 8000000) }}",
    "{% for i in range(300000) %}{% macro g() %}{{ i }}{% endmacro %}{% endfor %}",
    "{{ ('ab' * 9000000)[::-1]|length }}",
    "{{ ('é' * 5000000)|upper|title|length }}",
    "{{ (x * 3000000)|list|join('')|length }}",
};

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
    uint8_t input[2048];
    for (size_t i = 0; i < TN_COUNT(hostile); i++)
        LLVMFuzzerTestOneInput((const uint8_t *)hostile[i], strlen(hostile[i]));
    uint64_t end = tn_time_ns() + (uint64_t)(seconds * 1e9);
    for (; tn_time_ns() < end; n++) {
        uint64_t state = (seed + n) * 0x9e3779b97f4a7c15u | 1;
        LLVMFuzzerTestOneInput(input, make_template(&state, input, sizeof input));
    }
    printf("%zu hostile templates, %llu executions\n", TN_COUNT(hostile), (unsigned long long)n);
    return 0;
}
#endif
