#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Every struct of a public header begins with struct_size, or is one of those that never change.

    structs.py ROOT

Both kinds are in the tables of tests/unit/test_structs.c. The parameters of ops (params.h) never change
either.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TABLES = (ROOT / "tests/unit/test_structs.c").read_text()
passed = failed = 0
for header in sorted(ROOT.glob("*/include/tenon/*.h")):
    text = re.sub(r"//[^\n]*", "", header.read_text())
    for first, body, name in re.findall(r"typedef struct \w*\s*\{\s*([^;]*;)([^{}]*)\}\s*(\w+);", text):
        sized = first == "size_t struct_size;"
        ok = header.name == "params.h" or ("SIZES(" if sized else "FIXED(") + name + "," in TABLES
        passed, failed = passed + ok, failed + (not ok)
        if not ok:
            print(f"{header.relative_to(ROOT)}: {name} is in no table of tests/unit/test_structs.c")
        for config in ["config", "sampling", "shape"]:
            if sized and name.endswith(config) and f"void {name}_default({name} *" not in text:
                failed += 1
                print(f"{header.relative_to(ROOT)}: {name} has no {name}_default")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0 or passed < 20)
