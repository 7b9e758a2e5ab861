// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention in AVX2 + FMA + F16C with AVX-VNNI for scores of quantised keys; the template says what and how.
// The vectors come first: the template is written over them.
#include "backends/cpu/kernel.h"
#include "backends/cpu/x86/product/dpbusd.h"

#define VEC_DPWSSD dpwssd
#include "backends/cpu/x86/vec_dot_avx2.h"
#undef VEC_NAME
#define VEC_NAME(base)             VEC_NAME_OF(base, LEVEL)
#define VEC_NAME_OF(base, level)   VEC_NAME_JOIN(base, level)
#define VEC_NAME_JOIN(base, level) tn_##base##_##level
void VEC_NAME(attention_f32)(const tn_cpu_task *task); // under another name in tests/cpu
#include "backends/cpu/c/attention/attention_tmpl.h"
