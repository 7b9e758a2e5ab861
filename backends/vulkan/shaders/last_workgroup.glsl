// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Workgroups that share a result write their sums to memory; the one that writes last reads those of all.
layout(buffer_reference, scalar, buffer_reference_align = 16) coherent buffer ExchangedFour { vec4 v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Counter { uint v; };
shared uint written_before; // workgroups of the same result that had written before this one

// All invocations call it when the workgroup has written. Returns whether it is the last of n. The counter is
// 0 before the first one and after the last one. first: true for one invocation of the workgroup.
bool is_last_workgroup(uint64_t counter, uint n, bool first)
{
    memoryBarrierBuffer();
    barrier();
    if (first) written_before = atomicAdd(Counter(counter).v, 1u);
    barrier();
    if (written_before + 1 < n) return false;
    memoryBarrierBuffer();
    if (first) Counter(counter).v = 0; // for the next step
    return true;
}
