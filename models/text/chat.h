// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Conversations to prompt tokens by a chat template. Markers that the template writes become special tokens;
// text of the turns, the tools and the variables never does.
#ifndef TN_MODELS_CHAT_H
#define TN_MODELS_CHAT_H

#include "models/text/tokenizer/tokenizer.h"

#include <tenon/text.h>

// A template and where it came from.
typedef struct tn_chat_template {
    const char *text; // n bytes
    size_t n;
    const char *name; // for messages
} tn_chat_template;

// Templates for files without one: text by name or NULL; name i or NULL; the name for these special tokens.
const char *tn_chat_builtin(const char *name, size_t n);
const char *tn_chat_builtin_name(size_t i);
const char *tn_chat_builtin_for(const tn_tokenizer *t);

// Renders the turns. The text goes to `text` (special tokens by name), the tokens to `out`; either may be
// NULL. The bos token comes first if the tokenizer adds one, `out` is empty and the template does not begin
// with it. On failure `out` keeps its count. Statuses: text.h.
TN_MUST_USE tn_status tn_chat_apply(const tn_tokenizer *t, const tn_chat_template *chat_template,
                                    const tn_turn *turns, size_t n_turns, const tn_chat_config *cfg,
                                    tn_tokens *out, tn_strbuf *text);

#endif
