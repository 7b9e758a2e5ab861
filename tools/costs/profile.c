// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// --profile: the steps of the last pass in the Trace Event Format (Chrome, Perfetto), one behind the other.
#include "tools/common.h"
#include "tools/json.h"
#include "tools/output.h"

static void put_step(json *j, const tn_step_time *step, double start_us)
{
    json_object(j, NULL);
    json_text(j, "name", step->op);
    json_text(j, "cat", "step");
    json_text(j, "ph", "X");
    json_number(j, "ts", start_us);
    json_number(j, "dur", (double)step->ns * 1e-3);
    json_int(j, "pid", 1);
    json_int(j, "tid", 1);
    json_object(j, "args");
    json_text(j, "kernel", step->kernel);
    json_text(j, "value", step->name);
    json_end_object(j);
    json_end_object(j);
}

static void put_trace(const tn_session *session, FILE *f)
{
    json j;
    json_init(&j, f);
    json_object(&j, NULL);
    json_text(&j, "displayTimeUnit", "ns");
    json_array(&j, "traceEvents");
    tn_step_time step = {.struct_size = sizeof step};
    double start_us = 0;
    for (int32_t i = 0; tn_session_step_time(session, i, &step); i++) {
        if (i > 0) fputc('\n', f);
        put_step(&j, &step, start_us);
        start_us += (double)step.ns * 1e-3;
    }
    json_object(&j, NULL);
    json_text(&j, "name", "memory");
    json_text(&j, "ph", "C");
    json_number(&j, "ts", start_us);
    json_int(&j, "pid", 1);
    json_object(&j, "args");
    json_size(&j, "peak RAM", peak_rss());
    json_end_object(&j);
    json_end_object(&j);
    json_end_array(&j);
    json_end_object(&j);
}

int tool_profile(const tool *t, const tn_session *session)
{
    const char *path = opt_text(t->opt, OPT_PROFILE);
    if (!path) return 0;
    out_file out;
    int code = out_file_open(&out, path);
    if (code) return code;
    put_trace(session, out.f);
    return out_file_commit(&out);
}
