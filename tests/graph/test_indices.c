// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Ids, slots, lengths and block tables of an application: what is on the border runs, what is one past it is
// refused before anything is submitted, with a message that names it, and the runner goes on to work. Ids
// that steps compute and that are outside give zeros. On every device that there is; an argument names one
// that must be there.
#include "tests/graph/run_graph.h"

#include <limits.h>
#include <math.h>

static tn_context *ctx;
static tn_device *device;
static tn_graph *g; // of the current case
static tn_runner *run;
static int32_t n_refused, n_accepted;

static void begin(void)
{
    g = new_graph(ctx);
}

static tn_status compile(const tn_binding *bound, int32_t n)
{
    tn_plan_config cfg;
    tn_plan *plan = NULL;
    tn_plan_config_default(&cfg);
    cfg.devices = &device;
    cfg.n_devices = 1;
    cfg.fallback = TN_FALLBACK_QUIET;
    tn_status status = tn_plan_create(g, &cfg, &plan);
    if (status == TN_OK) status = tn_runner_create(plan, bound, n, &run);
    tn_plan_unref(&plan);
    return status;
}

static void end(void)
{
    tn_runner_destroy(&run);
    tn_graph_destroy(&g);
}

static void write_ints(const char *name, const int32_t *v, size_t n)
{
    TEST_CHECK_STATUS(tn_runner_write(run, name, v, n * sizeof *v), TN_OK);
}

static bool report(int line, bool ok, const char *what)
{
    char text[512];
    tn_context_error(ctx, text, sizeof text);
    if (!ok) printf("    %s: %s\n", device->name, text);
    return test_report(ok, __FILE__, line, what);
}

// A run with these integers; part: of the message of the refusal, NULL: it is accepted.
static void runs(int line, const char *name, const int32_t *v, size_t n, const char *part)
{
    write_ints(name, v, n);
    tn_status status = tn_runner_run(run);
    report(line, status == (part ? TN_ERR_ARG : TN_OK) && (!part || message_has(ctx, part)),
           part ? part : name);
    if (part) report(line, tn_runner_run(run) == TN_ERR_ARG, "refused until they are written anew");
    n_refused += part != NULL;
    n_accepted += part == NULL;
}
// clang-format off
#define INTS(...)           (const int32_t[]){__VA_ARGS__}, sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define RUNS(name, ...)     runs(__LINE__, name, INTS(__VA_ARGS__), NULL)
#define REFUSED(part, name, ...) runs(__LINE__, name, INTS(__VA_ARGS__), part)
// clang-format on

// --- ids -------------------------------------------------------------------------------------------

enum { ROWS = 5, WIDTH = 32 };

static float floats[16384];

static void fill(void)
{
    uint32_t state = 7;
    for (size_t i = 0; i < TN_COUNT(floats); i++) floats[i] = (float)next_random(&state) / 8388608.0f - 1.0f;
}

static const tn_binding table = {"w", floats, sizeof floats};

static void test_get_rows(void)
{
    float y[3][WIDTH];
    begin();
    OUTPUT("y", tn_op_get_rows(g, WEIGHT("w", ROWS, WIDTH), IDS("ids", 3), 0.0f));
    if (!report(__LINE__, compile(&table, 1) == TN_OK, "get_rows")) {
        end();
        return;
    }
    TEST_CHECK_STATUS(tn_runner_run(run), TN_OK); // with the zeros of the beginning
    REFUSED("get_rows: element 1 of ids (\"ids\") is 5, must be 0 to 4", "ids", 0, ROWS, 4);
    REFUSED("element 0 of ids (\"ids\") is -1,", "ids", -1, 0, 0);
    REFUSED("is 2147483647,", "ids", 0, 0, INT32_MAX);
    REFUSED("is -2147483648,", "ids", 0, 0, INT32_MIN);
    RUNS("ids", 0, ROWS - 1, 1);
    TEST_CHECK_STATUS(tn_runner_read(run, "y", y, sizeof y), TN_OK);
    TEST_CHECK(memcmp(y[1], floats + (ROWS - 1) * WIDTH, sizeof y[1]) == 0);
    end();
    // Views of inputs are checked where they lie.
    begin();
    tn_tensor *part = tn_op_slice(g, IDS("ids", 4), 0, 1, 2);
    OUTPUT("y", tn_op_get_rows(g, WEIGHT("w", ROWS, WIDTH), part, 0.0f));
    if (!report(__LINE__, compile(&table, 1) == TN_OK, "get_rows of a view")) {
        end();
        return;
    }
    RUNS("ids", 99, 0, 4, -99);
    REFUSED("element 1 of ids (\"ids\") is 5", "ids", 0, 0, 5, 0);
    end();
    // Bound ids are checked when they are bound.
    for (int32_t last = ROWS - 1; last <= ROWS; last++) {
        const int32_t ids[2] = {0, last};
        begin();
        tn_tensor *bound = tn_graph_weight(g, "bound", TN_TYPE_I32, SHAPE(2));
        OUTPUT("y", tn_op_get_rows(g, WEIGHT("w", ROWS, WIDTH), bound, 0.0f));
        const tn_binding all[] = {table, {"bound", ids, sizeof ids}};
        tn_status status = compile(all, 2);
        report(__LINE__, status == (last < ROWS ? TN_OK : TN_ERR_ARG), "bound ids");
        if (status != TN_OK) TEST_CHECK(message_has(ctx, "element 1 of ids (\"bound\") is 5"));
        end();
    }
}

// The index of the largest of 32 numbers.
static void write_largest(const char *name, int32_t index, int64_t n_rows)
{
    float x[8 * 32] = {0};
    for (int64_t r = 0; r < n_rows; r++) x[r * 32 + index] = 1.0f;
    TEST_CHECK_STATUS(tn_runner_write(run, name, x, (size_t)n_rows * 32 * sizeof *x), TN_OK);
}

static bool all_equal(const float *x, size_t n, float value)
{
    for (size_t i = 0; i < n; i++)
        if (x[i] != value) return false;
    return true;
}

// What the graph itself computes: outside is zero, or not stored.
static void test_computed(void)
{
    float y[2 * 2 * WIDTH];
    begin();
    tn_tensor *best = tn_op_argmax(g, INPUT("logits", 2, 32));
    OUTPUT("y", tn_op_get_rows(g, WEIGHT("w", ROWS, WIDTH), best, 0.0f));
    if (!report(__LINE__, compile(&table, 1) == TN_OK, "computed ids")) {
        end();
        return;
    }
    for (int32_t id = 0; id < 32; id++) {
        write_largest("logits", id, 2);
        TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
        TEST_CHECK_STATUS(tn_runner_read(run, "y", y, 2 * WIDTH * sizeof *y), TN_OK);
        TEST_CHECK(id < ROWS ? memcmp(y, floats + id * WIDTH, WIDTH * sizeof *y) == 0
                             : all_equal(y, 2 * WIDTH, 0.0f));
    }
    end();
    begin(); // two experts of 32, of which three have weights
    tn_tensor *ids = tn_op_top_k(g, INPUT("logits", 2, 32), NULL, &(tn_top_k_params){.k = 2});
    tn_tensor *w = WEIGHT("w", 3, WIDTH, WIDTH);
    OUTPUT("y", tn_op_matmul_id(g, INPUT("x", 2, 1, WIDTH), w, ids));
    if (!report(__LINE__, compile(&table, 1) == TN_OK, "computed experts")) {
        end();
        return;
    }
    TEST_CHECK_STATUS(tn_runner_write(run, "x", floats, 2 * WIDTH * sizeof *floats), TN_OK);
    for (int32_t id = 1; id < 32; id += 10) {
        write_largest("logits", id, 2); // and 0, the first of the others
        TEST_CHECK_STATUS(tn_runner_run(run), TN_OK);
        TEST_CHECK_STATUS(tn_runner_read(run, "y", y, sizeof y), TN_OK);
        for (int t = 0; t < 2; t++) TEST_CHECK(all_equal(y + t * 2 * WIDTH, WIDTH, 0.0f) == (id >= 3));
    }
    end();
}

static void test_experts(void)
{
    begin();
    OUTPUT("y", tn_op_matmul_id(g, INPUT("x", 2, 1, WIDTH), WEIGHT("w", 3, WIDTH, WIDTH), IDS("ids", 2, 2)));
    if (!report(__LINE__, compile(&table, 1) == TN_OK, "matmul_id")) {
        end();
        return;
    }
    RUNS("ids", 0, 2, 1, 2);
    REFUSED("matmul_id: element 3 of ids (\"ids\") is 3, must be 0 to 2", "ids", 0, 2, 1, 3);
    REFUSED("is -1,", "ids", 0, -1, 1, 2);
    end();
    begin();
    OUTPUT("y", tn_op_moe_weights(g, INPUT("x", 2, 4), IDS("ids", 2, 2), &(tn_moe_weights_params){0}));
    if (!report(__LINE__, compile(NULL, 0) == TN_OK, "moe_weights")) {
        end();
        return;
    }
    RUNS("ids", 0, 3, 1, 2);
    REFUSED("moe_weights: element 1 of ids (\"ids\") is 4, must be 0 to 3", "ids", 0, 4, 1, 2);
    end();
}

// --- caches and sequences --------------------------------------------------------------------------

enum { BLOCKS = 3, BLOCK = 16, KV = 1, HEADS = 2, DIM = 32, TOKENS = 4, SEQS = 2, TABLE = 2 };
static float cache[2][BLOCKS * KV * BLOCK * DIM];
static const tn_binding caches[] = {{"k", cache[0], sizeof cache[0]}, {"v", cache[1], sizeof cache[1]}};

static tn_tensor *state(const char *name)
{
    return tn_graph_state(g, name, TN_TYPE_F32, SHAPE(BLOCKS, KV, BLOCK, DIM));
}

static void test_cache_write(void)
{
    begin();
    tn_tensor *next = tn_op_cache_write(g, state("k"), INPUT("x", 2, KV, DIM), IDS("slots", 2));
    OUTPUT("y", tn_op_scale(g, next, 1.0f));
    if (!report(__LINE__, compile(caches, 1) == TN_OK, "cache_write")) {
        end();
        return;
    }
    RUNS("slots", 0, BLOCKS * BLOCK - 1);
    RUNS("slots", -1, INT32_MIN); // nowhere
    REFUSED("cache_write: element 1 of slots (\"slots\") is 48, must be", "slots", 0, BLOCKS * BLOCK);
    REFUSED("is 2147483647,", "slots", INT32_MAX, 0);
    end();
}

static void record_attention(int32_t one_query, const tn_attention_params *p, bool computed)
{
    tn_attention_args a = {.q = INPUT("q", TOKENS, HEADS, DIM),
                           .k = state("k"),
                           .v = state("v"),
                           .q_start = IDS("start", (one_query ? TOKENS : SEQS) + 1),
                           .kv_len = IDS("len", one_query ? TOKENS : SEQS),
                           .block_table = IDS("table", one_query ? TOKENS : SEQS, TABLE),
                           .one_query = one_query};
    if (computed) a.kv_len = tn_op_reshape(g, tn_op_argmax(g, INPUT("logits", SEQS, 32)), SHAPE(SEQS));
    OUTPUT("y", tn_op_attention(g, &a, p));
}

static void test_attention(void)
{
    begin();
    record_attention(0, &(tn_attention_params){.scale = 1.0f, .causal = 1}, false);
    if (!report(__LINE__, compile(caches, 2) == TN_OK, "attention")) {
        end();
        return;
    }
    write_ints("len", INTS(TABLE * BLOCK, 1));
    write_ints("table", INTS(0, BLOCKS - 1, 1, INT32_MAX)); // one key needs one block
    RUNS("start", 0, 3, 4);
    RUNS("start", 0, 3, 3);
    RUNS("start", 1, 1, 1);
    REFUSED("attention: element 2 of q_start (\"start\") is 5, must be 3 to 4", "start", 0, 3, 5);
    REFUSED("element 1 of q_start (\"start\") is 1, must be 2 to 4", "start", 2, 1, 4);
    REFUSED("element 0 of q_start (\"start\") is -1, must be 0 to 4", "start", -1, 3, 4);
    REFUSED("element 1 of kv_len (\"len\") is 1, must be 2 to 32", "start", 0, 2, 4);
    write_ints("start", INTS(0, 3, 4));
    REFUSED("element 0 of kv_len (\"len\") is 33, must be 3 to 32", "len", TABLE * BLOCK + 1, 1);
    REFUSED("element 0 of kv_len (\"len\") is -1", "len", -1, 1);
    REFUSED("element 1 of kv_len (\"len\") is 2147483647", "len", 3, INT32_MAX);
    RUNS("len", TABLE * BLOCK, BLOCK);
    REFUSED("element 3 of block_table (\"table\") is 2147483647, must be 0 to 2", "len", 3, BLOCK + 1);
    RUNS("len", BLOCK, 1);
    RUNS("table", 0, -1, BLOCKS - 1, 77);
    REFUSED("element 2 of block_table (\"table\") is 3, must be 0 to 2", "table", 0, 0, BLOCKS, 0);
    REFUSED("element 0 of block_table (\"table\") is -1", "table", -1, 0, 0, 0);
    end();
}

static void test_windows(void)
{
    const tn_attention_params rows[] = {{.scale = 1.0f, .causal = 1, .window = 8},
                                        {.scale = 1.0f, .causal = 1, .chunk = BLOCK}};
    for (int i = 0; i < 2; i++) { // blocks that nobody sees any more
        begin();
        record_attention(0, &rows[i], false);
        if (!report(__LINE__, compile(caches, 2) == TN_OK, "attention with a window")) {
            end();
            return;
        }
        write_ints("start", INTS(0, 2, 4));
        write_ints("len", INTS(BLOCK + 9, 2));
        RUNS("table", -1, 1, 0, 0); // the first query has position 23 and sees 16 to 23
        REFUSED("element 1 of block_table (\"table\") is -1", "table", 1, -1, 0, 0);
        write_ints("table", INTS(-1, 1, 0, 0));
        REFUSED("element 0 of block_table (\"table\") is -1", "len", BLOCK + 1, 2);
        end();
    }
}

static void test_one_query(void)
{
    begin();
    record_attention(1, &(tn_attention_params){.scale = 1.0f, .causal = 1}, false);
    if (!report(__LINE__, compile(caches, 2) == TN_OK, "attention of one query")) {
        end();
        return;
    }
    write_ints("len", INTS(1, 1, 2, 3));
    RUNS("start", 0, 1, 2, 3, 4);
    REFUSED("element 2 of q_start (\"start\") is 3, must be 2 to 2", "start", 0, 1, 3, 3, 4);
    REFUSED("element 0 of q_start (\"start\") is 1, must be 0 to 0", "start", 1, 1, 2, 3, 4);
    end();
    begin();
    tn_attention_args a = {
        INPUT("q", TOKENS, HEADS, DIM), state("k"), state("v"), IDS("start", SEQS + 1), IDS("len", SEQS),
        IDS("table", SEQS, TABLE),      NULL,       1};
    OUTPUT("y", tn_op_attention(g, &a, &(tn_attention_params){.scale = 1.0f}));
    if (!report(__LINE__, compile(caches, 2) == TN_OK, "attention of two queries")) {
        end();
        return;
    }
    REFUSED("attention: one_query, but 4 tokens of 2 sequences", "start", 0, 1, 2);
    end();
    begin();
    record_attention(0, &(tn_attention_params){.scale = 1.0f, .causal = 1}, true);
    report(__LINE__, compile(caches, 2) == TN_ERR_UNSUPPORTED, "attention of a computed length");
    TEST_CHECK(message_has(ctx, "attention: kv_len must be an input or a weight"));
    n_refused++;
    end();
}

static void test_recurrent(void)
{
    enum { SLOTS = 3 };
    static float conv[SLOTS][1][WIDTH], rule[SLOTS][HEADS][DIM][DIM];
    for (int which = 0; which < 2; which++) {
        const tn_binding bound[] = {
            {"s", which ? (void *)rule : (void *)conv, which ? sizeof rule : sizeof conv},
            {"w", floats, sizeof floats}};
        begin();
        tn_tensor *start = IDS("start", SEQS + 1), *slots = IDS("slots", SEQS, 2), *y;
        if (which) {
            tn_delta_rule_args a = {.state =
                                        tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(SLOTS, HEADS, DIM, DIM)),
                                    .q = INPUT("q", TOKENS, HEADS, DIM),
                                    .k = INPUT("k", TOKENS, HEADS, DIM),
                                    .v = INPUT("v", TOKENS, HEADS, DIM),
                                    .g = INPUT("g", TOKENS, HEADS),
                                    .beta = INPUT("b", TOKENS, HEADS),
                                    .q_start = start,
                                    .slots = slots};
            y = tn_op_delta_rule(g, &a, &(tn_delta_rule_params){.scale = 1.0f}, NULL);
        } else {
            tn_short_conv_args a = {.state = tn_graph_state(g, "s", TN_TYPE_F32, SHAPE(SLOTS, 1, WIDTH)),
                                    .x = INPUT("x", TOKENS, WIDTH),
                                    .w = WEIGHT("w", WIDTH, 2),
                                    .q_start = start,
                                    .slots = slots};
            y = tn_op_short_conv(g, &a, NULL);
        }
        OUTPUT("y", y);
        const char *op = which ? "delta_rule" : "short_conv";
        if (!report(__LINE__, compile(bound, which ? 1 : 2) == TN_OK, op)) {
            end();
            return;
        }
        write_ints("slots", INTS(-1, 0, SLOTS - 1, SLOTS - 1));
        RUNS("start", 0, 1, TOKENS);
        RUNS("slots", INT32_MIN, -1, 1, 1);
        REFUSED("element 3 of slots (\"slots\") is 3, must be", "slots", 0, 0, 1, SLOTS);
        REFUSED("element 0 of slots (\"slots\") is 2147483647", "slots", INT32_MAX, 0, 1, 1);
        write_ints("slots", INTS(0, 0, 1, 1));
        REFUSED("element 2 of q_start (\"start\") is 5, must be 1 to 4", "start", 0, 1, TOKENS + 1);
        REFUSED("element 1 of q_start (\"start\") is -1, must be 0 to 4", "start", 0, -1, TOKENS);
        end();
    }
}

int main(int argc, char **argv)
{
    bool found = argc < 2;
    ctx = graph_context(NULL, 2);
    fill();
    for (int32_t i = 0; i < tn_context_n_devices(ctx); i++) {
        device = tn_context_device_get(ctx, i);
        if (strcmp(device->name, "null") == 0) continue;
        found = found || strncmp(device->name, argv[1], strlen(argv[1])) == 0;
        n_refused = n_accepted = 0;
        test_get_rows();
        test_computed();
        test_experts();
        test_cache_write();
        test_attention();
        test_windows();
        test_one_query();
        test_recurrent();
        printf("%s: %d runs refused, %d accepted\n", device->name, n_refused, n_accepted);
    }
    if (!found) printf("no device %s: skipped\n", argv[1]);
    tn_context_destroy(&ctx);
    return found ? test_done() : 77;
}
