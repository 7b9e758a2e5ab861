# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve when the device of its models is lost once, or its work does not end.
    test_serve_lost.py TENON [--quick]
The library tests/vulkan/between.c, which LD_LIBRARY_PATH leads to, loses the device at one submission, or
lets it never end."""
import os
import shutil
import sys
import time

import cli
from serve import Server, events, need_server

SMALL = ["--backend", "vulkan", "-np", "2", "-c", "512"]
ROUNDS = 40


def health(s, status, seconds=20):
    end = time.monotonic() + seconds
    while s.ask("GET", "/health")[0] != status:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def until_lost(s, **fields):
    """Answers until the device is lost: the first one, and that of the request that was running."""
    first = None
    for _ in range(ROUNDS):
        status, _, got = s.chat(max_tokens=16, **fields)
        if status != 200:
            return first, status, got
        first = first or got["choices"]
    return first, 200, got


def check_one(t):
    s = Server(t, *SMALL, env={"TN_BETWEEN_LOSES_AT": "200"})
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    first, status, got = until_lost(s)
    t.ok("the request that runs is told", first and status == 503 and got["error"]["code"] == "device_lost",
         (status, got))
    t.ok("the server is well again", health(s, 200))
    status, headers, got = s.chat(max_tokens=16)
    t.ok("the next request is answered, with the same text", status == 200 and got["choices"] == first, got)
    model = s.ask("GET", "/v1/models")[2]["data"][0]
    t.ok("the model is loaded", model["status"]["value"] == "loaded", model)
    t.ok("nothing is left of the lost one", s.metric("tenon_requests_running") == 0)
    t.ok("exit code", s.end() == 0, s.err)
    t.ok("the log says so", b"will be loaded again" in s.err, s.err)


def check_stream(t):
    """An answer that has begun ends with an error event."""
    s = Server(t, *SMALL, env={"TN_BETWEEN_LOSES_AT": "120"})
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    body = {"messages": [{"role": "user", "content": "Tell me a story."}], "ignore_eos": True,
            "max_tokens": 400, "stream": True}
    _, _, data = s.ask("POST", "/v1/chat/completions", body)
    lines, chunks = events(data)
    t.ok("the stream ends with an error", len(chunks) > 1 and chunks[-1]["error"]["code"] == "device_lost" and
         lines[-1] != "[DONE]", lines[-2:])
    t.ok("the next stream is whole", events(s.chat(stream=True, max_tokens=4)[2])[0][-1] == "[DONE]")
    t.ok("exit code", s.end() == 0, s.err)


def check_two(t):
    """Two models are on the device: both are loaded again."""
    path = t.temp("models")
    os.mkdir(path)
    for name in ("one", "two"):
        shutil.copy(t.model, os.path.join(path, name + ".gguf"))
    s = Server(t, *SMALL, model=path, env={"TN_BETWEEN_LOSES_AT": "400"})
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    status, _, other = s.chat(model="two", max_tokens=4)
    t.ok("the other one runs", status == 200, other)
    first, status, got = until_lost(s, model="one")
    t.ok("one is lost", status == 503 and got["error"]["code"] == "device_lost", (status, got))
    status, _, got = s.chat(model="two", max_tokens=4)
    t.ok("the other one is answered", status == 200 and got["choices"] == other["choices"], got)
    status, _, got = s.chat(model="one", max_tokens=16)
    t.ok("and so is this one", status == 200 and got["choices"] == first, got)
    t.ok("exit code", s.end() == 0, s.err)


def check_hang(t):
    """Work that does not end: the device is given up for good, and the server still answers and ends."""
    s = Server(t, *SMALL, "--device-timeout", "1", env={"TN_BETWEEN_HANGS_AT": "200"})
    if not t.ok("the server starts", s.port is not None, s.err):
        return
    first, status, got = until_lost(s)
    t.ok("the request that runs is told", first and status == 503 and got["error"]["code"] == "device_lost",
         (status, got))
    for _ in range(2):
        status, _, got = s.chat(max_tokens=16)
        t.ok("so is each later one", status == 503 and got["error"]["code"] == "device_lost", (status, got))
    t.ok("the server is not well", s.ask("GET", "/health")[0] == 503)
    t.ok("exit code", s.end() == 0, s.err)
    t.ok("the log says so", b"its work did not end within 1 s" in s.err, s.err)


def main():
    t, quick, _ = cli.arguments()
    t.env.pop("VK_ICD_FILENAMES")
    t.env.pop("VK_DRIVER_FILES")
    need_server(t)
    for check in (check_one, check_hang) if quick else (check_one, check_stream, check_two, check_hang):
        check(t)
    sys.exit(t.done())


main()
