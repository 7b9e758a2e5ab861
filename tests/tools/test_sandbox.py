# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""`tenon run --sandbox`: the same answers, and the kernel refuses what it has to refuse.

    test_sandbox.py TENON
"""
import os
import platform
import shutil
import subprocess
import sys

from cli import arguments

ASK = ["Where does Mia live?", "--temp", "0"]


def test_answers(t):
    plain = t.run("run", t.model, *ASK)
    for threads in ("1", "2"):
        boxed = t.run("run", t.model, *ASK, "--sandbox", "-t", threads)
        t.done_well(f"sandbox, {threads} threads", boxed)
        t.ok("the same answer", boxed.out == plain.out, boxed.out)
    read = t.run("run", t.model, *ASK, "--sandbox", "--no-mmap")
    t.ok("a model that is read", read.code == 0 and read.out == plain.out, read.err)
    grammar = t.temp("rules.gbnf")
    with open(grammar, "w") as f:
        f.write('root ::= "yes" | "no"')
    r = t.run("run", t.model, *ASK, "--sandbox", "--grammar-file", grammar)
    t.ok("a grammar from a file", r.code == 0 and r.text.strip() in ("yes", "no"), r.text + r.err)


def test_contradictions(t):
    state = t.temp("book.state")
    r = t.run("run", t.model, *ASK, "--sandbox", "--session", state)
    t.ok("a session would be written",
         r.code == 2 and "--session-ro" in r.err and not os.path.exists(state), r.err)
    t.done_well("a session", t.run("run", t.model, *ASK, "--session", state))
    before = os.stat(state).st_mtime_ns
    r = t.run("run", t.model, *ASK, "--sandbox", "--session", state, "--session-ro")
    t.ok("a session that is read", r.code == 0 and os.stat(state).st_mtime_ns == before, r.err)
    r = t.run("run", t.model, *ASK, "--sandbox", "--profile", t.temp("trace.json"))
    t.ok("a profile would be written", r.code == 2 and "--profile" in r.err, r.err)


def test_files(t):
    """The chat has commands that write and read files: they fail, and the chat goes on."""
    saved = t.temp("talk.json")
    talk = f"Hello!\n/save {saved}\n/load {t.model}\n/exit\n".encode()
    r = t.run("run", t.model, "-i", "--temp", "0", "-n", "8", "--sandbox", stdin=talk)
    t.ok("nothing is saved", not os.path.exists(saved), r.err)
    t.ok("the reason", "ermitted" in r.err + r.text, r.err)
    r = t.run("run", t.model, "-i", "--temp", "0", "-n", "8", stdin=talk)
    t.ok("without a sandbox it is", os.path.exists(saved), r.err)


def test_calls(t):
    """What the kernel sees once the model is loaded: no call that opens or connects succeeds."""
    strace = shutil.which("strace")
    if not strace:
        t.skip("system calls", "strace is not installed")
        return
    log = t.temp("calls.txt")
    subprocess.run([strace, "-f", "-o", log, "-e", "trace=open,openat,socket,connect,execve,seccomp",
                    t.tenon, "run", t.model, *ASK, "--sandbox"], env=t.env, capture_output=True, check=False)
    with open(log) as f:
        lines = f.read().splitlines()
    filters = [i for i, line in enumerate(lines) if "seccomp(" in line]
    if len(filters) < 2:
        t.skip("system calls", "strace cannot trace here")
        return
    later = [line for line in lines[filters[-1] + 1:] if " = " in line and "EPERM" not in line]
    t.ok("no file is opened afterwards", not later, later[:3])


def main():
    t, _, _ = arguments()
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64"):
        print("SKIP: filters of system calls are those of Linux on x86-64 and aarch64")
        return 77
    probe = t.run("run", t.model, *ASK, "--sandbox", "-n", "1")
    if probe.code != 0 and "has no filters" in probe.err:
        print("SKIP: the kernel has no filters of system calls")
        return 77
    test_answers(t)
    test_contradictions(t)
    test_files(t)
    test_calls(t)
    return t.done()


sys.exit(main())
