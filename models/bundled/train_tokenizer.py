# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Trains the byte-level BPE vocabulary of the bundled model, and encodes text with it.

    python3 train_tokenizer.py --corpus DIR --out tokenizer.json [--vocab 2048]

The pre-split is the expression that GGUF files call `llama-bpe`:

    (?i:'s|'t|'re|'ve|'m|'ll|'d) | [^\\r\\n\\p{L}\\p{N}]?\\p{L}+ | \\p{N}{1,3} |
    [ ]?[^\\s\\p{L}\\p{N}]+[\\r\\n]* | \\s*[\\r\\n]+ | \\s+(?!\\S) | \\s+      (blanks around | are not part
    of it)

Python's `re` has no \\p classes. The corpus is pure ASCII, where \\p{L} = [A-Za-z] and \\p{N} = [0-9],
so SPLIT below is exact for everything this file ever encodes.

Ids: 0..255 the bytes by value, then one token per new merge text in rank order, then the special
tokens. Digits never merge: sums are then read digit by digit,
which a small model learns much better than one token per number.
"""

import argparse
import glob
import json
import multiprocessing
import os
import re
from collections import Counter, defaultdict

SPLIT = re.compile(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}| "
    r"?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPECIAL_SPLIT = re.compile("(" + "|".join(re.escape(s) for s in SPECIAL) + ")")
SAMPLE_BYTES = 1_000_000  # per shard; the word list is complete long before that


def byte_characters():
    """The 256 characters that stand for bytes in token texts (tokenizers of GPT-2's kind)."""
    keep = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    table, extra = {}, 0
    for b in range(256):
        if b in keep:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + extra)
            extra += 1
    return [table[b] for b in range(256)]


BYTE_CHARS = byte_characters()


def count_pieces(path):
    with open(path, encoding="ascii", newline="") as f:
        text = f.read(SAMPLE_BYTES)
    counts = Counter()
    for part in SPECIAL_SPLIT.split(text):
        if part not in SPECIAL:
            counts.update(SPLIT.findall(part))
    return counts


def train_merges(counts, n_tokens):
    """Classic BPE on word counts until n_tokens new texts exist. -> list of (left, right), rank order.

    Two merges may give the same text ("ab"+"c" and "a"+"bc"): both are kept, the token counts once.
    """
    words = [[BYTE_CHARS[b] for b in piece.encode()] for piece in counts]
    freq = list(counts.values())
    pair_count, pair_words = Counter(), defaultdict(set)
    for i, word in enumerate(words):
        for pair in zip(word, word[1:]):
            pair_count[pair] += freq[i]
            pair_words[pair].add(i)
    merges, texts = [], set()
    digits = set("0123456789")
    for pair in [p for p in pair_count if digits & set(p[0] + p[1])]:
        del pair_count[pair]
    while len(texts) < n_tokens:
        # Ties go to the pair that is first in text order: the result must not depend on hashing.
        best = max(
            pair_count.items(),
            key=lambda item: (item[1], [-ord(c) for c in item[0][0] + " " + item[0][1]]),
        )[0]
        merges.append(best)
        joined = best[0] + best[1]
        texts.add(joined)
        for i in list(pair_words[best]):
            word, f = words[i], freq[i]
            for pair in zip(word, word[1:]):
                if pair in pair_count:
                    pair_count[pair] -= f
                    if pair_count[pair] <= 0:
                        del pair_count[pair]
            out, k = [], 0
            while k < len(word):
                if k + 1 < len(word) and word[k] == best[0] and word[k + 1] == best[1]:
                    out.append(joined)
                    k += 2
                else:
                    out.append(word[k])
                    k += 1
            words[i] = out
            for pair in zip(out, out[1:]):
                if not digits & set(pair[0] + pair[1]):
                    pair_count[pair] += f
                    pair_words[pair].add(i)
    return merges


class Tokenizer:
    def __init__(self, tokens, merges):
        self.tokens = tokens
        self.rank = {tuple(pair): i for i, pair in enumerate(merges)}
        self.id = {t: i for i, t in enumerate(self.tokens)}
        self.special = {s: self.id[s] for s in SPECIAL}
        self.cache = {}

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        return cls(data["tokens"], data["merges"])

    def encode_piece(self, piece):
        ids = self.cache.get(piece)
        if ids is None:
            word = [BYTE_CHARS[b] for b in piece.encode("utf-8")]
            whole = "".join(word)
            if whole in self.id:  # the ignore_merges rule of llama-bpe
                word = [whole]
            while len(word) > 1:
                rank, k = min((self.rank.get(pair, 1 << 30), k) for k, pair in enumerate(zip(word, word[1:])))
                if rank == 1 << 30:
                    break
                word[k : k + 2] = [word[k] + word[k + 1]]
            ids = self.cache[piece] = [self.id[t] for t in word]
        return ids

    def encode_plain(self, text):
        """Text without special tokens."""
        out, cache = [], self.cache
        for piece in SPLIT.findall(text):
            ids = cache.get(piece)
            out += self.encode_piece(piece) if ids is None else ids
        return out

    def encode(self, text):
        """Text in which the names of special tokens stand for the tokens."""
        out = []
        for part in SPECIAL_SPLIT.split(text):
            if part in self.special:
                out.append(self.special[part])
            elif part:
                out += self.encode_plain(part)
        return out

    def decode(self, ids):
        back = {c: b for b, c in enumerate(BYTE_CHARS)}
        out = bytearray()
        for i in ids:
            t = self.tokens[i]
            out += t.encode() if t in self.special else bytes(back[c] for c in t)
        return out.decode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--vocab", type=int, default=2048)
    args = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(args.corpus, "train_*.txt")))
    with multiprocessing.Pool() as pool:
        counts = sum(pool.imap(count_pieces, paths), Counter())
    # Sorted: a Counter keeps arrival order, and ties between equal pairs must not depend on it.
    counts = dict(sorted((p, c) for p, c in counts.items() if c > 1))
    merges = train_merges(counts, args.vocab - 256 - len(SPECIAL))
    tokens = BYTE_CHARS + list(dict.fromkeys(a + b for a, b in merges)) + SPECIAL
    with open(args.out, "w", encoding="utf-8") as f:
        json.dump({"tokens": tokens, "merges": merges}, f, ensure_ascii=False)
    print(f"{len(counts)} different pieces, {len(tokens)} tokens")


if __name__ == "__main__":
    main()
