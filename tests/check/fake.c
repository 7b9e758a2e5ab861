// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The self-test: a device that does the work of a real one and then makes one mistake. Every mistake has to
// be noticed, and without one everything has to pass. Needs a device with host memory.
#include "tests/check/check.h"

#include <math.h>
#include <string.h>

typedef enum fault {
    FAULT_NONE,
    FAULT_ELEMENT,      // one element a little off
    FAULT_NAN,          // one element NaN
    FAULT_SIGN,         // an infinity of the wrong sign
    FAULT_INTEGER,      // one integer off by one
    FAULT_BIT,          // the last bit of one element of an exact op
    FAULT_NOT_WRITTEN,  // the last element left as it was
    FAULT_NOTHING,      // no work done
    FAULT_BEHIND,       // a byte behind the result
    FAULT_BEFORE,       // a byte before the result
    FAULT_INPUT,        // a source changed
    FAULT_BEHIND_INPUT, // a byte behind a source
    FAULT_SCRATCH,      // a byte behind the scratch
    FAULT_REPEAT,       // the last bit differs from run to run
    FAULT_CACHE,        // a row of the cache that no token wrote
    FAULT_STATUS,       // an error from wait
} fault;

// One fake at a time: the interface has no place for a user's pointer.
static struct {
    const tn_backend *real;
    fault fault;
    uint32_t n_runs;
    tn_step step;
    tn_buffer scratch;
    uint8_t before[16]; // of the last element
} fake;

static char *last_element(void)
{
    const tn_view *y = &fake.step.dst[0];
    return (char *)y->data + tn_dtype_row_size(y->dtype, tn_view_n_elems(y)) - tn_dtype_block_size(y->dtype);
}

static tn_status fake_prepare(tn_device *device, const tn_program *program, const tn_buffer *scratch,
                              tn_executable **out)
{
    fake.step = program->steps[0];
    fake.scratch = *scratch;
    memcpy(fake.before, last_element(), sizeof(float));
    return fake.real->prepare(device, program, scratch, out);
}

static void spoil_result(void)
{
    const tn_view *y = &fake.step.dst[0];
    float *f = y->data;
    int32_t *n = y->data;
    int64_t middle = tn_view_n_elems(y) / 2;
    switch (fake.fault) {
    case FAULT_ELEMENT:
        f[middle] = f[middle] * 1.01f + 0.01f;
        break;
    case FAULT_NAN:
        f[middle] = NAN;
        break;
    case FAULT_SIGN:
        for (int64_t i = 0; i < tn_view_n_elems(y); i++)
            if (isinf(f[i])) f[i] = -f[i];
        break;
    case FAULT_INTEGER:
        n[0]++;
        break;
    case FAULT_BIT:
        n[middle] ^= 1;
        break;
    case FAULT_REPEAT:
        n[middle] ^= (int32_t)(fake.n_runs & 1);
        break;
    case FAULT_NOT_WRITTEN:
        memcpy(last_element(), fake.before, sizeof(float));
        break;
    case FAULT_CACHE:
        n[0] ^= 1 << 20;
        break;
    default:
        break;
    }
}

static void spoil_surroundings(void)
{
    const tn_view *y = &fake.step.dst[0];
    char *x = fake.step.src[0].data, *end = last_element() + tn_dtype_block_size(y->dtype);
    const tn_buffer *in = fake.step.src[0].buffer;
    if (fake.fault == FAULT_BEHIND) end[0] ^= 1;
    if (fake.fault == FAULT_BEFORE) ((char *)y->data)[-1] ^= 1;
    if (fake.fault == FAULT_INPUT) x[5] ^= 1;
    if (fake.fault == FAULT_BEHIND_INPUT) ((char *)in->data)[in->size - CHECK_GUARD] ^= 1;
    if (fake.fault == FAULT_SCRATCH) ((char *)fake.scratch.data)[fake.scratch.size - 1] ^= 1;
}

static tn_status fake_submit(tn_device *device, tn_executable *executable, const tn_submit_options *options)
{
    fake.n_runs++;
    if (fake.fault == FAULT_NOTHING) return TN_OK;
    tn_status status = fake.real->submit(device, executable, options);
    spoil_result();
    spoil_surroundings();
    return status;
}

static tn_status fake_wait(tn_device *device, tn_executable *executable)
{
    tn_status status = fake.real->wait(device, executable);
    return fake.fault == FAULT_STATUS ? tn_fail(device->ctx, TN_ERR_DEVICE, "lost") : status;
}

// --- cases -----------------------------------------------------------------------------------------

static void case_matmul(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_matmul);
    check_mat(&c, TN_TYPE_F32, 4, 256);
    check_weight(&c, TN_TYPE_Q4_K, 0, 40, 256);
    check_emit(run, &c);
}

static void case_norm(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_rms_norm);
    c.params.rms_norm.eps = 1e-6f;
    check_strided(check_mat(&c, TN_TYPE_F32, 3, 33));
    check_vec(&c, TN_TYPE_F32, 33);
    check_emit(run, &c);
}

static void case_infinities(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_unary);
    c.params.unary.kind = TN_UNARY_ABS;
    check_range(check_mat(&c, TN_TYPE_F32, 5, 100), CHECK_SPECIAL, 0, 0);
    check_emit(run, &c);
}

static void case_argmax(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_argmax);
    check_mat(&c, TN_TYPE_F32, 3, 100);
    check_emit(run, &c);
}

static void case_concat(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_concat);
    c.params.concat.axis = 1;
    check_mat(&c, TN_TYPE_F32, 3, 100);
    check_mat(&c, TN_TYPE_F32, 3, 5);
    check_emit(run, &c);
}

static void case_cache(check_run *run)
{
    check_case c;
    check_begin(&c, TN_OP_cache_write);
    check_src(&c, TN_TYPE_F32, 4, (int64_t[]){2, 1, 16, 32});
    check_cube(&c, TN_TYPE_F32, 1, 1, 32);
    check_range(check_vec(&c, TN_TYPE_I32, 1), CHECK_INT, 7, 7);
    check_emit(run, &c);
}

static const struct {
    fault fault;
    void (*emit)(check_run *run);
    const char *name, *finds; // finds: part of the message
} rows[] = {
    {FAULT_NONE, case_matmul, "no fault, rounded matmul", NULL},
    {FAULT_NONE, case_norm, "no fault, rms_norm", NULL},
    {FAULT_NONE, case_infinities, "no fault, infinities", NULL},
    {FAULT_NONE, case_argmax, "no fault, argmax", NULL},
    {FAULT_NONE, case_concat, "no fault, concat", NULL},
    {FAULT_NONE, case_cache, "no fault, cache_write", NULL},
    {FAULT_ELEMENT, case_norm, "one element 1 % off", "NMSE"},
    {FAULT_ELEMENT, case_matmul, "one element of a rounding kernel 1 % off", "one element off"},
    {FAULT_NAN, case_norm, "a NaN", "NaN"},
    {FAULT_SIGN, case_infinities, "infinities of the wrong sign", "infinities"},
    {FAULT_INTEGER, case_argmax, "an integer off by one", "integers"},
    {FAULT_BIT, case_concat, "one bit of an exact op", "bits"},
    {FAULT_NOT_WRITTEN, case_norm, "an element not written", "NaN"},
    {FAULT_NOT_WRITTEN, case_argmax, "an integer not written", "integers"},
    {FAULT_NOTHING, case_norm, "no work done", "NaN"},
    {FAULT_NOTHING, case_cache, "no work done on a cache", "NMSE"},
    {FAULT_BEHIND, case_norm, "a byte behind the result", "behind result"},
    {FAULT_BEHIND, case_cache, "a byte behind a cache", "behind source"},
    {FAULT_BEFORE, case_norm, "a byte before the result", "before result"},
    {FAULT_INPUT, case_norm, "a source changed", "changed source"},
    {FAULT_BEHIND_INPUT, case_norm, "a byte behind a source", "behind source"},
    {FAULT_SCRATCH, case_matmul, "a byte behind the scratch", "scratch"},
    {FAULT_REPEAT, case_norm, "another bit in the second run", "differs in the second run"},
    {FAULT_CACHE, case_cache, "a cache row that no token wrote", "NMSE"},
    {FAULT_STATUS, case_norm, "an error from wait", "lost"},
};

int check_self_test(check_run *run)
{
    check_target *t = &run->targets[run->n_targets - 1], first = run->targets[0]; // t: the highest level
    int32_t n_targets = run->n_targets;
    tn_device *real = t->device;
    if (!real->host_memory) {
        printf("SKIP: the self-test needs a device with host memory\n");
        return 77;
    }
    fake.real = real->backend;
    tn_backend backend = *real->backend;
    backend.prepare = fake_prepare;
    backend.submit = fake_submit;
    backend.wait = fake_wait;
    tn_device device = *real;
    device.backend = &backend;
    run->targets[0] = *t;
    run->targets[0].device = &device;
    run->n_targets = 1;
    run->options.quiet = true;
    int32_t n_passed = 0, n_failed = 0;
    for (size_t i = 0; i < TN_COUNT(rows); i++) {
        fake.fault = rows[i].fault;
        fake.n_runs = 0;
        int64_t failed = run->n_failed, passed = run->n_passed;
        run->last_failure[0] = 0;
        rows[i].emit(run);
        bool noticed =
            run->n_failed == failed + 1 && rows[i].finds && strstr(run->last_failure, rows[i].finds);
        bool ok = rows[i].finds ? noticed : run->n_passed == passed + 1;
        printf("%s %s%s%s\n", ok ? "ok  " : "FAIL", rows[i].name, rows[i].finds ? ": " : "",
               rows[i].finds ? run->last_failure : "");
        ok ? n_passed++ : n_failed++;
    }
    run->targets[0] = first;
    run->n_targets = n_targets;
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
