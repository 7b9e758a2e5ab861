#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The lists of exported functions agree: that of macOS (dist/dylib_exports.py), what the shared library of
ELF exports, and the version script tenon.map.

    exports.py LIBTENON.so tenon.map HEADER..."""

import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def map_names(script):
    """The names and patterns that are global in a version script."""
    names = []
    for version in re.findall(r"\{(.*?)\}", re.sub(r"#.*", "", script), re.S):
        for part in re.findall(r"global:(.*?)(?=local:|$)", version, re.S):
            names += [name.strip() for name in part.split(";") if name.strip()]
    return names


def differences(listed, exported, patterns):
    """Texts about names that are in one list and not in another."""
    problems = [f"{name}: listed for macOS, not exported" for name in sorted(listed - exported)]
    problems += [f"{name}: exported, not listed for macOS" for name in sorted(exported - listed)]
    problems += [f"{name}: no line of tenon.map has it" for name in sorted(listed)
                 if not any(fnmatch.fnmatchcase(name, p) for p in patterns)]
    problems += [f"{name}: in tenon.map, in no header" for name in patterns
                 if "*" not in name and name not in listed]
    return problems


def main(library, map_path, *headers):
    if not shutil.which("nm"):
        print("SKIP: nm is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "exports"
        subprocess.run([sys.executable, "-B", ROOT / "dist/dylib_exports.py", out, *headers], check=True)
        lines = out.read_text(encoding="utf-8").split()
    listed = {line[1:] for line in lines if line.startswith("_tn_")}
    table = subprocess.check_output(["nm", "-D", "--defined-only", library], text=True)
    rows = [line.split() for line in table.splitlines()]
    exported = {row[-1].split("@")[0] for row in rows if row[-2] != "A"}
    patterns = map_names(pathlib.Path(map_path).read_text(encoding="utf-8"))
    problems = differences(listed, exported, patterns)
    if len(listed) != len(lines):
        problems.append("a listed name lacks the underscore")
    # What must be found.
    one = min(listed)
    for changed in ((listed - {one}, exported, patterns), (listed | {"tn_none"}, exported, patterns),
                    (listed, exported, ["tn_none"])):
        if not differences(*changed):
            problems.append("a difference that was made is not found")
    print("\n".join(problems) or f"{len(listed)} functions in all lists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
