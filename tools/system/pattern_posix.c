// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/system/system.h"

#include <regex.h>
#include <stdlib.h>

struct sys_pattern {
    regex_t regex;
};

sys_pattern *sys_pattern_create(const char *text, char *why, size_t why_size)
{
    sys_pattern *p = malloc(sizeof *p);
    int error = p ? regcomp(&p->regex, text, REG_EXTENDED | REG_NOSUB) : REG_ESPACE;
    if (p && !error) return p;
    regerror(error, p ? &p->regex : NULL, why, why_size);
    free(p);
    return NULL;
}

bool sys_pattern_matches(const sys_pattern *p, const char *text)
{
    return regexec(&p->regex, text, 0, NULL, 0) == 0;
}

void sys_pattern_destroy(sys_pattern *p)
{
    if (!p) return;
    regfree(&p->regex);
    free(p);
}
