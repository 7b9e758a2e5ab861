#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the cases of tests/abi/nulls.c: each public function with NULL in each place of a pointer.

    nulls.py OUT CC [ARGUMENT...]

The functions come from the public headers, so a new one has its cases at once: with each pointer NULL in
turn while the others are valid, and with all of them NULL. What a case expects follows from the declaration;
the tables below have what does not. A pointer for which there is no valid value is an error here, and so is
a row of a table that no function needs.
"""
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "python"))
import make_abi  # noqa: E402

# Pointers of functions with a status that may be NULL, as their header says. Configurations (`cfg`) of
# functions that create something may always be.
ALLOWED = {
    ("tn_session_best", "logprob"), ("tn_session_predict", "cfg"), ("tn_engine_predict", "cfg"),
    ("tn_model_plan_dump", "cfg"), ("tn_model_host_overhead", "cfg"),
    ("tn_chat_tokenize", "cfg"), ("tn_chat_tokenize_last", "cfg"), ("tn_chat_render", "cfg"),
    ("tn_model_open", "cfg"), ("tn_model_open_source", "cfg"),
    ("tn_chat_tokenize_last", "n_dropped"), ("tn_model_create_random", "cfg"),
}
# Arguments for which a number of the default or of a type would be wrong.
GIVEN = {
    ("tn_runner_write", "input"): '"x"', ("tn_runner_write", "size"): "32",
    ("tn_runner_read", "output"): '"y"', ("tn_runner_read", "size"): "32",
    ("tn_model_shape_get", "name"): '"llama-8b"',
    ("tn_text_free", "text"): "NULL", ("tn_tokens_free", "ids"): "NULL",
    ("tn_tool_parser_feed", "text"): '"x"', ("tn_file_key", "i"): "0",
}
# Parts of messages that name an argument in other words.
SAID = {
    ("tn_model_shape_get", "name"): "no known shape", ("tn_quantize", "cfg"): "type",
    ("tn_quantize", "in"): "two paths", ("tn_quantize", "out"): "two paths",
    ("tn_engine_submit", "cfg"): "prompt", ("tn_tool_grammar", "cfg"): "needs them",
}
NUMBERS = {"n": "1", "size": "8", "n_dims": "1", "n_src": "1", "op": "TN_OP_unary", "i": "0"}
FREED = {"char": "tn_text_free(valid_tn_context, {})", "int32_t": "tn_tokens_free(valid_tn_model, {})"}


class Function:
    def __init__(self, text):
        result, self.name, arguments = re.fullmatch(r"(.+?)\s?\b(tn_\w+)\((.*)\)", text).groups()
        self.result = result.strip()
        self.arguments = []  # type without const, name
        for one in arguments.split(","):
            kind, name = re.fullmatch(r"(.*?)(\w*)(?:\[\])?", one.strip()).groups()
            if one.strip() != "void":
                self.arguments.append((kind.strip(), name))


def functions(cc):
    for text in make_abi.declarations(make_abi.expanded(cc)):
        if not text.startswith(("typedef", "static inline", "_Static_assert", "enum")) and "(" in text:
            yield Function(text)


class Writer:
    """The text of the cases."""

    def __init__(self, headers):
        self.headers, self.lines, self.missing = headers, [], []
        self.cases = 0

    def valid(self, function, kind, name):
        """An expression for a valid value."""
        key = (function.name, name)
        if key in GIVEN:
            return GIVEN[key]
        if "*" not in kind:
            return NUMBERS.get(name, "1" if name.startswith("n_") else "0")
        plain = " ".join(kind.replace("*", " * ").replace("const", " ").split())
        base, stars = plain.split(" ")[0], plain.count("*")
        if base in self.headers.opaque and stars == 1:
            return f"valid_{base}"
        if stars == 1 and base in self.headers.structs:
            return f"&given.{base}"
        if base == "char" and stars == 1:
            return '"x"' if "const" in kind else "given.text"
        if stars == 1 and base in ("int32_t", "int64_t", "size_t", "uint64_t", "float", "double", "void"):
            return f"given.{base}s"
        if stars >= 2:
            return "given.sources" if name == "src" else "(void *)given.pointers"
        self.missing.append(f"{function.name}: no valid value for {kind} {name}")
        return "NULL"

    def call(self, function, nulls):
        values = []
        for i, (kind, name) in enumerate(function.arguments):
            value = "NULL" if i in nulls else self.valid(function, kind, name)
            values.append(value)
        return f"{function.name}({', '.join(values)})"

    def expected(self, function, nulls):
        """Two parts of which the message has one, or none where any end is right but a crash."""
        i = min(nulls)
        name = function.arguments[i][1]
        if function.result != "tn_status" or (function.name, name) in ALLOWED:
            return None
        if name == "cfg" and function.name.endswith("_create"):
            return None
        key = (function.name, name)
        if key in SAID:
            return SAID[key], SAID[key]
        base = function.arguments[i][0].replace("*", " ").replace("const", " ").split()[0]
        if i == 0:
            return " is NULL", " is NULL"  # functions may call their object by a shorter name
        return f"{name} is NULL", f"{base}: " if base in self.headers.structs else " at NULL"

    def freeing(self, function, nulls):
        """What frees the result of a call that may succeed."""
        for i, (kind, name) in enumerate(function.arguments):
            base = kind.split()[0]
            if kind.count("*") == 2 and "const" not in kind and i not in nulls:
                if base in FREED:
                    return FREED[base].format("given.pointers[0]")
                for verb in ("destroy", "unref", "close"):
                    if f"{base}_{verb}" in self.names and not function.name.endswith(verb):
                        return f"{base}_{verb}((void *)given.pointers)"
        return None

    @staticmethod
    def quiet(function, nulls):
        """tn_graph_name gives NULL on: the op that uses the value fails."""
        return function.name == "tn_graph_name" and 1 in nulls and 0 not in nulls

    def add(self, function, nulls):
        names = ", ".join(function.arguments[i][1] for i in sorted(nulls))
        call, want = self.call(function, nulls), self.expected(function, nulls)
        self.cases += 1
        self.lines += [f'    begin("{function.name}", "{names}");']
        if function.result == "tn_status":
            said = f'"{want[0]}", "{want[1]}"' if want else "NULL, NULL"
            self.lines += [f"    ended({call}, {said});"]
        elif function.result == "tn_tensor *" and not self.quiet(function, nulls):
            self.lines += [f"    recorded({call});"]
        else:
            self.lines += [f"    {'' if function.result == 'void' else '(void)'}{call};"]
        freeing = self.freeing(function, nulls)
        self.lines += [f"    {freeing};"] if freeing else []

    def write(self, everything):
        self.names = {f.name for f in everything}
        for function in everything:
            pointers = [i for i, (kind, _) in enumerate(function.arguments) if "*" in kind]
            for nulls in [{i} for i in pointers] + ([set(pointers)] if len(pointers) > 1 else []):
                self.add(function, nulls)
        rows = set(GIVEN) | set(SAID) | ALLOWED
        known = {(f.name, name) for f in everything for _, name in f.arguments}
        self.missing += [f"no function needs the row {row}" for row in sorted(rows - known)]


def main():
    out, cc = sys.argv[1:3]
    headers = make_abi.Headers()
    for text in make_abi.declarations(make_abi.expanded(cc)):
        headers.add(text)
    writer = Writer(headers)
    writer.write(list(functions(cc)))
    if writer.missing:
        sys.exit("nulls.py: " + "\n".join(writer.missing))
    structs = [s for s in headers.order if s in headers.structs]
    sized = [s for s in structs if headers.structs[s][0][0] == "struct_size"]
    lines = ["// Made by tests/abi/nulls.py.", "// clang-format off", "static struct {"]
    lines += [f"    {s} {s};" for s in structs]
    kinds = ("int32_t", "int64_t", "size_t", "uint64_t", "float", "double")
    lines += [f"    {kind} {kind}s[64];" for kind in kinds]
    lines += ["    unsigned char voids[1024];", "    char text[64];", "    void *pointers[4];",
              "    tn_tensor *sources[3];", "} given;", "", "static void set_sizes(void)", "{"]
    lines += [f"    given.{s}.struct_size = sizeof(given.{s});" for s in sized]
    lines += ["}", "", "static void all_cases(void)", "{", *writer.lines, "}",
              f"enum {{ N_CASES = {writer.cases} }};", ""]
    pathlib.Path(out).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
