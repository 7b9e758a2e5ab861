// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope in NEON; the template says what and how.
// The vectors come first: the template is written over them.
#include "backends/cpu/arm/vec_neon.h"
#include "backends/cpu/c/rope_tmpl.h"
