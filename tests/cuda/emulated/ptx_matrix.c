// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions of a warp (PTX ISA 8.7, Warp Level Matrix Instructions: ldmatrix, movmatrix, mma) and
// of a warpgroup (Asynchronous Warpgroup Level Matrix Instructions: wgmma). Sums are f32 in order of k.
#include "tests/cuda/emulated/ptx.h"

#include <stdlib.h>
#include <string.h>

enum { F16, BF16 };

static float halves[1 << 16];

static float half_value(uint32_t bits)
{
    uint32_t sign = (bits & 0x8000) << 16, e = bits >> 10 & 31, frac = bits & 0x3ff, out;
    if (e == 0) {
        float x = (float)frac * 5.9604644775390625e-8f; // 2^-24
        return sign ? -x : x;
    }
    out = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | frac << 13;
    float x;
    memcpy(&x, &out, sizeof x);
    return x;
}

__attribute__((constructor)) static void fill_halves(void)
{
    for (uint32_t i = 0; i < 1 << 16; i++) halves[i] = half_value(i);
}

static float value_of(uint32_t bits, int type)
{
    bits &= 0xffff;
    if (type == F16) return halves[bits];
    bits <<= 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// --- ldmatrix, movmatrix
// ---------------------------------------------------------------------------------------

enum { PLAIN, TRANSPOSED };

typedef struct matrices {
    int transposed, n;
    const char *row;   // that this lane names
    uint32_t *regs[4]; // of this lane
} matrices;

static void finish_load(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("ldmatrix by lanes %08x", there);
    for (int l = 0; l < WARP; l++) {
        const matrices *x = lanes[l].data;
        for (int i = 0; i < x->n; i++) {
            uint16_t pair[2];
            for (int e = 0; e < 2; e++) {
                int row = x->transposed ? 2 * (l % 4) + e : l / 4,
                    column = x->transposed ? l / 4 : 2 * (l % 4) + e;
                memcpy(&pair[e], ((const matrices *)lanes[i * 8 + row].data)->row + 2 * column, 2);
            }
            memcpy(x->regs[i], pair, 4);
        }
    }
}

static void load_matrices(ptx_run *r, int variant)
{
    static const char what[8];
    int n = variant >> 1;
    matrices x = {.transposed = variant & 1, .n = n};
    for (int i = 0; i < n; i++) x.regs[i] = tn_ptx_place(r, i);
    // Addresses of lanes beyond 8 n are not looked at.
    if (this_fiber()->lane < 8 * n) x.row = tn_emulated_shared_at(ptx_u32(r, n), 16, 16);
    tn_emulated_meet(&what[variant % 8], "ldmatrix", UINT32_MAX, &x, finish_load);
}

typedef struct transposed {
    uint32_t x, *y;
} transposed;

static void finish_transpose(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("movmatrix by lanes %08x", there);
    uint16_t all[8][8];
    for (int l = 0; l < WARP; l++) memcpy(&all[l / 4][2 * (l % 4)], &((transposed *)lanes[l].data)->x, 4);
    for (int l = 0; l < WARP; l++) {
        uint16_t pair[2] = {all[2 * (l % 4)][l / 4], all[2 * (l % 4) + 1][l / 4]};
        memcpy(((transposed *)lanes[l].data)->y, pair, 4);
    }
}

static void transpose(ptx_run *r, int variant)
{
    (void)variant;
    static const char what;
    transposed t = {ptx_u32(r, 1), tn_ptx_place(r, 0)};
    tn_emulated_meet(&what, "movmatrix", UINT32_MAX, &t, finish_transpose);
}

// --- mma
// -------------------------------------------------------------------------------------------------------

typedef struct multiplied {
    int type;
    uint32_t a[4], b[2];
    uint32_t c[4], *d[4]; // f32 or s32
} multiplied;

// 16-bit elements, f32 sums: a [16 x 16], b [16 x 8]
static void finish_float(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("mma by lanes %08x", there);
    float a[16][16], b[8][16];
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        int g = l / 4, i = 2 * (l % 4);
        for (int e = 0; e < 2; e++) {
            for (int q = 0; q < 4; q++)
                a[g + q % 2 * 8][i + q / 2 * 8 + e] = value_of(x->a[q] >> 16 * e, x->type);
            for (int q = 0; q < 2; q++) b[g][i + q * 8 + e] = value_of(x->b[q] >> 16 * e, x->type);
        }
    }
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        for (int q = 0; q < 4; q++) {
            const float *row = a[l / 4 + q / 2 * 8], *column = b[2 * (l % 4) + q % 2];
            float sum;
            memcpy(&sum, &x->c[q], 4);
            for (int k = 0; k < 16; k++) sum += row[k] * column[k];
            memcpy(x->d[q], &sum, 4);
        }
    }
}

// int8, s32 sums: a [16 x 32], b [32 x 8]
static void finish_bytes(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("mma by lanes %08x", there);
    int8_t a[16][32], b[8][32];
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        int g = l / 4, i = 4 * (l % 4);
        for (int q = 0; q < 4; q++) memcpy(&a[g + q % 2 * 8][i + q / 2 * 16], &x->a[q], 4);
        for (int q = 0; q < 2; q++) memcpy(&b[g][i + q * 16], &x->b[q], 4);
    }
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        for (int q = 0; q < 4; q++) {
            const int8_t *row = a[l / 4 + q / 2 * 8], *column = b[2 * (l % 4) + q % 2];
            int32_t sum;
            memcpy(&sum, &x->c[q], 4);
            for (int k = 0; k < 32; k++) sum += row[k] * column[k];
            memcpy(x->d[q], &sum, 4);
        }
    }
}

static void gather(ptx_run *r, multiplied *x, int n_a, int n_b)
{
    for (int i = 0; i < 4; i++) x->d[i] = tn_ptx_place(r, i);
    for (int i = 0; i < n_a; i++) x->a[i] = ptx_u32(r, 4 + i);
    for (int i = 0; i < n_b; i++) x->b[i] = ptx_u32(r, 4 + n_a + i);
    for (int i = 0; i < 4; i++) x->c[i] = ptx_u32(r, 4 + n_a + n_b + i);
}

static void multiply_float(ptx_run *r, int type)
{
    static const char what[2];
    multiplied x = {.type = type};
    gather(r, &x, 4, 2);
    tn_emulated_meet(&what[type], "mma", UINT32_MAX, &x, finish_float);
}

// Half of k: the registers of the other half are zeros.
static void multiply_bytes(ptx_run *r, int k)
{
    static const char what[2];
    multiplied x = {0};
    gather(r, &x, k / 8, k / 16);
    tn_emulated_meet(&what[k == 16], "mma", UINT32_MAX, &x, finish_bytes);
}

// --- wgmma
// -----------------------------------------------------------------------------------------------------

static warpgroup *group_of(const fiber *f)
{
    warpgroup *g = &f->block->groups[f->warp / 4];
    if (!g->products) {
        g->products = calloc(MAX_PRODUCTS, sizeof *g->products);
        if (!g->products) abort();
    }
    return g;
}

// Address of an element of a tile whose descriptor says: 128-byte swizzle, `leading` and `stride` in bytes.
// Rows are of 128 bytes along k, or along the other dimension if `along_n`.
static uint32_t element_at(uint64_t matrix, int n, int k, bool along_n)
{
    uint32_t start = (uint32_t)(matrix & 0x3fff) << 4, leading = (uint32_t)(matrix >> 16 & 0x3fff) << 4,
             stride = (uint32_t)(matrix >> 32 & 0x3fff) << 4;
    uint32_t at = along_n ? start + (uint32_t)(n / 64) * leading + (uint32_t)(k / 8) * stride +
                                (uint32_t)(k % 8 * 128 + n % 64 * 2)
                          : start + (uint32_t)(n / 8) * stride + (uint32_t)(n % 8 * 128 + k * 2);
    return at ^ (at >> 7 & 7) << 4;
}

static void read_tile(const block *b, uint64_t matrix, int n, bool along_n, int type, float (*to)[16])
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 16; k++) {
            uint16_t bits;
            memcpy(&bits, b->window + element_at(matrix, i, k, along_n), 2);
            to[i][k] = value_of(bits, type);
        }
}

static void carry_out(const block *b, product *p)
{
    static float a[64][16], w[256][16];
    if (!p->from_registers) read_tile(b, p->a, 64, false, p->type, a);
    for (int t = 0; t < 128 && p->from_registers; t++)
        for (int q = 0; q < 4; q++)
            for (int e = 0; e < 2; e++)
                a[t / 32 * 16 + t % 32 / 4 + q % 2 * 8][2 * (t % 4) + q / 2 * 8 + e] =
                    value_of(p->regs[t][q] >> 16 * e, p->type);
    read_tile(b, p->b, p->n, p->trans_b != 0, p->type, w);
    for (int t = 0; t < 128; t++)
        for (int j = 0; j < p->n / 2; j++) {
            const float *row = a[t / 32 * 16 + t % 32 / 4 + j / 2 % 2 * 8],
                        *column = w[j / 4 * 8 + 2 * (t % 4) + j % 2];
            float sum = p->keep ? *p->d[t][j] : 0.0f;
            for (int k = 0; k < 16; k++) sum += row[k] * column[k];
            *p->d[t][j] = sum;
        }
}

// The descriptor has to name the 128-byte swizzle, with tiles that start where it begins.
static void check_matrix(uint64_t matrix)
{
    if (matrix >> 61 != 2 || (matrix >> 49 & 7) != 0)
        tn_emulated_fail("wgmma: the descriptor %016llx is not of the 128-byte swizzle",
                         (unsigned long long)matrix);
}

// Operands: n / 2 registers of d; a or four registers of it; b; predicate and signs.
static void product_issue(ptx_run *r, int variant)
{
    fiber *f = this_fiber();
    warpgroup *g = group_of(f);
    int n = variant >> 1;
    product *p = &g->products[f->n_products % MAX_PRODUCTS];
    if (f->n_products - g->done >= MAX_PRODUCTS) tn_emulated_fail("wgmma: more than %d fly", MAX_PRODUCTS);
    bool registers = r->step->n_args == n / 2 + 9;
    if (!registers && r->step->n_args != n / 2 + 7) tn_emulated_fail("wgmma: %d operands", r->step->n_args);
    int at = n / 2 + (registers ? 4 : 1), lane = f->id % 128;
    uint64_t a = registers ? 0 : tn_ptx_get(r, n / 2, 8), b = tn_ptx_get(r, at, 8);
    bool keep = ptx_u32(r, at + 1) != 0;
    int trans_b = (int)ptx_u32(r, r->step->n_args - 1);
    if (p->filled == 0)
        *p = (product){.n = n,
                       .type = variant & 1,
                       .a = a,
                       .b = b,
                       .keep = keep,
                       .from_registers = registers,
                       .trans_b = trans_b,
                       .group = f->product_group};
    if (p->n != n || p->a != a || p->b != b || p->keep != keep || p->from_registers != registers)
        tn_emulated_fail("wgmma: the threads of a warpgroup differ");
    if (!registers) check_matrix(a);
    check_matrix(b);
    for (int i = 0; i < n / 2; i++) p->d[lane][i] = tn_ptx_place(r, i);
    for (int i = 0; i < 4 && registers; i++) p->regs[lane][i] = ptx_u32(r, n / 2 + i);
    f->n_products++;
    if (++p->filled < 128) return;
    fiber *first = &f->block->fibers[f->id / 128 * 128];
    for (int i = 0; i < 128; i++)
        if (first[i].state == WAITS_PRODUCT) tn_emulated_wake(&first[i]);
}

static void product_commit(ptx_run *r, int variant)
{
    (void)r, (void)variant;
    this_fiber()->product_group++;
}

// Products of all but the last `pending` groups.
void tn_emulated_product_wait(int pending)
{
    fiber *f = this_fiber();
    warpgroup *g = group_of(f);
    while (g->done < f->n_products) {
        product *p = &g->products[g->done % MAX_PRODUCTS];
        if (p->group >= f->product_group - pending) return;
        if (p->filled < 128) {
            tn_emulated_park(WAITS_PRODUCT, g->done, "wgmma.wait_group");
            continue;
        }
        carry_out(f->block, p);
        p->filled = 0;
        g->done++;
    }
}

static void product_wait(ptx_run *r, int variant)
{
    (void)variant;
    tn_emulated_product_wait((int)ptx_u32(r, 0));
}

const ptx_row tn_ptx_rows_matrix[] = {
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", load_matrices, 4 << 1 | PLAIN},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", load_matrices, 4 << 1 | TRANSPOSED},
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16", load_matrices, 2 << 1 | PLAIN},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", load_matrices, 2 << 1 | TRANSPOSED},
    {"movmatrix.sync.aligned.m8n8.trans.b16", transpose, 0},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", multiply_float, F16},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply_float, BF16},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", multiply_bytes, 32},
    {"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", multiply_bytes, 16},
    {"wgmma.commit_group.sync.aligned", product_commit, 0},
    {"wgmma.wait_group.sync.aligned", product_wait, 0},
    {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", product_issue, 64 << 1 | F16},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", product_issue, 128 << 1 | F16},
    {"wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16", product_issue, 192 << 1 | F16},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", product_issue, 256 << 1 | F16},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", product_issue, 128 << 1 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16", product_issue, 192 << 1 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", product_issue, 256 << 1 | BF16},
    {NULL, NULL, 0},
};
