# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The lines of README.md under "One line each" run as they stand there, in a folder with the files that they
name.

    test_readme.py TENON
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from cli import arguments
from test_terminal import on_terminal

ANSWER = "Mia lives in the blue house by the river."
SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 10}}, "required": ["name"],
          "additionalProperties": False}
# What a person would say once in the configuration.
SETTINGS = {"TENON_TEMP": "0", "TENON_N_PREDICT": "40", "TENON_PORT": "0"}


def readme_lines(t):
    text = pathlib.Path(t.root, "README.md").read_text(encoding="utf-8")
    block = re.search(r"^One line each.*?\n```\n(.*?)^```", text, re.M | re.S).group(1)
    return [re.sub(r"\s+# .*", "", line) for line in block.splitlines()]


def prepare(t):
    """The files that the lines name, and an environment that finds the program and the libraries."""
    here, build = pathlib.Path(t.folder.name), pathlib.Path(t.tenon).parent.parent
    os.symlink(t.model, here / "model.gguf")
    (here / "report.txt").write_text("Mia lives in a blue house. She likes the river.\n")
    (here / "person.json").write_text(json.dumps(SCHEMA))
    (here / "prompts.txt").write_text("Where does Mia live?\nHello!\n")
    shutil.copy(os.path.join(t.root, "tests", "headers", "embed.c"), here)
    (here / "bin").mkdir()
    os.symlink(t.tenon, here / "bin" / "tenon")
    t.env.update(SETTINGS, PATH=f"{here / 'bin'}:{t.env['PATH']}", TENON_MODELS=t.bundled,
                 PKG_CONFIG_PATH=str(build / "meson-uninstalled"),
                 C_INCLUDE_PATH=":".join(os.path.join(t.root, layer, "include")
                                         for layer in ("core", "ops", "graph", "models")),
                 LD_LIBRARY_PATH=str(build),
                 TENON_LIBRARY=str(build / "libtenon.so"), PYTHONPATH=os.path.join(t.root, "python"),
                 PYTHONDONTWRITEBYTECODE="1")


def shell(t, line):
    r = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=t.env, cwd=t.folder.name,
                       timeout=120, stdin=subprocess.DEVNULL, check=False)
    t.ok(line, r.returncode == 0, r.stderr)
    return r.stdout.strip()


def serve(t, line):
    """Starts the server, asks it, and ends it."""
    with open(t.temp("serve.log"), "w+", encoding="utf-8") as log, \
            subprocess.Popen(["sh", "-c", "exec " + line], stderr=log, stdout=log, env=t.env,
                             cwd=t.folder.name) as server:
        port, end = None, time.monotonic() + 60
        while not port and server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
            log.seek(0)
            port = re.search(r"127\.0\.0\.1:(\d+)", log.read())
        body = json.dumps({"messages": [{"role": "user", "content": "Where does Mia live?"}]}).encode()
        answer = None
        if t.ok(line, port, "no port was printed"):
            request = urllib.request.Request(f"http://127.0.0.1:{port.group(1)}/v1/chat/completions", body,
                                             {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=60) as reply:
                answer = json.load(reply)["choices"][0]["message"]["content"]
        server.send_signal(signal.SIGTERM)
        t.ok(f"{line}: an answer", answer == ANSWER and server.wait(60) == 0, answer)


def check_c(t, line):
    if not shutil.which("pkg-config") or not shutil.which("cc"):
        return t.skip(line, "pkg-config or cc is not installed")
    shell(t, line)
    out = shell(t, "./embed model.gguf 'Where does Mia live?'")
    return t.ok(f"{line}: its answer", out == ANSWER, out)


def check_json(t, line):
    out = shell(t, line)
    t.ok(f"{line}: a person", set(json.loads(out or "{}")) == {"name"}, out)


def check_batch(t, line):
    shell(t, line)
    with open(t.temp("answers.jsonl"), encoding="utf-8") as f:
        answers = {row["index"]: row["text"] for row in map(json.loads, f)}
    t.ok(f"{line}: answers", len(answers) == 2 and ANSWER in answers.values(), answers)


def check_chat(t, line):
    seen, code = on_terminal(t, line.split()[1:], until=rb"> ", send=b"Where does Mia live?\n/exit\n")
    t.ok(line, code == 0 and ANSWER.encode() in seen, seen[-500:])


def check_name(t, line):
    out = shell(t, line)
    t.ok(f"{line}: its answer", out == ANSWER, out)


def check_text(t, line):
    out = shell(t, line)
    t.ok(f"{line}: a text", len(out) > 2, out)


KINDS = [("a name", r"tenon run tenon-tiny ", check_name), ("chat", r"tenon run model\.gguf$", check_chat),
         ("pipe", r"cat ", check_text), ("JSON schema", r".*--json-schema-file", check_json),
         ("batch", r"tenon batch ", check_batch), ("serve", r"tenon serve ", serve), ("C", r"cc ", check_c),
         ("Python", r"python3 ", check_text)]


def main():
    t, _, _ = arguments()
    lines = readme_lines(t)
    prepare(t)
    for kind, pattern, check in KINDS:
        found = [line for line in lines if re.match(pattern, line)]
        if t.ok(f"README: a line for {kind}", len(found) == 1, found):
            check(t, found[0])
    t.ok("README: no other line", len(lines) == len(KINDS), lines)
    return t.done()


sys.exit(main())
