// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention in AVX2 + FMA + F16C; the template says what and how.
// The vectors come first: the template is written over them.
#include "backends/cpu/x86/vec_dot_avx2.h"
#include "backends/cpu/c/attention/attention_tmpl.h"
