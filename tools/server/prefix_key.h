// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The header x-prefix-key of answers: a hash of the first block of the prompt. A client that sends it back
// reaches the same server behind a balancer that hashes this header (haproxy.cfg), and finds its prefix
// there.
#ifndef TENON_TOOLS_SERVER_PREFIX_KEY_H
#define TENON_TOOLS_SERVER_PREFIX_KEY_H

#include "tools/server/http/transport.h"

// Adds the header to an answer that has not begun. A prompt that is shorter than a block gets none: nothing
// of it can be found again, and its key would change with the next turn.
void prefix_key_add(exchange *x, const int32_t *tokens, size_t n, uint64_t salt);

#endif
