#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Runs fuzz targets on all cores of a machine that has nothing but Python: part of what bundle.py makes.

    many.py FOLDER --seconds 480 --cores 64 --out OUT

FOLDER has plan.json, programs, words and corpora. Each target gets processor time in proportion to the
executions that it still lacks. OUT gets results.json, which `run.py --add` reads, findings.tar.gz, if there
are any, and inputs.tar.gz: one input of each feature that the corpora of the targets, old and new, have.
Everything ends within the seconds, and what runs longer is stopped.
"""
import argparse
import ctypes
import io
import json
import os
import pathlib
import platform
import random
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import time

LEAST = 12            # seconds; a shorter run of a process is not worth its start
SPARE = 1.15          # more than is lacking, because rates are estimates
INPUTS_MAX = 8 << 20  # bytes of inputs.tar.gz
# Of the address sanitizer. Less memory waits to be used again, so that it stays in the cache, and less is
# noted of each allocation.
OPTIONS = ("allocator_may_return_null=1:abort_on_error=0:quarantine_size_mb=8:"
           "thread_local_quarantine_size_kb=64:malloc_context_size=4:max_malloc_fill_size=64")


def environment(leaks):
    return {**os.environ, "ASAN_OPTIONS": f"detect_leaks={int(leaks)}:symbolize=0:{OPTIONS}",
            "UBSAN_OPTIONS": "print_stacktrace=1:symbolize=0", "TSAN_OPTIONS": "symbolize=0:halt_on_error=1"}


def keep_addresses():
    """Clang's older thread sanitizer does not start where mappings are at any of 2^32 places."""
    try:
        return ctypes.CDLL(None).personality(0x0040000) >= 0  # ADDR_NO_RANDOMIZE
    except (OSError, AttributeError):
        return False


class Work:
    """A target: its program, and what came of it."""

    def __init__(self, name, row, folder, work):
        self.name, self.row, self.folder = name, row, folder
        self.program = folder / row["program"]
        self.guided = row["guided"]
        self.seeds = folder / "corpora" / name
        self.found = work / "found" / name
        self.merged = work / "merged" / name
        self.logs = work / "logs" / name
        for path in (self.seeds, self.found, self.merged, self.logs):
            path.mkdir(parents=True, exist_ok=True)
        self.findings = work / "findings"
        self.findings.mkdir(exist_ok=True)
        self.lock = threading.Lock()
        self.executions = self.edges = self.features = self.n_findings = self.processes = 0
        self.core_seconds = 0.0
        self.broken = 0  # processes in a row that ended at once

    def need(self):
        """Core seconds."""
        return max(2 * LEAST, SPARE * max(self.row["lacks"], 0) / max(self.row["rate"], 1))

    def command(self, seconds):
        if not self.guided:
            return [self.program, str(seconds), str(random.getrandbits(48))]
        words = self.folder / "words" / self.name
        return [self.program, f"-max_total_time={seconds}", f"-max_len={self.row['max_len']}",
                f"-dict={words}", f"-artifact_prefix={self.findings}/{self.name}-", "-timeout=60",
                "-rss_limit_mb=3000", "-print_final_stats=1", "-print_funcs=0",
                f"-seed={random.getrandbits(31)}", *self.row["options"], self.found, self.seeds]

    def run(self, seconds, env):
        """One process; returns the seconds that it took."""
        with self.lock:
            self.processes += 1
            log = self.logs / f"{self.processes}.log"
        begin, late = time.monotonic(), False
        with open(log, "w") as out:
            p = subprocess.Popen(self.command(seconds), stdout=out, stderr=subprocess.STDOUT, env=env,
                                 stdin=subprocess.DEVNULL, cwd=self.logs)
            try:
                p.wait(seconds + 20)
            except subprocess.TimeoutExpired:
                late = True
                p.kill()
                p.wait()
        took = time.monotonic() - begin
        text = log.read_text(errors="replace")
        self.count(text, p.returncode, late, took)
        if p.returncode or late:
            (self.findings / f"{self.name}-{log.stem}.log").write_text(text[-40000:])
        log.unlink()
        return took

    def count(self, text, code, late, took):
        runs = re.findall(r"stat::number_of_executed_units: (\d+)|^(\d+) executions", text, re.M)
        seen = re.findall(r"^#(\d+)\s.*cov: (\d+) ft: (\d+)", text, re.M)
        with self.lock:
            if runs:
                self.executions += int(runs[-1][0] or runs[-1][1])
            elif seen:
                self.executions += int(seen[-1][0])
            if seen:
                self.edges = max(self.edges, int(seen[-1][1]))
                self.features = max(self.features, int(seen[-1][2]))
            self.core_seconds += took
            self.n_findings += bool(code) or late
            self.broken = self.broken + 1 if code and took < LEAST else 0

    def merge(self, seconds, env):
        """One input of each feature. Left out if it takes too long."""
        if not self.guided or seconds < LEAST:
            return
        log = self.logs / "merge.log"
        try:
            with open(log, "w") as out:
                subprocess.run([self.program, "-merge=1", f"-max_len={self.row['max_len']}", "-timeout=60",
                                "-rss_limit_mb=3000", f"-artifact_prefix={self.findings}/{self.name}-merge-",
                                self.merged, self.seeds, self.found], stdout=out, stderr=subprocess.STDOUT,
                               env=env, timeout=seconds, cwd=self.logs)
        except subprocess.TimeoutExpired:
            shutil.rmtree(self.merged)
            self.merged.mkdir()
            return
        done = re.search(r"new files with (\d+) new features added", log.read_text(errors="replace"))
        if done:
            self.features = max(self.features, int(done[1]))

    def inputs(self):
        """Names and bytes: what was merged, or else what is new, small ones first."""
        merged = sorted(self.merged.iterdir())
        return merged or sorted(self.found.iterdir(), key=lambda p: (p.stat().st_size, p.name))

    def result(self):
        return {"executions": self.executions, "edges": self.edges, "features": self.features,
                "findings": self.n_findings, "core_seconds": round(self.core_seconds),
                "processes": self.processes, "guided": self.guided}


def share(works, slots):
    """What each of the slots runs: [(work, seconds)]. The works lie behind each other over all slots, and
    those of a slot follow each other."""
    capacity = sum(slots)
    need = {w.name: w.need() for w in works}
    most = sum(need.values())
    plan, slot, free = [[] for _ in slots], 0, slots[0]
    for w in sorted(works, key=lambda w: w.need()):
        left = max(need[w.name] * capacity / most, LEAST)
        while left >= 1 and slot < len(slots):
            seconds = min(left, free)
            if plan[slot] and free - seconds < LEAST:
                seconds = free  # no rest that is too short
            if seconds >= LEAST:
                plan[slot].append((w, int(seconds)))
            left, free = left - seconds, free - seconds
            if free < LEAST:
                slot += 1
                free = slots[slot] if slot < len(slots) else 0
    for i, row in enumerate(plan):
        if not row:
            row.append((max(works, key=lambda w: w.need()), int(slots[i])))
    return plan


def fill(row, end, env):
    for k, (w, seconds) in enumerate(row):
        last = k == len(row) - 1
        stop = end if last else min(end, time.monotonic() + seconds)
        while stop - time.monotonic() > LEAST / 2 and w.broken < 3:
            w.run(max(int(stop - time.monotonic()), 1), env)


def finds_leaks(works):
    """Whether the leak sanitizer can look at the memory of a process here."""
    w = next(w for w in works if w.guided)
    try:
        done = subprocess.run([w.program, "-runs=1"], env=environment(True), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def write_tar(path, members, most):
    size = 0
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members:
            size += len(data) + 600
            if size > 4 * most:
                break
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def write_inputs(path, works):
    """All that fits, every target the same share."""
    share_of = INPUTS_MAX // max(len(works), 1)
    members = []
    for w in works:
        size = 0
        for p in w.inputs():
            data = p.read_bytes()
            size += len(data) + 128
            if size > 3 * share_of:
                break
            members.append((f"{w.name}/{p.name}", data))
    write_tar(path, members, INPUTS_MAX)
    if path.stat().st_size > INPUTS_MAX:
        write_tar(path, members[::2], INPUTS_MAX)


def write_findings(path, folder):
    files = sorted(folder.iterdir(), key=lambda p: p.stat().st_size)[:400]
    if files:
        write_tar(path, [(p.name, p.read_bytes()[:1 << 20]) for p in files], 4 << 20)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--cores", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, required=True)
    opt = parser.parse_args()
    begin = time.monotonic()
    opt.out.mkdir(parents=True, exist_ok=True)
    same_addresses = keep_addresses()
    work = pathlib.Path(tempfile.mkdtemp(prefix="fuzz-many-"))
    rows = json.loads((opt.folder / "plan.json").read_text())["targets"]
    works = [Work(name, row, opt.folder.resolve(), work) for name, row in rows.items()]
    leaks = finds_leaks(works)
    env = environment(leaks)
    # The first slots end early and put the inputs together. All is written some seconds before the end.
    last = begin + opt.seconds - max(8, opt.seconds // 24)
    merging = min(90, opt.seconds // 4)
    guided = sorted((w for w in works if w.guided), key=lambda w: w.row["rate"])
    ends = [last - 12 - (merging if i < len(guided) else 0) for i in range(opt.cores)]
    ends = [max(e, begin + opt.seconds // 2) for e in ends]
    plan = share(works, [e - time.monotonic() for e in ends])
    threads = [threading.Thread(target=fill, args=(row, end, env)) for row, end in zip(plan, ends)]
    for t in threads:
        t.start()
    for t in threads[:len(guided)]:
        t.join()
    waiting, lock = list(guided), threading.Lock()

    def merge_some():
        while True:
            with lock:
                if not waiting:
                    return
                w = waiting.pop(0)
            w.merge(last - time.monotonic(), env)

    mergers = [threading.Thread(target=merge_some) for _ in range(min(opt.cores, len(guided)))]
    for t in mergers + threads:
        if t in mergers:
            t.start()
    for t in mergers + threads:
        t.join()
    results = {"machine": platform.machine(), "cores": opt.cores, "leaks_found": leaks,
               "same_addresses": same_addresses, "seconds": round(time.monotonic() - begin),
               "targets": {w.name: w.result() for w in works}}
    (opt.out / "results.json").write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    write_inputs(opt.out / "inputs.tar.gz", guided)
    write_findings(opt.out / "findings.tar.gz", work / "findings")
    shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
