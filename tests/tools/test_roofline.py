#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon roofline, pages of tenon bench, and the pictures of tenon plan and tenon inspect.

    test_roofline.py TENON
"""
import csv
import glob
import io
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

from cli import arguments

SVG = "{http://www.w3.org/2000/svg}"
LETTER, HEIGHT = 0.55, 0.8  # of the size of a font, on average; capitals


def texts(svg):
    """The boxes of all level texts, a little smaller than they are: name, x, y, width, height."""
    boxes = []
    for e in svg.iter(SVG + "text"):
        if e.get("transform"):
            continue
        size = 16 if "h" in e.get("class").split() else 11
        width = LETTER * size * len(e.text or "")
        x = float(e.get("x")) - {"start": 0, "middle": width / 2, "end": width}[e.get("text-anchor")]
        boxes.append((e.text, x, float(e.get("y")) - HEIGHT * size, width, HEIGHT * size))
    return boxes


def overlaps(boxes):
    return [(a[0], b[0]) for i, a in enumerate(boxes) for b in boxes[:i]
            if a[1] < b[1] + b[3] and b[1] < a[1] + a[3] and a[2] < b[2] + b[4] and b[2] < a[2] + a[4]]


def check_picture(t, name, text):
    try:
        svg = xml.fromstring(text)
    except xml.ParseError as e:
        t.ok(name, False, e)
        return None
    width, height = (float(svg.get(k)) for k in ("width", "height"))
    boxes = texts(svg)
    t.ok(f"{name}: labels", len(boxes) > 10 and not overlaps(boxes), overlaps(boxes)[:5])
    out = [b for b in boxes if b[1] < 0 or b[2] < 0 or b[1] + b[3] > width or b[2] + b[4] > height]
    t.ok(f"{name}: nothing beyond the edge", width == 1000 and not out, out[:5])
    t.ok(f"{name}: a dark scheme", "prefers-color-scheme:dark" in text, "")
    return svg


def check_numbers(t):
    r = t.run("roofline", t.model, "--tokens", 64, "--depth", 100, "-r", 3, "--json")
    d = json.loads(r.out)
    t.ok("roofline --json", r.code == 0 and [p["phase"] for p in d["phases"]] == ["prefill", "decode"], r.err)
    t.ok("peaks", d["peaks"]["read_bytes_per_second"] > 1e8 and d["peaks"]["f32"] > 1e8
         and re.fullmatch(r"\d{4}-\d\d-\d\d", d["peaks"]["date"]), d["peaks"])
    kept = glob.glob(t.env["XDG_CACHE_HOME"] + "/tenon/tuning-peaks-*.txt")
    text = "".join(open(path, encoding="utf-8").read() for path in kept)
    t.ok("peaks are kept", len(kept) == 1 and d["peaks"]["date"] in text, kept)
    for p in d["phases"]:
        total = sum(p[k + "_seconds"] for k in ("steps", "around", "delays", "untimed"))
        t.ok(f"{p['phase']}: the rows add up", abs(total - p["seconds"]) < 1e-6, p)
        seen = sum(s["seconds"] for s in p["steps"])
        t.ok(f"{p['phase']}: steps", abs(seen - p["steps_seconds"]) < 1e-6 and seen > 0, seen)
        # Whatever delays a pass: its steps do not overlap and lie within it.
        f = p["fastest"]
        t.ok(f"{p['phase']}: steps lie within their pass", 0 < f["steps_seconds"] < f["timed_seconds"]
             and f["seconds"] <= p["seconds"] and p["around_seconds"] > 0, p)
        t.ok(f"{p['phase']}: levers", len(p["levers"]) == 3 and all(x.endswith(".") for x in p["levers"]),
             p["levers"])
    # every weight of the model is read once in a step, but of the embedding table the row of the token, and
    # that the head reads as a whole
    info = json.loads(t.run("inspect", t.model, "--json").out)
    weights = sum(x["bytes"] for x in info["tensors"]) if "tensors" in info else 0
    read = sum(s["bytes"]["weights_read"] for s in d["phases"][1]["steps"])
    t.ok("decode reads the weights", weights and weights < read < 1.01 * weights, f"{weights} {read}")
    cache = sum(s["bytes"]["cache_read"] for s in d["phases"][1]["steps"])
    # layers, keys, k and v, heads, width, bytes of f16
    t.ok("decode reads the cache", cache == 8 * 101 * 2 * 2 * 64 * 2, cache)


def check_forms(t):
    flags = ["roofline", t.model, "--tokens", 32, "-r", 2]
    text = t.run(*flags)
    t.ok("roofline as text", text.code == 0 and all(w in text.text for w in (
        "peaks: read", "prefill of 32 tokens", "decode of 1 token", "% of limit",
        "around the steps")), text.err)
    t.ok("peaks are not measured again", "measuring" not in text.err, text.err)
    rows = list(csv.reader(io.StringIO(t.run(*flags, "--csv").text)))
    t.ok("roofline --csv", len(rows) > 20 and len({len(r) for r in rows}) == 1, rows[:2])
    r = t.run(*flags, "--sequences", 3, "--svg", t.temp("r.svg"), "--html", t.temp("r.html"))
    t.ok("roofline of 3 sequences", r.code == 0 and "3 tokens of 3 sequences" in r.text, r.err)
    with open(t.temp("r.svg"), encoding="utf-8") as f:
        svg = check_picture(t, "roofline --svg", f.read())
    words = " ".join(e.text or "" for e in svg.iter(SVG + "text"))
    t.ok("axes have units", "operations per byte" in words and "operations per second" in words
         and "GB/s" in words and "FLOP/s" in words, words)
    t.ok("circles", len(list(svg.iter(SVG + "circle"))) > 10, "")
    with open(t.temp("r.html"), encoding="utf-8") as f:
        page = f.read()
    t.ok("roofline --html", page.count("<table>") == 2 and "<svg" in page and "<script" not in page
         and "http" not in page.replace("http://www.w3.org/2000/svg", ""), page[:200])
    for phase in ("prefill", "decode"):
        rests = [r for r in rows[1:] if r[0] == phase and not r[3]]
        t.ok(f"roofline --csv: {phase}: three rows are no steps", len(rests) == 3
             and all(len(r[4]) > 10 and float(r[8]) == float(r[8]) for r in rests), rests)
    for bad, what in ((["--json", "--csv"], "exclude"), (["-c", 16], "do not fit")):
        r = t.run(*flags, *bad)
        t.ok(f"roofline {bad}", r.code in (2, 6) and what in r.err, r.err)


def pictures(t, name, page):
    """All pictures of a page, checked one by one; the words in each."""
    found = re.findall(r"<svg.*?</svg>", page, re.S)
    svgs = [check_picture(t, f"{name}, picture {i + 1}", text) for i, text in enumerate(found)]
    return [" ".join(e.text or "" for e in svg.iter(SVG + "text")) for svg in svgs if svg is not None]


def check_bench_page(t):
    sizes = ["-p", 32, "-n", 4, "-d", "0,64", "--sequences", "1,3", "-r", 2]
    with open(t.temp("peer.csv"), "w", encoding="utf-8") as f:
        f.write('n_gen,n_prompt,n_depth,model_filename,avg_ts,stddev_ts\n'
                f'0,32,0,"/x/{os.path.basename(t.model)}",1000,5\n4,0,64,,200,1\n7,9,0,,1,1\n')
    path = t.temp("bench.html")
    r = t.run("bench", t.model, t.model, *sizes, "--peers", "other=" + t.temp("peer.csv"), "--json", "--html",
              path)
    t.ok("bench of two files", r.code == 0, r.err)
    d = json.loads(r.out)
    names = [[x["test"] for x in m["results"]] for m in d["models"]]
    t.ok("bench of two files: the same tests", names == 2 * [[
        "pp32", "tg4", "tg4 x 3", "pp32 @ d64", "tg4 @ d64", "tg4 @ d64 x 3"]], names)
    for a, b in zip(d["models"][0]["results"], d["models"][1]["results"]):
        ratio = b["tokens_per_second"] / a["tokens_per_second"]
        t.ok(f"ratio of {a['test']}", a["ratio_to_first"] == 1
             and abs(b["ratio_to_first"] / ratio - 1) < 1e-6, f"{ratio} {b['ratio_to_first']}")
        wanted = {"pp32": 1000, "tg4 @ d64": 200}.get(a["test"])
        speeds = [(p["name"], p["tokens_per_second"], p["ratio"]) for p in a["peers"]]
        t.ok(f"peers of {a['test']}", [s[:2] for s in speeds] == ([("other", wanted)] if wanted else [])
             and all(abs(s[2] * s[1] / a["tokens_per_second"] - 1) < 1e-6 for s in speeds), speeds)
    with open(path, encoding="utf-8") as f:
        page = f.read()
    t.ok("bench --html: one file without scripts", "<script" not in page and "<link" not in page
         and "http" not in page.replace("http://www.w3.org/2000/svg", ""), page[:200])
    t.ok("bench --html: tables", page.count("<table>") == 5 and "other t/s" in page and "to first" in page
         and "peaks measured" in page, page.count("<table>"))
    words = pictures(t, "bench --html", page)
    wanted = ("Prompts over depth", "Decoding over depth", "Decoding over batch", "Memory over time",
              "operations per byte", "operations per byte")
    t.ok("bench --html: pictures", len(words) == 6 and all(w in x for w, x in zip(wanted, words)), words)
    t.ok("bench --html: units", "tokens per second" in words[0] and "MiB" in words[3]
         and "seconds since" in words[3], words[3])
    shape = ["bench", "--shape", "llama-1b", "--layers", 2, "--width", 256, "--heads", 4, "--kv-heads", 2,
             "--head-dim", 64, "--ffn", 512, "--vocab", 512, "-p", 8, "-n", 2, "-r", 1, "--no-peaks"]
    rows = list(csv.DictReader(io.StringIO(t.run(*shape, "--type", "Q8_0,F16", "--csv").text)))
    t.ok("bench of types", [(r["model"], r["test"]) for r in rows] == [
        (f"llama-1b {x}", y) for x in ("Q8_0", "F16") for y in ("pp8", "tg2")]
         and all(float(r["ratio_to_first"]) > 0 for r in rows), rows)
    r = t.run(*shape, "--peers", t.temp("bench.html"))
    t.ok("peers without speeds", r.code == 1 and "column" in r.err, r.err)
    r = t.run("bench", t.model, t.model, "--profile", t.temp("x"), "--no-peaks")
    t.ok("a profile of two models", r.code == 2 and "--profile" in r.err, r.err)


def check_memory(t):
    kinds = ("weights", "cache", "activations", "scratch", "converted", "sampling", "other")
    for flags, of in (([], "session"), (["-np", 3], "engine")):
        r = t.run("inspect", t.model, "--memory", "--ctx", 256, *flags, "--json")
        t.ok(f"inspect --memory {flags}", r.code == 0, r.err)
        d = json.loads(r.out)
        rows = [(x["predicted"], x["used"]) for x in d["devices"]]
        t.ok(f"memory of a {of}", d["of"] == of and d["sequences"] == (3 if flags else 1) and rows, d)
        for p, u in rows:
            shown = f"{p} {u}"
            t.ok(f"{of}: kinds add up", all(sum(m[k] for k in kinds) == m["total"] for m in (p, u)), shown)
            t.ok(f"{of}: buffers are as predicted", all(p[k] == u[k] > 0 for k in kinds[:4]), shown)
            t.ok(f"{of}: what only devices with memory of their own have",
                 all(p[k] == u[k] == 0 for k in kinds[4:6]), shown)
            t.ok(f"{of}: other", abs(p["other"] - u["other"]) < 0.1 * p["other"] + 65536, shown)
    r = t.run("inspect", t.model, "--memory", "--svg", t.temp("m.svg"))
    t.ok("inspect --memory as text",
         r.code == 0 and all(k in r.text for k in kinds[:4] + ("other", "predicted", "used")), r.err)
    with open(t.temp("m.svg"), encoding="utf-8") as f:
        svg = check_picture(t, "inspect --memory --svg", f.read())
    t.ok("memory: a stacked bar of each", len(list(svg.iter(SVG + "rect"))) >= 1 + 5 + 2 * 4, "")
    r = t.run("inspect", t.model, "--svg", t.temp("m.svg"))
    t.ok("--svg without --memory", r.code == 2 and "--memory" in r.err, r.err)


def check_plan(t):
    shape = ["roofline", "--shape", "llama-1b", "--layers", 2]
    t.ok("roofline of a shape is a command of its own", t.run(*shape, "--help").code == 0, "")
    text = t.run("plan", t.model)
    t.ok("plan as text: equal layers once", "x 7, apart only in their numbers:" in text.text
         and len(text.text.splitlines()) < 150, len(text.text.splitlines()))
    steps = re.findall(r"^[ |]*\d+ cpu ", text.text, re.M)
    d = json.loads(t.run("plan", t.model, "--json").out)
    # a layer and what stands before and behind all of them, also where numbers of steps get one more digit
    t.ok("plan as text: a layer once", 10 < len(steps) < 2 * len(d["steps"]) / 8, f"{len(steps)}")
    t.ok("plan --json: costs", all({"bytes", "operations"} <= set(s) for s in d["steps"]), d["steps"][0])
    svg = check_picture(t, "plan --svg", t.run("plan", t.model, "--svg").text)
    words = " ".join(e.text or "" for e in svg.iter(SVG + "text"))
    t.ok("plan --svg: what it shows", all(w in words for w in (
        "steps, in the order", "bytes of the arena", "lower bound", "reached at step", "as recorded", "x 8",
        "glu of two matmuls")), words[:500])
    t.ok("plan --svg: names on hover", any("bytes at" in (e.text or "") for e in svg.iter(SVG + "title")), "")
    dot = t.run("plan", t.model, "--dot").text
    t.ok("plan --dot", "cluster_recorded" in dot and "cluster_plan" in dot and 'label="x 8"' in dot
         and "residual add + rms_norm" in dot and dot.count("[label=") < 100, dot[:300])
    # layers whose weights have other types look the same
    q4 = t.temp("q4_k_m.gguf")
    r = t.run("quantize", t.model, q4, "Q4_K_M")
    types = {x["type"] for x in json.loads(t.run("inspect", q4, "--json").out)["tensors"]
             if "ffn_down" in x["name"]}
    mixed = t.run("plan", q4, "--dot").text
    t.ok("plan --dot: layers of two types once", r.code == 0 and len(types) == 2
         and re.findall(r'label="(x \d+)"', mixed) == ["x 8", "x 8"], f"{types} {r.err}")
    fused = t.run("plan", t.model, "--backend", "null", "--dot").text
    t.ok("plan --dot: a reason for each fusion", 'label="rope + cache writes"' in fused
         and 'label=""' not in fused, fused[:300])
    edges = re.findall(r"([rs]\d+) -> ([rs]\d+)", dot)
    nodes = set(re.findall(r"([rs]\d+) \[label", dot))
    t.ok("plan --dot: edges between nodes", edges and {n for e in edges for n in e} <= nodes,
         {n for e in edges for n in e} - nodes)


def main():
    t, _, _ = arguments()
    os.makedirs(t.env["XDG_CACHE_HOME"])
    check_numbers(t)
    check_forms(t)
    check_bench_page(t)
    check_memory(t)
    check_plan(t)
    return t.done()


sys.exit(main())
