// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Running a grammar. The state after a text is a set of places: pairs of an instruction and a list of calls
// to return to. Equal lists and equal sets are stored once and have numbers. The set that follows a set after
// a byte is computed once and kept in a table (a lazily built automaton: Thompson 1968, with a stack), so
// that the mask of all tokens is a walk over the tree of the vocabulary with one look-up per node. All memory
// is reserved at creation; when a table is full, all are emptied except for the current set.
//
// Every repetition of x{20,400} is a set of its own. Far from the ends of the count they allow the same
// tokens. So each set has a plain form (places moved to the first repetitions), and the length from which a
// text can distinguish the two. Masks of plain sets are shared; near an end only those branches of the tree
// are walked that are long enough.
#include "models/text/grammar/grammar_impl.h"

#include <stdlib.h>
#include <string.h>

enum {
    STACKS_MAX = 1 << 17, // lists of calls
    SETS_MAX = 4096,
    POOL_MAX = 1 << 18, // places in all sets
    SET_MAX = 4096,     // places in one set
    SEEN_MAX = 1 << 15, // hash of the places of the current set; at most half full
    MASKS = 32,
    FLUSHES_MAX = 16, // within one call
    DEAD = 0,         // the set of no place
    UNKNOWN = -1,
    FULL = -2,
    ENDED = -3, // behind an end token
};

// A place: instruction << 32 | list of calls. The end of root has a place of its own.
#define PLACE(pc, stack) ((uint64_t)(uint32_t)(pc) << 32 | (uint32_t)(stack))
#define PLACE_END        UINT64_MAX

typedef struct place_set {
    uint32_t start, n; // in the pool
    bool complete;     // the end of root is in it
} place_set;

// The plain form of a set or a list of calls. UNKNOWN: not computed yet.
typedef struct plain_form {
    int32_t id;
    int32_t left; // texts with fewer bytes cannot distinguish the two
} plain_form;

typedef struct mask {
    int32_t set; // -1: empty
    bool any;
    uint64_t *bits;
} mask;

struct tn_matcher {
    tn_context *ctx;
    const tn_grammar *g;
    const tn_vocab_trie *trie;
    // Lists of calls: 0 is the empty one.
    int32_t *back, *rest;     // [STACKS_MAX] where the innermost call returns to; the calls around it
    int32_t *stack_table;     // [2 * STACKS_MAX] by hash, 0: free
    plain_form *plain_stacks; // [STACKS_MAX] if the grammar counts
    int32_t n_stacks;
    int32_t *old_back, *old_rest, *chain; // [STACKS_MAX] for moving a set to empty tables
    uint64_t *pool;                       // [POOL_MAX]
    uint32_t n_pool;
    place_set *sets;    // [SETS_MAX]
    int32_t *set_table; // [2 * SETS_MAX] by hash, -1: free
    int32_t n_sets;
    int32_t *moves;         // [SETS_MAX][256] set behind a byte, or UNKNOWN
    plain_form *plain_sets; // [SETS_MAX]
    // Places of the current set.
    uint64_t *seen;       // [SEEN_MAX]
    uint32_t *seen_stamp; // [SEEN_MAX]
    uint32_t stamp;
    int32_t n_seen;
    uint64_t *work, *found; // [SEEN_MAX], [SET_MAX]
    int32_t n_work, n_found;
    bool overflow;
    // The text.
    int32_t *tokens, *states; // [max_tokens], [max_tokens + 1]: the set before each token
    int32_t n_tokens, max_tokens;
    int32_t first_known;            // the sets before this token were lost when the tables were emptied
    int32_t path[TN_PIECE_MAX + 1]; // sets on the way to a node of the tree
    int32_t plain_path[TN_PIECE_MAX + 1];
    mask masks[MASKS];
    mask near;      // of a set near the end of a count, valid for one call
    size_t n_words; // of a mask
};

// --- places ------------------------------------------------------------------------------------------

static inline uint32_t hash64(uint64_t x)
{
    x *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(x >> 32);
}

static int32_t find_or_add_stack(tn_matcher *m, int32_t back, int32_t rest)
{
    uint32_t at = hash64(PLACE(back, rest)) % (2 * STACKS_MAX);
    for (int32_t id; (id = m->stack_table[at]) != 0; at = (at + 1) % (2 * STACKS_MAX))
        if (m->back[id] == back && m->rest[id] == rest) return id;
    if (m->n_stacks == STACKS_MAX) {
        m->overflow = true;
        return 0;
    }
    m->back[m->n_stacks] = back;
    m->rest[m->n_stacks] = rest;
    m->stack_table[at] = m->n_stacks;
    if (m->plain_stacks) m->plain_stacks[m->n_stacks] = (plain_form){UNKNOWN, INT32_MAX};
    return m->n_stacks++;
}

static int32_t intern_stack(tn_matcher *m, int32_t back, int32_t rest)
{
    int32_t id = find_or_add_stack(m, back, rest);
    if (!m->plain_stacks || m->overflow || m->plain_stacks[id].id != UNKNOWN) return id;
    const tn_gcount *count = &m->g->counts[back];
    const plain_form *around = &m->plain_stacks[rest];
    bool same =
        count->first == back && around->id == rest; // it is its own plain form; it may still be near an end
    int32_t plain = same ? id : find_or_add_stack(m, count->first, around->id);
    m->plain_stacks[id] = (plain_form){plain, TN_MIN(count->left, around->left)};
    if (!m->overflow && m->plain_stacks[plain].id == UNKNOWN)
        m->plain_stacks[plain] =
            (plain_form){plain, TN_MIN(m->g->counts[count->first].left, m->plain_stacks[around->id].left)};
    return id;
}

// Puts a place on the list of work unless it was there.
static void reach(tn_matcher *m, uint64_t place)
{
    uint32_t at = hash64(place) % SEEN_MAX;
    for (; m->seen_stamp[at] == m->stamp; at = (at + 1) % SEEN_MAX)
        if (m->seen[at] == place) return;
    if (m->n_seen >= SEEN_MAX / 2) {
        m->overflow = true;
        return;
    }
    m->n_seen++;
    m->seen[at] = place;
    m->seen_stamp[at] = m->stamp;
    m->work[m->n_work++] = place;
}

static void begin_set(tn_matcher *m)
{
    if (++m->stamp == 0) {
        memset(m->seen_stamp, 0, SEEN_MAX * sizeof *m->seen_stamp);
        m->stamp = 1;
    }
    m->n_seen = m->n_work = m->n_found = 0;
    m->overflow = false;
}

// Follows all instructions that match no byte; places that wait for a byte, and the end, are added to
// `found`.
static void close_set(tn_matcher *m)
{
    while (m->n_work > 0 && !m->overflow) {
        uint64_t place = m->work[--m->n_work];
        int32_t pc = (int32_t)(place >> 32), stack = (int32_t)(uint32_t)place;
        const tn_ginstr *i = place == PLACE_END ? NULL : &m->g->code[pc];
        if (!i || i->op == TN_GOP_BYTE || i->op == TN_GOP_SET) {
            if (m->n_found == SET_MAX)
                m->overflow = true;
            else
                m->found[m->n_found++] = place;
            continue;
        }
        switch ((tn_gop)i->op) {
        case TN_GOP_SPLIT:
            reach(m, PLACE(i->x, stack));
            reach(m, PLACE(i->y, stack));
            break;
        case TN_GOP_JUMP:
            reach(m, PLACE(i->x, stack));
            break;
        case TN_GOP_CALL:
            reach(m, PLACE(i->x, i->tail ? stack : intern_stack(m, pc + 1, stack)));
            break;
        case TN_GOP_RETURN:
            reach(m, stack == 0 ? PLACE_END : PLACE(m->back[stack], m->rest[stack]));
            break;
        default:
            break;
        }
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

// Number of the set of the places in `found`, or FULL.
static int32_t intern_set(tn_matcher *m)
{
    if (m->overflow) return FULL;
    qsort(m->found, (size_t)m->n_found, sizeof *m->found, by_value);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t i = 0; i < m->n_found; i++)
        hash = (hash ^ m->found[i]) * 0x100000001b3u + hash64(m->found[i]);
    uint32_t at = hash64(hash) % (2 * SETS_MAX), n = (uint32_t)m->n_found;
    for (int32_t id; (id = m->set_table[at]) >= 0; at = (at + 1) % (2 * SETS_MAX))
        if (m->sets[id].n == n && memcmp(m->pool + m->sets[id].start, m->found, n * sizeof *m->found) == 0)
            return id;
    if (m->n_sets == SETS_MAX || m->n_pool + n > POOL_MAX) return FULL;
    memcpy(m->pool + m->n_pool, m->found, n * sizeof *m->found);
    m->sets[m->n_sets] = (place_set){m->n_pool, n, n > 0 && m->found[n - 1] == PLACE_END};
    m->plain_sets[m->n_sets] = (plain_form){UNKNOWN, INT32_MAX};
    m->n_pool += n;
    for (int32_t b = 0; b < 256; b++) m->moves[256 * m->n_sets + b] = m->n_found ? UNKNOWN : DEAD;
    m->set_table[at] = m->n_sets;
    return m->n_sets++;
}

static bool takes(const tn_matcher *m, const tn_ginstr *i, uint8_t byte)
{
    if (i->op == TN_GOP_BYTE) return byte >= i->lo && byte <= i->hi;
    return m->g->sets[i->x].bits[byte / 64] >> (byte % 64) & 1;
}

static int32_t move_slowly(tn_matcher *m, int32_t set, uint8_t byte)
{
    const place_set *s = &m->sets[set];
    begin_set(m);
    for (uint32_t k = 0; k < s->n; k++) {
        uint64_t place = m->pool[s->start + k];
        int32_t pc = (int32_t)(place >> 32);
        if (place != PLACE_END && takes(m, &m->g->code[pc], byte)) reach(m, PLACE(pc + 1, (uint32_t)place));
    }
    close_set(m);
    int32_t to = intern_set(m);
    if (to >= 0) m->moves[256 * set + byte] = to;
    return to;
}

// The set behind a byte, or FULL.
static inline int32_t move(tn_matcher *m, int32_t set, uint8_t byte)
{
    int32_t to = m->moves[256 * set + byte];
    return to != UNKNOWN ? to : move_slowly(m, set, byte);
}

// --- counts ------------------------------------------------------------------------------------------

static uint64_t plain_place(const tn_matcher *m, uint64_t place, int32_t *left)
{
    if (place == PLACE_END) return place;
    const tn_gcount *count = &m->g->counts[place >> 32];
    const plain_form *stack = &m->plain_stacks[(uint32_t)place];
    *left = TN_MIN(*left, TN_MIN(count->left, stack->left));
    return PLACE(count->first, stack->id);
}

// The plain form of a set. NULL: the tables are full.
static const plain_form *plain_of(tn_matcher *m, int32_t set)
{
    plain_form *p = &m->plain_sets[set];
    if (p->id != UNKNOWN) return p;
    const place_set s = m->sets[set];
    int32_t left = INT32_MAX;
    begin_set(m);
    for (uint32_t i = 0; i < s.n; i++) reach(m, plain_place(m, m->pool[s.start + i], &left));
    memcpy(m->found, m->work, (size_t)m->n_work * sizeof *m->found);
    m->n_found = m->n_work;
    int32_t id = intern_set(m);
    if (id == FULL) return NULL;
    *p = (plain_form){id, left};
    return p;
}

// --- tokens ------------------------------------------------------------------------------------------

static bool is_end(const tn_matcher *m, int32_t token)
{
    for (int32_t i = 0; i < m->trie->n_ends; i++)
        if (m->trie->ends[i] == token) return true;
    return false;
}

// The set behind a token, ENDED or FULL.
static int32_t move_token(tn_matcher *m, int32_t set, int32_t token)
{
    if (set == ENDED || token < 0 || token >= m->trie->n_tokens) return DEAD;
    if (is_end(m, token)) return m->sets[set].complete ? ENDED : DEAD;
    size_t n;
    const char *bytes = tn_vocab_piece(m->trie, token, &n);
    if (n == 0) return DEAD; // without text: never allowed
    for (size_t i = 0; i < n && set > 0; i++) set = move(m, set, (uint8_t)bytes[i]);
    return set;
}

static tn_status too_ambiguous(const tn_matcher *m)
{
    return tn_fail(m->ctx, TN_ERR_UNSUPPORTED,
                   "grammar: too many ways to read the text so far; write the grammar less ambiguous");
}

// Resets the tables: they contain only DEAD and the set at the beginning of a text.
static void restart(tn_matcher *m)
{
    memset(m->stack_table, 0, 2 * STACKS_MAX * sizeof *m->stack_table);
    memset(m->set_table, 0xff, 2 * SETS_MAX * sizeof *m->set_table);
    for (int32_t i = 0; i < MASKS; i++) m->masks[i].set = -1;
    m->n_stacks = 1;
    if (m->plain_stacks) m->plain_stacks[0] = (plain_form){0, INT32_MAX};
    m->n_pool = 0;
    m->n_sets = 0;
    begin_set(m);
    intern_set(m); // DEAD
}

// The list of calls in the emptied tables.
static int32_t move_stack(tn_matcher *m, int32_t old)
{
    int32_t n = 0, stack = 0;
    for (; old != 0; old = m->old_rest[old]) m->chain[n++] = m->old_back[old];
    while (n > 0) stack = intern_stack(m, m->chain[--n], stack);
    return stack;
}

// Empties the tables except for the current set.
static tn_status flush(tn_matcher *m)
{
    int32_t state = m->states[m->n_tokens], *back = m->back, *rest = m->rest;
    m->first_known = m->n_tokens;
    uint32_t n = state > 0 ? m->sets[state].n : 0;
    memcpy(m->work, m->pool + (n ? m->sets[state].start : 0), n * sizeof *m->work);
    m->back = m->old_back;
    m->rest = m->old_rest;
    m->old_back = back;
    m->old_rest = rest;
    restart(m);
    if (state <= 0) return TN_OK; // DEAD and ENDED do not depend on the tables
    for (uint32_t i = 0; i < n; i++) {
        uint64_t place = m->work[i];
        if (place != PLACE_END) place = PLACE(place >> 32, move_stack(m, (int32_t)(uint32_t)place));
        m->found[m->n_found++] = place;
    }
    m->states[m->n_tokens] = intern_set(m);
    if (m->states[m->n_tokens] > 0) return TN_OK;
    m->states[m->n_tokens] = DEAD;
    return too_ambiguous(m);
}

static tn_status begin_text(tn_matcher *m)
{
    restart(m);
    m->n_tokens = m->first_known = 0;
    begin_set(m);
    reach(m, PLACE(m->g->entry, 0));
    close_set(m);
    m->states[0] = intern_set(m);
    if (m->states[0] >= 0) return TN_OK;
    m->states[0] = DEAD;
    return too_ambiguous(m);
}

tn_status tn_matcher_accept(tn_matcher *m, int32_t token)
{
    tn_status status = TN_OK;
    if (m->n_tokens == m->max_tokens)
        return tn_fail(m->ctx, TN_ERR_STATE, "grammar: a text of more than %d tokens", (int)m->max_tokens);
    m->tokens[m->n_tokens] = token;
    int32_t to = move_token(m, m->states[m->n_tokens], token);
    if (to == FULL) {
        status = flush(m);
        if (status == TN_OK) to = move_token(m, m->states[m->n_tokens], token);
        if (status == TN_OK && to == FULL) status = too_ambiguous(m);
        if (status != TN_OK) return status;
    }
    m->states[++m->n_tokens] = to;
    return TN_OK;
}

// These tokens were read before and are read again; if that fails, no token is allowed.
void tn_matcher_truncate(tn_matcher *m, int32_t n)
{
    if (n < 0 || n >= m->n_tokens) return;
    if (n >= m->first_known) {
        m->n_tokens = n;
        return;
    }
    tn_status status = begin_text(m);
    while (status == TN_OK && m->n_tokens < n) status = tn_matcher_accept(m, m->tokens[m->n_tokens]);
    if (status == TN_OK) return;
    m->n_tokens = m->first_known = n;
    m->states[n] = DEAD;
}

int32_t tn_matcher_length(const tn_matcher *m)
{
    return m->n_tokens;
}

int32_t tn_matcher_n_tokens(const tn_matcher *m)
{
    return m->trie->n_tokens;
}

bool tn_matcher_complete(const tn_matcher *m)
{
    int32_t state = m->states[m->n_tokens];
    return state == ENDED || m->sets[state].complete;
}

// --- masks -------------------------------------------------------------------------------------------

static void allow(mask *k, int32_t token)
{
    k->bits[token / 64] |= (uint64_t)1 << (token % 64);
    k->any = true;
}

// Empties the tables; the path to the node at `depth` again, by the bytes on the way.
static tn_status walk_again(tn_matcher *m, const uint8_t *bytes, uint32_t depth)
{
    tn_status status = flush(m);
    if (status != TN_OK) return status;
    m->path[0] = m->states[m->n_tokens];
    for (uint32_t d = 1; d <= depth; d++) {
        m->path[d] = move(m, m->path[d - 1], bytes[d - 1]);
        if (m->path[d] == FULL) return too_ambiguous(m);
    }
    return TN_OK;
}

// Computes the tokens that are allowed now.
static tn_status walk(tn_matcher *m, mask *k)
{
    const tn_vocab_trie *t = m->trie;
    uint8_t bytes[TN_PIECE_MAX];
    int32_t flushes = 0;
    m->path[0] = m->states[m->n_tokens];
    for (uint32_t i = 0; i < t->n_nodes;) {
        const tn_trie_node *node = &t->nodes[i];
        uint32_t d = node->depth;
        bytes[d - 1] = node->byte;
        int32_t to = move(m, m->path[d - 1], node->byte);
        if (to == FULL) {
            if (++flushes > FLUSHES_MAX) return too_ambiguous(m);
            tn_status status = walk_again(m, bytes, d);
            if (status != TN_OK) return status;
            to = m->path[d];
        }
        if (to == DEAD) {
            i = node->end;
            continue;
        }
        m->path[d] = to;
        for (int32_t token = node->token; token >= 0; token = t->same[token]) allow(k, token);
        i++;
    }
    return TN_OK;
}

static void begin_mask(tn_matcher *m, mask *k, int32_t set)
{
    memset(k->bits, 0, m->n_words * sizeof *k->bits);
    k->any = false;
    k->set = -1; // until it is complete
    for (int32_t i = 0; m->sets[set].complete && i < m->trie->n_ends; i++) allow(k, m->trie->ends[i]);
}

// The mask of a plain set, without emptying tables. NULL: they are full.
static const mask *plain_mask(tn_matcher *m, int32_t set)
{
    mask *k = &m->masks[set % MASKS];
    if (k->set == set) return k;
    begin_mask(m, k, set);
    m->path[0] = set;
    for (uint32_t i = 0; i < m->trie->n_nodes;) {
        const tn_trie_node *node = &m->trie->nodes[i];
        int32_t to = move(m, m->path[node->depth - 1], node->byte);
        if (to == FULL) return NULL;
        m->path[node->depth] = to;
        for (int32_t token = node->token; token >= 0 && to != DEAD; token = m->trie->same[token])
            allow(k, token);
        i = to == DEAD ? node->end : i + 1;
    }
    k->set = set;
    return k;
}

static void set_tokens(const tn_matcher *m, mask *k, const tn_trie_node *node, bool allowed)
{
    for (int32_t token = node->token; token >= 0; token = m->trie->same[token]) {
        uint64_t bit = (uint64_t)1 << (token % 64);
        k->bits[token / 64] = allowed ? k->bits[token / 64] | bit : k->bits[token / 64] & ~bit;
    }
}

// 1: no text of up to `height` bytes distinguishes the two sets; 0: one may; FULL.
static int32_t same_within(tn_matcher *m, int32_t a, int32_t b, uint32_t height)
{
    if (a == b) return 1;
    if (height == TN_TRIE_TALL) return 0;
    const plain_form *p = plain_of(m, a), *q = p ? plain_of(m, b) : NULL;
    if (!p || !q) return FULL;
    return p->id == q->id && (int64_t)height < TN_MIN(p->left, q->left);
}

// Corrects the mask of the plain set where `set` differs. False: the tables are full.
static bool walk_beside(tn_matcher *m, int32_t set, const mask *plain, mask *k)
{
    const tn_vocab_trie *t = m->trie;
    memcpy(k->bits, plain->bits, m->n_words * sizeof *k->bits);
    m->path[0] = set;
    m->plain_path[0] = plain->set;
    for (uint32_t i = 0; i < t->n_nodes;) {
        const tn_trie_node *node = &t->nodes[i];
        uint32_t d = node->depth;
        int32_t to = move(m, m->path[d - 1], node->byte), beside = move(m, m->plain_path[d - 1], node->byte);
        int32_t same = to == FULL || beside == FULL ? FULL : same_within(m, to, beside, node->height);
        if (same == FULL) return false;
        m->path[d] = to;
        m->plain_path[d] = beside;
        uint32_t end = same || to == DEAD ? node->end : i + 1;
        for (; i < end && !same; i++) set_tokens(m, k, &t->nodes[i], to != DEAD);
        i = end;
    }
    k->any = false;
    for (size_t w = 0; w < m->n_words && !k->any; w++) k->any = k->bits[w] != 0;
    return true;
}

// The mask by way of the plain set; NULL: it has to be computed directly.
static const mask *shared_mask(tn_matcher *m, int32_t set)
{
    const plain_form *p = m->plain_stacks ? plain_of(m, set) : NULL;
    if (!p || p->id == set) return NULL;
    const mask *plain = plain_mask(m, p->id);
    int32_t same = plain ? same_within(m, set, p->id, m->trie->height) : FULL;
    if (same == FULL) return NULL;
    if (same) return plain;
    return walk_beside(m, set, plain, &m->near) ? &m->near : NULL;
}

static tn_status own_mask(tn_matcher *m, int32_t set, const mask **out)
{
    mask *k = &m->masks[set % MASKS];
    begin_mask(m, k, set);
    tn_status status = set == DEAD ? TN_OK : walk(m, k);
    if (status != TN_OK) return status;
    set = m->states[m->n_tokens]; // numbers change when tables are emptied
    k->set = set == ENDED ? DEAD : set;
    if (k != &m->masks[k->set % MASKS]) k->set = -1; // valid for this call only
    *out = k;
    return TN_OK;
}

tn_status tn_matcher_mask(tn_matcher *m, const uint64_t **bits, bool *any)
{
    int32_t set = m->states[m->n_tokens] == ENDED ? DEAD : m->states[m->n_tokens];
    const mask *k = &m->masks[set % MASKS];
    if (k->set != set) k = shared_mask(m, set);
    tn_status status = k ? TN_OK : own_mask(m, set, &k);
    if (status != TN_OK) return status;
    *bits = k->bits;
    *any = k->any;
    return TN_OK;
}

tn_status tn_matcher_try(tn_matcher *m, const char *bytes, size_t n, int32_t *result)
{
    int32_t set = m->states[m->n_tokens];
    for (size_t i = 0; i < n && set > 0; i++) {
        int32_t to = move(m, set, (uint8_t)bytes[i]);
        if (to == FULL) {
            tn_status status = flush(m);
            if (status != TN_OK) return status;
            to = m->states[m->n_tokens];
            for (size_t k = 0; k <= i && to > 0; k++) to = move(m, to, (uint8_t)bytes[k]);
            if (to == FULL) return too_ambiguous(m);
        }
        set = to;
    }
    *result = set <= 0 ? -1 : m->sets[set].complete;
    return TN_OK;
}

// --- life --------------------------------------------------------------------------------------------

// Not zeroed, because most of these 12 MB are never used: all is written before it is read, but for
// seen_stamp.
static void *array(tn_context *ctx, size_t n, size_t size)
{
    return tn_alloc(ctx, n * size);
}

static tn_status reserve(tn_matcher *m)
{
    tn_context *c = m->ctx;
    size_t n = (size_t)m->max_tokens;
    bool ok =
        (m->back = array(c, STACKS_MAX, sizeof *m->back)) &&
        (m->rest = array(c, STACKS_MAX, sizeof *m->rest)) &&
        (m->old_back = array(c, STACKS_MAX, sizeof *m->old_back)) &&
        (m->old_rest = array(c, STACKS_MAX, sizeof *m->old_rest)) &&
        (m->chain = array(c, STACKS_MAX, sizeof *m->chain)) &&
        (m->stack_table = array(c, 2 * STACKS_MAX, sizeof *m->stack_table)) &&
        (m->pool = array(c, POOL_MAX, sizeof *m->pool)) && (m->sets = array(c, SETS_MAX, sizeof *m->sets)) &&
        (m->set_table = array(c, 2 * SETS_MAX, sizeof *m->set_table)) &&
        (m->moves = array(c, SETS_MAX * 256, sizeof *m->moves)) &&
        (m->plain_sets = array(c, SETS_MAX, sizeof *m->plain_sets)) &&
        (!m->g->counts || (m->plain_stacks = array(c, STACKS_MAX, sizeof *m->plain_stacks))) &&
        (m->near.bits = array(c, m->n_words, sizeof *m->near.bits)) &&
        (m->seen = array(c, SEEN_MAX, sizeof *m->seen)) &&
        (m->seen_stamp = tn_calloc(c, SEEN_MAX, sizeof *m->seen_stamp)) &&
        (m->work = array(c, SEEN_MAX, sizeof *m->work)) && (m->found = array(c, SET_MAX, sizeof *m->found)) &&
        (m->tokens = array(c, n, sizeof *m->tokens)) && (m->states = array(c, n + 1, sizeof *m->states));
    for (int32_t i = 0; i < MASKS && ok; i++)
        ok = (m->masks[i].bits = array(c, m->n_words, sizeof *m->masks[i].bits)) != NULL;
    return ok ? TN_OK : TN_ERR_MEMORY;
}

tn_status tn_matcher_create(tn_context *ctx, const tn_grammar *grammar, const tn_vocab_trie *trie,
                            int32_t max_tokens, tn_matcher **out)
{
    tn_matcher *m = tn_calloc(ctx, 1, sizeof *m);
    if (!m) return TN_ERR_MEMORY;
    *m = (tn_matcher){.ctx = ctx, .g = grammar, .trie = trie, .max_tokens = max_tokens};
    m->n_words = ((size_t)trie->n_tokens + 63) / 64;
    tn_status status = reserve(m);
    if (status == TN_OK) status = begin_text(m);
    if (status != TN_OK)
        tn_matcher_destroy(&m);
    else
        *out = m;
    return status;
}

void tn_matcher_destroy(tn_matcher **matcher)
{
    if (!matcher || !*matcher) return;
    tn_matcher *m = *matcher;
    for (int32_t i = 0; i < MASKS; i++) tn_free(m->ctx, m->masks[i].bits);
    void *arrays[] = {m->back,        m->rest,       m->old_back,     m->old_rest,  m->chain,
                      m->stack_table, m->pool,       m->sets,         m->set_table, m->moves,
                      m->seen,        m->seen_stamp, m->work,         m->found,     m->tokens,
                      m->states,      m->plain_sets, m->plain_stacks, m->near.bits};
    for (size_t i = 0; i < TN_COUNT(arrays); i++) tn_free(m->ctx, arrays[i]);
    tn_free(m->ctx, m);
    *matcher = NULL;
}
