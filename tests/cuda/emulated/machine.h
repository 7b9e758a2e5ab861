// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The emulated device: fibers, blocks, what they wait for. One launch runs at a time, one fiber of it at a
// time.
#ifndef TN_TESTS_EMULATED_MACHINE_H
#define TN_TESTS_EMULATED_MACHINE_H

#include "tests/cuda/emulated/emulator.h"

#include <stdbool.h>

enum {
    WARP = 32,
    MAX_THREADS = 1024, // of a block
    MAX_WARPS = MAX_THREADS / WARP,
    MAX_CLUSTER = 8, // blocks
    MAX_BARRIERS = 16,
    MAX_MBARRIERS = 512, // of a block
    SHARED_START =
        1024, // offset of dynamic shared memory: what lies before is the system's, from capability 9.0 on
    SHARED_GUARD = 1024, // behind dynamic shared memory, then follow the variables
    SHARED_WINDOW = 1 << 19,
    SHARED_PIECE = 16, // what copies by the copy engine are multiples of
    SHARED_PIECES = SHARED_WINDOW / SHARED_PIECE,
    SHARED_RANK_SHIFT = 24, // an address of another block of the cluster: its rank + 1 there
};

typedef enum wait_kind {
    READY,
    WAITS_WARP,
    WAITS_BARRIER,
    WAITS_CLUSTER,
    WAITS_MBARRIER,
    WAITS_PRODUCT,
    ENDED
} wait_kind;

typedef struct block block;
typedef struct fiber fiber;

// A copy of `size` bytes (4, 8 or 16) that flies (cp.async).
typedef struct small_copy {
    char *to;
    const char *from;
    uint32_t n, size; // the rest of n bytes is zeros
    int group;
} small_copy;

// A tensor copy of this thread to global memory.
typedef struct tensor_store {
    const void *map;
    uint32_t from; // offset in shared memory
    int x, y, group;
} tensor_store;

enum { MAX_STORES = 64 };

struct fiber {
    tn_emulated_thread now; // first: tn_emulated_now points here
    void *sp;
    void *context; // of the portable switch
    fiber *next;   // of those that are ready
    block *block;
    int id, warp, lane;
    wait_kind state;
    bool guarded;      // its stack is
    const char *where; // what it waits in
    uint32_t wait_on;  // barrier, or offset of the mbarrier, or product
    void *data;        // what it brought to a meeting
    small_copy *copies;
    int n_copies, max_copies, copy_group;
    tensor_store *stores;
    int n_stores, store_group;
    uint64_t fenced;     // number of its last fence between loads, stores and the copy engine
    uint32_t n_products; // wgmma issued
    int product_group;
};

// Lanes that meet. `what` tells kinds of meetings apart.
typedef void tn_emulated_finish(fiber *lanes, uint32_t there);
typedef struct meeting {
    const void *what;
    tn_emulated_finish *finish;
    uint32_t mask, arrived;
} meeting;

enum { MAX_MEETINGS = 8 };

typedef struct warp {
    uint32_t alive;
    meeting meetings[MAX_MEETINGS];
} warp;

typedef struct mbarrier {
    uint32_t offset, count, pending;
    int64_t bytes;
    uint32_t phase;
    bool unseen; // a phase has ended, and no thread has waited for it as yet
} mbarrier;

// A product of a warpgroup (wgmma), carried out when it is waited for, and what its lanes gave.
typedef struct product {
    int filled, group; // -1: carried out
    int n, type, trans_a, trans_b;
    bool keep, from_registers;
    uint64_t a, b;
    float *d[128][128];
    uint32_t regs[128][4];
} product;

enum { MAX_PRODUCTS = 128 };

typedef struct warpgroup {
    product *products; // ring
    uint32_t done;     // all before it are carried out
} warpgroup;

// The last load or store of a piece of shared memory: after how many fences, and whose.
typedef struct shared_use {
    uint64_t after;
    fiber *by;
} shared_use;

struct block {
    char *window; // its shared memory: SHARED_WINDOW bytes
    shared_use *uses; // of each SHARED_PIECE
    uint64_t born;    // uses before are of other blocks
    int rank, n_alive;
    tn_emulated_index at;
    warp warps[MAX_WARPS];
    struct {
        uint32_t arrived, expected;
    } barriers[MAX_BARRIERS];
    mbarrier mbarriers[MAX_MBARRIERS];
    int n_mbarriers;
    warpgroup groups[MAX_WARPS / 4];
    fiber *fibers;
};

// A copy by the copy engine: carried out when no thread can go on, so that nobody relies on its being early.
typedef struct bulk_copy {
    block *to_block;
    uint32_t to, bar; // offsets in shared memory
    const char *from; // plain
    uint32_t bytes;
    const void *map; // or a box of a tensor
    int x, y;
    uint32_t mask; // blocks of the cluster, 0: only to_block
} bulk_copy;

typedef struct kernel_site {
    const tn_emulated_site *site;
    size_t size, offset;
} kernel_site;

enum { MAX_SITES = 32 };

// What is known of a kernel from its launches.
typedef struct kernel {
    const tn_emulated_entry *entry;
    kernel_site sites[MAX_SITES];
    int n_sites;
    size_t static_size;
    struct kernel *next;
} kernel;

typedef struct machine {
    kernel *kernel;
    const void *args;
    tn_emulated_index n_blocks, n_threads;
    int n_cluster;
    uint32_t dynamic; // bytes
    block blocks[MAX_CLUSTER];
    fiber *first, *last; // ready
    uint32_t n_alive, n_at_cluster;
    bulk_copy *copies;
    int n_copies, max_copies;
    uint64_t random, n_fences;
    bool failed;
} machine;

extern machine tn_emulated_machine;

static inline fiber *this_fiber(void)
{
    return (fiber *)(void *)tn_emulated_now;
}

// Prints what went wrong, with kernel, block and thread; the launch fails.
void tn_emulated_fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
// Kernels read n bytes of device memory.
void tn_emulated_will_read(const void *p, size_t n);

// Loads and stores go another way than the copy engine (PTX ISA, "Async proxy"): between them and a copy to
// the same place there has to be a fence of the thread that made them or of the one that starts the copy.
void tn_emulated_shared_used(const void *p, size_t n); // by the fiber that runs, if it is shared memory
void tn_emulated_proxy_fence(void);
void tn_emulated_copy_to(const block *b, uint32_t offset, uint32_t n);
// The fiber that runs waits; another one runs until it is woken.
void tn_emulated_park(wait_kind why, uint32_t on, const char *where);
void tn_emulated_wake(fiber *f);

// All lanes of `mask` that have not ended bring data; the last one to come calls finish with the lanes that
// are there.
void tn_emulated_meet(const void *what, const char *where, uint32_t mask, void *data,
                      tn_emulated_finish *finish);

static inline uint32_t shared_static_start(const machine *m)
{
    return (SHARED_START + m->dynamic + SHARED_GUARD + 1023) / 1024 * 1024;
}

// Memory behind an address of shared memory: of this block, or of one of the cluster.
char *tn_emulated_shared_at(uint32_t address, uint32_t size, uint32_t align);
block *tn_emulated_block_of(uint32_t *address);

void tn_emulated_mbarrier_init(uint32_t address, uint32_t count);
void tn_emulated_mbarrier_arrive(uint32_t address, uint32_t bytes);
void tn_emulated_mbarrier_wait(uint32_t address, uint32_t parity);
void tn_emulated_mbarrier_bytes(block *b, uint32_t offset, uint32_t bytes); // have arrived
void tn_emulated_cluster_sync(void);

void tn_emulated_bulk_add(const bulk_copy *c);
bool tn_emulated_bulk_step(void); // carries one out; false if there is none
void tn_emulated_copies_finish(fiber *f, int pending);
void tn_emulated_stores_finish(fiber *f, int pending);

void tn_emulated_product_wait(int pending);

// The end of the fiber that runs, and of a block.
void tn_emulated_leave(void);

#endif
