// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Clock, sleep, core count and memory of a POSIX system. The branches of macOS were never compiled or run
// (docs/macos.md); those for other systems run in the build with -Dportable_os=true.
#if defined(__linux__)
#define _GNU_SOURCE
#endif
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
#include <dlfcn.h>
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif

#if defined(__APPLE__)
// A number that the system keeps under a name; 0: it does not know the name.
static uint64_t system_number(const char *name)
{
    uint64_t value = 0; // some are of 32 bits, in little endian
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}
#endif

uint64_t tn_time_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void tn_sleep(uint64_t ns)
{
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    (void)nanosleep(&t, NULL); // shorter after a signal
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
// POSIX has no call that compares a word and sleeps, and a condition variable for each word would be state
// that belongs to no context. So this looks again and again, after pauses that double: a thread that has
// slept for t wakes up within t of the change, and within SLEEP_MAX at most.
static void sleep_while(const _Atomic uint32_t *word, uint32_t value)
{
    enum { SLEEP_MIN = 20000, SLEEP_MAX = 4000000 }; // ns
    struct timespec pause = {0, SLEEP_MIN};
    while (atomic_load(word) == value) {
        (void)nanosleep(&pause, NULL);
        pause.tv_nsec = TN_MIN(2 * pause.tv_nsec, SLEEP_MAX);
    }
}

#if defined(__APPLE__)
// <os/os_sync_wait_on_address.h>, from macOS 14.4 on. Found by name at each call, because the library keeps
// nothing outside a context; that takes far less than the sleep.
typedef int wait_call(void *address, uint64_t value, size_t size, uint32_t flags);
typedef int wake_call(void *address, size_t size, uint32_t flags);

void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    void *address = dlsym(RTLD_DEFAULT, "os_sync_wait_on_address");
    wait_call *wait;
    memcpy(&wait, &address, sizeof wait);
    if (wait)
        (void)wait((void *)word, value, sizeof *word, 0);
    else
        sleep_while(word, value);
}

void tn_wake(_Atomic uint32_t *word, int32_t n)
{
    const char *name = n == 1 ? "os_sync_wake_by_address_any" : "os_sync_wake_by_address_all";
    void *address = dlsym(RTLD_DEFAULT, name);
    wake_call *wake;
    memcpy(&wake, &address, sizeof wake);
    if (wake) (void)wake((void *)word, sizeof *word, 0);
}
#else
void tn_wait_while(_Atomic uint32_t *word, uint32_t value)
{
    sleep_while(word, value);
}

void tn_wake(_Atomic uint32_t *word, int32_t n)
{
    TN_UNUSED(word);
    TN_UNUSED(n);
}
#endif
#endif

void tn_wake_all(_Atomic uint32_t *word)
{
    tn_wake(word, INT_MAX);
}

#if defined(__linux__)
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
#else
int32_t tn_cpu_count(void)
{
#if defined(__APPLE__)
    // Threads on the slower cores would hold up the others.
    uint64_t fast = system_number("hw.perflevel0.physicalcpu");
    if (fast > 0) return (int32_t)TN_MIN(fast, INT32_MAX);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int32_t)TN_MIN(n, INT32_MAX) : 1;
}
#endif

// What the system says of an aarch64 processor. Linux: the auxiliary vector; the bits are those of
// Documentation/arch/arm64/elf_hwcaps.rst, because headers of old systems lack some. macOS: names that Apple
// documents as "Determining instruction set characteristics".
#if defined(__aarch64__) && defined(__linux__)
enum {
    HWCAP_BIT_FP16 = 1 << 10,
    HWCAP_BIT_DOTPROD = 1 << 20,
    HWCAP2_BIT_I8MM = 1 << 13,
    HWCAP2_BIT_BF16 = 1 << 14,
};

void tn_cpu_features_arm(tn_cpu_features *f)
{
    unsigned long caps = getauxval(AT_HWCAP), caps2 = getauxval(AT_HWCAP2);
    f->dotprod = (caps & HWCAP_BIT_FP16) && (caps & HWCAP_BIT_DOTPROD);
    f->i8mm = f->dotprod && (caps2 & HWCAP2_BIT_I8MM);
    f->bf16 = f->i8mm && (caps2 & HWCAP2_BIT_BF16);
}
#elif defined(__aarch64__) && defined(__APPLE__)
void tn_cpu_features_arm(tn_cpu_features *f)
{
    f->dotprod = system_number("hw.optional.arm.FEAT_FP16") && system_number("hw.optional.arm.FEAT_DotProd");
    f->i8mm = f->dotprod && system_number("hw.optional.arm.FEAT_I8MM");
    f->bf16 = f->i8mm && system_number("hw.optional.arm.FEAT_BF16");
}
#else
void tn_cpu_features_arm(tn_cpu_features *f)
{
    TN_UNUSED(f);
}
#endif

#if defined(__linux__)
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
#elif defined(__APPLE__)
void tn_system_memory(uint64_t *total, uint64_t *available)
{
    vm_statistics64_data_t pages;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    mach_port_t host = mach_host_self(); // a reference that has to be given back
    *total = system_number("hw.memsize");
    *available = 0;
    if (host_statistics64(host, HOST_VM_INFO64, (host_info64_t)&pages, &n) == KERN_SUCCESS)
        *available = ((uint64_t)pages.free_count + pages.inactive_count + pages.purgeable_count) *
                     (uint64_t)sysconf(_SC_PAGESIZE);
    (void)mach_port_deallocate(mach_task_self(), host);
}
#else
// POSIX says nothing of memory. Many systems have these names.
void tn_system_memory(uint64_t *total, uint64_t *available)
{
    *total = *available = 0;
#if defined(_SC_PHYS_PAGES) && defined(_SC_AVPHYS_PAGES)
    long page = sysconf(_SC_PAGESIZE), all = sysconf(_SC_PHYS_PAGES), unused = sysconf(_SC_AVPHYS_PAGES);
    if (page > 0 && all > 0) *total = (uint64_t)all * (uint64_t)page;
    if (page > 0 && unused > 0) *available = (uint64_t)unused * (uint64_t)page;
#endif
}
#endif

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
