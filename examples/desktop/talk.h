// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Everything that may take long, on a thread of its own: opening a model, its chat template, closing it. What
// it has done comes back as reports in the main loop. Only the pieces of an answer are read in the main loop,
// from the engine's descriptor, which does not block.
#ifndef DESKTOP_TALK_H
#define DESKTOP_TALK_H

#include <glib.h>
#include <tenon/engine.h>

typedef struct talk talk;

typedef enum talk_what {
    TALK_OPENED,   // text: architecture and device; devices: names, comma by comma
    TALK_ASKED,    // the request is in the engine
    TALK_PIECE,    // text: of the answer
    TALK_ANSWERED, // text: why it ended
    TALK_FAILED,   // status, text: what failed
    TALK_CLOSED,
} talk_what;

typedef struct talk_report {
    talk_what what;
    tn_status status;
    const char *text;
    const char *devices;
} talk_report;

// Called in the main loop.
typedef void (*talk_fn)(void *user, const talk_report *report);

talk *talk_new(talk_fn fn, void *user);
// Stops the thread and frees everything; no report comes after it.
void talk_free(talk *t);
// Closes what is open and opens a model on a device (NULL: the best one).
void talk_open(talk *t, const char *path, const char *device);
void talk_ask(talk *t, const char *question, int max_tokens);
// Ends opening, or the answer.
void talk_stop(talk *t);
void talk_close(talk *t);
// Share of the weights that were read, 0 to 1.
double talk_progress(const talk *t);
// Bytes that the library holds, 0 while none is open.
size_t talk_memory(const talk *t);

// For the script: allocations fail from now on; the next pieces come from a device that is lost.
void talk_fail_memory(talk *t, gboolean on);
void talk_lose_device(talk *t);

#endif
