// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Asynchronous copies (PTX ISA 8.7, Data Movement and Conversion Instructions): cp.async is carried out when
// its thread waits for it, bulk and tensor copies when no thread can go on, in any order: as late as the
// hardware might.
#include "tests/cuda/emulated/ptx.h"
#include "tests/cuda/fake.h"

#include <stdlib.h>
#include <string.h>

static machine *const m = &tn_emulated_machine;

// --- cp.async ------------------------------------------------------------------------------------

// variant 1: always 16 bytes; 2: as many as the third operand says, all of them
static void small_add(ptx_run *r, int variant)
{
    fiber *f = this_fiber();
    if (f->n_copies == f->max_copies) {
        f->max_copies = f->max_copies * 2 + 64;
        f->copies = realloc(f->copies, (size_t)f->max_copies * sizeof *f->copies);
        if (!f->copies) abort();
    }
    const char *from = ptx_pointer(r, 1);
    uint32_t size = variant == 2 ? ptx_u32(r, 2) : 16, n = variant == 0 ? ptx_u32(r, 3) : size;
    if (n > 0 && (uintptr_t)from % size != 0)
        tn_emulated_fail("cp.async: misaligned address %p", (const void *)from);
    f->copies[f->n_copies++] =
        (small_copy){tn_emulated_shared_at(ptx_u32(r, 0), size, size), from, n, size, f->copy_group};
}

static void small_commit(ptx_run *r, int variant)
{
    (void)r, (void)variant;
    this_fiber()->copy_group++;
}

// All but the last `pending` groups; -1: also what belongs to none yet.
void tn_emulated_copies_finish(fiber *f, int pending)
{
    int kept = 0;
    for (int i = 0; i < f->n_copies; i++) {
        small_copy *c = &f->copies[i];
        if (c->group >= f->copy_group - pending) {
            f->copies[kept++] = *c;
            continue;
        }
        tn_emulated_shared_used(c->to, c->size);
        memset(c->to, 0, c->size);
        if (c->n > 0) tn_emulated_will_read(c->from, c->n);
        if (c->n > 0) memcpy(c->to, c->from, c->n);
    }
    f->n_copies = kept;
}

static void small_wait(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_copies_finish(this_fiber(), (int)ptx_u32(r, 0));
}

// The copies so far are carried out at once.
static void small_arrive(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_copies_finish(this_fiber(), -1);
    tn_emulated_mbarrier_arrive(ptx_u32(r, 0), 0);
}

// --- bulk and tensor copies ----------------------------------------------------------------------

void tn_emulated_bulk_add(const bulk_copy *c)
{
    if (m->n_copies == m->max_copies) {
        m->max_copies = m->max_copies * 2 + 64;
        m->copies = realloc(m->copies, (size_t)m->max_copies * sizeof *m->copies);
        if (!m->copies) abort();
    }
    m->copies[m->n_copies++] = *c;
}

static uint32_t box_bytes(const fake_tensor_map *t)
{
    return t->box[0] * t->box[1] * t->element;
}

// Address bits 4 to 6 are changed by bits 7 to 9 (swizzle of 128 bytes); of 64 and of 32 bytes by fewer.
static size_t swizzled(const fake_tensor_map *t, size_t at)
{
    return at ^ ((at >> 7 & ((1u << t->swizzle) - 1)) << 4);
}

// Between a box of the tensor at column x, row y and shared memory at `window` + offset; zeros outside of the
// tensor.
static void copy_box(const fake_tensor_map *t, int x, int y, char *window, size_t offset, bool load)
{
    size_t row_bytes = (size_t)t->box[0] * t->element;
    for (uint32_t r = 0; r < t->box[1]; r++)
        for (uint32_t c = 0; c < t->box[0]; c++) {
            int64_t gx = (int64_t)x + c, gy = (int64_t)y + r;
            bool inside = gx >= 0 && gy >= 0 && (uint64_t)gx < t->dims[0] && (uint64_t)gy < t->dims[1];
            char *at = window + swizzled(t, offset + r * row_bytes + c * t->element);
            char *global = inside ? t->data + (size_t)gy * t->stride + (size_t)gx * t->element : NULL;
            if (load && inside)
                memcpy(at, global, t->element);
            else if (load)
                memset(at, 0, t->element);
            else if (inside)
                memcpy(global, at, t->element), fake_memory_written(global, t->element);
        }
}

static void bulk_into(const bulk_copy *c, block *b)
{
    if (c->map)
        copy_box(c->map, c->x, c->y, b->window, c->to, true);
    else
        memcpy(b->window + c->to, c->from, c->bytes);
    tn_emulated_mbarrier_bytes(b, c->bar, c->bytes);
}

bool tn_emulated_bulk_step(void)
{
    if (m->n_copies == 0) return false;
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    int i = (int)((m->random >> 33) % (uint64_t)m->n_copies);
    bulk_copy c = m->copies[i];
    m->copies[i] = m->copies[--m->n_copies];
    if (c.mask == 0) bulk_into(&c, c.to_block);
    for (int r = 0; r < m->n_cluster; r++)
        if (c.mask >> r & 1) bulk_into(&c, &m->blocks[r]);
    return true;
}

enum { POLICY = 0x12f00000 }; // upper half of what createpolicy gives

static void create_policy(ptx_run *r, int variant)
{
    (void)variant;
    uint64_t policy = (uint64_t)POLICY << 32;
    memcpy(tn_ptx_place(r, 0), &policy, sizeof policy);
}

static void bulk_load(ptx_run *r, int hinted)
{
    if (hinted && tn_ptx_get(r, 4, 8) >> 32 != POLICY) tn_emulated_fail("cp.async.bulk: no policy");
    uint32_t to = ptx_u32(r, 0), bytes = ptx_u32(r, 2), bar = ptx_u32(r, 3);
    const char *from = ptx_pointer(r, 1);
    tn_emulated_shared_at(to, bytes, 16);
    tn_emulated_shared_at(bar, 8, 8);
    if ((uintptr_t)from % 16 != 0 || bytes % 16 != 0 || bytes == 0)
        tn_emulated_fail("cp.async.bulk: %u bytes from %p", bytes, (const void *)from);
    bulk_copy c = {.to_block = tn_emulated_block_of(&to), .bar = bar, .from = from, .bytes = bytes};
    c.to = to;
    tn_emulated_copy_to(c.to_block, to, bytes);
    tn_emulated_bulk_add(&c);
}

static const fake_tensor_map *map_of(const void *at)
{
    const fake_tensor_map *t = at;
    if ((uintptr_t)at % 64 != 0 || t->magic != FAKE_TENSOR_MAP_MAGIC)
        tn_emulated_fail("%p is no tensor map", at);
    return t;
}

static void tensor_load(ptx_run *r, int multicast)
{
    uint32_t to = ptx_u32(r, 0), bar = ptx_u32(r, 4);
    const fake_tensor_map *t = map_of(ptx_pointer(r, 1));
    uint32_t bytes = box_bytes(t), align = 128;
    tn_emulated_shared_at(to, bytes, align);
    tn_emulated_shared_at(bar, 8, 8);
    bulk_copy c = {.bar = bar, .map = t, .bytes = bytes, .x = (int)ptx_u32(r, 2), .y = (int)ptx_u32(r, 3)};
    c.to_block = tn_emulated_block_of(&to);
    c.to = to;
    if (multicast) c.mask = (uint32_t)tn_ptx_get(r, 5, 2);
    if (c.mask >> m->n_cluster)
        tn_emulated_fail("tensor copy to blocks %x of a cluster of %d", c.mask, m->n_cluster);
    for (int i = 0; i < m->n_cluster; i++)
        if (c.mask >> i & 1 || (c.mask == 0 && &m->blocks[i] == c.to_block))
            tn_emulated_copy_to(&m->blocks[i], to, bytes);
    tn_emulated_bulk_add(&c);
}

// --- to global memory ----------------------------------------------------------------------------

static void tensor_store_add(ptx_run *r, int variant)
{
    (void)variant;
    fiber *f = this_fiber();
    if (!f->stores) f->stores = calloc(MAX_STORES, sizeof *f->stores);
    if (!f->stores) abort();
    if (f->n_stores == MAX_STORES) tn_emulated_fail("more than %d tensor stores of a thread", MAX_STORES);
    const fake_tensor_map *t = map_of(ptx_pointer(r, 0));
    uint32_t from = ptx_u32(r, 3);
    tn_emulated_shared_at(from, box_bytes(t), 128);
    f->stores[f->n_stores++] =
        (tensor_store){t, from, (int)ptx_u32(r, 1), (int)ptx_u32(r, 2), f->store_group};
}

static void store_commit(ptx_run *r, int variant)
{
    (void)r, (void)variant;
    this_fiber()->store_group++;
}

void tn_emulated_stores_finish(fiber *f, int pending)
{
    int kept = 0;
    for (int i = 0; i < f->n_stores; i++) {
        tensor_store *s = &f->stores[i];
        if (s->group >= f->store_group - pending)
            f->stores[kept++] = *s;
        else
            copy_box(s->map, s->x, s->y, f->block->window, s->from, false);
    }
    f->n_stores = kept;
}

static void store_wait(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_stores_finish(this_fiber(), (int)ptx_u32(r, 0));
}

const ptx_row tn_ptx_rows_copy[] = {
    {"cp.async.cg.shared.global", small_add, 0},
    {"cp.async.cg.shared.global.L2::128B", small_add, 1},
    {"cp.async.cg.shared.global.L2::cache_hint.L2::128B", small_add, 1},
    {"cp.async.ca.shared.global", small_add, 2},
    {"cp.async.commit_group", small_commit, 0},
    {"cp.async.wait_group", small_wait, 0},
    {"cp.async.mbarrier.arrive.noinc.shared::cta.b64", small_arrive, 0},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", bulk_load, 0},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint", bulk_load, 1},
    {"createpolicy.fractional.L2::evict_first.b64", create_policy, 0},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes", tensor_load, 0},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint",
     tensor_load, 0},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster",
     tensor_load, 1},
    {"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", tensor_store_add, 0},
    {"cp.async.bulk.commit_group", store_commit, 0},
    {"cp.async.bulk.wait_group", store_wait, 0},
    {"cp.async.bulk.wait_group.read", store_wait, 0},
    {NULL, NULL, 0},
};
