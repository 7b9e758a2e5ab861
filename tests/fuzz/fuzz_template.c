// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fuzzer of the template engine: the input is a template, rendered with a conversation. It must end with a
// text or an error, within the memory of its limits, in time, with runs that cover the text. Most inputs have
// limits far below those of the engine, so that reaching them takes little time: the same code stops them.
#include "models/text/jinja/jinja.h"
#include "tests/fuzz/fuzz.h"

enum { AROUND = 2 << 20 }; // bytes of blocks of the context around the heap of the limits

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

// The engine's own limits for one input of 64, by its bytes.
static void set_limits(tn_jj_limits *limits, const uint8_t *data, size_t size)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < size; i++) sum = sum * 31 + data[i];
    tn_jj_limits_default(limits);
    if (sum % 64 == 0) return;
    limits->steps = 4000;
    limits->heap_size = 1 << 20;
    limits->output_size = 64 << 10;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tn_context *ctx;
    tn_jj *j = NULL;
    tn_jj_value v;
    tn_jj_output out = {0};
    tn_jj_limits limits;
    if (!ctx) ctx = fuzz_context(NULL);
    fuzz_cost cost = fuzz_begin(ctx);
    char *copy = fuzz_copy(data, size);
    set_limits(&limits, data, size);
    if (tn_jj_open(ctx, &limits, &j) != TN_OK ||
        tn_jj_json(j, variables, sizeof variables - 1, "variables", true, &v) != TN_OK)
        abort();
    tn_jj_globals(j, v);
    tn_jj_clock(j, (int64_t)size * 1234567891);
    tn_status status = tn_jj_render(j, copy, size, &out);
    if (status == TN_OK) check_output(&out);
    if (status != TN_OK && status != TN_ERR_FORMAT && status != TN_ERR_MODEL && status != TN_ERR_ARG) abort();
    tn_jj_close(&j);
    free(copy);
    fuzz_end(&cost, size + AROUND / FUZZ_MEMORY_PER_BYTE);
    return 0;
}

// --- inputs ------------------------------------------------------------------------------------------------

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

static size_t make_template(uint64_t *state, uint8_t *out, size_t max)
{
    size_t n = 0;
    for (uint64_t k = 1 + fuzz_random(state) % 40; k > 0; k--) {
        uint64_t kind = fuzz_random(state) % 8;
        if (kind < 3) {
            n = fuzz_put(out, n, max, statements[fuzz_random(state) % TN_COUNT(statements)]);
        } else if (kind < 6) { // a whole expression, mostly well formed
            n = fuzz_put(out, n, max, "{{ ");
            for (uint64_t parts = 1 + fuzz_random(state) % 4; parts > 0; parts--) {
                n = fuzz_put(out, n, max, expressions[fuzz_random(state) % TN_COUNT(expressions)]);
                n = fuzz_put(out, n, max, operators[fuzz_random(state) % TN_COUNT(operators)]);
            }
            n = fuzz_put(out, n, max, expressions[fuzz_random(state) % TN_COUNT(expressions)]);
            n = fuzz_put(out, n, max, " }}");
        } else if (kind == 6) {
            n = fuzz_put(out, n, max, operators[fuzz_random(state) % TN_COUNT(operators)]);
        } else if (n > 0 && fuzz_random(state) % 4 == 0) {
            out[fuzz_random(state) % n] = (uint8_t)fuzz_random(state);
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

static size_t make_input(uint64_t *state, uint8_t *out, size_t max)
{
    uint64_t pick = fuzz_random(state) % (64 * TN_COUNT(hostile));
    if (pick < TN_COUNT(hostile)) return fuzz_put(out, 0, max, hostile[pick]);
    return make_template(state, out, TN_MIN(max, 2048));
}

#include "tests/fuzz/fuzz_main.h"
