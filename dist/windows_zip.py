#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""One zip file with tenon for Windows: program, DLL, import libraries, headers, pkg-config and CMake files.

    windows_zip.py BUILD OUT.zip     BUILD: a build folder for Windows, which is complete (dist/windows.sh)

The same files give the same bytes: entries are sorted and have the date of the format's beginning.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "LICENSE", "docs/windows.md", "docs/cli.md")
TOOL = "x86_64-w64-mingw32-"
# In the installed tree, and what it holds in the zip; other installed files (manual pages, completions of
# shells, the static library) are of no use there.
WANTED = re.compile(r"bin/tenon\.exe|bin/libtenon-\d+\.dll|lib/libtenon\.dll\.a|lib/pkgconfig/.*|"
                    r"lib/cmake/.*|include/tenon/.*")


def install(build, folder):
    """The installed tree, wherever the prefix of the build folder puts it."""
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder],
                   check=True, stdout=subprocess.DEVNULL)
    options = json.loads(subprocess.run(["meson", "introspect", build, "--buildoptions"], check=True,
                                        capture_output=True, text=True).stdout)
    prefix = next(o["value"] for o in options if o["name"] == "prefix")
    return folder / re.sub(r"^[A-Za-z]:", "", prefix).strip("/\\").replace("\\", "/")


def import_library(tree, dll):
    """tenon.lib, which the linkers of Visual Studio read."""
    table = subprocess.run([TOOL + "objdump", "-p", dll], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"^\s+\[\s*\d+\].*?(tn_\w+)\s*$", table, re.M)
    definition = tree / "tenon.def"
    definition.write_text(f"LIBRARY {dll.name}\nEXPORTS\n" + "".join(f"{n}\n" for n in sorted(set(names))))
    subprocess.run([TOOL + "dlltool", "-m", "i386:x86-64", "-d", definition, "-l", tree / "lib/tenon.lib"],
                   check=True)
    definition.unlink()


def make_relocatable(tree):
    """pkg-config finds the rest from where its file lies, wherever the zip was unpacked."""
    path = tree / "lib/pkgconfig/tenon.pc"
    text, n = re.subn(r"^prefix=.*$", "prefix=${pcfiledir}/../..", path.read_text(), flags=re.M)
    if n != 1:
        sys.exit(f"{path}: no prefix")
    path.write_text(text)


def main():
    build, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temp:
        tree = install(build, pathlib.Path(temp))
        dll = next((tree / "bin").glob("libtenon-*.dll"))
        subprocess.run([TOOL + "strip", tree / "bin/tenon.exe", dll], check=True)
        files = {p.relative_to(tree).as_posix(): p for p in tree.rglob("*") if p.is_file()}
        files = {name: p for name, p in files.items() if WANTED.fullmatch(name)}
        import_library(tree, dll)
        make_relocatable(tree)
        files["lib/tenon.lib"] = tree / "lib/tenon.lib"
        for name in DOCUMENTS:
            files[name if name == "LICENSE" else "doc/" + os.path.basename(name)] = ROOT / name
        partial = out + ".part"
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
            for name, path in sorted(files.items()):
                entry = zipfile.ZipInfo("tenon/" + name)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o755 if name.startswith("bin/") else 0o644) << 16
                z.writestr(entry, path.read_bytes())
        shutil.move(partial, out)
    print(f"{out}: {len(files)} files, {os.path.getsize(out)} bytes")
    return 0


sys.exit(main())
