// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs asm statements: their text is split into instructions once, with operands numbered in order of
// appearance whatever the brackets around them; names of registers live as long as the statement. Labels and
// branches are obeyed.
#include "tests/cuda/emulated/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const ptx_row *const tables[] = {tn_ptx_rows_basic, tn_ptx_rows_copy, tn_ptx_rows_matrix};

static const ptx_row *row_of(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const ptx_row *r = tables[t]; r->name; r++)
            if (strcmp(r->name, name) == 0) return r;
    tn_emulated_fail("%s is not emulated", name);
}

static int register_of(ptx *p, const char *name, size_t n)
{
    int i = 0;
    while (i < p->n_names && !(strncmp(p->names[i], name, n) == 0 && p->names[i][n] == '\0')) i++;
    if (i < p->n_names) return i;
    if (i == PTX_MAX_NAMES || n >= sizeof p->names[0]) tn_emulated_fail("asm: too many names at %s", name);
    memcpy(p->names[i], name, n);
    p->names[i][n] = '\0';
    p->n_names++;
    return i;
}

// Operands from `at` on, to the end of the statement.
static void parse_args(ptx *p, ptx_step *s, const char *at, const char *end)
{
    while (at < end) {
        if (strchr("[]{},+ \t\n", *at)) {
            at++;
            continue;
        }
        if (s->n_args == p->max_args) tn_emulated_fail("asm: too many operands");
        ptx_arg *a = &s->args[s->n_args++];
        const char *start = at;
        if (*at == '%' && isdigit((unsigned char)at[1]))
            *a = (ptx_arg){PTX_OPERAND, strtol(at + 1, (char **)(uintptr_t)&at, 10)};
        else if (isdigit((unsigned char)*at) || *at == '-')
            *a = (ptx_arg){PTX_VALUE, strtol(at, (char **)(uintptr_t)&at, 0)};
        else {
            while (at < end && !strchr("[]{},+ \t\n", *at)) at++;
            *a = (ptx_arg){PTX_NAME, register_of(p, start, (size_t)(at - start))};
        }
    }
}

static void parse_step(ptx *p, const char *at, const char *end)
{
    if (p->n_steps == PTX_MAX_STEPS) tn_emulated_fail("asm: more than %d instructions", PTX_MAX_STEPS);
    ptx_step *s = &p->steps[p->n_steps++];
    size_t commas = 0;
    for (const char *c = at; c < end; c++) commas += *c == ',';
    p->max_args = (int)commas + 4;
    s->args = calloc(commas + 4, sizeof *s->args);
    if (!s->args) abort();
    s->guard = -1;
    if (*at == '@') {
        s->unless = at[1] == '!';
        at += 1 + s->unless;
        const char *start = at;
        while (at < end && !isspace((unsigned char)*at)) at++;
        s->guard = register_of(p, start, (size_t)(at - start));
        while (at < end && isspace((unsigned char)*at)) at++;
    }
    char name[128];
    size_t n = 0;
    while (at < end && !isspace((unsigned char)*at) && n + 1 < sizeof name) name[n++] = *at++;
    name[n] = '\0';
    s->row = row_of(name);
    parse_args(p, s, at, end);
}

static ptx *parse(const char *text)
{
    ptx *p = calloc(1, sizeof *p);
    if (!p) abort();
    const char *at = text;
    while (*at) {
        if (isspace((unsigned char)*at) || *at == ';' || *at == '{' || *at == '}') {
            at++;
            continue;
        }
        size_t word = strcspn(at, " \t\n;:");
        if (at[word] == ':' && at[word + 1] != ':') { // names of instructions have two
            p->labels[register_of(p, at, word)] = p->n_steps;
            at += word + 1;
            continue;
        }
        const char *end = at + strcspn(at, ";");
        if (strncmp(at, ".reg", 4) != 0) parse_step(p, at, end);
        at = end;
    }
    return p;
}

void tn_emulated_ptx_run(tn_emulated_asm *statement, tn_emulated_operand *operands, int n)
{
    if (!statement->code) statement->code = (struct tn_emulated_ptx *)(void *)parse(statement->text);
    ptx *p = (ptx *)(void *)statement->code;
    ptx_run r = {.program = p, .operands = operands, .n_operands = n};
    for (int at = 0; at < p->n_steps; at++) {
        ptx_step *s = &p->steps[at];
        if (s->guard >= 0 && (r.values[s->guard] != 0) == s->unless) continue;
        r.step = s;
        r.jump = -1;
        s->row->run(&r, s->row->variant);
        if (r.jump >= 0) at = r.jump - 1;
    }
}

uint64_t tn_ptx_get(const ptx_run *r, int arg, int size)
{
    const ptx_arg *a = &r->step->args[arg];
    if (arg >= r->step->n_args || (a->kind == PTX_OPERAND && a->at >= r->n_operands))
        tn_emulated_fail("%s: operand %d is missing", r->step->row->name, arg);
    uint64_t x = 0;
    if (a->kind == PTX_VALUE)
        x = (uint64_t)a->at;
    else if (a->kind == PTX_NAME)
        x = r->values[a->at];
    else if (r->operands[a->at].out)
        memcpy(&x, r->operands[a->at].out, (size_t)size);
    else
        x = r->operands[a->at].in;
    return size == 4 ? (uint32_t)x : size == 2 ? (uint16_t)x : x;
}

void *tn_ptx_place(ptx_run *r, int arg)
{
    const ptx_arg *a = &r->step->args[arg];
    if (arg < r->step->n_args && a->kind == PTX_NAME) return &r->values[a->at];
    if (arg >= r->step->n_args || a->kind != PTX_OPERAND || a->at >= r->n_operands || !r->operands[a->at].out)
        tn_emulated_fail("%s: operand %d is no place for a result", r->step->row->name, arg);
    return r->operands[a->at].out;
}
