# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of tenon serve share: a server that runs, and its streams."""
import http.client
import json
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

SKIPPED = 77
# The level below AVX2 gives a row the same bits whatever else is in its batch.
EXACT = ["--isa", "generic", "-t", "1"]
HELLO = [{"role": "user", "content": "Where does Mia live?"}]
LONG = {"messages": [{"role": "user", "content": "Tell me a story."}], "ignore_eos": True, "temperature": 1}


class Server:
    """A server that runs, with its port."""

    def __init__(self, t, *args, model=None, env=None):
        self.t = t
        self.p = subprocess.Popen([t.tenon, "serve", model or t.model, "--port", "0", *args],
                                  stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  env={**t.env, **(env or {})})
        self.port, self.err = None, b""
        deadline = time.monotonic() + 60
        while self.port is None and time.monotonic() < deadline:
            line = self.p.stderr.readline()
            self.err += line
            if not line:
                break
            found = re.search(rb"listening on http://[\d.]+:(\d+)", line)
            if found:
                self.port = int(found.group(1))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.p.stderr:
            self.err += line

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        """Status, headers, body (JSON if it is)."""
        c = self.connect(timeout)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        c.request(method, path, body, headers or {})
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.getheader("content-type", "").startswith("application/json") and data:
            data = json.loads(data)
        return r.status, r.headers, data

    def chat(self, **fields):
        return self.ask("POST", "/v1/chat/completions", {"messages": HELLO, "temperature": 0, **fields})

    def raw(self, data, seconds=2):
        """What comes back for these bytes until the server closes or is silent."""
        s = socket.create_connection(("127.0.0.1", self.port))
        s.sendall(data)
        out, end = b"", time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([s], [], [], max(0, end - time.monotonic()))[0]:
                break
            try:
                got = s.recv(65536)
            except OSError:
                break
            if not got:
                break
            out += got
            if b"\r\n\r\n" in out and re.search(rb"content-length: (\d+)\r\n", out):
                head, _, rest = out.partition(b"\r\n\r\n")
                if len(rest) >= int(re.search(rb"content-length: (\d+)", head).group(1)):
                    break
        s.close()
        return out

    def metric(self, name):
        _, _, text = self.ask("GET", "/metrics")
        for line in text.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return None

    def wait_for(self, name, value, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.metric(name) == value:
                return True
            time.sleep(0.02)
        return False

    def end(self, number=signal.SIGTERM, timeout=60):
        self.p.send_signal(number)
        code = self.p.wait(timeout)
        self.reader.join(10)
        return code


def events(data):
    """The data lines of a stream as they are, and as objects."""
    lines = [line[6:] for line in data.decode().split("\n\n") if line.startswith("data: ")]
    return lines, [json.loads(line) for line in lines if line != "[DONE]"]


def streamed(chunks, index=0):
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks
                   if c["choices"] and c["choices"][0]["index"] == index)


def open_stream(s, **fields):
    c = s.connect()
    c.request("POST", "/v1/chat/completions", json.dumps({**LONG, "stream": True, **fields}))
    r = c.getresponse()
    r.readline()
    return c, r


def need_server(t):
    """Ends the test where the tool has no server: without one the command fails before it reads anything."""
    if "no server" in t.run("serve").err:
        print("SKIP: this build has no tenon serve")
        sys.exit(SKIPPED)
