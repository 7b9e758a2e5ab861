// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantising: one GGUF file into another whose tensors have the types that a mix gives them. Keys are
// copied except those about splitting; a tensor that has its type already is copied byte by byte.
//
// Work is cut into pieces of a fixed number of elements, whatever the number of threads is. Without
// importance weights every block is encoded by itself, so pieces need not end with rows, and results do not
// depend on the split. With such weights a piece is whole rows. Memory is one chunk of output, two pieces of
// f32 per thread, and the weights of one tensor.
#include "core/compiler.h"
#include "models/file.h"
#include "models/quantize/imatrix.h"
#include "models/keys/keys.h"
#include "models/quantize/quantize_mix.h"
#include "models/quantize/quantize_types.h"
#include "ops/quant.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tenon/file.h>

enum {
    PIECE_ELEMS = 16384, // a multiple of every block; 64 KiB of f32 stay in a core's cache
    CHUNK_PIECES = 512,  // at 4 bytes an element, 32 MiB of output
    CHUNK_ELEMS = PIECE_ELEMS * CHUNK_PIECES,
    VERSION = 2, // general.quantization_version: the block layouts that files have today
};

typedef struct piece {
    double error; // sum of squared differences
    enum { PIECE_GOOD, PIECE_BAD_SOURCE, PIECE_BAD_RESULT } state;
} piece;

// How a tensor is cut.
typedef struct cutting {
    int64_t cols, rows; // of each matrix
    int64_t n_matrices;
    int64_t piece, chunk; // elements
    bool weighted;
} cutting;

typedef struct quantizer {
    tn_context *ctx;
    const tn_quantize_config *cfg;
    tn_gguf *in;
    tn_gguf_writer *out;
    const tn_quant_mix *mix;
    char arch[64];
    tn_quant_mix_model model;
    tn_imatrix *imatrix;
    tn_dtype *types; // of the tensors, in their order
    int32_t n_threads;
    int64_t piece_max;  // elements
    float *importance;  // of one tensor
    float *values;      // 2 pieces per thread: before and after
    double error_total; // over all tensors that change
    int64_t n_changed;  // their elements
    piece *pieces;      // of one chunk
    uint8_t *packed;    // one chunk of the largest result
    uint8_t *source; // one chunk of the largest tensor: touching pages that the file has lost would end all
} quantizer;

// --- one chunk -------------------------------------------------------------------------------------

typedef struct chunk {
    tn_dtype from, to;
    const uint8_t *src;
    uint8_t *dst;     // NULL: src is only checked
    int64_t first, n; // elements, of the tensor and here
    cutting cut;
    const float *importance; // [matrices, cols], or NULL
    int64_t piece_max;
    float *values;
    piece *pieces;
    // The next piece that no thread works on yet. Relaxed: it orders nothing, results are read after the team
    // has ended.
    _Atomic int64_t next;
} chunk;

static void encode(const chunk *c, int64_t first, const float *x, uint8_t *dst, int64_t n)
{
    const tn_quant_info *to = tn_quant_info_get(c->to);
    if (!c->importance) {
        to->from_f32(x, dst, n, NULL);
        return;
    }
    int64_t cols = c->cut.cols, row = (c->first + first) / cols;
    for (int64_t i = 0; i < n; i += cols, row++, dst += tn_dtype_row_size(c->to, cols))
        to->from_f32(x + i, dst, cols, c->importance + row / c->cut.rows * cols);
}

static piece convert_piece(const chunk *c, int64_t first, float *before, float *after)
{
    const tn_quant_info *from = tn_quant_info_get(c->from), *to = tn_quant_info_get(c->to);
    int64_t n = TN_MIN(c->n - first, c->cut.piece);
    const uint8_t *src = c->src + tn_dtype_row_size(c->from, first);
    piece result = {.state = PIECE_GOOD};
    if (!tn_quant_row_valid(c->from, src, n)) return (piece){.state = PIECE_BAD_SOURCE};
    if (!c->dst) return result;
    uint8_t *dst = c->dst + tn_dtype_row_size(c->to, first);
    from->to_f32(src, before, n);
    encode(c, first, before, dst, n);
    if (!tn_quant_row_valid(c->to, dst, n)) return (piece){.state = PIECE_BAD_RESULT};
    to->to_f32(dst, after, n);
    for (int64_t k = 0; k < n; k++) {
        double d = (double)after[k] - (double)before[k];
        result.error += d * d;
    }
    return result;
}

static void convert_pieces(void *arg, int32_t task, int32_t n_tasks)
{
    TN_UNUSED(n_tasks);
    chunk *c = arg;
    float *values = c->values + (size_t)task * 2 * (size_t)c->piece_max;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&c->next, 1, memory_order_relaxed);
        if (i >= (c->n + c->cut.piece - 1) / c->cut.piece) return;
        c->pieces[i] = convert_piece(c, i * c->cut.piece, values, values + c->piece_max);
    }
}

// Converts a chunk and adds its squared error to *error.
static tn_status run_chunk(quantizer *q, chunk *c, const tn_gguf_tensor *t, double *error)
{
    int64_t n = (c->n + c->cut.piece - 1) / c->cut.piece;
    tn_status status = tn_parallel(q->ctx, (int32_t)TN_MIN(n, q->n_threads), convert_pieces, c);
    if (status != TN_OK) return status;
    for (int64_t i = 0; i < n; i++) {
        if (c->pieces[i].state == PIECE_BAD_SOURCE)
            return tn_fail(q->ctx, TN_ERR_FORMAT,
                           "tensor \"%s\" (%s) has values or scales that are not finite", t->name,
                           tn_dtype_name(c->from));
        if (c->pieces[i].state == PIECE_BAD_RESULT)
            return tn_fail(q->ctx, TN_ERR_FORMAT, "tensor \"%s\" (%s) has values too large for %s", t->name,
                           tn_dtype_name(c->from), tn_dtype_name(c->to));
        *error += c->pieces[i].error;
    }
    return TN_OK;
}

static cutting cut_tensor(const quantizer *q, const tn_gguf_tensor *t, tn_dtype to)
{
    cutting c = {.cols = t->ne[t->n_dims - 1], .rows = t->n_dims > 1 ? t->ne[t->n_dims - 2] : 1};
    c.n_matrices = tn_gguf_tensor_elems(t) / c.cols / c.rows;
    c.weighted = q->imatrix && to != t->dtype && tn_imatrix_has(q->imatrix, t->name);
    c.piece = c.weighted ? TN_MAX(c.cols, PIECE_ELEMS / c.cols * c.cols) : PIECE_ELEMS;
    c.chunk = TN_MAX(c.piece, CHUNK_ELEMS / c.piece * c.piece);
    return c;
}

static tn_status write_tensor(quantizer *q, const tn_gguf_tensor *t, tn_dtype to, double *rmse)
{
    bool copy = to == t->dtype;
    int64_t n = tn_gguf_tensor_elems(t);
    cutting cut = cut_tensor(q, t, to);
    double error = 0;
    if (cut.weighted) {
        tn_status status = tn_imatrix_read(q->imatrix, t->name, cut.n_matrices, cut.cols, q->importance);
        if (status != TN_OK) return status;
    }
    for (int64_t first = 0; first < n; first += cut.chunk) {
        int64_t n_chunk = TN_MIN(n - first, cut.chunk);
        tn_status status = tn_gguf_tensor_read(q->in, t, tn_dtype_row_size(t->dtype, first), q->source,
                                               tn_dtype_row_size(t->dtype, n_chunk));
        if (status != TN_OK) return status;
        chunk c = {.from = t->dtype,
                   .to = to,
                   .src = q->source,
                   .dst = copy ? NULL : q->packed,
                   .first = first,
                   .n = n_chunk,
                   .cut = cut,
                   .importance = cut.weighted ? q->importance : NULL,
                   .piece_max = q->piece_max,
                   .values = q->values,
                   .pieces = q->pieces};
        status = run_chunk(q, &c, t, &error);
        if (status != TN_OK) return status;
        status = tn_gguf_writer_data(q->out, copy ? c.src : q->packed, tn_dtype_row_size(to, c.n));
        if (status != TN_OK) return status;
    }
    *rmse = n > 0 ? sqrt(error / (double)n) : 0;
    if (!copy) {
        q->error_total += error;
        q->n_changed += n;
    }
    return TN_OK;
}

// --- what the file says ----------------------------------------------------------------------------

static tn_status read_arch(quantizer *q)
{
    tn_gguf_str arch = {0};
    tn_status status = tn_gguf_get_str(q->in, "general.architecture", &arch);
    if (status != TN_OK) return status;
    if (arch.size == 0 || arch.size >= sizeof q->arch || memchr(arch.data, 0, arch.size))
        return tn_fail(q->ctx, TN_ERR_MODEL, "%s: the key general.architecture is missing, or no name",
                       tn_gguf_name(q->in));
    memcpy(q->arch, arch.data, arch.size);
    return TN_OK;
}

// A value that may differ between layers: that of the first layer that has one.
static tn_status read_heads(const tn_keys *keys, const char *name, int32_t *out)
{
    const tn_gguf_kv *kv = tn_keys_find(keys, name);
    if (!kv || kv->type != TN_GGUF_ARRAY) return tn_keys_i32(keys, name, 0, out);
    int32_t n = (int32_t)TN_MIN(kv->count, (uint64_t)INT32_MAX), v = 0;
    for (int32_t layer = 0; layer < n && v == 0; layer++) {
        tn_status status = tn_keys_layer_i32(keys, name, layer, n, 0, INT32_MAX, 0, &v);
        if (status != TN_OK) return status;
    }
    *out = v;
    return TN_OK;
}

static tn_status read_model(quantizer *q)
{
    tn_status status = read_arch(q);
    if (status != TN_OK) return status;
    tn_keys keys = {q->ctx, q->in, q->arch, NULL};
    int32_t n_layer = 0, n_expert = 0, n_head = 0;
    status = tn_keys_i32(&keys, "block_count", 0, &n_layer);
    if (status == TN_OK) status = tn_keys_i32(&keys, "expert_count", 0, &n_expert);
    if (status == TN_OK) status = read_heads(&keys, "attention.head_count", &n_head);
    int32_t n_head_kv = n_head;
    if (status == TN_OK) status = read_heads(&keys, "attention.head_count_kv", &n_head_kv);
    if (status != TN_OK) return status;
    q->model = (tn_quant_mix_model){.arch = q->arch,
                                    .n_layer = n_layer,
                                    .n_head = n_head,
                                    .n_head_kv = n_head_kv,
                                    .n_expert = n_expert,
                                    .has_output = tn_gguf_find_tensor(q->in, "output.weight") != NULL,
                                    .has_imatrix = q->imatrix != NULL};
    for (int64_t i = 0; i < tn_gguf_n_tensors(q->in); i++)
        q->model.n_attn_v += tn_quant_mix_is_attn_v(tn_gguf_tensor_at(q->in, i)->name);
    return TN_OK;
}

// --- the whole file --------------------------------------------------------------------------------

// Memory for the largest tensor, chunk and row.
static tn_status reserve(quantizer *q)
{
    size_t packed = 1, source = 1;
    int64_t n_pieces = 1, columns = 1;
    q->piece_max = PIECE_ELEMS;
    for (int64_t i = 0; i < tn_gguf_n_tensors(q->in); i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(q->in, i);
        cutting cut = cut_tensor(q, t, q->types[i]);
        int64_t n = TN_MIN(tn_gguf_tensor_elems(t), cut.chunk);
        q->piece_max = TN_MAX(q->piece_max, cut.piece);
        n_pieces = TN_MAX(n_pieces, (n + cut.piece - 1) / cut.piece);
        source = TN_MAX(source, tn_dtype_row_size(t->dtype, n));
        if (cut.weighted) columns = TN_MAX(columns, cut.n_matrices * cut.cols);
        if (q->types[i] != t->dtype) packed = TN_MAX(packed, tn_dtype_row_size(q->types[i], n));
    }
    q->n_threads = (int32_t)TN_MIN(tn_context_n_threads(q->ctx), n_pieces);
    q->pieces = tn_calloc(q->ctx, (size_t)n_pieces, sizeof *q->pieces);
    q->values = tn_alloc(q->ctx, (size_t)q->n_threads * 2 * (size_t)q->piece_max * sizeof *q->values);
    q->importance = tn_alloc(q->ctx, (size_t)columns * sizeof *q->importance);
    q->packed = tn_alloc(q->ctx, packed);
    q->source = tn_alloc(q->ctx, source);
    return q->pieces && q->values && q->importance && q->packed && q->source ? TN_OK : TN_ERR_MEMORY;
}

static tn_status pick_types(quantizer *q)
{
    q->types = tn_calloc(q->ctx, (size_t)tn_gguf_n_tensors(q->in) + 1, sizeof *q->types);
    if (!q->types) return TN_ERR_MEMORY;
    return tn_quantize_pick_types(q->ctx, q->in, q->cfg, q->mix, &q->model, q->types);
}

// An importance matrix that names none of the tensors was made for another model.
static tn_status open_imatrix(quantizer *q)
{
    if (!q->cfg->imatrix) return TN_OK;
    tn_status status = tn_imatrix_open(q->ctx, q->cfg->imatrix, &q->imatrix);
    if (status != TN_OK) return status;
    for (int64_t i = 0; i < tn_gguf_n_tensors(q->in); i++)
        if (tn_imatrix_has(q->imatrix, tn_gguf_tensor_at(q->in, i)->name)) return TN_OK;
    return tn_fail(q->ctx, TN_ERR_ARG, "%s is about no tensor of %s; it was made for another model",
                   q->cfg->imatrix, tn_gguf_name(q->in));
}

static bool key_is(tn_gguf_str key, const char *name)
{
    return key.size == strlen(name) && memcmp(key.data, name, key.size) == 0;
}

static tn_status write_keys(quantizer *q)
{
    static const char split[] = "split.", file_type[] = "general.file_type";
    static const char version[] = "general.quantization_version";
    size_t split_size = sizeof split - 1;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < tn_gguf_n_kv(q->in) && status == TN_OK; i++) {
        const tn_gguf_kv *kv = tn_gguf_kv_at(q->in, i);
        bool is_split = kv->key.size >= split_size && memcmp(kv->key.data, split, split_size) == 0;
        if (is_split || key_is(kv->key, file_type) || key_is(kv->key, version)) continue;
        status = tn_gguf_writer_copy_kv(q->out, kv);
    }
    if (status == TN_OK) status = tn_gguf_writer_put_u32(q->out, version, VERSION);
    if (status == TN_OK) status = tn_gguf_writer_put_u32(q->out, file_type, tn_quant_mix_file_type(q->mix));
    return status;
}

static tn_status write_file(quantizer *q)
{
    int64_t n = tn_gguf_n_tensors(q->in);
    tn_status status = write_keys(q);
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(q->in, i);
        status = tn_gguf_writer_add_tensor(q->out, t->name, q->types[i], t->n_dims, t->ne);
    }
    if (status == TN_OK) status = tn_gguf_writer_begin(q->out);
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(q->in, i);
        double rmse = 0;
        status = write_tensor(q, t, q->types[i], &rmse);
        if (status != TN_OK || !q->cfg->report) continue;
        if (q->cfg->report(q->cfg->user, t->name, tn_dtype_name(t->dtype), tn_dtype_name(q->types[i]), rmse,
                           i + 1, n))
            status = tn_fail(q->ctx, TN_ERR_CANCELLED, "quantising was cancelled");
    }
    return status == TN_OK ? tn_gguf_writer_commit(&q->out, NULL, NULL) : status;
}

const char *tn_quantize_types(void)
{
    return "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS Q3_K_L "
           "Q3_K_M "
           "Q3_K_S Q2_K Q2_K_S MXFP4 MXFP4_MOE";
}

void tn_quantize_config_init(tn_quantize_config *cfg, size_t struct_size)
{
    TN_STRUCT_INIT(tn_quantize_config, cfg, struct_size, {.type = NULL});
}

static tn_status read_args(tn_context *ctx, const char *in, const char *out, const tn_quantize_config *given,
                           tn_quantize_config *cfg, const tn_quant_mix **mix)
{
    tn_quantize_config_default(cfg);
    tn_status status = TN_STRUCT_READ(ctx, tn_quantize_config, given, cfg);
    if (status != TN_OK) return status;
    if (!in || !out || !cfg->type)
        return tn_fail(ctx, TN_ERR_ARG, "tn_quantize: two paths and a type are needed");
    *mix = tn_quant_mix_find(cfg->type);
    if (*mix) return TN_OK;
    return tn_fail(ctx, TN_ERR_ARG, "\"%s\" is no type to quantise to; there are: %s", cfg->type,
                   tn_quantize_types());
}

tn_status tn_quantize(tn_context *ctx, const char *in, const char *out, const tn_quantize_config *given)
{
    TN_NEED(NULL, ctx);
    tn_quantize_config own, *cfg = &own;
    quantizer q = {.ctx = ctx, .cfg = cfg};
    tn_status status = read_args(ctx, in, out, given, cfg, &q.mix);
    if (status == TN_OK) status = tn_gguf_open(ctx, in, &q.in);
    if (status == TN_OK) status = tn_refuse_own_file(q.in, out);
    if (status == TN_OK) status = open_imatrix(&q);
    if (status == TN_OK) status = read_model(&q);
    if (status == TN_OK) status = pick_types(&q);
    if (status == TN_OK) status = reserve(&q);
    if (status == TN_OK) status = tn_gguf_writer_open(ctx, out, &q.out);
    if (status == TN_OK) status = write_file(&q);
    if (status == TN_OK && cfg->rmse)
        *cfg->rmse = q.n_changed > 0 ? sqrt(q.error_total / (double)q.n_changed) : 0;
    tn_gguf_writer_abort(&q.out);
    tn_imatrix_close(&q.imatrix);
    tn_free(ctx, q.packed);
    tn_free(ctx, q.source);
    tn_free(ctx, q.importance);
    tn_free(ctx, q.values);
    tn_free(ctx, q.pieces);
    tn_free(ctx, q.types);
    tn_gguf_close(&q.in);
    return status;
}
