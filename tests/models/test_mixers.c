// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixers beyond plain attention: latent attention from both forms of its tensors; recurrent states of
// sequences that are cut, branched, cancelled, saved.
#include "models/run/session.h"
#include "tests/models/tiny_model.h"
#include "tests/unit/test.h"

#include <tenon/session.h>

enum { N_TOKENS = 40 };

static tn_model *open_file(tn_context *ctx, const tiny_file *f)
{
    tn_model *m = NULL;
    size_t size;
    void *data = tiny_write(ctx, f, &size);
    tiny_must(tn_model_open_memory(ctx, data, size, "tiny", NULL, &m));
    return m;
}

// Logits of the last of N_TOKENS tokens, in chunks of 16.
static void logits(tn_model *m, tn_dtype cache, float *out)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    int32_t ids[N_TOKENS];
    for (int32_t i = 0; i < N_TOKENS; i++) ids[i] = (i * 37 + 11) % TINY_MODEL_VOCAB;
    tn_session_config_default(&cfg);
    cfg.n_ctx = 64;
    cfg.n_batch = 16;
    cfg.cache_type_k = cfg.cache_type_v = cache;
    tiny_must(tn_session_create(m, &cfg, &s));
    tiny_must(tn_session_feed(s, 0, ids, N_TOKENS));
    memcpy(out, tn_session_logits(s, 0), TINY_MODEL_VOCAB * sizeof *out);
    TEST_CHECK(!tn_session_logits(s, -1) && !tn_session_logits(s, 1));
    tn_session_destroy(&s);
}

static double rel_l2(const float *got, const float *want)
{
    double diff = 0.0, norm = 0.0;
    for (int32_t i = 0; i < TINY_MODEL_VOCAB; i++) {
        double d = (double)got[i] - want[i];
        diff += d * d;
        norm += (double)want[i] * want[i];
    }
    return sqrt(diff / norm);
}

// --- latent attention ------------------------------------------------------------------------------

// Two matrices of heads become one as older files have it, with the older keys.
static void make_old(tiny_file *f, tn_dtype type)
{
    const tiny_shape *s = &f->shape;
    int64_t rows = (int64_t)s->n_heads * (s->head_dim - TINY_MLA_ROT + TINY_MLA_VALUE);
    tiny_drop_key(f, "attention.key_length_mla");
    tiny_drop_key(f, "attention.value_length_mla");
    tiny_u32(f, "attention.key_length", s->head_dim);
    tiny_u32(f, "attention.value_length", TINY_MLA_VALUE);
    tiny_u32(f, "attention.head_count_kv", s->n_heads);
    for (int32_t i = 0; i < s->n_layers; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.attn_v_b.weight", i);
        tiny_drop_tensor(f, name);
        snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", i);
        tiny_drop_tensor(f, name);
        tiny_add_tensor(f, i, "attn_kv_b.weight", rows, s->kv_rank, 0);
        f->tensors[f->n_tensors - 1].dtype = type;
    }
}

static const float *weight(const tn_model *m, const char *what, int32_t layer)
{
    char name[64];
    snprintf(name, sizeof name, "blk.%d.%s.weight", layer, what);
    int32_t i = tn_model_find_weight(m, name);
    return i >= 0 ? m->weights[i].host.data : NULL;
}

// The newer form is filled from the older one by its definition: both must give the same bits.
static void fill_new(tn_model *new_form, const tn_model *old_form, const tiny_shape *s)
{
    int64_t nope = s->head_dim - TINY_MLA_ROT, rows = nope + TINY_MLA_VALUE;
    for (int32_t layer = 0; layer < s->n_layers; layer++) {
        const float *kv = weight(old_form, "attn_kv_b", layer);
        float *k = (float *)(uintptr_t)weight(new_form, "attn_k_b", layer),
              *v = (float *)(uintptr_t)weight(new_form, "attn_v_b", layer);
        if (!kv || !k || !v) abort();
        for (int64_t h = 0; h < s->n_heads; h++)
            for (int64_t c = 0; c < s->kv_rank; c++) {
                const float *column = kv + h * rows * s->kv_rank + c;
                for (int64_t n = 0; n < nope; n++)
                    k[(h * s->kv_rank + c) * nope + n] = column[n * s->kv_rank];
                for (int64_t d = 0; d < TINY_MLA_VALUE; d++)
                    v[(h * TINY_MLA_VALUE + d) * s->kv_rank + c] = column[(nope + d) * s->kv_rank];
            }
    }
}

static void mla_forms(tn_context *ctx)
{
    tiny_shape shape = tiny_shapes[TINY_DEEPSEEK2], *s = &shape;
    shape.kv_rank = 48; // values end inside of a block of a quantised cache
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    float want[TINY_MODEL_VOCAB], got[TINY_MODEL_VOCAB];
    tiny_describe(s, f);
    tn_model *new_form = open_file(ctx, f), *old_form;
    make_old(f, TN_TYPE_F32);
    old_form = open_file(ctx, f);
    fill_new(new_form, old_form, s);
    logits(new_form, TN_TYPE_F32, want);
    logits(old_form, TN_TYPE_F32, got);
    TEST_CHECK(memcmp(got, want, sizeof want) == 0);
    logits(old_form, TN_TYPE_Q8_0, got);
    TEST_CHECK(rel_l2(got, want) < 0.05);
    tn_model_unref(&old_form);
    tiny_describe(s, f);
    make_old(f, TN_TYPE_F16);
    old_form = open_file(ctx, f);
    logits(old_form, TN_TYPE_F32, got);
    TEST_CHECK(rel_l2(got, want) < 0.01);
    tn_model_unref(&old_form);
    tiny_describe(s, f);
    make_old(f, TN_TYPE_F32);
    for (int32_t i = 0; i < f->n_tensors; i++)
        if (strstr(f->tensors[i].name, "attn_kv_b")) f->tensors[i].ne[0]--;
    size_t size;
    void *data = tiny_write(ctx, f, &size);
    TEST_CHECK(tn_model_open_memory(ctx, data, size, "tiny", NULL, &old_form) == TN_ERR_MODEL);
    tn_model_unref(&new_form);
    free(f);
}

// The cache holds the compressed row only.
static void mla_cache_size(tn_context *ctx)
{
    tn_model *m = tiny_model_open(ctx, &tiny_shapes[TINY_DEEPSEEK2]);
    tn_session_config cfg;
    tn_session_memory memory = {.struct_size = sizeof memory};
    tn_session_config_default(&cfg);
    cfg.n_ctx = 64;
    tiny_must(tn_session_predict(m, &cfg, &memory));
    TEST_CHECK(memory.cache ==
               3ull * 64 * (uint64_t)(tiny_shapes[TINY_DEEPSEEK2].kv_rank + TINY_MLA_ROT) * 2);
    tn_model_unref(&m);
}

// --- recurrent layers ------------------------------------------------------------------------------

enum { N_SEQ = 3, MAX_LENGTH = 90 };

typedef struct texts {
    int32_t ids[N_SEQ][MAX_LENGTH], length[N_SEQ];
} texts;

static tn_session *recurrent_session(tn_model *m, int32_t n_seq, int32_t n_checkpoints)
{
    tn_session_config cfg;
    tn_session *s = NULL;
    tn_session_config_default(&cfg);
    cfg.n_ctx = N_SEQ * 128;
    cfg.n_batch = 24;
    cfg.n_seq = n_seq;
    cfg.cache_type_k = cfg.cache_type_v = TN_TYPE_F32;
    cfg.n_checkpoints = n_checkpoints;
    tiny_must(tn_session_create(m, &cfg, &s));
    return s;
}

// Feeds one more token to each sequence that has any; the logits are those of a session that was fed the text
// at once.
static void check_texts(tn_model *m, tn_session *s, texts *t, int32_t step)
{
    for (int32_t q = 0; q < N_SEQ; q++) {
        if (t->length[q] == 0 || t->length[q] == MAX_LENGTH) continue;
        int32_t id = (step * 31 + q * 7) % TINY_MODEL_VOCAB;
        t->ids[q][t->length[q]++] = id;
        TEST_CHECK_STATUS(tn_session_feed(s, q, &id, 1), TN_OK);
        float got[TINY_MODEL_VOCAB];
        memcpy(got, tn_session_logits(s, 0), sizeof got);
        tn_session *plain = recurrent_session(m, 1, 0);
        TEST_CHECK_STATUS(tn_session_feed(plain, 0, t->ids[q], t->length[q]), TN_OK);
        if (!TEST_CHECK(rel_l2(got, tn_session_logits(plain, 0)) < 2e-5))
            printf("    step %d sequence %d of %d tokens\n", step, q, t->length[q]);
        tn_session_destroy(&plain);
    }
}

static void feed_some(tn_session *s, texts *t, int32_t q, int32_t n, uint32_t *random)
{
    n = TN_MIN(n, MAX_LENGTH - 1 - t->length[q]);
    if (n < 1) return;
    for (int32_t i = 0; i < n; i++) {
        *random = *random * 1664525u + 1013904223u;
        t->ids[q][t->length[q] + i] = (int32_t)(*random >> 16) % TINY_MODEL_VOCAB;
    }
    TEST_CHECK_STATUS(tn_session_feed(s, q, t->ids[q] + t->length[q], n), TN_OK);
    t->length[q] += n;
}

// Any mix of feeding, cutting and branching, with few states kept and with many.
static void mixed_history(tn_model *m, int32_t n_checkpoints)
{
    tn_session *s = recurrent_session(m, N_SEQ, n_checkpoints);
    texts t = {0};
    uint32_t random = 7u + (uint32_t)n_checkpoints;
    for (int32_t step = 0; step < 24; step++) {
        random = random * 1664525u + 1013904223u;
        int32_t q = (int32_t)(random >> 24) % N_SEQ, kind = (int32_t)(random >> 20) % 4,
                n = (int32_t)(random >> 8) % 60;
        if (kind == 0 && t.length[q] > 0) {
            t.length[q] = n % (t.length[q] + 1);
            TEST_CHECK_STATUS(tn_session_truncate(s, q, t.length[q]), TN_OK);
        } else if (kind == 1 && t.length[q] > 0) {
            int32_t to = (q + 1) % N_SEQ;
            t.length[to] = n % (t.length[q] + 1);
            memcpy(t.ids[to], t.ids[q], sizeof t.ids[to]);
            TEST_CHECK_STATUS(tn_session_branch(s, q, to, t.length[to]), TN_OK);
        } else {
            feed_some(s, &t, q, 1 + n, &random);
        }
        if (step % 3 == 2) check_texts(m, s, &t, step);
    }
    tn_session_destroy(&s);
}

// A step that is cancelled, while it goes back or later, changes nothing.
static void cancelled(tn_model *m)
{
    tn_session *s = recurrent_session(m, N_SEQ, 0);
    texts t = {0};
    uint32_t random = 3;
    feed_some(s, &t, 0, 50, &random);
    t.length[0] = 41;
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 41), TN_OK);
    tn_session_cancel(s, 1);
    for (int32_t i = 0; i < 5; i++) TEST_CHECK_STATUS(tn_session_feed(s, 0, t.ids[0], 3), TN_ERR_CANCELLED);
    tn_session_cancel(s, 0);
    TEST_CHECK(tn_session_length(s, 0) == 41);
    check_texts(m, s, &t, 1);
    tn_session_cancel(s, 1);
    for (int32_t i = 0; i < 5; i++) TEST_CHECK_STATUS(tn_session_feed(s, 0, t.ids[0], 3), TN_ERR_CANCELLED);
    tn_session_cancel(s, 0);
    check_texts(m, s, &t, 2);
    tn_session_destroy(&s);
}

// Going back to where the prompt ended costs nothing, however long the text after it; in the middle a part of
// it.
static void kept_states(tn_model *m)
{
    tn_session *s = recurrent_session(m, 1, 4);
    texts t = {0};
    uint32_t random = 5;
    int32_t slot;
    feed_some(s, &t, 0, 40, &random);
    for (int32_t i = 0; i < 40; i++) feed_some(s, &t, 0, 1, &random);
    TEST_CHECK(tn_cache_state_find(&s->cache, 0, &slot) == 80 && slot >= 0);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 78), TN_OK);
    TEST_CHECK(tn_cache_state_find(&s->cache, 0, &slot) >= 70);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 40), TN_OK);
    TEST_CHECK(tn_cache_state_find(&s->cache, 0, &slot) == 40);
    TEST_CHECK_STATUS(tn_session_truncate(s, 0, 39), TN_OK);
    TEST_CHECK(tn_cache_state_find(&s->cache, 0, &slot) <= 39);
    t.length[0] = 39;
    check_texts(m, s, &t, 1);
    tn_session_destroy(&s);
}

static void recurrent(tn_context *ctx)
{
    static const int32_t archs[] = {TINY_QWEN35, TINY_QWEN3NEXT, TINY_QWEN35MOE};
    for (size_t i = 0; i < TN_COUNT(archs); i++) {
        tn_model *m = tiny_model_open(ctx, &tiny_shapes[archs[i]]);
        mixed_history(m, 0);
        mixed_history(m, 1);
        mixed_history(m, 6);
        cancelled(m);
        kept_states(m);
        tn_model_unref(&m);
    }
}

// Which layers are recurrent, and sizes that do not fit each other.
static void delta_keys(tn_context *ctx)
{
    tiny_file *f = malloc(sizeof *f);
    if (!f) abort();
    tn_model *m = NULL;
    size_t size;
    tiny_describe(&tiny_shapes[TINY_QWEN35], f);
    tiny_u32(f, "ssm.inner_size", 100);
    void *data = tiny_write(ctx, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", NULL, &m), TN_ERR_FORMAT);
    // The array says the same as the interval, and then something else.
    float want[TINY_MODEL_VOCAB], got[TINY_MODEL_VOCAB];
    tiny_describe(&tiny_shapes[TINY_QWEN35], f);
    m = open_file(ctx, f);
    logits(m, TN_TYPE_F32, want);
    tn_model_unref(&m);
    static const uint8_t layers[2][5] = {{1, 1, 0, 1, 1}, {1, 0, 1, 1, 1}};
    tiny_drop_key(f, "full_attention_interval");
    tiny_array(f, "attention.recurrent_layers", TN_GGUF_BOOL, layers[0], 5);
    m = open_file(ctx, f);
    logits(m, TN_TYPE_F32, got);
    TEST_CHECK(memcmp(got, want, sizeof want) == 0);
    tn_model_unref(&m);
    tiny_array(f, "attention.recurrent_layers", TN_GGUF_BOOL, layers[1], 5);
    data = tiny_write(ctx, f, &size);
    TEST_CHECK_STATUS(tn_model_open_memory(ctx, data, size, "tiny", NULL, &m), TN_ERR_MODEL);
    free(f);
}

int main(void)
{
    tn_context *ctx = NULL;
    tiny_must(tn_context_create(NULL, &ctx));
    mla_forms(ctx);
    mla_cache_size(ctx);
    recurrent(ctx);
    delta_keys(ctx);
    tn_context_destroy(&ctx);
    return test_done();
}
