// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/api/fields.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void field_fail(fields *f, error_id id, const char *name, const char *fmt, ...)
{
    outcome *o = f->o;
    va_list args;
    if (f->failed) return;
    f->failed = o->failed = true;
    o->id = id;
    snprintf(o->param, sizeof o->param, "%s%s", f->prefix ? f->prefix : "", name);
    if (f->rename) f->rename(f->user, o->param, sizeof o->param);
    int n = snprintf(o->message, sizeof o->message, "%s: ", o->param);
    va_start(args, fmt);
    vsnprintf(o->message + n, sizeof o->message - (size_t)n, fmt, args);
    va_end(args);
}

void field_too_long(fields *f, const char *name, size_t n)
{
    if (f->failed) return;
    field_fail(f, ERROR_CONTEXT, name, "too long");
    f->o->n_prompt = n;
}

fields fields_inner(const fields *f, const node *object, const char *prefix)
{
    fields inner = *f;
    inner.object = object;
    inner.prefix = prefix;
    return inner;
}

void fields_send(fields *f)
{
    free(f->o->text);
    f->o->text = writer_copy(f->w);
    f->o->n_text = f->o->text ? strlen(f->o->text) : 0;
}

const node *field(fields *f, const char *name)
{
    return f->failed ? NULL : node_get(f->object, name);
}

const node *field_of(fields *f, const char *name, node_kind kind)
{
    const node *v = field(f, name), wanted = {.kind = kind};
    if (!v || v->kind == kind) return v;
    field_fail(f, ERROR_FIELD, name, "%s was found, %s is expected", node_kind_name(v),
               node_kind_name(&wanted));
    return NULL;
}

bool field_bool(fields *f, const char *name, bool otherwise)
{
    const node *v = field_of(f, name, NODE_BOOL);
    return v ? v->truth : otherwise;
}

int64_t field_int(fields *f, const char *name, int64_t least, int64_t most, int64_t otherwise)
{
    const node *v = field_of(f, name, NODE_NUMBER);
    if (!v) return otherwise;
    if (v->whole && v->integer >= least && v->integer <= most) return v->integer;
    field_fail(f, ERROR_FIELD, name, "%.17g was found, a whole number from %lld to %lld is expected",
               v->number, (long long)least, (long long)most);
    return otherwise;
}

double field_number(fields *f, const char *name, double least, double most, double otherwise)
{
    const node *v = field_of(f, name, NODE_NUMBER);
    if (!v) return otherwise;
    if (v->number >= least && v->number <= most) return v->number;
    field_fail(f, ERROR_FIELD, name, "%.17g was found, a number from %g to %g is expected", v->number, least,
               most);
    return otherwise;
}

const char *field_text(fields *f, const char *name, const char *otherwise)
{
    const node *v = field_of(f, name, NODE_TEXT);
    return v ? v->text : otherwise;
}
