# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""One token at a time on the emulated GPU, where attention does the step before it, against the CPU:
test_decode.py TENON MODEL

LD_LIBRARY_PATH leads to the emulation."""
import array
import math
import os
import subprocess
import sys
import tempfile

N_TOKENS = 20 # the last ones in a second tile of keys
ROOM = 2e-3 # the cache rounds to f16 what differs in the last bits of a float


def logits(tenon, model, backend, folder):
    path = os.path.join(folder, backend)
    tokens = ",".join(str(3 + i * 37 % 200) for i in range(N_TOKENS))
    subprocess.run([tenon, "logits", model, "--tokens", tokens, "-b", "1", "--precision", "f32", "--backend",
                    backend, "-o", path],
                   check=True, stdout=subprocess.DEVNULL)
    with open(path, "rb") as f:
        return array.array("f", f.read())


def main():
    tenon, model = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        want, got = (logits(tenon, model, b, folder) for b in ("cpu", "cuda"))
    if len(want) != len(got) or not want:
        sys.exit(f"{len(got)} logits, not {len(want)}")
    n = len(want) // N_TOKENS
    worst = 0.0
    for i in range(N_TOKENS):
        a, b = want[i * n:(i + 1) * n], got[i * n:(i + 1) * n]
        off = math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(x * x for x in a))
        if not off < ROOM:
            sys.exit(f"token {i}: relative distance {off:.3g}")
        worst = max(worst, off)
    print(f"{N_TOKENS} tokens, largest relative distance {worst:.3g}")


main()
