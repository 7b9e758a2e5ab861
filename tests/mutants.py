#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the tests notice small mistakes in graph/ and models/: one operator or one constant is changed, the
tests that use the file run, and changes that all of them accept are printed.

    mutants.py FOLDER [--count 300] [--seed 1] [--skip 0] [--run N] [--only PATH] [--minutes M]

FOLDER is made: a copy of the source, and a build of it. The sample of --count changes depends on the seed and
the source alone; --skip and --run take a part of it. Changes that do not compile are not counted. A test that
takes five times as long as usual, and 20 s more, counts as one that failed.
"""
import argparse
import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What runs for a file: the tests of the first line whose path fits, the quickest first, then those of ALL.
TESTS = [
    ("graph/dump", "record passes cost null cli-contract"),
    ("graph/plan_cost", "plan_cost cost null"),
    ("graph/", "record fuse join passes plan_cost precision cost null memory-bundled example random_graphs"),
    ("models/gguf/", "gguf gguf_files loading file"),
    ("models/keys/", "archs gguf bad_models"),
    ("models/adapter/", "adapter"),
    ("models/quantize/", "imatrix quantize"),
    ("models/weights/", "loading packing archs mixers split"),
    ("models/engine/",
     "reuse prefix engine_thread schedule engine_device engine"),
    ("models/text/jinja/", "template"),
    ("models/text/grammar/", "grammar schema pattern json_read limits"),
    ("models/text/tools/", "tools pieces"),
    ("models/text/chat", "template tools generation"),
    ("models/text/", "tokenizer vocab pieces number limits"),
    ("models/run/state", "state adapter session"),
    ("models/run/session", "reuse state mixers window session_memory session"),
    ("models/run/sampling/constraint", "generation grammar schema sampler"),
    ("models/run/sampling/", "sampler sampler_device generation stages"),
    ("models/run/generation", "generation limits long speculate"),
    ("models/run/speculate", "speculate"),
    ("models/run/predict", "speculate session_memory session adapter"),
    ("models/run/fit", "offload session_memory"),
    ("models/run/embed", "embed"),
    ("models/run/packing", "packing"),
    ("models/run/shift", "long"),
    ("models/run/cache/", "reuse prefix window state mixers host-cache"),
    ("models/run/", "reuse state mixers window session_memory"),
    ("models/file", "file"),
    ("models/random", "random archs"),
    ("models/", "archs mixers embed random loading bad_models"),
]
ALL = "golden-avx2 embed messages structs nulls alloc"
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<|>|\+|-|\*|/|%)(?= )|(?<=\w)(\+\+|--)")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
# Text that is no code, of the same length.
HIDDEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|^\s*#[^\n]*', re.S | re.M)


def changes_of(path):
    """Offset, old and new text of each change that is possible in a file."""
    text = path.read_text()
    code = HIDDEN.sub(lambda m: re.sub(r"[^\n]", "~", m.group()), text)
    for m in OPERATOR.finditer(code):
        old = m.group()
        line = code[code.rfind("\n", 0, m.start()) + 1:m.start()]
        declares = old == "*" and re.match(r"\s*(static |const )*\w+( const)?\s*$", line)
        if not declares:
            yield m.start(), old, SWAPS[old]
    for m in NUMBER.finditer(code):
        yield m.start(), m.group(), str(int(m.group()) + 1)


def sample(count, seed, only):
    found = []
    for folder in ("graph", "models"):
        for path in sorted((ROOT / folder).rglob("*.c")):
            name = str(path.relative_to(ROOT))
            found += [(name, *change) for change in changes_of(path) if "win32" not in name]
    random.Random(seed).shuffle(found)
    return [change for change in found[:count] if not only or change[0].startswith(only)]


def run(command, seconds=900, folder=None):
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return 124, ""


class Tree:
    """A copy of the source with a build of its own."""

    def __init__(self, folder):
        self.source, self.build = folder / "main", folder / "main/build"
        if not self.source.exists():
            self.source.mkdir(parents=True)
            listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
            for name in listed.stdout.decode().strip("\0").split("\0"):
                (self.source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.source / name)
            shared = ROOT.parent / "shared"
            if shared.exists():
                (folder / "shared").symlink_to(shared)
            options = ["-Dcuda=disabled", "-Dvulkan=disabled", "-Dexamples=disabled", "-Dpage=disabled",
                       "-Doptimization=1", "-Dhardening=false"]
            code, said = run(["meson", "setup", self.build, self.source, *options])
            if code:
                sys.exit(said)
        listed = subprocess.run(["meson", "introspect", self.build, "--tests"], stdout=subprocess.PIPE,
                                check=True)
        # Two tests have the name of a script too: the program counts.
        self.tests = {}
        for test in sorted(json.loads(listed.stdout), key=lambda t: str(self.build) in t["cmd"][0]):
            self.tests[test["name"]] = test
        # Seconds that each test takes, kept for the next run.
        self.times = folder / "times.json"
        self.usual = json.loads(self.times.read_text()) if self.times.exists() else {}

    def make(self, name):
        target = self.tests[name]["cmd"][0]
        inside = pathlib.Path(target).is_relative_to(self.build)
        target = pathlib.Path(target).relative_to(self.build) if inside else "tools/tenon"
        return run(["ninja", "-C", self.build, str(target)])[0] == 0

    def passes(self, name, learn=False):
        start = time.monotonic()
        seconds = 600 if learn else 5 * self.usual.get(name, 60) + 20
        code, _ = run(self.tests[name]["cmd"], seconds, self.build)
        if learn:
            self.usual[name] = time.monotonic() - start
            self.times.write_text(json.dumps(self.usual))
        return code in (0, 77)


def tests_of(tree, path):
    names = next(names for prefix, names in TESTS if path.startswith(prefix))
    return [n for n in dict.fromkeys((names + " " + ALL).split()) if n in tree.tests]


def try_change(tree, change):
    """The test that fails, "" if the change cannot be tested, None if none does."""
    path, at, old, new = change
    file = tree.source / path
    text = file.read_text()
    file.write_text(text[:at] + new + text[at + len(old):])
    try:
        for name in tests_of(tree, path):
            if not tree.make(name):
                return ""
            if not tree.passes(name):
                return name
        return None
    finally:
        file.write_text(text)


def describe(change):
    path, at, old, new = change
    text = (ROOT / path).read_text()
    line = text.count("\n", 0, at) + 1
    return f"{path}:{line}: {old} -> {new}: {text.splitlines()[line - 1].strip()}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--run", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--only", default="")
    opt = parser.parse_args()
    tree = Tree(opt.folder.resolve())
    chosen = sample(opt.count, opt.seed, opt.only)[opt.skip:opt.skip + opt.run]
    wanted = dict.fromkeys(name for change in chosen for name in tests_of(tree, change[0]))
    for name in wanted:
        if name not in tree.usual and (not tree.make(name) or not tree.passes(name, learn=True)):
            sys.exit(f"{name} fails without a change")
    print(f"{len(chosen)} changes, {len(wanted)} tests", flush=True)
    end, noticed, survived, skipped = time.monotonic() + 60 * opt.minutes, 0, 0, 0
    for change in chosen:
        if time.monotonic() > end:
            break
        failed = try_change(tree, change)
        noticed += bool(failed)
        skipped += failed == ""
        survived += failed is None
        what = "SURVIVED" if failed is None else failed or "does not compile"
        print(f"{what}: {describe(change)}", flush=True)
    print(f"{noticed + survived} changes: {noticed} noticed, {survived} survived; {skipped} did not compile")
    return 0


if __name__ == "__main__":
    sys.exit(main())
