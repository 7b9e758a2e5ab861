// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Where threads meet: warps, barriers of a block and of a cluster, mbarriers; and shared memory.
#include "tests/cuda/emulated/machine.h"

#include <string.h>

static machine *const m = &tn_emulated_machine;

// --- warps ---------------------------------------------------------------------------------------

static void meeting_end(fiber *lanes, meeting *t, const fiber *here)
{
    uint32_t there = t->arrived;
    t->mask = 0;
    t->finish(lanes, there);
    for (int i = 0; i < WARP; i++)
        if (there >> i & 1 && &lanes[i] != here) tn_emulated_wake(&lanes[i]);
}

void tn_emulated_meet(const void *what, const char *where, uint32_t mask, void *data,
                      tn_emulated_finish *finish)
{
    fiber *f = this_fiber(), *lanes = &f->block->fibers[f->warp * WARP];
    warp *w = &f->block->warps[f->warp];
    if (!(mask >> f->lane & 1))
        tn_emulated_fail("%s: the mask %08x lacks lane %d, which calls", where, mask, f->lane);
    meeting *t = NULL, *unused = NULL;
    for (int i = 0; i < MAX_MEETINGS; i++) {
        meeting *at = &w->meetings[i];
        if (at->mask == 0)
            unused = at;
        else if (at->mask == mask && at->what == what && !(at->arrived >> f->lane & 1))
            t = at;
    }
    if (!t) {
        if (!unused) tn_emulated_fail("%s: lanes of the warp are in too many places", where);
        *unused = (meeting){what, finish, mask, 0};
        t = unused;
    }
    t->arrived |= 1u << f->lane;
    f->data = data;
    if ((t->mask & w->alive & ~t->arrived) == 0)
        meeting_end(lanes, t, f);
    else
        tn_emulated_park(WAITS_WARP, mask, where);
}

typedef struct exchanged {
    int kind, at;
    uint64_t x, got;
} exchanged;

static void finish_exchange(fiber *lanes, uint32_t there)
{
    uint64_t all = 0, most = 0;
    for (int i = 0; i < WARP; i++) {
        exchanged *e = there >> i & 1 ? lanes[i].data : NULL;
        if (!e) continue;
        if (e->x) all |= 1u << i;
        if (e->x > most) most = e->x;
    }
    for (int i = 0; i < WARP; i++) {
        exchanged *e = there >> i & 1 ? lanes[i].data : NULL;
        if (!e) continue;
        int from = e->kind == TN_EMULATED_FROM  ? e->at & (WARP - 1)
                   : e->kind == TN_EMULATED_XOR ? (i ^ e->at)
                   : e->kind == TN_EMULATED_UP  ? i - e->at
                                                : i + e->at;
        if (e->kind == TN_EMULATED_BALLOT)
            e->got = all;
        else if (e->kind == TN_EMULATED_MAX)
            e->got = most;
        else if (e->kind == TN_EMULATED_MEET)
            e->got = 0;
        else if (from < 0 || from >= WARP)
            e->got = e->x;
        else
            e->got = there >> from & 1 ? ((exchanged *)lanes[from].data)->x
                                       : UINT64_MAX; // a lane that is not there: anything
    }
}

uint64_t tn_emulated_exchange(int kind, uint32_t mask, uint64_t x, int at)
{
    static const char what[TN_EMULATED_MAX + 1];
    static const char *const names[] = {"__syncwarp",       "__shfl_sync",      "__shfl_xor_sync",
                                        "__shfl_up_sync",   "__shfl_down_sync", "__ballot_sync, __any_sync",
                                        "__reduce_max_sync"};
    exchanged e = {kind, at, x, 0};
    tn_emulated_meet(&what[kind], names[kind], mask, &e, finish_exchange);
    return e.got;
}

// --- barriers ------------------------------------------------------------------------------------

static void barrier_check(block *b, int id)
{
    uint32_t expected = b->barriers[id].expected ? b->barriers[id].expected : (uint32_t)b->n_alive;
    if (b->barriers[id].arrived == 0 || b->barriers[id].arrived < expected) return;
    b->barriers[id].arrived = b->barriers[id].expected = 0;
    for (uint32_t i = 0; i < m->n_threads.x; i++) {
        fiber *f = &b->fibers[i];
        if (f->state == WAITS_BARRIER && f->wait_on == (uint32_t)id) tn_emulated_wake(f);
    }
}

void tn_emulated_barrier(int id, uint32_t threads, int wait)
{
    fiber *f = this_fiber();
    block *b = f->block;
    if (id < 0 || id >= MAX_BARRIERS || threads % WARP != 0)
        tn_emulated_fail("bar %d for %u threads", id, threads);
    if (b->barriers[id].arrived > 0 && b->barriers[id].expected != threads)
        tn_emulated_fail("bar %d for %u threads, others came for %u", id, threads, b->barriers[id].expected);
    b->barriers[id].arrived++;
    b->barriers[id].expected = threads;
    // The last one goes on at once.
    f->state = READY;
    bool last = b->barriers[id].arrived >= (threads ? threads : (uint32_t)b->n_alive);
    if (last)
        barrier_check(b, id);
    else if (wait)
        tn_emulated_park(WAITS_BARRIER, (uint32_t)id, threads ? "bar.sync" : "__syncthreads");
}

static void cluster_check(void)
{
    if (m->n_at_cluster == 0 || m->n_at_cluster < m->n_alive) return;
    m->n_at_cluster = 0;
    for (int r = 0; r < m->n_cluster; r++)
        for (uint32_t i = 0; i < m->n_threads.x; i++)
            if (m->blocks[r].fibers[i].state == WAITS_CLUSTER) tn_emulated_wake(&m->blocks[r].fibers[i]);
}

void tn_emulated_cluster_sync(void)
{
    m->n_at_cluster++;
    if (m->n_at_cluster == m->n_alive)
        cluster_check();
    else
        tn_emulated_park(WAITS_CLUSTER, 0, "barrier.cluster");
}

// What waits for all that have not ended waits for fewer now.
void tn_emulated_leave(void)
{
    fiber *f = this_fiber();
    block *b = f->block;
    warp *w = &b->warps[f->warp];
    tn_emulated_copies_finish(f, 0);
    tn_emulated_stores_finish(f, 0);
    if (f->product_group > 0) tn_emulated_product_wait(0);
    f->state = ENDED;
    w->alive &= ~(1u << f->lane);
    b->n_alive--;
    m->n_alive--;
    for (int i = 0; i < MAX_MEETINGS; i++) {
        meeting *t = &w->meetings[i];
        if (t->mask == 0 || (t->mask & w->alive & ~t->arrived) != 0) continue;
        meeting_end(&b->fibers[f->warp * WARP], t, NULL);
    }
    if (b->barriers[0].expected == 0) barrier_check(b, 0);
    cluster_check();
}

// --- shared memory -------------------------------------------------------------------------------

enum { MAX_STATIC = 48 << 10, MAX_SHARED = 232448 };

void *tn_emulated_shared_static(const tn_emulated_site *site, size_t size, size_t align)
{
    kernel *k = m->kernel;
    size_t start = shared_static_start(m);
    for (int i = 0; i < k->n_sites; i++)
        if (k->sites[i].site == site) return this_fiber()->block->window + start + k->sites[i].offset;
    size_t offset = (k->static_size + align - 1) / align * align;
    if (k->n_sites == MAX_SITES || offset + size > MAX_STATIC || offset + size + m->dynamic > MAX_SHARED)
        tn_emulated_fail("%zu bytes of variables in shared memory, with %u of dynamic ones: too much",
                         offset + size, m->dynamic);
    k->sites[k->n_sites++] = (kernel_site){site, size, offset};
    k->static_size = offset + size;
    for (int r = 0; r < m->n_cluster; r++) {
        char *at = m->blocks[r].window + start;
        memset(at + offset, 0xff, size);
        memset(at + offset + size, 0x7f, SHARED_GUARD);
    }
    return this_fiber()->block->window + start + offset;
}

void *tn_emulated_shared_dynamic(size_t align)
{
    if (align > SHARED_START) tn_emulated_fail("shared memory aligned to %zu", align);
    return this_fiber()->block->window + SHARED_START;
}

size_t tn_emulated_shared_offset(const void *p)
{
    ptrdiff_t at = (const char *)p - this_fiber()->block->window;
    if (at < 0 || at >= SHARED_WINDOW) tn_emulated_fail("%p is not in the block's shared memory", p);
    return (size_t)at;
}

block *tn_emulated_block_of(uint32_t *address)
{
    uint32_t rank = *address >> SHARED_RANK_SHIFT;
    *address &= (1u << SHARED_RANK_SHIFT) - 1;
    if (rank == 0) return this_fiber()->block;
    if ((int)rank > m->n_cluster) tn_emulated_fail("block %u of a cluster of %d", rank - 1, m->n_cluster);
    return &m->blocks[rank - 1];
}

char *tn_emulated_shared_at(uint32_t address, uint32_t size, uint32_t align)
{
    block *b = tn_emulated_block_of(&address);
    size_t start = shared_static_start(m), end = (size_t)address + size;
    bool inside = (address >= SHARED_START && end <= SHARED_START + m->dynamic) ||
                  (address >= start && end <= start + m->kernel->static_size);
    if (!inside)
        tn_emulated_fail("%u bytes at %u of shared memory, which has %u dynamic bytes from %d on and %zu of "
                         "variables from %zu on",
                         size, address, m->dynamic, SHARED_START, m->kernel->static_size, start);
    if (address % align != 0)
        tn_emulated_fail("address %u of shared memory is no multiple of %u", address, align);
    return b->window + address;
}

// --- mbarriers -----------------------------------------------------------------------------------

#define MBARRIER_MAGIC 0x6d62617200000000u

static mbarrier *mbarrier_get(block *b, uint32_t offset)
{
    uint64_t word;
    memcpy(&word, b->window + offset, sizeof word);
    uint32_t i = (uint32_t)word;
    bool ok = (word & ~(uint64_t)UINT32_MAX) == MBARRIER_MAGIC && i < (uint32_t)b->n_mbarriers &&
              b->mbarriers[i].offset == offset;
    if (!ok)
        tn_emulated_fail("no mbarrier was initialised at %u of shared memory, or it was overwritten", offset);
    return &b->mbarriers[i];
}

void tn_emulated_mbarrier_init(uint32_t address, uint32_t count)
{
    block *b = this_fiber()->block;
    char *at = tn_emulated_shared_at(address, 8, 8);
    int i = 0;
    while (i < b->n_mbarriers && b->mbarriers[i].offset != address) i++;
    if (i == MAX_MBARRIERS) tn_emulated_fail("more than %d mbarriers", MAX_MBARRIERS);
    if (i == b->n_mbarriers) b->n_mbarriers++;
    b->mbarriers[i] = (mbarrier){.offset = address, .count = count, .pending = count};
    uint64_t word = MBARRIER_MAGIC | (uint32_t)i;
    memcpy(at, &word, sizeof word);
}

// A wait knows a phase by its parity only. Where a phase ends and nobody has waited for the one before, a
// thread that is early would take the phase before that one for its own, and not wait: synccheck of
// compute-sanitizer calls that a missing wait.
static void mbarrier_check(block *b, mbarrier *bar)
{
    if (bar->pending > 0 || bar->bytes != 0) return;
    if (bar->unseen)
        tn_emulated_fail("mbarrier at %u: a phase ends, nobody has waited for the one before", bar->offset);
    bar->phase ^= 1;
    bar->pending = bar->count;
    bar->unseen = true;
    for (uint32_t i = 0; i < m->n_threads.x; i++) {
        fiber *f = &b->fibers[i];
        if (f->state != WAITS_MBARRIER || f->wait_on != bar->offset) continue;
        bar->unseen = false;
        tn_emulated_wake(f);
    }
}

void tn_emulated_mbarrier_arrive(uint32_t address, uint32_t bytes)
{
    block *b = tn_emulated_block_of(&address);
    mbarrier *bar = mbarrier_get(b, address);
    if (bar->pending == 0)
        tn_emulated_fail("mbarrier at %u: more than %u threads arrive in a phase", address, bar->count);
    bar->bytes += bytes;
    bar->pending--;
    mbarrier_check(b, bar);
}

void tn_emulated_mbarrier_wait(uint32_t address, uint32_t parity)
{
    block *b = this_fiber()->block;
    while (mbarrier_get(b, address)->phase == (parity & 1))
        tn_emulated_park(WAITS_MBARRIER, address, parity & 1 ? "mbarrier, parity 1" : "mbarrier, parity 0");
    mbarrier_get(b, address)->unseen = false;
}

void tn_emulated_mbarrier_bytes(block *b, uint32_t offset, uint32_t bytes)
{
    mbarrier *bar = mbarrier_get(b, offset);
    bar->bytes -= bytes;
    mbarrier_check(b, bar);
}
