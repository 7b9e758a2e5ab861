// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What the patterns of the fusion pass share: fuse_product.c, fuse_rows.c and fuse_moe.c match them,
// pass_fuse.c has their table and applies what they propose.
#ifndef TN_GRAPH_FUSE_H
#define TN_GRAPH_FUSE_H

#include "graph/graph.h"
#include "ops/operands.h"
#include "ops/product.h"

// The fused node that a match proposes.
typedef struct tn_fusion {
    int32_t op;
    int32_t n_src;
    tn_tensor *src[TN_MAX_SRC];
    union {
        tn_linear_params linear;
        tn_matmul_multi_params multi;
        tn_matmul_glu_params glu;
        tn_matmul_id_glu_params id_glu;
        tn_add_rms_norm_params add_norm;
        tn_norm_rope_params norm_rope;
        tn_rope_cache_params rope_cache;
        tn_moe_route_params route;
        tn_moe_combine_params combine;
    } params;
    int32_t n_dst;
    tn_tensor *dst[TN_MAX_DST]; // existing values that the fused node takes over
    int32_t n_replaced;
    tn_node *replaced[8]; // nodes it replaces
} tn_fusion;

typedef struct tn_fuse_matcher {
    tn_pass_state *s;
    const int32_t *n_uses;    // per value
    const int32_t *positions; // per node id: index in the list, -1 when replaced
} tn_fuse_matcher;

// Fills f, or returns why the pattern does not fit here. "" means that it does not even begin to match, which
// is not worth reporting.
typedef const char *(*tn_fuse_match_fn)(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);

bool tn_fuse_device_accepts(const tn_pass_state *s, const tn_node *n);
// The node that made t as its first result, if it has that op; else NULL. t may be NULL.
tn_node *tn_fuse_made_by(const tn_tensor *t, int32_t op);
// Whether only one node reads the value, and it is no result of the graph: fusing may then remove it.
bool tn_fuse_private(const tn_fuse_matcher *m, const tn_tensor *t);
bool tn_fuse_is_add(const tn_node *n);
bool tn_fuse_is_weight(const tn_tensor *t);
// A weight [n].
bool tn_fuse_is_vector(const tn_tensor *t, int64_t n);
// The only node that uses y, if it comes later and was not replaced.
tn_node *tn_fuse_only_user(const tn_fuse_matcher *m, const tn_tensor *y);
// The weight of a product that has one.
tn_tensor *tn_fuse_weight_of(const tn_node *product);

const char *tn_fuse_match_glu(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_multi(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_linear(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_norm_matmul(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_norm_rope(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_add_rms_norm(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_rope_cache(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_route(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_router_matmul(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_router_norm(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);
const char *tn_fuse_match_combine(const tn_fuse_matcher *m, tn_node *n, tn_fusion *f);

#endif
