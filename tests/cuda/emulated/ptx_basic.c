// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instructions of PTX: registers, barriers, single loads (PTX ISA 8.7, sections by name).
#include "tests/cuda/emulated/ptx.h"

#include <math.h>
#include <string.h>

static void nothing(ptx_run *r, int variant)
{
    (void)r, (void)variant;
}

static void branch(ptx_run *r, int variant)
{
    (void)variant;
    r->jump = r->program->labels[r->step->args[0].at];
}

static void set_ne(ptx_run *r, int variant)
{
    (void)variant;
    uint64_t yes = ptx_u32(r, 1) != ptx_u32(r, 2);
    memcpy(tn_ptx_place(r, 0), &yes, sizeof yes);
}

// mov of a register, or of a special one
static void move(ptx_run *r, int variant)
{
    (void)variant;
    const ptx_arg *a = &r->step->args[1];
    uint32_t value;
    if (a->kind == PTX_NAME) {
        const char *name = r->program->names[a->at];
        if (strcmp(name, "%%cluster_ctarank") != 0) tn_emulated_fail("mov of %s is not emulated", name);
        value = (uint32_t)this_fiber()->block->rank;
    } else {
        value = ptx_u32(r, 1);
    }
    memcpy(tn_ptx_place(r, 0), &value, sizeof value);
}

// dp4a.u32.s32: four unsigned bytes times four signed ones, added up
static void dot4_mixed(ptx_run *r, int variant)
{
    (void)variant;
    uint32_t a = ptx_u32(r, 1), b = ptx_u32(r, 2), sum = ptx_u32(r, 3);
    for (int i = 0; i < 32; i += 8) sum += (uint32_t)((int32_t)(a >> i & 255u) * (int8_t)(b >> i & 255u));
    memcpy(tn_ptx_place(r, 0), &sum, sizeof sum);
}

// ex2.approx.ftz: within 2 ulp; here correctly rounded
static void exp2_approx(ptx_run *r, int variant)
{
    (void)variant;
    uint32_t bits = ptx_u32(r, 1);
    float x;
    memcpy(&x, &bits, sizeof x);
    x = exp2f(x);
    if (fabsf(x) < 1.17549435e-38f) x = 0.0f;
    memcpy(tn_ptx_place(r, 0), &x, sizeof x);
}

// --- loads ---------------------------------------------------------------------------------------

static void load_global(ptx_run *r, int words)
{
    const char *from = ptx_pointer(r, words);
    if ((uintptr_t)from % ((size_t)words * 4) != 0)
        tn_emulated_fail("%s: misaligned address %p", r->step->row->name, (const void *)from);
    tn_emulated_will_read(from, (size_t)words * 4);
    for (int i = 0; i < words; i++) memcpy(tn_ptx_place(r, i), from + 4 * i, 4);
}

// atom.inc: blocks take turns, and every launch is over before the next begins
static void atomic_inc(ptx_run *r, int variant)
{
    (void)variant;
    char *at = ptx_pointer(r, 1);
    if ((uintptr_t)at % 4 != 0) tn_emulated_fail("%s: misaligned address %p", r->step->row->name, (void *)at);
    uint32_t x, last = ptx_u32(r, 2);
    memcpy(&x, at, sizeof x);
    memcpy(tn_ptx_place(r, 0), &x, sizeof x);
    x = x >= last ? 0 : x + 1;
    memcpy(at, &x, sizeof x);
}

static void load_cluster(ptx_run *r, int words)
{
    uint32_t size = (uint32_t)words * 4;
    const char *at = tn_emulated_shared_at(ptx_u32(r, words), size, size);
    for (int i = 0; i < words; i++) memcpy(tn_ptx_place(r, i), at + 4 * i, 4);
}

// mapa: the same address in another block of the cluster
static void map_address(ptx_run *r, int variant)
{
    (void)variant;
    uint64_t at = ptx_u32(r, 1) | (ptx_u32(r, 2) + 1) << SHARED_RANK_SHIFT;
    memcpy(tn_ptx_place(r, 0), &at, r->step->args[0].kind == PTX_NAME ? 8 : 4);
}

static void store_shared(ptx_run *r, int words)
{
    char *to = tn_emulated_shared_at(ptx_u32(r, 0), (uint32_t)words * 4, (uint32_t)words * 4);
    tn_emulated_shared_used(to, (size_t)words * 4);
    for (int i = 0; i < words; i++) {
        uint32_t x = ptx_u32(r, 1 + i);
        memcpy(to + 4 * i, &x, 4);
    }
}

// --- barriers ------------------------------------------------------------------------------------

static void barrier(ptx_run *r, int wait)
{
    tn_emulated_barrier((int)ptx_u32(r, 0), ptx_u32(r, 1), wait);
}

static void proxy_fence(ptx_run *r, int variant)
{
    (void)r, (void)variant;
    tn_emulated_proxy_fence();
}

// barrier.cluster.arrive and wait: every thread does both at once in these kernels
static void cluster_wait(ptx_run *r, int variant)
{
    (void)r, (void)variant;
    tn_emulated_cluster_sync();
}

static void mbarrier_init(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_mbarrier_init(ptx_u32(r, 0), ptx_u32(r, 1));
}

static void mbarrier_arrive(ptx_run *r, int bytes)
{
    tn_emulated_mbarrier_arrive(ptx_u32(r, 1), bytes ? ptx_u32(r, 2) : 0);
}

// try_wait may wait: it does until the phase is over
static void mbarrier_wait(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_mbarrier_wait(ptx_u32(r, 1), ptx_u32(r, 2));
    uint64_t yes = 1;
    memcpy(tn_ptx_place(r, 0), &yes, sizeof yes);
}

const ptx_row tn_ptx_rows_basic[] = {
    {"bra", branch, 0},
    {"setp.ne.b32", set_ne, 0},
    {"mov.u32", move, 0},
    {"dp4a.u32.s32", dot4_mixed, 0},
    {"ex2.approx.ftz.f32", exp2_approx, 0},
    {"ld.acquire.gpu.global.u32", load_global, 1},
    {"ld.global.nc.L1::no_allocate.v4.u32", load_global, 4},
    {"ld.global.nc.L1::no_allocate.v2.u32", load_global, 2},
    {"atom.acq_rel.gpu.global.inc.u32", atomic_inc, 0},
    {"ld.shared::cluster.f32", load_cluster, 1},
    {"ld.shared::cluster.v4.f32", load_cluster, 4},
    {"mapa.shared::cluster.u32", map_address, 0},
    {"st.shared.b32", store_shared, 1},
    {"st.shared.v4.b32", store_shared, 4},
    {"st.shared::cluster.b32", store_shared, 1},
    {"st.shared::cluster.v4.b32", store_shared, 4},
    {"griddepcontrol.wait", nothing, 0},
    {"griddepcontrol.launch_dependents", nothing, 0},
    {"setmaxnreg.dec.sync.aligned.u32", nothing, 0},
    {"setmaxnreg.inc.sync.aligned.u32", nothing, 0},
    {"fence.mbarrier_init.release.cluster", nothing, 0},
    {"fence.proxy.async.shared::cta", proxy_fence, 0},
    {"prefetch.global.L2", nothing, 0},
    {"prefetch.tensormap", nothing, 0},
    {"wgmma.fence.sync.aligned", nothing, 0},
    {"bar.sync", barrier, 1},
    {"bar.arrive", barrier, 0},
    {"barrier.cluster.arrive.release.aligned", nothing, 0},
    {"barrier.cluster.wait.acquire.aligned", cluster_wait, 0},
    {"mbarrier.init.shared::cta.b64", mbarrier_init, 0},
    {"mbarrier.arrive.shared::cta.b64", mbarrier_arrive, 0},
    {"mbarrier.arrive.release.cluster.shared::cluster.b64", mbarrier_arrive, 0},
    {"mbarrier.arrive.expect_tx.shared::cta.b64", mbarrier_arrive, 1},
    {"mbarrier.try_wait.parity.shared::cta.b64", mbarrier_wait, 0},
    {"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", mbarrier_wait, 0},
    {NULL, NULL, 0},
};
