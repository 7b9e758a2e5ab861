// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Pictures of what the passes made of a graph: the ops as recorded on the left, the steps of the plan on the
// right. Layers that repeat are drawn once.
#include "graph/dump.h"

#include <string.h>

// --- repeated layers -----------------------------------------------------------------------------

static bool same_shape(const tn_view *a, const tn_view *b)
{
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

// Whether two steps look the same: types of sources are not drawn, and files often have weights of two types
// in layers by turns.
static bool alike(const tn_plan *p, int32_t i, int32_t j)
{
    const tn_plan_step *a = &p->steps[i], *b = &p->steps[j];
    if (a->step.op != b->step.op || a->device != b->device || strcmp(a->kernel, b->kernel) != 0) return false;
    if (a->step.n_src != b->step.n_src || a->n_launches != b->n_launches) return false;
    if (a->step.join.next != b->step.join.next) return false;
    for (int32_t k = 0; k < a->step.n_src; k++)
        if (!same_shape(&a->step.src[k], &b->step.src[k])) return false;
    return a->step.dst[0].dtype == b->step.dst[0].dtype && same_shape(&a->step.dst[0], &b->step.dst[0]);
}

int32_t tn_dump_runs(const tn_plan *p, tn_dump_run *runs)
{
    enum { PERIOD_MAX = 64, LEAST_SAVED = 3 };
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_steps;) {
        tn_dump_run best = {i, 1, 1};
        for (int32_t period = 1; period <= PERIOD_MAX && i + 2 * period <= p->n_steps; period++) {
            int32_t k = i + period;
            while (k < p->n_steps && alike(p, k, k - period)) k++;
            int32_t times = (k - i) / period;
            if ((times - 1) * period > (best.times - 1) * best.length) best = (tn_dump_run){i, period, times};
        }
        if ((best.times - 1) * best.length < LEAST_SAVED) best = (tn_dump_run){i, 1, 1};
        runs[n++] = best;
        i += best.length * best.times;
    }
    return n;
}

// The step that is drawn for each one.
static void find_drawn(const tn_dump_run *runs, int32_t n_runs, int32_t *drawn)
{
    for (int32_t r = 0; r < n_runs; r++)
        for (int32_t k = 0; k < runs[r].length * runs[r].times; k++)
            drawn[runs[r].first + k] = runs[r].first + k % runs[r].length;
}

// --- Graphviz ------------------------------------------------------------------------------------

static const char *const device_colours[] = {"#dbe9f6", "#fbe3c8", "#d9ecd2", "#e6dcef"};

static void put_quoted(tn_strbuf *out, const char *text)
{
    tn_strbuf_json(out, text, strlen(text));
}

static int32_t group_size(const tn_plan *p, int32_t step)
{
    int32_t n = 0;
    for (int32_t i = 0; i < p->n_ops; i++) n += p->ops[i].step == step;
    return n;
}

// Whether an op stays alone and reads what a step does.
static bool reads_step(const tn_plan *p, const tn_recorded *op, int32_t step)
{
    bool reads = false;
    for (int32_t k = 0; k < op->n_src; k++)
        reads = reads || (op->src[k] >= 0 && p->ops[op->src[k]].step == step);
    return reads && op->step != step && group_size(p, op->step) == 1;
}

// Why the ops of a group are one step: the patterns that fired at their results or, if there are none, at
// an op behind them (what is done for the cache is found from the attention that reads it).
void tn_dump_reason(const tn_plan *p, int32_t step, tn_strbuf *out)
{
    int32_t n = 0;
    for (int behind = 0; behind < 2 && n == 0; behind++)
        for (const tn_fusion_note *note = p->notes; note; note = note->next) {
            bool here = false;
            for (int32_t i = 0; i < p->n_ops && !note->reason && !here; i++)
                here = p->ops[i].value->name && strcmp(p->ops[i].value->name, note->node) == 0 &&
                       (behind ? reads_step(p, &p->ops[i], step) : p->ops[i].step == step);
            if (here) tn_strbuf_printf(out, "%s%s", n++ ? "; " : "", note->pattern);
        }
}

static void dot_group(const tn_plan *p, int32_t step, tn_strbuf *out)
{
    bool fused = group_size(p, step) > 1;
    if (fused) {
        tn_strbuf_printf(out, "    subgraph cluster_f%d { style=\"rounded\"; color=\"#d55e00\"; label=\"",
                         step);
        tn_dump_reason(p, step, out);
        tn_strbuf_puts(out, "\";\n");
    }
    for (int32_t i = 0; i < p->n_ops; i++) {
        if (p->ops[i].step != step) continue;
        char shape[96];
        tn_strbuf_printf(out, "    r%d [label=\"%s %s\"];\n", i, tn_op_name(p->ops[i].op),
                         tn_view_text(&p->ops[i].value->view, shape, sizeof shape));
    }
    if (fused) tn_strbuf_puts(out, "    }\n");
}

static void dot_step(const tn_plan *p, int32_t i, tn_strbuf *out)
{
    const tn_plan_step *s = &p->steps[i];
    char shape[96];
    bool folded = (s->step.join.next & TN_JOIN_FOLD) != 0; // the next step launches it
    tn_strbuf_printf(out, "    s%d [label=\"%s %s\\n", i, tn_op_name(s->step.op),
                     tn_view_text(&s->step.dst[0], shape, sizeof shape));
    put_quoted(out, s->step.name);
    for (int32_t k = 0; k < s->n_launches; k++) {
        tn_strbuf_puts(out, "\\n> ");
        put_quoted(out, tn_plan_launch_name(p, s, k));
    }
    tn_strbuf_printf(out, "\", style=\"%s\", fillcolor=\"%s\"%s];\n", folded ? "filled,dashed" : "filled",
                     device_colours[(size_t)s->device % TN_COUNT(device_colours)],
                     s->step.op == TN_OP_transfer ? ", penwidth=3, fontname=\"monospace bold\"" : "");
}

// Both sides of a run of steps.
static void dot_runs(const tn_plan *p, const tn_dump_run *runs, int32_t n_runs, bool steps, tn_strbuf *out)
{
    for (int32_t r = 0; r < n_runs; r++) {
        if (runs[r].times > 1)
            tn_strbuf_printf(out, "    subgraph cluster_%c%d { style=\"dashed\"; label=\"x %d\";\n",
                             steps ? 's' : 'r', r, runs[r].times);
        for (int32_t k = 0; k < runs[r].length; k++) {
            if (steps)
                dot_step(p, runs[r].first + k, out);
            else
                dot_group(p, runs[r].first + k, out);
        }
        if (runs[r].times > 1) tn_strbuf_puts(out, "    }\n");
    }
}

// The op that is drawn for one: that of the same place among the ops of its step.
static int32_t drawn_op(const tn_plan *p, const int32_t *drawn, int32_t op)
{
    int32_t step = p->ops[op].step, place = 0;
    if (step < 0 || drawn[step] == step) return step < 0 ? -1 : op;
    for (int32_t i = 0; i < op; i++) place += p->ops[i].step == step;
    for (int32_t i = 0; i < p->n_ops; i++)
        if (p->ops[i].step == drawn[step] && place-- == 0) return i;
    return -1;
}

static void dot_recorded_edges(const tn_plan *p, const int32_t *drawn, tn_strbuf *out)
{
    for (int32_t i = 0; i < p->n_ops; i++) {
        const tn_recorded *op = &p->ops[i];
        if (op->step < 0 || drawn[op->step] != op->step) continue;
        for (int32_t k = 0; k < op->n_src; k++) {
            int32_t from = op->src[k] >= 0 ? drawn_op(p, drawn, op->src[k]) : -1;
            if (from < 0) continue;
            tn_strbuf_printf(out, "    r%d -> r%d;\n", from, i);
        }
    }
}

// Edges go from the step that last wrote a root to the steps that read it. What a layer reads from the one
// before it comes, in the one that is drawn, from what stands before all layers.
static void dot_step_edges(const tn_plan *p, const int32_t *drawn, int32_t *writer, tn_strbuf *out)
{
    for (int32_t i = 0; i < p->n_steps; i++) {
        const tn_plan_step *s = &p->steps[i];
        for (int32_t k = 0; k < s->step.n_src && drawn[i] == i; k++) {
            int32_t from = s->src[k].root >= 0 ? writer[s->src[k].root] - 1 : -1;
            if (from < 0) continue;
            bool transfer = s->step.op == TN_OP_transfer || p->steps[from].step.op == TN_OP_transfer;
            tn_strbuf_printf(out, "    s%d -> s%d%s;\n", drawn[from], i, transfer ? " [penwidth=3]" : "");
        }
        for (int32_t k = 0; k < s->step.n_dst; k++) writer[s->dst[k].root] = i + 1;
    }
}

void tn_plan_dump_dot(const tn_plan *p, tn_strbuf *out)
{
    int32_t *writer = tn_calloc(p->ctx, (size_t)p->graph->n_values + 1, sizeof *writer),
            *drawn = tn_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof *drawn);
    tn_dump_run *runs = tn_calloc(p->ctx, (size_t)p->n_steps + 1, sizeof *runs);
    if (writer && drawn && runs) {
        int32_t n_runs = tn_dump_runs(p, runs);
        find_drawn(runs, n_runs, drawn);
        tn_strbuf_puts(out,
                       "digraph plan {\n  rankdir=TB; compound=true; newrank=true; fontname=\"monospace\";\n"
                       "  fontsize=11; ranksep=0.2; nodesep=0.12; labeljust=l;\n"
                       "  node [shape=box, fontname=\"monospace\", fontsize=10, height=0.2, "
                       "margin=\"0.07,0.03\"];\n  edge [arrowsize=0.6];\n"
                       "  subgraph cluster_recorded { label=\"as recorded; boxes: fused, and why\";\n");
        dot_runs(p, runs, n_runs, false, out);
        dot_recorded_edges(p, drawn, out);
        tn_strbuf_puts(out, "  }\n  subgraph cluster_plan { label=\"the plan:");
        for (int32_t d = 0; d < p->n_devices; d++) {
            static const char *const names[] = {"blue", "orange", "green", "violet"};
            tn_strbuf_printf(out, " %s is %s", names[(size_t)d % TN_COUNT(names)], p->devices[d]->name);
        }
        tn_strbuf_puts(out, "\";\n");
        dot_runs(p, runs, n_runs, true, out);
        dot_step_edges(p, drawn, writer, out);
        tn_strbuf_puts(out, "  }\n}\n");
    } else {
        out->status = TN_ERR_MEMORY;
    }
    tn_free(p->ctx, writer);
    tn_free(p->ctx, drawn);
    tn_free(p->ctx, runs);
}
