# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Models: files with weights, a tokenizer and a chat template."""
from __future__ import annotations

import array
import ctypes
import json
import os
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from . import _abi
from ._library import Error, Object, as_dict, check, default, empty, fill, ids_array, library
from .context import Context

Message = Mapping[str, Any]
Prompt = Union[str, Sequence[int]]


class Model(Object):
    """A GGUF file. Any thread may use it.

    path: the file; the first one of a split model.
    context: None: one of its own, on all devices.
    device: "cpu", "cuda:0"; None: the first one that computes.
    progress(done, total): called while the model loads; True cancels.
    Further options are the fields of tn_model_config (model.h): device_layers, metadata_only, check_tensors.
    """

    _destroy = "tn_model_unref"

    def __init__(self, path: Union[str, "os.PathLike[str]"], context: Optional[Context] = None,
                 device: Optional[str] = None,
                 progress: Optional[Callable[[int, int], Optional[bool]]] = None, **options: Any):
        self.context = context or Context()
        config = default(_abi.tn_model_config)
        fill(config, options)
        config.device = self.context._device(device)
        if progress:
            config.progress = _abi.tn_progress_fn(lambda _, done, total: bool(progress(done, total)))
        handle = ctypes.c_void_p()
        check(library().tn_model_open(self.context, os.fsencode(path), ctypes.byref(config),
                                      ctypes.byref(handle)))
        super().__init__(handle, self.context)
        self._embedder: Optional[Embedder] = None

    def close(self) -> None:
        if self._embedder:
            self._embedder.close()
        super().close()

    @property
    def info(self) -> Dict[str, Any]:
        """What the file says: arch, name, n_layers, n_ctx_train, n_params and the rest of tn_model_info."""
        info = empty(_abi.tn_model_info)
        check(library().tn_model_info_get(self, ctypes.byref(info)))
        return as_dict(info)

    def tokenize(self, text: str, add_special: bool = True, parse_special: bool = False) -> List[int]:
        """Text to token ids. parse_special: the names of special tokens in the text become their ids."""
        flags = (_abi.TN_TEXT_ADD_SPECIAL * add_special) | (_abi.TN_TEXT_PARSE_SPECIAL * parse_special)
        data = text.encode()
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        check(library().tn_tokenize(self, data, len(data), flags, ctypes.byref(ids), ctypes.byref(n)))
        return self._take_ids(ids, n)

    def detokenize(self, ids: Sequence[int], special: bool = False) -> str:
        """Token ids to text. special: special tokens appear by name."""
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(library().tn_detokenize(self, ids_array(ids), len(ids), _abi.TN_TEXT_PRINT_SPECIAL * special,
                                      ctypes.byref(text), ctypes.byref(n)))
        return self._take_text(text, n)

    def chat_tokens(self, messages: Union[str, Sequence[Message]], **options: Any) -> List[int]:
        """The prompt of a conversation by the chat template, as token ids.

        messages: one question, or turns {"role": ..., "content": ...} with other fields of tn_turn (text.h).
        tools, variables: what JSON has for the template; further options are fields of tn_chat_config.
        """
        turns, config = self._turns(messages), self._chat_config(options)
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        check(library().tn_chat_tokenize(self, turns, len(turns), ctypes.byref(config), ctypes.byref(ids),
                                         ctypes.byref(n)))
        return self._take_ids(ids, n)

    def chat_text(self, messages: Union[str, Sequence[Message]], **options: Any) -> str:
        """The same as text."""
        turns, config = self._turns(messages), self._chat_config(options)
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        check(library().tn_chat_render(self, turns, len(turns), ctypes.byref(config), ctypes.byref(text),
                                       ctypes.byref(n)))
        return self._take_text(text, n)

    def embed(self, texts: Union[Prompt, Sequence[Prompt]]) -> List["array.array[float]"]:
        """Vectors of texts, with the defaults of Embedder."""
        if self._embedder is None:
            self._embedder = Embedder(self)
        return self._embedder.run(texts)

    def session(self, **options: Any) -> Any:
        """A Session of this model, with its options."""
        from .session import Session
        return Session(self, **options)

    def engine(self, **options: Any) -> Any:
        """An Engine of this model, with its options."""
        from .engine import Engine
        return Engine(self, **options)

    def _prompt(self, prompt: Prompt) -> List[int]:
        return self.tokenize(prompt, parse_special=True) if isinstance(prompt, str) else list(prompt)

    def _take_ids(self, ids: Any, n: ctypes.c_size_t) -> List[int]:
        try:
            return ids[:n.value]
        finally:
            library().tn_tokens_free(self, ids)

    def _take_text(self, text: ctypes.c_void_p, n: ctypes.c_size_t) -> str:
        try:
            return ctypes.string_at(text, n.value).decode("utf-8", "replace")
        finally:
            library().tn_text_free(self.context._handle, text)

    @staticmethod
    def _turns(messages: Union[str, Sequence[Message]]) -> Any:
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        turns = (_abi.tn_turn * len(messages))()
        for turn, message in zip(turns, messages):
            turn.struct_size = ctypes.sizeof(_abi.tn_turn)
            fields = dict(message)
            if not isinstance(fields.get("content"), (str, type(None))):
                fields["content_parts"] = fields.pop("content")
            fill(turn, {name: value if isinstance(value, (str, type(None))) else json.dumps(value)
                        for name, value in fields.items()})
        return turns

    @staticmethod
    def _chat_config(options: Mapping[str, Any]) -> Any:
        config = default(_abi.tn_chat_config)
        fill(config, {name: json.dumps(value) if name in ("tools", "variables") and not isinstance(value, str)
                      else value for name, value in options.items()})
        return config


class Embedder(Object):
    """Texts to vectors; of models with a classification head, pooling "rank" gives scores.

    pooling: "default" (as the file says), "none" (one row for each token), "mean", "cls", "last", "rank".
    Further options are the fields of tn_embedder_config (embed.h). One thread at a time.
    """

    _destroy = "tn_embedder_destroy"

    def __init__(self, model: Model, pooling: str = "default", normalize: bool = True, **options: Any):
        self.model = model
        config = default(_abi.tn_embedder_config)
        kind = getattr(_abi, "TN_POOLING_" + pooling.upper(), None)
        if kind is None:
            raise ValueError(f"unknown pooling {pooling!r}")
        fill(config, {**options, "pooling": kind, "normalize": normalize})
        handle = ctypes.c_void_p()
        check(library().tn_embedder_create(model, ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, model)

    @property
    def width(self) -> int:
        """Values of a row."""
        return library().tn_embedder_width(self)

    def run(self, texts: Union[Prompt, Sequence[Prompt]]) -> List["array.array[float]"]:
        """A row of floats for each text; numpy.array(rows) makes a matrix of them. With pooling "none" a text
        has as many rows as tokens, one behind the other. Many texts in one call are faster."""
        single = isinstance(texts, str) or (len(texts) > 0 and isinstance(texts[0], int))
        prompts: Any = [texts] if single else texts
        ids = [ids_array(self.model.tokenize(p) if isinstance(p, str) else p) for p in prompts]
        rows = (_abi.tn_text_ids * len(ids))(*[
            _abi.tn_text_ids(ctypes.cast(one, ctypes.POINTER(ctypes.c_int32)), len(one)) for one in ids])
        each = library().tn_embedder_pooling(self) == _abi.TN_POOLING_NONE
        sizes = [self.width * (len(one) if each else 1) for one in ids]
        out = (ctypes.c_float * sum(sizes))()
        if ids:
            check(library().tn_embedder_run(self, rows, len(ids), out))
        found, start = [], 0
        for size in sizes:
            found.append(array.array("f", out[start:start + size]))
            start += size
        return found


__all__ = ["Embedder", "Error", "Message", "Model", "Prompt"]
