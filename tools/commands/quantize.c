// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon quantize IN OUT TYPE.
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/json/json.h"
#include "tools/terminal/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tenon/file.h>

typedef struct tensor_line {
    char name[64], from[16], to[16];
    double rmse;
} tensor_line;

typedef struct quantize_state {
    tool t;
    const char *in, *out, *type;
    progress bar;
    bool warned; // that weights are rounded twice
    int64_t n_tensors, n_changed;
    double rmse, rmse_max;
    uint64_t start_ns;
    tensor_line *lines; // n_tensors, for --json
} quantize_state;

static bool keep_line(quantize_state *s, const tensor_line *line, int64_t done, int64_t total)
{
    if (!s->lines) s->lines = calloc((size_t)total, sizeof *s->lines);
    if (s->lines) s->lines[done - 1] = *line;
    return s->lines != NULL;
}

static bool is_quantised(const char *type)
{
    static const char *const plain[] = {"F32", "F16", "BF16", "F64"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(type, plain[i]) == 0) return false;
    return true;
}

static int32_t on_tensor(void *user, const char *tensor, const char *from, const char *to, double rmse,
                         int64_t done, int64_t total)
{
    quantize_state *s = user;
    char name[128];
    bool changed = strcmp(from, to) != 0, errors_only = s->t.log_level < TN_LOG_WARN;
    s->n_tensors = total;
    if (changed) s->n_changed++;
    if (rmse > s->rmse_max) s->rmse_max = rmse;
    shown(tensor, name, sizeof name);
    tensor_line line = {.rmse = rmse};
    snprintf(line.name, sizeof line.name, "%s", tensor);
    snprintf(line.from, sizeof line.from, "%s", from);
    snprintf(line.to, sizeof line.to, "%s", to);
    bool as_json = opt_flag(s->t.opt, OPT_JSON);
    if (as_json && !keep_line(s, &line, done, total)) return 1;
    progress_clear(&s->bar);
    if (changed && !errors_only && !s->warned && is_quantised(from)) {
        s->warned = true;
        note("warning: %s has weights of %s already, which are rounded a second time; the original gives "
             "better ones",
             s->in, from);
    }
    if (!errors_only && !as_json && (changed || s->t.log_level >= TN_LOG_INFO)) {
        fprintf(stderr, "[%*lld/%lld] %-40s %6s -> %-7s rmse %.6f\n", total > 99 ? 4 : 2, (long long)done,
                (long long)total, name, from, to, rmse);
        fflush(stderr);
    }
    char left[48];
    double share = total ? (double)done / (double)total : 1;
    if (!errors_only)
        progress_show(&s->bar, share, "tensor %lld of %lld%s", (long long)done, (long long)total,
                      progress_left(&s->bar, share, left, sizeof left));
    return interrupted();
}

// TYPE must be one of the types that the library lists.
static int check_type(const quantize_state *s)
{
    size_t n = strlen(s->type);
    for (const char *p = tn_quantize_types(); *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        bool same = len == n;
        for (size_t i = 0; same && i < n; i++) same = (p[i] | 32) == (s->type[i] | 32);
        if (same) return 0;
        p += len;
    }
    return fail(EXIT_USAGE, "unknown type '%s'; tenon quantize takes %s", s->type, tn_quantize_types());
}

static int check_paths(const quantize_state *s)
{
    sys_status in, out;
    if (!*s->in || !*s->out)
        return fail(EXIT_USAGE, "the name of %s is empty; give a file", *s->in ? "OUT" : "IN");
    if (strcmp(s->out, "-") == 0)
        return fail(EXIT_USAGE,
                    "OUT is -, but a model cannot go to standard output; give the name of a file");
    if (!sys_file_status(s->in, &in)) return fail(EXIT_FAILED, "cannot open %s: %s", s->in, strerror(errno));
    if (!sys_file_status(s->out, &out)) return 0;
    if (out.kind != SYS_FILE)
        return fail(EXIT_USAGE, "%s exists and is no regular file; give another name for OUT", s->out);
    return 0;
}

static uint64_t file_size(const char *path)
{
    sys_status st;
    return sys_file_status(path, &st) ? st.size : 0;
}

static void print_lines(const quantize_state *s, json *j)
{
    json_array(j, "by_tensor");
    for (int64_t i = 0; s->lines && i < s->n_tensors; i++) {
        json_object(j, NULL);
        json_text(j, "name", s->lines[i].name);
        json_text(j, "from", s->lines[i].from);
        json_text(j, "to", s->lines[i].to);
        json_number(j, "rmse", s->lines[i].rmse);
        json_end_object(j);
    }
    json_end_array(j);
}

static void print_result(const quantize_state *s)
{
    uint64_t before = file_size(s->in), after = file_size(s->out);
    double seconds = (double)(now_ns() - s->start_ns) * 1e-9;
    if (opt_flag(s->t.opt, OPT_JSON)) {
        json j;
        json_init(&j, stdout);
        json_object(&j, NULL);
        json_text(&j, "in", s->in);
        json_text(&j, "out", s->out);
        json_text(&j, "type", s->type);
        json_size(&j, "bytes_in", before);
        json_size(&j, "bytes_out", after);
        json_int(&j, "tensors", s->n_tensors);
        json_int(&j, "tensors_changed", s->n_changed);
        json_number(&j, "rmse", s->rmse);
        json_number(&j, "rmse_max", s->rmse_max);
        json_number(&j, "seconds", seconds);
        print_lines(s, &j);
        json_end_object(&j);
        return;
    }
    char a[32], b[32];
    fprintf(stderr, "%s: %s, was %s; %lld of %lld tensors changed type, rmse %.6f, at most %.6f, %.1f s\n",
            s->out, size_text(after, a, sizeof a), size_text(before, b, sizeof b), (long long)s->n_changed,
            (long long)s->n_tensors, s->rmse, s->rmse_max, seconds);
}

// The flags about types; their values are checked by the library.
static tn_status convert(quantize_state *s, const char **rules, int32_t n_rules)
{
    const options *o = s->t.opt;
    for (int32_t i = 0; i < n_rules; i++) rules[i] = opt_item_get(o, OPT_TENSOR_TYPE, i);
    tn_quantize_config cfg = {
        .struct_size = sizeof cfg,
        .type = s->type,
        .report = on_tensor,
        .user = s,
        .imatrix = opt_text(o, OPT_IMATRIX),
        .tensor_types = rules,
        .n_tensor_types = n_rules,
        .output_type = opt_text(o, OPT_OUTPUT_TYPE),
        .embedding_type = opt_text(o, OPT_EMBED_TYPE),
        .rmse = &s->rmse,
    };
    interrupt_poll(true);
    s->start_ns = now_ns();
    progress_begin(&s->bar, 0);
    return tn_quantize(s->t.ctx, s->in, s->out, &cfg);
}

static int quantize(quantize_state *s)
{
    int32_t n_rules = 0;
    while (opt_item_get(s->t.opt, OPT_TENSOR_TYPE, n_rules)) n_rules++;
    const char **rules = malloc(((size_t)n_rules + 1) * sizeof *rules);
    if (!rules) return fail(EXIT_MEMORY, "out of memory for %d flags", n_rules);
    tn_status status = convert(s, rules, n_rules);
    free(rules);
    progress_clear(&s->bar);
    if (status != TN_OK) return tool_fail(&s->t, status, "%s", s->in);
    print_result(s);
    return 0;
}

int cmd_quantize(const options *o)
{
    if (o->n_args != 3)
        return fail(EXIT_USAGE, "tenon quantize takes IN OUT TYPE; types: %s", tn_quantize_types());
    quantize_state s = {.in = o->args[0], .out = o->args[1], .type = o->args[2]};
    int code = check_type(&s);
    if (!code) code = check_paths(&s);
    if (!code) code = tool_open(&s.t, o);
    if (!code) code = quantize(&s);
    free(s.lines);
    tool_close(&s.t);
    return code;
}
