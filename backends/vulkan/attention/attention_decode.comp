// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache for few queries, as in decoding (flash decoding, Dao et al. 2023): y =
// softmax(scale q k^T + mask) v. Sources: attention.glsl.
//
// Work: a workgroup has one token, HEADS query heads that share a head of the cache, so that they share
// its loads, and a range of keys. A team of lanes reads a key, each lane 8 elements of a row at a time, so
// that teams read whole rows in loads of 16 bytes. Each team has a softmax of its own (online: Milakov and
// Gimelshein 2018); teams meet in shared memory. Where several workgroups share the keys of a token
// (splits), each writes its sums to args.scratch, and the one that is ready last (args.counters) merges
// all of them as if they were keys. It does so in the order of the splits, so the result does not depend
// on which one is last.
//
// Scratch: for each (token, head, split) the sums of values, then for each the largest score and the sum
// of the softmax.
//
// Bytes: keys and values once for every HEADS heads. Limit: latency and the code itself for short contexts,
// memory for long ones. Measured on an H200 in a decoding 8B model with rope_cache: 13 us for each layer.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/attention/attention.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"
layout(constant_id = 9) const uint LANES = 8; // of a subgroup
#define STAGED_GROUPS 32
#define STAGED_LANES LANES
#define STAGED_TO   places.staged
#define STAGED_NORM places.staged_norm
// What is read of the record behind a barrier, which empties the first cache, is loaded at the start.
struct Places {
    uint64_t y, sums, counters, staged, staged_norm;
    int64_t y_head;
} places;
#include "backends/vulkan/shaders/quantise_int8.glsl"

layout(constant_id = 0) const int TYPE_K = TYPE_F16;
layout(constant_id = 1) const int TYPE_V = TYPE_F16;
// Number of heads, and bits: 32 scores are capped, 64 they have slopes (ALiBi), 128 there are sinks, 256 it
// writes a staged result, 512 it does rope_cache too, 1024 with factors, 2048 with norms; from 4096 on into
// how many parts the keys are split. Code that is not needed is left out, because a dispatch waits for the
// code that it runs through: 0.1 to 0.2 us for each KiB on an H200.
layout(constant_id = 2) const uint FORM = 1;
layout(constant_id = 3) const
    int ALIGNED = 0; // rows are whole runs of 16 elements and start at multiples of 16 bytes
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint TEAM = 8; // lanes of a team: a power of two, at most a subgroup
layout(constant_id = 6) const uint CHUNKS_K = 1; // chunks of 8 elements that a lane has of a row
layout(constant_id = 7) const uint CHUNKS_V = 1;
layout(constant_id = 8) const uint KEYS = 1; // that a team has in flight
// These are constants because a division by another number takes 20 instructions.
layout(constant_id = 10) const uint PAGE = 0; // keys of a block of the cache if that is a power of 2, or 0
layout(constant_id = 11) const uint KV_HEADS = 1;
layout(constant_id = 12) const uint GROUP = 1; // query heads that share a head of the cache
const bool CAPS = (FORM & 32u) != 0, SLOPES = (FORM & 64u) != 0, SINKS = (FORM & 128u) != 0,
           STAGES = (FORM & 256u) != 0, FOLDS = (FORM & 512u) != 0;
const uint HEADS = FORM & 15u, SPLITS = FORM >> 12, PHASES = SPLITS > 1u ? 1u : 0u,
           TEAMS = gl_WorkGroupSize.x / TEAM;
const uint MAX_HEADS = 4, MAX_CHUNKS = 16, MAX_KEYS = 8, MAX_TEAMS = 128;

shared float team_sums[gl_WorkGroupSize.x * HEADS * 8 * CHUNKS_V], tops[MAX_TEAMS][MAX_HEADS],
    sums[MAX_TEAMS][MAX_HEADS];

// What workgroups write for each other.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Exchanged { float v; };
#include "backends/vulkan/shaders/last_workgroup.glsl"

#include "backends/vulkan/attention/attention_rope.glsl"

uint row_here, group_first;
ivec2 staged_at(uint i) { return ivec2(int(row_here), int(group_first + i)); }

struct Raw {
    uvec4 a, b;
};

// Elements e .. e + 7 of a row with `width` elements as they are stored; 0 behind its end.
Raw load_raw(int type, uint64_t row, uint e, uint width)
{
    Raw r;
    r.a = r.b = uvec4(0);
    if (e >= width) return r;
    if (type == TYPE_Q8_0 || type == TYPE_Q4_0) {
        uint64_t block = row + (type == TYPE_Q8_0 ? 34 : 18) * (e / 32),
                 at = block + 2 + (type == TYPE_Q8_0 ? e % 32 : e % 16);
        r.b.x = load_u16(block);
        r.a.x = load_u16(at) | load_u16(at + 2) << 16;
        r.a.y = load_u16(at + 4) | load_u16(at + 6) << 16;
        if (type == TYPE_Q4_0) r.a = r.a >> (e & 16u) / 4 & 0x0f0f0f0fu;
    } else if (ALIGNED != 0) {
        r.a = load_u128(row + (type == TYPE_F32 ? 4 : 2) * e);
        if (type == TYPE_F32) r.b = load_u128(row + 4 * e + 16);
    } else
        [[unroll]] for (uint i = 0; i < 8; i++) {
            if (e + i >= width) continue;
            if (type != TYPE_F32) r.a[i / 2] |= load_u16(row + 2 * (e + i)) << 16 * (i & 1u);
            else if (i < 4) r.a[i] = load_u32(row + 4 * (e + i));
            else r.b[i - 4] = load_u32(row + 4 * (e + i));
        }
    return r;
}

float element(int type, Raw r, uint i)
{
    switch (type) {
    case TYPE_F32: return uintBitsToFloat(i < 4 ? r.a[i] : r.b[i - 4]);
    case TYPE_F16: return unpackHalf2x16(r.a[i / 2])[i & 1u];
    case TYPE_BF16: return uintBitsToFloat((i & 1u) != 0 ? r.a[i / 2] & 0xffff0000u : r.a[i / 2] << 16);
    case TYPE_Q8_0: return half_bits(r.b.x) * float(bitfieldExtract(int(r.a[i / 4]), int(8 * (i & 3u)), 8));
    default: return half_bits(r.b.x) * float(int(bitfieldExtract(r.a[i / 4], int(8 * (i & 3u)), 8)) - 8);
    }
}

float team_sum(float v)
{
    return lanes_sum(v, TEAM);
}

// Addresses of the rows of key j, and its slot of the cache.
void rows_of(View k, View v, View table, Span span, uint kv_head, int j, out uint64_t k_row,
             out uint64_t v_row, out int slot)
{
    uint size = PAGE != 0 ? PAGE : uint(k.ne[2]), page = uint(j) / size, at = uint(j) - page * size;
    uint block = load_u32(table.data + steps(span.seq, table.nb[2]) + steps(page, table.nb[3]));
    slot = int(block * size + at);
    k_row = k.data + steps(block, k.nb[0]) + steps(kv_head, k.nb[1]) + steps(at, k.nb[2]);
    v_row = v.data + steps(block, v.nb[0]) + steps(kv_head, v.nb[1]) + steps(at, v.nb[2]);
}

// State of an invocation: its place, and for each head queries, slope, and the softmax of its team so far.
uint lane, team, n_heads, d_v;
float queries[MAX_HEADS][MAX_CHUNKS * 8], slope[MAX_HEADS], acc[MAX_HEADS][MAX_CHUNKS * 8], top[MAX_HEADS],
    sum[MAX_HEADS];
float tops_all[MAX_HEADS], sums_all[MAX_HEADS]; // of all teams
float sinks[MAX_HEADS];

void load_queries(View q, uint token, uint h0)
{
    float max_bias = SLOPES ? param_f(5) : 0.0;
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        uint head = h0 + min(h, n_heads - 1);
        uint64_t row = q.data + steps(token, q.nb[1]) + steps(head, q.nb[2]);
        [[unroll]] for (uint c = 0; c < CHUNKS_K && !FOLDS; c++) {
            Raw r = load_raw(TYPE_F32, row, (c * TEAM + lane) * 8, uint(q.ne[3]));
            [[unroll]] for (uint i = 0; i < 8; i++) queries[h][8 * c + i] = element(TYPE_F32, r, i);
        }
        slope[h] = SLOPES ? alibi_slope(max_bias, uint(q.ne[2]), head) : 0.0;
        sinks[h] = SINKS ? sink_of(head) : LOWEST;
    }
}

// What is folded in: where the token stands, the slot of its new key, and that key if the team has met it.
struct New {
    Rotation rotation;
    uint token, h0;
    int slot, key;
    bool writes;
} new;

// The same from shared memory, when all subgroups have turned their rows.
void turn_queries(View q, uint kv_head)
{
    turn_rows(new.rotation, new.token, new.h0, n_heads, kv_head, new.writes);
    barrier();
    [[unroll]] for (uint h = 0; h < HEADS; h++)
        [[unroll]] for (uint c = 0; c < CHUNKS_K; c++) {
            float v[8];
            load_new(min(h, n_heads - 1) * WIDTH_K, (c * TEAM + lane) * 8, uint(q.ne[3]), v);
            [[unroll]] for (uint i = 0; i < 8; i++) queries[h][8 * c + i] = v[i];
        }
}

void begin(float zero)
{
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        [[unroll]] for (uint i = 0; i < 8 * CHUNKS_V; i++) acc[h][i] = 0.0;
        top[h] = LOWEST;
        sum[h] = zero;
    }
}

// The score of head h for a key at that distance, from the products of each lane.
float score_of(float dot, uint h, float scale, float softcap, int distance)
{
    dot = team_sum(dot) * scale;
    if (CAPS) dot = unary(UNARY_SOFTCAP, dot, softcap, 0.0);
    if (SLOPES) dot -= slope[h] * float(abs(distance));
    return dot;
}

// Makes `now` the largest score of head h.
void raise_top(uint h, float now)
{
    float shrink = top[h] == now ? 1.0 : exp(top[h] - now);
    top[h] = now;
    sum[h] *= shrink;
    [[unroll]] for (uint i = 0; i < 8 * CHUNKS_V; i++) acc[h][i] *= shrink;
}

// The new key, in the team that has met it.
void attend_new(Span span, float scale, float softcap)
{
    uint n = uint(args.src[1].ne[3]);
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        float dot = 0.0, v[8];
        [[unroll]] for (uint c = 0; c < CHUNKS_K; c++) {
            load_new(HEADS * WIDTH_K, (c * TEAM + lane) * 8, n, v);
            [[unroll]] for (uint i = 0; i < 8; i++) dot = fma(v[i], queries[h][8 * c + i], dot);
        }
        float s = score_of(dot, h, scale, softcap, span.position - new.key);
        if (new.key < 0) s = LOWEST;
        raise_top(h, max(top[h], s));
        float p = s > LOWEST ? exp(s - top[h]) : 0.0;
        sum[h] += p;
        [[unroll]] for (uint c = 0; c < CHUNKS_V; c++) {
            load_new((HEADS + 1) * WIDTH_K, (c * TEAM + lane) * 8, d_v, v);
            [[unroll]] for (uint i = 0; i < 8; i++) acc[h][8 * c + i] = fma(p, v[i], acc[h][8 * c + i]);
        }
    }
}

void attend_keys(Span span, uint kv_head, int from, int to)
{
    View k = args.src[1], v = args.src[2], table = args.src[5];
    float scale = param_f(0), softcap = CAPS ? param_f(4) : 0.0;
    // The same number of rounds for all lanes, because sums over a team need all of its lanes.
    for (int j0 = from; j0 < to; j0 += int(KEYS * TEAMS)) {
        Raw ks[MAX_KEYS][MAX_CHUNKS], vs[MAX_KEYS][MAX_CHUNKS];
        bool fresh[MAX_KEYS]; // the new key, which other workgroups may be writing: it is not read
        [[unroll]] for (uint u = 0; u < KEYS; u++) {
            uint64_t k_row, v_row;
            int key = min(j0 + int(u * TEAMS + team), to - 1), slot;
            rows_of(k, v, table, span, kv_head, key, k_row, v_row, slot);
            fresh[u] = FOLDS && slot == new.slot;
            if (fresh[u] && j0 + int(u * TEAMS + team) < to) new.key = key;
            [[unroll]] for (uint c = 0; c < CHUNKS_K; c++)
                ks[u][c] = load_raw(TYPE_K, k_row, (c * TEAM + lane) * 8, fresh[u] ? 0 : uint(k.ne[3]));
            [[unroll]] for (uint c = 0; c < CHUNKS_V; c++)
                vs[u][c] = load_raw(TYPE_V, v_row, (c * TEAM + lane) * 8, fresh[u] ? 0 : d_v);
        }
        if (FOLDS && j0 == from) turn_queries(args.src[0], kv_head); // while keys are loaded
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            float s[MAX_KEYS], now = top[h];
            [[unroll]] for (uint u = 0; u < KEYS; u++) {
                float dot = 0.0;
                [[unroll]] for (uint c = 0; c < CHUNKS_K; c++)
                    [[unroll]] for (uint i = 0; i < 8; i++)
                        dot = fma(element(TYPE_K, ks[u][c], i), queries[h][8 * c + i], dot);
                int j = j0 + int(u * TEAMS + team);
                dot = score_of(dot, h, scale, softcap, span.position - j);
                s[u] = j < to && !fresh[u] ? dot : LOWEST;
                now = max(now, s[u]);
            }
            raise_top(h, now);
            [[unroll]] for (uint u = 0; u < KEYS; u++) {
                float p = s[u] > LOWEST ? exp(s[u] - now) : 0.0;
                sum[h] += p;
                [[unroll]] for (uint c = 0; c < CHUNKS_V; c++)
                    [[unroll]] for (uint i = 0; i < 8; i++)
                        acc[h][8 * c + i] = fma(p, element(TYPE_V, vs[u][c], i), acc[h][8 * c + i]);
            }
        }
    }
    if (FOLDS) attend_new(span, scale, softcap);
}

// Merges the sums of `used` workgroups, of the head whose first part is given and of those after it, as if
// they were keys.
void merge_splits(uint64_t ends, uint first_part, uint used, uint stride)
{
    for (uint s0 = 0; s0 < used; s0 += TEAMS)
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            uint part = first_part + min(h, n_heads - 1) * SPLITS + min(s0 + team, used - 1);
            float each = s0 + team < used ? Exchanged(ends + uint64_t(part) * 8).v : LOWEST,
                  total = Exchanged(ends + uint64_t(part) * 8 + 4).v;
            float now = max(top[h], each), shrink = top[h] == now ? 1.0 : exp(top[h] - now),
                  grow = each > LOWEST ? exp(each - now) : 0.0;
            top[h] = now;
            sum[h] = sum[h] * shrink + (each > LOWEST ? total * grow : 0.0);
            [[unroll]] for (uint c = 0; c < CHUNKS_V; c++) {
                uint e = (c * TEAM + lane) * 8;
                if (e >= d_v) continue;
                uint64_t values = places.sums + uint64_t(part) * stride + 4 * e;
                vec4 low = ExchangedFour(values).v, high = ExchangedFour(values + 16).v;
                [[unroll]] for (uint i = 0; i < 8; i++) {
                    float value = each > LOWEST ? (i < 4 ? low[i] : high[i - 4]) : 0.0;
                    acc[h][8 * c + i] = fma(value, grow, acc[h][8 * c + i] * shrink);
                }
            }
        }
}

// Writes the sums of all teams, relative to the largest score of all, to shared memory, lanes side by side.
void join_teams()
{
    if (lane == 0)
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            tops[team][h] = top[h];
            sums[team][h] = sum[h];
        }
    barrier();
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        float most = LOWEST, total = 0.0;
        [[unroll]] for (uint i = 0; i < TEAMS; i += LANES)
            if (i + gl_SubgroupInvocationID < TEAMS) most = max(most, tops[i + gl_SubgroupInvocationID][h]);
        [[unroll]] for (uint i = 1; i < LANES; i *= 2) most = max(most, subgroupShuffleXor(most, i));
        [[unroll]] for (uint i = 0; i < TEAMS; i += LANES) {
            uint s = min(i + gl_SubgroupInvocationID, TEAMS - 1);
            bool some = i + gl_SubgroupInvocationID < TEAMS && tops[s][h] > LOWEST;
            total += some ? sums[s][h] * exp(tops[s][h] - most) : 0.0;
        }
        tops_all[h] = most;
        sums_all[h] = lanes_sum(total, LANES);
        float factor = top[h] > LOWEST ? exp(top[h] - most) : 0.0;
        [[unroll]] for (uint i = 0; i < 8 * CHUNKS_V; i++)
            team_sums[((team * HEADS + h) * 8 * CHUNKS_V + i) * TEAM + lane] = acc[h][i] * factor;
    }
    barrier();
}

// Adds up what the teams wrote, and stores the result (whole), or the sums of this workgroup.
void store(bool whole, uint64_t ends, uint first_part, uint stride)
{
    uint t = team * TEAM + lane;
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        if (h >= n_heads) continue;
        uint part = first_part + h * SPLITS;
        uint64_t y = places.y + steps(h, places.y_head);
        float most = tops_all[h], total = sums_all[h], before = most;
        if (whole) {
            if (SINKS) add_sink(sinks[h], most, total);
        } else if (t == 0) {
            Exchanged(ends + uint64_t(part) * 8).v = most;
            Exchanged(ends + uint64_t(part) * 8 + 4).v = total;
        }
        float factor = !whole                           ? 1.0
                       : total > 0.0 && before > LOWEST ? (before == most ? 1.0 : exp(before - most)) / total
                                                        : 0.0;
        for (uint at = t; at < 8 * CHUNKS_V * TEAM; at += gl_WorkGroupSize.x) {
            uint i = at / TEAM, e = (i / 8 * TEAM + at % TEAM) * 8 + i % 8;
            float value = 0.0;
            [[unroll]] for (uint s = 0; s < TEAMS; s++)
                value += team_sums[(s * HEADS + h) * 8 * CHUNKS_V * TEAM + at];
            if (e >= d_v) continue;
            if (whole) {
                value *= factor;
                store_f32(y + 4 * e, value);
                if (STAGES) staged_values[h * d_v + e] = value;
            } else Exchanged(places.sums + uint64_t(part) * stride + 4 * e).v = value;
        }
    }
}

void main()
{
    uint t = gl_SubgroupID * LANES + gl_SubgroupInvocationID;
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    if (FOLDS && gl_SubgroupID == 1) touched = touch_record(record_before(), gl_SubgroupInvocationID);
    View q = args.src[0];
    const uint BLOCKS = (GROUP + HEADS - 1) / HEADS, heads = KV_HEADS * GROUP;
    uint g = group_index(), split = g % SPLITS, part_of_token = g / SPLITS, block = part_of_token % BLOCKS,
         kv_head = part_of_token / BLOCKS % KV_HEADS, token = part_of_token / (BLOCKS * KV_HEADS),
         h0 = kv_head * GROUP + block * HEADS;
    if (token >= uint(q.ne[1])) return;
    n_heads = min(HEADS, GROUP - block * HEADS), d_v = uint(args.src[2].ne[3]);
    lane = t % TEAM, team = t / TEAM;
    if (FOLDS) { // both are in flight while the keys are found
        Args rope = record_before();
        View slots = rope.src[rope.n[N_ROPE_SLOTS]];
        new.rotation = rotation_of(rope, token);
        new.slot = load_i32(slots.data + steps(token, slots.nb[3]));
        new.token = token, new.h0 = h0, new.key = -1;
        new.writes = split == 0 && block == 0;
    }
    load_queries(q, token, h0);
    Span span = span_of(int(token), FOLDS);
    View y = args.dst[0];
    places.y = y.data + steps(token, y.nb[1]) + steps(h0, y.nb[2]);
    places.y_head = y.nb[2];
    places.sums = args.scratch;
    places.counters = args.counters + 4 * uint64_t(part_of_token);
    if (STAGES) {
        places.staged = args.staged;
        places.staged_norm = args.staged_norm;
    }
    int per = int(keys_per_split(span, SPLITS, uint(args.n[N_ATTENTION_ROUND]))),
        from = span.from + int(split) * per,
        to = min(span.to, from + per);
    if (span.none || (split > 0 && from >= span.to)) return;
    uint used = SPLITS == 1 ? 1 : max(1u, uint(span.to - span.from + per - 1) / uint(per)),
         first_part = (token * heads + h0) * SPLITS, stride = (d_v + 7) / 8 * 32;
    uint64_t ends = places.sums + uint64_t(uint(q.ne[1]) * heads * SPLITS) * stride;
    [[dont_unroll]] for (uint phase = 0; phase <= PHASES; phase++) {
        begin(touched);
        if (phase == 0) attend_keys(span, kv_head, from, to);
        else merge_splits(ends, first_part, used, stride);
        join_teams();
        bool whole = PHASES == 0 || used == 1 || phase == 1;
        store(whole, ends, first_part + split, stride);
        if (whole) break;
        if (!is_last_workgroup(places.counters, used, t == 0)) return;
    }
    if (!STAGES) return;
    row_here = token;
    group_first = h0 * d_v / 32;
    barrier();
    stage(n_heads * d_v / 32, heads * d_v);
}
