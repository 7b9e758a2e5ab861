// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Included last by each target, behind its make_input. With libFuzzer: the mutator, which now and then begins
// anew with an input of the target's own. Otherwise (TN_FUZZ_STANDALONE) the program:
//     fuzz_NAME [SECONDS [SEED]]       runs inputs of make_input; same seeds, same bytes
//     fuzz_NAME --make FOLDER N        writes the first N of them as seeds
//     fuzz_NAME --run FILE...          runs these inputs
#ifndef TN_TESTS_FUZZ_FUZZ_MAIN_H
#define TN_TESTS_FUZZ_FUZZ_MAIN_H

#include "tests/fuzz/fuzz.h"

static size_t make_input(uint64_t *state, uint8_t *out, size_t max);

#ifdef TN_FUZZ_STANDALONE
enum { FUZZ_INPUT_MAX = 1 << 20 };

static int fuzz_make(uint8_t *input, const char *folder, uint64_t count)
{
    for (uint64_t n = 0; n < count; n++) {
        char path[1024];
        uint64_t state = fuzz_seed(n + 1);
        size_t size = make_input(&state, input, FUZZ_INPUT_MAX);
        snprintf(path, sizeof path, "%s/made-%04llu", folder, (unsigned long long)n);
        FILE *f = fopen(path, "wb");
        if (!f || fwrite(input, 1, size, f) != size || fclose(f) != 0) {
            fprintf(stderr, "%s cannot be written\n", path);
            return 1;
        }
    }
    return 0;
}

static int fuzz_run(uint8_t *input, char **paths, int n)
{
    for (int i = 0; i < n; i++) {
        FILE *f = fopen(paths[i], "rb");
        if (!f) {
            fprintf(stderr, "%s cannot be read\n", paths[i]);
            return 1;
        }
        size_t size = fread(input, 1, FUZZ_INPUT_MAX, f);
        fclose(f);
        LLVMFuzzerTestOneInput(input, size);
    }
    printf("%d inputs passed, 0 failed\n", n);
    return 0;
}

int main(int argc, char **argv)
{
    uint8_t *input = malloc(FUZZ_INPUT_MAX);
    fuzz_must(input != NULL);
    if (argc > 3 && strcmp(argv[1], "--make") == 0)
        return fuzz_make(input, argv[2], strtoull(argv[3], NULL, 10));
    if (argc > 1 && strcmp(argv[1], "--run") == 0) return fuzz_run(input, argv + 2, argc - 2);
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 5;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
    for (uint64_t end = tn_time_ns() + (uint64_t)(seconds * 1e9); tn_time_ns() < end; n++) {
        uint64_t state = fuzz_seed(seed + n);
        LLVMFuzzerTestOneInput(input, make_input(&state, input, FUZZ_INPUT_MAX));
    }
    printf("%llu executions\n", (unsigned long long)n);
    free(input);
    return 0;
}
#else
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    uint64_t state = fuzz_seed(seed);
    if (size > 1 && fuzz_random(&state) % 32 != 0) return LLVMFuzzerMutate(data, size, max);
    return make_input(&state, data, max);
}
#endif

#endif
