// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GGUF images built byte by byte, independent of the writer under test; and a walk over everything that
// an opened file offers. For the unit test and the fuzzer.
#ifndef TN_TESTS_UNIT_GGUF_BYTES_H
#define TN_TESTS_UNIT_GGUF_BYTES_H

#include "models/gguf/gguf.h"

#include <stdlib.h>
#include <string.h>

typedef struct bytes {
    uint8_t *data;
    size_t size, capacity;
} bytes;

static inline void bytes_put(bytes *b, const void *p, size_t n)
{
    if (b->size + n > b->capacity) {
        b->capacity = 2 * (b->size + n);
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (n > 0) memcpy(b->data + b->size, p, n);
    b->size += n;
}

static inline void bytes_num(bytes *b, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
        bytes_put(b, &byte, 1);
    }
}

static inline void bytes_str_n(bytes *b, const char *s, size_t n)
{
    bytes_num(b, n, 8);
    bytes_put(b, s, n);
}

static inline void bytes_str(bytes *b, const char *s)
{
    bytes_str_n(b, s, strlen(s));
}

static inline void bytes_header(bytes *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    b->size = 0;
    bytes_put(b, "GGUF", 4);
    bytes_num(b, version, 4);
    bytes_num(b, n_tensors, 8);
    bytes_num(b, n_kv, 8);
}

static inline void bytes_key(bytes *b, const char *key, uint32_t type)
{
    bytes_str(b, key);
    bytes_num(b, type, 4);
}

static inline void bytes_kv_num(bytes *b, const char *key, uint32_t type, uint64_t v, size_t n)
{
    bytes_key(b, key, type);
    bytes_num(b, v, n);
}

static inline void bytes_kv_f32(bytes *b, const char *key, float v)
{
    bytes_key(b, key, TN_GGUF_F32);
    bytes_put(b, &v, 4);
}

static inline void bytes_kv_f64(bytes *b, const char *key, double v)
{
    bytes_key(b, key, TN_GGUF_F64);
    bytes_put(b, &v, 8);
}

static inline void bytes_kv_str(bytes *b, const char *key, const char *v)
{
    bytes_key(b, key, TN_GGUF_STRING);
    bytes_str(b, v);
}

static inline void bytes_array(bytes *b, const char *key, uint32_t elem_type, uint64_t count)
{
    bytes_key(b, key, TN_GGUF_ARRAY);
    bytes_num(b, elem_type, 4);
    bytes_num(b, count, 8);
}

// dims in the order of the file: row length first
static inline void bytes_info(bytes *b, const char *name, uint32_t n_dims, const uint64_t *dims,
                              uint32_t type, uint64_t offset)
{
    bytes_str(b, name);
    bytes_num(b, n_dims, 4);
    for (uint32_t i = 0; i < n_dims; i++) bytes_num(b, dims[i], 8);
    bytes_num(b, type, 4);
    bytes_num(b, offset, 8);
}

static inline void bytes_pad(bytes *b, size_t align)
{
    while (b->size % align != 0) bytes_num(b, 0, 1);
}

// A small file with every value type, three tensors out of order, and padding at the end.
// Returns where the last payload ends.
static inline size_t bytes_good_file(bytes *b)
{
    bytes_header(b, 3, 3, 18);
    bytes_kv_str(b, "general.architecture", "test");
    bytes_kv_num(b, "v.u8", TN_GGUF_U8, 200, 1);
    bytes_kv_num(b, "v.i8", TN_GGUF_I8, (uint64_t)-3, 1);
    bytes_kv_num(b, "v.u16", TN_GGUF_U16, 60000, 2);
    bytes_kv_num(b, "v.i16", TN_GGUF_I16, (uint64_t)-300, 2);
    bytes_kv_num(b, "v.u32", TN_GGUF_U32, 4000000000u, 4);
    bytes_kv_num(b, "v.i32", TN_GGUF_I32, (uint64_t)-70000, 4);
    bytes_kv_f32(b, "v.f32", 1.5f);
    bytes_kv_num(b, "v.bool", TN_GGUF_BOOL, 1, 1);
    bytes_kv_num(b, "v.u64", TN_GGUF_U64, UINT64_MAX, 8);
    bytes_kv_num(b, "v.i64", TN_GGUF_I64, (uint64_t)-5000000000, 8);
    bytes_kv_f64(b, "v.f64", -2.25);
    bytes_kv_num(b, "general.alignment", TN_GGUF_U32, 64, 4);
    bytes_array(b, "a.i16", TN_GGUF_I16, 3);
    for (int i = -1; i < 2; i++) bytes_num(b, (uint64_t)(int64_t)i, 2);
    bytes_array(b, "a.str", TN_GGUF_STRING, 3);
    bytes_str(b, "one");
    bytes_str(b, "");
    bytes_str_n(b, "a\0b", 3);
    bytes_array(b, "a.bool", TN_GGUF_BOOL, 2);
    bytes_num(b, 0x0200, 2);
    bytes_array(b, "a.empty", TN_GGUF_F32, 0);
    bytes_array(b, "a.nested", TN_GGUF_ARRAY, 2);
    bytes_num(b, TN_GGUF_U8, 4);
    bytes_num(b, 1, 8);
    bytes_num(b, 7, 1);
    bytes_num(b, TN_GGUF_STRING, 4);
    bytes_num(b, 1, 8);
    bytes_str(b, "in");
    bytes_info(b, "w.weight", 2, (uint64_t[]){32, 3}, 8, 128);    // Q8_0, 102 bytes
    bytes_info(b, "w.bias", 1, (uint64_t[]){3}, 0, 0);            // F32, 12 bytes
    bytes_info(b, "w.scale", 4, (uint64_t[]){2, 1, 2, 2}, 1, 64); // F16, 16 bytes
    bytes_pad(b, 64);
    for (int i = 0; i < 230; i++) bytes_num(b, 1, 1);
    size_t end = b->size;
    bytes_pad(b, 64);
    return end;
}

// Sums what it reads so that no access is optimised away. Failures of typed access are no errors here.
static inline uint64_t walk_kv(const tn_gguf *gguf, const tn_gguf_kv *kv)
{
    uint64_t sum = kv->key.size;
    for (uint64_t i = 0; i < kv->count + 1; i++) {
        int64_t v;
        double f;
        if (tn_gguf_array_i64(gguf, kv, i, &v) == TN_OK)
            sum += (uint64_t)v;
        else if (tn_gguf_array_f64(gguf, kv, i, &f) == TN_OK)
            sum += f > 0;
        else
            break;
    }
    tn_gguf_str s;
    size_t cursor = 0;
    while (tn_gguf_array_next_str(gguf, kv, &cursor, &s) == TN_OK)
        for (size_t i = 0; i < s.size; i++) sum += (uint8_t)s.data[i];
    return sum;
}

static inline uint64_t walk_typed(const tn_gguf *gguf, const char *key)
{
    uint32_t u32 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    bool flag = false;
    tn_gguf_str s = {0};
    uint64_t sum = 0;
    sum += tn_gguf_get_u32(gguf, key, &u32) == TN_OK ? u32 : 0;
    sum += tn_gguf_get_i64(gguf, key, &i64) == TN_OK ? (uint64_t)i64 : 0;
    sum += tn_gguf_get_f32(gguf, key, &f32) == TN_OK ? f32 > 0 : 0;
    sum += tn_gguf_get_bool(gguf, key, &flag) == TN_OK ? flag : 0;
    sum += tn_gguf_get_str(gguf, key, &s) == TN_OK ? s.size : 0;
    return sum;
}

static inline uint64_t walk_all(const tn_gguf *gguf)
{
    uint64_t sum = tn_gguf_version(gguf) + tn_gguf_file_size(gguf);
    for (int64_t i = 0; i < tn_gguf_n_kv(gguf); i++) {
        const tn_gguf_kv *kv = tn_gguf_kv_at(gguf, i);
        sum += walk_kv(gguf, kv);
        char key[64];
        if (kv->key.size >= sizeof key) continue;
        memcpy(key, kv->key.data, kv->key.size);
        key[kv->key.size] = 0;
        if (tn_gguf_find(gguf, key) != kv) abort();
        sum += walk_typed(gguf, key);
    }
    for (int64_t i = 0; i < tn_gguf_n_tensors(gguf); i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(gguf, i);
        if (tn_gguf_find_tensor(gguf, t->name) != t) abort();
        sum += (uint64_t)t->data[0] + t->data[t->size - 1];
    }
    sum += tn_gguf_check_data(gguf) == TN_OK;
    return sum;
}

#endif
