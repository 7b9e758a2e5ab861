#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Packages from a build folder that is complete (dist/packages.sh).

    packages.py debian BUILD OUT_FOLDER     tenon, libtenon0 and libtenon-dev as .deb
    packages.py folder BUILD OUT_FOLDER     tenon-VERSION-SYSTEM.tar.gz with one folder that may lie anywhere

The same files give the same bytes: times are those of SOURCE_DATE_EPOCH, or the beginning of 1980.
"""
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))
# The first pattern that an installed path fits says which package it belongs to.
PARTS = (("tenon", r"usr/bin/.*|usr/share/(man|bash-completion|zsh|fish)/.*"),
         ("libtenon0", r"usr/lib/[^/]*/libtenon\.so\.\d.*"),
         ("libtenon-dev", r"usr/include/.*|usr/lib/[^/]*/(libtenon\.(a|so)|(pkgconfig|cmake)/.*)"))


def output(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def install(build, folder):
    """The installed tree, stripped of what debuggers want; the version."""
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir",
                    folder.resolve()], check=True, stdout=subprocess.DEVNULL)
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            subprocess.run(["strip", "--strip-unneeded", path], check=True)
    return json.loads(output("meson", "introspect", build, "--projectinfo"))["version"]


# --- .deb --------------------------------------------------------------------------------------------------

def dependencies(package, tree, version, temp):
    """What the package needs: libraries of the system by what its files ask for, and the library itself."""
    if package == "libtenon-dev":
        return f"libtenon0 (= {version})"
    (temp / "debian").mkdir(exist_ok=True)
    (temp / "debian/control").write_text("Source: tenon\n\nPackage: tenon\nArchitecture: any\n")
    files = [p.resolve() for p in tree.rglob("*")
             if p.is_file() and not p.is_symlink() and p.read_bytes()[:4] == b"\x7fELF"]
    found = output("dpkg-shlibdeps", "-O", *files, cwd=temp)
    return re.search(r"^shlibs:Depends=(.*)$", found, re.M).group(1)


def control(package, tree, version, temp):
    size = sum(p.lstat().st_size for p in tree.rglob("*") if not p.is_dir()) // 1024 + 1
    return (f"Package: {package}\nSource: tenon\nVersion: {version}\n"
            f"Architecture: {output('dpkg', '--print-architecture')}\n"
            "Maintainer: The tenon authors <maintainers@users.noreply.example>\n"
            f"Installed-Size: {size}\nDepends: {dependencies(package, tree, version, temp)}\n"
            + ("Multi-Arch: same\n" if package == "libtenon0" else "")
            + "Priority: optional\n" + (ROOT / "dist/debian" / package).read_text())


def debian(build, out):
    with tempfile.TemporaryDirectory() as name:
        temp = pathlib.Path(name)
        version = install(build, temp / "all") + "-1"
        trees = {package: temp / package for package, _ in PARTS}
        for path in sorted((temp / "all").rglob("*")):
            if path.is_dir() and not path.is_symlink():
                continue
            relative = path.relative_to(temp / "all").as_posix()
            package = next((p for p, pattern in PARTS if re.fullmatch(pattern, relative)), None)
            if not package:
                sys.exit(f"{relative} belongs to no package")
            to = trees[package] / relative
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, to)
        for package, tree in trees.items():
            if not tree.is_dir():
                sys.exit(f"{package} has no files")
            document = tree / "usr/share/doc" / package / "copyright"
            document.parent.mkdir(parents=True)
            shutil.copy(ROOT / "LICENSE", document)
            text = control(package, tree, version, temp)
            (tree / "DEBIAN").mkdir()
            (tree / "DEBIAN/control").write_text(text)
            if package == "libtenon0":
                (tree / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
                (tree / "DEBIAN/shlibs").write_text("libtenon 0 libtenon0\n")
            for path in [tree, *tree.rglob("*")]:
                if path.is_symlink():
                    continue
                path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
            subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, out], check=True,
                           env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)})


# --- one folder --------------------------------------------------------------------------------------------

def folder(build, out):
    with tempfile.TemporaryDirectory() as temp:
        top = pathlib.Path(temp)
        version = install(build, top)
        tree = top / "usr"
        for path in (tree / "lib/pkgconfig").iterdir():  # finds the rest from where it lies
            text, n = re.subn(r"^prefix=.*$", "prefix=${pcfiledir}/../..", path.read_text(), flags=re.M)
            if n != 1:
                sys.exit(f"{path}: no prefix")
            path.write_text(text)
        (tree / "share/doc").mkdir(parents=True)
        for document in ("README.md", "docs/cli.md"):
            shutil.copy(ROOT / document, tree / "share/doc")
        shutil.copy(ROOT / "LICENSE", tree)
        name = f"tenon-{version}-{os.uname().sysname.lower()}-{os.uname().machine}"

        def plain(entry):
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            entry.mtime = EPOCH
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            return entry

        partial = out / (name + ".tar.gz.part")
        with open(partial, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, EPOCH) as packed, \
                tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path in sorted(tree.rglob("*")):
                tar.add(path, f"{name}/{path.relative_to(tree)}", recursive=False, filter=plain)
        partial.rename(out / (name + ".tar.gz"))
        print(f"{name}.tar.gz: {(out / (name + '.tar.gz')).stat().st_size} bytes")


def main():
    kind, build, out = sys.argv[1:]
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    {"debian": debian, "folder": folder}[kind](build, out)
    return 0


sys.exit(main())
