// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// How the rows of kernels.def are expanded, and the prototypes of all launch functions.
#ifndef TN_CPU_KERNELS_H
#define TN_CPU_KERNELS_H

#include "backends/cpu/kernel.h"

// A row of kernels.def stands for one kernel at several levels. For each of them these call
// row(LEVEL, suffix, ...): the functions of a kernel called `norm` are tn_norm_generic, tn_norm_avx2 and so
// on.
#define TN_CPU_AT_C(row, ...) row(GENERIC, generic, __VA_ARGS__)
#if defined(__x86_64__)
#define TN_CPU_AT_VEC(row, ...)                                                                              \
    TN_CPU_AT_C(row, __VA_ARGS__) row(AVX2, avx2, __VA_ARGS__) row(AVX512, avx512, __VA_ARGS__)
#define TN_CPU_AT_DOT(row, ...)                                                                              \
    TN_CPU_AT_VEC(row, __VA_ARGS__)                                                                          \
    row(AVXVNNI, avxvnni, __VA_ARGS__) row(AVX512VNNI, avx512vnni, __VA_ARGS__)
#define TN_CPU_AT_INT(row, ...)                                                                              \
    TN_CPU_AT_C(row, __VA_ARGS__)                                                                            \
    row(AVX2, avx2, __VA_ARGS__) row(AVXVNNI, avxvnni, __VA_ARGS__) row(AVX512VNNI, avx512vnni, __VA_ARGS__)
#define TN_CPU_AT_TILES(row, ...) row(AMX, amx, __VA_ARGS__)
#define TN_CPU_AT_SPLIT(row, ...)
#elif defined(TN_CPU_ARM)
#define TN_CPU_AT_VEC(row, ...) TN_CPU_AT_C(row, __VA_ARGS__) row(NEON, neon, __VA_ARGS__)
#define TN_CPU_AT_DOT           TN_CPU_AT_VEC
#define TN_CPU_AT_INT(row, ...)                                                                              \
    TN_CPU_AT_VEC(row, __VA_ARGS__) row(DOTPROD, dotprod, __VA_ARGS__) row(I8MM, i8mm, __VA_ARGS__)
#define TN_CPU_AT_TILES(row, ...)
#define TN_CPU_AT_SPLIT(row, ...) row(BF16, bf16, __VA_ARGS__)
#else
#define TN_CPU_AT_VEC TN_CPU_AT_C
#define TN_CPU_AT_DOT TN_CPU_AT_C
#define TN_CPU_AT_INT TN_CPU_AT_C
#define TN_CPU_AT_TILES(row, ...)
#define TN_CPU_AT_SPLIT(row, ...)
#endif

/* clang-format off */
#define TN_CPU_PROTOTYPE(level, suffix, name) void tn_##name##_##suffix(const tn_cpu_task *task);
#define TN_CPU_KERNEL(set, levels, name, accepts, scratch, parts, flags)                                     \
    TN_CPU_AT_##levels(TN_CPU_PROTOTYPE, name)
/* clang-format on */
#include "backends/cpu/kernels.def"

// Which steps the kernels accept, the same at every level: c/accepts.c, and product.c for products.
#define TN_CPU_KERNEL(set, levels, name, accepts, scratch, parts, flags) bool accepts(const tn_step *step);
#include "backends/cpu/kernels.def"

// Into how many parts they cut them: c/parts.c, c/attention/plan.c and product.c.
#define TN_CPU_KERNEL(set, levels, name, accepts, scratch, parts, flags)                                     \
    int32_t parts(const tn_cpu_task *task);
#include "backends/cpu/kernels.def"

#endif
