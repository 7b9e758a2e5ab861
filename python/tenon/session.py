# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions: a model with its cache, and the texts that it generates."""
from __future__ import annotations

import array
import ctypes
import os
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi
from ._library import Object, as_dict, check, default, empty, fill, ids_array, library
from .model import Message, Model, Prompt
from .options import GenerateOptions, generation_config

if TYPE_CHECKING:
    from typing_extensions import Unpack

STOPS = {value: name[len("TN_STOP_"):].lower() for name, value in vars(_abi).items()
         if name.startswith("TN_STOP_")}


class Piece(NamedTuple):
    """What one token added to the text."""

    text: str  # complete characters; "" while a character is not complete
    token: int  # -1: none
    stop: Optional[str]  # of the last piece: "end", "string", "limit", "context", "cancelled", "blocked"
    logprob: float  # natural logarithm of the probability of the token
    logprobs: List[Tuple[int, float]]  # the n_logprobs most probable tokens


def make_piece(piece: Any) -> Piece:
    """A tn_piece, copied."""
    text = ctypes.string_at(piece.text, piece.n_text).decode("utf-8", "replace") if piece.n_text else ""
    best = [(piece.logprobs[i].token, piece.logprobs[i].logprob) for i in range(piece.n_logprobs)]
    stop = STOPS[piece.stop] if piece.stop != _abi.TN_STOP_NONE else None
    return Piece(text, piece.token, stop, piece.logprob, best)


class Generation(Object, Iterator[Piece]):
    """A text that is being generated: an iterator of pieces. Session.generate and Session.chat make it."""

    _destroy = "tn_generation_destroy"

    def __init__(self, session: Session, options: Any):
        self.tokens: List[int] = []  # of the text so far
        self.text = ""  # so far
        self.stop: Optional[str] = None  # why it ended
        config = generation_config(options)
        handle = ctypes.c_void_p()
        check(library().tn_generation_create(session, ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, session)

    def __next__(self) -> Piece:
        if self.stop is not None or self.closed:
            raise StopIteration
        out = empty(_abi.tn_piece)
        check(library().tn_generation_step(self, ctypes.byref(out)))
        piece = make_piece(out)
        self.text += piece.text
        self.stop = piece.stop
        if piece.token >= 0:
            self.tokens.append(piece.token)
        return piece

    def read(self) -> str:
        """Generates to the end and returns the whole text."""
        for _ in self:
            pass
        return self.text

    @property
    def stats(self) -> Dict[str, Any]:
        """Counts and times, the fields of tn_generation_stats."""
        stats = empty(_abi.tn_generation_stats)
        check(library().tn_generation_stats_get(self, ctypes.byref(stats)))
        return as_dict(stats)


class Session(Object):
    """A model with its cache. One thread at a time uses it; only stop() may come from any thread.

    n_ctx: tokens that the cache holds; 0: as trained, at most 4096.
    cache_type_k, cache_type_v: "f16", "f32", "bf16", "q8_0", "q4_0".
    Further options are the fields of tn_session_config (session.h): n_batch, n_seq, fusion, precision.
    """

    _destroy = "tn_session_destroy"

    def __init__(self, model: Model, n_ctx: int = 0, cache_type_k: str = "f16", cache_type_v: str = "f16",
                 **options: Any):
        self.model = model
        config = session_config(n_ctx=n_ctx, cache_type_k=cache_type_k, cache_type_v=cache_type_v, **options)
        handle = ctypes.c_void_p()
        check(library().tn_session_create(model, ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, model)
        self._generation: Optional[weakref.ref[Generation]] = None

    def close(self) -> None:
        self._end_generation()
        super().close()

    @property
    def n_ctx(self) -> int:
        """Tokens that the cache holds."""
        return library().tn_session_n_ctx(self)

    def tokens(self, seq: int = 0) -> List[int]:
        """The tokens in the cache."""
        lib = library()
        n = lib.tn_session_length(self, seq)
        out = (ctypes.c_int32 * n)()
        return out[:lib.tn_session_tokens(self, seq, 0, out, n)]

    def generate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Generation:
        """Continues a text. What the cache already holds of the prompt is not evaluated again. The prompt is
        evaluated now, each token with its piece. A generation of this session that still runs ends."""
        return self._start(self.model._prompt(prompt), options)

    def chat(self, messages: Union[str, Sequence[Message]], template: Optional[Dict[str, Any]] = None,
             **options: Unpack[GenerateOptions]) -> Generation:
        """Answers a question, or the last turn of a conversation [{"role": "user", "content": ...}, ...].
        template: options of Model.chat_tokens, such as tools."""
        return self._start(self.model.chat_tokens(messages, **(template or {})), options)

    def stop(self) -> None:
        """Ends the running generation, which then has stop "cancelled"; an evaluation raises Error with
        TN_ERR_CANCELLED. From any thread."""
        library().tn_session_cancel(self, 1)

    def logits(self, tokens: Sequence[int], seq: int = 0) -> "array.array[float]":
        """Appends tokens to a sequence and returns the logits behind the last of them."""
        lib = library()
        check(lib.tn_session_feed(self, seq, ids_array(tokens), len(tokens)))
        row = lib.tn_session_logits(self, 0)
        return array.array("f", row[:lib.tn_session_width(self)])

    def truncate(self, n: int = 0, seq: int = 0) -> None:
        """Cuts a sequence to n tokens."""
        check(library().tn_session_truncate(self, seq, n))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the cache to a file, complete or not at all."""
        check(library().tn_session_save(self, os.fsencode(path)))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Replaces the cache by one that save() has written."""
        check(library().tn_session_load(self, os.fsencode(path)))

    def _end_generation(self) -> None:
        generation = self._generation() if self._generation else None
        if generation is not None:
            generation.close()
        self._generation = None

    def _start(self, ids: List[int], options: Any) -> Generation:
        self._end_generation()
        lib = library()
        lib.tn_session_cancel(self, 0)
        generation = Generation(self, options)
        check(lib.tn_generation_start(generation, ids_array(ids), len(ids)))
        self._generation = weakref.ref(generation)
        return generation


class Chat:
    """A conversation that remembers its turns.

    session: a Session of its own; system: what the model is told first.
    """

    def __init__(self, session: Session, system: Optional[str] = None):
        self.session = session
        self.messages: List[Dict[str, Any]] = []
        if system is not None:
            self.messages.append({"role": "system", "content": system})

    def send(self, text: str, **options: Unpack[GenerateOptions]) -> Iterator[Piece]:
        """The pieces of the answer. An answer that is not read to its end is kept as far as it was read."""
        turn = {"role": "user", "content": text}
        generation = self.session.chat([*self.messages, turn], **options)
        self.messages.append(turn)
        try:
            yield from generation
        finally:
            generation.close()
            self.messages.append({"role": "assistant", "content": generation.text})


def session_config(**options: Any) -> Any:
    """A tn_session_config of these options."""
    config = default(_abi.tn_session_config)
    for name in ("cache_type_k", "cache_type_v", "precision"):
        if isinstance(options.get(name), str):
            table = "tn_precision_by_name" if name == "precision" else "tn_dtype_by_name"
            value = getattr(library(), table)(options[name].encode())
            if value < 0:
                raise ValueError(f"{name}: there is no {options[name]!r}")
            options[name] = value
    fill(config, options)
    return config
