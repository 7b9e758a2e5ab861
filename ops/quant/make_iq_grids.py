# SPDX-FileCopyrightText: 2026 The tenon authors
# SPDX-License-Identifier: Apache-2.0
"""Writes iq_grids.h to standard output from a folder of raw grids (one byte per value, row-major):

    python3 make_iq_grids.py FOLDER > iq_grids.h
"""
import pathlib
import sys

# macro, file, values per row, the distinct values in code order
GRIDS = [
    ("TN_IQ2XXS_GRID", "iq2xxs_grid.bin", 8, [8, 25, 43]),
    ("TN_IQ2XS_GRID", "iq2xs_grid.bin", 8, [8, 25, 43]),
    ("TN_IQ2S_GRID", "iq2s_grid.bin", 8, [8, 25, 43]),
    ("TN_IQ3XXS_GRID", "iq3xxs_grid.bin", 4, [4, 12, 20, 28, 36, 44, 52, 62]),
    ("TN_IQ3S_GRID", "iq3s_grid.bin", 4, [1, 3, 5, 7, 9, 11, 13, 15]),
    ("TN_IQ1_GRID", "iq1s_grid.bin", 8, [255, 0, 1]),
]
PER_LINE = 10
HEADER = """\
// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Grids of the codebook formats, written by make_iq_grids.py: R(code) for each row of a grid, where code has
// the values of the row as ops/quant_tables.h says. Tables of other forms are made of the same rows.
#ifndef TN_OPS_QUANT_IQ_GRIDS_H
#define TN_OPS_QUANT_IQ_GRIDS_H

// clang-format off"""


def packed_rows(data, width, values):
    bits = 2 if len(values) <= 4 else 3
    code = {v: i for i, v in enumerate(values)}
    for start in range(0, len(data), width):
        yield sum(code[v] << bits * j for j, v in enumerate(data[start:start + width]))


def main():
    folder = pathlib.Path(sys.argv[1])
    print(HEADER)
    for macro, file, width, values in GRIDS:
        rows = list(packed_rows((folder / file).read_bytes(), width, values))
        cells = [f"R(0x{r:04x})" for r in rows]
        lines = [" ".join(cells[i:i + PER_LINE]) for i in range(0, len(cells), PER_LINE)]
        print(f"#define {macro}(R) \\\n    " + " \\\n    ".join(lines))
    print("// clang-format on\n\n#endif")


main()
