# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""One class per architecture, with what it does unlike the standard decoder."""
import math

from .blocks import (NEOX, NORM, Rope, Routing, add, alibi_slopes, attention, causal, chunked, cut, dot,
                     everything, gelu, joined, layer_norm,
                     matvec, rms, scaled, sigmoid, silu, softcap, softplus, window)
from .decoder import Decoder, HeadNorms, ParallelBlock, PostNorms

ARCHS = {}


def arch(*names):
    def register(cls):
        for name in names:
            ARCHS[name] = cls
        return cls
    return register


# --- the llama family ---------------------------------------------------------------------------------------

@arch("llama")
class Llama(Decoder):
    freqs = True


@arch("mistral3")
class Mistral3(Llama):
    def yarn_magnitude(self, s):
        lam = self.key("rope.scaling.yarn_log_multiplier", 0.0)
        if not lam or s <= 1:
            return super().yarn_magnitude(s)
        return self.key("rope.scaling.attn_factor",
                        1.0) * (1 + 0.1 * math.log(s)) / (1 + 0.1 * lam * math.log(s))

    def yarn_betas(self):
        return self.key("rope.scaling.yarn_beta_fast", 32.0), self.key("rope.scaling.yarn_beta_slow", 1.0)

    def temperature(self, n, position):
        return 1 + self.key("attention.temperature_scale", 0.0) * math.log(position // self.old_context + 1)


@arch("granite", "granitemoe")
class Granite(Llama):
    def setup(self):
        self.rope = self.make_rope() if self.key("rope.scaling.finetuned", True) else None
        self.scale = self.key("attention.scale", 0) or self.scale
        self.residual = self.key("residual_scale", 0) or 1.0

    def start(self, tokens):
        return [scaled(x, self.key("embedding_scale", 0) or 1.0) for x in super().start(tokens)]

    def mix(self, n, rows):
        return [scaled(x, self.residual) for x in super().mix(n, rows)]

    def feed(self, n, x):
        return scaled(super().feed(n, x), self.residual)

    def finish(self, logits):
        return scaled(logits, 1 / self.key("logit_scale"))


@arch("smollm3")
class SmolLM3(Decoder):
    def rope_of(self, n):
        return None if (n + 1) % 4 == 0 else self.rope


@arch("exaone")
class Exaone(Decoder):
    pairs, freqs = NEOX, True

    def rope_factors(self):
        return self.f.vector("rope_freqs.weight")


@arch("phi3")
class Phi3(Decoder):
    pairs = NEOX

    def rope_factors(self):
        return self.f.vector(
            f"rope_factors_{'long' if self.n_context > self.old_context else 'short'}.weight")


@arch("olmo2")
class Olmo2(Decoder):
    pairs = NEOX

    def setup(self):
        self.width = self.key("attention.sliding_window", 0)
        self.period = self.key("attention.sliding_window_pattern", 4)
        self.rope, self.rope_local = self.make_rope(), Rope(NEOX, self.R, self.base)

    def slides(self, n):
        return self.width > 0 and n % self.period < self.period - 1

    def rope_of(self, n):
        return self.rope_local if self.slides(n) else self.rope

    def visible(self, n):
        return window(self.width) if self.slides(n) else causal

    def qk_norm(self, n, x, which):
        return cut(self.norm(n, f"attn_{which}_norm", x), self.D)

    def block(self, n, rows):
        rows = [add(x, self.norm(n, "post_attention_norm", a)) for x, a in zip(rows, self.mix(n, rows))]
        return [add(x, self.norm(n, "post_ffw_norm", self.feed(n, x))) for x in rows]


@arch("glm4")
class Glm4(PostNorms, Decoder):
    def setup(self):
        sections = self.key("rope.dimension_sections", [0, 0, 0, 0])
        self.pairs = NEOX if sections[0] > 0 and sections[1] > 0 else NORM
        self.rope = self.make_rope()


@arch("llama4")
class Llama4(Decoder):
    freqs, CHUNK = True, 8192

    def make_routing(self):
        return Routing(self.key("expert_used_count", 0), gating="sigmoid")

    def is_global(self, n):
        return (n + 1) % 4 == 0

    def rope_of(self, n):
        return None if self.is_global(n) else self.rope

    def rotated(self, n, q, position):
        q = super().rotated(n, q, position)
        plain = self.is_global(n) or self.key("expert_count") == 128
        return q if plain else [rms(head, None, self.eps) for head in q]

    def temperature(self, n, position):
        return 1 + 0.1 * math.log((position + 1) // self.CHUNK + 1) if self.is_global(n) else 1.0

    def visible(self, n):
        return (causal if self.is_global(n) or self.key("attention.sliding_window") == 0
                else chunked(self.CHUNK))

    def experts(self, n, x, routed=None):
        total = self.ffn(n, x, "_shexp")
        for e, weight in self.route(n, x):
            total = add(total, self.expert_ffn(n, e, scaled(x, weight)))
        return total

    def feed(self, n, x):
        moe = (n + 1) % self.key("interleave_moe_layer_step") == 0
        return self.experts(n, x) if moe else self.ffn(n, x)


# --- the qwen family ----------------------------------------------------------------------------------------

@arch("qwen2")
class Qwen2(Decoder):
    pairs = NEOX


@arch("qwen3")
class Qwen3(HeadNorms, Qwen2):
    pass


@arch("qwen2moe")
class Qwen2Moe(Qwen2):
    def make_routing(self):
        return Routing(self.key("expert_used_count", 0))

    def experts(self, n, x, routed=None):
        total = [0.0] * self.E
        for e, weight in self.route(n, x):
            total = add(total, scaled(self.expert_ffn(n, e, x), weight))
        gate = sigmoid(dot(self.w(n, "ffn_gate_inp_shexp.weight"), x))
        return add(total, scaled(self.ffn(n, x, "_shexp"), gate))


@arch("qwen3moe")
class Qwen3Moe(Qwen3):
    pass


@arch("qwen35")
class Qwen35(HeadNorms, Decoder):
    """Three of four layers are a gated delta net with a state per head; attention has an output gate."""
    pairs = NEOX

    def setup(self):
        self.rope = self.make_rope()
        self.kernel, self.S = self.key("ssm.conv_kernel"), self.key("ssm.state_size")
        self.nk, self.nv = self.key("ssm.group_count"), self.key("ssm.time_step_rank")
        interval = self.key("full_attention_interval", 4)
        self.recurrent = self.key("attention.recurrent_layers",
                                  [(n + 1) % interval != 0 for n in range(self.L)])

    def k_head(self, a):
        return a % self.nk

    def mix(self, n, rows):
        return self.delta_net(n, rows) if self.recurrent[n] else self.gated_attention(n, rows)

    def gated_attention(self, n, rows):
        q, k, v, gates = [], [], [], []
        for p, x in enumerate(rows):
            both = cut(self.linear(n, "attn_q", x), 2 * self.D)
            q.append(self.rotated(n, self.qk_norm(n, joined(h[:self.D] for h in both), "q"), p))
            k.append(self.rotated(n, self.qk_norm(n, self.linear(n, "attn_k", x), "k"), p))
            v.append(cut(self.linear(n, "attn_v", x), self.Dv))
            gates.append(joined(h[self.D:] for h in both))
        mixed = attention(q, k, v, self.scale)
        return [self.linear(n, "attn_output", [a * sigmoid(g) for a, g in zip(row, gate)]) for row,
                gate in zip(mixed, gates)]

    def convolved(self, n, y, t):
        kernels = self.f.rows(f"blk.{n}.ssm_conv1d.weight")
        past = range(max(0, t - self.kernel + 1), t + 1)
        return [silu(sum(w[u - t + self.kernel - 1] * y[u][c] for u in past)) for c, w in enumerate(kernels)]

    def inputs(self, n, x):
        """y, z and per value head beta, alpha."""
        return tuple(self.linear(n, name, x) for name in ("attn_qkv", "attn_gate", "ssm_beta", "ssm_alpha"))

    def unit(self, x):
        return scaled(x, 1 / max(math.sqrt(dot(x, x)), self.eps))

    def delta_net(self, n, rows):
        S, inputs = self.S, [self.inputs(n, x) for x in rows]
        y = [i[0] for i in inputs]
        state = [[[0.0] * S for _ in range(S)] for _ in range(self.nv)]
        a_log, dt, result = self.w(n, "ssm_a"), self.w(n, "ssm_dt.bias"), []
        for t, (_, z, betas, alphas) in enumerate(inputs):
            heads = cut(self.convolved(n, y, t), S)
            q, k, v = heads[:self.nk], heads[self.nk:2 * self.nk], heads[2 * self.nk:]
            out = []
            for a in range(self.nv):
                decay = math.exp(a_log[a] * softplus(alphas[a] + dt[a]))
                o = self.delta_step(state[a], decay, sigmoid(betas[a]), self.unit(q[self.k_head(a)]),
                                    self.unit(k[self.k_head(a)]), v[a])
                o = rms(o, self.w(n, "ssm_norm.weight"), self.eps)
                out += [value * silu(g) for value, g in zip(o, z[a * S:(a + 1) * S])]
            result.append(self.linear(n, "ssm_out", out))
        return result

    @staticmethod
    def delta_step(m, decay, beta, q, k, v):
        """m [key][value] is updated."""
        S = len(v)
        for row in m:
            row[:] = scaled(row, decay)
        found = [sum(m[i][j] * k[i] for i in range(S)) for j in range(S)]
        d = [beta * (v[j] - found[j]) for j in range(S)]
        for i in range(S):
            m[i] = [m[i][j] + k[i] * d[j] for j in range(S)]
        return [sum(m[i][j] * q[i] for i in range(S)) / math.sqrt(S) for j in range(S)]

    def block(self, n, rows):
        mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
        rows = [add(x, a) for x, a in zip(rows, mixed)]
        return [add(x, self.feed(n, self.norm(n, "post_attention_norm", x))) for x in rows]


@arch("qwen35moe")
class Qwen35Moe(Qwen35):
    experts = Qwen2Moe.experts


@arch("qwen3next")
class Qwen3Next(Qwen35Moe):
    """Value heads of a key head are neighbours; ssm_in and ssm_ba hold everything of a key head in one run of
    rows."""

    def k_head(self, a):
        return a // (self.nv // self.nk)

    def inputs(self, n, x):
        r, S = self.nv // self.nk, self.S
        if self.has(n, "ssm_in"):
            groups = cut(self.linear(n, "ssm_in", x), 2 * S + 2 * r * S)
            q, k, v, z = ([g[first:last] for g in groups] for first,
                          last in ((0, S), (S, 2 * S), (2 * S, 2 * S + r * S), (2 * S + r * S, None)))
            y, z = joined(q) + joined(k) + joined(v), joined(z)
        else:
            y, z = self.linear(n, "attn_qkv", x), self.linear(n, "attn_gate", x)
        if not self.has(n, "ssm_ba"):
            return y, z, self.linear(n, "ssm_beta", x), self.linear(n, "ssm_alpha", x)
        pairs = cut(self.linear(n, "ssm_ba", x), 2 * r)
        return y, z, joined(p[:r] for p in pairs), joined(p[r:] for p in pairs)


# --- gemma --------------------------------------------------------------------------------------------------

@arch("gemma")
class Gemma(Decoder):
    pairs, act = NEOX, staticmethod(gelu)

    def start(self, tokens):
        return [scaled(x, math.sqrt(self.E)) for x in super().start(tokens)]


@arch("gemma2")
class Gemma2(PostNorms, Gemma):
    PERIOD, LARGE, ATTENTION_CAP, FINAL_CAP = 2, 46, 50.0, 30.0

    def setup(self):
        self.width = self.key("attention.sliding_window", 4096)
        self.period = self.key("attention.sliding_window_pattern", self.PERIOD)
        if isinstance(self.period, list):
            self.period = self.PERIOD
        if self.L == self.LARGE:
            self.scale = 1 / math.sqrt(self.E / self.heads[0])
        self.cap = self.key("attn_logit_softcapping", self.ATTENTION_CAP)
        self.make_ropes()

    def make_ropes(self):
        self.rope, self.rope_local = self.make_rope(), self.make_rope(self.key("rope.freq_base_swa",
                                                                               self.base))

    def slides(self, n):
        return self.width > 0 and n % self.period < self.period - 1

    def rope_of(self, n):
        return self.rope_local if self.slides(n) else self.rope

    def visible(self, n):
        return window(self.width) if self.slides(n) else causal

    def options(self, n):
        return {"cap": self.cap}

    def finish(self, logits):
        return [softcap(v, self.key("final_logit_softcapping", self.FINAL_CAP)) for v in logits]


@arch("gemma3")
class Gemma3(HeadNorms, Gemma2):
    PERIOD, LARGE, ATTENTION_CAP, FINAL_CAP = 6, 62, 0, 0

    def make_ropes(self):
        self.width, self.cap = self.key("attention.sliding_window", 0), 0
        magnitude = self.key("rope.scaling.attn_factor", 1.0)
        self.rope, self.rope_local = self.make_rope(), Rope(NEOX, self.R,
                                                            self.key("rope.freq_base_swa", 10000.0),
                                                            magnitude=magnitude)


@arch("gemma4")
class Gemma4(PostNorms, Gemma):
    """Heads of two sizes, keys shared by the last layers, a second embedding per layer."""

    def setup(self):
        self.scale, self.P = 1.0, self.key("embedding_length_per_layer_input", 0)
        self.sliding = self.key("attention.sliding_window_pattern")
        self.first_shared = self.L - self.key("attention.shared_kv_layers", 0)
        self.rope = Rope(NEOX, self.R, self.base, 1.0, self.f.vector("rope_freqs.weight"))
        self.rope_local = Rope(NEOX, self.key("rope.dimension_count_swa",
                                              self.key("attention.key_length_swa")),
                               self.key("rope.freq_base_swa", 10000.0))
        self.routing = Routing(self.key("expert_used_count", 0), normalised=True)
        self.kept = {}

    def rope_of(self, n):
        return self.rope_local if self.sliding[n] else self.rope

    def sizes(self, n):
        return (self.key("attention.key_length_swa"),
                self.key("attention.value_length_swa")) if self.sliding[n] else (self.D, self.Dv)

    def keys_values(self, n, rows):
        """Of this layer, or of the last one of its kind that has some."""
        if n >= self.first_shared:
            return self.kept[self.first_shared - (2 if self.sliding[n] else 1)]
        D, Dv = self.sizes(n)
        k, v = [], []
        for p, x in enumerate(rows):
            raw = self.linear(n, "attn_k", x)
            value = self.linear(n, "attn_v", x) if self.has(n, "attn_v") else raw
            k.append(self.rotated(n, [self.norm(n, "attn_k_norm", h) for h in cut(raw, D)], p))
            v.append([rms(h, None, self.eps) for h in cut(value, Dv)])
        self.kept[n] = k, v
        return k, v

    def mix(self, n, rows):
        k, v = self.keys_values(n, rows)
        D = self.sizes(n)[0]
        q = [self.rotated(n, [self.norm(n, "attn_q_norm", h) for h in cut(self.linear(n, "attn_q", x), D)],
                          p) for p, x in enumerate(rows)]
        visible = window(self.key("attention.sliding_window")) if self.sliding[n] else causal
        return [self.linear(n, "attn_output", row) for row in attention(q, k, v, self.scale, visible)]

    def route(self, n, x):
        x = [a * b / math.sqrt(self.E) for a,
             b in zip(rms(x, None, self.eps), self.w(n, "ffn_gate_inp.scale"))]
        return self.routing(self.linear(n, "ffn_gate_inp", x))

    def feed_all(self, n, x):
        y = self.ffn(n, self.norm(n, "ffn_norm", x))
        if self.has(n, "ffn_gate_inp"):
            moe = self.experts(n, self.norm(n, "pre_ffw_norm_2", x), self.route(n, x))
            y = add(self.norm(n, "post_ffw_norm_1", y), self.norm(n, "post_ffw_norm_2", moe))
        return add(x, self.norm(n, "post_ffw_norm", y))

    def second_embeddings(self, tokens, rows):
        """[layer][token][P]"""
        per_token = []
        for token, x in zip(tokens, rows):
            t = cut(scaled(self.f.rows("per_layer_token_embd.weight")[token], math.sqrt(self.P)), self.P)
            u = cut(scaled(matvec(self.f.rows("per_layer_model_proj.weight"), x), 1 / math.sqrt(self.E)),
                    self.P)
            norm = self.f.vector("per_layer_proj_norm.weight")
            per_token.append([scaled(add(rms(b, norm, self.eps), a), 1 / math.sqrt(2)) for a, b in zip(t, u)])
        return [[parts[n] for parts in per_token] for n in range(self.L)]

    def body(self, tokens):
        rows = self.start(tokens)
        second = self.second_embeddings(tokens, rows) if self.P else None
        for n in range(self.L):
            mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
            rows = [self.feed_all(n, add(x, self.norm(n, "post_attention_norm", a))) for x,
                    a in zip(rows, mixed)]
            if second:
                gates = [[gelu(g) * s for g, s in zip(self.linear(n, "inp_gate", x), part)] for x,
                         part in zip(rows, second[n])]
                rows = [add(x, self.norm(n, "post_norm", self.linear(n, "proj", g))) for x,
                        g in zip(rows, gates)]
            if self.has(n, "layer_output_scale"):
                rows = [scaled(x, self.w(n, "layer_output_scale.weight")[0]) for x in rows]
        return rows

    def finish(self, logits):
        return [softcap(v, self.key("final_logit_softcapping", 30.0)) for v in logits]


# --- LayerNorm models ---------------------------------------------------------------------------------------

class LayerNorms(Decoder):
    norm_kind, pairs = "layer", NEOX


@arch("gpt2")
class Gpt2(LayerNorms):
    def setup(self):
        self.rope = None

    def start(self, tokens):
        return [add(x, self.f.rows("position_embd.weight")[p]) for p, x in enumerate(super().start(tokens))]


@arch("starcoder2")
class Starcoder2(LayerNorms):
    pass


@arch("phi2")
class Phi2(ParallelBlock, LayerNorms):
    pass


@arch("gptneox")
class GptNeox(LayerNorms):
    def block(self, n, rows):
        if not self.key("use_parallel_residual"):
            return super().block(n, rows)
        mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
        return [add(add(x, a), self.feed(n, self.norm(n, "ffn_norm", x))) for x, a in zip(rows, mixed)]


@arch("falcon")
class Falcon(LayerNorms):
    def block(self, n, rows):
        mixed = self.mix(n, [self.norm(n, "attn_norm_2" if self.has(n, "attn_norm_2") else "attn_norm", x)
                             for x in rows])
        return [add(add(x, a), self.feed(n, self.norm(n, "attn_norm", x))) for x, a in zip(rows, mixed)]


class HeadLayerNorms:
    """LayerNorm over each head of q and k, with weights of its own per head."""

    def qk_norm(self, n, x, which):
        name = f"attn_{which}_norm.weight"
        heads = cut(x, self.D)
        if self.w(n, name) is None:
            return heads
        return [layer_norm(head, w, None, self.eps) for head, w in zip(heads, self.f.rows(f"blk.{n}.{name}"))]


@arch("stablelm")
class StableLM(HeadLayerNorms, LayerNorms):
    def block(self, n, rows):
        return super().block(n, rows) if self.has(n, "ffn_norm") else ParallelBlock.block(self, n, rows)


@arch("command-r")
class CommandR(ParallelBlock, HeadLayerNorms, LayerNorms):
    pairs = NORM

    def finish(self, logits):
        return scaled(logits, self.key("logit_scale", 0) or 1.0)


@arch("cohere2")
class Cohere2(ParallelBlock, LayerNorms):
    pairs = NORM

    def slides(self, n):
        return n % self.key("attention.sliding_window_pattern",
                            4) < self.key("attention.sliding_window_pattern", 4) - 1

    def rope_of(self, n):
        return self.rope if self.slides(n) else None

    def visible(self, n):
        return window(self.key("attention.sliding_window")) if self.slides(n) else causal

    def finish(self, logits):
        return scaled(logits, self.key("logit_scale"))


@arch("mpt")
class Mpt(LayerNorms):
    def setup(self):
        self.rope, bias = None, self.key("attention.max_alibi_bias", 0)
        self.slopes = alibi_slopes(self.heads[0], bias) if bias else None

    def start(self, tokens):
        rows = super().start(tokens)
        if not self.f.has("position_embd.weight"):
            return rows
        return [add(x, self.f.rows("position_embd.weight")[p]) for p, x in enumerate(rows)]

    def project(self, n, x):
        clamp = self.key("attention.clamp_kqv", 0) or math.inf
        qkv = [min(clamp, max(-clamp, v)) for v in self.linear(n, "attn_qkv", x)]
        q_size, k_size = self.heads[n] * self.D, self.kv_heads[n] * self.D
        q, k, v = qkv[:q_size], qkv[q_size:q_size + k_size], qkv[q_size + k_size:]
        if self.has(n, "attn_q_norm"):
            q, k = self.norm(n, "attn_q_norm", q), self.norm(n, "attn_k_norm", k)
        return cut(q, self.D), cut(k, self.D), cut(v, self.Dv)

    def options(self, n):
        return {"slopes": self.slopes}

    def ffn(self, n, x, suffix=""):
        hidden = [gelu(v) for v in self.linear(n, "ffn_up", x)]
        scales = self.w(n, "ffn.act.scales")
        return self.linear(n, "ffn_down", [h / s for h, s in zip(hidden, scales)] if scales else hidden)


@arch("bloom")
class Bloom(LayerNorms):
    def setup(self):
        self.rope, self.slopes = None, alibi_slopes(self.heads[0], 8.0)

    def start(self, tokens):
        return [self.normed(x, "token_embd_norm") for x in super().start(tokens)]

    def options(self, n):
        return {"slopes": self.slopes}


# --- mixtures with their own attention ----------------------------------------------------------------------

@arch("gpt-oss")
class GptOss(Decoder):
    pairs = NEOX

    def make_routing(self):
        return Routing(self.key("expert_used_count"), gating="selected")

    def setup(self):
        self.D = self.Dv = self.R
        self.scale = 1 / math.sqrt(self.D)
        self.rope = self.make_rope()

    def visible(self, n):
        return window(self.key("attention.sliding_window")) if n % 2 == 0 else causal

    def options(self, n):
        return {"sinks": self.w(n, "attn_sinks.weight")}

    def gated(self, gate, up):
        gate = [min(g, 7) for g in gate]
        return [g * sigmoid(1.702 * g) * (min(7, max(-7, u)) + 1) for g, u in zip(gate, up)]

    def block(self, n, rows):
        mixed = self.mix(n, [self.norm(n, "attn_norm", x) for x in rows])
        rows = [add(x, a) for x, a in zip(rows, mixed)]
        return [add(x, self.experts(n, self.norm(n, "post_attention_norm", x))) for x in rows]


@arch("deepseek2")
class DeepSeek2(Decoder):
    """Keys and values from one small row per token; the direct form, nothing absorbed."""

    def make_routing(self):
        gating = {0: "softmax", 1: "softmax", 2: "sigmoid"}[self.key("expert_gating_func", 0)]
        return Routing(self.key("expert_used_count", 0), gating, self.key("expert_weights_norm", False),
                       self.key("expert_weights_scale", 0),
                       self.key("expert_group_count", 0), self.key("expert_group_used_count", 0))

    def setup(self):
        self.r, self.R = self.key("attention.kv_lora_rank"), self.key("rope.dimension_count")
        self.D = self.key("attention.key_length_mla", self.D)
        self.Dv = self.key("attention.value_length_mla", self.Dv)
        self.Dn = self.D - self.R
        self.lam = self.key("rope.scaling.yarn_log_multiplier", 0.0) / 0.1
        self.rope = self.make_rope()
        kind, s = self.scaling()
        factor = self.key("rope.scaling.attn_factor", 1.0)
        m0 = (self.yarn_magnitude(s) if kind == "yarn"
              else factor * (1 + 0.1 * math.log(s)) if s > 1 else factor)
        m = m0 * (1 + 0.1 * self.lam * math.log(s)) if s > 1 else m0
        self.scale = m * m / math.sqrt(self.D)

    def yarn_magnitude(self, s):
        if self.lam:
            return self.key("rope.scaling.attn_factor", 1.0)
        return super().yarn_magnitude(s)

    def query(self, n, x):
        if self.has(n, "attn_q"):
            return self.linear(n, "attn_q", x)
        return self.linear(n, "attn_q_b", self.norm(n, "attn_q_a_norm", self.linear(n, "attn_q_a", x)))

    def expand(self, n, ckv):
        """Per head the part of the key without position, and the value."""
        H, Dn = self.heads[n], self.Dn
        if self.has(n, "attn_kv_b"):
            return [(h[:Dn], h[Dn:]) for h in cut(self.linear(n, "attn_kv_b", ckv), Dn + self.Dv)]
        k_b = cut(self.f.rows(f"blk.{n}.attn_k_b.weight"), self.r)
        v_b = cut(self.f.rows(f"blk.{n}.attn_v_b.weight"), self.Dv)
        return [([sum(k_b[h][c][i] * ckv[c] for c in range(self.r)) for i in range(Dn)], matvec(v_b[h], ckv))
                for h in range(H)]

    def mix(self, n, rows):
        q, k, v = [], [], []
        for p, x in enumerate(rows):
            q.append([h[:self.Dn] + self.rope(h[self.Dn:], p) for h in cut(self.query(n, x), self.D)])
            c = self.linear(n, "attn_kv_a_mqa", x)
            shared = self.rope(c[self.r:], p)
            parts = self.expand(n, self.norm(n, "attn_kv_a_norm", c[:self.r]))
            k.append([part[0] + shared for part in parts])
            v.append([part[1] for part in parts])
        return [self.linear(n, "attn_output", row) for row in attention(q, k, v, self.scale)]

    def feed(self, n, x):
        return self.ffn(n, x) if n < self.key("leading_dense_block_count", 0) else self.experts(n, x)


# --- encoders -----------------------------------------------------------------------------------------------

@arch("bert", "nomic-bert")
class Bert(LayerNorms):
    def setup(self):
        self.rope = self.make_rope() if self.f.arch == "nomic-bert" else None

    def visible(self, n):
        return everything

    def start(self, tokens):
        rows = [add(x, self.f.rows("token_types.weight")[0]) for x in super().start(tokens)]
        if self.f.has("position_embd.weight"):
            rows = [add(x, self.f.rows("position_embd.weight")[p]) for p, x in enumerate(rows)]
        return [self.normed(x, "token_embd_norm") for x in rows]

    def block(self, n, rows):
        rows = [self.norm(n, "attn_output_norm", add(x, a)) for x, a in zip(rows, self.mix(n, rows))]
        return [self.norm(n, "layer_output_norm", add(x, self.ffn(n, x))) for x in rows]

    def logits(self, tokens):
        """Rows of all tokens: encoders have no head."""
        return self.body(tokens)

    def pooled(self, rows):
        kind = self.key("pooling_type", 0)
        if kind == 1:
            return scaled([sum(column) for column in zip(*rows)], 1 / len(rows))
        if kind in (2, 3):
            return rows[0 if kind == 2 else -1]
        x = rows[0]
        if self.f.has("cls.weight"):
            x = [math.tanh(v) for v in matvec(self.f.rows("cls.weight"), x, self.f.vector("cls.bias"))]
        if self.f.has("cls.output.weight"):
            x = matvec(self.f.rows("cls.output.weight"), x, self.f.vector("cls.output.bias"))
        return x
