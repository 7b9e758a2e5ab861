#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the whole library with its CPU backend as one source file and one header (README.md).

    amalgamate.py BUILD OUT     BUILD: a build folder of Meson, which knows the sources and their flags

The header holds the public headers. The source file holds the headers of the library once, in the order in
which they need each other, and then each source file. Names that only one source file knows (static
functions, types, constants) occur in several: they get the number of their file there, and macros end with
their file. The compiler's preprocessor finds these names, so those that macros build are among them. Kernels
for processors with more instructions have their own copies of the headers of vectors, between pragmas that
allow these instructions.
"""
import itertools
import json
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYERS = ("core", "ops", "graph", "models")
LIBRARIES = re.compile(r"libtn_(core|ops|graph|models|backends|cpu_\w+)\.a\.p/")
PUBLIC = ("version", "base", "context", "precision", "ops", "params", "graph", "file", "model", "session",
          "text", "embed", "adapter", "engine", "tools")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">].*$')
DIRECTIVE = re.compile(r"^[ \t]*#[ \t]*(\w+)")
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)")
GUARD = re.compile(r"#ifndef (\w+)\n#define \1\n")
WORD = re.compile(r"[A-Za-z_]\w*")
TAG = re.compile(r"\b(?:struct|union|enum) (\w+)\s*{")
PROTOTYPE = re.compile(r"^(?:void|bool|size_t|tn_\w+) \*?(tn_\w+)\([^;{}()]*\);\n", re.M)
SKIPPED = re.compile(r"""//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|""" + WORD.pattern)
POINTER = re.compile(r"[^(=]*\( \* (?:const )?(\w+) (?:\[|\))")  # a declaration of pointers to functions
TOKEN = re.compile(r"""[A-Za-z_]\w*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\.?\d[\w.]*|->|\S""")
HEAD = """// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon {version}: {what}
// Made by dist/amalgamate.py: do not edit.
"""


def sources(build):
    """The source files of the library but for those of devices, with their flags for instruction sets; and
    the compiler."""
    found, compiler = {}, []
    for command in json.loads((build / "compile_commands.json").read_text()):
        if not LIBRARIES.search(command.get("output", "")):
            continue
        path = pathlib.Path(command["file"])
        path = (build / path).resolve() if not path.is_absolute() else path
        name = path.relative_to(ROOT).as_posix()
        # Of aarch64 the one file has portable C (TN_AMALGAMATED).
        if name.startswith(("backends/cuda/", "backends/vulkan/", "backends/cpu/arm/")):
            continue
        flags = [f[2:] for f in shlex.split(command["command"]) if re.fullmatch(r"-m[a-z0-9=-]+", f)]
        found[name] = flags
        words = shlex.split(command["command"])
        compiler = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    if not found:
        sys.exit(f"amalgamate.py: {build}/compile_commands.json has no source of the library")
    return dict(sorted(found.items())), compiler


def resolve(name, includer):
    """The file of the library that an #include means, relative to its root, or None."""
    for folder in ("", *(f"{layer}/include/" for layer in LAYERS)):
        if (ROOT / folder / name).is_file():
            return folder + name
    beside = pathlib.PurePosixPath(includer).parent / name
    return beside.as_posix() if (ROOT / beside).is_file() else None


class Tree:
    """Texts of files, and which of them have a guard against being included twice."""

    def __init__(self):
        self.texts, self.guards = {}, {}

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (ROOT / path).read_text(encoding="utf-8")
            guard = GUARD.search(self.texts[path])
            self.guards[path] = guard and guard.group(1)
        return self.texts[path]

    def guarded(self, path):
        self.text(path)
        return bool(self.guards[path])

    def included(self, path):
        for line in self.text(path).split("\n"):
            match = INCLUDE.match(line)
            if match:
                target = resolve(match.group(2), path)
                if target:
                    yield target

    def reach(self, path, seen):
        """All files that `path` includes, and those they do."""
        for target in self.included(path):
            if target not in seen:
                seen.add(target)
                self.reach(target, seen)
        return seen


def is_kernel(tree, name):
    """Whether a source file is a template over vectors, whose headers differ between levels of processors."""
    return name.startswith("backends/cpu/x86/") or any(i.endswith("_tmpl.h") for i in tree.included(name))


class Writer:
    """Puts files in the place of their #include lines."""

    def __init__(self, tree, shared):
        self.tree, self.shared = tree, shared
        self.done = set()    # shared headers that are written
        self.system = set()  # headers of the system that are always included

    def flatten(self, path, own):
        """The text of a file; shared headers that are not written yet go before, into `own[0]`."""
        out, depth = [], 0
        inner = 1 if self.tree.guarded(path) else 0
        for line in self.tree.text(path).split("\n"):
            word = DIRECTIVE.match(line)
            word = word.group(1) if word else ""
            depth += word in ("if", "ifdef", "ifndef")
            depth -= word == "endif"
            match = INCLUDE.match(line)
            target = resolve(match.group(2), path) if match else None
            if line.startswith(("// SPDX-", "#define _GNU_SOURCE")):
                continue
            if not match:
                out.append(line)
            elif not target:
                if depth > inner or match.group(1) == '"':
                    out.append(line)
                else:
                    self.system.add(match.group(2))
            elif target in self.shared:
                if target not in self.done:
                    self.done.add(target)
                    own.append(self.flatten(target, own))
            else:
                out.append(self.flatten(target, own))
        return "\n".join(out).strip("\n") + "\n"


def own_names(command, name, flags, shared):
    """Names at file scope that a source file has to itself, and those that shared headers have too, after the
    preprocessor."""
    made = subprocess.run([*command, *(f"-m{f}" for f in flags), str(ROOT / name)], capture_output=True,
                          text=True, check=True)
    kept, headers, stack = [], [], []
    for line in made.stdout.split("\n"):
        marker = re.match(r'# \d+ "([^"]*)"(.*)', line)
        if not marker:
            if is_own(stack, shared):
                kept.append(line)
            elif None not in stack:
                headers.append(line)
            continue
        path, flags = marker.group(1), marker.group(2).split()
        if "2" in flags:
            stack.pop()
        elif "1" in flags or not stack:
            inside = path.startswith(f"{ROOT}/")
            stack.append(path[len(str(ROOT)) + 1:] if inside else None)
    of_headers = scope_names("\n".join(headers))
    own, tags = scope_names("\n".join(kept)), set(TAG.findall("\n".join(kept)))
    return own - (tags & of_headers), own & of_headers - tags


def is_own(stack, shared):
    """Whether the line of the preprocessor's present file belongs to the source file alone: tables without a
    guard belong to the file that includes them."""
    return all(path is not None and path not in shared for path in stack)


def scope_names(text):
    """Names of static functions and objects, tags, typedefs and enumerators at file scope."""
    names, declaration, depth = set(), [], 0
    for token in TOKEN.findall(text):
        declaration.append(token)
        if token in "({[":
            depth += 1
        elif token in ")}]":
            depth -= 1
        if depth:
            continue
        if token == ";":
            names |= declared(declaration)
            declaration = []
        elif token == "}" and is_function(declaration):
            names |= declared(declaration)
            declaration = []
    return names


def strip_groups(tokens):
    """The tokens outside of all brackets; a bracket leaves its first token."""
    out, depth = [], 0
    for token in tokens:
        if token in "({[":
            if depth == 0:
                out.append(token)
            depth += 1
        elif token in ")}]":
            depth -= 1
        elif depth == 0:
            out.append(token)
    return out


def without_braces(tokens):
    out, depth = [], 0
    for token in tokens:
        depth -= token == "}"
        if depth == 0 and token != "}":
            out.append(token)
        depth += token == "{"
    return out


def is_function(tokens):
    flat = strip_groups(tokens)
    return "typedef" not in flat and "=" not in flat and "(" in flat and flat[-1] == "{"


def declared(tokens):
    tokens = strip_attributes(tokens)
    flat, names = strip_groups(tokens), set()
    if not flat or flat[0] == "_Static_assert":
        return names
    for i, token in enumerate(tokens[:-1]):
        if token in ("struct", "union", "enum") and WORD.fullmatch(tokens[i + 1]) and i + 2 < len(tokens):
            if tokens[i + 2] == "{":
                names.add(tokens[i + 1])
    names |= enumerators(tokens)
    if flat[0] == "typedef":
        pointer = re.search(r"\( \* (\w+) \)", " ".join(tokens))
        last = [t for t in flat if WORD.fullmatch(t)]
        names.add(pointer.group(1) if pointer and "{" not in flat else last[-1])
    elif "static" in flat:
        pointer = POINTER.match(" ".join(without_braces(tokens)))
        names |= {pointer.group(1)} if pointer else declarators(flat)
    return names


def strip_attributes(tokens):
    out, skip, depth = [], False, 0
    for token in tokens:
        if token == "__attribute__":
            skip, depth = True, 0
            continue
        if skip:
            depth += (token == "(") - (token == ")")
            skip = depth > 0
            continue
        out.append(token)
    return out


def enumerators(tokens):
    names = set()
    for i, token in enumerate(tokens):
        if token != "enum":
            continue
        at = i + 1 + (i + 1 < len(tokens) and tokens[i + 1] != "{")
        if at >= len(tokens) or tokens[at] != "{":
            continue
        depth, begins = 0, True
        for t in tokens[at + 1:]:
            depth += (t in "({[") - (t in ")}]")
            if depth < 0:
                break
            if begins and WORD.fullmatch(t):
                names.add(t)
            begins = t == "," and depth == 0
    return names


def declarators(flat):
    """Names that a declaration without attributes declares."""
    names, part = set(), []
    for token in [*flat, ","]:
        if token not in (",", ";"):
            part.append(token)
            continue
        head = []
        for t in part:
            if t in ("=", "(", "["):
                break
            head.append(t)
        words = [t for t in head if WORD.fullmatch(t)]
        if words:
            names.add(words[-1])
        part = []
    return names


def rename(text, names, number):
    """Gives names the number of their file, but for members that are reached by . or -> ."""
    def one(match):
        word = match.group(0)
        if word not in names:
            return word
        before = text[:match.start()].rstrip()
        return word if before.endswith(("->", ".")) and not before.endswith("...") else f"{word}_file{number}"
    return SKIPPED.sub(lambda m: one(m) if WORD.fullmatch(m.group(0)) else m.group(0), text)


def main():
    build, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    tree = Tree()
    files, compiler = sources(build)
    shared = set()
    for name in files:
        if not is_kernel(tree, name):
            tree.reach(name, shared)
    shared = {path for path in shared if tree.guarded(path)}
    public_roots = [f"{layer}/include/tenon/{n}.h" for n in PUBLIC for layer in LAYERS
                    if (ROOT / f"{layer}/include/tenon/{n}.h").is_file()]
    writer = Writer(tree, shared | set(public_roots))
    header = []
    for path in public_roots:
        if path not in writer.done:
            writer.done.add(path)
            header.append(writer.flatten(path, header))
    public_system, writer.system = writer.system, set()

    includes_of = [f"-I{ROOT}", *(f"-I{ROOT / layer / 'include'}" for layer in LAYERS)]
    command = [*compiler, "-std=c17", "-E", *includes_of,
               "-D_GNU_SOURCE", "-DTENON_BUILDING", "-DTN_AMALGAMATED",
               "-DTN_HAVE_CUDA=0", "-DTN_HAVE_VULKAN=0"]
    own = {name: own_names(command, name, flags, writer.shared) for name, flags in files.items()}
    often = {}
    for names, _ in own.values():
        for name in names:
            often[name] = often.get(name, 0) + 1

    parts, bodies = [], []
    for number, (name, flags) in enumerate(files.items()):
        body = writer.flatten(name, parts)
        bodies.append((number, name, flags, body))
    words = set(WORD.findall("\n".join(header + parts)))
    text = []
    for number, name, flags, body in bodies:
        clash = {n for n in own[name][0] if often[n] > 1} | own[name][1]
        text.append(section(number, name, flags, body, clash, words))

    out.mkdir(parents=True, exist_ok=True)
    version = re.search(r'TENON_VERSION "(.*)"', tree.text("core/include/tenon/version.h")).group(1)
    (out / "tenon.h").write_text(
        HEAD.format(version=version, what="the public headers.") + "#ifndef TENON_AMALGAMATION_H\n"
        "#define TENON_AMALGAMATION_H\n\n" + includes(public_system) + "\n".join(header) + "\n#endif\n",
        encoding="utf-8")
    (out / "tenon.c").write_text(
        HEAD.format(version=version, what="the library with its CPU backend.") + START +
        includes(writer.system - {"immintrin.h"}) +
        "#if defined(__x86_64__)\n#include <immintrin.h>\n#endif\n" +
        "\n".join([*parts, *text]), encoding="utf-8")


START = """// gcc -std=c17 -O3 -c tenon.c; programs link it with -lm -pthread.
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function" // of headers
#endif
#define _GNU_SOURCE
#define TENON_BUILDING
#define TN_AMALGAMATED
#define TN_HAVE_CUDA 0
#define TN_HAVE_VULKAN 0
#include "tenon.h"

"""


def includes(names):
    return "".join(f"#include <{name}>\n" for name in sorted(names)) + "\n"


def section(number, name, flags, body, clash, words):
    """A source file with its own names and macros."""
    macros = sorted({m.group(1) for m in map(DEFINE.match, body.split("\n")) if m})
    by_macro = {n for n in clash if n not in words}
    body = rename(body, clash - by_macro, number)
    if flags:
        body = without_idle_prototypes(body)
    lines = [f"// --- {name}"]
    if flags:
        lines.append("#if defined(__x86_64__)")
        lines += target(flags)
    lines += [f"#define {n} {n}_file{number}" for n in sorted(by_macro)]
    lines.append(body)
    lines += [f"#undef {n}" for n in sorted(by_macro | set(macros))]
    if flags:
        lines += ["#if defined(__clang__)", "#pragma clang attribute pop", "#else", "#pragma GCC pop_options",
                  "#endif", "#endif"]
    return "\n".join(lines) + "\n"


def without_idle_prototypes(body):
    """Without the declarations of functions that the file neither has nor calls. Its headers are shared with
    files of other instruction sets, and to clang the same function under another target is a second one."""
    count = {}
    for word in WORD.findall(body):
        count[word] = count.get(word, 0) + 1
    return PROTOTYPE.sub(lambda m: "" if count[m.group(1)] == 1 else m.group(0), body)


def target(flags):
    sets = ",".join(f for f in flags if not f.startswith("prefer"))
    return ["#if defined(__clang__)",
            f'#pragma clang attribute push(__attribute__((target("{sets}"))), apply_to = function)',
            "#else", "#pragma GCC push_options", f'#pragma GCC target("{",".join(flags)}")', "#endif"]


if __name__ == "__main__":
    main()
