// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of a chat template besides the turns: its text, tools, variables, the time.
#include "tools/chat/generate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

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
    time_t now = time(NULL);
    struct tm t;
    if (now == (time_t)-1 || !localtime_r(&now, &t)) return TN_CHAT_NO_TIME;
    int64_t days = days_to(t.tm_year + 1900, t.tm_mon + 1, t.tm_mday);
    return days * 86400 + t.tm_hour * 3600 + t.tm_min * 60 + t.tm_sec;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
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
}
