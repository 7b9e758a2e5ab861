// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The files of the page as bytes. The table is written at build time by page/embed.py.
#ifndef TENON_TOOLS_SERVER_PAGE_H
#define TENON_TOOLS_SERVER_PAGE_H

#include <stddef.h>

// The same bytes in one encoding. The tag is the entity tag with its quotes.
typedef struct page_variant {
    const unsigned char *bytes;
    size_t n;
    const char *tag;
} page_variant;

typedef struct page_file {
    const char *path, *type;
    page_variant plain, gzip; // gzip.bytes NULL: compression saves nothing
} page_file;

extern const page_file page_files[];
extern const size_t n_page_files;

#endif
