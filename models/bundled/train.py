# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the bundled model on one GPU (PyTorch).

    python3 train.py --corpus DIR --tokenizer tokenizer.json --out CKPT [--minutes 6 | --steps N]

Writes CKPT/weights.bin (float32, one tensor after the other) and CKPT/weights.json (names as in the
GGUF file, shapes, configuration, results), so that the exporter needs no PyTorch.

The model is the llama architecture: RMS norm before attention and feed-forward, grouped-query
attention, SwiGLU, rotary positions on adjacent pairs (so rows need no permutation in the file),
one matrix for embedding and output.
"""

import argparse
import glob
import json
import math
import multiprocessing
import os
import time
from array import array

import torch
import torch.nn as nn
import torch.nn.functional as F

from train_tokenizer import SPECIAL_SPLIT, Tokenizer

CONFIG = {
    "vocab": 2048, "width": 256, "layers": 8, "heads": 4, "kv_heads": 2, "ffn": 768, "context": 512,
    "eps": 1e-5,
    "rope_base": 10000.0,
}
SCORED = 1 << 12  # flag on a stored token: the loss counts it. Ids need 11 bits.
ID_MASK = SCORED - 1
END = "<|endoftext|>"


def encode_document(tok, text):
    """ids with the SCORED flag. In a conversation only the assistant's words and its end token count:
    what users type is noise of the generator, and predicting it would cost capacity."""
    if not text.startswith("<|im_start|>"):
        return [i | SCORED for i in tok.encode_plain(text)]
    out, answering = [], False
    for part in SPECIAL_SPLIT.split(text):
        if part == "<|im_end|>":
            out.append(tok.special[part] | (SCORED if answering else 0))
            answering = False
        elif part in tok.special:
            out.append(tok.special[part])
        elif part.startswith("assistant\n"):
            # The newline is a piece of its own, so the two halves encode as the whole would.
            out += tok.encode_plain("assistant\n")
            out += [i | SCORED for i in tok.encode_plain(part[len("assistant\n"):])]
            answering = True
        elif part:
            out += tok.encode_plain(part)
    return out


_worker_tokenizer = None


def encode_shard(job):
    """-> (bytes of uint16 tokens, bytes of uint32 document starts)"""
    global _worker_tokenizer
    path, tokenizer_path = job
    if _worker_tokenizer is None:
        _worker_tokenizer = Tokenizer.load(tokenizer_path)
    tok = _worker_tokenizer
    with open(path, encoding="ascii", newline="") as f:
        text = f.read()
    ids, starts = array("H"), array("I")
    end = tok.special[END] | SCORED
    for document in text.split(END):
        if document:
            starts.append(len(ids))
            ids.extend(encode_document(tok, document))
            ids.append(end)
    return ids.tobytes(), starts.tobytes()


def load_corpus(corpus, tokenizer_path, jobs, device):
    paths = sorted(glob.glob(os.path.join(corpus, "train_*.txt")))
    tokens, starts, base = [], [], 0
    # fork: the workers run plain Python and never touch the GPU, which is not in use yet.
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for ids, first in pool.imap(encode_shard, [(p, tokenizer_path) for p in paths]):
            t = torch.frombuffer(bytearray(ids), dtype=torch.int16)
            s = torch.frombuffer(bytearray(first), dtype=torch.int32).to(torch.int64) + base
            tokens.append(t)
            starts.append(s)
            base += t.numel()
    return torch.cat(tokens).to(device), torch.cat(starts).to(device)


class Batches:
    """Random windows of context+1 tokens; half of them begin where a document begins, because that is
    how every prompt begins (no BOS token)."""

    def __init__(self, tokens, starts, context, size, seed):
        self.tokens, self.context, self.size = tokens, context, size
        self.starts = starts[starts < tokens.numel() - context - 1]
        self.generator = torch.Generator(device=tokens.device)
        self.generator.manual_seed(seed)
        self.steps = torch.arange(context + 1, device=tokens.device)

    def next(self):
        half = self.size // 2
        device, g = self.tokens.device, self.generator
        a = self.starts[torch.randint(self.starts.numel(), (half,), device=device, generator=g)]
        b = torch.randint(self.tokens.numel() - self.context - 1, (self.size - half,), device=device,
                          generator=g)
        window = self.tokens[torch.cat([a, b])[:, None] + self.steps].to(torch.int64)
        ids = window & ID_MASK
        target = torch.where((window & SCORED) != 0, ids, torch.full_like(ids, -100))
        return ids[:, :-1].contiguous(), target[:, 1:].contiguous()


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rotate(x, cos, sin):
    """RoPE on adjacent pairs. x [batch, heads, tokens, head], cos/sin [tokens, head/2]."""
    a, b = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, head = c["width"], c["width"] // c["heads"]
        self.heads, self.kv_heads, self.head = c["heads"], c["kv_heads"], head
        self.attn_norm = RMSNorm(width, c["eps"])
        self.attn_q = nn.Linear(width, c["heads"] * head, bias=False)
        self.attn_k = nn.Linear(width, c["kv_heads"] * head, bias=False)
        self.attn_v = nn.Linear(width, c["kv_heads"] * head, bias=False)
        self.attn_output = nn.Linear(c["heads"] * head, width, bias=False)
        self.ffn_norm = RMSNorm(width, c["eps"])
        self.ffn_gate = nn.Linear(width, c["ffn"], bias=False)
        self.ffn_up = nn.Linear(width, c["ffn"], bias=False)
        self.ffn_down = nn.Linear(c["ffn"], width, bias=False)

    def forward(self, x, cos, sin):
        n, t, _ = x.shape
        h = self.attn_norm(x)
        q = self.attn_q(h).view(n, t, self.heads, self.head).transpose(1, 2)
        k = self.attn_k(h).view(n, t, self.kv_heads, self.head).transpose(1, 2)
        v = self.attn_v(h).view(n, t, self.kv_heads, self.head).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        # Query head h reads key/value head h / (heads / kv_heads): each one is repeated in place.
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_output(o.transpose(1, 2).reshape(n, t, self.heads * self.head))
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))


class Model(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config = c
        self.token_embd = nn.Embedding(c["vocab"], c["width"])
        self.blk = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.output_norm = RMSNorm(c["width"], c["eps"])
        head = c["width"] // c["heads"]
        angle = torch.outer(
            torch.arange(c["context"]).float(),
            c["rope_base"] ** (-torch.arange(0, head, 2).float() / head),
        )
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                # Smaller start for the two matrices that write into the residual stream (GPT-2).
                residual = "attn_output" in name or "ffn_down" in name
                nn.init.normal_(p, std=0.04 / math.sqrt(2 * c["layers"]) if residual else 0.04)

    def hidden(self, ids):
        t = ids.shape[1]
        x = self.token_embd(ids)
        cos, sin = self.cos[:t], self.sin[:t]
        for layer in self.blk:
            x = layer(x, cos, sin)
        return self.output_norm(x)

    def logits(self, ids):
        return F.linear(self.hidden(ids), self.token_embd.weight)

    def forward(self, ids, target):
        return F.cross_entropy(self.logits(ids).float().flatten(0, 1), target.flatten(), ignore_index=-100)


@torch.no_grad()
def perplexity(model, flagged, context, only_scored):
    """Mean loss in windows of `context` tokens that do not overlap; the first token of a window is not
    predicted. -> (sum of losses, number of predicted tokens)"""
    device = model.token_embd.weight.device
    total, count = 0.0, 0
    for i in range(0, len(flagged) - 1, context):
        window = torch.tensor(flagged[i : i + context], device=device)
        if window.numel() < 2:
            continue
        ids = window & ID_MASK
        with torch.autocast(device.type, torch.bfloat16):
            logits = model.logits(ids[None, :-1])[0].float()
        loss = F.cross_entropy(logits, ids[1:], reduction="none")
        if only_scored:
            loss = loss[(window[1:] & SCORED) != 0]
        total += loss.sum().item()
        count += loss.numel()
    return total, count


def evaluate(model, corpus, tok):
    with open(os.path.join(corpus, "heldout.txt"), encoding="ascii", newline="") as f:
        text = f.read()
    ids = tok.encode_plain(text)
    total, count = perplexity(model, [i | SCORED for i in ids], model.config["context"], False)
    with open(os.path.join(corpus, "heldout_chat.txt"), encoding="ascii", newline="") as f:
        chats = [encode_document(tok, d) for d in f.read().split(END) if d]
    chat_sum, chat_count = 0.0, 0
    for chat in chats[:300]:
        s, n = perplexity(model, chat, model.config["context"], True)
        chat_sum, chat_count = chat_sum + s, chat_count + n
    # The share of bytes that belongs to predicted tokens: all but one token per window.
    per_byte = total / (len(text) * count / len(ids))
    return {
        "token_ppl": math.exp(total / count),
        "byte_ppl": math.exp(per_byte),
        "answer_ppl": math.exp(chat_sum / chat_count),
    }


PROMPTS = ["Once upon a time", "Once upon a time, there was a little dragon who",
           "Q: Where does Mia live?\nA:"]
CHATS = [
    "Tell me a story about a cat and a robot.",
    "Where does Tom live?",
    "What does a baker make?",
    "What colour is the sky?",
    "Who are you?",
    "What is 7 + 5?",
    "Count to five.",
    "What is the opposite of hot?",
    "What day comes after Friday?",
    "Anna put the key under the bed. Then Ben put it in the barn. Where is the key now?",
    "What is the capital of France?",
    "Tell me a story about a pirate named Zuko.",
]


@torch.no_grad()
def sample(model, tok, text, n, temperature=0.0):
    device = model.token_embd.weight.device
    ids = tok.encode(text)
    first = len(ids)
    stop = (tok.special[END], tok.special["<|im_end|>"])
    while len(ids) - first < n and len(ids) < model.config["context"]:
        with torch.autocast(device.type, torch.bfloat16):
            logits = model.logits(torch.tensor([ids], device=device))[0, -1].float()
        if temperature > 0:
            best = int(torch.multinomial(torch.softmax(logits / temperature, -1), 1))
        else:
            best = int(logits.argmax())
        if best in stop:
            break
        ids.append(best)
    return tok.decode(ids[first:])


def show_samples(model, tok):
    for p in PROMPTS:
        print(f"--- {p!r}\n{sample(model, tok, p, 200, 0.7)}", flush=True)
    for q in CHATS:
        prompt = f"<|im_start|>user\n{q}<|im_end|>\n<|im_start|>assistant\n"
        print(f"--- user: {q}\n{sample(model, tok, prompt, 200)}", flush=True)


def save(model, out, results):
    os.makedirs(out, exist_ok=True)
    tensors, offset = [], 0
    with open(os.path.join(out, "weights.bin"), "wb") as f:
        for name, p in model.state_dict().items():
            data = p.detach().float().cpu().contiguous()
            f.write(array("f", data.flatten().tolist()).tobytes())
            tensors.append({"name": name, "shape": list(data.shape), "offset": offset})
            offset += data.numel() * 4
    with open(os.path.join(out, "weights.json"), "w", encoding="utf-8") as f:
        json.dump({"config": model.config, "results": results, "tensors": tensors}, f, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=6.0,
                        help="time for the steps, if --steps is not given")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--batch", type=int, default=128, help="windows per step")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    began = time.time()
    tok = Tokenizer.load(args.tokenizer)
    tokens, starts = load_corpus(args.corpus, args.tokenizer, args.jobs, device)
    print(
        f"{tokens.numel() / 1e6:.1f} M tokens, {starts.numel()} documents, {time.time() - began:.0f} s",
        flush=True,
    )

    config = dict(CONFIG, vocab=len(tok.tokens))
    model = Model(config).to(device)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters", flush=True)
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() != 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
        lr=args.lr,
        betas=(0.9, 0.95),
        eps=1e-8,
        fused=device == "cuda",
    )
    step_model = model if args.no_compile else torch.compile(model)
    batches = Batches(tokens, starts, config["context"], args.batch, args.seed)

    warmup = 200
    total, step, smooth = args.steps, 0, None
    timer, timed_from = None, 30  # steps before `timed_from` hold the compilation
    while total == 0 or step < total:
        if total == 0 and step == warmup:
            # The number of steps follows from the speed seen so far, so that the cosine ends in time.
            torch.cuda.synchronize()
            per_step = (time.time() - timer) / (warmup - timed_from)
            total = warmup + max(100, int((args.minutes * 60 - warmup * per_step) / per_step))
            print(
                f"{per_step * 1e3:.1f} ms per step, {args.batch * config['context'] / per_step / 1e6:.2f} M "
                    f"tokens/s, {total} steps",
                flush=True,
            )
        if step == timed_from and device == "cuda":
            torch.cuda.synchronize()
            timer = time.time()
        progress = 0.0 if step < warmup else (step - warmup) / max(1, total - warmup)
        rate = args.lr * min(1.0, (step + 1) / warmup) * (0.01 + 0.99 * 0.5
                                                          * (1 + math.cos(math.pi * progress)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        ids, target = batches.next()
        with torch.autocast(device, torch.bfloat16):
            loss = step_model(ids, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step + 1 == total:
            value = loss.item()
            smooth = value if smooth is None else 0.7 * smooth + 0.3 * value
            if step % 500 == 0 or step + 1 == total:
                print(f"step {step:6d}  loss {smooth:.4f}  lr {rate:.2e}  {time.time() - began:.0f} s",
                      flush=True)
            if not math.isfinite(value):
                raise SystemExit("the loss is not finite")
        step += 1

    model.eval()
    results = evaluate(model, args.corpus, tok)
    results.update(
        steps=step,
        batch=args.batch,
        lr=args.lr,
        train_loss=smooth,
        train_tokens=step * args.batch * config["context"],
        corpus_tokens=tokens.numel(),
        seconds=round(time.time() - began),
    )
    print(json.dumps(results), flush=True)
    save(model, args.out, results)
    show_samples(model, tok)


if __name__ == "__main__":
    main()
