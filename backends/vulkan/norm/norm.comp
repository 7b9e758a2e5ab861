// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rms_norm, layer_norm and add_rms_norm: y = (x - mean) / sqrt(mean of squares + eps) * w + bias, where
// rms_norm has no mean and no bias; add_rms_norm normalises the sum of its two operands, and stores that
// sum too.
//
// Operands: x, y [rows, n] F32, w and bias [n] F32. Work: one workgroup for each row. Where rows are short
// enough for registers and start at multiples of 16 bytes (ALIGNED), it reads them once in vectors of
// four, and with STAGES, a module of its own, also writes the result as int8 activations; otherwise it
// passes over them two or three times, and all passes but the first come from the cache.
//
// Bytes: 8 for each element, 16 for add_rms_norm. Limit: memory, or latency for few rows.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef STAGES
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x_id = 4) in;
const uint THREADS = gl_WorkGroupSize.x, MAX_VECTORS = 16;
layout(constant_id = 0) const int OP = OP_rms_norm;
layout(constant_id = 1) const uint VECTORS = 1; // that an invocation has in registers
// All rows are whole vectors of 4, at most THREADS * VECTORS of them, and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
#include "backends/vulkan/shaders/reduce.glsl"
#ifdef STAGES
#define STAGED_FOURS
#include "backends/vulkan/shaders/quantise_int8.glsl"
#else
uint place_in_workgroup() { return gl_LocalInvocationID.x; }
#endif

// rms_norm and add_rms_norm with rows in registers.
void norm_in_registers(uint r, uint t)
{
    float touched = touch_record(t);
    const bool ADDS = OP == OP_add_rms_norm;
    uint n = uint(args.src[0].ne[3]) / 4, weight = ADDS ? 2 : 1;
    uint64_t x = row_of(args.src[0], r), b = ADDS ? row_of(args.src[1], r) : x, sums = row_of(args.dst[0], r),
             y = row_of(args.dst[ADDS ? 1 : 0], r);
    vec4 row[MAX_VECTORS];
    float squares = 0.0;
    [[unroll]] for (uint i = 0; i < VECTORS; i++) {
        uint64_t at = 16 * uint64_t(min(t + i * THREADS, n - 1));
        if (i * THREADS < n) row[i] = ADDS ? PF128(x + at).v + PF128(b + at).v : PF128(x + at).v;
    }
    [[unroll]] for (uint i = 0; i < VECTORS; i++) {
        if (t + i * THREADS >= n) continue;
        squares += dot(row[i], row[i]);
        if (ADDS) PF128(sums + 16 * uint64_t(t + i * THREADS)).v = row[i];
    }
    // Loaded before the sum is known, so that a single row does not wait for both.
    vec4 w[MAX_VECTORS];
    [[unroll]] for (uint i = 0; i < VECTORS; i++)
        if (i * THREADS < n && has_src(int(weight)))
            w[i] = PF128(args.src[weight].data + 16 * uint64_t(min(t + i * THREADS, n - 1))).v;
    float scale = 1.0 / sqrt(reduce_sum(squares) / float(4 * n) + param_f(0));
    [[unroll]] for (uint i = 0; i < VECTORS; i++) {
        if (t + i * THREADS >= n) continue;
        vec4 v = row[i] * scale + touched;
        if (has_src(int(weight))) v *= w[i];
        PF128(y + 16 * uint64_t(t + i * THREADS)).v = v;
#ifdef STAGES
        stage_four(r, 4 * n, t + i * THREADS, v);
#endif
    }
}

void main()
{
    uint r = group_index(), t = place_in_workgroup();
    if (r >= n_rows(args.src[0])) return;
    if (ALIGNED != 0) {
        norm_in_registers(r, t);
        return;
    }
    int n = args.src[0].ne[3], weight = OP == OP_add_rms_norm ? 2 : 1;
    uint64_t x = row_of(args.src[0], r), y = row_of(args.dst[OP == OP_add_rms_norm ? 1 : 0], r);
    if (OP == OP_add_rms_norm) {
        uint64_t b = row_of(args.src[1], r), sum = row_of(args.dst[0], r);
        float squares = 0.0;
        for (uint j = t; j < n; j += THREADS) {
            float v = load_f32(x + 4 * j) + load_f32(b + 4 * j);
            store_f32(sum + 4 * j, v);
            squares += v * v;
        }
        float scale = inversesqrt(reduce_sum(squares) / float(n) + param_f(0));
        for (uint j = t; j < n;
             j += THREADS) // each invocation reads what it wrote itself, so no barrier is needed
            store_f32(y + 4 * j, load_f32(sum + 4 * j) * scale *
                                     (has_src(weight) ? load_f32(args.src[weight].data + 4 * j) : 1.0));
        return;
    }
    float mean = 0.0, sum = 0.0;
    if (OP == OP_layer_norm) {
        for (uint j = t; j < n; j += THREADS) sum += load_f32(x + 4 * j);
        mean = reduce_sum(sum) / float(n);
    }
    sum = 0.0;
    for (uint j = t; j < n; j += THREADS) {
        float d = load_f32(x + 4 * j) - mean;
        sum += d * d;
    }
    float scale = 1.0 / sqrt(reduce_sum(sum) / float(n) + param_f(0));
    for (uint j = t; j < n; j += THREADS) {
        float v = (load_f32(x + 4 * j) - mean) * scale;
        if (has_src(1)) v *= load_f32(args.src[1].data + 4 * j);
        if (OP == OP_layer_norm && has_src(2)) v += load_f32(args.src[2].data + 4 * j);
        store_f32(y + 4 * j, v);
    }
}
