// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Prints the dictionary of fuzz_model for libFuzzer (-dict=FILE): the keys that are read, and the ends of
// their ranges, from the same table as the check of files.
#include "models/keys/keys.h"

#include <stdio.h>

static void print_number(size_t row, const char *end, int64_t v)
{
    printf("key_%zu_%s=\"", row, end);
    for (int i = 0; i < 8; i++) printf("\\x%02x", (unsigned)((uint64_t)v >> 8 * i & 0xff));
    printf("\"\n");
}

int main(void)
{
    const tn_key_row *row;
    for (size_t i = 0; (row = tn_key_row_at(i)) != NULL; i++) {
        printf("key_%zu=\"%s\"\n", i, row->name);
        if (row->least == 0 && row->most == 0) continue;
        print_number(i, "least", row->least);
        print_number(i, "most", row->most);
        print_number(i, "more", row->most < INT64_MAX ? row->most + 1 : -1);
    }
    return 0;
}
