// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock, core count and memory of a POSIX system.
#define _GNU_SOURCE
#include "core/context.h"
#include "core/cpu_features.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#if defined(__linux__)
#include <linux/futex.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

uint64_t tn_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__linux__) && defined(SYS_arch_prctl)
// Documentation/arch/x86/xstate.rst of Linux: without permission the first use of a tile ends the process.
int tn_cpu_tiles_permit(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? 0 : errno;
}
#else
int tn_cpu_tiles_permit(void)
{
    return ENOSYS;
}
#endif

#if defined(__linux__)
// futex(2): the kernel compares *word with value and sleeps in one step, so no wake-up is lost.
void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void tn_wake(_Atomic uint32_t *word, int32_t n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
#else
void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    TN_UNUSED(word);
    TN_UNUSED(value);
    sched_yield();
}

void tn_wake(_Atomic uint32_t *word, int32_t n)
{
    TN_UNUSED(word);
    TN_UNUSED(n);
}
#endif

void tn_wake_all(_Atomic uint32_t *word)
{
    tn_wake(word, INT_MAX);
}

// Up to size - 1 bytes of a file of the system; false if there is none.
static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    return n > 0;
}

// Cores' worth of time that the control group of this process may use, rounded up; INT32_MAX: no limit.
// Inside a container its group is the root of what it sees; outside, /proc/self/cgroup says "0::/path"
// (cgroups(7)).
static int32_t group_cores(void)
{
    char group[512], path[600], text[64];
    bool found = read_text("/sys/fs/cgroup/cpu.max", text, sizeof text);
    if (!found && read_text("/proc/self/cgroup", group, sizeof group)) {
        char *name = strstr(group, "0::/");
        if (!name) return INT32_MAX;
        name += 3;
        name[strcspn(name, "\n")] = 0;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", name);
        found = read_text(path, text, sizeof text);
    }
    long long quota, period; // microseconds; "max 100000" where there is no limit
    if (!found || sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0)
        return INT32_MAX;
    return (int32_t)TN_MIN((quota + period - 1) / period, INT32_MAX);
}

int32_t tn_cpu_count(void)
{
    cpu_set_t set;
    int32_t limit = group_cores();
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int n = CPU_COUNT(&set);
        if (n > 0) return TN_MIN(n, limit);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? TN_MIN((int32_t)n, limit) : 1;
}

// What the system says of an aarch64 processor. Linux: the auxiliary vector; the bits are those of
// Documentation/arch/arm64/elf_hwcaps.rst, because headers of old systems lack some. macOS: names that Apple
// documents as "Determining instruction set characteristics"; that branch was never compiled or run.
#if defined(__aarch64__) && defined(__linux__)
enum {
    HWCAP_BIT_FP16 = 1 << 10,
    HWCAP_BIT_DOTPROD = 1 << 20,
    HWCAP2_BIT_I8MM = 1 << 13,
};

void tn_cpu_features_arm(tn_cpu_features *f)
{
    unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
    f->dotprod = (caps & HWCAP_BIT_FP16) && (caps & HWCAP_BIT_DOTPROD);
    f->i8mm = f->dotprod && (caps2 & HWCAP2_BIT_I8MM);
}
#elif defined(__aarch64__) && defined(__APPLE__)
static bool has_feature(const char *name)
{
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}

void tn_cpu_features_arm(tn_cpu_features *f)
{
    f->dotprod = has_feature("hw.optional.arm.FEAT_FP16") && has_feature("hw.optional.arm.FEAT_DotProd");
    f->i8mm = f->dotprod && has_feature("hw.optional.arm.FEAT_I8MM");
}
#else
void tn_cpu_features_arm(tn_cpu_features *f)
{
    TN_UNUSED(f);
}
#endif

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
    if (!read_text("/proc/meminfo", text, sizeof text)) return;
    *total = meminfo_field(text, "MemTotal:");
    *available = meminfo_field(text, "MemAvailable:");
}

void *tn_system_alloc(size_t size, size_t align)
{
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

void tn_system_free(void *memory)
{
    free(memory);
}

bool tn_memory_lock(const void *bytes, size_t n)
{
    return n == 0 || mlock(bytes, n) == 0;
}

void tn_memory_unlock(const void *bytes, size_t n)
{
    if (n > 0) (void)munlock(bytes, n);
}
