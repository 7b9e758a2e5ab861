// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows the multiplication in GEMM of few rows, whose common dimension is divided over workgroups.
// Sums of all parts go to scratch; the workgroup of a tile that is ready last adds them, in the order of
// the parts. The including shader has M blocks of 16 rows, N matrices of 16 columns of a subgroup, TEAMS
// subgroups, its operands in shared memory and the variables below. What follows the sums: finish.glsl.

layout(buffer_reference, scalar, buffer_reference_align = 16) coherent buffer ExchangedFour { vec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Counter { uint v; };
shared uint ready;

uint thread = gl_LocalInvocationID.x, team = thread / LANES, n, columns, rows, r0, j0;

// Writes 16 rows of the subgroup's sums to those of its part in scratch.
void store_strip(uint strip, uint at, uint64_t to)
{
    UNROLL for (uint e = LANE; e < 64 * N; e += LANES) {
        uint row = e / (4 * N), four = e % (4 * N);
        ExchangedFour(to + 4 * ((16 * strip + row) * TILE_N + 16 * N * team + 4 * four)).v =
            uintBitsToFloat(space[at + row * SUMS_ROW + four]);
    }
}

// Adds the sums of all parts of the tile, and finishes its results.
void finish_tile(uint64_t from, uint parts, float touched)
{
    const uint WIDE = GATED ? TILE_N / 2 : TILE_N;
    [[dont_unroll]] for (uint e = thread; e < TILE_M * WIDE / 4; e += THREADS) {
        uint row = e / (WIDE / 4), c = 4 * (e % (WIDE / 4)), r = r0 + row;
        if (r >= rows) break;
        vec4 v = vec4(0.0), up = vec4(0.0);
        uint64_t at = from + 4 * (row * TILE_N + c);
        [[dont_unroll]] for (uint s = 0; s < parts; s++, at += 4 * TILE_M * TILE_N) {
            v += ExchangedFour(at).v;
            if (GATED) up += ExchangedFour(at + 4 * WIDE).v;
        }
        uint j = j0 + c;
        Finish f = find_finish(r, j);
        float scale = load_f32(args.scratch + 4 * uint64_t(r)), residual[4], bias[4];
        [[unroll]] for (uint i = 0; i < 4; i++) { // all loads in flight at once
            residual[i] = early_residual_of(r, min(j + i, columns - 1)) + touched;
            bias[i] = bias_of(min(j + i, columns - 1));
        }
        [[unroll]] for (uint i = 0; i < 4; i++)
            if (j + i < columns)
                store_f32(f.to + 4 * i,
                          finish_one(f, v[i] * scale, up[i] * scale, 0.0, 1.0, bias[i], residual[i]));
    }
}

// Where the sums of all parts of a tile lie.
uint64_t sums_of_tile(uint tile, uint parts)
{
    return args.scratch + 256 * uint64_t(args.n[N_PRODUCT_SUMS]) +
           uint64_t(tile) * parts * (4 * TILE_M * TILE_N);
}

// A part of the tile is in scratch: the last of them finishes it.
void finish_part(uint64_t sums, uint tile, uint parts, float touched)
{
    memoryBarrierBuffer();
    barrier();
    if (parts > 1) {
        uint64_t counter = args.counters + 4 * uint64_t(uint(args.n[N_PRODUCT_COUNTERS]) + tile);
        if (thread == 0) ready = atomicAdd(Counter(counter).v, 1u);
        barrier();
        if (ready + 1 < parts) return;
        memoryBarrierBuffer();
        if (thread == 0) Counter(counter).v = 0; // for the next step
    }
    finish_tile(sums, parts, touched);
}
