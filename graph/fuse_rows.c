// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Patterns of norms and rotations, up to the cache.
#include "graph/fuse.h"

#include <string.h>

// a + b, then rms_norm of the sum.
const char *tn_fuse_match_add_rms_norm(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    TN_UNUSED(m);
    tn_node *add = n->src[0]->producer;
    if (!add || !tn_fuse_is_add(add)) return "";
    if (!tn_view_same_shape(&add->src[0]->view, &add->src[1]->view)) return "the sum broadcasts";
    *f = (tn_fusion){.op = TN_OP_add_rms_norm, .n_src = 1 + n->n_src, .n_dst = 2, .n_replaced = 2};
    f->src[TN_SRC_add_rms_norm_a] = add->src[TN_SRC_binary_a];
    f->src[TN_SRC_add_rms_norm_b] = add->src[TN_SRC_binary_b];
    if (n->n_src > 1) f->src[TN_SRC_add_rms_norm_w] = n->src[TN_SRC_rms_norm_w];
    f->params.add_norm.eps = ((const tn_rms_norm_params *)n->params)->eps;
    f->dst[TN_DST_add_rms_norm_sum] = add->dst[0];
    f->dst[TN_DST_add_rms_norm_normed] = n->dst[0];
    f->replaced[0] = add;
    f->replaced[1] = n;
    return NULL;
}

// rms_norm per head, then rope.
const char *tn_fuse_match_norm_rope(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    tn_node *norm = tn_fuse_made_by(n->src[0], TN_OP_rms_norm);
    if (!norm) return "";
    if (norm->n_src < 2) return "the norm has no weight";
    if (!tn_fuse_private(m, norm->dst[0])) return "the norm has other uses";
    *f = (tn_fusion){.op = TN_OP_norm_rope, .n_src = n->n_src + 1, .n_dst = 1, .n_replaced = 2};
    f->src[TN_SRC_norm_rope_x] = norm->src[TN_SRC_rms_norm_x];
    f->src[TN_SRC_norm_rope_w] = norm->src[TN_SRC_rms_norm_w];
    f->src[TN_SRC_norm_rope_pos] = n->src[TN_SRC_rope_pos];
    if (n->n_src > TN_SRC_rope_factors) f->src[TN_SRC_norm_rope_factors] = n->src[TN_SRC_rope_factors];
    f->params.norm_rope = (tn_norm_rope_params){((const tn_rms_norm_params *)norm->params)->eps,
                                                *(const tn_rope_params *)n->params};
    f->dst[0] = n->dst[0];
    f->replaced[0] = norm;
    f->replaced[1] = n;
    return NULL;
}

// The rotation of q (which 0) or k (which 1): rope or norm_rope whose result only the given user reads.
static const char *rotation_of(const tn_fuse_matcher *m, tn_tensor *x, int32_t which, tn_fusion *f,
                               const tn_rope_params **rope)
{
    tn_node *n = tn_fuse_made_by(x, TN_OP_norm_rope);
    tn_rope_cache_params *p = &f->params.rope_cache;
    if (n) {
        const tn_norm_rope_params *np = n->params;
        *rope = &np->rope;
        if (p->has_norm[0] && p->eps != np->eps) return "the norms differ";
        p->has_norm[which] = 1;
        p->eps = np->eps;
        f->src[which ? TN_SRC_rope_cache_norm_k : TN_SRC_rope_cache_norm_q] = n->src[TN_SRC_norm_rope_w];
    } else {
        n = tn_fuse_made_by(x, TN_OP_rope);
        if (!n) return "q or k is not rotated";
        *rope = n->params;
    }
    if (!tn_fuse_private(m, x)) return "rotated values have other uses";
    bool normed = n->op == TN_OP_norm_rope;
    int32_t at_factors = normed ? TN_SRC_norm_rope_factors : TN_SRC_rope_factors;
    tn_tensor *pos = n->src[normed ? TN_SRC_norm_rope_pos : TN_SRC_rope_pos];
    tn_tensor *factors = n->n_src > at_factors ? n->src[at_factors] : NULL;
    tn_tensor **f_pos = &f->src[TN_SRC_rope_cache_pos], **f_factors = &f->src[TN_SRC_rope_cache_factors];
    if (which == 1 && (*f_pos != pos || *f_factors != factors)) return "q and k are rotated differently";
    *f_pos = pos;
    *f_factors = factors;
    f->src[which ? TN_SRC_rope_cache_k : TN_SRC_rope_cache_q] = n->src[0];
    f->replaced[f->n_replaced++] = n;
    return NULL;
}

// The nodes before an attention that can be fused: rotations of q and k, cache writes of k and v.
const char *tn_fuse_match_rope_cache(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f)
{
    tn_node *wk = tn_fuse_made_by(n->src[TN_SRC_attention_k], TN_OP_cache_write);
    tn_node *wv = tn_fuse_made_by(n->src[TN_SRC_attention_v], TN_OP_cache_write);
    if (!wk || !wv || wk == wv) return "";
    const tn_rope_params *rq, *rk;
    *f = (tn_fusion){.op = TN_OP_rope_cache, .n_dst = 3};
    const char *reason = rotation_of(m, n->src[TN_SRC_attention_q], 0, f, &rq);
    if (!reason) reason = rotation_of(m, wk->src[TN_SRC_cache_write_x], 1, f, &rk);
    if (reason) return reason;
    if (memcmp(rq, rk, sizeof *rq) != 0) return "q and k are rotated differently";
    // The node that writes the cache must run on the device that reads it.
    if (!tn_fuse_device_accepts(m->s, n)) return "the device has no kernel for the attention";
    if (wk->src[TN_SRC_cache_write_slots] != wv->src[TN_SRC_cache_write_slots])
        return "k and v go to different slots";
    f->params.rope_cache.rope = *rq;
    f->src[TN_SRC_rope_cache_cache_k] = wk->src[TN_SRC_cache_write_cache];
    f->src[TN_SRC_rope_cache_cache_v] = wv->src[TN_SRC_cache_write_cache];
    f->src[TN_SRC_rope_cache_v] = wv->src[TN_SRC_cache_write_x];
    f->src[TN_SRC_rope_cache_slots] = wk->src[TN_SRC_cache_write_slots];
    f->n_src = TN_SRC_rope_cache_COUNT; // less those at the end that are absent
    while (!f->src[f->n_src - 1]) f->n_src--;
    f->dst[TN_DST_rope_cache_cache_k] = wk->dst[0];
    f->dst[TN_DST_rope_cache_cache_v] = wv->dst[0];
    f->dst[TN_DST_rope_cache_q] = n->src[TN_SRC_attention_q];
    f->replaced[f->n_replaced++] = wk;
    f->replaced[f->n_replaced++] = wv;
    return NULL;
}
