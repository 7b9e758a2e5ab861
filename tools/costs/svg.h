// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Writing SVG: pictures that are readable on paper and on a dark screen. Colours are classes of one style
// sheet: fg (text and frames), dim (grids), bg, and c0 to c9 for things that differ.
#ifndef TENON_TOOLS_SVG_H
#define TENON_TOOLS_SVG_H

#include "tools/common.h"

enum { SVG_COLOURS = 10 };

typedef struct svg_box {
    double x, y, w, h;
} svg_box;

void svg_begin(FILE *f, int width, int height, const char *title);
void svg_end(FILE *f);
// anchor: "start", "middle" or "end"; class: "fg", "dim" or "c3", with " b" bold.
void svg_text(FILE *f, double x, double y, const char *anchor, const char *class, const char *fmt, ...)
    PRINTF_LIKE(6, 7);
void svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *class);
// Text with <, & and quotes as SVG and HTML want them.
void svg_escaped(FILE *f, const char *text);
// A page (HTML) around pictures and tables: cells of the class "n" are numbers.
void svg_page_begin(FILE *f, const char *title);
void svg_page_end(FILE *f);
bool svg_overlap(const svg_box *a, const svg_box *b);

#endif
