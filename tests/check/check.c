// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon-check: every kernel of a device against the references of ops/. Exit: 0 all passed, 1 failures,
// 2 usage, 77 no such device. The case generators do not know the device: what it refuses is counted.
#include "backends/cpu/openblas/openblas.h"
#include "tests/check/check.h"
#if TN_HAVE_CUDA
#include "backends/cuda/runtime/device.h"
#endif
#if TN_HAVE_VULKAN
#include "backends/vulkan/runtime/device.h"
#endif

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: tenon-check [options]\n"
    "  --backend NAME   device to check (default cpu)\n"
    "  --isa LEVEL      reference, generic, avx2, avxvnni, avx512, avx512vnni, amx; neon, dotprod,\n"
    "                   i8mm, bf16 (default: all that this machine has)\n"
    "  --op NAME        only this op\n"
    "  --type NAME      only cases about this type (of weights or cache)\n"
    "  --precision NAME only cases of this precision of matrix products\n"
    "  --case N         only this case of the op\n"
    "  --seed N         other random values (default 1)\n"
    "  --threads N      threads of the device (default: all cores)\n"
    "  --variant N      of kernels that have several (cpu: 1: OpenBLAS; vulkan: tile of products of many "
    "rows, 8: expanded weights; "
    "cuda: cut of products of 9 to 64 rows, 16: cuBLASLt), instead of the device's choice\n"
    "  --quick          fewer cases\n"
    "  --core           matrix products with weights in F32, F16, Q8_0 and Q4_K only\n"
    "  --list           ops and their number of cases\n"
    "  --coverage       table of kernels as Markdown\n"
    "  --bench          speed on model shapes\n"
    "  --shape TEXT     with --bench: only shapes whose label has this text\n"
    "  --sweep N        with --bench: also by each of the variants 1 to N (vulkan)\n"
    "  --json           one object per line instead of text\n"
    "  --self-test      checks that the tool notices mistakes\n";

enum { EXIT_USAGE = 2, EXIT_SKIP = 77 };
// Parts of the number of --variant for CUDA, which add up; tn_cuda_variant says what they do.
enum {
    CHECK_SKINNY_SHAPE = 3, // mask
    CHECK_SKINNY_DEPENDENT = 4,
    CHECK_SKINNY_WITHOUT_WGMMA = 8,
    CHECK_CUBLAS = 16,
};
enum { CHECK_OPENBLAS = 1 }; // --variant for the CPU

// --- options ---------------------------------------------------------------------------------------

static int32_t op_by_name(const char *name)
{
    for (int32_t i = 0; i < TN_OP_COUNT; i++)
        if (strcmp(tn_op_name(i), name) == 0) return check_op_has_cases(i) ? i : -1;
    return -1;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *out)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || n > max) return false;
    *out = n;
    return true;
}

static bool parse_flag(const char *arg, check_options *o)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--quick", &o->quick},        {"--core", &o->core},         {"--json", &o->json},
                 {"--list", &o->list},          {"--coverage", &o->coverage}, {"--bench", &o->bench},
                 {"--self-test", &o->self_test}};
    for (size_t i = 0; i < TN_COUNT(flags); i++)
        if (strcmp(arg, flags[i].name) == 0) return *flags[i].flag = true;
    return false;
}

static bool parse_value(const char *arg, const char *value, check_options *o)
{
    uint64_t n;
    if (strcmp(arg, "--backend") == 0) return (o->backend = value) != NULL;
    if (strcmp(arg, "--isa") == 0) return (o->isa = value) != NULL;
    if (strcmp(arg, "--op") == 0) return (o->op = op_by_name(value)) >= 0;
    if (strcmp(arg, "--type") == 0) return (o->type = tn_dtype_by_name(value)) >= 0;
    if (strcmp(arg, "--precision") == 0) return (o->precision = tn_precision_by_name(value)) >= 0;
    if (strcmp(arg, "--seed") == 0) return parse_number(value, UINT64_MAX, &o->seed);
    if (strcmp(arg, "--case") == 0 && parse_number(value, INT32_MAX, &n))
        return (o->only_case = (int32_t)n) >= 0;
    if (strcmp(arg, "--variant") == 0 && parse_number(value, 64, &n)) return (o->variant = (int32_t)n) > 0;
    if (strcmp(arg, "--shape") == 0) return (o->shape = value) != NULL;
    if (strcmp(arg, "--sweep") == 0 && parse_number(value, 64, &n)) return (o->sweep = (int32_t)n) > 0;
    if (strcmp(arg, "--threads") == 0 && parse_number(value, 512, &n)) return (o->n_threads = (int32_t)n) > 0;
    return false;
}

static bool parse(int argc, char **argv, check_options *o)
{
    *o = (check_options){.backend = "cpu", .op = -1, .type = -1, .only_case = -1, .precision = -1, .seed = 1};
    for (int i = 1; i < argc; i++) {
        if (parse_flag(argv[i], o)) continue;
        if (i + 1 < argc && parse_value(argv[i], argv[i + 1], o)) {
            i++;
            continue;
        }
        fprintf(stderr, "tenon-check: bad option or value: %s\n%s", argv[i], usage);
        return false;
    }
    return true;
}

// --- targets ---------------------------------------------------------------------------------------

// Warnings are of kernels that their backend could not check by itself.
static void on_log(void *user, int32_t level, const char *text)
{
    check_run *run = user;
    if (level > TN_LOG_WARN) return;
    printf("FAIL %s\n", text);
    run->n_failed++;
}

// A device that gives up a kernel still computes right: by another one, which hides what is wrong.
static void on_event(void *user, int32_t code, const char *text)
{
    check_run *run = user;
    if (code != TN_EVENT_KERNEL_REPLACED) return;
    printf("FAIL %s\n", text);
    run->n_failed++;
}

static tn_status context_create(check_run *run, const char *isa, int32_t n_threads, tn_context **out)
{
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = isa;
    cfg.n_threads = n_threads;
    cfg.blas = run->options.variant == CHECK_OPENBLAS ? NULL : "off"; // or it would hide kernels
    cfg.log = on_log;
    cfg.event = on_event;
    cfg.user = run;
    return tn_context_create(&cfg, out);
}

// On the CPU. False: the library is not there.
static bool variant_set(const check_run *run, const tn_device *device)
{
    if (strcmp(run->options.backend, "cpu") != 0 || run->options.variant != CHECK_OPENBLAS) return true;
    char text[1000];
    tn_openblas *b = tn_openblas_of(device);
    if (tn_openblas_force(b)) return true;
    tn_openblas_details(b, text, sizeof text);
    printf("%s", text);
    return false;
}

static tn_status target_add(check_run *run, const char *isa)
{
    check_target *t = &run->targets[run->n_targets];
    *t = (check_target){0};
    tn_status status = context_create(run, isa, run->options.n_threads, &t->ctx);
    if (status != TN_OK) return status;
    t->device = tn_context_device_by_name(t->ctx, run->options.backend);
    if (!t->device) {
        char absent[512];
        tn_context_absent_backends(t->ctx, absent, sizeof absent);
        if (!run->options.json) printf("no device \"%s\"\n%s", run->options.backend, absent);
        tn_context_destroy(&t->ctx);
        return TN_ERR_DEVICE;
    }
    if (!variant_set(run, t->device)) return TN_ERR_DEVICE;
#if TN_HAVE_CUDA
    if (strcmp(run->options.backend, "cuda") == 0) {
        int32_t v = run->options.variant;
        tn_cuda_of(t->device)->variant = (tn_cuda_variant){
            .skinny_shape = v & CHECK_SKINNY_SHAPE,
            .skinny_switch_dependent = (v & CHECK_SKINNY_DEPENDENT) != 0,
            .skinny_without_wgmma = (v & CHECK_SKINNY_WITHOUT_WGMMA) != 0,
            .cublas_first = v >= CHECK_CUBLAS,
        };
    }
#endif
#if TN_HAVE_VULKAN
    if (strcmp(run->options.backend, "vulkan") == 0) tn_vk_of(t->device)->tile = run->options.variant;
#endif
    run->n_targets++;
    snprintf(t->label, sizeof t->label, "%s", isa ? isa : t->device->name);
    t->has_levels = isa != NULL;
    if (!isa || tn_context_n_threads(t->ctx) == 1) return TN_OK;
    status = context_create(run, isa, 1, &t->ctx_single);
    if (status == TN_OK) t->single = tn_context_device_by_name(t->ctx_single, run->options.backend);
    if (status == TN_OK && !variant_set(run, t->single)) status = TN_ERR_DEVICE;
    return status;
}

static const char *const levels[] = {"generic", "avx2", "avxvnni", "avx512", "avx512vnni",
                                     "amx",     "neon", "dotprod", "i8mm",   "bf16"};

// The CPU once per level, any other device as it is. A level that this machine lacks is left out.
static tn_status targets_open(check_run *run)
{
    if (strcmp(run->options.backend, "cpu") != 0) return target_add(run, NULL);
    if (run->options.isa) return target_add(run, run->options.isa);
    for (size_t i = 0; i < TN_COUNT(levels); i++) {
        tn_status status = target_add(run, levels[i]);
        if (status == TN_ERR_UNSUPPORTED && run->n_targets > 0) continue;
        if (status != TN_OK) return status;
    }
    return TN_OK;
}

static void targets_close(check_run *run)
{
    for (int32_t i = 0; i < run->n_targets; i++) {
        tn_context_destroy(&run->targets[i].ctx_single);
        tn_context_destroy(&run->targets[i].ctx);
    }
}

// --- modes -----------------------------------------------------------------------------------------

static void print_devices(const check_run *run)
{
    for (int32_t i = 0; i < run->n_targets && !run->options.json; i++)
        printf("%s: %s\n", run->targets[i].label, run->targets[i].device->description);
}

static int run_cases(check_run *run)
{
    const check_options *o = &run->options;
    if (!o->coverage && !o->list) print_devices(run);
    for (int32_t op = 0; op < TN_OP_COUNT; op++) {
        if (!check_op_has_cases(op) || (o->op >= 0 && o->op != op)) continue;
        check_cases(run, op);
        if (o->list) printf("%-13s %5d cases\n", tn_op_name(op), run->n_cases[op]);
    }
    if (o->list) return run->n_failed > 0;
    if (o->coverage) {
        check_coverage_print(run);
        return run->n_failed > 0;
    }
    check_summary_print(run);
    char skipped[48] = "";
    if (run->n_skipped > 0) snprintf(skipped, sizeof skipped, ", %lld skipped", (long long)run->n_skipped);
    fprintf(o->json ? stderr : stdout, "%lld passed, %lld failed%s\n", (long long)run->n_passed,
            (long long)run->n_failed, skipped);
    // Nothing passes by doing nothing.
    return run->n_failed > 0 || run->n_passed == 0;
}

static int run_mode(check_run *run)
{
    if (run->options.self_test) return check_self_test(run);
    if (!run->options.bench) return run_cases(run);
    print_devices(run);
    check_bench(run);
    return 0;
}

static int open_failed(const check_run *run, tn_status status)
{
    if (status == TN_ERR_DEVICE || status == TN_ERR_UNSUPPORTED) {
        printf("SKIP: %s\n", status == TN_ERR_DEVICE ? run->options.backend : "this machine lacks the level");
        return EXIT_SKIP;
    }
    // The context that has the message is gone; of what it was given only the level can be wrong.
    bool level = status == TN_ERR_ARG && run->options.isa;
    fprintf(stderr, "tenon-check: %s%s\n", level ? "unknown level: " : "",
            level ? run->options.isa : tn_status_text(status));
    return level ? EXIT_USAGE : 1;
}

int main(int argc, char **argv)
{
    check_run run = {0};
    if (!parse(argc, argv, &run.options)) return EXIT_USAGE;
    run.results = calloc(TN_OP_COUNT, sizeof *run.results);
    if (!run.results) return 1;
    tn_status status = targets_open(&run);
    int code = status == TN_OK ? run_mode(&run) : open_failed(&run, status);
    targets_close(&run);
    free(run.results);
    return code;
}
