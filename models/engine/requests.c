// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How requests of an engine end.
#include "models/engine/engine.h"

void tn_engine_destroy_requests(tn_context *ctx, tn_request **list)
{
    while (*list) {
        tn_request *r = *list;
        *list = r->next;
        tn_generation_destroy(&r->generation);
        tn_free(ctx, r->tokens);
        tn_free(ctx, r);
    }
}

void tn_engine_list_events(tn_engine_note *notes, int32_t n, const tn_engine_event **list)
{
    for (int32_t i = 0; i < n; i++) {
        notes[i].event.piece = &notes[i].piece;
        notes[i].event.stats = &notes[i].stats;
        list[i] = &notes[i].event;
    }
}

tn_engine_note *tn_engine_add_event(tn_engine *e, const tn_request *r, const tn_piece *piece,
                                    tn_status status)
{
    tn_engine_note *note = &e->events[e->n_events++];
    note->event = (tn_engine_event){.struct_size = sizeof note->event,
                                    .id = r->id,
                                    .user = r->user,
                                    .status = status,
                                    .queue_ns = r->queue_ns};
    note->piece = *piece;
    note->piece.struct_size = sizeof note->piece;
    note->stats.struct_size = sizeof note->stats;
    tn_generation_stats_get(r->generation, &note->stats);
    note->stats.n_reused = r->n_reused;
    return note;
}

void tn_engine_end(tn_engine *e, tn_request *r, const tn_piece *piece, tn_status status)
{
    tn_engine_note *note = tn_engine_add_event(e, r, piece, status);
    if (status != TN_OK) {
        if (!r->message[0]) (void)tn_context_error(e->ctx, r->message, sizeof r->message);
        note->event.message = r->message;
    }
    for (int32_t i = 0; i < e->n_feeds; i++)
        if (e->fed[i] == r) e->fed[i] = NULL;
    for (int32_t i = 0; i < e->n_selecting; i++)
        if (e->selecting[i] == r) e->selecting[i] = NULL;
    if (r->seq >= 0) tn_cache_truncate(&e->session->cache, r->seq, 0);
    tn_engine_lock(e);
    if (r->seq >= 0) e->running[r->seq] = NULL;
    e->n_alive--;
    tn_engine_unlock(e);
    r->next = e->ended;
    e->ended = r;
}

// One that waits and was cancelled, taken out of the list; NULL: none.
static tn_request *take_cancelled(tn_engine *e)
{
    tn_request *found = NULL;
    tn_engine_lock(e);
    for (tn_request **at = &e->waiting; *at && !found; at = found ? at : &(*at)->next)
        if ((*at)->cancelled) {
            found = *at;
            *at = found->next;
            e->n_waiting--;
            e->waiting_tokens -= found->n_tokens;
        }
    tn_engine_unlock(e);
    return found;
}

static bool is_cancelled(tn_engine *e, const tn_request *r)
{
    tn_engine_lock(e);
    bool cancelled = r->cancelled;
    tn_engine_unlock(e);
    return cancelled;
}

void tn_engine_end_cancelled(tn_engine *e)
{
    static const tn_piece piece = {.token = -1, .text = "", .stop = TN_STOP_CANCELLED};
    tn_engine_destroy_requests(e->ctx, &e->ended);
    e->n_events = 0;
    for (int32_t i = 0; i < e->n_seq; i++)
        if (e->running[i] && is_cancelled(e, e->running[i])) tn_engine_end(e, e->running[i], &piece, TN_OK);
    // Each request that runs may have an event of its own later in this step.
    while (e->n_events < e->max_events - e->n_seq) {
        tn_request *r = take_cancelled(e);
        if (!r) break;
        tn_engine_end(e, r, &piece, TN_OK);
    }
}
