# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of the page as a C source.

    embed.py OUT.c FOLDER      the table page_files of tools/server/page.h, with each file also as gzip

The entity tag is a hash of the bytes that are sent, so it differs between the two encodings and changes
whenever a file does.
"""
import gzip
import hashlib
import os
import sys

# Path at the server, file, type. router.c has the same paths.
FILES = (
    ("/", "index.html", "text/html; charset=utf-8"),
    ("/page.js", "page.js", "text/javascript; charset=utf-8"),
    ("/page.css", "page.css", "text/css; charset=utf-8"),
    ("/page.svg", "page.svg", "image/svg+xml"),
    ("/page-licenses.txt", "page-licenses.txt", "text/plain; charset=utf-8"),
)
COLUMNS = 24


def array(name, data):
    rows = (", ".join(map(str, data[i:i + COLUMNS])) for i in range(0, len(data), COLUMNS))
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(rows) + "};\n"


def variant(name, data):
    return f'{{{name}, {len(data)}, "\\"{hashlib.sha256(data).hexdigest()[:32]}\\""}}'


def main():
    out, folder = sys.argv[1:]
    arrays, rows = [], []
    for i, (path, name, kind) in enumerate(FILES):
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        small = gzip.compress(data, 9, mtime=0)
        arrays.append(array(f"plain_{i}", data))
        row = f'    {{"{path}", "{kind}", {variant(f"plain_{i}", data)}, '
        if len(small) < len(data):
            arrays.append(array(f"gzip_{i}", small))
            rows.append(row + variant(f"gzip_{i}", small) + "},\n")
        else:
            rows.append(row + "{0}},\n")
    with open(out, "w", encoding="ascii") as f:
        f.write("// Written by tools/server/page/embed.py.\n#include \"tools/server/page.h\"\n\n")
        f.write("".join(arrays))
        f.write("const page_file page_files[] = {\n" + "".join(rows) + "};\n")
        f.write(f"const size_t n_page_files = {len(FILES)};\n")


main()
