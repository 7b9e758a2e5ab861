# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Every source starts with the two-line licence header, below a #! or shellcheck line if it has one, and has
no marker of an unresolved merge."""
import sys

from sources import Report, read, root, sources

OWNER = "SPDX-FileCopyrightText: 2026 The tenon authors"
LICENCE = "SPDX-License-Identifier: Apache-2.0"


def main():
    top, report = root(), Report()
    for path in sources(top, (".c", ".h", ".cu", ".cuh", ".comp", ".glsl", ".py", ".sh")) + [".ci/run"]:
        lines = read(top, path).split("\n")
        if lines[0].startswith(("#!", "# shellcheck")):
            lines = lines[1:]
        mark = "#" if path.endswith((".py", ".sh", "run")) else "//"
        report.ok(path, lines[:2] == [f"{mark} {OWNER}", f"{mark} {LICENCE}"],
                  "the two SPDX lines are missing")
        marked = [i + 1 for i, line in enumerate(lines) if line.startswith(("<" * 7 + " ", ">" * 7 + " "))]
        report.ok(path, not marked, f"markers of a merge in lines {marked}")
    return report.done()


sys.exit(main())
