# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes quant_iq_tables.c to standard output from a folder of raw grids (one byte per value, row-major):

    python3 make_iq_tables.py FOLDER > quant_iq_tables.c
"""
import pathlib
import sys

# symbol, file, values per row, the distinct values in code order
GRIDS = [
    ("tn_iq2xxs_grid", "iq2xxs_grid.bin", 8, [8, 25, 43]),
    ("tn_iq2xs_grid", "iq2xs_grid.bin", 8, [8, 25, 43]),
    ("tn_iq2s_grid", "iq2s_grid.bin", 8, [8, 25, 43]),
    ("tn_iq3xxs_grid", "iq3xxs_grid.bin", 4, [4, 12, 20, 28, 36, 44, 52, 62]),
    ("tn_iq3s_grid", "iq3s_grid.bin", 4, [1, 3, 5, 7, 9, 11, 13, 15]),
    ("tn_iq1_grid", "iq1s_grid.bin", 8, [255, 0, 1]),
]
PER_LINE = 12


def packed_rows(data, width, values):
    bits = 2 if len(values) <= 4 else 3
    code = {v: i for i, v in enumerate(values)}
    for start in range(0, len(data), width):
        yield sum(code[v] << bits * j for j, v in enumerate(data[start:start + width]))


def main():
    folder = pathlib.Path(sys.argv[1])
    print("// SPDX-FileCopyrightText: 2026 The tenon authors")
    print("// SPDX-License-Identifier: Apache-2.0")
    print("//")
    print("// Grids of the codebook formats, written by make_iq_tables.py; see quant_tables.h.")
    print('#include "ops/quant_tables.h"')
    print("\n// clang-format off")
    for symbol, file, width, values in GRIDS:
        rows = list(packed_rows((folder / file).read_bytes(), width, values))
        print(f"const uint16_t {symbol}[{len(rows)}] = {{")
        for i in range(0, len(rows), PER_LINE):
            print("    " + " ".join(f"0x{r:04x}," for r in rows[i:i + PER_LINE]))
        print("};")
    print("// clang-format on")


main()
