// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Converts x [rows, n] F32 to f16 or bf16 in args.scratch, for GEMM in 16 bits. First the factors of all
// rows (4 bytes each), then from the next multiple of 256 bytes on the rows, filled with zeros to
// multiples of 64 elements.
//
// With a norm it is the normed row that is converted.
//
// f16: each row is multiplied by the power of two that brings its largest finite value to 2^TOP .. 2^(TOP
// + 1), so that it neither overflows nor loses small values; the factor undoes that. bf16 has the range of
// f32 and needs no factor: it is 1.
//
// ORDER: that of elements for gemm_fragment.comp, in blocks of 256. Of 16 elements that a matrix
// multiplies, the invocations t = 0 .. 3 of a column have 2 t, 2 t + 1, 2 t + 8 and 2 t + 9; so consecutive
// elements of a weight that one invocation has loaded are to be there.
//   16, 32, 64: runs of 16, that far apart from the next run of the invocation, in slices of 128 elements
//   ORDER_VECTORS: every fourth vector of 8
//   ORDER_K_QUANT, ORDER_Q6_K: for gemm_fragment_k.comp, which says which 64 elements of a block of 256 an
//     invocation has, by half blocks; elements 1 and 2 of four change places. Half block h of row r starts
//     at h * rows + r times its size. Behind its elements are the sums of its 8 runs of 16 divided by 32,
//     then what each of these has lost by rounding. A row with NaN or an infinite number gets NaN as its
//     factor.
//
// Work: one workgroup for each row. Bytes: 4 or 8 read (f16, norm: two passes) and 2 written for each
// element. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

const uint THREADS = 256, AHEAD = 4;
layout(local_size_x = 256) in;
layout(constant_id = 0) const int ELEMENT = TYPE_F16;
layout(constant_id = 1) const int TOP = 14;
layout(constant_id = 2) const int ORDER = 0;   // of the elements: ORDER_*
layout(constant_id = 3) const int ALIGNED = 0; // rows of x are whole runs of 4 and start aligned to 16 bytes
layout(constant_id = 5) const int HAS_NORM = 0;
// Elements of half a block with the sums behind it; how far apart the fours of an invocation are: by half
// blocks it has runs of 16.
const bool BY_HALVES = ORDER == ORDER_K_QUANT || ORDER == ORDER_Q6_K;
const uint HALF_SIZE = 144, FIRST = BY_HALVES ? 16 : 4, NEXT = BY_HALVES ? 4 : 4 * THREADS;
#include "backends/vulkan/shaders/reduce.glsl"

vec4 four(uint64_t row, uint k, uint n)
{
    if (ALIGNED != 0) { // without a branch
        vec4 v = PF128(row + 4 * uint64_t(min(k, n - 4))).v;
        return k < n ? v : vec4(0.0);
    }
    vec4 v;
    [[unroll]] for (uint i = 0; i < 4; i++) v[i] = k + i < n ? load_f32(row + 4 * int64_t(k + i)) : 0.0;
    return v;
}

// Where the pair of elements from k on goes, k a multiple of 4; the other pair goes `apart` further.
uint place_of(uint k, out uint apart)
{
    uint t, step, within = k % 128;
    apart = 2;
    if (ORDER == ORDER_NONE) return k;
    if (ORDER == ORDER_VECTORS) {
        t = within % 32 / 8, step = within / 32 * 2 + within % 8 / 4;
    } else {
        uint far = ORDER, e = within / (2 * far) * far + within % far;
        t = e / 16, step = within / far % 2 * 4 + e % 16 / 4;
    }
    apart = 8;
    return k - within + 16 * step + 2 * t;
}

// Writes a run of 16 elements. The pairs of its fours are 32 apart, the two pairs of a four 8.
void store_run(uint64_t to, const vec4 v[AHEAD], uint k, uint r, uint rows)
{
    const uint HALVES_APART = ORDER == ORDER_Q6_K ? 32 : 64, RUNS_APART = 96 - HALVES_APART;
    uint within = k % 256, t = within / 128 * 2 + within / 16 % 2, second = within / HALVES_APART % 2,
         run = within / RUNS_APART % 2, start = ((k / 256 * 2 + second) * rows + r) * HALF_SIZE;
    // It hides from the compiler that these numbers were floats: it would leave out their rounding.
    const uint zero = uint(args.src[0].pad);
    float sum = 0.0;
    [[unroll]] for (uint a = 0; a < AHEAD; a++) {
        uint first = packHalf2x16(v[a].xz), second = packHalf2x16(v[a].yw);
        uint64_t at = to + 2 * uint64_t(start + 32 * a + 16 * run + 2 * t);
        store_u32(at, first);
        store_u32(at + 16, second);
        vec2 both = unpackHalf2x16(first ^ zero) + unpackHalf2x16(second ^ zero);
        sum += both.x + both.y;
    }
    uint high = to_half(sum / 32.0);
    uint64_t at = to + 2 * uint64_t(start + 128 + 2 * t + run);
    store_u16(at, high);
    store_u16(at + 16, to_half(sum / 32.0 - half_bits(high ^ zero)));
}

void main()
{
    uint r = group_index(), rows = uint(args.n[N_PRODUCT_ROWS]), n = uint(args.src[0].ne[3]),
         block = ORDER == ORDER_NONE ? 64 : 256, stride = (n + block - 1) / block * block;
    if (r >= rows) return;
    uint64_t x = args.src[0].data + uint64_t(r) * uint64_t(args.n[N_PRODUCT_X_STRIDE]);
    uint64_t copy = args.scratch + 256 * uint64_t(max(args.n[N_PRODUCT_COPY], 0)),
             to = copy + (uint64_t(rows) * 4 + 255) / 256 * 256 + (BY_HALVES ? 0 : uint64_t(r) * stride * 2);
    float power = 1.0, back = 1.0, factor = 1.0;
    const bool normed = HAS_NORM != 0;
    uint64_t weights = normed ? args.src[args.n[N_PRODUCT_NORM]].data : x;
    if (ELEMENT == TYPE_F16 || normed) {
        float most = 0.0, squares = 0.0;
        for (uint k0 = FIRST * gl_LocalInvocationID.x; k0 < n; k0 += AHEAD * 4 * THREADS) {
            vec4 v[AHEAD], w[AHEAD];
            [[unroll]] for (uint a = 0; a < AHEAD; a++) { // all loads in flight at once
                v[a] = four(x, k0 + a * NEXT, n);
                w[a] = normed ? four(weights, k0 + a * NEXT, n) : vec4(1.0);
            }
            [[unroll]] for (uint a = 0; a < AHEAD; a++) {
                squares += dot(v[a], v[a]);
                v[a] = abs(v[a] * w[a]);
                [[unroll]] for (uint i = 0; i < 4; i++)
                    if (v[a][i] <= 3.40282347e38) most = max(most, v[a][i]);
                    else if (BY_HALVES) most = uintBitsToFloat(0x7f800000u);
            }
        }
        most = reduce_max(most);
        if (normed) factor = inversesqrt(reduce_sum(squares) / float(n) + param_f(args.n[N_PRODUCT_EPS]));
        most *= factor;
        int e = max(int(floatBitsToUint(most) >> 23) - 127, -112);
        if (BY_HALVES && isinf(most)) {
            back = uintBitsToFloat(0x7fc00000u);
        } else if (ELEMENT == TYPE_F16 && most > 0.0) {
            power = uintBitsToFloat(uint(TOP - e + 127) << 23);
            back = uintBitsToFloat(uint(e - TOP + 127) << 23);
        }
    }
    if (gl_LocalInvocationID.x == 0) store_f32(copy + 4 * uint64_t(r), back);
    for (uint k0 = FIRST * gl_LocalInvocationID.x; k0 < stride; k0 += AHEAD * 4 * THREADS) {
        vec4 v[AHEAD];
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint k = k0 + a * NEXT;
            v[a] = four(x, k, n) * factor;
            if (normed) v[a] *= four(weights, k, n);
            v[a] *= power;
        }
        if (BY_HALVES) {
            store_run(to, v, k0, r, rows);
            continue;
        }
        [[unroll]] for (uint a = 0; a < AHEAD; a++) {
            uint k = k0 + a * NEXT, apart, place = place_of(k, apart);
            if (k >= stride) break;
            uvec2 two = ELEMENT == TYPE_F16 ? uvec2(packHalf2x16(v[a].xy), packHalf2x16(v[a].zw))
                                            : uvec2(to_bf16(v[a].x) | to_bf16(v[a].y) << 16,
                                                    to_bf16(v[a].z) | to_bf16(v[a].w) << 16);
            store_u32(to + 2 * uint64_t(place), two.x);
            store_u32(to + 2 * uint64_t(place + apart), two.y);
        }
    }
}
