// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

extern char **environ;

enum { BACKGROUND_NICE = 10 };

void sys_start(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return;
}

const char *sys_env(const char *name)
{
    return getenv(name);
}

bool sys_env_name(size_t i, char *name, size_t size)
{
    for (size_t k = 0; k <= i; k++)
        if (!environ[k]) return false;
    snprintf(name, size, "%.*s", (int)strcspn(environ[i], "="), environ[i]);
    return true;
}

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t peak_rss(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
    return (uint64_t)usage.ru_maxrss; // bytes there
#else
    return (uint64_t)usage.ru_maxrss * 1024; // KiB on Linux and the BSDs
#endif
}

uint64_t sys_process_id(void)
{
    return (uint64_t)getpid();
}

void sys_lower_priority(void)
{
    (void)setpriority(PRIO_PROCESS, 0, BACKGROUND_NICE);
}

bool sys_local_time(struct tm *out)
{
    time_t now = time(NULL);
    return now != (time_t)-1 && localtime_r(&now, out);
}

void sys_machine_get(sys_machine *out)
{
    struct utsname system;
    *out = (sys_machine){.n_cores = sysconf(_SC_NPROCESSORS_ONLN)};
    if (uname(&system) == 0)
        snprintf(out->system, sizeof out->system, "%.40s %.40s, %.40s", system.sysname, system.release,
                 system.machine);
#if defined(_SC_PHYS_PAGES) // not of POSIX
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) out->memory = (uint64_t)pages * (uint64_t)page;
#endif
}
