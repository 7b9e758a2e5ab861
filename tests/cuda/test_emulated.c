// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The emulated device notices mistakes of kernels: each kernel of emulated/mistakes.cu is
// launched and must give the report that its row names.
#include "tests/cuda/emulated/mistakes.h"
#include "tests/check/poison.h"
#include "tests/cuda/fake.h"
#include "tests/unit/test.h"

#include <math.h>
#include <string.h>

enum { N = 64, FINE, NANS, FAILS };

static const struct {
    const char *name;
    int gives;
} rows[] = {
#define MISTAKE(name, gives) {"mistake_" #name, gives},
    MISTAKES(MISTAKE)
#undef MISTAKE
};

static void check(CUstream stream, CUmodule module, const char *name, int gives)
{
    CUdeviceptr at;
    CUfunction f;
    float start[N];
    for (int i = 0; i < N; i++) start[i] = (float)i;
    if (!TEST_CHECK(cuMemAlloc(&at, 2 * sizeof start) == CUDA_SUCCESS)) return;
    TEST_CHECK(cuMemcpyHtoDAsync(at, start, sizeof start, stream) == CUDA_SUCCESS);
    float *x = (float *)(uintptr_t)at;
    CUlaunchConfig grid = {1, 1, 1, N, 1, 1, N * sizeof(float), stream, NULL, 0};
    mistake_args args = {x, N};
    CUresult r = cuModuleGetFunction(&f, module, name);
    if (r == CUDA_SUCCESS) r = cuLaunchKernelEx(&grid, f, (void *[]){&args}, NULL);
    if (!TEST_CHECK(r == (gives == FAILS ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS)))
        printf("    %s gave %d\n", name, (int)r);
    if (gives == NANS && !TEST_CHECK(isnan(x[0]))) printf("    %s gave %g\n", name, x[0]);
    for (int i = 0; i < N && gives == FINE; i++) TEST_CHECK(x[i] == (float)(N - 1 - i));
    fake_get()->lost = CUDA_SUCCESS;
    cuMemFree(at);
}

// Poison is taken for memory that nobody has written: next to more of it or behind a fence, not alone among
// values.
static void check_poison(CUstream stream, CUmodule module)
{
    static const uint32_t poisons[] = {CHECK_POISONS};
    static const struct {
        uint32_t before;
        bool more, fails;
    } around[] = {{0x3f800000, false, false}, {0x3f800000, true, true}, {UINT32_MAX, false, true}};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
        CUdeviceptr at;
        CUfunction f;
        uint32_t words[2 * N] = {0};
        words[N - 1] = around[i].before;
        words[N] = poisons[i];
        words[N + 1] = around[i].more ? poisons[i] : 0;
        if (!TEST_CHECK(cuMemAlloc(&at, sizeof words) == CUDA_SUCCESS)) return;
        TEST_CHECK(cuMemcpyHtoDAsync(at, words, sizeof words, stream) == CUDA_SUCCESS);
        CUlaunchConfig grid = {1, 1, 1, N, 1, 1, 0, stream, NULL, 0};
        mistake_args args = {(float *)(uintptr_t)at, N};
        CUresult r = cuModuleGetFunction(&f, module, "mistake_unwritten");
        if (r == CUDA_SUCCESS) r = cuLaunchKernelEx(&grid, f, (void *[]){&args}, NULL);
        TEST_CHECK(r == (around[i].fails ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS));
        fake_get()->lost = CUDA_SUCCESS;
        cuMemFree(at);
    }
}

int main(void)
{
    CUstream stream;
    CUmodule module;
    CUfunction f;
    bool ok = cuStreamCreate(&stream, 0) == CUDA_SUCCESS &&
              cuModuleLoadData(&module, "tn_cuda_image_mistakes") == CUDA_SUCCESS;
    if (!TEST_CHECK(ok)) return test_done();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(stream, module, rows[i].name, rows[i].gives);
    check_poison(stream, module);
    cuModuleUnload(module);
    // What is not there, and what is in another module.
    if (TEST_CHECK(cuModuleLoadData(&module, "tn_cuda_image_norm") == CUDA_SUCCESS)) {
        TEST_CHECK(cuModuleGetFunction(&f, module, "mistake_none") == CUDA_ERROR_NOT_FOUND);
        TEST_CHECK(cuModuleGetFunction(&f, module, "nothing") == CUDA_ERROR_NOT_FOUND);
        cuModuleUnload(module);
    }
    cuStreamDestroy(stream);
    return test_done();
}
