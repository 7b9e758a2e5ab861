// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of an engine get sizes that come again (run/bucket.h), by sequences that are written nowhere: kernels
// compute tiles of rows, and most of the rows that are added here are in a tile that is computed anyway.
//
// There are two kinds of steps. Where every sequence continues by one token, the number of sequences is the
// only size, and it is followed closely. Where prompts are evaluated too, the number of tokens and of
// sequences are rounded by more, because every pair of them is a plan, and every sequence has an output row
// or none has.
#include "models/run/bucket.h"
#include "models/run/session.h"

#include <string.h>

enum { TILE = 16, DECODE_PARTS = 4, TOKEN_PARTS = 2 };

static int32_t bucket_tokens(const tn_session *s, int32_t n)
{
    return TN_MIN(TILE * tn_bucket((n + TILE - 1) / TILE, TOKEN_PARTS), s->cfg.n_batch);
}

// Each sequence that is added needs a row, so large numbers of them are followed more closely.
static int32_t bucket_sequences(const tn_session *s, int32_t n)
{
    return TN_MIN(tn_bucket(n, n > TILE ? 2 : 1), s->cfg.n_seq);
}

// One more sequence of n tokens that attends to itself in block 0, whatever that holds, and writes nothing.
static void add_sequence(tn_session *s, tn_plan_key *key, int32_t n)
{
    int32_t i = key->n_seq++;
    s->kv_len[i] = n;
    memset(s->table + (size_t)i * (size_t)s->cache.max_blocks, 0,
           (size_t)s->cache.max_blocks * sizeof *s->table);
    if (s->window_table)
        memset(s->window_table + (size_t)i * (size_t)s->cache.max_blocks, 0,
               (size_t)s->cache.max_blocks * sizeof *s->table);
    for (int32_t k = 0; k < n; k++) {
        int32_t t = key->n_tokens++;
        s->tokens[t] = 0;
        s->positions[t] = k;
        s->slots[t] = -1;
        if (s->window_slots) s->window_slots[t] = -1;
        tn_session_fill_scale(s, t, k);
    }
    s->q_start[key->n_seq] = key->n_tokens;
}

// Steps with pieces of prompts. False: there is no such size, and the step stays as it is.
static bool bucket_mixed(const tn_session *s, int32_t *n_tokens, int32_t *n_seq)
{
    int32_t real_tokens = *n_tokens, real_seq = *n_seq;
    *n_tokens = bucket_tokens(s, real_tokens);
    *n_seq = bucket_sequences(s, real_seq);
    for (;;) {
        int32_t tokens = *n_tokens - real_tokens, seqs = *n_seq - real_seq;
        if (tokens > 0 && seqs == 0) { // tokens that are added need a sequence of their own
            if (*n_seq == s->cfg.n_seq) return false;
            *n_seq = bucket_sequences(s, *n_seq + 1);
        } else if (tokens < seqs) { // and a sequence needs a token
            if (*n_tokens == s->cfg.n_batch) return false;
            *n_tokens = bucket_tokens(s, *n_tokens + 1);
        } else {
            return tokens - TN_MAX(seqs - 1, 0) <= s->cfg.n_ctx_seq;
        }
    }
}

bool tn_session_padded(const tn_session *s, int32_t *n_tokens, int32_t *n_seq)
{
    int32_t tokens = *n_tokens, seqs = *n_seq;
    // Each sequence of a recurrent model would need a state of its own to write.
    if (!s->pads || s->cache.n_slots > 0 || (seqs == 1 && tokens == 1)) return false;
    if (tokens == seqs)
        tokens = seqs = TN_MIN(tn_bucket(seqs, DECODE_PARTS), s->cfg.n_seq);
    else if (!bucket_mixed(s, &tokens, &seqs))
        return false;
    *n_tokens = tokens;
    *n_seq = seqs;
    return true;
}

int32_t tn_session_size_above(const tn_session *s, int32_t n)
{
    return bucket_tokens(s, n + 1);
}

void tn_session_pad(tn_session *s, tn_plan_key *key)
{
    int32_t n_tokens = key->n_tokens, n_seq = key->n_seq;
    if (!tn_session_padded(s, &n_tokens, &n_seq)) return;
    while (key->n_seq < n_seq) {
        int32_t others = n_seq - key->n_seq - 1;
        add_sequence(s, key, n_tokens - key->n_tokens - others);
    }
    int32_t n_outputs = key->n_outputs > 0 ? TN_MAX(n_seq, key->n_outputs) : 0;
    while (key->n_outputs < n_outputs) s->out_rows[key->n_outputs++] = key->n_tokens - 1;
}
