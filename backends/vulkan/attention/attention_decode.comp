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
// Bytes: keys and values once for every HEADS heads. Limit: latency for short contexts, memory for long
// ones. Measured on an H200 in a decoding 8B model: 14.8 us for each layer, and 25.6 us before the keys
// were split over more workgroups.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/attention/attention.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"
#define STAGED_GROUPS 32
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
// Number of heads, and bits: 16 keys may be split over workgroups, 32 scores are capped, 64 they have slopes
// (ALiBi), 128 there are sinks, 256 it writes a staged result. Code that is not needed is left out, because a
// dispatch that runs through it once waits for the code itself.
layout(constant_id = 2) const uint FORM = 1;
layout(constant_id = 3) const
    int ALIGNED = 0; // rows are whole runs of 16 elements and start at multiples of 16 bytes
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint TEAM = 8; // lanes of a team: a power of two, at most a subgroup
layout(constant_id = 6) const uint CHUNKS_K = 1; // chunks of 8 elements that a lane has of a row
layout(constant_id = 7) const uint CHUNKS_V = 1;
layout(constant_id = 8) const uint KEYS = 1; // that a team has in flight
const bool CAPS = (FORM & 32u) != 0, SLOPES = (FORM & 64u) != 0, SINKS = (FORM & 128u) != 0,
           STAGES = (FORM & 256u) != 0;
const uint HEADS = FORM & 15u, PHASES = FORM >> 4 & 1u, TEAMS = gl_WorkGroupSize.x / TEAM;
const uint MAX_HEADS = 4, MAX_CHUNKS = 16, MAX_KEYS = 8, MAX_TEAMS = 128;

shared float team_sums[gl_WorkGroupSize.x * HEADS * 8 * CHUNKS_V], tops[MAX_TEAMS][MAX_HEADS],
    sums[MAX_TEAMS][MAX_HEADS];
shared uint ready; // how many workgroups of this token were ready before this one

// What workgroups write for each other.
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Exchanged { float v; };
layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer Counter { uint v; };
layout(buffer_reference, scalar, buffer_reference_align = 16) coherent buffer ExchangedFour { vec4 v; };

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
    if (TEAM == gl_SubgroupSize) return subgroupAdd(v);
    for (uint i = 1; i < TEAM; i *= 2) v += subgroupShuffleXor(v, i);
    return v;
}

// Addresses of the rows of key j.
void rows_of(View k, View v, View table, Span span, uint kv_head, int j, out uint64_t k_row,
             out uint64_t v_row)
{
    uint size = uint(k.ne[2]), page, at;
    [[dont_flatten]] if ((size & (size - 1)) == 0) page = uint(j) >> findLSB(size);
    else page = uint(j) / size;
    at = uint(j) - page * size;
    int64_t block = load_i32(table.data + int64_t(span.seq) * table.nb[2] + int64_t(page) * table.nb[3]);
    k_row = k.data + block * k.nb[0] + int64_t(kv_head) * k.nb[1] + int64_t(at) * k.nb[2];
    v_row = v.data + block * v.nb[0] + int64_t(kv_head) * v.nb[1] + int64_t(at) * v.nb[2];
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
        uint64_t row = q.data + int64_t(token) * q.nb[1] + int64_t(head) * q.nb[2];
        [[unroll]] for (uint c = 0; c < CHUNKS_K; c++) {
            Raw r = load_raw(TYPE_F32, row, (c * TEAM + lane) * 8, uint(q.ne[3]));
            [[unroll]] for (uint i = 0; i < 8; i++) queries[h][8 * c + i] = element(TYPE_F32, r, i);
        }
        slope[h] = SLOPES ? alibi_slope(max_bias, uint(q.ne[2]), head) : 0.0;
        sinks[h] = SINKS ? sink_of(head) : LOWEST;
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

void attend_keys(Span span, uint kv_head, int from, int to)
{
    View k = args.src[1], v = args.src[2], table = args.src[5];
    float scale = param_f(0), softcap = CAPS ? param_f(4) : 0.0;
    // The same number of rounds for all lanes, because sums over a team need all of its lanes.
    for (int j0 = from; j0 < to; j0 += int(KEYS * TEAMS)) {
        Raw ks[MAX_KEYS][MAX_CHUNKS], vs[MAX_KEYS][MAX_CHUNKS];
        [[unroll]] for (uint u = 0; u < KEYS; u++) {
            uint64_t k_row, v_row;
            rows_of(k, v, table, span, kv_head, min(j0 + int(u * TEAMS + team), to - 1), k_row, v_row);
            [[unroll]] for (uint c = 0; c < CHUNKS_K; c++)
                ks[u][c] = load_raw(TYPE_K, k_row, (c * TEAM + lane) * 8, uint(k.ne[3]));
            [[unroll]] for (uint c = 0; c < CHUNKS_V; c++)
                vs[u][c] = load_raw(TYPE_V, v_row, (c * TEAM + lane) * 8, d_v);
        }
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            float s[MAX_KEYS], now = top[h];
            [[unroll]] for (uint u = 0; u < KEYS; u++) {
                float dot = 0.0;
                [[unroll]] for (uint c = 0; c < CHUNKS_K; c++)
                    [[unroll]] for (uint i = 0; i < 8; i++)
                        dot = fma(element(TYPE_K, ks[u][c], i), queries[h][8 * c + i], dot);
                int j = j0 + int(u * TEAMS + team);
                dot = team_sum(dot) * scale;
                if (CAPS) dot = unary(UNARY_SOFTCAP, dot, softcap, 0.0);
                if (SLOPES) dot -= slope[h] * float(abs(span.position - j));
                s[u] = j < to ? dot : LOWEST;
                now = max(now, s[u]);
            }
            float shrink = top[h] == now ? 1.0 : exp(top[h] - now);
            top[h] = now;
            sum[h] *= shrink;
            [[unroll]] for (uint i = 0; i < 8 * CHUNKS_V; i++) acc[h][i] *= shrink;
            [[unroll]] for (uint u = 0; u < KEYS; u++) {
                float p = s[u] > LOWEST ? exp(s[u] - now) : 0.0;
                sum[h] += p;
                [[unroll]] for (uint c = 0; c < CHUNKS_V; c++)
                    [[unroll]] for (uint i = 0; i < 8; i++)
                        acc[h][8 * c + i] = fma(p, element(TYPE_V, vs[u][c], i), acc[h][8 * c + i]);
            }
        }
    }
}

// Merges the sums of `used` workgroups, of the head whose first part is given and of those after it, as if
// they were keys.
void merge_splits(uint64_t ends, uint first_part, uint splits, uint used, uint stride)
{
    for (uint s0 = 0; s0 < used; s0 += TEAMS)
        [[unroll]] for (uint h = 0; h < HEADS; h++) {
            uint part = first_part + min(h, n_heads - 1) * splits + min(s0 + team, used - 1);
            float each = s0 + team < used ? Exchanged(ends + int64_t(part) * 8).v : LOWEST,
                  total = Exchanged(ends + int64_t(part) * 8 + 4).v;
            float now = max(top[h], each), shrink = top[h] == now ? 1.0 : exp(top[h] - now),
                  grow = each > LOWEST ? exp(each - now) : 0.0;
            top[h] = now;
            sum[h] = sum[h] * shrink + (each > LOWEST ? total * grow : 0.0);
            [[unroll]] for (uint c = 0; c < CHUNKS_V; c++) {
                uint e = (c * TEAM + lane) * 8;
                if (e >= d_v) continue;
                uint64_t values = places.sums + int64_t(part) * stride + 4 * e;
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
        [[unroll]] for (uint i = 0; i < TEAMS; i++) most = max(most, tops[i][h]);
        [[unroll]] for (uint i = 0; i < TEAMS; i++)
            total += tops[i][h] > LOWEST ? sums[i][h] * exp(tops[i][h] - most) : 0.0;
        tops_all[h] = most;
        sums_all[h] = total;
        float factor = top[h] > LOWEST ? exp(top[h] - most) : 0.0;
        [[unroll]] for (uint i = 0; i < 8 * CHUNKS_V; i++)
            team_sums[((team * HEADS + h) * 8 * CHUNKS_V + i) * TEAM + lane] = acc[h][i] * factor;
    }
    barrier();
}

// Adds up what the teams wrote, and stores the result (whole), or the sums of this workgroup.
void store(bool whole, uint64_t ends, uint first_part, uint splits, uint stride)
{
    uint t = team * TEAM + lane;
    [[unroll]] for (uint h = 0; h < HEADS; h++) {
        if (h >= n_heads) continue;
        uint part = first_part + h * splits;
        uint64_t y = places.y + int64_t(h) * places.y_head;
        float most = tops_all[h], total = sums_all[h], before = most;
        if (whole) {
            if (SINKS) add_sink(sinks[h], most, total);
        } else if (t == 0) {
            Exchanged(ends + int64_t(part) * 8).v = most;
            Exchanged(ends + int64_t(part) * 8 + 4).v = total;
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
            } else Exchanged(places.sums + int64_t(part) * stride + 4 * e).v = value;
        }
    }
}

void main()
{
    uint t = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    float touched = gl_SubgroupID == 0 ? touch_record(gl_SubgroupInvocationID) : 0.0;
    View q = args.src[0];
    uint splits = uint(args.n[N_ATTENTION_SPLITS]), blocks = uint(args.n[N_ATTENTION_BLOCKS]),
         kv_heads = uint(args.src[1].ne[1]), heads = uint(q.ne[2]), group = heads / kv_heads;
    uint g = group_index(), split = g % splits, which = g / splits % (kv_heads * blocks),
         token = g / splits / (kv_heads * blocks);
    if (token >= uint(q.ne[1])) return;
    uint kv_head = which / blocks, h0 = kv_head * group + which % blocks * HEADS;
    n_heads = min(HEADS, group - which % blocks * HEADS), d_v = uint(args.src[2].ne[3]);
    lane = t % TEAM, team = t / TEAM;
    load_queries(q, token, h0); // in flight while the keys are found
    Span span = span_of(int(token));
    View y = args.dst[0];
    places.y = y.data + int64_t(token) * y.nb[1] + int64_t(h0) * y.nb[2];
    places.y_head = y.nb[2];
    places.sums = args.scratch;
    places.counters = args.counters + 4 * int64_t(g / splits);
    if (STAGES) {
        places.staged = args.staged;
        places.staged_norm = args.staged_norm;
    }
    int per = int(keys_per_split(span, splits, uint(args.n[N_ATTENTION_ROUND]))),
        from = span.from + int(split) * per,
        to = min(span.to, from + per);
    if (span.none || (split > 0 && from >= span.to)) return;
    uint used = max(1u, uint(span.to - span.from + per - 1) / uint(per)),
         first_part = (token * heads + h0) * splits, stride = (d_v + 7) / 8 * 32;
    uint64_t ends = places.sums + int64_t(uint(q.ne[1]) * heads * splits) * stride;
    [[dont_unroll]] for (uint phase = 0; phase <= PHASES; phase++) {
        begin(touched);
        if (phase == 0) attend_keys(span, kv_head, from, to);
        else merge_splits(ends, first_part, splits, used, stride);
        join_teams();
        bool whole = PHASES == 0 || used == 1 || phase == 1;
        store(whole, ends, first_part + split, splits, stride);
        if (whole) break;
        memoryBarrierBuffer();
        barrier();
        if (t == 0) ready = atomicAdd(Counter(places.counters).v, 1u);
        barrier();
        if (ready + 1 < used) return;
        memoryBarrierBuffer();
        if (t == 0) Counter(places.counters).v = 0; // for the next step
    }
    if (!STAGES) return;
    row_here = token;
    group_first = h0 * d_v / 32;
    barrier();
    stage(n_heads * d_v / 32, heads * d_v);
}
