#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets of a build with -Dfuzz=true, guided by libFuzzer.

    run.py BUILD [TARGET...]                  replays the corpora of tests/fuzz/corpus
    run.py BUILD --seconds 60 [TARGET...]     and fuzzes for so long, over all targets together
    run.py BUILD --check ...                  fails where fewer edges are seen than tests/fuzz/edges.json says
    run.py BUILD --record ...                 adds what was run to edges.json and docs/reliability.md
    run.py BUILD --keep ...                   minimises what was found into the corpora
    run.py BUILD --inputs FILE ...            with inputs that many.py has found
    run.py --add FILE                         adds the counts of many.py (bundle.py: on another machine); the
                                              edges that must be reached change by --record only

The configuration that the numbers in edges.json belong to stands in README.md.
"""
import argparse
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

import many

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EDGES = HERE / "edges.json"
TABLE = ROOT / "docs/reliability.md"
# Bytes of the longest input. Models and states are long; for the others short inputs are faster and as good.
MAX_LENGTH = {"model": 24 << 10, "state": 64 << 10, "adapter": 40 << 10, "forward": 67, "gguf": 4096,
              "api": 145, "graph": 174, "tools": 512, "tokenizer": 512}
# Where an input has thousands of features, counting how rare each is takes a fifth of the time. Sessions of
# api that are kept for later inputs are no leaks: what is left when all are closed is checked by the target.
OPTIONS = {"api": ["-entropic=0", "-detect_leaks=0"], "forward": ["-entropic=0"],
           "adapter": ["-entropic=0"], "graph": ["-entropic=0"]}
ENV = {"ASAN_OPTIONS": f"detect_leaks=1:{many.OPTIONS}",
       "UBSAN_OPTIONS": "print_stacktrace=1"}


def targets(build):
    return sorted(p.name[5:] for p in (build / "tests").glob("fuzz_*")
                  if p.is_file() and os.access(p, os.X_OK) and p.name != "fuzz_words")


def unpack(target, folder):
    folder.mkdir(parents=True, exist_ok=True)
    archive = HERE / "corpus" / f"{target}.tar.xz"
    if not archive.exists():
        return
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            if member.isfile() and "/" not in member.name:
                (folder / member.name).write_bytes(tar.extractfile(member).read())


def pack(target, folder):
    """The same files give the same bytes."""
    archive = HERE / "corpus" / f"{target}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    with tarfile.open(archive, "w:xz", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(folder.iterdir()):
            info = tarfile.TarInfo(path.name)
            info.size = path.stat().st_size
            tar.addfile(info, io.BytesIO(path.read_bytes()))


def fuzz(build, target, corpus, seconds, crashes):
    """Edges, features and executions; None after a finding."""
    program = build / "tests" / f"fuzz_{target}"
    words = crashes / f"{target}.dict"
    with open(words, "w") as out:
        subprocess.run([build / "tests/fuzz_words", target], stdout=out, check=True)
    length = MAX_LENGTH.get(target, 2048)
    args = [program, f"-max_len={length}", f"-dict={words}", f"-artifact_prefix={crashes}/{target}-",
            "-timeout=60", "-rss_limit_mb=2048", "-print_final_stats=1", "-verbosity=1", "-print_funcs=0",
            *OPTIONS.get(target, []), corpus]
    args.insert(1, f"-max_total_time={seconds}" if seconds > 0 else "-runs=0")
    done = subprocess.run(args, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**os.environ, **ENV},
                          text=True, errors="replace")
    (crashes / f"{target}.log").write_text(done.stderr)
    covers = re.findall(r"cov: (\d+) ft: (\d+)", done.stderr)
    runs = re.search(r"stat::number_of_executed_units: (\d+)", done.stderr)
    edges, features = (int(covers[-1][0]), int(covers[-1][1])) if covers else (0, 0)
    if done.returncode:
        print(done.stderr[-4000:])
    return {"edges": edges, "features": features, "executions": int(runs.group(1)) if runs else 0,
            "failed": done.returncode != 0}


def minimise(build, target, corpus):
    """Keeps one input of each feature."""
    with tempfile.TemporaryDirectory() as small:
        program, length = build / "tests" / f"fuzz_{target}", MAX_LENGTH.get(target, 2048)
        subprocess.run([program, "-merge=1", f"-max_len={length}", small, corpus], stderr=subprocess.DEVNULL,
                       env={**os.environ, **ENV}, check=True)
        pack(target, pathlib.Path(small))


def compiler():
    text = subprocess.run(["clang", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\d+)", text)
    return int(found.group(1)) if found else 0


def write_table(known):
    rows = ["| Target | Edges seen | Executions so far |", "|---|---|---|"]
    total = 0
    for name, row in sorted(known["targets"].items()):
        rows.append(f"| {name} | {row['edges']} | {row['executions']} |")
        total += row["executions"]
    rows.append(f"| all | | {total} |")
    for name, executions in sorted(known.get("unguided", {}).items()):
        rows.append(f"| {name}, not guided | | {executions} |")
    text = TABLE.read_text()
    begin, end = "<!-- table of fuzz/run.py -->\n", "<!-- end -->"
    head, rest = text.split(begin)
    TABLE.write_text(head + begin + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1])


def record(known, name, executions, edges):
    row = known["targets"].setdefault(name, {"edges": 0, "executions": 0})
    row["executions"] += executions
    # A little below what was seen: a short run is random, and code changes.
    row["edges"] = max(row["edges"], edges * 95 // 100)
    save(known)


def save(known):
    EDGES.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    write_table(known)


def add(known, path):
    """Counts of many.py."""
    for name, row in sorted(json.loads(path.read_text())["targets"].items()):
        if row["guided"]:
            record(known, name, row["executions"], 0)
        else:
            unguided = known.setdefault("unguided", {})
            unguided[name] = unguided.get(name, 0) + row["executions"]
        print(f"{name}: {row['executions']} executions, {row['edges']} edges, {row['findings']} findings")
    save(known)
    return 0


def take_inputs(archive, name, corpus):
    """Those of many.py, beside what is there."""
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            folder, _, file = member.name.partition("/")
            if member.isfile() and folder == name and "/" not in file:
                (corpus / file).write_bytes(tar.extractfile(member).read())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path, nargs="?")
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=0)
    parser.add_argument("--add", type=pathlib.Path)
    parser.add_argument("--inputs", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="folder for inputs and findings, kept")
    for flag in ("check", "record", "keep"):
        parser.add_argument("--" + flag, action="store_true")
    opt = parser.parse_intermixed_args()
    known = json.loads(EDGES.read_text()) if EDGES.exists() else {"clang": compiler(), "targets": {}}
    if opt.add:
        return add(known, opt.add)
    if not opt.build:
        parser.error("BUILD is missing")
    build = opt.build.resolve()
    names = opt.targets or targets(build)
    work = opt.work or pathlib.Path(tempfile.mkdtemp(prefix="fuzz-"))
    comparable = known["clang"] == compiler()
    failed = []
    for name in names:
        corpus, crashes = work / name, work / "findings"
        crashes.mkdir(parents=True, exist_ok=True)
        unpack(name, corpus)
        if opt.inputs:
            take_inputs(opt.inputs, name, corpus)
        seconds = max(1, opt.seconds // len(names)) if opt.seconds else 0
        result = fuzz(build, name, corpus, seconds, crashes)
        row = known["targets"].setdefault(name, {"edges": 0, "executions": 0})
        fewer = comparable and result["edges"] < row["edges"]
        print(f"{name}: {result['executions']} executions, {result['edges']} edges"
              f" ({row['edges']} recorded), {result['features']} features"
              + (", FAILED" if result["failed"] else ""), flush=True)
        if result["failed"] or (opt.check and fewer):
            failed.append(name)
        if opt.keep and not result["failed"]:
            minimise(build, name, corpus)
        if opt.record:
            record(known, name, result["executions"], result["edges"])
    if not comparable:
        print(f"edges are not compared: they were recorded with clang {known['clang']}")
    if not opt.work and not failed:
        shutil.rmtree(work)
    print(f"{len(names) - len(failed)} passed, {len(failed)} failed" + (f": {' '.join(failed)}, see {work}"
                                                                     if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
