# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Files over 800 lines and functions over 100 are errors; functions over 60 and over 6 parameters are
listed."""
import ast
import re
import sys

from sources import Report, line_of, read, root, sources, strip_c, strip_directives

FILE_MAX, FUNCTION_MAX, FUNCTION_WISH, PARAMETERS_WISH = 800, 100, 60, 6
TABLE = re.compile(r"(\.def|_tables\.c|/corpus_[a-z_]+\.py|python/tenon/_abi\.py)$")  # data, not code

# "name(parameters) {" at the start of a body.
HEAD = re.compile(r"(\w+)\s*\(([^{};]*)\)\s*$", re.S)


def c_functions(text):
    """(name, first line, lines, parameters) of each function; lines from the opening to the closing brace."""
    text = strip_directives(strip_c(text))
    depth, last, open_at, head = 0, 0, 0, None
    for match in re.finditer(r"[{};]", text):
        mark = match.group(0)
        if mark == "{":
            if depth == 0:
                head, open_at = HEAD.search(text[last:match.start()]), match.start()
            depth += 1
        elif mark == "}":
            depth = max(0, depth - 1)
            if depth == 0 and head:
                first, end = line_of(text, open_at), line_of(text, match.start())
                yield head.group(1), first, end - first + 1, head.group(2).count(",") + 1
                head = None
        if depth == 0:
            last = match.end()


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            a = node.args
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1, len(a.args) + len(a.kwonlyargs)


def main():
    top, report, long, wide = root(), Report(), [], []
    for path in sources(top, (".c", ".h", ".cu", ".cuh", ".comp", ".glsl", ".py", ".sh",
                              ".def")) + [".ci/run"]:
        text = read(top, path)
        n = text.count("\n")
        table = bool(TABLE.search(path))
        report.ok(path, n <= FILE_MAX or table, f"{n} lines; split it, {FILE_MAX} is the limit")
        if table or path.endswith((".sh", ".def", "run")):
            continue
        functions = python_functions if path.endswith(".py") else c_functions
        for name, line, size, parameters in functions(text):
            place = f"{path}:{line}"
            report.ok(place, size <= FUNCTION_MAX, f"{name} has {size} lines; {FUNCTION_MAX} is the limit")
            if FUNCTION_WISH < size <= FUNCTION_MAX:
                long.append((size, place, name))
            if parameters > PARAMETERS_WISH and not name.isupper():
                wide.append((parameters, place, name))
    for size, place, name in sorted(long, reverse=True):
        print(f"note: {place}: {name} has {size} lines, more than a screen of {FUNCTION_WISH}")
    print(f"note: {len(wide)} functions have more than {PARAMETERS_WISH} parameters"
          + "".join(f"\n    {place}: {name} ({n})" for n, place, name in sorted(wide, reverse=True)))
    return report.done()


if __name__ == "__main__":
    sys.exit(main())
