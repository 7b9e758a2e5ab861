// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums and maxima over a workgroup through shared memory, on every device. The order is fixed, so every
// run gives the same bits. THREADS, which the including shader defines, is the size of the workgroup, a
// power of two.
shared float reduce_space[THREADS];

float reduce_sum(float v)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    reduce_space[t] = v;
    for (uint n = THREADS / 2; n > 0; n >>= 1) {
        barrier();
        if (t < n) reduce_space[t] += reduce_space[t + n];
    }
    barrier();
    return reduce_space[0];
}

float reduce_max(float v)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    reduce_space[t] = v;
    for (uint n = THREADS / 2; n > 0; n >>= 1) {
        barrier();
        if (t < n) reduce_space[t] = max(reduce_space[t], reduce_space[t + n]);
    }
    barrier();
    return reduce_space[0];
}
