# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tools/load.py against a server that answers at scripted times, and then against tenon serve."""
import asyncio
import importlib.machinery
import importlib.util
import json
import os
import sys
import threading
import time
import types

import cli
import serve

FIRST, GAP = 0.06, 0.02  # seconds to the first token and between tokens of the scripted server
LONG = 2000              # characters of a prompt that takes ten times as long


class Fake:
    """Answers each request with `max_tokens` words, one an event, and remembers what it was asked."""

    def __init__(self, refuse=(), end=()):
        self.refuse, self.end = set(refuse), set(end)  # numbers of requests that are refused, or cut
        self.asked, self.times, self.running, self.most = [], [], 0, 0
        self.keys = []  # X-Prefix-Key of the requests
        self.loop = asyncio.new_event_loop()
        self.server = None
        ready = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait(10)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"

    def _run(self, ready):
        asyncio.set_event_loop(self.loop)
        self.server = self.loop.run_until_complete(asyncio.start_server(self._answer, "127.0.0.1", 0))
        ready.set()
        self.loop.run_forever()

    async def _answer(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        size = int([line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")][0].split()[1])
        body = json.loads(await reader.readexactly(size))
        if b" /tokenize " in head:  # two tokens a word
            text = json.dumps({"tokens": [0] * 2 * len(body["content"].split())}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        else:
            number = len(self.asked)
            self.asked.append(body)
            self.keys.append(next((line.split()[1] for line in head.decode().split("\r\n")
                                   if line.startswith("X-Prefix-Key")), None))
            self.times.append(time.monotonic())
            self.running += 1
            self.most = max(self.most, self.running)
            await self._stream(writer, body, number)
            self.running -= 1
        writer.close()

    async def _stream(self, writer, body, number):
        if number in self.refuse:
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Prefix-Key: k%d\r\n" % number)
        writer.write(b"Cache-Control: no-cache\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\n")

        def send(text):
            # Each event in two chunks, the first of which ends within a line.
            for part in (text[:7], text[7:]):
                writer.write(b"%x\r\n" % len(part) + part + b"\r\n")

        def event(choices, **more):
            send(b"data: " + json.dumps({"choices": choices, **more}).encode() + b"\n\n")
        n, size = body["max_tokens"], sum(len(m["content"]) for m in body["messages"])
        event([{"index": 0, "delta": {"role": "assistant", "content": ""}}])
        await asyncio.sleep(FIRST * (10 if size > LONG else 1))
        for i in range(n):
            if i:
                await asyncio.sleep(GAP)
            if number in self.end and i == 1:
                return
            event([{"index": 0, "delta": {"content": f"word{i} "}}])
        event([{"index": 0, "delta": {}, "finish_reason": "length"}])
        event([], usage={"prompt_tokens": 100, "completion_tokens": n,
                         "prompt_tokens_details": {"cached_tokens": 25}})
        send(b"data: [DONE]\n\n")
        writer.write(b"0\r\n\r\n")


def run(t, url, *args):
    """The figures, and what was printed."""
    out = t.temp("load.json")
    tool = os.path.join(t.root, "tools", "load.py")
    p = cli.subprocess.run([sys.executable, "-B", tool, url, "--json", out, *map(str, args)],
                           stdout=cli.subprocess.PIPE, stderr=cli.subprocess.PIPE, timeout=200, env=t.env)
    t.ok(f"exit code of {args}", p.returncode == 0, p.stderr.decode()[-500:])
    with open(out, encoding="utf-8") as f:
        return json.load(f), p.stdout.decode()


def near(measured_ms, seconds):
    """On a busy machine everything may come late, but never early."""
    return seconds * 1e3 - 1 <= measured_ms <= seconds * 1e3 * 1.5 + 100


def check_closed(t):
    fake = Fake()
    got, text = run(t, fake.url, "--users", 3, "--requests", 12, "--prompt", 40, "--answer", 6, "--sigma", 0,
                    "--first-ms", 1000, "--gap-ms", 1000)
    t.ok("requests", got["requests"] == 12 == len(fake.asked) and not got["failures"] and fake.most == 3, got)
    t.ok("first token", near(got["first_token_ms"]["median"], FIRST), got)
    t.ok("gaps", near(got["gap_ms"]["median"], GAP) and got["gap_ms"]["max"] >= got["gap_ms"]["p99"] >=
         got["gap_ms"]["median"], got)
    t.ok("whole requests", near(got["request_ms"]["median"], FIRST + 5 * GAP), got)
    t.ok("tokens", got["output_tokens"] == 72 and got["prompt_tokens"] == 1200 and
         got["cached_share"] == .25 and abs(got["output_tokens_per_second"] - 72 / got["seconds"]) < 0.1, got)
    most = 3 / (FIRST + 5 * GAP)
    # Both are rounded to three digits.
    t.ok("rate", 12 / (got["seconds"] + 0.0005) - 0.0005 <= got["requests_per_second"] <= most, got)
    t.ok("all are good", got["goodput_share"] == 1 and "100.0 % within" in text and "25.0 % from" in text,
         text)
    words = [len(body["messages"][-1]["content"].split()) for body in fake.asked]
    t.ok("lengths by the tokenizer", set(words) == {20} and
         all(body["max_tokens"] == 6 and body["ignore_eos"] and body["stream"] for body in fake.asked), words)
    got, _ = run(t, fake.url, "--users", 2, "--requests", 4, "--answer", 3, "--sigma", 0, "--first-ms", 10)
    t.ok("none is good", got["goodput_share"] == 0 and got["requests"] == 4, got)


def check_turns(t):
    fake = Fake()
    got, _ = run(t, fake.url, "--users", 1, "--requests", 6, "--turns", 3, "--prompt", 30, "--answer", 2,
                 "--shared", 50, "--seed", 5)
    prompts = [body["messages"] for body in fake.asked]
    t.ok("prompts grow", [len(p) for p in prompts] == [2, 4, 6, 2, 4, 6] and all(
        b[:len(a)] == a and b[len(a)]["role"] == "assistant" and b[len(a)]["content"].startswith("word0")
        for a, b in zip(prompts, prompts[1:]) if len(b) > len(a)), prompts)
    t.ok("and share their beginning", all(p[0] == prompts[0][0] and p[0]["role"] == "system" and
                                          len(p[0]["content"].split()) == 25 for p in prompts), prompts[0])
    t.ok("but nothing else", prompts[0][1] != prompts[3][1])
    lengths = [len(p[-1]["content"].split()) for p in prompts]
    t.ok("lengths differ", len(set(lengths)) > 2 and got["requests"] == 6, lengths)
    again = Fake()
    run(t, again.url, "--users", 1, "--requests", 6, "--turns", 3, "--prompt", 30, "--answer", 2,
        "--shared", 50, "--seed", 5)
    t.ok("the same seed, the same load", [b["messages"] for b in again.asked] == prompts)


def check_keys(t):
    args = ["--users", 1, "--requests", 6, "--turns", 3, "--prompt", 10, "--answer", 2]
    for key in ("none", "returned", "own"):
        fake = Fake()
        run(t, fake.url, *args, "--key", key)
        if key == "own":
            t.ok("ids of conversations", len(set(fake.keys)) == 2 and fake.keys[0] == fake.keys[2] and
                 fake.keys[3] == fake.keys[5] and all(fake.keys), fake.keys)
        else:
            want = [None, "k0", "k0", None, "k3", "k3"] if key == "returned" else [None] * 6
            t.ok(f"X-Prefix-Key: {key}", fake.keys == want, fake.keys)


def check_open(t):
    fake = Fake()
    got, _ = run(t, fake.url, "--rate", 40, "--seconds", 2, "--prompt", 10, "--answer", 20, "--sigma", 0.3)
    n = len(fake.asked)
    t.ok("arrivals", 40 < n < 130 and got["requests"] == n, n)  # 80 with a deviation of 9
    t.ok("they wait for no answer", fake.most > 8, fake.most)
    gaps = [b - a for a, b in zip(fake.times, fake.times[1:])]
    t.ok("at random times", max(gaps) > 3 * sum(gaps) / len(gaps), gaps)


def check_disturber(t):
    fake = Fake()
    got, text = run(t, fake.url, "--users", 2, "--seconds", 3, "--prompt", 10, "--answer", 4, "--sigma", 0,
                    "--disturb", 1000, "--disturb-pause", 0.2)
    other = got["disturber"]
    t.ok("the disturber apart", other["requests"] >= 1 and
         near(other["first_token_ms"]["median"], 10 * FIRST) and
         got["first_token_ms"]["max"] < 10 * FIRST * 1e3 and "disturber" in text, got)
    long = [b for b in fake.asked if b["max_tokens"] == 1]
    t.ok("its prompts", len(long) >= other["requests"] and
         all(len(b["messages"][0]["content"].split()) == 500 for b in long), len(long))


def check_failures(t):
    fake = Fake(refuse=[1, 2], end=[4])
    got, text = run(t, fake.url, "--users", 1, "--requests", 8, "--answer", 3, "--sigma", 0, "--first-ms",
                    5000, "--gap-ms", 5000)
    t.ok("failures", got["requests"] == 5 and sorted(got["failures"].values()) == [1, 2] and
         got["failures"]["status 429"] == 2 and got["failures_before_text"] == 2 and
         got["output_tokens"] == 15 and
         abs(got["goodput_share"] - 5 / 8) < 0.01 and "2 x status 429" in text, (got, text))
    tool = os.path.join(t.root, "tools", "load.py")
    for args in (["ftp://x"], [fake.url, "--users", "0"], [fake.url, "--rate", "-1"], []):
        p = cli.subprocess.run([sys.executable, "-B", tool, *args], stdout=cli.subprocess.PIPE,
                               stderr=cli.subprocess.PIPE, timeout=60)
        t.ok(f"refused: {args}", p.returncode not in (0, None) and b"Traceback" not in p.stderr, p.stderr)
    p = cli.subprocess.run([sys.executable, "-B", tool, "http://127.0.0.1:9", "--requests", "2", "--users",
                            "1"], stdout=cli.subprocess.PIPE, stderr=cli.subprocess.PIPE, timeout=60)
    t.ok("no server", p.returncode == 1 and b"2 x Connection" in p.stdout, p.stdout)


def check_busy(t):
    """The last request begins 2 s behind the warm-up, and one goes on for 8 s more: they are not counted."""
    path = os.path.join(t.root, "tools", "load.py")
    loader = importlib.machinery.SourceFileLoader("load", path)
    load = importlib.util.module_from_spec(importlib.util.spec_from_loader("load", loader))
    loader.exec_module(load)
    early, late, last = (load.Record(begin) for begin in (4.0, 6.0, 12.0))
    early.tokens, early.times = 40, [5, 6, 7, 8, 9, 10, 10.5, 11]    # three of eight are counted
    late.tokens, late.times = 100, [10.1 + 0.1 * i for i in range(100)]  # 19 of 100
    got = load.busy_rate(types.SimpleNamespace(records=[early, late, last]), 10.0)
    t.ok("busy rate", abs(got - (40 * 3 / 8 + 19) / 2) < 1e-6, got)


def check_server(t):
    s = serve.Server(t, *serve.EXACT, "-np", "8")
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    got, _ = run(t, f"http://127.0.0.1:{s.port}", "--users", 6, "--requests", 18, "--turns", 3, "--prompt",
                 20, "--answer", 8, "--shared", 60)
    t.ok("tenon serve", got["requests"] == 18 and not got["failures"] and got["cached_share"] > 0.2 and
         s.metric("tenon_generated_tokens_total") == got["output_tokens"], got)
    t.ok("exit code of the server", s.end() == 0, s.err)


def main():
    t, _, _ = cli.arguments()
    for check in (check_closed, check_turns, check_keys, check_open, check_disturber, check_failures,
                  check_busy):
        check(t)
    serve.need_server(t)
    check_server(t)
    sys.exit(t.done())


main()
