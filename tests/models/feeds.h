// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A feed in one expression.
#ifndef TN_TESTS_MODELS_FEEDS_H
#define TN_TESTS_MODELS_FEEDS_H

#include <tenon/session.h>

#define FEED(seq, n_tokens, tokens, outputs)                                                                 \
    ((tn_feed){sizeof(tn_feed), (seq), (n_tokens), (tokens), (outputs), 0})

#endif
