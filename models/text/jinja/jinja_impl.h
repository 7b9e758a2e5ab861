// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inside of the template engine. Errors are sticky: the first one is kept in j->status, functions then
// return undefined values, and loops end because they check it.
#ifndef TN_MODELS_JINJA_IMPL_H
#define TN_MODELS_JINJA_IMPL_H

#include "models/text/jinja/jinja.h"
#include "models/text/tokenizer/unicode.h"

#include <string.h>

typedef tn_jj_value value;
// Types and functions cannot share a name: the containers are jj_list and jj_dict.

// Where a text buffer ends, so that appending to the last string of a buffer copies nothing.
typedef struct tn_jj_tail {
    char *end;
    size_t capacity;
} tn_jj_tail;

// Immutable text; its characters are those of UTF-8, a byte that belongs to none is one character.
typedef struct tn_jj_string {
    const char *data;
    size_t n;
    const uint8_t *mask; // n bytes, non-zero: from outside; NULL: `user` holds for all bytes
    tn_jj_tail *tail;    // NULL: nothing can be appended in place
    bool user;
} tn_jj_string;

typedef struct tn_jj_list {
    value *items;
    size_t n, capacity;
} jj_list;

typedef struct tn_jj_entry {
    value key, value;
} tn_jj_entry;

typedef const tn_jj_string *str;

// In the order of insertion. Also the members of a namespace.
typedef struct tn_jj_dict {
    tn_jj_entry *entries;
    size_t n, capacity;
} jj_dict;

typedef struct tn_jj_loop {
    const value *items;
    size_t n, index;
    int32_t level; // of recursive loops, from 0
    value last_changed;
    const struct tn_jj_node *node; // of a recursive loop, else NULL
    struct tn_jj_scope *scope;     // around the loop
} tn_jj_loop;

// Arguments of a call on the value stack: positional ones, then pairs of name and value.
typedef struct tn_jj_args {
    const value *pos;
    size_t n, n_named;
} tn_jj_args;

typedef value (*tn_jj_fn)(tn_jj *j, value self, const tn_jj_args *a);

// A row of a table: filter, test, function, or method of values of the kinds whose bits are set.
typedef struct tn_jj_function {
    const char *name;
    tn_jj_fn fn;
    uint32_t kinds;
} tn_jj_function;

// Filters, tests and members by name. The functions behind them apply each other by name (map("upper"), "is
// filter", d.items()), so they look names up through the engine: the files of these tables would otherwise
// need each other in a cycle. tn_jj_render fills it in.
typedef struct tn_jj_tables {
    const tn_jj_function *(*filter)(str name);
    const tn_jj_function *(*test)(str name);
    const tn_jj_function *(*method)(tn_jj_kind kind, str name);
} tn_jj_tables;

typedef struct tn_jj_method {
    const tn_jj_function *row;
    value self;
} tn_jj_method;

typedef struct tn_jj_scope {
    struct tn_jj_scope *parent;
    jj_dict names;
    bool captured; // a macro or recursive loop may come back to it
} tn_jj_scope;

typedef struct tn_jj_macro {
    const struct tn_jj_node *node;
    tn_jj_scope *scope;
    value caller; // undefined: none
} tn_jj_macro;

// clang-format off
typedef enum tn_jj_node_kind {
    N_CONST, N_NAME, N_LIST, N_TUPLE, N_DICT, N_PAIR, N_UNARY, N_BINARY, N_AND, N_OR, N_NOT, N_COMPARE,
    N_OPERAND, N_IF,
    N_ATTR, N_ITEM, N_SLICE, N_CALL, N_FILTER, N_TEST, N_ARG,
    N_DATA, N_PRINT, N_COND, N_FOR, N_SET, N_SET_BLOCK, N_MACRO, N_PARAM, N_CALL_BLOCK, N_FILTER_BLOCK,
    N_SCOPE, N_WITH, N_DO,
    N_BREAK, N_CONTINUE
} tn_jj_node_kind;

// Operators, also as tokens.
typedef enum tn_jj_op {
    OP_NONE, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_CONCAT,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_IN, OP_NOT_IN
} tn_jj_op;
// clang-format on

// a, b, c: by kind, see parse_expr.c and parse.c. Lists go through `next`.
typedef struct tn_jj_node {
    tn_jj_node_kind kind;
    int16_t op, height;
    uint32_t pos; // byte of the source
    value value;  // constant, or a name
    struct tn_jj_node *a, *b, *c, *d, *e, *next;
    const tn_jj_function *row; // of a filter or test
} tn_jj_node;

// clang-format off
typedef enum tn_jj_token_kind {
    T_END, T_DATA, T_PRINT_BEGIN, T_PRINT_END, T_BLOCK_BEGIN, T_BLOCK_END, T_NAME, T_STRING, T_INT, T_FLOAT,
    T_OP,
    T_PUNCTUATION // op: the character
} tn_jj_token_kind;
// clang-format on

typedef struct tn_jj_token {
    tn_jj_token_kind kind;
    int16_t op;
    uint32_t pos;
    value value;
} tn_jj_token;

// Text that grows.
typedef struct tn_jj_builder {
    tn_jj *j;
    char *data;
    uint8_t *mask; // NULL while `user` holds for all bytes
    size_t n, capacity;
    bool user;
} tn_jj_builder;

typedef struct tn_jj_block tn_jj_block;
enum { JJ_STACK = 4096, JJ_FRAMES = 8 }; // values of arguments; evaluations per level of depth

struct tn_jj {
    tn_context *ctx;
    tn_jj_limits limits;
    tn_status status;
    // heap.c
    tn_jj_block *blocks;
    char *chunk;
    size_t chunk_left, heap_used;
    uint64_t steps, work;
    int32_t depth;
    // source, with all newlines as \n
    const char *source;
    size_t n_source;
    uint32_t pos; // of the node that is evaluated
    value block;  // text of a set or filter block, for its filters
    // parse
    tn_jj_token *tokens;
    size_t n_tokens, at;
    int32_t n_loops; // loops around the tag being parsed, in the same macro
    // run
    const tn_jj_tables *tables;
    tn_jj_scope globals;
    tn_jj_scope *scope;
    tn_jj_builder *out;
    value *stack;
    size_t sp;
    int32_t flow; // 0, or the node kind of a break or continue on its way to its loop
    bool has_clock;
    int64_t clock;
};

static inline value tn_jj_undefined(void)
{
    return (value){.kind = JJ_UNDEFINED};
}

// --- heap.c: memory, steps, errors -------------------------------------------------------------------------

// Zeroed; lives until the engine is closed. NULL with the error set.
void *tn_jj_alloc(tn_jj *j, size_t size);
// count * size with an overflow check.
void *tn_jj_array(tn_jj *j, size_t count, size_t size);
// A larger array with the old contents; the old one is unchanged.
void *tn_jj_grow(tn_jj *j, const void *old, size_t old_size, size_t new_size);
// Bytes that the caller grows and frees alone: *p is replaced, not zeroed.
bool tn_jj_resize(tn_jj *j, void **p, size_t old_size, size_t new_size);
void tn_jj_release(tn_jj *j, void *p);
// False when the steps are used up or something has failed before.
bool tn_jj_step(tn_jj *j);
// The same for work on bytes of text, or on values of which each counts as a step.
bool tn_jj_work(tn_jj *j, size_t bytes);
bool tn_jj_steps(tn_jj *j, size_t n);
// One level deeper into data (printing, comparing); leave() after it, in any case.
bool tn_jj_enter(tn_jj *j);
void tn_jj_leave(tn_jj *j);
// Keeps the first error, with the place; gives undefined.
value tn_jj_error(tn_jj *j, const char *fmt, ...) TN_PRINTF(2, 3);
value tn_jj_error_as(tn_jj *j, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);

// --- string.c ----------------------------------------------------------------------------------------------


void tn_jj_build(tn_jj_builder *b, tn_jj *j);
void tn_jj_add(tn_jj_builder *b, const char *text, size_t n, bool user);
void tn_jj_adds(tn_jj_builder *b, const char *text); // text of the template
// Bytes [from, to) of a string with their marks.
void tn_jj_add_part(tn_jj_builder *b, str s, size_t from, size_t to);
void tn_jj_add_string(tn_jj_builder *b, str s);
value tn_jj_built(tn_jj_builder *b); // the builder is then empty
void tn_jj_drop(tn_jj_builder *b);   // discards the text

value tn_jj_literal(tn_jj *j, const char *text); // text that outlives the engine
value tn_jj_part(tn_jj *j, str s, size_t from, size_t to);
value tn_jj_concat(tn_jj *j, str a, str b);
bool tn_jj_is(str s, const char *text);
bool tn_jj_same(str a, str b);
int tn_jj_order(str a, str b);
// Byte where `what` begins in s at or after `from`, or SIZE_MAX; `last` searches from the end.
size_t tn_jj_find(tn_jj *j, str s, str what, size_t from);
size_t tn_jj_find_last(tn_jj *j, str s, str what);
size_t tn_jj_length(tn_jj *j, str s); // characters
// Byte of character i, n if there are fewer.
size_t tn_jj_offset(tn_jj *j, str s, size_t i);
// Strips characters of `set` (NULL: white space) from the sides named: 1 left, 2 right.
value tn_jj_strip(tn_jj *j, str s, const tn_jj_string *set, int sides);
value tn_jj_replace(tn_jj *j, str s, str old, str with, int64_t count);

// --- value.c -----------------------------------------------------------------------------------------------

value tn_jj_missing(str name);
extern const tn_jj_string tn_jj_empty;
value tn_jj_int(int64_t i);
value tn_jj_float(double f);
const char *tn_jj_kind_name(value v);                   // as Python says: "str"
value tn_jj_sized(tn_jj *j, tn_jj_kind kind, size_t n); // list or tuple of n undefined items
void tn_jj_set(tn_jj *j, jj_dict *d, value key, value v);
bool tn_jj_lookup(tn_jj *j, const jj_dict *d, value key, value *out);
size_t tn_jj_index_of(tn_jj *j, const jj_dict *d, value key); // SIZE_MAX: none
void tn_jj_remove(jj_dict *d, size_t i);
bool tn_jj_truth(value v);
bool tn_jj_equal(tn_jj *j, value a, value b);
// -1, 0, 1; an error for values that have no order.
int tn_jj_compare(tn_jj *j, value a, value b);
bool tn_jj_contains(tn_jj *j, value container, value item);
// Items of any value that a loop accepts, in their present state. False with the error set.
bool tn_jj_items(tn_jj *j, value v, const value **items, size_t *n);
bool tn_jj_count(tn_jj *j, value v, size_t *n); // false: has no length
bool tn_jj_number(value v, double *out);        // int, float, bool
bool tn_jj_integer(value v, int64_t *out);      // int, bool
// Attribute and item access; undefined if there is none.
value tn_jj_attr(tn_jj *j, value v, value name);
value tn_jj_item(tn_jj *j, value v, value key);
// "a.b.0" through nested values.
value tn_jj_path(tn_jj *j, value v, value path);
// The same; `standard` stands for each member that does not exist.
value tn_jj_path_or(tn_jj *j, value v, value path, value standard);
void tn_jj_refuse(tn_jj *j, value v); // the error for using something undefined

// --- format.c, json.c --------------------------------------------------------------------------------------

str tn_jj_str(tn_jj *j, value v); // its printed text; never NULL
void tn_jj_print(tn_jj_builder *b, value v);
void tn_jj_repr(tn_jj_builder *b, value v);
void tn_jj_tojson(tn_jj_builder *b, value v, const tn_jj_args *a);
// As Python writes a float; returns the length.
size_t tn_jj_format_float(double f, char *out, size_t size);
value tn_jj_format_percent(tn_jj *j, str format, const value *items, size_t n);
value tn_jj_format_braces(tn_jj *j, str format, const tn_jj_args *a);

// --- tables ------------------------------------------------------------------------------------------------

const tn_jj_function *tn_jj_find_filter(str name);
const tn_jj_function *tn_jj_find_test(str name);
const tn_jj_function *tn_jj_find_function(tn_jj *j, str name);
const tn_jj_function *tn_jj_find_method(tn_jj_kind kind, str name);
const tn_jj_function *tn_jj_find_text_method(str name);
const tn_jj_function *tn_jj_row(const tn_jj_function *rows, size_t n, str name, tn_jj_kind kind);
// Argument i, or the one of that name; undefined if not given.
value tn_jj_arg(const tn_jj_args *a, size_t i, const char *name);
bool tn_jj_has_arg(const tn_jj_args *a, size_t i, const char *name);
str tn_jj_arg_string(tn_jj *j, const tn_jj_args *a, size_t i, const char *name); // NULL with the error set
int64_t tn_jj_arg_int(tn_jj *j, const tn_jj_args *a, size_t i, const char *name, int64_t standard);
bool tn_jj_arg_flag(const tn_jj_args *a, size_t i, const char *name, bool standard);
extern const tn_jj_function tn_jj_list_filters[];
extern const size_t tn_jj_n_list_filters;
value tn_jj_strftime(tn_jj *j, str format);
value tn_jj_change_case(tn_jj *j, str s, int how); // 'l', 'u', 't'itle, 'c'apitalize, 's'wap
// Whether all characters are 'd'igits, 's'pace, 'a': letters, 'n': both, 'u', 'l': of one case.
bool tn_jj_all(tn_jj *j, str s, int what);

// --- parse and run -----------------------------------------------------------------------------------------

bool tn_jj_lex(tn_jj *j, const char *source, size_t n);
bool tn_jj_unescape(tn_jj *j, const char *p, const char *end, value *out);

tn_jj_node *tn_jj_parse(tn_jj *j);
const tn_jj_token *tn_jj_peek(const tn_jj *j, size_t ahead);
bool tn_jj_next_is(const tn_jj *j, const char *name); // the next token is this name
bool tn_jj_accept_name(tn_jj *j, const char *name);
bool tn_jj_next_is_char(const tn_jj *j, char punctuation);
bool tn_jj_accept(tn_jj *j, char punctuation);
bool tn_jj_expect(tn_jj *j, char punctuation);
value tn_jj_expect_name(tn_jj *j);
// One level of nesting more in the source; tn_jj_leave after it, in any case.
bool tn_jj_nest(tn_jj *j);
tn_jj_node *tn_jj_node_new(tn_jj *j, tn_jj_node_kind kind, tn_jj_node *a, tn_jj_node *b, tn_jj_node *c);
// Appends to a list; *head is its first node and as high as the highest.
void tn_jj_chain(tn_jj_node **head, tn_jj_node **last, tn_jj_node *node);
typedef tn_jj_node *(*tn_jj_parse_fn)(tn_jj *j);
tn_jj_node *tn_jj_parse_expr(tn_jj *j);
tn_jj_node *tn_jj_parse_or(tn_jj *j);                                    // an expression without "if"
tn_jj_node *tn_jj_parse_postfix(tn_jj *j, tn_jj_node *node);             // .b, [c], (d)
tn_jj_node *tn_jj_parse_filters(tn_jj *j, tn_jj_node *node, bool first); // first: a name without its bar
tn_jj_node *tn_jj_parse_tuple(tn_jj *j, tn_jj_parse_fn item);
tn_jj_node *tn_jj_parse_target(tn_jj *j);
tn_jj_node *tn_jj_parse_fail(tn_jj *j, const char *what); // NULL

value tn_jj_eval(tn_jj *j, const tn_jj_node *n);
value tn_jj_lookup_name(tn_jj *j, value name);
void tn_jj_exec(tn_jj *j, const tn_jj_node *list);
// Arguments are pushed on the value stack; the caller sets j->sp back.
bool tn_jj_push(tn_jj *j, value v);
bool tn_jj_eval_args(tn_jj *j, const tn_jj_node *list, tn_jj_args *out);
value tn_jj_call(tn_jj *j, value f, const tn_jj_args *a);
value tn_jj_call_macro(tn_jj *j, const tn_jj_macro *m, const tn_jj_args *a);
value tn_jj_call_loop(tn_jj *j, tn_jj_loop *loop, value items);
value tn_jj_call_joiner(tn_jj *j, value joiner);
value tn_jj_binary(tn_jj *j, int op, value a, value b);
// v[start:stop:step]; parts not given are none.
value tn_jj_slice(tn_jj *j, value v, const value part[3]);
bool tn_jj_compare_op(tn_jj *j, int op, value a, value b);

#endif
