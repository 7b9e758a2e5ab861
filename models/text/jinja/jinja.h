// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A template engine for the chat templates in model files: the Jinja2 language as far as such templates use
// it. Each byte of text knows whether a user wrote it, through all string operations. Bounded in steps,
// depth, memory and output; the engine has no input or output and reads no clock.
//     tn_jj *j = NULL;
//     status = tn_jj_open(ctx, &limits, &j);
//     tn_jj_global(j, "name", tn_jj_text(j, "Ada", 3, true));
//     status = tn_jj_render(j, source, n, &out);   // out is valid until tn_jj_close
//     tn_jj_close(&j);
#ifndef TN_MODELS_JINJA_H
#define TN_MODELS_JINJA_H

#include "core/context.h"

typedef struct tn_jj tn_jj;

typedef struct tn_jj_limits {
    uint64_t steps;     // nodes evaluated, and one for each 512 bytes of text processed
    size_t heap_size;   // bytes of all values and of the parsed template
    size_t output_size; // bytes of the result
    int32_t depth;      // nested expressions and blocks of a template, calls of macros, nested data
} tn_jj_limits;

// 10^6 steps, 64 MiB, 16 MiB, 128.
void tn_jj_limits_default(tn_jj_limits *limits);

// A value of a variable. Kinds in the order of their names in value.c.
typedef enum tn_jj_kind {
    JJ_UNDEFINED,
    JJ_NONE,
    JJ_BOOL,
    JJ_INT,
    JJ_FLOAT,
    JJ_STRING,
    JJ_LIST,
    JJ_TUPLE,
    JJ_DICT,
    JJ_NAMESPACE,
    JJ_LOOP,
    JJ_FUNCTION,
    JJ_METHOD,
    JJ_MACRO,
    JJ_CYCLER,
    JJ_JOINER
} tn_jj_kind;

typedef struct tn_jj_value {
    tn_jj_kind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const struct tn_jj_string *s; // also the name of an undefined value
        struct tn_jj_list *list;
        struct tn_jj_dict *dict;
        struct tn_jj_loop *loop;
        const struct tn_jj_function *function;
        struct tn_jj_method *method;
        const struct tn_jj_macro *macro;
    } u;
} tn_jj_value;

// Runs of the result: either text from outside (a user), or text of the template (or the model).
typedef struct tn_jj_run {
    size_t end; // the run is [end of the one before, end)
    bool user;
} tn_jj_run;

typedef struct tn_jj_output {
    const char *text; // n bytes
    size_t n;
    const tn_jj_run *runs; // cover the text; none empty
    size_t n_runs;
} tn_jj_output;

TN_MUST_USE tn_status tn_jj_open(tn_context *ctx, const tn_jj_limits *limits, tn_jj **out);
void tn_jj_close(tn_jj **j);

// Values for the template. A failure is kept and returned by tn_jj_render; the value is then undefined.
// `user`: the text may never become special tokens.
tn_jj_value tn_jj_text(tn_jj *j, const char *text, size_t n, bool user);
tn_jj_value tn_jj_bool(bool b);
tn_jj_value tn_jj_none(void);
tn_jj_value tn_jj_list(tn_jj *j);
tn_jj_value tn_jj_dict(tn_jj *j);
void tn_jj_append(tn_jj *j, tn_jj_value list, tn_jj_value item);
void tn_jj_put(tn_jj *j, tn_jj_value dict, const char *key, tn_jj_value value);
// Parses JSON text. TN_ERR_ARG: "WHAT is no JSON: ...".
TN_MUST_USE tn_status tn_jj_json(tn_jj *j, const char *text, size_t n, const char *what, bool user,
                                 tn_jj_value *out);
void tn_jj_global(tn_jj *j, const char *name, tn_jj_value value);
// Members of a dictionary as global variables.
void tn_jj_globals(tn_jj *j, tn_jj_value dict);
// Seconds since 1970-01-01 00:00 in local time. Until then strftime_now is not defined.
void tn_jj_clock(tn_jj *j, int64_t local_seconds);

// Once per engine. TN_ERR_FORMAT: the template cannot be parsed; TN_ERR_ARG: it calls raise_exception;
// TN_ERR_MODEL: it fails or exceeds a limit. Messages begin with "line L, column C: ".
TN_MUST_USE tn_status tn_jj_render(tn_jj *j, const char *source, size_t n, tn_jj_output *out);

#endif
