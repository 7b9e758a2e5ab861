# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that h200.sh measures: commands, goals and floors, for an NVIDIA H200.

A run is one process of `tenon bench` or `tenon-check --bench`. Its goals are found by the key of a result
(see key_of_bench and key_of_check in measure.py). Goals and peers are given figures; floors are computed.
"""
from dataclasses import dataclass, field

# Rates of this device. Reading: kernels that only read, 8 GB. Products: the best library on random data.
READ = 4.42e12
PEAKS = {"16 bit": 700e12, "fp8": 1253e12, "int8": 907e12}
ELECTRIC = {"fp8": "fp8", "int8": "int8"}  # --precision -> the peak that bounds it


@dataclass
class Shape:
    """What a floor needs beside the sizes that `tenon bench` reports."""
    layers: int
    heads: int
    head_dim: int
    width: int
    vocab: int
    experts: int = 0
    used: int = 0


SHAPES = {
    "llama-8b": Shape(32, 32, 128, 4096, 128256),
    "llama-1b": Shape(16, 32, 64, 2048, 128256),
    "qwen2-7b": Shape(28, 28, 128, 3584, 152064),
    "qwen3moe-30b-a3b": Shape(48, 32, 128, 2048, 151936, 128, 8),
}


@dataclass
class Goal:
    must: float = None  # None: none is set
    aim: float = None
    peer: float = None
    text: str = ""      # of the peer


@dataclass
class Run:
    program: str  # "tenon" or "tenon-check"
    args: list
    label: str
    goals: dict = field(default_factory=dict)  # key of a result -> Goal
    unit: str = "t/s"
    shape: str = ""
    precision: str = "auto"


COUNTS = [1, 2, 4, 8, 16, 32, 64, 128, 256]
DECODE = {  # type: must, aim, llama.cpp of August 2026, by COUNTS
    "Q4_K_M": ([550, 1000, 1850, 3300, 5600, 10000, 15500, 21000, 26000],
               [650, 1150, 2200, 4000, 7000, 12500, 19500, 26000, 32000],
               [259, 439, 619, 758, 2046, 3373, 4693, 5413, None]),
    "BF16": ([248, 475, 930, 1800, 3450, 6800, 12500, 20000, 28000],
             [265, 520, 1000, 1950, 3850, 7500, 14000, 23500, 33000],
             [204, 334, 651, 1240, 2241, 4363, 7401, 11484, None]),
}
SWEEP_TYPES = ["Q4_K_M", "Q8_0", "Q4_0", "Q5_K_M", "Q6_K", "IQ4_XS", "MXFP4", "BF16"]


def bench(shape, kind, label, *args, goals=None, precision="auto", unit="t/s"):
    words = ["bench", "--backend", "cuda", "--shape", shape, "--type", kind, "--no-peaks", "--json"]
    if precision != "auto":
        words += ["--precision", precision]
    return Run("tenon", words + [str(a) for a in args], label, goals or {}, unit, shape, precision)


def listed(numbers):
    return ",".join(map(str, numbers))


def decode(o):
    """Decoding of 1 to 256 sequences, short contexts. A single one in a context of its own, unless quick."""
    runs = []
    for kind, (must, aim, peer) in DECODE.items():
        goals = {("tg", 0, n): Goal(must[i], aim[i], peer[i], "llama.cpp") for i, n in enumerate(COUNTS)}
        for counts in ([COUNTS] if o.quick else [[1], COUNTS[1:]]):
            runs.append(bench("llama-8b", kind, f"8B {kind}", "-p", 0, "-n", o.n, "-r", o.reps, "--sequences",
                              listed(o.shuffled(counts)), goals=goals))
    return runs


def prefill(o):
    """Prefill of one prompt. 4096 tokens run long enough for the clock to fall to what the power allows."""
    def goals(*rows):
        return {("pp", 0, n): Goal(must, aim, peer, "torch.compile") for n, must, aim, peer in rows}

    args = ["-n", 0, "-r", o.prefill_reps, "-p", listed(o.shuffled([512, 4096]))]
    eight = goals((512, 33e3, 38e3, None), (4096, 38e3, 42e3, None))
    fp8 = goals((4096, 52e3, 60e3, None))
    runs = [
        bench("llama-8b", "Q4_K_M", "8B Q4_K_M", *args, goals=eight),
        bench("llama-8b", "BF16", "8B BF16", *args,
              goals=goals((512, 41e3, 44e3, 40.8e3), (4096, 42e3, 45e3, 41.2e3))),
        bench("llama-1b", "BF16", "1B BF16", *args,
              goals=goals((512, 210e3, None, 213e3), (4096, 250e3, None, 245e3))),
        bench("llama-8b", "Q4_K_M", "8B Q4_K_M", *args, precision="fp8", goals=fp8),
    ]
    if not o.quick:
        runs += [
            bench("llama-8b", "BF16", "8B BF16", *args, precision="fp8", goals=fp8),
            bench("llama-8b", "Q4_K_M", "8B Q4_K_M", *args, precision="int8"),
            bench("llama-8b", "Q4_K_M", "8B Q4_K_M", "-n", 0, "-p", 65536, "-r", 2, "--no-warmup",
                  goals=goals((65536, 18.5e3, None, None))),
        ]
    return runs


def experts(o):
    """Qwen3-MoE 30B-A3B: prefill, one sequence and 32."""
    goals = {("pp", 0, 512): Goal(40e3, 50e3), ("pp", 0, 4096): Goal(52e3, 65e3), ("tg", 0, 1): Goal(560),
             ("tg", 0, 32): Goal(4600)}  # half of the floor
    return [bench("qwen3moe-30b-a3b", "Q4_K_M", "30B-A3B Q4_K_M", "-p", listed(o.shuffled([512, 4096])), "-n",
                  o.n, "-c", 8192, "-r", o.reps, "--sequences", "1,32", goals=goals)]


def depth(o):
    """Decoding with a long cache, and with a cache that is large but hardly used."""
    one = ["-p", 0, "-n", o.n, "-r", o.reps]
    goals = {("tg", 32000, 1): Goal(352), ("tg", 2000, 32): Goal(7500)}
    return [
        bench("llama-8b", "Q4_K_M", "8B Q4_K_M", *one, "-d", listed(o.shuffled([2000, 8000, 32000])),
              goals=goals),
        bench("llama-8b", "Q4_K_M", "8B Q4_K_M", *one, "-d", 2000, "--sequences", 32, goals=goals),
        bench("llama-8b", "Q4_K_M", "8B Q4_K_M, context 131072", *one, "-c", 131072,
              goals={("tg", 0, 1): Goal(550)}),
    ]


def classify(o):
    """Texts of 512 tokens to scores: Qwen2 of 7B with a classification head."""
    def run(precision, must, peer):
        goals = {("cls", 512, 32): Goal(must, None, peer, "torch.compile")}
        return bench("qwen2-7b", "BF16", "7B BF16", "-p", 512, "-r", o.reps, "--texts",
                     listed(o.shuffled([1, 8, 16, 32])), goals=goals, precision=precision, unit="texts/s")

    runs = [run("auto", 92, 92), run("fp8", 125, None)]
    return runs if o.quick else runs + [run("int8", 125, None)]


def attention(o):
    """Attention alone, prefill causal. All shapes of a type in one run, also those without a goal."""
    prefill = (  # sequences, tokens, width of a head, must, aim, peer: TFLOP/s
        (1, 2048, 128, 470, 520, 479), (1, 4096, 128, 520, 570, None), (1, 8192, 128, 545, 600, 539),
        (1, 16384, 128, 570, 615, 560), (8, 2048, 128, 480, 520, None), (1, 16384, 64, 440, 470, 441),
        (1, 16384, 256, 590, 625, 596))
    decode = (  # sequences, keys, heads, must, peer: microseconds
        (128, 2048, "32/8 heads of 128", 286, None), (1, 32768, "32/8 heads of 128", 36, 50),
        (1, 131072, "32/8 heads of 128", 128, 137), (32, 4096, "16/1 heads of 576", 49, None),
        (1, 32768, "16/1 heads of 576", 45, None))
    runs = []
    for kind in ("F16", "BF16"):
        goals = {(kind, f"{seqs} x {n} queries, {n} keys, 32/8 heads of {dim}"):
                 Goal(must, aim, peer, "cuDNN") for seqs, n, dim, must, aim, peer in prefill}
        goals |= {(kind, f"{seqs} x 1 queries, {n} keys, {heads}"): Goal(must, None, peer, "cuDNN")
                  for seqs, n, heads, must, peer in decode}
        args = ["--bench", "--backend", "cuda", "--op", "attention", "--type", kind, "--json"]
        runs.append(Run("tenon-check", args, kind, goals))
    return runs


TABLES = {"decode": decode, "prefill": prefill, "experts": experts, "attention": attention, "depth": depth,
          "classify": classify}


# --- floors ----------------------------------------------------------------------------------------------

def expert_bytes(head, shape, rows):
    """Bytes of the experts that `rows` tokens choose at random, and of all other weights."""
    if not shape.experts:
        return 0.0, head["active_weight_bytes"]
    table = shape.vocab * shape.width * 4.5 / 8  # of embeddings in Q4_K; only rows of it are read
    share = shape.used / shape.experts
    experts = (head["weight_bytes"] - table - head["active_weight_bytes"]) / (1 - share)
    return experts * (1 - (1 - share) ** rows), head["active_weight_bytes"] - experts * share


def floor_seconds(run, head, result):
    """The larger of bytes over the read rate and operations over the peak, for one step or one prompt."""
    shape, n, depth = SHAPES[run.shape], result["n"], result["depth"]
    peak = PEAKS[ELECTRIC.get(run.precision, "16 bit")]
    output = shape.vocab * shape.width  # of which prompts need one row, and scores none
    attention = 2 * shape.layers * shape.heads * shape.head_dim  # operations: squared length times this
    if result["kind"] == "tg":
        rows = result["count"]
        some, rest = expert_bytes(head, shape, rows)
        cache = rows * (depth + (n + 1) / 2) * head["cache_bytes_per_token"]
        return max((some + rest + cache) / READ, 2 * head["active_parameters"] * rows / PEAKS["16 bit"])
    texts = result["count"] if result["kind"] == "cls" else 1
    operations = texts * (2 * (head["active_parameters"] - output) * n + attention * n * n)
    some, rest = expert_bytes(head, shape, n)
    return max(operations / peak, (some + rest) / READ)


def floor(run, head, result):
    """The floor in the unit of the run: a rate, of all sequences or texts together."""
    seconds = floor_seconds(run, head, result)
    if run.unit == "texts/s":
        return result["count"] / seconds
    return (result["n"] if result["kind"] == "pp" else result["count"]) / seconds
