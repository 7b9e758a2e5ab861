// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Plans as text, JSON, Graphviz and SVG, to the byte: each number in a picture is a place that somebody
// reads. One plan has two devices, results that go from one to the other, and layers that repeat; the other
// is fused, with steps of several launches.
//
//     test_dump FOLDER [--write]   compares with the files there, or replaces them
#include "tests/graph/run_graph.h"

#include "core/device.h"

#include <stdio.h>

static tn_context *ctx;
static tn_graph *g;

// A product with bias and activation, and what came in.
static tn_tensor *layer(tn_tensor *x, int32_t i)
{
    char name[32];
    snprintf(name, sizeof name, "blk.%d.w", i);
    tn_tensor *w = WEIGHT(name, 24, 24);
    snprintf(name, sizeof name, "blk.%d.b", i);
    tn_tensor *bias = WEIGHT(name, 24), *h = tn_op_add(g, tn_op_matmul(g, x, w), bias);
    h = tn_op_unary(g, h, &(tn_unary_params){.kind = TN_UNARY_RELU});
    snprintf(name, sizeof name, "blk.%d.out", i);
    return NAMED(name, tn_op_add(g, h, x));
}

static void two_devices(void)
{
    tn_tensor *x = INPUT("x", 3, 24), *cache = tn_graph_state(g, "cache", TN_TYPE_F16, SHAPE(1, 1, 16, 24));
    for (int32_t i = 0; i < 6; i++) {
        tn_graph_want(g, i / 3);
        x = layer(x, i);
    }
    tn_tensor *rows = tn_op_reshape(g, tn_op_slice(g, x, 0, 0, 2), SHAPE(2, 1, 24));
    tn_op_cache_write(g, cache, rows, IDS("slots", 2));
    tn_graph_want(g, 0);
    OUTPUT("best", tn_op_argmax(g, tn_op_matmul(g, x, WEIGHT("<out & \"in\">", 100, 24))));
    OUTPUT("z", tn_op_softmax(g, x, NULL, 1.0f)); // two lines that are alike: too few to be one
    OUTPUT("t", tn_op_softmax(g, x, NULL, 0.5f));
}

// Wide enough for names in the rectangles of the arena.
static void fused(void)
{
    tn_tensor *x = INPUT("x", 4, 2048);
    tn_tensor *n = tn_op_rms_norm(g, x, WEIGHT("norm", 2048), 1e-5f);
    tn_tensor *gate = NAMED("gate", tn_op_matmul(g, n, WEIGHT("gate.weight", 64, 2048)));
    tn_tensor *up = NAMED("up", tn_op_matmul(g, n, WEIGHT("up.weight", 64, 2048)));
    tn_tensor *h = tn_op_mul(g, tn_op_unary(g, gate, &(tn_unary_params){.kind = TN_UNARY_SILU}), up);
    tn_tensor *y = NAMED("ffn_out", tn_op_matmul(g, h, WEIGHT("down.weight", 2048, 64)));
    OUTPUT("y", tn_op_add(g, x, y));
}

static char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    if (!f || !text) abort();
    if (fread(text, 1, (1 << 20) - 1, f) == 0) printf("    %s is empty\n", path);
    fclose(f);
    return text;
}

static void compare(const char *path, const char *text)
{
    char *wanted = read_file(path);
    size_t same = 0, line = 1;
    while (text[same] && text[same] == wanted[same]) line += text[same++] == '\n';
    if (!TEST_CHECK(text[same] == wanted[same]))
        printf("    %s, line %zu: wanted \"%.60s\", is \"%.60s\"\n", path, line, wanted + same, text + same);
    free(wanted);
}

static void test_plan(const tn_plan *plan, const char *folder, const char *name, bool write)
{
    static const char *const endings[] = {"txt", "json", "dot", "svg"}; // as TN_PLAN_TEXT and so on
    for (int32_t format = 0; format < 4; format++) {
        char path[1024], *text = NULL;
        snprintf(path, sizeof path, "%s/%s.%s", folder, name, endings[format]);
        if (!TEST_CHECK_STATUS(tn_plan_dump(plan, format, &text), TN_OK)) continue;
        FILE *f = write ? fopen(path, "wb") : NULL;
        if (f) fputs(text, f), fclose(f);
        compare(path, text);
        tn_text_free(ctx, text);
    }
}

static void test_graph(void (*build)(void), int32_t fusion, const char *folder, const char *name, bool write)
{
    tn_device fake = fake_device(ctx), *devices[] = {&fake, tn_context_device_by_name(ctx, "cpu")};
    tn_plan_config cfg;
    tn_plan_config_default(&cfg);
    cfg.devices = devices;
    cfg.n_devices = 2;
    cfg.fusion = fusion;
    g = new_graph(ctx);
    build();
    tn_plan *plan = NULL;
    if (TEST_CHECK_STATUS(tn_plan_create(g, &cfg, &plan), TN_OK)) test_plan(plan, folder, name, write);
    tn_plan_unref(&plan);
    tn_graph_destroy(&g);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 1;
    tn_context_config cfg;
    tn_context_config_default(&cfg);
    cfg.isa = "generic"; // the same kernels and sizes everywhere
    cfg.blas = "off";
    cfg.n_threads = 1;
    if (tn_context_create(&cfg, &ctx) != TN_OK) return 1;
    bool write = argc > 2;
    test_graph(two_devices, 0, argv[1], "devices", write);
    test_graph(fused, 1, argv[1], "fused", write);
    tn_context_destroy(&ctx);
    return test_done();
}
