# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The generated models: every architecture, every branch of it that a file can choose."""
from .builder import Builder

CASES = []  # (name, function of a seed that returns a Builder, options)


def case(name, **options):
    """options: context, the -c of the run; tokens, how many; tied by name to the architecture before the
    first dot."""
    def register(make):
        CASES.append((name, make, options))
        return make
    return register


def variants(name, **table):
    """One function for several cases: each row of `table` is its keyword arguments; those named _x go to the
    test."""
    def register(make):
        for variant, row in table.items():
            options = {k[1:]: v for k, v in row.items() if k.startswith("_")}
            own = {k: v for k, v in row.items() if not k.startswith("_")}
            CASES.append((f"{name}.{variant}", lambda seed, own=own: make(seed, **own), options))
        return make
    return register


def layers(b, attention=None, ffn=None, norms=("attn_norm", "ffn_norm"), norm_bias=None, each=None):
    """Norms, attention and feed-forward of every layer."""
    for n in range(b.L):
        for name in norms:
            b.norm(f"blk.{n}.{name}", bias=norm_bias)
        b.attention(n, **(attention or {}))
        if ffn is not None:
            b.ffn(n, **ffn)
        if each:
            each(n)
    return b


# --- the llama family ---------------------------------------------------------------------------------------

@variants("llama",
          plain=dict(),
          biases=dict(bias=True, sizes=dict(D=24)),
          fused=dict(fused=True, bias=True, tied=True),
          multi_query=dict(sizes=dict(K=1, L=2)),
          values=dict(sizes=dict(D=24, Dv=8, L=2)),
          arrays=dict(sizes=dict(H=[4, 2, 6], K=[2, 1, 6], F=[96, 64, 128])),
          freqs=dict(freqs=True),
          linear=dict(rope=dict(scaling__type="linear", scaling__factor=4.0)),
          scale_linear=dict(rope=dict(scale_linear=3.0)),
          unscaled=dict(rope=dict(scaling__type="none", scaling__factor=4.0)),
          yarn=dict(rope=dict(base=500000.0, scaling__type="yarn", scaling__factor=8.0,
                              scaling__original_context_length=32)),
          yarn_factor=dict(rope=dict(scaling__type="yarn", scaling__factor=4.0,
                                     scaling__original_context_length=128, scaling__attn_factor=0.9)),
          long=dict(rope=dict(scaling__type="longrope", scaling__attn_factor=1.2,
                              scaling__original_context_length=64), long=True, _context=256),
          short=dict(rope=dict(scaling__type="longrope", scaling__attn_factor=1.2,
                               scaling__original_context_length=256), long=True, _context=256))
def llama(seed, bias=False, fused=False, tied=False, sizes=None, rope=None, freqs=False, long=False):
    b = Builder("llama", seed, **(sizes or {})).rope(**(rope or {})).embeddings(tied=tied)
    if freqs:
        b.factors("rope_freqs.weight")
    if long:
        b.factors("rope_factors_long.weight", 1, 20)
        b.factors("rope_factors_short.weight", 1, 3)
    return layers(b, dict(fused=fused, bias=bias, out_bias=bias), dict(bias=bias))


def mixture(b, experts=6, used=2, size=None, shared=0, fused=False, attention=None):
    """Layers with experts in place of the feed-forward."""
    b.set(expert_count=experts, expert_used_count=used)

    def each(n):
        b.experts(n, experts, size or b.F, fused)
        if shared:
            b.ffn(n, suffix="_shexp", size=shared)
    return layers(b, attention, None, each=each)


@variants("llama", experts=dict(), experts_fused=dict(fused=True), expert=dict(experts=1, used=1))
def llama_experts(seed, **options):
    return mixture(Builder("llama", seed, L=2, F=48).rope().embeddings(), **options)


@variants("llama", bare=dict(sizes=dict(E=60, H=6, K=6, D=10)), thirds=dict(sizes=dict(E=60, H=6, K=2, D=18)))
def llama_bare(seed, sizes):
    """Nothing that has a default."""
    b = Builder("llama", seed, L=2, **sizes).rope().embeddings().drop("rope.dimension_count",
                                                                      "rope.freq_base")
    if b.H == b.K:
        b.drop("attention.head_count_kv")
    return layers(b, None, {})


@variants("mistral3",
          plain=dict(rope=dict()),
          yarn=dict(rope=dict(base=1e6, scaling__type="yarn", scaling__factor=16.0,
                              scaling__original_context_length=8,
                              scaling__yarn_beta_fast=4.0, scaling__yarn_beta_slow=0.5,
                              scaling__yarn_log_multiplier=1.0), temperature=0.3),
          yarn_other=dict(rope=dict(scaling__type="yarn", scaling__factor=4.0,
                                    scaling__original_context_length=16,
                                    scaling__yarn_log_multiplier=0.5, scaling__attn_factor=1.1)),
          experts=dict(rope=dict(), experts=True))
def mistral3(seed, rope, temperature=0.0, experts=False):
    b = Builder("mistral3", seed, D=24, L=2).rope(**rope).embeddings()
    if temperature:
        b.set(**{"attention.temperature_scale": temperature})
    return mixture(b, size=96) if experts else layers(b, None, {})


@variants("llama", nvfp4=dict(), nvfp4_experts=dict(experts=True))
def llama_nvfp4(seed, experts=False):
    b = Builder("llama", seed, L=2, F=64).rope().embeddings()
    b = mixture(b, attention=dict(bias=True)) if experts else layers(b, dict(bias=True), {})
    for n in range(b.L):
        for name in ("ffn_gate", "ffn_up", "ffn_down"):
            b.as_nvfp4(f"blk.{n}.{name}" + ("_exps" if experts else ""))
        for name in ("attn_q", "attn_v", "attn_output"):
            b.as_nvfp4(f"blk.{n}.{name}")
    return b


SCALES = {"embedding_scale": 1.7, "attention.scale": 0.3, "residual_scale": 0.6, "logit_scale": 2.5}


@variants("granite", scales=dict(keys=SCALES, freqs=True), unset=dict(keys={"logit_scale": 3.0}, tied=True),
          no_positions=dict(keys={**SCALES, "rope.scaling.finetuned": False}))
def granite(seed, keys, freqs=False, tied=False):
    b = Builder("granite", seed).rope().embeddings(tied=tied).set(**keys)
    if freqs:
        b.factors("rope_freqs.weight")
    return layers(b, dict(bias=True), {})


@variants("granitemoe", plain=dict(), shared=dict(shared=40))
def granitemoe(seed, shared=0):
    b = Builder("granitemoe", seed, L=2, F=40).rope().embeddings().set(**SCALES)
    if shared:
        b.set(expert_shared_feed_forward_length=shared)
    return mixture(b, shared=shared)


@case("smollm3.plain")
def smollm3(seed):
    return layers(Builder("smollm3", seed, L=5).rope(base=2e6).embeddings(tied=True), None, {})


@variants("exaone", plain=dict(), freqs=dict(freqs=True))
def exaone(seed, freqs=False):
    b = Builder("exaone", seed).rope().embeddings()
    if freqs:
        b.factors("rope_freqs.weight")
    return layers(b, dict(out_bias=True), {})


@variants("phi3",
          long=dict(old=64, R=16, _context=256), short=dict(old=256, R=16, _context=256),
          partial=dict(old=64, R=12, tied=True, _context=256),
          plain=dict(old=0, R=16))
def phi3(seed, old, R, tied=False):
    b = Builder("phi3", seed, R=R).embeddings(tied=tied)
    b.rope(**(dict(scaling__original_context_length=old, scaling__attn_factor=1.19) if old else {}))
    b.set(**{"attention.sliding_window": 6})
    if old:
        b.factors("rope_factors_long.weight", 1, 30)
        b.factors("rope_factors_short.weight", 1, 3)
    return layers(b, dict(fused=True), dict(kind="fused"))


@variants("olmo2", plain=dict(), window=dict(window=6),
          yarn=dict(window=6, scaling__type="yarn", scaling__factor=8.0, scaling__original_context_length=64,
                    scaling__attn_factor=1.2))
def olmo2(seed, window=0, **rope):
    b = Builder("olmo2", seed, L=5 if window else 3, K=2).rope(base=500000.0, **rope).embeddings(tied=False)
    if window:
        b.set(**{"attention.sliding_window": window})

    def each(n):
        b.norm(f"blk.{n}.attn_q_norm", b.H * b.D, centre=1.4)
        b.norm(f"blk.{n}.attn_k_norm", b.K * b.D, centre=1.4)
    return layers(b, None, {}, ("post_attention_norm", "post_ffw_norm"), each=each)


@variants("glm4", plain=dict(), biases=dict(bias=True), sections=dict(sections=[2, 1, 1, 0]))
def glm4(seed, bias=False, sections=None):
    b = Builder("glm4", seed, R=8).rope().embeddings()
    if sections:
        b.set(**{"rope.dimension_sections": sections})
    return layers(b, dict(bias=bias), dict(kind="fused"),
                  ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"))


@variants("llama4", plain=dict(), dense=dict(step=2, freqs=True),
          unchunked=dict(keys={"attention.sliding_window": 0}), many=dict(experts=128, L=1),
          pairs=dict(used=2))
def llama4(seed, step=1, experts=4, L=4, freqs=False, keys=None, used=1):
    size = 8 if experts > 8 else 32
    b = Builder("llama4", seed, L=L).rope(base=500000.0).embeddings()
    b.set(expert_count=experts, expert_used_count=used, expert_feed_forward_length=size,
          interleave_moe_layer_step=step, **(keys or {}))
    if freqs:
        b.factors("rope_freqs.weight")

    def each(n):
        if (n + 1) % step == 0:
            b.experts(n, experts, size)
            b.ffn(n, suffix="_shexp", size=size)
        else:
            b.ffn(n)
    return layers(b, None, None, each=each)


# --- the qwen family ----------------------------------------------------------------------------------------

@variants("qwen2", plain=dict(),
          yarn=dict(scaling__type="yarn", scaling__factor=4.0, scaling__original_context_length=32))
def qwen2(seed, **rope):
    return layers(Builder("qwen2", seed).rope(base=1e6, **rope).embeddings(tied=True), dict(bias=True), {})


@variants("qwen3", plain=dict(), tied=dict(tied=True))
def qwen3(seed, tied=False):
    b = Builder("qwen3", seed, D=24).rope(base=1e6).embeddings(tied=tied)
    return layers(b, None, {}, each=b.qk_norms)


@variants("qwen2moe", keys=dict(size=40, shared=56), defaults=dict())
def qwen2moe(seed, size=0, shared=0):
    b = Builder("qwen2moe", seed, L=2, F=80).rope(base=1e6).embeddings()
    b.set(expert_count=5, expert_used_count=2)
    if size:
        b.set(expert_feed_forward_length=size, expert_shared_feed_forward_length=shared)

    def each(n):
        b.experts(n, 5, size or 40)
        b.ffn(n, suffix="_shexp", size=shared or 80)
        b.values(f"blk.{n}.ffn_gate_inp_shexp.weight", b.E, spread=0.2)
    return layers(b, dict(bias=True), None, each=each)


@variants("qwen3moe", keys=dict(size=40), defaults=dict())
def qwen3moe(seed, size=0):
    b = Builder("qwen3moe", seed, L=2, D=24, F=96).rope(base=1e6).embeddings()
    b.set(expert_count=8, expert_used_count=3)
    if size:
        b.set(expert_feed_forward_length=size)

    def each(n):
        b.qk_norms(n)
        b.experts(n, 8, size or 32)
    return layers(b, None, None, each=each)


@variants("qwen35", plain=dict(), layers=dict(kinds=[True, False, True]),
          groups=dict(nk=1, nv=3, interval=2, C=2),
          sizes=dict(nk=3, nv=6, interval=2, S=7, R=24, H=6), one=dict(nk=1, nv=1, interval=2))
def qwen35(seed, **options):
    return hybrid("qwen35", seed, **options)


@variants("qwen35moe", plain=dict(experts=5))
def qwen35moe(seed, **options):
    return hybrid("qwen35moe", seed, **options)


@variants("qwen3next", plain=dict(experts=5, interval=2), rows=dict(experts=4, interval=2, interleaved=True),
          groups=dict(experts=4, nk=3, nv=3, interval=3, interleaved=True),
          apart=dict(experts=4, nk=2, nv=6, interval=2, apart=True))
def qwen3next(seed, **options):
    return hybrid("qwen3next", seed, **options)


def hybrid(arch, seed, kinds=None, nk=2, nv=4, interval=4, C=4, experts=0, interleaved=False, apart=False,
           S=12, R=8, H=4):
    L = len(kinds) if kinds else interval
    b = Builder(arch, seed, L=L, D=24, R=R, H=H).rope(base=1e6, dimension_sections=[2, 1, 1, 0]).embeddings()
    b.set(**{"ssm.conv_kernel": C, "ssm.state_size": S, "ssm.group_count": nk, "ssm.time_step_rank": nv,
             "ssm.inner_size": nv * S})
    if experts:
        b.set(expert_count=experts, expert_used_count=2, expert_feed_forward_length=40,
              expert_shared_feed_forward_length=56)
    if kinds:
        b.set(**{"attention.recurrent_layers": kinds})
    elif interval != 4:
        b.set(full_attention_interval=interval)
    for n in range(L):
        recurrent, name = kinds[n] if kinds else (n + 1) % interval != 0, f"blk.{n}."
        b.norm(name + "attn_norm")
        b.norm(name + "post_attention_norm")
        if experts:
            b.experts(n, experts, 40)
            b.ffn(n, suffix="_shexp", size=56)
            b.values(name + "ffn_gate_inp_shexp.weight", b.E, spread=0.2)
        else:
            b.ffn(n)
        if recurrent:
            delta_net(b, name, (nk, nv, S, C), interleaved, apart)
        else:
            b.attention(n)
            b.matrix(name + "attn_q", b.E, 2 * b.H * b.D, gain=1.6)
            b.qk_norms(n)
    return b


def delta_net(b, name, sizes, interleaved, apart):
    nk, nv, S, C = sizes
    channels = 2 * nk * S + nv * S
    if interleaved:
        b.matrix(name + "ssm_in", b.E, channels + nv * S, gain=1.5)
    else:
        b.matrix(name + "attn_qkv", b.E, channels, gain=1.5)
        b.matrix(name + "attn_gate", b.E, nv * S, gain=1.5)
    b.values(name + "ssm_conv1d.weight", C, channels, spread=0.6)
    if b.arch == "qwen3next" and not apart:
        b.matrix(name + "ssm_ba", b.E, 2 * nv, gain=1.2)
    else:
        b.matrix(name + "ssm_beta", b.E, nv, gain=1.5)
        b.matrix(name + "ssm_alpha", b.E, nv, gain=1.0)
    b.values(name + "ssm_dt.bias", nv, spread=0.5)
    b.put(name + "ssm_a", [nv], [-0.05 - 0.4 * b.random.random() for _ in range(nv)])
    b.norm(name + "ssm_norm", S)
    b.matrix(name + "ssm_out", nv * S, b.E, gain=1.5)


# --- gemma --------------------------------------------------------------------------------------------------

POST = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")


@case("gemma.plain")
def gemma(seed):
    return layers(Builder("gemma", seed, K=1, D=24).rope().embeddings(0.1, tied=True), None, {})


SMALL = dict(E=32, H=2, K=1, D=8, F=24)


YARN_KEYS = {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0,
             "rope.scaling.original_context_length": 32, "rope.scaling.attn_factor": 1.1}


@variants("gemma2", plain=dict(keys={"attention.sliding_window": 6}),
          capped=dict(keys={"attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.5}),
          window=dict(keys={"attention.sliding_window": 5, "rope.freq_base_swa": 100.0,
                            "attention.sliding_window_pattern": 3}),
          yarn=dict(keys={"attention.sliding_window": 5, "rope.freq_base_swa": 100.0, **YARN_KEYS},
                    sizes=dict(E=60, H=6, K=2, D=10)),
          large=dict(keys={"attention.sliding_window": 4}, sizes=dict(L=46, **SMALL), _tokens=12))
def gemma2(seed, keys, sizes=None):
    b = Builder("gemma2", seed, **(sizes or dict(D=24))).rope().embeddings(0.1, tied=True).set(**keys)
    return layers(b, None, {}, POST)


@variants("gemma3", plain=dict(keys={"attention.sliding_window": 6}, sizes=dict(L=7, D=24)),
          scaled=dict(keys={"attention.sliding_window": 6, "rope.scaling.type": "linear",
                            "rope.scaling.factor": 8.0, "attention.sliding_window_pattern": 2,
                            "rope.freq_base_swa": 500.0, "final_logit_softcapping": 1.5}, tied=False),
          no_window=dict(keys={}),
          yarn=dict(keys={"attention.sliding_window": 6, "attention.sliding_window_pattern": 2, **YARN_KEYS}),
          array=dict(keys={"attention.sliding_window": 6,
                           "attention.sliding_window_pattern": [False, True, False]}),
          large=dict(keys={"attention.sliding_window": 4}, sizes=dict(L=62, **SMALL), _tokens=10))
def gemma3(seed, keys, sizes=None, tied=True):
    b = Builder("gemma3", seed, **(sizes or dict(D=24))).rope(base=1e6).embeddings(0.1, tied=tied).set(**keys)
    return layers(b, None, {}, POST, each=b.qk_norms)


@variants("gemma4", plain=dict(), bare=dict(bare=True), second=dict(P=12), shared=dict(P=8, shared=2),
          shared_more=dict(shared=3, L=6), no_values=dict(no_values=True),
          arrays=dict(P=8, K=[2, 2, 1, 2, 1], F=[96, 64, 80, 96, 128]), experts=dict(experts=4),
          experts_split=dict(experts=4, split=True))
def gemma4(seed, P=0, shared=0, no_values=False, K=2, F=96, L=5, experts=0, split=False, bare=False):
    D, D_local = 24, 16
    sliding = [n % 3 != 2 and n != L - 1 for n in range(L)]
    if shared:  # the last two with keys are one of each kind
        sliding[L - shared - 2:L - shared] = [True, False]
    b = Builder("gemma4", seed, L=L, D=D, K=K, F=F).embeddings(0.1, tied=True)
    b.set(**{"attention.sliding_window": 6, "attention.sliding_window_pattern": sliding,
             "attention.key_length_swa": D_local,
             "attention.value_length_swa": D_local, "rope.dimension_count_swa": D_local,
             "attention.shared_kv_layers": shared,
             "embedding_length_per_layer_input": P, "rope.freq_base_swa": 10000.0,
             "final_logit_softcapping": 3.0}).rope(base=1e6)
    if bare:
        b.drop("rope.dimension_count_swa", "rope.freq_base_swa", "final_logit_softcapping",
               "attention.shared_kv_layers",
               "embedding_length_per_layer_input", "rope.dimension_count")
    b.put("rope_freqs.weight", [D // 2], [1.0] * (D // 8) + [1e30] * (D // 2 - D // 8))
    if P:
        b.values("per_layer_token_embd.weight", P * L, b.V, spread=0.3)
        b.matrix("per_layer_model_proj", b.E, P * L)
        b.norm("per_layer_proj_norm", P)
    if experts:
        b.set(expert_count=experts, expert_used_count=2, expert_feed_forward_length=32)
    for n in range(L):
        gemma4_layer(b, n, D_local if sliding[n] else D, n < L - shared, no_values and not sliding[n])
        if P:
            gemma4_second(b, n, P)
        if experts:
            b.experts(n, experts, 32, fused=not split)
            b.values(f"blk.{n}.ffn_gate_inp.scale", b.E, centre=10.0, spread=3.0)
            if split:
                b.values(f"blk.{n}.ffn_down_exps.scale", experts, centre=1.0, spread=0.4)
            for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
                b.norm(f"blk.{n}.{name}")
    return b


def gemma4_layer(b, n, D, own_keys, no_values):
    name, K = f"blk.{n}.", b.kv_heads(n)
    for norm in POST:
        b.norm(name + norm)
    b.matrix(name + "attn_q", b.E, b.H * D)
    b.norm(name + "attn_q_norm", D, centre=0.7)
    if own_keys:
        b.matrix(name + "attn_k", b.E, K * D)
        b.norm(name + "attn_k_norm", D, centre=0.7)
        if not no_values:
            b.matrix(name + "attn_v", b.E, K * D)
    b.matrix(name + "attn_output", b.H * D, b.E)
    b.ffn(n)


def gemma4_second(b, n, P):
    b.matrix(f"blk.{n}.inp_gate", b.E, P, gain=1.5)
    b.matrix(f"blk.{n}.proj", P, b.E, gain=1.5)
    b.norm(f"blk.{n}.post_norm")
    if n % 2 == 0:
        b.put(f"blk.{n}.layer_output_scale.weight", [1], [0.8])


# --- LayerNorm models ---------------------------------------------------------------------------------------

ALL_BIASES, PLAIN = dict(bias=True, out_bias=True), dict(kind="plain", bias=True)


@variants("gpt2", plain=dict(), odd=dict(sizes=dict(E=60, D=15)))
def gpt2(seed, sizes=None):
    b = Builder("gpt2", seed, "layer", K=4, **(sizes or {})).embeddings(tied=True)
    b.values("position_embd.weight", b.E, 256, spread=0.6)
    return layers(b, dict(fused=True, **ALL_BIASES), PLAIN)


@variants("starcoder2", plain=dict(), fused=dict(fused=True))
def starcoder2(seed, fused=False):
    b = Builder("starcoder2", seed,
                "layer").rope(base=1e5).embeddings(tied=True).set(**{"attention.sliding_window": 6})
    return layers(b, dict(fused=fused, **ALL_BIASES), PLAIN)


@variants("phi2", plain=dict(), fused=dict(fused=True))
def phi2(seed, fused=False):
    b = Builder("phi2", seed, "layer", K=4, R=8).rope().embeddings(bias=True)
    return layers(b, dict(fused=fused, **ALL_BIASES), PLAIN, ("attn_norm",))


@variants("gptneox", parallel=dict(parallel=True), sequential=dict(parallel=False))
def gptneox(seed, parallel):
    b = Builder("gptneox", seed, "layer", K=4, R=4).rope().embeddings().set(use_parallel_residual=parallel)
    return layers(b, dict(fused=True, **ALL_BIASES), PLAIN)


@variants("falcon", one_norm=dict(K=1, norms=("attn_norm",)),
          two_norms=dict(K=2, norms=("attn_norm", "attn_norm_2"), tied=False))
def falcon(seed, K, norms, tied=True):
    b = Builder("falcon", seed, "layer", K=K).rope().embeddings(tied=tied)
    return layers(b, dict(fused=True), dict(kind="plain"), norms)


@variants("stablelm", sequential=dict(bias=True), parallel=dict(norms=("attn_norm",)),
          normed=dict(norms=("attn_norm",), normed=True),
          normed_sequential=dict(normed=True))
def stablelm(seed, bias=False, norms=("attn_norm", "ffn_norm"), normed=False):
    b = Builder("stablelm", seed, "layer", R=4).rope().embeddings().set(use_parallel_residual=len(norms) == 2)
    return layers(b, dict(bias=bias), {}, norms, each=b.qk_norms_per_head if normed else None)


@variants("command-r", plain=dict(keys={"logit_scale": 0.6}), biases=dict(keys={}, bias=True),
          large=dict(keys={"logit_scale": 0.4}, sizes=dict(L=64, E=32, H=4, K=2, D=8, F=24), _tokens=10))
def command_r(seed, keys, bias=False, sizes=None):
    b = Builder("command-r", seed, "layer", **(sizes or {})).rope(base=75000.0).embeddings(
        tied=True, norm_bias=False).set(**keys)
    return layers(b, dict(bias=bias), {}, ("attn_norm",), False,
                  each=b.qk_norms_per_head if b.L >= 64 else None)


@variants("cohere2", plain=dict(keys={}),
          period=dict(keys={"attention.sliding_window_pattern": 2}, bias=True))
def cohere2(seed, keys, bias=False):
    b = Builder("cohere2", seed, "layer", L=5).rope(base=50000.0).embeddings(tied=True, norm_bias=False)
    b.set(logit_scale=0.5, **{"attention.sliding_window": 6}, **keys)
    return layers(b, dict(bias=bias), {}, ("attn_norm",), False)


@variants("mpt", plain=dict(keys={"attention.max_alibi_bias": 8.0, "attention.clamp_kqv": 1.2}),
          biases=dict(keys={"attention.max_alibi_bias": 4.0}, bias=True, extras=True, tied=False),
          positions=dict(keys={}, positions=True, bias=True))
def mpt(seed, keys, bias=False, extras=False, positions=False, tied=True):
    b = Builder("mpt", seed, "layer", E=48, H=6, K=6, D=8).embeddings(tied=tied, norm_bias=bias).set(**keys)
    if positions:
        b.values("position_embd.weight", b.E, 256, spread=0.6)

    def each(n):
        if extras:
            b.norm(f"blk.{n}.attn_q_norm", b.E, bias=True)
            b.norm(f"blk.{n}.attn_k_norm", b.E, bias=False)
            b.values(f"blk.{n}.ffn.act.scales", b.F, centre=1.2, spread=0.1)
    return layers(b, dict(fused=True, bias=bias, out_bias=bias), dict(kind="plain", bias=bias),
                  norm_bias=bias, each=each)


@variants("bloom", plain=dict(), odd=dict(E=55, H=5, K=5, D=11))
def bloom(seed, **sizes):
    b = Builder("bloom", seed, "layer", **(sizes or dict(E=48, H=6, K=6, D=8))).embeddings(tied=bool(sizes))
    b.norm("token_embd_norm")
    return layers(b, dict(fused=True, **ALL_BIASES), PLAIN)


# --- mixtures with their own attention ----------------------------------------------------------------------

@variants("gpt-oss", plain=dict(),
          yarn=dict(scaling__type="yarn", scaling__factor=32.0, scaling__original_context_length=64))
def gpt_oss(seed, **rope):
    b = Builder("gpt-oss", seed, D=24, L=3).rope(base=150000.0, **rope).embeddings()
    b.set(expert_count=5, expert_used_count=2, expert_feed_forward_length=40,
          **{"attention.sliding_window": 6})

    def each(n):
        b.values(f"blk.{n}.attn_sinks.weight", b.H, centre=1.0, spread=1.0)
        b.experts(n, 5, 40, bias=True, router_bias=True)
        for name in ("ffn_gate_exps", "ffn_up_exps"):  # some values beyond the clamp of 7
            dims, values = b.tensors[f"blk.{n}.{name}.weight"]
            b.put(f"blk.{n}.{name}.weight", dims, [2 * v for v in values])
    return layers(b, ALL_BIASES, None, ("attn_norm", "post_attention_norm"), each=each)


LITE = dict(expert_used_count=2, expert_shared_count=2)
V3 = dict(expert_used_count=3, expert_shared_count=1, expert_gating_func=2, expert_weights_norm=True,
          expert_weights_scale=2.5,
          expert_group_count=4, expert_group_used_count=2)
YARN = dict(scaling__type="yarn", scaling__factor=40.0, scaling__original_context_length=64)


@variants("deepseek2",
          lite=dict(keys=LITE, rq=0, old=True, rope=dict(scaling__yarn_log_multiplier=0.0707, **YARN)),
          lite_new=dict(keys=LITE, rq=0, rope=dict(scaling__yarn_log_multiplier=0.0707, **YARN)),
          v2=dict(keys={**LITE, "expert_weights_scale": 16.0}, rq=40, old=True,
                  rope=dict(scaling__yarn_log_multiplier=0.1, **YARN)),
          v3=dict(keys=V3, rq=40, bias=True, rope=dict(scaling__yarn_log_multiplier=0.1, **YARN)),
          v3_old=dict(keys=V3, rq=40, bias=True, old=True,
                      rope=dict(scaling__yarn_log_multiplier=0.1, **YARN)),
          yarn=dict(keys=LITE, rq=40, rope=YARN),
          yarn_zero=dict(keys=LITE, rq=0, rope=dict(scaling__yarn_log_multiplier=0.0, **YARN)),
          odd=dict(keys=V3, rq=27, bias=True, rope={}, sizes=(5, 33, 6, 11, 13)),
          one=dict(keys=LITE, rq=40, rope={}, sizes=(1, 32, 8, 16, 12)),
          unscaled=dict(keys={**LITE, "expert_gating_func": 1, "expert_weights_norm": True}, rq=40, dense=0,
                        rope={}),
          linear=dict(keys=LITE, rq=0, rope=dict(scaling__type="linear", scaling__factor=4.0)))
def deepseek2(seed, keys, rq, rope, old=False, bias=False, dense=1, sizes=(4, 32, 8, 16, 12)):
    (H, r, R, Dn, Dv), experts, size = sizes, 8, 32
    b = Builder("deepseek2", seed, L=3, H=H, K=H if old else 1, R=R).rope(**rope).embeddings()
    b.set(expert_count=experts, expert_feed_forward_length=size, leading_dense_block_count=dense, **keys)
    b.set(**{"attention.kv_lora_rank": r, "attention.q_lora_rank": rq} if rq
          else {"attention.kv_lora_rank": r})
    b.set(**({"attention.key_length": Dn + R, "attention.value_length": Dv} if old else
             {"attention.key_length": r + R, "attention.value_length": r, "attention.key_length_mla": Dn + R,
              "attention.value_length_mla": Dv}))
    for n in range(b.L):
        b.norm(f"blk.{n}.attn_norm")
        b.norm(f"blk.{n}.ffn_norm")
        compressed_attention(b, f"blk.{n}.", rq, (H, r, R, Dn, Dv), old)
        if n < dense:
            b.ffn(n)
            continue
        b.experts(n, experts, size)
        b.ffn(n, suffix="_shexp", size=size * keys["expert_shared_count"])
        if bias:
            b.values(f"blk.{n}.exp_probs_b.bias", experts, spread=0.2)
    return b


def compressed_attention(b, name, rq, sizes, old):
    H, r, R, Dn, Dv = sizes
    if rq:
        b.matrix(name + "attn_q_a", b.E, rq)
        b.norm(name + "attn_q_a_norm", rq)
        b.matrix(name + "attn_q_b", rq, H * (Dn + R), gain=1.6)
    else:
        b.matrix(name + "attn_q", b.E, H * (Dn + R), gain=1.6)
    b.matrix(name + "attn_kv_a_mqa", b.E, r + R, gain=1.6)
    b.norm(name + "attn_kv_a_norm", r)
    if old:
        b.matrix(name + "attn_kv_b", r, H * (Dn + Dv), gain=1.3)
    else:
        b.values(name + "attn_k_b.weight", Dn, r, H, spread=1.3 / r ** 0.5)
        b.values(name + "attn_v_b.weight", r, Dv, H, spread=1.0 / r ** 0.5)
    b.matrix(name + "attn_output", H * Dv, b.E)


# --- encoders -----------------------------------------------------------------------------------------------

@variants("bert", mean=dict(pooling=1), first=dict(pooling=2), last=dict(pooling=3),
          rank=dict(pooling=4, head="cls", n=1),
          rank_plain=dict(pooling=4, n=3), fused=dict(pooling=1, fused=True),
          odd=dict(pooling=1, sizes=dict(E=57, H=3, K=3, D=19)),
          one_segment=dict(pooling=4, n=1, segments=1))
def bert(seed, pooling, head=None, n=0, fused=False, sizes=None, segments=2):
    b = Builder("bert", seed, "layer", **{"K": 4, "L": 2, **(sizes or {})}).set(pooling_type=pooling,
                                                                                **{"attention.causal": False})
    b.keys["tokenizer.ggml.token_type_count"] = segments
    encoder_start(b, segments)
    b.values("position_embd.weight", b.E, 256, spread=0.6)
    if head:
        b.matrix("cls", b.E, b.E, bias=True)
    if n:
        b.matrix("cls.output", b.E, n, bias=True)
    return layers(b, dict(fused=fused, **ALL_BIASES), PLAIN, ("attn_output_norm", "layer_output_norm"))


@variants("nomic-bert", mean=dict(pooling=1), first=dict(pooling=2),
          split=dict(pooling=1, fused=False, bias=True))
def nomic_bert(seed, pooling, fused=True, bias=False):
    b = Builder("nomic-bert", seed, "layer", K=4, L=2).rope(base=1000.0).set(pooling_type=pooling,
                                                                             **{"attention.causal": False})
    b.keys["tokenizer.ggml.token_type_count"] = 2
    encoder_start(b)
    return layers(b, dict(fused=fused, bias=bias), dict(bias=bias), ("attn_output_norm", "layer_output_norm"))


def encoder_start(b, segments=2):
    b.values("token_embd.weight", b.E, b.V, spread=0.7)
    b.values("token_types.weight", b.E, segments, spread=0.5)
    b.norm("token_embd_norm")
