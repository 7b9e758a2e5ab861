# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The wheel and the source distribution build without a network and work; docs/python.md runs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ANSWER, MODEL

ASK = ("import tenon, sys; m = tenon.Model(sys.argv[1], context=tenon.Context(backend='cpu', n_threads=1));"
       "print(m.session().chat('Where does Mia live?', temperature=0).read())")


@pytest.fixture
def project(root, tmp_path):
    """A copy: building leaves files behind."""
    pytest.importorskip("setuptools")
    pytest.importorskip("wheel")
    return shutil.copytree(root / "python", tmp_path / "project",
                           ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))


def build(project, kind):
    """Without pip and network: what it would call."""
    code = f"import setuptools.build_meta as b; print(b.build_{kind}('dist'))"
    r = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr[-2000:]
    return next((project / "dist").iterdir())


def asked(folder, env):
    """The answer of a process that has only this copy of the package."""
    r = subprocess.run([sys.executable, "-B", "-c", ASK, MODEL], cwd=folder, capture_output=True, text=True,
                       env={**env, "PYTHONPATH": str(folder)}, check=False)
    return r.stdout.strip() or r.stderr


def test_source_distribution_and_wheel(project, tmp_path):
    """The wheel is built from the source distribution, so that lacks nothing."""
    shutil.unpack_archive(build(project, "sdist"), tmp_path / "unpacked")
    folder = next((tmp_path / "unpacked").iterdir())
    wheel = build(folder, "wheel")
    assert re.fullmatch(r"tenon-[\d.]+-py3-none-any\.whl", wheel.name)
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    assert (tmp_path / "site/tenon/py.typed").exists()
    assert asked(tmp_path / "site", os.environ) == ANSWER


def test_wheel_with_the_library(project, tmp_path):
    if not pathlib.Path(os.environ.get("TENON_LIBRARY", "")).is_file():
        pytest.skip("TENON_LIBRARY names no file")
    shutil.copy(os.environ["TENON_LIBRARY"], project / "tenon/libtenon.so")
    wheel = build(project, "wheel")
    assert re.fullmatch(r"tenon-[\d.]+-py3-none-linux_\w+\.whl", wheel.name)
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    env = {name: value for name, value in os.environ.items() if name != "TENON_LIBRARY"}
    assert asked(tmp_path / "site", env) == ANSWER


def examples(root):
    text = (root / "docs/python.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)


def test_documentation(root, tmp_path):
    """Every example, each in a process of its own, in a folder with model.gguf."""
    found = examples(root)
    assert len(found) >= 6
    os.symlink(MODEL, tmp_path / "model.gguf")
    for code in found:
        r = subprocess.run([sys.executable, "-B", "-c", code], cwd=tmp_path, capture_output=True, text=True,
                           env={**os.environ, "PYTHONPATH": str(root / "python")}, timeout=120, check=False)
        assert r.returncode == 0, code + r.stderr
        for line in re.findall(r"^\s*# prints: (.*)$", code, re.M):
            assert line in r.stdout, (code, r.stdout)


def test_types(root):
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed")
    r = subprocess.run(["mypy", "--cache-dir", "/dev/null", "--disallow-untyped-defs",
                        "--python-version", "3.9", "--enable-incomplete-feature=Unpack",
                        root / "python/tenon"], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stdout
