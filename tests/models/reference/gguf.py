# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""GGUF version 3 with F32 tensors: as much as the reference and its generated models need."""
import array
import struct
import sys
import zlib

U32, I32, F32, BOOL, STRING, ARRAY, ALIGNMENT = 4, 5, 6, 7, 8, 9, 32
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", U32: "I", I32: "i", F32: "f", BOOL: "?", 10: "Q", 11: "q", 12: "d"}


class File:
    """keys: name -> value. tensors: name -> (dims, values), the first dimension is the contiguous one.

    packed: name -> (type, bytes) of tensors that are written in another type than F32; their values are in
    tensors too.
    """

    def __init__(self, keys, tensors):
        self.keys, self.tensors = keys, tensors
        self.arch = keys["general.architecture"]
        self.split, self.packed = {}, {}

    def key(self, name, default=None):
        return self.keys.get(f"{self.arch}.{name}", default)

    def has(self, name):
        return name in self.tensors

    def vector(self, name):
        """All values, or None."""
        return self.tensors[name][1] if name in self.tensors else None

    def rows(self, name):
        """Rows of the first dimension, of all matrices one after the other."""
        if name not in self.split:
            (n, *_), values = self.tensors[name]
            self.split[name] = [values[i:i + n] for i in range(0, len(values), n)]
        return self.split[name]


def floats(raw):
    values = array.array("f", raw)
    if sys.byteorder != "little":
        values.byteswap()
    return values.tolist()


NVFP4, E2M1 = 40, (0, 0.5, 1, 1.5, 2, 3, 4, 6)


def random_nvfp4(random, n):
    """Bytes of n values, and the values: blocks of 64 with four scales (exponent, mantissa of 3 bits) and
    codes of 4 bits."""
    blob, values = b"", []
    for _ in range(n // 64):
        scales, codes = [random.randrange(40, 64) for _ in range(4)], [random.randrange(16)
                                                                       for _ in range(64)]
        blob += bytes(scales) + bytes(codes[16 * s + r] | codes[16 * s + r + 8] << 4 for s in range(4)
                                      for r in range(8))
        for i, code in enumerate(codes):
            exponent, mantissa = scales[i // 16] >> 3, scales[i // 16] & 7
            values.append((-1 if code & 8 else 1) * E2M1[code & 7] * (1 + mantissa / 8)
                          * 2.0 ** (exponent - 7))
    return blob, values


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    at = 0

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)[0]
        at += struct.calcsize(form)
        return value

    def text():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    def value(kind):
        if kind == STRING:
            return text()
        if kind == ARRAY:
            element, n = take("I"), take("Q")
            return [value(element) for _ in range(n)]
        return take(SCALARS[kind])

    take("I"), take("I")
    n_tensors, n_keys = take("Q"), take("Q")
    keys = {}
    for _ in range(n_keys):
        name = text()
        keys[name] = value(take("I"))
    infos = []
    for _ in range(n_tensors):
        name = text()
        dims = [take("Q") for _ in range(take("I"))]
        infos.append((name, dims, take("I"), take("Q")))
    start = -(-at // ALIGNMENT) * ALIGNMENT
    tensors = {}
    for name, dims, kind, offset in infos:
        n = 1
        for d in dims:
            n *= d
        if kind != 0:
            raise ValueError(f"{path}: {name} is not F32")
        tensors[name] = dims, floats(data[start + offset:start + offset + 4 * n])
    return File(keys, tensors)


def packed_text(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def kind_of(value):
    for python, kind in ((bool, BOOL), (int, U32), (float, F32), (str, STRING), (list, ARRAY)):
        if isinstance(value, python):
            return kind
    raise TypeError(value)


def packed(value):
    """Type and value. Whole numbers in arrays are I32, as converters write them."""
    kind = kind_of(value)
    if kind == STRING:
        return struct.pack("<I", kind) + packed_text(value)
    if kind == ARRAY:
        element = {U32: I32}.get(kind_of(value[0]), kind_of(value[0]))
        return struct.pack("<IIQ", kind, element,
                           len(value)) + struct.pack(f"<{len(value)}{SCALARS[element]}", *value)
    return struct.pack("<I" + SCALARS[kind], kind, value)


def rank(name, dims):
    """Outer dimensions of 1 are dropped by some writers, and kept for what is a vector here by others."""
    while len(dims) > 1 and dims[-1] == 1:
        dims = dims[:-1]
    return [*dims, 1] if len(dims) == 1 and zlib.crc32(name.encode()) % 3 == 0 else dims


def write(path, file):
    out = struct.pack("<4sIQQ", b"GGUF", 3, len(file.tensors), len(file.keys))
    for name, value in file.keys.items():
        out += packed_text(name) + packed(value)
    offset, blobs = 0, []
    for name, (dims, values) in file.tensors.items():
        kind, blob = file.packed.get(name) or (0, struct.pack(f"<{len(values)}f", *values))
        blob += bytes(-len(blob) % ALIGNMENT)
        dims = rank(name, dims)
        out += packed_text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)
        offset += len(blob)
        blobs.append(blob)
    out += bytes(-len(out) % ALIGNMENT)
    with open(path, "wb") as f:
        f.write(out + b"".join(blobs))
