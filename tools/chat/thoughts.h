// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// What a model thinks before it answers, in a stream of text: <think>..</think>, or the channels of the
// harmony format, whose markers are no text for people: thoughts in them are shown between <think> and
// </think>, too.
#ifndef TENON_TOOLS_THOUGHTS_H
#define TENON_TOOLS_THOUGHTS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct thoughts {
    int state; // one of thoughts.c
    bool channels, hide;
    char *held; // not decided yet
    size_t n_held, held_capacity;
    char *out; // of the last call
    size_t n_out, out_capacity;
    // With `keep`, set after thoughts_begin with hide: the thought of the last call, without blanks at its
    // ends.
    bool keep, begun;
    char *inner;
    size_t n_inner, inner_capacity;
} thoughts;

// A new answer. prompt_end: the last characters of the prompt; templates may begin a thought. hide: only the
// answer comes out.
void thoughts_begin(thoughts *t, const char *prompt_end, bool hide);
// The next part of the text; `last`: the end. t->out[0 .. n_out) is what is shown of it. False: out of
// memory.
bool thoughts_feed(thoughts *t, const char *text, size_t n, bool last);
void thoughts_fini(thoughts *t);
// Whether the text so far ends inside of a thought.
bool thoughts_inside(const thoughts *t);

// A whole answer: [*thought, +*n_thought) is NULL if there is none, *answer is where the answer begins.
void thoughts_split(const char *text, const char **thought, size_t *n_thought, const char **answer);

#endif
