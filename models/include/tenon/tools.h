// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of tools in the text of a model: the text goes in piece by piece, content and calls come out. Models
// write calls in different ways; the format follows from the chat template.
//
//     tn_tool_config c;
//     tn_tool_config_default(&c);
//     c.tools = tools;                                   // the JSON list that the template got
//     c.format = tn_tool_format(chat_template);
//     tn_tool_parser_create(ctx, &c, &p);
//     tn_tool_parser_feed(p, piece.text, piece.n_text, &events, &n);
//     ...
//     tn_tool_parser_end(p, &events, &n);                // the turn is over
//     tn_tool_parser_destroy(&p);
//
// Generate with tn_generation_config.print_special, because most formats mark calls by special tokens. A
// parser belongs to one thread at a time.
#ifndef TENON_TOOLS_H
#define TENON_TOOLS_H

#include <tenon/context.h>

TN_EXTERN_C_BEGIN

typedef struct tn_tool_parser tn_tool_parser;

// The format of calls that a chat template shows: "hermes", "llama", "mistral", "deepseek", "kimi",
// "command-r", "granite", "harmony" (gpt-oss), "lfm2", "functionary"; NULL: none that is known. The text of
// the template, terminated; any thread.
TN_API const char *tn_tool_format(const char *chat_template);

typedef struct tn_tool_config {
    size_t struct_size;
    const char *format; // a name from above; NULL (default): "hermes"
    // JSON list of {"type": "function", "function": {"name": ..., "parameters": schema}}. Only these names
    // are calls; whatever else looks like one is content. NULL (default): all names
    const char *tools;
    // Non-zero: arguments are given while the model writes them, see TN_TOOL_BEGIN; default 0: calls are
    // whole
    int32_t stream_arguments;
    int32_t reserved;
} tn_tool_config;
TN_API void tn_tool_config_init(tn_tool_config *cfg, size_t struct_size);
static inline void tn_tool_config_default(tn_tool_config *cfg)
{
    tn_tool_config_init(cfg, sizeof *cfg);
}

// cfg may be NULL. TN_ERR_ARG: an unknown format; TN_ERR_FORMAT: `tools` is no such list; TN_ERR_MEMORY.
TN_API TN_MUST_USE tn_status tn_tool_parser_create(tn_context *ctx, const tn_tool_config *cfg,
                                                   tn_tool_parser **out);
TN_API void tn_tool_parser_destroy(tn_tool_parser **parser); // clears *parser; NULL is fine

// With stream_arguments each call is BEGIN, then one or more ARGUMENTS, then CALL with the whole of them,
// which is the pieces one behind the other, byte for byte. One call ends before the next one begins. BEGIN
// comes as soon as the name is certain; if that is behind the arguments, all of these follow at once.
// Arguments that the model does not write as a JSON object (elements with parameters, calls of Python, a
// string) come in one piece when the call is complete.
//
// A call that began and is cut off, or turns out to be none, ends with BROKEN in place of CALL: its pieces
// are no valid JSON then, or belong to no valid call. The text of this event, and of further ones of this
// kind, is what the model wrote of the call, which would be content without stream_arguments; calls in it are
// found.
//
// In a list each call ends for itself. If the list is cut off or not valid behind it, what was read of the
// rest is BROKEN, while without stream_arguments all of the list is content.
enum {
    TN_TOOL_CONTENT, // text for the user
    TN_TOOL_CALL,    // a call that is complete
    // With stream_arguments only:
    TN_TOOL_BEGIN,     // a call begins; the text is empty
    TN_TOOL_ARGUMENTS, // a piece of its arguments
    TN_TOOL_BROKEN,    // what began is no call
};
typedef struct tn_tool_event {
    size_t struct_size; // of the library: fields behind it are not there
    int32_t kind;
    int32_t reserved;
    const char *text; // content; of a call its arguments, always a valid JSON object. Terminated
    size_t n_text;
    const char *name; // of a call and where one begins, else NULL
    const char *id;   // that the model gave the call; NULL: none, or where a call begins, none so far
} tn_tool_event;
// The events that are certain after this piece of text, valid until the next call. Content that may be the
// beginning of a call is held back. Blanks around calls are dropped if nothing else is there. How the text is
// cut into pieces changes nothing but where content and arguments are cut. TN_ERR_MEMORY: the parser can only
// be destroyed.
TN_API TN_MUST_USE tn_status tn_tool_parser_feed(tn_tool_parser *parser, const char *text, size_t n,
                                                 const tn_tool_event *const **events, int32_t *n_events);
// The turn is over: what was held back. A call that is not complete is content, or BROKEN. The parser is then
// ready for the next turn.
TN_API TN_MUST_USE tn_status tn_tool_parser_end(tn_tool_parser *parser, const tn_tool_event *const **events,
                                                int32_t *n_events);

// --- grammars that make a model call tools ---------------------------------------------------------------

typedef struct tn_tool_grammar_config {
    size_t struct_size;
    const char *format; // as above; NULL (default): "hermes"
    // As above: the functions that may be called. Arguments follow the schema of the parameters; where a
    // grammar cannot express it, they are any object, unless the function says "strict": true. NULL: none,
    // and json_schema is required
    const char *tools;
    const char *json_schema; // the answer may follow this schema instead; NULL (default): it may not
    int32_t text;            // non-zero: text may come before calls, or in their place; default 0
    int32_t single;          // non-zero: one call only; default 0: up to 64
    int32_t in_thought;      // non-zero: the prompt ended inside of a thought, which </think> ends; default 0
    int32_t may_think;       // non-zero: a thought from <think> to </think> may come first; default 0
} tn_tool_grammar_config;
TN_API void tn_tool_grammar_config_init(tn_tool_grammar_config *cfg, size_t struct_size);
static inline void tn_tool_grammar_config_default(tn_tool_grammar_config *cfg)
{
    tn_tool_grammar_config_init(cfg, sizeof *cfg);
}
// GBNF for tn_generation_config.grammar; freed by tn_text_free (graph.h). Markers are spelled by plain tokens
// where the vocabulary has them as control tokens. TN_ERR_ARG, TN_ERR_FORMAT: no tools, a schema that is
// wrong; TN_ERR_UNSUPPORTED: a strict one that cannot be expressed. Those messages begin with "tools[3]: ".
// TN_ERR_MEMORY.
TN_API TN_MUST_USE tn_status tn_tool_grammar(tn_context *ctx, const tn_tool_grammar_config *cfg, char **gbnf);

TN_EXTERN_C_END
#endif
