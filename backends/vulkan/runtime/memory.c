// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Buffers. A large one has an allocation of its own: a model has some hundred weights, far fewer than the
// 4096 allocations that every device grants, and freeing a weight gives its memory back at once. Small ones
// share blocks, because a driver needs up to a millisecond to make and free an allocation, and a start needs
// some twenty.
#include "backends/vulkan/runtime/device.h"

#include "core/device.h"

#include <string.h>

enum { STAGING_LEAST = 1 << 18, STAGING_MOST = 1 << 24 };
enum { SMALL = 1 << 15, BLOCK = 1 << 18, ALIGNMENT = 256 };

struct tn_vk_block {
    tn_vk_memory whole;
    bool host;
    size_t used; // bytes from its start
    int32_t n;   // memories in it
    struct tn_vk_block *next;
};

static void destroy_own(tn_vk *v, tn_vk_memory *m)
{
    bool there = !tn_vk_is_given_up(v);
    if (there && m->buffer) v->f.DestroyBuffer(v->handle, m->buffer, NULL);
    if (there && m->memory) v->f.FreeMemory(v->handle, m->memory, NULL); // unmaps it too
    *m = (tn_vk_memory){0};
}

static tn_status bind(tn_vk *v, uint32_t type, bool map, tn_vk_memory *m)
{
    VkMemoryRequirements need;
    v->f.GetBufferMemoryRequirements(v->handle, m->buffer, &need);
    if (!(need.memoryTypeBits >> type & 1u))
        return tn_fail(v->device->ctx, TN_ERR_DEVICE, "%s: buffers cannot lie in its memory",
                       v->device->name);
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &flags,
                                 .allocationSize = need.size,
                                 .memoryTypeIndex = type};
    VkResult r = v->f.AllocateMemory(v->handle, &info, NULL, &m->memory);
    if (r == VK_ERROR_OUT_OF_DEVICE_MEMORY || r == VK_ERROR_OUT_OF_HOST_MEMORY)
        return tn_fail(v->device->ctx, TN_ERR_MEMORY, "%s: out of memory: %zu MiB are needed",
                       v->device->name, m->size >> 20);
    tn_status status = tn_vk_check(v, r, "allocating");
    if (status == TN_OK)
        status = tn_vk_check(v, v->f.BindBufferMemory(v->handle, m->buffer, m->memory, 0), "binding memory");
    if (status == TN_OK && map)
        status = tn_vk_check(v, v->f.MapMemory(v->handle, m->memory, 0, VK_WHOLE_SIZE, 0, &m->mapped),
                             "mapping memory");
    if (status != TN_OK) return status;
    VkBufferDeviceAddressInfo at = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                    .buffer = m->buffer};
    m->address = v->f.GetBufferDeviceAddress(v->handle, &at);
    return TN_OK;
}

static tn_status make_own(tn_vk *v, size_t size, bool host, tn_vk_memory *out)
{
    tn_vk_memory m = {.size = TN_MAX(size, 4)};
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .size = m.size,
                               .usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
                                        VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    tn_status status =
        tn_vk_check(v, v->f.CreateBuffer(v->handle, &info, NULL, &m.buffer), "making a buffer");
    if (status == TN_OK)
        status = bind(v, host ? v->host_type : v->device_type, host || v->device_visible, &m);
    if (status != TN_OK)
        destroy_own(v, &m);
    else
        *out = m;
    return status;
}

// --- blocks ------------------------------------------------------------------------------------------

static tn_status make_block(tn_vk *v, bool host, tn_vk_block **out)
{
    tn_vk_block *b = tn_calloc(v->device->ctx, 1, sizeof *b);
    if (!b) return TN_ERR_MEMORY;
    tn_status status = make_own(v, BLOCK, host, &b->whole);
    if (status != TN_OK) {
        tn_free(v->device->ctx, b);
        return status;
    }
    b->host = host;
    b->next = v->blocks;
    *out = v->blocks = b;
    return TN_OK;
}

// A block is filled from its start to its end, and is used again when all memories in it are freed.
static tn_status reserve_small(tn_vk *v, size_t size, bool host, tn_vk_memory *out)
{
    size_t reserved = (TN_MAX(size, 4) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    tn_mutex_lock(&v->blocks_lock);
    tn_vk_block *b = v->blocks;
    while (b && (b->host != host || BLOCK - b->used < reserved)) b = b->next;
    tn_status status = b ? TN_OK : make_block(v, host, &b);
    if (status == TN_OK) {
        char *mapped = b->whole.mapped;
        *out = (tn_vk_memory){.buffer = b->whole.buffer,
                              .at = b->used,
                              .mapped = mapped ? mapped + b->used : NULL,
                              .address = b->whole.address + b->used,
                              .size = TN_MAX(size, 4),
                              .block = b};
        b->used += reserved;
        b->n++;
    }
    tn_mutex_unlock(&v->blocks_lock);
    return status;
}

void tn_vk_blocks_free(tn_vk *v)
{
    while (v->blocks) {
        tn_vk_block *b = v->blocks;
        v->blocks = b->next;
        destroy_own(v, &b->whole);
        tn_free(v->device->ctx, b);
    }
}

tn_status tn_vk_memory_create(tn_vk *v, size_t size, bool host, tn_vk_memory *out)
{
    tn_vk_memory m;
    tn_status status = size <= SMALL ? reserve_small(v, size, host, &m) : make_own(v, size, host, &m);
    if (status != TN_OK) return status;
    if (host) memset(m.mapped, 0, m.size);
    *out = m;
    return TN_OK;
}

void tn_vk_memory_destroy(tn_vk *v, tn_vk_memory *m)
{
    if (!m->block) {
        destroy_own(v, m);
        return;
    }
    tn_mutex_lock(&v->blocks_lock);
    if (--m->block->n == 0) m->block->used = 0;
    tn_mutex_unlock(&v->blocks_lock);
    *m = (tn_vk_memory){0};
}

// --- buffers -----------------------------------------------------------------------------------------

// Drivers move memory of one program out of the device for another one, and then both become slow: so what
// others have is not asked for.
static tn_status check_budget(tn_vk *v, size_t size)
{
    enum { SMALLEST = 1 << 20 };
    uint64_t left = size >= SMALLEST && v->tells_budget ? v->device->backend->memory_free(v->device) : size;
    if (size <= left) return TN_OK;
    return tn_fail(v->device->ctx, TN_ERR_MEMORY,
                   "%s: out of memory: %zu MiB are needed, and this program and others leave %zu MiB",
                   v->device->name, size >> 20, (size_t)(left >> 20));
}

// Memory of a caller.
static tn_status create_object(tn_vk *v, size_t size, bool host, tn_vk_memory **out)
{
    tn_status status = tn_vk_begin_object(v);
    if (status != TN_OK) return status;
    tn_vk_memory *m = tn_calloc(v->device->ctx, 1, sizeof *m);
    status = m ? TN_OK : TN_ERR_MEMORY;
    if (status == TN_OK && !host) status = check_budget(v, size);
    if (status == TN_OK) status = tn_vk_memory_create(v, size, host, m);
    if (status != TN_OK) {
        tn_free(v->device->ctx, m);
        tn_vk_end_object(v);
        return status;
    }
    *out = m;
    return TN_OK;
}

static void destroy_object(tn_vk *v, tn_vk_memory *m)
{
    tn_vk_memory_destroy(v, m);
    tn_free(v->device->ctx, m);
    tn_vk_end_object(v);
}

tn_status tn_vk_buffer_create(tn_device *device, size_t size, tn_buffer *out)
{
    tn_vk_memory *m = NULL;
    tn_status status = create_object(tn_vk_of(device), size, false, &m);
    if (status != TN_OK) return status;
    out->handle = m;
    out->data = (void *)(uintptr_t)m->address;
    return TN_OK;
}

void tn_vk_buffer_destroy(tn_buffer *buffer)
{
    tn_vk *v = tn_vk_of(buffer->device);
    tn_vk_settle(v); // work that was submitted may still use it; a lost device uses nothing
    destroy_object(v, buffer->handle);
}

// Work of the device on memory: copying n bytes from one buffer to another, or, without `from`, writing
// `rows` runs of n zeros that begin `pitch` bytes apart.
typedef struct transfer {
    VkBuffer from, to;
    size_t from_offset, to_offset, n, pitch, rows;
} transfer;

static void record(tn_vk *v, VkCommandBuffer commands, const transfer *t)
{
    VkBufferCopy region = {.srcOffset = t->from_offset, .dstOffset = t->to_offset, .size = t->n};
    if (t->from) v->f.CmdCopyBuffer(commands, t->from, t->to, 1, &region);
    for (size_t r = 0; r < t->rows; r++)
        v->f.CmdFillBuffer(commands, t->to, t->to_offset + r * t->pitch, t->n, 0);
}

// Waits until it is done.
static tn_status run_transfer(tn_vk *v, const transfer *t)
{
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = v->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    VkCommandBuffer commands = NULL;
    tn_mutex_lock(&v->lock);
    tn_status status =
        tn_vk_check(v, v->f.AllocateCommandBuffers(v->handle, &info, &commands), "making commands");
    if (status == TN_OK) status = tn_vk_check(v, v->f.BeginCommandBuffer(commands, &begin), "recording");
    if (status == TN_OK) {
        record(v, commands, t);
        status = tn_vk_check(v, v->f.EndCommandBuffer(commands), "recording");
    }
    tn_mutex_unlock(&v->lock);
    uint64_t value = 0;
    if (status == TN_OK) status = tn_vk_submit_commands(v, 1, &commands, &value);
    if (status == TN_OK) status = tn_vk_wait_for(v, value);
    tn_vk_commands_free(v, &commands);
    return status;
}

// Makes the staging memory as large as the largest transfer so far, within bounds.
static tn_status make_staging(tn_vk *v, size_t n)
{
    size_t size = STAGING_LEAST;
    while (size < n && size < STAGING_MOST) size *= 2;
    if (v->staging.size >= size) return TN_OK;
    destroy_own(v, &v->staging);
    return make_own(v, size, true, &v->staging);
}

// Moves bytes between the host and memory that it does not see through the staging memory, which one transfer
// at a time uses.
static tn_status stage(tn_vk *v, const tn_vk_memory *m, size_t offset, char *bytes, size_t n, bool write)
{
    tn_mutex_lock(&v->staging_lock);
    tn_status status = make_staging(v, n);
    for (size_t at = 0; at < n && status == TN_OK; at += v->staging.size) {
        size_t part = TN_MIN(n - at, v->staging.size), there = m->at + offset + at;
        if (write) memcpy(v->staging.mapped, bytes + at, part);
        transfer t = {.from = v->staging.buffer, .to = m->buffer, .to_offset = there, .n = part};
        if (!write)
            t = (transfer){.from = m->buffer, .from_offset = there, .to = v->staging.buffer, .n = part};
        status = run_transfer(v, &t);
        if (status == TN_OK && !write) memcpy(bytes + at, v->staging.mapped, part);
    }
    tn_mutex_unlock(&v->staging_lock);
    return status;
}

static tn_status move_bytes(tn_vk *v, const tn_vk_memory *m, size_t offset, char *bytes, size_t n, bool write)
{
    tn_status status = tn_vk_enter(v);
    if (status == TN_OK) status = tn_vk_drain(v);
    if (status != TN_OK || n == 0) return status;
    if (!m->mapped) return stage(v, m, offset, bytes, n, write);
    if (write)
        memcpy((char *)m->mapped + offset, bytes, n);
    else
        memcpy(bytes, (char *)m->mapped + offset, n);
    return TN_OK;
}

tn_status tn_vk_memory_write(tn_vk *v, const tn_vk_memory *m, size_t offset, const void *bytes, size_t n)
{
    return move_bytes(v, m, offset, (char *)(uintptr_t)bytes, n, true); // only read from
}

// A buffer may be a part of another one, whose memory it then has.
static size_t offset_in(const tn_buffer *b, size_t offset)
{
    const tn_vk_memory *m = b->handle;
    return (size_t)((uint64_t)(uintptr_t)b->data - m->address) + offset;
}

tn_status tn_vk_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n)
{
    return tn_vk_memory_write(tn_vk_of(buffer->device), buffer->handle, offset_in(buffer, offset), bytes, n);
}

// Clears the caches of all layers with one submission. A copy of zeros for each layer and block, with a wait
// of some 45 us each, had reserved half of the time that a prefill of eight layers spent outside of kernels
// on an H200.
tn_status tn_vk_buffer_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows)
{
    static const char zeros[4096];
    enum { WORD = 4 }; // what the device fills
    tn_vk *v = tn_vk_of(buffer->device);
    const tn_vk_memory *m = buffer->handle;
    size_t first = offset_in(buffer, offset);
    tn_status status = tn_vk_enter(v);
    if (status == TN_OK) status = tn_vk_drain(v);
    if (status != TN_OK || n == 0) return status;
    if (first % WORD == 0 && n % WORD == 0 && (pitch % WORD == 0 || rows == 1))
        return run_transfer(
            v,
            &(transfer){.to = m->buffer, .to_offset = m->at + first, .n = n, .pitch = pitch, .rows = rows});
    for (size_t r = 0; r < rows; r++)
        for (size_t at = 0; at < n && status == TN_OK; at += sizeof zeros)
            status = tn_vk_memory_write(v, m, first + r * pitch + at, zeros, TN_MIN(sizeof zeros, n - at));
    return status;
}

tn_status tn_vk_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n)
{
    return move_bytes(tn_vk_of(buffer->device), buffer->handle, offset_in(buffer, offset), bytes, n, false);
}

tn_status tn_vk_host_create(tn_device *device, size_t size, void **out)
{
    tn_vk *v = tn_vk_of(device);
    tn_vk_memory *m = NULL;
    tn_status status = create_object(v, size, true, &m);
    if (status != TN_OK) return status;
    tn_mutex_lock(&v->lock);
    m->next = v->hosts;
    v->hosts = m;
    tn_mutex_unlock(&v->lock);
    *out = m->mapped;
    return TN_OK;
}

void tn_vk_host_destroy(tn_device *device, void *host)
{
    tn_vk *v = tn_vk_of(device);
    tn_vk_settle(v);
    tn_vk_memory *gone = NULL;
    tn_mutex_lock(&v->lock);
    for (tn_vk_memory **m = &v->hosts; *m && !gone; m = *m ? &(*m)->next : m)
        if ((*m)->mapped == host) gone = *m, *m = gone->next;
    tn_mutex_unlock(&v->lock);
    if (gone) destroy_object(v, gone);
}

uint64_t tn_vk_host_address(tn_vk *v, const void *host)
{
    uint64_t address = 0;
    tn_mutex_lock(&v->lock);
    for (const tn_vk_memory *m = v->hosts; m; m = m->next) {
        uintptr_t at = (uintptr_t)host, from = (uintptr_t)m->mapped;
        if (at >= from && at - from < m->size) address = m->address + (at - from);
    }
    tn_mutex_unlock(&v->lock);
    return address;
}
