// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory plans of decoders: no two live storages overlap, and the arena is at most 5 % above its lower bound.
//
//     test_memory FOLDER of models (only their metadata is read)
#include "tests/graph/run_graph.h"

#include "models/decoder.h"

#include <dirent.h>

static tn_context *ctx;
static double worst_ratio; // of all models

typedef struct model_plans {
    tn_model *model;
    const char *name;
    double worst; // arena / lower bound
    char at[96];  // where it is
} model_plans;

static void check_model_plan(model_plans *m, tn_plan_key key)
{
    tn_decoder_setup setup = {.n_blocks = 16,
                              .block_size = 64,
                              .max_blocks = 8,
                              .n_state_slots = 2,
                              .n_ctx = 256,
                              .cache_type_k = TN_TYPE_F16,
                              .cache_type_v = TN_TYPE_F16};
    if (tn_result_width(m->model, TN_RESULT_LOGITS) < 1) setup.result = TN_RESULT_HIDDEN;
    tn_graph *graph = NULL;
    if (!TEST_CHECK_STATUS(tn_decoder_record(m->model, &setup, &key, &graph), TN_OK)) return;
    for (int32_t fusion = 0; fusion < 2; fusion++) {
        tn_plan *plan = compile_plan(graph, fusion);
        const char *wrong = plan ? check_memory(plan) : "no plan";
        if (!TEST_CHECK(!wrong)) printf("    %s: %s\n", m->name, wrong);
        double ratio = plan ? (double)plan->info.arena_size / (double)plan->info.arena_bound : 9.0;
        if (ratio > m->worst) {
            m->worst = ratio;
            snprintf(m->at, sizeof m->at, "%d tokens, %d sequences, %d outputs, fusion %d", key.n_tokens,
                     key.n_seq, key.n_outputs, fusion);
        }
        tn_plan_unref(&plan);
    }
    tn_graph_destroy(&graph);
}

static int32_t test_model_plans(const char *folder)
{
    static const tn_plan_key keys[] = {{.n_tokens = 1, .n_seq = 1, .n_outputs = 1},
                                       {.n_tokens = 7, .n_seq = 1, .n_outputs = 1},
                                       {.n_tokens = 64, .n_seq = 1, .n_outputs = 1},
                                       {.n_tokens = 64, .n_seq = 1, .n_outputs = 64},
                                       {.n_tokens = 512, .n_seq = 1},
                                       {.n_tokens = 4, .n_seq = 4, .n_outputs = 4},
                                       {.n_tokens = 40, .n_seq = 4, .n_outputs = 3}};
    DIR *dir = folder ? opendir(folder) : NULL;
    int32_t n_models = 0, n_skipped = 0;
    for (struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        size_t n = strlen(e->d_name);
        char path[1024];
        if (n < 5 || strcmp(e->d_name + n - 5, ".gguf") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        tn_model_config cfg;
        tn_model_config_default(&cfg);
        cfg.metadata_only = 1;
        tn_model *model = NULL;
        tn_status status = tn_model_open(ctx, path, &cfg, &model);
        n_skipped += status == TN_ERR_MODEL;
        if (status == TN_ERR_MODEL || !TEST_CHECK_STATUS(status, TN_OK)) continue;
        model_plans m = {.model = model, .name = e->d_name};
        for (size_t i = 0; i < TN_COUNT(keys); i++) check_model_plan(&m, keys[i]);
        if (!TEST_CHECK(m.worst <= 1.05))
            printf("    %s: arena / lower bound %.3f at %s\n", m.name, m.worst, m.at);
        if (m.worst > worst_ratio) worst_ratio = m.worst;
        n_models++;
        tn_model_unref(&model);
    }
    if (dir) closedir(dir);
    printf("%d models, %d of unknown architectures; arena / lower bound at most %.3f\n", n_models, n_skipped,
           worst_ratio);
    return n_models;
}

int main(int argc, char **argv)
{
    ctx = graph_context(NULL, 2);
    int32_t n = test_model_plans(argc > 1 ? argv[1] : NULL);
    tn_context_destroy(&ctx);
    if (n == 0) {
        printf("SKIP: no models there\n");
        return 77;
    }
    return test_done();
}
