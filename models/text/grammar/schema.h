// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// JSON schema to a grammar. Text of the grammar is JSON that the schema accepts, but not all such JSON:
// properties come in the order in which they are declared, and others only if additionalProperties allows
// them expressly. A keyword that would constrain the text and is not supported is an error; it is never
// ignored.
#ifndef TN_MODELS_SCHEMA_H
#define TN_MODELS_SCHEMA_H

#include "core/memory/arena.h"
#include "core/strbuf.h"
#include "models/text/grammar/json_read.h"

// Appends GBNF with the rule root to `out`. TN_ERR_FORMAT: no JSON; TN_ERR_UNSUPPORTED: a keyword or a
// combination that is not supported; TN_ERR_ARG: a schema that is wrong or that nothing satisfies. Both name
// the place: "schema: /properties/a/not: ...". A schema that takes too much work is not supported either: its
// alternatives are compared with each other, so the time may grow with the square of its size.
TN_MUST_USE tn_status tn_schema_to_gbnf(tn_context *ctx, const char *json, size_t n, tn_strbuf *out);
// The same of a schema that was read. *work: what was spent so far, 0 at first; several schemas may share it.
TN_MUST_USE tn_status tn_schema_tree_to_gbnf(tn_context *ctx, const tn_json *schema, int64_t *work,
                                             tn_strbuf *out);

// --- between schema.c, schema_parts.c, schema_types.c and schema_pattern.c ---

// Work is counted in comparisons of short texts: this many take about 0.1 s on one core.
enum { TN_SCHEMA_RULES_MAX = 8192, TN_SCHEMA_PARTS_MAX = 32, TN_SCHEMA_WORK_MAX = 50000000 };

// Schemas that all apply to one value.
typedef struct tn_schema_part {
    const tn_json *json; // an object, or a boolean
    // bits of combinations whose alternative is chosen; 64 bits, so that the struct has no padding (memcmp)
    int64_t done;
} tn_schema_part;

typedef struct tn_schema_all {
    tn_schema_part parts[TN_SCHEMA_PARTS_MAX];
    int32_t n;
} tn_schema_all;

typedef struct tn_schema {
    tn_context *ctx;
    tn_arena arena;
    const tn_json *root;
    tn_strbuf *out, more; // the current rule; further rules that it needs
    int32_t n_tails;
    tn_schema_all **rules; // [n_rules] r0, r1, ... in the order they are written
    int32_t n_rules, rules_capacity;
    int64_t *work; // done so far
} tn_schema;

// "schema: /a/b: why": the place is that of `where`, a value of the schema.
tn_status tn_schema_fail(const tn_schema *s, tn_status status, const tn_json *where, const char *fmt, ...)
    TN_PRINTF(4, 5);
TN_MUST_USE tn_status tn_schema_add(const tn_schema *s, tn_schema_all *all, const tn_json *json);
// The number of the rule for a conjunction; it is written later.
TN_MUST_USE tn_status tn_schema_rule(tn_schema *s, const tn_schema_all *all, int32_t *rule);
// References and allOf become parts; parts that are `true` are removed. *never: a part is `false`.
TN_MUST_USE tn_status tn_schema_flatten(tn_schema *s, const tn_schema_all *in, tn_schema_all *out,
                                        bool *never);

// Sets of types.
enum {
    TN_S_NULL = 1,
    TN_S_BOOL = 2,
    TN_S_INTEGER = 4,
    TN_S_NUMBER = 8,
    TN_S_STRING = 16,
    TN_S_ARRAY = 32,
    TN_S_OBJECT = 64,
    TN_S_ALL = 127
};
// The types that a keyword constrains; 0: none of its own, or the keyword is not known.
int32_t tn_schema_keyword_types(const char *key);
TN_MUST_USE tn_status tn_schema_types(const tn_schema *s, const tn_schema_all *all, int32_t *types);
// Counts work. False: it was too much; loops end then, and tn_schema_work fails later.
bool tn_schema_spend(const tn_schema *s, size_t n);
TN_MUST_USE tn_status tn_schema_work(const tn_schema *s, size_t n);
bool tn_schema_same(const tn_schema *s, const tn_json *a, const tn_json *b);
// Appends one type's alternatives; conjunctions are flat and without combinations.
TN_MUST_USE tn_status tn_schema_put_object(tn_schema *s, const tn_schema_all *all);
TN_MUST_USE tn_status tn_schema_put_array(tn_schema *s, const tn_schema_all *all);
TN_MUST_USE tn_status tn_schema_put_string(tn_schema *s, const tn_schema_all *all);
TN_MUST_USE tn_status tn_schema_put_number(tn_schema *s, const tn_schema_all *all, bool integer);
// What a regular expression matches, of min to max characters (-1: any number), as the inside of a JSON
// string.
TN_MUST_USE tn_status tn_schema_put_pattern(tn_schema *s, const tn_json *pattern, int32_t min, int32_t max);
// Bytes as a literal of GBNF; and the same of a JSON string with its quotes.
void tn_schema_put_literal(tn_strbuf *out, const char *bytes, size_t n);
void tn_schema_put_json_string(tn_schema *s, const char *bytes, size_t n);
// A value of the schema as the JSON text that generated text must have.
void tn_schema_put_constant(tn_schema *s, const tn_json *v);

#endif
