// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// GEMV for weights of every type: y[r, j] = sum over k of x[r, k] w[j, k], for up to eight rows r, or for
// one row with its own expert. It is the kernel behind all other GEMV kernels.
//
// Operands: x [rows, n] F32; w [columns, n], block types in planes (backends/planes.def); with experts w
// [experts, columns, n] and ids I32. What follows the sums: product.glsl.
//
// Work: a team of invocations multiplies COLUMNS columns by up to ROWS rows. Each invocation has every
// TEAM-th run of 16 elements of the common dimension, so that x is read once for all columns and weights
// come in loads of 16 bytes. A team is a subgroup of the workgroup (SUBGROUPS), or the whole workgroup,
// which then sums through shared memory and works on every device.
//
// A norm of x costs no pass of its own: y = (w (g x)) / rms(x), so the sum of squares is added up beside
// the products, and divides their sums at the end.
//
// Bytes: the weights once for every ROWS rows, x once for every COLUMNS columns. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_arithmetic : require
#endif
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"
#include "backends/vulkan/product/product.glsl"

layout(constant_id = 0) const int TYPE = TYPE_F32;
layout(constant_id = 1) const int TYPE_UP = TYPE_F32; // with a GLU that of up; mostly the same
layout(constant_id = 2) const uint ROWS = 1;
// Rows of x and of weights of number types are whole runs and start at multiples of 16 bytes.
layout(constant_id = 3) const int ALIGNED = 0;
layout(constant_id = 5) const uint COLUMNS = 1;
#ifdef SUBGROUPS
layout(local_size_x_id = 4) in;
#define TEAM  gl_SubgroupSize
#define TEAMS gl_NumSubgroups
#define LANE  gl_SubgroupInvocationID
#define MINE  gl_SubgroupID
float team_sum(float v) { return subgroupAdd(v); }
#else
const uint THREADS = 32;
layout(local_size_x = 32) in;
#include "backends/vulkan/shaders/reduce.glsl"
#define TEAM  THREADS
#define TEAMS 1
#define LANE  gl_LocalInvocationID.x
#define MINE  0
float team_sum(float v) { return reduce_sum(v); }
#endif

const uint MAX_ROWS = 4, MAX_COLUMNS = 4;

void weights16(int type, Weight w, int64_t row, uint k, uint n, out float v[16])
{
    if (!is_plain(type)) {
        dequant16(type, w, row, k, v);
        return;
    }
    uint64_t at = w.plane[0] + row * w.row_size[0];
    if (ALIGNED != 0) plain16(type, at, k, v);
    else for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_plain(type, at, k + i) : 0.0;
}

void x16(uint64_t x, uint k, uint n, out float v[16])
{
    if (ALIGNED != 0) plain16(TYPE_F32, x, k, v);
    else for (uint i = 0; i < 16; i++) v[i] = k + i < n ? load_f32(x + 4 * int64_t(k + i)) : 0.0;
}

float dot16(const float a[16], const float b[16])
{
    float sum = 0.0;
    [[unroll]] for (uint i = 0; i < 16; i++) sum = fma(a[i], b[i], sum);
    return sum;
}

// The result for row `mine` / COLUMNS and column `mine` % COLUMNS of the team.
float product(uint p, int64_t at, uint j0, const uint64_t x[MAX_ROWS], uint n, bool none, uint mine)
{
    Weight w = args.weight[p];
    bool normed = args.n[N_PRODUCT_NORM] >= 0;
    uint columns = uint(args.n[N_PRODUCT_COLUMNS]);
    float a[MAX_COLUMNS][MAX_ROWS], squares[MAX_ROWS], result = 0.0;
    [[unroll]] for (uint r = 0; r < MAX_ROWS; r++) {
        squares[r] = 0.0;
        [[unroll]] for (uint c = 0; c < MAX_COLUMNS; c++) a[c][r] = 0.0;
    }
    for (uint k = 16 * LANE; k < n && !none; k += 16 * TEAM) {
        float v[MAX_COLUMNS][16], xs[16], scale[16];
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            int64_t row = at + min(j0 + c, columns - 1);
            if (TYPE_UP == TYPE || p == 0) weights16(TYPE, w, row, k, n, v[c]);
            else weights16(TYPE_UP, w, row, k, n, v[c]);
        }
        if (normed) x16(args.src[args.n[N_PRODUCT_NORM]].data, k, n, scale);
        [[unroll]] for (uint r = 0; r < ROWS; r++) {
            x16(x[r], k, n, xs);
            if (normed) {
                squares[r] += dot16(xs, xs);
                [[unroll]] for (uint i = 0; i < 16; i++) xs[i] *= scale[i];
            }
            [[unroll]] for (uint c = 0; c < COLUMNS; c++) a[c][r] += dot16(v[c], xs);
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        float factor =
            normed ? inversesqrt(team_sum(squares[r]) / float(n) + param_f(args.n[N_PRODUCT_EPS])) : 1.0;
        [[unroll]] for (uint c = 0; c < COLUMNS; c++) {
            float v = team_sum(a[c][r]) * factor;
            if (mine == r * COLUMNS + c) result = v;
        }
    }
    return result;
}

void main()
{
    uint columns = uint(args.n[N_PRODUCT_COLUMNS]), rows = uint(args.n[N_PRODUCT_ROWS]),
         n = uint(args.src[0].ne[3]);
    uint across = (columns + COLUMNS - 1) / COLUMNS, groups = (across + TEAMS - 1) / TEAMS, g = group_index();
    uint j0 = (g % groups * TEAMS + MINE) * COLUMNS, r0 = g / groups * ROWS;
    if (r0 >= rows || j0 >= columns) return; // whole teams leave, so no barrier waits for them
    int64_t at = 0;
    uint64_t x[MAX_ROWS];
    bool none = false;
    if (args.n[N_PRODUCT_IDS] >= 0) { // ROWS is 1: each row has its own expert
        View ids = args.src[args.n[N_PRODUCT_IDS]];
        uint used = uint(ids.ne[3]), token = r0 / used, u = r0 % used;
        int e = load_i32(ids.data + int64_t(token) * ids.nb[2] + int64_t(u) * ids.nb[3]);
        none = e < 0 || e >= args.n[N_PRODUCT_EXPERTS];
        at = int64_t(none ? 0 : e) * columns;
        x[0] = args.src[0].data + int64_t(token) * args.src[0].nb[1] +
               (args.src[0].ne[2] > 1 ? int64_t(u) * args.src[0].nb[2] : int64_t(0));
    } else
        [[unroll]] for (uint r = 0; r < ROWS; r++) x[r] = row_of(args.src[0], min(r0 + r, rows - 1));
    // Each of the first invocations of the team finishes a result, so there is one copy of the code that
    // follows the sums. Gate and up of a GLU go through the same loop one after the other.
    uint mine = LANE, products = args.n[N_PRODUCT_GLU] >= 0 ? 2 : 1;
    float results[2] = float[](0.0, 0.0);
    [[dont_unroll]] for (uint p = 0; p < products; p++) {
        float v = product(p, at, j0, x, n, none, mine);
        if (p == 0) results[0] = v;
        else results[1] = v;
    }
    uint r = r0 + mine / COLUMNS, j = j0 + mine % COLUMNS;
    if (mine < ROWS * COLUMNS && r < rows && j < columns)
        finish(r, j, results[0], results[1], residual_of(r, j));
}
