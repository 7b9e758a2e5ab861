// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// tenon pull: a model from a repository of Hugging Face, or a file from a URL, into the own folder.
#ifndef TENON_TOOLS_PULL_H
#define TENON_TOOLS_PULL_H

#include "tools/common.h"
#include "tools/store/http.h"
#include "tools/terminal/progress.h"

enum { PULL_PATH = 4096, PULL_NAME = 256, PULL_TOKEN = 512, PULL_ATTEMPTS = 5 };

typedef struct pull_file {
    char url[HTTP_URL];
    char name[PULL_NAME];    // in the folder; checked by pull_safe_name
    char sha256[SHA256_HEX]; // "": not known yet
    int64_t size;            // bytes; -1: not known yet
} pull_file;

typedef struct pull {
    const options *opt;
    http *http;
    const char *wanted; // as the command line names it
    char endpoint[HTTP_URL], endpoint_origin[HTTP_ORIGIN], endpoint_host[128];
    char token[PULL_TOKEN];     // "": none
    bool plain;                 // the endpoint is http://
    char repository[PULL_NAME]; // "ORG/NAME"; "": a URL of another place
    char quant[32];             // "Q4_K_M"; "": not known
    char folder[PULL_PATH];     // where the files go
    pull_file *files;           // one, or the parts of a split model
    size_t n_files, at;         // at: the one that is fetched
    // For the bar and the report; bytes.
    uint64_t total;      // of all files, 0: not known
    uint64_t before;     // of the files before this one
    uint64_t downloaded; // in this run
    uint64_t resumed;    // kept from a run before
    uint64_t start_ns;
    progress line;
    char why[HTTP_WHY];
} pull;

// Whether a text of the network may be a part of a path: letters, digits, and . _ - + = , but no dot or dash
// at its start.
bool pull_safe_name(const char *text, size_t n);
// Whether a status of a server, or a failed connection, is worth another attempt; waits before it. *tries
// counts attempts without progress. False: no more attempts, or Ctrl-C.
bool pull_wait_again(const http_head *head, int *tries);
// A message for a response that is no file. Returns the exit code.
int pull_fail_status(const pull *p, const http_head *head, const char *what);
int pull_fail_result(const pull *p, http_result result);

// repository.c: the files of p->repository that `wanted` names (":Q4_K_M", or what is usual if it is NULL)
// into p->files, p->quant. 0 or an exit code after a message.
int pull_list(pull *p, const char *wanted);
// transfer.c: one file into p->folder, complete and checked. 0 or an exit code after a message.
int pull_transfer(pull *p, pull_file *f);
// Whether `bytes` more fit into the folder; 0 or an exit code after a message.
int pull_check_space(const pull *p, uint64_t bytes);
// Bytes of the file that an earlier run left in the folder.
uint64_t pull_kept(const pull *p, const pull_file *f);

#endif
