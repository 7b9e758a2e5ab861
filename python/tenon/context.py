# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Contexts: devices, threads and limits of memory."""
from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, List, Optional

from . import _abi
from ._library import Object, as_dict, check, default, empty, fill, library


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


class Context(Object):
    """What all other objects belong to. A program needs one of its own only to choose devices, threads or
    limits; models and graphs make one otherwise.

    backend: "cpu", "cuda", "vulkan": no other is opened; None: all.
    n_threads: of the processor; 0: one for each core.
    memory_limit: bytes that the library may allocate; 0: no limit.
    log(level, text), event(code, text): called on the thread that calls the library.
    Further options are the fields of tn_context_config.
    """

    _destroy = "tn_context_destroy"

    def __init__(self, backend: Optional[str] = None, n_threads: int = 0, memory_limit: int = 0,
                 log: Optional[Callable[[int, str], None]] = None,
                 event: Optional[Callable[[int, str], None]] = None, **options: Any):
        config = default(_abi.tn_context_config)
        fill(config, {**options, "n_threads": n_threads, "memory_limit": memory_limit})
        if backend is not None:
            config.backend = backend.encode()
        if log:
            config.log = _abi.tn_log_fn(lambda _, level, text: log(level, decoded(text)))
        if event:
            config.event = _abi.tn_event_fn(lambda _, code, text: event(code, decoded(text)))
        self._callbacks = (config.log, config.event)  # the library calls them as long as it has the context
        handle = ctypes.c_void_p()
        check(library().tn_context_create(ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, None)

    @property
    def devices(self) -> List[Dict[str, Any]]:
        """The devices that were found: name, description, backend, memory_total, memory_free."""
        lib, found = library(), []
        for i in range(lib.tn_context_n_devices(self)):
            info = empty(_abi.tn_device_info)
            check(lib.tn_device_info_get(lib.tn_context_device_get(self, i), ctypes.byref(info)))
            found.append(as_dict(info))
        return found

    @property
    def memory(self) -> int:
        """Bytes that the library has allocated."""
        return library().tn_context_memory(self)

    @property
    def memory_peak(self) -> int:
        """The most that this ever was."""
        return library().tn_context_memory_peak(self)

    def _device(self, name: Optional[str]) -> Any:
        if name is None:
            return None
        device = library().tn_context_device_by_name(self, name.encode())
        if not device:
            names = ", ".join(d["name"] for d in self.devices)
            raise ValueError(f"there is no device {name!r}; there are {names}")
        return device
