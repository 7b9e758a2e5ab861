// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Products of few rows, or with an expert for each row, of quantised weights and activations that round.comp left as bytes (units.glsl),
// or of plain weights and activations as they are (PLAIN, units_plain.glsl). A team of SPLIT subgroups takes COLUMNS columns of up to
// ROWS rows (a gated pair: half as many columns of both weights) at a time, in TURNS turns; lanes take units of 16 bytes. A lane has
// DEPTH units of each column: as soon as one is used, the one that takes its place is asked for, of the next turn too, so that memory
// never waits for arithmetic. The factor of a norm comes last: y = (w (g x)) / rms(x). Bytes: the weights once per ROWS rows. At args.n
// see product.glsl. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "backends/vulkan/shaders/common.glsl"

layout(constant_id = 0) const int TYPE = TYPE_Q8_0;
layout(constant_id = 1) const int FORM = 0; // 1 a gated pair, 2 a workgroup has 32 columns, which it leaves as bytes too
layout(constant_id = 2) const uint ROWS = 1;
layout(constant_id = 3) const int ALIGNED = 0; // plain: rows of x and of weights are whole runs of 16 elements and start aligned to 16 bytes
layout(local_size_x_id = 4) in;
layout(constant_id = 5) const uint COLUMNS = 1;
layout(constant_id = 6) const uint SPLIT = 1;
layout(constant_id = 7) const uint DEPTH = 1;
layout(constant_id = 8) const uint TURNS = 1; // 1 with SPLIT > 1
const bool PAIRED = (FORM & 1) != 0, LEAVES = (FORM & 2) != 0;

#ifdef PLAIN
#include "backends/vulkan/shaders/units_plain.glsl"
#else
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/shaders/units.glsl"
#endif

#define LEFT_GROUPS 8
#include "backends/vulkan/shaders/rounding.glsl"

const uint MAX_ROWS = 8, MAX_COLUMNS = 4, MAX_DEPTH = 4, MAX_SUBGROUPS = 16;
shared float parts[MAX_SUBGROUPS][MAX_ROWS * MAX_COLUMNS + MAX_ROWS]; // at the end sums of squares

#ifndef PLAIN
// Of a row of rounded activations, which has those of its groups.
float sum_squares(uint64_t row, uint k)
{
    float sum = 0.0;
    for (uint i = gl_SubgroupInvocationID; i < k / 32; i += gl_SubgroupSize) sum += load_f32(row + k + k / 4 + 4 * i);
    return subgroupAdd(sum);
}
#endif

// Row r of x.
uint64_t row_of_x(uint r)
{
#ifdef PLAIN
    return row_of(args.src[0], r);
#else
    return args.scratch + int64_t(r) * rounded_size(uint(args.src[0].ne[3]));
#endif
}

// The first row and column of the workgroup.
uint row_first, column_first;
ivec2 left_at(uint i)
{
    bool whole = row_first + i < uint(args.n[1]) && column_first + 32 <= uint(args.n[0]);
    return ivec2(whole ? int(row_first + i) : -1, int(column_first / 32));
}

// The rows of x for those of the result from r0 on, and the first row of weights; false: there is no such expert.
bool find_rows(uint r0, uint rows, uint columns, out uint64_t x[MAX_ROWS], out int64_t expert)
{
    expert = 0;
    if (args.n[7] < 0) {
        [[unroll]] for (uint r = 0; r < ROWS; r++) x[r] = row_of_x(min(r0 + r, rows - 1));
        return true;
    }
    View ids = args.src[args.n[7]]; // one row: an expert each
    uint used = uint(ids.ne[3]), row = min(r0, rows - 1), token = row / used, u = row % used, beside = uint(args.src[0].ne[2]);
    int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
    x[0] = row_of_x(token * beside + (beside > 1 ? u : 0));
    if (e < 0 || e >= args.n[8]) return false;
    expert = int64_t(e) * columns;
    return true;
}

// Where rows of weights are, for the columns from `first` on.
void find_columns(const uint64_t planes[2][MAX_PLANES], const int64_t sizes[2][MAX_PLANES], int64_t expert, uint first, uint columns, out uint64_t at[MAX_COLUMNS][MAX_PLANES])
{
    [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
        uint p = PAIRED ? c & 1u : 0;
        int64_t row = expert + min(first + (PAIRED ? c / 2 : c), columns - 1);
        [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) at[c][i] = planes[p][i] + row * sizes[p][i];
    }
}

// What follows a product, of the row that the lane finishes: one result a turn.
struct Finish {
    uint64_t to, residual, bias;
    bool has_residual, has_bias;
    int act;
    Glu gate;
};

Finish find_finish(uint r)
{
    Finish f;
    int bias = args.n[2], residual = args.n[3];
    f.to = f.residual = row_of(args.dst[args.n[5]], r);
    f.has_residual = residual >= 0;
    if (f.has_residual) f.residual = row_of(args.src[residual], r);
    f.has_bias = bias >= 0;
    f.bias = args.src[max(bias, 0)].data;
    f.act = args.n[4];
    if (PAIRED) f.gate = glu_params(args.n[6]);
    return f;
}

float store_result(Finish f, uint j, float value, float up, float more)
{
    if (PAIRED) value = glu_of(f.gate, value, up);
    if (f.has_bias) value += load_f32(f.bias + 4 * int64_t(j));
    if (f.act >= 0) value = unary(f.act, value, 0.0, 0.0);
    value += more;
    store_f32(f.to + 4 * int64_t(j), value);
    return value;
}

float norm_factor(float squares, uint k) { return args.n[9] >= 0 ? inversesqrt(squares / float(k) + param_f(args.n[10])) : 1.0; }

// Sums of all subgroups of a team, for row r and column c.
void add_parts(uint first, uint r, uint c, uint k, out float value, out float up)
{
    float all = 0.0;
    value = up = 0.0;
    for (uint s = 0; s < SPLIT; s++) {
        all += parts[first + s][MAX_ROWS * MAX_COLUMNS + r];
        value += parts[first + s][r * COLUMNS + c];
        if (PAIRED) up += parts[first + s][r * COLUMNS + c + 1];
    }
    float factor = norm_factor(all, k);
    value *= factor;
    up *= factor;
}

void main()
{
    float touched = touch_record(gl_SubgroupInvocationID);
    const uint WIDE = PAIRED ? COLUMNS / 2 : COLUMNS, lane = gl_SubgroupInvocationID, stride = gl_SubgroupSize * SPLIT;
    uint columns = uint(args.n[0]), rows = uint(args.n[1]), k = uint(args.src[0].ne[3]), n_units = (k + elems_of(TYPE) - 1) / elems_of(TYPE);
    uint teams = gl_NumSubgroups / SPLIT, each = teams * WIDE * TURNS, groups = (columns + each - 1) / each, g = group_index();
    uint slice = gl_SubgroupID % SPLIT, r0 = g / groups * ROWS;
    row_first = r0;
    column_first = g % groups * each;
    if (r0 >= rows) return; // whole workgroups
    int64_t expert;
    uint64_t x[MAX_ROWS], planes[2][MAX_PLANES], at[MAX_COLUMNS][MAX_PLANES];
    int64_t sizes[2][MAX_PLANES];
    bool some = find_rows(r0, rows, columns, x, expert), normed = args.n[9] >= 0;
    [[unroll]] for (uint p = 0; p < (PAIRED ? 2 : 1); p++)
        [[unroll]] for (uint i = 0; i < MAX_PLANES; i++) planes[p][i] = args.weight[p].plane[i], sizes[p][i] = args.weight[p].row_size[i];
    // A turn takes `pieces` of DEPTH units a lane.
    uint first_unit = slice * gl_SubgroupSize + lane, pieces = (n_units + DEPTH * stride - 1) / (DEPTH * stride), column = column_first + gl_SubgroupID / SPLIT * WIDE;
    Unit units[MAX_DEPTH][MAX_COLUMNS];
    find_columns(planes, sizes, expert, column, columns, at);
    [[unroll]] for (uint d = 0; d < DEPTH; d++)
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) units[d][c] = load_unit(TYPE, at[c], min(first_unit + d * stride, n_units - 1), k);
    uint r_mine = r0 + lane / WIDE;
    bool takes = lane < ROWS * WIDE && r_mine < rows && slice == 0;
    Finish finish = find_finish(min(r_mine, rows - 1));
    float more = 0.0, acc[MAX_COLUMNS][MAX_ROWS], squares[MAX_ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        squares[r] = 0.0;
#ifndef PLAIN
        if (normed) squares[r] = sum_squares(x[r], k) / float(SPLIT);
#endif
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) acc[c][r] = 0.0;
    }
    uint piece = 0;
    [[dont_unroll]] for (uint left = TURNS * pieces; left > 0; left--) {
        uint j = column + lane % WIDE, u0 = first_unit + piece * DEPTH * stride;
        bool last = ++piece == pieces, finishes = takes && j < columns;
        if (u0 == first_unit && finish.has_residual && finishes) more = load_f32(finish.residual + 4 * int64_t(j));
        // Behind the end all lanes ask for the same unit once more.
        uint next = left == 1 ? n_units : last ? first_unit : u0 + DEPTH * stride;
        if (last) column += teams * WIDE;
        if (TURNS > 1 && last) find_columns(planes, sizes, expert, column, columns, at);
        [[unroll]] for (uint d = 0; d < DEPTH; d++) {
            uint u = min(u0 + d * stride, n_units - 1);
            bool counts = u0 + d * stride < n_units && some;
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                Acts a = load_acts(TYPE, x[r], k, u, counts, squares[r]);
                [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                    float dot = dot_unit(TYPE, units[d][c], a, u);
                    acc[c][r] += counts ? dot : 0.0;
                }
            }
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) units[d][c] = load_unit(TYPE, at[c], min(next + d * stride, n_units - 1), k);
        }
        if (!last) continue;
        float value = 0.0, up = 0.0;
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            float all = squares[r];
#ifdef PLAIN
            if (normed) all = subgroupAdd(all);
            squares[r] = 0.0;
#endif
            float factor = SPLIT > 1 ? 1.0 : norm_factor(all, k);
            if (SPLIT > 1 && subgroupElect()) parts[gl_SubgroupID][MAX_ROWS * MAX_COLUMNS + r] = all;
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
                float v = subgroupAdd(acc[c][r]) * factor;
                acc[c][r] = 0.0;
                if (SPLIT > 1 && subgroupElect()) parts[gl_SubgroupID][r * COLUMNS + c] = v;
                if (SPLIT > 1 || lane != r * WIDE + (PAIRED ? c / 2 : c)) continue;
                if (PAIRED && (c & 1u) != 0) up = v;
                else value = v;
            }
        }
        if (SPLIT > 1) {
            barrier();
            if (finishes) add_parts(gl_SubgroupID, lane / WIDE, lane % WIDE * (PAIRED ? 2 : 1), k, value, up);
        }
        if (finishes) value = store_result(finish, j, value, up, more + touched);
        if (LEAVES && finishes) left_values[(r_mine - r0) * 32 + j - column_first] = value;
        piece = 0;
    }
    if (!LEAVES) return;
    barrier();
    leave(ROWS, columns);
}
