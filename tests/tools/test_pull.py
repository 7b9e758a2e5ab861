# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""`tenon pull` against a local server that breaks off, lies about lengths, serves wrong bytes, ignores
ranges, changes files between attempts and redirects in a loop; and a pull that is killed at many points.

    test_pull.py TENON [--quick]
"""
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

from cli import arguments, as_json, on_terminal
from hub import File, Hub

SMALL = 300000


def blob(n, seed=1):
    """Bytes that begin as a GGUF file does."""
    return b"GGUF" + random.Random(seed).randbytes(n - 4)


def own(t, *path):
    return os.path.join(t.temp("home/XDG_DATA_HOME/tenon/models"), *path)


def left(t, repository):
    """What is in the folder of a repository."""
    folder = own(t, *repository.split("/"))
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def holds(t, repository, file, data):
    path = own(t, *repository.split("/"), file)
    if not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        return f.read() == data


def pull(t, hub, *args, **env):
    env = {"HF_ENDPOINT": hub.url, "no_proxy": "*", "CURL_CA_BUNDLE": "", **env}
    return t.run("pull", *args, **env)


def check_choice(t, hub):
    """Which files of a repository are taken."""
    files = {"m-Q4_K_M.gguf": 1, "m-Q8_0.gguf": 2, "m-UD-Q4_K_XL.gguf": 3, "mmproj-m-f16.gguf": 4,
             "imatrix.gguf": 5, "BF16/m-BF16-00001-of-00002.gguf": 6, "BF16/m-BF16-00002-of-00002.gguf": 7,
             "x/../../../evil-Q2_K.gguf": 8, "..evil-Q2_K.gguf": 9, "sub/.evil-Q2_K.gguf": 10}
    hub.repositories["org/m-GGUF"] = {name: File(blob(2000, seed)) for name, seed in files.items()}
    wanted = {"org/m-GGUF": ["m-Q4_K_M.gguf"], "org/m-GGUF:q8_0": ["m-Q8_0.gguf"],
              "hf.co/org/m-GGUF:UD-Q4_K_XL": ["m-UD-Q4_K_XL.gguf"],
              "org/m-GGUF:Q4_K_XL": ["m-UD-Q4_K_XL.gguf"], "org/m-GGUF:m-Q8_0.gguf": ["m-Q8_0.gguf"],
              "org/m-GGUF:BF16": ["m-BF16-00001-of-00002.gguf", "m-BF16-00002-of-00002.gguf"],
              hub.url + "/org/m-GGUF": ["m-Q4_K_M.gguf"],
              hub.url + "/org/m-GGUF/blob/main/m-Q8_0.gguf": ["m-Q8_0.gguf"],
              hub.url + "/org/m-GGUF/resolve/other/m-Q8_0.gguf?download=true": ["m-Q8_0.gguf"]}
    for name, expected in wanted.items():
        r = pull(t, hub, name)
        first = own(t, "org", "m-GGUF", expected[0])
        t.ok(f"pull {name}", r.code == 0 and left(t, "org/m-GGUF") == expected
             and r.text == first + "\n", (r.code, r.err, r.text, left(t, "org/m-GGUF")))
        shutil.rmtree(own(t), ignore_errors=True)
    hub.repositories["org/two"] = {"a-Q4_K_M.gguf": File(blob(99)), "b-Q4_K_M.gguf": File(blob(98))}
    hub.repositories["org/odd"] = {"odd-Q2_K.gguf": File(blob(97)), "odd-Q3_K_M.gguf": File(blob(96))}
    hub.repositories["org/none"] = {}
    hub.repositories["org/gap"] = {"g-Q8_0-00001-of-00003.gguf": File(blob(95)),
                                   "g-Q8_0-00003-of-00003.gguf": File(blob(95))}
    for name, code, words in (
            ("org/two", 2, ["several", "a-Q4_K_M.gguf", "b-Q4_K_M.gguf"]),
            ("org/m-GGUF:Q5_0", 1, ["Q5_0", "Q4_K_M, Q8_0"]), ("org/m-GGUF:Q2_K", 1, ["Q2_K"]),
            ("org/none", 1, ["no GGUF file"]), ("org/gap", 1, ["part 2 of 3", "missing"]),
            ("org/absent", 1, ["HF_TOKEN", "refuses"]),
            ("nothing", 2, ["ORG/NAME"]), ("../x", 2, ["ORG/NAME"]), ("a/..", 2, ["ORG/NAME"]),
            ("a/b/c", 2, ["ORG/NAME"]), ("org/m GGUF", 2, ["ORG/NAME"]), ("-x/y", 2, [])):
        r = pull(t, hub, name)
        t.ok(f"pull {name}", r.code == code and len(r.err.splitlines()) == 1 and not r.out
             and all(w in r.err for w in words), (r.code, r.err))
    r = pull(t, hub, "org/odd")
    t.ok("without the usual types the first", r.code == 0 and left(t, "org/odd") == ["odd-Q2_K.gguf"]
         and "no Q4_K_M" in r.err, r.err)
    t.ok("nothing is outside of the folder", sorted(os.listdir(own(t))) == ["org"], os.listdir(own(t)))


def check_whole(t, hub):
    """A real model: pulled, run by name, pulled again, removed; the token, and who sees it."""
    with open(t.model, "rb") as f:
        data = f.read()
    hub.repositories["acme/tiny-GGUF"] = {"tiny-Q8_0.gguf": File(data)}
    r = t.run("run", "acme/tiny-GGUF", "-p", "x", "-n", 1)
    t.ok("run names the remedy", r.code == 1 and "'tenon pull acme/tiny-GGUF'" in r.err, r.err)
    del hub.log[:]
    r = pull(t, hub, "acme/tiny-GGUF", "--json", HF_TOKEN="hf_secret\n")
    d = as_json(t, "pull --json", r.out)
    t.ok("pull --json", r.code == 0 and d["bytes"] == d["downloaded"] == len(data) and d["type"] == "Q8_0"
         and d["name"] == "acme/tiny-GGUF:Q8_0"
         and d["files"][0]["sha256"] == hashlib.sha256(data).hexdigest(), (r.err, d))
    t.ok("the token is seen by the endpoint", all(h.get("Authorization") == "Bearer hf_secret"
                                                  for role, _, h, _ in hub.log if role == "hub"), hub.log)
    seen = [h for role, _, h, _ in hub.log if role == "store"]
    t.ok("and by nobody else", seen and not any("Authorization" in h for h in seen), hub.log)
    t.ok("nor printed, as nothing that is signed", "secret" not in r.err + r.text, r.err)
    r = t.run("run", "acme/tiny:Q8_0", "-st", "-p", "Where does Mia live?", "--temp", "0")
    t.ok("it runs by name", r.code == 0 and b"blue house" in r.out, r.err)
    del hub.log[:]
    r = pull(t, hub, "acme/tiny-GGUF")
    t.ok("a second pull only checks", r.code == 0 and "already" in r.err
         and not [x for x in hub.log if x[0] == "store"], (r.err, hub.log))
    with open(own(t, "acme", "tiny-GGUF", "tiny-Q8_0.gguf"), "r+b") as f:
        f.seek(5000)
        f.write(b"damaged")
    r = pull(t, hub, "acme/tiny-GGUF")
    t.ok("a damaged file is fetched again", r.code == 0
         and holds(t, "acme/tiny-GGUF", "tiny-Q8_0.gguf", data), r.err)
    r = t.run("rm", "acme/tiny-GGUF")
    t.ok("rm", r.code == 0 and not os.path.exists(own(t, "acme")), r.err)
    there = t.temp("elsewhere/acme/tiny-GGUF/tiny-Q8_0.gguf")
    os.makedirs(os.path.dirname(there))
    shutil.copy(t.model, there)
    r = pull(t, hub, "acme/tiny-GGUF", TENON_MODELS=t.temp("elsewhere"))
    t.ok("what another folder has is not fetched", r.code == 0 and r.text == there + "\n"
         and not os.path.exists(own(t, "acme")), r.err)


def check_tokens(t, hub):
    """Where a token comes from, and messages for what it does not open."""
    hub.repositories["org/priv"] = {"p-Q8_0.gguf": File(blob(3000))}
    token = t.temp("home/XDG_CACHE_HOME/huggingface/token")
    os.makedirs(os.path.dirname(token), exist_ok=True)
    with open(token, "w") as f:
        f.write("hf_login\n")
    del hub.log[:]
    r = pull(t, hub, "org/priv")
    t.ok("the login of hf", r.code == 0 and hub.log[0][2].get("Authorization") == "Bearer hf_login", r.err)
    os.remove(token)
    del hub.log[:]
    r = pull(t, hub, "org/priv", HF_TOKEN="a\nX-Injected: b")
    t.ok("a token with a line break", r.code == 2 and not hub.log and "Injected" not in r.err, r.err)
    hub.list_headers = [("X-Error-Code", "GatedRepo")]
    r = pull(t, hub, "org/gated")
    t.ok("gated", r.code == 1 and "terms" in r.err and "/org/gated" in r.err, r.err)
    hub.list_headers = []
    hub.list_statuses = [503, 429, 500]
    r = pull(t, hub, "org/priv")
    t.ok("a server that fails at times", r.code == 0, r.err)
    hub.list_statuses = [503] * 5
    r = pull(t, hub, "org/priv")
    t.ok("a server that fails always", r.code == 1 and "503" in r.err, r.err)
    hub.list_statuses = []


def check_breaks(t, hub):
    """Connections that break off, ranges that are ignored, files that change."""
    data = blob(SMALL)
    cases = {
        "breaks": File(data, cuts=[70000, 1, 0, 66000, 100]),
        "ignores ranges": File(data, cuts=[70000, 120000], ranges="ignored"),
        "fails between": File(data, cuts=[1000], statuses=[500, 503]),
        "no validator": File(data, cuts=[1000, 2000], etag=""),
        "chunked": File(data, chunked=True, cuts=[1000]),
        "no length": File(data, announced=0, cuts=[5000]),
        "stalls": File(data, stall=True),
    }
    for number, (name, f) in enumerate(cases.items()):
        hub.repositories[f"b/r{number}"] = {"m-Q8_0.gguf": f}
        r = pull(t, hub, f"b/r{number}", "--timeout", 2)
        t.ok(name, r.code == 0 and holds(t, f"b/r{number}", "m-Q8_0.gguf", data)
             and left(t, f"b/r{number}") == ["m-Q8_0.gguf"], (r.code, r.err, left(t, f"b/r{number}")))
    t.ok("a break is no new start", cases["breaks"].answers <= 7, cases["breaks"].answers)
    hub.repositories["b/dead"] = {"m-Q8_0.gguf": (f := File(data, cuts=[100000], always_cut=None))}
    f.before = lambda n: n > 0 and setattr(f, "always_cut", 0)
    r = pull(t, hub, "b/dead")
    t.ok("a connection that stays broken", r.code == 1 and "are kept" in r.err
         and left(t, "b/dead") == ["m-Q8_0.gguf.part", "m-Q8_0.gguf.part.json"], (r.err, left(t, "b/dead")))
    f.before, f.always_cut = None, None
    d = as_json(t, "kept", pull(t, hub, "b/dead", "--json").out)
    t.ok("what was kept is used", d["resumed"] + d["downloaded"] == SMALL and d["resumed"] >= 65536
         and holds(t, "b/dead", "m-Q8_0.gguf", data), d)


def check_changes(t, hub):
    """Bytes of one state never meet those of another."""
    old, new = blob(SMALL, 1), blob(SMALL, 2)
    f = File(old, cuts=[100000])
    f.before = lambda n: n == 1 and f.replace(new)
    hub.blobs["/u/change-Q8_0.gguf"] = f
    r = pull(t, hub, hub.url + "/u/change-Q8_0.gguf")
    t.ok("another file behind the same address: that one", r.code == 0
         and holds(t, ".", "change-Q8_0.gguf", new), r.err)
    f = File(old, cuts=[100000], ranges="honoured")
    f.before = lambda n: n == 1 and (f.replace(new), setattr(f, "etag", File(old).etag))
    hub.repositories["c/same-tag"] = {"m-Q8_0.gguf": f}
    f.linked = False
    r = pull(t, hub, "c/same-tag")
    t.ok("another file under the same tag and hash", r.code == 3 and "SHA-256" in r.err
         and left(t, "c/same-tag") == [], (r.err, left(t, "c/same-tag")))
    f = File(old, always_cut=None, cuts=[100000])
    f.before = lambda n: n > 0 and setattr(f, "always_cut", 0)
    hub.repositories["c/later"] = {"m-Q8_0.gguf": f}
    pull(t, hub, "c/later")
    hub.repositories["c/later"] = {"m-Q8_0.gguf": File(new)}
    r = pull(t, hub, "c/later")
    t.ok("a new state between two runs", r.code == 0 and holds(t, "c/later", "m-Q8_0.gguf", new), r.err)
    hub.repositories["c/later"] = {"m-Q8_0.gguf": File(blob(SMALL - 5, 3))}
    r = pull(t, hub, "c/later")
    t.ok("a newer file replaces the old one", r.code == 0
         and holds(t, "c/later", "m-Q8_0.gguf", blob(SMALL - 5, 3)), r.err)


def check_damage(t, hub):
    """What an earlier run left is damaged, or of nobody."""
    data = blob(SMALL)
    hub.repositories["d/part"] = {"m-Q8_0.gguf": (f := File(data))}
    folder = own(t, "d", "part")

    def leave(part, info):
        os.makedirs(folder, exist_ok=True)
        for name, text in (("m-Q8_0.gguf.part", part), ("m-Q8_0.gguf.part.json", info)):
            if text is not None:
                with open(os.path.join(folder, name), "wb") as out:
                    out.write(text)
    info = b'{"url": "x", "validator": "", "sha256": "%s"}' % f.sha256.encode()
    for name, part, text in (("damaged", b"GGUF" + bytes(90000), info), ("too long", data + b"x", info),
                             ("complete", data, info), ("complete but damaged", data[:-1] + b"!", info),
                             ("without its notes", data[:1000], None), ("broken notes", data[:1000], b"{"),
                             ("foreign notes", b"GGUFx", info.replace(b"sha256", b"sha1")),
                             ("notes alone", None, info),
                             ("hostile notes", data[:1000], info.replace(b'""', b'"a\\r\\nX-Injected: 1"'))):
        leave(part, text)
        del hub.log[:]
        r = pull(t, hub, "d/part")
        t.ok(f"a part that is {name}", r.code == 0 and holds(t, "d/part", "m-Q8_0.gguf", data)
             and left(t, "d/part") == ["m-Q8_0.gguf"] and "X-Injected" not in str(
                 [sorted(h) for _, _, h, _ in hub.log]), (r.code, r.err, left(t, "d/part")))
        shutil.rmtree(folder)
    os.makedirs(folder)
    os.symlink(t.temp("victim"), os.path.join(folder, "m-Q8_0.gguf.part"))
    r = pull(t, hub, "d/part")
    t.ok("a part that is a link", r.code == 1 and not os.path.exists(t.temp("victim")), r.err)
    shutil.rmtree(folder)


def check_lies(t, hub):
    """Lengths, hashes and contents that are not what was said. Nothing of such a file stays."""
    data = blob(SMALL)
    cases = {
        "wrong bytes": (File(data, sha256="0" * 64, linked=False), 3, "SHA-256"),
        "another hash at the file": (File(data, sha256="0" * 64), 3, "another file"),
        "a shorter file than listed": (File(data, size=SMALL + 1, linked=False), 1, "announces"),
        "more bytes than announced": (File(data, chunked=True, extra=b"more"), 1, "more than"),
        "a page": (File(b"<html>" + data), 3, "no GGUF"),
        "an empty file": (File(b"", linked=False), 3, "no GGUF"),
        "ranges of other bytes": (File(data, ranges="wrong", always_cut=70000), 1, "other bytes"),
        "too large for any disk": (File(data, size=1 << 60), 1, "free"),
        "gone": (None, 1, "no such thing"),
    }
    for number, (name, (f, code, word)) in enumerate(cases.items()):
        repository = f"l/r{number}"
        hub.repositories[repository] = {"m-Q8_0.gguf": f or File(data)}
        if f is None:
            hub.repositories[repository]["m-Q8_0.gguf"].statuses = [404]
        r = pull(t, hub, repository)
        t.ok(f"{name}: refused", r.code == code and word in r.err and not r.out, (r.code, r.err))
        t.ok(f"{name}: nothing stays", left(t, repository) == [] or name.startswith("ranges"),
             left(t, repository))
    f = hub.repositories["l/r0"]["m-Q8_0.gguf"]
    t.ok("wrong bytes are not fetched twice", f.answers == 1, f.answers)
    for name, body in (("no JSON", b"<html>"), ("deep", b"[" * 100000), ("cut", b'{"siblings": [{"rfilename'),
                       ("odd", b'{"siblings": [{"rfilename": 5, "size": "x", "lfs": []}], "sha": {}}'),
                       ("negative", b'{"siblings": [{"rfilename": "a-Q8_0.gguf", "size": -5}]}')):
        hub.repositories["l/list"] = body
        r = pull(t, hub, "l/list")
        t.ok(f"a list that is {name}", r.code == 1 and len(r.err.splitlines()) == 1, (r.code, r.err))
    r = pull(t, hub, "l/list", "--json")
    d = as_json(t, "failure as JSON", r.out)
    t.ok("a failure with --json", r.code == 1 and d["error"]["code"] == 1 and d["error"]["message"], d)


def check_addresses(t, hub):
    """URLs of other places, redirects."""
    data = blob(SMALL)
    sha = hashlib.sha256(data).hexdigest()
    hub.blobs["/u/m-Q4_0.gguf"] = File(data)
    hub.blobs["/u/s-Q8_0-00001-of-00002.gguf"] = File(blob(900))
    hub.blobs["/u/s-Q8_0-00002-of-00002.gguf"] = File(blob(901))
    hub.targets.update({"/to/m-Q4_0.gguf": hub.store_url + "/u/m-Q4_0.gguf",
                        "/to/file.gguf": "file:///etc/passwd", "/to/ftp.gguf": "ftp://127.0.0.1/x"})
    other = hub.store_url + "/u/m-Q4_0.gguf"
    for args, code, word in (
            (["https://user:pass@127.0.0.1/m.gguf"], 2, "password"), (["https://127.0.0.1/"], 2, "GGUF"),
            (["https://127.0.0.1/..%2fm.gguf"], 2, "GGUF"), (["https://127.0.0.1/.gguf"], 2, "GGUF"),
            ([other], 2, "--sha256"), ([other, "--sha256", "12"], 2, "64"),
            ([other, "--sha256", "0" * 64], 3, "SHA-256"),
            ([hub.url + "/loop-Q8_0.gguf"], 1, "redirects"), ([hub.url + "/to/file.gguf"], 1, "https://"),
            ([hub.url + "/to/ftp.gguf"], 1, "https://"), ([hub.url + "/u/absent.gguf"], 1, "no such"),
            (["org/m", "--endpoint", "ftp://127.0.0.1"], 2, "endpoint"),
            (["org/m", "--endpoint", "http://u:p@127.0.0.1"], 2, "endpoint"),
            (["org/m", "--endpoint", "http://127.0.0.1:1"], 1, "127.0.0.1"),
            (["org/m", "--offline"], 1, "--offline"), ([], 2, "one"), (["a/b", "c/d"], 2, "one")):
        r = pull(t, hub, *args)
        t.ok(f"pull {args}", r.code == code and word in r.err and "pass@" not in r.err, (r.code, r.err))
    t.ok("nothing was made", not [n for n in os.listdir(own(t)) if "gguf" in n and "change" not in n],
         os.listdir(own(t)))
    r = pull(t, hub, other, "--sha256", sha.upper())
    t.ok("http with a checksum", r.code == 0 and holds(t, ".", "m-Q4_0.gguf", data), r.err)
    r = pull(t, hub, hub.url + "/to/m-Q4_0.gguf")
    t.ok("a file of the same size is there", r.code == 0 and "already" in r.err, r.err)
    os.remove(own(t, "m-Q4_0.gguf"))
    r = pull(t, hub, hub.url + "/to/m-Q4_0.gguf", HF_TOKEN="hf_secret")
    t.ok("a redirect to another origin", r.code == 0 and "Authorization" not in hub.log[-1][2], r.err)
    r = pull(t, hub, hub.url + "/u/s-Q8_0-00001-of-00002.gguf", "--json")
    t.ok("all parts of a URL", r.code == 0 and len(as_json(t, "parts", r.out)["files"]) == 2, r.err)
    hub.blobs["/u/n-Q8_0.gguf"] = File(data, announced=0)
    r = pull(t, hub, hub.url + "/u/n-Q8_0.gguf")
    t.ok("neither size nor checksum", r.code == 1 and "--sha256" in r.err, r.err)
    r = pull(t, hub, "org/m", HF_HUB_OFFLINE="1")
    t.ok("HF_HUB_OFFLINE", r.code == 1 and "HF_HUB_OFFLINE" in r.err, r.err)


def check_tls(t):
    """A certificate that nobody vouches for is refused; one that is trusted is not. No way back to http."""
    pem = t.temp("server.pem")
    made = shutil.which("openssl") and subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test",
         "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", pem + ".key", "-out", pem + ".crt"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    if not made:
        t.skip("TLS", "no openssl to make a certificate")
        return
    with open(pem, "w") as out:
        for part in (".key", ".crt"):
            with open(pem + part) as f:
                out.write(f.read())
    hub, plain = Hub(pem), Hub()
    data = blob(SMALL)
    hub.repositories["org/tls"] = {"m-Q8_0.gguf": File(data, cuts=[1000])}
    del hub.log[:]
    r = pull(t, hub, "org/tls", HF_TOKEN="hf_secret")
    t.ok("a foreign certificate", r.code == 1 and "certificate" in r.err and not hub.log, r.err)
    r = pull(t, hub, "org/tls", SSL_CERT_FILE=pem + ".crt")
    t.ok("a trusted certificate", r.code == 0 and holds(t, "org/tls", "m-Q8_0.gguf", data), r.err)
    plain.blobs["/m-Q8_0.gguf"] = File(data)
    hub.targets["/to/m-Q8_0.gguf"] = plain.url + "/m-Q8_0.gguf"
    r = pull(t, hub, hub.url + "/to/m-Q8_0.gguf", SSL_CERT_FILE=pem + ".crt")
    t.ok("from https to http", r.code == 1 and "not encrypted" in r.err and not plain.log, r.err)
    hub.close()
    plain.close()


def start(t, hub, *args, **more):
    return subprocess.Popen([t.tenon, "pull", *args], env={**t.env, "HF_ENDPOINT": hub.url, "no_proxy": "*"},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=t.folder.name, **more)


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def check_stops(t, hub):
    """Ctrl-C, a full disk, two at a time."""
    data = blob(2000000)
    hub.repositories["s/slow"] = {"m-Q8_0.gguf": (f := File(data, delay=0.05))}
    part = own(t, "s", "slow", "m-Q8_0.gguf.part")
    p = start(t, hub, "s/slow")
    t.ok("it has begun", wait_for(lambda: os.path.exists(part) and os.path.getsize(part) > 100000), "")
    r = pull(t, hub, "s/slow")
    t.ok("a second one at the same time", r.code == 1 and "locked" in r.err, r.err)
    before = time.monotonic()
    p.send_signal(signal.SIGINT)
    _, err = p.communicate()
    kept = os.path.getsize(part)
    t.ok("Ctrl-C", p.returncode == 130 and time.monotonic() - before < 2 and b"are kept" in err
         and 0 < kept < len(data), (p.returncode, err))
    p = start(t, hub, "s/slow")
    wait_for(lambda: os.path.getsize(part) > kept)
    p.send_signal(signal.SIGTERM)
    p.communicate()
    t.ok("SIGTERM", p.returncode == 143 and os.path.getsize(part) >= kept, p.returncode)
    kept = os.path.getsize(part)
    limit = kept + 200000
    p = start(t, hub, "s/slow", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    _, err = p.communicate()
    t.ok("a full disk", p.returncode == 1 and b"cannot write" in err and b"are kept" in err
         and os.path.getsize(part) == limit, (p.returncode, err))
    f.delay = 0
    d = as_json(t, "after that", pull(t, hub, "s/slow", "--json").out)
    t.ok("and all of it was of use", d.get("resumed") == limit and holds(t, "s/slow", "m-Q8_0.gguf", data), d)
    folder = own(t, "s")
    os.chmod(folder, 0o500)
    if os.access(folder, os.W_OK):
        t.skip("a folder that cannot be written", "this user may write everywhere")
    else:
        hub.repositories["s/other"] = hub.repositories["s/slow"]
        r = pull(t, hub, "s/other")
        t.ok("a folder that cannot be written", r.code == 1 and "cannot make" in r.err, r.err)
    os.chmod(folder, 0o700)


def check_terminal(t, hub):
    """The bar on a terminal, and none elsewhere."""
    hub.repositories["t/t"] = {f"m-Q8_0-0000{k}-of-00002.gguf": File(blob(1000000, k), delay=0.03)
                               for k in (1, 2)}
    env = {"HF_ENDPOINT": hub.url, "no_proxy": "*"}
    for name, args, variables, bar in (("a bar", [], {}, True), ("TERM=dumb", [], {"TERM": "dumb"}, False)):
        seen, code = on_terminal(t, ["pull", "t/t", *args], **env, **variables)
        drawn = re.search(rb"\r\[[#.]{20}\] +\d+ % getting file [12] of 2, [\d.]+ [KM]iB of 1.91 MiB, ",
                          seen)
        t.ok(name, code == 0 and bool(drawn) == bar and (bar or b"\x1b" not in seen), seen[-400:])
        shutil.rmtree(own(t, "t"))
    seen, code = on_terminal(t, ["pull", "t/t"], rb"getting file", b"\x03", **env)
    t.ok("Ctrl-C on a terminal", code == 130 and seen.endswith(b"\n") and b"\r\x1b[Ktenon: m-" in seen,
         seen[-300:])
    r = pull(t, hub, "t/t", TERM="xterm")
    t.ok("no terminal", r.code == 0 and "\x1b" not in r.err and "%" not in r.err, r.err)


def check_kills(t, hub, n):
    """kill -9 at random points, at all times: the file is absent or complete, and a pull ends right."""
    parts = {f"k-Q8_0-0000{k}-of-00002.gguf": File(blob(1500000, k), delay=0.004) for k in (1, 2)}
    hub.repositories["k/k"] = parts
    rng, finished, resumed, begun = random.Random(17), 0, 0, 0
    p = start(t, hub, "k/k")
    before = time.monotonic()
    p.communicate()
    whole = time.monotonic() - before
    t.ok("one without kill", p.returncode == 0, p.returncode)
    shutil.rmtree(own(t, "k"))
    for _ in range(n):
        p = start(t, hub, "k/k")
        time.sleep(rng.uniform(0, 0.8 * whole))
        p.send_signal(signal.SIGKILL)
        p.communicate()
        for name, f in parts.items():
            path = own(t, "k", "k", name)
            if os.path.exists(path) and not t.ok("no half file", holds(t, "k/k", name, f.data), name):
                return
        begun += any(name.endswith(".part") for name in left(t, "k/k"))
        if left(t, "k/k") == sorted(parts):
            finished += 1
            shutil.rmtree(own(t, "k"))
    r = pull(t, hub, "k/k", "--json")
    d = as_json(t, "the last one", r.out)
    resumed = d.get("resumed", 0)
    t.ok(f"after {n} kills", r.code == 0 and left(t, "k/k") == sorted(parts)
         and all(holds(t, "k/k", name, f.data) for name, f in parts.items()), (r.err, left(t, "k/k")))
    print(f"kills: {n}, of which {begun} left a part and {finished} came after all files were complete; "
          f"the last pull used {resumed} bytes")
    t.ok("kills hit pulls that were at work", begun > n // 4, begun)


def main():
    t, quick, _ = arguments()
    if "downloads" in t.run("pull", "a/b", "--endpoint", "http://127.0.0.1:1").err:
        t.skip("pull", "no libcurl")
        print("SKIP: no libcurl")
        return 77
    hub = Hub()
    check_choice(t, hub)
    check_whole(t, hub)
    check_tokens(t, hub)
    check_breaks(t, hub)
    check_changes(t, hub)
    check_damage(t, hub)
    check_lies(t, hub)
    check_addresses(t, hub)
    check_tls(t)
    check_stops(t, hub)
    check_terminal(t, hub)
    check_kills(t, hub, 10 if quick else 50)
    hub.close()
    return t.done()


sys.exit(main())
