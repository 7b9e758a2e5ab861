// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a chat template besides the turns: its text, tools, variables, the time.
#include "tools/chat/generate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Days from 1970-01-01 to a date; years begin with March, so that the leap day is the last.
static int64_t days_to(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t chat_local_time(void)
{
    struct tm t;
    if (!sys_local_time(&t)) return TN_CHAT_NO_TIME;
    int64_t days = days_to(t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
    return days * 86400 + t.tm_hour * 3600 + t.tm_min * 60 + t.tm_sec;
}

static bool is_file(const char *path)
{
    sys_status st;
    return sys_file_status(path, &st) && st.kind == SYS_FILE;
}

static int read_system(run_state *r)
{
    const options *o = r->t.opt;
    size_t n;
    r->system = opt_text(o, OPT_SYSTEM);
    if (!opt_is_set(o, OPT_SYSTEM_FILE)) return 0;
    if (r->system) return fail(EXIT_USAGE, "-sys and -sysf both give the system prompt; give one of them");
    int code = read_input(opt_text(o, OPT_SYSTEM_FILE), &r->system_text, &n);
    r->system = r->system_text;
    return code;
}

// Puts {"enable_thinking": false} before the variables that are given, which win.
static int refuse_thoughts(run_state *r)
{
    static const char no[] = "{\"enable_thinking\": false";
    const char *given = r->chat.variables, *rest = given ? strchr(given, '{') : NULL;
    if (given && !rest) return 0; // no JSON object: the template says so
    bool empty = !rest || rest[1 + strspn(rest + 1, " \t\r\n")] == '}';
    size_t n = sizeof no + (rest ? strlen(rest) : 0) + 2;
    r->variables_text = malloc(n);
    if (!r->variables_text) return fail(EXIT_MEMORY, "out of memory for the options");
    snprintf(r->variables_text, n, "%s%s%s", no, empty ? "" : ",", rest ? rest + 1 : "}");
    r->chat.variables = r->variables_text;
    return 0;
}

int chat_options(run_state *r)
{
    const options *o = r->t.opt;
    size_t n;
    int code = 0;
    tn_chat_config_default(&r->chat);
    r->chat.local_time = chat_local_time();
    r->chat.chat_template = opt_text(o, OPT_CHAT_TEMPLATE);
    r->chat.variables = opt_text(o, OPT_CHAT_VARS);
    const char *path = r->chat.chat_template;
    if (path && !strchr(path, '\n') && is_file(path)) {
        code = read_input(path, &r->template_text, &n);
        r->chat.chat_template = r->template_text;
    }
    if (!code) code = read_system(r);
    if (!code && opt_int(o, OPT_REASONING_BUDGET) == 0) code = refuse_thoughts(r);
    if (!code && opt_text(o, OPT_TOOLS)) {
        code = read_input(opt_text(o, OPT_TOOLS), &r->tools_text, &n);
        r->chat.tools = r->tools_text;
    }
    return code;
}

void chat_fini(run_state *r)
{
    free(r->template_text);
    free(r->tools_text);
    free(r->variables_text);
    free(r->system_text);
}
