// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures of lines (SVG): something measured over something that was chosen, one line for each series.
#ifndef TENON_TOOLS_CHART_H
#define TENON_TOOLS_CHART_H

#include "tools/common.h"

enum { CHART_SERIES = 20 };

typedef struct chart_point {
    double x, y, spread; // spread: half of the range that was measured, 0: none
} chart_point;

typedef struct chart_series {
    char name[120];
    const chart_point *points; // in the order of x
    int n;
    bool steps; // the value holds until the next point
} chart_series;

typedef struct chart {
    const char *title, *x_label, *y_label; // labels say in what they count
    bool doubling;                         // x is logarithmic, with ticks at powers of two
    const chart_series *series;
    int n;
} chart;

void chart_draw(const chart *c, FILE *f);

#endif
