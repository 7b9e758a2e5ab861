// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Speeds of other programs, or of other runs of this one, beside which `tenon bench --peers` puts its own.
#ifndef TENON_TOOLS_BENCH_PEERS_H
#define TENON_TOOLS_BENCH_PEERS_H

#include "tools/options.h"

enum { PEERS_MAX = 8 };

typedef struct peer_row {
    int peer;
    char model[96], test[64]; // model "": of any
    double speed, spread;     // tokens per second
} peer_row;

typedef struct peers {
    char names[PEERS_MAX][48];
    int n;
    peer_row *rows;
    size_t n_rows;
} peers;

// Reads all files of --peers. 0, or an exit code after a message; peers_close then still works.
int peers_open(peers *p, const options *o);
void peers_close(peers *p);
// The row of a test of a model (a path or a name); NULL: there is none.
const peer_row *peers_find(const peers *p, int peer, const char *model, const char *test);
// What is behind the last separator of a path.
const char *path_base(const char *path);

#endif
