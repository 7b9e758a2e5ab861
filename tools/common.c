// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/common.h"

#include "tools/store/store.h"
#include "tools/terminal/progress.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_DIR_SIZE = 1000 };

// --- messages of the library -----------------------------------------------------------------------------

static void on_log(void *user, int32_t level, const char *text)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    (void)user;
    note("%s: %s", level >= 0 && level <= TN_LOG_DEBUG ? levels[level] : "log", text);
}

// Every plan reports the ops that run on another device than requested; each text is printed once.
static bool printed_before(tool *t, const char *text)
{
    uint64_t hash = 14695981039346656037u; // FNV-1a, 64 bits
    for (const char *p = text; *p; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    int capacity = (int)(sizeof t->printed_events / sizeof *t->printed_events);
    for (int i = 0; i < t->n_printed; i++)
        if (t->printed_events[i] == hash) return true;
    if (t->n_printed < capacity) t->printed_events[t->n_printed++] = hash;
    return false;
}

// On a terminal a line that is rewritten; elsewhere one line.
static void report_compiling(tool *t, bool done, const char *text)
{
    enum { EVERY_MS = 100 };
    if (t->log_level < TN_LOG_WARN) return;
    if (!terminal_moves(stderr)) {
        if (!t->compiling) note("%s", text);
        t->compiling = true;
        return;
    }
    uint64_t now = now_ns();
    if (done && t->compiling) fprintf(stderr, "\r\033[K");
    if (!done && now - t->compiling_ns >= EVERY_MS * 1000000ull) {
        fprintf(stderr, "\r%s\033[K", text);
        fflush(stderr);
        t->compiling_ns = now;
    }
    t->compiling = !done;
}

static void report_event(tool *t, int32_t code, const char *text)
{
    if (code == TN_EVENT_COMPILING || code == TN_EVENT_COMPILED) {
        report_compiling(t, code == TN_EVENT_COMPILED, text);
        return;
    }
    if (t->log_level >= TN_LOG_WARN && !printed_before(t, text)) note("warning: %s", text);
}

static void on_event(void *user, int32_t code, const char *text)
{
    sys_lock();
    report_event(user, code, text);
    sys_unlock();
}

// --- context, device -------------------------------------------------------------------------------------

// The line of the backend in the list of absent ones, "" if there is none.
static void absent_reason(const tool *t, const char *backend, char *buf, size_t size)
{
    char all[2048];
    tn_context_absent_backends(t->ctx, all, sizeof all);
    size_t n = strlen(backend);
    buf[0] = 0;
    for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n"))
        if (strncmp(line, backend, n) == 0 && line[n] == ':') snprintf(buf, size, "%s", line + n + 1);
}

static int find_named_device(tool *t, const char *name, const char *backend)
{
    t->device = tn_context_device_by_name(t->ctx, name);
    if (!t->device) {
        char kind[64], reason[512];
        snprintf(kind, sizeof kind, "%.*s", (int)strcspn(name, ":"), name);
        absent_reason(t, kind, reason, sizeof reason);
        return fail(EXIT_DEVICE, "--device %s: no such device%s%s; 'tenon devices' lists what can be used",
                    name, *reason ? ":" : "", reason);
    }
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(t->device, &info);
    if (strcmp(backend, "auto") != 0 && strcmp(backend, info.backend) != 0)
        return fail(EXIT_USAGE, "--device %s is not of --backend %s but of %s; give one of both", name,
                    backend, info.backend);
    return 0;
}

static int find_device(tool *t)
{
    char backend[32], reason[512];
    opt_word(t->opt, OPT_BACKEND, backend, sizeof backend);
    const char *name = opt_text(t->opt, OPT_DEVICE);
    if (name) return find_named_device(t, name, backend);
    if (strcmp(backend, "auto") == 0) return 0;
    for (int32_t i = 0; i < tn_context_n_devices(t->ctx); i++) {
        tn_device_info info = {.struct_size = sizeof info};
        t->device = tn_context_device_get(t->ctx, i);
        tn_device_info_get(t->device, &info);
        if (strcmp(info.backend, backend) == 0) return 0;
    }
    t->device = NULL;
    absent_reason(t, backend, reason, sizeof reason);
    return fail(EXIT_DEVICE, "--backend %s:%s; 'tenon devices' lists what can be used", backend,
                *reason ? reason : " no such device here");
}

// Flags of another tool that scripts may pass; they are accepted without an effect.
static void report_ignored(const tool *t)
{
    if (!(C_SESSION & (1 << t->opt->cmd))) return;
    if (opt_is_set(t->opt, OPT_COMPAT) || opt_is_set(t->opt, OPT_COMPAT_MORE) ||
        opt_is_set(t->opt, OPT_COMPAT_SHIFT) || opt_is_set(t->opt, OPT_COMPAT_KEEP))
        tool_info(t, "a flag of another tool was given that has no effect here");
    const char *name;
    for (int k = 0; (name = opt_item_name(t->opt, OPT_COMPAT_VALUE, k)) != NULL; k++)
        tool_info(t, "%s has no effect here", name);
    if (opt_is_set(t->opt, OPT_FLASH))
        tool_info(t, "--flash-attn has no effect: attention is always computed in tiles");
}

// Flags that would change the answer: without a word the answer would be another one than was asked for.
static int check_compat(const tool *t)
{
    const char *name = opt_item_name(t->opt, OPT_COMPAT_REFUSED, 0);
    if (name)
        return fail(EXIT_FAILED,
                    "%s %s: control vectors, pictures, sounds and remote devices are not supported; leave it "
                    "away",
                    name, opt_item_get(t->opt, OPT_COMPAT_REFUSED, 0));
    for (int k = 0; (name = opt_item_name(t->opt, OPT_COMPAT_WARNED, k)) != NULL; k++) {
        if (opt_flag(t->opt, OPT_STRICT))
            return fail(EXIT_USAGE, "%s has no effect, the file decides this; leave it away, or --strict",
                        name);
        if (t->log_level >= TN_LOG_WARN) note("warning: %s has no effect: the file decides this", name);
    }
    return 0;
}

// Created only when something is stored.
bool tool_cache_dir(char *dir, size_t size, bool make)
{
    static const char own[] = "/tenon";
    if (size < sizeof own || !sys_place_get(SYS_CACHE, dir, size - sizeof own)) return false;
    if (make) sys_make_folder(dir, false);
    memcpy(dir + strlen(dir), own, sizeof own);
    return !make || sys_make_folder(dir, false);
}

// The only backend that may be used, NULL: any. Drivers need time to start, and not every command needs one.
static const char *only_backend(const options *o, char *buf, size_t size)
{
    const char *device = opt_text(o, OPT_DEVICE);
    opt_word(o, OPT_BACKEND, buf, size);
    if (device)
        snprintf(buf, size, "%.*s", (int)strcspn(device, ":"), device);
    else if (strcmp(buf, "auto") == 0 && (((C_SESSION | C_DEVICES | C_DOCTOR) >> o->cmd) & 1) != 0)
        return NULL;
    return strcmp(buf, "auto") == 0 ? "cpu" : buf;
}

// Whose threads compute, and with which priority.
static void set_threads(const options *o, tn_context_config *cfg)
{
    char word[32];
    cfg->n_threads = (int32_t)opt_int(o, OPT_THREADS);
    opt_word(o, OPT_THREADS_BY, word, sizeof word);
    if (strcmp(word, "openmp") == 0) cfg->threads_by = TN_THREADS_OPENMP;
    opt_word(o, OPT_PRIORITY, word, sizeof word);
    if (strcmp(word, "background") != 0) return;
    cfg->thread_priority = TN_THREADS_BACKGROUND;
    sys_lower_priority(); // this thread computes too
}

int tool_open(tool *t, const options *o)
{
    *t = (tool){.opt = o, .log_level = (int32_t)opt_int(o, OPT_LOG_LEVEL)};
    if (opt_flag(o, OPT_VERBOSE) && t->log_level < TN_LOG_INFO) t->log_level = TN_LOG_INFO;
    char isa[32];
    opt_word(o, OPT_ISA, isa, sizeof isa);
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.log = on_log;
    cfg.event = on_event;
    cfg.user = t;
    cfg.log_level = t->log_level;
    set_threads(o, &cfg);
    cfg.strict = opt_flag(o, OPT_STRICT);
    cfg.deterministic = opt_flag(o, OPT_DETERMINISTIC);
    cfg.isa = strcmp(isa, "best") == 0 ? NULL : isa;
    const char *blas = opt_text(o, OPT_BLAS);
    cfg.blas = blas && strcmp(blas, "auto") == 0 ? NULL : blas;
    cfg.device_timeout_ms = opt_int(o, OPT_DEVICE_TIMEOUT) > 0 ? opt_int(o, OPT_DEVICE_TIMEOUT) * 1000 : -1;
    cfg.memory_limit = (size_t)opt_int(o, OPT_MEMORY_LIMIT) << 20;
    char cache[CACHE_DIR_SIZE];
    char backend[32];
    cfg.backend = only_backend(o, backend, sizeof backend);
    cfg.one_backend = (((C_DEVICES | C_DOCTOR) >> o->cmd) & 1) == 0; // 'devices' lists all
    cfg.tune = opt_flag(o, OPT_TUNE);
    // Some drivers compile kernels at their first use, and the result is stored as well.
    bool stores = cfg.tune || (cfg.backend && strcmp(cfg.backend, "cpu") != 0);
    if (tool_cache_dir(cache, sizeof cache, stores)) cfg.cache_dir = cache;
    tool_trace_open(t, &cfg);
    tn_status status = tn_context_create(&cfg, &t->ctx);
    if (status == TN_ERR_UNSUPPORTED && cfg.threads_by == TN_THREADS_OPENMP)
        return fail(EXIT_DEVICE, "--threads-by openmp: this build has no OpenMP");
    if (status == TN_ERR_UNSUPPORTED)
        return fail(EXIT_DEVICE, "--isa %s: this CPU does not have it; 'tenon devices' shows its level", isa);
    if (status == TN_ERR_DEVICE && cfg.blas) return tool_fail(t, status, "--blas %s", cfg.blas);
    if (status != TN_OK) return tool_fail(t, status, "cannot start");
    report_ignored(t);
    int code = check_compat(t);
    if (!code) code = find_device(t);
    if (!code) code = tool_overrides_open(t);
    return code ? code : tool_places_open(t);
}

void tool_close(tool *t)
{
    tool_close_adapters(t);
    tool_places_close(t);
    tool_overrides_close(t);
    tool_trace_close(t);
    tn_context_destroy(&t->ctx);
}

// --- model -----------------------------------------------------------------------------------------------

// A server takes all models of a folder, the other commands its only one.
static int resolve(const options *o, const char *wanted, const char **path)
{
    sys_status st;
    *path = wanted;
    if (o->cmd == CMD_SERVE && sys_file_status(wanted, &st)) return 0;
    return store_resolve(wanted, false, path);
}

int tool_model_path(const options *o, const char **path, const char *const **args, int *n_args)
{
    *args = o->args;
    *n_args = o->n_args;
    if (opt_is_set(o, OPT_HF_REPO)) return store_resolve(opt_text(o, OPT_HF_REPO), true, path);
    *path = opt_text(o, OPT_MODEL);
    if (*path) return resolve(o, *path, path);
    if (o->n_args == 0 || !*o->args[0])
        return fail(EXIT_USAGE, "%s: no model given; 'tenon help %s' shows how", cmd_name(o->cmd),
                    cmd_name(o->cmd));
    *path = o->args[0];
    *args = o->args + 1;
    *n_args = o->n_args - 1;
    return resolve(o, *path, path);
}

typedef struct load_bar {
    progress line;
    const volatile int *stop;
} load_bar;

// Non-zero ends loading.
static int32_t on_load(void *user, uint64_t done, uint64_t total)
{
    load_bar *bar = user;
    if (bar->stop && *bar->stop) return 1;
    char a[32], b[32], left[48];
    double share = total ? (double)done / (double)total : 0;
    progress_show(&bar->line, share, "loading %s of %s, %.2f GB/s%s", size_text(done, a, sizeof a),
                  size_text(total, b, sizeof b), (double)done / (double)(now_ns() - bar->line.start_ns + 1),
                  progress_left(&bar->line, share, left, sizeof left));
    return 0;
}

void tool_model_config(const tool *t, const tn_session_config *session, tn_model_config *cfg)
{
    tn_model_config_default(cfg);
    cfg->device = t->device;
    cfg->no_fallback = t->device != NULL; // requested by --backend or --device
    cfg->session = session;
    if (!session) return;
    cfg->load = opt_flag(t->opt, OPT_NO_MMAP) ? TN_LOAD_READ : TN_LOAD_MAP;
    cfg->lock_memory = opt_flag(t->opt, OPT_MLOCK);
    const char *layers = opt_text(t->opt, OPT_GPU_LAYERS);
    cfg->device_layers =
        layers && strcmp(layers, "all") == 0 ? INT32_MAX : (int32_t)opt_int(t->opt, OPT_GPU_LAYERS);
    tool_places_config(t, cfg);
    tool_overrides_config(t, cfg);
}

static void report_loaded(const tool *t, const char *path, const tn_model *model)
{
    tn_model_info info = {.struct_size = sizeof info};
    tn_model_info_get(model, &info);
    char size[32];
    tool_info(t, "%s: %s, on device %s%s, %.0f ms", path, info.arch, info.device,
              t->device ? "" : " (automatic)", (double)t->load_ns * 1e-6);
    if (info.device_size > 0)
        tool_info(t, "%d of %d layers on %s, %s of weights; %d on %s", info.device_layers, info.n_layers,
                  info.device, size_text(info.device_size, size, sizeof size),
                  info.n_layers - info.device_layers, info.host_device);
    else if ((C_SESSION & (1 << t->opt->cmd)) && opt_int(t->opt, OPT_GPU_LAYERS) > 0)
        tool_info(t, "--gpu-layers has no effect: %s has no memory of its own", info.device);
    if (C_SESSION & (1 << t->opt->cmd)) tool_places_report(t, &info);
}

int tool_load(tool *t, const char *path, int32_t what, tn_model **out)
{
    enum { BAR_AFTER_MS = 500 };
    load_bar bar = {.stop = t->stop};
    progress_begin(&bar.line, BAR_AFTER_MS);
    bool session = (C_SESSION & (1 << t->opt->cmd)) && what != LOAD_TOKENIZER;
    tn_session_config planned;
    tn_model_config cfg;
    if (session) tool_session_config(t, &planned);
    tool_model_config(t, session ? &planned : NULL, &cfg);
    cfg.metadata_only = what == LOAD_METADATA;
    cfg.tokenizer_only = what == LOAD_TOKENIZER;
    cfg.progress = on_load;
    cfg.progress_user = &bar;
    int32_t bit = 1 << t->opt->cmd;
    if (opt_rows[OPT_PRE].commands & bit) cfg.pre = opt_text(t->opt, OPT_PRE);
    if ((opt_rows[OPT_CHECK].commands & bit) && what == LOAD_WEIGHTS)
        cfg.check_tensors = opt_flag(t->opt, OPT_CHECK);
    tn_status status = tn_model_open(t->ctx, path, &cfg, out);
    progress_clear(&bar.line);
    if (status != TN_OK) return tool_fail(t, status, "%s", path);
    t->load_ns = now_ns() - bar.line.start_ns;
    tool_debug(t, "%s: opened in %.1f ms%s", path, (double)t->load_ns * 1e-6,
               what == LOAD_WEIGHTS ? "" : ", without weights");
    if (what == LOAD_WEIGHTS) report_loaded(t, path, *out);
    return 0;
}

static tn_dtype cache_type(const options *o, opt_id id)
{
    char word[16];
    return tn_dtype_by_name(opt_word(o, id, word, sizeof word));
}

void tool_session_config(const tool *t, tn_session_config *cfg)
{
    const options *o = t->opt;
    tn_session_config_default(cfg);
    int64_t batch = opt_int(o, OPT_BATCH), ubatch = opt_int(o, OPT_UBATCH);
    cfg->n_ctx = (int32_t)opt_int(o, o->cmd == CMD_PERPLEXITY ? OPT_WINDOW : OPT_CTX);
    // 0: the default of the device, unless --ubatch-size is given.
    if (!opt_is_set(o, OPT_BATCH)) batch = opt_is_set(o, OPT_UBATCH) ? ubatch : 0;
    cfg->n_batch = (int32_t)(batch < ubatch ? batch : ubatch);
    cfg->cache_type_k = cache_type(o, OPT_CACHE_K);
    cfg->cache_type_v = cache_type(o, OPT_CACHE_V);
    cfg->n_checkpoints = (int32_t)opt_int(o, OPT_CHECKPOINTS);
    cfg->fusion = opt_int(o, OPT_FUSION) == 0; // words: on, off
    cfg->free_windows = opt_int(o, OPT_FREE_WINDOWS) == 0;
    char word[16];
    cfg->precision = tn_precision_by_name(opt_word(o, OPT_PRECISION, word, sizeof word));
    cfg->adapters = t->adapters;
    cfg->n_adapters = t->n_adapters;
}

int tool_engine_config(const tool *t, const tn_model_info *info, tn_session_config *session,
                       tn_engine_config *cfg)
{
    enum { CTX_DEFAULT = 4096, TOKENS_EACH = 1024, CONTEXTS_WAITING = 16 };
    const options *o = t->opt;
    int64_t trained = info->n_ctx_train, each = opt_int(o, OPT_PROMPT_MAX);
    int64_t parallel = opt_int(o, OPT_PARALLEL), all = opt_int(o, OPT_CACHE_TOKENS);
    if (o->cmd == CMD_INSPECT) each = opt_int(o, OPT_CTX);
    if (each == 0) each = trained > 0 && trained < CTX_DEFAULT ? trained : CTX_DEFAULT;
    if (all == 0) all = parallel * TOKENS_EACH > each ? parallel * TOKENS_EACH : each;
    if (all < each)
        return fail(EXIT_USAGE,
                    "--cache-tokens %lld holds no context of %lld tokens; give more, or a smaller -c",
                    (long long)all, (long long)each);
    tool_session_config(t, session);
    session->n_seq = (int32_t)parallel;
    session->n_ctx = (int32_t)all;
    session->n_ctx_seq = (int32_t)each;
    tn_engine_config_default(cfg);
    cfg->session = session;
    cfg->host_cache = (uint64_t)opt_int(o, OPT_CACHE_HOST) << 20;
    if (o->cmd != CMD_SERVE) return 0;
    cfg->n_waiting = (int32_t)opt_int(o, OPT_QUEUE);
    cfg->waiting_tokens = each * CONTEXTS_WAITING;
    return 0;
}

// What sessions and embedders have in common; pooling and the length of texts stay at their defaults.
void tool_embedder_config(const tool *t, tn_embedder_config *cfg)
{
    tn_session_config session;
    tool_session_config(t, &session);
    tn_embedder_config_default(cfg);
    cfg->n_batch = session.n_batch;
    cfg->fusion = session.fusion;
    cfg->cache_type_k = session.cache_type_k;
    cfg->cache_type_v = session.cache_type_v;
    cfg->precision = session.precision;
}

// --- output ----------------------------------------------------------------------------------------------

bool use_color(const options *o, FILE *f)
{
    char word[16];
    opt_word(o, OPT_COLOR, word, sizeof word);
    if (strcmp(word, "always") == 0 || strcmp(word, "on") == 0) return true;
    if (strcmp(word, "never") == 0 || strcmp(word, "off") == 0) return false;
    const char *no_color = sys_env("NO_COLOR"), *term = sys_env("TERM");
    if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0)) return false;
    return is_terminal(f);
}

const char *size_text(uint64_t bytes, char *buf, size_t size)
{
    static const char *const suffixes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;
    while (v >= 1024 && u < 4) {
        v /= 1024;
        u++;
    }
    snprintf(buf, size, u == 0 ? "%.0f %s" : "%.2f %s", v, suffixes[u]);
    return buf;
}
