// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of this folder share: records, one file of a (split) model, the opened object.
#ifndef TN_MODELS_GGUF_FILE_H
#define TN_MODELS_GGUF_FILE_H

#include "models/gguf/cursor.h"
#include "models/gguf/gguf.h"
#include "models/gguf/names.h"

enum {
    TN_GGUF_VERSION = 3,
    TN_GGUF_HEADER_SIZE = 24,
    TN_GGUF_KEY_MAX = 65535,         // bytes, of the format
    TN_GGUF_NAME_MAX = 63,           // bytes of a tensor name, of the format
    TN_GGUF_ALIGNMENT = 32,          // default, of the format
    TN_GGUF_ALIGNMENT_MIN = 8,       // of the format; keeps every element type aligned in a mapping
    TN_GGUF_ALIGNMENT_MAX = 1 << 20, // a limit of this reader: far above any page
    TN_GGUF_DEPTH_MAX = 4,           // a limit of this reader: arrays inside arrays
    TN_GGUF_STRING_MAX = 1 << 30,    // bytes; the cap that other readers have
    TN_GGUF_COUNT_MAX = 1 << 30,     // elements of an array; likewise
};

#define TN_GGUF_ALIGNMENT_KEY "general.alignment"

typedef struct tn_gguf_file {
    tn_gguf_source source; // its name lives as long as the file
    tn_file_map map;       // of a path, a descriptor or memory; its data is NULL if the file is only read
    size_t size;
    const uint8_t *head; // the first head_size bytes: at least the records
    size_t head_size;
    uint8_t *owned_head; // NULL: memory of the caller
    uint8_t *owned_data; // the bytes from data_start to data_end, if they are read into memory; else NULL
    bool loaded;         // they have been read, and the file is closed
    bool locked;         // some of owned_data is kept in physical memory
    uint32_t version;
    size_t n_kv, n_tensors;
    size_t info_pos;   // where tensor infos start
    size_t names_size; // bytes of all tensor names, terminators included
    size_t alignment, data_start;
    size_t data_end; // of the last tensor, once they are loaded
} tn_gguf_file;

typedef struct tn_gguf_keys {
    tn_gguf_kv *kv;
    size_t n;
    tn_name_index index;
} tn_gguf_keys;

struct tn_gguf {
    tn_context *ctx;
    char *name;
    int32_t n_files;
    tn_gguf_file *files;
    tn_gguf_keys keys;   // of the first file, with what takes their place
    uint8_t *overridden; // keys and data of those; NULL: none
    tn_gguf_tensor *tensors;
    size_t n_tensors;
    char *tensor_names; // one block for all names
    tn_name_index tensor_index;
};

// --- record.c ---
// A name of a file, escaped for a message: at most 64 bytes, without anything that a terminal would act on.
typedef struct tn_gguf_shown {
    char text[72];
} tn_gguf_shown;
const char *tn_gguf_show(tn_gguf_str s, tn_gguf_shown *shown);
bool tn_gguf_str_is(tn_gguf_str s, const char *text);
// Bytes of an element; 0 for strings, arrays and unknown types.
size_t tn_gguf_type_size(int32_t type);
typedef enum tn_gguf_kind {
    TN_GGUF_KIND_OTHER, // strings, arrays, unknown types
    TN_GGUF_KIND_UNSIGNED,
    TN_GGUF_KIND_SIGNED,
    TN_GGUF_KIND_FLOAT,
    TN_GGUF_KIND_BOOL,
} tn_gguf_kind;
tn_gguf_kind tn_gguf_type_kind(int32_t type);
TN_MUST_USE tn_status tn_gguf_read_kv(tn_context *ctx, tn_cursor *c, tn_gguf_kv *out);
// name and data of *out stay NULL; its file_offset is still relative to the data section.
TN_MUST_USE tn_status tn_gguf_read_tensor(tn_context *ctx, tn_cursor *c, tn_gguf_tensor *out,
                                          tn_gguf_str *name);
// Bytes of a tensor of valid rank; also checks dimensions and the block size of its rows.
TN_MUST_USE tn_status tn_gguf_tensor_size(tn_context *ctx, const tn_gguf_tensor *t, size_t *out);

// --- source.c ---
// Opens the source and reads the head. tn_gguf_file_close also after failure.
TN_MUST_USE tn_status tn_gguf_file_open(tn_context *ctx, const tn_gguf_source *source, tn_gguf_file *file);
void tn_gguf_file_close(tn_context *ctx, tn_gguf_file *file);
// Bytes of the file wherever it is; TN_ERR_IO if they cannot be read.
TN_MUST_USE tn_status tn_gguf_file_read(tn_context *ctx, const tn_gguf_file *file, size_t at, void *to,
                                        size_t n);

// --- scan.c ---
// Checks header and all records of file->head without allocating, and fills the rest of *file.
TN_MUST_USE tn_status tn_gguf_file_scan(tn_context *ctx, tn_gguf_file *file);
// The keys of a scanned file; refuses duplicates. keys_fini also after failure.
TN_MUST_USE tn_status tn_gguf_keys_load(tn_context *ctx, const tn_gguf_file *file, tn_gguf_keys *keys);
// Fills the index of names. *duplicate: position of the first key that occurred before, or keys->n.
TN_MUST_USE tn_status tn_gguf_keys_index(tn_context *ctx, tn_gguf_keys *keys, size_t *duplicate);
const tn_gguf_kv *tn_gguf_keys_find(const tn_gguf_keys *keys, const char *key);
void tn_gguf_keys_fini(tn_context *ctx, tn_gguf_keys *keys);
// Tensors of a scanned file; names go to *names, which is moved behind them. Checks ranges and overlaps.
TN_MUST_USE tn_status tn_gguf_tensors_load(tn_context *ctx, tn_gguf_file *file, tn_gguf_tensor *tensors,
                                           char **names);

// --- reader.c ---
// The names of all tensors, for the index of names.
tn_name_list tn_gguf_tensor_list(const tn_gguf *gguf);

// --- split.c ---
// Opens and scans the other files of a split model, if it is one; the first file and its keys are there.
// Without a path the other files cannot be found: TN_ERR_UNSUPPORTED.
TN_MUST_USE tn_status tn_gguf_split_open(tn_gguf *gguf);

// --- values.c ---
// The integer of a scalar key.
TN_MUST_USE tn_status tn_gguf_kv_i64(tn_context *ctx, const tn_gguf_kv *kv, int64_t *out);

#endif
