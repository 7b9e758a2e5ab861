// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope in portable C; the template says what and how.
// clang-format off: the vectors come before the code over them
#include "backends/cpu/c/vec_generic.h"
#include "backends/cpu/c/rope_tmpl.h"
