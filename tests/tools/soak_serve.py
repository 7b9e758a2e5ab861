# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""A server with four models of four sequences each under load and faults for some minutes: clients leave in
their answers, models come and go; memory must stay level, within 5 % from three minutes on and 1 % from ten.
Then requests with secrets, of which none may reach another client.
    soak_serve.py TENON [--minutes 3] [--clients 16] [--pause 0] [--isolation 1000] [--seed 1]
--pause: seconds that a client waits between requests, in the mean, for long runs beside other work.
With a tool built with -Db_sanitize=address,undefined an error of memory ends it, and so does a leak."""
import argparse
import http.client
import json
import os
import random
import shutil
import socket
import struct
import sys
import threading
import time

import cli
from serve import EXACT, Server, need_server

HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
NAMES = ("one", "two", "three", "four")
COMMON = "Mia lives in the blue house by the river. " * 12  # more than a block of the cache of prefixes


def resident(s):
    with open(f"/proc/{s.p.pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def level(s):
    pid = s.p.pid
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


class Client(threading.Thread):
    """Requests and faults, one after the other, until the time is over."""

    def __init__(self, s, seed, end, pause):
        super().__init__(daemon=True)
        self.s, self.end, self.pause, self.random = s, end, pause, random.Random(seed)
        self.n, self.n_faults, self.wrong = 0, 0, []

    def body(self, **more):
        words = self.random.choices("the a house tree river old blue lives Mia and".split(),
                                    k=self.random.randint(1, 40))
        turns = [{"role": "user", "content": " ".join(words)}]
        return {"model": self.random.choice(NAMES), "messages": turns,
                "max_tokens": self.random.randint(1, 24), **more}

    def raw(self, data, seconds, how):
        """Sends bytes and leaves, with a reset or without."""
        self.n_faults += 1
        with socket.create_connection(("127.0.0.1", self.s.port)) as sock:
            sock.sendall(data)
            time.sleep(seconds)
            if how:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def ask(self, path, fields, want):
        status, _, got = self.s.ask("POST", path, fields, timeout=120)
        self.n += 1
        if status not in want:
            self.wrong.append((path, status, str(got)[:200]))
        return got

    def one(self):
        r, kind = self.random, self.random.random()
        data = json.dumps(self.body(stream=r.random() < .5, max_tokens=200)).encode()
        request = HEAD % len(data) + data
        if kind < .1:  # leaves in its request or in its answer
            self.raw(request[:r.randint(1, len(request))], r.random() * .1, r.random() < .5)
        elif kind < .2:
            self.raw(request, r.random() * .5, r.random() < .5)
        elif kind < .25:
            self.ask("/v1/chat/completions", r.choice([b"{", b"", b"[" * 100, b'{"messages": 1}']), {400})
        elif kind < .3:
            self.ask("/v1/chat/completions", self.body(model="unreadable"), {500})
        elif kind < .33:
            turns = [{"role": "user", "content": "the house " * r.randint(2000, 40000)}]
            self.ask("/v1/chat/completions", self.body(messages=turns), {400, 429})
        elif kind < .36:
            self.ask("/api/chat", {"model": r.choice(NAMES), "keep_alive": 0}, {200})
        elif kind < .65:
            got = self.ask("/v1/chat/completions", self.body(stream=True), {200, 429})
            if isinstance(got, bytes) and not got.endswith(b"data: [DONE]\n\n"):
                self.wrong.append(("stream", got[-200:]))
        else:
            self.ask("/v1/chat/completions", self.body(n=r.randint(1, 2), logprobs=r.random() < .3),
                     {200, 429})

    def run(self):
        while time.monotonic() < self.end and self.s.p.poll() is None:
            try:
                self.one()
                time.sleep(self.pause * 2 * self.random.random())
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(repr(error))


def of_models(s, name):
    """The sum of a metric over the models."""
    _, _, text = s.ask("GET", "/metrics")
    return sum(float(line.split()[-1]) for line in text.decode().splitlines()
               if line.startswith(f"tenon_model_{name}{{"))


def soak(t, s, args):
    end = time.monotonic() + args.minutes * 60
    clients = [Client(s, args.seed * 1000 + i, end, args.pause) for i in range(args.clients)]
    for client in clients:
        client.start()
    rows, shown, loaded, users, start = [], 0, 0, 0, time.monotonic()
    while any(client.is_alive() for client in clients):
        time.sleep(1)
        now = time.monotonic() - start
        rows.append((now, resident(s)))
        if s.p.poll() is None and len(rows) % 4 == 0:
            loaded, users = max(loaded, of_models(s, "loaded")), max(users, of_models(s, "users"))
        if shown * 30 <= now:
            shown += 1
            print(f"{now:5.0f} s: {sum(c.n for c in clients)} requests, "
                  f"{sum(c.n_faults for c in clients)} that left, {rows[-1][1] / 2**20:.1f} MiB, "
                  f"{level(s)[0]} descriptors, {level(s)[1]} threads, at most {loaded:.0f} models and "
                  f"{users:.0f} requests at once", flush=True)
    wrong = [one for client in clients for one in client.wrong]
    t.ok("every answer is the stated one", not wrong, wrong[:5])
    t.ok("nothing runs or waits", s.wait_for("tenon_requests_running", 0) and
         s.wait_for("tenon_requests_waiting", 0))
    t.ok("four models were there at once", loaded == len(NAMES), loaded)
    # Plans, caches and the allocator grow at first, and loading a model takes memory for a moment: the lower
    # quarter of a sixth of the time, before its half and at its end.
    whole = rows[-1][0]
    early, late = (sorted(r for at, r in rows if whole * begin <= at <= whole * (begin + 1 / 6))
                   for begin in (1 / 3, 5 / 6))
    early, late = early[len(early) // 4], late[len(late) // 4]
    print(f"memory: {early / 2**20:.1f} MiB before half of the time, {late / 2**20:.1f} MiB in the last "
          f"sixth, {100 * (late / early - 1):+.2f} %")
    if args.minutes >= 3:
        t.ok("memory is level", late / early - 1 < (.01 if args.minutes >= 10 else .05), (early, late))


def isolation(t, s, args):
    """Each prompt has a secret that its answer repeats; no answer may have the secret of another."""
    todo, lock, wrong = [args.isolation], threading.Lock(), []

    def client(k):
        r = random.Random(args.seed * 77 + k)
        c = s.connect()
        while True:
            with lock:
                todo[0] -= 1
                if todo[0] < 0:
                    break
            secret = f"{k:03d}x{r.getrandbits(48):012x}"
            prompt = COMMON + f"The house has the number {secret} and Mia"
            body = {"model": NAMES[k % 2], "prompt": prompt, "max_tokens": 2, "echo": True,
                    "temperature": 0, "stream": r.random() < .5}
            c.request("POST", "/v1/completions", json.dumps(body), {"X-Request-Id": secret})
            answer = c.getresponse()
            text = answer.read().decode()
            known = answer.getheader("x-request-id")
            others = text.replace(secret, "").count("x") and [w for w in text.split() if len(w) == 16 and
                                                              w[3] == "x" and w != secret]
            if answer.status != 200 or known != secret or secret not in text or others:
                wrong.append((answer.status, known, secret, text[:300]))
        c.close()

    start = time.monotonic()
    threads = [threading.Thread(target=client, args=(k,)) for k in range(args.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{args.isolation} requests with secrets in {time.monotonic() - start:.0f} s, {len(wrong)} wrong")
    t.ok("no secret reaches another client", not wrong, wrong[:3])
    hits = s.metric("tenon_cache_hits_total")
    t.ok("prefixes were shared all the same", hits > args.isolation / 2, hits)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--isolation", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.argv[1:] = [args.tenon]
    t, _, _ = cli.arguments()
    need_server(t)
    folder = t.temp("models")
    os.mkdir(folder)
    for name in NAMES:
        shutil.copy(t.model, os.path.join(folder, name + ".gguf"))
    with open(os.path.join(folder, "unreadable.gguf"), "wb") as f:
        f.write(b"GGUF" + bytes(60))
    options = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":quarantine_size_mb=16"
    s = Server(t, *EXACT, "-np", "4", "-c", "512", "--keep-alive", "3", "--models-memory", "200",
               model=folder, env={"ASAN_OPTIONS": options})
    if t.ok("the server starts", s.port is not None, s.err):
        soak(t, s, args)
        isolation(t, s, args)
        t.ok("exit code, without a word of a sanitizer", s.end() == 0 and b"ERROR" not in s.err and
             b"runtime error" not in s.err, s.err[-3000:])
    sys.exit(t.done())


main()
