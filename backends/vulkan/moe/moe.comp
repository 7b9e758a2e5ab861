// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Routing of tokens to experts, and the sums of what experts gave.
//
// top_k: one workgroup for each row of scores. Of up to MAX_RANKED scores each is compared with all others;
// of more, k rounds find the best one that comes after the last one chosen. Groups of experts are ranked by
// the sum of their two best scores.
// moe_weights: one workgroup for each token makes weights of the scores of the chosen experts. moe_route:
// both in one dispatch. moe_sum, moe_combine: one invocation for each element of y [T, n] = sum over slots
// of weight x [T, slots, n], or for four of them (ALIGNED); moe_combine adds one or two further terms, and
// with STAGES, a module of its own, also writes the result as int8 activations.
//
// Limit: latency for routing; memory for the sums, 4 (slots + 1) bytes for each element.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef STAGES
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "backends/vulkan/shaders/common.glsl"

layout(local_size_x_id = 4) in;
const uint THREADS = gl_WorkGroupSize.x, MAX_THREADS = 256;
layout(constant_id = 0) const int OP = OP_top_k;
// Of sums: all rows are whole vectors of 4 and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
#include "backends/vulkan/shaders/reduce.glsl"
#ifdef STAGES
#define STAGED_FOURS
#include "backends/vulkan/shaders/quantise_int8.glsl"
#else
uint place_in_workgroup() { return gl_LocalInvocationID.x; }
#endif

#define LOWEST uintBitsToFloat(0xff800000u) // -inf
const uint SLOTS = 8, NONE = 0xffffffffu, MAX_GROUPS = 256, MAX_CHOSEN = 256, MAX_RANKED = 512;
shared uint best_space[MAX_THREADS], rank_space[MAX_RANKED];
shared vec4 score_space[MAX_RANKED / 4];
shared float raw_space[MAX_RANKED], group_space[MAX_GROUPS];
shared uint chosen_space[MAX_CHOSEN]; // of moe_route

// By what experts are ranked: logits, sigmoids, or probabilities with the maximum and the sum of a softmax.
int choice = GATING_NONE;
float choice_top = 0.0, choice_sum = 1.0;

// Score j of a row; moe_route keeps rows of up to MAX_RANKED scores in shared memory.
float score(uint64_t row, uint j)
{
    return OP == OP_moe_route && args.src[0].ne[3] <= MAX_RANKED ? raw_space[j]
                                                                 : load_f32(row + 4 * int64_t(j));
}

float value(uint64_t row, uint j)
{
    float v = score(row, j);
    if (choice == GATING_SIGMOID) v = 1.0 / (1.0 + exp(-v));
    else if (choice == GATING_SOFTMAX) v = exp(v - choice_top) / choice_sum;
    if (has_src(1)) v += load_f32(args.src[1].data + 4 * int64_t(j));
    return isnan(v) ? LOWEST : v;
}

bool kept(uint j, uint size, uint groups, uint used)
{
    if (groups <= 1) return true;
    uint mine = j / size, better = 0;
    float s = group_space[mine];
    for (uint g = 0; g < groups; g++) better += uint(group_space[g] > s || (group_space[g] == s && g < mine));
    return better < used;
}

// Whether score v of expert i comes before that of expert j.
bool before(float v, uint i, float than, uint j) { return v > than || (v == than && i < j); }

// The k best scores by their ranks.
void rank_scores(uint64_t row, uint64_t y, uint n, uint k, uint t)
{
    uint fours = (n + 3) / 4, parts = max(THREADS / n, 1u), each = (fours + parts - 1) / parts;
    for (uint j = t; j < 4 * fours; j += THREADS) {
        score_space[j / 4][j % 4] = j < n ? value(row, j) : LOWEST;
        rank_space[j] = 0;
    }
    barrier();
    // Where there are more invocations than scores, several share one.
    for (uint at = t; at < n * parts; at += THREADS) {
        uint j = at % n, part = at / n, rank = 0;
        float v = score_space[j / 4][j % 4];
        for (uint i = part * each; i < min((part + 1) * each, fours); i++) {
            vec4 s = score_space[i];
            [[unroll]] for (uint c = 0; c < 4; c++) rank += uint(before(s[c], 4 * i + c, v, j));
        }
        atomicAdd(rank_space[j], rank);
    }
    barrier();
    for (uint j = t; j < n; j += THREADS) {
        uint rank = rank_space[j];
        if (rank >= k) continue;
        store_u32(y + 4 * rank, j);
        if (OP == OP_moe_route) chosen_space[rank] = j;
    }
    barrier();
}

void top_k(uint r, uint t)
{
    uint n = uint(args.src[0].ne[3]), k = uint(args.params[0]), groups = uint(args.params[1]),
         used = uint(args.params[2]);
    uint64_t row = row_of(args.src[0], r), y = row_of(args.dst[0], r);
    if (groups <= 1 && n <= MAX_RANKED && k <= n) {
        rank_scores(row, y, n, k, t);
        return;
    }
    uint size = groups > 1 ? n / groups : n;
    for (uint g = t; groups > 1 && g < groups; g += THREADS) {
        float a = LOWEST, b = LOWEST;
        for (uint j = g * size; j < (g + 1) * size; j++) {
            float v = value(row, j);
            if (v > a) b = a, a = v;
            else if (v > b) b = v;
        }
        group_space[g] = size > 1 ? a + b : a;
    }
    barrier();
    float last = uintBitsToFloat(0x7f800000u);
    uint last_j = 0;
    for (uint i = 0; i < k; i++) {
        float best = LOWEST;
        uint best_j = NONE;
        for (uint j = t; j < n; j += THREADS) {
            float v = value(row, j);
            bool after = i == 0 || v < last || (v == last && j > last_j);
            if (after && (best_j == NONE || v > best) && kept(j, size, groups, used)) best = v, best_j = j;
        }
        float all = reduce_max(best);
        best_space[t] = best_j != NONE && best == all ? best_j : NONE;
        for (uint m = THREADS / 2; m > 0; m >>= 1) {
            barrier();
            if (t < m) best_space[t] = min(best_space[t], best_space[t + m]);
        }
        barrier();
        last = all, last_j = best_space[0];
        if (t == 0) {
            store_u32(y + 4 * i, last_j);
            if (OP == OP_moe_route) chosen_space[i] = last_j;
        }
        barrier();
    }
}

float chosen(uint64_t x, uint r, uint u)
{
    View ids = args.src[1];
    if (OP == OP_moe_route) return score(x, chosen_space[u]);
    int e = load_i32(ids.data + int64_t(r) * ids.nb[2] + int64_t(u) * ids.nb[3]);
    return e >= 0 && e < args.src[0].ne[3] ? load_f32(x + 4 * int64_t(e)) : LOWEST;
}

float weight(float x, int gating, float top, float sum)
{
    if (gating == GATING_SIGMOID) return 1.0 / (1.0 + exp(-x));
    return gating == GATING_NONE ? x : exp(x - top) / sum;
}

void moe_weights(uint r, uint t, float zero)
{
    int at = OP == OP_moe_route ? 3 : 0, gating = args.params[at]; // of tn_moe_weights_params
    View to = args.dst[OP == OP_moe_route ? 1 : 0];
    uint used = uint(to.ne[3]), n = gating == GATING_SOFTMAX_SELECTED ? used : uint(args.src[0].ne[3]);
    uint64_t x = row_of(args.src[0], r), y = row_of(to, r);
    float top = LOWEST, sum = 0.0, total = 0.0;
    bool selected = gating == GATING_SOFTMAX_SELECTED;
    if (OP == OP_moe_route && gating == GATING_SOFTMAX && choice == GATING_SOFTMAX) {
        top = choice_top;
        sum = choice_sum;
    } else if (gating == GATING_SOFTMAX || selected) {
        for (uint j = t; j < n; j += THREADS) top = max(top, selected ? chosen(x, r, j) : score(x, j));
        top = reduce_max(top);
        for (uint j = t; j < n; j += THREADS) sum += exp((selected ? chosen(x, r, j) : score(x, j)) - top);
        sum = reduce_sum(sum);
    }
    for (uint u = t; u < used; u += THREADS) total += weight(chosen(x, r, u), gating, top, sum);
    total = reduce_sum(total);
    float scale = scale_or_1(param_f(at + 2));
    if (args.params[at + 1] != 0) scale /= max(total, 6.103515625e-5);
    for (uint u = t; u < used; u += THREADS)
        store_f32(y + 4 * u, weight(chosen(x, r, u), gating, top, sum) * scale + zero);
}

void moe_route(uint r, uint t)
{
    float touched = touch_record(t);
    uint n = uint(args.src[0].ne[3]);
    uint64_t x = row_of(args.src[0], r);
    for (uint j = t; n <= MAX_RANKED && j < n; j += THREADS) raw_space[j] = load_f32(x + 4 * j);
    choice = args.params[6];
    barrier();
    if (choice == GATING_SOFTMAX) {
        float top = LOWEST, sum = 0.0;
        for (uint j = t; j < n; j += THREADS) top = max(top, score(x, j));
        choice_top = reduce_max(top);
        for (uint j = t; j < n; j += THREADS) sum += exp(score(x, j) - choice_top);
        choice_sum = reduce_sum(sum);
    }
    top_k(r, t);
    moe_weights(r, t, touched);
}

// moe_combine: what is added to the sum; the first one may have a factor for each row.
float added(uint r, uint j)
{
    int n_added = args.params[0];
    float v = load_f32(row_of(args.src[2], r) + 4 * int64_t(j));
    if (args.params[1] != 0) v *= load_f32(row_of(args.src[2 + n_added], r));
    return n_added > 1 ? v + load_f32(row_of(args.src[3], r) + 4 * int64_t(j)) : v;
}

void moe_sum(uint e)
{
    View x = args.src[0], w = args.src[1], y = args.dst[0];
    uint n = uint(y.ne[3]), r = e / n, j = e % n;
    if (r >= uint(y.ne[2])) return;
    float sum = 0.0;
    for (uint u = 0; u < w.ne[3]; u++)
        sum += load_f32(row_of(w, r) + 4 * u) *
               load_f32(x.data + int64_t(r) * x.nb[1] + int64_t(u) * x.nb[2] + 4 * int64_t(j));
    store_f32(row_of(y, r) + 4 * int64_t(j), OP == OP_moe_combine ? sum + added(r, j) : sum);
}

// The same for elements 4 e .. 4 e + 3. The terms of eight slots are loaded at once.
void moe_sum_four(uint e)
{
    View x = args.src[0], w = args.src[1], y = args.dst[0];
    uint n = uint(y.ne[3]) / 4, r = e / n, slots = uint(w.ne[3]);
    uint64_t j = 16 * uint64_t(e % n);
    if (r >= uint(y.ne[2])) return;
    uint64_t weights = row_of(w, r), terms = x.data + int64_t(r) * x.nb[1] + j;
    int n_added = OP == OP_moe_combine ? args.params[0] : 0;
    vec4 first = vec4(0.0), second = vec4(0.0), sum = vec4(0.0);
    if (n_added > 0) first = PF128(row_of(args.src[2], r) + j).v;
    if (n_added > 1) second = PF128(row_of(args.src[3], r) + j).v;
    for (uint u0 = 0; u0 < slots; u0 += SLOTS) {
        vec4 term[SLOTS];
        float weight[SLOTS];
        [[unroll]] for (uint u = 0; u < SLOTS; u++) {
            uint slot = min(u0 + u, slots - 1);
            term[u] = PF128(terms + int64_t(slot) * x.nb[2]).v;
            weight[u] = load_f32(weights + 4 * slot);
        }
        [[unroll]] for (uint u = 0; u < SLOTS; u++)
            if (u0 + u < slots) sum += weight[u] * term[u];
    }
    if (OP == OP_moe_combine && args.params[1] != 0) first *= load_f32(row_of(args.src[2 + n_added], r));
    vec4 v = sum + (first + second);
    PF128(row_of(y, r) + j).v = v;
#ifdef STAGES
    stage_four(r, 4 * n, e % n, v);
#endif
}

void main()
{
    uint g = group_index(), t = place_in_workgroup();
    if (OP == OP_moe_sum || OP == OP_moe_combine) {
        if (ALIGNED != 0) moe_sum_four(g * THREADS + t);
        else moe_sum(g * THREADS + t);
        return;
    }
    if (g >= n_rows(args.dst[0])) return;
    if (OP == OP_top_k) top_k(g, t);
    else if (OP == OP_moe_route) moe_route(g, t);
    else moe_weights(g, t, 0.0);
}
