# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The standard decoder, all tokens at once, layer after layer, with no cache; what several architectures do
otherwise."""
import math

from .blocks import (NORM, Rope, Routing, add, attention, causal, cut, gelu, layer_norm, matvec, rms, scaled,
                     silu)


class Decoder:
    """The standard sequential block with RMS norms, adjacent rotation and SwiGLU: what llama is. Others
    override."""
    norm_kind, act, pairs, freqs = "rms", staticmethod(silu), NORM, False

    def __init__(self, file, n_context):
        self.f, self.key, self.n_context = file, file.key, n_context
        self.E, self.L, self.F = (self.key("embedding_length"), self.key("block_count"),
                                  self.key("feed_forward_length"))
        self.eps = self.key(f"attention.layer_norm_{'rms_' if self.norm_kind == 'rms' else ''}epsilon")
        self.heads = self.per_layer("attention.head_count")
        self.kv_heads = self.per_layer("attention.head_count_kv", self.heads)
        self.D = self.key("attention.key_length", self.E // self.heads[0])
        self.Dv = self.key("attention.value_length", self.E // self.heads[0])
        self.R = self.key("rope.dimension_count", self.D)
        self.base = self.key("rope.freq_base", 10000.0)
        self.old_context = self.key("rope.scaling.original_context_length", self.key("context_length"))
        self.scale = 1 / math.sqrt(self.D)
        self.routing = self.make_routing()
        self.setup()

    def setup(self):
        self.rope = self.make_rope()

    def per_layer(self, name, default=None):
        value = self.key(name, default)
        return value if isinstance(value, list) else [value] * self.L

    def w(self, n, name):
        return self.f.vector(f"blk.{n}.{name}")

    def has(self, n, name):
        return self.f.has(f"blk.{n}.{name}.weight")

    def linear(self, n, name, x):
        rows, factor = self.f.rows(f"blk.{n}.{name}.weight"), self.w(n, name + ".scale")
        if factor and len(factor) == 1:  # of NVFP4 weights
            return add(scaled(matvec(rows, x), factor[0]), self.w(n, name + ".bias") or [0.0] * len(rows))
        return matvec(rows, x, self.w(n, name + ".bias"))

    def normed(self, x, name):
        w, b = self.f.vector(name + ".weight"), self.f.vector(name + ".bias")
        return rms(x, w, self.eps) if self.norm_kind == "rms" else layer_norm(x, w, b, self.eps)

    def norm(self, n, name, x):
        return self.normed(x, f"blk.{n}.{name}")

    # --- positions

    def scaling(self):
        kind = self.key("rope.scaling.type", "linear")
        s = self.key("rope.scaling.factor", self.key("rope.scale_linear", 1.0)) or 1.0
        return kind, (1.0 if kind == "none" else s)

    def rope_factors(self):
        """Long or short by the context of the session, for phi3 always, for the llama family by type."""
        name = "rope_factors_long" if self.n_context > self.old_context else "rope_factors_short"
        if self.freqs and self.key("rope.scaling.type") == "longrope":
            return self.f.vector(name + ".weight")
        return self.f.vector("rope_freqs.weight") if self.freqs else None

    def yarn_magnitude(self, s):
        return self.key("rope.scaling.attn_factor", 1.0) * (1 + 0.1 * math.log(s) if s > 1 else 1)

    def yarn_betas(self):
        return 32.0, 1.0

    def make_rope(self, base=None, n_dims=None):
        kind, s = self.scaling()
        factors, n_dims = self.rope_factors(), n_dims or self.R
        if kind == "yarn":
            rope = Rope(self.pairs, n_dims, base or self.base, s, factors, self.yarn_magnitude(s))
            return rope.yarn(self.old_context, *self.yarn_betas())
        return Rope(self.pairs, n_dims, base or self.base, s, factors,
                    self.key("rope.scaling.attn_factor", 1.0))

    def rope_of(self, n):
        return self.rope

    def rotated(self, n, q, position):
        rope = self.rope_of(n)
        return [rope(head, position) for head in q] if rope else q

    # --- attention

    def project(self, n, x):
        """Heads of q, k, v for one token, before norms and positions."""
        q_size, k_size = self.heads[n] * self.D, self.kv_heads[n] * self.D
        if self.has(n, "attn_qkv"):
            qkv = self.linear(n, "attn_qkv", x)
            q, k, v = qkv[:q_size], qkv[q_size:q_size + k_size], qkv[q_size + k_size:]
        else:
            q, k, v = (self.linear(n, "attn_" + c, x) for c in "qkv")
        return self.qk_norm(n, q, "q"), self.qk_norm(n, k, "k"), cut(v, self.Dv)

    def qk_norm(self, n, x, which):
        """Cuts q or k into heads; norms them where the architecture does."""
        return cut(x, self.D)

    def temperature(self, n, position):
        return 1.0

    def visible(self, n):
        return causal

    def options(self, n):
        return {}

    def mix(self, n, rows):
        """Attention of all rows; they are normed already."""
        q, k, v = [], [], []
        for p, x in enumerate(rows):
            a, b, c = self.project(n, x)
            q.append([scaled(h, self.temperature(n, p)) for h in self.rotated(n, a, p)])
            k.append(self.rotated(n, b, p))
            v.append(c)
        mixed = attention(q, k, v, self.scale, self.visible(n), **self.options(n))
        return [self.linear(n, "attn_output", row) for row in mixed]

    # --- feed-forward

    def make_routing(self):
        return Routing(self.key("expert_used_count", 0), normalised=True)

    def gated(self, gate, up):
        return [self.act(g) * u for g, u in zip(gate, up)]

    def ffn(self, n, x, suffix=""):
        up = self.linear(n, "ffn_up" + suffix, x)
        if self.has(n, "ffn_gate" + suffix):
            hidden = self.gated(self.linear(n, "ffn_gate" + suffix, x), up)
        elif len(up) == 2 * self.f.tensors[f"blk.{n}.ffn_down{suffix}.weight"][0][0]:
            hidden = self.gated(up[:len(up) // 2], up[len(up) // 2:])
        else:
            hidden = [gelu(v) for v in up]
        return self.linear(n, "ffn_down" + suffix, hidden)

    def expert(self, n, name, e, x):
        """Row e of the experts' matrices, with the bias of that expert."""
        full = f"blk.{n}.{name}"
        (_, n_out, _), _ = self.f.tensors[full + ".weight"]
        bias = self.f.rows(full + ".bias")[e] if self.f.has(full + ".bias") else None
        y = matvec(self.f.rows(full + ".weight")[e * n_out:(e + 1) * n_out], x)
        if self.f.has(full + ".scale"):
            y = scaled(y, self.f.vector(full + ".scale")[e])
        return add(y, bias) if bias else y

    def expert_ffn(self, n, e, x):
        if self.has(n, "ffn_gate_up_exps"):
            both = self.expert(n, "ffn_gate_up_exps", e, x)
            gate, up = both[:len(both) // 2], both[len(both) // 2:]
        else:
            gate, up = self.expert(n, "ffn_gate_exps", e, x), self.expert(n, "ffn_up_exps", e, x)
        return self.expert(n, "ffn_down_exps", e, self.gated(gate, up))

    def route(self, n, x):
        return self.routing(self.linear(n, "ffn_gate_inp", x), self.w(n, "exp_probs_b.bias"))

    def experts(self, n, x, routed=None):
        total = [0.0] * self.E
        for e, weight in routed or self.route(n, x):
            total = add(total, scaled(self.expert_ffn(n, e, x), weight))
        return add(total, self.ffn(n, x, "_shexp")) if self.has(n, "ffn_up_shexp") else total

    def feed(self, n, x):
        return self.experts(n, x) if self.has(n, "ffn_gate_inp") else self.ffn(n, x)

    # --- whole model

    def start(self, tokens):
        return [self.f.rows("token_embd.weight")[t] for t in tokens]

    def block(self, n, rows):
        mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
        rows = [add(x, a) for x, a in zip(rows, mixed)]
        return [add(x, self.feed(n, self.norm(n, "ffn_norm", x))) for x in rows]

    def head(self, x):
        name = "output.weight" if self.f.has("output.weight") else "token_embd.weight"
        return matvec(self.f.rows(name), self.normed(x, "output_norm"), self.f.vector("output.bias"))

    def finish(self, logits):
        return logits

    def body(self, tokens):
        rows = self.start(tokens)
        for n in range(self.L):
            rows = self.block(n, rows)
        return rows

    def logits(self, tokens):
        return [self.finish(self.head(x)) for x in self.body(tokens)]


class ParallelBlock:
    """Attention and feed-forward of the same normed row."""

    def block(self, n, rows):
        normed = [self.norm(n, "attn_norm", x) for x in rows]
        return [add(add(x, a), self.feed(n, h)) for x, a, h in zip(rows, self.mix(n, normed), normed)]


class HeadNorms:
    """QK-norm of each head with the same weights, before the rotation."""

    def qk_norm(self, n, x, which):
        return [self.norm(n, f"attn_{which}_norm", head) for head in cut(x, self.D)]


class PostNorms:
    """A norm before and one after attention and feed-forward."""

    def block(self, n, rows):
        mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
        rows = [add(x, self.norm(n, "post_attention_norm", a)) for x, a in zip(rows, mixed)]
        return [add(x, self.norm(n, "post_ffw_norm", self.feed(n, self.norm(n, "ffn_norm", x))))
                for x in rows]
