// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention over the paged cache for many queries, on devices where it is known which elements of a matrix an
// invocation has (shaders/coopmat.glsl, FRAGMENTS): y = softmax(scale q k^T + mask) v. Sources:
// attention.glsl. Queries and the weights of values are rounded to the type of the cache, f16 or bf16, as
// CUDA's attention_wgmma does it.
//
// Work: a workgroup has 64 tokens of one head, each of its subgroups 16 of them, and goes through tiles of 32
// keys (Dao 2023, FlashAttention-2), each of which lies in one block of the cache. Scores become weights in
// registers: elements of the sums of one product are, in the same order, those of the left operand of the
// next one. Only keys and values go through shared memory, with two barriers a tile: values of a tile are in
// flight while its scores are computed, and keys of the next one while scores become weights and values are
// summed. The loop reads nothing of the record, and compares positions only in tiles at the border of what
// its rows see: without that the whole took 1.6 times as long.
//
// Operations: 4 T S D for T queries over S keys of D elements. Limit: matrix products. Measured on an H200,
// 32 heads over 8 of 128, causal: 512 tokens 20 us, 4096 tokens 640 us (215 TFLOP/s; bf16 731); 128 tokens of
// a workgroup over tiles of 64 keys 22 and 612 us.
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

// Matrices along a query (lower five bits), along a value (the next five), and whether scores are capped or
// biased, or their scale is not positive (the next one).
layout(constant_id = 2) const uint FORM = 0x108;
const uint Q = FORM & 31u, V = FORM >> 5 & 31u;
const bool GENERAL = (FORM >> 10 & 1u) != 0;
// Subgroups, matrices of the keys of a tile.
const uint TEAMS = 4, N = 2, ROWS = 16 * TEAMS, KEYS = 16 * N, THREADS = 32 * TEAMS;
layout(local_size_x = 128) in; // THREADS

// Shared memory in vectors of 16 bytes: keys, values, and what emulated matrices exchange. Rows have one
// vector more than they need, so that no two rows of a matrix share banks.
const uint K_ROW = 2 * Q + 1, V_ROW = 2 * V + 1, K_AREA = KEYS * K_ROW, AREAS = K_AREA + KEYS * V_ROW;
MATRIX_SPACE(AREAS + TEAMS * FRAGMENT_SPACE)

const float LOG2_E = 1.44269504, LN_2 = 0.693147181;

// --- queries, keys and values ----------------------------------------------------------------------------

// Of the rows of this invocation: which keys they see, factor of scores; references are the largest scores,
// times log2(e), sums are of the keys that this invocation has.
Seen seen[LANE_ROWS];
float factor[LANE_ROWS], top[LANE_ROWS], sum[LANE_ROWS], slope, softcap;

MatrixA query[Q];

// Loads the queries of a subgroup, scaled into the range of f16; `factor` undoes that.
void load_queries(View q, uint h, int first)
{
    float v[Q][8], most[LANE_ROWS], power[LANE_ROWS];
    [[unroll]] for (uint r = 0; r < LANE_ROWS; r++) {
        uint64_t from = q.data + int64_t(min(first + int(LANE_ROW(r)), q.ne[1] - 1)) * q.nb[1] +
                        int64_t(h) * q.nb[2];
        most[r] = 0.0;
        UNROLL for (uint i = 0; i < Q; i++)
            [[unroll]] for (uint c = 0; c < 8 / LANE_ROWS; c++) {
                const uint e = 8 / LANE_ROWS * r + c;
                v[i][e] = load_f32(from + 4 * (16 * i + LANE_COLUMN(e)));
            }
        UNROLL for (uint i = 0; i < Q; i++)
            [[unroll]] for (uint c = 0; c < 8 / LANE_ROWS; c++) {
                float a = abs(v[i][8 / LANE_ROWS * r + c]);
                if (a <= 3.40282347e38 && a > most[r]) most[r] = a;
            }
    }
    [[unroll]] for (uint r = 0; r < LANE_ROWS; r++) {
        most[r] = over_row(most[r], false);
        // An exponent of at least -96 keeps `factor` from becoming 0: weights_of_scores multiplies it by
        // -infinity where a key is not seen.
        int e = max(int(floatBitsToUint(most[r]) >> 23) - 127, -96);
        power[r] = most[r] > 0.0 ? uintBitsToFloat(uint(14 - e + 127) << 23) : 1.0;
        factor[r] = most[r] > 0.0 ? uintBitsToFloat(uint(e - 14 + 127) << 23) : 1.0;
    }
    UNROLL for (uint i = 0; i < Q; i++) {
        uvec4 words;
        [[unroll]] for (uint c = 0; c < 4; c++)
            words[c] = pack2(v[i][2 * c] * power[c * LANE_ROWS / 4],
                             v[i][2 * c + 1] * power[c * LANE_ROWS / 4]);
        matrix_a_fragment(query[i], AREAS + FRAGMENT_SPACE * (gl_LocalInvocationID.x / 32), words);
    }
}

// Addresses of the block table, keys and values of a sequence and a head, and their strides. They are read
// from the record before the loop over tiles, because reading them in it takes as long as a tile.
uint64_t table, keys, values;
int64_t table_step, key_block, value_block;
uint key_step, value_step;
int tiles_of_block; // tiles of keys in a block of the cache

void find_cache(int seq, uint kv_head)
{
    View k = args.src[1], v = args.src[2], blocks = args.src[5];
    table = blocks.data + int64_t(seq) * blocks.nb[2], table_step = blocks.nb[3];
    keys = k.data + int64_t(kv_head) * k.nb[1], values = v.data + int64_t(kv_head) * v.nb[1];
    key_block = k.nb[0], value_block = v.nb[0];
    key_step = uint(k.nb[2]), value_step = uint(v.nb[2]);
    tiles_of_block = k.ne[2] / int(KEYS);
}

// Goes to the next tile of keys, which is part `part` of the block with that index in the table. Behind the
// end it stays in the block with the index `last`.
void step_tile(inout int index, inout int part, int last)
{
    part++;
    if (part == tiles_of_block) index = min(index + 1, last), part = 0;
}

int block_of(int index) { return load_i32(table + int64_t(index) * table_step); }

const uint K_LOADS = (KEYS * 2 * Q + THREADS - 1) / THREADS, V_LOADS = (KEYS * 2 * V + THREADS - 1) / THREADS;
uvec4 next_k[K_LOADS], next_v[V_LOADS];

// Whether a tile of that many vectors has vector e: the last load may be one of some invocations only.
bool has_vector(uint vectors, uint e) { return vectors % THREADS == 0 || e < vectors; }

// Loads the keys of a tile. In place of keys behind the last one of the text the last one is loaded.
void fetch_keys(int block, int part, int last)
{
    uint64_t from = keys + int64_t(block) * key_block + uint64_t(uint(part) * KEYS) * key_step;
    UNROLL for (uint i = 0; i < K_LOADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        if (has_vector(KEYS * 2 * Q, e))
            next_k[i] =
                load_u128(from + uint64_t(min(e / (2 * Q), uint(last))) * key_step + 16 * (e % (2 * Q)));
    }
}
void store_keys()
{
    UNROLL for (uint i = 0; i < K_LOADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        if (has_vector(KEYS * 2 * Q, e)) space[e / (2 * Q) * K_ROW + e % (2 * Q)] = next_k[i];
    }
}
void fetch_values(int block, int part, int last)
{
    uint64_t from = values + int64_t(block) * value_block + uint64_t(uint(part) * KEYS) * value_step;
    UNROLL for (uint i = 0; i < V_LOADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        if (has_vector(KEYS * 2 * V, e))
            next_v[i] =
                load_u128(from + uint64_t(min(e / (2 * V), uint(last))) * value_step + 16 * (e % (2 * V)));
    }
}
void store_values()
{
    UNROLL for (uint i = 0; i < V_LOADS; i++) {
        uint e = gl_LocalInvocationID.x + i * THREADS;
        if (has_vector(KEYS * 2 * V, e)) space[K_AREA + e / (2 * V) * V_ROW + e % (2 * V)] = next_v[i];
    }
}

// --- scores ----------------------------------------------------------------------------------------------

// In the form GENERAL: multiplies the products of queries and keys from j0 on by `factor`, caps them and adds
// the bias. In the other form weights_of_scores multiplies by `factor`.
void cap_scores(inout float s[8], int j0)
{
    [[unroll]] for (uint e = 0; GENERAL && e < 8; e++) {
        const uint h = e * LANE_ROWS / 8;
        s[e] *= factor[h] * LN_2;
        if (softcap > 0.0) s[e] = soft_cap(s[e], softcap);
        s[e] = (s[e] - slope * float(abs(seen[h].position - j0 - int(LANE_COLUMN(e))))) * LOG2_E;
    }
}

// Sets the scores of keys that a row does not see to -infinity.
void mask_scores(inout float s[8], int j0)
{
    [[unroll]] for (uint e = 0; e < 8; e++) {
        const uint h = e * LANE_ROWS / 8;
        int j = j0 + int(LANE_COLUMN(e));
        if (j < seen[h].from || j >= seen[h].to) s[e] = LOWEST;
    }
}

// Turns scores into weights, in 16 bits, two a word; returns the factors by which earlier sums shrink.
void weights_of_scores(inout float s[N][8], out uvec4 weights[N], out float shrink[LANE_ROWS])
{
    float base[LANE_ROWS];
    [[unroll]] for (uint h = 0; h < LANE_ROWS; h++) {
        float most = LOWEST;
        [[unroll]] for (uint n = 0; n < N; n++)
            [[unroll]] for (uint e = 0; e < 8 / LANE_ROWS; e++) most = max(most, s[n][8 / LANE_ROWS * h + e]);
        most = max(top[h], (GENERAL ? 1.0 : factor[h]) * over_row(most, false));
        shrink[h] = top[h] == most ? 1.0 : exp2(top[h] - most);
        base[h] = most == LOWEST ? 0.0 : most;
        top[h] = most;
        sum[h] *= shrink[h];
    }
    [[unroll]] for (uint n = 0; n < N; n++)
        [[unroll]] for (uint c = 0; c < 4; c++) {
            const uint h = c * LANE_ROWS / 4;
            float f = GENERAL ? 1.0 : factor[h];
            uint two = pack2(exp2(s[n][2 * c] * f - base[h]), exp2(s[n][2 * c + 1] * f - base[h]));
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
    load_queries(q, h, t0 + int(16 * team));
    slope = GENERAL && param_f(5) > 0.0 ? alibi_slope(param_f(5), heads, h) : 0.0;
    softcap = GENERAL ? param_f(4) : 0.0;
    bool mine[LANE_ROWS];
    [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
        factor[i] *= param_f(0) * LOG2_E;
        top[i] = LOWEST, sum[i] = 0.0, mine[i] = false;
    }
    MatrixC sums[V];
    UNROLL for (uint i = 0; i < V; i++) matrix_zero(sums[i]);
    [[dont_unroll]] for (int seq = 0; seq < args.src[4].ne[3]; seq++) {
        [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
            seen[i] = seen_of(seq, t0 + int(16 * team + LANE_ROW(i)), t0, int(ROWS));
            mine[i] = mine[i] || seen[i].inside;
        }
        if (seen[0].none) continue;
        find_cache(seq, kv_head);
        int end = seen[0].end, tile = seen[0].begin / int(KEYS), j0 = tile * int(KEYS),
            last_index = (end - 1) / int(KEYS) / tiles_of_block;
        int index = tile / tiles_of_block, part = tile % tiles_of_block, next_part = part,
            block = block_of(index);
        step_tile(index, next_part, last_index);
        int next_block = block_of(index);
        barrier();
        fetch_keys(block, part, end - 1 - j0);
        store_keys();
        barrier();
        [[dont_unroll]] for (; j0 < end; j0 += int(KEYS)) {
            fetch_values(block, part, end - 1 - j0);
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
            block = next_block, part = next_part;
            fetch_keys(block, part, max(end - 1 - j0 - int(KEYS), 0));
            float s[N][8], shrink[LANE_ROWS];
            uvec4 weights[N];
            bool all = true;
            [[unroll]] for (uint i = 0; i < LANE_ROWS; i++)
                all = all && seen[i].from <= j0 && j0 + int(KEYS) <= seen[i].to;
            UNROLL for (uint n = 0; n < N; n++) {
                matrix_elements(s[n], scores[n]);
                cap_scores(s[n], j0 + 16 * int(n));
            }
            if (!all)
                UNROLL for (uint n = 0; n < N; n++) mask_scores(s[n], j0 + 16 * int(n));
            weights_of_scores(s, weights, shrink);
            MatrixC shrinks;
            matrix_of_rows(shrinks, shrink);
            UNROLL for (uint i = 0; i < V; i++) matrix_scale(sums[i], shrinks);
            barrier(); // values are there, and keys were read
            step_tile(index, next_part, last_index);
            next_block = block_of(index); // of the next tile but one
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
            barrier(); // keys are there, and values were read
        }
    }
    float last[LANE_ROWS];
    [[unroll]] for (uint i = 0; i < LANE_ROWS; i++) {
        float all = over_row(sum[i], true), before = top[i] * LN_2, now = before;
        add_sink(sink_of(h), now, all);
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
