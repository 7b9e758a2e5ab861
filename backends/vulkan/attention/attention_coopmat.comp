// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache for many queries with cooperative matrices (shaders/coopmat.glsl;
// algorithm: Dao 2023, FlashAttention-2): y = softmax(scale q k^T + mask) v. Sources: attention.glsl.
//
// Work: a workgroup has 64 tokens of one head, each of its four subgroups 16 of them, and goes through
// tiles of 64 keys. Values are summed in registers. Scores and weights go through shared memory, where two
// invocations have a row. Queries and sums of heads above 128 would not fit into registers: there it has 32
// tokens and tiles of 32 keys, and two subgroups share 16 tokens. Each multiplies half of the elements of
// queries and keys, the sum of both is the score, and each sums half of the elements of values.
//
// Precision: a query is the sum of two f16, and keys of quantised caches are too, so that scores are as
// exact as the cache. BF16: caches of bf16, which is the type of the matrices; weights are the sum of two
// bf16, too.
//
// Operations: 4 T S D for T queries over S keys of D elements, and 2 T S D more for the second part of the
// queries, with BF16 4 T S D for those of queries and weights. Limit: matrix products. Measured on an H200
// in a prefill of 512 tokens of an 8B model: 82 us for each layer.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/attention/attention.glsl"
#include "backends/vulkan/attention/attention_tile.glsl"
#include "backends/vulkan/shaders/cache_row.glsl"
#define MULTIPLY_STEP 4
#include "backends/vulkan/shaders/coopmat.glsl"

layout(constant_id = 0) const int TYPE_K = TYPE_F16;
layout(constant_id = 1) const int TYPE_V = TYPE_F16;
layout(constant_id = 2) const uint DIMS = 0x108; // matrices along a query (lower five bits) and along a value
layout(constant_id = 3) const int ALIGNED = 0;  // rows of the cache start at multiples of 16 bytes
// SPLIT: subgroups that share a row; SHARES: invocations; of a tile of keys each has PORTION.
const uint Q = DIMS & 31u, V = DIMS >> 5, SPLIT = Q > 8 || V > 8 ? 2 : 1, SHARES = 2 * SPLIT;
const uint ROWS = 64 / SPLIT, KEYS = 64 / SPLIT, THREADS = 128, PORTION = KEYS / SHARES;
const uint Q_OF_TEAM = Q / SPLIT, V_OF_TEAM = V / SPLIT, PARTS = TYPE_K == ELEMENT ? 1 : 2;
layout(local_size_x = 128) in;

// Shared memory in vectors of 16 bytes. Rows have one more than they need, so that no two rows of a matrix
// share banks. The first area has queries, then keys and scores by turns; the second the low parts of
// queries, then values; the third factors of the sums. At the end the results take the place of all three.
const uint K_ROW = 2 * Q + 1, V_ROW = 2 * V + 1, S_ROW = KEYS / 4 + 1, O_ROW = 4 * V + 1, F_ROW = 5;
const uint S_AREA = ROWS * S_ROW; // scores by one of the subgroups that share a row
const uint K_AREA = ROWS * K_ROW > SPLIT * S_AREA ? ROWS * K_ROW : SPLIT * S_AREA,
           V_AREA = ROWS * (V_ROW > K_ROW ? V_ROW : K_ROW), F_AREA = ROWS * F_ROW;
const uint AREAS = K_AREA + V_AREA + F_AREA;
MATRIX_SPACE(AREAS > ROWS * O_ROW ? AREAS : ROWS * O_ROW)
shared float exchanged[THREADS];
shared u64vec2 key_rows[KEYS];

// The leading bits of v, which an element of a matrix holds exactly. They are masked, not packed and
// unpacked: a compiler may replace that by v itself, and then the second part would be 0.
vec2 leading(vec2 v)
{
    return uintBitsToFloat(floatBitsToUint(v) & (ELEMENT == TYPE_BF16 ? 0xffff0000u : 0xffffe000u));
}

const uint WHOLE = 0, LEADING = 1, REST = 2; // what vector_of_row returns of each element
const uint WEIGHT_PARTS = ELEMENT == TYPE_BF16 ? 2 : 1;

// Elements 8 u .. 8 u + 7 of a row of the cache as those of matrices: whole, or their leading bits, or the
// difference of the two.
uvec4 vector_of_row(int type, uint64_t row, uint u, uint bits)
{
    if (type == ELEMENT && ALIGNED != 0) return load_u128(row + 16 * u);
    uvec4 two;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        vec2 v = vec2(load_cached(type, row, 8 * u + 2 * i), load_cached(type, row, 8 * u + 2 * i + 1));
        if (bits != WHOLE) v = bits == REST ? v - leading(v) : leading(v);
        two[i] = pack2(v.x, v.y);
    }
    return two;
}

// State of an invocation for its part of a row.
uint row, part;
float scale, slope, top = LOWEST, sum = 0.0;

// The sum, or the maximum, of the v of all invocations that share a row. All call it together.
float over_row(float v, bool adds)
{
    barrier();
    exchanged[row * SHARES + part] = v;
    barrier();
    float all = exchanged[row * SHARES];
    [[unroll]] for (uint i = 1; i < SHARES; i++) {
        float more = exchanged[row * SHARES + i];
        all = adds ? all + more : max(all, more);
    }
    return all;
}

void find_rows(int seq, int j0, int end, uint kv_head)
{
    uint t = gl_LocalInvocationID.x;
    int j = min(j0 + int(t), end - 1);
    if (t >= KEYS) return;
    View k = args.src[1], v = args.src[2], table = args.src[5];
    int page = j / k.ne[2], at = j % k.ne[2],
        block = load_i32(table.data + int64_t(seq) * table.nb[2] + int64_t(page) * table.nb[3]);
    key_rows[t].x = k.data + int64_t(block) * k.nb[0] + int64_t(kv_head) * k.nb[1] + int64_t(at) * k.nb[2];
    key_rows[t].y = v.data + int64_t(block) * v.nb[0] + int64_t(kv_head) * v.nb[1] + int64_t(at) * v.nb[2];
}

// All loads come first and without branches, so that none waits for another. Rows behind the end are 0.
void load_keys(int j0, int end, uint bits)
{
    uvec4 loaded[KEYS * 2 * Q / THREADS];
    UNROLL for (uint i = 0; i < KEYS * 2 * Q / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        loaded[i] = vector_of_row(TYPE_K, key_rows[e / (2 * Q)].x, e % (2 * Q), bits);
    }
    UNROLL for (uint i = 0; i < KEYS * 2 * Q / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS, key = e / (2 * Q);
        space[key * K_ROW + e % (2 * Q)] = loaded[i] & (j0 + int(key) < end ? 0xffffffffu : 0u);
    }
}

void load_values(int j0, int end)
{
    uvec4 loaded[KEYS * 2 * V / THREADS];
    UNROLL for (uint i = 0; i < KEYS * 2 * V / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        loaded[i] = vector_of_row(TYPE_V, key_rows[e / (2 * V)].y, e % (2 * V), WHOLE);
    }
    UNROLL for (uint i = 0; i < KEYS * 2 * V / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS, key = e / (2 * V);
        space[K_AREA + key * V_ROW + e % (2 * V)] = loaded[i] & (j0 + int(key) < end ? 0xffffffffu : 0u);
    }
}

// Writes a part of a row of queries to both areas, scaled into the range of f16; returns the factor that
// undoes the scale.
float store_queries(uint64_t from)
{
    float most = 0.0;
    uint first = Q_OF_TEAM * part;
    for (uint i = 0; i < 8 * Q_OF_TEAM; i++) {
        float v = abs(load_f32(from + 4 * (8 * first + i)));
        if (v <= 3.40282347e38 && v > most) most = v;
    }
    most = over_row(most, false);
    int e = max(int(floatBitsToUint(most) >> 23) - 127, -112);
    float power = most > 0.0 ? uintBitsToFloat(uint(14 - e + 127) << 23) : 1.0;
    [[dont_unroll]] for (uint u = first; u < first + Q_OF_TEAM; u++) {
        uvec4 high, low;
        [[unroll]] for (uint i = 0; i < 4; i++) {
            vec2 v =
                vec2(load_f32(from + 4 * (8 * u + 2 * i)), load_f32(from + 4 * (8 * u + 2 * i) + 4)) * power;
            vec2 lead = leading(v), rest = v - lead;
            high[i] = pack2(lead.x, lead.y);
            low[i] = pack2(rest.x, rest.y);
        }
        space[row * K_ROW + u] = high;
        space[K_AREA + row * K_ROW + u] = low;
    }
    return most > 0.0 ? uintBitsToFloat(uint(e - 14 + 127) << 23) : 1.0;
}

// Turns the scores of a part of a row of a tile into weights, in place; returns the factor by which earlier
// sums shrink.
float weights_of_scores(int j0, Seen seen)
{
    float s[PORTION], most = LOWEST, softcap = param_f(4), more = 0.0;
    [[unroll]] for (uint i = 0; i < PORTION; i++) {
        int j = j0 + int(PORTION * part + i);
        uint at = row * S_ROW + PORTION / 4 * part + i / 4;
        s[i] = uintBitsToFloat(space[at][i % 4]);
        if (SPLIT == 2) s[i] += uintBitsToFloat(space[S_AREA + at][i % 4]);
        s[i] *= scale;
        if (softcap > 0.0) s[i] = soft_cap(s[i], softcap);
        s[i] = j >= seen.from && j < seen.to ? s[i] - slope * float(abs(seen.position - j)) : LOWEST;
        most = max(most, s[i]);
    }
    most = over_row(most, false);
    float now = max(top, most), shrink = top == now ? 1.0 : exp(top - now);
    [[unroll]] for (uint i = 0; i < PORTION / 8; i++) {
        uvec4 two, rest;
        [[unroll]] for (uint c = 0; c < 4; c++) {
            float a = s[8 * i + 2 * c], b = s[8 * i + 2 * c + 1];
            a = a > LOWEST ? exp(a - now) : 0.0;
            b = b > LOWEST ? exp(b - now) : 0.0;
            more += a + b;
            two[c] = pack2(a, b);
            vec2 lead = leading(vec2(a, b));
            if (WEIGHT_PARTS == 2) two[c] = pack2(lead.x, lead.y), rest[c] = pack2(a - lead.x, b - lead.y);
        }
        uint at = row * S_ROW + PORTION / 8 * part + i;
        space[at] = two;
        if (WEIGHT_PARTS == 2) space[at + KEYS / 8] = rest;
    }
    sum = sum * shrink + more;
    top = now;
    return shrink;
}

// Stores rows of the result; nothing for a token that belongs to no sequence.
void store_rows(int t0, uint h, uint tokens, bool mine)
{
    sum = over_row(sum, true);
    float before = top;
    add_sink(sink_of(h), top, sum);
    float factor = sum > 0.0 ? (before == top ? 1.0 : exp(before - top)) / sum : 0.0;
    barrier();
    exchanged[row * SHARES + part] = mine ? factor : -1.0;
    barrier();
    const uint WIDTH = 16 * V_OF_TEAM;
    uint team = gl_LocalInvocationID.x / 32;
    [[dont_unroll]] for (uint e = LANE; e < 16 * WIDTH; e += 32) {
        uint r = team / SPLIT * 16 + e / WIDTH, c = team % SPLIT * WIDTH + e % WIDTH;
        float f = exchanged[SHARES * r];
        uint64_t y =
            args.dst[0].data + int64_t(t0 + int(r)) * args.dst[0].nb[1] + int64_t(h) * args.dst[0].nb[2];
        if (f >= 0.0 && t0 + int(r) < int(tokens))
            store_f32(y + 4 * c, uintBitsToFloat(space[r * O_ROW + c / 4][c % 4]) * f);
    }
}

void main()
{
    View q = args.src[0];
    uint tokens = uint(q.ne[1]), heads = uint(q.ne[2]), blocks = (tokens + ROWS - 1) / ROWS,
         g = group_index(), h = g % heads;
    if (g >= blocks * heads) return;
    int t0 = int((blocks - 1 - g / heads) * ROWS); // the last tokens, which see most keys, come first
    uint team = gl_LocalInvocationID.x / 32 / SPLIT, side = gl_LocalInvocationID.x / 32 % SPLIT,
         kv_head = h / (heads / uint(args.src[1].ne[1]));
    row = 16 * team + LANE / 2, part = 2 * side + LANE % 2;
    int token = t0 + int(row);
    slope = param_f(5) > 0.0 ? alibi_slope(param_f(5), heads, h) : 0.0;
    scale = store_queries(q.data + int64_t(min(token, int(tokens) - 1)) * q.nb[1] + int64_t(h) * q.nb[2]) *
            param_f(0);
    barrier();
    uint at_q = 2 * side * Q_OF_TEAM, at_v = 2 * side * V_OF_TEAM; // in a row of k, and of v
    MatrixA high[Q_OF_TEAM], low[Q_OF_TEAM];
    MatrixC sums[V_OF_TEAM];
    UNROLL for (uint i = 0; i < Q_OF_TEAM; i++) {
        matrix_a(high[i], 16 * team * K_ROW + at_q + 2 * i, K_ROW);
        matrix_a(low[i], K_AREA + 16 * team * K_ROW + at_q + 2 * i, K_ROW);
    }
    UNROLL for (uint i = 0; i < V_OF_TEAM; i++) matrix_zero(sums[i]);
    bool mine = false;
    [[dont_unroll]] for (int seq = 0; seq < args.src[4].ne[3]; seq++) {
        Seen seen = seen_of(seq, token, t0, int(ROWS));
        if (seen.none) continue;
        mine = mine || seen.inside;
        [[dont_unroll]] for (int j0 = seen.begin / int(KEYS) * int(KEYS); j0 < seen.end; j0 += int(KEYS)) {
            barrier();
            find_rows(seq, j0, seen.end, kv_head);
            barrier();
            load_values(j0, seen.end);
            MatrixC scores[KEYS / 16];
            UNROLL for (uint n = 0; n < KEYS / 16; n++) matrix_zero(scores[n]);
            UNROLL for (uint rest = 0; rest < PARTS; rest++) {
                load_keys(j0, seen.end, PARTS == 1 ? WHOLE : LEADING + rest);
                barrier();
                UNROLL for (uint n = 0; n < KEYS / 16; n++)
                    UNROLL for (uint i = 0; i < Q_OF_TEAM; i++) {
                        MatrixB b;
                        matrix_b_columns(b, 16 * n * K_ROW + at_q + 2 * i, K_ROW);
                        matrix_multiply(high[i], b, scores[n]);
                        if (rest == 0) matrix_multiply(low[i], b, scores[n]);
                    }
                barrier();
            }
            UNROLL for (uint n = 0; n < KEYS / 16; n++)
                matrix_c(side * S_AREA + 16 * team * S_ROW + 4 * n, S_ROW, scores[n]);
            barrier();
            float shrink = weights_of_scores(j0, seen);
            const uint F_SHARE = 4 / SHARES;
            uint at = K_AREA + V_AREA + row * F_ROW + F_SHARE * part;
            [[unroll]] for (uint i = 0; i < F_SHARE; i++) space[at + i] = uvec4(floatBitsToUint(shrink));
            barrier();
            MatrixC factors;
            matrix_c_from(factors, K_AREA + V_AREA + 16 * team * F_ROW, F_ROW);
            UNROLL for (uint i = 0; i < V_OF_TEAM; i++) matrix_scale(sums[i], factors);
            UNROLL for (uint n = 0; n < KEYS / 16; n++) {
                MatrixA weights[WEIGHT_PARTS];
                UNROLL for (uint p = 0; p < WEIGHT_PARTS; p++)
                    matrix_a(weights[p], 16 * team * S_ROW + KEYS / 8 * p + 2 * n, S_ROW);
                UNROLL for (uint i = 0; i < V_OF_TEAM; i++) {
                    MatrixB b;
                    matrix_b_rows(b, K_AREA + 16 * n * V_ROW + at_v + 2 * i, V_ROW);
                    UNROLL for (uint p = 0; p < WEIGHT_PARTS; p++) matrix_multiply(weights[p], b, sums[i]);
                }
            }
        }
    }
    barrier();
    UNROLL for (uint i = 0; i < V_OF_TEAM; i++)
        matrix_c(16 * team * O_ROW + 2 * at_v + 4 * i, O_ROW, sums[i]);
    store_rows(t0, h, tokens, mine);
}
