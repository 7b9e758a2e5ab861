// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "models/builder.h"

#include <stdio.h>
#include <string.h>

static const char *full_name(int32_t layer, const char *name, char text[TN_WEIGHT_NAME])
{
    if (layer < 0)
        snprintf(text, TN_WEIGHT_NAME, "%s", name);
    else
        snprintf(text, TN_WEIGHT_NAME, "blk.%d.%.79s", layer, name); // longer names do not exist
    return text;
}

static const char *shape_text(int32_t n_dims, const int64_t *ne, char text[64])
{
    size_t n = 0;
    for (int32_t i = 0; i < n_dims && n < 60; i++)
        n += (size_t)snprintf(text + n, 64 - n, "%s%lld", i ? ", " : "", (long long)ne[i]);
    return text;
}

void tn_builder_refuse(tn_builder *b, tn_status status)
{
    b->status = b->g->status = status;
    tn_context_error(b->model->ctx, b->g->error, sizeof b->g->error);
}

int32_t tn_builder_index(const tn_builder *b, int32_t layer, const char *name)
{
    char text[TN_WEIGHT_NAME];
    return tn_model_find_weight(b->model, full_name(layer, name, text));
}

bool tn_builder_has(const tn_builder *b, int32_t layer, const char *name)
{
    return tn_builder_index(b, layer, name) >= 0;
}

int64_t tn_builder_find(const tn_builder *b, int32_t layer, const char *name, int32_t *n_dims)
{
    char text[TN_WEIGHT_NAME];
    int32_t i = tn_model_find_weight(b->model, full_name(layer, name, text));
    if (i < 0) return 0;
    const tn_weight *w = &b->model->weights[i];
    *n_dims = w->n_dims;
    return w->ne[w->n_dims - 1];
}

tn_tensor *tn_builder_weight(tn_builder *b, int32_t layer, const char *name, int32_t flags, int32_t n_dims,
                             int64_t d0, int64_t d1, int64_t d2)
{
    char text[TN_WEIGHT_NAME], have[64], want[64];
    full_name(layer, name, text);
    if (b->status != TN_OK) return NULL;
    tn_context *ctx = b->model->ctx;
    int32_t i = tn_model_find_weight(b->model, text);
    if (i < 0) {
        if (!(flags & TN_WEIGHT_OPTIONAL))
            tn_builder_refuse(b, tn_fail(ctx, TN_ERR_MODEL, "tensor %s is missing", text));
        return NULL;
    }
    const tn_weight *w = &b->model->weights[i];
    tn_status typed = tn_weight_check_type(ctx, w);
    if (typed != TN_OK) {
        tn_builder_refuse(b, typed);
        return NULL;
    }
    const int64_t wanted[3] = {d0, d1, d2};
    int64_t shape[TN_MAX_DIMS] = {1, 1, 1, 1}; // outer dimensions of 1 are not in w->ne
    bool fits = w->n_dims <= n_dims;
    for (int32_t d = 0; d < n_dims && fits; d++) {
        if (d >= n_dims - w->n_dims) shape[d] = w->ne[d - (n_dims - w->n_dims)];
        fits = wanted[d] == 0 || wanted[d] == shape[d];
    }
    if (!fits) {
        tn_builder_refuse(b, tn_fail(ctx, TN_ERR_MODEL, "tensor %s has shape [%s], must be [%s]", text,
                                     shape_text(w->n_dims, w->ne, have), shape_text(n_dims, wanted, want)));
        return NULL;
    }
    if (!b->recorded[i]) {
        b->recorded[i] = tn_graph_weight(b->g, text, w->dtype, n_dims, shape);
        tn_graph_keep_weight(b->recorded[i], tn_builder_home(b, i));
    }
    return b->recorded[i];
}

tn_tensor *tn_builder_scale(tn_builder *b, int32_t layer, const char *name, const tn_tensor *w, int64_t n)
{
    char text[64];
    // A tensor "<router>.scale" is no factor of this kind: it multiplies the input of the router.
    if (!w || (n == 1 && tn_tensor_dtype(w) != TN_TYPE_NVFP4)) return NULL;
    snprintf(text, sizeof text, "%s.scale", name);
    return tn_builder_weight(b, layer, text, TN_WEIGHT_OPTIONAL, 1, n, 0, 0);
}

// The product itself, without what adapters add to it.
static tn_tensor *product(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t n_out,
                          int64_t n_in)
{
    char text[TN_WEIGHT_NAME];
    snprintf(text, sizeof text, "%s.weight", name);
    int32_t before = tn_builder_follow(b, layer, text);
    tn_tensor *w = tn_builder_weight(b, layer, text, 0, 2, n_out, n_in, 0);
    tn_tensor *y = tn_op_matmul(b->g, x, w), *scale = tn_builder_scale(b, layer, name, w, 1);
    if (scale) y = tn_op_mul(b->g, y, scale);
    snprintf(text, sizeof text, "%s.bias", name);
    tn_tensor *bias = tn_builder_weight(b, layer, text, TN_WEIGHT_OPTIONAL, 1, n_out, 0, 0);
    if (bias) y = tn_op_add(b->g, y, bias);
    tn_graph_want(b->g, before);
    return y;
}

static tn_tensor *adapt(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, tn_tensor *y)
{
    char text[TN_WEIGHT_NAME];
    if (b->key->adapters == 0) return y;
    snprintf(text, sizeof text, "%s.weight", name);
    return tn_builder_adapt(b, tn_builder_index(b, layer, text), &(tn_product_input){.x = x}, y);
}

tn_tensor *tn_builder_linear(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t n_out,
                             int64_t n_in)
{
    return adapt(b, layer, name, x, product(b, layer, name, x, n_out, n_in));
}

void tn_builder_linears(tn_builder *b, int32_t layer, tn_tensor *x, int64_t n_in, int32_t n,
                        const tn_linear_row *rows, tn_tensor **y)
{
    for (int32_t i = 0; i < n; i++) y[i] = product(b, layer, rows[i].name, x, rows[i].n_out, n_in);
    for (int32_t i = 0; i < n; i++) y[i] = adapt(b, layer, rows[i].name, x, y[i]);
}

tn_tensor *tn_builder_norm(tn_builder *b, int32_t layer, const char *name, tn_tensor *x, int64_t width)
{
    char text[TN_WEIGHT_NAME];
    snprintf(text, sizeof text, "%s.weight", name);
    tn_tensor *w = tn_builder_weight(b, layer, text, 0, 1, width, 0, 0);
    if (b->c->arch->norm == TN_ARCH_NORM_RMS) return tn_op_rms_norm(b->g, x, w, b->c->eps);
    snprintf(text, sizeof text, "%s.bias", name);
    tn_tensor *bias = tn_builder_weight(b, layer, text, TN_WEIGHT_OPTIONAL, 1, width, 0, 0);
    return tn_op_layer_norm(b->g, x, w, bias, b->c->eps);
}

void tn_builder_enter(tn_builder *b, int32_t layer)
{
    tn_graph_want(b->g, layer < b->setup->n_host_layers);
}

int32_t tn_builder_follow(tn_builder *b, int32_t layer, const char *weight)
{
    int32_t before = b->g->wanted;
    if (tn_builder_home(b, tn_builder_index(b, layer, weight)) == 1) tn_graph_want(b->g, 1);
    return before;
}

void tn_builder_enter_cache(tn_builder *b, int32_t layer)
{
    bool host = layer < b->setup->n_host_layers || (b->setup->host_states && b->setup->host_states[layer]);
    tn_graph_want(b->g, host);
}
