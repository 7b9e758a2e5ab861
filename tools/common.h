// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions that all commands use: messages and exit codes, opening the context and a model, reading input.
#ifndef TENON_TOOLS_COMMON_H
#define TENON_TOOLS_COMMON_H

#include "tools/options.h"
#include "tools/system/system.h"

#include <stddef.h>
#include <tenon/adapter.h>
#include <tenon/embed.h>
#include <tenon/engine.h>
#include <tenon/file.h>
#include <tenon/session.h>
#include <tenon/text.h>

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_MODEL = 3,
    EXIT_MEMORY = 4,
    EXIT_DEVICE = 5,
    EXIT_CONTEXT = 6,
    EXIT_INTERRUPTED = 130,
};

#if defined(__MINGW32__) && !defined(__clang__) // its own printf, which knows %zu (meson.build)
#define PRINTF_LIKE(text, first) __attribute__((format(gnu_printf, text, first)))
#elif defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#else
#define PRINTF_LIKE(text, first)
#endif

// One line on standard error: "tenon: ...". Control characters are shown as ?. Returns code.
int fail(int code, const char *fmt, ...) PRINTF_LIKE(2, 3);
void note(const char *fmt, ...) PRINTF_LIKE(1, 2);
// The text of the last failure of this thread, "" before the first one.
const char *failure_text(void);

// Bytes that a terminal must not see become '?', in place.
void clean_text(char *text);
// The same into buf, cut to fit.
const char *shown(const char *text, char *buf, size_t size);

typedef struct tool_places tool_places;
typedef struct tool_overrides tool_overrides;
typedef struct tool_trace tool_trace;
typedef struct tool {
    const options *opt;
    tn_context *ctx;
    tn_device *device; // requested by --device or --backend; NULL: automatic
    int32_t log_level;
    uint64_t load_ns;
    const volatile int *stop;    // loading ends when it is not 0; NULL: never
    uint64_t printed_events[64]; // hashes; events come from any thread
    int n_printed;
    bool compiling; // a note that a driver compiles kernels was printed
    uint64_t compiling_ns;
    tn_adapter_use adapters[TN_SESSION_ADAPTERS]; // of --lora, for the model of the command
    int32_t n_adapters;
    tool_places *places;       // of --override-tensor; NULL: none
    tool_overrides *overrides; // of --override-kv and the flags for positions; NULL: none
    tool_trace *trace;         // of --profile; NULL: not wanted
} tool;

// Opens the context and finds the device. 0, or an exit code after a message; tool_close then still works.
int tool_open(tool *t, const options *o);
void tool_close(tool *t);
// The user's directory for what is kept between runs; made if `make`. False: there is none.
bool tool_cache_dir(char *dir, size_t size, bool make);
// Prints "tenon: <what>: <message of the library>" with advice; returns the exit code of the status.
int tool_fail(const tool *t, tn_status status, const char *fmt, ...) PRINTF_LIKE(3, 4);
// A message at TN_LOG_INFO, at TN_LOG_DEBUG.
void tool_debug(const tool *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void tool_info(const tool *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

// The path of the model that the command line names: --model, -hf, or the first argument, which is then
// removed from *args; each may be a path, a folder with one model, or a name.
int tool_model_path(const options *o, const char **path, const char *const **args, int *n_args);
enum { LOAD_WEIGHTS, LOAD_METADATA, LOAD_TOKENIZER };
int tool_load(tool *t, const char *path, int32_t what, tn_model **out);
// commands/adapters.c: opens what --lora and --lora-scaled name; sessions are made with them from then on. 0,
// or an exit code after a message. tool_close closes them too.
int tool_load_adapters(tool *t, tn_model *model);
void tool_close_adapters(tool *t);
// commands/places.c: reads --override-tensor (0, or an exit code after a message), puts it and --cpu-moe into
// the configuration of a model, and reports what came of them. tool_close closes it too.
int tool_places_open(tool *t);
void tool_places_close(tool *t);
void tool_places_config(const tool *t, tn_model_config *cfg);
void tool_places_report(const tool *t, const tn_model_info *info);
// overrides.c: the same for --override-kv and the flags for positions.
int tool_overrides_open(tool *t);
void tool_overrides_close(tool *t);
void tool_overrides_config(const tool *t, tn_model_config *cfg);
// What a file says of itself if it is an adapter; texts are fit for a terminal.
typedef struct adapter_facts {
    char arch[64], kind[32], alpha[32];
    int64_t n_weights, rank; // weights that it changes; the largest rank
} adapter_facts;
bool tool_adapter_facts(const tool *t, const tn_file *file, adapter_facts *out);
// Whether the whole text is a number, as a scale in an argument of its own is.
bool adapter_is_number(const char *text);
// Device, number of layers on it, and whether missing kernels or memory are errors. Layers are fitted for
// `session`, which must live until the model is open; NULL for commands without a session.
void tool_model_config(const tool *t, const tn_session_config *session, tn_model_config *cfg);
void tool_session_config(const tool *t, tn_session_config *cfg);
// An engine's session and itself: as many sequences as -np says, each with the context of -c, one cache for
// all of them. cfg points at the session. 0, or an exit code after a message.
int tool_engine_config(const tool *t, const tn_model_info *info, tn_session_config *session,
                       tn_engine_config *cfg);
void tool_embedder_config(const tool *t, tn_embedder_config *cfg);
// costs/profile.c: what --profile records. Nothing of it happens without the flag. tool_open and tool_close
// call the first two; the third ends loading.
void tool_trace_open(tool *t, tn_context_config *cfg);
void tool_trace_close(tool *t);
void tool_trace_loaded(tool *t);
// Names the last pass of this thread after the text that it gave.
void tool_trace_text(tool *t, const char *text, size_t n);
// Writes the profile; 0 or an exit code.
int tool_profile(const tool *t);

// Whole file ("-": standard input), terminated, freed by free(). At most 256 MiB.
int read_input(const char *path, char **text, size_t *n);
// Ids in text[0 .. size), which is terminated, separated by commas or blanks ("-": from standard input), each
// in [0, n_vocab); freed by free().
int parse_ids(const char *text, size_t size, int32_t n_vocab, int32_t **ids, size_t *n);
// Arguments joined by blanks; freed by free().
int join_args(const char *const *args, int n, char **text);

bool use_color(const options *o, FILE *f);
// "3.2 GiB" in buf.
const char *size_text(uint64_t bytes, char *buf, size_t size);

#define CMD(id, name, args, help) int cmd_##name(const options *o);
#include "tools/commands.def"

#endif
