# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What `tenon help --format` prints: docs/cli.md is up to date, manual pages have every flag and no warning,
and completions complete in the shells that are installed.

    test_pages.py TENON [--write]     --write: writes docs/cli.md instead
"""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

from cli import arguments

BASH = """
source "$1"
line=$2
COMP_LINE=$line COMP_POINT=${#line} COMPREPLY=()
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
_tenon
printf '%s\\n' "${COMPREPLY[@]}"
"""
# What is typed, something that is offered for it, and something that is not.
OFFERED = [
    ("tenon ", "batch", "--temp"),
    ("tenon be", "bench", "run"),
    ("tenon help qu", "quantize", "--temp"),
    ("tenon run --temp", "--temperature", "--top-k"),
    ("tenon run m.gguf --top", "--top-n-sigma", "--temp"),
    ("tenon bench --no-pe", "--no-peaks", "--temp"),
    ("tenon run --cache-type-k b", "bf16", "f16"),
    ("tenon run -ngl a", "auto", "N"),
    ("tenon help --format m", "markdown", "bash"),
    ("tenon ls --js", "--json", "--jsonl"),
]


def command_names(t):
    with open(os.path.join(t.root, "tools", "commands.def"), encoding="utf-8") as f:
        return re.findall(r"^CMD\(\w+,\s*(\w+)", f.read(), re.M)


def page(t, *args):
    r = t.run("help", "--format", *args)
    t.done_well(f"help --format {' '.join(args)}", r)
    return r.text


def written(t, name, *args):
    path = t.temp(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(page(t, *args))
    return path


def check_reference(t):
    with open(os.path.join(t.root, "docs", "cli.md"), encoding="utf-8") as f:
        same = f.read() == page(t, "markdown")
    t.ok("docs/cli.md", same, "differs from the tables: python3 tests/tools/test_pages.py TENON --write")


def check_usage(t):
    for args in ([], ["html"], ["man", "rum"], ["bash", "run"], ["man", "run", "batch"]):
        r = t.run("help", "--format", *args)
        t.ok(f"help --format {args}", r.code == 2 and len(r.err.splitlines()) == 1 and not r.out, r.err)


def check_man(t):
    """Every flag that help lists is in the page of the command, and groff understands all of it."""
    paths = [written(t, "tenon.1", "man")]
    for name in command_names(t):
        paths.append(written(t, f"tenon-{name}.1", "man", name))
        with open(paths[-1], encoding="utf-8") as f:
            text = f.read().replace("\\-", "-").replace("\\:", "")
        missing = [flag for flag in re.findall(r"(?<!\S)--?[a-zA-Z][\w-]*", flag_column(t, name))
                   if f"\\fB{flag}\\fR" not in text]
        t.ok(f"man {name}: every flag", not missing, missing)
    if not shutil.which("groff"):
        return t.skip("groff -ww", "groff is not installed")
    r = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", *paths], capture_output=True, text=True,
                       timeout=60, check=False)
    t.ok("groff -ww", r.returncode == 0 and not r.stderr, r.stderr)


def flag_column(t, name):
    """The left column of the flags that `tenon help NAME` lists."""
    lines = t.run("help", name).text.splitlines()
    return "\n".join(re.split(r"(?<=\S)  +", line)[0] for line in lines if re.match(r"  --?\w", line))


def environment(t):
    """With a program `tenon` on the path, and a folder of models."""
    os.makedirs(t.temp("bin"), exist_ok=True)
    if not os.path.exists(t.temp("bin/tenon")):
        os.symlink(t.tenon, t.temp("bin/tenon"))
    return {**t.env, "PATH": f"{t.temp('bin')}:{t.env['PATH']}", "TENON_MODELS": t.bundled}


def check_bash(t):
    path = written(t, "tenon.bash", "bash")

    def offered(line):
        r = subprocess.run(["bash", "--norc", "-c", BASH, "bash", path, line], capture_output=True, text=True,
                           env=environment(t), cwd=t.folder.name, timeout=60, check=False)
        return r.stdout.split("\n")[:-1], r.stderr

    if not shutil.which("bash"):
        return t.skip("bash", "bash is not installed")
    for line, there, other in OFFERED:
        words, err = offered(line)
        t.ok(f"bash: {line}", there in words and other not in words and not err, (words[:20], err))
    words, err = offered("tenon run --cache-type-k=b")
    t.ok("bash: behind an equals sign", words == ["bf16"] and not err, (words, err))
    words, err = offered("tenon run ")
    name = next((w for w in words if w.startswith("tenon-tiny")), "")
    t.ok("bash: names of models", name and "tenon.bash" in words, (words, err))
    if ":" in name:  # bash completes what is behind the colon
        words, err = offered(f"tenon show {name[:name.index(':') + 1]}")
        t.ok("bash: behind a colon", name.split(":")[1] in words, (words, err))
    words, err = offered("tenon run -f tenon.b")
    t.ok("bash: files", words == ["tenon.bash"], (words, err))
    # Names only: a flag of another program that is accepted is not worth a suggestion.
    words, err = offered("tenon run --numa")
    t.ok("bash: flags of llama-cli are not offered", "--numa" not in words, words)


def check_fish(t):
    path = written(t, "tenon.fish", "fish")
    if not shutil.which("fish"):
        return t.skip("fish", "fish is not installed")
    lines = [line for line, _, _ in OFFERED] + ["tenon run ", "tenon run -f tenon.f"]
    script = "source $argv[1]\n" + "".join(f"complete -C '{line}'\necho ==\n" for line in lines)
    r = subprocess.run(["fish", "--no-config", "-c", script, path], capture_output=True, text=True,
                       env=environment(t), cwd=t.folder.name, timeout=60, check=False)
    answers = [[line.split("\t")[0] for line in part.split("\n") if line] for part in r.stdout.split("==\n")]
    t.ok("fish: no complaint", not r.stderr and len(answers) == len(lines) + 1, r.stderr)
    for (line, there, other), words in zip(OFFERED, answers):
        t.ok(f"fish: {line}", there in words and other not in words, words[:20])
    t.ok("fish: names of models", any(w.startswith("tenon-tiny") for w in answers[-3]), answers[-3])
    t.ok("fish: files", answers[-2] == ["tenon.fish"], answers[-2])


def zsh_line(t, path, typed, wanted):
    """What zsh has written on its line after `typed` and a tab."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update({**environment(t), "TERM": "dumb", "PS1": "READY ", "ZDOTDIR": t.folder.name})
        os.chdir(t.folder.name)
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen, typing, end = b"", False, time.monotonic() + 30
    os.write(fd, f"autoload -U compinit && compinit -u -D && source {path} && PS1='NO''W '\n".encode())
    while time.monotonic() < end and not (typing and re.search(wanted, seen.split(b"NOW ")[-1])):
        if select.select([fd], [], [], 0.05)[0]:
            try:
                seen += os.read(fd, 65536)
            except OSError:
                break
        if b"NOW " in seen and not typing:
            typing = bool(os.write(fd, typed.encode() + b"\t"))
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os.close(fd)
    return seen.split(b"NOW ")[-1]


def check_zsh(t):
    path = written(t, "_tenon", "zsh")
    if not shutil.which("zsh"):
        return t.skip("zsh", "zsh is not installed")
    for typed, wanted in (("tenon be", b"tenon bench "), ("tenon run --temperat", b"--temperature"),
                          ("tenon run --cache-type-k b", b"bf16 "), ("tenon run tenon-tin", b"tenon-tiny"),
                          ("tenon help quant", b"quantize "), ("tenon run -f _ten", b"_tenon ")):
        seen = zsh_line(t, path, typed, wanted)
        t.ok(f"zsh: {typed}", re.search(wanted, seen), seen)


def main():
    t, _, _ = arguments()
    if "--write" in sys.argv:
        with open(os.path.join(t.root, "docs", "cli.md"), "w", encoding="utf-8") as f:
            f.write(page(t, "markdown"))
        return 0
    for check in (check_reference, check_usage, check_man, check_bash, check_fish, check_zsh):
        check(t)
    return t.done()


sys.exit(main())
