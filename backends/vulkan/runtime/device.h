// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// One Vulkan device of one context: a logical device of its own, one queue, the pipelines made so far.
#ifndef TN_VULKAN_DEVICE_H
#define TN_VULKAN_DEVICE_H

#include "backends/vulkan/runtime/loader.h"
#include "core/backend.h"
#include "core/threads/mutex.h"

enum {
#define TN_VK_SHADER(module, source, macro) TN_VK_SHADER_##module,
#include "backends/vulkan/shaders.def"
    TN_VK_SHADER_COUNT
};

// Memory within a buffer. Kernels use the address, copies the buffer, the host `mapped`, if any.
typedef struct tn_vk_block tn_vk_block;
typedef struct tn_vk_memory {
    VkBuffer buffer;
    size_t at;             // where it begins in the buffer
    VkDeviceMemory memory; // its own, or
    tn_vk_block *block;    // a part of this
    void *mapped;
    uint64_t address;
    size_t size;
    struct tn_vk_memory *next; // of the memory that host_create made
} tn_vk_memory;

enum { TN_VK_CONSTANTS = 14 }; // specialisation constants of a shader, ids from 0
typedef enum tn_vk_verdict { TN_VK_UNKNOWN, TN_VK_GOOD, TN_VK_BAD } tn_vk_verdict;

typedef struct tn_vk_pipeline {
    int32_t shader, constants[TN_VK_CONSTANTS];
    VkPipeline handle;
    uint64_t code; // hash of the shader
    tn_vk_verdict verdict;
    struct tn_vk_pipeline *next;
} tn_vk_pipeline;

// What an earlier process found about a pipeline (pipeline_cache.c).
typedef struct tn_vk_stored_verdict {
    uint64_t code;
    int32_t constants[TN_VK_CONSTANTS];
    int32_t verdict, pad;
} tn_vk_stored_verdict;

// What variants of kernels need (kernels.def): bits of tn_vk.has.
enum {
    // Sums over subgroups, in workgroups of whole subgroups of a size that is a power of two.
    TN_VK_SUBGROUPS = 1,
    // Dot products of four times int8, where the device has instructions for them or is a processor.
    TN_VK_INT8_DOT = 2,
    // Cooperative matrices with elements of that type and sums in f32: tn_vk.coopmat says which.
    TN_VK_COOPMAT_F16 = 4,
    TN_VK_COOPMAT_BF16 = 8,
    // Exchange within subgroups.
    TN_VK_SHUFFLE = 16,
    // The extension that they come from, one of the two: VK_KHR_cooperative_matrix, VK_NV_cooperative_matrix.
    TN_VK_COOPMAT_KHR = 32,
    TN_VK_COOPMAT_NV = 64,
    // Arithmetic in f16. Not on processors, which convert operands for each operation.
    TN_VK_F16_ARITHMETIC = 128,
    // Cooperative matrices of f16 as attention and GEMM of few rows need them: of 16 rows, and 48 KiB of
    // shared memory.
    TN_VK_COOPMAT_16 = 256,
    TN_VK_COOPMAT_16_BF16 = TN_VK_COOPMAT_16 | TN_VK_COOPMAT_BF16,
    // Their elements lie with the invocations as on NVIDIA's devices (shaders/coopmat.glsl).
    TN_VK_COOPMAT_LAYOUT = 512,
    TN_VK_FRAGMENTS = TN_VK_COOPMAT_16 | TN_VK_COOPMAT_LAYOUT,
    TN_VK_FRAGMENTS_BF16 = TN_VK_COOPMAT_16_BF16 | TN_VK_COOPMAT_LAYOUT,
};

// Shape of the cooperative matrices of GEMM: rows of the left operand and of the sums; all other extents are
// 16. A subgroup of `subgroup` invocations holds one.
typedef struct tn_vk_coopmat {
    int32_t rows, subgroup;
} tn_vk_coopmat;

// VK_EXT_subgroup_size_control, where the sizes of subgroups differ.
typedef struct tn_vk_subgroup_sizes {
    uint32_t least, most;
    bool can_require; // a pipeline may ask for one of them
    bool full;        // a pipeline may ask for subgroups without idle invocations
} tn_vk_subgroup_sizes;

// Features of Vulkan 1.2 that are optional there: all that shaders rely on.
typedef struct tn_vk_features {
    VkPhysicalDeviceFeatures2 core;
    VkPhysicalDeviceVulkan11Features v11;
    VkPhysicalDeviceVulkan12Features v12;
    VkPhysicalDeviceShaderIntegerDotProductFeatures dot; // linked where the device has the extension
} tn_vk_features;

static inline void tn_vk_features_link(tn_vk_features *f)
{
    *f = (tn_vk_features){.core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                          .v11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                          .v12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                          .dot.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES};
    f->core.pNext = &f->v11;
    f->v11.pNext = &f->v12;
}

enum { TN_VK_LOST = 1, TN_VK_GIVEN_UP = 2 };

typedef struct tn_vk {
    tn_device *device;
    tn_vk_instance *instance;
    VkPhysicalDevice physical;
    VkDevice handle; // made at first use, with all that follows
    tn_vk_functions f;
    tn_mutex lock; // the queue, the pool, the pipelines, the list of host memory: sessions of several threads
                   // share them
    tn_mutex staging_lock, blocks_lock; // locked before `lock`, and after it
    VkQueue queue;
    uint32_t family;
    VkCommandPool pool;
    VkSemaphore timeline; // counts submissions
    uint64_t n_submitted;
    VkPipelineLayout layout; // push constants only
    VkPipelineCache cache;
    int32_t n_new;               // pipelines that this process judged
    int32_t n_compiled;          // pipelines that were not in the cache
    tn_vk_stored_verdict *known; // what it judged
    int32_t n_known;
    VkExtensionProperties *extensions; // of the driver, while the device is described
    uint32_t n_extensions;
    const struct tn_vk_kernel *kernels; // the rows of kernels.def, in their order
    int32_t n_kernels;
    // logical_device.c, which needs most files of runtime/: they reach it only by this pointer.
    tn_status (*create_logical)(struct tn_vk *v);
    int32_t has;       // TN_VK_SUBGROUPS ...
    uint32_t subgroup; // invocations of a subgroup, 0: not known
    tn_vk_subgroup_sizes sizes;
    tn_vk_coopmat coopmat;
    bool is_portability;  // VK_KHR_portability_subset: the driver is a layer over another interface
    uint32_t max_shared;  // bytes of a workgroup
    uint32_t max_threads; // of a workgroup
    int32_t n_processors; // multiprocessors or compute units
    int32_t tile;         // for measurements: tile of GEMM + 1, or heads of attention; 0: chosen by shape
    tn_vk_pipeline *pipelines; // a list, newest first
    tn_vk_memory staging;      // for memory that the host does not see; made at first use
    tn_vk_memory tables;       // grids of the codebook formats
    tn_vk_block *blocks;       // a list
    tn_vk_memory *hosts;
    struct tn_vk_rope_angles *angles; // a list
    uint32_t device_type, host_type;  // memory types
    uint32_t device_heap;             // of device_type
    bool tells_budget;                // how much memory this process may have
    bool device_visible;              // the host sees the device's memory
    uint32_t max_groups;              // workgroups in one dimension
    float tick_ns;                    // of timestamps; 0: the queue has none
    // TN_VK_LOST: the device answers nothing any more, and every later call fails until all objects are gone.
    // TN_VK_GIVEN_UP: its work did not end in time. Then nothing calls the driver any more, until the context
    // ends and after it. 0: none.
    _Atomic int32_t lost;
    int64_t n_objects; // of callers: tn_vk_begin_object
} tn_vk;

static inline tn_vk *tn_vk_of(const tn_device *device)
{
    return device->impl;
}

// Whether pipelines ask for the size of their subgroups, or for full ones, because a device has several
// sizes.
static inline bool tn_vk_asks_for_subgroups(const tn_vk *v)
{
    return v->sizes.full && v->sizes.least != v->sizes.most && v->subgroup > 0;
}

// TN_OK, or a failure that says what was tried. Remembers that a device was lost.
tn_status tn_vk_check(tn_vk *v, VkResult r, const char *what);
bool tn_vk_is_lost(const tn_vk *v); // also if it was given up
bool tn_vk_is_given_up(const tn_vk *v);
tn_status tn_vk_fail_lost(tn_vk *v);
// The failure of a wait that is over: gives up the device, and with it all that lies there.
tn_status tn_vk_give_up(tn_vk *v, const tn_device_wait *w, const char *what);
// Whether the driver has an extension; while the device is described.
bool tn_vk_has_extension(const tn_vk *v, const char *name);
// Makes the logical device at first use; fails if it was lost.
TN_MUST_USE tn_status tn_vk_enter(tn_vk *v);
// The same before an object of a caller is made: a buffer, memory of the host, or an executable. When all of
// those of a lost device are gone, the logical device is made anew, so the context can go on.
TN_MUST_USE tn_status tn_vk_begin_object(tn_vk *v);
void tn_vk_end_object(tn_vk *v); // it is gone, or was not made

// NULL, or why the device cannot be used (physical_device.c).
const char *tn_vk_describe(tn_vk *v, int32_t ordinal);
// The logical device with all that it needs (logical_device.c). Under the lock.
TN_MUST_USE tn_status tn_vk_logical_create(tn_vk *v);
void tn_vk_logical_destroy(tn_vk *v); // NULL handle: nothing was made

// --- memory (memory.c) -------------------------------------------------------------------------------

// host: memory that the host sees and that stays coherent; zeroed.
TN_MUST_USE tn_status tn_vk_memory_create(tn_vk *v, size_t size, bool host, tn_vk_memory *out);
void tn_vk_memory_destroy(tn_vk *v, tn_vk_memory *m);
void tn_vk_blocks_free(tn_vk *v); // when all memories in them are freed
TN_MUST_USE tn_status tn_vk_memory_write(tn_vk *v, const tn_vk_memory *m, size_t offset, const void *bytes,
                                         size_t n);
// The address by which the device reaches memory of host_create; 0: it is none.
uint64_t tn_vk_host_address(tn_vk *v, const void *host);

tn_status tn_vk_buffer_create(tn_device *device, size_t size, tn_buffer *out);
void tn_vk_buffer_destroy(tn_buffer *buffer);
tn_status tn_vk_buffer_write(tn_buffer *buffer, size_t offset, const void *bytes, size_t n);
tn_status tn_vk_buffer_zero(tn_buffer *buffer, size_t offset, size_t n, size_t pitch, size_t rows);
tn_status tn_vk_buffer_read(const tn_buffer *buffer, size_t offset, void *bytes, size_t n);
tn_status tn_vk_host_create(tn_device *device, size_t size, void **out);
void tn_vk_host_destroy(tn_device *device, void *host);

// --- weights (planes.c) --------------------------------------------------------------------------------

struct tn_view;
struct tn_vk_weight;
TN_MUST_USE tn_status tn_vk_weight_write(tn_buffer *buffer, size_t offset, const struct tn_view *weight,
                                         const void *bytes);
// Where the planes of a whole weight are; false if the type is stored as in the file, all in plane 0.
bool tn_vk_weight_planes(const struct tn_view *weight, struct tn_vk_weight *out);
// A weight with n bytes as in a file, sorted into its planes at `to`, which is where `there` has its data.
void tn_vk_weight_sort(const struct tn_view *there, const void *bytes, char *to);
// Fills v->tables.
TN_MUST_USE tn_status tn_vk_tables_create(tn_vk *v);

// --- angles of rope (tables.c) -------------------------------------------------------------------

struct tn_rope_params;
// Address of n_rot / 2 numbers: the turn of each pair from one position to the next, without rope factors, in
// units of 2^-64 turns; made at first use. Takes the lock.
TN_MUST_USE tn_status tn_vk_rope_angles_get(tn_vk *v, const struct tn_rope_params *p, uint64_t *address);
void tn_vk_rope_angles_free(tn_vk *v);

// --- pipelines (pipeline.c) ------------------------------------------------------------------------------

// Pipelines that a plan needs, each once.
enum { TN_VK_MAX_REQUESTS = 64 };
typedef struct tn_vk_pipeline_request {
    int32_t shader, constants[TN_VK_CONSTANTS];
} tn_vk_pipeline_request;
typedef struct tn_vk_pipeline_requests {
    int32_t n;
    tn_vk_pipeline_request of[TN_VK_MAX_REQUESTS];
} tn_vk_pipeline_requests;
void tn_vk_pipeline_request_add(tn_vk_pipeline_requests *requests, int32_t shader,
                                const int32_t constants[TN_VK_CONSTANTS]);
// Makes those that are missing on all threads of the context, and reports progress. Takes the lock.
TN_MUST_USE tn_status tn_vk_pipelines_make(tn_vk *v, const tn_vk_pipeline_requests *requests);
int32_t tn_vk_n_compiled(tn_vk *v); // by this process so far. Takes the lock

// The name of a shader as in shaders.def.
const char *tn_vk_shader_name(int32_t shader);
// The pipeline of a shader with these constants; made at first use, valid as long as the device. Takes the
// lock.
TN_MUST_USE tn_status tn_vk_pipeline_get(tn_vk *v, int32_t shader, const int32_t constants[TN_VK_CONSTANTS],
                                         tn_vk_pipeline **out);
// Of n pipelines the worst verdict; and sets that of those that have none yet. Take the lock.
tn_vk_verdict tn_vk_verdict_get(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n);
void tn_vk_verdict_set(tn_vk *v, tn_vk_pipeline *const *pipelines, int32_t n, tn_vk_verdict verdict);
void tn_vk_pipelines_free(tn_vk *v);
// The driver's cache, with what an earlier process saved (pipeline_cache.c).
TN_MUST_USE tn_status tn_vk_pipeline_cache_create(tn_vk *v);
void tn_vk_pipeline_cache_save(tn_vk *v); // before the pipelines are freed
void tn_vk_pipeline_cache_free(tn_vk *v);

// --- work (commands.c, prepare.c, executable.c) --------------------------------------------------

// Submits, and returns the value that the timeline reaches at the end of the work. Takes the lock.
TN_MUST_USE tn_status tn_vk_submit_commands(tn_vk *v, int32_t n, const VkCommandBuffer *commands,
                                            uint64_t *value);
// Gives the device up if no submission ends within the limit of the context.
TN_MUST_USE tn_status tn_vk_wait_for(tn_vk *v, uint64_t value);
void tn_vk_commands_free(tn_vk *v, VkCommandBuffer *commands); // and clears it. Takes the lock
// Waits for all that was submitted.
TN_MUST_USE tn_status tn_vk_drain(tn_vk *v);
// The same before something is freed: work that was submitted may still use it, but a lost device uses
// nothing.
void tn_vk_settle(tn_vk *v);

bool tn_vk_accepts(const tn_device *device, const struct tn_step *step);
const char *tn_vk_kernel_name(const tn_device *device, const struct tn_step *step);
tn_status tn_vk_launches(tn_device *device, const struct tn_program *program, int32_t i,
                         const tn_launch_sink *sink);
size_t tn_vk_scratch_size(tn_device *device, const struct tn_program *program);
tn_status tn_vk_prepare(tn_device *device, const struct tn_program *program, const tn_buffer *scratch,
                        tn_executable **out);
void tn_vk_executable_destroy(tn_device *device, tn_executable *executable);
tn_status tn_vk_submit(tn_device *device, tn_executable *executable, const tn_submit_options *options);
tn_status tn_vk_wait(tn_device *device, tn_executable *executable);

#endif
