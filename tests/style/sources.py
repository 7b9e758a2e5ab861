# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the style checks share: the list of sources, C without comments, and the count of checks.

A check calls `report.ok(place, condition, message)` for each fact and ends with `sys.exit(report.done())`.
"""
import ast
import io
import os
import re
import sys
import tokenize

LAYERS = ("core", "ops", "backends", "graph", "models", "tools", "tests")
LIBRARY = ("core", "ops", "backends", "graph", "models")


class Report:
    def __init__(self):
        self.passed = self.failed = 0

    def ok(self, place, condition, message):
        """Counts one fact; prints place and message if it does not hold."""
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"{place}: {message}")
        return condition

    def done(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def root():
    """The folder given as first argument, or the one this checkout lies in."""
    if len(sys.argv) > 1:
        return os.path.abspath(sys.argv[1])
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


GENERATED = ("__pycache__", "node_modules")


def is_build(folder):
    return os.path.exists(os.path.join(folder, "meson-private")) or os.path.basename(folder) in GENERATED


def sources(top, extensions, folders=LAYERS + (".ci", "docs", "dist", "python")):
    """Paths below `folders`, relative to top with forward slashes, whose name ends with one of
    `extensions`."""
    found = []
    for name in folders:
        for here, below, files in os.walk(os.path.join(top, name)):
            below[:] = sorted(d for d in below if not d.startswith(".")
                              and not is_build(os.path.join(here, d)))
            for f in sorted(files):
                if f.endswith(tuple(extensions)):
                    found.append(os.path.relpath(os.path.join(here, f), top).replace(os.sep, "/"))
    return found


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8", errors="replace") as f:
        return f.read()


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def blank(text):
    """The same number of lines, nothing on them."""
    return "\n" * text.count("\n")


def strip_c(text, keep_strings=False):
    """C without comments, and without the inside of strings and characters; lines stay where they are."""
    def replace(match):
        token = match.group(0)
        if token.startswith("/"):
            return blank(token) or " "
        return token if keep_strings else token[0] + token[0]
    return TOKEN.sub(replace, text)


def strip_directives(text):
    """Also without preprocessor lines and the lines that they go on with; of #if ... #else, the first half
    stays."""
    out, inside, skipped = [], False, []
    for line in text.split("\n"):
        directive = inside or line.lstrip().startswith("#")
        if directive and not inside:
            word = line.lstrip()[1:].split()[:1]
            if word and word[0] in ("if", "ifdef", "ifndef"):
                skipped.append(False)
            elif word and word[0] in ("else", "elif") and skipped:
                skipped[-1] = True
            elif word and word[0] == "endif" and skipped:
                skipped.pop()
        inside = directive and line.endswith("\\")
        out.append("" if directive or any(skipped) else line)
    return "\n".join(out)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def comments(path, text):
    """(offset, comment) of each comment of a source file, documentation strings of Python included."""
    if path.endswith(".py"):
        yield from python_comments(text)
    elif path.endswith((".build", ".sh", "run")):
        yield from ((m.start(), m.group(0)) for m in re.finditer(r"(?<!\S)#[^\n]*", text))
    else:
        yield from ((m.start(), m.group(0)) for m in TOKEN.finditer(text) if m.group(0).startswith("/"))


def python_comments(text):
    starts, lines = [0] + [m.end() for m in re.finditer(r"\n", text)], text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            doc = node.body[0]
            yield starts[doc.lineno - 1], "\n".join(lines[doc.lineno - 1:doc.end_lineno])
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield starts[token.start[0] - 1] + token.start[1], token.string
