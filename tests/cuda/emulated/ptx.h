// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Instructions of PTX that the emulation knows: rows by full name, in tables.
#ifndef TN_TESTS_EMULATED_PTX_H
#define TN_TESTS_EMULATED_PTX_H

#include "tests/cuda/emulated/machine.h"

enum { PTX_MAX_STEPS = 8, PTX_MAX_NAMES = 8 };

typedef struct ptx_run ptx_run;

typedef struct ptx_row {
    const char *name;
    void (*run)(ptx_run *r, int variant);
    int variant;
} ptx_row;

extern const ptx_row tn_ptx_rows_basic[], tn_ptx_rows_copy[], tn_ptx_rows_matrix[];

enum { PTX_OPERAND, PTX_NAME, PTX_VALUE };

typedef struct ptx_arg {
    int kind;
    long at; // number of the operand, of the name, or the value
} ptx_arg;

typedef struct ptx_step {
    const ptx_row *row;
    int guard; // name, -1: none
    bool unless;
    int n_args;
    ptx_arg *args;
} ptx_step;

typedef struct ptx {
    int n_steps, n_names, max_args;
    ptx_step steps[PTX_MAX_STEPS];
    char names[PTX_MAX_NAMES][32];
    int labels[PTX_MAX_NAMES]; // step of the name as a label
} ptx;

struct ptx_run {
    ptx *program;
    ptx_step *step;
    tn_emulated_operand *operands;
    int n_operands;
    uint64_t values[PTX_MAX_NAMES];
    int jump; // step to go on with, -1: the next one
};

// Operand `arg` of the instruction: its value of `size` bytes; where its result goes.
uint64_t tn_ptx_get(const ptx_run *r, int arg, int size);
void *tn_ptx_place(ptx_run *r, int arg);

static inline uint32_t ptx_u32(const ptx_run *r, int arg)
{
    return (uint32_t)tn_ptx_get(r, arg, 4);
}

static inline void *ptx_pointer(const ptx_run *r, int arg)
{
    return (void *)(uintptr_t)tn_ptx_get(r, arg, 8);
}

#endif
