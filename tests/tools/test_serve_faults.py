# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve when something fails: clients, memory, descriptors, disk, signals. README.md has the table.
    test_serve_faults.py TENON [LIBRARY]
LIBRARY is failing_malloc.c; without it nothing fails for lack of memory."""
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

import cli
from serve import EXACT, HELLO, LONG, Server, need_server, open_stream

HEAD = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


def post(path, fields):
    body = json.dumps(fields).encode()
    return HEAD % (path, len(body)) + body


def connect(s, receive=None):
    sock = socket.socket()
    if receive:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    sock.connect((getattr(s, "address", "127.0.0.1"), s.port))
    return sock


def reset(sock):
    """Closes with a reset, as a client does that crashed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def closed(sock, seconds, answer=b""):
    """Whether the server closes the connection within that time, after an answer that begins so."""
    sock.settimeout(seconds)
    got = b""
    try:
        while data := sock.recv(65536):
            got += data
    except TimeoutError:
        return False
    except OSError:
        pass
    return got.startswith(answer)


def threads_of(s):
    return len(os.listdir(f"/proc/{s.p.pid}/task"))


def cpu_seconds(s):
    with open(f"/proc/{s.p.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Level:
    """What must be as before after a fault: descriptors, threads, requests, blocks of the cache."""

    def __init__(self, s):
        self.s = s
        s.chat(max_tokens=2)
        self.before = self._now()

    def _now(self):
        s = self.s
        return (s.metric("process_open_fds"), threads_of(s), s.metric("tenon_requests_running"),
                s.metric("tenon_requests_waiting"), s.metric('tenon_cache_blocks{state="used"}'))

    def same(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self._now() == self.before:
                return True
            time.sleep(0.1)
        return False

    def text(self):
        return f"{self.before} before, {self._now()} after"


def check_gone(t):
    """The client goes in each state of a request, with a reset and without."""
    s = Server(t, *EXACT, "-np", "1", "-c", "512")
    level = Level(s)
    chat = b"/v1/chat/completions"
    long_body = {"messages": [{"role": "user", "content": "the river and the house " * 40000}]}
    stream = post(chat, {**LONG, "stream": True, "logit_bias": {"2": -100}})
    whole = post(chat, {**LONG, "logit_bias": {"2": -100}})
    states = (("before its head", b"", 0), ("in its head", b"POST /v1/chat", 0),
              ("before its body", HEAD % (chat, 500), 0), ("in its body", HEAD % (chat, 500) + b'{"mess', 0),
              ("while it is read", post(chat, long_body), 0.1), ("at once", stream, 0),
              ("in a stream", stream, 0.7), ("before an answer", whole, 0.7),
              ("with a second request in the pipe", whole + whole, 0.3))
    for end in (reset, socket.socket.close):
        for name, data, seconds in states:
            sock = connect(s)
            sock.sendall(data)
            time.sleep(seconds)
            end(sock)
            t.ok(f"gone {name}, {end.__name__}", level.same(), level.text())
        c, r = open_stream(s, logit_bias={"2": -100})
        waits = connect(s)
        waits.sendall(stream)
        s.wait_for("tenon_requests_waiting", 1)
        end(waits)
        t.ok(f"gone while it waits, {end.__name__}", s.wait_for("tenon_requests_waiting", 0))
        r.close()
        c.close()
        t.ok(f"and all is as before, {end.__name__}", level.same(), level.text())
    t.ok("well", s.chat()[0] == 200 and s.ask("GET", "/health")[0] == 200)
    t.ok("exit code", s.end() == 0, s.err)


def check_slow(t):
    """Clients that stop in the middle: the limits of docs/serve.md, all at a time."""
    s = Server(t, *EXACT, "-np", "2", "-c", "512")
    level = Level(s)
    reader = connect(s, 4096)
    reader.sendall(post(b"/tokenize", {"content": "the house " * 400000, "with_pieces": True}))
    start = time.monotonic()
    head, body, byte = connect(s), connect(s), connect(s)
    head.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
    body.sendall(HEAD % (b"/tokenize", 100) + b'{"content": "')
    idle = [connect(s) for _ in range(200)]
    t.ok("others are answered meanwhile", s.chat(max_tokens=4)[0] == 200)
    slow = 0
    while time.monotonic() - start < 9 and not slow:  # a byte now and then does not make a head younger
        try:
            byte.sendall(b"G")
        except OSError:
            slow = 1
        time.sleep(1)
    t.ok("half of a head: closed after 10 s", closed(head, 8), time.monotonic() - start)
    t.ok("a head byte by byte, too", closed(byte, 8), time.monotonic() - start)
    t.ok("connections without a request, too", all(closed(sock, 8) for sock in idle))
    t.ok("half of a body: 408 after 31 s", closed(body, 35, b"HTTP/1.1 408"), time.monotonic() - start)
    t.ok("a client that reads nothing: given up after 30 s", s.wait_for("tenon_connections", 1, 60),
         s.metric("tenon_connections"))
    for sock in (reader, head, body, byte, *idle):
        sock.close()
    t.ok("all is as before", level.same(), level.text())
    t.ok("well", s.chat()[0] == 200)
    t.ok("exit code", s.end() == 0, s.err)


def check_descriptors(t):
    """No descriptor is free: no connection is accepted, nothing spins, and it goes on when some are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    s = Server(t, *EXACT, "-np", "2", "-c", "512")
    _, _, text = s.chat(max_tokens=4)
    # Lower than at the start, where it would bound the number of connections.
    resource.prlimit(s.p.pid, resource.RLIMIT_NOFILE, (int(s.metric("process_open_fds")) + 8, hard))
    kept = [connect(s) for _ in range(80)]
    time.sleep(0.5)
    before = cpu_seconds(s)
    time.sleep(2)
    used = cpu_seconds(s) - before
    t.ok("waiting for a descriptor costs no processor", used < 0.5, used)
    for sock in kept:
        sock.close()
    status, _, got = s.chat(max_tokens=4)
    t.ok("and then it goes on", status == 200 and got["choices"] == text["choices"], got)
    t.ok("exit code", s.end() == 0, s.err)
    resource.setrlimit(resource.RLIMIT_NOFILE, (48, hard))
    try:
        s = Server(t, *EXACT, "-np", "2", "-c", "512")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    kept = [connect(s) for _ in range(16)]
    time.sleep(0.3)
    got = s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    t.ok("32 descriptors are not for connections", got.startswith(b"HTTP/1.1 503") and
         b"retry-after: 1" in got, got)
    for sock in kept:
        sock.close()
    t.ok("exit code", s.end() == 0, s.err)


def own_address():
    """An address of this machine that is not loopback, None: it has none. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        address = probe.getsockname()[0]
    return None if address.startswith("127.") else address


def check_addresses(t):
    """One address of another machine gets 256 connections, also after it closed others."""
    address = own_address()
    if not address:
        t.skip("addresses", "this machine has loopback only")
        return
    s = Server(t, *EXACT, "-np", "1", "-c", "512", "--host", "0.0.0.0", "--open")
    s.address = address
    kept = [connect(s) for _ in range(256)]
    status = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    more = connect(s)
    more.settimeout(10)
    t.ok("256 of one address", more.recv(65536).startswith(b"HTTP/1.1 503"))
    more.close()
    t.ok("this machine is not counted", s.ask("GET", "/health")[0] == 200)
    kept[7].close()
    t.ok("one is closed", s.wait_for("tenon_connections", 256))
    more = connect(s)
    more.settimeout(10)
    more.sendall(status)
    t.ok("and another one comes", more.recv(65536).startswith(b"HTTP/1.1 200"))
    for sock in (more, *kept):
        sock.close()
    t.ok("exit code", s.end() == 0, s.err)


def check_log(t):
    """The disk of the log is full."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with open("/dev/full", "wb") as full:
        p = subprocess.Popen([t.tenon, "serve", t.model, "--port", str(port), "-v", *EXACT], stderr=full,
                             stdout=full, env=t.env)
    s = Server.__new__(Server)
    s.t, s.p, s.port = t, p, port
    good = False
    for _ in range(100):
        try:
            good = s.ask("GET", "/health")[0] == 200
        except OSError:
            pass
        if good:
            break
        time.sleep(0.1)
    t.ok("it serves without a log", good and s.chat()[0] == 200)
    p.send_signal(signal.SIGTERM)
    t.ok("exit code", p.wait(30) == 0)


def check_signals(t):
    """The end comes at any moment of the start, and with many streams."""
    codes = []
    for i in range(12):
        p = subprocess.Popen([t.tenon, "serve", t.model, "--port", "0", *EXACT], stderr=subprocess.PIPE,
                             env=t.env)
        time.sleep(0.03 + 0.015 * i)
        p.send_signal(signal.SIGTERM)
        codes.append(p.wait(30))
        p.stderr.close()
    # Before the server catches it, a signal ends the process.
    t.ok("SIGTERM while it starts", set(codes) <= {0, -signal.SIGTERM} and 0 in codes, codes)
    s = Server(t, *EXACT, "-np", "16", "-c", "512", "--drain", "1")
    socks = [connect(s) for _ in range(64)]
    for sock in socks:
        sock.sendall(post(b"/v1/chat/completions", {**LONG, "stream": True, "logit_bias": {"2": -100}}))
    s.wait_for("tenon_requests_running", 16)
    time.sleep(2)  # those that run have their first token
    s.p.send_signal(signal.SIGTERM)
    ends = {"stream": 0, "refused": 0, "other": []}
    for sock in socks:
        sock.settimeout(30)
        data = b""
        try:
            while got := sock.recv(65536):
                data += got
        except OSError as error:
            data += str(error).encode()
        if data.startswith(b"HTTP/1.1 503") and b"shutting_down" in data:
            ends["refused"] += 1
        elif b"[DONE]" in data or b'"error"' in data:
            ends["stream"] += 1
        else:
            ends["other"].append(data[-200:])
    t.ok("SIGTERM with 64 streams", ends["stream"] + ends["refused"] == 64 and ends["stream"] >= 16, ends)
    t.ok("exit code", s.p.wait(30) == 0, s.err)


class Memory:
    """Allocations of a server that fail."""

    def __init__(self, t, library):
        self.path = t.temp("fail")
        self.env = {"LD_PRELOAD": library, "TN_FAIL_FILE": self.path}
        self.set(None, "0")

    def set(self, s, what):
        with open(self.path, "w") as f:
            f.write(what)
        if s:
            s.p.send_signal(signal.SIGUSR2)
            time.sleep(0.02)


SIX = {"messages": HELLO, "temperature": 0, "max_tokens": 6}
REQUESTS = [("/v1/chat/completions", {**SIX, "logprobs": True}),
            ("/v1/chat/completions", {**SIX, "stream": True}),
            ("/v1/responses", {"input": "Where does Mia live?", "max_output_tokens": 6}),
            ("/tokenize", {"content": "the house by the river"}),
            ("/v1/completions", {"prompt": "the house by", "max_tokens": 1, "echo": True, "logprobs": 1}),
            ("/v1/chat/completions", {**SIX, "tool_choice": "required",
                                      "tools": [{"type": "function", "function": {"name": "now"}}]})]


def try_request(s, path, fields):
    try:
        status, _, got = s.ask("POST", path, fields, timeout=20)
    except OSError:
        return "closed"
    except Exception as error:  # an answer that ends in the middle
        return f"cut: {type(error).__name__}"
    if status == 400:
        return f"400 {got}"
    if status == 200 and fields.get("stream"):
        return 200 if got.endswith(b"data: [DONE]\n\n") else "an error event" if b'"error"' in got else "cut"
    return status


def check_memory(t, library, last):
    if not library:
        t.skip("memory", "failing_malloc is not given")
        return
    memory = Memory(t, library)
    s = Server(t, *EXACT, "-np", "2", "-c", "512", env=memory.env)
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    alone = s.chat()[2]["choices"]
    level = Level(s)
    seen = {}
    for path, fields in REQUESTS:
        for n in range(1, last):
            memory.set(s, str(n))
            got = try_request(s, path, fields)
            memory.set(s, "0")
            seen[got] = seen.get(got, 0) + 1
            if s.p.poll() is not None:
                t.ok(f"{path}: alive after allocation {n} failed", False, s.err[-2000:])
                return
    # A connection without memory is closed, before its answer or in a stream; never is the request to blame.
    allowed = {200, 500, 503, "closed", "an error event", "cut", "cut: IncompleteRead",
               "cut: RemoteDisconnected", "cut: BadStatusLine"}
    t.ok("each allocation fails once", set(seen) <= allowed and seen.get(500, 0) > 0, seen)
    print(f"allocations that fail: {seen}")
    t.ok("the same text as before", s.chat()[2]["choices"] == alone)
    t.ok("nothing is left", level.same(), level.text())
    t.ok("exit code", s.end() == 0, s.err)
    s = Server(t, *EXACT, "-np", "4", "-c", "512", env=memory.env)
    memory.set(s, "threads")
    status, _, got = s.chat(n=3)
    memory.set(s, "0")
    t.ok("passes fail: the request is told", status in (500, 503), (status, got))
    if status == 503:
        t.ok("the model is lost", got["error"]["code"] == "device_lost", got)
        status, _, got = s.chat()
        t.ok("and loaded again for the next request", status == 200 and got["choices"] == alone and
             s.ask("GET", "/health")[0] == 200, got)
    t.ok("exit code", s.end() == 0, s.err)


def main():
    t, _, _ = cli.arguments()
    need_server(t)
    library = sys.argv[2] if len(sys.argv) > 2 else None
    check_memory(t, library, 120)
    check_gone(t)
    check_descriptors(t)
    check_addresses(t)
    check_log(t)
    check_signals(t)
    check_slow(t)
    sys.exit(t.done())


main()
