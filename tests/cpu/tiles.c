// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// See tiles.h.
#include "tests/cpu/tiles.h"

#include "core/fp16.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TILES = 8, ROWS = 16, ROW_SIZE = 64 };

static _Thread_local struct {
    bool configured;
    unsigned char tile[TILES][ROWS][ROW_SIZE];
} state;

static void need_configuration(void)
{
    if (state.configured) return;
    fprintf(stderr, "tiles: used while not configured\n");
    abort();
}

void tiles_configure(void)
{
    memset(&state, 0, sizeof state);
    state.configured = true;
}

void tiles_release(void)
{
    state.configured = false;
}

void tile_zero(int t)
{
    need_configuration();
    memset(state.tile[t], 0, sizeof state.tile[t]);
}

void tile_load(int t, const void *p, ptrdiff_t stride)
{
    need_configuration();
    for (int r = 0; r < ROWS; r++) memcpy(state.tile[t][r], (const char *)p + r * stride, ROW_SIZE);
}

void tile_store(int t, void *p, ptrdiff_t stride)
{
    need_configuration();
    for (int r = 0; r < ROWS; r++) memcpy((char *)p + r * stride, state.tile[t][r], ROW_SIZE);
}

// Denormals are zeros.
static float flush(float v)
{
    return fpclassify(v) == FP_SUBNORMAL ? 0.0f * v : v;
}

static void values(const unsigned char *row, float *v)
{
    uint16_t bits[ROW_SIZE / 2];
    memcpy(bits, row, sizeof bits);
    for (int i = 0; i < ROW_SIZE / 2; i++) v[i] = flush(tn_bf16_to_f32(bits[i]));
}

// Sums of even and of odd elements, which are added at the end.
void tile_dot_bf16(int c, int a, int b)
{
    need_configuration();
    float w[ROWS][ROW_SIZE / 2];
    for (int k = 0; k < ROWS; k++) values(state.tile[b][k], w[k]);
    for (int m = 0; m < ROWS; m++) {
        float x[ROW_SIZE / 2], sum[ROW_SIZE / 2] = {0}, out[ROW_SIZE / 4];
        values(state.tile[a][m], x);
        for (int k = 0; k < ROWS; k++)
            for (int i = 0; i < ROW_SIZE / 2; i++) sum[i] = flush(fmaf(x[2 * k + i % 2], w[k][i], sum[i]));
        memcpy(out, state.tile[c][m], sizeof out);
        for (int n = 0; n < ROW_SIZE / 4; n++) out[n] = flush(out[n] + flush(sum[2 * n] + sum[2 * n + 1]));
        memcpy(state.tile[c][m], out, sizeof out);
    }
}
