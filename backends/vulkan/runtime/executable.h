// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a program as dispatches. Only for the files of runtime/ that make and run it: launch.c fills
// the dispatches of each step, prepare.c those of all steps, commands.c records them, executable.c runs them.
#ifndef TN_VULKAN_EXECUTABLE_H
#define TN_VULKAN_EXECUTABLE_H

#include "backends/vulkan/runtime/barriers.h"
#include "backends/vulkan/runtime/kernel.h"
#include "backends/vulkan/runtime/staged.h"

// An entry of the list that shaders/host_copy.comp reads.
typedef struct tn_vk_host_copy {
    uint64_t to, from, words;
} tn_vk_host_copy;

// A dispatch that is ready to be recorded.
typedef struct tn_vk_run {
    VkPipeline pipeline;
    tn_vk_push push;
    uint32_t x, y;
    int32_t step;
    bool waits; // for those before it
} tn_vk_run;

struct tn_executable {
    int32_t n_steps, n_runs, n_uploads, n_downloads;
    tn_vk_range scratch;
    tn_vk_barriers order;              // while steps are prepared
    tn_vk_staged staged;               // of the step that is prepared
    bool *has_staged;                  // whether each step before it has written its staged result
    tn_vk_pipeline_requests *requests; // not NULL: pipelines are only noted there
    tn_vk_run *runs;
    tn_vk_run up, down; // copies from and to the host, before and after all steps
    uint64_t counters;  // of all steps: those that need scratch too, and so run one after the other
    tn_vk_memory args;  // all records, then the lists of copies, then the counters
    VkCommandBuffer *parts, timed; // each part has some of the steps
    int32_t *part_end;             // the first step that is not in it
    int32_t n_parts;
    bool is_object;          // of a caller (tn_vk_begin_object), not of a probe
    double *work, part_work; // multiplications of each step, and most of a part with several steps
    // When it was last submitted, and the time that a part took at most, 0: not known. Displays of some
    // systems reset a device whose submission takes longer than 2 s.
    uint64_t submit_ns, part_ns;
    VkQueryPool queries; // n_steps + 1, made when times are first asked for
    uint64_t *ticks;
    uint64_t *step_ns; // of the last submission; NULL: the caller wants no times
    uint64_t value;    // of the timeline at its end
};

// Bytes behind the records: a shader also touches the records of the next two dispatches (touch_record in
// backends/vulkan/shaders/common.glsl).
enum { TN_VK_NEXT_RECORDS = 2 * sizeof(tn_vk_args) };

// --- launch.c ------------------------------------------------------------------------------------

// Bytes of scratch that the step needs with that kernel; its operands may be unbound. counters may be NULL.
size_t tn_vk_scratch_of(const tn_vk *v, const tn_step *step, const tn_step *like, const tn_vk_kernel *k,
                        int64_t *counters);
size_t tn_vk_align_scratch(size_t size);
// Whether the kernel does the work of the step before too, which is to be folded into this one.
bool tn_vk_folds(const tn_vk *v, const tn_step *step, const tn_vk_kernel *k);
// Appends the dispatches of one step by one kernel to e->runs, puts their records into `records`, and their
// pipelines into `pipelines`. *n: how many pipelines.
TN_MUST_USE tn_status tn_vk_launch(tn_vk *v, tn_executable *e, const tn_step *step, const tn_step *like,
                                   const tn_vk_kernel *k, tn_vk_args *records, tn_vk_pipeline **pipelines,
                                   int32_t *n);

// --- commands.c ----------------------------------------------------------------------------------

// Records steps [first, end); timed: with a timestamp after each.
TN_MUST_USE tn_status tn_vk_record(tn_vk *v, const tn_executable *e, int32_t first, int32_t end, bool timed,
                                   VkCommandBuffer *out);
// Records all steps as e->parts.
TN_MUST_USE tn_status tn_vk_record_parts(tn_vk *v, tn_executable *e, const tn_program *program);
// Records them as more and smaller parts, when nothing runs any more.
TN_MUST_USE tn_status tn_vk_divide_parts(tn_vk *v, tn_executable *e);
void tn_vk_free_parts(tn_vk *v, tn_executable *e);

#endif
