#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What runs on every x86-64 processor has no instruction that some lack.

    baseline.py OBJDUMP BASE... -- LEVEL...     libraries of objects

The BASE libraries are all objects but those that are compiled for one level of processors: their code runs
before the level is known, too. Each LEVEL library must have what is looked for; else it was not found where
it is, and the answer for the others would say nothing.
"""
import re
import subprocess
import sys

# AVX and AVX-512 have names with v, AMX works on tiles; the rest came with AVX2 or shortly before. "tzcnt" is
# no sign: compilers write it where "rep bsf" of all processors gives the same.
NEWER = re.compile(r"(?:v(?!err$|erw$|mcall$|mmcall$)[a-z]\w+|t(?:dp|ile)\w+|mulx|pdep|pext|andn|bextr|"
                   r"bls(?:i|r|msk)|sh[lr]x|sarx|rorx|popcnt|lzcnt|movbe|crc32|"
                   r"pclmul\w*|aes(?:enc|dec)\w*)[bwlq]?")
LINE = re.compile(r"^\s+[0-9a-f]+:\t(?:[a-z0-9]+ )*?([a-z]\w*)(?: |$)(.*)")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")


def newer(objdump, library):
    """(instructions, [function: instruction of newer processors])"""
    count, found, function = 0, [], "?"
    with subprocess.Popen([objdump, "-d", "--no-show-raw-insn", library], stdout=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            at = FUNCTION.match(line)
            if at:
                function = at.group(1)
                continue
            instruction = LINE.match(line)
            if not instruction:
                continue
            count += 1
            if NEWER.fullmatch(instruction.group(1)) or re.search("%[yz]mm", instruction.group(2)):
                found.append(f"{function}: {line.split(chr(9), 1)[1].strip()}")
    if process.returncode != 0:
        sys.exit(f"{objdump} cannot read {library}")
    return count, found


def main():
    objdump, *libraries = sys.argv[1:]
    split = libraries.index("--")
    failed = 0
    for i, library in enumerate(libraries):
        if i == split:
            continue
        count, found = newer(objdump, library)
        good = count > 0 and bool(found) == (i > split)
        failed += not good
        if not good:
            print(f"{library}: {len(found)} of {count} instructions are of newer processors")
            print("".join(f"    {text}\n" for text in found[:10]), end="")
    print(f"{len(libraries) - 1 - failed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
