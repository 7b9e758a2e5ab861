// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope, norm_rope and rope_cache (RoPE, Su et al. 2021, eq. 34): turns pairs of elements of each head by
// an angle that is proportional to the position. norm_rope divides the head by its root mean square first;
// rope_cache (CACHES) does so for q and k, and writes k and v into the paged cache.
//
// Operands: x [T, H, D] F32, positions [T] I32, optional norm weights [D] and factors [n_rot / 2]; which
// sources these are stands in args.n (N_ROPE_*). args.tables are the turns of each pair from one position
// to the next (runtime/tables.c).
//
// Work: one workgroup for each token and head, or with many of them for HEADS heads of a token one after the
// other, which have the angles in common; with rope_cache first those of q, then of k, then of v. Invocations
// turn pairs of a head in shared memory. Bytes: 8 for each element. Limit: latency; measured on an H200 in a
// decoding 8B model: rope_cache 7.9 us for each layer.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x_id = 4) in;
const uint THREADS = gl_WorkGroupSize.x;
layout(constant_id = 0) const int TYPE_K = TYPE_F32; // of the cache
layout(constant_id = 1) const int TYPE_V = TYPE_F32;
layout(constant_id = 2) const int CACHES = 0;
layout(constant_id = 3) const uint HEADS = 1; // of a workgroup
const uint MAX_HEAD = 1024;
#include "backends/vulkan/shaders/reduce.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"
#include "backends/vulkan/rope/angle.glsl"

shared float head[MAX_HEAD];

// What all heads of a token have in common.
struct Rotation {
    uint64_t position;
    uint n_rot;
    int mode, params;
    float scale;
    vec2 first; // of the pair with the number of the invocation
};

vec2 turn_of(Rotation r, uint i, uint64_t each)
{
    if (args.n[N_ROPE_FACTORS] >= 0)
        each = divide(each, load_f32(args.src[args.n[N_ROPE_FACTORS]].data + 4 * i));
    return cos_sin(uint(each * r.position >> 32)) * r.scale;
}

Rotation rotation_of(uint token)
{
    View pos = args.src[args.n[N_ROPE_POS]];
    uint t = gl_LocalInvocationID.x;
    Rotation r;
    r.params = args.n[N_ROPE_PARAMS];
    r.mode = args.params[r.params];
    r.n_rot = uint(args.params[r.params + 1]);
    r.position = uint64_t(int64_t(load_i32(pos.data + int64_t(token) * pos.nb[3])));
    r.scale = scale_or_1(param_f(r.params + 4));
    r.first = t < r.n_rot / 2 ? turn_of(r, t, Turns(args.tables).at[t]) : vec2(0.0);
    return r;
}

// Turns the head in shared memory, after its norm if there is one.
void rotate_head(Rotation r, uint n, int norm)
{
    uint t = gl_LocalInvocationID.x;
    barrier();
    if (norm >= 0) {
        float sum = 0.0;
        for (uint j = t; j < n; j += THREADS) sum += head[j] * head[j];
        float scale = 1.0 / sqrt(reduce_sum(sum) / float(n) + param_f(args.n[N_ROPE_EPS]));
        for (uint j = t; j < n; j += THREADS) head[j] *= scale * load_f32(args.src[norm].data + 4 * j);
        barrier();
    }
    for (uint i = t; i < r.n_rot / 2; i += THREADS) {
        vec2 cs = i == t ? r.first : turn_of(r, i, Turns(args.tables).at[i]);
        uint a = r.mode == ROPE_NORM ? 2 * i : i, b = r.mode == ROPE_NORM ? 2 * i + 1 : i + r.n_rot / 2;
        float u = head[a], v = head[b];
        head[a] = u * cs.x - v * cs.y;
        head[b] = u * cs.y + v * cs.x;
    }
    barrier();
}

// Writes a row of n elements to the cache, from the head in shared memory or from memory.
void store_row(int type, uint64_t to, uint width, uint n, bool turned, uint64_t from)
{
    uint t = gl_LocalInvocationID.x;
    if (type == TYPE_Q8_0 || type == TYPE_Q4_0) {
        for (uint b = t; b < width / 32; b += THREADS) {
            float v[32];
            for (uint i = 0; i < 32; i++) {
                uint j = b * 32 + i;
                v[i] = j >= n ? 0.0 : turned ? head[j] : load_f32(from + 4 * j);
            }
            store_block(type, to + (type == TYPE_Q8_0 ? 34 : 18) * b, v);
        }
        return;
    }
    for (uint j = t; j < width; j += THREADS)
        store_cached(type, to, j, j >= n ? 0.0 : turned ? head[j] : load_f32(from + 4 * j));
}

void main()
{
    uint t = gl_LocalInvocationID.x, g = group_index() * HEADS, part = 0; // 0 q, 1 k, 2 v
    float touched = touch_record(t);
    for (; CACHES != 0 && part < 3; part++) {
        uint count = uint(args.src[2 + part].ne[1]) * uint(args.src[2 + part].ne[2]);
        if (g < count) break;
        g -= count;
    }
    if (part == 3) return;
    View x = args.src[CACHES != 0 ? 2 + int(part) : args.n[N_ROPE_X]], cache = args.src[max(part, 1u) - 1];
    View y = args.dst[args.n[N_ROPE_RESULT]];
    uint heads = uint(x.ne[2]), n = uint(x.ne[3]);
    if (g >= uint(x.ne[1]) * heads) return;
    uint token = g / heads, h = g % heads, width = uint(cache.ne[3]);
    int type = part == 1 ? TYPE_K : TYPE_V, norm = part == 0 ? args.n[N_ROPE_NORM] : args.n[N_ROPE_NORM_K];
    uint64_t from = x.data + int64_t(token) * x.nb[1] + int64_t(h) * x.nb[2], to = 0;
    Rotation r;
    [[dont_unroll]] for (uint i = 0; i < HEADS; i++) {
        for (uint j = t; part < 2 && j < n; j += THREADS) head[j] = load_f32(from + 4 * j);
        if (i == 0) { // while the head is loaded
            if (part < 2) r = rotation_of(token);
            to = part == 0 ? y.data + int64_t(token) * y.nb[1] + int64_t(h) * y.nb[2]
                           : cache_slot(cache, args.src[args.n[N_ROPE_SLOTS]], token, h);
            if (to == 0) return;
        }
        if (part < 2) rotate_head(r, n, norm);
        if (part > 0) store_row(type, to, width, n, part == 1, from);
        else
            for (uint j = t; j < n; j += THREADS) store_f32(to + 4 * j, head[j] + touched);
        from += x.nb[2];
        to += part == 0 ? y.nb[2] : cache.nb[1];
        if (i + 1 < HEADS) barrier(); // the head in shared memory was read
    }
}
