#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What differs on Windows: texts and paths that are not ASCII, bytes of streams, Ctrl-C, large mapped files,
files that replace others, folders of the user, patterns. Under wine.

    test_tool.py TENON.sh     a script that starts the program
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
from cli import Result, arguments, on_terminal  # noqa: E402

WHERE = ("run", "-st", "-p", "Where does Mia live?", "--temp", "0")
ANSWER = "Mia lives in the blue house by the river."
UMLAUTS = "größe und 漢字 \N{SNOWMAN}"


def ask(t, model, **env):
    return t.run(WHERE[0], model, *WHERE[1:], **env)


def check_paths(t):
    folder = t.temp(UMLAUTS)
    os.mkdir(folder)
    model = os.path.join(folder, "ein Modell ä.gguf")
    os.link(t.model, model) if os.stat(t.model).st_dev == os.stat(folder).st_dev else \
        pathlib.Path(model).write_bytes(pathlib.Path(t.model).read_bytes())
    t.ok("a path with umlauts and blanks", ask(t, model).text == ANSWER, ask(t, model).err)
    t.ok("with backslashes", ask(t, model.replace("/", "\\")).text == ANSWER)
    r = t.run("run", os.path.join(folder, "keins ö.gguf"), "-p", "x")
    t.ok("a path in a message", r.code == 1 and "keins ö.gguf" in r.err and "(error 2)" in r.err, r.err)
    out = os.path.join(folder, "Ausgabe ß.f32")
    for i in range(2):  # the second replaces the first
        t.done_well("a file is written", t.run("logits", model, "--tokens", "1,2,3", "--out", out))
    t.ok("its size", os.path.getsize(out) % 4 == 0 and os.path.getsize(out) > 0)
    small = os.path.join(folder, "klein ü.gguf")
    for i in range(2):
        t.done_well("a model is written", t.run("quantize", model, small, "Q8_0", "-t", "1"))
    t.done_well("and read", t.run("inspect", small))
    t.ok("nothing else is left there", sorted(os.listdir(folder)) ==
         sorted([os.path.basename(p) for p in (model, out, small)]), os.listdir(folder))
    r = t.run("quantize", model, model, "Q8_0")
    t.ok("the same file twice", r.code == 2 and "same file" in r.err, r.err)
    r = ask(t, folder)
    t.ok("a folder with two models", r.code == 1 and "2 models" in r.err, r.err)
    long_folder = t.temp("/".join(["lang" * 20] * 4))
    os.makedirs(long_folder)
    long_path = os.path.join(long_folder, "m.gguf")
    pathlib.Path(long_path).write_bytes(pathlib.Path(t.model).read_bytes())
    t.ok("a path of more than 260 characters", ask(t, long_path).text == ANSWER)


def check_texts(t):
    words = "größe 漢字 \N{GRINNING FACE} \"zitiert\" a\\b"
    ids = t.run("tokenize", t.model, words, "--ids").text.split()
    stdin = t.run("tokenize", t.model, "--ids", stdin=words.encode()).text.split()
    t.ok("arguments are UTF-8", ids == stdin and len(ids) > 5, (ids, stdin))
    text = t.run("detokenize", t.model, *ids)
    t.ok("and so is what is printed", text.text.strip() == words, text.text)
    lines = t.run("tokenize", t.model, "--ids", stdin=b"a\r\nb\x1ac")
    t.ok("standard input is bytes", len(lines.ids) > 3, lines.text)
    listed = t.run("help")
    t.ok("standard output is bytes", b"\n" in listed.out and b"\r" not in listed.out)
    r = t.run("logits", t.model, "--tokens", "1", "--out", "-")
    t.ok("zero bytes and ends of text", r.out and len(r.out) % 4 == 0, len(r.out))
    r = t.run("run", t.model, "-p", "x", "--json", "--grammar-file", "nul")
    t.ok("a device is read as one", r.code in (1, 2), (r.code, r.err))
    r = t.run("inspect", "nul")
    t.ok("and is no model", r.code == 1 and "not a regular file" in r.err, r.err)


def check_places(t):
    home = t.temp("home of a user")
    own = os.path.join(home, "Local", "tenon", "models")
    os.makedirs(own)
    os.makedirs(os.path.join(home, "Roaming", "tenon"))
    pathlib.Path(own, "kleines-Q4_0.gguf").write_bytes(pathlib.Path(t.model).read_bytes())
    pathlib.Path(home, "Roaming", "tenon", "config").write_text("temp = 0\n")

    def run(*args, roaming=home + "/Roaming", local=home + "\\Local"):
        """By a shell of Windows: wine sets these variables for the first program."""
        program = re.search(r"'(.*\.exe)'", pathlib.Path(t.tenon).read_text()).group(1).replace("/", "\\")
        script = pathlib.Path(t.temp("run.bat"))
        local, roaming = (p.replace("/", "\\") for p in (local, roaming))
        script.write_text(f"@echo off\r\nchcp 65001 >nul\r\nset LOCALAPPDATA=Z:{local}\r\n"
                          f"set APPDATA=Z:{roaming}\r\n\"Z:{program}\" {' '.join(args)}\r\n",
                          encoding="utf-8")
        p = subprocess.run(["wine", "cmd", "/c", str(script)], capture_output=True, env=t.env, check=False,
                           stdin=subprocess.DEVNULL, timeout=120)
        return Result(p.returncode, p.stdout, p.stderr.decode("utf-8", "replace"), 0)

    r = run("ls")
    t.ok("models of LOCALAPPDATA", r.code == 0 and "kleines" in r.text, (r.text, r.err))
    r = run("config")
    t.ok("settings of APPDATA", "temp = 0" in r.text, (r.text, r.err))
    r = t.run("ls", TENON_MODELS=f"Z:{t.temp('x')};Z:{own}", )
    t.ok("paths in a variable", "kleines" in r.text, (r.text, r.err))
    r = run("doctor")
    t.ok("doctor", r.code == 0 and re.search(r"Windows \d+\.\d+ build \d+", r.text) and
         "1 models" in r.text, (r.text, r.err))


def check_absent(t):
    for command, word in (("serve", "libwebsockets"), ("pull", "libcurl")):
        r = t.run(command, t.model)
        t.ok(f"{command} says why", r.code == 1 and word in r.err, (r.code, r.err))


def check_patterns(t):
    for pattern, wrong in (("exps=cpu", False), ("^blk\\.[0-3]\\.ffn_(up|gate)=cpu", False),
                           ("blk\\.\\d+\\.(?:attn|ffn)_\\w{4}=cpu", False),
                           ("[[:alpha:]]+[^.]*$=cpu", False),
                           ("(a=cpu", True), ("a{2=cpu", True), ("[a=cpu", True), ("*a=cpu", True)):
        r = t.run("run", t.model, "-p", "x", "-n", "1", "--override-tensor", pattern)
        t.ok(f"pattern {pattern}", (r.code == 2 and "regular expression" in r.err) == wrong, r.err)


def put_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def check_large(t):
    """A file of more than 4 GiB, most of it a hole, whose last tensor is read."""
    rows, last = 5 << 18, 64  # 5 GiB of f32 with 1024 values a row
    head = b"GGUF" + struct.pack("<IQQ", 3, 2, 1) + put_text("general.architecture") + struct.pack("<I", 8)
    head += put_text("none")
    head += put_text("hole") + struct.pack("<IQQIQ", 2, 1024, rows, 0, 0)
    head += put_text("end") + struct.pack("<IQIQ", 1, last, 0, rows * 4096)
    path = t.temp("large.gguf")
    start = (len(head) + 31) // 32 * 32
    values = struct.pack(f"<{last}f", *range(last))
    with open(path, "wb") as f:
        f.write(head)
        f.seek(start + rows * 4096)
        f.write(values)
    out = t.temp("end.f32")
    r = t.run("inspect", path, "--tensor", "end", "--out", out)
    t.ok("a tensor behind 4 GiB", r.code == 0 and pathlib.Path(out).read_bytes() == values, r.err)
    os.unlink(path)


def check_interrupt(t):
    """The console of wine writes sequences between all characters, and moves instead of blanks."""
    args = ("run", t.model, "-p", "Once upon a time", "-n", "100000", "--ignore-eos", "--context-full",
            "shift")
    start = time.monotonic()
    seen, code = on_terminal(t, args, until=b"[.]", send=b"\x03", delay=2)
    t.ok("Ctrl-C ends with 130", code == 130 and time.monotonic() - start < 30, (code, seen[-200:]))
    seen, _ = on_terminal(t, ("run", t.model, "--temp", "0"), until=b">[^>]*>[^>]*>",
                          send=b"Where does Mia live?\r", delay=4, seconds=12)
    text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\s", b"", seen)
    t.ok("a chat on a console", ANSWER.replace(" ", "").encode() in text, text[-300:])


def check_start(t):
    """Printed, not judged: most of it is wine's."""
    times = [t.run("--version").seconds for _ in range(5)]
    print(f"start: {sorted(times)[2] * 1000:.0f} ms for --version, "
          f"{min(ask(t, t.model).seconds for _ in range(5)) * 1000:.0f} ms for an answer, wine included")


def main():
    t, _, _ = arguments()
    t.env["HOME"] = os.environ.get("HOME", "/")
    # Else each run would start the server of wine anew. It stays, so it must not have a pipe that is read to
    # its end.
    subprocess.run(["wineserver", "-p30"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    if t.run("--version").code != 0:
        print("SKIP: wine cannot start the program")
        return 77
    for check in (check_paths, check_texts, check_places, check_absent, check_patterns, check_large,
                  check_interrupt, check_start):
        check(t)
    return t.done()


sys.exit(main())
