#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the list of symbols that the dylib of macOS exports (ld -exported_symbols_list): the functions of
the public headers, with the underscore that C names have in Mach-O. A pattern as in tenon.map would also
name functions that are hidden, about which linkers complain.

    dylib_exports.py OUT HEADER..."""

import re
import sys

FUNCTION = re.compile(r"^TN_API\b[^;{]*?\b(tn_\w+)\(", re.M)


def functions(headers):
    names = set()
    for path in headers:
        with open(path, encoding="utf-8") as f:
            names.update(FUNCTION.findall(f.read()))
    return sorted(names)


def main(out_path, *headers):
    names = functions(headers)
    if not names:
        sys.exit("no functions in these headers")
    with open(out_path, "w", encoding="utf-8") as f:
        f.writelines(f"_{name}\n" for name in names)


if __name__ == "__main__":
    main(*sys.argv[1:])
