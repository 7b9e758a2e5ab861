// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Unigram vocabularies (Kudo 2018): of all ways to cut a text into tokens the one with the highest sum of
// scores, found by dynamic programming over the bytes (Viterbi 1967). Before it the text is normalised by the
// charsmap of the file: a trie in a double array (Aoki 1989) of the texts to replace, and the replacements.
#include "core/fp16.h"
#include "models/text/tokenizer/tokenizer_impl.h"
#include "models/text/tokenizer/unicode.h"

#include <math.h>
#include <string.h>

enum {
    MATCH_MAX = 256,     // bytes that a charsmap replaces at once; files have up to about 20
    REPLACED_MAX = 1024, // bytes of a replacement; files have up to about 40
    // A normalised text is at most three times as long as the text, which marks for spaces need, and this
    // more. NFKC makes texts up to eleven times as long.
    NORMALISED_MORE = 1 << 20,
    UNKNOWN_MAX = 4, // bytes of a character
};
static const double unknown_penalty = 10.0; // below the least score

// --- loading -----------------------------------------------------------------------------------------

static tn_status load_scores(tn_tokenizer *t, const tn_gguf *gguf)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.scores");
    if (kv != NULL && (kv->type != TN_GGUF_ARRAY || kv->count != (uint64_t)t->n_tokens))
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.scores: %llu values for %d tokens",
                       (unsigned long long)kv->count, (int)t->n_tokens);
    t->scores = tn_arena_array(&t->arena, (size_t)t->n_tokens, sizeof *t->scores);
    if (t->scores == NULL) return TN_ERR_MEMORY;
    double least = 0.0;
    bool any = false;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        double score = 0.0;
        tn_status status = kv == NULL ? TN_OK : tn_gguf_array_f64(gguf, kv, (uint64_t)i, &score);
        if (status != TN_OK) return status;
        if (!isfinite(score))
            return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.scores: value %d is not finite", (int)i);
        t->scores[i] = t->tokens[i].type == TN_TOKEN_USER ? 0.0 : score;
        if (t->tokens[i].type != TN_TOKEN_NORMAL) continue;
        least = any ? fmin(least, score) : score;
        any = true;
    }
    t->unknown_score = least - unknown_penalty;
    return TN_OK;
}

// Fields of a node: where its children are, the byte that leads to it, whether a key ends at it; of the child
// with byte 0: where the replacement is.
static uint32_t node_at(const tn_charsmap *m, uint32_t i)
{
    return tn_load_u32(m->nodes + (size_t)4 * i);
}

static uint32_t children(uint32_t node)
{
    return node >> 10 << ((node & 0x200u) >> 6);
}

// Whether every key leads to a replacement that ends inside of the texts. Nodes with the highest bit hold
// replacements.
static tn_status check_charsmap(const tn_tokenizer *t)
{
    const tn_charsmap *m = &t->charsmap;
    for (uint32_t i = 0; i < m->n_nodes; i++) {
        uint32_t node = node_at(m, i);
        if (node & 0x80000000u || !(node & 0x100u)) continue;
        uint32_t child = i ^ children(node);
        size_t at = child < m->n_nodes ? node_at(m, child) & 0x7fffffffu : SIZE_MAX;
        size_t capacity = at < m->texts_size ? TN_MIN(m->texts_size - at, (size_t)REPLACED_MAX) : 0;
        if (capacity == 0 || memchr(m->texts + at, 0, capacity) == NULL)
            return tn_fail(t->ctx, TN_ERR_FORMAT,
                           "tokenizer.ggml.precompiled_charsmap: node %u has no replacement", (unsigned)i);
    }
    return TN_OK;
}

// u32 size of the nodes in bytes, the nodes as u32, texts with a zero byte behind each.
static tn_status load_charsmap(tn_tokenizer *t, const tn_gguf *gguf)
{
    const tn_gguf_kv *kv = tn_gguf_find(gguf, "tokenizer.ggml.precompiled_charsmap");
    if (kv == NULL) return TN_OK;
    bool bytes = kv->type == TN_GGUF_ARRAY && (kv->elem_type == TN_GGUF_U8 || kv->elem_type == TN_GGUF_I8);
    if (!bytes)
        return tn_fail(t->ctx, TN_ERR_FORMAT, "tokenizer.ggml.precompiled_charsmap is no array of bytes");
    if (kv->count == 0) return TN_OK;
    uint32_t size = 0;
    if (kv->count >= 4) size = tn_load_u32(kv->data);
    if (kv->count < 8 || size < 4 || size % 4 != 0 || size > kv->count - 4)
        return tn_fail(t->ctx, TN_ERR_FORMAT,
                       "tokenizer.ggml.precompiled_charsmap: %u bytes of nodes in %llu bytes", (unsigned)size,
                       (unsigned long long)kv->count);
    t->charsmap = (tn_charsmap){.nodes = kv->data + 4,
                                .n_nodes = size / 4,
                                .texts = (const char *)kv->data + 4 + size,
                                .texts_size = (size_t)(kv->count - 4 - size)};
    return check_charsmap(t);
}

tn_status tn_ugm_load(tn_tokenizer *t, const tn_gguf *gguf)
{
    tn_status status = load_scores(t, gguf);
    if (status == TN_OK) status = load_charsmap(t, gguf);
    if (status == TN_OK)
        status = tn_gguf_get_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces", &t->merge_spaces);
    if (status != TN_OK) return status;
    tn_prefix_entry *entries = tn_arena_array(&t->arena, (size_t)t->n_tokens, sizeof *entries);
    if (entries == NULL) return TN_ERR_MEMORY;
    size_t n = 0;
    for (int32_t i = 0; i < t->n_tokens; i++) {
        int32_t type = t->tokens[i].type;
        bool text = type == TN_TOKEN_NORMAL || type == TN_TOKEN_USER || type == TN_TOKEN_UNUSED;
        if (text) entries[n++] = (tn_prefix_entry){t->map.texts[i], i};
    }
    tn_prefix_map_init(&t->prefixes, entries, n);
    return TN_OK;
}

// --- normalising -------------------------------------------------------------------------------------

// The longest key that begins the text: its length and its replacement. 0: none.
static size_t longest_match(const tn_charsmap *m, const char *text, size_t n, uint32_t *value)
{
    size_t best = 0;
    if (m->n_nodes == 0) return 0;
    uint32_t i = children(node_at(m, 0));
    for (size_t k = 0; k < n && k < MATCH_MAX; k++) {
        uint8_t c = (uint8_t)text[k];
        if (c == 0) break;
        i ^= c;
        if (i >= m->n_nodes) break;
        uint32_t node = node_at(m, i);
        if ((node & 0x800000ffu) != c) break;
        i ^= children(node);
        if (!(node & 0x100u)) continue; // check_charsmap knows the other ones
        *value = node_at(m, i) & 0x7fffffffu;
        best = k + 1;
    }
    return best;
}

// The next piece of the normalised text; returns how many bytes of the input it replaces.
static size_t next_piece(const tn_charsmap *m, const char *text, size_t n, tn_gguf_str *out)
{
    static const char replacement[] = "\xef\xbf\xbd"; // U+FFFD
    uint32_t value = 0;
    size_t taken = longest_match(m, text, n, &value);
    if (taken > 0) {
        *out = (tn_gguf_str){m->texts + value, strlen(m->texts + value)};
        return taken;
    }
    uint32_t cp = tn_utf8_decode(text, n, &taken);
    bool invalid = cp == TN_UNICODE_REPLACEMENT && taken == 1;
    *out = invalid ? (tn_gguf_str){replacement, 3} : (tn_gguf_str){text, taken};
    return taken;
}

// Text with marks for spaces in e->text. User-defined tokens were cut out before.
static tn_status normalise(tn_encoder *e, const char *text, size_t n)
{
    const tn_tokenizer *t = e->t;
    bool in_word = false, begun = false;
    tn_strbuf_clear(&e->text);
    for (size_t at = 0, taken; at < n; at += taken) {
        tn_gguf_str piece;
        taken = next_piece(&t->charsmap, text + at, n - at, &piece);
        for (size_t i = 0; i < piece.size; i++) {
            bool space = piece.data[i] == ' ';
            bool mark =
                space ? !t->merge_spaces : !in_word && (t->merge_spaces || (t->add_space_prefix && !begun));
            if (mark) tn_strbuf_append(&e->text, TN_SPACE_MARK, TN_SPACE_MARK_SIZE);
            if (mark && !space) begun = true;
            in_word = !space;
            if (!space) tn_strbuf_append(&e->text, &piece.data[i], 1);
        }
        if (e->text.size > 3 * n + NORMALISED_MORE)
            return tn_fail(t->ctx, TN_ERR_ARG,
                           "a text of %zu bytes becomes too long to tokenize when it is normalised", n);
    }
    return e->text.status;
}

// --- the best way ------------------------------------------------------------------------------------

// The scores of the best ways to the offsets from `at` on, as far as a token reaches: a ring, in which that
// of `at` stands at `first`.
typedef struct ring {
    double *scores;
    size_t count, first;
} ring;

// A way of `score` to the offset `at` + `size`, with a token, or -size for a character that is unknown.
static void offer(tn_encoder *e, ring *r, size_t at, size_t size, int32_t id, double score)
{
    size_t slot = r->first + size < r->count ? r->first + size : r->first + size - r->count;
    if (score <= r->scores[slot]) return;
    r->scores[slot] = score;
    e->ways[at + size] = id;
}

// Goes on by `size` offsets; those that were passed become offsets that nothing reaches yet.
static void pass(ring *r, size_t size)
{
    for (; size > 0; size--) {
        r->scores[r->first++] = -INFINITY;
        if (r->first == r->count) r->first = 0;
    }
}

// Best ways to each offset of e->text, as what ends there: a token, or -1 to -4 for so many bytes of an
// unknown character. Only ends of whole characters are continued; each of them can be reached.
static void find_ways(tn_encoder *e, ring *r)
{
    const tn_tokenizer *t = e->t;
    const char *text = e->text.data;
    size_t n = e->text.size;
    for (size_t i = 0; i < r->count; i++) r->scores[i] = -INFINITY;
    for (size_t i = 0; i <= n; i++) e->ways[i] = -1;
    r->scores[0] = 0.0;
    for (size_t at = 0, size; at < n; at += size) {
        size = TN_MIN(tn_utf8_size(text[at]), n - at);
        double score = r->scores[r->first];
        tn_prefix_walk walk = tn_prefix_begin(&t->prefixes);
        int32_t id;
        bool covered = false;
        while (at + walk.depth < n && tn_prefix_step(&t->prefixes, &walk, text[at + walk.depth], &id)) {
            if (id < 0) continue;
            covered = covered || walk.depth == size;
            offer(e, r, at, walk.depth, id, score + t->scores[id]);
        }
        if (!covered) offer(e, r, at, size, -(int32_t)size, score + t->unknown_score);
        pass(r, size);
    }
}

static size_t before(const tn_encoder *e, size_t at)
{
    int32_t id = e->ways[at];
    return at - (id < 0 ? (size_t)-id : e->t->map.texts[id].size);
}

// Walks back, keeps where each token ends, then emits from the start; neighbours that are unknown are one.
static tn_status emit(tn_encoder *e)
{
    int32_t unknown = e->t->special[TN_SPECIAL_UNK];
    size_t first = e->out->count, n_ids = 0;
    for (size_t at = e->text.size; at > 0; at = before(e, at)) n_ids++;
    tn_status status = tn_tokens_reserve(e->out, n_ids);
    bool last_unknown = false;
    for (size_t at = e->text.size; at > 0 && status == TN_OK; at = before(e, at)) {
        bool is_unknown = e->ways[at] < 0 || e->ways[at] == unknown;
        int32_t id = is_unknown ? unknown : e->ways[at];
        if (id >= 0 && !(is_unknown && last_unknown)) status = tn_tokens_push(e->out, id);
        last_unknown = is_unknown;
    }
    for (size_t i = first, k = e->out->count; i + 1 < k; i++) {
        int32_t swap = e->out->ids[i];
        e->out->ids[i] = e->out->ids[--k];
        e->out->ids[k] = swap;
    }
    return status;
}

tn_status tn_ugm_encode(tn_encoder *e, const char *text, size_t n, bool at_start)
{
    TN_UNUSED(at_start);
    tn_status status = normalise(e, text, n);
    if (status != TN_OK || e->text.size == 0) return status;
    void *array = e->ways;
    status = tn_encoder_reserve(e, &array, &e->ways_capacity, e->text.size + 1, sizeof *e->ways);
    e->ways = array;
    if (status != TN_OK) return status;
    ring r = {.count = TN_MIN(TN_MAX(e->t->text_max, (size_t)UNKNOWN_MAX), e->text.size) + 1};
    r.scores = tn_alloc(e->ctx, r.count * sizeof *r.scores);
    if (r.scores == NULL) return TN_ERR_MEMORY;
    find_ways(e, &r);
    tn_free(e->ctx, r.scores);
    return emit(e);
}
