// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// For programs that are linked with the emulated kernels of levels which this processor lacks: these levels
// exist if the rest of their instructions does (tests/cpu/README.md).
#include "backends/cpu/product.h"
#include "core/cpu_features.h"

void __real_tn_cpu_features_get(tn_cpu_features *f);
void __wrap_tn_cpu_features_get(tn_cpu_features *f);
int __wrap_tn_cpu_tiles_permit(void);
void __wrap_tn_matmul_avxvnni(const tn_cpu_task *task);
void tn_matmul_emulated_avxvnni(const tn_cpu_task *task);
void __wrap_tn_attention_f32_avxvnni(const tn_cpu_task *task);
void tn_attention_f32_emulated_avxvnni(const tn_cpu_task *task);

void __wrap_tn_cpu_features_get(tn_cpu_features *f)
{
    __real_tn_cpu_features_get(f);
    f->avxvnni = f->avx512vnni;
    f->amx = f->avx512vnni && f->avx512bf16;
}

int __wrap_tn_cpu_tiles_permit(void)
{
    return 0;
}

void __wrap_tn_matmul_avxvnni(const tn_cpu_task *task)
{
    tn_matmul_emulated_avxvnni(task);
}

void __wrap_tn_attention_f32_avxvnni(const tn_cpu_task *task)
{
    tn_attention_f32_emulated_avxvnni(task);
}
