#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Families of ops name files. From ops.def and each backend's kernels.def this test derives which families a
# backend implements, and looks for them under their names:
#     backends/cpu/c/<family>.c, backends/cpu/x86/<family>_<level>.c and backends/cpu/arm/<family>_<level>.c,
#     and no file of another stem
#     backends/<backend>/<family>/ for the backends in FOLDERS
#     tests/check/cases_<family>.c and bench_<family>.c
# Usage: families.py ROOT
import os
import re
import sys

# Backends that keep a folder for each family.
FOLDERS = ["cuda", "vulkan"]
# Levels of the CPU for which each family has a file; the family of products has one more.
LEVELS = {"avx2": "x86", "avx512": "x86", "neon": "arm"}
# Files of the CPU that serve several families.
SHARED = {"accepts", "convert", "parts", "rows", "vec"}


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def rows(text, macro):
    # Up to the first closing parenthesis: a row may have several lines, and lists at its end.
    found = re.findall(r"^" + macro + r"\(([^)]*)\)", text, re.M)
    return [[field.strip() for field in row.split(",")] for row in found]


def implemented(root, backend, macro, family_of, set_of):
    found = set()
    text = read(root, f"backends/{backend}/kernels.def")
    # Rows that each op of a family has.
    found.update(re.findall(r"^#define TN_CPU_OF_(\w+)\(op\)[ \\\n]+TN_CPU_KERNEL\(", text, re.M))
    for row in rows(text, macro):
        name = row[0]
        if name in family_of:
            found.add(family_of[name])
        else:  # a set: that of a family, or a part of the products
            found.add(set_of.get(name, "product" if name.startswith("PRODUCT") else f"the set {name}"))
    return found


def main():
    root = sys.argv[1]
    problems = []
    family_of = {row[0]: row[1] for row in rows(read(root, "ops/include/tenon/ops.def"), "TN_OP")}
    set_of = {row[1]: row[0] for row in rows(read(root, "ops/families.def"), "TN_FAMILY")}
    families = list(set_of.values())
    checked = 0

    def need(path):
        nonlocal checked
        checked += 1
        if not os.path.exists(os.path.join(root, path)):
            problems.append(f"{path} is missing")

    for op, family in family_of.items():
        if family not in families:
            problems.append(f"ops.def: {op} has the family {family}, which families.def does not list")
    for family in implemented(root, "cpu", "TN_CPU_KERNEL", family_of, set_of):
        need(f"backends/cpu/c/{family}.c")
        for level, folder in LEVELS.items():
            need(f"backends/cpu/{folder}/{family}_{level}.c")
    for folder in ("c", "x86", "arm"):
        for name in sorted(os.listdir(os.path.join(root, "backends/cpu", folder))):
            stem = re.split(r"[_.]", name)[0]
            if name == "README.md":
                continue
            checked += 1
            if stem not in families and stem not in SHARED:
                problems.append(f"backends/cpu/{folder}/{name}: {stem} is no family")
    for backend in FOLDERS:
        macro = {"cuda": "TN_CUDA_KERNEL", "vulkan": "TN_VK_KERNEL"}[backend]
        for family in implemented(root, backend, macro, family_of, set_of):
            need(f"backends/{backend}/{family}")
    for family in families:
        need(f"tests/check/cases_{family}.c")
        need(f"tests/check/bench_{family}.c")
    for problem in problems:
        print(problem)
    print(f"{checked} checked, {len(problems)} failed")
    return len(problems) > 0


if __name__ == "__main__":
    sys.exit(main())
