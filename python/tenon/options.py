# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""How text is generated: the options of Session.generate, Session.chat and Engine.submit."""
from __future__ import annotations

import ctypes
import json
import random
from typing import Any, Dict, List, Mapping, Sequence, TypedDict, Union

from . import _abi
from ._library import default, fill, strings


class GenerateOptions(TypedDict, total=False):
    """All are optional. What is not described is a field of tn_sampling or tn_generation_config
    (session.h)."""

    max_tokens: int  # -1: until something else ends the text
    stop: Union[str, Sequence[str]]  # texts that end it; they are not part of it
    ban: Union[str, Sequence[str]]  # texts that never occur
    grammar: str  # GBNF that the text follows
    json_schema: Union[str, Mapping[str, Any]]  # a schema that it follows
    seed: int  # same seed, same text; without it a new one each time
    temperature: float  # 0: always the most probable token
    logit_bias: Mapping[int, float]  # token: what is added to its logit
    ignore_end: bool
    min_tokens: int  # a token that ends the text does not end it before so many
    print_special: bool
    context_full: int  # TN_CONTEXT_* of session.h: what happens when the cache is full
    n_keep: int  # tokens at the beginning that stay then
    spec_ngram: int
    draft_max: int
    draft_min: int
    seq: int
    samplers: str
    top_k: int
    top_p: float
    min_p: float
    typical_p: float
    top_n_sigma: float
    xtc_probability: float
    xtc_threshold: float
    dynatemp_range: float
    dynatemp_exponent: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float
    penalty_last_n: int
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_breakers: Sequence[str]
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    n_logprobs: int


def _texts(value: Union[str, Sequence[str]]) -> List[str]:
    return [value] if isinstance(value, str) else list(value)


def _lists(config: Any, sampling: Any, options: Dict[str, Any]) -> None:
    """The options that are lists in C."""
    if "stop" in options:
        stops = _texts(options.pop("stop"))
        config.stops, config.n_stops = strings(stops), len(stops)
    if "ban" in options:
        bans = _texts(options.pop("ban"))
        config.bans, config.n_bans = strings(bans), len(bans)
    if "dry_breakers" in options:
        breakers = _texts(options.pop("dry_breakers"))
        sampling.dry_breakers, sampling.n_dry_breakers = strings(breakers), len(breakers)
    if "logit_bias" in options:
        bias = options.pop("logit_bias")
        sampling.bias_tokens = (ctypes.c_int32 * len(bias))(*bias.keys())
        sampling.bias_values = (ctypes.c_float * len(bias))(*bias.values())
        sampling.n_bias = len(bias)


def generation_config(options: Mapping[str, Any]) -> Any:
    """A tn_generation_config of these options; it keeps alive what it points at."""
    rest = dict(options)
    config, sampling = default(_abi.tn_generation_config), default(_abi.tn_sampling)
    sampling.seed = rest.pop("seed") if "seed" in rest else random.SystemRandom().getrandbits(63)
    _lists(config, sampling, rest)
    schema = rest.get("json_schema")
    if schema is not None and not isinstance(schema, str):
        rest["json_schema"] = json.dumps(schema)
    unknown = sorted(set(rest) - set(GenerateOptions.__annotations__))
    if unknown:
        raise TypeError(f"unknown option {unknown[0]!r}")
    of_sampling = {name for name, _ in _abi.tn_sampling._fields_}
    fill(sampling, {name: value for name, value in rest.items() if name in of_sampling})
    fill(config, {name: value for name, value in rest.items() if name not in of_sampling})
    config.sampling = ctypes.pointer(sampling)
    return config
