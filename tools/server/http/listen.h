// SPDX-FileCopyrightText: 2026 The tenon authors
// SPDX-License-Identifier: Apache-2.0
//
// Sockets that listen: addresses, names, Unix sockets, and those that systemd passes (LISTEN_FDS).
#ifndef TENON_TOOLS_SERVER_LISTEN_H
#define TENON_TOOLS_SERVER_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

enum { LISTEN_MAX = 8 };

typedef struct listeners {
    int fds[LISTEN_MAX];
    int n;
    char address[160];   // of the first one, as a URL
    char unix_path[108]; // to remove at the end, "" if none
} listeners;

// host NULL: the loopback addresses, 127.0.0.1 and, where there is one, ::1. 0 or an exit code after a
// message.
int listen_open(listeners *l, const char *host, int port);
void listen_close(listeners *l);
// How many of the wanted connections the limit of descriptors allows, some of which the rest needs.
int listen_connections(int wanted);
// A connection that waits, -1: none. *full: there is no descriptor for it.
int listen_accept(int fd, bool *full);
// Answers a connection with 503 and closes it.
void listen_refuse(int fd);
// Whether the other side has closed its end. Nothing is read.
bool peer_has_left(int fd);
// Now as in RFC 9110, section 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT", independent of the locale.
const char *http_date(char *buf, size_t size);
// Whether the host of a URL or of --host is one of this machine's loopback names and addresses.
bool host_is_loopback(const char *host);
bool peer_is_loopback(int fd);

#endif
