// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps what the driver compiled, and the verdicts whether it did so rightly, for the next start: in the file
// pipelines-vulkan-<hash of device and driver>.bin in the cache directory of the context. It has a head with
// a checksum of the rest, the verdicts, and the bytes of the driver. A damaged or foreign file is not read;
// if the file cannot be written, the next start is slower.
#include "backends/vulkan/runtime/device.h"
#include "core/os/file_map.h"
#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 1152, SUM_SIZE = sizeof(uint64_t), FORMAT = 5, MAX_VERDICTS = 1 << 16 };

static uint64_t sum_of(const void *bytes, size_t n)
{
    tn_hash h;
    tn_hash_init(&h);
    tn_hash_add(&h, bytes, n);
    return tn_hash_value(&h);
}

static bool file_path(const tn_vk *v, char path[PATH_SIZE])
{
    const char *dir = tn_context_cache_dir(v->device->ctx);
    if (!dir) return false;
    uint64_t h = sum_of(v->device->description, strlen(v->device->description));
    int n = snprintf(path, PATH_SIZE, "%s/pipelines-vulkan-%016" PRIx64 ".bin", dir, h);
    return n > 0 && n < PATH_SIZE;
}

typedef struct head {
    uint64_t sum; // of all that follows
    uint32_t format, n_verdicts;
} head;

// The verdicts of a whole and undamaged file into v, and the bytes of the driver; false: it is not one.
static bool read_file(tn_vk *v, const tn_file_map *map, VkPipelineCacheCreateInfo *info)
{
    head h;
    const char *bytes = (const char *)map->data;
    if (map->size < sizeof h) return false;
    memcpy(&h, bytes, sizeof h);
    size_t n_bytes = map->size - sizeof h, size = (size_t)h.n_verdicts * sizeof *v->known;
    if (h.format != FORMAT || h.n_verdicts > MAX_VERDICTS || size > n_bytes ||
        h.sum != sum_of(bytes + SUM_SIZE, map->size - SUM_SIZE))
        return false;
    v->known = tn_alloc(v->device->ctx, size);
    if (!v->known) return false;
    memcpy(v->known, bytes + sizeof h, size);
    v->n_known = (int32_t)h.n_verdicts;
    info->pInitialData = bytes + sizeof h + size;
    info->initialDataSize = n_bytes - size;
    return true;
}

tn_status tn_vk_pipeline_cache_create(tn_vk *v)
{
    char path[PATH_SIZE];
    tn_context *ctx = v->device->ctx;
    tn_file_map map = {0};
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    bool open = file_path(v, path) && tn_file_exists(path) && tn_file_map_open(ctx, path, &map) == TN_OK;
    if (open && !read_file(v, &map, &info))
        tn_log(ctx, TN_LOG_INFO, "%s: %s is of no use; it is made anew", v->device->name, path);
    tn_status status =
        tn_vk_check(v, v->f.CreatePipelineCache(v->handle, &info, NULL, &v->cache), "making a cache");
    if (open) tn_file_map_close(ctx, &map);
    return status;
}

void tn_vk_pipeline_cache_free(tn_vk *v)
{
    tn_free(v->device->ctx, v->known);
    v->known = NULL;
    v->n_known = 0;
    if (!tn_vk_is_given_up(v)) v->f.DestroyPipelineCache(v->handle, v->cache, NULL);
    v->cache = NULL;
}

static tn_vk_stored_verdict known_of(const tn_vk_pipeline *p)
{
    tn_vk_stored_verdict k = {.code = p->code, .verdict = p->verdict};
    memcpy(k.constants, p->constants, sizeof k.constants);
    return k;
}

static bool is_new(const tn_vk *v, const tn_vk_stored_verdict *k)
{
    for (int32_t i = 0; i < v->n_known; i++)
        if (v->known[i].code == k->code &&
            memcmp(v->known[i].constants, k->constants, sizeof k->constants) == 0)
            return false;
    return k->verdict != TN_VK_UNKNOWN;
}

// Verdicts, old ones first, then n bytes of the driver: behind a head in *out.
static size_t put_together(const tn_vk *v, const void *bytes, size_t n, char *out)
{
    head h = {.format = FORMAT};
    char *at = out + sizeof h;
    if (v->n_known > 0) memcpy(at, v->known, (size_t)v->n_known * sizeof *v->known);
    h.n_verdicts = (uint32_t)v->n_known;
    for (const tn_vk_pipeline *p = v->pipelines; p && h.n_verdicts < MAX_VERDICTS; p = p->next) {
        tn_vk_stored_verdict k = known_of(p);
        if (is_new(v, &k)) memcpy(at + h.n_verdicts++ * sizeof k, &k, sizeof k);
    }
    at += h.n_verdicts * sizeof *v->known;
    memcpy(at, bytes, n);
    size_t size = (size_t)(at - out) + n;
    memcpy(out, &h, sizeof h);
    h.sum = sum_of(out + SUM_SIZE, size - SUM_SIZE);
    memcpy(out, &h.sum, SUM_SIZE);
    return size;
}

static tn_status write_file(tn_vk *v, const char *path, const void *bytes, size_t n)
{
    tn_file_writer *w;
    tn_status status = tn_file_writer_open(v->device->ctx, path, &w);
    if (status != TN_OK) return status;
    status = tn_file_writer_write(w, bytes, n);
    if (status == TN_OK) return tn_file_writer_commit(&w);
    tn_file_writer_abort(&w);
    return status;
}

void tn_vk_pipeline_cache_save(tn_vk *v)
{
    char path[PATH_SIZE];
    size_t n = 0, verdicts = (size_t)(v->n_known + v->n_new) * sizeof *v->known;
    if (!v->cache || v->n_new == 0 || tn_vk_is_given_up(v) || !file_path(v, path)) return;
    if (v->f.GetPipelineCacheData(v->handle, v->cache, &n, NULL) != VK_SUCCESS || n == 0) return;
    void *bytes = tn_alloc(v->device->ctx, n);
    char *file = tn_alloc(v->device->ctx, sizeof(head) + verdicts + n);
    if (bytes && file && v->f.GetPipelineCacheData(v->handle, v->cache, &n, bytes) == VK_SUCCESS) {
        tn_status status = write_file(v, path, file, put_together(v, bytes, n, file));
        TN_UNUSED(status); // a cache
    }
    tn_free(v->device->ctx, file);
    tn_free(v->device->ctx, bytes);
}
