// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What tokenizers need of Unicode: UTF-8, general categories, lower case, base characters.
#ifndef TN_MODELS_UNICODE_H
#define TN_MODELS_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// General categories, in the order of the generated table.
// clang-format off
enum {
    TN_GC_CC, TN_GC_CF, TN_GC_CN, TN_GC_CO, TN_GC_CS, TN_GC_LL, TN_GC_LM, TN_GC_LO, TN_GC_LT, TN_GC_LU,
    TN_GC_MC, TN_GC_ME, TN_GC_MN, TN_GC_ND, TN_GC_NL, TN_GC_NO, TN_GC_PC, TN_GC_PD, TN_GC_PE, TN_GC_PF,
    TN_GC_PI, TN_GC_PO, TN_GC_PS, TN_GC_SC, TN_GC_SK, TN_GC_SM, TN_GC_SO, TN_GC_ZL, TN_GC_ZP, TN_GC_ZS
};
// clang-format on

// Category of a code point; TN_GC_CN beyond U+10FFFF.
uint32_t tn_unicode_category(uint32_t cp);
bool tn_unicode_is_space(uint32_t cp);  // the 25 code points of White_Space
uint32_t tn_unicode_lower(uint32_t cp); // simple mapping
// First code point of the canonical decomposition: the letter without its accents.
uint32_t tn_unicode_nfd_first(uint32_t cp);

#define TN_UNICODE_REPLACEMENT 0xfffdu

// Decodes the character at p (n >= 1 bytes) and returns how many bytes it has. A byte that starts no
// complete sequence is U+FFFD of size 1; overlong forms and surrogates pass. Values reach 0x1fffff.
uint32_t tn_utf8_decode(const char *p, size_t n, size_t *size);
// Bytes of a code point up to 0x1fffff; returns how many.
size_t tn_utf8_encode(uint32_t cp, char out[4]);
// Length that a lead byte announces; 1 for a continuation byte.
size_t tn_utf8_size(char lead);

#endif
