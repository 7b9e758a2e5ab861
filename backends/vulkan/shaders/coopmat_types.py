# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
#
# Completes the types of cooperative matrices in a SPIR-V module, in place. GL_EXT_spirv_intrinsics takes only
# constants as operands of a type, so shaders/coopmat.glsl writes an integer where the component type belongs.
# This script replaces it by the type, and declares that before all that uses it.
#     coopmat_types.py MODULE.spv
import struct
import sys

OP_TYPE_FLOAT, OP_CONSTANT, OP_TYPE_MATRIX, FIRST_TYPE, HEADER = 22, 43, 4456, 19, 5
# Operands of OpTypeFloat for the integers of coopmat.glsl.
TYPES = {0xF16: [16], 0xBF16: [16, 0], 0xF32: [32]}


def instructions(words):
    at = HEADER
    while at < len(words):
        size = words[at] >> 16
        if size == 0 or at + size > len(words):
            sys.exit("coopmat_types.py: no SPIR-V module")
        yield words[at : at + size]
        at += size


def complete(words):
    head, body = list(words[:HEADER]), [list(i) for i in instructions(words)]
    opcode = lambda i: i[0] & 0xFFFF
    constants = {i[2]: i[3] for i in body if opcode(i) == OP_CONSTANT}
    wanted = sorted({constants.get(i[2]) for i in body if opcode(i) == OP_TYPE_MATRIX}, key=str)
    ids, first = {}, []
    for mark in wanted:
        if mark not in TYPES:
            sys.exit(f"coopmat_types.py: component {mark} of a matrix is not known")
        found = [i for i in body if opcode(i) == OP_TYPE_FLOAT and i[2:] == TYPES[mark]]
        if not found:
            found = [[(2 + len(TYPES[mark])) << 16 | OP_TYPE_FLOAT, head[3]] + TYPES[mark]]
            head[3] += 1  # ids are below this bound
        else:
            body.remove(found[0])
        ids[mark] = found[0][1]
        first += found
    if not ids:
        sys.exit("coopmat_types.py: the module has no matrices")
    for i in body:
        if opcode(i) == OP_TYPE_MATRIX:
            i[2] = ids[constants[i[2]]]
    at = next(k for k, i in enumerate(body) if FIRST_TYPE <= opcode(i) <= 39)
    return head + [w for i in body[:at] + first + body[at:] for w in i]


def main():
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    order = "<" if data[:4] == b"\x03\x02\x23\x07" else ">"
    words = list(struct.unpack(f"{order}{len(data) // 4}I", data))
    with open(sys.argv[1], "wb") as f:
        done = complete(words)
        f.write(struct.pack(f"{order}{len(done)}I", *done))


main()
