// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of models with recurrent states: which slots they read and write. And evaluating tokens again when a
// sequence is longer than its last snapshot, or than what is written of its window, because it was cut or
// branched.
#include "models/run/session.h"

#include <string.h>

tn_status tn_session_take_slots(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    if (s->cache.n_slots == 0) return TN_OK;
    for (int32_t i = 0; i < n_feeds; i++) {
        (void)tn_cache_state_find(&s->cache, feeds[i].seq, &s->state_slots[2 * i]);
        s->state_slots[2 * i + 1] = tn_cache_state_take(&s->cache);
        if (s->state_slots[2 * i + 1] >= 0) continue;
        tn_session_drop_slots(s, i);
        return tn_fail(s->ctx, TN_ERR_INTERNAL, "no free slot for the state of sequence %d", feeds[i].seq);
    }
    return TN_OK;
}

void tn_session_drop_slots(tn_session *s, int32_t n_feeds)
{
    for (int32_t i = 0; i < n_feeds && s->cache.n_slots > 0; i++)
        tn_cache_state_drop(&s->cache, s->state_slots[2 * i + 1]);
}

void tn_session_keep_slots(tn_session *s, const tn_feed *feeds, int32_t n_feeds)
{
    for (int32_t i = 0; i < n_feeds && s->cache.n_slots > 0; i++) {
        const tn_feed *f = &feeds[i];
        bool turn = f->n_tokens > 1 && f->outputs != TN_OUTPUT_NONE;
        tn_cache_state_keep(&s->cache, f->seq, s->state_slots[2 * i + 1], s->cache.seqs[f->seq].length, turn);
    }
}

// The inputs for n tokens that a sequence holds from position `at` on. Their K and V are in the cache
// already, in blocks that other sequences may share, so they are read and not written again, but for those of
// the window.
static void fill_again(tn_session *s, int32_t seq, int32_t at, int32_t n)
{
    s->q_start[0] = 0;
    s->q_start[1] = n;
    s->kv_len[0] = at + n;
    memcpy(s->table, s->cache.seqs[seq].blocks, (size_t)s->cache.max_blocks * sizeof *s->table);
    if (s->window_table) tn_cache_window_row(&s->cache, seq, s->window_table);
    for (int32_t i = 0; i < n; i++) {
        if (s->window_slots) s->window_slots[i] = tn_cache_window_slot(&s->cache, seq, at + i);
        s->tokens[i] = tn_cache_token(&s->cache, seq, at + i);
        s->positions[i] = at + i;
        s->slots[i] = -1;
        tn_session_fill_scale(s, i, at + i);
    }
}

// The tokens of a sequence behind which it can continue.
static int32_t caught_up(const tn_cache *c, int32_t seq)
{
    int32_t slot;
    if (c->n_slots > 0) return tn_cache_state_find(c, seq, &slot);
    return tn_cache_has_window(c) ? c->seqs[seq].window_length : c->seqs[seq].length;
}

tn_status tn_session_catch_up(tn_session *s, int32_t seq)
{
    for (;;) {
        int32_t length = s->cache.seqs[seq].length, at = caught_up(&s->cache, seq);
        if (at == length) return TN_OK;
        s->n_outputs = 0;
        tn_feed f = {.struct_size = sizeof f,
                     .seq = seq,
                     .n_tokens = TN_MIN(length - at, s->cfg.n_batch),
                     .outputs = TN_OUTPUT_NONE};
        tn_plan_key key = {.n_tokens = f.n_tokens, .n_seq = 1, .adapters = tn_session_adapters_of(s, seq)};
        tn_status status = tn_session_take_slots(s, &f, 1);
        if (status == TN_OK) status = tn_cache_window_extend(&s->cache, seq, f.n_tokens);
        if (status != TN_OK) return status;
        fill_again(s, seq, at, f.n_tokens);
        tn_session_fill_adapter_rows(s, seq, 0, f.n_tokens);
        status = tn_session_run(s, &key);
        if (status != TN_OK) {
            tn_session_drop_slots(s, 1);
            tn_cache_window_truncate(&s->cache, seq, at);
            return status;
        }
        if (s->cache.n_slots > 0)
            tn_cache_state_keep(&s->cache, seq, s->state_slots[1], at + f.n_tokens, false);
        tn_cache_window_settle(&s->cache, seq);
    }
}
