# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Models by name: the stores of other programs, `ls`, `show`, `rm`, and the configuration file.

    test_names.py TENON
"""
import hashlib
import json
import os
import shutil
import sys

from cli import Gguf, arguments, as_json

ASK = ["Where does Mia live?", "--temp", "0"]


def put(t, *path, data=None):
    """A file below the test's folder: a copy of the model, or `data`."""
    full = t.temp(os.path.join(*path))
    os.makedirs(os.path.dirname(full), exist_ok=True)
    if data is None:
        shutil.copy(t.model, full)
    else:
        with open(full, "wb") as f:
            f.write(data)
    return full


def make_stores(t):
    home = os.path.join("home", "HOME")
    put(t, "extra", "spare-Q4_K_M.gguf")
    put(t, "extra", "mmproj-spare-f16.gguf")
    put(t, "home", "XDG_DATA_HOME", "tenon", "models", "acme", "tiny-GGUF", "tiny-Q8_0.gguf")
    put(t, "home", "XDG_DATA_HOME", "tenon", "models", "acme", "tiny-GGUF", "tiny-Q4_K_M.gguf")
    # The cache has links from the snapshot to blobs.
    blob = put(t, "home", "XDG_CACHE_HOME", "huggingface", "hub", "models--org--hubby-GGUF", "blobs", "abc")
    snapshot = t.temp(os.path.join("home", "XDG_CACHE_HOME", "huggingface", "hub", "models--org--hubby-GGUF",
                                   "snapshots", "0123"))
    os.makedirs(snapshot)
    os.symlink(os.path.relpath(blob, snapshot), os.path.join(snapshot, "hubby-IQ2_XXS.gguf"))
    with open(t.model, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    put(t, home, ".ollama", "models", "blobs", "sha256-" + digest)
    for name, layers in (("good", [("template", "sha256:" + "0" * 64), ("model", "sha256:" + digest)]),
                         ("outside", [("model", "sha256:../../../../etc/passwd")]),
                         ("short", [("model", "sha256:12")]),
                         ("none", [])):
        manifest = {"layers": [{"mediaType": f"application/vnd.ollama.image.{kind}", "digest": d, "size": 1}
                               for kind, d in layers]}
        put(t, home, ".ollama", "models", "manifests", "registry.ollama.ai", "library", name, "1b",
            data=json.dumps(manifest).encode())
    put(t, home, ".ollama", "models", "manifests", "registry.ollama.ai", "library", "broken", "1b",
        data=b'{"layers": [[[{')
    put(t, home, ".lmstudio", "models", "pub", "studio-GGUF", "studio-F16.gguf")
    return {"TENON_MODELS": t.temp("nowhere") + ":" + t.temp("extra")}


def check_ls(t, env):
    r = t.run("ls", "--json", **env)
    models = as_json(t, "ls", r.out).get("models", [])
    got = {(m["origin"], m["name"], m["type"]) for m in models}
    want = {("TENON_MODELS", "spare", "Q4_K_M"), ("tenon", "acme/tiny-GGUF", "Q8_0"),
            ("tenon", "acme/tiny-GGUF", "Q4_K_M"), ("Hugging Face", "org/hubby-GGUF", "IQ2_XXS"),
            ("Ollama", "good", "1b"), ("LM Studio", "pub/studio-GGUF", "F16")}
    t.ok("ls finds all stores, and nothing else", got == want and len(models) == len(want), got ^ want)
    t.ok("ls: sizes", all(m["bytes"] == os.path.getsize(t.model) for m in models), models)
    r = t.run("ls", "tiny", **env)
    t.ok("ls NAME", r.code == 0 and len(r.text.splitlines()) == 2, r.text)
    r = t.run("ls")
    t.ok("ls without TENON_MODELS", r.code == 0 and "spare" not in r.text and "Ollama" in r.text, r.text)


def check_kinds(t):
    """Files that are no models are marked, and do not hide those that are."""
    adapter = Gguf(t.model)
    adapter.set_text("general.type", "adapter")
    with open(t.model, "rb") as f:
        put(t, "kinds", "cut-Q8_0.gguf", data=f.read(3000))
    put(t, "kinds", "tiny-Q8_0.gguf")
    adapter.write(t.temp(os.path.join("kinds", "style-F16.gguf")))
    env = {"TENON_MODELS": t.temp("kinds"), "HOME": t.temp("nowhere"), "XDG_DATA_HOME": t.temp("nowhere"),
           "XDG_CACHE_HOME": t.temp("nowhere")}
    kinds = {m["name"]: m["kind"] for m in as_json(t, "kinds", t.run("ls", "--json", **env).out)["models"]}
    t.ok("ls: kinds", kinds == {"cut": "unreadable", "tiny": "model", "style": "adapter"}, kinds)
    lines = t.run("ls", **env).text.splitlines()
    t.ok("ls marks what is no model", len(lines) == 3 and all(
        line.endswith(", adapter" if "style" in line else ", unreadable" if "cut" in line else "MODELS")
        for line in lines), lines)


def check_run(t, env):
    for name in ("spare", "SPARE:q4_k_m", "tiny", "acme/tiny", "acme/tiny-GGUF:Q8_0", "hubby", "org/hubby",
                 "good", "good:1b", "studio", t.temp("extra")):
        r = t.run("run", name, *ASK, **env)
        t.ok(f"run {name}", r.code == 0 and b"blue house" in r.out, r.err)
    for draft, good in (("tiny:Q8_0", True), ("tinny", False)):
        r = t.run("run", "spare", *ASK, "-md", draft, **env)
        t.ok(f"a draft model by name: {draft}", (r.code == 0 and b"blue house" in r.out) if good
             else (r.code != 0 and "did you mean" in r.err), r.err)
    r = t.run("run", "-hf", "org/hubby-GGUF:IQ2_XXS", "-st", "-p", *ASK, **env)
    t.ok("run -hf", r.code == 0 and b"blue house" in r.out, r.err)
    path = as_json(t, "which type", t.run("run", "tiny", "-p", "x", "-n", 1, "--json", **env).out)["model"]
    t.ok("of several types the usual one", path.endswith("tiny-Q4_K_M.gguf"), path)
    for args, words in ((["tiny:Q2_K"], ["tiny", "tenon ls"]), (["tinny"], ["did you mean", "tiny"]),
                        (["org/none"], ["tenon pull org/none"]),
                        (["-hf", "org/none:Q8_0"], ["tenon pull org/none:Q8_0"]),
                        ([t.temp("home/XDG_DATA_HOME/tenon/models/acme/tiny-GGUF")], ["folder", "2 models"]),
                        (["outside"], ["outside"]), (["short"], ["short"])):
        r = t.run("run", *args, "-p", "x", **env)
        t.ok(f"run {args}", r.code in (1, 2) and len(r.err.splitlines()) == 1
             and all(w in r.err for w in words), r.err)
    os.makedirs(t.temp("empty"), exist_ok=True)
    r = t.run("run", t.temp("empty"), "-p", "x")
    t.ok("an empty folder", r.code in (1, 3) and "regular file" in r.err, r.err)


def check_show_and_rm(t, env):
    d = as_json(t, "show", t.run("show", "good", "--json", **env).out)
    t.ok("show", d.get("origin") == "Ollama" and d["keys"]["general.architecture"] == "llama"
         and d["keys"]["tokenizer.chat_template"] is True, d)
    r = t.run("show", "tiny:Q8_0", **env)
    t.ok("show as text", r.code == 0 and "tiny-Q8_0.gguf" in r.text and "llama" in r.text, r.text)
    for name, word in (("hubby", "Hugging Face"), ("good", "Ollama"), ("studio", "LM Studio"),
                       ("spare", "TENON_MODELS"), ("tiny", "2 models"), ("nothing", "nothing"),
                       ("../../../../spare", "no model")):
        r = t.run("rm", name, **env)
        t.ok(f"rm {name}", r.code in (1, 2) and word in r.err, r.err)
    t.ok("nothing was removed", len(t.run("ls", **env).text.splitlines()) == 6, "")
    folder = t.temp("home/XDG_DATA_HOME/tenon/models/acme/tiny-GGUF")
    r = t.run("rm", "tiny:Q8_0", **env)
    t.ok("rm", r.code == 0 and os.listdir(folder) == ["tiny-Q4_K_M.gguf"], r.err)
    for part in (1, 2, 3):
        put(t, "home", "XDG_DATA_HOME", "tenon", "models", "acme", "big-GGUF",
            f"big-Q8_0-{part:05}-of-00003.gguf", data=b"x" * part)
    r = t.run("ls", "big", "--json")
    models = as_json(t, "split", r.out)["models"]
    t.ok("a split model is one", len(models) == 1 and models[0]["bytes"] == 6 and models[0]["type"] == "Q8_0",
         models)
    r = t.run("rm", "big")
    t.ok("rm of a split model", r.code == 0 and not os.path.exists(t.temp(
        "home/XDG_DATA_HOME/tenon/models/acme/big-GGUF")) and os.path.exists(folder), r.err)


def check_config(t):
    """Flag, environment, file, default: the first one that says something."""
    path = t.temp("home/XDG_CONFIG_HOME/tenon/config")
    put(t, "home", "XDG_CONFIG_HOME", "tenon", "config",
        data=b"# mine\n\nseed = 7\n max-tokens= 3 \r\ndeep=1\n")
    r = t.run("run", t.model, "-p", "x")
    t.ok("a key that is none", r.code == 2 and "line 5" in r.err and "--deep" in r.err, r.err)
    with open(path, "wb") as f:
        f.write(b"# mine\n\nseed = 7\n max-tokens= 3 \r\nn-depth = 1\n")
    flags = ["run", t.model, "-p", "Hello", "--json"]

    def seed(*more, **env):
        d = as_json(t, "seed", t.run(*flags, *more, **env).out)
        return d["seed"], len(d["tokens"])
    t.ok("file", seed() == (7, 3), seed())
    t.ok("environment before file", seed(TENON_SEED="8") == (8, 3), "")
    t.ok("flag before environment", seed("-s", 9, "-n", 2, TENON_SEED="8") == (9, 2), "")
    r = t.run("config", "--show-origin", "--json", TENON_SEED="8", TENON_API_KEY="hidden")
    rows = {s["name"]: s for s in as_json(t, "config", r.out)["settings"]}
    t.ok("origins", rows["seed"]["origin"] == "environment" and rows["seed"]["value"] == "8"
         and rows["predict"]["origin"] == "file" and rows["predict"]["value"] == "3"
         and rows["temp"]["origin"] == "default" and rows["temp"]["value"] == "0.8", rows["seed"])
    t.ok("no secrets", "hidden" not in r.text and "api-key" in rows, r.text[:200])
    r = t.run("config")
    t.ok("only what is set", r.code == 0 and sorted(r.text.splitlines()) ==
         ["n-depth = 1", "predict = 3", "seed = 7"], r.text)
    with open(path, "wb") as f:
        f.write(b"temp = hot\n")
    r = t.run("run", t.model, "-p", "x")
    t.ok("a value that is none", r.code == 2 and "temp" in r.err and "hot" in r.err, r.err)
    os.remove(path)


def check_doctor(t, env):
    r = t.run("doctor", **env, HF_TOKEN="hidden", TENON_API_KEY="hidden")
    t.ok("doctor", r.code == 0 and all(w in r.text for w in ("tenon ", "cpu", "cuda", "vulkan", "Ollama",
                                                            "HF_TOKEN")), r.text + r.err)
    t.ok("doctor shows no secrets and no home",
         "hidden" not in r.text and t.folder.name not in r.text, r.text)


def main():
    t, _, _ = arguments()
    env = make_stores(t)
    check_ls(t, env)
    check_kinds(t)
    check_run(t, env)
    check_show_and_rm(t, env)
    check_config(t)
    check_doctor(t, env)
    return t.done()


sys.exit(main())
