// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TN_GRAPH_DUMP_H
#define TN_GRAPH_DUMP_H

#include "graph/graph.h"

// The memory plan as a picture: time from left to right, arena offsets from bottom to top.
void tn_plan_dump_svg(const tn_plan *plan, tn_strbuf *out);

#endif
