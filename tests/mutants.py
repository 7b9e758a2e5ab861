#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the tests notice small mistakes in graph/ and models/: one operator or one constant is changed, the
tests that use the file run, and changes that all of them accept are printed, with a table of the counts.

    mutants.py FOLDER [--commit C] [--count 300] [--seed 1] [--skip 0] [--run N] [--only PATH]
               [--again noticed|survived] [--sanitize] [--minutes M] [--jobs 2]

FOLDER gets a build of the checkout that this script lies in, and results.json with what became of each
change, which --again reads. The sample of --count changes depends on the seed and the source of the commit
alone (without --commit, that of today); a change of a line that is no longer there is counted as gone. A
change that gives the same machine code as the source is none: it is counted as the same. A test that takes
five times as much time of the processor as usual, and 20 s more, counts as one that failed. --sanitize
compiles the changed file with the sanitizers for addresses and undefined behaviour, which CI's tests have
too: for those that survived without.

A change costs one compilation of its file and a link for each test that runs: the changed object comes before
the library, whose own member of that name is then not taken.
"""
import argparse
import concurrent.futures
import difflib
import filecmp
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What runs for a file: the tests of the first line whose path fits, the quickest first, then those of ALL.
TESTS = [
    ("graph/dump", "dump record passes cost plan_cost number null cli-contract"),
    ("graph/plan_cost", "plan_cost cost dump null"),
    ("graph/",
     "record fuse join passes plan_cost dump precision cost null memory-bundled example random_graphs"),
    ("models/gguf/", "gguf gguf_files loading file"),
    ("models/keys/", "archs gguf bad_models"),
    ("models/adapter/", "adapter"),
    ("models/quantize/", "imatrix quantize"),
    ("models/weights/", "loading packing archs mixers split"),
    ("models/engine/",
     "pass_costs reuse prefix engine_thread schedule engine_device engine engine_load"),
    ("models/text/jinja/", "template"),
    ("models/text/grammar/", "grammar schema pattern json_read limits"),
    ("models/text/tools/", "tools pieces"),
    ("models/text/chat", "template tools generation"),
    ("models/text/", "merge tokenizer vocab pieces number limits"),
    ("models/run/state", "state adapter session"),
    ("models/run/session", "reuse state mixers window session_memory session"),
    ("models/run/sampling/constraint", "generation grammar schema sampler"),
    ("models/run/sampling/", "sampler sampler_device generation stages"),
    ("models/run/generation", "generation limits long speculate engine_device"),
    ("models/run/speculate", "speculate"),
    ("models/run/predict", "speculate session_memory session adapter split"),
    ("models/run/sample", "engine_device sampler_device split reuse session_memory"),
    ("models/run/fit", "offload session_memory"),
    ("models/run/embed", "embed"),
    ("models/run/packing", "packing"),
    ("models/run/shift", "long"),
    ("models/run/cache/", "cache reuse prefix window state mixers host-cache"),
    ("models/run/", "reuse state mixers window session_memory"),
    ("models/file", "file"),
    ("models/text_api", "generation limits cli-serve-tools"),
    ("models/random", "random archs"),
    ("models/model", "random archs embed"),
    ("models/mixer", "archs mixers session bad_models"),
    ("models/", "archs mixers embed random loading bad_models"),
]
ALL = "golden-avx2 embed messages structs nulls alloc"
SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
         "+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "++": "--", "--": "++"}
OPERATOR = re.compile(r"(?<= )(<=|>=|==|!=|&&|\|\||\+=|-=|<|>|\+|-|\*|/|%)(?= )|(?<=\w)(\+\+|--)")
NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
# Text that is no code, of the same length.
HIDDEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/|^\s*#[^\n]*', re.S | re.M)


def changes_of(text):
    """Offset, old and new text of each change that is possible in the text of a file."""
    code = HIDDEN.sub(lambda m: re.sub(r"[^\n]", "~", m.group()), text)
    for m in OPERATOR.finditer(code):
        old = m.group()
        line = code[code.rfind("\n", 0, m.start()) + 1:m.start()]
        declares = old == "*" and re.match(r"\s*(static |const )*\w+( const)?\s*$", line)
        if not declares:
            yield m.start(), old, SWAPS[old]
    for m in NUMBER.finditer(code):
        yield m.start(), m.group(), str(int(m.group()) + 1)


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()


def source_of(commit):
    """Path and text of each file of graph and models, in a commit or as it is."""
    if commit:
        names = git("ls-tree", "-r", "--name-only", commit, "graph", "models").split()
    else:
        names = [str(p.relative_to(ROOT)) for f in ("graph", "models") for p in (ROOT / f).rglob("*.c")]
    # In the order of paths, not of their text: a folder comes before a file whose name goes on from it.
    for name in sorted((n for n in names if n.endswith(".c")), key=pathlib.PurePath):
        yield name, git("show", f"{commit}:{name}") if commit else (ROOT / name).read_text()


def line_of(text, at):
    start = text.rfind("\n", 0, at) + 1
    return text.count("\n", 0, at), at - start


class Change:
    def __init__(self, path, text, at, old, new):
        self.path, self.old, self.new = path, old, new
        line, column = line_of(text, at)
        # Where the change is in the source of today: None if its line is not there.
        self.at = at if (ROOT / path).exists() else None
        today = (ROOT / path).read_text() if self.at is not None else ""
        if self.at is not None and today != text:
            lines, now = text.splitlines(True), today.splitlines(True)
            blocks = difflib.SequenceMatcher(None, lines, now, autojunk=False).get_matching_blocks()
            there = [b.b + line - b.a for b in blocks if b.a <= line < b.a + b.size]
            self.at = sum(map(len, now[:there[0]])) + column if there else None
        self.name = f"{path}:{line + 1}:{column + 1} {old} -> {new}"
        self.what = text.splitlines()[line].strip()

    def apply(self):
        text = (ROOT / self.path).read_text()
        return text[:self.at] + self.new + text[self.at + len(self.old):]

    def __str__(self):
        if self.at is None:
            return f"{self.name}: {self.what}"
        line, column = line_of((ROOT / self.path).read_text(), self.at)
        return f"{self.path}:{line + 1}:{column + 1}: {self.old} -> {self.new}: {self.what}"


def sample(commit, count, seed):
    found = []
    for name, text in source_of(commit):
        if "win32" not in name:
            found += [(name, text, *change) for change in changes_of(text)]
    random.Random(seed).shuffle(found)
    return [Change(*change) for change in found[:count]]


def run(command, seconds=900, folder=None, env=None):
    try:
        done = subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=seconds)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return 124, ""


SANITIZE = ["-fsanitize=address,undefined"]


class Build:
    """A build of the source, and programs with one object replaced."""

    def __init__(self, folder, sanitize):
        self.folder, self.build, self.sanitize = folder, (folder / "build").resolve(), sanitize
        if not (self.build / "build.ninja").exists():
            folder.mkdir(parents=True, exist_ok=True)
            code, said = run(["meson", "setup", self.build, ROOT, "-Ddevice_archs=none", "-Dvulkan=disabled",
                              "-Dpage=disabled", "-Dexamples=disabled"])
            if code:
                sys.exit(said)
        self.tests = {}
        listed, _ = subprocess.Popen(["meson", "introspect", self.build, "--tests"],
                                     stdout=subprocess.PIPE).communicate()
        # Two tests have the name of a script too: the program counts.
        for test in sorted(json.loads(listed), key=lambda t: str(self.build) in t["cmd"][0]):
            self.tests[test["name"]] = test
        compiled = json.loads((self.build / "compile_commands.json").read_text())
        self.compiled = {(self.build / c["file"]).resolve(): c["command"] for c in compiled
                         if re.search(r"libtn_(graph|models)\.a\.p", c["output"])}
        self.links = {}
        # Seconds that each test takes, kept for the next run.
        self.times = folder / f"times{'-sanitized' * sanitize}.json"
        self.usual = json.loads(self.times.read_text()) if self.times.exists() else {}
        self.lock = threading.Lock()

    def programs(self, name):
        """Arguments of a test's command that are programs of the build, and their targets."""
        found = {}
        for argument in self.tests[name]["cmd"]:
            path = self.build / argument
            if re.fullmatch(r"test_\w+|tenon|tenon-\w+", path.name) and path.is_relative_to(self.build):
                found[argument] = str(path.relative_to(self.build))
        return found

    def make(self, names):
        targets = sorted({t for name in names for t in self.programs(name).values()})
        code, said = run(["ninja", "-C", self.build, *targets], 7200)
        if code:
            sys.exit(said[-3000:])
        for target in targets:
            _, said = run(["ninja", "-C", self.build, "-t", "commands", target])
            self.links[target] = shlex.split(said.strip().splitlines()[-1])

    def compile(self, source, original, out):
        """The object of a source in place of the original."""
        command = shlex.split(self.compiled[original])
        command = [a for a in command if a not in ("ccache", "-MD", "-Werror")]
        for option in ("-o", "-MF", "-MQ", "-c"):
            at = command.index(option)
            del command[at:at + 2]
        if self.sanitize:
            command += [*SANITIZE, "-fno-sanitize-recover=undefined", "-O1", "-g1"]
        command += ["-iquote", str(original.parent), "-o", str(out), "-c", str(source)]
        return run(command, folder=self.build)[0] == 0

    def link(self, target, changed, folder):
        out = folder / pathlib.Path(target).name
        command = list(self.links[target])
        command[command.index("-o") + 1] = str(out)
        at = command.index("-o")
        command[at:at] = [str(changed), *(SANITIZE if self.sanitize else [])]
        code, said = run(command, folder=self.build)
        if code:
            sys.exit(f"{target} cannot be linked: {said[-2000:]}")
        return str(out)

    def passes(self, name, folder, programs):
        """programs: paths in place of those of the build."""
        test = self.tests[name]
        command = [programs.get(a, a) for a in test["cmd"]]
        env = dict(os.environ, TMPDIR=str(folder), ASAN_OPTIONS="detect_leaks=1:allocator_may_return_null=1",
                   VK_ICD_FILENAMES="/none", VK_DRIVER_FILES="/none", CUDA_VISIBLE_DEVICES="", **test["env"])
        seconds = 5 * self.usual[name] + 20 if name in self.usual else 900
        # Seconds of the processor, so that other work beside this does not matter; others only against
        # threads that wait for ever.
        memory = "" if self.sanitize else "ulimit -v 16000000;" # a loop without an end may take all there is
        limited = ["sh", "-c", f'ulimit -t {int(seconds)}; {memory} exec "$@"', "sh", *command]
        with open(folder / "last.txt", "w") as log:
            child = subprocess.Popen(limited, cwd=folder, env=env, stdout=log, stderr=log)
        end = threading.Timer(10 * seconds + 300, child.kill)
        end.start()
        _, status, used = os.wait4(child.pid, 0)
        end.cancel()
        code = os.waitstatus_to_exitcode(status)
        if name not in self.usual and code in (0, 77):
            with self.lock:
                self.usual[name] = used.ru_utime + used.ru_stime
                self.times.write_text(json.dumps(self.usual, indent=1))
        return code in (0, 77)

    def works(self, name, folder, change):
        """Whether a test passes without the change: tried when it has never passed before."""
        if name in self.usual:
            return True
        original, same = (ROOT / change.path).resolve(), folder / "unchanged.o"
        self.compile(original, original, same)
        linked = {a: self.link(target, same, folder) for a, target in self.programs(name).items()}
        if not self.passes(name, folder, linked):
            print(f"{name} fails without a change and is left out", flush=True)
            self.tests.pop(name, None)
        return name in self.tests

    def try_change(self, change, folder):
        """What became of it: "same", "does not compile", "survived", or the test that noticed it."""
        original = (ROOT / change.path).resolve()
        source = folder / original.name
        before, changed = folder / f"before-{change.path.replace('/', '-')}.o", folder / "changed.o"
        if not self.sanitize and not before.exists():
            source.write_text(original.read_text())
            self.compile(source, original, before)
        source.write_text(change.apply())
        if not self.compile(source, original, changed):
            return "does not compile"
        if not self.sanitize and filecmp.cmp(before, changed, shallow=False):
            return "same"
        linked = {}
        for name in tests_of(self, change.path):
            for argument, target in self.programs(name).items():
                if argument not in linked:
                    linked[argument] = self.link(target, changed, folder)
            if not self.passes(name, folder, linked) and self.works(name, folder, change):
                return name
        return "survived"


def tests_of(build, path):
    """The tests of a file, then those of all, each the quickest first."""
    own = next(names for prefix, names in TESTS if path.startswith(prefix)).split()
    every = [n for n in ALL.split() if n not in own]
    listed = [n for n in own if n in build.tests], [n for n in every if n in build.tests]
    return [n for part in listed for n in sorted(dict.fromkeys(part), key=lambda n: build.usual.get(n, 60))]


def table(results):
    kinds = list(results.values())
    same, gone = kinds.count("same"), kinds.count("gone")
    broken, survived = kinds.count("does not compile"), kinds.count("survived")
    noticed = len(kinds) - same - gone - broken - survived
    counted = max(noticed + survived, 1)
    print(f"\n| Changes | |\n|---|---|\n| in the sample | {len(kinds)} |\n| whose line is gone | {gone} |\n"
          f"| that do not compile | {broken} |\n| with the same machine code | {same} |\n"
          f"| noticed | {noticed}: {100 * noticed / counted:.1f} % of {counted} |\n"
          f"| not noticed | {survived} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--commit", default="")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--run", type=int, default=10**9)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--again", default="", choices=["", "noticed", "survived"])
    opt = parser.parse_args()
    build = Build(opt.folder.resolve(), opt.sanitize)
    kept = opt.folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else {}
    whole = sample(opt.commit, opt.count, opt.seed)
    for change in whole:
        if change.at is None:
            results[change.name] = "gone"
    before = {c.name: results.get(c.name, "") for c in whole}
    settled = {"gone", "same", "does not compile"}
    chosen = [c for c in whole[opt.skip:opt.skip + opt.run] if (opt.only in c.path if opt.only else True)]
    if opt.again:
        chosen = [c for c in chosen if before[c.name] not in settled | {""} and
                  (before[c.name] == "survived") == (opt.again == "survived")]
    else:
        chosen = [c for c in chosen if not before[c.name]]
    wanted = list(dict.fromkeys(name for c in chosen for name in tests_of(build, c.path)))
    build.make(wanted)
    folders = [build.folder / f"worker-{i}" for i in range(opt.jobs)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    print(f"{len(chosen)} changes, {len(wanted)} tests", flush=True)
    end = time.monotonic() + 60 * opt.minutes

    def one(change):
        if time.monotonic() > end:
            return
        with build.lock:
            folder = folders.pop()
        start = time.monotonic()
        became = build.try_change(change, folder)
        with build.lock:
            folders.append(folder)
            results[change.name] = became
            kept.write_text(json.dumps(results, indent=1))
            print(f"{became} ({time.monotonic() - start:.0f} s): {change}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(opt.jobs) as pool:
        list(pool.map(one, chosen))
    table({c.name: results[c.name] for c in whole if c.name in results})
    return 0


if __name__ == "__main__":
    sys.exit(main())
