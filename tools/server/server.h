// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the routes of `tenon serve` share: the models, answers and errors.
#ifndef TENON_TOOLS_SERVER_SERVER_H
#define TENON_TOOLS_SERVER_SERVER_H

#include "tools/chat/generate.h"
#include "tools/json/json.h"
#include "tools/server/access.h"
#include "tools/server/body.h"
#include "tools/server/metrics.h"
#include "tools/server/models/models.h"
#include "tools/server/http/transport.h"
#include "tools/server/worker.h"

// SERVER_LOADING: until requests are accepted, which is when the only model is loaded, or at once with
// several.
typedef enum server_state { SERVER_LOADING, SERVER_READY, SERVER_DRAINING } server_state;

// JSON that is being written. It belongs to one thread.
typedef struct writer {
    FILE *f;
    char *text;
    size_t n;
    json j;
} writer;

typedef struct server {
    const options *opt;
    tool tool; // the context of all models
    transport *t;
    model_list models;
    worker *texts;    // reads long requests
    writer texts_out; // of its thread
    access_rules access;
    metrics figures;
    server_state state;
    int64_t created; // seconds since 1970, when requests were accepted
    uint64_t next_id, id_salt;
    struct job *jobs;
    struct request *requests; // that have no job yet: they wait for their model, or are read
    int64_t n_requests;
    size_t n_waiting_bytes; // of their bodies
    uint64_t *unknown;      // hashes of the names of ignored fields that the log has had
    int n_unknown;
    uint64_t drain_ns;      // when what still runs is ended, 0: not draining
    volatile int stop;
    int code;   // exit code
    writer out; // of the thread of HTTP
} server;

// --- answers (reply.c) -----------------------------------------------------------------------------------

typedef enum error_id {
    ERROR_JSON,        // no JSON
    ERROR_FIELD,       // a field with a wrong type or value, or missing
    ERROR_UNSUPPORTED, // a field that is not offered
    ERROR_VALUE,       // the same for its value
    ERROR_CONTEXT,     // too long
    ERROR_SCHEMA,
    ERROR_KEY,
    ERROR_FORBIDDEN,
    ERROR_PATH,
    ERROR_MODEL,
    ERROR_KIND, // a model that cannot do this
    ERROR_METHOD,
    ERROR_REQUEST, // HTTP that is refused
    ERROR_LENGTH,
    ERROR_SIZE,
    ERROR_URI,
    ERROR_LATE, // the body
    ERROR_EXPECT,
    ERROR_CODING,
    ERROR_VERSION,
    ERROR_BUSY,
    ERROR_LOADING,
    ERROR_DRAINING,
    ERROR_LOST,
    ERROR_LOAD, // the model cannot be loaded
    ERROR_TIME,
    ERROR_OWN,
    ERROR_COUNT
} error_id;

bool writer_open(writer *w); // false: out of memory
void writer_close(writer *w);
// Begins JSON text at the outermost level.
json *writer_json(writer *w);
// What was written since: its bytes, valid until the next writer_json; *n = 0: out of memory.
const char *writer_text(writer *w, size_t *n);
// A copy of it, terminated, from malloc; NULL: out of memory.
char *writer_copy(writer *w);

// The same with the writer of the thread of HTTP.
json *reply_json(server *s);
const char *reply_text(server *s, size_t *n);
// A complete answer of that JSON.
void reply_send(server *s, exchange *x, int status);
void reply_bytes(exchange *x, int status, const char *type, const char *text, size_t n);
// An error in the form of the exchange's route. `param`: the path of the field, or NULL.
void reply_error(server *s, exchange *x, error_id id, const char *param, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
void reply_too_long(server *s, exchange *x, const char *param, size_t n_prompt, int32_t n_ctx);
// The same as JSON text in s->out, for streams.
void reply_error_json(server *s, const exchange *x, error_id id, const char *param, const char *message);
int reply_error_status(error_id id);
// A new id "chatcmpl-...", also in the head of the answer.
void reply_id(server *s, exchange *x, const char *prefix, char *out, size_t size);

// --- routes ----------------------------------------------------------------------------------------------

enum {
    ROUTE_OPEN = 1,        // without a key
    ROUTE_OLLAMA = 2,      // errors in the form of Ollama
    ROUTE_UNREADY = 4,     // also while the model loads or the server ends
    ROUTE_PREFIX = 8,      // the path is the beginning of what follows
    ROUTE_LOCAL_OPEN = 16, // without a key from this machine
    ROUTE_TEXT = 32,       // for models that give text
    ROUTE_FACTS = 64       // what is known of a model that is not loaded is enough
};
struct fields; // of the JSON object of a request, see api/fields.h
// A path takes one method besides OPTIONS: GET and HEAD, or POST with a JSON object that names a model or
// none. See request.h for the threads of `post`.
typedef struct route {
    const char *path;
    int flags;
    void (*get)(server *s, exchange *x);
    void (*post)(struct fields *f);
    int metric; // index of its requests, set by the table
} route;

// router.c: what the transport calls.
void router_head(void *user, exchange *x);
void router_request(void *user, exchange *x);
void router_late(void *user, exchange *x);
void router_identify(void *user, exchange *x);
extern const char *const route_names[METRIC_ROUTES];

// Handlers, by file.
void route_page(server *s, exchange *x);
void route_health(server *s, exchange *x);
void route_models(server *s, exchange *x);
void route_model(server *s, exchange *x);
void route_metrics(server *s, exchange *x);
void route_chat(struct fields *f);
void route_input_tokens(struct fields *f);
void route_completions(struct fields *f);
void route_responses(struct fields *f);
void route_tokenize(struct fields *f);
void route_detokenize(struct fields *f);
void route_apply_template(struct fields *f);
void route_embeddings(struct fields *f);
void route_rerank(struct fields *f);
void route_ollama_version(server *s, exchange *x);
void route_ollama_tags(server *s, exchange *x);
void route_ollama_ps(server *s, exchange *x);
void route_ollama_show(struct fields *f);
void route_ollama_chat(struct fields *f);
void route_ollama_generate(struct fields *f);
void route_ollama_embed(struct fields *f);
void route_ollama_embeddings(struct fields *f);

void server_wake(void *server); // from any thread

int64_t unix_seconds(void);
// splitmix64 (Steele, Lea and Flood 2014): spreads a count over 64 bits.
uint64_t mix_bits(uint64_t x);

#endif
