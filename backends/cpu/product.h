// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Matrix products on the CPU: what the driver (product.c) shares with the micro-kernels of each ISA.
//
// Activations are quantised or copied once per step into "records", one per row of x. A product then runs in
// one of two ways. In both, every output element is computed by the same operations however the rows of w are
// divided:
//   rows  GEMV and skinny GEMM: each row of w is read once and multiplied with up to TN_MATMUL_ROWS_X records
//   tile  GEMM: a tile of w [tile_rows, <= tile_k] is unpacked into scratch and then multiplied with all of x
#ifndef TN_CPU_PRODUCT_H
#define TN_CPU_PRODUCT_H

#include "backends/cpu/kernel.h"
#include "ops/product.h"

enum {
    TN_MATMUL_GROUP = 256,       // elements; records are padded with zeros to a multiple of it
    TN_MATMUL_ROWS_X = 8,        // most rows of x of one call of a rows kernel
    TN_MATMUL_ROWS_ALIKE = 8,    // the least rows_x_max: so many rows take the same way as one
    TN_MATMUL_TILE_ROWS = 32,    // most rows of w in a tile
    TN_MATMUL_TILE_SIZE = 32768, // bytes of weights in a tile: leaves a third of a 48 KiB L1 to x
    TN_MATMUL_TILE_SUBS = 64,    // most sub-blocks along k in a tile
    TN_MATMUL_TILES = 4,         // most tiles that one call multiplies with x
    TN_MATMUL_LONG_K = 2048,     // most k of a tile of kernels that take several at once
    TN_MATMUL_BLOCK_X = 16,      // sums have space for a multiple of as many rows of x
};

// How a row of activations is quantised for quantised weights. Per 32 elements: d = amax / 127,
// q = round(x / d); a block with a NaN or infinity gets d = NaN, which reaches every result.
typedef struct tn_matmul_format {
    uint8_t order[64]; // chunk u of each 256 holds the elements of chunk order[u] of the row
    int32_t chunk;     // bytes of a chunk: 4 or 16
    int32_t sub;       // 16 or 32: elements that share an entry of d and sum
    int32_t bias;      // added to the weights by the unpackers; init subtracts it again
    int32_t lanes;     // 0: init has one value per sub-block, else one per lane: vectors of `lanes` x 4 bytes
    int32_t chain;     // of which `chain` in turn feed one accumulator
    bool is_bf16;      // nothing of all this: records as matrix units read them, see below
    bool is_split;     // nothing of all this: an element is the sum of two bf16, in 4 bytes
    const uint8_t
        *subs; // [16] NULL: d has one value per sub-block, else 16 of each 256: lane l that of subs[l]
} tn_matmul_format;

#define TN_MATMUL_ORDER_NATURAL                                                                              \
    {                                                                                                        \
        0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15                                                 \
    } // of 16 bytes

// Offsets in a record: q [k_pad] int8 first, then d [k_pad / sub] (or / 16: `subs`) f32, sum [k_pad / sub]
// f32 (d times the sum of q), init int32 (minus bias times sums of q). Without a format a record is k_pad
// floats, and with is_split as large. With is_bf16 16 records share a block [k_pad / 32][16 records][32] of
// bf16: x points to the first 64 bytes of a record, the others follow 1024 bytes apart, and size is a
// sixteenth of the block.
typedef struct tn_matmul_layout {
    int64_t k, k_pad;
    size_t d_off, sum_off, init_off, size;
} tn_matmul_layout;

// Where one group of 256 elements of a record goes.
typedef struct tn_matmul_record_group {
    int8_t *q;
    float *d, *sum;
    int32_t *init;
} tn_matmul_record_group;

// rows: y[t * y_stride + r] = w row r . x[t], r < n_rows, t < n_x <= TN_MATMUL_ROWS_X
typedef struct tn_matmul_rows_args {
    const uint8_t *w; // raw blocks, any alignment
    int64_t w_stride; // bytes
    int64_t n_rows;
    const tn_matmul_layout *layout;
    const uint8_t *const *x; // n_x records
    int64_t n_x;
    float *y;
    int64_t y_stride; // floats
} tn_matmul_rows_args;

// A tile of unpacked weights, k0 <= k < k0 + n_k (n_k a multiple of 256, padded with zeros). What q holds is
// between pack and tile of one kernel; scale and min are [n_k / sub][tile_rows].
typedef struct tn_matmul_tile {
    const uint8_t *w; // first row
    int64_t w_stride;
    int64_t n_rows; // 1..tile_rows; the others are computed and ignored
    int64_t k0, n_k;
    tn_dtype type;
    uint8_t *q;         // 64-byte aligned, TN_MATMUL_TILE_SIZE bytes, with n_tiles LONG_K rows of bf16
    float *scale, *min; // 64-byte aligned, TN_MATMUL_TILE_SUBS * TN_MATMUL_TILE_ROWS floats
    uint8_t *spare;     // as q, for kernels with n_tiles; what pack leaves there is lost
} tn_matmul_tile;

// acc[t * tile_rows + r] (+)= tile row r . x[t] over the k of the tile; `first` starts from 0. The sums of
// further tiles follow acc_size floats apart.
typedef struct tn_matmul_tile_args {
    const tn_matmul_tile *tile; // n_tiles of them, 1 unless the kernel takes more
    int32_t n_tiles;
    const tn_matmul_layout *layout;
    const uint8_t *const *x; // n_x records
    int64_t n_x;
    float *acc;       // 64-byte aligned, with space for n_x rounded up to TN_MATMUL_BLOCK_X
    int64_t acc_size; // floats
    bool first;
} tn_matmul_tile_args;

typedef struct tn_matmul_kernel {
    const tn_matmul_format *rows_format, *tile_format; // NULL: activations stay f32
    void (*rows)(const tn_matmul_rows_args *args);     // NULL: always tiles
    void (*pack)(const tn_matmul_tile *tile, const tn_matmul_layout *layout);
    void (*tile)(const tn_matmul_tile_args *args);
    bool has_min;       // value = scale * (byte - bias) + min
    int32_t tile_rows;  // multiple of 16
    int32_t tile_k;     // multiple of 256
    int32_t n_tiles;    // more than 1: tile takes up to so many at once, which are packed one after the other
    int32_t rows_x;     // most rows of x of a call of `rows`
    int32_t rows_x_max; // up to this many rows of x the rows kernel is faster
} tn_matmul_kernel;

// Decodes n elements of a row, n a multiple of the block unless the row ends there.
typedef void (*tn_matmul_decode_fn)(const void *row, float *y, int64_t n);

// What one ISA offers.
typedef struct tn_matmul_isa {
    const struct tn_matmul_isa *below;      // asked for what is NULL here
    const tn_matmul_kernel *const *kernels; // [TN_TYPE_COUNT]
    const tn_matmul_kernel *any;            // f32 products of types that no level has kernels for
    // Quantises elements k0 <= k < k1 (multiples of 256 or the end) of a row into its record.
    void (*quantise)(const tn_matmul_format *f, const tn_matmul_layout *l, const float *x, uint8_t *rec,
                     int64_t k0, int64_t k1);
    // In place on n floats, n a multiple of 16. act: TN_UNARY_* without parameters.
    void (*act)(int32_t kind, float *v, int64_t n);
    void (*glu)(const tn_glu_params *p, float *gate, const float *up, int64_t n);
    tn_matmul_decode_fn (*decoder)(tn_dtype type);
} tn_matmul_isa;

extern const tn_matmul_isa tn_matmul_isa_generic;
#if defined(__x86_64__)
extern const tn_matmul_isa tn_matmul_isa_avx2, tn_matmul_isa_avx512, tn_matmul_isa_avx512vnni;
#elif defined(TN_CPU_ARM)
extern const tn_matmul_isa tn_matmul_isa_neon_float, tn_matmul_isa_neon, tn_matmul_isa_dotprod,
    tn_matmul_isa_i8mm;
#endif
// The driver: runs the step of the task with the kernels of an ISA.
void tn_matmul_run(const tn_cpu_task *task, const tn_matmul_isa *isa);

// Elements [r0, r0 + n) of row `row` of the result of weight w.
typedef struct tn_matmul_place {
    const tn_product *product;
    const tn_matmul_isa *isa;
    int32_t w;
    int64_t row, r0, n;
} tn_matmul_place;
// The epilogue: v (and for gate and up, u) hold the sums; both have space for a multiple of 16 values.
void tn_matmul_finish(const tn_matmul_place *at, float *v, const float *u);

// For kernels.def, all six ops. plain: the activations stay f32; quantising: they become int8 for all
// weights; tiles: many rows, and they and the weights become bf16.
bool tn_matmul_accepts_plain(const tn_step *step);
bool tn_matmul_accepts_quantising(const tn_step *step);
bool tn_matmul_accepts_tiles(const tn_step *step);
size_t tn_matmul_scratch(const tn_step *step, int32_t n_threads);
size_t tn_matmul_scratch_tiles(const tn_step *step, int32_t n_threads);
int32_t tn_matmul_parts(const tn_cpu_task *task);
void tn_matmul_generic(const tn_cpu_task *task);
void tn_matmul_avx2(const tn_cpu_task *task);
void tn_matmul_avxvnni(const tn_cpu_task *task);
void tn_matmul_avx512(const tn_cpu_task *task);
void tn_matmul_avx512vnni(const tn_cpu_task *task);
void tn_matmul_amx(const tn_cpu_task *task);
void tn_matmul_neon(const tn_cpu_task *task);
void tn_matmul_dotprod(const tn_cpu_task *task);
void tn_matmul_i8mm(const tn_cpu_task *task);
void tn_matmul_bf16(const tn_cpu_task *task);

// Whether products with weights of this type quantise their activations, and what x becomes then: the row as
// floats after quantisation, the same at every ISA. For tests that judge a kernel on the same quantised
// input.
bool tn_matmul_quantises(tn_dtype weight_type);
void tn_matmul_quantise_row(const float *x, float *y, int64_t k);

#endif
