# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Memory on the emulated GPU, as predicted and as used, by kind. Weights that it keeps in another form, and
the selection of tokens there, are kinds of their own: test_memory.py TENON MODEL

LD_LIBRARY_PATH leads to the emulation."""
import json
import os
import subprocess
import sys
import tempfile

ALWAYS = ("weights", "cache", "activations", "scratch", "sampling", "other")


def memory(tenon, model, *flags):
    r = subprocess.run([tenon, "inspect", model, "--memory", "--ctx", "256", "--backend", "cuda", "--json",
                        *flags], check=True, stdout=subprocess.PIPE)
    device = json.loads(r.stdout)["devices"][0]
    return device["predicted"], device["used"]


def main():
    tenon, model = sys.argv[1:3]
    failed, n = 0, 0
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        svg = os.path.join(folder, "memory.svg")
        for flags in ((), ("-np", "3"), ("--precision", "fp8"),
                      ("--precision", "fp8", "-np", "3", "--svg", svg)):
            predicted, used = memory(tenon, model, *flags)
            found[flags] = used
            n += 1
            if predicted != used or not all(used[k] > 0 for k in ALWAYS):
                failed += 1
                print(f"{flags}: predicted {predicted}, used {used}")
        with open(svg, encoding="utf-8") as f:
            picture = f.read()
    # Matrices of 8 bits and a scale of each 32 values become 8 bits each; the embedding is no product. In the
    # default precision nothing is copied but scales of a few bytes.
    plain, fp8 = found[()], found[("--precision", "fp8")]
    n += 2
    if not (plain["converted"] < 4096 and fp8["weights"] == plain["weights"]
            and 0.7 * fp8["weights"] < fp8["converted"] < fp8["weights"]):
        failed += 1
        print(f"converted: {plain} {fp8}")
    if not all(f">{k}</text>" in picture and f"<title>{k}: " in picture for k in ("converted", "sampling")):
        failed += 1
        print("the picture lacks a kind")
    print(f"{n - failed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
