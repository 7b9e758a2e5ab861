# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal: bars, no escape sequences where none are wanted, Ctrl-C in every phase, the
end of bold text; and failures as JSON for programs.

    test_terminal.py TENON
"""
import json
import os
import re
import sys
import time

from cli import Gguf, arguments, as_json, on_terminal

ESCAPE = b"\x1b"
def is_clean(seen):
    """Whether the next line that a shell prints begins at the left edge of an empty line."""
    return seen.endswith((b"\n", b"\r\x1b[K"))


def check_bars(t, text):
    ppl = ["perplexity", t.model, "-f", text, "-c", 64, "--chunks", 4]
    quantize = ["quantize", t.model, t.temp("q.gguf"), "Q4_0"]
    for name, args in (("perplexity", ppl), ("quantize", quantize)):
        seen, code = on_terminal(t, args)
        t.ok(f"{name}: a bar", code == 0 and re.search(rb"\r\[[#.]{20}\] +\d+ %", seen), seen[-300:])
        seen, code = on_terminal(t, args, TERM="dumb")
        t.ok(f"{name}: TERM=dumb", code == 0 and ESCAPE not in seen, seen[-300:])
        r = t.run(*args, TERM="xterm")
        t.ok(f"{name}: no terminal", r.code == 0 and "\x1b" not in r.err + r.text and "%" not in r.err, r.err)
    seen, code = on_terminal(t, ["run", t.model, "-p", "Hello", "-n", 2], TERM="dumb")
    t.ok("run: TERM=dumb", code == 0 and ESCAPE not in seen, seen)
    seen, code = on_terminal(t, ["bench", t.model, "-p", 8, "-n", 2, "-r", 1, "--no-peaks"], TERM="dumb")
    t.ok("bench: TERM=dumb", code == 0 and ESCAPE not in seen, seen)
    t.ok("bench: threads once", seen.count(b" threads") == 1, seen)


def check_chat(t):
    home = {"HOME": t.folder.name, "XDG_STATE_HOME": t.temp("state")}
    chat = ["run", t.model, "-n", 2]
    seen, code = on_terminal(t, [*chat, "--color", "always"], rb">>>.{0,9}$", b"\x04", **home)
    bold, ends = seen.rfind(b"\x1b[1m"), seen.rfind(b"\x1b[0m")
    t.ok("bold ends behind the prompt", code == 0 and b">>> " in seen and bold <= ends, seen)
    seen, code = on_terminal(t, chat, rb">>> $", b"\x04", TERM="dumb", **home)
    t.ok("chat: TERM=dumb", code == 0 and ESCAPE not in seen, seen)


def check_interrupts(t, text):
    """Ctrl-C: 130, and a clean line."""
    big = t.temp("big.gguf")
    with open(t.model, "rb") as f:
        good = f.read()
    with open(big, "wb") as f:
        f.write(good)
        f.truncate(8 << 30)  # a hole, whose pages are read as zeros
    gguf = Gguf(t.model)  # the same as a tensor, which is read ahead
    gguf.add_f32("unused.weight", [1 << 28], [])
    holes = gguf.write(t.temp("holes.gguf"))
    os.truncate(holes, os.path.getsize(holes) + (4 << 28))
    long = t.temp("long.txt")
    with open(text, "rb") as f, open(long, "wb") as out:
        out.write(f.read()[:400000] * 4)
    slow = ["-t", 1, "--isa", "reference"]
    cases = {
        "generation": (["run", t.model, "-p", "Once", "-n", 5000, "-c", 8192, "--ignore-eos", *slow],
                       rb"Once.|\w\w\w"),
        "prompt": (["run", t.model, "-f", long, "-c", 1000000, *slow], rb""),
        "perplexity": (["perplexity", t.model, "-f", long, "-c", 256, *slow], rb"window|%"),
        "quantize": (["quantize", t.model, t.temp("out.gguf"), "Q4_K_M", "-t", 1], rb"tensor \d|\[ ?\d"),
        "read-ahead": (["run", holes, "-p", "x", "-n", 1], rb""),
        "read": (["run", holes, "--no-mmap", "-p", "x", "-n", 1], rb""),
        "load": (["run", big, "--check", "-p", "x", "-n", 1], rb""),
    }
    for name, (args, until) in cases.items():
        delay = 1 if name in ("prompt", "load", "read", "read-ahead") else 0.05
        seen, code = on_terminal(t, args, until, b"\x03", seconds=90, delay=delay)
        done = code == 0 and name in ("load", "quantize", "read", "read-ahead")  # it was faster
        t.ok(f"Ctrl-C: {name}", code == 130 or done, f"{code} {seen[-200:]}")
        t.ok(f"Ctrl-C: {name}: a clean line", is_clean(seen) or done, seen[-200:])
        at = seen.rfind(b"tenon: ")
        t.ok(f"Ctrl-C: {name}: the message at the left edge",
             at <= 0 or seen[:at].endswith((b"\n", b"\r\x1b[K")), seen[-200:])
    t.ok("Ctrl-C: no half file", not [f for f in os.listdir(t.folder.name) if "out.gguf" in f]
         or os.path.getsize(t.temp("out.gguf")) > 1000000, os.listdir(t.folder.name))


def check_json(t):
    """A failure with --json is an object with the code and the message of standard error."""
    none = t.temp("none.gguf")
    for name, args, code in (("run", ["run", none, "-p", "x"], 1), ("inspect", ["inspect", none], 1),
                             ("tokenize", ["tokenize", none, "x"], 1), ("embed", ["embed", none, "x"], 1),
                             ("bench", ["bench", none], 1), ("plan", ["plan", none], 1),
                             ("perplexity", ["perplexity", none, "-f", none], 1),
                             ("quantize", ["quantize", none, t.temp("x"), "Q8_0"], 1),
                             ("context", ["run", t.model, "--tokens", "1,2,3", "-c", 2], 6),
                             ("schema", ["run", t.model, "-p", "x", "--json-schema", '{"type": 3}'], 2),
                             ("grammar", ["run", t.model, "-p", "x", "--grammar", "root ::= ("], 2),
                             ("flag", ["run", t.model, "--tempp", "1"], 2)):
        r = t.run(*args, "--json")
        error = as_json(t, f"failure of {name}", r.out.decode()).get("error", {})
        t.ok(f"failure of {name}", r.code == code == error.get("code") and
             r.err.splitlines()[-1] == f"tenon: {error.get('message')}", f"{r.code} {r.out} {r.err}")
    r = t.run("run", t.model, "-p", "x", "--json", "--ids")
    t.ok("two forms: nothing", r.code == 2 and not r.out, r.out)
    r = t.run("run", none, "-p", "x")
    t.ok("without --json: nothing", r.code == 1 and not r.out, r.out)


def check_log(t):
    r = t.run("run", t.model, "Hello", "-n", 2, "--log-level", "debug")
    t.ok("debug tells of load, session, chat", r.code == 0 and all(
        w in r.err for w in ("opened in", "cache of keys", "chat template", "stop: limit")), r.err)
    t.ok("info does not", "cache of keys" not in t.run("run", t.model, "Hello", "-n", 2, "-v").err, "")


def check_quantize(t):
    r = t.run("quantize", t.model, t.temp("again.gguf"), "Q4_0")
    t.ok("rounding twice warns", r.code == 0 and r.err.count("warning: ") == 1 and "Q8_0 already" in r.err,
         r.err[:300])
    r = t.run("quantize", t.model, t.temp("again.gguf"), "Q8_0", "--json")
    t.ok("the same type does not", r.code == 0 and "warning" not in r.err and json.loads(r.out), r.err)


def main():
    t, _, _ = arguments()
    text = os.path.join(t.bundled, "heldout.txt")
    check_bars(t, text)
    check_chat(t)
    check_interrupts(t, text)
    check_json(t)
    check_quantize(t)
    check_log(t)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
