// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__linux__)
#define _DEFAULT_SOURCE // LOCK_EX
#endif
#include "tools/store/part.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

// Systems without flock have the locks of POSIX, which any close of the same file in this process ends too:
// while a part is locked, this program opens it nowhere else. They say EACCES or EAGAIN.
bool part_lock(int fd)
{
#if defined(__linux__) || defined(__APPLE__)
    return flock(fd, LOCK_EX | LOCK_NB) == 0;
#else
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &all) == 0) return true;
    if (errno == EACCES || errno == EAGAIN) errno = EWOULDBLOCK;
    return false;
#endif
}
