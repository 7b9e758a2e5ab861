// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What emulated kernels call: threads of a block are fibers of one thread of the host, which run until they
// wait for each other. Seen by C and by device code compiled as C++.
#ifndef TN_TESTS_EMULATED_EMULATOR_H
#define TN_TESTS_EMULATED_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_emulated_index {
    uint32_t x, y, z;
} tn_emulated_index;

// The thread that runs, as CUDA C++ sees itself.
typedef struct tn_emulated_thread {
    tn_emulated_index thread, block, n_threads, n_blocks;
} tn_emulated_thread;

extern tn_emulated_thread *tn_emulated_now;

// An entry point; kernels take their one argument by reference.
typedef struct tn_emulated_entry {
    const char *name, *module;
    void (*run)(const void *args);
    size_t args_size;
    uint32_t max_threads;
} tn_emulated_entry;

// --- warps, blocks -------------------------------------------------------------------------------

enum {
    TN_EMULATED_MEET,
    TN_EMULATED_FROM,
    TN_EMULATED_XOR,
    TN_EMULATED_UP,
    TN_EMULATED_DOWN,
    TN_EMULATED_BALLOT,
    TN_EMULATED_MAX
};

// All threads of the warp that `mask` names give x; what each gets depends on the kind.
uint64_t tn_emulated_exchange(int kind, uint32_t mask, uint64_t x, int at);
// Barrier `id` of the block for `threads` threads, 0: all that have not ended. Without `wait` the thread only
// arrives.
void tn_emulated_barrier(int id, uint32_t threads, int wait);
void tn_emulated_trap(const char *why) __attribute__((noreturn));

// --- shared memory -------------------------------------------------------------------------------

// A variable of shared memory, known by the address of its site.
typedef struct tn_emulated_site {
    char unused;
} tn_emulated_site;

void *tn_emulated_shared_static(const tn_emulated_site *site, size_t size, size_t align);
void *tn_emulated_shared_dynamic(size_t align);
// Where p lies in the shared memory of its block.
size_t tn_emulated_shared_offset(const void *p);

// --- PTX -----------------------------------------------------------------------------------------

typedef struct tn_emulated_operand {
    void *out;   // of outputs: where the value is
    uint64_t in; // of inputs
} tn_emulated_operand;

// One asm statement; its text is read at its first run.
typedef struct tn_emulated_asm {
    const char *text;
    struct tn_emulated_ptx *code;
} tn_emulated_asm;

void tn_emulated_ptx_run(tn_emulated_asm *statement, tn_emulated_operand *operands, int n);

#ifdef __cplusplus
}

template <typename T> static inline tn_emulated_operand tn_emulated_out(T &x)
{
    return {&x, 0};
}

template <typename T> static inline tn_emulated_operand tn_emulated_in(T x)
{
    static_assert(sizeof x <= 8, "");
    tn_emulated_operand o = {nullptr, 0};
    __builtin_memcpy(&o.in, &x, sizeof x);
    return o;
}
#endif

#endif
