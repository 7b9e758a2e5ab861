#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes tenon/_abi.py: constants, structs and functions of the public headers for ctypes.

    make_abi.py [--check] [CC]      --check: fails if the file differs instead

The C compiler expands the headers; what is left is plain enough to be read by patterns. A declaration that
fits none is an error. tests/python/test_abi.py compares sizes and offsets with those of the C compiler.
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
OUT = HERE / "tenon" / "_abi.py"
LAYERS = ("core", "ops", "graph", "models")
HEADERS = ("version", "base", "context", "precision", "ops", "params", "graph", "model", "session", "text",
           "embed", "engine", "tools", "file", "adapter")
SCALARS = {"int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "uint32_t": "c_uint32",
           "uint64_t": "c_uint64", "size_t": "c_size_t", "float": "c_float", "double": "c_double",
           "int": "c_int", "void": "None"}
COLUMNS = 110
HEAD = '''# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The public headers of libtenon for ctypes. Made by python/make_abi.py: do not edit."""
# mypy: ignore-errors
import ctypes
from ctypes import c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict

POINTER = ctypes.POINTER
'''


def expanded(cc):
    """The lines that come from the public headers, after the preprocessor."""
    text = "".join(f"#include <tenon/{name}.h>\n" for name in HEADERS)
    includes = [f"-I{ROOT / layer / 'include'}" for layer in LAYERS]
    made = subprocess.run([cc, "-E", *includes, "-x", "c", "-"], input=text, capture_output=True, text=True,
                          check=True)
    kept, ours = [], False
    for line in made.stdout.split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = "/tenon/" in marker.group(1)
        elif ours:
            kept.append(line)
    return re.sub(r"__attribute__\s*\(\(.*?\)\)(?=\s)", "", "\n".join(kept))


def declarations(text):
    """Top-level declarations, each in one line."""
    depth, start = 0, 0
    for i, c in enumerate(text):
        depth += (c == "{") - (c == "}")
        body = c == "}" and depth == 0 and text[start:i].lstrip().startswith("static inline")
        if depth == 0 and (c == ";" or body):
            yield " ".join(text[start:i + (not body and c == "}")].split())
            start = i + 1


class Headers:
    """What was declared, in order."""

    def __init__(self):
        self.constants, self.aliases, self.structs, self.functions, self.callbacks = {}, {}, {}, {}, {}
        self.opaque, self.order = set(), []

    def type_of(self, text, counted=False):
        """The ctypes expression of a C type; `counted`: of text whose length is given beside it."""
        words = [w for w in text.replace("*", " * ").split() if w not in ("const", "struct")]
        name, stars = words[0], words.count("*")
        if name in self.callbacks:
            return name
        if name == "char" and stars == 1:
            return "c_char_p" if "const" in text and not counted else "c_void_p"
        if stars == 0:
            return self.aliases.get(name) or SCALARS.get(name) or name
        inner = name if name in self.structs else SCALARS.get(self.aliases.get(name, name))
        inner = inner or self.aliases.get(name)
        if name == "char":
            return "POINTER(c_char_p)" if "const" in text else "POINTER(c_void_p)"
        if name == "void" or name in self.opaque:
            return "c_void_p" if stars == 1 else "POINTER(c_void_p)"
        for _ in range(stars):
            inner = f"POINTER({inner})"
        return inner

    def function_type(self, result, arguments):
        plain = re.sub(r"\w+ \(\*\w+\)\([^)]*\)", "void *", arguments)  # callbacks of callbacks
        types = [self.type_of(re.sub(r"(?<=[\s*])\w+$", "", a.strip())) for a in plain.split(",")
                 if a.strip() != "void"]
        return f"ctypes.CFUNCTYPE({', '.join([self.type_of(result), *types])})"

    def add_enum(self, body):
        value = -1
        for item in filter(None, (part.strip() for part in body.split(","))):
            name, _, given = item.partition("=")
            value = eval(given, {}, self.constants) if given else value + 1  # numbers and names from above
            self.constants[name.strip()] = value

    def fields(self, body):
        names = re.findall(r"n_(\w+)(?=\s*[,;])", body)
        for field in filter(None, (part.strip() for part in body.split(";"))):
            call = re.fullmatch(r"(.+?)\(\*(\w+)\)\((.*)\)", field)
            if call:
                yield call.group(2), self.function_type(call.group(1), call.group(3))
                continue
            kind, rest = re.fullmatch(r"((?:const )?(?:struct )?\w+)\s+(.*)", field).groups()
            for one in rest.split(","):
                stars, name, array = re.fullmatch(r"\s*((?:\*|const|\s)*)(\w+)(?:\[(.*)\])?\s*", one).groups()
                ctype = self.type_of(kind + stars, name in names)
                yield name, f"{ctype} * {eval(array, {}, self.constants)}" if array else ctype

    def add(self, text):
        enum = re.fullmatch(r"enum \{(.*)\}", text)
        struct = re.fullmatch(r"typedef struct (\w+) \{(.*)\} (\w+)", text)
        callback = re.fullmatch(r"typedef (.+?)\(\*(\w+)\)\((.*)\)", text)
        opaque = re.fullmatch(r"typedef struct (\w+) (\w+)", text)
        alias = re.fullmatch(r"typedef (\w+) (\w+)", text)
        function = re.fullmatch(r"(.+?)\s?\b(tn_\w+)\((.*)\)", text)
        if text.startswith("static inline") or not text or text.startswith("_Static_assert"):
            return
        if enum:
            self.add_enum(enum.group(1))
        elif struct:
            self.structs[struct.group(3)] = list(self.fields(struct.group(2)))
            self.order.append(struct.group(3))
        elif callback:
            self.callbacks[callback.group(2)] = self.function_type(callback.group(1), callback.group(3))
            self.order.append(callback.group(2))
        elif opaque:
            self.opaque.add(opaque.group(1))
        elif alias:
            self.aliases[alias.group(2)] = SCALARS[alias.group(1)]
        elif function:
            arguments = [a.strip() for a in function.group(3).split(",") if a.strip() != "void"]
            types = [self.type_of(re.sub(r"(?<=[\s*])\w+(?:\[\])?$", "", a)) for a in arguments]
            self.functions[function.group(2)] = (self.type_of(function.group(1)), types)
        else:
            raise SystemExit(f"make_abi.py: cannot read: {text}")


def parts(word):
    """A word that does not fit into a line, cut at blanks."""
    return word.split(" ") if len(word) + 8 > COLUMNS else [word]


def wrapped(words, indent):
    """Lines of at most COLUMNS characters; only the first one of a function is indented less."""
    lines = [" " * indent + words[0]]
    for word in words[1:]:
        if len(lines[-1]) + 1 + len(word) > COLUMNS:
            lines.append(" " * max(indent, 8) + word)
        else:
            lines[-1] += " " + word
    return lines


def written(headers, version):
    lines = [HEAD, f'VERSION = "{version}"', "", "# Constants"]
    lines += [f"{name} = {value}" for name, value in headers.constants.items()]
    for name in headers.order:
        if name in headers.callbacks:
            lines += ["", f"{name}: Any = {headers.callbacks[name]}"]
            continue
        lines += ["", "", f"class {name}(ctypes.Structure):", "    _fields_ = ["]
        words = [f'("{field}", {ctype}),' for field, ctype in headers.structs[name]]
        lines += wrapped([part for word in words for part in parts(word)], 8)
        lines += ["    ]"]
    lines += ["", "", "# Result and arguments of each function.", "FUNCTIONS: Dict[str, Any] = {"]
    for name, (result, types) in headers.functions.items():
        lines += wrapped([f'"{name}":', f"({result},", *f'[{", ".join(types)}]),'.split(" ")], 4)
    return "\n".join(lines + ["}", ""])


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    headers = Headers()
    for text in declarations(expanded(*arguments or ["cc"])):
        headers.add(text)
    version = re.search(r'TENON_VERSION "(.*)"', (ROOT / "core/include/tenon/version.h").read_text()).group(1)
    text = written(headers, version)
    if "--check" not in sys.argv:
        OUT.write_text(text)
    elif OUT.read_text() != text:
        print(f"{OUT} differs from the headers: python3 python/make_abi.py writes it anew")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
