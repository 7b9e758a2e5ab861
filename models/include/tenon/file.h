// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Inspecting GGUF files and writing quantised ones.
#ifndef TENON_FILE_H
#define TENON_FILE_H

#include <tenon/model.h>

TN_EXTERN_C_BEGIN

typedef struct tn_file tn_file;

// Opens the metadata of any GGUF file, also those that are no models. Reads no tensor data.
TN_API TN_MUST_USE tn_status tn_file_open(tn_context *ctx, const char *path, tn_file **out);
TN_API void tn_file_close(tn_file **file);

TN_API int64_t tn_file_n_keys(const tn_file *file);
// Key i as text: name, type ("u32", "[str]"), value. Long strings and arrays are cut to max_items elements
// or characters (0: whole). All three are freed together by tn_text_free of *name.
TN_API TN_MUST_USE tn_status tn_file_key(const tn_file *file, int64_t i, int64_t max_items, char **name,
                                         const char **type, const char **value);

typedef struct tn_file_tensor {
    size_t struct_size; // set by the caller
    const char *name;   // valid as long as the file
    tn_dtype dtype;
    int32_t n_dims;
    int64_t shape[4]; // outermost first
    uint64_t size, offset;
    int32_t file; // number of the part that holds it
    int32_t reserved;
} tn_file_tensor;
TN_API int64_t tn_file_n_tensors(const tn_file *file);
TN_API tn_status tn_file_tensor_get(const tn_file *file, int64_t i,
                                    tn_file_tensor *out);                  // TN_ERR_ARG: no such
TN_API int64_t tn_file_find_tensor(const tn_file *file, const char *name); // -1 if absent
// Dequantises elements [first, first + n) of tensor i, row after row, into out. Both are multiples of the
// elements in a block of its type, and inside the tensor: TN_ERR_ARG otherwise. Any thread.
TN_API TN_MUST_USE tn_status tn_file_read_tensor(const tn_file *file, int64_t i, int64_t first, int64_t n,
                                                 float *out);
// Writes tensor i dequantised as little-endian f32 to `path` (complete or not at all).
TN_API TN_MUST_USE tn_status tn_file_export_tensor(const tn_file *file, int64_t i, const char *path);
TN_API uint64_t tn_file_size(const tn_file *file);
TN_API uint32_t tn_file_version(const tn_file *file);
TN_API int32_t tn_file_n_parts(const tn_file *file);
// Reads all tensor data and checks that values and scales are finite.
TN_API TN_MUST_USE tn_status tn_file_check(const tn_file *file);

typedef struct tn_quantize_config {
    size_t struct_size;
    const char *type; // "Q4_K_M", "Q8_0", "F16", ...; see tn_quantize_types. No default
    // Called after each tensor, on the calling thread; non-zero return cancels.
    int32_t (*report)(void *user, const char *tensor, const char *from, const char *to, double rmse,
                      int64_t done, int64_t total);
    void *user;
    // path of an importance matrix (GGUF, or the older list of records): the importance of columns
    const char *imatrix;
    // n_tensor_types times "PATTERN=TYPE": tensors get TYPE ("Q6_K") if a part of their name matches, or a
    // type of smaller blocks if their rows are no multiple of its block. The first pattern that matches wins.
    // * matches any characters, ? exactly one. Norms, biases and routers keep their type. A pattern that
    // matches no tensor is an error.
    const char *const *tensor_types;
    int32_t n_tensor_types;
    int32_t reserved;
    const char *output_type;    // of the head, output.weight or a shared token_embd.weight
    const char *embedding_type; // of token_embd.weight
    double *rmse;               // root of the mean squared change of all values in tensors whose type changed
} tn_quantize_config;
TN_API void tn_quantize_config_init(tn_quantize_config *cfg, size_t struct_size);
static inline void tn_quantize_config_default(tn_quantize_config *cfg)
{
    tn_quantize_config_init(cfg, sizeof *cfg);
}
// Names of the types that tn_quantize accepts, separated by blanks. Any thread.
TN_API const char *tn_quantize_types(void);
// Reads `in`, writes `out` (complete or not at all).
TN_API TN_MUST_USE tn_status tn_quantize(tn_context *ctx, const char *in, const char *out,
                                         const tn_quantize_config *cfg);

TN_EXTERN_C_END
#endif
