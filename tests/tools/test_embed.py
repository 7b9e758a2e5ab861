# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon embed and classify: forms of input and output, batches, cutting, failures. Golden models: second
argument."""
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
    t.ok("one vector of length 1",
         len(want) == 1 and math.isclose(sum(x * x for x in want[0]), 1, rel_tol=1e-4), one.text[:80])
    for name, args, stdin in (
            ("stdin", [], b"once upon a time\n"), ("no newline", [], b"once upon a time"),
            ("crlf", [], b"once upon a time\r\n"),
            ("objects", [], b'\n {"text": "once \\u0075pon a time"}\n\n'),
            ("text", ["--input", "text"], b"once upon a time"),
            ("objects asked for", ["--input", "jsonl"],
             b'{"x": [1, {"y": "]}"}], "text": "once upon a time", "z": null}'),
            ("batch", ["-b", "3"], b"once upon a time\n"), ("truncate", ["--truncate"], b"once upon a time")):
        got = t.run("embed", t.model, *args, stdin=stdin)
        t.done_well(name, got)
        t.ok(f"{name}: the same", vectors(got) and close(vectors(got)[0], want[0]) and len(vectors(got)) == 1,
             got.text[:80])
    path = t.temp("texts")
    with open(path, "w", encoding="utf-8") as f:
        f.write("once upon a time\n{ this is no object\n")
    got = t.run("embed", t.model, "-f", path)
    t.ok("a brace in a later line", len(vectors(got)) == 2 and close(vectors(got)[0], want[0], BATCHED),
         got.err)
    raw = vectors(t.run("embed", t.model, "--no-normalize", "once upon a time"))[0]
    norm = math.sqrt(sum(x * x for x in raw))
    t.ok("not normalised", abs(norm - 1) > 1e-3 and close([x / norm for x in raw], want[0]), norm)
    rows = vectors(t.run("embed", t.model, "--pooling", "none", "--no-normalize", "once upon a time"))
    t.ok("a row per token", len(rows) > 1 and close(rows[-1], raw, 1e-3), len(rows))
    mean = vectors(t.run("embed", t.model, "--pooling", "mean", "--no-normalize", "once upon a time"))[0]
    t.ok("mean", close(mean, [sum(c) / len(rows) for c in zip(*rows)], 1e-3), mean[:4])


def check_many(t):
    texts = [f"number {i} " + "and more " * (i % 40) for i in range(300)]
    lines = "".join(json.dumps({"id": f"t{i}" if i % 2 else i, "text": x}) + "\n" for i,
                    x in enumerate(texts)).encode()
    got = t.run("embed", t.model, "--json", "-b", "64", stdin=lines)
    t.done_well("300 texts", got)
    rows = [json.loads(line) for line in got.text.splitlines()]
    t.ok("in order, with ids", [r["id"] for r in rows] == [f"t{i}" if i % 2 else i for i in range(300)] and
         [r["index"] for r in rows] == list(range(300)), len(rows))
    for i in (0, 39, 151, 299):
        alone = json.loads(t.run("embed", t.model, "--json", texts[i]).text)
        t.ok(f"text {i} among others",
             close(alone["embedding"], rows[i]["embedding"], BATCHED)
             and alone["tokens"] == rows[i]["tokens"])


def check_lengths(t):
    """Batches are filled by length. Answers come in the order of the input, and are those of each alone."""
    texts = ["one " * (1 + i * 37 % 90) for i in range(240)]  # six batches of 2048 tokens
    lines = "".join(x + "\n" for x in texts).encode()
    for name, args in (("filled", []), ("small batches", ["-b", "40"])):
        got = vectors(t.run("embed", t.model, *args, stdin=lines))
        t.ok(f"{name}: all", len(got) == len(texts), len(got))
        for i in (0, 1, 120, 239):
            alone = vectors(t.run("embed", t.model, *args, texts[i]))[0]
            t.ok(f"{name}: text {i}", close(got[i], alone, BATCHED), i)


def check_failures(t):
    for name, args, stdin, code, part in (
            ("too long", ["-c", "4"], b"one two three four five six seven eight", 6, "--truncate"),
            ("broken object", [], b'{"text": "a"}\n{"text": 5}\n', 1, "line 2"),
            ("no end", [], b'{"text": "a', 1, "line 1"),
            ("no text", [], b'{"other": "a"}', 1, "text"),
            ("deep", [], b'{"a": ' + b"[" * 100 + b"}", 1, "nested"),
            ("rubbish behind", [], b'{"text": "a"} x', 1, "behind"),
            ("bad escape", [], b'{"text": "\\q"}', 1, "escape"),
            ("empty", [], b"\n", 1, "empty"), ("two sources", ["-f", "x", "words"], b"", 2, "-f"),
            ("both", ["--normalize", "--no-normalize", "x"], b"", 2, "--no-normalize"),
            ("no head", ["--pooling", "rank", "x"], b"", 1, "head")):
        got = t.run("embed", t.model, *args, stdin=stdin)
        t.ok(name, got.code == code and part in got.err, f"{got.code} {got.err!r}")
    got = t.run("embed", t.model, stdin=b'{"text": "a"}\n{"text": 5}\n')
    t.ok("what came before is answered", len(vectors(got)) == 1, got.text[:60])
    got = t.run("embed", t.model, "-c", "4", "--truncate", "--json",
                stdin=b"one two three four five six seven eight")
    t.ok("cut", got.code == 0 and json.loads(got.text)["tokens"] == 4
         and json.loads(got.text)["truncated"] is True, got.err)
    t.ok("classify without a head", t.run("classify", t.model, "x").code == 1)
    t.ok("no input", t.run("embed", t.model, stdin=b"").text == "")


def with_head(t, n, labels, template):
    """The bundled model with a head whose class k is element k of the last hidden row."""
    g = cli.Gguf(t.model)
    arch = g.text("general.architecture")
    width = g.u32(arch + ".embedding_length")
    g.add_f32("cls.output.weight", [width, n], [float(i == k) for k in range(n) for i in range(width)])
    g.set_u32(arch + ".pooling_type", 4)
    if labels:
        g.set_texts(arch + ".classifier.output_labels", labels)
    if template:
        g.set_text("tokenizer.chat_template.rerank", template)
    return g.write(t.temp(f"head{n}.gguf"))


def check_classes(t):
    model = with_head(t, 3, ["red", "gr\u00fcn", "blue"], None)
    hidden = vectors(t.run("embed", t.model, "--no-normalize", "--pooling", "last", "once upon"))[0][:3]
    got = t.run("classify", model, "--json", stdin=b'{"id": "a", "text": "once upon"}\n{"text": "a time"}\n')
    t.done_well("classify", got)
    rows = [json.loads(line) for line in got.text.splitlines()]
    classes = rows[0]["classes"]
    t.ok("scores", close([c["score"] for c in classes], hidden, BATCHED * max(1, max(map(abs, hidden)))),
         classes)
    t.ok("names", [c["label"] for c in classes] == ["red", "gr\u00fcn", "blue"] and rows[0]["id"] == "a",
         classes)
    total = sum(math.exp(c["score"]) for c in classes)
    t.ok("probabilities",
         close([c["probability"] for c in classes], [math.exp(c["score"]) / total for c in classes], 1e-6))
    best = max(classes, key=lambda c: c["score"])["label"]
    plain = t.run("classify", model, "once upon").text.split()
    t.ok("best", rows[0]["label"] == best and plain[0] == best and 0 < float(plain[1]) <= 1, plain)
    t.ok("no vectors by themselves", t.run("embed", model, "x").code == 1)
    t.ok("unless asked for", len(vectors(t.run("embed", model, "--pooling", "last", "x"))) == 1)

    model = with_head(t, 1, None, "<q>{query}</q><d>{document}</d>")
    joined = vectors(t.run("classify", model, "<q>who</q><d>me and you</d>"))[0][0]
    for name, args, stdin in (("--query", ["--query", "who"], b"me and you\n"),
                              ("objects", [], b'{"query": "who", "document": "me and you"}\n')):
        got = t.run("classify", model, *args, stdin=stdin)
        t.ok(name, got.code == 0 and close(vectors(got)[0], [joined], BATCHED * max(1, abs(joined))),
             got.text + got.err)
    many = t.run("classify", model, "--query", "who", stdin=b"me\nyou\nme and you\n")
    t.ok("documents", len(vectors(many)) == 3 and many.code == 0, many.err)
    long = b'{"query": "who", "document": "' + b"me and you " * 40 + b'"}\n'
    t.ok("long pair", t.run("classify", model, "-c", "40", stdin=long).code == 6)
    cut = t.run("classify", model, "-c", "40", "--truncate", "--json", stdin=long)
    t.ok("cut pair",
         cut.code == 0 and 36 <= json.loads(cut.text)["tokens"] <= 40 and json.loads(cut.text)["truncated"],
         cut.err)
    t.ok("no separators", t.run("classify", with_head(t, 2, None, None), "--query", "a", "b").code == 1)


def check_encoder(t, golden):
    model = os.path.join(golden, "bert.gguf")
    entry = next(e for e in json.load(open(os.path.join(golden, "manifest.json")))["models"]
                 if e["name"] == "bert")
    ids = ",".join(map(str, entry["tokens"]))
    for field, args in (("token_embeddings", []), ("embedding", ["--pooled"]),
                        ("token_embeddings", ["-b", "5"])):
        out = t.temp("rows")
        t.done_well(f"logits {field}", t.run("logits", model, "--tokens", ids, "--out", out, *args))
        got, want = (open(p, "rb").read() for p in (out, os.path.join(golden, entry[field]["file"])))
        a, b = (struct.unpack(f"<{len(x) // 4}f", x) for x in (got, want))
        error = math.sqrt(sum((x - y) ** 2 for x,
                              y in zip(a, b)) / sum(y * y for y in b)) if len(a) == len(b) else math.inf
        t.ok(f"logits {field} {args}", error <= entry["tolerance"]["strict_rel_l2"], error)
    t.ok("too many tokens",
         t.run("logits", model, "--tokens", ",".join(["1"] * 300), "--out", t.temp("o")).code == 6)
    t.ok("run", "embeddings" in t.run("run", model, "-p", "x").err)
    t.done_well("plan", t.run("plan", model, "--tokens", "5"))
    t.done_well("inspect", t.run("inspect", model))


def main():
    t = cli.Tests(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    check_forms(t)
    check_many(t)
    check_lengths(t)
    check_failures(t)
    check_classes(t)
    golden = sys.argv[2] if len(sys.argv) > 2 else ""
    if os.path.exists(os.path.join(golden, "bert.gguf")):
        check_encoder(t, golden)
    else:
        t.skip("encoder", "no golden models")
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
