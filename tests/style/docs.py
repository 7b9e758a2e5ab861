# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Each folder of sources explains itself on one screen; the paths that documents and comments name exist."""
import os
import re
import subprocess
import sys

from sources import LAYERS, Report, comments, line_of, read, root, sources

LINES_MAX = 60  # a screen
# Documents that one reads to the end, and what they may have.
LIMITS = {"docs/performance.md": 150, "docs/status.md": 60, "docs/architecture.md": 110}
COLUMNS_MAX = 110
GLOSSARY_MAX = 30  # words that a reader is asked to learn
FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.M | re.S)
CODE = "c|h|def|cu|cuh|comp|glsl|md"
PATH = re.compile(rf"`([\w.-]+(?:/[\w.-]+)+\.(?:{CODE}|py|sh|json|txt|gguf|f32))`")
# In comments: anything with a folder and an extension of ours, and single names of sources and documents.
# Names in <angle brackets>, parts of addresses and patterns such as <family>_tmpl.h or *_posix.c are none.
NAMED = re.compile(rf"(?<![\w./<>*$:-])((?:[\w.-]+/)+[\w-][\w.-]*\.(?:{CODE}|py|sh|json|txt|gguf|build)|"
                   rf"[\w-]+\.(?:{CODE}))(?![\w/*>-]|\.\w)")
PLACEHOLDER = re.compile(r"(?:^|/)[A-Z_]+(?:/|\.\w+$)")  # MODEL.gguf, DIR/heldout.txt: lines that show a call
COMMENTED = (".c", ".h", ".def", ".cu", ".cuh", ".comp", ".glsl", ".py", ".sh", "meson.build")
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
        exists = os.path.exists(os.path.join(top, path))
        if report.ok(path, exists, "missing: what lives here, how to add one"):
            n = read(top, path).count("\n")
            report.ok(path, n <= LINES_MAX, f"{n} lines, a screen has {LINES_MAX}")


def check_form(top, path, text, report):
    """Length of the document, and of its lines; rows of tables are as long as they have to be."""
    n = text.count("\n")
    report.ok(path, n <= LIMITS.get(path, n), f"{n} lines, more than {LIMITS.get(path)}")
    if path.endswith("/README.md") and not path.startswith("docs/"):
        report.ok(path, n <= LINES_MAX, f"{n} lines, a screen has {LINES_MAX}")
    wide = [i for i, line in enumerate(text.split("\n"), 1) if len(line) > COLUMNS_MAX and line[:1] != "|"]
    found = f"lines of more than {COLUMNS_MAX} columns: {', '.join(map(str, wide))}"
    report.ok(path, not wide, found)


def check_paths(top, path, text, report):
    here = os.path.dirname(path)
    for match in list(PATH.finditer(text)) + list(LINK.finditer(text)):
        name = match.group(1)
        places = [name, os.path.join(here, name)] + [f"{layer}/include/{name}" for layer in LAYERS]
        exists = any(os.path.exists(os.path.join(top, p)) for p in places)
        place = f"{path}:{line_of(text, match.start())}"
        report.ok(place, exists, f"{name} does not exist")


PER_BACKEND = ("kernels.def",)  # each backend has one; ops speaks of all of them


def is_there(top, folder, name):
    """Whether a path exists from the root, from the folder of the file or one above it, or as an include."""
    places = [f"{layer}/include" for layer in LAYERS] + [f"{layer}/include/tenon" for layer in LAYERS] + [""]
    while folder:
        places.append(folder)
        folder = os.path.dirname(folder)
    return name in PER_BACKEND or any(os.path.exists(os.path.join(top, place, name)) for place in places)


def check_comments(top, path, report):
    text = read(top, path)
    for offset, comment in comments(path, text):
        for match in NAMED.finditer(comment):
            name = match.group(1)
            place = f"{path}:{line_of(text, offset + match.start())}"
            good = is_there(top, os.path.dirname(path), name) or bool(PLACEHOLDER.search(name))
            report.ok(place, good, f"comment names {name}, which does not exist")


def check_commands(top, path, text, report):
    """Scripts, commands and flags in the code blocks of a document."""
    commands = set(re.findall(r"^CMD\(\w+,\s*(\w+)", read(top, "tools/commands.def"), re.M))
    commands |= {"help", "version"}
    options = re.sub(r'"\s*\n\s*"', "", read(top, "tools/options.def"))  # strings over several lines
    rows = re.findall(r'^OPT\(\w+,\s*\w+,\s*"([^"]+)"', options, re.M)
    flags = {flag for names in rows for flag in names.split(",")} | {"--version", "--format"}
    for block in FENCE.finditer(text):
        place = f"{path}:{line_of(text, block.start())}"
        for script in SCRIPT.findall(block.group(1)):
            places = (script, os.path.join(os.path.dirname(path), script))
            exists = any(os.path.exists(os.path.join(top, p)) for p in places)
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


def check_glossary(top, report):
    glossary = read(top, "CONTRIBUTING.md").split("## Glossary", 1)[-1]
    n = len(re.findall(r"^\| (?!Word \|)[^|]+\|", glossary, re.M))
    report.ok("CONTRIBUTING.md", 0 < n <= GLOSSARY_MAX, f"glossary of {n} words, at most {GLOSSARY_MAX}")


def check_picture(top, report):
    """docs/pictures/architecture.svg is what its script writes."""
    script = os.path.join(top, "docs", "pictures", "make_architecture.py")
    made = subprocess.run([sys.executable, "-B", script, "-"], capture_output=True, encoding="utf-8")
    same = made.returncode == 0 and made.stdout == read(top, "docs/pictures/architecture.svg")
    other = "docs/pictures/make_architecture.py writes another picture: run it, look at it"
    problem = made.stderr.strip() or other
    report.ok("docs/pictures/architecture.svg", same, problem)


def main():
    top, report = root(), Report()
    check_readmes(top, report)
    if os.path.exists(os.path.join(top, "README.md")):
        check_example(top, report)
    check_picture(top, report)
    check_glossary(top, report)
    for path in ["README.md", "CONTRIBUTING.md"]:
        report.ok(path, os.path.exists(os.path.join(top, path)), "missing")
    first = [p for p in ("README.md", "CONTRIBUTING.md") if os.path.exists(os.path.join(top, p))]
    for path in first + sources(top, (".md",)):
        text = read(top, path)
        check_form(top, path, text, report)
        check_paths(top, path, text, report)
        check_commands(top, path, text, report)
    for path in sources(top, COMMENTED) + ["meson.build"]:
        check_comments(top, path, report)
    return report.done()


sys.exit(main())
