#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the DLL and the program for Windows consist of.

    binaries.py OBJDUMP ROOT SIZE LIBRARY PROGRAM

The DLL exports the functions of the public headers and nothing else. Both import libraries of the system
only, so nothing has to be shipped beside them, and both stay below SIZE bytes. Neither moves 32 or 64 aligned
bytes to or from the stack: Windows aligns it to 16, and compilers without a patch rely on more (GCC bug
54412). That crashes in half of all runs on Windows and in none under wine, so the instructions are looked at.
"""
import os
import pathlib
import re
import subprocess
import sys

SYSTEM = {"KERNEL32.dll", "msvcrt.dll", "api-ms-win-core-synch-l1-2-0.dll"}
FUNCTION = re.compile(r"^TN_API\b[^;{]*?\b(tn_\w+)\(", re.M)
ALIGNED = re.compile(r"\bvmov(?:aps|apd|dqa|dqa32|dqa64|ntdq|ntps|ntpd)\b.*%[yz]mm.*\(%[re]?[sb]p[,)]|"
                     r"\bvmov(?:aps|apd|dqa|dqa32|dqa64)\b.*\(%[re]?[sb]p[,)].*%[yz]mm")


def declared(root):
    names = set()
    for header in pathlib.Path(root).glob("*/include/tenon/*.h"):
        names |= set(FUNCTION.findall(header.read_text(encoding="utf-8")))
    return names


def lines(objdump, flag, path):
    with subprocess.Popen([objdump, flag, path], stdout=subprocess.PIPE, text=True) as process:
        yield from process.stdout
    if process.returncode != 0:
        sys.exit(f"{objdump} {flag} {path} failed")


def exports(header):
    """Names in the export table, whose lines are "[ 0] tn_x" behind its title."""
    inside, names = False, set()
    for line in header:
        inside = inside or "Ordinal/Name Pointer" in line
        match = re.match(r"\s+\[\s*\d+\].*?(\w+)\s*$", line) if inside else None
        if match:
            names.add(match.group(1))
    return names


def main():
    objdump, root, limit, library, program = sys.argv[1:]
    failed = 0

    def check(good, text):
        nonlocal failed
        if not good:
            failed += 1
            print(text)

    wanted, found = declared(root), exports(lines(objdump, "-p", library))
    check(len(wanted) > 100, f"only {len(wanted)} functions found in the public headers")
    check(found == wanted, f"exports that no header has: {sorted(found - wanted)}, missing: "
                           f"{sorted(wanted - found)}")
    for path in (library, program):
        name = os.path.basename(path)
        imports = {line.split()[-1] for line in lines(objdump, "-p", path) if "DLL Name:" in line}
        check(imports and imports <= SYSTEM, f"{name} imports {sorted(imports - SYSTEM)}")
        size = os.path.getsize(path)
        check(size <= int(limit), f"{name} has {size} bytes, more than {limit}")
        n_vectors, aligned = 0, []
        for line in lines(objdump, "-d", path):
            n_vectors += "%ymm" in line
            if ALIGNED.search(line):
                aligned.append(line.strip())
        check(n_vectors > 1000, f"{name}: no vector instructions were found")
        check(not aligned, f"{name}: aligned moves on the stack, {len(aligned)}: {aligned[:3]}")
        print(f"{name}: {size} bytes, {n_vectors} instructions with vectors, imports {sorted(imports)}")
    print(f"{len(wanted)} functions, {failed} failed")
    return failed > 0


sys.exit(main())
