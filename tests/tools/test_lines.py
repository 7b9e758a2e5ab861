# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Prompts as people give them, and command lines for llama-cli as people write them: each one runs with only
the program and the model exchanged (and fewer tokens), or says why not.

    test_lines.py TENON
"""
import os
import subprocess
import sys
import time

from cli import arguments, as_json

# In whose manner a line is, arguments without the model. README: flags of tools/main/README.md of llama.cpp,
# December 2024 to 2025, some in combinations of our own; model cards and guides are typical, not quoted.
LINES = [
    ("README", ["-no-cnv", "--prompt", "Once upon a time"]),
    ("README", ["--chat-template", "chatml"]),
    ("README", ["--jinja"]),
    ("README", ["--jinja", "--single-turn", "-sys", "You are a helpful assistant", "-p", "Hello"]),
    ("README", ["--ignore-eos", "-n", "-1"]),
    ("README", ["-r", "User:", "--in-prefix", " ", "--in-suffix", "Assistant:"]),
    ("README, extended context", ["-p", "Hello", "--ctx-size", "512", "--rope-scale", "8"]),
    ("README, keep prompt", ["-p", "Hello", "--keep", "-1", "--no-context-shift"]),
    ("README, chat with bob", ["-n", "256", "--keep", "48", "--repeat_penalty", "1.0", "--color", "-i", "-r",
                               "User:", "-f", "FILE"]),
    ("README, infinite", ["--color", "--ignore-eos", "--temp", "0", "-p", "Hello"]),
    ("chinese-llama-alpaca-2, chat.sh", ["--color", "-i", "-c", "4096", "-t", "8", "--temp", "0.5", "--top_k",
                                         "40", "--top_p", "0.9", "--repeat_penalty", "1.1", "--in-prefix-bos",
                                         "-ngl", "40", "--in-prefix", " [INST] ", "--in-suffix", " [/INST]",
                                         "-p", "[INST] Hello [/INST]"]),
    ("llama.cpp, pull request 13771", ["--reasoning-budget", "0", "-ngl", "99", "-fa", "-ctv", "q8_0", "-ctk",
                                       "q8_0", "-p", "what is the capital of Poland?"]),
    ("TheBloke's model cards", ["-t", "10", "-ngl", "32", "--color", "-c", "4096", "--temp", "0.7",
                                "--repeat_penalty", "1.1", "-n", "-1", "-p", "Hello"]),
    ("TheBloke's model cards, chat", ["-ngl", "35", "--color", "-c", "2048", "--temp", "0.7",
                                      "--repeat_penalty", "1.1", "-n", "-1", "-i", "-ins"]),
    ("Qwen's model cards", ["--jinja", "--color", "-ngl", "99", "-fa", "-sm", "row", "--temp", "0.6",
                            "--top-k", "20", "--top-p", "0.95", "--min-p", "0", "--presence-penalty", "1.5",
                            "-c", "2048", "-n", "32768", "--no-context-shift"]),
    ("Qwen 1.5's model cards", ["-n", "512", "--color", "-i", "-cml", "-f", "FILE"]),
    ("unsloth's guides", ["--threads", "2", "--ctx-size", "1024", "--n-gpu-layers", "99", "-ot",
                          ".ffn_.*_exps.=CPU", "--prio", "3", "--temp", "0.6", "--min-p", "0.01", "--top-p",
                          "0.95", "-no-cnv", "--prompt", "Hello"]),
    ("Jetson guide", ["-p", "Hello", "-n", "50", "-ngl", "99"]),
    ("multi-GPU discussions", ["-p", "Hello", "-ts", "1,1", "-sm", "layer", "-mg", "0", "-tb", "2", "-t1",
                               "--perf", "--numa", "distribute", "--mlock", "--no-mmap"]),
    ("long context discussions", ["-p", "Hello", "--rope-scaling", "yarn", "--rope-freq-base", "1000000",
                                  "--yarn-orig-ctx", "512", "--override-kv", "llama.context_length=int:512"]),
    ("prompt cache", ["--prompt-cache", "CACHE", "--prompt-cache-all", "-f", "FILE", "--no-display-prompt",
                      "--log-disable", "-e", "-s", "42", "--simple-io"]),
    ("system prompt from a file", ["-cnv", "-st", "-sysf", "FILE", "-p", "Hello", "--no-warmup"]),
]
REFUSED = [
    ("llama.cpp, issue 18446", ["--lora", "./qwen-lora.gguf", "-p", "Hello"], "./qwen-lora.gguf"),
    ("multimodal guide", ["--mmproj", "mmproj.gguf", "--image", "cat.png", "-p", "Hello"], "--mmproj"),
    ("remote devices", ["--rpc", "192.168.88.10:50052", "-p", "Hello"], "--rpc"),
]


def check_lines(t):
    with open(t.temp("prompt"), "w", encoding="utf-8") as f:
        f.write("Once upon a time")
    for i, (source, line) in enumerate(LINES):
        args = [t.temp("prompt") if a == "FILE" else t.temp("cache") if a == "CACHE" else a for a in line]
        typed = "-i" in args or not {"-p", "-f", "--prompt"} & set(args)
        r = t.run("run", "-m", t.model, *args, "-n", 4, stdin=b"Hello!\n" if typed else b"")
        t.ok(f"line {i + 1} ({source})", r.code == 0 and "error" not in r.err, f"{line} {r.code} {r.err}")
    t.ok("twenty lines", len(LINES) >= 20, len(LINES))
    for source, args, flag in REFUSED:
        r = t.run("run", "-m", t.model, *args)
        t.ok(f"refused ({source})", r.code == 1 and flag in r.err and len(r.err.splitlines()) == 1, r.err)
    r = t.run("run", t.model, "-p", "Hello", "-n", 2, "--grp-attn-n", "4")
    t.ok("flags that change the answer warn", r.code == 0 and "warning: --grp-attn-n" in r.err, r.err)
    r = t.run("run", t.model, "-p", "Hello", "-n", 2, "--grp-attn-n", "4", "--strict")
    t.ok("and fail with --strict", r.code == 2, r.err)


# Flags of positions, and the key of the file that each of them replaces.
ROPE = [
    (["--rope-freq-base", "500"], ".rope.freq_base=float:500"),
    (["--rope-scale", "8"], ".rope.scaling.factor=float:8"),
    (["--rope-freq-scale", "0.125"], ".rope.scaling.factor=int:8"),
    (["--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "64", "--yarn-attn-factor", "3"],
     ".rope.scaling.type=str:yarn", ".rope.scaling.attn_factor=float:3", "llama.rope.scaling.factor=float:4",
     ".rope.scaling.original_context_length=int:64"),
    (["--rope-scaling", "yarn", "--rope-scale", "40", "--yarn-beta-fast", "1000", "--yarn-beta-slow", "900"],
     ".rope.scaling.type=str:yarn", ".rope.scaling.factor=float:40",
     ".rope.scaling.yarn_beta_fast=float:1000", ".rope.scaling.yarn_beta_slow=int:900"),
]
BAD_OVERRIDES = ["x", ".rope.freq_base=500", ".rope.freq_base=float:x", ".rope.freq_base=str:500",
                 ".no_such_key=int:1", ".ssm.conv_kernel=int:4", ".block_count=int:99999999999",
                 "tokenizer.ggml.add_bos_token=bool:no", "tokenizer.ggml.tokens=str:a"]


def check_overrides(t):
    """--override-kv and the flags that stand for keys: they act, and as each other."""
    flags = ["run", t.model, "--raw", "-p", "The sky is blue. A young owl is", "--ids", "-n", 12, "--temp", 0]
    plain = t.run(*flags)
    for rope, *keys in ROPE:
        by_flag = t.run(*flags, *rope)
        by_key = t.run(*flags, *[a for key in keys for a in ("--override-kv", key)])
        t.ok(f"{rope} acts", by_flag.code == 0 and by_flag.out != plain.out, by_flag.err)
        t.ok(f"{rope} is {keys}", by_flag.out and by_flag.out == by_key.out, by_key.err)
    same = t.run(*flags, "--rope-freq-base", "0", "--yarn-orig-ctx", "0")
    t.ok("0 means: as the file says", same.code == 0 and same.out == plain.out, same.err)
    shown = t.run("inspect", t.model, "--override-kv", ".context_length=int:4096")
    t.ok("inspect shows the value", b"4096 (trained)" in shown.out, shown.err)
    for bad in BAD_OVERRIDES:
        r = t.run(*flags, "--override-kv", bad)
        t.ok(f"refused: {bad}", r.code == 2 and r.err.count("\n") == 1, f"{r.code} {r.err}")
    r = t.run(*flags, "--rope-scale", "four")
    t.ok("no number", r.code == 2 and "--rope-scale" in r.err, r.err)


def check_numbers(t):
    """-t1 and the like."""
    flags = ["run", t.model, "-p", "Hello", "--ids"]
    want = t.run(*flags, "-n", 5, "-s", 3, "-c", 64)
    got = t.run(*flags, "-n5", "-s3", "-c64", "-t1")
    t.ok("attached numbers", want.code == 0 and got.out == want.out and want.out, got.err)
    for bad in ("-t0x", "-x1", "-p1", "-n1.5"):
        r = t.run("run", t.model, bad)
        t.ok(f"no attached number: {bad}", r.code == 2 and r.err.count("\n") == 1, r.err)
    r = t.run("run", t.model, "--predikt", "3")
    t.ok("suggestion", r.code == 2 and "--predict" in r.err, r.err)


def check_places(t):
    """Where weights lie: patterns as people write them, and messages."""
    flags = ["run", t.model, "-p", "Hello", "-n", 1]
    good = [r"\.(6|7|8|9|[0-9][0-9])\.ffn_(gate|up|down)_exps.=CPU", r"blk\.\d+\.ffn_.*=CPU,token_embd=cpu",
            r"(?:ffn_up|ffn_down)\w*=CPU", "exps=CUDA_Host"]
    for pattern in good:
        r = t.run(*flags, "-ot", pattern, "-v")
        t.ok(f"-ot {pattern}", r.code == 0 and "have no effect: all weights are on cpu" in r.err, r.err)
    bad = [("exps", 2, "not PATTERN=DEVICE"), ("=CPU", 2, "not PATTERN=DEVICE"),
           ("exps=", 2, "PATTERN=DEVICE"), ("exps=CPU,", 2, "PATTERN=DEVICE"),
           ("(exps=CPU", 2, "no regular expression"),
           ("exps=CUDA7", 5, "no such device")]
    for pattern, code, text in bad:
        r = t.run(*flags, "-ot", pattern)
        t.ok(f"-ot {pattern}", r.code == code and text in r.err and r.err.count("\n") == 1,
             f"{r.code} {r.err}")
    for more in (["-cmoe"], ["-ncmoe", "3"], ["--n-cpu-moe=3", "--override-tensor", "exps=CPU"]):
        t.done_well(f"{more}", t.run(*flags, *more))
    r = t.run(*flags, "-ncmoe", "-1")
    t.ok("-ncmoe -1", r.code == 2, r.err)


def piped(t, writer, *args):
    """The tool with the output of a shell command as its standard input."""
    p = subprocess.run(["sh", "-c", f'{writer} | "$@"', "sh", t.tenon, *map(str, args)], env=t.env,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=60, check=False)
    return p.returncode, p.stdout, p.stderr.decode()


def check_question(t):
    """Words are a question, other prompts are continued; what is piped in is appended."""
    cold = ["--temp", 0, "-n", 40]
    ask = "Where does Mia live?"
    want = t.run("run", t.model, "-st", "-p", ask, *cold).out
    t.ok("the answer of the chat", b"blue house" in want, want)
    r = t.run("run", t.model, *ask.split(), *cold)
    t.ok("words are a question", r.out == want, r.out)
    raw = t.run("run", t.model, "-p", ask, *cold).out
    t.ok("-p is continued", raw != want and b"blue" not in raw, raw)
    t.ok("--raw continues words", t.run("run", t.model, "--raw", ask, *cold).out == raw, raw)
    r = t.run("run", t.model, "-p", ask, "-p", "x")
    t.ok("two -p", r.code == 2 and "twice" in r.err, r.err)
    both = t.run("run", t.model, "-st", "-p", ask + "\nWho are you?", *cold).out
    for name, args in (("words", [ask]), ("-", [ask, "-"])):
        got = t.run("run", t.model, *args, *cold, stdin=b"Who are you?")
        t.ok(f"standard input behind {name}", got.out == both and both, got.out)
    both = t.run("run", t.model, "-p", ask + "\nWho", *cold).out
    for flags in ([], ["-"]):
        got = t.run("run", t.model, "-p", ask, *flags, *cold, stdin=b"Who")
        t.ok(f"standard input behind -p {flags}", got.out == both, got.out)
    with open(t.temp("who"), "w", encoding="utf-8") as f:
        f.write("Who")
    with open(t.temp("who"), "rb") as f:
        p = subprocess.run([t.tenon, "run", t.model, "-p", ask, *map(str, cold)], stdin=f, env=t.env,
                           capture_output=True, timeout=60, check=False)
    t.ok("a file behind -p", p.stdout == both, p.stdout)
    # A pipe that never gives anything must not hold up a script.
    start = time.monotonic()
    code, out, err = piped(t, "sleep 20", "run", t.model, "-p", ask, "-n", 1, "--temp", 0)
    # (the shell itself waits for sleep)
    t.ok("a silent pipe behind -p", code == 0 and "left out" in err and out, err)
    code, out, err = piped(t, "(sleep 2; echo Who are you?)", "run", t.model, ask, "--temp", 0)
    t.ok("words wait for a slow pipe", code == 0 and "waiting" in err and out, f"{err} {out}")
    t.ok("no longer than the pipe", time.monotonic() - start < 55, "")
    with open(os.devnull, "rb") as nothing:
        p = subprocess.run([t.tenon, "run", t.model, ask, *map(str, cold)], stdin=nothing, env=t.env,
                           capture_output=True, timeout=60, check=False)
    t.ok("no input", p.stdout == want and not p.stderr, p.stderr)
    r = t.run("run", t.model, "-i", "-p", ask, "--temp", 0, stdin=b"Who are you?\n")
    t.ok("-i goes on after the prompt", b"blue house" in r.out and b"tenon-tiny" in r.out, r.out)
    d = as_json(t, "question as JSON", t.run("run", t.model, ask, *cold, "--json").out)
    t.ok("question as JSON", "blue house" in d.get("text", ""), d)


def check_reasoning(t):
    """--reasoning-budget 0 reaches the template, and what is given beside it stays."""
    template = "{{ enable_thinking }} {{ x }} {{ messages[0].content }}"
    flags = ["run", t.model, "-st", "-p", "a", "-n", 0, "--json", "--chat-template", template]
    plain = as_json(t, "variables", t.run(*flags).out).get("prompt_tokens")
    for budget, variables in ((["--reasoning-budget", 0], []),
                              (["--reasoning-budget", 0], ["--chat-template-kwargs", '{"x": "y"}']),
                              (["--reasoning-budget", 0], ["--chat-template-kwargs", "{}"]),
                              (["--reasoning-budget", 9], [])):
        r = t.run(*flags, *budget, *variables)
        n = as_json(t, "variables", r.out).get("prompt_tokens")
        t.ok(f"{budget} {variables}", r.code == 0 and (n == plain if budget[1] else n > plain),
             f"{n} {plain} {r.err}")


def main():
    t, _, _ = arguments()
    check_lines(t)
    check_overrides(t)
    check_numbers(t)
    check_places(t)
    check_question(t)
    check_reasoning(t)
    return t.done()


sys.exit(main())
