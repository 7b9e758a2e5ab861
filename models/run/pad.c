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
//
// A plan costs as much as several steps lose by one that is larger than they need. So a size gets a plan of
// its own only when it has come that often, and behind a step that was launched, while the device is busy;
// until then a larger plan that is there stands in. Where a load rises or falls, most sizes come once or
// twice and never again.
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

// --- plans that stand in -------------------------------------------------------------------------------

// Counts a size that has no plan of its own.
static tn_wanted_size *count_wanted(tn_session *s, const tn_plan_key *size)
{
    tn_wanted_size *w = &s->wanted[0];
    for (int32_t i = 0; i < TN_SESSION_WANTED; i++) {
        tn_wanted_size *other = &s->wanted[i];
        bool same = other->n > 0 && memcmp(&other->size, size, sizeof *size) == 0;
        if (same || other->last_use < w->last_use) w = other;
        if (same) break;
    }
    if (w->n == 0 || memcmp(&w->size, size, sizeof *size) != 0) *w = (tn_wanted_size){.size = *size};
    w->n++;
    w->last_use = ++s->clock;
    return w;
}

void tn_session_make_missing(tn_session *s)
{
    enum { MADE_AT = 4 };
    tn_wanted_size *w = s->missing;
    tn_session_slot *slot;
    s->missing = NULL;
    if (!w || w->n < MADE_AT) return;
    w->n = 0; // one that cannot be made is tried again when it has come that often again
    tn_status status = tn_session_find_slot(s, &w->size, &slot);
    TN_UNUSED(status);
}

// Whether a step can be filled up to the size of this plan, whose kernels suit it: of those that differ in
// how they divide long sequences both do, but one for small pieces of prompts reads all keys for every query.
static bool holds(const tn_session *s, const tn_plan_key *plan, const tn_plan_key *step)
{
    int32_t tokens = plan->n_tokens - step->n_tokens, seqs = plan->n_seq - step->n_seq;
    bool single = step->n_tokens == step->n_seq;
    if (single != (plan->n_tokens == plan->n_seq) || seqs < 0 || tokens < seqs) return false;
    if (tokens > 0 && (seqs == 0 || tokens - (seqs - 1) > s->cfg.n_ctx_seq)) return false;
    if (plan->n_outputs < step->n_outputs || (plan->n_outputs > 0) != (step->n_outputs > 0)) return false;
    return plan->adapters == step->adapters && plan->max_blocks == step->max_blocks &&
           plan->apart <= step->apart;
}

// The smallest plan that stands in for one of this size. NULL: there is none, or the size has its own, or the
// context tunes: a plan that is made then runs its steps, which would overwrite results of the step in
// flight.
static const tn_plan_key *find_stand_in(const tn_session *s, const tn_plan_key *step, const tn_plan_key *size)
{
    const tn_plan_key *best = NULL;
    if (tn_context_tunes(s->ctx)) return NULL;
    for (int32_t i = 0; i < TN_SESSION_SLOTS; i++) {
        const tn_plan_key *key = &s->slots_of_plans[i].key;
        if (!s->slots_of_plans[i].runner) continue;
        if (memcmp(key, size, sizeof *key) == 0) return NULL;
        if (2 * key->n_tokens > 3 * size->n_tokens || !holds(s, key, step)) continue;
        if (!best || key->n_tokens < best->n_tokens ||
            (key->n_tokens == best->n_tokens && key->n_seq < best->n_seq))
            best = key;
    }
    return best;
}

void tn_session_pad(tn_session *s, tn_plan_key *key)
{
    tn_plan_key size = *key;
    s->missing = NULL;
    s->stands_in = false;
    if (!tn_session_padded(s, &size.n_tokens, &size.n_seq)) return;
    size.n_outputs = key->n_outputs > 0 ? TN_MAX(size.n_seq, key->n_outputs) : 0;
    const tn_plan_key *other = find_stand_in(s, key, &size);
    s->stands_in = other != NULL;
    if (other) {
        s->missing = count_wanted(s, &size);
        size = *other;
    }
    while (key->n_seq < size.n_seq) {
        int32_t others = size.n_seq - key->n_seq - 1;
        add_sequence(s, key, size.n_tokens - key->n_tokens - others);
    }
    while (key->n_outputs < size.n_outputs) s->out_rows[key->n_outputs++] = key->n_tokens - 1;
    key->uneven = size.uneven;
    key->apart = size.apart;
}
