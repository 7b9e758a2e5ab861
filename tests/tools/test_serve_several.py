# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Several tenon serve behind HAProxy with tools/server/haproxy.cfg: conversations stay on a server, and no
request whose answer has not begun is lost when a server is killed or ends."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

import cli
import serve

ARGS = ["-t", "1", "-np", "4", "-c", "1024", "--cache-tokens", "32768"]
USERS = 6
LOAD = ["--users", USERS, "--turns", 5, "--prompt", 60, "--answer", 24, "--sigma", 0.3, "--seconds", 600]
N_SINGLE, N_FAULTS = 120, 400  # requests


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Balancer:
    """HAProxy with the configuration of the repository, at other ports."""

    def __init__(self, t, program, servers):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.control = t.temp("control.sock")
        with open(os.path.join(t.root, "tools", "server", "haproxy.cfg"), encoding="utf-8") as f:
            text = f.read()
        places = {"127.0.0.1:8000": f"127.0.0.1:{self.port}", "127.0.0.1:8404": f"127.0.0.1:{free_port()}",
                  "/run/haproxy/admin.sock": self.control}
        for i, s in enumerate(servers):
            places[f"127.0.0.1:{8081 + i}"] = f"127.0.0.1:{s.port}"
        for old, new in places.items():
            t.ok(f"one {old} in the configuration", text.count(old) == 1)
            text = text.replace(old, new)
        path = t.temp("haproxy.cfg")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self.log = open(t.temp("haproxy.log"), "w+b")
        self.p = subprocess.Popen([program, "-db", "-f", path], stdout=self.log, stderr=self.log)

    def ask(self, command):
        """The answer of the control socket."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(10)
            s.connect(self.control)
            s.sendall(command.encode() + b"\n")
            return b"".join(iter(lambda: s.recv(65536), b"")).decode()

    def states(self):
        """UP, DOWN, DRAIN ... of each server."""
        lines = [line.split(",") for line in self.ask("show stat").splitlines()]
        return {line[1]: line[17] for line in lines if line[0] == "tenon" and line[1].startswith("s")}

    def wait_for(self, name, state, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.states().get(name, "").startswith(state):
                    return True
            except OSError:
                pass
            time.sleep(0.05)
        return False

    def chat(self, text, **headers):
        """Status and headers. Sent when nothing else is in work, so that no server has too much of it."""
        while sum(int(line.split(",")[4]) for line in self.ask("show stat").splitlines()
                  if line.startswith("tenon,s")):
            time.sleep(0.002)
        c = serve.http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 2, "temperature": 0}
        c.request("POST", "/v1/chat/completions", json.dumps(body),
                  {name.replace("_", "-"): value for name, value in headers.items()})
        r = c.getresponse()
        r.read()
        c.close()
        return r.status, r.headers

    def end(self):
        self.p.terminate()
        self.p.wait(10)
        self.log.close()


def n_requests(s):
    """Requests for text that a server has answered."""
    try:
        _, _, text = s.ask("GET", "/metrics", timeout=10)
    except OSError:
        return 0
    return sum(float(line.split()[-1]) for line in text.decode().splitlines()
               if line.startswith('tenon_requests_total{route="/v1/chat/completions",status="200"'))


def start_load(t, url, *args):
    out = t.temp(f"load-{time.monotonic_ns()}.json")
    tool = os.path.join(t.root, "tools", "load.py")
    p = subprocess.Popen([sys.executable, "-B", tool, url, "--json", out, *map(str, LOAD), *map(str, args)],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=t.env)
    return p, out


def end_load(t, load):
    p, out = load
    err = p.communicate(timeout=200)[1]
    t.ok("exit code of the load", p.returncode == 0, err.decode()[-500:])
    with open(out, encoding="utf-8") as f:
        return json.load(f)


def check_key(t, servers, balancer):
    """What the server returns, and where the balancer sends it."""
    a, b = ("The answer of the first people to this question was long and it is told as a story. " * 6,
            "Nobody knew what the second people had to say before the summer came to an end. " * 6)
    def key(s, text, **fields):
        fields = {"messages": [{"role": "user", "content": text}], "max_tokens": 1, **fields}
        return s.ask("POST", "/v1/chat/completions", fields)[1].get("x-prefix-key")
    first = key(servers[0], a)
    t.ok("a key", first and len(first) == 16 and set(first) <= set("0123456789abcdef"), first)
    t.ok("the same on another server, for a longer text", key(servers[1], a + b) == first)
    t.ok("and in a stream", key(servers[1], a, stream=True) == first)
    t.ok("another one for another text", key(servers[0], b) not in (first, None))
    t.ok("and for a salt", key(servers[0], a, cache_salt="me") not in (first, None))
    t.ok("none for a short text", key(servers[0], "Hi") is None)
    status, headers = balancer.chat(a)
    t.ok("it comes through the balancer", status == 200 and headers.get("x-prefix-key") == first, headers)
    for name, send in (("header", lambda i: balancer.chat(f"{i} {a}", X_Prefix_Key=first)),
                       ("body", lambda i: balancer.chat(a * 2 + str(i)))):
        before = [n_requests(s) for s in servers]
        for i in range(5):
            send(i)
        more = sorted(n_requests(s) - n for s, n in zip(servers, before))
        t.ok(f"one server by the {name}", more == [0, 0, 5], more)
    before = [n_requests(s) for s in servers]
    for i in range(24):
        balancer.chat("Hi", X_Prefix_Key=f"conversation-{i}")
    more = [n_requests(s) - n for s, n in zip(servers, before)]
    t.ok("other conversations elsewhere", min(more) >= 2, more)


def check_drain_by_hand(t, servers, balancer):
    """An operator takes a server out and puts it back."""
    balancer.ask("set server tenon/s2 state drain")
    before = n_requests(servers[1])
    good = sum(balancer.chat("Hi", X_Prefix_Key=f"conversation-{i}")[0] == 200 for i in range(24))
    t.ok("a drained server gets nothing", good == 24 and n_requests(servers[1]) == before, good)
    balancer.ask("set server tenon/s2 state ready")
    t.ok("ready again", balancer.wait_for("s2", "UP"))


def check_faults(t, servers, balancer, single):
    """One server is killed, comes back, and another one ends, under load."""
    load = start_load(t, balancer.url, "--key", "own", "--seed", 2, "--requests", N_FAULTS)
    counts = [n_requests(s) for s in servers]
    def wait_for(n):
        deadline = time.monotonic() + 100
        while time.monotonic() < deadline and load[0].poll() is None:
            if sum(n_requests(s) - c for s, c in zip(servers, counts)) >= n:
                return
            time.sleep(0.02)
    wait_for(N_FAULTS // 8)
    served = n_requests(servers[0])
    servers[0].p.kill()
    servers[0].p.wait(10)
    t.ok("the killed one is seen", balancer.wait_for("s1", "DOWN") and served > counts[0], balancer.states())
    servers[0], counts[0] = serve.Server(t, *ARGS, "--port", str(servers[0].port)), 0
    t.ok("it comes back", balancer.wait_for("s1", "UP"), servers[0].err)
    wait_for(N_FAULTS // 4)
    t.ok("the load still runs", load[0].poll() is None)
    code = servers[1].end(signal.SIGTERM)
    t.ok("the drained one ends well", code == 0, servers[1].err)
    got = end_load(t, load)
    t.ok("no request that had not begun is lost", got["failures_before_text"] == 0, got["failures"])
    # A conversation ends with its failure, so that less than the number of requests are made.
    t.ok("of those that had begun, only the killed ones", sum(got["failures"].values()) <= USERS and
         got["requests"] >= N_FAULTS - USERS, got["failures"])
    t.ok("prefixes are found", got["cached_share"] >= 0.8 * single["cached_share"],
         (got["cached_share"], single["cached_share"]))
    t.ok("all are at work", n_requests(servers[0]) > 0 and n_requests(servers[2]) > counts[2])
    print(f"cached share: {got['cached_share']} with three servers, {single['cached_share']} with one; "
          f"failures: {got['failures']}")


def main():
    t, _, _ = cli.arguments()
    serve.need_server(t)
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin:/usr/local/sbin")
    if not program:
        print("SKIP: there is no haproxy")
        sys.exit(serve.SKIPPED)
    servers = [serve.Server(t, *ARGS) for _ in range(3)]
    if not t.ok("the servers start", all(s.port for s in servers), [s.err for s in servers]):
        sys.exit(t.done())
    balancer = Balancer(t, program, servers)
    try:
        ready = all(balancer.wait_for(f"s{i}", "UP") for i in (1, 2, 3))
        if t.ok("all are healthy", ready, open(t.temp("haproxy.log"), encoding="utf-8").read()):
            single = end_load(t, start_load(t, f"http://127.0.0.1:{servers[0].port}", "--seed", 1,
                                            "--requests", N_SINGLE))
            t.ok("one server", not single["failures"] and single["cached_share"] > 0.3, single)
            check_key(t, servers, balancer)
            check_drain_by_hand(t, servers, balancer)
            check_faults(t, servers, balancer, single)
    finally:
        balancer.end()
        for s in servers:
            s.p.kill()
    sys.exit(t.done())


main()
