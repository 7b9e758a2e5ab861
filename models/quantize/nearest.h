// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Names that are close to one that is not known, for messages.
#ifndef TN_MODELS_NEAREST_H
#define TN_MODELS_NEAREST_H

#include <stddef.h>

// Edit distance of two names, which need not be terminated.
int tn_name_distance(const char *a, size_t na, const char *b, size_t nb);

#endif
