# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon batch: the answers of run, forms of input, going on after an end in the middle, failures."""
import json
import os
import signal
import subprocess
import sys
import time

import cli

# The level below AVX2 gives a row the same bits whatever else is in its batch.
EXACT = ["--isa", "generic", "--temp", "0", "-n", "12", "-t", "1"]
PROMPTS = ["Where does Mia live?", "Hello!", "Once upon a time", "What is 2 + 2?", "Tell me a story.",
           "Where does Mia live now?", ""]


def answers(result):
    return sorted((json.loads(line) for line in result.text.splitlines()), key=lambda a: a["index"])


def check_answers(t):
    for form in (["--chat"], []):
        lines = "".join(f"{prompt}\n" for prompt in PROMPTS).encode()
        got = t.run("batch", t.model, *form, *EXACT, "-np", "3", stdin=lines)
        t.done_well("answers", got)
        all_of_them = answers(got)
        t.ok("one for each line", [a["index"] for a in all_of_them] == list(range(len(PROMPTS))), got.text)
        for prompt, answer in zip(PROMPTS, all_of_them):
            if form or prompt:
                alone = t.run("run", t.model, *(["-st"] if form else ["--raw"]), *EXACT, "-p", prompt)
                t.ok(f"as alone: {prompt!r} {form}", answer["text"].rstrip() == alone.text.rstrip(),
                     (answer, alone.text, alone.err))
            if not form and not prompt:
                t.ok("an empty prompt, to which the model adds nothing", "empty prompt" in answer["error"],
                     answer)
                continue
            t.ok("counts", answer["tokens"] <= 12 and answer["prompt_tokens"] > 0 and
                 answer["stop"] in ("end", "limit"), answer)


def check_forms(t):
    objects = b'{"id": "a", "prompt": "Hello!"}\n\n{"text": "Hello!", "id": 7}\n{"prompt": "Hello!"}\n'
    got = t.run("batch", t.model, *EXACT, stdin=objects)
    t.done_well("objects", got)
    found = answers(got)
    t.ok("ids", [a.get("id") for a in found] == ["a", 7, None] and len({a["text"] for a in found}) == 1,
         got.text)
    got = t.run("batch", t.model, *EXACT, "Once upon", "a time")
    t.ok("words are one prompt", len(answers(got)) == 1, got.text)
    many = [f"Number {i}".encode() for i in range(300)]
    got = t.run("batch", t.model, *EXACT, "-n", "1", "-np", "256", "-c", "64", stdin=b"\n".join(many))
    t.ok("more sequences than the default of prompts that wait",
         got.code == 0 and got.out.count(b"\n") == 300, got.err)
    got = t.run("batch", t.model, *EXACT, "--report", stdin=b"Hello!\nHello!\n")
    t.ok("report", got.code == 0 and "answers: 2 in" in got.err and "first token" in got.err, got.err)
    got = t.run("batch", t.model, *EXACT, "--json-schema", '{"type": "boolean"}', "-n", "40",
                stdin=b"Is it?\nHello!\n")
    t.ok("schema", all(json.loads(a["text"]) in (True, False) for a in answers(got)), got.text + got.err)
    got = t.run("batch", t.model, "-c", "16", *EXACT, stdin=b"Hello!\n" + b"many words " * 40 + b"\nHello!")
    found = answers(got)
    t.ok("a prompt that is too long has an error, the others do not",
         got.code == 0 and [("error" in a) for a in found] == [False, True, False], got.text)


def check_going_on(t):
    path, whole = t.temp("answers.jsonl"), t.temp("whole.jsonl")
    lines = "\n".join(f"Question {i}: where does Mia live?" for i in range(60)).encode()
    args = ["batch", t.model, "--chat", *EXACT, "-np", "4"]
    t.done_well("whole", t.run(*args, "-o", whole, stdin=lines))
    with open(whole, "rb") as f:
        want = sorted(f.read().splitlines(), key=lambda line: json.loads(line)["index"])
    p = subprocess.Popen([t.tenon, *args, "-o", path], stdin=subprocess.PIPE, env=t.env)
    p.stdin.write(lines)
    p.stdin.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not os.path.exists(path) or os.path.getsize(path) < 600):
        time.sleep(0.002)
    p.send_signal(signal.SIGKILL)
    p.wait()
    with open(path, "ab") as f:
        f.write(b'{"index": 59, "te')  # a line that was cut off
    with open(path, "rb") as f:
        before = f.read().count(b"\n")
    got = t.run(*args, "-o", path, "--report", stdin=lines)
    t.done_well("going on", got)
    t.ok("only what was missing", f"answers: {60 - before} in" in got.err and before > 0, (before, got.err))
    with open(path, "rb") as f:
        found = sorted(f.read().splitlines(), key=lambda line: json.loads(line)["index"])
    plain = [[{k: v for k, v in json.loads(line).items() if k != "reused_tokens"} for line in lines_of]
             for lines_of in (found, want)]
    t.ok("the same answers", plain[0] == plain[1], (len(found), len(want)))
    again = t.run(*args, "-o", path, "--report", stdin=lines)
    t.ok("nothing is left", again.code == 0 and "answers: 0 in" in again.err, again.err)
    foreign = t.temp("foreign")
    with open(foreign, "w", encoding="utf-8") as f:
        f.write("no answers\n")
    got = t.run(*args, "-o", foreign, stdin=lines)
    t.ok("a file of something else stays", got.code == 1 and "no answer of" in got.err and
         open(foreign, encoding="utf-8").read() == "no answers\n", got.err)


def check_failures(t):
    for name, args, code in (
            ("no model", ["/nowhere.gguf"], 1), ("range", [t.model, "-np", "0"], 2),
            ("small cache", [t.model, "-c", "512", "--cache-tokens", "256"], 2),
            ("grammar", [t.model, "--grammar", "root ::= ("], 2),
            ("raw and chat", [t.model, "--raw", "--chat"], 2),
            ("folder", [t.model, "-o", t.folder.name], 1)):
        got = t.run("batch", *args, stdin=b"Hello!\n")
        t.ok(name, got.code == code and got.err.count("\n") == 1 and not got.out, (got.code, got.err))
    got = t.run("batch", t.model, stdin=b'{"id": 1}\n')
    t.ok("an object without a prompt", got.code == 1 and "line 1" in got.err, got.err)
    with open("/dev/full", "wb") as full:
        got = t.run("batch", t.model, *EXACT, stdin=b"Hello!\n", stdout=full)
    t.ok("a full disk", got.code == 1 and "cannot write" in got.err, got.err)


def check_interrupt(t):
    lines = b"Tell me a long story.\n" * 200
    p = subprocess.Popen([t.tenon, "batch", t.model, "--ignore-eos", "-n", "200"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=t.env)
    p.stdin.write(lines)
    p.stdin.close()
    p.stdout.readline()
    p.send_signal(signal.SIGINT)
    start = time.monotonic()
    p.stdout.read()
    code = p.wait()
    t.ok("Ctrl-C", code == 130 and time.monotonic() - start < 5, (code, p.stderr.read()))


def main():
    t = cli.Tests(sys.argv[1], os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    for check in (check_answers, check_forms, check_going_on, check_failures, check_interrupt):
        check(t)
    return t.done()


if __name__ == "__main__":
    sys.exit(main())
