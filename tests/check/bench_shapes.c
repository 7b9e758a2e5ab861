// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What bench_<family>.c share, and their list: decode (one token) and prefill shapes of models of 1 to 8
// billion weights.
#include "tests/check/bench.h"

void bench_begin(bench_case *b, int32_t op, tn_dtype type)
{
    *b = (bench_case){0};
    check_begin(&b->c, op);
    b->c.type = type;
}

check_operand *bench_weight(bench_case *b, tn_dtype type, int64_t experts, int64_t n, int64_t k)
{
    check_operand *w = check_weight(&b->c, type, experts, n, k);
    w->random_blocks = tn_dtype_block_elems(type) > 1;
    return w;
}

// Ops whose sources are all [m, n], followed by n_vectors vectors [n].
void bench_rows(bench_run *r, const check_case *like, int32_t n_sources, int32_t n_vectors,
                const int64_t *shape)
{
    bench_case b = {.c = *like};
    int64_t m = shape[0], n = shape[1];
    for (int32_t i = 0; i < n_sources; i++) check_mat(&b.c, TN_TYPE_F32, m, n);
    for (int32_t i = 0; i < n_vectors; i++) check_vec(&b.c, TN_TYPE_F32, n);
    snprintf(b.c.note, sizeof b.c.note, "%.40s%s[%lld, %lld]", like->note, like->note[0] ? " " : "",
             (long long)m, (long long)n);
    check_bench_case(r, &b);
}

check_case bench_named(int32_t op, const char *note)
{
    check_case c;
    check_begin(&c, op);
    snprintf(c.note, sizeof c.note, "%s", note);
    return c;
}

bool bench_is_device(const bench_run *r)
{
    return r->target->device->backend->weight_write != NULL;
}

// Rows of activations: a token, a prompt, and for devices also many sequences and a long prompt.
static const int64_t device_rows[] = {1, 32, 512, 4096}, host_rows[] = {1, 512};

int32_t bench_n_rows(const bench_run *r)
{
    return bench_is_device(r) ? TN_COUNT(device_rows) : TN_COUNT(host_rows);
}

int64_t bench_rows_of(const bench_run *r, int32_t i)
{
    return bench_is_device(r) ? device_rows[i] : host_rows[i];
}

void check_bench_shapes(bench_run *r)
{
#define TN_FAMILY(name, set) check_bench_##name(r);
#include "ops/families.def"
}
