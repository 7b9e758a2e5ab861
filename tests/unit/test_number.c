// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers as text: the same whatever locale the host program has set.
//     test_number [LOCALEDEF]   the program that makes locales; without it the functions are checked alone
#include "core/number.h"
#include "graph/dump.h"
#include "models/text/jinja/jinja_impl.h"
#include "tests/unit/test.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/graph.h>
#include <unistd.h>

static void test_point(void)
{
    static const char *const cases[][2] = {
        {"0", "0"},
        {"-12", "-12"},
        {"1.5", "1.5"},
        {"1,5", "1.5"},
        {"+1,5e+30", "+1.5e+30"},
        {" -0,25", " -0.25"},
        {"1e+05", "1e+05"},
        {"2E-07", "2E-07"},
        {"inf", "inf"},
        {"-nan", "-nan"},
        {"", ""},
        {"1\xd9\xab"
         "25E+300",
         "1.25E+300"},
        {"3,", "3."},
        {"7\xd9\xab", "7."},
    };
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", cases[i][0]);
        tn_number_point(text);
        if (!TEST_CHECK(strcmp(text, cases[i][1]) == 0)) printf("    %s gave %s\n", cases[i][0], text);
    }
}

static void test_read(void)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0", 0},
                {"-1.5", -1.5},
                {"+2e3", 2000},
                {".5", 0.5},
                {"5.", 5},
                {"1e400", INFINITY},
                {"4.9e-324", 4.9e-324},
                {"0.1", 0.1},
                {"123456789.123456789", 123456789.123456789},
                {"-inf", -INFINITY}};
    static const char *const bad[] = {"",
                                      ".",
                                      "1,5",
                                      "1.5.2",
                                      "1 ",
                                      " 1",
                                      "0x10",
                                      "1e",
                                      "e5",
                                      "nan(1)",
                                      "1\331\2535",
                                      "--1",
                                      "1.5x"};
    double v = 7;
    for (size_t i = 0; i < TN_COUNT(good); i++)
        if (!TEST_CHECK(tn_number_read(good[i].text, strlen(good[i].text), &v) && v == good[i].value))
            printf("    %s gave %g\n", good[i].text, v);
    TEST_CHECK(tn_number_read("nan", 3, &v) && isnan(v));
    for (size_t i = 0; i < TN_COUNT(bad); i++) {
        v = 7;
        if (!TEST_CHECK(!tn_number_read(bad[i], strlen(bad[i]), &v) && v == 7))
            printf("    '%s' gave %g\n", bad[i], v);
    }
    TEST_CHECK(tn_number_read("1.259", 4, &v) && v == 1.25); // n bytes, no more
    TEST_CHECK(!tn_number_read("1\0"
                               "2",
                               3, &v));
    char digits[TN_NUMBER_MAX + 2];
    memset(digits, '0', sizeof digits);
    digits[TN_NUMBER_MAX - 1] = '9';
    TEST_CHECK(tn_number_read(digits, TN_NUMBER_MAX, &v) && v == 9);
    TEST_CHECK(!tn_number_read(digits, TN_NUMBER_MAX + 1, &v));
    memset(digits, '1', sizeof digits);
    digits[1] = '.';
    TEST_CHECK(tn_number_read(digits, TN_NUMBER_MAX, &v) && fabs(v - 10.0 / 9) < 1e-15);
}

// Templates read and write numbers.
static void test_template(tn_context *ctx)
{
    static const char source[] = "{{ 1.5 }} {{ '2.25'|float * 2 }} {{ '%.2f'|format(0.125) }} {{ [0.1, "
                                 "1e30]|tojson }} {{ '1,5'|float }}",
                      want[] = "1.5 4.5 0.12 [0.1, 1e+30] 0.0";
    tn_jj *j = NULL;
    tn_jj_output out = {0};
    bool ok = tn_jj_open(ctx, NULL, &j) == TN_OK && tn_jj_render(j, source, sizeof source - 1, &out) == TN_OK;
    if (!TEST_CHECK(ok && out.n == sizeof want - 1 && memcmp(out.text, want, out.n) == 0))
        printf("    got %.*s\n", (int)out.n, out.text ? out.text : "");
    tn_jj_close(&j);
}

// The picture of a plan.
static void test_picture(tn_context *ctx)
{
    tn_graph *g = NULL;
    tn_plan *plan = NULL;
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    bool ok = tn_graph_create(ctx, &g) == TN_OK;
    if (ok) {
        tn_tensor *x = tn_graph_input(g, "x", TN_TYPE_F32, 1, (const int64_t[]){100});
        x = tn_op_softmax(g, tn_op_unary(g, x, &(tn_unary_params){.kind = TN_UNARY_SILU}), NULL, 1.0f);
        tn_graph_output(g, "y", tn_op_unary(g, x, &(tn_unary_params){.kind = TN_UNARY_EXP}));
        ok = tn_plan_create(g, &cfg, &plan) == TN_OK;
    }
    tn_strbuf out;
    tn_strbuf_init(&out, ctx);
    if (TEST_CHECK(ok)) tn_plan_dump_svg(plan, &out);
    TEST_CHECK(out.data && strstr(out.data, ".00\"") && !strstr(out.data, ",00\""));
    TEST_CHECK(out.data && !strstr(out.data, ",50\""));
    tn_strbuf_fini(&out);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

static void test_all(void)
{
    tn_context *ctx = NULL;
    if (!TEST_CHECK_STATUS(tn_context_create(NULL, &ctx), TN_OK)) return;
    test_point();
    test_read();
    test_template(ctx);
    test_picture(ctx);
    tn_context_destroy(&ctx);
}

// Makes a locale with this decimal point and sets it.
static bool set_locale(const char *localedef, const char *folder, const char *name, const char *point)
{
    char command[1000], text[16];
    snprintf(command, sizeof command, "%s/source", folder);
    FILE *f = fopen(command, "w");
    if (!f) return false;
    fprintf(f,
            "comment_char %%\nescape_char /\nLC_NUMERIC\ndecimal_point \"%s\"\nthousands_sep \"\"\ngrouping "
            "-1\nEND LC_NUMERIC\n",
            point);
    fclose(f);
    snprintf(command, sizeof command, "'%s' -c -i %s/source -f UTF-8 --no-archive %s/%s >%s/log 2>&1",
             localedef, folder, folder, name, folder);
    int code = system(command); // it calls it an error that the other categories are missing
    (void)code;
    if (!setlocale(LC_NUMERIC, name)) return false;
    snprintf(text, sizeof text, "%.1f", 0.5);
    return strcmp(text, "0.5") != 0;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/tenon-locale-XXXXXX", command[64];
    static const char *const locales[][2] = {{"comma.UTF-8", "<U002C>"}, {"arabic.UTF-8", "<U066B>"}};
    test_all();
    if (argc > 1 && mkdtemp(folder)) {
        setenv("LOCPATH", folder, 1);
        for (size_t i = 0; i < TN_COUNT(locales); i++) {
            bool set = set_locale(argv[1], folder, locales[i][0], locales[i][1]);
            printf("%s: %s\n", locales[i][0], set ? "set" : "cannot be made here");
            if (set) test_all();
        }
        snprintf(command, sizeof command, "rm -rf %s", folder);
        TEST_CHECK(system(command) == 0);
    }
    return test_done();
}
