// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of mixes, and the rules around it. Quantising the early and late layers, the values and the down
// projection of the feed-forward block costs the most quality, so mixes spend more bits there.
#include "models/quantize/quantize_mix.h"

#include "core/compiler.h"

#include <stdlib.h>
#include <string.h>

// When a rule applies to the i-th of n tensors of its class.
typedef enum condition {
    NEVER,
    ALWAYS,
    FIRST_2,       // i < 2
    FIRST_4,       // i < 4
    FIRST_16TH,    // i < n / 16
    FIRST_8TH,     // i < n / 8
    FIRST_8TH_IM,  // the same, if there are importance weights
    FIRST_8TH_NIM, // the same, if there are none
    MORE,          // the first and last eighth, and every third between
    GQA4,          // at least 4 query heads share a key and value head
} condition;

enum { CHOICES = 3 };

// The first condition that holds gives the type; none: the mix's default.
typedef struct rule {
    condition when[CHOICES];
    tn_dtype type[CHOICES];
} rule;

struct tn_quant_mix {
    const char *name;
    uint32_t file_type;
    bool plain; // one type for everything, no rules
    tn_dtype base, output;
    rule attn_v, ffn_down;
    tn_dtype attn_output;
    tn_dtype attn_output_8; // with exactly 8 experts
    bool experts_mxfp4;     // tensors of several matrices become MXFP4
};

// clang-format off
#define T(name) TN_TYPE_##name
#define NO {{NEVER, NEVER, NEVER}, {0, 0, 0}}
#define IF(c, t) {{c, NEVER, NEVER}, {T(t), 0, 0}}
#define IF_ELSE(c, t, e) {{c, ALWAYS, NEVER}, {T(t), T(e), 0}}
#define IF2_ELSE(c, t, c2, t2, e) {{c, c2, ALWAYS}, {T(t), T(t2), T(e)}}
static const tn_quant_mix mixes[] = {
    /* name, file type, plain, default, output, attn_v class, ffn_down, attn_output,
       the same with 8 experts, experts MXFP4 */
    {"F32",         0, true,  T(F32),    T(F32),  NO, NO, T(F32),  T(F32), false},
    {"F16",         1, true,  T(F16),    T(F16),  NO, NO, T(F16),  T(F16), false},
    {"BF16",       32, true,  T(BF16),   T(BF16), NO, NO, T(BF16), T(BF16), false},
    {"Q8_0",        7, false, T(Q8_0),   T(Q8_0), NO, NO, T(Q8_0), T(Q8_0), false},
    {"Q6_K",       18, false, T(Q6_K),   T(Q6_K), NO, NO, T(Q6_K), T(Q6_K), false},
    {"Q5_K_M",     17, false, T(Q5_K),   T(Q6_K), IF(MORE, Q6_K), IF(MORE, Q6_K), T(Q5_K), T(Q5_K), false},
    {"Q5_K_S",     16, false, T(Q5_K),   T(Q6_K), NO, NO, T(Q5_K), T(Q5_K), false},
    {"Q4_K_M",     15, false, T(Q4_K),   T(Q6_K), IF(MORE, Q6_K), IF(MORE, Q6_K), T(Q4_K), T(Q5_K), false},
    {"Q4_K_S",     14, false, T(Q4_K),   T(Q6_K), IF(FIRST_4, Q5_K), IF(FIRST_8TH, Q5_K), T(Q4_K), T(Q5_K),
     false},
    {"Q3_K_L",     13, false, T(Q3_K),   T(Q6_K), IF(ALWAYS, Q5_K), IF(ALWAYS, Q5_K), T(Q5_K), T(Q3_K),
     false},
    {"Q3_K_M",     12, false, T(Q3_K),   T(Q6_K), IF_ELSE(FIRST_2, Q5_K, Q4_K),
     IF_ELSE(FIRST_16TH, Q5_K, Q4_K), T(Q4_K), T(Q5_K), false},
    {"Q3_K_S",     11, false, T(Q3_K),   T(Q6_K), NO, NO, T(Q3_K), T(Q5_K), false},
    {"Q2_K",       10, false, T(Q2_K),   T(Q6_K), IF_ELSE(GQA4, Q4_K, Q3_K), IF(ALWAYS, Q3_K), T(Q3_K),
     T(Q5_K), false},
    {"Q2_K_S",     21, false, T(Q2_K),   T(Q6_K), IF(GQA4, Q4_K), IF(FIRST_8TH, Q4_K), T(Q2_K), T(Q2_K),
     false},
    {"Q4_0",        2, false, T(Q4_0),   T(Q6_K), NO, IF(FIRST_8TH_IM, Q4_1), T(Q4_0), T(Q4_0), false},
    {"Q4_1",        3, false, T(Q4_1),   T(Q6_K), NO, NO, T(Q4_1), T(Q4_1), false},
    {"Q5_0",        8, false, T(Q5_0),   T(Q6_K), NO, IF(FIRST_8TH_IM, Q5_1), T(Q5_0), T(Q5_0), false},
    {"Q5_1",        9, false, T(Q5_1),   T(Q6_K), NO, NO, T(Q5_1), T(Q5_1), false},
    {"IQ4_NL",     25, false, T(IQ4_NL), T(Q6_K), IF(GQA4, Q5_K), IF(FIRST_8TH_NIM, Q5_K), T(IQ4_NL), T(Q5_K),
     false},
    {"IQ4_XS",     30, false, T(IQ4_XS), T(Q6_K), IF(GQA4, Q5_K), IF(FIRST_8TH_NIM, Q5_K), T(IQ4_XS), T(Q5_K),
     false},
    {"IQ3_S",      26, false, T(IQ3_S),  T(Q6_K), IF(GQA4, Q4_K), NO, T(IQ3_S), T(Q5_K), false},
    {"IQ3_M",      27, false, T(IQ3_S),  T(Q6_K), IF(ALWAYS, Q4_K), IF(FIRST_8TH, Q4_K), T(Q4_K), T(Q5_K),
     false},
    {"MXFP4_MOE",  38, false, T(Q8_0),   T(Q8_0), NO, NO, T(Q8_0), T(Q8_0), true},
    {"MXFP4",      38, false, T(MXFP4),  T(Q8_0), NO, NO, T(MXFP4), T(MXFP4), false},
};

// Falcon's own rules; its attn_output has the default type in the mixes that are not listed.
static const struct {
    const char *mix;
    rule ffn_down;
    tn_dtype attn_output;
} falcon_mixes[] = {
    {"Q4_K_M", IF2_ELSE(FIRST_16TH, Q6_K, MORE, Q5_K, Q4_K), T(Q4_K)},
    {"Q4_K_S", NO,                                           T(Q4_K)},
    {"Q3_K_M", IF2_ELSE(FIRST_16TH, Q5_K, MORE, Q4_K, Q3_K), T(Q3_K)},
    {"Q3_K_L", IF(ALWAYS, Q4_K),                             T(Q4_K)},
};

// The type that replaces another one in rows that are no multiple of its block; types that are not listed:
// F16.
static const struct {
    tn_dtype type, fallback;
} fallbacks[] = {
    {T(IQ1_S), T(IQ4_NL)},  {T(IQ1_M), T(IQ4_NL)},   {T(IQ2_XXS), T(IQ4_NL)}, {T(IQ2_XS), T(IQ4_NL)},
    {T(IQ2_S), T(IQ4_NL)},  {T(IQ3_XXS), T(IQ4_NL)}, {T(IQ3_S), T(IQ4_NL)},   {T(IQ4_XS), T(IQ4_NL)},
    {T(Q2_K), T(Q4_0)},     {T(Q3_K), T(Q4_0)},      {T(TQ1_0), T(Q4_0)},     {T(TQ2_0), T(Q4_0)},
    {T(Q2_0), T(Q4_0)},     {T(Q4_K), T(Q5_0)},      {T(Q5_K), T(Q5_1)},      {T(Q6_K), T(Q8_0)},
};
// clang-format on

// Small or sensitive tensors that stay as they are, by a part of their name.
// clang-format off
static const char *const kept_names[] = {
    "_norm.weight", "ffn_gate_inp.weight", "ssm_conv1d", "shortconv.conv.weight", "altup", "laurel",
    "per_layer_model_proj", "attn_rel_b.weight", ".position_embd", ".patch_embd", ".rel_pos",
    "indexer.k_proj.weight", "indexer.q_proj.weight", "position_embd.weight", "token_types.weight",
    // RWKV: two-dimensional, but small
    "time_mix_first.weight", "time_mix_w0.weight", "time_mix_w1.weight", "time_mix_w2.weight",
    "time_mix_v0.weight", "time_mix_v1.weight", "time_mix_v2.weight", "time_mix_a0.weight",
    "time_mix_a1.weight", "time_mix_a2.weight", "time_mix_g1.weight", "time_mix_g2.weight",
    "time_mix_decay_w1.weight", "time_mix_decay_w2.weight", "time_mix_lerp_fused.weight"};
// clang-format on

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && upper(*a) == upper(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

static bool has(const char *name, const char *part)
{
    return strstr(name, part) != NULL;
}

// Layer of "blk.<n>.…", -1 for tensors outside of layers.
static int64_t layer_of(const char *name)
{
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9') return -1;
    int64_t layer = 0;
    for (const char *p = name + 4; *p >= '0' && *p <= '9' && layer < INT32_MAX; p++) {
        layer = 10 * layer + (*p - '0');
    }
    return layer;
}

static bool applies(condition c, int64_t i, int64_t n, const tn_quant_mix_model *model)
{
    // clang-format off
    switch (c) {
    case NEVER: return false;
    case ALWAYS: return true;
    case FIRST_2: return i < 2;
    case FIRST_4: return i < 4;
    case FIRST_16TH: return i < n / 16;
    case FIRST_8TH: return i < n / 8;
    case FIRST_8TH_IM: return model->has_imatrix && i < n / 8;
    case FIRST_8TH_NIM: return !model->has_imatrix && i < n / 8;
    case MORE: return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
    case GQA4: return model->n_head_kv > 0 && model->n_head / model->n_head_kv >= 4;
    }
    // clang-format on
    return false;
}

static tn_dtype apply(const rule *r, int64_t i, int64_t n, const tn_quant_mix_model *model, tn_dtype base)
{
    for (int k = 0; k < CHOICES; k++) {
        if (applies(r->when[k], i, n, model)) return r->type[k];
    }
    return base;
}

static bool is_falcon(const tn_quant_mix_model *model)
{
    return strcmp(model->arch, "falcon") == 0;
}

// The 70B shape of the Llama family: eight query heads share their values, so those are small.
static bool is_70b(const tn_quant_mix_model *model)
{
    return model->n_layer == 80 && (strcmp(model->arch, "llama") == 0 || strcmp(model->arch, "qwen2") == 0);
}

static tn_dtype pick_attn_v(tn_quant_mix_state *s)
{
    const tn_quant_mix_model *m = s->model;
    tn_dtype type = apply(&s->mix->attn_v, s->i_attn_v++, m->n_attn_v, m, s->mix->base);
    if (is_70b(m) && (type == TN_TYPE_Q3_K || type == TN_TYPE_Q4_K)) type = TN_TYPE_Q5_K;
    return m->n_expert == 8 ? TN_TYPE_Q8_0 : type;
}

static tn_dtype pick_ffn_down(tn_quant_mix_state *s, const char *name)
{
    const tn_quant_mix_model *m = s->model;
    int64_t i = s->i_ffn_down++, n = m->n_layer;
    int64_t layer = layer_of(name);
    if (m->n_expert > 1 && layer >= 0) i = layer; // several such tensors per layer
    if (is_falcon(m)) {
        for (size_t k = 0; k < TN_COUNT(falcon_mixes); k++) {
            if (strcmp(falcon_mixes[k].mix, s->mix->name) != 0) continue;
            return apply(&falcon_mixes[k].ffn_down, i, n, m, s->mix->base);
        }
    }
    return apply(&s->mix->ffn_down, i, n, m, s->mix->base);
}

static tn_dtype pick_attn_output(const tn_quant_mix_state *s)
{
    if (!is_falcon(s->model)) return s->model->n_expert == 8 ? s->mix->attn_output_8 : s->mix->attn_output;
    for (size_t k = 0; k < TN_COUNT(falcon_mixes); k++) {
        if (strcmp(falcon_mixes[k].mix, s->mix->name) == 0) return falcon_mixes[k].attn_output;
    }
    return s->mix->base;
}

static tn_dtype pick_by_rules(tn_quant_mix_state *s, const char *name, int32_t n_dims, const int64_t *ne)
{
    const tn_quant_mix *mix = s->mix;
    const char *output = s->model->has_output ? "output.weight" : "token_embd.weight";
    if (strcmp(name, output) == 0) {
        bool odd = ne[n_dims - 1] % tn_dtype_block_elems(mix->base) != 0;
        return odd || is_falcon(s->model) ? TN_TYPE_Q8_0 : mix->output;
    }
    if (mix->experts_mxfp4 && n_dims > 2 && ne[n_dims - 3] > 1) return TN_TYPE_MXFP4;
    if (tn_quant_mix_is_attn_v(name)) return pick_attn_v(s);
    if (has(name, "attn_k.weight") && s->model->n_expert == 8) return TN_TYPE_Q8_0;
    if (has(name, "ffn_down")) return pick_ffn_down(s, name);
    if (has(name, "attn_output.weight")) return pick_attn_output(s);
    return mix->base;
}

tn_dtype tn_quant_mix_fit(tn_dtype type, int64_t n)
{
    if (n % tn_dtype_block_elems(type) == 0) return type;
    for (size_t k = 0; k < TN_COUNT(fallbacks); k++) {
        if (fallbacks[k].type != type) continue;
        return n % tn_dtype_block_elems(fallbacks[k].fallback) == 0 ? fallbacks[k].fallback : TN_TYPE_F16;
    }
    return TN_TYPE_F16;
}

const tn_quant_mix *tn_quant_mix_find(const char *name)
{
    for (size_t k = 0; k < TN_COUNT(mixes); k++) {
        if (same_name(name, mixes[k].name)) return &mixes[k];
    }
    return NULL;
}

const tn_quant_mix *tn_quant_mix_by_file_type(int64_t file_type)
{
    for (size_t k = 0; k < TN_COUNT(mixes); k++) {
        if (mixes[k].file_type == file_type) return &mixes[k];
    }
    return NULL;
}

const char *tn_quant_mix_name(const tn_quant_mix *mix)
{
    return mix->name;
}

uint32_t tn_quant_mix_file_type(const tn_quant_mix *mix)
{
    return mix->file_type;
}

size_t tn_quant_mix_list(char *text, size_t size)
{
    size_t length = 0;
    for (size_t k = 0; k < TN_COUNT(mixes); k++) {
        const char *parts[2] = {k > 0 ? ", " : "", mixes[k].name};
        for (int p = 0; p < 2; p++) {
            for (const char *c = parts[p]; *c; c++, length++) {
                if (length + 1 < size) text[length] = *c;
            }
        }
    }
    if (size > 0) text[length < size ? length : size - 1] = 0;
    return length;
}

bool tn_quant_mix_is_attn_v(const char *name)
{
    return has(name, "attn_v.weight") || has(name, "attn_qkv.weight") || has(name, "attn_kv_b.weight");
}

int tn_quant_mix_compare(const char *a, const char *b)
{
    int64_t layer_a = layer_of(a), layer_b = layer_of(b);
    if (layer_a != layer_b) return layer_a < layer_b ? -1 : 1;
    return strcmp(a, b);
}

bool tn_quant_mix_keeps(const char *name, int32_t n_dims, const int64_t *ne)
{
    static const char suffix[] = "weight";
    size_t length = strlen(name), suffix_length = sizeof suffix - 1;
    if (length < suffix_length || strcmp(name + length - suffix_length, suffix) != 0) return true;
    int32_t rank = n_dims;
    for (int32_t k = 0; k < n_dims && ne[k] == 1; k++) rank--;
    if (rank < 2) return true;
    for (size_t k = 0; k < TN_COUNT(kept_names); k++) {
        if (has(name, kept_names[k])) return true;
    }
    return false;
}

tn_quant_mix_state tn_quant_mix_begin(const tn_quant_mix *mix, const tn_quant_mix_model *model)
{
    return (tn_quant_mix_state){.mix = mix, .model = model};
}

tn_dtype tn_quant_mix_pick(tn_quant_mix_state *state, const char *name, tn_dtype source, int32_t n_dims,
                           const int64_t *ne)
{
    if (tn_quant_mix_keeps(name, n_dims, ne)) return source;
    if (state->mix->plain) return state->mix->base;
    return tn_quant_mix_fit(pick_by_rules(state, name, n_dims, ne), ne[n_dims - 1]);
}
