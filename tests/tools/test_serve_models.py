# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""tenon serve with several models: chosen by name, loaded on demand, unloaded when idle or when another one
needs their memory, never while a request runs."""
import json
import os
import shutil
import sys
import threading
import time
from datetime import datetime, timezone

import cli
from serve import EXACT, HELLO, LONG, Server, events, need_server, open_stream, streamed

SMALL = ["-np", "4", "-c", "512"]


def folder_of(t, golden):
    """Four copies of the model, a file that is no model, and an encoder where there is one."""
    path = t.temp("models")
    os.mkdir(path)
    for name in ("one", "two", "three", "four-00001-of-00001"):
        shutil.copy(t.model, os.path.join(path, name + ".gguf"))
    with open(os.path.join(path, "broken.gguf"), "wb") as f:
        f.write(b"GGUF" + b"\xff" * 100)
    with open(os.path.join(path, "notes.txt"), "w") as f:
        f.write("no model\n")
    bert = os.path.join(golden, "bert.gguf") if golden else ""
    if os.path.exists(bert):
        shutil.copy(bert, os.path.join(path, "vectors.gguf"))
    return path


def states(s):
    return {m["id"]: m["status"]["value"] for m in s.ask("GET", "/v1/models")[2]["data"]}


def loaded(s):
    return sorted(m["name"] for m in s.ask("GET", "/api/ps")[2]["models"])


def wait_until(what, seconds=20):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if what():
            return True
        time.sleep(0.05)
    return False


def check_choice(t, path):
    s = Server(t, *EXACT, *SMALL, model=path)
    if not t.ok("a folder is served", s.port is not None, s.err):
        return None
    t.ok("nothing is loaded at the start", loaded(s) == [], loaded(s))
    t.ok("the file that is no model is known", wait_until(lambda: states(s)["broken"] == "failed"), states(s))
    names = sorted(states(s))
    t.ok("all files are listed", [n for n in names if n != "vectors"] ==
         ["broken", "four", "one", "three", "two"], names)
    status, _, alone = s.chat(model="two")
    t.ok("by name", status == 200 and alone["model"] == "two", alone)
    t.ok("it alone was loaded", loaded(s) == ["two"], loaded(s))
    _, _, got = s.chat(model="three")
    t.ok("another one beside it", got["model"] == "three" and loaded(s) == ["three", "two"], got)
    text = alone["choices"][0]["message"]["content"]
    t.ok("the same file, the same text", got["choices"][0]["message"]["content"] == text, got)
    _, _, data = s.chat(model="four", stream=True)
    lines, chunks = events(data)
    t.ok("as a stream", lines[-1] == "[DONE]" and streamed(chunks) == text and chunks[0]["model"] == "four",
         lines)
    status, _, got = s.chat(model="five")
    t.ok("no such model", status == 404 and got["error"]["code"] == "model_not_found", got)
    _, _, got = s.ask("GET", "/v1/models/three")
    t.ok("one of the list", got["id"] == "three" and got["status"]["value"] == "loaded" and
         got["max_model_len"] == 512, got)
    tags = {m["name"]: m for m in s.ask("GET", "/api/tags")[2]["models"]}
    t.ok("tags", "broken" not in tags and tags["one"]["details"]["family"] and
         tags["one"]["size"] == os.path.getsize(os.path.join(path, "one.gguf")), tags)
    _, _, got = s.ask("POST", "/api/show", {"model": "one"})
    t.ok("shown without being loaded", got["model_info"]["general.architecture"] and
         "one" not in loaded(s), got)
    for _ in range(2):
        status, headers, got = s.chat(model="broken")
        t.ok("what cannot be loaded", status == 500 and got["error"]["code"] == "model_load_failed" and
             "broken.gguf" in got["error"]["message"] and headers["x-should-retry"] == "false", got)
    t.ok("the others go on", s.chat(model="two")[0] == 200 and s.ask("GET", "/health")[0] == 200)
    if "vectors" in names:
        status, _, got = s.ask("POST", "/v1/embeddings", {"model": "vectors", "input": "hello world"})
        alone = t.run("embed", os.path.join(path, "vectors.gguf"), "--json", "hello world", *EXACT)
        t.ok("vectors beside text", status == 200 and
             got["data"][0]["embedding"] == json.loads(alone.text)["embedding"], got)
        status, _, got = s.chat(model="vectors")
        t.ok("but no text of them", status == 400 and got["error"]["code"] == "unsupported_model", got)
    t.ok("counted by model", s.metric('tenon_model_requests_total{model="two"}') == 2 and
         s.metric('tenon_model_loads_total{model="two"}') == 1 and
         s.metric('tenon_model_generated_tokens_total{model="two"}') > 5 and
         s.metric('tenon_model_load_failures_total{model="broken"}') >= 1)
    need = s.metric('tenon_model_memory_bytes{model="two"}')
    t.ok("its memory", need > os.path.getsize(t.model), need)
    t.ok("the server ends", s.end() == 0, s.err)
    return need


def check_budget(t, path, need):
    two = str(int(need * 2.5) >> 20)
    s = Server(t, *EXACT, *SMALL, "--models-memory", two, model=path)
    for name in ("one", "two", "three", "one", "three"):
        status, _, got = s.chat(model=name, max_tokens=4)
        t.ok(f"{name} within the budget", status == 200 and got["model"] == name, got)
    t.ok("two fit", loaded(s) == ["one", "three"], loaded(s))
    t.ok("what was used least recently went", s.metric('tenon_model_loads_total{model="one"}') == 2 and
         s.metric('tenon_model_loads_total{model="three"}') == 1)
    t.ok("counts only grow", s.metric("tenon_steps_total") > 0)
    s.end()
    s = Server(t, *EXACT, *SMALL, "--models-memory", "1", model=path)
    status, _, got = s.chat(model="one")
    t.ok("more than the budget", status == 500 and
         "all models together may have" in got["error"]["message"], got)
    s.end()


def check_waiting(t, path, need):
    """One model fits, and it is in use."""
    s = Server(t, *EXACT, *SMALL, "--models-memory", str(int(need * 1.5) >> 20), model=path)
    c, r = open_stream(s, model="one", logit_bias={"2": -100})
    answers = {}

    def ask(name):
        answers[name] = s.chat(model=name, max_tokens=4)

    thread = threading.Thread(target=ask, args=("two",))
    thread.start()
    t.ok("the second one waits", wait_until(lambda: states(s)["two"] == "loading"), states(s))
    t.ok("the first one goes on", len(r.readline()) > 0 and loaded(s) == ["one"], loaded(s))
    gone = s.connect()
    gone.request("POST", "/v1/chat/completions", json.dumps({**LONG, "model": "three"}))
    t.ok("so does a third one", wait_until(lambda: states(s)["three"] == "loading"), states(s))
    gone.close()
    t.ok("whose client leaves", wait_until(lambda: states(s)["three"] == "unloaded"), states(s))
    r.close()
    c.close()
    thread.join(30)
    t.ok("it is loaded when the first one is idle", answers["two"][0] == 200 and
         loaded(s) == ["two"], answers)
    # Streams without a gap between them: after 10 s they have to wait, not the others.
    end = time.monotonic() + 40
    done = threading.Event()
    ok = []

    def keep_busy():
        while time.monotonic() < end and not done.is_set():
            status, _, data = s.chat(model="two", stream=True, max_tokens=60, ignore_eos=True)
            ok.append(status == 200 and data.endswith(b"data: [DONE]\n\n"))

    threads = [threading.Thread(target=keep_busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    start = time.monotonic()
    status, _, got = s.chat(model="one", max_tokens=4)
    took = time.monotonic() - start
    done.set()
    for thread in threads:
        thread.join(60)
    t.ok("nobody waits for ever", status == 200 and got["model"] == "one" and took < 30, (took, got))
    t.ok("and no stream was cut", len(ok) >= 3 and all(ok), ok)
    held = threading.Thread(target=ask, args=("three",))
    c, r = open_stream(s, model="one", logit_bias={"2": -100})
    held.start()
    wait_until(lambda: states(s)["three"] == "loading")
    s.p.send_signal(15)
    held.join(20)
    t.ok("the end of the server", answers["three"][0] == 503 and
         answers["three"][2]["error"]["code"] == "shutting_down", answers["three"])
    r.close()
    c.close()
    t.ok("exit code", s.p.wait(40) == 0, s.err)


def check_idle(t, path):
    s = Server(t, *EXACT, *SMALL, "--keep-alive", "1", model=path)
    s.chat(model="one", max_tokens=4)
    c, r = open_stream(s, model="two", logit_bias={"2": -100})
    t.ok("unloaded when idle", wait_until(lambda: loaded(s) == ["two"]), loaded(s))
    time.sleep(1.5)
    t.ok("but not while a request runs", loaded(s) == ["two"] and len(r.readline()) > 0, loaded(s))
    r.close()
    c.close()
    t.ok("and then it is", wait_until(lambda: loaded(s) == []), loaded(s))
    t.ok("and loaded again", s.chat(model="one", max_tokens=4)[0] == 200)
    _, _, got = s.ask("POST", "/api/generate", {"model": "one", "keep_alive": "1h"})
    t.ok("asked for", got["done_reason"] == "load", got)
    time.sleep(1.5)
    (model,) = s.ask("GET", "/api/ps")[2]["models"]
    expires = datetime.fromisoformat(model["expires_at"].replace("Z", "+00:00"))
    left = (expires - datetime.now(timezone.utc)).total_seconds()
    t.ok("kept as long as was asked for", model["name"] == "one" and 3500 < left < 3602, model)
    _, _, got = s.ask("POST", "/api/chat", {"model": "one:latest", "keep_alive": 0})
    t.ok("unloaded on request", got["done_reason"] == "unload" and wait_until(lambda: loaded(s) == []), got)
    t.ok("the server ends", s.end() == 0, s.err)
    s = Server(t, *EXACT, *SMALL)
    s.ask("POST", "/api/chat", {"model": "tenon-tiny", "keep_alive": 0})
    time.sleep(0.5)
    t.ok("one model alone stays", loaded(s) == ["tenon-tiny"], loaded(s))
    s.end()


def check_turns(t, path, need):
    """Many clients, models in turn, one at a time in memory: every answer is that of its model."""
    s = Server(t, *EXACT, *SMALL, "--models-memory", str(int(need * 1.5) >> 20), model=path)
    wrong, n_done = [], [0]

    def client(k):
        for i in range(6):
            name = ("one", "two", "three")[(i + k) % 3]
            status, _, got = s.chat(model=name, max_tokens=3)
            n_done[0] += 1
            if status != 200 or got["model"] != name:
                wrong.append(got)

    threads = [threading.Thread(target=client, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    t.ok("models in turn", not wrong and n_done[0] == 36, wrong)
    t.ok("nothing waits", s.metric("tenon_requests_waiting") == 0)
    t.ok("the server ends", s.end() == 0, s.err)


def check_usage(t, path):
    one = os.path.join(path, "one.gguf")
    got = t.run("serve", one, t.temp("absent.gguf"), "--port", "0", timeout=20)
    t.ok("an absent file", got.code == 3 and "absent.gguf" in got.err, (got.code, got.err))
    other = t.temp("other")
    os.mkdir(other)
    got = t.run("serve", other, "--port", "0", timeout=20)
    t.ok("an empty folder", got.code == 3 and "no file in this folder" in got.err, (got.code, got.err))
    shutil.copy(t.model, os.path.join(other, "one.gguf"))
    got = t.run("serve", one, other, "--port", "0", timeout=20)
    t.ok("two of one name", got.code == 2 and "same name" in got.err, (got.code, got.err))
    got = t.run("serve", path, "--alias", "x", "--port", "0", timeout=20)
    t.ok("no alias for several", got.code == 2 and "--alias" in got.err, (got.code, got.err))


def main():
    t, _, golden = cli.arguments()
    need_server(t)
    path = folder_of(t, golden)
    need = check_choice(t, path)
    if need:
        check_budget(t, path, need)
        check_waiting(t, path, need)
        check_idle(t, path)
        check_turns(t, path, need)
    check_usage(t, path)
    sys.exit(t.done())


main()
