// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// -Dglibc=2.31: what was built with a newer C library also runs with that of 2020 (dist/README.md). Newer
// ones gave some functions new versions, which old ones lack, and keep the old versions for old programs. In
// the shared library and in the program the linker replaces the calls (--wrap) by calls of what is here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

// A jump: arguments and results stay where they are.
#define OLD(name, version)                                                                                   \
    __asm__(".symver old_" #name ", " #name "@" version "\n"                                                 \
            ".pushsection .text\n"                                                                           \
            ".globl __wrap_" #name "\n"                                                                      \
            ".hidden __wrap_" #name "\n"                                                                     \
            ".type __wrap_" #name ", @function\n"                                                            \
            "__wrap_" #name ": endbr64\n"                                                                    \
            "jmp *old_" #name "@GOTPCREL(%rip)\n"                                                            \
            ".size __wrap_" #name ", . - __wrap_" #name "\n"                                                 \
            ".popsection")

// Of libpthread.so.0 and libdl.so.2 before 2.34.
OLD(pthread_attr_setstacksize, "GLIBC_2.2.5");
OLD(pthread_barrier_destroy, "GLIBC_2.2.5");
OLD(pthread_barrier_init, "GLIBC_2.2.5");
OLD(pthread_barrier_wait, "GLIBC_2.2.5");
OLD(pthread_create, "GLIBC_2.2.5");
OLD(pthread_join, "GLIBC_2.2.5");
OLD(pthread_setname_np, "GLIBC_2.12");
OLD(dladdr, "GLIBC_2.2.5");
OLD(dlclose, "GLIBC_2.2.5");
OLD(dlopen, "GLIBC_2.2.5");
OLD(dlsym, "GLIBC_2.2.5");
// 2.35 made it exact to the last bit; only pictures use it.
OLD(hypot, "GLIBC_2.2.5");
#define HIDDEN __attribute__((visibility("hidden")))

// Before 2.33 stat was a function of the header, which called these.
enum { STAT_VERSION = 1 };
extern int __xstat64(int version, const char *path, struct stat64 *st);
extern int __lxstat64(int version, const char *path, struct stat64 *st);
extern int __fxstat64(int version, int fd, struct stat64 *st);

HIDDEN int __wrap_stat64(const char *path, struct stat64 *st);
HIDDEN int __wrap_lstat64(const char *path, struct stat64 *st);
HIDDEN int __wrap_fstat64(int fd, struct stat64 *st);
HIDDEN int __wrap_pthread_attr_setsigmask_np(pthread_attr_t *attributes, const sigset_t *mask);

int __wrap_stat64(const char *path, struct stat64 *st)
{
    return __xstat64(STAT_VERSION, path, st);
}

int __wrap_lstat64(const char *path, struct stat64 *st)
{
    return __lxstat64(STAT_VERSION, path, st);
}

int __wrap_fstat64(int fd, struct stat64 *st)
{
    return __fxstat64(STAT_VERSION, fd, st);
}

// New in 2.32. Without it threads have the mask of the one that starts them, as core/threads/thread_posix.c
// says.
int __wrap_pthread_attr_setsigmask_np(pthread_attr_t *attributes, const sigset_t *mask)
{
    int (*set)(pthread_attr_t *, const sigset_t *) = NULL;
    void *address = dlsym(RTLD_DEFAULT, "pthread_attr_setsigmask_np");
    memcpy(&set, &address, sizeof set);
    return set ? set(attributes, mask) : 0;
}
