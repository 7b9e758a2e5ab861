// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// In place of half_tmpl.h at levels that do not transpose 16-bit numbers: keys are converted first there.

static bool half_has(const attention_work *w)
{
    TN_UNUSED(w);
    return false;
}

static void half_decode_scores(const attention_work *w, key_rows at, next_rows *next, int64_t n_keys)
{
    TN_UNUSED(w), TN_UNUSED(at), TN_UNUSED(next), TN_UNUSED(n_keys);
}
