// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Quantising: types by mix, values, errors reported, split models; and cancelled runs, failing writes and
// failing allocations, none of which may leave a file.
// Argument, if any: a folder of golden models.
#include "models/quantize/quantize_mix.h"
#include "tests/unit/model_files.h"

#include <limits.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <tenon/file.h>
#include <tenon/graph.h>

static const spec experts[] = {
    {"token_embd.weight", TN_TYPE_F32, 2, {32, 256}},
    {"blk.0.ffn_gate_inp.weight", TN_TYPE_F32, 2, {3, 256}},
    {"blk.0.ffn_up_exps.weight", TN_TYPE_F32, 3, {3, 40, 256}},
    {"blk.0.ffn_down_exps.weight", TN_TYPE_F32, 3, {3, 256, 64}},
};

// --- quantising ----------------------------------------------------------------------------------------

typedef struct reports {
    int n;
    int cancel_at; // -1: never
    double rmse[32];
    tn_dtype to[32];
} reports;

static int32_t on_report(void *user, const char *tensor, const char *from, const char *to, double rmse,
                         int64_t done, int64_t total)
{
    reports *r = user;
    TEST_CHECK(tensor && tn_dtype_by_name(from) >= 0 && done == r->n + 1 && total >= done && total <= 32);
    r->rmse[r->n] = rmse;
    r->to[r->n] = tn_dtype_by_name(to);
    return r->n++ == r->cancel_at;
}

static tn_status quantize(tn_context *c, const char *in, const char *out, const char *type, reports *r)
{
    *r = (reports){.cancel_at = r->cancel_at};
    tn_quantize_config cfg = {.struct_size = sizeof cfg, .type = type, .report = on_report, .user = r};
    return tn_quantize(c, in, out, &cfg);
}

// Root mean squared difference of two tensors, and in *deviation the first one's size.
static double compare_tensors(const tn_gguf_tensor *a, const tn_gguf_tensor *b, double *deviation)
{
    static float x[MAX_ELEMS], y[MAX_ELEMS];
    int64_t n = (int64_t)(a->size / tn_dtype_block_size(a->dtype)) * tn_dtype_block_elems(a->dtype);
    double error = 0, square = 0;
    tn_quant_info_get(a->dtype)->to_f32(a->data, x, n);
    tn_quant_info_get(b->dtype)->to_f32(b->data, y, n);
    for (int64_t i = 0; i < n; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        square += (double)x[i] * (double)x[i];
    }
    *deviation = sqrt(square / (double)n);
    return sqrt(error / (double)n);
}

static void check_result(const char *in, const char *out, const tn_quant_mix *mix, const reports *r)
{
    tn_gguf *a = NULL, *b = NULL;
    must(tn_gguf_open(ctx, in, &a));
    if (!TEST_CHECK(tn_gguf_open(ctx, out, &b) == TN_OK)) goto done;
    uint32_t file_type = 99, version = 0;
    must(tn_gguf_get_u32(b, "general.file_type", &file_type));
    must(tn_gguf_get_u32(b, "general.quantization_version", &version));
    TEST_CHECK(file_type == tn_quant_mix_file_type(mix) && version == 2);
    TEST_CHECK(tn_gguf_n_kv(b) == tn_gguf_n_kv(a) + 1 && tn_gguf_find(b, "kept.names")->count == 2);
    TEST_CHECK(tn_gguf_n_tensors(b) == tn_gguf_n_tensors(a) && r->n == tn_gguf_n_tensors(a));
    TEST_CHECK_STATUS(tn_gguf_check_data(b), TN_OK);
    for (int64_t i = 0; i < tn_gguf_n_tensors(a); i++) {
        const tn_gguf_tensor *s = tn_gguf_tensor_at(a, i), *t = tn_gguf_tensor_at(b, i);
        double deviation, rmse = compare_tensors(s, t, &deviation);
        TEST_CHECK(strcmp(s->name, t->name) == 0 && s->n_dims == t->n_dims && r->to[i] == t->dtype);
        TEST_CHECK(fabs(rmse - r->rmse[i]) <= 1e-9 * deviation);
        TEST_CHECK(rmse <= deviation * (t->dtype == TN_TYPE_Q2_K   ? 0.35
                                        : t->dtype == TN_TYPE_Q8_0 ? 0.01
                                                                   : 0.2));
        bool kept = tn_quant_mix_keeps(s->name, s->n_dims, s->ne);
        if (kept || t->dtype == s->dtype)
            TEST_CHECK(t->size == s->size && memcmp(t->data, s->data, s->size) == 0);
    }
done:
    tn_gguf_close(&a);
    tn_gguf_close(&b);
}

static void test_all_types(void)
{
    char names[512];
    int n = 0;
    const char *in[] = {path_of("in.gguf"), save_model("moe.gguf", experts, TN_COUNT(experts), 3)};
    snprintf(names, sizeof names, "%s", tn_quantize_types());
    for (char *name = strtok(names, " "); name; name = strtok(NULL, " "), n++) {
        const tn_quant_mix *mix = tn_quant_mix_find(name);
        if (!TEST_CHECK(mix)) continue;
        for (int k = 0; k < 2; k++) {
            reports r = {.cancel_at = -1};
            if (TEST_CHECK_STATUS(quantize(ctx, in[k], path_of("out.gguf"), name, &r), TN_OK))
                check_result(in[k], path_of("out.gguf"), mix, &r);
        }
    }
    TEST_CHECK(n >= 20);
    unlink(path_of("out.gguf"));
}

static void test_mix(void)
{
    static const struct {
        const char *mix;
        tn_dtype to[N_DENSE];
    } want[] = {
        // clang-format off
        {"Q4_K_M", {TN_TYPE_Q4_K, TN_TYPE_F32, TN_TYPE_Q6_K, TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q4_K,
                    TN_TYPE_Q4_K,
                    TN_TYPE_Q4_K, TN_TYPE_Q6_K, TN_TYPE_Q5_0, TN_TYPE_Q4_K, TN_TYPE_F16, TN_TYPE_F32,
                    TN_TYPE_F32,
                    TN_TYPE_Q4_K}},
        {"q3_k_m", {TN_TYPE_Q3_K, TN_TYPE_F32, TN_TYPE_Q6_K, TN_TYPE_Q5_K, TN_TYPE_Q4_K, TN_TYPE_Q5_K,
                    TN_TYPE_Q4_K,
                    TN_TYPE_Q4_K, TN_TYPE_Q4_K, TN_TYPE_Q4_0, TN_TYPE_Q4_K, TN_TYPE_F16, TN_TYPE_F32,
                    TN_TYPE_F32,
                    TN_TYPE_Q3_K}},
        {"Q2_K",   {TN_TYPE_Q2_K, TN_TYPE_F32, TN_TYPE_Q6_K, TN_TYPE_Q4_K, TN_TYPE_Q4_K, TN_TYPE_Q4_K,
                    TN_TYPE_Q3_K,
                    TN_TYPE_Q3_K, TN_TYPE_Q3_K, TN_TYPE_Q4_0, TN_TYPE_Q3_K, TN_TYPE_F16, TN_TYPE_F32,
                    TN_TYPE_F32,
                    TN_TYPE_Q2_K}},
        // clang-format on
    };
    for (size_t i = 0; i < TN_COUNT(want); i++) {
        reports r = {.cancel_at = -1};
        TEST_CHECK_STATUS(quantize(ctx, path_of("in.gguf"), path_of("out.gguf"), want[i].mix, &r), TN_OK);
        for (int k = 0; k < N_DENSE; k++)
            if (!TEST_CHECK(r.to[k] == want[i].to[k])) printf("    %s %s\n", want[i].mix, dense[k].name);
    }
    unlink(path_of("out.gguf"));
}

// Q4_K_M of a model with experts, whose layers are counted by their numbers: the first and last two of 16 and
// every third one between get more bits; with exactly eight experts some tensors have other types.
static void test_mix_of_experts(void)
{
    for (int64_t n_expert = 7; n_expert < 10; n_expert++) {
        const tn_quant_mix_model model = {"llama", 16, 8, 8, n_expert, 16, true, false};
        const int64_t rows[] = {4, 256, 256};
        tn_quant_mix_state s = tn_quant_mix_begin(tn_quant_mix_find("Q4_K_M"), &model);
        tn_dtype attn = n_expert == 8 ? TN_TYPE_Q5_K : TN_TYPE_Q4_K;
        TEST_CHECK(tn_quant_mix_pick(&s, "blk.0.attn_output.weight", TN_TYPE_F32, 2, rows + 1) == attn);
        attn = n_expert == 8 ? TN_TYPE_Q8_0 : TN_TYPE_Q4_K;
        TEST_CHECK(tn_quant_mix_pick(&s, "blk.0.attn_k.weight", TN_TYPE_F32, 2, rows + 1) == attn);
        for (int i = 15; i >= 0; i--)
            for (int twice = 0; twice < 2; twice++) {
                char name[64];
                snprintf(name, sizeof name, "blk.%d.ffn_down%s.weight", i, twice ? "_exps" : "_shexp");
                bool more = i < 2 || i >= 14 || (i - 2) % 3 == 2;
                tn_dtype type = tn_quant_mix_pick(&s, name, TN_TYPE_F32, twice ? 3 : 2, rows + !twice);
                if (!TEST_CHECK(type == (more ? TN_TYPE_Q6_K : TN_TYPE_Q4_K))) printf("    %s\n", name);
            }
    }
    TEST_CHECK(tn_quant_mix_compare("blk.9.b", "blk.10.a") < 0);
    TEST_CHECK(tn_quant_mix_compare("blk.x", "blk.0.a") < 0); // no layer
}

static bool same_bytes(const char *a, const char *b)
{
    tn_file_map x = {0}, y = {0};
    bool same = tn_file_map_open(ctx, a, &x) == TN_OK && tn_file_map_open(ctx, b, &y) == TN_OK &&
                x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    tn_file_map_close(ctx, &x);
    tn_file_map_close(ctx, &y);
    return same;
}

static void test_threads(void)
{
    for (int32_t n = 1; n <= 7; n += 3) {
        tn_context_config cfg;
        tn_context_config_default(&cfg);
        cfg.n_threads = n;
        tn_context *c = NULL;
        reports r = {.cancel_at = -1};
        must(tn_context_create(&cfg, &c));
        TEST_CHECK_STATUS(quantize(c, path_of("in.gguf"), path_of(n == 1 ? "one" : "many"), "Q3_K_S", &r),
                          TN_OK);
        if (n > 1) TEST_CHECK(same_bytes(path_of("one"), path_of("many")));
        tn_context_destroy(&c);
    }
    unlink(path_of("one"));
    unlink(path_of("many"));
}

// --- what must not work --------------------------------------------------------------------------------

static void test_refused(void)
{
    reports r = {.cancel_at = -1};
    const char *in = path_of("in.gguf"), *link_path = path_of("link");
    char dotted[300];
    snprintf(dotted, sizeof dotted, "%s/./in.gguf", folder);
    int before = n_files();
    TEST_CHECK_STATUS(quantize(ctx, in, in, "Q8_0", &r), TN_ERR_ARG);
    TEST_CHECK_STATUS(quantize(ctx, in, dotted, "Q8_0", &r), TN_ERR_ARG);
    if (symlink(in, link_path) == 0) TEST_CHECK_STATUS(quantize(ctx, in, link_path, "Q8_0", &r), TN_ERR_ARG);
    unlink(link_path);
    if (link(in, link_path) == 0) TEST_CHECK_STATUS(quantize(ctx, link_path, in, "Q8_0", &r), TN_ERR_ARG);
    unlink(link_path);
    TEST_CHECK_STATUS(quantize(ctx, in, path_of("out"), "Q9_9", &r), TN_ERR_ARG);
    TEST_CHECK(message_has("Q4_K_M"));
    TEST_CHECK_STATUS(quantize(ctx, in, path_of("out"), NULL, &r), TN_ERR_ARG);
    TEST_CHECK_STATUS(tn_quantize(ctx, in, path_of("out"), NULL), TN_ERR_ARG);
    TEST_CHECK_STATUS(quantize(ctx, NULL, path_of("out"), "Q8_0", &r), TN_ERR_ARG);
    TEST_CHECK_STATUS(quantize(ctx, in, path_of("out"), "IQ3_S", &r), TN_ERR_UNSUPPORTED);
    TEST_CHECK_STATUS(quantize(ctx, path_of("absent"), path_of("out"), "Q8_0", &r), TN_ERR_IO);
    tn_gguf_writer *w = NULL;
    must(tn_gguf_writer_open(ctx, path_of("keys.gguf"), &w));
    must(tn_gguf_writer_begin(w));
    must(tn_gguf_writer_commit(&w, NULL, NULL));
    TEST_CHECK_STATUS(quantize(ctx, path_of("keys.gguf"), path_of("out"), "Q8_0", &r), TN_ERR_MODEL);
    unlink(path_of("keys.gguf"));
    TEST_CHECK(n_files() == before && r.n == 0);
}

static void save_value(const char *name, float v)
{
    static float x[1 << 15];
    int64_t ne[2] = {64, 512};
    tn_gguf_writer *w = NULL;
    must(tn_gguf_writer_open(ctx, path_of(name), &w));
    put_model_keys(w, 3, 0);
    must(tn_gguf_writer_add_tensor(w, "blk.0.bad.weight", TN_TYPE_F32, 2, ne));
    must(tn_gguf_writer_begin(w));
    x[20000] = v;
    must(tn_gguf_writer_data(w, x, sizeof x));
    must(tn_gguf_writer_commit(&w, NULL, NULL));
}

static void test_bad_values(void)
{
    static const struct {
        float v;
        const char *type;
        tn_status status;
    } cases[] = {
        {NAN, "Q8_0", TN_ERR_FORMAT}, {INFINITY, "F16", TN_ERR_FORMAT}, {NAN, "F32", TN_ERR_FORMAT},
        {1e6f, "F16", TN_ERR_FORMAT}, {1e8f, "Q8_0", TN_ERR_FORMAT},    {1e6f, "BF16", TN_OK},
    };
    int before = n_files();
    for (size_t i = 0; i < TN_COUNT(cases); i++) {
        reports r = {.cancel_at = -1};
        save_value("bad.gguf", cases[i].v);
        TEST_CHECK_STATUS(quantize(ctx, path_of("bad.gguf"), path_of("out"), cases[i].type, &r),
                          cases[i].status);
        if (cases[i].status != TN_OK) TEST_CHECK(message_has("blk.0.bad.weight"));
        if (cases[i].status != TN_OK) TEST_CHECK(n_files() == before + 1);
        unlink(path_of("out"));
    }
    tn_file *file = NULL;
    save_value("bad.gguf", NAN);
    must(tn_file_open(ctx, path_of("bad.gguf"), &file));
    TEST_CHECK_STATUS(tn_file_check(file), TN_ERR_FORMAT);
    tn_file_close(&file);
    unlink(path_of("bad.gguf"));
}

static void test_interrupted(void)
{
    int before = n_files();
    const char *in = path_of("in.gguf"), *out = path_of("out");
    for (int k = 0; k < N_DENSE; k += 5) {
        reports r = {.cancel_at = k};
        TEST_CHECK_STATUS(quantize(ctx, in, out, "Q8_0", &r), TN_ERR_CANCELLED);
        TEST_CHECK(n_files() == before && r.n == k + 1);
    }
    reports r = {.cancel_at = -1};
    TEST_CHECK_STATUS(quantize(ctx, in, path_of("no/folder"), "Q8_0", &r), TN_ERR_IO);
    TEST_CHECK_STATUS(quantize(ctx, in, path_of("in.gguf/x"), "Q8_0", &r), TN_ERR_IO);
    // A file that may not grow beyond a limit stands for a full disk.
    tn_file *file = NULL;
    struct rlimit old, small;
    must(tn_file_open(ctx, in, &file));
    signal(SIGXFSZ, SIG_IGN);
    if (getrlimit(RLIMIT_FSIZE, &old) != 0) abort();
    for (int k = 0; k < 4; k++) {
        small = old;
        small.rlim_cur = (rlim_t)k * 40000;
        if (setrlimit(RLIMIT_FSIZE, &small) != 0) abort();
        tn_status status = quantize(ctx, in, out, "Q8_0", &r);
        tn_status exported =
            tn_file_export_tensor(file, tn_file_find_tensor(file, "blk.0.ffn_down.weight"), out);
        if (setrlimit(RLIMIT_FSIZE, &old) != 0) abort();
        TEST_CHECK_STATUS(status, TN_ERR_IO);
        TEST_CHECK_STATUS(exported, TN_ERR_IO);
        TEST_CHECK(n_files() == before);
    }
    tn_file_close(&file);
}

static void test_no_memory(void)
{
    int before = n_files();
    long live = count.live, k = 0;
    for (tn_status status = TN_ERR_MEMORY; status != TN_OK && k < 1000; k++) {
        count.fail_from = count.calls + k;
        count.fail_to = count.fail_from + 1 + (k % 2 ? LONG_MAX / 2 : 0); // one, or all from there on
        reports r = {.cancel_at = -1};
        status = quantize(ctx, path_of("in.gguf"), path_of("out"), "Q4_0", &r);
        count.fail_from = count.fail_to = 0;
        if (status != TN_OK && status != TN_ERR_MEMORY) TEST_CHECK_STATUS(status, TN_ERR_MEMORY);
        if (status != TN_OK) TEST_CHECK(n_files() == before);
        TEST_CHECK(count.live == live);
    }
    TEST_CHECK(k > 20 && k < 1000 && n_files() == before + 1);
    unlink(path_of("out"));
}

// --- split models --------------------------------------------------------------------------------------

static void test_split(void)
{
    static const char *const names[] = {"s-00001-of-00002.gguf", "s-00002-of-00002.gguf"};
    for (uint32_t k = 0; k < 2; k++) {
        tn_gguf_writer *w = NULL;
        must(tn_gguf_writer_open(ctx, path_of(names[k]), &w));
        put_model_keys(w, 3, 0);
        must(tn_gguf_writer_put_u32(w, "split.no", k));
        must(tn_gguf_writer_put_u32(w, "split.count", 2));
        must(tn_gguf_writer_put_u32(w, "split.tensors.count", N_DENSE));
        add_tensors(w, k ? dense + 5 : dense, k ? N_DENSE - 5 : 5);
    }
    reports r = {.cancel_at = -1};
    tn_file *file = NULL;
    TEST_CHECK_STATUS(quantize(ctx, path_of(names[0]), path_of(names[0]), "Q8_0", &r), TN_ERR_ARG);
    TEST_CHECK_STATUS(quantize(ctx, path_of(names[0]), path_of(names[1]), "Q8_0", &r), TN_ERR_ARG);
    TEST_CHECK_STATUS(quantize(ctx, path_of(names[0]), path_of("out"), "Q5_K_S", &r), TN_OK);
    TEST_CHECK_STATUS(tn_file_open(ctx, path_of("out"), &file), TN_OK);
    if (!file) return;
    TEST_CHECK(tn_file_n_parts(file) == 1 && tn_file_n_tensors(file) == N_DENSE);
    for (int64_t i = 0; i < tn_file_n_keys(file); i++) {
        char *name;
        const char *type, *value;
        must(tn_file_key(file, i, 0, &name, &type, &value));
        TEST_CHECK(strncmp(name, "split", 5) != 0);
        tn_text_free(ctx, name);
    }
    tn_file_close(&file);
    for (int k = 0; k < 2; k++) unlink(path_of(names[k]));
    unlink(path_of("out"));
}

// --- golden models -------------------------------------------------------------------------------------

static tn_gguf *open_golden(const char *dir, const char *name)
{
    char path[512];
    tn_gguf *gguf = NULL;
    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    if (access(path, R_OK) != 0 || tn_gguf_open(ctx, path, &gguf) != TN_OK) printf("SKIP: no %s\n", path);
    return gguf;
}

// Bytes of b's tensors that are the same in a, as a share; -1: the files have different tensors.
static double same_share(const tn_gguf *a, const tn_gguf *b)
{
    size_t same = 0, all = 0;
    for (int64_t i = 0; i < tn_gguf_n_tensors(b); i++) {
        const tn_gguf_tensor *t = tn_gguf_tensor_at(b, i), *s = tn_gguf_find_tensor(a, t->name);
        if (!s || s->dtype != t->dtype || s->size != t->size) return -1;
        for (size_t k = 0; k < t->size; k++) same += s->data[k] == t->data[k];
        all += t->size;
    }
    return (double)same / (double)all;
}

// Quantises `from`; the result must have the types of `golden`, and at least this share of its bytes.
static void check_golden(const char *dir, const char *from, const char *golden, double share)
{
    tn_gguf *source = open_golden(dir, from), *want = open_golden(dir, golden), *got = NULL;
    reports r = {.cancel_at = -1};
    int64_t file_type = -1;
    if (!source || !want) goto done;
    const tn_gguf_tensor *a = tn_gguf_find_tensor(source, "token_embd.weight");
    const tn_gguf_tensor *b = tn_gguf_find_tensor(want, "token_embd.weight");
    must(tn_gguf_get_i64(want, "general.file_type", &file_type));
    const tn_quant_mix *mix = tn_quant_mix_by_file_type(file_type);
    if (!mix || !a || !b || memcmp(a->ne, b->ne, sizeof a->ne) != 0) {
        printf("SKIP: %s is not the source of %s\n", from, golden);
        goto done;
    }
    if (!TEST_CHECK_STATUS(quantize(ctx, tn_gguf_name(source), path_of("out"), tn_quant_mix_name(mix), &r),
                           TN_OK))
        goto done;
    must(tn_gguf_open(ctx, path_of("out"), &got));
    double same = same_share(got, want);
    if (!TEST_CHECK(same >= share)) printf("    %s -> %s: %.4f of the bytes\n", from, golden, same);
done:
    tn_gguf_close(&source);
    tn_gguf_close(&want);
    tn_gguf_close(&got);
    unlink(path_of("out"));
}

static void test_golden(const char *dir)
{
    // Each of these from itself: the mix must give every tensor the type that it has there.
    static const char *const files[] = {
        "llama_q4_0",         "llama_q4_k_m",    "llama_q6_k",      "llama_q2_k",      "llama_bf16",
        "qwen3_q8_0",         "qwen3_q5_k_m",    "qwen3_q3_k_m",    "qwen3_iq4_xs",    "qwen3_f16",
        "gemma3_q4_0",        "gemma3_q4_k_m",   "gemma3_q6_k",     "gemma3_q2_k",     "qwen3moe_q8_0",
        "qwen3moe_mxfp4_moe", "qwen3moe_q5_k_m", "qwen3moe_q3_k_m", "qwen3moe_iq4_xs",
    };
    for (size_t i = 0; i < TN_COUNT(files); i++) check_golden(dir, files[i], files[i], 1);
    check_golden(dir, "llama", "llama_q4_0", 1);
    check_golden(dir, "llama", "llama_bf16", 1);
    check_golden(dir, "qwen3", "qwen3_q8_0", 1);
    check_golden(dir, "qwen3", "qwen3_f16", 1);
    // From the F16 file of the same model: rounding differs in few codes.
    check_golden(dir, "qwen3_f16", "qwen3_q8_0", 0.9);
}

int main(int argc, char **argv)
{
    if (!mkdtemp(folder)) return 1;
    ctx = counting_context(&count);
    save_model("in.gguf", dense, N_DENSE, 0);
    test_all_types();
    test_mix();
    test_mix_of_experts();
    test_threads();
    test_refused();
    test_bad_values();
    test_interrupted();
    test_no_memory();
    test_split();
    if (argc > 1)
        test_golden(argv[1]);
    else
        printf("SKIP: golden models (no folder given)\n");
    unlink(path_of("in.gguf"));
    unlink(path_of("moe.gguf"));
    TEST_CHECK(rmdir(folder) == 0);
    tn_context_destroy(&ctx);
    TEST_CHECK(count.live == 0);
    return test_done();
}
