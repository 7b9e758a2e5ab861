// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Notes of passes about what they fused, or why they did not. Apart from plan.c, which calls the passes.
#include "graph/graph.h"

tn_status tn_pass_note(tn_pass_state *s, const char *pattern, const char *node, const char *reason)
{
    tn_fusion_note *note = tn_arena_alloc(&s->graph->arena, sizeof *note);
    if (!note) return TN_ERR_MEMORY;
    *note = (tn_fusion_note){pattern, node ? node : "", reason, NULL};
    *s->notes_end = note;
    s->notes_end = &note->next;
    return TN_OK;
}
