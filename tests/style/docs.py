# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Each folder of sources explains itself on one screen, and what the documents name exists."""
import os
import re
import sys

from sources import LAYERS, Report, line_of, read, root, sources

LINES_MAX = 60
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:c|h|def|py|sh|md|json|txt|gguf|f32))`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
SCRIPT = re.compile(r"\b(?:sh|bash|python3)\s+([\w./-]+\.(?:sh|py)|\.ci/run)\b")


def folders(top):
    for layer in LAYERS:
        yield layer
    for name in sorted(os.listdir(os.path.join(top, "backends"))):
        if os.path.isdir(os.path.join(top, "backends", name)):
            yield f"backends/{name}"


def check_readmes(top, report):
    for folder in folders(top):
        path = f"{folder}/README.md"
        if report.ok(path, os.path.exists(os.path.join(top, path)), "missing: what lives here, how to add one"):
            n = read(top, path).count("\n")
            report.ok(path, n <= LINES_MAX, f"{n} lines, a screen has {LINES_MAX}")


def check_paths(top, path, text, report):
    here = os.path.dirname(path)
    for match in list(PATH.finditer(text)) + list(LINK.finditer(text)):
        name = match.group(1)
        places = [name, os.path.join(here, name)] + [f"{layer}/include/{name}" for layer in LAYERS]
        exists = any(os.path.exists(os.path.join(top, p)) for p in places)
        report.ok(f"{path}:{line_of(text, match.start())}", exists, f"{name} does not exist")


def check_commands(top, path, text, report):
    """Scripts, commands and flags in the code blocks of a document."""
    commands = set(re.findall(r"^CMD\(\w+,\s*(\w+)", read(top, "tools/commands.def"), re.M)) | {"help", "version"}
    rows = re.findall(r'^OPT\(\w+,\s*\w+,\s*"([^"]+)"', read(top, "tools/options.def"), re.M)
    flags = {flag for names in rows for flag in names.split(",")} | {"--version"}
    for block in FENCE.finditer(text):
        place = f"{path}:{line_of(text, block.start())}"
        for script in SCRIPT.findall(block.group(1)):
            exists = any(os.path.exists(os.path.join(top, p)) for p in (script, os.path.join(os.path.dirname(path), script)))
            report.ok(place, exists, f"{script} does not exist")
        for line in re.findall(r"(?:^|[|;(/]|\s)tenon ([^\n|#]+)", block.group(1)):
            words = line.split()
            if words and re.fullmatch(r"[a-z]+", words[0]):
                report.ok(place, words[0] in commands, f"tenon has no command {words[0]}")
            for flag in re.findall(r"(?<!\S)(--?[a-z][\w-]*)", line):
                report.ok(place, flag in flags, f"tenon has no flag {flag}")


def check_example(top, report):
    """The C program of README.md is the one that tests/headers builds and runs."""
    blocks = re.findall(r"^```c\n(.*?)^```", read(top, "README.md"), re.M | re.S)
    program = read(top, "tests/headers/embed.c").split("\n", 2)[2]
    report.ok("README.md", program in blocks, "its C program differs from tests/headers/embed.c")


def main():
    top, report = root(), Report()
    check_readmes(top, report)
    if os.path.exists(os.path.join(top, "README.md")):
        check_example(top, report)
    for path in ["README.md", "CONTRIBUTING.md"]:
        report.ok(path, os.path.exists(os.path.join(top, path)), "missing")
    for path in [p for p in ("README.md", "CONTRIBUTING.md") if os.path.exists(os.path.join(top, p))] + sources(top, (".md",)):
        text = read(top, path)
        check_paths(top, path, text, report)
        check_commands(top, path, text, report)
    return report.done()


sys.exit(main())
