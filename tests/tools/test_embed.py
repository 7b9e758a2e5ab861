# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon embed and classify: forms of input and output, batches, cutting, failures. Golden models: second argument."""
import json
import math
import os
import struct
import sys

import cli


def vectors(result):
    return [[float(w) for w in line.split()] for line in result.text.splitlines()]


def close(a, b, room=1e-4):
    return len(a) == len(b) and all(math.isclose(x, y, abs_tol=room) for x, y in zip(a, b))


# The bundled model is quantised: products with few rows and with many round activations differently.
BATCHED = 2e-2


def check_forms(t):
    one = t.run("embed", t.model, "once upon a time")
    t.done_well("words", one)
    want = vectors(one)
    t.ok("one vector of length 1", len(want) == 1 and math.isclose(sum(x * x for x in want[0]), 1, rel_tol=1e-4), one.text[:80])
    for name, args, stdin in (
            ("stdin", [], b"once upon a time\n"), ("no newline", [], b"once upon a time"), ("crlf", [], b"once upon a time\r\n"),
            ("objects", [], b'\n {"text": "once \\u0075pon a time"}\n\n'), ("text", ["--input", "text"], b"once upon a time"),
            ("objects asked for", ["--input", "jsonl"], b'{"x": [1, {"y": "]}"}], "text": "once upon a time", "z": null}'),
            ("batch", ["-b", "3"], b"once upon a time\n"), ("truncate", ["--truncate"], b"once upon a time")):
        got = t.run("embed", t.model, *args, stdin=stdin)
        t.done_well(name, got)
        t.ok(f"{name}: the same", vectors(got) and close(vectors(got)[0], want[0]) and len(vectors(got)) == 1, got.text[:80])
    path = t.temp("texts")
    with open(path, "w", encoding="utf-8") as f:
        f.write("once upon a time\n{ this is no object\n")
    got = t.run("embed", t.model, "-f", path)
    t.ok("a brace in a later line", len(vectors(got)) == 2 and close(vectors(got)[0], want[0], BATCHED), got.err)
    raw = vectors(t.run("embed", t.model, "--no-normalize", "once upon a time"))[0]
    norm = math.sqrt(sum(x * x for x in raw))
    t.ok("not normalised", abs(norm - 1) > 1e-3 and close([x / norm for x in raw], want[0]), norm)
    rows = vectors(t.run("embed", t.model, "--pooling", "none", "--no-normalize", "once upon a time"))
    t.ok("a row per token", len(rows) > 1 and close(rows[-1], raw, 1e-3), len(rows))
    mean = vectors(t.run("embed", t.model, "--pooling", "mean", "--no-normalize", "once upon a time"))[0]
    t.ok("mean", close(mean, [sum(c) / len(rows) for c in zip(*rows)], 1e-3), mean[:4])


def check_many(t):
    texts = [f"number {i} " + "and more " * (i % 40) for i in range(300)]
    lines = "".join(json.dumps({"id": f"t{i}" if i % 2 else i, "text": x}) + "\n" for i, x in enumerate(texts)).encode()
    got = t.run("embed", t.model, "--json", "-b", "64", stdin=lines)
    t.done_well("300 texts", got)
    rows = [json.loads(line) for line in got.text.splitlines()]
    t.ok("in order, with ids", [r["id"] for r in rows] == [f"t{i}" if i % 2 else i for i in range(300)] and
         [r["index"] for r in rows] == list(range(300)), len(rows))
    for i in (0, 39, 151, 299):
        alone = json.loads(t.run("embed", t.model, "--json", texts[i]).text)
        t.ok(f"text {i} among others", close(alone["embedding"], rows[i]["embedding"], BATCHED) and alone["tokens"] == rows[i]["tokens"])


def check_failures(t):
    for name, args, stdin, code, part in (
            ("too long", ["-c", "4"], b"one two three four five six seven eight", 6, "--truncate"),
            ("broken object", [], b'{"text": "a"}\n{"text": 5}\n', 1, "line 2"), ("no end", [], b'{"text": "a', 1, "line 1"),
            ("no text", [], b'{"other": "a"}', 1, "text"), ("deep", [], b'{"a": ' + b"[" * 100 + b"}", 1, "nested"),
            ("rubbish behind", [], b'{"text": "a"} x', 1, "behind"), ("bad escape", [], b'{"text": "\\q"}', 1, "escape"),
            ("empty", [], b"\n", 1, "empty"), ("two sources", ["-f", "x", "words"], b"", 2, "-f"),
            ("both", ["--normalize", "--no-normalize", "x"], b"", 2, "--no-normalize"),
            ("no head", ["--pooling", "rank", "x"], b"", 1, "head")):
        got = t.run("embed", t.model, *args, stdin=stdin)
        t.ok(name, got.code == code and part in got.err, f"{got.code} {got.err!r}")
    got = t.run("embed", t.model, stdin=b'{"text": "a"}\n{"text": 5}\n')
    t.ok("what came before is answered", len(vectors(got)) == 1, got.text[:60])
    got = t.run("embed", t.model, "-c", "4", "--truncate", "--json", stdin=b"one two three four five six seven eight")
    t.ok("cut", got.code == 0 and json.loads(got.text)["tokens"] == 4 and json.loads(got.text)["truncated"] is True, got.err)
    t.ok("classify without a head", t.run("classify", t.model, "x").code == 1)
    t.ok("no input", t.run("embed", t.model, stdin=b"").text == "")


def check_encoder(t, golden):
    model = os.path.join(golden, "bert.gguf")
    entry = next(e for e in json.load(open(os.path.join(golden, "manifest.json")))["models"] if e["name"] == "bert")
    ids = ",".join(map(str, entry["tokens"]))
    for field, args in (("token_embeddings", []), ("embedding", ["--pooled"]), ("token_embeddings", ["-b", "5"])):
        out = t.temp("rows")
        t.done_well(f"logits {field}", t.run("logits", model, "--tokens", ids, "--out", out, *args))
        got, want = (open(p, "rb").read() for p in (out, os.path.join(golden, entry[field]["file"])))
        a, b = (struct.unpack(f"<{len(x) // 4}f", x) for x in (got, want))
        error = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b)) if len(a) == len(b) else math.inf
        t.ok(f"logits {field} {args}", error <= entry["tolerance"]["strict_rel_l2"], error)
    t.ok("too many tokens", t.run("logits", model, "--tokens", ",".join(["1"] * 300), "--out", t.temp("o")).code == 6)
    t.ok("run", "embeddings" in t.run("run", model, "-p", "x").err)
    t.done_well("plan", t.run("plan", model, "--tokens", "5"))
    t.done_well("inspect", t.run("inspect", model))


def main():
    t = cli.Tests(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    check_forms(t)
    check_many(t)
    check_failures(t)
    golden = sys.argv[2] if len(sys.argv) > 2 else ""
    if os.path.exists(os.path.join(golden, "bert.gguf")):
        check_encoder(t, golden)
    else:
        print("SKIP: no golden encoder")
    print(f"{t.passed} passed, {t.failed} failed")
    return 1 if t.failed else 0


if __name__ == "__main__":
    sys.exit(main())
