// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the check tool share: cases (an op with generated operands), targets (a device at one
// level) and the results per op, type and target.
//
//   check.c options, targets, summary     cases*.c the cases of each op    data.c values of operands
//   run.c   one case on all targets       compare.c judging results        rounding.c what kernels round
//   fake.c  a device with faults          coverage.c the table             bench.c, peak.c speed
#ifndef TN_TESTS_CHECK_H
#define TN_TESTS_CHECK_H

#include "core/device.h"
#include "ops/any_params.h"
#include "ops/ops.h"

#include <stdio.h>

enum {
    CHECK_MAX_TARGETS = 8,
    CHECK_MAX_KERNELS = 6, // names kept per op, type and target
    CHECK_GUARD = 256,     // bytes of fence around each operand; keeps the alignment of allocations
    CHECK_POOL = 8192,     // explicit integers of a case
};

// --- random numbers --------------------------------------------------------------------------------

typedef struct check_rng {
    uint64_t state;
} check_rng;

uint64_t check_random_u64(check_rng *r);
double check_random_unit(check_rng *r);                         // [0, 1)
int64_t check_random_int(check_rng *r, int64_t lo, int64_t hi); // lo..hi
float check_random_normal(check_rng *r);

// --- cases -----------------------------------------------------------------------------------------

typedef enum check_fill {
    CHECK_NORMAL,  // lo + hi * N(0, 1); hi 0 means 1
    CHECK_EXTREME, // +-10^u, u uniform in lo..hi
    CHECK_SPECIAL, // normal, every fourth value or so one of `special`
    CHECK_TIES,    // a handful of different values
    CHECK_MASK,    // 0 or -inf
    CHECK_CONST,   // lo
    CHECK_INT,     // integers lo..hi
    CHECK_DATA,    // the integers at ints_off of the case's pool
} check_fill;

enum { CHECK_ZERO = 1, CHECK_POS_INF = 2, CHECK_NEG_INF = 4, CHECK_NAN = 8, CHECK_ALL_SPECIAL = 15 };

// A source: a view [start, start + ne) of a contiguous parent, with its dimensions permuted if wanted.
typedef struct check_operand {
    tn_dtype dtype;
    int32_t n_dims; // 0: absent
    int64_t ne[TN_MAX_DIMS];
    int64_t parent[TN_MAX_DIMS], start[TN_MAX_DIMS]; // extents before permuting
    int32_t axes[TN_MAX_DIMS];                       // view dimension d is parent dimension axes[d]
    size_t shift;                                    // bytes added to the address
    bool shared; // another view of the memory of the source before it, with the same parent
    check_fill fill;
    double lo, hi;
    int32_t special;
    bool random_blocks; // packed types: any valid bit pattern, not only what the encoder writes
    int32_t ints_off;
} check_operand;

typedef struct check_case {
    int32_t op, n_src, number; // number: of the case within its op
    int32_t precision;         // TN_PRECISION_*
    tn_dtype type;             // that the case is about: weights, cache, or F32
    uint64_t seed;
    check_operand src[TN_MAX_SRC];
    tn_any_params params;
    bool in_place; // result 0 has the storage of source 0
    bool one_query, uneven, apart, mixed; // of tn_step_join
    bool relative; // every element has to be right by itself
    double floor;  // magnitude below which errors are not judged; 0: where f32 loses precision
    char note[96];
    int32_t n_ints;
    int32_t ints[CHECK_POOL];
} check_case;

// --- runs ------------------------------------------------------------------------------------------

typedef struct check_target {
    char label[32];  // level, or name of the device
    bool has_levels; // the label is one
    tn_context *ctx, *ctx_single;
    tn_device *device;
    tn_device *single; // the same with one thread, NULL if there is no such thing
} check_target;

typedef struct check_result {
    int32_t n_cases, n_failed, n_skipped;
    double worst; // NMSE
    const char *kernels[CHECK_MAX_KERNELS];
    int32_t n_kernels[CHECK_MAX_KERNELS]; // cases per name
} check_result;

typedef struct check_options {
    const char *backend, *isa;
    int32_t op, type, only_case, precision; // -1: all
    uint64_t seed;
    int32_t n_threads, variant; // variant: 0: that which the device chooses
    int32_t sweep;              // variants to time one after the other, from 1 on; 0: none
    const char *shape;          // to time: part of its label; NULL: all
    bool quick, core, json, list, coverage, bench, self_test, quiet;
} check_options;

typedef struct check_run {
    check_options options;
    check_target targets[CHECK_MAX_TARGETS];
    int32_t n_targets;
    int64_t n_passed, n_failed, n_skipped, n_printed;
    int32_t n_cases[TN_OP_COUNT];
    // [op][type][target]
    check_result (*results)[TN_TYPE_COUNT][CHECK_MAX_TARGETS];
    char last_failure[512];
} check_run;

// Whether the op has cases: views have no work, transfer is done by the runner.
bool check_op_has_cases(int32_t op);
// Generates and runs the cases of an op.
void check_cases(check_run *run, int32_t op);
// Clears a case for op. The generators then append sources with check_src, and emit.
void check_begin(check_case *c, int32_t op);
check_operand *check_src(check_case *c, tn_dtype type, int32_t n_dims, const int64_t *shape);
check_operand *check_vec(check_case *c, tn_dtype type, int64_t n);
check_operand *check_mat(check_case *c, tn_dtype type, int64_t m, int64_t n);
check_operand *check_cube(check_case *c, tn_dtype type, int64_t a, int64_t b, int64_t n);
void check_absent(check_case *c);
// Makes the source a slice of longer rows.
void check_strided(check_operand *o);
// Swaps two dimensions in memory; counted in the four-dimensional shape.
void check_permuted(check_operand *o, int32_t a, int32_t b);
void check_range(check_operand *o, check_fill fill, double lo, double hi);
// Runs the case on every target that is asked for.
void check_emit(check_run *run, check_case *c);

// Cases of the ops of a family, in cases_<family>.c; they do nothing for an op that has none.
typedef void (*check_cases_fn)(check_run *run, int32_t op);
#define TN_FAMILY(name, set) void check_cases_##name(check_run *run, int32_t op);
#include "ops/families.def"

void check_cases_sample(check_run *run); // of one op, which has a file of its own

// Lengths of rows: around vector widths, blocks and unrolled loops, and widths of models.
typedef struct check_size_list {
    const int64_t *n;
    size_t count;
} check_size_list;
check_size_list check_sizes(const check_run *run);
// Types that a KV cache can have.
enum { CHECK_N_CACHE_TYPES = 5 };
extern const tn_dtype check_cache_types[CHECK_N_CACHE_TYPES];
// Appends n integers to those of the case and makes the operand read them.
int32_t *check_ints(check_case *c, check_operand *o, int64_t n);
// A slot that a store with so many does not have: negative, or past the end by one or by far.
static inline int32_t check_no_slot(int64_t token, int64_t n_slots)
{
    const int32_t none[] = {-1, (int32_t)n_slots, INT32_MAX, INT32_MIN};
    return none[token / 3 % 4];
}
// Weights for matrix products: [n, k] or, with experts > 0, [experts, n, k].
check_operand *check_weight(check_case *c, tn_dtype type, int64_t experts, int64_t n, int64_t k);

// --- data ------------------------------------------------------------------------------------------

size_t check_operand_size(const check_operand *o); // bytes of the parent
// The view that a kernel sees, with data at `parent` (may be NULL).
tn_view check_operand_view(const check_operand *o, void *parent);
// Fills the parent: values in the view, NaN patterns around it.
void check_operand_fill(const check_case *c, int32_t src, void *parent);
// The step of a case with results inferred. Data pointers are NULL.
tn_status check_step(tn_context *ctx, const check_case *c, tn_step *step);
// "matmul x F32 [2, 32], ..." into buf
const char *check_case_text(const check_case *c, char *buf, size_t size);

// --- judging ---------------------------------------------------------------------------------------

typedef struct check_diff {
    double nmse, got, want; // got and want: of the worst element
    double worst_nse;       // (a - b)^2 of the worst element / mean of b^2
    int64_t worst, n;
    const char *problem; // NULL, or what no tolerance covers
} check_diff;

// How to compare. exact: bits of integers and floats, but any NaN equals any.
typedef struct check_rule {
    bool exact, relative;
    double floor;
} check_rule;

// Compares contiguous views of one shape.
check_diff check_compare(const tn_view *got, const tn_view *want, const check_rule *rule);

// What a kernel that quantises or rounds activations makes of a row of k values; NULL if it uses them as
// given.
typedef void (*check_round_fn)(const float *x, float *y, int64_t k);
check_round_fn check_rounding(const tn_device *device, const tn_step *step);
// The same for rows of weights, of kernels that expand them to fewer bits than f32.
check_round_fn check_weight_rounding(const tn_device *device, const tn_step *step);
// Whether the kernel rounds weights of Q6_K; does so with a row of k of them, from the blocks of the file.
bool check_rounds_q6_k(const tn_device *device, const tn_step *step);
void check_round_q6_k(const uint8_t *blocks, float *row, int64_t k);

// NMSE of products on the same rounded operands, of kernels that do not sum in f32; 0: of those that do.
double check_sums_nmse(const tn_device *device, const tn_step *step);
// Elements of k that tensor cores add up in sums of few bits before the kernel adds those in f32; 0: none.
int64_t check_short_sums(const tn_device *device, const tn_step *step);
// How far that may move an element of a result: of a step with operands as the kernel rounds them, in f32 and
// without a norm.
double check_short_sums_bound(const tn_step *step, int32_t result, int64_t element, int64_t run);
// How far rounding in the kernel may move one element of attention, as a share of the largest value; 0: what
// holds for all kernels is enough.
double check_value_error(const tn_device *device, const tn_step *step);

// --- modes -----------------------------------------------------------------------------------------

int check_self_test(check_run *run);
void check_coverage_print(const check_run *run);
void check_summary_print(const check_run *run);
void check_bench(check_run *run);

typedef struct check_peaks {
    double read, fma, dot; // bytes/s, flop/s of f32, op/s of int8; 0: not measured
} check_peaks;
check_peaks check_peaks_measure(const check_target *target);

#endif
