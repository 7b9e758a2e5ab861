// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon quantize IN OUT TYPE.
#include "tools/common.h"
#include "tools/interrupt.h"
#include "tools/json.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <tenon/file.h>

typedef struct quantize_state {
    tool t;
    const char *in, *out, *type;
    bool terminal;
    int64_t n_tensors, n_changed;
    double rmse_max;
    uint64_t start_ns;
} quantize_state;

static int32_t on_tensor(void *user, const char *tensor, const char *from, const char *to, double rmse,
                         int64_t done, int64_t total)
{
    quantize_state *s = user;
    char name[128];
    s->n_tensors = total;
    if (strcmp(from, to) != 0) s->n_changed++;
    if (rmse > s->rmse_max) s->rmse_max = rmse;
    shown(tensor, name, sizeof name);
    if (s->t.log_level >= TN_LOG_INFO)
        fprintf(stderr, "[%lld/%lld] %s %s -> %s, rmse %.6f\n", (long long)done, (long long)total, name, from,
                to, rmse);
    else if (s->terminal)
        fprintf(stderr, "\r[%lld/%lld] %-48.48s %s -> %s\033[K", (long long)done, (long long)total, name,
                from, to);
    return interrupted();
}

// TYPE must be one of the words that the library names.
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
    struct stat in, out;
    if (stat(s->in, &in) != 0) return fail(EXIT_FAILED, "cannot open %s: %s", s->in, strerror(errno));
    if (stat(s->out, &out) != 0) return 0;
    if (in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        return fail(EXIT_USAGE, "IN and OUT are the same file (%s); give another name for OUT", s->out);
    if (!S_ISREG(out.st_mode))
        return fail(EXIT_USAGE, "%s exists and is no regular file; give another name for OUT", s->out);
    return 0;
}

static uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
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
        json_number(&j, "rmse_max", s->rmse_max);
        json_number(&j, "seconds", seconds);
        json_end_object(&j);
        return;
    }
    char a[32], b[32];
    fprintf(stderr, "%s: %s, was %s; %lld of %lld tensors changed type, largest rmse %.6f, %.1f s\n", s->out,
            size_text(after, a, sizeof a), size_text(before, b, sizeof b), (long long)s->n_changed,
            (long long)s->n_tensors, s->rmse_max, seconds);
}

int cmd_quantize(const options *o)
{
    if (o->n_args != 3)
        return fail(EXIT_USAGE, "tenon quantize takes IN OUT TYPE; types: %s", tn_quantize_types());
    quantize_state s = {
        .in = o->args[0], .out = o->args[1], .type = o->args[2], .terminal = is_terminal(stderr)};
    int code = check_type(&s);
    if (!code) code = check_paths(&s);
    if (!code) code = tool_open(&s.t, o);
    if (!code) {
        tn_quantize_config cfg = {.struct_size = sizeof cfg, .type = s.type, .report = on_tensor, .user = &s};
        interrupt_poll(true);
        s.start_ns = now_ns();
        tn_status status = tn_quantize(s.t.ctx, s.in, s.out, &cfg);
        if (s.terminal) fputs("\r\033[K", stderr);
        if (status != TN_OK)
            code = tool_fail(&s.t, status, "%s", s.in);
        else
            print_result(&s);
    }
    tool_close(&s.t);
    return code;
}
