# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel with a library inside is for one kind of machine."""
import pathlib

from setuptools import Distribution, setup
from wheel.bdist_wheel import bdist_wheel

HAS_LIBRARY = any((pathlib.Path(__file__).parent / "tenon").glob("libtenon.so*"))


class Package(Distribution):
    def has_ext_modules(self):
        return HAS_LIBRARY


class Wheel(bdist_wheel):
    """For any Python 3: the library is no extension module."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


setup(distclass=Package, cmdclass={"bdist_wheel": Wheel})
