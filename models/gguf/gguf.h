// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GGUF files: reading through one bounds-checked cursor, and writing. Reading touches no tensor data except
// in tn_gguf_check_data. A tn_gguf is immutable after opening and may be read by any thread.
#ifndef TN_MODELS_GGUF_H
#define TN_MODELS_GGUF_H

#include "core/os/file_map.h"

#include <tenon/params.h>

enum {
    TN_GGUF_U8,
    TN_GGUF_I8,
    TN_GGUF_U16,
    TN_GGUF_I16,
    TN_GGUF_U32,
    TN_GGUF_I32,
    TN_GGUF_F32,
    TN_GGUF_BOOL,
    TN_GGUF_STRING,
    TN_GGUF_ARRAY,
    TN_GGUF_U64,
    TN_GGUF_I64,
    TN_GGUF_F64,
    TN_GGUF_TYPE_COUNT
};

// "u32", "array"; "?" if out of range.
const char *tn_gguf_type_name(int32_t type);

typedef struct tn_gguf tn_gguf;

typedef struct tn_gguf_str {
    const char *data; // not terminated; borrowed from the file
    size_t size;
} tn_gguf_str;

// One key with its value; arrays stay in the file and are read element by element.
typedef struct tn_gguf_kv {
    tn_gguf_str key;
    int32_t type;        // TN_GGUF_*
    int32_t elem_type;   // of arrays, else -1
    uint64_t count;      // elements of arrays, else 1
    const uint8_t *data; // the value's bytes (arrays: first element; strings: the length field)
    size_t size;         // bytes from data to the end of the value
    bool given;          // by tn_gguf_override, not by the file
} tn_gguf_kv;

typedef struct tn_gguf_tensor {
    const char *name; // terminated copy
    tn_dtype dtype;
    int32_t n_dims;          // >= 1
    int64_t ne[TN_MAX_DIMS]; // outermost first (reversed from the file), n_dims entries
    const uint8_t *data;     // in the mapped file or in memory; NULL before tn_gguf_reserve
    size_t size;             // bytes
    uint64_t file_offset;    // from the start of its file
    int32_t file;            // index of the split file
} tn_gguf_tensor;

// Opens a file, or all files of a split model through its first one. Every rule of the format is
// checked; TN_ERR_IO: cannot be opened or read; TN_ERR_FORMAT: breaks a rule, the message says which
// and where; TN_ERR_MEMORY. Tensor data is mapped.
TN_MUST_USE tn_status tn_gguf_open(tn_context *ctx, const char *path, tn_gguf **out);
// The same for bytes in memory, aligned to 8, which must outlive the object. `name` is for messages. A split
// model cannot be opened this way: TN_ERR_UNSUPPORTED.
TN_MUST_USE tn_status tn_gguf_open_memory(tn_context *ctx, const void *data, size_t size, const char *name,
                                          tn_gguf **out);

// Where a file is: bytes at `data`, or a function that gives them, or a descriptor, or else a path.
typedef struct tn_gguf_source {
    const char *name; // for messages; the path
    const void *data; // size bytes, as for tn_gguf_open_memory
    size_t size;      // of data, or of what read gives
    // Copies up to n bytes from `offset` on to `to` and returns how many, 0 at the end, negative on failure.
    int64_t (*read)(void *user, uint64_t offset, void *to, size_t n);
    void *user;
    int32_t descriptor; // negative: none
    bool mapped;        // tensor data of a path or descriptor is mapped, not read into memory
} tn_gguf_source;
TN_MUST_USE tn_status tn_gguf_open_source(tn_context *ctx, const tn_gguf_source *source, tn_gguf **out);
void tn_gguf_close(tn_gguf **gguf);

tn_context *tn_gguf_context(const tn_gguf *gguf);
const char *tn_gguf_name(const tn_gguf *gguf); // path or name given
uint32_t tn_gguf_version(const tn_gguf *gguf);
size_t tn_gguf_file_size(const tn_gguf *gguf); // all files together
int32_t tn_gguf_n_files(const tn_gguf *gguf);

int64_t tn_gguf_n_kv(const tn_gguf *gguf);
const tn_gguf_kv *tn_gguf_kv_at(const tn_gguf *gguf, int64_t i);
const tn_gguf_kv *tn_gguf_find(const tn_gguf *gguf, const char *key); // NULL if absent

// Values that take the place of those of the file, or are added to them: to be called before the file is
// shared. Keys and data are copied; integers, floats, bools and strings, no arrays. TN_ERR_MEMORY, and
// nothing is changed then. Once: TN_ERR_STATE.
TN_MUST_USE tn_status tn_gguf_override(tn_gguf *gguf, const tn_gguf_kv *values, size_t n);

int64_t tn_gguf_n_tensors(const tn_gguf *gguf);
const tn_gguf_tensor *tn_gguf_tensor_at(const tn_gguf *gguf, int64_t i);
const tn_gguf_tensor *tn_gguf_find_tensor(const tn_gguf *gguf, const char *name);

// Typed access. Integers of any width and signedness are accepted when the value fits; floats accept F32
// and F64 (and integers). Absent key: *out stays as it is and the result is TN_OK, so that the caller sets
// the default first; a wrong type or a value that does not fit: TN_ERR_FORMAT naming the key.
TN_MUST_USE tn_status tn_gguf_get_u32(const tn_gguf *gguf, const char *key, uint32_t *out);
TN_MUST_USE tn_status tn_gguf_get_i64(const tn_gguf *gguf, const char *key, int64_t *out);
TN_MUST_USE tn_status tn_gguf_get_f32(const tn_gguf *gguf, const char *key, float *out);
TN_MUST_USE tn_status tn_gguf_get_bool(const tn_gguf *gguf, const char *key, bool *out);
TN_MUST_USE tn_status tn_gguf_get_str(const tn_gguf *gguf, const char *key, tn_gguf_str *out);

// Elements of an array value (or of a scalar, as index 0). Out of range or wrong type: TN_ERR_FORMAT.
TN_MUST_USE tn_status tn_gguf_array_i64(const tn_gguf *gguf, const tn_gguf_kv *kv, uint64_t i, int64_t *out);
TN_MUST_USE tn_status tn_gguf_array_f64(const tn_gguf *gguf, const tn_gguf_kv *kv, uint64_t i, double *out);
// Walks the strings of a string array from its start; `cursor` is 0 before the first call; each call advances
// it.
TN_MUST_USE tn_status tn_gguf_array_next_str(const tn_gguf *gguf, const tn_gguf_kv *kv, size_t *cursor,
                                             tn_gguf_str *out);

// --- tensor data -----------------------------------------------------------------------------------
// Touching mapped data that the file has lost ends the process; these functions give TN_ERR_IO.

// Copies bytes of a tensor, wherever the file is.
TN_MUST_USE tn_status tn_gguf_tensor_read(const tn_gguf *gguf, const tn_gguf_tensor *t, size_t at, void *to,
                                          size_t n);
bool tn_gguf_is_mapped(const tn_gguf *gguf);
// Whether tensor data is neither mapped nor in memory of the caller, and how many bytes tn_gguf_load reads
// then, else 0.
bool tn_gguf_needs_load(const tn_gguf *gguf);
size_t tn_gguf_load_size(const tn_gguf *gguf);
// Allocates that much; `data` of all tensors is valid from then on, and filled by tn_gguf_load.
TN_MUST_USE tn_status tn_gguf_reserve(tn_gguf *gguf);
// Called after each piece of n bytes; a status other than TN_OK ends the work.
typedef tn_status (*tn_gguf_step_fn)(void *user, size_t n);
TN_MUST_USE tn_status tn_gguf_load(tn_gguf *gguf, tn_gguf_step_fn step, void *user);
// Reads the pages of a mapped tensor into memory. Data that is in memory gives the steps alone. step may be
// NULL.
TN_MUST_USE tn_status tn_gguf_fetch(const tn_gguf *gguf, const tn_gguf_tensor *t, tn_gguf_step_fn step,
                                    void *user);
// Whether the mapped files still have the bytes that they had.
TN_MUST_USE tn_status tn_gguf_check_size(const tn_gguf *gguf);
// Keeps the tensor's data in physical memory until the file is closed; false: the system refuses.
bool tn_gguf_lock(tn_gguf *gguf, const tn_gguf_tensor *t);

// Checks values and block scales of every tensor (finite, valid exponents): reads the whole file.
TN_MUST_USE tn_status tn_gguf_check_data(const tn_gguf *gguf);

// --- writing ---------------------------------------------------------------------------------------
// Keys and tensor infos first, then begin(), then the payload of each tensor in the order added. The
// file appears under its name only at commit. The key general.alignment, put before the first tensor,
// decides the alignment (default 32). TN_ERR_ARG: breaks a rule of the format (a name that was added
// before is found by begin); TN_ERR_STATE: not now; TN_ERR_MEMORY, TN_ERR_IO.
typedef struct tn_gguf_writer tn_gguf_writer;
TN_MUST_USE tn_status tn_gguf_writer_open(tn_context *ctx, const char *path, tn_gguf_writer **out);
// Into memory instead: commit stores the bytes in *data (freed by tn_free of ctx). 64-byte aligned.
TN_MUST_USE tn_status tn_gguf_writer_open_memory(tn_context *ctx, tn_gguf_writer **out);
TN_MUST_USE tn_status tn_gguf_writer_put_u32(tn_gguf_writer *w, const char *key, uint32_t v);
TN_MUST_USE tn_status tn_gguf_writer_put_f32(tn_gguf_writer *w, const char *key, float v);
TN_MUST_USE tn_status tn_gguf_writer_put_bool(tn_gguf_writer *w, const char *key, bool v);
TN_MUST_USE tn_status tn_gguf_writer_put_str(tn_gguf_writer *w, const char *key, const char *v);
// Arrays: type TN_GGUF_*, elements packed as in memory; bool is one byte. Strings have their own call.
TN_MUST_USE tn_status tn_gguf_writer_put_array(tn_gguf_writer *w, const char *key, int32_t type,
                                               const void *elems, uint64_t count);
TN_MUST_USE tn_status tn_gguf_writer_put_strs(tn_gguf_writer *w, const char *key, const char *const *v,
                                              uint64_t count);
// Copies one key of another file unchanged.
TN_MUST_USE tn_status tn_gguf_writer_copy_kv(tn_gguf_writer *w, const tn_gguf_kv *kv);
TN_MUST_USE tn_status tn_gguf_writer_add_tensor(tn_gguf_writer *w, const char *name, tn_dtype dtype,
                                                int32_t n_dims, const int64_t *ne);
TN_MUST_USE tn_status tn_gguf_writer_begin(tn_gguf_writer *w);
// Bytes of the current tensor; may come in pieces. Padding is added when a tensor is full.
TN_MUST_USE tn_status tn_gguf_writer_data(tn_gguf_writer *w, const void *bytes, size_t n);
// Memory writers only: after begin(), the place where tensor i goes, instead of calls of data(). The caller
// has to write all of it.
TN_MUST_USE tn_status tn_gguf_writer_place(tn_gguf_writer *w, int64_t i, void **place);
// Completes the file and frees the writer (also on failure). `data`/`size` for memory writers, else NULL.
TN_MUST_USE tn_status tn_gguf_writer_commit(tn_gguf_writer **w, void **data, size_t *size);
void tn_gguf_writer_abort(tn_gguf_writer **w);

#endif
