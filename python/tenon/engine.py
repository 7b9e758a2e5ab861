# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Engines: many requests at once, for programs with threads and for programs with asyncio."""
from __future__ import annotations

import asyncio
import ctypes
import select
from typing import (TYPE_CHECKING, Any, AsyncIterator, Dict, Iterator, List, NamedTuple, Optional, Sequence,
                    Union)

from . import _abi
from ._library import Error, Object, as_dict, check, default, empty, fill, ids_array, library
from .model import Message, Model, Prompt
from .options import GenerateOptions, generation_config
from .session import Piece, make_piece, session_config

if TYPE_CHECKING:
    from typing_extensions import Unpack

SESSION_OPTIONS = {name for name, _ in _abi.tn_session_config._fields_}


class Event(NamedTuple):
    """What happened to a request in one pass."""

    request: int  # what submit() returned
    piece: Optional[Piece]  # None: the request failed
    error: Optional[Error]

    @property
    def last(self) -> bool:
        """Whether the request has ended."""
        return self.piece is None or self.piece.stop is not None


class Engine(Object):
    """Answers many requests at once, on a thread of the library.

    n_seq: requests that run at a time; n_ctx: tokens of the cache that they share.
    Further options are the fields of tn_session_config (session.h) and tn_engine_config (engine.h).

    submit() and cancel() may come from any thread. Answers are read in one of two ways: events() in one
    thread, or stream() in one event loop of asyncio.
    """

    _destroy = "tn_engine_destroy"

    def __init__(self, model: Model, n_seq: int = 8, n_ctx: int = 0, **options: Any):
        self.model = model
        config = default(_abi.tn_engine_config)
        of_session = {name: options.pop(name) for name in list(options) if name in SESSION_OPTIONS}
        session = session_config(n_seq=n_seq, n_ctx=n_ctx, **of_session)
        fill(config, options)
        config.session = ctypes.pointer(session)
        lib, handle = library(), ctypes.c_void_p()
        check(lib.tn_engine_create(model, ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, model)
        self._queues: Dict[int, asyncio.Queue[Event]] = {}
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        check(lib.tn_engine_start(self))
        self._descriptor = lib.tn_engine_descriptor(self)

    def close(self) -> None:
        """Ends all requests."""
        self._stop_reading()
        super().close()

    def submit(self, prompt: Prompt, priority: int = 0, salt: int = 0,
               **options: Unpack[GenerateOptions]) -> int:
        """Adds a request that continues a text; returns its number."""
        return self._submit(self.model._prompt(prompt), priority, salt, options)

    def submit_chat(self, messages: Union[str, Sequence[Message]], priority: int = 0, salt: int = 0,
                    template: Optional[Dict[str, Any]] = None, **options: Unpack[GenerateOptions]) -> int:
        """Adds a request that answers a conversation; the arguments are those of Session.chat."""
        return self._submit(self.model.chat_tokens(messages, **(template or {})), priority, salt, options)

    def cancel(self, request: int) -> None:
        """Ends a request with the stop "cancelled". One that has ended is ignored."""
        library().tn_engine_cancel(self, request)

    @property
    def pending(self) -> int:
        """Requests whose last event was not read."""
        return library().tn_engine_pending(self)

    @property
    def stats(self) -> Dict[str, Any]:
        """Counts and times, the fields of tn_engine_stats."""
        stats = empty(_abi.tn_engine_stats)
        check(library().tn_engine_stats_get(self, ctypes.byref(stats)))
        return as_dict(stats)

    def events(self) -> Iterator[Event]:
        """The events of all requests as they come, until every request has ended."""
        self._reads_events()
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while True:
            taken = self._take()
            yield from taken
            if not taken:
                if self.pending == 0:
                    return
                poll.poll()

    async def stream(self, prompt: Prompt, **options: Any) -> AsyncIterator[Piece]:
        """The pieces of one request, for asyncio; the arguments are those of submit(). A task that stops
        reading cancels its request."""
        async for piece in self._stream(self.submit, prompt, options):
            yield piece

    async def stream_chat(self, messages: Union[str, Sequence[Message]],
                          **options: Any) -> AsyncIterator[Piece]:
        """The same for a conversation; the arguments are those of submit_chat()."""
        async for piece in self._stream(self.submit_chat, messages, options):
            yield piece

    async def _stream(self, submit: Any, what: Any, options: Any) -> AsyncIterator[Piece]:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            loop.add_reader(self._descriptor, self._read)
        elif self._loop is not loop:
            raise RuntimeError("another event loop reads this engine")
        request = submit(what, **options)  # events are read by this loop, so none of it is missed
        queue = self._queues[request] = asyncio.Queue()
        event = None
        try:
            while event is None or not event.last:
                event = await queue.get()
                if event.error:
                    raise event.error
                if event.piece is not None:
                    yield event.piece
        finally:
            del self._queues[request]
            if not self.closed and (event is None or not event.last):
                self.cancel(request)
            if not self._queues:
                self._stop_reading()

    def _read(self) -> None:
        """Called by the event loop when there are events."""
        try:
            for event in self._take():
                if event.request in self._queues:
                    self._queues[event.request].put_nowait(event)
        except Error as error:  # of a pass: of all requests
            for request, queue in self._queues.items():
                queue.put_nowait(Event(request, None, error))

    def _stop_reading(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._descriptor)
        self._loop = None

    def _reads_events(self) -> None:
        if self._queues:
            raise RuntimeError("stream() reads this engine")

    def _submit(self, ids: List[int], priority: int, salt: int, options: Any) -> int:
        config, generation = default(_abi.tn_request_config), generation_config(options)
        tokens = ids_array(ids)
        fill(config, {"tokens": ctypes.cast(tokens, ctypes.POINTER(ctypes.c_int32)), "n_tokens": len(ids),
                      "priority": priority, "salt": salt, "generation": ctypes.pointer(generation)})
        request = ctypes.c_uint64()
        check(library().tn_engine_submit(self, ctypes.byref(config), ctypes.byref(request)))
        return request.value

    def _take(self) -> List[Event]:
        """The events of one pass."""
        events = ctypes.POINTER(ctypes.POINTER(_abi.tn_engine_event))()
        n = ctypes.c_int32()
        check(library().tn_engine_take(self, ctypes.byref(events), ctypes.byref(n)))
        found = []
        for i in range(n.value):
            event = events[i].contents
            if event.status == _abi.TN_OK:
                found.append(Event(event.id, make_piece(event.piece.contents), None))
            else:
                message = (event.message or b"").decode("utf-8", "replace")
                found.append(Event(event.id, None, Error(event.status, message)))
        return found
