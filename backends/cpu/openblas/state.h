// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of this folder share.
#ifndef TN_CPU_OPENBLAS_STATE_H
#define TN_CPU_OPENBLAS_STATE_H

#include "backends/cpu/openblas/openblas.h"

enum {
    TN_OPENBLAS_MAX_CHOICES = 512,
    TN_OPENBLAS_CONFIG_SIZE = 256,
    TN_OPENBLAS_NAME_SIZE = 512, // of the library: a path at most
};

// A class of products that was timed.
typedef struct tn_openblas_choice {
    char text[128]; // "matmul F16 m 512 n 4096 k 4096"; also the key
    int64_t own_ns, blas_ns;
} tn_openblas_choice;

struct tn_openblas {
    tn_openblas_device of;
    tn_context *ctx;
    char wanted[TN_OPENBLAS_NAME_SIZE]; // the library that the context names; "": the usual names
    bool forced;

    atomic_flag lock; // guards the rest: sessions of several threads prepare plans at the same time
    bool tried;       // to open it
    void *library;    // NULL: not open
    tn_openblas_api api;
    char name[TN_OPENBLAS_NAME_SIZE], why_not[TN_OPENBLAS_NAME_SIZE + 200];
    int32_t threads_before; // its number of threads when it was opened, if that was changed; else 0

    int32_t n_choices;                           // of TN_OPENBLAS_MAX_CHOICES, allocated with the first one
    char measured_with[TN_OPENBLAS_CONFIG_SIZE]; // configuration of the library that was timed
    tn_openblas_choice *choices;
};

void tn_openblas_lock(tn_openblas *b);
void tn_openblas_unlock(tn_openblas *b);
// Whether it can be called; opens it at the first call. Not with the lock held.
bool tn_openblas_is_open(tn_openblas *b);

#endif
