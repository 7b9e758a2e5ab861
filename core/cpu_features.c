// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// x86: CPUID (Intel SDM vol. 2A, "CPUID"): leaf 1 and 7 for the features, XCR0 for what the system saves.
// aarch64 has no instruction that a program may ask; the system knows (os/system_posix.c).
#include "core/cpu_features.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static void read_brand(char *name, size_t size)
{
    uint32_t r[12] = {0};
    if ((uint32_t)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) return;
    for (uint32_t i = 0; i < 3; i++)
        __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
    char text[49];
    memcpy(text, r, 48);
    text[48] = 0;
    const char *p = text;
    while (*p == ' ') p++;
    size_t n = strlen(p);
    while (n > 0 && p[n - 1] == ' ') n--;
    if (n > size - 1) n = size - 1;
    memcpy(name, p, n);
    name[n] = 0;
}

void tn_cpu_features_get(tn_cpu_features *f)
{
    *f = (tn_cpu_features){.name = "x86-64"};
    read_brand(f->name, sizeof f->name);
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    bool osxsave = (c >> 27 & 1u) != 0, fma = (c >> 12 & 1u) != 0, f16c = (c >> 29 & 1u) != 0;
    if (!osxsave) return;
    uint64_t saved = xcr0();
    bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6, tiles = (saved & 0x60000) == 0x60000;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    f->avx2 = ymm && fma && f16c && (b & (1u << 5));
    bool f512 = (b & (1u << 16)) && (b & (1u << 17)) && (b & (1u << 30)) && (b & (1u << 31));
    f->avx512 = f->avx2 && zmm && f512;
    f->avx512vnni = f->avx512 && (c & (1u << 11));
    bool amx = f->avx512vnni && tiles && (d & (1u << 24)) && (d & (1u << 25)) && (d & (1u << 22));
    if (a < 1 || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return; // a: the last part of leaf 7
    f->avxvnni = f->avx2 && (a & (1u << 4));
    f->avx512bf16 = f->avx512 && (a & (1u << 5));
    f->amx = amx && f->avx512bf16;
}
#elif defined(__aarch64__)
void tn_cpu_features_get(tn_cpu_features *f)
{
    *f = (tn_cpu_features){.name = "aarch64"};
    tn_cpu_features_arm(f);
}
#else
void tn_cpu_features_get(tn_cpu_features *f)
{
    *f = (tn_cpu_features){.name = "generic"};
}
#endif
