// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock, core count and memory of a POSIX system.
#define _GNU_SOURCE
#include "core/context.h"
#include "core/cpu_features.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

uint64_t tn_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__linux__)
// futex(2): the kernel compares *word with value and sleeps in one step, so no wake-up is lost.
void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void tn_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
#else
void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    TN_UNUSED(word);
    TN_UNUSED(value);
    sched_yield();
}

void tn_wake_all(_Atomic uint32_t *word)
{
    TN_UNUSED(word);
}
#endif

int32_t tn_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0) return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)n : 1;
}

// "MemAvailable:   123 kB" -> bytes
static uint64_t meminfo_field(const char *text, const char *key)
{
    const char *p = strstr(text, key);
    if (!p) return 0;
    p += strlen(key);
    while (*p == ' ') p++;
    uint64_t v = 0;
    for (; *p >= '0' && *p <= '9'; p++) v = v * 10 + (uint64_t)(*p - '0');
    return v * 1024;
}

void tn_system_memory(uint64_t *total, uint64_t *available)
{
    char text[2048];
    *total = *available = 0;
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return;
    text[n] = 0;
    *total = meminfo_field(text, "MemTotal:");
    *available = meminfo_field(text, "MemAvailable:");
}

bool tn_memory_lock(const void *bytes, size_t n)
{
    return n == 0 || mlock(bytes, n) == 0;
}

void tn_memory_unlock(const void *bytes, size_t n)
{
    if (n > 0) (void)munlock(bytes, n);
}
