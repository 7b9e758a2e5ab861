// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Stop strings: they are searched in the bytes of a generated text as these arrive, whatever the borders of
// tokens are.
#ifndef TN_MODELS_STOPS_H
#define TN_MODELS_STOPS_H

#include "core/memory/arena.h"

// A stop string as an automaton (Knuth, Morris, Pratt 1977): each byte of the stream is read once, and
// `matched` is the number of bytes at its end that could still become the string.
typedef struct tn_stop {
    const char *text;
    int32_t *border; // [size] longest proper prefix of text[0..i] that also ends it
    int32_t size, matched;
} tn_stop;

typedef struct tn_stops {
    tn_stop *of; // [n]
    int32_t n;
} tn_stops;

// Copies n texts of 1 to 65536 bytes into the arena. TN_ERR_ARG, TN_ERR_MEMORY.
TN_MUST_USE tn_status tn_stops_init(tn_stops *s, tn_context *ctx, tn_arena *arena, const char *const *texts,
                                    int32_t n);
// A new text begins.
void tn_stops_reset(tn_stops *s);
// Reads the bytes text[from..to). True when a stop string is complete: *cut is where it begins. The string
// that is complete first counts; among equals the longest.
bool tn_stops_scan(tn_stops *s, const char *text, size_t from, size_t to, size_t *cut);
// Bytes at the end of the text that may be the beginning of a stop string.
size_t tn_stops_held(const tn_stops *s);
size_t tn_stops_longest(const tn_stops *s); // bytes; 0: there are none

#endif
