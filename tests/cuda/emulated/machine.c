// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Fibers and launches. The blocks of a cluster run together, clusters one after another; a fiber runs until
// it waits. Shared memory is poisoned before a block, and its surroundings are looked at after it.
#define _GNU_SOURCE // registers of a signal, dladdr
#include "tests/cuda/emulated/machine.h"
#include "tests/cuda/fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK = 128 << 10, PAGE = 4096, POISON = 0xff, GUARD = 0x7f };

machine tn_emulated_machine;
tn_emulated_thread *tn_emulated_now;
static machine *const m = &tn_emulated_machine;
static fiber *fibers; // MAX_CLUSTER * MAX_THREADS
static char *stacks;  // as many
static kernel *kernels;
static fiber scheduler;
static jmp_buf in_scheduler; // where failures of the copy engine lead
static bool trace;           // each launch
static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

// --- switching -----------------------------------------------------------------------------------

static void fiber_main(void);

#if defined(__x86_64__)
// Registers that a call preserves go to the stack; the stack is the fiber.
void tn_emulated_switch(void **from, void *to);
__asm__(".text\n"
        ".hidden tn_emulated_switch\n"
        ".globl tn_emulated_switch\n"
        ".type tn_emulated_switch, @function\n"
        "tn_emulated_switch:\n"
        "pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret\n"
        ".size tn_emulated_switch, .-tn_emulated_switch\n");

static void fiber_start(fiber *f, char *stack)
{
    void **sp = (void **)(void *)(stack + STACK - 64);
    *--sp = NULL; // where a return address would be: 16-byte alignment as behind a call
    *--sp = (void *)(uintptr_t)fiber_main;
    for (int i = 0; i < 6; i++) *--sp = NULL;
    f->sp = sp;
}

static void fiber_switch(fiber *from, fiber *to)
{
    tn_emulated_switch(&from->sp, to->sp);
}
#else
#include <ucontext.h>

static ucontext_t *context_of(fiber *f)
{
    if (!f->context) f->context = calloc(1, sizeof(ucontext_t));
    if (!f->context) abort();
    return f->context;
}

static void fiber_start(fiber *f, char *stack)
{
    ucontext_t *c = context_of(f);
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = STACK;
    c->uc_link = NULL;
    makecontext(c, fiber_main, 0);
}

static void fiber_switch(fiber *from, fiber *to)
{
    swapcontext(context_of(from), context_of(to));
}
#endif

void tn_emulated_wake(fiber *f)
{
    f->state = READY;
    f->where = NULL;
    f->next = NULL;
    if (m->last)
        m->last->next = f;
    else
        m->first = f;
    m->last = f;
}

static void leave_to_scheduler(void)
{
    fiber_switch(this_fiber(), &scheduler);
}

void tn_emulated_park(wait_kind why, uint32_t on, const char *where)
{
    fiber *f = this_fiber();
    f->state = why;
    f->wait_on = on;
    f->where = where;
    leave_to_scheduler();
}

static void fiber_main(void)
{
    m->kernel->entry->run(m->args);
    tn_emulated_leave();
    leave_to_scheduler();
    abort(); // an ended fiber is never woken
}

// --- failures ------------------------------------------------------------------------------------

static const char *kernel_name(void)
{
    return m->kernel ? m->kernel->entry->name : "no kernel";
}

void tn_emulated_fail(const char *format, ...)
{
    fiber *f = this_fiber();
    fprintf(stderr, "emulated: %s, block (%u, %u, %u), thread %u: ", kernel_name(), f->now.block.x,
            f->now.block.y, f->now.block.z, f->now.thread.x);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    m->failed = true;
    if (f == &scheduler) longjmp(in_scheduler, 1);
    leave_to_scheduler();
    abort();
}

void tn_emulated_trap(const char *why)
{
    tn_emulated_fail("%s", why);
}

static bool waits_like(const fiber *a, const fiber *b)
{
    return a->state == b->state && a->where == b->where && a->wait_on == b->wait_on;
}

// No thread can go on: a line for each run of threads that wait in the same place, up to a screen.
static void report_deadlock(void)
{
    enum { LINES = 24 };
    int lines = 0, n = (int)m->n_threads.x;
    m->failed = true;
    fprintf(stderr, "emulated: %s: no thread can go on\n", kernel_name());
    for (int b = 0; b < m->n_cluster; b++) {
        const block *k = &m->blocks[b];
        for (int i = 0, first = 0; i < n; i++) {
            const fiber *f = &k->fibers[i];
            if (i + 1 < n && waits_like(f, f + 1)) continue;
            if (f->state != ENDED && lines++ < LINES)
                fprintf(stderr, "    block (%u, %u, %u), threads %d to %d wait in %s (%u)\n", k->at.x,
                        k->at.y, k->at.z, first, i, f->where, f->wait_on);
            first = i + 1;
        }
    }
    if (lines > LINES) fprintf(stderr, "    and %d more\n", lines - LINES);
}

static void *fault_address;
static int fault_signal;

static void fault_in_kernel(void)
{
    tn_emulated_fail("%s %p",
                     fault_signal == SIGILL ? "misaligned or impossible access" : "address out of range",
                     fault_address);
}

// An access outside of all memory, or a misaligned one (the compiler's checks end in an illegal instruction).
static void on_fault(int signal, siginfo_t *info, void *context)
{
    fault_address = info->si_addr;
    fault_signal = signal;
#if defined(__x86_64__)
    if (m->kernel && this_fiber() != &scheduler) {
        ucontext_t *c = context;
        uint64_t sp = (uint64_t)c->uc_mcontext.gregs[REG_RSP];
        c->uc_mcontext.gregs[REG_RSP] = (greg_t)((sp - 256) / 16 * 16 - 8);
        c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)fault_in_kernel;
        return;
    }
#else
    (void)context;
#endif
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
}

// --- blocks --------------------------------------------------------------------------------------

static void *map_memory(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static bool set_up(void)
{
    if (fibers) return true;
    size_t n = MAX_CLUSTER * MAX_THREADS;
    stacks = map_memory(n * STACK);
    fiber *all = calloc(n, sizeof *all);
    char *windows = map_memory((size_t)(MAX_CLUSTER + 1) * SHARED_WINDOW);
    shared_use *uses = map_memory((size_t)MAX_CLUSTER * SHARED_PIECES * sizeof *uses);
    if (!stacks || !all || !windows || !uses) return false;
    // So that addresses are as aligned as offsets.
    windows += (SHARED_WINDOW - (uintptr_t)windows % SHARED_WINDOW) % SHARED_WINDOW;
    for (int b = 0; b < MAX_CLUSTER; b++) {
        m->blocks[b].window = windows + (size_t)b * SHARED_WINDOW;
        m->blocks[b].fibers = all + b * MAX_THREADS;
        m->blocks[b].uses = uses + b * SHARED_PIECES;
    }
    fibers = all;
    tn_emulated_now = &scheduler.now;
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
#if !defined(__SANITIZE_ADDRESS__)
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
#endif
    sigaction(SIGILL, &action, NULL);
    stack_t own = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    return own.ss_sp && sigaltstack(&own, NULL) == 0;
}

static void fiber_init(fiber *f, block *b, int id)
{
    f->now = (tn_emulated_thread){{(uint32_t)id, 0, 0}, b->at, m->n_threads, m->n_blocks};
    f->block = b;
    f->id = id, f->warp = id / WARP, f->lane = id % WARP;
    f->n_copies = f->copy_group = f->n_stores = f->store_group = f->product_group = 0;
    f->n_products = 0;
    f->fenced = 0;
    char *stack = stacks + (size_t)(f - fibers) * STACK;
    if (!f->guarded) mprotect(stack, PAGE, PROT_NONE); // what grows beyond its stack is seen
    f->guarded = true;
    fiber_start(f, stack);
    tn_emulated_wake(f);
}

static void block_init(block *b, int rank, tn_emulated_index at)
{
    b->rank = rank, b->at = at;
    b->n_alive = (int)m->n_threads.x;
    b->n_mbarriers = 0;
    b->born = ++m->n_fences;
    memset(b->warps, 0, sizeof b->warps);
    memset(b->barriers, 0, sizeof b->barriers);
    size_t start = shared_static_start(m);
    memset(b->window, GUARD, start);
    memset(b->window + SHARED_START, POISON, m->dynamic);
    memset(b->window + start, POISON, m->kernel->static_size);
    memset(b->window + start + m->kernel->static_size, GUARD, SHARED_GUARD);
    for (int g = 0; g < MAX_WARPS / 4; g++) b->groups[g].done = 0;
    for (int i = 0; i < b->n_alive; i++) {
        b->warps[i / WARP].alive |= 1u << i % WARP;
        fiber_init(&b->fibers[i], b, i);
    }
}

static bool untouched(const block *b, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if ((uint8_t)b->window[i] == GUARD) continue;
        fprintf(stderr,
                "emulated: %s, block (%u, %u, %u): shared memory written %zu bytes outside of its %u (offset "
                "%zu)\n",
                kernel_name(), b->at.x, b->at.y, b->at.z, from == 0 ? to - i : i - from + 1, m->dynamic, i);
        return false;
    }
    return true;
}

static void block_check(const block *b)
{
    size_t start = shared_static_start(m), end = start + m->kernel->static_size;
    bool ok = untouched(b, 0, SHARED_START) && untouched(b, SHARED_START + m->dynamic, start) &&
              untouched(b, end, end + SHARED_GUARD);
    if (!ok) m->failed = true;
}

// --- launches ------------------------------------------------------------------------------------

// By the copy engine; false if there is nothing to copy.
static bool copy_something(void)
{
    return setjmp(in_scheduler) == 0 ? tn_emulated_bulk_step() : true;
}

static void run_cluster(tn_emulated_index at)
{
    m->first = m->last = NULL;
    m->n_copies = 0;
    m->n_at_cluster = 0;
    m->n_alive = (uint32_t)m->n_cluster * m->n_threads.x;
    for (int r = 0; r < m->n_cluster; r++)
        block_init(&m->blocks[r], r, (tn_emulated_index){at.x + (uint32_t)r, at.y, at.z});
    while (m->n_alive > 0 && !m->failed) {
        fiber *f = m->first;
        if (f) {
            m->first = f->next;
            if (!m->first) m->last = NULL;
            tn_emulated_now = &f->now;
            fiber_switch(&scheduler, f);
            tn_emulated_now = &scheduler.now;
        } else if (!copy_something()) {
            report_deadlock();
        }
    }
    while (!m->failed && copy_something()) continue;
    for (int r = 0; r < m->n_cluster && !m->failed; r++) block_check(&m->blocks[r]);
}

static kernel *kernel_of(const tn_emulated_entry *entry)
{
    for (kernel *k = kernels; k; k = k->next)
        if (k->entry == entry) return k;
    kernel *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    *k = (kernel){.entry = entry, .next = kernels};
    kernels = k;
    return k;
}

static CUresult launch(const fake_grid *g, const tn_emulated_entry *entry, const void *args)
{
    if (!set_up() || !(m->kernel = kernel_of(entry))) return CUDA_ERROR_OUT_OF_MEMORY;
    m->args = args;
    m->n_blocks = (tn_emulated_index){g->x, g->y, g->z};
    m->n_threads = (tn_emulated_index){g->threads, 1, 1};
    m->n_cluster = (int)g->cluster;
    m->dynamic = g->shared;
    m->failed = false;
    for (uint32_t z = 0; z < g->z; z++)
        for (uint32_t y = 0; y < g->y; y++)
            for (uint32_t x = 0; x < g->x && !m->failed; x += g->cluster)
                run_cluster((tn_emulated_index){x, y, z});
    m->kernel = NULL;
    return m->failed ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

CUresult fake_run(const fake_grid *g, const void *function, const void *args)
{
    const tn_emulated_entry *entry = function;
    if (g->threads > entry->max_threads || g->cluster > MAX_CLUSTER || g->x % g->cluster != 0) {
        fprintf(stderr,
                "emulated: %s: %u threads, %u blocks in clusters of %u; it is compiled for %u threads\n",
                entry->name, g->threads, g->x, g->cluster, entry->max_threads);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (trace)
        fprintf(stderr, "emulated: %s, %u x %u x %u blocks of %u, clusters of %u, %u bytes\n", entry->name,
                g->x, g->y, g->z, g->threads, g->cluster, g->shared);
    pthread_mutex_lock(&one);
    CUresult r = launch(g, entry, args);
    pthread_mutex_unlock(&one);
    return r;
}

bool fake_runs_host(void)
{
    return true;
}

const void *fake_find(const char *image, const char *name)
{
    char symbol[128];
    snprintf(symbol, sizeof symbol, "%s_entry", name);
    Dl_info here;
    void *library =
        dladdr((void *)(uintptr_t)fake_find, &here) ? dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    const tn_emulated_entry *entry = library ? dlsym(library, symbol) : NULL;
    if (library) dlclose(library);
    if (!entry) return NULL;
    // Without device code the image is the name of its symbol.
    static const char prefix[] = "tn_cuda_image_";
    if (strncmp(image, prefix, sizeof prefix - 1) == 0 &&
        strcmp(image + sizeof prefix - 1, entry->module) != 0) {
        fprintf(stderr, "emulated: %s was looked for in %s, it is in %s\n", name, image + sizeof prefix - 1,
                entry->module);
        return NULL;
    }
    return entry;
}

size_t fake_args_size(const void *function)
{
    const tn_emulated_entry *entry = function;
    return entry->args_size;
}

static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    return text && atoi(text) > 0 ? atoi(text) : otherwise;
}

// What the tests choose: the capability that is reported, and the number of multiprocessors.
__attribute__((constructor)) static void steer(void)
{
    fake_state *s = fake_get();
    s->compute = number_of("TN_EMULATED_COMPUTE", 90);
    s->n_sms = number_of("TN_EMULATED_SMS", 132);
    s->memory = (size_t)16 << 30;
    trace = getenv("TN_EMULATED_TRACE") != NULL;
}
