// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon devices: the devices, and why backends have none.
#include "tools/common.h"
#include "tools/json/json.h"

#include <string.h>

static bool is_hidden(const options *o, const tn_device_info *info)
{
    return strcmp(info->backend, "null") == 0 && !opt_flag(o, OPT_ALL);
}

enum { DETAILS_SIZE = 65536 };

// With --verbose: what the device uses besides itself, in lines. Returns the first one, as strtok does.
static char *first_detail(const tool *t, int32_t i, char text[DETAILS_SIZE])
{
    text[0] = 0;
    if (opt_flag(t->opt, OPT_VERBOSE))
        tn_device_details(tn_context_device_get(t->ctx, i), text, DETAILS_SIZE);
    return strtok(text, "\n");
}

static void print_text(const tool *t, char *absent)
{
    char text[1024], total[32], available[32], lines[DETAILS_SIZE];
    for (int32_t i = 0; i < tn_context_n_devices(t->ctx); i++) {
        tn_device_info info = {.struct_size = sizeof info};
        tn_device_info_get(tn_context_device_get(t->ctx, i), &info);
        if (is_hidden(t->opt, &info)) continue;
        printf("%-10s %s; memory %s, free %s\n", info.name, shown(info.description, text, sizeof text),
               size_text(info.memory_total, total, sizeof total),
               size_text(info.memory_free, available, sizeof available));
        for (char *line = first_detail(t, i, lines); line; line = strtok(NULL, "\n"))
            printf("%-10s %s\n", "", shown(line, text, sizeof text));
    }
    for (char *line = strtok(absent, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        if (colon) *colon = 0;
        const char *reason = colon ? colon + 1 + (colon[1] == ' ') : "";
        printf("%-10s absent: %s\n", line, reason);
    }
}

static void print_json(const tool *t, char *absent)
{
    json j;
    char lines[DETAILS_SIZE];
    json_init(&j, stdout);
    json_object(&j, NULL);
    json_array(&j, "devices");
    for (int32_t i = 0; i < tn_context_n_devices(t->ctx); i++) {
        tn_device_info info = {.struct_size = sizeof info};
        tn_device_info_get(tn_context_device_get(t->ctx, i), &info);
        if (is_hidden(t->opt, &info)) continue;
        json_object(&j, NULL);
        json_text(&j, "name", info.name);
        json_text(&j, "backend", info.backend);
        json_text(&j, "description", info.description);
        json_size(&j, "memory_total", info.memory_total);
        json_size(&j, "memory_free", info.memory_free);
        if (opt_flag(t->opt, OPT_VERBOSE)) json_array(&j, "details");
        for (char *line = first_detail(t, i, lines); line; line = strtok(NULL, "\n"))
            json_text(&j, NULL, line);
        if (opt_flag(t->opt, OPT_VERBOSE)) json_end_array(&j);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_array(&j, "absent");
    for (char *line = strtok(absent, "\n"); line; line = strtok(NULL, "\n")) {
        char *colon = strchr(line, ':');
        if (colon) *colon = 0;
        json_object(&j, NULL);
        json_text(&j, "backend", line);
        json_text(&j, "reason", colon ? colon + 1 + (colon[1] == ' ') : "");
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
}

int cmd_devices(const options *o)
{
    tool t;
    if (o->n_args > 0)
        return fail(EXIT_USAGE, "unexpected argument '%s'; tenon devices takes flags only", o->args[0]);
    int code = tool_open(&t, o);
    if (!code) {
        char absent[2048];
        tn_context_absent_backends(t.ctx, absent, sizeof absent);
        if (opt_flag(o, OPT_JSON))
            print_json(&t, absent);
        else
            print_text(&t, absent);
    }
    tool_close(&t);
    return code;
}
