# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Words that must not stand in sources: open ends, paths of one machine, calls that end or print, changing
globals."""
import re
import sys

from sources import LIBRARY, Report, line_of, read, root, sources, strip_c, strip_directives

OPEN_END = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b(?!\s*(?:\(|:?\s*(?:when|once|if|until|after)\b))")
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|Users|mnt|opt|srv)/\w|\b[A-Z]:\\\\\w")
# The library never ends the process, prints, or reads the environment; what it formats goes into buffers.
CALL = re.compile(r"(?<![\w.>])(abort|exit|_exit|_Exit|quick_exit|atexit|printf|vprintf|fprintf|vfprintf|"
                  r"puts|fputs|putchar|"
                  r"putc|fputc|perror|getenv|setlocale|signal|sigaction|raise|system|assert_fail)\s*\(")
STREAM = re.compile(r"\b(stdout|stderr|stdin)\b")
STATIC = re.compile(r"(?<!\w)(?:static|_Thread_local)\b([^;{}=()]*)([;{=(])")
SELF = ("tests/style/words.py",)
# The one object that can change and belongs to no context: the message of a thread's last failure.
EXCEPTIONS = [("core/fail.c", "thread_failure")]


def is_constant(declaration):
    """Whether the declared object itself is const: behind its last star, or anywhere if it is no pointer."""
    name_part = declaration.rsplit("*", 1)[-1]
    return "const" in (name_part if "*" in declaration else declaration)


def check_statics(path, code, report):
    for match in STATIC.finditer(code):
        declaration, end = match.groups()
        if (path, declaration.split()[-1] if declaration.split() else "") in EXCEPTIONS:
            continue
        if end == "(" or re.search(r"\b(inline|_Static_assert)\b", declaration) or not declaration.strip():
            continue
        report.ok(f"{path}:{line_of(code, match.start())}", is_constant(declaration),
                  f"static that can change: static{declaration.rstrip()}")


def check_library(path, text, report):
    code = strip_c(text)
    for pattern, what in ((CALL, "calls"), (STREAM, "uses")):
        found = pattern.search(code)
        report.ok(path, not found,
                  found and f"line {line_of(code, found.start())}: the library never {what} {found.group(1)}")
    check_statics(path, strip_directives(code), report)


def check_text(path, text, report):
    for pattern, what in ((OPEN_END, "an open end must name its condition: 'TODO when ...'"),
                          (MACHINE_PATH, "path of one machine")):
        found = pattern.search(text)
        report.ok(path, not found, found and f"line {line_of(text, found.start())}: {what}: {found.group(0)}")


def main():
    top, report = root(), Report()
    for path in sources(top, (".c", ".h", ".def", ".cu", ".cuh", ".comp", ".glsl", ".py", ".sh", ".md",
                              "meson.build")) + [".ci/run"]:
        text = read(top, path)
        if path not in SELF:
            check_text(path, text, report)
        if path.startswith(tuple(f"{d}/" for d in LIBRARY)) and path.endswith((".c", ".h")):
            check_library(path, text, report)
    return report.done()


sys.exit(main())
