// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// A request that generates text: its choices in the engine, and how their events become an answer.
#ifndef TENON_TOOLS_SERVER_JOB_H
#define TENON_TOOLS_SERVER_JOB_H

#include "tools/server/answer.h"
#include "tools/server/api/tools.h"

#include <stdatomic.h>

typedef struct text_buf {
    char *data; // terminated once it has something
    size_t n, capacity;
} text_buf;
bool text_add(text_buf *t, const void *data, size_t n);

typedef struct job job;

// Logprobs of one token: its own, and `n_top` of `tops` from `first_top` on.
typedef struct token_entry {
    int32_t token;
    float logprob;
    int32_t first_top, n_top;
    bool of_prompt; // its logprob is no number where nothing was before it
} token_entry;

typedef struct choice {
    job *job;
    int32_t index;
    uint64_t id; // in the engine
    bool open;   // the engine has not ended it
    bool begun;  // it had an event
    int32_t stop;
    const char *reason;        // finish_reason, NULL: not ended
    text_buf content, thought; // of answers that are not streamed
    answer answer;
    bool thinks;          // the last piece had a part of a thought
    token_entry *entries; // not written yet
    tn_logprob *tops;
    size_t n_entries, entries_capacity, n_tops, tops_capacity;
    size_t n_settled;               // entries of content; those after them may belong to a call
    size_t text_offset;             // bytes of echo and content before the entries
    int32_t n_generated, n_thought; // tokens in all, and those of the thought
    uint64_t last_ns;
    const char *echo; // text before the content, for completions
} choice;

// How one route writes answers. The functions of streams write events; `whole` a complete answer.
typedef struct protocol {
    const char *stream_type;
    void (*begin)(job *j, choice *c);
    // `text` of the answer, or of the thought before it
    // False, also of those below: out of memory.
    bool (*piece)(job *j, choice *c, const char *text, size_t n, bool is_thought);
    // A call of a tool: it begins, a piece of its arguments, it ends. NULL: nothing is written then; where
    // there is none for pieces, calls are whole.
    bool (*call_begin)(job *j, choice *c, const tool_call *call);
    bool (*call_arguments)(job *j, choice *c, const tool_call *call, const char *text, size_t n);
    bool (*call_end)(job *j, choice *c, const tool_call *call);
    bool (*end_choice)(job *j, choice *c);
    void (*end)(job *j);
    void (*whole)(job *j);
    void (*broken)(job *j, error_id id, const char *message);
    bool splits_thoughts; // thoughts go apart from the answer
    bool is_generate;     // of job.is_generate
    bool collects;        // gets the pieces of answers that are not streamed, too
    void (*free_state)(void *state);
} protocol;

// A prompt of a job; `echo` is copied.
typedef struct job_prompt {
    const int32_t *ids;
    size_t n;
    const char *echo; // NULL: none
} job_prompt;

typedef struct job_start {
    const protocol *proto;
    request_params *params;
    const job_prompt *prompts;
    int32_t n_prompts;
    const char *id_prefix;
    const char *param; // the field of the prompt
} job_start;

struct job {
    server *s;
    model *m;
    exchange *x; // NULL: the client is gone
    const protocol *proto;
    choice *choices;
    int32_t n, n_open;
    bool stream, include_usage, logprobs, head_sent, failed, is_generate;
    bool special; // texts have special tokens, also the one that ends them
    char id[48];
    char model[NAME_SIZE];
    int64_t created;
    size_t n_prompt;
    int32_t n_cached;
    uint64_t start_ns, first_ns, end_ns, sent_ns;
    uint64_t queue_ns; // that its first choice to run waited
    void *state;       // of the protocol
    // Until job_submitted; see there.
    job_start start;
    bool submitting;
    atomic_bool left;    // nobody waits any more
    int32_t n_submitted; // choices
    tn_status status;
    char message[512];
    job *next, **link;
};

// A new job with params->n choices for each prompt; NULL: an error was answered. What `start` points at must
// live until job_submitted.
job *job_begin(model *m, exchange *x, const job_start *start);
// Keeps the logprobs of a token of the prompt, before the choice is submitted. False: out of memory.
bool job_keep_prompt(choice *c, const tn_piece *piece);
// Submits its choices, on any thread, because compiling a grammar takes up to 0.1 s each. Meanwhile the job
// takes part in all the other calls, but is not freed, nor are its choices cancelled.
void job_submit(job *j);
// On the thread of HTTP, behind job_submit, or in place of it where the server ends: answers an error, and
// ends what was left meanwhile.
void job_submitted(job *j);
// What the engine gives.
void job_event(server *s, const tn_engine_event *event, uint64_t time_ns);
// Several times a second: pings, heads of slow requests, time limits.
void job_tick(server *s);
// Ends jobs of a model, or of all (NULL), with an error: those that have not begun, or all.
void job_end_all(server *s, const model *m, error_id id, const char *message, bool begun_too);
// Ends all jobs of a model whose engine has stopped, except those that are still being submitted.
void job_abandon(server *s, const model *m, const char *message);
// At the end, when the engine is gone.
void job_close(server *s);
// The JSON in s->j as one event of a stream: "data: ...\n\n" or a line.
void job_send_event(job *j, bool sse);
// "finish_reason" of the choice.
const char *job_reason(int32_t stop);
// Tokens of all choices.
int32_t job_n_generated(const job *j);
int32_t job_n_thought(const job *j);

#endif
