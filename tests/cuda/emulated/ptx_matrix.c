// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions of a warp (PTX ISA 8.7, Warp Level Matrix Instructions: ldmatrix, movmatrix, mma) and
// of a warpgroup (Asynchronous Warpgroup Level Matrix Instructions: wgmma). Sums are f32 in order of k.
#include "tests/cuda/emulated/ptx.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Element types of operands: an instruction takes 32 bytes of each row, whatever they are.
enum { F16, BF16, TF32, E4M3, STEP_BYTES = 32, STEP_MAX = 32, UNSIGNED = 64 };
enum { SHORT_BITS = 13 }; // that sums of e4m3 keep behind the point of the largest product

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

// 1.4.3 with bias 7; no infinities, all ones is NaN.
static float e4m3_value(uint32_t bits)
{
    uint32_t e = bits >> 3 & 15, frac = bits & 7;
    float x = e == 15 && frac == 7 ? NAN
              : e == 0             ? ldexpf((float)frac, -9)
                                   : ldexpf((float)(8 + frac), (int)e - 10);
    return bits & 0x80 ? -x : x;
}

// The power of two of x, that of 0 below all others.
static int power_of(float x)
{
    return x == 0.0f ? INT_MIN : ilogbf(x);
}

// What Hopper makes of products of e4m3: they and the sum so far are cut to 13 bits behind the point of the
// largest of them, the result too (arXiv:2412.19437, section 3.3.2: some 14 bits). NaN and infinities as
// everywhere.
static float short_sum(const float *row, const float *column, int n, float sum)
{
    int most = power_of(sum);
    double total = 0.0;
    for (int k = 0; k < n; k++) {
        float p = row[k] * column[k];
        if (!isfinite(p) || !isfinite(sum)) return sum + p;
        if (p != 0.0f)
            most =
                power_of(row[k]) + power_of(column[k]) > most ? power_of(row[k]) + power_of(column[k]) : most;
    }
    if (most == INT_MIN) return sum;
    double unit = ldexp(1.0, most - SHORT_BITS);
    for (int k = 0; k < n; k++) total += trunc((double)(row[k] * column[k]) / unit);
    total = (total + trunc((double)sum / unit)) * unit;
    if (total == 0.0) return 0.0f;
    unit = ldexp(1.0, ilogb(total) - SHORT_BITS);
    return (float)(trunc(total / unit) * unit);
}

static float sum_of(int type, const float *row, const float *column, int n, float sum)
{
    if (type == E4M3) return short_sum(row, column, n, sum);
    for (int k = 0; k < n; k++) sum += row[k] * column[k];
    return sum;
}

// 32 bytes as values; returns how many.
static int values_of(const void *bytes, int type, float to[STEP_MAX])
{
    if (type == E4M3) {
        for (int i = 0; i < 32; i++) to[i] = e4m3_value(((const uint8_t *)bytes)[i]);
        return 32;
    }
    if (type == TF32) {
        for (int i = 0; i < 8; i++) {
            uint32_t bits;
            memcpy(&bits, (const char *)bytes + 4 * i, 4);
            bits &= ~0x1fffu;
            memcpy(&to[i], &bits, 4);
        }
        return 8;
    }
    for (int i = 0; i < 16; i++) {
        uint16_t bits;
        memcpy(&bits, (const char *)bytes + 2 * i, 2);
        to[i] = value_of(bits, type);
    }
    return 16;
}

// --- ldmatrix, movmatrix -------------------------------------------------------------------------

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
    if (this_fiber()->lane < 8 * n) {
        x.row = tn_emulated_shared_at(ptx_u32(r, n), 16, 16);
        tn_emulated_shared_used(x.row, 16);
    }
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

// --- mma -----------------------------------------------------------------------------------------

typedef struct multiplied {
    int type;
    uint32_t a[4], b[2];
    uint32_t c[4], *d[4]; // f32 or s32
} multiplied;

// f32 sums: a has 16 rows, b 8
static void finish_float(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("mma by lanes %08x", there);
    char bytes_a[16][STEP_BYTES], bytes_b[8][STEP_BYTES];
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        int g = l / 4, i = 4 * (l % 4);
        for (int q = 0; q < 4; q++) memcpy(&bytes_a[g + q % 2 * 8][i + q / 2 * 16], &x->a[q], 4);
        for (int q = 0; q < 2; q++) memcpy(&bytes_b[g][i + q * 16], &x->b[q], 4);
    }
    float a[16][STEP_MAX], b[8][STEP_MAX];
    int type = ((const multiplied *)lanes[0].data)->type, n = 0;
    for (int i = 0; i < 16; i++) n = values_of(bytes_a[i], type, a[i]);
    for (int i = 0; i < 8; i++) values_of(bytes_b[i], type, b[i]);
    for (int l = 0; l < WARP; l++) {
        const multiplied *x = lanes[l].data;
        for (int q = 0; q < 4; q++) {
            const float *row = a[l / 4 + q / 2 * 8], *column = b[2 * (l % 4) + q % 2];
            float sum;
            memcpy(&sum, &x->c[q], 4);
            sum = sum_of(type, row, column, n, sum);
            memcpy(x->d[q], &sum, 4);
        }
    }
}

// int8, s32 sums: a [16 x 32], b [32 x 8]
static void finish_bytes(fiber *lanes, uint32_t there)
{
    if (there != UINT32_MAX) tn_emulated_fail("mma by lanes %08x", there);
    int8_t a[16][32], b[8][32];
    bool is_unsigned = ((const multiplied *)lanes[0].data)->type == UNSIGNED;
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
            for (int k = 0; k < 32; k++) sum += (is_unsigned ? (uint8_t)row[k] : row[k]) * column[k];
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
    static const char what[4];
    multiplied x = {.type = type};
    gather(r, &x, 4, 2);
    tn_emulated_meet(&what[type], "mma", UINT32_MAX, &x, finish_float);
}

// Half of k: the registers of the other half are zeros. UNSIGNED: a is u8.
static void multiply_bytes(ptx_run *r, int k)
{
    static const char what[4];
    multiplied x = {.type = k & UNSIGNED};
    k &= ~UNSIGNED;
    gather(r, &x, k / 8, k / 16);
    tn_emulated_meet(&what[(k == 16) + 2 * (x.type != 0)], "mma", UINT32_MAX, &x, finish_bytes);
}

// --- wgmma ---------------------------------------------------------------------------------------

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
// Rows are of 128 bytes along k, or along the other dimension if `along_n`; or of 32 bytes along k, with the
// 32-byte swizzle.
static uint32_t element_at(uint64_t matrix, int n, int k, bool along_n)
{
    uint32_t start = (uint32_t)(matrix & 0x3fff) << 4, leading = (uint32_t)(matrix >> 16 & 0x3fff) << 4,
             stride = (uint32_t)(matrix >> 32 & 0x3fff) << 4;
    if (matrix >> 62 == 3) {
        uint32_t at = start + (uint32_t)(n / 8) * stride + (uint32_t)(n % 8 * 32 + k * 2);
        return at ^ (at >> 7 & 1) << 4;
    }
    uint32_t at = along_n ? start + (uint32_t)(n / 64) * leading + (uint32_t)(k / 8) * stride +
                                (uint32_t)(k % 8 * 128 + n % 64 * 2)
                          : start + (uint32_t)(n / 8) * stride + (uint32_t)(n % 8 * 128 + k * 2);
    return at ^ (at >> 7 & 7) << 4;
}

static int read_tile(const block *b, uint64_t matrix, int n, bool along_n, int type, float (*to)[STEP_MAX])
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        char bytes[STEP_BYTES];
        for (int k = 0; k < STEP_BYTES / 2; k++)
            memcpy(bytes + 2 * k, b->window + element_at(matrix, i, k, along_n), 2);
        count = values_of(bytes, type, to[i]);
    }
    return count;
}

static void carry_out(const block *b, product *p)
{
    static float a[64][STEP_MAX], w[256][STEP_MAX];
    if (!p->from_registers) read_tile(b, p->a, 64, p->trans_a != 0, p->type, a);
    for (int i = 0; i < 64 && p->from_registers; i++) {
        char bytes[STEP_BYTES]; // row i: of 4 threads, 4 bytes in each half
        for (int t = 0; t < 4; t++)
            for (int half = 0; half < 2; half++)
                memcpy(bytes + 4 * t + 16 * half,
                       &p->regs[i / 16 * 32 + i % 8 * 4 + t][i % 16 / 8 + 2 * half], 4);
        values_of(bytes, p->type, a[i]);
    }
    int n = read_tile(b, p->b, p->n, p->trans_b != 0, p->type, w);
    for (int t = 0; t < 128; t++)
        for (int j = 0; j < p->n / 2; j++) {
            const float *row = a[t / 32 * 16 + t % 32 / 4 + j / 2 % 2 * 8],
                        *column = w[j / 4 * 8 + 2 * (t % 4) + j % 2];
            *p->d[t][j] = sum_of(p->type, row, column, n, p->keep ? *p->d[t][j] : 0.0f);
        }
}

// The descriptor has to name the 128-byte swizzle, or that of 32 bytes for rows along k, with tiles that
// start where it begins.
static void check_matrix(uint64_t matrix, bool along_n)
{
    bool narrow = matrix >> 61 == 6 && !along_n && (matrix & 15) == 0;
    if ((matrix >> 61 != 2 && !narrow) || (matrix >> 49 & 7) != 0)
        tn_emulated_fail("wgmma: the descriptor %016llx is not of a swizzle that the emulation knows",
                         (unsigned long long)matrix);
}

// Operands: n / 2 registers of d; a or four registers of it; b; predicate and signs; with 16 bits, which way
// a (in memory) and b lie.
static void product_issue(ptx_run *r, int variant)
{
    fiber *f = this_fiber();
    warpgroup *g = group_of(f);
    int n = variant >> 2, type = variant & 3, turns = type == F16 || type == BF16;
    product *p = &g->products[f->n_products % MAX_PRODUCTS];
    if (f->n_products - g->done >= MAX_PRODUCTS) tn_emulated_fail("wgmma: more than %d fly", MAX_PRODUCTS);
    bool registers = r->step->n_args == n / 2 + 8 + turns;
    if (!registers && r->step->n_args != n / 2 + 5 + 2 * turns)
        tn_emulated_fail("wgmma: %d operands", r->step->n_args);
    int at = n / 2 + (registers ? 4 : 1), lane = f->id % 128;
    uint64_t a = registers ? 0 : tn_ptx_get(r, n / 2, 8), b = tn_ptx_get(r, at, 8);
    bool keep = ptx_u32(r, at + 1) != 0;
    int trans_b = turns ? (int)ptx_u32(r, r->step->n_args - 1) : 0;
    int trans_a = turns && !registers ? (int)ptx_u32(r, r->step->n_args - 2) : 0;
    if (p->filled == 0)
        *p = (product){.n = n,
                       .type = type,
                       .a = a,
                       .b = b,
                       .keep = keep,
                       .from_registers = registers,
                       .trans_a = trans_a,
                       .trans_b = trans_b,
                       .group = f->product_group};
    if (p->n != n || p->a != a || p->b != b || p->keep != keep || p->from_registers != registers)
        tn_emulated_fail("wgmma: the threads of a warpgroup differ");
    if (!registers) check_matrix(a, trans_a != 0);
    check_matrix(b, trans_b != 0);
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

// cvt.rn.satfinite.e4m3x2.f32: the second operand becomes the lower byte
static uint32_t to_e4m3(float v)
{
    uint32_t sign = signbit(v) ? 0x80 : 0;
    float x = fabsf(v);
    if (x != x) return 0x7f;
    if (x > 448.0f) return sign | 0x7e;
    int e = x < 0.015625f ? -6 : ilogbf(x);
    uint32_t n = (uint32_t)nearbyintf(ldexpf(x, 3 - e)); // 0 .. 16: 8 and more are normal
    return sign | (n < 8 ? n : (uint32_t)(e + 6) * 8 + n);
}

static void pack_e4m3(ptx_run *r, int variant)
{
    (void)variant;
    uint32_t bits[2];
    for (int i = 0; i < 2; i++) {
        float x;
        uint32_t u = ptx_u32(r, 1 + i);
        memcpy(&x, &u, 4);
        bits[i] = to_e4m3(x);
    }
    uint16_t both = (uint16_t)(bits[0] << 8 | bits[1]);
    memcpy(tn_ptx_place(r, 0), &both, sizeof both);
}

const ptx_row tn_ptx_rows_matrix[] = {
    {"cvt.rn.satfinite.e4m3x2.f32", pack_e4m3, 0},
    {"ldmatrix.sync.aligned.m8n8.x4.shared.b16", load_matrices, 4 << 1 | PLAIN},
    {"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", load_matrices, 4 << 1 | TRANSPOSED},
    {"ldmatrix.sync.aligned.m8n8.x2.shared.b16", load_matrices, 2 << 1 | PLAIN},
    {"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", load_matrices, 2 << 1 | TRANSPOSED},
    {"movmatrix.sync.aligned.m8n8.trans.b16", transpose, 0},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", multiply_float, F16},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", multiply_float, BF16},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", multiply_float, TF32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", multiply_float, E4M3},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", multiply_bytes, 32},
    {"mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", multiply_bytes, 32 | UNSIGNED},
    {"mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32", multiply_bytes, 16},
    {"mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32", multiply_bytes, 16 | UNSIGNED},
    {"wgmma.commit_group.sync.aligned", product_commit, 0},
    {"wgmma.wait_group.sync.aligned", product_wait, 0},
    {"wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16", product_issue, 16 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16", product_issue, 32 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16", product_issue, 40 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n48k16.f32.f16.f16", product_issue, 48 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", product_issue, 64 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n72k16.f32.f16.f16", product_issue, 72 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16", product_issue, 80 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n88k16.f32.f16.f16", product_issue, 88 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16", product_issue, 96 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n112k16.f32.f16.f16", product_issue, 112 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", product_issue, 128 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n160k16.f32.f16.f16", product_issue, 160 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n176k16.f32.f16.f16", product_issue, 176 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n192k16.f32.f16.f16", product_issue, 192 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n208k16.f32.f16.f16", product_issue, 208 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n224k16.f32.f16.f16", product_issue, 224 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n240k16.f32.f16.f16", product_issue, 240 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", product_issue, 256 << 2 | F16},
    {"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16", product_issue, 16 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16", product_issue, 32 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", product_issue, 64 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n96k16.f32.bf16.bf16", product_issue, 96 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n112k16.f32.bf16.bf16", product_issue, 112 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", product_issue, 128 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32", product_issue, 128 << 2 | TF32},
    {"wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3", product_issue, 128 << 2 | E4M3},
    {"wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16", product_issue, 192 << 2 | BF16},
    {"wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", product_issue, 256 << 2 | BF16},
    {NULL, NULL, 0},
};
