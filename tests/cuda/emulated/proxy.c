// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fences that are missing between loads and stores of shared memory and copies of the copy engine to the same
// place. Each load and store leaves, for each piece, after how many fences of all threads it was.
#include "tests/cuda/emulated/machine.h"

static machine *const m = &tn_emulated_machine;

void tn_emulated_shared_used(const void *p, size_t n)
{
    uintptr_t from = (uintptr_t)m->blocks[0].window, at = (uintptr_t)p;
    if (at < from || at >= from + (uintptr_t)MAX_CLUSTER * SHARED_WINDOW || n == 0) return;
    block *b = &m->blocks[(at - from) / SHARED_WINDOW];
    size_t first = (at - from) % SHARED_WINDOW / SHARED_PIECE,
           last = ((at - from) % SHARED_WINDOW + n - 1) / SHARED_PIECE;
    for (size_t i = first; i <= last && i < SHARED_PIECES; i++)
        b->uses[i] = (shared_use){m->n_fences, this_fiber()};
}

void tn_emulated_proxy_fence(void)
{
    this_fiber()->fenced = ++m->n_fences;
}

void tn_emulated_copy_to(const block *b, uint32_t offset, uint32_t n)
{
    for (uint32_t i = offset / SHARED_PIECE; i < (offset + n) / SHARED_PIECE; i++) {
        const shared_use *u = &b->uses[i];
        if (u->after < b->born || this_fiber()->fenced > u->after || u->by->fenced > u->after) continue;
        tn_emulated_fail(
            "copy to offset %u of shared memory: no fence.proxy.async since thread %u loaded or stored there",
            i * SHARED_PIECE, u->by->now.thread.x);
    }
}
