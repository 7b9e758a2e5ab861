// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Upper and lower case, and classes of characters.
#include "models/text/jinja/jinja_impl.h"

enum { CHAR_WORK = 128 }; // bytes of plain copying that one character costs as much as

// The tables only map to lower case. Upper case is found by trying the distances that occur in alphabets.
static uint32_t upper(uint32_t cp)
{
    static const int32_t distances[] = {-32, -1, -80, -48, -63, -37, -38, -40, -8, 121};
    if (cp < 0x80) return cp >= 'a' && cp <= 'z' ? cp - 32 : cp;
    if (tn_unicode_category(cp) != TN_GC_LL) return cp;
    for (size_t i = 0; i < TN_COUNT(distances); i++) {
        uint32_t other = (uint32_t)((int32_t)cp + distances[i]);
        if (tn_unicode_category(other) == TN_GC_LU && tn_unicode_lower(other) == cp) return other;
    }
    return cp;
}

static bool is_letter(uint32_t cp)
{
    uint32_t c = tn_unicode_category(cp);
    return c == TN_GC_LL || c == TN_GC_LU || c == TN_GC_LT || c == TN_GC_LM || c == TN_GC_LO;
}

static bool is_cased(uint32_t cp)
{
    uint32_t c = tn_unicode_category(cp);
    return c == TN_GC_LL || c == TN_GC_LU || c == TN_GC_LT;
}

static uint32_t changed(uint32_t cp, int how, bool first)
{
    if (how == 's') return tn_unicode_category(cp) == TN_GC_LU ? tn_unicode_lower(cp) : upper(cp);
    if (how == 'u' || (how != 'l' && first)) return upper(cp);
    return tn_unicode_lower(cp);
}

value tn_jj_change_case(tn_jj *j, str s, int how)
{
    tn_jj_builder b;
    bool word_start = true;
    tn_jj_build(&b, j);
    for (size_t i = 0, size; i < s->n && tn_jj_work(j, CHAR_WORK); i += size) {
        char text[4];
        uint32_t cp = tn_utf8_decode(s->data + i, s->n - i, &size);
        bool stray = cp == TN_UNICODE_REPLACEMENT && size == 1;
        uint32_t other = stray ? cp : changed(cp, how, how == 'c' ? i == 0 : word_start);
        if (stray || other == cp)
            tn_jj_add_part(&b, s, i, i + size);
        else
            tn_jj_add(&b, text, tn_utf8_encode(other, text), s->mask ? s->mask[i] != 0 : s->user);
        word_start = !is_cased(cp);
    }
    return tn_jj_built(&b);
}

bool tn_jj_all(tn_jj *j, str s, int what)
{
    bool any = false;
    for (size_t i = 0, size; i < s->n && tn_jj_work(j, 4); i += size) {
        uint32_t cp = tn_utf8_decode(s->data + i, s->n - i, &size), c = tn_unicode_category(cp);
        bool digit = c == TN_GC_ND, space = tn_unicode_is_space(cp), letter = is_letter(cp);
        bool wrong_case = what == 'u' ? c == TN_GC_LL || c == TN_GC_LT : c == TN_GC_LU || c == TN_GC_LT;
        if ((what == 'd' && !digit) || (what == 's' && !space) || (what == 'a' && !letter) ||
            (what == 'n' && !letter && !digit && c != TN_GC_NL && c != TN_GC_NO) ||
            ((what == 'u' || what == 'l') && wrong_case))
            return false;
        any = any || (what != 'u' && what != 'l') || is_cased(cp);
    }
    return any;
}
