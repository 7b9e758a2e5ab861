// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Chat turns to prompt tokens. The shape comes from the file's template; roles and markers become special
// tokens, what users wrote never does.
#ifndef TN_MODELS_CHAT_H
#define TN_MODELS_CHAT_H

#include "models/text/tokenizer.h"

typedef struct tn_chat_turn {
    const char *role; // "system", "user", "assistant"
    const char *content;
} tn_chat_turn;

// Which known shape a template has (n bytes of text); NULL or empty: by the special tokens, else chatml.
// *name is valid for ever. TN_ERR_UNSUPPORTED with the names of the known shapes if none fits.
TN_MUST_USE tn_status tn_chat_shape(tn_context *ctx, const tn_tokenizer *t, const char *chat_template,
                                    size_t n, const char **name);

// Appends the tokens of the turns to `out`, with the opening of an assistant turn if `open_assistant`.
// The bos token comes first if `out` is empty and the shape or the file wants one. With `text` not NULL the
// rendered text goes there too (special tokens by name). On failure `out` keeps its count.
// TN_ERR_ARG: unknown shape or role, or a system turn that has no user turn to go into.
TN_MUST_USE tn_status tn_chat_render(tn_context *ctx, const tn_tokenizer *t, const char *shape,
                                     const tn_chat_turn *turns, size_t n_turns, bool open_assistant,
                                     tn_tokens *out, tn_strbuf *text);

// Text that ends an assistant turn of the shape ("<|im_end|>"); "" if that is the eos token of the file,
// NULL if the shape is unknown.
const char *tn_chat_stop(const char *shape);

#endif
