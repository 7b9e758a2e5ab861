// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// cache_write: puts one row per token and KV head into a paged store; the result is the store itself.
// cache [n_blocks, KV, B, D] of F32 F16 BF16 Q8_0 Q4_0, x [T, KV, D], slots I32 [T]: block * B + index in the
// block, negative = this token is not stored. The rows of the cache may be longer than those of x (whole
// quantisation blocks): the rest is filled with zeros.
#include "ops/operands.h"
#include "ops/quant.h"

tn_status tn_infer_cache_write(tn_context *ctx, tn_step *step)
{
    tn_cache_write_views in = tn_cache_write_views_get(step);
    const tn_view *cache = in.cache, *x = in.x, *slots = in.slots;
    tn_status status = tn_need_float_rows(ctx, step, TN_SRC_cache_write_x);
    if (status == TN_OK) status = tn_need_dtype(ctx, step, TN_SRC_cache_write_slots, TN_TYPE_I32);
    if (status != TN_OK) return status;
    if (!tn_quant_info_get(cache->dtype)->from_f32)
        return tn_fail(ctx, TN_ERR_TYPE, "cache_write: a cache of %s cannot be written",
                       tn_dtype_name(cache->dtype));
    bool ok = cache->n_dims == 4 && x->n_dims == 3 && x->ne[2] == cache->ne[1] && x->ne[3] <= cache->ne[3] &&
              tn_view_n_rows(slots) == 1 && slots->ne[3] == x->ne[1] && tn_view_contiguous(cache);
    if (!ok) {
        char a[96], b[96];
        return tn_fail(ctx, TN_ERR_SHAPE, "cache_write: cache %s, x %s", tn_view_text(cache, a, sizeof a),
                       tn_view_text(x, b, sizeof b));
    }
    step->dst[0] = *cache;
    return TN_OK;
}

static void write_row(const tn_view *cache, const tn_view *x, int64_t token, int64_t head, int64_t slot)
{
    int64_t block = slot / cache->ne[2], index = slot % cache->ne[2], n = tn_dtype_block_elems(cache->dtype);
    char *row = (char *)cache->data + block * cache->nb[0] + head * cache->nb[1] + index * cache->nb[2];
    for (int64_t j = 0; j < cache->ne[3]; j += n) { // one quantisation block at a time
        float buf[256];
        for (int64_t i = 0; i < n; i++)
            buf[i] = j + i < x->ne[3] ? (float)tn_view_get(x, 0, token, head, j + i) : 0.0f;
        tn_quant_info_get(cache->dtype)->from_f32(buf, row + tn_dtype_row_size(cache->dtype, j), n, NULL);
    }
}

void tn_ref_cache_write(const tn_step *step)
{
    tn_cache_write_views in = tn_cache_write_views_get(step);
    const tn_view *cache = in.cache, *x = in.x;
    for (int64_t t = 0; t < x->ne[1]; t++) {
        int64_t slot = (int64_t)tn_view_get_row(in.slots, 0, t);
        if (slot < 0 || slot >= cache->ne[0] * cache->ne[2]) continue;
        for (int64_t h = 0; h < x->ne[2]; h++) write_row(cache, x, t, h, slot);
    }
}
