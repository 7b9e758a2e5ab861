# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Finds libtenon, checks that it fits these structs, and calls it."""
from __future__ import annotations

import ctypes
import ctypes.util
import os
import pathlib
import threading
from typing import Any, Dict, List, Optional, Type, TypeVar

from . import _abi

S = TypeVar("S", bound=ctypes.Structure)
STATUS_NAMES = {value: name for name, value in vars(_abi).items()
                if name.startswith("TN_ERR_") or name == "TN_OK"}


class Error(Exception):
    """A call of the library failed. `status` is its TN_ERR_* number, `name` the name of that."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.name = STATUS_NAMES.get(status, str(status))


def candidates() -> List[str]:
    """Where the library may be: only $TENON_LIBRARY if that is set; else this package, then the system."""
    given = os.environ.get("TENON_LIBRARY")
    if given:
        return [given]
    inside = sorted(pathlib.Path(__file__).parent.glob("libtenon.so*"))
    found = ctypes.util.find_library("tenon")
    return [str(path) for path in inside] + ([found] if found else []) + ["libtenon.so.0"]


class Library:
    """The functions of one libtenon. An attribute is a function with the types of the headers."""

    def __init__(self, path: str):
        self.path = path
        self._dll = ctypes.CDLL(path)
        self._functions: Dict[str, Any] = {}
        self._check()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in _abi.FUNCTIONS:
            raise AttributeError(name)
        if name not in self._functions:
            try:
                function = getattr(self._dll, name)
            except AttributeError:
                raise Error(_abi.TN_ERR_UNSUPPORTED, f"{self.path} has no {name}: it is older than this "
                                                     f"package, which is for {_abi.VERSION}") from None
            function.restype, function.argtypes = _abi.FUNCTIONS[name]
            # Arguments are converted here: what ctypes raises for a closed object is an ArgumentError.
            self._functions[name] = lambda *arguments: function(
                *[getattr(argument, "_as_parameter_", argument) for argument in arguments])
        return self._functions[name]

    def _check(self) -> None:
        """Structs may differ in length between versions (struct_size says how long they are), but not in
        what they begin with: that changes with the first number of the version only."""
        version = self.tn_version().decode()
        if version.split(".")[0] != _abi.VERSION.split(".")[0]:
            raise Error(_abi.TN_ERR_UNSUPPORTED, f"{self.path} is version {version}; this package is for "
                                                 f"{_abi.VERSION}")
        config = _abi.tn_context_config()
        self.tn_context_config_init(ctypes.byref(config), ctypes.sizeof(config))
        if config.struct_size != ctypes.sizeof(config) or config.log_level != _abi.TN_LOG_WARN:
            raise Error(_abi.TN_ERR_UNSUPPORTED, f"{self.path} has other structs than this package")


_lock = threading.Lock()
_library: Optional[Library] = None


def library() -> Library:
    """The library, loaded with the first call."""
    global _library
    with _lock:
        if _library is None:
            problems = []
            for path in candidates():
                try:
                    _library = Library(path)
                    break
                except OSError as error:
                    problems.append(str(error))
            else:
                raise ImportError("libtenon was not found; TENON_LIBRARY may name it: " + "; ".join(problems))
    return _library


def version() -> str:
    """The version of libtenon."""
    return library().tn_version().decode()


def check(status: int) -> None:
    """Raises what the last call on this thread failed at."""
    if status == _abi.TN_OK:
        return
    lib = library()
    size = lib.tn_last_error(None, 0) + 1
    text = ctypes.create_string_buffer(size)
    lib.tn_last_error(text, size)
    raise Error(status, text.value.decode("utf-8", "replace") or lib.tn_status_text(status).decode())


def default(kind: Type[S]) -> S:
    """A struct that the library reads, with its defaults."""
    struct = kind()
    getattr(library(), kind.__name__ + "_init")(ctypes.byref(struct), ctypes.sizeof(struct))
    return struct


def empty(kind: Type[S]) -> S:
    """A struct that the library writes."""
    return kind(ctypes.sizeof(kind))


def fill(struct: ctypes.Structure, options: Dict[str, Any]) -> None:
    """Sets fields by name. Text becomes UTF-8; the struct keeps alive what its fields point at."""
    known = {name for name, _ in getattr(struct, "_fields_")}
    for name, value in options.items():
        if name not in known or name in ("struct_size", "reserved"):
            raise TypeError(f"{type(struct).__name__[3:]} has no option {name!r}")
        if isinstance(value, (str, os.PathLike)):
            value = os.fsencode(value) if isinstance(value, os.PathLike) else value.encode()
        setattr(struct, name, value)


def strings(values: Any) -> Any:
    """An array of C strings."""
    return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def ids_array(ids: Any) -> Any:
    """An array of token ids."""
    return (ctypes.c_int32 * len(ids))(*ids)


def as_dict(struct: ctypes.Structure) -> Dict[str, Any]:
    """The fields of a struct that the library wrote, with text decoded."""
    found: Dict[str, Any] = {}
    for name, _ in getattr(struct, "_fields_"):
        value = getattr(struct, name)
        if name == "struct_size" or name.startswith("reserved"):
            continue
        found[name] = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return found


class Object:
    """Owns one object of the library. It is destroyed by close(), at the end of `with`, or with the last
    reference; objects that need it keep it alive."""

    _destroy = ""

    def __init__(self, handle: Any, parent: Optional[Object]):
        self._handle = handle
        self._parent = parent  # outlives this object
        self._users = 0        # objects that have this one as parent
        self._closed = False
        if parent is not None:
            parent._users += 1

    @property
    def _as_parameter_(self) -> Any:
        if self._closed:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._handle

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Destroys the object; what it was made from stays. An object that others were made from is destroyed
        after the last of them."""
        self._closed = True
        self._release()

    def _release(self) -> None:
        if not self._handle or self._users > 0:
            return
        getattr(library(), self._destroy)(ctypes.byref(self._handle))
        self._handle = None
        parent, self._parent = self._parent, None
        if parent is not None:
            parent._users -= 1
            if parent._closed:
                parent._release()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()
