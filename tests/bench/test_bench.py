# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""h200.sh with programs that print made-up results: tables, exit codes, the curve and its cliffs."""
import csv
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import curve
import random_model
import tables

HERE = os.path.dirname(os.path.abspath(__file__))

# Speeds as a perfect device would have them, times SPEED; from CLIFF sequences on half of that.
TENON = '''#!/usr/bin/env python3
import json, os, sys, time
def numbers(name, default):
    return [int(x) for x in (sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default).split(",")]
speed, cliff, now, results = float(os.environ["SPEED"]), int(os.environ["CLIFF"]), time.monotonic_ns(), []
def add(test, n, depth, rate, **counts):
    rate *= speed
    results.append({"test": test, "n": n, "depth": depth, "tokens_per_second": rate, "spread": rate / 100,
                    "begin_ns": now, "end_ns": now + 1, **counts})
for n in numbers("-p", "512"):
    for count in numbers("--texts", "0"):
        if count:
            add("cls%d x %d" % (n, count), n, 0, 60000, texts=count)
        elif n:
            add("pp%d" % n, n, 0, 100000, sequences=1)
for n in numbers("-n", "128") if "--texts" not in sys.argv else []:
    for depth in numbers("-d", "0"):
        for count in numbers("--sequences", "1"):
            if n:
                add("tg%d" % n, n, depth, count * 1e3 / (1 + count / 64) / (2 if count >= cliff else 1),
                    sequences=count)
if os.environ.get("BROKEN"):
    sys.exit("no device")
print(json.dumps({"active_parameters": 7505e6, "active_weight_bytes": 4.6e9, "weight_bytes": 5e9,
                  "cache_bytes_per_token": 131072, "results": results}))
'''
CHECK = '''#!/usr/bin/env python3
import json, os, sys
speed = float(os.environ["SPEED"])
print(json.dumps({"level": "cuda", "threads": 1}))
for shape in os.environ["SHAPES"].split(";"):
    print(json.dumps({"type": sys.argv[sys.argv.index("--type") + 1], "shape": shape, "us": 25 / speed,
                      "spread": 0.02, "gb_s": 3000 * speed, "gflop_s": 650e3 * speed}))
'''


class Tests:
    def __init__(self, folder):
        self.folder, self.passed, self.failed = folder, 0, 0
        os.mkdir(os.path.join(folder, "bin"))
        for name, text in (("tenon", TENON), ("tenon-check", CHECK)):
            path = os.path.join(folder, "bin", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(path, 0o755)

    def ok(self, name, condition, detail=""):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAIL {name}: {str(detail)[:600]}")

    def run(self, *args, speed=1, cliff=1000, **env):
        words = ["sh", os.path.join(HERE, "h200.sh"), "--build", os.path.join(self.folder, "bin"), "--out",
                 os.path.join(self.folder, "out"), *args]
        shapes = ";".join(shape for _, shape in tables.attention(None)[0].goals)
        env = {**os.environ, "SPEED": str(speed), "CLIFF": str(cliff), "SHAPES": shapes, **env}
        return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def path(self, name):
        return os.path.join(self.folder, "out", name)


def check_tables(t):
    good = t.run("--quick", speed=10)
    t.ok("all goals are met", good.returncode == 0, f"{good.returncode} {good.stdout[-300:]} {good.stderr}")
    with open(t.path("tables.csv"), encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    t.ok("every table", {r["table"] for r in rows} ==
         {"decode", "prefill", "experts", "attention", "depth", "classify"}, len(rows))
    t.ok("each has a floor", all(float(r["floor"]) > 0 and float(r["value"]) > 0 for r in rows))
    one = next(r for r in rows if r["case"] == "8B Q4_K_M: 1 sequence")
    # 4.6 GB and the cache of 8.5 tokens at 4.42 TB/s.
    t.ok("floor of one sequence", abs(float(one["floor"]) - 4.42e12 / (4.6e9 + 8.5 * 131072)) < 0.01, one)
    text = next(r for r in rows if r["case"] == "7B BF16: 32 x 512 tokens")
    t.ok("texts per second", text["unit"] == "texts/s" and
         abs(float(text["value"]) - 600000 / 512) < 0.01, text)
    slow = t.run("decode", "--before", t.path("tables.csv"), speed=5)
    t.ok("compared with the run before", "(-50.0 %)" in slow.stdout, slow.stdout[:600])
    slow = t.run("decode", speed=0.5)
    t.ok("goals are missed", slow.returncode == 1 and "| no |" in slow.stdout, slow.returncode)
    broken = t.run("--quick", "decode", BROKEN="1")
    t.ok("a program fails", broken.returncode == 2 and "no device" in broken.stderr, broken.stderr)
    lacks = t.run("--quick", "attention", SHAPES="1 x 1 queries, 32768 keys, 32/8 heads of 128")
    t.ok("shapes are missing", lacks.returncode == 2 and "lacks a shape" in lacks.stderr, lacks.stderr)
    t.ok("unknown table", t.run("decades").returncode == 2)
    t.ok("no programs", subprocess.run(["sh", os.path.join(HERE, "h200.sh"), "--build", t.folder, "decode"],
                                       stderr=subprocess.PIPE).returncode == 2)


def check_curve(t):
    smooth = t.run("sweep", "--types", "Q4_K_M,BF16")
    t.ok("no cliffs", smooth.returncode == 0, smooth.stdout + smooth.stderr)
    with open(t.path("curve.csv"), encoding="utf-8") as f:
        t.ok("256 numbers of sequences for each type", len(f.readlines()) == 1 + 2 * 256)
    rough = t.run("sweep", "--types", "Q4_K_M,BF16", "--quick", cliff=65)
    t.ok("a cliff", rough.returncode == 1 and rough.stdout.count("65 sequences give") == 2, rough.stdout)
    picture = xml.etree.ElementTree.parse(t.path("curve.svg")).getroot()
    text = "".join(picture.itertext())
    t.ok("the picture names the types", "Q4_K_M" in text and "BF16" in text and "2 cliffs" in text,
         text[-200:])
    t.ok("as curve.py reads it", len(curve.faults(curve.read_csv(t.path("curve.csv")))) == 2)
    for name, times, want in (("flat", (1, 1, 1), 0), ("up", (1, 1.4, 1.4), 1), ("down", (1, 2.1, 2.2), 1)):
        points = [(n, n / times[n - 1], 0) for n in (1, 2, 3)]
        t.ok(name, len(curve.cliffs(points)) == want, curve.cliffs(points))
    t.ok("noise", not curve.cliffs([(100, 1000.0, 0), (101, 990.0, 0)]))
    t.ok("a gap may take longer", not curve.cliffs([(1, 1.0, 0), (4, 2.0, 0)]))


def check_random_models(t, tenon):
    for kind in random_model.FILES:
        path = os.path.join(t.folder, kind + ".gguf")
        random_model.main(["llama-1b", kind, path, "--layers", "1", "--vocab", "2100"])
        got = subprocess.run([tenon, "run", path, "--ignore-eos", "-n", "4", "-c", "64", "-p", "a river",
                              "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        t.ok(f"a model of random {kind}", got.returncode == 0 and got.stdout, got.stderr)
        # Random weights know nothing: the perplexity is near the number of tokens, and finite.
        got = subprocess.run([tenon, "perplexity", path, "-c", "64", "-f", "-"], input="river stone " * 90,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        value = float(got.stdout.split("=")[1].split()[0]) if "=" in got.stdout else 0
        t.ok(f"its perplexity, {kind}", 700 < value < 20000, got.stdout + got.stderr)
        os.remove(path)


def main():
    with tempfile.TemporaryDirectory(prefix="tenon-bench-") as folder:
        t = Tests(folder)
        check_tables(t)
        check_curve(t)
        check_random_models(t, sys.argv[1])
    print(f"{t.passed} passed, {t.failed} failed")
    return 1 if t.failed or not t.passed else 0


if __name__ == "__main__":
    sys.exit(main())
