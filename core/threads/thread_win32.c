// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Threads of Windows. There are no signals, and a process cannot be forked.
#include "core/threads/thread.h"

#include <process.h>
#include <string.h>
#include <windows.h>

// Of Windows 10 1607; headers of mingw-w64 10 lack it.
WINBASEAPI HRESULT WINAPI SetThreadDescription(HANDLE thread, PCWSTR description);

enum { STACK_SIZE = 2 << 20 }; // bytes; as on other systems, whatever the program reserves for its threads

struct tn_thread {
    tn_context *ctx;
    HANDLE handle;
    void (*run)(void *arg);
    void *arg;
    wchar_t name[16];
};

static unsigned __stdcall run_thread(void *arg)
{
    tn_thread *t = arg;
    (void)SetThreadDescription(GetCurrentThread(), t->name);
    t->run(t->arg);
    return 0;
}

tn_status tn_thread_create(tn_context *ctx, const char *name, void (*run)(void *arg), void *arg,
                           tn_thread **out)
{
    tn_thread *t = tn_calloc(ctx, 1, sizeof *t);
    if (!t) return TN_ERR_MEMORY;
    *t = (tn_thread){.ctx = ctx, .run = run, .arg = arg};
    for (size_t i = 0; name[i] && i + 1 < TN_COUNT(t->name); i++) t->name[i] = (unsigned char)name[i];
    t->handle =
        (HANDLE)_beginthreadex(NULL, STACK_SIZE, run_thread, t, STACK_SIZE_PARAM_IS_A_RESERVATION, NULL);
    if (!t->handle) {
        DWORD error = GetLastError();
        tn_free(ctx, t);
        return tn_fail(ctx, TN_ERR_MEMORY, "cannot start a thread: error %lu", error);
    }
    *out = t;
    return TN_OK;
}

void tn_thread_join(tn_thread **thread)
{
    if (!*thread) return;
    WaitForSingleObject((*thread)->handle, INFINITE);
    tn_thread_forget(thread);
}

void tn_thread_forget(tn_thread **thread)
{
    if (!*thread) return;
    CloseHandle((*thread)->handle);
    tn_free((*thread)->ctx, *thread);
    *thread = NULL;
}

// The lowest priority of normal processes. The background mode would also slow down memory and files.
void tn_thread_set_background(void)
{
    (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
}

// GetThreadTimes counts in steps of 15.6 ms, too coarse for what the pool measures.
uint64_t tn_thread_cpu_ns(void)
{
    return 0;
}

uint64_t tn_process_id(void)
{
    return GetCurrentProcessId();
}
