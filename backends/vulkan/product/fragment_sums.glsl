// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows the multiplication in skinny GEMM whose invocations know which elements of a matrix they
// have, and whose common dimension is divided into PARTS, each by a workgroup. Sums of all parts go to
// scratch, in the order in which invocations have them; the last workgroup of a tile adds them, in the order
// of the parts. Results go through shared memory, so that rows are written in runs.
//
// The including shader has M blocks of 16 rows, N matrices of 16 columns of a subgroup, TEAMS subgroups,
// ROW_SUMS vectors for a row of sums in shared memory, WIDE columns of results, and ROWS_ALIGNED: rows of
// results and of a residual are whole runs of 4 and start at multiples of 16 bytes. What follows the sums:
// finish.glsl.
#include "backends/vulkan/shaders/last_workgroup.glsl"

uint thread = gl_LocalInvocationID.x, team = thread / LANES, columns, rows, r0, j0;
// Of matrix j of block i of rows: total[i * N + j].
float total[M * N][8];

// Results of an invocation by fours, and what is added to them or multiplied with them, which is loaded
// before sums of other parts are waited for.
const uint FOURS = TILE_M * WIDE / 4 / THREADS;
vec4 residuals[FOURS];
float scales_of_rows[FOURS];
// Row and first column of four number i in the tile.
uvec2 place_of(uint i)
{
    uint e = thread + i * THREADS;
    return uvec2(e / (WIDE / 4), e % (WIDE / 4) * 4);
}
void load_early()
{
    UNROLL for (uint i = 0; i < FOURS; i++) {
        uint r = min(r0 + place_of(i).x, rows - 1), j = j0 + place_of(i).y;
        if (ROWS_ALIGNED && ADDS) // without a branch
            residuals[i] = PF128(given_residual + row_offset(r, N_PRODUCT_RESIDUAL_STRIDE) +
                                 4 * uint64_t(min(j, columns - 4))).v;
        else
            [[unroll]] for (uint e = 0; e < 4; e++)
                residuals[i][e] = early_residual_of(r, min(j + e, columns - 1));
        scales_of_rows[i] = load_f32(given_scratch + 4 * uint64_t(r));
    }
}

// Adds the sums of all parts of the tile. Returns whether this workgroup finishes the tile.
bool add_parts(uint tile, uint part)
{
    const uint VECTORS = 2 * M * N, AT_ONCE = 4;
    if (PARTS == 1) return true;
    uint64_t at = given_scratch + 256 * uint64_t(args.n[N_PRODUCT_SUMS]) +
                  16 * (uint64_t(tile) * (PARTS * VECTORS * THREADS) + thread),
             counter = args.counters + 4 * uint64_t(uint(args.n[N_PRODUCT_COUNTERS]) + tile);
    UNROLL for (uint i = 0; i < VECTORS; i++) {
        uint e = i % 2 * 4;
        ExchangedFour(at + 16 * ((part * VECTORS + i) * THREADS)).v =
            vec4(total[i / 2][e], total[i / 2][e + 1], total[i / 2][e + 2], total[i / 2][e + 3]);
    }
    if (!is_last_workgroup(counter, PARTS, thread == 0)) return false;
    UNROLL for (uint i = 0; i < M * N; i++)
        [[unroll]] for (uint e = 0; e < 8; e++) total[i][e] = 0.0;
    [[dont_unroll]] for (uint s = 0; s < PARTS; s += AT_ONCE) {
        vec4 v[AT_ONCE][VECTORS];
        UNROLL for (uint a = 0; a < AT_ONCE; a++)
            UNROLL for (uint i = 0; i < VECTORS; i++)
                v[a][i] = ExchangedFour(at + 16 * ((min(s + a, PARTS - 1) * VECTORS + i) * THREADS)).v;
        UNROLL for (uint a = 0; a < AT_ONCE; a++)
            UNROLL for (uint i = 0; i < VECTORS; i++)
                [[unroll]] for (uint e = 0; e < 4; e++)
                    total[i / 2][i % 2 * 4 + e] += s + a < PARTS ? v[a][i][e] : 0.0;
    }
    return true;
}

// Finishes the results of the tile, when no subgroup reads operands from shared memory any more.
void finish_tile(float touched)
{
    UNROLL for (uint i = 0; i < M * N; i++)
        [[unroll]] for (uint e = 0; e < 8; e++) {
            uint row = 16 * (i / N) + LANE_ROW(e / (8 / LANE_ROWS)),
                 column = 16 * (N * team + i % N) + LANE_COLUMN(e);
            space[row * ROW_SUMS + column / 4][column % 4] = floatBitsToUint(total[i][e]);
        }
    barrier();
    UNROLL for (uint i = 0; i < FOURS; i++) {
        uvec2 at = place_of(i);
        uint r = r0 + at.x, j = j0 + at.y, from = at.x * ROW_SUMS + at.y / 4;
        if (r >= rows || j >= columns) continue;
        vec4 v = uintBitsToFloat(space[from]) * scales_of_rows[i],
             up = GATED ? uintBitsToFloat(space[from + WIDE / 4]) * scales_of_rows[i] : vec4(0.0);
        Finish f = find_finish(r, j);
        [[unroll]] for (uint e = 0; e < 4; e++)
            v[e] = finish_one(f, v[e], up[e], 0.0, 1.0, bias_of(min(j + e, columns - 1)),
                              residuals[i][e] + touched);
        if (ROWS_ALIGNED) PF128(f.to).v = v;
        else
            [[unroll]] for (uint e = 0; e < 4; e++)
                if (j + e < columns) store_f32(f.to + 4 * e, v[e]);
    }
}
