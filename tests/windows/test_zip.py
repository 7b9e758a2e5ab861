#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The zip file for Windows: what is in it, and programs that are built with what was unpacked. Under wine.

    test_zip.py BUILD
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CC = "x86_64-w64-mingw32-gcc-win32"
ANSWER = "Mia lives in the blue house by the river."
MODEL = str(ROOT / "models/bundled/tenon-tiny.gguf")
EXPECTED = ("LICENSE", "bin/libtenon-0.dll", "bin/tenon.exe", "doc/windows.md", "include/tenon/session.h",
            "lib/cmake/tenon/tenon-config.cmake", "lib/libtenon.dll.a", "lib/pkgconfig/tenon.pc",
            "lib/tenon.lib")
CMAKE = """cmake_minimum_required(VERSION 3.13)
project(embed C)
find_package(tenon REQUIRED)
add_executable(embed embed.c)
target_link_libraries(embed PRIVATE tenon::tenon)
"""


class Checks:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self, name, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        if not good:
            print(f"FAIL {name}: {str(detail)[-800:]}")
        return good


def run(*command, **env):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **env})


def by_pkg_config(checks, tree, folder):
    flags = run("pkg-config", "--cflags", "--libs", "tenon", PKG_CONFIG_LIBDIR=str(tree / "lib/pkgconfig"))
    if not checks.ok("pkg-config", flags.returncode == 0, flags.stderr):
        return
    out = folder / "embed.exe"
    made = run(CC, "-std=c17", "-Wall", "-Wextra", "-Werror", ROOT / "tests/headers/embed.c", "-o", out,
               *flags.stdout.split())
    checks.ok("a program by pkg-config", made.returncode == 0, made.stderr)
    said = run("wine", out, MODEL, "Where does Mia live?", WINEPATH=str(tree / "bin"))
    checks.ok("its answer", said.stdout == ANSWER, said.stdout + said.stderr)


def by_cmake(checks, tree, folder):
    if not shutil.which("cmake"):
        checks.skipped += 1
        print("SKIP: cmake is not installed")
        return
    (folder / "CMakeLists.txt").write_text(CMAKE)
    shutil.copy(ROOT / "tests/headers/embed.c", folder)
    made = run("cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_SYSTEM_NAME=Windows",
               f"-DCMAKE_C_COMPILER={CC}", f"-Dtenon_DIR={tree / 'lib/cmake/tenon'}")
    built = run("cmake", "--build", folder / "build")
    checks.ok("a program by CMake", built.returncode == 0, made.stdout + made.stderr + built.stdout)
    said = run("wine", folder / "build/embed.exe", MODEL, "Where does Mia live?", WINEPATH=str(tree / "bin"))
    checks.ok("its answer", said.stdout == ANSWER, said.stdout + said.stderr)


def main():
    checks = Checks()
    with tempfile.TemporaryDirectory() as temp:
        folder = pathlib.Path(temp)
        out = folder / "tenon.zip"
        made = run(sys.executable, "-B", ROOT / "dist/windows_zip.py", sys.argv[1], out)
        if checks.ok("the zip is made", made.returncode == 0, made.stderr):
            unpacked = folder / "unpacked"
            with zipfile.ZipFile(out) as z:
                z.extractall(unpacked)
            tree = unpacked / "tenon"
            names = {p.relative_to(tree).as_posix() for p in tree.rglob("*") if p.is_file()}
            checks.ok("what is in it", names >= set(EXPECTED), set(EXPECTED) - names)
            others = [n for n in names if not re.match(r"bin/|lib/|include/tenon/|doc/|LICENSE$", n)]
            checks.ok("and nothing else", not others, others)
            alone = folder / "größe ü"
            alone.mkdir()
            shutil.copy(tree / "bin/tenon.exe", alone)
            said = run("wine", alone / "tenon.exe", "run", MODEL, "-st", "-p", "Where does Mia live?",
                       "--temp", "0")
            checks.ok("the program alone in a folder", said.stdout == ANSWER, said.stdout + said.stderr)
            by_pkg_config(checks, tree, folder)
            by_cmake(checks, tree, folder)
    print(f"{checks.passed} passed, {checks.failed} failed, {checks.skipped} skipped")
    return checks.failed > 0


sys.exit(main())
