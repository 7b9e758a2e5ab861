# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. TENON_LIBRARY names the library; the build runs them by
`meson test python`."""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
sys.dont_write_bytecode = True

MODEL = ROOT / "models" / "bundled" / "tenon-tiny.gguf"
ANSWER = "Mia lives in the blue house by the river."


@pytest.fixture(scope="session")
def root():
    return ROOT


@pytest.fixture(scope="session")
def model():
    import tenon
    with tenon.Model(MODEL, context=tenon.Context(backend="cpu", n_threads=1)) as one:
        yield one


@pytest.fixture
def session(model):
    with model.session(n_ctx=256) as one:
        yield one
