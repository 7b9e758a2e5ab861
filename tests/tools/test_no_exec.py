#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The tool where no memory may become executable: test_no_exec.py TENON MODEL

Linux 6.3 has that as a limit of a process (PR_SET_MDWE), as SELinux and systemd can set it: memory that was
written is never executed. The tool answers under it as it does without.
"""
import ctypes
import subprocess
import sys

PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
TRY = ("import mmap\n"
       "try: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
       "except PermissionError: print('refused')\n")


def limit():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def run(limited, *command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100,
                          preexec_fn=limit if limited else None)


def main():
    tenon, model = sys.argv[1:]
    try:
        tried = run(True, sys.executable, "-c", TRY)
    except subprocess.SubprocessError:
        print("SKIP: this kernel cannot forbid that memory becomes executable (Linux 6.3 can)")
        return 77
    failed = 0
    if tried.stdout != "refused\n":
        print(f"the limit does not hold: {tried.stdout}{tried.stderr}")
        failed += 1
    command = (tenon, "run", model, "-st", "--temp", "0", "-p", "Where does Mia live?")
    plain, limited = run(False, *command), run(True, *command)
    if plain.returncode != 0 or (limited.returncode, limited.stdout) != (0, plain.stdout):
        print(f"without: {plain}\nwith:    {limited}")
        failed += 1
    print(f"{2 - failed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
