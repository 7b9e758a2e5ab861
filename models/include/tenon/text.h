// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Text to tokens and back with a model's tokenizer, and chat turns to prompts.
#ifndef TENON_TEXT_H
#define TENON_TEXT_H

#include <tenon/model.h>

TN_EXTERN_C_BEGIN

enum {
    TN_TEXT_ADD_SPECIAL = 1,   // add BOS/EOS as the file of the model says
    TN_TEXT_PARSE_SPECIAL = 2, // special tokens in the text become their ids
    TN_TEXT_PRINT_SPECIAL = 4, // detokenize: print special tokens by name
    TN_TEXT_REMOVE_SPECIAL = 8 // detokenize: drop a leading BOS and trailing EOS
};

// Any bytes to ids; *ids is freed by tn_tokens_free. TN_ERR_MODEL: the model has no tokenizer.
TN_API TN_MUST_USE tn_status tn_tokenize(const tn_model *model, const char *text, size_t n, int32_t flags,
                                         int32_t **ids, size_t *n_ids);
// A query and a document as one input of a model that compares them, by the template or the separators of its
// file. With max_tokens > 0 the document is cut at its end to fit. TN_ERR_UNSUPPORTED: the file has neither
// template nor separators for pairs; TN_ERR_CONTEXT_FULL: the query alone does not fit.
TN_API TN_MUST_USE tn_status tn_tokenize_pair(const tn_model *model, const char *query, size_t n_query,
                                              const char *document, size_t n_document, size_t max_tokens,
                                              int32_t **ids, size_t *n_ids);
TN_API void tn_tokens_free(const tn_model *model, int32_t *ids);
// Ids to bytes; *text is terminated, *n is its length, freed by tn_text_free (graph.h). Some vocabularies ask
// for a clean-up of English text, which drops blanks before punctuation and around apostrophes (" =" and " ."
// give " =."); it needs the text as a whole, so the pieces of a generation (session.h) come without it.
// TN_ERR_ARG: an id outside the vocabulary.
TN_API TN_MUST_USE tn_status tn_detokenize(const tn_model *model, const int32_t *ids, size_t n_ids,
                                           int32_t flags, char **text, size_t *n);

// One turn of a conversation. Texts that are NULL are absent.
typedef struct tn_turn {
    size_t struct_size;            // sizeof(tn_turn)
    const char *role;              // "system", "user", "assistant", "tool", ...
    const char *content;           // NULL: none, for a turn that only calls tools
    const char *content_parts;     // instead of content: a JSON list of {"type": "text", "text": ...}
    const char *name;              // of the tool that answers
    const char *tool_call_id;      // which call it answers
    const char *reasoning_content; // the reasoning of the assistant before its answer
    // JSON list: [{"id": ..., "type": "function", "function": {"name": ..., "arguments": {...}}}]
    const char *tool_calls;
} tn_turn;

#define TN_CHAT_NO_TIME INT64_MIN
typedef struct tn_chat_config {
    size_t struct_size; // sizeof(tn_chat_config), set by tn_chat_config_default
    // The text of a template; or the name of a built-in one ("chatml"), or of a further one in the file
    // ("tool_use"). NULL (default): the file's; without one, the built-in one that fits the special tokens.
    const char *chat_template;
    // JSON list of {"type": "function", "function": {...}}; NULL (default): none
    const char *tools;
    // JSON object, more variables of the template: {"enable_thinking": false}; NULL (default)
    const char *variables;
    // seconds since 1970-01-01 00:00 in local time; TN_CHAT_NO_TIME (default): the template gets no time
    int64_t local_time;
    // non-zero: ends behind the last turn, without the opening of an answer; default 0
    int32_t no_generation_prompt;
    int32_t max_depth; // 0 (default): 128, which is the most; a limit as below
    // Limits of one rendering, 0 (default): 10^6 steps, 64 MiB of memory; of text 256 KiB, 4 KiB
    // for each turn and 16 times what template, turns, tools and variables have, at most 16 MiB.
    uint64_t max_steps;
    size_t max_memory, max_output; // bytes
} tn_chat_config;
TN_API void tn_chat_config_init(tn_chat_config *cfg, size_t struct_size);
static inline void tn_chat_config_default(tn_chat_config *cfg)
{
    tn_chat_config_init(cfg, sizeof *cfg);
}

// The prompt of a conversation by the chat template, open for the assistant's answer. Text of turns, tools
// and variables never becomes special tokens. cfg may be NULL for the defaults. Any thread. TN_ERR_ARG: a
// turn without role, JSON that is none, an unknown name of a template, or a conversation that the template
// refuses, in its words; TN_ERR_FORMAT: the template cannot be parsed; TN_ERR_MODEL: no tokenizer, or the
// template fails or exceeds a limit. Messages name line and column of the template.
TN_API TN_MUST_USE tn_status tn_chat_tokenize(const tn_model *model, const tn_turn *turns, size_t n_turns,
                                              const tn_chat_config *cfg, int32_t **ids, size_t *n_ids);
// The same for a conversation that may have become too long: if it has more than max_tokens tokens, the
// oldest turns behind the system turns are left out, whole exchanges from one user turn to the next, until at
// most three quarters of max_tokens are left or only the last exchange is, which has to fit. *n_dropped: how
// many turns. TN_ERR_CONTEXT_FULL: even the last exchange does not fit.
TN_API TN_MUST_USE tn_status tn_chat_tokenize_last(const tn_model *model, const tn_turn *turns,
                                                   size_t n_turns, const tn_chat_config *cfg,
                                                   size_t max_tokens, size_t *n_dropped, int32_t **ids,
                                                   size_t *n_ids);
// tn_chat_tokenize as text, special tokens by name; *text is terminated, freed by tn_text_free (graph.h).
TN_API TN_MUST_USE tn_status tn_chat_render(const tn_model *model, const tn_turn *turns, size_t n_turns,
                                            const tn_chat_config *cfg, char **text, size_t *n);
// "file" if the file has a chat template, else the name of the built-in one that is used; NULL: no tokenizer.
TN_API const char *tn_chat_template_name(const tn_model *model);
// The format (tools.h) in which the chat template of cfg has calls of tools; NULL: it has no tools, or a
// format that is not known. cfg may be NULL.
TN_API const char *tn_chat_tool_format(const tn_model *model, const tn_chat_config *cfg);
// Whether the file itself has a chat template.
TN_API int32_t tn_model_has_chat_template(const tn_model *model);
// Whether generation ends with this token.
TN_API int32_t tn_token_is_end(const tn_model *model, int32_t id);

TN_EXTERN_C_END
#endif
