#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Sums up a timeline of tests/cuda/timeline.c.
    timeline.py FILE.csv [STEPS]
Kernels are grouped by what follows what: for each pair (predecessor, kernel) the median time from the end of
the one to the end of the other, which is what the kernel adds to a chain, and the median of its own duration.
STEPS: the last so many
kernels are printed one by one."""
import statistics
import sys


def main():
    rows = []
    with open(sys.argv[1], encoding="ascii") as f:
        for line in f:
            name, start, end, blocks, threads, shared = line.rsplit(",", 5)
            rows.append((int(start), int(end), name, int(blocks), int(threads), int(shared)))
    rows.sort()
    groups = {}
    for before, row in zip(rows, rows[1:]):
        key = (before[2], row[2], row[3])
        groups.setdefault(key, []).append((row[1] - before[1], row[1] - row[0], row[0] - before[1]))
    total = sum(max(0, x[0]) for g in groups.values() for x in g) or 1
    print("   adds us  duration  starts after the end before   times  share  predecessor -> kernel (blocks)")
    for key, g in sorted(groups.items(), key=lambda item: -sum(x[0] for x in item[1]))[:60]:
        added, own, gap = (statistics.median(x[i] for x in g) / 1e3 for i in range(3))
        share = sum(max(0, x[0]) for x in g) / total
        print(f"{added:10.2f}{own:10.2f}{gap:10.2f}{len(g):28d}{share:7.1%}  {key[0]} -> {key[1]} ({key[2]})")
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for before, row in list(zip(rows, rows[1:]))[-steps:] if steps else []:
        print(f"{(row[0] - before[1]) / 1e3:8.2f} {(row[1] - row[0]) / 1e3:8.2f}  {row[2]} {row[3]}x{row[4]} "
              f"{row[5]}")


if __name__ == "__main__":
    main()
