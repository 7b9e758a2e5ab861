// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// In place of dot_tmpl.h at levels without its vectors: nothing is computed by integers there.

static bool dot_has(const attention_work *w, int32_t src)
{
    TN_UNUSED(w), TN_UNUSED(src);
    return false;
}

static float *dot_query_buffer(const attention_work *w)
{
    return w->q;
}

static void dot_query(const attention_work *w, int64_t first, int64_t r, const float *x)
{
    TN_UNUSED(w), TN_UNUSED(first), TN_UNUSED(r), TN_UNUSED(x);
}

static void dot_queries_end(const attention_work *w, int64_t first, int64_t n_rows)
{
    TN_UNUSED(w), TN_UNUSED(first), TN_UNUSED(n_rows);
}

static void dot_decode_scores(const attention_work *w, const uint8_t *const *at, next_rows *next,
                              int64_t n_keys)
{
    TN_UNUSED(w), TN_UNUSED(at), TN_UNUSED(next), TN_UNUSED(n_keys);
}

static void dot_load_keys(const attention_work *w, const attention_item *item, const key_tile *t)
{
    TN_UNUSED(w), TN_UNUSED(item), TN_UNUSED(t);
}

static void dot_many_scores(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    TN_UNUSED(w), TN_UNUSED(n_keys), TN_UNUSED(rows);
}

static void dot_decode_values(const attention_work *w, const uint8_t *const *at, next_rows *next,
                              const key_tile *t)
{
    TN_UNUSED(w), TN_UNUSED(at), TN_UNUSED(next), TN_UNUSED(t);
}

static void dot_load_values(const attention_work *w, const attention_item *item, const key_tile *t)
{
    TN_UNUSED(w), TN_UNUSED(item), TN_UNUSED(t);
}

static void dot_many_values(const attention_work *w, int64_t n_keys, const row_range *rows)
{
    TN_UNUSED(w), TN_UNUSED(n_keys), TN_UNUSED(rows);
}
