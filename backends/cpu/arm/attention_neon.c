// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// attention in NEON; the template says what and how.
// The vectors come first: the template is written over them.
#include "backends/cpu/arm/vec_neon.h"
#include "backends/cpu/c/attention/attention_tmpl.h"
