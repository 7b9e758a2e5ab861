// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the driver compiled, kept for the next start: pipelines-vulkan-<hash of device and driver>.bin in the
// cache directory of the context, a checksum and the bytes of the driver. A damaged or foreign file is not
// read; one that cannot be written costs the next start some time, nothing else.
#include "backends/vulkan/device.h"
#include "core/file_map.h"
#include "core/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 1152, SUM_SIZE = sizeof(uint64_t) };

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

tn_status tn_vk_cache_create(tn_vk *v)
{
    char path[PATH_SIZE];
    tn_context *ctx = v->device->ctx;
    tn_file_map map = {0};
    VkPipelineCacheCreateInfo info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
    bool open = file_path(v, path) && tn_file_exists(path) && tn_file_map_open(ctx, path, &map) == TN_OK;
    if (open && map.size > SUM_SIZE) {
        const char *bytes = (const char *)map.data + SUM_SIZE;
        uint64_t sum;
        memcpy(&sum, map.data, SUM_SIZE);
        if (sum == sum_of(bytes, map.size - SUM_SIZE)) {
            info.pInitialData = bytes;
            info.initialDataSize = map.size - SUM_SIZE;
        }
    }
    tn_status status =
        tn_vk_check(v, v->f.CreatePipelineCache(v->handle, &info, NULL, &v->cache), "making a cache");
    if (open) tn_file_map_close(ctx, &map);
    return status;
}

static tn_status write_file(tn_vk *v, const char *path, const void *bytes, size_t n)
{
    tn_file_writer *w;
    uint64_t sum = sum_of(bytes, n);
    tn_status status = tn_file_writer_open(v->device->ctx, path, &w);
    if (status != TN_OK) return status;
    status = tn_file_writer_write(w, &sum, sizeof sum);
    if (status == TN_OK) status = tn_file_writer_write(w, bytes, n);
    if (status == TN_OK) return tn_file_writer_commit(&w);
    tn_file_writer_abort(&w);
    return status;
}

void tn_vk_cache_save(tn_vk *v)
{
    char path[PATH_SIZE];
    size_t n = 0;
    if (!v->cache || v->n_made == 0 || !file_path(v, path)) return;
    if (v->f.GetPipelineCacheData(v->handle, v->cache, &n, NULL) != VK_SUCCESS || n == 0) return;
    void *bytes = tn_alloc(v->device->ctx, n);
    if (bytes && v->f.GetPipelineCacheData(v->handle, v->cache, &n, bytes) == VK_SUCCESS) {
        tn_status status = write_file(v, path, bytes, n);
        TN_UNUSED(status); // a cache
    }
    tn_free(v->device->ctx, bytes);
}
