# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the commands of the tool do, with the bundled model and, where they are, the golden models.

    test_cli.py TENON [--quick] [GOLDEN_MODELS]

--quick leaves out the whole perplexity text and most quantised types (builds with sanitizers are slow).
"""
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

from cli import Gguf, arguments, as_json, read_f32, rel_l2

MARGIN = 0.05  # logits; below it rounding of cache and activations may choose the other token
STORY = "Once upon a time"


def sure(entry):
    """Greedy ids up to the first near tie."""
    n = next((i for i, m in enumerate(entry["margins"]) if m <= MARGIN), len(entry["margins"]))
    return entry["greedy"][:n]


# --- run -------------------------------------------------------------------------------------------------

def check_greedy(t, expected):
    stops = set(expected["stop_ids"])
    for e in expected["prompts"]:
        want, n = sure(e), len(e["greedy"])
        name = "greedy: " + e["text"][:40].replace("\n", " ")
        r = t.run("tokenize", t.model, "--ids", "--special", "-p", e["text"])
        t.ok(name, r.code == 0 and r.ids == e["ids"], f"prompt ids {r.out!r} {r.err}, expected {e['ids']}")
        kept = [i for i in want if i not in stops]
        forms = [["-p", e["text"]], ["--tokens", ",".join(map(str, e["ids"]))]]
        if e["messages"]:
            forms.append(["-st", "-p", e["messages"][0]["content"]])
        for form in forms:
            r = t.run("run", t.model, *form, "-n", n, "--temp", 0, "--ids")
            t.ok(f"{name} ({form[0]})", r.code == 0 and r.ids[:len(kept)] == kept,
                 f"{r.out!r} {r.err}, expected {kept}")
        if len(want) == n and e["greedy"][-1] in stops:
            r = t.run("run", t.model, *forms[-1], "--temp", 0)
            t.ok(name + " (text)", r.out.decode() == e["output"].replace("<|im_end|>", ""), r.out)


def check_variants(t):
    """Settings that may not change the answer, or only within the margins."""
    base = ["run", t.model, "-st", "-p", "Who are you?", "--temp", 0, "--ids"]
    want = t.run(*base).ids
    t.ok("variants: an answer", len(want) > 20, want)
    for flags in (["--fusion", "off"], ["-b", 1], ["-b", 5], ["-t", 1], ["-t", 3], ["--isa", "generic"],
                  ["--isa", "reference"],
                  ["--cache-type-k", "f32", "--cache-type-v", "f32"], ["-ctk", "bf16", "-ctv", "bf16"],
                  ["-ctk", "q8_0", "-ctv", "q8_0"], ["-ctk", "q8_0"], ["-c", 64],
                  ["-fa", "on", "-ngl", 99, "--no-mmap"], ["-ngl", "all"],
                  ["--gpu-layers", 0], ["--gpu-layers", "auto", "--backend", "cpu"]):
        r = t.run(*base, *flags)
        t.ok(f"variants: {flags}", r.code == 0 and r.ids == want, f"{r.ids} {r.err}, expected {want}")
    r = t.run(*base, "-ctk", "q4_0", "-ctv", "q4_0")
    t.ok("variants: q4_0 cache runs", r.code == 0 and len(r.ids) > 3, f"{r.ids} {r.err}")
    one, three = (t.run("run", t.model, "-p", STORY, "-n", 60, "-s", 5, "-t", n).out for n in (1, 3))
    t.ok("variants: threads do not change a bit", one == three and one, f"{one!r} {three!r}")


def check_seed(t):
    texts = {s: t.run("run", t.model, "-p", STORY, "-n", 40, "--seed", s, "--temp", 1).out
             for s in (1, 2, 3, 4, 5)}
    again = t.run("run", t.model, "-p", STORY, "-n", 40, "--seed", 1, "--temp", 1).out
    t.ok("same seed, same text", texts[1] == again and again, f"{texts[1]!r} {again!r}")
    t.ok("other seed, other text", len(set(texts.values())) > 1, texts)
    r = as_json(t, "seed", t.run("run", t.model, "-p", STORY, "-n", 40, "--temp", 1, "--json").out)
    r2 = t.run("run", t.model, "-p", STORY, "-n", 40, "--temp", 1, "--seed", r.get("seed"))
    t.ok("the shown seed gives the text again", r2.text == r.get("text"), f"{r2.text!r} {r.get('text')!r}")


def check_forms(t):
    """Text, --json and --jsonl say the same; a pipe gets the bytes of the answer only."""
    flags = ["run", t.model, "-p", STORY, "-n", 30, "--seed", 3]
    plain = t.run(*flags)
    t.ok("pipe: nothing on standard error", plain.err == "", plain.err)
    t.ok("pipe: no escape", b"\x1b" not in plain.out and plain.out, plain.out)
    one = as_json(t, "--json", t.run(*flags, "--json").out)
    t.ok("--json text", one.get("text") == plain.text, f"{one.get('text')!r} {plain.text!r}")
    t.ok("--json keys",
         {"schema", "model", "device", "tokens", "stop", "prompt_tokens", "seed", "timings",
          "memory"} <= set(one), one)
    t.ok("--json values",
         one.get("stop") == "limit" and one.get("prompt_tokens") == 4 and one.get("seed") == 3, one)
    events = [as_json(t, "--jsonl", line) for line in t.run(*flags, "--jsonl").out.splitlines()]
    kinds = [e.get("event") for e in events]
    t.ok("--jsonl events", kinds == ["load"] + ["token"] * 30 + ["stats"], kinds)
    t.ok("--jsonl text", "".join(e.get("text", "") for e in events) == plain.text, plain.text)
    t.ok("--jsonl ids", [e["id"] for e in events if "id" in e] == one.get("tokens"), one.get("tokens"))
    rows = as_json(t, "--logprobs", t.run(*flags, "--json", "--logprobs", 3).out).get("logprobs", [])
    t.ok("--logprobs", [row["id"] for row in rows] == one.get("tokens") and all(
        len(row["top"]) == 3 and row["top"][0]["logprob"] >= row["logprob"]
        and row["top"][0]["logprob"] >= row["top"][2]["logprob"]
        for row in rows), rows[:2])
    t.ok("--jsonl probabilities", all(e["logprob"] <= 0 for e in events if "logprob" in e), events)
    t.ok("--ids", t.run(*flags, "--ids").ids == one.get("tokens"), "")
    r = t.run(*flags, "--stats")
    t.ok("--stats", r.out == plain.out and "t/s" in r.err and len(r.err.split("\n[")) == 2, r.err)
    r = t.run(*flags, "--color", "always")
    t.ok("colour changes no text", re.sub(r"\x1b\[[0-9;]*m", "", r.text) == plain.text, r.text)


def check_prompts(t):
    """The ways to give a prompt."""
    path = t.temp("prompt.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write(STORY)
    tail = ["-n", 8, "--temp", 0]
    want = t.run("run", t.model, "-p", STORY, *tail).out
    for name, args, stdin in (("-f", ["-f", path], b""), ("words", [*STORY.split(), "--raw"], b""),
                              ("standard input", [], STORY.encode()),
                              ("-", ["-"], STORY.encode()), ("-f -", ["-f", "-"], STORY.encode()),
                              ("-e", ["-e", "-p", STORY], b"")):
        r = t.run("run", t.model, *args, *tail, stdin=stdin)
        t.ok("prompt: " + name, r.code == 0 and r.out == want and want, f"{r.out!r} {r.err}")
    r = t.run("run", "-m", t.model, "-p", STORY, *tail)
    t.ok("prompt: -m", r.out == want, r.err)
    lines = b"Where does Mia live?\nWho are you?\n"
    r = t.run("run", t.model, "--chat", "--temp", 0, stdin=lines)
    t.ok("chat: two turns", r.code == 0 and "blue house" in r.text and "tenon-tiny" in r.text,
         f"{r.code} {r.out!r} {r.err}")
    r = t.run("run", t.model, "--chat", "--temp", 0, stdin=b"/help\n/clear\n/exit\nHello!\n")
    t.ok("chat: commands", r.code == 0 and b"story?" not in r.out, f"{r.code} {r.out!r} {r.err}")
    # What a user writes never becomes a special token of a chat.
    r = t.run("run", t.model, "-st", "-p", "Hello!<|im_end|>", "-n", 1, "--temp", 0, "--json")
    t.ok("chat: no special tokens from the user", as_json(t, "chat", r.out).get("prompt_tokens", 0) > 11,
         r.out)


def check_session(t):
    """--session: the next run evaluates what is new, and says what a run without a file says."""
    path = t.temp("story.session")
    # At this level rows do not depend on the batch they come in: the same bits.
    base = ["run", t.model, "-n", 12, "--temp", 0, "--json", "--isa", "generic"]

    def run(name, prompt, *flags):
        r = t.run(*base, "-p", prompt, *flags)
        t.ok("session: " + name, r.code == 0, f"{r.code} {r.err}")
        return as_json(t, "session: " + name, r.out)

    first = run("first", STORY, "--session", path)
    size = os.path.getsize(path)
    t.ok("session: nothing to reuse", first.get("reused_tokens") == 0, first)
    longer = STORY + first.get("text", "") + " and then"
    plain, kept = run("plain", longer), run("second", longer, "--prompt-cache", path, "--prompt-cache-ro",
                                            "--prompt-cache-all")
    t.ok("session: same text", kept.get("tokens") == plain.get("tokens") and plain.get("tokens"),
         f"{kept} {plain}")
    t.ok("session: reused", kept.get("reused_tokens") >= first.get("prompt_tokens") + 8, kept)
    t.ok("session: read only", os.path.getsize(path) == size, path)
    run("third", longer, "--session", path)
    again = run("fourth", longer, "--session", path)
    t.ok("session: all but one token", again.get("reused_tokens") == plain.get("prompt_tokens") - 1, again)
    t.ok("session: same text again", again.get("tokens") == plain.get("tokens"), f"{again} {plain}")
    chat = ["run", t.model, "--chat", "--temp", 0, "--session", t.temp("chat.session")]
    one, two = (t.run(*chat, "--stats", stdin=b"Where does Mia live?\n") for _ in range(2))
    t.ok("session: chat", one.out == two.out and b"blue house" in two.out, f"{one.out} {two.out} {two.err}")
    t.ok("session: chat reuses", "[prompt 1 tokens" in two.err, two.err)
    t.ok("session: no other files", not [f for f in os.listdir(t.folder.name) if "session.tmp" in f],
         os.listdir(t.folder.name))


def check_guesses(t):
    """--spec and --model-draft: the same text, and figures about guesses."""
    prompt = "Tom has a red ball. Ben has a red ball. Anna has a red ball. Lily has a red ball. Max has"
    for flags in (["--temp", 0], ["--temp", 1, "-s", 3, "--repeat-penalty", 1.1]):
        base = ["run", t.model, "-p", prompt, "-n", 60, "--ignore-eos", *flags]
        plain = as_json(t, "guesses", t.run(*base, "--json").out)
        t.ok("guesses: none", "drafted" not in plain.get("timings", {"drafted": 0}), plain)
        for guess in (["--spec", "ngram"], ["--spec", "ngram:2", "--draft-max", 3],
                      ["-md", t.model, "--draft-min", 1]):
            r = as_json(t, f"guesses {guess}", t.run(*base, *guess, "--json").out)
            t.ok(f"guesses {guess}: same text", r.get("tokens") == plain.get("tokens"), f"{r} {plain}")
            times = r.get("timings", {})
            t.ok(f"guesses {guess}: figures", 0 < times.get("accepted", 0) <= times.get("drafted", 0), times)
    r = t.run("run", t.model, "-p", prompt, "-n", 40, "--temp", 0, "--spec", "ngram", "--stats")
    t.ok("guesses: --stats", re.search(r"drafted \d+, accepted \d+ \(\d+ %\)", r.err), r.err)


def check_ends(t):
    """-n, --stop, the end token, a full context."""
    base = ["run", t.model, "-p", STORY, "--temp", 0, "--json"]

    def ends(*flags):
        r = t.run(*base, *flags)
        d = as_json(t, f"ends {flags}", r.out)
        return r, d, len(d.get("tokens", []))

    r, d, n = ends("-n", 5)
    t.ok("-n 5", n == 5 and d.get("stop") == "limit", d)
    r, d, n = ends("-n", 0)
    t.ok("-n 0", r.code == 0 and n == 0 and d.get("text") == "", d)
    full = ends("-n", 30)[1].get("text", "")
    for stop in ("named", " She", ". ", "girl n"):
        r, d, n = ends("-n", 30, "--stop", stop)
        t.ok(f"--stop {stop!r}", d.get("stop") == "string" and d.get("text") == full.split(stop)[0],
             f"{d} of {full!r}")
    r, d, n = ends("-n", 30, "--stop", "zzz", "-r", "lived")
    t.ok("two --stop", d.get("text") == full.split("lived")[0], d)
    r, d, n = ends("-c", 10)
    t.ok("context full", r.code in (0, 6) and d.get("stop") == "context" and 4 + n <= 11 and n >= 5, d)
    t.ok("context full is said", "context" in r.err and len(r.err.splitlines()) == 1, r.err)
    r, d, n = ends("-c", 4, "-n", 1)
    t.ok("prompt fills the context", r.code in (0, 6), f"{r.code} {r.err}")
    chat = ["run", t.model, "-st", "-p", "Hello!", "--temp", 0, "--json"]
    d = as_json(t, "end", t.run(*chat).out)
    t.ok("end token", d.get("stop") == "end" and not set(d["tokens"]) & {2045, 2047}, d)
    d = as_json(t, "--ignore-eos", t.run(*chat, "--ignore-eos", "-n", 40).out)
    t.ok("--ignore-eos", d.get("stop") == "limit" and len(d["tokens"]) == 40, d)
    d = as_json(t, "bias", t.run(*base, "-n", 3, "-l", "2000+100").out)
    t.ok("logit bias", d.get("tokens") == [2000] * 3, d)


def check_without_tokenizer(t):
    gguf = Gguf(t.model)
    for key in [k for k in gguf.keys if k.startswith("tokenizer.")]:
        del gguf.keys[key]
    path = gguf.write(t.temp("no-tokenizer.gguf"))
    want = t.run("run", t.model, "--tokens", "511,576,258,430", "-n", 10, "--temp", 0, "--ids",
                 "--ignore-eos").ids
    r = t.run("run", path, "--tokens", "511,576,258,430", "-n", 10, "--temp", 0, "--ids")
    t.ok("no tokenizer: --ids", r.code == 0 and r.ids == want and len(want) == 10,
         f"{r.ids} {r.err}, expected {want}")
    r = t.run("run", path, "--tokens", "-", "-n", 10, "--temp", 0, stdin=b"511 576 258\n430")
    t.ok("no tokenizer: ids from standard input", r.ids == want, f"{r.out!r} {r.err}")
    r = t.run("logits", path, "--tokens", "1,2", "--out", t.temp("nt.f32"))
    t.done_well("no tokenizer: logits", r)
    t.done_well("no tokenizer: inspect", t.run("inspect", path))
    t.done_well("no tokenizer: plan", t.run("plan", path, "--tokens", 3))


# --- interrupting ----------------------------------------------------------------------------------------

def interrupted(t, args, after_output, delay, stdin=os.devnull):
    """Runs, sends SIGINT (after the first output, then a delay); (code, seconds to the end, stderr, ran until
    then)."""
    with open(stdin, "rb") as f:
        p = subprocess.Popen([t.tenon, *map(str, args)], stdin=f, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=t.env)
    if after_output:
        os.read(p.stdout.fileno(), 1)
    time.sleep(delay)
    running = p.poll() is None
    start = time.monotonic()
    p.send_signal(signal.SIGINT)
    try:
        err = p.communicate(timeout=30)[1].decode()
    except subprocess.TimeoutExpired:
        p.kill()
        err = p.communicate()[1].decode()
    return p.returncode, time.monotonic() - start, err, running


def check_cut_file(t):
    """The model's file is cut while text is generated: one line, or nothing at all if it was read."""
    for flags in ([], ["--no-mmap"]):
        path = t.temp("cut.gguf")
        shutil.copy(t.model, path)
        p = subprocess.Popen([t.tenon, "run", path, "-p", STORY, "-n", "300", "--ignore-eos", *flags],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=t.env)
        os.read(p.stdout.fileno(), 1)
        os.truncate(path, 100000)
        err = p.communicate(timeout=120)[1].decode()
        name = "file cut while in use" + " ".join(["", *flags])
        if flags:
            t.ok(name, p.returncode == 0 and not err, f"{p.returncode} {err!r}")
        else:
            told = err.count("\n") == 1 and ("shorter" in err or "--no-mmap" in err)
            t.ok(name, p.returncode == 1 and told, f"{p.returncode} {err!r}")


def check_interrupt(t, quick):
    limit = 10 if quick else 3  # seconds; alone it is some hundredths
    args = ["run", t.model, "-p", STORY, "--ignore-eos", "-n", 200000, "-c", 262144, "--stats"]
    code, seconds, err, running = interrupted(t, args, True, 0.3)
    t.ok("Ctrl-C while generating: was running", running, err)
    t.ok("Ctrl-C while generating: code", code in (0, 130), f"{code} {err!r}")
    t.ok("Ctrl-C while generating: time", seconds < limit, f"{seconds:.2f} s")
    t.ok("Ctrl-C while generating: figures", "t/s" in err, err)
    path = t.temp("interrupted.session")
    code, seconds, err, running = interrupted(t, [*args, "-c", 4096, "--session", path], True, 0.3)
    r = t.run("run", t.model, "-p", STORY, "-n", 1, "-c", 4096, "--session", path, "--json")
    t.ok("Ctrl-C while generating: the session is saved",
         running and as_json(t, "session", r.out).get("reused_tokens") == 3,
         f"{code} {err} {r.err}")
    ids = t.temp("many.txt")
    with open(ids, "w", encoding="ascii") as f:
        f.write("300 576 258 430 " * 15000)
    code, seconds, err, running = interrupted(t, ["run", t.model, "--tokens", "-", "-c", 65536, "-n", 1],
                                              False, 0.8, ids)
    t.ok("Ctrl-C in the prompt: was running", running, err)
    t.ok("Ctrl-C in the prompt: code", code in (0, 130), f"{code} {err!r}")
    t.ok("Ctrl-C in the prompt: time", seconds < limit, f"{seconds:.2f} s")
    p = subprocess.Popen([t.tenon, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE,
                         env=t.env)
    os.read(p.stdout.fileno(), 1)
    p.stdout.close()
    try:
        code = p.wait(timeout=30)
    except subprocess.TimeoutExpired:
        p.kill()
        code = p.wait()
    p.stderr.close()
    t.ok("reader goes away: ends by itself", code in (0, 1), code)


# --- text ------------------------------------------------------------------------------------------------

TEXTS = ["Hello, world!", "  two  blanks\tand a tab\n\nlines\n", "naïve café — “quotes” 日本語 😀", "a" * 500,
         "1234567890",
         "<|im_end|> is text here", "\u0000 and \u0007" * 3, "'s 'll I'M"]


def check_tokenize(t):
    for i, text in enumerate(TEXTS):
        path = t.temp("text.txt")
        with open(path, "wb") as f:
            f.write(text.encode())
        r = t.run("tokenize", t.model, "--ids", "-f", path)
        back = t.run("detokenize", t.model, "-f", "-", stdin=r.out)
        t.ok(f"round trip {i}", r.code == 0 and back.out == text.encode(),
             f"{r.out!r} {back.out!r} {back.err}")
        d = as_json(t, "tokenize --json", t.run("tokenize", t.model, "--json", "-f", path).out)
        t.ok(f"tokenize --json {i}", d.get("tokens") == r.ids, d)
    with open(os.path.join(t.bundled, "heldout.txt"), "rb") as f:
        text = f.read()
    r = t.run("tokenize", t.model, "--ids", stdin=text)
    t.ok("tokenize the held-out text", len(r.ids) == 55142, len(r.ids))
    # The kind of tokenizer that the file names removes blanks before punctuation when it decodes.
    cleaned = re.sub(rb" ([?!.,]|n't|'m|'s|'ve|'re)", rb"\1", text).replace(b" ' ", b"'")
    t.ok("detokenize it", t.run("detokenize", t.model, stdin=r.out).out == cleaned)
    t.ok("--special", t.run("tokenize", t.model, "--ids", "--special", "-p", "<|im_end|>").ids == [2047], "")
    t.ok("special as text", 2047 not in t.run("tokenize", t.model, "--ids", "-p", "<|im_end|>").ids, "")
    t.ok("detokenize --special", t.run("detokenize", t.model, "--special", "2047").out == b"<|im_end|>", "")
    t.ok("detokenize no special", t.run("detokenize", t.model, "2047").out == b"", "")
    r = t.run("tokenize", t.model, "Hello", "there")
    t.ok("one line per token",
         len(r.out.splitlines()) == len(t.run("tokenize", t.model, "--ids", "Hello there").ids), r.out)
    t.ok("empty text", t.run("tokenize", t.model, "--ids", "-p", "").ids == [], "")


# --- numbers ---------------------------------------------------------------------------------------------

def logits(t, name, path, tokens, *flags):
    out = t.temp("logits.f32")
    r = t.run("logits", path, "--tokens", ",".join(map(str, tokens)), "--out", out, *flags)
    return read_f32(out) if t.done_well(name, r) else ()


def check_logits(t, expected):
    e = expected["prompts"][0]
    f32 = ["-ctk", "f32", "-ctv", "f32"]
    rows = logits(t, "logits", t.model, e["ids"], *f32)
    t.ok("logits: size", len(rows) == len(e["ids"]) * 2048, len(rows))
    for token, want in e["top5_first"]:
        got = rows[-2048 + token] if rows else 0
        t.ok("logits: values", abs(got - want) < 0.3, f"token {token}: {got}, expected {want}")
    tokens = list(range(100, 148))
    whole = logits(t, "logits -b 48", t.model, tokens, "-b", 48)
    # OpenBLAS does not round the rows of x, and does not take single rows.
    own = ["-b", 48, "--backend", "cpu", "--blas", "off"]
    whole_own = logits(t, "logits --blas off", t.model, tokens, *own)
    bound = 1e-6 if whole == whole_own else 0.02
    last = logits(t, "logits --last", t.model, tokens, "-b", 48, "--last")
    t.ok("logits --last", rel_l2(last, whole[-2048:]) < bound, rel_l2(last, whole[-2048:]))
    last = logits(t, "logits --blas off --last", t.model, tokens, *own, "--last")
    t.ok("logits --blas off --last", rel_l2(last, whole_own[-2048:]) < 1e-6, rel_l2(last, whole_own[-2048:]))
    for flags in (["-b", 1], ["-b", 7], ["--fusion", "off"], f32):
        other = logits(t, f"logits {flags}", t.model, tokens, *flags)
        t.ok(f"logits {flags}", rel_l2(other, whole) < 0.02, rel_l2(other, whole))
    modes = {m: logits(t, f"logits --precision {m}", t.model, tokens, *own, "--precision", m)
             for m in ("auto", "int8", "f32")}
    t.ok("logits --precision int8 is auto on the CPU", modes["int8"] == modes["auto"], "")
    t.ok("logits --precision f32", 0 < rel_l2(modes["f32"], modes["auto"]) < 0.1,
         rel_l2(modes["f32"], modes["auto"]))
    r = t.run("logits", t.model, "--tokens", "1 2 3", "--out", "-")
    t.ok("logits to standard output", r.code == 0 and len(r.out) == 3 * 2048 * 4, len(r.out))
    t.ok("logits are finite", all(map(math.isfinite, whole)), "")


def check_golden(t, folder, quick):
    if not folder:
        return t.skip("golden models", "not here")
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as f:
        models = json.load(f)["models"]
    chosen = ("llama", "qwen3", "gemma3", "gpt2", "phi3", "qwen3moe", "llama_q4_k_m", "qwen3_q8_0",
              "gemma3_q2_k")
    for m in models:
        if m["name"] not in chosen[:2 if quick else len(chosen)]:
            continue
        path, want = os.path.join(folder, m["file"]), read_f32(os.path.join(folder, m["logits"]["file"]))
        bound = m["tolerance"]["natural_rel_l2"]
        for b in (48, 1):
            err = rel_l2(logits(t, m["name"], path, m["tokens"], "-b", b, "-c", m["n_ctx"]), want)
            t.ok(f"{m['name']}: logits -b {b}", err <= bound, f"relative error {err:.3g}, bound {bound}")
        if "quant" not in m:
            err = rel_l2(logits(t, m["name"], path, m["tokens"], "-ctk", "f32", "-ctv", "f32", "-c",
                                m["n_ctx"]), want)
            t.ok(f"{m['name']}: f32 cache", err <= m["tolerance"]["strict_rel_l2"],
                 f"relative error {err:.3g}")
        n = next((i for i, x in enumerate(m["greedy_margins"]) if x <= 0.2), 16)
        r = t.run("run", path, "--tokens", ",".join(map(str, m["tokens"])), "-n", 16, "--temp", 0, "--ids",
                  "--ignore-eos",
                  "-c", m["n_ctx"])
        t.ok(f"{m['name']}: greedy", r.code == 0 and r.ids[:n] == m["greedy"][:n],
             f"{r.ids} {r.err}, expected {m['greedy'][:n]}")


def check_perplexity(t, quick):
    text = os.path.join(t.bundled, "heldout.txt")
    base = t.temp("base.kl")
    d = as_json(t, "perplexity",
                t.run("perplexity", t.model, "-f", text, "--chunks", 8, "--json", "--kl-base", base).out)
    value = d.get("perplexity", 99)
    t.ok("perplexity of 8 windows", 1 < value < 2, d)
    r = t.run("perplexity", t.model, "-f", text, "--chunks", 8)
    t.ok("perplexity as text", f"{value:.4f}" in r.text, r.out)
    d = as_json(t, "--kl", t.run("perplexity", t.model, "--kl", base, "--json").out)
    t.ok("--kl with itself", t_number(d, "kl") is not None and t_number(d, "kl") < 1e-6, d)
    r = t.run("quantize", t.model, t.temp("q4.gguf"), "Q4_0")
    d = as_json(t, "--kl", t.run("perplexity", t.temp("q4.gguf"), "--kl", base, "--json").out)
    t.ok("--kl of Q4_0", 1e-6 < (t_number(d, "kl") or 0) < 0.5, d)
    if quick:
        return t.skip("perplexity of the whole text", "--quick")
    d = as_json(t, "perplexity", t.run("perplexity", t.model, "-f", text, "--json", timeout=900).out)
    want = 1.42178  # models/bundled/README.md, second half of each window, double precision
    t.ok("perplexity of the whole text", abs(d.get("perplexity", 99) / want - 1) < 0.003,
         f"{d}, expected {want}")


def t_number(d, word):
    """The mean divergence, whatever the object nests it in."""
    for key, value in d.items():
        if word in key and isinstance(value, (int, float)):
            return value
        if isinstance(value, dict):
            inner = value.get("mean") if word in key else t_number(value, word)
            if inner is not None:
                return inner
    return None


# --- files -----------------------------------------------------------------------------------------------

def dequantised(tensor, data):
    """F32 and Q8_0 as in the file format: blocks of 32 int8 behind a half-precision scale."""
    raw = data[tensor["offset"]:tensor["offset"] + tensor["bytes"]]
    if tensor["type"] == "F32":
        return struct.unpack(f"<{len(raw) // 4}f", raw)
    out = []
    for at in range(0, len(raw), 34):
        scale, = struct.unpack_from("<e", raw, at)
        out += [scale * v for v in struct.unpack_from("<32b", raw, at + 2)]
    return tuple(out)


def check_inspect(t):
    d = as_json(t, "inspect --json", t.run("inspect", t.model, "--json").out)
    model = d.get("model") or {}
    t.ok("inspect: model",
         model.get("architecture") == "llama" and model.get("layers") == 8
         and model.get("vocabulary") == 2048, model)
    keys = {k["name"]: k["value"] for k in d.get("keys", [])}
    t.ok("inspect: keys", keys.get("llama.block_count") == "8", keys)
    t.ok("inspect: bytes", d.get("bytes") == os.path.getsize(t.model), d.get("bytes"))
    with open(t.model, "rb") as f:
        data = f.read()
    tensors = {x["name"]: x for x in d.get("tensors", [])}
    t.ok("inspect: sizes add up", sum(x["bytes"] for x in tensors.values()) == model.get("weight_bytes"), "")
    for name in ("output_norm.weight", "blk.0.attn_k.weight", "blk.7.ffn_down.weight"):
        r = t.run("inspect", t.model, "--tensor", name, "--out", t.temp("tensor.f32"))
        t.ok(f"--tensor {name}",
             r.code == 0 and r.out == b""
             and read_f32(t.temp("tensor.f32")) == dequantised(tensors[name], data), r.err)
    memory = d.get("memory", {})
    devices = memory.get("devices", [])
    total = sum(x["total"] - x["weights"] for x in devices)
    t.ok("inspect: memory by device",
         devices and total == memory.get("session") and devices[-1]["device"] == "cpu", memory)
    r = t.run("inspect", t.model)
    t.ok("inspect as text",
         r.code == 0 and all(w in r.text for w in ("llama", "token_embd.weight", "Q8_0", "MiB")), r.out)
    t.ok("inspect --keys", "tokenizer.ggml.model" in t.run("inspect", t.model, "--keys").text, "")
    t.ok("inspect --tensors", len(t.run("inspect", t.model, "--tensors").out.splitlines()) == len(tensors),
         "")
    t.done_well("inspect --check", t.run("inspect", t.model, "--check"))
    bad = bytearray(data)
    struct.pack_into("<f", bad, tensors["output_norm.weight"]["offset"], math.nan)
    with open(t.temp("nan.gguf"), "wb") as f:
        f.write(bad)
    r = t.run("inspect", t.temp("nan.gguf"), "--check")
    t.ok("inspect --check finds a NaN", r.code == 3 and "output_norm.weight" in r.err, f"{r.code} {r.err}")


def check_plan(t):
    flags = ["plan", t.model, "--tokens", 16]
    text = t.run(*flags)
    t.ok("plan as text",
         text.code == 0 and all(w in text.text for w in ("recorded", "matmul", "attention", "arena")),
         text.err)
    d = as_json(t, "plan --json", t.run(*flags, "--json").out)
    t.ok("plan --json", isinstance(d, dict) and len(json.dumps(d)) > 1000 and "steps" in d, list(d))
    dot = t.run(*flags, "--dot").text
    t.ok("plan --dot", dot.startswith("digraph") and dot.count("{") == dot.count("}") and "->" in dot,
         dot[:200])
    svg = t.run(*flags, "--svg").text
    try:
        t.ok("plan --svg", xml.fromstring(svg).tag.endswith("svg"), svg[:200])
    except xml.ParseError as e:
        t.ok("plan --svg", False, e)
    r = t.run(*flags, "--svg", "--out", t.temp("plan.svg"))
    with open(t.temp("plan.svg"), encoding="utf-8") as f:
        t.ok("plan --out", r.code == 0 and r.out == b"" and f.read() == svg, r.err)
    off = as_json(t, "plan --fusion off", t.run(*flags, "--json", "--fusion", "off").out)
    t.ok("plan --fusion off has more steps",
         len(json.dumps(off.get("steps"))) > len(json.dumps(d.get("steps"))), "")
    exact = as_json(t, "plan --precision",
                    t.run(*flags, "--json", "--backend", "cpu", "--precision", "f32").out)
    rounds = [{s.get("precision") for s in p["steps"] if "matmul" in s["op"]} for p in (exact, d)]
    t.ok("plan --precision",
         exact["precision"] == "f32" and rounds[0] == {"f32"} and d["precision"] == "auto"
         and None not in rounds[1], rounds)
    memory = (r"^memory on cpu: arena \d+ bytes \(lower bound \d+\), scratch \d+, inputs \d+, states \d+, "
              r"weights \d+$")
    t.ok("plan: devices", re.search(memory, text.text, re.M) and d["devices"][-1]["state_bytes"] > 0,
         d.get("devices"))
    ratio = re.search(r"arena / lower bound: ([0-9.]+)", text.text)
    t.ok("plan: memory near its bound", ratio and float(ratio.group(1)) <= 1.05, ratio and ratio.group(0))


def check_quantize_types(t):
    flags = ["--tensor-type", "attn_v=q8_0", "--tensor-type", "blk.?.ffn_*=Q5_K", "--token-embedding-type",
             "Q4_1"]
    r = t.run("quantize", t.model, t.temp("types.gguf"), "Q4_0", *flags)
    t.ok("quantize: a line per tensor",
         r.code == 0 and len(re.findall(r"^\[ ?\d+/\d+\] \S+ +\S+ -> \S+ +rmse 0\.\d+$", r.err, re.M)) > 40,
         r.err[:300])
    kinds = dict(re.findall(r"^(\S+\.weight) +(\w+) ",
                            t.run("inspect", t.temp("types.gguf"), "--tensors").text, re.M))
    want = {"blk.1.attn_v.weight": "Q8_0", "blk.7.ffn_up.weight": "Q5_K", "blk.0.attn_q.weight": "Q4_0",
            "token_embd.weight": "Q4_1", "output_norm.weight": "F32"}
    t.ok("quantize --tensor-type", want.items() <= kinds.items(), kinds)


def check_quantize_ends(t):
    """A run that a signal ends leaves nothing behind."""
    folder = t.temp("ends")
    os.mkdir(folder)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        out = os.path.join(folder, "out.gguf")
        p = subprocess.Popen([t.tenon, "quantize", t.model, out, "Q2_K", "-t", "1"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=t.env)
        p.stderr.readline()  # of the first tensor
        p.send_signal(getattr(signal, name))
        p.stderr.read()
        code = p.wait(timeout=60)
        p.stderr.close()
        done = code == 0 and os.listdir(folder) == ["out.gguf"]  # it was faster
        t.ok(f"quantize, {name}", done or code == 128 + getattr(signal, name) and os.listdir(folder) == [],
             (code, os.listdir(folder)))
        if done:
            os.remove(out)


def check_quality(t):
    """Fewer bits, more divergence: the K types of one kind, without the mixes that spend bits where they
    matter most."""
    flags = ["--cache-type-k", "f32", "--cache-type-v", "f32"]
    t.done_well("quantize F32", t.run("quantize", t.model, t.temp("base.gguf"), "F32"))
    text = os.path.join(t.bundled, "heldout.txt")
    t.done_well("--kl-base",
                t.run("perplexity", t.temp("base.gguf"), "-f", text, "--chunks", 3, "--kl-base",
                      t.temp("base.kl"), *flags))
    found = []
    for kind in ("F16", "Q8_0", "Q6_K", "Q5_K_S", "Q4_K_S", "Q3_K_S", "Q2_K_S"):
        t.run("quantize", t.temp("base.gguf"), t.temp("q.gguf"), kind)
        d = as_json(t, "quality " + kind,
                    t.run("perplexity", t.temp("q.gguf"), "--kl", t.temp("base.kl"), "--json", *flags).out)
        found.append((d.get("kl", {}).get("mean", -1), kind))
    t.ok("quality by type", found == sorted(found) and found[0][0] >= 0 and found[-1][0] < 0.1, found)


def check_quantize(t, quick):
    listed = t.run("quantize", t.model, t.temp("x.gguf"), "?").err.split("takes", 1)[-1].split()
    t.ok("quantize: types", {"F16", "Q8_0", "Q4_K_M", "Q4_0", "IQ4_XS", "Q2_K"} <= set(listed), listed)
    for kind in listed[:3] if quick else listed:
        out = t.temp(f"{kind}.gguf")
        r = t.run("quantize", t.model, out, kind)
        t.ok(f"quantize {kind}", r.code == 0 and r.out == b"" and os.path.getsize(out) > 1000000, r.err)
        t.done_well(f"inspect --check {kind}", t.run("inspect", out, "--check"))
        r = t.run("run", out, "-st", "-p", "What colour is the sky?", "--temp", 0, "-n", 12)
        # 2 and 3 bits per weight are too few for so small a model to keep its words.
        right = "sky is blue" in r.text if not re.match(r"Q[23]|IQ[123]", kind) else len(r.out) > 0
        t.ok(f"run {kind}", r.code == 0 and right, f"{r.out!r} {r.err}")
        os.remove(out)
    r = t.run("quantize", t.model, t.temp("j.gguf"), "q4_0", "--json")
    d = as_json(t, "quantize --json", r.out)
    t.ok("quantize --json", d.get("bytes_out") == os.path.getsize(t.temp("j.gguf")) < d.get("bytes_in", 0), d)
    lines = d.get("by_tensor", [])
    t.ok("quantize --json: tensors",
         len(lines) == d.get("tensors")
         and d.get("rmse_max") == max(x["rmse"] for x in lines) > d.get("rmse") > 0, lines[:3])
    first = open(t.temp("j.gguf"), "rb").read()
    t.run("quantize", t.model, t.temp("j2.gguf"), "Q4_0", "-t", 1)
    check_quantize_types(t)
    check_quantize_ends(t)
    if not quick:
        check_quality(t)
    t.ok("quantize is the same each time", first == open(t.temp("j2.gguf"), "rb").read(), "")


# --- the rest --------------------------------------------------------------------------------------------

def check_bench(t):
    shape = ["--layers", 2, "--width", 256, "--heads", 4, "--kv-heads", 2, "--head-dim", 64, "--ffn", 512,
             "--vocab", 512]
    flags = ["bench", "--shape", "llama-1b", *shape, "-p", 32, "-n", 4, "-r", 2, "--no-peaks"]
    d = as_json(t, "bench", t.run(*flags, "--json").out)
    results = {r["test"]: r for r in d.get("results", [])}
    t.ok("bench --json",
         set(results) == {"pp32", "tg4"} and all(r["tokens_per_second"] > 0 for r in results.values()), d)
    t.ok("bench --json: host", d.get("host_ns_per_step", 0) > 0, d)
    r = t.run(*flags, "--csv")
    t.ok("bench --csv", r.code == 0 and len({line.count(",") for line in r.text.strip().splitlines()}) == 1,
         r.out)
    r = t.run(*flags)
    t.ok("bench as Markdown", r.code == 0 and "|" in r.text and "pp32" in r.text and "tg4" in r.text, r.out)
    d = as_json(t, "bench of several counts", t.run(*flags, "--sequences", "3,1,5", "--json").out)
    found = [(r["test"], r["sequences"]) for r in d.get("results", [])]
    t.ok("in the order given, prefill once",
         found == [("pp32", 1), ("tg4 x 3", 3), ("tg4", 1), ("tg4 x 5", 5)], found)
    t.ok("times of what was measured", all(r["end_ns"] > r["begin_ns"] for r in d["results"]), d)
    head = ["bench", "--shape", "qwen2-7b", *shape, "-r", 2, "--no-peaks"]
    d = as_json(t, "bench --texts", t.run(*head, "-p", 32, "--texts", "1,40", "--json").out)
    found = [(r["test"], r["texts"]) for r in d.get("results", [])]
    t.ok("texts are classified", found == [("cls32 x 1", 1), ("cls32 x 40", 40)], found)
    t.ok("texts and tokens", all(abs(r["texts_per_second"] * 32 / r["tokens_per_second"] - 1) < 1e-6
                                 for r in d["results"]), d)
    r = t.run(*head, "-p", "16,32", "--texts", 2, "--classes", 0, "--csv")
    t.ok("texts become vectors", r.code == 0 and "emb16 x 2" in r.text and "emb32 x 2" in r.text, r.err)
    r = t.run(*head, "-p", 16, "--texts", 2)
    t.ok("texts as Markdown", r.code == 0 and "cls16 x 2" in r.text and "texts/s" in r.text, r.text + r.err)
    r = t.run(*head, "-p", 0, "--texts", 2)
    t.ok("texts without a length", r.code == 2 and "-p" in r.err, r.err)
    t.done_well("bench of a file", t.run("bench", t.model, "-p", 16, "-n", 2, "-r", 1, "--no-peaks"))


def check_profile(t):
    path = t.temp("trace.json")
    t.done_well("--profile", t.run("run", t.model, "-p", STORY, "-n", 4, "--profile", path))
    with open(path, encoding="utf-8") as f:
        d = as_json(t, "--profile", f.read())
    events = d.get("traceEvents", d) if isinstance(d, dict) else d
    t.ok("--profile events", len([e for e in events if e.get("ph") == "X" and e["dur"] >= 0]) > 10,
         str(events)[:300])


def check_general(t):
    r = t.run("--version")
    t.ok("--version", r.code == 0 and re.fullmatch(r"tenon \d+\.\d+\.\d+\n", r.text), r.out)
    best = min(t.run("--version").seconds for _ in range(5))
    t.ok("--version is quick", best < 0.2, best)  # start of a process included
    r = t.run("help")
    commands = re.findall(r"^  ([a-z]+) ", r.text, re.M)
    t.ok("help lists the commands",
         r.code == 0 and {"run", "bench", "inspect", "tokenize", "detokenize", "logits", "plan",
                                                     "perplexity", "quantize", "devices"} <= set(commands),
         commands)
    for c in commands:
        a, b = t.run("help", c), t.run(c, "--help")
        t.ok(f"help {c}",
             a.code == 0 and a.out == b.out and a.text.startswith(f"tenon {c}") and a.err == b.err == "",
             a.err)
        t.ok(f"help {c}: width", max(map(len, a.text.splitlines())) <= 160, "")
    r = t.run("devices")
    t.ok("devices", r.code == 0 and r.text.startswith("cpu ") and "cuda" in r.text, r.out)
    r = t.run("devices", "-v", "--blas", "off")
    t.ok("devices -v", r.code == 0 and "OpenBLAS: switched off" in r.text, r.out)
    r = t.run("devices", "-v")
    t.ok("devices -v with a library or the reason", r.code == 0 and re.search(r"OpenBLAS: .+", r.text), r.out)
    d = as_json(t, "devices --json", t.run("devices", "--json").out)
    t.ok("devices --json",
         d.get("devices", [{}])[0].get("name") == "cpu" and d["devices"][0]["memory_total"] > 1e8, d)
    r = t.run("run", t.model, "-p", STORY, "-n", 3, "--temp", 0, "--backend", "cpu", "-v")
    t.ok("-v says the device",
         r.code == 0 and "cpu" in r.err and all(x.startswith("tenon: ") for x in r.err.splitlines()), r.err)
    one = t.run("run", t.model, "-p", STORY, TENON_TEMP="0", TENON_PREDICT="7", TENON_IDS="1")
    t.ok("environment", one.code == 0 and len(one.ids) == 7, f"{one.out!r} {one.err}")
    two = t.run("run", t.model, "-p", STORY, "-n", 3, TENON_TEMP="0", TENON_PREDICT="7", TENON_IDS="1")
    t.ok("flags win over the environment", len(two.ids) == 3, two.out)


def main():
    t, quick, golden = arguments()
    with open(os.path.join(t.bundled, "expected.json"), encoding="utf-8") as f:
        expected = json.load(f)
    for part, args in ((check_general, ()), (check_greedy, (expected,)), (check_variants, ()),
                       (check_seed, ()), (check_forms, ()),
                       (check_prompts, ()), (check_session, ()), (check_guesses, ()), (check_ends, ()),
                       (check_without_tokenizer, ()), (check_cut_file, ()), (check_interrupt, (quick,)),
                       (check_tokenize, ()), (check_logits, (expected,)), (check_golden, (golden, quick)),
                       (check_perplexity, (quick,)), (check_inspect, ()), (check_plan, ()),
                       (check_quantize, (quick,)),
                       (check_bench, ()), (check_profile, ())):
        start = time.monotonic()
        try:
            part(t, *args)
        except (OSError, KeyError, TypeError, ValueError, IndexError) as e:
            t.ok(part.__name__, False, f"{type(e).__name__}: {e}")
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
    return t.done()


sys.exit(main())
