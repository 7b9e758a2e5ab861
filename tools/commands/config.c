// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon config: what flags are when nobody gives them.
#include "tools/common.h"
#include "tools/json/json.h"

#include <stdlib.h>
#include <string.h>

// The value of an option for the first command that has it, as the configuration file gives it.
static const char *setting_of(opt_id id, const char **origin, char *buf, size_t size, int *code)
{
    options o;
    int cmd = 0;
    while (!(opt_rows[id].commands >> cmd & 1)) cmd++;
    *code = options_parse(&o, (cmd_id)cmd, 0, NULL);
    const char *text = *code ? NULL : opt_setting(&o, id, origin);
    // Keys are named because their values are secrets.
    if (text) snprintf(buf, size, "%s", id == OPT_API_KEY ? "(a secret)" : text);
    options_fini(&o);
    return text ? buf : NULL;
}

// Whether an option before this one has the same name: both are set by the same line.
static bool is_repeated(opt_id id)
{
    char name[64], other[64];
    opt_name(id, name, sizeof name);
    for (int i = 0; i < (int)id; i++)
        if (strcmp(opt_name((opt_id)i, other, sizeof other), name) == 0) return true;
    return false;
}

int cmd_config(const options *o)
{
    char path[1024], name[64], value[512];
    bool all = opt_flag(o, OPT_SHOW_ORIGIN), as_json = opt_flag(o, OPT_JSON);
    int code = 0;
    if (o->n_args > 0)
        return fail(EXIT_USAGE, "unexpected argument '%s'; tenon config takes flags only", o->args[0]);
    json j;
    if (as_json) {
        json_init(&j, stdout);
        json_object(&j, NULL);
        json_int(&j, "schema", 1);
        if (options_config_path(path, sizeof path)) json_text(&j, "file", path);
        json_array(&j, "settings");
    } else if (all && options_config_path(path, sizeof path)) {
        printf("# file: %s\n", path);
    }
    for (int i = 0; i < OPT_COUNT && !code; i++) {
        const char *origin;
        if (i == OPT_HELP || i == OPT_MODEL || is_repeated((opt_id)i) ||
            strncmp(opt_name((opt_id)i, name, sizeof name), "--", 2) != 0)
            continue;
        const char *text = setting_of((opt_id)i, &origin, value, sizeof value, &code);
        if (!text || (!all && strcmp(origin, "default") == 0)) continue;
        clean_text(value);
        if (as_json) {
            json_object(&j, NULL);
            json_text(&j, "name", name + 2);
            json_text(&j, "value", text);
            json_text(&j, "origin", origin);
            json_end_object(&j);
        } else if (all) {
            printf("%-12s %s = %s\n", origin, name + 2, text);
        } else {
            printf("%s = %s\n", name + 2, text);
        }
    }
    if (as_json) {
        json_end_array(&j);
        json_end_object(&j);
    }
    return code;
}
