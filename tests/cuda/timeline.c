// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// When each kernel of a captured graph runs, on a real device: a library that the driver loads into any
// program (CUDA_INJECTION64_PATH=libtimeline.so), over CUPTI's activity records. Not part of the build:
//     cc -O2 -shared -fPIC -o libtimeline.so tests/cuda/timeline.c -I"$CUDA/include" -L"$CUDA/lib64" -lcupti
//     CUDA_INJECTION64_PATH=$PWD/libtimeline.so TIMELINE=out.csv tenon bench --backend cuda --shape llama-8b
//     --type q4_0
// Lines: kernel, start and end in ns, blocks, threads, bytes of shared memory. tests/cuda/timeline.py sums
// them up.
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER_SIZE = 8 << 20 };

static FILE *out;

static void CUPTIAPI want_buffer(uint8_t **buffer, size_t *size, size_t *n_records)
{
    *buffer = aligned_alloc(8, BUFFER_SIZE);
    *size = *buffer ? BUFFER_SIZE : 0;
    *n_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    (void)context, (void)stream, (void)size;
    CUpti_Activity *r = NULL;
    while (out && cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) {
        if (r->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
        const CUpti_ActivityKernel9 *k =
            (const CUpti_ActivityKernel9 *)r; // later versions add fields at the end
        fprintf(out, "%s,%llu,%llu,%d,%d,%d\n", k->name, (unsigned long long)k->start,
                (unsigned long long)k->end, k->gridX * k->gridY * k->gridZ, k->blockX * k->blockY * k->blockZ,
                k->dynamicSharedMemory + k->staticSharedMemory);
    }
    free(buffer);
}

static void finish(void)
{
    cuptiActivityFlushAll(1);
    if (out) fclose(out);
    out = NULL;
}

// Called by the driver.
__attribute__((visibility("default"))) int InitializeInjection(void)
{
    const char *path = getenv("TIMELINE");
    out = fopen(path ? path : "timeline.csv", "w");
    if (!out || cuptiActivityRegisterCallbacks(want_buffer, take_buffer) != CUPTI_SUCCESS ||
        cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) {
        fprintf(stderr, "timeline: no records\n");
        return 0;
    }
    atexit(finish);
    return 1;
}
