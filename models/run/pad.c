// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sizes of steps that come again. The number of sequences in a step of an engine changes all the time, and so
// do the lengths of pieces of prompts. A plan is made for one size, and making and capturing one takes a
// device some 10 ms. So sizes are rounded up: kernels compute tiles of rows, and most of the rows that are
// added here are in a tile that is computed anyway.
#include "models/run/session.h"

#include <string.h>

// n rounded up: exact up to 8, then steps of at most an eighth to a quarter.
static int32_t round_sequences(int32_t n)
{
    static const struct {
        int32_t up_to, step;
    } sizes[] = {{8, 1}, {16, 2}, {32, 4}, {64, 8}, {128, 16}, {INT32_MAX, 32}};
    int32_t i = 0;
    while (n > sizes[i].up_to) i++;
    return (n + sizes[i].step - 1) / sizes[i].step * sizes[i].step;
}

static int32_t round_tokens(int32_t n)
{
    int32_t step = n <= 64 ? 16 : n <= 512 ? 64 : 256;
    return (n + step - 1) / step * step;
}

// One more sequence of n tokens that attends to itself in block 0, whatever that holds, and writes nothing.
static void add_sequence(tn_session *s, tn_plan_key *key, int32_t n)
{
    int32_t i = key->n_seq++;
    s->kv_len[i] = n;
    memset(s->table + (size_t)i * (size_t)s->cache.max_blocks, 0,
           (size_t)s->cache.max_blocks * sizeof *s->table);
    for (int32_t k = 0; k < n; k++) {
        int32_t t = key->n_tokens++;
        s->tokens[t] = 0;
        s->positions[t] = k;
        s->slots[t] = -1;
        tn_session_fill_scale(s, t, k);
    }
    s->q_start[key->n_seq] = key->n_tokens;
}

void tn_session_pad(tn_session *s, tn_plan_key *key)
{
    // Each sequence of a recurrent model would need a state of its own to write.
    if (s->cache.n_slots > 0) return;
    bool decodes = key->n_tokens == key->n_seq;
    int32_t n_real = key->n_outputs, n_seq = TN_MIN(round_sequences(key->n_seq), s->cfg.n_seq);
    int32_t n_tokens = decodes ? n_seq : TN_MIN(round_tokens(key->n_tokens), s->cfg.n_batch);
    // Tokens that are added need a sequence of their own.
    if (!decodes && n_tokens > key->n_tokens && n_seq == key->n_seq) n_seq++;
    if (n_seq > s->cfg.n_seq || n_tokens - key->n_tokens < n_seq - key->n_seq) return;
    int32_t n_outputs = TN_MIN(round_sequences(TN_MAX(n_real, 1)), n_seq);
    if (n_outputs < n_real || n_tokens - key->n_tokens > s->cfg.n_ctx_seq) return;
    while (key->n_seq < n_seq) {
        int32_t others = n_seq - key->n_seq - 1;
        add_sequence(s, key, n_tokens - key->n_tokens - others);
    }
    while (key->n_outputs < n_outputs) s->out_rows[key->n_outputs++] = key->n_tokens - 1;
}
