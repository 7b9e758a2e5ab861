// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The matcher of regular expressions that the tool has on Windows, against that of the C library: random
// patterns and texts of few letters must match, or be refused, alike. It calls nothing of Windows.
#define sys_pattern         own_pattern
#define sys_pattern_create  own_create
#define sys_pattern_matches own_matches
#define sys_pattern_destroy own_destroy
#include "tools/system/pattern_win32.c"
#undef sys_pattern

#include "core/compiler.h"
#include "tests/unit/test.h"

#include <regex.h>

enum { CASES = 60000, TEXTS = 12, PATTERN_SIZE = 256 };

static uint32_t state = 1;

static uint32_t random_below(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static void put(char *out, const char *text)
{
    if (strlen(out) + strlen(text) < PATTERN_SIZE - 1) strcat(out, text);
}

static void put_sequence(char *out, int depth);

static void put_atom(char *out, int depth)
{
    static const char *const plain[] = {"a",    "b",     "c",     "\\.",         ".",
                                        "[ab]", "[^a]",  "[a-c]", "[[:alpha:]]", "[^[:digit:].]",
                                        "[]a]", "[^]a]", "[a-]",  "[[:alnum:]_]"};
    if (depth > 0 && random_below(4) == 0) {
        put(out, "(");
        put_sequence(out, depth - 1);
        while (random_below(3) == 0) {
            put(out, "|");
            put_sequence(out, depth - 1);
        }
        put(out, ")");
    } else {
        put(out, plain[random_below(TN_COUNT(plain))]);
    }
}

static void put_sequence(char *out, int depth)
{
    static const char *const repeats[] = {"*", "+", "?", "{2}", "{1,2}", "{0,1}", "{2,}"};
    for (uint32_t n = 1 + random_below(3); n > 0; n--) {
        put_atom(out, depth);
        if (random_below(3) == 0) put(out, repeats[random_below(TN_COUNT(repeats))]);
    }
}

static void random_text(char *out)
{
    uint32_t n = random_below(9);
    for (uint32_t i = 0; i < n; i++) out[i] = "aaabbc.1"[random_below(8)];
    out[n] = 0;
}

static void compare_random(void)
{
    int n_matches = 0;
    for (int i = 0; i < CASES; i++) {
        char pattern[PATTERN_SIZE] = "", text[16], why[128];
        regex_t regex;
        if (random_below(5) == 0) put(pattern, "^");
        put_sequence(pattern, 2);
        if (random_below(5) == 0) put(pattern, "$");
        if (strlen(pattern) > PATTERN_SIZE - 32) continue; // something may have been left out
        int wrong = regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB);
        own_pattern *own = own_create(pattern, why, sizeof why);
        if (!TEST_CHECK((own == NULL) == (wrong != 0))) printf("  %s\n", pattern);
        for (int k = 0; own && !wrong && k < TEXTS; k++) {
            random_text(text);
            bool expected = regexec(&regex, text, 0, NULL, 0) == 0;
            n_matches += expected;
            if (!TEST_CHECK(own_matches(own, text) == expected))
                printf("  %s of %s: expected %d\n", pattern, text, expected);
        }
        if (!wrong) regfree(&regex);
        own_destroy(own);
    }
    TEST_CHECK(n_matches > CASES);
}

static void refuse_broken(void)
{
    static const char *const broken[] = {"(a",     "[a",  "a\\",   "*a",        "+",
                                         "a{2,1}", "a{2", "(a(b)", "[[:alpha:]"};
    char why[128];
    for (size_t i = 0; i < TN_COUNT(broken); i++) {
        own_pattern *p = own_create(broken[i], why, sizeof why);
        if (!TEST_CHECK(!p && strlen(why) > 5)) printf("  %s\n", broken[i]);
        own_destroy(p);
    }
}

// A pattern that takes exponential time ends, as no match.
static void end_explosion(void)
{
    char why[128];
    own_pattern *p = own_create("(a*)*(a*)*(a*)*b", why, sizeof why);
    TEST_CHECK(p && !own_matches(p, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac"));
    own_destroy(p);
}

int main(void)
{
    compare_random();
    refuse_broken();
    end_explosion();
    return test_done();
}
