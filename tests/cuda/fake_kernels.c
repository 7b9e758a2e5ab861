// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Kernels that do nothing: for tests of the host side.
#include "tests/cuda/fake.h"

const void *fake_find(const char *image, const char *name)
{
    (void)name;
    return image;
}

size_t fake_args_size(const void *function)
{
    (void)function;
    return 0;
}

void fake_memory_begin(void *at, size_t size)
{
    (void)at, (void)size;
}

void fake_memory_end(void *at)
{
    (void)at;
}

void fake_memory_copied(void *at, size_t n)
{
    (void)at, (void)n;
}

void fake_memory_written(void *at, size_t n)
{
    (void)at, (void)n;
}

CUresult fake_run(const fake_grid *grid, const void *function, const void *args)
{
    (void)grid, (void)function, (void)args;
    return CUDA_SUCCESS;
}

bool fake_runs_host(void)
{
    return false;
}
