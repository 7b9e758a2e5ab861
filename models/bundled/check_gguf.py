# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the written GGUF file back and runs it, independently of the training code.

    python3 check_gguf.py tenon-tiny.gguf --ask "Where does Mia live?"      one answer, plain Python
    python3 check_gguf.py tenon-tiny.gguf --text "Once upon a time"         one continuation
    python3 check_gguf.py tenon-tiny.gguf --expected expected.json --heldout heldout.txt

The last form stores what the C runtime is tested against: prompts, their ids, the greedy
continuation with the distance of the best to the second logit, and the perplexity of the held-out
text. All of it is computed in double precision from the stored Q8_0 weights; the plain-Python and
the PyTorch forward pass are separate code and are compared on the first prompt. The perplexity
needs PyTorch, the rest does not.
"""

import argparse
import hashlib
import json
import math
import operator
import os
import struct

from train_tokenizer import Tokenizer

try:
    import torch
except ImportError:
    torch = None

GREEDY_TOKENS = 32
PROMPTS = [
    "Once upon a time",
    "Once upon a time, there was a little dragon",
    "The sun was shining. Mia went to the market",
    "Q: What does a baker make?\nA:",
    "One, two, three,",
]
CHATS = [
    "Where does Mia live?",
    "What does a baker make?",
    "What colour is the sky?",
    "Tell me a story about a cat and a robot.",
    "Hello!",
    "Who are you?",
    "What is 7 + 5?",
    "What is the opposite of hot?",
    "What day comes after Friday?",
    "Count from 3 to 8.",
    "Anna put the key under the bed. Then Ben put it in the barn. Where is the key now?",
    "What is the capital of France?",
    "Tell me a story about a dog named Zuko.",
]


class Reader:
    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, fmt):
        value = struct.unpack_from("<" + fmt, self.data, self.pos)[0]
        self.pos += struct.calcsize("<" + fmt)
        return value

    def string(self):
        n = self.take("Q")
        self.pos += n
        return self.data[self.pos - n : self.pos].decode("utf-8")

    def value(self, kind):
        if kind == 8:
            return self.string()
        if kind == 9:
            element, count = self.take("I"), self.take("Q")
            return [self.value(element) for _ in range(count)]
        return self.take(
            {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}[kind]
        )


def dequantize(data, kind, rows, width):
    """-> rows lists of `width` floats."""
    if kind == 0:
        flat = struct.unpack(f"<{rows * width}f", data)
        return [list(flat[r * width : (r + 1) * width]) for r in range(rows)]
    out = []
    for r in range(rows):
        row = []
        for b in range(width // 32):
            block = struct.unpack_from("<e32b", data, (r * width // 32 + b) * 34)
            row += [block[0] * q for q in block[1:]]
        out.append(row)
    return out


def read_gguf(path):
    """-> metadata dict, tensors {name: rows of floats (one row for vectors)}"""
    with open(path, "rb") as f:
        data = f.read()
    r = Reader(data)
    if data[:4] != b"GGUF":
        raise SystemExit("not a GGUF file")
    r.pos = 4
    version, n_tensors, n_records = r.take("I"), r.take("Q"), r.take("Q")
    if version != 3:
        raise SystemExit("version is not 3")
    meta = {}
    for _ in range(n_records):
        key = r.string()
        if key in meta:
            raise SystemExit("key twice: " + key)
        meta[key] = r.value(r.take("I"))
    infos = []
    for _ in range(n_tensors):
        name = r.string()
        dims = [r.take("Q") for _ in range(r.take("I"))]
        infos.append((name, dims, r.take("I"), r.take("Q")))
    start, expected, tensors = (r.pos + 31) // 32 * 32, 0, {}
    for name, dims, kind, offset in infos:
        width, rows = dims[0], math.prod(dims[1:])
        size = rows * width * 4 if kind == 0 else rows * width // 32 * 34
        if offset != expected:
            raise SystemExit(f"{name}: offset {offset}, the gap-free layout has {expected}")
        expected = (offset + size + 31) // 32 * 32
        tensors[name] = dequantize(data[start + offset : start + offset + size], kind, rows, width)
    if start + expected != len(data):
        raise SystemExit("the file is longer or shorter than its tensors")
    return meta, tensors


def dot(a, b):
    return sum(map(operator.mul, a, b))


def rms(x, w, eps):
    scale = 1.0 / math.sqrt(dot(x, x) / len(x) + eps)
    return [a * scale * b for a, b in zip(x, w)]


class Plain:
    def __init__(self, meta, tensors):
        self.t = tensors
        self.layers = meta["llama.block_count"]
        self.heads, self.kv_heads = meta["llama.attention.head_count"], meta["llama.attention.head_count_kv"]
        self.head = meta["llama.rope.dimension_count"]
        self.eps, self.base = meta["llama.attention.layer_norm_rms_epsilon"], meta["llama.rope.freq_base"]
        self.cache = [([], []) for _ in range(self.layers)]

    def matmul(self, name, x):
        return [dot(row, x) for row in self.t[name]]

    def rotate(self, x, pos):
        out = []
        for i in range(0, len(x), 2):
            angle = pos * self.base ** (-(i % self.head) / self.head)
            c, s = math.cos(angle), math.sin(angle)
            out += [x[i] * c - x[i + 1] * s, x[i] * s + x[i + 1] * c]
        return out

    def step(self, token):
        x = self.t["token_embd.weight"][token]
        for n in range(self.layers):
            p = f"blk.{n}."
            keys, values = self.cache[n]
            h = rms(x, self.t[p + "attn_norm.weight"][0], self.eps)
            pos = len(keys)
            q = self.rotate(self.matmul(p + "attn_q.weight", h), pos)
            keys.append(self.rotate(self.matmul(p + "attn_k.weight", h), pos))
            values.append(self.matmul(p + "attn_v.weight", h))
            o = []
            for head in range(self.heads):
                a = head * self.head
                b = head // (self.heads // self.kv_heads) * self.head
                score = [dot(q[a : a + self.head], k[b : b + self.head]) / math.sqrt(self.head) for k in keys]
                top = max(score)
                weight = [math.exp(s - top) for s in score]
                total = sum(weight)
                for j in range(b, b + self.head):
                    o.append(sum(w * v[j] for w, v in zip(weight, values)) / total)
            x = list(map(operator.add, x, self.matmul(p + "attn_output.weight", o)))
            h = rms(x, self.t[p + "ffn_norm.weight"][0], self.eps)
            gate, up = self.matmul(p + "ffn_gate.weight", h), self.matmul(p + "ffn_up.weight", h)
            h = [g / (1.0 + math.exp(-g)) * u for g, u in zip(gate, up)]
            x = list(map(operator.add, x, self.matmul(p + "ffn_down.weight", h)))
        h = rms(x, self.t["output_norm.weight"][0], self.eps)
        return self.matmul("token_embd.weight", h)


class Window:
    def __init__(self, meta, tensors):
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self.plain = Plain(meta, {})
        self.t = {name: torch.tensor(rows, dtype=torch.float64, device=device) for name,
                  rows in tensors.items()}

    def norm(self, x, name):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.plain.eps) * self.t[name][0]

    def rotate(self, x):
        pair = torch.arange(0, self.plain.head, 2, dtype=torch.float64, device=x.device)
        angle = torch.arange(
            x.shape[0],
            dtype=torch.float64,
            device=x.device,
        )[:, None] * self.plain.base ** (-pair / self.plain.head)
        z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
        return torch.view_as_real(z * torch.polar(torch.ones_like(angle), angle)[:, None]).flatten(-2)

    def logits(self, ids):
        c, t = self.plain, self.t
        n, group = len(ids), c.heads // c.kv_heads
        x = t["token_embd.weight"][torch.tensor(ids, device=t["token_embd.weight"].device)]
        mask = torch.triu(torch.full((n, n), -math.inf, dtype=torch.float64, device=x.device), 1)
        for layer in range(c.layers):
            p = f"blk.{layer}."
            h = self.norm(x, p + "attn_norm.weight")
            q = self.rotate((h @ t[p + "attn_q.weight"].T).view(n, c.heads, c.head))
            k = self.rotate((h @ t[p + "attn_k.weight"].T).view(n, c.kv_heads, c.head))
            v = (h @ t[p + "attn_v.weight"].T).view(n, c.kv_heads, c.head)
            out = []
            for head in range(c.heads):
                s = q[:, head] @ k[:, head // group].T / math.sqrt(c.head) + mask
                out.append(torch.softmax(s, -1) @ v[:, head // group])
            x = x + torch.cat(out, -1) @ t[p + "attn_output.weight"].T
            h = self.norm(x, p + "ffn_norm.weight")
            g = h @ t[p + "ffn_gate.weight"].T
            x = x + (g * torch.sigmoid(g) * (h @ t[p + "ffn_up.weight"].T)) @ t[p + "ffn_down.weight"].T
        return self.norm(x, "output_norm.weight") @ t["token_embd.weight"].T


def chat_prompt(question):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def greedy(next_logits, ids, n, stop):
    """next_logits(ids) -> logits after ids. -> ids, margins, the five best of the first step"""
    out, margins, first = [], [], None
    while len(out) < n:
        logits = next_logits(ids + out)
        order = sorted(range(len(logits)), key=lambda i: -logits[i])[:5]
        first = first or [[i, round(logits[i], 5)] for i in order]
        out.append(order[0])
        margins.append(round(logits[order[0]] - logits[order[1]], 5))
        if order[0] in stop:
            break
    return out, margins, first


def plain_next(meta, tensors):
    model, seen, last = Plain(meta, tensors), [], [None]

    def next_logits(ids):
        for token in ids[len(seen):]:
            last[0] = model.step(token)
            seen.append(token)
        return last[0]
    return next_logits


def heldout_perplexity(window, tok, path, context):
    """Two usual ways, both in windows of `context` tokens that do not overlap, no BOS."""
    with open(path, encoding="ascii", newline="") as f:
        text = f.read()
    ids = tok.encode_plain(text)
    all_sum = all_count = half_sum = half_count = 0
    for i in range(0, len(ids) - 1, context):
        part = ids[i : i + context]
        if len(part) < 2:
            break
        logp = torch.log_softmax(window.logits(part[:-1]), -1)
        loss = -logp.gather(1, torch.tensor(part[1:], device=logp.device)[:, None])[:, 0]
        all_sum, all_count = all_sum + loss.sum().item(), all_count + len(loss)
        if len(part) == context:
            later = loss[context // 2 - 1:]
            half_sum, half_count = half_sum + later.sum().item(), half_count + len(later)
    bytes_per_token = len(text) / len(ids)
    return {
        "file": os.path.basename(path),
        "bytes": len(text),
        "tokens": len(ids),
        "window": context,
        "predicted_tokens": all_count,
        "nll_per_token": round(all_sum / all_count, 6),
        "perplexity_per_token": round(math.exp(all_sum / all_count), 5),
        "perplexity_per_byte": round(math.exp(all_sum / all_count / bytes_per_token), 5),
        "second_half_tokens": half_count,
        "second_half_perplexity": round(math.exp(half_sum / half_count), 5),
    }


def write_expected(args, meta, tensors, tok, stop):
    window = Window(meta, tensors) if torch else None
    cases = [(p, p, None) for p in PROMPTS] + [(chat_prompt(q), None, q) for q in CHATS]
    prompts = []
    for text, plain_text, question in cases:
        ids = tok.encode(text)
        if window:
            out, margins, first = greedy(lambda x: window.logits(x)[-1].tolist(), ids, GREEDY_TOKENS, stop)
        else:
            out, margins, first = greedy(plain_next(meta, tensors), ids, GREEDY_TOKENS, stop)
        if window and not prompts:
            again, _, plain_first = greedy(plain_next(meta, tensors), ids, 8, stop)
            worst = max(abs(a[1] - b[1]) for a, b in zip(first, plain_first))
            if again != out[:8] or worst > 1e-4:
                raise SystemExit(f"the two forward passes differ: {worst}")
            print(f"plain Python and PyTorch agree (logits within {worst:g})")
        prompts.append(
            {
                "text": text,
                "messages": [{"role": "user", "content": question}] if question else None,
                "ids": ids,
                "greedy": out,
                "margins": margins,
                "top5_first": first,
                "output": tok.decode(out),
            }
        )
        print(f"--- {plain_text or question!r}\n{tok.decode(out)}")
    with open(args.model, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    result = {
        "model": os.path.basename(args.model),
        "sha256": digest,
        "arithmetic": "double precision, weights as stored",
        "stop_ids": sorted(stop),
        "prompts": prompts,
    }
    if window and args.heldout:
        result["heldout"] = heldout_perplexity(window, tok, args.heldout, meta["llama.context_length"])
        print(json.dumps(result["heldout"]))
    with open(args.expected, "w", encoding="utf-8", newline="\n") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--ask", action="append", default=[])
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--expected")
    parser.add_argument("--heldout")
    args = parser.parse_args()
    meta, tensors = read_gguf(args.model)
    merges = [m.split(" ") for m in meta["tokenizer.ggml.merges"]]
    tok = Tokenizer(meta["tokenizer.ggml.tokens"], merges)
    stop = {tok.special["<|endoftext|>"], tok.special["<|im_end|>"]}
    for text in args.text + [chat_prompt(q) for q in args.ask]:
        out, _, _ = greedy(plain_next(meta, tensors), tok.encode(text), args.tokens, stop)
        print(tok.decode(out))
    if args.expected:
        write_expected(args, meta, tensors, tok, stop)


if __name__ == "__main__":
    main()
