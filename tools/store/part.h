// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// FILE.part, the beginning of a file that is being downloaded, and FILE.part.json, what its bytes belong to.
#ifndef TENON_TOOLS_PART_H
#define TENON_TOOLS_PART_H

#include "tools/store/http.h"

enum { PART_PATH = 4096 + 300 };

typedef struct part {
    int fd; // of the part, locked; -1: not open
    char target[PART_PATH], path[PART_PATH], info[PART_PATH];
} part;

typedef struct part_origin {
    char url[HTTP_URL], validator[HTTP_VALIDATOR], sha256[SHA256_HEX];
} part_origin;

// Makes the folder, opens and locks the part. 0 or an exit code after a message.
int part_open(part *p, const char *folder, const char *name);
bool part_lock(int fd); // without waiting; false: errno says why, EWOULDBLOCK: another program has the lock
bool part_truncate(part *p);
// False: there is none, or it cannot be read.
bool part_read_origin(const part *p, part_origin *o);
bool part_write_origin(const part *p, const part_origin *o);
// The part becomes the file, once it is on the disk. 0 or an exit code after a message.
int part_commit(part *p);
// Gives the lock back; `drop` removes what is left of the part.
void part_close(part *p, bool drop);

#endif
