// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The paged store of K and V: fixed-size blocks, sequences as lists of block ids, blocks shared between
// sequences by reference counts. Nothing is allocated after creation.
//
// Models with recurrent layers also keep states of a fixed size per sequence, whatever its length is. A slot
// holds the states of all such layers after some number of tokens: a snapshot of a sequence. A step reads the
// slot of the last snapshot of a sequence and writes another slot, which becomes the last one. So a step that
// fails changes nothing, and a sequence can be cut at an older snapshot without evaluating it from its
// beginning. A sequence may be longer than its last snapshot, after it was cut, branched or loaded: the
// tokens between are evaluated again before the next step (run/replay.c). Code that changes K, V and lengths
// of sequences therefore need not touch the states, as long as it truncates a sequence before it appends
// other tokens.
//
// Layers with a sliding window have blocks of their own, fewer than the others: cache_window.c.
#ifndef TN_MODELS_CACHE_H
#define TN_MODELS_CACHE_H

#include "core/device.h"
#include "core/hash.h"

// Tokens per block: long enough that a (block, head) tile streams well, short enough that a sequence wastes
// little at its end.
enum { TN_CACHE_BLOCK = 64 };

enum { TN_CACHE_DEVICES = 2 };

// One state tensor: K or V of a layer.
typedef struct tn_cache_part {
    int32_t device;    // index
    size_t offset;     // into the buffer of the device
    size_t block_size; // bytes of one block, of states: of one slot
    bool slides;       // its blocks are those of the window
} tn_cache_part;

// Blocks with an id for all parts of one kind.
typedef struct tn_cache_pool {
    int32_t n_blocks;
    int32_t *refs;     // per block
    int32_t *free_ids; // stack
    int32_t n_free;
    bool *used; // per block: holds data of an earlier sequence
} tn_cache_pool;

typedef struct tn_cache_seq {
    int32_t *blocks;  // ids, max_blocks of them
    int32_t length;   // tokens
    int32_t n_listed; // blocks that are in the index
    uint64_t salt;    // of its first block
    // Of the parts that slide: ids by the same index, held from block window_first on; tokens whose K and V
    // were written, after a cut 0 or as many as `length`, which they reach again before the next step; the
    // first block that has to stay.
    int32_t *window_blocks;
    int32_t window_length, window_first, window_keep;
} tn_cache_seq;

typedef struct tn_cache_index tn_cache_index;
typedef struct tn_cache_host tn_cache_host;

typedef struct tn_cache_snapshot {
    int32_t slot, position; // the state after `position` tokens
    bool turn;              // a prompt ended here
} tn_cache_snapshot;

typedef struct tn_cache {
    tn_context *ctx;
    tn_buffer buffers[TN_CACHE_DEVICES]; // empty on devices without a part
    size_t sizes[TN_CACHE_DEVICES];      // bytes, also of dry caches
    int32_t n_seq, n_parts, n_ctx;
    int32_t n_ctx_seq, max_blocks; // of one sequence: tokens, blocks
    tn_cache_part *parts;          // n_parts of K and V, then n_states
    tn_cache_pool all;             // of parts that keep the whole context, and of the tokens
    tn_cache_pool sliding;         // of the other parts; without blocks: there are none
    int32_t window;                // positions that a token sees in them, its own among these
    tn_cache_seq *seqs;
    int32_t *table;               // n_seq * max_blocks, storage of seqs[].blocks, then of window_blocks
    int32_t n_states, n_slots;    // of recurrent states; 0: none
    int32_t *slot_refs;           // per slot: number of lists that contain it; 1 while a step writes it
    tn_cache_snapshot *snapshots; // per sequence n_slots, in rising order of positions
    int32_t *n_snapshots;         // per sequence
    int32_t *ids; // per slot of K and V: the token, as far as a sequence with the block reaches
    tn_cache_index
        *index;          // of full blocks, see cache_index.c; NULL: blocks are forgotten when they are freed
    tn_cache_host *host; // copies of blocks, see models/engine/cache_host.c; NULL: none
} tn_cache;

typedef struct tn_cache_config {
    int32_t n_ctx, n_seq, n_parts;
    int32_t n_ctx_seq;       // tokens of one sequence at most, 1..n_ctx
    const size_t *row_sizes; // bytes of one token in each part
    const uint8_t *devices;  // of each part: index, below TN_CACHE_DEVICES
    // Parts that keep no more than a window of so many positions, and the most tokens of a step; 0: none.
    int32_t window, n_batch;
    const bool *slides; // of each part
    // Recurrent states, 0: none. At least two slots per sequence; more keep snapshots at which sequences can
    // be cut.
    int32_t n_states, n_slots;
    const size_t *state_sizes; // bytes of a slot in each state
    const uint8_t *state_devices;
} tn_cache_config;

// Lists and offsets, without the memory itself.
TN_MUST_USE tn_status tn_cache_init(tn_cache *c, tn_context *ctx, const tn_cache_config *cfg);
// Allocates the zeroed memory; devices by index. On failure the cache stays as it was initialised.
TN_MUST_USE tn_status tn_cache_reserve(tn_cache *c, tn_device *const *devices);
void tn_cache_fini(tn_cache *c);
size_t tn_cache_part_size(int32_t n_blocks, size_t row_size); // SIZE_MAX: too large
int32_t tn_cache_n_blocks(int32_t n_ctx, int32_t n_seq);
// Blocks of a sequence of `length` tokens.
static inline int32_t tn_cache_blocks_of(int32_t length)
{
    return (length + TN_CACHE_BLOCK - 1) / TN_CACHE_BLOCK;
}

// Allocates blocks for n more tokens and lengthens the sequence. TN_ERR_CONTEXT_FULL: not enough free blocks;
// nothing changed.
TN_MUST_USE tn_status tn_cache_extend(tn_cache *c, int32_t seq, int32_t n);
// Free blocks that this takes.
int32_t tn_cache_blocks_for(const tn_cache *c, int32_t seq, int32_t n);
void tn_cache_truncate(tn_cache *c, int32_t seq, int32_t n);
TN_MUST_USE tn_status tn_cache_branch(tn_cache *c, int32_t from, int32_t to, int32_t n);
// Slot of a position: block id * TN_CACHE_BLOCK + index.
int32_t tn_cache_slot(const tn_cache *c, int32_t seq, int32_t position);
// The position and slot of a sequence's last snapshot; 0 and -1: its beginning.
int32_t tn_cache_state_find(const tn_cache *c, int32_t seq, int32_t *slot);
// A slot for a step to write: a free one, or that of the snapshot whose loss costs least, but never the last
// snapshot of a sequence. Each feed of a step gets one, then keeps it as the last snapshot of its sequence or
// drops it. -1: none.
int32_t tn_cache_state_take(tn_cache *c);
void tn_cache_state_drop(tn_cache *c, int32_t slot);
void tn_cache_state_keep(tn_cache *c, int32_t seq, int32_t slot, int32_t position, bool turn);
// Adds a snapshot that the index holds to an empty sequence.
void tn_cache_state_share(tn_cache *c, int32_t seq, int32_t slot, int32_t position);

// --- the index of full blocks ---

// From now on full blocks of tokens that were evaluated can be found, until they are needed otherwise. For an
// empty cache.
TN_MUST_USE tn_status tn_cache_index_create(tn_cache *c);
// How many blocks, from the first one on, hold these tokens behind this salt; *n_idle: those of them that no
// sequence holds. With recurrent states: up to the last state that was kept. blocks: [n / 64] or NULL.
int32_t tn_cache_find(const tn_cache *c, uint64_t salt, const int32_t *tokens, int32_t n, int32_t *blocks,
                      int32_t *n_idle);
// An empty sequence gets the blocks that were found; returns its length.
int32_t tn_cache_attach(tn_cache *c, int32_t seq, uint64_t salt, const int32_t *tokens, int32_t n);
// The tokens of the sequence have been evaluated: its full blocks can be found from now on.
void tn_cache_list(tn_cache *c, int32_t seq);
int32_t tn_cache_n_idle(const tn_cache *c);     // blocks that no sequence holds, but that can be found
uint64_t tn_cache_n_evicted(const tn_cache *c); // blocks that were idle and then used otherwise
// Blocks for new tokens: free and idle ones.
static inline int32_t tn_cache_n_available(const tn_cache *c)
{
    return c->all.n_free + tn_cache_n_idle(c);
}
// Used by cache.c, cache_states.c and cache_index.c.
void tn_cache_index_fini(tn_cache *c);
bool tn_cache_index_keep(tn_cache *c, int32_t id); // becomes idle; false: it is not listed
// Gives back one reference.
static inline void tn_cache_release(tn_cache *c, int32_t id)
{
    if (--c->all.refs[id] == 0 && !tn_cache_index_keep(c, id)) c->all.free_ids[c->all.n_free++] = id;
}
void tn_cache_index_forget(tn_cache *c, int32_t id); // its contents change
int32_t tn_cache_index_evict(tn_cache *c);           // the block that is idle for longest; there is one
bool tn_cache_index_has_state(const tn_cache *c, int32_t slot);
// A free block, or the one that is idle for longest. There is one.
static inline int32_t tn_cache_take_block(tn_cache *c)
{
    int32_t id = c->all.n_free > 0 ? c->all.free_ids[--c->all.n_free] : tn_cache_index_evict(c);
    c->all.refs[id] = 1;
    return id;
}

// Of a block of 64 tokens behind `parent`.
static inline uint64_t tn_cache_block_hash(uint64_t parent, int32_t depth, const int32_t *tokens)
{
    tn_hash h;
    uint64_t where[2] = {parent, (uint64_t)depth};
    tn_hash_init(&h);
    tn_hash_add(&h, where, sizeof where);
    tn_hash_add(&h, tokens, TN_CACHE_BLOCK * sizeof *tokens);
    return tn_hash_value(&h);
}
double tn_cache_index_state_loss(const tn_cache *c, int32_t slot);
void tn_cache_index_drop_state(tn_cache *c, int32_t slot);
TN_MUST_USE tn_status tn_cache_states_init(tn_cache *c);
void tn_cache_states_fini(tn_cache *c);
void tn_cache_states_truncate(tn_cache *c, int32_t seq, int32_t n);
void tn_cache_states_branch(tn_cache *c, int32_t from, int32_t to, int32_t n);

// --- windows: cache_window.c ---

// Blocks that layers with such a window need for all sequences; 0: as many as the others, so that they are
// not worth a list of their own.
int32_t tn_cache_window_blocks(const tn_cache_config *cfg);
static inline bool tn_cache_has_window(const tn_cache *c)
{
    return c->sliding.n_blocks > 0;
}
// The first block that a token at this position sees.
static inline int32_t tn_cache_window_start(const tn_cache *c, int32_t position)
{
    return TN_MAX(position - c->window + 1, 0) / TN_CACHE_BLOCK;
}
// What the functions of the same names without `window` do for the blocks of the window. They do nothing
// where there are none.
TN_MUST_USE tn_status tn_cache_window_extend(tn_cache *c, int32_t seq, int32_t n);
void tn_cache_window_truncate(tn_cache *c, int32_t seq, int32_t n);
void tn_cache_window_branch(tn_cache *c, int32_t from, int32_t to, int32_t n);
// The step that wrote the last tokens is complete.
void tn_cache_window_settle(tn_cache *c, int32_t seq);
int32_t tn_cache_window_slot(const tn_cache *c, int32_t seq, int32_t position);
// The block table of a step that may see no position before window_first: max_blocks ids. Blocks that are
// not held have the id of one that is, because a kernel may read what it then masks.
void tn_cache_window_row(const tn_cache *c, int32_t seq, int32_t *row);
// A block for new tokens, -1: there is none.
int32_t tn_cache_window_take(tn_cache *c);
void tn_cache_window_release(tn_cache *c, int32_t id);
bool tn_cache_index_keep_window(tn_cache *c, int32_t id); // becomes idle; false: of no listed block
void tn_cache_index_forget_window(tn_cache *c, int32_t id); // its contents change
int32_t tn_cache_index_evict_window(tn_cache *c);           // -1: none is idle

// --- contents: cache_blocks.c ---

// Clears the blocks that were used before; copies one to another.
TN_MUST_USE tn_status tn_cache_clear_used(tn_cache *c, tn_cache_pool *pool, const int32_t *ids, int32_t n);
TN_MUST_USE tn_status tn_cache_copy_block(tn_cache *c, const tn_cache_pool *pool, int32_t from, int32_t to);

// --- copies of blocks in the memory of the host ---

typedef struct tn_cache_host_stats {
    int32_t n_blocks;           // copies now
    uint64_t n_saved, n_loaded; // copied to the host, and back
} tn_cache_host_stats;
// From now on blocks are copied there before they are evicted, as many as `bytes` hold. For a cache with an
// index. TN_ERR_ARG: not one; TN_ERR_UNSUPPORTED: the cache has recurrent states, or blocks of a window.
TN_MUST_USE tn_status tn_cache_host_create(tn_cache *c, uint64_t bytes);
void tn_cache_host_fini(tn_cache *c);
tn_cache_host_stats tn_cache_host_stats_of(const tn_cache *c);
// The serial of the block with these 64 tokens behind `parent`; 0: there is no copy of it.
uint64_t tn_cache_host_find(const tn_cache *c, uint64_t parent, int32_t depth, const int32_t *tokens);
// The copies that hold these tokens from block `depth` on are used now: they stay for longest.
void tn_cache_host_use(tn_cache *c, uint64_t parent, int32_t depth, const int32_t *tokens, int32_t n);
void tn_cache_host_save(tn_cache *c, int32_t id, uint64_t serial, uint64_t parent, int32_t depth);
// Into a block that nobody reads; false: there is no copy, or the device has failed.
bool tn_cache_host_load(tn_cache *c, int32_t id, uint64_t parent, int32_t depth, const int32_t *tokens);

// Token at a position below the length.
int32_t tn_cache_token(const tn_cache *c, int32_t seq, int32_t position);

#endif
