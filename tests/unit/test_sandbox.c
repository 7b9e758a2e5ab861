// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The filters of system calls behind `tenon run --sandbox`: what each of them refuses, in a process of its
// own, whatever the arguments are, and what stays possible.
#include "tools/system/sandbox_posix.c"

#include "tests/unit/test.h"

#include <stdlib.h>

int fail(int code, const char *fmt, ...)
{
    (void)fmt;
    return code;
}

#ifndef HAVE_SECCOMP
int main(void)
{
    printf("SKIP: filters of system calls are those of Linux on x86-64 and aarch64\n");
    return 77;
}
#else
#include <sys/stat.h>
#include <sys/wait.h>

// Arguments with which a call that is not refused fails for another reason.
#define REFUSED(call) check_refused(#call, SYS_##call)

static void check_refused(const char *name, long call)
{
    errno = 0;
    long got = syscall(call, -1L, 0L, 0L, 0L, 0L, 0L);
    if (!TEST_CHECK(got == -1 && errno == EPERM)) printf("    %s: %ld, %s\n", name, got, strerror(errno));
}

static void check_calls(void)
{
    REFUSED(socket), REFUSED(connect), REFUSED(bind), REFUSED(listen), REFUSED(accept), REFUSED(accept4);
    REFUSED(sendto), REFUSED(sendmsg), REFUSED(sendmmsg);
    REFUSED(execve), REFUSED(execveat), REFUSED(ptrace), REFUSED(process_vm_writev);
    REFUSED(tkill), REFUSED(rt_sigqueueinfo), REFUSED(rt_tgsigqueueinfo);
    REFUSED(truncate), REFUSED(renameat2), REFUSED(unlinkat), REFUSED(mkdirat), REFUSED(linkat);
    REFUSED(symlinkat), REFUSED(mknodat);
    REFUSED(fchmod), REFUSED(fchmodat), REFUSED(fchown), REFUSED(fchownat), REFUSED(utimensat);
    REFUSED(setxattr), REFUSED(lsetxattr), REFUSED(fsetxattr);
    REFUSED(removexattr), REFUSED(lremovexattr), REFUSED(fremovexattr);
#ifdef SYS_creat
    REFUSED(creat), REFUSED(rename), REFUSED(unlink), REFUSED(rmdir), REFUSED(mkdir), REFUSED(link);
    REFUSED(symlink), REFUSED(mknod), REFUSED(chmod), REFUSED(chown), REFUSED(utime), REFUSED(utimes);
    REFUSED(futimesat);
#endif
}

static bool opens(const char *path, int flags)
{
    int fd = open(path, flags, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0 || errno != EPERM;
}

static int check_in_child(const char *path)
{
    int out = open(path, O_WRONLY);
    if (sys_sandbox_enter(SANDBOX_LOADING) != 0) {
        printf("SKIP: the system has no filters of system calls: %s\n", strerror(errno));
        return 77;
    }
    check_calls();
    TEST_CHECK(opens(path, O_RDONLY));
    TEST_CHECK(!opens(path, O_WRONLY) && !opens(path, O_RDWR) && !opens(path, O_RDONLY | O_TRUNC));
    TEST_CHECK(!opens("/tmp/tenon-sandbox-new", O_RDONLY | O_CREAT));
    TEST_CHECK(sys_sandbox_enter(SANDBOX_LOADED) == 0);
    check_calls();
    TEST_CHECK(!opens(path, O_RDONLY));
    TEST_CHECK(write(out, "x", 1) == 1); // what was open stays so
    return test_done();
}

int main(void)
{
    char path[] = "/tmp/tenon-sandbox-XXXXXX";
    int fd = mkstemp(path), status = 1;
    if (fd < 0) return 1;
    pid_t child = fork();
    if (child == 0) {
        int code = check_in_child(path);
        fflush(stdout);
        _exit(code); // what sanitizers do at an end needs calls that are refused
    }
    if (child > 0) waitpid(child, &status, 0);
    unlink(path);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
#endif
