#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a model file of a known shape with random weights, for measuring what needs a file: the server
and `tenon batch`.

    python3 -B tests/bench/random_model.py llama-8b Q4_K_M OUT.gguf [--layers N] [--vocab N]

The vocabulary is that of a small file (--tokens, the bundled model), filled up with tokens that no text is
made of. Blocks have random bits with scales that keep products near 1, so they cost what real ones cost, and
runs of rows come from random places of a pool of 16 MB, so some rows are equal. It needs Python 3.8 and
nothing else.
"""
import argparse
import os
import random
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
from cli import Gguf  # noqa: E402

# name: layers, width, heads, heads of keys and values, size of a head, feed-forward, vocabulary, context
SHAPES = {"llama-8b": (32, 4096, 32, 8, 128, 14336, 128256, 131072),
          "llama-1b": (16, 2048, 32, 8, 64, 8192, 128256, 131072)}
POOL_BYTES, ALIGNMENT = 16 << 20, 32
F32, Q8_0, Q4_K, Q6_K, BF16 = 0, 8, 12, 14, 30
# type: elements and bytes of a block
BLOCKS = {F32: (1, 4), BF16: (1, 2), Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}
# Of a file type: its number, the common type, the type of output, and that of attn_v and ffn_down in the
# layers that take more bits: the first and last eighth, and every third between.
FILES = {"BF16": (32, BF16, BF16, BF16), "Q8_0": (7, Q8_0, Q8_0, Q8_0), "Q4_K_M": (15, Q4_K, Q6_K, Q6_K)}
# Deviations of a block's values with a scale of 1 and random bits; Q4_K: the minimum has 7.5 times the scale.
DEVIATION = {Q8_0: 74.0, Q4_K: 263.0, Q6_K: 1367.0}


def half(x):
    return struct.pack("<e", x)


def put_scales(pool, kind, scale):
    """Replaces the random 16-bit scales of all blocks."""
    size = BLOCKS[kind][1]
    places = {Q8_0: ((0, 1),), Q4_K: ((0, 1), (2, 7.5)), Q6_K: ((208, 1),)}[kind]
    for at, factor in places:
        for i, byte in enumerate(half(scale * factor)):
            pool[at + i::size] = bytes([byte]) * (len(pool) // size)


def make_pool(rng, kind, n_in):
    """Blocks for rows of n_in elements, of deviation near 1 / sqrt(n_in); n_in 0: weights of norms."""
    if kind == F32:
        return bytearray(struct.pack("<f", 1.0) * (POOL_BYTES // 64))
    size = POOL_BYTES // BLOCKS[kind][1] * BLOCKS[kind][1]
    pool = bytearray(rng.getrandbits(8 * size).to_bytes(size, "little"))
    if kind == BF16:  # sign and exponent: magnitudes from 2^-8 to 2^-5, about 0.015 in the mean
        exponents = bytes((b & 0x80) | (0x3b if b & 0x40 else 0x3c) for b in range(256))
        pool[1::2] = pool[1::2].translate(exponents)
    else:
        put_scales(pool, kind, 1 / DEVIATION[kind] / n_in ** 0.5)
    return pool


def more_bits(layer, n_layers):
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def tensors(shape, file_type):
    """(name, sizes fastest first, type) of all tensors."""
    n_layers, width, heads, kv_heads, head, ffn, vocab, _ = shape
    _, common, output, more = FILES[file_type]
    yield "token_embd.weight", (width, vocab), common
    yield "output_norm.weight", (width,), F32
    yield "output.weight", (width, vocab), output
    for layer in range(n_layers):
        special = more if more_bits(layer, n_layers) else common
        for name, sizes, kind in (("attn_norm", (width,), F32),
                                  ("attn_q", (width, heads * head), common),
                                  ("attn_k", (width, kv_heads * head), common),
                                  ("attn_v", (width, kv_heads * head), special),
                                  ("attn_output", (heads * head, width), common),
                                  ("ffn_norm", (width,), F32),
                                  ("ffn_gate", (width, ffn), common),
                                  ("ffn_up", (width, ffn), common),
                                  ("ffn_down", (ffn, width), special)):
            yield f"blk.{layer}.{name}.weight", sizes, kind


def size_of(sizes, kind):
    elements = 1
    for n in sizes:
        elements *= n
    return elements // BLOCKS[kind][0] * BLOCKS[kind][1]


def set_keys(file, shape, file_type):
    """The keys of the small file become those of the shape; what belongs to its tokens stays."""
    n_layers, width, heads, kv_heads, head, ffn, vocab, context = shape
    file.keys = {name: value for name, value in file.keys.items() if name.startswith("tokenizer.")}
    file.set_text("general.architecture", "llama")
    file.set_text("general.name", "random weights")
    for name, number in (("general.file_type", FILES[file_type][0]), ("general.quantization_version", 2),
                         ("llama.block_count", n_layers), ("llama.embedding_length", width),
                         ("llama.attention.head_count", heads), ("llama.attention.head_count_kv", kv_heads),
                         ("llama.attention.key_length", head), ("llama.attention.value_length", head),
                         ("llama.rope.dimension_count", head), ("llama.feed_forward_length", ffn),
                         ("llama.vocab_size", vocab), ("llama.context_length", context)):
        file.set_u32(name, number)
    file.keys["llama.attention.layer_norm_rms_epsilon"] = struct.pack("<If", 6, 1e-5)
    file.keys["llama.rope.freq_base"] = struct.pack("<If", 6, 500000.0)
    pad_tokens(file, vocab)


def pad_tokens(file, n):
    texts = [t.decode() for t in file.texts("tokenizer.ggml.tokens")]
    missing = n - len(texts)
    if missing < 0:
        raise SystemExit(f"random_model.py: the vocabulary has {len(texts)} tokens already")
    file.set_texts("tokenizer.ggml.tokens", texts + [f"extra{i}" for i in range(missing)])
    for name, form, value in (("tokenizer.ggml.token_type", "i", 1), ("tokenizer.ggml.scores", "f", -1e6)):
        if name in file.keys:
            element = file.keys[name][4:8]
            file.keys[name] = (struct.pack("<I", 9) + element + struct.pack("<Q", n) + file.keys[name][16:]
                               + struct.pack("<" + form, value) * missing)


def write_tensor(out, rng, pool, sizes, kind):
    """Some rows at a time, each run of rows from a random place of the pool."""
    left, block = size_of(sizes, kind), BLOCKS[kind][1]
    view = memoryview(pool)
    while left:
        n = min(left, len(pool) // 4 // block * block)
        start = rng.randrange((len(pool) - n) // block + 1) * block
        out.write(view[start:start + n])
        left -= n


def write(path, tokens, shape, file_type, seed):
    rng, file, pools, infos, at = random.Random(seed), Gguf(tokens), {}, b"", 0
    set_keys(file, shape, file_type)
    listed = list(tensors(shape, file_type))
    for name, sizes, kind in listed:
        infos += struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", len(sizes))
        infos += struct.pack(f"<{len(sizes)}QIQ", *sizes, kind, at)
        at += -(-size_of(sizes, kind) // ALIGNMENT) * ALIGNMENT
    file.infos, file.tensors, file.n_tensors = infos, b"", len(listed)
    file.write(path)
    with open(path, "ab") as out:
        for _, sizes, kind in listed:
            key = kind, sizes[0] if kind != F32 else 0
            if key not in pools:
                pools[key] = make_pool(rng, *key)
            write_tensor(out, rng, pools[key], sizes, kind)
            out.write(bytes(-out.tell() % ALIGNMENT))


def main(argv):
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("shape", choices=SHAPES)
    p.add_argument("type", choices=FILES)
    p.add_argument("out")
    p.add_argument("--tokens", default=os.path.join(ROOT, "models", "bundled", "tenon-tiny.gguf"),
                   help="file whose vocabulary is taken")
    p.add_argument("--layers", type=int, help="in place of the shape's")
    p.add_argument("--vocab", type=int, help="in place of the shape's")
    p.add_argument("--seed", type=int, default=1)
    args = p.parse_args(argv)
    shape = list(SHAPES[args.shape])
    shape[0], shape[6] = args.layers or shape[0], args.vocab or shape[6]
    write(args.out, args.tokens, shape, args.type, args.seed)


if __name__ == "__main__":
    main(sys.argv[1:])
