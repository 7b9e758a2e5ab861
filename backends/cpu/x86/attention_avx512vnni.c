// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention in AVX-512 F, BW, DQ, VL with VNNI for scores of quantised keys; the template says what and how.
// The vectors come first: the template is written over them.
#include <immintrin.h>

#define VEC_DPWSSD _mm512_dpwssd_epi32
#include "backends/cpu/x86/vec_bytes_avx512.h"
#undef VEC_NAME
#define VEC_NAME(base) tn_##base##_avx512vnni
#include "backends/cpu/c/attention/attention_tmpl.h"
