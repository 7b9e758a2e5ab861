# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Random models of a few hundred kilobytes: the tensors that many architectures share."""
import math
import random

from .gguf import NVFP4, File, random_nvfp4

VOCAB, CONTEXT, TOKENS = 96, 256, 24


class Builder:
    """Sizes as attributes, keys and tensors filled in. Weights keep rows near unit size, so that every part
    matters."""

    def __init__(self, arch, seed, norm="rms", **sizes):
        self.random = random.Random(f"{arch} {seed}")
        self.arch, self.norm_kind = arch, norm
        self.E, self.L, self.H, self.K, self.D, self.F, self.V = 64, 3, 4, 2, 16, 96, VOCAB
        self.R = self.Dv = None
        for name, value in sizes.items():
            setattr(self, name, value)
        self.R, self.Dv = self.R or self.D, self.Dv or self.D
        self.tensors, self.packed = {}, {}
        self.keys = {"general.architecture": arch, "general.name": f"random {arch}", "general.file_type": 0}
        self.set(vocab_size=self.V, context_length=CONTEXT, embedding_length=self.E, block_count=self.L,
                 feed_forward_length=self.F)
        self.set(**{"attention.head_count": self.H, "attention.head_count_kv": self.K})
        if self.D * self.heads(0) != self.E or self.Dv != self.D:
            self.set(**{"attention.key_length": self.D, "attention.value_length": self.Dv})
        if norm == "rms":
            self.set(**{"attention.layer_norm_rms_epsilon": 1e-5})
        else:
            self.set(**{"attention.layer_norm_epsilon": 1e-5})

    def set(self, **keys):
        for name, value in keys.items():
            self.keys[f"{self.arch}.{name}"] = value
        return self

    def drop(self, *names):
        """Keys that have a default are left out."""
        for name in names:
            del self.keys[f"{self.arch}.{name}"]
        return self

    def rope(self, base=10000.0, **keys):
        self.set(**{"rope.dimension_count": self.R, "rope.freq_base": base})
        return self.set(**{"rope." + name.replace("__", "."): value for name, value in keys.items()})

    def heads(self, n):
        return self.H[n] if isinstance(self.H, list) else self.H

    def kv_heads(self, n):
        return self.K[n] if isinstance(self.K, list) else self.K

    def ff(self, n):
        return self.F[n] if isinstance(self.F, list) else self.F

    # --- tensors

    def put(self, name, dims, values):
        self.tensors[name] = list(dims), values

    def values(self, name, *dims, centre=0.0, spread=0.25):
        gauss = self.random.gauss
        self.put(name, dims, [centre + spread * gauss(0, 1) for _ in range(math.prod(dims))])

    def matrix(self, name, n_in, *outer, gain=1.0, bias=False):
        """`name`.weight, and its bias if wanted."""
        self.values(name + ".weight", n_in, *outer, spread=gain / math.sqrt(n_in))
        if bias:
            self.values(name + ".bias", *outer, spread=0.3)

    def norm(self, name, *dims, centre=1.0, bias=None):
        self.values(name + ".weight", *(dims or (self.E,)), centre=centre)
        if bias if bias is not None else self.norm_kind == "layer":
            self.values(name + ".bias", *(dims or (self.E,)))

    def embeddings(self, spread=0.7, tied=False, bias=False, norm_bias=None):
        self.values("token_embd.weight", self.E, self.V, spread=spread)
        self.norm("output_norm", bias=norm_bias)
        if not tied:
            self.matrix("output", self.E, self.V, bias=bias)
        return self

    def attention(self, n, fused=False, bias=False, out_bias=False, gain=1.6):
        E, b = self.E, f"blk.{n}."
        q, k, v = self.heads(n) * self.D, self.kv_heads(n) * self.D, self.kv_heads(n) * self.Dv
        if fused:
            self.matrix(b + "attn_qkv", E, q + k + v, gain=gain, bias=bias)
        else:
            self.matrix(b + "attn_q", E, q, gain=gain, bias=bias)
            self.matrix(b + "attn_k", E, k, gain=gain, bias=bias)
            self.matrix(b + "attn_v", E, v, bias=bias)
        self.matrix(b + "attn_output", self.heads(n) * self.Dv, E, bias=out_bias)

    def qk_norms(self, n, centre=1.4):
        self.norm(f"blk.{n}.attn_q_norm", self.D, centre=centre, bias=False)
        self.norm(f"blk.{n}.attn_k_norm", self.D, centre=centre, bias=False)

    def qk_norms_per_head(self, n):
        self.norm(f"blk.{n}.attn_q_norm", self.D, self.heads(n), centre=1.4, bias=False)
        self.norm(f"blk.{n}.attn_k_norm", self.D, self.kv_heads(n), centre=1.4, bias=False)

    def ffn(self, n, kind="gated", bias=False, suffix="", size=None):
        """kind: gated, fused (gate and up in one matrix), plain."""
        F, b = size or self.ff(n), f"blk.{n}."
        if kind == "gated":
            self.matrix(f"{b}ffn_gate{suffix}", self.E, F, gain=1.5, bias=bias)
        self.matrix(f"{b}ffn_up{suffix}", self.E, 2 * F if kind == "fused" else F, gain=1.3, bias=bias)
        self.matrix(f"{b}ffn_down{suffix}", F, self.E, gain=1.5, bias=bias)

    def experts(self, n, count, size, fused=False, bias=False, router_bias=False):
        b = f"blk.{n}."
        self.matrix(b + "ffn_gate_inp", self.E, count, gain=1.5, bias=router_bias)
        if fused:
            self.matrix(b + "ffn_gate_up_exps", self.E, 2 * size, count, gain=1.5)
        else:
            self.matrix(b + "ffn_gate_exps", self.E, size, count, gain=1.5, bias=bias)
            self.matrix(b + "ffn_up_exps", self.E, size, count, gain=1.5, bias=bias)
        self.matrix(b + "ffn_down_exps", size, self.E, count, gain=1.8, bias=bias)

    def factors(self, name, low=1.0, high=6.0):
        n = self.R // 2
        self.put(name, [n], [low + (high - low) * i / n + 0.1 * self.random.random() for i in range(n)])

    def as_nvfp4(self, name, gain=1.5):
        """Other random weights in NVFP4, and the factors that stand beside them: one per matrix."""
        dims, values = self.tensors[name + ".weight"]
        blob, values = random_nvfp4(self.random, len(values))
        size = math.sqrt(sum(v * v for v in values) / len(values))
        self.packed[name + ".weight"] = NVFP4, blob
        self.put(name + ".weight", dims, values)
        n = dims[2] if len(dims) > 2 else 1
        self.put(name + ".scale", [n],
                 [gain / math.sqrt(dims[0]) / size * (1 + 0.3 * self.random.random()) for _ in range(n)])

    def file(self):
        file = File(self.keys, self.tensors)
        file.packed = self.packed
        return file
