# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""What each type costs the bundled model: the table of docs/quality.md.

    quality.py TENON [--types Q4_K_M,Q4_0] [--imatrix TOKENS]

The base is the model as F32; perplexity and KL divergence are over heldout.txt with a cache in F32. --imatrix
also makes an importance matrix over about that many tokens of expected.json, in plain Python (half a second a
token or more), and adds a row for every type that uses one.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL, TEXT = os.path.join(HERE, "tenon-tiny.gguf"), os.path.join(HERE, "heldout.txt")
TYPES = ["F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_1", "Q5_K_S", "Q5_0", "Q4_K_M", "Q4_K_S", "Q4_1",
         "IQ4_NL", "NVFP4", "Q4_0", "IQ4_XS", "MXFP4",
         "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "Q2_K_S"]
NO_IMPORTANCE = {"F16", "BF16", "Q8_0", "NVFP4", "MXFP4"}
F32_CACHE = ["--cache-type-k", "f32", "--cache-type-v", "f32"]


def run(tenon, *args):
    done = subprocess.run([tenon, *map(str, args)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{args}: {done.stderr}")
    return done.stdout


def make_importance(tenon, base, path, n_tokens):
    """Squares of what each matrix is multiplied with, in the older form; the reference of the tests runs the
    model."""
    sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "models"))
    from reference import gguf
    from reference.archs import ARCHS

    sums = {}

    class Watched(ARCHS["llama"]):
        def linear(self, n, name, x):
            total = sums.setdefault(f"blk.{n}.{name}.weight", [0.0] * len(x))
            total[:] = [a + b * b for a, b in zip(total, x)]
            return super().linear(n, name, x)

    with open(os.path.join(HERE, "expected.json")) as f:
        texts = [e["ids"] + e["greedy"] for e in json.load(f)["prompts"]]
    n = 0
    for ids in texts:
        if n < n_tokens:
            Watched(gguf.read(base), len(ids)).body(ids)
            n += len(ids)
    with open(path, "wb") as f:
        f.write(struct.pack("<i", len(sums)))
        for name, total in sums.items():
            f.write(struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 1, len(total)))
            f.write(struct.pack(f"<{len(total)}f", *(v / n for v in total)))
    return n


def row(tenon, folder, kind, importance):
    out = os.path.join(folder, "out.gguf")
    # Types without a mix of their own: every matrix, and Q6_K for the head as in the others.
    flags = ["Q4_0", "--tensor-type", f"*={kind}", "--output-tensor-type",
             "Q6_K"] if kind == "NVFP4" else [kind]
    q = json.loads(run(tenon, "quantize", os.path.join(folder, "base.gguf"), out, *flags, "--json",
                       *(["--imatrix", importance] if importance else [])))
    weights = os.path.getsize(out)
    p = json.loads(run(tenon, "perplexity", out, "--kl", os.path.join(folder, "base.kl"), "--json",
                       *F32_CACHE))
    name = kind + (" + importance" if importance else "")
    print(f"| {name} | {weights / 1e6:.2f} | {q['rmse']:.6f} | {p['perplexity']:.5f} ± {p['error']:.5f} | "
          f"{p['kl']['mean']:.6f} ± {p['kl']['error']:.6f} "
          f"| {p['kl']['p99']:.4f} | {p['same_first_choice_percent']:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tenon")
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--imatrix", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tenon-quality-") as folder:
        base = os.path.join(folder, "base.gguf")
        run(args.tenon, "quantize", MODEL, base, "F32")
        p = json.loads(run(args.tenon, "perplexity", base, "-f", TEXT, "--kl-base",
                           os.path.join(folder, "base.kl"), "--json", *F32_CACHE))
        importance = None
        if args.imatrix:
            importance = os.path.join(folder, "importance.dat")
            print(f"importance over {make_importance(args.tenon, base, importance, args.imatrix)} tokens",
                  flush=True)
        print("| type | MB | rmse of weights | perplexity | mean KL (nats) | KL, 99 % | same choice, % "
              "|\n|---|---:|---:|---:|---:|---:|---:|")
        print(f"| F32 | {os.path.getsize(base) / 1e6:.2f} | 0 | {p['perplexity']:.5f} ± {p['error']:.5f} | 0 "
              f"| 0 | 100 |")
        for kind in args.types.split(","):
            row(args.tenon, folder, kind, None)
            if importance and kind not in NO_IMPORTANCE:
                row(args.tenon, folder, kind, importance)


main()
