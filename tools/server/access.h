// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Who may use the server: keys, names of the host, origins of web pages.
#ifndef TENON_TOOLS_SERVER_ACCESS_H
#define TENON_TOOLS_SERVER_ACCESS_H

#include "tools/options.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct access_rules {
    char **keys;
    size_t n_keys;
    bool loopback;        // the server listens on loopback only
    const options *opt;   // further hosts and origins
    const char *key_file; // NULL: none
} access_rules;

// The keys of --api-key and --api-key-file. 0 or an exit code after a message.
int access_open(access_rules *a, const options *o);
// Reads the file of keys anew; on failure the old keys stay.
void access_reload(access_rules *a);
void access_close(access_rules *a);

// Whether one of the headers (either may be NULL) has a key of the server, or it has none.
bool access_key(const access_rules *a, const char *authorization, const char *api_key);
// Whether the header Host is a name or an address, with or without a port.
bool host_is_formed(const char *host);
bool access_host(const access_rules *a, const char *host);
bool access_origin(const access_rules *a, const char *origin);

#endif
