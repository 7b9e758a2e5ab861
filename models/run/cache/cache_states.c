// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Recurrent states of sequences: which slots of the store hold the state after how many tokens of which
// sequence.
#include "models/run/cache/cache.h"

static tn_cache_snapshot *list_of(const tn_cache *c, int32_t seq)
{
    return c->snapshots + (size_t)seq * (size_t)c->n_slots;
}

tn_status tn_cache_states_init(tn_cache *c)
{
    if (c->n_slots == 0) return TN_OK;
    c->slot_refs = tn_calloc(c->ctx, (size_t)c->n_slots, sizeof *c->slot_refs);
    c->snapshots = tn_calloc(c->ctx, (size_t)c->n_slots * (size_t)c->n_seq, sizeof *c->snapshots);
    c->n_snapshots = tn_calloc(c->ctx, (size_t)c->n_seq, sizeof *c->n_snapshots);
    return c->slot_refs && c->snapshots && c->n_snapshots ? TN_OK : TN_ERR_MEMORY;
}

void tn_cache_states_fini(tn_cache *c)
{
    tn_free(c->ctx, c->slot_refs);
    tn_free(c->ctx, c->snapshots);
    tn_free(c->ctx, c->n_snapshots);
}

void tn_cache_states_truncate(tn_cache *c, int32_t seq, int32_t n)
{
    if (c->n_slots == 0) return;
    const tn_cache_snapshot *list = list_of(c, seq);
    int32_t *count = &c->n_snapshots[seq];
    while (*count > 0 && list[*count - 1].position > n) c->slot_refs[list[--*count].slot]--;
}

void tn_cache_states_branch(tn_cache *c, int32_t from, int32_t to, int32_t n)
{
    for (int32_t i = 0; c->n_slots > 0 && i < c->n_snapshots[from]; i++) {
        const tn_cache_snapshot *s = &list_of(c, from)[i];
        if (s->position > n) break;
        c->slot_refs[s->slot]++;
        list_of(c, to)[c->n_snapshots[to]++] = *s;
    }
}

void tn_cache_state_share(tn_cache *c, int32_t seq, int32_t slot, int32_t position)
{
    c->slot_refs[slot]++;
    tn_cache_state_keep(c, seq, slot, position, true);
}

int32_t tn_cache_state_find(const tn_cache *c, int32_t seq, int32_t *slot)
{
    int32_t n = c->n_snapshots[seq];
    *slot = n > 0 ? list_of(c, seq)[n - 1].slot : -1;
    return n > 0 ? list_of(c, seq)[n - 1].position : 0;
}

// The cost of losing a slot: the tokens to evaluate again when a sequence is cut there, weighted by how
// likely that is. Cuts far back are less likely, cuts at the end of a prompt are more likely than cuts in the
// middle of a text. Negative: the slot must be kept, because a sequence continues from it.
static double loss(const tn_cache *c, int32_t slot)
{
    enum { TURN_WEIGHT = 16 };
    double sum = tn_cache_index_state_loss(c, slot);
    for (int32_t q = 0; q < c->n_seq; q++) {
        const tn_cache_snapshot *list = list_of(c, q);
        int32_t n = c->n_snapshots[q], before = 0;
        for (int32_t i = 0; i < n; i++) {
            if (list[i].slot == slot && i + 1 == n) return -1.0;
            double back = (double)list[n - 1].position - list[i].position;
            if (list[i].slot == slot)
                sum += (double)(list[i].position - before) * (list[i].turn ? TURN_WEIGHT : 1) / (back + 1.0);
            before = list[i].position;
        }
    }
    return sum;
}

static void forget(tn_cache *c, int32_t slot)
{
    for (int32_t q = 0; q < c->n_seq; q++) {
        tn_cache_snapshot *list = list_of(c, q);
        int32_t kept = 0;
        for (int32_t i = 0; i < c->n_snapshots[q]; i++)
            if (list[i].slot != slot) list[kept++] = list[i];
        c->n_snapshots[q] = kept;
    }
    tn_cache_index_drop_state(c, slot);
    c->slot_refs[slot] = 0;
}

int32_t tn_cache_state_take(tn_cache *c)
{
    int32_t best = -1;
    double least = 0.0;
    for (int32_t i = 0; i < c->n_slots; i++)
        if (c->slot_refs[i] == 0) {
            c->slot_refs[i] = 1;
            return i;
        }
    for (int32_t i = 0; i < c->n_slots; i++) {
        bool taken = !tn_cache_index_has_state(c, i); // in no list: a running step writes it
        for (int32_t q = 0; q < c->n_seq && taken; q++)
            for (int32_t k = 0; k < c->n_snapshots[q]; k++) taken = taken && list_of(c, q)[k].slot != i;
        double cost = taken ? -1.0 : loss(c, i);
        if (cost >= 0.0 && (best < 0 || cost < least)) best = i, least = cost;
    }
    if (best < 0) return -1;
    forget(c, best);
    c->slot_refs[best] = 1;
    return best;
}

void tn_cache_state_drop(tn_cache *c, int32_t slot)
{
    if (slot >= 0) c->slot_refs[slot] = 0;
}

void tn_cache_state_keep(tn_cache *c, int32_t seq, int32_t slot, int32_t position, bool turn)
{
    list_of(c, seq)[c->n_snapshots[seq]++] = (tn_cache_snapshot){slot, position, turn};
}
