// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Included before each test that is built for Windows: functions of POSIX that the C runtime there lacks or
// calls otherwise. <windows.h> would rename functions of the tests, so what is needed of it is declared.
#ifndef TN_TESTS_WINDOWS_COMPAT_H
#define TN_TESTS_WINDOWS_COMPAT_H

#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

static inline char *mkdtemp(char *name)
{
    return _mktemp(name) && _mkdir(name) == 0 ? name : NULL;
}

static inline int setenv(const char *name, const char *value, int overwrite)
{
    (void)overwrite;
    return _putenv_s(name, value);
}

// Links and pipes in folders need rights here, or do not exist: tests of them are left out.
static inline int test_absent(const char *what)
{
    printf("SKIP: no %s on Windows\n", what);
    errno = ENOSYS;
    return -1;
}

#define mkdir(path, mode)    _mkdir(path)
#define symlink(to, path)    test_absent("symbolic links")
#define mkfifo(path, mode)   test_absent("pipes with names")
#define lstat(path, status)  stat(path, status)
#define S_ISLNK(mode)        ((mode) != (mode))
#define link(from, path)     test_absent("hard links")

#endif
