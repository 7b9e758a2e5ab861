// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions: a model with its cache; feeding tokens, reading logits, generating text.
//
//     tn_session *s;
//     tn_session_create(model, NULL, &s);
//     tn_generation *g;
//     tn_generation_create(s, NULL, &g);
//     tn_generation_prompt(g, ids, n_ids);
//     for (;;) {
//         tn_piece piece = {.struct_size = sizeof piece};
//         if (tn_generation_step(g, &piece) != TN_OK) ...
//         fwrite(piece.text, 1, piece.n_text, stdout);
//         if (piece.stop != TN_STOP_NONE) break;
//     }
//     tn_generation_destroy(&g);
//     tn_session_destroy(&s);
//
// A session belongs to one thread at a time; only tn_session_cancel may come from any thread or from a
// signal handler.
#ifndef TENON_SESSION_H
#define TENON_SESSION_H

#include <tenon/graph.h>
#include <tenon/model.h>
#include <tenon/precision.h>

TN_EXTERN_C_BEGIN

typedef struct tn_session tn_session;

// The kind of output rows of an eval. Encoders and other models without a causal mask have no logits: LOGITS
// means HIDDEN for them. They have no cache either: every feed is a whole text of at most min(n_ctx, n_batch)
// tokens, the texts of one eval have at most n_batch tokens together, and sequences stay empty.
enum {
    TN_RESULT_LOGITS, // n_vocab values
    TN_RESULT_HIDDEN, // n_embd values: the last layer, behind the last norm of the model
    TN_RESULT_SCORES  // of the classification head, one per class
};

typedef struct tn_session_config {
    size_t struct_size;
    int32_t n_ctx;       // tokens that the cache holds in all; 0 (default): min(trained context, 4096)
    // tokens that are evaluated at a time, 1..65536; 0 (default): a value for the device, 512 on a CPU and
    // 2048 on GPUs that hold all layers and have enough memory for it; tn_session_n_batch returns it
    int32_t n_batch;
    int32_t n_seq;       // sequences, 1..256; default 1
    tn_dtype cache_type_k, cache_type_v; // F32, F16 (default), BF16, Q8_0, Q4_0
    int32_t fusion;      // default 1
    tn_progress_fn progress; // tokens done and in all while a prompt is fed; default NULL
    void *progress_user;
    int32_t result;      // TN_RESULT_*: what output rows hold; default TN_RESULT_LOGITS
    // models with recurrent layers: states kept so that sequences can be cut and branched there, besides two
    // for each sequence; 0..1024, default 4. A cut at another place evaluates the tokens since the nearest
    // state again, together with the next tokens
    int32_t n_checkpoints;
    // TN_PRECISION_* (precision.h) of all matmuls; default TN_PRECISION_auto. Devices that hold layers must
    // have it, else TN_ERR_UNSUPPORTED
    int32_t precision;
    // tokens of one sequence at most, 1..n_ctx; 0 (default): n_ctx. Where many sequences share a cache, a
    // smaller value keeps tables short, and n_ctx may pass what the model was trained for
    int32_t n_ctx_seq;
    // LoRA adapters of this model (adapter.h), 0..TN_SESSION_ADAPTERS; default none. The session takes
    // references
    int32_t n_adapters;
    const struct tn_adapter_use *adapters;
    // 1: layers with a sliding window keep K and V of the window and of one step, where that is less memory;
    // a sequence that is cut further back evaluates its tokens again, together with the next ones, and an
    // engine keeps the prefixes of half as many ended texts as it has sequences. Default 0: the whole context
    int32_t free_windows;
    int32_t reserved_windows;
} tn_session_config;
TN_API void tn_session_config_init(tn_session_config *cfg, size_t struct_size);
static inline void tn_session_config_default(tn_session_config *cfg)
{
    tn_session_config_init(cfg, sizeof *cfg);
}

// Bytes on one device. `weights` in host memory are pages of the mapped file; on a device, with those that it
// keeps in another form as well, at most, for all sessions of one precision (CUDA in fp8). `total` is the sum
// of all. Never changes.
typedef struct tn_device_memory {
    const char *device; // its name, valid as long as the context
    uint64_t weights, cache, arena, scratch, other, total;
} tn_device_memory;

// Of a tn_device_memory what has a purpose of its own: `converted` of `weights` is what the device keeps in
// another form, the others of arena, scratch and other are for selecting tokens there.
typedef struct tn_device_memory_parts {
    uint64_t converted, sampling_arena, sampling_scratch, sampling_other;
} tn_device_memory_parts;

// Bytes that a session will need: cache, activations, kernel scratch, inputs, host copies.
enum { TN_MEMORY_DEVICES = 8 }; // at most in a tn_session_memory
typedef struct tn_session_memory {
    size_t struct_size;                           // set by the caller
    uint64_t cache, arena, scratch, other, total; // on all devices, without the weights
    int32_t n_devices;                            // at least 1
    int32_t reserved;
    tn_device_memory devices[TN_MEMORY_DEVICES];  // the same by device, the host last
    tn_device_memory_parts parts[TN_MEMORY_DEVICES]; // of `devices`
} tn_session_memory;
// Plans without allocating the cache; works on metadata-only models. cfg may be NULL.
TN_API TN_MUST_USE tn_status tn_session_predict(tn_model *model, const tn_session_config *cfg,
                                                tn_session_memory *out);

// cfg may be NULL. All memory is reserved here: later calls never run out of it. Sequences that may become
// longer than the model was trained for raise TN_EVENT_CONTEXT_BEYOND_TRAINING.
// TN_ERR_ARG, TN_ERR_MEMORY, TN_ERR_STATE (metadata-only model), TN_ERR_UNSUPPORTED.
TN_API TN_MUST_USE tn_status tn_session_create(tn_model *model, const tn_session_config *cfg,
                                               tn_session **out);
// What a session has: bytes of its buffers, as they were allocated, in the terms of tn_session_predict.
// `other` is without the objects of the host, which tn_context_memory counts with all else; `weights` has
// what the device keeps in another form up to now: plans that run for the first time may add to it.
TN_API TN_MUST_USE tn_status tn_session_memory_get(const tn_session *session, tn_session_memory *out);
TN_API void tn_session_destroy(tn_session **session);
TN_API int32_t tn_session_n_ctx(const tn_session *session);
TN_API int32_t tn_session_n_ctx_seq(const tn_session *session);
TN_API int32_t tn_session_n_batch(const tn_session *session);
// Values in an output row, and what they are (TN_RESULT_*).
TN_API int32_t tn_session_width(const tn_session *session);
TN_API int32_t tn_session_result(const tn_session *session);

enum { TN_OUTPUT_NONE, TN_OUTPUT_LAST, TN_OUTPUT_ALL, TN_OUTPUT_FIRST };
typedef struct tn_feed {
    size_t struct_size;    // sizeof(tn_feed)
    int32_t seq;           // 0 .. n_seq-1
    int32_t n_tokens;
    const int32_t *tokens;
    int32_t outputs;       // TN_OUTPUT_*: the tokens for which there are output rows
    int32_t reserved;
} tn_feed;
// Appends tokens to one or more different sequences in one pass; together at most n_batch tokens.
// On any failure the sequences are as before. TN_ERR_CONTEXT_FULL: the cache has not enough free blocks;
// TN_ERR_ARG: a token outside the vocabulary, or a bad sequence; TN_ERR_CANCELLED.
TN_API TN_MUST_USE tn_status tn_session_eval(tn_session *session, const tn_feed *feeds, int32_t n_feeds);
// Appends any number of tokens to one sequence, n_batch at a time; logits of the last token are kept.
// Cancelled or failed: the sequence keeps the tokens of complete batches.
TN_API TN_MUST_USE tn_status tn_session_feed(tn_session *session, int32_t seq, const int32_t *tokens,
                                             int32_t n);
// Logits (or what `result` says) of output row i of the last eval, in the order of the feeds:
// tn_session_width floats, valid until the next call. NULL if there is no such row.
TN_API const float *tn_session_logits(tn_session *session, int32_t i);
// The most probable token of output row i, the first one if several, and the natural logarithm of its
// probability (logprob may be NULL). Devices with memory of their own compute it, and logits are not copied
// to the host. TN_ERR_STATE: there is no such row; TN_ERR_INTERNAL: the logits are not finite.
TN_API TN_MUST_USE tn_status tn_session_best(tn_session *session, int32_t i, int32_t *token, float *logprob);
TN_API int32_t tn_session_n_outputs(const tn_session *session);
// Tokens in a sequence.
TN_API int32_t tn_session_length(const tn_session *session, int32_t seq);
// Cuts a sequence to n tokens (0: empties it). Its cache blocks become free, and the last logits are no
// longer available. With recurrent layers the next step starts from the nearest state that was kept, and
// first evaluates the tokens from there to n again.
TN_API TN_MUST_USE tn_status tn_session_truncate(tn_session *session, int32_t seq, int32_t n);
// Makes sequence `to` a copy of the first n tokens of `from`, with its scales of adapters. Full blocks are
// shared, not copied.
TN_API TN_MUST_USE tn_status tn_session_branch(tn_session *session, int32_t from, int32_t to, int32_t n);
// Copies up to n token ids of a sequence from position `first` on to `out`; returns how many there were.
TN_API int32_t tn_session_tokens(const tn_session *session, int32_t seq, int32_t first, int32_t *out,
                                 int32_t n);
// Makes `seq` hold exactly the longest prefix of these tokens that any sequence of the session with the same
// scales of adapters holds. Whole blocks are shared, not copied. *n_reused: its length, 0 to n; feed the
// rest. To get the logits of the last token, call this with n one below the number of tokens, so that at
// least that token is fed.
TN_API TN_MUST_USE tn_status tn_session_reuse(tn_session *session, int32_t seq, const int32_t *tokens,
                                              int32_t n, int32_t *n_reused);
// Writes the contents of all sequences (token ids, keys and values) to a file, complete or not at all. The
// file can be loaded by sessions of the same model with the same types of the cache and the same adapters and
// scales, on any device, if their context is large enough. Samplers and logits are not saved. TN_ERR_IO,
// TN_ERR_MEMORY, TN_ERR_DEVICE, TN_ERR_UNSUPPORTED (sequences differ in their scales of adapters).
TN_API TN_MUST_USE tn_status tn_session_save(tn_session *session, const char *path);
// Replaces the contents of all sequences by those of a saved session. On failure the session is unchanged, or
// empty if the device failed while the state was written. TN_ERR_FORMAT: no session file, or damaged;
// TN_ERR_UNSUPPORTED: of a newer version, or the sizes of the contexts lead to different rope factors;
// TN_ERR_MODEL: of another model or other adapters; TN_ERR_TYPE: other types of the cache;
// TN_ERR_CONTEXT_FULL: more tokens or sequences than this session can hold; TN_ERR_IO, TN_ERR_DEVICE.
TN_API TN_MUST_USE tn_status tn_session_load(tn_session *session, const char *path);
// The same with bytes in memory, freed by tn_text_free (graph.h).
TN_API TN_MUST_USE tn_status tn_session_save_memory(tn_session *session, char **bytes, size_t *n);
TN_API TN_MUST_USE tn_status tn_session_load_memory(tn_session *session, const void *bytes, size_t n);
// on = 1: the running and every following eval ends with TN_ERR_CANCELLED, until on = 0.
// May be called from any thread and from a signal handler.
TN_API void tn_session_cancel(tn_session *session, int32_t on);

// Times of the steps of the last eval, for profiles. on = 1 starts recording.
TN_API void tn_session_profile(tn_session *session, int32_t on);
// Step i of the plan used last: op, kernel, value name, and its time summed over the evals since recording
// was switched on (or this plan came into use). Returns 1, 0 past the end, or a negative status.
typedef struct tn_step_time {
    size_t struct_size; // set by the caller
    const char *op, *kernel, *name;
    uint64_t ns;
} tn_step_time;
TN_API int32_t tn_session_step_time(const tn_session *session, int32_t i, tn_step_time *out);
// The plan that tn_session_step_time gives the times of, for tn_plan_step_get; NULL if nothing was timed. It
// is borrowed until the next eval.
TN_API const tn_plan *tn_session_plan_get(const tn_session *session);
// The plan of a pass with n tokens of n_seq sequences, of each of which one result is wanted. It works on
// metadata-only models and reads no weights. cfg may be NULL; n_seq at most that of cfg.
TN_API TN_MUST_USE tn_status tn_model_plan_create(tn_model *model, const tn_session_config *cfg,
                                                  int32_t n_tokens, int32_t n_seq, tn_plan **out);
// The plan for n tokens of one sequence as text (format: TN_PLAN_* of graph.h); works on metadata-only
// models, reads no weights. cfg may be NULL; freed by tn_text_free.
TN_API TN_MUST_USE tn_status tn_model_plan_dump(tn_model *model, const tn_session_config *cfg,
                                                int32_t n_tokens, int32_t format, char **out);
// Nanoseconds of host work per decode step (inputs, submission, reading), without any kernel.
TN_API TN_MUST_USE tn_status tn_model_host_overhead(tn_model *model, const tn_session_config *cfg,
                                                    double *ns_per_step);

// --- sampling --------------------------------------------------------------------------------------

// From logits to a token. Ranges and defaults: sampling.def. Sources of the formulas:
// models/run/sampling/sampler.c.
typedef struct tn_sampling {
    size_t struct_size;
    const char *samplers;  // stages in the order they run, separated by ';'. NULL (default):
                           // "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"
    float temperature;     // 0: greedy
    int32_t top_k;         // 0: off
    float top_p;           // 1: off
    float min_p;           // 0: off
    float typical_p;       // 1: off
    float top_n_sigma;     // 0 or less: off; keeps logits within so many standard deviations of the best
    float xtc_probability; // 0: off; probability that the most probable tokens are excluded
    // tokens with at least this probability are excluded, except the least probable one; above 0.5: off
    float xtc_threshold;
    float dynatemp_range;  // 0: off; the temperature follows the entropy within +- this
    float dynatemp_exponent;
    float repeat_penalty;  // 1: off; divides positive and multiplies negative logits
    float presence_penalty, frequency_penalty; // 0: off; subtracted from logits
    int32_t penalty_last_n; // number of last tokens that penalties consider; -1: all
    // 0: off; tokens that prolong a repetition lose multiplier * base ^ (length - allowed)
    float dry_multiplier;
    float dry_base;
    int32_t dry_allowed_length; // in tokens
    int32_t dry_penalty_last_n; // number of last tokens that DRY considers; -1: all, 0: off
    const char *const *dry_breakers; // texts that end a repetition, 1 to 64 bytes each
    int32_t n_dry_breakers; // 0..64; -1 (default): "\n" ":" "\"" "*"
    int32_t mirostat;       // 2: Mirostat 2 in place of the stages from top_n_sigma to xtc; 0 (default): off
    float mirostat_tau, mirostat_eta; // target surprise in bits, learning rate
    uint64_t seed;         // same seed, same text; default 0 is a seed like any other
    const int32_t *bias_tokens; // logit bias: n_bias pairs, read when the generation is created
    const float *bias_values;
    int32_t n_bias;
    int32_t n_logprobs;    // how many of the most probable tokens each piece lists
} tn_sampling;
TN_API void tn_sampling_init(tn_sampling *s, size_t struct_size);
static inline void tn_sampling_default(tn_sampling *s)
{
    tn_sampling_init(s, sizeof *s);
}

enum {
    TN_STOP_NONE,
    TN_STOP_END,       // end-of-generation token
    TN_STOP_STRING,    // a stop string
    TN_STOP_LIMIT,     // max_tokens
    TN_STOP_CONTEXT,   // the context is full, and the generation has TN_CONTEXT_STOP
    TN_STOP_CANCELLED, // tn_session_cancel
    TN_STOP_BLOCKED,   // grammar and banned strings leave no token: the text is not complete
};

// What a generation does when the context of its sequence is full.
enum {
    TN_CONTEXT_STOP, // the text ends with TN_STOP_CONTEXT, and a prompt that does not fit is refused
    // The first n_keep tokens and the last half of the others stay and are evaluated anew; those between are
    // dropped. tn_piece.n_dropped says so. Not with a grammar or a schema (TN_ERR_UNSUPPORTED), whose
    // text would be cut, nor in engines. If that is cancelled, the sequence holds a part of what stays.
    TN_CONTEXT_SHIFT,
};

typedef struct tn_generation_config {
    size_t struct_size;
    const tn_sampling *sampling; // read when the generation is created; NULL (default): the defaults
    int32_t seq;                // sequence of the session; default 0
    int32_t max_tokens;         // -1 (default): until something else stops it
    const char *const *stops;   // stop strings; never part of the text. Default none
    int32_t n_stops;
    int32_t ignore_end;         // non-zero: end-of-generation tokens do not stop
    int32_t print_special;      // non-zero: special tokens appear in the text
    // Speculative decoding: tokens are drafted, and one pass verifies several of them. It changes the speed.
    // On devices where a row of a small batch has the same bits as alone (the CPU: drafts of up to 7 tokens)
    // it changes nothing else: the same seed gives the same text. Between two steps the sequence of the
    // session may hold drafted tokens; after the last piece it holds none.
    // drafts from the text itself: the tokens that followed the last occurrence of its last tokens. How many
    // of the last tokens must match, 1..16; 0 (default): off
    int32_t spec_ngram;
    // drafts from a smaller model with the same vocabulary: a session on the same context that only this
    // generation uses and that outlives it; its first sequence is overwritten. NULL (default): none
    tn_session *draft;
    // tokens drafted at a time, up to 64; 0 (default): as many as keep the bits of rows, or 5
    int32_t draft_max;
    int32_t draft_min;          // shorter drafts are not verified; default 0
    // GBNF that the generated text follows; it ends when that is complete. NULL (default): none
    const char *grammar;
    // texts that never occur: where one would, the generation returns to its beginning and continues with
    // another token. Tokens are held back while one may have begun. Default none
    const char *const *bans;
    int32_t n_bans;
    // end-of-generation tokens before so many tokens do not stop, unless a grammar is complete; default 0
    int32_t min_tokens;
    // a JSON schema that the text follows instead of a grammar; models/text/README.md lists the supported
    // keywords
    const char *json_schema;
    int32_t context_full; // TN_CONTEXT_*; default TN_CONTEXT_STOP
    // tokens at the beginning that a shift keeps, up to half of the context; -1: those of the prompt. The
    // default is 0, but models need some: 4 are enough
    int32_t n_keep;
} tn_generation_config;
TN_API void tn_generation_config_init(tn_generation_config *cfg, size_t struct_size);
static inline void tn_generation_config_default(tn_generation_config *cfg)
{
    tn_generation_config_init(cfg, sizeof *cfg);
}

typedef struct tn_generation tn_generation;
// cfg may be NULL. The session must outlive the generation. Works without a tokenizer: pieces then have no
// text.
TN_API TN_MUST_USE tn_status tn_generation_create(tn_session *session, const tn_generation_config *cfg,
                                                  tn_generation **out);
TN_API void tn_generation_destroy(tn_generation **generation);
// Feeds a prompt (appended to what the sequence holds) and starts counting max_tokens anew. A prompt that is
// refused (TN_ERR_ARG, TN_ERR_CONTEXT_FULL) leaves the sequence as it was. n > 0: a token
// that the last step selected and that was not evaluated yet is dropped (include it in the prompt to keep
// it); n = 0: that token is evaluated and the text continues. Cancelled: TN_ERR_CANCELLED, complete batches
// stay.
TN_API TN_MUST_USE tn_status tn_generation_prompt(tn_generation *g, const int32_t *ids, size_t n);

// The same for ids that are the whole contents of the sequence: the prefix that any sequence of the session
// already holds is reused (tn_session_reuse), the rest is fed. n >= 1.
TN_API TN_MUST_USE tn_status tn_generation_start(tn_generation *g, const int32_t *ids, size_t n);

// Never changes.
typedef struct tn_logprob {
    int32_t token;
    float logprob; // natural log of its probability under the model
} tn_logprob;

typedef struct tn_piece {
    size_t struct_size; // set by the caller
    int32_t token;    // chosen token, -1 if generation stopped before one was chosen
    int32_t stop;     // TN_STOP_*: not NONE means that this is the last piece
    // Complete characters that became certain with this token; valid until the next call. The texts of all
    // pieces are the bytes of the chosen tokens, one after the other. tn_detokenize may give fewer blanks for
    // the same tokens, because it also cleans up the text where the vocabulary asks for that.
    const char *text;
    size_t n_text;
    // the most probable tokens in its place, best first; valid until the next call
    const tn_logprob *logprobs;
    int32_t n_logprobs;         // tn_sampling.n_logprobs, or 0 if no token was selected
    float logprob;    // natural log of the token's probability under the model (before sampling filters)
    int32_t n_dropped; // tokens that a full context dropped from the sequence before this one was chosen
    int32_t reserved;
} tn_piece;
// Selects one token; it is evaluated at the next call. Cancellation and a full context are stop reasons, not
// failures.
TN_API TN_MUST_USE tn_status tn_generation_step(tn_generation *g, tn_piece *out);

typedef struct tn_generation_stats {
    size_t struct_size; // set by the caller
    int32_t n_prompt, n_generated; // tokens of the prompt that were evaluated, tokens selected
    uint64_t prompt_ns, generate_ns, first_token_ns; // since the last prompt call
    int32_t n_reused; // tokens of the prompt that the session held already
    int32_t n_drafted, n_accepted; // tokens that were drafted, those of them that were accepted
    int32_t n_dropped;             // tokens that a full context dropped, those of the prompt included
} tn_generation_stats;
TN_API tn_status tn_generation_stats_get(const tn_generation *g, tn_generation_stats *out);

TN_EXTERN_C_END
#endif
