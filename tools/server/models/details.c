// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/server/models/details.h"

#include <stdlib.h>
#include <string.h>

static const char template_key[] = "tokenizer.chat_template";

// Values of general.file_type, by number. 4 to 6 and 33 to 35 are no longer in use.
static const char *const file_types[] = {
    [0] = "F32",     [1] = "F16",     [2] = "Q4_0",     [3] = "Q4_1",    [7] = "Q8_0",     [8] = "Q5_0",
    [9] = "Q5_1",    [10] = "Q2_K",   [11] = "Q3_K_S",  [12] = "Q3_K_M", [13] = "Q3_K_L",  [14] = "Q4_K_S",
    [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",  [18] = "Q6_K",   [19] = "IQ2_XXS", [20] = "IQ2_XS",
    [21] = "Q2_K_S", [22] = "IQ3_XS", [23] = "IQ3_XXS", [24] = "IQ1_S",  [25] = "IQ4_NL",  [26] = "IQ3_S",
    [27] = "IQ3_M",  [28] = "IQ2_S",  [29] = "IQ2_M",   [30] = "IQ4_XS", [31] = "IQ1_M",   [32] = "BF16",
    [36] = "TQ1_0",  [37] = "TQ2_0",  [38] = "MXFP4"};

// Calls `use` for each key until it returns false. most: characters of a value, 0: all.
static void each_key(tn_context *ctx, const tn_file *file, int64_t most,
                     bool (*use)(void *user, const char *name, const char *type, const char *value),
                     void *user)
{
    bool goes_on = true;
    for (int64_t i = 0; goes_on && i < tn_file_n_keys(file); i++) {
        char *name;
        const char *type, *value;
        if (tn_file_key(file, i, most, &name, &type, &value) != TN_OK) continue;
        goes_on = use(user, name, type, value);
        tn_text_free(ctx, name);
    }
}

static bool find_type(void *user, const char *name, const char *type, const char *value)
{
    long *number = user;
    (void)type;
    if (strcmp(name, "general.file_type") != 0) return true;
    *number = strtol(value, NULL, 10);
    return false;
}

void details_quant(tn_context *ctx, const char *path, char *out, size_t size)
{
    enum { GUESSED = 1024 }; // a flag of writers that did not know the type for certain
    enum { SHOWN = 80 };
    tn_file *file = NULL;
    long number = -1;
    snprintf(out, size, "unknown");
    if (tn_file_open(ctx, path, &file) != TN_OK) return;
    each_key(ctx, file, SHOWN, find_type, &number);
    tn_file_close(&file);
    if (number >= GUESSED) number -= GUESSED;
    bool known = number >= 0 && number < (long)(sizeof file_types / sizeof *file_types) && file_types[number];
    if (known) snprintf(out, size, "%s", file_types[number]);
}

static bool find_template(void *user, const char *name, const char *type, const char *value)
{
    char **found = user;
    (void)type;
    if (strcmp(name, template_key) != 0) return true;
    *found = strdup(value);
    return false;
}

char *details_template(tn_context *ctx, const tn_file *file)
{
    char *found = NULL;
    each_key(ctx, file, 0, find_template, &found);
    return found ? found : strdup("");
}

static bool put_key(void *user, const char *name, const char *type, const char *value)
{
    json *j = user;
    // These have fields of their own.
    if (strcmp(name, template_key) == 0 || strcmp(name, "general.parameter_count") == 0) return true;
    if (type[0] == '[')
        json_null(j, name);
    else if (strcmp(type, "str") == 0)
        json_text(j, name, value);
    else if (strcmp(type, "bool") == 0 || strspn(value, "-0123456789") == strlen(value))
        json_raw(j, name, value);
    else
        json_number(j, name, strtod(value, NULL));
    return true;
}

void details_put_keys(tn_context *ctx, const tn_file *file, json *j)
{
    enum { MOST = 512 }; // characters of a text, such as a description
    each_key(ctx, file, MOST, put_key, j);
}
