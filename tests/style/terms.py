# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Words of this project's early days that only their authors understood, in identifiers and comments.

Each row of TERMS has a pattern, what to write instead, and the folders where the word must not come back. A
folder joins the list of a row as soon as it is free of the word. A pattern matches whole words and the parts
of snake_case names: `room` is found in `room`, `n_room` and `room_left`, not in `mushroom`. Strings are text
for users and are not read.
"""
import re
import sys

from sources import Report, line_of, read, root, sources

EVERYWHERE = ("core", "ops", "graph", "models", "tools", "backends/null")
PORTABLE = EVERYWHERE + ("backends/cpu", "backends/cuda", "backends/vulkan")
TESTS = tuple("tests/" + name for name in (
    "check", "fuzz", "headers", "models", "style", "templates", "tools", "unit", "vulkan"))
TERMS = (
    # what is retired, what to write, where
    (r"few", "skinny, small batch, decode attention, or the number", EVERYWHERE),
    # Numbers may be rounded; rows of activations are quantised.
    (r"rounded[ _](?:rows?|x|size|inputs?|activations?)|\w+_rounded", "quantised activations", PORTABLE),
    (r"handover|hand_over|handed_over|hands?_over", "pass on, join, fuse: what happens to the result",
     PORTABLE + TESTS + ("tests/graph",)),
    (r"rooms?", "capacity, scratch, shared memory, free blocks", PORTABLE + TESTS),
    (r"takes_along|take_along|takes? along|taken along", "fuses", PORTABLE + ("tests",)),
    (r"(?<!matrix )products", "matmuls, GEMM, GEMV", EVERYWHERE),
    (r"(?<!tests/)units?", "what it is: elements, bytes, a tile, packed16", EVERYWHERE),
    (r"tells?|told", "says, reports, means, decides", EVERYWHERE + ("backends/cpu",)),
    (r"looks for|looked for|looked at|looks at|looks? through|looks? back", "polls, searches, reads, checks",
     EVERYWHERE + ("backends/cpu",)),
    (r"wish|wishes", "request", PORTABLE + ("tests",)),
    (r"disguise", "say what it is", PORTABLE + ("tests",)),
)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'')


def without_strings(text):
    """C without the inside of strings; comments stay, whatever quotes they contain."""
    out, at = [], 0
    for match in re.finditer(f"({COMMENT.pattern})|({STRING.pattern})", text, re.S):
        out.append(text[at:match.start()])
        out.append(match.group(0) if match.group(1) else '""')
        at = match.end()
    return "".join(out + [text[at:]])


def patterns():
    """(compiled pattern, what to write, folders): letters and digits delimit a word, an underscore does
    not."""
    for word, instead, folders in TERMS:
        yield re.compile(rf"(?<![A-Za-z0-9])(?:{word})(?![A-Za-z0-9])", re.I), instead, folders


def check(path, text, rows, report):
    layer = path.split("/")[0]
    for pattern, instead, folders in rows:
        if not any(path.startswith(folder + "/") for folder in folders):
            continue
        found = pattern.search(text)
        report.ok(f"{path}:{line_of(text, found.start()) if found else 1}", not found,
                  found and f"'{found.group(0)}': write {instead}")


def main():
    top, report, rows = root(), Report(), list(patterns())
    for path in sources(top, (".c", ".h", ".def", ".cu", ".cuh", ".comp", ".glsl", ".md")):
        text = read(top, path)
        check(path, text if path.endswith(".md") else without_strings(text), rows, report)
    return report.done()


sys.exit(main())
