# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the trained weights as a GGUF file (version 3, little endian). Standard library only.

    python3 export_gguf.py --checkpoint CKPT --tokenizer tokenizer.json --out tenon-tiny.gguf

Matrices become Q8_0 (blocks of 32 values: f16 scale, 32 signed bytes), norm vectors stay F32. The
head is tied: there is no output.weight, readers use token_embd.weight.
"""

import argparse
import json
import math
import os
import struct
from array import array

from train_tokenizer import SPECIAL

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9  # value types of the key/value section
TYPE_F32, TYPE_Q8_0 = 0, 8  # tensor types
NORMAL, CONTROL = 1, 3  # token types

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def string(s):
    data = s.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    if kind == STRING:
        return string(value)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<B"}[kind], value)


def record(key, kind, value, element=None):
    out = string(key) + struct.pack("<I", kind)
    if kind == ARRAY:
        return out + struct.pack("<IQ", element, len(value)) + b"".join(scalar(element, v) for v in value)
    return out + scalar(kind, value)


def f32(x):
    """Rounds a double to the nearest float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


def quantize_q8_0(values):
    """values: floats (float32 precision), a multiple of 32.

    Per block: d = amax/127 and id = 1/d in float32, q = x*id rounded half away from zero, d stored as
    f16. A float32 quotient or product is the rounded double one, so doubles plus f32() are exact.
    """
    out = bytearray()
    for i in range(0, len(values), 32):
        block = values[i : i + 32]
        amax = max(max(block), -min(block))
        d = f32(amax / 127.0)
        inverse = f32(1.0 / d) if d else 0.0
        products = struct.unpack("<32f", struct.pack("<32f", *[x * inverse for x in block]))
        out += struct.pack("<e32b", d,
                           *[math.floor(p + 0.5) if p >= 0 else -math.floor(0.5 - p) for p in products])
    return bytes(out)


def metadata(config, tokenizer):
    tokens, merges = tokenizer["tokens"], tokenizer["merges"]
    ids = {t: i for i, t in enumerate(tokens)}
    if len(tokens) != config["vocab"]:
        raise SystemExit("the checkpoint and the tokenizer do not belong together")
    end, turn_end = ids["<|endoftext|>"], ids["<|im_end|>"]
    head = config["width"] // config["heads"]
    return [
        record("general.architecture", STRING, "llama"),
        record("general.type", STRING, "model"),
        record("general.name", STRING, "tenon-tiny"),
        record("general.description", STRING,
               "Small story and question model, trained on generated text about the village of Dovetail"),
        record("general.size_label", STRING, "7M"),
        record("general.license", STRING, "Apache-2.0"),
        record("general.languages", ARRAY, ["en"], STRING),
        record("general.file_type", U32, 7),
        record("general.quantization_version", U32, 2),
        record("llama.context_length", U32, config["context"]),
        record("llama.embedding_length", U32, config["width"]),
        record("llama.block_count", U32, config["layers"]),
        record("llama.feed_forward_length", U32, config["ffn"]),
        record("llama.attention.head_count", U32, config["heads"]),
        record("llama.attention.head_count_kv", U32, config["kv_heads"]),
        record("llama.attention.key_length", U32, head),
        record("llama.attention.value_length", U32, head),
        record("llama.attention.layer_norm_rms_epsilon", F32, config["eps"]),
        record("llama.rope.dimension_count", U32, head),
        record("llama.rope.freq_base", F32, config["rope_base"]),
        record("llama.vocab_size", U32, config["vocab"]),
        record("tokenizer.ggml.model", STRING, "gpt2"),
        record("tokenizer.ggml.pre", STRING, "llama-bpe"),
        record("tokenizer.ggml.tokens", ARRAY, tokens, STRING),
        record("tokenizer.ggml.token_type", ARRAY, [CONTROL if t in SPECIAL else NORMAL for t in tokens],
               I32),
        record("tokenizer.ggml.merges", ARRAY, [f"{a} {b}" for a, b in merges], STRING),
        record("tokenizer.ggml.bos_token_id", U32, end),
        record("tokenizer.ggml.eos_token_id", U32, turn_end),
        record("tokenizer.ggml.eot_token_id", U32, turn_end),
        record("tokenizer.ggml.padding_token_id", U32, end),
        # Training never put a token in front of a text, and llama-bpe would by default.
        record("tokenizer.ggml.add_bos_token", BOOL, 0),
        record("tokenizer.ggml.add_eos_token", BOOL, 0),
        record("tokenizer.chat_template", STRING, CHAT_TEMPLATE),
    ]


def tensor_order(names):
    """Embedding first, then the layers in the order of use, the last norm at the end."""
    inside = [
        "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up",
        "ffn_down",
    ]

    def place(name):
        parts = name.split(".")
        if parts[0] == "blk":
            return (1, int(parts[1]), inside.index(parts[2]))
        return (0, 0, 0) if parts[0] == "token_embd" else (2, 0, 0)
    return sorted(names, key=place)


def align(n):
    return (n + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    with open(os.path.join(args.checkpoint, "weights.json"), encoding="utf-8") as f:
        checkpoint = json.load(f)
    with open(args.tokenizer, encoding="utf-8") as f:
        tokenizer = json.load(f)
    with open(os.path.join(args.checkpoint, "weights.bin"), "rb") as f:
        blob = f.read()

    shapes = {t["name"]: t["shape"] for t in checkpoint["tensors"]}
    offsets = {t["name"]: t["offset"] for t in checkpoint["tensors"]}
    infos, payloads, offset = [], [], 0
    for name in tensor_order(shapes):
        shape = shapes[name]
        values = array("f")
        values.frombytes(blob[offsets[name] : offsets[name] + 4 * math.prod(shape)])
        if len(shape) == 2:
            kind, data = TYPE_Q8_0, quantize_q8_0(values)
        else:
            kind, data = TYPE_F32, values.tobytes()
        # Dimensions are stored innermost first.
        infos.append(
            string(name) + struct.pack("<I", len(shape)) + struct.pack(
                f"<{len(shape)}Q",
                *reversed(shape)
            ) + struct.pack("<IQ", kind, offset)
        )
        payloads.append(data + bytes(align(len(data)) - len(data)))
        offset += len(payloads[-1])

    records = metadata(checkpoint["config"], tokenizer)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(records)) + b"".join(records) + b"".join(infos)
    head += bytes(align(len(head)) - len(head))
    with open(args.out + ".tmp", "wb") as f:
        f.write(head)
        f.writelines(payloads)
    os.replace(args.out + ".tmp", args.out)
    print(f"{args.out}: {os.path.getsize(args.out)} bytes, {len(infos)} tensors")


if __name__ == "__main__":
    main()
