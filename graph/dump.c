// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans as text, JSON and Graphviz. The picture of the memory plan is in dump_svg.c.
#include "graph/graph.h"

#include "core/number.h"
#include "core/strbuf.h"
#include "graph/dump.h"

#include <stdio.h>
#include <string.h>

static const char *value_name(const tn_tensor *t)
{
    return t->name ? t->name : "?";
}

static void put_view(tn_strbuf *out, const tn_view *v)
{
    char text[96];
    tn_strbuf_puts(out, tn_view_text(v, text, sizeof text));
}

// Item k of a list.
static void put_item(tn_strbuf *out, int32_t k, const char *text)
{
    if (k > 0) tn_strbuf_puts(out, ", ");
    tn_strbuf_puts(out, text);
}

// Every plan keeps this text, so it is written without formats.
void tn_graph_print(const tn_graph *g, tn_strbuf *out)
{
    for (int32_t i = 0; i < g->n_nodes; i++) {
        const tn_node *n = g->nodes[i];
        tn_strbuf_puts(out, "  ");
        for (int32_t k = 0; k < n->n_dst; k++) {
            put_item(out, k, value_name(n->dst[k]));
            tn_strbuf_puts(out, ": ");
            put_view(out, &n->dst[k]->view);
        }
        tn_strbuf_puts(out, " = ");
        tn_strbuf_puts(out, tn_op_name(n->op));
        tn_strbuf_puts(out, "(");
        for (int32_t k = 0; k < n->n_src; k++) put_item(out, k, n->src[k] ? value_name(n->src[k]) : "-");
        tn_strbuf_puts(out, ")\n");
    }
}

static void put_location(const tn_plan *p, const tn_plan_operand *o, tn_strbuf *out)
{
    const tn_tensor *root = p->graph->values[o->root];
    if (p->places[o->root].in_arena)
        tn_strbuf_printf(out, "@%zu", p->places[o->root].offset + o->offset);
    else
        tn_strbuf_printf(out, "@%s+%zu", value_name(root), o->offset);
}

static double ratio(const tn_plan_info *info)
{
    return info->arena_bound ? (double)info->arena_size / (double)info->arena_bound : 1.0;
}

static void put_summary(const tn_plan *p, tn_strbuf *out)
{
    tn_plan_info i = p->info;
    tn_strbuf_printf(out, "steps: %d recorded, %d planned, %d fusions fired, %d pairs joined, %d launches\n",
                     i.n_recorded, i.n_steps, i.n_fused, i.n_joined, i.n_launches);
    tn_strbuf_printf(out, "precision of matrix products: %s (NMSE at most %g)\n",
                     tn_precision_name(p->precision), tn_precision_nmse(p->precision));
    for (int32_t d = 0; d < p->n_devices; d++)
        if (p->arena_size[d] || p->scratch_size[d] || p->weight_size[d] || d == 0)
            tn_strbuf_printf(out,
                             "memory on %s: arena %zu bytes (lower bound %zu), scratch %zu, inputs %zu, "
                             "states %zu, weights %zu\n",
                             p->devices[d]->name, p->arena_size[d], p->arena_bound[d], p->scratch_size[d],
                             p->input_size[d], p->state_size[d], p->weight_size[d]);
    for (int32_t d = 0; d < p->n_devices; d++)
        if (p->derived_size[d])
            tn_strbuf_printf(out, "weights kept in another form on %s: %zu bytes at most\n",
                             p->devices[d]->name, p->derived_size[d]);
    char text[32];
    snprintf(text, sizeof text, "%.3f", ratio(&i));
    tn_number_point(text);
    tn_strbuf_printf(out, "arena / lower bound: %s\ninputs: %llu bytes\n", text,
                     (unsigned long long)i.input_size);
}

// What a step shares: "with the next step", "staged@1024".
static void put_joins(const tn_plan *p, int32_t i, tn_strbuf *out)
{
    static const struct {
        uint32_t kind;
        const char *what;
    } kinds[] = {
        {TN_JOIN_FOLD, "done by the step after it"},
        {TN_JOIN_DEFER, "finished by the step after it"},
        {TN_JOIN_PACK, "leaves 16-bit rows"},
    };
    const tn_plan_step *s = &p->steps[i];
    for (size_t k = 0; k < TN_COUNT(kinds); k++)
        if (s->step.join.next & kinds[k].kind) tn_strbuf_printf(out, "        %s\n", kinds[k].what);
    const tn_plan_operand *staged[] = {&s->staged_x, &s->staged_y};
    for (size_t k = 0; k < TN_COUNT(staged); k++) {
        if (staged[k]->root < 0) continue;
        tn_strbuf_puts(out, k ? "        writes staged activations " : "        reads staged activations ");
        put_location(p, staged[k], out);
        tn_strbuf_puts(out, "\n");
    }
}

// The launches that copy inputs to the devices before the first step, and results from them after the last.
static void put_copies(const tn_plan *p, tn_strbuf *out)
{
    for (int32_t d = 0; d < p->n_devices; d++) {
        tn_plan_copies c = tn_plan_copies_get(p, d);
        if (c.uploads) tn_strbuf_printf(out, "uploads to %s > %s\n", p->devices[d]->name, c.kernel);
        if (c.downloads) tn_strbuf_printf(out, "downloads from %s > %s\n", p->devices[d]->name, c.kernel);
    }
}

static void put_text(const tn_plan *p, tn_strbuf *out)
{
    tn_strbuf_puts(out, "recorded:\n");
    tn_strbuf_puts(out, p->recorded);
    tn_strbuf_puts(out, "fusion and joining:\n");
    for (const tn_fusion_note *n = p->notes; n; n = n->next)
        tn_strbuf_printf(out, "  %s at %s: %s\n", n->pattern, n->node, n->reason ? n->reason : "fired");
    tn_strbuf_puts(out, "plan:\n");
    for (int32_t i = 0; i < p->n_steps; i++) {
        const tn_plan_step *s = &p->steps[i];
        tn_strbuf_printf(out, "%5d %s %-14s %-28s", i, p->devices[s->device]->name, tn_op_name(s->step.op),
                         s->kernel);
        for (int32_t k = 0; k < s->step.n_dst; k++) {
            tn_strbuf_puts(out, k ? ", " : " ");
            put_view(out, &s->step.dst[k]);
            put_location(p, &s->dst[k], out);
        }
        tn_strbuf_printf(out, "  %s", s->step.name);
        if (s->rounding != TN_PRECISION_auto)
            tn_strbuf_printf(out, "  in %s", tn_precision_name(s->rounding));
        tn_strbuf_puts(out, "\n");
        put_joins(p, i, out);
        for (int32_t k = 0; k < s->n_launches; k++)
            tn_strbuf_printf(out, "        > %s\n", tn_plan_launch_name(p, s, k));
    }
    put_copies(p, out);
    put_summary(p, out);
}

static void dump_text(const tn_plan *p, tn_strbuf *out)
{
    tn_strbuf all;
    tn_strbuf_init(&all, p->ctx);
    put_text(p, &all);
    out->status = all.status;
    if (all.status == TN_OK && all.data) tn_dump_collapse(p->ctx, all.data, out);
    tn_strbuf_fini(&all);
}

static void put_json_string(tn_strbuf *out, const char *text)
{
    tn_strbuf_puts(out, "\"");
    tn_strbuf_json(out, text, strlen(text));
    tn_strbuf_puts(out, "\"");
}

static void json_operand(const tn_plan *p, const tn_view *v, const tn_plan_operand *o, tn_strbuf *out)
{
    tn_strbuf_puts(out, "{\"root\": ");
    put_json_string(out, value_name(p->graph->values[o->root]));
    tn_strbuf_printf(out, ", \"type\": \"%s\", \"shape\": [", tn_dtype_name(v->dtype));
    for (int32_t d = TN_MAX_DIMS - v->n_dims; d < TN_MAX_DIMS; d++)
        tn_strbuf_printf(out, "%lld%s", (long long)v->ne[d], d + 1 < TN_MAX_DIMS ? ", " : "");
    bool arena = p->places[o->root].in_arena;
    tn_strbuf_printf(out, "], \"in\": \"%s\", \"offset\": %zu}", arena ? "arena" : "outside",
                     o->offset + (arena ? p->places[o->root].offset : 0));
}

static void json_launches(const tn_plan *p, const tn_plan_step *s, tn_strbuf *out)
{
    const tn_step_join *j = &s->step.join;
    tn_strbuf_puts(out, ",\n     \"launches\": [");
    for (int32_t k = 0; k < s->n_launches; k++) {
        if (k) tn_strbuf_puts(out, ", ");
        put_json_string(out, tn_plan_launch_name(p, s, k));
    }
    tn_strbuf_puts(out, "]");
    if (j->next & TN_JOIN_FOLD) tn_strbuf_puts(out, ", \"done_by_next\": true");
    if (j->next & TN_JOIN_DEFER) tn_strbuf_puts(out, ", \"finished_by_next\": true");
    if (j->next & TN_JOIN_PACK) tn_strbuf_puts(out, ", \"result\": \"16-bit rows\"");
    if (s->staged_x.root >= 0) {
        tn_strbuf_puts(out, ", \"staged_source\": ");
        json_operand(p, &j->staged_x, &s->staged_x, out);
    }
    if (s->staged_y.root >= 0) {
        tn_strbuf_puts(out, ", \"staged_result\": ");
        json_operand(p, &j->staged_y, &s->staged_y, out);
    }
}

// With no keys in the cache but those of the pass itself.
static void json_cost(const tn_plan *p, const tn_plan_step *s, tn_strbuf *out)
{
    tn_plan_step_info c = {.struct_size = sizeof c};
    tn_plan_cost(p, (int32_t)(s - p->steps), 0, &c);
    tn_strbuf_printf(out,
                     ",\n     \"bytes\": {\"weights_read\": %llu, \"cache_read\": %llu, "
                     "\"cache_written\": %llu, \"read\": %llu, \"written\": %llu}, "
                     "\"operations\": {\"f32\": %.0f, \"product\": %.0f, \"product_precision\": \"%s\"}",
                     (unsigned long long)c.weights_read, (unsigned long long)c.cache_read,
                     (unsigned long long)c.cache_written, (unsigned long long)c.read,
                     (unsigned long long)c.written, c.ops, c.product_ops, tn_precision_name(c.precision));
}

static void json_step(const tn_plan *p, const tn_plan_step *s, tn_strbuf *out)
{
    tn_strbuf_printf(out, "    {\"op\": \"%s\", \"device\": \"%s\", \"kernel\": \"%s\", \"name\": ",
                     tn_op_name(s->step.op), p->devices[s->device]->name, s->kernel);
    put_json_string(out, s->step.name);
    if (s->rounding != TN_PRECISION_auto)
        tn_strbuf_printf(out, ", \"precision\": \"%s\"", tn_precision_name(s->rounding));
    json_cost(p, s, out);
    json_launches(p, s, out);
    tn_strbuf_puts(out, ",\n     \"sources\": [");
    for (int32_t k = 0; k < s->step.n_src; k++) {
        if (k) tn_strbuf_puts(out, ", ");
        if (s->src[k].root < 0) tn_strbuf_puts(out, "null");
        else json_operand(p, &s->step.src[k], &s->src[k], out);
    }
    tn_strbuf_puts(out, "],\n     \"results\": [");
    for (int32_t k = 0; k < s->step.n_dst; k++) {
        if (k) tn_strbuf_puts(out, ", ");
        json_operand(p, &s->step.dst[k], &s->dst[k], out);
    }
    tn_strbuf_puts(out, "]}");
}

static void json_devices(const tn_plan *p, tn_strbuf *out)
{
    tn_strbuf_puts(out, " \"devices\": [");
    for (int32_t d = 0; d < p->n_devices; d++) {
        tn_strbuf_puts(out, d ? ",\n    {\"name\": " : "\n    {\"name\": ");
        put_json_string(out, p->devices[d]->name);
        tn_strbuf_printf(out,
                         ", \"arena_bytes\": %zu, \"arena_lower_bound\": %zu, \"scratch_bytes\": %zu, "
                         "\"input_bytes\": %zu, "
                         "\"state_bytes\": %zu, \"weight_bytes\": %zu, \"derived_bytes\": %zu",
                         p->arena_size[d], p->arena_bound[d], p->scratch_size[d], p->input_size[d],
                         p->state_size[d], p->weight_size[d], p->derived_size[d]);
        tn_plan_copies c = tn_plan_copies_get(p, d);
        tn_strbuf_printf(out, ", \"uploads\": %d, \"downloads\": %d}", c.uploads, c.downloads);
    }
    tn_strbuf_puts(out, "\n ],\n");
}

static void dump_json(const tn_plan *p, tn_strbuf *out)
{
    tn_plan_info i = p->info;
    tn_strbuf_printf(out,
                     "{\"format\": 1, \"precision\": \"%s\", \"recorded\": %d, \"steps_total\": %d, "
                     "\"fused\": %d, \"joined\": %d, \"launches_total\": %d,\n \"arena_bytes\": %llu, "
                     "\"arena_lower_bound\": %llu, \"scratch_bytes\": %llu, \"input_bytes\": %llu,\n",
                     tn_precision_name(p->precision), i.n_recorded, i.n_steps, i.n_fused, i.n_joined,
                     i.n_launches, (unsigned long long)i.arena_size, (unsigned long long)i.arena_bound,
                     (unsigned long long)i.scratch_size, (unsigned long long)i.input_size);
    json_devices(p, out);
    tn_strbuf_puts(out, " \"fusions\": [\n");
    for (const tn_fusion_note *n = p->notes; n; n = n->next) {
        tn_strbuf_puts(out, "    {\"pattern\": ");
        put_json_string(out, n->pattern);
        tn_strbuf_puts(out, ", \"at\": ");
        put_json_string(out, n->node);
        tn_strbuf_printf(out, ", \"fired\": %s, \"reason\": ", n->reason ? "false" : "true");
        if (n->reason) put_json_string(out, n->reason);
        else tn_strbuf_puts(out, "null");
        tn_strbuf_puts(out, n->next ? "},\n" : "}\n");
    }
    tn_strbuf_puts(out, " ],\n \"steps\": [\n");
    for (int32_t k = 0; k < p->n_steps; k++) {
        json_step(p, &p->steps[k], out);
        tn_strbuf_puts(out, k + 1 < p->n_steps ? ",\n" : "\n");
    }
    tn_strbuf_puts(out, " ]}\n");
}

tn_status tn_plan_dump(const tn_plan *plan, int32_t format, char **out)
{
    TN_NEED(NULL, plan);
    TN_NEED(plan->ctx, out);
    static void (*const dumps[])(const tn_plan *, tn_strbuf *) = {
        [TN_PLAN_TEXT] = dump_text,
        [TN_PLAN_JSON] = dump_json,
        [TN_PLAN_DOT] = tn_plan_dump_dot,
        [TN_PLAN_SVG] = tn_plan_dump_svg,
    };
    if (format < 0 || format >= (int32_t)TN_COUNT(dumps))
        return tn_fail(plan->ctx, TN_ERR_ARG, "plan format %d", format);
    tn_strbuf text;
    tn_strbuf_init(&text, plan->ctx);
    dumps[format](plan, &text);
    tn_status status = text.status;
    if (status == TN_OK) {
        *out = text.data;
        text.data = NULL;
    }
    tn_strbuf_fini(&text);
    return status;
}

void tn_text_free(tn_context *ctx, char *text)
{
    if (!ctx) return;
    tn_free(ctx, text);
}
