// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The generated tables; unicode.c is their only user.
#ifndef TN_MODELS_UNICODE_TABLES_H
#define TN_MODELS_UNICODE_TABLES_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t tn_unicode_categories[];
extern const size_t tn_unicode_categories_count;
extern const uint32_t tn_unicode_lowers[];
extern const size_t tn_unicode_lowers_count;
extern const uint32_t tn_unicode_nfds[];
extern const size_t tn_unicode_nfds_count;

#endif
