# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that people make with the tool. Each gives the right exit code, an empty standard output, and at
most three lines on standard error that begin with "tenon: " and name the cause.

    test_errors.py TENON [GOLDEN_MODELS]
"""
import os
import struct
import sys

from cli import Gguf, arguments

FAILED, USAGE, MODEL, MEMORY, DEVICE, CONTEXT = 1, 2, 3, 4, 5, 6
NO_SPACE = "No space left|disk full"  # one of the words between the bars


def make_files(t):
    """Broken and odd files; name -> path."""
    with open(t.model, "rb") as f:
        good = f.read()
    contents = {"empty": b"", "magic": b"GGML" + good[4:200], "four": b"GGUF", "text": b"# no model\n" * 100,
                "version": good[:4] + b"\x63\0\0\0" + good[8:4096], "header": good[:20], "keys": good[:5000],
                "infos": good[:64000], "data": good[:3000000],
                "counts": good[:8] + b"\xff" * 16 + good[24:4096],
                "short.txt": b"Once upon a time", "ids.txt": b"1,2,three", "zero.txt": b"1\x002",
                "long.txt": b"Once upon a time " * 400}
    files = {}
    for name, data in contents.items():
        files[name] = t.temp(name)
        with open(files[name], "wb") as f:
            f.write(data)
    int_scores = struct.pack("<IIQ", 9, 5, 2048) + bytes(4 * 2048)
    changes = {"arch": lambda g: g.set_text("general.architecture", "lama"),
               "no_arch": lambda g: g.keys.pop("general.architecture"),
               "layers": lambda g: g.set_u32("llama.block_count", 0),
               "more_layers": lambda g: g.set_u32("llama.block_count", 9),
               "heads": lambda g: g.set_u32("llama.attention.head_count", 3),
               "wrong_type": lambda g: g.set_text("llama.block_count", "eight"),
               "adapter": lambda g: g.set_text("general.type", "adapter"),
               "int_scores": lambda g: g.keys.update({"tokenizer.ggml.scores": int_scores}),
               "used_experts": lambda g: g.set_u32("llama.expert_used_count", 2),
               "int_norm": lambda g: g.set_type("output_norm.weight", 26),
               "no_text": lambda g: [g.keys.pop(k) for k in list(g.keys) if k.startswith("tokenizer.")]}
    for name, change in changes.items():
        gguf = Gguf(t.model)
        change(gguf)
        files[name] = gguf.write(t.temp(name + ".gguf"))
    os.mkfifo(t.temp("fifo"))
    os.mkdir(t.temp("readonly"))
    os.chmod(t.temp("readonly"), 0o500)
    return files


def file_rows(t, f):
    """Model files that are none: (name, arguments, exit codes, words that the message must contain)."""
    none = t.temp("none.gguf")
    return [
        ("missing file", ["run", none, "-p", "x"], FAILED, ["none.gguf", "No such file"]),
        ("missing folder", ["run", t.temp("a/b.gguf"), "-p", "x"], FAILED, ["b.gguf", "No such file"]),
        ("directory", ["run", t.folder.name, "-p", "x"], (FAILED, MODEL), [t.folder.name, "regular file"]),
        ("device file", ["run", "/dev/zero", "-p", "x"], (FAILED, MODEL), ["/dev/zero", "regular file"]),
        ("null device", ["inspect", "/dev/null"], (FAILED, MODEL), ["/dev/null", "regular file"]),
        ("FIFO", ["run", t.temp("fifo"), "-p", "x"], (FAILED, MODEL), ["fifo", "regular file"]),
        ("empty file", ["run", f["empty"], "-p", "x"], MODEL, ["empty"]),
        ("wrong magic", ["run", f["magic"], "-p", "x"], MODEL, ["magic", "GGUF"]),
        ("text file", ["inspect", f["text"]], MODEL, ["text", "GGUF"]),
        ("four bytes", ["run", f["four"], "-p", "x"], MODEL, ["four"]),
        ("version 99", ["run", f["version"], "-p", "x"], MODEL, ["version", "99"]),
        ("cut in the header", ["run", f["header"], "-p", "x"], MODEL, ["header"]),
        ("cut in the keys", ["run", f["keys"], "-p", "x"], MODEL, ["keys"]),
        ("cut in the tensor list", ["run", f["infos"], "-p", "x"], MODEL, ["infos", "tensor"]),
        ("cut in the data", ["run", f["data"], "-p", "x"], MODEL, ["tensor", "3000000"]),
        ("huge counts", ["inspect", f["counts"]], MODEL, ["counts"]),
        ("unknown architecture", ["run", f["arch"], "-p", "x"], MODEL, ["lama", "llama"]),
        ("no architecture", ["run", f["no_arch"], "-p", "x"], MODEL, ["general.architecture"]),
        ("no layers", ["run", f["layers"], "-p", "x"], MODEL, ["block_count"]),
        ("more layers than tensors", ["run", f["more_layers"], "-p", "x"], MODEL, ["blk.8"]),
        ("heads do not divide", ["run", f["heads"], "-p", "x"], MODEL, ["head"]),
        ("key of wrong type", ["run", f["wrong_type"], "-p", "x"], MODEL, ["block_count"]),
        ("adapter", ["run", f["adapter"], "-p", "x"], MODEL, ["general.type", "adapter"]),
        ("scores of integers", ["tokenize", f["int_scores"], "x"], MODEL, ["tokenizer.ggml.scores", "f32"]),
        ("experts used of none", ["run", f["used_experts"], "-p", "x"], MODEL, ["expert_used_count"]),
        ("norm of integers", ["run", f["int_norm"], "-p", "x"], MODEL, ["output_norm.weight", "I32"]),
        ("text without tokenizer", ["run", f["no_text"], "-p", "x"], USAGE, ["no tokenizer", "--tokens"]),
        ("tokenize without tokenizer", ["tokenize", f["no_text"], "x"], (FAILED, MODEL), ["tokenizer"]),
        ("no shape of chat", ["run", f["no_text"], "-st", "-p", "x"], USAGE, ["tokenizer"]),
    ]


def flag_rows(t, f):
    m = t.model
    return [
        ("unknown command", ["rum", m], USAGE, ["rum", "'run'"]),
        ("flag first", ["--temp", "1", "run", m], USAGE, ["command"]),
        ("help for nothing", ["help", "rum"], USAGE, ["rum"]),
        ("no model", ["run"], USAGE, ["model"]),
        ("unknown flag", ["run", m, "--tempp", "1"], USAGE, ["--tempp", "--temp"]),
        ("unknown far flag", ["run", m, "--quux"], USAGE, ["--quux", "help"]),
        ("flag of another command", ["run", m, "--dot"], USAGE, ["--dot", "plan"]),
        ("missing value", ["run", m, "-n"], USAGE, ["-n"]),
        ("no number", ["run", m, "-n", "many"], USAGE, ["-n", "many"]),
        ("fraction", ["run", m, "-n", "1.5"], USAGE, ["-n", "1.5"]),
        ("below the range", ["run", m, "--temp", "-1"], USAGE, ["--temp", "-1"]),
        ("above the range", ["run", m, "--top-p", "1.5"], USAGE, ["--top-p", "1.5"]),
        ("not finite", ["run", m, "--temp", "nan"], USAGE, ["--temp"]),
        ("over 32 bits", ["run", m, "-c", "4294967297", "-p", "x"], USAGE, ["-c", "4294967297"]),
        ("over 64 bits", ["run", m, "-s", "99999999999999999999", "-p", "x"], USAGE, ["-s"]),
        ("batch of 0", ["run", m, "-b", "0", "-p", "x"], USAGE, ["-b"]),
        ("threads", ["run", m, "-t", "513", "-p", "x"], USAGE, ["-t", "513"]),
        ("checkpoints", ["run", m, "--checkpoints", "1025", "-p", "x"], USAGE, ["--checkpoints", "1025"]),
        ("cache type", ["run", m, "--cache-type-k", "q5_0", "-p", "x"], USAGE, ["q5_0", "q8_0"]),
        ("precision", ["run", m, "--precision", "f64", "-p", "x"], USAGE, ["f64", "tf32", "int8"]),
        ("precision that the CPU lacks", ["run", m, "--backend", "cpu", "--precision", "fp8", "-p", "x"],
         FAILED, ["fp8", "cpu has no", "auto f32 int8"]),
        ("fusion", ["run", m, "--fusion=perhaps", "-p", "x"], USAGE, ["perhaps", "on"]),
        ("two prompts", ["run", m, "-p", "x", "-f", f["short.txt"]], USAGE, ["prompt"]),
        ("unknown guesses", ["run", m, "-p", "x", "--spec", "tree"], USAGE, ["tree", "ngram"]),
        ("guesses of 0 tokens", ["run", m, "-p", "x", "--spec", "ngram:0"], USAGE, ["ngram:0", "16"]),
        ("two guesses", ["run", m, "-p", "x", "--spec", "ngram", "-md", m], USAGE,
         ["--spec", "--model-draft"]),
        ("more guesses than the most",
         ["run", m, "-p", "x", "--spec", "ngram", "--draft-max", "3", "--draft-min", "4"], USAGE,
         ["draft_min"]),
        ("read-only session alone", ["run", m, "-p", "x", "--session-ro"], USAGE, ["--session"]),
        ("two forms", ["run", m, "-p", "x", "--json", "--ids"], USAGE, ["--json", "--ids"]),
        ("no such template", ["run", m, "-st", "-p", "x", "--chat-template", "nope"], USAGE,
         ["nope", "chatml"]),
        ("broken template", ["run", m, "-st", "-p", "x", "--chat-template", "a\n{{ x"], MODEL,
         ["line 2, column 1"]),
        ("refusing template",
         ["run", m, "-st", "-p", "x", "--chat-template", "{{ raise_exception('not so') }}"], USAGE,
         ["not so"]),
        ("endless template",
         ["run", m, "-st", "-p", "x", "--chat-template", "{% for i in range(10**9) %}{% endfor %}"], MODEL,
         ["numbers"]),
        ("template variables", ["run", m, "-st", "-p", "x", "--chat-template-kwargs", "{x"], USAGE, ["JSON"]),
        ("no tools", ["run", m, "-st", "-p", "x", "--tools", "/nothing/here"], FAILED, ["/nothing/here"]),
        ("raw chat", ["run", m, "-p", "x", "--raw", "-st"], USAGE, ["--raw"]),
        ("empty stop", ["run", m, "-p", "x", "--stop", ""], USAGE, ["--stop"]),
        ("logit bias", ["run", m, "-p", "x", "-l", "5"], USAGE, ["5"]),
        ("logit bias outside", ["run", m, "-p", "x", "-l", "2048+1"], USAGE, ["2048", "2047"]),
        ("no such BLAS library", ["run", m, "--blas", "libnone.so", "-p", "x"], DEVICE, ["libnone.so"]),
        ("unknown level", ["run", m, "--isa", "sse9", "-p", "x"], USAGE, ["sse9", "avx2"]),
        ("unknown backend", ["run", m, "--backend", "metal", "-p", "x"], USAGE, ["metal", "cpu"]),
        ("unknown log level", ["devices", "--log-level", "loud"], USAGE, ["loud"]),
        ("argument of devices", ["devices", "cpu"], USAGE, ["cpu"]),
        ("two files", ["inspect", m, m], USAGE, ["one file"]),
        ("two plan forms", ["plan", m, "--json", "--dot"], USAGE, ["--json", "--dot"]),
        ("plan of 0", ["plan", m, "--tokens", "0"], USAGE, ["--tokens", "0"]),
        ("unknown pre-tokenizer", ["tokenize", m, "--pre", "quux", "x"], (USAGE, MODEL), ["quux"]),
    ]


def input_rows(t, f):
    m = t.model
    many = ",".join(["5"] * 600)
    return [
        ("bad list of ids", ["run", m, "--tokens", "1,x,3"], USAGE, ["x"]),
        ("id outside", ["run", m, "--tokens", "1,2048"], USAGE, ["2048", "2047"]),
        ("negative id", ["logits", m, "--tokens", "-1", "--out", t.temp("o")], USAGE, ["-1"]),
        ("id over 64 bits", ["run", m, "--tokens", "18446744073709551617"], USAGE, ["18446744073709551617"]),
        ("no ids", ["logits", m, "--tokens", "", "--out", t.temp("o")], USAGE, ["empty"]),
        ("ids in a file", ["detokenize", m, "-f", f["ids.txt"]], USAGE, ["three"]),
        ("id to text outside", ["detokenize", m, "5000"], USAGE, ["5000"]),
        ("empty prompt", ["run", m, "-p", ""], USAGE, ["empty"]),
        ("no draft model", ["run", m, "-p", "x", "-md", t.temp("none.gguf")], FAILED, ["none.gguf"]),
        ("draft model without words", ["run", m, "-p", "x", "-md", f["no_text"]], MODEL,
         ["draft model", "tokenizer"]),
        ("no session file", ["run", m, "-p", "x", "--session", f["text"]], MODEL,
         ["text", "not a session file"]),
        ("session is a folder", ["run", m, "-p", "x", "--session", t.folder.name], FAILED, ["regular file"]),
        ("missing prompt file", ["run", m, "-f", t.temp("none.txt")], FAILED, ["none.txt", "No such file"]),
        ("prompt is a folder", ["run", m, "-f", t.folder.name], FAILED, ["directory"]),
        ("missing text", ["perplexity", m, "-f", t.temp("none.txt")], FAILED, ["none.txt"]),
        ("no text", ["perplexity", m], USAGE, ["-f"]),
        ("text too short", ["perplexity", m, "-f", f["short.txt"]], (USAGE, FAILED, CONTEXT), ["tokens"]),
        ("missing base", ["perplexity", m, "--kl", t.temp("none.kl")], FAILED, ["none.kl"]),
        ("base of another kind", ["perplexity", m, "--kl", f["text"]], (FAILED, MODEL, USAGE), ["text"]),
        ("prompt over -c", ["run", m, "-f", f["short.txt"], "-c", "2"], CONTEXT, ["4", "2", "-c"]),
        ("prompt over the model", ["run", m, "-f", f["long.txt"]], CONTEXT, ["512", "-c"]),
        ("logits over -c", ["logits", m, "--tokens", many, "-c", "100", "--out", t.temp("o")], CONTEXT,
         ["600", "100"]),
        ("plan over -c", ["plan", m, "--tokens", "64", "-c", "32"], CONTEXT, ["64", "32"]),
        ("no --tokens", ["logits", m, "--out", t.temp("o")], USAGE, ["--tokens"]),
        ("no --out", ["logits", m, "--tokens", "1"], USAGE, ["--out"]),
        ("pooled", ["logits", m, "--tokens", "1", "--pooled", "--pooling", "rank", "--out", t.temp("o")],
         FAILED, ["head"]),
        ("no such tensor", ["inspect", m, "--tensor", "blk.0.attn_qq.weight", "--out", t.temp("o")], USAGE,
         ["blk.0.attn_qq.weight", "blk.0.attn_q.weight"]),
        ("--out alone", ["inspect", m, "--out", t.temp("o")], USAGE, ["--tensor"]),
        ("no name of a model", ["run", "", "-p", "x"], USAGE, ["no model"]),
        ("no name of a prompt", ["run", m, "-f", ""], USAGE, ["-f", "empty"]),
        ("no name of a result", ["logits", m, "--tokens", "1", "--out", ""], USAGE, ["--out", "empty"]),
        ("result is a folder", ["logits", m, "--tokens", "1", "--out", t.folder.name], FAILED, ["directory"]),
        ("values go to a folder", ["inspect", m, "--tensor", "output_norm.weight", "--out", t.folder.name],
         FAILED, ["regular file"]),
        ("values on a full disk", ["inspect", m, "--tensor", "output_norm.weight", "--out", "/dev/full"],
         FAILED, ["/dev/full", NO_SPACE]),
        ("zero byte in ids", ["detokenize", m, "-f", f["zero.txt"]], USAGE, ["zero byte"]),
        ("no bench model", ["bench"], USAGE, ["model"]),
        ("unknown shape", ["bench", "--shape", "tiny"], USAGE, ["tiny", "llama-1b"]),
    ]


def machine_rows(t, f):
    m, none = t.model, t.temp("none/out")
    return [
        ("no GPU", ["run", m, "--backend", "cuda", "-p", "x"], DEVICE, ["cuda"]),
        ("no Vulkan", ["bench", m, "--backend", "vulkan"], DEVICE, ["vulkan"]),
        ("no such device", ["run", m, "--device", "cuda:1", "-p", "x"], DEVICE, ["cuda:1"]),
        ("no memory for the model", ["run", m, "-p", "x", "--memory-limit", "1"], MEMORY, ["memory"]),
        ("no memory for the context", ["run", m, "-p", "x", "-c", "16777216", "--memory-limit", "64"], MEMORY,
         ["16777216", "-c"]),
        ("full disk", ["logits", m, "--tokens", "1,2,3", "--out", "/dev/full"], FAILED,
         ["/dev/full", NO_SPACE]),
        ("full disk, much", ["logits", m, "--tokens", ",".join(["7"] * 200), "--out", "/dev/full"], FAILED,
         ["/dev/full", NO_SPACE]),
        ("no such folder", ["logits", m, "--tokens", "1", "--out", none], FAILED, ["No such file"]),
        ("no such folder, tensor", ["inspect", m, "--tensor", "output_norm.weight", "--out", none], FAILED,
         ["No such file"]),
        ("no such folder, plan", ["plan", m, "--tokens", "1", "--out", none], FAILED, ["No such file"]),
        ("no such folder, base", ["perplexity", m, "-f", f["long.txt"], "--chunks", "1", "--kl-base", none],
         FAILED, ["No such file"]),
        ("quantize in place", ["quantize", m, m, "Q4_0"], USAGE, ["same file"]),
        ("quantize to nowhere", ["quantize", m, none, "Q4_0"], FAILED, ["No such file"]),
        ("quantize to no name", ["quantize", m, "", "Q4_0"], USAGE, ["OUT"]),
        ("quantize no name", ["quantize", "", t.temp("o"), "Q4_0"], USAGE, ["IN"]),
        ("quantize to standard output", ["quantize", m, "-", "Q4_0"], USAGE, ["standard output"]),
        ("quantize onto a folder", ["quantize", m, t.folder.name, "Q4_0"], (USAGE, FAILED), [t.folder.name]),
        ("quantize to what", ["quantize", m, t.temp("o")], USAGE, ["TYPE"]),
        ("quantize to nonsense", ["quantize", m, t.temp("o"), "Q9_0"], USAGE, ["Q9_0", "Q8_0"]),
        ("quantize by a pattern of nothing",
         ["quantize", m, t.temp("o"), "Q4_0", "--tensor-type", "ffn_sideways=Q8_0"], USAGE, ["ffn_sideways"]),
        ("quantize by half a rule", ["quantize", m, t.temp("o"), "Q4_0", "--tensor-type", "attn_v"], USAGE,
         ["PATTERN=TYPE"]),
        ("quantize a head to nonsense", ["quantize", m, t.temp("o"), "Q4_0", "--output-tensor-type", "Q4_9"],
         USAGE, ["Q4_9", "Q6_K"]),
        ("quantize by the importance of nothing", ["quantize", m, t.temp("o"), "Q4_0", "--imatrix", none],
         FAILED, ["No such file"]),
        ("quantize by the importance of a model", ["quantize", m, t.temp("o"), "Q4_0", "--imatrix", m], MODEL,
         ["importance matrix"]),
        ("quantize a text", ["quantize", f["text"], t.temp("o"), "Q4_0"], MODEL, ["text"]),
        ("quantize a stump", ["quantize", f["data"], t.temp("o"), "Q4_0"], MODEL, ["tensor"]),
        ("quantize nothing", ["quantize", t.temp("none.gguf"), t.temp("o"), "Q4_0"], FAILED, ["none.gguf"]),
    ]


def check_row(t, row, **env):
    name, args, codes, words = row
    r = t.run(*args, timeout=60, **env)
    codes = codes if isinstance(codes, tuple) else (codes,)
    lines = r.err.splitlines()
    t.ok(name, r.code in codes, f"exit code {r.code}, expected {codes}; stderr {r.err!r}")
    t.ok(name, r.out == b"", f"standard output {r.out[:200]!r}")
    t.ok(name, 1 <= len(lines) <= 3 and all(line.startswith("tenon: ") for line in lines),
         f"stderr {r.err!r}")
    missing = [w for w in words if not any(one in r.err for one in w.split("|"))]
    t.ok(name, not missing, f"{missing} not in {r.err!r}")
    t.ok(name, "Success" not in r.err and "\x1b" not in r.err, f"stderr {r.err!r}")


def check_unwritable(t):
    """Only where permissions count: root may write everywhere."""
    if os.geteuid() == 0:
        return t.skip("unwritable folder", "runs as root")
    check_row(t, ("unwritable folder", ["quantize", t.model, t.temp("readonly/o"), "Q4_0"], FAILED,
                  ["ermission"]))


def check_full_output(t, f):
    """Standard output on a full disk is a failure too."""
    for args in (["run", t.model, "-p", "x", "-n", "4"], ["inspect", t.model],
                 ["plan", t.model, "--tokens", "1"], ["help"]):
        with open("/dev/full", "wb") as full:
            r = t.run(*args, stdout=full)
        t.ok("full standard output: " + args[0],
             r.code == FAILED and any(w in r.err for w in NO_SPACE.split("|")), f"{r.code} {r.err!r}")


def main():
    t, _, golden = arguments()
    files = make_files(t)
    rows = file_rows(t, files) + flag_rows(t, files) + input_rows(t, files) + machine_rows(t, files)
    if golden:
        bert = os.path.join(golden, "bert.gguf")
        rows.append(("encoder", ["run", bert, "-p", "x"], (FAILED, MODEL), ["bert"]))
        rows.append(("encoder, perplexity", ["perplexity", bert, "-f", files["long.txt"]], FAILED,
                     ["bert", "no tokens"]))
    for row in rows:
        check_row(t, row)
    check_row(t, ("environment", ["run", t.model, "-p", "x"], USAGE, ["TENON_TEMP", "warm"]),
              TENON_TEMP="warm")
    check_unwritable(t)
    check_full_output(t, files)
    r = t.run()
    t.ok("no command", r.code == USAGE and r.out == b"" and "run" in r.err, f"{r.code} {r.err!r}")
    left = [n for n in os.listdir(t.folder.name) if n == "o" or ".tmp" in n]
    t.ok("failed commands leave nothing", not left, left)
    print(f"{len(rows) + 1} mistakes")
    return t.done()


sys.exit(main())
