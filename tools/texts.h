// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// The inputs of embed, classify and batch: a text on the command line, lines, or JSON lines.
#ifndef TENON_TOOLS_TEXTS_H
#define TENON_TOOLS_TEXTS_H

#include "tools/common.h"

// One input. Strings are terminated and live until the next one.
typedef struct text_item {
    const char *text; // or the document of a pair
    size_t n_text;
    const char *query; // NULL: no pair
    size_t n_query;
    const char *id; // as in the input, a JSON value; NULL: none
    size_t n_id;
    size_t line; // from 1
} text_item;

typedef struct text_source {
    char *data; // all of the input
    size_t size, at, line;
    bool json, whole; // JSON lines; one text
    const char *name; // for messages
} text_source;

// From the arguments behind the model, -f, or standard input, in the form of --input.
int texts_open(text_source *s, const options *o, const char *const *args, int n_args);
// 1: *item is the next one; 0: the end; -1: the line is broken, *code is the exit code after a message.
int texts_next(text_source *s, text_item *item, int *code);
void texts_close(text_source *s);

#endif
