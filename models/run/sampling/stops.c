// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Stop strings, see stops.h.
#include "models/run/sampling/stops.h"

#include "core/context.h"

#include <string.h>

enum { SIZE_MAX_BYTES = 65536 }; // of one string

static int32_t advance(const tn_stop *s, int32_t matched, char byte)
{
    while (matched > 0 && s->text[matched] != byte) matched = s->border[matched - 1];
    return matched + (s->text[matched] == byte);
}

tn_status tn_stops_init(tn_stops *s, tn_context *ctx, tn_arena *arena, const char *const *texts, int32_t n)
{
    s->of = tn_arena_array(arena, (size_t)n, sizeof *s->of);
    if (!s->of) return TN_ERR_MEMORY;
    for (int32_t i = 0; i < n; i++) {
        tn_stop *one = &s->of[i];
        size_t size = texts[i] ? strlen(texts[i]) : 0;
        if (size == 0 || size > SIZE_MAX_BYTES)
            return tn_fail(ctx, TN_ERR_ARG, "generation: stops[%d] has %zu bytes, allowed 1..%d", (int)i,
                           size, (int)SIZE_MAX_BYTES);
        *one = (tn_stop){.text = tn_arena_strdup(arena, texts[i]),
                         .border = tn_arena_array(arena, size, sizeof *one->border),
                         .size = (int32_t)size};
        if (!one->text || !one->border) return TN_ERR_MEMORY;
        for (int32_t k = 1; k < one->size; k++)
            one->border[k] = advance(one, one->border[k - 1], one->text[k]);
    }
    s->n = n;
    return TN_OK;
}

void tn_stops_reset(tn_stops *s)
{
    for (int32_t i = 0; i < s->n; i++) s->of[i].matched = 0;
}

bool tn_stops_scan(tn_stops *s, const char *text, size_t from, size_t to, size_t *cut)
{
    for (size_t at = from; at < to; at++) {
        int32_t longest = 0;
        for (int32_t i = 0; i < s->n; i++) {
            tn_stop *one = &s->of[i];
            one->matched = advance(one, one->matched, text[at]);
            if (one->matched == one->size) longest = TN_MAX(longest, one->size);
        }
        if (longest == 0) continue;
        *cut = at + 1 - (size_t)longest;
        return true;
    }
    return false;
}

size_t tn_stops_held(const tn_stops *s)
{
    int32_t held = 0;
    for (int32_t i = 0; i < s->n; i++) held = TN_MAX(held, s->of[i].matched);
    return (size_t)held;
}

size_t tn_stops_longest(const tn_stops *s)
{
    int32_t longest = 0;
    for (int32_t i = 0; i < s->n; i++) longest = TN_MAX(longest, s->of[i].size);
    return (size_t)longest;
}
