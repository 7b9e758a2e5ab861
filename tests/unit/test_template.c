// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The template engine: expected texts of tests/templates (which check.py compares with another engine),
// marks of user text, limits, messages, and failing allocations.
//     test_template DIRECTORY
#include "core/strbuf.h"
#include "models/text/jinja/jinja_impl.h"
#include "tests/unit/counting.h"
#include "tests/unit/test.h"

#include <stdio.h>

static const int64_t clock_seconds = 1753315200; // 2025-07-24 00:00

static char *read_all(const char *directory, const char *name, size_t *n)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("cannot open %s\n", path);
        exit(1);
    }
    size_t capacity = 1 << 20;
    char *text = malloc(capacity);
    *n = text ? fread(text, 1, capacity, f) : 0;
    fclose(f);
    if (!text || *n == capacity) exit(1);
    return text;
}

static value member(tn_jj *j, value dict, const char *name)
{
    value v;
    tn_jj_string key = {.data = name, .n = strlen(name)};
    return tn_jj_lookup(j, dict.u.dict, (value){.kind = JJ_STRING, .u.s = &key}, &v) ? v : tn_jj_undefined();
}

// Renders with the members of `variables`, which belong to another engine: through their JSON text.
static void check_case(tn_context *ctx, const char *source, size_t n, const char *json, size_t n_json,
                       value want)
{
    tn_jj *j = NULL;
    value variables;
    tn_jj_output out = {0};
    if (!TEST_CHECK(tn_jj_open(ctx, NULL, &j) == TN_OK)) return;
    tn_jj_clock(j, clock_seconds);
    tn_status status = tn_jj_json(j, json, n_json, "variables", true, &variables);
    if (TEST_CHECK(status == TN_OK)) tn_jj_globals(j, variables);
    status = tn_jj_render(j, source, n, &out);
    bool ok = want.kind == JJ_STRING
                  ? status == TN_OK && out.n == want.u.s->n && memcmp(out.text, want.u.s->data, out.n) == 0
                  : status == TN_ERR_MODEL || status == TN_ERR_FORMAT || status == TN_ERR_ARG;
    if (!TEST_CHECK(ok)) {
        char message[800] = "";
        tn_context_error(ctx, message, sizeof message);
        printf("    template: %.*s\n    status: %s (%s)\n    got:  %.*s\n    want: %.*s\n",
               (int)TN_MIN(n, 300), source, tn_status_text(status), status == TN_OK ? "" : message,
               (int)out.n, out.text ? out.text : "", want.kind == JJ_STRING ? (int)want.u.s->n : 7,
               want.kind == JJ_STRING ? want.u.s->data : "(error)");
    }
    tn_jj_close(&j);
}

static str json_text(tn_jj *j, value v)
{
    tn_jj_builder b;
    tn_jj_build(&b, j);
    tn_jj_tojson(&b, v, &(tn_jj_args){0});
    value s = tn_jj_built(&b);
    return s.kind == JJ_STRING ? s.u.s : &tn_jj_empty;
}

// All cases of a file: the template stands in the case, or (names ending in .jinja) in a file beside it.
static void check_file(const char *directory, const char *name)
{
    tn_context *ctx = NULL;
    tn_jj *j = NULL;
    size_t n;
    char *text = read_all(directory, name, &n);
    value file, cases;
    if (tn_context_create(NULL, &ctx) != TN_OK || tn_jj_open(ctx, NULL, &j) != TN_OK) exit(1);
    if (!TEST_CHECK(tn_jj_json(j, text, n, name, false, &file) == TN_OK)) return;
    cases = member(j, file, "cases");
    if (TEST_CHECK(cases.kind == JJ_LIST && cases.u.list->n > 50))
        for (size_t i = 0; i < cases.u.list->n; i++) {
            value c = cases.u.list->items[i], own = member(j, c, "variables"),
                  source = member(j, c, "template");
            str json = json_text(j, own.kind == JJ_DICT ? own : member(j, file, "variables"));
            char path[200];
            size_t size = source.u.s->n;
            snprintf(path, sizeof path, "%.*s", (int)TN_MIN(size, 100), source.u.s->data);
            bool in_file = size > 6 && memcmp(source.u.s->data + size - 6, ".jinja", 6) == 0;
            char *content = in_file ? read_all(directory, path, &size) : NULL;
            check_case(ctx, in_file ? content : source.u.s->data, size, json->data, json->n,
                       member(j, c, "want"));
            free(content);
        }
    tn_jj_close(&j);
    tn_context_destroy(&ctx);
    free(text);
}

// --- marks -------------------------------------------------------------------------------------------------

// The result with user text in angle brackets.
static void check_marks(int line, const char *source, const char *want)
{
    static const char json[] = "{\"u\": \"abc def\", \"l\": [\"x\", \"y\"], \"d\": {\"k\": \"v\"}, \"m\": \" "
                               "a,b \", \"e\": \"\\u00e9\\\"\"}";
    tn_context *ctx = NULL;
    tn_jj *j = NULL;
    value v;
    tn_jj_output out;
    if (tn_context_create(NULL, &ctx) != TN_OK || tn_jj_open(ctx, NULL, &j) != TN_OK) exit(1);
    TEST_CHECK(tn_jj_json(j, json, strlen(json), "variables", true, &v) == TN_OK);
    tn_jj_globals(j, v);
    tn_jj_global(j, "bos", tn_jj_text(j, "<s>", 3, false));
    tn_strbuf shown;
    tn_strbuf_init(&shown, ctx);
    if (TEST_CHECK(tn_jj_render(j, source, strlen(source), &out) == TN_OK))
        for (size_t i = 0, from = 0; i < out.n_runs; from = out.runs[i++].end) {
            if (out.runs[i].user) tn_strbuf_append(&shown, "{", 1);
            tn_strbuf_append(&shown, out.text + from, out.runs[i].end - from);
            if (out.runs[i].user) tn_strbuf_append(&shown, "}", 1);
        }
    bool ok = shown.data && strcmp(shown.data, want) == 0;
    if (!TEST_CHECK(ok)) printf("    line %d: got %s\n", line, shown.data ? shown.data : "nothing");
    tn_strbuf_fini(&shown);
    tn_jj_close(&j);
    tn_context_destroy(&ctx);
}

#define MARKS(source, want) check_marks(__LINE__, source, want)

static void test_marks(void)
{
    MARKS("a{{ u }}b{{ bos }}", "a{abc def}b<s>");
    MARKS("{{ '<' + u + '>' }}{{ '<' ~ u ~ '>' }}", "<{abc def}><{abc def}>");
    MARKS("{{ ('<' + u + '>')[1:4] }}|{{ ('<' + u + '>')[::-1] }}|{{ ('<' + u)[0] }}", "{abc}|>{fed cba}<|<");
    MARKS("{{ ('<b>' ~ u).split(' ')[0] }} {{ u.split(' ')|join('+') }}", "<b>{abc} {abc}+{def}");
    MARKS("{{ u|upper }}{{ u|replace('abc', '<s>') }}{{ 'x-y'|replace('-', u) }}",
          "{ABC DEF}<s>{ def}x{abc def}y");
    MARKS("{{ m|trim }}{{ ('  ' + m).strip() }}{{ m.split(',')[1]|trim }}", "{a,ba,bb}");
    MARKS("{{ d|tojson }}{{ l|tojson }}{{ e|tojson }}", "{\"{k}\": \"{v}\"}[\"{x}\", \"{y}\"]\"{é\\\"}\"");
    MARKS("{% set x %}<{{ u }}>{% endset %}{{ x }}{% macro f(a) %}[{{ a }}]{% endmacro %}{{ f(u) }}",
          "<{abc def}>[{abc def}]");
    MARKS(
        "{% set ns = namespace(t='') %}{% for x in l %}{% set ns.t = ns.t ~ '-' ~ x %}{% endfor %}{{ ns.t }}",
        "-{x}-{y}");
    MARKS("{% for c in u[:2] %}{{ c }}.{% endfor %}{{ l }}", "{a}.{b}.['{x}', '{y}']");
    MARKS("{{ 'abca'.find('a') }} {{ 'abca'.rfind('a') }} {{ 'abca'.find('d') }}", "0 3 -1");
    MARKS("{{ '%s|%5s' % (u, 'x') }}{{ '{}!'.format(u) }}{{ u|title }}{{ u|indent }}",
          "{abc def}|    x{abc def}!{Abc Defabc def}");
    MARKS("{{ l|map('upper')|join(',') }}{{ l|sort|first }}{{ u|first }}{{ u|reverse }}{{ u|default('z') }}",
          "{X},{Yxafed cbaabc def}");
    MARKS("{% filter upper %}a{{ u }}{% endfilter %}{{ u * 2 }}{{ u.partition(' ')[2] }}{{ '>' if u }}",
          "A{ABC DEFabc defabc defdef}>");
    // Not what Jinja2 prints.
    MARKS("{{ namespace() }}{{ [1]|tojson(2) }}", "<namespace>[\n  1\n]");
    // A byte that is no UTF-8 is stripped as the character that stands for it.
    MARKS("{{ 'ba\x80'.strip('a') }}{{ 'ba\x80'.strip('\\ufffd') }}", "ba\x80"
                                                                      "ba");
}

// --- messages and limits -----------------------------------------------------------------------------------

static void check_fails(const char *source, const tn_jj_limits *limits, tn_status want, const char *part)
{
    tn_context *ctx = NULL;
    tn_jj *j = NULL;
    tn_jj_output out;
    char message[800];
    if (tn_context_create(NULL, &ctx) != TN_OK) exit(1);
    size_t before = tn_context_memory(ctx);
    if (tn_jj_open(ctx, limits, &j) != TN_OK) exit(1);
    TEST_CHECK_STATUS(tn_jj_render(j, source, strlen(source), &out), want);
    tn_context_error(ctx, message, sizeof message);
    if (!TEST_CHECK(strstr(message, part) != NULL)) printf("    %s\n    %s\n", source, message);
    TEST_CHECK(tn_context_memory_peak(ctx) < (size_t)66 << 20);
    tn_jj_close(&j);
    TEST_CHECK(tn_context_memory(ctx) == before);
    tn_context_destroy(&ctx);
}

// The first of March, in years that are multiples of 4, 100 and 400, and of 101; a day before 1970.
static void test_dates(void)
{
    static const struct {
        int64_t seconds;
        const char *format, *want; // NULL: refused
    } dates[] = {{920246400, "%j %Y-%m-%d", "060 1999-03-01"},  {951868800, "%j %Y-%m-%d", "061 2000-03-01"},
                 {1583020800, "%j %Y-%m-%d", "061 2020-03-01"}, {4107542400, "%j %Y-%m-%d", "060 2100-03-01"},
                 {-1, "%a %F %T", "Wed 1969-12-31 23:59:59"},   {0, "%Q", NULL}};
    for (size_t i = 0; i < TN_COUNT(dates); i++) {
        tn_context *ctx = NULL;
        tn_jj *j = NULL;
        tn_jj_output out = {0};
        char source[60];
        const char *want = dates[i].want;
        if (tn_context_create(NULL, &ctx) != TN_OK || tn_jj_open(ctx, NULL, &j) != TN_OK) exit(1);
        tn_jj_clock(j, dates[i].seconds);
        snprintf(source, sizeof source, "{{ strftime_now('%s') }}", dates[i].format);
        TEST_CHECK_STATUS(tn_jj_render(j, source, strlen(source), &out), want ? TN_OK : TN_ERR_MODEL);
        bool same = !want || (out.text && out.n == strlen(want) && memcmp(out.text, want, out.n) == 0);
        if (!TEST_CHECK(same)) printf("    not %s: %.*s\n", want, (int)out.n, out.text);
        tn_jj_close(&j);
        tn_context_destroy(&ctx);
    }
}

// The JSON of tools and variables: the text of the value that is read, or why it is refused.
static void test_json(void)
{
    static const struct {
        const char *json, *want, *why;
    } rows[] = {{"\"\\u00e9\\u00E9\\ud83d\\ude00\"", "\"éé😀\"", NULL},
                {"\"\\ud83d\\u0041|\\ud83d|\\ude00\"", "\"\uFFFDA|\uFFFD|\uFFFD\"", NULL},
                {"[1e2, 15E+1, 25e-1]", "[100.0, 150.0, 2.5]", NULL},
                {"\"\\u12g4\"", NULL, "an unknown escape"},
                {"[1e]", NULL, "a number that cannot be read"},
                {"[", NULL, "it ends too early"},
                {"", NULL, "it ends too early"}};
    char deep[2000];
    memset(deep, '[', sizeof deep);
    for (size_t i = 0; i <= TN_COUNT(rows); i++) {
        tn_context *ctx = NULL;
        tn_jj *j = NULL;
        value v;
        bool is_deep = i == TN_COUNT(rows);
        const char *json = is_deep ? deep : rows[i].json, *want = is_deep ? NULL : rows[i].want;
        const char *why = is_deep ? "nested too deeply" : rows[i].why;
        char message[300] = "";
        if (tn_context_create(NULL, &ctx) != TN_OK || tn_jj_open(ctx, NULL, &j) != TN_OK) exit(1);
        size_t n = is_deep ? sizeof deep : strlen(json);
        TEST_CHECK_STATUS(tn_jj_json(j, json, n, "test", true, &v), want ? TN_OK : TN_ERR_ARG);
        tn_context_error(ctx, message, sizeof message);
        if (why && !TEST_CHECK(strstr(message, why))) printf("    %s\n", message);
        str text = want ? json_text(j, v) : &tn_jj_empty;
        if (want && !TEST_CHECK(tn_jj_is(text, want)))
            printf("    %s: %.*s\n", json, (int)text->n, text->data);
        tn_jj_close(&j);
        tn_context_destroy(&ctx);
    }
}

// A loop goes over the items that the list had when it began, whatever it takes from it.
static void test_popped(void)
{
    static const char source[] = "{% set l = [1, 2, 3, 4] %}{% for x in l %}{{ x }}{% if loop.first %}"
                                 "{{ l.pop(2) }}{{ l.pop() }}{% endif %}{% endfor %}{{ l }}";
    tn_context *ctx = NULL;
    tn_jj *j = NULL;
    tn_jj_output out = {0};
    if (tn_context_create(NULL, &ctx) != TN_OK || tn_jj_open(ctx, NULL, &j) != TN_OK) exit(1);
    TEST_CHECK_STATUS(tn_jj_render(j, source, sizeof source - 1, &out), TN_OK);
    bool same = out.text && out.n == 12 && memcmp(out.text, "134234[1, 2]", 12) == 0;
    if (!TEST_CHECK(same)) printf("    %.*s\n", (int)out.n, out.text);
    tn_jj_close(&j);
    tn_context_destroy(&ctx);
}

static void test_messages(void)
{
    check_fails("a\nbé {{ x.y }}", NULL, TN_ERR_MODEL, "line 2, column 9: 'x' is undefined");
    check_fails("{{ raise_exception('no such role') }}", NULL, TN_ERR_ARG, "line 1, column 4: no such role");
    check_fails("\n\n{% if x %}\n", NULL, TN_ERR_FORMAT, "line 3, column 9: a tag without its end");
    check_fails("{% include 'x' %}", NULL, TN_ERR_FORMAT, "not 'include'");
    check_fails("{{ x|nothing }}", NULL, TN_ERR_FORMAT, "not 'nothing'");
    check_fails("{{ 99999999999999999999 }}", NULL, TN_ERR_FORMAT, "63 bits");
    check_fails("{{ 0xffffffffffffffff }}", NULL, TN_ERR_FORMAT, "63 bits");
    check_fails("{{ x[1 2] }}", NULL, TN_ERR_FORMAT, "expected ']'");
    check_fails("{{ dict(*[1]) }}", NULL, TN_ERR_FORMAT, "* and ** in calls");
    check_fails("{{ [1][5].x }}", NULL, TN_ERR_MODEL, "a value that is undefined was used");
    check_fails("{% for x in [1] %}{{ loop|list }}{% endfor %}", NULL, TN_ERR_MODEL,
                "cannot be iterated over");
    check_fails("{{ [1]|batch }}", NULL, TN_ERR_MODEL, "batch: lines of 0 items");
    check_fails("{{ strftime_now('%Y') }}", NULL, TN_ERR_MODEL, "'strftime_now' is undefined");
}

static void test_limits(void)
{
    static const struct {
        const char *source, *part;
    } hostile[] = {
        {"{% for i in range(10**9) %}{% endfor %}", "numbers"},
        {"{{ range(10**18, 0 - 10**18, -1)|length }}", "numbers"},
        {"{% for i in range(9999) %}{% for k in range(9999) %}{% endfor %}{% endfor %}", "steps"},
        {"{% set n = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
         "MiB"},
        {"{% set n = namespace(s='x') %}{% for i in range(99) %}{% set n.s = n.s|replace('x', 'xxxx') %}{% "
         "endfor %}",
         ""},
        {"{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}", ""},
        {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
        {"{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "deep"},
        {"{{ 'x' * 999999999999 }}", "MiB"},
        {"{{ [1] * 999999999999 }}", "MiB"},
        {"{{ 9223372036854775807 + 1 }}", "63 bits"},
        {"{{ -9223372036854775807 - 2 }}", "63 bits"},
        {"{{ 9999999999 * 9999999999 }}", "63 bits"},
        {"{{ 3 ** 99999 }}", "63 bits"},
        {"{{ (-9223372036854775807 - 1) // -1 }}", "63 bits"},
        {"{% set l = [] %}{% do l.append(l) %}{{ l }}", "deep"},
        {"{% set l = [] %}{% do l.append(l) %}{{ l|tojson }}", "deep"},
        {"{% set l = [] %}{% set m = [] %}{% do l.append(m) %}{% do m.append(l) %}{{ l == m }}", "deep"},
        {"{{ range(900000)|map('string')|sort|unique|list|length }}", ""},
        {"{{ range(90000)|unique|list|length }}", "steps"},
        {"{% set s = 'a' * 1000 %}{% for i in range(99999) %}{{ s }}{% endfor %}", "output"},
        {"{% set s = 'a' * 4000000 %}{{ ('a' * 2000000 + 'b') in s }}", "steps"},
        {"{% set s = 'ab' * 3000000 %}{% for i in range(9999) %}{{ s|length }}{{ s[-1] }}{% endfor %}",
         "steps"},
        {"{{ 'x'|center(99999999999)|indent(99999999) }}{{ 'x'.rjust(999999999999) }}", "steps"},
        {"{{ '%999999999d' % 1 }}{{ '%.999999999f' % 1 }}{% for i in range(999999) %}{{ i|tojson }}{% endfor "
         "%}",
         "steps"},
        {"{% set d = {} %}{% for i in range(99999) %}{% do d.update({i: i}) %}{% endfor %}", "steps"},
        {"{% macro f(a=f()) %}{% endmacro %}{{ f() }}", "deep"},
        {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "deep"},
        {"{% for i in range(1000000) %}{% set x = namespace(a=i) %}{% endfor %}", "steps"},
    };
    for (size_t i = 0; i < TN_COUNT(hostile); i++)
        check_fails(hostile[i].source, NULL, TN_ERR_MODEL, hostile[i].part);
    tn_jj_limits small;
    tn_jj_limits_default(&small);
    small.steps = 20;
    check_fails("{% for i in range(10) %}{{ i }}{% endfor %}", &small, TN_ERR_MODEL, "more than 20 steps");
    tn_jj_limits_default(&small);
    small.output_size = 1 << 20;
    check_fails("{{ 'x' * 2000000 }}", &small, TN_ERR_MODEL, "1024 KiB of output");
    static char large[200001];
    memset(large, 'x', sizeof large - 1);
    small.heap_size = 100000;
    check_fails(large, &small, TN_ERR_MODEL, "a template of 200000 bytes");
}

// A pattern n times, with an end.
static void check_repeated(const char *head, const char *part, const char *tail, int n)
{
    char *source = malloc(strlen(head) + strlen(part) * (size_t)n + strlen(tail) + 1);
    if (!source) exit(1);
    strcpy(source, head);
    char *p = source + strlen(head);
    for (int i = 0; i < n; i++, p += strlen(part)) strcpy(p, part);
    strcpy(p, tail);
    check_fails(source, NULL, TN_ERR_FORMAT, "line ");
    free(source);
}

static void test_deep_sources(void)
{
    check_repeated("{{ ", "(", "", 200000);
    check_repeated("{{ ", "[", "", 200000);
    check_repeated("{{ ", "{1:", "", 200000);
    check_repeated("{{ ", "-", "1 }}", 200000);
    check_repeated("{{ ", "a.", "b }}", 200000);
    check_repeated("{{ ", "a(", "", 200000);
    check_repeated("{{ ", "1 if 1 else ", "1 }}", 20000);
    check_repeated("{{ 1", " + 1", " }}", 20000);
    check_repeated("{{ 1", "|string", " }}", 20000);
    check_repeated("", "{% if 1 %}", "", 20000);
    check_repeated("", "{% for x in y %}", "", 20000);
    check_repeated("{% for ", "(", "", 20000);
    check_repeated("", "{% set x %}", "", 20000);
    check_repeated("", "{%", "", 20000);
    check_repeated("", "{{ {", "", 20000);
}

static void test_allocations(void)
{
    static const char source[] =
        "{% macro f(a, b=[1, 'x']) %}{{ a ~ b }}{% endmacro %}{% for k, v in {'a': 1}.items() %}{{ f(k) }}"
        "{% endfor %}{{ [3, 1]|sort|tojson(indent=2) }}{{ 'abc' * 300 }}{{ 'a,b'.split(',') }}";
    counting c;
    tn_context *ctx = counting_context(&c);
    for (long n = 0; n < 60; n++) {
        tn_jj *j = NULL;
        tn_jj_output out;
        c.fail_from = c.calls + n;
        c.fail_to = c.fail_from + 1;
        tn_status status = tn_jj_open(ctx, NULL, &j);
        if (status == TN_OK) status = tn_jj_render(j, source, strlen(source), &out);
        TEST_CHECK(status == (c.calls > c.fail_from ? TN_ERR_MEMORY : TN_OK));
        tn_jj_close(&j);
    }
    c.fail_from = c.fail_to = 0;
    tn_context_destroy(&ctx);
    TEST_CHECK(c.live == 0);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    check_file(argv[1], "features.json");
    check_file(argv[1], "conversations.json");
    test_marks();
    test_dates();
    test_json();
    test_popped();
    test_messages();
    test_limits();
    test_deep_sources();
    test_allocations();
    return test_done();
}
