// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_GRAPH_DUMP_H
#define TN_GRAPH_DUMP_H

#include "graph/graph.h"

// The memory plan as a picture: time from left to right, arena offsets from bottom to top.
void tn_plan_dump_svg(const tn_plan *plan, tn_strbuf *out);

// Steps first .. first + length - 1 and times - 1 more runs of steps like them, one behind the other.
typedef struct tn_dump_run {
    int32_t first, length, times;
} tn_dump_run;
// All steps of the plan as runs; at most n_steps of them. Returns how many there are.
int32_t tn_dump_runs(const tn_plan *plan, tn_dump_run *runs);
// The patterns of fusion that made one step of several ops, separated by semicolons.
void tn_dump_reason(const tn_plan *plan, int32_t step, tn_strbuf *out);
// The ops as recorded beside the steps, for Graphviz.
void tn_plan_dump_dot(const tn_plan *plan, tn_strbuf *out);
// Appends the text with runs of lines that differ only in numbers printed once (dump_lines.c).
void tn_dump_collapse(tn_context *ctx, const char *text, tn_strbuf *out);

#endif
