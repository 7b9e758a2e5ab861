// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What passes take, as the scheduler learns it (models/engine/costs.h): to the number that its formulas give.
#include "models/engine/costs.h"
#include "tests/unit/test.h"

#include <math.h>

static bool near(double a, double b)
{
    bool good = fabs(a - b) <= 1e-9 * fabs(b);
    if (!good) printf("    %.12g, not %.12g\n", a, b);
    return good;
}

// A running average of what was measured; neighbours stand in for a number of texts that was not.
static void test_plain(void)
{
    tn_pass_costs c = {0};
    TEST_CHECK(tn_costs_are_old(&c, 4) && near(tn_costs_plain(&c, 4) + 1.0, 1.0));
    tn_costs_add(&c, &(tn_pass_size){.n_continued = 4, .rows = 4}, 100.0);
    TEST_CHECK(!tn_costs_are_old(&c, 4) && near(tn_costs_plain(&c, 4), 100.0));
    tn_costs_add(&c, &(tn_pass_size){.n_continued = 4, .rows = 4}, 200.0);
    TEST_CHECK(near(tn_costs_plain(&c, 4), 120.0));
    TEST_CHECK(near(tn_costs_plain(&c, 1), 120.0) && near(tn_costs_plain(&c, 64), 120.0));
    TEST_CHECK(!tn_costs_are_old(&c, 3) && !tn_costs_are_old(&c, 6) && tn_costs_are_old(&c, 16));
    TEST_CHECK(near(c.median_ns, 100.0 * 1.0005));
    for (int i = 0; i < 32; i++) { // under load one pass in 33 is without prompts
        TEST_CHECK(!tn_costs_are_old(&c, 4));
        tn_costs_skip(&c, &(tn_pass_size){.n_continued = 4, .n_prompt = 8, .rows = 12});
    }
    TEST_CHECK(tn_costs_are_old(&c, 4));
}

// A difference to what was expected is shared between the rows and the pairs, by least mean squares
// normalised with both: what is expected then is nearer by a fifth of the difference, however many pairs.
static void test_pairs(void)
{
    static const double many[] = {0.0, 1000.0, 262144.0, 3.0 * 262144.0};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        tn_pass_costs c = {0};
        tn_pass_size pass = {.n_prompt = 64, .rows = 64};
        double before = 0.0, after = 0.0;
        tn_costs_add(&c, &pass, 1000.0);
        TEST_CHECK(tn_costs_mixed(&c, &pass, &before) == TN_COST_MEASURED && near(before, 1000.0));
        pass.pairs = many[i];
        tn_costs_add(&c, &pass, 1500.0);
        TEST_CHECK(tn_costs_mixed(&c, &pass, &after) == TN_COST_MEASURED && near(after, 1100.0));
        double share = many[i] / 262144.0;
        TEST_CHECK(near(c.mixed[11].ns, 1000.0 + 100.0 / (1.0 + share * share)));
        tn_costs_add(&c, &pass, 1e9); // one pass that was interrupted counts as twice what was expected
        TEST_CHECK(tn_costs_mixed(&c, &pass, &after) == TN_COST_MEASURED && near(after, 1320.0));
    }
}

// Sizes that were not measured lie on the line between those that were, and are forgotten after 256 passes.
static void test_between(void)
{
    tn_pass_costs c = {0};
    double ns = -1.0;
    tn_pass_size small = {.n_prompt = 16, .rows = 16}, large = {.n_prompt = 128, .rows = 128},
                 middle = {.n_prompt = 72, .rows = 72};
    TEST_CHECK(tn_costs_mixed(&c, &middle, &ns) == TN_COST_UNKNOWN && ns < 0.0);
    tn_costs_add(&c, &small, 100.0);
    TEST_CHECK(tn_costs_mixed(&c, &middle, &ns) == TN_COST_UNKNOWN && ns < 0.0);
    tn_costs_add(&c, &large, 500.0);
    TEST_CHECK(tn_costs_mixed(&c, &middle, &ns) == TN_COST_PREDICTED && near(ns, 300.0));
    for (int i = 0; i < 255; i++) tn_costs_add(&c, &large, 500.0);
    TEST_CHECK(tn_costs_mixed(&c, &small, &ns) == TN_COST_UNKNOWN);
    TEST_CHECK(tn_costs_mixed(&c, &large, &ns) == TN_COST_MEASURED && near(ns, 500.0));
}

int main(void)
{
    test_plain();
    test_pairs();
    test_between();
    return test_done();
}
