// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Which level of the CPU a context gets on a processor with tile registers (as this program pretends to
// have), and when the system is asked for them. No kernel runs.
#include "core/cpu_features.h"
#include "tests/unit/test.h"

#include <errno.h>
#include <string.h>
#include <tenon/context.h>

static int answer, n_asked;

void __wrap_tn_cpu_features_get(tn_cpu_features *f);
int __wrap_tn_cpu_tiles_permit(void);

void __wrap_tn_cpu_features_get(tn_cpu_features *f)
{
    *f = (tn_cpu_features){.avx2 = true,
                           .avxvnni = true,
                           .avx512 = true,
                           .avx512vnni = true,
                           .avx512bf16 = true,
                           .amx = true,
                           .name = "test"};
}

int __wrap_tn_cpu_tiles_permit(void)
{
    n_asked++;
    return answer;
}

// Opens a context; `want` stands in the description of its CPU, or in the message if it cannot be opened.
static void check(const char *isa, bool deterministic, int refusal, tn_status status, const char *want,
                  int asked)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.deterministic = deterministic;
    cfg.n_threads = 1;
    cfg.backend = "cpu";
    tn_context *ctx = NULL;
    answer = refusal;
    n_asked = 0;
    TEST_CHECK_STATUS(tn_context_create(&cfg, &ctx), status);
    TEST_CHECK(n_asked == asked);
    if (!ctx) return;
    tn_device_info info = {.struct_size = sizeof info};
    tn_device_info_get(tn_context_device_by_name(ctx, "cpu"), &info);
    if (!TEST_CHECK(strstr(info.description, want))) printf("    %s\n", info.description);
    tn_context_destroy(&ctx);
}

int main(void)
{
    check(NULL, false, 0, TN_OK, "test, amx+bf16, 1 threads", 1);
    check("amx", false, 0, TN_OK, "amx", 1);
    check("avx512vnni", false, 0, TN_OK, "avx512vnni+bf16", 0);
    check("avxvnni", false, 0, TN_OK, "avxvnni,", 0);
    check(NULL, true, 0, TN_OK, "avx512vnni+bf16", 0);
    check(NULL, false, EPERM, TN_OK, "avx512vnni+bf16, 1 threads, no amx: the system refused", 1);
    check("amx", false, EPERM, TN_ERR_UNSUPPORTED, "", 1);
    check("sse9", false, 0, TN_ERR_ARG, "", 0);
    return test_done();
}
