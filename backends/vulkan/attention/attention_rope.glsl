// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// rope_cache inside attention_decode.comp (FOLDS): each workgroup turns its queries and the new key, and has
// the new value, in shared memory as the cache would give them back; one of those that share a head of the
// cache writes both. So no workgroup reads what another one writes. The record of rope_cache is the one
// before that of attention.
#include "backends/vulkan/rope/angle.glsl"

const uint WIDTH_K = 8 * TEAM * CHUNKS_K, WIDTH_V = 8 * TEAM * CHUNKS_V, FOLDED = FORM >> 9 & 1u;
// Queries, then the key, then the value; by vectors, so that invocations load four elements at once.
shared vec4 new_rows[FOLDED * ((HEADS + 1) * WIDTH_K + WIDTH_V) / 4 + 1];

const bool FACTORS = (FORM & 1024u) != 0, NORMS = (FORM & 2048u) != 0;

// What all heads of a token have in common.
struct Rotation {
    Args record;
    uint64_t position;
    uint n_rot;
    int mode;
    float scale;
};

Rotation rotation_of(Args record, uint token)
{
    View pos = record.src[record.n[N_ROPE_POS]];
    int at = record.n[N_ROPE_PARAMS];
    Rotation r;
    r.record = record;
    r.mode = record.params[at];
    r.n_rot = uint(record.params[at + 1]);
    r.position = uint64_t(int64_t(load_i32(pos.data + int64_t(token) * pos.nb[3])));
    r.scale = scale_or_1(intBitsToFloat(record.params[at + 4]));
    return r;
}

// Cosine and sine of the angle of pair i, times the scale of rope.
vec2 turn_of(Rotation r, uint i)
{
    uint64_t each = Turns(r.record.tables).at[i];
    if (FACTORS)
        each = divide(each, load_f32(r.record.src[r.record.n[N_ROPE_FACTORS]].data + 4 * i));
    return cos_sin(uint(each * r.position >> 32)) * r.scale;
}

// The two elements of pair i.
uvec2 pair_of(Rotation r, uint i)
{
    return r.mode == ROPE_NORM ? uvec2(2 * i, 2 * i + 1) : uvec2(i, i + r.n_rot / 2);
}

// `precise`: without it a driver of NVIDIA (580.159) compiled this wrongly in rope_cache, for caches of f16
// with norms and factors.
vec2 turned(vec2 v, vec2 turn)
{
    precise float a = v.x * turn.x, b = v.y * turn.y, c = v.x * turn.y, d = v.y * turn.x;
    precise vec2 r = vec2(a - b, c + d);
    return r;
}

// Bytes to index i of a dimension, whose rows are less than 4 GiB apart: one multiplication.
uint64_t steps(uint i, int64_t stride) { return uint64_t(i) * uint64_t(uint(stride)); }

Args record_before() { return Args(uint64_t(args) - RECORD_SIZE); }

float as_cached(int type, float v)
{
    return type == TYPE_F32   ? v
           : type == TYPE_F16 ? half_bits(to_half(v))
                              : uintBitsToFloat(to_bf16(v) << 16);
}

void put_new(uint at, float v) { new_rows[at / 4][at % 4] = v; }

// Turns the heads h0, ... of the token and the key, by subgroups. `writes`: this workgroup writes the cache.
void turn_rows(Rotation r, uint token, uint h0, uint heads, uint kv_head, bool writes)
{
    Args rope = r.record;
    [[dont_unroll]] for (uint row = gl_SubgroupID; row < heads + 2; row += gl_NumSubgroups) {
        uint part = row < heads ? 0 : row - heads + 1, start = part == 0 ? row * WIDTH_K
                                                               : HEADS * WIDTH_K + (part - 1) * WIDTH_K;
        View x = rope.src[SRC_rope_cache_q + int(part)];
        uint64_t from = x.data + steps(token, x.nb[1]) + steps(part == 0 ? h0 + row : kv_head, x.nb[2]),
                 to = 0, norm = 0;
        uint n = uint(x.ne[3]), turns = part < 2 ? r.n_rot / 2 : 0;
        int weight = !NORMS || part == 2 ? -1 : part == 0 ? rope.n[N_ROPE_NORM] : rope.n[N_ROPE_NORM_K];
        if (part > 0 && writes)
            to = cache_slot(rope.src[part - 1], rope.src[rope.n[N_ROPE_SLOTS]], token, kv_head);
        float scale = 1.0;
        if (weight >= 0) {
            float sum = 0.0;
            for (uint e = gl_SubgroupInvocationID; e < n; e += LANES) {
                float v = load_f32(from + 4 * e);
                sum = fma(v, v, sum);
            }
            norm = rope.src[weight].data;
            float eps = intBitsToFloat(rope.params[rope.n[N_ROPE_EPS]]);
            scale = 1.0 / sqrt(lanes_sum(sum, LANES) / float(n) + eps);
        }
        [[dont_unroll]] for (uint i = gl_SubgroupInvocationID; i < n / 2; i += LANES) {
            uvec2 at = i < turns ? pair_of(r, i) : uvec2(2 * i, 2 * i + 1);
            vec2 v = vec2(load_f32(from + 4 * at.x), load_f32(from + 4 * at.y));
            if (weight >= 0) v *= scale * vec2(load_f32(norm + 4 * at.x), load_f32(norm + 4 * at.y));
            if (i < turns) v = turned(v, turn_of(r, i));
            if (part > 0) {
                int type = part == 1 ? TYPE_K : TYPE_V;
                if (to != 0) {
                    store_cached(type, to, at.x, v.x);
                    store_cached(type, to, at.y, v.y);
                }
                v = vec2(as_cached(type, v.x), as_cached(type, v.y));
            }
            put_new(start + at.x, v.x);
            put_new(start + at.y, v.y);
        }
    }
}

// Elements e .. e + 7 of a new row of n elements; 0 behind its end.
void load_new(uint start, uint e, uint n, out float v[8])
{
    vec4 low = e < n ? new_rows[(start + e) / 4] : vec4(0.0),
         high = e < n ? new_rows[(start + e) / 4 + 1] : vec4(0.0);
    [[unroll]] for (uint i = 0; i < 8; i++) v[i] = i < 4 ? low[i] : high[i - 4];
}
