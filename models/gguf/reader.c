// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plain access to what opening read: counts, keys and tensors by position and by name.
#include "models/gguf/file.h"

#include <string.h>

static tn_gguf_str tensor_name(const void *items, size_t i)
{
    const char *name = ((const tn_gguf_tensor *)items)[i].name;
    return (tn_gguf_str){name, strlen(name)};
}

tn_name_list tn_gguf_tensor_list(const tn_gguf *gguf)
{
    return (tn_name_list){gguf->tensors, gguf->n_tensors, tensor_name};
}

tn_context *tn_gguf_context(const tn_gguf *gguf)
{
    return gguf->ctx;
}

const char *tn_gguf_name(const tn_gguf *gguf)
{
    return gguf->name;
}

uint32_t tn_gguf_version(const tn_gguf *gguf)
{
    return gguf->files[0].version;
}

size_t tn_gguf_file_size(const tn_gguf *gguf)
{
    size_t size = 0; // far below 2^64 for files; one that a function gives has no other file beside it
    for (int32_t i = 0; i < gguf->n_files; i++) size += gguf->files[i].size;
    return size;
}

int32_t tn_gguf_n_files(const tn_gguf *gguf)
{
    return gguf->n_files;
}

int64_t tn_gguf_n_kv(const tn_gguf *gguf)
{
    return (int64_t)gguf->keys.n;
}

const tn_gguf_kv *tn_gguf_kv_at(const tn_gguf *gguf, int64_t i)
{
    return i >= 0 && i < tn_gguf_n_kv(gguf) ? &gguf->keys.kv[i] : NULL;
}

const tn_gguf_kv *tn_gguf_find(const tn_gguf *gguf, const char *key)
{
    return tn_gguf_keys_find(&gguf->keys, key);
}

int64_t tn_gguf_n_tensors(const tn_gguf *gguf)
{
    return (int64_t)gguf->n_tensors;
}

const tn_gguf_tensor *tn_gguf_tensor_at(const tn_gguf *gguf, int64_t i)
{
    return i >= 0 && i < tn_gguf_n_tensors(gguf) ? &gguf->tensors[i] : NULL;
}

const tn_gguf_tensor *tn_gguf_find_tensor(const tn_gguf *gguf, const char *name)
{
    tn_name_list list = tn_gguf_tensor_list(gguf);
    int64_t i = tn_name_index_find(&gguf->tensor_index, &list, (tn_gguf_str){name, strlen(name)});
    return i < 0 ? NULL : &gguf->tensors[i];
}
