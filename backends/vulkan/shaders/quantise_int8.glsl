// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Int8 activations: 32 elements share a scale d = max |x| / 127. A row of k elements is laid out as the
// integers [k]; for each group of 32 d (f32) and the sums of its two halves (16-bit integers); for each
// group the sum of squares of x in f32, if the reader has a norm; filled to a multiple of 16 bytes. The
// results are the same to the bit as those of the CPU.
//
// With STAGED_GROUPS also staged results: a workgroup that has a row's results in shared memory writes
// them as int8 activations for the next step (backends/vulkan/runtime/staged.h).
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer PU64 { uvec2 v; };

int64_t quantised_size(uint k) { return int64_t(k + k / 4 + k / 8 + 15) / 16 * 16; }

// 127 / x, rounded as IEEE 754 does. A quotient of GLSL may be off by 2.5 units in the last place, and then
// some ties would be rounded to the other side than on the CPU. The remainder is computed from halves of 12
// bits, whose products are exact.
float inverse_of(float x)
{
    precise float q = 127.0 / x;
    float qh = uintBitsToFloat(floatBitsToUint(q) & 0xfffff000u),
          xh = uintBitsToFloat(floatBitsToUint(x) & 0xfffff000u);
    precise float ql = q - qh, xl = x - xh;
    precise float rest = 127.0 - qh * xh;
    rest -= qh * xl;
    rest -= ql * xh;
    rest -= ql * xl;
    precise float better = q + rest / x;
    return better;
}

// The factor of a group and its d, from the bits of its largest magnitude. A group with an infinite value or
// NaN gets d = NaN, and so do the results.
vec2 scale_of(uint top)
{
    float most = uintBitsToFloat(top);
    bool odd = top >= 0x7f800000u, none = odd || most < 1e-35;
    return vec2(none ? 0.0 : inverse_of(most), odd    ? uintBitsToFloat(0x7fc00000u)
                                               : none ? 0.0
                                                      : most / 127.0);
}

int quantise(float x, float inverse) { return inverse == 0.0 ? 0 : int(roundEven(x * inverse)); }

uvec2 group_record(float d, int first_sum, int second_sum)
{
    return uvec2(floatBitsToUint(d), (uint(first_sum) & 0xffffu) | uint(second_sum) << 16);
}

#ifdef STAGED_FOURS
// The number of an invocation in its workgroup, in the order of subgroups.
uint place_in_workgroup() { return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID; }

// Elements 4 e .. 4 e + 3 of row r of k elements of a staged result. Eight neighbouring invocations of a
// subgroup, the first of which has a multiple of eight as e, have a group and call it together.
void stage_four(uint r, uint k, uint e, vec4 v)
{
    uint64_t row = args.staged + int64_t(r) * quantised_size(k);
    vec4 x = args.staged_norm != 0 ? v * PF128(args.staged_norm + 16 * uint64_t(e)).v : v;
    uvec4 bits = floatBitsToUint(x) & 0x7fffffffu;
    uint top = max(max(bits.x, bits.y), max(bits.z, bits.w));
    [[unroll]] for (uint m = 1; m < 8; m *= 2) top = max(top, subgroupShuffleXor(top, m));
    vec2 scales = scale_of(top);
    int sum = 0;
    uint word = 0;
    [[unroll]] for (int i = 0; i < 4; i++) {
        int q = quantise(x[i], scales.x);
        sum += q;
        word |= (uint(q) & 255u) << 8 * i;
    }
    store_u32(row + 4 * e, word);
    float squares = dot(v, v);
    [[unroll]] for (uint m = 1; m < 8; m *= 2) {
        if (m < 4) sum += subgroupShuffleXor(sum, m);
        squares += subgroupShuffleXor(squares, m);
    }
    int other = subgroupShuffleXor(sum, 4); // the sum of the second half
    if ((e & 7u) != 0) return;
    PU64(row + k + e).v = group_record(scales.y, sum, other);
    if (args.staged_norm != 0) store_f32(row + k + k / 4 + e / 2, squares);
}
#endif

#ifdef STAGED_GROUPS
// The results of the workgroup, STAGED_GROUPS groups at most. stage() writes them to args.staged, multiplied
// by the weight args.staged_norm of the next step's norm if there is one. All subgroups call it, and each
// writes some of the groups: group i becomes group staged_at(i).y of row staged_at(i).x of k elements; a
// negative x means that there is no such group. An including shader may have loaded both addresses early.
#ifndef STAGED_TO
#define STAGED_TO args.staged
#define STAGED_NORM args.staged_norm
#endif
shared float staged_values[STAGED_GROUPS * 32];
ivec2 staged_at(uint i);

// The weight of element e of a group g of the row.
#ifdef STAGED_SCALES
shared float staged_scales[32]; // of the only group, loaded early by the including shader
float staged_scale(uint g, uint e) { return staged_scales[e]; }
#else
float staged_scale(uint g, uint e)
{
    return STAGED_NORM == 0 ? 1.0 : load_f32(STAGED_NORM + 4 * int64_t(g * 32 + e));
}
#endif

// Sums and maxima over the subgroup. All of it takes part; where an including shader has shuffles and knows
// the size, STAGED_LANES, that makes less code than operations that expect some invocations to be missing.
#ifdef STAGED_LANES
float lanes_sum(float v, uint lanes)
{
    [[unroll]] for (uint i = 1; i < lanes; i *= 2) v += subgroupShuffleXor(v, i);
    return v;
}
int lanes_sum(int v, uint lanes)
{
    [[unroll]] for (uint i = 1; i < lanes; i *= 2) v += subgroupShuffleXor(v, i);
    return v;
}
uint lanes_max(uint v, uint lanes)
{
    [[unroll]] for (uint i = 1; i < lanes; i *= 2) v = max(v, subgroupShuffleXor(v, i));
    return v;
}
#else
#define STAGED_LANES gl_SubgroupSize
float lanes_sum(float v, uint lanes) { return subgroupAdd(v); }
int lanes_sum(int v, uint lanes) { return subgroupAdd(v); }
uint lanes_max(uint v, uint lanes) { return subgroupMax(v); }
#endif

void stage(uint n, uint k)
{
    const uint lane = gl_SubgroupInvocationID;
    [[dont_unroll]] for (uint i = gl_SubgroupID; i < n; i += gl_NumSubgroups) {
        ivec2 at = staged_at(i);
        if (at.x < 0) continue;
        uint64_t row = STAGED_TO + int64_t(at.x) * quantised_size(k);
        uint top = 0;
        [[unroll]] for (uint e0 = 0; e0 < 32; e0 += STAGED_LANES) {
            uint e = min(e0 + lane, 31u);
            top = max(top,
                      floatBitsToUint(staged_values[32 * i + e] * staged_scale(uint(at.y), e)) & 0x7fffffffu);
        }
        vec2 scales = scale_of(lanes_max(top, STAGED_LANES));
        int both = 0; // the sum of the second half, times 2^16, and that of the first half
        float squares = 0.0;
        [[unroll]] for (uint e0 = 0; e0 < 32; e0 += STAGED_LANES) {
            uint e = e0 + lane;
            if (STAGED_LANES > 32 && e >= 32) continue;
            float v = staged_values[32 * i + e], scale = staged_scale(uint(at.y), e);
            int q = quantise(v * scale, scales.x);
            store_u8(row + uint(at.y) * 32 + e, uint(q) & 255u);
            both += e < 16 ? q : q << 16;
            squares = fma(v, v, squares);
        }
        both = lanes_sum(both, STAGED_LANES);
        squares = lanes_sum(squares, STAGED_LANES);
        if (lane != 0) continue;
        int first = bitfieldExtract(both, 0, 16);
        PU64(row + k + 8 * int64_t(at.y)).v = group_record(scales.y, first, (both - first) >> 16);
        if (STAGED_NORM != 0) store_f32(row + k + k / 4 + 4 * int64_t(at.y), squares);
    }
}
#endif
