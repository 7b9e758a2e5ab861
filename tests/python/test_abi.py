# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The definitions of the package are those of the headers, and of the library."""
import ctypes
import shutil
import subprocess
import sys

import pytest
from tenon import GenerateOptions, _abi, _library

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
STRUCTS = {name: kind for name, kind in vars(_abi).items()
           if isinstance(kind, type) and issubclass(kind, ctypes.Structure)}
needs_cc = pytest.mark.skipif(CC is None, reason="no C compiler")


@needs_cc
def test_definitions_are_up_to_date(root):
    r = subprocess.run([sys.executable, "-B", root / "python/make_abi.py", "--check", CC], check=False)
    assert r.returncode == 0, "python3 python/make_abi.py writes python/tenon/_abi.py anew"


@needs_cc
def test_a_new_field_is_found(root, tmp_path):
    """make_abi.py on headers in which a struct has one field more."""
    for layer in ("core", "ops", "graph", "models"):
        shutil.copytree(root / layer / "include", tmp_path / layer / "include")
    shutil.copytree(root / "python", tmp_path / "python")
    header = tmp_path / "models/include/tenon/session.h"
    text = header.read_text()
    assert "} tn_session_config;" in text
    header.write_text(text.replace("} tn_session_config;", "    int32_t extra;\n} tn_session_config;"))
    make = [sys.executable, "-B", tmp_path / "python/make_abi.py"]
    assert subprocess.run([*make, "--check", CC], capture_output=True, check=False).returncode == 1
    subprocess.run([*make, CC], check=True)
    assert '("extra", c_int32)' in (tmp_path / "python/tenon/_abi.py").read_text()


@needs_cc
def test_sizes_and_offsets(root, tmp_path):
    """As the C compiler has them."""
    lines = [f"#include <tenon/{name}.h>" for name in
             ("version", "adapter", "embed", "engine", "file", "graph", "text", "tools")]
    lines += ["#include <stdio.h>", "int main(void) {"]
    wanted = []
    for name, kind in STRUCTS.items():
        lines.append(f'printf("%zu\\n", sizeof({name}));')
        wanted.append((name, ctypes.sizeof(kind)))
        for field, _ in kind._fields_:
            lines.append(f'printf("%zu\\n", offsetof({name}, {field}));')
            wanted.append((f"{name}.{field}", getattr(kind, field).offset))
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    source.write_text("\n".join([*lines, "return 0; }"]))
    includes = [f"-I{root / layer / 'include'}" for layer in ("core", "ops", "graph", "models")]
    subprocess.run([CC, *includes, source, "-o", program], check=True)
    out = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    found = [(name, int(value)) for (name, _), value in zip(wanted, out)]
    assert len(STRUCTS) > 40 and found == wanted


def test_every_function_exists():
    lib = _library.library()
    for name in _abi.FUNCTIONS:
        assert getattr(lib, name)
    with pytest.raises(AttributeError):
        lib.tn_no_such_function


def test_options_are_the_fields():
    """Every field of tn_sampling and tn_generation_config is an option, or made from one."""
    fields = {name for kind in (_abi.tn_sampling, _abi.tn_generation_config) for name, _ in kind._fields_}
    made = {"struct_size", "sampling", "stops", "n_stops", "bans", "n_bans", "bias_tokens",
            "bias_values", "n_bias", "n_dry_breakers", "draft"}
    assert made <= fields
    assert fields - made == set(GenerateOptions.__annotations__) - {"stop", "ban", "logit_bias"}


@needs_cc
def test_another_library_is_refused(tmp_path):
    source, path = tmp_path / "other.c", tmp_path / "libtenon.so.0"
    source.write_text('const char *tn_version(void) { return "7.0.0"; }')
    subprocess.run([CC, "-shared", "-fPIC", source, "-o", path], check=True)
    with pytest.raises(_library.Error, match="version 7.0.0"):
        _library.Library(str(path))
    version = _abi.VERSION
    source.write_text(f'const char *tn_version(void) {{ return "{version}"; }}\n'
                      "void tn_context_config_init(void *c, unsigned long n) { *(unsigned long *)c = n; }")
    path = tmp_path / "libother.so"
    subprocess.run([CC, "-shared", "-fPIC", source, "-o", path], check=True)
    with pytest.raises(_library.Error, match="other structs"):
        _library.Library(str(path))


@needs_cc
def test_an_older_library_says_what_it_lacks(tmp_path):
    source, path = tmp_path / "older.c", tmp_path / "libolder.so"
    source.write_text(f'const char *tn_version(void) {{ return "{_abi.VERSION}"; }}\n'
                      "void tn_context_config_init(char *c, unsigned long n) { *(unsigned long *)c = n;"
                      f" *(int *)(c + {_abi.tn_context_config.log_level.offset}) = {_abi.TN_LOG_WARN}; }}")
    subprocess.run([CC, "-shared", "-fPIC", source, "-o", path], check=True)
    with pytest.raises(_library.Error, match="has no tn_model_open: it is older") as caught:
        _library.Library(str(path)).tn_model_open
    assert caught.value.name == "TN_ERR_UNSUPPORTED"


def test_no_library(monkeypatch):
    monkeypatch.setenv("TENON_LIBRARY", "/nonexistent/libtenon.so")
    monkeypatch.setattr(_library, "_library", None)
    with pytest.raises(ImportError, match="/nonexistent/libtenon.so"):
        _library.library()
