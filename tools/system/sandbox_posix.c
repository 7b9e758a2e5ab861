// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Filters of system calls (seccomp) that all threads get. A refused call gives EPERM, so that what needs it
// fails with a message. Files, sockets and pipes that are open stay usable.
#if defined(__linux__)
#define _GNU_SOURCE // syscall
#endif
#include "tools/common.h"
#include "tools/system/system.h"

#include <errno.h>
#include <string.h>

// Calls have other numbers on each architecture, and filters see registers in its byte order.
#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__)) && defined(__has_include)
#if __has_include(<linux/seccomp.h>)
#define HAVE_SECCOMP 1
#endif
#endif

#ifdef HAVE_SECCOMP
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

// Not on every architecture, or newer than the headers.
static const int refused[] = {
#ifdef SYS_creat
    SYS_creat,
    SYS_rename,
    SYS_unlink,
    SYS_rmdir,
    SYS_mkdir,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_utime,
    SYS_utimes,
    SYS_futimesat,
    SYS_fork,
    SYS_vfork,
#endif
    SYS_socket,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    SYS_execve,
    SYS_execveat,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_tkill,
    SYS_rt_sigqueueinfo,
    SYS_rt_tgsigqueueinfo,
    SYS_bpf,
    SYS_mount,
    SYS_umount2,
    SYS_chroot,
    SYS_pivot_root,
    SYS_unshare,
    SYS_setns,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_truncate,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_setxattr,
    SYS_lsetxattr,
    SYS_fsetxattr,
    SYS_removexattr,
    SYS_lremovexattr,
    SYS_fremovexattr,
    SYS_utimensat,
    SYS_open_by_handle_at,
    424 /* pidfd_send_signal */,
    425 /* io_uring_setup */,
    428 /* open_tree */,
    429 /* move_mount */,
    430 /* fsopen */,
    432 /* fsmount */,
    433 /* fspick */,
    437 /* openat2 */,
    438 /* pidfd_getfd */,
    442 /* mount_setattr */,
    452 /* fchmodat2 */,
    463 /* setxattrat */,
    466 /* removexattrat */,
    467 /* open_tree_attr */,
};

enum { FILTER_MAX = 2 * (int)(sizeof refused / sizeof *refused) + 32 };

typedef struct filter {
    struct sock_filter ops[FILTER_MAX];
    unsigned short n;
} filter;

static void add(filter *f, struct sock_filter op)
{
    f->ops[f->n++] = op;
}

static void load(filter *f, size_t offset)
{
    add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset));
}

static void refuse_if(filter *f, unsigned short test, unsigned value)
{
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

// Opening by this call, whose argument `flags` decides; in the second stage it is refused.
static void refuse_open(filter *f, int call, int flags, sys_sandbox_stage stage)
{
    if (stage == SANDBOX_LOADED) {
        refuse_if(f, BPF_JEQ, (unsigned)call);
        return;
    }
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4));
    load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)flags); // the low half: little endian
    refuse_if(f, BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC);
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

static void make_filter(filter *f, sys_sandbox_stage stage)
{
    f->n = 0;
    load(f, offsetof(struct seccomp_data, arch));
    add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(f, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    refuse_if(f, BPF_JGE, 0x40000000); // the calls of x32, under other numbers
#endif
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) refuse_if(f, BPF_JEQ, (unsigned)refused[i]);
    refuse_open(f, SYS_openat, 2, stage);
#ifdef SYS_open
    refuse_open(f, SYS_open, 1, stage);
#endif
    add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

int sys_sandbox_enter(sys_sandbox_stage stage)
{
    filter f;
    make_filter(&f, stage);
    struct sock_fprog program = {.len = f.n, .filter = f.ops};
    tzset(); // reads a file at its first use
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
        return 0;
    return fail(EXIT_FAILED, "--sandbox: this system has no filters of system calls: %s", strerror(errno));
}
#else
int sys_sandbox_enter(sys_sandbox_stage stage)
{
    (void)stage;
    return fail(EXIT_FAILED, "--sandbox is not available on this system");
}
#endif
