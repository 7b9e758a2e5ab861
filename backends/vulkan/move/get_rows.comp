// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// get_rows: y[r] = scale * table[id(r)] for tables of every type, and copy of weights of block types to
// numbers; args.n[N_GET_ROWS_OP] tells which, so that one pipeline serves both. One invocation for each 16
// elements. An id outside of the table gives zeros.
//
// Bytes: those of the row as stored, and 4 (or 2) written for each element. Limit: memory.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "backends/vulkan/shaders/common.glsl"
#include "backends/vulkan/shaders/dequant.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const int TYPE = TYPE_F32;

// 16 elements of a result of any of the float types.
void store16(uint64_t row, uint k, const float v[16])
{
    int type = args.dst[0].dtype;
    [[unroll]] for (int i = 0; i < 16; i++) {
        if (type == TYPE_F32) store_f32(row + 4 * int64_t(k + i), v[i]);
        else store_u16(row + 2 * int64_t(k + i), type == TYPE_F16 ? to_half(v[i]) : to_bf16(v[i]));
    }
}

void main()
{
    View y = args.dst[0], ids = args.src[1];
    uint n = uint(y.ne[3]), runs = (n + 15) / 16, e = group_index() * 64 + gl_LocalInvocationID.x;
    if (e >= n_rows(y) * runs) return;
    uint r = e / runs, k = e % runs * 16, per = uint(ids.ne[3]);
    bool rows = args.n[N_GET_ROWS_OP] == OP_get_rows, inside = true;
    int id = int(r);
    if (rows) {
        id = load_i32(row_of(ids, r / per) + int64_t(r % per) * ids.nb[3]);
        inside = id >= 0 && id < args.src[0].ne[2];
    }
    uint64_t to = row_of(y, r);
    float scale = rows ? scale_or_1(param_f(0)) : 1.0, v[16];
    if (!inside) {
        for (uint i = 0; i < min(16u, n - k); i++) store_f32(to + 4 * int64_t(k + i), 0.0);
    } else if (is_plain(TYPE)) {
        uint64_t row = args.src[0].data + int64_t(id) * args.src[0].nb[2];
        for (uint i = 0; i < min(16u, n - k); i++)
            store_f32(to + 4 * int64_t(k + i), load_plain(TYPE, row, k + i) * scale);
    } else {
        dequant16(TYPE, args.weight[0], id, k, v);
        [[unroll]] for (int i = 0; i < 16; i++) v[i] *= scale;
        store16(to, k, v);
    }
}
