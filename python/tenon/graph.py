# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs of any network: record ops, compile them once, run them many times."""
from __future__ import annotations

import ctypes
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple

from . import _abi
from ._library import Error, Object, check, default, fill, library
from .context import Context

OPS = {name[len("TN_OP_"):]: value for name, value in vars(_abi).items()
       if name.startswith("TN_OP_") and name != "TN_OP_COUNT"}
FORMATS = {"text": _abi.TN_PLAN_TEXT, "json": _abi.TN_PLAN_JSON, "dot": _abi.TN_PLAN_DOT,
           "svg": _abi.TN_PLAN_SVG}
RESULTS_MAX = 3
Shape = Sequence[int]


class Value:
    """A tensor of a graph. `+` and `*` record ops."""

    def __init__(self, graph: Graph, handle: int):
        self.graph = graph  # which it dies with
        self._handle = handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        self.graph._as_parameter_  # must not be closed
        return ctypes.c_void_p(self._handle)

    @property
    def shape(self) -> Tuple[int, ...]:
        lib = library()
        return tuple(lib.tn_tensor_dim(self, i) for i in range(lib.tn_tensor_n_dims(self)))

    @property
    def dtype(self) -> str:
        lib = library()
        return lib.tn_dtype_name(lib.tn_tensor_dtype(self)).decode()

    def __add__(self, other: Value) -> Value:
        return self.graph.op("binary", self, other, kind=_abi.TN_BINARY_ADD)

    def __mul__(self, other: Value) -> Value:
        return self.graph.op("binary", self, other, kind=_abi.TN_BINARY_MUL)


class Graph(Object):
    """Records ops. Shapes are outermost first; matmul is y[m, n] = x[m, k] w[n, k]^T."""

    _destroy = "tn_graph_destroy"

    def __init__(self, context: Optional[Context] = None):
        self.context = context or Context()
        self._outputs: Dict[str, Tuple[str, Tuple[int, ...]]] = {}
        self._types: Dict[str, str] = {}  # of inputs, weights and states
        handle = ctypes.c_void_p()
        check(library().tn_graph_create(self.context, ctypes.byref(handle)))
        super().__init__(handle, self.context)

    def input(self, name: str, shape: Shape, dtype: str = "F32") -> Value:
        """A tensor that changes with every run."""
        return self._leaf("tn_graph_input", name, shape, dtype)

    def weight(self, name: str, shape: Shape, dtype: str = "F32") -> Value:
        """A constant, bound when a runner is made."""
        return self._leaf("tn_graph_weight", name, shape, dtype)

    def state(self, name: str, shape: Shape, dtype: str = "F32") -> Value:
        """A tensor that ops write and that stays from run to run."""
        return self._leaf("tn_graph_state", name, shape, dtype)

    def output(self, name: str, value: Value) -> None:
        """Makes a value a result. It is F32 or I32, and contiguous."""
        library().tn_graph_output(self, name.encode(), value)
        self._check()
        self._outputs[name] = (value.dtype, value.shape)

    def op(self, name: str, *sources: Optional[Value], **params: Any) -> Any:
        """Records any op by its name (tenon.OPS); None is an optional source that is absent. The parameters
        are the fields of tn_<name>_params in params.h. A value, or a tuple if the op has several results."""
        if name not in OPS:
            raise ValueError(f"there is no op {name!r}")
        kind = getattr(_abi, f"tn_{name}_params", None)
        struct = None
        if kind is not None:
            struct = kind()
            fill_params(struct, params)
        elif params:
            raise TypeError(f"{name} has no parameters")
        handles = (ctypes.c_void_p * max(len(sources), 1))(*[s._handle if s is not None else None
                                                             for s in sources])
        results = (ctypes.c_void_p * RESULTS_MAX)()
        library().tn_graph_op(self, OPS[name], len(sources), handles,
                              ctypes.byref(struct) if struct is not None else None, results)
        self._check()
        values = tuple(Value(self, handle) for handle in results if handle)
        return values[0] if len(values) == 1 else values

    def matmul(self, x: Value, w: Value) -> Value:
        """x[m, k] w[n, k]^T"""
        return self.op("matmul", x, w)

    def unary(self, kind: str, x: Value, a: float = 0, b: float = 0) -> Value:
        """A function of each element: "relu", "silu", "gelu", "tanh", "affine" (a x + b) and others."""
        number = getattr(_abi, "TN_UNARY_" + kind.upper(), None)
        if number is None:
            raise ValueError(f"there is no unary op {kind!r}")
        return self.op("unary", x, kind=number, a=a, b=b)

    def softmax(self, x: Value, mask: Optional[Value] = None, scale: float = 1) -> Value:
        """Along the last dimension."""
        return self.op("softmax", *([x] if mask is None else [x, mask]), scale=scale)

    def rms_norm(self, x: Value, w: Optional[Value] = None, eps: float = 1e-6) -> Value:
        """Along the last dimension, times w."""
        return self.op("rms_norm", *([x] if w is None else [x, w]), eps=eps)

    def reshape(self, x: Value, shape: Shape) -> Value:
        """The same elements; one dimension may be -1."""
        return self.op("reshape", x, n_dims=len(shape), shape=shape)

    def compile(self, device: Optional[str] = None, fusion: bool = True, **options: Any) -> Plan:
        """Makes a plan, on a device (None: the processor) and on the processor for what that cannot do."""
        return Plan(self, device, fusion=fusion, **options)

    def _leaf(self, function: str, name: str, shape: Shape, dtype: str) -> Value:
        lib = library()
        kind = lib.tn_dtype_by_name(dtype.encode())
        if kind < 0:
            raise ValueError(f"there is no type {dtype!r}")
        handle = getattr(lib, function)(self, name.encode(), kind, len(shape),
                                        (ctypes.c_int64 * len(shape))(*shape))
        self._check()
        self._types[name] = dtype.upper()
        return Value(self, handle)

    def _check(self) -> None:
        check(library().tn_graph_status(self))


def fill_params(struct: ctypes.Structure, params: Mapping[str, Any]) -> None:
    """Parameters of an op; sequences go into arrays of the struct."""
    plain = dict(params)
    for name, value in params.items():
        if isinstance(value, (list, tuple)):
            target = getattr(struct, name)
            target[:len(value)] = value
            del plain[name]
    fill(struct, plain)


class Plan(Object):
    """A compiled graph. It may be shared between threads."""

    _destroy = "tn_plan_unref"

    def __init__(self, graph: Graph, device: Optional[str] = None, **options: Any):
        self.context = graph.context
        self.outputs = dict(graph._outputs)  # name: type and shape
        self._types = dict(graph._types)
        config = default(_abi.tn_plan_config)
        if isinstance(options.get("precision"), str):
            options["precision"] = library().tn_precision_by_name(options["precision"].encode())
        fill(config, options)
        if device is not None:
            config.devices = (ctypes.c_void_p * 1)(self.context._device(device))
            config.n_devices = 1
        handle = ctypes.c_void_p()
        check(library().tn_plan_create(graph, ctypes.byref(config), ctypes.byref(handle)))
        super().__init__(handle, self.context)

    def dump(self, form: str = "text") -> str:
        """The plan as "text", "json", "dot" or "svg"."""
        text = ctypes.c_void_p()
        check(library().tn_plan_dump(self, FORMATS[form], ctypes.byref(text)))
        try:
            return ctypes.string_at(text).decode("utf-8", "replace")
        finally:
            library().tn_text_free(self.context._handle, text)

    def runner(self, **weights: Any) -> Runner:
        """Binds weights and states: anything with the buffer interface, such as numpy arrays, or sequences of
        numbers. The runner keeps buffers; those that can only be read are copied."""
        return Runner(self, weights)


class Runner(Object):
    """A plan with its memory. One thread at a time."""

    _destroy = "tn_runner_destroy"

    def __init__(self, plan: Plan, weights: Mapping[str, Any]):
        self.plan = plan
        self._weights = {name: raw_bytes(data, plan._types.get(name)) for name, data in weights.items()}
        bindings = (_abi.tn_binding * max(len(weights), 1))()
        for binding, (name, data) in zip(bindings, self._weights.items()):
            binding.name, binding.data, binding.size = name.encode(), address(data), ctypes.sizeof(data)
        handle = ctypes.c_void_p()
        check(library().tn_runner_create(plan, bindings, len(weights), ctypes.byref(handle)))
        super().__init__(handle, plan)

    def write(self, name: str, data: Any) -> None:
        """Copies an input in: the bytes of anything with the buffer interface, or a sequence of numbers."""
        raw = raw_bytes(data, self.plan._types.get(name))
        check(library().tn_runner_write(self, name.encode(), address(raw), ctypes.sizeof(raw)))

    def read(self, name: str) -> memoryview:
        """Copies a result out: a memoryview with its shape, which numpy.asarray takes as it is."""
        if name not in self.plan.outputs:
            raise Error(_abi.TN_ERR_ARG, f"there is no output {name!r}")
        dtype, shape = self.plan.outputs[name]
        count = 1
        for n in shape:
            count *= n
        kind, form = NUMBERS[dtype]
        out = (kind * count)()
        check(library().tn_runner_read(self, name.encode(), out, ctypes.sizeof(out)))
        return memoryview(out).cast("B").cast(form, shape)

    def run(self, **inputs: Any) -> Dict[str, memoryview]:
        """Writes inputs, runs all steps, and returns all results."""
        for name, data in inputs.items():
            self.write(name, data)
        check(library().tn_runner_run(self))
        return {name: self.read(name) for name in self.plan.outputs}


NUMBERS: Dict[str, Tuple[Any, str]] = {"F32": (ctypes.c_float, "f"), "I32": (ctypes.c_int32, "i")}


def raw_bytes(data: Any, dtype: Optional[str]) -> Any:
    """The memory of a buffer as a ctypes array, without a copy if it can be written. A buffer of numbers must
    have those of the tensor; one of bytes has whatever the type of the tensor is."""
    kind, formats = NUMBERS.get(dtype or "", (None, ""))
    if isinstance(data, (list, tuple)):
        if kind is None:
            raise TypeError(f"a tensor of type {dtype} is given as bytes")
        return (kind * len(data))(*data)
    view = memoryview(data)
    if not view.c_contiguous:
        raise ValueError("the elements of a tensor must be contiguous")
    if kind is not None and view.format.lstrip("@=<") not in ("B", "b", "c", *formats):
        raise TypeError(f"a tensor of type {dtype} is given elements of the format {view.format!r}")
    raw = ctypes.c_char * view.nbytes
    view = view.cast("B") if view.nbytes else view
    return raw.from_buffer_copy(view) if view.readonly else raw.from_buffer(view)


def address(raw: Any) -> ctypes.c_void_p:
    return ctypes.cast(raw, ctypes.c_void_p)


__all__ = ["Graph", "OPS", "Plan", "Runner", "Value"]
