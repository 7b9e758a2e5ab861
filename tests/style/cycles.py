# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""No group of source files of the library in which each needs, directly or through others, each of the
others.

The graph comes from the symbols of the object files: a file needs another one if its object leaves a symbol
undefined that the other one defines. Files in such a cycle can only be understood and tested together. Two
files of one folder may call each other (a parser and its expressions); larger cycles, and cycles between
folders, fail.
    cycles.py ROOT BUILD
"""
import json
import os
import shutil
import subprocess
import sys

from sources import LIBRARY, Report, root

# The list of backends is declared in core and defined by backends/registry.c, so that core can open backends
# without naming one. The symbol stands for a table that the build makes: following it would make one cycle of
# core and all backends.
NOT_FOLLOWED = {"tn_backends", "tn_backends_not_built"}


def objects(top, build):
    """Object file -> source file relative to the root, for what goes into the library."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        commands = json.load(f)
    found = {}
    for command in commands:
        source = os.path.relpath(os.path.join(command["directory"], command["file"]),
                                 top).replace(os.sep, "/")
        if source.split("/")[0] in LIBRARY and source.endswith(".c"):
            found[os.path.join(command["directory"], command["output"])] = source
    return found


def symbols(paths):
    """Path -> (defined, undefined), from one run of nm over all objects."""
    out = subprocess.run(["nm", "-A", "-g", "-P"] + paths, capture_output=True, text=True, check=True).stdout
    found = {path: (set(), set()) for path in paths}
    for line in out.splitlines():
        path, rest = line.split(": ", 1)
        name, kind = rest.split()[:2]
        found[path][kind in "Uwv"].add(name)
    return found


def needs(sources_of):
    """Source -> {needed source: a symbol because of which}."""
    found = symbols(sorted(sources_of))
    home = {name: sources_of[path] for path, (defined, _) in found.items() for name in defined - NOT_FOLLOWED}
    graph = {source: {} for source in sources_of.values()}
    for path, (_, undefined) in found.items():
        source = sources_of[path]
        for name in sorted(undefined):
            if name in home and home[name] != source:
                graph[source].setdefault(home[name], name)
    return graph


def reachable(graph, start):
    seen, todo = set(), [start]
    while todo:
        for node in graph[todo.pop()]:
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen


def cycles(graph):
    """Groups of files that all reach each other; those that are in no cycle are in no group."""
    reach = {node: reachable(graph, node) for node in graph}
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}
    return sorted(groups, key=sorted)


def is_allowed(group):
    return len(group) <= 2 and len({os.path.dirname(path) for path in group}) == 1


def describe(graph, group):
    lines = [f"{len(group)} files in a cycle:"]
    for path in sorted(group):
        needed = sorted((to, name) for to, name in graph[path].items() if to in group)
        lines.append(f"    {path} needs " + ", ".join(f"{to} ({name})" for to, name in needed))
    return "\n".join(lines)


def folder_of(group):
    return os.path.commonpath([os.path.dirname(path) for path in group])


def main():
    top, report = root(), Report()
    if not shutil.which("nm"):
        print("SKIP: nm is not installed")
        return 77
    graph = needs(objects(top, os.path.abspath(sys.argv[2])))
    groups = cycles(graph)
    for group in groups:
        report.ok(folder_of(group) or "library", is_allowed(group), describe(graph, group))
    report.passed += len(graph) - sum(len(group) for group in groups)
    return report.done()


sys.exit(main())
