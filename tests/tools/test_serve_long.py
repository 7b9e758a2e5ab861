# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve: requests of megabytes are read beside the streams, schemas are compiled there, and a bounded
number of them waits."""
import json
import socket
import sys
import threading
import time

import cli
from serve import EXACT, HELLO, Server, need_server, open_stream

WORDS = "the house by the river and a garden of old trees "


class Gaps:
    """A stream, and the longest time between two of its events."""

    def __init__(self, s):
        self.c, self.r = open_stream(s, logit_bias={"2": -100})
        self.longest, self.n, self.stopped = 0, 0, False
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        last = time.monotonic()
        while not self.stopped and self.r.readline():
            now = time.monotonic()
            self.longest = max(self.longest, now - last)
            last, self.n = now, self.n + 1

    def take(self):
        longest, n, self.longest, self.n = self.longest, self.n, 0, 0
        return longest, n

    def end(self):
        self.stopped = True
        self.thread.join(30)
        self.r.close()
        self.c.close()


def chat_of(n_bytes):
    """A chat of many turns with that many bytes in all."""
    turn = WORDS * 400
    n = max(1, n_bytes // len(turn))
    turns = [{"role": ("user", "assistant")[i % 2], "content": turn} for i in range(n | 1)]
    return json.dumps({"messages": turns})


def chat_of_schema():
    """A short request with a schema that takes long, compiled for each of its choices."""
    schema = {"oneOf": [{"const": i} for i in range(350)]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = json.dumps({"messages": HELLO, "max_tokens": 1, "n": 31, "response_format": form})
    assert len(body) < 16 << 10
    return body


def check_gaps(t):
    s = Server(t, *EXACT, "-np", "32", "-c", "2048")
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    ids = s.ask("POST", "/tokenize", {"content": WORDS * 2000})[2]["tokens"]
    routes = [("/v1/chat/completions", chat_of(6 << 20), 400),
              ("/v1/responses", json.dumps({"input": WORDS * 60000}), 400),
              ("/v1/completions", json.dumps({"prompt": WORDS * 60000}), 400),
              ("/tokenize", json.dumps({"content": WORDS * 60000}), 200),
              ("/detokenize", json.dumps({"tokens": ids * 10}), 200),
              ("/api/chat", chat_of(3 << 20), 400),
              ("/api/generate", json.dumps({"prompt": WORDS * 60000}), 400),
              ("/v1/chat/completions", "{" + "[" * 3000000, 400),
              ("/v1/chat/completions", chat_of_schema(), 200)]
    gaps = Gaps(s)
    time.sleep(1)
    quiet, n = gaps.take()
    t.ok("the stream goes on", n > 3, n)
    for path, body, want in routes:
        gaps.take()
        start = time.monotonic()
        status, _, got = s.ask("POST", path, body)
        took = time.monotonic() - start
        longest, n = gaps.take()
        t.ok(f"{path}: the answer", status == want, (status, str(got)[:300]))
        # Both threads share the processor with the engine and with other programs; a stall takes as long as
        # the request.
        limit = max(0.35, took / 2, 3 * quiet)
        t.ok(f"{path}: no stall", longest < limit,
             f"{longest:.3f} s, the request took {took:.3f} s, {quiet:.3f}")
        print(f"{path} {len(body) >> 10} KiB: {took:.2f} s; longest gap of a stream {longest * 1e3:.0f} ms")
    gaps.end()
    t.ok("nothing waits", s.wait_for("tenon_requests_waiting", 0))
    t.ok("exit code", s.end() == 0, s.err)


def send_chat(s, body):
    sock = socket.create_connection(("127.0.0.1", s.port))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    sock.sendall(head % len(body) + body)
    return sock


def check_bound(t):
    """Bodies that wait take 16 times the largest body in all, and 256 requests."""
    s = Server(t, *EXACT, "-np", "2", "-c", "512", "--body-limit", "1", "--queue", "6")
    body = chat_of(1000000).encode()
    socks = [send_chat(s, body) for _ in range(24)]
    heads = [sock.recv(65536) for sock in socks]
    busy = sum(head.startswith(b"HTTP/1.1 429") and b"retry-after: 1" in head for head in heads)
    read = sum(head.startswith(b"HTTP/1.1 400") for head in heads)
    t.ok("some are refused, the others answered", busy > 0 and read >= 6 and busy + read == 24, (busy, read))
    for sock in socks:
        sock.close()
    socks = [send_chat(s, body) for _ in range(6)]
    for sock in socks:
        sock.close()
    t.ok("clients that leave meanwhile", s.ask("POST", "/tokenize", {"content": "a"})[0] in (200, 429) and
         s.wait_for("tenon_requests_waiting", 0))
    socks = [send_chat(s, body) for _ in range(4)]
    s.p.send_signal(15)
    heads = [sock.recv(65536) for sock in socks]
    codes = {head.split()[1] for head in heads if head}
    t.ok("the end of the server meanwhile", codes <= {b"503", b"400", b"429"}, codes)
    t.ok("exit code", s.p.wait(40) == 0, s.err)


def check_host(t):
    """Blocks in the memory of the host are counted."""
    s = Server(t, *EXACT, "-np", "1", "-c", "256", "--cache-tokens", "256", "--cache-host", "16")
    texts = [f"{i} " + "the house by the river " * 30 for i in range(4)]
    for text in texts + texts[:1]:
        s.ask("POST", "/v1/completions", {"prompt": text, "max_tokens": 1, "temperature": 0})
    t.ok("blocks in host memory", s.metric('tenon_cache_blocks{state="host"}') > 0 and
         s.metric("tenon_cache_saved_total") > 0 and s.metric("tenon_cache_loaded_total") > 0,
         s.ask("GET", "/metrics")[2])
    t.ok("exit code", s.end() == 0, s.err)


def main():
    t, _, _ = cli.arguments()
    need_server(t)
    check_gaps(t)
    check_bound(t)
    check_host(t)
    sys.exit(t.done())


main()
