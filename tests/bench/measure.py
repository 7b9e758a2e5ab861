# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the tables of tables.py and writes them as CSV and Markdown. Called by h200.sh, which see.

Standard library only. Exit status: 0 all goals are met, 1 some are not, 2 something could not be measured.
"""
import argparse
import csv
import datetime
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

import curve
import read_rate
import tables

COLUMNS = ("table", "case", "unit", "value", "spread", "must", "aim", "peer", "floor", "share", "mhz", "watt",
           "celsius", "met")
HEADS = ("case", "measured", "±", "must", "aim", "peer", "floor", "share of floor", "MHz, W, °C", "met")


class Clocks:
    """Clock of the multiprocessors, power and temperature, some ten times a second. Only reads."""

    QUERY = "clocks.sm,power.draw,temperature.gpu"

    def __init__(self, path):
        self.samples, self.process = [], None
        command = ["nvidia-smi", f"--query-gpu={self.QUERY}", "--format=csv,noheader,nounits", "-lms", "100"]
        try:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                            text=True)
        except OSError:
            return
        self.log = open(path, "w", encoding="utf-8")
        self.log.write(f"seconds,{self.QUERY}\n")
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            try:
                sample = (time.monotonic(), *map(float, line.split(",")))
            except ValueError:
                continue
            self.samples.append(sample)
            self.log.write(",".join(f"{x:g}" if i else f"{x:.3f}" for i, x in enumerate(sample)) + "\n")

    def between(self, begin, end):
        """Medians of what was logged then, or of the sample that was next."""
        inside = [s for s in self.samples if begin <= s[0] <= end]
        if not inside and self.samples:
            inside = [min(self.samples, key=lambda s: abs(s[0] - (begin + end) / 2))]
        return [statistics.median(s[i] for s in inside) for i in (1, 2, 3)] if inside else [None] * 3

    def close(self):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.thread.join()
            self.log.close()


class Options:
    """What the tables ask for: how often and how long, and in which order."""

    def __init__(self, quick, seed):
        self.quick, self.random = quick, random.Random(seed)
        self.n, self.reps, self.prefill_reps = (16, 3, 5) if quick else (64, 7, 21)

    def shuffled(self, numbers):
        """Another order than by size, so that the heat of the card does not follow the size."""
        return self.random.sample(numbers, len(numbers))


def run(folder, program, args, log):
    """Standard output of a program; None after a message if it fails."""
    start = time.monotonic()
    p = subprocess.run([os.path.join(folder, program), *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    log.write(f"$ {program} {' '.join(args)}\n{p.stdout}{p.stderr}# {time.monotonic() - start:.1f} s\n")
    log.flush()
    if p.returncode == 0:
        return p.stdout
    print(f"h200.sh: {program} {' '.join(args)}: {p.stderr.strip() or p.returncode}", file=sys.stderr)
    return None


def bench_result(r):
    """Kind of test, sizes and times of a result of `tenon bench --json`."""
    kind = re.match(r"[a-z]+", r["test"]).group()
    return {"kind": kind, "n": r["n"], "depth": r["depth"], "count": r.get("texts", r.get("sequences", 1)),
            "begin": r["begin_ns"] * 1e-9, "end": r["end_ns"] * 1e-9}


def key_of_bench(r):
    """("tg", depth, sequences), ("pp", depth, tokens) or ("cls", tokens, texts)."""
    if r["kind"] == "tg":
        return "tg", r["depth"], r["count"]
    return ("pp", r["depth"], r["n"]) if r["kind"] == "pp" else (r["kind"], r["n"], r["count"])


def case_of(label, precision, r):
    text = {"tg": f"{r['count']} sequence{'s' if r['count'] > 1 else ''}", "pp": f"{r['n']} tokens",
            "cls": f"{r['count']} x {r['n']} tokens"}[r["kind"]]
    at = f", {r['depth']} in the cache" if r["depth"] else ""
    return f"{label}{'' if precision == 'auto' else ' --precision ' + precision}: {text}{at}"


def row(case, unit, value, spread, goal, floor, clocks):
    goal = goal or tables.Goal()
    less = unit == "us"
    met = "" if goal.must is None else "yes" if (value <= goal.must if less else value >= goal.must) else "no"
    share = None if not floor else floor / value if less else value / floor
    peer = None if goal.peer is None else f"{shown(goal.peer)} {goal.text}"
    return dict(zip(COLUMNS[1:], (case, unit, value, spread, goal.must, goal.aim, peer, floor, share, *clocks,
                                  met)))


def rows_of_bench(item, text, clocks):
    head, rows = json.loads(text), []
    for r in sorted(head["results"], key=lambda r: key_of_bench(bench_result(r))):
        found = bench_result(r)
        scale = 1 / found["n"] if item.unit == "texts/s" else 1
        rows.append(row(case_of(item.label, item.precision, found), item.unit, r["tokens_per_second"] * scale,
                        r["spread"] * scale, item.goals.get(key_of_bench(found)),
                        tables.floor(item, head, found), clocks.between(found["begin"], found["end"])))
    return rows


def rows_of_check(item, text, clocks, begin):
    """Of tenon-check: prompts in TFLOP/s, tokens in microseconds. Its spread is a share of the time."""
    rows, found = [], clocks.between(begin, time.monotonic())
    for line in text.splitlines():
        r = json.loads(line)
        if "us" not in r:
            continue
        bound = max(r["gb_s"] * 1e9 / tables.READ, r["gflop_s"] * 1e9 / tables.PEAKS["16 bit"])
        unit = "us" if " x 1 queries" in r["shape"] else "TFLOP/s"
        value = r["us"] if unit == "us" else r["gflop_s"] / 1000
        floor = value * bound if unit == "us" else value / bound
        rows.append(row(f"{item.label} {r['shape']}", unit, value, r["spread"] * value / 2,
                        item.goals.get((r["type"], r["shape"])), floor, found))
    return rows


def measure(item, folder, clocks, log):
    """Rows of a run, and whether they are all that it should give."""
    begin = time.monotonic()
    text = run(folder, item.program, item.args, log)
    if text is None:
        return [], False
    try:
        if item.program == "tenon":
            return rows_of_bench(item, text, clocks), True
        rows = rows_of_check(item, text, clocks, begin)
    except (ValueError, KeyError) as e:
        print(f"h200.sh: {item.label}: unreadable result: {e!r}", file=sys.stderr)
        return [], False
    whole = sum(r["must"] is not None for r in rows) == len(item.goals)
    if not whole:
        print(f"h200.sh: {item.label}: tenon-check lacks a shape with a goal, or a kernel for it",
              file=sys.stderr)
    return rows, whole


# --- writing ---------------------------------------------------------------------------------------------

def shown(x):
    """A number with as many digits as mean something here."""
    if x is None or x == "":
        return ""
    if isinstance(x, str):
        return x
    return f"{x:.0f}" if abs(x) >= 1000 or x == int(x) else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def read_before(path):
    """case -> value of the tables.csv of an earlier run."""
    if not path:
        return {}
    with open(path, encoding="utf-8", newline="") as f:
        return {r["case"]: float(r["value"]) for r in csv.DictReader(f)}


def change(r, before):
    """The value before, and how much faster it is now."""
    old = before.get(r["case"])
    if not old:
        return ""
    times = old / r["value"] if r["unit"] == "us" else r["value"] / old
    return f"{shown(old)} ({100 * (times - 1):+.1f} %)"


def markdown(name, rows, before):
    heads = [*HEADS, "before"] if before else HEADS
    out = [f"### {name}", "", "| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for r in rows:
        state = "" if r["mhz"] is None else f"{r['mhz']:.0f}, {r['watt']:.0f}, {r['celsius']:.0f}"
        share = "" if r["share"] is None else f"{100 * r['share']:.0f} %"
        cells = [r["case"], f"{shown(r['value'])} {r['unit']}", shown(r["spread"]), shown(r["must"]),
                 shown(r["aim"]), shown(r["peer"]), shown(r["floor"]), share, state, r["met"]]
        cells += [change(r, before)] if before else []
        out.append("| " + " | ".join(cells) + " |")
    return "\n".join(out) + "\n"


def device():
    try:
        query = ["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv,noheader"]
        p = subprocess.run(query, stdout=subprocess.PIPE, text=True)
        return p.stdout.splitlines()[0].strip() if p.stdout else "no device"
    except OSError:
        return "no nvidia-smi"


def write(path, rows_of, before):
    with open(os.path.join(path, "tables.csv"), "w", encoding="utf-8", newline="") as f:
        out = csv.DictWriter(f, COLUMNS)
        out.writeheader()
        for name, rows in rows_of.items():
            for r in rows:
                out.writerow({"table": name, **r})
    text = (f"Device: {device()}. {datetime.date.today()}. Median and half of the range of the repetitions. "
            f"Floor: bytes at {tables.READ / 1e12:g} TB/s or operations at the peak, the larger.\n\n")
    text += "\n".join(markdown(name, rows, before) for name, rows in rows_of.items())
    with open(os.path.join(path, "tables.md"), "w", encoding="utf-8") as f:
        f.write(text)
    return text


# --- the curve -------------------------------------------------------------------------------------------

def sweep_counts(quick):
    """All from 1 to 256, or those where kernels change and some between."""
    if not quick:
        return list(range(1, 257))
    return [*range(1, 18), *range(18, 33, 2), 33, *range(36, 65, 4), 65, *range(72, 129, 8), 129,
            *range(144, 257, 16)]


def sweep(o, args, log):
    """Time per step over the number of sequences, for each type; False if a type could not be measured."""
    counts, lines, good = o.shuffled(sweep_counts(args.quick)), {}, True
    for kind in args.types or tables.SWEEP_TYPES:
        item = tables.bench(args.sweep_shape, kind, kind, "-p", 0, "-n", 8, "-r", 3 if args.quick else 5,
                            "--sequences", tables.listed(counts), *args.sweep_args.split())
        text = run(args.folder, item.program, item.args, log)
        good = good and text is not None
        if text is None:
            continue
        results = json.loads(text)["results"]
        lines[kind] = sorted((r["sequences"], r["tokens_per_second"], r["spread"]) for r in results)
        curve.write_csv(os.path.join(args.out, "curve.csv"), lines)
    if not lines:
        return False
    caption = f"{args.sweep_shape}, random weights, {device()}, {datetime.date.today()}"
    with open(os.path.join(args.out, "curve.svg"), "w", encoding="utf-8") as f:
        f.write(curve.draw(lines, caption))
    found = curve.faults(lines)
    print("\n".join(found) if found else "curve: no step down, no step above 1.3 times its neighbour")
    return good and not found


# --- all -------------------------------------------------------------------------------------------------

def arguments():
    names = [*tables.TABLES, "sweep"]
    p = argparse.ArgumentParser(prog="h200.sh", description=__doc__.split("\n")[0])
    p.add_argument("folder", help="where tenon and tenon-check are")
    p.add_argument("tables", nargs="*", metavar="TABLE",
                   help=", ".join(names) + "; all but sweep if none is named")
    p.add_argument("--quick", action="store_true", help="fewer repetitions")
    p.add_argument("--out", default="bench-h200", help="folder for the results")
    p.add_argument("--before", metavar="FILE", help="tables.csv of an earlier run, to compare with")
    p.add_argument("--seed", type=int, default=1, help="of the order of the sizes")
    p.add_argument("--types", type=lambda s: s.split(","), help="weight types of the sweep, by commas")
    p.add_argument("--sweep-shape", default="llama-8b", help="shape of the sweep")
    p.add_argument("--sweep-args", default="", help="further flags of tenon bench for the sweep: --layers 4")
    a = p.parse_intermixed_args()  # flags may stand between tables
    for name in a.tables:
        if name not in names:
            p.error(f"no table {name}; there are: {', '.join(names)}")
    return a


def main():
    args = arguments()
    before = read_before(args.before)  # now: it may be the file that this run overwrites
    os.makedirs(args.out, exist_ok=True)
    o, rows_of, broken, smooth = Options(args.quick, args.seed), {}, 0, True
    try:
        tables.READ, how = read_rate.read_rate(), "measured"
    except OSError as e:
        how = f"given, {e}"
    clocks = Clocks(os.path.join(args.out, "clocks.csv"))
    with open(os.path.join(args.out, "log.txt"), "w", encoding="utf-8") as log:
        log.write(f"read rate: {tables.READ / 1e12:.3f} TB/s, {how}\n")
        for name in args.tables or tables.TABLES:
            if name == "sweep":
                smooth = sweep(o, args, log)
                continue
            rows_of[name] = []
            for item in tables.TABLES[name](o):
                rows, whole = measure(item, args.folder, clocks, log)
                broken += not whole
                rows_of[name] += rows
            write(args.out, rows_of, before)
    clocks.close()
    if rows_of:
        print(write(args.out, rows_of, before))
    missed = [r["case"] for rows in rows_of.values() for r in rows if r["met"] == "no"]
    n_goals = sum(r["met"] != "" for rows in rows_of.values() for r in rows)
    failed = f", {broken} runs failed" if broken else ""
    print(f"{n_goals - len(missed)} of {n_goals} goals are met{failed}")
    return 2 if broken else 1 if missed or not smooth else 0


if __name__ == "__main__":
    sys.exit(main())
