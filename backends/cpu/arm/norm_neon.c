// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, layer_norm, add_rms_norm in NEON; the template says what and how.
// The vectors come first: the template is written over them.
#include "backends/cpu/arm/vec_neon.h"
#include "backends/cpu/c/norm_tmpl.h"
