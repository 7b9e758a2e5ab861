# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What others rely on around the commands: streams, names, forms of output, values of every type of a file.

    test_contract.py TENON [GOLDEN_MODELS]
"""
import json
import os
import struct
import subprocess
import sys
import threading

from cli import arguments, as_json

# bytes that are no text
ODD = b'a\x00b\xff\xfe\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80\r\n"\\\x1b[31m\x7f\xe2\x80\xa8'
# Types of tensors: number in a file, elements and bytes of a block.
TYPES = {"F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24),
         "Q8_0": (8, 32, 34),
         "Q8_1": (9, 32, 36), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144),
         "Q5_K": (13, 256, 176),
         "Q6_K": (14, 256, 210), "Q8_K": (15, 256, 292), "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74),
         "IQ3_XXS": (18, 256, 98),
         "IQ1_S": (19, 256, 50), "IQ4_NL": (20, 32, 18), "IQ3_S": (21, 256, 110), "IQ2_S": (22, 256, 82),
         "IQ4_XS": (23, 256, 136),
         "IQ1_M": (29, 256, 56), "BF16": (30, 1, 2), "TQ1_0": (34, 256, 54), "TQ2_0": (35, 256, 66),
         "MXFP4": (39, 32, 17),
         "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18), "Q2_0": (42, 64, 18)}


def closed(t, streams, *args):
    """Runs with streams that the caller closed: "2>&-"."""
    p = subprocess.run(["sh", "-c", f'exec "$@" {streams}', "sh", t.tenon, *map(str, args)], env=t.env,
                       cwd=t.folder.name,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=60, check=False)
    return p.returncode


def check_streams(t):
    """A closed stream is not the file that is opened next: nothing that is said lands in it."""
    def contents(name):
        with open(t.temp(name), "rb") as f:
            return f.read()
    for name, args, codes in (("model", ["quantize", t.model, "{}", "Q4_0", "--json"],
                               {"2>&-": 0, ">&- 2>&- <&-": 1}),
                              ("logits", ["logits", t.model, "--tokens", "1,2", "--out", "{}", "-v"],
                               {"2>&-": 0, ">&- 2>&- <&-": 0})):
        want = t.temp(name)
        t.run(*[a.format(want) if a == "{}" else a for a in args])
        for streams, code in codes.items():
            got = closed(t, streams, *[a.format(want + "2") if a == "{}" else a for a in args])
            t.ok(f"closed {streams}: {name}", got == code and contents(name) == contents(name + "2"), got)


def check_places(t):
    """Values of a tensor to standard output and into a pipe, and a tensor as JSON."""
    flags = ["inspect", t.model, "--tensor", "output_norm.weight"]
    t.run(*flags, "--out", t.temp("norm"))
    with open(t.temp("norm"), "rb") as f:
        want = f.read()
    t.ok("tensor to a file", len(want) == 4 * 256, len(want))
    for place in ("-", "/dev/stdout"):
        r = t.run(*flags, "--out", place)
        t.ok(f"tensor to {place}", r.code == 0 and r.out == want and r.err == "", r.err)
    os.mkfifo(t.temp("pipe"))
    got = []

    def read():
        with open(t.temp("pipe"), "rb") as f:
            got.append(f.read())
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    r = t.run(*flags, "--out", t.temp("pipe"))
    reader.join(30)
    t.ok("tensor into a pipe", r.code == 0 and got == [want], r.err)
    d = as_json(t, "tensor as JSON", t.run(*flags, "--json").out)
    t.ok("tensor as JSON",
         d.get("name") == "output_norm.weight" and d.get("shape") == [256] and d.get("bytes") == 1024, d)


def check_values(t, folder):
    """Every type of a file, bit for bit, with another one in between so that offsets matter."""
    if not folder or not os.path.isdir(folder):
        return t.skip("values of all types", "not here")
    infos, data = b"", b""
    for name, (number, block, size) in TYPES.items():
        with open(os.path.join(folder, name + ".bin"), "rb") as f:
            raw = f.read()
        data += bytes(-len(data) % 32)
        infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", 2)
        infos += struct.pack("<QQIQ", len(raw) // size * block // 2, 2, number, len(data))
        data += raw
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(TYPES), 0) + infos
    with open(t.temp("types.gguf"), "wb") as f:
        f.write(head + bytes(-len(head) % 32) + data)
    for name in TYPES:
        r = t.run("inspect", t.temp("types.gguf"), "--tensor", name, "--out", "-")
        with open(os.path.join(folder, name + ".f32"), "rb") as f:
            want = f.read()
        n = len(want) // 4
        # 0 = -0
        same = r.out == want or (len(r.out) == len(want)
                                 and struct.unpack(f"<{n}f", r.out) == struct.unpack(f"<{n}f", want))
        t.ok(f"values of {name}", r.code == 0 and same, r.err)


def check_odd_strings(t):
    """Names and texts that are no text: JSON stays JSON, and lines stay lines."""
    folder = os.path.join(os.fsencode(t.folder.name), b'odd "name\n\\')
    os.mkdir(folder)
    path = os.fsdecode(os.path.join(folder, b"m\xc3\xa9\xff.gguf"))
    os.symlink(t.model, path)
    text = os.path.join(t.bundled, "heldout.txt")
    for args in (["run", path, "-p", "x", "-n", 1], ["inspect", path], ["tokenize", path],
                 ["plan", path, "--tokens", 2], ["embed", path, "x"],
                 ["perplexity", path, "-f", text, "-c", 32, "--chunks", 1],
                 ["quantize", path, t.temp('q\n".gguf'), "Q8_0"],
                 ["bench", path, "-p", 2, "-n", 1, "-r", 1, "--no-peaks"]):
        r = t.run(*args, "--json", stdin=ODD)
        t.done_well(f"odd name: {args[0]}", r)
        as_json(t, f"odd name: {args[0]}", r.out.decode("utf-8", "strict"))
    r = t.run("run", path + "x", "-p", "x")
    t.ok("odd name: one line", r.code == 1 and len(r.err.splitlines()) == 1 and "\n" not in r.err[:-1], r.err)
    for flags in ([], ["-st"]):
        r = t.run("run", t.model, "-n", 3, "--json", *flags, stdin=ODD)
        t.ok(f"odd prompt {flags}", r.code == 0 and len(as_json(t, "odd prompt", r.out)["tokens"]) <= 3,
             r.err)


def check_events(t):
    """--jsonl tells every failure, and the same as standard error."""
    for name, args, code in (("no file", ["run", t.temp("none")], 1),
                             ("no prompt", ["run", t.model, "-p", ""], 2),
                             ("context", ["run", t.model, "--tokens", "1,2,3", "-c", 2], 6)):
        r = t.run(*args, "--jsonl")
        last = as_json(t, f"event: {name}", (r.out.splitlines() or [b"{}"])[-1])
        t.ok(f"event: {name}", r.code == code == last.get("code") and last.get("event") == "error" and
             r.err == f"tenon: {last.get('message')}\n", f"{r.code} {r.out!r} {r.err!r}")


def check_vocabularies(t, folder):
    """The flags of tokenize and detokenize against what others made of the richest line of each file."""
    if not folder or not os.path.isdir(folder):
        return t.skip("vocabularies", "not here")
    for name in ("llama-spm.gguf", "phi-3.gguf", "bert-bge.gguf", "starcoder.gguf", "gpt-2.pre=llama-bpe",
                 "gpt-2.pre=gpt-4o"):
        with open(os.path.join(folder, f"ggml-vocab-{name}.extra.jsonl"), encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        row = max((r for r in rows if "hex" in r), key=lambda r: len(r["special_parse"]))
        base, _, pre = name.partition(".pre=")
        path = os.path.join(folder, f"ggml-vocab-{base}" + (".gguf" if pre else ""))
        flags = [path] + (["--pre", pre] if pre else [])
        for key, more in (("plain", ["--no-bos"]), ("special", []), ("parse", ["--no-bos", "--special"]),
                          ("special_parse", ["--special"])):
            r = t.run("tokenize", *flags, "--ids", *more, stdin=bytes.fromhex(row["hex"]))
            t.ok(f"{name}: {key}", r.code == 0 and r.ids == row[key], r.err)
        for ids in ("plain", "special_parse"):
            text = " ".join(map(str, row[ids])).encode()
            for key, more in (("keep", ["--special"]), ("strip", [])):
                r = t.run("detokenize", *flags, *more, stdin=text)
                t.ok(f"{name}: {ids}, {key}", r.code == 0 and r.out.hex() == row[f"detok_{ids}_{key}_hex"],
                     r.err)


def check_deterministic(t, folder):
    """--deterministic: the same bits however a text is cut, at two levels of this processor; other backends
    are refused."""
    levels = [level for level in ("avx2",) if t.run("devices", "--isa", level).code == 0]
    names = ("llama_q4_k_m", "qwen3moe") if folder else ()
    for path in [t.model] + [os.path.join(folder, name + ".gguf") for name in names]:
        for level in levels + ["best"]:
            flags = ["logits", path, "--tokens", ",".join(map(str, range(60, 108))), "--out", "-",
                     "--deterministic", "--isa", level]
            all_at_once, cut = t.run(*flags, "-b", 48), [t.run(*flags, "-b", n).out for n in (1, 30)]
            t.ok(f"deterministic {level}: {os.path.basename(path)}",
                 len(all_at_once.out) > 48 * 4 and cut == [all_at_once.out] * 2, all_at_once.err)
    flags = ["run", t.model, "-p", "Once upon a time there was a little girl", "-n", 40, "-s", 7, "--temp", 1,
             "--deterministic"]
    texts = {t.run(*flags, *more).out for more in ([], ["-b", 1], ["-b", 3, "-t", 3])}
    t.ok("deterministic: same seed, same text", len(texts) == 1 and len(texts.pop()) > 20, texts)
    r = t.run("run", t.model, "-p", "x", "--deterministic", "--backend", "cuda")
    t.ok("deterministic: not on devices", r.code == 5 and r.out == b"" and "--backend cuda" in r.err, r.err)


def check_environment(t):
    r = t.run("run", t.model, "-p", "hi", "-n", 1, TENON_TEMP="", TENON_PROFILE="", TENON_JSON="")
    t.ok("set to nothing is not set", r.code == 0 and r.out and r.out[:1] != b"{", r.err)


def main():
    t, _, golden = arguments()
    beside = os.path.dirname(golden) if golden else None
    check_streams(t)
    check_places(t)
    check_values(t, beside and os.path.join(beside, "quants"))
    check_odd_strings(t)
    check_events(t)
    check_vocabularies(t, beside and os.path.join(beside, "vocab"))
    check_environment(t)
    check_deterministic(t, golden)
    return t.done()


sys.exit(main())
