// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Models: opening GGUF files, inspecting them, predicting memory. A model is immutable, counted by
// references and may be used by any thread.
//
//     tn_model *model;
//     if (tn_model_open(ctx, "m.gguf", NULL, &model) != TN_OK) ...
//     tn_model_info info = {.struct_size = sizeof info};
//     tn_model_info_get(model, &info);
//     tn_model_unref(&model);
#ifndef TENON_MODEL_H
#define TENON_MODEL_H

#include <tenon/context.h>

TN_EXTERN_C_BEGIN

typedef struct tn_model tn_model;

// Called while a model loads, on the calling thread; non-zero return ends with TN_ERR_CANCELLED. The first
// call has 0 bytes done, the last one all of them: those that are read from the file, and those that are
// copied to a device. Between two calls lie 4 MiB, or a tensor that goes to a device.
typedef int32_t (*tn_progress_fn)(void *user, uint64_t bytes_done, uint64_t bytes_total);

// How the weights that stay in host memory get there.
enum {
    // The file is mapped, and its pages are read ahead. They are shared with other processes, and the system
    // may drop them. The file must stay as it is while the model is open; replace it by renaming another one
    // over it. A file that was cut is found before each pass (TN_ERR_IO). What remains: a file that is cut
    // during a pass, or a disk that fails when a page is read again, ends the process by SIGBUS.
    TN_LOAD_MAP,
    // All tensors are read into memory of the context, as much as the file is long. When the model is open,
    // the file is no longer needed. Everything that goes wrong with it is TN_ERR_IO.
    TN_LOAD_READ,
};

typedef struct tn_model_config {
    size_t struct_size;
    // where the model runs; NULL (default): the first device that computes and is no software driver
    tn_device *device;
    // overrides the pre-tokenizer named in the file; NULL (default): as the file says
    const char *pre;
    int32_t metadata_only;   // non-zero: no weights; the model can be inspected, planned and tokenized with
    int32_t tokenizer_only;  // non-zero: any architecture, also files without tensors; only text.h works
    int32_t check_tensors;   // non-zero: read and check every value first; default 0
    tn_progress_fn progress; // default NULL
    void *progress_user;
    // On devices with memory of their own, the last `device_layers` layers and the head run there, the layers
    // before them and the embedding on the CPU. -1 (default): as many as fit, with TN_EVENT_LAYERS_ON_HOST if
    // that is not all of them; more than the model has: all.
    int32_t device_layers;
    // non-zero: sessions fail if the device has no kernel for an op of its layers; default 0: on the CPU
    int32_t no_fallback;
    // bytes that a fit reserves for sessions; 0 (default): as many as `session` needs
    uint64_t reserve_size;
    // the session for which a fit reserves memory; NULL: a default one
    const struct tn_session_config *session;
    int32_t load; // TN_LOAD_*; default TN_LOAD_MAP
    // non-zero: mapped weights are not read ahead, but when they are first used. So it is anyway if they take
    // more memory than is available. Default 0
    int32_t no_read_ahead;
    // non-zero: weights in host memory are kept in physical memory. TN_EVENT_MEMORY_NOT_LOCKED if the system
    // refuses. Default 0
    int32_t lock_memory;
    // Mixtures of experts on devices with memory of their own: the experts of the first `host_experts` layers
    // lie in host memory and are computed on the CPU, the rest of these layers where device_layers says.
    // Default 0; more than the model has layers: all
    int32_t host_experts;
    // Called for each weight while the model opens, before host_experts counts: the device where it lies and
    // is computed, the one of the model or the CPU; NULL: as its layer. Default NULL
    tn_device *(*place)(void *user, const char *tensor);
    void *place_user;
    // Values instead of those of the file: n_overrides texts KEY=TYPE:VALUE, where TYPE is int, float, bool
    // or str, and a KEY that begins with a dot is one of the architecture: ".rope.freq_base=float:1000000".
    // Only read while the model opens. TN_ERR_ARG: not of this form, a key that is not read, or a value that
    // does not fit it. Default 0 and NULL
    const char *const *overrides;
    int32_t n_overrides;
    int32_t reserved;
} tn_model_config;
TN_API void tn_model_config_init(tn_model_config *cfg, size_t struct_size);
static inline void tn_model_config_default(tn_model_config *cfg)
{
    tn_model_config_init(cfg, sizeof *cfg);
}

// Opens a file (the first of a split model). cfg may be NULL. The model starts with one reference.
// TN_ERR_IO, TN_ERR_FORMAT (broken file), TN_ERR_MODEL (architecture or tensors not supported, or they
// contradict each other), TN_ERR_ARG (cfg->pre is not known, cfg->overrides), TN_ERR_MEMORY, TN_ERR_DEVICE,
// TN_ERR_CANCELLED, TN_ERR_UNSUPPORTED (kernels are missing, and cfg or the context forbids the CPU as
// fallback).
TN_API TN_MUST_USE tn_status tn_model_open(tn_context *ctx, const char *path, const tn_model_config *cfg,
                                           tn_model **out);

// Where a model is, if it is not just a path. Exactly one of path, data, read and descriptor is given. Split
// models have a path only.
typedef struct tn_source {
    size_t struct_size;
    const char *name; // for messages; NULL (default): the path, or what it is
    const char *path;
    const void *data; // the file in memory, aligned to 8 bytes. It outlives the model and does not change
    uint64_t size;    // bytes at data, or of the file that `read` reads
    // Copies up to n bytes from `offset` on to `to`; returns how many, 0 if the file ends there, or a
    // negative number if it failed: TN_ERR_IO. Called on the thread that opens the model, and never after
    // that. The tensors are read into memory (TN_LOAD_READ).
    int64_t (*read)(void *user, uint64_t offset, void *to, size_t n);
    void *user;
    // of a regular file, -1 (default): none. It stays the caller's and may be closed after the call; its
    // position is neither used nor changed. On Windows it is the value of a HANDLE: the descriptors of a C
    // runtime are numbers of that runtime only, and a DLL has its own
    int32_t descriptor;
    int32_t reserved;
} tn_source;
TN_API void tn_source_init(tn_source *source, size_t struct_size);
static inline void tn_source_default(tn_source *source)
{
    tn_source_init(source, sizeof *source);
}
// Like tn_model_open.
TN_API TN_MUST_USE tn_status tn_model_open_source(tn_context *ctx, const tn_source *source,
                                                  const tn_model_config *cfg, tn_model **out);
// on = 1: models that are being opened in the context end with TN_ERR_CANCELLED within some milliseconds, or
// when a read that has begun ends; those opened later as well, until on = 0. Any thread, any signal handler.
TN_API void tn_model_open_cancel(tn_context *ctx, int32_t on);

TN_API tn_model *tn_model_ref(tn_model *model);
TN_API void tn_model_unref(tn_model **model); // clears *model; NULL is fine

typedef struct tn_model_info {
    size_t struct_size; // set by the caller
    const char *arch;   // "llama"; strings are valid as long as the model
    const char *name;   // general.name, "" if absent
    const char *device; // name of the device of the last layers
    int32_t n_layers, n_embd, n_vocab, n_ctx_train, n_heads, n_kv_heads, head_dim, n_ff;
    int32_t n_experts, n_experts_used; // 0: dense
    int32_t has_tokenizer;
    int32_t is_encoder; // its results are embeddings, not text
    uint64_t n_params;
    uint64_t n_active_params;    // parameters that one decoded token uses
    uint64_t weight_size;        // bytes of all tensors
    uint64_t active_weight_size; // bytes that one decoded token reads
    uint64_t file_size;
    uint64_t owned_size;     // bytes in memory beyond the mapped file (tokenizer, tables, converted vectors)
    int32_t device_layers;   // layers on `device`
    const char *host_device; // name of the device of the layers before them
    int32_t pooling;         // TN_POOLING_* of embed.h, as the file says
    int32_t n_classes;       // of the classification head, 0: it has none
    uint64_t device_size;    // bytes of weights in the memory of `device`, 0 if that is host memory
    uint64_t placed_size;    // bytes of weights of these layers that were given to the CPU
} tn_model_info;
TN_API tn_status tn_model_info_get(const tn_model *model, tn_model_info *info);

// --- a model without a file, for measuring -------------------------------------------------------------

typedef struct tn_model_shape {
    size_t struct_size;
    const char *arch; // "llama" (default), "qwen2", "qwen3", "qwen3moe", ...
    int32_t n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab, n_ctx;
    int32_t n_experts, n_experts_used, n_ff_expert; // 0: dense
    int32_t tied;                                   // non-zero: the head is the embedding table
    const char *type;                               // a tensor type ("Q8_0") or a mix ("Q4_K_M")
    uint32_t seed;
    int32_t n_classes; // of a classification head; 0: none
} tn_model_shape;
TN_API void tn_model_shape_init(tn_model_shape *shape, size_t struct_size);
static inline void tn_model_shape_default(tn_model_shape *shape)
{
    tn_model_shape_init(shape, sizeof *shape);
}
// Known shapes: "llama-8b", "llama-1b", "qwen2-7b" (with a classification head), "qwen3-0.6b",
// "qwen3moe-30b-a3b". TN_ERR_ARG names them.
TN_API TN_MUST_USE tn_status tn_model_shape_get(tn_context *ctx, const char *name, tn_model_shape *out);
// Random weights of that shape in memory.
TN_API TN_MUST_USE tn_status tn_model_create_random(tn_context *ctx, const tn_model_shape *shape,
                                                    const tn_model_config *cfg, tn_model **out);

TN_EXTERN_C_END
#endif
