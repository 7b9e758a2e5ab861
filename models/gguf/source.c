// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Where the bytes of a file come from: a path, a descriptor, memory, or a function of the caller. The head
// (all records, up to the tensor data) is always read into memory, so that parsing it never touches a page
// that the file may have lost. Tensor data is mapped, or read into memory by tn_gguf_load.
#include "core/checked.h"
#include "core/cpu_features.h"
#include "models/gguf/file.h"

#include <string.h>

enum {
    HEAD_FIRST = 256 << 10, // bytes of the first read: most files without a vocabulary have smaller heads
    PIECE = 4 << 20,        // bytes between two steps: a millisecond in memory, some ten on a slow disk
};

// --- reading -----------------------------------------------------------------------------------------

static tn_status call_read(tn_context *ctx, const tn_gguf_file *file, size_t at, uint8_t *to, size_t n)
{
    while (n > 0) {
        int64_t got = file->source.read(file->source.user, at, to, n);
        if (got < 0 || (uint64_t)got > n)
            return tn_fail(ctx, TN_ERR_IO, "%s: cannot read %zu bytes at byte %zu: the function gave %lld",
                           file->source.name, n, at, (long long)got);
        if (got == 0)
            return tn_fail(ctx, TN_ERR_IO, "%s: ends at byte %zu, but has %zu bytes", file->source.name, at,
                           file->size);
        to += got;
        at += (size_t)got;
        n -= (size_t)got;
    }
    return TN_OK;
}

tn_status tn_gguf_file_read(tn_context *ctx, const tn_gguf_file *file, size_t at, void *to, size_t n)
{
    if (!file->source.read) return tn_file_map_read(ctx, &file->map, at, to, n);
    if (at > file->size || n > file->size - at)
        return tn_fail(ctx, TN_ERR_INTERNAL, "bytes %zu + %zu of a file of %zu", at, n, file->size);
    return call_read(ctx, file, at, to, n);
}

// --- the head ----------------------------------------------------------------------------------------

// A walk that finds where the records end. It judges nothing: where it meets something that cannot be, it
// stops, and the scan that follows says what is wrong there.
typedef struct walk {
    tn_context *ctx;
    tn_gguf_file *file;
    uint8_t *bytes; // have of them, and space for capacity
    size_t have, capacity;
    size_t pos;
    tn_status status; // why the walk ended early, if reading failed
} walk;

// Reads on, so that bytes [0, end) are there.
static tn_status read_on(walk *w, size_t end)
{
    if (end <= w->have) return TN_OK;
    size_t want = TN_MIN(TN_MAX(TN_MAX(end, HEAD_FIRST), w->have / 2 + w->have), w->file->size);
    if (want > w->capacity) {
        uint8_t *more = tn_realloc(w->ctx, w->bytes, w->have, want);
        if (!more) return TN_ERR_MEMORY;
        w->bytes = more;
        w->capacity = want;
    }
    tn_status status = tn_gguf_file_read(w->ctx, w->file, w->have, w->bytes + w->have, want - w->have);
    if (status == TN_OK) w->have = want;
    return status;
}

// Steps over n bytes and gives their address, if the file has that many.
static bool step_over(walk *w, uint64_t n, const uint8_t **out)
{
    if (w->status != TN_OK || n > w->file->size - w->pos) return false;
    w->status = read_on(w, w->pos + (size_t)n);
    if (w->status != TN_OK) return false;
    *out = w->bytes + w->pos;
    w->pos += (size_t)n;
    return true;
}

static bool walk_number(walk *w, size_t n_bytes, uint64_t *out)
{
    const uint8_t *p;
    if (!step_over(w, n_bytes, &p)) return false;
    *out = tn_load_le(p, n_bytes);
    return true;
}

static bool walk_string(walk *w)
{
    uint64_t n;
    const uint8_t *p;
    return walk_number(w, 8, &n) && n <= TN_GGUF_STRING_MAX && step_over(w, n, &p);
}

// One value, or `count` of them.
static bool walk_values(walk *w, uint64_t type, uint64_t count, int depth)
{
    const uint8_t *p;
    size_t size = type < TN_GGUF_TYPE_COUNT ? tn_gguf_type_size((int32_t)type) : 0;
    if (count > TN_GGUF_COUNT_MAX || depth > TN_GGUF_DEPTH_MAX) return false;
    if (size > 0) return step_over(w, count * size, &p);
    if (type != TN_GGUF_STRING && type != TN_GGUF_ARRAY) return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t elem, n;
        bool ok = type == TN_GGUF_STRING ? walk_string(w)
                                         : walk_number(w, 4, &elem) && walk_number(w, 8, &n) &&
                                               walk_values(w, elem, n, depth + 1);
        if (!ok) return false;
    }
    return true;
}

static bool walk_keys(walk *w, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t type;
        if (!walk_string(w) || !walk_number(w, 4, &type) || !walk_values(w, type, 1, 0)) return false;
    }
    return true;
}

static bool walk_infos(walk *w, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t n_dims;
        const uint8_t *p;
        if (!walk_string(w) || !walk_number(w, 4, &n_dims) || n_dims > TN_MAX_DIMS) return false;
        if (!step_over(w, 8 * n_dims + 4 + 8, &p)) return false;
    }
    return true;
}

static tn_status read_head(tn_context *ctx, tn_gguf_file *file)
{
    walk w = {.ctx = ctx, .file = file};
    uint64_t magic_and_version, n_tensors, n_keys;
    // All of a file that ends inside the header is there for the scan.
    w.status = read_on(&w, TN_MIN(file->size, TN_GGUF_HEADER_SIZE));
    // A wrong file is refused before it is walked through.
    bool ok = walk_number(&w, 8, &magic_and_version) && (uint32_t)magic_and_version == 0x46554747u;
    ok = ok && walk_number(&w, 8, &n_tensors) && walk_number(&w, 8, &n_keys);
    if (ok && walk_keys(&w, n_keys)) walk_infos(&w, n_tensors);
    if (w.status != TN_OK) {
        tn_free(ctx, w.bytes);
        return w.status;
    }
    file->head = file->owned_head = w.bytes;
    file->head_size = w.have;
    return TN_OK;
}

// --- opening -----------------------------------------------------------------------------------------

tn_status tn_gguf_file_open(tn_context *ctx, const tn_gguf_source *source, tn_gguf_file *file)
{
    *file = (tn_gguf_file){.source = *source, .size = source->size};
    if (source->data) {
        file->map = (tn_file_map){.data = source->data, .size = source->size};
        file->head = source->data;
        file->head_size = source->size;
        return TN_OK;
    }
    tn_status status = TN_OK;
    if (!source->read) {
        status = tn_file_map_open_as(ctx, source->name, source->descriptor, source->mapped, &file->map);
        file->size = file->map.size;
    }
    if (status == TN_OK && file->size == 0)
        status = tn_fail(ctx, TN_ERR_FORMAT, "%s: the file is empty", source->name);
    return status == TN_OK ? read_head(ctx, file) : status;
}

void tn_gguf_file_close(tn_context *ctx, tn_gguf_file *file)
{
    if (file->locked) tn_memory_unlock(file->owned_data, file->data_end - file->data_start);
    tn_free(ctx, file->owned_head);
    tn_free(ctx, file->owned_data);
    tn_file_map_close(ctx, &file->map);
}

// --- tensor data -------------------------------------------------------------------------------------

tn_status tn_gguf_tensor_read(const tn_gguf *gguf, const tn_gguf_tensor *t, size_t at, void *to, size_t n)
{
    if (at > t->size || n > t->size - at)
        return tn_fail(gguf->ctx, TN_ERR_INTERNAL, "tensor \"%s\": bytes %zu + %zu of %zu", t->name, at, n,
                       t->size);
    const tn_gguf_file *f = &gguf->files[t->file];
    if (!f->loaded) return tn_gguf_file_read(gguf->ctx, f, (size_t)t->file_offset + at, to, n);
    memcpy(to, t->data + at, n);
    return TN_OK;
}

bool tn_gguf_is_mapped(const tn_gguf *gguf)
{
    return gguf->files[0].map.handle && gguf->files[0].map.data;
}

bool tn_gguf_needs_load(const tn_gguf *gguf)
{
    return !gguf->files[0].map.data;
}

size_t tn_gguf_load_size(const tn_gguf *gguf)
{
    size_t size = 0; // each file's size fits, as do those of all in memory
    for (int32_t i = 0; i < gguf->n_files && tn_gguf_needs_load(gguf); i++) {
        const tn_gguf_file *f = &gguf->files[i];
        if (f->n_tensors > 0 && !tn_add_size(size, f->data_end - f->data_start, &size)) return SIZE_MAX;
    }
    return size;
}

tn_status tn_gguf_reserve(tn_gguf *gguf)
{
    size_t need = tn_gguf_load_size(gguf);
    uint64_t total, available;
    tn_system_memory(&total, &available);
    // The system would grant the memory and end some process once it is filled.
    if (need > 0 && total > 0 && need > available)
        return tn_fail(gguf->ctx, TN_ERR_MEMORY,
                       "%s: its tensors take %zu MiB of memory, %llu MiB are available; map the file instead",
                       gguf->name, need >> 20, (unsigned long long)(available >> 20));
    for (int32_t i = 0; i < gguf->n_files && need > 0; i++) {
        tn_gguf_file *f = &gguf->files[i];
        if (f->n_tensors == 0) continue;
        f->owned_data = tn_alloc(gguf->ctx, f->data_end - f->data_start);
        if (!f->owned_data) return TN_ERR_MEMORY;
    }
    for (size_t i = 0; i < gguf->n_tensors && need > 0; i++) {
        const tn_gguf_file *f = &gguf->files[gguf->tensors[i].file];
        gguf->tensors[i].data = f->owned_data + ((size_t)gguf->tensors[i].file_offset - f->data_start);
    }
    return TN_OK;
}

tn_status tn_gguf_load(tn_gguf *gguf, tn_gguf_step_fn step, void *user)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < gguf->n_files && status == TN_OK; i++) {
        tn_gguf_file *f = &gguf->files[i];
        size_t size = f->owned_data ? f->data_end - f->data_start : 0;
        for (size_t at = 0; at < size && status == TN_OK;) {
            size_t n = TN_MIN(size - at, PIECE);
            status = tn_gguf_file_read(gguf->ctx, f, f->data_start + at, f->owned_data + at, n);
            at += n;
            if (status == TN_OK) status = step(user, n);
        }
        if (status != TN_OK || size == 0) continue;
        f->loaded = true;
        tn_file_map_close(gguf->ctx, &f->map);
    }
    return status;
}

tn_status tn_gguf_fetch(const tn_gguf *gguf, const tn_gguf_tensor *t, tn_gguf_step_fn step, void *user)
{
    const tn_gguf_file *f = &gguf->files[t->file];
    tn_status status = TN_OK;
    for (size_t at = 0; at < t->size && status == TN_OK;) {
        size_t n = TN_MIN(t->size - at, PIECE);
        if (f->map.handle) status = tn_file_map_fetch(gguf->ctx, &f->map, (size_t)t->file_offset + at, n);
        at += n;
        if (status == TN_OK && step) status = step(user, n);
    }
    return status;
}

tn_status tn_gguf_check_size(const tn_gguf *gguf)
{
    tn_status status = TN_OK;
    for (int32_t i = 0; i < gguf->n_files && status == TN_OK; i++)
        if (gguf->files[i].map.data) status = tn_file_map_check(gguf->ctx, &gguf->files[i].map);
    return status;
}

bool tn_gguf_lock(tn_gguf *gguf, const tn_gguf_tensor *t)
{
    tn_gguf_file *f = &gguf->files[t->file];
    if (f->owned_data) f->locked = true;
    return tn_memory_lock(t->data, t->size);
}
