// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache for many queries, on devices where it is known which elements of a matrix an
// invocation has (shaders/coopmat.glsl, FRAGMENTS): y = softmax(scale q k^T + mask) v. Sources:
// attention.glsl. Queries and the weights of values are rounded to the type of the cache, f16 or bf16, as
// CUDA's attention_wgmma does it.
//
// Work: a workgroup has 64 or 128 tokens of one head, each of its subgroups 16 of them, and goes through
// tiles of 64 keys (Dao 2023, FlashAttention-2). Scores become weights in registers: elements of the sums of
// one product are, in the same order, those of the left operand of the next one. Only keys and values go
// through shared memory, with two barriers a tile: values of a tile are in flight while its scores are
// computed, and keys of the next one while scores become weights and values are summed.
//
// Operations: 4 T S D for T queries over S keys of D elements. Limit: matrix products. Measured on an H200 in
// a prefill of 4096 tokens of an 8B model, for each layer: with 128 tokens of a workgroup 1.2 ms (118
// TFLOP/s), with 64, which load keys and values twice as often, 2.0 ms; attention_coopmat.comp 2.2 ms.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#define FRAGMENTS
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/attention/attention.glsl"
#include "backends/vulkan/attention/attention_tile.glsl"
#define MULTIPLY_STEP 4
#include "backends/vulkan/shaders/coopmat.glsl"

// Matrices along a query (lower five bits) and along a value (the next five), subgroups.
layout(constant_id = 2) const uint FORM = 0x1108;
const uint Q = FORM & 31u, V = FORM >> 5 & 31u, TEAMS = FORM >> 10;
const uint ROWS = 16 * TEAMS, KEYS = 64, THREADS = 32 * TEAMS, N = KEYS / 16;
layout(local_size_x_id = 4) in;

// Shared memory in vectors of 16 bytes. Rows have one more than they need, so that no two rows of a matrix
// share banks. Keys and values have an area each, in whose place queries are before; behind them is what
// emulated matrices exchange.
const uint K_ROW = 2 * Q + 1, V_ROW = 2 * V + 1, K_AREA = KEYS * K_ROW, BOTH = K_AREA + KEYS * V_ROW,
           AREAS = BOTH > ROWS * K_ROW ? BOTH : ROWS * K_ROW;
MATRIX_SPACE(AREAS + TEAMS * FRAGMENT_SPACE)
shared float scales[ROWS];
shared u64vec2 key_rows[2][KEYS]; // of the tile at hand and the next one, by turns

const float LOG2_E = 1.44269504, LN_2 = 0.693147181;

// --- queries, keys and values ----------------------------------------------------------------------------

// Writes half of a row of queries, scaled into the range of f16, and the factor that undoes the scale.
void store_queries(uint64_t from, uint row, uint part)
{
    float most = 0.0;
    for (uint i = 0; i < 8 * Q; i++) {
        float v = abs(load_f32(from + 4 * (8 * Q * part + i)));
        if (v <= 3.40282347e38 && v > most) most = v;
    }
    scales[row] = 0.0;
    most = over_pair(most);
    int e = max(int(floatBitsToUint(most) >> 23) - 127, -112);
    float power = most > 0.0 ? uintBitsToFloat(uint(14 - e + 127) << 23) : 1.0;
    [[dont_unroll]] for (uint u = Q * part; u < Q * part + Q; u++) {
        uvec4 words;
        [[unroll]] for (uint i = 0; i < 4; i++)
            words[i] = pack2(load_f32(from + 4 * (8 * u + 2 * i)) * power,
                             load_f32(from + 4 * (8 * u + 2 * i) + 4) * power);
        space[row * K_ROW + u] = words;
    }
    if (part == 0) scales[row] = most > 0.0 ? uintBitsToFloat(uint(e - 14 + 127) << 23) : 1.0;
}

// The block of the cache that an invocation's key of the tile from j0 on is in. Keys behind the end are taken
// for the last one.
int block_of(int seq, int j0, int end)
{
    View table = args.src[5];
    int j = min(j0 + int(gl_LocalInvocationID.x % KEYS), end - 1);
    return load_i32(table.data + int64_t(seq) * table.nb[2] +
                    int64_t(j / int(args.src[1].ne[2])) * table.nb[3]);
}

// Where the rows of that key and its value are.
void put_rows(uint turn, int block, int j0, int end, uint kv_head)
{
    View k = args.src[1], v = args.src[2];
    int at = min(j0 + int(gl_LocalInvocationID.x % KEYS), end - 1) % int(k.ne[2]);
    if (gl_LocalInvocationID.x >= KEYS) return;
    key_rows[turn][gl_LocalInvocationID.x] = u64vec2(
        k.data + int64_t(block) * k.nb[0] + int64_t(kv_head) * k.nb[1] + int64_t(at) * k.nb[2],
        v.data + int64_t(block) * v.nb[0] + int64_t(kv_head) * v.nb[1] + int64_t(at) * v.nb[2]);
}

uvec4 next_k[KEYS * 2 * Q / THREADS], next_v[KEYS * 2 * V / THREADS];

void fetch_keys(uint turn)
{
    UNROLL for (uint i = 0; i < KEYS * 2 * Q / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        next_k[i] = load_u128(key_rows[turn][e / (2 * Q)].x + 16 * (e % (2 * Q)));
    }
}
void store_keys()
{
    UNROLL for (uint i = 0; i < KEYS * 2 * Q / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        space[e / (2 * Q) * K_ROW + e % (2 * Q)] = next_k[i];
    }
}
void fetch_values(uint turn)
{
    UNROLL for (uint i = 0; i < KEYS * 2 * V / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        next_v[i] = load_u128(key_rows[turn][e / (2 * V)].y + 16 * (e % (2 * V)));
    }
}
void store_values()
{
    UNROLL for (uint i = 0; i < KEYS * 2 * V / THREADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        space[K_AREA + e / (2 * V) * V_ROW + e % (2 * V)] = next_v[i];
    }
}

// --- scores ----------------------------------------------------------------------------------------------

// Of the rows of this invocation: which keys they see, factor of scores; references are the largest scores,
// times log2(e), sums are of the keys that this invocation has.
Seen seen[LANE_ROWS];
float factor[LANE_ROWS], top[LANE_ROWS], sum[LANE_ROWS], slope, softcap;

// Scores of a matrix of keys from j0 on, times log2(e); those of keys that a row does not see are -infinity.
// If `all`, the rows see all of the keys, and neither a cap nor a bias changes scores.
void mask_scores(inout float s[8], int j0, bool all)
{
    [[unroll]] for (uint e = 0; e < 8; e++) {
        const uint h = e * LANE_ROWS / 8;
        if (all) {
            s[e] *= factor[h] * LOG2_E;
            continue;
        }
        int j = j0 + int(LANE_COLUMN(e));
        s[e] *= factor[h];
        if (softcap > 0.0) s[e] = soft_cap(s[e], softcap);
        s[e] = (s[e] - slope * float(abs(seen[h].position - j))) * LOG2_E;
        if (j < seen[h].from || j >= seen[h].to) s[e] = LOWEST;
    }
}

// Turns scores into weights, in 16 bits, two a word; returns the factors by which earlier sums shrink.
void weights_of_scores(inout float s[N][8], out uvec4 weights[N], out float shrink[LANE_ROWS])
{
    float base[LANE_ROWS];
    [[unroll]] for (uint h = 0; h < LANE_ROWS; h++) {
        float most = top[h];
        [[unroll]] for (uint n = 0; n < N; n++)
            [[unroll]] for (uint e = 0; e < 8 / LANE_ROWS; e++) most = max(most, s[n][8 / LANE_ROWS * h + e]);
        most = over_row(most, false);
        shrink[h] = top[h] == most ? 1.0 : exp2(top[h] - most);
        base[h] = most == LOWEST ? 0.0 : most;
        top[h] = most;
        sum[h] *= shrink[h];
    }
    [[unroll]] for (uint n = 0; n < N; n++)
        [[unroll]] for (uint c = 0; c < 4; c++) {
            const uint h = c * LANE_ROWS / 4;
            uint two = pack2(exp2(s[n][2 * c] - base[h]), exp2(s[n][2 * c + 1] - base[h]));
            weights[n][c] = two;
            vec2 rounded = unpack2(two); // so that the error of one that prevails cancels
            sum[h] += rounded.x + rounded.y;
        }
}

void main()
{
    View q = args.src[0];
    uint tokens = uint(q.ne[1]), heads = uint(q.ne[2]), blocks = (tokens + ROWS - 1) / ROWS,
         g = group_index(), h = g % heads, team = gl_LocalInvocationID.x / 32,
         kv_head = h / (heads / uint(args.src[1].ne[1]));
    if (g >= blocks * heads) return;
    int t0 = int((blocks - 1 - g / heads) * ROWS); // the last tokens, which see most keys, come first
    uint row = gl_LocalInvocationID.x / 2;
    store_queries(q.data + int64_t(min(t0 + int(row), int(tokens) - 1)) * q.nb[1] + int64_t(h) * q.nb[2], row,
                  gl_LocalInvocationID.x % 2);
    barrier();
    slope = param_f(5) > 0.0 ? alibi_slope(param_f(5), heads, h) : 0.0;
    softcap = param_f(4);
    bool simple = slope == 0.0 && softcap <= 0.0, mine[LANE_ROWS];
    [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
        factor[i] = scales[16 * team + LANE_ROW(i)] * param_f(0);
        top[i] = LOWEST, sum[i] = 0.0, mine[i] = false;
    }
    MatrixA query[Q];
    MatrixC sums[V];
    UNROLL for (uint i = 0; i < Q; i++) matrix_a(query[i], 16 * team * K_ROW + 2 * i, K_ROW);
    UNROLL for (uint i = 0; i < V; i++) matrix_zero(sums[i]);
    [[dont_unroll]] for (int seq = 0; seq < args.src[4].ne[3]; seq++) {
        [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
            seen[i] = seen_of(seq, t0 + int(16 * team + LANE_ROW(i)), t0, int(ROWS));
            mine[i] = mine[i] || seen[i].inside;
        }
        if (seen[0].none) continue;
        int j0 = seen[0].begin / int(KEYS) * int(KEYS), end = seen[0].end;
        barrier();
        put_rows(0, block_of(seq, j0, end), j0, end, kv_head);
        put_rows(1, block_of(seq, j0 + int(KEYS), end), j0 + int(KEYS), end, kv_head);
        barrier();
        fetch_keys(0);
        store_keys();
        barrier();
        uint turn = 0;
        [[dont_unroll]] for (; j0 < end; j0 += int(KEYS), turn ^= 1) {
            fetch_values(turn);
            MatrixC scores[N];
            UNROLL for (uint n = 0; n < N; n++) {
                matrix_zero(scores[n]);
                UNROLL for (uint i = 0; i < Q; i++) {
                    MatrixB b;
                    matrix_b_columns(b, 16 * n * K_ROW + 2 * i, K_ROW);
                    matrix_multiply(query[i], b, scores[n]);
                }
            }
            store_values();
            fetch_keys(turn ^ 1);
            float s[N][8], shrink[LANE_ROWS];
            uvec4 weights[N];
            bool all = simple;
            [[unroll]] for (uint i = 0; i < LANE_ROWS; i++)
                all = all && seen[i].from <= j0 && j0 + int(KEYS) <= seen[i].to;
            UNROLL for (uint n = 0; n < N; n++) {
                matrix_elements(s[n], scores[n]);
                mask_scores(s[n], j0 + 16 * int(n), all);
            }
            weights_of_scores(s, weights, shrink);
            MatrixC shrinks;
            matrix_of_rows(shrinks, shrink);
            UNROLL for (uint i = 0; i < V; i++) matrix_scale(sums[i], shrinks);
            barrier(); // values are there, and keys were read
            int block = block_of(seq, j0 + 2 * int(KEYS), end);
            UNROLL for (uint n = 0; n < N; n++) {
                MatrixA weight;
                matrix_a_fragment(weight, AREAS + FRAGMENT_SPACE * team, weights[n]);
                UNROLL for (uint i = 0; i < V; i++) {
                    MatrixB b;
                    matrix_b_rows(b, K_AREA + 16 * n * V_ROW + 2 * i, V_ROW);
                    matrix_multiply(weight, b, sums[i]);
                }
            }
            store_keys();
            put_rows(turn, block, j0 + 2 * int(KEYS), end, kv_head);
            barrier(); // keys are there, and values were read
        }
    }
    float last[LANE_ROWS];
    [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
        float all = over_row(sum[i], true), before = top[i] * LN_2, now = before;
        add_sink(h, now, all);
        last[i] = all > 0.0 ? (before == now ? 1.0 : exp(before - now)) / all : 0.0;
    }
    UNROLL for (uint i = 0; i < V; i++) {
        float y[8];
        matrix_elements(y, sums[i]);
        [[unroll]] for (uint e = 0; e < 8; e++) {
            const uint r = e * LANE_ROWS / 8;
            int token = t0 + int(16 * team + LANE_ROW(r));
            if (mine[r] && token < int(tokens))
                store_f32(args.dst[0].data + int64_t(token) * args.dst[0].nb[1] +
                              int64_t(h) * args.dst[0].nb[2] + 4 * (16 * i + LANE_COLUMN(e)),
                          y[e] * last[r]);
        }
    }
}
