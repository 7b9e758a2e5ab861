// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon inspect: the contents of a GGUF file, and the memory that it needs as a model.
#include "tools/common.h"
#include "tools/commands/inspect.h"
#include "tools/json/json.h"
#include "tools/output.h"

#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>
#include <tenon/graph.h>

enum { VALUE_CHARS = 60, VALUE_ITEMS = 6, NAME_SIZE = 160 };

typedef struct inspect_state {
    tool t;
    const char *path;
    tn_file *file;
    tn_model *model;   // NULL: the file is no model that can run
    char reason[1024]; // why not
    tn_model_info info;
    bool has_memory;
    tn_session_config cfg;
    tn_session_memory memory;
} inspect_state;

// --- facts -----------------------------------------------------------------------------------------------

static void open_model(inspect_state *s)
{
    tn_model_config cfg;
    tool_session_config(&s->t, &s->cfg);
    tool_model_config(&s->t, &s->cfg, &cfg);
    cfg.metadata_only = 1;
    if (tn_model_open(s->t.ctx, s->path, &cfg, &s->model) != TN_OK) {
        tn_context_error(s->t.ctx, s->reason, sizeof s->reason);
        clean_text(s->reason);
        return;
    }
    s->info.struct_size = sizeof s->info;
    tn_model_info_get(s->model, &s->info);
    if (s->cfg.n_ctx == 0)
        s->cfg.n_ctx = s->info.n_ctx_train > 0 && s->info.n_ctx_train < 4096 ? s->info.n_ctx_train : 4096;
    s->memory.struct_size = sizeof s->memory;
    s->has_memory = tn_session_predict(s->model, &s->cfg, &s->memory) == TN_OK;
    if (s->has_memory) return;
    tn_context_error(s->t.ctx, s->reason, sizeof s->reason);
    clean_text(s->reason);
}

typedef struct type_total {
    int64_t n_tensors;
    uint64_t size;
} type_total;

static void count_types(const tn_file *file, type_total totals[TN_TYPE_COUNT])
{
    memset(totals, 0, TN_TYPE_COUNT * sizeof *totals);
    for (int64_t i = 0; i < tn_file_n_tensors(file); i++) {
        tn_file_tensor tensor = {.struct_size = sizeof tensor};
        tn_file_tensor_get(file, i, &tensor);
        if (tensor.dtype < 0 || tensor.dtype >= TN_TYPE_COUNT) continue;
        totals[tensor.dtype].n_tensors++;
        totals[tensor.dtype].size += tensor.size;
    }
}

// Key i with its value cut for reading, or in full. *name carries all three and is freed by tn_text_free.
static int get_key(const inspect_state *s, int64_t i, bool full, char **name, const char **type,
                   const char **value)
{
    tn_status status = tn_file_key(s->file, i, full ? 0 : VALUE_CHARS, name, type, value);
    if (status == TN_OK && !full && (*type)[0] == '[') { // the elements of arrays count, not their characters
        tn_text_free(s->t.ctx, *name);
        status = tn_file_key(s->file, i, VALUE_ITEMS, name, type, value);
    }
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s: key %lld", s->path, (long long)i);
}

// --- text ------------------------------------------------------------------------------------------------

static int print_keys(const inspect_state *s, bool full)
{
    for (int64_t i = 0; i < tn_file_n_keys(s->file); i++) {
        char *name;
        const char *type, *value;
        int code = get_key(s, i, full, &name, &type, &value);
        if (code) return code;
        printf("%s  %s  %s\n", name, type, value);
        tn_text_free(s->t.ctx, name);
        if (!out_flush()) return 0;
    }
    return 0;
}

static void print_tensor(const tn_file_tensor *tensor)
{
    char name[NAME_SIZE], size[32];
    printf("%-40s %-7s [", shown(tensor->name, name, sizeof name), tn_dtype_name(tensor->dtype));
    for (int32_t d = 0; d < tensor->n_dims; d++) printf("%s%lld", d ? ", " : "", (long long)tensor->shape[d]);
    printf("]  %s  at %llu", size_text(tensor->size, size, sizeof size), (unsigned long long)tensor->offset);
    if (tensor->file > 0) printf(" of part %d", tensor->file + 1);
    putchar('\n');
}

static void print_tensors(const inspect_state *s)
{
    for (int64_t i = 0; i < tn_file_n_tensors(s->file); i++) {
        tn_file_tensor tensor = {.struct_size = sizeof tensor};
        tn_file_tensor_get(s->file, i, &tensor);
        print_tensor(&tensor);
        if (i % 1024 == 0 && !out_flush()) return;
    }
}

static void print_types(const inspect_state *s)
{
    type_total totals[TN_TYPE_COUNT];
    char size[32];
    count_types(s->file, totals);
    for (int t = 0; t < TN_TYPE_COUNT; t++)
        if (totals[t].n_tensors)
            printf("%-8s %6lld tensors  %s\n", tn_dtype_name(t), (long long)totals[t].n_tensors,
                   size_text(totals[t].size, size, sizeof size));
}

static void print_model(const inspect_state *s)
{
    const tn_model_info *m = &s->info;
    char name[NAME_SIZE], size[32];
    printf("architecture  %s%s\n", m->arch, m->is_encoder ? " (encoder)" : "");
    if (m->name && *m->name) printf("name          %s\n", shown(m->name, name, sizeof name));
    printf("parameters    %.3f M, %.2f bits per weight\n", (double)m->n_params * 1e-6,
           m->n_params ? (double)m->weight_size * 8 / (double)m->n_params : 0.0);
    printf("layers        %d, width %d, feed-forward %d\n", m->n_layers, m->n_embd, m->n_ff);
    printf("heads         %d, for keys and values %d, of %d\n", m->n_heads, m->n_kv_heads, m->head_dim);
    if (m->n_experts) printf("experts       %d, %d used per token\n", m->n_experts, m->n_experts_used);
    printf("vocabulary    %d%s\n", m->n_vocab, m->has_tokenizer ? "" : " (no tokenizer in the file)");
    printf("context       %d (trained)\n", m->n_ctx_train);
    if (m->has_tokenizer) {
        bool own = tn_model_has_chat_template(s->model);
        printf("chat          %s%s\n", own ? "template of the file" : tn_chat_template_name(s->model),
               own ? "" : " (built in, the file has none)");
    }
    printf("per token     %s of weights\n", size_text(m->active_weight_size, size, sizeof size));
}

static void print_devices(const inspect_state *s)
{
    const tn_model_info *m = &s->info;
    printf("layers        %d on %s, %d on %s\n", m->device_layers, m->device, m->n_layers - m->device_layers,
           m->host_device);
    for (int32_t i = 0; i < s->memory.n_devices; i++) {
        const tn_device_memory *d = &s->memory.devices[i];
        char t[6][32];
        printf("%-13s weights %s, cache %s, activations %s, scratch %s, other %s: %s\n", d->device,
               size_text(d->weights, t[0], sizeof t[0]), size_text(d->cache, t[1], sizeof t[1]),
               size_text(d->arena, t[2], sizeof t[2]), size_text(d->scratch, t[3], sizeof t[3]),
               size_text(d->other, t[4], sizeof t[4]), size_text(d->total, t[5], sizeof t[5]));
    }
}

static void print_memory(const inspect_state *s)
{
    char a[32], b[32];
    const tn_session_memory *m = &s->memory;
    printf("weights       %s, mapped from the file\n", size_text(s->info.weight_size, a, sizeof a));
    printf("model         %s beyond the file\n", size_text(s->info.owned_size, a, sizeof a));
    if (!s->has_memory) {
        printf("session       cannot be predicted: %s\n", s->reason);
        return;
    }
    printf("cache         %s for %d tokens\n", size_text(m->cache, a, sizeof a), s->cfg.n_ctx);
    printf("activations   %s\n", size_text(m->arena, a, sizeof a));
    printf("scratch       %s\n", size_text(m->scratch, a, sizeof a));
    printf("other         %s\n", size_text(m->other, a, sizeof a));
    printf("session       %s; with the model %s beyond the file\n", size_text(m->total, a, sizeof a),
           size_text(m->total + s->info.owned_size, b, sizeof b));
    if (s->info.device_size > 0) print_devices(s);
}

static int print_text(const inspect_state *s)
{
    const options *o = s->t.opt;
    char size[32];
    if (opt_flag(o, OPT_TENSORS) || opt_flag(o, OPT_KEYS)) {
        int code = opt_flag(o, OPT_KEYS) ? print_keys(s, true) : 0;
        if (opt_flag(o, OPT_TENSORS)) print_tensors(s);
        return code;
    }
    printf("file          GGUF version %u, %s, %d part%s, %lld keys, %lld tensors\n",
           tn_file_version(s->file), size_text(tn_file_size(s->file), size, sizeof size),
           tn_file_n_parts(s->file), tn_file_n_parts(s->file) == 1 ? "" : "s",
           (long long)tn_file_n_keys(s->file), (long long)tn_file_n_tensors(s->file));
    adapter_facts a;
    if (s->model)
        print_model(s);
    else if (tool_adapter_facts(&s->t, s->file, &a))
        printf("adapter       %s of %lld weights of %s, rank %lld, alpha %s; --lora applies it to a model\n",
               a.kind, (long long)a.n_weights, a.arch, (long long)a.rank, a.alpha);
    else
        printf("no model that can run here: %s\n", s->reason);
    printf("\nMetadata\n");
    int code = print_keys(s, false);
    printf("\nTensors\n");
    print_tensors(s);
    printf("\nSizes\n");
    print_types(s);
    if (s->model) printf("\nMemory\n");
    if (s->model) print_memory(s);
    return code;
}

// --- JSON ------------------------------------------------------------------------------------------------

static int json_keys(const inspect_state *s, json *j)
{
    json_array(j, "keys");
    for (int64_t i = 0; i < tn_file_n_keys(s->file); i++) {
        char *name;
        const char *type, *value;
        int code = get_key(s, i, opt_flag(s->t.opt, OPT_KEYS), &name, &type, &value);
        if (code) return code;
        json_object(j, NULL);
        json_text(j, "name", name);
        json_text(j, "type", type);
        json_text(j, "value", value);
        json_end_object(j);
        tn_text_free(s->t.ctx, name);
    }
    json_end_array(j);
    return 0;
}

static void json_tensor(json *j, const tn_file_tensor *tensor)
{
    json_object(j, NULL);
    json_text(j, "name", tensor->name);
    json_text(j, "type", tn_dtype_name(tensor->dtype));
    json_array(j, "shape");
    for (int32_t d = 0; d < tensor->n_dims; d++) json_int(j, NULL, tensor->shape[d]);
    json_end_array(j);
    json_size(j, "bytes", tensor->size);
    json_size(j, "offset", tensor->offset);
    json_int(j, "part", tensor->file);
    json_end_object(j);
}

static void json_sizes(const inspect_state *s, json *j)
{
    type_total totals[TN_TYPE_COUNT];
    count_types(s->file, totals);
    json_array(j, "tensors");
    for (int64_t i = 0; i < tn_file_n_tensors(s->file); i++) {
        tn_file_tensor tensor = {.struct_size = sizeof tensor};
        tn_file_tensor_get(s->file, i, &tensor);
        json_tensor(j, &tensor);
    }
    json_end_array(j);
    json_array(j, "types");
    for (int t = 0; t < TN_TYPE_COUNT; t++) {
        if (!totals[t].n_tensors) continue;
        json_object(j, NULL);
        json_text(j, "type", tn_dtype_name(t));
        json_int(j, "tensors", totals[t].n_tensors);
        json_size(j, "bytes", totals[t].size);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_model(const inspect_state *s, json *j)
{
    const tn_model_info *m = &s->info;
    json_object(j, "model");
    json_text(j, "architecture", m->arch);
    json_text(j, "name", m->name);
    json_bool(j, "encoder", m->is_encoder);
    json_int(j, "layers", m->n_layers);
    json_int(j, "width", m->n_embd);
    json_int(j, "feed_forward", m->n_ff);
    json_int(j, "heads", m->n_heads);
    json_int(j, "kv_heads", m->n_kv_heads);
    json_int(j, "head_dim", m->head_dim);
    json_int(j, "experts", m->n_experts);
    json_int(j, "experts_used", m->n_experts_used);
    json_int(j, "vocabulary", m->n_vocab);
    json_int(j, "context_trained", m->n_ctx_train);
    json_bool(j, "tokenizer", m->has_tokenizer);
    json_text(j, "chat", m->has_tokenizer ? tn_chat_template_name(s->model) : NULL);
    json_bool(j, "chat_template", m->has_tokenizer && tn_model_has_chat_template(s->model));
    json_size(j, "parameters", m->n_params);
    json_size(j, "weight_bytes", m->weight_size);
    json_size(j, "active_weight_bytes", m->active_weight_size);
    json_end_object(j);
}

static void json_devices(const inspect_state *s, json *j)
{
    json_int(j, "device_layers", s->info.device_layers);
    json_array(j, "devices");
    for (int32_t i = 0; i < s->memory.n_devices; i++) {
        const tn_device_memory *d = &s->memory.devices[i];
        json_object(j, NULL);
        json_text(j, "device", d->device);
        json_size(j, "weights", d->weights);
        json_size(j, "cache", d->cache);
        json_size(j, "activations", d->arena);
        json_size(j, "scratch", d->scratch);
        json_size(j, "other", d->other);
        json_size(j, "total", d->total);
        json_end_object(j);
    }
    json_end_array(j);
}

static void json_memory(const inspect_state *s, json *j)
{
    json_object(j, "memory");
    json_size(j, "mapped", s->info.weight_size);
    json_size(j, "model", s->info.owned_size);
    if (s->has_memory) {
        json_int(j, "context", s->cfg.n_ctx);
        json_size(j, "cache", s->memory.cache);
        json_size(j, "activations", s->memory.arena);
        json_size(j, "scratch", s->memory.scratch);
        json_size(j, "other", s->memory.other);
        json_size(j, "session", s->memory.total);
        json_size(j, "total", s->memory.total + s->info.owned_size);
        json_devices(s, j);
    }
    json_end_object(j);
}

static int print_json(const inspect_state *s)
{
    json j;
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_int(&j, "schema", 1);
    json_text(&j, "file", s->path);
    json_size(&j, "bytes", tn_file_size(s->file));
    json_int(&j, "version", tn_file_version(s->file));
    json_int(&j, "parts", tn_file_n_parts(s->file));
    int code = json_keys(s, &j);
    if (code) return code;
    json_sizes(s, &j);
    if (s->model) {
        json_model(s, &j);
        json_memory(s, &j);
    } else {
        json_null(&j, "model");
    }
    adapter_facts a;
    if (!s->model && tool_adapter_facts(&s->t, s->file, &a)) {
        json_object(&j, "adapter");
        json_text(&j, "type", a.kind);
        json_text(&j, "architecture", a.arch);
        json_text(&j, "alpha", a.alpha);
        json_int(&j, "weights", a.n_weights);
        json_int(&j, "rank", a.rank);
        json_end_object(&j);
    }
    json_text(&j, "reason", *s->reason ? s->reason : NULL);
    json_end_object(&j);
    return 0;
}

// --- one tensor ------------------------------------------------------------------------------------------

static int no_tensor(const inspect_state *s, const char *name)
{
    const char *nearest = NULL;
    int best = 8; // the most changes of a useful suggestion
    for (int64_t i = 0; i < tn_file_n_tensors(s->file); i++) {
        tn_file_tensor tensor = {.struct_size = sizeof tensor};
        tn_file_tensor_get(s->file, i, &tensor);
        int d = edit_distance(name, tensor.name);
        if (d >= best) continue;
        best = d;
        nearest = tensor.name;
    }
    if (nearest) return fail(EXIT_USAGE, "%s has no tensor '%s', did you mean '%s'?", s->path, name, nearest);
    return fail(EXIT_USAGE, "%s has no tensor '%s'; 'tenon inspect --tensors' lists all", s->path, name);
}

static void print_tensor_location(const inspect_state *s, const tn_file_tensor *tensor)
{
    json j;
    json_init(&j, stdout);
    if (opt_flag(s->t.opt, OPT_JSON))
        json_tensor(&j, tensor);
    else
        print_tensor(tensor);
}

// Standard output, pipes and devices are written directly, one piece at a time: a tensor may have billions of
// values.
static int stream_tensor(const inspect_state *s, int64_t i, const tn_file_tensor *tensor, const char *path)
{
    static const int64_t piece = 16384; // a multiple of every block
    float *values = malloc((size_t)piece * sizeof *values);
    out_file out;
    int code = values ? out_file_open(&out, path) : fail(EXIT_MEMORY, "out of memory for the values");
    int64_t n = 1;
    for (int32_t d = 0; d < tensor->n_dims; d++) n *= tensor->shape[d];
    for (int64_t first = 0, k; first < n && !code; first += k) {
        k = n - first < piece ? n - first : piece;
        tn_status status = tn_file_read_tensor(s->file, i, first, k, values);
        if (status != TN_OK)
            code = tool_fail(&s->t, status, "%s", s->path);
        else if (!out_file_floats(&out, values, (size_t)k))
            break; // commit reports it
    }
    free(values);
    if (values && !code) code = out_file_commit(&out);
    if (values) out_file_abort(&out);
    return code;
}

static int one_tensor(const inspect_state *s)
{
    const options *o = s->t.opt;
    const char *name = opt_text(o, OPT_TENSOR), *path = opt_text(o, OPT_OUT);
    int64_t i = tn_file_find_tensor(s->file, name);
    if (i < 0) return no_tensor(s, name);
    tn_file_tensor tensor = {.struct_size = sizeof tensor};
    tn_file_tensor_get(s->file, i, &tensor);
    if (!path)
        print_tensor_location(s, &tensor);
    else if (strcmp(path, "-") == 0 || out_is_special(path))
        return stream_tensor(s, i, &tensor, path);
    tn_status status = path ? tn_file_export_tensor(s->file, i, path) : TN_OK;
    return status == TN_OK ? 0 : tool_fail(&s->t, status, "%s", s->path);
}

static int inspect(inspect_state *s)
{
    const options *o = s->t.opt;
    tn_status status = tn_file_open(s->t.ctx, s->path, &s->file);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    if (opt_flag(o, OPT_CHECK)) status = tn_file_check(s->file);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->path);
    if (opt_is_set(o, OPT_TENSOR)) return one_tensor(s);
    open_model(s);
    return opt_flag(o, OPT_JSON) ? print_json(s) : print_text(s);
}

int cmd_inspect(const options *o)
{
    inspect_state s = {.t.opt = o};
    const char *const *args;
    int n_args;
    int code = tool_model_path(o, &s.path, &args, &n_args);
    if (!code && n_args > 0)
        code = fail(EXIT_USAGE, "unexpected argument '%s'; tenon inspect takes one file", args[0]);
    if (!code && !opt_flag(o, OPT_MEMORY) && (opt_is_set(o, OPT_MEMORY_SVG) || opt_is_set(o, OPT_PARALLEL)))
        code = fail(EXIT_USAGE, "--svg and -np need --memory");
    if (!code && opt_is_set(o, OPT_OUT) && !opt_is_set(o, OPT_TENSOR))
        code = fail(EXIT_USAGE, "--out needs --tensor NAME: it writes the values of one tensor");
    if (!code) code = tool_open(&s.t, o);
    if (!code) code = opt_flag(o, OPT_MEMORY) ? inspect_memory(&s.t, s.path) : inspect(&s);
    tn_model_unref(&s.model);
    tn_file_close(&s.file);
    tool_close(&s.t);
    return code;
}
