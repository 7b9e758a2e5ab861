// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4). The pieces of an input may be cut anywhere.
#ifndef TENON_TOOLS_SHA256_H
#define TENON_TOOLS_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_HEX = 65 }; // 64 digits and the end

typedef struct sha256 {
    uint32_t h[8];
    uint64_t total;   // bytes so far
    uint8_t rest[64]; // the last total % 64 of them
} sha256;

void sha256_init(sha256 *s);
void sha256_add(sha256 *s, const void *bytes, size_t n);
// The hash of all bytes in lower-case hexadecimal digits; *s is used up.
void sha256_hex(sha256 *s, char hex[SHA256_HEX]);
// Whether a text is 64 hexadecimal digits; they are copied in lower case.
bool sha256_parse(const char *text, size_t n, char hex[SHA256_HEX]);

#endif
