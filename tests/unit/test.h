// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a unit test needs: checks that are counted and reported with their place, and the closing line.
//     TEST_CHECK(a == b);
//     TEST_CHECK_STATUS(tn_gguf_open(ctx, path, &gguf), TN_OK);
//     return test_done();
#ifndef TN_TESTS_UNIT_TEST_H
#define TN_TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <tenon/base.h>

static long test_passed, test_failed;

static inline bool test_report(bool ok, const char *file, int line, const char *text)
{
    if (ok)
        test_passed++;
    else
        test_failed++;
    if (!ok) printf("%s:%d: failed: %s\n", file, line, text);
    return ok;
}

static inline bool test_report_status(tn_status got, tn_status want, const char *file, int line,
                                      const char *text)
{
    bool ok = test_report(got == want, file, line, text);
    if (!ok) printf("    got \"%s\", expected \"%s\"\n", tn_status_text(got), tn_status_text(want));
    return ok;
}

// Both give whether the check passed.
#define TEST_CHECK(cond)                test_report((cond), __FILE__, __LINE__, #cond)
#define TEST_CHECK_STATUS(expr, status) test_report_status((expr), (status), __FILE__, __LINE__, #expr)

// Prints the totals; the exit status of main.
static inline int test_done(void)
{
    printf("%ld passed, %ld failed\n", test_passed, test_failed);
    return test_failed > 0;
}

#endif
