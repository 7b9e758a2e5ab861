// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock, core count and memory of Windows 10 1809 and later.
#include "core/context.h"
#include "core/cpu_features.h"

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <windows.h>

uint64_t tn_time_ns(void)
{
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    // Seconds apart from the rest, whose product with 10^9 fits.
    uint64_t t = (uint64_t)ticks.QuadPart, f = (uint64_t)per_second.QuadPart;
    return t / f * 1000000000u + t % f * 1000000000u / f;
}

// Sleep takes whole milliseconds, up to 16 of them by the clock of most systems.
void tn_sleep(uint64_t ns)
{
    if (ns < 1000000)
        SwitchToThread();
    else
        Sleep((DWORD)TN_MIN(ns / 1000000, 60000));
}

void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    WaitOnAddress((volatile void *)word, &value, sizeof value, INFINITE);
}

void tn_wake(_Atomic uint32_t *word, int32_t n)
{
    enum { ONE_BY_ONE = 8 };
    if (n > ONE_BY_ONE) {
        WakeByAddressAll((void *)word);
        return;
    }
    for (int32_t i = 0; i < n; i++) WakeByAddressSingle((void *)word);
}

void tn_wake_all(_Atomic uint32_t *word)
{
    tn_wake(word, INT_MAX);
}

// Windows reports SDOT under number 43, which old headers lack; i8mm and bf16 are not asked for. Never
// compiled or run on aarch64.
void tn_cpu_features_arm(tn_cpu_features *f)
{
#if defined(__aarch64__)
    f->dotprod = IsProcessorFeaturePresent(43) != 0;
#else
    TN_UNUSED(f);
#endif
}

// Processors come in groups of up to 64. The mask is that of the group in which the process runs, whose
// threads stay there unless they are moved; 0: it already runs in several, as the host arranged.
int32_t tn_cpu_count(void)
{
    DWORD_PTR process = 0, machine = 0;
    if (GetProcessAffinityMask(GetCurrentProcess(), &process, &machine) && process)
        return __builtin_popcountll(process);
    DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 ? (int32_t)n : 1;
}

void tn_system_memory(uint64_t *total, uint64_t *available)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof memory};
    *total = *available = 0;
    if (!GlobalMemoryStatusEx(&memory)) return;
    *total = memory.ullTotalPhys;
    *available = memory.ullAvailPhys;
}

void *tn_system_alloc(size_t size, size_t align)
{
    return _aligned_malloc(size ? size : 1, align);
}

void tn_system_free(void *memory)
{
    _aligned_free(memory);
}

// Only what fits into the working set of the process can be locked, so it grows first.
bool tn_memory_lock(const void *bytes, size_t n)
{
    SIZE_T least, most;
    HANDLE self = GetCurrentProcess();
    if (n == 0) return true;
    if (!GetProcessWorkingSetSize(self, &least, &most) ||
        !SetProcessWorkingSetSize(self, least + n, most + n))
        return false;
    return VirtualLock((void *)(uintptr_t)bytes, n);
}

void tn_memory_unlock(const void *bytes, size_t n)
{
    if (n > 0) (void)VirtualUnlock((void *)(uintptr_t)bytes, n);
}

// Nobody has tried tile registers on Windows: they are not asked for (EnableProcessOptionalXStateFeatures).
int tn_cpu_tiles_permit(void)
{
    return ENOSYS;
}
