#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Operands are read by name: ops/operands.h and ops/product.h say where the sources of an op are. This test
# refuses the numbers that would say it again, as far as a script sees them:
#     src[5]   src[7 + which]   src[n_src - 1]
# src[0] and src[1] are left alone: most ops have one source or two, and which they are is plain there.
# Usage: operands.py ROOT
import os
import re
import sys

FOLDERS = ["ops", "graph", "models", "backends", "tests/check"]
BARE = re.compile(r"\bsrc\[\s*(?:[2-9]\b|\d+\s*\+|[\w.>-]*n_src\s*-\s*1\s*\])")
# The last of all sources, whichever op it is: these loops treat all ops alike.
ALLOWED = {("graph/record_ops.c", "!src[n_src - 1]"), ("graph/fuse_rows.c", "!f->src[f->n_src - 1]")}


def files(root):
    for folder in FOLDERS:
        for here, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(here, name), root)


def main():
    root = sys.argv[1]
    passed = failed = 0
    for path in files(root):
        with open(os.path.join(root, path), encoding="utf-8") as f:
            for number, line in enumerate(f, 1):
                code = line.split("//")[0]
                if not BARE.search(code):
                    continue
                if any(path == p and text in code for p, text in ALLOWED):
                    continue
                failed += 1
                print(f"{path}:{number}: operand by number: {line.strip()}")
        passed += 1
    print(f"{passed} files, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
