# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""LoRA adapters on the command line: the flags, the logits against weights that were changed here, messages.

    test_adapters.py TENON [GOLDEN_MODELS]
"""
import json
import os
import random
import struct
import sys

from cli import Gguf, arguments, as_json

RANK, ALPHA = 4, 8.0
WEIGHTS = ["blk.0.attn_q.weight", "blk.1.ffn_down.weight", "blk.0.ffn_gate.weight"]


def shapes(t, model):
    d = as_json(t, "inspect", t.run("inspect", model, "--json").out)
    return {x["name"]: (x["shape"], x["offset"]) for x in d["tensors"]}, d["model"]["architecture"]


def make_adapter(t, name, model, seed, **changes):
    """An adapter of WEIGHTS and its values: {weight: (a [rank, n_in], b [n_out, rank])}."""
    found, arch = shapes(t, model)
    g = Gguf.__new__(Gguf)
    g.version, g.n_tensors, g.keys, g.infos, g.tensors = 3, 0, {}, b"", b""
    g.set_text("general.type", changes.get("type", "adapter"))
    g.set_text("general.architecture", changes.get("arch", arch))
    g.set_text("adapter.type", "lora")
    g.keys["adapter.lora.alpha"] = struct.pack("<If", 6, ALPHA)
    rng, values = random.Random(seed), {}
    for weight in WEIGHTS:
        n_out, n_in = found[weight][0]
        a = [[rng.uniform(-0.2, 0.2) for _ in range(n_in)] for _ in range(RANK)]
        b = [[rng.uniform(-0.2, 0.2) for _ in range(RANK)] for _ in range(n_out)]
        values[weight] = (a, b)
        g.add_f32(f"{weight}.lora_a", [n_in, RANK], [x for row in a for x in row])
        g.add_f32(f"{weight}.lora_b", [RANK, n_out], [x for row in b for x in row])
    return g.write(t.temp(name)), values


def merge(t, name, model, parts):
    """The model with the adapters in its F32 weights; parts: (values, scale) each."""
    with open(model, "rb") as f:
        data = bytearray(f.read())
    found, _ = shapes(t, model)
    for weight in WEIGHTS:
        (n_out, n_in), at = found[weight]
        w = list(struct.unpack_from(f"<{n_out * n_in}f", data, at))
        for values, scale in parts:
            a, b = values[weight]
            s = scale * ALPHA / RANK
            for o in range(n_out):
                for i in range(n_in):
                    w[o * n_in + i] += s * sum(b[o][r] * a[r][i] for r in range(RANK))
        struct.pack_into(f"<{n_out * n_in}f", data, at, *w)
    path = t.temp(name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def logits(t, model, *flags):
    out = t.temp("logits.f32")
    r = t.run("logits", model, "--tokens", "1,17,5,30,2", "--out", out, "--cache-type-k", "f32",
              "--cache-type-v", "f32", *flags)
    if not t.done_well(f"logits {flags}", r):
        return []
    with open(out, "rb") as f:
        data = f.read()
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def off(got, want):
    if len(got) != len(want) or not want:
        return 1.0
    return (sum((g - w) ** 2 for g, w in zip(got, want)) / sum(w * w for w in want)) ** 0.5


def check_logits(t, model):
    one, v1 = make_adapter(t, "one.gguf", model, 1)
    two, v2 = make_adapter(t, "two.gguf", model, 2)
    plain = logits(t, model)
    want1 = logits(t, merge(t, "merged1.gguf", model, [(v1, 1.0)]))
    both = logits(t, merge(t, "merged2.gguf", model, [(v1, 0.5), (v2, -1.5)]))
    t.ok("the adapters change something", off(plain, want1) > 0.01 < off(want1, both), off(plain, want1))
    t.ok("one", off(logits(t, model, "--lora", one), want1) < 1e-5, off(plain, want1))
    t.ok("unfused", off(logits(t, model, "--lora", one, "--fusion", "off"), want1) < 1e-5)
    for flags in (["--lora-scaled", one, "0.5", "--lora-scaled", two, "-1.5"],
                  ["--lora-scaled", f"{one}:0.5", "--lora-scaled", f"{two}:-1.5"],
                  ["--lora-scaled", f"{one}:0.5,{two}:-1.5"],
                  ["--lora", f"{one}:0.5", "--lora-scaled", two, "-1.5"],
                  [f"--lora={one}:0.5,{two}:-1.5"]):
        t.ok(f"two: {flags}", off(logits(t, model, *flags), both) < 1e-5)
    t.ok("a scale of 0 is no adapter", logits(t, model, "--lora-scaled", one, "0") == plain)
    return one, two


def check_messages(t, model, one):
    wrong = [
        (["--lora", t.temp("none.gguf")], 1, "none.gguf"),
        (["--lora", model], 3, "the file is no adapter"),
        (["--lora", make_adapter(t, "arch.gguf", model, 1, arch="qwen2")[0]], 3, "architecture qwen2"),
        (["--lora", make_adapter(t, "type.gguf", model, 1, type="model")[0]], 3, "the file is no adapter"),
        (["--lora", ""], 2, "empty"),
        (["--lora-scaled", f"{one}:inf"], 2, "finite"),
        (["--lora", ",".join([one] * 17)], 2, "more than 16"),
    ]
    for flags, code, text in wrong:
        r = t.run("run", model, "--tokens", "1,2", "-n", 1, "--ids", *flags)
        t.ok(f"refused: {flags[:1]} {text}", r.code == code and text in r.err and r.err.count("\n") == 1,
             f"{r.code} {r.err}")
    r = t.run("run", one, "--tokens", "1,2", "-n", 1)
    t.ok("an adapter is no model", r.code == 3 and "no model" in r.err, r.err)


def check_commands(t, model, one):
    flags = ["--tokens", "1,17,5", "-n", 8, "--ids", "--temp", 0]
    want = t.run("run", t.temp("merged1.gguf"), *flags)
    got = t.run("run", model, *flags, "--lora", one)
    t.ok("run", got.code == 0 and got.ids == want.ids, f"{got.ids} {want.ids} {got.err}")
    plan = t.run("plan", model, "--lora", one)
    t.ok("plan", plan.code == 0 and "adapter.0.blk.0.attn_q.weight.lora_a" in plan.text, plan.err)
    r = t.run("run", model, *flags, "--lora", one, "-v")
    t.ok("-v tells of it", "adapter of 3 weights, rank 4, with scale 1" in r.err, r.err)
    r = t.run("inspect", one)
    t.ok("inspect", r.code == 0 and "lora of 3 weights" in r.text and "rank 4, alpha 8" in r.text, r.text)
    d = as_json(t, "inspect --json", t.run("inspect", one, "--json").out)
    t.ok("inspect --json", d.get("adapter", {}).get("rank") == 4 and d["model"] is None, d.get("adapter"))
    os.mkdir(t.temp("models"))
    with open(one, "rb") as f, open(os.path.join(t.temp("models"), "style.gguf"), "wb") as out:
        out.write(f.read())
    r = t.run("show", "style", TENON_MODELS=t.temp("models"))
    t.ok("show", r.code == 0 and "adapter.lora.alpha" in r.text and "lora" in r.text, f"{r.text} {r.err}")
    # A session file belongs to the adapters that it was made with.
    session = ["--session", t.temp("s.state")]
    t.done_well("save", t.run("run", model, *flags, "--lora", one, *session))
    r = t.run("run", model, *flags, *session)
    t.ok("another adapter", r.code != 0 and "other adapters" in r.err, f"{r.code} {r.err}")


def check_texts(t):
    """One text through run, batch and speculation, with and without a large adapter."""
    del WEIGHTS[2:]
    one, _ = make_adapter(t, "tiny.gguf", t.model, 3)
    flags = ["-n", 12, "--temp", 0]
    prompt = "Once upon a time"
    with open(t.temp("prompts.jsonl"), "w", encoding="utf-8") as f:
        f.write(json.dumps({"prompt": prompt}) + "\n")
    texts = {}
    for lora in ([], ["--lora-scaled", one, "6"]):
        run = t.run("run", t.model, "-p", prompt, *flags, *lora)
        batch = t.run("batch", t.model, "-f", t.temp("prompts.jsonl"), *flags, *lora)
        text = as_json(t, "batch", batch.text).get("text")
        t.ok(f"batch {lora[:1]}", text == run.text.rstrip("\n") and text,
             f"{text!r} {run.text!r} {batch.err}")
        spec = t.run("run", t.model, "-p", prompt, *flags, *lora, "--spec", "ngram")
        t.ok(f"speculation {lora[:1]}", spec.text == run.text, f"{spec.text} {spec.err}")
        texts[len(lora)] = run.text
        draft = t.run("run", t.model, "-p", prompt, *flags, *lora, "-md", t.model)
        t.ok(f"a draft model has no adapters {lora[:1]}", draft.text == run.text, f"{draft.text} {draft.err}")
    t.ok("the adapter changes the text", texts[0] != texts[3], texts)


def main():
    t, _, golden = arguments()
    if not golden:
        t.skip("adapters", "no golden models")
        return 0 if t.done() == 0 else 77
    model = os.path.join(golden, "llama.gguf")
    one, _ = check_logits(t, model)
    check_messages(t, model, one)
    check_commands(t, model, one)
    check_texts(t)
    return t.done()


sys.exit(main())
