// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Cases of the op sample: rows whose parameters differ, with edits and masks.
#include "ops/sample.h"
#include "tests/check/check.h"

enum { EDITS = 48, MASKS = 2, FORMS = 10 };

static float pick(check_rng *r, const float *values, int32_t n)
{
    return values[check_random_int(r, 0, n - 1)];
}

// Every filter is off, weak, strong or down to one token in some rows.
static tn_sample_row random_row(check_rng *r, int64_t n_vocab)
{
    static const float temperatures[] = {1.0f, 0.8f, 0.1f, 1.7f, 20.0f}, top_ps[] = {1.0f, 0.95f, 0.5f, 0.0f},
                       min_ps[] = {0.0f, 0.05f, 0.9f, 1.0f}, penalties[] = {1.0f, 1.1f, 0.7f};
    static const int32_t top_ks[] = {0, 1, 40, 2500};
    uint64_t random = check_random_u64(r);
    bool first = check_random_int(r, 0, 3) == 0;
    tn_sample_row p = {
        .kind = (int32_t)check_random_int(r, 0, 7) % 5 == 0 ? TN_SAMPLE_BEST : TN_SAMPLE_DRAW,
        .filter_temperature = 1.0f,
        .temperature = pick(r, temperatures, 5),
        .top_k = top_ks[check_random_int(r, 0, 3)],
        .top_p = pick(r, top_ps, 4),
        .min_p = pick(r, min_ps, 4),
        .repeat_penalty = pick(r, penalties, 3),
        .presence_penalty = pick(r, min_ps, 4),
        .frequency_penalty = pick(r, min_ps, 4),
        .mask = -1,
        .random_low = (uint32_t)random,
        .random_high = (uint32_t)(random >> 32),
        .n_top = check_random_int(r, 0, 2) == 0 ? (int32_t)check_random_int(r, 1, TN_SAMPLE_TOP) : 0,
    };
    if (first) p.filter_temperature = p.temperature;
    if (check_random_int(r, 0, 3) == 0) p.min_p = 0.0f, p.top_k = 0;
    if (check_random_int(r, 0, 15) == 0) p.kind = TN_SAMPLE_NONE;
    if (n_vocab < 3) p.n_top = TN_SAMPLE_TOP;
    return p;
}

// A row edits each token once: every third from a random one on.
static void fill_edits(check_rng *r, int32_t *ints, int64_t n_vocab)
{
    static const float biases[] = {0.0f, 2.0f, -100.0f, 1e38f, -INFINITY};
    int64_t first = check_random_int(r, 0, n_vocab - 1);
    for (int32_t i = 0; i < EDITS; i++) {
        tn_sample_edit e = {.token = (int32_t)((first + 3 * i) % n_vocab),
                            .count = (int32_t)check_random_int(r, 0, 3),
                            .bias = pick(r, biases, check_random_int(r, 0, 9) == 0 ? 5 : 2)};
        memcpy(ints + (size_t)i * TN_SAMPLE_EDIT_WORDS, &e, sizeof e);
    }
}

static void fill_logits(check_operand *x, int32_t form)
{
    static const struct {
        check_fill fill;
        double lo, hi;
    } fills[FORMS] = {
        {CHECK_NORMAL, 0, 3},    {CHECK_NORMAL, 0, 0.1},
        {CHECK_TIES, 0, 0},      {CHECK_SPECIAL, 0, 0},
        {CHECK_EXTREME, -3, 38}, {CHECK_NORMAL, 0, 3},
        {CHECK_NORMAL, 0, 3},    {CHECK_MASK, 0, 0},
        {CHECK_CONST, 1, 0},     {CHECK_CONST, -(double)INFINITY, 0},
    };
    check_range(x, fills[form].fill, fills[form].lo, fills[form].hi);
    if (form == 3) x->special = CHECK_ALL_SPECIAL;
    if (form == 6) check_strided(x);
}

// Masks: nearly all tokens, and one.
static void fill_masks(check_case *c, int64_t n_vocab, int32_t n_masks)
{
    int64_t words = (n_vocab + 31) / 32;
    int32_t *ints = check_ints(c, check_mat(c, TN_TYPE_I32, n_masks, words), n_masks * words);
    check_rng r = {c->seed ^ 0x77};
    for (int64_t i = 0; i < words; i++) ints[i] = i % 3 == 1 ? 0 : (int32_t)(check_random_u64(&r) >> 32);
    int64_t one = check_random_int(&r, 0, n_vocab - 1);
    for (int64_t i = 0; i < words && n_masks > 1; i++) ints[words + i] = 0;
    if (n_masks > 1) ints[words + one / 32] = (int32_t)(1u << (one % 32));
}

static void sample_case(check_run *run, int64_t n_rows, int64_t n_vocab, int32_t form)
{
    check_case c;
    check_begin(&c, TN_OP_sample);
    check_rng r = {(uint64_t)(n_rows * 1000003 + n_vocab * 31 + form)};
    fill_logits(check_mat(&c, TN_TYPE_F32, n_rows, n_vocab), form);
    int64_t words = n_rows * TN_SAMPLE_ROW_WORDS;
    int32_t *rows = check_ints(&c, check_mat(&c, TN_TYPE_I32, n_rows, TN_SAMPLE_ROW_WORDS), words);
    bool edits = form % 2 == 1, masks = form == 5 || form == 7;
    int32_t n_masks = n_vocab > 40000 ? 1 : MASKS;
    for (int64_t i = 0; i < n_rows; i++) {
        tn_sample_row p = random_row(&r, n_vocab);
        if (edits && i % 3 != 1 && n_vocab >= 3 * EDITS) {
            p.first_edit = (int32_t)(i % 4) * EDITS / 8;
            p.n_edits = EDITS / 2;
        }
        if (masks && i % 2 == 0) p.mask = (int32_t)(i / 2 % n_masks);
        memcpy(rows + i * TN_SAMPLE_ROW_WORDS, &p, sizeof p);
    }
    if (edits) {
        int32_t *ints = check_ints(&c, check_mat(&c, TN_TYPE_I32, EDITS, TN_SAMPLE_EDIT_WORDS),
                                   EDITS * TN_SAMPLE_EDIT_WORDS);
        fill_edits(&r, ints, n_vocab);
    } else if (masks) {
        check_absent(&c);
    }
    if (masks) fill_masks(&c, n_vocab, n_masks);
    snprintf(c.note, sizeof c.note, "form %d", form);
    check_emit(run, &c);
}

void check_cases_sample(check_run *run)
{
    static const int64_t sizes[] = {1, 3, 127, 1000, 2049};
    for (int32_t form = 0; form < FORMS; form++) {
        for (size_t i = 0; i < TN_COUNT(sizes); i++) sample_case(run, i == 2 ? 33 : 5, sizes[i], form);
        if (run->options.quick && form > 2) continue;
        sample_case(run, 3, 32000, form);
        sample_case(run, 1, 151936, form);
    }
    sample_case(run, 256, 127, 0);
    sample_case(run, 256, 600, 1);
}
