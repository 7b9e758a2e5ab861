# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Building blocks on lists of doubles, as plain as their formulas."""
import math
from operator import mul

NORM, NEOX = "adjacent pairs", "halves"


def dot(a, b):
    return sum(map(mul, a, b))


def matvec(rows, x, bias=None):
    y = [dot(row, x) for row in rows]
    return [a + b for a, b in zip(y, bias)] if bias else y


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def scaled(x, factor):
    return [v * factor for v in x]


def cut(x, size):
    """Runs of `size` values: the heads of a row."""
    return [x[i:i + size] for i in range(0, len(x), size)]


def joined(parts):
    return [v for part in parts for v in part]


# --- norms, activations -------------------------------------------------------------------------------------

def rms(x, w, eps):
    r = 1 / math.sqrt(dot(x, x) / len(x) + eps)
    return [v * r * u for v, u in zip(x, w)] if w else [v * r for v in x]


def layer_norm(x, w, bias, eps):
    mean = sum(x) / len(x)
    centred = [v - mean for v in x]
    r = 1 / math.sqrt(dot(centred, centred) / len(x) + eps)
    y = [v * r * u for v, u in zip(centred, w)]
    return add(y, bias) if bias else y


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def softplus(x):
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def softmax(x):
    top = max(x)
    e = [math.exp(v - top) for v in x]
    return scaled(e, 1 / sum(e))


def softcap(x, cap):
    return cap * math.tanh(x / cap) if cap else x


# --- positions ----------------------------------------------------------------------------------------------

class Rope:
    """Angle per position of each pair, and the factor of both results."""

    def __init__(self, pairs, n_dims, base, scale=1.0, factors=None, magnitude=1.0):
        self.pairs, self.n, self.magnitude = pairs, n_dims, magnitude
        phi = [base ** (-2 * t / n_dims) / (factors[t] if factors else 1) for t in range(n_dims // 2)]
        self.step, self.phi, self.base, self.scale = scaled(phi, 1 / scale), phi, base, scale

    def yarn(self, old_context, fast=32.0, slow=1.0):
        """Pairs that turn often keep their angle, slow ones are scaled, with a ramp between."""
        def corner(beta):
            return self.n * math.log(old_context / (2 * math.pi * beta)) / (2 * math.log(self.base))
        low = max(0, math.floor(corner(fast)))
        high = min(self.n - 1, math.ceil(corner(slow)))
        for t, phi in enumerate(self.phi):
            keep = 1 - min(1, max(0, (t - low) / max(0.001, high - low)))
            self.step[t] = phi / self.scale * (1 - keep) + phi * keep
        return self

    def __call__(self, x, position):
        y = list(x)
        for t, step in enumerate(self.step):
            i, j = (2 * t, 2 * t + 1) if self.pairs == NORM else (t, t + self.n // 2)
            c, s = math.cos(position * step) * self.magnitude, math.sin(position * step) * self.magnitude
            y[i], y[j] = x[i] * c - x[j] * s, x[i] * s + x[j] * c
        return y


def alibi_slopes(n_heads, bias):
    n2 = 1 << (n_heads.bit_length() - 1)
    m0, m1 = 2 ** (-bias / n2), 2 ** (-bias / (2 * n2))
    return [m0 ** (h + 1) if h < n2 else m1 ** (2 * (h - n2) + 1) for h in range(n_heads)]


# --- attention ----------------------------------------------------------------------------------------------

def causal(i, j):
    return j <= i


def everything(i, j):
    return True


def window(width):
    return lambda i, j: j <= i < j + width


def chunked(width):
    return lambda i, j: i // width * width <= j <= i


def attention(q, k, v, scale, visible=causal, cap=0, slopes=None, sinks=None):
    """q [tokens][heads][D], k [tokens][kv heads][D], v [tokens][kv heads][Dv] -> [tokens][heads · Dv]."""
    result = []
    for i, heads in enumerate(q):
        seen = [j for j in range(len(k)) if visible(i, j)]
        row = []
        for h, query in enumerate(heads):
            kv = h // (len(heads) // len(k[0]))
            s = [softcap(scale * dot(query, k[j][kv]), cap) for j in seen]
            if slopes:
                s = [a - slopes[h] * abs(i - j) for a, j in zip(s, seen)]
            p = softmax(s + [sinks[h]])[:-1] if sinks else softmax(s)
            row += [sum(a * v[j][kv][d] for a, j in zip(p, seen)) for d in range(len(v[0][0]))]
        result.append(row)
    return result


# --- experts ------------------------------------------------------------------------------------------------

class Routing:
    """Which experts, with what weight. The smallest distance between taken and not taken is kept: near ties
    are no test."""

    def __init__(self, used, gating="softmax", normalised=False, factor=0.0, groups=1, groups_used=1):
        self.used, self.gating, self.normalised, self.factor = used, gating, normalised, factor
        self.groups, self.groups_used, self.distance = groups, groups_used, math.inf

    def best(self, scores, count):
        order = sorted(range(len(scores)), key=lambda e: -scores[e])
        if count < len(order) and scores[order[count]] > -math.inf:
            self.distance = min(self.distance, scores[order[count - 1]] - scores[order[count]])
        return order[:count]

    def __call__(self, logits, selection_bias=None):
        """[(expert, weight)]"""
        probs = {"softmax": softmax, "selected": list, "logits": list,
                 "sigmoid": lambda x: [sigmoid(v) for v in x]}[self.gating](logits)
        score = add(probs, selection_bias) if selection_bias else probs
        if self.groups > 1:
            size = len(score) // self.groups
            parts = cut(score, size)
            kept = self.best([sum(sorted(part)[-2:]) for part in parts], self.groups_used)
            score = [s if e // size in kept else -math.inf for e, s in enumerate(score)]
        chosen = self.best(score, self.used)
        w = [probs[e] for e in chosen]
        if self.gating == "selected":
            w = softmax(w)
        if self.normalised:
            w = scaled(w, 1 / max(sum(w), 6.103515625e-5))
        if self.factor not in (0, 1):
            w = scaled(w, self.factor)
        return list(zip(chosen, w))
