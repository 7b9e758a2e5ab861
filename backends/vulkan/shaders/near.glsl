// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The record in shared memory, for kernels that read much of it one after the other: from memory each of these reads would take as long
// as all of them at once. All invocations call bring_record() first; what stands below it has the copy as `args`.
struct Near {
    View src[MAX_SRC], dst[MAX_DST];
    uint64_t tables, scratch, left, left_norm, counters;
    int params[32], n[16];
};
shared Near near;

void bring_record(uint t)
{
    for (uint i = t; i < MAX_SRC + MAX_DST; i += gl_WorkGroupSize.x)
        if (i < MAX_SRC) near.src[i] = args.src[i];
        else near.dst[i - MAX_SRC] = args.dst[i - MAX_SRC];
    for (uint i = t; i < 48; i += gl_WorkGroupSize.x)
        if (i < 32) near.params[i] = args.params[i];
        else near.n[i - 32] = args.n[i - 32];
    if (t == gl_WorkGroupSize.x - 1) {
        near.tables = args.tables;
        near.scratch = args.scratch;
        near.left = args.left;
        near.left_norm = args.left_norm;
        near.counters = args.counters;
    }
    barrier();
}
#define args near
#define param_f(i) intBitsToFloat(near.params[i])
