# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve: HTTP that is wrong, clients that leave, limits, keys, start and end of the server."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import cli
from serve import EXACT, LONG, Server, need_server, open_stream


def check_http(t, s):
    def status_of(data, seconds=2):
        got = s.raw(data, seconds)
        return int(got.split()[1]) if got.startswith(b"HTTP/1.") else None

    post = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    t.ok("a large body is refused before it comes",
         status_of(post + b"Content-Length: 99999999999\r\n\r\n") == 413)
    t.ok("chunked", status_of(post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 411)
    for name, head in (("sign", b"Content-Length: +5"),
                       ("two lengths", b"Content-Length: 2\r\nContent-Length: 3"),
                       ("both", b"Content-Length: 2\r\nTransfer-Encoding: chunked")):
        t.ok(f"length: {name}", status_of(post + head + b"\r\n\r\n{}") == 400)
    t.ok("no host", status_of(b"GET /health HTTP/1.1\r\n\r\n") == 400)
    for name, host in (("two", b"localhost\r\nHost: localhost"), ("a blank", b"a b"), ("a port", b"a:b")):
        t.ok(f"host: {name}", status_of(b"GET /health HTTP/1.1\r\nHost: " + host + b"\r\n\r\n") == 400)
    t.ok("blanks around", status_of(b"GET /health HTTP/1.1\r\nHost:  localhost \r\n\r\n") == 200)
    t.ok("another host", status_of(b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n") == 403)
    rest = b"\r\nHost: localhost\r\n\r\n"
    t.ok("a long query", status_of(b"GET /health?" + b"a" * 9000 + b" HTTP/1.1" + rest) == 414)
    t.ok("a query of 7900", status_of(b"GET /health?" + b"a" * 7900 + b" HTTP/1.1" + rest) == 200)
    for version, want in ((b"HTTP/1.0", 200), (b"http/1.1", 400), (b"HTTP/1.1x", 400), (b"HTTP/01.1", 400),
                          (b"HTTP/2.0", 505), (b"HTTP/9.9", 505)):
        t.ok(f"version {version}", status_of(b"GET /health " + version + rest) == want)
    for coding, want in ((b"identity", 400), (b"chunked, gzip", 400), (b"chunked, chunked", 400),
                         (b"foo, chunked", 501)):
        coded = b"Transfer-Encoding: " + coding + b"\r\n\r\n0\r\n\r\n"
        t.ok(f"coding {coding}", status_of(post + coded) == want)
    t.ok("two types", status_of(post + b"Content-Length: 2\r\nContent-Type: application/json\r\n"
                                b"Content-Type: text/plain\r\n\r\n{}") == 400)
    for value in (b"close", b"foo, Close"):
        got = s.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: " + value + b"\r\n\r\n")
        t.ok(f"connection {value}", b"connection: close" in got and got.endswith(b'{"status":"ok"}'), got)
    got = s.raw(post + b"\r\n")
    t.ok("a body without a length", got.startswith(b"HTTP/1.1 400") and b"connection: close" in got, got)
    t.ok("a long path", status_of(b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n") == 414)
    many = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"b" * 70000 + b"\r\n\r\n"
    t.ok("long headers", status_of(many) in (431, None))
    for name, data in (("binary", bytes(range(256)) * 8),
                       ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")):
        t.ok(f"no HTTP: {name}", status_of(data, 0.5) in (400, 403, None))
    expect = post + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    t.ok("100-continue", s.raw(expect, 0.5).startswith(b"HTTP/1.1 100 Continue\r\n\r\n"))
    got = s.raw(expect.replace(b"/v1/chat", b"/v1/cat"), 0.5)
    t.ok("no 100-continue for what is refused", got.startswith(b"HTTP/1.1 404") and
         b"connection: close" in got, got)
    t.ok("another expectation", status_of(expect.replace(b"100-continue", b"200-ok")) == 417)
    # A second request in one piece with the first: answered, or the connection ends; never a busy loop.
    body = b'{"content": "a"}'
    two = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body) * 2
    t.ok("pipelined", s.raw(two, 1)[:12] in (b"HTTP/1.1 200", b""))
    c = s.connect()
    for _ in range(3):
        c.request("POST", "/tokenize", body)
        t.ok("kept alive", c.getresponse().read().startswith(b'{"tokens"'))
    c.close()
    evil = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
    t.ok("a page of another site", s.ask("POST", "/tokenize", "{}", evil)[0] == 403)
    status, headers, _ = s.ask("GET", "/health", headers={"Origin": "http://localhost:3000"})
    t.ok("a page of this machine", headers["access-control-allow-origin"] == "http://localhost:3000", headers)
    asked = {"Origin": "http://127.0.0.1:1", "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "x-stainless-os, x-other"}
    status, headers, _ = s.ask("OPTIONS", "/v1/chat/completions", headers=asked)
    t.ok("preflight", status == 204 and "x-stainless-os" in headers["access-control-allow-headers"] and
         "x-other" not in headers["access-control-allow-headers"], headers)
    status, headers, _ = s.ask("OPTIONS", "/v1/chat/completions", headers={**asked, "Origin": "null"})
    t.ok("preflight of another", "access-control-allow-origin" not in headers, headers)
    _, headers, _ = s.ask("POST", "/tokenize", body, {"X-Request-Id": "mine-1"})
    t.ok("the client's id", headers["x-request-id"] == "mine-1", headers)
    _, headers, _ = s.ask("POST", "/tokenize", body, {"X-Request-Id": "a b"})
    t.ok("but no other text", headers["x-request-id"].startswith("req-"), headers)
    ids = [s.ask(*request)[1]["x-request-id"] for request in (
        ("GET", "/health"), ("HEAD", "/"), ("GET", "/nothing"), ("OPTIONS", "/health"),
        ("POST", "/tokenize", "{"))]
    t.ok("every answer has an id of its own", all(ids) and len(set(ids)) == 5, ids)


def check_leaving(t, s):
    cancelled = s.metric('tenon_finished_total{reason="cancelled"}')
    c, r = open_stream(s)
    c.close()
    r.close()
    t.ok("a stream whose client leaves ends",
         s.wait_for('tenon_finished_total{reason="cancelled"}', cancelled + 1),
         s.metric("tenon_requests_running"))
    body = json.dumps(LONG).encode()
    sock = socket.create_connection(("127.0.0.1", s.port))
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    sock.sendall(head % len(body) + body)
    s.wait_for("tenon_requests_running", 1)
    start = time.monotonic()
    sock.close()
    t.ok("so does an answer that is not streamed",
         s.wait_for('tenon_finished_total{reason="cancelled"}', cancelled + 2))
    t.ok("soon", time.monotonic() - start < 5)
    t.ok("nothing is left", s.wait_for("tenon_requests_running", 0) and
         s.wait_for("tenon_requests_waiting", 0))
    sock = socket.create_connection(("127.0.0.1", s.port))
    sock.sendall(head % 100 + b"{")
    sock.close()
    t.ok("a client that leaves inside of its body", s.ask("GET", "/health")[0] == 200)
    t.ok("the page without a key", [s.ask("GET", p)[0] for p in ("/", "/page.js", "/page.css")] == [200] * 3)


def check_limits(t):
    s = Server(t, *EXACT, "-np", "1", "--queue", "2", "--body-limit", "1", "--time-limit", "0")
    streams = [open_stream(s)]
    waiting = []
    for _ in range(2):
        c = s.connect()
        c.request("POST", "/v1/chat/completions", json.dumps(LONG))
        waiting.append(c)
    s.wait_for("tenon_requests_waiting", 2)
    status, headers, got = s.chat()
    t.ok("full", status == 429 and headers["retry-after"] == "1" and
         got["error"]["code"] == "queue_full", got)
    t.ok("counted", s.metric('tenon_rejected_total{reason="queue_full"}') == 1)
    status, _, got = s.ask("POST", "/tokenize", {"content": "a" * (1 << 20)})
    t.ok("body limit", status == 413 and s.metric('tenon_rejected_total{reason="size"}') == 1, got)
    for c, *_ in streams + [(c,) for c in waiting]:
        c.close()
    streams[0][1].close()
    t.ok("free again", s.wait_for("tenon_requests_waiting", 0))
    t.ok("ends", s.end() == 0, s.err)
    s = Server(t, *EXACT, "--time-limit", "1", "-c", "512")
    status, headers, got = s.ask("POST", "/v1/chat/completions", {**LONG, "logit_bias": {"2": -100}, "n": 16})
    t.ok("time limit", status == 200 or (status == 503 and got["error"]["code"] == "timeout" and
                                         headers["x-should-retry"] == "false"), got)
    s.end()


def check_log(t):
    """One line for each request: id, route, status, tokens, times, reason; nothing of what was asked."""
    s = Server(t, *EXACT, "-np", "2", "-c", "512", "-v")
    secret = "Where does the secret Mia live?"
    body = {"messages": [{"role": "user", "content": secret}], "max_tokens": 3, "temperature": 0}
    _, _, got = s.ask("POST", "/v1/chat/completions", body)
    s.ask("GET", "/no%0aline")
    c, r = open_stream(s)
    r.close()
    c.close()
    t.ok("a stream whose client leaves ends", s.wait_for('tenon_finished_total{reason="cancelled"}', 1))
    t.ok("nothing runs", s.wait_for("tenon_requests_running", 0))
    for _ in range(2):
        s.ask("POST", "/v1/chat/completions", {**body, "user": "me", "colour": 1, "a\nb": 2, "seed": 1,
                                               "logit_bias": {}, "stop": None, "tools": []})
    s.ask("POST", "/v1/responses", {"input": "a", "max_output_tokens": 1, "store": True, "shade": 1})
    s.ask("POST", "/api/generate", {"prompt": "a", "options": {"num_predict": 1}, "template": "",
                                    "shift": True})
    s.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, "suffix": None, "best_of": 1,
                                      "echo": True})
    t.ok("fields that are not known are counted", s.metric("tenon_unknown_fields_total") == 5,
         s.metric("tenon_unknown_fields_total"))
    t.ok("metrics of the queue", s.metric("tenon_queue_seconds_count") == 7)
    t.ok("metrics of passes", s.metric("tenon_step_sequences_sum") >= 4 and
         s.wait_for("tenon_step_tokens_count", s.metric("tenon_steps_total")) and
         s.metric("tenon_step_tokens_sum") >= got["usage"]["prompt_tokens"])
    t.ok("exit code", s.end() == 0, s.err)
    lines = s.err.decode().splitlines()
    line = next((x for x in lines if got["id"] in x), "")
    t.ok("the line of a request", re.search(
        r"/v1/chat/completions 200 [\d.]+ ms, tokens: %d prompt, 0 cached, 3 generated, ms: [\d.]+ queue, "
        r"[\d.]+ prefill, [\d.]+ decode, length$" % got["usage"]["prompt_tokens"], line), line)
    t.ok("their names once", sum("the field colour of" in x for x in lines) == 1 and
         sum("the field shade of" in x for x in lines) == 1 and sum("no plain name" in x for x in lines) == 1,
         [x for x in lines if "the field" in x])
    t.ok("a client that leaves", any("cancelled, the client left" in x for x in lines), lines)
    t.ok("nothing of the client's", "secret" not in s.err.decode() and
         not any(x.startswith("line") for x in lines), lines)


def check_keys(t):
    path = t.temp("keys.txt")
    with open(path, "w") as f:
        f.write("# people\nfirst-key\nsecond-key\n")
    s = Server(t, *EXACT, "--api-key-file", path, env={"TENON_API_KEY": "third-key"})
    t.ok("health without a key", s.ask("GET", "/health")[0] == 200)
    status, headers, got = s.ask("GET", "/v1/models")
    t.ok("no key", status == 401 and headers["www-authenticate"] == "Bearer" and
         got["error"]["code"] == "invalid_api_key", got)
    t.ok("counted", s.metric('tenon_rejected_total{reason="key"}') == 1)
    for name, headers, want in (("first", {"Authorization": "Bearer first-key"}, 200),
                                ("case of the scheme", {"Authorization": "bearer second-key"}, 200),
                                ("of the environment", {"X-Api-Key": "third-key"}, 200),
                                ("a part", {"X-Api-Key": "third-ke"}, 401),
                                ("longer", {"X-Api-Key": "third-keyx"}, 401),
                                ("empty", {"X-Api-Key": ""}, 401),
                                ("Basic", {"Authorization": "Basic first-key"}, 401)):
        t.ok(f"key: {name}", s.ask("GET", "/v1/models", headers=headers)[0] == want)
    with open(path, "w") as f:
        f.write("fourth-key\n")
    s.p.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    fourth = {"X-Api-Key": "fourth-key"}
    while time.monotonic() < deadline and s.ask("GET", "/v1/models", headers=fourth)[0] != 200:
        time.sleep(0.05)
    t.ok("the file is read anew", s.ask("GET", "/v1/models", headers={"X-Api-Key": "first-key"})[0] == 401)
    t.ok("keys are not in the log", b"-key" not in s.err)
    s.end()
    got = t.run("serve", t.model, "--host", "0.0.0.0", "--port", "0", timeout=20)
    t.ok("no open server by accident", got.code == 2 and "--api-key-file" in got.err, got.err)


def check_drain(t):
    s = Server(t, *EXACT, "-np", "4")
    c, r = open_stream(s, ignore_eos=False, temperature=0, max_tokens=40)
    s.p.send_signal(signal.SIGTERM)
    data = r.read()
    t.ok("a stream may end", data.endswith(b"data: [DONE]\n\n"), data[-300:])
    t.ok("exit code", s.p.wait(30) == 0, s.err)
    s = Server(t, *EXACT, "-np", "1", "--drain", "1", "-c", "512")
    c, r = open_stream(s, logit_bias={"2": -100}, n=1)
    queued = s.connect()
    queued.request("POST", "/v1/chat/completions", json.dumps(LONG))
    s.wait_for("tenon_requests_waiting", 1)
    kept = s.connect()
    kept.request("GET", "/health")
    kept.getresponse().read()
    s.p.send_signal(signal.SIGTERM)
    answer = queued.getresponse()
    t.ok("what waits is refused", answer.status == 503 and
         json.loads(answer.read())["error"]["code"] == "shutting_down")
    try:
        kept.request("GET", "/health")
        t.ok("health", kept.getresponse().status == 503)
    except OSError:
        t.ok("or closed", True)
    rest = r.read()
    t.ok("the end of the time", b"[DONE]" in rest or b'"error"' in rest, rest[-300:])
    t.ok("exit code again", s.p.wait(30) == 0, s.err)
    try:
        socket.create_connection(("127.0.0.1", s.port), 2).close()
        t.ok("nobody listens", False)
    except OSError:
        t.ok("nobody listens", True)
    s = Server(t, *EXACT)
    t.ok("SIGINT", s.end(signal.SIGINT) == 0, s.err)


def check_start(t, s):
    got = t.run("serve", t.model, "--port", s.port, timeout=30)
    t.ok("port in use", got.code == 1 and "cannot listen" in got.err and "--port" in got.err, got.err)
    got = t.run("serve", t.temp("absent.gguf"), "--port", "0", timeout=30)
    t.ok("no model", got.code in (1, 3) and "absent.gguf" in got.err, (got.code, got.err))
    got = t.run("serve", timeout=30)
    t.ok("no argument", got.code == 2, got.err)
    got = t.run("serve", t.model, "--host", "no.such.name.invalid", "--open", timeout=60)
    t.ok("no such host", got.code == 2 and "--host" in got.err, got.err)


def ask_at(sock):
    """GET /health over a connection that is there already."""
    with sock:
        sock.settimeout(20)
        sock.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        data = b""
        while got := sock.recv(4096):
            data += got
    return data.startswith(b"HTTP/1.0 200") and data.endswith(b'{"status":"ok"}')


def wait_ready(p):
    """What the server says when it is ready."""
    for line in p.stderr:
        if b"listening on" in line:
            return line
    return b""


def check_sockets(t, s):
    """The second loopback address, a Unix socket, and a socket that systemd would pass."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        t.ok("::1, too", ask_at(socket.create_connection(("::1", s.port))))
    except OSError:
        t.skip("::1", "this machine has none")
    path = t.temp("tenon.sock")
    p = subprocess.Popen([t.tenon, "serve", t.model, "--host", path, *EXACT], stderr=subprocess.PIPE,
                         env=t.env)
    line = wait_ready(p)
    client = socket.socket(socket.AF_UNIX)
    client.connect(path)
    t.ok("a Unix socket", f"unix:{path}".encode() in line and ask_at(client), line)
    p.send_signal(signal.SIGTERM)
    t.ok("it is gone at the end", p.wait(30) == 0 and not os.path.exists(path))
    p.stderr.close()
    with socket.create_server(("127.0.0.1", 0)) as passed:
        port = passed.getsockname()[1]
        script = f'exec 3<&{passed.fileno()}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@"'
        p = subprocess.Popen(["sh", "-c", script, "sh", t.tenon, "serve", t.model, "--port", "1", *EXACT],
                             stderr=subprocess.PIPE, env=t.env, pass_fds=[passed.fileno()])
        early = socket.create_connection(("127.0.0.1", port))  # before the server is there
        line = wait_ready(p)
    t.ok("a socket that is passed", f":{port}\n".encode() in line and ask_at(early), line)
    p.send_signal(signal.SIGTERM)
    t.ok("exit code with it", p.wait(30) == 0)
    p.stderr.close()


def main():
    t, _, _ = cli.arguments()
    need_server(t)
    s = Server(t, *EXACT, "-np", "16")
    if not t.ok("the server starts", s.port is not None, s.err):
        sys.exit(t.done())
    for check in (check_http, check_leaving, check_start, check_sockets):
        check(t, s)
    t.ok("still well", s.ask("GET", "/health")[0] == 200)
    t.ok("exit code of the server", s.end() == 0, s.err)
    for check in (check_limits, check_log, check_keys, check_drain):
        check(t)
    sys.exit(t.done())


main()
