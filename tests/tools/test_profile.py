#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""--profile: the format of its traces, and what each command records.

    test_profile.py TENON
"""
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor

from cli import Gguf, arguments
from serve import Server

COUNTERS = {"tokens per second", "allocated bytes", "peak of resident bytes", "cache blocks in use",
            "cache blocks free"}
CLOSE = 1e-2  # us; times are written with three digits behind the point


def nested(track):
    """Whether spans lie apart or within each other, as the importers of both programs want it."""
    ends = []
    for e in track:
        while ends and ends[-1] <= e["ts"] + CLOSE:
            ends.pop()
        if ends and e["ts"] + e["dur"] > ends[-1] + CLOSE:
            return False
        ends.append(e["ts"] + e["dur"])
    return True


def within(inner, outer, room=1.0):
    return any(o["ts"] <= inner["ts"] + room and inner["ts"] + inner["dur"] <= o["ts"] + o["dur"] + room
               for o in outer)


# What is not seen where the pool has one core.
ONE_CORE = {"work"} if len(os.sched_getaffinity(0)) == 1 else set()


class Trace:
    """A trace whose format was checked (the Trace Event Format, 2016): spans by track, counters."""

    def __init__(self, t, name, path):
        with open(path, encoding="utf-8") as f:
            events = json.load(f)["traceEvents"]
        need = {"X": {"name", "cat", "ts", "dur", "pid", "tid", "args"},
                "C": {"name", "ts", "pid", "args"}, "M": {"name", "pid", "tid", "args"}}
        t.ok(f"{name}: fields", all(need[e["ph"]] <= set(e) for e in events), "")
        t.ok(f"{name}: times", all(e["ts"] >= 0 and e.get("dur", 0) >= 0 for e in events if e["ph"] != "M"),
             "")
        named = [e for e in events if e["name"] == "thread_name"]
        tracks = {e["tid"]: e["args"]["name"] for e in named}
        t.ok(f"{name}: each track has a name of its own",
             len(tracks) == len(named) == len(set(tracks.values())), named)
        spans = [e for e in events if e["ph"] == "X"]
        t.ok(f"{name}: spans lie on tracks", all(e["tid"] in tracks for e in spans), "")
        self.tracks = {x: [] for x in tracks.values()}
        # of spans that begin together, the longest contains the others
        for e in sorted(spans, key=lambda e: (e["ts"], -e["dur"])):
            self.tracks[tracks[e["tid"]]].append(e)
        for x, track in self.tracks.items():
            t.ok(f"{name}: spans of {x} nest", nested(track), track[:3])
        for x in ("prompt", "tokens", "steps on cpu"):
            track = self.tracks.get(x, [])
            # in the arithmetic of the readers, some of which leave out spans that lie across each other
            t.ok(f"{name}: spans of {x} do not overlap", all(
                a["ts"] + a["dur"] <= b["ts"] for a, b in zip(track, track[1:])), "")
        counts = [e for e in events if e["ph"] == "C"]
        self.counters = {e["name"] for e in counts}
        t.ok(f"{name}: counters are numbers", all(
            isinstance(v, (int, float)) and v >= 0 for e in counts for v in e["args"].values()), "")
        self.check_steps(t, name)

    def on(self, track):
        return self.tracks.get(track, [])

    def names(self, track):
        return {e["name"] for e in self.on(track)}

    def check_steps(self, t, name):
        passes = self.on("prompt") + self.on("tokens")
        timed = [e for e in passes if e["args"]["timed"] == "step by step"]
        steps = self.on("steps on cpu")
        t.ok(f"{name}: some passes are timed", timed and len(timed) + sum(
            e["args"]["timed"] == "as a whole" for e in passes) == len(passes), len(timed))
        count = sum(e["args"]["steps"] for e in timed)
        t.ok(f"{name}: steps of the passes that are timed", len(steps) == count
             and min(e["args"]["steps"] for e in timed) > 8 * 9  # layers, steps of each
             and all(within(e, timed) for e in steps), len(steps))
        t.ok(f"{name}: what is known of a step", all(
            {"kernel", "operands", "timed", "bytes", "weight_bytes", "cache_bytes", "operations"} <=
            set(e["args"]) for e in steps), steps[:1])
        workers = [x for x in self.tracks if re.fullmatch(r"pool thread \d+", x)]
        work = [e for x in workers for e in self.on(x) if e["name"] == "work"]
        t.ok(f"{name}: threads of the pool work during these passes", all(within(e, timed) for e in work),
             len(work))


def check_run(t):
    path, n = t.temp("trace.json"), 24
    prompt = "One day a cat sat on a mat. " * 12
    args = ["run", t.model, "-p", prompt, "-n", n, "--temp", 0, "--ignore-eos", "-b", 32, "-t", 2]
    plain = t.run(*args)
    # Beside other programs the pool may go down to one thread for a whole run, which then has no work of it.
    for _ in range(5):
        r = t.run(*args, "--profile", path)
        t.ok("--profile changes no text", r.code == 0 and r.out == plain.out, r.err)
        trace = Trace(t, "run", path)
        if "work" in trace.names("main thread"):
            break
    t.ok("run: tracks", {"load", "main thread", "prompt", "tokens", "steps on cpu"} <= set(trace.tracks),
         sorted(trace.tracks))
    # The first token is selected from the logits of the prompt.
    tokens, pieces = trace.on("tokens"), trace.on("prompt")
    t.ok("run: a span for each token", len(tokens) == n - 1, len(tokens))
    shown = "".join(e["name"] for e in tokens)
    t.ok("run: tokens have their text", shown and shown in plain.text, shown)
    sizes = [e["args"]["tokens"] for e in pieces]
    depths = [e["args"]["tokens_before"] for e in pieces]
    t.ok("run: pieces of the prompt", len(sizes) > 2 and set(sizes[:-1]) == {32}
         and depths == [32 * i for i in range(len(sizes))], f"{sizes} {depths}")
    load = trace.on("load")
    t.ok("run: phases of loading", {"open the file", "read the configuration", "read the tokenizer",
                                    "check the graph", "load the weights", "create a session",
                                    "start and load"} <= trace.names("load"), trace.names("load"))
    whole = [e for e in load if e["name"] == "start and load"]
    t.ok("run: phases lie within loading", len(whole) == 1 and all(within(e, whole) for e in load), "")
    names = [e["name"] for e in trace.on("main thread")]
    t.ok("run: what the thread did", names.count("select a token") == n and names.count("text to tokens") == 1
         and names.count("submit a pass") == names.count("wait for a pass") == n - 1 + len(pieces)
         and {"make a plan", "prepare a plan", "work"} <= set(names) | ONE_CORE,
         {x: names.count(x) for x in names})
    t.ok("run: counters", trace.counters == COUNTERS, trace.counters)
    # after the first two, a pass is timed if the one before took at most a 64th of the time since it began
    n_timed, since = 0, 0
    for i, e in enumerate(tokens):
        timed = e["args"]["timed"] == "step by step"
        t.ok(f"run: whether pass {i} is timed", timed == (n_timed < 2 or e["ts"] >= since - CLOSE)
             or abs(e["ts"] - since) < 1, f"{timed} {n_timed} {e['ts']} {since}")
        if timed:
            n_timed, since = n_timed + 1, e["ts"] + 64 * e["dur"]


def with_head(t):
    """The bundled model with a head of two classes."""
    g = Gguf(t.model)
    arch = g.text("general.architecture")
    width = g.u32(arch + ".embedding_length")
    g.add_f32("cls.output.weight", [width, 2], [float(i == k) for k in range(2) for i in range(width)])
    g.set_u32(arch + ".pooling_type", 4)
    return g.write(t.temp("head.gguf"))


def check_commands(t):
    """How many pieces of prompts and how many single tokens they evaluate: bench warms up once."""
    path = t.temp("trace2.json")
    ids = ",".join(str(i % 100) for i in range(100))
    with open(t.temp("text"), "w", encoding="utf-8") as f:
        f.write("One day a cat sat on a mat. " * 40)
    for name, args, pieces, tokens in (
            ("bench", ["bench", t.model, "-p", 100, "-n", 20, "-r", 2, "-b", 32, "--no-peaks"], 3 * 4,
             3 * 20),
            ("logits", ["logits", t.model, "--tokens", ids, "--out", t.temp("l"), "-b", 32], 4, 0),
            ("logits --pooled", ["logits", t.model, "--tokens", ids, "--out", t.temp("l"), "--pooled", "-b",
                                 128], 1, 0),
            ("embed", ["embed", t.model, "one day", "--pooling", "mean"], 1, 0),
            ("classify", ["classify", with_head(t), "one day"], 1, 0),
            ("perplexity", ["perplexity", t.model, "-f", t.temp("text"), "-c", 64, "--chunks", 2], 2 * 2, 0)):
        r = t.run(*args, "--profile", path)
        t.ok(f"{name} --profile", r.code == 0, r.err)
        trace = Trace(t, name, path)
        found = len(trace.on("prompt")), len(trace.on("tokens"))
        t.ok(f"{name}: spans of all passes", found == (pieces, tokens) and trace.on("load"), found)
        t.ok(f"{name}: counters", trace.counters == COUNTERS, trace.counters)


def check_batch(t):
    path = t.temp("trace4.json")
    with open(t.temp("prompts"), "w", encoding="utf-8") as f:
        f.write("One day\nA cat\nThe sun\n")
    r = t.run("batch", t.model, "-f", t.temp("prompts"), "-n", 8, "-np", 2, "--temp", 0, "--profile", path)
    t.ok("batch --profile", r.code == 0, r.err)
    trace = Trace(t, "batch", path)
    t.ok("batch: passes of the engine", trace.on("prompt") and any(
        e["args"]["texts"] == 2 for e in trace.on("tokens")), trace.names("tokens"))
    t.ok("batch: steps of the engine", {"step of an engine", "compose a pass", "select tokens"} <=
         trace.names("main thread"), trace.names("main thread"))
    t.ok("batch: counters", trace.counters == COUNTERS, trace.counters)


def check_serve(t):
    path = t.temp("trace5.json")
    s = Server(t, "--profile", path)
    status, _, _ = s.chat(max_tokens=8, ignore_eos=True)
    code = s.end()
    t.ok("serve --profile", status == 200 and os.path.exists(path), (status, code, s.err))
    trace = Trace(t, "serve", path)
    t.ok("serve: passes", trace.on("prompt") and len(trace.on("tokens")) == 7, trace.names("tokens"))
    threads = {x: trace.names(x) for x in trace.tracks if x.startswith(("thread", "main thread"))}
    t.ok("serve: the thread of the engine", any("step of an engine" in x for x in threads.values()), threads)
    t.ok("serve: a thread loads", any("load the weights" in trace.names(x) for x in trace.tracks
                                      if x.startswith("load")), sorted(trace.tracks))


def check_serve_together(t):
    """Requests of 8 threads at once, and an end by a signal while nothing is asked."""
    path, n, each = t.temp("trace6.json"), 8, 12
    s = Server(t, "-np", str(n), "--profile", path)
    with ThreadPoolExecutor(n) as pool:
        answers = list(pool.map(lambda i: s.chat(max_tokens=each, ignore_eos=True, messages=[
            {"role": "user", "content": f"Count to {i}."}]), range(n)))
    code = s.end()
    t.ok("serve together: all are answered", [a[0] for a in answers] == [200] * n and code == 0,
         (code, s.err))
    trace = Trace(t, "serve together", path)
    # The first token of each comes from the logits of its prompt; a pass may have both.
    texts = sum(e["args"]["texts"] for e in trace.on("tokens") + trace.on("prompt"))
    t.ok("serve together: passes of all texts", texts >= n * each, texts)
    t.ok("serve together: passes of several texts", any(e["args"]["texts"] > 1 for e in trace.on("tokens")),
         trace.names("tokens"))
    t.ok("serve together: counters", trace.counters == COUNTERS, trace.counters)


def main():
    t, _, _ = arguments()
    check_run(t)
    check_commands(t)
    check_batch(t)
    check_serve(t)
    check_serve_together(t)
    return t.done()


sys.exit(main())
