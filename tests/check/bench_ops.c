// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks and times the CPU kernels of every op that is no matrix product, without a context or a graph:
//   bench_ops             every kernel against the reference, random and special inputs, 1 and 3 threads
//   bench_ops time [N]    times with N threads (default 1)
// Exit 0: all within the tolerance of ops.def. Attention: bench_attention.c.
#include "tests/check/bench_ops.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tn_view random_view(int64_t a, int64_t b, int64_t c, int64_t d)
{
    tn_view v = bench_view(TN_TYPE_F32, a, b, c, d);
    bench_fill(&v, 1.0f);
    return v;
}

// Magnitudes from subnormal to near the largest, zeros, and (if wanted) infinities and NaN.
static void fill_special(tn_view *v, bool non_finite)
{
    static const float list[] = {0.0f,   -0.0f,   1e-40f, -1e-40f, 1e-30f, 88.0f, -88.0f,
                                 89.5f,  -104.5f, 1e-6f,  -1e-6f,  0.625f, 20.0f, -20.0f,
                                 -87.5f, 1e10f,   -1e10f, 3e18f,   -3e18f, 0.5f};
    float *x = v->data;
    for (int64_t i = 0; i < tn_view_n_elems(v); i++) {
        uint32_t r = bench_random();
        if (r % 4 != 0) continue;
        x[i] = list[(r >> 8) % TN_COUNT(list)];
        if (non_finite && r % 32 == 0) x[i] = r & 256 ? NAN : r & 512 ? INFINITY : -INFINITY;
    }
}

static void check_unary(void)
{
    static const int64_t sizes[] = {1, 3, 16, 100, 1024, 5003};
    for (int32_t kind = 0; kind < TN_UNARY_COUNT; kind++)
        for (size_t s = 0; s < TN_COUNT(sizes); s++)
            for (int special = 0; special < 2; special++) {
                tn_unary_params p = {kind, kind == TN_UNARY_CLAMP ? -1.5f : 3.0f, 2.0f};
                bench_case c = {.op = TN_OP_unary, .params = &p, .n_src = 1, .n_dst = 1};
                c.src[0] = random_view(1, 1, 3, sizes[s]);
                if (special) fill_special(&c.src[0], true);
                c.dst[0] = bench_view(TN_TYPE_F32, 1, 1, 3, sizes[s]);
                snprintf(c.note, sizeof c.note, "%s n=%d%s", tn_unary_name(kind), (int)sizes[s],
                         special ? " special" : "");
                c.ulp = !special;
                bench_check(&c);
            }
}

static void check_binary(void)
{
    static const int64_t shapes[][8] = {
        {1, 1, 5, 77, 1, 1, 5, 77}, {1, 1, 5, 77, 1, 1, 1, 77},     {1, 1, 1, 77, 1, 4, 5, 77},
        {1, 1, 5, 77, 1, 1, 5, 1},  {2, 3, 4, 5, 2, 1, 4, 1},       {1, 1, 1, 1, 1, 1, 9, 33},
        {1, 1, 3, 1, 1, 1, 1, 40},  {1, 1, 3, 2500, 1, 1, 3, 2500},
    };
    for (int32_t kind = 0; kind < TN_BINARY_COUNT; kind++)
        for (size_t s = 0; s < TN_COUNT(shapes); s++) {
            const int64_t *a = shapes[s], *b = shapes[s] + 4;
            tn_binary_params p = {kind};
            bench_case c = {.op = TN_OP_binary, .params = &p, .n_src = 2, .n_dst = 1};
            c.src[0] = random_view(a[0], a[1], a[2], a[3]);
            c.src[1] = random_view(b[0], b[1], b[2], b[3]);
            if (s % 2) fill_special(&c.src[0], true);
            c.dst[0] = bench_view(TN_TYPE_F32, TN_MAX(a[0], b[0]), TN_MAX(a[1], b[1]), TN_MAX(a[2], b[2]),
                                  TN_MAX(a[3], b[3]));
            snprintf(c.note, sizeof c.note, "kind %d shape %zu", kind, s);
            bench_check(&c);
        }
}

static void check_glu(void)
{
    static const int32_t acts[] = {TN_UNARY_SILU, TN_UNARY_GELU, TN_UNARY_GELU_ERF, TN_UNARY_RELU,
                                   TN_UNARY_SIGMOID};
    for (size_t a = 0; a < TN_COUNT(acts); a++)
        for (int v = 0; v < 8; v++) {
            tn_glu_params p = {acts[a], v & 1 ? 1.25f : 0.0f, v & 2 ? 1.702f : 0.0f};
            bench_case c = {.op = TN_OP_glu, .params = &p, .n_src = 2, .n_dst = 1};
            int64_t n = v & 4 ? 1027 : 48;
            tn_view both = random_view(1, 1, 5, 2 * n); // gate and up: halves of one matrix
            if (a == 1) fill_special(&both, false);
            c.src[0] = both;
            c.src[1] = both;
            c.src[0].ne[3] = c.src[1].ne[3] = n;
            c.src[1].data = (float *)both.data + n;
            c.dst[0] = bench_view(TN_TYPE_F32, 1, 1, 5, n);
            snprintf(c.note, sizeof c.note, "act %d variant %d", acts[a], v);
            bench_check(&c);
        }
}

static void check_norms(void)
{
    static const int64_t sizes[] = {1, 5, 16, 64, 127, 1000, 4096};
    static const float scales[] = {1.0f, 1e-15f, 1e18f, 3e30f};
    for (size_t s = 0; s < TN_COUNT(sizes) * TN_COUNT(scales) * 4; s++) {
        int64_t n = sizes[s % TN_COUNT(sizes)];
        float scale = scales[s / TN_COUNT(sizes) % TN_COUNT(scales)];
        size_t v = s / TN_COUNT(sizes) / TN_COUNT(scales);
        tn_rms_norm_params rms = {1e-6f};
        tn_layer_norm_params layer = {1e-5f};
        tn_add_rms_norm_params add = {1e-6f};
        bench_case c = {.op = TN_OP_rms_norm, .params = &rms, .n_src = v & 1 ? 2 : 1, .n_dst = 1};
        c.src[0] = random_view(1, 2, 3, n);
        bench_scale(&c.src[0], scale, v & 2 ? 1000.0f * scale : 0.0f);
        c.src[1] = random_view(1, 1, 1, n);
        c.dst[0] = bench_view(TN_TYPE_F32, 1, 2, 3, n);
        snprintf(c.note, sizeof c.note, "n=%d scale %g variant %zu", (int)n, (double)scale, v);
        bench_check(&c);
        c.op = TN_OP_layer_norm;
        c.params = &layer;
        c.n_src = v & 1 ? 3 : 1;
        c.src[2] = random_view(1, 1, 1, n);
        if (n > 1) bench_check(&c); // one value: 0, up to rounding noise
        c.op = TN_OP_add_rms_norm;
        c.params = &add;
        c.n_src = v & 1 ? 3 : 2;
        c.n_dst = 2;
        c.src[2] = c.src[1];
        c.src[1] = random_view(1, 2, 3, n);
        c.dst[1] = bench_view(TN_TYPE_F32, 1, 2, 3, n);
        bench_check(&c);
    }
}

static void check_rope(void)
{
    for (int v = 0; v < 64; v++) {
        int64_t d = v & 1 ? 128 : 80, heads = 3, tokens = 7;
        tn_rope_params p = {
            .mode = v & 2 ? TN_ROPE_NEOX : TN_ROPE_NORM, .n_rot = v & 4 ? (int32_t)d : 36, .base = 500000.0f};
        if (v & 8)
            p.freq_scale = 0.25f, p.yarn_ext = 1.0f, p.yarn_low = 7.0f, p.yarn_high = 21.0f,
            p.attn_factor = 1.14f;
        tn_norm_rope_params np = {1e-6f, p};
        bool norm = v & 32;
        int pos = norm ? 2 : 1;
        bench_case c = {
            .op = norm ? TN_OP_norm_rope : TN_OP_rope, .n_src = pos + (v & 16 ? 2 : 1), .n_dst = 1};
        c.params = norm ? (void *)&np : (void *)&p;
        tn_view qkv = random_view(1, tokens, heads, d + 24); // rows of a wider matrix
        c.src[0] = qkv;
        c.src[0].ne[3] = d;
        c.src[1] = random_view(1, 1, 1, d);
        c.src[pos] = bench_view(TN_TYPE_I32, 1, 1, 1, tokens);
        for (int i = 0; i < tokens; i++)
            ((int32_t *)c.src[pos].data)[i] = i < 3 ? i : (int32_t)(bench_random() % 1000000u);
        c.src[pos + 1] = random_view(1, 1, 1, p.n_rot / 2);
        for (int i = 0; i < p.n_rot / 2; i++) ((float *)c.src[pos + 1].data)[i] = 1.0f + (float)(i % 5);
        c.dst[0] = bench_view(TN_TYPE_F32, 1, tokens, heads, d);
        snprintf(c.note, sizeof c.note, "variant %d", v);
        bench_check(&c);
    }
}

static void check_softmax(void)
{
    static const int64_t sizes[] = {1, 9, 32, 100, 3000};
    for (size_t s = 0; s < TN_COUNT(sizes) * 4; s++) {
        int64_t n = sizes[s % TN_COUNT(sizes)];
        size_t v = s / TN_COUNT(sizes);
        tn_softmax_params p = {v & 1 ? 0.3f : 0.0f};
        bench_case c = {.op = TN_OP_softmax, .params = &p, .n_src = v & 2 ? 2 : 1, .n_dst = 1};
        c.src[0] = random_view(1, 2, 4, n);
        bench_scale(&c.src[0], 5.0f, 0.0f);
        if (v == 1) fill_special(&c.src[0], false);
        for (int64_t i = 0; i < n; i++) ((float *)c.src[0].data)[n + i] = -INFINITY;
        c.src[1] = random_view(1, 1, 4, n);
        for (int64_t i = 0; i < n; i++) ((float *)c.src[1].data)[2 * n + i] = i % 3 ? -INFINITY : 0.0f;
        c.dst[0] = bench_view(TN_TYPE_F32, 1, 2, 4, n);
        snprintf(c.note, sizeof c.note, "n=%d variant %zu", (int)n, v);
        bench_check(&c);
        for (int32_t kind = 0; kind < TN_REDUCE_COUNT; kind++) {
            tn_reduce_params rp = {kind};
            bench_case r = {.op = TN_OP_reduce, .params = &rp, .n_src = 1, .n_dst = 1};
            r.src[0] = c.src[0];
            r.dst[0] = bench_view(TN_TYPE_F32, 1, 2, 4, 1);
            snprintf(r.note, sizeof r.note, "kind %d n=%d", kind, (int)n);
            bench_check(&r);
        }
        bench_case a = {.op = TN_OP_argmax, .n_src = 1, .n_dst = 1};
        a.src[0] = random_view(1, 2, 4, n);
        if (v & 1) fill_special(&a.src[0], true);
        if (v & 2)
            for (int64_t i = 0; i < n; i++) ((float *)a.src[0].data)[i] = i ? -INFINITY : NAN;
        a.dst[0] = bench_view(TN_TYPE_I32, 1, 2, 4, 1);
        snprintf(a.note, sizeof a.note, "n=%d variant %zu", (int)n, v);
        bench_check(&a);
    }
}

static void check_moe(void)
{
    for (int v = 0; v < 48; v++) {
        int64_t tokens = 9, n = v & 1 ? 128 : 60;
        tn_top_k_params p = {.k = v & 2 ? 8 : 1};
        if (v & 4) p.n_groups = 4, p.n_groups_used = 2;
        bench_case c = {.op = TN_OP_top_k, .params = &p, .n_src = v & 8 ? 2 : 1, .n_dst = 1};
        c.src[0] = random_view(1, 1, tokens, n);
        for (int64_t i = 0; i < tokens * n && (v & 16); i++)
            ((float *)c.src[0].data)[i] = (float)(bench_random() % 5); // ties
        if (v & 32) fill_special(&c.src[0], true);
        c.src[1] = random_view(1, 1, 1, n);
        c.dst[0] = bench_view(TN_TYPE_I32, 1, 1, tokens, p.k);
        snprintf(c.note, sizeof c.note, "variant %d", v);
        bench_check(&c);
        if (v & 32) continue;
        tn_moe_weights_params wp = {v % 4, v & 8, v & 4 ? 2.5f : 0.0f};
        bench_case w = {.op = TN_OP_moe_weights, .params = &wp, .n_src = 2, .n_dst = 1};
        w.src[0] = random_view(1, 1, tokens, n);
        w.src[1] = bench_view(TN_TYPE_I32, 1, 1, tokens, 6);
        for (int i = 0; i < tokens * 6; i++)
            ((int32_t *)w.src[1].data)[i] = (int32_t)(bench_random() % (uint32_t)n);
        w.dst[0] = bench_view(TN_TYPE_F32, 1, 1, tokens, 6);
        snprintf(w.note, sizeof w.note, "variant %d", v);
        bench_check(&w);
        bench_case m = {.op = TN_OP_moe_sum, .n_src = 2, .n_dst = 1};
        m.src[0] = random_view(1, tokens, 6, v & 1 ? 1500 : 33);
        m.src[1] = random_view(1, 1, tokens, 6);
        m.dst[0] = bench_view(TN_TYPE_F32, 1, 1, tokens, m.src[0].ne[3]);
        snprintf(m.note, sizeof m.note, "variant %d", v);
        bench_check(&m);
    }
}

static const tn_dtype float_types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16};
static const tn_dtype cache_types[] = {TN_TYPE_F32, TN_TYPE_F16, TN_TYPE_BF16, TN_TYPE_Q8_0, TN_TYPE_Q4_0};

static void check_copy(void)
{
    for (size_t from = 0; from < TN_COUNT(cache_types); from++)
        for (size_t to = 0; to < TN_COUNT(float_types); to++)
            for (int permuted = 0; permuted < (from < 3 ? 3 : 1); permuted++) {
                tn_copy_params p = {float_types[to]};
                bench_case c = {.op = TN_OP_copy, .params = &p, .n_src = 1, .n_dst = 1};
                tn_view *x = &c.src[0];
                *x = bench_view(cache_types[from], 2, 3, 5, 64);
                bench_fill(x, 100.0f);
                if (permuted > 0) bench_swap_dims(x, permuted == 1 ? 1 : 2, permuted == 1 ? 2 : 3);
                c.dst[0] = bench_view(p.dtype, x->ne[0], x->ne[1], x->ne[2], x->ne[3]);
                snprintf(c.note, sizeof c.note, "%s to %s %d", tn_dtype_name(x->dtype),
                         tn_dtype_name(p.dtype), permuted);
                bench_check(&c);
            }
    for (int32_t axis = 0; axis < 3; axis++) {
        tn_concat_params p = {axis};
        bench_case c = {.op = TN_OP_concat, .params = &p, .n_src = 2, .n_dst = 1};
        c.src[0] = random_view(1, 3, 4, 5);
        c.src[1] = random_view(1, axis == 0 ? 2 : 3, axis == 1 ? 7 : 4, axis == 2 ? 9 : 5);
        c.dst[0] = bench_view(TN_TYPE_F32, 1, axis == 0 ? 5 : 3, axis == 1 ? 11 : 4, axis == 2 ? 14 : 5);
        c.dst[0].n_dims = 3;
        snprintf(c.note, sizeof c.note, "axis %d", axis);
        bench_check(&c);
    }
}

static void check_rows(void)
{
    static const tn_dtype types[] = {TN_TYPE_F32,  TN_TYPE_F16,  TN_TYPE_BF16,
                                     TN_TYPE_Q8_0, TN_TYPE_Q4_0, TN_TYPE_Q6_K};
    for (size_t t = 0; t < TN_COUNT(types) * 2; t++) {
        tn_get_rows_params p = {t & 1 ? 11.3f : 0.0f};
        bench_case c = {.op = TN_OP_get_rows, .params = &p, .n_src = 2, .n_dst = 1};
        c.src[0] = bench_view(types[t / 2], 1, 1, 10, t / 2 < 3 ? 75 : 512);
        bench_fill(&c.src[0], 1.0f);
        c.src[1] = bench_view(TN_TYPE_I32, 1, 1, 1, 6);
        memcpy(c.src[1].data, (int32_t[]){3, 9, 0, -1, 10, 3}, 6 * sizeof(int32_t));
        c.dst[0] = bench_view(TN_TYPE_F32, 1, 1, 6, c.src[0].ne[3]);
        snprintf(c.note, sizeof c.note, "%s", tn_dtype_name(types[t / 2]));
        bench_check(&c);
    }
    for (size_t t = 0; t < TN_COUNT(cache_types) * 3; t++) {
        bench_case c = {.op = TN_OP_cache_write, .n_src = 3, .n_dst = 1, .alias = true};
        int64_t d = t / 3 < 3 ? 75 : 64;
        c.src[0] = bench_view(cache_types[t / 3], 3, 2, 4, d);
        bench_fill(&c.src[0], 1.0f);
        c.src[1] = random_view(1, 7, 2, d);
        if (t % 3 == 1) fill_special(&c.src[1], true);
        if (t % 3 == 2) // ties of the rounding, and equal magnitudes of both signs
            for (int64_t i = 0; i < 14 * d; i++)
                ((float *)c.src[1].data)[i] = (float)((int)(bench_random() % 255u) - 127) * 0.5f;
        c.src[2] = bench_view(TN_TYPE_I32, 1, 1, 1, 7);
        memcpy(c.src[2].data, (int32_t[]){0, 5, -1, 11, 12, 3, 7}, 7 * sizeof(int32_t));
        c.dst[0] = c.src[0];
        snprintf(c.note, sizeof c.note, "%s variant %d", tn_dtype_name(cache_types[t / 3]), (int)(t % 3));
        bench_check(&c);
    }
}

// --- times -----------------------------------------------------------------------------------------

static void time_list(const bench_case *list, size_t n, int n_threads)
{
    for (size_t i = 0; i < n; i++) bench_time(&list[i], n_threads);
}

static bench_case time_case(int32_t op, const void *params, const char *note, int64_t bytes)
{
    bench_case c = {.op = op, .params = params, .n_dst = 1, .bytes = bytes};
    snprintf(c.note, sizeof c.note, "%s", note);
    return c;
}

static void add_src(bench_case *c, tn_view v)
{
    c->src[c->n_src++] = v;
}

static void time_norms(int64_t tokens, int n_threads)
{
    static const tn_rms_norm_params rms = {1e-6f};
    static const tn_add_rms_norm_params add = {1e-6f};
    tn_view x = random_view(1, 1, tokens, 4096), w = random_view(1, 1, 1, 4096);
    tn_view y = random_view(1, 1, tokens, 4096), z = random_view(1, 1, tokens, 4096);
    bench_case list[] = {
        time_case(TN_OP_rms_norm, &rms, "d=4096", 8 * tokens * 4096),
        time_case(TN_OP_add_rms_norm, &add, "d=4096", 16 * tokens * 4096),
    };
    add_src(&list[1], y);
    list[1].dst[1] = z;
    list[1].n_dst = 2;
    for (size_t i = 0; i < TN_COUNT(list); i++) {
        add_src(&list[i], x);
        add_src(&list[i], w);
        list[i].dst[0] = y;
    }
    time_list(list, TN_COUNT(list), n_threads);
}

static void time_activations(int64_t tokens, int n_threads)
{
    static const tn_unary_params silu = {.kind = TN_UNARY_SILU};
    static const tn_glu_params swiglu = {.act = TN_UNARY_SILU}, geglu = {.act = TN_UNARY_GELU};
    tn_view x = random_view(1, 1, tokens, 14336), y = random_view(1, 1, tokens, 14336);
    bench_case list[] = {
        time_case(TN_OP_unary, &silu, "silu 14336", 8 * tokens * 14336),
        time_case(TN_OP_glu, &swiglu, "swiglu 14336", 12 * tokens * 14336),
        time_case(TN_OP_glu, &geglu, "geglu 14336", 12 * tokens * 14336),
    };
    for (size_t i = 0; i < TN_COUNT(list); i++) {
        add_src(&list[i], x);
        if (i > 0) add_src(&list[i], x);
        list[i].dst[0] = y;
    }
    time_list(list, TN_COUNT(list), n_threads);
}

static void time_heads(int64_t tokens, int n_threads)
{
    static const tn_rope_params rope = {.mode = TN_ROPE_NEOX, .n_rot = 128, .base = 1e6f};
    static const tn_norm_rope_params norm_rope = {1e-6f, {.mode = TN_ROPE_NEOX, .n_rot = 128, .base = 1e6f}};
    tn_view q = random_view(1, tokens, 32, 128), y = random_view(1, tokens, 32, 128);
    tn_view pos = bench_view(TN_TYPE_I32, 1, 1, 1, tokens), cache = bench_view(TN_TYPE_Q8_0, 64, 32, 16, 128);
    for (int64_t i = 0; i < tokens; i++) ((int32_t *)pos.data)[i] = (int32_t)i;
    bench_case list[] = {
        time_case(TN_OP_rope, &rope, "32x128", 8 * tokens * 4096),
        time_case(TN_OP_norm_rope, &norm_rope, "32x128", 8 * tokens * 4096),
        time_case(TN_OP_cache_write, NULL, "Q8_0 32x128", 5 * tokens * 4096),
    };
    add_src(&list[2], cache);
    for (size_t i = 0; i < TN_COUNT(list); i++) {
        add_src(&list[i], q);
        if (i == 1) add_src(&list[i], random_view(1, 1, 1, 128));
        add_src(&list[i], pos);
        list[i].dst[0] = i == 2 ? cache : y;
    }
    time_list(list, TN_COUNT(list), n_threads);
}

static void time_logits(int n_threads)
{
    static const tn_softmax_params softmax = {1.0f};
    static const tn_top_k_params top = {.k = 40};
    tn_view x = random_view(1, 1, 4, 150000);
    bench_case list[] = {
        time_case(TN_OP_softmax, &softmax, "4 x 150000", 8 * 4 * 150000),
        time_case(TN_OP_argmax, NULL, "4 x 150000", 4 * 4 * 150000),
        time_case(TN_OP_top_k, &top, "k=40 4 x 150000", 4 * 4 * 150000),
    };
    list[0].dst[0] = random_view(1, 1, 4, 150000);
    list[1].dst[0] = bench_view(TN_TYPE_I32, 1, 1, 4, 1);
    list[2].dst[0] = bench_view(TN_TYPE_I32, 1, 1, 4, 40);
    for (size_t i = 0; i < TN_COUNT(list); i++) add_src(&list[i], x);
    time_list(list, TN_COUNT(list), n_threads);
}

static void time_ops(int n_threads)
{
    for (int64_t tokens = 1; tokens <= 512; tokens *= 512) {
        printf("%d tokens, %d threads\n", (int)tokens, n_threads);
        time_norms(tokens, n_threads);
        time_activations(tokens, n_threads);
        time_heads(tokens, n_threads);
    }
    time_logits(n_threads);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "time") == 0) {
        time_ops(argc > 2 ? atoi(argv[2]) : 1);
        return 0;
    }
    check_unary();
    check_binary();
    check_glu();
    check_norms();
    check_rope();
    check_softmax();
    check_moe();
    check_copy();
    check_rows();
    return bench_report();
}
