// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/costs/svg.h"

#include <stdarg.h>

// The colours of Okabe and Ito (Color Universal Design, 2008), which the colour-blind can distinguish;
// the last ones fill up.
static const char style[] =
    "<style>svg{font-family:sans-serif;font-size:12px}.bg{fill:#fff}.fg{fill:#1a1a1a}.dim{fill:#666}"
    ".b{font-weight:bold}.h{font-size:16px}"
    ".sfg{stroke:#1a1a1a;fill:none}.grid{stroke:#ddd;fill:none}.roof{stroke:#1a1a1a;stroke-width:1.6;fill:"
    "none}"
    ".c0{fill:#0072b2;stroke:#0072b2}.c1{fill:#d55e00;stroke:#d55e00}.c2{fill:#009e73;stroke:#009e73}"
    ".c3{fill:#cc79a7;stroke:#cc79a7}.c4{fill:#b8860b;stroke:#b8860b}.c5{fill:#3f9fd0;stroke:#3f9fd0}"
    ".c6{fill:#7a5195;stroke:#7a5195}.c7{fill:#6b8e23;stroke:#6b8e23}.c8{fill:#a0522d;stroke:#a0522d}"
    ".c9{fill:#888;stroke:#888}text{stroke:none!important}"
    "@media screen and (prefers-color-scheme:dark){.bg{fill:#16181c}.fg{fill:#e8e8e8}.dim{fill:#a8a8a8}"
    ".sfg{stroke:#e8e8e8}.grid{stroke:#3a3d44}.roof{stroke:#e8e8e8}"
    ".c0{fill:#56b4e9;stroke:#56b4e9}.c4{fill:#e6c229;stroke:#e6c229}.c6{fill:#b48ade;stroke:#b48ade}"
    ".c8{fill:#d98e5f;stroke:#d98e5f}}</style>\n";

void svg_escaped(FILE *f, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", f);
        else if (*text == '>')
            fputs("&gt;", f);
        else if (*text == '&')
            fputs("&amp;", f);
        else if (*text == '"')
            fputs("&quot;", f);
        else
            fputc(*text, f);
    }
}

void svg_begin(FILE *f, int width, int height, const char *title)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n",
            width, height, width, height);
    fputs("<title>", f);
    svg_escaped(f, title);
    fprintf(f, "</title>%s<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", style, width, height);
}

void svg_end(FILE *f)
{
    fputs("</svg>\n", f);
}

void svg_text(FILE *f, double x, double y, const char *anchor, const char *class, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor, class);
    svg_escaped(f, text);
    fputs("</text>\n", f);
}

void svg_line(FILE *f, double x1, double y1, double x2, double y2, const char *class)
{
    fprintf(f, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2,
            class);
}

void svg_page_begin(FILE *f, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>", f);
    svg_escaped(f, title);
    fputs("</title><style>:root{color-scheme:light dark}body{font-family:sans-serif;max-width:1000px;"
          "margin:1em auto;padding:0 1em}svg{max-width:100%;height:auto}table{border-collapse:collapse;"
          "font-size:12px}td,th{padding:2px 8px;border-bottom:1px solid #8884;text-align:left}"
          ".n{text-align:right}</style></head><body>\n",
          f);
}

void svg_page_end(FILE *f)
{
    fputs("</body></html>\n", f);
}

bool svg_overlap(const svg_box *a, const svg_box *b)
{
    return a->x < b->x + b->w && b->x < a->x + a->w && a->y < b->y + b->h && b->y < a->y + a->h;
}
