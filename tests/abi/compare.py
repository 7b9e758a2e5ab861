#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Compares the ABI of the public headers with the one that began as TENON_1, by abidiff.

    compare.py LIBTENON CC [ARGUMENT...]

The baseline is tenon_1.h, the declarations of that time. Of them and of today's headers a library of empty
functions is built with debug information, so that the comparison sees the public types alone and needs no
debug build of the library. The real library must then export what the baseline has, with the same version.
Changes that must be found are made to the baseline and compared first.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "python"))
import make_abi  # noqa: E402

# Numbers that say how many there are grow with what they count.
COUNTS = re.compile(r"TN_\w*(COUNT|MAX\w*)$|TN_(N|MAX)_\w+$")
# name: what is replaced in the baseline by what, whether that is an allowed change
CHANGES = {
    "a function is gone": (r"\btn_status tn_tokenize\(", "tn_status tn_tokenise(", False),
    "a parameter has another type": (r"(tn_session_feed\([^)]*?)int32_t n\)", r"\1int64_t n)", False),
    "a parameter more": (r"(tn_session_save\([^)]*)\)", r"\1, int32_t flags)", False),
    "a result has another type": (r"int32_t tn_session_n_ctx\(", "int64_t tn_session_n_ctx(", False),
    "a field is gone": (r"int32_t n_steps;", "", False),
    "a field has another type": (r"int32_t n_steps;", "int64_t n_steps;", False),
    "a field has another type of its size": (r"int32_t n_steps;", "float n_steps;", False),
    "a field of another type, and one more": (r"int32_t n_steps;(.*?)\} tn_plan_info;",
                                              r"float n_steps;\1uint64_t new; } tn_plan_info;", False),
    "a field in the middle": (r"(typedef struct tn_plan_info \{.*?)(int32_t n_steps;)",
                              r"\1int32_t n_new; int32_t n_newer; \2", False),
    "a field more in a struct without size": (r"\} tn_allocator;", "void *last; } tn_allocator;", False),
    "a field of an op's parameters": (r"(typedef struct tn_moe_route_params \{)", r"\1double new;", False),
    "a field more at the end of a sized struct": (r"\} tn_plan_info;", "double new; } tn_plan_info;", True),
    "a field in place of a reserved one": (r"(typedef struct tn_plan_info \{.*?int32_t )reserved;", r"\1new;",
                                           True),
    "a new function": (r"\btn_status tn_tokenize\(", "void tn_new(void);\n\\g<0>", True),
}


class Stub:
    """Preprocessed declarations, and a library of empty functions made of them."""

    def __init__(self, cc, text):
        self.cc, self.text = cc, text
        plain = re.sub(r"__attribute__\s*\(\(.*?\)\)(?=\s)", "", text)
        self.headers, self.definitions, self.names = make_abi.Headers(), [], set()
        for one in make_abi.declarations(plain):
            if not one.startswith("extern") and "tn_" in one + "tn_" * one.startswith("enum"):
                self.add(one)
        # Structs that no function takes are part of the ABI as well, as parameters of ops are.
        structs = [s for s in self.headers.order if s in self.headers.structs]
        self.definitions += [f"void tn_struct_of_{s}({s} *x) {{ (void)x; }}" for s in structs]
        self.sized = [s for s in structs if self.headers.structs[s][0][0] == "struct_size"]

    def add(self, one):
        before = len(self.headers.functions)
        self.headers.add(one)
        if len(self.headers.functions) > before:
            self.names.add(list(self.headers.functions)[-1])
            self.definitions.append(one + " { __builtin_trap(); }")

    def build(self, folder, name):
        source, out, symbols = (folder / (name + end) for end in (".c", ".so", ".map"))
        symbols.write_text("TENON_1 { global: tn_*; local: *; };\n")
        source.write_text(self.text + "\n" + "\n".join(self.definitions) + "\n")
        subprocess.run([self.cc, "-std=c17", "-g", "-O0", "-w", "-shared", "-fPIC", str(source), "-o",
                        str(out), f"-Wl,--version-script={symbols}"], check=True)
        return out


def expanded(cc, header):
    """What the compiler sees of a header."""
    made = subprocess.run([cc, "-E", "-P", f"-I{ROOT}", "-x", "c", str(header)], capture_output=True,
                          text=True, check=True)
    return made.stdout


def fields(text, struct):
    """The place of the fields of a struct in the text, and the fields."""
    found = re.search(r"typedef\s+struct\s+%s\s*\{(.*?)\}\s*%s;" % (struct, struct), text, re.S)
    if not found:
        return None
    return found.start(1), found.end(1), [" ".join(f.split()) for f in found.group(1).split(";")[:-1]]


def allowed(old, new):
    """Whether a field stayed, or a reserved one of that type got a name."""
    unnamed = re.sub(r"\w+(\[\w+\])?$", r"\1", new)
    return old == new or re.sub(r"\breserved\w*(\[\w+\])?$", r"\1", old) == unnamed


def without_growth(text, base):
    """Today's declarations with the structs of the baseline where they differ in what is allowed: a struct
    that begins with struct_size may get fields at its end, because both sides write only what the other has
    (core/include/tenon/base.h), and a reserved field may get a use. abidiff has rules for growth, but they
    also hide a field that becomes larger."""
    for struct in base.sized:
        old, new = fields(base.text, struct), fields(text, struct)
        if not new or len(new[2]) < len(old[2]):
            continue
        if all(allowed(*pair) for pair in zip(old[2], new[2])):
            text = text[:new[0]] + base.text[old[0]:old[1]] + text[new[1]:]
    return text


def differences(before, after):
    """What abidiff has to say; "" if there is nothing."""
    p = subprocess.run(["abidiff", "--no-added-syms", str(before), str(after)], capture_output=True,
                       text=True, check=False)
    return p.stdout + p.stderr if p.returncode else ""


def find_changes(folder, cc, base, library):
    """Whether each change of CHANGES is judged as it should be; returns the failures."""
    failures = []
    for i, (name, (old, new, is_allowed)) in enumerate(CHANGES.items()):
        text, n = re.subn(old.replace(" ", r"\s+"), new, base.text, count=1, flags=re.S)
        found = differences(library, Stub(cc, without_growth(text, base)).build(folder, f"change_{i}"))
        if n != 1:
            failures.append(f"{name}: the baseline has no place for it")
        elif bool(found) == is_allowed:
            failures.append(f"{name}: {'refused: ' + found if found else 'not found'}")
    return failures


def constants(base, now):
    return [f"{name} was {value} and is {now.headers.constants.get(name)}"
            for name, value in base.headers.constants.items()
            if not COUNTS.match(name) and now.headers.constants.get(name) != value]


def exported(library):
    made = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True,
                          check=True)
    return {line.split()[-1] for line in made.stdout.splitlines()}


def main():
    library, cc = sys.argv[1:3]
    if not shutil.which("abidiff") or not shutil.which("nm"):
        print("SKIP: no abidiff (Debian: abigail-tools)")
        return 77
    everything = "".join(f"#include <tenon/{name}.h>\n" for name in make_abi.HEADERS)
    with tempfile.TemporaryDirectory(prefix="tenon-abi-") as temp:
        folder = pathlib.Path(temp)
        header = folder / "now.h"
        header.write_text(everything)
        os.environ["CPATH"] = os.pathsep.join(str(ROOT / layer / "include") for layer in make_abi.LAYERS)
        base, now = (Stub(cc, expanded(cc, h)) for h in (HERE / "tenon_1.h", header))
        built = base.build(folder, "base")
        failures = find_changes(folder, cc, base, built)
        found = differences(built, Stub(cc, without_growth(now.text, base)).build(folder, "now"))
        failures += [found] if found else []
        failures += constants(base, now)
        names = exported(library)
        failures += [f"{library} does not export {name} as TENON_1" for name in sorted(base.names)
                     if f"{name}@@TENON_1" not in names]
    for failure in failures:
        print(failure)
    print(f"TENON_1: {len(base.names)} functions, {len(base.headers.structs)} structs, "
          f"{len(base.headers.constants)} constants")
    n_checks = len(base.names) + len(base.headers.constants) + len(CHANGES) + 1
    print(f"{n_checks - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
