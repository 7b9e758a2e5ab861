// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Recording what LoRA adapters add to a product: with x the input of a weight W,
//   y = W x + sum over the adapters of  s B (A x),   s = scale * alpha / rank
// (Hu et al. 2021, section 4.1). The scale is an input of the plan with one number for each token, so that
// the sequences of a pass can have different ones; s multiplies A x, which has the fewest numbers.
#include "models/builder.h"
#include "models/adapter/adapter.h"

#include <stdio.h>

void tn_builder_adapter_inputs(tn_builder *b)
{
    char name[32];
    for (int32_t i = 0; i < b->setup->n_adapters; i++) {
        if (!(b->key->adapters >> i & 1)) continue;
        snprintf(name, sizeof name, "adapter_scale.%d", i);
        b->adapter_scale[i] = tn_graph_input(b->g, name, TN_TYPE_F32, 2, (int64_t[]){b->key->n_tokens, 1});
    }
}

// Matrix `index` of adapter i.
static tn_tensor *matrix(tn_builder *b, int32_t i, int32_t index, const int64_t shape[3], int32_t n_dims)
{
    const tn_weight *w = &b->setup->adapters[i]->weights[index];
    char name[TN_WEIGHT_NAME + 32];
    snprintf(name, sizeof name, TN_ADAPTER_PREFIX "%d.%s", i, w->name);
    return tn_graph_weight(b->g, name, w->dtype, n_dims, shape + 3 - n_dims);
}

// The numbers by which the rows of low [R, .., rank] are multiplied: of all tokens, or of those whose rows
// were selected before the last matmuls.
static tn_tensor *scale_of(tn_builder *b, int32_t i, const tn_tensor *low)
{
    tn_tensor *scale = b->adapter_scale[i];
    if (tn_tensor_dim(low, 0) != b->key->n_tokens) {
        if (!b->adapter_scale_out[i]) b->adapter_scale_out[i] = tn_builder_out_rows(b, scale);
        scale = b->adapter_scale_out[i];
    }
    if (tn_tensor_n_dims(low) < 3) return scale;
    return tn_op_reshape(b->g, scale, 3, (int64_t[]){-1, 1, 1});
}

static tn_tensor *add_one(tn_builder *b, int32_t i, const tn_adapter_pair *p, const tn_product_input *in,
                          tn_tensor *y)
{
    const tn_adapter *adapter = b->setup->adapters[i];
    const tn_weight *w = &b->model->weights[p->weight];
    int64_t n_in = w->ne[w->n_dims - 1], n_out = w->n_dims > 1 ? w->ne[w->n_dims - 2] : 1, rank = p->rank;
    int32_t n_dims = in->ids ? 3 : 2;
    int64_t n = p->n_experts;
    tn_tensor *low;
    if (p->rows) {
        tn_tensor *a = matrix(b, i, p->a, (int64_t[]){1, n_out, rank}, 2);
        low = tn_op_get_rows(b->g, a, in->x, in->scale);
        n_out = n_in;
    } else {
        tn_tensor *a = matrix(b, i, p->a, (int64_t[]){n, rank, n_in}, n_dims);
        low = in->ids ? tn_op_matmul_id(b->g, in->x, a, in->ids) : tn_op_matmul(b->g, in->x, a);
    }
    if (!low) return NULL; // an earlier failure
    low = tn_op_mul(b->g, low, scale_of(b, i, low));
    float rest = tn_adapter_rest(adapter, p);
    if (rest != 1.0f) low = tn_op_scale(b->g, low, rest);
    tn_tensor *m = matrix(b, i, p->b, (int64_t[]){n, n_out, rank}, n_dims);
    tn_tensor *d = in->ids ? tn_op_matmul_id(b->g, low, m, in->ids) : tn_op_matmul(b->g, low, m);
    if (b->setup->pairs_used) b->setup->pairs_used[p - adapter->pairs] = true;
    return tn_op_add(b->g, y, d);
}

tn_tensor *tn_builder_adapt(tn_builder *b, int32_t weight, const tn_product_input *in, tn_tensor *y)
{
    if (b->key->adapters == 0 || !y) return y;
    int32_t home = tn_builder_home(b, weight), before = b->g->wanted;
    if (home >= 0) tn_graph_want(b->g, home); // the small matrices lie where the large one does
    for (int32_t i = 0; i < b->setup->n_adapters && weight >= 0 && y; i++) {
        const tn_adapter_pair *p = tn_adapter_pair_get(b->setup->adapters[i], weight);
        if (p && (b->key->adapters >> i & 1)) y = add_one(b, i, p, in, y);
    }
    tn_graph_want(b->g, before);
    return y;
}
