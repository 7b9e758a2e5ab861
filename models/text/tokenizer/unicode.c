// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Binary searches over the generated tables, and the lenient UTF-8 that tokenizers were trained with.
#include "models/text/tokenizer/unicode.h"

#include "models/text/tokenizer/unicode_tables.h"

enum { CODE_POINT_MASK = 0x1fffff };

uint32_t tn_unicode_category(uint32_t cp)
{
    if (cp > 0x10ffff) return TN_GC_CN;
    size_t lo = 0, hi = tn_unicode_categories_count; // the range with the highest start <= cp
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if ((tn_unicode_categories[mid] & CODE_POINT_MASK) <= cp)
            lo = mid;
        else
            hi = mid;
    }
    return tn_unicode_categories[lo] >> 24;
}

bool tn_unicode_is_space(uint32_t cp)
{
    if (cp < 0x80) return cp == ' ' || (cp >= 0x09 && cp <= 0x0d);
    if (cp == 0x85) return true;
    uint32_t gc = tn_unicode_category(cp);
    return gc >= TN_GC_ZL && gc <= TN_GC_ZS;
}

// Value of the pair whose first element is cp, or cp itself.
static uint32_t mapped(const uint32_t *pairs, size_t n_values, uint32_t cp)
{
    size_t lo = 0, hi = n_values / 2;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (pairs[2 * mid] == cp) return pairs[2 * mid + 1];
        if (pairs[2 * mid] < cp)
            lo = mid + 1;
        else
            hi = mid;
    }
    return cp;
}

uint32_t tn_unicode_lower(uint32_t cp)
{
    return mapped(tn_unicode_lowers, tn_unicode_lowers_count, cp);
}

uint32_t tn_unicode_nfd_first(uint32_t cp)
{
    // Hangul syllables decompose by rule (The Unicode Standard, section 3.12): 588 per leading consonant.
    if (cp >= 0xac00 && cp <= 0xd7a3) return 0x1100 + (cp - 0xac00) / 588;
    return mapped(tn_unicode_nfds, tn_unicode_nfds_count, cp);
}

size_t tn_utf8_size(char lead)
{
    uint8_t high = (uint8_t)lead >> 4;
    if (high < 0xc) return 1;
    return high < 0xe ? 2 : (size_t)(high - 0xe + 3);
}

uint32_t tn_utf8_decode(const char *p, size_t n, size_t *size)
{
    const uint8_t *b = (const uint8_t *)p;
    *size = 1;
    if (b[0] < 0x80) return b[0];
    if (b[0] < 0xc0 || b[0] >= 0xf8) return TN_UNICODE_REPLACEMENT;
    size_t need = tn_utf8_size(p[0]);
    if (need > n) return TN_UNICODE_REPLACEMENT;
    uint32_t cp = b[0] & (0x7fu >> need);
    for (size_t i = 1; i < need; i++) {
        if ((b[i] & 0xc0) != 0x80) return TN_UNICODE_REPLACEMENT;
        cp = cp << 6 | (b[i] & 0x3fu);
    }
    *size = need;
    return cp;
}

size_t tn_utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | cp);
    return n;
}
