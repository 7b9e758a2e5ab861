// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The index of full blocks: which block holds the keys and values of which tokens. A block is found by the 64
// tokens in it and by the block before it, and these are compared, so two texts never share a block because
// of equal hashes. All blocks of a cache are of one model, one position scheme and one type, so nothing else
// decides what they hold; whatever differs between requests is part of the salt of the first block.
//
// A listed block that no sequence holds any more is idle: its tokens can be found until the block is needed.
// Idle blocks are used again in the order in which they became idle. A sequence gives its blocks back from
// the last one to the first, so the end of a text is lost before its beginning.
//
// Where layers have windows (cache_window.c), the block of the window that belongs to a listed block can be
// idle too, and is lost before the listed block is. A beginning of a text is found as far as the window
// behind it is complete.
#include "models/run/cache/cache.h"

#include <string.h>

enum { NONE = -1 };

typedef struct block_entry {
    uint64_t serial;      // of this listing, never used again; 0: not listed
    uint64_t parent;      // serial of the block before it; of a first block the salt
    int32_t depth;        // blocks before it
    int32_t next;         // in its bucket
    int32_t window;       // block of the window with the same tokens; NONE: it is lost
    int32_t state;        // slot of the recurrent states after this block
    uint64_t idle_since;  // by the clock of the index
} block_entry;

// Blocks that no sequence holds, by the time since when.
typedef struct idle_link {
    int32_t newer, older;
} idle_link;

typedef struct idle_list {
    idle_link *links; // per block of the pool
    int32_t newest, oldest, n;
} idle_list;

struct tn_cache_index {
    block_entry *entries; // [n_blocks]
    int32_t *buckets;     // [n_buckets], a power of two
    int32_t n_buckets;
    idle_list idle, idle_windows;
    int32_t *block_of_window; // per block of the window: the listed block it belongs to; NONE
    int32_t *block_of_state; // [n_slots]
    uint64_t clock;          // prefixes that were taken from the index
    uint64_t last_serial, n_evicted;
};

static bool idle_init(tn_context *ctx, idle_list *l, int32_t n)
{
    *l = (idle_list){.newest = NONE, .oldest = NONE};
    l->links = tn_alloc(ctx, (size_t)n * sizeof *l->links);
    return l->links != NULL;
}

tn_status tn_cache_index_create(tn_cache *c)
{
    tn_cache_index *x = tn_calloc(c->ctx, 1, sizeof *x);
    if (!x) return TN_ERR_MEMORY;
    c->index = x;
    x->n_buckets = 1;
    while (x->n_buckets < c->all.n_blocks) x->n_buckets *= 2;
    x->entries = tn_calloc(c->ctx, (size_t)c->all.n_blocks, sizeof *x->entries);
    x->buckets = tn_alloc(c->ctx, (size_t)x->n_buckets * sizeof *x->buckets);
    x->block_of_state = tn_alloc(c->ctx, (size_t)c->n_slots * sizeof *x->block_of_state);
    x->block_of_window = tn_alloc(c->ctx, (size_t)c->sliding.n_blocks * sizeof *x->block_of_window);
    bool lists = idle_init(c->ctx, &x->idle, c->all.n_blocks);
    lists = idle_init(c->ctx, &x->idle_windows, c->sliding.n_blocks) && lists;
    if (!x->entries || !x->buckets || !x->block_of_state || !x->block_of_window || !lists) {
        tn_cache_index_fini(c);
        return TN_ERR_MEMORY;
    }
    for (int32_t i = 0; i < x->n_buckets; i++) x->buckets[i] = NONE;
    for (int32_t i = 0; i < c->n_slots; i++) x->block_of_state[i] = NONE;
    for (int32_t i = 0; i < c->sliding.n_blocks; i++) x->block_of_window[i] = NONE;
    return TN_OK;
}

void tn_cache_index_fini(tn_cache *c)
{
    if (!c->index) return;
    tn_free(c->ctx, c->index->entries);
    tn_free(c->ctx, c->index->buckets);
    tn_free(c->ctx, c->index->block_of_state);
    tn_free(c->ctx, c->index->block_of_window);
    tn_free(c->ctx, c->index->idle.links);
    tn_free(c->ctx, c->index->idle_windows.links);
    tn_free(c->ctx, c->index);
    c->index = NULL;
}

// --- finding -------------------------------------------------------------------------------------------

static int32_t *bucket_of(tn_cache_index *x, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    return &x->buckets[tn_cache_block_hash(parent, depth, tokens) & (uint64_t)(x->n_buckets - 1)];
}

static const int32_t *tokens_of(const tn_cache *c, int32_t id)
{
    return c->ids + (size_t)id * TN_CACHE_BLOCK;
}

// The listed block with these 64 tokens behind `parent`; NONE.
static int32_t find_block(const tn_cache *c, uint64_t parent, int32_t depth, const int32_t *tokens)
{
    int32_t id = *bucket_of(c->index, parent, depth, tokens);
    for (; id != NONE; id = c->index->entries[id].next) {
        const block_entry *b = &c->index->entries[id];
        if (b->parent == parent && b->depth == depth &&
            memcmp(tokens_of(c, id), tokens, TN_CACHE_BLOCK * sizeof *tokens) == 0)
            return id;
    }
    return NONE;
}

int32_t tn_cache_find(const tn_cache *c, uint64_t salt, const int32_t *tokens, int32_t n, int32_t *blocks,
                      int32_t *n_idle)
{
    int32_t found = 0, useful = 0, idle = 0, windows = 0;
    uint64_t parent = salt;
    *n_idle = 0;
    for (; c->index && found < n / TN_CACHE_BLOCK; found++) {
        int32_t id = find_block(c, parent, found, tokens + (size_t)found * TN_CACHE_BLOCK);
        if (id == NONE) break;
        parent = c->index->entries[id].serial;
        idle += c->all.refs[id] == 0;
        if (blocks) blocks[found] = id;
        // Behind the last state that was kept, recurrent layers have to evaluate everything again.
        if (c->n_slots > 0 && c->index->entries[id].state == NONE) continue;
        windows = c->index->entries[id].window == NONE ? 0 : windows + 1;
        int32_t length = (found + 1) * TN_CACHE_BLOCK;
        if (tn_cache_has_window(c) && found + 1 - windows > tn_cache_window_start(c, length)) continue;
        useful = found + 1;
        *n_idle = idle;
    }
    return useful;
}

// --- idle blocks ---------------------------------------------------------------------------------------

static void unlink_idle(idle_list *l, int32_t id)
{
    idle_link b = l->links[id];
    *(b.newer == NONE ? &l->newest : &l->links[b.newer].older) = b.older;
    *(b.older == NONE ? &l->oldest : &l->links[b.older].newer) = b.newer;
    l->n--;
}

static void push_idle(idle_list *l, int32_t id)
{
    l->links[id] = (idle_link){.newer = NONE, .older = l->newest};
    *(l->newest == NONE ? &l->oldest : &l->links[l->newest].newer) = id;
    l->newest = id;
    l->n++;
}

bool tn_cache_index_keep(tn_cache *c, int32_t id)
{
    tn_cache_index *x = c->index;
    if (!x || x->entries[id].serial == 0) return false;
    x->entries[id].idle_since = x->clock;
    push_idle(&x->idle, id);
    return true;
}

static void hold(tn_cache *c, int32_t id)
{
    if (c->all.refs[id]++ == 0) unlink_idle(&c->index->idle, id);
}

void tn_cache_index_forget(tn_cache *c, int32_t id)
{
    if (!c->index || c->index->entries[id].serial == 0) return;
    block_entry *b = &c->index->entries[id];
    int32_t *at = bucket_of(c->index, b->parent, b->depth, tokens_of(c, id));
    while (*at != id) at = &c->index->entries[*at].next;
    *at = b->next;
    b->serial = 0;
    if (b->window != NONE) {
        int32_t window = b->window;
        bool idle = c->sliding.refs[window] == 0;
        tn_cache_index_forget_window(c, window);
        if (idle) unlink_idle(&c->index->idle_windows, window);
        if (idle) c->sliding.free_ids[c->sliding.n_free++] = window;
    }
    if (b->state == NONE) return;
    c->slot_refs[b->state]--;
    c->index->block_of_state[b->state] = NONE;
    b->state = NONE;
}

int32_t tn_cache_index_evict(tn_cache *c)
{
    int32_t id = c->index->idle.oldest;
    const block_entry *b = &c->index->entries[id];
    unlink_idle(&c->index->idle, id);
    tn_cache_host_save(c, id, b->serial, b->parent, b->depth);
    tn_cache_index_forget(c, id);
    c->index->n_evicted++;
    return id;
}

int32_t tn_cache_n_idle(const tn_cache *c)
{
    return c->index ? c->index->idle.n : 0;
}

uint64_t tn_cache_n_evicted(const tn_cache *c)
{
    return c->index ? c->index->n_evicted : 0;
}

// --- windows -------------------------------------------------------------------------------------------

bool tn_cache_index_keep_window(tn_cache *c, int32_t id)
{
    if (!c->index || c->index->block_of_window[id] == NONE) return false;
    push_idle(&c->index->idle_windows, id);
    return true;
}

void tn_cache_index_forget_window(tn_cache *c, int32_t id)
{
    if (!c->index || c->index->block_of_window[id] == NONE) return;
    c->index->entries[c->index->block_of_window[id]].window = NONE;
    c->index->block_of_window[id] = NONE;
}

int32_t tn_cache_index_evict_window(tn_cache *c)
{
    int32_t id = c->index ? c->index->idle_windows.oldest : NONE;
    if (id == NONE) return NONE;
    unlink_idle(&c->index->idle_windows, id);
    tn_cache_index_forget_window(c, id);
    return id;
}

// A listed block of the sequence: the next text that begins like this one finds its window too.
static void list_window(tn_cache *c, const tn_cache_seq *s, int32_t i)
{
    tn_cache_index *x = c->index;
    block_entry *b = &x->entries[s->blocks[i]];
    if (!tn_cache_has_window(c) || i < s->window_first || b->window != NONE) return;
    if (x->block_of_window[s->window_blocks[i]] != NONE) return;
    b->window = s->window_blocks[i];
    x->block_of_window[b->window] = s->blocks[i];
}

static void attach_windows(tn_cache *c, tn_cache_seq *s)
{
    if (!tn_cache_has_window(c)) return;
    s->window_length = s->length;
    s->window_first = s->window_keep = tn_cache_window_start(c, s->length);
    for (int32_t i = s->window_first; i < s->n_listed; i++) {
        int32_t id = s->window_blocks[i] = c->index->entries[s->blocks[i]].window;
        if (c->sliding.refs[id]++ == 0) unlink_idle(&c->index->idle_windows, id);
    }
}

// --- sequences -----------------------------------------------------------------------------------------

// A block of which there is a copy has its serial still, so that the copies behind it are found.
static void list_block(tn_cache *c, int32_t id, uint64_t parent, int32_t depth)
{
    uint64_t serial = tn_cache_host_find(c, parent, depth, tokens_of(c, id));
    int32_t *bucket = bucket_of(c->index, parent, depth, tokens_of(c, id));
    c->index->entries[id] = (block_entry){.serial = serial ? serial : ++c->index->last_serial,
                                          .parent = parent,
                                          .depth = depth,
                                          .next = *bucket,
                                          .window = NONE,
                                          .state = NONE};
    *bucket = id;
}

// What the sequence begins with behind the blocks that were found comes back from the memory of the host, as
// long as there are blocks for it.
static void load_blocks(tn_cache *c, tn_cache_seq *s, const int32_t *tokens, int32_t n)
{
    if (!c->host) return;
    int32_t depth = s->n_listed;
    uint64_t parent = depth > 0 ? c->index->entries[s->blocks[depth - 1]].serial : s->salt;
    tn_cache_host_use(c, parent, depth, tokens, n); // taking a block may copy another one in their place
    for (; depth < n / TN_CACHE_BLOCK && tn_cache_n_available(c) > 0; depth++) {
        const int32_t *part = tokens + (size_t)depth * TN_CACHE_BLOCK;
        if (tn_cache_host_find(c, parent, depth, part) == 0) return;
        int32_t id = tn_cache_take_block(c);
        if (!tn_cache_host_load(c, id, parent, depth, part)) {
            tn_cache_release(c, id);
            return;
        }
        list_block(c, id, parent, depth);
        parent = c->index->entries[id].serial;
        s->blocks[s->n_listed++] = id;
    }
}

int32_t tn_cache_attach(tn_cache *c, int32_t seq, uint64_t salt, const int32_t *tokens, int32_t n)
{
    tn_cache_seq *s = &c->seqs[seq];
    int32_t n_idle;
    s->salt = salt;
    s->n_listed = tn_cache_find(c, salt, tokens, n, s->blocks, &n_idle);
    if (c->index) c->index->clock++;
    for (int32_t i = 0; i < s->n_listed; i++) hold(c, s->blocks[i]);
    load_blocks(c, s, tokens, n);
    s->length = s->n_listed * TN_CACHE_BLOCK;
    attach_windows(c, s);
    if (c->n_slots > 0 && s->n_listed > 0)
        tn_cache_state_share(c, seq, c->index->entries[s->blocks[s->n_listed - 1]].state, s->length);
    return s->length;
}

void tn_cache_list(tn_cache *c, int32_t seq)
{
    tn_cache_seq *s = &c->seqs[seq];
    if (!c->index) return;
    for (; s->n_listed < s->length / TN_CACHE_BLOCK; s->n_listed++) {
        int32_t i = s->n_listed, id = s->blocks[i];
        uint64_t parent = i > 0 ? c->index->entries[s->blocks[i - 1]].serial : s->salt;
        int32_t same = find_block(c, parent, i, tokens_of(c, id));
        if (same == NONE) {
            list_block(c, id, parent, i);
        } else if (same != id) { // another sequence was evaluated at the same time, and is listed already
            hold(c, same);
            s->blocks[i] = same;
            tn_cache_release(c, id);
        }
        list_window(c, s, i);
    }
    if (c->n_slots == 0 || s->length == 0 || s->length % TN_CACHE_BLOCK != 0) return;
    block_entry *last = &c->index->entries[s->blocks[s->n_listed - 1]];
    int32_t slot, position = tn_cache_state_find(c, seq, &slot);
    if (position != s->length || last->state != NONE) return;
    last->state = slot;
    c->index->block_of_state[slot] = s->blocks[s->n_listed - 1];
    c->slot_refs[slot]++;
}

// --- states --------------------------------------------------------------------------------------------

bool tn_cache_index_has_state(const tn_cache *c, int32_t slot)
{
    return c->index && c->index->block_of_state[slot] != NONE;
}

// All tokens before the block would be evaluated again; less likely the longer it was not used.
double tn_cache_index_state_loss(const tn_cache *c, int32_t slot)
{
    if (!tn_cache_index_has_state(c, slot)) return 0.0;
    int32_t id = c->index->block_of_state[slot];
    const block_entry *b = &c->index->entries[id];
    double age = c->all.refs[id] > 0 ? 0.0 : (double)(c->index->clock - b->idle_since);
    return (b->depth + 1.0) * TN_CACHE_BLOCK / (1.0 + age);
}

void tn_cache_index_drop_state(tn_cache *c, int32_t slot)
{
    if (!tn_cache_index_has_state(c, slot)) return;
    c->index->entries[c->index->block_of_state[slot]].state = NONE;
    c->index->block_of_state[slot] = NONE;
}
