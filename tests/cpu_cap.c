// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Shows the tests a lesser processor than this one. All test programs, and the tool tenon-capped, are
// linked with -Wl,--wrap=tn_cpu_features_get, so that the library's question about the processor arrives
// here. The variable TN_TEST_CPU caps the answer: "generic" (no vector extension that the library has
// kernels for), "avx2", "avx512". Without the variable the answer is that of the real function. A cap above
// what this processor has ends the program as SKIP: the test would run at another level than it says.
// The library itself reads no environment variable.
#include "core/cpu_features.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_SKIP = 77, LEVELS = 3 };

void __real_tn_cpu_features_get(tn_cpu_features *f);
void __wrap_tn_cpu_features_get(tn_cpu_features *f);

void __wrap_tn_cpu_features_get(tn_cpu_features *f)
{
    static const char *const levels[LEVELS] = {"generic", "avx2", "avx512"};
    const char *cap = getenv("TN_TEST_CPU");
    int level = 0;
    __real_tn_cpu_features_get(f);
    if (!cap) return;
    while (level < LEVELS && strcmp(cap, levels[level]) != 0) level++;
    if (level == LEVELS) {
        fprintf(stderr, "TN_TEST_CPU=%s: known are generic, avx2, avx512\n", cap);
        abort();
    }
    if (level > (f->avx512 ? 2 : f->avx2 ? 1 : 0)) {
        printf("SKIP: this processor has no %s\n", cap);
        exit(EXIT_SKIP);
    }
    f->avx2 = f->avx2 && level >= 1;
    f->avx512 = f->avx512 && level >= 2;
    f->avx512vnni = f->avx512bf16 = f->avxvnni = f->amx = false;
}
