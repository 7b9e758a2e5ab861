# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""The flags of sampling, with the bundled model.

    test_sampling.py TENON [--quick]
"""
import json
import sys
import time

from cli import arguments

STORY = "Once upon a time"

# Flag, least and largest value: the library takes both.
RANGES = [("--temp", 0, 100), ("--top-k", 0, 2147483647), ("--top-p", 0, 1), ("--min-p", 0, 1), ("--typical", 0, 1),
          ("--top-nsigma", -1, 100), ("--xtc-probability", 0, 1), ("--xtc-threshold", 0, 1), ("--dynatemp-range", 0, 100),
          ("--dynatemp-exp", 0, 100), ("--repeat-penalty", 0.01, 100), ("--presence-penalty", -100, 100),
          ("--frequency-penalty", -100, 100), ("--repeat-last-n", -1, 1000000), ("--dry-multiplier", 0, 100),
          ("--dry-base", 1, 100), ("--dry-allowed-length", 1, 1000000), ("--dry-penalty-last-n", -1, 1000000),
          ("--mirostat-ent", 0, 100), ("--mirostat-lr", 0, 1), ("--logprobs", 0, 1024)]


def check_ranges(t):
    base = ["run", t.model, "-p", STORY, "-n", 2, "--seed", 1, "--mirostat", 2]
    for flag, low, high in RANGES:
        for value in (low, high):
            r = t.run(*base, flag, value)
            t.ok(f"{flag} {value}", r.code == 0 and r.out, r.err)
        for value in (low - 1, high + 1):
            r = t.run(*base, flag, value)
            t.ok(f"{flag} {value}", r.code == 2 and flag in r.err, r.err)


def check_order(t):
    base = ["run", t.model, "-p", STORY, "-n", 60, "--seed", 1, "--ids"]
    plain = t.run(*base).ids
    for flags in (["--samplers", "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"],
                  ["--sampling-seq", "edskypmxt"], ["--samplers", "top-k;nucleus;min-p;temp"]):
        r = t.run(*base, *flags)
        t.ok(f"default order: {flags}", r.code == 0 and r.ids == plain, r.err)
    base += ["--temp", 2]
    plain = t.run(*base).ids
    for flags in (["--samplers", ""], ["--sampling-seq", "t"], ["--mirostat", 2, "--mirostat-ent", 8], ["--xtc-probability", 1],
                  ["--top-nsigma", 0.1], ["--typical", 0.1], ["--dynatemp-range", 2],
                  ["--dry-multiplier", 90, "--dry-sequence-breaker", "none", "--dry-allowed-length", 1]):
        r = t.run(*base, *flags)
        t.ok(f"another text: {flags}", r.code == 0 and r.ids != plain, f"{r.err} {r.ids}")
    for flags, word in ((["--samplers", "top_k;top_q"], "top_q"), (["--samplers", "top_k;top_k"], "twice"),
                        (["--sampling-seq", "kq"], "'q'"), (["--sampling-seq", "k", "--samplers", "top_k"], "both"),
                        (["--mirostat", 1], "0|2"), (["--dry-sequence-breaker", ""], "1..64")):
        r = t.run(*base, *flags)
        t.ok(f"refused: {flags}", r.code in (1, 2) and word in r.err, r.err)


def check_logprobs(t):
    flags = ["run", t.model, "-p", STORY, "-n", 30, "--seed", 3]
    one = json.loads(t.run(*flags, "--json", "--logprobs", 3).out)
    rows = one["logprobs"]
    t.ok("--logprobs: ids", [row["id"] for row in rows] == one["tokens"], rows[:2])
    t.ok("--logprobs: text", "".join(row["text"] for row in rows).strip() == one["text"].strip(), one["text"])
    for row in rows:
        values = [x["logprob"] for x in row["top"]]
        t.ok("--logprobs: order", len(values) == 3 and values == sorted(values, reverse=True) and values[0] >= row["logprob"], row)
        same = [x["logprob"] for x in row["top"] if x["id"] == row["id"]]
        t.ok("--logprobs: of the chosen one", same in ([], [row["logprob"]]), row)
    events = [json.loads(line) for line in t.run(*flags, "--jsonl", "--logprobs", 3).out.splitlines()]
    t.ok("--logprobs: --jsonl", [e["top"] for e in events if "id" in e] == [row["top"] for row in rows], events[:3])
    t.ok("--logprobs: without it", "logprobs" not in json.loads(t.run(*flags, "--json").out), "")
    greedy = [json.loads(t.run(*flags, "--temp", 0, "--json", *more).out)["tokens"] for more in ([], ["--logprobs", 1])]
    t.ok("--logprobs: greedy stays the same", greedy[0] == greedy[1] and len(greedy[0]) > 3, greedy)


def main():
    t, _, _ = arguments()
    for part, args in ((check_ranges, ()), (check_order, ()), (check_logprobs, ())):
        start = time.monotonic()
        try:
            part(t, *args)
        except (OSError, KeyError, TypeError, ValueError, IndexError) as e:
            t.ok(part.__name__, False, f"{type(e).__name__}: {e}")
        print(f"{part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
    return t.done()


sys.exit(main())
