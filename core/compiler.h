// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The only file with compiler extensions.
#ifndef TN_CORE_COMPILER_H
#define TN_CORE_COMPILER_H

// On Windows with gcc, `printf` is the format of msvcrt, which lacks %zu. The functions called are those of
// mingw-w64 (__USE_MINGW_ANSI_STDIO, meson.build).
#if defined(__MINGW32__) && !defined(__clang__)
#define TN_PRINTF_STYLE gnu_printf
#else
#define TN_PRINTF_STYLE printf
#endif

#if defined(__GNUC__)
#define TN_PRINTF(fmt_arg, first_arg) __attribute__((format(TN_PRINTF_STYLE, fmt_arg, first_arg)))
#define TN_LIKELY(x) __builtin_expect(!!(x), 1)
#define TN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define TN_PREFETCH(p) __builtin_prefetch(p)
#define TN_PREFETCH_L2(p) __builtin_prefetch(p, 0, 2)
#define TN_ALIGNED(n) __attribute__((aligned(n)))
#define TN_NOINLINE __attribute__((noinline))
#define TN_INLINE static inline __attribute__((always_inline))
#else
#define TN_PRINTF(fmt_arg, first_arg)
#define TN_LIKELY(x) (x)
#define TN_UNLIKELY(x) (x)
#define TN_PREFETCH(p) ((void)(p))
#define TN_PREFETCH_L2(p) ((void)(p))
#define TN_ALIGNED(n)
#define TN_NOINLINE
#define TN_INLINE static inline
#endif

// Full unrolling of the short loop that follows: accumulators in arrays then live in registers at -O2.
#if defined(__clang__)
#define TN_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define TN_UNROLL _Pragma("GCC unroll 16")
#else
#define TN_UNROLL
#endif

#if defined(__x86_64__)
#define TN_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define TN_PAUSE() __asm__ volatile("yield")
#else
#define TN_PAUSE() ((void)0)
#endif

// Files hold numbers in little endian, and weights are used where a file has them.
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TN_BIG_ENDIAN 1
#else
#define TN_BIG_ENDIAN 0
#endif
_Static_assert(sizeof(void *) == 8, "tenon needs a 64-bit system: models are mapped whole");

#define TN_UNUSED(x) ((void)(x))
#define TN_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TN_MIN(a, b) ((a) < (b) ? (a) : (b))
#define TN_MAX(a, b) ((a) > (b) ? (a) : (b))

#endif
