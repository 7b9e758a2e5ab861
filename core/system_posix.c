// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock, core count and memory of a POSIX system.
#define _GNU_SOURCE
#include "core/context.h"
#include "core/cpu_features.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t tn_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tn_thread_yield(void)
{
    sched_yield();
}

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
