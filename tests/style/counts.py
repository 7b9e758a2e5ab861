# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""How easily a reader finds the way: counts of kernel rows, folder entries, long lines, functions and files.

    counts.py [ROOT] [--build FOLDER] [--check] [--list]

With --check, a count above its limit is an error; the files in DATA are excepted. --build
also counts cycles of source files, from the objects in that folder. --list names each place.
"""
import argparse
import os
import re
import subprocess
import sys

from sizes import TABLE, c_functions
from sources import LAYERS, is_build, read, sources

PRODUCT_OPS = {"matmul", "linear", "matmul_multi", "matmul_glu", "matmul_id", "matmul_id_glu"}
SET = re.compile(r"PRODUCT(?:_\w+)?$")  # sets of these ops, see ops/ops.h
ROW = re.compile(r"^TN_\w+_KERNEL\(\s*(\w+)\s*,(.*)\)", re.M)

HERE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COLUMNS, FUNCTION_LINES, FILE_LINES, ENTRIES = 110, 60, 600, 30
CODE = (".c", ".h", ".def", ".cu", ".cuh", ".comp", ".glsl")
FUNCTIONS = (".c", ".h", ".cu", ".cuh")  # C and CUDA
TEXT = CODE + (".py", ".sh", "meson.build", "meson_options.txt")
# Written by scripts: the width of their lines is nobody's concern.
GENERATED = ("models/text/tokenizer/unicode_tables.c",)

# Text that small models are trained on: each row of these files is an example, and its width is part of it.
DATA = tuple(f"models/bundled/corpus_{name}.py" for name in (
    "cast", "chat", "grammar", "plots", "plots_more", "puzzles", "questions", "stories", "world"))

# Limits of --check.
LIMITS = {
    "product rows": 50,
    "entries of the fullest folder outside tests": ENTRIES,
    f"lines over {COLUMNS} columns": 0,
    f"functions over {FUNCTION_LINES} lines": 0,
    f"files over {FILE_LINES} lines": None,  # tests/style/sizes.py refuses larger ones
}


def area(path):
    """Top-level folder of a path, and of the backends each for itself."""
    parts = path.split("/")
    if len(parts) == 1:
        return "(root)"
    return "/".join(parts[:2]) if parts[0] == "backends" and len(parts) > 2 else parts[0]


def product_rows(top):
    """Rows that name one of the product ops or a set of them, and what these rows say but for the op."""
    rows, kernels = [], set()
    for path in sources(top, ("kernels.def",)):
        for op, kernel in ROW.findall(read(top, path)):
            if op in PRODUCT_OPS or SET.match(op):
                kernel = " ".join(kernel.split())
                rows.append(f"{path}: {op}, {kernel}")
                kernels.add((path, kernel))
    return rows, kernels


def entries(top):
    """(entries, folder) of all folders outside tests, hidden files and build folders left out."""
    found = []
    for layer in tuple(n for n in LAYERS if n != "tests") + ("docs",):
        for here, below, files in os.walk(os.path.join(top, layer)):
            below[:] = [d for d in below if not d.startswith(".") and not is_build(os.path.join(here, d))]
            n = len(below) + sum(not f.startswith(".") for f in files)
            found.append((n, os.path.relpath(here, top).replace(os.sep, "/")))
    return sorted(found, reverse=True)


def all_texts(top):
    paths = sources(top, TEXT) + ["meson.build", "meson_options.txt", ".ci/run"]
    return [p for p in paths if p not in GENERATED + DATA and os.path.exists(os.path.join(top, p))]


def long_lines(top, paths):
    for path in paths:
        for i, line in enumerate(read(top, path).split("\n"), 1):
            if len(line) > COLUMNS:
                yield f"{path}:{i}"


def long_functions(top):
    for path in sources(top, FUNCTIONS):
        if not TABLE.search(path):
            for name, line, size, _ in c_functions(read(top, path)):
                if size > FUNCTION_LINES:
                    yield f"{path}:{line}: {name} has {size} lines"


def long_files(top, paths):
    for path in paths:
        n = read(top, path).count("\n")
        if n > FILE_LINES and not TABLE.search(path):
            yield f"{path}: {n} lines"


def by_area(places):
    """\"core 3, models 1\": how many of the places lie in each folder."""
    counts = {}
    for place in places:
        name = area(place.split(":")[0])
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items())) or "none"


def count_cycles(top, build):
    """Prints what the test of cycles, beside this file, says of a build folder; whether it passes."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cycles.py")
    if not os.path.exists(script):
        print("cycles of source files: tests/style/cycles.py does not exist")
        return True
    done = subprocess.run([sys.executable, "-B", script, top, build], capture_output=True, text=True)
    print("cycles of source files, as tests/style/cycles.py counts them:")
    print("    " + done.stdout.strip().replace("\n", "\n    "))
    return done.returncode in (0, 77)


def arguments():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("root", nargs="?", default=HERE)
    parser.add_argument("--build", metavar="FOLDER", help="count cycles of the objects built there")
    parser.add_argument("--check", action="store_true", help="fail if a count is above its limit")
    parser.add_argument("--list", action="store_true", help="name each place")
    return parser.parse_args()


def main():
    options = arguments()
    top = os.path.abspath(options.root)
    texts, folders = all_texts(top), entries(top)
    rows, kernels = product_rows(top)
    full = [f"{folder}: {n} entries" for n, folder in folders if n > ENTRIES]
    fullest = ", ".join(f"{folder} {n}" for n, folder in folders[:6])
    lines, functions = list(long_lines(top, texts)), list(long_functions(top))
    files = list(long_files(top, texts))
    counts = [
        (len(rows), f"{len(kernels)} different ones but for the op; {by_area(rows)}", rows),
        (folders[0][0], f"{len(full)} folders have more; {fullest}", full),
        (len(lines), by_area(lines), lines),
        (len(functions), by_area(functions), functions),
        (len(files), by_area(files), files),
    ]
    failed = 0
    for (what, limit), (n, detail, places) in zip(LIMITS.items(), counts):
        print(f"{what}: {n} (limit {limit}): {detail}")
        if options.list:
            print("".join(f"    {place}\n" for place in places), end="")
        failed += limit is not None and n > limit
    cycles = count_cycles(top, os.path.abspath(options.build)) if options.build else True
    return 1 if options.check and (failed or not cycles) else 0


if __name__ == "__main__":
    sys.exit(main())
